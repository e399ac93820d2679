"""Settings for one architecture among several, as configured: ``"alexnet.input_size=224"``."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """``model.key=value``; empty names where the text has none."""

    model: str
    key: str
    value: Any


def entry(text: str) -> Entry:
    """Read one entry. A value is a number, true, false or null where it reads so, and a text otherwise."""
    place, equals, written = str(text).partition("=")
    model, dot, key = place.strip().rpartition(".")
    if not (equals and dot):
        return Entry("", "", None)
    try:
        value = json.loads(written)
    except json.JSONDecodeError:
        value = written.strip()
    return Entry(model, key, value)
