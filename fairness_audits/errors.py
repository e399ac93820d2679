"""The error of an input that the user can correct."""

from __future__ import annotations

from os import PathLike
from typing import Self


class InvalidInput(ValueError):
    """An error about an input that the user can correct.

    The text states the problem and then the remedy. It names options alike in Python and on the command line:
    ``step_size``.

    Parameters
    ----------
    problem : str
        What is wrong and where, without a final full stop.
    source : str or path, optional
        The file or argument that holds the input.
    option : str, optional
        The argument to change, such as ``step_size``.
    column : str, optional
        The first column concerned.
    row : int, optional
        The first row concerned, counted from 0.
    remedy : str, optional
        What to do, as a sentence without a final full stop.

    Examples
    --------
    >>> from fairness_audits.errors import InvalidInput
    >>> error = InvalidInput("Column 'age' has 3 missing values", column="age", row=17, remedy="Drop these rows")
    >>> str(error), error.row
    ("Column 'age' has 3 missing values. Drop these rows", 17)
    """

    def __init__(
        self,
        problem: str,
        *,
        source: str | PathLike[str] | None = None,
        option: str | None = None,
        column: str | None = None,
        row: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(f"{problem}. {remedy}" if remedy else problem)
        self.source = None if source is None else str(source)
        self.option = option
        self.column = column
        self.row = row
        self.remedy = remedy

    @classmethod
    def within(cls, place: str, error: ValueError, *, source: str | None = None, option: str | None = None) -> Self:
        """Return an error with ``place: `` before the text of another error, and with its fields unless they are given.

        Set the cause with ``raise ... from error``.
        """
        outer = cls(f"{place}: {error}", source=source, option=option)
        if isinstance(error, InvalidInput):
            outer.source, outer.option = source or error.source, option or error.option
            outer.column, outer.row, outer.remedy = error.column, error.row, error.remedy
        return outer


class ModelFailed(InvalidInput):
    """A model that raises an exception for the inputs that the audit gives it."""
