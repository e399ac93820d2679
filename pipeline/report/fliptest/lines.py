"""The lines of transparency reports: one for each feature, over all trials."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pipeline.audits.fliptest.intervals import over_trials, twice_the_median
from pipeline.audits.fliptest.transparency import NOISE, STANDS_OUT, Standing, ranks, standing
from pipeline.report.fliptest.trials import Place
from pipeline.types import Array

MEAN, SIGN = "mean_shift", "mean_sign"
RANKS = {MEAN: "rank_mean", SIGN: "rank_sign"}


@dataclass(frozen=True)
class Line:
    """One feature in one of the two rankings: x - G(x) or its sign, averaged over a flipset and over the trials.

    ``value`` with the interval of :mod:`pipeline.audits.fliptest.intervals` (over maps and people; over people alone
    where there is one trial), ``rank`` by its absolute value, ``p`` (adjusted; of several trials twice the median).
    ``trials`` (T,) are the values of the single trials, NaN where the flipset is empty. Shifts are in the units of
    :attr:`pipeline.report.fliptest.trials.Place.units`.
    """

    feature: str
    value: float
    low: float
    high: float
    rank: int
    p: float
    alpha: float
    trials: Array

    @property
    def standing(self) -> Standing:
        """Noise, as the whole group, or stands out: see :mod:`pipeline.audits.fliptest.transparency`."""
        return standing(self.low, self.high, self.p, self.alpha)

    @property
    def noise(self) -> bool:
        """Whether the interval covers 0."""
        return self.standing == NOISE

    @property
    def stands_out(self) -> bool:
        """Whether the shift is there, and the flipset's own."""
        return self.standing == STANDS_OUT


def report(place: Place, flipset: str, ranking: str = MEAN) -> list[Line]:
    """The lines of one ranking, the largest first; none where the flipset is empty in every trial.

    Features that define the groups have no rank, and no line. An interval of a sign ends at -1 and 1.
    """
    rows = place.inputs.select(**place.setting(flipset=flipset))
    rows = rows[rows["feature"].notna()].sort_values("repetition")
    alpha = float(pd.to_numeric(rows["alpha"]).dropna().iloc[0])

    def by_trial(statistic: str) -> dict[str, Array]:
        part = rows[rows["statistic"] == statistic].groupby("feature", observed=True)["value"]
        return {str(name): own.to_numpy(float) for name, own in part}

    columns = (ranking, f"{ranking}_ci_low", f"{ranking}_ci_high", f"{ranking}_p_adjusted", RANKS[ranking])
    value, low, high, p, rank = map(by_trial, columns)
    shared = float(place.values(statistic="shared").mean())
    scale, furthest = (place.units, np.inf) if ranking == MEAN else ({}, 1.0)
    found = []
    for feature in value:
        if np.isfinite(rank[feature]).any():
            unit = scale.get(feature, 1.0)
            own = value[feature] / unit
            line = over_trials(own, low[feature] / unit, high[feature] / unit, shared, alpha)
            left, right = np.clip([line.low, line.high], -furthest, furthest).tolist()
            found.append(Line(feature, line.value, left, right, 0, twice_the_median(p[feature]), alpha, own))
    order = ranks(np.array([line.value for line in found]))
    made = [replace(line, rank=int(place_in_ranking)) for line, place_in_ranking in zip(found, order, strict=True)]
    return sorted(made, key=lambda line: (line.rank, line.feature))


def leading(report: Sequence[Line]) -> Line | None:
    """The largest line that stands out, else the largest; None of an empty flipset."""
    return next((line for line in report if line.stands_out), report[0] if report else None)
