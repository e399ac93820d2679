"""Where the verdicts of four audits come from: the sample that is audited, another sample, the model, or chance."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import number
from fairness_audits.results.style import finish, in_order, method_style, new_panels, ordered
from pipeline.report import labels as w
from pipeline.report.agreement import verdicts
from pipeline.report.agreement.many_models import named
from pipeline.report.agreement.measures import audited, plain
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture

AUDIT = "audit_sources"
LOSS_RATIO = "loss_ratio"
METRIC_ROWS = "others"
"""Rows on which the fair metric is learned: rows that are not audited, as those of FlipTest's map."""
AUDITS = (LOSS_RATIO, "fliptest", "selection_rate", "tpr", "robustness")
MEASURES = [LOSS_RATIO, *(f"{audit} {attribute}" for attribute in w.ATTRIBUTES for audit in AUDITS[1:])]
SAMPLE, REFERENCE, MODEL, SETTINGS, CHANCE = "audit", "reference", "model", "settings", "chance"
PARTS = {
    SAMPLE: (verdicts.PARTS["audit"]),
    REFERENCE: ("metric or map sample", verdicts.PARTS["metric"][1]),
    MODEL: verdicts.PARTS["model"],
    SETTINGS: ("settings", verdicts.PARTS["point"][1]),
    CHANCE: ("random draws", "#B5478F"),
    verdicts.INTERACTIONS: verdicts.PARTS[verdicts.INTERACTIONS],
}
"""Names and colours of the parts of the variance, from the bottom of a bar."""
EFFECTS = {
    "audit": SAMPLE,
    "metric": REFERENCE,
    "map": REFERENCE,
    "model": MODEL,
    "point": SETTINGS,
    "draws": CHANCE,
    # The draws of a map are those of its sample.
    "map x draws": CHANCE,
}
"""The part of an effect. All others are interactions."""
SUM = verdicts.EVERYTHING


class Audited(NamedTuple):
    """The experiments on the models of a method."""

    dataset: str
    method: str

    @property
    def title(self) -> str:
        """Return the printed name."""
        return f"{w.dataset_label(self.dataset)}, {method_style(self.method).label}"


def experiments(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of the experiments on all audits, with the ``measure``. Raises NotRun if there are none.

    Those of the loss ratio are over all settings.
    """
    rows, found = plain(inputs), audited(inputs, AUDIT, "cross what a verdict depends on")
    ratio = rows[rows["audit"] == verdicts.AUDIT]
    if len(ratio):
        ratio = ratio[(ratio["metric_rows"] == METRIC_ROWS) & (ratio["points"] == verdicts.ALL)]
        pairs = found[["dataset", "method"]].drop_duplicates()
        found = pd.concat([found, ratio.assign(measure=LOSS_RATIO).merge(pairs, on=["dataset", "method"])])
    return found


def panels_of(rows: pd.DataFrame) -> list[Audited]:
    """Return the pairs of data set and method in order."""
    return [
        Audited(dataset, method)
        for dataset in sorted(set(rows["dataset"]))
        for method in in_order(rows.loc[rows["dataset"] == dataset, "method"])
    ]


def measures(rows: pd.DataFrame) -> list[str]:
    """Return the measures in order."""
    return ordered(set(rows["measure"]), MEASURES)


def too_short(own: pd.DataFrame) -> float:
    """Return how many times as much two audits differ that differ in everything as two with other audit samples."""
    spreads = own[own["statistic"] == "log_spread"]
    whole, sample = (spreads[spreads["effect"] == effect] for effect in (SUM, SAMPLE))
    return float(np.exp(estimate("mean", whole, sample).value))


def reversals(own: pd.DataFrame) -> Iterator[tuple[str, Estimate]]:
    """Yield the mean share of reversed verdicts of each part, with Student's interval."""
    found = own[own["statistic"] == "reversals"]
    for part in PARTS:
        effects = [effect for effect, of in EFFECTS.items() if of == part]
        if len(some := found[found["effect"].isin(effects)]):
            yield part, estimate("mean", some, limits=(0, 1))


def _variance(axes: Axes, own: dict[str, pd.DataFrame]) -> None:
    """Draw a bar for each measure, and above it how many times too short an interval for the audit sample is."""
    colors = {part: color for part, (_, color) in PARTS.items()}
    for place, rows in enumerate(own.values()):
        if rows.empty:
            axes.text(place, 0.5, "not run", rotation=90, ha="center", va="center", fontsize=5.5)
            continue
        verdicts.stack(axes, place, verdicts.by_part(rows[rows["statistic"] == "share"], EFFECTS), colors)
        times = too_short(rows)
        text = f"{number(times, 1 if times < 10 else 0)}×" if np.isfinite(times) else "?"
        axes.text(place, 1.02, text, ha="center", va="bottom", fontsize=5.5)
    axes.set(ylim=(0, 1.1), yticks=(0, 0.5, 1), xticks=[])
    axes.spines["left"].set_bounds(0, 1)


def _reversed(axes: Axes, own: dict[str, pd.DataFrame]) -> None:
    """Draw the shares of reversed verdicts of each measure, one point for each part."""
    shown = [part for part in PARTS if part in EFFECTS.values()]
    for place, rows in enumerate(own.values()):
        if place % 2 == 0:
            axes.axvspan(place - 0.5, place + 0.5, color="#f3f3f3", linewidth=0)
        if rows.empty:
            continue
        for part, found in reversals(rows):
            x = place + 0.16 * (shown.index(part) - (len(shown) - 1) / 2)
            axes.plot([x, x], [found.low, found.high], color=PARTS[part][1], linewidth=0.8)
            axes.plot(x, found.value, "o", color=PARTS[part][1], markersize=2.2, clip_on=False)
    axes.set_xticks(range(len(own)), map(named, own), rotation=55, ha="right", rotation_mode="anchor", fontsize=6)
    axes.tick_params(axis="x", length=0, pad=1)


@artefact(
    "What would another auditor find? Blue is the part of the variance that the interval of an audit covers, because "
    "it comes from the audited rows. All other colours are choices and chance that the interval ignores.",
)
def figure_sources(inputs: Inputs) -> Picture:
    rows = experiments(inputs)
    every, names = panels_of(rows), measures(rows)
    figure, panels = new_panels(4.4, 2, len(every), sharey="row", sharex=False)
    for column, one in zip(panels.T, every, strict=True):
        of = rows[(rows["dataset"] == one.dataset) & (rows["method"] == one.method)]
        own = {name: of[of["measure"] == name] for name in names}
        _variance(column[0], own)
        _reversed(column[1], own)
        for axes in column:
            axes.set_xlim(-0.6, len(names) - 0.4)
            axes.spines[["top", "right"]].set_visible(False)
    handles = [Patch(facecolor=color, label=label) for label, color in PARTS.values()]
    finish(figure, panels, columns=len(PARTS), titles=[one.title for one in every], handles=handles)
    panels[0, 0].set_ylabel("share of the variance")
    # Once all panels are drawn, because they share the upper end.
    panels[1, 0].set_ylim(bottom=0)
    panels[1, 0].set_ylabel("reversed verdicts")
    return Picture(
        figure,
        "Where the variance of the audits and their reversed verdicts come from.",
        inputs.stamp(set(rows["block"])),
        "For each data set and method, a stacked bar for each audit: the shares of the variance of its statistic that "
        "come from the audit sample, the sample of the metric or map, the model, the settings, random draws and their "
        "interactions. Below, the shares of verdicts that another choice of each of them reverses.",
        notes=(
            "Variance components of the logarithm of T_n, of the share of flips, of the studentized differences of "
            "rates, and of the logarithm of the ratio of distances, as shares; means over the splits. Above each bar: "
            "the standard deviation between two audits that differ in everything, over that of the audit sample alone.",
            "Below: the share of verdicts that the choice alone reverses, with Student's 95 % interval over the "
            "splits.",
            "Metric and map are learned on held-out rows that are not audited. Settings: penalty, step size and number "
            "of steps (loss ratio), regularization (FlipTest), number of steps (distance). Random draws: centres of "
            "the map, permutations of rates.",
        ),
    )
