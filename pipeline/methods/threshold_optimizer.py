r"""A logistic regression whose decision has thresholds of each group's own (Hardt et al. 2016), by fairlearn.

.. math:: \max_{h} \; \text{objective}(h) \quad \text{with} \quad M_g(h) = M_{g'}(h) \quad \text{for all groups } g, g',
          \qquad P(h = 1 \mid x, g) = q_g + \sum_{j=1}^{2} p_{gj}\, 1[s(x) > t_{gj}]

s is the margin of the regression of :mod:`pipeline.methods.logistic`, M the rate that ``constraint`` names, on the
training rows; with a ``tolerance`` its values may be so far apart. The groups are every protected attribute crossed
with every other, as in :mod:`pipeline.methods.reductions`; whoever is in neither group of an attribute is in a third.

The decision is drawn, and needs the group. As the mixture of Reductions it stands here for its probability, which
predictions threshold at 1/2: they are not drawn, and meet the constraint as nearly as the rounding lets them, which the
facts tell. The classifier ``reads`` the attributes (architecture ``thresholds``).

Source: Hardt, Price and Srebro 2016, "Equality of opportunity in supervised learning", section 3.2.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fairness_audits.validation import Count, Share, one_of
from fairness_audits.values import Array, Classifier, Dataset, Generators
from pipeline.methods import logistic
from pipeline.methods.reductions import crossed_groups

CONSTRAINTS = ("demographic_parity", "true_positive_rate_parity", "false_positive_rate_parity", "equalized_odds")
OBJECTIVES = ("accuracy_score", "balanced_accuracy_score")
FURTHEST = float(np.finfo(float).max)
"""Stands for an infinite threshold."""


@dataclass(frozen=True)
class Config(logistic.Config):
    """``constraint`` and ``objective`` of fairlearn's ThresholdOptimizer, the former met on ``grid_size`` values.

    ``tolerance``: None for equal rates; equalized odds have no other. The rest is the regression's.
    """

    constraint: Annotated[str, one_of(CONSTRAINTS)]
    objective: Annotated[str, one_of(OBJECTIVES)]
    grid_size: Count
    tolerance: Share | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tolerance is not None and self.constraint == "equalized_odds":
            raise ValueError(f"equalized_odds has no tolerance: expected null, found {self.tolerance}")


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Thresholds for each of the first len(rngs) splits, on all its training rows; nothing is drawn.

    Facts beside those of the regression, of the training rows: ``drawn``, the share whose label a coin decides;
    ``parity_drawn`` and ``parity``, how far the groups' shares of positive decisions are apart when the labels are
    drawn, in expectation, and when the probability is rounded.
    """
    data = dataset.batch("train", len(rngs))
    found = logistic.fits(data, config)
    names = tuple(data.protected)
    by_group: list[dict[str, Array]] = []
    facts = []
    for r, one in enumerate(found):
        protected = {name: data.protected[name][r] for name in names}
        codes = crossed_groups(protected)
        rules, probability = _thresholds(one, data.features[r], data.label[r], codes, config)
        _, first = np.unique(codes, return_index=True)
        group = np.stack([protected[name][first] for name in names], axis=1).astype(float)
        by_group.append({"group": group, **rules})
        drawn = (probability > 0) & (probability < 1)
        facts.append((drawn.mean(), spread(probability, codes), spread((probability > 0.5).astype(float), codes)))
    most = max(len(own["group"]) for own in by_group)
    regression = logistic.classifier("", dataset, found)
    inputs = dataset.with_inputs(names).feature_names
    coef = regression.parameters["coef"][:, 0]
    parameters = {
        # What is read beside the features has no part in the margin.
        "coef": np.pad(coef, ((0, 0), (0, len(inputs) - coef.shape[1]))),
        "intercept": regression.parameters["intercept"][:, 0],
        "read": np.tile([inputs.index(name) for name in names], (len(found), 1)),
        **{
            name: np.stack([own[name][np.minimum(np.arange(most), len(own[name]) - 1)] for own in by_group])
            for name in by_group[0]
        },
    }
    all_facts = {**regression.facts, **dict(zip(("drawn", "parity_drawn", "parity"), np.array(facts).T, strict=True))}
    return Classifier.of("threshold_optimizer", dataset, "thresholds", parameters, facts=all_facts, reads=names)


def spread(positive: Array, group: Array) -> float:
    """How far the groups' means of ``positive`` (n,) are apart at most."""
    means = np.bincount(group, positive) / np.bincount(group)
    return float(np.ptp(means))


def _thresholds(
    found: logistic.Fit, x: Array, y: Array, group: Array, config: Config
) -> tuple[dict[str, Array], Array]:
    """What fairlearn finds, by group in the order of their codes, and the probability of each row."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression()
    regression.coef_, regression.intercept_ = found.coef[None], np.array([found.intercept])
    regression.classes_ = np.array([0, 1])
    optimizer = ThresholdOptimizer(
        estimator=regression, prefit=True, predict_method="decision_function", constraints=config.constraint,
        objective=config.objective, grid_size=config.grid_size, tol=config.tolerance,
    )  # fmt: skip
    optimizer.fit(x, y, sensitive_features=group)
    by_group = optimizer.interpolated_thresholder_.interpolation_dict
    rules = [_rule(by_group[code]) for code in sorted(by_group)]
    probability = optimizer._pmf_predict(x, sensitive_features=group)[:, 1]
    return {name: np.array([rule[name] for rule in rules]) for name in rules[0]}, probability


def _rule(found: Any) -> dict[str, Any]:
    """fairlearn's interpolation of two operations: with chance p_ignore a constant, else one of two thresholds."""
    ignored = found.get("p_ignore", 0.0)
    operations = (found.operation0, found.operation1)
    assert all(operation.operator == ">" for operation in operations), "fairlearn was not asked to flip"
    return {
        "threshold": np.clip([operation.threshold for operation in operations], -FURTHEST, FURTHEST),
        "weight": (1 - ignored) * np.array([found.p0, found.p1]),
        "constant": ignored * found.get("prediction_constant", 0.0),
    }
