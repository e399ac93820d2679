"""The top of a ranking: the rows that a sort selects, tested by Fisher's exact test."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact

import fairness_audits as fa
from tests.cli.places import json_of
from tests.errors import invalid

N, TOP = 300, 40
RNG = np.random.default_rng(5)
ROWS = pd.DataFrame({"sex": np.where(np.arange(N) % 3 == 0, "f", "m"), "y": RNG.integers(0, 2, N)})
ROWS["score"] = RNG.permutation(N) / N + 0.2 * (ROWS["sex"] == "m")


def selected(top: int) -> pd.Series:
    return pd.Series(np.isin(np.arange(N), np.argsort(-ROWS["score"].to_numpy())[:top]).astype(int))


def test_the_test_is_fishers_of_the_rows_that_a_sort_selects() -> None:
    (found,) = fa.permutation_test(score=ROWS["score"], group=ROWS["sex"], top=TOP, metric="selection_rate").facts[
        "results"
    ]
    chosen = selected(TOP)
    (x_a, m_a), (x_b, m_b) = ((chosen[ROWS["sex"] == sex].sum(), (ROWS["sex"] == sex).sum()) for sex in ("f", "m"))
    assert [(one["events"], one["n"]) for one in found["groups"]] == [(x_a, m_a), (x_b, m_b)]
    assert x_a + x_b == TOP
    assert found["p_value"] == pytest.approx(fisher_exact([[x_a, m_a - x_a], [x_b, m_b - x_b]])[1])


@pytest.mark.parametrize("options", [{"metric": ["tpr", "precision"]}, {"cluster": np.arange(N) // 3 * 3}])
def test_other_metrics_are_those_of_the_selected_rows(options: dict[str, object]) -> None:
    groups = np.where(np.arange(N) // 3 % 2, "a", "b")
    same = {"group": groups, "metric": "selection_rate", "draws": 199, **options}
    top = fa.permutation_test(ROWS["y"], ROWS["score"], top=TOP, **same)  # type: ignore[arg-type]
    decided = fa.permutation_test(ROWS["y"], prediction=selected(TOP), **same)  # type: ignore[arg-type]
    keys = ["metric", "estimate_a", "estimate_b", "p_value", "ci_low"]
    pd.testing.assert_frame_equal(top.to_frame()[keys], decided.to_frame()[keys])


def test_a_share_is_a_number_of_all_rows() -> None:
    count, share = (
        fa.permutation_test(score=ROWS["score"], group=ROWS["sex"], top=top, metric="selection_rate")
        for top in (30, 0.1)
    )
    assert share.facts["results"][0]["groups"] == count.facts["results"][0]["groups"]
    assert "the top 10 %" in share.verdict.sentence


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_rows_that_tie_with_the_last_are_selected_and_counted(kind: type) -> None:
    score = pd.Series(np.repeat([9, 7, 7, 2], [10, 5, 15, 270]).astype(kind) / kind(1 if kind is np.int64 else 10))
    found = fa.permutation_test(score=score, group=ROWS["sex"], top=12, metric="selection_rate")
    assert sum(one["events"] for one in found.facts["results"][0]["groups"]) == 30
    (caveat,) = [one.text for one in found.caveats if one.condition == "top"]
    assert "the 12 highest" in caveat
    assert "alike: 18 more" in caveat


def test_strata_have_the_top_of_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = ROWS.assign(job=np.arange(N) // 7 % 4, d=selected(TOP))
    table.to_csv("people.csv", index=False)
    same = ("--predictions", "people.csv", "--group", "sex", "--within", "job", "--metric", "selection_rate")
    (top,) = json_of("permutation", *same, "--score", "score", "--top", str(TOP))["results"]
    (decided,) = json_of("permutation", *same, "--prediction", "d")["results"]
    for key in ("groups", "p_value", "interval"):
        assert top[key] == decided[key]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"top": N}, "top"),
        ({"top": 1.0 - 1e-9}, "top"),
        ({"top": 5, "threshold": 0.5}, "top"),
        ({"top": 5, "prediction": ROWS["y"]}, "top"),
        ({"top": 5, "score": None, "prediction": ROWS["y"]}, "top"),
        ({"top": 5, "weight": ROWS["y"] + 1}, "top"),
        ({"top": 0}, "top"),
        ({"top": 1.5}, "top"),
        ({"top": 5, "score": ROWS["score"].where(ROWS.index != 3)}, "score"),
    ],
)
def test_a_top_that_cannot_be_is_refused(options: dict[str, object], option: str) -> None:
    usual = {"score": ROWS["score"], "group": ROWS["sex"], "metric": "selection_rate"}
    with invalid(option=option):
        fa.permutation_test(**{**usual, **options})  # type: ignore[arg-type]
