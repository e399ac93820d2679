"""Figures 7 to 16 of Nanda et al. (2021): sigma of every group under every network, at the first and last epoch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from fairness_audits.results.formats import number
from fairness_audits.results.style import INK, WARNING, ink_on, new_panels, panel_letter
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import stamps, study
from pipeline.report.robustness_bias.curves import nothing
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.selection import parse_setting
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
LITTLE = 0.12
"""Smallest end of the colour scale, see :func:`shade`. Small values look small."""
SCALE = (-0.9, -0.8, -0.5, -0.2, 0.0, 0.25, 1.0, 2.0, 4.0, 9.0)
SPARSE = (-0.8, -0.5, 0.0, 1.0, 4.0)
"""Values of sigma at the ticks of the colour bar, and those of a short colour bar."""
CELL, TITLE, LEFT_OUT = (0.25, 0.145, 0.1), 0.26, 0.12
"""Heights in inches: of a network's row (with numbers, without, and with two strips), of a title, of the line below."""
SMALL = 5.8
"""Size of the letters of that line in points."""
EMPTY = 0.1
"""Height of a panel without networks, in rows."""
LABELS = 0.55
"""Height of the names of the groups in inches."""
TALL = 2.3
"""Height in inches beyond which the colour bar names its ends and has all ticks."""
LEVEL = 0.05
MOMENTS = {w.FIRST: "first epoch", w.LAST: "last epoch"}
UNDEFINED, FEW = "#bdbdbd", "#ececec"
UNLEARNED = "not accurate enough"
EARLY = (
    "Not accurate enough: no better than the largest class at this epoch, or less than half as accurate as after the "
    "last."
)
SORTED = "Groups are in the order of their mean sigma over the networks and distances at the last epoch."
NONE = pd.Series(dtype=float)
MEASURES = ("sigma", "sigma_ci_low", "sigma_ci_high", "sigma_p_adjusted", "n_correct")


@dataclass(frozen=True)
class Strip:
    """One panel: the statistics ``MEASURES`` of a distance at a checkpoint, ``values`` (5, networks, groups).

    ``left_out`` says which networks have no row, and why.
    """

    title: str
    left_out: str
    networks: tuple[str, ...]
    groups: Sequence[tuple[str, str]]
    values: Array


def strips(found: Sequence[Audited], attacks: Sequence[str]) -> list[Strip]:
    """Return the panels for networks of one data set: each distance at the first and the last epoch.

    A distance is omitted if no network has it for a group with enough points.
    """
    made = []
    for attack in attacks:
        if not any(one.table(attack, moment).get("sigma", NONE).notna().any() for one in found for moment in MOMENTS):
            continue
        for moment, words in MOMENTS.items():
            here = [one for one in found if not one.table(attack, moment).empty]
            groups = found[0].groups
            tables = [one.table(attack, moment).reindex(groups)[list(MEASURES)].to_numpy(float).T for one in here]
            values = np.reshape(tables, (len(here), len(MEASURES), len(groups))).swapaxes(0, 1)
            title = f"{w.DISTANCES[attack].label}, {words}"
            networks = tuple(w.NETWORKS[one.network] for one in here)
            made.append(Strip(title, left_out(found, attack, moment), networks, groups, values))
    return made


def by_mean(made: Sequence[Strip]) -> list[Strip]:
    """Return the panels with more than ``MOST`` groups in the order of their mean sigma at the last epoch.

    Groups without any sigma come last.
    """
    if not made or len(made[0].groups) <= MOST:
        return list(made)
    last = np.concatenate([strip.values[0] for strip in made if strip.title.endswith(MOMENTS[w.LAST])])
    means = pd.DataFrame(last).mean().to_numpy(float)
    order = np.argsort(means, kind="stable")
    groups = [made[0].groups[place] for place in order]
    return [replace(strip, groups=groups, values=strip.values[:, :, order]) for strip in made]


def of_the_authors(found: pd.DataFrame, dataset: str, attacks: Sequence[str]) -> str:
    """Return in one sentence the published sigma of each group by these distances, or an empty text without any."""
    own = found[found["value"].notna() & (found["column"] == "sigma by smoothing")]
    texts = [
        f"{w.plainly(str(of['level']))} {number(line['value'], 2)}"
        for line in own.to_dict("records")
        if (of := parse_setting(line["setting"]))["dataset"] == dataset and of["attack"] in attacks
    ]
    return f"The authors' values, means over their networks: {', '.join(texts)}." if texts else ""


def left_out(found: Sequence[Audited], attack: str, moment: str) -> str:
    """Return which networks have no sigma by a distance at a checkpoint, and why."""
    without: dict[str, list[str]] = {}
    for one in found:
        if one.table(attack, moment).empty:
            blind = one.blind.get(one.epoch(moment) or 0) if attack == w.SMOOTHING else None
            early = not one.table(attack, moment, any_checkpoint=True).empty
            why = blind or (UNLEARNED if early else "not measured")
            without.setdefault(why, []).append(w.NETWORKS[one.network])
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in without.items())


CAPTION = (
    "Sigma, the robustness of each group relative to all others, after the first and after the last epoch, for every "
    "network that had learned by then. A star or a dot: sigma differs significantly from 0. Light: too few points. "
    "Grey: undefined."
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
def heat_map(inputs: Inputs, found: pd.DataFrame, dataset: str, attacks: Sequence[str]) -> Picture:
    networks = study.audited(inputs, study.NETWORKS, dataset)
    how = "attacks" if attacks is ATTACKS else "randomized smoothing"
    title = f"{w.dataset_label(dataset)}: robustness of each group relative to the others, by {how}."
    made = by_mean(strips(study.run(networks), attacks))
    if not made:
        why = f"{study.why_nothing(inputs, networks, attacks)} {of_the_authors(found, dataset, attacks)}".strip()
        return nothing(inputs, networks, title, why)
    groups = made[0].groups
    parts = [groups[start : start + MOST] for start in range(0, len(groups), MOST)]
    figure = _drawn(made, parts)
    legible = len(groups) <= ANNOTATED
    mark = "Bold, with *" if legible else "Dots"
    below = " Below: the 95 % interval; missing if all points of the group have the same distance."
    return Picture(
        figure,
        title,
        stamps.stamp(inputs, study.NETWORKS, [dataset]),
        "Heat maps for the first and the last epoch, with a row for each network and a column for each group. Red: the "
        "group is less robust than the others. Blue: it is more robust.",
        notes=(
            f"{mark}: sigma differs from 0 (permutation test, p below {LEVEL:g} after Holm's adjustment over the "
            f"groups of the data set).{below if legible else ''}",
            "Colours show sigma / (2 + sigma), so twice and half the distance have equally strong colours. Light: "
            f"fewer than {study.TOO_FEW} correctly classified points. Grey: undefined, because the group is empty or "
            "all points outside the group have distance 0. Sigma is over all members, so it also depends on accuracy.",
            *((SORTED,) if len(groups) > MOST else ()),
            *study.incomplete(networks, attacks),
            *((EARLY,) if any(UNLEARNED in strip.left_out for strip in made) else ()),
            *study.not_run(networks),
        ),
    )


def shade(sigma: Array) -> Array:
    """Return sigma / (2 + sigma) in (-1, 1) for the colours: twice and half the distance have equally strong colours.

    It equals tanh(log(1 + sigma) / 2), and 1 + sigma is the ratio of the mean distances inside and outside the group.
    """
    return sigma / (2 + sigma)


def _drawn(made: Sequence[Strip], parts: Sequence[Sequence[tuple[str, str]]]) -> Figure:
    # A panel without networks is drawn once, not for every part of the groups.
    panels = [(strip, turn) for turn in range(len(parts)) for strip in made if strip.networks or turn == 0]
    strengths = [np.abs(shade(strip.values[0])) for strip in made]
    end = max(LITTLE, *(float(np.max(of_one, where=np.isfinite(of_one), initial=0.0)) for of_one in strengths))
    scale = Normalize(-end, end)
    rows = [len(strip.networks) or EMPTY for strip, _ in panels]
    dense = (len(made[0].groups) > ANNOTATED) + (len(parts) > 1)
    titles = sum(TITLE + LEFT_OUT * bool(strip.left_out) for strip, _ in panels)
    height = CELL[dense] * sum(rows) + titles + len(parts) * LABELS + 0.15
    figure, grid = new_panels(height, len(rows), 1, height_ratios=rows)
    size = 7 if len(made[0].groups) > MOST else 8
    for place, (letter, axes, (strip, turn)) in enumerate(zip("abcdefghijkl", grid[:, 0], panels, strict=False)):
        part = parts[turn]
        words = strip.title
        if strip.networks:
            _panel(axes, strip, slice(turn * MOST, turn * MOST + len(part)), scale)
            below = any(later.networks and again == turn for later, again in panels[place + 1 :])
            _name_groups(axes, [] if below else [w.plainly(level) for _, level in part])
            if len(parts) > 1:
                words += f": {w.plainly(part[0][1])} to {w.plainly(part[-1][1])}"
        else:
            axes.set_axis_off()
        panel_letter(axes, letter)
        axes.set_title(words, fontsize=size, pad=3 + (SMALL + 2) * bool(strip.left_out))
        if strip.left_out:
            axes.annotate(
                f"without {strip.left_out}", (0.5, 1), (0, 2), "axes fraction", "offset points", fontsize=SMALL,
                color=WARNING, ha="center", va="bottom",
            )  # fmt: skip
    shown = ScalarMappable(scale, COLORS)
    bar = figure.colorbar(shown, ax=list(grid.flat), fraction=0.03, pad=0.01, aspect=40)
    marked = [value for value in (SCALE if height > TALL else SPARSE) if abs(shade(np.array(value))) <= end]
    bar.set_ticks(list(shade(np.array(marked))), labels=[f"{value:g}".replace("-", "\u2212") for value in marked])
    ends_named = r": less robust $\leftarrow$ 0 $\rightarrow$ more robust" if height > TALL else ""
    bar.set_label(rf"$\sigma(P)${ends_named}")
    return figure


def _panel(axes: Axes, strip: Strip, columns: slice, scale: Normalize) -> None:
    """Draw some of the columns: sigma with its interval if legible, otherwise a dot if significant."""
    sigma, low, high, p, correct = strip.values[:, :, columns]
    significant, few = p < LEVEL, correct < study.TOO_FEW
    legible = len(strip.groups) <= ANNOTATED
    size = 5.5 if len(strip.groups) > MOST else 6.5
    axes.set_facecolor(UNDEFINED)
    edges: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.4}
    axes.pcolormesh(np.ma.masked_where(~few, few), cmap=ListedColormap([FEW]), **edges)
    shades = shade(sigma)
    axes.pcolormesh(np.ma.masked_invalid(shades), cmap=COLORS, norm=scale, **edges)
    axes.invert_yaxis()
    axes.set_yticks(np.arange(len(strip.networks)) + 0.5, strip.networks, fontsize=size)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
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
