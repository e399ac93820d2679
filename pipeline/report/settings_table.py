"""The settings of a study as they are configured: a line for each, and more where places have different values.

The values are those of the run. A study says what each of them belongs to, where it holds, and what it is called.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.report.numbers import plain
from pipeline.report.settings import values
from pipeline.report.stamp import Stamp
from pipeline.report.table import Cell, Column, Row, Table

Point = Mapping[str, Any]


def settings_table(
    points: Iterable[Point],
    heads: Sequence[str],
    part: Callable[[str, Point], str],
    label: Callable[[str, Point], str],
    place: Callable[[str, Point], str],
    cell: Callable[[str, Any], Cell],
    stamp: Stamp,
    notes: Sequence[str],
    where: bool = False,
    alphabetical: bool = True,
) -> Table:
    """The table of the points' settings by four functions of a setting's key, such as ``audit.steps``.

    ``part`` is what the setting of a point belongs to, nothing for one that is left out; it begins with one of
    ``heads``, which are in order. ``label`` is what the setting is called, ``place`` where the point is, in case that
    others have another value, and ``cell`` its value as it is shown, None for one that is not. Where values differ
    there is a line for each place or, with a column ``where``, for each value with its places. ``alphabetical``: parts
    with one head, and the settings of a part, are in order of their names; else as configured. Raises ValueError where
    nothing is listed.
    """
    found: dict[tuple[str, str], list[tuple[str, Cell]]] = {}
    for point in points:
        for key, value in values(point):
            whole, shown = part(key, point), cell(key, value)
            if whole and shown is not None:
                found.setdefault((whole, label(key, point)), []).append((place(key, point), shown))
    if not found:
        raise ValueError(f"expected points with settings of {', '.join(heads)}, found none: is the grid empty?")

    def order(setting: tuple[str, str]) -> tuple[Any, ...]:
        head = heads.index(setting[0].split(":")[0])
        return (head, *setting) if alphabetical else (head,)

    lines = _by_value if where else _by_place
    rows = dict.fromkeys(row for one in sorted(found, key=order) for row in lines(*one, found[one]))
    texts = (Column("value", show="text"), Column("where", show="text"))
    columns = texts if where else (Column("value", show="parameter"),)
    return Table("Settings of the study.", ("Part", "Setting"), columns, tuple(rows), stamp, notes=tuple(notes))


def span(numbers: Sequence[float]) -> str:
    """``0 to 1, 21 values``: a long list of numbers by its ends."""
    return f"{plain(float(numbers[0]))} to {plain(float(numbers[-1]))}, {len(numbers)} values"


def _by_place(part: str, label: str, given: Sequence[tuple[str, Cell]]) -> Iterator[Row]:
    by_place = dict(given)
    same = len(set(by_place.values())) == 1
    for place, value in list(by_place.items())[: 1 if same else None]:
        yield Row((part, label if same or not place else f"{label}, {place}"), (value,))


def _by_value(part: str, label: str, given: Sequence[tuple[str, Cell]]) -> Iterator[Row]:
    places: dict[Cell, dict[str, None]] = {}
    for place, value in given:
        places.setdefault(value, {})[place] = None
    usual = max(places, key=lambda value: len(places[value]))
    for value, having in places.items():
        where = "all others" if value == usual else ", ".join(filter(None, having))
        yield Row((part, label), (value, "" if len(places) == 1 else where))
