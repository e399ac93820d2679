"""The keywords of an audit as its options: described by its signature and docstring, checked, and read from texts.

    @audit(one={"y": "label"}, several={"group": "group"})
    def some_audit(y: ArrayLike, group: ArrayLike | pd.DataFrame, *, alpha: Share = 0.05) -> Result:
        \"\"\"Return ...

        Parameters
        ----------
        alpha : float in (0, 1), default 0.05
            Level of the test.
        \"\"\"
        given = Given(some_audit, locals())

``one`` and ``several`` are the arguments with one column or with several, and the options that name these columns when
the rows come from a file. ``instead`` are the other options of files, such as a path, with the arguments that take
their place. All other keywords are options: the same word in Python (``step_size``), on the command line
(``--step-size``) and in a file of options. The annotation is the check (:mod:`fairness_audits.validation`).
"""

from __future__ import annotations

import csv
import functools
import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import listed, missing_package, nearest
from fairness_audits.progress import progress_bar
from fairness_audits.validation import Names, described, fits

Audit = TypeVar("Audit", bound=Callable[..., Any])
EMPTY: Mapping[str, str] = MappingProxyType({})
REQUIRED = inspect.Parameter.empty
"""The default of an option that has none."""
TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
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
FORMER = {
    "bins": "scores are counted exactly now: leave it out, and round the scores of more than 20 million rows",
    "part": "audit all rows at once, with batch_rows if memory is short, or a sample of them with points",
    "search=differences": "Leave search out, or pass a torch network",
}
"""Options of earlier releases, and values of options, with what to do instead."""
OutputKind = Literal["auto", "logits", "log-probabilities", "probability"]
"""The kind of a model's scores; auto: inferred from the values."""
TAKES = (
    "model.pt (TorchScript), model.pt2 (torch.export), model.joblib, model.pkl, model.skops (scikit-learn), "
    "model.onnx or model.onnx:OUTPUT, package.module:name or path/to/file.py:name"
)
"""The models that the command takes."""
HEAD = "# The options of this audit."
"""The beginning of an options file that an audit has written."""
OUTPUTS = ("output", "json", "junit", "gate")
"""Options that do not change the audit."""
UNNAMED = "the predictions"
"""The option for a file of predictions in a Python call, which passes arrays."""


@dataclass(frozen=True)
class Option:
    """An option of an audit: its name in Python, type with conditions, default, and description.

    ``metavar`` is its value in the help of the command.
    """

    name: str
    hint: Any
    default: Any = REQUIRED
    doc: str = ""
    metavar: str | None = None

    @property
    def flag(self) -> str:
        """Return ``--step-size`` for ``step_size``."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def repeats(self) -> bool:
        """Return whether the option takes only lists or mappings, so that its flag may be repeated."""
        return all(_several(kind) or get_origin(kind) is Mapping for kind in _kinds(self.hint))

    @property
    def placeholder(self) -> str | None:
        """Return what stands for the value in the help, such as the choices, ``A,B`` for a list, ``N`` or ``TEXT``."""
        kinds = list(_kinds(self.hint))
        limits = [limit for kind in kinds for limit in getattr(kind, "__metadata__", ())]
        if named := self.metavar or next((one.metavar for one in limits if one.metavar), None):
            return named
        if any(get_origin(kind) is Mapping for kind in kinds):
            return "NAME=VALUE"
        if any(map(_several, kinds)):
            return "X,Y" if getattr(one := element(self.hint), "__origin__", one) in (int, float) else "A,B"
        choices = [str(one) for kind in kinds if get_origin(kind) is Literal for one in get_args(kind)]
        plain = get_args(kinds[0])[0] if get_origin(kinds[0]) is Annotated else kinds[0]
        return "|".join(choices) or {int: "N", float: "X", str: "TEXT", Path: "FILE"}.get(plain)

    def checked(self, value: Any) -> Any:
        """Return a Python value converted to the option's type. Raises InvalidInput if it does not fit."""
        found = settled(value, self.hint)
        if not fits(found, self.hint):
            problem = f"expected {self.name} to be {described(self.hint)}; found {found!r}"
            raise self.refused(problem, value)
        return found

    def refused(self, problem: object, value: Any) -> InvalidInput:
        """Return the error for a value that does not fit, with what to do instead of a value that is gone."""
        remedy = FORMER.get(f"{self.name}={value}", "")
        with suppress(TypeError, ValueError):
            if (share := float(value) / 100) > 0.01 and fits(share, self.hint):
                remedy = f"{value} % is {self.name}={share:g}"
        return InvalidInput(str(problem), option=self.name, remedy=remedy)


@dataclass(frozen=True)
class Audited:
    """The options of a public function; ``one`` and ``several`` name those of its columns in a file, by argument.

    The command lacks the keywords ``python``, because it states the same in another way.
    """

    function: Callable[..., Any]
    one: Mapping[str, str]
    several: Mapping[str, str]
    python: Collection[str] = ()

    @functools.cached_property
    def columns(self) -> dict[str, str]:
        """Return the options of the columns by argument, in the order of the signature."""
        both = {**self.several, **self.one}
        return {name: both[name] for name in inspect.signature(self.function).parameters if name in both}

    @functools.cached_property
    def order(self) -> list[str]:
        """Return the names of all options, including those that name columns, in the order of the signature."""
        return [self.columns.get(name, name) for name in inspect.signature(self.function).parameters]

    @functools.cached_property
    def columns_of_files(self) -> dict[str, Option]:
        """Return the options that name the columns of a file."""
        docs, parameters = documented(self.function), inspect.signature(self.function).parameters
        found = {}
        for argument, name in self.columns.items():
            needed = parameters[argument].default is REQUIRED
            hint, absent = (Names if needed else Sequence[str], ()) if argument in self.several else (str | None, None)
            metavar = "A,B" if argument in self.several else "COLUMN"
            found[name] = Option(name, hint, REQUIRED if needed else absent, docs[argument], metavar)
        return found

    @functools.cached_property
    def options(self) -> dict[str, Option]:
        """Return the keywords that are options: annotated keyword-only parameters other than arrays and objects."""
        names, docs = vars(inspect.getmodule(self.function)), documented(self.function)
        found = {}
        for one in inspect.signature(self.function).parameters.values():
            own = one.name in docs and one.name not in (*self.columns, *self.python)
            if one.kind is one.KEYWORD_ONLY and own:
                hint = eval(one.annotation, names) if isinstance(one.annotation, str) else one.annotation
                found[one.name] = Option(one.name, hint, one.default, docs[one.name])
        return found


def documented(function: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each parameter in a numpydoc docstring, as one line of plain text."""
    text = inspect.getdoc(function) or ""
    _, _, section = text.partition("Parameters\n----------\n")
    section = re.split(r"\n\n\w+\n-+\n", section)[0]
    entries = re.findall(r"^(\S.*?) : .*\n((?: {4}.*\n?|\n)+)", section, flags=re.MULTILINE)
    plain = {names: re.sub(r":\w+:`(\w+)`|``", r"\1", " ".join(body.split())) for names, body in entries}
    return {name: body for names, body in plain.items() for name in names.split(", ")}


def audit(
    *,
    one: Mapping[str, str] = EMPTY,
    several: Mapping[str, str] = EMPTY,
    instead: Mapping[str, str] = EMPTY,
    python: Collection[str] = (),
) -> Callable[[Audit], Audit]:
    """Check the keywords of a public function, and show its progress.

    Wrong or missing keywords raise TypeError; all other input that the caller can correct raises InvalidInput. Its
    ``option`` is the argument in Python.
    """

    def decorate(function: Audit) -> Audit:
        own = Audited(function, one, several, python)
        signature = inspect.signature(function)
        arguments = {**instead, **{name: argument for argument, name in own.columns.items()}}

        @functools.wraps(function)
        def called(*positional: Any, **named: Any) -> Any:
            for name in named:
                if name not in signature.parameters:
                    hint = similar(name, signature.parameters)
                    raise TypeError(f"{function.__name__}() has no argument {name!r}{hint}")
            bound = signature.bind_partial(*positional, **named).arguments
            needed = [one.name for one in signature.parameters.values() if one.default is REQUIRED]
            if missing := [name for name in needed if name not in bound]:
                raise TypeError(f"{function.__name__}() needs {listed(missing)}")
            named |= {name: option.checked(named[name]) for name, option in own.options.items() if name in named}
            try:
                with progress_bar(function.__name__.replace("_", " ")):
                    return function(*positional, **named)
            except InvalidInput as error:
                error.option = error.option and arguments.get(error.option, error.option)
                raise
            except ModuleNotFoundError as error:
                raise ModuleNotFoundError(missing_package(error), name=error.name) from error

        called.audited = own  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return decorate


@dataclass(frozen=True)
class Given:
    """The options of one run of an audit by name, those of its columns included, with their values.

    Parameters
    ----------
    audit : function
        A public function.
    values : mapping
        Values of its options; other entries, such as arrays, are ignored.
    """

    audit: Callable[..., Any] = field(repr=False)
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        known = {name: self.values.get(name, one.default) for name, one in self.audited.options.items()}
        object.__setattr__(self, "values", known)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError as error:
            raise AttributeError(name) from error

    @property
    def audited(self) -> Audited:
        """Return the options of the public function."""
        found: Audited = self.audit.audited  # type: ignore[attr-defined]
        return found

    def but(self, **changes: Any) -> Given:
        """Return these options with some changed or added: first files, then the signature in its order."""
        order = self.audited.order
        added = {name: value for name, value in changes.items() if name not in self.values}
        values = {**added, **self.values, **changes}
        ranked = sorted(values, key=lambda name: order.index(name) if name in order else -1)
        return self._with({name: values[name] for name in ranked})

    def without(self, *names: str) -> Given:
        """Return these options without some that do not apply."""
        return self._with({name: value for name, value in self.values.items() if name not in names})

    def _with(self, values: Mapping[str, Any]) -> Given:
        new = Given(self.audit, self.values)
        object.__setattr__(new, "values", values)
        return new

    def is_default(self, name: str) -> bool:
        """Return whether an option has its default."""
        return bool(self.values[name] == self.audited.options[name].default)

    def some(self, *names: str) -> dict[str, Any]:
        """Return these options with their values."""
        return {name: self.values[name] for name in names}

    @property
    def stated(self) -> dict[str, Any]:
        """Return the options that reproduce the audit: all except the outputs and empty ones, defaults included."""
        kept = {name: value for name, value in self.values.items() if name not in OUTPUTS}
        # Write paths and functions by name and tuples as lists.
        text = json.dumps(kept, default=lambda value: getattr(value, "__name__", str(value)))
        return {name: value for name, value in json.loads(text).items() if value not in (None, [], "")}

    def as_yaml(self, audit: str) -> str:
        """Return the YAML that reproduces the audit; for a Python call, its keywords and the names of its arrays."""
        import yaml

        text = yaml.safe_dump({"audit": audit, **self.stated}, sort_keys=False, allow_unicode=True, width=120)
        again = f"fairness-audits {audit} --config audit.yaml"
        return f"{HEAD} If it read files, this repeats it: {again}\n{text}"

    @property
    def changed(self) -> list[tuple[str, Any]]:
        """Return the stated options that differ from their defaults, without unnamed predictions."""
        options = self.audited.options
        plain = {
            name: list(one.default) if isinstance(one.default, tuple) else one.default for name, one in options.items()
        }
        return [(name, value) for name, value in self.stated.items() if value not in (plain.get(name, False), UNNAMED)]

    def refuse(self, names: Collection[str], only: str) -> None:
        """Raise InvalidInput if one of these options, which apply to ``only`` some inputs, differs from its default."""
        for name, _ in self.changed:
            if name in names:
                raise InvalidInput(f"{name} applies to {only} only", option=name, remedy="Leave it out")


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


def settled(value: Any, hint: Any) -> Any:
    """Convert a keyword's value to the type of its option.

    NumPy scalars become Python scalars. A scalar becomes the text of a level, a list with one value or a path, if the
    option needs it. A value that does not fit is returned unchanged, so that the error can show it.
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, list | tuple):
        several = tuple(settled(one, element(hint)) for one in value)
        return several if fits(several, hint) else value
    if get_origin(hint) is Literal:
        return next((one for one in get_args(hint) if one == value), value)
    if get_origin(hint) in (Union, UnionType):
        found = (settled(value, one) for one in get_args(hint))
        return value if value is None else next((one for one in found if fits(one, hint)), value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if fits(value, hint):
        return value
    return next((one for one in (_level(value), [value], [_level(value)]) if fits(one, hint)), value)


def _level(value: Any) -> Any:
    """Return the text of a column's value; a missing value or a non-scalar is returned unchanged."""
    from pandas.api.types import is_scalar

    from fairness_audits.tables.levels import is_missing, level_name

    return level_name(value) if is_scalar(value) and not is_missing(value) else value


def read(text: str, hint: Any) -> Any:
    """Convert a text to this type. Raises InvalidInput if this fails."""
    value = read_value(text, hint)
    if not fits(value, hint):
        raise InvalidInput(f"expected {described(hint).removeprefix('null or ')}, found {text!r}")
    return value


def read_value(text: str, hint: Any) -> Any:
    """Convert a text to this type; a text that cannot be converted is returned unchanged."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return read_value(text, arguments[0])
    if origin in (Union, UnionType):
        every = ((read_value(text, one), one) for one in arguments if one is not NoneType)
        return next((value for value, one in every if fits(value, one)), text)
    if origin is Literal:
        return next((one for one in arguments if str(one) == text), text)
    if _several(hint):
        return tuple(read_value(part, arguments[0]) for part in names(text))
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


def _kinds(hint: Any) -> Iterator[Any]:
    """Yield the types of a union, without None."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return (part for part in parts if part is not NoneType)


def element(hint: Any) -> Any:
    """Return the element type of a list that this type allows; str if it allows none."""
    for part in _kinds(hint):
        if _several(part):
            return get_args(get_args(part)[0] if get_origin(part) is Annotated else part)[0]
    return str


def names(text: str) -> tuple[str, ...]:
    """Split ``a,b`` or ``a,"b, c"`` into a tuple; spaces around a name belong to it only in quotes."""
    parts = next(csv.reader([text], skipinitialspace=True), [])
    if not all(part.strip() for part in parts or [""]):
        raise InvalidInput(f"expected names separated by commas, found {text!r}")
    return tuple(part if f'"{part}"' in text else part.strip() for part in parts)
