"""When the permutation audit warns that more draws may change a decision."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.audits.correction import corrected_once
from pipeline.audits.permutation.result import PermutationTest
from pipeline.cli.audit.permutation.document import of_draws
from pipeline.cli.audit.permutation.evidence import (
    Finding,
    Job,
    Plan,
    _corrected,
    hypotheses,
    planned,
    with_enough_draws,
)
from pipeline.cli.entry import parser, settings_of


@pytest.mark.parametrize("lowest", [0.05, 0.2])
def test_a_decision_is_near_where_its_adjusted_p_value_is(lowest: float) -> None:
    """Two tests with intervals around p: Holm doubles the smaller, so .025 is near the level .05, and .05 is not."""
    tests = [_test(lowest / 2, lowest / 2.5, lowest / 1.6), _test(0.6, 0.58, 0.62)]
    made = _corrected(_found(*tests), "holm", 99)
    low, high = made[0].adjusted_low, made[0].adjusted_high
    assert (low, made[0].adjusted, high) == pytest.approx((lowest / 1.25, lowest, lowest / 0.8))
    assert bool(of_draws(list(made), _asked())["near_the_level"]) == (lowest == 0.05)


def test_a_hypothesis_that_two_tests_are_of_is_counted_once() -> None:
    """Three tests, two hypotheses: Holm doubles the least p-value, and both tests of a hypothesis have its larger p."""
    tests = [_test(p, p, p) for p in (0.01, 0.012, 0.4)]
    made = _corrected(_found(*tests, of=("tpr", "tpr", "fpr")), "holm", 99)
    assert [finding.adjusted for finding in made] == pytest.approx([0.024, 0.024, 0.4])
    assert hypotheses(made) == 2


@pytest.mark.parametrize(
    ("correction", "draws"),
    # Six p-values of 2 / (B + 1): six times that is at most .05 from B = 239 on, 6 (1 + ... + 1/6) times from 587 on.
    # The largest |T| has one tail.
    [("holm", 239), ("bonferroni", 239), ("bh", 239), ("by", 587), ("max-t", 19), ("none", 39)],
)
def test_as_many_draws_are_made_as_one_rejection_needs(correction: str, draws: int) -> None:
    """At the least number the smallest possible p-value is rejected beside five of 1; below it is refused."""
    jobs = [Job(lambda asked: [], ((f"metric {number}",),), drawn=True) for number in range(6)]
    least = np.array([2 / (draws + 1), *[1.0] * 5])
    if correction in ("holm", "bonferroni", "bh", "by"):
        assert corrected_once(least, list("abcdef"), correction)[0] <= 0.05
        assert corrected_once(np.array([2 / draws, *[1.0] * 5]), list("abcdef"), correction)[0] > 0.05
    made = with_enough_draws(_asked("--correct", correction, "--draws", str(draws)), jobs)
    assert made.draws == draws
    assert with_enough_draws(_asked("--correct", correction), jobs).draws == 10_000
    few = _asked("--correct", correction, "--draws", str(draws - 1))
    with pytest.raises(ValueError, match=rf"--draws {draws - 1} cannot reject .* give at least --draws {draws}"):
        with_enough_draws(few, jobs)
    one_tail = _asked("--correct", correction, "--alternative", "two-sided", "--draws", str(draws // 2))
    if correction != "max-t":
        assert with_enough_draws(one_tail, jobs).draws == draws // 2
    exact = [replace(job, drawn=False) for job in jobs]
    assert with_enough_draws(few, exact) == few


def test_many_tests_get_more_draws_unasked() -> None:
    jobs = [Job(lambda asked: [], ((f"{number}",),), drawn=True) for number in range(780)]
    made = with_enough_draws(_asked(), jobs)
    assert (made.draws, made.own_draws) == (31_199, 31_199)


def _found(*tests: PermutationTest, of: tuple[str, ...] = ()) -> list[Finding]:
    names = of or [f"metric {number}" for number in range(len(tests))]
    return [Finding("sex", "AUC", test, "every row", 100, (name,)) for test, name in zip(tests, names, strict=True)]


def _test(p: float, low: float, high: float, draws: int = 999) -> PermutationTest:
    known = {"metric": "auc", "groups": ("f", "m"), "method": "studentized", "alternative": "two-sided", "alpha": 0.05}
    sizes = {"estimates": (0.5, 0.6), "sizes": (100, 100), "units": (100, 100), "draws": draws}
    return PermutationTest(**known, **sizes, p_value=p, p_low=low, p_high=high)  # type: ignore[arg-type]


def _asked(*options: str) -> Plan:
    audit = "audit permutation --predictions f --label y --score p --group sex --metric auc"
    return planned(settings_of(parser().parse_args([*audit.split(), *options])))  # type: ignore[arg-type]
