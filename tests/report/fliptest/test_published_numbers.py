"""The list of published numbers, the artefacts and the comparison say the same."""

from dataclasses import replace

import pandas as pd
import pytest

from pipeline.report.artefacts import compared
from pipeline.report.fliptest import facts
from pipeline.report.inputs import Inputs
from pipeline.report.selection import parse_setting
from tests.report.fliptest.test_tables import shorter


def test_nothing_that_rests_on_a_twin_is_compared(inputs: Inputs, published: pd.DataFrame) -> None:
    """The Strategic Subject List being one."""
    rows = inputs.rows.assign(origin=inputs.rows["origin"].astype(object).mask(inputs.rows["dataset"] == "ssl", "twin"))
    datasets = {**inputs.datasets, "ssl": replace(inputs.datasets["ssl"], origin="twin")}
    found = compared(replace(inputs, rows=rows, datasets=datasets), published)
    rests = found[found["setting"].fillna("").str.contains("dataset=ssl") & (found["status"] == "reproduced")]
    settings = rests["setting"].map(parse_setting).map(lambda setting: "." in str(setting["statistic"]))
    counted = rests["setting"].str.contains("statistic=features")
    assert set(rests.loc[~settings & ~counted, "verdict"]) == {"not comparable"}
    assert rests.loc[~settings & ~counted, "why"].str.contains("ours is from twin data").any()
    hiring = found[found["row"] == "Hiring"]
    assert "not comparable" not in set(hiring["verdict"])


@pytest.mark.parametrize(("sha256", "verdict"), [(facts.EXPORT, "agrees"), ("0" * 64, "differs")])
def test_the_file_of_the_list_is_held_against_a_public_export(
    inputs: Inputs, published: pd.DataFrame, sha256: str, verdict: str
) -> None:
    ssl = replace(inputs.datasets["ssl"], checksums={"list.csv": sha256}, origin="official")
    found = compared(replace(inputs, datasets={**inputs.datasets, "ssl": ssl}), published)
    (line,) = found[found["setting"].fillna("").str.contains("exported_files")].to_dict("records")
    assert line["verdict"] == verdict
    assert facts.EXPORT in line["note"]


def test_a_shorter_run_compares_what_its_maps_did_not_make(inputs: Inputs, published: pd.DataFrame) -> None:
    table = compared(shorter(inputs), published).set_index(["row", "column"])
    assert table.loc[("Hiring", "F+"), "verdict"] == "not comparable"
    assert "steps 500 (published: 20,001)" in table.loc[("Hiring", "F+"), "why"]
    assert table.loc[("Law School, counterfactuals", "F+"), "verdict"] == "no difference shown"
