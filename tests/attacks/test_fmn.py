"""The minimum-norm attack ends on the boundary, no farther than DeepFool, and as near as attacks of many more steps."""

from typing import Any

import numpy as np

from pipeline.attacks.deepfool import deepfool
from pipeline.attacks.fmn import START_OVERSHOOT, START_SLACK, fmn
from tests.attacks.builders import around_grey, ball


def test_it_finds_the_shortest_way_out_of_a_ball() -> None:
    length = np.linspace(0.1, 0.35, 20)
    found = fmn(ball(0.4), around_grey(length), np.zeros(20, dtype=int), steps=40)
    # DeepFool's step is (r^2 - s^2) / 2s here, up to twice as long.
    assert (found.distance >= 0.4 - length - 1e-6).all()
    np.testing.assert_allclose(found.distance, 0.4 - length, rtol=0.02)


def test_no_distance_is_above_that_of_its_start_and_most_are_well_below(digits: Any) -> None:
    start = deepfool(digits.network, digits.images, digits.label, overshoot=START_OVERSHOOT, slack=START_SLACK)
    found = fmn(digits.network, digits.images, digits.label)
    assert (found.distance <= start.distance).all()
    assert np.median(found.distance / start.distance) < 0.97
    # A pass a step and a last look, beside the start's own.
    assert found.forward_passes == start.forward_passes + 48 * 21
    assert found.backward_passes == start.backward_passes + 48 * 20


def test_twenty_steps_do_the_work_of_two_hundred(digits: Any) -> None:
    some, many = (fmn(digits.network, digits.images, digits.label, steps=steps).distance for steps in (20, 200))
    assert np.median(some / many) < 1.02


def test_bisection_brings_it_nearer_still(digits: Any) -> None:
    plain = fmn(digits.network, digits.images, digits.label, steps=5)
    drawn = fmn(digits.network, digits.images, digits.label, steps=5, bisections=10)
    assert (drawn.distance <= plain.distance).all()
    assert drawn.distance.sum() < plain.distance.sum()
    assert drawn.forward_passes == plain.forward_passes + 48 * 10
