"""An installation and a home folder that nobody can write to: everything runs, with a cache elsewhere or without."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from numba.core import caching

from fairness_audits.compiled import njit

CONFIG: Any = numba.config
ROOT = Path(__file__).resolve().parent.parent
READ_ONLY = """
mount -t tmpfs -o ro none "$HOME" && mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 125
exec "$@"
"""
"""A shell's program that makes the home folder and the folder $0 read-only, for root too, and runs a command."""


def plus_one(x: np.ndarray) -> float:
    return float(x.sum()) + 1.0


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder, where Numba has no place of its own."""
    for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
        monkeypatch.setattr(locator, "from_function", classmethod(lambda *_: None))
    monkeypatch.setattr(CONFIG, "CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(plus_one)
    return tmp_path


def works() -> list[Path]:
    """Compile and call a function; the files that this leaves in the temporary folder."""
    compiled: Any = njit(cache=True)(plus_one)
    assert compiled(np.arange(4.0)) == 7.0
    assert CONFIG.CACHE_DIR == "", "whoever else compiles is not concerned"
    return [path for path in Path(tempfile.gettempdir()).rglob("*.nb?") if path.is_file()]


def test_machine_code_is_kept_in_a_temporary_folder_of_ones_own(temporary: Path) -> None:
    assert works()
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    compiled: Any = njit(cache=True)(plus_one)
    compiled(np.arange(4.0))
    assert compiled.stats.cache_hits


@pytest.mark.parametrize("what", ["others write", "link", "file", "no folder"])
def test_machine_code_that_others_may_have_written_is_not_run(
    temporary: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = temporary / f"fairness-audits-{os.getuid()}"
    if what == "others write":
        folder.mkdir()
        folder.chmod(0o777)
    elif what == "link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(temporary / "elsewhere")
    elif what == "file":
        folder.touch()
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(temporary / "absent"))
    assert not works()


def read_only(home: Path, *command: str, cwd: Path, **own: str) -> subprocess.CompletedProcess[str]:
    """Run a command where the project and ``home`` are read-only; skip where this machine does not let us."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    space = ["unshare", "--mount", *(["--map-root-user"] if os.getuid() else [])]
    told = [*space, "sh", "-c", READ_ONLY, str(ROOT), *command]
    environment = kept | {"HOME": str(home), "PYTHONPATH": str(ROOT), **own}
    try:
        found = subprocess.run(told, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if found.returncode == 125 or "unshare:" in found.stderr:
        pytest.skip(f"needs the right to mount: {found.stderr}")
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def test_an_audit_runs_where_nothing_can_be_written_but_its_output(home: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"y": rng.integers(0, 2, 200), "s": rng.random(200), "g": rng.choice(["a", "b"], 200)})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    words = "audit permutation --predictions rows.csv --label y --score s --group g --metric auc --output out"
    command = [sys.executable, "-m", "fairness_audits", *words.split()]
    found = read_only(home, *command, cwd=tmp_path, TMPDIR=str(tmp_path))
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "out" / "audit.json").is_file()
    assert [*tmp_path.glob("fairness-audits-*/*/*.nbi")]


@pytest.mark.skipif(sys.platform != "linux", reason="needs mounts")
def test_make_gives_caches_a_folder_of_the_project_where_home_cannot_be_written(home: Path, tmp_path: Path) -> None:
    command = ["make", "-sf", str(ROOT / "Makefile"), "--eval", "places: ; @echo $$XDG_CACHE_HOME; echo $$MPLCONFIGDIR"]
    places = read_only(home, *command, "places", cwd=tmp_path).stdout.split()
    assert places == [f"{tmp_path}/.snakemake/cache", f"{tmp_path}/.snakemake/cache/matplotlib"]
    environment = {name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "MPLCONFIGDIR")}
    usual: dict[str, Any] = {"cwd": tmp_path, "env": environment | {"HOME": str(home)}, "text": True}
    assert subprocess.check_output([*command, "places"], **usual).split() == []
