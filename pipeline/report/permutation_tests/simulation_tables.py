"""Tables of what was simulated: Table 1 of DiCiccio et al. (2020), and the levels where positives are few."""

from __future__ import annotations

import math

import pandas as pd
from scipy.stats import binomtest

from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate
from pipeline.report.permutation_tests import words as w
from pipeline.report.table import Cell, Column, Row, Table

CONFIDENCE = 0.95
"""Level of the intervals for the error of the simulation itself."""

SMOOTHING = (
    "Smoothed: one event and one other row are added to each group in the variance of the studentised statistic."
)

LEVEL_BLOCKS = ("fnr_levels", "few_positives")


def table_1(inputs: Inputs) -> Table:
    """Table 1: how often the hypothesis of no correlation, and of independence, is rejected though it holds."""
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


def table_levels(inputs: Inputs) -> Table:
    """How often each test rejects equal false negative rates though they are equal, by the sizes of the groups."""
    found = [inputs.select(block=block, statistic="rejection_rate") for block in LEVEL_BLOCKS]
    rows = pd.concat(found, ignore_index=True)
    tests = w.tests_in(list(rows["test"]))
    alpha = float(rows["alpha"].iloc[0])
    body = []
    for name, part in zip(("proposed for section 4.2", "fewer and fewer positives"), found, strict=True):
        for (n_a, n_b, tpr), setting in part.groupby(["n_a", "n_b", "rate"], sort=False):
            positives = float(n_b) * float(setting["positives_b"].iloc[0])
            cells: list[Cell] = [rate(setting[setting["test"] == test]) for test in tests]
            labels = (name, f"{n_a:,.0f}", f"{n_b:,.0f}", f"{tpr:g}", f"{positives:,.0f}")
            body.append(Row(labels, (*cells, _undefined(inputs, setting))))
    return Table(
        title="Levels of the tests of equal false negative rates.",
        stub=("Setting", "n_A", "n_B", "TPR", "positives of B"),
        columns=(
            *(Column(w.style_of(test).label, show="value and interval") for test in tests),
            Column("undefined", decimals=3),
        ),
        rows=tuple(body),
        stamp=inputs.stamp(LEVEL_BLOCKS),
        notes=(
            f"Share of {count(rows, 'simulations')} simulations with p \u2264 {alpha:g}, {count(rows, 'draws')} "
            f"permutations each; in brackets the {CONFIDENCE * 100:.0f} % Wilson interval. Both groups have the same "
            "false negative rate, so every rejection is wrong and the share should be at most the level.",
            f"{share(rows, 'positives_a')} of A and {share(rows, 'positives_b')} of B are positive; positives of B: "
            "expected number. Undefined: share of samples in which a group has none; they do not reject.",
            "An exact test of counts rejects less often than its level, the more so the fewer the counts.",
            SMOOTHING,
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


def _undefined(inputs: Inputs, setting: pd.DataFrame) -> float:
    """The share of a setting's samples in which a group has no positives; the same for every test."""
    place = {key: setting[key].iloc[0] for key in ("block", "n_a", "n_b", "rate")}
    return float(inputs.select(**place, statistic="undefined")["value"].max())
