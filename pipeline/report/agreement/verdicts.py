"""Where the verdict of the loss-ratio test comes from: variance of its statistic, and shares of reversed verdicts."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import number
from fairness_audits.results.style import finish, in_order, method_style, new_panels, ordered
from fairness_audits.results.table import Column
from pipeline.report import labels as w
from pipeline.report.agreement.measures import audited
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.selection import select
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, tabulated

AUDIT = "verdict_sources"
PUBLISHED, ALL = "published", "all"
POINTS = {PUBLISHED: "at the published settings", ALL: "over all settings"}
SOURCES = {"train": "training", "train_as_many": "fewer training", "audited": "audited", "others": "other"}
"""Short names of the rows on which the metric is learned."""
INTERACTIONS, EVERYTHING = "interactions", "everything"
PARTS = {
    "audit": ("audit sample", "#0072B2"),
    "metric": ("metric sample", "#D55E00"),
    "model": ("model", "#00875F"),
    "point": ("attack settings", "#D98E04"),
    INTERACTIONS: ("interactions", "#c9c9c9"),
}
"""Names and colours of the parts of the variance, from the bottom of a bar."""
REVERSED = {"audit": PUBLISHED, "model": PUBLISHED, "metric": PUBLISHED, "point": ALL, EVERYTHING: ALL}
"""What another auditor chooses anew, and the settings over which the reversed verdicts are counted."""


class Experiment(NamedTuple):
    """A crossed experiment: the data set, the method and the rows on which the metric is learned."""

    dataset: str
    method: str
    metric_rows: str


def crossed(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of the crossed experiments. Raises NotRun if there are none."""
    return audited(inputs, AUDIT, "cross what a verdict depends on")


def experiments(rows: pd.DataFrame) -> list[Experiment]:
    """Return the experiments in order."""
    return [
        Experiment(dataset, method, source)
        for dataset in sorted(set(rows["dataset"]))
        for method in in_order(rows.loc[rows["dataset"] == dataset, "method"])
        for source in ordered(set(rows["metric_rows"]), SOURCES)
    ]


def mean(
    rows: pd.DataFrame, statistic: str, one: Experiment, effect: str = "", points: str = PUBLISHED, **limits: Any
) -> Estimate:
    """Return the mean of a number over the splits with Student's interval; NaN if the experiment lacks it."""
    setting: dict[str, str | float] = {**one._asdict(), "statistic": statistic, "points": points}
    found = select(rows, {**setting, **({"effect": effect} if effect else {})})
    return estimate("mean", found, **limits) if len(found) else Estimate(float("nan"))


def shares(rows: pd.DataFrame, one: Experiment, points: str) -> Mapping[str, float]:
    """Return the mean share of each part of the variance."""
    found = select(rows, {**one._asdict(), "statistic": "share", "points": points})
    return by_part(found, {part: part for part in PARTS if part != INTERACTIONS})


def by_part(found: pd.DataFrame, parts: Mapping[str, str]) -> Mapping[str, float]:
    """Return the mean share of each part over the splits; ``parts`` has the part of an effect, others interact."""
    part = found["effect"].map(parts).fillna(INTERACTIONS)
    shares = found.groupby(part)["value"].sum(min_count=1) / found["repetition"].nunique()
    return shares.reindex([*dict.fromkeys(parts.values()), INTERACTIONS]).to_dict()


def stack(axes: Axes, place: float, shares: Mapping[str, float], colors: Mapping[str, str]) -> None:
    """Draw a bar of these shares."""
    bottom = 0.0
    for part, share in shares.items():
        if share > 0:
            axes.bar(place, share, 0.85, bottom, color=colors[part], linewidth=0)
            bottom += share


def _bars(axes: Axes, rows: pd.DataFrame, shown: list[Experiment], points: str) -> None:
    """Draw a bar for each experiment of a data set, in groups of methods, and its total spread above it."""
    methods = in_order({one.method for one in shown})
    places, labels = [], []
    for one in shown:
        sources = [other.metric_rows for other in shown if other.method == one.method]
        place = methods.index(one.method) * (len(sources) + 1.0) + sources.index(one.metric_rows)
        stack(axes, place, shares(rows, one, points), {part: color for part, (_, color) in PARTS.items()})
        spread = mean(rows, "spread", one, EVERYTHING, points).value
        axes.text(place, 1.02, number(spread, 2), ha="center", va="bottom", fontsize=5.5)
        places.append(place)
        labels.append(SOURCES[one.metric_rows])
    axes.set_xticks(places, labels, rotation=55, ha="right", rotation_mode="anchor", fontsize=6)
    # The numbers and the methods are above the bars, within the panel.
    axes.set(ylim=(0, 1.26), yticks=(0, 0.5, 1))
    axes.spines["left"].set_bounds(0, 1)
    axes.tick_params(axis="x", length=0, pad=1)
    for method in methods:
        own = [place for place, one in zip(places, shown, strict=True) if one.method == method]
        axes.text(float(np.mean(own)), 1.13, method_style(method).label, ha="center", va="bottom", fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)


@artefact(
    "The statistic of the loss-ratio test varies with the rows on which the fair metric is learned, the random seed "
    "of the model and the settings of the attack, and not only with the audited rows.",
)
def figure_verdicts(inputs: Inputs) -> Picture:
    rows = crossed(inputs)
    every = experiments(rows)
    datasets = sorted({one.dataset for one in every})
    figure, panels = new_panels(2.3 * len(POINTS) + 0.3, len(POINTS), len(datasets), sharey=True)
    for line, points in zip(panels, POINTS, strict=True):
        for dataset, axes in zip(datasets, line, strict=True):
            _bars(axes, rows, [one for one in every if one.dataset == dataset], points)
    titles = [f"{w.dataset_label(dataset)}, {points}" for points in POINTS.values() for dataset in datasets]
    handles = [Patch(facecolor=color, label=label) for label, color in PARTS.values()]
    finish(figure, panels, y="share of the variance", columns=len(PARTS), titles=titles, handles=handles)
    return Picture(
        figure,
        "Where the variance of the loss-ratio statistic comes from.",
        inputs.stamp(set(rows["block"])),
        "Stacked bars for each data set, method and source of rows for the metric: the shares of the variance of the "
        "logarithm of T_n that come from the audit sample, the metric sample, the model, the settings of the attack "
        "and their interactions.",
        notes=(
            "Variance components of log T_n, as shares, means over the splits. Above each bar: the standard deviation "
            "of log T_n between two audits that differ in everything.",
            *read_as(),
        ),
    )


def read_as() -> tuple[str, ...]:
    """Return the notes on what is varied."""
    return (
        "Metric learned on bootstrap samples of all training rows (training), of as many of them as are audited "
        "(fewer training), of the audited rows (audited), or of as many other held-out rows (other).",
        "Settings: penalty, step size and number of steps, at the published values and at the next smaller ones.",
    )


@artefact(
    "How often would another auditor reverse the verdict? Each column is the probability that two audits disagree that "
    "differ in one choice alone.",
)
def table_verdicts(inputs: Inputs) -> StampedTable:
    rows = crossed(inputs)
    of = partial(partial, mean, rows)
    spread, reversals = "Standard deviation of log T_n", "Share of reversed verdicts"
    columns = [
        Column("rejected", cell=of("rejected"), decimals=2),
        Column("standard error", cell=of("standard_error"), group=spread, name="test's own"),
        *(
            Column(f"spread {effect}", cell=of("spread", effect=effect), group=spread, name=PARTS[effect][0])
            for effect in ("audit", "model", "metric")
        ),
        *(
            Column(
                f"reversed {effect}",
                "value and interval",
                of("reversals", effect=effect, points=points, limits=(0, 1)),
                reversals,
                decimals=2,
                name=PARTS[effect][0] if effect in PARTS else effect,
            )
            for effect, points in REVERSED.items()
        ),
    ]
    return tabulated(
        "Verdicts that another auditor would reverse.",
        ("Data set", "Method", "Metric learned on"),
        columns,
        [
            ((w.dataset_label(one.dataset), method_style(one.method).label, SOURCES[one.metric_rows]), one)
            for one in experiments(rows)
        ],
        inputs.stamp(set(rows["block"])),
        (
            "Means over the splits, with Student's 95 % interval of the shares; no interval if they are equal in all "
            "splits. At the published settings, except for the last two columns, which are over all settings.",
            "Reductions has no random seed, so it has a single model for each split.",
            "Rejected: share of rejections over all choices. Test's own: the standard error of the mean ratio that the "
            "test computes from the audited rows, relative to the ratio. Audit sample, model, metric sample: the "
            "standard deviation if this choice alone is made anew.",
            *read_as(),
        ),
    )
