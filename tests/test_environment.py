"""pyproject.toml, requirements.lock and environment.yml describe one environment, and name no machine."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent

CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base", "duckdb": "python-duckdb"}
"""Packages that conda-forge calls otherwise than the Python Package Index."""

CONDA_ONLY = {"python", "pip", "setuptools", "openjdk"}
"""What a virtual environment has or gets by itself, and Java, which pip cannot install."""


def project() -> dict[str, str]:
    """Every dependency of pyproject.toml, development tools included, with its exact version."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    texts = [*declared["dependencies"], *extras["study"], *extras["torch"], *extras["dev"]]
    pins: dict[str, str] = {}
    for requirement in map(Requirement, texts):
        (pin,) = requirement.specifier
        assert pin.operator == "==", f"{requirement} is not pinned"
        pins[canonicalize_name(requirement.name)] = pin.version
    return pins


def lock() -> dict[str, str]:
    """Every package of requirements.lock with its version."""
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    matches = [re.fullmatch(r"([a-z0-9-]+)==([\w.]+)", line) for line in lines]
    broken = [line for line, match in zip(lines, matches, strict=True) if match is None]
    assert not broken, f"not of the form name==version: {broken}"
    return {match[1]: match[2] for match in matches if match}


def conda() -> tuple[dict[str, str], dict[str, str]]:
    """The packages of environment.yml with their versions: conda's own, and those of its pip section."""
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    own = dict(entry.split("=") for entry in entries if isinstance(entry, str) and "=" in entry)
    (nested,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    return own, dict(line.split("==") for line in nested if "==" in line)


def test_the_lock_holds_every_dependency_at_its_pinned_version() -> None:
    assert project().items() <= lock().items()


def test_the_conda_environment_is_the_same_one() -> None:
    own, nested = conda()
    back = {conda_name: name for name, conda_name in CONDA_NAMES.items()}
    named = {back.get(name, name): version for name, version in own.items() if name not in CONDA_ONLY}
    assert not named.keys() & nested.keys()
    assert named | nested == project()


def test_the_conda_environment_installs_the_project_and_its_python_is_allowed() -> None:
    text = (ROOT / "environment.yml").read_text()
    assert "- --editable ." in text
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert Requirement(f"python{required}").specifier.contains(conda()[0]["python"])


def test_the_tests_of_spark_run_on_a_version_that_the_extra_allows() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (spark,) = map(Requirement, extras["spark"])
    assert spark.specifier.contains(project()[canonicalize_name(spark.name)])


@pytest.mark.parametrize("name", ["requirements.lock", "environment.yml", "pyproject.toml", "Makefile"])
def test_no_machine_stands_in_the_environment_files(name: str) -> None:
    text = (ROOT / name).read_text()
    addresses = r"https?://|file://|--(?:extra-)?index-url|--find-links \S"
    absolute_paths = r"(?<![\w.$)/-])/(?!dev/null)\w+/"
    assert not re.findall(f"{addresses}|{absolute_paths}", text)


def test_one_lock_serves_machines_with_and_without_a_gpu() -> None:
    names = lock()
    assert not [version for version in names.values() if "+" in version]
    assert not [name for name in names if name.startswith(("nvidia-", "cuda-", "triton"))]


def test_what_is_installed_is_what_the_lock_says() -> None:
    installed: dict[str, str] = {
        canonicalize_name(package.metadata["Name"]): package.version.split("+")[0]
        for package in importlib.metadata.distributions()
    }
    differing = {
        name: (version, installed.get(name)) for name, version in project().items() if installed.get(name) != version
    }
    assert not differing, f"(wanted, installed): {differing}; run make to install the lock"


def test_the_project_is_importable_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pipeline

    monkeypatch.chdir(tmp_path)
    assert importlib.metadata.version("fairness-audits")
    assert Path(pipeline.__file__).is_relative_to(ROOT)
