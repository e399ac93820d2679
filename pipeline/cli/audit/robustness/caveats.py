"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.cli.audit.robustness.evidence import Evidence, Settings
from pipeline.cli.audit.robustness.look import Subjects
from pipeline.cli.audit.robustness.measured import POOR
from pipeline.cli.document import Caveat
from pipeline.cli.probe import output_caveats
from pipeline.messages import SHOWN, listed

MANY_FAILED = 0.01
"""A larger share of failed attacks in a group may decide its sigma."""
FEW = 30
"""In a smaller group, intervals of percentiles are rather too short."""
CEILING = 0.2
"""Where a larger share of the certified radii is the largest one, that is the number of samples and not the model."""

ALIKE = 1e-6
"""Radii that differ by a smaller share are the same."""


def caveats(subjects: Subjects, evidence: Sequence[Evidence], settings: Settings) -> Iterator[Caveat]:
    """The conditions that hold of this audit: of the labels first, then what is always so, then what was seen."""
    yield from _of_labels(subjects)
    yield from _of_bounds(evidence)
    yield Caveat(
        "closer_is_not_worse",
        "A group that is closer to the boundary need not be treated worse: smaller changes of its images change the "
        "prediction. Groups may differ in their classes, or in the contrast of their pictures.",
    )
    yield from _of_failures(subjects, evidence)
    yield from _of_images(subjects)
    yield from _of_groups(subjects)
    yield from _of_power(subjects, settings)


def _of_bounds(evidence: Sequence[Evidence]) -> Iterator[Caveat]:
    """What the distances of each kind are."""
    upper = [one.asked.name for one in evidence if one.asked.bound == "upper"]
    if upper:
        more = "" if len(upper) > 1 else " A second --attack (fmn, carlini_wagner) tells."
        yield Caveat(
            "upper_bounds",
            f"The distances of {' and '.join(upper)} are upper bounds: a smaller change that fools the model may exist"
            f", and an attack may come closer to the boundary for one group than for another.{more}",
        )
    for one in evidence:
        if one.asked.bound == "exact":
            yield Caveat(
                "linear_model",
                "The exact distances are those of a linear model; that pixels end at 0 and 1 is not taken into "
                "account.",
            )
        if one.asked.bound == "lower":
            settings = one.asked.settings
            yield Caveat(
                "certified_radii",
                f"The radii of {one.asked.name} are lower bounds, each wrong with probability at most "
                f"{settings['alpha']:g}, and of another model: the one that takes a vote over noisy copies of the "
                "image. 0 says that nothing could be certified.",
            )
            known = one.distance[np.isfinite(one.distance)]
            share = float((known >= (1 - ALIKE) * known.max()).mean()) if len(known) else 0.0
            if share > CEILING:
                yield Caveat(
                    "certified_ceiling",
                    f"{100 * share:.0f} % of the radii are the largest that {settings['samples']:,} samples at sigma "
                    f"{settings['sigma']:g} can certify, {known.max():.3g}: among these images no difference can be "
                    "seen. More samples, or a larger sigma, see further.",
                )


def _of_labels(subjects: Subjects) -> Iterator[Caveat]:
    if subjects.points.label is None:
        yield Caveat(
            "no_label",
            "No --label was given, so the model's own prediction is taken for the true class: every image counts as "
            "classified correctly, no distance is 0, and both denominators are the same. Images that the model gets "
            "wrong count for a group's robustness here; with labels they would count against it.",
        )
        return
    correct = subjects.correct
    few = []
    for partition in subjects.points.partitions:
        for level, name in enumerate(partition.levels):
            inside = partition.element(level)[0]
            if inside.any() and correct[inside].mean() < POOR:
                few.append(f"{partition.name} = {name} ({100 * correct[inside].mean():.0f} %)")
    if few:
        yield Caveat(
            "poor_accuracy",
            f"Few images are classified correctly of {listed(few, SHOWN)}. If the model is better than that, look at "
            "--mean, --std, --classes, --channels and --resize: it may not see what it was trained on.",
        )


def _of_failures(subjects: Subjects, evidence: Sequence[Evidence]) -> Iterator[Caveat]:
    for one in evidence:
        if not one.failed.any():
            continue
        groups = [
            f"{partition.name} = {name} ({int((one.failed & partition.element(level)[0]).sum())})"
            for partition in subjects.points.partitions
            for level, name in enumerate(partition.levels)
            if (one.failed & partition.element(level)[0]).sum()
            > MANY_FAILED * max(1, subjects.correct[partition.element(level)[0]].sum())
        ]
        where = f": {listed(groups, SHOWN)}" if groups else ""
        yield Caveat(
            "failed_attacks",
            f"{one.asked.name} failed on {int(one.failed.sum()):,} of {int(subjects.correct.sum()):,} images{where}. "
            "They are probably far from the boundary, but have no distance and are left out, by both denominators: a "
            "group that loses more of them looks closer than it is. More steps, or another attack, may find one.",
        )
    yield from output_caveats(subjects.classifier, "image")


def _of_images(subjects: Subjects) -> Iterator[Caveat]:
    if subjects.unreadable:
        told = [f"{name} ({why})" for name, why in sorted(subjects.unreadable.items())]
        many = "image was" if len(told) == 1 else "images were"
        yield Caveat("unreadable_images", f"{len(told):,} {many} left out, being unreadable: {listed(told, SHOWN)}.")
    facts = subjects.points.facts
    if facts["unlisted"]:
        yield Caveat(
            "unlisted_images",
            f"{facts['unlisted']:,} images in the folder have no row in the table and were not audited.",
        )
    if facts["others"]:
        yield Caveat(
            "other_files", f"{facts['others']:,} other files in the folder are no PNG or JPEG and were passed over."
        )
    if subjects.points.images.resized:
        yield Caveat(
            "resized", "Images were resized first: distances are of the resized images, and differ with their size."
        )
    for note in subjects.points.images.notes:
        yield Caveat("converted_images", note)


def _of_groups(subjects: Subjects) -> Iterator[Caveat]:
    for partition in subjects.points.partitions:
        unknown = int((partition.codes < 0).sum())
        if unknown:
            yield Caveat(
                "unknown_group", f"{unknown:,} images have no {partition.name}: they are in none of its groups."
            )
    passed_over = subjects.points.facts["passed_over"]
    if passed_over:
        told = listed([f"{name} ({why})" for name, why in passed_over.items()], SHOWN)
        yield Caveat("columns_passed_over", f"Columns that were not compared: {told}. --group names those to compare.")
    for partition in subjects.points.partitions:
        sizes = np.bincount(partition.codes[partition.codes >= 0], minlength=len(partition))
        if sizes.min() < FEW:
            level = int(sizes.argmin())
            yield Caveat(
                "small_group",
                f"{partition.name} = {partition.levels[level]} has {sizes[level]} images: the intervals of so small "
                "groups are rather too short, and differences easily missed.",
            )


def _of_power(subjects: Subjects, settings: Settings) -> Iterator[Caveat]:
    comparisons = sum(len(np.unique(one.comparisons)) for one in subjects.points.partitions)
    if comparisons / (settings.permutations + 1) > settings.alpha:
        yield Caveat(
            "too_few_permutations",
            f"With {settings.permutations:,} permutations and {comparisons} comparisons no adjusted p-value can be as "
            f"small as {settings.alpha:g}: raise --permutations.",
        )
