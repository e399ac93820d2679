"""Inputs such as the study of FlipTest collects: the real audits, of small data under maps that only match moments."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.audits.fliptest import fliptest, map_quality, map_stability, subgroups
from pipeline.datasets import arrests, gaussian, hiring, identical, law, ssl
from pipeline.io import load_published
from pipeline.methods import linear_regression
from pipeline.report.artefacts import Artefact
from pipeline.report.described import described
from pipeline.report.inputs import Inputs
from pipeline.seeds import generators
from pipeline.stages.collect import collect
from pipeline.transport.between import Between, fitted, levels, transported_columns
from pipeline.types import Array, AuditResult, Classifier, Dataset, TransportMap
from pipeline.workflow.composition import Point
from pipeline.workflow.config import Workflow

STUDY = "fliptest"
TRIALS = 3
PEOPLE = 200
MOMENTS = "matched_moments"
"""The kind of the stand-in maps: each feature is scaled and moved to the mean and spread of the target group."""
ERRORS = {"exact": 0.0, "counterfactual": 0.02, "wgan": 0.05}
"""How far a stand-in map misses the moments, relative to the spread; others miss by more."""
GIVEN = {
    "hiring": {"work_experience": 1.4028, "hair_length": 1.1688},
    "ssl": {"age": -53.0, "narcotic_arrests": 25.0},
    "arrests": {"arrests": 1.0},
}
THRESHOLDS = {"hiring": 0.8684, "ssl": 65.0, "arrests": 1.0}
PRECISION: dict[str, Any] = {"threshold": None, "alpha": 0.05, "bootstraps": 30, "permutations": 399}
PRECISION |= {"noise_deals": 19, "noise_people": 20}


def matched_moments() -> ModuleType:
    """The stand-in map as a module of ``pipeline.transport``: z = m' + (x - m) s' / s, feature by feature."""
    module: Any = ModuleType(f"pipeline.transport.{MOMENTS}")

    def fit(source: Sequence[Array], target: Sequence[Array], error: float, rngs: Sequence[Any]) -> TransportMap:
        shifts, scales = [], []
        for x, y, rng in zip(source, target, rngs, strict=True):
            spread = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
            scale = spread / np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
            mean = y.mean(axis=0) + error * spread * rng.standard_normal(y.shape[1])
            scales.append(scale)
            shifts.append(mean - x.mean(axis=0) * scale)
        return TransportMap(MOMENTS, {"shift": np.array(shifts), "scale": np.array(scales)})

    def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
        parts = zip(rows, parameters["scale"], parameters["shift"], strict=True)
        return [x * scale + shift for x, scale, shift in parts]

    module.fit, module.images = fit, images
    return module


def list_of_subjects(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """People as the parsed list has them, with the columns of ``pipeline.datasets.ssl``."""
    race = rng.choice(["BLK", "WHI", "WWH"], rows, p=[0.55, 0.25, 0.2])
    black = race == "BLK"
    counts = {name: rng.poisson(0.2 + 0.1 * black, rows) for name in ("shooting_victim", "battery_victim")}
    counts |= {"violent_arrests": rng.poisson(0.4, rows), "gang_affiliation": rng.integers(0, 2, rows)}
    counts |= {"narcotic_arrests": rng.poisson(0.5 + 1.5 * black, rows)}
    age = rng.choice(list(ssl.AGES), rows, p=[0.15, 0.3, 0.2, 0.15, 0.1, 0.05, 0.05])
    years = np.array([ssl.AGES[band] for band in age])
    score = np.clip(380 - 3 * years + 20 * counts["narcotic_arrests"] + rng.normal(0, 15, rows), 0, 500).round()
    others = {"trend": rng.normal(0, 1, rows).round(2), "weapon_arrests": rng.poisson(0.2, rows)}
    frame = pd.DataFrame({"score": score.astype(int), "age": age, **counts, **others})
    return frame.assign(sex=rng.choice(["M", "F"], rows), race=race)


def students(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Students as the parsed file of the law schools has them."""
    race = rng.choice(law.RACES, rows, p=[0.02, 0.04, 0.25, 0.02, 0.02, 0.02, 0.01, 0.62])
    black = race == "Black"
    lsat = np.clip(rng.normal(37 - 7 * black, 5), 10, 48).round()
    grade = np.clip(rng.normal(3.2 - 0.3 * black, 0.4), 0, 4).round(1)
    outcome = 0.05 * (lsat - 36) + 0.3 * (grade - 3.2) - 0.4 * black + rng.normal(0, 0.8, rows)
    sex = rng.choice(law.SEXES, rows)
    return pd.DataFrame({"race": race, "sex": sex, "LSAT": lsat, "UGPA": grade, "ZFYA": outcome})


def tabular(name: str, names: tuple[str, ...], attributes: Mapping[str, tuple[str, str]], origin: Any) -> Dataset:
    """Data of the first study, with as many people in each of two groups, told apart by every feature."""
    (rng,) = generators("fake", name, repetitions=1)
    groups = {attribute: rng.integers(0, 2, 2 * PEOPLE) for attribute in attributes}
    features = rng.normal(size=(2 * PEOPLE, len(names))) + 0.4 * np.sum(list(groups.values()), axis=0)[:, None]
    orders = np.stack([rng.permutation(2 * PEOPLE) for _ in range(TRIALS)])
    label = (features.sum(axis=1) > 0).astype(np.int64)
    return Dataset(
        name, origin, features, names, (), label, "y", groups, dict(attributes), orders[:, PEOPLE:], orders[:, :PEOPLE]
    )  # fmt: skip


def dataset_of(name: str, settings: Mapping[str, Any], origin: Any, trials: int) -> Dataset:
    """One of the study's data sets, small."""
    rngs = generators("prepare", name, repetitions=trials)
    (own,) = generators("fake", name, repetitions=1)
    if name == "hiring":
        return hiring.prepare(None, hiring.Config(PEOPLE, PEOPLE), rngs, "simulated")
    if name == "arrests":
        return arrests.prepare(None, arrests.Config(PEOPLE), rngs, "simulated")
    if name == "identical":
        return identical.prepare(None, identical.Config(PEOPLE, 2, 2, 1.0), rngs, "simulated")
    if name == "gaussian":
        config = gaussian.Config(20, settings["dimension"], settings["correlation"])
        return gaussian.prepare(None, config, rngs, "simulated")
    if name == "ssl":
        return ssl.prepare(list_of_subjects(own, 8 * PEOPLE), ssl.Config(0.5, 345), rngs, origin)
    if name == "law":
        return law.prepare(students(own, 6 * PEOPLE), law.Config(0.5), rngs, "official")
    if name == "adult":
        levels_of_adult = {"sex": ("Female", "Male"), "race": ("non-White", "White")}
        return tabular(name, ("age", "education-num", "hours-per-week", "capital-gain"), levels_of_adult, "official")
    levels_of_compas = {"sex": ("Male", "Female"), "race": ("African-American", "Caucasian")}
    return tabular(name, ("age", "priors_count", "juv_fel_count"), levels_of_compas, "official")


def classifier_of(dataset: Dataset, method: str) -> Classifier:
    """Classifiers of the right architecture: given rules and regressions as they are, the others with weights drawn."""
    trials, d = dataset.repetitions, len(dataset.feature_names)
    rngs = generators("train", dataset.name, method, repetitions=trials)
    place = (method, dataset.name, dataset.origin)
    if method == "none":
        return Classifier(*place, "none", {"none": np.zeros(trials)})
    if method == "linear_regression":
        return linear_regression.fit(dataset, linear_regression.Config(None, None), rngs)
    if method in ("given", "given_proxy"):
        weights = GIVEN[dataset.name] if method == "given" else {"violent_arrests": 20.0, "narcotic_arrests": 20.0}
        coef = np.tile([weights.get(name, 0.0) for name in dataset.feature_names], (trials, 1))
        threshold = np.full(trials, THRESHOLDS[dataset.name] if method == "given" else 30.0)
        if dataset.name == "arrests":
            steep = {"weight": np.ones((trials, 1)), "coef": 50 * coef[:, None], "intercept": -50 * threshold[:, None]}
            return Classifier(*place, "logistic_mixture", steep)
        rule = {"coef": coef, "intercept": np.zeros(trials), "threshold": threshold}
        return Classifier(*place, "linear", rule)
    if method == "svm":
        support = np.stack([rng.normal(size=(30, 2)) for rng in rngs])
        parts = {"support": support, "dual": np.sign(support[..., 0]), "gamma": np.full(trials, 0.5)}
        parts |= {"intercept": np.zeros(trials), "columns": np.tile([0, 1], (trials, 1))}
        return Classifier(*place, "kernel", parts)
    coef = np.stack([rng.normal(1, 0.2, (1, d)) for rng in rngs])
    centre = np.zeros(d) if dataset.continuous else dataset.features.mean(axis=0)
    # Few black applicants, and none of the weaker ones, are predicted above the median.
    intercept = -(coef @ centre) - 3.0 * (dataset.name == "law")
    rule = {"weight": np.ones((trials, 1)), "coef": coef, "intercept": intercept}
    return Classifier(*place, "logistic_mixture", rule)


def with_training(maps: TransportMap) -> TransportMap:
    """The same with curves and facts such as a WGAN's: KS falls from 1 to a tenth, but not in the last trial."""
    step = np.array([0, 500, 1000])
    ks = np.tile([1.0, 0.5, 0.1], (maps.trials, 1))
    ks[-1] = 1.0
    curves = {"max_ks": ks, "critic_gap": ks / 10, "mean_cost": 2 - ks, "mean_l1": 2 - ks}
    facts = {**{name: curve[:, -1] for name, curve in curves.items()}, "diverged": (ks[:, -1] > 0.12).astype(np.int64)}
    facts["selected_step"] = np.full(maps.trials, step[-1])
    if maps.reverse:
        curves |= {f"reverse_{name}": curve for name, curve in curves.items()}
        facts |= {f"reverse_{name}": fact for name, fact in facts.items()}
    return replace(maps, history={"step": step, **curves}, facts=facts)


def maps_of(dataset: Dataset, transport: str, settings: Mapping[str, Any]) -> TransportMap:
    """Stand-in maps, as the stage would make them."""
    attribute = settings["attribute"]
    source = settings.get("source") or dataset.levels[attribute][0]
    between = Between(attribute, source, settings.get("given_label"), "train", None, settings.get("both", True))
    rngs = generators("transport", dataset.name, transport, repetitions=dataset.repetitions)
    maps = fitted(dataset, between, sys.modules[f"pipeline.transport.{MOMENTS}"], ERRORS.get(transport, 0.1), rngs)
    if transport == "wgan":
        maps = with_training(maps)
    code, other = levels(dataset, attribute, source)
    return replace(
        maps,
        transport=transport,
        dataset=dataset.name,
        origin=dataset.origin,
        attribute=attribute,
        source=dataset.levels[attribute][code],
        target=dataset.levels[attribute][other],
        given_label=between.given_label,
        features=tuple(dataset.feature_names[c] for c in transported_columns(dataset, attribute)),
    )


def audited(point: Point, dataset: Dataset, classifier: Classifier, maps: TransportMap | None) -> AuditResult:
    """The real audit, at a precision that is quick."""
    rngs = generators("audit", point.dataset, point.method, point.audit, repetitions=dataset.repetitions)
    if maps is None:
        attribute, output = ("group", "randomised") if point.dataset == "arrests" else ("race", "decision")
        search = subgroups.Config(attribute, "test", output, 0.5, 0.95, depth=2, minimum_leaf=40, bins=4)
        return subgroups.run(dataset, classifier, search, rngs)
    split = part_settings(point, "audit").get("split", "test")
    if point.audit == "fliptest":
        decision = "randomised" if point.dataset == "arrests" else "threshold"
        units = "deviations" if point.dataset == "law" else "model"
        return fliptest.run(dataset, classifier, fliptest.Config(split, decision, units=units, **PRECISION), rngs, maps)
    if point.audit == "map_quality":
        return map_quality.run(dataset, classifier, map_quality.Config(split, 40), rngs, maps)
    return map_stability.run(dataset, classifier, map_stability.Config(), rngs, maps)


def part_settings(point: Point, group: str) -> dict[str, Any]:
    """What the grid sets for one part of a point."""
    return {key.split(".", 1)[1]: value for key, value in point.settings if key.startswith(f"{group}.")}


def values(
    workflow: Workflow, origin: Any, trials: int
) -> Iterator[tuple[Point, Dataset, Classifier, AuditResult, TransportMap | None]]:
    """Every point of the study's grid with its data, its classifiers, its audit and its maps, if it has any."""
    datasets: dict[str, Dataset] = {}
    classifiers: dict[tuple[str, str], Classifier] = {}
    maps: dict[tuple[str, str], TransportMap] = {}
    for point in workflow.points(STUDY):
        data, method, transport = (point.name(group) for group in ("dataset", "method", "transport"))
        if data not in datasets:
            datasets[data] = dataset_of(point.dataset, part_settings(point, "dataset"), origin, trials)
        dataset = datasets[data]
        if (data, method) not in classifiers:
            classifiers[data, method] = classifier_of(dataset, point.method)
        if point.transport and (data, transport) not in maps:
            maps[data, transport] = maps_of(dataset, point.transport, part_settings(point, "transport"))
        classifier, mapped = classifiers[data, method], maps.get((data, transport)) if point.transport else None
        yield point, dataset, classifier, audited(point, dataset, classifier, mapped), mapped


def make_inputs(scale: str = "paper", origin: Any = "official", trials: int = TRIALS) -> Inputs:
    """The study's inputs at ``scale``, with the project's own grid and configuration."""
    workflow = Workflow(scale=scale, studies=[STUDY])
    sys.modules[f"pipeline.transport.{MOMENTS}"] = matched_moments()
    found: dict[str, dict[str, Any]] = {"datasets": {}, "classifiers": {}, "audits": {}, "transports": {}}
    collected = []
    for point, dataset, classifier, audit, maps in values(workflow, origin, trials):
        data, method, transport = (point.name(group) for group in ("dataset", "method", "transport"))
        found["datasets"][data] = described(dataset)
        found["classifiers"][f"{data}/{method}"] = classifier
        found["audits"]["/".join(workflow.audit_file(point).removesuffix(".npz").split("/")[-4:])] = audit
        if maps is not None:
            found["transports"][f"{data}/{transport}"] = maps
        collected.append((audit, point.block, point.columns()))
    rows = collect(collected, STUDY, scale)
    return Inputs(STUDY, scale, rows, workflow.artefacts(STUDY), **found)


def fewer_steps(inputs: Inputs, steps: int) -> Inputs:
    """The same, its WGAN trained for fewer steps than published."""
    sections = copy.deepcopy(inputs.config["sections"])
    for section in sections.values():
        if section.get("transport", {}).get("name") == "wgan":
            section["transport"]["steps"] = steps
    return replace(inputs, config={**inputs.config, "sections": sections})


Lazily = Callable[[Callable[[str], Artefact]], Mapping[str, Artefact]]


@pytest.fixture(scope="session")
def inputs() -> Inputs:
    """The study at paper scale, official data."""
    return make_inputs()


@pytest.fixture(scope="session")
def of_a_twin(inputs: Inputs) -> Inputs:
    """The same, the Strategic Subject List being a twin."""
    rows = inputs.rows.assign(origin=inputs.rows["origin"].mask(inputs.rows["dataset"] == "ssl", "twin"))
    datasets = {**inputs.datasets, "ssl": replace(inputs.datasets["ssl"], origin="twin")}
    return replace(inputs, rows=rows, datasets=datasets)


@pytest.fixture(scope="session")
def published() -> pd.DataFrame:
    """The study's list of published numbers."""
    return load_published("data/published/fliptest.csv")


@pytest.fixture(scope="session")
def made(inputs: Inputs, build: Callable[[str, Inputs], Artefact], lazily: Lazily) -> Mapping[str, Artefact]:
    """The study's artefacts, each made once."""
    return lazily(lambda name: build(name, inputs))


@pytest.fixture(scope="session")
def shorter() -> Callable[[Inputs, int], Inputs]:
    """The same run with fewer steps of the WGAN."""
    return fewer_steps
