"""Without its extras the library tests rates, and says what the rest needs."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = (
    "PIL", "jax", "matplotlib", "numba", "omegaconf", "onnxruntime", "ot", "polars", "pyarrow", "pyspark", "sklearn",
    "skops", "statsmodels", "torch",
)  # fmt: skip
"""Modules that a plain installation lacks."""
SLOW = ("scipy.stats",)
"""Modules that it has, but that take half a second to import."""

PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({(*OPTIONAL, *SLOW)!r}))
from fairness_audits.cli.entry import main
sys.exit(main(sys.argv[1:]))
"""
GIVEN = ("--predictions", "rows.csv", "--label", "y", "--group", "sex")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of predictions, and a module of the user's that has the name of one of the project's."""
    folder = tmp_path_factory.mktemp("desk")
    rng = np.random.default_rng(0)
    sex, y = rng.integers(0, 2, (2, 400))
    score = 0.4 * y + 0.3 * sex + 0.3 * rng.random(400)
    rows = pd.DataFrame({"sex": np.where(sex == 1, "m", "f"), "y": y, "score": score, "d": (score > 0.5).astype(int)})
    rows.to_csv(folder / "rows.csv", index=False)
    (folder / "pipeline.py").write_text("raise RuntimeError('not the pipeline of the project')\n")
    return folder


def plain(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as in an installation without extras."""
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_rates_are_tested(desk: Path) -> None:
    done = plain(desk, "permutation", *GIVEN, "--prediction", "d", "--metric", "tpr,fpr", "--json", "audit.json")
    assert done.returncode == 0, done.stderr
    assert "tpr" in done.stdout


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ("numba", ("permutation", *GIVEN, "--score", "score", "--metric", "auc")),
        (
            "pyarrow",
            ("permutation", "--predictions", "rows.parquet", *GIVEN[2:], "--prediction", "d", "--metric", "tpr"),
        ),
        ("torch", ("loss-ratio", "--data", "rows.csv", "--model", "model.pt", "--label", "y", "--sensitive", "sex")),
    ],
)
def test_an_audit_says_what_it_needs(needs: str, words: tuple[str, ...], desk: Path) -> None:
    (desk / "rows.parquet").touch()
    (desk / "model.pt").touch()
    done = plain(desk, *words)
    assert done.returncode == 2
    assert f"pip install {needs}" in done.stderr


def test_a_page_without_figures_says_how_to_get_them(desk: Path) -> None:
    done = plain(desk, "permutation", *GIVEN, "--prediction", "d", "--metric", "tpr", "--output", "made")
    assert done.returncode == 0, done.stderr
    files = json.loads((desk / "made" / "audit.json").read_text())["files"]
    assert set(files.values()) == {path.name for path in (desk / "made").iterdir()}
    assert not [name for name in files.values() if name.endswith((".png", ".pdf"))]
    assert "pip install &#39;fairness-audits[figures]&#39;" in (desk / "made" / files["page"]).read_text()


def test_in_python_a_result_is_saved_and_shown_and_its_figure_says_what_it_needs(desk: Path) -> None:
    program = f"""
import sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
import pandas as pd
import fairness_audits as fa
rows = pd.read_csv("rows.csv")
result = fa.permutation_test(rows["y"], prediction=rows["d"], group=rows["sex"], metric="tpr")
assert [path.name for path in result.save("saved")] and result._repr_html_().startswith("<iframe")
try:
    result.figure()
except ModuleNotFoundError as error:
    assert error.name == "matplotlib" and "figures" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=desk, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_extra_for_tables_runs_every_audit_of_a_scikit_learn_model_without_torch(desk: Path) -> None:
    program = """
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
absent = {"jax", "omegaconf", "onnxruntime", "polars", "pyarrow", "pyspark", "statsmodels", "torch"}
PathFinder.find_spec = classmethod(lambda _, name, *place: None if name.split(".")[0] in absent else find(name, *place))
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
import fairness_audits as fa

rng = np.random.default_rng(0)
X = pd.DataFrame({"a": rng.normal(size=150), "b": rng.normal(size=150), "sex": rng.integers(0, 2, 150)})
y = (X["a"] + rng.normal(size=150) > 0).to_numpy().astype(int)
linear, tree = (kind.fit(X, y) for kind in (LogisticRegression(), DecisionTreeClassifier(max_depth=2)))
audits = [
    fa.permutation_test(y, linear.predict_proba(X)[:, 1], group=X["sex"], metric="auc"),
    fa.loss_ratio(linear, X, y, sensitive=X[["sex"]]),
    *(fa.robustness_bias(model, X, y, groups=X["sex"], permutations=99) for model in (linear, tree)),
    fa.fliptest(linear, X, group="sex", source="0", target="1"),
]
audits[0].save("tables")
sys.exit("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=desk, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
