"""Figures 7 to 16 of Nanda et al. (2021): sigma of every group under every network, at the first and last epoch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from fairness_audits.results.formats import number
from fairness_audits.results.style import INK, ink_on, new_panels, panel_letter
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import stamps, study
from pipeline.report.robustness_bias.curves import nothing
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.stamp import Picture

ATTACKS = (w.DEEPFOOL, w.CARLINI_WAGNER, w.FMN)
CERTIFICATES = (w.SMOOTHING,)
COLORS = colormaps["RdBu"]
"""Colour map: red for less robust groups, blue for more robust ones. It is safe for colour-blind readers."""
MOST = 50
"""Largest number of groups in one strip. Further groups go into a second strip below."""
ANNOTATED = 12
"""Largest number of groups with numbers printed in the cells."""
LONG = 11
"""Length of a name beyond which the names are rotated."""
EXTREME = 0.98
"""Quantile of |log(1 + sigma)| at which the colours end, if it is between ``LITTLE`` and ``MOST_COLOURED``."""
LITTLE, MOST_COLOURED = 0.25, float(np.log(5.0))
"""Bounds of the colour scale in |log(1 + sigma)|: small values look small, and the scale ends at sigma = 4 and -.8."""
SCALE = (-0.8, -0.5, -0.2, 0.0, 0.25, 1.0, 2.0, 4.0)
SPARSE = (-0.8, -0.5, 0.0, 1.0, 4.0)
"""Values of sigma at the ticks of the colour bar, and those of a short colour bar."""
CELL, TITLE = (0.36, 0.145, 0.1), (0.3, 0.3, 0.24)
"""Heights in inches of a network's row and of a panel title: with numbers, without, and with two strips."""
LABELS = 0.55
"""Height of the names of the groups in inches."""
TALL = 2.3
"""Height in inches beyond which the colour bar names its ends and has all ticks."""
LEVEL = 0.05
MOMENTS = {w.FIRST: "first epoch", w.LAST: "last epoch"}
UNDEFINED, FEW = "#bdbdbd", "#ececec"


@dataclass(frozen=True)
class Strip:
    """One panel: sigma of a distance at a checkpoint with its interval, (networks, groups) each.

    ``significant`` marks significant values, ``few`` marks groups with too few points.
    """

    title: str
    networks: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]
    sigma: Array
    low: Array
    high: Array
    significant: Array
    few: Array


def strips(found: Sequence[Audited], attacks: Sequence[str]) -> list[Strip]:
    """Return the panels for networks of one data set: each distance at the first and the last epoch.

    A panel is omitted if no network has that checkpoint, or if no group has enough points.
    """
    made = []
    for attack in attacks:
        for moment, words in MOMENTS.items():
            here = [one for one in found if not one.table(attack, moment).empty]
            tables = [one.table(attack, moment) for one in here]
            if not any(table["sigma"].notna().any() for table in tables):
                continue
            groups = list(tables[0].index)
            names = ("sigma", "sigma_ci_low", "sigma_ci_high", "sigma_p_adjusted", "n_correct")
            sigma, low, high, p, right = (
                np.array([table.reindex(groups)[name].to_numpy(float) for table in tables]) for name in names
            )
            title = f"{w.DISTANCES[attack].label}, {words}"
            networks = tuple(w.NETWORKS[one.network] for one in here)
            made.append(Strip(title, networks, tuple(groups), sigma, low, high, p < LEVEL, right < study.TOO_FEW))
    return made


CAPTION = (
    "Robustness of each group relative to all others, under every network that had learned by its first epoch, and "
    "by its last. A star or a dot: not by chance. Light: too few points. Grey: not defined."
)


@artefact(CAPTION, "figure_7", dataset=w.UTKFACE, attacks=ATTACKS)
@artefact(CAPTION, "figure_8", dataset=w.UTKFACE, attacks=CERTIFICATES)
@artefact(CAPTION, "figure_9", dataset=w.CIFAR10, attacks=ATTACKS)
@artefact(CAPTION, "figure_10", dataset=w.CIFAR10, attacks=CERTIFICATES)
@artefact(CAPTION, "figure_11", dataset=w.CIFAR100, attacks=ATTACKS)
@artefact(CAPTION, "figure_12", dataset=w.CIFAR100, attacks=CERTIFICATES)
@artefact(CAPTION, "figure_13", dataset=w.SUPER, attacks=ATTACKS)
@artefact(CAPTION, "figure_14", dataset=w.SUPER, attacks=CERTIFICATES)
@artefact(CAPTION, "figure_15", dataset=w.ADIENCE, attacks=ATTACKS)
@artefact(CAPTION, "figure_16", dataset=w.ADIENCE, attacks=CERTIFICATES)
@artefact(CAPTION, "figure_digits", dataset=w.DIGITS, attacks=ATTACKS)
@artefact(CAPTION, "figure_digits_smoothing", dataset=w.DIGITS, attacks=CERTIFICATES)
def heat_map(inputs: Inputs, dataset: str, attacks: Sequence[str]) -> Picture:
    found = study.audited(inputs, study.NETWORKS, dataset)
    how = "attacks" if attacks is ATTACKS else "randomized smoothing"
    title = f"{w.dataset_label(dataset)}: robustness of each group relative to the others, by {how}."
    made = strips(study.run(found), attacks)
    if not made:
        return nothing(inputs, found, title, attacks=attacks)
    groups = made[0].groups
    parts = [groups[start : start + MOST] for start in range(0, len(groups), MOST)]
    end = color_end(np.concatenate([strip.sigma.ravel() for strip in made]))
    figure = _drawn(made, parts, end)
    legible = len(groups) <= ANNOTATED
    mark = "Bold, with *" if legible else "Dots"
    below = " Below it its 95 % interval; none where all points of the group have one distance, such as no radius."
    return Picture(
        figure,
        title,
        stamps.stamp(inputs, study.NETWORKS, [dataset]),
        "Heat maps with one row for each network and one column for each group, for the first and the last epoch: red "
        "where a group is less robust than the others, blue where it is more robust.",
        notes=(
            f"{mark}: sigma differs from 0 (permutation test, p below {LEVEL:g} after Holm's adjustment over the "
            f"groups of the data set).{below if legible else ''} Colours show log(1 + sigma) and "
            f"end at sigma {number(float(np.expm1(-end)), 2)} and {number(float(np.expm1(end)), 2)}; sigma cannot be "
            f"below \u22121. Light: fewer than {study.TOO_FEW} correctly "
            "classified points, too few. Grey: not defined, as nothing outside the group is safe from any "
            "perturbation, or the group is empty. Shares of all members, so accuracy has a part in it.",
            *not_yet(study.run(found)),
            *study.not_run(found),
        ),
    )


def not_yet(found: Sequence[Audited]) -> tuple[str, ...]:
    """Return a note on the networks whose first epoch is not drawn."""
    names = [
        w.NETWORKS[one.network]
        for one in found
        if one.epoch(w.FIRST) is not None and all(one.table(name, w.FIRST).empty for name in one.attacks)
    ]
    why = "no better than the largest class, or less than half as accurate as after the last"
    return (f"Without a first epoch, as {why}: {', '.join(names)}.",) if names else ()


def shade(sigma: Array) -> Array:
    """Return log(1 + sigma) for the colours: twice and half the distance have equally strong colours."""
    with np.errstate(divide="ignore"):
        found: Array = np.log1p(np.maximum(sigma, -1.0))
    return found


def color_end(sigma: Array) -> float:
    """Return the end of the colour scale on either side, a high quantile of |log(1 + sigma)|."""
    size = np.abs(shade(sigma[np.isfinite(sigma)]))
    size = size[np.isfinite(size)]
    return float(np.clip(np.quantile(size, EXTREME), LITTLE, MOST_COLOURED)) if size.any() else MOST_COLOURED


def _drawn(made: Sequence[Strip], parts: Sequence[Sequence[tuple[str, str]]], end: float) -> Figure:
    scale = Normalize(-end, end)
    rows = [len(strip.networks) for strip in made] * len(parts)
    dense = (len(made[0].groups) > ANNOTATED) + (len(parts) > 1)
    height = CELL[dense] * sum(rows) + TITLE[dense] * len(rows) + len(parts) * LABELS + 0.15
    figure, grid = new_panels(height, len(rows), 1, height_ratios=rows)
    for turn, part in enumerate(parts):
        columns = slice(turn * MOST, turn * MOST + len(part))
        for place, strip in enumerate(made):
            axes = grid[turn * len(made) + place, 0]
            _panel(axes, strip, columns, scale)
            _name_groups(axes, [w.plainly(level) for _, level in part] if place == len(made) - 1 else [])
            if len(parts) > 1:
                first, last = (w.plainly(level) for _, level in (part[0], part[-1]))
                axes.set_title(f"{strip.title}: {first} to {last}", fontsize=axes.title.get_fontsize(), pad=3)
            panel_letter(axes, "abcdefghijkl"[turn * len(made) + place])
    sigma = np.concatenate([strip.sigma.ravel() for strip in made])
    beyond = bool((shade(sigma) < -end).any()), bool((shade(sigma) > end).any())
    extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[beyond]
    shown = ScalarMappable(scale, COLORS)
    bar = figure.colorbar(shown, ax=list(grid.flat), extend=extend, fraction=0.03, pad=0.01, aspect=40)
    marked = [value for value in (SCALE if height > TALL else SPARSE) if abs(np.log1p(value)) <= end + 1e-9]
    bar.set_ticks(list(shade(np.array(marked))), labels=[f"{value:g}".replace("-", "\u2212") for value in marked])
    ends = r": less robust $\leftarrow$ 0 $\rightarrow$ more robust" if height > TALL else ""
    bar.set_label(rf"$\sigma(P)${ends}")
    return figure


def _panel(axes: Axes, strip: Strip, columns: slice, scale: Normalize) -> None:
    """Draw some of the columns: sigma with its interval if legible, otherwise a dot if significant."""
    values = (strip.sigma, strip.low, strip.high, strip.significant, strip.few)
    sigma, low, high, significant, few = (of[:, columns] for of in values)
    legible = len(strip.groups) <= ANNOTATED
    size, title = (5.5, 7) if len(strip.groups) > MOST else (6.5, 8)
    axes.set_facecolor(UNDEFINED)
    edges: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.4}
    axes.pcolormesh(np.ma.masked_where(~few, few), cmap=ListedColormap([FEW]), **edges)
    shades = np.where(np.isfinite(sigma), np.maximum(shade(sigma), -2 * MOST_COLOURED), np.nan)
    axes.pcolormesh(np.ma.masked_invalid(shades), cmap=COLORS, norm=scale, **edges)
    axes.invert_yaxis()
    axes.set_yticks(np.arange(len(strip.networks)) + 0.5, strip.networks, fontsize=size)
    axes.set_title(strip.title, fontsize=title, pad=3)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    centred: dict[str, Any] = {"ha": "center", "va": "center"}
    for row, column in np.argwhere(np.isfinite(sigma)):
        value, stands = sigma[row, column], bool(significant[row, column])
        ink = ink_on(COLORS(scale(shades[row, column])))
        if legible:
            weight, text = "bold" if stands else "normal", number(value, 2) + "*" * stands
            axes.text(column + 0.5, row + 0.34, text, fontsize=5.6, fontweight=weight, color=ink, **centred)
            ends = (low[row, column], high[row, column])
            if np.isfinite(ends).all():
                text = f"{number(ends[0], 2)}, {number(ends[1], 2)}"
                axes.text(column + 0.5, row + 0.74, text, fontsize=5, color=ink, **centred)
        elif stands:
            axes.plot(column + 0.5, row + 0.5, marker="o", markersize=1.6, color=ink, linestyle="none")
    for row, column in np.argwhere(few) if legible else ():
        axes.text(column + 0.5, row + 0.54, "few", fontsize=5, color="#777777", **centred)
    kinds = [partition for partition, _ in strip.groups[columns]]
    for column in range(1, len(kinds)):
        if kinds[column] != kinds[column - 1]:
            axes.axvline(column, color=INK, linewidth=1.0)


def _name_groups(axes: Axes, names: Sequence[str]) -> None:
    """Print the names below the columns, rotated if they would not fit."""
    places = np.arange(len(names)) + 0.5
    look: dict[str, Any] = {"fontsize": 6.5}
    if len(names) > 2 * ANNOTATED:
        look = {"fontsize": 5, "rotation": 90}
    elif len(names) > ANNOTATED or max(map(len, names), default=0) > LONG:
        look |= {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(places, names, **look)
