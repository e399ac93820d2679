"""What holds of every study that has a reference: its artefacts can be set, and hold what the comparison finds."""

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

import pipeline.report
from fairness_audits.files import save_figure
from fairness_audits.results import style, typeset
from fairness_audits.results.estimate import Estimate
from fairness_audits.values import Provenance
from pipeline.io import load_claims, load_published
from pipeline.jobs import Run
from pipeline.report import artefacts, claims, html, reference, registry
from pipeline.report.comparison import check_published, compare
from pipeline.report.reduction import Reduction, reductions
from pipeline.report.regression_check import regression_check
from pipeline.report.selection import explain_absence, parse_setting, select, text_of
from pipeline.stages import collect
from tests.errors import invalid
from tests.report import studies
from tests.report.studies import PUBLISHED_SIZE, REFERENCES

KINDS = ("block", "dataset")
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
    studies.check(studies.build(name, studies.usual(study)))


@pytest.mark.parametrize("study", REFERENCES)
def test_every_origin_in_a_reference_has_its_present_name(study: str) -> None:
    whole = studies.reference(study)
    values = [one for part in (whole.datasets, whole.classifiers, whole.audits) for one in part.values()]
    assert {*whole.rows["origin"], *(one.origin for one in values)} <= set(get_args(Provenance))


def test_what_is_missing_is_named() -> None:
    whole = studies.usual("individual_fairness")
    lacking = replace(whole, rows=whole.rows[~studies.chosen(whole, method="sensr", statistic="error_T_n")])
    said = "no rows for block audit, dataset adult, method sensr, statistic error_T_n"
    with pytest.raises(ValueError, match=said):
        studies.build("table_1", lacking)


@pytest.mark.parametrize("study", REFERENCES)
def test_what_is_made_again_is_the_same_byte_for_byte(study: str, tmp_path: Path) -> None:
    table, name = DRAWN_TWICE[study]
    inputs = studies.usual(study)
    makers: list[Callable[..., Any]] = [
        studies.build,
        lambda name, inputs: artefacts.build(name, inputs, studies.compared(inputs)),
    ]
    tables = [make(table, inputs) for make in makers]
    assert typeset.csv(tables[0].recorded()) == typeset.csv(tables[1].recorded())
    assert typeset.latex(tables[0].printed()) == typeset.latex(tables[1].printed())
    for folder, make in zip("ab", makers, strict=True):
        with style.paper():
            save_figure(make(name, inputs).figure, tmp_path / folder / name)
    for suffix in ("pdf", "png"):
        assert (tmp_path / "a" / f"{name}.{suffix}").read_bytes() == (tmp_path / "b" / f"{name}.{suffix}").read_bytes()


@pytest.mark.parametrize("study", PUBLISHED_SIZE)
def test_every_number_said_to_be_reproduced_has_a_value_of_ours_and_a_verdict(study: str) -> None:
    """Except what the paper does not state, shares of too few, and more repetitions than published."""
    lines = studies.compared(studies.usual(study))
    reproduced = lines[lines["status"] == "reproduced"]
    assert reproduced["ours"].notna().all(), reproduced.loc[reproduced["ours"].isna(), "why"].tolist()
    excused = reproduced["why"].str.endswith("to detect a difference") | reproduced["why"].str.contains(
        "repetitions 100 (published", regex=False
    )
    without = reproduced[(reproduced["verdict"] == "not comparable") & ~excused]
    assert set(without["reading"]) <= {"assumed setting"}, without["why"].unique().tolist()
    assert without["why"].str.startswith("the paper does not state").all()
    assert (reproduced.loc[reproduced["reading"] == "assumed setting", "verdict"] == "not comparable").all()


@pytest.mark.parametrize(("study", "name"), PUBLISHED)
def test_every_number_of_a_published_table_is_found_by_its_setting_in_ours(study: str, name: str) -> None:
    """Cell by cell; of the tables on individual fairness every cell is a published number."""
    table, lines = studies.build(name, studies.usual(study)), studies.compared(studies.usual(study))
    shown = {}
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            value = cell.value if isinstance(cell, Estimate) else cell
            if column.kind != "label":
                shown[": ".join(filter(None, table.labels(row))), column.key] = value
    ours = lines[(lines["artefact"] == name) & (lines["reading"] != "likely setting")]
    found = {(line["row"], line["column"]): line["ours"] for line in ours.to_dict("records")}
    assert {place: shown[place] for place in found} == pytest.approx(found)
    assert len(found) == len(shown) or study != "individual_fairness"


@pytest.mark.parametrize("study", [study for study in PUBLISHED_SIZE if study != "agreement"])
def test_the_settings_in_the_text_are_those_of_the_table_of_settings(study: str) -> None:
    table, listed = studies.build("table_settings", studies.usual(study)), studies.published(study)
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
    table = studies.build("table_settings", replace(usual, config={**usual.config, "sections": older}))
    assert table.rows == studies.build("table_settings", usual).rows


# Whatever part of a study a user runs, what can be drawn is drawn. The rest says why it is missing.


RUN = Run()
PARTS = sorted(
    {(study, kind, getattr(one, kind)) for study in REFERENCES for one in RUN.points(study) for kind in KINDS}
)


@pytest.mark.parametrize(
    ("study", "kind", "name"),
    [pytest.param(*part, marks=pytest.mark.slow if part[1] == "block" else ()) for part in PARTS],
)
def test_a_part_of_a_study_alone_is_compared_decided_and_drawn(study: str, kind: str, name: str) -> None:
    whole = studies.reference(study)
    try:
        run = studies.only(whole, **{kind: name})
    except LookupError:
        pytest.skip("the reference does not have this part")
    found = artefacts.compared(run, studies.published(study))
    made = {one.name: artefacts.build(one.name, run, found) for one in registry.declared(study)}
    for one in made.values():
        studies.check(one)
    if kind == "dataset" and name != "adience":
        assert len(regression_check(run, whole))
    told = claims.lines(artefacts.decided(run, [load_claims(f"data/published/claims/{study}.yaml")]))
    page = html.describe(run, made, found, told)
    absent = [one["name"] for one in page["artefacts"] if one["absent"]]
    assert len(absent) < len(made) or kind == "block"
    assert set(absent) == {name for name, one in made.items() if one.absent}


def test_what_a_run_leaves_out_is_named_and_is_no_evidence_but_comes_from_the_reference() -> None:
    study = "individual_fairness"
    whole, run = studies.reference(study), studies.only(studies.reference(study), "compas")
    said = {"table_1": "DATASETS leaves out Adult", "figure_1": "DATASETS leaves out Simulated"}
    for name, why in said.items():
        made = artefacts.build(name, run)
        assert why in made.absent
        assert made.stamp.scale == "laptop"
    filled = reference.joined(run, whole)
    for name in said:
        assert not studies.build(name, filled).absent
    assert not filled.config["not_chosen"]
    lists = [load_claims(f"data/published/claims/{study}.yaml")]
    outcomes = [{one.says: one.outcome for one in artefacts.decided(each, lists)} for each in (run, filled)]
    ours = {claim for claim, outcome in outcomes[0].items() if outcome != claims.NOT_TESTABLE}
    assert 0 < len(ours) < len(outcomes[1])
    # A part that was left out although its data set was chosen.
    made = artefacts.build("table_4", studies.only(whole, "compas", "sensitivity"))
    assert "leaves out audit of COMPAS" in made.absent


@pytest.mark.parametrize("study", REFERENCES)
def test_the_columns_of_a_study_are_listed_for_runs_that_lack_some(study: str) -> None:
    rows = studies.reference(study).rows
    listed = {*collect.FIRST, *registry.columns(study)}
    assert listed | {"given"} >= set(rows.columns)
    run = studies.only(studies.reference(study), dataset=str(rows["dataset"].iloc[0]))
    assert set(run.rows.columns) >= listed


# Which rows a setting selects, and what a run has reduced.


ROWS = pd.DataFrame({"method": ["a", "a", "b"], "steps": [200.0, 500.0, 500.0], "intercept": ["zero", None, "zero"]})


def test_a_setting_is_read_with_its_types_selects_the_rows_that_agree_and_absence_is_explained() -> None:
    assert parse_setting("method=a; steps=500") == {"method": "a", "steps": 500.0}
    assert list(select(ROWS, {"method": "a", "steps": 500.0}).index) == [1]
    assert list(select(ROWS, {"intercept": "zero"}).index) == [0, 2]
    assert select(ROWS, {"steps": 300.0}).empty
    with invalid(option="stepz"):
        select(ROWS, {"stepz": 1.0})
    assert explain_absence(ROWS, {"method": "a", "steps": 1000.0}) == "steps 1,000 (there are 200, 500)"
    assert explain_absence(ROWS, {"method": "c", "steps": 1000.0}) == "method c (there are a, b)"
    assert explain_absence(ROWS, {"method": "a"}) == ""


@pytest.mark.parametrize(("text", "option"), [("method", "method"), ("a=1; a=2", "a")])
def test_a_setting_that_cannot_be_read_is_refused(text: str, option: str) -> None:
    with invalid(option=option):
        parse_setting(text)


def test_reductions_are_the_values_that_differ_from_the_published_ones() -> None:
    def point(iterations: int, repetitions: int) -> dict:
        sections = {"dataset": {"name": "adult"}, "method": {"name": "sensr", "iterations": iterations}}
        audit = {"name": "loss_ratio", "record": [1, 2]}
        return {"block": "audit", **sections, "audit": audit, "repetitions": repetitions}

    assert reductions([point(20000, 4)], [point(20000, 10)]) == ()
    (found,) = reductions([point(2000, 10)], [point(20000, 10)])
    assert found == Reduction("audit", "adult", "sensr", "method.iterations", 2000, 20000)


# A study's artefacts are those that its modules decorate: each can be made, and one function adds one.


STUDIES = RUN.studies
MODULE = """
from pipeline.report.registry import artefact

@artefact("The later one.")
def figure_late(inputs): ...

@artefact("Of the sevens.", "figure_7", power=7)
@artefact("Of the twos.", "figure_2", power=2)
def power(inputs, power):
    return inputs**power
"""
TABLES = """
from pipeline.report.registry import artefact

@artefact("Each number.")
def comparison(inputs): ...

@artefact("The early one.")
def table_early(inputs): ...
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
def test_the_artefacts_that_are_planned_are_those_that_the_decorators_register(name: str) -> None:
    for path in Path("pipeline/report", name).glob("*.py"):
        importlib.import_module(f"pipeline.report.{name}.{path.stem}")
    made = {one for one in registry._recipes if one.module.startswith(f"pipeline.report.{name}.")}
    assert made == set(registry.declared(name))
    for one in made:
        assert registry.find(name, one.name).caption.endswith("."), one.name


def test_a_decorated_function_adds_a_figure(study: Path) -> None:
    """It is planned, found, and made with the arguments of its own decorator."""
    (study / "tables.py").write_text(TABLES)
    (study / "artefacts.py").write_text(MODULE)
    found = registry.declared("added")
    names = ["table_early", "comparison", "figure_2", "figure_7", "figure_late"]
    assert [(one.name, one.kind) for one in found] == [(name, registry.kind(name)) for name in names]
    assert [registry.label(name, names) for name in names[2:]] == ["Figure 2", "Figure 7", "Figure S1"]
    seventh = registry.find("added", "figure_7")
    assert (seventh.caption, seventh.make(2)) == ("Of the sevens.", 128)
    assert "results/figures/added/figure_late.pdf" in registry.files("added")
    assert "results/reference/figures/{study}/figure_late.png" in registry.patterns("added", "results/reference/")


@pytest.mark.parametrize(("module", "option"), [("", None), (MODULE.replace("figure_7", "figure_2"), "figure_2")])
def test_a_study_without_artefacts_or_with_two_of_one_name_is_refused(
    module: str, option: str | None, study: Path
) -> None:
    (study / "artefacts.py").write_text(module)
    with invalid(source="added", option=option):
        registry.declared("added")


def test_an_unknown_artefact_is_refused_with_the_nearest_name() -> None:
    with invalid(source="individual_fairness", option="tabel_1"):
        registry.find("individual_fairness", "tabel_1")


def test_a_study_s_code_is_all_that_makes_its_artefacts_and_planning_imports_none_of_it() -> None:
    program = (
        "import sys\nfrom pipeline import jobs\nfrom pipeline.workflow import code_hash\nasked = []\n"
        "jobs.code_hash = lambda names, root: asked.append(names) or 'hash'\n"
        "run = jobs.Run()\n"
        "run.code('draw', study='fliptest')\n"
        "run.code('draw', study='robustness_bias')\n"
        "behind = [code_hash.modules_behind(names, jobs.ROOT) for names in asked]\n"
        "assert jobs.ROOT / 'pipeline/report/fliptest/flipset_panels.py' in behind[0]\n"
        "assert jobs.ROOT / 'pipeline/report/fliptest/comparison.py' in behind[0]\n"
        "assert not any('fliptest' in path.parts for path in behind[1])\n"
        "assert not {'pandas', 'scipy', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
