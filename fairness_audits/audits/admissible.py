"""Admissible points, which describe people who could exist: bounds, whole numbers and categories."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairness_audits.attacks.gradient_flow import Bounds
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


@dataclass(frozen=True)
class Admissible:
    """Constraints on a row of d features.

    ``bounds`` are the smallest and largest value of each feature, (d,) each. ``whole`` are the positions of features
    with whole numbers. ``categories`` has the positions of each category's indicators. One indicator of a category is
    1, the others are 0.
    """

    bounds: Bounds
    whole: tuple[int, ...] = ()
    categories: tuple[tuple[int, ...], ...] = ()

    def within(self, points: Array, slack: float = 1e-6) -> Array:
        """Return whether each point (n, d) is within the bounds, up to ``slack`` of a feature's range: (n,)."""
        low, high = self.bounds
        room = slack * np.where(np.isfinite(high - low), high - low, 0.0)
        return np.asarray(((points >= low - room) & (points <= high + room)).all(axis=-1))

    def nearest(self, points: Array) -> Array:
        """Return the nearest admissible points to these (n, d), in Euclidean distance within each feature or category.

        The corner e_j of a category's simplex nearest to z is the one with the largest z_j; ties go to the first.
        Raises InvalidInput if a whole feature has no whole number within its bounds.
        """
        low, high = (np.broadcast_to(end, points.shape[-1:]).astype(float) for end in self.bounds)
        found = np.clip(points, low, high)
        whole = list(self.whole)
        least, most = np.ceil(low[whole]), np.floor(high[whole])
        if (least > most).any():
            raise InvalidInput(
                f"expected a whole number within the bounds of feature {whole[int((least > most).argmax())]}",
                option="bounds",
            )
        found[..., whole] = np.clip(np.rint(points[..., whole]), least, most)
        for group in self.categories:
            one = points[..., list(group)].argmax(axis=-1)
            found[..., list(group)] = one[..., None] == np.arange(len(group))
        return found


def range_of(features: Array) -> Bounds:
    """Return the smallest and largest value of each feature among the rows (n, d)."""
    return features.min(axis=0), features.max(axis=0)


def check_categories(features: Array, groups: Sequence[Sequence[int]], names: Sequence[str]) -> None:
    """Raise InvalidInput unless each row (n, d) has exactly one 1, and otherwise 0, in each group of indicators."""
    for group in groups:
        values = features[:, list(group)]
        wrong = ~(np.isin(values, (0, 1)).all(axis=1) & (values.sum(axis=1) == 1))
        if wrong.any():
            listed = ", ".join(names[j] for j in group)
            raise InvalidInput(
                f"the indicators {listed} do not have exactly one 1 in every row: {int(wrong.sum())} wrong, the first "
                f"is row {int(wrong.argmax())} (counted from 0)",
                option="one_hot",
                column=names[group[0]],
                row=int(wrong.argmax()),
                remedy="The indicators of a category are 0 or 1 and cover all of its levels",
            )
