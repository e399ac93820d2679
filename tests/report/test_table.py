"""A table says the same in CSV, Markdown, LaTeX and HTML."""

import re
from collections.abc import Callable
from csv import DictReader
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from fairness_audits.files import save_figure
from fairness_audits.results import markup
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import interval, number, p_value, parameter, spread
from fairness_audits.results.markup import symbols
from fairness_audits.results.style import new_figure, paper
from fairness_audits.results.table import Column, Row
from fairness_audits.results.typeset import csv, html, latex, markdown
from pipeline.report.reduction import Reduction
from pipeline.report.stamp import Picture, Stamp
from pipeline.report.table import DIFFERS, StampedTable, labels
from tests.report.studies import build, inputs_of, usual

OFFICIAL = Stamp("paper", ("official",))
TABLE = StampedTable(
    title="Results_1 & more.",
    columns=(
        *labels("Dataset", "Method"),
        Column("T_n", "spread", group="Entropy loss"),
        Column("rejection prop", group="Entropy loss", decimals=1),
        Column("note", "text"),
    ),
    rows=(
        Row(("Adult", "Baseline", Estimate(1 / 3, 0.01, 10), Estimate(0.9, n=10), "a < b | c_d")),
        Row(("Adult", "SenSR", Estimate(-1.5, 0.2, 10), Estimate(0.0, n=10), "50 % & $5")),
        Row(("COMPAS", "Baseline", None, None, "")),
    ),
    stamp=OFFICIAL,
    caption="A caption.",
    notes=("A note with 2\u03bb\u03b7.",),
)


def test_csv_holds_every_number_at_full_precision_with_its_spread_and_count() -> None:
    rows = list(DictReader(StringIO(csv(TABLE.recorded()))))
    assert float(rows[0]["T_n"]) == 1 / 3
    assert (rows[0]["T_n std"], rows[0]["T_n n"]) == ("0.01", "10")
    assert (rows[0]["rejection prop"], rows[0]["rejection prop n"]) == ("0.9", "10")
    assert "rejection prop std" not in rows[0]
    assert rows[1]["Dataset"] == "Adult"
    assert rows[2]["T_n"] == ""
    assert {(row["origin"], row["scale"]) for row in rows} == {("official", "paper")}
    cells: tuple[Any, ...] = ("A", np.int64(3), np.float64(0.1))
    numbers = replace(TABLE, columns=(*labels("Data"), Column("n"), Column("x")), rows=(Row(cells),))
    assert csv(numbers.printed()).splitlines() == ["Data,n,x", "A,3,0.1"]


def test_a_label_that_repeats_is_printed_once_a_new_group_opens_and_a_column_can_stand_in_the_csv_alone() -> None:
    head, rule, *lines = [line.split(" | ") for line in markdown(TABLE.printed()).splitlines() if line.startswith("|")]
    assert [line[0] for line in lines] == ["| Adult", "| ", "| COMPAS"]
    assert latex(TABLE.printed()).count("\\addlinespace\nCOMPAS") == latex(TABLE.printed()).count("addlinespace") == 1
    assert html(TABLE.printed()).count('<tr class="opens"><th class="label" scope="row">COMPAS') == 1
    hidden = replace(TABLE, columns=(*TABLE.columns[:-1], replace(TABLE.columns[-1], printed=False)))
    assert "note" in csv(hidden.recorded()).splitlines()[0]
    without = [line.split(" | ") for line in markdown(hidden.printed()).splitlines() if line.startswith("|")]
    assert {len(line) for line in without} == {len(head) - 1} == {len(rule) - 1}
    assert "a < b" not in markdown(hidden.printed())


def test_latex_sets_group_headings_over_their_columns_and_escapes_what_latex_would_read() -> None:
    text = latex(TABLE.printed())
    assert r"\multicolumn{2}{c}{Entropy loss}" in text
    assert r"\cmidrule(lr){3-4}" in text
    assert "Results\\_1 \\& more." in text
    assert r"0.333 $\pm$ 0.010 & 0.9 & a \textless{} b \textbar{} c\_d \\" in text
    assert r"50 \% \& \$5 \\" in text
    assert r"2$\lambda\eta$" in text
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    assert all(len(re.findall(r"(?<!\\)&", line)) == 4 for line in body.splitlines() if line.endswith(r"\\"))


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_no_plain_text_can_break_latex(text: str) -> None:
    """After taking the escapes away nothing is left that LaTeX gives a meaning to."""
    escaped = markup.latex(text)
    bare = re.sub(r"\\(text[a-z]+\{\}|[&%$#_{}])|\$(\\tilde\{[A-Z]\}|[A-Z])_n\$", "", escaped)
    assert not set(bare) & set("\\&%$#_{}~^")


def test_statistics_and_powers_are_formulas_in_latex() -> None:
    assert markup.latex("T\u0303\u2099 > T\u2099") == r"$\tilde{T}_n$ \textgreater{} $T_n$"
    assert markup.latex("10\u207b\u2074") == "10$^{-4}$"


def test_markdown_and_html_have_every_cell() -> None:
    lines = [line for line in markdown(TABLE.printed()).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {6}
    assert len(re.findall("<t[dh][ >]", html(TABLE.printed()))) == 3 + 5 + 3 * 5
    assert "a &lt; b | c_d" in html(TABLE.printed())


def test_a_cell_is_found_by_its_labels_and_a_row_that_does_not_fit_is_refused() -> None:
    assert str(TABLE.cell("T_n", "Adult", "SenSR")) == str(Estimate(-1.5, 0.2, 10))
    with pytest.raises(ValueError, match="has no cell"):
        TABLE.cell("V_n", "Adult", "SenSR")
    with pytest.raises(ValueError, match=r"row \('a',\) has 1 cells, expected 2"):
        StampedTable((*labels("x"), Column("y")), (Row(("a",)),), title="t", stamp=OFFICIAL)


def test_a_published_number_stands_behind_ours_and_is_marked_where_ours_differs() -> None:
    rows = (Row(("d", "a", Estimate(0.25, 0.5, 10))), Row(("d", "b", 0.5)))
    published = {("d: a", "y"): (Estimate(0.2, 0.4), ""), ("d: b", "y"): (Estimate(0.75), DIFFERS)}
    table = StampedTable((*labels("x", "z"), Column("y", "spread")), rows, stamp=OFFICIAL, published=published)
    assert [row.cells[-1] for row in table.printed().rows] == [
        "0.250 \u00b1 0.500 (0.200 \u00b1 0.400)",
        "0.500 (0.750)\u2020",
    ]
    assert "In brackets" in markdown(table.printed())
    assert csv(table.recorded()).splitlines()[1:] == [
        "d,a,0.25,0.5,10,0.2,official,paper",
        "d,b,0.5,,,0.75,official,paper",
    ]
    assert "In brackets" not in markdown(replace(table, published={}).printed())


# How numbers are estimated and printed.


def test_mean_and_spread_are_those_of_the_repetitions_with_a_value_and_one_has_no_spread() -> None:
    """Of 1, 2, 6: mean 3, standard deviation sqrt((4 + 1 + 9) / 2)."""
    found = Estimate.mean(np.array([1.0, 2.0, 6.0]))
    assert found.value == 3.0
    assert found.std == pytest.approx(np.sqrt(7.0))
    assert found.n == 3
    assert Estimate.mean(np.array([1.0, np.nan, 3.0])).n == 2
    one = Estimate.mean(np.array([2.0]))
    assert np.isnan(one.std)
    assert spread(one) == "2.000"
    assert interval(one) == "\u2014"


@pytest.mark.parametrize(
    ("say", "value", "text"),
    [
        (number, -0.1514, "\u22120.151"),
        (number, 0.8, "0.800"),
        (number, -0.0004, "0.000"),
        (lambda value: number(value, 0), 45222, "45,222"),
        (number, float("nan"), "\u2014"),
        (number, float("-inf"), "\u2212\u221e"),
        (number, 1.25e9 + 0.5, "1.25 \u00d7 10\u2079"),
        (number, None, "\u2014"),
        (parameter, 1e-4, "10\u207b\u2074"),
        (parameter, 2.5e-5, "2.5 \u00d7 10\u207b\u2075"),
        (parameter, 8000.0, "8,000"),
        (parameter, 0.005, "0.005"),
        (parameter, -4.0, "\u22124"),
        (parameter, 0.0, "0"),
        (p_value, 1e-9, "< 0.001"),
        (p_value, 0.0416, "0.042"),
        (symbols, "T_n, T~_n and delta", "T\u2099, T\u0303\u2099 and \u03b4"),
        (symbols, "beta, audit.delta, metadata", "beta, audit.delta, metadata"),
    ],
)
def test_numbers_and_formulas_are_written_as_people_write_them(say: Callable, value: Any, text: str) -> None:
    assert say(value) == text


def test_a_figure_is_laid_out_once_and_drawn_once_for_each_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, draw = [], Axes.draw

    def watched(axes: Axes, renderer: Any) -> None:
        drawn.append(axes)
        draw(axes, renderer)

    with paper():
        figure = new_figure(2.0)
        axes = figure.subplots(1, 1)
        axes.plot([0, 1], [1, 0])
        picture = Picture(figure, "A line.", OFFICIAL, "A falling line.")
        picture.finish()
        before = axes.get_position().bounds
        monkeypatch.setattr(Axes, "draw", watched)
        saved = save_figure(picture.figure, tmp_path / "line")
    assert len(drawn) == len(saved) == 2
    assert axes.get_position().bounds == before != pytest.approx((0.125, 0.11, 0.775, 0.77))


# What an artefact was made from is printed on it.


ROWS = pd.DataFrame(
    {
        "block": "audit",
        "dataset": ["adult"] * 4,
        "method": ["baseline", "baseline", "sensr", "sensr"],
        "origin": "official",
        "scale": "laptop",
        "repetition": [0, 1, 0, 0],
        "statistic": ["T_n", "T_n", "T_n", "n"],
        "value": [1.0, 1.1, 1.2, 9045],
        "steps": [500.0, 500.0, 1000.0, 500.0],
    }
)


MAPS = ROWS.assign(method="none", transport="wgan")
DRAWN = pd.DataFrame(
    {
        "block": ["levels", "power"], "dataset": "none", "method": "none", "origin": "simulated", "scale": "laptop",
        "repetition": 0, "statistic": "rejection_rate", "value": 0.05, "simulations": [4000.0, 2000.0],
    }
)  # fmt: skip
REDUCED = [
    Reduction("audit", "adult", method, key, 2000, 20000)
    for method in ("sensr", "baseline")
    for key in ("method.iterations", "audit.steps")
]
STAMPS: list[tuple[pd.DataFrame, list[Reduction], str]] = [
    # A method with fewer repetitions than the others of its block and data set is named.
    (ROWS, [], "2 repetitions (SenSR: 1), official data"),
    # What departs is counted by setting.
    (ROWS, REDUCED, "2 repetitions (SenSR: 1), official data, 2 settings differ from the paper"),
    (ROWS, REDUCED[:1], "2 repetitions (SenSR: 1), official data, 1 setting differs from the paper"),
    # Trials of maps are counted, a grid of classifiers is not, nor is what has neither a model nor a map.
    (ROWS.assign(theta_1=0.4), [], "official data"),
    (MAPS, [], "2 repetitions, official data"),
    (MAPS.drop(columns="transport"), [], "official data"),
    # An audit that draws its own samples has none.
    (DRAWN, [], "simulated data"),
    (pd.concat([DRAWN, ROWS]), [], "2 repetitions (SenSR: 1), official data and simulated data"),
]


@pytest.mark.parametrize(("rows", "reduced", "said"), STAMPS)
def test_a_stamp_says_what_the_rows_are(rows: pd.DataFrame, reduced: list[Reduction], said: str) -> None:
    stamp = Stamp.of(rows, reduced)
    (line,) = stamp.lines()
    # A number has its comma without a space behind it.
    assert line == " \u00b7 ".join(("Laptop scale", *said.split(", ")))
    assert stamp.emphatic == bool(reduced)


@pytest.mark.parametrize(
    ("scale", "origin"), [("paper", "official"), ("paper", "simulated"), ("laptop", "official"), ("paper", "twin")]
)
def test_a_twin_is_emphatic_and_named_and_a_scale_at_published_settings_is_not(scale: str, origin: str) -> None:
    stamp = Stamp.of(ROWS.assign(scale=scale, origin=origin))
    named = any("Synthetic twin of Adult, not the official data" in line for line in stamp.lines())
    assert stamp.emphatic is named is (origin == "twin")


def test_the_stamp_is_drawn_in_the_margin_of_a_figure() -> None:
    twin = inputs_of("individual_fairness", scale="smoke", origin="twin", repetitions=2)
    official = usual("individual_fairness")
    for inputs, words in ((twin, "Synthetic twin of Adult and COMPAS"), (official, "Extended scale")):
        figure = build("figure_2", inputs).figure
        (drawn,) = [text for text in figure.texts if "scale" in text.get_text()]
        assert words in drawn.get_text()
        with paper():
            FigureCanvasAgg(figure).draw()
        lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
        assert drawn.get_window_extent().y1 <= lowest, "the stamp lies on the axes"
