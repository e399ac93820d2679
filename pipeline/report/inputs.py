"""The inputs of a study's artefacts, with methods that select numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from fairness_audits.errors import InvalidInput
from fairness_audits.results.style import in_order
from fairness_audits.values import Classifier
from pipeline.report import labels as w
from pipeline.report import reduction, registry, selection
from pipeline.report.stamp import COUNTED, Stamp
from pipeline.values import AuditResult, DatasetSummary

Made = TypeVar("Made")


class NotRun(ValueError):
    """Points that a run leaves out, or whose data are missing. The text is the reason."""


@dataclass(frozen=True)
class Inputs:
    """Tidy rows, summaries of data sets, classifiers, audits and the resolved configuration of a study.

    ``config`` has ``experiment`` (the study's declaration), ``sections`` (the resolved dataset, method, audit and
    repetitions of each audit file) and ``published`` (the same at the published scale), and the points of the grid that
    the run omits: ``left_out``, ``not_chosen`` for other data sets than the chosen ones, and ``unfinished`` for those
    that it computes later. ``datasets``, ``classifiers`` and ``audits`` have the keys of the points, see
    :class:`Keys`.
    """

    study: str
    scale: str
    rows: pd.DataFrame
    config: Mapping[str, Any]
    datasets: Mapping[str, DatasetSummary] = field(default_factory=dict)
    audits: Mapping[str, AuditResult] = field(default_factory=dict)
    classifiers: Mapping[str, Classifier] = field(default_factory=dict)
    _known: dict[str, tuple[Any, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _by_statistic(self) -> dict[str, pd.DataFrame]:
        return selection.by_statistic(self.rows)

    def __post_init__(self) -> None:
        # A column that only omitted audits write is empty in the rows of the others.
        partial = any(self.config.get(key) for key in ("left_out", "not_chosen", "unfinished"))
        missing = [name for name in registry.columns(self.study) if name not in self.rows] if partial else []
        object.__setattr__(self, "rows", identified(self.rows.assign(**dict.fromkeys(missing, np.nan))))

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """Return all points of the study, see :func:`points`."""
        return points(self.config["sections"])

    @cached_property
    def reductions(self) -> tuple[reduction.Reduction, ...]:
        """Return the differences from the published configuration, except repetitions and missing data."""
        absent = set(self.rows.loc[self.rows["origin"] == "absent", "dataset"])
        found = reduction.reductions(self.points, points(self.config["published"]))
        return tuple(one for one in found if one.dataset not in absent)

    def once(self, name: str, make: Callable[[], Made], of: object = None) -> Made:
        """Memoize ``make()`` under ``name`` while ``of`` is the same object."""
        if name not in self._known or self._known[name][0] is not of:
            self._known[name] = (of, make())
        return self._known[name][1]

    def select(self, **setting: str | float) -> pd.DataFrame:
        """Select the rows with these settings.

        Raises NotRun if there are none because the run omits them, otherwise ValueError. The message names the setting
        without rows and the values that exist.
        """
        rows = self._by_statistic.get(str(setting["statistic"]), self.rows) if "statistic" in setting else self.rows
        place = [str(setting.get(key, "")) for key in ("block", "dataset")]
        try:
            found = selection.select(rows, setting)
        except InvalidInput as error:
            raise self.absence(error, *place) from error
        if found.empty:
            described = ", ".join(f"{key} {value}" for key, value in setting.items())
            problem = (
                f"study {self.study!r} has no rows for {described}: missing is "
                f"{selection.explain_absence(self.rows, setting)}. Run the audits of that block and collect again"
            )
            raise self.absence(problem, *place)
        return found

    def absence(
        self, problem: ValueError | str, block: str | Iterable[str] = (), dataset: str | Iterable[str] = ()
    ) -> ValueError:
        """Return the error for missing numbers of these blocks and data sets, by default of all.

        It is NotRun if the run omits such points or their data are missing, otherwise the ``problem``.
        """
        blocks, datasets = _several(block), [name.split("@")[0] for name in _several(dataset)]

        def omitted(key: str) -> list[str]:
            places = [place for place in self.config.get(key, ()) if not blocks or place["block"] in blocks]
            names = sorted({place["dataset"] for place in places})
            return [name for name in names if not datasets or name in datasets]

        lost = sorted(set(self.rows.loc[self.rows["origin"] == "absent", "dataset"]))
        part = ", ".join(blocks) or "a part"
        reasons = {
            "the data of {} are missing": [name for name in lost if not datasets or name in datasets],
            "DATASETS leaves out {}": omitted("not_chosen"),
            f"{part} of {{}} is still being computed": omitted("unfinished"),
            f"this run leaves out {part} of {{}}": omitted("left_out"),
        }
        told = [reason.format(w.datasets_named(names)) for reason, names in reasons.items() if names]
        if told:
            return NotRun(f"Not run: {'; '.join(told)}.")
        return ValueError(problem) if isinstance(problem, str) else problem

    def values(self, **setting: str | float) -> pd.Series:
        """Select one value per repetition.

        Raises ValueError if a repetition has no value or several values.
        """
        return selection.by_repetition(self.select(**setting), f"{setting}: ")

    def names(self, column: str, **setting: str | float) -> list[str]:
        """Return the distinct values of a column in the rows with these settings. Methods have a fixed order."""
        found = list(self.select(**setting)[column].dropna().unique())
        return in_order(found) if column == "method" else sorted(found)

    def stamp(
        self, block: str | Iterable[str] = (), dataset: str | Sequence[str] = (), maps: Iterable[str] = ()
    ) -> Stamp:
        """Return the stamp of an artefact of the whole study or of some blocks, data sets or maps.

        The stamp omits reductions of other data sets and maps. Raises NotRun or ValueError if there are no rows.
        """
        wanted = {"block": _several(block), "dataset": _several(dataset), "transport": _several(maps)}
        wanted = {key: names for key, names in wanted.items() if names}
        every = np.ones(len(self.rows), bool)
        keep = np.logical_and.reduce([every, *(self.rows[key].isin(names) for key, names in wanted.items())])
        if not keep.any():
            described = " and ".join(f"{key} {names}" for key, names in wanted.items())
            raise self.absence(f"study {self.study!r} has no rows of {described}", block, dataset)
        reduced = [r for r in self.reductions if all(getattr(r, key) in names for key, names in wanted.items())]
        return Stamp.of(self.rows.filter(COUNTED)[keep], reduced)


def _several(names: str | Iterable[str]) -> list[str]:
    return [name for name in ([names] if isinstance(names, str) else sorted(names)) if name]


class Keys(NamedTuple):
    """Keys of a point in :class:`Inputs`: ``dataset``, ``dataset/method`` and ``block/dataset/method/audit``.

    The audit of a transport map is ``audit+transport``. The key of the map is ``dataset/transport``, or ``""`` if there
    is no map.
    """

    dataset: str
    classifier: str
    audit: str
    transport: str


def points(sections: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the resolved section of each audit with its ``block`` and ``keys``, sorted by id.

    The ``id`` of a section consists of the block and the names of the data set, method and audit with their settings.
    """
    found = []
    for section in sorted(sections.values(), key=itemgetter("id")):
        block, dataset, method, _ = section["id"]
        transport = f"{dataset}/{section['map']}" if section["map"] else ""
        keys = Keys(dataset, f"{dataset}/{method}", "/".join(section["id"]), transport)
        found.append({**section, "block": block, "keys": keys})
    return found


def identified(rows: pd.DataFrame) -> pd.DataFrame:
    """Make text columns categories, which are faster to compare, and add ``given`` to rows of maps.

    The column ``given`` (everyone, negatives, positives) is needed because a setting cannot select a missing label.
    """
    if "transport" in rows and "given" not in rows:
        labels = pd.to_numeric(rows["given_label"]) if "given_label" in rows else pd.Series(np.nan, rows.index)
        rows = rows.assign(given=labels.map(condition_name))
    texts = [name for name, kind in rows.dtypes.items() if kind != "category" and not is_numeric_dtype(kind)]
    return rows.astype(dict.fromkeys(texts, "category")) if texts else rows


def as_text(rows: pd.DataFrame) -> pd.DataFrame:
    """Convert categories to text, because two frames may have different categories."""
    return rows.astype({name: kind.categories.dtype for name, kind in rows.dtypes.items() if kind == "category"})


def condition_of(point: Mapping[str, Any]) -> str:
    """Return the name of the true label to which the map of a point is restricted."""
    return condition_name(point.get("transport", {}).get("given_label"))


def condition_name(label: float | None) -> str:
    """Return the name of a true label: ``None`` -> ``everyone``, ``0`` -> ``negatives``."""
    return w.EVERYONE if label is None or np.isnan(label) else (w.NEGATIVES, w.POSITIVES)[int(label)]
