"""Distances of table rows: exact of a linear model, an upper bound of a network, none where a coin decides."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairness_audits.attacks.row_networks import MARGIN
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset
from pipeline.audits import tabular_robustness
from pipeline.audits.tabular_robustness import Config, distances, kind_of
from tests.attacks.builders import network
from tests.builders import dataset, logistic, number, shipped
from tests.errors import invalid

CHANGES = {"points": None, "bootstraps": 200, "permutations": 199}
CONFIG = Config(**shipped("audit", "tabular_robustness") | CHANGES)
RNGS = generators("distance", repetitions=1)


def people(n: int = 400) -> Dataset:
    """Label 1 right of the plane x0 + x1 = 0; those of group 1 are twice as far from it."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 2
    x = 3 * rng.normal(size=(n, 2))
    x[group == 1] *= 2
    return dataset(x, (x.sum(axis=1) > 0).astype(np.int64), {"group": group})


def of(rows: pd.DataFrame, statistic: str, level: str = "") -> float:
    return number(rows, statistic=statistic, level=level)


def test_of_a_linear_model_sigma_is_that_of_the_distances_to_its_plane() -> None:
    data = people()
    result = tabular_robustness.run(data, logistic(1.0, 1.0, intercept=0.5), CONFIG, RNGS)
    margin = data.features.sum(axis=1) + 0.5
    right = (margin > 0) == (data.label == 1)
    exact = np.abs(margin) / np.sqrt(2)
    np.testing.assert_allclose(result.arrays["distance"][0], np.where(right, exact, np.nan), rtol=1e-12)
    near, far = (exact[right & (data.protected["group"] == g)].mean() for g in (0, 1))
    assert of(result.rows, "sigma", "0") == pytest.approx(near / far - 1)
    assert of(result.rows, "sigma_p", "0") == pytest.approx(1 / 200)
    assert of(result.rows, "sigma_ci_low", "0") < of(result.rows, "sigma", "0") < of(result.rows, "sigma_ci_high", "0")
    assert of(result.rows, "accuracy") == pytest.approx(right.mean())
    assert set(result.rows["distance"]) == {"exact"}


@pytest.mark.parametrize(("shift", "size"), [(0.0, 1.0), (40.0, 5.0)])
def test_of_a_network_that_is_linear_the_bound_is_the_distance_to_its_plane_wherever_the_rows_lie(
    shift: float, size: float
) -> None:
    coef, intercept = np.array([1.0, -2.0, 0.5]), 0.3
    # The margin relu(z) - relu(-z) + intercept, z = coef.x.
    model = {"w1": np.stack([coef, -coef], axis=1), "b1": np.zeros(2), "b2": np.array([0.0, intercept])}
    model["w2"] = np.array([[0.0, 1.0], [0.0, -1.0]])
    x = shift + size * np.random.default_rng(0).normal(size=(200, 3))
    margin = x @ coef + intercept
    found = distances("fmn", model, x, (margin > 0).astype(np.int64), CONFIG.fmn_steps, CONFIG.fmn_start_steps)
    exact = np.abs(margin) / np.linalg.norm(coef)
    # Up to what float32 resolves of an image whose unit is the range of the rows.
    tolerance = 2e-6 * np.ptp(x, axis=0).max() * MARGIN
    assert (found >= exact - tolerance).all()
    np.testing.assert_allclose(found, exact, rtol=0.02, atol=tolerance)


def test_a_coin_has_no_boundary_and_rows_in_neither_group_no_part_in_sigma() -> None:
    data, line = people(), logistic(1.0, 1.0)
    two = {"weight": np.full((1, 2), 0.5), "coef": np.ones((1, 2, 2)), "intercept": np.zeros((1, 2))}
    mixture = replace(line, parameters=two)
    result = tabular_robustness.run(data, mixture, CONFIG, RNGS)
    assert set(result.rows["statistic"]) == {"accuracy", "balanced_accuracy"}
    assert not result.arrays
    assert kind_of(mixture) == ""
    assert kind_of(replace(line, architecture="mlp", parameters=network(1, d=2))) == "fmn"
    third = np.where(np.arange(400) % 3 == 0, -1, data.protected["group"])
    some = tabular_robustness.run(replace(data, protected={"group": third}), line, CONFIG, RNGS)
    assert of(some.rows, "n", "0") + of(some.rows, "n", "1") == (third >= 0).sum()


def test_the_distance_of_a_random_decision_is_refused() -> None:
    with invalid(option="method"):
        distances("", {}, np.zeros((2, 3)), np.zeros(2, int), 1, 1)


def test_the_first_points_alone_are_measured_and_all_are_counted_as_right_or_wrong() -> None:
    data = people()
    wrong = data.label.copy()
    wrong[200:] = 1 - wrong[200:]
    found = tabular_robustness.run(replace(data, label=wrong), logistic(1.0, 1.0), replace(CONFIG, points=100), RNGS)
    assert found.arrays["distance"].shape == found.arrays["rows"].shape == (1, 100)
    assert of(found.rows, "accuracy") == 0.5
    assert of(found.rows, "n", "0") == 50
