"""The state of a watch: its options, its groups and the counts of every batch, in one JSON file.

The counts are all that the audit needs, so the file stays small, and a watch that resumes from it computes what it
would have computed in one run. A batch is added whole or refused: the file never changes in part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairness_audits.arguments import Given
from fairness_audits.errors import InvalidInput
from fairness_audits.files import check_destination, save_json
from fairness_audits.messages import enumerated, listed
from fairness_audits.validation import Checked, Count, made
from fairness_audits.values import Array

SCHEMA = 1
"""Version of the file's layout."""
FIXED = ("alpha", "metric", "group", "label", "prediction", "score", "threshold", "positive")
"""Options that the first batch fixes: later batches have the same, or leave them out."""
NEEDED = ("metric", "group")
"""Options that the first batch needs."""
ALPHA = 0.05
NEW = "A watch cannot change them after it has begun: use the first ones, or begin a new state"
Levels = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Batch(Checked):
    """A batch: its name, the checksum of its rows, their number, and counts by grouping x group x label x decision."""

    batch: str
    sha256: str
    rows: Count
    counts: Mapping[str, Any]


@dataclass(frozen=True)
class State(Checked):
    """The ``options`` that are fixed, the ``groups`` of each grouping, and the ``batches`` in their order."""

    schema: int
    options: Mapping[str, Any]
    groups: Mapping[str, Any]
    batches: Sequence[Any]

    def counts(self, grouping: str) -> Array:
        """Return the counts of a grouping (T, groups, 2, 2): by batch, group, label and decision."""
        return np.array([one.counts[grouping] for one in self.batches], dtype=np.int64)

    @property
    def names(self) -> list[str]:
        """Return the names of the batches."""
        return [one.batch for one in self.batches]

    @property
    def rows(self) -> int:
        """Return the number of rows of all batches."""
        return sum(one.rows for one in self.batches)

    def check_new(self, batch: str, sha256: str) -> None:
        """Raise InvalidInput for a batch that the state has already, by name or content, or that comes too late."""
        for known in self.batches:
            if known.batch == batch or known.sha256 == sha256:
                same = f"{batch!r} is" if known.batch == batch else f"the rows of {batch!r} are"
                problem = f"{same} already in the state, as batch {known.batch!r}"
                remedy = "Each batch counts once. Without a batch and rows, the audit shows the state as it is"
                raise InvalidInput(problem, option="batch", remedy=remedy)
        if self.batches and place_of(batch) < place_of(self.names[-1]):
            problem = f"batch {batch!r} comes before the last batch of the state, {self.names[-1]!r}"
            remedy = "Add batches in their order, with names that sort like dates (2026-01-31) or numbers"
            raise InvalidInput(problem, option="batch", remedy=remedy)

    def added(self, batch: Batch, groups: Levels) -> State:
        """Return the state with one more batch, whose counts have these groups; a group of the state may be absent.

        Raises InvalidInput for a group that the state does not have.
        """
        known = dict(self.groups) if self.batches else {name: list(levels) for name, levels in groups.items()}
        counts = {}
        for name, levels in groups.items():
            if strange := [one for one in levels if one not in known[name]]:
                problem = f"batch {batch.batch!r} has new groups of {name!r}: {listed(strange)}"
                remedy = f"The watch began with {listed(known[name])}. Recode these rows, or begin a new state"
                raise InvalidInput(problem, option="group", column=name, remedy=remedy)
            own = dict(zip(levels, batch.counts[name], strict=True))
            counts[name] = [own.get(one, [[0, 0], [0, 0]]) for one in known[name]]
        return replace(self, groups=known, batches=(*self.batches, replace(batch, counts=counts)))

    def save(self, path: Path, before: str | None) -> None:
        """Write the state whole. Raises InvalidInput if the file changed since it was read as the text ``before``."""
        if (path.read_text(encoding="utf-8") if path.exists() else None) != before:
            problem = f"{path} has changed while the batch was counted"
            raise InvalidInput(problem, source=path, option="state", remedy="Add one batch at a time")
        save_json(asdict(self), path)


def resumed(given: Given) -> tuple[State, str | None]:
    """Return the state of the file that the options name, or a new one, and the text of the file.

    Raises InvalidInput for a file that is not the state of a watch, and for options that differ from the state's.
    """
    path = given.state
    check_destination(path, False)
    if not path.exists():
        if lacking := [name for name in NEEDED if not given.values[name]]:
            problem = f"{path} does not exist yet, and a new watch needs {enumerated(lacking)}"
            raise InvalidInput(problem, source=path, option=lacking[0], remedy="Give them with the first batch")
        options = {name: list(value) if isinstance(value, tuple) else value for name, value in _fixed(given).items()}
        return State(SCHEMA, {**options, "alpha": options["alpha"] or ALPHA}, {}, ()), None
    text = path.read_text(encoding="utf-8")
    state = _read(text, path)
    for name, value in _fixed(given).items():
        found = state.options[name]
        if value not in (None, ()) and (list(value) if isinstance(value, tuple) else value) != found:
            began = "without it" if found in (None, []) else f"with {_shown(found)}"
            problem = f"{name} is {_shown(value)}, but the watch in {path} began {began}"
            raise InvalidInput(problem, source=path, option=name, remedy=NEW)
    return state, text


def _fixed(given: Given) -> dict[str, Any]:
    return given.some(*FIXED)


def _read(text: str, path: Path) -> State:
    """Return the state in a text. Raises InvalidInput if it holds something else, or another version."""
    remedy = "Name the file of a watch, or one that does not exist yet"
    try:
        content = json.loads(text)
        schema = content["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} is not the state of a watch", source=path, option="state", remedy=remedy) from error
    if schema != SCHEMA:
        problem = f"{path} has schema {schema!r}, but this release reads schema {SCHEMA}"
        raise InvalidInput(problem, source=path, option="state", remedy="Use the release that wrote it")
    state = made(State, content, str(path))
    lacking = [name for name in FIXED if name not in state.options]
    batches = tuple(made(Batch, one, str(path)) for one in state.batches)
    shapes = {name: (len(batches), len(levels), 2, 2) for name, levels in state.groups.items()}
    found = replace(state, batches=batches)
    try:
        whole = not lacking and all(found.counts(name).shape == shape for name, shape in shapes.items())
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        problem = f"{path} is damaged: its options or counts are not complete"
        raise InvalidInput(problem, source=path, option="state", remedy="Restore the file from a copy")
    return found


def _shown(value: Any) -> str:
    return listed(value) if isinstance(value, list | tuple) else str(value)


def place_of(name: str) -> list[tuple[bool, int, str]]:
    """Return the sort key of a batch's name, in which numbers sort by size: week 9, week 10; 2026-01-31, 2026-02-07."""
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", name) if part]
