"""Where a run departs from the published setting, in few words."""

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.report import words as w
from pipeline.report.numbers import plain
from pipeline.report.settings import Reduction, setting_label
from pipeline.report.style import in_order, method_style

WORDS = {
    "audit.steps": "attack steps",
    "audit.points": "audited points",
    "audit.draws": "random draws",
    "method.steps": "training steps",
    "method.points": "training points",
    "transport.steps": "training steps",
    "transport.points": "fitted points of a group",
    "dataset.train": "people of a group to train on",
    "dataset.test": "people of a group to test",
    "audit.members": "people for the distances",
    "method.train_points": "images trained on",
    "dataset.train_points": "training images",
    "dataset.test_points": "test images",
    "audit.carlini_wagner_initial_c": "Carlini-Wagner initial c",
    "audit.carlini_wagner_iterations": "Carlini-Wagner iterations",
    "audit.carlini_wagner_learning_rate": "Carlini-Wagner learning rate",
    "audit.carlini_wagner_points": "Carlini-Wagner points",
    "audit.carlini_wagner_searches": "Carlini-Wagner searches",
    "audit.deepfool_candidates": "DeepFool candidates",
    "audit.deepfool_points": "DeepFool points",
    "audit.deepfool_steps": "DeepFool steps",
    "audit.fmn_points": "FMN points",
    "audit.fmn_start_steps": "FMN start steps",
    "audit.fmn_steps": "FMN steps",
}
"""Keys whose last part alone would not say enough."""


def departures(reductions: Sequence[Reduction]) -> list[str]:
    """One text for each group of methods and datasets with the same departures.

    ``SenSR on Adult: iterations 100 (published: 20,000), learning rate 0.001 (published: 10^-5)``.
    """
    places: dict[tuple[str, Any, Any], set[tuple[str, str]]] = {}
    for r in reductions:
        by = r.transport if r.key.startswith("transport.") else r.method
        places.setdefault((r.key, r.here, r.published), set()).add((by, r.dataset))
    values: dict[frozenset[tuple[str, str]], list[str]] = {}
    for (key, here, published), where in places.items():
        text = f"{setting_label(key, WORDS)} {value(here)} (published: {value(published)})"
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


def _where(places: frozenset[tuple[str, str]]) -> str:
    methods, datasets = in_order([m for m, _ in places if m != w.NO_METHOD]), sorted({d for _, d in places})
    if not methods:
        return ""
    names = joined(w.MAPS_IN_A_SENTENCE.get(m) or method_style(m).label for m in methods)
    return f"{names} on {joined(map(w.dataset_in_a_sentence, datasets))}"
