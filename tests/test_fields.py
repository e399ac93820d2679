"""A configuration holds what its types say: a value outside is refused by its key, and one inside is not."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from fairness_audits.attacks.carlini_wagner import Settings as CarliniWagner
from fairness_audits.audits.inference import Precision
from fairness_audits.audits.permutation.monte_carlo import Settings as PermutationTest
from fairness_audits.errors import InvalidInput
from fairness_audits.seeds import generators
from fairness_audits.validation import (
    Checked,
    Count,
    Names,
    Share,
    above,
    at_least,
    described,
    even,
    finite,
    hints_of,
    interval,
    made,
    one_of,
    some_of,
)
from fairness_audits.values import Dataset
from pipeline.counterparts import parted
from pipeline.jobs import Run
from pipeline.workflow import plugins
from tests.builders import dataset as toy
from tests.errors import invalid


@dataclass(frozen=True)
class Example(Checked, of="method"):
    steps: Count = 1
    rate: Annotated[float, above(0), finite] = 0.1
    decay: Annotated[float, interval("[0, 1)")] = 0.0
    points: Annotated[int, at_least(2), even] | None = None
    solver: Annotated[str, one_of(("a", "b"))] = "a"
    tests: Annotated[list[str], some_of(("t", "u"))] = field(default_factory=lambda: ["t"])
    side: Literal["train", "test"] = "test"
    shares: Share | list[Share] = 0.5
    weights: Mapping[str, float] = field(default_factory=dict)
    names: Names | None = None
    exact: bool = False
    order: Literal[0, 1] = 0
    orders: list[Literal[0, 1]] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    way: Literal["plain", True] = "plain"
    pair: tuple[int, float] = (1, 0.5)


INSIDE: dict[str, list[Any]] = {
    "steps": [1, np.int64(3)],
    "rate": [1, 1e-300, np.float32(2)],
    "decay": [0, 0.999],
    "points": [None, 2],
    "solver": ["b"],
    "tests": [["u"], ("t", "u")],
    "shares": [0.1, [0.1, 0.9]],
    "weights": [{"x": -1}],
    "names": [["x"]],
    "order": [1, np.int64(1)],
    "orders": [[0, 1]],
    "counts": [{"x": 1}],
    "way": [True, "plain"],
    "pair": [(2, 1), [2, 0.5]],
}
OUTSIDE: dict[str, list[Any]] = {
    "steps": [0, 1.5, True, "1", None],
    "rate": [0.0, float("inf"), float("nan"), "fast"],
    "decay": [1.0, -0.1],
    "points": [1, 3, 2.5],
    "solver": ["c", None],
    "tests": [[], ["t", "t"], ["v"], "t"],
    "side": ["all"],
    "shares": [1.0, [0.5, 0.0]],
    "weights": [{"x": "y"}, [1.0]],
    "names": [[], [1]],
    "exact": [1, "yes"],
    "order": [True, False, 1.0, np.True_, 2, "1"],
    "orders": [[True], [0, 1.0]],
    "counts": [{"x": True}, {"x": 1.0}, {1: 1}],
    "way": [1, 1.0, False],
    "pair": [(1,), (1, 0.5, 2), (0.5, 1), (True, 0.5)],
}


@pytest.mark.parametrize("key", [*INSIDE, *OUTSIDE])
def test_what_a_type_says_is_what_is_taken(key: str) -> None:
    for value in INSIDE.get(key, ()):
        assert getattr(replace(Example(), **{key: value}), key) is value
    for value in OUTSIDE.get(key, ()):
        with invalid(option=key):
            replace(Example(), **{key: value})


def test_a_type_is_described_in_words() -> None:
    hints = hints_of(Example)
    assert described(hints["points"]) == "null or a whole number of at least 2 that is even"
    assert described(hints["tests"]) == "a list of strings with some of t, u, none twice"
    assert described(hints["shares"]) == "a number in (0, 1) or a list of values that are each a number in (0, 1)"


def test_a_value_that_is_wrong_unknown_or_missing_is_named_with_its_file() -> None:
    for kind, values, key in (
        (Example, {"steps": 0}, "steps"),
        (Example, {"stps": 1}, "stps"),
        (Precision, {}, "alpha"),
    ):
        with invalid(source="f", option=key):
            made(kind, values, "f")


BAD: dict[tuple[str, str], dict[str, list[Any]]] = {
    ("dataset", "gaussian"): {"correlation": [1.1, -1.1]},
    ("dataset", "simulated"): {"minority_mean": [[1.0]]},
    ("dataset", "digits"): {"mean": [[0.5, 0.5]], "std": [[0.0]]},
    ("dataset", "cifar10"): {"std": [[0.5, 0.0, 0.5], [0.5] * 2]},
    ("method", "logistic"): {"inverse_penalties": [[1.0, 0.1]]},
    ("method", "logistic_grid"): {"low": [1e6]},
    ("method", "given"): {"weights": [{}]},
    ("audit", "loss_ratio"): {"record": [[], [0, 5]], "points": [1]},
    ("audit", "levels.rates"): {"n_a": [[10]], "rate": [[0.5, 1.0]]},
    ("audit", "levels.power"): {"differences": [[0.5]]},
    ("audit", "levels.auc"): {"n_b": [[10]]},
    ("audit", "sample_size"): {"low": [0.99]},
}
"""Of each plug-in that looks at its section itself, values that it may not have; types refuse the others."""


@pytest.fixture(scope="module")
def configured() -> Mapping[tuple[str, str], Any]:
    """A configuration of each kind, as the studies run it."""
    run, found = Run(scale="paper"), {}
    for point in [point for study in run.studies for point in run.points(study)]:
        for group in ("dataset", "method", "transport", "audit"):
            if getattr(point, group):
                section = run.grids.resolve(point)[group]
                if group == "transport":
                    found["transport", "between"], section = parted(section)
                kind = (group, str(section["kind"]))
                if kind not in found:
                    found[kind] = plugins.configure(plugins.load(*kind), section)
    return found


@pytest.mark.parametrize(("group", "kind"), BAD)
def test_a_bad_setting_of_a_plugin_is_refused_by_its_key(group: str, kind: str, configured: Any) -> None:
    for key, values in BAD[group, kind].items():
        for value in values:
            with pytest.raises(InvalidInput, match=rf"{group}\.(.*\b)?{key}\b"):
                replace(configured[group, kind], **{key: value})


@pytest.mark.parametrize(("kind", "module"), [("levels", "levels"), ("levels.rate", "levels"), ("auc.all", "auc")])
def test_a_kind_that_a_module_does_not_have_is_refused_by_name(kind: str, module: str) -> None:
    with invalid(source="configuration of 'toy'", option="kind"):
        plugins.configure(plugins.load("audit", module), {"name": "toy", "kind": kind})
    assert plugins.module_name("audit", kind) == f"pipeline.audits.{module}"


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        (CarliniWagner(10, 3, 0.1, 1.0, 0.0, 5, 0.001, 1.5), {"iterations": 0, "learning_rate": 0.0, "slack": 0.5}),
        (CarliniWagner(10, 3, 0.1, 1.0, 0.0, 5, 0.001, 1.5), {"confidence": -1.0, "improvement": 1.0}),
        (Precision(0.05, 10, 10), {"alpha": 0.0, "bootstraps": 0, "permutations": 0}),
        (
            PermutationTest(),
            {"method": "t-test", "alternative": "larger", "alpha": 5, "draws": 0, "smoothing": np.nan, "bootstraps": 1}
            | {"resampling_risk": 2.0},
        ),
    ],
)
def test_a_bad_argument_of_a_computation_is_named(settings: Any, wrong: dict[str, Any]) -> None:
    for key, value in wrong.items():
        with invalid(option=key):
            replace(settings, **{key: value})


# Propositions about the values that flow between stages.


def dataset(repetitions: int = 2) -> Dataset:
    rng = np.random.default_rng(0)
    rows = [rng.permutation(40) for _ in range(repetitions)]
    features, groups = np.column_stack([rng.normal(5, 3, 40), rng.integers(0, 2, 40)]), {"sex": rng.integers(0, 2, 40)}
    train, test = (np.stack([row[part] for row in rows]) for part in (slice(30), slice(30, None)))
    named: dict[str, Any] = {"feature_names": ("age", "member"), "continuous": ("age",)}
    return toy(features, rng.integers(0, 2, 40), groups, train, test, **named)


def test_continuous_columns_are_standardised_by_the_training_rows_alone() -> None:
    train = dataset().batch("train").features
    np.testing.assert_allclose(train[..., 0].mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(train[..., 0].std(axis=1), 1)
    data = dataset()
    batch = data.batch("test")
    for r in range(2):
        age = data.features[data.train[r], 0]
        np.testing.assert_allclose(batch.features[r, :, 0], (data.features[data.test[r], 0] - age.mean()) / age.std())
        np.testing.assert_array_equal(batch.features[r, :, 1], data.features[data.test[r], 1])
        np.testing.assert_array_equal(batch.protected["sex"][r], data.protected["sex"][data.test[r]])


def test_batches_of_fewer_repetitions_are_the_first_change_nothing_in_place_and_refuse_what_is_not_there() -> None:
    np.testing.assert_array_equal(dataset().batch("test", 1).features[0], dataset().batch("test").features[0])
    data = dataset()
    before = data.features.copy()
    data.batch("train")
    np.testing.assert_array_equal(data.features, before)
    with invalid(option="repetitions"):
        dataset().batch("train", 3)
    constant = Dataset(**{**vars(data), "features": np.ones_like(data.features)})
    with invalid(column="age"):
        constant.batch("train")


# Generators are derived from names: reproducible, distinct, and independent of the number of repetitions.


def draws(*what: str, repetitions: int = 3) -> np.ndarray:
    return np.stack([rng.random(4) for rng in generators(*what, repetitions=repetitions)])


def test_the_same_names_give_the_same_streams_however_many_repetitions_and_different_ones_others() -> None:
    np.testing.assert_array_equal(draws("train", "adult")[:2], draws("train", "adult", repetitions=2))
    streams = [*draws("train", "adult"), *draws("train", "compas"), *draws("audit", "adult"), *draws("trainadult")]
    assert len({stream.tobytes() for stream in streams}) == len(streams)
