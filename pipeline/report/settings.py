"""Settings: which rows a number comes from, and where a run's configuration departs from the published one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.messages import enumerated
from fairness_audits.results.formats import parameter
from fairness_audits.results.style import in_order, method_style
from pipeline.report import labels as w

Setting = Mapping[str, "str | float"]

GROUPS = ("dataset", "method", "transport", "audit")
"""Of a point; not every point has a transport map."""

NEUTRAL = (
    *("method.threads", "transport.threads", "audit.examples"),
    *("audit.bootstraps", "audit.permutations", "audit.noise_deals", "audit.noise_people"),
)
"""Configured values that say how, or how finely, a number is computed or what is kept beside it, not what it is."""


def parse_setting(text: Any) -> dict[str, str | float]:
    """``"block=audit; dataset=adult; steps=500"`` -> ``{"block": "audit", "dataset": "adult", "steps": 500.0}``.

    Nothing for what is no text: a list of published numbers may lack it.
    Raises ValueError for a part without ``=``, or a key given twice.
    """
    setting: dict[str, str | float] = {}
    pieces = text.split(";") if isinstance(text, str) else []
    for part in filter(None, (piece.strip() for piece in pieces)):
        key, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or not key or not value:
            raise ValueError(f"cannot read the setting {part!r} in {text!r}: write key=value; key=value")
        if key in setting:
            raise ValueError(f"the setting {text!r} gives {key!r} twice")
        setting[key] = _typed(value)
    return setting


def select(rows: pd.DataFrame, setting: Setting) -> pd.DataFrame:
    """The rows that agree with every part of ``setting``; perhaps none.

    Raises ValueError for a key that is not a column.
    """
    keep = np.ones(len(rows), dtype=bool)
    for key, wanted in setting.items():
        if key not in rows:
            raise ValueError(f"there is no setting {key!r}: the rows have {sorted(map(str, rows.columns))}")
        keep &= _equal(rows[key], wanted)
    return rows[keep]


def by_statistic(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each statistic: nearly every question is about one, and a study has many rows."""
    return {str(name): part for name, part in rows.groupby("statistic", sort=False)}


def explain_absence(rows: pd.DataFrame, setting: Setting) -> str:
    """Which part of ``setting`` leaves no row, in the order given, and what there is instead."""
    found = rows
    for key, wanted in setting.items():
        matching = found[_equal(found[key], wanted)]
        if matching.empty:
            known = [text_of(value) for value in sorted(found[key].dropna().unique())]
            there = f"there are {', '.join(known[:12])}" if known else "there is none"
            return f"{key} {text_of(wanted)} ({there})"
        found = matching
    return ""


@dataclass(frozen=True)
class Reduction:
    """One value of one point's configuration that is not the published one."""

    block: str
    dataset: str
    method: str
    key: str
    here: Any
    published: Any
    transport: str = ""

    def concerns(self, place: Mapping[str, Any]) -> bool:
        """Whether it is one of a place's; what the place leaves open is any."""
        own = {name: getattr(self, name) for name in ("block", "dataset", "method", "transport")}
        return all(not value or place.get(name, value) == value for name, value in own.items())

    @classmethod
    def at(cls, point: Mapping[str, Any], key: str, here: Any, published: Any) -> Reduction:
        """Of this point."""
        dataset, method, transport = (point.get(part, {}).get("name", "") for part in GROUPS[:3])
        return cls(point["block"], dataset, method, key, here, published, transport)


def reductions(points: Sequence[Mapping[str, Any]], published: Sequence[Mapping[str, Any]]) -> tuple[Reduction, ...]:
    """Where the resolved points of a run differ from the same points as published, repetitions apart.

    A point is ``{"block", "dataset": {"name", ...}, "method": {...}, "audit": {...}, "repetitions"}``, with a
    ``"transport": {...}`` where there is one. Both lists hold the same points in the same order. Fewer repetitions
    widen an interval and leave each repetition as published, so they are not counted here: the stamp states them.
    """
    found: dict[Reduction, None] = {}
    for here, there in zip(points, published, strict=True):
        others = dict(flat(there))
        for key, value in flat(here):
            if value != others.get(key) and key not in NEUTRAL:
                found[Reduction.at(here, key, value, others.get(key))] = None
    return tuple(found)


def departures(reductions: Sequence[Reduction]) -> list[str]:
    """One text for each group of methods and datasets with the same departures.

    ``SenSR on Adult: method.iterations 100 (published: 20,000), method.learning_rate 0.001 (published: 10^-5)``.
    """
    places: dict[tuple[str, Any, Any], set[tuple[str, str]]] = {}
    for r in reductions:
        by = r.transport if r.key.startswith("transport.") else r.method
        places.setdefault((r.key, r.here, r.published), set()).add((by, r.dataset))
    values: dict[frozenset[tuple[str, str]], list[str]] = {}
    for (key, here, published), where in places.items():
        text = f"{key} {text_of(here)} (published: {text_of(published)})"
        values.setdefault(frozenset(where), []).append(text)
    return [": ".join(filter(None, (_where(where), ", ".join(texts)))) for where, texts in values.items()]


def text_of(found: Any) -> str:
    """A configured value as text; nothing means that all are taken."""
    if found is None:
        return "all"
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return parameter(float(found))
    if isinstance(found, (list, tuple)):
        return ", ".join(map(text_of, found))
    return str(found)


def flat(point: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """``("method.learning_rate", 0.0001)`` and so on for every value of a point's parts."""
    for group in GROUPS:
        for key, value in point.get(group, {}).items():
            if key not in ("name", "kind"):
                yield f"{group}.{key}", tuple(value) if isinstance(value, list) else value


def values(point: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The same with each value of a mapping by its own key, and the repetitions."""
    for key, value in flat(point):
        if isinstance(value, Mapping):
            yield from ((f"{key}.{name}", item) for name, item in value.items())
        else:
            yield key, value
    if "repetitions" in point:
        yield "repetitions", point["repetitions"]


def by_repetition(rows: pd.DataFrame, of: str = "") -> pd.Series:
    """One value for each repetition, in their order. Raises ValueError for more, naming what tells them apart."""
    if rows["repetition"].duplicated().any():
        again = rows[rows.duplicated("repetition", keep=False)]
        varying = [c for c in rows.columns if c not in ("value", "repetition") and again[c].nunique(dropna=False) > 1]
        raise ValueError(f"{of}several values for a repetition: give {', '.join(varying)} too")
    return rows.set_index("repetition")["value"].sort_index()


def _equal(column: pd.Series, wanted: str | float) -> np.ndarray:
    if isinstance(wanted, str):
        same = column == wanted
        # Categories, as which nearly all texts come here, are equal or not; only text itself can be missing.
        return np.asarray(same if same.dtype == bool else same.fillna(False), dtype=bool)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(float)
    return np.isclose(numbers, wanted, rtol=1e-9, atol=0)


def _typed(value: str) -> str | float:
    try:
        return float(value)
    except ValueError:
        return value


def _where(places: frozenset[tuple[str, str]]) -> str:
    methods, datasets = in_order([m for m, _ in places if m != w.NO_METHOD]), sorted({d for _, d in places})
    if not methods:
        return ""
    names = enumerated(w.MAPS[m].label if m in w.MAPS else method_style(m).label for m in methods)
    return f"{names} on {w.datasets_named(datasets)}"
