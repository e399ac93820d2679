"""How the permutation audit speaks: its page, its files, its failures."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.cli.audit.permutation import EXAMPLES
from pipeline.cli.audit.permutation.document import decimal, span
from pipeline.cli.entry import main

N = 400
Command = Callable[..., tuple[int, str, str]]
RATES = ("--prediction", "d", "--group", "sex", "--metric", "tpr,fpr")
AUC = ("--score", "p", "--group", "sex", "--metric", "auc")


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the audit in a folder with preds.parquet: exit status, stdout, stderr."""
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, N)
    sex = np.arange(N) % 2
    frame = pd.DataFrame(
        {
            "sex": np.where(sex == 1, "male", "female"),
            "age": rng.integers(18, 90, N),
            "y": label,
            "grade": np.where(label == 1, "pass", "fail"),
            "p": np.clip(0.5 + 0.3 * (label - 0.5) + 0.35 * (sex - 0.5) + 0.2 * rng.normal(size=N), 0, 1),
            "d": rng.integers(0, 2, N),
            "logit": rng.normal(size=N),
        }
    )
    monkeypatch.chdir(tmp_path)
    frame.to_parquet("preds.parquet")

    def run(*arguments: str) -> tuple[int, str, str]:
        given = list(arguments)
        for option, value in (("--predictions", "preds.parquet"), ("--label", "y"), ("--draws", "99")):
            if option not in given:
                given += [option, value]
        capsys.readouterr()
        status = main(["audit", "permutation", *given])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_the_page_says_what_the_json_says(audit: Command) -> None:
    status, out, err = audit(
        *AUC, "--metric", "fpr,selection_rate", "--threshold", "0.5", "--output", "out", "--json", "also.json"
    )
    assert (status, err) == (0, "")
    made = json.loads(Path("out/audit.json").read_text())
    assert made == json.loads(Path("also.json").read_text())
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
        "written: out/audit.json written: out/tests.csv written: also.json",
    ):
        assert words in said, words
    assert max(map(len, out.splitlines())) <= 80
    table = pd.read_csv("out/tests.csv")
    assert table["p_value"].tolist() == [entry["p_value"] for entry in made["results"]]
    assert table["estimate_b"].tolist() == [entry["groups"][1]["estimate"] for entry in made["results"]]


def test_the_same_audit_gives_the_same_bytes(audit: Command) -> None:
    for folder in ("one", "two"):
        assert audit(*AUC, "--output", folder)[0] == 0
    for name in ("audit.json", "tests.csv"):
        assert (Path("one") / name).read_bytes() == (Path("two") / name).read_bytes()


def test_silence_is_said_to_be_no_proof(audit: Command) -> None:
    status, out, _ = audit("--prediction", "d", "--group", "sex", "--metric", "tpr", "--json", "made.json")
    low, high = json.loads(Path("made.json").read_text())["results"][0]["interval"]
    said = " ".join(out.split())
    assert status == 0
    assert "NOT REJECTED. No difference of true positive rate (recall) between female and male is found" in said
    assert f"This is no proof of equality: differences from {span(low, high)} remain possible." in said


def test_what_cannot_be_tested_is_undefined(audit: Command) -> None:
    pd.DataFrame({"sex": ["f", "m"], "y": [0, 0], "d": [0, 1]}).to_csv("none.csv", index=False)
    asked = ("--predictions", "none.csv", "--prediction", "d", "--group", "sex", "--metric", "tpr")
    status, out, _ = audit(*asked)
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
def test_what_a_reader_must_know_is_said(audit: Command, given: tuple[str, ...], words: str | None) -> None:
    pd.read_parquet("preds.parquet").assign(person=np.arange(N) // 2 * 2 + np.arange(N) % 2).to_parquet("preds.parquet")
    said = " ".join(audit(*AUC, *given)[1].split())
    assert (words in said) if words else ("--cluster" not in said)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ("--group", "sex", "--metric", "auc"),
            "nothing to audit: name the column of scores (--score) or of decisions",
        ),
        (("--score", "p", "--metric", "auc"), "metric auc is compared between groups: name their column with --group"),
        (
            ("--score", "p", "--group", "sex", "--metric", "tpr"),
            "metric tpr needs decisions: name their column with --pred",
        ),
        (("--prediction", "d", "--group", "sex", "--metric", "auc"), "metric auc needs scores: name their column with"),
        ((*AUC[:4], "--metric", "acu"), "--metric acu: expected one of tpr, fnr, fpr"),
        ((*AUC[:2], "--metric", "correlation"), "metric correlation needs a column of numbers, such as age"),
        ((*AUC, "--attribute", "age"), "--attribute goes with --metric correlation"),
        (
            (*AUC[:2], "--group", "sx", "--metric", "auc"),
            "group names 'sx', but preds.parquet has no such column (did you mean",
        ),
        ((*AUC[:2], "--group", "age", "--metric", "auc"), "column 'age' (group) has"),
        ((*AUC[:2], "--group", "sex=x", "--metric", "auc"), "the group 'x' is not in column 'sex'"),
        ((*AUC, "--between", "male"), "--between takes two names, A,B"),
        ((*AUC, "--between", "male,mail"), "--between names 'mail', but the groups of 'sex' are female, male"),
        (
            (*AUC, "--between", "male,mail", "--correct", "max-t"),
            "--between names 'mail', but the groups of 'sex' are female, male",
        ),
        ((*AUC, "--label", "grade"), "(label) holds fail, pass, not 0 and 1: say which of them counts as 1"),
        ((*AUC, "--label", "age"), "column 'age' (label) must have two classes"),
        ((*AUC[:4], "--metric", "log_loss", "--score", "logit"), "column 'logit' (score) is outside [0, 1] in"),
        ((*AUC, "--bins", "10", "--score", "logit"), "mend these rows, or give other bounds (--score-range)"),
        ((*AUC, "--predictions", "no.parquet"), "there is no file no.parquet"),
        ((*AUC, "--method", "exact"), "no exact test of auc on these data"),
        (
            (*AUC, "--metric", "log_loss", "--resampling-risk", "0.01"),
            "another than that after a correction for 2 tests",
        ),
        (
            (*RATES, "--cluster", "logit", "--resampling-risk", "0.01"),
            "another than that after a correction for 2 tests",
        ),
        ((*AUC, "--correct", "max-t", "--alternative", "less"), "--correct max-t is a two-sided test"),
        ((*AUC, "--real-label"), "--real-label is for mean errors and correlations"),
        ((*AUC[:2], "--attribute", "age", "--metric", "correlation", "--cluster", "d"), "takes rows as they are"),
        ((*AUC[:4], "--metric", "no.py:f"), "importing 'no.py' failed with FileNotFoundError"),
        ((*AUC[:4], "--metric", "math:f"), "'math' has no 'f'. It has: "),
        ((*AUC[:4], "--metric", "math:cos"), "expected a function of three arrays, (y, score, weight)"),
        ((*AUC, "--memory", "lots"), "DuckDB does not take 'lots' as memory_limit"),
        ((*AUC, "--json", "."), "expected . to be a file, found a folder"),
    ],
    ids=str,
)
def test_what_the_user_can_mend_is_one_message(audit: Command, given: tuple[str, ...], message: str) -> None:
    outputs = () if "--json" in given else ("--json", "made.json")
    status, out, err = audit(*given, *outputs, "--output", "made")
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["preds.parquet"]


@pytest.mark.parametrize(("positives", "said"), [(49, True), (50, False)])
def test_few_positives_are_told_however_many_rows_there_are(audit: Command, positives: int, said: bool) -> None:
    """The AUC of a group rests on its positives: 200 rows with 49 of them are a small group, with 50 they are not."""
    frame = pd.read_parquet("preds.parquet")
    female = frame["sex"] == "female"
    frame.loc[female, "y"] = (np.arange(female.sum()) < positives).astype(int)
    frame.to_parquet("preds.parquet")
    told = " ".join(audit(*AUC)[1].split())
    assert (f"A group with {positives} positives or negatives, fewer than 50: the test is valid in the" in told) == said
    assert ("fewer than 50" in told) == said


def test_clusters_are_the_units_of_which_a_test_needs_many(audit: Command) -> None:
    """The negatives of 200 women are at most 25 persons with eight rows each."""
    sex = np.arange(N) % 2
    pd.read_parquet("preds.parquet").assign(person=sex + np.arange(N) // 16 * 2).to_parquet("preds.parquet")
    for given in (AUC, ("--prediction", "d", "--group", "sex", "--metric", "fpr")):
        told = " ".join(audit(*given, "--cluster", "person")[1].split())
        assert "A group with 2" in told
        assert ", fewer than 50: the test is valid" in told


def test_an_early_stop_is_said_to_be_safe_for_the_decision_alone(audit: Command) -> None:
    status, out, _ = audit(*AUC, "--resampling-risk", "0.01", "--draws", "5000")
    said = " ".join(out.split())
    assert status == 0
    assert "draws until the decision was safe: p in" in said
    assert "neither for the group that is named nor for the ends of the interval" in said
    assert "The p-value's interval is at 99 %." in said


def test_undefined_tests_are_counted_beside_those_that_find_something(audit: Command) -> None:
    frame = pd.read_parquet("preds.parquet")
    frame.loc[frame["sex"] == "female", "y"] = 0
    frame["d"] = (frame["sex"] == "male").astype(int)
    frame.to_parquet("preds.parquet")
    _, out, _ = audit(*AUC, "--metric", "tpr,fpr", "--prediction", "d", "--json", "made.json")
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
def test_a_metric_that_fails_is_named_with_its_file(audit: Command, body: str, message: str, correction: str) -> None:
    Path("own.py").write_text(f"def gap(y, score, weight):\n    {body}\n")
    status, out, err = audit(*AUC[:4], "--metric", "own.py:gap", "--correct", correction)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: --metric own.py:gap: {message}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--threshold", "0.5", "--prediction", "d"), "not allowed with argument"),
        (("--alpha", "1"), "expected a number above 0 and below 1"),
        (("--bins", "1"), "expected a whole number of at least 2"),
        (("--score-range", "1,0"), "expected two numbers LOW,HIGH with LOW below HIGH"),
        (("--draws", "0"), "expected a whole number of at least 1"),
    ],
)
def test_a_wrong_argument_is_said_before_anything_is_read(
    audit: Command, capsys: pytest.CaptureFixture[str], given: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit) as left:
        audit(*AUC, *given)
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_the_help_says_it_all_and_its_first_example_runs(audit: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "permutation", "--help"])
    said = capsys.readouterr().out
    for option in ("--predictions", "--cluster", "--resampling-risk", "--engine", "--score-range", "exit status:"):
        assert option in said
    (command, *_) = [line for line in EXAMPLES.splitlines() if line.strip().startswith("python -m pipeline")]
    assert audit(*shlex.split(command)[5:])[0] == 0


def test_asking_for_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from pipeline.cli.entry import main\n"
        "try: main(['audit', 'permutation', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'numba', 'scipy', 'duckdb', 'pandas', 'sklearn') if name in sys.modules])"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert made.stdout.splitlines()[-1] == "[]"
