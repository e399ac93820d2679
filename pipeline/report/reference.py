"""A study's reference: what its tables and figures read of a finished run, small enough to stand in the repository.

While the artefacts are drawn, everything that they read is noted (:func:`watched`); that alone is kept
(:func:`kept`): of audits the arrays that were read, of classifiers also their facts and training curves, of data sets
their description. The tidy rows are kept whole.

No row of a real table is kept, and no picture of a person: of a test image its groups, whether it is classified
correctly and its distances. Where an audit holds the features of people who are not simulated, each
column is sorted by itself among the people of the same decisions (:func:`scattered`): every histogram and mean of
a group or flipset stays as it is, and what stood in one row no longer does. Large arrays keep ``DIGITS`` digits, more
than a figure shows.
"""

from collections import UserDict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd

from fairness_audits.messages import enumerated
from fairness_audits.values import Array, Classifier
from pipeline.report.inputs import Inputs, as_text
from pipeline.values import AuditResult

LARGE = 4096
"""Numbers from which an array is rounded, and parameters are no longer kept."""
DIGITS = 8
"""Significant digits of the numbers of a large array."""
PEOPLE = ("features", "images", "score", "score_image")
TARGETS = ("target_features", "target_score")
SIDES = ("", "_reverse")
"""Suffixes of an audit's arrays, by the direction of the map."""


class Noted(UserDict[str, Array]):
    """Arrays that remember which of them were read."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.read: set[str] = set()
        self.first: set[str] = set()
        super().__init__(arrays)

    def __getitem__(self, name: str) -> Array:
        array = super().__getitem__(name)
        self.read.add(name)
        return array


def first(arrays: Mapping[str, Array], name: str) -> Array:
    """The first repetition of an array (R, ...), of which a reference keeps no more."""
    if isinstance(arrays, Noted):
        arrays.first.add(name)
        arrays = arrays.data
    return arrays[name][0]


class NotedAudit:
    """An audit that remembers which of its arrays were read, and whether its rows were."""

    def __init__(self, result: AuditResult) -> None:
        self.result = result
        self.arrays = Noted(result.arrays)
        self.rows_read = False

    def __getattr__(self, name: str) -> Any:
        self.rows_read |= name == "rows"
        return getattr(self.result, name)


def watched(inputs: Inputs) -> Inputs:
    """Inputs to draw from in place of ``inputs``; they note what is read."""
    audits = {key: cast(AuditResult, NotedAudit(result)) for key, result in inputs.audits.items()}
    classifiers = {key: replace(one, parameters=Noted(one.parameters)) for key, one in inputs.classifiers.items()}
    return replace(inputs, audits=audits, classifiers=classifiers)


def kept(drawn: Inputs) -> Inputs:
    """What was read of :func:`watched` inputs, which is enough to draw the same again."""
    audits = {key: _kept_audit(cast(NotedAudit, audit)) for key, audit in drawn.audits.items()}
    classifiers = {key: _kept_parameters(one) for key, one in drawn.classifiers.items()}
    return replace(drawn, audits=audits, classifiers=classifiers)


def part_of(path: str) -> str:
    """The part of a study that an audit's path belongs to, see :class:`pipeline.workflow.composition.Point`."""
    block, dataset, method = path.split("/")[-4:-1]
    settings = dict(setting.split("=", 1) for setting in method.split("@")[1:])
    return "/".join(filter(None, (block, dataset.split("@")[0], settings.get("model"))))


def grid(inputs: Inputs) -> list[str]:
    """The parts that the study declares, run or not."""
    return sorted({*parts(inputs), *(one["part"] for one in left_out(inputs))})


def parts(inputs: Inputs) -> list[str]:
    """The parts of the study's grid that were run."""
    return sorted(set(map(part_of, inputs.config["sections"])))


def left_out(inputs: Inputs, but: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The points of the grid that were not run, but of these parts."""
    return [one for one in inputs.config.get("left_out", ()) if one["part"] not in but]


def joined(run: Inputs, earlier: Inputs) -> Inputs:
    """A run of some parts of a study; all others as an earlier one has them, at its scale.

    What goes by its data set alone, or by data set and method, is the run's wherever the run has it.
    """
    own = parts(run)
    others = [point["goes_by"] for point in earlier.points if part_of(point["goes_by"].audit) not in own]

    def both(part: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
        keys = {getattr(goes_by, part) for goes_by in others}
        return {**{key: value for key, value in theirs.items() if key in keys}, **ours}

    def sections(part: str) -> dict[str, Any]:
        theirs = earlier.config[part].items()
        return {**{path: one for path, one in theirs if part_of(path) not in own}, **run.config[part]}

    rows = as_text(earlier.rows)
    network = ("/" + rows["model"]).fillna("") if "model" in rows else ""
    rows = rows[~(rows["block"] + "/" + rows["dataset"] + network).isin(own)]
    scale = enumerated(sorted({*rows["scale"], run.scale}))
    omitted = left_out(earlier, but=own)
    only_ours = [one for one in left_out(run, but=set(parts(earlier)) - set(own)) if one not in omitted]
    config = {
        **run.config,
        "scale": {"name": scale},
        "left_out": [*omitted, *only_ours],
        "sections": sections("sections"),
        "published": sections("published"),
    }
    return replace(
        run,
        scale=scale,
        rows=pd.concat([rows, as_text(run.rows)], ignore_index=True),
        config=config,
        datasets=both("dataset", run.datasets, earlier.datasets),
        classifiers=both("classifier", run.classifiers, earlier.classifiers),
        audits=both("audit", run.audits, earlier.audits),
    )


def scattered(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The same, no row of which belongs together: columns are sorted one by one among people of the same decisions.

    ``decision`` and ``decision_image`` (n,) say which cell a person is in; of ``features`` and ``images`` (n, d),
    ``score`` and ``score_image`` (n,) each column has the same values in each cell as before, in order of size;
    ``target_features`` (m, d) and ``target_score`` (m,) form one cell. All of them also with the suffix ``_reverse``.
    """
    found = dict(arrays)
    for side in SIDES:
        if f"decision{side}" not in arrays:
            continue
        cell = 2 * arrays[f"decision{side}"].astype(int) + arrays[f"decision_image{side}"].astype(int)
        for name in (f"{name}{side}" for name in PEOPLE if f"{name}{side}" in arrays):
            values = np.array(arrays[name])
            for code in np.unique(cell):
                values[cell == code] = np.sort(values[cell == code], axis=0)
            found[name] = values
        for name in (f"{name}{side}" for name in TARGETS if f"{name}{side}" in arrays):
            found[name] = np.sort(arrays[name], axis=0)
    return found


def rounded(array: Array) -> Array:
    """A large array of float64 with ``DIGITS`` significant digits; any other as it is."""
    if array.dtype != np.float64 or array.size < LARGE:
        return array
    with np.errstate(divide="ignore", invalid="ignore"):
        magnitude = np.where((array == 0) | ~np.isfinite(array), 0, np.floor(np.log10(np.abs(array))))
        # Smaller ones than 1e-37 are as good as 0.
        unit = 10.0 ** (DIGITS - 1 - np.maximum(magnitude, -37))
        return np.round(array * unit) / unit


def _kept_audit(audit: NotedAudit) -> AuditResult:
    result = audit.result
    # Who is in which cell tells scattered what belongs together, whether or not it was read.
    names = audit.arrays.read | {name for name in result.arrays if name.startswith("decision")}
    arrays: Mapping[str, Array] = {
        name: result.arrays[name] if name in names else result.arrays[name][:1]
        for name in sorted(names | audit.arrays.first)
    }
    if result.origin != "simulated":
        arrays = scattered(arrays)
    rows = result.rows if audit.rows_read else result.rows.iloc[:0, :0]
    return replace(result, rows=rows, arrays={name: rounded(array) for name, array in arrays.items()})


def _kept_parameters(one: Classifier) -> Classifier:
    """With the parameters that were read and are small; of the others no number, but how many repetitions there are."""
    noted = cast(Noted, one.parameters)
    parameters = {
        name: array if name in noted.read and array.size < LARGE else _emptied(array)
        for name, array in noted.data.items()
    }
    return replace(one, parameters=parameters)


def _emptied(array: Array) -> Array:
    return array.reshape(len(array), -1)[:, :0]
