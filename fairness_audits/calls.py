"""Turn a function of arrays into an audit with options as keywords."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING
from typing import Any, TypeVar, get_type_hints

from fairness_audits.arguments import settled, similar
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.keywords import in_python, result_in_python
from fairness_audits.messages import listed, missing_package, option_in
from fairness_audits.options import Options, documented, flag, keywords
from fairness_audits.progress import progress_bar
from fairness_audits.results.result import Result

Audit = TypeVar("Audit", bound=Callable[..., Result])


def keyworded(kind: type[Options]) -> Callable[[Audit], Audit]:
    """Give a function ``(arrays, **settings)`` the options of ``kind`` as keywords, in its signature and docstring.

    Wrong or missing keywords raise TypeError; all other input that the caller can correct raises InvalidInput. Messages
    and results name the keyword ``step_size`` instead of the option ``--step-size``.
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
        def audit(*positional: Any, **named: Any) -> Result:
            from fairness_audits.inputs.state import unchanged_program

            for name in named:
                if name not in names:
                    raise TypeError(f"{function.__name__}() has no argument {name!r}{similar(name, names)}")
            needed = [name for name, one in options.items() if one.default is one.empty and name not in named]
            if needed:
                raise TypeError(f"{function.__name__}() needs {listed(needed)}")
            named |= {name: settled(named[name], hint) for name, hint in checks.items() if name in named}
            try:
                with unchanged_program(), progress_bar(function.__name__.replace("_", " ")):
                    return result_in_python(function(*positional, **named), kind)
            except ValueError as error:
                if type(error) is ValueError or isinstance(error, InvalidInput):
                    error.args = (in_python(str(error), kind),)
                if isinstance(error, InvalidInput):
                    error.remedy = in_python(error.remedy, kind)
                    error.option = (error.option and option_in(in_python(flag(error.option), kind))) or error.option
                raise
            except ModuleNotFoundError as error:
                text = missing_package(error)
                raise ModuleNotFoundError(text, name=error.name) from error

        audit.__signature__ = signature.replace(parameters=[*arrays, *options.values()])  # type: ignore[attr-defined]
        if function.__doc__:
            text = in_python(documented(kind, taken), kind)
            audit.__doc__ = inspect.cleandoc(function.__doc__).replace("%(settings)s", text)
        return audit  # type: ignore[return-value]

    return decorate
