"""What is made by which job: the files of each stage, their jobs, and what is left out for want of data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.workflow import availability, composition
from pipeline.workflow.code_hash import digest
from pipeline.workflow.composition import Point, encoded
from pipeline.workflow.jobs import STAGES, Job, jobs

if TYPE_CHECKING:
    from pipeline.workflow.config import Workflow

PREPARING = 1000
"""Seconds by which data, which much waits for, come before all but the longest jobs."""


class Plan:
    """The jobs of every study and sweep that ``conf/`` declares; Snakemake runs those that an invocation asks for.

    ``absent`` names the datasets (modules of ``pipeline.datasets``) that cannot be had. What would be made of them has
    no job; their audits say that they were not run.
    """

    def __init__(self, workflow: Workflow, absent: frozenset[str]) -> None:
        self.workflow = workflow
        self.absent = absent
        self.studies = (*composition.declared(workflow.conf, "experiment"), *workflow.sweeps)

    def can_be_made(self, point: Point) -> bool:
        """Whether a point's data can be had."""
        return self._kind(point) not in self.absent

    @cached_property
    def jobs(self) -> list[Job]:
        """Every job, after those that it waits for."""
        flow = self.workflow
        points = [point for study in self.studies for point in flow.planned[study] if self.can_be_made(point)]
        places = list(map(self._names, points))
        return [job for stage in STAGES for job in jobs(stage, places, flow.resources, flow.sweeps)]

    def outputs(self, job: Job) -> list[str]:
        """The files that a job makes."""
        return [self.workflow.file(job.stage, *place) for place in job.places]

    def inputs(self, job: Job) -> list[str]:
        """The files that a job is made from, besides the code."""
        return list(dict.fromkeys(path for place in job.places for _, path in self._inputs(job.stage, place)))

    def benchmark(self, job: Job) -> str:
        """Where the time that a job took is written down."""
        return f"results/benchmarks/{self.workflow.scale}/{job.stage}/{job.name}.tsv"

    def benchmarks(self, study: str) -> dict[str, str]:
        """Where the times stand of all jobs behind a study's classifiers, maps and audits, by what a job makes."""
        flow = self.workflow
        wanted = {path for stage in ("train", "transport", "audit") for path in flow.files(stage, study)}
        return {self._made(job): self.benchmark(job) for job in self.jobs if wanted & set(self.outputs(job))}

    def _made(self, job: Job) -> str:
        """``paper/train/adult/sensr``, with how many more files if there are."""
        first, *others = job.places
        more = f" and {len(others)} more" if others else ""
        return f"{self.workflow.scale}/{job.stage}/{'/'.join(first)}{more}"

    def arguments(self, job: Job) -> list[list[str]]:
        """What :mod:`pipeline.workflow.batch` hands to the stage, for each file that the job makes."""
        found = []
        for place in job.places:
            section = self.workflow.asked(job.stage, *place)
            inputs = [word for flag, path in self._inputs(job.stage, place) for word in (flag, path)]
            found.append(["--config", encoded(section), *inputs, "--output", self.workflow.file(job.stage, *place)])
        return found

    def code(self, job: Job) -> str:
        """Return the hash of the code that a job computes with."""
        group = STAGES[job.stage].group
        names = dict.fromkeys(member[group] for member in job.members)
        return digest(sorted({self.workflow.code(job.stage, **{group: name}) for name in names}))

    def threads(self, job: Job) -> int:
        """The processors that a job computes on: ``threads`` in conf/method, conf/transport and conf/audit."""
        sections = [self.workflow.asked(job.stage, *place)[STAGES[job.stage].group] for place in job.places]
        return max(section.get("threads", 1) for section in sections)

    def asked(self, job: Job) -> dict[str, Callable[[Any, int], Any]]:
        """The ``resources:`` of a job's rule: of each a function of wildcards and attempt; None asks for nothing."""
        return self.workflow.resources.functions(lambda _, attempt: job.asks(self.workflow.resources, attempt))

    def priority(self, job: Job) -> int:
        """What starts first, in seconds: data, which all else waits for, and then the job that takes longest."""
        own = int(job.asks(self.workflow.resources).get("seconds", 1))
        return own + PREPARING if job.stage == "prepare" else own

    def not_run(self, study: str) -> list[dict[str, str]]:
        """For each audit of a study whose data cannot be had what stands for it, as the stage ``absent`` reads it."""
        found = []
        for point in self.workflow.points(study):
            if (kind := self._kind(point)) in self.absent:
                manifest = f"{availability.RAW}/{kind}/{availability.RECORD}"
                names = {"dataset": point.dataset, "method": point.method, "audit": point.audit}
                found.append({"manifest": manifest, **names, "output": self.workflow.audit_file(point)})
        return found

    def _kind(self, point: Point) -> str:
        return self.workflow.kind("dataset", point.dataset)

    def _names(self, point: Point) -> dict[str, str]:
        """The names of a point's parts as they stand in paths, and the module of its dataset."""
        names = dict(zip(STAGES["audit"].parts, self.workflow.place(point), strict=True))
        return {**names, "transport": point.transport and point.name("transport"), "kind": self._kind(point)}

    def _inputs(self, stage: str, place: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """The files that one file of a stage is made from, each with the stage's option for it."""
        if stage == "prepare":
            kind = self.workflow.kind("dataset", place[0])
            if availability.needs_files(kind):
                yield "--manifest", f"{availability.RAW}/{kind}/{availability.RECORD}"
            return
        dataset, method = place[2:4] if stage == "audit" else place
        yield "--dataset", self.workflow.file("prepare", dataset)
        if stage == "audit":
            yield "--classifier", self.workflow.file("train", dataset, method)
            for path in self.workflow.maps_of(*place):
                yield "--transport", path
