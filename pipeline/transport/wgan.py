r"""A transport map learned as the generator of a Wasserstein GAN that pays for distance (Black et al. 2020, eq. 1).

The generator G maps rows x of the source group, the critic D tells its images from rows x' of the target group:

.. math::
   D \text{ descends on } -\frac1n \sum D(x'), \text{ then on } \frac1n \sum D(G(x)); \qquad
   G \text{ descends on } -\frac1n \sum D(G(x)) + \frac\lambda n \sum \Big(\sum_j |x_j - G(x)_j|\Big)^2 .

As coded by the authors: both networks have two hidden layers of H rectified units, Glorot-uniform weights, zero biases,
and RMSprop (a moving mean v of squared gradients from 0; a step is rate gradient / (sqrt(v) + epsilon)). One step of G
follows ``rounds`` rounds of D; a round is one step on a minibatch of target rows, a step on the images of a minibatch
of source rows, in which the first step's weights count already, and then every weight and bias of D is kept within
+-``clip``. G's own step draws one more minibatch. Minibatches have n rows, drawn with replacement.

The paper writes the critic's sign the other way round in eq. 1; that is a matter of what D is called.

All T trials train in one job; nothing that trial t draws or computes depends on the others. A trial whose networks are
no longer finite stops: the generator of its last finite checkpoint stands, and the facts say so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipeline.models.device import gpu_is_visible
from pipeline.models.initial_weights import glorot_networks
from pipeline.transport.wgan_monitor import CURVES, Selection, Watch
from pipeline.transport.wgan_networks import minibatches, outputs
from pipeline.transport.wgan_settings import WganSettings
from pipeline.types import Array, TransportMap

LOG = logging.getLogger(__name__)
CHUNK = 100
"""Steps for which minibatches are drawn together."""


@dataclass(frozen=True)
class Config(WganSettings):
    """See :class:`pipeline.transport.wgan_settings.WganSettings`."""


class Training(Protocol):
    """T generators and critics in training."""

    def advance(self, rows: Array, running: Array) -> None:
        """Train on the minibatches ``rows`` (T, steps, 2 rounds + 1, n); those not ``running`` (T,) may be left out."""

    def generators(self) -> dict[str, Array]:
        """The generators' parameters as in ``wgan_networks``, float64."""

    def critics(self) -> dict[str, Array]:
        """The critics' parameters as in ``wgan_networks``, float64."""


def fit(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """Maps from ``source[t]`` (n_t, d) to the distribution of ``target[t]`` (m_t, d), one for each generator.

    ``parameters`` are the kept networks G. ``history`` has ``step`` (L,), 0 first, and the curves ``max_ks``,
    ``mean_cost``, ``mean_l1`` and ``critic_gap`` (T, L) of ``wgan_monitor``, NaN once a trial has stopped. ``facts``
    (T,) are the same four of the kept networks, their step ``selected_step``, the last finite checkpoint
    ``trained_steps``, ``non_finite`` (0 or 1), and ``diverged`` (0 or 1): not finite, or max_ks above the bound.

    Raises ValueError for rows that are not finite or do not fit together.
    """
    d = _features(source, target, len(rngs))
    hidden = config.hidden_units
    generators = glorot_networks(rngs, (d, hidden, hidden, d))
    critics = glorot_networks(rngs, (d, hidden, hidden, 1))
    training = started(source, target, generators, critics, config)
    watch, sizes = Watch(source, target), [(len(x), len(y)) for x, y in zip(source, target, strict=True)]
    curve = [watch.measure(generators, critics)]
    selection, steps = Selection(config.selection, generators, curve[0]), [0]
    for checkpoint in _checkpoints(config):
        for count in _chunks(checkpoint - steps[-1]):
            rows = minibatches(sizes, count, config.rounds, config.batch_size, rngs)
            training.advance(rows, selection.running)
        generators = training.generators()
        measured = watch.measure(generators, training.critics())
        selection.consider(checkpoint, generators, measured)
        curve.append({name: np.where(selection.running, values, np.nan) for name, values in measured.items()})
        steps.append(checkpoint)
        _log(checkpoint, config.steps, curve[-1], selection.running)
    return TransportMap(
        kind="wgan",
        parameters=selection.parameters,
        history={
            "step": np.array(steps),
            **{name: np.stack([point[name] for point in curve], axis=1) for name in CURVES},
        },
        facts=selection.facts(config.diverged_above),
    )


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """G_t(x) for x in ``rows[t]`` (n_t, d): (n_t, d) each. Not finite where a row is not.

    Raises ValueError for a number of trials or of columns that the maps do not have.
    """
    trials, d = parameters["w1"].shape[:2]
    if len(rows) != trials:
        raise ValueError(f"expected the rows of {trials} trials, one for each map, found {len(rows)}")
    for t, x in enumerate(rows):
        if x.ndim != 2 or x.shape[1] != d:
            raise ValueError(
                f"expected rows (n, {d}) of the features that the map was fitted on, found {x.shape} in {t}"
            )
    return [
        outputs({name: values[t] for name, values in parameters.items()}, np.asarray(x, dtype=float))
        for t, x in enumerate(rows)
    ]


def started(
    source: Sequence[Array],
    target: Sequence[Array],
    generators: Mapping[str, Array],
    critics: Mapping[str, Array],
    config: WganSettings,
) -> Training:
    """The engine that ``config`` asks for, before its first step."""
    if config.engine == "torch" or (config.engine == "auto" and gpu_is_visible()):
        from pipeline.transport.wgan_torch import TorchTraining

        return TorchTraining(source, target, generators, critics, config)
    from pipeline.transport.wgan_compiled import CompiledTraining

    return CompiledTraining(source, target, generators, critics, config)


def _features(source: Sequence[Array], target: Sequence[Array], trials: int) -> int:
    """The number d of features; ValueError unless both groups have finite rows with d columns in every trial."""
    if not len(source) == len(target) == trials > 0:
        raise ValueError(
            f"expected the rows of as many trials as generators ({trials}), found {len(source)} of the source group "
            f"and {len(target)} of the target group"
        )
    shapes = [rows.shape for side in (source, target) for rows in side]
    if any(len(shape) != 2 or 0 in shape or shape[1] != shapes[0][-1] for shape in shapes):
        raise ValueError(f"expected non-empty rows (n, d) with the same d in every trial, found shapes {shapes}")
    for name, side in (("source", source), ("target", target)):
        for t, rows in enumerate(side):
            if not np.isfinite(rows).all():
                raise ValueError(f"the {name} group has values that are not finite in trial {t}: leave those rows out")
    return int(shapes[0][1])


def _checkpoints(config: Config) -> list[int]:
    return [*range(config.check_every, config.steps, config.check_every), config.steps]


def _chunks(steps: int) -> Iterator[int]:
    for start in range(0, steps, CHUNK):
        yield min(CHUNK, steps - start)


def _log(step: int, steps: int, measured: Mapping[str, Array], running: Array) -> None:
    if running.any():
        shown = {name: np.nanmean(values) for name, values in measured.items()}
        LOG.info(
            "generator step %s of %s, largest KS %.3f, mean L1 %.3f, critic gap %.2g%s",
            *(f"{step:,}", f"{steps:,}", shown["max_ks"], shown["mean_l1"], shown["critic_gap"]),
            "" if running.all() else f", {np.sum(~running)} of {len(running)} trials stopped: not finite",
        )
    else:
        LOG.info("generator step %s of %s: no trial is finite any more", f"{step:,}", f"{steps:,}")
