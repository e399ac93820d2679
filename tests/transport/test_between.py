"""A map moves one group's rows onto the other's, leaves alone what is constant in both, and runs in two directions."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pipeline.transport import entropic, exact
from pipeline.transport.between import Between, fitted, groups, mapped, parted, transported_columns
from pipeline.types import Array, Dataset, TransportMap
from tests.builders import dataset as toy

BETWEEN = Between(attribute="sex", source="women", given_label=None, split="train", points=None, both=True)


def dataset(repetitions: int = 2) -> Dataset:
    """Twelve people: height (continuous), a hobby and sex as inputs; men are 10 taller."""
    rng = np.random.default_rng(0)
    sex = np.tile([0, 1, 1], 4)
    order = np.stack([rng.permutation(12) for _ in range(repetitions)])
    return toy(
        np.column_stack([160 + np.arange(12.0) + 10 * sex, rng.integers(0, 2, 12), sex]),
        np.tile([0, 0, 0, 1, 1, 1], 2),
        {"sex": sex, "town": np.array([-1, *sex[1:]])},
        order[:, :9],
        order[:, 9:],
        name="people",
        feature_names=("height", "hobby", "is_man"),
        continuous=("height",),
        levels={"sex": ("women", "men"), "town": ("a", "b")},
    )


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A kind of map that moves every row by the difference of the groups' means."""
    module = ModuleType("pipeline.transport.shift")

    def fit(source: Sequence[Array], target: Sequence[Array], config: None, rngs: Sequence[object]) -> TransportMap:
        moves = np.stack([m.mean(axis=0) - n.mean(axis=0) for n, m in zip(source, target, strict=True)])
        assert len(rngs) == len(moves)
        return TransportMap("shift", {"move": moves}, facts={"gap": np.abs(moves).sum(axis=1)})

    def images(parameters: dict[str, Array], rows: Sequence[Array]) -> list[Array]:
        return [x + move for x, move in zip(rows, parameters["move"], strict=True)]

    module.fit, module.images = fit, images  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pipeline.transport.shift", module)
    return module


def maps(data: Dataset, module: ModuleType, between: Between = BETWEEN) -> TransportMap:
    found = fitted(data, between, module, None, [np.random.default_rng(t) for t in range(data.repetitions)])
    columns = transported_columns(data, between.attribute)
    return replace(
        found,
        transport="shift",
        attribute="sex",
        source="women",
        target="men",
        given_label=between.given_label,
        features=tuple(data.feature_names[c] for c in columns),
    )


def test_a_column_that_is_constant_in_both_groups_is_not_transported_and_takes_the_targets_value(
    shift: ModuleType,
) -> None:
    data = dataset()
    assert transported_columns(data, "sex").tolist() == [0, 1]
    for person in mapped(maps(data, shift), data, "all", 2):
        assert (person.features[:, 2] == 0).all()
        assert (person.images[:, 2] == 1).all()
        assert (person.target[:, 2] == 1).all()


@pytest.mark.parametrize(
    "between",
    [BETWEEN, replace(BETWEEN, given_label=1, points=3), Between("town", "a", None, "train", None, False)],
    ids=["all", "the first points of a true label", "people in neither group"],
)
def test_rows_are_the_groups_rows_of_the_split_in_its_units(between: Between) -> None:
    data = dataset()
    found = groups(data, between, 2)
    for t, rows in enumerate(data.train[:2]):
        features = data.batch("train").features[t][:, found.columns]
        inside = np.full(len(rows), True) if between.given_label is None else data.label[rows] == between.given_label
        for code, kept in ((0, found.source[t]), (1, found.target[t])):
            member = inside & (data.protected[between.attribute][rows] == code)
            np.testing.assert_array_equal(kept, features[member][: between.points])


def test_the_mean_of_the_images_is_the_mean_of_the_target_in_both_directions(shift: ModuleType) -> None:
    data = dataset()
    found = maps(data, shift)
    for direction in ("forward", "reverse"):
        for person in mapped(found, data, "train", 2, direction):
            np.testing.assert_allclose(person.images.mean(axis=0), person.target.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.reverse["move"], -found.parameters["move"])
    np.testing.assert_allclose(found.facts["reverse_gap"], found.facts["gap"])


def test_a_map_that_knows_only_the_rows_it_was_fitted_on_is_asked_for_no_others(shift: ModuleType) -> None:
    data = dataset()
    few = replace(maps(data, shift), points=2)
    assert [len(person.rows) > 2 for person in mapped(few, data, "train", 2)] == [True, True]
    shift.FITTED_ROWS_ONLY = True  # type: ignore[attr-defined]
    assert [len(person.rows) for person in mapped(few, data, "train", 2, "reverse")] == [2, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attribute": "age"}, r"expected transport\.attribute among \['sex', 'town'\] of 'people', found 'age'"),
        ({"source": "Women"}, r"expected transport\.source among women, men \(sex of 'people'\), found 'Women'"),
        ({"given_label": 0, "attribute": "town"}, r"among a, b"),
    ],
)
def test_what_the_dataset_does_not_have_is_named(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        groups(dataset(), replace(BETWEEN, **change), 1)


def test_a_group_that_is_too_small_is_named() -> None:
    data = replace(dataset(), label=np.where(dataset().protected["sex"] == 0, 0, 1))
    with pytest.raises(ValueError, match=r"group 'women' of 'people' has 0 rows in the train rows of repetition 0"):
        groups(data, replace(BETWEEN, given_label=1), 1)


def test_a_direction_that_was_not_fitted_and_trials_that_are_not_there_are_refused(shift: ModuleType) -> None:
    data = dataset()
    with pytest.raises(ValueError, match=r"fitted in one direction: set transport\.both=true"):
        mapped(maps(data, shift, replace(BETWEEN, both=False)), data, "test", 1, "reverse")
    with pytest.raises(ValueError, match="has 2 trials, 3 were asked for"):
        mapped(maps(data, shift), data, "test", 3)


def test_a_section_is_parted_into_groups_and_the_modules_own_keys() -> None:
    section = {**vars(BETWEEN), "name": "shift", "kind": "shift", "steps": 7}
    assert parted(section) == (BETWEEN, {"name": "shift", "kind": "shift", "steps": 7})
    del section["points"]
    with pytest.raises(ValueError, match=r"points is not given"):
        parted(section)


def test_a_split_without_one_of_the_groups_is_named(shift: ModuleType) -> None:
    data = dataset()
    alone = replace(data, test=np.array([[r for r in data.test[t] if data.protected["sex"][r]][:1] for t in range(2)]))
    with pytest.raises(ValueError, match=r"women or men \(sex of 'people'\) has no test rows: there is no one to map"):
        mapped(maps(data, shift), alone, "test", 2)


CONFIGS: dict[str, Any] = {
    "exact": exact.Config(cost="squared_l1", image="expectation"),
    "entropic": entropic.Config("squared_l1", 1.0, regularization=0.2, centres=300, quantiles=100),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_trials_of_other_sizes_do_not_meet(kind: str) -> None:
    rng, module = np.random.default_rng(4), {"exact": exact, "entropic": entropic}[kind]
    source, target = ([rng.normal(size=(n, 2)) for n in sizes] for sizes in ((40, 90), (70, 30)))
    rngs = [[np.random.default_rng(t) for t in range(2)] for _ in range(2)]
    together = module.images(module.fit(source, target, CONFIGS[kind], rngs[0]).parameters, source)
    for t in range(2):
        alone = module.fit([source[t]], [target[t]], CONFIGS[kind], [rngs[1][t]])
        np.testing.assert_allclose(together[t], module.images(alone.parameters, [source[t]])[0], atol=1e-12)


def test_of_attributes_that_a_classifier_reads_the_mapped_one_changes_and_another_stays(shift: ModuleType) -> None:
    data = dataset()
    found = maps(data, shift)
    (before, _), (after, _) = (mapped(found, one, "train", 2) for one in (data, data.with_inputs(("sex", "town"))))
    np.testing.assert_array_equal(after.images[:, :-2], before.images)
    assert (after.features[:, -2] == 0).all()
    assert (after.images[:, -2] == 1).all()
    np.testing.assert_array_equal(after.images[:, -1], data.protected["town"][after.rows])
