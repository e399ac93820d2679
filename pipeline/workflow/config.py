"""Hydra's configuration as the rules see it: what is run, and what each rule passes to its stage.

:mod:`pipeline.workflow.invocation` reads what is asked for, :mod:`pipeline.workflow.selection` chooses the points,
:mod:`pipeline.workflow.resolution` their values, and :mod:`pipeline.workflow.plan` makes jobs of them.
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

from pipeline.report import registry
from pipeline.workflow import availability, composition, failures, invocation, paths, warm
from pipeline.workflow.code_hash import code_hash, digest
from pipeline.workflow.composition import Point, composed, encoded, plain
from pipeline.workflow.invocation import ABSENT
from pipeline.workflow.paths import STAGES
from pipeline.workflow.plan import Job, Plan
from pipeline.workflow.plugins import module_name
from pipeline.workflow.resolution import Resolver
from pipeline.workflow.resources import Resources
from pipeline.workflow.selection import Selection
from pipeline.workflow.settings import of_user
from pipeline.workflow.sweep import Figure

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
REFERENCES = "data/reference"
SHOWN = {"prepare": "datasets", "audit": "audits", "train": "classifiers"}
"""The stages that make what the report shows, with the stage's options for their files."""
PUBLISHED = "paper"
"""The scale that runs everything as published."""
NO_NAME = "(?!)"
"""The pattern that fits no name."""


class Workflow:
    """The resolved configuration of one invocation: a scale, a data source, the studies and the user's overrides.

    ``asked``, ``collect``, ``sweep`` and ``artefacts`` return what a rule passes to its stage: the whole of what the
    stage computes with, and nothing else, so that a changed value re-runs what reads it. ``plan`` has a job for each
    file.
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
        if source not in availability.ASKED:
            raise ValueError(f"source={source!r} (DATA_SOURCE): expected auto, official or twin")
        self.resources = Resources.read(self.conf, scale)
        self.overrides = tuple(map(of_user, overrides))
        self._resolver = Resolver(self.conf, scale, self.overrides)
        self.tracker = plain(composed(self.conf, (f"tracker={tracker}",)).tracker)
        self.selection = Selection.of(self.conf, scale, ROOT, studies, frozenset(datasets), finished)
        self.studies, self.sweeps = self.selection.studies, self.selection.sweeps
        self.finished, self.points = finished, self.selection.points
        self.plan = self._plan(invocation.absent(os.environ))

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str]) -> Workflow:
        """Return the invocation that ``snakemake --config`` and the environment ask for.

        Keys and variables are those of :data:`pipeline.workflow.invocation.INVOCATION`. Raises ValueError for another.
        """
        defaults = {"scale": "laptop", "source": composed(CONF).data.source, "tracker": ""}
        asked = invocation.arguments(config, environment, defaults)
        of_scale = composed(CONF, (f"scale={asked['scale']}",)).scale.get("tracker", "offline")
        return cls(**{**asked, "tracker": asked["tracker"] or of_scale})

    def _plan(self, absent: frozenset[str]) -> Plan:
        points = [point for study in self.selection.planned for point in self.selection.planned[study]]
        return Plan(self.scale, points, self._resolver, self.resources, self.kind, self.code, absent)

    # What stages compute with.

    def section(self, group: str, point: Point) -> dict[str, Any]:
        """The resolved values of a part of a point, with its ``name`` and its module's ``kind``."""
        return dict(self._resolver.sections(point)[group])

    def part(self, group: str, name: str, dataset: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """A section by its name, for this dataset, with settings such as ``{"method.epochs": 3}`` laid over it."""
        empty = Point("", "", dataset, "", "", tuple(settings.items()))
        return self.section(group, replace(empty, **{group: name}))  # type: ignore[arg-type]

    def asked(self, stage: str, *names: str) -> dict[str, Any]:
        """What a file of a stage depends on, besides the files that it is made from; ``names`` as in its path."""
        return self.plan.asked(stage, *names)

    def collect(self, study: str) -> list[dict[str, Any]]:
        """For each audit file of a study: its path, its block and the values that the grid sets there."""
        return [
            {"path": self.audit_file(point), "block": point.block, "columns": point.columns()}
            for point in self.points(study)
        ]

    def sweep(self, sweep: str) -> dict[str, Any]:
        """What a sweep's summary and figure depend on, besides the rows.

        Raises ValueError for a figure of what the grid does not have, and for a key that the files do not have: where
        the rows are there already, Snakemake takes no notice of audits that cannot be planned.
        """
        declaration = composition.experiment(self.conf, sweep)
        Figure.of(sweep, declaration)
        for point in self.points(sweep):
            self._resolver.sections(point)
        return {"sweep": declaration}

    def artefacts(self, study: str) -> dict[str, Any]:
        """What a study's tables and figures depend on, besides the rows.

        Its declaration, every resolved section, and the same sections at the published scale, untouched by the user:
        what differs between the two is what an artefact's stamp has to say. ``left_out``, where there is any: the
        points of the grid that this invocation does not run. ``names``: what the report calls the values in files.
        """
        scale = plain(composed(self.conf, (f"scale={self.scale}",)).scale)
        points = self.points(study)
        omitted = [p for p in self.selection.declared(study, self.selection.datasets) if p not in set(points)]
        names = ("part", "block", "dataset", "method")
        places = [{**{name: getattr(p, name) for name in names}, **dict(p.settings)} for p in omitted]
        return {
            **({"left_out": places} if places else {}),
            "experiment": composition.experiment(self.conf, study),
            "scale": {key: scale[key] for key in ("name", "description") if key in scale},
            "sections": _sections(self._resolver, points),
            "published": _sections(self._as_published, points),
            "names": self._names(study),
        }

    @cached_property
    def _as_published(self) -> Resolver:
        """The values of the published scale, untouched by the user."""
        return Resolver(self.conf, PUBLISHED, ())

    def code(self, stage: str, **plugin: str) -> str:
        """Return the hash of the code that a job computes with: its stage, its plug-in and all that they import.

        ``plugin`` is at most one of ``dataset``, ``method``, ``transport``, ``audit`` and ``study``, with the name in
        the job's path. Of a study the list of its artefacts counts too.
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
        """The module behind a name in a path: its configuration's ``kind``, or the configuration's own name."""
        if (group, name) not in self._kinds:
            chosen = re.split("[@+]", name)[0]
            self._kinds[group, name] = str(composition.section(self.conf, group, chosen).get("kind", chosen))
        return self._kinds[group, name]

    # What the rules look up.

    def job(self, stage: str, wildcards: Mapping[str, str]) -> Job:
        """The job that makes a file of a stage, by a rule's wildcards."""
        return self.plan.job(stage, paths.names_of(stage, wildcards))

    def requests(self, stage: str) -> dict[str, Callable[[Any, int], Any]]:
        """The ``resources:`` of a stage's rule, each a function of wildcards and attempt; None asks for nothing."""
        return self.resources.functions(lambda wildcards, attempt: self.job(stage, wildcards).asks(attempt))

    def to_be_had(self) -> str:
        """A pattern for the names of the data sets that can be had, as far as is known."""
        return f"(?!{self.not_to_be_had()}/)[^/]+"

    def not_to_be_had(self) -> str:
        """A pattern for the names of the data sets that cannot be had."""
        return f"({'|'.join(map(re.escape, self.plan.names_absent())) or NO_NAME})"

    def not_run(self, wildcards: Mapping[str, str]) -> dict[str, str]:
        """What stands for an audit whose data cannot be had, as the stage ``absent`` reads it."""
        point = self.plan.placed["audit"][paths.names_of("audit", wildcards)]
        return {name: getattr(point, name) for name in ("dataset", "method", "audit")}

    # Where the files of a study lie.

    def twin(self, dataset: str) -> list[str]:
        """The rows of a dataset's twins, if it has any."""
        files = sorted((ROOT / "data" / "twins").glob(f"{dataset}[._]*parquet"))
        return [f"data/twins/{file.name}" for file in files]

    def audit_file(self, point: Point) -> str:
        """The result of one point's audit."""
        return paths.file(self.scale, "audit", paths.place(point))

    def files(self, stage: str, study: str) -> list[str]:
        """What a stage makes for a study, each once: of data that can be had, and all audits, which say what is not."""
        points = [p for p in self.points(study) if stage == "audit" or self.plan.can_be_made(p)]
        places = dict.fromkeys(paths.place(point, stage) for point in points)
        return [paths.file(self.scale, stage, names) for names in places if all(names)]

    def sources(self, study: str) -> dict[str, Any]:
        """What a study's tables and figures are drawn from, by the names of the stage's options."""
        return {name: self.files(stage, study) for stage, name in SHOWN.items()}

    @property
    def referenced(self) -> tuple[str, ...]:
        """The studies that have a reference."""
        return tuple(name for name in composition.declared(self.conf, "experiment") if self.has_reference(name))

    def has_reference(self, study: str, root: Path = ROOT) -> bool:
        """Whether the study has a reference, of the grid that it declares now for the datasets of its runs."""
        path = root / REFERENCES / study / "manifest.json"
        if not path.is_file():
            return False
        grid = set(json.loads(path.read_text(encoding="utf-8"))["grid"])
        datasets = {part.split("/")[1] for part in grid}
        return grid == {point.part for point in self.selection.declared(study, datasets)}

    def beside(self, study: str) -> str:
        """The option by which a study's artefacts show what this invocation leaves out: from its reference.

        Raises ValueError where something is left out and there is no reference.
        """
        if self.points(study) == self.selection.run(study):
            return ""
        if study not in self.referenced:
            raise ValueError(
                f"FINISHED and DATASETS leave out points of {study}, and it has no reference to take them from: run "
                "all of it, or other studies (STUDY)"
            )
        return f"--beside {REFERENCES}/{study}"

    def against(self, study: str) -> str:
        """The option by which a study's artefacts are held against its reference, if it has one."""
        return f"--against {REFERENCES}/{study}" if study in self.referenced else ""

    def reference_files(self, study: str) -> list[str]:
        """The files of a study's reference; none where it has none."""
        found = sorted((ROOT / REFERENCES / study).rglob("*")) if study in self.referenced else []
        return [str(path.relative_to(ROOT)) for path in found if path.is_file()]

    def present(self, *files: str) -> list[str]:
        """Those of these files that are there."""
        return [path for path in files if (ROOT / path).is_file()]

    def artefact_files(self, study: str, below: str = "results/") -> list[str]:
        """Every file of a study's tables, then of its figures."""
        return paths.artefact_files(study, below)

    def incomplete(self, study: str, below: str = "results/") -> bool:
        """Whether one of the tables and figures is missing that a study declares."""
        return not all(Path(path).is_file() for path in paths.artefact_files(study, below))

    def artefact_names(self, kind: str) -> str:
        """A pattern for the names of all tables or figures."""
        known = composition.declared(self.conf, "experiment")
        names = {one.name for study in known for one in registry.declared(study) if one.kind == kind}
        return "|".join(sorted(map(re.escape, names)))

    def caption(self, study: str, name: str) -> str:
        """The caption of an artefact that is drawn, as Snakemake's report takes it."""
        path = Path("results", "captions", study, f"{name}.rst")
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    # The run itself.

    def warm_up(self, workflow: Any) -> None:
        """Start the process that local jobs are forked from, where there are enough of them."""
        jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name in STAGES or job.rule.name == "not_run"]
        if workflow.local_exec and not workflow.touch and len(jobs) >= warm.WORTHWHILE:
            warm.start(os.environ)

    def announce(self) -> None:
        """Leave a record of this run in its folder: Snakemake's lock does not say who has it."""
        from pipeline.workflow import resume

        resume.record(Path.cwd())

    def account_for(self, dag: Any, failed: Iterable[Any], root: Path = ROOT) -> str:
        """Write down what failed in a run of Snakemake and what is missing because of it; the same in a few lines."""
        artefacts = {study: [one.name for one in registry.declared(study)] for study in self.studies}
        content = failures.account(dag, failed, artefacts, root)
        if not content["failed"]:
            return "No job failed: the run was ended from outside."
        without = {one["study"] for one in content["missing"]}
        try:
            failures.save(content, self.scale, [study for study in self.studies if study not in without], root)
        except OSError as error:
            return f"{failures.terminal(content)}\nNo account could be written: {error}"
        return failures.terminal(content)

    def forget_failures(self, root: Path = ROOT) -> None:
        """Take the account of an earlier run away once all is made that it says is missing."""
        failures.forget(root)

    def export_tracker(self, environment: MutableMapping[str, str], words: Iterable[str] = ()) -> None:
        """Hand the tracker to the jobs by the environment: what only watches a job must not cause it to run again.

        Runs are grouped by the sweeps that the ``words`` of the command line ask for, or else by the studies.
        """
        group = "+".join(invocation.sweeps_among(words, self.sweeps, self.scale) or self.studies)
        environment["PIPELINE_TRACKER"] = encoded({**self.tracker, "group": group, "scale": self.scale})

    def decide_absent(self, environment: MutableMapping[str, str], root: Path = ROOT) -> None:
        """Find the data that are known not to be had, before anything is fetched, and tell all processes of the run.

        It is decided once, by the process that plans: a node that looked for itself would find what came since.
        """
        kinds = sorted({self.kind("dataset", point.dataset) for point in self.plan.placed["prepare"].values()})
        raw = root / availability.RAW
        absent = [kind for kind in kinds if availability.standing(kind, self.source, raw / kind) == "absent"]
        environment[ABSENT] = " ".join(absent)
        self.plan = self._plan(frozenset(absent))

    def superseded(self, dataset: str, root: Path = ROOT) -> bool:
        """Return whether a dataset has a stand-in, nobody asked for it, and the published files have come to hand."""
        return self.source == "auto" and availability.superseded(dataset, root / availability.RAW / dataset)

    def _names(self, study: str) -> dict[str, str]:
        """Return the name of the data set, the classifier or the audit in each file, as in the ids of the points."""
        places = {stage: {paths.place(point, stage) for point in self.points(study)} for stage in SHOWN}
        return {
            paths.file(self.scale, stage, names): "/".join(names[1:] if stage == "audit" else names)
            for stage, found in places.items()
            for names in sorted(found)
        }


def _sections(resolver: Resolver, points: Iterable[Point]) -> dict[str, Any]:
    """Return the resolved sections of points, by the file of the audit."""
    return {
        paths.file(resolver.scale, "audit", paths.place(point)): {
            **resolver.sections(point),
            "id": list(paths.place(point)[1:]),
            "part": point.part,
            "map": point.name("transport") if point.transport else "",
        }
        for point in points
    }
