"""Coverage and level of the loss-ratio and error-rate-ratio tests, by simulation.

The test rows are the population P, so the true ratios are known: the mean of the loss ratios, and the ratio of the
error rates. Samples of n points drawn with replacement are independent draws from P. By Theorems 3.1 and C.1, sqrt(n)
(S_n - truth) / V_n converges to a standard normal distribution. By Corollary 3.2 the two-sided interval covers the
truth with probability 1 - alpha. By Corollaries 3.3 and C.2 the rejection probability tends to 0, alpha or 1 if the
truth is below, at or above delta.

Source: Maity et al. 2021, "Statistical inference for individual fairness", section 3 and appendix C.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import ndtr

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Plan, step_schedule
from fairness_audits.audits.loss_ratio.ratio_tests import (
    RatioTest,
    error_rate_ratio_test,
    loss_ratio_test,
    misclassified,
)
from fairness_audits.fair_metric import rotated
from fairness_audits.validation import Checked, Count, Positive, Share, at_least, not_empty
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.values import AuditResult

POINTS_AT_ONCE = 1 << 20
TESTS: dict[str, Callable[[Array, Array, float, float], RatioTest]] = {
    "loss": loss_ratio_test,
    "error": error_rate_ratio_test,
}


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


@dataclass(frozen=True)
class Samples:
    """Results of B samples of one size, (B,) each: T_n, ends of the two-sided interval, sqrt(n) (S_n - truth) / V_n.

    NaN for a sample without a ratio (no point misclassified before the attack). The last array holds only samples with
    a positive V_n.
    """

    statistic: Array
    ci_low: Array
    ci_high: Array
    standardized: Array


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
    flow = unfair_map(classifier, batch.features, batch.label, plan)
    label = np.broadcast_to(batch.label, flow.original_loss.shape)
    before, after = flow.original_loss, flow.losses[:, -1]
    pairs = {"loss": (before, after), "error": (misclassified(before, label), misclassified(after, label))}
    rows: list[dict[str, Any]] = []
    for r, rng in enumerate(rngs):
        for name, (original, attacked) in pairs.items():
            population = original[r], attacked[r]
            truth = float(TESTS[name](*population, 1.0, config.alpha).mean)
            if not np.isfinite(truth):
                raise ValueError(
                    f"the classifier misclassifies none of the {len(label[r])} points of the population: the "
                    "error-rate ratio does not exist; take a larger population or another classifier"
                )
            place = {"repetition": r, "test": name, "alpha": config.alpha, "draws": config.draws}
            rows.append({**place, "statistic": "truth", "value": truth})
            rows.append({**place, "statistic": "population", "value": float(len(label[r]))})
            for n in config.sample_sizes:
                samples = draw(TESTS[name], *population, truth, n, config.draws, config.alpha, rng)
                rows += [{**place, "n_sample": n, **row} for row in _rates(samples, truth, config)]
    columns = ["repetition", "statistic", "value", "test", "n_sample", "delta", "delta_over_truth", "alpha", "draws"]
    frame = pd.DataFrame(rows, columns=columns)
    return AuditResult("loss_ratio_validity", dataset.name, classifier.method, dataset.origin, frame)


def draw(
    test: Callable[[Array, Array, float, float], RatioTest],
    original: Array,
    attacked: Array,
    truth: float,
    n: int,
    draws: int,
    alpha: float,
    rng: np.random.Generator,
) -> Samples:
    """Run ``test`` on ``draws`` samples of ``n`` pairs, drawn with replacement from ``original``, ``attacked`` (N,)."""
    outcomes = []
    together = max(1, POINTS_AT_ONCE // n)
    for start in range(0, draws, together):
        chosen = rng.integers(len(original), size=(min(together, draws - start), n))
        outcomes.append(test(original[chosen], attacked[chosen], truth, alpha))
    mean, std, statistic, low, high = (
        np.concatenate([getattr(outcome, field) for outcome in outcomes])
        for field in ("mean", "std", "statistic", "ci_low", "ci_high")
    )
    spread = std > 0
    return Samples(statistic, low, high, np.sqrt(n) * (mean - truth)[spread] / std[spread])


def _rates(samples: Samples, truth: float, config: Config) -> list[dict[str, Any]]:
    """Return shares of the samples, as rows."""
    below = ndtr(np.sort(samples.standardized))
    ranks = np.arange(len(below) + 1) / max(len(below), 1)
    distance = np.max(np.maximum(ranks[1:] - below, below - ranks[:-1]), initial=0.0)
    shares = {
        "coverage_two_sided": np.mean((samples.ci_low <= truth) & (truth <= samples.ci_high)),
        "coverage_one_sided": np.mean(samples.statistic <= truth),
        "undefined": np.mean(~np.isfinite(samples.statistic)),
        "kolmogorov_distance": distance,
    }
    rows: list[dict[str, Any]] = [{"statistic": name, "value": float(value)} for name, value in shares.items()]
    for multiple in config.delta_over_truth:
        rate = float(np.mean(samples.statistic > multiple * truth))
        place = {"delta": multiple * truth, "delta_over_truth": multiple}
        rows.append({"statistic": "rejection_rate", "value": rate, **place})
    return rows
