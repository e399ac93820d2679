"""The models of twins: what fitting keeps of any rows, what it does not disclose, and that it is reproducible."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets.twins import copula as copulas
from pipeline.datasets.twins import kinds, preserved
from pipeline.datasets.twins.copula import Block, CopulaTwin
from pipeline.datasets.twins.copula import sample as sample_copula
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


def towns(n: int = 6_000, seed: int = 0) -> pd.DataFrame:
    """Made-up people of a large town and two small ones: wage is skewed, and goes with age more in the large town."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Ayr", "Bray", "Cork"], n, p=[0.8, 0.1, 0.1])
    sex = np.where(rng.random(n) < 0.4, "F", "M")
    age = np.rint(40 + 10 * (town == "Bray") + 12 * rng.standard_normal(n))
    wage = np.exp(1 + 0.02 * (age - 40) * (town == "Ayr") + 0.5 * rng.standard_normal(n)) + (sex == "M")
    return pd.DataFrame({"town": town, "sex": sex, "age": age, "wage": wage.round(2)}).astype({"town": "str"})


by_levels = functools.partial(fit, "crowd", root=("sex", "label"))
by_copula = functools.partial(copulas.fit, "crowd", root=("town", "sex"))


@pytest.fixture(scope="module")
def twin() -> Twin:
    return by_levels(crowd())


@pytest.fixture(scope="module")
def copula() -> CopulaTwin:
    return by_copula(towns())


@pytest.mark.parametrize(("made", "people"), [(by_levels, crowd), (by_copula, towns)])
def test_fitting_twice_gives_the_same_file_and_the_file_holds_the_whole_twin(made: Any, people: Any) -> None:
    twin, rng = made(people()), np.random.default_rng
    text = json.dumps(kinds.written(twin))
    assert json.dumps(kinds.written(made(people()))) == text
    content = json.loads(text)
    drawn = kinds.KINDS[content.get("kind", kinds.LEVELS)][1]
    first, second, other = (drawn(t, 500, rng(s)) for t, s in ((kinds.read(content), 3), (twin, 3), (twin, 4)))
    pd.testing.assert_frame_equal(first, second)
    assert not first.equals(other)
    pd.testing.assert_series_equal(first.dtypes, people().dtypes)


@pytest.mark.parametrize(
    ("made", "rows", "message"),
    [
        (by_levels, crowd().assign(wage=np.nan), "rows hold missing values: fit the twin on filtered rows"),
        (by_levels, crowd().assign(wage=0.5), "column 'wage' holds numbers that are not whole"),
        (by_levels, crowd().head(4), r"no combination of \['sex', 'label'\] has 10 rows"),
        (by_levels, crowd().assign(town=np.arange(4_000).astype(str)), "column 'town' has no category of 10 rows"),
        (by_copula, towns().assign(wage=np.nan), "crowd: rows hold missing values"),
        (by_copula, towns().assign(town=["Dull"] * 49 + ["Ayr"] * 5_951), "town 'Dull' has 49 rows, expected at least"),
        (by_copula, towns().assign(sex=["X"] * 20 + ["F"] * 5_980), "sex 'X' has .* rows, expected at least 50"),
    ],
)
def test_rows_that_cannot_be_twinned_are_refused(made: Any, rows: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(rows)


def number(levels: np.ndarray) -> Column:
    """A whole number with these intervals."""
    return Column("x", "int64", tuple(as_text(limits) for limits in levels), np.zeros(0), np.zeros(0))


def test_a_common_number_stands_for_itself_the_rest_is_cut_evenly_and_no_interval_holds_too_few_rows() -> None:
    values = np.concatenate([np.zeros(9_000), np.arange(1, 1_601)])
    levels = intervals(values)
    np.testing.assert_array_equal(levels[0], [0, 0, 0])
    low, high, mean = levels[1:].T
    np.testing.assert_allclose(mean[:-1], (low + high)[:-1] / 2, rtol=1e-3)
    np.testing.assert_array_equal(low[1:], high[:-1] + 1)
    np.testing.assert_array_equal([low[0], high[-1]], [1, 1_600 - FEWEST + 1])
    assert ((high - low)[:-1] == 99).all()
    values = np.random.default_rng(0).pareto(1.0, 3_000).round() + np.random.default_rng(1).integers(0, 3, 3_000)
    levels = intervals(values)
    column = number(levels)
    assert (np.bincount(column.encode(pd.Series(values)), minlength=len(levels)) >= FEWEST_IN_INTERVAL).all()
    assert levels[-1, 1] == np.sort(values)[-FEWEST] < values.max()


def test_a_number_belongs_to_the_narrowest_interval_that_holds_it_and_those_drawn_stay_there_with_its_mean() -> None:
    levels = np.array([[0, 0, 0], [1, 10, 5], [5, 5, 5], [20, 30, 25]], dtype=float)
    column = number(levels)
    assert column.encode(pd.Series([0, 1, 5, 10, 12, 18, 99, -4])).tolist() == [0, 1, 2, 1, 1, 3, 3, 0]
    levels = np.array([[0, 1000, 100], [7, 7, 7], [0, 1000, 900]], dtype=float)
    for code, (low, high, mean) in enumerate(levels):
        drawn = number(levels).decode(np.full(100_000, code), np.random.default_rng(code))
        assert drawn.dtype == np.int64
        assert low <= drawn.min() <= drawn.max() <= high
        assert abs(drawn.mean() - mean) < 4 * (high - low) / np.sqrt(12 * len(drawn)) + 1e-9


def test_two_way_tables_are_kept_and_root_cells_come_in_exact_proportion(twin: Twin) -> None:
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
    cells = [some.groupby(["sex", "label"]).size() for some in (rows, sample(twin, 4_000, np.random.default_rng(0)))]
    assert (cells[0] - cells[1]).abs().max() <= FEWEST


def test_nothing_that_counts_fewer_than_ten_people_is_stored() -> None:
    rows = crowd()
    rows.loc[:8, "town"] = "Dull"  # nine people
    rows.loc[9:18, "town"] = "Eigg"  # ten people
    rows.loc[20, "wage"] = 987_654
    rows.loc[30:33, "sex"] = "Other"  # at most four in a cell
    twin = by_levels(rows)
    text = json.dumps(kinds.written(twin))
    assert "Dull" not in text
    assert "Eigg" in text
    assert "987654" not in text
    assert "Other" not in text
    assert (twin.root.counts % 10 == 0).all()
    assert set(sample(twin, 5_000, np.random.default_rng(0))["sex"]) == {"Female", "Male"}


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


def test_a_block_is_a_large_group_or_all_the_small_ones_and_the_columns_grid_is_found(copula: CopulaTwin) -> None:
    blocks = {name: group.block for name, group in copula.groups.items()}
    assert blocks == {"Ayr": "Ayr", "Bray": copulas.OTHERS, "Cork": copulas.OTHERS}
    assert [(number.name, number.decimals) for number in copula.numbers] == [("age", 0), ("wage", 2)]
    drawn = sample_copula(copula, 2_000, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn["age"], np.rint(drawn["age"]))
    np.testing.assert_array_equal(drawn["wage"], drawn["wage"].round(2))


def test_means_spreads_correlations_and_the_shape_are_kept_in_every_group(copula: CopulaTwin) -> None:
    rows, drawn = towns(), sample_copula(copula, 200_000, np.random.default_rng(0))
    for town, sex in (("Ayr", None), ("Bray", None), ("Cork", None), ("Ayr", "F"), ("Ayr", "M")):
        real, synthetic = (r[(r["town"] == town) & ((r["sex"] == sex) | (sex is None))] for r in (rows, drawn))
        for name in ("age", "wage"):
            assert synthetic[name].mean() == pytest.approx(real[name].mean(), abs=0.03 * real[name].std())
            assert synthetic[name].std() == pytest.approx(real[name].std(), rel=0.04)
        if town != "Bray":  # shares a block with Cork, which is as large
            found, expected = synthetic["age"].corr(synthetic["wage"]), real["age"].corr(real["wage"])
            assert found == pytest.approx(expected, abs=0.04)
    real, synthetic = (r.loc[r["town"] == "Ayr", "wage"] for r in (rows, drawn))
    for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98):
        assert (synthetic <= real.quantile(share)).mean() == pytest.approx(share, abs=0.02)


def test_a_quantile_function_has_its_intervals_means_mean_nought_and_variance_one() -> None:
    values = np.random.default_rng(1).exponential(size=20_000)
    quantiles, means = copulas.knots((values - values.mean()) / values.std())
    assert ((quantiles[:-1] < means) & (means < quantiles[1:])).all()
    block = Block({}, {}, np.eye(1), quantiles[None], means[None])
    left = block.left((np.arange(1_000_000) + 0.5) / 1_000_000, 0)
    assert (np.diff(left) >= 0).all()
    assert left.mean() == pytest.approx(0, abs=2e-3)
    assert left.std() == pytest.approx(1, abs=5e-3)
    for k, part in enumerate(np.split(left, len(means))):
        assert part.mean() == pytest.approx(means[k], abs=1e-3)


def test_equal_values_share_their_normal_score() -> None:
    scores = copulas.normal_scores(np.array([[3.0], [1.0], [3.0], [2.0]]))[:, 0]
    assert scores[0] == scores[2]
    # Ranks 1, 2 and twice 3.5 of four.
    np.testing.assert_allclose(scores, [0.6744898, -1.1503494, 0.6744898, -0.3186394], atol=1e-6)


def test_no_copula_tells_of_too_few_people_is_stored() -> None:
    rows = towns()
    rows.loc[0, "wage"] = 987_654.0
    rows.loc[1:9, "age"] = -777.0  # nine people
    twin = by_copula(rows)
    text = json.dumps(kinds.written(twin))
    assert "987654" not in text
    assert "777" not in text
    assert (twin.root.counts % FEWEST == 0).all()
    for name, block in twin.blocks.items():
        members = (rows["town"] == "Ayr") == (name == "Ayr")
        assert block.means.shape[1] <= members.sum() // FEWEST_IN_INTERVAL
    drawn = sample_copula(twin, 20_000, np.random.default_rng(0))
    assert drawn["age"].min() >= np.sort(rows["age"])[FEWEST - 1]
    assert drawn["wage"].max() <= np.sort(rows["wage"])[-FEWEST]
