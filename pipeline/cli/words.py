"""Sentences as tables: lines ``name: text with {quantities}``, given where their quantities are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.cli.document import Caveat, Facts


def entries(text: str) -> list[tuple[str, str]]:
    """The lines ``name: text`` of a table, in their order; a line that begins with a space continues the one before."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        if line.startswith(" "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return [(name, said) for name, _, said in (line.partition(": ") for line in lines)]


def facts(text: str, **quantities: Any) -> Facts:
    """All lines of a table, filled in; those of an empty list are left out, and of a longer one given once for each."""
    lines = []
    for name, said in entries(text):
        several = quantities.get(name)
        every = [{**quantities, name: one} for one in several] if isinstance(several, list) else [quantities]
        lines += [(name, said.format(**one)) for one in every]
    return Facts(tuple(lines))


def caveats(text: str, found: Mapping[str, Any]) -> Iterator[Caveat]:
    """The lines of a table whose condition holds.

    ``found`` has by the condition's name what was found of it: something false, where it does not hold or is not named;
    something true; the quantities of its sentence; or a list of these, for each of which the sentence is given once.
    """
    for condition, said in entries(text):
        holds = found.get(condition)
        for quantities in holds if isinstance(holds, list) else [holds] if holds else []:
            yield Caveat(condition, said.format(**(quantities if isinstance(quantities, Mapping) else {})))


def refuse(text: str, found: Mapping[str, Any]) -> None:
    """ValueError with the first line of a table whose condition holds; ``found`` as in :func:`caveats`."""
    for one in caveats(text, found):
        raise ValueError(one.text)
