"""The paper's claims in words hold or not by the rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.report import words as w
from pipeline.report.fliptest import stability
from pipeline.report.fliptest.facts import claims
from pipeline.report.inputs import Inputs

LAW: dict[str, Any] = {"block": "law", "method": "logistic", "direction": "forward", "flipset": "negative"}


@pytest.fixture(scope="module")
def study(inputs: Inputs) -> Inputs:
    """The study with its claims in place of its rows."""
    known = inputs
    return replace(known, rows=pd.concat(claims(known), ignore_index=True))


def test_members_are_held_against_their_group(inputs: Inputs, study: Inputs) -> None:
    place: dict[str, Any] = {"block": "hiring", "method": "given", "transport": "wgan", "direction": "forward"}
    rows = inputs.rows
    means = rows[(rows["statistic"] == "feature_mean") & (rows["feature"] == "hair_length")]
    for key, wanted in place.items():
        means = means[means[key] == wanted]
    group = means[means["flipset"].isna()].sort_values("repetition")["value"].to_numpy()
    for flipset in w.FLIPSETS:
        members = means[means["flipset"] == flipset].sort_values("repetition")["value"].to_numpy()
        here = {**place, "flipset": flipset, "feature": "hair_length"}
        assert study.values(**here, statistic="members_higher").tolist() == (members > group).astype(float).tolist()
        assert study.values(**here, statistic="members_lower").tolist() == (members < group).astype(float).tolist()


def test_two_of_the_ranked_features_are_among_the_first_two(study: Inputs) -> None:
    """Of three ranked features by two rankings: at least two are among the first, and the first of each is."""
    rows = study.select(**LAW, transport="wgan", statistic="among_first")
    assert rows.groupby("repetition")["value"].sum().between(2, 4).all()
    rises = study.select(**LAW, transport="wgan", statistic="consistent_rise")
    assert set(rises["value"]) <= {0.0, 1.0}


def test_a_flipset_is_held_against_that_of_the_counterfactuals_of_the_same_trial(inputs: Inputs, study: Inputs) -> None:
    known = inputs
    own, causal = (
        known.values(**LAW, transport=kind, feature="LSAT", statistic="feature_mean")
        for kind in (w.WGAN, w.COUNTERFACTUAL)
    )
    found = study.values(**LAW, transport=w.WGAN, feature="LSAT", statistic="above_counterfactuals")
    assert found.tolist() == (own > causal).astype(float).tolist()


def test_weights_are_compared_by_a_standard_deviation_of_each(inputs: Inputs) -> None:
    """.1 a point of LSAT against .9 a point of GPA: some five points against half a point a standard deviation."""
    key = "law/logistic"
    names = inputs.datasets["law"].feature_names
    coef = np.zeros((2, 1, len(names)))
    coef[..., names.index("LSAT")], coef[..., names.index("UGPA")] = 0.1, 0.9
    coef[0, 0, names.index("race=Black")], coef[1, 0, names.index("race=Black")] = -1, 1
    parts = {**inputs.classifiers[key].parameters, "coef": coef, "weight": np.ones((2, 1))}
    changed = {**inputs.classifiers, key: replace(inputs.classifiers[key], parameters=parts)}
    rows = pd.concat(claims(replace(inputs, classifiers=changed)), ignore_index=True)
    black = rows[(rows["statistic"] == "weight_has_sign") & (rows["feature"] == "race=Black")]
    assert black["value"].tolist() == [1.0, 0.0]
    scale = inputs.datasets["law"].deviations
    outweighs = 0.1 * scale[names.index("LSAT")] > 0.9 * scale[names.index("UGPA")]
    assert rows.loc[rows["statistic"] == "lsat_outweighs_gpa", "value"].tolist() == [float(outweighs)] * 2


def test_subgroups_are_weaker_where_none_has_a_larger_correlation(inputs: Inputs) -> None:
    known = inputs
    rows = known.rows.astype({"context": object})
    here = (rows["statistic"] == "correlation") & (rows["dataset"] == w.ARRESTS) & (rows["part"] == "held out")
    for inner, expected in ((-0.1, 1.0), (-0.9, 0.0)):
        values = np.where(rows.loc[here, "context"] == "all rows", 0.3, inner)
        changed = rows.assign(value=rows["value"].mask(here, pd.Series(values, index=rows.index[here])))
        found = pd.concat(claims(replace(known, rows=changed)), ignore_index=True)
        arrests = found[(found["statistic"] == "weaker_in_all_subgroups") & (found["dataset"] == w.ARRESTS)]
        assert len(arrests) > 0
        assert set(arrests["value"]) == {expected}


def test_stability_is_compared_in_each_distribution(inputs: Inputs) -> None:
    """Exact maps that send everybody ever nearer to 0 and vary; a GAN that stays, but for the largest distribution."""
    known = inputs
    rows = known.rows.copy()
    images = rows["statistic"] == "image"
    dimension = pd.to_numeric(rows["dimension"])
    start = rows["point"].astype(object).map(stability.POINTS)
    wave = np.where(rows["repetition"] % 2 == 0, 1.0, -1.0)
    exact, gan = images & (rows["transport"] == w.EXACT), images & (rows["transport"] == w.WGAN)
    rows.loc[exact, "value"] = (start - 0.01 * dimension * start + 0.1 * wave)[exact]
    rows.loc[gan, "value"] = (start + np.where(dimension == 20, 0.5, 0.01) * wave)[gan]
    found = pd.concat(claims(replace(known, rows=rows)), ignore_index=True)
    steadier = found.loc[found["statistic"] == "steadier_than_exact", "value"]
    assert steadier.tolist() == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert found.loc[found["statistic"] == "regression_grows", "value"].tolist() == [1.0]
