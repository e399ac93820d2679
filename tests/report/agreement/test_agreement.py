"""How far audits agree: W and tau by their definitions, decisions, people in common, what every artefact says."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, spearmanr

from fairness_audits.results import typeset
from fairness_audits.results.estimate import Estimate
from pipeline.io import load_claims
from pipeline.report import artefacts, claims, registry
from pipeline.report.agreement import figures, measures
from pipeline.report.agreement.measures import kendalls_w
from pipeline.report.inputs import Inputs
from pipeline.report.table import StampedTable
from tests.builders import chosen
from tests.report import studies

CLAIMS = load_claims("data/published/claims/agreement.yaml")


def fact(inputs: Inputs, **where: object) -> np.ndarray:
    return chosen(measures.facts(inputs), **where)["value"].to_numpy(float)


def test_w_is_one_for_one_ranking_nought_for_opposed_ones_and_the_mean_of_spearmans_correlations() -> None:
    """(m - 1) r + 1 = m W, with r the mean of Spearman's rho over all pairs of judges, where nothing ties."""
    rng = np.random.default_rng(0)
    one = rng.random(6)
    assert kendalls_w(np.stack([one, 3 * one, one**3])) == pytest.approx(1)
    assert kendalls_w(np.stack([one, -one])) == pytest.approx(0)
    for _ in range(20):
        values = rng.random((4, 7))
        rho = [spearmanr(values[i], values[j]).statistic for i in range(4) for j in range(i)]
        assert kendalls_w(values) == pytest.approx((3 * np.mean(rho) + 1) / 4)
    by_chance = [kendalls_w(rng.random((5, 6))) for _ in range(4000)]
    assert np.mean(by_chance) == pytest.approx(1 / 5, abs=0.01)


def test_ties_share_their_ranks_and_do_not_count_as_disagreement() -> None:
    """Two judges who tie the same objects agree; a judge who ties all says nothing, and too few objects have no W."""
    assert kendalls_w(np.array([[1.0, 1, 2, 3], [5, 5, 6, 7]])) == pytest.approx(1)
    assert np.isnan(kendalls_w(np.ones((3, 4))))
    assert np.isnan(kendalls_w(np.array([[1.0, 2], [1, 2]])))
    assert np.isnan(kendalls_w(np.array([[1.0, 2, 3]])))


def test_a_cell_has_a_colour_if_it_fails_and_the_sign_has_one_if_the_audit_has_a_direction() -> None:
    """However small an effect is beside others of its column: T_n of 3 as well as of 301."""

    def of(measure: str, effect: float, p: float = 0.01, word: str = "") -> str:
        return figures.COLORS[figures.color(measures.Verdict(Estimate(effect), p, word), measure)]

    assert of("loss_ratio", 3.0) == of("loss_ratio", 301.0) == of(measures.FLIPTEST, 0.1) == "fails: no direction"
    assert [of("tpr", 0.1), of("tpr", -0.1)] == [f"fails: {word} for the first group" for word in ("higher", "lower")]
    assert of("tpr", 0.5, p=0.06) == of("tpr", 0.5, p=float("nan")) == "passes or has no test"
    assert of("tpr", float("nan"), float("nan"), "random") == "does not apply"


def test_audits_that_rank_alike_have_w_and_tau_of_one(inputs: Inputs) -> None:
    assert fact(inputs, statistic="W", dataset="adult") == pytest.approx(1)
    assert fact(inputs, statistic="tau", dataset="compas") == pytest.approx(1)
    # Six models of Adult have every audit; at the law school four, by nine audits.
    assert set(fact(inputs, statistic="models", dataset="adult")) == {6}
    assert set(fact(inputs, statistic="measures", dataset="law")) == {9}
    assert set(fact(inputs, statistic="models", dataset="law")) == {4}


def test_an_audit_that_turns_the_ranking_round_contradicts_the_others(study_with: Callable[..., Inputs]) -> None:
    def turned(dataset: str, attribute: str, method: str, measure: str, repetition: int) -> tuple[float, float]:
        place = measures.METHODS.index(method) + 1
        if measure == "selection_rate":
            place = 9 - place
        return (1 + 0.1 * place if measure in measures.INDIVIDUAL else -0.1 * place), 0.5

    inputs = study_with(turned)
    pair = {"statistic": "tau", "dataset": "adult", "attribute": "race"}
    assert fact(inputs, measure="loss_ratio", other="selection_rate", **pair) == pytest.approx(-1)
    assert fact(inputs, measure="tpr", other="auc", **pair) == pytest.approx(1)
    # A difference is as unfair one way as the other.
    assert fact(inputs, statistic="unfairness", measure="tpr", method="baseline", dataset="law") == pytest.approx(0.1)


def test_a_flipset_is_held_against_what_random_halves_flip(inputs: Inputs) -> None:
    found = measures.measured(inputs)
    own = found[(found["measure"] == "fliptest") & (found["dataset"] == "adult") & (found["attribute"] == "sex")]
    last = own[own["method"] == "logistic"].sort_values("repetition")
    assert last["effect"].to_numpy() == pytest.approx(np.full(6, 0.4), abs=0.005)
    passes = own[own["method"] == "baseline"].iloc[0]
    assert passes["effect"] == pytest.approx(0.002)
    assert passes["p"] == pytest.approx(2 * binom.sf(101, 1000, 0.1))
    assert (last["p"] < 1e-6).all()


def test_counterfactuals_have_an_effect_at_the_law_school_and_nothing_to_fail(inputs: Inputs) -> None:
    """Of a thousand a tenth and half of what the effect says are decided otherwise, without a floor to hold them to."""
    found = measures.verdicts(inputs, "law", "race")["logistic", "counterfactual"]
    assert found.effect.value == pytest.approx(0.5, abs=0.005)
    assert found.untested
    assert not found.rejected
    assert not len(fact(inputs, statistic="rejected", measure="counterfactual"))
    assert measures.verdicts(inputs, "adult", "race")["logistic", "counterfactual"].word == "no model"


def test_decisions_are_corrected_within_a_split_and_over_all(inputs: Inputs, study_with: Callable[..., Inputs]) -> None:
    assert fact(inputs, statistic="rejected", method="sensr").sum() == 0
    assert fact(inputs, statistic="rejected", method="logistic").min() == 1
    found = measures.verdicts(inputs, "adult", "sex")
    assert not found["sensr", "auc"].rejected
    assert found["logistic", "auc"].rejected
    # Of ten measures with p of .02 in every split none stands after Holm's correction; behind FlipTest's, which is next
    # to 0, one with p of .001 does.
    weak = study_with(lambda d, a, m, x, r: (1.2, 0.001 if x == "auc" else 0.02))
    verdicts = measures.verdicts(weak, "adult", "sex")
    assert verdicts["baseline", "auc"].rejected
    assert not verdicts["baseline", "tpr"].rejected
    assert verdicts["baseline", "auc"].p == pytest.approx(9 * 0.002)


def test_those_that_pass_one_kind_of_audit_are_counted_under_the_other(study_with: Callable[..., Inputs]) -> None:
    """Baseline and Project pass the group tests, Project alone the loss ratio too; one of the two fails."""

    def values(dataset: str, attribute: str, method: str, measure: str, repetition: int) -> tuple[float, float]:
        group = method in ("baseline", "project")
        passes = method == "project" if measure in measures.INDIVIDUAL else group
        return 1.3, 0.9 if passes else 1e-6

    inputs = study_with(values)
    assert set(fact(inputs, statistic="fails_individual_of_passing", dataset="adult")) == {0.5}
    assert set(fact(inputs, statistic="models_that_pass_all", dataset="adult")) == {1}
    assert not len(fact(inputs, statistic="fails_individual_of_passing", dataset="law"))


@pytest.mark.parametrize(
    ("dataset", "method", "measure", "word"),
    [
        ("adult", "threshold_optimizer", "loss_ratio", "no gradient"),
        ("adult", "threshold_optimizer", "robustness", "random"),
        ("compas", "reductions", "robustness", "random"),
        ("law", "baseline", "error_ratio", "no metric"),
    ],
)
def test_what_does_not_apply_says_so_in_a_word(
    inputs: Inputs, dataset: str, method: str, measure: str, word: str
) -> None:
    verdict = measures.verdicts(inputs, dataset, "sex")[method, measure]
    assert (verdict.word, verdict.rejected) == (word, False)
    assert word in measures.WHY


def test_what_a_scale_leaves_out_was_not_run(inputs: Inputs) -> None:
    kept = inputs.rows[~((inputs.rows["method"] == "sensr") & (inputs.rows["audit"] == "permutation"))]
    found = measures.verdicts(Inputs("agreement", "paper", kept, inputs.config, inputs.datasets), "adult", "sex")
    assert found["sensr", "tpr"].word == "not run"
    assert not found["sensr", "loss_ratio"].word


def test_claims_are_decided_by_rows_and_not_by_those_of_a_twin(
    inputs: Inputs, study_with: Callable[..., Inputs]
) -> None:
    by_name = {d.says: d.outcome for d in claims.decide(CLAIMS, artefacts.measurements(inputs))}
    outcomes = dict(zip((claim["says"] for claim in CLAIMS), by_name.values(), strict=True))
    assert outcomes["The audits rank the mitigations in a similar order."] == "confirmed"
    assert outcomes["On Adult, no model passes every audit."] == "not confirmed"
    twin = study_with(origin="twin")
    assert {d.outcome for d in claims.decide(CLAIMS, artefacts.measurements(twin))} == {"not testable here"}


def test_the_tables_hold_effects_intervals_and_decisions(inputs: Inputs) -> None:
    table = artefacts.build("table_adult", inputs)
    assert isinstance(table, StampedTable)
    cell = table.cell("Logistic", "gender", "AUC")
    assert isinstance(cell, Estimate)
    assert (cell.value, cell.n) == (pytest.approx(0.8025), 6)
    assert (cell.text, cell.low < cell.value < cell.high) == ("0.80*", True)
    assert "Logistic low" in typeset.csv(table).splitlines()[0]
    assert table.cell("Thresholds", "both", "loss ratio") == "no gradient"
    assert "no gradient" in table.notes[-1].lower()
    assert isinstance(table.cell("Baseline", "both", "accuracy"), Estimate)
    assert any("median T_n over the repetitions after 500 steps" in note for note in table.notes)
    concordance = artefacts.build("table_concordance", inputs)
    assert isinstance(concordance, StampedTable)
    assert [concordance.labels(row) for row in concordance.rows][:2] == [("Adult", "gender"), ("Adult", "race")]
    assert concordance.cell("W by chance", "Law school", "race") == pytest.approx(1 / 9)


@pytest.mark.parametrize("name", [one.name for one in registry.declared("agreement")])
def test_an_artefact_can_be_set_where_the_law_school_could_not_be_had(name: str, inputs: Inputs) -> None:
    some = inputs.rows[inputs.rows["dataset"] != "law"]
    absent = pd.DataFrame(
        [{"block": "robustness_law", "dataset": "law", "method": "baseline", "audit": "tabular_robustness",
          "study": "agreement", "scale": "paper", "origin": "absent", "repetition": 0, "statistic": "absent",
          "value": 1.0}]
    )  # fmt: skip
    rows = pd.concat([some.astype(dict.fromkeys(some.select_dtypes("category"), object)), absent], ignore_index=True)
    without = Inputs("agreement", "paper", rows, inputs.config, inputs.datasets, inputs.audits)
    studies.check(artefacts.build(name, without))
