"""Files of the user's that are called like modules of this program or of Python: each audits, or says why it cannot."""

import importlib
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairness_audits.inputs.model_files import named_object

ROOT = Path(__file__).resolve().parents[2]
RAN = "raise SystemExit(0)\n"
"""A file that says that all is well without an audit."""
MODEL = "def predict(frame):\n    return frame['a'] > 0\n"
REJECTED = 3
PERMUTATION = ("permutation", "--predictions", "rows.csv", "--label", "y", "--prediction", "p", "--group", "g")
FLIPTEST = ("fliptest", "--data", "rows.csv", "--group", "g", "--source", "u", "--target", "v", "--drop", "y,p")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Rows of two groups, whose rates of decisions differ without a doubt."""
    group, y = np.arange(80) % 2, np.arange(80) // 2 % 2
    rows = pd.DataFrame({"a": np.arange(80) - 50.0 * group, "g": np.array(["u", "v"])[group], "y": y, "p": group * y})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def script() -> str:
    """What the installed command runs."""
    made = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]["fairness-audits"]
    module, _, function = made.partition(":")
    return f"import sys\nfrom {module} import {function}\nsys.exit({function}())"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the library alone, as the wheel installs it."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "fairness_audits").symlink_to(ROOT / "fairness_audits")
    return folder


def audit(library: Path, folder: Path, *words: str, module: bool, path: str) -> subprocess.CompletedProcess[str]:
    """Run the command, or ``python -m fairness_audits``, in ``folder``; ``path`` comes first in PYTHONPATH."""
    # An installed script does not import from the current folder; -P has the same effect.
    start = ["-m", "fairness_audits"] if module else ["-P", "-c", script()]
    own = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (path, str(library), sysconfig.get_path("purelib"))))
    }
    # -S passes over the path entry of an editable installation.
    command = [sys.executable, "-S", *start, *words]
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


HOW = pytest.mark.parametrize(("module", "path"), [(False, ""), (True, ""), (False, "."), (True, ".")])


@HOW
def test_a_file_called_pipeline_does_not_run(library: Path, folder: Path, module: bool, path: str) -> None:
    for name in ("pipeline.py", "pipeline/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(RAN)
    found = audit(library, folder, *PERMUTATION, "--metric", "tpr", "--gate", module=module, path=path)
    assert found.returncode == REJECTED, found.stdout + found.stderr
    assert "tpr" in found.stdout


@HOW
def test_a_model_may_import_a_users_own_pipeline(library: Path, folder: Path, module: bool, path: str) -> None:
    (folder / "pipeline.py").write_text("def scale(x):\n    return 2 * x\n")
    (folder / "model.py").write_text(
        "from pipeline import scale\n\ndef predict(frame):\n    return scale(frame['a']) > 0\n"
    )
    for model in ("model.py:predict", "model:predict"):
        found = audit(library, folder, *FLIPTEST, "--predict", model, "--json", "audit.json", module=module, path=path)
        assert found.returncode == 0, found.stderr
        assert (folder / "audit.json").is_file()


def test_an_installed_command_is_not_replaced_by_a_file_of_its_name(library: Path, folder: Path) -> None:
    for name in ("fairness_audits.py", "fairness_audits/cli/entry.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(RAN)
    found = audit(library, folder, *PERMUTATION, "--metric", "tpr", "--gate", module=False, path="")
    assert found.returncode == REJECTED, found.stdout + found.stderr


@pytest.mark.parametrize("name", ["pipeline", "types", "numpy", "fairness_audits"])
def test_a_model_may_lie_in_a_file_of_any_name(here: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (here / f"{name}.py").write_text(MODEL)
    for path in (f"{name}.py", f"./{name}.py", str(here / f"{name}.py")):
        found, _, file = named_object("predict", f"{path}:predict")
        assert file == Path(path)
        assert found({"a": 1}) is True
    assert importlib.import_module("fairness_audits.seeds").__file__ == str(ROOT / "fairness_audits" / "seeds.py")
