"""Model inputs become points in comparable units, and points become inputs that exist."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.cli.audit.fliptest.counterparts import counterparts, places
from pipeline.cli.audit.fliptest.groups import Group, Groups
from pipeline.cli.audit.fliptest.space import Space, space_of

PATH = Path("t.csv")


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
    asked = {"data": PATH, "standardize": "continuous", "categorical": ()} | given
    return space_of(groups, Namespace(**asked)), groups


def test_numbers_are_measured_in_standard_deviations_of_both_groups_together() -> None:
    made, groups = space(frame(1), frame(2, shift=10.0, sex="m"))
    ages = np.concatenate([groups.source.features["age"], groups.target.features["age"]])
    points = np.concatenate([made.points(groups.source.features), made.points(groups.target.features)])
    np.testing.assert_allclose(points[:, 0], (ages - ages.mean()) / ages.std())
    assert made.standardized == ("age",)
    assert made.scales[0] == pytest.approx(ages.std())
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


def test_points_between_categories_are_the_nearest_that_exist() -> None:
    made, _ = space(frame(1), frame(2, sex="m"))
    points = np.array([[0.3, 0.1, 0.5, 0.4, 0.45, 1.6, 0.9], [0.3, -0.2, 0.1, 0.2, 0.7, 1.2, np.nan]])
    snapped = made.snapped(points)
    np.testing.assert_array_equal(
        snapped, [[0.3, 0, 1, 0, 0, 2, 1], [0.3, 0, 0, 1, 1, 1, np.nan]]
    )  # member takes 1 and 2 only
    assert made.snapping == ("region", "married", "member")
    found = made.frame(snapped[:1])
    assert found.loc[0, ["region", "married", "member"]].tolist() == ["south", False, 2.0]


def test_whole_numbers_stay_whole() -> None:
    table = frame(1).assign(children=np.arange(40) % 5)
    made, _ = space(table, table.assign(sex="m", children=np.arange(40) % 4))
    points = made.points(table)
    moved = made.snapped(points + 0.4 / made.scales)
    np.testing.assert_array_equal(made.frame(moved)["children"], table["children"])
    np.testing.assert_array_equal(
        made.frame(made.snapped(points + 0.6 / made.scales))["children"], table["children"] + 1
    )
    np.testing.assert_allclose(made.frame(moved)["age"], table["age"] + 0.4)
    np.testing.assert_allclose(made.snapped(moved), moved)
    assert "children" in made.snapping
    assert "age" not in made.snapping


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


def test_the_first_of_equal_rows_is_found() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    assert places(np.array([[1.0, 2.0], [3.0, 4.0], [3.0, 4.5]]), rows).tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("change", "given", "message"),
    [
        ({"age": [np.nan, *range(39)]}, {}, r"t\.csv: column 'age' is missing in 2 rows: 0, 40 \(counted from 0"),
        ({"region": ["x", None] * 20}, {}, r"'region' \(feature\) is missing in 40 rows: 1, 3, 5, 7, 9 and 35 more"),
        ({"age": [np.inf, *range(39)]}, {}, r"column 'age' is infinite in 2 rows: 0, 40"),
        ({"age": pd.date_range("2020", periods=40)}, {}, r"expected numbers in every feature column, but 'age' holds"),
        ({}, {"standardize": ("region",)}, r"--standardize names 'region', which is no feature. Features: age, member"),
        ({}, {"categorical": ("height",)}, r"--categorical names 'height', but the model's input has no such column"),
        ({"region": [[1]] * 40}, {}, r"column 'region' \(feature\) holds values that cannot be compared"),
    ],
)  # fmt: skip
def test_a_column_that_is_neither_number_nor_category_is_named(
    change: dict[str, Any], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        space(frame(1).assign(**change), frame(2, sex="m").assign(**change), **given)


def test_names_of_people_are_no_category() -> None:
    names = {"region": [f"name {i}" for i in range(120)]}
    table = pd.concat([frame(1)] * 3, ignore_index=True).assign(**names)
    with pytest.raises(ValueError, match=r"column 'region' has 120 different values, .* leave it out, --drop region"):
        space(table, table.assign(sex="m"))


def test_features_that_never_vary_cannot_be_mapped() -> None:
    with pytest.raises(ValueError, match="every feature is the same in all rows of f and in all rows of m"):
        space(frame(1)[["sex"]], frame(2, sex="m")[["sex"]])
