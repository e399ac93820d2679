r"""Exact optimal transport of n points to m: the plan P of least mean cost, and the images that it gives.

.. math:: \min_{P \ge 0} \sum_{ij} P_{ij} c(x_i, y_j), \qquad P 1 = 1/n, \quad P^\top 1 = 1/m.

With n = m the best plan found is an assignment: every point has a counterpart of its own. Else the map is randomised:
the counterpart of :math:`x_i` is :math:`y_j` with probability :math:`n P_{ij}`, and its image is drawn from these, or
is their mean. Which of several equal points gets which counterpart is drawn too, as their order has no meaning.
The map is defined on the points that it was fitted on, and on no others. Source: Black et al. 2020, section 3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.models import stacked
from fairness_audits.transport.cost import CostName
from fairness_audits.transport.plan import TransportPlan, best_plan, overlaps
from fairness_audits.validation import Checked, one_of
from fairness_audits.values import Array, TransportMap

FITTED_ROWS_ONLY = True
IMAGES = ("expectation", "sample")


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """``cost``: a name of :mod:`fairness_audits.transport.cost`. ``image``: expectation or sample."""

    cost: CostName
    image: Annotated[str, one_of(IMAGES)]


def fit(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """The best plan of each trial, (n_t, d) to (m_t, d), kept as the image of every source row.

    Parameters ``rows`` and ``images`` (T, N, d), with N the largest n_t, of which ``size`` (T,) count. Facts:
    ``mean_cost`` of the plan, and ``gap``, by how much a plan could be cheaper at most. Raises InvalidInput for rows
    that are not finite.
    """
    return _map([best_plan(x, y, config.cost) for x, y in zip(source, target, strict=True)], source, config, rngs)


def fit_both(
    source: Sequence[Array],
    target: Sequence[Array],
    config: Config,
    rngs: Sequence[np.random.Generator],
    opposite: Sequence[np.random.Generator],
) -> TransportMap:
    """As :func:`fit`, with the opposite direction in ``reverse``, which draws from ``opposite``.

    Costs are symmetric, so it is the same plans read along their columns. The opposite facts have the prefix
    ``reverse_``.
    """
    plans = [best_plan(x, y, config.cost) for x, y in zip(source, target, strict=True)]
    forward = _map(plans, source, config, rngs)
    back = _map([plan.transposed for plan in plans], target, config, opposite)
    facts = {**forward.facts, **{f"reverse_{name}": values for name, values in back.facts.items()}}
    return replace(forward, reverse=back.parameters, facts=facts)


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """The counterparts of rows that the map was fitted on, in any order; of equal rows each has its own.

    Raises InvalidInput for a row that it was not fitted on.
    """
    moved = []
    for t, own in enumerate(rows):
        size = int(parameters["size"][t])
        moved.append(_looked_up(parameters["rows"][t, :size], parameters["images"][t, :size], np.asarray(own)))
    return moved


def _map(
    plans: Sequence[TransportPlan], source: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """What :func:`fit` returns, of plans that are solved."""
    return TransportMap(
        kind="exact",
        parameters={
            "rows": stacked(source),
            "images": stacked([_images(plan, config.image, rng) for plan, rng in zip(plans, rngs, strict=True)]),
            "size": np.array([len(rows) for rows in source]),
        },
        facts={"mean_cost": np.array([plan.cost for plan in plans]), "gap": np.array([plan.gap for plan in plans])},
    )


def _images(found: TransportPlan, image: str, rng: np.random.Generator) -> Array:
    """The image of every source point, (n, d).

    The points of an atom stand in random order beside what the atom sends, in random order too; each gets its part.
    """
    n = len(found.source_atom)
    points, flows = (_grouped(atom, rng) for atom in (found.source_atom, found.row))
    place, flow, mass = overlaps(np.full(n, found.unit), found.mass[flows])
    counterparts = found.target[found.column[flows[flow]]]
    images = np.zeros((n, found.target.shape[1]))
    if image == "sample":
        drawn = found.unit * (np.arange(n) + rng.random(n))
        images[points] = counterparts[np.searchsorted(np.cumsum(mass), drawn, side="right")]
    else:
        np.add.at(images, points[place], counterparts * (mass / found.unit)[:, None])
    return images


def _grouped(atom: Array, rng: np.random.Generator) -> Array:
    """Numbers of the entries in the order of their atoms, those of one atom in random order."""
    shuffled = rng.permutation(len(atom))
    return np.asarray(shuffled[np.argsort(atom[shuffled], kind="stable")])


def _looked_up(fitted: Array, moved: Array, queries: Array) -> Array:
    """The images of ``queries`` among the fitted rows: the k-th of equal rows has the k-th image, and so on in turn."""
    both = np.ascontiguousarray(np.concatenate([fitted, queries]) + 0.0)
    _, kind = np.unique(both, axis=0, return_inverse=True)
    of_fitted, of_asked = kind.reshape(-1)[: len(fitted)], kind.reshape(-1)[len(fitted) :]
    order = np.argsort(of_fitted, kind="stable")
    first = np.searchsorted(of_fitted[order], of_asked, side="left")
    count = np.searchsorted(of_fitted[order], of_asked, side="right") - first
    if unknown := int((count == 0).sum()):
        raise InvalidInput(
            f"an exact map is defined only on the rows it was fitted on: {unknown} of {len(queries)} rows are others",
            option="rows",
            row=int(np.flatnonzero(count == 0)[0]),
            remedy="Fit it on the rows to be mapped (transport.split), or use a map that learns, such as wgan",
        )
    return moved[order[first + _occurrence(of_asked) % count]]


def _occurrence(kind: Array) -> Array:
    """How often the value of each place stood before it."""
    order = np.argsort(kind, kind="stable")
    arranged = kind[order]
    occurrence = np.empty(len(kind), dtype=np.int64)
    occurrence[order] = np.arange(len(kind)) - np.searchsorted(arranged, arranged, side="left")
    return occurrence
