"""Maps are found by their settings, chosen by the size of the groups, and told apart from what is none."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pytest

from pipeline.cli.audit.fliptest.maps import candidates, known, map_named, null_draws


def asked(**given: object) -> Namespace:
    return Namespace(**({"map": "auto", "map_setting": [], "null_draws": None} | given))


def test_the_smooth_map_comes_first_and_the_exact_one_where_there_is_room_for_it() -> None:
    assert [kind.name for kind in candidates(asked(), (2000, 2000))] == ["entropic", "exact"]
    assert [kind.name for kind in candidates(asked(), (20_000, 20_000))] == ["entropic"]
    (exact,) = candidates(asked(map="exact"), (20_000, 20_000))
    assert exact.settings["image"] == "sample"
    with pytest.raises(ValueError, match=r"--map exact: 30,000 by 30,000 people are more than .* --limit 20000"):
        candidates(asked(map="exact"), (30_000, 30_000))
    with pytest.raises(
        ValueError, match=r"--map-setting steps=7 belongs to a map: name it too, such as --map entropic"
    ):
        candidates(asked(map_setting=["steps=7"]), (50, 50))


def test_a_noise_floor_is_had_unasked_where_fits_are_fast() -> None:
    for name, sizes, draws in (("exact", 1000, 39), ("entropic", 1000, 39), ("exact", 1500, 0), ("wgan", 100, 0)):
        assert null_draws(asked(), map_named(name, []), (sizes, sizes)) == draws
        assert null_draws(asked(null_draws=7), map_named(name, []), (sizes, sizes)) == 7


def test_what_a_fit_says_is_said_of_the_map() -> None:
    same = np.zeros((30, 2))
    with pytest.raises(ValueError, match="--map entropic: expected groups of different rows"):
        map_named("entropic", []).fit([(same, same + 1)], [np.random.default_rng(0)])


def test_every_map_between_two_groups_is_offered_with_its_own_settings() -> None:
    assert {"entropic", "exact", "wgan"} <= set(known())
    assert "counterfactual" not in known()  # needs more than the two groups' rows
    for name in known():
        assert not {"attribute", "source", "points"} & set(map_named(name, []).settings)
    assert map_named("wgan", ["steps=7", "learning_rate=1e-3"]).config.steps == 7
    assert map_named("wgan", ["steps=7", "learning_rate=1e-3"]).config.learning_rate == 1e-3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["steps=0"], r"--map-setting steps=0: expected a positive transport\.steps, found 0"),
        (["steps=many"], r"--map-setting steps=many: wgan does not take it"),
        (["attribute=sex"], r"--map-setting attribute=sex: expected KEY=VALUE with a setting of wgan"),
        (["stepps=3"], r"with a setting of wgan \(did you mean 'steps'\?\): hidden_units, learning_rate"),
        (["steps=["], r"--map-setting steps=\[: the value cannot be read"),
    ],
)
def test_a_setting_that_a_map_does_not_take_is_named(given: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        map_named("wgan", given)
