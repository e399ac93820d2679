"""The table of jobs: ``conf/`` turned into the jobs of a run, which the rules look up.

Each task makes one file: that of a stage for a point of a study (:mod:`pipeline.workflow.points`).
Points with the same values share a file. A task holds exactly the values that its stage reads, so a changed value
reruns only the tasks that read it.

A job is one task, or the audits of a study that share a classifier, with the training and the maps that no other job
needs. Short ones of a data set share a job (:meth:`Run.records`). Snakemake selects the jobs to run and finds their
order from the paths.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.files import load_json
from fairness_audits.messages import nearest
from pipeline.report import registry
from pipeline.workflow import availability, invocation
from pipeline.workflow.code_hash import code_hash, digest
from pipeline.workflow.conf import CONF, GROWING, REPETITIONS, Conf, Setting, merged, user_setting
from pipeline.workflow.launch import Task
from pipeline.workflow.plugins import module_name
from pipeline.workflow.points import STAGES, Grids, Point, id_of, sections
from pipeline.workflow.sweep import Figure

ROOT = CONF.parent
PUBLISHED = "paper"
"""The scale of the published experiments."""
REQUESTED = (*GROWING, "gpu", "slurm_partition", "slurm_extra")
"""The resources that a job can request from a scheduler. They have no effect on a single machine."""
PREPARING = 1000
"""Priority bonus for prepare jobs, in seconds."""
STUDY = 10_000
"""Priority bonus for each page that comes later. It exceeds the expected seconds of every job."""
QUICK = 60
"""The expected seconds of the longest job that the first page waits for. SenSR and large GANs take longer."""
RECORD = "results/jobs/{scale}/{study}/{dataset}/{part}.json"
"""The file that a job of audits makes: the files of its tasks, each with a checksum of its content."""
SHORT = {"seconds": 60, "runtime": 60}
"""The expected seconds and the requested minutes of what shares a job with others."""
POOLED = "short-tasks"
"""The part of a data set with the audits of all classifiers that are short. No method can have this name."""


@dataclass(frozen=True)
class Job:
    """The tasks of one job of Snakemake, in the order in which they run.

    Jobs with a higher ``priority`` start first.
    """

    tasks: tuple[Task, ...]
    priority: int

    @property
    def inputs(self) -> list[str]:
        """Return the files that the job reads and does not make itself."""
        made = {task.output for task in self.tasks}
        read = chain.from_iterable(paths for task in self.tasks for paths in task.inputs.values())
        return [path for path in dict.fromkeys(read) if path not in made]

    @property
    def threads(self) -> int:
        """Return the number of processors of the job."""
        return max(task.threads for task in self.tasks)

    @property
    def told(self) -> str:
        """Return the tasks as :mod:`pipeline.workflow.launch` reads them."""
        return encoded([asdict(task) for task in self.tasks])


class Run:
    """The jobs of one run: a scale, a data source, the studies, and the settings of the user.

    ``root`` holds the committed files. ``folder`` is the working folder with the files of runs, by default ``root``.
    ``datasets`` restricts the studies to these data sets and drops studies without them. ``finished`` keeps
    only the parts that a run in ``folder`` has completed. ``absent`` names the unavailable data sets (modules of
    ``pipeline.datasets``). Their audits are recorded as not run.
    """

    def __init__(
        self,
        scale: str = "laptop",
        source: str = "auto",
        tracker: str = "offline",
        studies: Sequence[str] = (),
        overrides: Sequence[str] = (),
        datasets: Collection[str] = (),
        finished: bool = False,
        absent: Collection[str] = (),
        conf: Path = CONF,
        root: Path = ROOT,
        folder: Path | None = None,
    ) -> None:
        if source not in availability.DATA_SOURCES:
            raise InvalidInput(f"DATA_SOURCE={source}: expected auto, official or twin", option="source")
        self.conf, self.root = Conf(Path(conf)), root
        self.folder = root if folder is None else folder
        self.scale, self.source, self.tracker = scale, source, self.conf[f"tracker/{tracker}"]
        self.resources = self.conf.resources(scale)
        self.grids = Grids(self.conf, scale, map(user_setting, overrides))
        self.datasets, self.finished, self.absent = frozenset(datasets), finished, frozenset(absent)
        self.sweeps, self.declared = self.conf.names("sweep"), self.conf.names("experiment")
        self.planned = {sweep: self.grids.planned(sweep) for sweep in self.sweeps}
        for study in dict.fromkeys((*self.declared, *studies)):
            points = self.grids.planned(study)
            self.planned[study] = [point for point in points if not self.datasets or point.dataset in self.datasets]
        self.studies = self._chosen(tuple(studies) or self.declared)
        self.requested_by_task = cache(self._requested_by_task)
        self.owners = self._owners()
        self.records = self._records()
        self._tasks: dict[str, Task] = {}
        self._jobs: dict[tuple[str, frozenset[tuple[str, str]]], Job] = {}

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str], folder: Path = ROOT) -> Run:
        """Return the run for ``snakemake --config`` and the environment.

        :data:`pipeline.workflow.invocation.INVOCATION` lists the keys and variables. Raises InvalidInput for others.
        """
        conf = Conf()
        defaults = {"scale": "laptop", "source": conf["config"]["data"]["source"], "tracker": ""}
        given = invocation.arguments(config, environment, defaults)
        tracker = given["tracker"] or conf[f"scale/{given['scale']}"].get("tracker", "offline")
        absent = environment.get(invocation.ABSENT, "").split()
        return cls(**{**given, "tracker": tracker}, absent=absent, folder=folder)

    # The points of the studies.

    def points(self, study: str) -> list[Point]:
        """Return the points of a study at this scale, or only those of completed parts if ``finished``.

        Parts with unavailable data have no classifier and are not complete.
        """
        points = self.planned[study]
        if not self.finished or study in self.sweeps:
            return points
        made = {p: all((self.folder / self.path(stage, p)).is_file() for stage in ("train", "audit")) for p in points}
        pending = {point.part for point in points if not made[point]}
        return [point for point in points if point.part not in pending]

    @property
    def all_points(self) -> Iterator[Point]:
        """Yield the points of all studies and sweeps."""
        return chain.from_iterable(self.planned.values())

    def has_data(self, point: Point) -> bool:
        """Return whether the data of a point are available."""
        return self.grids.kind("dataset", point.dataset) not in self.absent

    def _chosen(self, studies: Sequence[str]) -> tuple[str, ...]:
        """Return the studies that have points."""
        for name in sorted(self.datasets):
            self.conf[f"dataset/{name}"]
        if sweep := next((name for name in studies if name in self.sweeps), ""):
            remedy = f"Run `snakemake results/sweeps/{self.scale}/{sweep}/summary.csv`"
            raise InvalidInput(f"{sweep!r} is a sweep, not a study", option="study", remedy=remedy)
        if not self.finished and not self.datasets:
            return tuple(studies)
        if some := tuple(study for study in studies if self.points(study)):
            return some
        filters = ["FINISHED"] * self.finished + [f"DATASETS={', '.join(sorted(self.datasets))}"] * bool(self.datasets)
        problem = f"{', '.join(filters)}: no part of these studies is left at the {self.scale} scale"
        raise InvalidInput(problem, option="datasets" if self.datasets else "finished")

    # The files, and the jobs that make them.

    def path(self, stage: str, point: Point) -> str:
        """Return the file of a stage for a point; empty if the point has none."""
        return STAGES[stage].path(self.scale, point)

    def paths(self, point: Point) -> list[str]:
        """Return the files of all stages for a point; none if its data are unavailable."""
        return [path for stage in STAGES if (path := self.path(stage, point))] if self.has_data(point) else []

    def files(self, stage: str, study: str) -> list[str]:
        """Return the files of a stage for a study. Unavailable data have audit files only, which give the reason."""
        points = (point for point in self.points(study) if stage == "audit" or self.has_data(point))
        return list(filter(None, dict.fromkeys(self.path(stage, point) for point in points)))

    def _owners(self) -> dict[str, tuple[str, Point]]:
        """Return the stage and the first point of each file of all studies and sweeps, in topological order."""
        found: dict[str, tuple[str, Point]] = {}
        for name, stage in STAGES.items():
            for point in self.all_points:
                if path := self.path(name, point):
                    _, first = found.setdefault(path, (name, point))
                    if not (first is point if name == "audit" else stage.shared(first) == stage.shared(point)):
                        where = self.conf.place_of(point.study, point.block)
                        both = f"{dict(first.settings)} and {dict(point.settings)}"
                        remedy = "Give values that differ in a letter, a digit or one of . + - _"
                        raise InvalidInput(f"{where}: {both} have the same path, {path}", source=where, remedy=remedy)
        return found

    def _records(self) -> dict[str, list[str]]:
        """Return the files of the tasks of each job of audits, in topological order, by the record of the job.

        A job makes the audits of a study with one classifier, or with all classifiers of a data set that are short. It
        makes a classifier and a map itself if no other job reads it, unless it is long.
        """
        readers: dict[str, set[Point]] = defaultdict(set)
        for point in self.all_points:
            classifier = Point(point.study, "", point.name("dataset"), point.name("method"), "")
            for stage in ("train", "transport", "audit"):
                readers[self.path(stage, point)].add(classifier)
        own: dict[Point, list[str]] = defaultdict(list)
        for path, (stage, _) in self.owners.items():
            if stage != "prepare" and len(readers[path]) == 1:
                own[next(iter(readers[path]))].append(path)
        part = {classifier: POOLED if self._is_short(paths) else classifier.method for classifier, paths in own.items()}
        found: dict[str, list[str]] = defaultdict(list)
        for path, (stage, _) in self.owners.items():
            jobs = {(classifier.study, classifier.dataset, part[classifier]) for classifier in readers[path]}
            if len(jobs) == 1 and (stage == "audit" or self._is_short([path])):
                study, dataset, name = jobs.pop()
                found[RECORD.format(scale=self.scale, study=study, dataset=dataset, part=name)].append(path)
        return found

    def _is_short(self, paths: Sequence[str]) -> bool:
        """Return whether the tasks that make these files can share a job with others."""
        each = [self.requested_by_task(*self.owners[path]) for path in paths]
        longest = max(one.get("runtime", 0) for one in each)
        return sum(one.get("seconds", 1) for one in each) <= SHORT["seconds"] and longest <= SHORT["runtime"]

    def made(self, study: str) -> list[str]:
        """Return what the jobs of the audits of a study make, as inputs of the rules that read the audits.

        In a run with ``finished``, these are the files themselves: the records of their jobs may be missing.
        """
        files = self.files("audit", study)
        if self.finished:
            return [*files, *self.files("train", study)]
        wanted = set(files)
        return [record for record, paths in self.records.items() if not wanted.isdisjoint(paths)]

    @property
    def tasks(self) -> dict[str, Task]:
        """Return all tasks by the file that they make."""
        return {path: self._task(*owner) for path, owner in self.owners.items() if self.has_data(owner[1])}

    def job(self, rule: str, wildcards: Mapping[str, str]) -> Job:
        """Return the job for the wildcards of a rule. Without data, a job of audits records that they were not run."""
        key = rule, frozenset(wildcards.items())
        if key not in self._jobs:
            owners = self.owners_of(rule, wildcards)
            tasks = [self._task(*owner) for owner in owners if owner[0] == rule or self.has_data(owner[1])]
            later = max(self._later.get(task.output, 0) for task in tasks)
            seconds = sum(self._seconds(*owner) for owner in owners) + (rule == "prepare") * PREPARING
            self._jobs[key] = Job(tuple(tasks), later * STUDY + seconds)
        return self._jobs[key]

    def owners_of(self, rule: str, wildcards: Mapping[str, str]) -> list[tuple[str, Point]]:
        """Return the stage and the first point of each file of a job. Raises InvalidInput if there is no such job."""
        output = (RECORD if rule == "audit" else STAGES[rule].output).format_map(wildcards)
        if found := [self.owners[path] for path in self.records.get(output, [output]) if path in self.owners]:
            return found
        if rule == "prepare":
            # A data set without a study has the values of its configuration file.
            return [(rule, Point("", "", wildcards["dataset"], "", ""))]
        near = nearest(output, [*self.records, *self.owners])
        raise InvalidInput(
            f"{output}: no study or sweep needs this file at the {self.scale} scale{near}", source=output
        )

    def repaired(self, wildcards: Mapping[str, str]) -> int:
        """Return how often a job of audits made deleted files again, one more if one of its files is missing now."""
        record = self.folder / RECORD.format_map(wildcards)
        if not record.is_file():
            return 0
        lost = not all((self.folder / task.output).is_file() for task in self.job("audit", wildcards).tasks)
        return int(load_json(record)["repaired"]) + lost

    def _task(self, stage: str, point: Point) -> Task:
        """Return the task that makes a file. Without data, the task of an audit records that it was not run."""
        if (path := self.path(stage, point)) in self._tasks:
            return self._tasks[path]
        names, group = STAGES[stage].names(point).values(), STAGES[stage].group
        if stage == "audit" and not self.has_data(point):
            config: dict[str, Any] = {name: getattr(point, name) for name in ("dataset", "method", "audit")}
            made = "absent", path, self._inputs("prepare", point), encoded(config), self.code("absent"), 1
            times = benchmark(self.scale, "not_run", names)
        else:
            config, code = self.section(stage, point), self.code(stage, **{group: getattr(point, group)})
            threads = config[group].get("threads", 1)
            made = stage, path, self._inputs(stage, point), encoded(config), code, threads
            times = benchmark(self.scale, stage, names)
        self._tasks[path] = Task(*made, times)
        return self._tasks[path]

    def section(self, stage: str, point: Point) -> dict[str, Any]:
        """Return what a stage reads: the resolved section of its group, and the repetitions of a shared file."""
        sections = self.grids.resolve(STAGES[stage].shared(point))
        return {key: sections[key] for key in (STAGES[stage].group, *([] if stage == "audit" else [REPETITIONS]))}

    def _inputs(self, stage: str, point: Point) -> dict[str, tuple[str, ...]]:
        if stage == "prepare":
            kind = self.grids.kind("dataset", point.dataset)
            needed = availability.needs_files(kind)
            return {"manifest": (f"{availability.RAW}/{kind}/{availability.RECORD}",) if needed else ()}
        read = {"dataset": "prepare"} | ({"classifier": "train", "transport": "transport"} if stage == "audit" else {})
        return {option: tuple(filter(None, [self.path(source, point)])) for option, source in read.items()}

    def code(self, stage: str, **plugin: str) -> str:
        """Return the hash of the code of a job: its stage, its plug-in and all their imports.

        ``plugin`` is at most one of ``dataset``, ``method``, ``transport``, ``audit`` and ``study``, with the name in
        the path of the job. The hash for a study includes its list of artefacts.
        """
        group, name = next(iter(plugin.items()), ("", ""))
        if group == "study":
            code = code_hash((f"pipeline.stages.{stage}", *registry.modules(name)), ROOT)
            return digest([code, *map(repr, registry.declared(name))])
        modules = [module_name(group, self.grids.kind(group, name))] if group else []
        return code_hash((f"pipeline.stages.{stage}", *modules), ROOT)

    # The resources of jobs, and which jobs start first.

    def requests(self, rule: str) -> dict[str, Callable[[Any, int], Any]]:
        """Return the ``resources:`` of a rule, each as a function of wildcards and attempt."""

        def function(key: str) -> Callable[[Any, int], Any]:
            return lambda wildcards, attempt: self.requested(rule, wildcards, attempt).get(key)

        # Snakemake calls each function for each job, so resources that no setting names have none.
        named = {key for setting in self.resources for key in setting.values}
        return {key: function(key) for key in REQUESTED if key in named}

    def requested(self, rule: str, wildcards: Mapping[str, str], attempt: int = 1) -> dict[str, Any]:
        """Return what a job requests at an attempt (from 1). A file that studies share belongs to its first study.

        A job of several tasks requests the most that one of them requests. It requests this time once for each minute
        that its tasks are expected to take.
        """
        names = {"scale": self.scale, **dict(wildcards.items())}
        if rule not in STAGES:
            return requested(self.resources, rule, names, attempt)
        owners = self.owners_of(rule, names)
        each = [self.requested_by_task(*owner, attempt) for owner in owners]
        found = {key: max(one[key] for one in each if key in one) for key in chain.from_iterable(each)}
        if len(owners) > 1:
            found["seconds"] = sum(self._seconds(*owner) for owner in owners)
            found["runtime"] *= math.ceil(found["seconds"] / SHORT["seconds"])
        return found

    def _requested_by_task(self, stage: str, point: Point, attempt: int = 1) -> Mapping[str, Any]:
        """Return what a task requests."""
        names = {"scale": self.scale, **STAGES[stage].names(point), "study": point.study, "block": point.block}
        return requested(self.resources, stage, names, attempt)

    def _seconds(self, stage: str, point: Point) -> int:
        """Return the expected seconds of a task."""
        return int(self.requested_by_task(stage, point).get("seconds", 1))

    @cached_property
    def _later(self) -> dict[str, int]:
        """Return the number of pages that come after each file: the first page, then the studies in their order."""
        pages = [self.first_points, *(self.planned[study] for study in self.in_order)]
        found: dict[str, int] = {}
        for after, points in enumerate(reversed(pages)):
            found |= {path: after for point in points for path in self.paths(point)}
        return found

    @property
    def in_order(self) -> list[str]:
        """Return the studies in the order in which they are completed."""
        order = self.conf["config"].get("order", [])
        return sorted(self.studies, key=lambda study: order.index(study) if study in order else len(order))

    @cached_property
    def first_points(self) -> list[Point]:
        """Return the points of the first study that are quick, or none if all points are, or no point is.

        A part is quick if none of its jobs is expected to take longer than :data:`QUICK`.
        """
        points = self.points(self.in_order[0]) if self.in_order and not self.finished else []
        made = [(point, stage) for point in points for stage in STAGES if self.path(stage, point)]
        slow = {point.part for point, stage in made if self._seconds(stage, point) > QUICK}
        return [point for point in points if slow and point.part not in slow]

    @property
    def first_page(self) -> tuple[str, ...]:
        """Return the first study if its first page is drawn before the study is complete, otherwise nothing."""
        return tuple(self.in_order[:1]) if self.first_points else ()

    def only_first(self) -> Run:
        """Return the run of the points on the first page."""
        run = copy(self)
        run.planned = {**self.planned, **dict.fromkeys(self.first_page, self.first_points)}
        return run

    # What the other rules receive.

    def collect(self, study: str) -> list[dict[str, Any]]:
        """Return the path, the block and the grid settings of each audit of a study."""
        return [{"path": self.path("audit", p), "block": p.block, "columns": p.columns()} for p in self.points(study)]

    def sweep(self, sweep: str) -> dict[str, Any]:
        """Return the parameters of the summary and figure of a sweep.

        Raises InvalidInput if the figure or the grid uses an unknown key. Snakemake does not notice this itself if the
        rows already exist.
        """
        declaration = self.conf.declaration(sweep)
        Figure.of(sweep, declaration)
        for point in self.points(sweep):
            self.grids.resolve(point)
        return {"sweep": declaration}

    def artefacts(self, study: str) -> dict[str, Any]:
        """Return the parameters of the tables and figures of a study.

        They are its declaration, all resolved sections, and the same sections at the published scale without the user's
        settings. The stamps of the artefacts state the difference. ``left_out`` and ``not_chosen`` list the
        points of the grid that this run omits, if any: of its own data sets, and of others. ``unfinished`` lists those
        that it computes after a first page. ``names`` maps files to the names in the report.
        """
        points, scale = self.points(study), self.conf[f"scale/{self.scale}"]
        omitted: dict[str, list[dict[str, Any]]] = {}
        parts = ("part", "block", "dataset", "method")
        later = set() if self.finished else set(self.grids.planned(study))
        for p in self.grids.declared(study):
            if p not in set(points):
                own = p.dataset in (self.datasets or {p.dataset})
                key = "not_chosen" if not own else "unfinished" if p in later else "left_out"
                omitted.setdefault(key, []).append({**{part: getattr(p, part) for part in parts}, **dict(p.settings)})
        shown = [(stage, point) for stage in ("prepare", "train", "audit") for point in points]
        return {
            **omitted,
            "experiment": self.conf.declaration(study),
            "scale": {key: scale[key] for key in ("name", "description") if key in scale},
            "sections": sections(self.grids, points),
            "published": sections(self._published, points),
            "names": {self.path(stage, point): "/".join(id_of(stage, point)) for stage, point in shown},
        }

    def inputs(self, study: str) -> dict[str, Any]:
        """Return the configuration, and the files with their names, from which the artefacts of a study are made."""
        config = self.artefacts(study)
        names, stages = config.pop("names"), {"datasets": "prepare", "classifiers": "train", "audits": "audit"}
        files = {kind: [(path, names[path]) for path in self.files(stage, study)] for kind, stage in stages.items()}
        return {"study": study, "config": config, **files}

    @cached_property
    def _published(self) -> Grids:
        """Resolve points at the published scale, without the user's settings."""
        return Grids(self.conf, PUBLISHED)

    def benchmarks(self, study: str) -> dict[str, str]:
        """Return the benchmark files of the jobs of a study, by keys such as ``paper/train/adult/sensr``."""
        points = [point for point in self.points(study) if self.has_data(point)]
        every = [(stage, STAGES[stage].names(p).values()) for stage in ("train", "transport", "audit") for p in points]
        made = [(stage, names) for stage, names in every if names]
        return {"/".join([self.scale, stage, *names]): benchmark(self.scale, stage, names) for stage, names in made}

    # The start of a run, and the data that it does not have.

    def find_absent(self, environment: MutableMapping[str, str]) -> None:
        """Find the unavailable data before anything is fetched, and pass them to all processes of the run.

        Only the planning process decides, because files that appear later would change the jobs on a node.
        """
        kinds = {self.grids.kind("dataset", point.dataset) for point in self.all_points}
        raw = self.folder / availability.RAW
        self.absent = frozenset(k for k in kinds if availability.status(k, self.source, raw / k) == "absent")
        environment[invocation.ABSENT] = " ".join(sorted(self.absent))

    def check(self, cores: int | None, environment: Mapping[str, str]) -> None:
        """Make all jobs of the studies, with their settings and the hash of their code. Raise what this raises.

        Snakemake ignores errors in the parameters and inputs of files that already exist. Raises InvalidInput for a run
        without a core and for a mirror that does not exist.
        """
        if cores is not None and cores < 1:
            # Snakemake would wait for a core forever. None leaves the limit to a cluster.
            raise InvalidInput(f"CORES={cores}: no job could start", option="cores", remedy="Give at least one core")
        availability.check_mirror(environment, self.source)
        for study in self.studies:
            self.code("draw", study=study)
            for point in self.planned[study]:
                point.columns()
                for path in self.paths(point):
                    self._task(*self.owners[path])

    def export_tracker(self, environment: MutableMapping[str, str], words: Collection[str] = ()) -> None:
        """Pass the tracker to the jobs through the environment, because a changed tracker must not rerun jobs.

        The group of a tracked run is the sweeps in the ``words`` of the command line, otherwise the studies.
        """
        named = [sweep for sweep in self.sweeps if f"results/sweeps/{self.scale}/{sweep}/summary.csv" in words]
        group = "+".join(named or self.studies)
        environment["PIPELINE_TRACKER"] = encoded({**self.tracker, "group": group, "scale": self.scale})

    def twin(self, dataset: str) -> list[str]:
        """Return the twin files of a data set."""
        files = sorted((self.root / "data" / "twins").glob(f"{dataset}[._]*parquet"))
        return [self.committed(file.relative_to(self.root)) for file in files]

    def committed(self, path: Path | str) -> str:
        """Return the path of a committed file for the rules: relative if the working folder is the checkout."""
        return str(path if self.folder.resolve() == self.root.resolve() else self.root / path)

    def replaced(self, dataset: str) -> int:
        """Return how often published files have replaced a substitute, one more if they can do so now."""
        raw = self.folder / availability.RAW / dataset
        return availability.replaced(raw) + (self.source == "auto" and availability.superseded(dataset, raw))


def requested(settings: Iterable[Setting], rule: str, names: Mapping[str, str], attempt: int = 1) -> dict[str, Any]:
    """Return what settings of resources request for a job by the names in its path.

    The n-th attempt requests n times the memory and n times the time. Both parts of ``audit+transport`` count.
    """
    parts = {"rule": rule, **names}
    if "+" in parts.get("audit", ""):
        parts["audit"], parts["transport"] = parts["audit"].split("+", 1)
    found = merged(settings, parts)
    return {key: value * attempt if key in GROWING else value for key, value in found.items()}


def benchmark(scale: str, stage: str, names: Iterable[str]) -> str:
    """Return the path of the benchmark of a job."""
    return f"results/benchmarks/{scale}/{stage}/{'.'.join(names)}.tsv"


def encoded(section: Any) -> str:
    """Encode a section as one line of JSON, as the stages read it."""
    return json.dumps(section, sort_keys=True)
