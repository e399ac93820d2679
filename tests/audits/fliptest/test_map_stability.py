"""The images of the two fixed people, trial by trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.audits.fliptest.map_stability import Config, run
from pipeline.seeds import generators
from pipeline.types import Array, Classifier, Dataset, TransportMap

Rules = Callable[..., Classifier]
Maps = Callable[..., TransportMap]


@pytest.fixture
def fixed() -> Dataset:
    """Three draws of 20 people in each group; the first two of the source group are ones and zeros in every draw."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(120, 2))
    group = np.tile(np.repeat([0, 1], 20), 3)
    features[[0, 40, 80]], features[[1, 41, 81]] = 1, 0
    split = np.arange(120).reshape(3, 40)
    return Dataset(
        "toy",
        "simulated",
        features,
        ("x", "z"),
        (),
        rng.integers(0, 2, 120),
        "y",
        {"group": group},
        {"group": ("F", "M")},
        split,
        split.copy(),
    )


def test_each_trial_says_where_its_map_sends_the_two(fixed: Dataset, gap: Array, rule: Rules, shift: Maps) -> None:
    maps = shift(trials=3)
    maps = replace(maps, parameters={**maps.parameters, "by": gap * np.array([[0.0], [1.0], [2.0]])})
    rows = run(fixed, rule(0.0, 0.0, repetitions=3), Config(), generators("audit", repetitions=3), maps).rows
    found = rows[rows["statistic"] == "image"].set_index(["repetition", "point", "feature"])["value"]
    assert set(rows["statistic"]) == {"image", "ks"}
    assert len(found) == 3 * 2 * 2
    for trial in range(3):
        for j, name in enumerate(("1", "2")):
            assert found[trial, "ones", name] == pytest.approx(1 + trial * gap[j])
            assert found[trial, "zeros", name] == pytest.approx(trial * gap[j])


def test_a_map_that_misses_the_group_says_so_however_surely_it_does(fixed: Dataset, rule: Rules, shift: Maps) -> None:
    """Two draws of one law are near each other; people who are led far away all lie beyond the target group."""
    maps = shift(trials=3)
    still = run(fixed, rule(0.0, 0.0, repetitions=3), Config(), generators("audit", repetitions=3), maps).rows
    far = replace(maps, parameters={**maps.parameters, "by": np.full_like(maps.parameters["by"], 100.0)})
    gone = run(fixed, rule(0.0, 0.0, repetitions=3), Config(), generators("audit", repetitions=3), far).rows
    lost = replace(maps, parameters={**maps.parameters, "by": np.full_like(maps.parameters["by"], np.nan)})
    nowhere = run(fixed, rule(0.0, 0.0, repetitions=3), Config(), generators("audit", repetitions=3), lost).rows
    unmoved, away, none = (rows.loc[rows["statistic"] == "ks", "value"] for rows in (still, gone, nowhere))
    assert len(unmoved) == len(away) == 3
    assert (unmoved < 0.7).all()
    assert away.tolist() == [1.0] * 3
    assert none.isna().all()


def test_a_dataset_without_the_fixed_people_is_refused(groups: Dataset, rule: Rules, shift: Maps) -> None:
    maps = replace(shift(np.zeros(3)), features=groups.feature_names)
    with pytest.raises(ValueError, match="first people of 'F' in repetition 0 of 'toy' to be ones and zeros"):
        run(groups, rule(0.0, 0.0, 0.0), Config(), generators("audit", repetitions=2), maps)
