"""Heat maps of every model under every audit."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, NoNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fairness_audits.results.formats import MINUS, number, sentence
from fairness_audits.results.style import INK, finish, new_panels
from pipeline.report import labels as w
from pipeline.report.agreement import measures as m
from pipeline.report.agreement.tables import label, read_as
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture

PANEL = 1.75
"""Height of a panel in inches."""
PASSES, HIGHER, LOWER, UNFAIR, NOTHING = "#ffffff", "#f2b36b", "#8cc5ea", "#cfa6c8", "#ececec"
COLORS = {
    HIGHER: "fails: higher for the first group",
    LOWER: "fails: lower for the first group",
    UNFAIR: "fails: no direction",
    PASSES: "passes or has no test",
    NOTHING: "does not apply",
}
"""Colours of the cells. Their lightness is similar, so no failure looks weak; text is dark on all of them."""
LARGE = 100.0
"""Effects from this size on are printed without decimals."""
SHORT = {"error_ratio": "error ratio", "tpr": "recall", "selection_rate": "selection"}
"""Short names of measures for the tick labels."""


def color(verdict: m.Verdict, measure: str) -> str:
    """Return the colour of a cell."""
    if verdict.word:
        return NOTHING
    if not verdict.rejected:
        return PASSES
    if measure in m.INDIVIDUAL or measure == m.FLIPTEST:
        return UNFAIR
    return HIGHER if verdict.effect.value > 0 else LOWER


def _cells(axes: Axes, shown: Sequence[Sequence[m.Verdict]], rows: Sequence[str], measures: Sequence[str]) -> None:
    """Draw a coloured cell with its text per verdict, and the tick labels."""
    colors = [[color(verdict, measure) for verdict, measure in zip(row, measures, strict=True)] for row in shown]
    places = [[list(COLORS).index(one) for one in row] for row in colors]
    axes.pcolormesh(
        np.array(places), cmap=ListedColormap(list(COLORS)), norm=NoNorm(), edgecolors="white", linewidth=0.6
    )
    for row, verdicts in enumerate(shown):
        for column, verdict in enumerate(verdicts):
            effect, failed = verdict.effect.value, verdict.rejected
            text = number(effect, 2 if abs(effect) < LARGE else 0) + "*" * failed
            axes.text(
                column + 0.5, row + 0.5, verdict.word.replace(" ", "\n") or text, ha="center", va="center",
                fontsize=4.6 if verdict.word else 5.2, linespacing=0.9, fontweight="bold" if failed else "normal",
            )  # fmt: skip
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    names = [SHORT.get(x, m.MEASURES[x]) for x in measures]
    axes.set_xticks(np.arange(len(names)) + 0.5, names, rotation=40, ha="right", rotation_mode="anchor", fontsize=6)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, fontsize=6)


@artefact(
    "Models are rows, audits are columns. A model fails if the cell is coloured and bold with a star. If an audit has "
    "a direction, the colour shows which group has the higher value.",
)
def figure_agreement(inputs: Inputs) -> Picture:
    verdicts = {place: m.verdicts(inputs, *place) for place in m.attributes(inputs)}
    figure, panels = _panels(inputs)
    for (dataset, attribute), axes in panels.items():
        found, names = verdicts[dataset, attribute], m.methods(inputs, dataset)
        having = {measure for (_, measure), verdict in found.items() if not verdict.word}
        measures = [measure for measure in m.MEASURES if measure in having]
        shown = [[found[method, measure] for measure in measures] for method in names]
        _cells(axes, shown, list(map(label, names)), measures)
    every = [verdict for found in verdicts.values() for verdict in found.values()]
    grey = " ".join(f"{sentence(word)}: {why}." for word, why in m.WHY.items() if word in {v.word for v in every})
    return Picture(
        figure,
        "Each model under each audit.",
        inputs.stamp(),
        f"For each data set and attribute, a table with a row for each model and a column for each audit. "
        f"{sum(v.rejected for v in every)} of {sum(not v.untested for v in every)} cells with a test are failures.",
        notes=(*read_as(inputs), f"Grey: the audit does not apply. {grey}"),
    )


def _panels(inputs: Inputs) -> tuple[Figure, dict[m.Pair, Axes]]:
    """Make an empty figure with a panel per data set and attribute, and a legend."""
    places = m.attributes(inputs)
    down = -(-len(places) // 2)
    figure, grid = new_panels(PANEL * down + 0.3, down, 2)
    for axes in grid.flat[len(places) :]:
        axes.set_visible(False)
    titles = [f"{w.dataset_label(d)}: {f' {MINUS} '.join(reversed(inputs.datasets[d].levels[a]))}" for d, a in places]
    handles = [Patch(facecolor=color, edgecolor=INK, linewidth=0.3, label=word) for color, word in COLORS.items()]
    finish(figure, grid, columns=3, titles=titles, handles=handles)
    return figure, dict(zip(places, grid.flat, strict=False))
