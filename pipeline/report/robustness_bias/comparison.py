"""The published numbers of Nanda et al. (2021) beside ours, and every setting as it is configured here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from pipeline.report import comparison as rules
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.comparison_table import as_table
from pipeline.report.facts import DATA
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import study
from pipeline.report.robustness_bias.facts import measurements
from pipeline.report.settings import NEUTRAL, setting_label, text_of
from pipeline.report.settings_table import settings_table
from pipeline.report.table import Table

WORDS = {
    "dataset.image_size": "pixels a side",
    "dataset.train_points": "images to train on",
    "dataset.test_points": "images to test",
    "dataset.train_fraction": "share to train on",
    "dataset.mean": "mean of a channel",
    "dataset.std": "standard deviation of a channel",
    "method.width": "width, relative to the published",
    "method.input_size": "pixels a side inside the network",
    "method.tau": "threshold tau",
    "method.scale": "unit of the threshold tau",
    "audit.smoothing_scale": "unit of smoothing's noise",
    "method.alpha": "weight alpha",
}
NOTHING = {
    "method.input_size": "the images' own",
    "method.penalised_partition": "the classes",
    "audit.budget": "the largest distance",
    "audit.examples": "none",
    "audit.batch_size": "what suits the device",
}
"""What a setting without a value stands for, where that is not: all."""
VARIED = ("model", "penalised_level", "penalised_partition", "alpha", "distance", "second_order", "tau")
"""What the grid varies: the artefacts say it."""
LEFT_OUT = (*(f"method.{key}" for key in VARIED), "audit.attacks", "repetitions", *NEUTRAL)


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Every published number with ours and a verdict, see :mod:`pipeline.report.comparison`."""
    reduced = study.reductions(inputs)
    # How much of a data set is used shows in its own numbers too.
    of_data = (replace(r, block=DATA, method=w.NO_METHOD) for r in reduced if r.key.startswith("dataset."))
    return rules.compared(inputs, published, measurements(inputs), (*reduced, *dict.fromkeys(of_data)))


@registry.table()
def comparison(inputs: Inputs, found: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match."""
    audited = study.audited(inputs)
    return as_table(
        found,
        study.stamp(inputs, sorted({one.block for one in audited})),
        notes=(
            "A share of agreeing signs is of groups that share points, and an accuracy of one training is of test "
            "images that both sides share; Fisher's test takes them for independent and knows nothing of how trainings "
            "differ. sigma differences: Welch's test over the groups. Medians of one training have no spread.",
            *study.not_run(audited),
        ),
    )


@registry.table(place=10)
def table_settings(inputs: Inputs) -> Table:
    """As this run used them. Most of them the paper leaves to the authors' program."""
    note = (
        "As configured for this run. A setting that differs from one network or data set to another has a line for "
        "each value."
    )
    return settings_table(
        study.as_networks(inputs.points),
        ("Data", "Training", "Audit"),
        _part,
        lambda key, point: setting_label(key, WORDS),
        _place,
        lambda key, value: NOTHING.get(key, "all") if value is None else text_of(value),
        study.stamp(inputs, study.blocks(inputs)),
        (note, *left_out(inputs)),
        where=True,
    )


def left_out(inputs: Inputs) -> tuple[str, ...]:
    """A footnote on the networks that the scale does not run; none where it runs all."""
    omitted: dict[str, list[str]] = {}
    for place in inputs.config.get("left_out", ()):
        block = study.block_of(place["block"])
        if block == study.TRAININGS:
            continue
        penalised = " with a penalty" * (block == study.REGULARIZER)
        network = f"{w.NETWORKS[str(place.get('method.model', place['method']))]}{penalised}"
        omitted.setdefault(str(place["dataset"]), []).append(network)
    texts = (f"{w.dataset_label(name)}: {', '.join(dict.fromkeys(omitted[name]))}" for name in w.datasets_in(omitted))
    return (f"Left out at {inputs.scale} scale. {'; '.join(texts)}.",) if omitted else ()


def _part(key: str, point: Mapping[str, Any]) -> str:
    if key in LEFT_OUT:
        return ""
    if key.startswith("dataset."):
        return f"Data: {w.dataset_label(point['dataset']['name'])}"
    if key.startswith("method."):
        return "Training: penalised" if str(point["method"]["name"]).startswith("adverm") else "Training: as usual"
    return "Audit"


def _place(key: str, point: Mapping[str, Any]) -> str:
    network = f"{w.NETWORKS[str(point['method']['model'])]} on {w.dataset_label(point['dataset']['name'])}"
    return "" if key.startswith("dataset.") else network
