"""How a line of a transparency report is to be read: two questions, and a word for each that it fails.

- *noise*: the interval of the shift covers 0. Another map or other people could turn its sign.
- *as the whole group*: the shift is there, but as many people of the group picked at random are as far from the group's
  mean, by the adjusted p-value of ``pipeline.audits.fliptest.significance``. So it is not shown to be other than
  everybody's, and does not tell who flips; it may well be what makes people flip. However large and certain, it is no
  noise.
- *stands out*: neither.
"""

from __future__ import annotations

from typing import Literal

Standing = Literal["noise", "as the whole group", "stands out"]
NOISE: Standing = "noise"
AS_GROUP: Standing = "as the whole group"
STANDS_OUT: Standing = "stands out"


def standing(low: float, high: float, p: float, alpha: float) -> Standing:
    """The word for a line with the interval [low, high] and the adjusted p-value p.

    A line without an interval is noise: nothing shows that it is not. A line without a p-value is as its group.
    """
    if not (low > 0 or high < 0):
        return NOISE
    return STANDS_OUT if p <= alpha else AS_GROUP
