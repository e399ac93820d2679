"""Files of the user's that are called like modules of this program or of Python: each audits, or says why it cannot."""

import importlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairness_audits.cli.entry import BAD_INPUT, main
from fairness_audits.inputs.model import MODULE_NAME, Computing, load_model, named_object

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


def audit(folder: Path, *words: str, module: bool = False, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command, or ``python -m fairness_audits``, in ``folder``; ``path`` comes first in PYTHONPATH."""
    # A command does not have the current folder among those that it imports from; -P is to that effect.
    start = ["-m", "fairness_audits"] if module else ["-P", "-c", script()]
    own = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT))))}
    told = [sys.executable, *start, "audit", *words]
    return subprocess.run(told, cwd=folder, env=own, capture_output=True, text=True, check=False)


def gated(folder: Path, module: bool = False, path: str = "") -> subprocess.CompletedProcess[str]:
    return audit(folder, *PERMUTATION, "--metric", "tpr", "--gate", module=module, path=path)


def test_the_command_audits_whatever_the_current_folder_holds(folder: Path) -> None:
    for name in ("pipeline.py", "fairness_audits.py", "pipeline/__init__.py", "fairness_audits/cli/entry.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(RAN)
    found = gated(folder)
    assert found.returncode == REJECTED, found.stdout + found.stderr
    assert "tpr" in found.stdout


@pytest.mark.parametrize("name", ["pipeline.py", "pipeline/__init__.py"])
@pytest.mark.parametrize(("module", "path"), [(True, ""), (False, "."), (True, ".")])
def test_where_python_would_import_a_users_file_the_command_fails_and_names_it(
    folder: Path, name: str, module: bool, path: str
) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(RAN)
    found = gated(folder, module, path)
    assert found.returncode not in (0, REJECTED)
    assert f"{folder / name} hides" in found.stderr.replace("/private", "")
    # The library too.
    program = "import fairness_audits"
    own = os.environ | {"PYTHONPATH": str(ROOT)}
    call = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    assert (call.returncode, f"{folder / name} hides" in call.stderr) == (1, True)


def test_pipeline_is_no_program() -> None:
    found = subprocess.run([sys.executable, "-m", "pipeline"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode != 0


def test_a_model_may_lie_in_a_file_called_pipeline(folder: Path) -> None:
    (folder / "pipeline.py").write_text(MODEL)
    found = audit(folder, *FLIPTEST, "--predict", "./pipeline.py:predict", "--json", "audit.json")
    assert found.returncode == 0, found.stderr
    assert (folder / "audit.json").is_file()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name in ("model", "beside", MODULE_NAME):
            del sys.modules[name]


@pytest.mark.parametrize("name", ["pipeline", "types", "numpy", "fairness_audits"])
def test_a_model_may_lie_in_a_file_of_any_name(here: Path, name: str) -> None:
    (here / f"{name}.py").write_text(MODEL)
    for path in (f"{name}.py", f"./{name}.py", str(here / f"{name}.py")):
        found, _, file = named_object("--predict", f"{path}:predict")
        assert file == Path(path)
        assert found({"a": 1}) is True
    assert importlib.import_module("fairness_audits.seeds").__file__ == str(ROOT / "pipeline" / "seeds.py")


@pytest.mark.parametrize("form", ["model.py:predict", "model:predict"])
@pytest.mark.parametrize(
    "text",
    [
        f"import pipeline\n{MODEL}",
        f"from pipeline import scale\n{MODEL}",
        f"import beside\n{MODEL}",
        f"{MODEL}    import fairness_audits.values\n",
    ],
)
def test_a_model_that_imports_a_module_of_a_name_that_is_taken_is_refused(here: Path, text: str, form: str) -> None:
    """It would get the module of this program in place of its own."""
    (here / "model.py").write_text(text)
    (here / "beside.py").write_text("def late():\n    from pipeline import seeds\n")
    if "scale" not in text:
        assert named_object("--predict", form), "there is no other module of that name"
    (here / "pipeline.py").write_text("scale = 1\n")
    with pytest.raises(ValueError, match=f"--predict {form}.* {here / 'pipeline.py'}: give that another name"):
        named_object("--predict", form)


def test_a_module_of_a_name_that_is_taken_is_asked_for_by_its_file(here: Path) -> None:
    (here / "pipeline.py").write_text(MODEL)
    with pytest.raises(ValueError, match=r"--predict pipeline:predict: .*pipeline.py:predict"):
        named_object("--predict", "pipeline:predict")


@pytest.mark.parametrize("status", ["0", "", "3", "'done'"])
@pytest.mark.parametrize("text", ["import sys\nsys.exit({0})\n" + MODEL, "def predict(frame): raise SystemExit({0})\n"])
def test_a_model_that_ends_the_program_has_passed_no_audit(
    folder: Path, here: Path, capsys: pytest.CaptureFixture[str], text: str, status: str
) -> None:
    (here / "model.py").write_text(text.format(status))
    assert main(["audit", *FLIPTEST, "--predict", "model.py:predict", "--gate"]) == BAD_INPUT
    assert "SystemExit" in capsys.readouterr().err


def test_a_pickle_whose_class_stands_in_a_module_of_a_name_that_is_taken_is_refused_and_says_so(here: Path) -> None:
    (here / "pipeline.py").write_text("class Model:\n    def predict(self, frame): return frame['a'] > 0\n")
    made = "import joblib, pipeline; joblib.dump(pipeline.Model(), 'model.joblib')"
    subprocess.run([sys.executable, "-c", made], cwd=here, env=os.environ | {"PYTHONPATH": ""}, check=True)
    with pytest.raises(ValueError, match=r"model\.joblib cannot be unpickled .*pipeline\.py: give that another name"):
        load_model("model.joblib", True, Computing())
