"""A run of Hydra's own trains one repetition of the workflow, alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from pipeline.seeds import generators
from pipeline.workflow import multirun, plugins
from pipeline.workflow.config import Workflow
from pipeline.workflow.preparation import prepared

SETTINGS = {"dataset.train": 400, "dataset.test": 100}


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    manifest: dict = {"dataset": "hiring", "origin": "simulated", "files": [], "reason": None}
    path = tmp_path / "data" / "raw" / "hiring" / "manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(manifest))
    monkeypatch.setattr(multirun, "ROOT", tmp_path)
    return manifest


def test_seed_k_is_repetition_k_of_the_workflow(fetched: dict) -> None:
    workflow = Workflow("smoke", tracker="disabled")
    data = prepared(workflow.part("dataset", "hiring", "hiring", SETTINGS), 3, fetched)
    section = workflow.part("method", "logistic", "hiring", {})
    module = plugins.load("method", section["kind"])
    every = module.fit(
        data, plugins.configure(module, section), generators("train", "hiring", "logistic", repetitions=3)
    )
    for seed in (0, 2):
        one = multirun.trained("hiring", "logistic", "smoke", seed, SETTINGS)
        assert one.repetitions == 1
        for name, values in every.parameters.items():
            assert np.allclose(one.parameters[name][0], values[seed], rtol=1e-6), (seed, name)
    assert not np.allclose(every.parameters[name][0], every.parameters[name][2])


def test_data_that_were_not_fetched_are_asked_for(fetched: dict) -> None:
    with pytest.raises(ValueError, match="'compas' have not been fetched: run `snakemake --cores 1 data/raw/compas"):
        multirun.trained("compas", "logistic", "smoke", 0, {})
    with pytest.raises(ValueError, match="number of a repetition: expected at least 0, found -1"):
        multirun.trained("hiring", "logistic", "smoke", -1, {})


def test_data_that_cannot_be_had_are_no_empty_classifier(fetched: dict, tmp_path: Path) -> None:
    path = tmp_path / "data" / "raw" / "hiring" / "manifest.json"
    path.write_text(json.dumps({**fetched, "origin": "absent", "reason": "put it there"}))
    with pytest.raises(ValueError, match="the data of 'hiring' cannot be had: put it there"):
        multirun.trained("hiring", "logistic", "smoke", 0, {})


def test_the_command_line_may_set_what_training_reads_and_nothing_else() -> None:
    config = OmegaConf.create({"method": {"rate": 0.5}, "seed": 2})
    assert multirun.asked(config, ["method=sensr", "method.rate=0.5", "seed=2"]) == {"method.rate": 0.5}
    with pytest.raises(ValueError, match=r"training does not depend on 'audit\.delta': it reads dataset, method"):
        multirun.asked(config, ["audit.delta=2"])
