"""What a job asks a scheduler for, which files it makes, and about how long it takes.

``conf/resources.yaml`` holds ``settings``, each a ``where`` and a ``set`` as in ``conf/scale/``; the later wins. The
n-th attempt at a job asks for n times the memory and n times the time. On a single machine, where nobody is asked,
nothing of this has an effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pipeline.workflow.composition import CONDITIONS, listed, nearest, plain

RULES = ("prepare", "train", "transport", "audit", "collect", "artefacts", "sweep", "report")
"""The rules whose jobs may be sent to another machine; ``fetch`` stays where the network is."""
WHERE = ("rule", "scale", *CONDITIONS)
GROWING = ("mem_mb", "runtime")
"""MB and minutes: what a job that died of it needs more of."""
ASKED = (*GROWING, "gpu", "slurm_partition", "slurm_extra")
KEYS = (*ASKED, "seconds", "together")
REQUIRED = ("mem_mb", "runtime")
PARTS = ("block", "kind", "dataset", "method", "transport", "audit")
"""What files may have in common that one job makes; ``kind`` is the module of a dataset."""


@dataclass(frozen=True)
class Setting:
    """Values for the jobs that ``where`` describes."""

    where: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Any]

    def applies(self, job: Mapping[str, str]) -> bool:
        """Whether each condition names the job's part, by its name, the one in its path, or a pattern for that."""
        return all(
            any(name in wanted or any(fnmatchcase(name, pattern) for pattern in wanted) for name in _names(job, key))
            for key, wanted in self.where.items()
        )


@dataclass(frozen=True)
class Resources:
    """The settings of ``conf/resources.yaml`` for one scale."""

    scale: str
    settings: tuple[Setting, ...]

    @classmethod
    def read(cls, conf: Path, scale: str) -> Resources:
        """Read and check the file; where there is none, jobs ask for nothing.

        Raises ValueError for a condition, a name or a key that there is not, and for memory or time that is not given
        to every job.
        """
        path = conf / "resources.yaml"
        if not path.is_file():
            return cls(scale, ())
        settings = []
        for entry in plain(OmegaConf.load(path))["settings"]:
            where = {key: tuple(map(str, listed(value))) for key, value in (entry.get("where") or {}).items()}
            _check(conf, where, entry["set"])
            settings.append(Setting(where, entry["set"]))
        everywhere = {key for setting in settings if not setting.where for key in setting.values}
        if missing := [key for key in REQUIRED if key not in everywhere]:
            raise ValueError(f"conf/resources.yaml: {' and '.join(missing)} not given for every job (where: {{}})")
        return cls(scale, tuple(settings))

    def of(self, rule: str, wildcards: Mapping[str, str] | None = None, attempt: int = 1) -> dict[str, Any]:
        """What a job of a rule asks for at an attempt (1 is the first), by the names of :data:`KEYS`.

        ``wildcards`` are the names in its path. Of an audit of maps, ``audit+transport``, each part counts.
        """
        job = {"rule": rule, "scale": self.scale, **(wildcards or {})}
        if "+" in job.get("audit", ""):
            job["audit"], job["transport"] = job["audit"].split("+", 1)
        found: dict[str, Any] = {}
        for setting in self.settings:
            if setting.applies(job):
                found.update(setting.values)
        return {key: value * attempt if key in GROWING else value for key, value in found.items()}

    def asked(self, rule: str, **names: str) -> dict[str, Callable[[Any, int], Any]]:
        """The ``resources:`` of a rule: of each a function of wildcards and attempt; None asks for nothing."""
        return self.functions(lambda wildcards, attempt: self.of(rule, {**dict(wildcards.items()), **names}, attempt))

    @staticmethod
    def functions(of: Callable[[Any, int], Mapping[str, Any]]) -> dict[str, Callable[[Any, int], Any]]:
        """Of what a job asks for altogether, a function for each resource, as Snakemake wants it."""

        def function(key: str) -> Callable[[Any, int], Any]:
            return lambda wildcards, attempt: of(wildcards, attempt).get(key)

        return {key: function(key) for key in ASKED}


def _names(job: Mapping[str, str], key: str) -> tuple[str, ...]:
    """A part of a job as configured (``standard``) and as it stands in the path (``standard@model=vgg19``)."""
    if key not in job:
        return ()
    return (re.split("[@+]", job[key])[0], job[key])


def _check(conf: Path, where: Mapping[str, tuple[str, ...]], values: Mapping[str, Any]) -> None:
    for key, wanted in where.items():
        if key not in WHERE:
            raise ValueError(f"conf/resources.yaml: where {key!r} is unknown{nearest(key, WHERE)}")
        for name in wanted:
            known = _known(conf, key)
            if known and not set("@*?[") & set(name) and name not in known:
                raise ValueError(f"conf/resources.yaml: there is no {key} {name!r}{nearest(name, known)}")
    for key, value in values.items():
        if key not in KEYS:
            raise ValueError(
                f"conf/resources.yaml: {key!r} is unknown{nearest(key, KEYS)}. There are: {', '.join(KEYS)}"
            )
        if key == "together" and (wrong := [part for part in listed(value) if part not in PARTS]):
            raise ValueError(
                f"conf/resources.yaml: files do not have {wrong[0]!r} in common{nearest(wrong[0], PARTS)}. "
                f"There are: {', '.join(PARTS)}"
            )
        if key in (*GROWING, "gpu", "seconds") and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ValueError(f"conf/resources.yaml: expected a whole number for {key}, found {value!r}")


def _known(conf: Path, key: str) -> list[str]:
    """The names that a condition may give; of a block any."""
    if key == "rule":
        return list(RULES)
    folders = ("experiment", "sweep") if key == "study" else (key,)
    return sorted(path.stem for folder in folders for path in (conf / folder).glob("*.yaml"))
