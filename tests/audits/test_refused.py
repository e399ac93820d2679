"""What no audit takes, and what it says then."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from pipeline.audits.fliptest.flipsets import Flipsets
from pipeline.audits.fliptest.intervals import over_trials, size_intervals
from pipeline.audits.fliptest.transparency import transparency_report
from pipeline.audits.loss_ratio.admissible import Admissible, check_categories
from pipeline.audits.loss_ratio.ratio_tests import error_rate_ratio_test, loss_ratio_test
from pipeline.audits.permutation.correlation import correlation_test
from pipeline.audits.permutation.metrics import METRICS, UserMetric, metric_named
from pipeline.audits.permutation.monte_carlo import Settings
from pipeline.audits.permutation.outcomes import Counts
from pipeline.audits.permutation.pairs import largest_t
from pipeline.audits.permutation.rate_power import rate_variance
from pipeline.audits.permutation.resamplers import resampler
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.permutation.simulations import table_p
from pipeline.audits.robustness_bias import distances
from pipeline.audits.robustness_bias.inference import sigma_difference, sign_agreement
from pipeline.audits.robustness_bias.measures import Partition, counted
from tests.audits.permutation.builders import BIAS, ROWS, crowd, simulate

RNG = np.random.default_rng(1)
ONE, TWO, THREE = np.ones(1), np.ones(2), np.ones(3)
permuted = partial(permutation_test, rng=RNG)
correlated = partial(correlation_test, names=("score", "age"), rng=RNG)
report = partial(transparency_report, bootstraps=9, alpha=0.05, rng=RNG)

# 240 rows of two groups; as many of three.
OF_THREE = replace(ROWS, groups=tuple("abc"), group=np.arange(240) % 3)
PERSONS = simulate(RNG, (50, 50, 50), (0.5,) * 3, (1.0,) * 3)
BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"score": THREE}, r"expected score of shape \(240,\)"),
    ({"score": np.append([np.nan, np.inf], ROWS.score[2:])}, "score has 2 values that are not finite"),
    ({"group": ROWS.group.astype(float)}, "expected group as integer codes"),
    ({"group": 0 * ROWS.group, "groups": tuple("abc")}, r"groups \['b', 'c'\] have no rows"),
    ({"group": ROWS.group + 1}, "expected group codes below 2, found 2"),
    ({"group": 0 * ROWS.group, "groups": ("a",)}, "at least two groups"),
    ({"prediction": 2 * ROWS.label}, r"expected prediction in \{0, 1\}, found 2"),
    ({"cluster": np.arange(240) // 7}, r"1 clusters \(the first has code 21\) have rows in more than one"),
]

CELLS = np.ones((2, 2, 2), int)
BAD_TABLES = [
    (np.ones((2, 2, 3), int), [0.0, 1.0], [0.0, 1.0], r"of shape \(2, 2, 2\), found \(2, 2, 3\)"),
    (np.ones((2, 2, 2)), [0.0, 1.0], [0.0, 1.0], "expected counts, integers >= 0"),
    (-CELLS, [0.0, 1.0], [0.0, 1.0], "expected counts, integers >= 0"),
    (CELLS, [1.0, 0.0], [1.0, 0.0], "in ascending order"),
    (CELLS, [0.0, 0.4], [0.5, 1.0], "do not overlap"),
    (np.array([[[1, 0], [0, 0]], [[0, 0], [0, 0]]]), [0.0, 1.0], [0.0, 1.0], r"groups \['b'\] have no rows"),
]

MAX_T = [
    (Settings(alternative="greater"), "expected alternative two-sided with correction max_t, found 'greater'"),
    *((Settings(method=method), f"exact or studentized with correction max_t, found '{method}'")
      for method in ("unstudentized", "lift", "bootstrap")),
    (Settings(resampling_risk=0.01), r"expected no resampling_risk with correction max_t, found 0\.01"),
]  # fmt: skip

REFUSED: list[tuple[Callable[[], object], str]] = [
    *((partial(replace, ROWS, **change), message) for change, message in BAD_ROWS),
    *((partial(Counts, table, ("a", "b"), np.array(lower), np.array(upper)), message)
      for table, lower, upper, message in BAD_TABLES),
    (lambda: replace(ROWS, prediction=None).counted(), "rates need decisions"),
    (lambda: replace(ROWS, cluster=np.arange(240)).counted(), "clustered rows are not a table"),
    (lambda: replace(ROWS, label=3 * ROWS.label).counted(), r"expected label in \{0, 1\}, found 3"),
    (lambda: metric_named("f2"), r"expected a metric among tpr, fnr, .*; found 'f2'"),
    (lambda: permuted(ROWS.counted(), "auc"), "auc needs scores, found counts of decisions"),
    (lambda: permuted(ROWS, "auc", method="exact"), "no exact test of auc on these data"),
    (lambda: permuted(ROWS, "auc", method="lift", resampling_risk=0.01), "cannot stop early"),
    (lambda: permuted(ROWS, "tpr", groups=("a", "z")), r"expected groups among \['a', 'b'\], found \['z'\]"),
    (lambda: permuted(ROWS, "tpr", groups=("a", "a")), "expected two different groups"),
    (lambda: permuted(replace(ROWS, prediction=None), "tpr"), "rates need decisions"),
    (lambda: permuted(replace(ROWS, label=2 * ROWS.label), "auc"), r"expected label in \{0, 1\}, found 2"),
    (lambda: permuted(ROWS, "log_loss"), "log_loss needs scores that are probabilities"),
    (lambda: permuted(OF_THREE, "tpr"), "have 3 groups, .*: name two of them"),
    (lambda: permuted(ROWS, lambda y, score, weight: float(score.mean())), "there with weight 0: make it a function"),
    (lambda: permuted(ROWS, UserMetric("wrong", lambda y, s, w: float((s * w).sum() / w.sum()), batched=True)),
     r"expected metric 'wrong' to give \(200,\) values .* found \(\)"),
    (lambda: permuted(ROWS.counted(), BIAS), "metric 'bias' needs rows, found a table of counts"),
    *((partial(resampler, data, METRICS[metric], 1, 1.0, 0), "at most 256 groups to permute row by row, found 257")
      for data, metric in ((crowd(257), "auc"), (crowd(257), "mean_score"), (crowd(257, persons=True), "auc"))),
    *((partial(largest_t, PERSONS, METRICS["auc"], settings, RNG), message) for settings, message in MAX_T),
    (lambda: table_p(CELLS[None].repeat(2, 1)[None], "auc", method="exact", rng=RNG), "expected a rate, found auc"),
    (lambda: correlated(THREE, np.array([1.0, np.nan, 2])), "expected age as 3 finite numbers"),
    (lambda: correlated(np.arange(3.0), np.arange(3.0), method="lift"),
     "expected method studentized or unstudentized for a correlation, found 'lift'"),
    (lambda: rate_variance(0.5, 0.0), r"expected a rate in \[0, 1\] and a share in \(0, 1\]"),
    (lambda: loss_ratio_test(ONE, ONE, 1.25, 0.05), r"at least 2 audit points, found shape \(1,\)"),
    (lambda: loss_ratio_test(-THREE, -THREE, 1.25, 0.05),
     "losses >= 0, found original loss -1: pass losses, not log-probabilities"),
    (lambda: loss_ratio_test(THREE, THREE, 0.0, 0.05), "tolerance delta > 0, found 0.0"),
    (lambda: loss_ratio_test(THREE, THREE, 1.25, 1.0), "alpha between 0 and 1, found 1.0"),
    (lambda: error_rate_ratio_test(0 * THREE, THREE / 2, 1.25, 0.05), "other values among the attacked errors"),
    (lambda: Admissible((ONE / 5, ONE / 2), whole=(0,)).nearest(np.zeros((1, 1))),
     "whole number within the bounds of feature 0"),
    *((partial(check_categories, np.vstack([np.eye(3), row]), [(0, 1, 2)], "abc"),
       "1 rows, the first of them row 3, have no single 1 among the indicators a, b, c")
      for row in ([0, 0, 0], [1, 1, 0], [0.5, 0.5, 0], [2, -1, 0])),
    (lambda: counted(ONE, ONE > 0, "all"), "expected a denominator among paper, correct; found 'all'"),
    (lambda: counted(TWO, ONE > 0, "paper"), r"one distance and one `correct` a point, found \(2,\) and \(1,\)"),
    (lambda: counted(np.array([-1.0, np.nan]), TWO > 0, "paper"), "finite distances of at least 0.* found -1.0"),
    (lambda: counted(np.inf * ONE, ONE > 0, "correct"), "finite distances of at least 0.* found inf"),
    *((partial(Partition, "p", ("a", "b", "c"), np.array(codes)),
       r"partition 'p' has 3 levels, but codes from .* expected -1 \(unknown\) to 2") for codes in ([0, 3], [-2, 0])),
    (lambda: distances.named("fgsm", {}, (0.5,), RNG, None), "attack among exact, exact_in_box, deepfool, .* 'fgsm'"),
    *((partial(compare, TWO, THREE), r"found shapes \(2,\) and \(3,\): list the groups of both in one order")
      for compare in (sign_agreement, sigma_difference)),
    (lambda: size_intervals(8, 3, 10, 0.05), "sizes of two disjoint flipsets of 10 people, found 8 and 3"),
    (lambda: over_trials(TWO, TWO, THREE, 0.0, 0.05), r"a value and two ends for each trial, .* \(2,\), \(2,\) and"),
    (lambda: over_trials(TWO, TWO, TWO, 1.5, 0.05), r"the share of people in common in \[0, 1\], found 1.5"),
    (lambda: Flipsets(np.array([0, 1]), np.array([0.2, 0.7])),
     r"expected decision_image in \{0, 1\}, found .*apply a threshold first"),
    (lambda: Flipsets(ONE, TWO), r"expected one decision_image for each of 1 people, found shape \(2,\)"),
    (lambda: report(np.ones((4, 2)), np.ones((4, 3)), np.ones(4, bool)), r"found \(4, 2\), \(4, 3\) and \(4,\)"),
    (lambda: report(np.ones((4, 2)), np.full((4, 2), np.nan), np.ones(4, bool)), "not finite: leave those people out"),
    (lambda: report(np.ones((4, 2)), np.ones((4, 2)), np.ones(4, bool), units=np.array([1.0, 0.0])),
     r"expected a positive unit for each of 2 features, found \[1\. 0\.\]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_was_expected_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
