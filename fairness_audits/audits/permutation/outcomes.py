"""The data of a permutation test: rows with a model's predictions, or their contingency table.

:class:`Predictions` has one entry per row. :class:`Counts` holds the number of rows by group, label and cell. A cell is
a predicted label or a score, so the table is small whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

FAR = 2.0**20
"""Scores further from 0 than this many times their range are moved to 0 before they are averaged."""


@dataclass(frozen=True)
class Predictions:
    """Arrays with one entry per prediction; ``n`` rows in ``len(groups)`` groups.

    ``label`` (n,) is the outcome y: 0 or 1, or any real number for the metrics that allow it. ``score`` (n,) is the
    model's score (a probability, for the log loss), in its own precision. ``group`` (n,) holds codes 0 ... G - 1 and
    ``groups`` their names. ``prediction`` (n,) in {0, 1} is the decision, needed by rates such as recall. ``cluster``
    (n,) holds codes of the person behind each row (or any unit that was sampled as a whole). ``weight`` (n,) >= 0 is
    the weight of a row, such as its inverse sampling probability. Only ratios of weights matter: they are scaled by a
    power of two to at most 1, so that their squares neither overflow nor vanish.

    Raises ValueError for arrays of unequal length, values that are not finite, codes without a name, a group without
    rows, and a cluster with rows in two groups.
    """

    label: Array
    score: Array
    group: Array
    groups: tuple[str, ...]
    prediction: Array | None = None
    cluster: Array | None = None
    weight: Array | None = None

    def __post_init__(self) -> None:
        columns = {"label": self.label, "score": self.score, "group": self.group}
        optional = {"prediction": self.prediction, "cluster": self.cluster, "weight": self.weight}
        columns |= {name: values for name, values in optional.items() if values is not None}
        for name, values in columns.items():
            if values.shape != (len(self.label),):
                raise InvalidInput(f"expected {name} of shape ({len(self.label)},) as label has, found {values.shape}")
            if not np.isfinite(values).all():
                raise InvalidInput(
                    f"{name} has {int((~np.isfinite(values)).sum())} values that are not finite: drop them"
                )
        _check_groups(np.bincount(_codes("group", self.group), minlength=len(self.groups)), self.groups)
        if self.prediction is not None:
            check_binary("prediction", self.prediction)
        if self.weight is not None:
            exponent = -int(np.frexp(self.weight.max())[1])
            object.__setattr__(self, "weight", np.ldexp(self.weight.astype(np.float64), exponent))
        if self.weight is not None and (np.bincount(self.group, self.weight, len(self.groups)) <= 0).any():
            raise InvalidInput("All weights of a group are 0", option="weight", remedy="Leave the group out")
        if self.cluster is not None:
            self._check_clusters(_codes("cluster", self.cluster))

    def _check_clusters(self, codes: Array) -> None:
        group_of = np.full(codes.max() + 1, -1)
        group_of[codes] = self.group
        if (torn := codes[group_of[codes] != self.group]).size:
            raise InvalidInput(
                f"{len(np.unique(torn))} clusters (the first has code {torn[0]}) have rows in more than one group: "
                "a cluster is permuted as a whole, so give all its rows the same group",
                option="cluster",
            )

    def pair(self, a: int, b: int) -> Self:
        """Return the rows of groups a and b only, as groups 0 and 1."""
        names = self.groups[a], self.groups[b]
        return self.select((self.group == a) | (self.group == b), names, (self.group == b).astype(np.int64))

    def select(self, rows: Array, groups: tuple[str, ...], group: Array) -> Self:
        """Return some ``rows`` (n,) bool, with these ``groups`` and the code of the ``group`` (n,) of each row."""
        prediction = None if self.prediction is None else self.prediction[rows]
        cluster = None if self.cluster is None else np.unique(self.cluster[rows], return_inverse=True)[1]
        weight = None if self.weight is None else self.weight[rows]
        own = {"prediction": prediction, "cluster": cluster, "weight": weight}
        return replace(self, label=self.label[rows], score=self.score[rows], group=group[rows], groups=groups, **own)

    def ordered(self, groups: tuple[str, ...]) -> Self:
        """Return the rows with the groups in another order."""
        codes = np.array([groups.index(name) for name in self.groups])
        return replace(self, group=codes[self.group], groups=groups)

    def counted(self) -> Counts:
        """Return the table group x label x prediction. Raises ValueError without predictions, or with clusters."""
        if self.cluster is not None or self.weight is not None:
            raise InvalidInput("rows with clusters or weights cannot be counted: leave cluster and weight out")
        return Counts.of_decisions(self.decision_table(), self.groups)

    def decision_table(self) -> Array:
        """Count rows by group x label x prediction, (G, 2, 2). Raises ValueError without predictions."""
        if self.prediction is None:
            raise InvalidInput(
                "rates need decisions: give `prediction`, or a threshold for the scores", option="prediction"
            )
        check_binary("label", self.label)
        return tabulated((len(self.groups), 2, 2), self.group, self.label, self.prediction)

    def positives(self) -> Array:
        """Count the rows of each group with label 1, (G,)."""
        return np.bincount(self.group[self.label == 1], minlength=len(self.groups))

    def units(self) -> tuple[Array, Array]:
        """Return the unit of each row, its cluster or itself, and the group of each unit."""
        if self.cluster is None:
            return np.arange(len(self.label)), self.group
        unit = np.unique(self.cluster, return_inverse=True)[1]
        group = np.empty(unit.max() + 1, dtype=np.int64)
        group[unit] = self.group
        return unit, group

    @cached_property
    def sizes(self) -> Array:
        """Number of rows of each group, (G,)."""
        return np.bincount(_codes("group", self.group), minlength=len(self.groups))


@dataclass(frozen=True)
class MatchedRows(Predictions):
    """Rows in pairs: ``match`` (n,) codes the pair of each row, called ``names[match]``; a group has one row of a pair.

    ``whole`` (n,) codes the clusters if there are any. They hold whole pairs, while a ``cluster`` is their part in one
    group.
    """

    match: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    names: Sequence[str] = ()
    whole: Array | None = None

    def select(self, rows: Array, groups: tuple[str, ...], group: Array) -> Self:
        """Return some ``rows`` (n,) bool with their pairs."""
        whole = None if self.whole is None else self.whole[rows]
        return replace(super().select(rows, groups, group), match=self.match[rows], whole=whole)


@dataclass(frozen=True)
class Counts:
    """``table[g, y, k]`` is the number of rows of group g with label y in cell k; (G, 2, K) integers.

    Cell k holds the rows with ``score[k]``; scores ascend. For decisions K = 2 and the cells are 0 and 1.

    Raises ValueError for another shape, negative or fractional counts, scores out of order and a group without rows.
    """

    table: Array
    groups: tuple[str, ...]
    score: Array

    def __post_init__(self) -> None:
        shape = (len(self.groups), 2, len(self.score))
        if self.table.shape != shape:
            raise InvalidInput(f"expected a table group x label x cell of shape {shape}, found {self.table.shape}")
        if self.table.dtype.kind not in "iu" or (self.table < 0).any():
            raise InvalidInput(
                f"expected counts, integers >= 0, found {self.table.dtype} with minimum {self.table.min()}"
            )
        if (np.diff(self.score) <= 0).any():
            raise InvalidInput("expected different scores in ascending order: sort them")
        _check_groups(self.table.sum(axis=(1, 2)), self.groups)

    @classmethod
    def of_decisions(cls, table: Array, groups: tuple[str, ...]) -> Counts:
        """Create counts from a table group x label x predicted label, (G, 2, 2)."""
        return cls(table, groups, np.array([0.0, 1.0]))

    @property
    def decided(self) -> bool:
        """Whether the cells are the two decisions 0 and 1."""
        return np.array_equal(self.score, [0.0, 1.0])

    @property
    def sizes(self) -> Array:
        """Number of rows of each group, (G,)."""
        return self.table.sum(axis=(1, 2))

    def positives(self) -> Array:
        """Count the rows of each group with label 1, (G,)."""
        return self.table[:, 1].sum(axis=1)

    def ordered(self, groups: tuple[str, ...]) -> Self:
        """Return the counts with the groups in another order."""
        return self.regrouped([[self.groups.index(name)] for name in groups], groups)

    def pair(self, a: int, b: int) -> Self:
        """Return groups a and b only, as groups 0 and 1."""
        return self.regrouped([[a], [b]], (self.groups[a], self.groups[b]))

    def regrouped(self, members: Sequence[Sequence[int]], groups: tuple[str, ...]) -> Self:
        """Return the counts of new groups, each the sum of the ``members`` with these codes."""
        return replace(self, table=np.stack([self.table[list(own)].sum(axis=0) for own in members]), groups=groups)


@dataclass(frozen=True)
class StratifiedCounts(Counts):
    """Counts of decisions, and the part ``by_stratum[s]`` (G, 2, 2) of the table in each of S ``strata``.

    A stratum may lack groups. ``middle`` (S,) holds the mean score of each stratum if the strata are bins of the score.
    """

    strata: tuple[str, ...] = ()
    by_stratum: Array = field(default_factory=lambda: np.zeros((0, 0, 2, 2), dtype=np.int64))
    middle: Array | None = None

    @classmethod
    def of_strata(cls, by_stratum: Array, groups: tuple[str, ...], strata: tuple[str, ...]) -> StratifiedCounts:
        """Create counts from tables stratum x group x label x predicted label, (S, G, 2, 2)."""
        return cls(by_stratum.sum(axis=0), groups, np.array([0.0, 1.0]), strata, by_stratum)

    def regrouped(self, members: Sequence[Sequence[int]], groups: tuple[str, ...]) -> Self:
        """Return the counts of new groups, in each stratum."""
        tables = np.stack([self.by_stratum[:, list(own)].sum(axis=1) for own in members], axis=1)
        return replace(super().regrouped(members, groups), by_stratum=tables)


def near_zero(data: Predictions | Counts) -> tuple[Predictions | Counts, float]:
    """Shift scores that are all far from 0 close to 0, so that differences keep all digits. Return data and shift.

    One of the scores is subtracted; this is exact for all scores near it.
    """
    low, high = float(data.score.min()), float(data.score.max())
    if min(abs(low), abs(high)) <= FAR * (high - low) or low <= 0 <= high:
        return data, 0.0
    return replace(data, score=data.score.astype(np.float64) - low), low


def decided(score: Array, threshold: float) -> Array:
    """Return the decision 1[score >= threshold], int64.

    Scores of lower precision are compared in their precision: 0.7 in single precision reaches a threshold of 0.7.
    """
    return (score >= in_precision(threshold, score.dtype)).astype(np.int64)


def in_precision(number: Array | float, dtype: np.dtype) -> Array:
    """Round one or several numbers to the precision of a column of this type; integers are compared as doubles."""
    with np.errstate(over="ignore"):
        return np.asarray(number, dtype=dtype if dtype.kind == "f" else np.float64)


def tabulated(shape: tuple[int, ...], *codes: Array) -> Array:
    """Count the rows with each combination of codes (n,): an integer array of this ``shape``."""
    flat = np.ravel_multi_index(tuple(np.asarray(one, dtype=np.int64) for one in codes), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def _codes(name: str, values: Array) -> Array:
    if values.dtype.kind not in "iu" or (len(values) and values.min() < 0):
        raise InvalidInput(f"expected {name} as integer codes >= 0, found {values.dtype}: code the levels from 0")
    return values


def check_binary(name: str, values: Array) -> None:
    if not np.isin(values, (0, 1)).all():
        odd = values[~np.isin(values, (0, 1))][0]
        raise InvalidInput(f"expected {name} in {{0, 1}}, found {odd}: code the positive class as 1, the other as 0")


def _check_groups(sizes: Array, groups: tuple[str, ...]) -> None:
    if len(groups) < 2:
        raise InvalidInput(f"expected at least two groups to compare, found {list(groups)}", option="group")
    if len(sizes) > len(groups):
        raise InvalidInput(f"expected group codes below {len(groups)}, found {len(sizes) - 1}: name every group")
    if empty := [name for name, size in zip(groups, sizes, strict=True) if size == 0]:
        raise InvalidInput(f"groups {empty} have no rows: leave them out", option="group")
