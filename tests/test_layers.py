"""The walls between the parts of the project: what may be imported, what reads files, who sees published numbers."""

import ast
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent

READ_PUBLISHED = ("load_published", "load_claims")
COMPARING = {f"pipeline.stages.{name}" for name in ("draw", "draw_reference", "decide")}
"""The stages that hand the published numbers to the comparison."""
READERS = {"open", "read_csv", "read_parquet", "read_table", "read_text", "read_bytes", "load", "loadtxt", "genfromtxt"}
HEAVY = (
    "torch", "torchvision", "fairlearn", "sklearn", "numba", "matplotlib", "wandb", "hydra", "statsmodels", "jax", "ot",
    "narwhals", "polars",
)  # fmt: skip


def test_no_import_breaks_a_contract_of_the_project() -> None:
    # A process of its own: it sets up logging anew.
    program = Path(sys.executable).with_name("lint-imports")
    command = [str(program), "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("fairness_audits", "pipeline", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    # Raises CycleError, which names the circle.
    TopologicalSorter(imports).prepare()


def package_breaches(root: Path) -> list[str]:
    """The ``__init__`` of a package with modules only imports and defines, and defines no name of its modules."""
    found = []
    for path in (one for package in ("fairness_audits", "pipeline") for one in (root / package).rglob("__init__.py")):
        modules = {each.parent.name if each.stem == "__init__" else each.stem for each in others(path)}
        for node in tree(path).body if modules else ():
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = {getattr(node, "name", ""), *(getattr(target, "id", "") for target in targets)} - {""}
            text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            if not (names or text or types or isinstance(node, ast.Import | ast.ImportFrom)) or names & modules:
                where = f"{path.relative_to(root)}, line {node.lineno}"
                found.append(f"{where}: a package with modules only imports and defines, and not their names")
    return found


def others(init: Path) -> list[Path]:
    """The modules and the packages directly in a package."""
    return [path for path in (*init.parent.glob("*.py"), *init.parent.glob("*/__init__.py")) if path != init]


def module_of(path: Path, root: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """The functions at the top level of a file."""
    return {node.name: node for node in tree(path).body if isinstance(node, ast.FunctionDef)}


def reading_breaches(root: Path) -> list[str]:
    """Nothing that a data set's ``prepare`` reaches, in its file or in what data sets share, reads a file."""
    known = {path.stem: functions(path) for path in (root / "pipeline" / "datasets").glob("*.py")}
    datasets = {name for name, found in known.items() if "prepare" in found}
    shared = {
        f"{name}.{function}": body
        for name, found in known.items()
        if name not in datasets
        for function, body in found.items()
    }
    found = []
    for dataset in sorted(datasets):
        own = shared | known[dataset]
        reached, pending = set[str](), ["prepare"]
        while pending:
            name = pending.pop()
            reached.add(name)
            owner = name.rpartition(".")[0]
            for call in called(own[name]):
                if call.rpartition(".")[2] in READERS:
                    found.append(f"{dataset}: prepare reaches {call} in {name}: only parse reads files")
                candidates = {call, f"{owner}.{call}"} if owner else {call}
                pending += [candidate for candidate in candidates & own.keys() if candidate not in reached]
    return found


def called(function: ast.FunctionDef) -> Iterator[str]:
    """What a function calls or hands on, as it is written."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name | ast.Attribute):
            yield ast.unparse(node)


PLANNING = (
    "import gc",
    "from snakemake.utils import min_version",
    "from pipeline.jobs import Run, encoded",
    "from pipeline.report import registry",
    "from pipeline.workflow import invocation, lock, references",
)


def rule_breaches(root: Path) -> list[str]:
    """The Snakefile imports what plans a run, and of Snakemake its utilities; rules import nothing."""
    found = []
    for path in [root / "Snakefile", *sorted((root / "pipeline" / "rules").glob("*.smk"))]:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for line in re.findall(r"^\s*((?:from|import)\s.+)", text, re.MULTILINE):
            if path.name != "Snakefile" or line not in PLANNING:
                found.append(f"{path.name}: {line}: rules import nothing, the Snakefile only what plans a run")
    return found


def published_breaches(root: Path) -> list[str]:
    """The stages that compare read the published numbers; no other code can name them."""
    found, users = [], set[str]()
    for path in sorted([*(root / "pipeline").rglob("*.py"), *(root / "fairness_audits").rglob("*.py")]):
        parsed, module = tree(path), module_of(path, root)
        docstrings = {id(node.value) for node in ast.walk(parsed) if isinstance(node, ast.Expr)}
        for node in ast.walk(parsed):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in docstrings else None
            if isinstance(text, str) and "data/published" in text:
                found.append(f"{module} names {text}: the path of the published numbers comes from the rule")
            if isinstance(node, ast.Name | ast.Attribute | ast.alias) and ast.unparse(node).endswith(READ_PUBLISHED):
                users.add(module)
    strangers = sorted(users - COMPARING)
    found += [f"{name} reads the published numbers: only the stages that compare do" for name in strangers]
    return found


def breaches(root: Path) -> list[str]:
    """What breaks a wall that is no matter of imports, one line each."""
    return [*reading_breaches(root), *rule_breaches(root), *published_breaches(root), *package_breaches(root)]


def test_the_walls_hold() -> None:
    assert breaches(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text", "wall"),
    [
        (
            "pipeline/datasets/d.py",
            "from pipeline.datasets import shared\ndef prepare():\n    shared.rows('x')",
            "only parse reads files",
        ),
        ("pipeline/rules/r.smk", "from pipeline.report import registry", "rules import nothing"),
        ("Snakefile", "from pipeline.io import load", "only what plans a run"),
        ("pipeline/report/cheat.py", "from pipeline.io import load_published", "only the stages that compare"),
        ("pipeline/datasets/__init__.py", "import math\nmath.pi = 3", "only imports and defines"),
        ("pipeline/datasets/__init__.py", "def shared():\n    pass", "not their names"),
        ("pipeline/methods/tuned.py", "PATH = 'data/published/s.csv'", "comes from the rule"),
    ],
)
def test_a_breach_is_seen(name: str, text: str, wall: str, tmp_path: Path) -> None:
    shared = "import pandas as pd\ndef rows(path):\n    return pd.read_csv(path)\n"
    for path, content in {"pipeline/datasets/shared.py": shared, name: text}.items():
        assert breaches(tmp_path) == []
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    (breach,) = breaches(tmp_path)
    assert wall in breach


@pytest.mark.parametrize("stage", sorted({path.stem for path in (ROOT / "pipeline/stages").glob("[!_]*.py")}))
def test_only_the_stages_that_compare_read_the_published_numbers(stage: str, tmp_path: Path) -> None:
    (tmp_path / "pipeline/stages").mkdir(parents=True)
    (tmp_path / f"pipeline/stages/{stage}.py").write_text("from pipeline import io\nio.load_published('x')")
    if stage in ("draw", "draw_reference", "decide"):
        assert published_breaches(tmp_path) == []
    else:
        (breach,) = published_breaches(tmp_path)
        assert f"pipeline.stages.{stage} " in breach


ENTRIES = {"datasets": "prepare", "methods": "fit", "transport": "images", "audits": "run"}
PLUGINS = {
    module_of(path, ROOT): entry
    for group, entry in ENTRIES.items()
    for path in sorted((ROOT / "pipeline" / group).rglob("*.py"))
    if path.stem != "__init__"
}
"""The modules that a job may load by name, and the function that it calls."""


@pytest.mark.parametrize("name", PLUGINS)
def test_the_packages_of_plugins_hold_nothing_else(name: str) -> None:
    module = importlib.import_module(name)
    assert callable(getattr(module, PLUGINS[name]))
    assert hasattr(module, "Config") or module.CONFIGS


REPORT = [module_of(path, ROOT) for path in sorted((ROOT / "pipeline" / "report").rglob("*.py"))]
STAGES = [module_of(path, ROOT) for path in sorted((ROOT / "pipeline" / "stages").glob("*.py"))]
OFTEN = [f"pipeline.stages.{name}" for name in ("fetch", "train", "transport", "audit", "collect")]
"""What runs once for each job of a grid."""
PERMUTATION = ["fairness_audits.audits.permutation.pairs", "pipeline.audits.permutation", "pipeline.audits.sample_size"]
LIGHT = {
    "plug-ins": (f"import {', '.join(PLUGINS)}", HEAVY),
    "a stage, before it knows what it computes": (
        f"import {', '.join(STAGES)}",
        ("torch", "torchvision", "jax", "wandb"),
    ),
    "a stage of many jobs": (f"import {', '.join(OFTEN)}", (*HEAVY, "pandas", "scipy")),
    "the report": (f"import {', '.join(REPORT)}", ("torch",)),
    "a permutation test": (f"import {', '.join(PERMUTATION)}", ("statsmodels",)),
    "networks": ("import pipeline.networks", ("torch",)),
    "POT": ("from fairness_audits.transport.pot import ot", ("torch", "jax")),
    "the help": (
        "from fairness_audits.cli.entry import parser; parser()",
        (*HEAVY[:4], "matplotlib", "pandas", "scipy"),
    ),
    "the functions": ("import fairness_audits", (*HEAVY, "pandas", "numpy", "scipy", "snakemake")),
}


@pytest.mark.parametrize("what", LIGHT)
def test_an_import_costs_nothing_heavy(what: str) -> None:
    """In a process of its own: what is imported once stays imported."""
    first, heavy = LIGHT[what]
    program = f"import sys\n{first}\nsys.exit(sorted({set(heavy)!r} & set(sys.modules)) or None)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POT_BACKEND")}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
