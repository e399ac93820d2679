"""What a user misspells is refused in one sentence with the nearest name, and what exists is planned."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairness_audits.errors import InvalidInput
from pipeline.workflow import invocation
from tests.files import ROOT, environment


def asked(folder: Path, *words: str, **given: str) -> subprocess.CompletedProcess[str]:
    """A dry run of the project from another folder."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "1", "-n", *words]
    return subprocess.run(command, cwd=folder, env=environment(ROOT, **given), capture_output=True, text=True)


@pytest.mark.parametrize(
    ("word", "given", "nearest"),
    [
        ("all", {"STUDY": "flipteste"}, "fliptest"),
        ("all", {"SCALE": "lapto"}, "laptop"),
        ("all", {"DATASETS": "adlt"}, "adult"),
        ("results/figures/fliptest/figur_2.pdf", {}, "results/figures/fliptest/figure_2.pdf"),
        ("results/reference/figures/fliptest/figure_22.pdf", {}, "results/reference/figures/fliptest/figure_2.pdf"),
        ("results/rows/smoke/fliptes.parquet", {}, "results/rows/smoke/fliptest.parquet"),
        ("data/prepared/smoke/adlt.npz", {}, "adult"),
        ("results/sweeps/smoke/atack/summary.csv", {}, "results/sweeps/smoke/attack/summary.csv"),
        ("artefacs", {}, "artefacts"),
    ],
)
def test_a_misspelt_name_gets_the_nearest_in_one_sentence(
    word: str, given: dict[str, str], nearest: str, tmp_path: Path
) -> None:
    run = asked(tmp_path, word, **given)
    assert run.returncode == 1
    told = run.stdout + run.stderr
    assert f"(did you mean {nearest!r}?)" in told
    assert not any(word in told for word in ("Traceback", "Exception", 'File "'))


def test_a_figure_is_planned_from_another_folder_by_its_path(tmp_path: Path) -> None:
    run = asked(tmp_path, "results/figures/individual_fairness/figure_2.pdf")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "draw_individual_fairness " in run.stdout
    run = asked(tmp_path, "results/reference/figures/individual_fairness/figure_2.pdf")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "draw_reference_individual_fairness " in run.stdout
    assert {path.name for path in tmp_path.iterdir()} <= {".snakemake"}


def test_the_configuration_for_tests_plans_one_study_on_twins(tmp_path: Path) -> None:
    run = asked(tmp_path, "--configfile", str(ROOT / ".test" / "config.yaml"), SCALE="", STUDY="", DATA_SOURCE="")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "results/rows/smoke/individual_fairness.parquet" in run.stdout
    assert "draw_fliptest" not in run.stdout


def test_the_documentation_explains_each_warning_of_snakemakes_lint() -> None:
    command = [sys.executable, "-m", "snakemake", "--lint"]
    run = subprocess.run(command, cwd=ROOT, env=environment(ROOT), capture_output=True, text=True)
    found = {found.strip() for found in re.findall(r"^ +\* (.+)$", run.stdout + run.stderr, re.MULTILINE)}
    explained = re.findall(r"^\| (\w[^|]+) \| ", (ROOT / "docs" / "reproducing.md").read_text(), re.MULTILINE)
    assert found
    assert [warning for warning in found if not warning.startswith(tuple(explained))] == []


def test_only_an_error_that_the_user_can_correct_loses_its_traceback() -> None:
    fault, mistake = RuntimeError("in rule train"), RuntimeError("in rule train")
    fault.__cause__, mistake.__cause__ = KeyError("x"), InvalidInput("Column 'age' is missing", column="age")
    assert invocation.sentence(fault, list) == invocation.sentence(None, list) == ""
    assert invocation.sentence(mistake, list) == "Column 'age' is missing"
