"""Level and power of the loss-ratio test with a learned fair metric, and how many rows the metric needs."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import number
from fairness_audits.results.style import (
    DASHED,
    finish,
    in_order,
    level,
    logarithmic,
    method_style,
    new_panels,
    points,
)
from fairness_audits.results.table import Column
from pipeline.report import labels as w
from pipeline.report.agreement.measures import audited
from pipeline.report.estimators import EVERY, estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.selection import select
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, tabulated

AUDIT = "learned_metric"
FAIR = "project"
"""The method that ignores the sensitive directions of the population."""
OTHERS = "others"
WAYS = {"cross_fitted": "cross-fitted", "audited": "audited people", "known": "known"}
"""Names of the metrics that are not learned on other people."""
PEOPLE = " as many other people"
LABELS = ("standard deviation\nof log $T_n$", "$T_n$ over\nthe true ratio", "share rejected\nat 1.25")
"""Names of the y axes."""
TOLERANCES = {1.0: "the true ratio", 0.9: "0.9 times it", 0.8: "0.8 times it"}
"""Tolerances besides 1.25, in units of the true ratio."""


class Metric(NamedTuple):
    """A metric of an auditor: where it comes from, and the relative number of other people behind it, if any."""

    metric_rows: str
    relative_rows: float = float("nan")

    @property
    def name(self) -> str:
        """Return the printed name."""
        return WAYS.get(self.metric_rows) or f"{number(self.relative_rows, 0)} ×{PEOPLE}"

    @property
    def effect(self) -> str:
        """Return what is drawn anew: the metric alone, if it is not the one of the audited people or known."""
        return "metric" if self.metric_rows == OTHERS else "audit"

    @property
    def setting(self) -> dict[str, Any]:
        """Return what selects its rows."""
        other = self.metric_rows == OTHERS
        return {"metric_rows": self.metric_rows, **({"relative_rows": self.relative_rows} if other else {})}


def simulated(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of the simulation. Raises NotRun if there are none."""
    return audited(inputs, AUDIT, "simulate learned metrics")


def metrics(rows: pd.DataFrame) -> list[Metric]:
    """Return the metrics, from the fewest people behind them to the most."""
    others = [Metric(OTHERS, float(count)) for count in sorted(rows["relative_rows"].dropna().unique())]
    return [Metric("cross_fitted"), Metric("audited"), *others, Metric("known")]


def mean(rows: pd.DataFrame, place: tuple[str, str, Metric], statistic: str, **setting: Any) -> Estimate:
    """Return the mean of a number over the populations with Student's interval; NaN if it is missing."""
    dataset, method, metric = place
    found = select(rows, {"dataset": dataset, "method": method, "statistic": statistic, **metric.setting, **setting})
    limits = (0.0, 1.0) if statistic == "rejection_rate" else EVERY
    return estimate("mean", found, limits=limits) if len(found) else Estimate(float("nan"))


def geometric(rows: pd.DataFrame, place: tuple[str, str, Metric], statistic: str, **setting: Any) -> Estimate:
    """Return exp of the mean of a logarithm."""
    found = mean(rows, place, statistic, **setting)
    return replace(found, value=math.exp(found.value), low=math.exp(found.low), high=math.exp(found.high))


def at_published(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows at the published tolerance, and those without a tolerance."""
    return rows[rows["delta_over_truth"].isna()]


def _drawn(axes: Axes, found: Sequence[Estimate], method: str, shift: float) -> None:
    """Draw the estimates of a method side by side, with their intervals."""
    values, low, high = (np.array([getattr(one, end) for one in found]) for end in ("value", "low", "high"))
    ends = np.where(np.isfinite([low, high]), [low, high], values)
    points(axes, np.arange(len(found)) + shift, values, method_style(method), ends)


def _column(panels: Sequence[Axes], rows: pd.DataFrame, dataset: str, every: Sequence[Metric]) -> None:
    """Draw the panels of a data set: spread, ratio and rejections."""
    spread, ratio, rejected = panels
    own = in_order(rows.loc[rows["dataset"] == dataset, "method"])
    for place, method in enumerate(own):
        of = [(dataset, method, metric) for metric in every]
        shift = 0.16 * (place - (len(own) - 1) / 2)
        spreads = [geometric(rows, one, "log_spread", effect=one[-1].effect) for one in of]
        _drawn(spread, spreads[:-1], method, shift)
        level(spread, spreads[-1].value, color=method_style(method).color)
        _drawn(ratio, [geometric(rows, one, "log_error") for one in of], method, shift)
        _drawn(rejected, [mean(at_published(rows), one, "rejection_rate") for one in of], method, shift)
    level(ratio, 1.0)
    level(rejected, 0.05)


@artefact(
    "How many people must a fair metric be learned on? Their number decides how much the statistic of the loss-ratio "
    "test varies, how far it is from the true ratio, and whether the test rejects a fair classifier.",
)
def figure_learned_metric(inputs: Inputs) -> Picture:
    rows = simulated(inputs)
    every = metrics(rows)
    datasets = sorted(set(rows["dataset"]))
    figure, panels = new_panels(5.6, 3, len(datasets), sharex=True, sharey="row")
    for column, dataset in zip(panels.T, datasets, strict=True):
        _column(column, rows, dataset, every)
    for axes in panels[:2].flat:
        logarithmic(axes, "y")
    panels[0, 0].yaxis.set_major_locator(LogLocator())
    for axes in panels[-1]:
        axes.set(xlim=(-0.6, len(every) - 0.4), ylim=(-0.03, 1.03))
        labels = [one.name.removesuffix(PEOPLE) for one in every]
        axes.set_xticks(range(len(every)), labels, rotation=45, ha="right", rotation_mode="anchor")
    for axes, label in zip(panels[:, 0], LABELS, strict=True):
        axes.set_ylabel(label)
    drawn = map(method_style, in_order(rows["method"]))
    handles = [Line2D([], [], color=s.color, marker=s.marker, linestyle="none", label=s.label) for s in drawn]
    handles.append(Line2D([], [], color="#555555", linestyle=DASHED, label="audited people alone (top)"))
    finish(
        figure, panels, x="metric learned on", columns=3, handles=handles,
        titles=[w.dataset_label(dataset) for dataset in datasets],
    )  # fmt: skip
    return Picture(
        figure,
        "How many people the fair metric needs.",
        inputs.stamp(set(rows["block"])),
        "Three rows of panels, for Adult and COMPAS, against the people that the metric is learned on: the standard "
        "deviation of the logarithm of T_n over metrics, T_n over the true ratio, and the share of rejections at 1.25.",
        notes=(
            "Top: standard deviation of log T_n over metrics, for the same audited people; with a metric of the "
            "audited people, over these people. Dashed: over audited people with the known metric.",
            *read_as(rows),
        ),
    )


def read_as(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the notes on the populations."""
    truths = select(rows, {"statistic": "truth", "method": FAIR})["value"]
    return (
        "Means over the populations with Student's 95 % intervals. 16 ×: learned on 16 times as many other people as "
        "are audited. Cross-fitted: learned on one half of the audited people and used for the other half.",
        f"{method_style(FAIR).label} ignores the sensitive directions of the population; its true ratio is "
        f"{number(truths.min(), 2)} to {number(truths.max(), 2)}, so a rejection at 1.25 is an error.",
    )


@artefact(
    "Is the verdict of the loss-ratio test right if its fair metric is learned? At the true ratio, the share of "
    "rejections should be .05 or less. Below it, the share is the power.",
)
def table_learned_metric(inputs: Inputs) -> StampedTable:
    rows = simulated(inputs)
    rejected = partial(mean, statistic="rejection_rate")

    def truth(place: tuple[str, str, Metric]) -> Estimate:
        dataset, method, _ = place
        return Estimate.mean(
            select(rows, {"dataset": dataset, "method": method, "statistic": "truth"})["value"].to_numpy()
        )

    columns = [
        Column("truth", cell=truth, decimals=2, name="True ratio"),
        *(
            Column(f"at {name}", "value and interval", cell, "Share of rejections at a tolerance of", 2, name=name)
            for name, cell in {
                "1.25": partial(rejected, at_published(rows)),
                **{name: partial(rejected, rows, delta_over_truth=part) for part, name in TOLERANCES.items()},
            }.items()
        ),
    ]
    return tabulated(
        "Rejections with a learned fair metric.",
        ("Data set", "Method", "Metric learned on"),
        columns,
        [
            ((w.dataset_label(dataset), method_style(method).label, metric.name), (dataset, method, metric))
            for dataset in sorted(set(rows["dataset"]))
            for method in in_order(rows.loc[rows["dataset"] == dataset, "method"])
            for metric in metrics(rows)
        ],
        inputs.stamp(set(rows["block"])),
        (
            *read_as(rows),
            "An interval without width means that the share is the same in all populations, not that it is certain.",
        ),
    )
