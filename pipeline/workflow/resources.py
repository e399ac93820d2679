"""What a job asks a scheduler for, and about how long it takes.

``conf/resources.yaml`` holds ``settings``, each a ``where`` and a ``set`` (:mod:`pipeline.workflow.settings`). The n-th
attempt at a job asks for n times the memory and n times the time. On a single machine, where nobody is asked, nothing
of this has an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from fairness_audits.messages import enumerated
from fairness_audits.validation import Checked, Size, made
from pipeline.workflow.composition import declared, plain
from pipeline.workflow.settings import Setting, laid_over, read

RULES = ("prepare", "train", "transport", "audit", "collect", "draw", "sweep", "report")
"""The rules whose jobs may be sent to another machine; ``fetch`` stays where the network is."""
GROWING = ("mem_mb", "runtime")
"""MB and minutes: what a job that died of it needs more of."""
ASKED = (*GROWING, "gpu", "slurm_partition", "slurm_extra")


@dataclass(frozen=True)
class Request(Checked):
    """What a setting may set."""

    mem_mb: Size | None = None
    runtime: Size | None = None
    gpu: Size | None = None
    slurm_partition: str | None = None
    slurm_extra: str | None = None
    seconds: Size | None = None


@dataclass(frozen=True)
class Resources:
    """The settings of ``conf/resources.yaml`` for one scale."""

    scale: str
    settings: Sequence[Setting]

    @classmethod
    def read(cls, conf: Path, scale: str) -> Resources:
        """Read and check the file; where there is none, jobs ask for nothing.

        Raises ValueError for a condition, a name or a key that there is not, and for memory or time that is not given
        to every job.
        """
        path = conf / "resources.yaml"
        if not path.is_file():
            return cls(scale, ())
        source, of_jobs = "conf/resources.yaml", {"rule": RULES, "scale": declared(conf, "scale")}
        settings = read(conf, plain(OmegaConf.load(path))["settings"], source, of_jobs)
        for setting in settings:
            made(Request, setting.values, source)
        everywhere = laid_over(settings, {})
        if missing := [key for key in GROWING if key not in everywhere]:
            raise ValueError(f"{source}: {enumerated(missing)} not given for every job (where: {{}})")
        return cls(scale, settings)

    def of(self, rule: str, wildcards: Mapping[str, str] | None = None, attempt: int = 1) -> dict[str, Any]:
        """What a job of a rule asks for at an attempt (1 is the first), by the names of :class:`Request`.

        ``wildcards`` are the names in its path. Of an audit of maps, ``audit+transport``, each part counts.
        """
        job = {"rule": rule, "scale": self.scale, **(wildcards or {})}
        if "+" in job.get("audit", ""):
            job["audit"], job["transport"] = job["audit"].split("+", 1)
        found = laid_over(self.settings, job)
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
