"""``where`` and ``set``: values for the points or jobs that meet some conditions. Later settings take precedence.

Scales (``conf/scale/``), resources (``conf/resources.yaml``), single files (``conf/method/standard.yaml``) and the user
(``SET=``) use this form. A condition names a study, a block, a part (``method: sensr``) or the value of a key
(``method.model: alexnet``). Conditions of jobs can also name the rule and the scale. The names are one name, a list
or a pattern.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_keys, nearest
from pipeline.workflow.composition import GROUPS, REPETITIONS, declared, experiment, listed, section

CONDITIONS = ("study", "block", *GROUPS)


@dataclass(frozen=True)
class Setting:
    """Values for points or jobs that meet all conditions of ``where``."""

    where: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Any]

    def applies(self, parts: Mapping[str, Any]) -> bool:
        """Return whether ``parts`` (names by condition) meet all conditions. The name of a part may have settings."""
        return all(key in parts and named(str(parts[key]), wanted) for key, wanted in self.where.items())


def merged(settings: Iterable[Setting], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all settings that apply."""
    return {key: value for setting in settings if setting.applies(parts) for key, value in setting.values.items()}


def read(
    conf: Path,
    written: Iterable[Mapping[str, Any]] | None,
    source: str,
    of_jobs: Mapping[str, Sequence[str]] | None = None,
) -> list[Setting]:
    """Read the settings of a file, called ``source`` in messages. ``of_jobs`` holds the names of further conditions.

    Raises InvalidInput for an unknown condition or name and suggests the nearest.
    """
    found = []
    for entry in written or ():
        check_keys(entry, ("where", "set"), source)
        where = {key: tuple(map(str, listed(value))) for key, value in (entry.get("where") or {}).items()}
        for key, wanted in where.items():
            known = (of_jobs or {}).get(key) or known_names(conf, key)
            if not known:
                hint = nearest(key, (*(of_jobs or ()), *CONDITIONS))
                raise InvalidInput(f"{source}: unknown condition {key!r}{hint}", source=source, option=key)
            for name in wanted:
                if not set("@*?[") & set(name) and name not in known:
                    hint = nearest(name, known)
                    raise InvalidInput(f"{source}: there is no {key} {name!r}{hint}", source=source, option=key)
        found.append(Setting(where, dict(entry.get("set") or {})))
    return found


@functools.cache
def known_names(conf: Path, condition: str) -> Sequence[str]:
    """Return the names that a condition can have, or [] for an unknown condition."""
    studies = [*declared(conf, "experiment"), *declared(conf, "sweep")]
    if condition == "study":
        return studies
    grids = [experiment(conf, study)["grid"] for study in studies]
    if condition == "block":
        return sorted({block for grid in grids for block in grid})
    group, _, key = condition.partition(".")
    if not key:
        return declared(conf, group) if group in GROUPS else []
    values = [value for grid in grids for block in grid.values() for value in listed(block.get(condition, []))]
    files = (section(conf, group, name) for name in declared(conf, group))
    values += [file[key] for file in files if key in file]
    return sorted({str(value) for value in values})


def user_setting(text: str) -> Setting:
    """Read ``group.name.key=value`` with values in Hydra's notation. Raises InvalidInput for other text."""
    try:
        override = OverridesParser.create().parse_override(text.strip())
        group, name, key = str(override.key_or_group).split(".", 2)
        if group not in GROUPS or override.is_sweep_override():
            raise ValueError(text)
    except (HydraException, ValueError) as error:
        problem = f"Cannot read {text!r}"
        remedy = "Write group.name.key=value, for example method.sensr.learning_rate=2e-5"
        raise InvalidInput(problem, option="set", remedy=remedy) from error
    # The number of repetitions belongs to the point, not to one of its parts.
    return Setting({group: (name,)}, {REPETITIONS if key == REPETITIONS else f"{group}.{key}": override.value()})


def named(part: str, wanted: Sequence[str]) -> bool:
    """Return whether ``part`` is one of the names, with or without its settings, or matches one of the patterns."""
    return any(part == name or part.split("@")[0] == name or fnmatchcase(part, name) for name in wanted)
