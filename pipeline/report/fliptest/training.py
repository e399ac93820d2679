"""How the fitting of each transport map went: what the maps' own facts and training curves say."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest.validation import EXPERIMENTS, counted, of_equal_groups
from pipeline.report.inputs import Inputs, label_given
from pipeline.report.numbers import Estimate, number
from pipeline.report.stamp import Picture, Stamp
from pipeline.report.style import FAINT, INK, level, new_panels
from pipeline.report.table import Cell, Column, Show, Table, tabulated
from pipeline.transport.quality import WORST_HEALTHY_KS
from pipeline.types import Array, TransportMap

POSTERIOR = ("r_hat", "effective_size", "divergences")
"""Facts of a causal model's sampler, the same for both directions."""


@dataclass(frozen=True)
class Fitted:
    """The maps of one kind in one direction, in one experiment."""

    experiment: str
    maps: TransportMap
    direction: str

    def _own(self, name: str) -> str:
        return name if self.direction == w.FORWARD or name in POSTERIOR else f"{w.REVERSE}_{name}"

    def fact(self, name: str) -> Array | None:
        """A fact by trial; None where this kind of map has none of that name."""
        return self.maps.facts.get(self._own(name))

    def curve(self, name: str) -> Array:
        """A training curve by trial and checkpoint, (T, L)."""
        return self.maps.history[self._own(name)]

    @property
    def groups(self) -> str:
        """``women to men``."""
        pair = [w.group_label(name, self.maps.dataset) for name in (self.maps.source, self.maps.target)]
        return " to ".join(pair if self.direction == w.FORWARD else pair[::-1])


def fitted(inputs: Inputs) -> list[Fitted]:
    """Every map of the study in each direction that was fitted; experiments in the order of Table 1, others after."""
    correlations = {point["goes_by"].transport: point["dataset"].get("correlation") for point in inputs.points}
    listed = []
    for key, maps in inputs.transports.items():
        place = (maps.dataset, label_given(maps.given_label))
        experiment = EXPERIMENTS.get(place, w.dataset_label(maps.dataset))
        if maps.dataset == w.GAUSSIAN:
            experiment = of_equal_groups(len(maps.features), correlations[key] or 0)
        order = list(EXPERIMENTS).index(place) if place in EXPERIMENTS else len(EXPERIMENTS)
        # By number where labels hold numbers: 5 features before 20.
        numbered = [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", experiment)]
        kind = w.maps_in([*w.MAPS, maps.transport]).index(maps.transport)
        for direction in (w.FORWARD, *([w.REVERSE] if maps.reverse else [])):
            listed.append(((order, numbered, maps.attribute, kind), Fitted(experiment, maps, direction)))
    return [one for _, one in sorted(listed, key=lambda entry: entry[0])]


@registry.table(place=8)
def table_training(inputs: Inputs) -> Table:
    """What each fit of a transport map reports of itself: trials that failed, the checkpoint that was kept, the
    critic's gap and the cost of the WGANs, the errors of the plans, and the diagnostics of the sampler behind the
    causal counterfactuals.
    """
    listed = fitted(inputs)
    if not listed:
        raise ValueError(f"study {inputs.study!r} has no transport maps at hand: fit them, and give them to its report")

    def column(
        key: str, group: str, show: Show, of: Callable[[Array], Cell], fact: str, decimals: int = 3, name: str = ""
    ) -> Column:
        def cell(one: Fitted) -> Cell:
            found = one.fact(fact)
            return None if found is None else of(found)

        return Column(key, group, show, decimals, name, of=cell)

    return tabulated(
        title="How the fits of the maps went.",
        stub=("Experiment", "Map", "From and to"),
        columns=(
            Column("trials", show="parameter", of=lambda one: float(one.maps.trials)),
            column("healthy", "", "text", lambda found: counted(found == 0), "diverged", name="not diverged"),
            column("kept step", "Training", "text", _steps, "selected_step"),
            column("largest KS", "Training", "spread", Estimate.mean, "max_ks"),
            column("critic gap", "Training", "spread", Estimate.mean, "critic_gap", 5),
            column("mean cost", "", "spread", Estimate.mean, "mean_cost", 2),
            column("marginal error", "Plan", "value", lambda found: float(found.max()), "marginal_error", 4),
            column("gap", "Plan", "value", lambda found: float(found.max()), "gap", 4),
            column("R-hat", "Posterior", "value", lambda found: float(found.max()), "r_hat"),
            column("effective size", "Posterior", "value", lambda found: float(found.min()), "effective_size", 0),
            column("divergences", "Posterior", "value", lambda found: float(found.sum()), "divergences", 0),
        ),
        rows=[((one.experiment, w.MAPS[one.maps.transport].label, one.groups), one) for one in listed],
        stamp=_stamp(inputs, {one.maps.transport for one in listed}),
        notes=(
            "Mean \u00b1 standard deviation over the trials. Not diverged: all parameters finite and, of a WGAN, "
            f"largest KS at most {WORST_HEALTHY_KS:g} on the training rows. Kept step: the generator's checkpoint that "
            "is the map. Critic gap: mean of the critic over the target group less its mean over counterparts, at that "
            "checkpoint; the critic's loss is minus this. Mean cost: mean squared L1 distance over the transported "
            "features.",
            "Marginal error: of the fitted plan, the largest over the trials. Gap: by how much a plan could be "
            "cheaper at most. Of the causal model's draws by NUTS: the largest R-hat (1 where the chains agree), the "
            "smallest effective sample size of a coefficient, and all divergences; a model at its posterior's mode has "
            "none of these.",
        ),
    )


def _steps(steps: Array) -> str:
    low, high = int(steps.min()), int(steps.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _stamp(inputs: Inputs, kinds: Collection[str]) -> Stamp:
    """The stamp of every block with maps of these kinds."""
    return inputs.stamp(inputs.rows.loc[inputs.rows["transport"].isin(kinds), "block"].unique(), maps=kinds)


PER_ROW = 4
ROW, AROUND = 1.05, 0.9
CURVES = {"max_ks": "largest KS", "critic_gap": "critic's gap"}
FIRST_SHOWN = {"max_ks": 0, "critic_gap": 1}
"""The first checkpoint that is drawn: before its first step a critic's gap is a thousand times what it is later."""
OPPOSITE = (0, (3, 1.5))
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
    height = ROW * len(CURVES) * lines + AROUND
    figure, grid = new_panels(height, len(CURVES) * lines, PER_ROW)
    # A pair of panels, one below the other, for each experiment.
    pairs = grid.reshape(lines, len(CURVES), PER_ROW).swapaxes(1, 2).reshape(-1, len(CURVES))
    for axes in pairs[len(names) :].flat:
        axes.set_visible(False)
    for place, (name, pair) in enumerate(zip(names, pairs, strict=False)):
        for axes, (curve, label) in zip(pair, CURVES.items(), strict=True):
            _draw(axes, [one for one in listed if one.experiment == name], curve)
            axes.set_ylabel(label if place % PER_ROW == 0 else "")
        pair[0].set_title(name, fontsize=8)
        pair[0].tick_params(labelbottom=False)
        pair[-1].set_xlabel("thousand steps")
    look: Any = {"xdata": [], "ydata": [], "linewidth": 0.8}
    handles = [
        Line2D(**look, color=w.MAPS[w.WGAN].color, label="from the source group"),
        Line2D(**look, color=FAINT, linestyle=OPPOSITE, label="opposite direction"),
        Line2D([], [], color=INK, marker="o", markersize=2.6, linestyle="none", label="kept checkpoint"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    failed = sum(int(found.sum()) for one in listed if (found := one.fact("diverged")) is not None)
    return Picture(
        figure,
        "How the WGANs of every experiment were trained.",
        _stamp(inputs, [w.WGAN]),
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
        color = w.MAPS[w.WGAN].color if forward else FAINT
        kept, first = one.fact("selected_step"), FIRST_SHOWN[curve]
        step = one.maps.history["step"][first:] / THOUSAND
        found, line = one.fact(curve), "-" if forward else OPPOSITE
        for t, values in enumerate(one.curve(curve)[:, first:]):
            axes.plot(step, values, color=color, alpha=0.75, linewidth=0.8, linestyle=line)
            if kept is not None and found is not None:
                axes.plot(kept[t] / THOUSAND, found[t], "o", markersize=2.6, color=INK if forward else color, zorder=3)
    axes.set_xlim(0, 1.04 * max(one.maps.history["step"][-1] for one in here) / THOUSAND)
    if curve == "max_ks":
        level(axes, WORST_HEALTHY_KS, linewidth=0.6, zorder=0)
        axes.set_ylim(bottom=0)
    else:
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
