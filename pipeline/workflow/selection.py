"""The studies of a run and the points of their grids."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairness_audits.errors import InvalidInput
from pipeline.workflow import composition, paths
from pipeline.workflow.composition import Point
from pipeline.workflow.resolution import left_out


@dataclass(frozen=True)
class Selection:
    """The studies of a run.

    ``datasets`` restricts the studies to these data sets and drops studies without them. ``finished`` keeps only the
    parts that a run in ``root`` has completed.
    """

    conf: Path
    scale: str
    root: Path
    studies: tuple[str, ...] = ()
    datasets: frozenset[str] = frozenset()
    finished: bool = False
    planned: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    """The points of each study and sweep at this scale."""

    @classmethod
    def of(
        cls, conf: Path, scale: str, root: Path, studies: Sequence[str], datasets: Collection[str], finished: bool
    ) -> Selection:
        """Return the selection, with all studies by default. Raises InvalidInput if it is empty."""
        for name in sorted(datasets):
            composition.section(conf, "dataset", name)
        sweeps, declared = (composition.declared(conf, folder) for folder in ("sweep", "experiment"))
        if named := sorted(set(studies) & set(sweeps)):
            problem = f"{named[0]!r} is a sweep, not a study"
            remedy = f"Run `snakemake results/sweeps/{scale}/{named[0]}/summary.csv`"
            raise InvalidInput(problem, option="study", remedy=remedy)
        found = cls(conf, scale, root, tuple(studies) or declared, frozenset(datasets), finished)
        for name in dict.fromkeys((*sweeps, *declared, *found.studies)):
            found.planned[name] = found.run(name, () if name in sweeps else datasets)
        if not finished and not datasets:
            return found
        some = tuple(study for study in found.studies if found.points(study))
        if not some:
            filters = ["FINISHED"] * finished + [f"DATASETS={', '.join(sorted(datasets))}"] * bool(datasets)
            problem = f"{', '.join(filters)}: no part of these studies is left at the {scale} scale"
            raise InvalidInput(problem, option="datasets" if datasets else "finished")
        return cls(conf, scale, root, some, found.datasets, finished, found.planned)

    @property
    def sweeps(self) -> tuple[str, ...]:
        """Return the names of all sweeps."""
        return composition.declared(self.conf, "sweep")

    def points(self, study: str) -> tuple[Point, ...]:
        """Return the points of a study at this scale, or only those of completed parts if ``finished``.

        Parts with unavailable data have no classifier and are not complete.
        """
        every = self.planned[study]
        if not self.finished or study in self.sweeps:
            return every
        pending = {point.part for point in every if not all((self.root / path).is_file() for path in self._made(point))}
        return tuple(point for point in every if point.part not in pending)

    def declared(self, study: str, datasets: Collection[str] = ()) -> list[Point]:
        """Return the points of the grid of a study, restricted to ``datasets`` if given."""
        return [p for p in composition.points(self.conf, study) if not datasets or p.dataset in datasets]

    def run(self, study: str, datasets: Collection[str] = ()) -> tuple[Point, ...]:
        """Return the declared points that the scale does not leave out."""
        every = self.declared(study, datasets)
        omitted = left_out(self.conf, self.scale, every)
        return tuple(point for point in every if point not in omitted)

    def _made(self, point: Point) -> list[str]:
        """Return the files of the classifier (if any) and the audit of a point."""
        places = {stage: paths.place(point, stage) for stage in ("train", "audit")}
        return [paths.file(self.scale, stage, names) for stage, names in places.items() if all(names)]
