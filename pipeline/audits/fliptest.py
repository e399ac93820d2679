"""FlipTest: flipsets and transparency reports of classifiers, between two groups matched by a transport map.

Source: Black et al. 2020, Definitions 1 and 2; the computations are in ``pipeline.flipsets``. Intervals and p-values
take the map as given. How many flips a map's own error makes is seen where this audit is made of two groups with the
same distribution: the study's block ``identical``, section 5.1 of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, cast, get_args

import numpy as np

from pipeline.audits.decisions import decisions, scores, tossed
from pipeline.flipsets.intervals import size_intervals
from pipeline.flipsets.sets import Flipsets
from pipeline.flipsets.transparency import Precision, transparency_report
from pipeline.transport.between import Mapped, directions, mapped
from pipeline.transport.quality import healthy, ks, nearest_values
from pipeline.types import Array, AuditResult, Classifier, Dataset, Split, TransportMap

DECISIONS = ("threshold", "randomised")


@dataclass(frozen=True)
class Config:
    """What is audited, and how precisely.

    ``split``: train, test or all, the rows that are mapped. ``decision``: threshold, 1[score >= ``threshold``] and
    for None the classifier's own; or randomised, 1 with probability P(y = 1 | x), where the coin of a person is tossed
    once: it decides about the person and about the counterpart. Intervals of level 1 - ``alpha`` from ``bootstraps``
    resamples; p-values from ``permutations`` random subsets.
    """

    split: str
    decision: str
    threshold: float | None
    alpha: float
    bootstraps: int
    permutations: int

    def __post_init__(self) -> None:
        if self.split not in get_args(Split):
            raise ValueError(f"expected audit.split among {', '.join(get_args(Split))}; found {self.split!r}")
        if self.decision not in DECISIONS:
            raise ValueError(f"expected audit.decision among {', '.join(DECISIONS)}; found {self.decision!r}")
        if self.decision == "randomised" and self.threshold is not None:
            raise ValueError(f"a randomised decision has no threshold: expected null, found {self.threshold}")
        try:
            Precision(self.alpha, self.bootstraps, self.permutations)
        except ValueError as error:
            raise ValueError(f"audit: {error}") from error

    @property
    def precision(self) -> Precision:
        return Precision(self.alpha, self.bootstraps, self.permutations)


@dataclass(frozen=True)
class Compared:
    """One direction in one repetition: the n people with a finite image, and the m people of the other group.

    ``rows`` (n,), ``features`` and ``images`` (n, d), ``target`` (m, d), ``target_decision`` (m,); ``non_finite``
    people are left out.
    """

    rows: Array
    features: Array
    images: Array
    target: Array
    flips: Flipsets
    target_decision: Array
    non_finite: int


def run(
    dataset: Dataset,
    classifier: Classifier,
    config: Config,
    rngs: Sequence[np.random.Generator],
    transport: TransportMap,
) -> AuditResult:
    """Audit classifier r through map r, in each direction that was fitted, for as many repetitions as both have.

    Columns of the rows: ``direction`` (forward, reverse), ``source`` and ``target`` (names of the groups), ``flipset``
    (positive, negative, or empty for the whole group), ``feature`` (empty where there is none) and ``alpha``.

    - Whole group: ``n_source``, ``n_target``, ``positives_source``, ``positives_target``, ``positives_image``, ``net``
      with its interval, ``non_finite`` (images with a NaN or infinity, left out of every other count), ``ks`` (the
      largest Kolmogorov-Smirnov distance of a transported feature from the target group, every image being taken for
      the nearest value that this group has) and ``healthy``; by feature ``mean_shift``, ``mean_sign`` and
      ``feature_mean``.
    - Flipsets: ``size`` with its interval, ``share`` of the group, ``of`` (people with the members' decision); by
      feature what is in :class:`pipeline.flipsets.transparency.TransparencyReport`. Features that are not transported
      change by construction: they have no rank and no p-value.

    Arrays of the first repetition, with the suffix ``_reverse`` for that direction: ``features``, ``images``,
    ``decision``, ``decision_image``, ``score``, ``score_image`` and ``rows`` of the people who count,
    ``target_features`` and ``target_score``; ``feature_names``, and ``units``, their standard deviations pooled over
    both groups.

    Raises ValueError where the map is not defined on a row of the split, where a group has no rows in it, and for
    randomised decisions of a model without probabilities.
    """
    import pandas as pd

    count = min(classifier.repetitions, transport.trials)
    streams = [rng.spawn(3) for rng in rngs[:count]]
    coins = [stream[0].random(len(dataset.label)) for stream in streams]
    transported = np.isin(dataset.feature_names, transport.features)
    rows: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {"feature_names": np.array(dataset.feature_names)}
    for place, (direction, source, target) in enumerate(directions(transport), start=1):
        pairs = mapped(transport, dataset, cast(Split, config.split), count, direction)
        where = {"direction": direction, "source": source, "target": target}
        for r, pair in enumerate(pairs):
            compared = _compared(partial(_decide, classifier, r, config), pair, coins[r])
            measured = chain(
                _group(compared, config, transported, streams[r][place]),
                _reports(compared, config, dataset.feature_names, transported, streams[r][place]),
            )
            rows += [{"repetition": r, **where, **row} for row in measured]
            if r == 0:
                arrays |= _arrays(classifier, compared, "" if direction == "forward" else "_reverse")
    table = pd.DataFrame(rows).assign(alpha=config.alpha)
    for name, values in classifier.index.items():
        table[name] = values[table["repetition"]]
    return AuditResult("fliptest", dataset.name, classifier.method, dataset.origin, table, arrays)


def _decide(classifier: Classifier, repetition: int, config: Config, x: Array, coin: Array) -> Array:
    if config.decision == "randomised":
        return tossed(classifier, repetition, x, coin)
    return decisions(classifier, repetition, x, config.threshold)


def _compared(decide: Callable[[Array, Array], Array], pair: Mapped, coins: Array) -> Compared:
    """Decide about everyone; ``coins`` has one for each row of the dataset."""
    finite = np.isfinite(pair.images).all(axis=1)
    rows, features, images = pair.rows[finite], pair.features[finite], pair.images[finite]
    return Compared(
        rows=rows,
        features=features,
        images=images,
        target=pair.target,
        flips=Flipsets(decide(features, coins[rows]), decide(images, coins[rows])),
        target_decision=decide(pair.target, coins[pair.target_rows]),
        non_finite=int((~finite).sum()),
    )


def _row(statistic: str, value: float, flipset: str = "", feature: str = "") -> dict[str, Any]:
    return {"flipset": flipset, "feature": feature, "statistic": statistic, "value": float(value)}


def _group(
    compared: Compared, config: Config, transported: Array, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Rows on the whole group and on the sizes of its flipsets."""
    flips, n = compared.flips, len(compared.rows)
    sizes = {"positive": int(flips.positive.sum()), "negative": int(flips.negative.sum())}
    favoured = int(flips.decision.sum())
    furthest = np.nan
    if n:
        target, images = compared.target[:, transported], compared.images[:, transported]
        furthest = ks(target, nearest_values(target, images)).max()
    intervals = size_intervals(sizes["positive"], sizes["negative"], n, config.bootstraps, config.alpha, rng)
    group = {
        "n_source": n,
        "n_target": len(compared.target),
        "positives_source": favoured,
        "positives_target": compared.target_decision.sum(),
        "positives_image": flips.decision_image.sum(),
        "net": flips.net,
        "net_ci_low": intervals.net[0],
        "net_ci_high": intervals.net[1],
        "non_finite": compared.non_finite,
        "ks": furthest,
        "healthy": n > 0 and healthy(np.array([furthest])),
    }
    yield from (_row(name, value) for name, value in group.items())
    for name, size in sizes.items():
        low, high = getattr(intervals, name)
        found = {
            "size": size,
            "size_ci_low": low,
            "size_ci_high": high,
            "share": size / n if n else np.nan,
            "of": favoured if name == "positive" else n - favoured,
        }
        yield from (_row(key, value, name) for key, value in found.items())


def _reports(
    compared: Compared, config: Config, names: Sequence[str], transported: Array, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Rows by feature: of the whole group, and of the transparency report of each flipset."""
    shift = compared.features - compared.images
    with np.errstate(invalid="ignore"):
        whole = {
            "mean_shift": shift.sum(axis=0) / len(shift),
            "mean_sign": np.sign(shift).sum(axis=0) / len(shift),
            "feature_mean": compared.features.sum(axis=0) / len(shift),
        }
    by_flipset = {"": whole}
    for name in ("positive", "negative"):
        members = getattr(compared.flips, name)
        report = transparency_report(
            compared.features, compared.images, members, config.precision, rng, lines=transported
        )
        by_flipset[name] = vars(report)
    for flipset, statistics in by_flipset.items():
        for statistic, values in statistics.items():
            yield from (_row(statistic, value, flipset, name) for name, value in zip(names, values, strict=True))


def _arrays(classifier: Classifier, compared: Compared, suffix: str) -> dict[str, Array]:
    """What the figures need of the first repetition."""
    arrays = {
        "rows": compared.rows,
        "features": compared.features,
        "images": compared.images,
        "decision": compared.flips.decision,
        "decision_image": compared.flips.decision_image,
        "score": scores(classifier, 0, compared.features),
        "score_image": scores(classifier, 0, compared.images),
        "target_features": compared.target,
        "target_score": scores(classifier, 0, compared.target),
    }
    named = {f"{name}{suffix}": values for name, values in arrays.items()}
    if not suffix:
        named["units"] = np.concatenate([compared.features, compared.target]).std(axis=0)
    return named
