r"""Subgroups in which a classifier's output depends most on a protected attribute, as in FairTest.

One half of the rows grows a decision tree (:func:`grown`). Its nodes are *contexts*, conjunctions of bounds on the
features. The held-out half estimates the association between output y and group z in {0, 1} in each node:

.. math:: r = \operatorname{corr}(y, z), \qquad \operatorname{artanh} r \pm \frac{\Phi^{-1}(1 - \alpha/2)}{\sqrt{n - 3}}

The interval is Fisher's. The *effect* is its end nearest to 0, or 0 if it contains 0. With m tested contexts, every
interval has level 1 - alpha / m and every p-value is multiplied by m, so they hold simultaneously. The root (all rows)
is reported if its interval excludes 0. A subgroup is reported if its interval lies above the intervals of all contexts
that contain it, in absolute value. The rows also contain the contexts that are not reported.

Contexts are bounds on the features, so people are compared with people of similar features. A feature that differs
between the groups therefore explains a difference away (Black et al. 2020, section 5.5).

Source: Tramer et al. 2017, with the choices of their program: depth, smallest leaf, bins, mean of the children.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, cast

import numpy as np
from scipy.special import ndtr, ndtri

from fairness_audits.errors import InvalidInput
from fairness_audits.validation import Checked, Share, Size, at_least, one_of
from fairness_audits.values import Array, Classifier, Dataset, Split
from pipeline.predictions import judged
from pipeline.values import AuditResult

ROOT = "all rows"
INFINITE = (-np.inf, np.inf)
ROUNDING = 1e-9
"""Variances below this share of the mean square are rounding errors."""


@dataclass(frozen=True)
class Limits(Checked, of="audit"):
    """``depth`` of the tree, rows of its smallest leaf, ``bins`` of a feature, ``confidence`` of all intervals."""

    depth: Size
    minimum_leaf: Annotated[int, at_least(4)]
    bins: Annotated[int, at_least(2)]
    confidence: Share


@dataclass(frozen=True)
class Config(Limits):
    """Settings of the search.

    ``attribute``: the protected attribute. ``split``: searched rows, train or test. ``output``: decision (the
    classifier's), randomised (1 with probability P(y = 1 | x)) or score. ``held_out``: share of rows that test the
    contexts.
    """

    attribute: str
    split: Literal["train", "test"]
    output: Annotated[str, one_of(("decision", "randomised", "score"))]
    held_out: Share


@dataclass(frozen=True)
class Context:
    """A node: ``bounds`` (low, high] by column number, ``depth``, and its parent's number, None for the root."""

    bounds: dict[int, tuple[float, float]]
    depth: int
    parent: int | None

    def contains(self, x: Array) -> Array:
        """Return a mask (n,) of the rows of x (n, d) in this context."""
        inside = np.ones(len(x), dtype=bool)
        for column, (low, high) in self.bounds.items():
            inside &= (x[:, column] > low) & (x[:, column] <= high)
        return inside


@dataclass(frozen=True)
class Cut:
    """A split of a node at ``column`` <= ``value``; ``better``: a child has a larger effect than the node."""

    column: int
    value: float
    score: float
    better: bool


def grown(x: Array, y: Array, z: Array, limits: Limits) -> list[Context]:
    """Grow the tree for rows x (n, d), output y (n,) and group z (n,); return its contexts, parents before children.

    A node is split where the mean effect of its two children is largest. Splits with a child of larger effect than the
    node are preferred.
    """
    # Centred, so that sums of products lose no digits to the means.
    y, z = y - y.mean(), z - z.mean()
    bins = [binned(column, limits.bins) for column in x.T]
    contexts = [Context({}, 0, None)]
    pending = [(0, np.arange(len(x)))]
    while pending:
        number, rows = pending.pop(0)
        node = contexts[number]
        if node.depth == limits.depth:
            continue
        split = best_split(rows, bins, y, z, limits)
        if split is None:
            continue
        left = x[rows, split.column] <= split.value
        low, high = node.bounds.get(split.column, INFINITE)
        for bounds, members in (((low, split.value), rows[left]), ((split.value, high), rows[~left])):
            contexts.append(Context({**node.bounds, split.column: bounds}, node.depth + 1, number))
            pending.append((len(contexts) - 1, members))
    return contexts


def binned(values: Array, bins: int) -> tuple[Array, Array]:
    """Return the cuts of a feature (c,), at most ``bins`` - 1, and each row's bin (n,), the number of cuts below it.

    A feature with few values is cut at each value except the last, other features at their quantiles.
    """
    different = np.unique(values)
    if len(different) > bins:
        different = np.unique(np.quantile(values, np.arange(1, bins) / bins, method="lower"))
        cuts = different[different < values.max()]
    else:
        cuts = different[:-1]
    return cuts, np.searchsorted(cuts, values, side="left")


def best_split(rows: Array, bins: Sequence[tuple[Array, Array]], y: Array, z: Array, limits: Limits) -> Cut | None:
    """Return the best split of the node with these ``rows``, or None if none has an effect and large leaves."""
    each = products(y[rows], z[rows])
    own = float(effects(each.sum(axis=1), limits.confidence))
    best: Cut | None = None
    for column, (cuts, bin_of) in enumerate(bins):
        if len(cuts) == 0:
            continue
        sums = np.stack([np.bincount(bin_of[rows], weights=w, minlength=len(cuts) + 1) for w in each])
        left = sums.cumsum(axis=1)[:, :-1]
        right = sums.sum(axis=1, keepdims=True) - left
        large = np.minimum(left[0], right[0]) >= limits.minimum_leaf
        sides = np.stack([effects(side, limits.confidence) for side in (left, right)])
        score = np.where(large, sides.mean(axis=0), 0.0)
        better = sides.max(axis=0) > own
        for cut in np.flatnonzero(score > 0):
            found = Cut(column, float(cuts[cut]), float(score[cut]), bool(better[cut]))
            if best is None or (found.better, found.score) > (best.better, best.score):
                best = found
    return best


def products(y: Array, z: Array) -> Array:
    """Return 1, y, z, y^2, z^2 and y z for every row: (6, n). Their sums give the correlation."""
    return np.stack([np.ones(len(y)), y, z, y * y, z * z, y * z])


def correlation(sums: Array) -> Array:
    """Compute r from sums of the six products, (6, ...) -> (...); NaN if y or z does not vary."""
    n, y, z, yy, zz, yz = sums
    y_variance, z_variance = n * yy - y**2, n * zz - z**2
    # A constant has a variance of rounding errors.
    varies = (y_variance > ROUNDING * n * yy) & (z_variance > ROUNDING * n * zz)
    scale = np.sqrt(np.where(varies, y_variance * z_variance, 1.0))
    return np.where(varies, np.clip((n * yz - y * z) / scale, -1, 1), np.nan)


def effects(sums: Array, confidence: float) -> Array:
    """Compute the effect from sums of the six products, (6, ...) -> (...); 0 if r is undefined."""
    low, high = interval(correlation(sums), sums[0], confidence)
    return np.where(np.isnan(low), 0.0, nearest_to_zero(low, high))


def nearest_to_zero(low: Array, high: Array) -> Array:
    """Compute the distance of an interval from 0; 0 if it contains 0, NaN if it is undefined."""
    return np.maximum(np.maximum(low, -high), 0.0)


def interval(r: Array, n: Array, confidence: float) -> tuple[Array, Array]:
    """Compute Fisher's interval of correlations r over n rows each; NaN below four rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        half = -ndtri((1 - confidence) / 2) / np.sqrt(np.where(n > 3, n - 3.0, np.nan))
        middle = np.arctanh(r)
        return np.tanh(middle - half), np.tanh(middle + half)


def p_value(r: Array, n: Array) -> Array:
    """Compute two-sided p-values of r = 0, by the same normal limit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 2 * ndtr(-np.abs(np.arctanh(r)) * np.sqrt(np.where(n > 3, n - 3.0, np.nan)))


class Searched(NamedTuple):
    """Features x (n, d) in the data set's units; output y (n,) and group z (n,), both centred."""

    x: Array
    y: Array
    z: Array


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Search every repetition's rows; contexts are ordered by their effect on the held-out rows.

    Rows in neither group of the attribute are left out. Raises InvalidInput for an attribute that the data set does not
    have, and if the two halves are too small for a test.
    """
    if config.attribute not in dataset.protected:
        problem = f"expected audit.attribute among {sorted(dataset.protected)}, found {config.attribute!r}"
        raise InvalidInput(problem, source=dataset.name, option="attribute", column=config.attribute)
    batch = dataset.batch(cast(Split, config.split), classifier.repetitions)
    numbers = {"train": dataset.train, "test": dataset.test}[config.split]
    pairs = two_valued(dataset.features)
    rows: list[dict[str, Any]] = []
    for r, rng in enumerate(rngs[: classifier.repetitions]):
        inside = np.flatnonzero(batch.protected[config.attribute][r] >= 0)
        order = inside[rng.permutation(len(inside))]
        coin = rng.random(len(order)) if config.output == "randomised" else None
        score, decision = judged(classifier, r, batch.features[r][order], coin=coin)
        y = score if config.output == "score" else decision.astype(float)
        searched = Searched(
            dataset.features[numbers[r][order]],
            # Centred, so that sums of products lose no digits to the mean.
            y - y.mean(),
            batch.protected[config.attribute][r][order] - 0.5,
        )
        cut = len(order) - round(config.held_out * len(order))
        if min(cut, len(order) - cut) < config.minimum_leaf:
            raise InvalidInput(
                f"expected at least audit.minimum_leaf={config.minimum_leaf} rows in each half, found {cut} and "
                f"{len(order) - cut} in repetition {r}",
                source=dataset.name,
                option="minimum_leaf",
                remedy="Search more rows, or smaller leaves",
            )
        grew, held_out = (Searched(*(array[part] for array in searched)) for part in (slice(cut), slice(cut, None)))
        contexts = grown(*grew, config)
        named = [described(context, dataset.feature_names, pairs) for context in contexts]
        found = findings(contexts, held_out, config)
        rows += [{"repetition": r, **row} for row in _rows(named, contexts, found)]
    return AuditResult.of("subgroups", dataset, classifier, rows)


def summed(contexts: Sequence[Context], rows: Searched) -> Array:
    """Sum the six products of output and group over each context's rows: (6, m)."""
    inside = [context.contains(rows.x) for context in contexts]
    return np.stack([products(rows.y[c], rows.z[c]).sum(axis=1) for c in inside], axis=1)


def findings(contexts: Sequence[Context], held_out: Searched, config: Config) -> dict[str, Array]:
    """Compute the associations of m contexts on held-out rows: statistics (m,) by name.

    A context is tested if output and group vary in it and it has at least half the rows of a leaf; otherwise its
    statistics are NaN. ``reported``: the interval, in absolute value, lies above 0 and above the intervals of all
    contexts that contain it.
    """
    sums = summed(contexts, held_out)
    size = sums[0]
    r = np.where(2 * size >= config.minimum_leaf, correlation(sums), np.nan)
    tested = int(np.isfinite(r).sum())
    low, high = interval(r, size, 1 - (1 - config.confidence) / max(1, tested))
    near, far = nearest_to_zero(low, high), np.maximum(np.abs(low), np.abs(high))
    above = near > 0
    around = np.zeros(len(contexts))
    for number, context in enumerate(contexts):
        if context.parent is not None:
            # Parents come before their children, so the parent's bound is complete.
            around[number] = max(around[context.parent], np.nan_to_num(far[context.parent]))
            above[number] &= near[number] > around[number]
    p = p_value(r, size)
    return {
        "size": size,
        "correlation": r,
        "ci_low": low,
        "ci_high": high,
        "p_value": p,
        "p_adjusted": np.minimum(1.0, p * max(1, tested)),
        "reported": above,
    }


def _rows(names: Sequence[str], contexts: Sequence[Context], found: dict[str, Array]) -> list[dict[str, Any]]:
    """Return the tidy rows of one repetition, largest effect first; untested contexts come last."""
    effect = np.nan_to_num(nearest_to_zero(found["ci_low"], found["ci_high"]), nan=-1.0)
    rows = []
    for m in np.lexsort((-np.nan_to_num(np.abs(found["correlation"])), -effect)):
        context = {"context": names[m], "depth": contexts[m].depth, "part": "held out"}
        rows += [{**context, "statistic": name, "value": float(values[m])} for name, values in found.items()]
    return rows


def two_valued(features: Array) -> dict[int, tuple[float, float]]:
    """Return the two values of each binary column of features (n, d), by column number."""
    ends = zip(features.min(axis=0), features.max(axis=0), strict=True)
    return {
        column: (float(low), float(high))
        for column, (low, high) in enumerate(ends)
        if low < high and ((features[:, column] == low) | (features[:, column] == high)).all()
    }


def described(context: Context, names: Sequence[str], pairs: Mapping[int, tuple[float, float]]) -> str:
    """Return a context as text, "2 < arrests <= 5 and gang = 1"; ``pairs`` come from ``two_valued``."""
    parts = []
    for column, (low, high) in context.bounds.items():
        name = names[column]
        if column in pairs:
            parts.append(f"{name} = {pairs[column][int(low >= pairs[column][0])]:.6g}")
        elif np.isinf(low):
            parts.append(f"{name} <= {high:.6g}")
        else:
            parts.append(f"{name} > {low:.6g}" if np.isinf(high) else f"{low:.6g} < {name} <= {high:.6g}")
    return " and ".join(parts) or ROOT
