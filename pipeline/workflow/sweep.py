"""The figure of a sweep as ``conf/sweep/<name>.yaml`` declares it, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairness_audits.messages import nearest
from fairness_audits.validation import Checked, Names, made
from pipeline.workflow.composition import GROUPS, listed

AXES = ("x", "lines", "rows", "columns")
PARTS = (*GROUPS, "block")
"""What an axis may be besides a key of the grid."""


@dataclass(frozen=True)
class Figure(Checked):
    """Small multiples: the mean of each ``statistic`` over the repetitions against ``x``.

    ``lines`` tells the lines of a panel apart, ``rows`` and ``columns`` the panels. Each axis is a key of the grid
    (``audit.delta``), a part of a point (``dataset``, ``method``, ...) or a column that the audit itself writes
    (``steps``). ``where`` keeps the rows that have these values (one of a list), and those without a value there;
    ``log`` are the axes (``x``, ``y``) that are logarithmic; ``labels`` are what keys and values are called.

    A trade-off: each statistic is drawn ``against`` another one, a point for each setting, joined along ``x``, and the
    settings that no other one beats in both are marked. ``along``: keys that stand for ``x`` on the lines without it.
    """

    statistic: Names
    x: str
    along: Sequence[str] = ()
    against: str = ""
    lines: str = ""
    rows: str = ""
    columns: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    log: Sequence[Literal["x", "y"]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, sweep: str, declaration: Mapping[str, Any]) -> Figure:
        """Read ``figure`` of a sweep's declaration. Raises ValueError for what it does not know, naming the nearest."""
        written = {key: value for key, value in (declaration.get("figure") or {}).items() if value not in (None, "")}
        if not written:
            raise ValueError(f"sweep {sweep!r} declares no figure: give it statistic and x")
        lists = {key: listed(written[key]) for key in ("statistic", "log", "along") if key in written}
        figure = made(cls, {**written, **lists}, f"sweep {sweep!r}, figure")
        keys = sorted({key for block in declaration["grid"].values() for key in block})
        named = [*((axis, getattr(figure, axis)) for axis in AXES), *(("along", name) for name in figure.along)]
        for axis, name in named:
            if "." in name and name not in keys:
                raise ValueError(f"sweep {sweep!r}, figure.{axis}: the grid has no key {name!r}{nearest(name, keys)}")
        return figure

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
