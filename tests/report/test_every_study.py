"""What holds of every study that has a reference: its artefacts can be set, and hold what the comparison finds."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import pipeline.report
from fairness_audits.files import save_figure
from fairness_audits.results import style, typeset
from fairness_audits.results.estimate import Estimate
from pipeline.io import load_published
from pipeline.report import artefacts, registry
from pipeline.report.claims import ABOUT, CONFIRMED, NOT_CONFIRMED, NOT_TESTABLE, UNDECIDED, check, decide
from pipeline.report.comparison import check_published, compare
from pipeline.report.reduction import Reduction, reductions
from pipeline.report.selection import explain_absence, parse_setting, select, text_of
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable
from pipeline.workflow.config import Workflow
from tests.report import studies
from tests.report.studies import PUBLISHED_SIZE, REFERENCES

PUBLISHED = [
    *(("individual_fairness", f"table_{n}") for n in range(1, 5)),
    ("permutation_tests", "table_1"),
    ("fliptest", "table_1"),
]
DRAWN_TWICE = {
    "individual_fairness": ("table_1", "figure_2"),
    "permutation_tests": ("table_1", "figure_2"),
    "fliptest": ("table_1", "figure_7"),
    "agreement": ("table_adult", "figure_agreement"),
    "robustness_bias": ("table_bounds", "figure_9"),
}


@pytest.mark.parametrize(
    ("study", "name"), [(study, one.name) for study in REFERENCES for one in registry.declared(study)]
)
def test_an_artefact_can_be_set_and_says_what_it_shows(study: str, name: str) -> None:
    studies.check(studies.made(study)[name])


def test_what_is_missing_is_named() -> None:
    whole = studies.usual("individual_fairness")
    lacking = replace(whole, rows=whole.rows[~studies.chosen(whole, method="sensr", statistic="error_T_n")])
    said = "no rows for block audit, dataset adult, method sensr, statistic error_T_n"
    with pytest.raises(ValueError, match=said):
        studies.build("table_1", lacking)


@pytest.mark.parametrize("study", REFERENCES)
def test_what_is_made_again_is_the_same_byte_for_byte(study: str, tmp_path: Path) -> None:
    table, name = DRAWN_TWICE[study]
    again = studies.Made(lambda name: artefacts.build(name, studies.usual(study)))
    tables: list[Any] = [made[table] for made in (studies.made(study), again)]
    assert typeset.csv(tables[0].recorded()) == typeset.csv(tables[1].recorded())
    assert typeset.latex(tables[0].printed()) == typeset.latex(tables[1].printed())
    for folder, made in (("a", studies.made(study)), ("b", again)):
        picture = made[name]
        assert isinstance(picture, Picture)
        with style.paper():
            save_figure(picture.figure, tmp_path / folder / name)
    for suffix in ("pdf", "png"):
        assert (tmp_path / "a" / f"{name}.{suffix}").read_bytes() == (tmp_path / "b" / f"{name}.{suffix}").read_bytes()


@pytest.mark.parametrize("study", PUBLISHED_SIZE)
def test_every_number_said_to_be_reproduced_has_a_value_of_ours_and_a_verdict(study: str) -> None:
    """But for what the paper does not state, and shares of so few that no outcome could differ."""
    lines = studies.compared(study)
    reproduced = lines[lines["status"] == "reproduced"]
    assert reproduced["ours"].notna().all(), reproduced.loc[reproduced["ours"].isna(), "why"].tolist()
    excused = reproduced["why"].str.endswith(": no outcome could differ")
    without = reproduced[(reproduced["verdict"] == "not comparable") & ~excused]
    assert set(without["reading"]) <= {"as assumed"}, without["why"].unique().tolist()
    assert without["why"].str.startswith("the paper does not state").all()
    assert (reproduced.loc[reproduced["reading"] == "as assumed", "verdict"] == "not comparable").all()


@pytest.mark.parametrize(("study", "name"), PUBLISHED)
def test_every_number_of_a_published_table_is_found_by_its_setting_in_ours(study: str, name: str) -> None:
    """Cell by cell; of the tables on individual fairness every cell is a published number."""
    table, lines = studies.made(study)[name], studies.compared(study)
    assert isinstance(table, StampedTable)
    shown = {}
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            value = cell.value if isinstance(cell, Estimate) else cell
            if column.kind != "label":
                shown[": ".join(filter(None, table.labels(row))), column.key] = value
    ours = lines[(lines["artefact"] == name) & (lines["reading"] != "as likely made")]
    found = {(line["row"], line["column"]): line["ours"] for line in ours.to_dict("records")}
    assert {place: shown[place] for place in found} == pytest.approx(found)
    assert len(found) == len(shown) or study != "individual_fairness"


@pytest.mark.parametrize("study", [study for study in PUBLISHED_SIZE if study != "agreement"])
def test_the_settings_in_the_text_are_those_of_the_table_of_settings(study: str) -> None:
    table, listed = studies.made(study)["table_settings"], studies.published(study)
    assert isinstance(table, StampedTable)
    stated = listed[(listed["by"] == "table_settings") & (listed["status"] == "reproduced")]
    measured = artefacts.measurements(studies.usual(study))
    assert len(stated) > 3
    shown = [
        item
        for row in table.rows
        for item in (row.cells[2].split("; ") if isinstance(row.cells[2], str) else [row.cells[2]])
    ]
    for line in compare(stated, measured, ()).to_dict("records"):
        assert line["ours"] in shown or text_of(line["ours"]) in shown, line["column"]


def test_a_setting_that_a_reference_alone_has_is_not_shown() -> None:
    usual = studies.usual("permutation_tests")
    older = {path: {**each, "audit": {**each["audit"], "of_old": 1}} for path, each in usual.config["sections"].items()}
    table = artefacts.build("table_settings", replace(usual, config={**usual.config, "sections": older}))
    assert isinstance(table, StampedTable)
    assert table.rows == studies.made("permutation_tests")["table_settings"].rows  # type: ignore[union-attr]


# A claim is confirmed by intervals inside its region, refuted by one outside, and undecided in between.


FOLDER = Path(__file__).resolve().parents[2] / "data" / "published" / "claims"
RNG = np.random.default_rng(3)
LOW, HIGH = RNG.normal(1.0, 0.1, 10), RNG.normal(2.0, 0.1, 10)


def rows(values: Any, origin: str = "official", **place: Any) -> pd.DataFrame:
    common = {"block": "b", "dataset": "d", "statistic": "s", "origin": origin}
    return pd.DataFrame({**common, "repetition": range(len(values)), "value": values, **place})


MEASURED = pd.concat(
    [
        rows(LOW, method="low"),
        rows(HIGH, method="high"),
        rows(np.zeros(10), method="never"),
        rows([0.051], method="level", simulations=10_000),
        rows([0.30], method="invalid", simulations=10_000),
        rows([1.0], method="single"),
        rows([1.0, 2.0], method="over points", error=[0.5, 0.1]),
        rows([0.5], method="other points", error=[0.4]),
        rows(LOW, "twin", method="twin"),
        *[rows(LOW, method="several", sample=sample) for sample in (0, 1)],
    ],
    ignore_index=True,
)


def claim(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = [{"label": "q", **part} for part in parts]
    return {
        "says": "A finding.",
        "source": "Section 1",
        "artefact": "table_1",
        "about": "draws",
        "parts": named,
        **more,
    }


def of(method: str) -> dict[str, Any]:
    return {"of": {"method": method}}


CASES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a mean inside": ([{**of("low"), "below": 1.5}], CONFIRMED),
    "a mean outside": ([{**of("high"), "below": 1.5}], NOT_CONFIRMED),
    "a mean at the end of the region": ([{**of("low"), "below": float(LOW.mean())}], UNDECIDED),
    "one repetition has no interval": ([{**of("single"), "below": 5}], UNDECIDED),
    # The mean, 1.5, with the normal 90 % interval of the mean error .3; and its difference to .5, whose error is .5.
    "an error over points, inside": ([{**of("over points"), "above": 1.0}], CONFIRMED),
    "an error over points, open": ([{**of("over points"), "above": 1.01}], UNDECIDED),
    "a difference of two over points": (
        [{"of": {"method": "over points"}, "minus": {"method": "other points"}, "within": [0.17, 1.83]}],
        CONFIRMED,
    ),
    "all parts hold": ([{**of("low"), "below": 1.5}, {**of("high"), "above": 1.5}], CONFIRMED),
    "one part is refuted": ([{**of("low"), "below": 1.5}, {**of("high"), "below": 1.5}], NOT_CONFIRMED),
    "one part is open": ([{**of("low"), "below": 1.5}, {**of("single"), "below": 5}], UNDECIDED),
    "less than": ([{**of("low"), "less_than": {"method": "high"}}], CONFIRMED),
    "more than": ([{**of("low"), "more_than": {"method": "high"}}], NOT_CONFIRMED),
    "less than itself": ([{**of("low"), "less_than": {"method": "low"}}], NOT_CONFIRMED),
    "a difference within a margin": ([{**of("low"), "minus": {"method": "high"}, "within": [-2, 0]}], CONFIRMED),
    "nothing is not below nothing": ([{**of("never"), "below": 0}], NOT_CONFIRMED),
    "nothing is at most nothing": ([{**of("never"), "at_most": 0}], CONFIRMED),
    "a counted share": ([{**of("high"), "counted": {"above": 1.5}, "above": 0.5}], CONFIRMED),
    "ten of ten are not all": ([{**of("high"), "counted": {"above": 1.5}, "above": 0.9}], UNDECIDED),
    # Ten of ten less ten of ten leave .21 open, by Newcombe's 90 % interval.
    "nothing less nothing": ([{**of("never"), "minus": {"method": "never"}, "within": [-0.21, 0.21]}], UNDECIDED),
    "a share of simulations": ([{**of("level"), "within": [0.025, 0.075]}], CONFIRMED),
    "another share": ([{**of("invalid"), "within": [0.025, 0.075]}], NOT_CONFIRMED),
    "two shares": ([{**of("invalid"), "more_than": {"method": "level"}}], CONFIRMED),
    "the mean of a repetition's rows": ([{**of("several"), "averaged": True, "below": 1.5}], CONFIRMED),
    "a twin": ([{**of("twin"), "below": 1.5}], NOT_TESTABLE),
    "not in the run": ([{**of("absent"), "below": 1.5}], NOT_TESTABLE),
    "one part holds, one was not run": ([{**of("low"), "below": 1.5}, {**of("absent"), "below": 1.5}], NOT_TESTABLE),
    "one is refuted, one a twin's": ([{**of("high"), "below": 1.5}, {**of("twin"), "below": 1.5}], NOT_CONFIRMED),
    "no such column": ([{"of": {"angle": 5}, "below": 1.5}], NOT_TESTABLE),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_rule_decides(name: str) -> None:
    parts, outcome = CASES[name]
    (decision,) = decide([claim(*parts)], MEASURED)
    assert decision.outcome == outcome
    assert len(decision.parts) == len(parts) - sum("absent" in str(part) or "twin" in str(part) for part in parts) - (
        name == "no such column"
    )
    assert bool(decision.why) == any(lacking in str(parts) for lacking in ("absent", "twin", "angle"))


def test_a_part_tells_its_number_and_its_interval() -> None:
    (decision,) = decide([claim({"label": "q of low", **of("low"), "above": 0})], MEASURED)
    (found,) = decision.parts
    half = 1.833113 * LOW.std(ddof=1) / np.sqrt(10)
    assert (found.label, found.n) == ("q of low", 10)
    assert (found.value, found.high - found.low) == pytest.approx((LOW.mean(), 2 * half))


def test_a_claim_means_something_only_where_its_conditions_hold() -> None:
    held, broken = (
        {"label": "share of trials that count", **of("high"), "counted": {"above": least}, "at_least": 0.5}
        for least in (1.5, 2.5)
    )
    shown = claim({**of("low"), "below": 1.5}, provided=[held])
    void = claim({**of("low"), "below": 1.5}, provided=[held, broken])
    first, second = decide([shown, void], MEASURED)
    assert (first.outcome, len(first.parts)) == (CONFIRMED, 1)
    assert (second.outcome, second.why) == (NOT_TESTABLE, "share of trials that count: 0.000")


# Each way to make a number of rows, with rows on which a claim must be confirmed, refuted and left open.
A, B = {"method": "a"}, {"method": "b"}
BETWEEN = LOW - LOW.mean()
BITS = [1.0] * 19 + [0.0]
DATA = pd.DataFrame(
    {"block": "data", "dataset": "d", "statistic": ["train_rows", "test_rows"], "value": [80.0, 20.0], "repetition": 0}
)


def pair(one: Any, other: Any, **place: Any) -> pd.DataFrame:
    return pd.concat([rows(one, method="a", **place), rows(other, method="b", **place)])


def single(value: float, **place: Any) -> pd.DataFrame:
    return rows([value], method="a", **place)


KINDS: dict[str, tuple[dict[str, Any], pd.DataFrame, pd.DataFrame, pd.DataFrame]] = {
    "a mean": (
        {"of": A, "above": 0}, rows(LOW, method="a"), rows(-LOW, method="a"), rows(BETWEEN, method="a")),
    "equivalence": (
        {"of": A, "within": [-0.2, 0.2]}, rows(BETWEEN, method="a"),
        rows(LOW, method="a"), rows(5 * BETWEEN, method="a")),
    "a magnitude": (
        {"of": A, "magnitude": True, "at_least": 0.5},
        rows(-LOW, method="a"), rows(BETWEEN, method="a"), rows(LOW - 0.5, method="a")),
    "the mean of a repetition's rows": (
        {"of": A, "averaged": True, "below": 0}, pair(-LOW, -LOW, half=0).replace("b", "a"),
        pair(LOW, LOW).replace("b", "a"), pair(LOW, -LOW[::-1]).replace("b", "a")),
    "a paired difference": (
        {"of": A, "less_than": B}, pair(LOW, HIGH), pair(HIGH, LOW), pair(LOW, LOW[::-1])),
    "a difference within a margin": (
        {"of": A, "minus": B, "within": [-0.2, 0.2]},
        pair(LOW, LOW[::-1]), pair(HIGH, LOW), pair(LOW, 10 * BETWEEN + 1)),
    "a counted share": (
        {"of": A, "counted": {"above": 1.5}, "above": 0.5},
        rows(HIGH, method="a"), rows(LOW, method="a"), rows([*HIGH[:5], *LOW[:5]], method="a")),
    "two counted shares": (
        {"of": A, "more_than": B}, pair(BITS, np.zeros(20)), pair(np.zeros(20), BITS), pair(BITS, np.ones(20))),
    "a share of simulations": (
        {"of": A, "within": [0.025, 0.075]},
        single(0.05, simulations=4000), single(0.3, simulations=4000), single(0.075, simulations=4000)),
    "two shares of simulations": (
        {"of": A, "more_than": B}, pair([0.3], [0.05], simulations=4000), pair([0.05], [0.3], simulations=4000),
        pair([0.05], [0.05], simulations=4000)),
    "shares of few groups": (
        {"of": A, "limits": [0, 1], "above": 0.5},
        rows(np.full(6, 0.9), method="a", groups=10.0), rows(np.full(6, 0.1), method="a", groups=10.0),
        rows(np.full(6, 0.5), method="a", groups=10.0)),
    "a mean square over its expectation": (
        {"of": A, "above": 1}, single(4.0, freedom=5), single(0.1, freedom=5), single(1.5, freedom=5)),
    "an error over points": (
        {"of": A, "above": 0}, single(1.0, error=0.1), single(-1.0, error=0.1), single(0.1, error=0.1)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_of_every_kind_can_be_confirmed_refuted_and_left_open(kind: str) -> None:
    part, *cases = KINDS[kind]
    outcomes = [decide([claim(part)], measured)[0].outcome for measured in cases]
    assert outcomes == [CONFIRMED, NOT_CONFIRMED, UNDECIDED]


def test_the_level_is_kept_at_the_end_of_a_one_sided_region_and_of_a_margin() -> None:
    rng = np.random.default_rng(0)
    for part in ({"of": A, "above": 0.0}, {"of": A, "within": [-10, 0]}):
        found = [decide([claim(part)], rows(rng.standard_normal(10), method="a"))[0].outcome for _ in range(600)]
        assert np.mean([one == CONFIRMED for one in found]) == pytest.approx(0.05, abs=0.025)


def test_a_claim_about_a_method_covers_its_value_although_splits_overlap() -> None:
    """The mean squared error on test rows of the mean of the train rows, 1 + 1 / 160, from ten splits of 200 rows."""
    rng = np.random.default_rng(0)
    covered = {"method": 0, "splits": 0}
    for _ in range(150):
        y = rng.standard_normal(200)
        splits = [rng.permutation(200) for _ in range(10)]
        values = [np.mean((y[split[160:]] - y[split[:160]].mean()) ** 2) for split in splits]
        measured = pd.concat([rows(values, method="a"), DATA.assign(value=[160.0, 40.0])])
        for about in covered:
            (decision,) = decide([claim({"of": A, "above": 0}, about=about)], measured)
            (part,) = decision.parts
            covered[about] += part.low <= 1 + 1 / 160 <= part.high
    assert covered["method"] / 150 == pytest.approx(0.9, abs=0.06)
    assert covered["splits"] / 150 < 0.75


def test_a_claim_with_our_settings_says_so_and_what_it_is_about() -> None:
    (decision,) = decide([claim({**of("low"), "below": 1.5}, settings="the sizes are lost")], MEASURED)
    assert (decision.settings, decision.about) == ("with our settings: the sizes are lost", ABOUT["draws"])
    with pytest.raises(ValueError, match="about 'people'"):
        check([claim({**of("low"), "below": 1.5}, about="people")])


def test_a_part_is_refuted_at_a_level_adjusted_for_the_parts() -> None:
    one = LOW - LOW.mean() + 2.8 * LOW.std(ddof=1) / np.sqrt(10)
    measured = rows(one, method="barely")
    part = {**of("barely"), "below": 0}
    (alone,) = decide([claim(part)], measured)
    (beside,) = decide([claim(*[part] * 10)], measured)
    assert (alone.outcome, beside.outcome) == (NOT_CONFIRMED, UNDECIDED)


@pytest.mark.parametrize(("repetitions", "outcome"), [(4, UNDECIDED), (5, CONFIRMED)])
def test_equal_values_of_few_repetitions_show_nothing(repetitions: int, outcome: str) -> None:
    (decision,) = decide([claim({**of("equal"), "below": 1.5})], rows(np.ones(repetitions), method="equal"))
    assert decision.outcome == outcome


def test_shares_of_few_groups_that_happen_to_be_alike_are_no_surer_than_their_groups() -> None:
    measured = rows(np.array([0.7, 0.75, 0.7]), method="kept")
    part = {**of("kept"), "limits": [0, 1], "below": 0.8}
    (alike,) = decide([claim(part)], measured)
    (few,) = decide([claim(part)], measured.assign(groups=10.0))
    assert (alike.outcome, few.outcome) == (CONFIRMED, UNDECIDED)
    half = 2.919986 * np.sqrt(few.parts[0].value * (1 - few.parts[0].value) / 10 / 3)
    assert few.parts[0].low == pytest.approx(few.parts[0].value - half)


@pytest.mark.parametrize(
    ("spoilt", "match"),
    [
        (claim({**of("low")}), "give one of less_than"),
        (claim({**of("low"), "abov": 1}), "no key 'abov'"),
        ({"says": "q is low", "parts": []}, "claim 1 lacks source, artefact, about"),
    ],
)
def test_a_claim_that_cannot_be_read_says_why(spoilt: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        check([spoilt])


def test_several_values_for_a_repetition_are_an_error_that_names_the_column() -> None:
    with pytest.raises(ValueError, match="part 'q': several values for a repetition: give sample too"):
        decide([claim({**of("several"), "below": 1.5})], MEASURED)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_list_of_claims_can_be_read(path: Path) -> None:
    claims = yaml.safe_load(path.read_text(encoding="utf-8"))
    check(claims)
    assert 5 <= len(claims) <= 15


# Which rows a setting selects, and what a run has reduced.


ROWS = pd.DataFrame({"method": ["a", "a", "b"], "steps": [200.0, 500.0, 500.0], "intercept": ["zero", None, "zero"]})


def test_a_setting_is_read_with_its_types_selects_the_rows_that_agree_and_absence_is_explained() -> None:
    assert parse_setting("method=a; steps=500") == {"method": "a", "steps": 500.0}
    assert list(select(ROWS, {"method": "a", "steps": 500.0}).index) == [1]
    assert list(select(ROWS, {"intercept": "zero"}).index) == [0, 2]
    assert select(ROWS, {"steps": 300.0}).empty
    with pytest.raises(ValueError, match="no setting 'stepz'"):
        select(ROWS, {"stepz": 1.0})
    assert explain_absence(ROWS, {"method": "a", "steps": 1000.0}) == "steps 1,000 (there are 200, 500)"
    assert explain_absence(ROWS, {"method": "c", "steps": 1000.0}) == "method c (there are a, b)"
    assert explain_absence(ROWS, {"method": "a"}) == ""


@pytest.mark.parametrize(("text", "message"), [("method", "write key=value"), ("a=1; a=2", "gives 'a' twice")])
def test_a_setting_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_setting(text)


def test_reductions_are_the_values_that_differ_from_the_published_ones() -> None:
    def point(iterations: int, repetitions: int) -> dict:
        sections = {"dataset": {"name": "adult"}, "method": {"name": "sensr", "iterations": iterations}}
        audit = {"name": "loss_ratio", "record": [1, 2]}
        return {"block": "audit", **sections, "audit": audit, "repetitions": repetitions}

    assert reductions([point(20000, 4)], [point(20000, 10)]) == ()
    (found,) = reductions([point(2000, 10)], [point(20000, 10)])
    assert found == Reduction("audit", "adult", "sensr", "method.iterations", 2000, 20000)


# A study's artefacts are those that its modules declare: each can be made, and one function adds one.


STUDIES = Workflow().studies
MODULE = """
from pipeline.report.registry import artefact

@artefact("The later one.")
def figure_late(inputs): ...

@artefact("Of the sevens.", "figure_7", power=7)
@artefact("Of the twos.", "figure_2", power=2)
def power(inputs, power):
    return inputs**power
"""
LISTED = """
ARTEFACTS = (("tables", "table_early comparison"), ("artefacts", "figure_2 figure_7 figure_late"))
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A study without artefacts beside the others."""
    monkeypatch.setattr(pipeline.report, "__path__", [*pipeline.report.__path__, str(tmp_path)])
    (tmp_path / "added").mkdir()
    (tmp_path / "added" / "__init__.py").touch()
    importlib.invalidate_caches()
    yield tmp_path / "added"
    for name in [name for name in sys.modules if name.startswith("pipeline.report.added")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", STUDIES)
def test_the_list_of_published_numbers_names_artefacts_of_the_study(name: str) -> None:
    published = load_published(f"data/published/{name}.csv")
    check_published(published)
    assert not published.duplicated(["artefact", "row", "column"]).any()
    assert set(published["by"].dropna()) <= {one.name for one in registry.declared(name)}


@pytest.mark.parametrize("name", STUDIES)
def test_each_listed_artefact_is_made_by_its_module_and_no_module_makes_another(name: str) -> None:
    for one in registry.declared(name):
        assert registry.find(name, one.name).caption.endswith("."), one.name
    for path in Path("pipeline/report", name).glob("*.py"):
        importlib.import_module(f"pipeline.report.{name}.{path.stem}")
    made = {one for one in registry._recipes if one.module.startswith(f"pipeline.report.{name}.")}
    assert made == set(registry.declared(name))


def test_a_listed_function_adds_a_figure(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is planned, found, and made with the arguments of its own decorator."""
    (study / "__init__.py").write_text(LISTED)
    (study / "artefacts.py").write_text(MODULE)
    found = registry.declared("added")
    assert [one.kind for one in found] == ["table"] * 2 + ["figure"] * 3
    figures = [one.name for one in found[2:]]
    assert [registry.label(name, figures) for name in figures] == ["Figure 2", "Figure 7", "Figure S1"]
    seventh = registry.find("added", "figure_7")
    assert (seventh.caption, seventh.make(2)) == ("Of the sevens.", 128)
    workflow = Workflow()
    assert "results/figures/added/figure_late.pdf" in workflow.artefact_files("added")
    assert workflow.incomplete("added")
    caption = Path("results", "captions", "added", "figure_late.rst")
    monkeypatch.chdir(study)
    caption.parent.mkdir(parents=True)
    caption.write_text("The later one.")
    assert workflow.caption("added", "figure_late") == "The later one."


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("", "study 'added' has no artefacts: list them as ARTEFACTS"),
        (LISTED.replace("figure_7", "figure_2"), "lists figure_2 more than once"),
        (LISTED.replace("figure_late", ""), "add 'figure_late' of 'artefacts' to ARTEFACTS"),
        (LISTED.replace("figure_late", "figure_late figure_8"), "added.artefacts does not make figure_8"),
    ],
)
def test_a_list_that_does_not_fit_its_modules_is_refused(listed: str, said: str, study: Path) -> None:
    (study / "__init__.py").write_text(listed)
    (study / "artefacts.py").write_text(MODULE)
    with pytest.raises(ValueError, match=said):
        registry.find("added", "figure_8" if "figure_8" in listed else "figure_2")


def test_an_unknown_artefact_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"no artefact 'tabel_1' \(did you mean 'table_1'\?\)"):
        registry.find("individual_fairness", "tabel_1")


def test_a_study_s_code_is_all_that_makes_its_artefacts_and_planning_imports_none_of_it() -> None:
    program = (
        "import sys\nfrom pipeline.workflow import code_hash, config\nasked = []\n"
        "config.code_hash = lambda names, root: asked.append(names) or 'hash'\n"
        "workflow = config.Workflow()\n"
        "workflow.code('artefacts', study='fliptest')\n"
        "workflow.code('artefacts', study='robustness_bias')\n"
        "behind = [code_hash.modules_behind(names, config.ROOT) for names in asked]\n"
        "assert config.ROOT / 'pipeline/report/fliptest/flipset_panels.py' in behind[0]\n"
        "assert config.ROOT / 'pipeline/report/fliptest/comparison.py' in behind[0]\n"
        "assert not any('fliptest' in path.parts for path in behind[1])\n"
        "assert not {'pandas', 'scipy', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
