r"""The smallest difference of a rate that a permutation test detects over all thresholds, by sample size.

In each sample, the rates are compared at every threshold, and the smallest |D| with a rejected test is reported. This
selection inflates the level, so the same is reported with Holm's correction over the thresholds. For comparison we give
the difference that the formula of section 5.1 detects with probability 1/2:

.. math:: z_{1 - \alpha/2} \sqrt{f_A (1 - f_A) / m_A + f_B (1 - f_B) / m_B}

with the rates f and their numbers of rows m at threshold 1/2. Source: DiCiccio et al. 2020, section 5.1, Figure 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from fairness_audits.audits.inference import corrected
from fairness_audits.audits.permutation.metrics import RATES
from fairness_audits.audits.permutation.power import detectable
from fairness_audits.audits.permutation.samples import TESTS, groups_of, table_p
from fairness_audits.audits.permutation.statistics import Proportion
from fairness_audits.errors import InvalidInput
from fairness_audits.validation import Checked, Count, Counts, Probability, Share, some_of
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.predictions import named_attributes, scores_of, threshold_tables
from pipeline.values import AuditResult

MIDDLE = 0.5


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``samples`` samples of each size in ``sizes``, from the rows of a ``split``, for each repetition.

    ``points`` thresholds from ``low`` to ``high``. A threshold is tested if each group has ``smallest_cell`` events and
    as many non-events. ``tests`` of ``metrics`` on ``attributes`` (None: all), ``draws`` permutations, level ``alpha``.
    """

    metrics: Annotated[list[str], some_of(RATES)]
    attributes: list[str] | None
    tests: Annotated[list[str], some_of(TESTS)]
    sizes: Counts
    samples: Count
    split: Literal["train", "test"]
    points: Count
    low: Probability
    high: Probability
    smallest_cell: int
    draws: Count
    alpha: Share

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise InvalidInput(f"expected audit.low <= audit.high, found {self.low} and {self.high}", option="low")


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Return rows by repetition, ``attribute``, ``metric``, ``n`` (sample size) and ``sample``.

    By ``test``: ``minimum_difference`` and ``minimum_difference_corrected`` (NaN if no threshold is rejected). With an
    empty ``test``: ``detectable``, by the formula. Raises ValueError for a size above the number of rows of the split.
    """
    attributes = named_attributes(dataset, config.attributes)
    batch, score = scores_of(dataset, classifier, config.split)  # type: ignore[arg-type]
    available = batch.label.shape[1]
    if max(config.sizes) > available:
        raise InvalidInput(
            f"expected audit.sizes of at most {available}, the {config.split} rows of {dataset.name!r}; "
            f"found {max(config.sizes)}",
            source=dataset.name,
            option="sizes",
            remedy="Take smaller samples, or the other split",
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
    return AuditResult.of("sample_size", dataset, classifier, rows, **settings)


def minima(tables: Array, metric: str, test: str, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Compute the smallest detected |D| for each sample (S,) of tables (S, T, 2, 2, 2), uncorrected and corrected."""
    groups = groups_of(tables, metric)
    enough = np.asarray((groups[..., :2] >= config.smallest_cell).all(axis=(0, -1)))
    p = np.full(enough.shape, np.nan)
    if enough.any():
        p[enough] = table_p(tables[enough], metric, test, config.draws, rng)
    adjusted = np.stack([corrected(of_sample, "holm") for of_sample in p])
    size = np.abs(Proportion(0.0)(groups).difference)
    return {
        "minimum_difference": _least(size, p <= config.alpha),
        "minimum_difference_corrected": _least(size, adjusted <= config.alpha),
    }


def formula(tables: Array, metric: str, alpha: float) -> Array:
    """Compute the |D| detected with probability 1/2, (S,) for tables (S, 2, 2, 2); NaN for a group without rows."""
    groups = groups_of(tables, metric)
    rate, rows = Proportion(0.0)(groups).value, groups[..., :2].sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return detectable(tuple(rate * (1 - rate)), tuple(rows), alpha=alpha)


def _least(size: Array, detected: Array) -> Array:
    least = np.where(detected, size, np.inf).min(axis=1)
    return np.where(np.isinf(least), np.nan, least)
