"""Table 1 of DiCiccio et al. (2020), and how every simulated share is written."""

from __future__ import annotations

import math

import pandas as pd
from scipy.stats import binomtest

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate
from pipeline.report.table import Cell, Column, Row, Table

CONFIDENCE = 0.95
"""Level of the intervals for the error of the simulation itself."""


@registry.table()
def table_1(inputs: Inputs) -> Table:
    """The protected attribute and the model's error are uncorrelated, though not independent, in both rows: the first
    row's attribute is uniform, the second's one plus an exponential. FairTest's rule rejects the true hypothesis of no
    correlation far too often, and the false one of independence less often than its level.
    """
    rows = inputs.select(block="null_rejection", statistic="rejection_rate")
    tests = {"Algorithm 1": w.STUDENTIZED, "FairTest": w.FAIRTEST, "un-studentised": w.UNSTUDENTIZED}
    body = []
    for case, name in w.NULLS.items():
        cells: list[Cell] = [rate(rows[(rows["case"] == case) & (rows["test"] == test)]) for test in tests.values()]
        body.append(Row((name,), (*cells, float(rows["alpha"].iloc[0]))))
    return Table(
        title="Comparison of null rejection probabilities.",
        stub=("Hypothesis",),
        columns=(
            *(Column(name, show="value and interval", decimals=4) for name in tests),
            Column("Desired", decimals=2),
        ),
        rows=tuple(body),
        stamp=inputs.stamp("null_rejection"),
        notes=(
            f"Shares of {count(rows, 'simulations')} simulations of {count(rows, 'n')} pairs, {count(rows, 'draws')} "
            f"permutations each; in brackets the {CONFIDENCE * 100:.0f} % Wilson interval.",
            "Of Pearson's correlation. FairTest: both variables are pooled, shuffled and cut in halves, whose "
            "correlation is compared with the observed one. Un-studentised: the usual permutation of the errors. "
            "Algorithm 1: the same, with the correlation studentised.",
            "Under \u201cIndependence\u201d attribute and error are dependent but uncorrelated: a rate below the "
            "level is a loss of power.",
        ),
    )


def rate(rows: pd.DataFrame) -> Estimate:
    """The simulated share of rejections of one test in one setting, with its Wilson interval.

    Raises ValueError where the rows are not one number.
    """
    if len(rows) != 1:
        raise ValueError(f"expected one rejection rate of a test and setting, found {len(rows)}: audit it again")
    line = rows.iloc[0]
    share, simulations = float(line["value"]), int(line["simulations"])
    if math.isnan(share):
        return Estimate(share)
    interval = binomtest(round(share * simulations), simulations).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(share, n=simulations, low=float(interval.low), high=float(interval.high))


def count(rows: pd.DataFrame, column: str) -> str:
    """The number in a column: ``10,000``, or ``500 to 4,000`` where settings differ."""
    found = sorted({int(value) for value in rows[column].dropna()})
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def share(rows: pd.DataFrame, column: str) -> str:
    """The share in a column: ``80 %``, or ``20 % to 80 %`` where settings differ."""
    found = sorted({round(100 * float(value)) for value in rows[column].dropna()})
    return f"{found[0]} %" if len(found) == 1 else f"{found[0]} % to {found[-1]} %"
