"""The model of a twin: what fitting keeps of any rows, what it does not disclose, and that it is reproducible."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets.twins import kinds, preserved
from pipeline.datasets.twins.fit import fit, intervals, main
from pipeline.datasets.twins.model import Column, Twin, as_text, sample
from pipeline.datasets.twins.preserved import FEWEST, FEWEST_IN_INTERVAL


def crowd(n: int = 4_000, seed: int = 0) -> pd.DataFrame:
    """Made-up people: the trade depends on sex and label, the town on the trade, the wage on trade and town."""
    rng = np.random.default_rng(seed)
    sex, label = rng.integers(0, 2, n), rng.integers(0, 2, n)
    trade = np.where(rng.random(n) < 0.2 + 0.3 * sex + 0.3 * label, 1, 0)
    town = np.where(rng.random(n) < 0.8, trade, rng.integers(0, 3, n))
    wage = np.where(rng.random(n) < 0.6, 0, rng.poisson(20 + 30 * trade + 20 * town))
    return pd.DataFrame(
        {
            "wage": wage.astype(np.int64),
            "sex": np.where(sex == 1, "Male", "Female"),
            "trade": np.array(["baker", "smith"], dtype=object)[trade],
            "town": np.array(["Ayr", "Bray", "Cork"], dtype=object)[town],
            "label": label,
        }
    )


@pytest.fixture(scope="module")
def twin() -> Twin:
    return fit("crowd", crowd(), ("sex", "label"))


def number(levels: np.ndarray) -> Column:
    """A whole number with these intervals."""
    return Column("x", "int64", tuple(as_text(limits) for limits in levels), np.zeros(0), np.zeros(0))


# Intervals: the quantile function of a number.


def test_a_common_number_stands_for_itself_and_the_rest_is_cut_evenly() -> None:
    values = np.concatenate([np.zeros(9_000), np.arange(1, 1_601)])
    levels = intervals(values)
    np.testing.assert_array_equal(levels[0], [0, 0, 0])
    low, high, mean = levels[1:].T
    np.testing.assert_allclose(mean[:-1], (low + high)[:-1] / 2, rtol=1e-3)
    np.testing.assert_array_equal(low[1:], high[:-1] + 1)
    np.testing.assert_array_equal([low[0], high[-1]], [1, 1_600 - FEWEST + 1])
    assert ((high - low)[:-1] == 99).all()


def test_no_interval_holds_fewer_rows_than_the_rule_allows() -> None:
    values = np.random.default_rng(0).pareto(1.0, 3_000).round() + np.random.default_rng(1).integers(0, 3, 3_000)
    levels = intervals(values)
    column = number(levels)
    assert (np.bincount(column.encode(pd.Series(values)), minlength=len(levels)) >= FEWEST_IN_INTERVAL).all()
    assert levels[-1, 1] == np.sort(values)[-FEWEST] < values.max()


def test_a_number_belongs_to_the_narrowest_interval_that_holds_it_else_to_the_nearest() -> None:
    levels = np.array([[0, 0, 0], [1, 10, 5], [5, 5, 5], [20, 30, 25]], dtype=float)
    column = number(levels)
    assert column.encode(pd.Series([0, 1, 5, 10, 12, 18, 99, -4])).tolist() == [0, 1, 2, 1, 1, 3, 3, 0]


def test_numbers_drawn_within_an_interval_stay_there_and_have_its_mean() -> None:
    levels = np.array([[0, 1000, 100], [7, 7, 7], [0, 1000, 900]], dtype=float)
    column = number(levels)
    for code, (low, high, mean) in enumerate(levels):
        drawn = column.decode(np.full(100_000, code), np.random.default_rng(code))
        assert drawn.dtype == np.int64
        assert low <= drawn.min() <= drawn.max() <= high
        assert abs(drawn.mean() - mean) < 4 * (high - low) / np.sqrt(12 * len(drawn)) + 1e-9


# Fitting and sampling.


def test_fitting_twice_gives_the_same_file_and_the_file_holds_the_whole_twin(twin: Twin) -> None:
    again = fit("crowd", crowd(), ("sex", "label"))
    text = json.dumps(kinds.written(twin))
    assert json.dumps(kinds.written(again)) == text
    reread = kinds.read(json.loads(text))
    first, second, other = (
        sample(t, 500, np.random.default_rng(seed)) for t, seed in ((reread, 3), (twin, 3), (twin, 4))
    )
    pd.testing.assert_frame_equal(first, second)
    assert not first.equals(other)
    assert (first.dtypes == crowd().dtypes).all()


def test_root_cells_come_in_exact_proportion(twin: Twin) -> None:
    observed = crowd().groupby(["sex", "label"]).size()
    drawn = sample(twin, 4_000, np.random.default_rng(0)).groupby(["sex", "label"]).size()
    assert (observed - drawn).abs().max() <= FEWEST


def test_two_way_tables_are_kept(twin: Twin) -> None:
    """The score equations: expected counts of every pair of levels equal the observed ones, up to the penalty."""
    rows = crowd()
    drawn = sample(twin, 200_000, np.random.default_rng(0))
    for a, b in (("trade", "town"), ("sex", "trade"), ("label", "town"), ("sex", "town")):
        expected = pd.crosstab(rows[a], rows[b], normalize=True)
        found = pd.crosstab(drawn[a], drawn[b], normalize=True)
        np.testing.assert_allclose(found, expected, atol=0.006)
    for trade in ("baker", "smith"):
        wages, expected_wages = drawn.loc[drawn["trade"] == trade, "wage"], rows.loc[rows["trade"] == trade, "wage"]
        assert wages.mean() == pytest.approx(expected_wages.mean(), rel=0.02)
        assert (wages == 0).mean() == pytest.approx((expected_wages == 0).mean(), abs=0.01)


def test_nothing_that_counts_fewer_than_ten_people_is_stored() -> None:
    rows = crowd()
    rows.loc[:8, "town"] = "Dull"  # nine people
    rows.loc[9:18, "town"] = "Eigg"  # ten people
    rows.loc[20, "wage"] = 987_654
    rows.loc[30:33, "sex"] = "Other"  # at most four in a cell
    twin = fit("crowd", rows, ("sex", "label"))
    text = json.dumps(kinds.written(twin))
    assert "Dull" not in text
    assert "Eigg" in text
    assert "987654" not in text
    assert "Other" not in text
    assert (twin.root.counts % 10 == 0).all()
    assert set(sample(twin, 5_000, np.random.default_rng(0))["sex"]) == {"Female", "Male"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda rows: rows.assign(wage=np.nan), "rows hold missing values: fit the twin on filtered rows"),
        (lambda rows: rows.assign(wage=0.5), "column 'wage' holds numbers that are not whole"),
        (lambda rows: rows.head(4), r"no combination of \['sex', 'label'\] has 10 rows"),
        (lambda rows: rows.assign(town=[str(i) for i in range(len(rows))]), "column 'town' has no category of 10 rows"),
    ],
)
def test_rows_that_cannot_be_twinned_are_refused(spoil: Callable[[pd.DataFrame], pd.DataFrame], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit("crowd", spoil(crowd()), ("sex", "label"))


def test_cramers_v_is_one_for_copies_and_zero_for_a_balanced_cross() -> None:
    a = np.repeat([0, 1, 2], 40)
    assert preserved.cramers_v(a, (a + 1) % 3) == pytest.approx(1.0)
    assert preserved.cramers_v(np.tile([0, 1], 60), np.repeat([0, 1, 2], 40)) == pytest.approx(0.0, abs=1e-12)
    assert preserved.cramers_v(a, np.zeros(120, dtype=int)) == 0.0
    # [[30, 10], [10, 30]]: chi^2 = 20 of 80 rows, V = 1/2.
    b, c = np.repeat([0, 1], 40), np.r_[np.zeros(30), np.ones(10), np.zeros(10), np.ones(30)].astype(int)
    assert preserved.cramers_v(b, c) == pytest.approx(0.5)


def test_the_script_refuses_what_has_no_twin(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"fit the twin of simulated: .* has no twin"):
        main(["simulated", "--raw", str(tmp_path)])
