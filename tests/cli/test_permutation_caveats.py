"""When the permutation audit warns that more draws may change a decision."""

from __future__ import annotations

import pytest

from pipeline.cli.audit.permutation.asked import Asked, asked
from pipeline.cli.audit.permutation.caveats import _of_draws
from pipeline.cli.audit.permutation.evidence import Finding, _corrected
from pipeline.cli.entry import parser
from pipeline.permutation.result import PermutationTest


@pytest.mark.parametrize("lowest", [0.05, 0.2])
def test_a_decision_is_near_where_its_adjusted_p_value_is(lowest: float) -> None:
    """Two tests with intervals around p: Holm doubles the smaller, so .025 is near the level .05, and .05 is not."""
    tests = [_test(lowest / 2, lowest / 2.5, lowest / 1.6), _test(0.6, 0.58, 0.62)]
    made = _corrected([Finding("sex", "AUC", test, "every row", 100) for test in tests], "holm", 99)
    low, high = made[0].adjusted_low, made[0].adjusted_high
    assert (low, made[0].adjusted, high) == pytest.approx((lowest / 1.25, lowest, lowest / 0.8))
    assert bool(_of_draws(list(made), _asked(0.05))) == (lowest == 0.05)


def _test(p: float, low: float, high: float) -> PermutationTest:
    known = {"metric": "auc", "groups": ("f", "m"), "method": "studentized", "alternative": "two-sided", "alpha": 0.05}
    sizes = {"estimates": (0.5, 0.6), "sizes": (100, 100), "units": (100, 100), "draws": 999}
    return PermutationTest(**known, **sizes, p_value=p, p_low=low, p_high=high)  # type: ignore[arg-type]


def _asked(alpha: float) -> Asked:
    given = [
        "audit",
        "permutation",
        "--predictions",
        "f",
        "--label",
        "y",
        "--score",
        "p",
        "--group",
        "sex",
        "--metric",
        "auc",
        "--alpha",
        str(alpha),
    ]
    return asked(parser().parse_args(given))
