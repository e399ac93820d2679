r"""A logistic regression with a decision threshold for each group (Hardt et al. 2016), by fairlearn.

.. math:: \max_{h} \; \text{objective}(h) \quad \text{with} \quad M_g(h) = M_{g'}(h) \quad \text{for all groups } g, g',
          \qquad P(h = 1 \mid x, g) = q_g + \sum_{j=1}^{2} p_{gj}\, 1[s(x) > t_{gj}]

Here s is the margin of the regression of :mod:`pipeline.methods.logistic`, and M is the rate named by ``constraint`` on
the training rows. With a ``tolerance`` the groups' rates may differ by that much. The groups are the combinations of
all protected attributes, as in :mod:`pipeline.methods.reductions`; rows in neither group of an attribute are a third
level.

The decision is random and needs the group. As with the mixture of Reductions, we represent it by its probability.
Predictions threshold the probability at 1/2, so they meet the constraint only up to this rounding; the facts report the
difference. The classifier ``reads`` the attributes (architecture ``thresholds``).

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
"""A finite stand-in for an infinite threshold."""


@dataclass(frozen=True)
class Config(logistic.Config):
    """``constraint``, ``objective`` and ``grid_size`` of fairlearn's ThresholdOptimizer.

    ``tolerance``: None for equal rates, the only choice for equalized odds. The other settings are the regression's.
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
    """Fit thresholds for each of the first len(rngs) splits, on all its training rows. The fit is deterministic.

    Facts on the training rows, besides those of the regression: ``drawn``, the share of rows with a random decision;
    ``parity_drawn`` and ``parity``, the largest difference between the groups' shares of positive decisions, in
    expectation over random decisions and with rounded probabilities.
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
        # The attributes that the classifier reads are not part of the margin.
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
    """Compute the largest difference between the groups' means of ``positive`` (n,)."""
    means = np.bincount(group, positive) / np.bincount(group)
    return float(np.ptp(means))


def _thresholds(
    found: logistic.Fit, x: Array, y: Array, group: Array, config: Config
) -> tuple[dict[str, Array], Array]:
    """Return fairlearn's thresholds by group, in the order of their codes, and the probability of each row."""
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
    """fairlearn's interpolation: a constant with probability p_ignore, otherwise one of two thresholds."""
    ignored = found.get("p_ignore", 0.0)
    operations = (found.operation0, found.operation1)
    assert all(operation.operator == ">" for operation in operations), "fairlearn was not asked to flip"
    return {
        "threshold": np.clip([operation.threshold for operation in operations], -FURTHEST, FURTHEST),
        "weight": (1 - ignored) * np.array([found.p0, found.p1]),
        "constant": ignored * found.get("prediction_constant", 0.0),
    }
