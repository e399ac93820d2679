"""Where the verdicts of four audits come from: the figure shows the parts of a simulation, claims find their rows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pipeline import crossed
from pipeline.io import load_claims
from pipeline.jobs import Run
from pipeline.report import claims, registry
from pipeline.report.agreement import sources, verdicts
from pipeline.report.inputs import Inputs, NotRun, identified
from tests.report import studies

BLOCK = "sources_confirmation"
CLAIMS = [one for one in load_claims("data/published/claims/agreement.yaml") if one["where"].get("block") == BLOCK]
PERMUTATION, ROBUSTNESS = ("model", "audit", "draws"), ("model", "audit", "point")
FLIPTEST = ("map", "model", "audit", "point", "draws")
MEASURES = {
    **{f"{rate} {name}": PERMUTATION for rate in ("selection_rate", "tpr") for name in ("sex", "race")},
    "fliptest sex": FLIPTEST,
    **{f"robustness {name}": ROBUSTNESS for name in ("sex", "race")},
}
DEVIATIONS = {"map": 0.3, "model": 0.1, "audit": 0.1, "point": 0.05, "draws": 0.2}
"""Those of FlipTest; the seeds of two map samples differ. The other audits vary over audit samples and models alone."""
LEVELS = {"map": 3, "model": 4, "audit": 16, "point": 2, "draws": 2}


def facts(split: int, measure: str) -> list[dict]:
    """The facts of an experiment with these deviations around the threshold of the verdict."""
    factors = MEASURES[measure]
    rng = np.random.default_rng([split, [*MEASURES].index(measure)])
    y = np.zeros([LEVELS[name] for name in factors])
    for axis, name in enumerate(factors):
        own = {axis, 0} if name == "draws" and factors == FLIPTEST else {axis}
        size = DEVIATIONS[name] if factors == FLIPTEST else {"audit": 0.3, "model": 0.1}.get(name, 0.0)
        y = y + size * rng.normal(size=[n if place in own else 1 for place, n in enumerate(y.shape)])
    found = [{"statistic": "mean", "value": y.mean()}, *crossed.facts(y, (y > 0).astype(float), factors)]
    return [{"repetition": split, "measure": measure, **row} for row in found]


def others(split: int) -> list[dict]:
    """The facts of all audits but the loss ratio."""
    return [row for measure in MEASURES for row in facts(split, measure)]


def ratio(split: int) -> list[dict]:
    """The facts of the loss ratio, whose statistic varies over metric samples alone."""
    y = np.random.default_rng(split).normal(size=(6, 1, 1, 1)) + np.zeros((6, 4, 16, 8))
    of = crossed.facts(y, (y > 0).astype(float), ("metric", "model", "audit", "point"))
    place = {"repetition": split, "metric_rows": sources.METRIC_ROWS, "points": verdicts.ALL}
    return [{**place, **row} for row in of]


def made(of: Callable[[int], list[dict]], audit: str, block: str, datasets: tuple[str, ...]) -> list[dict]:
    place = {"study": "agreement", "block": block, "origin": "official", "audit": audit, "scale": "paper"}
    pairs = [(dataset, method) for dataset in datasets for method in ("baseline", "project")]
    return [{**place, "dataset": d, "method": m, **row} for d, m in pairs for split in range(10) for row in of(split)]


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    """Ten splits at the paper's scale. The loss ratio was crossed on Adult only."""
    rows = made(others, sources.AUDIT, BLOCK, ("adult", "compas"))
    rows += made(ratio, verdicts.AUDIT, "verdicts_confirmation", ("adult",))
    config = Run("paper", studies=["agreement"], tracker="disabled").artefacts("agreement")
    return Inputs("agreement", "paper", identified(pd.DataFrame(rows)), config)


def of(rows: pd.DataFrame, measure: str, dataset: str = "adult") -> pd.DataFrame:
    return rows[(rows["dataset"] == dataset) & (rows["method"] == "project") & (rows["measure"] == measure)]


def test_the_parts_of_the_variance_are_those_of_the_simulation(inputs: Inputs) -> None:
    rows = sources.experiments(inputs)
    whole = sum(size**2 for size in DEVIATIONS.values())
    shares = of(rows, "fliptest sex")
    found = verdicts.by_part(shares[shares["statistic"] == "share"], sources.EFFECTS)
    assert sum(found.values()) == pytest.approx(1)
    names = {"audit": sources.SAMPLE, "map": sources.REFERENCE, "draws": sources.CHANCE, "model": sources.MODEL}
    for factor, part in names.items():
        assert found[part] == pytest.approx(DEVIATIONS[factor] ** 2 / whole, abs=0.2)
    assert found[sources.REFERENCE] > found[sources.CHANCE] > found[sources.SAMPLE] > found[sources.SETTINGS]
    assert found[verdicts.INTERACTIONS] < 0.05
    assert sources.too_short(of(rows, "fliptest sex")) == pytest.approx(np.sqrt(whole) / 0.1, rel=0.3)
    assert sources.too_short(of(rows, "tpr sex")) == pytest.approx(np.sqrt(10) / 3, rel=0.05)
    reversed_by = dict(sources.reversals(of(rows, "tpr sex")))
    assert reversed_by[sources.SAMPLE].value > reversed_by[sources.MODEL].value > 0
    assert reversed_by[sources.CHANCE].value == 0
    assert sources.REFERENCE not in reversed_by


def test_the_figure_has_a_bar_for_each_audit_and_says_which_was_not_run(inputs: Inputs) -> None:
    picture = studies.build("figure_sources", inputs)
    studies.check(picture)
    above, below = picture.figure.axes[:4], picture.figure.axes[4:]
    assert [round(sum(bar.get_height() for bar in axes.patches)) for axes in above] == [8, 8, 7, 7]
    told = [{text.get_text() for text in axes.texts} for axes in above]
    assert ["not run" in texts for texts in told] == [False, False, True, True]
    assert all(any(text.endswith("×") for text in texts) for texts in told)
    assert len(below) == 4
    ends = [line.get_ydata().max() for axes in below for line in axes.lines]
    assert below[0].get_ylim()[0] == 0
    assert below[0].get_ylim()[1] > max(ends)
    assert len(below[0].get_xticklabels()) == len(MEASURES) + 1


def test_each_part_of_a_claim_finds_a_number_for_each_split(inputs: Inputs) -> None:
    assert len(CLAIMS) == 6
    decided = claims.decide(CLAIMS, inputs.rows)
    assert {one.outcome for one in decided} == {claims.CONFIRMED}
    # If the seeds of the map hardly matter, or the audit sample matters more, claims fail.
    swapped = inputs.rows["effect"].astype(str).replace({"audit": "model", "model": "audit"})
    other = claims.decide(CLAIMS, inputs.rows.assign(effect=swapped.where(swapped != "nan")))
    assert [one.outcome for one in other][:2] == [claims.NOT_CONFIRMED] * 2
    assert {part["artefact"] for part in CLAIMS} <= {one.name for one in registry.declared("agreement")}


def test_without_the_experiments_the_figure_says_so() -> None:
    usual = studies.usual("agreement")
    with pytest.raises(NotRun):
        sources.experiments(replace(usual, rows=usual.rows[usual.rows["audit"] != sources.AUDIT]))
