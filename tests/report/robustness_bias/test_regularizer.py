"""The penalty's table: the bias at the threshold that was penalised, and when a penalty may be said to have helped."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.report import words as w
from pipeline.report.artefacts import Artefact
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import regularizer, study
from pipeline.report.robustness_bias.regularizer import HELPED, NOTHING_BESIDE, Penalised, bias, reading, threshold
from pipeline.report.table import Table


@pytest.fixture(scope="module")
def networks(alone: Inputs) -> list[Penalised]:
    return regularizer.penalised(alone)


@pytest.fixture(scope="module")
def table(made_alone: Mapping[str, Artefact]) -> Table:
    made = made_alone["table_regularizer"]
    assert isinstance(made, Table)
    return made


def columns(table: Table, *keys: str) -> list[tuple[Any, ...]]:
    names = [column.key for column in table.columns]
    return [tuple(row.cells[names.index(key)] for key in keys) for row in table.rows]


def test_a_network_of_two_blocks_has_one_row(table: Table) -> None:
    """The logit as coded with alpha 1 is in the grid twice, whether or not its numbers are NaN."""
    rows = [(row.labels, *cells) for row, cells in zip(table.rows, columns(table, "tau", "alpha"), strict=True)]
    assert len(set(rows)) == len(rows)
    assert sum(labels[2:] == ("8", "logit, as coded") for labels, *_ in rows) == 2, "of alpha 1 and 10"


def test_the_bias_at_the_threshold_is_its_definition(table: Table, networks: list[Penalised], alone: Inputs) -> None:
    """RB(P, tau) of (2), counted point by point at the threshold in pixels; that is half of tau where std is .5."""
    one = next(one for one in networks if one.alpha > 0)
    points = study.at_points(alone, one.audited)
    distance = points.distance[w.FMN]
    counts = points.tried[w.FMN] & points.correct & np.isfinite(distance)
    inside = points.codes[one.partition] == points.levels[one.partition].index(one.level)
    shares = [np.mean(distance[counts & side] > one.tau / 2) for side in (inside, ~inside)]
    names = [column.key for column in table.columns]
    row = next(row for row in table.rows if row.labels[2:] == (one.level, one.form) and one.alpha in row.cells)
    cells: dict[str, Any] = dict(zip(names, row.cells, strict=True))
    assert cells["tau in pixels"] == one.tau / 2
    assert cells["n"] == (counts & inside).sum()
    assert cells["penalised bias"] == pytest.approx(abs(shares[0] - shares[1]))
    assert cells["penalised bias"] <= cells["bias"] + 1e-12


def test_the_largest_bias_of_a_side_without_points_is_not_known() -> None:
    assert np.isnan(bias(np.zeros(0), np.ones(3)))
    assert bias(np.array([1.0, 2.0]), np.array([3.0])) == 1


def test_the_threshold_in_pixels(alone: Inputs, networks: list[Penalised]) -> None:
    """tau normalised is tau std in pixels; with channels of different std no one length answers to it."""
    one = networks[0]
    assert threshold(alone, one) == one.tau * 0.5
    method = {**one.audited.method, "scale": "pixels"}
    assert threshold(alone, replace(one, audited=replace(one.audited, method=method))) == one.tau
    images: Any = alone.datasets[one.audited.data]
    colored = replace(images, std=(0.2, 0.3))
    assert np.isnan(threshold(replace(alone, datasets={one.audited.data: colored}), one))


@pytest.mark.parametrize(
    ("change", "fell", "said"),
    [
        (-0.1, 0.0, HELPED),
        (-0.1, -0.3, HELPED),
        (-0.1, 0.02, HELPED),
        (-0.1, 0.03, "|sigma| smaller, accuracy lower"),
        (0.1, -0.3, "|sigma| no smaller"),
        (0.0, 0.0, "|sigma| no smaller"),
        (np.nan, 0.0, NOTHING_BESIDE),
        (-0.1, np.nan, NOTHING_BESIDE),
    ],
)
def test_a_penalty_helped_only_where_accuracy_held(change: float, fell: float, said: str) -> None:
    assert reading(change, fell, error=0.02) == said
