"""Every page begins in plain words: the question, the data, the finding, its certainty and its limits."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from fairness_audits import texts
from fairness_audits.results.result import Result
from fairness_audits.text_files import texts_of

N = 1600
PEOPLE = pd.DataFrame(
    {"sex": np.array(["f", "m"])[np.arange(N) % 2], "town": np.array(["x", "y"])[np.arange(N) // 2 % 2]}
)
Y = np.arange(N) // 4 % 2
FAIR, UNFAIR = np.arange(N) // 8 % 2, np.where(PEOPLE["sex"] == "f", 0, 1)
RATE = {"group": PEOPLE["sex"], "metric": "selection_rate"}
CASES: dict[str, tuple[Callable[[], Result], list[str]]] = {
    "equality, rejected": (lambda: fa.permutation_test(prediction=UNFAIR, **RATE), ["1,600 rows", "0.0 % (f)", "5 %"]),
    "equality, not rejected": (lambda: fa.permutation_test(prediction=FAIR, **RATE), ["no proof that the groups are"]),
    "a margin, shown": (
        lambda: fa.permutation_test(prediction=FAIR, margin=0.1, **RATE),
        ["at most 0.1 between groups", "to be within the margin."],
    ),
    "a ratio, too low": (
        lambda: fa.permutation_test(prediction=UNFAIR, ratio=True, **RATE),
        ["at least 0.8", "A ratio below 0.8 is shown."],
    ),
    "versions": (
        lambda: fa.compare(first=FAIR, second=UNFAIR, **RATE, draws=199),
        ["second", "from 50.0 % to 0.0 % for f", "5 %"],
    ),
    "the same version twice": (
        lambda: fa.compare(first=FAIR, second=FAIR, **RATE, draws=199),
        ["cannot tell. Both versions"],
    ),
    "subgroups": (
        lambda: fa.worst_subgroups(PEOPLE, prediction=UNFAIR, draws=199),
        ["sex f: 0.0 % of 800, others 100.0 %", "5 %"],
    ),
    "a plan": (
        lambda: fa.plan(metric="tpr", value=0.8, gap=-0.2),
        ["find that two groups differ", "179 rows", "80.2 %"],
    ),
    "a plan of equivalence": (lambda: fa.plan(value=0.8, margin=0.1), ["show that two groups are alike"]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_brief_answers_its_five_questions(name: str) -> None:
    call, words = CASES[name]
    result = call()
    brief = result.brief
    assert not re.search(r"\.\d{7}", result.summary())
    assert brief is not None
    assert all(answer for _, answer in brief.lines)
    text = " ".join(answer for _, answer in brief.lines)
    assert [one for one in words if one not in text] == []


def test_a_flip_test_says_what_is_beyond_noise_and_of_whom() -> None:
    """The two flipsets differ in size by more than chance, while their sum does not."""
    certain = texts_of("fliptest")["brief"]
    for p, expected in ((0.7, "further apart"), (0.04, "More people flip")):
        facts = {"found": {"noise": {"p_either_adjusted": p, "p_net_adjusted": 0.04}}, "alpha": 0.05}
        assert expected in texts.rendered(certain["rejected"], facts)
    assert texts.rendered(certain["not rejected"], {"flips": 0}).startswith("Nobody flips")
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"x": rng.normal(size=1400), "y": rng.integers(0, 2, 1400)})
    group = np.repeat(["a", "b"], 700)
    asked: dict[str, Any] = {"source": "a", "target": "b", "null_draws": 39, "refits": 0, "map": "entropic"}

    def model(frame: pd.DataFrame) -> pd.Series:
        return (frame["x"] > 0).astype(int)

    found = fa.fliptest(model, rows[["x"]], group, y=rows["y"], given_label=1, **asked)
    assert found.brief is not None
    assert "with true label 1" in found.brief.people
    assert "with true label 1" in found.verdict.sentence
    assert "of at most 500 people" not in found.verdict.sentence
    everybody = fa.fliptest(model, rows[["x"]], group, **asked)
    assert "of at most 500 people (numbers scaled to the size of a)" in everybody.verdict.sentence


def test_a_smaller_change_is_enough_only_where_it_was_measured() -> None:
    """Certificates are lower bounds of another model, and the fair metric is another length."""
    found, unturned = texts_of("robustness_bias")["brief"]["found"], {"turning": "", "grey": None}
    said = [
        texts.rendered(found, {"closer": ["g = B"], "found": {"bound": bound}, "fair": fair, **unturned})
        for bound, fair in (("exact", False), ("lower", False), ("exact", True))
    ]
    assert said[0] == "A smaller change is enough for g = B."
    assert "smoothed" in said[1]
    assert said[2] == "By the fair metric, a smaller change is enough for g = B."


def linear(weights: list[float]) -> LogisticRegression:
    """Return a linear model with these weights and no intercept."""
    rng = np.random.default_rng(0)
    model = LogisticRegression().fit(rng.normal(size=(20, len(weights))), np.arange(20) % 2)
    model.coef_, model.intercept_ = np.array([weights]), np.zeros(1)
    return model


def test_the_shares_that_a_stated_change_turns_are_those_of_the_distances() -> None:
    rng = np.random.default_rng(4)
    group = np.repeat(["near", "far"], 200)
    x = rng.normal(size=(400, 2)) * np.where(group == "near", 0.4, 1.5)[:, None]
    found = fa.robustness_bias(
        linear([1.0, 0.5]), x, groups=pd.DataFrame({"g": group}), attack="exact", permutations=199
    )
    assert found.brief is not None
    stated = re.search(
        r"change of size ([\d.]+) .*? for (\d+) % of the rows of g = near and for (\d+) %", found.brief.found
    )
    assert stated is not None
    distances = found.to_frame("distances")
    turned = (distances["distance_exact"] <= float(stated[1])).groupby(distances["g"]).mean()
    assert [stated[2], stated[3]] == [f"{100 * turned[name]:.0f}" for name in ("near", "far")]
    assert turned["near"] > turned["far"]
    assert stated[0] in found.verdict.sentence


def test_a_loss_ratio_is_a_power_of_the_probability() -> None:
    """The loss of a probability p is -log p, so p ** r has r times the loss."""
    found = texts_of("loss_ratio")["brief"]["found"]
    said = texts.rendered(found, {"test": {"S_n": 2.5}, "delta": 1.25, "beside_placebo": ""})
    assert np.log(0.57) / np.log(0.8) == pytest.approx(2.5, abs=0.02)
    assert np.log(0.76) / np.log(0.8) == pytest.approx(1.25, abs=0.03)
    assert [one for one in ("2.500 times as large; 25.0 % larger", "57 %", "76 %") if one not in said] == []


@pytest.mark.parametrize(("statistic", "rejected"), [(1.4, True), (1.1, False), (0.9, False)])
def test_the_tolerance_that_would_turn_the_outcome_is_the_lower_bound(statistic: float, rejected: bool) -> None:
    """The audit rejects if the bound exceeds the tolerance, so the bound is where the outcome turns."""
    text = texts_of("loss_ratio")["brief"]["rejected" if rejected else "not rejected"]
    said = texts.rendered(text, {"test": {"T_n": statistic}, "alpha": 0.05, "whole": False})
    assert "What would change this result" in said
    assert (f"{statistic:.3f}" in said) == (statistic > 1)


def test_without_a_correction_the_guarantee_is_that_of_a_single_test() -> None:
    rng = np.random.default_rng(99)
    group = rng.integers(0, 20, 2000).astype(str)
    decision = np.where(group == "0", 1, rng.integers(0, 2, 2000))
    for correct in ("none", "holm"):
        found = fa.permutation_test(prediction=decision, group=group, metric="selection_rate", correct=correct, width=1)
        assert found.brief is not None
        assert ("not corrected" in found.brief.sure) == (correct == "none")
