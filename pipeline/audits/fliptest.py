"""FlipTest: flipsets and transparency reports of classifiers, between two groups matched by a transport map.

Source: Black et al. 2020, Definitions 1 and 2; the computations are in ``fairness_audits.audits.fliptest``. Intervals
are conditional on the map; the repetitions show the variation between maps. The number of flips by chance is measured
between groups with one distribution: the study's block ``identical`` (section 5.1 of the paper) with learned maps, and
halves of the audited group with exact transport.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from fairness_audits.audits.fliptest.core import Decide, FlipTest, People, flip_test, sizes_between_halves
from fairness_audits.audits.fliptest.flipsets import FLIPSETS, upper
from fairness_audits.transport.quality import healthy
from fairness_audits.validation import Checked, Count, Share, Size, one_of
from fairness_audits.values import Array, Classifier, Dataset, Split, TransportMap
from pipeline.counterparts import directions, mapped
from pipeline.predictions import judged
from pipeline.values import AuditResult

EXACT = "exact"
"""The kind of map that can be fitted again between random halves in milliseconds."""


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """Settings of the audit.

    ``split``: mapped rows, train, test or all. ``decision``: threshold (the classifier's decision) or randomised (1
    with probability P(y = 1 | x), with one coin toss for a person and her counterpart). Intervals have level 1 -
    ``alpha``; those of mean shifts use ``bootstraps`` resamples. ``units``: units for ranking mean shifts, those of the
    model's inputs, or standard deviations over both groups (for unscaled features; 0/1 columns are unchanged).
    ``noise_deals``: number of random splits of the group into halves, 0 for none, with at most ``noise_people`` in a
    half.
    """

    split: Split
    decision: Annotated[str, one_of(("threshold", "randomised"))]
    alpha: Share
    bootstraps: Count
    units: Annotated[str, one_of(("model", "deviations"))]
    noise_deals: Size
    noise_people: Count


def run(
    dataset: Dataset,
    classifier: Classifier,
    config: Config,
    rngs: Sequence[np.random.Generator],
    transport: TransportMap,
) -> AuditResult:
    """Audit classifier r with map r in each fitted direction, for the repetitions that both have.

    Columns of the rows: ``direction`` (forward, reverse), ``source`` and ``target`` (names of the groups), ``flipset``
    (positive, negative, or empty for the whole group), ``feature`` (empty where there is none) and ``alpha``.

    - Whole group: ``n_source``, ``n_target``, ``positives_source``, ``positives_target``, ``positives_image``, ``net``
      with its interval, ``non_finite`` (images with a NaN or infinity, excluded from all other counts), ``shared``
      (mean share of the group's people in another repetition), ``ks`` (the largest Kolmogorov-Smirnov distance of a
      transported feature from the target group, with images rounded to the nearest value of this group) and
      ``healthy``; by feature ``mean_shift``, ``mean_sign`` and ``feature_mean``.
    - Flipsets: ``size`` with its interval, ``share`` of the group, ``of`` (number of people with the members'
    decision);
      by feature the fields of :class:`fairness_audits.audits.fliptest.transparency.TransparencyReport`. Features that
      are not transported change by construction and have no rank.
    - Flipsets by chance, for exact maps in the first repetition: ``noise_size``, the mean size between halves of the
      group, and ``noise_size_upper``, which another split exceeds with probability at most ``alpha``; both are shares
      times ``n_source``. For the whole group ``noise_people``, the number of people in a half.

    Arrays of the first repetition, with the suffix ``_reverse`` for the reverse direction: ``features``, ``images``,
    ``decision``, ``decision_image``, ``score``, ``score_image`` and ``rows`` of the people with finite images,
    ``target_features`` and ``target_score``; ``feature_names``, and ``units``, the units of their mean shifts.

    Raises ValueError if the map is not defined on a row of the split, if a group has no rows in it, and for randomised
    decisions of a model without probabilities.
    """
    count = min(classifier.repetitions, transport.trials)
    streams = [rng.spawn(4) for rng in rngs[:count]]
    coins = [stream[0].random(len(dataset.label)) for stream in streams]
    transported = np.flatnonzero(np.isin(dataset.feature_names, transport.features))
    dealing = streams[0][3].spawn(2)
    rows: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {"feature_names": np.array(dataset.feature_names)}
    for place, (direction, source, target) in enumerate(directions(transport), start=1):
        pairs = mapped(transport, dataset, config.split, count, direction)
        where = {"direction": direction, "source": source, "target": target}
        suffix = "" if direction == "forward" else "_reverse"
        shared = _shared([pair.rows for pair in pairs], len(dataset.label))
        for r, pair in enumerate(pairs):
            decide = partial(_decided, classifier, r, coins[r] if config.decision == "randomised" else None)
            finite = np.isfinite(pair.images).all(axis=1)
            own = pair.rows[finite]
            people, others = decide(pair.features[finite], own), decide(pair.target, pair.target_rows)
            found = flip_test(
                people,
                decide(pair.images[finite], own),
                others,
                moving=transported,
                alpha=config.alpha,
                bootstraps=config.bootstraps,
                rngs=[streams[r][place]] * len(FLIPSETS),
                units=_units(np.concatenate([people.points, others.points]), config.units),
            )
            measured = [*group(found, int((~finite).sum()), shared[r]), *reports(found, dataset.feature_names)]
            if r == 0 and config.noise_deals and transport.kind == EXACT:
                measured += noise(found, own, decide, config, dealing[place - 1])
            rows += [{"repetition": r, **where, **row} for row in measured]
            if r == 0:
                arrays |= _arrays(found, own, suffix)
    return AuditResult.of("fliptest", dataset, classifier, rows, arrays, alpha=config.alpha)


def _decided(classifier: Classifier, repetition: int, coins: Array | None, points: Array, rows: Array) -> People:
    """Decide about points (n, d) of these ``rows`` (n,) of the data set, or of their counterparts."""
    return People(points, *judged(classifier, repetition, points, None if coins is None else coins[rows]))


def _shared(rows: Sequence[Array], people: int) -> list[float]:
    """Compute the mean share of each repetition's ``rows`` that another repetition has; 0 for a single repetition."""
    times = np.bincount(np.concatenate(rows), minlength=people)
    others = max(len(rows) - 1, 1)
    return [float((times[own] - 1).mean() / others) for own in rows]


def _units(people: Array, units: str) -> Array:
    """Return the units of mean shifts, (d,): ones, or standard deviations of features that are not 0/1 or constant."""
    deviation = people.std(axis=0)
    plain = ((people == 0) | (people == 1)).all(axis=0) | (deviation == 0) | (units == "model")
    return np.where(plain, 1.0, deviation)


def _arrays(found: FlipTest, rows: Array, suffix: str) -> dict[str, Array]:
    """Return the arrays of the first repetition for the figures."""
    people, images, target = found.people, found.counterparts, found.target
    arrays = {"rows": rows, "features": people.points, "images": images.points}
    arrays |= {"decision": people.decision, "decision_image": images.decision}
    arrays |= {"score": people.score, "score_image": images.score}
    arrays |= {"target_features": target.points, "target_score": target.score}
    return {f"{name}{suffix}": values for name, values in arrays.items()} | ({} if suffix else {"units": found.units})


def _row(statistic: str, value: float, flipset: str = "", feature: str = "") -> dict[str, Any]:
    return {"flipset": flipset, "feature": feature, "statistic": statistic, "value": float(value)}


def group(found: FlipTest, non_finite: int, shared: float) -> Iterator[dict[str, Any]]:
    """Return rows about the whole group and the sizes of its flipsets."""
    flips, intervals, n, furthest = found.flips, found.intervals, len(found.people.points), found.nearest_ks.max()
    group = {
        "n_source": n,
        "n_target": len(found.target.points),
        "positives_source": flips.eligible["positive"],
        "positives_target": found.target.decision.sum(),
        "positives_image": flips.decision_image.sum(),
        "net": flips.net,
        "net_ci_low": intervals.net[0],
        "net_ci_high": intervals.net[1],
        "non_finite": non_finite,
        "shared": shared,
        "ks": furthest,
        "healthy": healthy(np.array([furthest])),
    }
    yield from (_row(name, value) for name, value in group.items())
    for name, size in flips.sizes.items():
        low, high = getattr(intervals, name)
        sizes = {
            "size": size,
            "size_ci_low": low,
            "size_ci_high": high,
            "share": size / n if n else np.nan,
            "of": flips.eligible[name],
        }
        yield from (_row(key, value, name) for key, value in sizes.items())


def reports(found: FlipTest, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Return rows by feature, for the whole group and for the transparency report of each flipset."""
    shift = found.people.points - found.counterparts.points
    with np.errstate(invalid="ignore"):
        whole = {
            "mean_shift": shift.sum(axis=0) / len(shift),
            "mean_sign": np.sign(shift).sum(axis=0) / len(shift),
            "feature_mean": found.people.points.sum(axis=0) / len(shift),
        }
    by_flipset = {name: vars(report) for name, report in found.reports.items()}
    for flipset, statistics in {"": whole, **by_flipset}.items():
        for statistic, values in statistics.items():
            yield from (_row(statistic, value, flipset, name) for name, value in zip(names, values, strict=True))


def noise(
    found: FlipTest, rows: Array, decide: Decide, config: Config, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Return rows about the flipsets between random halves of the group, who are these ``rows`` (n,)."""
    n, limits = len(found.people.points), (config.noise_people, config.noise_deals)
    floor, side = sizes_between_halves(
        found.people, found.moving, lambda points, whom: decide(points, rows[whom]), *limits, rng
    )
    if not side:
        return
    yield _row("noise_people", side)
    for name in FLIPSETS:
        sizes = getattr(floor, name)
        yield _row("noise_size", n * sizes.mean() / side, name)
        yield _row("noise_size_upper", n * upper(sizes, config.alpha) / side, name)
