"""What Python's functions of the audits do not take, and what they say then; columns of a table are the commands'."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fairness_audits.audits.admissible import Admissible, check_categories
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.metrics import METRICS, UserMetric, metric_named
from fairness_audits.audits.permutation.monte_carlo import Settings
from fairness_audits.audits.permutation.outcomes import Counts
from fairness_audits.audits.permutation.pairs import largest_t
from tests.audits.permutation.builders import BIAS, ROWS, simulate

RNG = np.random.default_rng(1)
permuted = partial(permutation_test, rng=RNG)

# 240 rows of two groups; as many of three.
OF_THREE = replace(ROWS, groups=tuple("abc"), group=np.arange(240) % 3)
PERSONS = simulate(RNG, (50, 50, 50), (0.5,) * 3, (1.0,) * 3)

CELLS = np.ones((2, 2, 2), int)
BAD_TABLES = [
    (np.ones((2, 2, 3), int), [0.0, 1.0], r"of shape \(2, 2, 2\), found \(2, 2, 3\)"),
    (np.ones((2, 2, 2)), [0.0, 1.0], "expected counts, integers >= 0"),
    (-CELLS, [0.0, 1.0], "expected counts, integers >= 0"),
    (CELLS, [1.0, 0.0], "in ascending order"),
    (np.array([[[1, 0], [0, 0]], [[0, 0], [0, 0]]]), [0.0, 1.0], r"groups \['b'\] have no rows"),
]

MAX_T = [
    (Settings(alternative="greater"), "expected alternative two-sided with correction max-t, found 'greater'"),
    (Settings(method="unstudentized"), "exact or studentized with correction max-t, found 'unstudentized'"),
    (Settings(resampling_risk=0.01), r"expected no resampling_risk with correction max-t, found 0\.01"),
]

REFUSED: list[tuple[Callable[[], object], str]] = [
    *((partial(Counts, table, ("a", "b"), np.array(score)), message)
      for table, score, message in BAD_TABLES),
    (lambda: metric_named("f2"), r"a metric among tpr, fnr, .*; found 'f2'"),
    (lambda: permuted(ROWS.counted(), "auc"), "auc needs scores, found counts of decisions"),
    (lambda: permuted(ROWS, "auc", method="exact"), "metric auc has no exact test on these data"),
    (lambda: permuted(ROWS, "tpr", groups=("a", "z")), r"expected groups among \['a', 'b'\], found \['z'\]"),
    (lambda: permuted(ROWS, "tpr", groups=("a", "a")), "expected two different groups"),
    (lambda: permuted(replace(ROWS, prediction=None), "tpr"), "rates need decisions"),
    (lambda: permuted(ROWS, "log_loss"), "log_loss needs scores that are probabilities"),
    (lambda: permuted(OF_THREE, "tpr"), "have 3 groups, .*: name two of them"),
    (lambda: permuted(ROWS, lambda y, score, weight: float(score.mean())), "0: make it respect the weights"),
    (lambda: permuted(ROWS, UserMetric("wrong", lambda y, s, w: float((s * w).sum() / w.sum()), batched=True)),
     r"expected metric 'wrong' to return shape \(200,\) .* found \(\)"),
    (lambda: permuted(ROWS.counted(), BIAS), "metric 'bias' needs rows, found a table of counts"),
    *((partial(largest_t, PERSONS, METRICS["auc"], settings, RNG), message) for settings, message in MAX_T),
    (lambda: Admissible((np.full(1, 0.2), np.full(1, 0.5)), whole=(0,)).nearest(np.zeros((1, 1))),
     "whole number within the bounds of feature 0"),
    *((partial(check_categories, np.vstack([np.eye(3), row]), [(0, 1, 2)], "abc"),
       r"the indicators a, b, c do not have exactly one 1 in every row: 1 wrong, the first is row 3 \(counted from 0\)")
      for row in ([0, 0, 0], [1, 1, 0], [0.5, 0.5, 0], [2, -1, 0])),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_was_expected_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
