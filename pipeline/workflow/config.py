"""Hydra's configuration as the workflow sees it: studies, their points, and the section that each stage reads.

A *point* is one combination of dataset, method, audit and perhaps transport map that a study (``conf/experiment/``) or
a sweep (``conf/sweep/``) asks for. What values it has is the matter of
:mod:`pipeline.workflow.resolution`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairness_audits.messages import nearest
from pipeline.report import registry
from pipeline.workflow import availability, composition, failures
from pipeline.workflow.code_hash import code_hash, digest
from pipeline.workflow.composition import GROUPS, REPETITIONS, Point, composed, encoded, plain
from pipeline.workflow.jobs import STAGES
from pipeline.workflow.plan import Plan
from pipeline.workflow.plugins import module_name
from pipeline.workflow.resolution import Resolver, left_out
from pipeline.workflow.resources import Resources
from pipeline.workflow.settings import of_user
from pipeline.workflow.sweep import Figure

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
REFERENCES = "data/reference"
INVOCATION = {
    "scale": "SCALE", "study": "STUDY", "datasets": "DATASETS", "finished": "FINISHED", "source": "DATA_SOURCE",
    "tracker": "TRACKER", "set": "SET",
}  # fmt: skip
"""What one invocation may ask for: the keys of ``snakemake --config`` and the variables that stand for them."""
ABSENT = "PIPELINE_ABSENT"
"""The variable that tells the processes of a run which data cannot be had."""
SAVED = {"table": ("tables", ("csv", "md", "tex")), "figure": ("figures", ("pdf", "png"))}
"""The folder of each kind of artefact, and the files that one is saved as."""
SHOWN = {"prepare": "datasets", "audit": "audits", "train": "classifiers"}
"""The stages that make what the report shows, with the stage's options for their files."""
PUBLISHED = "paper"
"""The scale that runs everything as published."""


class Workflow:
    """The resolved configuration of one invocation: a scale, a data source, the studies and the user's overrides.

    Where ``datasets`` are named, the studies run on these alone, and those on others alone not at all. ``finished``
    are the points alone of the parts that a run has made whole, to look at it before its end.
    ``planned`` has the points of each study's grid that the scale runs.
    ``asked``, ``collect``, ``sweep`` and ``artefacts`` return what a rule passes to its stage: the whole of what the
    stage computes with, and nothing else, so that a changed value re-runs what reads it.
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
        if source not in availability.ASKED:
            raise ValueError(f"source={source!r} (DATA_SOURCE): expected auto, official or twin")
        self.resources = Resources.read(self.conf, scale)
        self.overrides = tuple(map(of_user, overrides))
        self._resolver = Resolver(self.conf, scale, self.overrides)
        self.tracker = plain(composed(self.conf, (f"tracker={tracker}",)).tracker)
        self.datasets = frozenset(datasets)
        for name in sorted(self.datasets):
            composition.section(self.conf, "dataset", name)
        self.studies = tuple(studies) or composition.declared(self.conf, "experiment")
        self.sweeps = composition.declared(self.conf, "sweep")
        if asked := sorted(set(self.studies) & set(self.sweeps)):
            raise ValueError(f"{asked[0]!r} is a sweep, not a study: run `snakemake sweep_{asked[0]}`")
        known = dict.fromkeys((*self.sweeps, *composition.declared(self.conf, "experiment"), *self.studies))
        self.finished = finished
        self.planned = {name: self._run(name, scale, () if name in self.sweeps else self.datasets) for name in known}
        if asked := ["FINISHED"] * finished + [f"DATASETS={', '.join(sorted(datasets))}"] * bool(datasets):
            self.studies = tuple(study for study in self.studies if self.points(study))
            if not self.studies:
                raise ValueError(f"{', '.join(asked)}: of these studies there is nothing at the {scale} scale")
        points = [point for study in known for point in self.planned[study]]
        self._points = {stage: self._placed(stage, points) for stage in STAGES}

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str]) -> Workflow:
        """The invocation that ``snakemake --config`` and the environment ask for.

        Keys and variables are those of :data:`INVOCATION`: study and datasets may name several, with spaces or commas,
        and set is a list of group.name.key=value parted by semicolons. The command line wins. Raises ValueError for
        another key.
        """
        if unknown := sorted(set(config) - set(INVOCATION)):
            hint = nearest(unknown[0], INVOCATION)
            raise ValueError(f"--config {unknown[0]}=... is unknown{hint}. There are: {', '.join(INVOCATION)}")

        def asked(key: str, default: str) -> str:
            given = (config.get(key), environment.get(INVOCATION[key]))
            return next((str(value) for value in given if value not in (None, "")), default)

        scale = asked("scale", "laptop")
        return cls(
            scale=scale,
            source=asked("source", composed(CONF).data.source),
            tracker=asked("tracker", composed(CONF, (f"scale={scale}",)).scale.get("tracker", "offline")),
            studies=asked("study", "").replace(",", " ").split(),
            datasets=asked("datasets", "").replace(",", " ").split(),
            finished=_yes_or_no("FINISHED", asked("finished", "no")),
            overrides=[text for text in asked("set", "").split(";") if text],
        )

    def points(self, study: str) -> tuple[Point, ...]:
        """The points of a study's grid that the scale runs; of the parts that were run whole, if these are asked for.

        What stands for an audit of data that cannot be had comes without a classifier, and is not finished.
        """
        every = self.planned[study]
        if not self.finished or study in self.sweeps:
            return every
        pending = {point.part for point in every if not all((ROOT / path).is_file() for path in self._made_of(point))}
        return tuple(point for point in every if point.part not in pending)

    def _made_of(self, point: Point) -> list[str]:
        """The classifier, if there is one, and the audit of a point."""
        places = {stage: self.place(point, stage) for stage in ("train", "audit")}
        return [self.file(stage, *place) for stage, place in places.items() if all(place)]

    def _run(self, study: str, scale: str, datasets: Collection[str] = ()) -> tuple[Point, ...]:
        every = self._declared(study, datasets)
        omitted = left_out(self.conf, scale, every)
        return tuple(point for point in every if point not in omitted)

    def _declared(self, study: str, datasets: Collection[str]) -> list[Point]:
        """The points of a study's grid, of these datasets alone if any are named."""
        return [p for p in composition.points(self.conf, study) if not datasets or p.dataset in datasets]

    def section(self, group: str, point: Point) -> dict[str, Any]:
        """The resolved values of a part of a point, with its ``name`` and its module's ``kind``."""
        return dict(self._resolver.sections(point)[group])

    def part(self, group: str, name: str, dataset: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """A section by its name, for this dataset, with settings such as ``{"method.epochs": 3}`` laid over it."""
        empty = Point("", "", dataset, "", "", tuple(settings.items()))
        return self.section(group, replace(empty, **{group: name}))  # type: ignore[arg-type]

    def asked(self, stage: str, *place: str) -> dict[str, Any]:
        """What a file of a stage depends on, besides the files that it is made from; ``place`` as in its path."""
        groups = STAGES[stage].groups
        known = self._points[stage]
        # A data set that no study names is as its own file says.
        point = known[place] if stage != "prepare" or place in known else Point("", "", place[0], "", "", ())
        if stage == "audit":
            return {"audit": self.section("audit", point)}
        # The file is shared by whatever study asks for it; how often a model is fitted is no matter of its data.
        settings = tuple(
            (key, value)
            for key, value in point.settings
            if key.split(".")[0] in groups or (key == REPETITIONS and stage != "prepare")
        )
        shared = Point("", "", point.dataset, "", "", settings)
        resolved = self._resolver.sections(replace(shared, **{group: getattr(point, group) for group in groups}))
        return {key: resolved[key] for key in (STAGES[stage].group, REPETITIONS)}

    def collect(self, study: str) -> list[dict[str, Any]]:
        """For each audit file of a study: its path, its block and the values that the grid sets there."""
        return [
            {"path": self.audit_file(point), "block": point.block, "columns": point.columns()}
            for point in self.points(study)
        ]

    def sweep(self, sweep: str) -> dict[str, Any]:
        """What a sweep's summary and figure depend on, besides the rows.

        Raises ValueError for a figure of what the grid does not have.
        """
        declaration = composition.experiment(self.conf, sweep)
        Figure.of(sweep, declaration)
        return {"sweep": declaration}

    def artefacts(self, study: str) -> dict[str, Any]:
        """What a study's tables and figures depend on, besides the rows.

        Its declaration, every resolved section, and the same sections at the published scale, untouched by the user:
        what differs between the two is what an artefact's stamp has to say. ``left_out``, where there is any: the
        points of the grid that this invocation does not run. ``names``: what the report calls the values in files.
        """
        published = (
            self
            if self.scale == PUBLISHED and not self.overrides
            else Workflow(PUBLISHED, studies=self.studies, conf=self.conf)
        )
        scale = plain(composed(self.conf, (f"scale={self.scale}",)).scale)
        run = set(self.points(study))
        omitted = [p for p in self._declared(study, self.datasets) if p not in run]
        names = ("part", "block", "dataset", "method")
        places = [{**{name: getattr(p, name) for name in names}, **dict(p.settings)} for p in omitted]
        return {
            **({"left_out": places} if places else {}),
            "experiment": composition.experiment(self.conf, study),
            "scale": {key: scale[key] for key in ("name", "description") if key in scale},
            "sections": self._sections(study),
            "published": published._sections(study, self.points(study)),
            "names": self._names(study),
        }

    def _placed(self, stage: str, points: Iterable[Point]) -> dict[tuple[str, ...], Point]:
        """The points by the place of what a stage makes for them; ValueError where two points would be one file.

        Points share what is made of the same values; an audit is each point's own.
        """
        placed: dict[tuple[str, ...], Point] = {}
        for point in points:
            place = self.place(point, stage)
            first = placed.setdefault(place, point)
            one, other = ([s for s in p.settings if s[0].split(".")[0] in STAGES[stage].groups] for p in (first, point))
            if one != other or (stage == "audit" and first is not point):
                raise ValueError(
                    f"{composition.place_of(self.conf, point.study, point.block)}: {dict(first.settings)} and "
                    f"{dict(point.settings)} would be one file, {'/'.join(place)}: give values that differ in a "
                    "letter, a digit or one of . + - _"
                )
        return placed

    # Where the files of a study lie.

    def twin(self, dataset: str) -> list[str]:
        """The rows of a dataset's twins, if it has any."""
        files = sorted((ROOT / "data" / "twins").glob(f"{dataset}[._]*parquet"))
        return [f"data/twins/{file.name}" for file in files]

    @staticmethod
    def place(point: Point, stage: str = "audit") -> tuple[str, ...]:
        """The names in the path of what a stage makes for a point; ``audit+transport`` of an audit of a map."""
        names = {"study": point.study, "block": point.block, **{g: point.name(g) for g in GROUPS if getattr(point, g)}}
        if point.transport:
            names["audit"] = f"{names['audit']}+{names['transport']}"
        return tuple(names.get(part, "") for part in STAGES[stage].parts)

    def file(self, stage: str, *place: str) -> str:
        """Where what a stage makes lies."""
        return f"{STAGES[stage].folder}/{self.scale}/{'/'.join(place)}.npz"

    def audit_file(self, point: Point) -> str:
        """The result of one point's audit."""
        return self.file("audit", *self.place(point))

    def files(self, stage: str, study: str) -> list[str]:
        """What a stage makes for a study, each once: of data that can be had, and all audits, which say what is not."""
        points = [p for p in self.points(study) if stage == "audit" or self.plan.can_be_made(p)]
        places = dict.fromkeys(self.place(point, stage) for point in points)
        return [self.file(stage, *place) for place in places if all(place)]

    def sources(self, study: str) -> dict[str, Any]:
        """What a study's tables and figures are drawn from, by the names of the stage's options."""
        rows = f"results/rows/{self.scale}/{study}.parquet"
        return {"rows": rows, **{name: self.files(stage, study) for stage, name in SHOWN.items()}}

    def maps_of(self, *names: str) -> list[str]:
        """The transport maps that an audit needs: one file or none; ``names`` as they stand in its path."""
        point = self._points["audit"][names]
        return [self.file("transport", *self.place(point, "transport"))] if point.transport else []

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
        return grid == {point.part for point in self._declared(study, {part.split("/")[1] for part in grid})}

    def beside(self, study: str) -> str:
        """The option by which a study's artefacts show what this invocation leaves out: from its reference.

        Raises ValueError where something is left out and there is no reference.
        """
        if self.points(study) == self._run(study, self.scale):
            return ""
        if study not in self.referenced:
            raise ValueError(
                f"FINISHED and DATASETS leave out points of {study}, and it has no reference to take them from: run "
                "all of it, or other studies (STUDY)"
            )
        return f"--beside {REFERENCES}/{study}"

    def reference_files(self, study: str) -> list[str]:
        """The files of a study's reference; none where it has none."""
        found = sorted((ROOT / REFERENCES / study).rglob("*")) if study in self.referenced else []
        return [str(path.relative_to(ROOT)) for path in found if path.is_file()]

    def present(self, *paths: str) -> list[str]:
        """Those of these files that are there."""
        return [path for path in paths if (ROOT / path).is_file()]

    def artefact_files(self, study: str, below: str = "results/") -> list[str]:
        """Every file of a study's tables, then of its figures."""
        return [
            f"{below}{folder}/{study}/{one.name}.{suffix}"
            for kind, (folder, suffixes) in SAVED.items()
            for one in registry.declared(study)
            if one.kind == kind
            for suffix in suffixes
        ]

    def captions(self, study: str) -> list[str]:
        """The caption of each artefact of a study, as Snakemake's report takes it."""
        return [f"results/captions/{study}/{one.name}.rst" for one in registry.declared(study)]

    def marked(self, study: str) -> list[str]:
        """Every file of a study's artefacts, for Snakemake's report to show one of each, with its caption."""
        from snakemake.io import report

        names = [one.name for one in registry.declared(study)]
        files = []
        for path in map(Path, self.artefact_files(study)):
            labels = {"artefact": registry.label(path.stem, names), "file": path.name}
            caption = Path("results", "captions", study, f"{path.stem}.rst").absolute()
            shown = path.suffix in (".csv", ".png")
            files.append(report(str(path), str(caption), category=study, labels=labels) if shown else str(path))
        return files

    def kind(self, group: str, name: str) -> str:
        """The module behind a name in a path: its configuration's ``kind``, or the configuration's own name."""
        chosen = re.split("[@+]", name)[0]
        return str(composition.section(self.conf, group, chosen).get("kind", chosen))

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

    def sweeps_among(self, words: Iterable[str]) -> list[str]:
        """The sweeps whose rules, ``sweep_<name>``, stand among the ``words`` of a command line.

        Raises ValueError for a sweep that there is not, with the nearest.
        """
        asked = [word.removeprefix("sweep_") for word in words if re.fullmatch(r"sweep_\w+", word)]
        for name in asked:
            if name not in self.sweeps:
                hint = nearest(name, self.sweeps)
                raise ValueError(f"there is no sweep {name!r}{hint}. There are: {', '.join(self.sweeps)}")
        return asked

    def export_tracker(self, environment: MutableMapping[str, str], sweeps: Sequence[str] = ()) -> None:
        """Hand the tracker to the jobs by the environment: what only watches a job must not cause it to run again.

        Runs are grouped by the ``sweeps`` that the invocation asks for, or else by its studies.
        """
        group = "+".join(sweeps or self.studies)
        environment["PIPELINE_TRACKER"] = encoded({**self.tracker, "group": group, "scale": self.scale})

    @cached_property
    def plan(self) -> Plan:
        """What is made by which job; nothing of data of which it was decided that they cannot be had."""
        return Plan(self, frozenset(os.environ.get(ABSENT, "").split()))

    def decide_absent(self, environment: MutableMapping[str, str], root: Path = ROOT) -> None:
        """Find the data that are known not to be had, before anything is fetched, and tell all processes of the run.

        It is decided once, by the process that plans: a node that looked for itself would find what came since.
        """
        kinds = sorted({self.kind("dataset", point.dataset) for point in self._points["prepare"].values()})
        raw = root / availability.RAW
        absent = [kind for kind in kinds if availability.standing(kind, self.source, raw / kind) == "absent"]
        environment[ABSENT] = " ".join(absent)

    def superseded(self, dataset: str, root: Path = ROOT) -> bool:
        """Return whether a dataset has a stand-in, nobody asked for it, and the published files have come to hand."""
        return self.source == "auto" and availability.superseded(dataset, root / availability.RAW / dataset)

    def _sections(self, study: str, of: Sequence[Point] = ()) -> dict[str, Any]:
        return {
            self.audit_file(point): {
                **self._resolver.sections(point),
                "id": list(self.place(point)[1:]),
                "part": point.part,
                "map": point.name("transport") if point.transport else "",
            }
            for point in of or self.points(study)
        }

    def _names(self, study: str) -> dict[str, str]:
        """Return the name of the data set, the classifier or the audit in each file, as in the ids of the points."""
        places = {stage: {self.place(point, stage) for point in self.points(study)} for stage in SHOWN}
        return {
            self.file(stage, *place): "/".join(place[1:] if stage == "audit" else place)
            for stage, found in places.items()
            for place in sorted(found)
        }


def _yes_or_no(name: str, text: str) -> bool:
    """``yes`` or ``no``, which YAML makes True and False of. Raises ValueError for anything else."""
    if (word := text.lower()) not in ("yes", "no", "true", "false"):
        raise ValueError(f"{name}={text}: expected yes or no")
    return word in ("yes", "true")
