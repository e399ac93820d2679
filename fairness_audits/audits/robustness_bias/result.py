"""From the options of a robustness audit to its result. Layout of the JSON: ``docs/guide/robustness_bias.md``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits import texts
from fairness_audits.arguments import Given
from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.core import RobustnessBias
from fairness_audits.audits.robustness_bias.measured import Examined, Measured, measured
from fairness_audits.audits.robustness_bias.points import sampled
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model import Model, load_model
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import output_conditions
from fairness_audits.inputs.table import Source
from fairness_audits.messages import apart
from fairness_audits.results.formats import fixed, level, p_text, percent, size, span
from fairness_audits.results.result import Column, Figure, Result, Section, Table, Text, rows_of, under
from fairness_audits.values import Array

AUDIT, DEFAULT = "robustness_bias", "deepfool"
SHOWN_LEVELS = 12
SIGNED, COUNT = fixed(2, "+"), fixed(0)
Entry = Mapping[str, Any]
LIMIT, LEAST = 10, 10
"""Largest percentage of failed, worse or saturated images, and smallest group, for which distances can be compared."""
SECTION = ("groups", "columns", "curves", "axis", "stamp", "counts")
"""Texts of the section on an attack: its title, the columns of its table, its figure."""
OF_IMAGES = (
    *("images", "partition", "file", "resize", "channels", "mean", "std"),
    *("attack_setting", "checkpoint", "checkpoint_key"),
)
OF_ROWS = (
    *("data", "one_hot", "sensitive", "directions", "sensitive_cost"),
    *("positive", "features", "drop", "categorical"),
)
"""Options that apply to rows only."""


def from_files(given: Given) -> Result:
    """Run the audit of files. Raises InvalidInput for everything that the user can correct."""
    table = given.data or given.partition
    if table is None or (given.data is None and given.images is None):
        raise InvalidInput(
            "the audit needs rows (data) or images (images and partition)",
            option="data" if given.images is None else "partition",
            remedy="Give one of the two",
        )
    source = Source.read(table, **given.some("text", "missing", "separator"))
    with opened(given.model, given, given.trust_pickle) as model:
        return of_images(given, source, model) if given.data is None else of_rows(given, source, model)


def opened(model: Any, given: Given, trust_pickle: bool = False) -> AbstractContextManager[Model]:
    """Lend the model. Rows are computed in double precision, images in single precision."""
    return load_model(model, trust_pickle, _computing(given))


def _computing(given: Given) -> Computing:
    return Computing(given.device, "float64" if "data" in given.values and given.data else "float32", given.batch_rows)


def of_rows(given: Given, source: Source, model: Model, directions: Array | None = None) -> Result:
    """Audit the rows of a table; without a file of ``directions``, they may be an array."""
    from fairness_audits.audits.robustness_bias.table_audit import examined
    from fairness_audits.audits.robustness_bias.table_trial import tried

    given.refuse(OF_IMAGES, "images")
    if not given.sensitive and directions is None and given.values.get("directions") is None:
        given.refuse(("sensitive_cost",), "a fair metric (sensitive or directions)")
    if given.attack is not None and set(given.attack) != {"exact"}:
        problem = "attack applies to images only, except attack='exact'"
        raise InvalidInput(problem, option="attack", remedy="Leave it out")
    if not given.group:
        raise InvalidInput("the audit compares groups of rows", option="group", remedy="Name their columns (group)")
    computing = _computing(given)
    trial = tried(
        source,
        model,
        **given.some("label", "group", "positive", "classes", "features", "drop", "categorical", "one_hot"),
        **given.some("output_kind", "sensitive", "sensitive_cost", "seed"),
        directions=given.values.get("directions") if directions is None else directions,
        computing=computing,
    )
    some = sampled(trial.points, given.points, given.min_group, given.seed)
    found = examined(trial, some, exact=given.attack is not None, computing=computing, seed=given.seed)
    return concluded(given.without(*OF_IMAGES), found, len(source.table))


def of_images(given: Given, source: Source, model: Model, array: Array | None = None) -> Result:
    """Audit images in an ``array`` or in a folder; the table has a row for each."""
    from fairness_audits.audits.robustness_bias.attacking import chosen_attacks
    from fairness_audits.audits.robustness_bias.image_audit import examined, points_of

    given.refuse(OF_ROWS, "rows of a table")
    wanted = chosen_attacks(given.attack or (DEFAULT,), given.attack_setting)
    of_files: Any = {name: given.values.get(name) for name in ("file", "channels")}
    everyone, file = points_of(source, array, **given.some("images", "resize", "label", "group", "classes"), **of_files)
    found = examined(
        source,
        model,
        sampled(everyone, given.points, given.min_group, given.seed),
        wanted,
        **given.some("images", "label", "classes", "min_group", "mean", "std"),
        **given.some("output_kind", "checkpoint", "checkpoint_key", "seed"),
        file=file,
        computing=_computing(given),
    )
    return concluded(given, found, len(source.table))


def concluded(given: Given, found: Examined, rows: int) -> Result:
    """Compare the groups by their distances, and return the result; the table has this number of ``rows``."""
    subjects, precision = found.subjects, Precision(given.alpha, given.bootstraps, given.permutations)
    points, scores = subjects.points, subjects.classifier
    attacks = [
        measured(one, distance, found.check, subjects, precision, given.budget, given.seed)
        for one, distance in found.distances
    ]
    facts: dict[str, Any] = {
        "accuracy": None if points.label is None else float(subjects.correct.mean()),
        "data": {
            **found.data,
            "rows": rows,
            "groups": [one.name for one in points.partitions],
            "audited": len(points.rows),
        },
        "model": found.model,
        "results": [one.entry for one in attacks],
    }
    first = attacks[0].entry
    image = points.images is not None
    counted = None if points.label is None else np.unique(points.label, return_counts=True)[1]
    unknown = {one.name: int((one.codes < 0).sum()) for one in points.partitions}
    saturated = scores.saturated if image else 0
    said = {
        **{"notes": {}, "lost": None, "unreadable": [], "turned": 0},
        **first,
        **given.values,
        **facts,
        **found.said,
        **{"found": first, "place": found.place, "labelled": points.label is not None},
        "fair": bool(found.data.get("fair_metric")),
        **shown_groups(first, given.alpha),
        **doubts(first["check"]),
        **{"limit": LIMIT, "least": LEAST},
        "trivial": None if counted is None else float(counted.max() / len(points.rows)),
        "most_failed": max(one["failed"] / max(1, one["n_correct"]) for one in [first, *first["groups"]]),
        "saturated": saturated / len(points.rows),
        "fewest": min(one["n"] for _, few in levels(first) for one in few),
        **_needed(sum(len(np.unique(one.comparisons)) for one in points.partitions), given.alpha),
        "elements": list(dict.fromkeys(map(_name, first["groups"]))),
        "upper": [one.name for one, _ in found.distances if one.bound == "upper"],
        "certified": [
            {"attack": one.name, "settings": one.settings} for one, _ in found.distances if one.bound == "lower"
        ],
        "failures": [
            {"attack": one.name, **few} for one, distance in found.distances if (few := subjects.failures(distance))
        ],
        "outputs": output_conditions(scores.kind, scores.detected, saturated, points.unit),
        "unknown": [{"partition": name, "count": count} for name, count in unknown.items() if count],
    }
    said["methods"] = [texts.named(AUDIT, "method", entry) for entry in facts["results"]]
    said |= {"method": said["methods"][0], "audited": texts.named(AUDIT, "audited", said)}
    said["typical"] = turned_by(attacks[0].bias, said["lead"])
    said["grey"] = (
        255 * said["typical"]["size"] / math.sqrt(math.prod(found.data["shape"])) if image and said["typical"] else None
    )
    said["turning"] = texts.named(AUDIT, "turning", said)
    own: dict[str, Any] = {"attack": first["attack"], "closer": [], "farther": []}
    if not (said["misled"] or said["lost_apart"]):
        for one in said["shown"]:
            own["closer" if one["closer"] else "farther"].append({key: one[key] for key in ("partition", "level")})
    said["closer"] = [_name(one) for one in own["closer"]]
    verdict = texts.verdict(AUDIT, said, bool(said["shown"]) if said["tested"] else None, own, "biased")
    return texts.result(
        AUDIT,
        said,
        verdict,
        given,
        subject=f"{found.model['given']} on {found.place}",
        sections=_sections(attacks, said),
        facts=facts,
        tables={
            "groups": pd.concat([one.groups for one in attacks], ignore_index=True),
            "distances": table_of_points(found, attacks),
        },
        libraries=found.libraries,
    )


def _needed(comparisons: int, alpha: float) -> dict[str, int]:
    """Return the number of comparisons, and the smallest number of permutations that can reject one of them."""
    return {"comparisons": comparisons, "enough": math.ceil(comparisons / alpha - 1e-9) - 1}


def shown_groups(found: Entry, alpha: float) -> dict[str, Any]:
    """Return the groups that are ``tested``, and those ``shown`` to be closer to the boundary or farther from it.

    The verdict is about the ``lead``: the closest group that is shown, or else the farthest; if none is shown, the one
    with the largest difference. ``others`` are also shown.
    """
    # With two levels, only the closer one is compared. The other is its mirror image.
    everyone = sorted((one for _, few in levels(found) for one in (few[:1] if len(few) == 2 else few)), key=_sigma)
    tested = [{**one, "name": _name(one)} for one in everyone if one["sigma_p_adjusted"] is not None]
    shown = [{**one, "closer": _sigma(one) < 0} for one in tested if one["sigma_p_adjusted"] <= alpha]
    ordered = shown if not shown or shown[0]["closer"] else shown[::-1]
    lead = ordered[0] if ordered else max(tested, key=lambda one: abs(_sigma(one)), default=None)
    return {"tested": len(tested), "shown": shown, "lead": lead, "others": ordered[1:]}


def turned_by(bias: RobustnessBias, group: Entry | None) -> dict[str, float] | None:
    """Return the ``size`` of a typical change, and the shares of a group and of all ``others`` that it turns.

    Its size is the median distance, up to the budget, as it is printed. Among correctly classified points, a change of
    this size turns those with at most this distance. None if no group is tested or the size is 0.
    """
    if group is None or not (typical := float(size(min(bias.median_distance, bias.budget)))):
        return None
    levels = next(
        one for one in bias.levels if (one.denominator, one.partition.name) == ("correct", group["partition"])
    )
    own, others = (
        float((levels.lengths.length[members & levels.lengths.counts] <= typical).mean())
        for members in levels.partition.element(levels.partition.levels.index(group["level"]))
    )
    return {"size": typical, "own": own, "others": others}


def doubts(check: Entry | None) -> dict[str, Any]:
    """Return whether an attack's distances mislead for the worst group, or its gradients are lost in one group."""
    if check is None:
        return dict.fromkeys(("misled", "lost_apart", "worst", "apart"))
    groups = check["groups"]
    worst, most = (max(groups, key=itemgetter(key)) for key in ("worse_share", "lost_apart"))
    others = [one for one in groups if one["partition"] == most["partition"] and one is not most]
    lost, count = (sum(one[key] for one in others) for key in ("lost_gradient", "n_correct"))
    return {
        "misled": 100 * worst["worse_share"] > LIMIT,
        "lost_apart": 100 * most["lost_apart"] > LIMIT,
        "worst": {**worst, "name": _name(worst)},
        "apart": {"name": _name(most), "own": _lost(most), "rest": lost / max(1, count)},
    }


def _lost(group: Entry) -> float:
    return float(group["lost_gradient"] / max(1, group["n_correct"]))


def levels(found: Entry) -> Iterator[tuple[str, list[Entry]]]:
    """Yield the levels of each partition among correctly classified points, the closest to the boundary first.

    ``other`` has the measures of all points.
    """
    of_all = {(one["partition"], one["level"]): one for one in found["groups"] if one["denominator"] == "paper"}
    correct = (one for one in found["groups"] if one["denominator"] == "correct")
    for partition, every in groupby(correct, key=itemgetter("partition")):
        yield partition, sorted(({**one, "other": of_all[partition, one["level"]]} for one in every), key=_sigma)


def _sigma(group: Entry) -> float:
    """Return sigma, which is infinite if only the distances of the others are all 0."""
    if group["sigma"] is None:
        return 0.0 if group["sigma_p_adjusted"] is None else math.inf
    return float(group["sigma"])


def _name(group: Entry) -> str:
    return f"{group['partition']} = {group['level']}"


def _sections(attacks: Sequence[Measured], said: Entry) -> Iterator[Section]:
    for one, method in zip(attacks, said["methods"], strict=True):
        entry = {**said, **one.entry, "method": method}
        title, columns, caption, axis, *stamp = (texts.named(AUDIT, name, entry) for name in SECTION)
        figure = Figure(
            f"curves_{entry['attack']}",
            "Curves I_P",
            caption,
            "fairness_audits.audits.robustness_bias.figures:curves",
            (one.bias, axis, stamp),
        )
        yield Section(title, (_groups(entry), Text(columns), figure))
        if entry["check"] is not None:
            parts = (_checked(entry["check"]), Text(texts.named(AUDIT, "checked", entry)))
            yield Section(texts.named(AUDIT, "check", entry), parts)


def _checked(check: Entry) -> Table:
    """Return the comparison of an attack's distances with the second search's."""
    columns = (
        Column("", cell=under("level")),
        Column("checked", cell=under("checked", COUNT)),
        Column("mean", cell=under("mean_distance", size)),
        Column("second", cell=under("mean_second_bound", size)),
        Column("worse", cell=under("worse", COUNT)),
        Column("lost", cell=lambda group: percent(_lost(group), 0)),
    )
    return Table(columns, rows_of(columns, check["groups"], itemgetter("partition")), SHOWN_LEVELS, "audit.json")


def _groups(entry: Entry) -> Table:
    """Return the levels of every partition, the closest to the boundary first."""

    def right(group: Entry) -> str:
        return percent(group["n_correct"] / group["points"], 0) if entry["labelled"] and group["points"] else "-"

    columns = (
        Column("", cell=under("level")),
        Column(f"{entry['unit']}s", cell=under("points", COUNT)),
        Column("right", cell=right),
        *([Column("failed", cell=under("failed", COUNT))] if entry["failed"] else []),
        Column("median", cell=under("median_distance", size)),
        Column("sigma", cell=under("sigma", SIGNED)),
        Column(f"{level(entry['alpha'])} interval", cell=lambda group: span(_ends(group), SIGNED)),
        Column("p", cell=under("sigma_p_adjusted", p_text)),
        Column("sigma*", cell=lambda group: under("sigma", SIGNED)(group["other"])),
    )
    rows = rows_of(columns, (one for _, every in levels(entry) for one in every), itemgetter("partition"))
    return Table(columns, rows, SHOWN_LEVELS, "groups.csv")


def _ends(group: Entry) -> tuple[float | None, float | None]:
    return group["sigma_ci_low"], group["sigma_ci_high"]


def table_of_points(found: Examined, attacks: Sequence[Measured]) -> pd.DataFrame:
    """Return one row for each audited image or row.

    ``distance_<attack>`` is empty if it is misclassified or there is no distance. ``length_<attack>`` is the
    length for the paper's denominator: 0 if it is misclassified, empty if there is no distance. Any partition is
    therefore a group-by of these rows. A partition with the name of an audit column gets the suffix ``(group)``.
    """
    some, right = found.subjects.points, found.subjects.correct
    columns: dict[str, Any] = {} if some.images is None else {"audit_image": some.names}
    columns["audit_row"] = some.rows
    if some.label is not None:
        columns["audit_label"] = _named(some.label, found.classes)
    columns["audit_prediction"] = _named(found.subjects.prediction, found.classes)
    columns["audit_correct"] = right
    for one in attacks:
        name = one.entry["attack"]
        columns[f"distance_{name}"] = one.bias.distance
        columns[f"length_{name}"] = np.where(right, one.bias.distance, 0.0)
        columns[f"failed_{name}"] = one.bias.failed
    if found.check is not None:
        columns |= {"second_bound": found.check.second, "lost_gradient": np.where(right, found.check.lost, np.nan)}
    named = apart([one.name for one in some.partitions], columns, "group")
    for name, partition in zip(named, some.partitions, strict=True):
        columns[name] = np.array([*partition.levels, ""], dtype=object)[partition.codes]
    return pd.DataFrame(columns)


def _named(codes: Array, classes: Sequence[str] | None) -> Array:
    return codes if classes is None else np.array(classes, dtype=object)[codes]
