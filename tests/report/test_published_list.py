"""The list of published numbers and the artefacts say the same."""

import re
from collections.abc import Callable

import pandas as pd
import pytest

from pipeline.report.comparison import compare
from pipeline.report.individual_fairness.facts import measurements
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate

STUDY = "individual_fairness"


def test_every_number_said_to_be_reproduced_has_a_value_of_ours(published: pd.DataFrame, inputs: Inputs) -> None:
    compared = compare(published, measurements(inputs), inputs.reductions)
    reproduced = compared[compared["status"] == "reproduced"]
    assert list(reproduced.loc[reproduced["ours"].isna(), ["artefact", "row", "column", "why"]].to_numpy()) == []
    without = reproduced[reproduced["verdict"] == "not comparable"]
    assert set(without["reading"]) == {"as assumed"}
    assert without["setting"].str.contains("dataset=compas").all()
    assert (without["why"].str.startswith("the paper does not state")).all()


@pytest.mark.parametrize("name", ["table_1", "table_2", "table_3", "table_4"])
def test_every_cell_of_a_published_table_is_in_the_list_with_the_same_value(
    name: str, published: pd.DataFrame, inputs: Inputs, build: Callable
) -> None:
    """Cell by cell: the comparison finds by its setting what the table shows."""
    compared = compare(published, measurements(inputs), ())
    ours = compared[(compared["artefact"] == name) & (compared["reading"] != "as likely made")]
    found = {(line["row"], line["column"]): line["ours"] for line in ours.to_dict("records")}
    table, shown = build(name, inputs), {}
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            value = cell.value if isinstance(cell, Estimate) else cell
            shown[": ".join(filter(None, row.labels)), column.key] = value
    assert shown == pytest.approx(found)


def test_the_settings_in_the_text_are_those_of_the_table_of_settings(
    published: pd.DataFrame, inputs: Inputs, build: Callable
) -> None:
    table = build("table_settings", inputs)
    entries = published[published["by"] == "table_settings"]
    compared = compare(entries, measurements(inputs), ())
    for line in compared.to_dict("records"):
        assert table.cell(line["row"], line["column"]) == line["ours"], line["column"]


NUMBERS_IN_THE_TABLES = """
0.817 -0.151 -0.061 3.676 1.0 2.262 1.0   0.825 -0.147 -0.053 1.660 0.9 1.800 0.8
0.800 0.001 -0.027 5.712 1.0 3.275 1.0   0.765 -0.074 -0.048 1.021 0.0 1.081 0.0
"""


def test_tables_1_and_3_print_the_same_numbers(published: pd.DataFrame) -> None:
    printed = sorted(float(text) for text in re.findall(r"-?\d+\.\d+", NUMBERS_IN_THE_TABLES))
    for name in ("table_1", "table_3"):
        assert sorted(published.loc[published["artefact"] == name, "value"]) == printed
