"""A table says the same in CSV, Markdown, LaTeX and HTML."""

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.report import markup
from pipeline.report.numbers import Estimate
from pipeline.report.stamp import Stamp
from pipeline.report.table import DIFFERS, Column, Row, Table

OFFICIAL = Stamp("paper", ("official",))
TABLE = Table(
    title="Results_1 & more.",
    stub=("Dataset", "Method"),
    columns=(
        Column("T_n", "Entropy loss", "spread"),
        Column("rejection prop", "Entropy loss", decimals=1),
        Column("note", show="text"),
    ),
    rows=(
        Row(("Adult", "Baseline"), (Estimate(1 / 3, 0.01, 10), Estimate(0.9, n=10), "a < b | c_d")),
        Row(("Adult", "SenSR"), (Estimate(-1.5, 0.2, 10), Estimate(0.0, n=10), "50 % & $5")),
        Row(("COMPAS", "Baseline"), (None, None, "")),
    ),
    stamp=OFFICIAL,
    caption="A caption.",
    notes=("A note with 2\u03bb\u03b7.",),
)


def test_csv_holds_every_number_at_full_precision_with_its_spread_and_count() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert float(rows[0]["T_n"]) == 1 / 3
    assert (rows[0]["T_n std"], rows[0]["T_n n"]) == ("0.01", "10")
    assert (rows[0]["rejection prop"], rows[0]["rejection prop n"]) == ("0.9", "10")
    assert "rejection prop std" not in rows[0]
    assert rows[1]["Dataset"] == "Adult"
    assert rows[2]["T_n"] == ""
    assert {(row["origin"], row["scale"]) for row in rows} == {("official", "paper")}


def test_a_label_that_repeats_the_one_above_is_printed_once_and_a_new_group_opens() -> None:
    printed = TABLE.printed()
    assert [line.texts[0] for line in printed.lines] == ["Adult", "", "COMPAS"]
    assert [line.opens for line in printed.lines] == [False, False, True]


def test_a_column_can_stand_in_the_csv_alone() -> None:
    hidden = replace(TABLE, columns=(*TABLE.columns[:2], replace(TABLE.columns[2], printed=False)))
    assert "note" in hidden.csv().splitlines()[0]
    assert len(hidden.printed().headings) == len(TABLE.printed().headings) - 1
    assert "a < b" not in hidden.markdown()


def test_a_long_latex_table_runs_over_pages_and_a_wide_one_is_set_smaller() -> None:
    rows = tuple(Row(("Adult", f"method {i}"), (1.0, 1.0, "short")) for i in range(60))
    assert r"\begin{longtable}{llrrl}" in replace(TABLE, rows=rows).latex()
    assert r"\normalsize" in TABLE.latex()
    wide = replace(TABLE, rows=(Row(("Adult", "x" * 35), (1.0, 1.0, "word " * 40)),)).latex()
    assert r"{llrrp{0.36\linewidth}}" in wide
    assert r"\scriptsize\setlength" in wide


def test_every_markdown_row_has_the_same_number_of_cells() -> None:
    lines = [line for line in TABLE.markdown().splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {6}


def test_latex_sets_group_headings_over_their_columns_and_escapes_what_latex_would_read() -> None:
    text = TABLE.latex()
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


def test_statistics_are_formulas_in_latex_and_italic_in_html() -> None:
    assert markup.latex("T\u0303\u2099 > T\u2099") == r"$\tilde{T}_n$ \textgreater{} $T_n$"
    assert markup.html("T\u2099") == "<i>T</i><sub><i>n</i></sub>"
    assert markup.latex("10\u207b\u2074") == "10$^{-4}$"
    assert markup.html("10\u207b\u2074") == "10<sup>\u22124</sup>"


@given(st.text())
def test_no_plain_text_can_open_a_tag(text: str) -> None:
    assert set(re.findall(r"<[^>]*>", markup.html(text))) <= {"<i>", "</i>", "<sub>", "</sub>", "<sup>", "</sup>"}


class Balance(HTMLParser):
    """Counts open elements."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells = 0

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.open.append(tag)
        self.cells += tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_well_formed_and_has_every_cell() -> None:
    parser = Balance()
    parser.feed(TABLE.html())
    assert parser.open == []
    assert parser.cells == 3 + 5 + 3 * 5


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"row \('a',\) has 1 labels and 0 cells, expected 1 and 1"):
        Table("t", ("x",), (Column("y"),), (Row(("a",), ()),), OFFICIAL)


def test_a_cell_is_found_by_its_labels() -> None:
    assert TABLE.cell("T_n", "Adult", "SenSR") == Estimate(-1.5, 0.2, 10)
    with pytest.raises(ValueError, match="has no cell"):
        TABLE.cell("V_n", "Adult", "SenSR")


def test_a_published_number_stands_behind_ours_and_is_marked_where_ours_differs() -> None:
    rows = (Row(("d", "a"), (Estimate(0.25, 0.5, 10),)), Row(("d", "b"), (0.5,)))
    published = {("d: a", "y"): (Estimate(0.2, 0.4), ""), ("d: b", "y"): (Estimate(0.75), DIFFERS)}
    table = Table("t", ("x", "z"), (Column("y", show="spread"),), rows, OFFICIAL, published=published)
    texts = [line.texts[-1] for line in table.printed().lines]
    assert texts == ["0.250 \u00b1 0.500 (0.200 \u00b1 0.400)", "0.500 (0.750)\u2020"]
    assert "In brackets" in table.markdown()
    assert table.csv().splitlines()[1:] == ["d,a,0.25,0.5,10,0.2,official,paper", "d,b,0.5,,,0.75,official,paper"]
    assert "In brackets" not in replace(table, published={}).markdown()
