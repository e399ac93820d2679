r"""Regression check of a run against a reference: which numbers must be equal, and which may differ by chance.

A number is identified by its block, dataset, method, audit, map, statistic, settings and repetition in the tidy rows.
If a point of the grid has the same settings and data in the run and in the reference, its random seeds are the same.
Each repetition in both must then give the same number,

.. math:: |x - x'| \le 10^{-9} \max(1, |x'|).

On another processor a training may converge differently because of rounding. We therefore compare means by Welch's
test: over the repetitions that both have if the settings are the same, and over all repetitions if they are not (at
another scale). The p-values are adjusted by Holm's method within the point. Differences under other settings are no
error; their number shows how much the scale matters.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind_from_stats

from fairness_audits.audits.inference import corrected
from pipeline.report.comparison import LEVEL
from pipeline.report.inputs import Inputs
from pipeline.report.reduction import reductions

TOLERANCE = 1e-9
POINT = ("block", "dataset", "method", "transport")
SAME, OTHER = "same settings", "other settings"
APART = {"study", "scale", "origin", "repetition", "value"}
"""Columns that do not identify a number. The origin of the data decides whether equality is required."""


def regression_check(run: Inputs, reference: Inputs) -> pd.DataFrame:
    """Compare the points (block, dataset, method, map) that both have, one line per point.

    The columns are those of ``POINT``, ``settings`` (the same or other), the ``numbers`` in both, how many are
    ``equal``, the ``largest`` difference relative to max(1, |x'|), the ``tested`` means and how many ``differ``.
    """
    ours, theirs = _point_columns(run.rows, reference.rows)
    keys = sorted((set(ours.columns) & set(theirs.columns)) - APART)
    # If one side lacks a setting, only rows of the other side without that setting are comparable.
    ours, theirs = _without_other_settings(ours, theirs), _without_other_settings(theirs, ours)
    moved = _moved(run, reference)
    lines = []
    groups = dict(iter(theirs.groupby(list(POINT), dropna=False, observed=True)))
    for place, part in ours.groupby(list(POINT), dropna=False, observed=True):
        if place in groups:
            same = place not in moved and set(part["origin"]) == set(groups[place]["origin"])
            lines.append({**dict(zip(POINT, place, strict=True)), **_line(part, groups[place], keys, same)})
    return pd.DataFrame(lines, columns=[*POINT, "settings", "numbers", "equal", "largest", "tested", "differ"])


def summary(lines: pd.DataFrame) -> list[str]:
    """Summarise the lines: one sentence for the points with the same settings, one for the others."""
    same, other = (lines[lines["settings"] == settings] for settings in (SAME, OTHER))
    texts = []
    if len(same):
        numbers, equal = int(same["numbers"].sum()), int(same["equal"].sum())
        text = f"Same settings: {equal:,} of {numbers:,} numbers are equal"
        if equal < numbers:
            text += f"; the largest relative difference is {same['largest'].max():.2g}; {_tested(same)}"
        texts.append(f"{text}.")
    if len(other):
        texts.append(f"Other settings, where differences are expected: {_tested(other)}.")
    return texts


def _tested(lines: pd.DataFrame) -> str:
    return f"{lines['differ'].sum():,} of {lines['tested'].sum():,} means over repetitions differ"


def _point_columns(*sides: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the numbers of both sides in the data sets that both have. Their text columns have the same categories."""
    both = set.intersection(*(set(rows["dataset"].unique()) for rows in sides))
    found = []
    for rows in sides:
        kept = rows[rows["value"].notna() & (rows["origin"] != "absent")].dropna(axis=1, how="all")
        kept = kept[kept["dataset"].isin(both)]
        found.append(kept if "transport" in kept else kept.assign(transport=pd.Categorical([""] * len(kept))))
    for name in set.union(*(set(rows.select_dtypes("category")) for rows in found)):
        having = [rows for rows in found if name in rows]
        known = sorted({"", *(str(value) for rows in having for value in rows[name].cat.categories)})
        for rows in having:
            rows[name] = rows[name].cat.rename_categories(str).cat.set_categories(known).fillna("")
    return found


def _without_other_settings(rows: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have none of the settings that the ``other`` rows lack."""
    lacking = rows[sorted(set(rows.columns) - set(other.columns) - APART)]
    return rows[~(lacking.notna() & (lacking != "")).any(axis=1)]


def _moved(run: Inputs, reference: Inputs) -> set[tuple[str, ...]]:
    """Return the points whose settings differ from the reference, or that the reference lacks."""
    sides: list[dict[tuple[str, ...], list[Mapping[str, Any]]]] = [{}, {}]
    for found, inputs in zip(sides, (run, reference), strict=True):
        for point in inputs.points:
            names = (point.get(part, {}).get("name", "") for part in POINT[1:])
            found.setdefault((point["block"], *names), []).append(point)
    ours, theirs = sides
    both = ((place, here, theirs.get(place, [])) for place, here in ours.items())
    return {place for place, here, there in both if len(here) != len(there) or reductions(here, there)}


def _line(ours: pd.DataFrame, theirs: pd.DataFrame, keys: Sequence[str], same: bool) -> dict[str, Any]:
    line = {"settings": SAME if same else OTHER, "numbers": 0, "equal": 0, "largest": np.nan, "tested": 0, "differ": 0}
    if same:
        columns = [*keys, "repetition"]
        both = ours[[*columns, "value"]].merge(theirs[[*columns, "value"]], on=columns)
        difference = (both["value_x"] - both["value_y"]).abs() / both["value_y"].abs().clip(lower=1.0)
        # Infinities of the same sign are equal.
        difference = difference.where(both["value_x"] != both["value_y"], 0.0)
        equal = difference <= TOLERANCE
        largest = float(difference.to_numpy().max(initial=0.0))
        line |= {"numbers": len(both), "equal": int(equal.sum()), "largest": largest}
        if equal.all():
            return line
        both = both.merge(both.loc[~equal, keys].drop_duplicates(), on=keys)
        ours, theirs = (both.rename(columns={f"value_{side}": "value"}) for side in "xy")
    p = _welch(_means(ours, keys), _means(theirs, keys), keys)
    return line | {"tested": len(p), "differ": int((corrected(p, "holm") < LEVEL).sum())}


def _means(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Compute mean, standard deviation and number of repetitions of each quantity with at least two."""
    found = rows.groupby(list(keys), dropna=False, observed=True)["value"].agg(["mean", "std", "count"])
    return found[found["count"] > 1].reset_index()


def _welch(ours: pd.DataFrame, theirs: pd.DataFrame, keys: Sequence[str]) -> np.ndarray:
    both = ours.merge(theirs, on=list(keys))
    spread = both[(both["std_x"] > 0) | (both["std_y"] > 0)]
    if spread.empty:
        return np.zeros(0)
    side = [spread[f"{name}_{s}"].to_numpy(float) for s in "xy" for name in ("mean", "std", "count")]
    with np.errstate(invalid="ignore", divide="ignore"):
        p = ttest_ind_from_stats(*side, equal_var=False).pvalue
    return np.asarray(p, float)[np.isfinite(p)]
