"""The stages between audits and page: collect, artefacts, report."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from fairness_audits.results import markup
from fairness_audits.results.estimate import Estimate
from pipeline import io, software
from pipeline.jobs import Run
from pipeline.report import environment, html, registry
from pipeline.report.artefacts import compared, together
from pipeline.report.claims import OUTCOMES, Decision, Found, Region, beside_reference, lines
from pipeline.report.inputs import Inputs, points
from pipeline.report.pictures import few_colours
from pipeline.report.registry import label
from pipeline.report.table import IN_BRACKETS
from pipeline.stages import collect, draw, draw_reference
from pipeline.values import AuditResult
from tests.errors import invalid
from tests.report.studies import build, inputs_of

CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_TESTABLE = OUTCOMES


def audit(**columns: object) -> AuditResult:
    rows = pd.DataFrame({"repetition": [0, 1], "statistic": "T_n", "value": [1.0, 2.0], **columns})
    return AuditResult("loss_ratio", "adult", "sensr", "official", rows)


def test_rows_carry_study_block_scale_and_the_settings_of_the_grid() -> None:
    rows = collect.collect(
        [(audit(steps=500.0), "audit", {}), (audit(metric=""), "heatmaps", {"intercept": "zero"})], "s", "smoke"
    )
    assert list(rows.columns[:10]) == list(collect.FIRST)
    assert list(rows["block"]) == ["audit"] * 2 + ["heatmaps"] * 2
    assert set(rows["study"] + rows["scale"] + rows["origin"]) == {"ssmokeofficial"}
    assert list(rows["intercept"].isna()) == [True, True, False, False]
    assert rows["metric"].isna().all(), "text that is unused is missing"
    assert list(rows["steps"].isna()) == [False, False, True, True]


def test_a_column_of_the_audit_holds_the_value_of_each_row() -> None:
    rows = collect.collect([(audit(steps=[5.0, 20.0]), "audit", {"steps": 20, "delta": 1.1})], "s", "smoke")
    assert (rows["steps"].tolist(), rows["delta"].tolist()) == ([5.0, 20.0], [1.1, 1.1])


def test_a_study_without_audits_is_refused() -> None:
    with invalid(option="grid"):
        collect.collect([], "s", "smoke")


def test_collected_rows_survive_their_file(tmp_path: Path) -> None:
    io.save(audit(metric_split=["test", "train"]), tmp_path / "a.npz")
    entry = {"path": str(tmp_path / "a.npz"), "block": "audit", "columns": {}}
    given = {"study": "s", "scale": "smoke", "audits": json.dumps([entry]), "output": str(tmp_path / "rows.parquet")}
    collect.main([word for key, value in given.items() for word in (f"--{key}", value)])
    rows = io.load_rows(tmp_path / "rows.parquet")
    assert list(rows["metric_split"]) == ["test", "train"]
    assert rows["value"].dtype == np.float64


def test_the_points_of_a_study_name_every_value_in_its_files() -> None:
    run = Run(studies=["fliptest"])
    given = run.inputs("fliptest")
    named = {keys for point in points(given["config"]["sections"]) for keys in point["keys"]}
    for kind, stage in (("datasets", "prepare"), ("classifiers", "train"), ("audits", "audit")):
        assert [path for path, _ in given[kind]] == run.files(stage, "fliptest")
        assert {name for _, name in given[kind]} <= named


def test_the_artefacts_of_a_reference_are_drawn_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables in three forms, and the index of the page, which names the reference."""
    study, two = "permutation_tests", ("table_1", "comparison")
    listed = tuple(one for one in registry.declared(study) if one.name in two)
    monkeypatch.setattr(registry, "declared", lambda study: listed)
    given = {"reference": f"data/reference/{study}", "published": f"data/published/{study}.csv"}
    given |= {name: str(tmp_path / name) for name in ("tables", "figures", "index")}
    draw_reference.main([word for key, value in given.items() for word in (f"--{key}", value)])
    expected = {f"{name}.{suffix}" for name in two for suffix in html.FORMATS["table"]}
    assert {path.name for path in (tmp_path / "tables").iterdir()} == expected
    index = json.loads((tmp_path / "index").read_text())
    reference = index["reference"]
    manifest = json.loads(Path(f"data/reference/{study}/manifest.json").read_text())
    assert reference["lines"] == []
    assert index["software"]["computed"] == software.distinct(run["versions"] for run in manifest["runs"])
    assert [run["commit"] for run in reference["runs"]] == [run["commit"] for run in manifest["runs"]]
    assert " and ".join(sorted({run["scale"] for run in reference["runs"]})) == index["scale"]


def test_a_caption_in_snakemakes_report_has_the_title_and_the_stamp(inputs: Inputs) -> None:
    table = build("table_1", inputs)
    assert draw.caption(table).split("\n\n") == [*map(markup.rst, (table.title, table.caption, *table.stamp.lines()))]


# The page is whole, loads nothing, and says where it comes from.


VOID = {"meta", "img", "br", "col", "link", "input", "hr"}
PICTURES = {("individual_fairness", "figure_3"): b"\x89PNG not really"}


@pytest.fixture(scope="module")
def study(inputs: Inputs, published: pd.DataFrame) -> dict[str, Any]:
    """The index of some artefacts, through JSON as between the stages."""
    made = {name: build(name, inputs) for name in ("table_1", "comparison", "table_counts", "figure_3")}
    return json.loads(json.dumps(html.describe(inputs, made, compared(inputs, published)), allow_nan=False))


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    benchmarks = [("audit", "s\th:m:s\tmax_rss\tcpu_time\n61.5\t0:01:01\t300\t60\n")] * 2
    told = {"commit": "0123abc", "versions": {"numpy": "2"}, "machine": {"processor": "a & b"}, "seeds": "by name"}
    return {**told, "times": environment.rule_times(benchmarks)}


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


def test_the_page_is_whole_loads_nothing_and_shows_every_published_number_and_where_data_come_from(
    study: dict[str, Any], facts: dict[str, Any], published: pd.DataFrame
) -> None:
    text = html.page([study], PICTURES, facts)
    page = Page(text)
    assert page.open == []
    assert page.resources
    assert all(resource.startswith("data:image/png;base64,") for resource in page.resources)
    assert "@import" not in text
    assert "url(" not in text
    assert not any(link.startswith("http") for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    *_, last = study["artefacts"]
    assert last["label"] == "Comparison"
    assert last["html"].count("<tr") > len(published)
    shown = page.text
    checksums = [checksum for dataset in study["datasets"] for checksum in dataset["checksums"].values()]
    for words in ("0123abc", "a & b", "2 min 03 s", *checksums, study["digest"], "occupation unknown: 2,809"):
        assert words in shown, words


def test_the_page_prints_the_versions_that_computed_the_results_and_what_differs_now(
    study: dict[str, Any], facts: dict[str, Any]
) -> None:
    old, new = {"Python": "3.11.7", "numpy": "1"}, {"Python": "3.12.3", "numpy": "2"}
    same = {**study, "software": {"computed": [new], "drawn": {**new, "POT": "1"}}}
    mixed = {**study, "study": "other", "software": {"computed": [old, new], "drawn": new}}
    drawn_later = {**study, "study": "drawn_later", "software": {"computed": [old], "drawn": new}}
    assert html.versions([same]) == [("Versions, results of individual fairness", new)]
    assert html.versions([same, mixed, drawn_later]) == [
        ("Versions, results of individual fairness and other", new),
        ("Versions, results of other and drawn later", old),
        ("Versions, tables and figures of drawn later", new),
    ]
    text = Page(html.page([{**study, "software": {"computed": [old], "drawn": new}}], PICTURES, facts)).text
    assert "Python 3.11.7, numpy 1 (now 2)" in text


def hostile(value: Any) -> Any:
    """The same, each text in which people are told something followed by a program."""
    if isinstance(value, dict):
        kept = ("artefact", "html", "kind", "name", "study", "verdicts")
        return {key: one if key in kept else hostile(one) for key, one in value.items()}
    if isinstance(value, list):
        return [hostile(one) for one in value]
    return f'{value}">{PROGRAM}' if isinstance(value, str) else value


PROGRAM = "<script>alert(1)</script>"


def test_what_data_and_studies_say_is_text_on_the_page(study: dict[str, Any], facts: dict[str, Any]) -> None:
    text = html.page([hostile(study)], PICTURES, hostile(facts))
    assert Page(text).text.count(PROGRAM) > 40
    assert PROGRAM not in text


def test_a_twin_stands_on_top_of_the_page(published: pd.DataFrame, facts: dict[str, Any]) -> None:
    twin = inputs_of("individual_fairness", scale="smoke", origin="twin", repetitions=2)
    index = html.describe(twin, {"table_1": build("table_1", twin)}, compared(twin, published))
    text = html.page([index], {}, facts)
    findings = text[text.index('<section id="findings">') : text.index('<section id="individual_fairness">')]
    assert "Synthetic twin of Adult and COMPAS: its numbers are not evidence." in findings
    assert index["results"]["verdicts"]["no difference shown"] == 0


def test_a_missing_picture_is_an_error_but_of_what_is_not_drawn_or_no_study(
    study: dict[str, Any], facts: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="the picture of individual_fairness/figure_3 is missing"):
        html.page([study], {}, facts)
    why = "Not run: left out at the laptop scale."
    absent = [{**one, "absent": why if one["kind"] == "figure" else ""} for one in study["artefacts"]]
    page = Page(html.page([{**study, "artefacts": absent}], PICTURES, facts))
    assert page.resources == []
    assert page.text.count(why) == 1
    assert Page(html.page([], {}, {**facts, "times": []})).open == []


def test_the_summary_says_what_was_made_and_how_much_agrees(study: dict[str, Any]) -> None:
    text = " ".join(html.summary([study], "results/report.html").split())
    assert "3 tables, 1 figure " in text
    assert "official data" in text
    counts = study["results"]
    found = counts["verdicts"]
    compared = sum(found[name] for name in ("agrees", "consistent", "no difference shown", "differs"))
    assert f"{counts['numbers']} numbers in {counts['lines']} places" in text
    assert f"{compared} compared: {found['agrees']} agree" in text
    assert f"{found['differs']} differ" in text
    assert text.endswith("results/report.html")


def test_every_line_is_tallied_and_every_number_once(study: dict[str, Any], published: pd.DataFrame) -> None:
    """Table 3 prints the numbers of Table 1 again, and the text eight shares of Tables 1 and 4."""
    counted = study["results"]
    assert counted["lines"] == (published["kind"] != "constant").sum()
    assert sum(counted["verdicts"].values()) == counted["numbers"]
    assert counted["lines"] - counted["numbers"] == 28 + 8 + 1, "and one reading of Figure 1"


def test_artefacts_are_numbered_as_published_and_those_beyond_by_their_order() -> None:
    names = ["table_1", "table_steps", "table_4", "figure_1", "figure_tolerance", "table_angles", "comparison"]
    assert [label(name, names) for name in names] == [
        "Table 1", "Table S1", "Table 4", "Figure 1", "Figure S1", "Table S2", "Comparison",
    ]  # fmt: skip


def test_times_are_summed_by_rule_digests_know_no_order_and_the_machine_is_read_off_its_description(
    facts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (time,) = facts["times"]
    assert (time.rule, time.jobs, time.wall, time.processor, time.memory) == ("audit", 2, 123.0, 120.0, 300.0)
    assert [environment.duration(s) for s in (3.21, 61, 7320)] == ["3.2 s", "1 min 01 s", "2 h 02 min"]
    one, same, other = map(environment.digest, ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}))
    assert one == same != other
    (tmp_path / "cpuinfo").write_text("vendor\t: x\nmodel name\t: A CPU 3000\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.machine(tmp_path / "cpuinfo")["processor"] == "A CPU 3000"
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho A GPU\necho Another\n")
    (tmp_path / "nvidia-smi").chmod(0o700)
    assert environment.machine(tmp_path / "cpuinfo")["processor"] == "A CPU 3000 and A GPU"


def test_the_machine_of_a_run_is_read_from_a_file_that_describes_all_of_it(tmp_path: Path) -> None:
    file, whole = tmp_path / "environment.json", {"commit": "c", "machine": {"processor": "p"}, "versions": {}}
    file.write_text(json.dumps(whole))
    assert environment.described(str(file)) == whole
    assert environment.described().keys() == whole.keys()
    for wrong in ("", "[]", "{}", json.dumps({**whole, "machine": {}}), json.dumps({**whole, "machine": None})):
        file.write_text(wrong)
        with invalid(option="environment"):
            environment.described(str(file))
    with invalid(option="environment"):
        environment.described(str(tmp_path / "nothing.json"))


def committed(folder: Path) -> str:
    """Commit all that ``folder`` holds to a repository of its own; the commit."""
    for words in ("init -q", "add .", "-c user.name=A -c user.email=a@b commit -qm one"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return head.stdout.strip()


@pytest.mark.parametrize(
    ("path", "told"), [("data/reference/rows", ""), ("code.py", " with uncommitted changes"), ("results/rows", "")]
)
def test_files_that_differ_from_the_commit_are_told_of_but_not_references(path: str, told: str, tmp_path: Path) -> None:
    for name in ("data/reference/rows", "code.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as committed")
    head = committed(tmp_path)
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text("changed")
    assert environment.commit(tmp_path) == f"{head}{told}"
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "new.yaml").touch()
    assert environment.commit(tmp_path) == f"{head} with uncommitted changes"


def test_a_repository_around_the_project_says_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis.tex").touch()
    head = committed(tmp_path)
    unpacked = tmp_path / "project"
    unpacked.mkdir()
    (unpacked / "code.py").touch()
    assert environment.commit(unpacked) == "unknown"
    # Neither does one that the environment names, as in a hook, nor the one that the process works in.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    monkeypatch.chdir(tmp_path)
    assert environment.commit(unpacked) == "unknown"
    assert environment.commit(tmp_path) == head, "it is another folder"
    monkeypatch.delenv("GIT_DIR")
    own = committed(unpacked)
    assert environment.commit(unpacked) == own != head
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert environment.commit(unpacked) == own


def test_the_page_opens_with_each_claim_its_outcome_and_its_numbers(
    inputs: Inputs, published: pd.DataFrame, facts: dict[str, Any]
) -> None:
    parts = (Found("q of one", 1.25, 1.0, 1.5, 10, True), Found("q of two", 2.5, 2.0, 3.0, 10, False, decimals=1))
    told = lines([Decision("A finding.", "Section 4", "table_1", NOT_CONFIRMED, parts=parts)])
    index = html.describe(inputs, {"table_1": build("table_1", inputs)}, compared(inputs, published), told)
    page = Page(html.page([index], {}, facts))
    first = page.text[: page.text.index("Table 1.", page.text.index("A finding."))]
    for words in ("not confirmed", "A finding.", "q of two: 2.5 [2.0, 3.0], n = 10 (contradicted)", "q of one: 1.250"):
        assert words in first
    assert "#individual_fairness-table_1" in page.links
    assert "not confirmed:     A finding." in html.summary([index], "report.html")


@pytest.mark.parametrize(
    ("run", "reference", "expected"),
    [
        (CONFIRMED, CONFIRMED, "consistent"),
        (UNDECIDED, CONFIRMED, "too small to tell"),
        (NOT_CONFIRMED, CONFIRMED, "contradicts it"),
        (NOT_TESTABLE, CONFIRMED, "not tested here"),
        (CONFIRMED, UNDECIDED, "confirmed"),
    ],
)
def test_a_run_stands_beside_the_verdict_of_the_reference(
    study: dict[str, Any], facts: dict[str, Any], run: str, reference: str, expected: str
) -> None:
    listed = pd.DataFrame({"claim": ["A finding."], "outcome": [reference]})
    told = lines([Decision(says, "Section 4", "table_1", run) for says in ("A finding.", "A new one.")])
    first, new = beside_reference(told, listed)
    assert (first["reference"], first["standing"], new["standing"]) == (reference, expected, "")
    index = {**study, "claims": [first]}
    assert f"This run: {expected}." in Page(html.page([index], PICTURES, facts)).text
    assert f"(this run: {expected})" in html.summary([index], "report.html").replace("\n" + " " * 21, " ")


def test_the_page_begins_with_the_counts_of_outcomes_and_lists_decided_claims_first(
    study: dict[str, Any], facts: dict[str, Any]
) -> None:
    outcomes = [UNDECIDED, CONFIRMED, NOT_CONFIRMED, UNDECIDED, CONFIRMED, NOT_TESTABLE, CONFIRMED]
    told = lines([Decision(f"Claim {n}.", "S", "table_1", outcome) for n, outcome in enumerate(outcomes)])
    text = html.page([{**study, "claims": told}], PICTURES, facts)
    table = text[text.index('<table class="decided">') :]
    total = re.findall(r'<tr class="total">(.*?)</tr>', table, re.DOTALL)[0]
    assert re.findall(r">(\d+)<", total) == ["3", "1", "2", "1"]
    places = [text.index(f"Claim {n}.") for n in (1, 4, 6, 2, 0, 3, 5)]
    assert places == sorted(places)
    folded = text.index('<details class="open-claims">')
    assert places[3] < folded < places[4]


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ({"above": 1.25}, "above 1.25"),
        ({"below": 0}, "below 0"),
        ({"at_least": 0.5}, "at least 0.5"),
        ({"at_most": 0.075}, "at most 0.075"),
        ({"within": [-0.1, 0.1]}, "\u22120.1 to 0.1"),
    ],
)
def test_a_number_of_a_claim_stands_beside_the_region_that_is_claimed(region: dict[str, Any], words: str) -> None:
    part = Found("q", 1.0, 0.9, 1.1, 10, True, claimed=str(Region.of(region)))
    (line,) = lines([Decision("It is so.", "S", "table_1", CONFIRMED, parts=(part,))])
    assert line["numbers"] == [line["deciding"]] == [f"q: 1.000 [0.900, 1.100], n = 10; claimed: {words}"]


def test_marks_of_published_numbers_are_explained_below_their_table(
    inputs: Inputs, published: pd.DataFrame, facts: dict[str, Any]
) -> None:
    plain = build("table_1", inputs)
    marked = replace(plain, published={("Adult", "T_n"): (Estimate(1.0), "\u2020")})
    for table, times in ((plain, 0), (marked, 1)):
        index = html.describe(inputs, {"table_1": table}, compared(inputs, published))
        assert Page(html.page([index], {}, facts)).text.count(IN_BRACKETS) == times


def test_a_picture_with_few_colours_is_smaller_and_looks_the_same() -> None:
    drawn, file = Figure(), BytesIO()
    drawn.add_subplot().imshow(np.linspace(0, 1, 400).reshape(20, 20))
    drawn.savefig(file)
    less = few_colours(file.getvalue())
    before, after = (np.asarray(Image.open(BytesIO(one)).convert("RGB"), float) for one in (file.getvalue(), less))
    assert len(less) < 0.6 * len(file.getvalue())
    assert np.abs(before - after).max() < 32


def test_studies_of_papers_stand_in_their_order_and_our_own_last() -> None:
    names = ["agreement", "added", "fliptest", "individual_fairness", "robustness_bias", "permutation_tests"]
    studies = [{"study": name, "paper": "This project" if name == "agreement" else "A paper"} for name in names]
    assert [study["study"] for study in html.ordered(studies)] == [*html.ORDER, "added", "agreement"]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_shows_the_page_without_a_horizontal_scroll_bar(
    study: dict[str, Any], facts: dict[str, Any], width: int, tmp_path: Path
) -> None:
    """At the width of a laptop, and at the least that a headless window has."""
    text = html.page([study], PICTURES, facts)
    measure = "document.title = document.documentElement.scrollWidth + ' of ' + innerWidth"
    (tmp_path / "page.html").write_text(text.replace("</body>", f"<script>{measure}</script></body>"), encoding="utf-8")
    command = [str(CHROMIUM), *QUIET, f"--user-data-dir={tmp_path}/profile", f"--window-size={width},900", "--dump-dom"]
    command += [f"file://{tmp_path}/page.html"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    needed, given = map(int, re.findall(r"<title>(\d+) of (\d+)</title>", shown)[0])
    assert 0 < needed <= given


NAMES = ["c", "a", "b", "d"]


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_names_keep_their_order_whoever_works_them_out(processes: int) -> None:
    # A lock cannot be sent to another process: a copy has it.
    lock = threading.Lock()

    def make(name: str) -> tuple[str, int]:
        with lock:
            return name.upper(), os.getpid()

    made = list(together(make, NAMES, processes))
    assert [name for name, _ in made] == ["C", "A", "B", "D"]
    assert (os.getpid() in {worker for _, worker in made}) == (processes == 1 or sys.platform != "linux")


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_raised_as_it_was(processes: int) -> None:
    def make(name: str) -> str:
        if name == "b":
            raise ValueError(f"no {name} here")
        return name

    with pytest.raises(ValueError, match="no b here"):
        list(together(make, NAMES, processes))
