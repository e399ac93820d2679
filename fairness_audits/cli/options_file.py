"""Read a YAML file of options. Keys are flags without leading dashes: ``step-size`` or ``step_size``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fairness_audits.arguments import Option, element, read, read_value, similar
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import reason
from fairness_audits.validation import fits


def read_options(path: Path, known: Mapping[str, Option], audit: str) -> dict[str, Any]:
    """Return the options in a YAML file.

    Raises InvalidInput for an unreadable file, a file of another audit, an unknown option or a wrong value.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), AsWritten)
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
    values = {}
    for key, value in content.items():
        name = str(key).replace("-", "_")
        if name == "audit":
            continue
        if name not in known:
            problem = f"{path}: {audit} has no option {key!r}{similar(name, known)}"
            raise InvalidInput(problem, source=path, option=name)
        try:
            values[name] = _typed(value, known[name].hint)
        except ValueError as error:
            refused = known[name].refused(error, value)
            raise InvalidInput.within(f"{path}: {key}", refused, source=str(path)) from error
    return values


class Plain(str):
    """An unquoted value of a YAML file."""

    __slots__ = ()


class AsWritten(yaml.SafeLoader):
    """A loader that keeps every value as text, so that yes, NO, 012 and 12:30 are not converted."""


def _text(loader: Any, node: Any) -> str:
    value = str(loader.construct_scalar(node))
    return value if node.style else Plain(value)


AsWritten.yaml_implicit_resolvers = {}
AsWritten.add_constructor("tag:yaml.org,2002:str", _text)


def _typed(value: Any, hint: Any) -> Any:
    """Convert the texts of a YAML file to this type. Raises InvalidInput if this fails."""
    if isinstance(value, Plain) and value in ("", "~", "null", "Null", "NULL") and fits(None, hint):
        return None
    if isinstance(value, Mapping):
        # The readers of these settings know their types, so YAML's numbers are converted to numbers.
        value = _resolved(value)
    elif isinstance(value, list):
        value = tuple(read_value(one, element(hint)) if isinstance(one, str) else one for one in value)
    if isinstance(value, str) or not fits(value, hint):
        return read(str(value), hint)
    return value


def _resolved(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _resolved(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_resolved(one) for one in value]
    return yaml.safe_load(value) if isinstance(value, Plain) else value
