"""How the permutation audit speaks: its verdict, its caveats, and metrics that fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.cli.numbers import decimal, span

Command = Callable[..., tuple[int, str, str]]
AUC = ("--score", "p", "--group", "sex", "--metric", "auc")


def test_the_page_says_what_the_json_says(permutation: Command) -> None:
    given = ("--metric", "fpr,selection_rate", "--threshold", "0.5", "--output", "out")
    status, out, err = permutation(*AUC, *given)
    assert (status, err) == (0, "")
    made = json.loads(Path("out/audit.json").read_text())
    said = " ".join(out.split())
    assert made["verdict"]["rejected"]
    assert "UNEQUAL. " + made["verdict"]["sentence"] in said
    for entry in made["results"]:
        for number in (*(group["estimate"] for group in entry["groups"]), *entry["interval"]):
            assert decimal(number) in said
    for words in (
        "sex: female (200 rows) and male (200 rows)",
        "exact; adjusted p",
        "studentized, 99 draws: p in 0.",
        "rejected: male is higher",
        "level 0.05; Holm over 3 tests",
    ):
        assert words in said, words
    table = pd.read_csv("out/tests.csv")
    assert table["p_value"].tolist() == [entry["p_value"] for entry in made["results"]]
    assert table["estimate_b"].tolist() == [entry["groups"][1]["estimate"] for entry in made["results"]]


def test_silence_is_said_to_be_no_proof(permutation: Command) -> None:
    status, out, _ = permutation("--prediction", "d", "--group", "sex", "--metric", "tpr", "--json", "made.json")
    low, high = json.loads(Path("made.json").read_text())["results"][0]["interval"]
    said = " ".join(out.split())
    assert status == 0
    assert "NOT REJECTED. No difference of true positive rate (recall) between female and male is found" in said
    assert f"This is no proof of equality: differences from {span((low, high))} remain possible." in said


def test_what_cannot_be_tested_is_undefined(permutation: Command) -> None:
    pd.DataFrame({"sex": ["f", "m"], "y": [0, 0], "d": [0, 1]}).to_csv("none.csv", index=False)
    asked = ("--predictions", "none.csv", "--prediction", "d", "--group", "sex", "--metric", "tpr")
    status, out, _ = permutation(*asked)
    assert status == 0
    assert "UNDEFINED. Nothing could be tested: group 'f' has no rows with label 1." in " ".join(out.split())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--cluster", "person"), None),
        ((), "if several belong to one person, name the column with --cluster"),
        (("--method", "lift"), "Method lift has no guarantee"),
        (("--draws", "19", "--metric", "mean_score"), "19 draws are too few to reject after a correction for 2 tests"),
        (("--metric", "mean_score", "--correct", "none"), "a false rejection among them is more than 0.05 (up to 0.10"),
    ],
)
def test_what_a_reader_must_know_is_said(permutation: Command, given: tuple[str, ...], words: str | None) -> None:
    pd.read_parquet("preds.parquet").assign(person=np.arange(400) // 2 * 2 + np.arange(400) % 2).to_parquet(
        "preds.parquet"
    )
    said = " ".join(permutation(*AUC, *given)[1].split())
    assert (words in said) if words else ("--cluster" not in said)


@pytest.mark.parametrize(("positives", "said"), [(49, True), (50, False)])
def test_few_positives_are_told_however_many_rows_there_are(permutation: Command, positives: int, said: bool) -> None:
    """The AUC of a group rests on its positives: 200 rows with 49 of them are a small group, with 50 they are not."""
    frame = pd.read_parquet("preds.parquet")
    female = frame["sex"] == "female"
    frame.loc[female, "y"] = (np.arange(female.sum()) < positives).astype(int)
    frame.to_parquet("preds.parquet")
    told = " ".join(permutation(*AUC)[1].split())
    assert (f"A group with {positives} positives or negatives, fewer than 50: the test is valid in the" in told) == said
    assert ("fewer than 50" in told) == said


def test_clusters_are_the_units_of_which_a_test_needs_many(permutation: Command) -> None:
    """The negatives of 200 women are at most 25 persons with eight rows each."""
    sex = np.arange(400) % 2
    pd.read_parquet("preds.parquet").assign(person=sex + np.arange(400) // 16 * 2).to_parquet("preds.parquet")
    for given in (AUC, ("--prediction", "d", "--group", "sex", "--metric", "fpr")):
        told = " ".join(permutation(*given, "--cluster", "person")[1].split())
        assert "A group with 2" in told
        assert ", fewer than 50: the test is valid" in told


def test_an_early_stop_is_said_to_be_safe_for_the_decision_alone(permutation: Command) -> None:
    status, out, _ = permutation(*AUC, "--resampling-risk", "0.01", "--draws", "5000")
    said = " ".join(out.split())
    assert status == 0
    assert "draws until the decision was safe: p in" in said
    assert "neither for the group that is named nor for the ends of the interval" in said
    assert "The p-value's interval is at 99 %." in said


def test_undefined_tests_are_counted_beside_those_that_find_something(permutation: Command) -> None:
    frame = pd.read_parquet("preds.parquet")
    frame.loc[frame["sex"] == "female", "y"] = 0
    frame["d"] = (frame["sex"] == "male").astype(int)
    frame.to_parquet("preds.parquet")
    _, out, _ = permutation(*AUC, "--metric", "tpr,fpr", "--prediction", "d", "--json", "made.json")
    verdict = json.loads(Path("made.json").read_text())["verdict"]
    assert (verdict["undefined"], verdict["tests"], verdict["rejected"]) == (2, 3, True)
    assert verdict["sentence"].endswith(" 2 of 3 tests are undefined.")
    assert "UNEQUAL. A difference is found" in out


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 'x'", "expected the function to give a number, found str 'x'"),
        ("return {}['boo']", "the function failed with KeyError: 'boo'"),
        ("return y[10**6]", "the function failed with IndexError"),
        ("raise ValueError('no such thing')", "the function failed with ValueError: no such thing"),
    ],
)
@pytest.mark.parametrize("correction", ["holm", "max-t"])
def test_a_metric_that_fails_is_named_with_its_file(
    permutation: Command, body: str, message: str, correction: str
) -> None:
    Path("own.py").write_text(f"def gap(y, score, weight):\n    {body}\n")
    status, out, err = permutation(*AUC[:4], "--metric", "own.py:gap", "--correct", correction)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: --metric own.py:gap: {message}")
