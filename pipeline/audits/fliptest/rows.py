"""What FlipTest measures of one direction in one repetition, as tidy rows: sizes, reports, and flips by chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.audits.fliptest.dealt import Judge, sizes_between_halves, upper
from pipeline.audits.fliptest.intervals import size_intervals
from pipeline.audits.fliptest.sets import Flipsets
from pipeline.audits.fliptest.transparency import transparency_report
from pipeline.audits.precision import Precision
from pipeline.transport.quality import healthy, ks, nearest_values
from pipeline.types import Array


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


def _row(statistic: str, value: float, flipset: str = "", feature: str = "") -> dict[str, Any]:
    return {"flipset": flipset, "feature": feature, "statistic": statistic, "value": float(value)}


def group(compared: Compared, alpha: float, transported: Array, shared: float) -> Iterator[dict[str, Any]]:
    """Rows on the whole group and on the sizes of its flipsets."""
    flips, n = compared.flips, len(compared.rows)
    sizes = {"positive": int(flips.positive.sum()), "negative": int(flips.negative.sum())}
    favoured = int(flips.decision.sum())
    furthest = np.nan
    if n:
        target, images = compared.target[:, transported], compared.images[:, transported]
        furthest = ks(target, nearest_values(target, images)).max()
    intervals = size_intervals(sizes["positive"], sizes["negative"], n, alpha)
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
        "shared": shared,
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


def reports(
    compared: Compared, precision: Precision, names: Sequence[str], transported: Array, rng: np.random.Generator
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
            compared.features, compared.images, members, precision, rng, transported, compared.units
        )
        by_flipset[name] = vars(report)
    for flipset, statistics in by_flipset.items():
        for statistic, values in statistics.items():
            yield from (_row(statistic, value, flipset, name) for name, value in zip(names, values, strict=True))


def noise(
    compared: Compared,
    transported: Array,
    judge: Judge,
    people: int,
    deals: int,
    alpha: float,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Rows on the flipsets between halves of the group, dealt ``deals`` times, with ``people`` on a side at most."""
    n = len(compared.rows)
    found, side = sizes_between_halves(compared.features, compared.coins, transported, judge, people, deals, rng)
    if not side:
        return
    yield _row("noise_people", side)
    for name in ("positive", "negative"):
        sizes = getattr(found, name)
        yield _row("noise_size", n * sizes.mean() / side, name)
        yield _row("noise_size_upper", n * upper(sizes, alpha) / side, name)
