"""What the artefacts see of a data set: moments and sizes, and no row."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.report.described import correlation, described
from pipeline.types import Dataset


def dataset(origin: str = "official", n: int = 40) -> Dataset:
    """People of two groups, the last feature constant; some are in neither."""
    rng = np.random.default_rng(0)
    group = rng.integers(-1, 2, n)
    features = np.column_stack([rng.normal(size=n) + 2 * (group == 0), rng.integers(0, 2, n), np.ones(n)])
    rows = rng.permutation(n)
    return Dataset(
        name="d",
        origin=origin,  # type: ignore[arg-type]
        features=features,
        feature_names=("a", "b", "c"),
        continuous=("a",),
        label=rng.integers(0, 2, n),
        label_name="y",
        protected={"g": group},
        levels={"g": ("first", "second")},
        train=rows[None, : n // 2],
        test=rows[None, n // 2 :],
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=3, max_size=20))
def test_correlation_is_that_of_numpy(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    ours = correlation(x, y)
    if min(np.ptp(x), np.ptp(y)) > 1e-3:
        assert ours == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)
        assert correlation(-x, y) == pytest.approx(-ours)


def test_moments_are_those_of_the_rows() -> None:
    data = dataset()
    group, x = data.protected["g"], data.features
    found = described(data)
    assert (found.rows, found.train_rows, found.test_rows) == (40, 20, 20)
    assert found.positives == data.label.mean()
    assert np.array_equal(found.means["g"], [x[group == code].mean(axis=0) for code in (0, 1)])
    assert np.array_equal(found.train_deviations, x[data.train[0]].std(axis=0))
    known = group >= 0
    assert found.correlations["g"][0] == pytest.approx(np.corrcoef(x[known, 0], group[known] == 0)[0, 1])
    assert found.correlations["g"][0] > 0
    assert np.isnan(found.correlations["g"][2])
    assert found.deviations[found.column("c")] == 0


def test_no_row_of_real_data_is_in_it() -> None:
    found = described(dataset())
    assert found.points == {}
    held = [getattr(found, field.name) for field in fields(found)]
    assert all(value.ndim == 1 and len(value) == 3 for value in held if isinstance(value, np.ndarray))
    plane = replace(dataset("simulated"), features=dataset().features[:, :2], feature_names=("a", "b"))
    assert np.array_equal(described(plane).points["features"], plane.features)
    assert described(replace(plane, origin="twin")).points == {}


def test_an_attribute_of_one_group_has_no_means() -> None:
    data = dataset()
    alone = replace(data, protected={"g": np.zeros(40, dtype=int)})
    assert described(alone).means == {}
