"""A user's table: rows read identically from CSV and Parquet, columns as checked arrays, and their units."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.native import Handed, Native
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.seeds import generators
from fairness_audits.tables.duckdb_engine import DuckTable, opened
from fairness_audits.tables.levels import first_row, in_order, level_name, unfit, where
from fairness_audits.tables.rows import Values, doubles, grouped, labelled
from fairness_audits.tables.rows import numeric as numbers_in
from fairness_audits.tables.table import FAULTS, Faulty, Place, Score, missing_texts
from fairness_audits.tables.typed import typed
from fairness_audits.values import Array

FILL = "fill in the values or remove these rows, as in the model's training"
"""Remedy for missing values."""
TINY, LARGEST = 1e-100, 1e100
"""Bounds of the size of numbers. Squares of other numbers underflow or overflow in variances."""


@dataclass(frozen=True)
class Source:
    """Rows, counted from 0, with the ``name`` that messages use and the checksum of their file.

    Numbers are numeric whatever the type of their column. ``notes`` on how rows were read become caveats,
    ``reading`` in ``texts/shared.yaml``. ``given`` reads the rows with the types of :attr:`native`;
    ``handed`` is the caller's own table of the model's inputs.
    """

    name: str
    table: pd.DataFrame
    sha256: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    given: Callable[[], pd.DataFrame] | None = field(default=None, repr=False)
    handed: Handed | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given = self.table
        object.__setattr__(self, "table", typed(given, self.name))
        if self.given is None:
            object.__setattr__(self, "given", lambda: given)

    @classmethod
    def read(
        cls, path: Path, text: Sequence[str] = (), missing: Sequence[str] | None = None, separator: str | None = None
    ) -> Source:
        """Read the rows of a file; decimal numbers in a CSV are exact to the last bit.

        Columns in ``text`` stay text. In a CSV, ``missing`` are the texts of a missing value besides the empty cell,
        and ``separator`` is the delimiter of columns. Raises InvalidInput as in :mod:`fairness_audits.tables`, and for
        a file without rows.
        """
        if not path.is_file():
            problem = f"there is no file {path}"
            raise InvalidInput(problem, source=path, remedy="Give the path of a CSV or Parquet file")
        with opened(path, missing=missing, separator=separator, text_columns=text) as found:
            check_columns(found, text, "text", found.name)
            table = found.frame(text)
        if table.empty:
            raise InvalidInput(f"{path} has no rows. An audit needs rows of data", source=path)
        given = partial(_csv_by_pandas, path, found, table, text, missing) if found.is_csv else None
        given = given or partial(_parquet_by_pandas, path, table, text)
        return cls(str(path), table, sha256(path), found.notes, given)

    @cached_property
    def native(self) -> pd.DataFrame:
        """Return the rows of ``table`` with the types that a model was trained on.

        A CSV file is read by ``pandas.read_csv``, on first use: a code 01 is the number 1 here and the text "01" in
        ``table``. A Parquet file is read by ``pandas.read_parquet``. A data frame is the caller's own.
        """
        assert self.given is not None
        return self.given()

    def inputs(self, names: Sequence[str]) -> Native:
        """Return the named columns, in the audit's form and in that of the model."""
        return Native(self.table[list(names)], self.native[list(names)], self.handed)

    def noting(self, **notes: Any) -> Source:
        """Return the table with further notes; empty ones are left out."""
        return replace(self, notes={**self.notes, **{name: note for name, note in notes.items() if note}})

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns in order."""
        return tuple(self.table.columns)

    def places(self, faulty: Faulty) -> list[Place]:
        """Return the first faulty rows by the table's index, so that messages on part of a file name its rows."""
        column = self.table[faulty.column]
        if faulty.fault == "value":
            wrong = (column == faulty.value).to_numpy()
        elif faulty.fault == "missing":
            wrong = column.isna().to_numpy()
        else:
            bounds = Score(faulty.column, faulty.low, faulty.high)
            wrong = doubles(column, bounds)[1] == FAULTS.index(faulty.fault)
        return [Place(int(row), None, value) for row, value in column[wrong][:SHOWN].items()]


def _csv_by_pandas(
    path: Path, found: DuckTable, table: pd.DataFrame, text: Sequence[str], missing: Sequence[str] | None
) -> pd.DataFrame:
    """Return a CSV file as ``pandas.read_csv`` does, except that numbers with decimal commas are numbers."""
    native = pd.read_csv(
        path,
        sep=found.separator,
        header=0,
        names=list(table.columns),
        dtype=dict.fromkeys(text, str),
        skipinitialspace=found.spaced,
        # The engine reads an empty line of a single column as a missing value.
        skip_blank_lines=len(table.columns) > 1,
        keep_default_na=missing is None,
        na_values=None if missing is None else list(missing_texts(missing)),
        low_memory=False,
    )
    return native.assign(**{name: table[name] for name in found.decimal_commas})


def _parquet_by_pandas(path: Path, table: pd.DataFrame, text: Sequence[str]) -> pd.DataFrame:
    """Return a Parquet file as ``pandas.read_parquet`` does, or as the ``table`` if pandas has other columns."""
    try:
        native = pd.read_parquet(path)
    except (ImportError, ValueError):  # without pyarrow, or of a type that pandas lacks
        return table
    if set(native.columns) != set(table.columns):
        native = native.reset_index()  # pandas stores the labels of rows beside the columns
    alike = set(native.columns) == set(table.columns) and len(native) == len(table)
    return native[list(table.columns)].assign(**{name: table[name] for name in text}) if alike else table


def sha256(path: Path) -> str:
    """Return the checksum of a file, which ties a verdict to the bytes of the file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Attribute:
    """A sensitive attribute: a column with two levels, or one ``level`` of a column against all other levels.

    The ``title`` of a column that crosses others names it for readers.
    """

    column: str
    level: str | None = None
    title: str = ""

    @property
    def name(self) -> str:
        """Return the name of the attribute in results: ``sex``, ``race=White`` or ``sex and race``."""
        return self.title or (self.column if self.level is None else f"{self.column}={self.level}")


def attribute(text: str, columns: Sequence[str]) -> Attribute:
    """Parse ``sex`` as a column and ``race=White`` as a level; a column may have ``=`` in its name."""
    if text in columns or "=" not in text:
        return Attribute(text)
    places = [place for place, letter in enumerate(text) if letter == "="]
    place = next((place for place in places if text[:place] in columns), places[0])
    return Attribute(text[:place], text[place + 1 :])


@dataclass(frozen=True)
class Rows:
    """Arrays of n rows: ``features`` (n, d) float64, ``label`` (n,) int64 from 0 (empty without a label).

    ``sensitive[name]`` (n,) int64 in {0, 1}. ``label_levels`` and ``levels[name]`` are the values behind the numbers.
    ``sensitive_inputs`` are the positions of features that are sensitive columns themselves, or copies of them with
    another name or other values.
    """

    features: Array
    names: tuple[str, ...]
    label: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    label_levels: tuple[str, ...] = ("0", "1")
    sensitive: Mapping[str, Array] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    sensitive_inputs: tuple[int, ...] = ()

    def only(self, places: Array) -> Rows:
        """Return the rows at these positions (m,)."""
        sensitive = {name: group[places] for name, group in self.sensitive.items()}
        return replace(self, features=self.features[places], label=self.label[places], sensitive=sensitive)


def rows(source: Source, names: Sequence[str], sensitive: Sequence[Attribute]) -> Rows:
    """Return the arrays of the named features and of the sensitive attributes.

    The label is left to :func:`classes_of`, because it depends on the number of classes of the model.
    """
    coded = {one.name: two_levels(source, one) for one in sensitive}
    columns, features = {one.column for one in sensitive}, numeric(source, names)
    return Rows(
        features=features,
        names=tuple(names),
        sensitive={name: code for name, (code, _) in coded.items()},
        levels={name: levels for name, (_, levels) in coded.items()},
        sensitive_inputs=tuple(
            position
            for position, name in enumerate(names)
            if name in columns or any(_recoded(features[:, position], code) for code, _ in coded.values())
        ),
    )


def _recoded(feature: Array, code: Array) -> bool:
    """Return whether a feature has one value wherever the code is 0 and another wherever it is 1."""
    values = [np.unique(feature[code == level]) for level in (0, 1)]
    return all(len(one) == 1 for one in values) and values[0] != values[1]


def feature_names(
    source: Source,
    features: Sequence[str],
    drop: Sequence[str],
    label: str | None,
    apart: Sequence[str],
    option: str,
    included: bool,
) -> tuple[str, ...]:
    """Return the model's input columns in order: the requested ``features``, or all columns without another role.

    The columns ``apart``, named by the ``option``, are inputs only if they are requested or ``included``.
    """
    table, path = source.table, source.name
    labels = () if label is None else (label,)
    roles = (("label", labels), (option, apart), ("features", features), ("drop", drop))
    for named_by, names in roles:
        check_columns(table, names, named_by, path)
    if label in apart:
        problem = f"column {label!r} is both label and {option}"
        raise InvalidInput(problem, option=option, column=label, remedy="Drop one of them")
    if not features:
        left_out = {*labels, *drop, *(() if included else apart)}
        every = tuple(name for name in table.columns if name not in left_out)
        if not every:
            problem = f"{path} has no column left for the features, apart from label, {option} and dropped columns"
            raise InvalidInput(problem, source=path, option="drop", remedy="Drop fewer columns")
        return every
    if repeated := sorted({name for name in features if list(features).count(name) > 1}):
        problem = f"features names {listed(repeated)} more than once"
        raise InvalidInput(problem, option="features", column=repeated[0], remedy="Name each column once")
    if both := [name for name in features if name in {*labels, *drop}]:
        problem = f"features names {listed(both)}, which is also the label or in drop"
        raise InvalidInput(problem, option="features", column=both[0], remedy="Remove it from one of them")
    return tuple(features)


def numeric(source: Source, names: Sequence[str], gaps: bool = False, wanted: str = "numbers") -> Array:
    """Return the named columns as (n, d) float64.

    Raises InvalidInput for text, infinite values and, unless ``gaps`` is true, missing values. ``wanted`` describes the
    expected features in the message.
    """
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    table = source.table
    wrong = [
        name
        for name in names
        if not (is_numeric_dtype(table[name]) or is_bool_dtype(table[name])) or is_complex_dtype(table[name])
    ]
    if wrong:
        found = "; ".join(f"{name!r} holds {_examples(table[name])}" for name in wrong[:SHOWN])
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        problem = f"{source.name}: expected {wanted} in every feature column, but {found}{more}"
        remedy = (
            "Encode these columns as the model expects them (such as pandas.get_dummies for text, days for dates). "
            "Otherwise, leave them out of the features"
        )
        raise InvalidInput(problem, source=source.name, option="features", column=wrong[0], remedy=remedy)
    if not gaps:
        check_complete(replace(source, table=table[list(names)]), source.name, FILL.capitalize())
    bounds = (Score(name, -LARGEST, LARGEST) for name in names)
    features = np.column_stack([numbers_in(source, one, "feature", table[one.column], gaps) for one in bounds])
    largest = np.nanmax(np.abs(features), axis=0, initial=0)
    if tiny := [name for name, size in zip(names, largest, strict=True) if 0 < size < TINY]:
        problem = f"{source.name}: the values of column {tiny[0]!r} are too small to square in double precision"
        raise InvalidInput(problem, source=source.name, column=tiny[0], remedy="Measure the column in another unit")
    return features


def check_complete(source: Source, place: str, remedy: str) -> None:
    """Raise InvalidInput if features have missing values; the message begins with ``place``."""
    counts = source.table.isna().sum()
    if not (names := [str(name) for name in source.table if counts[name]]):
        return
    places = source.places(Faulty(names[0], "missing"))
    at = where(places, int(counts[names[0]]), len(source.table), values=False)
    others = f"; values are also missing in {listed(list(map(repr, names[1:])), SHOWN)}" if names[1:] else ""
    problem = f"{place}: column {names[0]!r} (feature) is missing in {at}{others}"
    raise InvalidInput(problem, source=source.name, column=names[0], row=first_row(places), remedy=remedy)


def two_classes(source: Source, column: str, positive: str | None) -> tuple[Array, tuple[str, str]]:
    """Return the label as 0 and 1, with their values in the file."""
    codes, classes = labelled(source, column, source.table[column], positive)
    names = {code: level_name(value) for value, code in classes.items()}
    if len(names) < 2:
        problem = f"is {listed(list(names.values()))} in all rows, but an audit needs rows of both classes"
        raise unfit(source, column, "label", problem)
    return codes, (names[0], names[1])


def class_numbers(source: Source, column: str, classes: Sequence[str] | None) -> Array:
    """Convert labels to (n,) int64 from 0; they are names among ``classes`` or whole numbers.

    Raises InvalidInput for missing labels, for names without ``classes``, and for names that are not among them.
    """
    values = Values.of(source, column, "label", source.table[column])
    texts = [level_name(value) for value in values.distinct]
    if classes is not None and len(set(classes)) < len(classes):
        problem = f"classes contains a class more than once: {listed(classes)}"
        raise InvalidInput(problem, option="classes", remedy="Name each class once")
    number = {level_name(name): place for place, name in enumerate(classes or ())}
    # Numbers are indices of the outputs, unless the classes are numbers themselves.
    indices = all(text.isdigit() for text in texts) and not any(name.isdigit() for name in number)
    if indices and not set(texts) <= set(number):
        number = {text: int(text) for text in texts}
    if odd := in_order(text for text in texts if text not in number and (classes is not None or not text.isdigit())):
        problem, remedy = "which is not in classes", f"It has: {listed(classes or ())}"
        if classes is None:
            problem = "but expected the indices of the model's outputs, from 0"
            remedy = "List the labels in the order of the model's outputs (classes)"
        raise unfit(source, column, "label", f"holds {listed(odd, SHOWN)}, {problem}", remedy, option="classes")
    return values.coded({value: number[text] for value, text in zip(values.distinct, texts, strict=True)})


def check_classes(label: Array, count: int, classes: Sequence[str] | None, name: object, path: str) -> None:
    """Raise InvalidInput unless labels are outputs of a model of ``count`` classes and ``classes`` names them all."""
    if classes is not None and len(classes) != count:
        found = len(classes)
        problem = f"expected {count} names in classes, one for each class of the model; found {found}"
        remedy = "Name all classes, in the order of the outputs"
        raise InvalidInput(problem, option="classes", remedy=remedy)
    if beyond := sorted(set(label[label >= count].tolist())):
        row, held = int(np.flatnonzero(label >= count)[0]), listed(beyond, SHOWN)
        problem = f"{path}: the label {name!r} holds {held}, but the model has {count} classes, 0 to {count - 1}"
        remedy = "If the classes have other numbers or names, list them (classes)"
        raise InvalidInput(problem, source=path, option="classes", column=str(name), row=row, remedy=remedy)


def classes_of(
    source: Source, column: str, count: int, classes: Sequence[str] | None, positive: str | None
) -> tuple[Array, tuple[str, ...]]:
    """Return the label (n,) as output indices of a model of ``count`` classes, with their values in the file."""
    if classes is None and (count == 2 or positive is not None):
        return two_classes(source, column, positive)
    label = class_numbers(source, column, classes)
    check_classes(label, count, classes, column, source.name)
    if classes is None and len(np.unique(label)) <= 2:
        found = len(np.unique(label))
        problem = (
            f"the model returns scores of {count} classes, but the label {column!r} of {source.name} holds {found}"
        )
        remedy = "List the model's classes, in the order of its outputs (classes)"
        raise InvalidInput(problem, source=source.name, option="classes", column=column, remedy=remedy)
    return label, tuple(classes or map(str, range(count)))


def two_levels(source: Source, attribute: Attribute) -> tuple[Array, tuple[str, str]]:
    """Return a sensitive attribute as 0 and 1, with the levels behind them."""
    column = attribute.column
    codes, levels = grouped(source, column, source.table[column], attribute.level, "sensitive")
    if len(levels) != 2:
        problem = (
            f"{source.name}: the sensitive column {column!r} must have two levels, found {len(levels)}: "
            f"{listed(levels, SHOWN)}"
        )
        remedy = (
            f"Compare one level with the rest, by whether {column!r} is {levels[0]!r}, or merge its levels into two"
        )
        raise InvalidInput(problem, source=source.name, option="sensitive", column=column, remedy=remedy)
    first, second = levels
    return (codes, (first, second)) if attribute.level is None else (1 - codes, (second, first))


def _examples(column: pd.Series) -> str:
    return listed([repr(value) for value in column.dropna().unique()[:2].tolist()]) or "nothing"


def drawn(rows: Array, count: int | None, *what: str) -> Array:
    """Draw at most ``count`` rows without replacement, seeded by their purpose ``what``; keep the order of the rows."""
    if count is None or len(rows) <= count:
        return rows
    (rng,) = generators("audit", *what, repetitions=1)
    return np.sort(rng.choice(rows, size=count, replace=False))
