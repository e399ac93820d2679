"""Calibration by group: rates of the label within bins of the score, its curves, level, power and refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.contingency_tables import StratifiedTable
from statsmodels.stats.proportion import proportion_confint

import fairness_audits as fa
from fairness_audits.audits.permutation import core
from fairness_audits.audits.permutation.metrics import CALIBRATION
from fairness_audits.audits.permutation.monte_carlo import Settings
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.reading import binned
from fairness_audits.values import Array
from tests.audits.permutation.builders import at_most, near
from tests.cli.places import json_of
from tests.errors import invalid


def people(rng: np.random.Generator, n: int, shift: float = 0.0, slope: float = 1.0) -> pd.DataFrame:
    """Calibrated scores, higher in group b, whose labels have a ``shift`` and a ``slope`` of their own."""
    b = rng.random(n) < 0.5
    score = np.where(b, rng.beta(3, 2, n), rng.beta(2, 3, n))
    rate = np.where(b, np.clip(0.5 + slope * (score - 0.5) + shift, 0, 1), score)
    return pd.DataFrame({"y": (rng.random(n) < rate).astype(int), "score": score, "sex": np.where(b, "b", "a")})


ROWS = people(np.random.default_rng(0), 1000, shift=0.1)
USUAL: dict[str, Any] = {"group": "sex", "metric": "calibration", "data": ROWS}


def test_the_test_is_that_of_base_rates_within_bins_of_equal_size() -> None:
    found = fa.permutation_test("y", "score", score_bins=5, **USUAL)
    bins = pd.qcut(ROWS["score"], 5, labels=False)
    other = fa.permutation_test(ROWS["y"], group=ROWS["sex"], within=bins, metric="base_rate")
    (one,), (two,) = (result.facts["results"] for result in (found, other))
    for key in ("groups", "p_value", "interval", "statistic", "difference", "rejected"):
        assert one[key] == two[key]
    each = [pd.crosstab(ROWS["sex"][bins == k], 1 - ROWS["y"][bins == k]).to_numpy() for k in range(5)]
    theirs = StratifiedTable(each).test_null_odds()
    assert one["statistic"] ** 2 == pytest.approx(theirs.statistic)
    assert one["p_value"] == pytest.approx(theirs.pvalue, rel=0.5, abs=1e-4)


def test_curves_have_the_rates_of_pandas_and_wilsons_intervals() -> None:
    curve = fa.permutation_test("y", "score", score_bins=5, **USUAL).to_frame("curve")
    assert len(curve) == 10
    bins = pd.qcut(ROWS["score"], 5, labels=False)
    for (name, place), one in ROWS.groupby(["sex", bins]):
        (row,) = curve[(curve["name"] == name) & curve["bin"].str.startswith(f"{place + 1}:")].to_dict("records")
        assert (row["n"], row["events"]) == (len(one), one["y"].sum())
        ends = proportion_confint(one["y"].sum(), len(one), 0.05, method="wilson")
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(ends)
        assert row["score"] == pytest.approx(ROWS.loc[bins == place, "score"].mean())


def as_predictions(table: pd.DataFrame) -> Predictions:
    group = (table["sex"] == "b").to_numpy().astype(np.int64)
    return Predictions(table["y"].to_numpy(), table["score"].to_numpy(), group, ("a", "b"))


def p_values(trials: int, n: int, bins: int, seed: int, **how: float) -> Array:
    rng = np.random.default_rng(seed)
    found = (binned(as_predictions(people(rng, n, **how)), bins) for _ in range(trials))
    return np.array([core.tested(one, CALIBRATION, Settings(), rng).p_value for one in found], dtype=float)


@pytest.mark.parametrize("n", [300, 3000])
def test_calibrated_scores_of_different_distributions_are_rejected_at_the_level(n: int) -> None:
    trials = 400
    share = float(np.mean(p_values(trials, n, round(n ** (1 / 3)), seed=n) <= 0.05))
    assert near(share, 0.05, trials)
    assert at_most(share, 0.05, trials)


def test_few_bins_of_many_rows_leave_a_difference_of_scores_within_bins() -> None:
    assert np.mean(p_values(40, 20_000, 2, seed=1) <= 0.05) > 0.9


def test_a_shift_of_one_group_is_found() -> None:
    assert np.mean(p_values(40, 1000, 10, seed=2, shift=0.1) <= 0.05) > 0.8


def test_curves_that_cross_are_not_called_equal() -> None:
    score = np.tile(np.repeat([0.25, 0.75], 100), 2)
    sex = np.repeat(["a", "b"], 200)
    high = np.r_[np.arange(100) < 30, np.arange(100) < 60, np.arange(100) < 60, np.arange(100) < 30]
    found = fa.permutation_test(high.astype(int), score, group=sex, metric="calibration", score_bins=2)
    (one,) = found.facts["results"]
    assert (one["difference"], one["p_value"]) == (pytest.approx(0), 1)
    assert found.outcome == "inconclusive"
    assert len(one["within"]["different"]) == 2


@pytest.mark.parametrize("bins", [3, 50])
def test_equal_scores_share_a_bin(bins: int) -> None:
    table = ROWS.assign(score=(4 * ROWS["score"]).round() / 4)
    found = binned(as_predictions(table), bins)
    assert found.middle is not None
    assert len(found.strata) <= 5
    assert found.by_stratum.sum() == len(ROWS)
    if bins == 50:
        # With a bin for each score, most rows may have the highest score.
        assert len(binned(as_predictions(ROWS.assign(score=(ROWS["score"] > 0.1) * 1.0)), 2).strata) == 2
        assert found.middle.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_files_and_arrays_agree_and_the_page_has_the_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("people.csv", index=False)
    asked = ("--predictions", "people.csv", "--label", "y", "--score", "score", "--group", "sex")
    (one,) = json_of("permutation", *asked, "--metric", "calibration")["results"]
    found = fa.permutation_test(ROWS["y"], ROWS["score"], group=ROWS["sex"], metric="calibration")
    assert found.facts["results"] == [one]
    assert "At the same score (10 bins)" in found.verdict.sentence
    assert {path.name for path in found.save(tmp_path / "out")} >= {"curve.csv", "calibration.png", "permutation.html"}


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"y": None}, "y"),
        ({"score": None, "prediction": "y"}, "score"),
        ({"metric": ["calibration", "auc"]}, "metric"),
        ({"within": "y"}, "within"),
        ({"matched": "y"}, "matched"),
        ({"weight": "score"}, "weight"),
        ({"cluster": "score"}, "cluster"),
        ({"top": 5}, "top"),
        ({"correct": "max-t"}, "correct"),
        ({"regression": True}, "metric"),
        ({"score_bins": 1001}, "score_bins"),
        ({"score_bins": 0}, "score_bins"),
        ({"metric": "auc", "score_bins": 5}, "score_bins"),
    ],
)
def test_what_calibration_cannot_have_is_refused(options: dict[str, Any], option: str) -> None:
    with invalid(option=option):
        fa.permutation_test(**{"y": "y", "score": "score", **USUAL, **options})
