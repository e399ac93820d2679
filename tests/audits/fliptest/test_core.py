"""The measurement that the audit of a user's model and the studies share."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairness_audits as fa
from fairness_audits.audits.fliptest.core import FlipTest, People, flip_test
from fairness_audits.seeds import generators
from fairness_audits.transport.quality import nearest_values
from fairness_audits.values import Array
from pipeline.audits.fliptest import Config, run
from tests.audits.fliptest.builders import TOY, exact_maps, rule
from tests.builders import chosen, shipped

FEATURES = np.random.default_rng(0).normal(size=(80, 2)).round(1)


def people(points: Array) -> People:
    return People(points, points[:, 0], (points[:, 0] > 0).astype(int))


def moved(by: Array, n: int = 80, units: Array | None = None) -> FlipTest:
    """People who are decided about by their first column, and whom a map moves ``by`` this much."""
    own, rngs = FEATURES[:n], [np.random.default_rng(1)] * 2
    sides = people(own), people(own + by), people(FEATURES)
    return flip_test(*sides, moving=np.array([1, 0]), alpha=0.05, bootstraps=50, rngs=rngs, units=units)


def test_the_distances_are_those_of_the_moving_columns_in_their_order_and_of_the_score() -> None:
    by = np.array([0.5, 0.01])
    found, images = moved(by), FEATURES + by
    columns = [1, 0, 0]  # the score is the first column
    assert found.ks == pytest.approx([stats.ks_2samp(FEATURES[:, j], images[:, j]).statistic for j in columns])
    near = nearest_values(FEATURES, images)
    expected = [stats.ks_2samp(FEATURES[:, j], near[:, j]).statistic for j in (1, 0)]
    assert found.nearest_ks == pytest.approx(expected)
    assert found.nearest_ks[0] == 0 < found.ks[0]


def test_nobody_has_neither_flipsets_nor_a_distance() -> None:
    found = moved(np.zeros(2), n=0)
    assert found.flips.sizes == {"positive": 0, "negative": 0}
    assert np.isnan([*found.nearest_ks, *found.intervals.net, *found.reports["positive"].mean_shift]).all()


def test_units_change_the_rank_and_nothing_else() -> None:
    by = np.array([-1.0, -2.0])
    plain, scaled = (moved(by, units=units).reports["positive"] for units in (None, np.array([1.0, 10.0])))
    assert (plain.rank_mean.tolist(), scaled.rank_mean.tolist()) == ([2, 1], [1, 2])
    for name, values in vars(plain).items():
        if name != "rank_mean":
            np.testing.assert_array_equal(getattr(scaled, name), values)


def test_the_study_and_the_audit_of_a_users_model_measure_the_same() -> None:
    """150 people in each group, whom the exact map pairs in one way."""
    both = np.concatenate([TOY.test[0][TOY.protected["group"][TOY.test[0]] == g][:150] for g in (0, 1)])
    few = replace(TOY, test=both[None], train=both[None])
    settings = shipped("audit", "fliptest") | {"bootstraps": 50, "noise_deals": 0}
    weights = np.array([1.0, 2.0, 0.3])
    study = run(
        few, rule(*weights, repetitions=1), Config(**settings), generators("audit", repetitions=1), exact_maps(few)
    ).rows
    call: dict[str, Any] = {"source": "F", "target": "M", "map": "exact", "reverse": True, "null_draws": 0, "refits": 0}
    library = fa.fliptest(
        lambda frame: (frame.to_numpy() @ weights > 0) * 1,
        pd.DataFrame(TOY.features[both], columns=list(TOY.feature_names)),
        np.where(TOY.protected["group"][both], "M", "F"),
        standardize="none",
        alpha=settings["alpha"],
        **call,
    )
    for found in library.facts["results"]:
        rows = chosen(study, direction=found["direction"])
        whole = chosen(rows, flipset="", feature="").set_index("statistic")["value"]
        net = whole[["net", "net_ci_low", "net_ci_high"]].tolist()
        assert net == [found["net"]["size"], *found["net"]["interval"]]
        assert [whole[f"positives_{side}"] for side in ("source", "target", "image")] == list(
            found["positives"].values()
        )
        for name in ("positive", "negative"):
            size = chosen(rows, flipset=name, feature="").set_index("statistic")["value"]
            of = found["flipsets"][name]
            assert size.tolist() == [of["size"], *of["interval"], of["share"], of["of"]]
            assert of["size"] > 0
            for line in found["transparency"][name]:
                own = chosen(rows, flipset=name, feature=line["feature"]).set_index("statistic")["value"]
                same = ["mean_shift", "mean_sign", "mean_sign_ci_low", "mean_sign_ci_high", "rank_mean", "rank_sign"]
                expected = [np.nan if line[one] is None else line[one] for one in same]
                np.testing.assert_allclose(own[same], expected, rtol=1e-12)
