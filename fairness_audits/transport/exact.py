r"""Exact optimal transport of n points to m points: the plan P with the least mean cost, and the images under it.

.. math:: \min_{P \ge 0} \sum_{ij} P_{ij} c(x_i, y_j), \qquad P 1 = 1/n, \quad P^\top 1 = 1/m.

If n = m, the plan is an assignment: every point has one counterpart. Otherwise the map is randomised: the counterpart
of :math:`x_i` is :math:`y_j` with probability :math:`n P_{ij}`. The image is a random counterpart or their mean. Equal
points receive their counterparts in random order, because their own order has no meaning. The map is defined only on
the points it is fitted on. Source: Black et al. 2020, section 3.
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
    """Settings: ``cost`` is a name of :mod:`fairness_audits.transport.cost`, ``image`` expectation or sample."""

    cost: CostName
    image: Annotated[str, one_of(IMAGES)]


def fit(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """Compute the optimal plan of each trial, (n_t, d) to (m_t, d), and store the image of every source row.

    The parameters are ``rows`` and ``images`` (T, N, d), where N is the largest n_t, and the number of valid rows
    ``size`` (T,). The facts are the plan's ``mean_cost`` and ``gap``, an upper bound on its excess over the least mean
    cost. Raises InvalidInput for rows that are not finite.
    """
    return _map([best_plan(x, y, config.cost) for x, y in zip(source, target, strict=True)], source, config, rngs)


def fit_both(
    source: Sequence[Array],
    target: Sequence[Array],
    config: Config,
    rngs: Sequence[np.random.Generator],
    opposite: Sequence[np.random.Generator],
) -> TransportMap:
    """Fit both directions as :func:`fit` does; ``reverse`` holds the opposite one, which draws from ``opposite``.

    The costs are symmetric, so the opposite direction uses the same plans, transposed. Its facts have the prefix
    ``reverse_``.
    """
    plans = [best_plan(x, y, config.cost) for x, y in zip(source, target, strict=True)]
    forward = _map(plans, source, config, rngs)
    back = _map([plan.transposed for plan in plans], target, config, opposite)
    facts = {**forward.facts, **{f"reverse_{name}": values for name, values in back.facts.items()}}
    return replace(forward, reverse=back.parameters, facts=facts)


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """Return the images of rows that the map was fitted on, in any order. Equal rows have separate images.

    Raises InvalidInput for a row that the map was not fitted on.
    """
    moved = []
    for t, own in enumerate(rows):
        size = int(parameters["size"][t])
        moved.append(_looked_up(parameters["rows"][t, :size], parameters["images"][t, :size], np.asarray(own)))
    return moved


def _map(
    plans: Sequence[TransportPlan], source: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """Return the map of solved plans."""
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
    """Return the image of every source point; an atom's points and its outgoing mass are matched in random order."""
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
    """Return the indices that sort the entries by atom, in random order within an atom."""
    shuffled = rng.permutation(len(atom))
    return np.asarray(shuffled[np.argsort(atom[shuffled], kind="stable")])


def _looked_up(fitted: Array, moved: Array, queries: Array) -> Array:
    """Return the images of ``queries``: the k-th of equal rows gets the k-th image, and the images repeat in turn."""
    both = np.ascontiguousarray(np.concatenate([fitted, queries]) + 0.0)
    _, kind = np.unique(both, axis=0, return_inverse=True)
    of_fitted, of_asked = kind.reshape(-1)[: len(fitted)], kind.reshape(-1)[len(fitted) :]
    order = np.argsort(of_fitted, kind="stable")
    first = np.searchsorted(of_fitted[order], of_asked, side="left")
    count = np.searchsorted(of_fitted[order], of_asked, side="right") - first
    if unknown := int((count == 0).sum()):
        raise InvalidInput(
            f"an exact map is defined only on the rows it was fitted on: {unknown} of {len(queries)} rows are not "
            "among them",
            option="rows",
            row=int(np.flatnonzero(count == 0)[0]),
            remedy="Fit it on the rows to be mapped (transport.split), or use a map that generalises, such as wgan",
        )
    return moved[order[first + _occurrence(of_asked) % count]]


def _occurrence(kind: Array) -> Array:
    """Return how often each value occurred before its position."""
    order = np.argsort(kind, kind="stable")
    arranged = kind[order]
    occurrence = np.empty(len(kind), dtype=np.int64)
    occurrence[order] = np.arange(len(kind)) - np.searchsorted(arranged, arranged, side="left")
    return occurrence
