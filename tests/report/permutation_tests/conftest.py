"""Rows such as the study of permutation tests collects, drawn from plausible distributions."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from pipeline.io import load_published
from pipeline.report.described import described
from pipeline.report.inputs import Inputs
from pipeline.types import Classifier, Dataset
from pipeline.workflow.config import Workflow

STUDY = "permutation_tests"
PUBLISHED_SIMULATIONS = 10_000
NULL_RATES = {
    ("uncorrelated", "studentized"): 0.0428, ("uncorrelated", "unstudentized"): 0.3,
    ("uncorrelated", "fairtest"): 0.7495, ("independent", "studentized"): 0.0472,
    ("independent", "unstudentized"): 0.009, ("independent", "fairtest"): 0.0095,
}  # fmt: skip
TESTS = ("unstudentized", "studentized", "studentized_smoothed", "exact", "lift", "bootstrap")
SETTINGS = ((1000, 1000, 0.75), (10000, 1000, 0.8), (1000, 200, 0.8), (1000, 100, 0.8))
FEW = tuple((1000, n, 0.8) for n in (25, 50, 100, 200, 400, 800))
AUC_SIZES = {
    "auc_levels": (0.2, ((1000, 1000), (10000, 1000), *((1000, n) for n in (25, 50, 100, 200, 400, 800)))),
    "auc_few_positives": (0.05, tuple((1000, n) for n in (100, 200, 400, 800, 1600))),
}
"""Share of positives of B, and the sizes of the groups."""
METRICS = (
    "tpr", "fpr", "fnr", "tnr", "precision", "npv", "accuracy", "selection_rate", "auc", "mean_score", "mean_error",
    "log_loss",
)  # fmt: skip
EXACT = METRICS[:8]
REAL = {"adult_all": (48842, 0.24), "compas_all": (7214, 0.45)}
LEVELS = {
    "adult": {"sex": ("Female", "Male"), "race": ("non-White", "White")},
    "compas": {"sex": ("Male", "Female"), "race": ("African-American", "not African-American")},
}


def level(test: str, positives: float) -> float:
    """A level that departs from .05 as in a trial run."""
    few = np.exp(-positives / 60)
    return {
        "unstudentized": 0.13 + 0.2 * few, "studentized": 0.05 + 0.06 * few, "studentized_smoothed": 0.05 + 0.01 * few,
        "exact": 0.045 - 0.02 * few, "lift": 0.05 + 0.05 * few, "bootstrap": 0.05 + 0.075 * few,
    }[test]  # fmt: skip


def simulated_rows(rng: np.random.Generator, simulations: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    once = {"draws": 1000, "simulations": simulations, "alpha": 0.05, "repetition": 0}
    for (case, test), share in NULL_RATES.items():
        value = round(share * simulations) / simulations
        place = {"block": "null_rejection", "case": case, "test": test, "n": 2000}
        rows.append({**place, **once, "statistic": "rejection_rate", "value": value})
    groups = {"metric": "fnr", "positives_a": 0.8, "positives_b": 0.2}
    for block, settings in (("fnr_levels", SETTINGS), ("few_positives", FEW), ("p_values", SETTINGS[:1])):
        for (n_a, n_b, tpr), test in itertools.product(settings, TESTS):
            place = {"block": block, "test": test, "n_a": n_a, "n_b": n_b, "rate": tpr, **groups, **once}
            share = rng.binomial(simulations, level(test, 0.2 * n_b)) / simulations
            rows.append({**place, "statistic": "rejection_rate", "value": share})
            rows.append({**place, "statistic": "undefined", "value": 0.8**n_b})
            if block == "p_values":
                spread = {"unstudentized": 1.3, "bootstrap": 1.02}.get(test, 1.0)
                p = 2 * norm.sf(np.abs(spread * rng.normal(size=simulations)))
                shares = np.histogram(p, bins=20, range=(0, 1))[0] / simulations
                edges = {"bin_low": np.arange(20) / 20, "bin_high": np.arange(1, 21) / 20}
                rows += [
                    {**place, "statistic": "p_share", "value": v, **{k: e[i] for k, e in edges.items()}}
                    for i, v in enumerate(shares)
                ]
    for block, (positives, sizes) in AUC_SIZES.items():
        for (n_a, n_b), test in itertools.product(sizes, ("unstudentized", "studentized")):
            place = {"block": block, "test": test, "n_a": n_a, "n_b": n_b, "auc": 0.8, "positives_a": 0.8, **once}
            place["positives_b"] = positives
            share = rng.binomial(simulations, level(test, positives * n_b)) / simulations
            rows.append({**place, "statistic": "rejection_rate", "value": share})
            rows.append({**place, "statistic": "undefined", "value": 0.01 * (test == "studentized" and n_b < 50)})
    for n, difference in itertools.product((250, 500, 1000, 2000, 4000, 8000), (0.0, 0.025, 0.05, 0.1, 0.2)):
        place = {"block": "power", "n": n, "n_a": n / 2, "n_b": n / 2, "difference": difference, "rate": 0.6}
        place |= {"metric": "tpr", "positives_a": 0.5, "positives_b": 0.5, **once}
        power = norm.cdf(difference / np.sqrt(2 * 0.24 / (n / 4)) - 1.96)
        rows.append({**place, "statistic": "predicted_power", "value": power})
        for test in ("exact", "studentized_smoothed", "unstudentized"):
            share = rng.binomial(simulations, max(power, 0.045)) / simulations
            rows.append({**place, "statistic": "power", "test": test, "value": share})
    return [{"dataset": "none", "method": "none", "origin": "simulated", **row} for row in rows]


def threshold_rows(rng: np.random.Generator, dataset: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    n, positive = REAL[dataset]
    for attribute, metric, r in itertools.product(("sex", "race"), ("tpr", "fpr"), range(5)):
        size = (0.1 if metric == "tpr" else 0.06) * (0.6 if attribute == "race" else 1) * (2 if n < 9999 else 1)
        for t in np.round(np.linspace(0, 1, 41), 3):
            place = {
                "repetition": r,
                "attribute": attribute,
                "metric": metric,
                "threshold": t,
                "alpha": 0.05,
                "draws": 1000,
            }
            f = norm.cdf(2.2 * (0.5 - t) / 0.3)
            n_g = n * 0.2 * (positive if metric == "tpr" else 1 - positive) / 2
            sd = np.sqrt(2 * f * (1 - f) / n_g)
            difference = size * 4 * f * (1 - f) + 0.4 * sd * rng.normal() * (0 < t < 1)
            once = {
                "difference": difference, "equalized_odds": abs(difference), "percentile_95": 2.1 * sd,
                "estimate_a": f + difference / 2, "estimate_b": f - difference / 2, "n_a": n_g, "n_b": n_g,
            }  # fmt: skip
            rows += [{**place, "statistic": s, "value": v} for s, v in once.items()]
            for test in ("exact", "studentized", "studentized_smoothed", "unstudentized"):
                rejected = (
                    float(abs(difference) > 1.96 * sd) if 0.02 < f < 0.98 else float(test == "studentized" and f > 0)
                )
                rows.append(
                    {**place, "test": test, "statistic": "rejected", "value": np.nan if t in (0, 1) else rejected}
                )
    return rows


def sample_rows(rng: np.random.Generator, dataset: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    sizes = (1000, 2000, 4000, 8000) if dataset == "adult_all" else (500, 1000, 2000, 4000)
    axes = itertools.product(("sex", "race"), ("tpr", "fpr"), sizes, range(2), range(10))
    for attribute, metric, n, r, sample in axes:
        place = {"repetition": r, "sample": sample, "attribute": attribute, "metric": metric, "n": n}
        place |= {"smallest_cell": 5, "draws": 1000, "alpha": 0.05}
        base = 3.2 / np.sqrt(n) * (1 if metric == "tpr" else 0.6)
        rows.append({**place, "statistic": "detectable", "value": base * rng.lognormal(0, 0.05)})
        for test in ("exact", "studentized", "studentized_smoothed"):
            least = base * rng.lognormal(-0.1, 0.3) if rng.random() > 300 / n / 4 else np.nan
            rows.append({**place, "test": test, "statistic": "minimum_difference", "value": least})
            rows.append({**place, "test": test, "statistic": "minimum_difference_corrected", "value": 1.5 * least})
    return rows


def auc_rows(rng: np.random.Generator, dataset: str) -> list[dict[str, Any]]:
    rows = []
    center = 0.905 if dataset == "adult_all" else 0.734
    groups = [(None, None, 1.0)] + [
        (a, g, 0.5) for a, names in LEVELS[dataset.removesuffix("_all")].items() for g in names
    ]
    for r, (attribute, group, share) in itertools.product(range(5), groups):
        place = {"repetition": r, "attribute": attribute, "group": group}
        n = 0.2 * share * REAL[dataset][0]
        values = {"auc": rng.normal(center, 0.004), "auc_std_error": 0.3 / np.sqrt(n), "n": n, "positives": n / 3}
        rows += [{**place, "statistic": s, "value": v} for s, v in values.items()]
    return rows


def method_rows(rng: np.random.Generator, dataset: str, method: str, repetitions: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    size = {"baseline": 0.1, "project": 0.06, "reductions": 0.01, "sensr": 0.05, "logistic": 0.09}[method]
    for r, attribute, metric in itertools.product(range(repetitions), ("sex", "race"), METRICS):
        place = {
            "repetition": r,
            "attribute": attribute,
            "metric": metric,
            "test": "auto",
            "threshold": 0.5,
            "alpha": 0.05,
        }
        undefined = method == "sensr" and metric == "precision" and attribute == "race"
        difference = rng.normal(size, 0.02)
        p = 2 * norm.sf(abs(difference) / 0.02)
        values = {
            "p_value": p, "p_adjusted": min(1.0, 12 * p), "difference": difference, "ci_low": difference - 0.04,
            "ci_high": difference + 0.04, "rejected": float(12 * p < 0.05),
        }  # fmt: skip
        values = {k: np.nan if undefined else v for k, v in values.items()}
        values |= {
            "exact": float(metric in EXACT),
            "undefined": float(undefined),
            "draws": 1000.0 * (metric not in EXACT),
        }
        rows += [{**place, "statistic": s, "value": float(v)} for s, v in values.items()]
    return rows


def prepared(name: str, origin: Any) -> Dataset:
    rows = {"adult": 45222, "compas": 5278, "adult_all": 48842, "compas_all": 7214}[name]
    order = np.tile(np.arange(rows), (5, 1))
    test = rows // 5
    return Dataset(
        name, origin, np.zeros((rows, 3)), ("a", "b", "c"), (), np.zeros(rows, int), "y",
        {"sex": np.zeros(rows, int), "race": np.zeros(rows, int)}, LEVELS[name.removesuffix("_all")],
        order[:, test:], order[:, :test],
    )  # fmt: skip


def configuration(simulations: int) -> dict[str, Any]:
    """What the workflow hands to the artefacts stage, with so many simulations of each setting."""
    config = Workflow(scale="paper", studies=[STUDY]).artefacts(STUDY)
    sections = copy.deepcopy(config["sections"])
    for section in sections.values():
        if "simulations" in section["audit"]:
            section["audit"]["simulations"] = simulations
    published = copy.deepcopy(config["published"])
    for section in published.values():
        if "simulations" in section["audit"]:
            section["audit"]["simulations"] = PUBLISHED_SIMULATIONS
    return {**config, "sections": sections, "published": published}


def make_inputs(scale: str = "paper", simulations: int = PUBLISHED_SIMULATIONS, origin: Any = "official") -> Inputs:
    """A study's inputs at ``scale``."""
    rng = np.random.default_rng(7)
    frames = [pd.DataFrame(simulated_rows(rng, simulations))]
    for dataset in REAL:
        place = {"dataset": dataset, "method": "logistic", "origin": origin}
        for block, rows in (("thresholds", threshold_rows), ("sample_size", sample_rows), ("auc", auc_rows)):
            frames.append(pd.DataFrame(rows(rng, dataset)).assign(**place, block=block))
        frames.append(pd.DataFrame(method_rows(rng, dataset, "logistic", 5)).assign(**place, block="methods_all"))
    for dataset, method in itertools.product(("adult", "compas"), ("baseline", "project", "reductions", "sensr")):
        place = {"dataset": dataset, "method": method, "origin": origin, "block": "methods"}
        frames.append(pd.DataFrame(method_rows(rng, dataset, method, 10)).assign(**place))
    rows = pd.concat(frames, ignore_index=True).assign(study=STUDY, scale=scale, audit="permutation")
    datasets = {name: prepared(name, origin) for name in ("adult", "compas", *REAL)}
    facts = {"inverse_penalty": np.array([0.1, 1, 1, 10, 0.1]), "at_edge": np.array([0, 0, 0, 1, 0])}
    classifiers = {
        f"{d}/logistic": Classifier("logistic", d, origin, "logistic_mixture", {"coef": np.zeros(5)}, facts=facts)
        for d in REAL
    }
    held = {name: described(dataset) for name, dataset in datasets.items()}
    return Inputs(STUDY, scale, rows, configuration(simulations), held, {}, classifiers)


@pytest.fixture(scope="session")
def inputs() -> Inputs:
    """The study at paper scale, official data."""
    return make_inputs()


@pytest.fixture(scope="session")
def inputs_of() -> Callable[..., Inputs]:
    """The study at a scale, a number of simulations and an origin of one's choice."""
    return make_inputs


@pytest.fixture(scope="session")
def published() -> pd.DataFrame:
    """The study's list of published numbers."""
    return load_published("data/published/permutation_tests.csv")
