"""How the fitting of each transport map went: what the maps' own facts and training curves say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.quality import EXPERIMENTS
from pipeline.report.inputs import Inputs, label_given
from pipeline.report.numbers import Estimate
from pipeline.report.stamp import Stamp
from pipeline.report.table import Cell, Column, Row, Table
from pipeline.transport.quality import WORST_HEALTHY_KS
from pipeline.types import Array, TransportMap


@dataclass(frozen=True)
class Fitted:
    """The maps of one kind in one direction, in one experiment."""

    experiment: str
    dataset: str
    maps: TransportMap
    direction: str

    def fact(self, name: str) -> Array | None:
        """A fact by trial; None where this kind of map has none of that name."""
        prefix = "" if self.direction == w.FORWARD else f"{w.REVERSE}_"
        return self.maps.facts.get(f"{prefix}{name}")

    def curve(self, name: str) -> Array:
        """A training curve by trial and checkpoint, (T, L)."""
        prefix = "" if self.direction == w.FORWARD else f"{w.REVERSE}_"
        return self.maps.history[f"{prefix}{name}"]

    @property
    def groups(self) -> str:
        """``women to men``."""
        pair = [w.group_label(name, self.dataset) for name in (self.maps.source, self.maps.target)]
        return " to ".join(pair if self.direction == w.FORWARD else pair[::-1])


def fitted(inputs: Inputs) -> list[Fitted]:
    """Every map of the study in each direction that was fitted; experiments in the order of Table 1, others after."""
    correlations = {point["goes_by"].transport: point["dataset"].get("correlation") for point in inputs.points}
    listed = []
    for key, maps in inputs.transports.items():
        dataset = maps.dataset
        given = label_given(maps.given_label)
        experiment = EXPERIMENTS.get((dataset, given), w.dataset_label(dataset))
        if dataset == w.GAUSSIAN:
            d = len(maps.features)
            correlated = f", r = {correlations[key]:g}" if correlations[key] else ""
            experiment = f"Normal, {d} feature{'s' * (d != 1)}{correlated}"
        named = (dataset, given) in EXPERIMENTS
        order = list(EXPERIMENTS).index((dataset, given)) if named else len(EXPERIMENTS)
        kind = w.maps_in([*w.MAPS, maps.transport]).index(maps.transport)
        for direction in (w.FORWARD, *([w.REVERSE] if maps.reverse else [])):
            place = (order, _numbered(experiment), maps.attribute, kind)
            listed.append((place, Fitted(experiment, dataset, maps, direction)))
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
    return Table(
        title="How the fits of the maps went.",
        stub=("Experiment", "Map", "From and to"),
        columns=(
            Column("trials", show="parameter"),
            Column("healthy", show="text", name="not diverged"),
            Column("kept step", "Training", "text"),
            Column("largest KS", "Training", "spread"),
            Column("critic gap", "Training", "spread", 5),
            Column("mean cost", show="spread", decimals=2),
            Column("marginal error", "Plan", "value", 4),
            Column("gap", "Plan", "value", 4),
            Column("R-hat", "Posterior", "value"),
            Column("effective size", "Posterior", "value", 0),
            Column("divergences", "Posterior", "value", 0),
        ),
        rows=tuple(
            Row((one.experiment, w.map_style(one.maps.transport).label, one.groups), _facts(one)) for one in listed
        ),
        stamp=stamp(inputs, [one.maps.transport for one in listed]),
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


def _facts(one: Fitted) -> tuple[Cell, ...]:
    """The cells of a map's row; None for what its kind does not report."""
    values = {name: one.fact(name) for name in ("max_ks", "critic_gap", "mean_cost")}
    worst = {name: one.fact(name) for name in ("marginal_error", "gap")}
    diverged, steps = one.fact("diverged"), one.fact("selected_step")
    spreads = [None if found is None else Estimate.mean(found) for found in values.values()]
    return (
        float(one.maps.trials),
        None if diverged is None else f"{int((diverged == 0).sum())} of {len(diverged)}",
        None if steps is None else _steps(steps),
        *spreads,
        *(None if found is None else float(np.max(found)) for found in worst.values()),
        *_posterior(one.maps),
    )


def _posterior(maps: TransportMap) -> tuple[Cell, ...]:
    """The largest R-hat, the smallest effective size and all divergences; None for a model that was not sampled."""
    if "r_hat" not in maps.facts:
        return None, None, None
    r_hat, size, divergences = (maps.facts[name] for name in ("r_hat", "effective_size", "divergences"))
    return float(r_hat.max()), float(size.min()), float(divergences.sum())


def _steps(steps: Array) -> str:
    low, high = int(steps.min()), int(steps.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def stamp(inputs: Inputs, kinds: Sequence[str]) -> Stamp:
    """The stamp of every block with maps of these kinds."""
    rows = inputs.rows[inputs.rows["transport"].isin(kinds)]
    return trials.stamp(inputs, sorted(set(rows["block"])), transports=kinds)


def _numbered(label: str) -> list[tuple[int, str]]:
    """For an order by number where labels hold numbers: 5 features before 20."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", label)]
