"""A prepared data set as the artefacts see it: sizes, names and moments, and no row of real data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pipeline.types import Array, Dataset, ImageDataset, Origin

DRAWN_POINTS = 5_000
"""Points of a simulated data set of two features, all of which a figure may draw."""


@dataclass(frozen=True)
class Described:
    """A prepared data set without its rows.

    ``train_rows`` and ``test_rows`` are those of a split. ``levels`` name the groups of each attribute, or of each
    partition of images.

    Of tables, with d features, of which the ``continuous`` are standardised: ``positives``, the share of labels that
    are 1; ``deviations`` (d,) of each feature over all rows, and ``train_deviations`` (d,), over the first split's
    training rows, both with divisor n; ``means[attribute]`` (2, d) of both groups; ``correlations[attribute]`` (d,),
    Pearson's, of each feature with being in the group coded 0, over the rows of both groups, NaN for a constant
    feature. ``points`` hold ``features`` (n, 2), ``label`` (n,) and ``group`` (n,) of data that are simulated and have
    two features.

    Of images: ``classes``, ``std`` (one number a channel, what a network divides by) and how many files were
    ``unreadable``.
    """

    name: str
    origin: Origin
    label_name: str
    rows: int
    train_rows: int
    test_rows: int
    levels: Mapping[str, tuple[str, ...]]
    dropped: Mapping[str, int]
    checksums: Mapping[str, str]
    feature_names: tuple[str, ...] = ()
    continuous: tuple[str, ...] = ()
    positives: float = float("nan")
    deviations: Array = field(default_factory=lambda: np.zeros(0))
    train_deviations: Array = field(default_factory=lambda: np.zeros(0))
    means: Mapping[str, Array] = field(default_factory=dict)
    correlations: Mapping[str, Array] = field(default_factory=dict)
    points: Mapping[str, Array] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    std: tuple[float, ...] = ()
    unreadable: int = 0

    def column(self, name: str) -> int:
        """The number of a feature's column."""
        return self.feature_names.index(name)


def described(dataset: Dataset | ImageDataset) -> Described:
    """The description of a prepared data set."""
    sizes = {"rows": len(dataset.label), "train_rows": dataset.train.shape[1], "test_rows": dataset.test.shape[1]}
    same = {name: getattr(dataset, name) for name in ("name", "origin", "label_name", "levels", "dropped", "checksums")}
    if isinstance(dataset, ImageDataset):
        return Described(**same, **sizes, classes=dataset.classes, std=dataset.std, unreadable=len(dataset.unreadable))
    x = dataset.features
    groups = {name: [codes == code for code in (0, 1)] for name, codes in dataset.protected.items()}
    # An attribute that only one group of was asked for has nobody in the other.
    both = {name: pair for name, pair in groups.items() if all(members.any() for members in pair)}
    return Described(
        **same,
        **sizes,
        feature_names=dataset.feature_names,
        continuous=dataset.continuous,
        positives=float(dataset.label.mean()),
        deviations=x.std(axis=0),
        train_deviations=x[dataset.train[0]].std(axis=0),
        means={name: np.stack([x[members].mean(axis=0) for members in pair]) for name, pair in both.items()},
        correlations={name: _with_first(x, *pair) for name, pair in both.items()},
        points=_points(dataset),
    )


def _with_first(x: Array, first: Array, second: Array) -> Array:
    known = first | second
    with np.errstate(invalid="ignore"):
        return np.array([np.corrcoef(column, first[known])[0, 1] for column in x[known].T])


def _points(dataset: Dataset) -> dict[str, Array]:
    if dataset.origin != "simulated" or dataset.features.shape[1] != 2 or len(dataset.label) > DRAWN_POINTS:
        return {}
    (group,) = dataset.protected.values()
    return {"features": dataset.features, "label": dataset.label, "group": group}
