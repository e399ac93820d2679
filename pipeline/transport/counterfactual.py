r"""Counterfactuals of a causal model: the same student with the other group's race or sex (Kusner et al. 2017).

.. math:: G(x) = \big(\text{Poisson}(e^{b_L + w_L u + a'^\top \beta_L}),\;
          N(b_G + w_G u + a'^\top \beta_G, \sigma^2)\big), \qquad u \sim p(u \mid \text{LSAT}, \text{UGPA}, a)

The model of ``law_school`` is fitted on all rows of the split, including those in neither group. A row's knowledge u is
inferred from its LSAT, UGPA and attributes a. LSAT and UGPA are then drawn with the attributes a' of the other group.
All other columns stay the same. The map needs data with one count, one grade and 0/1 columns of attributes.

The counterfactual is random: u, LSAT and UGPA are drawn, as published. Each trial has a seed, so the same rows in the
same order have the same images.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from fairness_audits.validation import Checked, Count, at_least, one_of
from fairness_audits.values import Array, Dataset, TransportMap
from pipeline.causal.law_school import LOADINGS, FittedStudents, Sampling, Students, estimates
from pipeline.counterparts import Between, groups, levels

SCORE, GRADE, OUTCOME = "LSAT", "UGPA", "ZFYA"
"""A count feature, which is rounded; a real-valued feature; and the data set's outcome."""
INFERENCES = ("map", "nuts")
SEEDS = 2**31
SPAN = 8.0
"""Standard deviations between the mode and either end of the grid."""
NODES = 129
TOLERANCE = 1e-10
MAXIMUM_ITERATIONS = 200


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """Settings of the fit.

    ``inference``: map (the posterior's mode) or nuts (posterior means of ``chains`` times ``draws`` draws, after
    ``warmup`` steps each).
    """

    inference: Annotated[str, one_of(INFERENCES)]
    chains: Count
    warmup: Count
    draws: Annotated[int, at_least(4)]


def fit_dataset(
    dataset: Dataset, between: Between, config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """Fit one causal model for each of the first len(rngs) splits, with both directions of its map.

    Facts: those of ``law_school.estimates``, the three loadings and sigma. Raises ValueError for data of another form,
    and for a map restricted to a part of the rows.
    """
    if between.given_label is not None or between.points is not None:
        raise ValueError(
            "the causal model is fitted on every row of the split: expected transport.given_label and transport.points "
            f"null, found {between.given_label} and {between.points}"
        )
    dummies = independent_dummies(dataset)
    trials = _students(dataset, between, dummies, len(rngs))
    seeds = [int(rng.integers(SEEDS)) for rng in rngs]
    sampling = Sampling(config.chains, config.warmup, config.draws) if config.inference == "nuts" else None
    found = estimates(trials, sampling, seeds)
    columns = groups(dataset, between, len(rngs)).columns
    codes = levels(dataset, between.attribute, between.source)
    ends = [_fixed(dataset, between.attribute, columns, code) for code in codes]
    forward, reverse = (
        _parameters(dataset, found, dummies, columns, start, end, rngs) for start, end in (ends, ends[::-1])
    )
    facts = [{**one.facts, **{name: float(one.coefficients[name]) for name in (*LOADINGS, "sigma")}} for one in found]
    return TransportMap(
        kind="counterfactual",
        parameters=forward,
        reverse=reverse if between.both else {},
        facts={name: np.array([fact[name] for fact in facts]) for name in facts[0]},
    )


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """Compute counterfactuals of rows[t] (n_t, k) under trial t's model: only score and grade change.

    Raises ValueError for rows that are not finite.
    """
    if not all(np.isfinite(own).all() for own in rows):
        raise ValueError("expected finite rows, found NaN or inf: the causal model infers nothing from them")
    return [
        _image({name: array[t] for name, array in parameters.items()}, np.asarray(own, dtype=float))
        for t, own in enumerate(rows)
    ]


def independent_dummies(dataset: Dataset) -> list[int]:
    """Return the numbers of linearly independent 0/1 columns: one level of each attribute is left out.

    Frequent levels are left out first. Raises ValueError for a data set without the columns of the law school data.
    """
    if missing := sorted({SCORE, GRADE} - set(dataset.feature_names) | {OUTCOME} - set(dataset.outcomes)):
        raise ValueError(
            f"the causal model is of the law-school data, and {dataset.name!r} has no {', '.join(missing)}: choose "
            "another transport for other data"
        )
    others = [c for c, name in enumerate(dataset.feature_names) if name not in (SCORE, GRADE)]
    independent: list[int] = []
    for column in sorted(others, key=lambda c: float(dataset.features[:, c].mean())):
        tried = np.column_stack([np.ones(len(dataset.label)), dataset.features[:, [*independent, column]]])
        if np.linalg.matrix_rank(tried.T @ tried) == tried.shape[1]:
            independent.append(column)
    return sorted(independent)


def _students(dataset: Dataset, between: Between, dummies: Sequence[int], trials: int) -> list[Students]:
    """Return every row of the split, in each trial."""
    features = dataset.features
    grade, score = (dataset.feature_names.index(name) for name in (GRADE, SCORE))
    return [
        Students(
            grade=features[rows, grade],
            score=np.rint(features[rows, score]),
            outcome=dataset.outcomes[OUTCOME][rows],
            attributes=features[rows][:, dummies],
        )
        for rows in dataset.rows(between.split)[:trials]
    ]


def _fixed(dataset: Dataset, attribute: str, columns: Array, code: int) -> Array:
    """Return a group's constant values in the columns that are not transported; 0 in the others: (d,)."""
    member = int(np.flatnonzero(dataset.protected[attribute] == code)[0])
    values = dataset.features[member].copy()
    values[columns] = 0
    return values


def _parameters(
    dataset: Dataset,
    found: Sequence[FittedStudents],
    dummies: Sequence[int],
    columns: Array,
    start: Array,
    end: Array,
    rngs: Sequence[np.random.Generator],
) -> dict[str, Array]:
    """Return the parameters of ``images`` in one direction: the trials' models on the transported columns.

    ``grade_coef``, ``score_coef`` (T, k) are 0 for columns without a dummy; ``grade_mean``, ``score_mean`` (T, 2) are
    the means at u = 0 of a row of zeros in the group it comes from, and in the group it is mapped to.
    """
    order = list(columns)
    trials = len(found)
    parameters: dict[str, Array] = {}
    for name, feature in (("grade", GRADE), ("score", SCORE)):
        column = dataset.feature_names.index(feature)
        coef = np.zeros((trials, dataset.features.shape[1]))
        coef[:, dummies] = [one.coefficients[f"{name}_coef"] for one in found]
        intercept = np.array([float(one.coefficients[f"{name}_intercept"]) for one in found])
        parameters[f"{name}_column"] = np.full(trials, order.index(column))
        parameters[f"{name}_coef"] = coef[:, columns]
        parameters[f"{name}_mean"] = intercept[:, None] + coef @ np.column_stack([start, end])
        parameters[f"{name}_loading"] = np.array([float(one.coefficients[f"{name}_loading"]) for one in found])
    parameters["sigma"] = np.array([float(one.coefficients["sigma"]) for one in found])
    parameters["seed"] = np.array([int(rng.integers(SEEDS)) for rng in rngs])
    return parameters


def _image(own: Mapping[str, Array], rows: Array) -> Array:
    """Compute the counterfactuals of rows (n, k) under one trial's model."""
    grade, score = int(own["grade_column"]), int(own["score_column"])
    at_zero, other = (
        Grades(
            grade_mean=rows @ own["grade_coef"] + own["grade_mean"][group],
            score_mean=rows @ own["score_coef"] + own["score_mean"][group],
            grade_loading=float(own["grade_loading"]),
            score_loading=float(own["score_loading"]),
            sigma=float(own["sigma"]),
        )
        for group in (0, 1)
    )
    u, probability = posterior(rows[:, grade], np.rint(rows[:, score]), at_zero)
    image, rng = rows.copy(), np.random.default_rng(int(own["seed"]))
    known = drawn(u, probability, rng)
    image[:, score] = rng.poisson(np.exp(other.score_mean + other.score_loading * known))
    image[:, grade] = rng.normal(other.grade_mean + other.grade_loading * known, other.sigma)
    return image


class Grades(NamedTuple):
    """Grade and score as functions of the knowledge u of n rows: means m_G, m_L (n,) at u = 0; loadings w; sigma."""

    grade_mean: Array
    score_mean: Array
    grade_loading: float
    score_loading: float
    sigma: float


def posterior(grade: Array, score: Array, model: Grades) -> tuple[Array, Array]:
    r"""Compute the posterior of the latent knowledge u given grades and scores, (n,) each.

    .. math:: u \sim N(0, 1), \qquad G \mid u \sim N(m_G + w_G u, \sigma^2), \qquad
              L \mid u \sim \text{Poisson}(e^{m_L + w_L u})

    The log density of u given (G, L) is strictly concave, so Newton's method finds its mode. The posterior is evaluated
    on an even grid around the mode, a few posterior standard deviations wide, where sums equal integrals up to
    rounding. Returns the grid (n, NODES) and the probabilities of its values. Source: Kusner et al. 2017, section 5,
    model "level 2".
    """
    mode, precision = _mode(grade, score, model)
    u = mode[:, None] + np.linspace(-SPAN, SPAN, NODES) / np.sqrt(precision)[:, None]
    residual = (grade - model.grade_mean)[:, None] - model.grade_loading * u
    log_rate = model.score_mean[:, None] + model.score_loading * u
    log_density = -(u**2 + (residual / model.sigma) ** 2) / 2 + score[:, None] * log_rate - np.exp(log_rate)
    probability = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return u, probability / probability.sum(axis=1, keepdims=True)


def drawn(u: Array, probability: Array, rng: np.random.Generator) -> Array:
    """Draw one value from each row's posterior: a node by its probability, and a position in its cell: (n,)."""
    below = probability.cumsum(axis=1)
    chosen = (rng.random(len(u))[:, None] * below[:, -1:] > below).sum(axis=1)
    width = u[:, 1] - u[:, 0]
    return u[np.arange(len(u)), chosen] + width * (rng.random(len(u)) - 0.5)


def _mode(grade: Array, score: Array, model: Grades) -> tuple[Array, Array]:
    """Find the mode of u for each row and the curvature of its log density there: (n,) each.

    A step raises the Poisson rate by at most a factor of e, since a full step from far below could overflow.
    """
    w_g, w_l, variance = model.grade_loading, model.score_loading, model.sigma**2
    u = np.zeros(len(grade))
    for _ in range(MAXIMUM_ITERATIONS):
        rate = np.exp(model.score_mean + w_l * u)
        slope = -u + w_g * (grade - model.grade_mean - w_g * u) / variance + w_l * (score - rate)
        precision = 1 + w_g**2 / variance + w_l**2 * rate
        step = slope / precision
        step /= np.maximum(1, w_l * step)
        u = u + step
        if (np.abs(step) < TOLERANCE * (1 + np.abs(u))).all():
            break
    return u, 1 + w_g**2 / variance + w_l**2 * np.exp(model.score_mean + w_l * u)
