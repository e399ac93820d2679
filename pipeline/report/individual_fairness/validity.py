"""Simulated coverage and level of both tests: theorems 3.1 and C.1, corollaries 3.2, 3.3 and C.2."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import norm

from fairness_audits.results.formats import number, parameter
from fairness_audits.results.table import Column
from pipeline.report import labels as w
from pipeline.report.individual_fairness.facts import configured
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.table import StampedTable, tabulated

BLOCK = "validity"
TESTS = {"loss": "loss ratio", "error": "error-rate ratio"}
NEAR, MONTE_CARLO = 0.95, 0.95
"""Share at which the simulation error is stated, and the confidence level of its interval."""


@artefact(
    "Samples are drawn from a population of simulated points whose true ratio is known. The simulation checks the "
    "theorems on coverage and level.",
)
def table_validity(inputs: Inputs) -> StampedTable:
    rows = inputs.select(block=BLOCK, statistic="rejection_rate")
    draws = int(rows["draws"].iloc[0])
    error = float(norm.ppf((1 + MONTE_CARLO) / 2) * np.sqrt(NEAR * (1 - NEAR) / draws))
    population = int(inputs.select(block=BLOCK, statistic="population")["value"].max())

    def column(name: str, statistic: str, group: str = "", **more: float) -> Column:
        def mean(place: Mapping[str, Any]) -> float:
            return float(inputs.values(**place, statistic=statistic, **more).mean())

        return Column(name, group=group, cell=mean)

    return tabulated(
        title="Level and coverage of both tests, by simulation.",
        stub=("Test", "n"),
        columns=(
            column("two-sided coverage", "coverage_two_sided"),
            column("one-sided coverage", "coverage_one_sided"),
            *(
                column(
                    f"delta = {m:g} \u00d7 true ratio",
                    "rejection_rate",
                    "Share of samples rejected at",
                    delta_over_truth=m,
                )
                for m in map(float, sorted(rows["delta_over_truth"].unique()))
            ),
            column("undefined samples", "undefined"),
            column("Kolmogorov distance to normal", "kolmogorov_distance"),
        ),
        rows=[
            ((label, f"{int(n):,}"), {"block": BLOCK, "test": test, "n_sample": float(n)})
            for test, label in TESTS.items()
            for n in sorted(rows["n_sample"].unique())
        ],
        stamp=inputs.stamp(BLOCK),
        notes=(
            f"Shares of {draws:,} samples drawn with replacement from {population:,} simulated points, whose "
            f"ratio is known. The simulation error of a share near {NEAR:g} is \u00b1{error:.3f}.",
            _setting(inputs),
            "If delta is the true ratio, the share rejected is the type I error, nominally 0.05. If delta is smaller, "
            "it is the power.",
            "Undefined: samples without a misclassified point have no error-rate ratio. They count as neither covered "
            "nor rejected.",
        ),
    )


def _setting(inputs: Inputs) -> str:
    """Return the note on the classifier, its attack, and the true ratios of the population."""
    values = configured(inputs, BLOCK, w.SIMULATED, "logistic_grid")
    truths = inputs.select(block=BLOCK, statistic="truth").groupby("test")["value"].mean()
    theta = parameter(float(values["method.low"]))
    return (
        "The simulation is ours and is not in the paper. It uses data of equation E.1 (labels centred) and one "
        f"logistic classifier with theta_1 = theta_2 = {theta} (intercept: {values['method.intercept']}), attacked for "
        f"{int(values['audit.steps']):,} steps with lambda = {parameter(float(values['audit.regularization']))}. "
        "True values: " + ", ".join(f"{label} {number(float(truths[test]))}" for test, label in TESTS.items()) + "."
    )
