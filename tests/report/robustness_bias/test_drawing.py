"""What is drawn is what was counted: steps at the lengths, colours that end where sigma does, groups told apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from pipeline.audits.robustness_bias import examples as robustness_examples
from pipeline.audits.robustness_bias.lengths import counted
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.report import words as w
from pipeline.report.robustness_bias import curves, example_figures
from pipeline.report.robustness_bias.curves import Group
from pipeline.report.robustness_bias.heat_maps import color_end


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
    curves.line(drawn, tau, one.curve(0, tau))
    (line,) = drawn.lines
    assert line.get_drawstyle() == "steps-post"
    at = place * tau[-1]
    x, y = (np.asarray(values, float) for values in line.get_data())
    assert y[np.searchsorted(x, at, side="right") - 1] == one.curve(0, np.array([at]))[0]


def test_many_lengths_are_drawn_on_a_grid() -> None:
    one = group_of(np.random.default_rng(0).uniform(0.1, 1, 5000))
    assert len(curves.budgets([one])) == curves.GRID


def test_a_panel_without_a_distance_says_so() -> None:
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
    ("sigma", "end"),
    [
        ([-1.0, 0.2, 11.7, np.nan], 1.0),
        ([-0.4, 0.4], 0.4),
        ([0.0, 0.0], 1.0),
        ([np.nan], 1.0),
    ],
)
def test_colours_end_no_further_than_sigma_can_fall(sigma: list[float], end: float) -> None:
    """One group that is many times as robust must not make the worst one pale."""
    assert color_end(np.array(sigma)) == pytest.approx(end)


def test_ten_groups_have_ten_colours_and_fifty_are_distinct() -> None:
    styles = [w.line_style(place) for place in range(50)]
    assert len({color for color, _ in styles[:10]}) == 10
    assert len(set(styles)) == 50


def test_the_example_figure_states_the_rule_that_chose_it() -> None:
    assert example_figures.ENOUGH == robustness_examples.ENOUGH
