"""Rows as individuals: who counts as alike by the fair metric, and who could exist."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairness_audits.attacks.gradient_flow import Bounds
from fairness_audits.attacks.whole_people import Column
from fairness_audits.audits.admissible import Admissible, check_categories, range_of
from fairness_audits.audits.association import association
from fairness_audits.audits.scaling import Units
from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import FairMetric, from_directions, learn
from fairness_audits.inputs.encoding import Encoding
from fairness_audits.inputs.table import Rows, Source, numeric, sha256
from fairness_audits.messages import SHOWN, apart, enumerated, listed, nearest
from fairness_audits.seeds import generators
from fairness_audits.values import Array

EVIDENCE = ("separation", "association", "signal")
"""What the JSON says about each learned direction: the AUC, the p-value of no association, the share of signal."""


def fair_metric(
    path: Path | None,
    rows: Rows,
    source: Source,
    directions: Array | None,
    units: Units,
    seed: int,
    order: Sequence[str] = (),
) -> tuple[FairMetric, dict[str, Any]]:
    """Return the fair metric, from ``directions``, the file ``path`` or the rows, and its description for the JSON.

    Given directions have an entry for each feature in this ``order`` (default: that of the rows).
    In the description, ``directions`` are scaled to length 1, in the units of the audit. ``separation`` is the area
    under the ROC curve for separating an attribute's two groups along its direction. ``association`` is the p-value of
    no association between the attribute and the inputs, and ``signal`` the share of the direction that is not noise
    (:func:`~fairness_audits.audits.association.association`). ``shares`` are the diagonal of the projector U
    U': 1 for a feature that the metric ignores, 0 for a feature that it keeps in full. They sum to the dimension of the
    subspace.
    """
    facts: dict[str, Any]
    if path is None and directions is None:
        metric, evidence = learned(rows, units, seed)
        inputs = [f"input {rows.names[position]}" for position in rows.sensitive_inputs]
        labels = [*rows.sensitive, *apart(inputs, rows.sensitive, "column")]
        facts = {"source": "learned", "path": source.name, "sha256": source.sha256}
        facts |= {"rows": len(rows.features), "levels": {name: list(pair) for name, pair in rows.levels.items()}}
        facts |= evidence
    else:
        numbers = directions_in(path, len(rows.names)) if path is not None else np.asarray(directions, dtype=float)
        origin = str(path or "directions")
        metric = metric_of(numbers, origin, rows.names, units, order or rows.names)
        labels = [f"direction {place}" for place in range(len(np.atleast_2d(numbers)))]
        facts = {"source": "given", "path": origin, "sha256": path and sha256(path), "rows": None, "levels": {}}
        facts |= {name: {} for name in EVIDENCE}
    loadings = metric.directions / np.abs(metric.directions).max(axis=1, keepdims=True)
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    by_name = (dict(zip(rows.names, one, strict=True)) for one in loadings.tolist())
    return metric, {
        **facts,
        "dimension": int(metric.basis.shape[1]),
        "directions": dict(zip(labels, by_name, strict=True)),
        "shares": dict(zip(rows.names, (metric.basis**2).sum(axis=1).tolist(), strict=True)),
    }


def learned(rows: Rows, units: Units, seed: int) -> tuple[FairMetric, dict[str, dict[str, float]]]:
    """Learn the metric that ignores what separates the groups; also return the evidence for each direction."""
    from sklearn.metrics import roc_auc_score

    if len(rows.sensitive_inputs) == len(rows.names):
        raise InvalidInput(
            "the fair metric is learned from features other than the sensitive columns, but there are none",
            option="features",
        )
    points = units.inward(rows.features)
    metric = learn(points, rows.sensitive, rows.sensitive_inputs)
    others = np.delete(points, rows.sensitive_inputs, axis=1)
    found: dict[str, dict[str, float]] = {name: {} for name in EVIDENCE}
    for (name, group), direction in zip(rows.sensitive.items(), metric.directions, strict=False):
        (rng,) = generators("audit", "loss-ratio", "association", name, str(seed), repetitions=1)
        values = (float(roc_auc_score(group, points @ direction)), *association(others, group, rng))
        for key, value in zip(EVIDENCE, values, strict=True):
            found[key][name] = value
    return metric, found


def resampled(rows: Rows, units: Units, samples: int, seed: int) -> list[FairMetric]:
    """Learn the metric of bootstrap samples of the rows. A sample from which none can be learned is left out."""
    points, found = units.inward(rows.features), []
    for rng in generators("audit", "loss-ratio", "metric samples", str(seed), repetitions=samples):
        chosen = rng.integers(len(points), size=len(points))
        sampled = {name: group[chosen] for name, group in rows.sensitive.items()}
        try:
            found.append(learn(points[chosen], sampled, rows.sensitive_inputs))
        except InvalidInput:
            # Rare groups are not in every sample. The result counts the samples that are left.
            continue
    return found


def directions_in(path: Path, d: int) -> Array:
    """Read the numbers of a ``.npy`` file."""
    try:
        return np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
    except FileNotFoundError as error:
        problem = f"there is no file {path}: directions takes a .npy file of shape (number, {d})"
        raise InvalidInput(problem, source=path, option="directions") from error
    except (OSError, ValueError, EOFError, TypeError) as error:
        problem = f"{path} is not a .npy file of numbers"
        raise InvalidInput(problem, source=path, option="directions", remedy="Write it with numpy.save") from error


def metric_of(directions: Array, source: str, names: tuple[str, ...], units: Units, order: Sequence[str]) -> FairMetric:
    """Return the metric of the features ``names`` that ignores displacements along ``directions`` (m, d).

    These are in the columns' own units, with an entry for each feature in this ``order``.
    """
    d = len(names)
    directions = directions[None, :] if directions.ndim == 1 else directions
    if directions.ndim != 2 or directions.shape[1] != d or not len(directions):
        raise InvalidInput(
            f"expected directions of shape (number, {d}), one entry for each feature in the order "
            f"{', '.join(order)}; found shape {directions.shape} in {source}",
            source=source,
            option="directions",
        )
    # A displacement v in the columns' units is v / scale in the units of the audit.
    try:
        return from_directions(directions[:, [order.index(name) for name in names]] / units.scale)
    except ValueError as error:
        raise InvalidInput.within(source, error, source=source, option="directions") from error


def people_of(rows: Rows, one_hot: Sequence[str], known: Sequence[tuple[int, ...]] = ()) -> Admissible:
    """Return the admissible rows: within the data's range, whole numbers kept, categories by ``one_hot`` prefixes.

    The features of other categories may be ``known``. Raises InvalidInput if fewer than two columns have a prefix, or
    if a row has no category or two.
    """
    categories = list(known)
    for prefix in one_hot:
        group = tuple(j for j, name in enumerate(rows.names) if name.startswith(prefix))
        if len(group) < 2:
            raise InvalidInput(
                f"one_hot={prefix!r}: expected at least two columns with this prefix, found {len(group)} "
                f"among {listed(rows.names, SHOWN)}",
                option="one_hot",
            )
        categories.append(group)
    check_categories(rows.features, categories, rows.names)
    whole = np.flatnonzero((rows.features == np.round(rows.features)).all(axis=0))
    return Admissible(range_of(rows.features), tuple(whole.tolist()), tuple(categories))


def columns_of(
    names: Sequence[str], encoding: Encoding, people: Admissible, one_hot: Sequence[str]
) -> dict[str, Column]:
    """Return the features of each column that changes as a whole: a category (text or ``one_hot``) or a number."""
    labels = dict(zip(encoding.groups, encoding.columns, strict=True))
    prefixes = zip(people.categories[len(encoding.categories) :], one_hot, strict=True)
    labels |= {group: prefix.rstrip("_=- ") or prefix for group, prefix in prefixes}
    grouped = {j for group in people.categories for j in group}
    single = {labels.get((j,), name): (j,) for j, name in enumerate(names) if j not in grouped}
    return {**{labels[group]: group for group in people.categories}, **single}


def bounds_of(option: str, rows: Rows, people: Admissible) -> Bounds | None:
    """Return the bounds of the option ``bounds``, in the columns' own units.

    Raises InvalidInput for a file without feature, low and high, and for rows outside the bounds.
    """
    if option in ("data", "none"):
        return people.bounds if option == "data" else None
    path = Path(option)
    if not path.suffix:
        raise InvalidInput(
            f"bounds={option!r}: expected data, none, or a CSV file with the columns feature, low and high",
            option="bounds",
        )
    table = Source.read(path)
    columns = list(table.table.columns)
    if absent := [name for name in ("feature", "low", "high") if name not in columns]:
        problem = f"bounds needs the columns feature, low and high, but {path} lacks {enumerated(absent)}"
        remedy = f"It has: {listed(columns)}"
        raise InvalidInput(problem, source=path, option="bounds", column=absent[0], remedy=remedy)
    features = table.table["feature"].tolist()
    if unknown := [str(name) for name in features if name not in rows.names]:
        shown = listed(list(map(repr, unknown)), SHOWN)
        problem = f"{path}: there is no feature {shown}{nearest(unknown[0], rows.names)}"
        raise InvalidInput(problem, source=path, option="bounds")
    low, high = np.full(len(rows.names), -np.inf), np.full(len(rows.names), np.inf)
    places = [rows.names.index(name) for name in features]
    low[places], high[places] = numeric(table, ("low", "high")).T
    beyond = (rows.features < low) | (rows.features > high)
    if beyond.any():
        row, j = np.argwhere(beyond)[0]
        raise InvalidInput(
            f"{path}: {rows.names[j]!r} is {rows.features[row, j]:g} in row {row}, outside [{low[j]:g}, {high[j]:g}]",
            **{"source": path, "option": "bounds", "column": rows.names[j], "row": int(row)},
            remedy="Widen the bounds, or remove these rows",
        )
    return low, high
