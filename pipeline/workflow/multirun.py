"""Training with Hydra instead of Snakemake: any launcher or sweeper of Hydra, one folder for each run.

    python -m pipeline.workflow.multirun -m method=baseline,sensr dataset=compas "seed=range(10)"
    python -m pipeline.workflow.multirun -m hydra/launcher=submitit_slurm hydra.launcher.partition=short "seed=0,1"

``seed`` is the number of a repetition. Run k trains the classifier of repetition k of the workflow, with the same split
and random numbers. It reads the raw data of the workflow and none of its results.
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

from fairness_audits.errors import InvalidInput
from fairness_audits.files import load_json
from fairness_audits.seeds import generators
from fairness_audits.values import Classifier, Dataset, ImageDataset
from pipeline import io
from pipeline.stages.prepare import prepared
from pipeline.values import MissingData
from pipeline.workflow import plugins
from pipeline.workflow.conf import CONF, Conf
from pipeline.workflow.points import STAGES, Grids, Point

READ = ("dataset", "method", "scale", "seed")
"""Keys that affect training. Others are refused."""

ROOT = CONF.parent
log = logging.getLogger(__name__)


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def main(config: DictConfig) -> None:
    """Prepare the data, train one repetition and save ``classifier.npz`` in the folder of the run."""
    running = HydraConfig.get()
    settings = settings_of(config, running.overrides.task)
    dataset, method, scale = (running.runtime.choices[group] for group in ("dataset", "method", "scale"))
    classifier = trained(dataset, method, scale, config.seed, settings)
    path = Path(running.runtime.output_dir, "classifier.npz")
    io.save(classifier, path)
    facts = ", ".join(f"{name} {float(values.mean()):.6g}" for name, values in classifier.facts.items())
    log.info("%s on %s, repetition %d: %s%s", method, dataset, config.seed, path, facts and f"; {facts}")


def settings_of(config: DictConfig, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the settings of the command line, such as ``method.learning_rate=1e-4``, by key.

    Raises InvalidInput for a key that training does not read.
    """
    settings = {}
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        key = str(override.key_or_group)
        group, _, rest = key.partition(".")
        if group not in READ:
            raise InvalidInput(f"Training does not read {key!r}. It reads {', '.join(READ)}", option=key)
        if rest:
            settings[key] = OmegaConf.select(config, key)
    return settings


def trained(dataset: str, method: str, scale: str, seed: int, settings: Mapping[str, Any]) -> Classifier:
    """Return the classifier of repetition ``seed``.

    Raises InvalidInput for a negative seed and for missing raw data.
    """
    if seed < 0:
        raise InvalidInput(f"seed is the number of a repetition: expected at least 0, found {seed}", option="seed")
    grids, point = Grids(Conf(), scale), Point("", "", dataset, method, "", tuple(settings.items()))
    section = grids.resolve(STAGES["prepare"].shared(point))["dataset"]
    manifest = ROOT / "data" / "raw" / section["kind"] / "manifest.json"
    if not manifest.is_file():
        name = manifest.relative_to(ROOT)
        problem = f"The raw data of {dataset!r} have not been fetched"
        raise InvalidInput(problem, option="dataset", remedy=f"Run `snakemake --cores 1 {name}`")
    every = prepared(section, seed + 1, load_json(manifest))
    if isinstance(every, MissingData):
        raise InvalidInput(f"The data of {dataset!r} are missing: {every.reason}", option="dataset")
    own = grids.resolve(point)["method"]
    module = plugins.load("method", own["kind"])
    stream = generators("train", every.name, own["name"], repetitions=1, first=every.first_repetition + seed)
    return replace(module.fit(_one(every, seed), plugins.configure(module, own), stream), method=own["name"])


def _one(dataset: Dataset | ImageDataset, repetition: int) -> Dataset | ImageDataset:
    """Return the data set with one split. Image data sets have only one."""
    chosen = slice(repetition, repetition + 1) if dataset.repetitions > 1 else slice(None)
    return replace(dataset, train=dataset.train[chosen], test=dataset.test[chosen])


if __name__ == "__main__":
    main()
