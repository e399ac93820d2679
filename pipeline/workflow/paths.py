"""Where the files of a study lie: what each stage makes for a point, and the artefacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.report import registry
from pipeline.workflow.composition import GROUPS, Point

SAVED = {"table": ("tables", ("csv", "md", "tex")), "figure": ("figures", ("pdf", "png"))}
"""The folder of each kind of artefact, and the files that one is saved as."""


@dataclass(frozen=True)
class Stage:
    """A stage that makes one file for a point.

    ``group`` is the section that it computes with. The names of ``parts`` stand in the path below ``folder``.
    """

    group: str
    parts: tuple[str, ...]
    folder: str

    @property
    def groups(self) -> tuple[str, ...]:
        """The parts of a point that may say what is computed."""
        return tuple(part for part in self.parts if part not in ("study", "block"))


STAGES = {
    "prepare": Stage("dataset", ("dataset",), "data/prepared"),
    "train": Stage("method", ("dataset", "method"), "results/models"),
    "transport": Stage("transport", ("dataset", "transport"), "results/transports"),
    "audit": Stage("audit", ("study", "block", "dataset", "method", "audit"), "results/audits"),
}
"""In the order in which they wait for each other."""


def place(point: Point, stage: str = "audit") -> tuple[str, ...]:
    """Return the names in the path of what a stage makes for a point; ``audit+transport`` of an audit of a map."""
    names = {"study": point.study, "block": point.block, **{g: point.name(g) for g in GROUPS if getattr(point, g)}}
    if point.transport:
        names["audit"] = f"{names['audit']}+{names['transport']}"
    return tuple(names.get(part, "") for part in STAGES[stage].parts)


def file(scale: str, stage: str, names: tuple[str, ...]) -> str:
    """Return the path of what a stage makes."""
    return f"{STAGES[stage].folder}/{scale}/{'/'.join(names)}.npz"


def names_of(stage: str, wildcards: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names in the path of what a stage makes, of a rule's wildcards."""
    return tuple(wildcards[part] for part in STAGES[stage].parts)


def benchmark(scale: str, stage: str, names: tuple[str, ...]) -> str:
    """Return where the time that a file took is written down, as the rules have it."""
    return f"results/benchmarks/{scale}/{stage}/{'.'.join(names)}.tsv"


def artefact_files(study: str, below: str = "results/") -> list[str]:
    """Return every file of a study's tables, then of its figures."""
    return [
        f"{below}{folder}/{study}/{one.name}.{suffix}"
        for kind, (folder, suffixes) in SAVED.items()
        for one in registry.declared(study)
        if one.kind == kind
        for suffix in suffixes
    ]
