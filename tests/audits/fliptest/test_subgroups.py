"""The guided tree, and the search of subgroups with it."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairness_audits.seeds import generators
from fairness_audits.values import Array, Dataset
from pipeline.audits import subgroups
from pipeline.audits.subgroups import (
    Config,
    Context,
    Limits,
    best_split,
    binned,
    correlation,
    effects,
    grown,
    interval,
    p_value,
    products,
)
from pipeline.datasets import arrests
from tests.builders import chosen, dataset, logistic, shipped
from tests.errors import invalid

LIMITS = Limits(depth=3, minimum_leaf=50, bins=8, confidence=0.95)


def planted_rows(n: int = 2000) -> tuple[Array, Array, Array]:
    """Output and group agree where the second feature is above 1, and are independent elsewhere."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), np.zeros(n)])
    z, noise = rng.integers(0, 2, (2, n)).astype(float)
    return x, np.where((x[:, 1] > 1) & (rng.random(n) < 0.8), z, noise), z


def summed(y: Array, z: Array) -> Array:
    """Of all rows together."""
    return products(y, z).sum(axis=1)


def test_the_correlation_and_its_interval_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 300).astype(float)
    y = 100 + 0.05 * z + rng.normal(size=300)
    r = correlation(summed(y, z))
    expected = stats.pearsonr(y, z)
    assert r == pytest.approx(expected.statistic, rel=1e-9)
    low, high = interval(r, np.array(300), 0.9)
    assert (low, high) == pytest.approx(tuple(expected.confidence_interval(0.9)), rel=1e-9)
    assert 0.01 < expected.pvalue < 0.2
    assert p_value(r, np.array(300)) == pytest.approx(expected.pvalue, rel=0.02)


def test_the_published_interval_is_fishers_divided_among_six_contexts() -> None:
    """Black et al. 2020, section 5.5: [.2452, .2941]."""
    low, high = interval(np.array(0.26982), np.array(10_000), 1 - 0.05 / 6)
    assert (low, high) == pytest.approx((0.2452, 0.2941), abs=5e-5)


def test_what_does_not_vary_has_no_correlation_and_no_effect() -> None:
    z = np.tile([0.0, 1.0], 50)
    for y in (np.full(100, 0.1), np.full(100, 1e6 + 0.1)):
        sums = summed(y, z)
        assert np.isnan(correlation(sums))
        assert effects(sums, 0.95) == 0
    few = summed(np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0]))
    assert np.isnan(interval(correlation(few), few[0], 0.95)).all()
    assert effects(few, 0.95) == 0


def test_the_effect_is_the_end_of_the_interval_nearest_to_zero() -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 400).astype(float)
    y = (rng.random(400) < 0.3 + 0.3 * z).astype(float)
    low, _ = interval(np.corrcoef(y, z)[0, 1], np.array(400), 0.95)
    assert effects(summed(y, z), 0.95) == pytest.approx(low)
    assert effects(summed(1 - y, z), 0.95) == pytest.approx(low)
    assert effects(summed(rng.permutation(y), z), 0.9999) == 0


def test_few_values_are_cut_at_each_and_many_at_quantiles() -> None:
    cuts, bins = binned(np.array([3.0, 1, 1, 7, 3]), 3)
    assert (cuts.tolist(), bins.tolist()) == ([1, 3], [1, 0, 0, 2, 1])
    cuts, bins = binned(np.random.default_rng(0).normal(size=1000), 10)
    assert (len(cuts), np.bincount(bins).tolist()) == (9, [100] * 10)
    # Most are equal: no cut leaves all rows on one side.
    cuts, bins = binned(np.repeat([0.0, 1, 2, 3], [1, 1, 1, 97]), 3)
    assert (len(cuts), set(bins)) == (0, {0})


def test_the_split_is_the_best_of_all_cuts() -> None:
    x, y, z = planted_rows()
    bins = [binned(column, 8) for column in x.T]
    rows = np.flatnonzero(x[:, 0] > -0.5)
    found = best_split(rows, bins, y - y.mean(), z - z.mean(), LIMITS)
    assert found is not None
    own, better = effects(summed(y[rows], z[rows]), 0.95), {}
    for column, (cuts, _) in enumerate(bins):
        for cut in cuts:
            left = x[rows, column] <= cut
            sides = [effects(summed(y[rows][s], z[rows][s]), 0.95) for s in (left, ~left)]
            if min(left.sum(), (~left).sum()) >= 50 and max(sides) > own:
                better[column, cut] = np.mean(sides)
    assert (found.column, found.value) == max(better, key=lambda key: better[key])
    assert found.column == 1


def test_children_part_their_parent_and_no_leaf_is_too_small_be_it_the_root() -> None:
    x, y, z = planted_rows()
    contexts = grown(x, y, z, LIMITS)
    inside = [context.contains(x) for context in contexts]
    assert inside[0].all()
    for number, context in enumerate(contexts):
        children = [own for own, other in zip(inside, contexts, strict=True) if other.parent == number]
        assert len(children) in (0, 2)
        if children:
            np.testing.assert_array_equal(np.sum(children, axis=0), inside[number])
        assert context.depth <= 3
        assert inside[number].sum() >= 50
    assert len({tuple(sorted(context.bounds.items())) for context in contexts}) == len(contexts)
    for limits in (Limits(0, 50, 8, 0.95), Limits(3, 1500, 8, 0.95)):
        assert len(grown(x, y, z, limits)) == 1


# The search finds a planted subgroup, finds nothing where there is nothing, and stops at a biased feature.
CONFIG = Config(**shipped("audit", "subgroups") | {"attribute": "g"})


def people(z: Array, carrier: Array, rng: np.random.Generator) -> Dataset:
    """R x n people: town (10 to 19) and age, which say nothing, and a carrier of the decision; all test rows."""
    rows = np.arange(z.size).reshape(z.shape)
    features = np.column_stack([rng.integers(10, 20, z.size), rng.normal(40, 10, z.size), carrier.ravel()])
    names, levels = ("town", "age", "carrier"), {"g": ("a", "b")}
    label = np.zeros(z.size, dtype=np.int64)
    return dataset(features, label, {"g": z.ravel()}, rows, rows.copy(), feature_names=names, levels=levels)


def searched(data: Dataset, slope: float = 1.0, stream: str = "s", **changes: Any) -> pd.DataFrame:
    """What is found where the decision is by the carrier; the search does not see it."""
    repetitions = data.repetitions
    model, rngs = logistic(0.0, 0.0, slope, repetitions=repetitions), generators(stream, repetitions=repetitions)
    return subgroups.run(data, model, replace(CONFIG, **changes), rngs).rows


def independent(repetitions: int, n: int) -> Dataset:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, (repetitions, n))
    return people(z, rng.normal(size=z.shape), rng)


def planted() -> Dataset:
    """In towns above 16 and ages above 40 the decision is mostly the group; elsewhere a coin."""
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, (1, 8000))
    data = people(z, rng.normal(size=z.shape), rng)
    inside = (data.features[:, 0] > 16) & (data.features[:, 1] > 40) & (rng.random(8000) < 0.7)
    data.features[:, 2] = np.where(inside, 2 * z.ravel() - 1, data.features[:, 2])
    return data


def statistic(rows: pd.DataFrame, name: str) -> pd.Series:
    return chosen(rows, statistic=name, repetition=0).set_index("context")["value"]


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return searched(planted())


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


def test_statistics_are_of_the_held_out_rows_adjusted_for_all_contexts_and_the_reported_lie_above_the_root(
    found: pd.DataFrame,
) -> None:
    low, high, reported = (statistic(found, name) for name in ("ci_low", "ci_high", "reported"))
    for context in reported.index[(reported == 1) & (reported.index != "all rows")]:
        assert low[context] > high["all rows"]
    assert reported["all rows"] == float(low["all rows"] > 0)
    r, size, p, adjusted = (statistic(found, name) for name in ("correlation", "size", "p_value", "p_adjusted"))
    tested = r.notna().sum()
    assert tested > 3
    assert size["all rows"] == 4000
    np.testing.assert_allclose(adjusted.dropna(), np.minimum(1, tested * p.dropna()))
    half = np.arctanh(statistic(found, "ci_high")) - np.arctanh(r)
    np.testing.assert_allclose((half * np.sqrt(size - 3)).dropna().std(), 0, atol=1e-9)
    effect = np.maximum(statistic(found, "ci_low"), -statistic(found, "ci_high")).clip(lower=0)
    assert effect.dropna().is_monotonic_decreasing


def test_under_independence_hardly_any_search_reports_anything() -> None:
    """All intervals of a search hold together with confidence .95, so at most a twentieth of searches err."""
    rows = searched(independent(100, 2000), stream="i")
    reported = chosen(rows, statistic="reported").groupby("repetition")["value"].max()
    # 12 of 100 are improbable (.004) where one in twenty errs.
    assert reported.sum() < 12
    assert chosen(rows, statistic="correlation")["value"].notna().sum() > 100


def test_a_biased_feature_explains_its_own_bias_away() -> None:
    """Black et al. 2020, section 5.5: a bias against everyone is found, and no subgroup."""
    data = arrests.prepare(None, arrests.Config(10_000), generators("a", repetitions=1), "simulated")
    rule = logistic(50.0, intercept=-50.0)
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
    rows = searched(replace(data, protected={"g": np.where(outside, -1, data.protected["g"])}))
    assert statistic(rows, "size")["all rows"] == round((~outside).sum() / 2)


def test_the_score_is_an_output_too() -> None:
    score, linear, drawn, decision = (
        statistic(searched(planted(), slope, output=output), "correlation")["all rows"]
        for slope, output in ((1.0, "score"), (1e-6, "score"), (1e3, "randomised"), (1e3, "decision"))
    )
    assert score == pytest.approx(linear, abs=0.02)
    assert drawn == pytest.approx(decision, abs=0.01)
    assert score != pytest.approx(decision, abs=1e-4)


@pytest.mark.parametrize(
    ("bounds", "predicate"),
    [
        ({}, "all rows"),
        ({0: (12.0, 16.0), 1: (-np.inf, 40.25), 3: (0.0, np.inf)}, "12 < town <= 16 and age <= 40.25 and north = 1"),
        ({1: (40.0, np.inf), 3: (-np.inf, 0.0)}, "age > 40 and north = 0"),
    ],
)
def test_contexts_read_as_predicates_in_the_dataset_s_units(bounds: dict, predicate: str) -> None:
    pairs = subgroups.two_valued(np.array([[12.0, 40, 7, 0], [13, 41, 7, 1], [14, 42, 7, 1]]))
    assert pairs == {3: (0, 1)}
    assert subgroups.described(Context(bounds, len(bounds), None), ("town", "age", "era", "north"), pairs) == predicate


@pytest.mark.parametrize(("changes", "option"), [({"attribute": "race"}, "attribute"), ({}, "minimum_leaf")])
def test_what_cannot_be_searched_is_named(changes: dict[str, Any], option: str) -> None:
    with invalid(option=option):
        searched(independent(1, 150), **changes)
