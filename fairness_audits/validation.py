"""Check the fields of a configuration against their types when it is created.

A plug-in's ``Config`` derives from :class:`Checked`; each annotation states the expected values:

    @dataclass(frozen=True)
    class Config(Checked, of="method"):
        steps: Count                                    # a whole number of at least 1
        learning_rate: Positive
        points: Annotated[int, at_least(2)] | None      # null, or a whole number of at least 2
        schedule: Annotated[str, one_of(SCHEDULES)]
        tests: Annotated[list[str], some_of(TESTS)]     # at least one of them, none twice

A wrong value raises ``expected method.steps to be a whole number of at least 1; found 0``. Conditions on several fields
go into a ``__post_init__`` of the class, after ``super().__post_init__()``.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from math import isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_keys, enumerated

Made = TypeVar("Made")
if TYPE_CHECKING:
    Value = TypeVar("Value")
    OneOrMore: TypeAlias = Value | Sequence[Value]
else:
    OneOrMore = Sequence
"""One value or several: a keyword takes both, and a single value becomes a list of one."""


@dataclass(frozen=True)
class Limit:
    """A condition on a value; ``says`` completes "expected x to be a number ...".

    ``metavar`` stands for the value in the help of a command.
    """

    says: str
    holds: Callable[[Any], bool]
    metavar: str = ""


def at_least(low: float) -> Limit:
    """Return the condition [low, infinity)."""
    return Limit(f"of at least {low}", lambda value: value >= low)


def above(low: float) -> Limit:
    """Return the condition (low, infinity)."""
    return Limit(f"above {low}", lambda value: value > low)


def interval(text: str) -> Limit:
    """Return the condition of an interval in the usual notation, such as ``[0, 1)``."""
    low, high = map(float, text[1:-1].split(","))
    return Limit(
        f"in {text}",
        lambda value: low <= value <= high and (text[0] == "[" or value > low) and (text[-1] == "]" or value < high),
    )


def one_of(names: Collection[object]) -> Limit:
    """Return the condition that a value is one of these."""
    return Limit(f"among {', '.join(map(str, names))}", lambda value: value in names)


def some_of(names: Collection[object]) -> Limit:
    """Return the condition that a list has at least one of these values, none of them twice."""
    return Limit(
        f"with some of {', '.join(map(str, names))}, none twice",
        lambda values: 0 < len(values) == len(set(values)) and set(values) <= set(names),
    )


finite = Limit("that is finite", isfinite)
even = Limit("that is even", lambda value: value % 2 == 0)
not_empty = Limit("(at least one)", lambda values: len(values) > 0)

Number = Annotated[float, finite]
Count = Annotated[int, at_least(1)]
Size = Annotated[int, at_least(0)]
Positive = Annotated[float, above(0)]
NonNegative = Annotated[float, at_least(0)]
Share = Annotated[float, interval("(0, 1)")]
Probability = Annotated[float, interval("[0, 1]")]
Counts = Annotated[Sequence[Count], not_empty]
Shares = Annotated[Sequence[Share], not_empty]
Names = Annotated[Sequence[str], not_empty]

WORDS = {NoneType: "null", bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
NUMBERS = {int: Integral, float: Real}


class Checked:
    """A dataclass whose values are checked against its annotations when it is created.

    ``of`` is the group (``dataset``, ``method``, ``transport``, ``audit``) of the section in ``conf/`` that it reads;
    messages then name a key as it is written there. Raises InvalidInput for the first field whose value does not match
    its type.
    """

    _group: ClassVar[str] = ""

    def __init_subclass__(cls, of: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if of:
            cls._group = f"{of}."

    def __post_init__(self) -> None:
        hints = hints_of(type(self))  # type: ignore[arg-type]
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if not fits(value, hints[field.name]):
                expected = described(hints[field.name])
                problem = f"expected {self._group}{field.name} to be {expected}; found {value!r}"
                raise InvalidInput(problem, option=field.name)

    def expect_equal_lengths(self, *names: str) -> None:
        """Raise InvalidInput unless these fields are lists of equal length."""
        lengths = {name: len(getattr(self, name)) for name in names}
        if len(set(lengths.values())) > 1:
            problem = f"expected {self._group}{', '.join(names)} of equal length; found lengths {lengths}"
            raise InvalidInput(problem, option=names[0])


def made(kind: type[Made], values: Mapping[str, Any], source: str) -> Made:
    """Create the dataclass from these values of a ``source``, such as a file.

    Raises InvalidInput for an unknown key (suggesting the nearest known one), a missing key and a wrong value.
    """
    known = {field.name: field.default is MISSING is field.default_factory for field in fields(kind)}  # type: ignore[arg-type]
    check_keys(values, known, source)
    if missing := [key for key, needed in known.items() if needed and key not in values]:
        raise InvalidInput(f"{source} lacks {enumerated(missing)}", source=source, option=missing[0])
    try:
        return kind(**values)
    except ValueError as error:
        raise InvalidInput.within(source, error, source=source) from error


def described(hint: Any) -> str:
    """Describe in words what a type expects."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind, *limits = arguments
        return " ".join([described(kind), *(limit.says for limit in limits)])
    if origin in (Union, UnionType):
        return " or ".join(map(described, sorted(arguments, key=lambda kind: kind is not NoneType)))
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin is tuple and arguments[-1] is not ...:
        return f"a list of {len(arguments)} values: {', '.join(map(described, arguments))}"
    if _is_list(origin):
        if arguments[0] is str:
            return "a list of strings"
        return f"a list of values that are each {described(arguments[0])}"
    if origin is Callable:
        return "a function"
    if origin is not None and issubclass(origin, Mapping):
        return "a mapping" if arguments[1] is Any else f"a mapping, each value {described(arguments[1])}"
    return "a path" if getattr(hint, "__name__", "") == "Path" else WORDS.get(hint, "anything")


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value matches a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind, *limits = arguments
        return fits(value, kind) and all(limit.holds(value) for limit in limits)
    if origin in (Union, UnionType):
        return any(fits(value, kind) for kind in arguments)
    if origin is Literal:
        return any(fits(value, type(each)) and value == each for each in arguments)
    if origin is tuple and arguments[-1] is not ...:
        return isinstance(value, (list, tuple)) and len(value) == len(arguments) and all(map(fits, value, arguments))
    if _is_list(origin):
        return isinstance(value, (list, tuple)) and all(fits(item, arguments[0]) for item in value)
    if origin is Callable:
        return callable(value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in value.items()
        )
    if hint in NUMBERS:
        return isinstance(value, NUMBERS[hint]) and not isinstance(value, bool)
    return hint not in WORDS or isinstance(value, hint)


def _is_list(origin: Any) -> bool:
    return origin is not None and isinstance(origin, type) and issubclass(origin, Sequence)


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields, including their conditions."""
    return get_type_hints(kind, include_extras=True)
