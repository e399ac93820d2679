"""The options of a run from the command line (``snakemake --config``) and the environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest

INVOCATION = {
    "scale": "SCALE", "study": "STUDY", "datasets": "DATASETS", "finished": "FINISHED", "source": "DATA_SOURCE",
    "tracker": "TRACKER", "set": "SET",
}  # fmt: skip
"""The keys of ``snakemake --config`` and the corresponding environment variables."""
ABSENT = "PIPELINE_ABSENT"
"""The environment variable with the names of the unavailable data."""
SWEEP = re.compile(r"results/sweeps/\w+/(\w+)/summary\.csv")
"""The target of a sweep."""


def arguments(config: Mapping[str, Any], environment: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of :class:`pipeline.jobs.Run`.

    ``study`` and ``datasets`` are lists, separated by spaces or commas. ``set`` is a list of group.name.key=value,
    separated by semicolons. The command line takes precedence. Raises InvalidInput for unknown keys.
    """
    if unknown := sorted(set(config) - set(INVOCATION)):
        hint = nearest(unknown[0], INVOCATION)
        raise InvalidInput(
            f"--config {unknown[0]}=... is unknown{hint}. The keys are {', '.join(INVOCATION)}", option=unknown[0]
        )
    given = {
        key: next((str(value) for value in (config.get(key), environment.get(variable)) if value not in (None, "")), "")
        for key, variable in INVOCATION.items()
    }
    return {
        **{key: given[key] or default for key, default in defaults.items()},
        "studies": given["study"].replace(",", " ").split(),
        "datasets": given["datasets"].replace(",", " ").split(),
        "finished": yes_or_no("FINISHED", given["finished"] or "no"),
        "overrides": [text for text in given["set"].split(";") if text],
    }


def yes_or_no(name: str, text: str) -> bool:
    """Parse ``yes`` or ``no``, which YAML turns into True and False. Raises InvalidInput for other text."""
    if (word := text.lower()) not in ("yes", "no", "true", "false"):
        raise InvalidInput(f"{name}={text}: expected yes or no", option=name)
    return word in ("yes", "true")


def check_cores(cores: int | None) -> None:
    """Raise InvalidInput without a core: Snakemake would wait for one forever. None leaves the limit to a cluster."""
    if cores is not None and cores < 1:
        raise InvalidInput(f"CORES={cores}: no job could start", option="cores", remedy="Give at least one core")


def sweeps_among(words: Iterable[str], sweeps: Sequence[str], scale: str) -> list[str]:
    """Return the sweeps whose summaries are among the ``words`` of a command line.

    Raises InvalidInput for an unknown sweep, and for a rule name of earlier versions.
    """
    words = list(words)
    named = [found[1] for word in words if (found := SWEEP.fullmatch(word))]
    former = [word.removeprefix("sweep_") for word in words if re.fullmatch(r"sweep_\w+", word)]
    for name in (*named, *former):
        if name not in sweeps:
            raise InvalidInput(
                f"There is no sweep {name!r}{nearest(name, sweeps)}. The sweeps are {', '.join(sweeps)}", option="sweep"
            )
    if former:
        problem = f"There is no rule sweep_{former[0]}"
        remedy = f"Run `snakemake results/sweeps/{scale}/{former[0]}/summary.csv`"
        raise InvalidInput(problem, option="sweep", remedy=remedy)
    return named
