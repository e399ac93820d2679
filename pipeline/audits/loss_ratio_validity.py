"""Coverage and level of the loss-ratio and error-rate-ratio tests, by simulation.

The test rows are the population P, so the true ratios are known: the mean of the loss ratios, and the ratio of the
error rates. Samples of n points drawn with replacement are independent draws from P. By Theorems 3.1 and C.1, sqrt(n)
(S_n - truth) / V_n converges to a standard normal distribution. By Corollary 3.2 the two-sided interval covers the
truth with probability 1 - alpha. By Corollaries 3.3 and C.2 the rejection probability tends to 0, alpha or 1 if the
truth is below, at or above delta.

Source: Maity et al. 2021, "Statistical inference for individual fairness", section 3 and appendix C.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import ndtr

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Plan, step_schedule
from fairness_audits.audits.loss_ratio.core import along_gradient
from fairness_audits.audits.loss_ratio.ratio_tests import (
    RatioTest,
    error_rate_ratio_test,
    loss_ratio_test,
    misclassified,
)
from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import rotated
from fairness_audits.validation import Checked, Count, Positive, Share, at_least, not_empty
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.values import AuditResult

POINTS_AT_ONCE = 1 << 20
Test = Callable[[Array, Array, float, float], RatioTest]
TESTS: dict[str, Test] = {"loss": loss_ratio_test, "error": error_rate_ratio_test}


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``draws`` samples of each of ``sample_sizes``; tests at level ``alpha``, delta = ``delta_over_truth`` * ratio.

    ``regularization``, ``step_size``, ``steps``, ``schedule`` and ``power`` of the attack are as in the loss-ratio
    audit. The fair metric of the plane ignores the direction at ``angle`` degrees.
    """

    sample_sizes: Annotated[list[Annotated[int, at_least(2)]], not_empty]
    draws: Count
    alpha: Share
    delta_over_truth: Annotated[list[Positive], not_empty]
    regularization: float
    step_size: float
    steps: int
    schedule: Literal["constant", "power"]
    power: float
    angle: float


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Simulate with the test rows of each repetition as population; ``rngs[r]`` draws the samples of repetition r.

    Rows for each ``test`` ("loss", "error"): ``truth`` and ``population``; for each ``n_sample``:
    ``coverage_two_sided``, ``coverage_one_sided``, ``undefined`` (share of samples without a ratio; they neither cover
    nor reject), ``kolmogorov_distance`` of the standardized means to the normal distribution, and ``rejection_rate`` at
    each ``delta``. ``draws`` is the number of samples behind each share. Raises ValueError if no point of a population
    is misclassified.
    """
    import pandas as pd

    batch = dataset.batch("test", 1 if dataset.repetitions == 1 else classifier.repetitions)
    schedule = step_schedule(config.schedule, config.step_size, config.power, config.steps)
    plan = Plan(rotated(config.angle), config.regularization, schedule, [config.steps])
    attack = partial(unfair_map, classifier, batch.features, batch.label)
    found = along_gradient(attack, batch.features, batch.label, plan, delta=1.0, alpha=config.alpha)
    label = np.broadcast_to(batch.label, found.original_loss.shape)
    before, after = found.original_loss, found.comparable_loss
    truths = {"loss": found.course.mean, "error": found.error_course.mean}
    pairs = {"loss": (before, after), "error": (misclassified(before, label), misclassified(after, label))}
    rows: list[dict[str, Any]] = []
    for r, rng in enumerate(rngs):
        for name, (original, attacked) in pairs.items():
            population, truth = (original[r], attacked[r]), float(truths[name][r, -1])
            if not np.isfinite(truth):
                raise InvalidInput(
                    f"the classifier misclassifies none of the {len(label[r])} points of the population, so the "
                    "error-rate ratio does not exist",
                    option="classifier",
                    remedy="Take a larger population or another classifier",
                )
            place = {"repetition": r, "test": name, "alpha": config.alpha, "draws": config.draws}
            rows.append({**place, "statistic": "truth", "value": truth})
            rows.append({**place, "statistic": "population", "value": float(len(label[r]))})
            for n in config.sample_sizes:
                outcomes = list(_outcomes(TESTS[name], *population, truth, n, config, rng))
                rows += [{**place, "n_sample": n, **row} for row in _rates(outcomes, n, truth, config)]
    columns = ["repetition", "statistic", "value", "test", "n_sample", "delta", "delta_over_truth", "alpha", "draws"]
    frame = pd.DataFrame(rows, columns=columns)
    return AuditResult("loss_ratio_validity", dataset.name, classifier.method, dataset.origin, frame)


def _outcomes(
    test: Test, original: Array, attacked: Array, truth: float, n: int, config: Config, rng: np.random.Generator
) -> Iterator[RatioTest]:
    """Run ``test`` on samples of ``n`` pairs, drawn with replacement from ``original``, ``attacked`` (N,)."""
    together = max(1, POINTS_AT_ONCE // n)
    for start in range(0, config.draws, together):
        chosen = rng.integers(len(original), size=(min(together, config.draws - start), n))
        yield test(original[chosen], attacked[chosen], truth, config.alpha)


def _rates(outcomes: Sequence[RatioTest], n: int, truth: float, config: Config) -> list[dict[str, Any]]:
    """Return shares of the samples, as rows. Samples without a ratio are NaN; V_n is 0 in some others."""
    mean, std, statistic, low, high = (
        np.concatenate([getattr(outcome, field) for outcome in outcomes])
        for field in ("mean", "std", "statistic", "ci_low", "ci_high")
    )
    spread = std > 0
    below = ndtr(np.sort(np.sqrt(n) * (mean - truth)[spread] / std[spread]))
    ranks = np.arange(len(below) + 1) / max(len(below), 1)
    distance = np.max(np.maximum(ranks[1:] - below, below - ranks[:-1]), initial=0.0)
    shares = {
        "coverage_two_sided": np.mean((low <= truth) & (truth <= high)),
        "coverage_one_sided": np.mean(statistic <= truth),
        "undefined": np.mean(~np.isfinite(statistic)),
        "kolmogorov_distance": distance,
    }
    rows: list[dict[str, Any]] = [{"statistic": name, "value": float(value)} for name, value in shares.items()]
    for multiple in config.delta_over_truth:
        rate = float(np.mean(statistic > multiple * truth))
        place = {"delta": multiple * truth, "delta_over_truth": multiple}
        rows.append({"statistic": "rejection_rate", "value": rate, **place})
    return rows
