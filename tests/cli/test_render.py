"""One document, four renderings: what is said in one is said in all, and each keeps its own form."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Drawing

from pipeline.cli.numbers import decimal, factor, fixed, label_text, p_text, plain, plural, short, span
from pipeline.cli.render import WIDTH, csv_texts, json_text, page, paragraph, table_lines, terminal, typeset
from pipeline.cli.result import (
    Caveat,
    Column,
    Facts,
    Figure,
    Result,
    Row,
    Section,
    Table,
    Text,
    Verdict,
)

TABLE = Table(
    (
        Column("Group"),
        Column("Mean distance", "mean"),
        Column("p, unadjusted", where="page"),
        Column("is", kind="text"),
    ),
    (Row(("a<b", "-0.12", "0.3", "nearer"), "of 12 rows"), Row(("b", "does not exist")), Row(("c", "3", "-", ""))),
    notes="why",
)


def no_drawing() -> Drawing:
    raise AssertionError("a figure is drawn when it is saved")


DOCUMENT = Result(
    audit="toy-audit",
    schema=1,
    title="Toy audit",
    subject="m.pt on <rows>.csv",
    verdict=Verdict("rejected", "UNFAIR", "It is not fair.", {"rejected": True}),
    caveats=(Caveat("few_rows", "Only 3 rows & no more."),),
    sections=(
        Section("What was tested", (Facts((("null", "nothing differs"),)), Text("T_n is a bound."))),
        Section("Groups", (TABLE, Figure("curves", "Curves", "Of all groups.", no_drawing, key="figure"))),
        Section("More", (Text("For those with room."),), where="page"),
        Section("Nothing", ()),
    ),
    facts={"results": {"T_n": 1.5}, "data": {"path": "<rows>.csv", "sha256": "00ff", "label": None}},
    tables={"groups": pd.DataFrame({"group": ["a", "b"], "mean": [-0.12, math.nan]})},
)


def test_every_statement_is_in_the_terminal_and_on_the_page() -> None:
    said, shown = terminal(DOCUMENT), page(DOCUMENT, {"curves": b"png"})
    for text in ("Toy audit", "It is not fair.", "What was tested", "nothing differs", "does not exist", "of 12 rows"):
        assert text in said
        assert text in shown
    assert said.startswith("Toy audit of m.pt on <rows>.csv\n\n  UNFAIR. It is not fair.\n")
    assert said.endswith("Keep in mind\n  - Only 3 rows & no more.\n")
    assert "Nothing\n" not in said
    assert ("More" in said, "For those with room." in shown) == (False, True)


def test_the_page_is_whole_by_itself_escapes_what_it_was_given_and_sets_signs() -> None:
    shown = page(DOCUMENT, {"curves": b"png"})
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", shown)
    assert shown.count("data:image/png;base64,cG5n") == 1
    assert "<rows>" not in shown
    assert "&lt;rows&gt;.csv" in shown
    assert "\u22120.12" in shown
    assert "T<sub>n</sub> is a bound." in shown
    assert '<li data-condition="few_rows">Only 3 rows &amp; no more.</li>' in shown
    assert "verdict found" in shown
    assert 'class="verdict"' in page(replace(DOCUMENT, verdict=Verdict("not rejected", "", "")), {"curves": b""})
    assert 'class="verdict open"' in page(replace(DOCUMENT, verdict=Verdict("inconclusive", "", "")), {"curves": b""})


@pytest.mark.parametrize(
    ("text", "shown"), [("a-1", "a-1"), ("-0.1 to -.2", "\u22120.1 to \u2212.2"), ("--drop", "--drop"), ("1-2", "1-2")]
)
def test_a_hyphen_is_no_minus_sign(text: str, shown: str) -> None:
    assert typeset(text) == shown


def test_json_has_the_commands_keys_and_names_the_files_of_the_folder_alone() -> None:
    made = json.loads(json_text(DOCUMENT, in_folder=True))
    assert made["verdict"] == {
        **{"outcome": "rejected", "reason": None},
        **{"rejected": True, "sentence": "It is not fair."},
    }
    assert made["caveats"] == ["Only 3 rows & no more."]
    assert (made["audit"], made["results"], made["versions"].keys()) == (
        "toy-audit", {"T_n": 1.5}, {"pipeline", "python", "numpy"},
    )  # fmt: skip
    assert made["files"] == {
        "result": "audit.json", "page": "toy_audit.html", "groups": "groups.csv",
        "figure": "curves.png", "figure_for_print": "curves.pdf",
    }  # fmt: skip
    assert json.loads(json_text(DOCUMENT, in_folder=False))["files"] is None
    with pytest.raises(ValueError, match="Out of range float"):
        json_text(replace(DOCUMENT, facts={"T_n": math.nan}), in_folder=False)
    assert csv_texts(DOCUMENT) == {"groups": "group,mean\na,-0.12\nb,\n"}


def test_a_table_for_the_terminal_has_columns_as_wide_as_they_need() -> None:
    assert list(table_lines(TABLE)) == [
        "  Group    mean   is",
        "  a<b     -0.12   nearer",
        "      of 12 rows",
        "  b      does not exist",
        "  c           3",
    ]


def test_a_wide_table_cuts_names_before_it_leaves_the_page() -> None:
    wide = Table((Column(""), *[Column("x" * 11)] * 5), (Row(("n" * 40, *["1"] * 5)),))
    assert [len(line) for line in table_lines(wide)] == [WIDTH, WIDTH]
    assert list(table_lines(wide))[1].startswith("  nnnnnnnnnnnnnnnnn.")


@pytest.mark.parametrize(("ends", "shown"), [(False, "a b c d ..."), (True, "a b ... e f")])
def test_what_a_long_table_leaves_out_is_counted_and_in_its_file(ends: bool, shown: str) -> None:
    rows = tuple(Row((name,), group="sex") for name in "abcdef")
    header, group, *lines = table_lines(Table((Column("Level"),), rows, leading=4, ends=ends, file="t.csv"))
    assert (header, group) == ("    Level", "  sex")
    assert " ".join(line.split()[0] for line in lines) == shown
    assert f"    ... 2 more{' between them' if ends else ''}, in t.csv" in lines


def test_lines_keep_the_width_and_tear_no_hyphenated_name() -> None:
    text = paragraph(" ".join(["marital-status"] * 40), "  - ", "    ")
    assert max(map(len, text.splitlines())) <= WIDTH
    assert all(row.startswith(("  - marital-status ", "    marital-status")) for row in text.splitlines())
    assert text.count("marital-status") == 40


@pytest.mark.parametrize(
    ("say", "value", "text"),
    [
        (decimal, 0.12345, "0.1235"),
        (decimal, 123.456, "123.5"),
        (decimal, 0.00001, "1.0e-05"),
        (factor, 1.2344, "1.234"),
        (factor, 12345.6, "12,345.6"),
        (factor, 1234567.0, "1.23e+06"),
        (factor, None, "undefined"),
        (fixed(2, "+"), -0.001, "+0.00"),
        (fixed(0), 1234.4, "1,234"),
        (p_text, None, "-"),
        (p_text, 0.0, "0"),
        (p_text, 1e-17, "< 1e-16"),
        (p_text, 0.0123, "0.012"),
        (p_text, 0.00001, "1.0e-05"),
        (span, (0.1, 0.2), "0.1000 to 0.2000"),
        (span, (None, 0.2), "at most 0.2000"),
        (span, (0.1, None), "at least 0.1000"),
        (span, (None, None), "no interval"),
        (lambda count: plural(count, "test"), 1, "1 test"),
        (lambda count: plural(count, "test"), 1200, "1,200 tests"),
        (lambda name: short(name, 4), "abcde", "abc."),
        (lambda name: short(name, 4), "abcd", "abcd"),
        *((plain, value, None) for value in (None, math.nan, math.inf, -math.inf)),
        (plain, {"a": np.array([1.5, np.nan]), "b": (np.int64(2), np.True_)}, {"a": [1.5, None], "b": [2, True]}),
        (lambda name: label_text(name, 4), "ab$de", "ab\\$\u2026"),
        (plain, 0.1, 0.1),
    ],
)
def test_numbers_are_said_in_one_way(say: Callable[[object], object], value: object, text: object) -> None:
    assert say(value) == text
