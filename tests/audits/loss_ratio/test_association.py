"""A learned direction is judged only if the inputs carry the attribute; the placebo says how particular a ratio is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from fairness_audits import texts
from fairness_audits.audits.association import association

SAMPLES = 300
INPUTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "few columns": lambda rng: rng.normal(size=(60, 3)),
    "as many columns as rows": lambda rng: rng.normal(size=(60, 58)),
    "more columns than rows": lambda rng: rng.normal(size=(40, 100)),
    "heavy tails": lambda rng: rng.standard_cauchy(size=(60, 3)),
    "indicators of one category": lambda rng: np.eye(20)[rng.integers(0, 20, 60)],
    "a constant and a copy": lambda rng: rng.normal(size=(60, 1)) * [1, 1, 0] + [0, 0, 7],
}


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("rare", [0.5, 0.1])
def test_the_level_holds_whatever_the_columns(kind: str, rare: float) -> None:
    rng = np.random.default_rng(1)
    p = []
    for _ in range(SAMPLES):
        x = INPUTS[kind](rng)
        group = rng.permutation(np.arange(len(x)) < rare * len(x)).astype(int)
        p.append(association(x, group, rng, draws=19)[0])
    # Three standard errors above the level; ties make the test conservative, never liberal.
    for level in (0.05, 0.2):
        assert np.mean(np.array(p) <= level) < level + 3 * np.sqrt(level * (1 - level) / SAMPLES)


@pytest.mark.parametrize("slope", [0.0, 0.1, 0.15])
def test_in_many_rows_it_is_the_likelihood_ratio_test(slope: float) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2000, 4))
    group = (rng.random(2000) < 1 / (1 + np.exp(-slope * x[:, 0] - 1))).astype(int)
    fitted = LogisticRegression(C=np.inf).fit(x, group).predict_proba(x)[:, 1]

    def likelihood(p: Any) -> float:
        return float(np.log(np.where(group == 1, p, 1 - p)).sum())

    statistic = 2 * (likelihood(fitted) - likelihood(group.mean()))
    p, signal = association(x, group, rng, draws=4999)
    assert p == pytest.approx(chi2.sf(statistic, 4), abs=0.02)
    assert signal == pytest.approx(max(0, 1 - 4 / statistic), abs=0.03)


def people(seed: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """Two of the inputs show ``sex``, none shows ``born``; the label depends on merit, and on sex for some."""
    rng = np.random.default_rng(seed)
    n = 1500
    sex = rng.integers(0, 2, n)
    X = pd.DataFrame(
        {
            "merit": rng.normal(size=n),
            "title": np.where(rng.random(n) < 0.95, sex, 1 - sex).astype(float),
            "uniform": np.where(rng.random(n) < 0.8, sex, 1 - sex).astype(float),
        }
    )
    label = (X["merit"] + 2 * (sex - 0.5) + rng.logistic(size=n) > 0).to_numpy(int)
    return X, label, pd.DataFrame({"sex": sex, "born": rng.permutation(np.arange(n) % 2)})


@pytest.fixture(scope="module")
def model() -> LogisticRegression:
    X, y, _ = people(0)
    return LogisticRegression().fit(X, y)


@pytest.mark.parametrize(
    ("sensitive", "delta", "outcome"),
    [
        (["sex"], 1.25, "rejected"),
        (["sex"], 50.0, "not rejected"),
        (["born"], 1.25, "inconclusive"),
        (["sex", "born"], 1.25, "inconclusive"),
    ],
)
def test_a_direction_without_evidence_is_not_judged(
    model: LogisticRegression, sensitive: list[str], delta: float, outcome: str
) -> None:
    X, y, attributes = people(1)
    found = fa.loss_ratio(model, X, y, sensitive=attributes[sensitive], standardize="none", delta=delta, steps=200)
    evidence = found.facts["fair_metric"]
    assert found.outcome == outcome
    assert all((evidence["association"][name] <= 0.01) == (name == "sex") for name in sensitive)
    assert all((evidence["signal"][name] > 0.9) == (name == "sex") for name in sensitive)
    if outcome == "inconclusive":
        assert found.verdict.reason is not None
        assert "'born'" in found.verdict.reason
        assert found.verdict.facts["rejected"] is None
        assert "reject" not in found.verdict.sentence
        assert found.brief is not None
        assert found.verdict.reason in found.brief.sure
        # The same model is judged along a direction that is given.
        given = fa.loss_ratio(model, X, y, directions=[0, 1, 1], standardize="none", steps=200)
        assert given.outcome == "rejected"
        assert given.facts["fair_metric"]["association"] == {}


@pytest.mark.parametrize(
    ("rejected", "bound", "placebo", "told"),
    [(True, 1.5, 1.4, False), (True, 1.5, 1.5, True), (True, 1.5, None, False), (False, 1.1, 1.2, False)],
)
def test_the_verdict_says_where_a_rejection_is_not_particular_to_the_attribute(
    rejected: bool, bound: float, placebo: float | None, told: bool
) -> None:
    facts = {
        "test": {"rejected": rejected, "T_n": bound},
        "placebo": None if placebo is None else {"S_n": placebo},
        "whole": False,
    }
    assert bool(texts.named("loss_ratio", "beside_placebo", facts)) == told


def test_metric_samples_show_how_much_the_ratio_varies_with_the_rows_of_the_metric() -> None:
    """As much as over new rows for the metric, about. The test itself does not change."""
    weights = np.array([[1.0, 1.0, -1.0, 0.5]])
    rng = np.random.default_rng(8)

    def drawn(n: int) -> tuple[pd.DataFrame, np.ndarray]:
        sex = rng.integers(0, 2, n)
        X = pd.DataFrame(rng.normal(size=(n, 4)) + np.outer(sex, [0.6, 0.6, 0, 0]), columns=list("abcd"))
        return X, sex

    X, sex = drawn(600)
    y = (X.to_numpy() @ weights[0] + rng.logistic(size=600) > 0).astype(int)
    fitted = LogisticRegression().fit(X, y)
    options: Any = {"standardize": "none", "steps": 100, "placebo": "none", "bounds": "none"}
    with_samples, without = (
        fa.loss_ratio(fitted, X, y, sensitive=pd.DataFrame({"sex": sex}), metric_samples=samples, **options)
        for samples in (20, 0)
    )
    assert with_samples.facts["results"] == without.facts["results"]
    assert without.facts["metric_samples"] is None
    found = with_samples.facts["metric_samples"]
    assert (found["asked"], found["samples"], found["rows"]) == (20, 20, 200)
    means = []
    for _ in range(20):
        others, group = drawn(600)
        audited = fa.loss_ratio(
            fitted, X, y, sensitive=pd.DataFrame({"sex": sex}), reference=others.assign(sex=group), metric_samples=0,
            **options,
        )  # fmt: skip
        means.append(audited.facts["results"]["loss_ratio"]["S_n"])
    assert 0.5 < found["deviation"] / np.log(means).std(ddof=1) < 2
    bound = with_samples.facts["results"]["loss_ratio"]["T_n"]
    assert found["low"] < bound < found["high"]


def test_samples_without_a_rare_group_are_not_counted_and_given_directions_have_none(model: LogisticRegression) -> None:
    X, y, _ = people(2)
    rare = pd.DataFrame({"rare": (np.arange(len(X)) == 7).astype(int)})
    found = fa.loss_ratio(model, X, y, sensitive=rare, standardize="none", steps=20).facts["metric_samples"]
    assert found["asked"] == 10
    assert 2 <= found["samples"] < 10
    given = fa.loss_ratio(model, X, y, directions=[0, 1, 1], standardize="none", steps=20)
    assert given.facts["metric_samples"] is None
