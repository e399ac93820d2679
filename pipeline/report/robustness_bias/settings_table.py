"""Every setting of the study as it is configured here: data, networks, trainings and audits."""

from collections.abc import Mapping
from typing import Any

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import study, used
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
PENALISED = ("penalised_level", "penalised_partition")
VARIED = tuple(f"method.{key}" for key in ("model", *PENALISED, "alpha", "distance", "second_order", "tau"))
"""What the grid varies: the artefacts say it."""
LEFT_OUT = (*VARIED, "audit.attacks", "repetitions", *NEUTRAL)


@registry.table(place=10)
def table_settings(inputs: Inputs) -> Table:
    """As this run used them. Most of them the paper leaves to the authors' program."""
    note = (
        "As configured for this run. A setting that differs from one network or data set to another has a line for "
        "each value."
    )
    stamp = used.stamp(inputs, sorted({study.block_of(name) for name in inputs.config["experiment"]["grid"]}))
    return settings_table(
        used.as_networks(inputs.points),
        ("Data", "Training", "Audit"),
        _part,
        lambda key, point: setting_label(key, WORDS),
        _place,
        lambda key, value: NOTHING.get(key, "all") if value is None else text_of(value),
        stamp,
        (note, *left_out(inputs)),
        where=True,
    )


def left_out(inputs: Inputs) -> tuple[str, ...]:
    """A footnote on the networks that the scale does not run; none where it runs all."""
    omitted: dict[str, list[str]] = {}
    for place in inputs.config.get("left_out", ()):
        block = study.block_of(place["block"])
        if block in (study.TRAININGS, study.PRETRAINING):
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
