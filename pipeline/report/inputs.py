"""What every artefact of a study is made from, and how it asks for numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from pipeline.report import settings
from pipeline.report.described import Described
from pipeline.report.numbers import Estimate
from pipeline.report.stamp import Stamp
from pipeline.report.style import in_order
from pipeline.types import AuditResult, Classifier, TransportMap

Made = TypeVar("Made")


@dataclass(frozen=True)
class Inputs:
    """A study's tidy rows, its data sets as described, classifiers, maps and audits, and its resolved configuration.

    ``config`` has ``experiment`` (the study's declaration), ``sections`` (for each audit file the resolved dataset,
    method and audit, and the repetitions) and ``published`` (the same at the published scale). ``datasets`` go by
    name, ``classifiers`` by ``dataset/method``, ``transports`` by ``dataset/transport``, ``audits`` by
    ``block/dataset/method/audit``, as in their paths; an audit of a transport map is ``audit+transport`` there.
    """

    study: str
    scale: str
    rows: pd.DataFrame
    config: Mapping[str, Any]
    datasets: Mapping[str, Described] = field(default_factory=dict)
    audits: Mapping[str, AuditResult] = field(default_factory=dict)
    classifiers: Mapping[str, Classifier] = field(default_factory=dict)
    transports: Mapping[str, TransportMap] = field(default_factory=dict)
    _known: dict[str, tuple[Any, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _by_statistic(self) -> dict[str, pd.DataFrame]:
        return settings.by_statistic(self.rows)

    @property
    def points(self) -> list[dict[str, Any]]:
        """Every point of the study: its block and its resolved dataset, method, audit and repetitions."""
        return points(self.config["sections"])

    @cached_property
    def reductions(self) -> tuple[settings.Reduction, ...]:
        """Where this run's configuration departs from the published one, repetitions and absent data apart."""
        absent = set(self.rows.loc[self.rows["origin"] == "absent", "dataset"])
        found = settings.reductions(self.points, points(self.config["published"]))
        return tuple(one for one in found if one.dataset not in absent)

    def once(self, name: str, make: Callable[[], Made], of: object = None) -> Made:
        """What ``make`` gives, which several artefacts ask for by this ``name`` and about the same object ``of``."""
        if name not in self._known or self._known[name][0] is not of:
            self._known[name] = (of, make())
        made: Made = self._known[name][1]
        return made

    def select(self, **setting: str | float) -> pd.DataFrame:
        """The rows with these settings. Raises ValueError, naming what is missing and what there is, for none."""
        rows = self._by_statistic.get(str(setting["statistic"]), self.rows) if "statistic" in setting else self.rows
        found = settings.select(rows, setting)
        if found.empty:
            asked = ", ".join(f"{key} {value}" for key, value in setting.items())
            raise ValueError(
                f"study {self.study!r} has no rows for {asked}: missing is "
                f"{settings.explain_absence(self.rows, setting)}. Run the audits of that block and collect again"
            )
        return found

    def values(self, **setting: str | float) -> pd.Series:
        """One value for each repetition, by repetition.

        Raises ValueError where there is none, or where the settings leave more than one to choose from.
        """
        found = self.select(**setting)
        repeated = found[found.duplicated("repetition", keep=False)]
        if not repeated.empty:
            varying = [
                c for c in found.columns if c not in ("value", "repetition") and found[c].nunique(dropna=False) > 1
            ]
            raise ValueError(f"{setting} leaves several values for a repetition: give {', '.join(varying)} too")
        return found.set_index("repetition")["value"].sort_index()

    def mean(self, **setting: str | float) -> Estimate:
        """Mean and standard deviation over repetitions."""
        return Estimate.mean(self.values(**setting).to_numpy())

    def share(self, **setting: str | float) -> Estimate:
        """The share of repetitions in which a 0-1 statistic is 1."""
        return Estimate.share(self.values(**setting).to_numpy())

    def names(self, column: str, **setting: str | float) -> list[str]:
        """The distinct datasets, methods, ... of the rows with these settings; methods in their fixed order."""
        found = list(dict.fromkeys(self.select(**setting)[column].dropna()))
        return in_order(found) if column == "method" else sorted(found)

    def steps(self, wanted: int, **setting: str | float) -> int:
        """The recorded number of attack steps to show for ``wanted``: itself, else the largest below it."""
        recorded = np.unique(self.select(**setting)["steps"].dropna())
        below = recorded[recorded <= wanted]
        return int(below[-1] if len(below) else recorded[0])

    def stamp(self, block: str | Sequence[str], dataset: str | Sequence[str] = ()) -> Stamp:
        """The stamp of an artefact that is made from whole blocks, of all their datasets or the given ones."""
        blocks = [block] if isinstance(block, str) else list(block)
        datasets = [dataset] if isinstance(dataset, str) else list(dataset)
        rows = self.rows[self.rows["block"].isin(blocks)]
        if datasets:
            rows = rows[rows["dataset"].isin(datasets)]
        if rows.empty:
            raise ValueError(f"study {self.study!r} has no rows of block {blocks} and dataset {datasets or 'any'}")
        reduced = [r for r in self.reductions if r.block in blocks and (not datasets or r.dataset in datasets)]
        return Stamp.of(rows, self.scale, reduced)


def points(sections: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The sections of each audit file with its block, which is in the file's path, in a fixed order."""
    found = []
    for path, section in sections.items():
        # results/audits/<scale>/<study>/<block>/<dataset>/<method>/<audit>.npz
        places = path.split("/")
        found.append((places[-4:], {**section, "block": places[-4]}))
    return [section for _, section in sorted(found, key=lambda item: item[0])]
