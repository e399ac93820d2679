"""A disk that is full: files are whole or not there, the account says why, and with room the same command goes on."""

import errno
import json
import subprocess
from collections.abc import Callable, Iterator
from io import RawIOBase
from pathlib import Path

import pytest

from tests.cluster.conftest import Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Put a full file system of 256 kB in a folder's place; what fills it is the file that comes back."""
    mounted: list[Path] = []

    def fill(folder: Path) -> Path:
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file:
            while _written(file):
                pass
        return filler

    yield fill
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


def test_a_full_disk_leaves_no_half_file_and_is_named_and_the_run_goes_on(
    project: Callable[..., Project], full: Callable[[Path], Path]
) -> None:
    work = project("plain")
    work.method("plain", "mem_mb: 2000, runtime: 30")
    models = work.folder / "results" / "models"
    filler = full(models)
    status, printed = work.run("--cores", "1")
    assert status == 1
    assert "No space left on device" in printed
    assert [path for path in models.rglob("*") if path.is_file()] == [filler]
    (failed,) = json.loads((work.folder / "results" / "failures.json").read_text())["failed"]
    assert failed["title"].startswith("train plain")
    assert "No space left on device" in "\n".join(failed["logs"][0]["lines"])
    prepared = next((work.folder / "data" / "prepared").rglob("*.npz"))
    before = prepared.stat().st_mtime_ns
    filler.unlink()
    status, printed = work.run("--cores", "1")
    assert status == 0, printed
    assert prepared.stat().st_mtime_ns == before
    assert any(name.endswith("summary.csv") for name in work.made())
