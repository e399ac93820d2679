"""The walls between the parts of the project hold, and the test that says so falls when one is breached."""

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

NUMERICAL = tuple(
    f"pipeline.{name}"
    for name in ("fair_metric", "group_metrics", "models", "attacks", "transport", "methods", "audits")
)
BEYOND = tuple(f"pipeline.{name}" for name in ("io", "workflow", "stages", "report", "cli", "datasets"))
FOUNDATIONS = tuple(name for name in NUMERICAL if name not in ("pipeline.methods", "pipeline.audits"))
MACHINERY = ("hydra", "omegaconf", "snakemake", "pathlib", "os.path", "matplotlib", "wandb")
READ_PUBLISHED = ("load_published", "load_claims")
BELOW_DATASETS = ("pipeline.types", "pipeline.fields")
READERS = {"open", "read_csv", "read_parquet", "read_table", "read_text", "read_bytes", "load", "loadtxt", "genfromtxt"}
HEAVY = (
    "torch", "torchvision", "fairlearn", "sklearn", "numba", "matplotlib", "wandb", "hydra", "statsmodels", "jax", "ot",
)  # fmt: skip


@dataclass(frozen=True)
class Wall:
    """Modules below ``inside`` import nothing below ``forbidden``; nor does, if ``whole``, what they import of ours."""

    name: str
    inside: tuple[str, ...]
    forbidden: tuple[str, ...]
    whole: bool = False


WALLS = (
    Wall("numerical code knows no machinery", NUMERICAL, (*MACHINERY, *BEYOND), whole=True),
    Wall("audits and methods meet through types", ("pipeline.audits",), ("pipeline.methods",), whole=True),
    Wall("audits and methods meet through types", ("pipeline.methods",), ("pipeline.audits",), whole=True),
    Wall("foundations stand below audits and methods", FOUNDATIONS, ("pipeline.methods", "pipeline.audits")),
    Wall("types stand below everything", ("pipeline.types", "pipeline.seeds"), (*MACHINERY, "pipeline")),
    Wall("the report computes no network", ("pipeline.report",), ("torch", "torchvision")),
    Wall("tables stand below the command line", ("pipeline.tabulate", "pipeline.messages"), ("pipeline.cli",)),
    Wall("the progress display knows no pipeline", ("snakemake_logger_plugin_progress",), ("pipeline",)),
)


def below(name: str, parents: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of ``parents`` or inside one."""
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


def module_of(path: Path, root: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(text: str) -> ast.Module:
    """A source file's tree; several walls look at each."""
    return ast.parse(text)


def imports(path: Path, root: Path) -> Iterator[str]:
    """Every module that a file imports, at any depth in it, lazily, for types only, or by a literal name."""
    package = module_of(path, root).split(".")
    package = package if path.name == "__init__.py" else package[:-1]
    for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            stem = [*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]
            base = ".".join(stem) if node.level else node.module or ""
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            yield from _literal_start(node.args[0])


def _literal_start(name: ast.expr) -> Iterator[str]:
    """The literal name of a module that is imported by name, or the literal start of it."""
    first = name.values[0] if isinstance(name, ast.JoinedStr) and name.values else name
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield first.value.rstrip(".")


def sources(root: Path) -> list[Path]:
    """Every Python file of the packages."""
    return sorted(
        path for name in ("pipeline", "snakemake_logger_plugin_progress") for path in (root / name).rglob("*.py")
    )


def breaches(root: Path) -> list[str]:
    """What breaks a wall in the tree at ``root``, one line each."""
    found = []
    named = {module_of(path, root): list(imports(path, root)) for path in sources(root)}
    for wall in WALLS:
        inside = {module for module in named if below(module, wall.inside)}
        for module in sorted(reachable(inside, named) if wall.whole else inside):
            wrong = [name for name in named[module] if below(name, wall.forbidden)]
            found += [f"{module} imports {name}: {wall.name}" for name in wrong]
    for path in sources(root):
        module = module_of(path, root)
        names = named[module]
        if below(module, ("pipeline.stages",)):
            others = [name for name in names if below(name, ("pipeline.stages",)) and not below(name, (module,))]
            found += [f"{module} imports {name}: a stage imports no other stage" for name in others]
        if is_dataset(path, root):
            found += dataset_breaches(path, root, names)
    return [*found, *rule_breaches(root), *published_breaches(root)]


def reachable(modules: set[str], named: dict[str, list[str]]) -> set[str]:
    """The modules and everything of ours that they import, at any depth."""
    reached, pending = set[str](), list(modules)
    while pending:
        module = pending.pop()
        reached.add(module)
        # `from package import name` may name a module or something inside one.
        candidates = {*named[module], *(name.rpartition(".")[0] for name in named[module])}
        pending += [name for name in candidates & named.keys() if name not in reached]
    return reached


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """The functions at the top level of a file."""
    tree = parsed(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def is_dataset(path: Path, root: Path) -> bool:
    """Whether a file is a dataset: one module in pipeline/datasets with ``prepare``."""
    return path.parent == root / "pipeline" / "datasets" and "prepare" in functions(path)


def dataset_breaches(path: Path, root: Path, names: list[str]) -> list[str]:
    """A dataset imports types and what datasets share; nothing that ``prepare`` reaches reads a file."""
    module, folder = module_of(path, root), root / "pipeline" / "datasets"
    shared = {
        f"pipeline.datasets.{p.stem}": p
        for p in folder.glob("*.py")
        if p.stem != "__init__" and not is_dataset(p, root)
    }
    local = [name for name in names if below(name, ("pipeline",)) and not below(name, (*BELOW_DATASETS, *shared))]
    local = [name for name in local if name != "pipeline.datasets"]
    found = [f"{module} imports {name}: a dataset imports types and what datasets share" for name in local]
    known = functions(path)
    for helper in shared.values():
        known |= {f"{helper.stem}.{name}": body for name, body in functions(helper).items()}
    reached, pending = set[str](), ["prepare"]
    while pending:
        name = pending.pop()
        reached.add(name)
        owner = name.rpartition(".")[0]
        for call in called(known[name]):
            if call.rpartition(".")[2] in READERS:
                found.append(f"{module}: prepare reaches {call} in {name}: only parse reads files")
            candidates = {call, f"{owner}.{call}"} if owner else {call}
            pending += [candidate for candidate in candidates & known.keys() if candidate not in reached]
    return found


def called(function: ast.FunctionDef) -> Iterator[str]:
    """What a function calls or hands on, as it is written."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name | ast.Attribute):
            yield ast.unparse(node)


def rule_breaches(root: Path) -> list[str]:
    """Snakefile and rules import nothing but the configuration, and of Snakemake its utilities."""
    allowed = ("pipeline.workflow.config", "snakemake.utils")
    found = []
    for path in [root / "Snakefile", *sorted((root / "pipeline" / "rules").glob("*.smk"))]:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for name in re.findall(r"^\s*(?:from|import)\s+([\w.]+)", text, re.MULTILINE):
            if not below(name, allowed):
                found.append(f"{path.name} imports {name}: rules import nothing but pipeline.workflow.config")
    return found


def published_breaches(root: Path) -> list[str]:
    """One stage hands the published numbers to the comparison; no other code can name them."""
    found, users = [], []
    for path in sources(root):
        tree, module = parsed(path.read_text(encoding="utf-8")), module_of(path, root)
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in docstrings else None
            if isinstance(text, str) and "data/published" in text:
                found.append(f"{module} names {text}: the path of the published numbers comes from the rule")
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith(READ_PUBLISHED):
                users.append(module)
        users += [module for name in imports(path, root) if name.endswith(READ_PUBLISHED)]
    strangers = {name for name in users if not below(name, ("pipeline.stages",))}
    found += [f"{name} reads the published numbers: only the comparison's stage does" for name in sorted(strangers)]
    if len(set(users) - strangers) > 1:
        found.append(f"{sorted(set(users) - strangers)} read the published numbers: only the comparison's stage does")
    return found


def test_the_walls_hold() -> None:
    assert breaches(ROOT) == []


BREACHES = {
    "pipeline/models/mlp.py": ("import hydra", "numerical code knows no machinery"),
    "pipeline/attacks/flow.py": ("def f():\n    from pathlib import Path", "numerical code knows no machinery"),
    "pipeline/fair_metric.py": ("from pipeline import io", "numerical code knows no machinery"),
    "pipeline/group_metrics.py": ("from . import workflow", "numerical code knows no machinery"),
    "pipeline/newcomer.py": ("import wandb", "numerical code knows no machinery"),
    "pipeline/audits/a.py": ("from pipeline.methods.m import fit", "audits and methods meet"),
    "pipeline/methods/m.py": (
        "import importlib\nimportlib.import_module('pipeline.audits.a')",
        "audits and methods meet",
    ),
    "pipeline/methods/n.py": ("from ..audits import a", "audits and methods meet"),
    "pipeline/models/device.py": ("from pipeline.methods import m", "foundations stand below"),
    "pipeline/report/table.py": ("def f():\n    import torch.nn", "the report computes no network"),
    "pipeline/stages/audit.py": ("from pipeline.stages import train", "a stage imports no other stage"),
    "pipeline/datasets/d.py": ("from pipeline import io\ndef prepare(): pass", "a dataset imports types"),
    "pipeline/datasets/e.py": ("def prepare():\n    g()\ndef g():\n    open('x')", "only parse reads files"),
    "pipeline/datasets/f.py": (
        "from pipeline.datasets import shared\ndef prepare():\n    shared.rows('x')",
        "only parse reads files",
    ),
    "pipeline/rules/r.smk": ("from pipeline.io import load", "rules import nothing but"),
    "pipeline/report/cheat.py": ("from pipeline.io import load_published", "only the comparison's stage"),
    "pipeline/methods/tuned.py": ("PATH = 'data/published/s.csv'", "comes from the rule"),
    "pipeline/types.py": ("from pipeline.io import save", "types stand below everything"),
    "pipeline/tabulate/t.py": ("from pipeline.cli import table", "tables stand below the command line"),
    "snakemake_logger_plugin_progress/x.py": ("import pipeline.io", "knows no pipeline"),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_seen(name: str, tmp_path: Path) -> None:
    # Numerical by what rests on it, not by its name.
    harmless = {"pipeline/attacks/rests.py": "from pipeline.newcomer import f", "pipeline/newcomer.py": ""}
    shared = "import pandas as pd\ndef rows(path):\n    return pd.read_csv(path)\n"
    for innocent, text in {**harmless, "pipeline/datasets/shared.py": shared, "pipeline/io.py": "import os\n"}.items():
        (tmp_path / innocent).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / innocent).write_text(text)
    assert breaches(tmp_path) == []
    text, wall = BREACHES[name]
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    (breach,) = breaches(tmp_path)
    assert wall in breach


def test_two_stages_that_read_the_published_numbers_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "pipeline/stages").mkdir(parents=True)
    for stage in ("artefacts", "train"):
        assert published_breaches(tmp_path) == []
        (tmp_path / f"pipeline/stages/{stage}.py").write_text("from pipeline import io\nio.load_published('x')")
    (breach,) = published_breaches(tmp_path)
    assert "train" in breach


def plugins() -> list[str]:
    """The modules that a job may load by name: those with ``prepare``, ``fit`` or ``run``, and a ``Config``."""
    entries = {"datasets": "prepare", "methods": "fit", "audits": "run"}
    return [
        module_of(path, ROOT)
        for group, entry in entries.items()
        for path in sorted((ROOT / "pipeline" / group).rglob("*.py"))
        if entry in functions(path) and "class Config" in path.read_text(encoding="utf-8")
    ]


REPORT = [module_of(path, ROOT) for path in sorted((ROOT / "pipeline" / "report").rglob("*.py"))]
STAGES = [module_of(path, ROOT) for path in sorted((ROOT / "pipeline" / "stages").glob("*.py"))]
OFTEN = [f"pipeline.stages.{name}" for name in ("fetch", "train", "transport", "audit", "collect")]
"""What runs once for each job of a grid."""
PERMUTATION = [f"pipeline.audits.permutation.{name}" for name in ("pairs", "permutation", "sample_size")]
LIGHT = {
    "plug-ins": (f"import {', '.join(plugins())}", HEAVY),
    "a stage, before it knows what it computes": (
        f"import {', '.join(STAGES)}",
        ("torch", "torchvision", "jax", "wandb"),
    ),
    "a stage of many jobs": (f"import {', '.join(OFTEN)}", (*HEAVY, "pandas", "scipy")),
    "the report": (f"import {', '.join(REPORT)}", ("torch",)),
    "a permutation test": (f"import {', '.join(PERMUTATION)}", ("statsmodels",)),
    "networks": ("import pipeline.models.networks", ("torch",)),
    "POT": ("from pipeline.transport.pot import ot", ("torch", "jax")),
    "the help": ("from pipeline.cli.entry import parser; parser()", (*HEAVY[:4], "matplotlib", "pandas", "scipy")),
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
