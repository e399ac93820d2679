"""The table of a study's settings as configured for the run: each value, and where it applies."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from fairness_audits.errors import InvalidInput
from fairness_audits.results.formats import parameter
from fairness_audits.results.table import Cell, Column, Row
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs, condition_of
from pipeline.report.reduction import NEUTRAL, value_text, values
from pipeline.report.selection import text_of
from pipeline.report.stamp import Stamp
from pipeline.report.table import StampedTable, labels

CONF = Path(__file__).parents[2] / "conf"
HEADS = {"dataset": "Data", "method": "Model", "transport": "Map", "audit": "Audit", "repetitions": "Repetitions"}
LONG = 8
"""Number of values beyond which a list is shortened to its ends and its length."""
Location = tuple[str, str, str, str]
"""Data set, model, map and block."""
PLACES = [fields for size in range(1, 5) for fields in combinations(range(4), size)]
"""Combinations of the parts of a location, smallest first, that may distinguish the values of a setting."""


def settings_table(inputs: Inputs, stamp: Stamp, notes: Iterable[str] = ()) -> StampedTable:
    """Tabulate every configured value that affects numbers and that still exists in ``conf/``.

    If a setting has several values, each value has a line with its locations. Values that vary within a location share
    a line. Raises InvalidInput if nothing is configured.
    """
    found: dict[tuple[int, str, str], dict[Cell, list[Location]]] = {}
    for point in inputs.points:
        place = _place(point)
        for key, value in values(point):
            group, _, name = key.partition(".")
            if key not in NEUTRAL and (not name or _is_known(group, point[group]["name"], name.split(".")[0])):
                setting = list(HEADS).index(group), _part(group, point), name or key
                found.setdefault(setting, {}).setdefault(_cell(key, value), []).append(place)
    if not found:
        problem = f"study {inputs.study!r} has no configured points"
        raise InvalidInput(problem, source=inputs.study, option="grid", remedy="Check that its grid is not empty")
    rows = [row for setting in sorted(found) for row in _rows(setting[1:], found[setting])]
    columns = (*labels("Part", "Setting"), Column("value", "parameter"), Column("where", "text"))
    said = ("Values in the configuration of this run.", *notes)
    return StampedTable(columns, tuple(rows), title="Settings of the study.", notes=said, stamp=stamp)


@functools.cache
def _is_known(group: str, file: str, key: str) -> bool:
    """Return whether ``conf/<group>/<file>.yaml`` still has the key. Without such a file every key is known."""
    path = CONF / group / f"{file}.yaml"
    return not path.is_file() or key in yaml.safe_load(path.read_text(encoding="utf-8"))


def _part(group: str, point: Mapping[str, Any]) -> str:
    """Return the heading of a group, such as ``Data: Law school``. Audits have their plain names."""
    name = point[group]["name"] if group != "repetitions" else ""
    called = {"dataset": w.dataset_label, "method": w.METHODS.__getitem__, "transport": lambda kind: w.MAPS[kind].label}
    return f"{HEADS[group]}: {called.get(group, w.plainly)(name)}" if name else HEADS[group]


def _place(point: Mapping[str, Any]) -> Location:
    method, transport = point["method"]["name"], point.get("transport", {}).get("name")
    model = w.METHODS[method] if method != w.NO_METHOD else ""
    maps = ", ".join(filter(None, (w.MAPS[transport].label, w.CONDITIONS[condition_of(point)]))) if transport else ""
    return w.dataset_label(point["dataset"]["name"]), model, maps, w.plainly(point["block"])


def _cell(key: str, value: Any) -> Cell:
    """Return a number, the ends of a long list, or text for anything else."""
    if isinstance(value, tuple) and len(value) > LONG and all(isinstance(item, (int, float)) for item in value):
        return f"{parameter(float(value[0]))} to {parameter(float(value[-1]))}, {len(value)} values"
    if isinstance(value, tuple):
        return "; ".join(map(text_of, value))
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value_text(key, value)


def _rows(setting: tuple[str, str], having: Mapping[Cell, list[Location]]) -> Iterator[Row]:
    """Yield a row per value, or one row if there is one value or no part of the location distinguishes the values."""
    usual = max(having, key=lambda value: len(having[value]))
    ordered = sorted(having, key=lambda value: (isinstance(value, str), value))
    for fields in PLACES:
        names = {
            value: dict.fromkeys(", ".join(filter(None, (place[field] for field in fields))) for place in places)
            for value, places in having.items()
        }
        if len(having) > 1 and len(set().union(*names.values())) == sum(map(len, names.values())):
            for value in ordered:
                where = "all others" if value == usual else "; ".join(filter(None, names[value]))
                yield Row((*setting, value, where))
            return
    yield Row((*setting, usual if len(having) == 1 else "; ".join(map(text_of, ordered)), ""))
