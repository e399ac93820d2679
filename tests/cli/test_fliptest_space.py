"""Model inputs become points in comparable units, points become inputs that exist, and maps are found between them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.audits.fliptest.dealt import Deal
from pipeline.audits.fliptest.space import Space
from pipeline.cli.audit.fliptest import Settings
from pipeline.cli.audit.fliptest.evidence import Everyone, counterparts, null_of, places
from pipeline.cli.audit.fliptest.maps import candidates, known, map_named, null_draws
from pipeline.cli.audit.fliptest.model import Decider
from pipeline.cli.audit.fliptest.people import Group, Groups, space_of
from pipeline.cli.model import Model


def frame(seed: int, shift: float = 0.0, sex: str = "f") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(18, 90, 40) + shift,
            "region": np.array(["north", "south", "west"])[np.arange(40) % 3],
            "married": rng.random(40) < 0.5,
            "member": rng.choice([1, 2], 40),
            "sex": sex,
        }
    )


def space(source: pd.DataFrame, target: pd.DataFrame, **given: Any) -> tuple[Space, Groups]:
    target = target.set_axis(range(len(source), len(source) + len(target)))
    groups = Groups(Group("f", source, None), Group("m", target, None), {}, None)
    return space_of(groups, asked(**given), "t.csv"), groups


def test_numbers_are_measured_in_standard_deviations_of_both_groups_together() -> None:
    made, groups = space(frame(1), frame(2, shift=10.0, sex="m"))
    ages = np.concatenate([groups.source.features["age"], groups.target.features["age"]])
    points = np.concatenate([made.points(groups.source.features), made.points(groups.target.features)])
    np.testing.assert_allclose(points[:, 0], (ages - ages.mean()) / ages.std())
    assert made.standardized == ("age",)
    assert made.each("scale")[0] == pytest.approx(ages.std())
    plain, _ = space(frame(1), frame(2, sex="m"), standardize="none")
    np.testing.assert_array_equal(plain.points(frame(1))[:, 0], frame(1)["age"])


def test_two_different_categories_are_at_distance_one_whatever_their_number() -> None:
    made, _ = space(frame(1), frame(2, sex="m"))
    assert made.labels == (
        "age", "region=north", "region=south", "region=west", "married=True", "member", "sex=m",
    )  # fmt: skip
    person = pd.DataFrame({"age": [30.0], "region": "north", "married": True, "member": 1.0, "sex": "f"})
    own = made.to_map(made.points(person))
    for change in ({"region": "south"}, {"region": "west"}, {"married": False}, {"member": 2.0}):
        assert np.abs(made.to_map(made.points(person.assign(**change))) - own).sum() == 1


def test_what_each_group_has_one_value_in_is_not_moved() -> None:
    made, groups = space(frame(1), frame(2, sex="m"))
    assert made.unmoved == ("sex",)
    assert made.to_map(made.points(frame(1))).shape == (40, 6)
    target = made.points(groups.target.features)
    back = made.from_map(made.to_map(made.points(frame(1))), target[0])
    assert set(made.frame(back)["sex"]) == {"m"}
    np.testing.assert_allclose(made.frame(back)["age"], frame(1)["age"])


def test_images_become_whole_numbers_and_categories_in_the_shares_of_the_target_group() -> None:
    made, groups = space(frame(1), frame(2, sex="m"))
    target = made.points(groups.target.features)
    points = made.points(frame(1)) + np.random.default_rng(0).normal(0, 0.4, (40, 7))
    snapped = made.snapped(points, target)
    np.testing.assert_array_equal(np.sort(snapped[:, 1:6], axis=0), np.sort(target[:, 1:6], axis=0))
    np.testing.assert_array_equal(snapped[:, 0], points[:, 0])
    assert made.snapping == ("region", "married", "member")
    table = frame(1).assign(children=np.arange(40) % 5)
    made, _ = space(table, table.assign(sex="m", children=np.arange(40) % 4))
    points = made.points(table)
    for step, gain in ((0.4, 0), (0.6, 1)):
        moved = made.snapped(points + step / made.each("scale"), points)
        np.testing.assert_array_equal(made.frame(moved)["children"], table["children"] + gain)
        np.testing.assert_allclose(made.frame(moved)["age"], table["age"] + step)
        np.testing.assert_allclose(made.snapped(moved, points), moved)


def test_inputs_survive_the_way_to_the_space_and_back() -> None:
    table = frame(1).assign(
        region=lambda t: t["region"].astype("category"),
        code=np.arange(40) % 4,
        spare=pd.array([1, 2] * 20, dtype="Int64"),
    )
    made, _ = space(table, table.assign(sex="m"), categorical=("code",))
    again = made.frame(made.points(table))
    pd.testing.assert_frame_equal(again, made.prepared(table), check_exact=False)
    assert again["region"].dtype == "category"
    assert made.labels[-5:] == ("code=0", "code=1", "code=2", "code=3", "spare")
    np.testing.assert_array_equal(made.points(again), made.points(table))


def test_a_missing_value_is_at_distance_one_of_itself_and_comes_back_missing() -> None:
    table = frame(1).assign(
        age=lambda t: t["age"].round().where(np.arange(40) % 3 > 0),
        region=lambda t: t["region"].where(np.arange(40) % 5 > 0),
        spare=pd.array([1, None, 2, 1] * 10, dtype="Int64"),
    )
    made, _ = space(table, table.assign(sex="m"))
    assert made.labels[:6] == (
        "age", "age is missing", "region=north", "region=south", "region=west", "region=missing",
    )  # fmt: skip
    assert made.names == tuple(table)
    assert made.gaps == ("region", "spare", "age")
    mean = table["age"].mean()
    person = pd.DataFrame({"age": [mean], "region": "north", "married": True, "member": 1.0, "sex": "f", "spare": 1})
    own = made.to_map(made.points(person))
    for change in ({"age": np.nan}, {"region": None}, {"spare": np.nan}):
        assert np.abs(made.to_map(made.points(person.assign(**change))) - own).sum() == pytest.approx(1)
    points = made.points(table)
    again = made.frame(points)
    pd.testing.assert_frame_equal(again.isna(), table.isna())
    np.testing.assert_allclose(again["age"], table["age"])
    moved = made.snapped(points + np.random.default_rng(0).normal(0, 0.3, points.shape), points)
    np.testing.assert_allclose(made.points(made.frame(moved)), moved)
    assert made.frame(moved).isna().sum().equals(table.isna().sum())


def test_images_that_are_rows_are_these_people_with_their_own_values() -> None:
    made, groups = space(frame(1), frame(2, sex="m"))
    target = made.points(groups.target.features)
    images = made.to_map(target)[[3, 3, 7]]
    found = counterparts(made, images, groups.target, target)
    assert found.person.tolist() == [43, 43, 47]
    pd.testing.assert_frame_equal(found.frame, groups.target.features.iloc[[3, 3, 7]])
    moved = counterparts(made, images + np.array([[0.0], [1e-3], [0.0]]), groups.target, target)
    assert moved.person.tolist() == [43, -1, 47]
    assert moved.frame["age"][1] != found.frame["age"].iloc[1]
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])  # the first of equal rows is found
    assert places(np.array([[1.0, 2.0], [3.0, 4.0], [3.0, 4.5]]), rows).tolist() == [0, 1, -1]


def test_dealt_people_flip_by_what_a_map_moves_alone() -> None:
    """Women have 0.25 to 9.25, men 10.25 to 19.25; whoever has 5 or more, or is a man, is decided 1."""
    rows = pd.DataFrame({"x": np.arange(20) + 0.25, "sex": ["f"] * 10 + ["m"] * 10})
    women, men = rows.iloc[:10], rows.iloc[10:]
    made, _ = space(women, men, standardize="none")
    raw = Model(lambda frame: ((frame["x"] >= 5) | (frame["sex"] == "m")).to_numpy(float), "rule", None)
    model = Decider(raw, "decision", 0.5)
    everyone = Everyone.of(made, model, women, men)
    np.testing.assert_array_equal(everyone.decision, np.arange(20) >= 5)  # men asked about as women
    deal = Deal(np.array([3, 4, 6, 12]), np.array([0, 7, 15, 16]))
    people = np.array([[7.25], [0.25], [0.25], [15.25]])
    points = np.array([[5.1], [4.9], [4.9], [np.nan]])
    null = null_of(made, model, everyone, [deal, deal], [points, people], people=4)
    assert (null.positive.tolist(), null.negative.tolist()) == ([1, 1], [1, 1])
    # Of four people dealt among ten, one is two and a half.
    null = null_of(made, model, everyone, [deal, deal], [points, people], people=10)
    assert (null.positive.tolist(), null.negative.tolist()) == ([2.5, 2.5], [2.5, 2.5])


def asked(**given: Any) -> Settings:
    return Settings(data=Path("t.csv"), predict="", group="sex", source="f", target="m", **given)


def test_the_cheaper_map_comes_first_and_the_exact_one_where_there_is_room_for_it() -> None:
    assert [kind.name for kind in candidates(asked(), (2000, 2000))] == ["entropic", "exact", "stochastic", "wgan"]
    assert [kind.name for kind in candidates(asked(), (20_000, 20_001))] == ["entropic", "stochastic", "wgan"]
    (exact,) = candidates(asked(map="exact"), (20_000, 20_000))
    assert exact.settings["image"] == "sample"
    with pytest.raises(ValueError, match=r"--map exact: 30,000 by 30,000 people are more than .* --limit 20000"):
        candidates(asked(map="exact"), (30_000, 30_000))


def test_an_exact_map_gives_others_the_image_of_the_nearest_fitted_row() -> None:
    exact, rows = map_named("exact", []), np.array([[0.0], [1.0], [5.0]])
    (image,), maps = exact.fit([(rows, rows + 2)], [np.random.default_rng(0)])
    others = np.array([[4.0], [-7.0], [0.8]])
    np.testing.assert_array_equal(exact.extended(maps, rows, image, others), [[7.0], [2.0], [3.0]])
    smooth = map_named("entropic", [])
    (image,), maps = smooth.fit([(rows, rows + 2)], [np.random.default_rng(0)])
    np.testing.assert_allclose(smooth.extended(maps, rows, image, rows), image)


def test_a_noise_floor_is_had_unasked_where_fits_are_fast() -> None:
    for name, draws in (("exact", 39), ("entropic", 39), ("wgan", 0)):
        assert null_draws(asked(), map_named(name, [])) == draws
        assert null_draws(asked(null_draws=7), map_named(name, [])) == 7


def test_every_map_between_two_groups_is_offered_with_its_own_settings() -> None:
    assert {"entropic", "exact", "wgan"} <= set(known())
    assert "counterfactual" not in known()  # needs more than the two groups' rows
    for name in known():
        assert not {"attribute", "source", "points"} & set(map_named(name, []).settings)
    config = map_named("wgan", ["steps=7", "learning_rate=1e-3"]).config
    assert (config.steps, config.learning_rate) == (7, 1e-3)
    same = np.zeros((30, 2))
    with pytest.raises(ValueError, match="--map entropic: expected groups of different rows"):
        map_named("entropic", []).fit([(same, same + 1)], [np.random.default_rng(0)])
