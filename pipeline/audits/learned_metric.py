r"""Level and power of the loss-ratio test if its fair metric is learned, in populations whose metric is known.

Each split is a population. Its people are the held-out rows. Attribute k of a person x is drawn anew from

.. math:: P(a_k = 1 \mid x) = 1 / (1 + \exp(-(w_k' x + b_k))),

with the directions w_k of :func:`fairness_audits.fair_metric.sensitive_directions` on the training rows. So the
sensitive directions of the population are known. Under the metric that they define, the mean ratio of losses over all
held-out rows is the *true ratio*. Audited samples of n people are drawn with replacement, where n is half the number
of the held-out rows. An auditor has one of these metrics:

- ``known``: the metric of the population;
- ``audited``: learned on the audited people, as published;
- ``cross_fitted``: two metrics, each learned on one half of the audited people and used for the other half;
- ``others``: learned on other people, ``relative_rows`` times n of them.

By Corollary 3.3 of the paper, the test with the known metric rejects with probability 0, alpha or 1 in large samples if
the true ratio is below, at or above the tolerance.

Source: Maity et al. 2021, "Statistical inference for individual fairness", sections 3 and 4.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Plan, step_schedule
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest, loss_ratio_test
from fairness_audits.fair_metric import FairMetric, learn, learn_batch
from fairness_audits.validation import Checked, Count, NonNegative, Positive, Share, at_least, not_empty
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.values import AuditResult
from pipeline.variance_components import half_squared_difference

KNOWN, AUDITED, CROSS_FITTED, OTHERS = "known", "audited", "cross_fitted", "others"
Losses = tuple[Array, Array]
"""Losses (n,) of people before and after the attack."""


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``regularization``, ``step_size`` and ``steps`` of the attack; ``delta`` and ``alpha`` of the test.

    ``audit_samples``: number of samples of audited people. Each of the first ``learned_samples`` also teaches a metric.
    ``metric_samples``: number of metrics for each of ``relative_rows``, the numbers of rows behind a metric in units
    of n.
    Further tolerances are ``delta_over_truth`` times the true ratio.
    """

    regularization: NonNegative
    step_size: Positive
    steps: Count
    delta: Positive
    alpha: Share
    delta_over_truth: Annotated[list[Positive], not_empty]
    relative_rows: Annotated[list[Positive], not_empty]
    metric_samples: Annotated[int, at_least(2)]
    audit_samples: Annotated[int, at_least(2)]
    learned_samples: Annotated[int, at_least(2)]


@dataclass(frozen=True)
class Population:
    """People ``features`` (N, d) with ``label`` (N,), a ``classifier`` of them, and the chance of each attribute (N,).

    ``metric`` is the known one. ``sensitive_inputs`` are columns that are protected attributes themselves.
    """

    classifier: Classifier
    features: Array
    label: Array
    chances: Mapping[str, Array]
    sensitive_inputs: Sequence[int]
    metric: FairMetric
    config: Config

    def learned(self, counts: Array, rng: np.random.Generator) -> FairMetric:
        """Draw the attributes of ``counts`` (N,) people like each of these and learn a metric from them."""
        rows = np.arange(len(counts))
        protected: dict[str, Array] = {}
        for name, chance in self.chances.items():
            ones = rng.binomial(counts, chance[rows])
            protected = {other: np.tile(values, 2) for other, values in protected.items()}
            protected[name] = np.repeat([1, 0], len(rows))
            counts, rows = np.concatenate([ones, counts - ones]), np.tile(rows, 2)
        found = counts > 0
        protected = {name: values[found] for name, values in protected.items()}
        return learn(self.features[rows[found]], protected, self.sensitive_inputs, counts[found])

    def counts(self, rows: Array) -> Array:
        """Return how often each person is among these rows: (N,)."""
        return np.bincount(rows, minlength=len(self.label))

    def attacked(self, rows: Array | slice, metric: FairMetric) -> Losses:
        """Return the losses of people before the attack under a metric and after its last step."""
        steps, size = self.config.steps, self.config.step_size
        plan = Plan(metric, self.config.regularization, step_schedule("constant", size, 0.0, steps), [steps])
        flow = unfair_map(self.classifier, self.features[None, rows], self.label[None, rows], plan)
        return flow.original_loss[0], flow.losses[0, 0]

    def tested(self, losses: Losses) -> RatioTest:
        """Test these people, or samples of them."""
        return loss_ratio_test(*losses, self.config.delta, self.config.alpha)


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Draw from the population of each repetition with its own generator.

    Rows: the true ratio, ``truth``. By ``metric_rows`` (known, audited, cross_fitted, others) and ``relative_rows``
    (NaN but for others): ``rejection_rate`` at each ``delta``, with ``delta_over_truth`` (NaN for the tolerance of the
    config); the mean ``log_error`` of log T_n to the logarithm of the truth, and ``not_positive``, the number of tests
    with T_n <= 0. By ``effect`` (audit; metric for others), ``log_spread``: the logarithm of the standard deviation of
    log T_n if only the audited people, or only the people behind the metric, are drawn anew; for the metrics audited
    and cross_fitted, both are the same people. What depends on log T_n is NaN if a T_n is not positive.
    """
    rows: list[dict[str, Any]] = []
    for r, people in enumerate(populations(dataset, classifier, config)):
        truth = float(people.tested(people.attacked(slice(None), people.metric)).mean)
        rows.append({"repetition": r, "statistic": "truth", "value": truth})
        for metric_rows, relative, tests in _ways(people, rngs[r]):
            place = {"repetition": r, "metric_rows": metric_rows, "relative_rows": relative}
            rows += [{**place, **row} for row in _facts(tests, truth, config)]
    return AuditResult.of("learned_metric", dataset, classifier, rows, alpha=config.alpha)


def populations(dataset: Dataset, classifier: Classifier, config: Config) -> Iterator[Population]:
    """Yield the population of each split."""
    train, held_out = (dataset.batch(side, classifier.repetitions) for side in ("train", "test"))
    inputs = [dataset.feature_names.index(name) for name in dataset.sensitive_inputs]
    metrics = learn_batch(train, inputs)
    for r in range(classifier.repetitions):
        yield Population(
            replace(classifier, parameters={name: array[r : r + 1] for name, array in classifier.parameters.items()}),
            held_out.features[r],
            held_out.label[r],
            {
                name: expit(held_out.features[r] @ w + intercept(train.features[r] @ w, values[r].mean()))
                for (name, values), w in zip(train.protected.items(), metrics.directions[r], strict=False)
            },
            inputs,
            FairMetric(metrics.matrix[r], metrics.basis[r], metrics.directions[r]),
            config,
        )


def intercept(score: Array, share: float) -> float:
    """Return b with mean of 1 / (1 + exp(-(score + b))) = share: the intercept of a logistic regression."""
    far = float(np.abs(score).max()) + 40.0
    return float(brentq(lambda b: expit(score + b).mean() - share, -far, far))


def _ways(people: Population, rng: np.random.Generator) -> Iterator[tuple[str, float, RatioTest]]:
    """Yield the tests (metric samples, audit samples) with each metric, its name and its relative number of rows."""
    config, count = people.config, len(people.label)
    n = count // 2
    chosen = rng.integers(count, size=(config.audit_samples, n))

    def of_samples(metric: FairMetric) -> Losses:
        before, after = people.attacked(slice(None), metric)
        return before[chosen], after[chosen]

    yield KNOWN, np.nan, people.tested(_stacked([of_samples(people.metric)]))
    own = chosen[: config.learned_samples]
    same = [people.attacked(rows, people.learned(people.counts(rows), rng)) for rows in own]
    yield AUDITED, np.nan, people.tested(_stacked([_stacked(same)]))
    crossed = []
    for rows in own:
        first, second = rows[: n // 2], rows[n // 2 :]
        pairs = ((first, second), (second, first))
        parts = [people.attacked(half, people.learned(people.counts(other), rng)) for half, other in pairs]
        crossed.append((np.concatenate([before for before, _ in parts]), np.concatenate([after for _, after in parts])))
    yield CROSS_FITTED, np.nan, people.tested(_stacked([_stacked(crossed)]))
    for relative in config.relative_rows:
        drawn = rng.multinomial(round(relative * n), np.full(count, 1 / count), size=config.metric_samples)
        metrics = (people.learned(counts, rng) for counts in drawn)
        yield OTHERS, relative, people.tested(_stacked([of_samples(metric) for metric in metrics]))


def _stacked(losses: Sequence[Losses]) -> Losses:
    before, after = map(np.stack, zip(*losses, strict=True))
    return before, after


def _facts(tests: RatioTest, truth: float, config: Config) -> Iterator[dict[str, Any]]:
    """Yield the numbers of the tests (metric samples, audit samples) with one kind of metric."""
    multiples = [(np.nan, config.delta), *((multiple, multiple * truth) for multiple in config.delta_over_truth)]
    for multiple, delta in multiples:
        rate = float((tests.statistic > delta).mean())
        yield {"statistic": "rejection_rate", "delta": delta, "delta_over_truth": multiple, "value": rate}
    positive = tests.statistic > 0
    y = np.log(tests.statistic) if positive.all() else np.full(positive.shape, np.nan)
    yield {"statistic": "log_error", "value": float(y.mean() - np.log(truth))}
    yield {"statistic": "not_positive", "value": float((~positive).sum())}
    for effect, axis in (("metric", 0), ("audit", 1)):
        if y.shape[axis] > 1:
            spread = half_squared_difference(y, [axis])
            logarithm = np.log(spread) / 2 if spread > 0 else np.nan
            yield {"statistic": "log_spread", "effect": effect, "value": float(logarithm)}
