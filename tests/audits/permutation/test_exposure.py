"""The exposure of groups over the positions of a ranking, by other ways to the same number."""

import math
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind

import fairness_audits as fa
from fairness_audits.audits.permutation import reading
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.exposure import exposed, exposures
from fairness_audits.audits.permutation.outcomes import Predictions
from tests.audits.permutation.builders import near
from tests.errors import invalid

N = 240
RNG = np.random.default_rng(8)
SEX = np.where(np.arange(N) % 3 == 0, "f", "m")
SCORE = RNG.normal(size=N) + 0.4 * (SEX == "m")


def by_definition(score: np.ndarray, top: int | None = None) -> np.ndarray:
    """The exposure of each row, by walking down the ranking; no ties."""
    found = np.zeros(len(score))
    for rank, row in enumerate(sorted(range(len(score)), key=lambda row: -score[row]), 1):
        found[row] = 1 / math.log2(1 + rank) if top is None or rank <= top else 0.0
    return found


@pytest.mark.parametrize("top", [None, 30])
def test_the_exposure_of_a_group_is_the_mean_of_its_positions_and_the_statistic_is_welchs(top: int | None) -> None:
    found = fa.permutation_test(score=SCORE, group=SEX, metric="exposure", top=top, draws=999)
    (entry,) = found.facts["results"]
    own = by_definition(SCORE, top)
    f, m = own[SEX == "f"], own[SEX == "m"]
    assert [one["estimate"] for one in entry["groups"]] == pytest.approx([f.mean(), m.mean()])
    assert entry["difference"] == pytest.approx(f.mean() - m.mean())
    assert entry["statistic"] == pytest.approx(ttest_ind(f, m, equal_var=False).statistic)
    # The p-value of a permutation test of the same numbers.
    same = fa.permutation_test(score=own, group=SEX, metric="mean_score", draws=9999).facts["results"][0]["p_value"]
    assert near(entry["p_value"], same, 999)
    assert found.verdict.sentence.startswith("Exposure in the top 30 by " if top else "Exposure by ")


def test_the_ratio_is_that_of_the_means() -> None:
    found = fa.permutation_test(score=SCORE, group=SEX, metric="exposure", ratio=True, draws=999)
    own = by_definition(SCORE)
    ratio = own[SEX == "f"].mean() / own[SEX == "m"].mean()
    bounds = found.facts["results"][0]["bounds"]
    assert bounds["estimate"] == pytest.approx(ratio)
    assert bounds["interval"][0] < ratio < bounds["interval"][1]
    assert dict(found.to_frame("groups").set_index("name")["ratio"]) == pytest.approx({"f": ratio, "m": 1.0})


@pytest.mark.parametrize("top", [None, 2, 4])
def test_tied_rows_have_their_mean_exposure_over_all_orders(top: int | None) -> None:
    score = np.array([5.0, 3.0, 3.0, 3.0, 1.0])
    orders = [by_definition(score - 1e-6 * np.array([0, *order, 0]), top) for order in permutations(range(3))]
    expected = np.mean(orders, axis=0)
    assert exposures(np.array([1, 3, 1]), top)[[0, 1, 1, 1, 2]] == pytest.approx(expected)


@pytest.mark.parametrize("top", [None, 25])
def test_counted_scores_have_the_exposure_of_rows(monkeypatch: pytest.MonkeyPatch, top: int | None) -> None:
    call: dict[str, Any] = {"score": np.round(SCORE, 1), "group": SEX, "metric": "exposure", "top": top, "draws": 199}
    rows = fa.permutation_test(**call).facts["results"][0]
    monkeypatch.setattr(reading, "ROWS", 100)
    counts = fa.permutation_test(**call).facts["results"][0]
    assert "distinct" in counts["basis"]
    for key in ("difference", "statistic"):
        assert counts[key] == pytest.approx(rows[key])


def test_only_the_order_of_the_scores_counts() -> None:
    one, other = (
        fa.permutation_test(score=score, group=SEX, metric="exposure", draws=199).facts["results"]
        for score in (SCORE, np.exp(3 * SCORE))
    )
    assert one == other


def test_rankings_without_regard_to_the_group_are_rejected_as_often_as_alpha_says() -> None:
    trials, group = 400, np.repeat([0, 1], [20, 60])
    same: dict[str, Any] = {"label": np.zeros(80, dtype=int), "group": group, "groups": ("a", "b")}
    rankings = (exposed(Predictions(score=RNG.random(80), **same)) for _ in range(trials))
    tests = [permutation_test(one, "mean_score", rng=RNG, draws=99, alpha=0.1) for one in rankings]
    assert near(sum(test.rejected for test in tests) / trials, 0.1, trials)


def test_the_first_positions_weigh_most() -> None:
    """The same number of women in the top half, at its head or at its foot."""
    place = np.arange(100)
    head = np.isin(place, range(10)) | np.isin(place, range(50, 60))
    foot = np.isin(place, range(40, 60))
    first, last = (
        fa.permutation_test(score=-place, group=np.where(own, "f", "m"), metric="exposure", draws=99).facts["results"][
            0
        ]
        for own in (head, foot)
    )
    assert first["difference"] > 0 > last["difference"]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"weight": np.ones(N)}, "weight"),
        ({"score": None, "prediction": np.arange(N) % 2}, "score"),
        ({"within": pd.Series(SEX)}, "metric"),
    ],
)
def test_an_exposure_that_cannot_be_is_refused(options: dict[str, Any], option: str) -> None:
    with invalid(option=option):
        fa.permutation_test(**{"score": SCORE, "group": SEX, "metric": "exposure", **options})
