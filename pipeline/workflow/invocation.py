"""What one invocation asks for, by the command line (``snakemake --config``) and the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairness_audits.messages import nearest

INVOCATION = {
    "scale": "SCALE", "study": "STUDY", "datasets": "DATASETS", "finished": "FINISHED", "source": "DATA_SOURCE",
    "tracker": "TRACKER", "set": "SET",
}  # fmt: skip
"""The keys of ``snakemake --config`` and the variables that stand for them."""
ABSENT = "PIPELINE_ABSENT"
"""The variable that tells the processes of a run which data cannot be had."""
SWEEP = re.compile(r"results/sweeps/\w+/(\w+)/summary\.csv")
"""The file by which a sweep is asked for."""


def arguments(config: Mapping[str, Any], environment: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of :class:`pipeline.workflow.config.Workflow` that an invocation asks for.

    ``study`` and ``datasets`` may name several, with spaces or commas, and ``set`` is a list of group.name.key=value
    parted by semicolons. The command line wins. Raises ValueError for another key.
    """
    if unknown := sorted(set(config) - set(INVOCATION)):
        hint = nearest(unknown[0], INVOCATION)
        raise ValueError(f"--config {unknown[0]}=... is unknown{hint}. There are: {', '.join(INVOCATION)}")
    asked = {
        key: next((str(value) for value in (config.get(key), environment.get(variable)) if value not in (None, "")), "")
        for key, variable in INVOCATION.items()
    }
    return {
        **{key: asked[key] or default for key, default in defaults.items()},
        "studies": asked["study"].replace(",", " ").split(),
        "datasets": asked["datasets"].replace(",", " ").split(),
        "finished": yes_or_no("FINISHED", asked["finished"] or "no"),
        "overrides": [text for text in asked["set"].split(";") if text],
    }


def yes_or_no(name: str, text: str) -> bool:
    """``yes`` or ``no``, which YAML makes True and False of. Raises ValueError for anything else."""
    if (word := text.lower()) not in ("yes", "no", "true", "false"):
        raise ValueError(f"{name}={text}: expected yes or no")
    return word in ("yes", "true")


def sweeps_among(words: Iterable[str], sweeps: Sequence[str], scale: str) -> list[str]:
    """Return the sweeps whose summaries stand among the ``words`` of a command line.

    Raises ValueError for a sweep that there is not, with the nearest, and for the name of a rule that there was.
    """
    words = list(words)
    asked = [found[1] for word in words if (found := SWEEP.fullmatch(word))]
    former = [word.removeprefix("sweep_") for word in words if re.fullmatch(r"sweep_\w+", word)]
    for name in (*asked, *former):
        if name not in sweeps:
            raise ValueError(f"there is no sweep {name!r}{nearest(name, sweeps)}. There are: {', '.join(sweeps)}")
    if former:
        raise ValueError(f"no rule sweep_{former[0]}: ask for results/sweeps/{scale}/{former[0]}/summary.csv")
    return asked


def absent(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the data that cannot be had, as the process that planned the run has told."""
    return frozenset(environment.get(ABSENT, "").split())
