"""``where`` and ``set``: values for the points or jobs that a few conditions describe. The later of two wins.

Scales (``conf/scale/``), what jobs ask for (``conf/resources.yaml``), single files (``conf/method/standard.yaml``) and
the user (``SET=``) all speak so. A condition names a study, a block, a part (``method: sensr``), the value of a part's
key (``method.model: alexnet``), and of jobs the rule and the scale; several names in a list, or a pattern.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from fairness_audits.messages import check_keys, nearest
from pipeline.workflow.composition import GROUPS, REPETITIONS, declared, experiment, listed, sections

CONDITIONS = ("study", "block", *GROUPS)


@dataclass(frozen=True)
class Setting:
    """Values for whatever fulfils every condition of ``where``."""

    where: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Any]

    def applies(self, parts: Mapping[str, Any]) -> bool:
        """Whether these parts, names by condition, are meant; ``standard@model=vgg19`` (as in a path) is standard."""
        return all(key in parts and _named(str(parts[key]), wanted) for key, wanted in self.where.items())


def laid_over(settings: Iterable[Setting], parts: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all settings that apply."""
    return {key: value for setting in settings if setting.applies(parts) for key, value in setting.values.items()}


def read(
    conf: Path,
    written: Iterable[Mapping[str, Any]] | None,
    source: str,
    of_jobs: Mapping[str, Sequence[str]] | None = None,
) -> list[Setting]:
    """The settings of a file, ``source`` in messages; ``of_jobs`` has the names of further conditions.

    Raises ValueError for a condition or a name that there is not, with the nearest that there is.
    """
    found = []
    for entry in written or ():
        check_keys(entry, ("where", "set"), source)
        where = {key: tuple(map(str, listed(value))) for key, value in (entry.get("where") or {}).items()}
        for key, wanted in where.items():
            known = (of_jobs or {}).get(key) or known_names(conf, key)
            if not known:
                raise ValueError(f"{source}: where {key!r} is unknown{nearest(key, (*(of_jobs or ()), *CONDITIONS))}")
            for name in wanted:
                if not set("@*?[") & set(name) and name not in known:
                    raise ValueError(f"{source}: there is no {key} {name!r}{nearest(name, known)}")
        found.append(Setting(where, dict(entry.get("set") or {})))
    return found


@functools.cache
def known_names(conf: Path, condition: str) -> Sequence[str]:
    """What a condition may name; nothing where it is none."""
    studies = [*declared(conf, "experiment"), *declared(conf, "sweep")]
    if condition == "study":
        return studies
    grids = [experiment(conf, study)["grid"] for study in studies]
    if condition == "block":
        return sorted({block for grid in grids for block in grid})
    group, _, key = condition.partition(".")
    if not key:
        return sorted(sections(conf).get(group, {})) if group in GROUPS else []
    values = [value for grid in grids for block in grid.values() for value in listed(block.get(condition, []))]
    values += [file[key] for file in sections(conf).get(group, {}).values() if key in file]
    return sorted({str(value) for value in values})


def of_user(text: str) -> Setting:
    """Read ``group.name.key=value``, in Hydra's notation of values. Raises ValueError for anything else."""
    try:
        override = OverridesParser.create().parse_override(text.strip())
        group, name, key = str(override.key_or_group).split(".", 2)
        if group not in GROUPS or override.is_sweep_override():
            raise ValueError(text)
    except (HydraException, ValueError) as error:
        raise ValueError(
            f"cannot read {text!r}: write group.name.key=value, for example method.sensr.learning_rate=2e-5"
        ) from error
    # How often something is repeated is a matter of the point, not of one of its parts.
    return Setting({group: (name,)}, {REPETITIONS if key == REPETITIONS else f"{group}.{key}": override.value()})


def _named(part: str, wanted: tuple[str, ...]) -> bool:
    return any(part == name or part.split("@")[0] == name or fnmatchcase(part, name) for name in wanted)
