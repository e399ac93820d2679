"""Summary of a prepared data set for the artefacts: sizes, names and moments, but no row of real data."""

import numpy as np

from fairness_audits.values import Array, Dataset, ImageDataset
from pipeline.values import DatasetSummary

DRAWN_POINTS = 5_000
"""Largest simulated data set of two features whose points the summary keeps for figures."""


def summarize(dataset: Dataset | ImageDataset) -> DatasetSummary:
    """Summarise a prepared data set."""
    sizes = {"rows": len(dataset.label), "train_rows": dataset.train.shape[1], "test_rows": dataset.test.shape[1]}
    same = {name: getattr(dataset, name) for name in ("name", "origin", "label_name", "levels", "dropped", "checksums")}
    if isinstance(dataset, ImageDataset):
        return DatasetSummary(
            **same,
            **sizes,
            classes=dataset.classes,
            std=dataset.std,
            unreadable=len(dataset.unreadable),
            groups={name: _group_sizes(dataset, name) for name in dataset.levels},
        )
    x = dataset.features
    groups = {name: [codes == code for code in (0, 1)] for name, codes in dataset.protected.items()}
    # If only one group of an attribute is selected, the other group is empty.
    both = {name: pair for name, pair in groups.items() if all(members.any() for members in pair)}
    return DatasetSummary(
        **same,
        **sizes,
        feature_names=dataset.feature_names,
        continuous=dataset.continuous,
        positives=float(dataset.label.mean()),
        deviations=x.std(axis=0),
        correlations={name: _with_first(x, *pair) for name, pair in both.items()},
        points=_points(dataset),
    )


def _group_sizes(dataset: ImageDataset, name: str) -> Array:
    codes, levels = dataset.partitions[name], len(dataset.levels[name])
    return np.array(
        [np.bincount(codes[rows][codes[rows] >= 0], minlength=levels) for rows in (*dataset.train, *dataset.test)]
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
