"""How many rows the fair metric needs: the artefacts print the numbers of the audit, and each claim finds its rows."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pipeline.io import load_claims
from pipeline.jobs import Run
from pipeline.report import claims, registry
from pipeline.report.agreement import learned_metric
from pipeline.report.agreement.learned_metric import Metric
from pipeline.report.inputs import Inputs, NotRun, identified
from tests.report import studies

BLOCK = "learned_metric_confirmation"
CLAIMS = [one for one in load_claims("data/published/claims/agreement.yaml") if one["where"].get("block") == BLOCK]
TRUTH = {"baseline": 4.0, "project": 1.04}
AUDITED = 0.02
"""Deviation of log T_n over audited people."""
WAYS = [("known", np.nan, 0.0), ("audited", np.nan, 0.6), ("cross_fitted", np.nan, 0.8)]
WAYS += [("others", count, 0.6 / count) for count in (1.0, 16.0, 64.0, 4096.0)]
"""Metrics, the relative number of people, and the deviation of log T_n over them."""


def rates(method: str, deviation: float, multiple: float) -> float:
    """Rejections at 1.25, or at a multiple of the true ratio, that rise with the deviation if the model is fair."""
    if np.isnan(multiple):
        return 1.0 if method == "baseline" else min(0.5, deviation)
    return 1.0 if multiple < 1 else 0.05 + deviation / 2


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    """Ten splits at the paper's scale."""
    rows = []
    rng = np.random.default_rng(0)
    for dataset in ("adult", "compas"):
        for method, truth in TRUTH.items():
            own = [{"statistic": "truth", "value": truth, "repetition": r} for r in range(10)]
            for name, count, deviation in WAYS:
                place = {"metric_rows": name, "relative_rows": count}
                small = deviation / 4 if (dataset, method) == ("compas", "baseline") else deviation
                spreads = {"audit": AUDITED if name in ("known", "others") else small}
                spreads |= {"metric": small} if name == "others" else {}
                for r in range(10):
                    noise = 0.01 * rng.normal()
                    found = [
                        {"statistic": "log_error", "value": (-1 if method == "baseline" else 1) * deviation + noise}
                    ]
                    found += [
                        {"statistic": "log_spread", "effect": effect, "value": np.log(spread) + noise}
                        for effect, spread in spreads.items()
                    ]
                    found += [
                        {
                            "statistic": "rejection_rate",
                            "delta_over_truth": multiple,
                            "delta": 1.25 if np.isnan(multiple) else truth * multiple,
                            "value": min(1.0, max(0.0, rates(method, deviation, multiple) + noise / 10)),
                        }
                        for multiple in (np.nan, 1.0, 0.9, 0.8)
                    ]
                    own += [{**place, "repetition": r, **row} for row in found]
            one = {"study": "agreement", "block": BLOCK, "dataset": dataset, "origin": "official", "method": method}
            rows += [{**one, "audit": learned_metric.AUDIT, "scale": "paper", **row} for row in own]
    config = Run("paper", studies=["agreement"], tracker="disabled").artefacts("agreement")
    return Inputs("agreement", "paper", identified(pd.DataFrame(rows)), config)


def test_the_figure_shows_each_metric_and_the_table_has_its_rejections(inputs: Inputs) -> None:
    made = studies.build("figure_learned_metric", inputs)
    studies.check(made)
    assert len(made.figure.axes) == 6
    labels = [label.get_text() for label in made.figure.axes[-1].get_xticklabels()]
    assert labels == ["cross-fitted", "audited people", "1 ×", "16 ×", "64 ×", "4,096 ×", "known"]
    table = studies.build("table_learned_metric", inputs)
    studies.check(table)
    assert len(table.rows) == 2 * 2 * len(WAYS)
    rows = learned_metric.simulated(inputs)
    published = learned_metric.at_published(rows)
    found = learned_metric.mean(published, ("adult", "project", Metric("others", 16.0)), "rejection_rate")
    assert found.value == pytest.approx(0.6 / 16, abs=0.005)


def test_each_part_of_a_claim_finds_a_number_for_each_split(inputs: Inputs) -> None:
    assert len(CLAIMS) == 7
    decided = claims.decide(CLAIMS, inputs.rows)
    # With 64 times as many people, the metrics of this simulation vary less than its audited people.
    assert [one.outcome for one in decided] == [claims.CONFIRMED] * 5 + [claims.NOT_CONFIRMED, claims.CONFIRMED]
    assert {one["artefact"] for one in CLAIMS} <= {one.name for one in registry.declared("agreement")}


def test_without_the_simulation_the_artefacts_say_so() -> None:
    usual = studies.usual("agreement")
    with pytest.raises(NotRun):
        learned_metric.simulated(replace(usual, rows=usual.rows[usual.rows["audit"] != learned_metric.AUDIT]))


def test_the_guide_of_the_loss_ratio_prints_the_rejections_of_the_reference() -> None:
    """In per cent, of the fair classifier at the published tolerance."""
    rows = learned_metric.at_published(learned_metric.simulated(studies.reference("agreement")))
    page = (studies.ROOT / "docs" / "guide" / "loss_ratio.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| metric \| Adult .*\n\|---.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    printed = [[float(cell) for cell in re.findall(r"\| (\d+) %", line)] for line in table.splitlines()]
    shown = [
        Metric("known"),
        Metric("audited"),
        Metric("cross_fitted"),
        *(Metric("others", n) for n in (4.0, 16.0, 64.0)),
    ]
    for metric, cells in zip(shown, printed, strict=True):
        found = [
            learned_metric.mean(rows, (d, learned_metric.FAIR, metric), "rejection_rate") for d in ("adult", "compas")
        ]
        assert [100 * one.value for one in found] == pytest.approx(cells, abs=0.51)
