"""Options as tables, each with its check beside it, so that they mean the same in every audit.

A table has a line ``--name METAVAR ; kind marks ; help`` for each option, ``[title]`` over those of a group, and what
begins with a space continues the line before. The kind is the check: one of KINDS or the audit's own, with arguments
after colons (``number:0:1``). The marks are ``!`` (must be given), ``*`` (may be repeated), ``=value`` (the default,
``=`` being no names), and ``either`` or ``either!`` (at most, or exactly, one of those in the group that have it).
"""

from __future__ import annotations

import csv
import math
from argparse import ArgumentParser, ArgumentTypeError, _ActionsContainer
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.cli.output_kind import KINDS as OUTPUT_KINDS
from pipeline.cli.units import Asked

Check = Callable[[str], Any]


def names(text: str) -> tuple[str, ...]:
    """``a,b`` or ``a,"b, c"`` as a tuple."""
    parts = tuple(part.strip() for part in next(csv.reader([text], skipinitialspace=True), []))
    if not parts or not all(parts):
        raise ArgumentTypeError(f"expected names separated by commas, found {text!r}")
    return parts


def standardization(text: str) -> Asked:
    """``continuous``, ``none``, or names of columns, for :func:`pipeline.cli.units.units`."""
    return "continuous" if text == "continuous" else "none" if text == "none" else names(text)


def number(above: str, below: str = "inf") -> Check:
    """A check of numbers strictly between two bounds."""
    wanted = f"a number above {above}" + ("" if below == "inf" else f" and below {below}")

    def check(text: str) -> float:
        value = parsed(float, text)
        if value is None or not float(above) < value < float(below):
            raise ArgumentTypeError(f"expected {wanted}, found {text!r}")
        return float(value)

    return check


def whole(least: str) -> Check:
    """A check of whole numbers from ``least`` on."""

    def check(text: str) -> int:
        value = parsed(int, text)
        if value is None or value < int(least):
            raise ArgumentTypeError(f"expected a whole number of at least {least}, found {text!r}")
        return int(value)

    return check


def parsed(kind: type, text: str) -> Any:
    """The text as a number that is not NaN, or None."""
    try:
        value = kind(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


KINDS: Mapping[str, Callable[..., Check]] = {
    "text": lambda: str,
    "path": lambda: Path,
    "names": lambda: names,
    "number": number,
    "whole": whole,
    "standardization": lambda: standardization,
}
"""Each kind makes a check of its arguments: a function of the text that gives the value or raises."""

FEATURES = """
--features A,B,C ; names = ; the model's input columns in its order (default: all columns but label, {apart} and
  dropped ones, in the order of the file)
--drop A,B ; names = ; columns that the model does not take
--include-{apart} ; flag ; the {apart} column is an input of the model too
"""
DATA = (
    """
[data]
--data FILE ; path ! ; the rows to audit: CSV or Parquet
--label COLUMN ; text {label}; the column with the true class, 0 or 1
--positive VALUE ; text ; the label's value that the model calls class 1 (where it is not 0 and 1)
"""
    + FEATURES
)
"""``apart`` is what the columns are called that are no inputs unless told so; ``label``: a mark, or empty."""
MODEL = f"""
[model]
--model MODEL ; text ! ; model.pt (TorchScript), model.pt2 (torch.export), package.module:name or path/to/file.py:name,
  where the name is a network, a function x -> output, or a function without arguments that returns one of
  these{{takes}}
--output-kind ; one:auto:{":".join(OUTPUT_KINDS)} =auto ; what the model returns: {{returns}} (default: read off the
  values, and said in the verdict)
"""
TWO_CLASSES = "(n, 2) scores of the classes, or (n,) or (n, 1) of class 1"
NETWORK = """
--trust-pickle ; flag ; open a .pt file that holds a pickled network. A pickle can run any program when it is opened:
  only for files whose maker you trust
--device ; text =auto ; cpu, cuda, cuda:1, ... (default: a GPU where one is visible)
"""
DTYPE = "--dtype ; one:float64:float32 =float64 ; precision in which the model is computed\n"
OUTPUT = """
[output]
--output DIR ; path ; write {files} into this folder
--json FILE ; path ; write the result as JSON to this file
--gate ; flag ; let the exit status tell the outcome: 0 not rejected, 3 rejected, 4 inconclusive
"""


def add_options(parser: ArgumentParser, table: str, kinds: Mapping[str, Callable[..., Check]]) -> None:
    """Add the options of a table; ``kinds`` are the audit's own. Groups of one title are one group."""
    groups: dict[str, _ActionsContainer] = {"": parser}
    either: dict[str, _ActionsContainer] = {}
    title = ""
    for line in _lines(table):
        if line.startswith("["):
            title = line.strip("[]")
            if title not in groups:
                groups[title] = parser.add_argument_group(title)
            continue
        option, kind, told = line.split(" ; ", 2)
        what, *marks = kind.split()
        group = groups[title]
        if one := next((mark for mark in marks if mark.startswith("either")), None):
            if title not in either:
                either[title] = group.add_mutually_exclusive_group(required=one.endswith("!"))
            group = either[title]
        _add_option(group, option, what, marks, told, {**KINDS, **kinds})


def _lines(table: str) -> list[str]:
    return table.strip().replace("\n  ", " ").replace("\n\n", "\n").splitlines()


def _add_option(
    group: _ActionsContainer, option: str, what: str, marks: list[str], told: str, kinds: Mapping[str, Any]
) -> None:
    """One option; its default is told in the help unless that does so in words."""
    name, _, metavar = option.partition(" ")
    kind, *arguments = what.split(":")
    how: dict[str, Any] = {"metavar": metavar} if metavar else {}
    if kind == "flag":
        how["action"] = "store_true"
    elif kind == "one":
        how["choices"] = tuple(int(one) if one.isdigit() else one for one in arguments)
        how |= {"type": int} if isinstance(how["choices"][0], int) else {}
    else:
        how["type"] = kinds[kind](*arguments)
    if "*" in marks:
        how |= {"action": "extend" if kind == "names" else "append", "default": []}
    if "!" in marks:
        how["required"] = True
    if (default := next((mark[1:] for mark in marks if mark.startswith("=")), None)) is not None:
        how["default"] = how.get("type", str)(default) if default else ()
        told += f" (default: {how['default']})" if default and "default:" not in told else ""
    group.add_argument(name, help=told, **how)
