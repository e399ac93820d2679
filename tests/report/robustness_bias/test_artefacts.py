"""Every artefact of somebody who has nothing but the digits: what can be made is, and the rest says what is missing."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pipeline.report import registry
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import study
from pipeline.report.robustness_bias.heat_maps import shade
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable
from tests.report.studies import build

LISTED = {one.name: one for one in registry.declared("robustness_bias")}
OF_ABSENT_DATA = [f"figure_{n}" for n in range(5, 23)]
SAID = {
    **dict.fromkeys(OF_ABSENT_DATA, r"Not run, because data are missing: .*from https://example\.org/.*"),
    "figure_digits_smoothing": r"No sigma by randomized smoothing for UTK Classifier on Digits, because .*",
}
OF_NO_DATA = ["figure_1", "figure_2", "figure_3"]


@pytest.mark.parametrize("name", LISTED)
def test_every_artefact_is_made_and_a_figure_has_its_data_or_says_so_in_place_of_axes(
    name: str, made_alone: Mapping[str, Any]
) -> None:
    made = made_alone[name]
    assert made.caption == registry.find("robustness_bias", name).caption
    assert isinstance(made, StampedTable) == (LISTED[name].kind == "table")
    if name in SAID:
        (axes,) = made.figure.axes
        assert not axes.axison
        assert re.fullmatch(SAID[name], axes.texts[0].get_text().replace("\n", " "))
    elif isinstance(made, Picture) and name not in OF_NO_DATA:
        shown = [axes for axes in made.figure.axes if axes.axison]
        assert shown
        assert all(axes.has_data() for axes in shown)


def lines(table: StampedTable) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """The rows: labels, and the other cells by their columns' keys."""
    keys = [column.key for column in table.columns if column.kind != "label"]
    return [(table.labels(row), dict(zip(keys, row.cells[-len(keys) :], strict=True))) for row in table.rows]


def test_passes_are_divided_by_the_points_that_were_attacked(made_alone: Mapping[str, Any]) -> None:
    """The exact distance takes one pass of each correctly classified point."""
    for labels, cells in lines(made_alone["table_bounds"]):
        assert 0 < cells["attacked"] < cells["points"]
        if labels[2] == "exact":
            assert cells["forward passes"] == 1


def test_a_group_of_which_nothing_is_known_is_counted_and_has_no_line(inputs: Inputs) -> None:
    table = build("table_sigma", inputs)
    found = [one for one in study.run(study.audited(inputs)) if one.block in (study.LINEAR, study.NETWORKS)]
    groups = {one.dataset: len(one.groups) for one in found}
    counted = [re.match(r"(.+): (\d+) groups have fewer than 20 correctly", note) for note in table.notes]
    assert len(table.rows) + sum(int(match[2]) for match in counted if match) == sum(groups.values())
    for _, cells in lines(table):
        assert any(isinstance(cell, float) and np.isfinite(cell) for cell in cells.values())


def test_a_network_costs_its_passes_times_its_size(made_alone: Mapping[str, Any]) -> None:
    for _, cells in lines(made_alone["table_costs"]):
        assert cells["training"] == pytest.approx(3 * cells["images"] * cells["pass"] / 1e3)
        assert cells["audit"] == pytest.approx(cells["passes"] * cells["pass"] / 1e3)


def test_colours_are_equally_strong_for_half_and_twice_the_distance_and_never_end() -> None:
    """With r = 1 + sigma, the colour of 1 / r is minus that of r, and r = 0 and infinity are its ends."""
    ratio = np.array([0.02, 0.5, 0.9, 1.0])
    assert shade(1 / ratio - 1) == pytest.approx(-shade(ratio - 1))
    assert shade(ratio - 1) == pytest.approx(np.tanh(np.log(ratio) / 2))
    assert shade(np.array([-1.0, 0.0, 1e12])) == pytest.approx([-1, 0, 1])


def test_the_penalty_s_table_has_every_form_of_the_distance_and_one_row_of_a_network_of_two_blocks(
    made_alone: Mapping[str, Any],
) -> None:
    """The logit as coded with alpha 1 is in the grid twice."""
    rows = [(*labels, cells["tau"], cells["alpha"]) for labels, cells in lines(made_alone["table_regularizer"])]
    assert {row[3] for row in rows} >= {"logit, as coded", "logit, second order", "margin", "margin, second order"}
    assert len(set(rows)) == len(rows)
    assert sum(row[2:4] == ("8", "logit, as coded") for row in rows) == 2, "of alpha 1 and 10"
