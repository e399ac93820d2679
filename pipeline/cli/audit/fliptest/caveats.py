"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.cli import words
from pipeline.cli.audit.fliptest.evidence import Side
from pipeline.cli.audit.fliptest.space import Space
from pipeline.cli.document import Caveat
from pipeline.messages import SHOWN, listed
from pipeline.transport.quality import WORST_HEALTHY_KS

if TYPE_CHECKING:
    from pipeline.cli.audit.fliptest.document import Result

FEW_ROWS = 200
"""With fewer rows in a group, counterparts depend much on which rows there are."""
ROWS_A_COLUMN = 10
"""With fewer rows for each column that the map moves, few people have a near counterpart."""
FAR = 1.5
"""A map that moves people by so many times the distance of exact transport does not seek the nearest counterparts."""
FIRST = """
flips_are_to_be_read: A flip is not yet discrimination: the features in which a flipset differs from its counterparts
  may justify the difference, or be what is unjust about it. FlipTest says who to look at, and where.
"""
OF_A_SIDE = """
poor_map: The map {where} is poor: counterparts are not distributed as {target} are, by the Kolmogorov-Smirnov distance
  of {named}; {most:g} is the most that is trusted. Flips may come from that. Try another map, or other settings of this
  one (--map-setting).
fit_broke_down: The fit of the map {where} broke down on the way: its counterparts are those of its last sound state.
no_image: {missing:,} people of {source} have no finite image and are left out.
far_counterparts: The map {where} moves people {times:.1f} times as far as exact transport does: its counterparts are
  not the nearest ones.
empty_flipset: Everybody in {source} is decided {decided}, so that the {flipset} flipset is empty whatever the map.
"""
LAST = """
few_rows: A group has only {fewest} rows: counterparts depend on which rows are in the file, and other rows would give
  other flipsets.
many_columns: The map moves {columns} columns, many for {fewest} rows: few people have a near counterpart. --features or
  --drop can leave out what the model hardly looks at, if the model allows.
smooth_map: Counterparts are points of a smooth map, not people of the file.{snapped}
exact_map: The map is exact for these rows alone: it pairs everybody with people of the file, so it finds more flips
  than a smooth map does, more of them by chance.
unmoved_columns: Each group has a single value in {unmoved}: counterparts take that of their own group, so flips may be
  the model's direct use of it.
no_noise_floor: The intervals and p-values take the map as given. How many flips the map makes by itself is seen with
  --null-draws 39, at the price of so many more fits.
read_as_probabilities: All outputs lie between 0 and 1: they were read as probabilities, and cut at 0.5; --threshold
  cuts elsewhere.
"""


def caveats(found: Result) -> Iterator[Caveat]:
    """The conditions that hold of this audit, the general ones first."""
    yield from words.caveats(FIRST, {"flips_are_to_be_read": True})
    for side in found.sides:
        yield from words.caveats(OF_A_SIDE, _of_a_side(side, found.space))
    yield from words.caveats(LAST, _of_all(found))


def _of_a_side(side: Side, space: Space) -> dict[str, Any]:
    quality, source, target = side.quality, side.way.source.level, side.way.target.level
    known = {"where": f"from {source} to {target}", "source": source, "target": target, "most": WORST_HEALTHY_KS}
    worst = [j for j in np.argsort(-quality.ks) if quality.ks[j] > WORST_HEALTHY_KS]
    named = listed([f"{space.labels[space.moving[j]]} ({quality.ks[j]:.2f})" for j in worst], SHOWN)
    missing = len(side.way.points) - len(side.kept)
    far = quality.compared and quality.compared_distance > FAR * quality.exact_distance
    alike = ((1, "positively", "negative"), (0, "negatively", "positive"))
    return {
        "poor_map": worst and {**known, "named": named},
        "fit_broke_down": side.facts.get("non_finite") and known,
        "no_image": missing and {**known, "missing": missing},
        "far_counterparts": far and {**known, "times": quality.compared_distance / quality.exact_distance},
        "empty_flipset": [
            {**known, "decided": decided, "flipset": flipset}
            for value, decided, flipset in alike
            if (side.flips.decision == value).all()
        ],
    }


def _of_all(found: Result) -> dict[str, Any]:
    side, space, columns = found.sides[0], found.space, len(found.space.moving)
    fewest = min(len(side.way.points), len(side.way.target_points))
    snapped = (
        " Whole numbers are the nearest that exist, and categories have the target group's shares "
        f"({listed(space.snapping, SHOWN)})."
    )
    real = all(side.real for side in found.sides)
    return {
        "few_rows": fewest < FEW_ROWS and {"fewest": fewest},
        "many_columns": fewest < ROWS_A_COLUMN * columns and {"fewest": fewest, "columns": columns},
        "smooth_map": not real and {"snapped": snapped if space.snapping else ""},
        "exact_map": real,
        "unmoved_columns": bool(space.unmoved) and {"unmoved": listed(space.unmoved, SHOWN)},
        "no_noise_floor": side.null is None,
        "read_as_probabilities": found.model.kind == "probability" and not found.threshold_given,
    }
