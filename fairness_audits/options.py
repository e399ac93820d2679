"""Declare each option of an audit once, to get a command-line flag, a key of the YAML file, and a Python keyword.

    class Test(Options, title="test"):
        alpha: Share = option("level of the test", 0.05)
        draws: Count | None = option("permutations (default: 10000)", None)

The ``Settings`` of an audit derive from its groups of options; all are frozen dataclasses. The annotation is the check
(:mod:`fairness_audits.validation`) for values from any source: flags and YAML texts are converted to the annotated
type. An option without a default is required. A ``source`` option has no Python keyword, because arrays replace files
and columns.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from inspect import get_annotations
from pathlib import Path
from typing import Any, ClassVar, Literal, dataclass_transform

from fairness_audits.arguments import UNNAMED, Given
from fairness_audits.validation import Checked, Count, Number, Share, Size, described, hints_of

Standardize = Literal["continuous", "none"]
"""Columns to standardise."""


def option(
    doc: str,
    default: Any = MISSING,
    metavar: str | None = None,
    *,
    command: bool = False,
    words: bool = False,
    python: str | tuple[str, str] = "",
) -> Any:
    """Return a field of Options with its help, its default, and its placeholder in the help.

    ``words``: the values are separate arguments, as from a shell pattern, not one comma-separated list. ``python``: the
    name in Python messages if there is no keyword of this name. A pair also gives the text for an option with a value,
    in which ``{value}`` is the value and ``{column}`` and ``{level}`` are its parts.
    """
    extra = {
        "doc": doc,
        "metavar": metavar,
        "command": command,
        "words": words,
        "python": (python, python) if isinstance(python, str) else python,
    }
    return field(default=default, metadata=extra)


source = partial(option, command=True)
"""Declare an option of the command line and its YAML only (a file, column or place), replaced by an array in Python."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options(Checked):
    """A titled group of options, or several groups together. Each subclass becomes a frozen keyword-only dataclass."""

    title: ClassVar[str] = ""

    def __init_subclass__(cls, title: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.title = title
        dataclass(frozen=True, kw_only=True)(cls)

    def some(self, *names: str) -> dict[str, Any]:
        """Return these options with their values."""
        return {name: getattr(self, name) for name in names}


class Written(Options, title="output"):
    """The files of every result. They are not written into the YAML, because they do not change the audit."""

    output: Path | None = source("folder for {files}", None, "DIR")
    json: Path | None = source("file for the result as JSON", None, "FILE")


class Output(Written, title="output"):
    """The outputs of an audit that tests something."""

    junit: Path | None = source("file for the outcome as JUnit XML, for continuous integration", None, "FILE")
    gate: bool = source("exit with a status for the outcome: 0 not rejected, 3 rejected, 4 inconclusive", False)


class Files(Options, title="reading"):
    """Options for reading CSV files."""

    missing: Sequence[str] | None = source(
        "strings that mean a missing value in a CSV, in addition to the empty cell (default: NA, None, nan, ...). "
        "'-': only the empty cell",
        None,
        "A,B",
    )
    separator: Literal["comma", "semicolon", "tab", "bar"] | None = source(
        "the separator of the columns of a CSV (default: inferred from its first lines)", None
    )


class Reading(Files, title="reading"):
    text: Sequence[str] = source(
        "columns to read as text although they look like numbers, such as codes like 01",
        (),
        "A,B",
        python="text in X",
    )


class Predictions(Options, title="data"):
    """A file of a model's outputs, and the label's column."""

    predictions: str = source(
        "the rows to audit: CSV or Parquet, a folder of such files, or a glob in quotes", metavar="FILE"
    )
    label: str | None = source(
        "the column with the true class, 0 or 1 (not needed for metrics without labels, such as selection rates)",
        None,
        "COLUMN",
        python="y",
    )
    positive: str | None = option(
        "the label's value that counts as 1 (needed unless labels are 0 and 1)", None, "VALUE"
    )


class Decisions(Predictions, title="data"):
    """The outputs of one model in a file of predictions."""

    score: str | None = source("the column with the model's score or probability of class 1", None, "COLUMN")
    prediction: str | None = source("the column with the model's decision, 0 or 1", None, "COLUMN")
    threshold: Number | None = option("makes decisions from scores: 1 if the score is at least T", None, "T")


class Level(Options, title="test"):
    alpha: Share = option("level of the test", 0.05)


class Seed(Options, title="test"):
    seed: Size = option("random seed of the permutations", 0)


class TableOptions(Options, title="data"):
    data: Path = source("the rows to audit: CSV or Parquet", metavar="FILE", python="X")


class Inputs(Options, title="data"):
    """The columns that the model uses, and the label's value that it calls class 1."""

    positive: str | None = option(
        "the label's value that is the model's class 1 (needed unless labels are 0 and 1)", None, "VALUE"
    )
    features: Sequence[str] = source(
        "the model's input columns, in the model's order (default: the columns that the model names; otherwise all "
        "columns of the file without another role, such as the label, in the file's order)",
        (),
        "A,B,C",
        python=("X", "X[{value}]"),
    )
    drop: Sequence[str] = source(
        "columns that are not inputs of the model", (), "A,B", python=("X", "X.drop(columns={value})")
    )
    categorical: Sequence[str] = option(
        "numeric columns whose values are codes of categories, besides those that the model treats as categories",
        (),
        "A,B",
    )


class RowOptions(TableOptions, Inputs, title="data"):
    """A table of rows, and the columns that the model uses."""


OutputKind = Literal["auto", "logits", "log-probabilities", "probability"]
TAKES = (
    "model.pt (TorchScript), model.pt2 (torch.export), model.joblib, model.pkl, model.skops (scikit-learn), "
    "model.onnx or model.onnx:OUTPUT, package.module:name or path/to/file.py:name"
)


class Computed(Options, title="model"):
    trust_pickle: bool = source(
        "open a pickled model or an exported program. Opening a pickle can run any code, so use this only for files "
        "from a source that you trust",
        False,
        python="the opened model in place of its path",
    )
    device: str = option("cpu, cuda, cuda:1, ... (default: a GPU if one is available)", "auto")
    batch_rows: Count | None = option(
        "largest number of rows or images that the model takes in one call (default: no limit of its own)", None, "N"
    )


class Precise(Computed, title="model"):
    dtype: Literal["float64", "float32"] = option("precision of the model's computations", "float64")


class Network(Options, title="model"):
    model: str = source(
        f"{TAKES}, where name is a model, a function x -> output, or a function without arguments that returns one "
        "of these",
        metavar="MODEL",
    )
    classes: Sequence[str] | None = option(
        "names of the model's classes, in the order of its outputs (needed if there are more than two classes and "
        "the labels are not 0, 1, 2, ...)",
        None,
        "A,B,C",
    )
    output_kind: OutputKind = option(
        "kind of the model's scores, which have shape (n, K) for K classes, or (n,) or (n, 1) for class 1 (default: "
        "inferred from the values and reported)",
        "auto",
    )


def option_fields(kind: type[Options]) -> Iterator[tuple[str, Field[Any], Any]]:
    """Yield title, field and type of each option, in the order of the groups and of the options within them."""
    for base in kind.__bases__:
        if issubclass(base, Options) and base is not Options:
            yield from option_fields(base)
    hints, own = hints_of(kind), get_annotations(kind)  # type: ignore[arg-type]
    yield from ((kind.title, one, hints[one.name]) for one in fields(kind) if one.name in own)  # type: ignore[arg-type]


def flag(name: str) -> str:
    """Return the flag of an option: ``--step-size`` for ``step_size``."""
    return f"--{name.replace('_', '-')}"


def stated(settings: Options | Given) -> dict[str, Any]:
    """Return the options that reproduce an audit: all except the outputs and empty ones, defaults included."""
    if isinstance(settings, Given):
        return settings.stated
    outputs = {one.name for one in fields(Output)}
    names = [one.name for _, one, _ in option_fields(type(settings)) if one.name not in outputs]
    # Write paths and functions by name and tuples as lists.
    text = json.dumps(settings.some(*names), default=lambda value: getattr(value, "__name__", str(value)))
    return {name: value for name, value in json.loads(text).items() if value not in (None, [], "")}


HEAD = "# The options of this audit."
"""The beginning of an options file that an audit has written."""


def as_yaml(settings: Options | Given, audit: str) -> str:
    """Return the YAML that reproduces an audit; for a Python call, its keywords and the names of its arrays."""
    import yaml

    text = yaml.safe_dump({"audit": audit, **stated(settings)}, sort_keys=False, allow_unicode=True, width=120)
    again = f"fairness-audits {audit} --config audit.yaml"
    return f"{HEAD} If it read files, this repeats it: {again}\n{text}"


def changed(kind: type[Options], settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the options among those :func:`stated` that differ from their defaults, without unnamed predictions."""
    defaults = {one.name: one.default for _, one, _ in option_fields(kind)}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()}
    return [(name, value) for name, value in settings.items() if value not in (plain[name], UNNAMED)]


def keywords(kind: type[Options], without: Iterable[str] = ()) -> list[tuple[Field[Any], Any]]:
    """Return the options that are keywords in Python, with their types."""
    every = ((one, hint) for _, one, hint in option_fields(kind) if not one.metadata["command"])
    return [(one, hint) for one, hint in every if one.name not in set(without)]


def documented(kind: type[Options], without: Iterable[str] = ()) -> str:
    """Return the Python keywords as a section of a numpy-style docstring."""
    lines = []
    for one, hint in keywords(kind, without):
        default = "" if one.default is MISSING else f", default {one.default!r}"
        kind_of = described(hint).replace("null", "None").replace("true or false", "bool")
        lines.append(f"{one.name} : {kind_of}{default}")
        doc, letter = one.metadata["doc"], one.metadata["metavar"] or ""
        # On the command line, a letter such as T stands for the value of the option.
        doc = re.sub(rf"\b{letter}\b", f"``{one.name}``", doc) if len(letter) == 1 else doc
        lines += textwrap.wrap(doc, 112, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
