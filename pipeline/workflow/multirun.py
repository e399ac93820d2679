"""Training by Hydra alone, for those who like it: any of its launchers and sweepers, a folder of its own for each run.

    python -m pipeline.stages.train -m method=baseline,sensr dataset=compas "seed=range(10)"
    python -m pipeline.stages.train -m hydra/launcher=submitit_slurm hydra.launcher.partition=short "seed=range(10)"

``seed`` is the number of a repetition: run k draws the split and the streams of random numbers of repetition k of the
workflow, so its classifier is that one, alone. Nothing of the workflow's own results is read or written but the raw
data.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from fairness_audits.files import load_json
from fairness_audits.seeds import generators
from fairness_audits.values import Classifier, Dataset, ImageDataset
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import plugins
from pipeline.workflow.config import CONF, ROOT, Workflow
from pipeline.workflow.preparation import prepared

READ = ("dataset", "method", "scale", "seed")
"""What training depends on. Anything else on the command line would be without effect."""

log = logging.getLogger(__name__)


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def main(config: DictConfig) -> None:
    """One run: prepare, train one repetition, save ``classifier.npz`` in the run's folder."""
    running = HydraConfig.get()
    settings = asked(config, running.overrides.task)
    dataset, method, scale = (running.runtime.choices[group] for group in ("dataset", "method", "scale"))
    classifier = trained(dataset, method, scale, config.seed, settings)
    path = Path(running.runtime.output_dir, "classifier.npz")
    io.save(classifier, path)
    facts = ", ".join(f"{name} {float(values.mean()):.6g}" for name, values in classifier.facts.items())
    log.info("%s on %s, repetition %d: %s%s", method, dataset, config.seed, path, facts and f"; {facts}")


def asked(config: DictConfig, overrides: Sequence[str]) -> dict[str, Any]:
    """The values that the command line sets in a section, ``method.learning_rate=1e-4``, by key.

    Raises ValueError for what training does not read.
    """
    settings = {}
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        key = str(override.key_or_group)
        group, _, rest = key.partition(".")
        if group not in READ:
            raise ValueError(f"training does not depend on {key!r}: it reads {', '.join(READ)}")
        if rest:
            settings[key] = OmegaConf.select(config, key)
    return settings


def trained(dataset: str, method: str, scale: str, seed: int, settings: Mapping[str, Any]) -> Classifier:
    """The classifier of repetition ``seed``.

    Raises ValueError for a negative seed, and where the raw data have not been fetched or cannot be had.
    """
    if seed < 0:
        raise ValueError(f"seed is the number of a repetition: expected at least 0, found {seed}")
    workflow = Workflow(scale, tracker="disabled")
    section = workflow.part(
        "dataset", dataset, dataset, {k: v for k, v in settings.items() if k.startswith("dataset.")}
    )
    manifest = ROOT / "data" / "raw" / section["kind"] / "manifest.json"
    if not manifest.is_file():
        name = manifest.relative_to(ROOT)
        raise ValueError(f"the raw data of {dataset!r} have not been fetched: run `snakemake --cores 1 {name}`")
    every = prepared(section, seed + 1, load_json(manifest))
    if isinstance(every, MissingData):
        raise ValueError(f"the data of {dataset!r} cannot be had: {every.reason}")
    own = workflow.part("method", method, dataset, settings)
    module = plugins.load("method", own["kind"])
    stream = generators("train", every.name, own["name"], repetitions=seed + 1)[seed:]
    return replace(module.fit(_one(every, seed), plugins.configure(module, own), stream), method=own["name"])


def _one(dataset: Dataset | ImageDataset, repetition: int) -> Dataset | ImageDataset:
    """The dataset with one split; images have no more."""
    kept = slice(repetition, repetition + 1) if dataset.repetitions > 1 else slice(None)
    return replace(dataset, train=dataset.train[kept], test=dataset.test[kept])
