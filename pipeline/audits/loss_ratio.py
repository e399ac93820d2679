"""The loss-ratio and error-rate-ratio tests of individual fairness, with group metrics for comparison.

The gradient flow attack moves each test point to increase its loss, with a penalty on moves outside the sensitive
directions. The test asks whether the loss (or the error rate) grows by more than a tolerated factor.

Source: Maity et al. 2021, "Statistical inference for individual fairness", Algorithm 1 and sections 3 and 4.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Flow, Plan, step_schedule
from fairness_audits.audits.loss_ratio.core import LossRatio, along_gradient
from fairness_audits.fair_metric import FairMetric, learn_batch, principal_angles, rotated
from fairness_audits.group_metrics import group_metrics
from fairness_audits.models import architecture
from fairness_audits.validation import Checked, Count, Counts, NonNegative, Positive, Share, at_least
from fairness_audits.values import Array, Batch, Classifier, Dataset
from pipeline.values import AuditResult

Metric = Literal["learned", "rotated"]
Side = Literal["test", "train"]

DECIDED = ("p_value", "rejected", "ci_low", "ci_high")
COUNTED = ("n", "non_finite", "clipped", "below_one")
LOSS_STATISTICS = {"T_n": "statistic", "S_n": "mean", "V_n": "std", **{name: name for name in DECIDED}}
LOSS_STATISTICS |= {name: name for name in COUNTED}
"""Names of the fields of a RatioTest on losses, in the rows."""
ERROR_STATISTICS = {"error_T_n": "statistic", "error_S_n": "mean", "error_std": "std"}
ERROR_STATISTICS |= {f"error_{name}": name for name in DECIDED}
"""Names of the fields of a RatioTest on errors, in the rows."""


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """Parameters of the attack and the test; the audit runs over the product of parameters given as lists.

    ``regularization`` lambda and ``step_size`` eta of the attack; ``schedule`` "constant" (eta) or "power" (eta /
    t^power); ``steps``, the number of steps; ``record``, the steps at which the tests are computed (numbers above
    ``steps`` mean ``steps``). ``delta``: tolerated ratio; ``alpha``: level. ``metric``: "learned" from the protected
    attributes of the ``metric_split`` rows ("test", "train"), or "rotated" by ``angle`` degrees in the plane.
    ``points``: the first N test rows (None: all).
    """

    regularization: NonNegative | list[NonNegative]
    step_size: Positive | list[Positive]
    steps: Count
    schedule: Literal["constant", "power"]
    power: float
    record: Counts
    delta: Positive
    alpha: Share
    metric: Metric | list[Metric]
    metric_split: Side | list[Side]
    angle: float | list[float]
    points: Annotated[int, at_least(2)] | None

    @property
    def recorded(self) -> tuple[int, ...]:
        """The increasing steps at which the tests are computed."""
        return tuple(sorted({min(step, self.steps) for step in self.record}))


@dataclass(frozen=True)
class Place:
    """A fair metric: ``metric`` with the split it is learned on, or with its angle; "" and NaN mark unused fields."""

    metric: str
    metric_split: str
    angle: float


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Audit R classifiers on the test rows of their splits, or of the only split. The audit is deterministic.

    Rows for each setting: the statistics of both tests at every recorded step. If a ratio is undefined, all statistics
    are NaN, ``rejected`` included. Rows for each repetition: group metrics at threshold 1/2; ``undefined_errors``, 1 if
    no audited point is misclassified before the attack, since then no error-rate ratio exists; and, for a metric
    learned on training rows, ``principal_angle_<i>`` in degrees between the subspaces learned on training and on test
    rows. Columns: the setting, ``steps``, ``delta``, ``alpha`` and the index of the classifiers.

    A setting beyond the stability limit is skipped if another one is within it: its statistics are NaN and its points
    count as ``non_finite``.

    Raises ValueError if every setting is unstable, or if there are more classifiers than splits.
    """
    test = dataset.batch("test", 1 if dataset.repetitions == 1 else classifier.repetitions)
    features, label = test.features[:, : config.points], test.label[:, : config.points]
    metrics = _metrics(config, dataset, test)
    plans = {}
    for place, regularization, size in product(metrics, _listed(config.regularization), _listed(config.step_size)):
        schedule = step_schedule(config.schedule, size, config.power, config.recorded[-1])
        plans[place, regularization, size] = Plan(metrics[place], regularization, schedule, config.recorded)
    if not any(plan.ends_stable for plan in plans.values()):
        next(iter(plans.values())).check()
    rows: list[dict[str, Any]] = []
    losses = np.full((classifier.repetitions, len(config.recorded), label.shape[-1]), np.nan)
    for (place, regularization, step_size), plan in plans.items():
        columns = {**vars(place), "regularization": regularization, "step_size": step_size}
        attack = partial(unfair_map, classifier, features, label) if plan.ends_stable else partial(_lost, losses)
        found = along_gradient(attack, features, label, plan, delta=config.delta, alpha=config.alpha)
        rows += _tidy(_statistics(found), config.recorded, columns, config)
    rows += _tidy(_once(dataset, classifier, test, config, metrics), (np.nan,), {})
    return AuditResult.of("loss_ratio", dataset, classifier, rows)


def _metrics(config: Config, dataset: Dataset, test: Batch) -> dict[Place, FairMetric]:
    """Return every fair metric of the config; learned metrics are stacked over the repetitions of ``test``."""
    metrics = {}
    for name in _listed(config.metric):
        if name == "learned":
            inputs = [dataset.feature_names.index(column) for column in dataset.sensitive_inputs]
            for split in _listed(config.metric_split):
                rows = test if split == "test" else dataset.batch("train", len(test.features))
                metrics[Place(name, split, np.nan)] = learn_batch(rows, inputs)
        else:
            for angle in _listed(config.angle):
                metrics[Place(name, "", float(angle))] = rotated(angle)
    return metrics


def _lost(losses: Array, plan: Plan) -> Flow:
    """Return the flow of a plan that is not followed, without any loss."""
    return Flow(losses[:, 0], losses, losses[:, 0])


def _statistics(found: LossRatio) -> dict[str, Array]:
    """Return the statistics (R, L) of both tests by name."""
    tests = ((found.course, LOSS_STATISTICS), (found.error_course, ERROR_STATISTICS))
    statistics = {name: getattr(test, field) for test, names in tests for name, field in names.items()}
    for name, test in (("rejected", found.course), ("error_rejected", found.error_course)):
        statistics[name] = np.where(test.undefined, np.nan, test.rejected)
    return statistics


def _once(
    dataset: Dataset, classifier: Classifier, test: Batch, config: Config, metrics: Mapping[Place, FairMetric]
) -> dict[str, Array]:
    """Compute the statistics that do not depend on the attack, (R, 1) each."""
    model = architecture(classifier.architecture)
    predicted = model.predict(classifier.parameters, test.features)
    statistics = group_metrics(test.label, predicted, test.protected)
    wrong = (predicted != test.label)[:, : config.points]
    statistics["undefined_errors"] = ~wrong.any(axis=-1)
    on_train = [metric for place, metric in metrics.items() if place.metric_split == "train"]
    if on_train:
        on_test = _metrics(replace(config, metric="learned", metric_split="test"), dataset, test)
        for i, angle in enumerate(principal_angles(*on_train, *on_test.values()).T, start=1):
            statistics[f"principal_angle_{i}"] = angle
    return {name: np.broadcast_to(values, (classifier.repetitions,))[:, None] for name, values in statistics.items()}


def _tidy(
    statistics: Mapping[str, Array], steps: Sequence[float], columns: Mapping[str, Any], config: Config | None = None
) -> Iterator[dict[str, Any]]:
    """Return one row for each value of the (R, L) arrays, by repetition; ``config`` adds delta and alpha."""
    nowhere = {"metric": "", "metric_split": "", "angle": np.nan, "regularization": np.nan, "step_size": np.nan}
    limits = {key: getattr(config, key) if config else np.nan for key in ("delta", "alpha")}
    for name, values in statistics.items():
        for (repetition, place), value in np.ndenumerate(values):
            where = {"repetition": repetition, "statistic": name, "value": float(value), "steps": float(steps[place])}
            yield {**where, **nowhere, **columns, **limits}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
