"""Two versions without groups: McNemar's test, DeLong's test, random signs, and bounds over all rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from statsmodels.stats.contingency_tables import mcnemar

import fairness_audits as fa
from fairness_audits.audits.permutation.paired import score_interval
from tests.cli.places import json_of
from tests.errors import invalid

N = 400
RNG = np.random.default_rng(8)
Y = RNG.integers(0, 2, N)
OLD, NEW = (np.where(RNG.random(N) < share, Y, 1 - Y) for share in (0.7, 0.8))
USUAL: dict[str, Any] = {"first": OLD, "second": NEW, "metric": "accuracy"}


def test_a_rate_has_mcnemars_test_over_all_rows() -> None:
    (one,) = fa.compare(Y, **USUAL).facts["results"]
    up, down = int(((OLD != Y) & (NEW == Y)).sum()), int(((OLD == Y) & (NEW != Y)).sum())
    assert (one["n"], one["what"], one["gap"]) == (N, "all rows", False)
    assert one["change"] == pytest.approx((up - down) / N)
    assert one["p_value"] == pytest.approx(mcnemar([[0, up], [down, 0]], exact=True).pvalue)
    frame = fa.compare(Y, **USUAL, group=np.zeros(N) + (np.arange(N) < 200)).to_frame()
    assert (frame["what"] != "all rows").all()


def test_a_bound_is_that_of_tangos_interval() -> None:
    found = fa.compare(Y, **USUAL, no_worse_than=0.02)
    up, down = int(((OLD != Y) & (NEW == Y)).sum()), int(((OLD == Y) & (NEW != Y)).sum())
    worse = found.facts["results"][0]["worse"]
    assert worse["at_most"] == pytest.approx(-score_interval(up, down, N, 0.05)[0])
    assert (found.outcome, worse["outcome"]) == ("not rejected", "shown")


def test_means_have_students_interval_and_random_signs() -> None:
    old, new = RNG.random(N), RNG.random(N)
    (one,) = fa.compare(first=old, second=new, metric="mean_score", draws=999).facts["results"]
    theirs = ttest_rel(new, old)
    assert one["interval"] == pytest.approx(theirs.confidence_interval(0.95))
    assert one["p_value"] == pytest.approx(theirs.pvalue, abs=0.06)


def test_a_bound_needs_a_metric_with_better_values() -> None:
    with invalid(option="no_worse_than"):
        fa.compare(Y, **{**USUAL, "metric": "selection_rate"}, no_worse_than=0.1)
    assert len(fa.compare(Y, **{**USUAL, "metric": ["selection_rate", "tpr"]}, no_worse_than=0.1).to_frame()) == 2


def test_the_command_needs_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"y": Y, "old": OLD, "new": NEW}).to_csv(path, index=False)
    asked = ("--predictions", str(path), "--label", "y", "--versions", "old,new", "--metric", "accuracy")
    assert json_of("compare", *asked)["results"] == fa.compare(Y, **USUAL).facts["results"]
