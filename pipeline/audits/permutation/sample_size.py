r"""The least difference of a rate that a permutation test detects, over thresholds, in samples of growing size.

In each sample the rate is compared at every threshold; the least |D| among those that the test rejects is reported.
Taking the least of many is a selection that no level accounts for, so the same is given with Holm's correction over the
thresholds, and beside it the difference that the formula of section 5.1 detects with probability 1/2:

.. math:: z_{1 - \alpha/2} \sqrt{f_A (1 - f_A) / m_A + f_B (1 - f_B) / m_B}

with the rates f and the rows m that they are of, at threshold 1/2. Source: DiCiccio et al. 2020, section 5.1, figure 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.audits.correction import corrected
from pipeline.audits.permutation.power import detectable
from pipeline.audits.permutation.scores import named_attributes, rates_named, scores_of, threshold_tables
from pipeline.audits.permutation.simulations import TESTS, tested
from pipeline.types import Array, AuditResult, Classifier, Dataset

MIDDLE = 0.5


@dataclass(frozen=True)
class Config:
    """``samples`` samples of each of ``sizes`` rows of a ``split``, for each repetition.

    ``points`` thresholds from ``low`` to ``high``; a threshold is tested where each group has ``smallest_cell`` events
    and as many others. ``tests`` of ``metrics`` on ``attributes`` (None: all), ``draws`` permutations, level ``alpha``.
    """

    metrics: list[str]
    attributes: list[str] | None
    tests: list[str]
    sizes: list[int]
    samples: int
    split: str
    points: int
    low: float
    high: float
    smallest_cell: int
    draws: int
    alpha: float

    def __post_init__(self) -> None:
        rates_named(self.metrics)
        if not self.tests or not set(self.tests) <= set(TESTS):
            raise ValueError(f"expected audit.tests among {', '.join(TESTS)}; found {self.tests}")
        if not self.sizes or min(*self.sizes, self.samples, self.points, self.draws) < 1:
            raise ValueError("expected audit.sizes, audit.samples, audit.points and audit.draws of at least 1")
        if self.split not in ("train", "test"):
            raise ValueError(f"expected audit.split train or test, found {self.split!r}")
        if not 0 <= self.low <= self.high <= 1 or not 0 < self.alpha < 1:
            raise ValueError(
                "expected 0 <= audit.low <= audit.high <= 1 and audit.alpha between 0 and 1, "
                f"found {self.low}, {self.high} and {self.alpha}"
            )


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Rows by repetition, ``attribute``, ``metric``, ``n`` (rows sampled) and ``sample``.

    By ``test``: ``minimum_difference`` and ``minimum_difference_corrected`` (NaN where no threshold is rejected),
    ``thresholds_detected`` and ``thresholds_tested``; without test ``detectable`` by the formula. Raises ValueError for
    a size beyond the rows of the split.
    """
    import pandas as pd

    attributes = named_attributes(dataset, config.attributes)
    batch, score = scores_of(dataset, classifier, config.split)  # type: ignore[arg-type]
    available = batch.label.shape[1]
    if max(config.sizes) > available:
        raise ValueError(
            f"expected audit.sizes of at most {available}, the {config.split} rows of {dataset.name!r}; "
            f"found {max(config.sizes)}: take smaller samples, or the other split"
        )
    thresholds = np.linspace(config.low, config.high, config.points)
    rows: list[dict[str, Any]] = []
    for repetition, rng in enumerate(rngs[: classifier.repetitions]):
        for n in config.sizes:
            drawn = [rng.permutation(available)[:n] for _ in range(config.samples)]
            for attribute in attributes:
                label, own = batch.label[repetition], score[repetition]
                protected = batch.protected[attribute][repetition]
                tables, middle = (
                    np.stack([threshold_tables(label[i], own[i], protected[i], at) for i in drawn])
                    for at in (thresholds, np.array([MIDDLE]))
                )
                for metric in config.metrics:
                    where = {"repetition": repetition, "attribute": attribute, "metric": metric, "n": n}
                    halves = formula(middle[:, 0], metric, config.alpha)
                    found: dict[tuple[str, str], Array] = {("", "detectable"): halves}
                    for test in config.tests:
                        least = minima(tables, metric, test, config, rng)
                        found |= {(test, statistic): values for statistic, values in least.items()}
                    rows += [
                        {**where, "test": test, "sample": sample, "statistic": statistic, "value": float(value)}
                        for (test, statistic), values in found.items()
                        for sample, value in enumerate(values)
                    ]
    settings = {key: getattr(config, key) for key in ("draws", "alpha", "smallest_cell")}
    table = pd.DataFrame(rows).assign(**settings)
    return AuditResult("sample_size", dataset.name, classifier.method, dataset.origin, table)


def minima(tables: Array, metric: str, test: str, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Of each sample (S,) of tables (S, T, 2, 2, 2): what was tested, detected, and the least |D| detected."""
    kinds = rates_named([metric])[0].split(tables)[..., :2]
    enough = np.asarray((kinds >= config.smallest_cell).all(axis=(-1, -2)))
    p = np.full(enough.shape, np.nan)
    if enough.any():
        p[enough] = tested(tables[enough], metric, test, config.draws, rng)
    adjusted = np.stack([corrected(of_sample, "holm") for of_sample in p])
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = kinds[..., 0] / kinds.sum(axis=-1)
    size = np.abs(rate[..., 0] - rate[..., 1])
    return {
        "minimum_difference": _least(size, p <= config.alpha),
        "minimum_difference_corrected": _least(size, adjusted <= config.alpha),
        "thresholds_detected": (p <= config.alpha).sum(axis=1),
        "thresholds_tested": enough.sum(axis=1),
    }


def formula(tables: Array, metric: str, alpha: float) -> Array:
    """The |D| that is detected with probability 1/2, (S,) of tables (S, 2, 2, 2); NaN for a group without rows."""
    kinds = rates_named([metric])[0].split(tables)[..., :2]
    with np.errstate(divide="ignore", invalid="ignore"):
        m = kinds.sum(axis=-1)
        rate = kinds[..., 0] / m
        spread = rate * (1 - rate)
        variances: Any = spread[:, 0], spread[:, 1]
        return detectable(variances, (m[:, 0], m[:, 1]), alpha=alpha)


def _least(size: Array, detected: Array) -> Array:
    least = np.where(detected, size, np.inf).min(axis=1)
    return np.where(np.isinf(least), np.nan, least)
