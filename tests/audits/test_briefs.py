"""Every page begins in plain words: the question, the data, the finding, its certainty and its limits."""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import fairness_audits as fa
from fairness_audits.results.result import Result

N = 1600
PEOPLE = pd.DataFrame(
    {"sex": np.array(["f", "m"])[np.arange(N) % 2], "town": np.array(["x", "y"])[np.arange(N) // 2 % 2]}
)
Y = np.arange(N) // 4 % 2
FAIR, UNFAIR = np.arange(N) // 8 % 2, np.where(PEOPLE["sex"] == "f", 0, 1)
RATE = {"group": PEOPLE["sex"], "metric": "selection_rate"}
CASES: dict[str, tuple[Callable[[], Result], list[str]]] = {
    "equality, rejected": (lambda: fa.permutation_test(prediction=UNFAIR, **RATE), ["1,600 rows", "0 (f)", "5 %"]),
    "equality, not rejected": (lambda: fa.permutation_test(prediction=FAIR, **RATE), ["no proof that the groups are"]),
    "a margin, shown": (
        lambda: fa.permutation_test(prediction=FAIR, margin=0.1, **RATE),
        ["at most 0.1 between groups", "is shown."],
    ),
    "a ratio, refuted": (
        lambda: fa.permutation_test(prediction=UNFAIR, ratio=True, **RATE),
        ["at least 0.8", "is refuted."],
    ),
    "versions": (
        lambda: fa.compare(first=FAIR, second=UNFAIR, **RATE, draws=199),
        ["second", "selection rate, f: 0.5 before, 0 after", "5 %"],
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
