"""The reference of a study: the data of a finished run that its artefacts read, small enough to be committed.

:func:`recorded` keeps all tidy rows, the facts of classifiers, the summaries of data sets, and the arrays that the
package of the study declares (see :func:`pipeline.report.registry.arrays`).

``COMMITTED`` lists the arrays of each audit that a reference may hold, and how it stores them; ``PARAMETERS`` lists
those of a classifier. A study that declares any other array is an error. No row of a real table and no picture of a
person is stored. The features of people who are not simulated are sorted column by column among the people with the
same decisions. This keeps every histogram and mean of a group or flipset, but breaks up the rows. Large arrays are
rounded to ``DIGITS`` digits, which is more than a figure shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.messages import enumerated
from fairness_audits.values import Array, Classifier
from pipeline.report import labels as w
from pipeline.report import registry
from pipeline.report.inputs import Inputs, as_text
from pipeline.values import AuditResult

LARGE = 4096
"""Size from which an array is rounded, and from which parameters are not kept."""
DIGITS = 8
"""Significant digits of large arrays."""
SIDES = ("", "_reverse")
"""Suffixes of an audit's array names for the two directions of the map."""


class How(Enum):
    """How a reference stores an array."""

    AS_IT_IS = "as it is"
    WITHIN_DECISIONS = "each column sorted by itself among the people of the same decisions, unless they are simulated"
    SORTED = "each column sorted by itself, unless the people are simulated"
    PICTURES = "as it is, of the data sets whose pictures show no person"


COMMITTED: Mapping[str, Mapping[str, How]] = {
    "fliptest": {
        **dict.fromkeys(("feature_names", "units"), How.AS_IT_IS),
        **{
            f"{name}{side}": how
            for side in SIDES
            for names, how in (
                (("decision", "decision_image"), How.AS_IT_IS),
                (("features", "images", "score", "score_image"), How.WITHIN_DECISIONS),
                (("target_features", "target_score"), How.SORTED),
            )
            for name in names
        },
    },
    "loss_ratio_validity": dict.fromkeys(("quantile_levels", "quantiles_loss", "quantiles_error"), How.AS_IT_IS),
    # Per test image: whether it is classified correctly, and its distances. The partitions of the data set, its groups,
    # are also allowed.
    "robustness_bias": {
        "correct": How.AS_IT_IS,
        **{
            f"{what}_{attack}": How.AS_IT_IS
            for what in ("distance", "tried")
            for attack in ("exact", "deepfool", "carlini_wagner", "fmn", "smoothing")
        },
        **{
            f"example_{what}": How.AS_IT_IS
            for what in ("partition", "budget", "points", "distance", "label", "prediction", "level")
        },
        **dict.fromkeys(("example_images", "example_perturbed"), How.PICTURES),
    },
}
"""Arrays of each audit (a module of ``fairness_audits.audits``) that a reference may hold, and how it stores them."""
PARAMETERS = ("coef", "weight")
"""Classifier parameters that a reference may hold. None is a training row, unlike support vectors."""


def recorded(inputs: Inputs) -> Inputs:
    """Return the parts of a run that its artefacts need, as the study declares them.

    Raises ValueError for an array that a reference may not store.
    """
    datasets = {point["keys"].audit: point["keys"].dataset for point in inputs.points}
    partitions = {key: inputs.datasets[name].levels for key, name in datasets.items() if name in inputs.datasets}
    audits = {}
    for key, audit in inputs.audits.items():
        arrays = {name: audit.arrays[name] for name in registry.arrays(inputs.study, key, audit.arrays)}
        arrays = committed(replace(audit, arrays=arrays), partitions.get(key, {}), key)
        # The tidy rows are collected.
        rows = audit.rows.iloc[:0, :0]
        audits[key] = replace(audit, rows=rows, arrays={name: rounded(array) for name, array in arrays.items()})
    classifiers = {key: _recorded_classifier(inputs.study, key, one) for key, one in inputs.classifiers.items()}
    return replace(inputs, audits=audits, classifiers=classifiers)


def grid(inputs: Inputs) -> list[str]:
    """Return the parts of the grid that the study declares, whether they were run or not."""
    return sorted({*parts(inputs), *(one["part"] for one in left_out(inputs))})


def parts(inputs: Inputs) -> list[str]:
    """Return the parts of the study's grid that were run."""
    return sorted({section["part"] for section in inputs.config["sections"].values()})


def left_out(inputs: Inputs, but: Iterable[str] = (), key: str = "left_out") -> list[dict[str, Any]]:
    """Return the points of the grid that were not run, except those of some parts, see :class:`Inputs`."""
    return [one for one in inputs.config.get(key, ()) if one["part"] not in but]


def joined(run: Inputs, earlier: Inputs) -> Inputs:
    """Join a run of some parts of a study with an earlier run of the other parts.

    If both runs have a data set or classifier, that of the later run is kept.
    """
    own = parts(run)
    others = [point["keys"] for point in earlier.points if point["part"] not in own]

    def both(part: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
        keys = {getattr(other, part) for other in others}
        return {**{key: value for key, value in theirs.items() if key in keys}, **ours}

    def sections(part: str) -> dict[str, Any]:
        theirs = earlier.config[part].items()
        return {**{path: one for path, one in theirs if one["part"] not in own}, **run.config[part]}

    rows = as_text(earlier.rows)
    network = ("/" + rows["model"]).fillna("") if "model" in rows else ""
    rows = rows[~(rows["block"] + "/" + rows["dataset"] + network).isin(own)]
    scale = enumerated(sorted({*rows["scale"], run.scale}))

    def omitted(key: str) -> list[dict[str, Any]]:
        theirs = left_out(earlier, own, key)
        return [*theirs, *(one for one in left_out(run, set(parts(earlier)) - set(own), key) if one not in theirs)]

    config = {
        **run.config,
        "scale": {"name": scale},
        **{key: omitted(key) for key in ("left_out", "not_chosen")},
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


def committed(result: AuditResult, partitions: Mapping[str, Sequence[str]], key: str = "") -> dict[str, Array]:
    """Return an audit's arrays in the form that a reference may hold, see :data:`COMMITTED`.

    Parameters
    ----------
    result : AuditResult
        An audit of n people in the source group and m in the target group. For each direction, ``decision`` and
        ``decision_image`` (n,) determine a person's cell.
    partitions : mapping
        Names of the levels of the data set's partitions, by the name of the array with their codes.
    key : str
        Name of the audit in errors.

    Raises
    ------
    ValueError
        If an array is not declared, a picture may show a person, or a person's row would remain intact.
    """
    declared = COMMITTED.get(result.audit, {})
    found: dict[str, Array] = {}
    for name, array in result.arrays.items():
        place = f"array {name!r} of the audit {result.audit} ({key or result.dataset})"
        how = declared.get(name)
        if how is None and not _is_partition(array, partitions.get(name)):
            raise ValueError(
                f"{place} must not be stored in a reference, but the study declares it. If it shows no person's row, "
                "or does not once it is sorted, add it to COMMITTED of pipeline/report/reference.py. Otherwise, "
                "aggregate it in the audit"
            )
        if how is How.PICTURES and result.dataset not in w.OF_THINGS:
            raise ValueError(
                f"{place} may show a person: a reference stores only pictures of {enumerated(w.OF_THINGS)}"
            )
        if how in (How.WITHIN_DECISIONS, How.SORTED) and result.origin != "simulated":
            cell = np.zeros(len(array), int)
            if how is How.WITHIN_DECISIONS:
                cell = _cells(result.arrays, "_reverse" if name.endswith("_reverse") else "", place)
            if result.origin != "twin" and array.ndim > 1 and array.shape[1] > 1 and 1 in np.bincount(cell):
                raise ValueError(
                    f"{place}: only one person has this combination of decisions, so sorting would not break up their "
                    "row. Record the study without this data set (DATASETS)"
                )
            array = _each_column_sorted(array, cell)
        found[name] = array
    return found


def _is_partition(array: Array, levels: Sequence[str] | None) -> bool:
    """Return whether an array has codes of these levels, or -1."""
    if levels is None or array.ndim != 1 or array.dtype.kind != "i":
        return False
    return bool(((array >= -1) & (array < len(levels))).all())


def _cells(arrays: Mapping[str, Array], side: str, place: str) -> Array:
    """Return the cell of each person (n,), the decisions about the person and the counterpart."""
    decisions = [arrays.get(f"{name}{side}") for name in ("decision", "decision_image")]
    if any(one is None for one in decisions):
        raise ValueError(f"{place}: sorting it needs the arrays decision{side} and decision_image{side}")
    before, after = (one.astype(int) for one in decisions if one is not None)
    return 2 * before + after


def _each_column_sorted(array: Array, cell: Array) -> Array:
    """Sort each column separately within each cell."""
    values = np.array(array)
    for code in np.unique(cell):
        values[cell == code] = np.sort(values[cell == code], axis=0)
    return values


def rounded(array: Array) -> Array:
    """Round a large array of float64 to ``DIGITS`` significant digits."""
    if array.dtype != np.float64 or array.size < LARGE:
        return array
    with np.errstate(divide="ignore", invalid="ignore"):
        magnitude = np.where((array == 0) | ~np.isfinite(array), 0, np.floor(np.log10(np.abs(array))))
        # Numbers below 1e-37 are treated as 0.
        unit = 10.0 ** (DIGITS - 1 - np.maximum(magnitude, -37))
        return np.round(array * unit) / unit


def _recorded_classifier(study: str, key: str, one: Classifier) -> Classifier:
    """Keep the declared curves and small parameters. Other parameters become empty arrays with the same repetitions."""
    small = [name for name, array in one.parameters.items() if array.size < LARGE]
    kept = registry.arrays(study, key, [*small, *one.history])
    if unknown := sorted({*small} & {*kept} - {*PARAMETERS}):
        raise ValueError(
            f"parameter {unknown[0]!r} of the classifier {key} must not be stored in a reference, but the study "
            "declares it. If it holds no training row, add it to PARAMETERS of pipeline/report/reference.py"
        )
    # A network is loaded without its weights, so it may have no parameters.
    shapes = {(len(array),) for array in (*one.parameters.values(), *one.index.values())}
    if wide := [name for name, fact in one.facts.items() if {fact.shape} != shapes]:
        raise ValueError(f"fact {wide[0]!r} of the classifier {key}: expected one number for each repetition")
    parameters = {
        name: array if name in kept else array.reshape(len(array), -1)[:, :0] for name, array in one.parameters.items()
    }
    curves = {name: curve for name, curve in one.history.items() if name in kept}
    return replace(one, parameters=parameters, history=curves)
