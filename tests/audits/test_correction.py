"""Corrections for the number of hypotheses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairness_audits.audits.inference import corrected, corrected_once
from fairness_audits.audits.permutation.metrics import METRICS, Rate, UserMetric, hypothesis, metric_named

P = np.array([0.04, 0.001, 0.03, 0.02])


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        # In ascending order .001, .02, .03, .04: times 4, 3, 2, 1, never falling.
        ("holm", [0.06, 0.004, 0.06, 0.06]),
        ("bonferroni", [0.16, 0.004, 0.12, 0.08]),
        # Times 4, 2, 4/3, 1; for any dependence also times 1 + 1/2 + 1/3 + 1/4.
        ("bh", [0.04, 0.004, 0.04, 0.04]),
        ("by", [0.04 * 25 / 12, 0.004 * 25 / 12, 0.04 * 25 / 12, 0.04 * 25 / 12]),
        ("none", [0.04, 0.001, 0.03, 0.02]),
    ],
)
def test_p_values_are_those_of_the_definitions(correction: str, expected: list[float]) -> None:
    np.testing.assert_allclose(corrected(P, correction), expected)
    np.testing.assert_allclose(corrected(np.insert(P, 1, np.nan), correction), np.insert(expected, 1, np.nan))
    assert len(corrected(P[:0], correction)) == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=8), st.sampled_from(["holm", "bonferroni", "bh", "by"]))
def test_a_hypothesis_tested_twice_is_counted_once(values: list[float], correction: str) -> None:
    """The second test of a hypothesis, with a smaller p-value, changes nothing; both get what the larger one gets."""
    p = np.array(values)
    twice, of = np.concatenate([p, p / 2]), [*range(len(p)), *range(len(p))]
    np.testing.assert_allclose(corrected_once(twice, of, correction), np.tile(corrected(p, correction), 2))


def test_complementary_shares_are_one_hypothesis_and_others_are_not() -> None:
    found = {name: hypothesis(metric) for name, metric in METRICS.items()}
    assert (found["fnr"], found["tnr"]) == ("tpr", "fpr")
    assert all(found[name] == name for name in METRICS if name not in ("fnr", "tnr"))
    # What makes it so: the two masks add up to the rows that both are shares of.
    tpr, fnr = metric_named("tpr"), metric_named("fnr")
    assert isinstance(tpr, Rate)
    assert isinstance(fnr, Rate)
    assert (np.array(tpr.event) + np.array(fnr.event) == np.array(tpr.among)).all()
    assert hypothesis(UserMetric("fnr", lambda y, score, weight: 0.0)) not in found.values()
