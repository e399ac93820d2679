"""A disk that is full or read-only: files are whole or not there, it is said why, and mended, the run goes on."""

import errno
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from io import RawIOBase
from pathlib import Path

import pytest

from tests.cluster.conftest import Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
FULL, READ_ONLY = "No space left on device", "Read-only file system"
Mend = Callable[[], object]


@pytest.fixture
def spoilt(tmp_path: Path) -> Iterator[Callable[[Path, str], Mend]]:
    """Put a small file system with a fault in a folder's place; what mends it comes back."""
    mounted: list[Path] = []

    def mount(folder: Path, *options: str) -> None:
        command = ["mount", *options, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")

    def spoil(folder: Path, fault: str) -> Mend:
        folder.mkdir(parents=True)
        mount(folder, "-t", "tmpfs", "-o", f"size={'256k' if fault == FULL else '64m'}", "tmpfs")
        mounted.append(folder)
        if fault == READ_ONLY:
            mount(folder, "-o", "remount,ro")
            return partial(mount, folder, "-o", "remount,rw")
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file:
            while _written(file):
                pass
        return filler.unlink

    yield spoil
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def _written(file: RawIOBase) -> bool:
    """Write one page; False where there is no room for it."""
    try:
        file.write(bytes(4096))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return False
        raise
    return True


def test_read_only_results_are_named_and_the_run_goes_on(
    project: Callable[..., Project], spoilt: Callable[[Path, str], Mend]
) -> None:
    work = project("plain")
    work.method("plain", "mem_mb: 2000, runtime: 30")
    mend = spoilt(work.folder / "results", READ_ONLY)
    status, printed = work.run("--cores", "1")
    assert status == 1
    assert READ_ONLY in printed
    assert "Traceback" not in printed
    mend()
    status, printed = work.run("--cores", "1")
    assert status == 0, printed


def test_a_full_disk_leaves_no_half_file_and_is_named_and_the_run_goes_on(
    project: Callable[..., Project], spoilt: Callable[[Path, str], Mend]
) -> None:
    work = project("plain")
    work.method("plain", "mem_mb: 2000, runtime: 30")
    models = work.folder / "results" / "models"
    mend = spoilt(models, FULL)
    status, printed = work.run("--cores", "1")
    assert status == 1
    assert FULL in printed
    assert [path.name for path in models.rglob("*") if path.is_file()] == ["filler"]
    assert "failed: train plain" in printed
    prepared = next((work.folder / "data" / "prepared").rglob("*.npz"))
    before = prepared.stat().st_mtime_ns
    mend()
    status, printed = work.run("--cores", "1")
    assert status == 0, printed
    assert prepared.stat().st_mtime_ns == before
    assert any(name.endswith("summary.csv") for name in work.made())
