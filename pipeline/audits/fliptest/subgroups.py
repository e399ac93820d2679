r"""Subgroups in which a classifier's output depends most on a protected attribute, in the manner of FairTest.

One half of the rows grows a tree (``guided_tree``) whose nodes are conjunctions of bounds on the features; the other
half, which had no part in it, says how strong the association between output and attribute is in each node. With m
contexts tested, every interval has level 1 - alpha / m and every p-value is multiplied by m, so that all of them hold
together with the stated confidence. The root, all rows, is reported where its interval excludes 0; a subgroup where its
interval lies above those of all the contexts that it is a part of, in absolute value. What is not reported is in the
rows all the same.

Contexts are bounds on the features: people are compared with people of like features. A feature that is itself unlike
between the groups therefore explains a difference away (Black et al. 2020, section 5.5).

Source: Tramer et al. 2017.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, cast

import numpy as np

from pipeline.audits.fliptest.decisions import judged
from pipeline.audits.fliptest.guided_tree import (
    Context,
    Limits,
    correlation,
    grown,
    interval,
    nearest_to_zero,
    p_value,
    products,
)
from pipeline.fields import Checked, Share, Size, at_least, one_of
from pipeline.types import Array, AuditResult, Classifier, Dataset, Split

OUTPUTS = ("decision", "randomised", "score")
ROOT = "all rows"


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """What is searched, and how far.

    ``attribute``: the protected attribute. ``split``: train or test, the rows that are searched. ``output``: decision,
    the classifier's; randomised, 1 with probability P(y = 1 | x); or score. ``held_out``: share of the rows that tests
    the contexts. ``confidence`` of all intervals together. The tree's ``depth``, ``minimum_leaf`` rows in a leaf and
    ``bins`` of a feature.
    """

    attribute: str
    split: Literal["train", "test"]
    output: Annotated[str, one_of(OUTPUTS)]
    held_out: Share
    confidence: Share
    depth: Size
    minimum_leaf: Annotated[int, at_least(4)]
    bins: Annotated[int, at_least(2)]

    @property
    def limits(self) -> Limits:
        return Limits(self.depth, self.minimum_leaf, self.bins, self.confidence)


class Searched(NamedTuple):
    """Features x (n, d) in the dataset's units, output y (n,) and group z (n,), both about 0."""

    x: Array
    y: Array
    z: Array


@dataclass(frozen=True)
class Findings:
    """What the held-out rows say of m contexts, (m,) each: NaN where a context is not tested; ``tested`` counts them.

    ``above``: the interval, in absolute value, lies above those of every context around it, and above 0.
    """

    tested: int
    size: Array
    correlation: Array
    low: Array
    high: Array
    p: Array
    above: Array


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Search every repetition's rows; the contexts are in the order of their effect on the held-out rows.

    Rows in neither group of the attribute are left out. Raises ValueError for an attribute that the dataset does not
    have, and where the two halves are too small for a test.
    """
    import pandas as pd

    if config.attribute not in dataset.protected:
        raise ValueError(f"expected audit.attribute among {sorted(dataset.protected)}, found {config.attribute!r}")
    batch = dataset.batch(cast(Split, config.split), classifier.repetitions)
    numbers = {"train": dataset.train, "test": dataset.test}[config.split]
    pairs = two_valued(dataset.features)
    rows: list[dict[str, Any]] = []
    for r, rng in enumerate(rngs[: classifier.repetitions]):
        inside = np.flatnonzero(batch.protected[config.attribute][r] >= 0)
        order = inside[rng.permutation(len(inside))]
        y = _output(classifier, r, batch.features[r][order], config.output, rng)
        searched = Searched(
            dataset.features[numbers[r][order]],
            # Centred, so that sums of products lose no digits to the mean.
            y - y.mean(),
            batch.protected[config.attribute][r][order] - 0.5,
        )
        cut = len(order) - round(config.held_out * len(order))
        if min(cut, len(order) - cut) < config.minimum_leaf:
            raise ValueError(
                f"expected at least audit.minimum_leaf={config.minimum_leaf} rows in each half, found {cut} and "
                f"{len(order) - cut} in repetition {r}: search more rows, or smaller leaves"
            )
        grew, held_out = (Searched(*(array[part] for array in searched)) for part in (slice(cut), slice(cut, None)))
        contexts = grown(*grew, config.limits)
        found = findings(contexts, held_out, config)
        named = [described(context, dataset.feature_names, pairs) for context in contexts]
        rows += [{"repetition": r, **row} for row in _rows(named, contexts, found, summed(contexts, grew))]
    return AuditResult("subgroups", dataset.name, classifier.method, dataset.origin, pd.DataFrame(rows))


def summed(contexts: Sequence[Context], rows: Searched) -> Array:
    """Sums of the six products of output and group over each context's rows: (6, m)."""
    inside = [context.contains(rows.x) for context in contexts]
    return np.stack([products(rows.y[c], rows.z[c]).sum(axis=1) for c in inside], axis=1)


def findings(contexts: Sequence[Context], held_out: Searched, config: Config) -> Findings:
    """The contexts' associations on rows that had no part in growing the tree.

    Tested are the contexts in which output and group vary among at least half as many rows as a leaf has.
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
            # Parents stand before their children, so the parent's own bound is complete.
            around[number] = max(around[context.parent], np.nan_to_num(far[context.parent]))
            above[number] &= near[number] > around[number]
    return Findings(tested, size, r, low, high, p_value(r, size), above)


def _output(classifier: Classifier, r: int, x: Array, output: str, rng: np.random.Generator) -> Array:
    """The output (n,) of repetition r's classifier on rows x (n, d)."""
    coin = rng.random(len(x)) if output == "randomised" else None
    score, decision = judged(classifier, r, x, coin=coin)
    return score if output == "score" else decision.astype(float)


def _rows(names: Sequence[str], contexts: Sequence[Context], found: Findings, grew: Array) -> list[dict[str, Any]]:
    """The tidy rows of one repetition, the largest effect first; contexts that are not tested come last.

    ``grew``: the sums over the rows that grew the tree.
    """
    effect = np.nan_to_num(nearest_to_zero(found.low, found.high), nan=-1.0)
    p_adjusted = np.minimum(1.0, found.p * max(1, found.tested))
    rows: list[dict[str, Any]] = []
    for m in np.lexsort((-np.nan_to_num(np.abs(found.correlation)), -effect)):
        context = contexts[m]
        parent = np.nan if context.parent is None else abs(found.correlation[context.parent])
        named = {"context": names[m], "depth": context.depth}
        grown_on = {"size": grew[0, m], "correlation": correlation(grew[:, m])}
        held_out = {
            "size": found.size[m],
            "correlation": found.correlation[m],
            "ci_low": found.low[m],
            "ci_high": found.high[m],
            "p_value": found.p[m],
            "p_adjusted": p_adjusted[m],
            "reported": float(found.above[m]),
            "gain": abs(found.correlation[m]) - parent,
        }
        for part, values in (("train", grown_on), ("held out", held_out)):
            rows += [{**named, "part": part, "statistic": name, "value": float(v)} for name, v in values.items()]
    whole = {"context": "", "depth": np.nan, "part": "held out", "statistic": "contexts_tested"}
    return [*rows, {**whole, "value": float(found.tested)}]


def two_valued(features: Array) -> dict[int, tuple[float, float]]:
    """The smaller and the larger value of each column of features (n, d) that has two values, by its number."""
    ends = zip(features.min(axis=0), features.max(axis=0), strict=True)
    return {
        column: (float(low), float(high))
        for column, (low, high) in enumerate(ends)
        if low < high and ((features[:, column] == low) | (features[:, column] == high)).all()
    }


def described(context: Context, names: Sequence[str], pairs: Mapping[int, tuple[float, float]]) -> str:
    """A context as a predicate in the dataset's units: "2 < arrests <= 5 and gang = 1"; ``pairs`` of ``two_valued``."""
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
