"""The published numbers of Black et al. (2020) beside ours, and every setting as it is configured here."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.report import comparison as rules
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.comparison_table import as_table, decimals_of
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.facts import measurements
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate, number, spread
from pipeline.report.settings import parse_setting, select
from pipeline.report.settings_table import settings_table
from pipeline.report.table import Table


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Every published number with ours and a verdict, see :mod:`pipeline.report.comparison`.

    Where a number is of a flipset and some of our maps failed, the note says what ours is without them; where exact
    transport between the same people was audited too, what it gives.
    """
    measured = measurements(inputs)

    def remark(line: Mapping[str, Any]) -> str:
        return " ".join(filter(None, (_without_failures(inputs, line), _by_exact_transport(measured, line))))

    return rules.compared(inputs, published, measured, remark=remark)


@registry.table()
def comparison(inputs: Inputs, found: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match. Most are of one map,
    printed without a spread, and are held against the spread of our trials.
    """
    return as_table(
        found,
        inputs.stamp(),
        notes=(
            "The paper's flipsets, distances and shifts come from one map each; ours from as many maps as there are "
            "trials. A map's flipset sizes change with the moment at which its training is stopped, so single sizes "
            "can agree only as far as that spread allows.",
            "The hiring data, the arrests and the identical distributions are drawn anew in every repetition: those "
            "trials are independent.",
        ),
    )


def _without_failures(inputs: Inputs, line: Mapping[str, Any]) -> str:
    """``Without 1 of 10 trials, whose map failed: 1,208 +- 43.``; nothing where no map failed."""
    setting = parse_setting(line["used_setting"])
    if line["status"] != "reproduced" or line["kind"] != "run" or not {"flipset", "transport"} <= setting.keys():
        return ""
    if not math.isfinite(line["ours"]) or setting["transport"] == w.COUNTERFACTUAL:
        return ""
    kept = {key: value for key, value in setting.items() if key not in ("statistic", "flipset", "feature")}
    sound = inputs.values(**{**kept, "audit": trials.FLIPTEST, "statistic": "healthy"}).astype(bool)
    if sound.all():
        return ""
    failed = f"{int((~sound).sum())} of {len(sound)} trials"
    if not sound.any():
        return f"The maps of all {len(sound)} trials miss the other group by the rule of Table 1."
    ours = _printed(inputs.values(**setting)[sound], decimals_of(line))
    return f"Without {failed}, whose map failed: {ours}."


def _by_exact_transport(measured: pd.DataFrame, line: Mapping[str, Any]) -> str:
    """``Exact transport gives 2,816 +- 72 (3).``; nothing where it was not audited, or of fewer people."""
    setting = parse_setting(line["used_setting"])
    if line["status"] != "reproduced" or "flipset" not in setting or setting.get("transport") != w.WGAN:
        return ""
    exact = {**setting, "transport": w.EXACT}
    of_both = [
        {**{key: value for key, value in each.items() if key not in ("flipset", "feature")}, "statistic": "n_source"}
        for each in (setting, exact)
    ]
    people, others = (select(measured, each)["value"].tolist() for each in of_both)
    values = select(measured, exact)["value"]
    if values.empty or people != others:
        return ""
    return f"Exact transport gives {_printed(values, decimals_of(line) if line['kind'] == 'run' else 2)}."


def _printed(values: pd.Series, decimals: int) -> str:
    return f"{spread(Estimate.mean(values.to_numpy(float)), decimals)} ({number(len(values), 0)})"


@registry.table(place=10)
def table_settings(inputs: Inputs) -> Table:
    """As this run used them. What the paper leaves out, or says in appendices that are lost, is assumed here."""
    return settings_table(inputs, inputs.stamp())
