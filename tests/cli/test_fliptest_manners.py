"""How the FlipTest speaks: its page, its files, its failures."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.cli.audit.fliptest import EXAMPLES
from pipeline.cli.entry import main

Command = Callable[..., tuple[int, str, str]]
Flipped = Callable[..., dict[str, Any]]
SMOOTH = ("--map", "wgan", "--map-setting", "steps=30", "--map-setting", "engine=torch")
FILES = [
    "audit.json", "flipsets.csv", "fliptest.html", "marginals_forward.pdf", "marginals_forward.png", "transparency.csv",
    "transparency_forward.pdf", "transparency_forward.png",
]  # fmt: skip


def test_the_same_audit_gives_the_same_bytes_and_each_file_that_it_names(fliptest: Command, office: Path) -> None:
    for folder in ("one", "two"):
        assert fliptest("--output", folder)[0] == 0
    assert sorted(path.name for path in (office / "one").iterdir()) == FILES
    for name in FILES:
        assert (office / "one" / name).read_bytes() == (office / "two" / name).read_bytes(), name
    made = json.loads((office / "one" / "audit.json").read_text())
    assert sorted(made["files"].values()) == FILES


def test_the_page_says_what_the_json_says(fliptest: Command, office: Path) -> None:
    (office / "rows.parquet").rename(office / "<b>.parquet")
    asked = ("--data", "<b>.parquet", "--reverse", "--null-draws", "39")
    status, out, err = fliptest(*asked, "--output", "out", "--json", "also.json")
    assert (status, err) == (0, "")
    made = json.loads((office / "out" / "audit.json").read_text())
    assert made == json.loads((office / "also.json").read_text())
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
        "FlipTest of models.py:probability on <b>.parquet BEYOND NOISE. Of 80 people of group female",
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
        "written: out/fliptest.html",
        "written: also.json",
    ):
        assert words in said, words
    assert max(map(len, out.splitlines())) <= 80
    check_html((office / "out" / "fliptest.html").read_text(), made)


def check_html(page: str, made: dict[str, Any]) -> None:
    """The page for a browser holds everything itself, and says the same."""
    assert page.count("data:image/png;base64,") == 4
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "<b>.parquet" not in page
    assert "&lt;b&gt;.parquet" in page
    for text in [made["verdict"]["sentence"], *made["caveats"]]:
        assert text in page.replace("&#39;", "'")
    for found in made["results"]:
        assert f"<h2>From {found['source']} to {found['target']}</h2>" in page
        for line in found["transparency"]["negative"]:
            assert line["feature"] in page
            if found["flipsets"]["negative"]["size"]:
                assert f">{line['mean_shift_standing']}<" in page
    assert page.count("As the whole group: the shift is there") == len(made["results"])
    assert "with a map of their own" in page


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--data", "absent.csv"), "there is no file absent.csv"),
        (("--group", "sexx"), "--group names 'sexx', but rows.parquet has no such column (did you mean 'sex'?)"),
        (("--source", "woman"), "--source asks for the value 'woman', but column 'sex' of rows.parquet holds female"),
        (("--target", "men"), "but column 'sex' of rows.parquet holds female, male, unknown"),
        (("--target", "female"), "--source and --target are both female: name another group, --target male"),
        (("--target", "unknown"), "the group unknown (--target) has 10 rows, expected at least 20: a map needs enough"),
        (("--limit", "9"), "the group female (--source) has 9 rows, expected at least 20"),
        (("--id", "name"), "--id names 'name', but rows.parquet has no such column"),
        (("--label", "hried"), "--label names 'hried', but rows.parquet has no such column (did you mean 'hired'?)"),
        (("--features", "experience,tset"), "--features names 'tset', but rows.parquet has no such column"),
        (("--features", "person"), "--features names person, which is also the label or dropped"),
        (("--given-label", "1", "--label", "region"), "the label 'region' must have two classes, found 3"),
        (("--positive", "1"), "--positive says how to read the label for --given-label: add that, or leave it out"),
        (("--predict", "models.py:logit"), "neither decisions 0 and 1 nor probabilities: say from which number on"),
        (("--predict", "models.py:fair"), "--predict models.py:fair: 'models.py' has no 'fair'. It has: experienced"),
        (("--drop", "tests"), "failed on 160 rows with KeyError: 'tests'. It was given the columns experience, region"),
        (("--predict", "models.pt"), "there is no file models.pt: --predict takes model.pt (TorchScript)"),
        (("--map", "exakt"), "--map exakt: there is no such map (did you mean 'exact'?). There are: "),
        (("--map-setting", "coast=l1"), "--map-setting coast=l1: expected KEY=VALUE with a setting of exact (did"),
        (("--map-setting", "cost"), "--map-setting cost: expected KEY=VALUE"),
        (("--standardize", "height"), "--standardize names 'height', which is no feature"),
        (("--categorical", "hight"), "--categorical names 'hight', but the model's input has no such column"),
        (("--json", "taken"), "expected taken to be a file, found a folder"),
        (("--data", "gaps.csv"), "gaps.csv: column 'experience' is missing in 2 rows: 4, 5 (counted from 0): fill"),
        (("--data", "anybody.csv"), "anybody.csv: column 'sex' (--group) is missing in row 3 (counted from 0)"),
        (("--data", "women.csv"), "--target asks for the value 'male', but column 'sex' of women.csv holds female"),
        (("--data", "names.csv"), "column 'region' has 160 different values, expected at most 100 in a category"),
    ],
)  # fmt: skip
def test_a_failure_is_one_message_and_leaves_nothing_behind(
    fliptest: Command, office: Path, candidates: pd.DataFrame, given: tuple[str, ...], message: str
) -> None:
    outside = candidates.index[candidates["sex"] == "unknown"][0]
    gaps = candidates["experience"].where(~candidates.index.isin([4, 5, outside]))
    candidates.assign(experience=gaps).to_csv("gaps.csv", index=False)
    candidates.assign(sex=candidates["sex"].where(candidates.index != 3)).to_csv("anybody.csv", index=False)
    candidates[candidates["sex"] == "female"].to_csv("women.csv", index=False)
    candidates.assign(region=[f"n{i}" for i in range(len(candidates))]).to_csv("names.csv", index=False)
    (office / "taken").mkdir()
    before = sorted(office.rglob("*"))
    status, out, err = fliptest(*given, "--output", "out")
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert [path for path in sorted(office.rglob("*")) if "__pycache__" not in path.parts] == before


def test_one_group_alone_has_nobody_to_be_compared_with(fliptest: Command, candidates: pd.DataFrame) -> None:
    candidates[candidates["sex"] == "female"].to_csv("women.csv", index=False)
    _, _, err = fliptest("--data", "women.csv", "--target", "female")
    assert "--source and --target are both female: there is nobody to compare with" in err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--given-label", "2"), "invalid choice: 2"),
        (("--null-draws", "-1"), "expected a whole number of at least 0, found '-1'"),
        (("--alpha", "1"), "expected a number above 0 and below 1, found '1'"),
        (("--limit", "many"), "expected a whole number of at least 1, found 'many'"),
    ],
)
def test_a_wrong_word_is_named(
    fliptest: Command, capsys: pytest.CaptureFixture[str], given: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit) as left:
        fliptest(*given)
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_the_help_names_every_option_and_its_examples_can_be_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "fliptest", "--help"])
    said = capsys.readouterr().out
    for option in (
        "--group",
        "--source",
        "--target",
        "--predict",
        "--reverse",
        "--given-label",
        "--map",
        "--null-draws",
    ):
        assert option in said
    assert EXAMPLES in said
    commands = re.findall(r"python -m pipeline (audit fliptest(?:.*\\\n)*.*)", EXAMPLES)
    assert len(commands) == 4
    from pipeline.cli.entry import parser

    for command in commands:
        parser().parse_args(shlex.split(command.replace("\\\n", " ")))


def test_from_the_shell(office: Path) -> None:
    command = [sys.executable, "-m", "pipeline", "audit", "fliptest", "--data", "rows.csv", "--group", "sex"]
    command += ["--source", "female", "--target", "male", "--drop", "person,hired", "--null-draws", "0"]
    environment = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "OMP_NUM_THREADS": "1"}
    good = subprocess.run(
        [*command, "--predict", "models.py:probability", "--output", "out"],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("FlipTest of models.py:probability on rows.csv")
    assert (office / "out" / "transparency_forward.png").read_bytes().startswith(b"\x89PNG")
    assert np.isfinite(pd.read_csv(office / "out" / "flipsets.csv")["audit_score"]).all()
    bad = subprocess.run([*command, "--predict", "other.py:f"], capture_output=True, text=True, env=environment)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: --predict other.py:f: importing 'other.py' failed")
