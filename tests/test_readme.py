"""What README.md and ARCHITECTURE.md point to is there, and the files that describe the environment agree."""

import json
import re
import subprocess
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from fairness_audits import __version__, messages
from pipeline.workflow.conf import CONF

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len(TEXT.splitlines()) <= 200


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!https?://)([^)#]+)\)", TEXT))))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"^\| `([\w./]+)`", TEXT, re.MULTILINE))))
def test_the_map_names_what_there_is(path: str) -> None:
    declared = {file.stem for folder in ("experiment", "sweep") for file in (CONF / folder).glob("*.yaml")}
    assert (ROOT / path).exists() or path in declared


# ARCHITECTURE.md describes the tree that is there.


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
LAYOUT = ARCHITECTURE[ARCHITECTURE.index("## Two layers") : ARCHITECTURE.index("## Data flow")]
LAYERS = ("fairness_audits", "pipeline")


def committed() -> list[Path]:
    """Return the files of the repository."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return [Path(name) for name in listed.splitlines()]


def listed_below(layer: str) -> set[str]:
    """Return the files and folders that the layout lists below a layer."""
    block = LAYOUT.partition(f"    {layer}/\n")[2].partition("\n\n")[0]
    lines = [line.strip() for line in block.splitlines() if line.startswith("      ")]
    return {name for line in lines for name in line.split("   ")[0].split()}


@pytest.mark.parametrize("layer", LAYERS)
def test_the_layout_lists_every_package_and_module_of_a_layer(layer: str) -> None:
    files = [path for path in committed() if path.parts[0] == layer and len(path.parts) > 1]
    packages = {f"{path.parts[1]}/" for path in files if len(path.parts) > 2}
    modules = {path.name for path in files if len(path.parts) == 2 and not path.name.startswith("__")}
    assert listed_below(layer) - {"__init__.py"} == packages | modules


def test_the_layout_lists_every_folder_at_the_top() -> None:
    folders = {f"{path.parts[0]}/" for path in committed() if len(path.parts) > 1}
    for name in folders - {".ci/", ".github/", "results/"}:
        assert re.search(rf"(?<![\w/]){re.escape(name)}", LAYOUT), name


# pyproject.toml, the locks and environment.yml describe one environment.


CONDA_NAMES = {
    "torch": "pytorch",
    "matplotlib": "matplotlib-base",
    "duckdb": "python-duckdb",
    "xgboost-cpu": "py-xgboost-cpu",
}
"""Packages that conda-forge calls otherwise than the Python Package Index."""

CONDA_ONLY = {"python", "pip", "setuptools", "openjdk"}
"""What a virtual environment has or gets by itself, and Java, which pip cannot install."""

DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = DECLARED["optional-dependencies"]


def requirements(*extras: str) -> list[Requirement]:
    """Return what pyproject.toml declares of the library and of these extras."""
    texts = [*DECLARED["dependencies"], *(text for extra in extras for text in EXTRAS[extra])]
    return [one for one in map(Requirement, texts) if one.name != DECLARED["name"]]


EXPERIMENTS, DEVELOPMENT = "requirements.lock", "requirements-dev.lock"


def locked(*names: str) -> dict[str, str]:
    """Return every package of these locks with its version."""
    pins: dict[str, str] = {}
    for line in "".join((ROOT / name).read_text() for name in names).splitlines():
        if not line.startswith(("#", "-r ")):
            (pin,) = Requirement(line).specifier
            assert pin.operator == "==", line
            name = canonicalize_name(Requirement(line).name)
            assert name not in pins, f"{name} is pinned twice"
            pins[name] = pin.version
    return pins


def conda() -> tuple[dict[str, str], dict[str, str]]:
    """The packages of environment.yml with their versions: conda's own, and those of its pip section."""
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    own = dict(entry.split("=") for entry in entries if isinstance(entry, str) and "=" in entry)
    (nested,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    return own, dict(line.split("==") for line in nested if "==" in line)


@pytest.mark.parametrize(
    ("extras", "names"),
    [(("study",), (EXPERIMENTS,)), (tuple(EXTRAS), (EXPERIMENTS, DEVELOPMENT))],
    ids=["experiments", "development"],
)
def test_a_lock_satisfies_what_it_is_for_with_and_without_a_gpu(extras: Collection[str], names: Sequence[str]) -> None:
    pins = locked(*names)
    for requirement in requirements(*extras):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement
    assert not [version for version in pins.values() if "+" in version]
    assert not [name for name in pins if name.startswith(("nvidia-", "cuda-", "triton"))]


def test_the_library_declares_ranges() -> None:
    for requirement in requirements(*EXTRAS.keys() - {"study", "dev"}):
        operators = {one.operator for one in requirement.specifier}
        assert operators in ({">="}, {">=", "<"}), requirement


def test_a_message_about_a_missing_package_names_an_extra_that_brings_it() -> None:
    for package, extra in messages.EXTRAS.values():
        assert package in {Requirement(text).name for text in EXTRAS[extra]}


def test_the_conda_environment_is_the_same_one_and_installs_the_project_on_a_python_that_is_allowed() -> None:
    own, nested = conda()
    back = {conda_name: name for name, conda_name in CONDA_NAMES.items()}
    named = {back.get(name, name): version for name, version in own.items() if name not in CONDA_ONLY}
    assert not named.keys() & nested.keys()
    pins = locked(EXPERIMENTS, DEVELOPMENT)
    declared = {canonicalize_name(requirement.name) for requirement in requirements(*EXTRAS)}
    assert named | nested == {name: pins[name] for name in declared}
    text = (ROOT / "environment.yml").read_text()
    assert "- --editable ." in text
    assert Requirement(f"python{DECLARED['requires-python']}").specifier.contains(conda()[0]["python"])


def test_every_description_of_the_project_has_its_version() -> None:
    recipe = re.search(r'set version = "(.+)"', (ROOT / "deploy/conda-forge/meta.yaml").read_text())
    assert recipe
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    archive = json.loads((ROOT / ".zenodo.json").read_text())["version"]
    assert {recipe[1], citation, archive} == {__version__}


def test_the_recipe_has_the_ranges_of_the_library() -> None:
    recipe = (ROOT / "deploy/conda-forge/meta.yaml").read_text()
    for requirement in requirements(*EXTRAS.keys() - {"study", "dev"}):
        name = canonicalize_name(requirement.name)
        (listed,) = re.findall(rf"^    - {re.escape(CONDA_NAMES.get(name, name))} (.+)$", recipe, re.MULTILINE)
        assert SpecifierSet(listed) == requirement.specifier, name
