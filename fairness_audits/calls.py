"""A call with arrays as an audit of a table: columns are given names, and options are keywords."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, replace
from functools import partial
from importlib import import_module
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from pipeline.cli.result import Caveat, Result
from pipeline.cli.settings import Options, documented, in_python, keywords
from pipeline.fields import fits
from pipeline.messages import check_distinct, listed, nearest, not_installed

if TYPE_CHECKING:
    import pandas as pd

Audit = TypeVar("Audit", bound=Callable[..., Result])


ARGUMENTS: set[str] = set()
"""Of all audits: a message of one may be about a call of another."""


def keyworded(kind: type[Options]) -> Callable[[Audit], Audit]:
    """Give a function ``(arrays, **settings)`` the options of ``kind`` as keywords, in its signature and docstring.

    It raises TypeError for a keyword that is missing or does not exist, and ValueError for whatever else can be mended.
    What it raises and says speaks of keywords, where the command line speaks of flags.
    """

    def decorate(function: Audit) -> Audit:
        signature = inspect.signature(function)
        arrays = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        taken = {one.name for one in arrays}
        options, checks, hints = dict[str, inspect.Parameter](), dict[str, Any](), get_type_hints(kind)
        for one, hint in keywords(kind, taken):
            default = inspect.Parameter.empty if one.default is MISSING else one.default
            kinds = {"default": default, "annotation": hints[one.name]}
            options[one.name] = inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, **kinds)
            checks[one.name] = hint
        names = {*taken, *options}
        ARGUMENTS.update(names)

        @functools.wraps(function)
        def audit(*positional: Any, **given: Any) -> Result:
            for name in given:
                if name not in names:
                    raise TypeError(f"{function.__name__}() has no argument {name!r}{nearest(name, names)}")
            needed = [name for name, one in options.items() if one.default is one.empty and name not in given]
            if needed:
                raise TypeError(f"{function.__name__}() needs {listed(needed)}")
            for name, hint in checks.items():
                # A number may stand for its text, and one value for a list of one.
                if name in given and not fits(given[name], hint):
                    value, text = given[name], as_text(given[name])
                    given[name] = next((one for one in (text, [value], [text]) if fits(one, hint)), value)
            try:
                return spoken(function(*positional, **given))
            except ValueError as error:
                raise ValueError(in_python(str(error), ARGUMENTS)) from error
            except ModuleNotFoundError as error:
                told = not_installed("this audit", "torch", "torch") if error.name == "torch" else str(error)
                raise ModuleNotFoundError(told, name=error.name) from error

        audit.__signature__ = signature.replace(parameters=[*arrays, *options.values()])  # type: ignore[attr-defined]
        if function.__doc__:
            audit.__doc__ = function.__doc__.replace("%(settings)s", documented(kind, taken).replace("\n", "\n    "))
        return audit  # type: ignore[return-value]

    return decorate


def as_text(value: Any) -> Any:
    """A number, or each in a list, as text; anything else as it is."""
    if isinstance(value, list | tuple):
        return [as_text(one) for one in value]
    return str(value) if isinstance(value, Number) or type(value).__name__ == "bool" else value


def spoken(result: Result) -> Result:
    """The result in the words of Python."""
    verdict, told = result.verdict, partial(in_python, names=ARGUMENTS)
    return replace(
        result,
        verdict=replace(verdict, sentence=told(verdict.sentence), reason=verdict.reason and told(verdict.reason)),
        caveats=tuple(Caveat(one.condition, told(one.text)) for one in result.caveats),
        called=True,
    )


class Columns:
    """Columns of one table, of arrays that come one by one."""

    def __init__(self) -> None:
        self._columns: dict[str, pd.Series] = {}

    def add(self, argument: str, values: Any) -> str | None:
        """The name of a column of these values (n,): their own, or one after the argument; None without values.

        Raises ValueError for values that are not one a row, or of the same rows in another order.
        """
        import numpy as np
        import pandas as pd

        if values is None:
            return None
        if isinstance(values, str) or np.ndim(values) != 1:
            raise ValueError(f"expected {argument} to be one value a row, found {_shown(values)}")
        column = values if isinstance(values, pd.Series) else pd.Series(values)
        for other, known in self._columns.items():
            if len(column) != len(known):
                raise ValueError(f"expected {argument} of {len(known)} rows as {other} has, found {len(column)}")
            if not column.index.equals(known.index) and set(column.index) == set(known.index):
                raise ValueError(f"{argument} has the rows of {other} in another order: put them into one, by .reindex")
        name = argument if column.name is None else str(column.name)
        while name in self._columns and self._columns[name].tolist() != column.tolist():
            if column.name is not None:
                raise ValueError(f"two columns are called {name!r}: rename the one in {argument}")
            name += "_"
        self._columns.setdefault(name, column)
        return name

    def several(self, argument: str, values: Any) -> tuple[str, ...]:
        """The names of the columns of a data frame, a mapping, one array, or of columns that there are already."""
        import pandas as pd

        if values is None:
            return ()
        if isinstance(values, str):
            return (values,)
        if isinstance(values, pd.DataFrame):
            return self.all(argument, values)
        if isinstance(values, Mapping):
            return tuple(str(self.add(argument, pd.Series(column, name=name))) for name, column in values.items())
        if isinstance(values, list | tuple) and values and all(name in self._columns for name in values):
            return tuple(values)
        return (str(self.add(argument, values)),)

    def all(self, argument: str, values: Any) -> tuple[str, ...]:
        """The names of the columns of a table: those of a data frame, else ``x0``, ``x1``, ..."""
        import numpy as np
        import pandas as pd

        if not isinstance(values, pd.DataFrame):
            if np.ndim(values) != 2:
                raise ValueError(f"expected {argument} of shape (rows, columns), found {_shown(values)}")
            array = np.asarray(values)
            values = pd.DataFrame(array, columns=[f"x{place}" for place in range(array.shape[1])])
        check_distinct([str(name) for name in values.columns], argument)
        return tuple(str(self.add(argument, values[name])) for name in values.columns)

    def audited(self, audit: str, source: str, model: Any, given: Mapping[str, Any], **others: Any) -> Result:
        """The audit of a model on these columns, which messages call ``source``; ``others`` is what it takes beside."""
        from pipeline.cli.model import Computing, load_model
        from pipeline.cli.table import Source

        home = import_module(f"pipeline.cli.audit.{audit}.document")
        asked = home.Settings(**given)
        computing = Computing(asked.device, getattr(asked, "dtype", "float32"))
        found: Result = home.audited(
            asked, Source(source, self.frame()), load_model(model, False, computing, wanted=home.WANTED), **others
        )
        return found

    def frame(self) -> pd.DataFrame:
        """All columns, rows counted from 0."""
        import pandas as pd

        return pd.DataFrame({name: column.reset_index(drop=True) for name, column in self._columns.items()})


def _shown(values: Any) -> str:
    import numpy as np

    return repr(values) if isinstance(values, str) else f"an array of shape {np.shape(values)}"
