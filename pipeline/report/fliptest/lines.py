"""The lines of transparency reports: one for each feature, over all trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline.audits.fliptest.intervals import over_trials, twice_the_median
from pipeline.audits.fliptest.transparency import NOISE, STANDS_OUT, Standing, ranks, standing
from pipeline.report import words as w
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.trials import Place
from pipeline.report.inputs import Inputs
from pipeline.types import Array

MEAN, SIGN = "mean_shift", "mean_sign"
RANKS = {MEAN: "rank_mean", SIGN: "rank_sign"}


@dataclass(frozen=True)
class Line:
    """One feature in one of the two rankings: x - G(x) or its sign, averaged over a flipset and over the trials.

    ``value`` with the interval of :mod:`pipeline.audits.fliptest.intervals` (over maps and people; over people alone
    where there is one trial), ``rank`` by its absolute value, ``p`` (adjusted; of several trials twice the median).
    ``trials`` (T,) are the values of the single trials, NaN where the flipset is empty. Shifts are in the units of
    :func:`pipeline.report.fliptest.trials.units`.
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


def report(inputs: Inputs, place: Place, flipset: str, ranking: str = MEAN, direction: str = w.FORWARD) -> list[Line]:
    """The lines of one ranking, the largest first; none where the flipset is empty in every trial.

    Features that define the groups have no rank, and no line. An interval of a sign ends at -1 and 1.
    """
    rows = inputs.select(**place.setting(direction=direction, flipset=flipset))
    rows = rows.loc[rows["feature"].notna(), ["statistic", "feature", "repetition", "value", "alpha"]]
    alpha = float(pd.to_numeric(rows["alpha"]).dropna().iloc[0])
    columns = (ranking, f"{ranking}_ci_low", f"{ranking}_ci_high", f"{ranking}_p_adjusted", RANKS[ranking])
    value, low, high, p, rank = (_by_trial(rows, name) for name in columns)
    shared = float(inputs.values(**place.setting(direction=direction, statistic="shared")).mean())
    scale = trials.units(inputs, place) if ranking == MEAN else {}
    found = []
    for feature in value:
        if not np.isfinite(rank[feature]).any():
            continue
        unit = scale.get(feature, 1.0)
        line = over_trials(value[feature] / unit, low[feature] / unit, high[feature] / unit, shared, alpha)
        found.append((feature, line, twice_the_median(p[feature]), value[feature] / unit))
    furthest = 1.0 if ranking == SIGN else np.inf
    order = ranks(np.array([line.value for _, line, _, _ in found]))
    made = [
        Line(feature, line.value, low, high, int(place_in_ranking), adjusted, alpha, values)
        for (feature, line, adjusted, values), place_in_ranking in zip(found, order, strict=True)
        for low, high in [np.clip([line.low, line.high], -furthest, furthest).tolist()]
    ]
    return sorted(made, key=lambda line: (line.rank, line.feature))


def _by_trial(rows: pd.DataFrame, statistic: str) -> Mapping[str, Array]:
    """A statistic's values by feature, (T,) each, in the order of the trials."""
    part = rows[rows["statistic"] == statistic].sort_values("repetition")
    return {str(name): own.to_numpy(float) for name, own in part.groupby("feature", observed=True)["value"]}
