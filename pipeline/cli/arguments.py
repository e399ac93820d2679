"""The arguments that audits share, so that they mean the same in each."""

from __future__ import annotations

import csv
import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ArgumentGroup
from collections.abc import Callable
from pathlib import Path

from pipeline.cli.columns import Choice, attribute
from pipeline.cli.output_kind import KINDS


def add_data_arguments(parser: ArgumentParser, apart: str = "sensitive", label: bool = True) -> _ArgumentGroup:
    """``--data``, ``--label`` and which columns are the model's inputs.

    ``apart`` is what the columns are called that are no inputs unless told so; ``label``: whether there must be one.
    """
    group = parser.add_argument_group("data")
    group.add_argument("--data", metavar="FILE", type=Path, required=True, help="the rows to audit: CSV or Parquet")
    group.add_argument("--label", metavar="COLUMN", required=label, help="the column with the true class, 0 or 1")
    group.add_argument(
        "--positive", metavar="VALUE", help="the label's value that the model calls class 1 (where it is not 0 and 1)"
    )
    group.add_argument(
        "--features",
        metavar="A,B,C",
        type=names,
        default=(),
        help=f"the model's input columns in its order (default: all columns but label, {apart} and dropped ones, in "
        "the order of the file)",
    )
    group.add_argument("--drop", metavar="A,B", type=names, default=(), help="columns that the model does not take")
    group.add_argument(
        f"--include-{apart}", action="store_true", help=f"the {apart} column is an input of the model too"
    )
    return group


def add_model_arguments(parser: ArgumentParser) -> _ArgumentGroup:
    """``--model`` and how to read what it returns."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        required=True,
        metavar="MODEL",
        help="model.pt (TorchScript), model.pt2 (torch.export), package.module:name or path/to/file.py:name, where the "
        "name is a network, a function x -> output, or a function without arguments that returns one of these",
    )
    group.add_argument(
        "--output-kind",
        choices=("auto", *KINDS),
        default="auto",
        help="what the model returns: (n, 2) scores of the classes, or (n,) or (n, 1) of class 1 (default: read off "
        "the values, and said in the verdict)",
    )
    add_network_arguments(group)
    return group


def add_network_arguments(group: _ArgumentGroup) -> None:
    """How a network is opened and computed."""
    group.add_argument(
        "--trust-pickle",
        action="store_true",
        help="open a .pt file that holds a pickled network. A pickle can run any program when it is opened: only for "
        "files whose maker you trust",
    )
    group.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: a GPU where one is visible)")
    group.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="default: %(default)s")


def add_output_arguments(parser: ArgumentParser, folder_holds: str) -> _ArgumentGroup:
    """``--output`` and ``--json``; without either the verdict is only printed."""
    group = parser.add_argument_group("output")
    group.add_argument("--output", metavar="DIR", type=Path, help=f"write {folder_holds} into this folder")
    group.add_argument("--json", metavar="FILE", type=Path, help="write the result as JSON to this file")
    return group


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
