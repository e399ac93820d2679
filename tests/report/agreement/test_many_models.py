"""Many models: the figure and the table print the numbers of the audit, and each claim finds its rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairness_audits.results.estimate import Estimate
from pipeline.audits.model_agreement import ACCURACY, RANDOM, REGRESSIONS, Effects, facts
from pipeline.io import load_claims
from pipeline.jobs import Run
from pipeline.report import claims, registry
from pipeline.report.agreement import many_models
from pipeline.report.agreement.many_models import AUDIT, AUDITS, Pool
from pipeline.report.inputs import Inputs, NotRun, identified
from tests.report import studies

BLOCK = "many_models_confirmation"
CLAIMS = [one for one in load_claims("data/published/claims/agreement.yaml") if one["where"].get("block") == BLOCK]
ATTRIBUTES = {"adult": ("sex", "race"), "compas": ("sex", "race"), "law": ("race", "sex")}
MODELS = 80


def of_split(dataset: str, split: int, sign: float = -1.0) -> list[dict]:
    """Facts of a split. Group audits and FlipTest measure one truth; ``sign`` is that of the loss ratio of regressions.

    Truths by gender and by race are independent.
    """
    rng = np.random.default_rng([split, list(ATTRIBUTES).index(dataset)])
    network = np.arange(2 * MODELS) >= MODELS
    truth = {attribute: rng.normal(size=2 * MODELS) for attribute in ATTRIBUTES[dataset]}

    def noisy(values: np.ndarray) -> Effects:
        return Effects(values + 0.05 * rng.normal(size=(2, 2 * MODELS)), np.full((2, 2 * MODELS), 0.1))

    effects = {}
    if dataset != "law":
        effects["loss_ratio"] = noisy(5 + np.where(network, rng.normal(size=2 * MODELS), sign * 2 * truth["sex"]))
    for audit in AUDITS[1:]:
        effects |= {f"{audit} {attribute}": noisy(3 + 0.1 * values) for attribute, values in truth.items()}
    accuracy = 0.8 + 1e-4 * rng.normal(size=(2, 2 * MODELS))
    return list(facts(effects, accuracy, network, rows=1000))


def inputs_of(sign: float = -1.0) -> Inputs:
    """Ten splits at the paper's scale."""
    rows = []
    for dataset in ATTRIBUTES:
        place = {
            "study": "agreement",
            "block": BLOCK,
            "dataset": dataset,
            "origin": "official",
            "method": "model_paths",
        }
        for split in range(10):
            where = {**place, "audit": AUDIT, "scale": "paper", "repetition": split}
            rows += [{**where, **row} for row in of_split(dataset, split, sign)]
    config = Run("paper", studies=["agreement"], tracker="disabled").artefacts("agreement")
    return Inputs("agreement", "paper", identified(pd.DataFrame(rows)), config)


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    return inputs_of()


def test_the_figure_has_each_pair_once_and_the_reliabilities_on_the_diagonal(inputs: Inputs) -> None:
    made = studies.build("figure_many_models", inputs)
    studies.check(made)
    shown = [axes for axes in made.figure.axes if axes.get_visible()]
    assert [len(axes.patches) for axes in shown] == [66, 66, 66, 66, 55, 55]
    models, pool = many_models.compared(inputs), Pool("adult", REGRESSIONS)
    found = {(i, j): one for i, j, one in many_models.cells(models, pool)}
    names = models.measures(pool)
    gender = names.index("selection_rate sex")
    assert found[gender, 0].value == pytest.approx(-1, abs=0.05)
    assert found[gender, gender].value == pytest.approx(0.8, abs=0.05)
    assert abs(found[names.index("selection_rate race"), gender].value) < 0.15


def test_the_table_has_a_row_for_each_choice(inputs: Inputs) -> None:
    table = studies.build("table_choices", inputs)
    studies.check(table)
    assert len(table.rows) == 2 * (13 + 13 + 12)
    cell = table.cell("loss_ratio", "Adult", "regressions", "selection, gender")
    by_chance = table.cell("loss_ratio", "Adult", "regressions", many_models.named(RANDOM))
    assert isinstance(cell, Estimate)
    assert isinstance(by_chance, Estimate)
    assert cell.low > 7
    assert by_chance.value == pytest.approx(5, abs=0.3)
    assert many_models.named(ACCURACY) == "accuracy"
    assert table.cell("loss_ratio", "Law school", "networks", "accuracy").n == 0


def test_each_part_of_a_claim_finds_a_number_for_each_split(inputs: Inputs) -> None:
    assert len(CLAIMS) == 8
    assert {one.outcome for one in claims.decide(CLAIMS, inputs.rows)} == {claims.CONFIRMED}
    outcomes = [one.outcome for one in claims.decide(CLAIMS, inputs_of(sign=1.0).rows)]
    assert [outcomes[k] for k in (1, 3)] == [claims.NOT_CONFIRMED] * 2
    assert {one["artefact"] for one in CLAIMS} <= {one.name for one in registry.declared("agreement")}


def test_without_the_audit_the_artefacts_say_so() -> None:
    usual = studies.usual("agreement")
    with pytest.raises(NotRun):
        many_models.compared(replace(usual, rows=usual.rows[usual.rows["audit"] != AUDIT]))
