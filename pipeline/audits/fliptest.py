"""FlipTest: flipsets and transparency reports of classifiers, between two groups matched by a transport map.

Source: Black et al. 2020, Definitions 1 and 2; the computations are in ``fairness_audits.audits.fliptest``. Intervals
take the map as given; what other maps change is seen over the repetitions. How many flips are chance is seen between
groups of one distribution: those of the study's block ``identical`` (section 5.1 of the paper), for which a map is
learned, and halves of the audited group itself, where the map is exact transport.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from fairness_audits.audits.fliptest.comparison import Comparison, compare
from fairness_audits.audits.fliptest.flipsets import FLIPSETS, Flipsets, Judge, judged, sizes_between_halves, upper
from fairness_audits.transport.quality import healthy, nearest_ks
from fairness_audits.validation import Checked, Count, Share, Size, one_of
from fairness_audits.values import Array, Classifier, Dataset, Split, TransportMap
from pipeline.counterparts import Mapped, directions, mapped
from pipeline.values import AuditResult

EXACT = "exact"
"""The kind of map that can be fitted again, between dealt halves, in milliseconds."""


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """What is audited, and how precisely.

    ``split``: train, test or all, the rows that are mapped. ``decision``: threshold, the classifier's own; or
    randomised, 1 with probability P(y = 1 | x), where the coin of a person is tossed once: it decides about the person
    and about the counterpart. Intervals of level 1 - ``alpha``, those of mean shifts from ``bootstraps`` resamples.
    ``units``: what mean shifts are ranked in, the model's own, or standard deviations over both groups (where the model
    sees features that nobody scaled; 0/1 columns stay as they are). ``noise_deals``: how often the group is dealt into
    halves, 0 for never; ``noise_people`` stand on a side at most.
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
    """Audit classifier r through map r, in each direction that was fitted, for as many repetitions as both have.

    Columns of the rows: ``direction`` (forward, reverse), ``source`` and ``target`` (names of the groups), ``flipset``
    (positive, negative, or empty for the whole group), ``feature`` (empty where there is none) and ``alpha``.

    - Whole group: ``n_source``, ``n_target``, ``positives_source``, ``positives_target``, ``positives_image``, ``net``
      with its interval, ``non_finite`` (images with a NaN or infinity, left out of every other count), ``shared`` (the
      share of the group's people whom another repetition has too, the mean over the others), ``ks`` (the largest
      Kolmogorov-Smirnov distance of a transported feature from the target group, every image being taken for the
      nearest value that this group has) and ``healthy``; by feature ``mean_shift``, ``mean_sign`` and ``feature_mean``.
    - Flipsets: ``size`` with its interval, ``share`` of the group, ``of`` (people with the members' decision); by
      feature what is in :class:`fairness_audits.audits.fliptest.transparency.TransparencyReport`. Features that are not
      transported change by construction: they have no rank.
    - Flipsets by chance, of exact maps and in the first repetition: ``noise_size`` and ``noise_size_upper``, the mean
      size between halves of the group and what one more deal goes beyond with probability at most ``alpha``, both as
      shares times ``n_source``; and of the whole group ``noise_people``, how many stood on a side.

    Arrays of the first repetition, with the suffix ``_reverse`` for that direction: ``features``, ``images``,
    ``decision``, ``decision_image``, ``score``, ``score_image`` and ``rows`` of the people who count,
    ``target_features`` and ``target_score``; ``feature_names``, and ``units``, what their mean shifts are ranked in.

    Raises ValueError where the map is not defined on a row of the split, where a group has no rows in it, and for
    randomised decisions of a model without probabilities.
    """
    count = min(classifier.repetitions, transport.trials)
    streams = [rng.spawn(4) for rng in rngs[:count]]
    coins = [stream[0].random(len(dataset.label)) for stream in streams]
    transported = np.isin(dataset.feature_names, transport.features)
    dealing = streams[0][3].spawn(2)
    rows: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {"feature_names": np.array(dataset.feature_names)}
    for place, (direction, source, target) in enumerate(directions(transport), start=1):
        pairs = mapped(transport, dataset, config.split, count, direction)
        where = {"direction": direction, "source": source, "target": target}
        shared = _shared([pair.rows for pair in pairs], len(dataset.label))
        for r, pair in enumerate(pairs):
            judge = partial(_judge, classifier, r, config)
            compared = _compared(judge, pair, coins[r], config)
            comparison = compare(
                compared.features,
                compared.images,
                compared.flips,
                alpha=config.alpha,
                bootstraps=config.bootstraps,
                rngs=[streams[r][place]] * len(FLIPSETS),
                moving=transported,
                units=compared.units,
            )
            measured = [
                *group(compared, comparison, transported, shared[r]),
                *reports(compared, comparison, dataset.feature_names),
            ]
            if r == 0 and config.noise_deals and transport.kind == EXACT:
                measured += noise(compared, transported, judge, config, dealing[place - 1])
            rows += [{"repetition": r, **where, **row} for row in measured]
            if r == 0:
                arrays |= _arrays(compared, "" if direction == "forward" else "_reverse")
    return AuditResult.of("fliptest", dataset, classifier, rows, arrays, alpha=config.alpha)


def _judge(classifier: Classifier, repetition: int, config: Config, x: Array, coin: Array) -> tuple[Array, Array]:
    return judged(classifier, repetition, x, coin if config.decision == "randomised" else None)


def _shared(rows: Sequence[Array], people: int) -> list[float]:
    """The share of each repetition's ``rows`` that another one has too: the mean over the others, 0 where none is."""
    times = np.bincount(np.concatenate(rows), minlength=people)
    others = max(len(rows) - 1, 1)
    return [float((times[own] - 1).mean() / others) for own in rows]


@dataclass(frozen=True)
class Compared:
    """One direction in one repetition: the n people with a finite image, and the m people of the other group.

    ``rows`` and ``coins`` (n,), ``features`` and ``images`` (n, d), ``target`` (m, d); ``score``, ``score_image`` (n,)
    and ``target_score`` (m,) beside the decisions ``flips`` and ``target_decision`` (m,); ``non_finite`` people are
    left out. ``units`` (d,) are what mean shifts are ranked in.
    """

    rows: Array
    coins: Array
    features: Array
    images: Array
    target: Array
    flips: Flipsets
    target_decision: Array
    score: Array
    score_image: Array
    target_score: Array
    non_finite: int
    units: Array


def _compared(judge: Judge, pair: Mapped, coins: Array, config: Config) -> Compared:
    """Decide about everyone; ``coins`` has one for each row of the dataset."""
    finite = np.isfinite(pair.images).all(axis=1)
    rows, features, images = pair.rows[finite], pair.features[finite], pair.images[finite]
    score, decision = judge(features, coins[rows])
    score_image, decision_image = judge(images, coins[rows])
    target_score, target_decision = judge(pair.target, coins[pair.target_rows])
    return Compared(
        rows=rows,
        coins=coins[rows],
        features=features,
        images=images,
        target=pair.target,
        flips=Flipsets(decision, decision_image),
        target_decision=target_decision,
        score=score,
        score_image=score_image,
        target_score=target_score,
        non_finite=int((~finite).sum()),
        units=_units(np.concatenate([features, pair.target]), config.units),
    )


def _units(people: Array, units: str) -> Array:
    """What mean shifts are ranked in, (d,): ones, or the standard deviations of what is neither 0/1 nor constant."""
    deviation = people.std(axis=0)
    plain = ((people == 0) | (people == 1)).all(axis=0) | (deviation == 0) | (units == "model")
    return np.where(plain, 1.0, deviation)


def _arrays(compared: Compared, suffix: str) -> dict[str, Array]:
    """What the figures need of the first repetition."""
    names = ("rows", "features", "images", "decision", "decision_image", "score", "score_image", "target_features")
    known = {**vars(compared), **vars(compared.flips), "target_features": compared.target}
    arrays = {f"{name}{suffix}": known[name] for name in (*names, "target_score")}
    return arrays if suffix else {**arrays, "units": compared.units}


def _row(statistic: str, value: float, flipset: str = "", feature: str = "") -> dict[str, Any]:
    return {"flipset": flipset, "feature": feature, "statistic": statistic, "value": float(value)}


def group(compared: Compared, comparison: Comparison, transported: Array, shared: float) -> Iterator[dict[str, Any]]:
    """Rows on the whole group and on the sizes of its flipsets."""
    flips, n = compared.flips, len(compared.rows)
    furthest = nearest_ks(compared.target[:, transported], compared.images[:, transported]).max() if n else np.nan
    intervals = comparison.intervals
    group = {
        "n_source": n,
        "n_target": len(compared.target),
        "positives_source": flips.eligible["positive"],
        "positives_target": compared.target_decision.sum(),
        "positives_image": flips.decision_image.sum(),
        "net": flips.net,
        "net_ci_low": intervals.net[0],
        "net_ci_high": intervals.net[1],
        "non_finite": compared.non_finite,
        "shared": shared,
        "ks": furthest,
        "healthy": n > 0 and healthy(np.array([furthest])),
    }
    yield from (_row(name, value) for name, value in group.items())
    for name, size in flips.sizes.items():
        low, high = getattr(intervals, name)
        found = {
            "size": size,
            "size_ci_low": low,
            "size_ci_high": high,
            "share": size / n if n else np.nan,
            "of": flips.eligible[name],
        }
        yield from (_row(key, value, name) for key, value in found.items())


def reports(compared: Compared, comparison: Comparison, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows by feature: of the whole group, and of the transparency report of each flipset."""
    shift = compared.features - compared.images
    with np.errstate(invalid="ignore"):
        whole = {
            "mean_shift": shift.sum(axis=0) / len(shift),
            "mean_sign": np.sign(shift).sum(axis=0) / len(shift),
            "feature_mean": compared.features.sum(axis=0) / len(shift),
        }
    by_flipset = {name: vars(report) for name, report in comparison.reports.items()}
    for flipset, statistics in {"": whole, **by_flipset}.items():
        for statistic, values in statistics.items():
            yield from (_row(statistic, value, flipset, name) for name, value in zip(names, values, strict=True))


def noise(
    compared: Compared, transported: Array, judge: Judge, config: Config, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Rows on the flipsets between dealt halves of the group."""
    n, limits = len(compared.rows), (config.noise_people, config.noise_deals)
    found, side = sizes_between_halves(compared.features, compared.coins, transported, judge, *limits, rng)
    if not side:
        return
    yield _row("noise_people", side)
    for name in FLIPSETS:
        sizes = getattr(found, name)
        yield _row("noise_size", n * sizes.mean() / side, name)
        yield _row("noise_size_upper", n * upper(sizes, config.alpha) / side, name)
