"""The list of published numbers, the artefacts and the comparison say the same."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact

from pipeline.report.artefacts import compared
from pipeline.report.comparison_table import printed
from pipeline.report.inputs import Inputs

STUDY = "permutation_tests"


def test_table_1_is_in_the_list_as_printed(published: pd.DataFrame) -> None:
    table = published[published["artefact"] == "table_1"].pivot(index="row", columns="column", values="value")
    assert table.loc["Uncorrelated"].to_dict() == {"Algorithm 1": 0.0428, "FairTest": 0.7508, "Desired": 0.05}
    assert table.loc["Independence"].to_dict() == {"Algorithm 1": 0.0501, "FairTest": 0.0099, "Desired": 0.05}


def test_simulated_rates_are_compared_by_their_own_counts(published: pd.DataFrame, inputs_of: Callable) -> None:
    """Fisher's exact test on 7,508 of 10,000 and our share of the simulations that were run."""
    small = inputs_of(scale="laptop", simulations=500)
    line = compared(small, published).query("row == 'Uncorrelated' and column == 'FairTest'").iloc[0]
    assert (line["our_n"], line["verdict"]) == (500, "agrees")
    events = round(line["ours"] * 500)
    assert line["p"] == pytest.approx(fisher_exact([[7508, 2492], [events, 500 - events]]).pvalue)
    assert printed(line.to_dict(), "published") == "7,508 of 10,000"


def test_fewer_simulations_widen_the_test_but_do_not_forbid_it(published: pd.DataFrame, inputs_of: Callable) -> None:
    """What is off by .1 differs with 500 simulations, and the configured number itself is not comparable."""
    small = inputs_of(scale="laptop", simulations=500)
    rows = small.rows.copy()
    chosen = (rows["case"] == "uncorrelated") & (rows["test"] == "fairtest") & (rows["statistic"] == "rejection_rate")
    rows.loc[chosen, "value"] = 0.85
    moved = Inputs(STUDY, "laptop", rows, small.config, small.datasets, {}, small.classifiers)
    table = compared(moved, published).set_index(["row", "column"])
    assert table.loc[("Uncorrelated", "FairTest"), "verdict"] == "differs"
    assert table.loc[("Table 1", "simulations"), "verdict"] == "not comparable"
    assert "simulations 500 (published: 10,000)" in table.loc[("Table 1", "simulations"), "why"]


def test_a_lost_number_shows_ours_without_a_verdict(published: pd.DataFrame, inputs: Inputs) -> None:
    table = compared(inputs, published).set_index(["row", "column"])
    lost = table.loc[("Adult", "test AUC")]
    everyone = inputs.select(block="auc", dataset="adult_all", statistic="auc")
    expected = everyone.loc[everyone["attribute"].isna(), "value"]
    assert lost["ours"] == pytest.approx(expected.mean())
    assert lost["our_std"] == pytest.approx(expected.std())
    assert (lost["verdict"], np.isnan(lost["p"])) == ("published value lost", True)
    assert printed(lost.to_dict(), "published") == "\u2014"
    assert printed(lost.to_dict(), "ours").endswith("(5)")
    assert table.loc[("Figure 1", "rows of A"), "ours"] == 1000
