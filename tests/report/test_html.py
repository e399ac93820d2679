"""The page is whole, loads nothing, and says where it comes from."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipeline.report import html, provenance
from pipeline.report.artefacts import compared
from pipeline.report.claims import NOT_CONFIRMED, Decision, Found, lines
from pipeline.report.index import describe
from pipeline.report.inputs import Inputs
from pipeline.report.registry import label

VOID = {"meta", "img", "br", "col", "link", "input", "hr"}
PNG = b"\x89PNG not really"


@pytest.fixture(scope="module")
def study(inputs: Inputs, published: pd.DataFrame, build: Callable) -> dict[str, Any]:
    """The index of three artefacts, through JSON as between the stages."""
    made = {name: build(name, inputs) for name in ("table_1", "table_counts", "figure_3")}
    return json.loads(json.dumps(describe(inputs, made, compared(inputs, published)), allow_nan=False))


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    benchmarks = [("audit", "s\th:m:s\tmax_rss\tcpu_time\n61.5\t0:01:01\t300\t60\n")] * 2
    return {
        "commit": "0123abc",
        "versions": {"numpy": "2"},
        "machine": {"processor": "a & b"},
        "seeds": "by name",
        "times": provenance.rule_times(benchmarks),
    }


class Page(HTMLParser):
    """Collects what a page opens, loads and links to; raises where an element is closed that is not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.resources: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("img", "script", "link", "iframe", "source", "video") and (given.get("src") or given.get("href")):
            self.resources.append(str(given.get("src") or given.get("href")))
        if tag == "a":
            self.links.append(str(given["href"]))
        if "id" in given:
            self.ids.append(str(given["id"]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_well_formed_and_loads_nothing(study: dict[str, Any], facts: dict[str, Any]) -> None:
    text = html.page([study], {("individual_fairness", "figure_3"): PNG}, facts)
    page = Page(text)
    assert page.open == []
    assert page.resources
    assert all(resource.startswith("data:image/png;base64,") for resource in page.resources)
    assert "@import" not in text
    assert "url(" not in text
    assert not any(link.startswith("http") for link in page.links)


def test_every_link_within_the_page_has_its_target_and_no_target_is_there_twice(
    study: dict[str, Any], facts: dict[str, Any]
) -> None:
    page = Page(html.page([study], {("individual_fairness", "figure_3"): PNG}, facts))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_the_page_shows_every_published_number_and_where_the_data_come_from(
    study: dict[str, Any], facts: dict[str, Any], published: pd.DataFrame
) -> None:
    text = html.page([study], {("individual_fairness", "figure_3"): PNG}, facts)
    assert text.count("<tr data-verdict=") == len(study["comparison"]) >= len(published)
    shown = Page(text).text
    checksums = [checksum for dataset in study["datasets"] for checksum in dataset["checksums"].values()]
    for words in ("0123abc", "a & b", "2 min 03 s", *checksums, study["digest"], "occupation unknown: 2,809"):
        assert words in shown, words


def test_a_twin_stands_on_top_of_the_page(
    inputs_of: Callable[..., Inputs], published: pd.DataFrame, build: Callable, facts: dict[str, Any]
) -> None:
    twin = inputs_of(scale="smoke", origin="twin", repetitions=2)
    index = describe(twin, {"table_1": build("table_1", twin)}, compared(twin, published))
    text = html.page([index], {}, facts)
    findings = text[text.index('<section id="findings">') : text.index('<section id="individual_fairness">')]
    assert "Synthetic twin of Adult and COMPAS: no number from it is evidence." in findings
    assert index["counts"]["results"]["verdicts"]["no difference shown"] == 0


def test_the_page_of_no_study_is_a_page(facts: dict[str, Any]) -> None:
    assert Page(html.page([], {}, {**facts, "times": []})).open == []


def test_a_missing_picture_is_an_error(study: dict[str, Any], facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the picture of individual_fairness/figure_3 is missing"):
        html.page([study], {}, facts)


def test_of_what_is_not_drawn_the_page_has_one_line_and_no_picture(
    study: dict[str, Any], facts: dict[str, Any]
) -> None:
    why = "Not run: the laptop scale leaves it out."
    absent = [{**one, "absent": why if one["kind"] == "figure" else ""} for one in study["artefacts"]]
    page = Page(html.page([{**study, "artefacts": absent}], {("individual_fairness", "figure_3"): PNG}, facts))
    assert page.resources == []
    assert page.text.count(why) == 1


def test_the_summary_says_what_was_made_and_how_much_agrees(study: dict[str, Any]) -> None:
    text = html.summary([study], "results/report.html")
    assert "2 tables, 1 figures" in text
    assert "official data" in text
    counts = study["counts"]["results"]
    found = counts["verdicts"]
    compared = found["agrees"] + found["no difference shown"] + found["differs"]
    assert f"{counts['numbers']} numbers in {counts['lines']} places" in text
    assert f"{found['no difference shown']} of {compared} show no difference" in text
    assert f"{found['differs']} differ" in text
    assert "tests with 10 repetitions of ours" in text
    assert text.endswith("results/report.html")


def test_every_line_is_tallied_and_every_number_once(study: dict[str, Any], published: pd.DataFrame) -> None:
    """Table 3 prints the numbers of Table 1 again, and the text eight shares of Tables 1 and 4."""
    results, constants = study["counts"]["results"], study["counts"]["constants"]
    assert results["lines"] + constants["lines"] == len(published)
    for counted in study["counts"].values():
        assert sum(counted["verdicts"].values()) == counted["numbers"] <= counted["lines"]
    assert results["lines"] - results["numbers"] == 28 + 8 + 1, "and one reading of Figure 1"


def test_artefacts_are_numbered_as_published_and_those_beyond_by_their_order() -> None:
    names = ["table_1", "table_steps", "table_4", "figure_1", "figure_1_diagonal", "table_angles", "comparison"]
    assert [label(name, names) for name in names] == [
        "Table 1", "Table S1", "Table 4", "Figure 1", "Figure S1", "Table S2", "Comparison",
    ]  # fmt: skip


def test_times_are_summed_by_rule(facts: dict[str, Any]) -> None:
    (time,) = facts["times"]
    assert (time.rule, time.jobs, time.wall, time.processor, time.memory) == ("audit", 2, 123.0, 120.0, 300.0)
    assert [provenance.duration(s) for s in (3.21, 61, 7320)] == ["3.2 s", "1 min 01 s", "2 h 02 min"]


def test_the_digest_depends_on_values_not_on_their_order() -> None:
    assert (
        provenance.digest({"a": 1, "b": 2})
        == provenance.digest({"b": 2, "a": 1})
        != provenance.digest({"a": 1, "b": 3})
    )


def test_the_machine_is_read_off_its_description() -> None:
    assert provenance.machine("vendor\t: x\nmodel name\t: A CPU 3000\n")["processor"] == "A CPU 3000"


def test_the_page_opens_with_each_claim_its_outcome_and_its_numbers(
    inputs: Inputs, published: pd.DataFrame, build: Callable, facts: dict[str, Any]
) -> None:
    parts = (Found("q of one", 1.25, 1.0, 1.5, 10, True), Found("q of two", 2.5, 2.0, 3.0, 10, False, decimals=1))
    told = lines([Decision("A finding.", "Section 4", "table_1", NOT_CONFIRMED, parts)])
    index = describe(inputs, {"table_1": build("table_1", inputs)}, compared(inputs, published), told)
    page = Page(html.page([index], {}, facts))
    first = page.text[: page.text.index("Published numbers and ours", page.text.index("A finding."))]
    for words in ("not confirmed", "A finding.", "q of two: 2.5 [2.0, 3.0] (does not hold)", "q of one: 1.250"):
        assert words in first
    assert "#individual_fairness-table_1" in page.links
    assert "not confirmed:     A finding." in html.summary([index], "report.html")


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_shows_the_page_without_a_horizontal_scroll_bar(
    study: dict[str, Any], facts: dict[str, Any], width: int, tmp_path: Path
) -> None:
    """At the width of a laptop, and at the least that a headless window has."""
    text = html.page([study], {("individual_fairness", "figure_3"): PNG}, facts)
    measure = "document.title = document.documentElement.scrollWidth + ' of ' + innerWidth"
    (tmp_path / "page.html").write_text(text.replace("</body>", f"<script>{measure}</script></body>"), encoding="utf-8")
    command = [str(CHROMIUM), *QUIET, f"--user-data-dir={tmp_path}/profile", f"--window-size={width},900", "--dump-dom"]
    shown = subprocess.run(
        [*command, f"file://{tmp_path}/page.html"], capture_output=True, text=True, check=True
    ).stdout
    needed, given = map(int, re.findall(r"<title>(\d+) of (\d+)</title>", shown)[0])
    assert 0 < needed <= given
