"""Small data sets and classifiers by hand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fairness_audits.models.logistic_mixture import regressions
from fairness_audits.values import Array, Classifier, Dataset, ImageDataset
from pipeline.workflow.conf import CONF


def shipped(group: str, name: str) -> dict[str, Any]:
    """The settings of a method, or of an audit, as shipped, whatever the data set."""
    section = yaml.safe_load((CONF / group / f"{name}.yaml").read_text(encoding="utf-8"))
    # The kind of a method names its module; that of an audit may name an entry of one, which its settings depend on.
    left_out = ("name", "per_dataset", "settings", *(("kind",) if group == "method" else ()))
    return {key: value for key, value in section.items() if key not in left_out}


def settings(method: str, **changes: Any) -> dict[str, Any]:
    """Those of a method as shipped, with changes."""
    return shipped("method", method) | changes


def dataset(
    features: Array,
    label: Array,
    groups: Mapping[str, Array],
    train: Array | None = None,
    test: Array | None = None,
    **others: Any,
) -> Dataset:
    """A data set "toy" of these features (n, d), labels (n,) and groups (n,), each of levels "0" and "1".

    Without splits all rows are to train on and to test, once. ``others``: further fields of the data set.
    """
    every = np.arange(len(label))[None]
    known: dict[str, Any] = {
        "name": "toy",
        "origin": "simulated",
        "feature_names": tuple(f"x{j}" for j in range(features.shape[1])),
        "continuous": (),
        "label_name": "y",
        "levels": dict.fromkeys(groups, ("0", "1")),
        "train": every if train is None else train,
        "test": every if test is None else test,
    }
    return Dataset(features=features.astype(float), label=label, protected=dict(groups), **known | others)


def image_dataset(
    images: Array, partitions: Mapping[str, Array], levels: Mapping[str, tuple[str, ...]], train: int, **others: Any
) -> ImageDataset:
    """Pictures (n, c, h, w) of 0 to 255, of which the first ``train`` are to train and the others to test.

    The first partition is that of the classes. ``others``: further fields of the data set.
    """
    label_name, channels = others.pop("label_name", next(iter(partitions))), images.shape[1]
    known: dict[str, Any] = {
        "name": "toy",
        "origin": "simulated",
        "mean": (0.5,) * channels,
        "std": (0.5,) * channels,
        "train": np.arange(train)[None],
        "test": np.arange(train, len(images))[None],
    }
    named: dict[str, Any] = {"label": partitions[label_name], "label_name": label_name, "classes": levels[label_name]}
    groups: dict[str, Any] = {"partitions": dict(partitions), "levels": dict(levels)}
    return ImageDataset(images=images.astype(np.uint8), maximum=255.0, **named, **groups, **known | others)


def logistic(*coef: float, intercept: float = 0.0, repetitions: int = 1) -> Classifier:
    """P(y = 1 | x) = sigmoid(coef' x + intercept) in every repetition."""
    parameters = regressions(np.tile(coef, (repetitions, 1)), np.full(repetitions, intercept))
    return Classifier("given", "toy", "simulated", "logistic_mixture", parameters)


def chosen(rows: pd.DataFrame, **where: object) -> pd.DataFrame:
    """The rows in which these columns have these values."""
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def number(rows: pd.DataFrame, **where: object) -> float:
    """The value of the one row in which these columns have these values."""
    (found,) = chosen(rows, **where)["value"]
    return float(found)
