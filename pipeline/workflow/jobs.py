"""Which files one job makes: those that agree in the parts which ``together`` in ``conf/resources.yaml`` names.

Every process imports what it computes with, some seconds of processor; where the work itself takes less, files that
need the same go together, if the same studies ask for them: an invocation makes nothing that it does not ask for. Who
belongs together follows from ``conf/`` alone, whatever studies an invocation asks for: else the same files would be
another job's the next time, and be made again.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.workflow.resources import Resources


@dataclass(frozen=True)
class Stage:
    """A stage that makes files for points: whose section it computes with, and where what it makes lies.

    ``parts`` of a point stand in the path below ``folder``; ``title`` is what the progress display calls a job.
    """

    group: str
    parts: tuple[str, ...]
    folder: str
    title: str

    @property
    def groups(self) -> tuple[str, ...]:
        """The parts of a point that may say what is computed."""
        return tuple(part for part in self.parts if part not in ("study", "block"))


STAGES = {
    "prepare": Stage("dataset", ("dataset",), "data/prepared", "prepare {dataset}"),
    "train": Stage("method", ("dataset", "method"), "results/models", "train {method} on {dataset}"),
    "transport": Stage("transport", ("dataset", "transport"), "results/transports", "map {dataset} by {transport}"),
    "audit": Stage(
        "audit",
        ("study", "block", "dataset", "method", "audit"),
        "results/audits",
        "audit {method} on {dataset} ({block}: {audit})",
    ),
}
"""In the order in which they wait for each other."""
OWNER = ("study", "block", "kind")
"""Parts that a file has from the first point that asks for it, ``kind`` being the module of its dataset."""
NAMED = 4
"""So many names of a part stand in a title; more are counted."""


@dataclass(frozen=True)
class Job:
    """The files of a ``stage`` that one process makes, one after the other: of each the names of its parts."""

    stage: str
    name: str
    members: tuple[Mapping[str, str], ...]

    @property
    def rule(self) -> str:
        """The name of the job's rule."""
        return f"{self.stage}_{self.name}"

    @property
    def places(self) -> list[tuple[str, ...]]:
        """For each file the names that stand in its path."""
        return [tuple(member[part] for part in STAGES[self.stage].parts) for member in self.members]

    @property
    def title(self) -> str:
        """What the progress display calls the job."""
        if len(self.members) == 1:
            return STAGES[self.stage].title.format(**self.members[0])
        told = {}
        for part in STAGES[self.stage].parts:
            names = list(dict.fromkeys(member[part].split("@")[0] for member in self.members))
            told[part] = ", ".join(names) if len(names) <= NAMED else f"{len(names)} {part}s"
        return f"{STAGES[self.stage].title.format(**told)}, {len(self.members)} together"

    def asks(self, resources: Resources, attempt: int = 1) -> dict[str, Any]:
        """What the job asks a scheduler for: of its files' times the sum, of numbers the most, else the last word."""
        found: dict[str, Any] = {}
        for member in self.members:
            for key, value in resources.of(self.stage, member, attempt).items():
                if key in ("runtime", "seconds"):
                    found[key] = found.get(key, 0) + value
                else:
                    found[key] = max(found.get(key, value), value) if isinstance(value, int) else value
        return found


def jobs(
    stage: str, points: Iterable[Mapping[str, str]], resources: Resources, sweeps: Collection[str] = ()
) -> list[Job]:
    """The jobs of a stage that make what the ``points`` ask for, each given by the names of its parts.

    Of which ``sweeps`` ask for a file matters only where no study does, so that a new one moves no job of theirs.
    Raises ValueError where two jobs would have one name.
    """
    members: dict[tuple[str, ...], Mapping[str, str]] = {}
    asking: dict[tuple[str, ...], list[str]] = {}
    for point in points:
        place = tuple(point[part] for part in STAGES[stage].parts)
        if all(place):
            members.setdefault(place, {part: point[part] for part in (*OWNER, *STAGES[stage].parts)})
            asked, study = asking.setdefault(place, []), point["study"]
            if study not in asked and not (asked and study in sweeps):
                asked.append(study)
    found: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for place, member in members.items():
        together = resources.of(stage, member).get("together")
        if wrong := sorted(set(together or ()) - set(member)):
            raise ValueError(
                f"conf/resources.yaml: files of {stage} have no {wrong[0]} in common: together may be of "
                f"{', '.join(member)}"
            )
        key = ("_".join(asking[place]), *(member[part] for part in together)) if together else place
        found.setdefault(key, []).append(member)
    made = [Job(stage, _name(key), tuple(together)) for key, together in found.items()]
    names = [job.name for job in made]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two jobs have the name {min(twice)!r}: rename one of what they are made of")
    return made


def _name(key: Sequence[str]) -> str:
    """A job's name, of letters, digits and ``_`` alone: it is part of a rule's name."""
    return re.sub(r"\W+", "_", "_".join(key))
