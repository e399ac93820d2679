"""Where a run departs from the published setting, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.report.numbers import plain
from pipeline.report.settings import Reduction
from pipeline.report.style import in_order, method_style

DATASETS = {
    "adult": "Adult",
    "adult_all": "Adult, all rows",
    "compas": "COMPAS",
    "compas_all": "COMPAS, all rows",
    "simulated": "simulated data",
}
NO_METHOD = "none"
"""What the method is called where an audit draws its own populations: there is no place to name."""
WORDS = {
    "audit.steps": "attack steps",
    "audit.points": "audited points",
    "audit.draws": "samples",
    "method.steps": "training steps",
}
"""Keys whose last part alone would not say enough."""


def departures(reductions: Sequence[Reduction]) -> list[str]:
    """One text for each group of methods and datasets with the same departures.

    ``SenSR on Adult: iterations 100 (published: 20,000), learning rate 0.001 (published: 10^-5)``.
    """
    places: dict[tuple[str, Any, Any], set[tuple[str, str]]] = {}
    for r in reductions:
        places.setdefault((r.key, r.here, r.published), set()).add((r.method, r.dataset))
    values: dict[frozenset[tuple[str, str]], list[str]] = {}
    for (key, here, published), where in places.items():
        text = f"{_key(key)} {value(here)} (published: {value(published)})"
        values.setdefault(frozenset(where), []).append(text)
    return [": ".join(filter(None, (_where(where), ", ".join(texts)))) for where, texts in values.items()]


def joined(words: Iterable[str]) -> str:
    """``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def value(found: Any) -> str:
    """A configured value as text; nothing means that all are taken."""
    if found is None:
        return "all"
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return plain(float(found))
    if isinstance(found, (list, tuple)):
        return ", ".join(map(value, found))
    return str(found)


def _key(key: str) -> str:
    return WORDS.get(key, key.split(".", 1)[-1].replace("_", " "))


def _where(places: frozenset[tuple[str, str]]) -> str:
    methods, datasets = in_order([m for m, _ in places]), sorted({d for _, d in places})
    if methods == [NO_METHOD]:
        return ""
    return f"{joined(method_style(m).label for m in methods)} on {joined(DATASETS.get(d, d) for d in datasets)}"
