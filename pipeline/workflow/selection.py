"""Which studies an invocation runs, and on which points of their grids."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.workflow import composition, paths
from pipeline.workflow.composition import Point
from pipeline.workflow.resolution import left_out


@dataclass(frozen=True)
class Selection:
    """The studies that an invocation runs.

    Where ``datasets`` are named, the studies run on these alone, and those on others alone not at all. With
    ``finished`` only the parts count that a run below ``root`` has completed.
    """

    conf: Path
    scale: str
    root: Path
    studies: tuple[str, ...] = ()
    datasets: frozenset[str] = frozenset()
    finished: bool = False
    planned: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    """The points of the grid of each study and sweep that the scale runs."""

    @classmethod
    def of(
        cls, conf: Path, scale: str, root: Path, studies: Sequence[str], datasets: Collection[str], finished: bool
    ) -> Selection:
        """Return the selection; all studies where none is named. Raises ValueError where nothing is left to run."""
        for name in sorted(datasets):
            composition.section(conf, "dataset", name)
        sweeps, declared = (composition.declared(conf, folder) for folder in ("sweep", "experiment"))
        if asked := sorted(set(studies) & set(sweeps)):
            file = f"results/sweeps/{scale}/{asked[0]}/summary.csv"
            raise ValueError(f"{asked[0]!r} is a sweep, not a study: run `snakemake {file}`")
        found = cls(conf, scale, root, tuple(studies) or declared, frozenset(datasets), finished)
        for name in dict.fromkeys((*sweeps, *declared, *found.studies)):
            found.planned[name] = found.run(name, () if name in sweeps else datasets)
        if not finished and not datasets:
            return found
        some = tuple(study for study in found.studies if found.points(study))
        if not some:
            asked = ["FINISHED"] * finished + [f"DATASETS={', '.join(sorted(datasets))}"] * bool(datasets)
            raise ValueError(f"{', '.join(asked)}: of these studies there is nothing at the {scale} scale")
        return cls(conf, scale, root, some, found.datasets, finished, found.planned)

    @property
    def sweeps(self) -> tuple[str, ...]:
        """The names of all sweeps."""
        return composition.declared(self.conf, "sweep")

    def points(self, study: str) -> tuple[Point, ...]:
        """Return the points of a study's grid that the scale runs; only completed parts if these are asked for.

        What stands for an audit of data that cannot be had comes without a classifier, and is not finished.
        """
        every = self.planned[study]
        if not self.finished or study in self.sweeps:
            return every
        pending = {point.part for point in every if not all((self.root / path).is_file() for path in self._made(point))}
        return tuple(point for point in every if point.part not in pending)

    def declared(self, study: str, datasets: Collection[str] = ()) -> list[Point]:
        """Return the points of a study's grid, of these data sets alone if any are named."""
        return [p for p in composition.points(self.conf, study) if not datasets or p.dataset in datasets]

    def run(self, study: str, datasets: Collection[str] = ()) -> tuple[Point, ...]:
        """Return those of the declared points that the scale does not leave out."""
        every = self.declared(study, datasets)
        omitted = left_out(self.conf, self.scale, every)
        return tuple(point for point in every if point not in omitted)

    def _made(self, point: Point) -> list[str]:
        """Return the files of the classifier, if there is one, and the audit of a point."""
        places = {stage: paths.place(point, stage) for stage in ("train", "audit")}
        return [paths.file(self.scale, stage, names) for stage, names in places.items() if all(names)]
