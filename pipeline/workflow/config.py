"""The configuration of one run, as the rules read it.

:mod:`pipeline.workflow.invocation` reads the command line and the environment, :mod:`pipeline.workflow.selection`
chooses the points, :mod:`pipeline.workflow.resolution` their values, and :mod:`pipeline.workflow.plan` turns them into
jobs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest
from pipeline.report import registry
from pipeline.workflow import availability, composition, failures, invocation, paths, warm
from pipeline.workflow.code_hash import code_hash, digest
from pipeline.workflow.composition import Point, encoded
from pipeline.workflow.invocation import ABSENT
from pipeline.workflow.paths import STAGES
from pipeline.workflow.plan import Job, Plan
from pipeline.workflow.plugins import module_name
from pipeline.workflow.resolution import Resolver
from pipeline.workflow.resources import Resources
from pipeline.workflow.selection import Selection
from pipeline.workflow.settings import user_setting
from pipeline.workflow.sweep import Figure

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
REFERENCES = "data/reference"
SHOWN = ("prepare", "audit", "train")
"""Stages whose files the report reads."""
PUBLISHED = "paper"
"""The scale of the published experiments."""
NO_NAME = "(?!)"
"""A pattern that matches no name."""


class Workflow:
    """The resolved configuration of one run: a scale, a data source, the studies and the user's overrides.

    ``parameters``, ``collect``, ``sweep`` and ``artefacts`` return exactly the values that a stage reads, so a changed
    value reruns only the jobs that read it. ``plan`` has a job for each file.
    """

    def __init__(
        self,
        scale: str = "laptop",
        source: str = "auto",
        tracker: str = "offline",
        studies: Sequence[str] = (),
        overrides: Sequence[str] = (),
        datasets: Sequence[str] = (),
        finished: bool = False,
        conf: Path = CONF,
    ) -> None:
        self.conf = Path(conf)
        self.scale = scale
        self.source = source
        self._kinds: dict[tuple[str, str], str] = {}
        if source not in availability.DATA_SOURCES:
            raise InvalidInput(f"DATA_SOURCE={source}: expected auto, official or twin", option="source")
        self.resources = Resources.read(self.conf, scale)
        self.overrides = tuple(map(user_setting, overrides))
        self._resolver = Resolver(self.conf, scale, self.overrides)
        self.tracker = composition.section(self.conf, "tracker", tracker)
        self.selection = Selection.of(self.conf, scale, ROOT, studies, frozenset(datasets), finished)
        self.studies, self.sweeps = self.selection.studies, self.selection.sweeps
        self.finished, self.points = finished, self.selection.points
        self.plan = self._plan(invocation.absent(os.environ))

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str]) -> Workflow:
        """Return the configuration for ``snakemake --config`` and the environment.

        :data:`pipeline.workflow.invocation.INVOCATION` lists the keys and variables. Raises InvalidInput for others.
        """
        defaults = {"scale": "laptop", "source": composition.defaults(CONF)["data"]["source"], "tracker": ""}
        given = invocation.arguments(config, environment, defaults)
        of_scale = composition.section(CONF, "scale", given["scale"]).get("tracker", "offline")
        return cls(**{**given, "tracker": given["tracker"] or of_scale})

    def _plan(self, absent: frozenset[str]) -> Plan:
        points = [point for study in self.selection.planned for point in self.selection.planned[study]]
        return Plan(self.scale, points, self._resolver, self.resources, self.kind, self.code, absent, self.studies)

    # Parameters of the stages.

    def section(self, group: str, point: Point) -> dict[str, Any]:
        """Return the resolved section of one group of a point, with ``name`` and ``kind`` (the module)."""
        return dict(self._resolver.sections(point)[group])

    def part(self, group: str, name: str, dataset: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the section ``name`` for a data set, changed by settings such as ``{"method.epochs": 3}``."""
        empty = Point("", "", dataset, "", "", tuple(settings.items()))
        return self.section(group, replace(empty, **{group: name}))  # type: ignore[arg-type]

    def parameters(self, stage: str, *names: str) -> dict[str, Any]:
        """Return the parameters of a file of a stage, by the ``names`` in its path."""
        return self.plan.parameters(stage, *names)

    def collect(self, study: str) -> list[dict[str, Any]]:
        """Return the path, the block and the grid settings of each audit of a study."""
        return [
            {"path": self.audit_file(point), "block": point.block, "columns": point.columns()}
            for point in self.points(study)
        ]

    def sweep(self, sweep: str) -> dict[str, Any]:
        """Return the parameters of the summary and figure of a sweep.

        Raises InvalidInput if the figure or the grid uses an unknown key. Snakemake does not notice this itself if the
        rows already exist.
        """
        declaration = composition.experiment(self.conf, sweep)
        Figure.of(sweep, declaration)
        for point in self.points(sweep):
            self._resolver.sections(point)
        return {"sweep": declaration}

    def artefacts(self, study: str) -> dict[str, Any]:
        """Return the parameters of the tables and figures of a study.

        They are its declaration, all resolved sections, and the same sections at the published scale without the user's
        settings. The stamps of the artefacts state the difference. ``left_out`` and ``not_chosen`` list the points of
        the grid that this run omits, if any: of its own data sets, and of others. ``names`` maps files to the names in
        the report.
        """
        scale = composition.section(self.conf, "scale", self.scale)
        points = self.points(study)
        omitted: dict[str, list[dict[str, Any]]] = {}
        names = ("part", "block", "dataset", "method")
        for p in self.selection.declared(study):
            if p not in set(points):
                key = "left_out" if p.dataset in (self.selection.datasets or {p.dataset}) else "not_chosen"
                omitted.setdefault(key, []).append({**{name: getattr(p, name) for name in names}, **dict(p.settings)})
        return {
            **omitted,
            "experiment": composition.experiment(self.conf, study),
            "scale": {key: scale[key] for key in ("name", "description") if key in scale},
            "sections": _sections(self._resolver, points),
            "published": _sections(self._as_published, points),
            "names": self._names(study),
        }

    @cached_property
    def _as_published(self) -> Resolver:
        """Resolve points at the published scale, without the user's settings."""
        return Resolver(self.conf, PUBLISHED, ())

    def code(self, stage: str, **plugin: str) -> str:
        """Return the hash of the code of a job: its stage, its plug-in and all their imports.

        ``plugin`` is at most one of ``dataset``, ``method``, ``transport``, ``audit`` and ``study``, with the name in
        the path of the job. The hash for a study includes its list of artefacts.
        """
        artefacts = registry.declared(plugin["study"]) if "study" in plugin else ()
        if artefacts:
            package = artefacts[0].module.rpartition(".")[0]
            behind = sorted({f"{package}.comparison", *(one.module for one in artefacts)})
        else:
            behind = [module_name(group, self.kind(group, name)) for group, name in plugin.items()]
        code = code_hash((f"pipeline.stages.{stage}", *behind), ROOT)
        return digest([code, *map(repr, artefacts)]) if artefacts else code

    def kind(self, group: str, name: str) -> str:
        """Return the module for a name in a path: the ``kind`` in its configuration, or the name itself."""
        if (group, name) not in self._kinds:
            chosen = re.split("[@+]", name)[0]
            self._kinds[group, name] = str(composition.section(self.conf, group, chosen).get("kind", chosen))
        return self._kinds[group, name]

    # Values for the rules.

    def job(self, stage: str, wildcards: Mapping[str, str]) -> Job:
        """Return the job for the wildcards of a rule."""
        return self.plan.job(stage, paths.names_of(stage, wildcards))

    def requests(self, rule: str) -> dict[str, Callable[[Any, int], Any]]:
        """Return the ``resources:`` of a rule, as functions of wildcards and attempt. None requests nothing."""

        def requested(wildcards: Any, attempt: int) -> dict[str, Any]:
            if rule in STAGES:
                return self.job(rule, wildcards).requests(attempt)
            return self.resources.of(rule, dict(wildcards.items()), attempt)

        return self.resources.functions(requested)

    def available_datasets(self) -> str:
        """Return a pattern for the names of the data sets that are not known to be unavailable."""
        return f"(?!{self.unavailable_datasets()}/)[^/]+"

    def unavailable_datasets(self) -> str:
        """Return a pattern for the names of the unavailable data sets."""
        return f"({'|'.join(map(re.escape, self.plan.absent_names())) or NO_NAME})"

    def not_run(self, wildcards: Mapping[str, str]) -> dict[str, str]:
        """Return the names of an audit without data, as the stage ``absent`` reads them."""
        point = self.plan.placed["audit"][paths.names_of("audit", wildcards)]
        return {name: getattr(point, name) for name in ("dataset", "method", "audit")}

    # Files of a study.

    def twin(self, dataset: str) -> list[str]:
        """Return the twin files of a data set."""
        files = sorted((ROOT / "data" / "twins").glob(f"{dataset}[._]*parquet"))
        return [f"data/twins/{file.name}" for file in files]

    def audit_file(self, point: Point) -> str:
        """Return the file of the audit of a point."""
        return paths.file(self.scale, "audit", paths.place(point))

    def files(self, stage: str, study: str) -> list[str]:
        """Return the files of a stage for a study. Unavailable data have audit files only, which give the reason."""
        points = [p for p in self.points(study) if stage == "audit" or self.plan.has_data(p)]
        places = dict.fromkeys(paths.place(point, stage) for point in points)
        return [paths.file(self.scale, stage, names) for names in places if all(names)]

    @property
    def referenced(self) -> tuple[str, ...]:
        """Return the studies that have a reference."""
        return tuple(name for name in composition.declared(self.conf, "experiment") if self.has_reference(name))

    def has_reference(self, study: str, root: Path = ROOT) -> bool:
        """Return whether a study has a reference for the grid that it declares now."""
        grid = _recorded(study, root)
        datasets = {part.split("/")[1] for part in grid}
        return bool(grid) and grid == {point.part for point in self.selection.declared(study, datasets)}

    def fill_option(self, study: str) -> str:
        """Return the option that takes the parts that this run leaves out from the reference of the study, if there.

        The reference may be of an earlier grid that had them. What it does not have is drawn as not run.
        """
        points, every = self.points(study), self.selection.run(study)
        left_out = {point.part for point in every} - {point.part for point in points}
        held = points != every and (study in self.referenced or left_out & _recorded(study, ROOT))
        return f"--fill-from {REFERENCES}/{study}" if held else ""

    def regression_option(self, study: str) -> str:
        """Return the option that compares the run with the reference of the study, if it has one."""
        return f"--regression-check {REFERENCES}/{study}" if study in self.referenced else ""

    def reference_files(self, study: str) -> list[str]:
        """Return the files of the reference of a study, if it has one."""
        found = sorted((ROOT / REFERENCES / study).rglob("*")) if study in self.referenced else []
        return [str(path.relative_to(ROOT)) for path in found if path.is_file()]

    def present(self, *files: str) -> list[str]:
        """Return the files that exist."""
        return [path for path in files if (ROOT / path).is_file()]

    artefact_files = staticmethod(paths.artefact_files)

    def incomplete(self, study: str, below: str = "results/") -> bool:
        """Return whether a table or figure of a study is missing."""
        return not all(Path(path).is_file() for path in paths.artefact_files(study, below))

    def artefact_names(self, kind: str) -> str:
        """Return a pattern for the names of all tables or figures."""
        known = composition.declared(self.conf, "experiment")
        names = {one.name for study in known for one in registry.declared(study) if one.kind == kind}
        return "|".join(sorted(map(re.escape, names)))

    def index(self, below: str, study: str, name: str) -> str:
        """Return the index that is made together with an artefact. Raises InvalidInput if the study has no such one."""
        known = [one.name for one in registry.declared(study)]
        if name not in known:
            problem = f"{study} has no artefact {name!r}{nearest(name, known)}"
            raise InvalidInput(problem, option="name", remedy=f"It has: {', '.join(known)}")
        return f"results/{below}tables/{study}/index.json"

    def caption(self, study: str, name: str) -> str:
        """Return the caption of an artefact for Snakemake's report."""
        path = Path("results", "captions", study, f"{name}.rst")
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    # Start and end of a run.

    def warm_up(self, workflow: Any) -> None:
        """Start the process that forks local jobs, if there are enough of them."""
        jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name in STAGES or job.rule.name == "not_run"]
        if workflow.local_exec and not workflow.touch and len(jobs) >= warm.WORTHWHILE:
            warm.start(os.environ)

    def isolate(self, environment: MutableMapping[str, str], root: Path = ROOT) -> None:
        """Keep the user's own settings of the shell, Python and matplotlib out of the jobs."""
        from pipeline.workflow.isolation import isolate

        isolate(environment, root)

    def check(self, cores: int | None, environment: Mapping[str, str]) -> None:
        """Raise InvalidInput for a run without a core and for a mirror that does not exist."""
        invocation.check_cores(cores)
        availability.check_mirror(environment, self.source)

    def announce(self) -> None:
        """Record the owner of this run in its folder. Snakemake's lock does not name it."""
        from pipeline.workflow import resume

        resume.record(Path.cwd())

    def account_for(self, dag: Any, failed: Iterable[Any], root: Path = ROOT) -> str:
        """Write the summary of failures and return a short form for the terminal."""
        artefacts = {study: [one.name for one in registry.declared(study)] for study in self.studies}
        content = failures.account(dag, failed, artefacts, root)
        if not content["failed"]:
            return "No job failed. The run was stopped from outside."
        without = {one["study"] for one in content["missing"]}
        try:
            failures.save(content, self.scale, [study for study in self.studies if study not in without], root)
        except OSError as error:
            return f"{failures.terminal(content)}\nCannot write the summary of failures: {error}"
        return failures.terminal(content)

    def forget_failures(self, root: Path = ROOT) -> None:
        """Delete the summary of failures of an earlier run once the missing files exist."""
        failures.forget(root)

    def export_tracker(self, environment: MutableMapping[str, str], words: Iterable[str] = ()) -> None:
        """Pass the tracker to the jobs through the environment, because a changed tracker must not rerun jobs.

        The group of a tracked run is the sweeps in the ``words`` of the command line, otherwise the studies.
        """
        group = "+".join(invocation.sweeps_among(words, self.sweeps, self.scale) or self.studies)
        environment["PIPELINE_TRACKER"] = encoded({**self.tracker, "group": group, "scale": self.scale})

    def find_absent(self, environment: MutableMapping[str, str], root: Path = ROOT) -> None:
        """Find the unavailable data before anything is fetched, and pass them to all processes of the run.

        Only the planning process decides, because files that appear later would change the plan on a node.
        """
        kinds = sorted({self.kind("dataset", point.dataset) for point in self.plan.placed["prepare"].values()})
        raw = root / availability.RAW
        absent = [kind for kind in kinds if availability.status(kind, self.source, raw / kind) == "absent"]
        environment[ABSENT] = " ".join(absent)
        self.plan = self._plan(frozenset(absent))
        self.plan.check()
        for study in self.studies:
            self.code("artefacts", study=study)

    def superseded(self, dataset: str, root: Path = ROOT) -> bool:
        """Return whether published files can replace a substitute that the user did not request."""
        return self.source == "auto" and availability.superseded(dataset, root / availability.RAW / dataset)

    def _names(self, study: str) -> dict[str, str]:
        """Return the name of each data set, classifier and audit by file, as in the ids of the points."""
        places = {stage: {paths.place(point, stage) for point in self.points(study)} for stage in SHOWN}
        return {
            paths.file(self.scale, stage, names): "/".join(names[1:] if stage == "audit" else names)
            for stage, found in places.items()
            for names in sorted(found)
        }


def _sections(resolver: Resolver, points: Iterable[Point]) -> dict[str, Any]:
    """Return the resolved sections of points by audit file."""
    return {
        paths.file(resolver.scale, "audit", paths.place(point)): {
            **resolver.sections(point),
            "id": list(paths.place(point)[1:]),
            "part": point.part,
            "map": point.name("transport") if point.transport else "",
        }
        for point in points
    }


def _recorded(study: str, root: Path) -> set[str]:
    """Return the parts of the grid that the reference of a study was made from, none without a reference."""
    path = root / REFERENCES / study / "manifest.json"
    return set(json.loads(path.read_text(encoding="utf-8"))["grid"]) if path.is_file() else set()
