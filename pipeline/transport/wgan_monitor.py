r"""What is watched while ``pipeline.transport.wgan`` trains, and which of the networks it saw are kept.

Watched are the first ROWS rows of each group: the Kolmogorov-Smirnov statistic of each feature of the images against
the target's,

.. math:: \sup_v |\hat F_{G(x)_j}(v) - \hat F_{x'_j}(v)|,

the mean cost :math:`(\sum_j |x_j - G(x)_j|)^2`, the mean L1 distance, and the critic's gap, mean D(x') - mean D(G(x)).

For the statistic an image counts as the nearest value that the target has. Between the values of a continuous feature
this changes next to nothing; a map that is learned by gradients never hits the value of a count or of an indicator
exactly, and without it the statistic would be large however well they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.transport.wgan_networks import outputs
from pipeline.types import Array

ROWS = 10_000
CURVES = ("max_ks", "mean_cost", "mean_l1", "critic_gap")


class Marginals:
    """The distributions of the target's features, rows (m, d)."""

    def __init__(self, target: Array) -> None:
        self._values, self._cumulative = [], []
        for column in target.T:
            values, counts = np.unique(column, return_counts=True)
            self._values.append(values)
            self._cumulative.append(np.cumsum(counts) / len(column))

    def statistics(self, images: Array) -> Array:
        """The Kolmogorov-Smirnov statistic of each feature of images (n, d): (d,); NaN where one is not finite."""
        result = np.full(images.shape[1], np.nan)
        for j, (values, cumulative) in enumerate(zip(self._values, self._cumulative, strict=True)):
            if np.isfinite(images[:, j]).all():
                between = (values[1:] + values[:-1]) / 2
                counts = np.bincount(np.searchsorted(between, images[:, j]), minlength=len(values))
                result[j] = np.abs(np.cumsum(counts) / len(images) - cumulative).max()
        return result


class Watch:
    """The watched rows of T trials."""

    def __init__(self, source: Sequence[Array], target: Sequence[Array]) -> None:
        self._source, self._target = ([rows[:ROWS].astype(np.float32) for rows in side] for side in (source, target))
        self._marginals = [Marginals(rows) for rows in self._target]

    def measure(self, generators: Mapping[str, Array], critics: Mapping[str, Array]) -> dict[str, Array]:
        """Each of CURVES for every trial: arrays (T,); NaN where the networks are not finite."""
        measured = {name: np.full(len(self._source), np.nan) for name in CURVES}
        for t, (x, real, marginals) in enumerate(zip(self._source, self._target, self._marginals, strict=True)):
            generator, critic = ({name: values[t] for name, values in each.items()} for each in (generators, critics))
            if not _finite(generator, critic):
                continue
            images = outputs(generator, x)
            with np.errstate(over="ignore", invalid="ignore"):
                distance = np.abs(x - images).sum(axis=1, dtype=float)
                gap = outputs(critic, real).mean(dtype=float) - outputs(critic, images).mean(dtype=float)
            measured["max_ks"][t] = marginals.statistics(images).max()
            measured["mean_cost"][t] = (distance**2).mean()
            measured["mean_l1"][t] = distance.mean()
            measured["critic_gap"][t] = gap
        return measured


def _finite(*networks: Mapping[str, Array]) -> bool:
    return all(np.isfinite(values).all() for network in networks for values in network.values())


class Selection:
    """The generators that are kept, and which trials are still in training.

    ``rule`` "last" keeps every trial's latest finite networks, "best" those with the smallest of its statistics.
    """

    def __init__(self, rule: str, generators: Mapping[str, Array], measured: Mapping[str, Array]) -> None:
        count = len(measured["max_ks"])
        self._rule = rule
        self._least = np.full(count, np.inf)
        self._kept = {name: values.copy() for name, values in measured.items()}
        self.parameters = {name: values.copy() for name, values in generators.items()}
        self.running = np.ones(count, dtype=bool)
        self._step, self._trained = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)

    def consider(self, step: int, generators: Mapping[str, Array], measured: Mapping[str, Array]) -> None:
        """Look at the networks after ``step`` steps; a trial where they are not finite is in training no longer."""
        self.running &= np.isfinite(np.stack([measured[name] for name in CURVES])).all(axis=0)
        self._trained[self.running] = step
        taken = self.running & ((self._rule == "last") | (measured["max_ks"] < self._least))
        self._least[taken] = measured["max_ks"][taken]
        self._step[taken] = step
        for name, values in measured.items():
            self._kept[name][taken] = values[taken]
        for name, values in generators.items():
            self.parameters[name][taken] = values[taken]

    def facts(self, diverged_above: float) -> dict[str, Array]:
        """Of each trial (T,): what was measured of the kept networks, their step, and whether training went wrong.

        ``diverged`` (0 or 1): networks that are not finite, or a statistic above ``diverged_above``.
        """
        diverged = ~self.running | ~(self._kept["max_ks"] <= diverged_above)
        return {
            "diverged": diverged.astype(np.int64),
            "non_finite": (~self.running).astype(np.int64),
            "selected_step": self._step,
            "trained_steps": self._trained,
            **self._kept,
        }
