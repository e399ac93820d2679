"""The README's examples work as they stand, and what it points to is there."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from shutil import copytree

import pytest

from pipeline import io
from pipeline.config import CONF, Workflow
from pipeline.stages import audit, collect, fetch, prepare, train

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's configuration with the README's files beside its own, and their modules importable."""
    copytree(CONF, tmp_path / "conf")
    for name, text in EXAMPLES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for group in ("datasets", "methods", "audits"):
        package = importlib.import_module(f"pipeline.{group}")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / "pipeline" / group)])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PIPELINE_TRACKER", raising=False)
    return tmp_path / "conf"


def test_the_example_dataset_method_and_audit_run_as_they_stand(conf: Path) -> None:
    assert len(EXAMPLES) == 7
    workflow = Workflow(scale="smoke", studies=["mine"], conf=conf)
    points = [point for point in workflow.points("mine") if point.dataset == "two_incomes"]
    assert len(points) == 2
    for point in points:
        dataset, method = point.name("dataset"), point.name("method")
        raw, prepared, trained = Path("raw"), Path(f"{dataset}.npz"), Path(f"{method}.npz")
        fetch.main(["--dataset", "two_incomes", "--source", "auto", "--raw", str(raw), "--output", "manifest.json"])
        section = json.dumps(workflow.prepare(dataset))
        prepare.main(["--config", section, "--manifest", "manifest.json", "--output", str(prepared)])
        section = json.dumps(workflow.train(dataset, method))
        train.main(["--config", section, "--dataset", str(prepared), "--output", str(trained)])
        section = json.dumps(workflow.audit(*workflow._key(point)))
        inputs = ["--dataset", str(prepared), "--classifier", str(trained)]
        audit.main(["--config", section, *inputs, "--output", workflow.audit_file(point)])
    entries = [entry for entry in workflow.collect("mine") if Path(entry["path"]).exists()]
    collect.main(["--study", "mine", "--scale", "smoke", "--audits", json.dumps(entries), "--output", "rows.parquet"])
    rows = io.load_rows("rows.parquet")
    assert set(rows["statistic"]) == {"accuracy_gap"}
    assert rows["value"].between(-1, 1).all()
    # The sign of the score does not depend on its scale, so neither does the audit.
    first, second = (rows.loc[rows["sharpness"] == value, "value"].to_list() for value in (0.5, 1.0))
    assert first == second


def test_the_fitted_example_separates_the_classes(conf: Path) -> None:
    import numpy as np

    from pipeline.models import architecture

    dataset_module = importlib.import_module("pipeline.datasets.two_incomes")
    method_module = importlib.import_module("pipeline.methods.nearest_mean")
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    dataset = dataset_module.prepare(None, dataset_module.Config(n=2000, shift=0.5), rngs, "simulated")
    classifier = method_module.fit(dataset, method_module.Config(sharpness=1.0), rngs)
    batch = dataset.batch("test")
    answers = architecture(classifier.architecture).predict(classifier.parameters, batch.features)
    # P(y = 1{x > 0}) is 3/4 for x, e independent N(0, 1); a shift of x does not lower it.
    assert ((answers == batch.label).mean(axis=1) > 0.7).all()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!https?://)([^)#]+)\)", TEXT))))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"^\| `([\w./]+)`", TEXT, re.MULTILINE))))
def test_the_map_names_what_there_is(path: str) -> None:
    studies = {file.stem for file in (CONF / "experiment").glob("*.yaml")}
    assert (ROOT / path).exists() or path in studies | {"agrees"}


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^make (\w+)", TEXT, re.MULTILINE))))
def test_the_commands_are_targets(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command}:", makefile, re.MULTILINE)
