"""The workflow from nothing at smoke scale: whole, resumable, and re-running exactly what a change touches.

Everything runs in a copy of the project, on the twins, without a network.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STUDY = "individual_fairness"
pytestmark = pytest.mark.workflow


def project_copy(destination: Path) -> Path:
    for name in ("Snakefile", "conf", "pipeline", "data/published", "data/twins"):
        source = ROOT / name
        target = destination / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "profile"))
        else:
            shutil.copy2(source, target)
    return destination


def environment(project: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("DATA_MIRROR", "SCALE", "STUDY")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": path, "PYTHONPATH": str(project), "SCALE": "smoke", "TRACKER": "disabled", "STUDY": STUDY}


def snakemake(project: Path, *arguments: str, source: str = "twin") -> subprocess.CompletedProcess[str]:
    command = ["snakemake", "--cores", "2", *arguments]
    return subprocess.run(
        command, cwd=project, env={**environment(project), "DATA_SOURCE": source}, capture_output=True, text=True
    )


def planned(project: Path, *arguments: str) -> Counter[str]:
    """How many jobs of each rule a dry run lists."""
    run = snakemake(project, "-n", *arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    table = re.search(r"^job\s+count\n-+\s+-+\n(.*?)^total", run.stdout, flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^(\w+)\s+(\d+)$", table[1], flags=re.MULTILINE) if table else []
    return Counter({rule: int(count) for rule, count in rows})


def csv_bytes(project: Path) -> dict[str, bytes]:
    tables = project / "results" / "tables" / STUDY
    return {path.name: path.read_bytes() for path in sorted(tables.glob("*.csv"))}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the workflow has run once, from nothing."""
    project = project_copy(tmp_path_factory.mktemp("project"))
    run = snakemake(project)
    assert run.returncode == 0, run.stdout + run.stderr
    return project


def test_every_declared_artefact_is_made_and_none_else(finished: Path) -> None:
    from pipeline.config import Workflow

    declared = Workflow(scale="smoke", studies=[STUDY]).experiment(STUDY)["artefacts"]
    tables = {path.stem for path in (finished / "results" / "tables" / STUDY).glob("*.csv")}
    figures = {path.stem for path in (finished / "results" / "figures" / STUDY).glob("*.pdf")}
    assert tables == set(declared["tables"])
    assert figures == set(declared["figures"])
    assert (finished / "results" / "report.html").stat().st_size > 100_000


def test_a_twin_is_stamped_on_every_table_and_on_the_report(finished: Path) -> None:
    for name in ("table_1", "table_3", "table_4"):
        text = (finished / "results" / "tables" / STUDY / f"{name}.md").read_text()
        assert "twin" in text
        assert "smoke" in text
    assert "twin" in (finished / "results" / "report.html").read_text()


def test_every_job_leaves_a_log_and_a_benchmark(finished: Path) -> None:
    models = list((finished / "results" / "models").rglob("*.npz"))
    logs = list((finished / "results" / "logs").rglob("train/*/*.log"))
    benchmarks = list((finished / "results" / "benchmarks").rglob("train/*/*.tsv"))
    assert len(models) == len(logs) == len(benchmarks) > 0


def test_a_second_run_has_nothing_to_do(finished: Path) -> None:
    assert planned(finished) == Counter()


def test_a_comment_in_a_configuration_file_runs_nothing_again(finished: Path) -> None:
    path = finished / "conf" / "method" / "sensr.yaml"
    path.write_text(path.read_text() + "\n# a remark\n")
    assert planned(finished) == Counter()


def test_a_methods_parameter_runs_its_training_and_its_audits_again(finished: Path) -> None:
    jobs = planned(finished, "--config", "set=method.sensr.learning_rate=0.003")
    assert jobs["train"] == 2
    assert jobs["prepare"] == jobs["fetch"] == 0
    audits = snakemake(finished, "-n", "--config", "set=method.sensr.learning_rate=0.003").stdout
    assert set(re.findall(r"audit (\w+) on", audits)) == {"sensr"}


def test_an_audits_parameter_trains_nothing_again(finished: Path) -> None:
    jobs = planned(finished, "--config", "set=audit.loss_ratio.delta=1.5")
    assert jobs["train"] == jobs["prepare"] == 0
    assert jobs["audit"] > 0


def test_a_changed_report_module_renders_again_and_computes_nothing(finished: Path) -> None:
    path = finished / "pipeline" / "report" / "style.py"
    before = path.read_text()
    path.write_text(before + "\n# another look\n")
    try:
        jobs = planned(finished)
    finally:
        path.write_text(before)
    assert jobs[STUDY] == jobs["report"] == 1
    assert jobs["train"] == jobs["audit"] == jobs["prepare"] == 0


def test_a_killed_run_resumes_and_gives_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    project = project_copy(tmp_path)
    shutil.copytree(finished / "data" / "raw", project / "data" / "raw")
    process = subprocess.Popen(
        ["snakemake", "--cores", "2"],
        cwd=project,
        env={**environment(project), "DATA_SOURCE": "twin"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    models = project / "results" / "models" / "smoke"
    while process.poll() is None and not list(models.rglob("baseline.npz")):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (project / "results" / "report.html").exists()
    run = subprocess.run(
        [
            "make",
            "--no-print-directory",
            "-f",
            str(ROOT / "Makefile"),
            "resume",
            "CORES=2",
            f"BIN={Path(sys.executable).parent}",
        ],
        cwd=project,
        env={**environment(project), "DATA_SOURCE": "twin"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert csv_bytes(project) == csv_bytes(finished)


def test_a_corrupted_raw_file_is_caught_and_named(tmp_path: Path) -> None:
    project = project_copy(tmp_path)
    raw = project / "data" / "raw" / "compas"
    raw.mkdir(parents=True)
    (raw / "compas-scores-two-years.csv").write_text("id,name\n1,nobody\n")
    run = snakemake(project, "data/raw/compas/manifest.json", source="auto")
    assert run.returncode != 0
    assert "compas-scores-two-years.csv" in run.stdout + run.stderr
    assert "sha256" in run.stdout + run.stderr
    assert not (raw / "manifest.json").exists()
