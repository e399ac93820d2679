"""The lines of transparency reports: one for each feature, of the first trial and of the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline.report.fliptest import trials
from pipeline.report.fliptest import words as w
from pipeline.report.fliptest.trials import Place
from pipeline.report.inputs import Inputs
from pipeline.types import Array

MEAN, SIGN = "mean_shift", "mean_sign"
RANKS = {MEAN: "rank_mean", SIGN: "rank_sign"}


@dataclass(frozen=True)
class Line:
    """One feature in one of the two rankings: x - G(x) or its sign, averaged over a flipset.

    ``value`` with its interval, ``rank`` and ``p`` (adjusted) are the first trial's; ``others`` (T - 1,) are the
    values of the other trials. Shifts are in the units of :func:`pipeline.report.fliptest.trials.units`.
    """

    feature: str
    value: float
    low: float
    high: float
    rank: int
    p: float
    alpha: float
    others: Array

    @property
    def noise(self) -> bool:
        """Whether the interval covers 0, or the flipset does not differ from its group in this feature."""
        covers = not (self.low > 0 or self.high < 0)
        return covers or not self.p <= self.alpha


def report(inputs: Inputs, place: Place, flipset: str, ranking: str = MEAN, direction: str = w.FORWARD) -> list[Line]:
    """The lines of one ranking, the largest first; none where the first trial's flipset is empty.

    Features that define the groups have no rank, and no line.
    """
    rows = inputs.select(**place.setting(direction=direction, flipset=flipset))
    rows = rows[rows["feature"].notna()]
    alpha = float(pd.to_numeric(rows["alpha"]).dropna().iloc[0])
    tables = {str(name): part for name, part in rows.groupby("statistic")}
    scale = trials.units(inputs, place) if ranking == MEAN else {}

    def first(statistic: str) -> dict[str, float]:
        part = tables[statistic]
        part = part[part["repetition"] == part["repetition"].min()]
        return dict(zip(part["feature"], part["value"].astype(float), strict=True))

    names = (ranking, f"{ranking}_ci_low", f"{ranking}_ci_high", RANKS[ranking], _p(tables, ranking))
    value, low, high, rank, p = (first(name) for name in names)
    lines = []
    for feature, place_in_ranking in rank.items():
        if not math.isfinite(place_in_ranking) or not math.isfinite(value[feature]):
            continue
        unit = scale.get(feature, 1.0) or math.nan
        every = tables[ranking]
        every = every[(every["feature"] == feature) & (every["repetition"] != every["repetition"].min())]
        numbers = (value[feature] / unit, low[feature] / unit, high[feature] / unit)
        others = np.sort(every["value"].to_numpy(float) / unit)
        lines.append(Line(feature, *numbers, int(place_in_ranking), p[feature], alpha, others))
    return sorted(lines, key=lambda line: (line.rank, line.feature))


def _p(tables: dict[str, pd.DataFrame], ranking: str) -> str:
    """The p-value that decides: adjusted for the lines of the report where the audit gives it."""
    adjusted = f"{ranking}_p_adjusted"
    return adjusted if adjusted in tables else f"{ranking}_p"
