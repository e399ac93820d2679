"""Sentences as tables: lines ``name: text with {quantities}``, given where their quantities are known.

So are said an audit's caveats, what it refuses, and the limits beyond which its verdict is inconclusive.
"""

import operator
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from fairness_audits.messages import SHOWN, listed
from fairness_audits.options import Options, changed
from fairness_audits.results.result import Caveat, Facts, Outcome, Section, Verdict

RELATIONS = {"<=": operator.le, ">=": operator.ge, ">": operator.gt}
UNLESS = " unless rejected"
STATUS: Mapping[Outcome, int] = {"not rejected": 0, "rejected": 3, "inconclusive": 4}
"""The exit status of each outcome under --gate."""
INCONCLUSIVE = "INCONCLUSIVE"
READING = """
repeated_names: More than one column is called {name}: the later one is read as {own}.
decimal_commas: Numbers with a decimal comma are read as such in {columns}.
"""
"""What is said of any file, by how it was read."""


def entries(text: str) -> list[tuple[str, str]]:
    """The lines ``name: text`` of a table, in their order; a line that begins with a space continues the one before."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        if line.startswith(" "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return [(name, said) for name, _, said in (line.partition(": ") for line in lines)]


def tested(kind: type[Options], options: Mapping[str, Any], facts: Mapping[str, str]) -> Section:
    """What was tested: the null hypothesis, what was measured, and the options that are not their defaults."""
    changes = "; ".join(
        f"{name.replace('_', ' ')} {_option_text(value)}".rstrip() for name, value in changed(kind, options)
    )
    return Section("What was tested", (Facts((*facts.items(), ("options", changes))),))


def _option_text(value: Any) -> str:
    """An option's value; a flag says all by its name."""
    return "" if value is True else listed(value, SHOWN) if isinstance(value, list) else str(value)


def caveats(text: str, found: Mapping[str, Any]) -> Iterator[Caveat]:
    """The lines of a table whose condition holds.

    ``found`` has by the condition's name what was found of it: something false, where it does not hold or is not named;
    something true; the quantities of its sentence; or a list of these, for each of which the sentence is given once.
    """
    for condition, said in entries(text):
        holds = found.get(condition)
        for quantities in holds if isinstance(holds, list) else [holds] if holds else []:
            yield Caveat(condition, said.format(**(quantities if isinstance(quantities, Mapping) else {})))


def beyond(limits: str, quantities: Mapping[str, Any], rejected: bool) -> list[str]:
    """The sentences of the limits that are not kept.

    ``limits`` has a line ``quantity <= number: sentence`` for each (or ``>=``, ``>``); its sentence may name the
    {value}, the {limit} and all quantities. A line ``... unless rejected`` is for what only keeps a test from
    rejecting. A quantity of None does not apply; one that is NaN keeps no limit.
    """
    sentences = []
    for line, sentence in entries(limits):
        quantity, relation, limit = line.removesuffix(UNLESS).split()
        value = quantities[quantity]
        if value is None or (rejected and line.endswith(UNLESS)) or RELATIONS[relation](value, float(limit)):
            continue
        sentences.append(sentence.format(**{**quantities, "value": value, "limit": float(limit)}))
    return sentences


def concluded(
    rejected: bool | None,
    headlines: tuple[str, str],
    sentence: str,
    limits: str,
    quantities: Mapping[str, Any],
    decision: str,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> Verdict:
    """The verdict: an inconclusive one where nothing could be tested (``rejected`` is None) or a limit is not kept.

    The ``headlines`` are of a rejection and of none; ``decision`` is its key in the facts, null where inconclusive. The
    sentences of the limits are the reason, which comes before what was found.
    """
    reason = " ".join(beyond(limits, quantities, rejected is True))
    if reason or rejected is None:
        text = f"{reason} {sentence}" if reason else sentence
        return Verdict("inconclusive", INCONCLUSIVE, text, {decision: None, **facts}, reason or sentence)
    outcome: Outcome = "rejected" if rejected else "not rejected"
    return Verdict(outcome, headlines[not rejected], sentence, {decision: rejected, **facts})
