"""The core: every measure of every level, what is counted without a distance, and the two ways that call it."""

import logging
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.core import COUNTS, MEASURES, Levels, RobustnessBias, robustness_bias
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.errors import InvalidInput
from fairness_audits.seeds import generators
from fairness_audits.values import Array
from pipeline.audits.robustness_bias import partitions_of, rows_of
from pipeline.report.robustness_bias.study import comparisons, elements
from tests.builders import image_dataset

PRECISION = Precision(alpha=0.1, bootstraps=100, permutations=99)
NAN = np.nan
DISTANCE = np.array([1.0, 2.0, 3.0, NAN, NAN, 4.0, 8.0, NAN, NAN])
CORRECT = np.array([1, 1, 1, 1, 0, 1, 1, 0, 0], dtype=bool)
GROUP = Partition("group", ("a", "b", "c"), np.array([0, 0, 0, 0, 0, 1, 1, 2, 2]))
SIDE = Partition("side", ("l", "r"), np.array([0, 1, 0, 1, 0, 1, 0, 1, -1]))


def measured(budget: float | None = None, seed: int = 0, **others: Any) -> RobustnessBias:
    """Level ``a``: three distances, a failure and a misclassified point; ``b``: two distances; ``c``: all wrong."""
    rng = np.random.default_rng(seed)
    return robustness_bias(DISTANCE, CORRECT, [GROUP, SIDE], budget, PRECISION, rng, **others)


def levels(found: RobustnessBias, partition: str, denominator: str) -> Levels:
    (one,) = (one for one in found.levels if (one.partition.name, one.denominator) == (partition, denominator))
    return one


def arrays(found: RobustnessBias) -> list[Array]:
    return [getattr(one, name) for one in found.levels for name in (*COUNTS, *MEASURES)]


def test_all_points_together_and_what_of_them_has_no_distance() -> None:
    found = measured()
    assert (found.budget, found.mean_distance, found.median_distance) == (8, pytest.approx(18 / 5), 3)
    np.testing.assert_array_equal(np.flatnonzero(found.failed), [3])
    group, side = levels(found, "group", "paper"), levels(found, "side", "paper")
    assert [group.failed.tolist(), group.n_correct.tolist(), group.points.tolist()] == [[1, 0, 0], [4, 2, 0], [5, 2, 2]]
    assert side.n_correct.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("denominator", "n", "areas", "medians"),
    [("paper", (4, 2, 2), (6 / 4, 6, 0), (1.5, 6, 0)), ("correct", (3, 2, 0), (2, 6, NAN), (2, 6, NAN))],
)
def test_a_denominator_says_whose_mean_it_is(
    denominator: str, n: tuple[float, ...], areas: tuple[float, ...], medians: tuple[float, ...]
) -> None:
    found = levels(measured(), "group", denominator)
    np.testing.assert_array_equal(found.n, n)
    np.testing.assert_allclose(found.auc, areas)
    np.testing.assert_allclose(found.mean_distance, areas)
    np.testing.assert_allclose(found.median_distance, medians)


def test_a_budget_cuts_the_area_and_leaves_the_distances() -> None:
    found = measured(budget=2.5)
    own = levels(found, "group", "correct")
    assert found.budget == 2.5
    assert own.auc[0] == pytest.approx((1 + 2 + 2.5) / 3)
    assert own.sigma[0] == pytest.approx(5.5 / 3 / 2.5 - 1)
    assert own.mean_distance[0] == pytest.approx(2)


@pytest.mark.parametrize("denominator", ["paper", "correct"])
def test_the_area_below_a_curve_is_the_area_of_its_level(denominator: str) -> None:
    own, width = levels(measured(), "group", denominator), 1e-3
    curves = own.curves(np.arange(0, 8, width))
    assert curves.shape == (3, 8000)
    np.testing.assert_allclose(curves.sum(axis=1) * width, own.auc, atol=2 * width)


def test_a_level_without_points_that_count_has_no_sigma() -> None:
    paper, correct = (levels(measured(), "group", name) for name in ("paper", "correct"))
    assert (paper.empty, correct.empty) == ([], ["c"])
    assert np.isnan([getattr(correct, name)[2] for name in ("sigma", "sigma_ci_low", "sigma_p", "auc")]).all()
    # Where misclassified points count, they are the least robust of all.
    assert paper.sigma[2] == -1
    assert 0 < paper.sigma_p[2] <= paper.sigma_p_adjusted[2] <= 1
    # No error can be read off lengths that are all alike.
    assert np.isnan(paper.sigma_ci_low[2])


def test_the_interval_goes_around_sigma_and_two_complements_have_one_test() -> None:
    found = measured()
    own = levels(found, "group", "correct")
    assert own.sigma_ci_low[0] < own.sigma[0] < own.sigma_ci_high[0]
    for denominator in ("paper", "correct"):
        side = levels(found, "side", denominator)
        assert side.sigma_p[0] == side.sigma_p[1] < 1
        assert side.sigma_p_adjusted[0] >= side.sigma_p[0]


def test_the_same_stream_gives_the_same_numbers_whichever_denominators_are_measured() -> None:
    np.testing.assert_equal(arrays(measured()), arrays(measured()))
    first, other = (levels(measured(seed=seed), "group", "correct").sigma_ci_low[0] for seed in (0, 1))
    assert first != other
    both, one = measured(), measured(denominators=["correct"])
    np.testing.assert_equal(arrays(one), arrays(both)[len(arrays(one)) :])


def test_where_everything_failed_counts_are_all_there_is() -> None:
    pair, rng = Partition("p", ("a", "b"), np.array([0, 1, 1])), np.random.default_rng(0)
    found = robustness_bias(np.full(3, NAN), np.ones(3, dtype=bool), [pair], None, PRECISION, rng)
    assert found.failed.all()
    assert np.isnan([found.budget, found.median_distance, found.mean_distance]).all()
    for one in found.levels:
        assert one.failed.tolist() == [1, 2]
        assert one.n.tolist() == [0, 0]
        assert np.isnan([getattr(one, name) for name in MEASURES if name != "n"]).all()


def test_a_fallback_gives_failed_points_a_distance_and_they_still_count_as_failed() -> None:
    fallback = np.where(np.isnan(DISTANCE), 5.0, 0.1)
    found = measured(fallback=fallback)
    np.testing.assert_array_equal(found.failed, measured().failed)
    own = levels(found, "group", "correct")
    assert (own.failed[0], own.n[0], own.mean_distance[0]) == (1, 4, (1 + 2 + 3 + 5) / 4)
    # Misclassified points have no distance, whatever the fallback.
    assert own.n[2] == 0
    assert np.isnan(found.distance[~CORRECT]).all()


@pytest.mark.parametrize(
    ("option", "changes"),
    [
        ("partitions", {"partitions": [GROUP, Partition("p", ("a",), np.zeros(8, dtype=int))]}),
        ("correct", {"correct": CORRECT[:8]}),
        ("distance", {"distance": np.where(np.isnan(DISTANCE), DISTANCE, -1.0)}),
        ("denominator", {"denominators": ["all"]}),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(option: str, changes: Any) -> None:
    known = {"distance": DISTANCE, "correct": CORRECT, "partitions": [GROUP], "budget": None, "precision": PRECISION}
    with pytest.raises(InvalidInput) as error:
        robustness_bias(**known | {"rng": np.random.default_rng(0)} | changes)
    assert error.value.option == option


def test_the_study_has_a_row_for_every_number_and_names_a_level_without_sigma(caplog: pytest.LogCaptureFixture) -> None:
    found = measured()
    with caplog.at_level(logging.WARNING):
        frame = pd.DataFrame(rows_of(found, "deepfool, epoch 3"))
    assert caplog.messages == [
        "deepfool, epoch 3, denominator correct: no point of group c counts, so sigma is undefined"
    ]
    assert not frame.duplicated(subset=[name for name in frame if name != "value"]).any()
    assert frame["value"].dtype == float
    whole = frame[frame["partition"] == ""].set_index("statistic")["value"].to_dict()
    assert whole["accuracy"] == 6 / 9
    assert {name: whole[name] for name in ("points", "failed", "budget")} == {"points": 9, "failed": 1, "budget": 8}
    of_levels = frame[frame["partition"] != ""].set_index(["denominator", "partition", "statistic"])["value"]
    for one in found.levels:
        for names, denominator in ((("n_correct", "failed"), ""), (MEASURES, one.denominator)):
            for name in names:
                rows = of_levels.loc[denominator, one.partition.name, name].to_numpy()
                np.testing.assert_array_equal(rows, getattr(one, name))


def test_the_audit_of_a_model_prints_what_the_core_measures_of_its_distances() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(120, 2)), columns=["u", "v"])
    y = (rows["u"] + rng.normal(size=120) > 0).astype(int)
    groups = pd.DataFrame(
        {"hand": rng.choice(["left", "right"], 120), "eye": rng.choice(["blue", "brown", "grey"], 120)}
    )
    model = LogisticRegression().fit(rows, y)
    call: dict[str, Any] = {"attack": "exact", "bootstraps": 100, "permutations": 99, "alpha": 0.1}
    result = fa.robustness_bias(model, rows, y, groups=groups, **call)
    points, table = result.tables["distances"], result.tables["groups"]
    parts = [Partition(name, tuple(sorted(set(points[name]))), pd.Categorical(points[name]).codes) for name in groups]
    (stream,) = generators("audit", "robustness", "sigma", "0", repetitions=1)
    distance, correct = points["distance_exact"].to_numpy(), points["audit_correct"].to_numpy()
    found = robustness_bias(distance, correct, parts, None, PRECISION, stream)
    assert table["budget"].unique() == [found.budget]
    for one in found.levels:
        own = table[(table["denominator"] == one.denominator) & (table["partition"] == one.partition.name)]
        assert own["level"].tolist() == list(one.partition.levels)
        for name in (*COUNTS, *MEASURES):
            np.testing.assert_array_equal(own[name], getattr(one, name))


def test_the_elements_of_the_five_datasets_are_152_and_the_comparisons_150() -> None:
    """Classes of CIFAR-10, CIFAR-100 and its superclasses; ages and genders of two, and races of one."""
    study = ({"label": 10}, {"label": 100}, {"label": 20}, {"age": 8, "gender": 2}, {"age": 5, "gender": 2, "race": 5})
    named = [{name: tuple(map(str, range(size))) for name, size in each.items()} for each in study]
    assert sum(map(elements, named)) == 152
    assert sum(map(comparisons, named)) == 150


def test_an_element_and_its_others_leave_out_the_unknown_and_two_levels_are_one_comparison() -> None:
    three = Partition("p", ("a", "b", "c"), np.array([0, 2, -1, 1, 0]))
    inside, outside = three.element(0)
    assert inside.tolist() == [True, False, False, False, True]
    assert outside.tolist() == [False, True, False, True, False]
    assert three.comparisons.tolist() == [0, 1, 2]
    assert Partition("p", ("a", "b"), np.array([0, 1])).comparisons.tolist() == [0, 0]


def test_the_classes_come_first_and_rows_are_taken() -> None:
    codes = {"hair": np.array([1, 0, -1, 1]), "age": np.array([0, 1, 1, 0])}
    names = {"hair": ("long", "short"), "age": ("young", "old")}
    test = np.array([[3, 2, 1]])
    dataset = image_dataset(np.zeros((4, 1, 2, 2)), codes, names, 1, label_name="age", test=test)
    age, hair = partitions_of(dataset, dataset.test[0])
    assert (age.name, age.levels, age.codes.tolist()) == ("age", ("young", "old"), [0, 1, 1])
    assert (hair.name, hair.codes.tolist()) == ("hair", [1, -1, 0])
