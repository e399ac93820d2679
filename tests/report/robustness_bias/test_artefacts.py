"""Every artefact of somebody who has nothing but the digits: what can be made is, and the rest says what is missing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from pipeline.audits.robustness_bias import examples as robustness_examples
from pipeline.audits.robustness_bias.measures import Partition, counted
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import curves, example_figures, regularizer, study
from pipeline.report.robustness_bias.curves import Group
from pipeline.report.robustness_bias.heat_maps import color_end
from pipeline.report.robustness_bias.regularizer import HELPED, NOTHING_BESIDE, bias, reading, threshold
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.stamp import Picture
from pipeline.report.table import Table

LISTED = {one.name: one for one in registry.declared("robustness_bias")}
OF_ABSENT_DATA = ["figure_5", *(f"figure_{n}" for n in range(6, 23))]
OF_NO_DATA = ["figure_1", "figure_2", "figure_3"]


@pytest.mark.parametrize("name", LISTED)
def test_every_artefact_is_made_and_a_figure_has_its_data_or_says_so_in_place_of_axes(
    name: str, made_alone: Mapping[str, Any]
) -> None:
    made = made_alone[name]
    assert made.caption == LISTED[name].caption
    assert isinstance(made, Table) == (LISTED[name].kind == "table")
    if name in OF_ABSENT_DATA:
        (axes,) = made.figure.axes
        assert not axes.axison
        assert axes.texts[0].get_text().startswith("Not run: data. ")
        assert "from https://example.org/" in axes.texts[0].get_text()
    elif isinstance(made, Picture) and name not in OF_NO_DATA:
        shown = [axes for axes in made.figure.axes if axes.axison]
        assert shown
        assert all(axes.has_data() for axes in shown)


def lines(table: Table) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """The rows: labels, and cells by their columns' keys."""
    keys = [column.key for column in table.columns]
    return [(row.labels, dict(zip(keys, row.cells, strict=True))) for row in table.rows]


def test_passes_are_divided_by_the_points_that_were_attacked(made_alone: Mapping[str, Any]) -> None:
    """The inputs spend 40 passes on every point of the sample: divided by the correctly classified ones it is more."""
    for _, cells in lines(made_alone["table_bounds"]):
        assert 0 < cells["attacked"] < cells["points"]
        assert cells["forward passes"] == pytest.approx(40 * cells["points"] / cells["attacked"])


def test_a_network_costs_its_passes_times_its_size(made_alone: Mapping[str, Any]) -> None:
    """The inputs train on 1,000 images of 10^8 multiply-adds each."""
    for _, cells in lines(made_alone["table_costs"]):
        assert cells["training"] == pytest.approx(3 * cells["epochs"] * 1000 * 1e8 / 1e12)
        assert cells["audit"] == pytest.approx(cells["passes"] * 1e8 / 1e12)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        *((name, ("dataset.", "method.")) for name in ("table_2", "table_costs", "figure_training")),
        ("table_partitions", ("dataset.",)),
    ],
)
def test_what_no_audit_has_a_part_in_is_not_stamped_with_one(
    name: str, parts: tuple[str, ...], made_alone: Mapping[str, Any]
) -> None:
    stamp = made_alone[name].stamp
    assert all(reduction.key.startswith(parts) for reduction in stamp.reductions)
    assert not any("audited point" in line for line in stamp.lines())


# What is drawn is what was counted: steps at the lengths, colours that end where sigma does, groups told apart.


def group_of(distance: np.ndarray) -> Group:
    codes = np.arange(len(distance)) % 2
    return Group(counted(distance, np.ones(len(distance), bool), w.CORRECT), Partition("p", ("a", "b"), codes))


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 5), min_size=2, max_size=40), st.floats(0, 0.99))
def test_a_drawn_curve_is_the_step_function_at_every_budget(distance: list[float], place: float) -> None:
    """Between two corners the line keeps the value of the left one, which is I_P there."""
    one = group_of(np.array(distance))
    tau = curves.budgets([one])
    drawn = Figure().subplots()
    curves.draw_levels(drawn, one, tau)
    at = place * tau[-1]
    for level, line in enumerate(drawn.lines):
        assert line.get_drawstyle() == "steps-post"
        x, y = (np.asarray(values, float) for values in line.get_data())
        assert y[np.searchsorted(x, at, side="right") - 1] == one.curves(level, np.array([at]))[0][0]


def test_many_lengths_are_drawn_on_a_grid_and_a_panel_without_a_distance_says_so() -> None:
    one = group_of(np.random.default_rng(0).uniform(0.1, 1, 5000))
    assert len(curves.budgets([one])) == curves.GRID
    drawn = Figure().subplots(1, 3)
    nothing, half = group_of(np.full(4, np.nan)), group_of(np.array([np.nan, 1.0, np.nan, 2.0]))
    assert curves.empty(drawn[0], nothing)
    assert curves.empty(drawn[1], half, level=0)
    assert not curves.empty(drawn[2], half, level=1)
    assert [[text.get_text() for text in axes.texts] for axes in drawn] == [
        ["no distance found"],
        ["no distance found in the group"],
        [],
    ]


@pytest.mark.parametrize(
    ("sigma", "end"), [([-1.0, 0.2, 11.7, np.nan], 1.0), ([-0.4, 0.4], 0.4), ([0.0, 0.0], 1.0), ([np.nan], 1.0)]
)
def test_colours_end_no_further_than_sigma_can_fall(sigma: list[float], end: float) -> None:
    """One group that is many times as robust must not make the worst one pale."""
    assert color_end(np.array(sigma)) == pytest.approx(end)


def test_ten_groups_have_ten_colours_fifty_are_distinct_and_the_example_states_its_rule() -> None:
    styles = [w.line_style(place) for place in range(50)]
    assert len({color for color, _ in styles[:10]}) == 10
    assert len(set(styles)) == 50
    assert example_figures.ENOUGH == robustness_examples.ENOUGH


# The penalty's table: the bias at the threshold that was penalised, and when a penalty may be said to have helped.


@pytest.fixture(scope="module")
def networks(alone: Inputs) -> list[Audited]:
    return regularizer.penalised(alone)


def test_the_penalty_s_table_has_every_form_of_the_distance_and_one_row_of_a_network_of_two_blocks(
    made_alone: Mapping[str, Any],
) -> None:
    """The logit as coded with alpha 1 is in the grid twice, whether or not its numbers are NaN."""
    rows = [(*labels, cells["tau"], cells["alpha"]) for labels, cells in lines(made_alone["table_regularizer"])]
    assert {row[3] for row in rows} >= {"logit, as coded", "logit, second order", "margin", "margin, second order"}
    assert len(set(rows)) == len(rows)
    assert sum(row[2:4] == ("8", "logit, as coded") for row in rows) == 2, "of alpha 1 and 10"


def test_the_bias_at_the_threshold_is_its_definition(
    made_alone: Mapping[str, Any], networks: list[Audited], alone: Inputs
) -> None:
    """RB(P, tau) of (2), counted point by point at the threshold in pixels; that is half of tau where std is .5."""
    one = next(one for one in networks if one.alpha > 0)
    points, (name, level) = study.at_points(alone, one), one.penalised
    distance, partition = points.distance[w.FMN], points.partitions[name]
    counts = points.tried[w.FMN] & points.correct & np.isfinite(distance)
    inside = partition.codes == partition.levels.index(level)
    shares = [np.mean(distance[counts & side] > one.tau / 2) for side in (inside, ~inside)]
    every = lines(made_alone["table_regularizer"])
    cells = next(of for labels, of in every if labels[2:] == (level, one.form) and of["alpha"] == one.alpha)
    assert cells["tau in pixels"] == one.tau / 2
    assert cells["n"] == (counts & inside).sum()
    assert cells["penalised bias"] == pytest.approx(abs(shares[0] - shares[1]))
    assert cells["penalised bias"] <= cells["bias"] + 1e-12


def test_the_largest_bias_of_a_side_without_points_is_not_known() -> None:
    assert np.isnan(bias(np.zeros(0), np.ones(3)))
    assert bias(np.array([1.0, 2.0]), np.array([3.0])) == 1


def test_the_threshold_in_pixels(alone: Inputs, networks: list[Audited]) -> None:
    """tau normalised is tau std in pixels; with channels of different std no one length answers to it."""
    one = networks[0]
    assert threshold(alone, one) == one.tau * 0.5
    assert threshold(alone, replace(one, method={**one.method, "scale": "pixels"})) == one.tau
    colored = replace(alone.datasets[one.data], std=(0.2, 0.3))
    assert np.isnan(threshold(replace(alone, datasets={one.data: colored}), one))


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
