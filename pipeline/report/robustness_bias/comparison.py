"""The published numbers of Nanda et al. (2021) beside ours. The only module of the study that sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from pipeline.report import comparison as rules
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.comparison_table import as_table
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import study, used
from pipeline.report.robustness_bias.facts import DATA, measurements
from pipeline.report.settings import parse_setting
from pipeline.report.table import Table

EVERY = "all"
"""In a setting, or where a setting has no data set: of all those of the paper together."""


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Every published number with ours and a verdict, see :mod:`pipeline.report.comparison`.

    What needs data that could not be had is not run, and says which.
    """
    missing = study.absences(study.audited(inputs))
    status = [_status(entry, missing) for entry in published.to_dict("records")]
    reduced = used.reductions(inputs)
    # How much of a data set is used shows in its own numbers too.
    of_data = (replace(r, block=DATA, method=w.NO_METHOD) for r in reduced if r.key.startswith("dataset."))
    return rules.compare(published.assign(status=status), measurements(inputs), (*reduced, *dict.fromkeys(of_data)))


@registry.table()
def comparison(inputs: Inputs, published: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match."""
    found = study.audited(inputs)
    return as_table(
        compared(inputs, published),
        used.stamp(inputs, sorted({one.block for one in found})),
        "Published numbers and ours.",
        notes=(
            "A share of agreeing signs is of groups that share points, and an accuracy of one training is of test "
            "images that both sides share; Fisher's test takes them for independent and knows nothing of how trainings "
            "differ. sigma differences: Welch's test over the groups. Medians of one training have no spread.",
            *study.not_run(found),
        ),
    )


def _status(entry: Mapping[str, Any], missing: Mapping[str, str]) -> str:
    """``not run: data ...`` for a number of data that could not be had; else as it is in the list."""
    status = str(entry["status"])
    if status != "reproduced" or not isinstance(entry["setting"], str):
        return status
    setting = parse_setting(entry["setting"])
    dataset = setting.get("dataset", EVERY)
    # What is configured does not need the data.
    if "." in str(setting.get("statistic", "")):
        return status
    needed = w.PUBLISHED_IMAGES if dataset == EVERY else (dataset,)
    absent = [str(name) for name in needed if name in missing]
    return f"not run: data of {', '.join(map(w.dataset_label, absent))} are absent" if absent else status
