"""The training curves of the WGANs, in small panels."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest.training import Fitted, fitted, stamp
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import number
from pipeline.report.picture import Picture
from pipeline.report.style import FAINT, INK, new_figure
from pipeline.transport.quality import WORST_HEALTHY_KS

PER_ROW = 4
ROW, AROUND = 1.05, 0.9
CURVES = {"max_ks": "largest KS", "critic_gap": "critic's gap"}
FIRST_SHOWN = {"max_ks": 0, "critic_gap": 1}
"""The first checkpoint that is drawn: before its first step a critic's gap is a thousand times what it is later."""
DASHED = (0, (3, 1.5))
THOUSAND = 1000


@registry.figure(place=5)
def figure_training(inputs: Inputs) -> Picture:
    """The WGANs in training: how far the counterparts' worst feature is from the target group, and how well the critic
    still tells the two apart. The paper keeps the last networks; the mark shows which were kept here.
    """
    listed = [one for one in fitted(inputs) if one.maps.transport == w.WGAN]
    names = list(dict.fromkeys(one.experiment for one in listed))
    if not names:
        raise ValueError(f"training curves need maps of kind {w.WGAN!r}: found {sorted(inputs.transports)}")
    lines = -(-len(names) // PER_ROW)
    figure = new_figure(ROW * len(CURVES) * lines + AROUND)
    grid = figure.subplots(len(CURVES) * lines, PER_ROW, squeeze=False)
    for place in range(lines * PER_ROW):
        line, column = divmod(place, PER_ROW)
        pair = grid[len(CURVES) * line : len(CURVES) * (line + 1), column]
        if place >= len(names):
            for axes in pair:
                axes.set_visible(False)
            continue
        here = [one for one in listed if one.experiment == names[place]]
        for axes, (curve, label) in zip(pair, CURVES.items(), strict=True):
            _draw(axes, here, curve)
            axes.set_ylabel(label if column == 0 else "")
        pair[0].set_title(names[place], fontsize=8)
        pair[0].tick_params(labelbottom=False)
        pair[-1].set_xlabel("thousand steps")
    figure.legend(*_handles(), loc="outside upper center", ncols=3)
    failed = sum(int(found.sum()) for one in listed if (found := one.fact("diverged")) is not None)
    return Picture.stamped(
        figure,
        "How the WGANs of every experiment were trained.",
        stamp(inputs, [w.WGAN]),
        "Curves by training step, a pair of panels for each experiment: the largest Kolmogorov-Smirnov distance of a "
        "feature and the critic's gap, one line for each trial and direction, with the kept checkpoint marked.",
        notes=(
            "Measured on the training rows, at most 10,000 of each group; the gap from the first checkpoint on. Dashed "
            f"across: the rule of a healthy map, KS {WORST_HEALTHY_KS:g}. Critic's gap: its mean over the target group "
            f"less its mean over counterparts. {number(failed, 0)} of "
            f"{number(sum(one.maps.trials for one in listed), 0)} trainings ended above the "
            "rule, or not finite.",
        ),
    )


def _draw(axes: Axes, here: Sequence[Fitted], curve: str) -> None:
    """One line for each trial, the opposite direction dashed; a mark on what was kept."""
    for one in here:
        forward = one.direction == w.FORWARD
        color = w.map_style(w.WGAN).color if forward else FAINT
        kept, first = one.fact("selected_step"), FIRST_SHOWN[curve]
        step = one.maps.history["step"][first:] / THOUSAND
        for t, values in enumerate(one.curve(curve)[:, first:]):
            axes.plot(
                step, values, color=color, alpha=0.75, linewidth=0.8,
                linestyle="-" if forward else DASHED,
            )  # fmt: skip
            found = one.fact(curve)
            if kept is not None and found is not None:
                axes.plot(kept[t] / THOUSAND, found[t], "o", markersize=2.6, color=INK if forward else color, zorder=3)
    axes.set_xlim(0, 1.04 * max(one.maps.history["step"][-1] for one in here) / THOUSAND)
    if curve == "max_ks":
        axes.axhline(WORST_HEALTHY_KS, color=INK, linewidth=0.6, linestyle=(0, (4, 2)), zorder=0)
        axes.set_ylim(bottom=0)
    else:
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))


def _handles() -> tuple[list, list[str]]:
    from matplotlib.lines import Line2D

    color = w.map_style(w.WGAN).color
    handles = [
        Line2D([], [], color=color, linewidth=0.8),
        Line2D([], [], color=FAINT, linewidth=0.8, linestyle=DASHED),
        Line2D([], [], color=INK, marker="o", markersize=2.6, linestyle="none"),
    ]
    return handles, ["from the source group", "opposite direction", "kept checkpoint"]
