"""The permutation audit counted by Spark as a user's own command starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.tabulate.spark_engine import unavailable

ASKED = (
    "--label", "y", "--score", "p", "--threshold", "0.5", "--bins", "50", "--group", "sex", "--metric", "tpr,auc",
    "--draws", "200", "--threads", "1",
)  # fmt: skip


def audit(folder: Path, engine: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline", "audit", "permutation", "--predictions", "rows.parquet", *ASKED]
    # A compiler of short-lived programs, as in tests/tabulate.
    quick = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    return subprocess.run(
        [*command, "--engine", engine, "--json", f"{engine}.json"],
        cwd=folder,
        env=os.environ | quick | (environment or {}),
        capture_output=True,
        text=True,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with rows.parquet."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 500)
    columns = {"sex": rng.choice(["f", "m"], 500), "y": label, "p": np.clip(rng.normal(0.4 + 0.2 * label, 0.2), 0, 1)}
    pd.DataFrame(columns).to_parquet(tmp_path / "rows.parquet")
    return tmp_path


@pytest.mark.xdist_group("spark")
def test_a_session_of_its_own_gives_the_p_values_of_duckdb(folder: Path) -> None:
    if reason := unavailable():
        pytest.skip(reason)
    documents = {}
    for engine in ("duckdb", "spark"):
        made = audit(folder, engine)
        assert made.returncode == 0, made.stderr
        documents[engine] = json.loads((folder / f"{engine}.json").read_text())
    assert documents["spark"]["results"] == documents["duckdb"]["results"]
    assert len(documents["spark"]["results"]) == 2
    assert documents["spark"]["verdict"] == documents["duckdb"]["verdict"]


def test_a_java_that_is_too_old_is_said(folder: Path) -> None:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    made = audit(folder, "spark", {"JAVA_HOME": str(folder)})
    assert made.returncode == 2
    (message,) = (line for line in made.stderr.splitlines() if line.startswith("error: "))
    assert message.startswith("error: Spark does not start (")
    assert "It needs Java 17 or newer: install a JDK and set JAVA_HOME" in message
    assert not (folder / "spark.json").exists()
