"""How the FlipTest speaks: its verdict, its sections and its caveats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

Command = Callable[..., tuple[int, str, str]]
Flipped = Callable[..., dict[str, Any]]
SMOOTH = ("--map", "wgan", "--map-setting", "steps=30", "--map-setting", "engine=torch")


def test_the_page_says_what_the_json_says(fliptest: Command, office: Path) -> None:
    status, out, err = fliptest("--reverse", "--null-draws", "39", "--json", "made.json")
    assert (status, err) == (0, "")
    made = json.loads((office / "made.json").read_text())
    said = " ".join(out.split())
    assert made["verdict"]["sentence"] in said
    assert made["verdict"]["beyond_noise"]
    forward, reverse = made["results"]
    assert reverse["sentence"] in said
    for found in (forward, reverse):
        for name, size in (("positive", found["flipsets"]["positive"]), ("negative", found["flipsets"]["negative"])):
            low, high = size["interval"]
            interval = f"{low:,.0f} to {high:,.0f}"
            floor = found["noise"][name]["range"]
            row = f"{name} flipset {size['size']} {100 * size['share']:.1f} % {interval} {floor[0]} to {floor[1]}"
            assert row in said
        adjusted = found["noise"]["p_either_adjusted"]
        assert said.count(f"adjusted p {adjusted:.2g} for the number") >= 1
    assert said.count("for the net size") == 2  # once for each direction
    leader = forward["transparency"]["negative"][0]
    assert leader["feature"] == "experience"
    for words in (
        "FlipTest of models.py:probability on rows.parquet BEYOND NOISE. Of 80 people of group female",
        "sex: female mapped to male, and back",
        "170 rows, without 10 of other groups; 3 features; in standard deviations: experience, tests",
        "probability of models.py; probability, positive from 0.5 on (by default)",
        "exact: counterparts are people of the file",
        f"female 80 {forward['positives']['source']}",
        "From male to female",
        f"experience {leader['mean_shift']:+.2f} {leader['mean_shift_ci_low']:.2f} to ",
        f"{leader['mean_shift_p_adjusted']:.2g} {leader['mean_shift_standing']}",
        "Noise: the interval covers 0, or there is none. As the whole group: the shift is there, but is not shown",
        "Kolmogorov-Smirnov distance to male: ",
        "A flip is not yet discrimination",
    ):
        assert words in said, words


@pytest.mark.parametrize(
    ("given", "said", "silent"),
    [
        (
            (),
            (
                "--null-draws 39",
                "read as probabilities, and cut at 0.5",
                "has only 80 rows",
                "exact for these rows alone",
            ),
            ("more than noise", "points of a smooth map", "POOR MAP", "single value in"),
        ),
        (
            ("--threshold", "0", "--null-draws", "1"),
            ("Everybody in female is decided positively, so that the negative flipset is empty",),
            ("read as probabilities", "--null-draws 39"),
        ),
        (
            SMOOTH,
            (
                "POOR MAP. Of 80 people",
                "The map from female to male is poor: counterparts are not distributed",
                "Categories and whole numbers are the nearest that exist (tests, region)",
                "where exact transport needs",
            ),
            ("BEYOND", "exact for these rows", "people of the file;", "broke down"),
        ),
    ],
)
def test_what_a_reader_must_know_is_said(
    fliptest: Command, given: tuple[str, ...], said: tuple[str, ...], silent: tuple[str, ...]
) -> None:
    status, out, _ = fliptest(*given)
    out = " ".join(out.split())
    assert status == 0
    for words in said:
        assert words in out
    for words in silent:
        assert words not in out


def test_the_sentence_says_what_was_not_measured(flipped: Flipped) -> None:
    assert "between groups that are alike was not measured" in flipped()["verdict"]["sentence"]
    made = flipped("--null-draws", "3")
    assert "In 3 deals, too few to tell whether that is noise" in made["verdict"]["sentence"]
    assert made["verdict"]["beyond_noise"] is None


def test_one_group_alone_has_nobody_to_be_compared_with(fliptest: Command, candidates: pd.DataFrame) -> None:
    candidates[candidates["sex"] == "female"].to_csv("women.csv", index=False)
    _, _, err = fliptest("--data", "women.csv", "--target", "female")
    assert "--source and --target are both female: there is nobody to compare with" in err
