"""The study's artefacts: what they compute, and what they say when something is missing."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import QuadMesh

from fairness_audits.results import style
from pipeline.report.individual_fairness import facts as q
from pipeline.report.individual_fairness.facts import accepted_ranges, boundary, configured, measurements
from pipeline.report.individual_fairness.figures import axis_places, heatmap, rejection_curve
from pipeline.report.inputs import Inputs
from tests.builders import number
from tests.errors import invalid
from tests.report.studies import build, inputs_of


def test_settings_that_leave_several_values_are_refused(inputs: Inputs) -> None:
    with invalid(column="steps"):
        inputs.values(block="audit", dataset="adult", method="sensr", statistic="T_n", metric_split="test")


def test_a_run_that_stops_early_shows_its_last_step_and_says_so() -> None:
    short = inputs_of("individual_fairness", scale="smoke", repetitions=2, steps=(5, 50))
    table = build("table_1", short)
    assert any("50 for Adult (in the paper: 500, which this run did not record)" in note for note in table.notes)
    (note,) = [note for note in build("table_4", short).notes if "Attack steps" in note]
    assert "50 for COMPAS (not stated in the paper" in note
    setting = q.T_N.setting("adult", "sensr", 50)
    assert table.cell("T_n", "SenSR").value == pytest.approx(short.values(**setting).mean())


def test_a_share_of_rejections_keeps_its_second_decimal(inputs: Inputs) -> None:
    assert q.REJECTED.column(inputs).decimals == 2, "92 of 100 splits is not 0.9"


def test_figure_2_has_means_medians_and_the_released_models(inputs: Inputs, published: pd.DataFrame) -> None:
    adult, compas = build("figure_2", inputs).figure.axes
    crosses = {line.get_color(): line.get_xydata() for line in adult.lines if line.get_marker() == "x"}
    listed = published[published["column"].str.contains("released models")]
    drawn = np.sort(np.concatenate([xy[:, 1] for xy in crosses.values()]))
    np.testing.assert_allclose(drawn, np.sort(listed["value"]))
    assert len(crosses) == 4
    assert not any(len(line.get_xdata()) for line in compas.lines if line.get_marker() == "x")
    thin = [line for line in adult.lines if line.get_linewidth() == 0.7]
    rows = inputs.select(block="audit", dataset="adult", method="project", statistic="T_n", metric_split="test")
    medians = rows.groupby("steps")["value"].median()
    assert any(np.allclose(line.get_ydata(), medians) for line in thin)


def test_figure_1_has_one_colour_scale_and_the_published_boundary(inputs: Inputs) -> None:
    figure = build("figure_1", inputs).figure
    panels = [mesh for axes in figure.axes for mesh in axes.collections if isinstance(mesh, QuadMesh)][:9]
    assert len(panels) == 9
    assert len({(mesh.norm.vmin, mesh.norm.vmax) for mesh in panels}) == 1
    marked = [line.get_xdata() for axes in figure.axes for line in axes.lines if line.get_marker() == "D"]
    assert [sorted(x) for x in marked] == [[-1.8, 1.5]] * 3


def test_methods_differ_in_colour_in_marker_and_in_line() -> None:
    styles = list(style.METHODS.values())
    for attribute in ("color", "marker", "line"):
        assert len({str(getattr(s, attribute)) for s in styles}) == len(styles)
    assert style.in_order(["sensr", "zafar", "baseline"]) == ["baseline", "sensr", "zafar"]


@given(st.lists(st.floats(0.5, 20), min_size=1, max_size=12), st.floats(1.001, 19))
def test_the_rejection_curve_is_the_share_of_statistics_above_the_tolerance(values: list[float], delta: float) -> None:
    statistic = np.array(values)
    corners, share = rejection_curve(statistic, 25.0)
    assert share[np.searchsorted(corners, delta, side="right") - 1] == pytest.approx((statistic > delta).mean())
    assert (np.diff(share) <= 0).all()


def test_the_boundary_is_where_a_straight_line_crosses() -> None:
    """T_n = 1 + |theta| / 4 exceeds 1.25 at theta = -1 and 1; where it never does there is no boundary."""
    theta = np.linspace(-4, 4, 21)
    for side in (-1, 1):
        assert boundary(theta, 1 + np.abs(theta) / 4, 1.25, side) == pytest.approx(side)
        assert np.isnan(boundary(theta, np.ones(21), 1.25, side))


def test_places_on_a_logarithmic_axis() -> None:
    """Halfway between two marks lies their geometric mean, and beyond the last one the spacing goes on."""
    places = axis_places(np.array([0.1, 1.0, np.sqrt(10.0), 1000.0]), [1.0, 10.0, 100.0])
    assert places == pytest.approx([-1.0, 0.0, 0.5, 3.0])


def test_an_incomplete_grid_of_classifiers_is_refused() -> None:
    panel = pd.DataFrame({"theta_1": [0.0, 1.0, 0.0], "theta_2": [0.0, 0.0, 1.0], "value": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="expected a full grid of 4 classifiers, found 3"):
        heatmap(panel)


def test_facts_are_the_configuration_and_the_data(inputs: Inputs) -> None:
    facts = measurements(inputs)
    assert number(facts, block="data", dataset="adult", statistic="rows") == 45222
    critical = number(facts, block="audit", dataset="adult", method="baseline", statistic="critical_value")
    assert critical == pytest.approx(1.6449, abs=1e-4)
    assert number(facts, block="heatmaps", method="logistic_grid", statistic="grid_step") == pytest.approx(0.4)
    assert configured(inputs, "audit", "compas", "baseline")["audit.regularization"] == 100


def test_totals_are_counted_over_the_repetitions(inputs: Inputs) -> None:
    table = build("table_counts", inputs)
    assert table.cell("audited points", "Adult", "Baseline") == 100 * 9045
    assert any("3,620 rows excluded" in note for note in table.notes)


def test_the_simulation_of_validity_names_its_classifier_and_its_truth(inputs: Inputs) -> None:
    (note,) = [note for note in build("table_validity", inputs).notes if "not in the paper" in note]
    assert "theta_2 = 1.2" in note
    truths = [inputs.values(block="validity", test=t, statistic="truth").mean() for t in ("loss", "error")]
    assert "loss ratio {:.3f}, error-rate ratio {:.3f}".format(*truths) in note


NUMBERS_IN_THE_TABLES = """
0.817 -0.151 -0.061 3.676 1.0 2.262 1.0   0.825 -0.147 -0.053 1.660 0.9 1.800 0.8
0.800 0.001 -0.027 5.712 1.0 3.275 1.0   0.765 -0.074 -0.048 1.021 0.0 1.081 0.0
"""


def test_tables_1_and_3_print_the_same_numbers(published: pd.DataFrame) -> None:
    printed = sorted(float(text) for text in re.findall(r"-?\d+\.\d+", NUMBERS_IN_THE_TABLES))
    for name in ("table_1", "table_3"):
        assert sorted(published.loc[published["artefact"] == name, "value"]) == printed


@pytest.mark.parametrize(("tilt", "same", "apart"), [(0.0, True, False), (0.5, False, True)])
def test_the_accepted_range_is_the_same_at_every_fair_weight_where_the_metric_is_right(
    tilt: float, same: bool, apart: bool
) -> None:
    """T_n = 1 + (theta_1 + tilt theta_2)^2 / 4 is at most 1.25 where theta_1 is within 1 of -tilt theta_2."""
    grid = np.round(np.arange(-4.0, 4.1, 0.4), 9)
    one, two = (axis.ravel() for axis in np.meshgrid(grid, grid))
    panel = pd.DataFrame({"theta_1": one, "theta_2": two, "value": 1 + (one + tilt * two) ** 2 / 4})
    found = pd.DataFrame(accepted_ranges(panel, {"block": "heatmaps"}, 1.25))
    of = {name: part["value"].to_numpy() for name, part in found.groupby("statistic")}
    assert [(of[end] == 0).all() for end in ("accepted_low", "accepted_high")] == [same, same]
    assert (of["tilt"] >= 0.4).all() == apart
    assert (of["separation"] > 0).all() == same
    assert (of["trend"] > 0.99).all() == same
    assert of["at_zero"] == pytest.approx(1 + (tilt * grid) ** 2 / 4)
