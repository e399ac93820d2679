"""The arguments that audits share, so that they mean the same in each."""

from __future__ import annotations

import csv
import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ActionsContainer, _ArgumentGroup
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.cli.columns import Choice, attribute
from pipeline.cli.output_kind import KINDS
from pipeline.cli.units import Asked


def add_data_arguments(parser: ArgumentParser, apart: str = "sensitive", label: bool = True) -> _ArgumentGroup:
    """``--data``, ``--label`` and which columns are the model's inputs.

    ``apart`` is what the columns are called that are no inputs unless told so; ``label``: whether there must be one.
    """
    group = parser.add_argument_group("data")
    option(group, "--data FILE", "the rows to audit: CSV or Parquet", type=Path, required=True)
    option(group, "--label COLUMN", "the column with the true class, 0 or 1", required=label)
    option(group, "--positive VALUE", "the label's value that the model calls class 1 (where it is not 0 and 1)")
    option(
        group,
        "--features A,B,C",
        f"the model's input columns in its order (default: all columns but label, {apart} and dropped ones, in the "
        "order of the file)",
        (),
        type=names,
    )
    option(group, "--drop A,B", "columns that the model does not take", (), type=names)
    option(group, f"--include-{apart}", f"the {apart} column is an input of the model too", action="store_true")
    return group


def add_model_arguments(
    parser: ArgumentParser, takes: str = "", returns: str = "(n, 2) scores of the classes, or (n,) or (n, 1) of class 1"
) -> _ArgumentGroup:
    """``--model`` and how to read what it ``returns`` for what it ``takes``."""
    group = parser.add_argument_group("model")
    option(
        group,
        "--model MODEL",
        "model.pt (TorchScript), model.pt2 (torch.export), package.module:name or path/to/file.py:name, where the "
        f"name is a network, a function x -> output, or a function without arguments that returns one of these{takes}",
        required=True,
    )
    option(
        group,
        "--output-kind",
        f"what the model returns: {returns} (default: read off the values, and said in the verdict)",
        "auto",
        choices=("auto", *KINDS),
    )
    return group


def add_network_arguments(group: _ArgumentGroup, dtype: bool = True) -> None:
    """How a network is opened and computed; ``dtype``: whether in a precision of the user's."""
    option(
        group,
        "--trust-pickle",
        "open a .pt file that holds a pickled network. A pickle can run any program when it is opened: only for files "
        "whose maker you trust",
        action="store_true",
    )
    option(group, "--device", "cpu, cuda, cuda:1, ... (default: a GPU where one is visible)", "auto")
    if dtype:
        option(group, "--dtype", "precision in which the model is computed", "float64", choices=("float64", "float32"))


def add_output_arguments(parser: ArgumentParser, folder_holds: str) -> _ArgumentGroup:
    """``--output`` and ``--json``; without either the verdict is only printed."""
    group = parser.add_argument_group("output")
    option(group, "--output DIR", f"write {folder_holds} into this folder", type=Path)
    option(group, "--json FILE", "write the result as JSON to this file", type=Path)
    return group


def option(group: _ActionsContainer, flag: str, told: str, default: Any = None, **how: Any) -> None:
    """Add ``--name METAVAR`` with its help; the default is told there unless the help does so in words."""
    name, _, metavar = flag.partition(" ")
    shown = default not in (None, (), []) and "default:" not in told
    how |= {"metavar": metavar} if metavar else {}
    how |= {} if default is None else {"default": default}
    group.add_argument(name, help=f"{told} (default: {default})" if shown else told, **how)


def choice_of(arguments: Namespace, columns: tuple[str, ...], sensitive: tuple[str, ...]) -> Choice:
    """The user's words about the columns of a table."""
    return Choice(
        label=arguments.label,
        positive=arguments.positive,
        sensitive=tuple(attribute(text, columns) for text in sensitive),
        include_sensitive=arguments.include_sensitive,
        features=arguments.features,
        drop=arguments.drop,
    )


def names(text: str) -> tuple[str, ...]:
    """``a,b`` or ``a,"b, c"`` as a tuple."""
    parts = tuple(part.strip() for part in next(csv.reader([text], skipinitialspace=True), []))
    if not parts or not all(parts):
        raise ArgumentTypeError(f"expected names separated by commas, found {text!r}")
    return parts


def standardization(text: str) -> Asked:
    """``continuous``, ``none``, or names of columns, for :func:`pipeline.cli.units.units`."""
    return "continuous" if text == "continuous" else "none" if text == "none" else names(text)


def number(above: float, below: float = math.inf) -> Callable[[str], float]:
    """A parser of numbers strictly between two bounds."""
    wanted = f"a number above {above:g}" + ("" if below == math.inf else f" and below {below:g}")

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not above < value < below:
            raise ArgumentTypeError(f"expected {wanted}, found {text!r}")
        return value

    return parse


def whole_number(least: int) -> Callable[[str], int]:
    """A parser of whole numbers from ``least`` on."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise ArgumentTypeError(f"expected a whole number of at least {least}, found {text!r}")
        return value

    return parse
