"""Tables of sentences, with lines of the form ``name: text with {quantities}``.

They contain an audit's caveats, its refusals, and the limits beyond which its verdict is inconclusive.
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
"""Exit status of each outcome under --gate."""
INCONCLUSIVE = "INCONCLUSIVE"
READING = """
repeated_names: More than one column is called {name}: the later one is read as {own}.
decimal_commas: In {columns}, a comma in a number is read as a decimal comma.
codes: The model treats the numbers in {columns} as codes of categories, so the audit does too.
unknown_categories: Column {column!r} has values that the model was not fitted on, such as {examples}, in {count:,}
  rows. The model decides about these rows as it does about unknown values.
spaces: The file has spaces after its separators. They do not count as part of a name or a value.
no_weight: Rows with weight 0 are left out: {count:,}.
"""
"""Caveats about reading files, shared by all audits."""


def entries(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a table's lines ``name: text``; a line that starts with a space continues the last one."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        if line.startswith(" "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return [(name, sentence) for name, _, sentence in (line.partition(": ") for line in lines)]


def tested(kind: type[Options], options: Mapping[str, Any], facts: Mapping[str, str]) -> Section:
    """Return the section on the null hypothesis, the data, and the options that are not their defaults."""
    changes = "; ".join(
        f"{name.replace('_', ' ')} {_option_text(value)}".rstrip() for name, value in changed(kind, options)
    )
    return Section("What was tested", (Facts((*facts.items(), ("options", changes))),))


def _option_text(value: Any) -> str:
    """Return an option's value as text; a flag needs none."""
    return "" if value is True else listed(value, SHOWN) if isinstance(value, list) else str(value)


def caveats(text: str, found: Mapping[str, Any]) -> Iterator[Caveat]:
    """Yield the lines of a table whose condition holds.

    ``found`` maps each condition to false (or omits it) if it does not hold, to true, to the quantities of its
    sentence, or to a list of quantities with one caveat for each.
    """
    for condition, sentence in entries(text):
        holds = found.get(condition)
        for quantities in holds if isinstance(holds, list) else [holds] if holds else []:
            yield Caveat(condition, sentence.format(**(quantities if isinstance(quantities, Mapping) else {})))


def beyond(limits: str, quantities: Mapping[str, Any], rejected: bool) -> list[str]:
    """Return the sentences of the limits that are exceeded.

    ``limits`` has lines ``quantity <= number: sentence`` (or ``>=``, ``>``). A sentence may use the {value}, the
    {limit} and all quantities. A line ``... unless rejected`` applies only if the test does not reject. None exceeds no
    limit; NaN exceeds every limit.
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
    """Return the verdict, inconclusive if nothing could be tested (``rejected`` is None) or a limit is exceeded.

    The ``headlines`` are for a rejection and for no rejection. ``decision`` is the key of the decision in the facts,
    with the value null if inconclusive. The sentences of the limits are the reason and precede ``sentence``.
    """
    reason = " ".join(beyond(limits, quantities, rejected is True))
    if reason or rejected is None:
        text = f"{reason} {sentence}" if reason else sentence
        return Verdict("inconclusive", INCONCLUSIVE, text, {decision: None, **facts}, reason or sentence)
    outcome: Outcome = "rejected" if rejected else "not rejected"
    return Verdict(outcome, headlines[not rejected], sentence, {decision: rejected, **facts})
