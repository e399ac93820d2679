"""Declare each option of an audit once, to get a command-line flag, a key of the YAML file, and a Python keyword.

    class Test(Options, title="test"):
        alpha: Share = option("level of the test", 0.05)
        draws: Count | None = option("permutations (default: 10000)", None)

The ``Settings`` of an audit derive from its groups of options; all are frozen dataclasses. The annotation is the check
(:mod:`fairness_audits.validation`) for values from any source: flags and YAML texts are converted to the annotated
type. An option without a default is required. A ``source`` option has no Python keyword, because arrays replace files
and columns.
"""

import argparse
import csv
import json
import re
import textwrap
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from inspect import get_annotations
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, dataclass_transform, get_args, get_origin

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest, reason
from fairness_audits.validation import Checked, Count, Share, Size, described, finite, fits, hints_of

Number = Annotated[float, finite]
TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
Standardize = Literal["continuous", "none"]
"""Columns to standardise."""
ROLES: Mapping[str, tuple[str, ...]] = {
    "the groups": ("group", "groups", "partition", "columns", "sensitive", "sensitive_features"),
    "the group as an input": ("include_group", "include_sensitive"),
    "the model": ("model", "predict"),
    "the rows": ("data", "predictions", "X"),
    "the true class": ("label", "y", "y_true"),
    "the model's decisions": ("prediction", "versions", "y_pred"),
    "the model's scores": ("score", "versions", "y_score"),
    "the weights": ("weight", "sample_weight"),
    "the number of permutations": ("draws", "permutations"),
    "the number of rows to audit": ("points", "limit"),
    "the smallest group": ("min_group", "least"),
}
"""Names of the same thing in different audits, in Python and in other libraries."""
FORMER = {"bins": "scores are counted exactly now: leave it out, and round the scores of more than 20 million rows"}
"""Options of earlier releases, with what to do instead."""


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


def add_options(parser: ArgumentParser, kind: type[Options], words: Mapping[str, str]) -> None:
    """Add a flag for each option. Flags have no defaults here, so that values of a YAML file are not overridden."""
    titled: dict[str, Any] = {"": parser}
    for title, one, hint in option_fields(kind):
        if title not in titled:
            titled[title] = parser.add_argument_group(title)
        extra = one.metadata
        text = extra["doc"].format(**words).replace("%", "%%")
        if one.default not in (MISSING, None, False, ()) and "default:" not in text:
            text += f" (default: {one.default})"
        how: dict[str, Any] = {"default": argparse.SUPPRESS, "help": text, "action": "store_true"}
        if hint is not bool:
            parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            kinds = [part for part in parts if part is not NoneType]
            choices = [str(value) for part in kinds if get_origin(part) is Literal for value in get_args(part)]
            how["metavar"] = extra["metavar"] or ("|".join(choices) or None)
            how["type"] = partial(_argument, hint=hint)
            # Options that only accept lists may be repeated.
            repeated = all(_several(part) or get_origin(part) is Mapping for part in kinds)
            how["action"] = "extend" if repeated else "store"
            how |= {"type": str, "nargs": "+"} if extra["words"] else {}
        titled[title].add_argument(flag(one.name), **how)


def flag(name: str) -> str:
    """Return the flag of an option: ``--step-size`` for ``step_size``."""
    return f"--{name.replace('_', '-')}"


def counterpart(name: str, known: Collection[str]) -> tuple[str, str] | None:
    """Return the role of an option of another audit, and the known option with this role; None if there is none."""
    found = ((role, one) for role, names in ROLES.items() if name in names for one in names if one in known)
    return next(found, None)


def similar(name: str, known: Collection[str], shown: Callable[[str], str] = str) -> str:
    """Return a suggestion for an unknown option, to end a sentence: the option with its role, or the nearest name."""
    if name in FORMER:
        return f" ({FORMER[name]})"
    if found := counterpart(name, known):
        return f" (for {found[0]}: {shown(found[1])!r})"
    return nearest(name, known, lambda one: repr(shown(one)))


def _argument(text: str, hint: Any) -> Any:
    try:
        return read(text, hint)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def read(text: str, hint: Any) -> Any:
    """Convert a text to this type. Raises InvalidInput if this fails."""
    value = _read(text, hint)
    if not fits(value, hint):
        raise InvalidInput(f"expected {described(hint).removeprefix('null or ')}, found {text!r}")
    return value


def _read(text: str, hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _read(text, arguments[0])
    if origin in (Union, UnionType):
        every = ((_read(text, one), one) for one in arguments if one is not NoneType)
        return next((value for value, one in every if fits(value, one)), text)
    if origin is Literal:
        return next((one for one in arguments if str(one) == text), text)
    if _several(hint):
        return tuple(_read(part, arguments[0]) for part in names(text))
    if hint is bool:
        return TRUTH.get(text.lower(), text)
    try:
        return hint(text) if hint in (int, float, Path) else text
    except ValueError:
        return text


def _several(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Annotated:
        return _several(get_args(hint)[0])
    return isinstance(origin, type) and issubclass(origin, Sequence)


def names(text: str) -> tuple[str, ...]:
    """Split ``a,b`` or ``a,"b, c"`` into a tuple; spaces around a name belong to it only in quotes."""
    parts = next(csv.reader([text], skipinitialspace=True), [])
    if not all(part.strip() for part in parts or [""]):
        raise InvalidInput(f"expected names separated by commas, found {text!r}")
    return tuple(part if f'"{part}"' in text else part.strip() for part in parts)


def from_yaml(path: Path, kind: type[Options], audit: str) -> dict[str, Any]:
    """Return the options in a YAML file. Keys are flags without leading dashes (``step-size`` or ``step_size``).

    Raises InvalidInput for an unreadable file, a file of another audit, an unknown option or a wrong value.
    """
    import yaml

    try:
        content = yaml.load(path.read_text(encoding="utf-8"), as_written())
    except FileNotFoundError as error:
        remedy = "--config takes a YAML file of options"
        raise InvalidInput(f"there is no file {path}", source=path, option="config", remedy=remedy) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        problem = f"{path} cannot be read as YAML ({reason(error)})"
        raise InvalidInput(problem, source=path, option="config", remedy="Correct it") from error
    if not isinstance(content, Mapping):
        problem = f"{path}: expected options such as 'alpha: 0.05', one per line"
        raise InvalidInput(problem, source=path, option="config")
    if (of := content.get("audit", audit)) != audit:
        problem = f"{path} has options of the audit {of}, not of {audit}"
        raise InvalidInput(problem, source=path, option="config", remedy=f"Run `fairness-audits {of}` with it")
    known = {one.name: hint for _, one, hint in option_fields(kind)}
    values = {}
    for key, value in content.items():
        name = str(key).replace("-", "_")
        if name == "audit":
            continue
        if name not in known:
            problem = f"{path}: {audit} has no option {key!r}{similar(name, known)}"
            raise InvalidInput(problem, source=path, option=name)
        try:
            values[name] = _of_yaml(value, known[name])
        except ValueError as error:
            raise InvalidInput.within(f"{path}: {key}", error, source=str(path), option=name) from error
    return values


class Plain(str):
    """An unquoted value of a YAML file."""

    __slots__ = ()


def as_written() -> Any:
    """Return a YAML loader that keeps every value as text, so that yes, NO, 012 and 12:30 are not converted."""
    import yaml

    class AsWritten(yaml.SafeLoader):
        pass

    def text(loader: Any, node: Any) -> str:
        value = str(loader.construct_scalar(node))
        return value if node.style else Plain(value)

    AsWritten.yaml_implicit_resolvers = {}
    AsWritten.add_constructor("tag:yaml.org,2002:str", text)
    return AsWritten


def _of_yaml(value: Any, hint: Any) -> Any:
    """Convert the texts of a YAML file to this type. Raises InvalidInput if this fails."""
    if isinstance(value, Plain) and value in ("", "~", "null", "Null", "NULL") and fits(None, hint):
        return None
    if isinstance(value, Mapping):
        # The readers of these settings know their types, so YAML's numbers are converted to numbers.
        value = _resolved(value)
    elif isinstance(value, list):
        value = tuple(_read(one, element(hint)) if isinstance(one, str) else one for one in value)
    if isinstance(value, str) or not fits(value, hint):
        return read(str(value), hint)
    return value


def _resolved(value: Any) -> Any:
    import yaml

    if isinstance(value, Mapping):
        return {str(key): _resolved(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_resolved(one) for one in value]
    return yaml.safe_load(value) if isinstance(value, Plain) else value


def element(hint: Any) -> Any:
    """Return the element type of a list that this type allows; str if it allows none."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for part in parts:
        if _several(part):
            return get_args(get_args(part)[0] if get_origin(part) is Annotated else part)[0]
    return str


def stated(settings: Options) -> dict[str, Any]:
    """Return the options that reproduce an audit: all except the outputs and empty ones, defaults included."""
    outputs = {one.name for one in fields(Output)}
    names = [one.name for _, one, _ in option_fields(type(settings)) if one.name not in outputs]
    # Write paths and functions by name and tuples as lists.
    text = json.dumps(settings.some(*names), default=lambda value: getattr(value, "__name__", str(value)))
    return {name: value for name, value in json.loads(text).items() if value not in (None, [], "")}


HEAD = "# The options of this audit."
"""The beginning of an options file that an audit has written."""


def as_yaml(settings: Options, audit: str) -> str:
    """Return the YAML that reproduces an audit; for a Python call, its keywords and the names of its arrays."""
    import yaml

    text = yaml.safe_dump({"audit": audit, **stated(settings)}, sort_keys=False, allow_unicode=True, width=120)
    again = f"fairness-audits {audit} --config audit.yaml"
    return f"{HEAD} If it read files, this repeats it: {again}\n{text}"


UNNAMED = "the predictions"
"""The option for a file of predictions in a Python call, which passes arrays."""


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
