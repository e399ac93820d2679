"""The values that flow between stages: dataset, classifier, audit result.

Each is a frozen dataclass of arrays. The leading axis of everything that depends on a random split is the
*repetition* axis, of length R: one job trains or audits all R repetitions at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Origin = Literal["official", "bundled", "jpeg", "simulated", "twin"]
Split = Literal["train", "test"]

Array = np.ndarray


@dataclass(frozen=True)
class Batch:
    """One side (train or test) of every repetition's split, features standardised by that repetition's training rows.

    Shapes: ``features`` (R, n, d) float64; ``label`` (R, n) and each ``protected[name]`` (R, n) int64 in {0, 1}.
    """

    features: Array
    label: Array
    protected: Mapping[str, Array]


@dataclass(frozen=True)
class Dataset:
    """Prepared tabular data with the splits of all R repetitions.

    ``features`` (n, d) float64 holds encoded but unstandardised columns; the columns named in ``continuous`` are
    standardised by :meth:`batch` with the mean and the standard deviation (ddof 0) of each repetition's own training
    rows. ``label`` (n,) and ``protected[name]`` (n,) are int64 in {0, 1}; ``levels[name]`` names what 0 and 1 mean.
    ``train`` (R, n_train) and ``test`` (R, n_test) are row numbers. ``sensitive_inputs`` are the feature columns that
    are themselves protected attributes. ``dropped`` counts the rows removed on purpose, by reason; ``checksums`` holds
    the sha256 of each raw file that was read.
    """

    name: str
    origin: Origin
    features: Array
    feature_names: tuple[str, ...]
    continuous: tuple[str, ...]
    label: Array
    label_name: str
    protected: Mapping[str, Array]
    levels: Mapping[str, tuple[str, str]]
    train: Array
    test: Array
    sensitive_inputs: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)

    @property
    def repetitions(self) -> int:
        """The number R of random splits."""
        return len(self.train)

    def batch(self, split: Split, repetitions: int | None = None) -> Batch:
        """Standardised arrays of one side of the first ``repetitions`` splits (all of them by default)."""
        count = self.repetitions if repetitions is None else repetitions
        if not 1 <= count <= self.repetitions:
            raise ValueError(
                f"dataset {self.name!r} was prepared with {self.repetitions} repetitions, but {count} were asked for: "
                "prepare it with at least as many as any method trains"
            )
        rows = {"train": self.train, "test": self.test}[split][:count]
        features = self.features[rows]
        columns = [self.feature_names.index(name) for name in self.continuous]
        if columns:
            fitted_on = self.features[self.train[:count, :, None], columns]
            scale = fitted_on.std(axis=1, keepdims=True)
            if (scale == 0).any():
                constant = [self.feature_names[columns[c]] for c in np.flatnonzero((scale == 0).any(axis=(0, 1)))]
                raise ValueError(
                    f"columns {constant} of {self.name!r} are constant in a training split: leave them out"
                )
            features[:, :, columns] = (features[:, :, columns] - fitted_on.mean(axis=1, keepdims=True)) / scale
        return Batch(features, self.label[rows], {name: values[rows] for name, values in self.protected.items()})


@dataclass(frozen=True)
class Classifier:
    """R classifiers of one architecture, one for each repetition.

    ``architecture`` names the module in ``pipeline.models`` that evaluates ``parameters``; each parameter array has
    the repetition axis first. ``history`` holds training curves: ``step`` (L,) and one (R, L) array a curve. ``facts``
    counts what happened in training (failed attacks, ensemble members, ...): one (R,) array each. ``index`` names what
    tells the R classifiers apart where they are not random repetitions (a grid of coefficients): one (R,) array each.
    """

    method: str
    dataset: str
    origin: Origin
    architecture: str
    parameters: Mapping[str, Array]
    history: Mapping[str, Array] = field(default_factory=dict)
    facts: Mapping[str, Array] = field(default_factory=dict)
    index: Mapping[str, Array] = field(default_factory=dict)

    @property
    def repetitions(self) -> int:
        """The number R of classifiers."""
        return len(next(iter(self.parameters.values())))


@dataclass(frozen=True)
class AuditResult:
    """What an audit measured of one method's classifiers on one dataset.

    ``rows`` is tidy: columns ``repetition``, ``statistic``, ``value`` and one column for each setting the audit ran
    over (``steps``, ``regularization``, ...). ``arrays`` keeps what a figure needs beyond that, by name.
    """

    audit: str
    dataset: str
    method: str
    origin: Origin
    rows: pd.DataFrame
    arrays: Mapping[str, Array] = field(default_factory=dict)
