"""The worst subgroup: counts by another way, level on null data, power on a planted group, intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from fairness_audits.audits.permutation.subgroups import Coded, binned, intersections, worst_subgroups
from tests.audits.permutation.builders import near


def columns(rng: np.random.Generator, n: int, levels: tuple[int, ...]) -> dict[str, Coded]:
    names = "abcdef"
    return {
        name: Coded(rng.integers(0, number, n), tuple(f"{name}{level}" for level in range(number)))
        for name, number in zip(names, levels, strict=False)
    }


def test_subgroups_are_those_of_a_frame_grouped_by_the_columns() -> None:
    rng = np.random.default_rng(0)
    made = columns(rng, 700, (2, 3, 4))
    event = rng.integers(0, 2, 700)
    found = intersections(made, depth=2, least=30)
    tested = worst_subgroups(event, found, draws=19, alpha=0.05, rng=rng)
    frame = pd.DataFrame({name: np.array(one.levels)[one.codes] for name, one in made.items()}).assign(event=event)
    expected, small = {}, 0
    for by in (["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["b", "c"]):
        for key, own in frame.groupby(by):
            small += len(own) < 30
            if 30 <= len(own) <= 670:
                expected[tuple(zip(by, key, strict=True))] = (len(own), own["event"].sum())
    assert dict(zip(found.names, zip(tested.sizes, tested.events, strict=True), strict=True)) == expected
    assert found.too_small == small


def test_a_subgroup_with_the_rows_of_another_is_one() -> None:
    """Everybody in b0 is in a0: crossed with a it is the same people."""
    a = np.repeat([0, 1], 100)
    b = np.r_[np.arange(100) % 2, np.ones(100, dtype=int)]
    found = intersections({"a": Coded(a, ("a0", "a1")), "b": Coded(b, ("b0", "b1"))}, depth=2, least=5)
    assert [name for name in found.names if ("b", "b0") in name] == [(("b", "b0"),)]


def test_the_chance_of_any_rejection_is_alpha_on_null_data_and_intervals_agree_with_the_p_values() -> None:
    rng, trials, rejections = np.random.default_rng(1), 300, 0
    for _ in range(trials):
        subgroups = intersections(columns(rng, 400, (2, 3, 4, 5)), depth=3, least=20)
        event = (rng.random(400) < 0.15).astype(int)
        tested = worst_subgroups(event, subgroups, draws=99, alpha=0.05, rng=rng)
        apart = (tested.low > 0) | (tested.high < 0)
        assert (tested.p[apart] <= 0.05).all()
        assert apart.any() == (tested.p.min() <= 0.05)
        rejections += bool(apart.any())
    assert near(rejections / trials, 0.05, trials)


def test_a_planted_group_is_found_and_named() -> None:
    rng, trials, found = np.random.default_rng(2), 40, 0
    for _ in range(trials):
        made = columns(rng, 1500, (2, 3, 4, 5))
        planted = (made["a"].codes == 1) & (made["c"].codes == 2)
        event = (rng.random(1500) < np.where(planted, 0.65, 0.3)).astype(int)
        subgroups = intersections(made, depth=3, least=20)
        tested = worst_subgroups(event, subgroups, draws=99, alpha=0.05, rng=rng)
        first = subgroups.names[int(np.argmax(np.abs(tested.statistic)))]
        found += bool(tested.p.min() <= 0.05) and first == (("a", "a1"), ("c", "c2"))
    assert found / trials > 0.8


def test_intervals_hold_together_and_one_subgroup_has_the_usual_one() -> None:
    rng, trials, held = np.random.default_rng(3), 150, 0
    for _ in range(trials):
        made = columns(rng, 800, (2, 3, 4))
        p = 0.3 + 0.2 * (made["a"].codes == 1)
        found = intersections(made, depth=2, least=40)
        tested = worst_subgroups((rng.random(800) < p).astype(int), found, draws=99, alpha=0.1, rng=rng)
        size = found.sizes
        truth = (found.members @ p) / size - (p.sum() - found.members @ p) / (800 - size)
        held += bool(((tested.low <= truth) & (truth <= tested.high)).all())
    assert held / trials >= 0.9 - 3 * np.sqrt(0.09 / trials)
    half = intersections({"a": Coded(np.arange(4000) % 2, ("even", "odd"))}, depth=1, least=1)
    event = rng.integers(0, 2, 4000)
    one = worst_subgroups(event, half, draws=4999, alpha=0.05, rng=rng)
    error = np.sqrt(2 * 0.25 / 2000)
    assert (one.high - one.low)[0] == pytest.approx(2 * norm.isf(0.025) * error, rel=0.05)


def test_numbers_are_cut_into_groups_of_equal_counts_and_few_values_are_left() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    made = binned(values, 5, 10)
    assert made is not None
    assert np.bincount(made.codes).tolist() == [200] * 5
    assert binned(values.round(), 5, 20) is None


def test_a_rate_that_does_not_vary_rejects_nothing() -> None:
    found = intersections({"a": Coded(np.arange(100) % 2, ("x", "y"))}, depth=1, least=1)
    tested = worst_subgroups(np.ones(100, dtype=int), found, draws=19, alpha=0.05, rng=np.random.default_rng(0))
    assert (tested.p == 1).all()


@pytest.mark.parametrize("n", [0, 100])
def test_without_a_subgroup_of_that_size_nothing_is_tested(n: int) -> None:
    found = intersections({"a": Coded(np.arange(n) % 2, ("x", "y"))}, depth=1, least=60)
    tested = worst_subgroups(np.arange(n) % 3 % 2, found, draws=19, alpha=0.05, rng=np.random.default_rng(0))
    assert len(found.names) == len(tested.p) == 0
