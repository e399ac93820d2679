"""From the settings of a robustness audit to its result. Layout of the JSON: ``docs/guide/robustness_bias.md``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.brief import brief
from fairness_audits.audits.robustness_bias.measured import (
    FAIR,
    Examined,
    Measured,
    Unit,
    bound_text,
    measured,
    name_text,
    settings_text,
)
from fairness_audits.audits.robustness_bias.points import Subjects
from fairness_audits.audits.robustness_bias.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model import Model, load_model
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import OUTPUT_CAVEATS, model_words, output_conditions
from fairness_audits.inputs.table import Source
from fairness_audits.messages import apart
from fairness_audits.options import stated
from fairness_audits.results import sentences as words
from fairness_audits.results.formats import fixed, level, p_text, percent, span
from fairness_audits.results.result import Column, Figure, Result, Section, Table, Text, Verdict, rows_of, under
from fairness_audits.values import Array

if TYPE_CHECKING:
    from fairness_audits.audits.robustness_bias.checking import Check

SHOWN_LEVELS = 12
SMALL = 0.01
"""Numbers below this have two significant digits, so that they fit their column."""
SIGNED, COUNT = fixed(2, "+"), fixed(0)
Entry = Mapping[str, Any]
WANTED = "a torch network, a fitted scikit-learn model or a function of x"
SOUND = """
worse <= 10: {attack} is worse than a second search for {value:.0f} % of the checked images of {worst} (limit:
  {limit:.0f} %): its distance is more than {factor:g} times as long. So its distances do not show how far away the
  boundary is. Try another --attack. If the model rounds or saturates inside, let it return the scores before that.
lost_apart <= 10: The gradient is lost for {own:.0f} % of the images of {apart} and for {rest:.0f} % of all others
  (limit: {limit:.0f} percentage points apart). {attack} comes closer to the boundary for images with gradients. Let
  the model compute without rounding, saturation and infinite slopes, such as a root at 0.
"""
"""Limits beyond which distances of groups cannot be compared."""
LIMITS = """
accuracy >= 0.5: Only {percent:.0f} % of the {units} are classified correctly, so the distances describe fewer than half
  of the {units}. Check the labels, the order of the classes and the preprocessing.
gain > 0: The model classifies {percent:.0f} % of the {units} correctly, no better than the {trivial:.0f} % of always
  predicting the most frequent class.
failed <= 10: {attack} failed on {value:.3g} % of the {units} of a group (limit: {limit:.0f} %).
saturated <= 10: The model's probability is exactly 0 or 1 for {value:.3g} % of the images (limit: {limit:.0f} %). There
  an attack has no gradient to follow.
fewest >= 10 unless rejected: A group has only {value} {units} with a distance; the test needs at least {limit:.0f}.
least_p <= 1 unless rejected: {permutations:,} permutations are too few to reject at level {alpha:g} (number of
  comparisons: {comparisons}). Use --permutations={enough}.
"""
CAVEATS = f"""
no_label: Without --label, the model's own predictions are used as the true classes: every {{unit}} counts as classified
  correctly, and sigma* equals sigma. Misclassified {{units}} count with their distances here; with labels, they are
  left out of sigma and count with distance 0 in sigma*.
upper_bounds: The distances of {{attacks}} are upper bounds: a smaller change that fools the model may exist. An attack
  may come closer to the boundary for one group than for another.{{more}}
certified_radii: The radii of {{attack}} are lower bounds. Each is wrong with probability at most {{alpha:g}}. They
  describe the smoothed model, which takes a vote over noisy copies of the image. A radius of 0 means that nothing could
  be certified.
closer_is_not_worse: A group closer to the boundary is not necessarily treated worse: smaller changes of its {{units}}
  change the prediction. Groups may differ in their classes, or in {{why}}.
failed_attacks: {{attack}} failed on {{failed:,}} of {{correct:,}} images{{where}}. Those with a gradient have no
  distance and are excluded from sigma and sigma*, however far from the boundary they are. More steps or another
  attack may find a distance.
no_change: The search found no other decision for {{failed:,}} of {{correct:,}} rows{{where}}. These rows have no
  distance and are excluded from sigma and sigma*, however far from the boundary they are.
changes: Numbers move, measured in standard deviations of all rows. Categories and columns of two values switch as a
  whole{{switched}}, and a switch counts as one standard deviation.{{fixed}} A changed row may describe nobody who could
  exist.
fair_metric: Distances are in the fair metric: a standard deviation along the sensitive directions ({{directions}})
  has length {{cost:g}}, any other has length 1. A distance that is short only in this metric means that a change
  along these directions, which should make no difference, changes the decision.
lost_gradients: The model's gradient is zero, infinite or not a number at some pixels of {{count:,}} images, and at all
  pixels of {{none:,}} images{{where}}. An attack does not change such pixels. If an attack fails on an image without
  any gradient, its distance is the upper bound that the second search found.
{OUTPUT_CAVEATS.strip()}
unreadable_images: {{images}} excluded: {{reasons}}.
turned_images: Images were rotated or mirrored according to their EXIF orientation, as a viewer shows them (number:
  {{count:,}}). If your own pipeline ignores EXIF, the model sees them differently; save such images without EXIF.
unknown_group: The {{units}} without a value of {{partition}} belong to none of its groups (number: {{count:,}}).
"""


def from_files(settings: Settings) -> Result:
    """Run the audit from its settings. Raises InvalidInput for everything that the user can correct."""
    table = settings.data or settings.partition
    if table is None or (settings.data is None and settings.images is None):
        raise InvalidInput(
            "the audit needs rows (--data) or images (--images and --partition)",
            option="data" if settings.images is None else "partition",
            remedy="Pass one of the two",
        )
    source = Source.read(table, **settings.some("text", "missing", "separator"))
    with load_model(settings.model, settings.trust_pickle, Computing.of(settings), wanted=WANTED) as model:
        return audited(settings, source, model)


def audited(
    settings: Settings, source: Source, model: Model, array: Array | None = None, directions: Array | None = None
) -> Result:
    """Find the distances of the rows of a table, or of images, and compare the groups.

    Images are in an ``array`` or in the folder of the settings. ``directions`` of rows are those of the fair metric.
    """
    if settings.data is not None:
        from fairness_audits.audits.robustness_bias import table_audit

        found = table_audit.examined(settings, source, model, directions)
    else:
        from fairness_audits.audits.robustness_bias import image_audit

        found = image_audit.examined(settings, source, model, array)
    subjects, precision = found.subjects, Precision(settings.alpha, settings.bootstraps, settings.permutations)
    attacks = [
        measured(one, distance, found.check, subjects, found.unit, precision, settings.budget, settings.seed)
        for one, distance in found.distances
    ]
    partitions, label = subjects.points.partitions, subjects.points.label
    facts: dict[str, Any] = {
        "accuracy": None if label is None else float(subjects.correct.mean()),
        "data": {
            **found.data,
            "rows": len(source.table),
            "groups": [one.name for one in partitions],
            "audited": len(subjects.points.rows),
        },
        "model": found.model,
        "results": [one.entry for one in attacks],
    }
    concluded = verdict(attacks[0], subjects, settings)
    return Result(
        audit="robustness",
        title="Robustness audit",
        subject=f"{model.name} on {found.place}",
        verdict=concluded,
        brief=brief(attacks[0], found.place, settings.alpha, concluded),
        caveats=(
            *words.caveats(CAVEATS, {**conditions(subjects, found.unit), **found.conditions}),
            *words.caveats(words.READING, {**source.notes, **found.conditions}),
        ),
        sections=tuple(_sections(found, attacks, settings, facts)),
        facts=facts,
        tables={
            "groups": pd.concat([one.groups for one in attacks], ignore_index=True),
            "distances": table_of_points(subjects, attacks, found.check, found.classes),
        },
        libraries=found.libraries,
        settings=found.settings,
    )


def verdict(first: Measured, subjects: Subjects, settings: Settings) -> Verdict:
    """Return which groups are closer to the boundary or farther from it, by the first attack and the correct points.

    Without true classes, the quantities of LIMITS that need them are None.
    """
    found, label, alpha = first.entry, subjects.points.label, settings.alpha
    count = found["points"]
    known: dict[str, Any] = {"accuracy": None, "gain": None}
    if label is not None:
        accuracy, trivial = found["n_correct"] / count, float(np.unique(label, return_counts=True)[1].max() / count)
        known = {"accuracy": accuracy, "gain": accuracy - trivial, "percent": 100 * accuracy, "trivial": 100 * trivial}
    comparisons = sum(len(np.unique(one.comparisons)) for one in subjects.points.partitions)
    quantities = {
        **known,
        **unit_words(first.unit),
        "attack": found["attack"] if first.unit.name == "image" else "The search",
        "failed": 100 * max(one["failed"] / max(1, one["n_correct"]) for one in [found, *found["groups"]]),
        "saturated": 100 * subjects.classifier.saturated / count if first.unit.name == "image" else None,
        "fewest": min(one["n"] for _, few in levels(found) for one in few),
        "least_p": comparisons / (settings.permutations + 1) / alpha,
        **{"permutations": settings.permutations, "alpha": alpha, "comparisons": comparisons},
        "enough": math.ceil(comparisons / alpha - 1e-9) - 1,
        **_soundness(found),
    }
    rejected, text, facts = conclusion(
        found, alpha, label is not None, settings.budget, first.unit.name, first.unit.metric == FAIR
    )
    if words.beyond(SOUND, quantities, rejected is True):
        # Unsound distances may order the groups the wrong way round.
        text, facts = (
            "The table of the check shows both distances for every group.",
            {**facts, "closer": [], "farther": []},
        )
    headlines = ("ROBUSTNESS BIAS", "NO BIAS SHOWN")
    return words.concluded(rejected, headlines, text, SOUND.rstrip() + LIMITS, quantities, "biased", facts)


def _soundness(found: Entry) -> dict[str, Any]:
    """Return the quantities of SOUND, for the worst group and the most different gradients; None without a check."""
    if found["check"] is None:
        return {"worse": None, "lost_apart": None}
    groups = found["check"]["groups"]
    worst, apart = (max(groups, key=itemgetter(key)) for key in ("worse_share", "lost_apart"))
    others = [one for one in groups if one["partition"] == apart["partition"] and one is not apart]
    lost, count = (sum(one[key] for one in others) for key in ("lost_gradient", "n_correct"))
    return {
        **{"worse": 100 * worst["worse_share"], "worst": _title(worst), "factor": found["check"]["factor"]},
        **{"lost_apart": 100 * apart["lost_apart"], "apart": _title(apart), "rest": 100 * lost / max(1, count)},
        "own": 100 * apart["lost_gradient"] / max(1, apart["n_correct"]),
    }


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


def _title(group: Entry) -> str:
    return f"{group['partition']} = {group['level']}"


def _interval(group: Entry) -> str:
    return span((group["sigma_ci_low"], group["sigma_ci_high"]), SIGNED)


def _numbers(group: Entry, alpha: float) -> str:
    p, ends = p_text(group["sigma_p_adjusted"]), (group["sigma_ci_low"], group["sigma_ci_high"])
    interval = "no interval" if ends == (None, None) else f"{level(alpha)} interval {_interval(group)}"
    numbers = "" if group["sigma"] is None else f"sigma {group['sigma']:+.2f}, {interval}, "
    return f"{numbers}adjusted p {p}, n = {group['n']:,}"


def conclusion(
    found: Entry, alpha: float, labelled: bool, budget: float | None = None, unit: str = "image", fair: bool = False
) -> tuple[bool | None, str, dict[str, Any]]:
    """Return whether a test rejects (None without tests), the sentence on the tests, and its groups."""
    # With two levels, only the closer one is compared. The other is its mirror image.
    everyone = sorted((one for _, few in levels(found) for one in (few[:1] if len(few) == 2 else few)), key=_sigma)
    tested = [one for one in everyone if one["sigma_p_adjusted"] is not None]
    shown = [one for one in tested if one["sigma_p_adjusted"] <= alpha]
    closer, farther = ([one for one in shown if sign * _sigma(one) > 0] for sign in (-1, 1))
    facts = {
        "attack": found["attack"],
        "closer": [{key: one[key] for key in ("partition", "level")} for one in closer],
        "farther": [{key: one[key] for key in ("partition", "level")} for one in farther],
    }
    if not tested:
        text = (
            "No group could be tested, because there are too few distances or all are equal. See the caveats "
            "and the model's accuracy below."
        )
    elif not shown:
        largest = max(tested, key=lambda group: abs(_sigma(group)))
        text = (
            "No group is shown to be closer to the decision boundary than all others, or farther from it. The largest "
            f"difference is that of {_title(largest)}: {_numbers(largest, alpha)}. A difference that "
            f"{found['points']:,} {unit}s do not show may still exist."
        )
    else:
        first, *others = shown if _sigma(shown[0]) < 0 else shown[::-1]
        change = "certified radii" if found["bound"] == "lower" else "distances"
        change = f"fair {change}" if fair else change
        change += "" if budget is None else f" up to T = {_number(budget)}"
        place, than = ("closer to", "smaller") if _sigma(first) < 0 else ("farther from", "larger")
        mean = f"{first['auc']:.3g} on average"
        if first["sigma"] is None:
            size = f"{mean}, those of all other {unit}s 0"
        else:
            size = f"{mean}, {100 * abs(first['sigma']):.0f} % {than} than those of all other {unit}s"
        smoothed = " of the smoothed model" if found["bound"] == "lower" else ""
        text = (
            f"{unit.title()}s of {_title(first)} are {place} the decision boundary{smoothed}: their {change} are "
            f"{size} ({_numbers(first, alpha)})."
        )
        text += f" {_otherwise(first, alpha, unit)}" if labelled and first["sigma"] is not None else ""
        if others:
            numbers = ["" if one["sigma"] is None else f" ({one['sigma']:+.2f})" for one in others[:3]]
            others_text = ", ".join(_title(one) + number for one, number in zip(others, numbers, strict=False))
            text += f" Also: {others_text}{f' and {len(others) - 3} more groups' if len(others) > 3 else ''}."
    return bool(shown) if tested else None, text, facts


def _otherwise(group: Entry, alpha: float, unit: str) -> str:
    """Return a sentence on the same group among all points, which shows the effect of accuracy."""
    other, p = group["other"]["sigma"], group["other"]["sigma_p_adjusted"]
    whose = f"With misclassified {unit}s counted as distance 0,"
    if other is None:
        return f"{whose} sigma is undefined."
    if other * group["sigma"] <= 0:
        found = "sigma has the opposite sign:"
    else:
        found = "sigma is" if p is not None and p <= alpha else "no difference is shown: sigma is"
    return f"{whose} {found} {other:+.2f} (adjusted p {p_text(p)})."


def _sections(
    of: Examined, attacks: Sequence[Measured], settings: Settings, facts: Mapping[str, Any]
) -> Iterator[Section]:
    unit, points = of.unit, points_text(of, facts["data"], settings)
    tested = {
        "null": "each group is as far from the decision boundary as all others (sigma = 0)",
        unit.many: points,
        "read as": model_words(facts["model"]),
        "accuracy": "unknown" if facts["accuracy"] is None else f"{facts['accuracy']:.3f}",
        "attack": "; ".join(settings_text(found) for found in facts["results"]),
    }
    yield words.tested(type(of.settings), stated(of.settings), tested)
    for one in attacks:
        entry = one.entry
        title = f"Groups by {name_text(entry)}{bound_text(entry, ': {}')}, {unit.metric} in {unit.of}"
        explained = Text(
            "right: share classified correctly. median: their median distance. sigma: relative difference of the "
            f"group's mean distance from that of all others, up to T = {_number(entry['budget'])}, with its bootstrap "
            "interval. p: permutation p-value, adjusted (Holm) over all groups of this attack. sigma*: sigma with "
            f"misclassified {unit.many} counted as distance 0."
        )
        figure = Figure(
            f"curves_{entry['attack']}",
            "Curves I_P",
            "The share of each group whose distance exceeds tau, the size of the change. A lower curve means that the "
            f"group is closer to the boundary. In brackets: the number of its {unit.many}, and sigma. Only "
            f"{unit.many} that are "
            f"classified correctly count. Distances by {settings_text(entry)}.",
            "fairness_audits.audits.robustness_bias.figures:curves",
            (one, points),
        )
        yield Section(title, (_groups(entry, settings.alpha, facts["accuracy"] is not None, unit), explained, figure))
        if entry["check"] is not None:
            yield _check_section(entry)


def _check_section(found: Entry) -> Section:
    """Return the section that compares an attack's distances with the second search's."""
    check = found["check"]
    columns = (
        Column("", cell=under("level")),
        Column("checked", cell=under("checked", COUNT)),
        Column("mean", cell=under("mean_distance", _number)),
        Column("second", cell=under("mean_second_bound", _number)),
        Column("worse", cell=under("worse", COUNT)),
        Column("lost", cell=lambda group: percent(group["lost_gradient"] / max(1, group["n_correct"]), 0)),
    )
    rows = tuple(
        row
        for name, every in groupby(check["groups"], key=itemgetter("partition"))
        for row in rows_of(columns, every, name)
    )
    explained = Text(
        "checked: images of the group on which a second search, without gradients, looked for a smaller change. "
        f"mean and second: mean distances of these images by {found['attack']} and by the second search. worse: "
        f"images whose distance by {found['attack']} is more than {check['factor']:g} times as long. lost: share of "
        "the group's images without a gradient at some pixels. The results above use only the distances of "
        f"{found['attack']}."
    )
    return Section(f"Check of {found['attack']}", (Table(columns, rows, SHOWN_LEVELS, "audit.json"), explained))


def points_text(found: Examined, data: Entry, settings: Settings) -> str:
    """Return the number of the audited points, and what one of them is."""
    of = f" of {data['rows']:,}" if data["audited"] < data["rows"] else ""
    drawn = f", drawn with seed {settings.seed}" if of and settings.points else ""
    return f"{data['audited']:,}{of} {found.unit.many}{drawn}; {found.shape}"


def _groups(found: Entry, alpha: float, labelled: bool, unit: Unit) -> Table:
    """Return the levels of every partition, the closest to the boundary first."""

    def right(entry: Entry) -> str:
        return percent(entry["n_correct"] / entry["points"], 0) if labelled and entry["points"] else "-"

    columns = (
        Column("", cell=under("level")),
        Column(unit.many, cell=under("points", COUNT)),
        Column("right", cell=right),
        *([Column("failed", cell=under("failed", COUNT))] if found["failed"] else []),
        Column("median", cell=under("median_distance", _number)),
        Column("sigma", cell=under("sigma", SIGNED)),
        Column(f"{level(alpha)} interval", cell=_interval),
        Column("p", cell=under("sigma_p_adjusted", p_text)),
        Column("sigma*", cell=lambda entry: under("sigma", SIGNED)(entry["other"])),
    )
    rows = tuple(row for partition, every in levels(found) for row in rows_of(columns, every, partition))
    return Table(columns, rows, SHOWN_LEVELS, "groups.csv")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value >= SMALL else f"{value:.2g}"


def table_of_points(
    subjects: Subjects, attacks: Sequence[Measured], check: Check | None, classes: Sequence[str] | None
) -> pd.DataFrame:
    """Return one row for each audited image or row.

    ``distance_<attack>`` is empty if it is misclassified or there is no distance. ``length_<attack>`` is the
    length for the paper's denominator: 0 if it is misclassified, empty if there is no distance. Any partition is
    therefore a group-by of these rows. A partition with the name of an audit column gets the suffix ``(group)``.
    """
    some, right = subjects.points, subjects.correct
    columns: dict[str, Any] = {} if some.images is None else {"audit_image": some.names}
    columns["audit_row"] = some.rows
    if some.label is not None:
        columns["audit_label"] = _named(some.label, classes)
    columns["audit_prediction"] = _named(subjects.prediction, classes)
    columns["audit_correct"] = subjects.correct
    for one in attacks:
        columns[f"distance_{one.chosen.name}"] = one.bias.distance
        columns[f"length_{one.chosen.name}"] = np.where(right, one.bias.distance, 0.0)
        columns[f"failed_{one.chosen.name}"] = one.bias.failed
    if check is not None:
        columns |= {"second_bound": check.second, "lost_gradient": np.where(right, check.lost, np.nan)}
    named = apart([one.name for one in some.partitions], columns, "group")
    for name, partition in zip(named, some.partitions, strict=True):
        columns[name] = np.array([*partition.levels, ""], dtype=object)[partition.codes]
    return pd.DataFrame(columns)


def _named(codes: Array, classes: Sequence[str] | None) -> Array:
    return codes if classes is None else np.array(classes, dtype=object)[codes]


def unit_words(unit: Unit) -> dict[str, str]:
    """Return what a point is, for sentences."""
    return {"unit": unit.name, "units": unit.many, "Units": unit.many.title()}


def conditions(subjects: Subjects, unit: Unit) -> dict[str, Any]:
    """Return the conditions of the caveats that images and rows share."""
    points, scores = subjects.points, subjects.classifier
    unknown = {one.name: int((one.codes < 0).sum()) for one in points.partitions}
    saturated = scores.saturated if unit.name == "image" else 0
    return {
        "no_label": points.label is None and unit_words(unit),
        **output_conditions(scores.kind, scores.detected, saturated, unit.name),
        "unknown_group": [
            {"partition": name, "count": count, "units": unit.many} for name, count in unknown.items() if count
        ],
    }
