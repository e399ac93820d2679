"""What the study reads off its configuration and its figures, as tidy rows: see :mod:`pipeline.report.facts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from pipeline.report import words as w
from pipeline.report.facts import configured_facts, with_facts
from pipeline.report.individual_fairness import quantities as q
from pipeline.report.inputs import Inputs
from pipeline.report.settings import flat

BOUNDARY_SIDES = {"left": -1, "right": 1}


def measurements(inputs: Inputs) -> pd.DataFrame:
    """The audits' rows and the study's facts, in one frame."""
    return with_facts(
        inputs,
        [
            *configured_facts(inputs.points, implied=_implied),
            *_shown_steps(inputs),
            *_heatmap_readings(inputs),
            *_ever_rejected(inputs),
        ],
    )


def configured(inputs: Inputs, block: str, dataset: str, method: str) -> dict[str, Any]:
    """Every value of one point's configuration, by ``group.key``.

    Raises ValueError for a point that the study does not have.
    """
    for point in inputs.points:
        if (point["block"], point["dataset"]["name"], point["method"]["name"]) == (block, dataset, method):
            return {**dict(flat(point)), "repetitions": point["repetitions"]}
    raise ValueError(
        f"study {inputs.study!r} has no point with block {block!r}, dataset {dataset!r}, method {method!r}"
    )


def sensr_on_compas(inputs: Inputs) -> str:
    """How often SenSR is rejected on COMPAS here, beside the paper's finding that it never is."""
    counts = []
    for steps in dict.fromkeys(
        q.shown_steps(inputs, w.COMPAS, wanted) for wanted in (q.RELEASED_STEPS, q.STATED_STEPS)
    ):
        share = q.REJECTED.measure(inputs, w.COMPAS, "sensr", steps)
        counts.append((round(share.value * share.n), share.n, steps))
    here = " and ".join(f"{k} of {n} after {steps:,} steps" for k, n, steps in counts)
    found = (
        "The paper finds that SenSR is never rejected on COMPAS, after a number of steps that it does not state. In "
        f"this run the loss ratio rejects it in {here} of the attack"
    )
    stamp = inputs.stamp("audit", w.COMPAS)
    if stamp.twins or any(reduction.method == "sensr" for reduction in stamp.reductions):
        return f"{found}; data or settings are not the published ones: this says nothing about the finding."
    if all(k == 0 for k, _, _ in counts):
        return f"{found}, as the paper finds."
    return f"{found}: with these splits the finding is not reproduced."


def boundary(theta: np.ndarray, statistic: np.ndarray, threshold: float, side: int) -> float:
    """Where T_n first exceeds ``threshold`` going from theta = 0 to one ``side`` (-1 or +1), interpolated linearly.

    NaN where it never does. ``theta`` (k,) ascending with ``statistic`` (k,).
    """
    order = np.argsort(side * theta)
    outward = side * theta[order]
    start = int(np.argmin(np.abs(outward)))
    x, t = outward[start:], statistic[order][start:]
    above = np.flatnonzero(t > threshold)
    if not len(above):
        return float("nan")
    first = int(above[0])
    if first == 0:
        return 0.0
    share = (threshold - t[first - 1]) / (t[first] - t[first - 1])
    return float(side * (x[first - 1] + share * (x[first] - x[first - 1])))


def _implied(values: Mapping[str, Any]) -> dict[str, float]:
    """Numbers that follow from the configured ones, under the names that the paper prints them by."""
    implied = {}
    if "audit.alpha" in values:
        implied["critical_value"] = float(ndtri(1 - float(values["audit.alpha"])))
    if "dataset.label_noise" in values:
        implied["label_noise_variance"] = float(values["dataset.label_noise"]) ** 2
    if values.get("method.points_per_axis", 1) > 1:
        implied["grid_step"] = (values["method.high"] - values["method.low"]) / (values["method.points_per_axis"] - 1)
    return implied


def _shown_steps(inputs: Inputs) -> Iterator[dict[str, Any]]:
    for dataset in (w.ADULT, w.COMPAS):
        place = {"block": "audit", "dataset": dataset, "origin": "configuration"}
        yield {**place, "statistic": "shown_steps", "value": float(q.shown_steps(inputs, dataset))}


def _heatmap_readings(inputs: Inputs) -> Iterator[dict[str, Any]]:
    heatmaps = inputs.rows[(inputs.rows["block"] == "heatmaps") & (inputs.rows["statistic"] == "T_n")]
    if heatmaps.empty:
        return
    keys = ["origin", "dataset", "method", "intercept", "metric", "angle"]
    for values, panel in heatmaps.groupby(keys, sort=True):
        place = {"block": "heatmaps", **dict(zip(keys, values, strict=True))}
        delta = float(configured(inputs, "heatmaps", place["dataset"], place["method"])["audit.delta"])
        yield {**place, "statistic": "maximum", "value": float(panel["value"].max())}
        middle = panel[np.isclose(panel["theta_2"], 0)].sort_values("theta_1")
        for side, sign in BOUNDARY_SIDES.items():
            value = boundary(middle["theta_1"].to_numpy(float), middle["value"].to_numpy(float), delta, sign)
            yield {**place, "statistic": f"boundary_{side}", "value": value}


def _ever_rejected(inputs: Inputs) -> Iterator[dict[str, Any]]:
    rows = inputs.rows
    curves = rows[(rows["block"] == "audit") & (rows["statistic"] == "rejected") & (rows["metric_split"] == "test")]
    keys = ["origin", "dataset", "method", "repetition"]
    for values, curve in curves.groupby(keys, sort=True):
        place = {"block": "audit", **dict(zip(keys, values, strict=True))}
        yield {**place, "statistic": "ever_rejected", "value": float(curve["value"].max())}
