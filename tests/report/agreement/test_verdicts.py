"""Where verdicts come from: the figure and the table print the numbers of the audit, and each claim finds its rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairness_audits.results import typeset
from pipeline.audits.verdict_sources import ALL, PUBLISHED, Cells, _facts
from pipeline.crossed import EVERYTHING
from pipeline.io import load_claims
from pipeline.jobs import Run
from pipeline.report import claims, registry
from pipeline.report.agreement import verdicts
from pipeline.report.inputs import Inputs, NotRun, identified
from tests.report import studies

BLOCK = "verdicts_confirmation"
CLAIMS = [one for one in load_claims("data/published/claims/agreement.yaml") if one["where"].get("block") == BLOCK]
SPREADS = {"train": (0.01, 0.05), "train_as_many": (0.1, 0.6), "audited": (0.1, 0.6), "others": (0.1, 0.6)}
"""Deviations of log T_n over models and over metric samples by source. Over audit samples it is .01."""


def facts(split: int, source: str, models: int) -> list[dict]:
    """The facts of an experiment with these deviations and a statistic near 2 at every point but the first."""
    rng = np.random.default_rng([split, models, list(SPREADS).index(source)])
    model, metric = SPREADS[source]
    y = np.log(2) + metric * rng.normal(size=(6, 1, 1, 1)) + model * rng.normal(size=(1, models, 1, 1))
    y = y + 0.01 * rng.normal(size=(6, models, 8, 4)) - np.array([3.0, 0, 0, 0])
    cells = Cells(np.exp(y), (y > np.log(1.25)).astype(float), np.full(y.shape, 0.01))
    published = Cells(*(array[..., 1:2] for array in vars(cells).values()))
    place = {"repetition": split, "metric_rows": source}
    return [{**place, "points": p, **row} for p, some in ((PUBLISHED, published), (ALL, cells)) for row in _facts(some)]


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    """Ten splits at the paper's scale. Reductions has one model."""
    rows = []
    for dataset in ("adult", "compas"):
        for method in ("baseline", "project", "reductions"):
            place = {"study": "agreement", "block": BLOCK, "dataset": dataset, "origin": "official", "method": method}
            of = [
                row
                for s in range(10)
                for source in SPREADS
                for row in facts(s, source, 1 if method == "reductions" else 4)
            ]
            rows += [{**place, "audit": verdicts.AUDIT, "scale": "paper", **row} for row in of]
    config = Run("paper", studies=["agreement"], tracker="disabled").artefacts("agreement")
    return Inputs("agreement", "paper", identified(pd.DataFrame(rows)), config)


def test_the_shares_of_the_variance_are_those_of_the_simulation(inputs: Inputs) -> None:
    rows = verdicts.crossed(inputs)
    for one in verdicts.experiments(rows):
        found = {part: share for part, share in verdicts.shares(rows, one, PUBLISHED).items() if np.isfinite(share)}
        assert sum(found.values()) == pytest.approx(1)
        assert found["metric"] > 0.7
        assert found["audit"] < 0.01
        assert ("model" in found) == (one.method != "reductions")
        assert verdicts.shares(rows, one, ALL)["point"] > 0.7


def test_the_figure_has_a_bar_for_each_experiment_and_the_table_a_row(inputs: Inputs) -> None:
    made = studies.build("figure_verdicts", inputs)
    studies.check(made)
    assert len(made.figure.axes) == 4
    heights = [sum(bar.get_height() for bar in axes.patches) for axes in made.figure.axes]
    assert heights == pytest.approx([12] * 4)
    table = studies.build("table_verdicts", inputs)
    studies.check(table)
    assert len(table.rows) == 2 * 3 * len(SPREADS)
    written = typeset.csv(table.recorded())
    one = verdicts.Experiment("adult", "project", "audited")
    by_metric = verdicts.mean(verdicts.crossed(inputs), "reversals", one, "metric")
    assert 0 < by_metric.low < by_metric.value < by_metric.high < 1
    assert f"{by_metric.value:.6g}"[:6] in written


def test_each_part_of_a_claim_finds_a_number_for_each_split(inputs: Inputs) -> None:
    assert len(CLAIMS) == 7
    decided = claims.decide(CLAIMS, inputs.rows)
    assert {one.outcome for one in decided} == {claims.CONFIRMED}
    swapped = inputs.rows["metric_rows"].astype(str).replace({"train": "train_as_many", "train_as_many": "train"})
    (few, many) = (claims.decide([CLAIMS[place]], inputs.rows.assign(metric_rows=swapped))[0] for place in (2, 5))
    assert {few.outcome, many.outcome} <= {claims.UNDECIDED, claims.NOT_CONFIRMED}
    assert {part["artefact"] for part in CLAIMS} <= {one.name for one in registry.declared("agreement")}


def test_without_the_experiment_the_artefacts_say_so(inputs: Inputs) -> None:
    usual = studies.usual("agreement")
    with pytest.raises(NotRun):
        verdicts.crossed(replace(usual, rows=usual.rows[usual.rows["audit"] != verdicts.AUDIT]))
    everything = verdicts.mean(
        verdicts.crossed(inputs), "spread", verdicts.Experiment("adult", "baseline", "train"), EVERYTHING
    )
    assert everything.value == pytest.approx(np.hypot(0.01, 0.05), rel=0.3)
