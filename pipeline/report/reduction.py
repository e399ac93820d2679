"""Differences between the configuration of a run and the published configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairness_audits.messages import enumerated
from fairness_audits.results.style import in_order, method_style
from pipeline.report import labels as w
from pipeline.report.selection import text_of

GROUPS = ("dataset", "method", "transport", "audit")
"""Configuration groups of a point. ``transport`` is optional."""

NEUTRAL = (
    *("method.threads", "transport.threads", "audit.examples"),
    *("audit.bootstraps", "audit.permutations", "audit.noise_deals", "audit.noise_people"),
)
"""Configured values that do not change the meaning of a number: threads, draws, examples."""


@dataclass(frozen=True)
class Reduction:
    """A configured value of a point that differs from the published value."""

    block: str
    dataset: str
    method: str
    key: str
    here: Any
    published: Any
    transport: str = ""

    def concerns(self, place: Mapping[str, Any]) -> bool:
        """Return whether the reduction applies to a setting. Keys missing from the setting match any value."""
        own = {name: getattr(self, name) for name in ("block", "dataset", "method", "transport")}
        return all(not value or place.get(name, value) == value for name, value in own.items())

    @classmethod
    def at(cls, point: Mapping[str, Any], key: str, here: Any, published: Any) -> Reduction:
        """Make the reduction of a point."""
        dataset, method, transport = (point.get(part, {}).get("name", "") for part in GROUPS[:3])
        return cls(point["block"], dataset, method, key, here, published, transport)


def reductions(points: Sequence[Mapping[str, Any]], published: Sequence[Mapping[str, Any]]) -> tuple[Reduction, ...]:
    """Return the differences between the points of a run and the same points as published, without repetitions.

    A point is ``{"block", "dataset": {"name", ...}, "method": {...}, "audit": {...}, "repetitions"}``, optionally with
    ``"transport": {...}``. Both lists hold the same points in the same order. Fewer repetitions widen an interval but
    leave each repetition as published, so they are not counted here. The stamp states them.
    """
    found: dict[Reduction, None] = {}
    for here, there in zip(points, published, strict=True):
        others = dict(flat(there))
        for key, value in flat(here):
            if value != others.get(key) and key not in NEUTRAL:
                found[Reduction.at(here, key, value, others.get(key))] = None
    return tuple(found)


def departures(reductions: Sequence[Reduction]) -> list[str]:
    """Return one text per group of methods and data sets with the same differences.

    ``SenSR on Adult: iterations 100 (published: 20,000), learning rate 0.001 (published: 10^-5)``.
    """
    places: dict[tuple[str, Any, Any], set[tuple[str, str]]] = {}
    for r in reductions:
        by = r.transport if r.key.startswith("transport.") else r.method
        places.setdefault((r.key, r.here, r.published), set()).add((by, r.dataset))
    values: dict[frozenset[tuple[str, str]], list[str]] = {}
    for (key, here, published), where in places.items():
        name = w.plainly(key.rpartition(".")[2])
        text = f"{name} {value_text(key, here)} (published: {value_text(key, published)})"
        values.setdefault(frozenset(where), []).append(text)
    return [": ".join(filter(None, (_where(where), ", ".join(texts)))) for where, texts in values.items()]


def value_text(key: str, value: Any) -> str:
    """Return a configured value as text. A number of points that is not set means all points."""
    if value is None:
        return "all" if key.endswith("points") else "not set"
    return text_of(value)


def flat(point: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every value of a point with its key, such as ``("method.learning_rate", 0.0001)``."""
    for group in GROUPS:
        for key, value in point.get(group, {}).items():
            if key not in ("name", "kind"):
                yield f"{group}.{key}", tuple(value) if isinstance(value, list) else value


def values(point: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the pairs of :func:`flat` with mappings flattened too, and the repetitions."""
    for key, value in flat(point):
        if isinstance(value, Mapping):
            yield from ((f"{key}.{name}", item) for name, item in value.items())
        else:
            yield key, value
    if "repetitions" in point:
        yield "repetitions", point["repetitions"]


def _where(places: frozenset[tuple[str, str]]) -> str:
    methods, datasets = in_order([m for m, _ in places if m != w.NO_METHOD]), sorted({d for _, d in places})
    if not methods:
        return ""
    names = enumerated(w.MAPS[m].label if m in w.MAPS else method_style(m).label for m in methods)
    return f"{names} on {w.datasets_named(datasets)}"
