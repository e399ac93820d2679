"""Training of Wasserstein GANs on a CPU with the compiled code of ``wgan_kernels``."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from fairness_audits.transport.wgan_config import Config
from fairness_audits.transport.wgan_kernels import AREA, LANES, ROWS, Scratch, Trained, WganNetwork, WganPlan, train
from fairness_audits.values import Array

LAYERS = ("w1", "b1", "w2", "b2", "w3", "b3")
Shapes = tuple[tuple[int, ...], ...]


class CompiledTraining:
    """T generators and critics in training on ``plan.threads`` threads, one trial per thread at a time."""

    def __init__(
        self,
        source: Sequence[Array],
        target: Sequence[Array],
        generators: Mapping[str, Array],
        critics: Mapping[str, Array],
        plan: Config,
        precision: str = "float32",
    ) -> None:
        self._plan, self._kind = plan, np.dtype(precision)
        self._generator_shapes, self._critic_shapes = (
            tuple(start[name].shape[1:] for name in LAYERS) for start in (generators, critics)
        )
        inputs, hidden = self._generator_shapes[0]
        d, units = _multiple(inputs, ROWS), _multiple(hidden, LANES)
        self._source, self._target = (
            [_padded(rows, len(rows), d, self._kind) for rows in side] for side in (source, target)
        )
        first, middle, last = _panels(d, units), _panels(units, units), _panels(units, d)
        trials = range(len(source))
        self._generators = [
            _in_training(generators, t, (first, (units,), middle, (units,), last, (d,)), self._kind) for t in trials
        ]
        self._critics = [
            _in_training(critics, t, (first, (units,), middle, (units,), (1, 1, units), (1,)), self._kind)
            for t in trials
        ]
        self._sizes = (d * LANES, d * LANES, last[0] * AREA, LANES, *[units * LANES] * 5, AREA)

    def advance(self, rows: Array, running: Array) -> None:
        """Train the ``running`` trials on the minibatches ``rows`` (T, steps, 2 rounds + 1, n)."""
        plan = self._plan
        values = (plan.learning_rate, plan.decay, 1 - plan.decay, plan.epsilon, plan.clip, plan.cost_weight)
        constants = WganPlan(*map(self._kind.type, values))

        def work(t: int) -> None:
            memory = Scratch(*(np.zeros(size, self._kind) for size in self._sizes))
            trial = self._source[t], self._target[t], rows[t], self._generators[t], self._critics[t]
            train(*trial, constants, memory)

        with ThreadPoolExecutor(plan.threads) as pool:
            list(pool.map(work, np.flatnonzero(running)))

    def generators(self) -> dict[str, Array]:
        """Return the generators' parameters with the shapes of ``fairness_audits.transport.wgan``, float64."""
        return _unpacked(self._generators, self._generator_shapes)

    def critics(self) -> dict[str, Array]:
        """Return the critics' parameters with the shapes of ``fairness_audits.transport.wgan``, float64."""
        return _unpacked(self._critics, self._critic_shapes)

    def state(self) -> dict[str, Array]:
        """Return the networks and their moments, without copying."""
        sides = {"generator": self._generators, "critic": self._critics}
        of = {f"{side} {t}": one for side, trained in sides.items() for t, one in enumerate(trained)}
        return {
            f"{name} {part}": values
            for name, one in of.items()
            for part, values in (("values", one.network.flat), ("moments", one.moments))
        }

    def resume(self, state: Mapping[str, Array]) -> None:
        """Restore a ``state``."""
        for name, values in self.state().items():
            values[...] = state[name]


def _in_training(start: Mapping[str, Array], t: int, shapes: Shapes, kind: np.dtype[Any]) -> Trained:
    """Return the network of trial t before its first step."""
    network, gradient = _network(shapes, kind), _network(shapes, kind)
    for name in LAYERS:
        view, values = getattr(network, name), start[name][t]
        if view.ndim == 1:
            view[: len(values)] = values
        else:
            count, inputs, width = view.shape
            values = values.T if _is_output_row(name, view) else values
            wide = _padded(values, inputs, count * width, kind)
            view[:] = wide.reshape(inputs, count, width).transpose(1, 0, 2)
    return Trained(network, np.zeros_like(network.flat), gradient)


def _unpacked(trained: Sequence[Trained], shapes: Shapes) -> dict[str, Array]:
    """Return the parameters with the trial axis first and without padding."""
    result: dict[str, list[Array]] = {name: [] for name in LAYERS}
    for one in trained:
        for name, shape in zip(LAYERS, shapes, strict=True):
            view = getattr(one.network, name)
            if view.ndim == 1:
                values = view[: shape[0]]
            else:
                wide = view.transpose(1, 0, 2).reshape(view.shape[1], -1)
                values = (wide.T if _is_output_row(name, view) else wide)[: shape[0], : shape[1]]
            result[name].append(values.astype(float))
    return {name: np.stack(values) for name, values in result.items()}


def _network(shapes: Shapes, kind: np.dtype[Any]) -> WganNetwork:
    """Return a network of zeros whose layers are views of one flat array."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    flat = np.zeros(sum(sizes), kind)
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return WganNetwork(flat, *(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))


def _panels(inputs: int, outputs: int) -> tuple[int, ...]:
    return -(-outputs // LANES), inputs, LANES


def _is_output_row(name: str, view: Array) -> bool:
    """Return True for a critic's output weights, which are stored as one row."""
    return name == "w3" and view.shape[1] == 1


def _multiple(number: int, of: int) -> int:
    return -(-number // of) * of


def _padded(values: Array, rows: int, columns: int, kind: np.dtype[Any]) -> Array:
    wide = np.zeros((rows, columns), kind)
    wide[: values.shape[0], : values.shape[1]] = values
    return wide
