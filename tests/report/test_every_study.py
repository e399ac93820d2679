"""What holds of every study that has a reference: its artefacts can be set, and hold what the comparison finds."""

import io as text_io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipeline import io
from pipeline.report import artefacts, registry, style
from pipeline.report.comparison import compare
from pipeline.report.numbers import Estimate
from pipeline.report.picture import Picture
from pipeline.report.table import Table
from tests.report import studies
from tests.report.studies import REFERENCES

PUBLISHED = [
    *(("individual_fairness", f"table_{n}") for n in range(1, 5)),
    ("permutation_tests", "table_1"),
    ("fliptest", "table_1"),
]
DRAWN_TWICE = {"individual_fairness": "figure_angles", "permutation_tests": "figure_2", "fliptest": "figure_7"}
FEWER_DRAWS = "not as published: repetitions 10 (published: 100)"
"""What our reference has of figure 2 of FlipTest."""


@pytest.mark.parametrize(
    ("study", "name"), [(study, one.name) for study in REFERENCES for one in registry.declared(study)]
)
def test_an_artefact_can_be_set_and_says_what_it_shows(study: str, name: str) -> None:
    """A table names no array and no NaN; a figure has the width of a page, and words for what can be seen."""
    made = studies.made(study)[name]
    if isinstance(made, Table):
        text = made.markdown()
        assert "nan" not in text.lower().replace("finance", "")
        assert "Estimate(" not in text
        assert made.latex().count(r"\begin{") == made.latex().count(r"\end{")
        assert len(pd.read_csv(text_io.StringIO(made.csv()))) == len(made.rows)
    else:
        assert made.figure.get_size_inches()[0] == style.PAGE_WIDTH
        assert made.alternative.endswith(".")
        assert not any("nan" in note for note in made.notes)


WITHOUT_ROWS: list[tuple[str, str, Any, str]] = [
    ("individual_fairness", "figure_sensitivity", {"block": "sensitivity"}, "missing is block sensitivity"),
    ("individual_fairness", "table_4", {"dataset": "compas"}, "missing is dataset compas .there are adult"),
    (
        "individual_fairness", "table_1", {"method": "sensr", "statistic": "error_T_n"},
        "no rows for block audit, dataset adult, method sensr, statistic error_T_n",
    ),
    ("permutation_tests", "figure_levels", {"block": "few_positives"}, "no rows for block few_positives"),
    ("permutation_tests", "figure_1", {"test": "bootstrap"}, "has no histogram of test 'bootstrap'"),
    (
        "fliptest", "figure_6", {"transport": "counterfactual"},
        r"need the maps counterfactual, wgan: \['counterfactual'\] was not audited",
    ),
]  # fmt: skip
WITHOUT_VALUES: list[tuple[str, str, Any, str]] = [
    ("individual_fairness", "table_unfair_examples", "audits", "the audit's arrays are missing"),
    ("permutation_tests", "table_sample_size", "datasets", r"need the prepared dataset 'adult_all': found \[\]"),
    ("fliptest", "table_ssl_weights", "classifiers", "needs the classifier 'ssl/linear_regression'"),
    ("fliptest", "table_ssl_weights", "datasets", "needs the prepared dataset 'ssl'"),
    ("fliptest", "table_training", "transports", "has no transport maps at hand"),
]


@pytest.mark.parametrize(("study", "name", "lacks", "said"), WITHOUT_ROWS + WITHOUT_VALUES)
def test_what_is_missing_is_named(study: str, name: str, lacks: Any, said: str) -> None:
    whole = studies.usual(study)
    if isinstance(lacks, str):
        lacking = replace(whole, **{lacks: {}})  # type: ignore[arg-type]
    else:
        lacking = replace(whole, rows=whole.rows[~studies.chosen(whole, **lacks)])
    with pytest.raises(ValueError, match=said):
        studies.build(name, lacking)


@pytest.mark.parametrize("study", REFERENCES)
def test_what_is_made_again_is_the_same_byte_for_byte(study: str, tmp_path: Path) -> None:
    name = DRAWN_TWICE[study]
    before, again = studies.made(study)["table_1"], studies.build("table_1", studies.usual(study))
    assert isinstance(before, Table)
    assert isinstance(again, Table)
    assert (again.csv(), again.markdown(), again.latex()) == (before.csv(), before.markdown(), before.latex())
    for folder in ("a", "b"):
        picture = studies.build(name, studies.usual(study))
        assert isinstance(picture, Picture)
        with style.paper():
            io.save_figure(picture.figure, tmp_path / folder / name)
    for suffix in ("pdf", "png"):
        assert (tmp_path / "a" / f"{name}.{suffix}").read_bytes() == (tmp_path / "b" / f"{name}.{suffix}").read_bytes()


@pytest.mark.parametrize("study", REFERENCES)
def test_every_number_said_to_be_reproduced_has_a_value_of_ours_and_a_verdict(study: str) -> None:
    """But for what the paper does not state, and shares of so few that no outcome could differ."""
    lines = studies.compared(study)
    reproduced = lines[lines["status"] == "reproduced"]
    assert reproduced["ours"].notna().all(), reproduced.loc[reproduced["ours"].isna(), "why"].tolist()
    excused = (reproduced["why"] == FEWER_DRAWS) | reproduced["why"].str.endswith(": no outcome could differ")
    without = reproduced[(reproduced["verdict"] == "not comparable") & ~excused]
    assert set(without["reading"]) <= {"as assumed"}, without["why"].unique().tolist()
    assert without["why"].str.startswith("the paper does not state").all()
    assert (reproduced.loc[reproduced["reading"] == "as assumed", "verdict"] == "not comparable").all()


@pytest.mark.parametrize(("study", "name"), PUBLISHED)
def test_every_number_of_a_published_table_is_found_by_its_setting_in_ours(study: str, name: str) -> None:
    """Cell by cell; of the tables on individual fairness every cell is a published number."""
    table, lines = studies.made(study)[name], studies.compared(study)
    assert isinstance(table, Table)
    shown = {}
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            value = cell.value if isinstance(cell, Estimate) else cell
            shown[": ".join(filter(None, row.labels)), column.key] = value
    ours = lines[(lines["artefact"] == name) & (lines["reading"] != "as likely made")]
    found = {(line["row"], line["column"]): line["ours"] for line in ours.to_dict("records")}
    assert {place: shown[place] for place in found} == pytest.approx(found)
    assert len(found) == len(shown) or study != "individual_fairness"


@pytest.mark.parametrize("study", REFERENCES)
def test_the_settings_in_the_text_are_those_of_the_table_of_settings(study: str) -> None:
    table, listed = studies.made(study)["table_settings"], studies.published(study)
    assert isinstance(table, Table)
    stated = listed[(listed["by"] == "table_settings") & (listed["status"] == "reproduced")]
    measured = artefacts.measurements(studies.usual(study))
    assert len(stated) > 3
    for line in compare(stated, measured, ()).to_dict("records"):
        if study == "individual_fairness":
            shown = [table.cell(line["row"], line["column"])]
        elif study == "permutation_tests":
            shown = [table.cell("value", line["row"], line["column"])]
        else:
            shown = [row.cells[0] for row in table.rows]
        assert line["ours"] in shown, line["column"]
