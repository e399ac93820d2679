"""Variance components: right values by mean squares, by REML and by simulation, and what disagreement is."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from pipeline.variance_components import components, disagreement, half_squared_difference

RNG = np.random.default_rng(20)


def simulated(shape: tuple[int, int, int], deviations: dict[str, float], rng: np.random.Generator) -> np.ndarray:
    """Values of a crossed experiment with these standard deviations of its effects, named by axes such as "02"."""
    total = np.zeros(shape)
    for effect, deviation in deviations.items():
        own = [count if str(axis) in effect else 1 for axis, count in enumerate(shape)]
        total = total + deviation * rng.normal(size=own)
    return total


def test_half_squared_difference_is_that_of_all_pairs_of_cells() -> None:
    y = RNG.normal(size=(3, 2, 4))
    cells = list(np.ndindex(y.shape))
    for axes in ([0], [2], [0, 1], [0, 1, 2]):
        apart = [
            (y[one] - y[other]) ** 2 / 2
            for one, other in product(cells, cells)
            if [axis for axis in range(3) if one[axis] != other[axis]] == axes
        ]
        assert half_squared_difference(y, axes) == pytest.approx(np.mean(apart))


def test_components_of_two_factors_equate_mean_squares_to_their_expectations() -> None:
    a, b = 5, 7
    y = RNG.normal(size=(a, b)) + 2 * RNG.normal(size=(a, 1)) + 1000
    mean, rows, columns = y.mean(), y.mean(axis=1), y.mean(axis=0)
    of_rows = b * ((rows - mean) ** 2).sum() / (a - 1)
    of_columns = a * ((columns - mean) ** 2).sum() / (b - 1)
    rest = ((y - rows[:, None] - columns + mean) ** 2).sum() / (a - 1) / (b - 1)
    found = components(y, ("rows", "columns"))
    assert found["rows",] == pytest.approx((of_rows - rest) / b)
    assert found["columns",] == pytest.approx((of_columns - rest) / a)
    assert found["rows", "columns"] == pytest.approx(rest)


def test_components_are_those_of_reml_where_none_is_negative() -> None:
    mixed = pytest.importorskip("statsmodels.formula.api")
    y = simulated((8, 6, 1), {"0": 2.0, "1": 1.0, "01": 0.5}, np.random.default_rng(3))[..., 0]
    rows, columns = np.indices(y.shape)
    frame = pd.DataFrame({"y": y.ravel(), "rows": rows.ravel(), "columns": columns.ravel(), "one": 1})
    fitted = mixed.mixedlm(
        "y ~ 1", frame, groups="one", vc_formula={"rows": "0 + C(rows)", "columns": "0 + C(columns)"}
    ).fit(reml=True)
    named = dict(zip(fitted.model.exog_vc.names, fitted.vcomp, strict=True))
    found = components(y, ("rows", "columns"))
    assert min(found.values()) > 0
    assert [found["rows",], found["columns",], found["rows", "columns"]] == pytest.approx(
        [named["rows"], named["columns"], fitted.scale], rel=1e-3
    )


def test_components_are_unbiased() -> None:
    truth = {"0": 1.0, "2": 0.5, "01": 0.7, "012": 0.3}
    rng = np.random.default_rng(4)
    drawn = [components(simulated((3, 4, 2), truth, rng), "012") for _ in range(4000)]
    for effect in drawn[0]:
        values = np.array([one[effect] for one in drawn])
        wanted = truth.get("".join(effect), 0.0) ** 2
        assert abs(values.mean() - wanted) < 4 * values.std() / np.sqrt(len(values)), effect


def test_a_factor_with_one_level_has_no_component_and_no_difference() -> None:
    y = RNG.normal(size=(3, 1, 4))
    assert components(y, "abc") == pytest.approx(
        {tuple("ac"[i] for i in map(int, effect)): value for effect, value in components(y[:, 0], "01").items()}
    )
    with pytest.raises(ValueError, match="axis 1"):
        half_squared_difference(y, [1])


def test_disagreement_is_the_share_of_pairs_that_disagree() -> None:
    """Of one factor: 2 k (n - k) / n (n - 1). Equal decisions never disagree; unknown ones make it unknown."""
    decisions = np.array([[1.0, 1, 0, 0, 0], [0, 0, 0, 0, 1]])
    assert disagreement(decisions, [1]) == pytest.approx(np.mean([2 * 2 * 3 / 20, 2 * 1 * 4 / 20]))
    assert disagreement(np.ones((2, 5)), [0, 1]) == 0
    assert np.isnan(disagreement(np.array([[1.0, np.nan]]), [1]))
    coins = np.random.default_rng(5).random((400, 300)) < 0.3
    assert disagreement(coins, [0, 1]) == pytest.approx(2 * 0.3 * 0.7, abs=0.01)
