"""Facts: tidy rows of numbers that no audit writes, that is configured values, sizes of data and derived numbers.

The counterpart of a published number is therefore found by the same kind of setting as a measured statistic. Numbers
that depend on no data have the ``origin`` ``configuration``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd

from pipeline.report.inputs import Inputs
from pipeline.report.reduction import flat, values
from pipeline.values import DatasetSummary

Fact = Mapping[str, Any]
DATA = "data"
"""Block of the facts about data sets."""


def with_facts(
    inputs: Inputs,
    facts: Iterable[Fact],
    derived: Sequence[pd.DataFrame] = (),
    rows: pd.DataFrame | None = None,
    columns: Sequence[str] = (),
) -> pd.DataFrame:
    """Stack ``rows`` (by default of all audits), the facts including those of the data sets, and ``derived``.

    The result has ``columns`` even if no fact uses them.
    """
    frame = pd.DataFrame([*facts, *data_facts(inputs)]).drop_duplicates()
    absent = [name for name in (*columns, "repetition") if name not in frame]
    frame = frame.assign(study=inputs.study, scale=inputs.scale, **dict.fromkeys(absent))
    frame["repetition"] = pd.to_numeric(frame["repetition"]).fillna(0).astype(int)
    return pd.concat([inputs.rows if rows is None else rows, frame, *derived], ignore_index=True)


def data_facts(inputs: Inputs) -> Iterator[Fact]:
    """Yield the sizes and shares of every data set, and the sizes of groups of images."""
    for dataset in inputs.datasets.values():
        place = {"block": DATA, "dataset": dataset.name, "origin": dataset.origin}
        for statistic, value in _sizes(dataset).items():
            yield {**place, "statistic": statistic, "value": float(value)}
        for partition, sizes in dataset.groups.items():
            for side, counts in zip(("train", "test"), sizes, strict=True):
                for level, count in zip(dataset.levels[partition], counts, strict=True):
                    own = {"partition": partition, "level": level, "statistic": f"group_{side}_images"}
                    yield {**place, **own, "value": float(count)}


def _sizes(dataset: DatasetSummary) -> dict[str, float]:
    if dataset.classes:
        sizes = {"images": dataset.rows, "train_images": dataset.train_rows, "test_images": dataset.test_rows}
        return {**sizes, "classes": len(dataset.classes)}
    return {
        "rows": dataset.rows,
        "features": len(dataset.feature_names),
        "train_rows": dataset.train_rows,
        "test_rows": dataset.test_rows,
        "positives_percent": 100 * dataset.positives,
    }


def configured_facts(
    points: Iterable[Mapping[str, Any]],
    columns: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda point: {},
    implied: Callable[[Mapping[str, Any]], Mapping[str, float]] = lambda values: {},
) -> Iterator[Fact]:
    """Yield one row per configured number of each point, as the counterpart of a published number.

    ``columns`` maps a point to additional columns of its rows. ``implied`` maps its values to numbers that follow.
    """
    for point in points:
        place = {
            "block": point["block"],
            "dataset": point["dataset"]["name"],
            "method": point["method"]["name"],
            "origin": "configuration",
            **columns(point),
        }
        for name, value in chain(_numbers(point), implied(dict(flat(point))).items()):
            yield {**place, "statistic": name, "value": value}


def _numbers(point: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield pairs such as ``("transport.steps", 20001.0)``. List items have their index in the name."""
    for key, value in values(point):
        listed = isinstance(value, (list, tuple))
        for name, item in [(f"{key}[{i}]", item) for i, item in enumerate(value)] if listed else [(key, value)]:
            if isinstance(item, (int, float)) and not isinstance(item, bool):
                yield name, float(item)
