"""The figure of a sweep, as declared in ``conf/sweep/<name>.yaml`` and checked before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest
from fairness_audits.validation import Checked, Names, made
from pipeline.workflow.conf import GROUPS, listed

AXES = ("x", "lines", "rows", "columns")


@dataclass(frozen=True)
class Figure(Checked):
    """Small multiples of the mean of each ``statistic`` over the repetitions, as a function of ``x``.

    Each axis is a key of the grid (``audit.delta``), a part of a point (``dataset``, ``method``, ...) or a column of
    the audit (``steps``).

    Parameters
    ----------
    statistic : sequence of str
        The statistics to draw.
    x : str
        The horizontal axis.
    along : sequence of str
        Keys that replace ``x`` for lines without it.
    against : str
        A second statistic. The figure then shows the trade-off of the two: one marker for each setting, joined along
        ``x``. Settings on the Pareto front are highlighted.
    lines, rows, columns : str
        The axes that distinguish lines, rows of panels and columns of panels.
    where : mapping
        Values (or lists of values) of the rows to draw. Rows without a value in the column are drawn too.
    log : sequence of {"x", "y"}
        The logarithmic axes.
    labels : mapping
        Display names of keys and values.
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
        """Read ``figure`` from the declaration of a sweep. Raises InvalidInput for unknown keys."""
        written = {key: value for key, value in (declaration.get("figure") or {}).items() if value not in (None, "")}
        if not written:
            raise InvalidInput(f"Sweep {sweep!r} declares no figure", option="figure", remedy="Give it statistic and x")
        lists = {key: listed(written[key]) for key in ("statistic", "log", "along") if key in written}
        figure = made(cls, {**written, **lists}, f"sweep {sweep!r}, figure")
        keys = sorted({key for block in declaration["grid"].values() for key in block})
        named = [*((axis, getattr(figure, axis)) for axis in AXES), *(("along", name) for name in figure.along)]
        for axis, name in named:
            if "." in name and name not in keys:
                problem = f"Sweep {sweep!r}, figure.{axis}: the grid has no key {name!r}{nearest(name, keys)}"
                raise InvalidInput(problem, option=f"figure.{axis}")
        return figure

    @property
    def axes(self) -> dict[str, str]:
        """Return the column of the tidy rows for each axis in use."""
        return {axis: column(getattr(self, axis)) for axis in AXES if getattr(self, axis)}

    def label(self, name: Any) -> str:
        """Return the display name of a key, a statistic or a value."""
        text = str(name)
        return self.labels.get(text) or self.labels.get(column(text)) or column(text).replace("_", " ")


def column(key: str) -> str:
    """Return the column of a key of the grid: ``audit.delta`` -> ``delta``."""
    group, _, rest = key.partition(".")
    return rest if rest and group in GROUPS else key
