"""What holds of all four audits alike: their files, their pages, their help, and how they run from a shell."""

import inspect
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from textwrap import indent

import numpy as np
import pandas as pd
import pytest

import fairness_audits as fa
from fairness_audits.arguments import ROLES, counterpart
from fairness_audits.cli.commands import COMMANDS, Command
from fairness_audits.cli.entry import main, parser
from fairness_audits.cli.options_file import read_options
from fairness_audits.files import check_destination, folder_written
from fairness_audits.messages import not_installed
from fairness_audits.version import __version__
from tests.cli.places import ended, run
from tests.errors import invalid

ROOT = Path(__file__).resolve().parents[2]
AUDITS = {
    "loss-ratio": ("--sensitive sex", "examples.csv loss_ratio.pdf loss_ratio.png tests.csv"),
    "permutation": (
        "--score p --threshold 0.5 --group sex --metric auc,tpr",
        "differences.pdf differences.png groups.csv tests.csv",
    ),
    "fliptest": (
        "--reverse --null-draws 3",
        "flipsets.csv marginals_forward.pdf marginals_forward.png marginals_reverse.pdf marginals_reverse.png "
        "people.csv transparency.csv transparency_forward.pdf transparency_forward.png transparency_reverse.pdf "
        "transparency_reverse.png",
    ),
    "robustness": ("--group sex,place", "curves_exact.pdf curves_exact.png distances.csv groups.csv"),
}
"""Each audit's arguments, and files besides audit.json and the page."""
SHELL = "--predictions preds.parquet --label y --score p --group sex --draws 39 --metric auc"


@pytest.mark.parametrize(
    "given",
    [
        "permutation --json preds.parquet",
        "permutation --json PLACE/preds.parquet --predictions *.parquet",
        "permutation --junit again.yaml --config again.yaml",
        "permutation --output PLACE --predictions groups.csv",
        "loss-ratio --sensitive sex --model model.py:f --json model.py",
    ],
)
def test_no_output_replaces_what_the_audit_reads(given: str, here: Path) -> None:
    frame = pd.DataFrame({"y": [0, 1], "p": [0.2, 0.7], "sex": ["f", "m"]})
    frame.to_csv("groups.csv", index=False)
    frame.to_parquet("preds.parquet")
    Path("model.py").write_text("f = None\n")
    Path("again.yaml").write_text("audit: permutation\n")
    name, *rest = shlex.split(given.replace("PLACE", str(here)))
    shared = {"permutation": SHELL, "loss-ratio": "--data preds.parquet --label y"}.get(name, "")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    status, _, err = ended([name, *shlex.split(shared), *rest])
    assert (status, "which the audit reads" in " ".join(err.split())) == (2, True), err
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("here")
def test_a_place_that_only_sounds_like_an_input_is_written_to_again() -> None:
    frame = pd.DataFrame({"y": [0, 1] * 60, "p": np.linspace(0, 1, 120), "sex": ["f", "f", "m", "m"] * 30})
    Path("sex").mkdir()
    frame.to_csv("sex/rows.csv", index=False)
    words = ["permutation", *SHELL.split(), "--predictions", "sex", "--json", "sex/audit.json"]
    for _ in range(2):
        status, _, err = ended(words)
        assert (status, err) == (0, "")
    plain = ["permutation", *SHELL.split(), "--predictions", "sex/rows.csv"]
    assert ended([*plain, "--output", "out"])[0] == 0
    again = ["permutation", "--config", "out/audit.yaml", "--output", "out"]
    assert ended(again)[0] == 0
    Path("out/audit.yaml").write_text("# mine\n" + Path("out/audit.yaml").read_text())
    assert ended(again)[0] == 2


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_leaves_the_same_bytes_twice_and_what_it_names(working: Callable[[str], Path], name: str) -> None:
    """The page is whole, and says what the JSON and the terminal say."""
    given, files = AUDITS[name]
    place, said = working(name), ""
    for out in ("one", "two"):
        status, said, err = run(name, *shlex.split(given), "--output", out, "--json", "also.json")
        assert (status, err) == (0, "")
    page = f"{name.replace('-', '_')}.html"
    names = sorted(["audit.json", "audit.yaml", page, *files.split()])
    assert sorted(path.name for path in (place / "one").iterdir()) == names
    for file in names:
        assert (place / "one" / file).read_bytes() == (place / "two" / file).read_bytes(), file
        assert f"written: two/{file}\n" in said
    made = json.loads((place / "one" / "audit.json").read_text())
    assert sorted(made["files"].values()) == names
    assert made == json.loads((place / "also.json").read_text())
    shown = (place / "one" / page).read_text()
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", shown)
    assert shown.count("data:image/png;base64,") == sum(file.endswith(".png") for file in names)
    shown = re.sub("<[^>]*>", "", shown).replace("\u2212", "-").replace("&#x27;", "'").replace("&gt;", ">")
    for text in (made["verdict"]["sentence"], *made["caveats"]):
        assert text in " ".join(said.split())
        assert text.replace("S_n", "Sn") in shown
    assert max(map(len, said.splitlines())) <= 80
    assert not re.search(r"\.\d{7}", said)


def test_from_the_shell(working: Callable[[str], Path]) -> None:
    place = working("permutation")
    command = [sys.executable, "-m", "fairness_audits", "permutation", *shlex.split(SHELL)]
    told = {"capture_output": True, "text": True, "env": {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}}
    good = subprocess.run([*command, "--output", "out"], **told)  # type: ignore[call-overload]
    assert (good.returncode, good.stderr) == (0, "")
    for file in (place / "out").glob("*.p[nd]*"):
        assert file.read_bytes().startswith(b"%PDF" if file.suffix == ".pdf" else b"\x89PNG")
    bad = subprocess.run([*command[:-1], "absent.py:x"], **told)  # type: ignore[call-overload]
    assert (bad.returncode, bad.stdout, bad.stderr[:7]) == (2, "", "error: ")


@pytest.mark.parametrize("name", AUDITS)
def test_the_help_names_every_option_and_its_examples_can_be_parsed(name: str) -> None:
    examples, (_, said, _) = COMMANDS[name].texts["examples"], ended([name, "--help"])
    assert indent(examples, "  ") in said
    found = re.findall(rf"fairness-audits ({name}(?:.*\\\n)*.*)", examples)
    assert len(found) >= 2
    for command in found:
        words = shlex.split(command.replace("\\\n", " "))
        parser().parse_args(words)
        for option in (word for word in words if word.startswith("--")):
            assert option in said


@pytest.mark.parametrize("name", AUDITS)
def test_the_help_begins_with_what_the_audit_needs(name: str) -> None:
    _, said, _ = ended([name, "--help"])
    usage, titles = said.split("\n\n")[0], re.findall(r"^([a-z ]+):$", said, re.MULTILINE)
    needed = [f"{one.flag} {one.placeholder}" for one in COMMANDS[name].options.values() if one.required]
    assert needed
    assert " ".join(usage.split()) == f"usage: fairness-audits {name} {' '.join(needed)} [options]"
    assert titles[:2] == ["required", "options"]


def test_the_help_shows_the_form_of_a_value() -> None:
    _, said, _ = ended(["robustness", "--help"])
    for shown in ("--resize HEIGHT,WIDTH", "--mean X,Y", "--attack A,B", "--attack-setting NAME=VALUE"):
        assert f"  {shown} " in said or f"  {shown}\n" in said


# The entry finds audits, and every failure ends in one message and a status that tells its kind.


FAILURES = {
    "value": ValueError("column 'x' is odd: drop it"),
    "file": FileNotFoundError("no file y"),
    "torch": ModuleNotFoundError("no torch", name="torch"),
    "bug": KeyError("z"),
    "keys": KeyboardInterrupt(),
}


def fail(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every audit fail."""

    def failing(*given: object) -> None:
        raise FAILURES[kind]

    monkeypatch.setattr(Command, "run", failing)


def test_every_level_has_a_help() -> None:
    for words, *told in (
        ("--help", "Plan: how many rows"),
        ("audit --help", "Plan: how many rows"),
        ("plan --help", "Give the gap to compute", "fairness-audits plan --metric", "required:"),
    ):
        status, out, err = ended(words.split())
        assert (status, err) == (0, "")
        assert all(text in out for text in told)


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        ("value", 2, "error: column 'x' is odd: drop it\n"),
        ("file", 2, "error: no file y\n"),
        ("bug", 1, "unexpected error: KeyError: 'z' (--debug shows where)\n"),
        ("torch", 2, f"error: {not_installed('this audit', 'torch')}\n"),
        ("keys", 130, "interrupted: no result was written\n"),
    ],
)
def test_an_error_is_a_line_on_stderr_and_a_status(
    kind: str, status: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(kind, monkeypatch)
    assert ended(["plan", "--value", "0.5"]) == (status, "", message)


def test_debug_adds_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fail("value", monkeypatch)
    status, _, err = ended(["plan", "--value", "0.5", "--debug"])
    assert (status, "Traceback" in err) == (2, True)
    assert err.endswith("error: column 'x' is odd: drop it\n")


def test_version_and_wrong_words_end_with_status_2() -> None:
    assert ended(["--version"])[1].strip() == __version__
    for words, message in (
        ([], "the following arguments are required: AUDIT"),
        (["nothing"], "invalid choice: 'nothing'"),
        (["loss-ratio", "--data", "x"], "the following arguments are required: --model, --label"),
        (["loss-ratio", "--lab", "y"], "unrecognized arguments: --lab y"),
        (["permutation"], "the following arguments are required: --predictions, --metric"),
    ):
        status, _, err = ended(words)
        assert (status, message in err) == (2, True)
        assert err.startswith("usage: fairness-audits ")


@pytest.mark.parametrize(
    ("audit", "theirs", "ours"),
    [
        ("subgroups", "group", "columns"),
        ("loss-ratio", "group", "sensitive"),
        ("robustness", "columns", "group"),
        ("fliptest", "model", "predict"),
        ("permutation", "data", "predictions"),
        ("compare", "score", "versions"),
        ("subgroups", "margin", None),
        ("plan", "group", None),
    ],
)
def test_an_option_of_another_audit_is_answered_with_ours_of_its_role(
    audit: str, theirs: str, ours: str | None, tmp_path: Path
) -> None:
    known = COMMANDS[audit].options
    assert (counterpart(theirs, known) or ("", None))[1] == ours
    status, _, err = ended([audit, f"--{theirs}", "x"])
    assert (status, ours is None or repr(known[ours].flag) in err) == (2, True)
    (tmp_path / "a.yaml").write_text(f"{theirs}: x\n")
    with invalid(option=theirs, source="a.yaml"):
        read_options(tmp_path / "a.yaml", known, audit)


def test_every_role_has_an_option_and_every_name_of_a_role_exists() -> None:
    options = {name for command in COMMANDS.values() for name in command.options}
    calls = (fa.permutation_test, fa.compare, fa.worst_subgroups, fa.loss_ratio, fa.fliptest, fa.robustness_bias)
    arguments = {name for call in calls for name in inspect.signature(call).parameters}
    elsewhere = {"sensitive_features", "y_true", "y_pred", "y_score", "sample_weight"}  # Fairlearn and scikit-learn
    assert all(options & set(names) for names in ROLES.values())
    assert {name for names in ROLES.values() for name in names} <= options | arguments | elsewhere


# Files arrive whole or not at all.


def test_a_new_folder_appears_with_all_its_files_where_one_can_be_written(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with folder_written(target) as temporary:
        (temporary / "a").write_text("1")
        (temporary / "b").write_text("2")
        assert not target.exists()
    assert sorted(path.name for path in target.iterdir()) == ["a", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    (tmp_path / "file").write_text("")
    with invalid(source="x"):
        check_destination(tmp_path / "file" / "x", folder=False)
    check_destination(tmp_path / "new" / "x.json", folder=False)


def test_a_failure_leaves_nothing_and_touches_nothing(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "a").write_text("old")

    def fail(folder: Path) -> None:
        with folder_written(folder) as temporary:
            (temporary / "a").write_text("new")
            raise RuntimeError("disk full")

    for folder in (target, tmp_path / "fresh" / "deep"):
        with pytest.raises(RuntimeError, match="disk full"):
            fail(folder)
    assert (target / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


ENDED = """
import os, signal, sys
from pathlib import Path
from textwrap import indent
from fairness_audits.cli.entry import main
write = Path.write_text
def write_and_end(*arguments, **how):
    write(*arguments, **how)
    os.kill(os.getpid(), signal.SIGTERM)
Path.write_text = write_and_end
main()
"""
"""A command that a scheduler ends while it writes its first file."""


@pytest.mark.parametrize("output", ["--output", "--json"])
def test_a_command_that_is_ended_leaves_nothing(working: Callable[[str], Path], output: str) -> None:
    place = working("permutation")
    before = sorted(place.rglob("*"))
    command = [sys.executable, "-c", ENDED, "permutation", *SHELL.split(), output, "new"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, ""), done.stderr
    assert sorted(place.rglob("*")) == before


def test_an_existing_folder_keeps_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "mine").write_text("mine")
    with folder_written(tmp_path) as temporary:
        (temporary / "a").write_text("new")
    assert (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "mine").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


def test_the_example_is_the_table_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example"]) == 0
    shown = pd.read_csv(StringIO(capsys.readouterr().out))
    pd.testing.assert_frame_equal(shown, fa.example_data())
    with pytest.raises(SystemExit, match="2"):
        main(["example", "--rows"])


def test_the_example_has_the_gap_that_it_promises() -> None:
    people = fa.example_data()
    found = fa.permutation_test(people["repaid"], prediction=people["approved"], group=people["sex"], metric="tpr")
    assert found.outcome == "rejected"
    assert found.to_frame()["higher"].tolist() == ["Male"]
    columns = people[["sex", "occupation"]]
    worst = fa.worst_subgroups(columns, people["repaid"], prediction=people["approved"], metric="tpr")
    assert worst.to_frame()["subgroup"][0] == "occupation care"
