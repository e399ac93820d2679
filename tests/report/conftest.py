"""Rows such as the individual-fairness study collects, drawn from plausible distributions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from pipeline import io
from pipeline.io import load_published
from pipeline.report import artefacts, style
from pipeline.report.artefacts import Artefact
from pipeline.report.described import described
from pipeline.report.inputs import Inputs
from pipeline.report.table import Table
from pipeline.seeds import generators
from pipeline.types import AuditResult, Classifier, Dataset
from pipeline.workflow.config import Workflow

STUDY = "individual_fairness"
METHODS = ("baseline", "project", "reductions", "sensr")
STEPS = (5, 10, 20, 50, 100, 200, 500, 1000)
# Mean and spread of log(T_n - 1) at 500 steps, balanced accuracy, AOD of sex and race.
ADULT = {
    "baseline": (0.85, 0.5, 0.825, -0.151, -0.061),
    "project": (0.25, 0.7, 0.822, -0.147, -0.053),
    "reductions": (1.45, 0.4, 0.800, 0.001, -0.027),
    "sensr": (-3.3, 0.4, 0.765, -0.074, -0.048),
}
COMPAS = {
    "baseline": (0.33, 0.2, 0.675, 0.218, 0.260),
    "project": (-2.0, 0.6, 0.641, 0.039, 0.227),
    "reductions": (-0.27, 0.1, 0.652, -0.014, 0.037),
    "sensr": (-2.4, 0.5, 0.640, 0.046, 0.237),
}
LEVELS = {
    "adult": {"sex": ("Female", "Male"), "race": ("non-White", "White")},
    "compas": {"sex": ("Male", "Female"), "race": ("African-American", "Caucasian")},
}
POINTS = {"adult": 9045, "compas": 1056}
TRUTH = {"adult": ADULT, "compas": COMPAS}


def audit_rows(
    dataset: str, method: str, rng: np.random.Generator, repetitions: int, steps: Sequence[int]
) -> list[dict]:
    level, spread, accuracy, sex, race = TRUTH[dataset][method]
    rows: list[dict] = []
    for r in range(repetitions):
        once = {"balanced_accuracy": (accuracy, 0.006), "accuracy": (accuracy, 0.005), "undefined_errors": (0, 0)}
        for name in ("aod", "parity", "equal_opportunity"):
            once |= {f"{name}_sex": (sex, 0.02), f"{name}_race": (race, 0.015)}
        rows += [{"repetition": r, "statistic": s, "value": rng.normal(m, d)} for s, (m, d) in once.items()]
        for i, angle in enumerate((29, 53) if dataset == "adult" else (0, 0, 11, 27)):
            shared = np.random.default_rng(1000 * r + i)
            rows.append(
                {"repetition": r, "statistic": f"principal_angle_{i + 1}", "value": shared.normal(angle, 0.05 * angle)}
            )
        for split in ("test", "train"):
            draw = rng.normal(level - 0.6 * (split == "train"), spread)
            for t in steps:
                rows += [
                    {"repetition": r, "steps": t, "metric_split": split, **s} for s in both_tests(dataset, draw, t)
                ]
    return rows


def both_tests(dataset: str, draw: float, t: int) -> Iterator[dict[str, Any]]:
    n = POINTS[dataset]
    for prefix, mean in (
        ("", 1 + np.exp(draw) * (t / 500) ** 0.9),
        ("error_", 1 + 0.5 * np.exp(draw) * (t / 500) ** 0.6),
    ):
        std = 2.0 * (mean - 1) + 0.02
        statistic = mean - 1.645 * std / np.sqrt(n)
        values = {
            "S_n": mean, "T_n": statistic, "p_value": float(statistic <= 1.25), "rejected": float(statistic > 1.25),
            "ci_low": mean - 1.96 * std / np.sqrt(n), "ci_high": mean + 1.96 * std / np.sqrt(n), "std": std,
        }  # fmt: skip
        for name, value in values.items():
            yield {"statistic": prefix + name, "value": value}
    for name, value in {"n": n, "clipped": 2.0, "non_finite": 0.0, "below_one": 17.0}.items():
        yield {"statistic": name, "value": value}


def sensitivity_rows(rng: np.random.Generator, repetitions: int, level: float) -> list[dict]:
    grid = itertools.product(range(repetitions), (5, 20, 50, 100, 200), (0.001, 0.0025, 0.005, 0.01, 0.02))
    place = {"statistic": "T_n", "steps": 500, "metric_split": "test"}
    rows = []
    for r, penalty, eta in grid:
        value = 1 + np.exp(rng.normal(level, 0.2)) * 100 * eta * (50 / penalty) ** 0.2
        settings = {"repetition": r, "regularization": penalty, "step_size": eta}
        rows.append({**place, **settings, "value": np.nan if penalty * eta > 1 else value})
    return rows


def heatmap_rows(size: float, **columns: str) -> list[dict]:
    grid = np.round(np.arange(-4, 4.01, 0.4), 1)
    rows = []
    for angle, (i, (a, b)) in itertools.product((0, 5, 10), enumerate(itertools.product(grid, grid))):
        beta = np.deg2rad(angle)
        moved = abs(a * np.cos(beta) + b * np.sin(beta))
        value = 1 + size * (moved / 4) ** 2 / (1 + 0.1 * abs(b))
        place = {"repetition": i, "theta_1": a, "theta_2": b, "angle": angle, "steps": 400, "metric_split": "test"}
        rows += [{**place, "statistic": s, "value": v, **columns} for s, v in (("T_n", value), ("n", 400))]
    return rows


def validity_rows(rng: np.random.Generator, draws: int = 5000) -> list[dict]:
    rows: list[dict] = []
    for test in ("loss", "error"):
        once = {"repetition": 0, "test": test, "draws": draws}
        rows.append({**once, "statistic": "population", "value": 100_000.0})
        rows.append({**once, "statistic": "truth", "value": 1.3 if test == "loss" else 1.4})
        for n in (50, 200, 800, 3200):
            place = {"repetition": 0, "test": test, "n_sample": n, "alpha": 0.05, "draws": draws}
            short = 0.5 / np.sqrt(n) * (2 if test == "error" else 1)
            for name, mean in (("coverage_two_sided", 0.95 - short), ("coverage_one_sided", 0.95 - short / 2)):
                rows.append({**place, "statistic": name, "value": rng.binomial(draws, mean) / draws})
            rows.append({**place, "statistic": "undefined", "value": 0.01 if test == "error" and n == 50 else 0.0})
            rows.append({**place, "statistic": "kolmogorov_distance", "value": 0.4 / np.sqrt(n)})
            for multiple in (0.9, 0.95, 1.0, 1.05, 1.1):
                rate = norm.cdf(norm.ppf(0.05 + short / 2) + (1 - multiple) * np.sqrt(n) / 2)
                row = {
                    "delta_over_truth": multiple,
                    "delta": 1.3 * multiple,
                    "value": rng.binomial(draws, rate) / draws,
                }
                rows.append({**place, "statistic": "rejection_rate", **row})
    return rows


def audits(rng: np.random.Generator, origin: Any) -> dict[str, AuditResult]:
    """The audits whose arrays the artefacts draw on; their rows are elsewhere."""
    levels = np.arange(1, 100) / 100
    skewed = np.stack([norm.ppf(levels) - 0.8 * norm.ppf(levels) ** 2 / np.sqrt(n) for n in (50, 200, 800, 3200)])[None]
    empty = pd.DataFrame({"repetition": [], "statistic": [], "value": []})
    quantiles = {"quantile_levels": levels, "quantiles_loss": skewed, "quantiles_error": 1.5 * skewed}
    place = "validity/simulated@labels=centred@n=100000/logistic_grid@high=1.2/loss_ratio_validity"
    made = {place: AuditResult("loss_ratio_validity", "simulated", "logistic_grid", "simulated", empty, quantiles)}
    for dataset, d in (("adult", 39), ("compas", 7)):
        original = rng.normal(size=(10, d)).round(1)
        arrays = {
            "example_row": np.arange(10), "example_label": np.tile([0, 1], 5),
            "example_ratio": np.arange(10, 0, -1) * 12.5,
            "example_original_loss": np.full(10, 0.01), "example_attacked_loss": np.full(10, 0.9),
            "example_original": original, "example_attacked": original + rng.normal(size=(10, d)),
        }  # fmt: skip
        made[f"audit/{dataset}/baseline/loss_ratio"] = AuditResult(
            "loss_ratio", dataset, "baseline", origin, empty, arrays
        )
    return made


def simulated(rng: np.random.Generator) -> Dataset:
    group = (rng.random(400) < 0.1).astype(int)
    center = np.where(group[:, None], (1.5, 0.0), (-1.5, 0.0))
    features = rng.normal(center, 0.25)
    weights = np.where(group[:, None], (0.2, -0.01), (-0.2, -0.01))
    label = (((features - center) * weights).sum(axis=1) + rng.normal(0, 0.01, 400) > 0).astype(int)
    everyone = np.arange(400)[None]
    return Dataset(
        "simulated", "simulated", features, ("x1", "x2"), (), label, "y", {"group": group},
        {"group": ("majority", "minority")}, everyone, everyone,
    )  # fmt: skip


def tabular(name: str, rows: int, features: int, dropped: dict[str, int], origin: Any, repetitions: int) -> Dataset:
    n_train = int(0.8 * rows)
    order = np.tile(np.arange(rows), (repetitions, 1))
    return Dataset(
        name, origin, np.zeros((rows, features)), tuple(map(str, range(features))), (), np.zeros(rows, int), "y",
        {"sex": np.zeros(rows, int), "race": np.zeros(rows, int)}, LEVELS[name], order[:, :n_train], order[:, n_train:],
        dropped=dropped, checksums={f"{name}.csv": "0" * 64},
    )  # fmt: skip


def training_facts(repetitions: int) -> dict[str, np.ndarray]:
    """Counts under the names that SenSR writes."""
    names = ("failed_subspace_attacks", "failed_full_attacks", "non_finite_attacks", "final_lambda")
    return {name: np.full(repetitions, i) for i, name in enumerate(names, start=3)}


def make_inputs(
    scale: str = "paper", origin: str = "official", repetitions: int = 10, steps: Sequence[int] = STEPS
) -> Inputs:
    """A study's inputs at ``scale``, with the project's own configuration."""
    frames = []
    for dataset, method in itertools.product(TRUTH, METHODS):
        (rng,) = generators("fake", dataset, method, repetitions=1)
        place = {"block": "audit", "dataset": dataset, "method": method, "origin": origin, "audit": "loss_ratio"}
        frames.append(pd.DataFrame(audit_rows(dataset, method, rng, repetitions, steps)).assign(**place))
        if method in ("baseline", "sensr"):
            level = TRUTH[dataset][method][0]
            frames.append(pd.DataFrame(sensitivity_rows(rng, 2, level)).assign(**{**place, "block": "sensitivity"}))
    place = {"dataset": "simulated", "method": "logistic_grid", "origin": "simulated", "audit": "loss_ratio"}
    for intercept, metric in itertools.product(("fitted", "zero"), ("rotated", "diagonal")):
        rows = heatmap_rows(5.7 if intercept == "fitted" else 0.67, intercept=intercept, metric=metric)
        frames.append(pd.DataFrame(rows).assign(**place, block="heatmaps"))
    frames.append(pd.DataFrame(heatmap_rows(2.0)).assign(**place, block="heatmaps_printed"))
    (rng,) = generators("fake", "validity", repetitions=1)
    place = {**place, "audit": "loss_ratio_validity", "block": "validity"}
    frames.append(pd.DataFrame(validity_rows(rng)).assign(**place))
    rows = pd.concat(frames, ignore_index=True).assign(study=STUDY, scale=scale)
    (rng,) = generators("fake", "simulated", repetitions=1)
    none = np.zeros(repetitions)
    classifiers = {
        f"{d}/{m}": Classifier(
            m, d, "official", "mlp", {"w1": none}, facts=training_facts(repetitions) if m == "sensr" else {}
        )
        for d, m in itertools.product(TRUTH, METHODS)
    }
    held = {name: described(dataset) for name, dataset in datasets(rng, origin, repetitions).items()}
    return Inputs(STUDY, scale, rows, configuration(scale), held, audits(rng, origin), classifiers)


def datasets(rng: np.random.Generator, origin: Any, repetitions: int) -> dict[str, Dataset]:
    """The prepared data of the study."""
    unknown = {"occupation unknown": 2809, "native-country unknown": 811}
    return {
        "adult": tabular("adult", 45222, 39, unknown, origin, repetitions),
        "compas": tabular("compas", 5278, 7, {"no COMPAS score": 20, "another race": 894}, origin, repetitions),
        "simulated@labels=centred": simulated(rng),
    }


@pytest.fixture(scope="session")
def prepared() -> Callable[..., dict[str, Dataset]]:
    """The prepared data of an origin, for so many repetitions."""
    return lambda origin, repetitions: datasets(np.random.default_rng(0), origin, repetitions)


def configuration(scale: str) -> dict[str, Any]:
    """What the workflow hands to the artefacts stage."""
    return Workflow(scale=scale, studies=[STUDY]).artefacts(STUDY)


@pytest.fixture(scope="session")
def inputs() -> Inputs:
    """The study at paper scale, official data."""
    return make_inputs()


@pytest.fixture(scope="session")
def inputs_of() -> Callable[..., Inputs]:
    """The study at a scale, origin and number of repetitions of one's choice."""
    return make_inputs


@pytest.fixture(scope="session")
def published() -> pd.DataFrame:
    """The study's list of published numbers."""
    return load_published("data/published/individual_fairness.csv")


@pytest.fixture(scope="session")
def build() -> Callable[[str, Inputs], Artefact]:
    """Make one artefact of any study by its name."""
    lists = cache(lambda study: load_published(f"data/published/{study}.csv"))
    return lambda name, inputs: artefacts.build(name, inputs, lists(inputs.study))


@pytest.fixture
def files_of(build: Callable[[str, Inputs], Artefact], tmp_path: Path) -> Callable[[str, Inputs], list[bytes]]:
    """Make an artefact and save it: the contents of its files."""

    def saved(name: str, inputs: Inputs) -> list[bytes]:
        made = build(name, inputs)
        if isinstance(made, Table):
            return [text.encode() for text in (made.csv(), made.markdown(), made.latex(), made.html())]
        with style.paper():
            return [Path(path).read_bytes() for path in io.save_figure(made.figure, tmp_path / name)]

    return saved


class Made(dict[str, Artefact]):
    """Artefacts by name, each made when it is first asked for."""

    def __init__(self, make: Callable[[str], Artefact]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, name: str) -> Artefact:
        self[name] = self.make(name)
        return self[name]


@pytest.fixture(scope="session")
def lazily() -> type[Made]:
    """A mapping of artefacts by name, of the function that makes one."""
    return Made
