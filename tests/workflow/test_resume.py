"""A stale lock is removed, a held one is respected, and what is no Snakemake is not taken for one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.workflow.resume import at_work, is_snakemake, main

SNAKEFILE = "rule all:\n    output: 'made.txt'\n    shell: 'touch started; sleep 3; touch {output}'\n"


@pytest.mark.parametrize(
    "command",
    [
        ["/env/bin/python3", "/env/bin/snakemake", "--cores", "2"],
        ["snakemake", "-n"],
        ["python", "-m", "snakemake", "--cores", "1"],
    ],
)
def test_snakemake_is_recognised(command: list[str]) -> None:
    assert is_snakemake(command)


@pytest.mark.parametrize("command", [[], ["vim", "Snakefile"], ["python", "-m", "pytest", "snakemake"], ["make"]])
def test_other_programs_are_not(command: list[str]) -> None:
    assert not is_snakemake(command)


def test_without_a_lock_there_is_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tmp_path) == 0
    assert capsys.readouterr().err == ""


def test_a_run_at_work_is_respected_and_a_killed_one_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "1", "--rerun-incomplete", "--quiet"]
    with subprocess.Popen(snakemake, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert list(at_work(tmp_path)) == [process.pid]
        assert main(tmp_path) == 1
        assert f"already works in {tmp_path} (process {process.pid})" in capsys.readouterr().err
        process.kill()
    assert subprocess.run(snakemake, cwd=tmp_path, check=False, capture_output=True).returncode != 0
    assert main(tmp_path) == 0
    assert "interrupted" in capsys.readouterr().err
    assert subprocess.run(snakemake, cwd=tmp_path, check=False, env=dict(os.environ)).returncode == 0
    assert (tmp_path / "made.txt").exists()
