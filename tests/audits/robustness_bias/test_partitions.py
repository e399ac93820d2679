"""Partitions: what their elements are, how many a study has, and how a dataset's become them."""

import numpy as np
import pytest

from pipeline.audits.robustness_bias.partitions import Partition, comparisons, elements, partitions_of
from pipeline.types import ImageDataset

STUDY = {
    "cifar10": {"label": 10},
    "cifar100": {"label": 100},
    "superclasses": {"label": 20},
    "adience": {"age": 8, "gender": 2},
    "utkface": {"age": 5, "gender": 2, "race": 5},
}


def test_the_elements_of_the_five_datasets_are_152_and_the_comparisons_150() -> None:
    named = [{name: tuple(map(str, range(size))) for name, size in each.items()} for each in STUDY.values()]
    assert sum(map(elements, named)) == 152
    assert sum(map(comparisons, named)) == 150


def test_an_element_and_its_others_leave_out_the_unknown() -> None:
    inside, outside = Partition("p", ("a", "b", "c"), np.array([0, 2, -1, 1, 0])).element(0)
    assert inside.tolist() == [True, False, False, False, True]
    assert outside.tolist() == [False, True, False, True, False]


def test_two_levels_are_one_comparison_and_more_are_as_many() -> None:
    codes = np.array([0, 1])
    assert Partition("p", ("a", "b"), codes).comparisons.tolist() == [0, 0]
    assert Partition("p", ("a", "b", "c"), codes).comparisons.tolist() == [0, 1, 2]


def test_the_classes_come_first_and_rows_are_taken() -> None:
    dataset = ImageDataset(
        name="toy",
        origin="bundled",
        images=np.zeros((4, 1, 2, 2), dtype=np.uint8),
        maximum=255.0,
        mean=(0.5,),
        std=(0.5,),
        label=np.array([0, 1, 1, 0]),
        label_name="age",
        classes=("young", "old"),
        partitions={"hair": np.array([1, 0, -1, 1]), "age": np.array([0, 1, 1, 0])},
        levels={"hair": ("long", "short"), "age": ("young", "old")},
        train=np.array([[0]]),
        test=np.array([[3, 2, 1]]),
    )
    age, hair = partitions_of(dataset, dataset.test[0])
    assert (age.name, age.levels, age.codes.tolist()) == ("age", ("young", "old"), [0, 1, 1])
    assert (hair.name, hair.codes.tolist()) == ("hair", [1, -1, 0])


@pytest.mark.parametrize("codes", [[0, 3], [-2, 0]])
def test_a_code_without_a_level_is_refused(codes: list[int]) -> None:
    with pytest.raises(ValueError, match=r"partition 'p' has 3 levels, but codes from .* expected -1 \(unknown\) to 2"):
        Partition("p", ("a", "b", "c"), np.array(codes))
