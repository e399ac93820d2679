"""What the figures compute before they draw, and that they can be drawn."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from pipeline.report import style
from pipeline.report.fliptest import bars, which_map
from pipeline.report.fliptest.bars import Group
from pipeline.report.fliptest.flipset_figures import boundary, hiring
from pipeline.report.fliptest.methods import largest
from pipeline.report.fliptest.trials import FirstTrial, Line
from pipeline.report.inputs import Inputs


def trial(features: np.ndarray, score: np.ndarray, threshold: float) -> FirstTrial:
    """A trial of which only features, scores and decisions matter."""
    decision = (score > threshold).astype(int)
    names = np.array([f"x{j}" for j in range(features.shape[1])])
    both = {"decision": decision, "decision_image": decision, "score": score, "score_image": score}
    return FirstTrial({"feature_names": names, "features": features, "images": features, **both})


def line(feature: str, value: float, p: float = 0.01) -> Line:
    """A line whose interval does not cover 0."""
    low, high = sorted((0.9 * value, 1.1 * value))
    return Line(feature, value, low, high, 1, p, 0.05, np.array([value]))


@pytest.mark.parametrize("as_probability", [False, True])
def test_the_boundary_of_a_linear_rule_is_found_from_its_scores(as_probability: bool) -> None:
    """v.x > c for v = (1.5, -0.5) and c = .3, up to the gap between the scores on both sides."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4000, 2))
    score = features @ [1.5, -0.5] - 0.3
    shown = 1 / (1 + np.exp(-score)) if as_probability else score
    weights, level = boundary(trial(features, shown, 0.5 if as_probability else 0.0))
    assert weights == pytest.approx([1.5, -0.5])
    assert level == pytest.approx(0.3, abs=0.01)


def test_a_curved_score_has_no_straight_boundary() -> None:
    features = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match="departs from a plane"):
        boundary(trial(features, features[:, 0] ** 2, 0.5))
    with pytest.raises(ValueError, match="everyone is decided alike"):
        boundary(trial(features, features @ [1.0, 1.0], 1e9))


def test_the_boundary_of_the_given_rule_is_the_given_one(inputs: Inputs) -> None:
    first = hiring(inputs).first
    weights, level = boundary(first)
    given = {"work_experience": 1.4028, "hair_length": 1.1688}
    assert dict(zip(first.names, weights, strict=True)) == pytest.approx(given)
    assert level == pytest.approx(0.8684, abs=0.05)


def test_a_few_far_values_do_not_stretch_the_axis_and_an_interval_that_dwarfs_the_bars_is_an_arrow() -> None:
    group = np.concatenate([np.linspace(0, 1, 999), [500.0]])
    assert bars.limits([group, np.array([0.2, 0.9])]) == pytest.approx((0.0, 1.0), abs=0.01)
    axes = Figure().subplots()
    bars.draw(axes, [replace(line("age", 0.5), low=-30.0, high=31.0)], "mean_shift", "#0072B2", "")
    assert max(abs(end) for end in axes.get_xlim()) < 1
    assert [mark.get_marker() for mark in axes.lines if mark.get_marker() in ("<", ">")] == ["<", ">"]


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_short_lists_lose_nobody(values: list[int]) -> None:
    low, high = bars.limits([np.array(values, float), np.zeros(0)])
    assert (low, high) == (min(values), max(values))


def test_bars_of_a_marginal_hold_everyone_in_both_axes() -> None:
    """Counts of the group at the left, of the flipset at the right; every value of a count has its own bin."""
    values = np.repeat([0.0, 1.0, 2.0], [50, 30, 20])[:, None]
    groups = [Group("all", values, "#000000"), Group("some", values[60:], "#ff0000", "positive")]
    axes = Figure().subplots()
    right = bars.draw_marginal(axes, groups, 0, own_axis=True)
    assert right is not None
    assert axes.patches[0].get_data().values.tolist() == [50, 30, 20]  # type: ignore[attr-defined]
    assert right.patches[0].get_data().values.tolist() == [0, 20, 20]  # type: ignore[attr-defined]
    assert bars.draw_marginal(Figure().subplots(), groups, 0, own_axis=False) is None


def test_stability_by_hand() -> None:
    """Two draws of two features: variances with n - 1, and means."""
    rows = pd.DataFrame(
        {"repetition": [0, 0, 1, 1], "feature": ["1", "2"] * 2, "point": "zeros", "value": [1.0, 0.0, 3.0, 0.5]}
    )
    image = which_map.images(rows, "zeros")
    assert which_map.variances(image) == pytest.approx([2.0, 0.125])
    assert which_map.means(image) == pytest.approx([2.0, 0.25])
    with pytest.raises(ValueError, match="expected the rows of one map"):
        which_map.images(pd.concat([rows, rows]), "zeros")


def test_the_features_that_stand_out_come_first_then_those_of_all_people_then_the_noise_by_size() -> None:
    noise = replace(line("noise", 9.0), low=-1.0)
    reports = [[line("age", 0.2), noise, line("all", 3.0, p=0.5)], [line("age", -0.9), line("hours", 0.5)], []]
    assert largest(reports, 4) == ["age", "hours", "all", "noise"]
    assert largest(reports, 1) == ["age"]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "stands out"),
        ({"low": -0.1}, "noise"),
        ({"value": -0.5, "low": -0.6, "high": 0.0, "p": 0.5}, "noise"),
        ({"p": 0.06}, "as the whole group"),
    ],
)
def test_a_line_has_one_standing(changes: dict[str, Any], word: str) -> None:
    assert replace(line("age", 0.5), **changes).standing == word


def test_noise_and_what_all_people_share_look_different_and_both_unlike_what_stands_out() -> None:
    """Hatched and grey in italics; pale; full: and the legend has those looks that are drawn."""
    drawn = [line("own", 1.0), line("all", 0.8, p=0.5), replace(line("noise", 0.5), low=-0.1)]
    axes = Figure().subplots()
    bars.draw(axes, drawn, "mean_shift", "#0072B2", "")
    own, shared, noise = axes.patches
    assert (own.get_hatch(), shared.get_hatch(), noise.get_hatch()) == (None, None, "/////")
    colors: Any = {one: one.get_facecolor() for one in (own, shared)}
    assert own.get_facecolor()[:3] == shared.get_facecolor()[:3]
    assert colors[own][3] > 2 * colors[shared][3]
    assert noise.get_facecolor()[:3] == (1, 1, 1)
    assert [label.get_fontstyle() for label in axes.get_yticklabels()] == ["normal", "normal", "italic"]
    assert [label.get_color() for label in axes.get_yticklabels()] == [style.INK, style.INK, style.FAINT]
    legend = [handle.get_label() for handle in bars.handles(drawn)]
    assert legend == [
        "interval over people", "stands out from the group", "as the whole group shifts", "noise: interval covers 0",
    ]  # fmt: skip
    assert len(bars.handles(drawn[:1])) == 2
    several = [replace(drawn[0], trials=np.array([0.9, 1.1]))]
    assert [handle.get_label() for handle in bars.handles(several)][:2] == [
        "interval over maps and people", "single trials",
    ]  # fmt: skip


def test_the_words_for_a_figure_are_the_means_of_its_groups(made: dict[str, Any], inputs: Inputs) -> None:
    first = replace(hiring(inputs), block="ssl", dataset="ssl").first
    values = first.features[:, first.column("narcotic_arrests")]
    expected = f"narcotic arrests: all {values.mean():.2f}, F+ {values[first.members('positive')].mean():.2f}"
    assert expected.replace("-", "\u2212") in made["figure_8"].alternative
