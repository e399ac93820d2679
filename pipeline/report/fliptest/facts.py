"""What the study derives from its rows, its data and its configuration, as tidy rows: :mod:`pipeline.report.facts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pipeline.report import words as w
from pipeline.report.facts import DATA, configured_facts, with_facts
from pipeline.report.fliptest import flipset_tables as reports
from pipeline.report.fliptest import lines, trials
from pipeline.report.fliptest.claims import claims
from pipeline.report.fliptest.validation import validated
from pipeline.report.inputs import Inputs, given_of

LARGE = 1.0
"""Standard deviations that section 5.4 calls significant."""


def measurements(inputs: Inputs) -> pd.DataFrame:
    """The audits' rows and the study's facts, in one frame."""
    facts = [*configured_facts(inputs.points, _map_of), *_correlations(inputs), *_weights(inputs)]
    return with_facts(inputs, facts, _derived(inputs))


def _map_of(point: Mapping[str, Any]) -> dict[str, Any]:
    """The transport map of a point, and the true label that it is restricted to."""
    return {"transport": point.get("transport", {}).get("name"), "given": given_of(point)}


def _correlations(inputs: Inputs) -> Iterator[dict[str, Any]]:
    if w.SSL in inputs.datasets:
        dataset = inputs.datasets[w.SSL]
        for feature, value in reports.with_race(dataset).items():
            place = {"block": DATA, "dataset": w.SSL, "origin": dataset.origin, "feature": feature}
            yield {**place, "statistic": "r_with_race", "value": value}


def _weights(inputs: Inputs) -> Iterator[dict[str, Any]]:
    table = reports.weights_by_split(inputs)
    if table.empty:
        return
    age = w.feature_named(reports.AGE, list(table.columns), w.SSL)
    origin = inputs.datasets[w.SSL].origin
    place = {"block": "ssl_regression", "dataset": w.SSL, "method": "linear_regression", "origin": origin}
    for repetition, line in table.iterrows():
        values = {"weight_of_age": line[age], "largest_other_weight": line.drop(age).abs().max()}
        for statistic, value in values.items():
            yield {**place, "repetition": repetition, "statistic": statistic, "value": float(value)}


def _derived(inputs: Inputs) -> list[pd.DataFrame]:
    """What follows from the rows of audits, trial by trial."""
    rows = inputs.rows[inputs.rows["audit"] == trials.FLIPTEST]
    return [*_rates(rows), *_rankings(rows), _beyond(inputs, rows), *_distances(inputs), *claims(inputs)]


def _rates(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Decisions for each group and flipsets as percentages: ``rate_source``, ``rate_target``, ``share_percent``."""
    keys = [name for name in rows.columns if name not in ("statistic", "value")]
    whole = rows[rows["flipset"].isna() & rows["feature"].isna()]
    wide = whole.set_index([*keys, "statistic"])["value"].unstack("statistic")
    for side in ("source", "target"):
        rate = 100 * wide[f"positives_{side}"] / wide[f"n_{side}"]
        yield rate.rename("value").reset_index().assign(statistic=f"rate_{side}")
    share = rows[rows["statistic"] == "share"]
    yield share.assign(statistic="share_percent", value=100 * share["value"])


def _distances(inputs: Inputs) -> Iterator[pd.DataFrame]:
    """``exact_distance`` and ``map_distance``, over all columns: :meth:`Validated.distance`."""
    for one in validated(inputs):
        for of in ("exact", "map"):
            rows = one.rows(f"{of}_l1")
            yield rows.assign(statistic=f"{of}_distance", value=rows["value"] + one.constant)


def _rankings(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """``first_in_rankings``: whether a feature is the first in both rankings of a report (1) or not (0)."""
    means, signs = (rows[rows["statistic"] == name] for name in lines.RANKS.values())
    keys = [name for name in rows.columns if name not in ("statistic", "value")]
    both = means[[*keys, "value"]].merge(signs[[*keys, "value"]], on=keys, suffixes=("_mean", "_sign"))
    first = ((both["value_mean"] == 1) & (both["value_sign"] == 1)).astype(float)
    yield both[keys].assign(statistic="first_in_rankings", value=first)


def _beyond(inputs: Inputs, rows: pd.DataFrame) -> pd.DataFrame:
    """``beyond_one_sd``: whether a feature's mean shift is larger than one standard deviation (1) or not (0)."""
    found = [rows.iloc[:0]]
    for place in trials.places(inputs):
        if place.audit is None:
            continue
        keep = (rows["statistic"] == lines.MEAN) & rows["flipset"].notna()
        for key, value in place.setting().items():
            keep &= (rows[key] == value).to_numpy(bool) if key != "direction" else True
        shifts = rows[keep]
        unit = shifts["feature"].map(place.units).replace(0.0, np.nan)
        beyond = (shifts["value"].abs() / unit > LARGE).astype(float)
        found.append(shifts.assign(statistic="beyond_one_sd", value=beyond))
    return pd.concat(found, ignore_index=True)
