r"""Where the verdict of the loss-ratio test comes from: metric sample, model, audit sample or point of the ascent.

The held-out rows of a split are divided into two sets of the same size, the audited rows and the others. For each
source of rows for the fair metric, every level of each factor meets every level of the other factors:

- ``metric``: the metric learned on a bootstrap sample of the source;
- ``model``: the classifiers that share the split (``trainings`` of the data set);
- ``audit``: bootstrap samples of the audited rows;
- ``point``: the penalty, the step size and the recorded number of steps.

:mod:`pipeline.variance_components` defines the spreads, the reversal shares and the variance components.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Plan, step_schedule
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest, loss_ratio_test
from fairness_audits.fair_metric import FairMetric, learn
from fairness_audits.validation import Checked, Counts, NonNegative, Positive, Share, at_least, not_empty
from fairness_audits.values import Array, Classifier, Dataset
from pipeline import crossed
from pipeline.values import AuditResult

FACTORS = ("metric", "model", "audit", "point")
"""The axes of an experiment."""
PUBLISHED, ALL = "published", "all"
"""The points of the ascent behind a number: the first one at its last recorded step, or all of them."""
Source = Literal["train", "train_as_many", "audited", "others"]
"""Rows for the metric: all training rows, as many of them as are audited, the audited rows, or the others."""
Levels = Annotated[int, at_least(2)]


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """The points are the products of ``regularization``, ``step_size`` and ``record``.

    The first penalty and step size at the last step are the published point. ``sources`` of the rows for the metric;
    ``metric_samples`` and ``audit_samples``, numbers of bootstrap samples; ``delta`` and ``alpha`` of the test.
    """

    regularization: Annotated[list[NonNegative], not_empty]
    step_size: Annotated[list[Positive], not_empty]
    record: Counts
    delta: Positive
    alpha: Share
    sources: Annotated[list[Source], not_empty]
    metric_samples: Levels
    audit_samples: Levels


@dataclass(frozen=True)
class Cells:
    """Statistic T_n, verdict and standard error of S_n in every cell: arrays with the axes FACTORS."""

    statistic: Array
    rejected: Array
    error: Array

    @classmethod
    def joined(cls, cells: Sequence["Cells"], axis: int) -> "Cells":
        """Join cells along a factor."""
        return cls(*(np.concatenate([vars(one)[name] for one in cells], axis) for name in vars(cells[0])))


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Cross the factors in each split; ``repetition`` numbers the splits. The generator of its first model draws.

    Rows for each source of the metric (``metric_rows``) and ``points`` (published, all):

    - the :func:`pipeline.crossed.facts` of log T_n and of the verdicts;
    - the mean ``log_T_n``, the share ``rejected``, and the median ``standard_error`` of the mean ratio, relative to it;
    - ``not_positive``, the number of cells with T_n <= 0. If there are any, all that depends on log T_n is NaN.

    Models of a split that are all equal are a single level. Raises InvalidInput if the splits have different numbers of
    models.
    """
    rows: list[dict[str, Any]] = []
    for split in crossed.splits(dataset, classifier):
        for source, cells in _experiments(split.dataset, split.classifier, config, rngs[split.first]):
            last = len(config.record)
            published = Cells(*(array[..., last - 1 : last] for array in vars(cells).values()))
            for points, some in ((PUBLISHED, published), (ALL, cells)):
                place = {"repetition": split.number, "metric_rows": source, "points": points}
                rows += [{**place, **row, "value": float(row["value"])} for row in _facts(some)]
    return AuditResult.of("verdict_sources", dataset, classifier, rows, delta=config.delta, alpha=config.alpha)


def _experiments(
    dataset: Dataset, classifier: Classifier, config: Config, rng: np.random.Generator
) -> Iterator[tuple[str, Cells]]:
    """Yield the cells of each source of the metric in one split."""
    train, held_out = dataset.batch("train"), dataset.batch("test")
    n = held_out.label.shape[1] // 2
    inputs = [dataset.feature_names.index(name) for name in dataset.sensitive_inputs]
    audited = {"features": held_out.features[:, :n], "label": held_out.label[:, :n]}
    chosen = rng.integers(n, size=(config.audit_samples, n))
    of_source = {
        "train": (train, slice(None), train.label.shape[1]),
        "train_as_many": (train, slice(None), n),
        "audited": (held_out, slice(n), n),
        "others": (held_out, slice(n, 2 * n), n),
    }
    for source in config.sources:
        batch, side, size = of_source[source]
        features, protected = batch.features[0, side], {name: v[0, side] for name, v in batch.protected.items()}
        samples = rng.integers(len(features), size=(config.metric_samples, size))
        metrics = (learn(features[rows], {name: v[rows] for name, v in protected.items()}, inputs) for rows in samples)
        yield source, Cells.joined([_cells(classifier, audited, chosen, metric, config) for metric in metrics], 0)


def _cells(
    classifier: Classifier, audited: Mapping[str, Array], chosen: Array, metric: FairMetric, config: Config
) -> Cells:
    """Return the cells of one metric sample."""
    found = []
    for regularization, size in product(config.regularization, config.step_size):
        plan = Plan(metric, regularization, step_schedule("constant", size, 0.0, config.record[-1]), config.record)
        flow = unfair_map(classifier, **audited, plan=plan)
        # Axes: model, step, audit sample.
        of = flow.original_loss[:, None][..., chosen], flow.losses[..., chosen]
        found.append(loss_ratio_test(*of, config.delta, config.alpha))
    return Cells.joined([_in_order(test) for test in found], 3)


def _in_order(test: RatioTest) -> Cells:
    """Return the tests (model, step, audit sample) with the axes FACTORS."""
    error = test.std / np.sqrt(test.n) / test.mean
    rejected = np.where(test.undefined, np.nan, test.rejected)
    return Cells(*(array.swapaxes(1, 2)[None] for array in (test.statistic, rejected, error)))


def _facts(cells: Cells) -> Iterator[dict[str, Any]]:
    """Yield the numbers of an experiment."""
    positive = cells.statistic > 0
    y = np.log(cells.statistic) if positive.all() else np.full(positive.shape, np.nan)
    yield {"statistic": "log_T_n", "value": y.mean()}
    yield {"statistic": "standard_error", "value": np.median(cells.error)}
    yield {"statistic": "rejected", "value": cells.rejected.mean()}
    yield {"statistic": "not_positive", "value": (~positive).sum()}
    yield from crossed.facts(y, cells.rejected, FACTORS)
