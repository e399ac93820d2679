"""The inputs of a study for its tests: its reference in the repository, or what another run would have made of it."""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.results import typeset
from fairness_audits.results.style import PAGE_WIDTH
from pipeline.io import load_published
from pipeline.jobs import Run
from pipeline.report import artefacts, registry
from pipeline.report.artefacts import Artefact
from pipeline.report.inputs import Inputs
from pipeline.report.table import StampedTable
from pipeline.workflow import reference_store

ROOT = Path(__file__).resolve().parents[2]
REAL = ("official", "twin")
PUBLISHED_SIZE = ("individual_fairness", "permutation_tests", "fliptest", "agreement")
REFERENCES = (*PUBLISHED_SIZE, "robustness_bias")
STEPS = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Recorded steps of the attack that the tests of individual fairness keep."""
TRIALS = {"fliptest": 3}
"""Repetitions that the tests keep, where not all."""


@functools.cache
def reference(study: str) -> Inputs:
    """The study's reference; nobody changes it."""
    return reference_store.load_reference(ROOT / "data" / "reference" / study)[0]


@functools.cache
def inputs_of(
    study: str, scale: str = "paper", origin: str = "official", repetitions: int | None = None,
    steps: Sequence[int] = STEPS, simulations: int | None = None,
) -> Inputs:  # fmt: skip
    """The reference as if all real data were of this ``origin``, at a ``scale``, with the first ``repetitions`` alone,
    these recorded ``steps`` of the attack, and so many ``simulations`` of each setting where that is said.

    A grid of classifiers has its classifiers, not repetitions, in that column: it stays whole.
    """
    whole = reference(study)
    rows = whole.rows
    repetitions = TRIALS.get(study) if repetitions is None else repetitions
    if repetitions is not None:
        grid = rows["theta_1"].notna() if "theta_1" in rows else False
        rows = rows[(rows["repetition"] < repetitions) | grid]
    attacked = rows["block"].isin(["audit", "as_coded"]) & (rows["steps"].notna() if "steps" in rows else False)
    rows = rows[~attacked | rows.get("steps", rows["value"]).isin(steps)]
    real = rows["origin"].isin(REAL)
    rows = rows.assign(scale=scale, origin=np.where(real, origin, rows["origin"].astype(object)))

    def of(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: replace(one, origin=origin) if one.origin in REAL else one for key, one in values.items()}

    found = replace(
        whole,
        scale=scale,
        rows=rows.reset_index(drop=True),
        config=whole.config if scale == whole.scale else Run(scale=scale, studies=[study]).artefacts(study),
        datasets=of(whole.datasets),
        audits=of(whole.audits),
        classifiers=of(whole.classifiers),
    )
    if simulations is None:
        return found
    asked = found.rows["simulations"]
    simulated = replace(found, rows=found.rows.assign(simulations=asked.where(asked.isna(), simulations)))
    return configured(simulated, "audit", "simulations", simulations)


def configured(inputs: Inputs, group: str, key: str, value: Any, block: str = "", **where: str) -> Inputs:
    """The same with another configured value, of the sections that have it and agree with ``where`` in their group."""
    sections = copy.deepcopy(dict(inputs.config["sections"]))
    for section in sections.values():
        own = section.get(group, {})
        if key in own and block in ("", section["id"][0]) and all(own[k] == v for k, v in where.items()):
            own[key] = value
    return replace(inputs, config={**inputs.config, "sections": sections})


def only(inputs: Inputs, dataset: str = "", block: str = "") -> Inputs:
    """A run at the laptop scale of one data set, of one block, or of one block of one data set.

    It was to run this data set alone, and left out its other blocks. Columns that its audits do not write are missing.
    Raises LookupError if there is no such part.
    """

    def asked(section: Mapping[str, Any]) -> bool:
        own_block, own_dataset, *_ = section["id"]
        return dataset in ("", own_dataset.split("@")[0]) and block in ("", own_block)

    sections = {path: one for path, one in inputs.config["sections"].items() if asked(one)}
    published = {path: one for path, one in inputs.config["published"].items() if asked(one)}
    omitted: dict[str, list[dict[str, str]]] = {"left_out": [], "not_chosen": []}
    for one in inputs.config["sections"].values():
        if not asked(one):
            own_block, own_dataset, *_ = one["id"]
            own_dataset = own_dataset.split("@")[0]
            key = "left_out" if dataset in ("", own_dataset) else "not_chosen"
            place = {"part": one["part"], "block": own_block, "dataset": own_dataset, "method": one["method"]["name"]}
            place |= {"method.model": one["method"]["model"]} if "model" in one["method"] else {}
            omitted[key] += [] if place in omitted[key] else [place]
    rows = inputs.rows[(inputs.rows["dataset"] == dataset) | (dataset == "")]
    rows = rows[(rows["block"].isin([one["id"][0] for one in sections.values()]))]
    run = replace(
        inputs, scale="laptop", rows=rows.assign(scale="laptop").dropna(axis=1, how="all"),
        config={**inputs.config, **omitted, "sections": sections, "published": published},
    )  # fmt: skip
    keys = [point["keys"] for point in run.points]
    if not keys:
        raise LookupError(f"{inputs.study} has no {block} {dataset}")
    assert len(keys) < len(inputs.points)

    def of(values: Mapping[str, Any], kind: str) -> dict[str, Any]:
        return {key: one for key, one in values.items() if key in {getattr(k, kind) for k in keys}}

    return replace(
        run, datasets=of(inputs.datasets, "dataset"), audits=of(inputs.audits, "audit"),
        classifiers=of(inputs.classifiers, "classifier"),
    )  # fmt: skip


@functools.cache
def usual(study: str) -> Inputs:
    """The study at the scale of its reference, as if of official data alone; nobody changes it."""
    return inputs_of(study, reference(study).scale)


@functools.cache
def published(study: str) -> pd.DataFrame:
    """The study's list of published numbers."""
    return load_published(ROOT / "data" / "published" / f"{study}.csv")


def compared(inputs: Inputs) -> pd.DataFrame:
    """Compare the published numbers with the numbers of the inputs, once for all tests."""
    return inputs.once("compared", lambda: artefacts.compared(inputs, published(inputs.study)))


def build(name: str, inputs: Inputs) -> Any:
    """Make one artefact of any study by its name, once of the same inputs."""
    compares = "found" in inspect.signature(registry.find(inputs.study, name).make).parameters
    found = compared(inputs) if compares else None
    return inputs.once(f"artefact {name}", lambda: artefacts.build(name, inputs, found))


def check(made: Artefact) -> None:
    """A table names no array, no NaN and no type; a figure fits a page, and has words for what can be seen."""
    if isinstance(made, StampedTable):
        text, latex = typeset.markdown(made.printed()), typeset.latex(made.printed())
        assert "nan" not in text.lower().replace("finance", "")
        assert "Estimate(" not in text
        assert latex.count(r"\begin{") == latex.count(r"\end{")
        written = typeset.csv(made.recorded())
        assert "np." not in written
        assert len(pd.read_csv(StringIO(written))) == len(made.rows)
    else:
        assert made.figure.get_size_inches()[0] <= PAGE_WIDTH
        assert made.alternative.endswith(".")
        assert not any("nan" in note for note in made.notes)


def chosen(inputs: Inputs, **setting: str | float) -> np.ndarray:
    """Which rows have these settings."""
    return np.logical_and.reduce([(inputs.rows[key] == value).to_numpy(bool) for key, value in setting.items()])


def with_values(inputs: Inputs, where: np.ndarray, values: Any) -> Inputs:
    """The same with other values in some rows."""
    rows = inputs.rows.copy()
    rows.loc[where, "value"] = values
    return replace(inputs, rows=rows)


class Made(dict[str, Artefact]):
    """Artefacts by name, each made when it is first asked for."""

    def __init__(self, make: Callable[[str], Artefact]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, name: str) -> Artefact:
        self[name] = self.make(name)
        return self[name]
