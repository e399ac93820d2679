"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.cli.audit.robustness.document import POOR
from pipeline.cli.audit.robustness.evidence import Evidence
from pipeline.cli.audit.robustness.look import Subjects
from pipeline.cli.output_kind import ROUNDING
from pipeline.messages import SHOWN, listed

MANY_FAILED = 0.01
"""A larger share of failed attacks in a group may decide its sigma."""
FEW = 30
"""In a smaller group, intervals of percentiles are rather too short."""
CEILING = 0.2
"""Where a larger share of the certified radii is the largest one, that is the number of samples and not the model."""

ALIKE = 1e-6
"""Radii that differ by a smaller share are the same."""


def caveats(subjects: Subjects, evidence: Sequence[Evidence], arguments: Namespace) -> list[str]:
    """Sentences for this audit: what the labels leave in doubt, what is always so, and what was seen."""
    said = [*_of_labels(subjects, arguments), *_of_bounds(evidence)]
    said.append(
        "A group that is closer to the boundary need not be treated worse: it is easier to change the model's mind "
        "about it. Groups may differ in their classes, or in the contrast of their pictures."
    )
    said += [*_of_failures(subjects, evidence), *_of_images(subjects)]
    return [*said, *_of_groups(subjects), *_of_power(subjects, arguments)]


def _of_bounds(evidence: Sequence[Evidence]) -> Iterator[str]:
    """What the distances of each kind are."""
    upper = [one.asked.name for one in evidence if one.asked.bound == "upper"]
    if upper:
        more = "" if len(upper) > 1 else " A second --attack (fmn, carlini_wagner) tells."
        yield (
            f"The distances of {' and '.join(upper)} are upper bounds: a smaller change that fools the model may exist"
            f", and an attack may come closer to the boundary for one group than for another.{more}"
        )
    for one in evidence:
        if one.asked.bound == "exact":
            yield (
                "The exact distances are those of a linear model; that pixels end at 0 and 1 is not taken into account."
            )
        if one.asked.bound == "lower":
            settings = one.asked.settings
            yield (
                f"The radii of {one.asked.name} are lower bounds, each wrong with probability at most "
                f"{settings['alpha']:g}, and of another model: the one that takes a vote over noisy copies of the "
                "image. 0 says that nothing could be certified."
            )
            known = one.distance[np.isfinite(one.distance)]
            share = float((known >= (1 - ALIKE) * known.max()).mean()) if len(known) else 0.0
            if share > CEILING:
                yield (
                    f"{100 * share:.0f} % of the radii are the largest that {settings['samples']:,} samples at sigma "
                    f"{settings['sigma']:g} can certify, {known.max():.3g}: among these images no difference can be "
                    "seen. More samples, or a larger sigma, see further."
                )


def _of_labels(subjects: Subjects, arguments: Namespace) -> Iterator[str]:
    if arguments.label is None:
        yield (
            "No --label was given, so the model's own prediction stands for the true class: every image counts as "
            "classified correctly, no distance is 0, and both denominators are the same. Images that the model gets "
            "wrong count for a group's robustness here; with labels they would count against it."
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
        yield (
            f"Few images are classified correctly of {listed(few, SHOWN)}. If the model is better than that, look at "
            "--mean, --std, --classes, --channels and --resize: it may not see what it was trained on."
        )


def _of_failures(subjects: Subjects, evidence: Sequence[Evidence]) -> Iterator[str]:
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
        yield (
            f"{one.asked.name} failed on {int(one.failed.sum()):,} of {int(subjects.correct.sum()):,} images{where}. "
            "They are probably far from the boundary, but have no distance and are left out, by both denominators: a "
            "group that loses more of them looks closer than it is. More steps, or another attack, may find one."
        )
    if subjects.classifier.saturated:
        yield (
            f"The model returns probabilities, exactly 0 or 1 for {subjects.classifier.saturated:,} images: there is "
            "hardly a gradient to follow. Let it return logits."
        )
    elif subjects.classifier.detected and subjects.classifier.kind == "probability":
        yield (
            f"All outputs lie between 0 and 1 (sums within {ROUNDING:g} of 1 where there are several) and were read as "
            "probabilities; if they are logits, say --output-kind logits."
        )


def _of_images(subjects: Subjects) -> Iterator[str]:
    if subjects.unreadable:
        told = [f"{name} ({why})" for name, why in sorted(subjects.unreadable.items())]
        many = "image was" if len(told) == 1 else "images were"
        yield f"{len(told):,} {many} left out, being unreadable: {listed(told, SHOWN)}."
    facts = subjects.points.facts
    if facts["unlisted"]:
        yield f"{facts['unlisted']:,} images in the folder have no row in the table and were not audited."
    if facts["others"]:
        yield f"{facts['others']:,} other files in the folder are no PNG or JPEG and were passed over."
    if subjects.points.images.resized:
        yield "Images were resized first: distances are of the resized images, and differ with their size."
    yield from subjects.points.images.notes


def _of_groups(subjects: Subjects) -> Iterator[str]:
    for partition in subjects.points.partitions:
        unknown = int((partition.codes < 0).sum())
        if unknown:
            yield f"{unknown:,} images have no {partition.name}: they are in none of its groups."
    passed_over = subjects.points.facts["passed_over"]
    if passed_over:
        told = listed([f"{name} ({why})" for name, why in passed_over.items()], SHOWN)
        yield f"Columns that were not compared: {told}. --group names those to compare."
    for partition in subjects.points.partitions:
        sizes = np.bincount(partition.codes[partition.codes >= 0], minlength=len(partition))
        if sizes.min() < FEW:
            level = int(sizes.argmin())
            yield (
                f"{partition.name} = {partition.levels[level]} has {sizes[level]} images: the intervals of so small "
                "groups are rather too short, and differences easily missed."
            )


def _of_power(subjects: Subjects, arguments: Namespace) -> Iterator[str]:
    comparisons = sum(len(np.unique(one.comparisons)) for one in subjects.points.partitions)
    if comparisons / (arguments.permutations + 1) > arguments.alpha:
        yield (
            f"With {arguments.permutations:,} permutations and {comparisons} comparisons no adjusted p-value can be as "
            f"small as {arguments.alpha:g}: raise --permutations."
        )
