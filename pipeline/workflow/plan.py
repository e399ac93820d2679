"""What is made by which job: one job for each file, with all that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.workflow import availability, paths
from pipeline.workflow.composition import REPETITIONS, Point, encoded, place_of
from pipeline.workflow.paths import STAGES
from pipeline.workflow.resolution import Resolver
from pipeline.workflow.resources import Resources

PREPARING = 1000
"""Seconds by which data, which much waits for, come before all but the longest jobs."""


@dataclass(frozen=True)
class Job:
    """The job that makes one file.

    ``inputs`` holds the files that it reads, by the stage's option for them. ``config`` is the section that it computes
    with, as JSON, and ``code`` the hash of its code. ``names`` are those of its point's parts, and ``resources`` says
    what it asks a scheduler for.
    """

    stage: str
    names: Mapping[str, str]
    inputs: Mapping[str, tuple[str, ...]]
    output: str
    config: str
    code: str
    threads: int
    resources: Resources

    def asks(self, attempt: int = 1) -> dict[str, Any]:
        """Return what the job asks a scheduler for at an attempt."""
        return self.resources.of(self.stage, self.names, attempt)

    @property
    def priority(self) -> int:
        """What starts first, in seconds: data, which all else waits for, and then the job that takes longest."""
        own = int(self.asks().get("seconds", 1))
        return own + PREPARING if self.stage == "prepare" else own


class Plan:
    """The jobs of every study and sweep that ``conf/`` declares; Snakemake runs those that an invocation asks for.

    ``points`` are those of all studies and sweeps, ``kind`` returns the module behind a name in a path, and ``code``
    the hash of the code of a stage with a plug-in. ``absent`` names the data sets (modules of ``pipeline.datasets``)
    that cannot be had. Nothing is made of them; their audits say that they were not run.
    """

    def __init__(
        self,
        scale: str,
        points: Sequence[Point],
        resolver: Resolver,
        resources: Resources,
        kind: Callable[[str, str], str],
        code: Callable[..., str],
        absent: frozenset[str] = frozenset(),
    ) -> None:
        self.scale = scale
        self.absent = absent
        self._points = points
        self._resolver = resolver
        self._resources = resources
        self._kind = kind
        self._code = code
        self.placed = {stage: _placed(resolver.conf, stage, points) for stage in STAGES}
        self._jobs: dict[tuple[str, ...], Job] = {}

    @cached_property
    def jobs(self) -> list[Job]:
        """Every job, after those that it waits for."""
        made = [(stage, names) for stage in STAGES for names, point in self.placed[stage].items()]
        return [self.job(*one) for one in made if self.can_be_made(self.placed[one[0]][one[1]])]

    def job(self, stage: str, names: tuple[str, ...]) -> Job:
        """Return the job that makes a file of a stage, by the names in its path.

        Raises ValueError for a file that no study and no sweep asks for.
        """
        if (stage, *names) not in self._jobs:
            if names not in self.placed[stage] and stage != "prepare":
                path = paths.file(self.scale, stage, names)
                raise ValueError(f"{path}: no study and no sweep asks for it at the {self.scale} scale")
            self._jobs[stage, *names] = self._made(stage, names)
        return self._jobs[stage, *names]

    def can_be_made(self, point: Point) -> bool:
        """Return whether a point's data can be had."""
        return self._kind("dataset", point.dataset) not in self.absent

    def names_absent(self) -> list[str]:
        """Return the data sets that cannot be had, by the names in the paths of their files."""
        return sorted({paths.place(p, "prepare")[0] for p in self._points if not self.can_be_made(p)})

    def asked(self, stage: str, *names: str) -> dict[str, Any]:
        """Return what a file of a stage depends on, besides the files that it is made from."""
        groups, known = STAGES[stage].groups, self.placed[stage]
        # A data set that no study names is as its own file says.
        point = known[names] if stage != "prepare" or names in known else Point("", "", names[0], "", "", ())
        if stage == "audit":
            return {"audit": self._resolver.sections(point)["audit"]}
        # The file is shared by whatever study asks for it; how often a model is fitted is no matter of its data.
        settings = tuple(
            (key, value)
            for key, value in point.settings
            if key.split(".")[0] in groups or (key == REPETITIONS and stage != "prepare")
        )
        shared = Point("", "", point.dataset, "", "", settings)
        resolved = self._resolver.sections(replace(shared, **{group: getattr(point, group) for group in groups}))
        return {key: resolved[key] for key in (STAGES[stage].group, REPETITIONS)}

    def maps_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the transport maps that an audit needs: one file or none."""
        point = self.placed["audit"][names]
        return (paths.file(self.scale, "transport", paths.place(point, "transport")),) if point.transport else ()

    def manifest(self, dataset: str) -> str:
        """Return the record of where the raw files of a data set come from, by the name in its path."""
        return f"{availability.RAW}/{self._kind('dataset', dataset)}/{availability.RECORD}"

    def benchmarks(self, points: Iterable[Point]) -> dict[str, str]:
        """Return where the times stand of all jobs behind these points, by ``paper/train/adult/sensr``."""
        found = [(stage, paths.place(p, stage)) for stage in ("train", "transport", "audit") for p in points]
        return {
            f"{self.scale}/{stage}/{'/'.join(names)}": paths.benchmark(self.scale, stage, names)
            for stage, names in dict.fromkeys(found)
            if all(names) and self.can_be_made(self.placed[stage][names])
        }

    def _made(self, stage: str, names: tuple[str, ...]) -> Job:
        group, parts = STAGES[stage].group, dict(zip(STAGES[stage].parts, names, strict=True))
        kind = self._kind("dataset", parts["dataset"])
        section = self.asked(stage, *names)
        # What several studies share is of the first that asks for it.
        point = self.placed[stage].get(names)
        owner = {"study": point.study, "block": point.block} if point else {}
        return Job(
            stage,
            {**owner, **parts, "kind": kind},
            self._inputs(stage, names, kind),
            paths.file(self.scale, stage, names),
            encoded(section),
            self._code(stage, **{group: parts[group]}),
            section[group].get("threads", 1),
            self._resources,
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
    """Return the points by the place of what a stage makes for them.

    Points share what is made of the same values; an audit is each point's own. Raises ValueError where two points
    would be one file.
    """
    placed: dict[tuple[str, ...], Point] = {}
    for point in points:
        names = paths.place(point, stage)
        if not all(names):
            continue
        first = placed.setdefault(names, point)
        one, other = ([s for s in p.settings if s[0].split(".")[0] in STAGES[stage].groups] for p in (first, point))
        if one != other or (stage == "audit" and first is not point):
            raise ValueError(
                f"{place_of(conf, point.study, point.block)}: {dict(first.settings)} and {dict(point.settings)} would "
                f"be one file, {'/'.join(names)}: give values that differ in a letter, a digit or one of . + - _"
            )
    return placed
