"""Plain values: tabular and image data sets, classifiers and transport maps.

Each is a frozen dataclass of arrays. The leading axis of everything that depends on a random split is the
*repetition* axis, of length R: one job trains or audits all R repetitions at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from fairness_audits.errors import InvalidInput

if TYPE_CHECKING:
    pass

Provenance = Literal["official", "bundled", "lossy", "simulated", "twin", "absent"]
Split = Literal["train", "test", "all"]
"""The rows of one side of each repetition's split, or of both, the training rows first."""

Array = np.ndarray
Generators = Sequence[np.random.Generator]
"""One random generator for each repetition."""


@dataclass(frozen=True)
class Batch:
    """One side of every repetition's split, or both, with features standardised by that repetition's training rows.

    Shapes: ``features`` (R, n, d) float64; ``label`` (R, n) int64 in {0, 1}; each ``protected[name]`` (R, n) int64 in
    {0, 1}, or -1 for a row in neither group.
    """

    features: Array
    label: Array
    protected: Mapping[str, Array]


@dataclass(frozen=True)
class Dataset:
    """Prepared tabular data with the splits of all R repetitions.

    ``features`` (n, d) float64 holds encoded but unstandardised columns; the columns named in ``continuous`` are
    standardised by :meth:`batch` with the mean and the standard deviation (ddof 0) of each repetition's own training
    rows. ``label`` (n,) and ``protected[name]`` (n,) are int64 in {0, 1}; ``levels[name]`` names what 0 and 1 mean; a
    protected attribute of more than two values has -1 where a row is in neither group. ``train`` (R, n_train) and
    ``test`` (R, n_test) are row numbers. ``sensitive_inputs`` are the feature columns that are themselves protected
    attributes. ``outcomes`` (n,) float64 are real-valued columns that a regression predicts. ``dropped`` counts the
    rows removed on purpose, by reason; ``checksums`` holds the sha256 of each raw file that was read.
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

    @property
    def repetitions(self) -> int:
        """The number R of random splits."""
        return len(self.train)

    def rows(self, split: Split) -> Array:
        """The row numbers of one side of every split, or of both, (R, n)."""
        sides = {"train": [self.train], "test": [self.test], "all": [self.train, self.test]}[split]
        return np.concatenate(sides, axis=1)

    def with_inputs(self, attributes: Sequence[str]) -> Dataset:
        """The data with those of these protected attributes as further features that are none yet, under their names.

        Raises InvalidInput for one that there is not, and for one whose feature of that name is another number.
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
        """Standardised arrays of one side, or both, of the first ``repetitions`` splits (all of them by default)."""
        count = self.repetitions if repetitions is None else repetitions
        if not 1 <= count <= self.repetitions:
            raise InvalidInput(
                f"data set {self.name!r} was prepared with {self.repetitions} repetitions, but {count} are needed",
                source=self.name,
                option="repetitions",
                remedy="Prepare it with at least as many as any method trains",
            )
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

    ``images`` (n, c, h, w) uint8; a pixel is ``images / maximum``, in [0, 1], the scale in which every distance is
    stated. ``mean`` and ``std``, one number a channel, are what a network subtracts and divides by. ``label`` (n,)
    int64 indexes ``classes``. ``partitions[name]`` (n,) int64 indexes ``levels[name]``, -1 where it is unknown; the
    classes are a partition too, under ``label_name``. ``train`` (1, n_train) and ``test`` (1, n_test) are row numbers.
    ``dropped`` counts what was left out on purpose, by reason; ``unreadable`` names the files that could not be read;
    ``checksums`` holds the sha256 of each raw file.
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

    @property
    def repetitions(self) -> int:
        """The number of splits, one."""
        return len(self.train)

    def pixels(self, rows: Array) -> Array:
        """The images of these rows, (len(rows), c, h, w) float32 in [0, 1]."""
        return self.images[rows].astype(np.float32) / np.float32(self.maximum)


class Checkpoint(Protocol):
    """Keeps what long work needs to go on after it was killed;

    :func:`fairness_audits.seeds.fingerprint` tells whose it is.
    """

    def load(self, fingerprint: Array) -> Mapping[str, Array] | None:
        """What was kept last, None where nothing of this work was."""

    def save(self, fingerprint: Array, state: Mapping[str, Array]) -> None:
        """Keep ``state`` in place of what was kept before."""


@dataclass(frozen=True)
class Classifier:
    """R classifiers of one architecture, one for each repetition.

    ``architecture`` names the module in ``fairness_audits.models`` that evaluates ``parameters``; each parameter array
    has the repetition axis first. ``history`` holds training curves: ``step`` (L,) and one (R, L) array a curve.
    ``facts`` counts what happened in training (failed attacks, ensemble members, ...): one (R,) array each. ``index``
    names what tells the R classifiers apart where they are not random repetitions (a grid of coefficients): one (R,)
    array each. ``reads`` names the protected attributes that a decision needs beside the features: its inputs are those
    of ``dataset.with_inputs(reads)``.
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
        """The classifiers that a method made of ``data``; ``more`` are other fields."""
        return cls(method, data.name, data.origin, architecture, parameters, **more)

    @property
    def repetitions(self) -> int:
        """The number R of classifiers."""
        return len(next(iter(self.parameters.values())))


@dataclass(frozen=True)
class TransportMap:
    """T maps of one kind from the rows of one group to those of another, one for each trial (repetition).

    ``kind`` names the module in ``fairness_audits.transport`` whose ``images`` evaluates ``parameters``, arrays with
    the trial axis first; ``reverse`` are those of the opposite direction, empty where none was fitted. ``history`` and
    ``facts`` as in :class:`Classifier`. The rest says what was mapped: configured name, dataset, protected attribute,
    names of the two groups, the true label that both are restricted to (None: all rows), how many of each group's first
    rows it was fitted on (None: all), and the columns that move.
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
