r"""A transport map learned as the generator of a Wasserstein GAN that pays for distance (Black et al. 2020, eq. 1).

The generator G maps rows x of the source group, the critic D tells its images from rows x' of the target group:

.. math::
   D \text{ descends on } -\frac1n \sum D(x'), \text{ then on } \frac1n \sum D(G(x)); \qquad
   G \text{ descends on } -\frac1n \sum D(G(x)) + \frac\lambda n \sum \Big(\sum_j |x_j - G(x)_j|\Big)^2 .

As coded by the authors: both networks have two hidden layers of H rectified units,

.. math:: f(x) = W_3^\top \max(0, W_2^\top \max(0, W_1^\top x + b_1) + b_2) + b_3,

with ``w1`` (T, d, H), ``b1`` (T, H), ``w2`` (T, H, H), ``b2`` (T, H), ``w3`` (T, H, k), ``b3`` (T, k), and k = d for a
generator, k = 1 for a critic; Glorot-uniform weights, zero biases, and RMSprop (a moving mean v of squared gradients
from 0; a step is rate gradient / (sqrt(v) + epsilon)). One step of G follows ``rounds`` rounds of D; a round is one
step on a minibatch of target rows, a step on the images of a minibatch of source rows, in which the first step's
weights count already, and then every weight and bias of D is kept within +-``clip``. G's own step draws one more
minibatch. Minibatches have n rows, drawn with replacement.

The paper writes the critic's sign the other way round in eq. 1; that is a matter of what D is called.

All T trials train in one job; nothing that trial t draws or computes depends on the others. A trial whose networks are
no longer finite stops: the generator of its last finite checkpoint stands, and the facts say so.
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
"""Steps for which minibatches are drawn together."""
ROWS = 10_000
"""Of each group, monitored."""
BLOCK = 8192
"""Rows that are evaluated together: bounds the memory."""
CURVES = ("max_ks", "mean_cost", "critic_gap")


def fit(
    source: Sequence[Array],
    target: Sequence[Array],
    config: Config,
    rngs: Sequence[np.random.Generator],
    resume: Checkpoint | None = None,
) -> TransportMap:
    """Maps from ``source[t]`` (n_t, d) to the distribution of ``target[t]`` (m_t, d), one for each generator.

    ``parameters`` are the kept networks G. ``history`` has ``step`` (L,), 0 first, and the curves ``max_ks``,
    ``mean_cost`` and ``critic_gap`` (T, L) of :class:`Monitor`, NaN once a trial has stopped. ``facts`` (T,) are the
    same three of the kept networks, their step ``selected_step``, ``non_finite`` (0 or 1), and ``diverged`` (0 or 1):
    not finite, or max_ks above ``quality.WORST_HEALTHY_KS``. ``resume`` makes a killed training go on where it was
    measured last, to the same bytes.
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
            # Minibatches of what was done before are drawn too: those after them come from the same stream.
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
    """G_t(x) for x in ``rows[t]`` (n_t, d): (n_t, d) each. Not finite where a row is not."""
    return [
        outputs({name: values[t] for name, values in parameters.items()}, np.asarray(x, dtype=float))
        for t, x in enumerate(rows)
    ]


def minibatches(
    sizes: Sequence[tuple[int, int]], steps: int, rounds: int, n: int, rngs: Sequence[np.random.Generator]
) -> Array:
    """Row numbers of every minibatch of ``steps`` generator steps, with replacement: (T, steps, 2 rounds + 1, n).

    ``sizes[t]`` are the numbers of source and target rows of trial t. A step's minibatches are those of target and
    source in turn, one of each for a round of the critic, and at last the generator's, of source rows.
    """
    drawn = []
    for (sources, targets), rng in zip(sizes, rngs, strict=True):
        upper = np.array([targets, sources] * rounds + [sources])
        drawn.append(rng.integers(0, upper[:, None], (steps, len(upper), n)))
    return np.stack(drawn)


def outputs(network: Mapping[str, Array], rows: Array) -> Array:
    """f(x) of one network, without the trial axis, on rows (n, d): (n, k), in the precision of ``rows``."""
    w1, b1, w2, b2, w3, b3 = (
        network[name].astype(rows.dtype, copy=False) for name in ("w1", "b1", "w2", "b2", "w3", "b3")
    )
    values = np.empty((len(rows), w3.shape[-1]), rows.dtype)
    # A network that has diverged has values that are not finite; who asks for them looks.
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
    r"""Measures of T trials in training: the first ROWS rows of each group.

    It is the Kolmogorov-Smirnov statistic of each feature of the images against the target's,

    .. math:: \sup_v |\hat F_{G(x)_j}(v) - \hat F_{x'_j}(v)|,

    the mean cost :math:`(\sum_j |x_j - G(x)_j|)^2`, and the critic's gap, mean D(x') - mean D(G(x)). For the statistic
    an image counts as the nearest value that the target has, see
    :func:`fairness_audits.transport.quality.nearest_values`.
    """

    def __init__(self, source: Sequence[Array], target: Sequence[Array]) -> None:
        self._source, self._target = ([rows[:ROWS].astype(np.float32) for rows in side] for side in (source, target))

    def measure(self, generators: Mapping[str, Array], critics: Mapping[str, Array]) -> dict[str, Array]:
        """Each of CURVES for every trial: arrays (T,); NaN where the networks are not finite."""
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
    """The generators that are kept, and which trials are still in training.

    ``rule`` "last" keeps every trial's latest finite networks, "best" those with the smallest of its statistics.
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
        """Look at the networks after ``step`` steps; a trial where they are not finite is in training no longer."""
        self.running &= np.isfinite(np.stack([measured[name] for name in CURVES])).all(axis=0)
        taken = self.running & ((self._rule == "last") | (measured["max_ks"] < self._least))
        self._least[taken] = measured["max_ks"][taken]
        self._step[taken] = step
        for name, values in measured.items():
            self._measured[name][taken] = values[taken]
        for name, values in generators.items():
            self.parameters[name][taken] = values[taken]

    def state(self) -> dict[str, Array]:
        """What :meth:`consider` changes, as it stands here."""
        own = {"running": self.running, "least": self._least, "step": self._step}
        return {**own, **{f"of {name}": values for name, values in {**self._measured, **self.parameters}.items()}}

    def resume(self, state: Mapping[str, Array]) -> None:
        """Go on from a ``state``."""
        for name, values in self.state().items():
            values[...] = state[name]

    def facts(self) -> dict[str, Array]:
        """Of each trial (T,): what was measured of the kept networks, their step, and whether training went wrong.

        ``diverged`` (0 or 1): networks that are not finite, or a statistic above ``quality.WORST_HEALTHY_KS``.
        """
        diverged = ~self.running | ~(self._measured["max_ks"] <= quality.WORST_HEALTHY_KS)
        return {
            "diverged": diverged.astype(np.int64),
            "non_finite": (~self.running).astype(np.int64),
            "selected_step": self._step,
            **self._measured,
        }
