"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.cli.audit.fliptest.evidence import Side
from pipeline.cli.audit.fliptest.space import Space
from pipeline.cli.document import Caveat
from pipeline.messages import SHOWN, listed
from pipeline.transport.quality import WORST_HEALTHY_KS

if TYPE_CHECKING:
    from pipeline.cli.audit.fliptest.document import Result

FEW_ROWS = 200
"""With fewer rows in a group, counterparts depend much on which rows there are."""
FAR = 1.5
"""A map that moves people by so many times the distance of exact transport does not seek the nearest counterparts."""


def caveats(found: Result) -> Iterator[Caveat]:
    """The conditions that hold of this audit, the general ones first."""
    yield Caveat(
        "flips_are_to_be_read",
        "A flip is not yet discrimination: the features in which a flipset differs from its counterparts may justify "
        "the difference, or be what is unjust about it. FlipTest says who to look at, and where.",
    )
    for side in found.sides:
        yield from _of_the_map(side, found.space)
        yield from _of_the_decisions(side)
    yield from _of_size(found.sides[0], len(found.space.moving))
    yield from _of_counterparts(found.sides, found.space)
    if found.sides[0].null is None:
        yield Caveat(
            "no_noise_floor",
            "The intervals and p-values take the map as given. How many flips the map makes by itself is seen with "
            "--null-draws 39, at the price of so many more fits.",
        )
    if found.model.kind == "probability" and not found.threshold_given:
        yield Caveat(
            "read_as_probabilities",
            "All outputs lie between 0 and 1: they were read as probabilities, and cut at 0.5; --threshold cuts "
            "elsewhere.",
        )


def _of_the_map(side: Side, space: Space) -> Iterator[Caveat]:
    quality, way = side.quality, side.way
    where = f"from {way.source.level} to {way.target.level}"
    poor = np.flatnonzero(quality.ks > WORST_HEALTHY_KS)
    if len(poor):
        worst = poor[np.argsort(-quality.ks[poor])]
        named = listed([f"{space.labels[space.moving[j]]} ({quality.ks[j]:.2f})" for j in worst], SHOWN)
        yield Caveat(
            "poor_map",
            f"The map {where} is poor: counterparts are not distributed as {way.target.level} are, by the "
            f"Kolmogorov-Smirnov distance of {named}; {WORST_HEALTHY_KS:g} is the most that is trusted. Flips may come "
            "from that. Try another map, or other settings of this one (--map-setting).",
        )
    if side.facts.get("non_finite"):
        yield Caveat(
            "fit_broke_down",
            f"The fit of the map {where} broke down on the way: its counterparts are those of its last sound state.",
        )
    if len(way.points) > len(side.kept):
        missing = len(way.points) - len(side.kept)
        yield Caveat("no_image", f"{missing:,} people of {way.source.level} have no finite image and are left out.")
    if quality.compared and quality.compared_distance > FAR * quality.exact_distance:
        yield Caveat(
            "far_counterparts",
            f"The map {where} moves people {quality.compared_distance / quality.exact_distance:.1f} times as far as "
            "exact transport does: its counterparts are not the nearest ones.",
        )


def _of_the_decisions(side: Side) -> Iterator[Caveat]:
    """Flipsets that are empty by themselves."""
    source = side.way.source.level
    for value, words, flipset in ((1, "positively", "negative"), (0, "negatively", "positive")):
        if (side.flips.decision == value).all():
            yield Caveat(
                "empty_flipset",
                f"Everybody in {source} is decided {words}, so that the {flipset} flipset is empty whatever the map.",
            )


def _of_size(side: Side, columns: int) -> Iterator[Caveat]:
    fewest = min(len(side.way.points), len(side.way.target_points))
    if fewest < FEW_ROWS:
        yield Caveat(
            "few_rows",
            f"A group has only {fewest} rows: counterparts depend on which rows are in the file, and other rows would "
            "give other flipsets.",
        )
    if fewest < 10 * columns:
        yield Caveat(
            "many_columns",
            f"The map moves {columns} columns, many for {fewest} rows: few people have a near counterpart. --features "
            "or --drop can leave out what the model hardly looks at, if the model allows.",
        )


def _of_counterparts(sides: Sequence[Side], space: Space) -> Iterator[Caveat]:
    if not all(side.real for side in sides):
        snapped = f" Categories and whole numbers are the nearest that exist ({listed(space.snapping, SHOWN)})."
        yield Caveat(
            "smooth_map",
            "Counterparts are points of a smooth map, not people of the file." + (snapped if space.snapping else ""),
        )
    else:
        yield Caveat(
            "exact_map",
            "The map is exact for these rows alone: it pairs everybody with people of the file, so it "
            "finds more flips than a smooth map does, more of them by chance.",
        )
    if space.unmoved:
        yield Caveat(
            "unmoved_columns",
            f"Each group has a single value in {listed(space.unmoved, SHOWN)}: counterparts take that of their own "
            "group, so flips may be the model's direct use of it.",
        )
