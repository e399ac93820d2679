"""The one call: choice of the test, results that agree with themselves, and what they do not depend on."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from fairness_audits.audits.inference import corrected
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.intervals import inverted
from fairness_audits.audits.permutation.metrics import METRICS, Rate
from fairness_audits.audits.permutation.monte_carlo import Alternative, MonteCarlo
from fairness_audits.audits.permutation.outcomes import Counts, Predictions
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset
from pipeline.audits import auc, permutation, sample_size, thresholds
from pipeline.audits.permutation import Config, run
from pipeline.predictions import scores_of, threshold_tables
from tests.audits.permutation.builders import BIAS, at_most, delong, simulate, tabulated
from tests.audits.permutation.builders import ROWS as LOGITS
from tests.builders import chosen, dataset, logistic
from tests.errors import invalid

METHODS = ("studentized", "unstudentized")
KINDS: tuple[Alternative, ...] = ("two-sided", "greater", "less")
RATES = [name for name, metric in METRICS.items() if isinstance(metric, Rate)]
ROWS = replace(LOGITS, score=expit(LOGITS.score))


def checked(data: Predictions | Counts, metric: str, seed: int = 1, **settings: Any) -> Any:
    return permutation_test(data, metric, rng=np.random.default_rng(seed), **{"draws": 400, **settings})


@pytest.mark.parametrize("metric", list(METRICS))
def test_rates_are_exact_and_everything_else_is_studentised(metric: str) -> None:
    result, exact = checked(ROWS, metric), metric in RATES
    assert (result.method, result.exact, result.draws) == (("exact", True, 0) if exact else ("studentized", False, 400))
    assert not result.undefined


def test_recall_is_fishers_test_among_the_positives() -> None:
    table = ROWS.counted().table
    expected = stats.fisher_exact(table[:, 1, ::-1]).pvalue
    assert checked(ROWS, "recall").p_value == pytest.approx(expected)
    assert checked(ROWS.counted(), "fnr").p_value == pytest.approx(expected)
    assert checked(ROWS, "precision").p_value == pytest.approx(stats.fisher_exact(table[:, ::-1, 1]).pvalue)


@pytest.mark.parametrize("metric", ["tpr", "auc", "log_loss"])
@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_result(metric: str, method: str) -> None:
    one, same, other = (checked(ROWS, metric, seed, method=method) for seed in (1, 1, 2))
    assert one == same
    assert one.ci_low != other.ci_low


@pytest.mark.parametrize("metric", ["tpr", "precision", "auc", "mean_error"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_swapping_the_groups_turns_the_result_round(metric: str, method: str) -> None:
    one, other = (checked(ROWS, metric, method=method, draws=2000, groups=tuple(pair)) for pair in ("ab", "ba"))
    assert one.difference == pytest.approx(-other.difference)
    assert one.estimates == other.estimates[::-1]
    assert one.direction in (-other.direction, 0) or other.direction == 0
    assert one.p_value == pytest.approx(other.p_value, abs=1e-12 if one.exact else 0.05)
    assert one.ci_low == pytest.approx(-other.ci_high, abs=1e-9 if one.exact else 0.03)


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("alternative", KINDS)
def test_the_interval_leaves_out_zero_exactly_where_the_test_rejects(method: str, alternative: str) -> None:
    decisions = set()
    for seed, metric in product(range(12), ("tpr", "auc")):
        data = simulate(np.random.default_rng(seed), (60, 40), (0.5, 0.4), (1.0, 0.2 if seed % 2 else 1.8))
        result = checked(data, metric, method=method, alternative=alternative, draws=199)
        assert result.rejected == (not result.ci_low <= 0 <= result.ci_high)
        assert result.rejected == (result.p_value is not None and result.p_value <= 0.05)
        if result.direction:
            assert np.sign(result.difference) == result.direction
            assert result.higher == ("a" if result.direction > 0 else "b")
        decisions.add(result.rejected)
    assert decisions == {True, False}


def drawn_cases() -> Iterator[MonteCarlo]:
    """The observed statistic at every place among the draws; and infinite, with infinite draws of either sign."""
    reference = np.random.default_rng(1).normal(size=199)
    for statistic in [*np.sort(reference), *np.sort(reference) + 1e-6]:
        yield MonteCarlo(2.5 * statistic, statistic, 2.5, reference, stopped=False)
    for difference, positive, negative in product((1.0, -1.0), range(25), range(25)):
        infinite = np.r_[np.full(positive, np.inf), np.full(negative, -np.inf), np.linspace(-2, 2, 151)]
        yield MonteCarlo(difference, difference * np.inf, 0.0, infinite, stopped=False)


@pytest.mark.parametrize("alternative", KINDS)
def test_monte_carlo_intervals_leave_out_zero_exactly_where_p_is_at_most_alpha(alternative: Alternative) -> None:
    """With no help from the verdict."""
    for found in drawn_cases():
        low, high = inverted(found, 0.05, alternative)
        assert (low > 0 or high < 0) == (found.p(alternative) <= 0.05)
        assert low <= found.difference <= high or found.scale


def of_rates(table: Any) -> Counts:
    return Counts.of_decisions(np.array(table), ("a", "b"))


@pytest.mark.parametrize("own", ["greater", "less"])
def test_the_opposite_of_an_infinite_difference_is_not_rejected(own: str) -> None:
    """Precision 1 of 20 rows against 0 of 12, without smoothing: only permutations that part them as well match it."""
    table = [[[5, 0], [5, 20]], [[5, 12], [5, 0]]]
    data = of_rates(table if own == "greater" else table[::-1])
    for alternative in KINDS:
        result = checked(data, "precision", method="studentized", smoothing=0.0, alternative=alternative)
        assert abs(result.statistic or 0) == np.inf
        assert result.p_value == (1 / 401 if alternative in (own, "two-sided") else 1)


def test_a_direction_is_concluded_at_half_the_level() -> None:
    """Some tables are rejected by the two-sided test though neither side is certain enough to be named."""
    unnamed = 0
    for a, b in product(range(13), range(5)):
        data = of_rates([[[1, 1], [12 - a, a]], [[1, 1], [4 - b, b]]])
        two, more, less = (checked(data, "tpr", alternative=kind) for kind in KINDS)
        assert (two.direction == 1) == (more.p_value <= 0.025)
        assert (two.direction == -1) == (less.p_value <= 0.025)
        unnamed += two.rejected and not two.direction
    assert unnamed


@pytest.mark.parametrize("metric", ["tpr", "auc"])
def test_a_one_sided_test_concludes_its_own_side_alone(metric: str) -> None:
    data = simulate(np.random.default_rng(1), (200, 200), (0.5, 0.5), (2.0, 0.3))
    found = [checked(data, metric, alternative=kind) for kind in ("greater", "less")]
    assert [(one.direction, one.rejected) for one in found] == [(1, True), (0, False)]


LABEL, GROUP = np.array([0, 1, 0, 1, 0, 1, 0, 1]), np.repeat([0, 1], 4)
SCORE = np.array([0.2, 0.8, 0.6, 0.4, 0.1, 0.9, 0.2, 0.7])
PREDICTION = np.array([0, 0, 0, 0, 1, 1, 0, 1])
WRONG = np.where(np.arange(8) == 5, 0.0, SCORE)
SMALL = Predictions(LABEL, SCORE, GROUP, ("a", "b"), prediction=PREDICTION)
ONE_CLASS = LABEL * (1 - GROUP)


NO_POSITIVES = "group 'b' has no rows with label 1"
INFINITE = "the log loss of group 'b' is infinite, because a prediction with probability 0 or 1 was wrong"


@pytest.mark.parametrize(
    ("metric", "change", "reason", "estimates"),
    [
        ("tpr", {"label": ONE_CLASS}, NO_POSITIVES, 1),
        ("auc", {"label": ONE_CLASS}, NO_POSITIVES, 1),
        ("precision", {}, "group 'a' has no rows with prediction 1", 1),
        ("log_loss", {"score": WRONG}, INFINITE, 1),
    ],
)
@pytest.mark.parametrize("method", ["auto", "studentized", "unstudentized"])
def test_a_metric_that_does_not_exist_says_why(
    metric: str, change: dict[str, Any], reason: str, estimates: int, method: str
) -> None:
    result = checked(replace(SMALL, **change), metric, method=method)
    assert reason in result.undefined
    assert (result.p_value, result.ci_low, result.ci_high, result.rejected) == (None, None, None, False)
    assert (result.difference is None) == (estimates < 2)
    assert sum(estimate is not None for estimate in result.estimates) == estimates


ALIKE = ("few scores", "many scores", "ranks", "own")


@pytest.mark.parametrize("case", [*ALIKE, "one positive", "one negative"])
def test_a_variance_of_zero_is_one_and_that_of_a_single_row_is_none(case: str) -> None:
    """The rows of group a are all alike, ranked without a fault, or hold one row of a label: then T does not exist."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        label, group, score = rng.integers(0, 2, 90), np.repeat([0, 1], (40, 50)), rng.random(90)
        if case in ALIKE:
            alike = {"ranks": label + score, "own": label + rng.random()}.get(case, rng.random())
            score = np.where(group == 0, alike, rng.random() if case == "few scores" else score)
        else:
            label[:40] = (np.arange(40) == 3) == (case == "one positive")
        rows = Predictions(label, score, group, ("a", "b"))
        metric: Any = {"few scores": "mean_score", "many scores": "mean_score", "own": BIAS}.get(case, "auc")
        found = permutation_test(rows, metric, rng=rng, draws=39, bootstraps=20)
        if case not in ALIKE:
            assert "group 'a' has no variance estimate (too few rows), so the difference" in found.undefined
            continue
        if case == "few scores":  # two numbers in all: each group has its own, which no permutation parts so well
            assert (found.p_value, abs(found.statistic or 0)) == (1 / 40, np.inf)
        elif case == "many scores":
            own = score[group == 1]
            expected = (score[0] - own.mean()) / np.sqrt(own.var(ddof=1) / 50)
            assert found.statistic == pytest.approx(expected)
        assert not found.undefined
        assert found.rejected == (not (found.ci_low or 0) <= 0 <= (found.ci_high or 0))


def test_equal_metrics_of_groups_without_variance_are_not_rejected() -> None:
    """0.1 in every row: the sums of 40 and of 70 such numbers differ by a rounding from 40 and 70 times it."""
    label, group = np.arange(110) % 2, np.repeat([0, 1], (40, 70))
    for score, metric in ((np.full(110, 0.1), "mean_score"), (np.full(110, 0.1), "auc"), (label + 0.1, "auc")):
        found = checked(Predictions(label, score, group, ("a", "b")), metric)
        assert (found.p_value, found.statistic, found.rejected) == (1, 0, False)


@pytest.mark.parametrize("clusters", [False, True])
def test_a_perfect_auc_is_told_from_another_and_its_interval_knows_how_few_pairs_it_is_of(clusters: bool) -> None:
    """Of k pairs without a row in common all are right with a chance of at most .025 where the AUC is .025^(1/k)."""
    rng = np.random.default_rng(1)
    label, group = rng.integers(0, 2, 600), np.repeat([0, 1], (200, 400))
    score = rng.normal(size=600) + np.where(group == 0, 20, 0.66) * label
    persons = np.arange(600) if clusters else None
    found = checked(Predictions(label, score, group, ("a", "b"), cluster=persons), "auc", alternative="equal-tailed")
    assert (found.p_value, found.higher, found.estimates[0]) == (2 / 401, "a", 1)
    k = min(np.bincount(label[:200]))
    reach = found.difference - found.ci_low
    assert reach > 1 - 0.025 ** (1 / k)
    _, variance = delong(label[200:], score[200:])
    assert reach == pytest.approx(np.hypot(1 - 0.025 ** (1 / k), 1.96 * np.sqrt(variance)), rel=0.15)
    assert found.ci_high - found.difference < reach


@pytest.mark.parametrize("spread", [1.0, 0.3])
def test_the_level_holds_where_a_small_group_is_often_ranked_without_a_fault(spread: float) -> None:
    """Equal AUCs of .99, 20 positives and 40 negatives against ten times as many; the groups' scores may differ."""
    simulations, rejected, perfect = 150, 0, 0
    for simulation in range(simulations):
        rng = np.random.default_rng(simulation)
        label, group = np.repeat([0, 1, 0, 1], (40, 20, 400, 200)), np.repeat([0, 1], (60, 600))
        score = (rng.normal(size=660) + np.sqrt(2) * stats.norm.ppf(0.99) * label) * np.where(group == 0, spread, 1)
        found = checked(Predictions(label, score, group, ("a", "b")), "auc", draws=99, alternative="equal-tailed")
        rejected, perfect = rejected + found.rejected, perfect + (found.estimates[0] == 1)
    assert perfect > simulations / 20
    assert at_most(rejected / simulations, 0.05, simulations, deviations=2)


def test_sequential_draws_stop_early_with_the_decision_of_all_or_say_that_they_could_not() -> None:
    for shift in (0.2, 1.0):
        data = simulate(np.random.default_rng(1), (200, 200), (0.5, 0.5), (1.0, shift))
        all_draws = checked(data, "auc", draws=20_000)
        early = checked(data, "auc", draws=20_000, resampling_risk=1e-3)
        assert early.rejected == all_draws.rejected
        assert 200 <= early.draws < 2000
        assert early.p_low <= all_draws.p_value <= early.p_high
        assert "is at most 0.001" in early.guarantee
    data = simulate(np.random.default_rng(3), (200, 200), (0.5, 0.5), (1.0, 0.67))
    result = checked(data, "auc", draws=250, resampling_risk=1e-6)
    assert result.draws == 250
    assert "is still above" in result.guarantee


@pytest.mark.parametrize("steps", [2, 20, 10**6])
@pytest.mark.parametrize("metric", ["auc", "mean_score", "squared_error"])
def test_counts_of_scores_are_tested_like_the_rows(steps: int, metric: str) -> None:
    """With few values of the score by draws of counts, with hardly any two rows alike by the rows."""
    score = np.floor(ROWS.score * steps) / steps
    values, cell = np.unique(score, return_inverse=True)
    by_score = checked(Counts(tabulated(ROWS.group, ROWS.label, cell), ROWS.groups, values), metric, draws=4000)
    by_rows = checked(replace(ROWS, score=score), metric, draws=4000, seed=2)
    assert by_score.estimates == pytest.approx(by_rows.estimates)
    assert by_score.statistic == pytest.approx(by_rows.statistic)
    assert by_score.p_value == pytest.approx(by_rows.p_value, abs=0.04)


def test_an_empty_cell_where_the_loss_is_infinite_does_no_harm() -> None:
    table = np.array([[[9, 40, 30], [0, 20, 60]], [[8, 50, 40], [0, 30, 50]]])
    scores = np.array([0.0, 0.3, 0.7])
    assert not checked(Counts(table, ("a", "b"), scores), "log_loss").undefined
    table[1, 1, 0] = 1
    infinite = checked(Counts(table, ("a", "b"), scores), "log_loss")
    assert "the log loss of group 'b' is infinite" in infinite.undefined


SCALES = [(1.0, 0.0), (2.0**-300, 0.0), (2.0**300, 0.0), (1.0, 2.0**50), (-1.0, 0.0), (550.0, 300.0)]


@pytest.mark.parametrize(("scale", "offset"), SCALES)
@pytest.mark.parametrize("counted", [False, True])
def test_a_test_does_not_depend_on_the_scale_of_the_scores(scale: float, offset: float, counted: bool) -> None:
    """Numbers from 0 to 99, tiny, huge, far from 0, or the other way round."""
    rng = np.random.default_rng(8)
    label, group, plain = rng.integers(0, 2, 600), np.repeat([0, 1], 300), rng.integers(0, 100, 600).astype(float)

    def tested(score: np.ndarray, metric: str) -> Any:
        rows = Predictions(label, score, group, ("a", "b"))
        if counted:
            values, cell = np.unique(score, return_inverse=True)
            return checked(Counts(tabulated(group, label, cell), ("a", "b"), values), metric)
        return checked(rows, metric)

    for metric in ("auc", "mean_score"):
        one, other = tested(plain, metric), tested(offset + scale * plain, metric)
        assert abs(other.statistic) == pytest.approx(abs(one.statistic), rel=1e-6)
        assert other.p_value == pytest.approx(one.p_value, abs=0.1 if scale < 0 else 1e-12)
        if metric == "mean_score":
            assert other.difference == pytest.approx(scale * one.difference, rel=1e-9)
            assert other.estimates[0] == pytest.approx(offset + scale * plain[:300].mean())


def test_scores_too_small_or_large_for_their_squares_are_refused_where_they_are_squared() -> None:
    for scale in (5e-324, 1e200):
        rows = Predictions(LABEL, np.arange(8) * scale, GROUP, ("a", "b"))
        assert checked(rows, "auc").estimates == checked(replace(rows, score=np.arange(8.0)), "auc").estimates
        with invalid(option="score"):
            checked(rows, "mean_score")


def test_zeros_of_either_sign_are_one_score() -> None:
    score = np.where(np.arange(8) % 3 == 0, -0.0, 0.0)
    rows = Predictions(LABEL, score, GROUP, ("a", "b"))
    for metric in ("auc", "mean_score"):
        assert (checked(rows, metric).estimates, checked(rows, metric).p_value) == (
            (0.5, 0.5) if metric == "auc" else (0, 0),
            1,
        )


# The audits: every metric on every attribute of every repetition, by threshold and by sample size.
EVERY = Config(["tpr", "fpr", "auc", "log_loss"], None, 0.5, ["auto", "unstudentized"], 99, 0.05, 1.0)


def people(n: int = 2000) -> Dataset:
    """Two splits in halves; more men, with a larger x on which y depends; race and z say nothing."""
    rng = np.random.default_rng(0)
    sex, race = ((rng.random(n) < share).astype(np.int64) for share in (0.6, 0.2))
    x = rng.normal(size=(n, 2)) + np.column_stack([0.8 * sex, np.zeros(n)])
    y = (rng.random(n) < expit(x[:, 0])).astype(np.int64)
    order, levels = np.stack([rng.permutation(n) for _ in range(2)]), {"sex": ("women", "men"), "race": ("b", "w")}
    return dataset(x, y, {"sex": sex, "race": race}, order[:, : n // 2], order[:, n // 2 :], levels=levels)


DATA, CLASSIFIER = people(), logistic(1.0, 0.0, repetitions=2)
RNGS = generators("audit", repetitions=2)


@pytest.fixture(scope="module")
def audited() -> pd.DataFrame:
    return run(DATA, CLASSIFIER, EVERY, RNGS).rows


def one(audited: pd.DataFrame, **where: object) -> pd.Series:
    return chosen(audited, **where).set_index("statistic")["value"]


def test_who_is_in_neither_group_has_no_part_in_the_tests_of_that_attribute() -> None:
    """The tests are those of the data without these rows, and so is the other attribute with them."""
    outside = np.arange(len(DATA.label)) % 4 == 0
    some = replace(DATA, protected={**DATA.protected, "race": np.where(outside, -1, DATA.protected["race"])})
    config = replace(EVERY, metrics=["tpr", "fpr"], tests=["exact"])
    found = run(some, CLASSIFIER, config, RNGS).rows
    whole = run(DATA, CLASSIFIER, config, RNGS).rows
    test, score = scores_of(DATA, CLASSIFIER, "test")
    group = ~outside[DATA.test[0]] & (test.protected["race"][0] == 1)
    positive = group & (test.label[0] == 1)
    mine = one(found, repetition=0, attribute="race", metric="tpr")
    assert (mine["n_a"], mine["estimate_a"]) == (group.sum(), pytest.approx((score[0][positive] >= 0.5).mean()))
    for metric in ("tpr", "fpr"):
        sides = (one(rows, repetition=1, attribute="sex", metric=metric) for rows in (found, whole))
        pd.testing.assert_series_equal(*(side.drop("p_adjusted") for side in sides))


def test_scores_that_are_no_probabilities_are_refused() -> None:
    parameters = {"coef": np.ones((2, 2)), "intercept": np.zeros(2), "threshold": np.zeros(2)}
    regression = replace(CLASSIFIER, architecture="linear", parameters=parameters)
    with invalid(option="classifier"):
        scores_of(DATA, regression, "test")


def test_recall_is_fishers_test_on_the_test_rows(audited: pd.DataFrame) -> None:
    test, score = scores_of(DATA, CLASSIFIER, "test")
    positive, accepted, sex = test.label[1] == 1, score[1] >= 0.5, test.protected["sex"][1]
    table = [[(positive & (accepted == yes) & (sex == g)).sum() for yes in (True, False)] for g in (1, 0)]
    found = one(audited, repetition=1, attribute="sex", metric="tpr", test="auto")
    assert found["p_value"] == pytest.approx(stats.fisher_exact(table).pvalue)
    assert found["difference"] == pytest.approx(table[0][0] / sum(table[0]) - table[1][0] / sum(table[1]))
    assert (found["exact"], found["draws"], found["undefined"]) == (1, 0, 0)


@pytest.mark.parametrize("test", ["auto", "unstudentized"])
def test_p_values_are_adjusted_over_a_repetition_in_which_rates_that_are_equal_together_are_one_hypothesis(
    test: str,
) -> None:
    """With FNR and TNR beside TPR and FPR, the other p-values are adjusted as without them."""
    config = replace(EVERY, metrics=["tpr", "fpr", "fnr", "tnr", "log_loss"], tests=[test])
    found = chosen(run(DATA, CLASSIFIER, config, RNGS).rows, repetition=1)
    wide = found.pivot_table(index="attribute", columns=["statistic", "metric"], values="value")
    p, adjusted = wide["p_value"], wide["p_adjusted"]
    largest = np.array([p[["tpr", "fnr"]].max(axis=1), p[["fpr", "tnr"]].max(axis=1), p["log_loss"]])
    expected = corrected(largest.ravel(), "holm").reshape(3, 2)
    np.testing.assert_allclose(adjusted[["tpr", "fpr", "log_loss"]].T, expected)
    np.testing.assert_allclose(adjusted[["fnr", "tnr"]].T, expected[:2])


def test_a_threshold_that_accepts_nobody_leaves_precision_undefined() -> None:
    config = replace(EVERY, metrics=["precision", "tpr"], threshold=1.0, tests=["auto"])
    audited = run(DATA, CLASSIFIER, config, RNGS).rows
    undefined = one(audited, repetition=0, attribute="sex", metric="precision", test="auto")
    assert undefined["undefined"] == 1
    assert undefined[["p_value", "p_adjusted", "difference", "ci_low"]].isna().all()
    assert one(audited, repetition=0, attribute="sex", metric="tpr", test="auto")["p_value"] == 1


def test_exact_tests_are_of_rates_alone() -> None:
    audited = run(DATA, CLASSIFIER, replace(EVERY, tests=["exact"]), RNGS).rows
    assert set(audited["metric"]) == {"tpr", "fpr"}


# Rates, their tests and the least difference detected, by threshold; the AUC of the test rows.
CONFIG = thresholds.Config(["tpr", "fpr"], ["sex"], 11, 999, 0.05)
SIZES = sample_size.Config(["tpr"], ["sex"], ["exact"], [200, 800], 5, "test", 9, 0.1, 0.9, 5, 99, 0.05)


@pytest.fixture(scope="module")
def by_thresholds() -> pd.DataFrame:
    return thresholds.run(DATA, CLASSIFIER, CONFIG, RNGS).rows


def by_threshold(audited: pd.DataFrame, statistic: str, test: str, metric: str = "tpr") -> np.ndarray:
    found = chosen(audited, statistic=statistic, test=test, metric=metric, repetition=0)
    return found.sort_values("threshold")["value"].to_numpy()


def test_tables_are_those_of_each_decision_with_the_threshold_itself_accepted() -> None:
    rng = np.random.default_rng(1)
    label, protected = rng.integers(2, size=(2, 300))
    score, at = rng.integers(11, size=300) / 10, np.arange(11) / 10
    expected = [tabulated(1 - protected, label, (score >= threshold).astype(int)) for threshold in at[1:]]
    found = threshold_tables(label, score, protected, at)
    np.testing.assert_array_equal(found[1:], expected)
    assert not found[0][..., 0].any()
    np.testing.assert_array_equal(found[0].sum(axis=-1), found[5].sum(axis=-1))


def test_the_difference_is_of_men_and_women_and_vanishes_where_all_are_decided_alike(
    by_thresholds: pd.DataFrame,
) -> None:
    test = DATA.test[0]
    positive, men = DATA.label[test] == 1, DATA.protected["sex"][test] == 1
    accepted = expit(DATA.features[test, 0]) >= 0.5
    expected = accepted[positive & men].mean() - accepted[positive & ~men].mean()
    difference = by_threshold(by_thresholds, "difference", "")
    assert difference[5] == pytest.approx(expected)
    np.testing.assert_allclose(difference[[0, -1]], 0)


@pytest.mark.parametrize("test", ["studentized", "exact"])
@pytest.mark.parametrize("metric", ["tpr", "fpr"])
def test_a_difference_is_rejected_where_it_is_beyond_the_bound_of_the_normal_limit(
    by_thresholds: pd.DataFrame, test: str, metric: str
) -> None:
    names = ("estimate_a", "estimate_b", "n_a", "n_b", "difference")
    a, b, n_a, n_b, difference = (by_threshold(by_thresholds, name, "", metric) for name in names)
    reach = np.abs(difference) / (stats.norm.isf(0.025) * np.sqrt(a * (1 - a) / n_a + b * (1 - b) / n_b) + 1e-9)
    rejected = by_threshold(by_thresholds, "rejected", test, metric)
    assert set(rejected) == {0, 1}
    assert rejected[reach > 1.3].all()
    assert not rejected[reach < 0.8].any()


def test_the_95th_percentile_is_that_of_the_normal_limit(by_thresholds: pd.DataFrame) -> None:
    """At threshold .5: the permutation's variance pools the groups."""
    a, b, n_a, n_b = (by_threshold(by_thresholds, s, "")[5] for s in ("estimate_a", "estimate_b", "n_a", "n_b"))
    z = stats.norm.isf(0.025)
    pooled = (n_a * a + n_b * b) / (n_a + n_b)
    # Positives move between the groups with the rows: as many as the shares of rows, not of positives.
    assert by_threshold(by_thresholds, "percentile_95", "")[5] == pytest.approx(
        z * np.sqrt(pooled * (1 - pooled) / ((n_a + n_b) * 0.6 * 0.4)), rel=0.1
    )


def test_larger_samples_detect_smaller_differences() -> None:
    found = sample_size.run(DATA, CLASSIFIER, replace(SIZES, samples=10), RNGS).rows
    least, once, ratio = (
        chosen(found, statistic=name) for name in ("minimum_difference", "minimum_difference_corrected", "detectable")
    )
    by_size = least.groupby("n")["value"].median()
    assert by_size[800] < by_size[200]
    known = once["value"].notna().to_numpy()
    assert (once["value"].to_numpy()[known] >= least["value"].to_numpy()[known]).all()
    mean = ratio.groupby("n")["value"].mean()
    assert mean[200] / mean[800] == pytest.approx(2, rel=0.1)


def test_a_threshold_with_an_empty_cell_is_not_tested() -> None:
    tables = np.array([[[[[9, 9], [9, 9]], [[9, 9], [4, 9]]], [[[9, 9], [30, 5]], [[9, 9], [5, 30]]]]])
    found = sample_size.minima(tables, "tpr", "exact", SIZES, np.random.default_rng(0))
    assert found["minimum_difference"][0] == pytest.approx(25 / 35)


def test_the_auc_and_its_error_are_delongs() -> None:
    found = auc.run(DATA, CLASSIFIER, auc.Config(["sex"]), RNGS).rows
    test = DATA.test[1]
    men = DATA.protected["sex"][test] == 1
    for group, inside in (("", test), ("men", test[men]), ("women", test[~men])):
        expected, variance = delong(DATA.label[inside], DATA.features[inside, 0])
        values = one(found, repetition=1, group=group)
        assert (values["auc"], values["auc_std_error"]) == pytest.approx((expected, np.sqrt(variance)))
        assert (values["n"], values["positives"]) == (len(inside), DATA.label[inside].sum())


@pytest.mark.parametrize(
    ("audit", "config", "named"),
    [
        (permutation, replace(EVERY, attributes=["age"]), {"option": "attributes", "column": "age"}),
        (thresholds, replace(CONFIG, attributes=["age"]), {"option": "attributes", "column": "age"}),
        (sample_size, replace(SIZES, sizes=[2000]), {"option": "sizes"}),
    ],
)
def test_what_is_not_there_is_named(audit: Any, config: Any, named: dict[str, str]) -> None:
    with invalid(source="toy", **named):
        audit.run(DATA, CLASSIFIER, config, RNGS)
