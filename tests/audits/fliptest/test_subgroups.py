"""The search finds a planted subgroup, finds nothing where there is nothing, and stops at a biased feature."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pipeline.audits.fliptest import subgroups
from pipeline.audits.fliptest.subgroups import Config, Context
from pipeline.datasets import arrests
from pipeline.seeds import generators
from pipeline.types import Array, Classifier, Dataset

CONFIG = Config(
    attribute="g",
    split="test",
    output="decision",
    held_out=0.5,
    confidence=0.95,
    depth=5,
    minimum_leaf=100,
    bins=10,
)


def people(z: Array, carrier: Array, rng: np.random.Generator) -> Dataset:
    """R x n people: town (10 to 19) and age, which say nothing, and a carrier of the decision; all test rows."""
    rows = np.arange(z.size).reshape(z.shape)
    features = np.column_stack([rng.integers(10, 20, z.size), rng.normal(40, 10, z.size), carrier.ravel()])
    group = {"g": z.ravel()}
    names = ("town", "age", "carrier")
    label = np.zeros(z.size, dtype=np.int64)
    return Dataset("people", "simulated", features, names, (), label, "y", group, {"g": ("a", "b")}, rows, rows.copy())


def by_carrier(repetitions: int, slope: float = 1.0) -> Classifier:
    """Decides by the carrier; the search does not see it."""
    parameters = {
        "weight": np.ones((repetitions, 1)),
        "coef": np.tile([0.0, 0.0, slope], (repetitions, 1, 1)),
        "intercept": np.zeros((repetitions, 1)),
    }
    return Classifier("given", "people", "simulated", "logistic_mixture", parameters)


def independent(repetitions: int, n: int) -> Dataset:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, (repetitions, n))
    return people(z, rng.normal(size=z.shape), rng)


def planted(n: int = 8000) -> Dataset:
    """In towns above 16 and ages above 40 the decision is mostly the group; elsewhere a coin."""
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, (1, n))
    data = people(z, rng.normal(size=z.shape), rng)
    inside = (data.features[:, 0] > 16) & (data.features[:, 1] > 40) & (rng.random(n) < 0.7)
    features = data.features.copy()
    features[:, 2] = np.where(inside, 2 * z.ravel() - 1, features[:, 2])
    return replace(data, features=features)


def statistic(rows: pd.DataFrame, name: str, part: str = "held out") -> pd.Series:
    chosen = rows[(rows["statistic"] == name) & (rows["part"] == part) & (rows["repetition"] == 0)]
    return chosen.set_index("context")["value"]


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return subgroups.run(planted(), by_carrier(1), CONFIG, generators("s", repetitions=1)).rows


def test_a_planted_subgroup_is_reported_and_comes_first(found: pd.DataFrame) -> None:
    reported = statistic(found, "reported")
    best = reported.index[0]
    assert reported[best] == 1
    assert statistic(found, "correlation")[best] > 0.5
    assert statistic(found, "correlation")["all rows"] < 0.2
    others = reported.index[(reported == 1) & (reported.index != "all rows")]
    # Reported is what stands out from everything around it: people of the right towns, the best of the right age too.
    assert all(re.search(r"town > 1[678]|1[67] < town", context) for context in others)
    age = re.search(r"age > ([\d.]+)|([\d.]+) < age", best)
    assert age is not None
    assert float(age[1] or age[2]) > 36


def test_reported_contexts_lie_above_all_that_contain_them(found: pd.DataFrame) -> None:
    low, high, reported = (statistic(found, name) for name in ("ci_low", "ci_high", "reported"))
    for context in reported.index[(reported == 1) & (reported.index != "all rows")]:
        assert low[context] > high["all rows"]
    assert reported["all rows"] == float(low["all rows"] > 0)


def test_statistics_are_those_of_the_held_out_rows_and_adjusted_for_all_contexts(found: pd.DataFrame) -> None:
    tested = found.loc[found["statistic"] == "contexts_tested", "value"].item()
    r, size, p, adjusted = (statistic(found, name) for name in ("correlation", "size", "p_value", "p_adjusted"))
    assert tested == r.notna().sum() > 3
    assert size["all rows"] == statistic(found, "size", "train")["all rows"] == 4000
    np.testing.assert_allclose(adjusted.dropna(), np.minimum(1, tested * p.dropna()))
    half = np.arctanh(statistic(found, "ci_high")) - np.arctanh(r)
    np.testing.assert_allclose((half * np.sqrt(size - 3)).dropna().std(), 0, atol=1e-9)
    effect = np.maximum(statistic(found, "ci_low"), -statistic(found, "ci_high")).clip(lower=0)
    assert effect.dropna().is_monotonic_decreasing
    gain = statistic(found, "gain")
    assert np.isnan(gain["all rows"])
    assert gain.dropna().between(-1, 1).all()


def test_under_independence_hardly_any_search_reports_anything() -> None:
    """All intervals of a search hold together with confidence .95, so at most a twentieth of searches err."""
    repetitions = 100
    rows = subgroups.run(
        independent(repetitions, 2000), by_carrier(repetitions), CONFIG, generators("i", repetitions=repetitions)
    ).rows
    reported = rows[rows["statistic"] == "reported"].groupby("repetition")["value"].max()
    # 12 of 100 are improbable (.004) where one in twenty errs.
    assert reported.sum() < 12
    assert rows[rows["statistic"] == "contexts_tested"]["value"].mean() > 1


def test_a_biased_feature_explains_its_own_bias_away() -> None:
    """Black et al. 2020, section 5.5: a bias against everyone is found, and no subgroup."""
    data = arrests.prepare(None, arrests.Config(10_000), generators("a", repetitions=1), "simulated")
    rule = Classifier(
        "given",
        "arrests",
        "simulated",
        "logistic_mixture",
        {"weight": np.ones((1, 1)), "coef": np.full((1, 1, 1), 50.0), "intercept": np.full((1, 1), -50.0)},
    )
    config = replace(CONFIG, attribute="group", output="randomised")
    rows = subgroups.run(data, rule, config, generators("a", repetitions=1)).rows
    r, reported = statistic(rows, "correlation"), statistic(rows, "reported")
    # P(high risk) is .65625 in S and .375 in S'.
    assert r["all rows"] == pytest.approx(0.2814, abs=4 / np.sqrt(10_000))
    assert reported[reported == 1].index.tolist() == ["all rows"]
    others = r.drop("all rows").dropna()
    assert len(others) > 1
    assert (others < r["all rows"]).all()


def test_rows_in_neither_group_are_left_out() -> None:
    data = planted()
    outside = data.features[:, 0] == 13
    changed = replace(data, protected={"g": np.where(outside, -1, data.protected["g"])})
    rows = subgroups.run(changed, by_carrier(1), CONFIG, generators("s", repetitions=1)).rows
    sizes = statistic(rows, "size")["all rows"] + statistic(rows, "size", "train")["all rows"]
    assert sizes == (~outside).sum()


def test_the_score_is_an_output_too() -> None:
    data = planted()
    rows = [
        subgroups.run(data, by_carrier(1, slope), replace(CONFIG, output=output), generators("s", repetitions=1)).rows
        for slope, output in ((1.0, "score"), (1e-6, "score"), (1e3, "randomised"), (1e3, "decision"))
    ]
    score, linear, drawn, decision = (statistic(one, "correlation")["all rows"] for one in rows)
    assert score == pytest.approx(linear, abs=0.02)
    assert drawn == pytest.approx(decision, abs=0.01)
    assert score != pytest.approx(decision, abs=1e-4)


def test_contexts_read_as_predicates_in_the_dataset_s_units() -> None:
    features = np.array([[12.0, 40, 7, 0], [13, 41, 7, 1], [14, 42, 7, 1]])
    names, pairs = ("town", "age", "era", "north"), subgroups.two_valued(features)
    assert pairs == {3: (0, 1)}
    for bounds, predicate in (
        ({}, "all rows"),
        ({0: (12.0, 16.0), 1: (-np.inf, 40.25), 3: (0.0, np.inf)}, "12 < town <= 16 and age <= 40.25 and north = 1"),
        ({1: (40.0, np.inf), 3: (-np.inf, 0.0)}, "age > 40 and north = 0"),
    ):
        assert subgroups.described(Context(bounds, len(bounds), None), names, pairs) == predicate


def test_what_cannot_be_searched_is_said() -> None:
    data, rngs = independent(1, 150), generators("s", repetitions=1)
    with pytest.raises(ValueError, match=r"audit\.attribute among \['g'\], found 'race'"):
        subgroups.run(data, by_carrier(1), replace(CONFIG, attribute="race"), rngs)
    with pytest.raises(ValueError, match=r"audit\.minimum_leaf=100 rows in each half, found 75 and 75"):
        subgroups.run(data, by_carrier(1), CONFIG, rngs)
