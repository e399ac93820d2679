"""Paths of the files of a study: the file of each stage for a point, and the artefacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.report import registry
from pipeline.workflow.composition import GROUPS, Point

SAVED = {"table": ("tables", ("csv", "md", "tex")), "figure": ("figures", ("pdf", "png"))}
"""The folder and the file types of each kind of artefact."""


@dataclass(frozen=True)
class Stage:
    """A stage that makes one file for a point.

    ``group`` is the section that it reads. The names of ``parts`` form the path below ``folder``.
    """

    group: str
    parts: tuple[str, ...]
    folder: str

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups of a point that affect the result."""
        return tuple(part for part in self.parts if part not in ("study", "block"))


STAGES = {
    "prepare": Stage("dataset", ("dataset",), "data/prepared"),
    "train": Stage("method", ("dataset", "method"), "results/models"),
    "transport": Stage("transport", ("dataset", "transport"), "results/transports"),
    "audit": Stage("audit", ("study", "block", "dataset", "method", "audit"), "results/audits"),
}
"""Stages in topological order."""


def place(point: Point, stage: str = "audit") -> tuple[str, ...]:
    """Return the names in the path of a file for a point. The last name of an audit of a map is ``audit+transport``."""
    names = {"study": point.study, "block": point.block, **{g: point.name(g) for g in GROUPS if getattr(point, g)}}
    if point.transport:
        names["audit"] = f"{names['audit']}+{names['transport']}"
    return tuple(names.get(part, "") for part in STAGES[stage].parts)


def file(scale: str, stage: str, names: tuple[str, ...]) -> str:
    """Return the path of the file of a stage."""
    return f"{STAGES[stage].folder}/{scale}/{'/'.join(names)}.npz"


def names_of(stage: str, wildcards: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names in the path of a file from the wildcards of a rule."""
    return tuple(wildcards[part] for part in STAGES[stage].parts)


def benchmark(scale: str, stage: str, names: tuple[str, ...]) -> str:
    """Return the path of the benchmark of a job."""
    return f"results/benchmarks/{scale}/{stage}/{'.'.join(names)}.tsv"


def artefact_files(study: str, below: str = "results/") -> list[str]:
    """Return the files of all tables and figures of a study."""
    return [
        f"{below}{folder}/{study}/{one.name}.{suffix}"
        for kind, (folder, suffixes) in SAVED.items()
        for one in registry.declared(study)
        if one.kind == kind
        for suffix in suffixes
    ]
