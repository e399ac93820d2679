"""The README's examples work as they stand, and what it points to is there."""

import doctest
import importlib
import json
import re
import shlex
import subprocess
import tomllib
import warnings
from pathlib import Path
from shutil import copytree

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fairness_audits.cli.entry import main
from pipeline import io
from pipeline.report import registry
from pipeline.stages import audit, collect, fetch, prepare, sweep, train, transport
from pipeline.workflow.config import CONF, Workflow
from pipeline.workflow.paths import place

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
AUDITING = (ROOT / "docs" / "auditing.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's configuration with the README's files beside its own, and their modules importable."""
    copytree(CONF, tmp_path / "conf")
    for name, text in EXAMPLES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for group in ("datasets", "methods", "transport", "audits"):
        package = importlib.import_module(f"pipeline.{group}")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / "pipeline" / group)])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PIPELINE_TRACKER", raising=False)
    return tmp_path / "conf"


def test_the_example_dataset_method_and_audit_run_as_they_stand(conf: Path) -> None:
    assert len(EXAMPLES) == 9
    workflow = Workflow(scale="smoke", conf=conf)
    points = [point for point in workflow.points("mine") if point.dataset == "two_incomes"]
    assert len(points) == 3
    for point in points:
        dataset, method = point.name("dataset"), point.name("method")
        raw, prepared, trained = Path("raw"), Path(f"{dataset}.npz"), Path(f"{method}.npz")
        fetch.main(["--dataset", "two_incomes", "--source", "auto", "--raw", str(raw), "--output", "manifest.json"])
        section = json.dumps(workflow.asked("prepare", dataset))
        prepare.main(["--config", section, "--manifest", "manifest.json", "--output", str(prepared)])
        section = json.dumps(workflow.asked("train", dataset, method))
        train.main(["--config", section, "--dataset", str(prepared), "--output", str(trained)])
        inputs = ["--dataset", str(prepared), "--classifier", str(trained)]
        if point.transport:
            section = json.dumps(workflow.asked("transport", dataset, point.name("transport")))
            transport.main(["--config", section, "--dataset", str(prepared), "--output", "maps.npz"])
            inputs += ["--transport", "maps.npz"]
        section = json.dumps(workflow.asked("audit", *place(point)))
        audit.main(["--config", section, *inputs, "--output", workflow.audit_file(point)])
    entries = [entry for entry in workflow.collect("mine") if Path(entry["path"]).exists()]
    collect.main(["--study", "mine", "--scale", "smoke", "--audits", json.dumps(entries), "--output", "rows.parquet"])
    rows = io.load_rows("rows.parquet")
    gaps = rows[rows["statistic"] == "accuracy_gap"]
    assert gaps["value"].between(-1, 1).all()
    # The sign of the score does not depend on its scale, so neither does the audit.
    first, second = (gaps.loc[gaps["sharpness"] == value, "value"].to_list() for value in (0.5, 1.0))
    assert first == second
    section = json.dumps(workflow.sweep("mine"))
    sweep.main(["--config", section, "--rows", "rows.parquet", "--summary", "summary.csv", "--figure", "figure"])
    assert Path("figure.pdf").stat().st_size > 5_000
    # Men earn more, so a woman moved to where men are may be accepted where she was not, and never the reverse.
    sizes = rows[(rows["statistic"] == "size") & (rows["direction"] == "forward")].groupby("flipset")["value"].sum()
    assert sizes["positive"] == 0 < sizes["negative"]


def commands(text: str) -> list[list[str]]:
    """The arguments of every ``fairness-audits`` that ``text`` prints in a block or, without a ``<``, inline."""
    printed = re.findall(r"^fairness-audits ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    printed += re.findall(r"`fairness-audits ([^`<]*)`", text)
    return [shlex.split(line.replace("\\\n", " ")) for line in printed]


@pytest.mark.parametrize(("text", "count"), [(TEXT, 1), (AUDITING, 3)], ids=["README", "auditing"])
def test_the_loss_ratio_commands_run_as_they_stand(
    text: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [arguments for arguments in commands(text) if arguments[0] in ("loss-ratio", "--help")]
    assert len(found) == count
    rng = np.random.default_rng(0)
    sex, white, skill = rng.integers(0, 2, 400), rng.integers(0, 2, 400), rng.standard_normal(400)
    rows = pd.DataFrame(
        {
            "experience": (skill + rng.standard_normal(400)).astype(np.float32),
            "hours": (skill + sex + 0.5 * rng.standard_normal(400)).astype(np.float32),
            "training": (skill + white + 0.5 * rng.standard_normal(400)).astype(np.float32),
            "sex": np.where(sex == 1, "Male", "Female"),
        }
    )
    likes = rng.random(400) < 1 / (1 + np.exp(-2 * skill))
    # The README's columns have two levels each; the page names the level of race that is compared with the rest.
    if text is TEXT:
        rows = rows.assign(race=np.where(white == 1, "White", "Black"), y=likes.astype(int))
    else:
        others = np.where(rng.random(400) < 0.5, "Black", "Other")
        rows = rows.assign(race=np.where(white == 1, "White", others), income=np.where(likes, ">50K", "<=50K"))
    monkeypatch.chdir(tmp_path)
    rows.to_parquet("rows.parquet")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript, which the README offers first
        torch.jit.script(network).save("model.pt")
    batch = torch.export.Dim("rows", min=1)
    torch.export.save(torch.export.export(network, (torch.zeros(5, 3),), dynamic_shapes=({0: batch},)), "model.pt2")
    for arguments in found:
        if "--help" in arguments:
            with pytest.raises(SystemExit, match="0"):
                main(arguments)
        else:
            assert main(arguments) == 0, capsys.readouterr().err
            assert capsys.readouterr().out.startswith("Loss-ratio audit of ")
        if "--output" in arguments:
            folder = Path(arguments[arguments.index("--output") + 1])
            names = {path.name for path in folder.iterdir()}
            figure = {"loss_ratio.html", "loss_ratio.png", "loss_ratio.pdf"}
            assert names == {"audit.json", "audit.yaml", "tests.csv", "examples.csv", *figure}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!https?://)([^)#]+)\)", TEXT))))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"^\| `([\w./]+)`", TEXT, re.MULTILINE))))
def test_the_map_names_what_there_is(path: str) -> None:
    declared = {file.stem for folder in ("experiment", "sweep") for file in (CONF / folder).glob("*.yaml")}
    assert (ROOT / path).exists() or path in declared | {"agrees"}


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^make (\w+)", TEXT, re.MULTILINE))))
def test_the_commands_are_targets(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_the_page_of_figures_has_each_figure_of_a_study_with_a_reference() -> None:
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    shown = re.findall(r"^!\[.+\]\(images/(\w+)/(\w+)\.png\)$", page, re.MULTILINE)
    not_run = re.findall(r"^### Figure .+\n\n(?:Not run[: ]|Without σ)", page, re.MULTILINE)
    studies = sorted(path.parent.name for path in (ROOT / "data" / "reference").glob("*/manifest.json"))
    figures = {(study, one.name) for study in studies for one in registry.declared(study) if one.kind == "figure"}
    assert len(shown) == len(set(shown))
    assert set(shown) <= figures, "make gallery"
    assert len(shown) + len(not_run) == len(figures), "make gallery"
    for study, name in shown:
        assert (ROOT / "docs" / "images" / study / f"{name}.png").stat().st_size <= 150_000


def test_the_tutorial_answers_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = io.load_rows(ROOT / "data" / "twins" / "adult.parquet").sample(8_000, random_state=0)
    rows.to_csv(tmp_path / "adult.csv", index=False)
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(ROOT / "docs" / "tutorial.md"), False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted >= 40
    assert not found.failed


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
    for name in folders - {".ci/", "results/", "profiles/"}:
        assert re.search(rf"(?<![\w/]){re.escape(name)}", LAYOUT), name


# pyproject.toml, requirements.lock and environment.yml describe one environment.


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


def test_the_lock_holds_every_dependency_at_its_pinned_version_with_and_without_a_gpu() -> None:
    assert project().items() <= lock().items()
    names = lock()
    assert not [version for version in names.values() if "+" in version]
    assert not [name for name in names if name.startswith(("nvidia-", "cuda-", "triton"))]


def test_the_conda_environment_is_the_same_one_and_installs_the_project_on_a_python_that_is_allowed() -> None:
    own, nested = conda()
    back = {conda_name: name for name, conda_name in CONDA_NAMES.items()}
    named = {back.get(name, name): version for name, version in own.items() if name not in CONDA_ONLY}
    assert not named.keys() & nested.keys()
    assert named | nested == project()
    text = (ROOT / "environment.yml").read_text()
    assert "- --editable ." in text
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert Requirement(f"python{required}").specifier.contains(conda()[0]["python"])


def test_the_tests_of_spark_run_on_a_version_that_the_extra_allows() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (spark,) = map(Requirement, extras["spark"])
    assert spark.specifier.contains(project()[canonicalize_name(spark.name)])
