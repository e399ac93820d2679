"""Whether the audits name the same people: odds ratios of every pair of audits, and of an audit with itself."""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.style import INK, MethodStyle, finish, level, logarithmic, new_panels, ordered
from pipeline.report import labels as w
from pipeline.report.agreement.measures import audited
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.selection import select
from pipeline.report.stamp import Picture

AUDIT = "same_people"
AUDITS = {"fliptest": "FlipTest", "loss_ratio": "loss ratio", "robustness": "robustness", "error": "error"}
"""Printed names of the audits."""
RAW, GIVEN, ACROSS = "log_odds", "given_score", "across"
LOOKS = {
    RAW: MethodStyle("within groups", "#0072B2", "o", "-"),
    GIVEN: MethodStyle("given the score and the decision too", "#D55E00", "s", "-"),
    ACROSS: MethodStyle("an audit and itself, in another partition", INK, "D", "-"),
}
"""Names and looks of the odds ratios."""


class Pair(NamedTuple):
    """Two audits, or twice the same."""

    measure: str
    other: str

    @property
    def title(self) -> str:
        """Return the printed name."""
        return f"{named(self.measure)}, {'itself' if self.measure == self.other else named(self.other)}"


def named(measure: str) -> str:
    """Return the printed name of an audit: ``fliptest sex`` -> ``FlipTest by gender``."""
    audit, _, attribute = measure.partition(" ")
    return f"{AUDITS[audit]} by {w.ATTRIBUTES[attribute]}" if attribute else AUDITS[audit]


def compared(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of the audits of the same people. Raises NotRun if there are none."""
    return audited(inputs, AUDIT, "compare the people whom the audits name")


def pairs(rows: pd.DataFrame) -> list[Pair]:
    """Return the pairs of audits in the order of the rows, then each audit with itself."""
    audits = ordered(set(rows["measure"]), dict.fromkeys(rows["measure"]))
    return [Pair(*pair) for pair in combinations(audits, 2)] + [Pair(one, one) for one in audits]


def odds(rows: pd.DataFrame, pair: Pair) -> Iterator[tuple[str, Estimate]]:
    """Yield the odds ratios of a pair with their 95 % intervals, those that every partition has."""
    for statistic in (ACROSS,) if pair.measure == pair.other else (RAW, GIVEN):
        found = select(rows, {"statistic": statistic, **pair._asdict()})
        if len(found) and found["value"].notna().all():
            mean = estimate("mean with error", found)
            value, low, high = np.exp([mean.value, mean.low, mean.high])
            yield statistic, Estimate(value, n=mean.n, low=low, high=high)


def _panel(axes: Axes, rows: pd.DataFrame, shown: list[Pair]) -> None:
    """Draw the odds ratios of a data set, a line for each pair."""
    level(axes, x=1)
    level(axes, y=sum(pair.measure != pair.other for pair in shown) - 0.5, linewidth=0.4, linestyle="-")
    for place, pair in enumerate(shown):
        for offset, (statistic, one) in zip((-0.16, 0.16), odds(rows, pair), strict=False):
            look, where = LOOKS[statistic], place + (0 if statistic == ACROSS else offset)
            axes.plot([one.low, one.high], [where, where], color=look.color, linewidth=0.9)
            axes.plot([one.value], [where], look.marker, color=look.color, markersize=3.5)
    axes.set_yticks(range(len(shown)), [pair.title for pair in shown], fontsize=6)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    logarithmic(axes, "x")
    # The odds ratios of an audit with itself are in the thousands.
    axes.xaxis.set_major_locator(LogLocator())


@artefact(
    "Do the audits name the same people? Odds ratios of being named by both audits: above 1, the audits name the same "
    "people more often than chance, below 1 they name different people.",
)
def figure_people(inputs: Inputs) -> Picture:
    rows = compared(inputs)
    datasets, shown = sorted(set(rows["dataset"])), pairs(rows)
    figure, panels = new_panels(0.19 * len(shown) + 0.9, 1, len(datasets), sharex=True, sharey=True)
    for dataset, axes in zip(datasets, panels.flat, strict=True):
        _panel(axes, rows[rows["dataset"] == dataset], shown)
    handles = [axes.plot([], [], x.marker, color=x.color, label=x.label, markersize=3.5)[0] for x in LOOKS.values()]
    finish(
        figure, panels, x="odds ratio", columns=len(LOOKS), titles=[*map(w.dataset_label, datasets)], handles=handles
    )
    return Picture(
        figure,
        "Do the audits name the same people?",
        inputs.stamp(set(rows["block"])),
        "For each data set, a line for each pair of audits with two odds ratios and their intervals: within groups, "
        "and also given the score and the decision. Below them, a line for each audit and itself.",
        notes=(
            "Everybody is audited once in each partition, by a model that is trained on the other folds. FlipTest "
            "names people whose counterpart gets the other decision, the loss ratio the tenth with the largest ratios, "
            "robustness the tenth nearest to the decision boundary. An error is a wrong unfavourable decision, counted "
            "among the people whose true label is the favourable one.",
            "Odds ratios of Mantel and Haenszel, stratified by gender, race and fold, and also by decision and tenth "
            "of the score; geometric means over the partitions. 95 % intervals by standard errors clustered by person.",
            "Without a number: in some partition, two audits never or always name the same people.",
        ),
    )
