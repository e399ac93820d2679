"""A sweep's summary is the mean over repetitions of what is alike in everything else, and nothing besides."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pipeline.report.style import paper
from pipeline.report.sweep import chosen, drawn, summary, undominated
from pipeline.workflow.sweep import Figure

FIGURE = Figure(statistic=("T_n",), x="audit.delta", lines="method", columns="dataset")


def rows(**more: list) -> pd.DataFrame:
    """T_n = 10 delta + r in repetition r = 0, 1, 2; with every combination of further columns."""
    names = ["dataset", "method", "delta", "repetition", *more]
    axes: list[list] = [["adult", "compas"], ["baseline", "sensr"], [0.0, 1.0, 2.0], [0, 1, 2], *more.values()]
    frame = pd.DataFrame(list(itertools.product(*axes)), columns=names)
    frame["value"] = 10 * frame["delta"] + frame["repetition"]
    constant = {"statistic": "T_n", "scale": "smoke", "origin": "official", "block": "b", "study": "w"}
    return frame.assign(**constant)


def test_the_summary_is_mean_and_deviation_over_repetitions() -> None:
    table = summary(rows(), FIGURE)
    assert len(table) == 2 * 2 * 3
    assert np.allclose(table["mean"], 10 * table["delta"] + 1)
    assert np.allclose(table["std"], 1)
    assert set(table["n"]) == {3}


def test_values_that_are_not_finite_are_left_out_and_counted() -> None:
    frame = rows()
    frame.loc[(frame["delta"] == 2) & (frame["repetition"] == 0), "value"] = np.inf
    table = summary(frame, FIGURE).set_index("delta")
    assert set(table.loc[2.0, "mean"]) == {21.5}
    assert set(table.loc[2.0, "n"]) == {2}
    assert table["not_finite"].sum() == 4
    with paper():
        assert drawn(frame, FIGURE, "t", "smoke").notes == ("4 of 36 values are not finite and not drawn.",)


def test_rows_that_differ_in_a_column_that_the_figure_does_not_name_are_not_averaged() -> None:
    mixed = rows(attribute=["sex", "race"])
    with pytest.raises(ValueError, match=r"average rows that differ in \['attribute'\]: name them in figure\.lines"):
        summary(mixed, FIGURE)
    kept = Figure(statistic=("T_n",), x="audit.delta", lines="method", columns="dataset", where={"attribute": "sex"})
    assert len(chosen(mixed, kept)) == len(rows())


def test_a_filter_spares_rows_that_it_says_nothing_about() -> None:
    plain = rows().assign(statistic="ks", attribute=None)
    both = pd.concat([rows(attribute=["sex", "race"]), plain], ignore_index=True)
    figure = Figure(
        statistic=("T_n", "ks"), x="audit.delta", lines="method", columns="dataset", where={"attribute": "sex"}
    )
    assert len(chosen(both, figure)) == 2 * len(rows())


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (Figure(("T_m",), "audit.delta"), r"no statistic 'T_m' \(did you mean 'T_n'\?\): they have \['T_n'\]"),
        (Figure(("T_n",), "dleta"), r"no column 'dleta' \(did you mean 'delta'\?\)"),
        (
            Figure(("T_n",), "delta", where={"method": "sensor"}),
            r"no row has method 'sensor' \(did you mean 'sensr'\?\)",
        ),
    ],
)
def test_what_the_rows_do_not_have_is_refused_with_the_nearest(figure: Figure, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        summary(rows(), figure)


def test_panels_lines_and_points_are_those_of_the_rows() -> None:
    with paper():
        picture = drawn(rows(), FIGURE, "a title", "smoke")
    panels = picture.figure.axes
    assert [axes.get_title() for axes in panels] == ["Adult", "COMPAS"]
    for axes in panels:
        lines = {line.get_label(): line for line in axes.get_lines()}
        assert set(lines) == {"Baseline", "SenSR"}
        assert all(np.allclose(line.get_ydata(), [1, 11, 21]) for line in lines.values())


def test_a_logarithmic_axis_keeps_its_zero() -> None:
    figure = Figure(("T_n",), "audit.delta", lines="method", columns="dataset", log=("x",))
    with paper():
        assert drawn(rows(), figure, "t", "smoke").figure.axes[0].get_xscale() == "symlog"
        positive = rows()[lambda frame: frame["delta"] > 0]
        axes = drawn(positive, figure, "t", "smoke").figure.axes[0]
    assert axes.get_xscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2"]


def test_a_statistic_that_the_lines_do_not_tell_apart_is_one_line() -> None:
    plain = rows().query("method == 'sensr'").assign(statistic="ks", method=None)
    both = pd.concat([rows(), plain], ignore_index=True)
    for statistics, lines in ((("T_n", "ks"), [2, 2, 1, 1]), (("ks", "T_n"), [1, 1, 2, 2])):
        figure = Figure(statistics, "audit.delta", lines="method", columns="dataset")
        with paper():
            picture = drawn(both, figure, "t", "smoke").figure
        assert [len(axes.get_lines()) for axes in picture.axes] == lines
        assert [text.get_text() for text in picture.legends[0].get_texts()] == ["Baseline", "SenSR"]


def test_a_trade_off_marks_the_settings_that_no_other_one_beats_in_both() -> None:
    gain, loss = np.array([0.9, 0.8, 0.8, 0.7, np.nan]), np.array([3.0, 1.0, 2.0, 1.5, 0.0])
    assert undominated(gain, loss).tolist() == [True, True, False, False, False]
    assert undominated(np.ones(2), np.ones(2)).tolist() == [True, True]
    accuracy = rows().assign(statistic="accuracy", value=lambda frame: -frame["delta"], block="c")
    both = pd.concat([rows(), accuracy, accuracy.assign(block="d")], ignore_index=True)
    figure = replace(FIGURE, against="accuracy")
    table = summary(both, figure)
    assert set(table["statistic"]) == {"T_n"}
    assert np.allclose(table["accuracy"], -table["delta"])
    # The larger delta, the less accurate and the less fair.
    assert (table["undominated"] == (table["delta"] == 0)).all()
    with paper():
        picture = drawn(both, figure, "t", "smoke")
    (line, *_), rings = picture.figure.axes[0].get_lines()[::2], picture.figure.axes[0].get_lines()[1::2]
    assert np.allclose(line.get_xdata(), [0, -1, -2])
    assert [np.size(ring.get_xdata()) for ring in rings] == [1, 1]
    assert picture.notes == (
        "Ringed: no other setting of the panel has both a larger value across and a smaller size.",
    )


def test_lines_may_have_keys_of_their_own_for_x() -> None:
    frame = rows()
    other = frame["method"] == "sensr"
    frame = frame.assign(bound=frame["delta"].where(other), delta=frame["delta"].where(~other))
    table = summary(frame, replace(FIGURE, along=("method.bound",)))
    assert len(table) == 2 * 2 * 3
    assert np.allclose(table["mean"], 10 * table["delta"] + 1)


def test_powers_of_ten_are_set_as_formulas() -> None:
    tiny = rows().assign(method=lambda frame: frame["method"].map({"baseline": 1e-5, "sensr": 1e-4}))
    with paper():
        legend = drawn(tiny, FIGURE, "t", "smoke").figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["10$^{-5}$", "10$^{-4}$"]
