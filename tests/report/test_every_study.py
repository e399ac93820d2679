"""What holds of every study that has a reference: its artefacts can be set, and hold what the comparison finds."""

from __future__ import annotations

import functools
import importlib
import io as text_io
from pathlib import Path

import pandas as pd
import pytest

from pipeline import io
from pipeline.report import style
from pipeline.report.artefacts import Artefact
from pipeline.report.comparison import compare
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate
from pipeline.report.picture import Picture
from pipeline.report.table import Table
from tests.report import studies

TABLES = {
    "individual_fairness": ("table_1", "table_2", "table_3", "table_4"),
    "permutation_tests": (
        "table_1", "table_levels", "table_auc", "table_methods", "table_sample_size", "table_settings", "comparison",
    ),
    "fliptest": (
        "table_1", "table_flipsets", "table_law", "table_maps", "table_methods", "table_null", "table_settings",
        "table_ssl_weights", "table_subgroups", "table_training", "table_transparency_hiring", "comparison",
    ),
}  # fmt: skip
PUBLISHED = {
    "individual_fairness": ("table_1", "table_2", "table_3", "table_4"),
    "permutation_tests": ("table_1",),
    "fliptest": ("table_1",),
}
# One of each kind: the others differ in the place that they read.
FIGURES = {
    "individual_fairness": ("figure_1", "figure_2", "figure_3", "figure_tolerance", "figure_angles", "figure_validity"),
    "permutation_tests": (
        "figure_1", "figure_2", "figure_2_race", "figure_3", "figure_3_race", "figure_levels", "figure_power",
    ),
    "fliptest": (
        "figure_1", "figure_2", "figure_3", "figure_5_opposite", "figure_6", "figure_7", "figure_8", "figure_11",
        "figure_12", "figure_maps", "figure_methods", "figure_training",
    ),
}  # fmt: skip
DRAWN_TWICE = {"individual_fairness": "figure_angles", "permutation_tests": "figure_2", "fliptest": "figure_7"}
FEWER_DRAWS = "not as published: repetitions 10 (published: 100)"
"""What our reference has of figure 2 of FlipTest."""


def each(listed: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """Every study with each of its names."""
    return [(study, name) for study, names in listed.items() for name in names]


@functools.cache
def inputs(study: str) -> Inputs:
    return studies.inputs_of(study, repetitions=3 if study == "fliptest" else None)


@functools.cache
def made(study: str, name: str) -> Artefact:
    return studies.build(name, inputs(study))


@functools.cache
def compared(study: str) -> pd.DataFrame:
    module = importlib.import_module(f"pipeline.report.{study}.comparison")
    found: pd.DataFrame = module.compared(inputs(study), studies.published(study))
    return found


@pytest.mark.parametrize(("study", "name"), each(TABLES))
def test_a_table_can_be_set_and_names_no_array_or_nan(study: str, name: str) -> None:
    table = made(study, name)
    assert isinstance(table, Table)
    text = table.markdown()
    assert "nan" not in text.lower().replace("finance", "")
    assert "Estimate(" not in text
    assert table.latex().count(r"\begin{") == table.latex().count(r"\end{")
    assert len(pd.read_csv(text_io.StringIO(table.csv()))) == len(table.rows)


@pytest.mark.parametrize(("study", "name"), each(FIGURES))
def test_a_figure_has_the_width_of_a_page_and_says_what_it_shows(study: str, name: str) -> None:
    picture = made(study, name)
    assert isinstance(picture, Picture)
    assert picture.figure.get_size_inches()[0] == style.PAGE_WIDTH
    assert picture.alternative.endswith(".")
    assert not any("nan" in note for note in picture.notes)


@pytest.mark.parametrize("study", TABLES)
def test_what_is_made_again_is_the_same_byte_for_byte(study: str, tmp_path: Path) -> None:
    name = DRAWN_TWICE[study]
    before, again = made(study, "table_1"), studies.build("table_1", inputs(study))
    assert isinstance(before, Table)
    assert isinstance(again, Table)
    assert (again.csv(), again.markdown(), again.latex()) == (before.csv(), before.markdown(), before.latex())
    for folder in ("a", "b"):
        picture = studies.build(name, inputs(study))
        assert isinstance(picture, Picture)
        with style.paper():
            io.save_figure(picture.figure, tmp_path / folder / name)
    for suffix in ("pdf", "png"):
        assert (tmp_path / "a" / f"{name}.{suffix}").read_bytes() == (tmp_path / "b" / f"{name}.{suffix}").read_bytes()


@pytest.mark.parametrize("study", TABLES)
def test_every_number_said_to_be_reproduced_has_a_value_of_ours_and_a_verdict(study: str) -> None:
    """But for what the paper does not state."""
    lines = compared(study)
    reproduced = lines[lines["status"] == "reproduced"]
    assert reproduced["ours"].notna().all(), reproduced.loc[reproduced["ours"].isna(), "why"].tolist()
    without = reproduced[(reproduced["verdict"] == "not comparable") & (reproduced["why"] != FEWER_DRAWS)]
    assert set(without["reading"]) <= {"as assumed"}, without["why"].unique().tolist()
    assert without["why"].str.startswith("the paper does not state").all()
    assert (reproduced.loc[reproduced["reading"] == "as assumed", "verdict"] == "not comparable").all()


@pytest.mark.parametrize(("study", "name"), each(PUBLISHED))
def test_every_number_of_a_published_table_is_found_by_its_setting_in_ours(study: str, name: str) -> None:
    """Cell by cell; of the tables on individual fairness every cell is a published number."""
    table, lines = made(study, name), compared(study)
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


@pytest.mark.parametrize("study", TABLES)
def test_the_settings_in_the_text_are_those_of_the_table_of_settings(study: str) -> None:
    table, listed = made(study, "table_settings"), studies.published(study)
    assert isinstance(table, Table)
    stated = listed[(listed["by"] == "table_settings") & (listed["status"] == "reproduced")]
    measured = importlib.import_module(f"pipeline.report.{study}.facts").measurements(inputs(study))
    assert len(stated) > 3
    for line in compare(stated, measured, ()).to_dict("records"):
        if study == "individual_fairness":
            shown = [table.cell(line["row"], line["column"])]
        elif study == "permutation_tests":
            shown = [table.cell("value", line["row"], line["column"])]
        else:
            shown = [row.cells[0] for row in table.rows]
        assert line["ours"] in shown, line["column"]
