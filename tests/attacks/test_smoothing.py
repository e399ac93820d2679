"""Certificates: closed forms for half-spaces, their level under any stopping, their cost, and whose noise is whose."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from statsmodels.stats.proportion import proportion_confint

from fairness_audits.attacks import Execution
from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.attacks.smoothing import (
    ESTIMATION,
    SamplePlan,
    certify,
    estimated,
    lower_limit,
    radius,
    upper_limit,
)
from fairness_audits.values import Array
from tests.attacks.builders import linear


def tossed(share: Array, plan: SamplePlan, seed: int = 0) -> tuple[Array, Array]:
    """Lower limits and sample sizes of points that are right, class 0, with a probability of their own (n,)."""
    rng = np.random.default_rng(seed)

    def cast(points: Array, phase: int, start: int, stop: int) -> Iterator[tuple[Array, Array]]:
        assert phase == ESTIMATION
        for point in points:
            yield np.array([point]), (rng.random((1, stop - start)) >= share[point]).astype(int)

    votes: Any = SimpleNamespace(cast=cast)
    return estimated(votes, plan, np.arange(len(share)), np.zeros(len(share), dtype=int))


def plan_of(samples: int, alpha: float = 0.001, **changes: Any) -> SamplePlan:
    """The default plan, but for what is said."""
    settings: dict[str, Any] = {"first_samples": 100, "growth": 1.5, "tolerance": 0.1, **changes}
    return SamplePlan(0.125, 100, samples, alpha, seed=0, **settings)


@pytest.mark.parametrize("share", [0.55, 0.8, 0.95, 0.999])
def test_the_limit_is_too_high_for_at_most_alpha_of_all_points_whenever_one_stops(share: float) -> None:
    points, alpha = 3000, 0.1
    # Without a tolerance every look is taken, and the largest limit of all counts: the worst that stopping can do.
    for tolerance in (0.0, 0.3):
        lower, _ = tossed(np.full(points, share), plan_of(2000, alpha, tolerance=tolerance))
        assert (lower > share).mean() <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / points)


def test_the_error_probability_is_shared_out_and_all_of_it_goes_to_a_single_look() -> None:
    many, one = plan_of(100_000), plan_of(100_000, first_samples=100_000)
    assert many.level * len(many.sizes) == pytest.approx(0.001)
    assert (one.sizes, one.level) == ((100_000,), 0.001)
    assert many.sizes[0] == 100
    assert many.sizes[-1] == 100_000
    assert all(a < b <= 1.5 * a + 100 for a, b in zip(many.sizes, many.sizes[1:], strict=False))


@pytest.mark.parametrize("share", [0.4, 0.6, 0.9, 0.99])
def test_a_clear_radius_costs_a_tenth_of_the_fixed_sample(share: float) -> None:
    lower, drawn = tossed(np.full(20, share), plan_of(100_000))
    assert drawn.mean() <= 10_000
    # What the fixed rule gives where it sees the expected hits; the radius falls short by the tolerance at most.
    fixed = radius(lower_limit(np.array(share * 100_000), 100_000, 0.001), 1.0)
    assert (radius(lower, 1.0) >= fixed - 0.1 * np.maximum(1.0, fixed) - 0.02).mean() >= 0.9


def test_more_tolerance_costs_less_and_none_costs_everything() -> None:
    share = np.full(10, 0.9999)
    drawn = [tossed(share, plan_of(20_000, tolerance=tolerance))[1].mean() for tolerance in (0.0, 0.1, 0.2)]
    assert drawn[0] == 20_000
    assert drawn[0] > drawn[1] > drawn[2]


@pytest.mark.parametrize(("samples", "largest"), [(1_000, 0.308), (10_000, 0.400), (100_000, 0.476)])
def test_the_largest_radius_is_that_of_a_point_whose_class_is_certain(samples: int, largest: float) -> None:
    lower, _ = tossed(np.ones(1), plan_of(samples, first_samples=samples))
    assert radius(lower, 0.125).item() == pytest.approx(largest, abs=6e-4)


def test_the_limits_are_those_of_clopper_and_pearson_and_up_to_one_half_there_is_no_radius() -> None:
    hits = np.array([0, 1, 50, 99, 100])
    low, high = (np.array(side) for side in proportion_confint(hits, 100, alpha=0.02, method="beta"))
    np.testing.assert_allclose(lower_limit(hits, 100, 0.01), low, rtol=1e-9)
    np.testing.assert_allclose(upper_limit(hits, 100, 0.01), high, rtol=1e-9)
    np.testing.assert_allclose(radius(np.array([0.0, 0.5, ndtr(1.0), ndtr(2.0)]), 0.25), [0, 0, 0.25, 0.5], atol=1e-12)


def test_of_a_half_space_it_certifies_nearly_the_distance_and_never_more() -> None:
    model = linear(0, classes=2, n=30)
    exact = linear_distance(*model.arrays).distance
    found = certify(*model.first(), sigma=0.1, samples=10_000, tolerance=0.05)
    # P(class) = Phi(d / sigma): smoothing leaves the boundary where it is.
    assert (found.distance <= exact).all()
    within = exact < 0.2
    assert within.sum() > 5
    assert (found.distance[within] >= exact[within] - 0.015).all()
    assert not found.failed.any()
    assert found.adversarial is None


def test_on_the_boundary_it_abstains() -> None:
    model = linear(1, classes=2, n=10)
    w = model.weight[0] - model.weight[1]
    x = model.images.reshape(10, -1).astype(float)
    x = (x - ((x - 0.5) @ w / (w @ w))[:, None] * w).reshape(model.images.shape)
    found = certify(model, x, model.label, samples=1000)
    np.testing.assert_array_equal(found.distance, 0.0)


def test_a_wrong_class_has_radius_zero_and_is_sampled_no_further() -> None:
    model = linear(2, classes=2, n=12)
    sure = certify(*model.first(), samples=500).distance > 0
    assert sure.any()
    found = certify(model, model.images[sure], 1 - model.label[sure], samples=500)
    np.testing.assert_array_equal(found.distance, 0.0)
    assert found.forward_passes == 100 * sure.sum()


def test_noise_in_normalised_units_certifies_the_smallest_channel_scale() -> None:
    model = linear(3, classes=2, n=8, shape=(2, 3, 3))
    w = model.weight[0] - model.weight[1]
    gap = np.abs((model.images.reshape(8, -1) - 0.5) @ w)
    found = certify(*model.first(), sigma=0.1, samples=10_000, tolerance=0.02, channel_scale=(0.5, 2.0)).distance
    exact = 0.5 * gap / np.linalg.norm(w * np.repeat([0.5, 2.0], 9))
    assert (found <= exact).all()
    np.testing.assert_allclose(found, exact, atol=0.006)
    assert (found <= gap / np.linalg.norm(w)).all()


def test_a_points_noise_is_its_own_in_any_batch_and_company(digits: Any) -> None:
    settings: dict[str, Any] = {"samples": 400, "sigma": 0.25, "selection_samples": 100, "alpha": 0.001}
    whole = certify(*digits.first(), **settings, execution=Execution(400))
    rows = np.array([7, 3, 40])
    part = certify(digits.network, digits.images[rows], digits.label[rows], **settings, rows=rows)
    np.testing.assert_array_equal(part.distance, whole.distance[rows])
    assert len(np.unique(whole.distance)) > 3
    other = certify(*digits.first(), **settings, seed=1)
    assert (other.distance != whole.distance).any()
