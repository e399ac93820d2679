"""Two groups, a rule and maps that move people by a given amount, for audits of transport maps."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from fairness_audits.seeds import generators
from fairness_audits.transport import exact
from fairness_audits.values import Array, Classifier, Dataset, TransportMap
from pipeline.counterparts import Between, fitted
from tests.builders import dataset, logistic

GAP = np.array([0.8, -0.5])
"""How far the target group is from the source group in x and z."""


def toy() -> Dataset:
    """Two repetitions of 300 training and 500 test rows; the column g is the group, and y a label."""
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat([0, 1], 400))
    moving = rng.normal(size=(800, 2)) + group[:, None] * GAP
    order = np.stack([rng.permutation(800) for _ in range(2)])
    label = (moving[:, 0] + rng.normal(size=800) > 0).astype(np.int64)
    features, names = np.column_stack([moving, group]), ("x", "z", "g")
    levels = {"group": ("F", "M")}
    return dataset(
        features, label, {"group": group}, order[:, :300], order[:, 300:], feature_names=names, levels=levels
    )


TOY = toy()


def rule(*coef: float, intercept: float = 0.0, repetitions: int = 2) -> Classifier:
    """P(y = 1 | x) = sigmoid(a x + b z + c g) in every repetition, of coefficients a, b and c."""
    return logistic(*coef, intercept=intercept, repetitions=repetitions)


def _images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """Trial t moves everyone by ``by[t]``; nobody with x above ``limit[t]`` has an image; undefined for limit NaN."""
    if np.isnan(parameters["limit"]).any():
        raise ValueError("this map is not defined on these rows")
    each = zip(rows, parameters["by"], parameters["limit"], strict=True)
    return [np.where(x[:, :1] > limit, np.nan, x + by) for x, by, limit in each]


KIND = ModuleType("fairness_audits.transport.shift")
"""The kind of the maps below, put among the modules by conftest.py."""
KIND.__dict__["images"] = _images


def shift(
    by: Array = GAP,
    *,
    both: bool = True,
    trials: int = 2,
    limit: float = np.inf,
    limit_back: float = np.inf,
    given_label: int | None = None,
) -> TransportMap:
    """Maps that move everyone in F by ``by`` and, unless ``both`` is False, everyone in M by minus that.

    ``limit`` and ``limit_back``: people with an x above it have no image; NaN, for a map that is defined nowhere.
    """
    there, back = (
        {"by": np.tile(step, (trials, 1)), "limit": np.full(trials, furthest)}
        for step, furthest in ((by, limit), (-np.asarray(by), limit_back))
    )
    groups = {"attribute": "group", "source": "F", "target": "M", "given_label": given_label}
    names: dict[str, Any] = {"transport": "shift", "dataset": "toy", "features": ("x", "z"), **groups}
    return TransportMap("shift", there, back if both else {}, **names)


def exact_maps(dataset: Dataset, image: str = "sample") -> TransportMap:
    """Exact maps of every repetition, in both directions; ``image``: sample or expectation."""
    between, config = Between("group", "F", None, "test", None, True), exact.Config("squared_l1", image)
    return fitted(dataset, between, exact, config, generators("map", repetitions=dataset.repetitions), "exact")
