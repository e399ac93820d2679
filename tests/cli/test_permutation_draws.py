"""When the permutation audit warns that more draws may change a decision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.audits.permutation.result import PermutationTest
from pipeline.cli.audit.permutation.asked import Asked, asked
from pipeline.cli.audit.permutation.caveats import of_draws
from pipeline.cli.audit.permutation.evidence import Finding, _corrected, hypotheses
from pipeline.cli.entry import parser


@pytest.mark.parametrize("lowest", [0.05, 0.2])
def test_a_decision_is_near_where_its_adjusted_p_value_is(lowest: float) -> None:
    """Two tests with intervals around p: Holm doubles the smaller, so .025 is near the level .05, and .05 is not."""
    tests = [_test(lowest / 2, lowest / 2.5, lowest / 1.6), _test(0.6, 0.58, 0.62)]
    made = _corrected(_found(*tests), "holm", 99)
    low, high = made[0].adjusted_low, made[0].adjusted_high
    assert (low, made[0].adjusted, high) == pytest.approx((lowest / 1.25, lowest, lowest / 0.8))
    assert bool(list(of_draws(list(made), _asked()))) == (lowest == 0.05)


def test_a_hypothesis_that_two_tests_are_of_is_counted_once() -> None:
    """Three tests, two hypotheses: Holm doubles the least p-value, and both tests of a hypothesis have its larger p."""
    tests = [_test(p, p, p) for p in (0.01, 0.012, 0.4)]
    made = _corrected(_found(*tests, of=("tpr", "tpr", "fpr")), "holm", 99)
    assert [finding.adjusted for finding in made] == pytest.approx([0.024, 0.024, 0.4])
    assert hypotheses(made) == 2


@pytest.mark.parametrize(
    ("correction", "draws", "words"),
    [
        # Six p-values of 1 / (B + 1): six times that is at most .05 from B = 119 on.
        ("holm", 99, "99 draws are too few to reject after a correction for 6 tests, whatever the difference"),
        ("holm", 119, ""),
        ("bonferroni", 118, "118 draws are too few to reject after a correction for 6 tests"),
        # If all six are as small as can be, the sixth of them is not corrected; one alone is multiplied by six.
        ("bh", 99, "99 draws are too few to reject one of 6 tests alone after the correction"),
        ("bh", 119, ""),
        ("max-t", 19, ""),
        ("max-t", 18, "18 draws are too few to reject at level 0.05, whatever the difference"),
        ("none", 18, "18 draws are too few to reject at level 0.05"),
    ],
)
def test_draws_are_too_few_where_no_p_value_can_be_small_enough(correction: str, draws: int, words: str) -> None:
    tests = [_test(0.5, 0.45, 0.55, draws) for _ in range(6)]
    said = " ".join(caveat.text for caveat in of_draws(_found(*tests), _asked("--correct", correction)))
    assert said.startswith(words)
    assert bool(said) == bool(words)


def test_exact_tests_leave_the_draws_of_the_others_more_to_reject_with() -> None:
    """Five exact tests that may all be rejected before: the sixth, drawn, is then not corrected by Holm's method."""
    tests = [replace(_test(0.5, 0.5, 0.5, 0), exact=True) for _ in range(5)]
    said = " ".join(caveat.text for caveat in of_draws(_found(*tests, _test(0.5, 0.45, 0.55, 99)), _asked()))
    assert "99 draws are too few to reject one of 6 tests alone after the correction" in said
    assert list(of_draws(_found(*tests), _asked())) == []


def _found(*tests: PermutationTest, of: tuple[str, ...] = ()) -> list[Finding]:
    names = of or [f"metric {number}" for number in range(len(tests))]
    return [Finding("sex", "AUC", test, "every row", 100, (name,)) for test, name in zip(tests, names, strict=True)]


def _test(p: float, low: float, high: float, draws: int = 999) -> PermutationTest:
    known = {"metric": "auc", "groups": ("f", "m"), "method": "studentized", "alternative": "two-sided", "alpha": 0.05}
    sizes = {"estimates": (0.5, 0.6), "sizes": (100, 100), "units": (100, 100), "draws": draws}
    return PermutationTest(**known, **sizes, p_value=p, p_low=low, p_high=high)  # type: ignore[arg-type]


def _asked(*options: str) -> Asked:
    audit = "audit permutation --predictions f --label y --score p --group sex --metric auc"
    return asked(parser().parse_args([*audit.split(), *options]))
