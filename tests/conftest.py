"""What several test modules share."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

# Tests compile parts of the kernels by themselves, and what is compiled after them can round otherwise than in a job of
# its own. Their machine code is kept apart: a run of the workflow does not depend on whether the tests ran before.
os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "numba")

# Tests share a process: POT shall know torch whichever of its users comes first.
os.environ["POT_BACKEND_DISABLE_PYTORCH"] = ""


# How long an example takes says nothing of what it shows.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-packages", action="store_true", help="fail where a test is skipped for want of a package"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return without_missing_packages(item.config, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return without_missing_packages(collector.config, (yield))


def without_missing_packages(config: pytest.Config, report: Report) -> Report:
    """Return the report; under --require-packages, failed where ``importorskip`` found no package."""
    if config.getoption("--require-packages") and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if "could not import" in reason:
            report.outcome, report.longrepr = "failed", reason
    return report


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A small configuration tree of its own: one dataset, two methods, one audit, one study."""
    texts = {
        "config.yaml": (
            "defaults: [scale: small, tracker: none, dataset: d, method: m, audit: a, _self_]\nrepetitions: 10\n"
        ),
        "scale/small.yaml": "settings:\n  - {where: {method: m}, set: {repetitions: 2, method.rate: 5}}\n",
        "tracker/none.yaml": "mode: disabled\n",
        "dataset/d.yaml": "rows: 4\n",
        "method/m.yaml": "rate: 1\nper_dataset: {d: {rate: 3}}\n",
        "method/other.yaml": "depth: 1\n",
        "audit/a.yaml": "delta: 1.25\n",
        "experiment/s.yaml": (
            "grid:\n"
            "  main: {dataset: d, method: [m, other], audit: a, audit.delta: [1.1, 1.25]}\n"
            "  axis: {dataset: d, method: m, audit: a, audit.delta: [[1, 2, 3]]}\n"
        ),
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path
