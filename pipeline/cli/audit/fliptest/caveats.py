"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.cli.audit.fliptest.evidence import Side
from pipeline.cli.audit.fliptest.model import Model
from pipeline.cli.audit.fliptest.space import Space
from pipeline.messages import SHOWN, listed
from pipeline.transport.quality import WORST_HEALTHY_KS

FEW_ROWS = 200
"""With fewer rows in a group, counterparts hang on who happens to be among them."""
FAR = 1.5
"""A map that moves people by so many times the distance of exact transport does not seek the nearest counterparts."""


def caveats(sides: Sequence[Side], space: Space, model: Model, threshold_given: bool, columns: int) -> list[str]:
    """Sentences for this audit, the general ones first. ``columns``: how many columns the map moves."""
    said = [
        "A flip is not yet discrimination: the features in which a flipset differs from its counterparts may justify "
        "the difference, or be what is unjust about it. FlipTest says who to look at, and where."
    ]
    for side in sides:
        said += [*_of_the_map(side, space), *_of_the_decisions(side)]
    said += [*_of_size(sides, columns), *_of_counterparts(sides, space)]
    if sides[0].null is None:
        said.append(
            "The intervals and p-values take the map as given. How many flips the map makes by itself is seen with "
            "--null-draws 39, at the price of so many more fits."
        )
    if model.kind == "probability" and not threshold_given:
        said.append(
            "All outputs lie between 0 and 1: they were read as probabilities, and cut at 0.5; --threshold cuts "
            "elsewhere."
        )
    return said


def _of_the_map(side: Side, space: Space) -> Iterator[str]:
    quality, way = side.quality, side.way
    where = f"from {way.source.level} to {way.target.level}"
    poor = np.flatnonzero(quality.ks > WORST_HEALTHY_KS)
    if len(poor):
        worst = poor[np.argsort(-quality.ks[poor])]
        named = listed([f"{space.labels[space.moving[j]]} ({quality.ks[j]:.2f})" for j in worst], SHOWN)
        yield (
            f"The map {where} is poor: counterparts are not distributed as {way.target.level} are, by the "
            f"Kolmogorov-Smirnov distance of {named}; {WORST_HEALTHY_KS:g} is the most that is trusted. Flips may come "
            "from that. Try another map, or other settings of this one (--map-setting)."
        )
    if side.facts.get("non_finite"):
        yield f"The fit of the map {where} broke down on the way: its counterparts are those of its last sound state."
    if len(way.points) > len(side.kept):
        missing = len(way.points) - len(side.kept)
        yield f"{missing:,} people of {way.source.level} have no finite image and are left out."
    if quality.compared and quality.compared_distance > FAR * quality.exact_distance:
        yield (
            f"The map {where} moves people {quality.compared_distance / quality.exact_distance:.1f} times as far as "
            "exact transport does: its counterparts are not the nearest ones."
        )


def _of_the_decisions(side: Side) -> Iterator[str]:
    """Flipsets that are empty by themselves."""
    source = side.way.source.level
    for value, words, flipset in ((1, "positively", "negative"), (0, "negatively", "positive")):
        if (side.flips.decision == value).all():
            yield f"Everybody in {source} is decided {words}, so that the {flipset} flipset is empty whatever the map."


def _of_size(sides: Sequence[Side], columns: int) -> Iterator[str]:
    fewest = min(len(sides[0].way.points), len(sides[0].way.target_points))
    if fewest < FEW_ROWS:
        yield (
            f"A group has only {fewest} rows: who is whose counterpart hangs on who happens to be in the file. Other "
            "rows would give other flipsets."
        )
    if fewest < 10 * columns:
        yield (
            f"The map moves {columns} columns, many for {fewest} rows: few people have a near counterpart. --features "
            "or --drop can leave out what the model hardly looks at, if the model allows."
        )


def _of_counterparts(sides: Sequence[Side], space: Space) -> Iterator[str]:
    if not all(side.real for side in sides):
        snapped = f" Categories and whole numbers are the nearest that exist ({listed(space.snapping, SHOWN)})."
        yield ("Counterparts are points of a smooth map, not people of the file." + (snapped if space.snapping else ""))
    else:
        yield (
            "The map is exact for these rows alone: it pairs everybody with people who happen to be in the file, so it "
            "finds more flips than a smooth map does, more of them by chance."
        )
    if space.unmoved:
        yield (
            f"Each group has a single value in {listed(space.unmoved, SHOWN)}: counterparts take that of their own "
            "group, so flips may be the model's direct use of it."
        )
