"""The findings in one direction: numbers under the keys of the JSON, and rows of the CSV files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.fliptest.compute import DirectionResult
from fairness_audits.audits.fliptest.flipsets import FLIPSETS, Flipsets, Sizes
from fairness_audits.audits.fliptest.refits import Refits
from fairness_audits.audits.fliptest.space import Space
from fairness_audits.audits.fliptest.transparency import TransparencyReport, standing
from fairness_audits.messages import apart
from fairness_audits.results.formats import plain

LINE = (
    *("mean_shift", "mean_shift_ci_low", "mean_shift_ci_high", "rank_mean"),
    *("mean_sign", "mean_sign_ci_low", "mean_sign_ci_high", "rank_sign"),
)
"""The numbers in a line of a transparency report, besides the feature and its unit."""


def result(side: DirectionResult) -> dict[str, Any]:
    """Return the findings in one direction under the keys of the JSON."""
    alpha, flips, n = side.direction.given.alpha, side.found.flips, len(side.mapped)
    quality, clipped = side.quality, side.counterparts.clipped
    found: dict[str, Any] = plain(
        {
            "direction": side.direction.name,
            "source": side.direction.source.level,
            "target": side.direction.target.level,
            "n_source": n,
            "n_target": len(side.found.target.decision),
            "non_finite": len(side.direction.source.rows) - n,
            "positives": {
                "source": flips.eligible["positive"],
                "target": side.found.target.decision.sum(),
                "counterparts": flips.decision_image.sum(),
            },
            "flipsets": {
                name: {
                    "size": size,
                    "interval": getattr(side.found.intervals, name),
                    "share": size / n,
                    "of": flips.eligible[name],
                }
                for name, size in flips.sizes.items()
            },
            "net": {"size": flips.net, "interval": side.found.intervals.net, "share": flips.net / n},
            "noise": None if side.null is None else noise(side.null, flips, alpha),
            "refits": None if side.refits is None else refitted(side.refits),
            "attribute_alone": {"columns": list(side.alone.columns), **side.alone.flips.sizes},
            "transparency": {name: lines(side.found.reports[name], side.direction.space) for name in FLIPSETS},
            "map": {
                "healthy": quality.healthy,
                "worst_ks": max(quality.ks.values()),
                "ks": dict(quality.ks),
                "unseen": list(quality.unseen),
                "real_people": side.real,
                "clipped": {
                    "people": clipped.any(axis="columns").sum(),
                    "columns": {name: count for name, count in clipped.sum().items() if count},
                },
                "distance": quality.distance,
                "facts": dict(side.facts),
            },
        }
    )
    return found


def noise(null: Sizes, flips: Flipsets, alpha: float) -> dict[str, Any]:
    """Return the flipsets of random groups, and whether the observed flipsets are larger at level alpha.

    There are two tests, of the number of people and of the net size. The adjusted p-values are Bonferroni-corrected for
    the two tests. They decide ``beyond``, which is None if there are too few splits to reject.
    """
    n = len(flips.decision)
    p_either = null.p_value(null.either, sum(flips.sizes.values()))
    p_net = null.p_value(np.abs(null.net), abs(flips.net))
    adjusted = {"p_either_adjusted": min(1.0, 2 * p_either), "p_net_adjusted": min(1.0, 2 * p_net)}
    return {
        "draws": len(null.net),
        **{
            name: {"mean": values.mean(), "range": [values.min(), values.max()], "mean_share": values.mean() / n}
            for name, values in ((name, getattr(null, name)) for name in ("positive", "negative", "either", "net"))
        },
        "p_either": p_either,
        "p_net": p_net,
        **adjusted,
        "least_p_adjusted": min(1.0, 2 / (len(null.net) + 1)),
        "beyond": None if alpha * (len(null.net) + 1) < 2 else min(adjusted.values()) <= alpha,
    }


def refitted(refits: Refits) -> dict[str, Any]:
    """Return how many people flip in the stated share of the refitted maps or more, in any map, and in each map."""
    sizes = refits.sizes
    return {
        "maps": len(refits.image_decisions),
        "share": refits.stated,
        "needed": refits.needed,
        "held": refits.counted(refits.holds),
        "ever": refits.counted(refits.ever),
        "range": {name: [getattr(sizes, name).min(), getattr(sizes, name).max()] for name in FLIPSETS},
    }


def lines(report: TransparencyReport, space: Space) -> list[dict[str, Any]]:
    """Return the lines of a transparency report, by decreasing mean shift; features that do not move come last.

    ``mean_shift_standing`` and ``mean_sign_standing`` are
    :func:`~fairness_audits.audits.fliptest.transparency.standing`. They are None for features that do not move and for
    empty flipsets.
    """

    def standing_of(kind: str, j: int) -> str | None:
        low, high = (float(getattr(report, f"{kind}_{end}")[j]) for end in ("ci_low", "ci_high"))
        return None if np.isnan(report.rank_mean[j]) else standing(low, high)

    scale, shift = space.each("scale"), space.each("shift")
    order = np.lexsort((np.array(space.labels), np.where(np.isnan(report.rank_mean), np.inf, report.rank_mean)))
    return [
        {
            "feature": space.labels[j],
            "unit": scale[j],
            "members_mean": report.feature_mean[j] * scale[j] + shift[j],
            **{name: getattr(report, name)[j] for name in LINE},
            **{f"{kind}_standing": standing_of(kind, j) for kind in ("mean_shift", "mean_sign")},
        }
        for j in order
    ]


def flipsets(sides: Sequence[DirectionResult]) -> pd.DataFrame:
    """Return one row for each person who flips: who it is, the decisions about both, and the features of both.

    The counterpart's features have their own names and units, so you can pass a row to the model again. The person's
    features follow as ``audit_own_NAME``. The audit's columns begin with ``audit_``; a feature of the same name gets
    the suffix ``(input)``. ``audit_counterpart_row`` is empty if the counterpart is not a person in the file.
    ``audit_share`` is the share of the refitted maps in which the person flips, and ``audit_holds`` says whether it
    reaches the stated share.
    """
    parts = []
    for side in sides:
        members = np.flatnonzero(side.found.flips.either)
        members = members[np.argsort(side.direction.source.rows[side.mapped[members]])]
        people = side.mapped[members]
        person = side.counterparts.person[members]
        columns: dict[str, Any] = {
            "audit_direction": side.direction.name,
            "audit_group": side.direction.source.level,
            "audit_row": side.direction.source.rows[people],
        }
        if side.direction.source.ids is not None:
            columns["audit_id"] = side.direction.source.ids[people]
        columns |= {
            "audit_flipset": np.where(side.found.flips.positive[members], *FLIPSETS),
            "audit_score": side.found.people.score[members],
            "audit_decision": side.found.flips.decision[members],
            "audit_counterpart_score": side.found.counterparts.score[members],
            "audit_counterpart_decision": side.found.flips.decision_image[members],
            "audit_counterpart_row": pd.Series(person, dtype="Int64").mask(person < 0).array,
        }
        if side.refits is not None:
            columns |= {"audit_share": side.refits.share[people], "audit_holds": side.refits.holds[people]}
        if side.direction.target.ids is not None:
            known = dict(zip(side.direction.target.rows.tolist(), side.direction.target.ids.tolist(), strict=True))
            columns["audit_counterpart_id"] = [known.get(row) for row in person.tolist()]
        features = side.counterparts.frame.iloc[members].reset_index(drop=True)
        own = side.direction.source.features.iloc[people].reset_index(drop=True).add_prefix("audit_own_")
        features = features.set_axis(apart(list(features), {*columns, *own}, "input"), axis="columns")
        parts.append(pd.concat([pd.DataFrame(columns, index=range(len(members))), features, own], axis=1))
    return pd.concat(parts, ignore_index=True)


def everybody(sides: Sequence[DirectionResult]) -> pd.DataFrame:
    """Return one row for each person of the source group: the decisions about them and their counterparts in all maps.

    ``counterparts_positive`` is the number of refitted maps in which the counterpart has a positive decision. ``share``
    is the share of the maps in which the person flips.
    """
    parts = []
    for side in sides:
        direction, flipset = side.direction, np.full(len(side.direction.source.rows), "", dtype=object)
        for name in FLIPSETS:
            flipset[side.mapped[getattr(side.found.flips, name)]] = name
        columns: dict[str, Any] = {"direction": direction.name, "group": direction.source.level}
        columns |= {"row": direction.source.rows}
        if direction.source.ids is not None:
            columns["id"] = direction.source.ids
        columns |= {"score": direction.people.score, "decision": direction.people.decision, "flipset": flipset}
        if side.refits is not None:
            columns |= {"counterparts_positive": side.refits.favoured, "share": side.refits.share}
            columns |= {"holds": side.refits.holds}
        parts.append(pd.DataFrame(columns).sort_values("row"))
    return pd.concat(parts, ignore_index=True)


def transparency(results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return every line of every report in the JSON, in the order of the ranks."""
    return pd.DataFrame(
        [
            {
                **{key: found[key] for key in ("direction", "source", "target")},
                "flipset": name,
                "members": found["flipsets"][name]["size"],
                **line,
            }
            for found in results
            for name in FLIPSETS
            for line in found["transparency"][name]
        ]
    )
