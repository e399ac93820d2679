"""Which transport map finds the counterparts: named or chosen by the sample's size, with its settings, fitted."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from site import getuserbase
from types import ModuleType
from typing import Any

import numpy as np

from pipeline.cli.audit.fliptest import Settings
from pipeline.messages import nearest
from pipeline.transport.cost import cost_matrix
from pipeline.types import Array, TransportMap
from pipeline.workflow import plugins

_ROOT, _SHARE = Path(__file__).resolve().parents[4], Path("share", "fairness-audits", "transport")
_PLACES = (_ROOT / "conf" / "transport", sys.prefix / _SHARE, _ROOT / _SHARE, getuserbase() / _SHARE)
CONF = next((place for place in _PLACES if place.is_dir()), _PLACES[0])
"""One file of settings for each map: in the project's folder, or where pip puts it (also by --target and --user)."""
PREFERRED: Mapping[str, Mapping[str, Any]] = {"exact": {"image": "sample"}, "wgan": {"selection": "best"}}
"""Where an audit differs from the files: counterparts are real people where they can be, and the best map is kept."""

SMOOTH, EXACT = "entropic", "exact"
AUTO = (SMOOTH, EXACT, "stochastic", "wgan")
"""The maps that are tried unless one is named, from the cheapest on."""
NETWORKS = ("stochastic",)
"""Maps that need torch."""
MOST_PAIRS = 400_000_000
"""An exact map of more pairs is refused: so many take a minute, and a fifth of a gigabyte."""
CHEAP = (SMOOTH, EXACT)
"""Maps that are fitted to the people of a deal in half a second, so that there is a noise floor by default."""
NULL_DRAWS = 39
"""The fewest deals with which the number of flips or the net size can be beyond noise at level 0.05."""


@dataclass(frozen=True)
class Kind:
    """A kind of map: its ``module`` in pipeline.transport and the ``config`` that it is fitted with."""

    name: str
    module: ModuleType
    config: Any
    settings: Mapping[str, Any]

    def fit(
        self, pairs: Sequence[tuple[Array, Array]], rngs: Sequence[np.random.Generator]
    ) -> tuple[list[Array], TransportMap]:
        """A map for each pair of source (n, k) and target (m, k), fitted in one job: images (n, k), and the maps.

        Raises ValueError where a map cannot be fitted to these rows.
        """
        sources, targets = (list(side) for side in zip(*pairs, strict=True))
        try:
            maps: TransportMap = self.module.fit(sources, targets, self.config, rngs)
        except ValueError as error:
            raise ValueError(f"--map {self.name}: {error}") from error
        return [np.asarray(image) for image in self.module.images(maps.parameters, sources)], maps

    def extended(self, maps: TransportMap, source: Array, image: Array, rows: Array) -> Array:
        """Images of further ``rows`` (p, k) under the one map of ``maps``, by which ``source`` (n, k) has ``image``.

        A map that is defined on the fitted rows alone gives a row the image of the nearest of them, as the map of
        Manole, Balakrishnan, Niles-Weed and Wasserman 2024, "Plugin estimation of smooth optimal transport maps", does.
        """
        if getattr(self.module, "FITTED_ROWS_ONLY", False):
            return np.asarray(image[cost_matrix(rows, source, self.config.cost).argmin(axis=1)])
        return np.asarray(self.module.images(maps.parameters, [rows])[0])


def known() -> list[str]:
    """The maps between two groups of rows that there are settings for."""
    found = []
    for path in sorted(CONF.glob("*.yaml")):
        module = plugins.load("transport", _read(path).get("kind", path.stem))
        if hasattr(module, "fit"):
            found.append(path.stem)
    return found


def map_named(name: str, given: Sequence[str]) -> Kind:
    """The map of this name with its own settings, and those ``given`` as ``key=value`` laid over them.

    Raises ValueError for a map or a setting that does not exist, and for a value that the map does not take.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    names = known()
    if name not in names:
        raise ValueError(f"--map {name}: there is no such map{nearest(name, names)}. There are: {', '.join(names)}")
    values = _read(CONF / f"{name}.yaml")
    module = plugins.load("transport", values.get("kind", name))
    own = [field.name for field in fields(module.Config)]
    settings = {key: value for key, value in values.items() if key in own} | dict(PREFERRED.get(name, {}))
    for text in given:
        key, equals, _ = text.partition("=")
        if not equals or key not in own:
            raise ValueError(
                f"--map-setting {text}: expected KEY=VALUE with a setting of {name}{nearest(key, own)}: "
                f"{', '.join(own)}"
            )
        try:
            settings |= OmegaConf.to_container(OmegaConf.from_dotlist([text]))  # type: ignore[arg-type]
        except (OmegaConfBaseException, YAMLError) as error:
            raise ValueError(f"--map-setting {text}: the value cannot be read: write KEY=VALUE") from error
    words = f"--map-setting {' '.join(given)}" if given else f"conf/transport/{name}.yaml"
    try:
        config = plugins.configure(module, {**settings, "name": name})
    except ValueError as error:
        raise ValueError(f"{words}: {error}") from error
    return Kind(name, module, config, settings)


def candidates(asked: Settings, sizes: tuple[int, int]) -> list[Kind]:
    """The map of ``--map``; or those of AUTO that there is room and a library for.

    Raises ValueError for a map or a setting that does not exist, and for an exact map of so many people that its fit
    takes minutes.
    """
    name, pairs = asked.map, sizes[0] * sizes[1]
    given = asked.map_setting
    settings = [f"{key}={value}" for key, value in given.items()] if isinstance(given, Mapping) else list(given)
    if name == "auto":
        if settings:
            raise ValueError(f"--map-setting {settings[0]} belongs to a map: name it too, such as --map {SMOOTH}")
        left_out = (*((EXACT,) if pairs > MOST_PAIRS else ()), *(() if find_spec("torch") else NETWORKS))
        return [map_named(each, []) for each in AUTO if each not in left_out]
    if name == EXACT and pairs > MOST_PAIRS:
        raise ValueError(
            f"--map exact: {sizes[0]:,} by {sizes[1]:,} people are more than its {MOST_PAIRS:,} pairs, which take a "
            f"minute to fit: draw fewer, --limit 20000, or take a smooth map, --map {SMOOTH}"
        )
    return [map_named(name, settings)]


def null_draws(asked: Settings, kind: Kind) -> int:
    """The deals that ``--null-draws`` asks for; or NULL_DRAWS where the map is fitted so fast that they can be had."""
    if asked.null_draws is not None:
        return int(asked.null_draws)
    return NULL_DRAWS if kind.name in CHEAP else 0


def _read(path: Path) -> dict[str, Any]:
    from omegaconf import OmegaConf

    return dict(OmegaConf.to_container(OmegaConf.load(path)))  # type: ignore[arg-type, call-overload]
