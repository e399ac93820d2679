"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pipeline.cli import words
from pipeline.cli.audit.robustness_bias.evidence import Evidence
from pipeline.cli.audit.robustness_bias.groups import sizes
from pipeline.cli.audit.robustness_bias.look import Subjects
from pipeline.cli.audit.robustness_bias.measured import POOR, at_ceiling
from pipeline.cli.document import Caveat
from pipeline.cli.probe import OUTPUT_CAVEATS, output_conditions
from pipeline.messages import SHOWN, listed
from pipeline.types import Array

MANY_FAILED = 0.01
"""A larger share of failed attacks in a group may decide its sigma."""
FEW = 30
"""In a smaller group, intervals of percentiles are rather too short."""
CEILING = 0.2
"""Where a larger share of the certified radii is the largest one, that is the number of samples and not the model."""
OF_LABELS = """
no_label: No --label was given, so the model's own prediction is taken for the true class: every image counts as
  classified correctly, no distance is 0, and both denominators are the same. Images that the model gets wrong count for
  a group's robustness here; with labels they would count against it.
poor_accuracy: Few images are classified correctly of {groups}. If the model is better than that, look at --mean, --std,
  --classes, --channels and --resize: it may not see what it was trained on.
upper_bounds: The distances of {attacks} are upper bounds: a smaller change that fools the model may exist, and an
  attack may come closer to the boundary for one group than for another.{more}
"""
OF_AN_ATTACK = """
linear_model: The exact distances are those of a linear model; that pixels end at 0 and 1 is not taken into account.
certified_radii: The radii of {attack} are lower bounds, each wrong with probability at most {alpha:g}, and of another
  model: the one that takes a vote over noisy copies of the image. 0 says that nothing could be certified.
certified_ceiling: {share:.0f} % of the radii are the largest that {samples:,} samples at sigma {sigma:g} can certify,
  {largest:.3g}: among these images no difference can be seen. More samples, or a larger sigma, see further.
"""
OF_IMAGES = f"""
closer_is_not_worse: A group that is closer to the boundary need not be treated worse: smaller changes of its images
  change the prediction. Groups may differ in their classes, or in the contrast of their pictures.
failed_attacks: {{attack}} failed on {{failed:,}} of {{correct:,}} images{{where}}. They are probably far from the
  boundary, but have no distance and are left out, by both denominators: a group that loses more of them looks closer
  than it is. More steps, or another attack, may find one.
{OUTPUT_CAVEATS.strip()}
unreadable_images: {{images}} left out, being unreadable: {{told}}.
unlisted_images: {{count:,}} images in the folder have no row in the table and were not audited.
other_files: {{count:,}} other files in the folder are no PNG or JPEG and were passed over.
resized: Images were resized first: distances are of the resized images, and differ with their size.
converted_images: {{told}}
unknown_group: {{count:,}} images have no {{partition}}: they are in none of its groups.
columns_passed_over: Columns that were not compared: {{told}}. --group names those to compare.
small_group: {{group}} has {{count}} images: the intervals of so small groups are rather too short, and differences
  easily missed.
"""


def caveats(subjects: Subjects, evidence: Sequence[Evidence]) -> Iterator[Caveat]:
    """The conditions that hold of this audit: of the labels first, then what is always so, then what was seen."""
    unlabelled, correct = subjects.points.label is None, subjects.correct
    few = [
        f"{name} ({100 * correct[inside].mean():.0f} %)"
        for name, inside in _groups(subjects)
        if inside.any() and correct[inside].mean() < POOR
    ]
    upper = [one.asked.name for one in evidence if one.asked.bound == "upper"]
    more = "" if len(upper) > 1 else " A second --attack (fmn, carlini_wagner) tells."
    yield from words.caveats(
        OF_LABELS,
        {
            "no_label": unlabelled,
            "poor_accuracy": bool(few and not unlabelled) and {"groups": listed(few, SHOWN)},
            "upper_bounds": upper and {"attacks": " and ".join(upper), "more": more},
        },
    )
    for one in evidence:
        yield from words.caveats(OF_AN_ATTACK, _of_an_attack(one))
    found = {
        "closer_is_not_worse": True,
        "failed_attacks": [_failures(subjects, one) for one in evidence if one.failed.any()],
        **output_conditions(subjects.classifier, "image"),
        **_of_images(subjects),
        **_of_groups(subjects),
    }
    yield from words.caveats(OF_IMAGES, found)


def _groups(subjects: Subjects) -> Iterator[tuple[str, Array]]:
    """Every level of every partition, with its members (n,)."""
    for partition in subjects.points.partitions:
        for level, name in enumerate(partition.levels):
            yield f"{partition.name} = {name}", partition.element(level)[0]


def _of_an_attack(one: Evidence) -> dict[str, Any]:
    if one.asked.bound != "lower":
        return {"linear_model": one.asked.bound == "exact"}
    known = one.distance[np.isfinite(one.distance)]
    share = at_ceiling(known) if len(known) else 0.0
    settings = {"attack": one.asked.name, **one.asked.settings}
    ceiling = share > CEILING and {**settings, "share": 100 * share, "largest": known.max()}
    return {"certified_radii": settings, "certified_ceiling": ceiling}


def _failures(subjects: Subjects, one: Evidence) -> dict[str, Any]:
    counts = {name: (one.failed[inside].sum(), subjects.correct[inside].sum()) for name, inside in _groups(subjects)}
    many = [f"{name} ({failed})" for name, (failed, right) in counts.items() if failed > MANY_FAILED * max(1, right)]
    where = f": {listed(many, SHOWN)}" if many else ""
    correct = int(subjects.correct.sum())
    return {"attack": one.asked.name, "failed": int(one.failed.sum()), "correct": correct, "where": where}


def _of_images(subjects: Subjects) -> dict[str, Any]:
    images, facts = subjects.points.images, subjects.points.facts
    told = [f"{name} ({why})" for name, why in sorted(subjects.unreadable.items())]
    lost = f"{len(told):,} image{' was' if len(told) == 1 else 's were'}"
    return {
        "unreadable_images": told and {"images": lost, "told": listed(told, SHOWN)},
        "unlisted_images": facts["unlisted"] and {"count": facts["unlisted"]},
        "other_files": facts["others"] and {"count": facts["others"]},
        "resized": images.resized,
        "converted_images": [{"told": note} for note in images.notes],
    }


def _of_groups(subjects: Subjects) -> dict[str, Any]:
    partitions, passed_over = subjects.points.partitions, subjects.points.facts["passed_over"]
    told = listed([f"{name} ({why})" for name, why in passed_over.items()], SHOWN)
    unknown = {one.name: int((one.codes < 0).sum()) for one in partitions}
    smallest = {f"{one.name} = {one.levels[sizes(one).argmin()]}": int(sizes(one).min()) for one in partitions}
    return {
        "unknown_group": [{"partition": name, "count": count} for name, count in unknown.items() if count],
        "columns_passed_over": passed_over and {"told": told},
        "small_group": [{"group": name, "count": count} for name, count in smallest.items() if count < FEW],
    }
