"""Tables of what was simulated: Table 1 of DiCiccio et al. (2020), and the levels of all tests."""

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


SETTINGS = {"fnr_levels": "proposed for section 4.2", "few_positives": "fewer and fewer positives"}
"""Blocks of tests of false negative rates; tests of AUCs in groups of the same sizes stand beside them."""
AUCS, RARE = "auc_levels", "auc_few_positives"
BLOCKS = (*SETTINGS, AUCS, RARE)
AUC_TESTS = (w.UNSTUDENTIZED, w.STUDENTIZED)

SMOOTHING = (
    "Smoothed: one event and one other row are added to each group in the variance of the studentised statistic."
)
DELONG = "Studentised, of AUCs: by DeLong's variance."


@registry.table(place=1)
def table_levels(inputs: Inputs) -> Table:
    """Both groups have the same false negative rate or, in the last columns, the same AUC. The upper rows are settings
    as section 4.2 describes them, whose numbers are lost; in the lower ones the positives of group B get fewer and
    fewer.
    """
    rates = pd.concat([inputs.select(block=block, statistic="rejection_rate") for block in SETTINGS])
    aucs = inputs.select(block=AUCS, statistic="rejection_rate")
    rare = inputs.select(block=RARE, statistic="rejection_rate")
    tests = w.tests_in(list(rates["test"]))
    body = []
    for (block, n_a, n_b, tpr), setting in rates.groupby(["block", "n_a", "n_b", "rate"], sort=False):
        labels = (SETTINGS[str(block)], *_sizes(setting), f"{tpr:g}")
        cells: list[Cell] = [rate(setting[setting["test"] == test]) for test in tests]
        beside = aucs[(aucs["n_a"] == n_a) & (aucs["n_b"] == n_b)]
        body.append(Row(labels, (*cells, _undefined(inputs, setting), *_auc_cells(inputs, beside))))
    for _, setting in rare.groupby(["n_a", "n_b"], sort=False):
        labels = (f"{share(rare, 'positives_b')} of B positive", *_sizes(setting), "")
        body.append(Row(labels, (*[None] * (len(tests) + 1), *_auc_cells(inputs, setting))))
    return Table(
        title="Levels of the tests of equal false negative rates and of equal AUCs.",
        stub=("Setting", "n_A", "n_B", "positives of B", "TPR"),
        columns=(
            *(Column(w.style_of_test(test).label, "Equal FNR", show="value and interval") for test in tests),
            Column("undefined", "Equal FNR", decimals=3),
            *(
                Column(f"AUC, {label}", "Equal AUC", show="value and interval", name=label)
                for label in (w.style_of_test(test).label for test in AUC_TESTS)
            ),
            Column("AUC, undefined", "Equal AUC", decimals=3, name="undefined"),
        ),
        rows=tuple(body),
        stamp=inputs.stamp(BLOCKS),
        notes=_notes(rates, aucs, rare),
    )


def _sizes(setting: pd.DataFrame) -> tuple[str, str, str]:
    """Rows of A and of B, and the expected positives of B."""
    n_a, n_b, positives = (float(setting[key].iloc[0]) for key in ("n_a", "n_b", "positives_b"))
    return f"{n_a:,.0f}", f"{n_b:,.0f}", f"{n_b * positives:,.0f}"


def _auc_cells(inputs: Inputs, setting: pd.DataFrame) -> list[Cell]:
    """The levels of both tests of equal AUCs, and the share of samples without one; nothing where none was run."""
    if setting.empty:
        return [None] * (len(AUC_TESTS) + 1)
    return [*(rate(setting[setting["test"] == test]) for test in AUC_TESTS), _undefined(inputs, setting)]


def _undefined(inputs: Inputs, setting: pd.DataFrame) -> float:
    """The share of a setting's samples in which a test does not exist: the largest of the tests."""
    keys = ("block", "n_a", "n_b", "rate", "auc")
    place = {key: setting[key].iloc[0] for key in keys if setting[key].notna().all()}
    return float(inputs.select(**place, statistic="undefined")["value"].max())


def _notes(rates: pd.DataFrame, aucs: pd.DataFrame, rare: pd.DataFrame) -> tuple[str, ...]:
    alpha = float(rates["alpha"].iloc[0])
    both = pd.concat([aucs, rare])
    return (
        f"Share of simulations with p \u2264 {alpha:g}, of {count(rates, 'simulations')} (false negative rates) and "
        f"{count(both, 'simulations')} (AUCs), {count(pd.concat([rates, both]), 'draws')} permutations each; in "
        f"brackets the {CONFIDENCE * 100:.0f} % Wilson interval. The metric is equal in both groups, so every "
        "rejection is wrong and the share should be at most the level.",
        f"{share(rates, 'positives_a')} of A are positive and, but for the last rows, {share(rates, 'positives_b')} of "
        "B; positives of B: expected number. Undefined: share of samples in which a group has no positives or, for the "
        "AUC, its variance is zero or does not exist; they do not reject.",
        f"AUC {float(aucs['auc'].iloc[0]):g} in both groups: normal scores with one law given the label. {DELONG}",
        "An exact test of counts rejects less often than its level, the more so the fewer the counts.",
        SMOOTHING,
    )
