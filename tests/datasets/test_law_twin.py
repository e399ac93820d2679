"""The copula twin: what fitting keeps of any rows, what it does not disclose, and the shipped one of the law school."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets import law
from pipeline.datasets.twins import copula, kinds
from pipeline.datasets.twins.copula import Block, CopulaTwin, sample
from pipeline.datasets.twins.preserved import FEWEST, FEWEST_IN_INTERVAL
from pipeline.seeds import generators

SHIPPED = Path(__file__).resolve().parents[2] / "data" / "twins" / "law.json"
ROOT = ("town", "sex")


def crowd(n: int = 6_000, seed: int = 0) -> pd.DataFrame:
    """Made-up people of a large town and two small ones: wage is skewed, and goes with age more in the large town."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Ayr", "Bray", "Cork"], n, p=[0.8, 0.1, 0.1])
    sex = np.where(rng.random(n) < 0.4, "F", "M")
    age = np.rint(40 + 10 * (town == "Bray") + 12 * rng.standard_normal(n))
    wage = np.exp(1 + 0.02 * (age - 40) * (town == "Ayr") + 0.5 * rng.standard_normal(n)) + (sex == "M")
    return pd.DataFrame({"town": town, "sex": sex, "age": age, "wage": wage.round(2)}).astype({"town": "str"})


@pytest.fixture(scope="module")
def twin() -> CopulaTwin:
    return copula.fit("crowd", crowd(), ROOT)


# Any rows.


def test_a_block_is_a_large_group_or_all_the_small_ones(twin: CopulaTwin) -> None:
    assert {name: group.block for name, group in twin.groups.items()} == {
        "Ayr": "Ayr",
        "Bray": copula.OTHERS,
        "Cork": copula.OTHERS,
    }


def test_the_columns_grid_is_found(twin: CopulaTwin) -> None:
    assert [(number.name, number.decimals) for number in twin.numbers] == [("age", 0), ("wage", 2)]
    drawn = sample(twin, 2_000, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn["age"], np.rint(drawn["age"]))
    np.testing.assert_array_equal(drawn["wage"], drawn["wage"].round(2))


def test_means_spreads_and_correlations_are_kept_in_every_group(twin: CopulaTwin) -> None:
    rows, drawn = crowd(), sample(twin, 200_000, np.random.default_rng(0))
    for town, sex in (("Ayr", None), ("Bray", None), ("Cork", None), ("Ayr", "F"), ("Ayr", "M")):
        real, synthetic = (r[(r["town"] == town) & ((r["sex"] == sex) | (sex is None))] for r in (rows, drawn))
        for name in ("age", "wage"):
            assert synthetic[name].mean() == pytest.approx(real[name].mean(), abs=0.03 * real[name].std())
            assert synthetic[name].std() == pytest.approx(real[name].std(), rel=0.04)
        if town != "Bray":  # shares a block with Cork, which is as large
            found, expected = synthetic["age"].corr(synthetic["wage"]), real["age"].corr(real["wage"])
            assert found == pytest.approx(expected, abs=0.04)


def test_the_shape_is_kept_too(twin: CopulaTwin) -> None:
    rows, drawn = crowd(), sample(twin, 100_000, np.random.default_rng(0))
    real, synthetic = (r.loc[r["town"] == "Ayr", "wage"] for r in (rows, drawn))
    for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98):
        assert (synthetic <= real.quantile(share)).mean() == pytest.approx(share, abs=0.02)


def test_a_quantile_function_has_its_intervals_means_mean_nought_and_variance_one() -> None:
    values = np.random.default_rng(1).exponential(size=20_000)
    quantiles, means = copula.knots((values - values.mean()) / values.std())
    assert ((quantiles[:-1] < means) & (means < quantiles[1:])).all()
    block = Block({}, {}, np.eye(1), quantiles[None], means[None])
    left = block.left((np.arange(1_000_000) + 0.5) / 1_000_000, 0)
    assert (np.diff(left) >= 0).all()
    assert left.mean() == pytest.approx(0, abs=2e-3)
    assert left.std() == pytest.approx(1, abs=5e-3)
    for k, part in enumerate(np.split(left, len(means))):
        assert part.mean() == pytest.approx(means[k], abs=1e-3)


def test_equal_values_share_their_normal_score() -> None:
    scores = copula.normal_scores(np.array([[3.0], [1.0], [3.0], [2.0]]))[:, 0]
    assert scores[0] == scores[2]
    # Ranks 1, 2 and twice 3.5 of four.
    np.testing.assert_allclose(scores, [0.6744898, -1.1503494, 0.6744898, -0.3186394], atol=1e-6)


def test_nothing_that_counts_too_few_people_is_stored() -> None:
    rows = crowd()
    rows.loc[0, "wage"] = 987_654.0
    rows.loc[1:9, "age"] = -777.0  # nine people
    twin = copula.fit("crowd", rows, ROOT)
    text = json.dumps(kinds.written(twin))
    assert "987654" not in text
    assert "777" not in text
    assert (twin.root.counts % FEWEST == 0).all()
    for name, block in twin.blocks.items():
        members = (rows["town"] == "Ayr") == (name == "Ayr")
        assert block.means.shape[1] <= members.sum() // FEWEST_IN_INTERVAL
    drawn = sample(twin, 20_000, np.random.default_rng(0))
    assert drawn["age"].min() >= np.sort(rows["age"])[FEWEST - 1]
    assert drawn["wage"].max() <= np.sort(rows["wage"])[-FEWEST]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda rows: rows.assign(wage=np.nan), "crowd: rows hold missing values"),
        (
            lambda rows: rows.assign(town=["Dull"] * 49 + ["Ayr"] * 5_951),
            "town 'Dull' has 49 rows, expected at least 50",
        ),
        (lambda rows: rows.assign(sex=["X"] * 20 + ["F"] * 5_980), "sex 'X' has .* rows, expected at least 50"),
    ],
)
def test_rows_that_cannot_be_twinned_are_refused(spoil: Callable[[pd.DataFrame], pd.DataFrame], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        copula.fit("crowd", spoil(crowd()), ROOT)


def test_a_sample_is_determined_by_its_generator_and_survives_the_file(twin: CopulaTwin) -> None:
    content = json.loads(json.dumps(kinds.written(twin)))
    first, again, other = (
        sample(t, 300, np.random.default_rng(s)) for t, s in ((twin, 1), (kinds.read(content), 1), (twin, 2))
    )
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    assert list(first) == list(crowd())


# The shipped twin.


def shipped() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(SHIPPED.read_text())
    return content


def draw(seed: int = 0) -> pd.DataFrame:
    return kinds.sampled(shipped(), np.random.default_rng(seed))


def test_the_shipped_twin_is_small_and_has_as_many_students() -> None:
    assert SHIPPED.stat().st_size < 20_000
    rows = draw()
    assert len(rows) == 21_791
    assert abs((rows["race"] == "Black").sum() - 1_282) <= 5
    assert set(rows["race"]) == set(law.RACES)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_shipped_twin_keeps_means_spreads_and_correlations_by_group(seed: int) -> None:
    stored, rows = shipped()["preserved"], draw(seed)
    groups = {"all": rows} | {f"{name}={v}": part for name in law.TWIN_ROOT for v, part in rows.groupby(name)}
    for group, columns in stored["marginals"].items():
        noise = 1 / np.sqrt(len(groups[group]))
        for name, expected in columns.items():
            found = groups[group][name]
            assert abs(found.mean() - expected["mean"]) < (0.02 + 3.5 * noise) * expected["sd"], (group, name)
            assert found.std() == pytest.approx(expected["sd"], rel=0.02 + 3 * noise), (group, name)
    for group in ("all", "race=White", "race=Black"):
        for pair, expected in stored["correlations"][group].items():
            a, b = pair.split(" * ")
            noise = 1 / np.sqrt(len(groups[group]))
            assert groups[group][a].corr(groups[group][b]) == pytest.approx(expected, abs=0.02 + 3 * noise), (
                group,
                pair,
            )


def test_the_checks_notice_a_column_that_lost_its_dependence() -> None:
    stored, rows = shipped()["preserved"], draw()
    shuffled = rows.assign(ZFYA=rows["ZFYA"].sample(frac=1, random_state=0).to_numpy())
    expected = stored["marginals"]["race=Black"]["ZFYA"]
    assert abs(shuffled.loc[shuffled["race"] == "Black", "ZFYA"].mean() - expected["mean"]) > 0.5 * expected["sd"]
    assert abs(shuffled["LSAT"].corr(shuffled["ZFYA"]) - stored["correlations"]["all"]["LSAT * ZFYA"]) > 0.2


def test_prepare_cannot_tell_the_twin_from_official_rows() -> None:
    rows = draw()
    data = law.prepare(rows, law.Config(0.8), generators("t", repetitions=1), "twin")
    assert data.features.shape == (21_791, 12)
    assert (rows["LSAT"].between(10, 48) & rows["UGPA"].between(0, 4.3) & rows["ZFYA"].between(-6, 6)).all()
    assert data.label.mean() == pytest.approx(0.5, abs=0.02)


# Against the official rows, where they are at hand.


def test_the_stored_statistics_are_those_of_the_official_rows(official: Callable[[str], Path]) -> None:
    rows = law.parse(official("law"))
    assert copula.summary(rows, law.TWIN_ROOT) == shipped()["preserved"]
    assert (rows.dtypes == draw().dtypes).all()
    assert list(rows) == list(draw())


def test_distributions_by_race_differ_by_no_more_than_samples_do(official: Callable[[str], Path]) -> None:
    from scipy.stats import ks_2samp

    real, synthetic = law.parse(official("law")), draw()
    for race, bound in (("White", 0.03), ("Black", 0.06)):
        for name in law.NUMBERS:
            found, expected = (rows.loc[rows["race"] == race, name].round(2) for rows in (synthetic, real))
            assert ks_2samp(found, expected).statistic < bound, (race, name)


def test_least_squares_weights_are_kept(official: Callable[[str], Path]) -> None:
    """ZFYA on LSAT, UGPA, black and male: what the study's regression learns."""
    weights = []
    for rows in (law.parse(official("law")), draw()):
        black, male = rows["race"] == "Black", rows["sex"] == "Male"
        x = np.column_stack([np.ones(len(rows)), rows["LSAT"], rows["UGPA"], black, male])
        weights.append(np.linalg.lstsq(x, rows["ZFYA"], rcond=None)[0][1:])
    assert (np.abs(weights[1] - weights[0]) < [0.004, 0.05, 0.08, 0.04]).all(), weights


def test_every_stored_interval_stands_for_many_students(official: Callable[[str], Path]) -> None:
    rows, content = law.parse(official("law")), shipped()
    for name, block in content["blocks"].items():
        members = rows["race"] == name if name in law.RACES else ~rows["race"].isin(("Black", "White"))
        for text in block["means"]:
            assert members.sum() // len(text.split()) >= FEWEST_IN_INTERVAL
    for number in content["numbers"]:
        ordered = np.sort(rows[number["name"]])
        assert (number["low"], number["high"]) == (ordered[FEWEST - 1], ordered[-FEWEST])
