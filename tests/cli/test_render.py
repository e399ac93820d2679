"""One document, four renderings: what is said in one is said in all, and each keeps its own form."""

import json
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from docs import findings
from fairness_audits import texts
from fairness_audits.cli.commands import COMMANDS
from fairness_audits.results import render
from fairness_audits.results import typeset as tables
from fairness_audits.results.document import STATUS, Heading
from fairness_audits.results.formats import decimal, factor, fixed, p_text, plain, plural, span
from fairness_audits.results.glossary import TERMS, explained
from fairness_audits.results.markup import label_text, typeset
from fairness_audits.results.render import csv_texts, json_text, junit_text, page, paragraph, terminal
from fairness_audits.results.result import (
    Brief,
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
from fairness_audits.results.style import fix_layout, paper
from fairness_audits.results.typeset import WIDTH
from fairness_audits.text_files import texts_of
from tests.cli.places import documented, run

TABLE = Table(
    (Column("Group"), Column("mean distance"), Column("is", "text")),
    (Row(("a<b", "-0.12", "nearer")), Row(("b", "-", "unknown")), Row(("c", "3", ""))),
)


DOCUMENT = Result(
    audit="toy-audit",
    title="Toy audit",
    subject="m.pt on <rows>.csv",
    verdict=Verdict("rejected", "UNFAIR", "It is not fair.", {"rejected": True}),
    caveats=(Caveat("few_rows", "Only 3 rows & no more."),),
    sections=(
        Section("What was tested", (Facts((("null", "nothing differs"),)), Text("T_n is a bound."))),
        Section("Groups", (TABLE, Figure("curves", "Curves", "Of all groups.", "never:drawn", key="figure"))),
        Section("Nothing", ()),
    ),
    facts={"results": {"T_n": 1.5}, "data": {"path": "<rows>.csv", "sha256": "00ff", "label": None}},
    tables={"groups": pd.DataFrame({"group": ["a", "b"], "mean": [-0.12, math.nan]})},
)


def test_every_statement_is_in_the_terminal_and_on_the_page() -> None:
    said, shown = terminal(DOCUMENT), page(DOCUMENT, {"curves": b"png"})
    for text in ("Toy audit", "It is not fair.", "What was tested", "nothing differs", "unknown", "nearer"):
        assert text in said
        assert text in shown
    assert said.startswith("Toy audit of m.pt on <rows>.csv\n\n  UNFAIR. It is not fair.\n")
    assert said.endswith("Keep in mind\n  - Only 3 rows & no more.\n")
    assert "Nothing\n" not in said


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


HOSTILE = "<img src=x onerror='alert(1)'>\"$\\frac{\x1b[2J\u202e"
"""The name of a column, and the value of a cell: a program in HTML, a broken formula, commands of a terminal."""


def test_what_columns_and_cells_are_called_is_text_wherever_it_stands(ledger: Path) -> None:
    table = pd.read_parquet("preds.parquet").rename(columns={"sex": HOSTILE})
    table.assign(**{HOSTILE: HOSTILE + table[HOSTILE]}).to_parquet("preds.parquet")
    auc = ("--score", "p", "--metric", "auc")
    status, out, err = run("permutation", *auc, "--group", HOSTILE, "--output", "out")
    assert (status, err) == (0, "")
    _, _, refused = run("permutation", *auc, "--group", f"{HOSTILE}?")
    shown = Path("out", "permutation.html").read_text()
    for text in (out, refused):
        assert not set(text) & set("\x1b\u202e")
        assert r"\x1b[2J\u202e" in text
    assert "<img src=x" not in shown
    assert "&lt;img src=x onerror=&#x27;" in shown


def test_json_has_the_commands_keys_and_names_the_files_of_the_folder_alone() -> None:
    made = json.loads(json_text(DOCUMENT, in_folder=True))
    verdict = {"outcome": "rejected", "reason": None, "rejected": True, "sentence": "It is not fair."}
    assert made["verdict"] == verdict
    assert made["caveats"] == ["Only 3 rows & no more."]
    assert (made["audit"], made["results"], made["versions"].keys()) == (
        "toy-audit", {"T_n": 1.5}, {"fairness_audits", "python", "numpy"},
    )  # fmt: skip
    assert made["files"] == {
        "result": "audit.json", "page": "toy_audit.html", "groups": "groups.csv",
        "figure": "curves.png", "figure_for_print": "curves.pdf",
    }  # fmt: skip
    assert json.loads(json_text(DOCUMENT, in_folder=False))["files"] is None
    with pytest.raises(ValueError, match="Out of range float"):
        json_text(replace(DOCUMENT, facts={"T_n": math.nan}), in_folder=False)
    assert csv_texts(DOCUMENT) == {"groups": "group,mean\na,-0.12\nb,\n"}


def test_a_table_for_the_terminal_has_columns_as_wide_as_they_need_and_lines_keep_the_width() -> None:
    assert list(tables.terminal(TABLE)) == [
        "             mean",
        "  Group  distance  is",
        "  a<b       -0.12  nearer",
        "  b             -  unknown",
        "  c             3",
    ]
    wide = Table((Column(""), *[Column("x" * 8)] * 6), (Row(("n" * 20, *["[1]"] * 6)),))
    header, *lines = tables.terminal(wide)
    assert max(map(len, (header, *lines))) <= WIDTH
    assert "".join(line.split()[0] for line in lines) == "n" * 20
    assert lines[0].count("[1]") == 6
    text = paragraph(" ".join(["marital-status"] * 40), "  - ", "    ")
    assert max(map(len, text.splitlines())) <= WIDTH
    assert all(row.startswith(("  - marital-status ", "    marital-status")) for row in text.splitlines())
    assert text.count("marital-status") == 40


def test_what_a_long_table_leaves_out_is_counted_and_in_its_file() -> None:
    rows = tuple(Row((name,), group) for group in ("sex", "race") for name in "abcd")
    lines = list(tables.terminal(Table((Column("Level"),), rows, 3, "t.csv")))
    assert " ".join("".join(lines[:-1]).split()) == "Level sex a b c race a b c"
    assert lines[-1] == "  ... 2 more, in t.csv"


@pytest.mark.parametrize(
    ("say", "value", "text"),
    [
        (decimal, 0.12345, "0.1235"),
        (decimal, 0.00001, "1.0e-05"),
        (factor, 12345.6, "12,345.6"),
        (texts.growth, 1.25, "25.0 % larger"),
        (texts.growth, 0.97, "3.0 % smaller"),
        (texts.growth, 4.588, "4.588 times as large"),
        (fixed(2, "+"), -0.001, "+0.00"),
        (p_text, 1e-17, "< 1e-16"),
        (span, (None, 0.2), "at most 0.2000"),
        (lambda count: plural(count, "test"), 1200, "1,200 tests"),
        (plain, {"a": np.array([1.5, np.nan]), "b": (np.int64(2), np.True_)}, {"a": [1.5, None], "b": [2, True]}),
        (lambda name: label_text(name, 4), "ab$de", "ab\\$d\ne"),
        (lambda name: label_text(name, 24), "job=Prof-specialty", "job=Prof-specialty"),
        (lambda name: label_text(name, 24), "occupation=Prof-specialty", "occupation=\nProf-specialty"),
        (lambda name: label_text(name, 12), "occupation=Prof-specialty", "occupation=\nProf-\nspecialty"),
        (typeset, "--drop", "--drop"),  # a hyphen is no minus sign
        (typeset, "-0.1 to -.2", "\u22120.1 to \u2212.2"),
    ],
)
def test_numbers_are_said_in_one_way(say: Callable[[object], object], value: object, text: object) -> None:
    assert say(value) == text


# A build can rest on a verdict: nothing that was not tested passes, and each limit decides where it says it does.


ROOT = Path(__file__).resolve().parents[2]
DIRECTIONS = "--directions directions.npy"
AUC = "--score p --group sex --metric auc"
FLIP = "--null-draws 39"
SMOOTHED = "--group place --attack smoothing --attack-setting smoothing.samples=100 --attack-setting smoothing"
VERDICTS = f"""
loss-ratio => {DIRECTIONS} --steps 200 --delta 1.1 => rejected =>
loss-ratio => {DIRECTIONS} --model fair.pt => not rejected =>
loss-ratio => {DIRECTIONS} --points 20 => inconclusive => Only 20 rows have a finite ratio; the test needs at
loss-ratio => {DIRECTIONS} --model certain.py:p => inconclusive => % of the audited rows have no finite ratio (lim
loss-ratio => {DIRECTIONS} --model certain.py:p => inconclusive => The model's probability is exactly 0 or 1 in
loss-ratio => {DIRECTIONS} --model reversed.pt => inconclusive => no better than the 0.5 of a model with a constant
loss-ratio => {DIRECTIONS} --model always.pt => inconclusive => The model's balanced accuracy is 0.500, no better
permutation => --score p --group sex --metric mean_score => rejected =>
permutation => {AUC} => not rejected =>
permutation => {AUC} --label few15 => inconclusive => In 1 of 1 tests, a group has
permutation => {AUC} --label few0 => inconclusive => Nothing could be tested: group 'female' has no rows with label 1
permutation => --prediction d --group sex --metric tpr,selection_rate --label few0 => inconclusive => 1 of 2 tests
permutation => --score same --group sex --metric auc => inconclusive => are the same in all rows, so groups
permutation => --prediction always --group sex --metric tpr,fpr => inconclusive => are the same in all rows, so groups
permutation => --prediction oracle --group sex --metric tpr => not rejected =>
fliptest => {FLIP} => rejected =>
fliptest => {FLIP} --source north --target south --group region --predict models.py:experienced => not rejected =>
fliptest => => inconclusive => splits (0) is too small to tell flips from noise at level 0.05. Use null_d
fliptest => --null-draws 38 => inconclusive => splits (38) is too small to tell
fliptest => --map wgan --map-setting steps=30 => inconclusive => The map is poor: the Kolmog
fliptest => {FLIP} --threshold 0 => inconclusive => The model makes the same decision about all people
fliptest => {FLIP} --label other => inconclusive => no better than the 0.5 of a model with
robustness => --group sex => rejected =>
robustness => --group place => not rejected =>
robustness => --group sex --label other => inconclusive => Only 7 % of the images are classified correctly
robustness => --group sex --label rare --model nets.py:ball --attack fmn => inconclusive => , no better than
robustness => --group sex --permutations 19 => inconclusive => 19 permutations are too few to reject at level 0.01 (num
robustness => {SMOOTHED}.sigma=50 => inconclusive => No group could be tested, because there are too few dist
robustness => --group sex --points 16 --min-group 2 --alpha 0.0001 => inconclusive => A group has only
robustness => --attack carlini_wagner --attack-setting carlini_wagner.iterations=2 => inconclusive => carlini_wagner fa
"""
"""The audit => arguments => its outcome => what the reason has in it."""
DECISION = {"loss-ratio": "rejected", "permutation": "rejected", "fliptest": "beyond_noise", "robustness": "biased"}
FACTS = {"rejected": True, "not rejected": False, "inconclusive": None}


def prepare_desk() -> None:
    """Networks that are certain, predict the opposite, or nearly always the same."""
    network = torch.jit.load("unfair.pt")
    with torch.no_grad():
        network.weight.neg_()
        network.save("reversed.pt")
        network.weight.mul_(1e-3)
        network.bias.copy_(torch.tensor([1.0, -1.0]))
    network.save("always.pt")
    for name, scale in (("own", 20), ("certain", 200)):
        text = f"import torch\ndef p(x): return torch.sigmoid({scale} * x[:, 0] + {3 * scale} * x[:, 1])\n"
        Path(f"{name}.py").write_text(text)


def prepare_ledger() -> None:
    """Labels that few or no women have as positive, a model that says the same of everybody, persons and families."""
    frame, rows = pd.read_parquet("preds.parquet"), np.arange(400)
    women = frame["sex"] == "female"
    few = {f"few{n}": frame["y"].where(~women, (women.cumsum() <= n).astype(int)) for n in (0, 15)}
    families = {"person": rows // 2 * 2 + rows % 2}
    frame.assign(**few, **families, oracle=frame["y"], same=0.5, always=1).to_parquet("preds.parquet")


def prepare_office() -> None:
    """Labels of the other sense."""
    table = pd.read_parquet("rows.parquet")
    table.assign(other=1 - table["hired"]).drop(columns="hired").to_parquet("other.parquet")


def prepare_studio() -> None:
    """Labels that are wrong, or of one class, for nearly all."""
    table = pd.read_csv("attributes.csv")
    rare = (np.arange(len(table)) % 10 == 0).astype(int)
    table.assign(other=1 - table["smiles"], rare=rare).to_csv("attributes.csv", index=False)


PREPARE = {
    "loss-ratio": prepare_desk,
    "permutation": prepare_ledger,
    "fliptest": prepare_office,
    "robustness": prepare_studio,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "given", "outcome", "reason"), [line.split(" =>") for line in VERDICTS[1:].splitlines()]
)
def test_a_verdict_is_inconclusive_where_nothing_follows(
    working: Callable[[str], Path], name: str, given: str, outcome: str, reason: str
) -> None:
    working(name)
    PREPARE[name]()
    words = shlex.split(given)
    words += ["--data", "other.parquet"] * ("other" in words and name == "fliptest")
    words += ["--alpha", "0.01"] * (words[-2:] == ["--permutations", "19"])
    status, out, err = run(name, *words, "--gate", "--json", "made.json")
    assert Path("made.json").exists(), err
    verdict = json.loads(Path("made.json").read_text())["verdict"]
    assert (verdict["outcome"], verdict[DECISION[name]], err) == (outcome.strip(), FACTS[outcome.strip()], "")
    assert status == STATUS[verdict["outcome"]]
    assert reason.strip() in (verdict["reason"] or "")
    assert (verdict["reason"] is None) == (verdict["outcome"] != "inconclusive")
    head = " ".join(out.split("\n\n")[1].split())
    assert head.startswith("CANNOT TELL. ") == (verdict["outcome"] == "inconclusive")
    assert " ".join(verdict["sentence"].split()) in head


def test_without_a_gate_the_status_is_0_whatever_the_verdict(desk: Path) -> None:
    for model in ("unfair.pt", "fair.pt"):
        given = shlex.split(f"{DIRECTIONS} --model {model} --steps 200 --delta 1.1")
        assert [run("loss-ratio", *given, *gate)[0] for gate in ((), ("--gate",))] == [0, 3 * (model == "unfair.pt")]


LIMITED = {
    "sentence": "It was found.",
    "headlines": {"rejected": "FOUND", "not rejected": "NOT"},
    "inconclusive": [
        {"when": "rows < 30", "text": "Only {{ rows }} rows."},
        {"when": "draws < 2 and not rejected", "text": "Too few draws."},
    ],
}


@pytest.mark.parametrize(
    ("rows", "draws", "found", "reason"),
    [
        (30, 2, "not rejected", None),
        (30, 1, "not rejected", "Too few draws."),
        (30, 1, "rejected", None),
        (29, 1, "rejected", "Only 29 rows."),
        (29, 1, "not rejected", "Only 29 rows. Too few draws."),
    ],
)
def test_a_verdict_is_inconclusive_for_every_reason_that_applies(
    rows: int, draws: int, found: Any, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "texts_of", lambda audit: LIMITED)
    made = texts.verdict("made up", {"rows": rows, "draws": draws}, found == "rejected", {"n": 1})
    assert made.reason == reason
    assert made.outcome == (found if reason is None else "inconclusive")
    assert made.sentence == (f"{reason} It was found." if reason else "It was found.")
    assert made.facts == {"rejected": FACTS[made.outcome], "n": 1}


@pytest.mark.parametrize("name", DECISION)
def test_the_page_of_each_audit_documents_its_limits_and_the_gate(name: str) -> None:
    page = (ROOT / re.findall(r"docs/\S+\.md", COMMANDS[name].texts["page"])[0]).read_text()
    assert "| 4 | With `--gate`: inconclusive. |" in (ROOT / "docs/guide/command_line.md").read_text()
    assert re.search(rf"`outcome`, its `reason`, `{DECISION[name]}`.* if inconclusive", page)
    assert re.search(r"The outcome is \*inconclusive\*|\*\*cannot tell\*\* \(`inconclusive`\)", page)


# What a reader must know is said where its condition holds, and nowhere else.


SMOOTH = "--map wgan --map-setting steps=30"
CAVEATS = f"""
loss-ratio => {DIRECTIONS} --steps 200 => held_out_rows whole_columns => not_rejected
loss-ratio => {DIRECTIONS} --model fair.pt --points 20 => not_rejected => still_growing
loss-ratio => {DIRECTIONS} --steps 20 --delta 9 => not_rejected still_growing => saturated
loss-ratio => {DIRECTIONS} --model own.py:p => read_as_probabilities saturated => metric_of_audited_rows
loss-ratio => --sensitive sex => metric_of_audited_rows metric_sample =>
loss-ratio => --sensitive sex --metric-samples 0 => metric_of_audited_rows => metric_sample
permutation => {AUC} => held_out_rows independent_rows => several_tests
permutation => {AUC} --cluster person => => independent_rows
permutation => {AUC} --method unstudentized => method_to_compare_with =>
permutation => {AUC} --metric mean_score => several_tests => no_correction
permutation => {AUC} --metric mean_score --correct none => no_correction => several_tests
permutation => {AUC} --resampling-risk 0.01 --draws 5000 => stopped_early =>
permutation => {AUC} --metric tpr,fnr --threshold 0.5 => one_hypothesis_twice => correction_by_metric
permutation => {AUC} --metric mean_score --correct max-t => correction_by_metric => one_hypothesis_twice
fliptest => => no_noise_floor no_refits read_as_probabilities exact_map blind => smooth_map unmoved_columns poor_map
fliptest => --null-draws 1 --threshold 0 => flips_are_to_be_read => read_as_probabilities no_noise_floor
fliptest => {SMOOTH} => poor_map smooth_map => exact_map
fliptest => --predict models.py:by_sex --include-group --refits 2 => unmoved_columns attribute_alone => blind no_refits
robustness => --group sex => closer_is_not_worse => no_label upper_bounds
robustness => no--label --attack deepfool => no_label upper_bounds =>
robustness => --attack smoothing --attack-setting smoothing.samples=100 => certified_radii => upper_bounds
robustness => --attack carlini_wagner --attack-setting carlini_wagner.iterations=2 => failed_attacks =>
"""
"""The audit => arguments => conditions that hold => conditions that do not."""


@pytest.mark.parametrize(
    ("name", "given", "holds", "does_not"), [line.split(" =>") for line in CAVEATS.split("\n")[1:-1]]
)
def test_a_caveat_is_given_where_its_condition_holds(
    name: str, given: str, holds: str, does_not: str, working: Callable[[str], Path]
) -> None:
    working(name)
    PREPARE[name]()
    conditions = {caveat.condition for caveat in documented(name, *shlex.split(given)).caveats}
    assert set(holds.split()) <= conditions
    assert not set(does_not.split()) & conditions


@pytest.mark.parametrize("outcome", ["rejected", "not rejected", "inconclusive"])
def test_a_build_fails_unless_the_outcome_is_not_rejected(outcome: Any) -> None:
    from xml.etree import ElementTree

    verdict = Verdict(outcome, "SO <IT> IS", "It is & stays so.")
    (case,) = ElementTree.fromstring(junit_text(replace(DOCUMENT, verdict=verdict)))
    failure = case.find("failure")
    assert (failure is None) == (outcome == "not rejected")
    if failure is not None:
        said = (failure.get("type"), failure.get("message"), failure.text)
        assert said == (outcome, verdict.headline, verdict.sentence)


def test_a_page_begins_in_plain_words_and_says_what_terms_mean() -> None:
    brief = Brief("Is <it> fair?", "3 rows.", "An interval.", "Not sure.", "Why.")
    shown = page(replace(DOCUMENT, brief=brief), {"curves": b"png"})
    places = [shown.index(text) for text in ("In plain words", "Is &lt;it&gt; fair?", "Keep in mind", "Groups</h2>")]
    assert places == sorted(places)
    assert f'<abbr tabindex="0" title="{TERMS["interval"]}">interval</abbr>' in shown
    assert f"<dt>interval</dt><dd>{TERMS['interval']}</dd>" in shown


def head(shown: str) -> dict[str, str]:
    """Return what the head of a page states, by name."""
    (facts,) = re.findall(r'<dl class="facts heading">(.*?)</dl>', shown, re.DOTALL)
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", facts))


def test_the_head_of_a_page_states_what_was_audited_when_and_by_which_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"rows": 1200, "audited": 1000}
    document = replace(DOCUMENT, facts={"data": data}, libraries=("numpy", "sklearn"))
    named = Heading("Loans <2026>", "Scorecard 7", "Applications", date(2026, 3, 1))
    shown = page(document, {"curves": b""}, named)
    assert "<h1>Loans &lt;2026&gt;</h1>" in shown
    assert "Toy audit of m.pt on &lt;rows&gt;.csv" in shown
    stated = head(shown)
    versions = stated.pop("Versions")
    assert stated == {
        "Date": "1 March 2026", "Model": "Scorecard 7", "Data": "Applications", "Rows": "1,200, 1,000 of them audited",
    }  # fmt: skip
    assert re.fullmatch(r"fairness_audits \S+, python \S+, numpy \S+, scikit-learn \S+", versions)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    stated = head(page(DOCUMENT, {"curves": b""}))
    assert (stated["Date"], stated["Model"], stated["Data"]) == ("2 January 1970", "not stated", "not stated")
    assert "Rows" not in stated


def test_a_page_links_the_documentation_once_it_has_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "DOCUMENTATION", "https://docs.example")
    assert '<a href="https://docs.example/guide/legal.html">' in page(DOCUMENT, {"curves": b""})


def test_the_names_on_a_page_are_options_of_the_command_and_of_saving(ledger: Path) -> None:
    auc = ("--score", "p", "--metric", "auc", "--group", "sex")
    named = ("--title", "Quarterly check", "--model-name", "Scorecard 7", "--data-name", "Applications")
    assert run("permutation", *auc, *named, "--output", "out")[0] == 0
    shown = Path("out", "permutation.html").read_text()
    assert "<h1>Quarterly check</h1>" in shown
    assert (head(shown)["Model"], head(shown)["Data"]) == ("Scorecard 7", "Applications")
    table = pd.read_parquet("preds.parquet")
    found = fa.permutation_test(prediction=table["p"] > 0.5, group=table["sex"], metric="selection_rate")
    found.save("saved", title="By hand", data_name="Loans", day=date(2026, 3, 1))
    stated = head(Path("saved", "permutation.html").read_text())
    assert (stated["Date"], stated["Data"], stated["Rows"]) == ("1 March 2026", "Loans", f"{len(table):,}")


def test_a_fitted_model_states_the_version_of_its_library() -> None:
    rows = pd.DataFrame({"x": np.arange(80.0), "z": np.arange(80) % 7})
    model = LogisticRegression().fit(rows, rows["x"] > 40)
    found = fa.fliptest(model, rows, np.repeat(["a", "b"], 40), source="a", target="b", null_draws=1, refits=0)
    assert set(found.to_dict()["versions"]) == {"fairness_audits", "python", "numpy", "scikit-learn"}


def test_a_term_is_explained_once_on_a_page_and_no_part_of_a_word_is_one() -> None:
    seen: set[str] = set()
    shown = explained("An interval and two intervals; subintervals, p-value-like and P-values.", seen)
    assert shown.count("<abbr") == 2
    assert "subintervals" in shown
    assert "p-value-like" in shown
    assert seen == {"interval", "p-value"}
    assert "<abbr" not in explained("An interval.", seen)


def test_users_terms_are_explained_on_pages_and_in_the_documentation() -> None:
    wanted = {
        "selection rate",
        "impact ratio",
        "margin",
        "p-value",
        "confidence interval",
        "held-out",
        "loss ratio",
        "sigma",
    }
    assert wanted <= TERMS.keys()
    every = texts_of("glossary")
    assert not every["pages"].keys() & every["documentation"].keys()
    listed = findings.filled((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    assert [term for term, meaning in TERMS.items() if f"\n{term}\n  {meaning}\n" not in listed] == []


def boxes(drawn: Any, artists: Any) -> list[Any]:
    """Return the places of texts of a figure that is laid out, from top to bottom."""
    FigureCanvasAgg(drawn)
    fix_layout(drawn)
    drawn.canvas.draw()
    found = [one.get_window_extent() for one in artists(drawn.axes[0]) if one.get_text()]
    assert all(one.x0 >= 0 and one.y0 >= 0 for one in found)
    return sorted(found, key=lambda box: -float(box.y1))


NAMES = [f"{job} (skilled), including cleaning and other work" for job in "abcdefghijkl"]


@pytest.mark.parametrize("asked", [{}, {"margin": 0.1}, {"ratio": True}], ids=["equality", "margin", "ratio"])
def test_names_of_twelve_groups_do_not_overlap_and_the_bound_is_drawn(asked: dict[str, Any]) -> None:
    group, decision = np.repeat(NAMES, 40), np.arange(480) % 3 % 2
    found = fa.permutation_test(prediction=decision, group=group, metric="selection_rate", **asked)
    with paper():
        drawn = found.figure()
        places = boxes(drawn, lambda axes: axes.get_yticklabels())
    assert len(places) >= 12
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(places))
    at = [float(np.asarray(line.get_xdata())[0]) for line in drawn.axes[0].lines if line.get_linestyle() == "--"]
    assert at == {"margin": [-0.1, 0.1], "ratio": [0.8]}.get(next(iter(asked), ""), [])


def test_the_curves_of_twelve_long_names_keep_their_panel() -> None:
    rng = np.random.default_rng(0)
    x, groups = rng.normal(size=(480, 2)), pd.DataFrame({"job": np.repeat(NAMES, 40)})
    model = LogisticRegression().fit(x, x[:, 0] > 0)
    with paper():
        drawn = fa.robustness_bias(model, x, groups=groups, attack="exact", permutations=19, bootstraps=9).figure()
        places = boxes(drawn, lambda axes: axes.get_legend().get_texts())
    assert len(places) == 12
    assert drawn.axes[0].get_window_extent().height > 0.5 * drawn.bbox.height


def test_a_figure_is_laid_out_once_and_drawn_once_for_each_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, draw = [], Axes.draw

    def watched(axes: Axes, renderer: Any) -> None:
        drawn.append(axes.get_position().bounds)
        draw(axes, renderer)

    monkeypatch.setattr(Axes, "draw", watched)
    group = np.repeat(["a", "b"], 50)
    fa.permutation_test(prediction=np.arange(100) % 3 == 0, group=group, metric="selection_rate").save(tmp_path / "out")
    as_pdf, as_png = drawn
    assert as_pdf == as_png
