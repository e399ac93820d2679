"""The true class of each image, as the number of the model's output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.cli.columns import level_text
from pipeline.messages import SHOWN, listed
from pipeline.types import Array

if TYPE_CHECKING:
    import pandas as pd


def true_classes(column: pd.Series, classes: Sequence[str] | None, path: Path) -> Array:
    """Labels (n,) int64 from 0: names among ``classes``, or whole numbers.

    Raises ValueError for missing labels, names without ``classes``, and names that are not among them.
    """
    missing = column.index[column.isna()].tolist()
    if missing:
        raise ValueError(
            f"{path}: the label {column.name!r} is missing in {listed(missing, SHOWN)} (rows counted from 0): fill it "
            "in or remove these rows"
        )
    texts = [level_text(value) for value in column]
    if classes is not None and len(set(classes)) < len(classes):
        raise ValueError(f"--classes names a class more than once: {listed(classes)}")
    if classes is not None and set(texts) <= set(classes):
        number = {name: place for place, name in enumerate(classes)}
        return np.array([number[text] for text in texts], dtype=np.int64)
    if not all(text.isdigit() for text in texts):
        named = set(classes or ())
        odd = sorted({text for text in texts if text not in named and (classes is not None or not text.isdigit())})
        if classes is None:
            raise ValueError(
                f"{path}: the label {column.name!r} holds {listed(odd, SHOWN)}, expected the numbers of the model's "
                "outputs, from 0: give their names in the outputs' order with --classes A,B,C"
            )
        raise ValueError(
            f"{path}: the label {column.name!r} holds {listed(odd, SHOWN)}, which --classes does not name. It names: "
            f"{listed(classes)}"
        )
    return np.array([int(text) for text in texts], dtype=np.int64)


def check_range(label: Array, count: int, classes: Sequence[str] | None, column: str, path: Path) -> None:
    """ValueError unless the labels are outputs of a model of ``count`` classes and ``classes`` names them all."""
    if classes is not None and len(classes) != count:
        raise ValueError(
            f"--classes names {len(classes)} classes, but the model returns scores of {count}: name all, in the order "
            "of the outputs"
        )
    beyond = sorted(set(label[label >= count].tolist()))
    if beyond:
        raise ValueError(
            f"{path}: the label {column!r} holds {listed(beyond, SHOWN)}, out of range: the model has {count} classes, "
            f"so expected 0 to {count - 1}. If classes are numbered from 1, or otherwise, name them with --classes"
        )
