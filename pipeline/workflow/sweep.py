"""The figure of a sweep as ``conf/sweep/<name>.yaml`` declares it, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from pipeline.workflow.composition import GROUPS, listed, nearest

AXES = ("x", "lines", "rows", "columns")
PARTS = (*GROUPS, "block")
"""What an axis may be besides a key of the grid."""


@dataclass(frozen=True)
class Figure:
    """Small multiples: the mean of each ``statistic`` over the repetitions against ``x``.

    ``lines`` tells the lines of a panel apart, ``rows`` and ``columns`` the panels. Each axis is a key of the grid
    (``audit.delta``), a part of a point (``dataset``, ``method``, ...) or a column that the audit itself writes
    (``steps``). ``where`` keeps the rows that have these values, and those without a value there; ``log`` are the axes
    (``x``, ``y``) that are logarithmic; ``labels`` are what keys, statistics and values are called.
    """

    statistic: tuple[str, ...]
    x: str
    lines: str = ""
    rows: str = ""
    columns: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, sweep: str, declaration: Mapping[str, Any]) -> Figure:
        """Read ``figure`` of a sweep's declaration. Raises ValueError for what it does not know, naming the nearest."""
        written = declaration.get("figure")
        if not written:
            raise ValueError(f"sweep {sweep!r} declares no figure: give it statistic and x")
        known = [item.name for item in fields(cls)]
        for key in written:
            if key not in known:
                raise ValueError(f"sweep {sweep!r}, figure: there is no key {key!r}{nearest(key, known)}")
        if missing := [key for key in ("statistic", "x") if not written.get(key)]:
            raise ValueError(f"sweep {sweep!r}, figure: {missing[0]} is not given")
        values = {
            **written,
            "statistic": tuple(listed(written["statistic"])),
            "log": tuple(listed(written.get("log", []))),
        }
        if wrong := sorted(set(values["log"]) - {"x", "y"}):
            raise ValueError(f"sweep {sweep!r}, figure: expected log among x, y; found {wrong[0]!r}")
        figure = cls(**{key: value for key, value in values.items() if value is not None})
        figure._check_axes(sweep, declaration["grid"].values())
        return figure

    def _check_axes(self, sweep: str, blocks: Sequence[Mapping[str, Any]]) -> None:
        keys = sorted({key for block in blocks for key in block})
        for axis in AXES:
            name = getattr(self, axis)
            if "." in name and name not in keys:
                raise ValueError(f"sweep {sweep!r}, figure.{axis}: the grid has no key {name!r}{nearest(name, keys)}")

    @property
    def axes(self) -> dict[str, str]:
        """The axes that are given, each with the column of the tidy rows that it stands for."""
        return {axis: column(getattr(self, axis)) for axis in AXES if getattr(self, axis)}

    def label(self, name: Any) -> str:
        """What a key, a statistic or a value is called."""
        text = str(name)
        return self.labels.get(text) or self.labels.get(column(text)) or column(text).replace("_", " ")


def column(key: str) -> str:
    """The column of a key of the grid: ``audit.delta`` -> ``delta``."""
    group, _, rest = key.partition(".")
    return rest if rest and group in GROUPS else key
