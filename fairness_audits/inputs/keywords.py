"""Conversion between command-line options and keywords of a Python call: values, and names in messages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from fairness_audits.arguments import read
from fairness_audits.options import Options, option_fields
from fairness_audits.validation import fits

if TYPE_CHECKING:
    from fairness_audits.results.result import Result

SPOKEN = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?:=('[^']*'|[^\s']*[^\s',;:.)]))?")
"""An option in a message, with its value if it has one."""
DATA = ("facts", "of")
"""Fields of a result's parts that hold data, not text."""


def in_python(text: str, kind: type[Options]) -> str:
    """Replace the options in a message, such as ``--step-size=0.1``, with keywords: ``step_size=0.1``."""
    known = {one.name: (one, hint) for _, one, hint in option_fields(kind)}

    def keyword(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2]
        if name not in known:
            return found[0]
        one, hint = known[name]
        bare, valued = one.metadata["python"]
        if value is None:
            return bare or name
        code = _as_code(unquoted(value), hint)
        if not valued:
            return f"{name}={code}"
        from fairness_audits.tables.typed import number_of

        column, _, level = unquoted(value).partition("=")
        number = number_of(level)
        return str(valued.format(value=code, column=column, level=repr(level) if number is None else level))

    # Values that do not fit are described as in YAML.
    text = text.replace(" to be null or ", " to be None or ").replace(" to be true or false", " to be True or False")
    return SPOKEN.sub(keyword, text)


def unquoted(value: str) -> str:
    """Undo the shell quoting of :func:`fairness_audits.messages.advised`."""
    return next(iter(shlex.split(value)), "")


def _as_code(text: str, hint: Any) -> str:
    """Return an option's value as Python code; keep a placeholder such as H,W."""
    try:
        value = read(text, hint)
    except ValueError:
        return f"({text.replace(',', ', ')})" if "," in text else text
    if isinstance(value, tuple):
        value = value[0] if len(value) == 1 and fits([value[0]], hint) else list(value)
    return repr(value)


def result_in_python(result: Result, kind: type[Options]) -> Result:
    """Return the result with keywords instead of options in its sentences."""
    parts = {name: _with_keywords(getattr(result, name), kind) for name in ("verdict", "brief", "caveats", "sections")}
    return replace(result, **parts)


def _with_keywords(part: Any, kind: type[Options]) -> Any:
    """Return a part of a result with keywords instead of options in its texts."""
    if isinstance(part, str):
        return in_python(part, kind)
    if isinstance(part, tuple):
        return tuple(_with_keywords(one, kind) for one in part)
    if isinstance(part, Mapping):
        return {key: _with_keywords(one, kind) for key, one in part.items()}
    if not is_dataclass(part) or isinstance(part, type):
        return part
    changed = {one.name: _with_keywords(getattr(part, one.name), kind) for one in fields(part) if one.name not in DATA}
    return replace(part, **changed)
