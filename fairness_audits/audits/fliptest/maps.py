"""The transport map that finds counterparts: chosen by name or by sample size, with its settings, and fitted."""

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from fairness_audits.arguments import read
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest
from fairness_audits.transport.cost import cost_matrix
from fairness_audits.validation import hints_of, made
from fairness_audits.values import Array, TransportMap

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "entropic": {
        "cost": "squared_l1", "tie_break": 1.0, "regularization": 0.2, "centres": 1000, "quantiles": 200,
    },
    "exact": {"cost": "squared_l1", "image": "sample"},
    "stochastic": {
        "cost": "squared_l1", "regularizer": "entropic", "regularization": 0.05, "hidden_units": 100,
        "batch_size": 200, "steps": 1000, "dual_rate": 1e-3, "map_rate": 1e-3,
    },
    "wgan": {
        "hidden_units": 128, "learning_rate": 5e-5, "decay": 0.9, "epsilon": 1e-7, "clip": 0.01, "rounds": 5,
        "batch_size": 64, "steps": 20001, "cost_weight": 1e-4, "selection": "best", "check_every": 1000, "threads": 1,
    },
}  # fmt: skip
"""The maps and their published settings, except that the WGAN keeps its best checked map."""

SMOOTH, EXACT = "entropic", "exact"
AUTO = (SMOOTH, EXACT, "stochastic", "wgan")
"""The maps tried by default, from the cheapest to the most expensive."""
NETWORKS = ("stochastic",)
"""Maps that require torch."""
MOST_PAIRS = 400_000_000
"""Largest number of pairs for an exact map. At this size it takes a minute and at most half a gigabyte."""
CHEAP = (SMOOTH, EXACT)
"""Maps that can be fitted to a split in half a second. They have a noise floor by default."""
MOST_DRAWS = 200
"""Largest default number of splits."""
REFITS = 10
"""Default number of refits: the smallest number of maps of which 0.9 is a share."""
REFITTED = {SMOOTH: 5000, EXACT: 1500}
"""Largest number of people per group on which a cheap map is refitted by default."""


@dataclass(frozen=True)
class Kind:
    """A kind of map: its ``module`` in fairness_audits.transport and the ``config`` that it is fitted with."""

    name: str
    module: ModuleType
    config: Any
    settings: Mapping[str, Any]

    def fit(
        self, pairs: Sequence[tuple[Array, Array]], rngs: Sequence[np.random.Generator]
    ) -> tuple[list[Array], TransportMap]:
        """Fit a map for each pair of source (n, k) and target (m, k) in one job; return images (n, k) and the maps.

        NETWORKS are fitted one by one, because rounding in a batch depends on the other maps. Raises InvalidInput if a
        map cannot be fitted to these rows.
        """
        if self.name in NETWORKS and len(pairs) > 1:
            every = [self.fit([pair], [rng]) for pair, rng in zip(pairs, rngs, strict=True)]
            return [image for (image,), _ in every], _together([maps for _, maps in every])
        sources, targets = (list(side) for side in zip(*pairs, strict=True))
        try:
            # Some maps already have the images of the rows they were fitted on.
            if found := getattr(self.module, "fit_with_images", None):
                maps, images = found(sources, targets, self.config, rngs)
                return images, maps
            maps = self.module.fit(sources, targets, self.config, rngs)
        except ValueError as error:
            raise InvalidInput.within(f"map={self.name}", error, option="map") from error
        return [np.asarray(image) for image in self.module.images(maps.parameters, sources)], maps

    def drawn_again(self, source: Array, target: Array, drawn: tuple[Array, Array], rng: np.random.Generator) -> Array:
        """Fit a map to drawn rows of both groups and return the images of all ``source`` rows (n, k)."""
        here, there = drawn
        if found := getattr(self.module, "images_of_drawn", None):
            try:
                return np.asarray(found(source, target, drawn, self.config, rng))
            except ValueError as error:
                raise InvalidInput.within(f"map={self.name}", error, option="map") from error
        (image,), maps = self.fit([(source[here], target[there])], [rng])
        return self.extended(maps, source[here], image, source, rng)

    def extended(self, maps: TransportMap, source: Array, image: Array, rows: Array, rng: np.random.Generator) -> Array:
        """Return the images of further ``rows`` (p, k) under the only map in ``maps``.

        The map sends ``source`` (n, k) to ``image``. If a map is defined only on the fitted rows, a row gets the image
        of its nearest fitted row, drawn by ``rng`` if several are equally near, as in Manole, Balakrishnan, Niles-Weed
        and Wasserman 2024, "Plugin estimation of smooth optimal transport maps".
        """
        if getattr(self.module, "FITTED_ROWS_ONLY", False):
            cost = cost_matrix(rows, source, self.config.cost)
            nearest = cost <= cost.min(axis=1, keepdims=True)
            return np.asarray(image[np.where(nearest, rng.random(cost.shape), -1.0).argmax(axis=1)])
        return np.asarray(self.module.images(maps.parameters, [rows])[0])


def _together(maps: Sequence[TransportMap]) -> TransportMap:
    """Return the maps of several fits as those of one."""

    def joined(part: str) -> dict[str, Array]:
        return {
            name: values if name == "step" else np.concatenate([getattr(one, part)[name] for one in maps])
            for name, values in getattr(maps[0], part).items()
        }

    return replace(maps[0], parameters=joined("parameters"), history=joined("history"), facts=joined("facts"))


def map_named(name: str, changes: Sequence[str]) -> Kind:
    """Return the map of this name; ``changes``, as ``key=value``, override its settings.

    Raises InvalidInput for an unknown map or setting, and for an invalid value.
    """
    if name not in SETTINGS:
        problem = f"map={name}: there is no such map{nearest(name, SETTINGS)}"
        raise InvalidInput(problem, option="map", remedy=f"There are: {', '.join(SETTINGS)}")
    module = importlib.import_module(f"fairness_audits.transport.{name}")
    known, settings = hints_of(module.Config), dict(SETTINGS[name])
    hints = {field.name: known[field.name] for field in fields(module.Config)}
    for text in changes:
        key, equals, value = text.partition("=")
        if not equals or key not in hints:
            raise InvalidInput(
                f"map_setting={text!r}: expected KEY=VALUE, where KEY is a setting of "
                f"{name}{'' if key in hints else nearest(key, hints)}",
                option="map_setting",
                remedy=f"It has: {', '.join(hints)}",
            )
        try:
            settings[key] = read(value, hints[key])
        except ValueError as error:
            raise InvalidInput.within(f"map_setting={text!r}", error, option="map_setting") from error
    return Kind(name, module, made(module.Config, settings, f"map={name}"), settings)


def candidates(name: str, changes: Sequence[str] | Mapping[str, Any], sizes: tuple[int, int]) -> list[Kind]:
    """Return the named map, or for ``auto`` the maps of AUTO that fit the sample size and the installed libraries.

    Raises InvalidInput if a map or a setting does not exist, or if an exact map of this many people takes minutes.
    """
    pairs = sizes[0] * sizes[1]
    settings = [f"{key}={value}" for key, value in changes.items()] if isinstance(changes, Mapping) else list(changes)
    if name == "auto":
        if settings:
            problem = f"map_setting={settings[0]!r} is a setting of a map, but no map is named"
            raise InvalidInput(problem, option="map_setting", remedy=f"Also name the map, such as map={SMOOTH}")
        left_out = (*((EXACT,) if pairs > MOST_PAIRS else ()), *(() if find_spec("torch") else NETWORKS))
        return [map_named(each, []) for each in AUTO if each not in left_out]
    if name == EXACT and pairs > MOST_PAIRS:
        raise InvalidInput(
            f"map=exact: {sizes[0]:,} by {sizes[1]:,} people exceed the limit of {MOST_PAIRS:,} pairs, at "
            "which a map takes a minute to fit",
            option="map",
            remedy=f"Use fewer people, limit=20000, or a smooth map, map={SMOOTH}",
        )
    return [map_named(name, settings)]


def repeats(kind: Kind, null_draws: int | None, refits: int | None, alpha: float) -> tuple[int, int]:
    """Return the numbers of splits and of refits: as given, or enough for the level if the map is fast to fit."""
    draws, again = (min(fewest_draws(alpha), MOST_DRAWS), REFITS) if kind.name in CHEAP else (0, 0)
    return draws if null_draws is None else null_draws, again if refits is None else refits


def fewest_draws(alpha: float) -> int:
    """Return the fewest splits B for which an adjusted p of two tests can be below alpha: 2 / (B + 1) < alpha.

    >>> fewest_draws(0.05), fewest_draws(0.01)
    (40, 200)
    """
    return math.floor(2 / alpha + 1e-9)
