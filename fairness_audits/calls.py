"""A call with arrays as an audit of a table: columns are given names, and options are keywords."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from fairness_audits.inputs.keywords import in_python, settled, told_in_python
from fairness_audits.messages import check_distinct, listed, nearest, not_installed
from fairness_audits.options import Options, documented, keywords
from fairness_audits.results.result import Result

if TYPE_CHECKING:
    import pandas as pd

Audit = TypeVar("Audit", bound=Callable[..., Result])


def keyworded(kind: type[Options]) -> Callable[[Audit], Audit]:
    """Give a function ``(arrays, **settings)`` the options of ``kind`` as keywords, in its signature and docstring.

    It raises TypeError for a keyword that is missing or does not exist, and ValueError for whatever else can be mended.
    What the command line calls ``--step-size`` is ``step_size`` in its messages and in those of the result.
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

        @functools.wraps(function)
        def audit(*positional: Any, **given: Any) -> Result:
            for name in given:
                if name not in names:
                    raise TypeError(f"{function.__name__}() has no argument {name!r}{nearest(name, names)}")
            needed = [name for name, one in options.items() if one.default is one.empty and name not in given]
            if needed:
                raise TypeError(f"{function.__name__}() needs {listed(needed)}")
            given |= {name: settled(given[name], hint) for name, hint in checks.items() if name in given}
            try:
                return told_in_python(function(*positional, **given), kind)
            except ValueError as error:
                if type(error) is ValueError:
                    error.args = (in_python(str(error), kind),)
                raise
            except ModuleNotFoundError as error:
                told = not_installed("this audit", "torch", "torch") if error.name == "torch" else str(error)
                raise ModuleNotFoundError(told, name=error.name) from error

        audit.__signature__ = signature.replace(parameters=[*arrays, *options.values()])  # type: ignore[attr-defined]
        told = in_python(documented(kind, taken), kind)
        if function.__doc__:
            audit.__doc__ = function.__doc__.replace("%(settings)s", told.replace("\n", "\n    "))
        return audit  # type: ignore[return-value]

    return decorate


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
        """The names of the columns of a data frame, or of one array."""
        import pandas as pd

        if values is None:
            return ()
        return self.all(argument, values) if isinstance(values, pd.DataFrame) else (str(self.add(argument, values)),)

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
        from fairness_audits.inputs.model import Computing, load_model
        from fairness_audits.inputs.table import Source

        home = import_module(f"fairness_audits.audits.{audit}.result")
        asked = home.Settings(**given)
        computing = Computing(asked.device, getattr(asked, "dtype", "float32"))
        loaded = load_model(model, False, computing, wanted=home.WANTED)
        return home.audited(asked, Source(source, self.frame()), loaded, **others)

    def frame(self) -> pd.DataFrame:
        """All columns, rows counted from 0."""
        import pandas as pd

        return pd.DataFrame({name: column.reset_index(drop=True) for name, column in self._columns.items()})


def _shown(values: Any) -> str:
    import numpy as np

    return f"an array of shape {np.shape(values)}" if np.ndim(values) else f"{values!r:.40}"
