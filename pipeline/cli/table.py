"""A user's table: read so that CSV and Parquet give the same numbers, its columns as checked arrays, their units."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline.cli import settings as options
from pipeline.messages import SHOWN, check_columns, listed, reason
from pipeline.seeds import generators
from pipeline.tabulate.levels import level_name, level_of, number_of
from pipeline.tabulate.source import csv_header
from pipeline.types import Array

if TYPE_CHECKING:
    import torch

FILL = "fill them in or remove these rows, as was done for the model's training"
"""What to do about missing values."""
LARGEST = 1e100
"""Squares of larger numbers, which variances are made of, overflow."""
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")
UNIT_SCALE = (0.2, 5.0)
"""Standard deviations within these bounds count as a unit scale, where no decision is needed."""


@dataclass(frozen=True)
class Source:
    """Rows, counted from 0, with the ``name`` that messages call them by, and the checksum of their file."""

    name: str
    table: pd.DataFrame
    sha256: str | None = None

    @classmethod
    def read(cls, path: Path, text: Sequence[str] = (), missing: Sequence[str] | None = None) -> Source:
        """The rows in a file; arguments as in :func:`read_table`."""
        return cls(str(path), read_table(path, text, missing), sha256(path))


def read_table(path: Path, text: Sequence[str] = (), missing: Sequence[str] | None = None) -> pd.DataFrame:
    """The table in ``path``, its rows counted from 0.

    Decimal numbers in a CSV are read to the last bit, so that a CSV and a Parquet file of the same rows give the same
    audit. Columns named in ``text`` stay text; ``missing`` says what stands for a missing value in a CSV (None: what
    pandas takes for one; ``-``: the empty cell alone). Raises ValueError for a file that is absent, of another kind,
    malformed or empty, and for columns without a name or with the same name.
    """
    from pyarrow import ArrowException

    if not path.is_file():
        raise ValueError(f"there is no file {path}: give the path of a CSV or Parquet file")
    if not path.name.lower().endswith(SUFFIXES):
        raise ValueError(
            f"expected a file ending in {', '.join(SUFFIXES)}, found {path}: save the rows as one of these"
        )
    try:
        if path.suffix in (".parquet", ".pq"):
            table = pd.read_parquet(path)
        else:
            csv_header(path)  # pandas itself would rename repeated columns and number nameless ones
            gaps = {} if missing is None else {"na_values": ["", *missing], "keep_default_na": False}
            kept = dict.fromkeys(text, str)
            table = pd.read_csv(path, low_memory=False, encoding="utf-8-sig", dtype=kept, **gaps)  # type: ignore[call-overload]
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)}): write the file again") from error
    except pd.errors.ParserError as error:
        told = str(error).rpartition("C error: ")[2].strip()
        raise ValueError(f"{path} is not a well-formed CSV file ({told}): mend that line") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8") from error
    if table.empty:
        raise ValueError(f"{path} has no rows: an audit needs rows of data")
    table.columns = [str(name) for name in table.columns]
    check_columns(table, text, "--text", str(path))
    table = table.assign(**{name: table[name].map(str, na_action="ignore") for name in text})
    return table.reset_index(drop=True)


def sha256(path: Path) -> str:
    """The checksum of a file, so that a verdict says which bytes it is about."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Attribute:
    """A sensitive attribute: a column with two levels, or one ``level`` of a column against all the others."""

    column: str
    level: str | None = None

    @property
    def name(self) -> str:
        """How the attribute is called in results: ``sex`` or ``race=White``."""
        return self.column if self.level is None else f"{self.column}={self.level}"


def attribute(text: str, columns: Sequence[str]) -> Attribute:
    """``sex`` is a column, ``race=White`` a level of one, unless a column has the whole text as its name."""
    column, equals, level = text.partition("=")
    return Attribute(text) if text in columns or not equals else Attribute(column, level)


@dataclass(frozen=True)
class Rows:
    """Arrays of n rows: ``features`` (n, d) float64, ``label`` (n,) int64 from 0 (empty without a label).

    ``sensitive[name]`` (n,) int64 in {0, 1}. ``label_levels`` and ``levels[name]`` say what the numbers stand for.
    ``sensitive_inputs`` are the positions of the features that are themselves sensitive columns.
    """

    features: Array
    names: tuple[str, ...]
    label: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    label_levels: tuple[str, ...] = ("0", "1")
    sensitive: Mapping[str, Array] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    sensitive_inputs: tuple[int, ...] = ()

    def only(self, places: Array) -> Rows:
        """The rows at these places (m,)."""
        sensitive = {name: group[places] for name, group in self.sensitive.items()}
        return replace(self, features=self.features[places], label=self.label[places], sensitive=sensitive)


def rows(source: Source, names: Sequence[str], sensitive: Sequence[Attribute]) -> Rows:
    """The arrays of the named features and of sensitive attributes; ValueError names the column and what to do.

    The label is left to :func:`classes_of`, which has to know how many classes the model tells apart.
    """
    coded = {one.name: two_levels(source.table, one, source.name) for one in sensitive}
    columns = {one.column for one in sensitive}
    return Rows(
        features=numeric(source.table, names, source.name),
        names=tuple(names),
        sensitive={name: code for name, (code, _) in coded.items()},
        levels={name: levels for name, (_, levels) in coded.items()},
        sensitive_inputs=tuple(position for position, name in enumerate(names) if name in columns),
    )


def feature_names(
    source: Source, asked: options.Rows, label: str | None, apart: Sequence[str], option: str, included: bool
) -> tuple[str, ...]:
    """The model's input columns in their order: those asked for, or all columns that have no other part.

    The columns ``apart``, which the ``option`` names, are inputs only where they are asked for, or ``included``.
    """
    table, path = source.table, source.name
    labels = () if label is None else (label,)
    for names, named_by in (
        (labels, "--label"),
        (apart, option),
        (asked.features, "--features"),
        (asked.drop, "--drop"),
    ):
        check_columns(table, names, named_by, path)
    if label in apart:
        raise ValueError(f"column {label!r} is given as --label and as {option}: it can only be one of them")
    if not asked.features:
        left_out = {*labels, *asked.drop, *(() if included else apart)}
        every = tuple(name for name in table.columns if name not in left_out)
        if not every:
            raise ValueError(f"{path}: no feature column is left beside label, {option[2:]} and dropped columns")
        return every
    repeated = sorted({name for name in asked.features if list(asked.features).count(name) > 1})
    if repeated:
        raise ValueError(f"--features names {listed(repeated)} more than once: name each column once")
    both = [name for name in asked.features if name in {*labels, *asked.drop}]
    if both:
        raise ValueError(f"--features names {listed(both)}, which is also the label or dropped: leave one of them out")
    return tuple(asked.features)


def numeric(table: pd.DataFrame, names: Sequence[str], path: str, gaps: bool = False, wanted: str = "numbers") -> Array:
    """The named columns as (n, d) float64; ValueError for text, infinite and, unless ``gaps``, missing values.

    Rows are named by the table's index, so that a part of a file speaks of the file's own rows; ``wanted`` is what the
    message says of all features.
    """
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    wrong = [
        name
        for name in names
        if not (is_numeric_dtype(table[name]) or is_bool_dtype(table[name])) or is_complex_dtype(table[name])
    ]
    if wrong:
        found = "; ".join(f"{name!r} holds {_examples(table[name])}" for name in wrong[:SHOWN])
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise ValueError(
            f"{path}: expected {wanted} in every feature column, but {found}{more}. Encode these columns as the model "
            f"expects them (pandas.get_dummies of text, days of a date), or leave them out, --drop {','.join(wrong)}"
        )
    columns = [table[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names]
    features = np.column_stack(columns)
    for sound, problem, remedy in (
        (gaps | ~np.isnan(features), "is missing", FILL),
        (~np.isinf(features), "is infinite", "mend or remove these rows"),
        (
            ~(np.abs(features) > LARGEST),
            f"is beyond {LARGEST:g}",
            "mend these rows, or give the column in another unit",
        ),
    ):
        if told := _unsound(sound, table.index, names, problem):
            raise ValueError(f"{path}: {told}: {remedy}")
    return features


def gaps(table: pd.DataFrame) -> str:
    """Where values are missing, as the beginning of a sentence; empty where none is."""
    return _unsound(table.notna().to_numpy(), table.index, list(table.columns), "is missing")


def _unsound(sound: Array, rows: pd.Index, names: Sequence[str], problem: str) -> str:
    """The first column that is not ``sound`` (n, d) in every row; empty where all are."""
    bad = np.flatnonzero(~sound.all(axis=0))
    if not bad.size:
        return ""
    others = f" (so it is in {len(bad) - 1} more columns)" if len(bad) > 1 else ""
    return f"column {names[bad[0]]!r} {problem} in {_at(rows[~sound[:, bad[0]]])}{others}"


def two_classes(column: pd.Series, positive: str | None, path: str) -> tuple[Array, tuple[str, str]]:
    """The label as 0 and 1, with the values that these stand for."""
    values = distinct(column, "--label", path)
    if len(values) != 2:
        raise ValueError(
            f"{path}: the label {column.name!r} must have two classes, found {len(values)}: {listed(values, SHOWN)}. "
            "This audit is for models of two classes: keep the rows of two, or code the label as 0 and 1"
        )
    if positive is None:
        if [number_of(value) for value in values] != [0.0, 1.0]:
            raise ValueError(
                f"{path}: the label {column.name!r} holds {listed(values)}, not 0 and 1: say which one the model's "
                f"class 1 is, with --positive {values[1]!r}"
            )
        one = values[1]
    else:
        one = level_named(values, positive, "--positive", column, path)
    zero = next(value for value in values if value is not one)
    return (column == one).to_numpy(dtype=np.int64), (str(zero), str(one))


def class_numbers(column: pd.Series, classes: Sequence[str] | None, path: str) -> Array:
    """Labels (n,) int64 from 0: names among ``classes``, or whole numbers.

    Raises ValueError for missing labels, names without ``classes``, and names that are not among them.
    """
    distinct(column, "--label", path)
    holds = f"{path}: the label {column.name!r}"
    texts = [level_name(value) for value in column]
    number = {name: place for place, name in enumerate(classes or ())}
    if classes is not None and len(number) < len(classes):
        raise ValueError(f"--classes names a class more than once: {listed(classes)}")
    if classes is not None and set(texts) <= set(classes):
        return np.array([number[text] for text in texts], dtype=np.int64)
    if all(text.isdigit() for text in texts):
        return np.array([int(text) for text in texts], dtype=np.int64)
    odd = sorted({text for text in texts if text not in number and (classes is not None or not text.isdigit())})
    if classes is None:
        raise ValueError(
            f"{holds} holds {listed(odd, SHOWN)}, expected the numbers of the model's outputs, from 0: give their "
            "names in the outputs' order with --classes A,B,C"
        )
    raise ValueError(f"{holds} holds {listed(odd, SHOWN)}, which --classes does not name. It names: {listed(classes)}")


def check_classes(label: Array, count: int, classes: Sequence[str] | None, name: object, path: str) -> None:
    """ValueError unless the labels are outputs of a model of ``count`` classes and ``--classes`` names them all."""
    if classes is not None and len(classes) != count:
        raise ValueError(
            f"--classes names {len(classes)} classes, but the model returns scores of {count}: name all, in the order "
            "of the outputs"
        )
    beyond = sorted(set(label[label >= count].tolist()))
    if beyond:
        raise ValueError(
            f"{path}: the label {name!r} holds {listed(beyond, SHOWN)}, out of range: the "
            f"model has {count} classes, so expected 0 to {count - 1}. If classes are numbered from 1, or otherwise, "
            "name them with --classes"
        )


def classes_of(
    column: pd.Series, count: int, classes: Sequence[str] | None, positive: str | None, path: str
) -> tuple[Array, tuple[str, ...]]:
    """The label (n,) as numbers of the outputs of a model of ``count`` classes, and what these stand for."""
    if classes is None and (count == 2 or positive is not None):
        return two_classes(column, positive, path)
    label = class_numbers(column, classes, path)
    check_classes(label, count, classes, column.name, path)
    if classes is None and len(np.unique(label)) <= 2:
        raise ValueError(
            f"the model returns scores of {count} classes, but the label {column.name!r} of {path} holds "
            f"{len(np.unique(label))}: give the model's own classes their names, in its order, with --classes"
        )
    return label, tuple(classes or map(str, range(count)))


def two_levels(table: pd.DataFrame, attribute: Attribute, path: str) -> tuple[Array, tuple[str, str]]:
    """A sensitive attribute as 0 and 1, with the levels that these stand for."""
    column = table[attribute.column]
    values = distinct(column, "--sensitive", path)
    if attribute.level is not None:
        one = level_named(values, attribute.level, f"--sensitive {attribute.name}", column, path)
        if len(values) == 1:
            raise ValueError(f"{path}: {attribute.column!r} is {one!r} in every row: there is nothing to compare with")
        return (column == one).to_numpy(dtype=np.int64), (f"not {one}", str(one))
    if len(values) != 2:
        remedy = (
            f"compare one level with the rest, --sensitive {attribute.column}={values[0]}, or code it in two levels"
            if len(values) > 2
            else "an attribute that is the same in all rows cannot be audited"
        )
        raise ValueError(
            f"{path}: the sensitive column {attribute.column!r} must have two levels, found {len(values)}: "
            f"{listed(values, SHOWN)}: {remedy}"
        )
    return (column == values[1]).to_numpy(dtype=np.int64), (str(values[0]), str(values[1]))


def distinct(column: pd.Series, option: str, path: str) -> list[object]:
    """The sorted distinct values of a column without missing ones."""
    missing = column.index[column.isna()]
    if len(missing):
        raise ValueError(
            f"{path}: column {column.name!r} ({option}) is missing in {_at(missing)}: fill them in or remove these rows"
        )
    try:
        return sorted(column.unique().tolist(), key=lambda value: (isinstance(value, str), value))
    except TypeError as error:
        raise ValueError(
            f"{path}: column {column.name!r} ({option}) holds values that cannot be compared, such as "
            f"{_examples(column.head(1).map(str))}: expected numbers or text"
        ) from error


def level_named(values: Sequence[object], wanted: str, option: str, column: pd.Series, path: str) -> object:
    """The value that the user's text stands for."""
    if (found := level_of(values, wanted, column.name)) is not None:
        return found
    raise ValueError(
        f"{option} asks for the value {wanted!r}, but column {column.name!r} of {path} holds {listed(values, SHOWN)}"
    )


def _examples(column: pd.Series) -> str:
    return listed([repr(value) for value in column.dropna().unique()[:2].tolist()]) or "nothing"


def _at(where: Sequence[int]) -> str:
    """``row 7`` or ``3 rows: 7, 9, 12``, rows counted from 0."""
    rows = f"row {where[0]}" if len(where) == 1 else f"{len(where)} rows: {listed(list(where), SHOWN)}"
    return f"{rows} (counted from 0)"


def drawn(rows: Array, count: int | None, *what: str) -> Array:
    """At most ``count`` of the rows, drawn without replacement by what they are for, in their own order."""
    if count is None or len(rows) <= count:
        return rows
    (rng,) = generators("audit", *what, repetitions=1)
    return np.sort(rng.choice(rows, size=count, replace=False))


@dataclass(frozen=True)
class Units:
    """z = (x - shift) / scale: x in the columns' own units, z in those of the audit. ``shift`` and ``scale`` are (d,).

    ``standardized`` names the columns with scale other than 1: their mean and standard deviation on the audited rows.
    """

    shift: Array
    scale: Array
    standardized: tuple[str, ...] = ()

    def inward(self, x: Array) -> Array:
        """Points in the units of the audit."""
        return (x - self.shift) / self.scale

    def outward(self, z: Array) -> Array:
        """Points in the columns' own units."""
        return z * self.scale + self.shift

    def network_input(self, z: torch.Tensor) -> torch.Tensor:
        """What the network sees for points in the units of the audit, differentiable."""
        return z * z.new_tensor(self.scale) + z.new_tensor(self.shift)


def units(features: Array, names: Sequence[str], asked: options.Standardize | None) -> Units:
    """The units of an audit of rows ``features`` (n, d), in which a missing number does not count.

    The penalty and the step size take one unit of each column alike, so an audit in wrong units moves some columns
    hardly at all and finds nothing. ``asked``: ``none`` keeps the units, ``continuous`` standardises each column of
    more than two values. With None the units are kept where all such columns are near unit scale; elsewhere ValueError
    asks for a decision.
    """
    d = len(names)
    mean, std = (np.nanmean, np.nanstd) if np.isnan(features).any() else (np.mean, np.std)
    spread = std(features, axis=0)
    continuous = [j for j in range(d) if len(np.unique(features[:, j])) > 2]
    if asked is None:
        lowest, highest = UNIT_SCALE
        off = [j for j in continuous if not lowest <= spread[j] <= highest]
        if off:
            found = listed([f"{names[j]} ({spread[j]:.3g})" for j in off], SHOWN)
            raise ValueError(
                f"columns with a standard deviation far from 1: {found}. The audit takes one unit of each column "
                "alike, so say what it shall do: --standardize continuous measures columns of more than "
                "two values in standard deviations (the model still sees the columns as they are); --standardize none "
                "keeps their units"
            )
    shift, scale = np.zeros(d), np.ones(d)
    if asked != "continuous":
        return Units(shift, scale)
    shift[continuous], scale[continuous] = mean(features[:, continuous], axis=0), spread[continuous]
    return Units(shift, scale, tuple(names[j] for j in continuous))
