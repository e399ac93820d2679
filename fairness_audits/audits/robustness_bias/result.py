"""From the settings of a robustness audit to its result. Layout of the JSON: ``docs/guide/robustness_bias.md``."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairness_audits.audits.robustness_bias.attacking import DistanceCache, chosen_attacks, distances
from fairness_audits.audits.robustness_bias.brief import brief
from fairness_audits.audits.robustness_bias.checking import Check, checked_attacks
from fairness_audits.audits.robustness_bias.distances import SMOOTHING, exact_arithmetic
from fairness_audits.audits.robustness_bias.measured import BOUNDS, Measured, measured, settings_text
from fairness_audits.audits.robustness_bias.settings import Settings
from fairness_audits.audits.robustness_bias.subjects import (
    Subjects,
    check_sizes,
    classified,
    identity,
    normalised,
    read_points,
)
from fairness_audits.inputs.model import Computing, Model, load_model
from fairness_audits.inputs.probe import OUTPUT_CAVEATS, model_facts, model_words, output_conditions
from fairness_audits.inputs.table import Source, check_classes
from fairness_audits.messages import SHOWN, apart, listed
from fairness_audits.options import stated
from fairness_audits.results import sentences as words
from fairness_audits.results.formats import fixed, level, p_text, percent, plural, span
from fairness_audits.results.result import Column, Figure, Result, Section, Table, Text, Verdict, rows_of, under
from fairness_audits.values import Array
from fairness_audits.version import __version__

SHOWN_LEVELS = 12
SMALL = 0.01
"""Numbers below this have two significant digits, so that they fit their column."""
SIGNED, COUNT = fixed(2, "+"), fixed(0)
Entry = Mapping[str, Any]
WANTED = "a torch network or a function of x"
# Thresholds and texts of the caveats.
MANY_FAILED = 0.01
SOUND = """
worse <= 10: {attack} is worse than a second search at {value:.0f} % of the checked images of {worst}, more than
  {limit:.0f} %: its distance is more than {factor:g} times as long. So its distances do not say how far the boundary
  is. Try another --attack. Where the model rounds or saturates inside, let it return the scores before
  that.
lost_apart <= 10: The gradient is lost at {own:.0f} % of the images of {apart} and at {rest:.0f} % of all others, more
  than {limit:.0f} points apart: {attack} comes closer to the boundary where it has gradients to follow. Let the model
  compute without rounding, saturation and infinite slopes (such as a root at 0).
"""
"""Limits beyond which distances of groups cannot be compared."""
LIMITS = """
accuracy >= 0.5: Only {percent:.0f} % of the images are classified correctly, and distances of fewer than half of the
  images say little: see first whether that can be so.
gain > 0: The model classifies {percent:.0f} % of the images correctly, no more than {trivial:.0f} %, which is right of
  a model that always names the most frequent class.
failed <= 10: {attack} failed on {value:.0f} % of the images of a group, more than {limit:.0f} %.
saturated <= 10: The model's probability is exactly 0 or 1 in {value:.0f} % of the images, more than {limit:.0f} %: an
  attack has no gradient to follow there.
fewest >= 10 unless rejected: A group has only {value} images that count, and needs {limit:.0f}.
least_p <= 1 unless rejected: {permutations:,} permutations cannot reject at level {alpha:g} in {comparisons}
  comparisons: --permutations={enough} can.
"""
CAVEATS = f"""
no_label: No --label was given, so the model's own prediction is taken for the true class: every image counts as
  classified correctly, no distance is 0, and both denominators are the same. Images that the model gets wrong count for
  a group's robustness here; with labels they would count against it.
upper_bounds: The distances of {{attacks}} are upper bounds: a smaller change that fools the model may exist, and an
  attack may come closer to the boundary for one group than for another.{{more}}
certified_radii: The radii of {{attack}} are lower bounds, each wrong with probability at most {{alpha:g}}, and of
  another model: the one that takes a vote over noisy copies of the image. 0 says that nothing could be certified.
closer_is_not_worse: A group that is closer to the boundary need not be treated worse: smaller changes of its images
  change the prediction. Groups may differ in their classes, or in the contrast of their pictures.
failed_attacks: {{attack}} failed on {{failed:,}} of {{correct:,}} images{{where}}. Those with a gradient have no
  distance and are left out, by both denominators, however far from the boundary they are. More steps, or another
  attack, may find one.
lost_gradients: The model has no gradient along some pixels of {{count:,}} images, and none at all at {{none:,}} images:
  it is zero, infinite or not a number there{{where}}. An attack does not change such pixels. An image without any
  gradient on which an attack fails has the distance of the search that checks the attack, an upper bound.
{OUTPUT_CAVEATS.strip()}
unreadable_images: {{images}} left out, being unreadable: {{told}}.
turned_images: {{count:,}} images were turned or mirrored as their EXIF orientation says, which is how a viewer shows
  them. A model sees them otherwise where its own pipeline ignores EXIF: write such images again without it then.
unknown_group: {{count:,}} images have no {{partition}}: they are in none of its groups.
"""


def from_files(settings: Settings) -> Result:
    """Run the audit from its settings. Raises InvalidInput for everything that the user can correct."""
    source = Source.read(settings.partition, **settings.some("text", "missing", "separator"))
    with load_model(
        settings.model, settings.trust_pickle, Computing(settings.device, "float32"), wanted=WANTED
    ) as model:
        return audited(settings, source, model)


def audited(settings: Settings, source: Source, model: Model, array: Array | None = None) -> Result:
    """Find the distances of images, in an ``array`` or in the folder of the settings, and compare the groups."""
    wanted = chosen_attacks(settings)
    points = read_points(source, settings, array)
    shape = points.images.shape
    check_sizes(points.partitions, settings.min_group)
    with_gradient = bool({one.name for one in wanted} - {SMOOTHING})
    raw = normalised(model, settings, shape, with_gradient)
    normalisation = {"mean": list(raw.mean), "std": list(raw.std)}
    # The network's part of the cache key. Smoothing also depends on the seed, through its noise.
    made_of = {
        **{"model": "" if settings.checkpoint is None else identity(model), **normalisation},
        **{"output kind": settings.output_kind, "shape": list(shape)},
        **{"program": __version__, "torch": torch.__version__, "numpy": np.__version__},
    }
    made_by = {
        one.name: {**one.settings, **({"seed": settings.seed} if one.name == SMOOTHING else {})} for one in wanted
    }
    with exact_arithmetic(torch.get_num_threads()):
        subjects = classified(points, raw, settings.output_kind, with_gradient)
        partitions, label = subjects.points.partitions, subjects.points.label
        check_sizes(partitions, settings.min_group)
        labels = np.zeros(0, dtype=np.int64) if label is None else label
        check_classes(labels, subjects.classes, settings.classes, settings.label, source.name)
        cache = DistanceCache(settings.checkpoint, made_of, made_by)
        try:
            found = [distances(one, subjects, cache, settings) for one in wanted]
            check = checked_attacks(subjects, settings) if any(one.bound == "upper" for one in wanted) else None
        except KeyboardInterrupt:
            cache.interrupted()
            raise
    attacks = [measured(one, distance, check, subjects, settings) for one, distance in zip(wanted, found, strict=True)]
    results = [one.entry for one in attacks]
    facts: dict[str, Any] = {
        "accuracy": None if label is None else float(subjects.correct.mean()),
        "data": {
            "pixels_sha256": hashlib.sha256(b"".join(subjects.digests)).hexdigest(),
            "sha256": source.sha256,
            "file": points.column,
            "rows": len(source.table),
            "groups": [one.name for one in partitions],
            "audited": len(subjects.points.rows),
            "shape": list(shape),
            "unreadable": dict(sorted(subjects.unreadable.items())),
        },
        "model": {
            **{**model_facts(model, subjects.classifier), **normalisation},
            **{"classes": subjects.classes, "device": str(raw.device)},
        },
        "results": results,
    }
    concluded = verdict(attacks[0], subjects, settings)
    return Result(
        audit="robustness",
        title="Robustness audit",
        subject=f"{model.given} on {settings.images}",
        verdict=concluded,
        brief=brief(attacks[0].entry, str(settings.images), settings.alpha, concluded),
        caveats=(
            *words.caveats(CAVEATS, conditions(subjects, attacks, check)),
            *words.caveats(words.READING, source.notes),
        ),
        sections=tuple(_sections(subjects, attacks, settings, facts)),
        facts=facts,
        tables={
            "groups": pd.concat([one.groups for one in attacks], ignore_index=True),
            "distances": table_of_images(subjects, attacks, check, settings.classes),
        },
        libraries=("numpy", "torch"),
        settings=settings,
    )


def verdict(first: Measured, subjects: Subjects, settings: Settings) -> Verdict:
    """Return which groups are closer to the boundary or farther from it, by the first attack and the correct images.

    Without true classes, the quantities of LIMITS that need them are None.
    """
    found, label, alpha = first.entry, subjects.points.label, settings.alpha
    count = found["images"]
    known: dict[str, Any] = {"accuracy": None, "gain": None}
    if label is not None:
        accuracy, trivial = found["n_correct"] / count, float(np.unique(label, return_counts=True)[1].max() / count)
        known = {"accuracy": accuracy, "gain": accuracy - trivial, "percent": 100 * accuracy, "trivial": 100 * trivial}
    comparisons = sum(len(np.unique(one.comparisons)) for one in subjects.points.partitions)
    quantities = {
        **known,
        "attack": found["attack"],
        "failed": 100 * max(one["failed"] / max(1, one["n_correct"]) for one in [found, *found["groups"]]),
        "saturated": 100 * subjects.classifier.saturated / count,
        "fewest": min(one["n"] for _, few in levels(found) for one in few),
        "least_p": comparisons / (settings.permutations + 1) / alpha,
        **{"permutations": settings.permutations, "alpha": alpha, "comparisons": comparisons},
        "enough": math.ceil(comparisons / alpha - 1e-9) - 1,
        **_soundness(found),
    }
    rejected, said, facts = conclusion(found, alpha, label is not None, settings.budget)
    if words.beyond(SOUND, quantities, rejected is True):
        # Unsound distances may order the groups the wrong way round.
        said, facts = (
            "The table of the check has both distances of every group.",
            {**facts, "closer": [], "farther": []},
        )
    headlines = ("ROBUSTNESS BIAS", "NO BIAS SHOWN")
    return words.concluded(rejected, headlines, said, SOUND.rstrip() + LIMITS, quantities, "biased", facts)


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
    """Yield the levels of each partition among correctly classified images, the closest to the boundary first.

    ``other`` has the measures of all images.
    """
    of_all = {(one["partition"], one["level"]): one for one in found["groups"] if one["denominator"] == "paper"}
    correct = (one for one in found["groups"] if one["denominator"] == "correct")
    for partition, every in groupby(correct, key=itemgetter("partition")):
        yield partition, sorted(({**one, "other": of_all[partition, one["level"]]} for one in every), key=_sigma)


def _sigma(group: Entry) -> float:
    return group["sigma"] or 0.0


def _title(group: Entry) -> str:
    return f"{group['partition']} = {group['level']}"


def _interval(group: Entry) -> str:
    return span((group["sigma_ci_low"], group["sigma_ci_high"]), SIGNED)


def _numbers(group: Entry, alpha: float) -> str:
    interval, p = _interval(group), p_text(group["sigma_p_adjusted"])
    return f"sigma {group['sigma']:+.2f}, {level(alpha)} interval {interval}, adjusted p {p}, n = {group['n']:,}"


def conclusion(
    found: Entry, alpha: float, labelled: bool, budget: float | None = None
) -> tuple[bool | None, str, dict[str, Any]]:
    """Return whether a test rejects (None without tests), the sentence on the tests, and its groups."""
    # With two levels, only the closer one is compared. The other is its mirror image.
    everyone = sorted((one for _, few in levels(found) for one in (few[:1] if len(few) == 2 else few)), key=_sigma)
    # If all others of a group have distance 0, it has a test and no sigma. The others are named instead.
    tested = [one for one in everyone if one["sigma_p_adjusted"] is not None and one["sigma"] is not None]
    shown = [one for one in tested if one["sigma_p_adjusted"] <= alpha]
    closer, farther = ([one for one in shown if sign * one["sigma"] > 0] for sign in (-1, 1))
    facts = {
        "attack": found["attack"],
        "closer": [{key: one[key] for key in ("partition", "level")} for one in closer],
        "farther": [{key: one[key] for key in ("partition", "level")} for one in farther],
    }
    if not tested:
        said = (
            "No group could be tested: too few distances, or all of them equal. Look at the failed attacks and the "
            "model's accuracy below."
        )
    elif not shown:
        largest = max(tested, key=lambda group: abs(group["sigma"]))
        said = (
            "No group is shown to be closer to the decision boundary than the others. The largest difference is that "
            f"of {_title(largest)}: {_numbers(largest, alpha)}. What {found['images']:,} images do not show "
            "may still be there."
        )
    else:
        first, *others = shown if shown[0]["sigma"] < 0 else shown[::-1]
        change = "certified radii" if found["bound"] == "lower" else "distances"
        change += "" if budget is None else f" up to T = {_number(budget)}"
        place, than = ("closer to", "smaller") if first["sigma"] < 0 else ("farther from", "larger")
        said = (
            f"Images of {_title(first)} are {place} the decision boundary: their {change} are "
            f"{100 * abs(first['sigma']):.0f} % {than} than those of the others, {first['auc']:.3g} on average "
            f"({_numbers(first, alpha)})."
        )
        said += f" {_otherwise(first, alpha)}" if labelled else ""
        if others:
            others_text = ", ".join(f"{_title(one)} ({one['sigma']:+.2f})" for one in others[:3])
            said += f" Also: {others_text}{f' and {len(others) - 3} more groups' if len(others) > 3 else ''}."
    return bool(shown) if tested else None, said, facts


def _otherwise(group: Entry, alpha: float) -> str:
    """Return a sentence on the same group among all images, which shows the effect of accuracy."""
    other, p = group["other"]["sigma"], group["other"]["sigma_p_adjusted"]
    whose = "Of all images, those classified wrongly counting as distance 0,"
    if other is None:
        return f"{whose} there is no sigma."
    same = other * group["sigma"] > 0
    verb = "has the opposite sign:" if not same else "is" if p is not None and p <= alpha else "is not shown: it is"
    return f"{whose} sigma {verb} {other:+.2f} (adjusted p {p_text(p)})."


def _sections(
    subjects: Subjects, attacks: Sequence[Measured], settings: Settings, facts: Mapping[str, Any]
) -> Iterator[Section]:
    images = images_text(facts["data"], settings)
    tested = {
        "null": "each group is as far from the decision boundary as all others (sigma = 0)",
        "images": images,
        "read as": model_words(facts["model"]),
        "accuracy": "unknown" if facts["accuracy"] is None else f"{facts['accuracy']:.3f}",
        "attack": "; ".join(settings_text(found) for found in facts["results"]),
    }
    yield words.tested(Settings, stated(settings), tested)
    for one in attacks:
        entry = one.entry
        title = f"Groups by {entry['attack']}: {BOUNDS[entry['bound']]}, L2 in pixels in [0, 1]"
        explained = Text(
            "right: share classified correctly; median: of their distances; sigma: how much larger the mean distance "
            f"of the group is than that of all others, up to T = {_number(entry['budget'])}, with its interval "
            "(bootstrap); p: of permutations, adjusted (Holm) over all groups of this attack; sigma*: the same of "
            "all images of a group, those classified wrongly at distance 0."
        )
        figure = Figure(
            f"curves_{entry['attack']}",
            "Curves I_P",
            "The share of each group whose distance exceeds the size of change. A lower curve is a group closer to "
            "the boundary; in brackets the number of its images and sigma. Of the images classified correctly alone, "
            f"by {settings_text(entry)}.",
            "fairness_audits.audits.robustness_bias.figures:curves",
            (one, images),
        )
        yield Section(title, (_groups(entry, settings.alpha, facts["accuracy"] is not None), explained, figure))
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
        "checked: images of the group for which a second search, which compares decisions, classified for a smaller "
        f"change; mean and second: mean distances of those by {found['attack']} and by that search; worse: images "
        f"where the distance by {found['attack']} is more than {check['factor']:g} times as long; lost: share of the "
        "group's images that have no gradient along some of their pixels. The distances above are those of "
        f"{found['attack']} alone."
    )
    return Section(f"Check of {found['attack']}", (Table(columns, rows, SHOWN_LEVELS, "audit.json"), explained))


def images_text(data: Entry, settings: Settings) -> str:
    """Return the number and shape of the audited images."""
    of = f" of {data['rows']:,}" if data["audited"] < data["rows"] else ""
    drawn = f", drawn with seed {settings.seed}" if of and settings.points else ""
    shape = " x ".join(map(str, data["shape"]))
    return f"{data['audited']:,}{of} images{drawn}; {shape} (channels x height x width)"


def _groups(found: Entry, alpha: float, labelled: bool) -> Table:
    """Return the levels of every partition, the closest to the boundary first."""

    def right(entry: Entry) -> str:
        return percent(entry["n_correct"] / entry["images"], 0) if labelled and entry["images"] else "-"

    columns = (
        Column("", cell=under("level")),
        Column("images", cell=under("images", COUNT)),
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


def table_of_images(
    subjects: Subjects, attacks: Sequence[Measured], check: Check | None, classes: Sequence[str] | None
) -> pd.DataFrame:
    """Return one row for each audited image.

    ``distance_<attack>`` is empty if the image is misclassified or there is no distance. ``length_<attack>`` is the
    length for the paper's denominator: 0 if the image is misclassified, empty if there is no distance. Any partition is
    therefore a group-by of these rows. A partition with the name of an audit column gets the suffix ``(group)``.
    """
    some, right = subjects.points, subjects.correct
    columns: dict[str, Any] = {"audit_image": some.names, "audit_row": some.rows}
    if some.label is not None:
        columns["audit_label"] = _named(some.label, classes)
    columns["audit_prediction"] = _named(subjects.prediction, classes)
    columns["audit_correct"] = subjects.correct
    for one in attacks:
        columns[f"distance_{one.chosen.name}"] = one.points.distance
        columns[f"length_{one.chosen.name}"] = np.where(right, one.points.distance, 0.0)
        columns[f"failed_{one.chosen.name}"] = one.failed
    if check is not None:
        columns |= {"second_bound": check.second, "lost_gradient": np.where(right, check.lost, np.nan)}
    named = apart([one.name for one in some.partitions], columns, "group")
    for name, partition in zip(named, some.partitions, strict=True):
        columns[name] = np.array([*partition.levels, ""], dtype=object)[partition.codes]
    return pd.DataFrame(columns)


def _named(codes: Array, classes: Sequence[str] | None) -> Array:
    return codes if classes is None else np.array(classes, dtype=object)[codes]


def conditions(subjects: Subjects, attacks: Sequence[Measured], check: Check | None) -> dict[str, Any]:
    points, correct, partitions = subjects.points, subjects.correct, subjects.points.partitions
    scores = subjects.classifier
    members = {
        f"{one.name} = {name}": one.codes == place for one in partitions for place, name in enumerate(one.levels)
    }
    upper = [one.chosen.name for one in attacks if one.chosen.bound == "upper"]
    certified = [one.chosen for one in attacks if one.chosen.bound == "lower"]

    def where(failed: Array) -> str:
        """Return the groups that contain more than a few of these images."""
        counts = {name: (failed[inside].sum(), correct[inside].sum()) for name, inside in members.items()}
        many = [f"{name} ({few})" for name, (few, right) in counts.items() if few > MANY_FAILED * max(1, right)]
        return f": {listed(many, SHOWN)}" if many else ""

    failures = [
        {
            "attack": one.chosen.name,
            "failed": int(one.failed.sum()),
            "correct": correct.sum(),
            "where": where(one.failed),
        }
        for one in attacks
        if one.failed.any()
    ]
    lost = np.zeros(0) if check is None else check.lost
    turned = len(points.images.turned.intersection(points.rows.tolist()))
    unreadable = [f"{name} ({why})" for name, why in sorted(subjects.unreadable.items())]
    unknown = {one.name: int((one.codes < 0).sum()) for one in partitions}
    return {
        "no_label": points.label is None,
        "upper_bounds": upper
        and {
            "attacks": " and ".join(upper),
            "more": "" if len(upper) > 1 else " A second --attack (fmn, carlini_wagner) tells.",
        },
        "certified_radii": [{"attack": one.name, **one.settings} for one in certified],
        "closer_is_not_worse": True,
        "failed_attacks": failures,
        "lost_gradients": bool(lost.any())
        and {"count": int((lost > 0).sum()), "none": int((lost == 1).sum()), "where": where(lost > 0)},
        **output_conditions(scores.kind, scores.detected, scores.saturated, "image"),
        "unreadable_images": unreadable
        and {
            "images": plural(len(unreadable), "image") + (" was" if len(unreadable) == 1 else " were"),
            "told": listed(unreadable, SHOWN),
        },
        "turned_images": turned and {"count": turned},
        "unknown_group": [{"partition": name, "count": count} for name, count in unknown.items() if count],
    }
