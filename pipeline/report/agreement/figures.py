"""Heat maps of every model under every audit."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from fairness_audits.results.formats import number, sentence
from fairness_audits.results.style import INK, finish, ink_on, new_panels
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.agreement import measures as m
from pipeline.report.agreement.tables import label, read_as
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture

SHADES = LinearSegmentedColormap.from_list("unfairness", ("#ffffff", "#e9a27c", "#b0452a"))
SHARE = Normalize(0, 1)
PANEL = 1.75
"""Height of a panel in inches."""
UNFAIR = "shade of a model that fails: at least 0.3, and 1 for the least fair of its column"
FAILING = 0.3
"""Lightest shade of a failing model. Without it, a large ratio makes the other failures of its column look pale."""
NOTHING = "#ececec"
LARGE = 100.0
"""Effects from this size on are printed without decimals."""
SHORT = {"error_ratio": "error ratio", "tpr": "recall", "selection_rate": "selection"}
"""Short names of measures for the tick labels."""


def _cells(axes: Axes, values: Array, texts: list[list[str]], bold: Array, rows: list[str], columns: list[str]) -> None:
    """Draw a coloured cell with text per finite value (r, c), a grey one for the others, and the tick labels."""
    axes.set_facecolor(NOTHING)
    drawn = np.ma.masked_invalid(values)
    axes.pcolormesh(drawn, cmap=SHADES, norm=SHARE, edgecolors="white", linewidth=0.6)
    for row, column in np.ndindex(values.shape):
        value, text = values[row, column], texts[row][column]
        known = np.isfinite(value)
        axes.text(
            column + 0.5, row + 0.5, text if known else text.replace(" ", "\n"), ha="center", va="center",
            fontsize=5.2 if known else 4.6, linespacing=0.9, color=ink_on(SHADES(SHARE(value))) if known else INK,
            fontweight="bold" if bold[row, column] else "normal",
        )  # fmt: skip
    axes.invert_yaxis()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=40, ha="right", rotation_mode="anchor", fontsize=6)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, fontsize=6)


@artefact(
    "Every model (rows) under every audit (columns). A model fails where the cell is bold and has a *: the darker, "
    "the more unfair is it by that audit among the models of its panel, by ratios on a logarithmic scale.",
)
def figure_agreement(inputs: Inputs) -> Picture:
    verdicts = {place: m.verdicts(inputs, *place) for place in m.attributes(inputs)}
    figure, panels = _panels(inputs)
    for (dataset, attribute), axes in panels.items():
        found, names = verdicts[dataset, attribute], m.methods(inputs, dataset)
        having = {measure for (_, measure), verdict in found.items() if not verdict.word}
        measures = [measure for measure in m.MEASURES if measure in having]
        shown = [[found[method, measure] for measure in measures] for method in names]
        worst = np.array(
            [[_unfairness(v.effect.value, x) for v, x in zip(row, measures, strict=True)] for row in shown]
        )
        largest = np.nanmax(np.vstack([worst, np.full(len(measures), 1e-12)]), axis=0)
        texts = [
            [v.word or number(v.effect.value, 2 if abs(v.effect.value) < LARGE else 0) + "*" * v.rejected for v in row]
            for row in shown
        ]
        bold = np.array([[v.rejected for v in row] for row in shown])
        shade = FAILING + (1 - FAILING) * np.clip(worst / largest, 0, 1)
        shade = np.where(bold | np.isnan(worst), shade, 0.0)
        _cells(axes, shade, texts, bold, list(map(label, names)), [SHORT.get(x, m.MEASURES[x]) for x in measures])
    every = [verdict for found in verdicts.values() for verdict in found.values()]
    grey = " ".join(f"{sentence(word)}: {why}." for word, why in m.WHY.items() if word in {v.word for v in every})
    return Picture(
        figure,
        "Every mitigation under every audit.",
        inputs.stamp(),
        f"Heat maps with a row for each model and a column for each audit, one for each data set and attribute: "
        f"{sum(v.rejected for v in every)} of {sum(not v.untested for v in every)} cells are failures.",
        notes=(*read_as(inputs), f"Grey: does not apply. {grey}"),
    )


def _unfairness(effect: float, measure: str) -> float:
    """Return the unfairness: the log of ratios above 1, the absolute difference, or the flips beyond chance."""
    if measure in m.INDIVIDUAL:
        return float(np.log(max(effect, 1.0))) if np.isfinite(effect) else effect
    return effect if measure == m.FLIPTEST else abs(effect)


def _panels(inputs: Inputs) -> tuple[Figure, dict[m.Pair, Axes]]:
    """Make an empty figure with a panel per data set and attribute, and a colour bar."""
    places = m.attributes(inputs)
    down = -(-len(places) // 2)
    figure, grid = new_panels(PANEL * down + 0.3, down, 2)
    for axes in grid.flat[len(places) :]:
        axes.set_visible(False)
    finish(figure, grid, titles=[f"{w.dataset_label(d)}, {w.ATTRIBUTES[a]}" for d, a in places])
    shades = ScalarMappable(SHARE, SHADES)
    bar = figure.colorbar(shades, ax=list(grid.flat), fraction=0.02, pad=0.01, aspect=50)
    bar.set_label(UNFAIR, fontsize=6.5)
    bar.ax.tick_params(labelsize=6)
    return figure, dict(zip(places, grid.flat, strict=False))
