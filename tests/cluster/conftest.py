"""A project of a few small jobs, and Snakemake in it. What needs Slurm runs on request, and where a node takes jobs."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.files import environment, project_copy

ROOT = Path(__file__).resolve().parents[2]
ASKED = "TEST_CLUSTER"
"""The environment variable by which `make test-cluster` asks for the tests that need Slurm."""
SLURM = ("--workflow-profile", "conf/profile/slurm")
# A test waits for jobs, not for the time between two looks at them; one node, of any number of processors.
QUICK = ("--cores", "1", "--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "2")
SECONDS = 900.0
"""A run that takes longer has hung."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs what runs on Slurm: its tests share the node."""
    here = [item for item in items if item.path == Path(__file__).with_name("test_slurm.py")]
    missing = without_slurm() if here else ""
    for item in here:
        item.add_marker(pytest.mark.xdist_group("cluster"))
        if missing:
            item.add_marker(pytest.mark.skip(reason=missing))


def without_slurm() -> str:
    """Why there is no cluster to test on; "" where there is one."""
    if not os.environ.get(ASKED):
        return "Slurm is tested on request: make test-cluster"
    if shutil.which("sinfo") is None:
        return "no Slurm is installed: tests/cluster/slurm.sh up"
    states = subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, check=False).stdout
    ready = any(state in states for state in ("idle", "mixed", "allocated"))
    return "" if ready else "no Slurm node takes jobs: tests/cluster/slurm.sh up"


# A sweep of one dataset and two methods: each stage runs, on a few rows.
SWEEP = """
title: A small sweep
grid:
  main:
    dataset: simulated
    dataset.n: 60
    dataset.labels: centred
    method: [{methods}]
    audit: loss_ratio
    audit.record: [[20]]
figure: {{statistic: T_n, x: method}}
"""

# A method that holds so many megabytes for so many seconds, unless the file "mended" is there.
TROUBLED = '''
"""A logistic grid, after trouble."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.methods import logistic_grid
from fairness_audits.values import Classifier, Dataset


@dataclass(frozen=True)
class Config:
    megabytes: int
    seconds: float


def fit(dataset: Dataset, config: Config, rngs: Sequence[np.random.Generator]) -> Classifier:
    print("graphics card", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    held = np.ones((1 if Path("mended").exists() else config.megabytes, 2**17))
    Path("started").touch()
    deadline = time.monotonic() + config.seconds
    while time.monotonic() < deadline and not Path("mended").exists():
        time.sleep(0.2)
    assert held.all()
    grid = logistic_grid.Config(low=-4.0, high=4.0, points_per_axis=2, intercept="fitted")
    return logistic_grid.fit(dataset, grid, rngs)
'''


class Project:
    """A copy of the project with one small sweep, and Snakemake in it."""

    def __init__(self, folder: Path, methods: str) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "profiles", project_copy(folder) / "profiles")
        for other in (folder / "conf" / "sweep").glob("*.yaml"):
            other.unlink()
        self.write("conf/sweep/small.yaml", SWEEP.format(methods=methods))
        self.write("pipeline/methods/troubled.py", TROUBLED)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def ask(self, where: str, what: str) -> None:
        """Add a setting to what jobs ask Slurm for."""
        path = self.folder / "conf" / "resources.yaml"
        path.write_text(f"{path.read_text()}  - where: {where}\n    set: {{{what}}}\n")

    def method(self, name: str, resources: str, megabytes: int = 1, seconds: float = 0.0) -> None:
        """Configure a troubled method and what its training, a job of its own, asks Slurm for."""
        self.write(
            f"conf/method/{name}.yaml", f"kind: troubled\nname: {name}\nmegabytes: {megabytes}\nseconds: {seconds}\n"
        )
        self.ask(f"{{rule: train, method: {name}}}", f"{resources}, seconds: 600")

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.folder, STUDY="individual_fairness", OMP_NUM_THREADS="1")

    def start(self, *arguments: str, log: Path) -> subprocess.Popen[str]:
        """Run Snakemake on the small sweep and go on; what it prints goes to ``log``."""
        command = ["snakemake", *arguments, "results/sweeps/smoke/small/summary.csv"]
        with log.open("w") as stream:
            return subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=stream, stderr=subprocess.STDOUT, text=True
            )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run Snakemake on the small sweep to its end: its exit status and what it printed."""
        log = self.folder / "run.log"
        process = self.start(*arguments, log=log)
        try:
            return process.wait(SECONDS), log.read_text()
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"still not done after {SECONDS:.0f} s:\n{log.read_text()}") from None

    def made(self) -> dict[str, bytes]:
        """Every table, figure, result, model and dataset that is there, with its bytes."""
        kinds = (".npz", ".parquet", ".csv", ".pdf", ".png")
        files = [path for part in ("results", "data/prepared") for path in (self.folder / part).rglob("*")]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files if path.suffix in kinds}

    def halves(self) -> list[str]:
        """Files that were begun and are not whole."""
        return [str(path) for path in self.folder.rglob(".*.part*") if ".snakemake" not in path.parts]


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Project]:
    """Make a project of the methods named."""
    return lambda *methods: Project(tmp_path / "_".join(methods), ", ".join(methods))
