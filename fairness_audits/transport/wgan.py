r"""Transport map learned as the generator of a Wasserstein GAN with a distance penalty (Black et al. 2020, eq. 1).

The generator G maps rows x of the source group. The critic D distinguishes its images from rows x' of the target group:

.. math::
   D \text{ descends on } -\frac1n \sum D(x'), \text{ then on } \frac1n \sum D(G(x)); \qquad
   G \text{ descends on } -\frac1n \sum D(G(x)) + \frac\lambda n \sum \Big(\sum_j |x_j - G(x)_j|\Big)^2 .

As in the authors' code, both networks have two hidden layers of H rectified units,

.. math:: f(x) = W_3^\top \max(0, W_2^\top \max(0, W_1^\top x + b_1) + b_2) + b_3,

with ``w1`` (T, d, H), ``b1`` (T, H), ``w2`` (T, H, H), ``b2`` (T, H), ``w3`` (T, H, k), ``b3`` (T, k), where k = d for
a generator and k = 1 for a critic. Weights start Glorot-uniform and biases at zero. RMSprop trains both networks: v is
a moving mean of squared gradients that starts at 0, and a step is rate gradient / (sqrt(v) + epsilon). D makes
``rounds`` rounds before each step of G. In a round, D makes a step on a minibatch of target rows, then, with the new
weights, a step on the images of a minibatch of source rows. Then every weight and bias of D is clipped to +-``clip``.
The step of G uses one more minibatch. Minibatches have n rows, drawn with replacement.

The paper's eq. 1 has the opposite sign of D, which makes no difference.

All T trials train in one job, and no trial depends on the draws or results of another. A trial stops when its networks
are no longer finite. It then keeps the generator of its last finite checkpoint, and its facts report the stop.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fairness_audits.models.mlp import glorot_networks
from fairness_audits.seeds import fingerprint
from fairness_audits.transport import quality
from fairness_audits.transport.wgan_config import Config
from fairness_audits.values import Array, Checkpoint, TransportMap

__all__ = ["Config", "fit", "images"]

LOG = logging.getLogger(__name__)
CHUNK = 100
"""Number of steps whose minibatches are drawn together."""
ROWS = 10_000
"""Number of monitored rows of each group."""
BLOCK = 8192
"""Number of rows evaluated together, to bound the memory."""
CURVES = ("max_ks", "mean_cost", "critic_gap")


def fit(
    source: Sequence[Array],
    target: Sequence[Array],
    config: Config,
    rngs: Sequence[np.random.Generator],
    resume: Checkpoint | None = None,
) -> TransportMap:
    """Fit one map for each random generator, from ``source[t]`` (n_t, d) to the distribution of ``target[t]`` (m_t, d).

    ``parameters`` are the selected networks G. ``history`` has ``step`` (L,), which starts at 0, and the curves
    ``max_ks``, ``mean_cost`` and ``critic_gap`` (T, L) of :class:`Monitor`, NaN after a trial has stopped. ``facts``
    (T,) are these three measures of the selected networks, their step ``selected_step``, ``non_finite`` (0 or 1), and
    ``diverged`` (0 or 1), which means not finite or max_ks above ``quality.WORST_HEALTHY_KS``. With ``resume``, a
    killed training continues from its last checkpoint and gives byte-identical results.
    """
    from fairness_audits.transport.wgan_compiled import CompiledTraining

    d, hidden = source[0].shape[1], config.hidden_units
    generators = glorot_networks(rngs, (d, hidden, hidden, d))
    critics = glorot_networks(rngs, (d, hidden, hidden, 1))
    training = CompiledTraining(source, target, generators, critics, config)
    monitor, sizes = Monitor(source, target), [(len(x), len(y)) for x, y in zip(source, target, strict=True)]
    measured = monitor.measure(generators, critics)
    selection = Selection(config.selection, generators, measured)
    curves = {name: values[:, None] for name, values in measured.items()}
    steps = [0, *range(config.check_every, config.steps, config.check_every), config.steps]
    own = fingerprint(replace(config, threads=1), (*generators.values(), *critics.values(), *source, *target))
    if resume is not None and (state := resume.load(own)):
        for part, name in ((training, "training/"), (selection, "selection/")):
            part.resume({key.removeprefix(name): values for key, values in state.items() if key.startswith(name)})
        curves = {name: state[name] for name in CURVES}
        LOG.info("generator step %s was reached before", f"{steps[curves['max_ks'].shape[1] - 1]:,}")
    before = curves["max_ks"].shape[1]
    for place, (reached, checkpoint) in enumerate(pairwise(steps), start=1):
        for start in range(reached, checkpoint, CHUNK):
            # Also draw the minibatches of completed steps, because later minibatches come from the same stream.
            rows = minibatches(sizes, min(CHUNK, checkpoint - start), config.rounds, config.batch_size, rngs)
            if place >= before:
                training.advance(rows, selection.running)
        if place < before:
            continue
        generators = training.generators()
        measured = monitor.measure(generators, training.critics())
        selection.consider(checkpoint, generators, measured)
        shown = {name: np.where(selection.running, values, np.nan) for name, values in measured.items()}
        curves = {name: np.column_stack([curves[name], values]) for name, values in shown.items()}
        _log(checkpoint, config.steps, shown, selection.running)
        if resume is not None:
            parts = {"training": training.state(), "selection": selection.state()}
            flat = {f"{part}/{name}": values for part, arrays in parts.items() for name, values in arrays.items()}
            resume.save(own, {**curves, **flat})
    return TransportMap(
        kind="wgan",
        parameters=selection.parameters,
        history={"step": np.array(steps), **curves},
        facts=selection.facts(),
    )


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """Return G_t(x) for x in ``rows[t]`` (n_t, d): (n_t, d) each. A row that is not finite has no finite image."""
    return [
        outputs({name: values[t] for name, values in parameters.items()}, np.asarray(x, dtype=float))
        for t, x in enumerate(rows)
    ]


def minibatches(
    sizes: Sequence[tuple[int, int]], steps: int, rounds: int, n: int, rngs: Sequence[np.random.Generator]
) -> Array:
    """Draw row indices of all minibatches of ``steps`` generator steps, with replacement: (T, steps, 2 rounds + 1, n).

    ``sizes[t]`` are the numbers of source and target rows of trial t. In each step, a target minibatch and a source
    minibatch alternate for each round of the critic; the last minibatch, of source rows, is for the generator.
    """
    drawn = []
    for (sources, targets), rng in zip(sizes, rngs, strict=True):
        upper = np.array([targets, sources] * rounds + [sources])
        drawn.append(rng.integers(0, upper[:, None], (steps, len(upper), n)))
    return np.stack(drawn)


def outputs(network: Mapping[str, Array], rows: Array) -> Array:
    """Return f(x) (n, k) of one network, without the trial axis, on rows (n, d), in the precision of ``rows``."""
    w1, b1, w2, b2, w3, b3 = (
        network[name].astype(rows.dtype, copy=False) for name in ("w1", "b1", "w2", "b2", "w3", "b3")
    )
    values = np.empty((len(rows), w3.shape[-1]), rows.dtype)
    # A diverged network gives values that are not finite; callers check for them.
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), BLOCK):
            block = slice(start, start + BLOCK)
            hidden = np.maximum(np.maximum(rows[block] @ w1 + b1, 0) @ w2 + b2, 0)
            values[block] = hidden @ w3 + b3
    return values


def _log(step: int, steps: int, measured: Mapping[str, Array], running: Array) -> None:
    if running.any():
        shown = {name: np.nanmean(values) for name, values in measured.items()}
        LOG.info(
            "generator step %s of %s, largest KS %.3f, mean cost %.3g, critic gap %.2g%s",
            *(f"{step:,}", f"{steps:,}", shown["max_ks"], shown["mean_cost"], shown["critic_gap"]),
            "" if running.all() else f", {np.sum(~running)} of {len(running)} trials stopped: not finite",
        )
    else:
        LOG.info("generator step %s of %s: no trial is finite any more", f"{step:,}", f"{steps:,}")


class Monitor:
    r"""Measures of T trials in training, on the first ROWS rows of each group.

    The measures are the largest Kolmogorov-Smirnov statistic over the features, between images and target rows,

    .. math:: \sup_v |\hat F_{G(x)_j}(v) - \hat F_{x'_j}(v)|,

    the mean cost :math:`(\sum_j |x_j - G(x)_j|)^2`, and the critic's gap, mean D(x') - mean D(G(x)). For the statistic,
    images are replaced by the nearest target values, see :func:`fairness_audits.transport.quality.nearest_values`.
    """

    def __init__(self, source: Sequence[Array], target: Sequence[Array]) -> None:
        self._source, self._target = ([rows[:ROWS].astype(np.float32) for rows in side] for side in (source, target))

    def measure(self, generators: Mapping[str, Array], critics: Mapping[str, Array]) -> dict[str, Array]:
        """Return each of CURVES for every trial as arrays (T,); NaN if a trial's networks are not finite."""
        measured = {name: np.full(len(self._source), np.nan) for name in CURVES}
        for t, (x, real) in enumerate(zip(self._source, self._target, strict=True)):
            generator, critic = ({name: values[t] for name, values in each.items()} for each in (generators, critics))
            if not all(np.isfinite(values).all() for values in (*generator.values(), *critic.values())):
                continue
            images = outputs(generator, x)
            with np.errstate(over="ignore", invalid="ignore"):
                distance = np.abs(x - images).sum(axis=1, dtype=float)
                gap = outputs(critic, real).mean(dtype=float) - outputs(critic, images).mean(dtype=float)
            if np.isfinite(images).all():
                measured["max_ks"][t] = quality.nearest_ks(real, images).max()
            measured["mean_cost"][t] = (distance**2).mean()
            measured["critic_gap"][t] = gap
        return measured


class Selection:
    """The selected generators, and the trials that are still in training.

    The ``rule`` "last" selects each trial's latest finite networks, "best" the networks with the smallest max_ks.
    """

    def __init__(self, rule: str, generators: Mapping[str, Array], measured: Mapping[str, Array]) -> None:
        count = len(measured["max_ks"])
        self._rule = rule
        self._least = np.full(count, np.inf)
        self._measured = {name: values.copy() for name, values in measured.items()}
        self.parameters = {name: values.copy() for name, values in generators.items()}
        self.running = np.ones(count, dtype=bool)
        self._step = np.zeros(count, dtype=np.int64)

    def consider(self, step: int, generators: Mapping[str, Array], measured: Mapping[str, Array]) -> None:
        """Update the selection after ``step`` steps, and stop trials whose networks are not finite."""
        self.running &= np.isfinite(np.stack([measured[name] for name in CURVES])).all(axis=0)
        taken = self.running & ((self._rule == "last") | (measured["max_ks"] < self._least))
        self._least[taken] = measured["max_ks"][taken]
        self._step[taken] = step
        for name, values in measured.items():
            self._measured[name][taken] = values[taken]
        for name, values in generators.items():
            self.parameters[name][taken] = values[taken]

    def state(self) -> dict[str, Array]:
        """Return the arrays that :meth:`consider` changes, without copying."""
        own = {"running": self.running, "least": self._least, "step": self._step}
        return {**own, **{f"of {name}": values for name, values in {**self._measured, **self.parameters}.items()}}

    def resume(self, state: Mapping[str, Array]) -> None:
        """Restore a ``state``."""
        for name, values in self.state().items():
            values[...] = state[name]

    def facts(self) -> dict[str, Array]:
        """Return for each trial (T,) the measures and the step of the selected networks, and whether training failed.

        ``diverged`` (0 or 1) means networks that are not finite, or max_ks above ``quality.WORST_HEALTHY_KS``.
        """
        diverged = ~self.running | ~(self._measured["max_ks"] <= quality.WORST_HEALTHY_KS)
        return {
            "diverged": diverged.astype(np.int64),
            "non_finite": (~self.running).astype(np.int64),
            "selected_step": self._step,
            **self._measured,
        }
