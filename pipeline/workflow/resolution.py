"""The values of a point: what files, study, scale and user set, laid over each other.

The later of these wins:

1. ``conf/{dataset,method,transport,audit}/<name>.yaml``;
2. the ``per_dataset`` entry of that file for the point's dataset;
3. the point's own settings, from the study's ``grid``;
4. the scale's ``settings``, each a ``where`` (study, block, dataset, method, transport, audit) and a ``set``, but for
   what stands in the name of a file, and for all that a sweep declares: there the grid's word is the last;
5. what the user sets for one run: ``--config set="method.sensr.learning_rate=2e-5"``, or, for all points of a dataset,
   a method or a map, how often they are repeated: ``set="dataset.gaussian.repetitions=20"``.

A key that the files do not have is refused with the nearest one that they do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline.workflow.composition import (
    CONDITIONS,
    GROUPS,
    REPETITIONS,
    Point,
    composed,
    declared,
    experiment,
    listed,
    nearest,
    plain,
    section,
    update,
)


@dataclass(frozen=True)
class Rule:
    """Values that a scale sets for the points that ``where`` describes."""

    where: Mapping[str, Any]
    values: Mapping[str, Any]

    def applies(self, point: Point) -> bool:
        """Whether every condition holds for ``point``."""
        return all(getattr(point, key) in listed(wanted) for key, wanted in self.where.items())


@dataclass(frozen=True)
class Override:
    """A value that the user sets for one run, in every point that has the named part."""

    group: str
    name: str
    key: str
    value: Any

    @property
    def place(self) -> str:
        """Where the value stands in a point: in its group, but for the number of repetitions, which is the point's."""
        return REPETITIONS if self.key == REPETITIONS else f"{self.group}.{self.key}"

    @classmethod
    def parse(cls, text: str) -> Override:
        """Read ``group.name.key=value``."""
        match = re.fullmatch(r"(dataset|method|transport|audit)\.(\w+)\.([\w.]+)=(.+)", text.strip())
        if match is None:
            raise ValueError(
                f"cannot read {text!r}: write group.name.key=value, for example method.sensr.learning_rate=2e-5"
            )
        group, name, key, value = match.groups()
        return cls(group, name, key, plain(OmegaConf.from_dotlist([f"value={value}"]))["value"])


class Resolver:
    """Resolves points for one scale's ``rules`` and one user's ``overrides``, each point once.

    Raises ValueError for an override of what is not there.
    """

    def __init__(self, conf: Path, rules: Sequence[Rule], overrides: Sequence[Override]) -> None:
        self.conf = conf
        self.rules = rules
        self.overrides = overrides
        self._sweeps = declared(conf, "sweep")
        self._resolved: dict[Point, dict[str, Any]] = {}
        for override in overrides:
            config = _fixed({REPETITIONS: 1, override.group: section(conf, override.group, override.name)})
            update(config, override.place, override.value, "set")

    def sections(self, point: Point) -> dict[str, Any]:
        """The section of each part that the point has, with its ``name`` and its module's ``kind``; ``repetitions``."""
        if point not in self._resolved:
            self._resolved[point] = self._laid_over(point)
        return self._resolved[point]

    def _laid_over(self, point: Point) -> dict[str, Any]:
        named = [group for group in GROUPS if getattr(point, group)]
        config = _fixed(
            {
                "repetitions": composed(self.conf).repetitions,
                **{group: section(self.conf, group, getattr(point, group)) for group in named},
            }
        )
        for group in named:
            where = f"conf/{group}/{getattr(point, group)}.yaml"
            OmegaConf.set_struct(config[group], False)
            special = config[group].pop("per_dataset", None) or {}
            OmegaConf.set_struct(config[group], True)
            for key, value in dict(special.get(point.dataset) or {}).items():
                update(config, f"{group}.{key}", value, f"{where}, per_dataset")
        for key, value in self._settings(point).items():
            update(config, key, value, f"study {point.study!r}, block {point.block!r}")
        resolved: dict[str, Any] = {"repetitions": int(config.repetitions)}
        for group in named:
            name = getattr(point, group)
            resolved[group] = {"kind": name, **plain(config[group]), "name": name}
        return resolved

    def _settings(self, point: Point) -> dict[str, Any]:
        """The grid's, the scale's and the user's values for the groups that the point has."""
        settings = dict(point.settings)
        last = {key for key in settings if not key.startswith("audit.") or point.study in self._sweeps}
        for rule in self.rules:
            if rule.applies(point):
                settings.update({key: value for key, value in rule.values.items() if key not in last})
        for override in self.overrides:
            if getattr(point, override.group) == override.name:
                settings[override.place] = override.value
        return {
            key: value
            for key, value in settings.items()
            if key.split(".")[0] not in GROUPS or getattr(point, key.split(".")[0])
        }


def _fixed(values: dict[str, Any]) -> DictConfig:
    """A configuration that takes no keys but its own."""
    config = OmegaConf.create(values)
    OmegaConf.set_struct(config, True)
    return config


def scale_rules(conf: Path, scale: str) -> tuple[Rule, ...]:
    """The settings of ``conf/scale/<scale>.yaml``, checked.

    The file of a model or a transport map is shared by every block and study that asks for it, so what it is fitted
    with may depend on the dataset and the method, or the dataset and the transport, alone.
    """
    rules = []
    for entry in plain(composed(conf, (f"scale={scale}",)).scale)["settings"] or []:
        rule = Rule(dict(entry.get("where") or {}), dict(entry["set"]))
        for key in rule.where:
            if key not in CONDITIONS:
                raise ValueError(f"conf/scale/{scale}.yaml: where {key!r} is unknown{nearest(key, CONDITIONS)}")
            for value in listed(rule.where[key]):
                known = _known(conf, key)
                if value not in known:
                    raise ValueError(f"conf/scale/{scale}.yaml: there is no {key} {value!r}{nearest(value, known)}")
        shared = {
            "dataset.": ("dataset",),
            "method.": ("dataset", "method"),
            "transport.": ("dataset", "transport"),
            "repetitions": ("dataset", "method", "transport"),
        }
        for prefix, allowed in shared.items():
            if any(key.startswith(prefix) for key in rule.values) and not set(rule.where) <= set(allowed):
                raise ValueError(
                    f"conf/scale/{scale}.yaml: {prefix.strip('.')} may be set by {_listing(allowed)} only, "
                    f"not by {', '.join(sorted(set(rule.where) - set(allowed)))}"
                )
        rules.append(rule)
    return tuple(rules)


def _known(conf: Path, condition: str) -> list[str]:
    """The names that a scale's ``where`` may give for a study, a block or a part of a point."""
    studies = [*declared(conf, "experiment"), *declared(conf, "sweep")]
    if condition == "study":
        return studies
    if condition == "block":
        return sorted({block for study in studies for block in experiment(conf, study)["grid"]})
    return sorted(path.stem for path in (conf / condition).glob("*.yaml"))


def _listing(names: Sequence[str]) -> str:
    """Names as part of a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
