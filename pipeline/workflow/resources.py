"""The resources that a job requests from a scheduler, and its expected time.

``conf/resources.yaml`` holds ``settings``, each a ``where`` and a ``set`` (:mod:`pipeline.workflow.settings`). The n-th
attempt at a job requests n times the memory and n times the time. The requests have no effect on a single machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import enumerated
from fairness_audits.validation import Checked, Size, made
from pipeline.workflow import composition
from pipeline.workflow.composition import declared
from pipeline.workflow.settings import Setting, merged, named, read

RULES = ("prepare", "train", "transport", "audit", "collect", "draw", "sweep", "report")
"""The rules that can run on another machine. ``fetch`` needs the network and runs locally."""
GROWING = ("mem_mb", "runtime")
"""Memory (MB) and time (minutes), which grow with each attempt."""
REQUESTED = (*GROWING, "gpu", "slurm_partition", "slurm_extra")


@dataclass(frozen=True)
class Request(Checked):
    """The keys of a setting."""

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
        """Read and check the file. Without a file, jobs request nothing.

        Raises InvalidInput for an unknown condition, name or key, and if some jobs have no memory or time.
        """
        path = conf / "resources.yaml"
        if not path.is_file():
            return cls(scale, ())
        source, of_jobs = "conf/resources.yaml", {"rule": RULES, "scale": declared(conf, "scale")}
        settings = read(conf, composition.read(path)["settings"], source, of_jobs)
        for setting in settings:
            made(Request, setting.values, source)
        everywhere = merged(settings, {})
        if missing := [key for key in GROWING if key not in everywhere]:
            problem = f"{source} does not set {enumerated(missing)} for all jobs"
            raise InvalidInput(problem, source=source, option=missing[0], remedy="Add a setting with where: {}")
        every = ("*",)
        return cls(scale, [one for one in settings if named(scale, one.where.get("scale", every))])

    def of(self, rule: str, wildcards: Mapping[str, str] | None = None, attempt: int = 1) -> dict[str, Any]:
        """Return the resources that a job requests at an attempt (from 1), by the names of :class:`Request`.

        ``wildcards`` are the names in its path. Both parts of ``audit+transport`` count for an audit of maps.
        """
        job = {"rule": rule, "scale": self.scale, **(wildcards or {})}
        if "+" in job.get("audit", ""):
            job["audit"], job["transport"] = job["audit"].split("+", 1)
        found = merged(self.settings, job)
        return {key: value * attempt if key in GROWING else value for key, value in found.items()}

    def functions(self, of: Callable[[Any, int], Mapping[str, Any]]) -> dict[str, Callable[[Any, int], Any]]:
        """Split a function for all resources into one function for each, as Snakemake requires.

        Snakemake calls each function for each job, so resources that no setting names have none.
        """
        named = {key for setting in self.settings for key in setting.values}

        def function(key: str) -> Callable[[Any, int], Any]:
            return lambda wildcards, attempt: of(wildcards, attempt).get(key)

        return {key: function(key) for key in REQUESTED if key in named}
