r"""Reductions: a randomized mixture of logistic regressions under equalized odds (Agarwal et al. 2018), by fairlearn.

.. math:: \min_Q\; P(h(X) \ne Y) \quad \text{with} \quad
          |P(h(X) = 1 \mid G = g, Y = y) - P(h(X) = 1 \mid Y = y)| \le \epsilon \quad \text{for all } g, y

over distributions Q of classifiers h. The groups g are the combinations of all protected attributes. The exponentiated
gradient algorithm plays a game between multipliers of the constraints, bounded by 1 / epsilon, and a learner that
responds with a classifier of reweighted and relabelled rows, here an L2-penalised logistic regression. The result draws
one member k with probability w_k for each prediction. An audit needs a loss and a gradient, so we represent the mixture
by its mean probability,

.. math:: P(y = 1 \mid x) = \sum_k w_k\, \sigma(c_k^\top x + b_k), \qquad w_k > 0,

whose cross entropy is differentiated through the sum (architecture ``logistic_mixture``). Predictions threshold this
mean at 1/2. They are not drawn, so the audit is deterministic.

Class balance: the learner weights its two classes by the inverse of their *numbers of rows* after relabelling, times
the weight of each row, as scikit-learn's ``class_weight="balanced"`` did at the time of the study. Current versions
count rows by their weights, which undoes the game's reweighting between the classes (on Adult the audit's ratio at 500
steps is then 3.1 instead of 5.6; the published ratio is 5.7).

Source: Maity et al. 2021, appendices F.3.3 and G.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.models import stacked
from fairness_audits.validation import Checked, Count, Positive, Share
from fairness_audits.values import Array, Batch, Classifier, Dataset, Generators

CERTAIN = float(-np.log(np.finfo(float).eps))
"""Log-odds of a certain decision: the margin of a member that gives every row the same label."""


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``difference_bound`` epsilon; ``max_iter``, the maximum number of rounds; ``class_balance`` of the learner.

    ``inverse_penalty`` is C of the logistic regression, sum of losses + |c|^2 / (2 C), solved by liblinear as in the
    authors' code: it stops at a relative tolerance of 1e-4 and also penalises the intercept.
    """

    difference_bound: Share
    max_iter: Count
    class_balance: bool
    inverse_penalty: Positive


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Play the game on the first ``len(rngs)`` splits, one after the other. The algorithm is deterministic.

    ``facts``: the number of ``members`` of positive weight, the number of constant members, the number of calls of the
    learner, the final ``duality_gap``, and the largest ``violation`` |...| above on the training rows, for the mixture
    with random labels.
    """
    data = dataset.batch("train", len(rngs))
    played = [_play(data, r, config) for r in range(len(rngs))]
    # Repetitions with fewer members than others get members of weight 0.
    parameters = {name: stacked([members[name] for members, _ in played]) for name in played[0][0]}
    facts = {name: np.array([facts[name] for _, facts in played]) for name in played[0][1]}
    return Classifier.of("reductions", dataset, "logistic_mixture", parameters, facts=facts)


def crossed_groups(protected: Mapping[str, Array]) -> Array:
    """Return a code from 0 for each occurring combination of the attributes; rows in neither group are a third level.

    Codes ascend with sum_i 3^i (a_i + 1). If all combinations of two binary attributes occur, this is sum_i 2^i a_i.
    """
    combined = np.sum([(values + 1) * 3**i for i, values in enumerate(protected.values())], axis=0)
    return np.asarray(np.unique(combined, return_inverse=True)[1])


def learner(config: Config) -> Any:
    """The logistic regression that responds to the multipliers, with the class weights of the module's docstring."""
    from sklearn.linear_model import LogisticRegression

    class ClassBalancedRegression(LogisticRegression):
        def fit(self, X: Array, y: Array, sample_weight: Array) -> LogisticRegression:
            y = np.asarray(y)
            class_weight = len(y) / (2 * np.bincount(y, minlength=2))
            return super().fit(X, y, np.asarray(sample_weight) * class_weight[y])

    regression = ClassBalancedRegression if config.class_balance else LogisticRegression
    return regression(C=config.inverse_penalty, solver="liblinear")


def _play(data: Batch, r: int, config: Config) -> tuple[dict[str, Array], dict[str, float]]:
    """Return the members of repetition ``r`` with positive weight, and facts about the game."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    # At the time of the study, one parameter of fairlearn bounded both the violation and the multipliers.
    epsilon = config.difference_bound
    game = ExponentiatedGradient(
        learner(config), EqualizedOdds(difference_bound=epsilon), eps=epsilon, max_iter=config.max_iter
    )
    groups = crossed_groups({name: values[r] for name, values in data.protected.items()})
    with warnings.catch_warnings():
        # These libraries warn about future versions on every call; their versions are pinned here.
        warnings.simplefilter("ignore", category=FutureWarning)
        warnings.simplefilter("ignore", category=DeprecationWarning)
        game.fit(data.features[r], data.label[r], sensitive_features=groups)
    weights = game.weights_[game.weights_ > 0]
    members = [game.predictors_[k] for k in weights.index]
    weight = weights.to_numpy() / weights.sum()
    drawn = weight @ np.stack([member.predict(data.features[r]) for member in members])
    coefficients = [_coefficients(member, data.features.shape[-1]) for member in members]
    facts = {
        "members": float(len(members)),
        "constant_members": float(sum(not hasattr(member, "coef_") for member in members)),
        "learner_calls": float(game.n_oracle_calls_),
        "duality_gap": float(game.best_gap_),
        "violation": largest_violation(drawn, data.label[r], groups),
    }
    coef, intercept = zip(*coefficients, strict=True)
    return {"weight": weight, "coef": np.stack(coef), "intercept": np.array(intercept)}, facts


def largest_violation(positive: Array, label: Array, groups: Array) -> float:
    """Compute max_{g, y} |P(h = 1 | G = g, Y = y) - P(h = 1 | Y = y)| from probabilities ``positive`` (n,)."""
    return max(
        abs(positive[(label == y) & (groups == g)].mean() - positive[label == y].mean())
        for y in np.unique(label)
        for g in np.unique(groups[label == y])
    )


def _coefficients(member: Any, inputs: int) -> tuple[Array, float]:
    """Return coefficients and intercept; fairlearn's constant classifier has the margin +-CERTAIN."""
    if hasattr(member, "coef_"):
        return member.coef_[0], float(member.intercept_[0])
    return np.zeros(inputs), CERTAIN if member.constant == 1 else -CERTAIN
