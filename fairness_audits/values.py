"""Plain values: tabular and image data sets, classifiers and transport maps.

Each is a frozen dataclass of arrays. The leading axis of everything that depends on a random split is the
*repetition* axis, of length R: one job trains or audits all R repetitions at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from fairness_audits.errors import InvalidInput

Provenance = Literal["official", "bundled", "re-encoded", "simulated", "twin", "absent"]
Split = Literal["train", "test", "all"]
"""One side of each repetition's split, or both sides with the training rows first."""

Array = np.ndarray
Generators = Sequence[np.random.Generator]
"""One random generator per repetition."""


@dataclass(frozen=True)
class Batch:
    """One side of every repetition's split, or both, with features standardised by that repetition's training rows."""

    features: Array
    label: Array
    protected: Mapping[str, Array]


@dataclass(frozen=True)
class Dataset:
    """Prepared tabular data with the splits of all R repetitions.

    ``features`` (n, d) float64 holds encoded but unstandardised columns. :meth:`batch` standardises the columns in
    ``continuous`` with the mean and standard deviation (ddof 0) of each repetition's own training rows. ``label`` (n,)
    and ``protected[name]`` (n,) are int64 in {0, 1}; ``levels[name]`` names the meanings of 0 and 1. A protected
    attribute with more than two values is -1 for rows in neither group. ``train`` (R, n_train) and ``test`` (R, n_test)
    are row numbers. ``sensitive_inputs`` lists the feature columns that are themselves protected attributes.
    ``outcomes`` (n,) float64 holds real-valued columns that a regression predicts. ``dropped`` counts the rows removed
    on purpose, by reason; ``checksums`` holds the sha256 of each raw file that was read. ``first_repetition`` is the
    number of the first repetition, from which all random streams of the splits and of their models follow.
    """

    name: str
    origin: Provenance
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
    outcomes: Mapping[str, Array] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)
    first_repetition: int = 0

    @property
    def repetitions(self) -> int:
        """The number R of random splits."""
        return len(self.train)

    def rows(self, split: Split) -> Array:
        """Return the row numbers of one side of every split, or of both, (R, n)."""
        sides = {"train": [self.train], "test": [self.test], "all": [self.train, self.test]}[split]
        return np.concatenate(sides, axis=1)

    def with_inputs(self, attributes: Sequence[str]) -> Dataset:
        """Return the data with these protected attributes as features of the same names; existing ones are kept.

        Raises InvalidInput for an unknown attribute, and for a feature of the same name with other values.
        """
        if unknown := [name for name in attributes if name not in self.protected]:
            problem = f"expected protected attributes of {self.name!r}, found {unknown}"
            raise InvalidInput(problem, source=self.name, option="attributes", column=unknown[0])
        for name in set(attributes) & set(self.feature_names):
            own = self.features[:, self.feature_names.index(name)]
            if name in self.continuous or (own != self.protected[name]).any():
                problem = f"feature {name!r} of {self.name!r} is not the protected attribute"
                raise InvalidInput(problem, source=self.name, column=name, remedy="Rename the feature")
        if not (added := tuple(name for name in attributes if name not in self.feature_names)):
            return self
        return replace(
            self,
            features=np.column_stack([self.features, *(self.protected[name] for name in added)]),
            feature_names=(*self.feature_names, *added),
            sensitive_inputs=(*self.sensitive_inputs, *added),
        )

    def batch(self, split: Split, repetitions: int | None = None) -> Batch:
        """Return standardised arrays of one side, or both, of the first ``repetitions`` splits (default: all)."""
        count = self.repetitions if repetitions is None else repetitions
        if not 1 <= count <= self.repetitions:
            problem = f"data set {self.name!r} was prepared with {self.repetitions} repetitions, but {count} are needed"
            remedy = "Prepare it with at least as many as any method trains"
            raise InvalidInput(problem, source=self.name, option="repetitions", remedy=remedy)
        rows = self.rows(split)[:count]
        features = self.features[rows]
        columns = [self.feature_names.index(name) for name in self.continuous]
        if columns:
            fitted_on = self.features[self.train[:count, :, None], columns]
            scale = fitted_on.std(axis=1, keepdims=True)
            if (scale == 0).any():
                constant = [self.feature_names[columns[c]] for c in np.flatnonzero((scale == 0).any(axis=(0, 1)))]
                problem = f"columns {constant} of {self.name!r} are constant in a training split"
                raise InvalidInput(problem, source=self.name, column=constant[0], remedy="Leave them out")
            features[:, :, columns] = (features[:, :, columns] - fitted_on.mean(axis=1, keepdims=True)) / scale
        return Batch(features, self.label[rows], {name: values[rows] for name, values in self.protected.items()})


@dataclass(frozen=True)
class ImageDataset:
    """Prepared images with one split.

    ``images`` (n, c, h, w) is uint8; a pixel is ``images / maximum``, in [0, 1], and every distance uses this scale. A
    network subtracts ``mean`` and divides by ``std``, one number per channel. ``label`` (n,) int64 indexes ``classes``.
    ``partitions[name]`` (n,) int64 indexes ``levels[name]``, -1 if unknown; the classes are also a partition, under
    ``label_name``. ``train`` (1, n_train) and ``test`` (1, n_test) are row numbers. ``dropped`` counts the images left
    out on purpose, by reason; ``unreadable`` names the files that could not be read; ``checksums`` holds the sha256 of
    each raw file. ``first_repetition`` is as in :class:`Dataset`.
    """

    name: str
    origin: Provenance
    images: Array
    maximum: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    label: Array
    label_name: str
    classes: tuple[str, ...]
    partitions: Mapping[str, Array]
    levels: Mapping[str, tuple[str, ...]]
    train: Array
    test: Array
    dropped: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    checksums: Mapping[str, str] = field(default_factory=dict)
    first_repetition: int = 0

    @property
    def repetitions(self) -> int:
        """The number of splits, one."""
        return len(self.train)

    def pixels(self, rows: Array) -> Array:
        """Return the images of these rows, (len(rows), c, h, w) float32 in [0, 1]."""
        return self.images[rows].astype(np.float32) / np.float32(self.maximum)


class Checkpoint(Protocol):
    """Storage for the state of long work, so that it can resume after it was killed.

    :func:`fairness_audits.seeds.fingerprint` identifies the work.
    """

    def load(self, fingerprint: Array) -> Mapping[str, Array] | None:
        """Return the last saved state, None if there is none for this work."""

    def save(self, fingerprint: Array, state: Mapping[str, Array]) -> None:
        """Save ``state``, replacing the previous state."""


@dataclass(frozen=True)
class Classifier:
    """R classifiers of one architecture, one for each repetition.

    ``architecture`` names the module in ``fairness_audits.models`` that evaluates ``parameters``; each parameter array
    has the repetition axis first. ``history`` holds training curves: ``step`` (L,) and one (R, L) array per curve.
    ``facts`` counts events in training (failed attacks, ensemble members, ...): one (R,) array each. ``index`` names
    what distinguishes the R classifiers if they are not random repetitions (such as a grid of coefficients): one (R,)
    array each. ``reads`` names the protected attributes that a decision needs in addition to the features: the inputs
    are then those of ``dataset.with_inputs(reads)``.
    """

    method: str
    dataset: str
    origin: Provenance
    architecture: str
    parameters: Mapping[str, Array]
    history: Mapping[str, Array] = field(default_factory=dict)
    facts: Mapping[str, Array] = field(default_factory=dict)
    index: Mapping[str, Array] = field(default_factory=dict)
    reads: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, method: str, data: Dataset | ImageDataset, architecture: str, parameters: Mapping[str, Array], **more: Any
    ) -> Classifier:
        """Return the classifiers that a method trained on ``data``; ``more`` holds further fields."""
        return cls(method, data.name, data.origin, architecture, parameters, **more)

    @property
    def repetitions(self) -> int:
        """The number R of classifiers."""
        return len(next(iter(self.parameters.values())))


@dataclass(frozen=True)
class TransportMap:
    """T maps of one kind from the rows of one group to the rows of another, one per trial (repetition).

    ``kind`` names the module in ``fairness_audits.transport`` whose ``images`` evaluates ``parameters``, arrays with
    the trial axis first. ``reverse`` holds the parameters of the opposite direction, empty if it was not fitted.
    ``history`` and ``facts`` are as in :class:`Classifier`. The other fields describe the mapped data: configured name,
    dataset, protected attribute, names of the two groups, the true label that both are restricted to (None: all rows),
    the number of first rows per group used for fitting (None: all), and the columns that move.
    """

    kind: str
    parameters: Mapping[str, Array]
    reverse: Mapping[str, Array] = field(default_factory=dict)
    history: Mapping[str, Array] = field(default_factory=dict)
    facts: Mapping[str, Array] = field(default_factory=dict)
    transport: str = ""
    dataset: str = ""
    origin: Provenance = "simulated"
    attribute: str = ""
    source: str = ""
    target: str = ""
    given_label: int | None = None
    points: int | None = None
    features: tuple[str, ...] = ()

    @property
    def trials(self) -> int:
        """The number T of maps."""
        return len(next(iter(self.parameters.values())))
