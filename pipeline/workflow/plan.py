"""The job of each file, with all its dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairness_audits.errors import InvalidInput
from pipeline.workflow import availability, paths
from pipeline.workflow.composition import REPETITIONS, Point, encoded, place_of
from pipeline.workflow.paths import STAGES
from pipeline.workflow.resolution import Resolver
from pipeline.workflow.resources import Resources

PREPARING = 1000
"""Priority bonus for prepare jobs, in seconds."""
STUDY = 10_000
"""Priority bonus for each study that comes later. No job takes so many seconds."""


@dataclass(frozen=True)
class Job:
    """The job that makes one file.

    ``inputs`` holds the input files by option of the stage, ``config`` the resolved section as JSON, ``code`` the hash
    of the code, ``names`` the parts of the point, and ``later`` the number of studies that come after it.
    """

    stage: str
    names: Mapping[str, str]
    inputs: Mapping[str, tuple[str, ...]]
    output: str
    config: str
    code: str
    threads: int
    resources: Resources
    later: int = field(default=0, compare=False)

    def requests(self, attempt: int = 1) -> dict[str, Any]:
        """Return the resources that the job requests at an attempt."""
        return self.resources.of(self.stage, self.names, attempt)

    @property
    def priority(self) -> int:
        """Return the priority. Higher ones start first: the prepare jobs of the next study, then its longest jobs."""
        return self.later * STUDY + (self.stage == "prepare") * PREPARING + seconds(self.requests())


def seconds(requests: Mapping[str, Any]) -> int:
    """Return the expected seconds of a job."""
    return int(requests.get("seconds", 1))


@dataclass
class Plan:
    """The jobs of all studies and sweeps in ``conf/``. Snakemake selects the jobs to run.

    ``kind`` returns the module for a name in a path, and ``code`` the hash of the code of a stage with a plug-in.
    ``absent`` names the unavailable data sets (modules of ``pipeline.datasets``). Their audits are recorded as not run.
    ``studies`` names the studies of the run.
    """

    scale: str
    points: Sequence[Point]
    resolver: Resolver
    resources: Resources
    kind: Callable[[str, str], str]
    code: Callable[..., str]
    absent: frozenset[str]
    studies: Sequence[str]
    _jobs: dict[tuple[str, ...], Job] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.placed = {stage: _placed(self.resolver.conf, stage, self.points) for stage in STAGES}

    @cached_property
    def jobs(self) -> list[Job]:
        """Return all jobs in topological order."""
        made = [(stage, names) for stage in STAGES for names, point in self.placed[stage].items()]
        return [self.job(*one) for one in made if self.has_data(self.placed[one[0]][one[1]])]

    def check(self) -> None:
        """Make all jobs of the studies, with their settings and the hash of their code.

        Raises what this raises. Snakemake ignores errors in the parameters and inputs of files that already exist.
        """
        for point in self.points:
            if point.study in self.studies:
                point.columns()
                for stage in STAGES if self.has_data(point) else ():
                    if all(names := paths.place(point, stage)):
                        self.job(stage, names)

    def job(self, stage: str, names: tuple[str, ...]) -> Job:
        """Return the job of a file by its stage and the names in its path.

        Raises InvalidInput if no study or sweep needs the file.
        """
        if (stage, *names) not in self._jobs:
            if names not in self.placed[stage] and stage != "prepare":
                path = paths.file(self.scale, stage, names)
                raise InvalidInput(f"{path}: no study or sweep needs this file at the {self.scale} scale", source=path)
            self._jobs[stage, *names] = self._made(stage, names)
        return self._jobs[stage, *names]

    def has_data(self, point: Point) -> bool:
        """Return whether the data of a point are available."""
        return self.kind("dataset", point.dataset) not in self.absent

    def absent_names(self) -> list[str]:
        """Return the unavailable data sets, by the names in their paths."""
        return sorted({paths.place(p, "prepare")[0] for p in self.points if not self.has_data(p)})

    def parameters(self, stage: str, *names: str) -> dict[str, Any]:
        """Return the parameters of a file of a stage."""
        groups, known = STAGES[stage].groups, self.placed[stage]
        # A data set without a study has the values of its configuration file.
        point = known[names] if stage != "prepare" or names in known else Point("", "", names[0], "", "", ())
        if stage == "audit":
            return {"audit": self.resolver.sections(point)["audit"]}
        # Studies share the file. The repetitions of a model do not affect its data.
        settings = tuple(
            (key, value)
            for key, value in point.settings
            if key.split(".")[0] in groups or (key == REPETITIONS and stage != "prepare")
        )
        shared = Point("", "", point.dataset, "", "", settings)
        resolved = self.resolver.sections(replace(shared, **{group: getattr(point, group) for group in groups}))
        return {key: resolved[key] for key in (STAGES[stage].group, REPETITIONS)}

    def maps_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the transport map of an audit: one file or none."""
        point = self.placed["audit"][names]
        return (paths.file(self.scale, "transport", paths.place(point, "transport")),) if point.transport else ()

    def manifest(self, dataset: str) -> str:
        """Return the manifest of the raw files of a data set, by the name in its path."""
        return f"{availability.RAW}/{self.kind('dataset', dataset)}/{availability.RECORD}"

    def benchmarks(self, points: Iterable[Point]) -> dict[str, str]:
        """Return the benchmark files of all jobs of these points, by keys such as ``paper/train/adult/sensr``."""
        found = [(stage, paths.place(p, stage)) for stage in ("train", "transport", "audit") for p in points]
        return {
            f"{self.scale}/{stage}/{'/'.join(names)}": paths.benchmark(self.scale, stage, names)
            for stage, names in dict.fromkeys(found)
            if all(names) and self.has_data(self.placed[stage][names])
        }

    @cached_property
    def _later(self) -> dict[tuple[str, ...], int]:
        """Return the number of studies that come after each job.

        The study with the least work left comes next, so that its tables and figures are drawn before the others run.
        """
        work: dict[str, dict[tuple[str, ...], int]] = {study: {} for study in self.studies}
        for point in self.points:
            for stage in STAGES if point.study in work and self.has_data(point) else ():
                if all(names := paths.place(point, stage)):
                    job = self.resources.of(stage, self._conditions(stage, names))
                    work[point.study][stage, *names] = seconds(job)
        found: dict[tuple[str, ...], int] = {}
        while work:
            left = {study: sum(n for job, n in jobs.items() if job not in found) for study, jobs in work.items()}
            study = min(left, key=lambda name: left[name])
            found = dict.fromkeys(work.pop(study), len(work)) | found
        return found

    def _conditions(self, stage: str, names: tuple[str, ...]) -> dict[str, str]:
        """Return the names that a setting of the resources can ask for. A shared file belongs to its first study."""
        parts = dict(zip(STAGES[stage].parts, names, strict=True))
        point = self.placed[stage].get(names)
        owner = {"study": point.study, "block": point.block} if point else {}
        return {**owner, **parts, "kind": self.kind("dataset", parts["dataset"])}

    def _made(self, stage: str, names: tuple[str, ...]) -> Job:
        group, conditions = STAGES[stage].group, self._conditions(stage, names)
        section = self.parameters(stage, *names)
        return Job(
            stage,
            conditions,
            self._inputs(stage, names, conditions["kind"]),
            paths.file(self.scale, stage, names),
            encoded(section),
            self.code(stage, **{group: conditions[group]}),
            section[group].get("threads", 1),
            self.resources,
            self._later.get((stage, *names), 0),
        )

    def _inputs(self, stage: str, names: tuple[str, ...], kind: str) -> dict[str, tuple[str, ...]]:
        if stage == "prepare":
            return {"manifest": (self.manifest(names[0]),) if availability.needs_files(kind) else ()}
        dataset, method = names[2:4] if stage == "audit" else names
        data: dict[str, tuple[str, ...]] = {"dataset": (paths.file(self.scale, "prepare", (dataset,)),)}
        if stage != "audit":
            return data
        return {
            **data,
            "classifier": (paths.file(self.scale, "train", (dataset, method)),),
            "transport": self.maps_of(names),
        }


def _placed(conf: Path, stage: str, points: Iterable[Point]) -> dict[tuple[str, ...], Point]:
    """Return the points by the names in the path of their file; points with the same values share a file."""
    placed: dict[tuple[str, ...], Point] = {}
    for point in points:
        names = paths.place(point, stage)
        if not all(names):
            continue
        first = placed.setdefault(names, point)
        one, other = ([s for s in p.settings if s[0].split(".")[0] in STAGES[stage].groups] for p in (first, point))
        if one != other or (stage == "audit" and first is not point):
            where = place_of(conf, point.study, point.block)
            raise InvalidInput(
                f"{where}: {dict(first.settings)} and {dict(point.settings)} have the same path, {'/'.join(names)}",
                source=where,
                remedy="Give values that differ in a letter, a digit or one of . + - _",
            )
    return placed
