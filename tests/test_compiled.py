"""Compiled functions of several files: their cache is used, and not after a change of any of the files."""

import subprocess
import sys
from pathlib import Path

import pytest

INNER = """
import numba
@numba.njit
def inner(x): return x + {}
"""
OUTER = """
import inner, sys
from fairness_audits.compiled import njit
@njit(cache=True, sources=[inner.__file__])
def outer(x): return 10 * inner.inner(x)
print(outer(1), sum(outer.stats.cache_hits.values()))
"""


def outcome(folder: Path) -> list[int]:
    """Return the result of a call in a new process, and how often the cache was used."""
    command = [sys.executable, "-B", str(folder / "outer.py")]
    return [int(word) for word in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]


@pytest.mark.parametrize("place", ["NUMBA_CACHE_DIR", "__pycache__", "TMPDIR"])
def test_a_change_of_a_file_with_called_functions_compiles_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folders = {name: tmp_path / name for name in ("NUMBA_CACHE_DIR", "__pycache__", "TMPDIR")}
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(folders["TMPDIR"]))
    folders["TMPDIR"].mkdir()
    if place == "NUMBA_CACHE_DIR":
        monkeypatch.setenv(place, str(folders[place]))
    folders[place].mkdir(exist_ok=True)
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(1))
    assert [outcome(tmp_path), outcome(tmp_path)] == [[20, 0], [20, 1]]
    (tmp_path / "inner.py").write_text(INNER.format(2))
    assert [outcome(tmp_path), outcome(tmp_path)] == [[30, 0], [30, 1]]
    assert len(list(folders[place].rglob("*.nbi"))) == len(list(tmp_path.rglob("*.nbi"))) == 2
