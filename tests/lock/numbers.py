"""The locked numbers: some hundred of what the studies compute, in a file that a change of any is a line of."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

# Of the tests' own, as in tests/conftest.py.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).resolve().parents[2] / ".pytest_cache" / "numba"))
os.environ.setdefault("POT_BACKEND_DISABLE_PYTORCH", "")

FILE = Path(__file__).with_name("numbers.csv")
COMMAND = "python -m tests.lock.write"

SAME = (1e-6, "rounding")
TOLERANCES: Mapping[str, tuple[float, str]] = {}
"""By how a name starts: the relative tolerance, and why it is not that of :data:`SAME`. The longest start counts."""


class Number(NamedTuple):
    """A number by its name, its relative tolerance and why it is that."""

    name: str
    value: float
    tolerance: float
    why: str


def locked() -> list[Number]:
    """What the file holds."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Number(row["name"], float(row["value"]), float(row["tolerance"]), row["why"]) for row in rows]


def computed() -> list[Number]:
    """The same, computed now; :data:`TOLERANCES` says how exactly a number is locked."""
    from tests.lock import quantities

    found = []
    for name, value in quantities.all_of_them():
        start = max((start for start in TOLERANCES if name.startswith(start)), key=len, default=None)
        found.append(Number(name, float(f"{value:.10g}"), *(SAME if start is None else TOLERANCES[start])))
    return found


def moved(was: Number, value: float) -> bool:
    """Whether |value - was| > tolerance |was|; a number that does not exist equals another that does not."""
    if math.isnan(was.value) or math.isnan(value):
        return math.isnan(was.value) != math.isnan(value)
    return abs(value - was.value) > was.tolerance * abs(was.value)
