"""Parts of the measurement: the fair metric, admissible points, the evidence of a search, the worst examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.attacks.gradient_flow import Bounds
from fairness_audits.audits.loss_ratio.admissible import Admissible, check_categories, range_of
from fairness_audits.audits.loss_ratio.association import association
from fairness_audits.audits.loss_ratio.core import LossRatio
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest
from fairness_audits.audits.loss_ratio.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import FairMetric, from_directions, learn
from fairness_audits.inputs.encoding import Encoding
from fairness_audits.inputs.table import Rows, Source, Units, numeric, sha256
from fairness_audits.messages import SHOWN, advised, apart, enumerated, listed, nearest
from fairness_audits.seeds import generators
from fairness_audits.values import Array

CHANGES = 4
"""Number of changed features that an example names in the terminal."""
NEGLIGIBLE = 0.01
"""Features that moved by less than this share of the largest move are not named."""
EVIDENCE = ("separation", "association", "signal")
"""What the JSON says about each learned direction: the AUC, the p-value of no association, the share of signal."""
VERSIONS = ("original", "comparable", "possible")
"""Versions of an example: the original, the end of the attack, and the nearest person who could exist."""


def fair_metric(
    path: Path | None, rows: Rows, source: Source, directions: Array | None, units: Units, seed: int
) -> tuple[FairMetric, dict[str, Any]]:
    """Return the fair metric, from ``directions``, the file ``path`` or the rows, and its description for the JSON.

    In the description, ``directions`` are scaled to length 1, in the units of the audit. ``separation`` is the area
    under the ROC curve for separating an attribute's two groups along its direction. ``association`` is the p-value of
    no association between the attribute and the inputs, and ``signal`` the share of the direction that is not noise
    (:func:`~fairness_audits.audits.loss_ratio.association.association`). ``shares`` are the diagonal of the projector U
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
        metric = metric_of(numbers, origin, rows.names, units)
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


def directions_in(path: Path, d: int) -> Array:
    """Read the numbers of a ``.npy`` file."""
    try:
        return np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
    except FileNotFoundError as error:
        problem = f"there is no file {path}: --directions takes a .npy file of shape (number, {d})"
        raise InvalidInput(problem, source=path, option="directions") from error
    except (OSError, ValueError, EOFError, TypeError) as error:
        problem = f"{path} is not a .npy file of numbers"
        raise InvalidInput(problem, source=path, option="directions", remedy="Write it with numpy.save") from error


def metric_of(directions: Array, source: str, names: tuple[str, ...], units: Units) -> FairMetric:
    """Return the metric that ignores displacements along ``directions`` (m, d), in the columns' own units."""
    d = len(names)
    directions = directions[None, :] if directions.ndim == 1 else directions
    if directions.ndim != 2 or directions.shape[1] != d or not len(directions):
        raise InvalidInput(
            f"expected --directions of shape (number, {d}), one entry for each feature in the order "
            f"{', '.join(names)}; found shape {directions.shape} in {source}",
            source=source,
            option="directions",
        )
    # A displacement v in the columns' units is v / scale in the units of the audit.
    try:
        return from_directions(directions / units.scale)
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
                f"{advised('one-hot', prefix)}: expected at least two columns with this prefix, found {len(group)} "
                f"among {listed(rows.names, SHOWN)}",
                option="one_hot",
            )
        categories.append(group)
    check_categories(rows.features, categories, rows.names)
    whole = np.flatnonzero((rows.features == np.round(rows.features)).all(axis=0))
    return Admissible(range_of(rows.features), tuple(whole.tolist()), tuple(categories))


def bounds_of(option: str, rows: Rows, people: Admissible) -> Bounds | None:
    """Return the bounds of the option ``--bounds``, in the columns' own units.

    Raises InvalidInput for a file without feature, low and high, and for rows outside the bounds.
    """
    if option in ("data", "none"):
        return people.bounds if option == "data" else None
    path = Path(option)
    if not path.suffix:
        raise InvalidInput(
            f"{advised('bounds', option)}: expected data, none, or a CSV file with the columns feature, low and high",
            option="bounds",
        )
    table = Source.read(path)
    columns = list(table.table.columns)
    if absent := [name for name in ("feature", "low", "high") if name not in columns]:
        problem = f"--bounds needs the columns feature, low and high, but {path} lacks {enumerated(absent)}"
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


@dataclass(frozen=True)
class Audited:
    """The audited rows: ``features`` (n, d) in the columns' own units, and the ``label`` (n,) of each.

    The fair ``metric`` is in the ``units`` of the audit. ``people`` are the constraints on people who could exist, with
    the range of the data. ``bounds`` are the bounds of the search, None for no bounds. The placebo draws rows several
    times, each time with new directions; ``draw_of_row`` (n,) is the draw of each row, -1 for none.
    """

    features: Array
    label: Array
    metric: FairMetric
    units: Units
    settings: Settings
    people: Admissible
    bounds: Bounds | None
    draw_of_row: Array

    @property
    def limits(self) -> dict[str, float]:
        """Return the tolerated ratio and the level."""
        return {"delta": self.settings.delta, "alpha": self.settings.alpha}

    def inward(self, bounds: Bounds | None) -> Bounds | None:
        """Convert bounds to the units of the audit."""
        return None if bounds is None else (self.units.inward(bounds[0]), self.units.inward(bounds[1]))


@dataclass(frozen=True)
class Evidence:
    """The tests ``found`` on n rows, and what describes their comparables in the columns' own units.

    ``comparable`` (n, d) are the points after the search, and ``possible`` the people who could exist nearest to them,
    with their ``possible_loss`` (n,). ``fair_distance`` (n,) is the distance between a row and its comparable.
    ``outside`` (n,) marks comparables beyond the range of the data. ``within`` is the test with comparables kept in
    this range, None if the search keeps them there. ``placebo`` is the test of some of the rows with the same search
    along ``placebo_directions`` other directions, None if there was none.
    """

    found: LossRatio
    comparable: Array
    possible: Array
    possible_loss: Array
    fair_distance: Array
    outside: Array
    within: RatioTest | None = None
    placebo: RatioTest | None = None
    placebo_directions: int = 0


def pinned_share(original: Array, comparable: Array, metric: FairMetric, bounds: Bounds | None) -> float:
    """Return the share of the sensitive subspace that lies in features held at a bound where they began.

    The share is the mean over the rows (n, d) of these features' summed shares, divided by the dimension of the
    subspace. A row at the corner of its box cannot move along a direction that leaves the box in some feature. Without
    bounds the result is 0.
    """
    if bounds is None or not metric.basis.shape[1]:
        return 0.0
    held = (comparable == original) & ((original == bounds[0]) | (original == bounds[1]))
    shares = (metric.basis**2).sum(axis=1) / metric.basis.shape[1]
    return float((held @ shares).mean())


def examples_of(
    evidence: Evidence, some: Rows, row_numbers: Array, units: Units, encoding: Encoding, count: int
) -> pd.DataFrame:
    """Return the rows with the ``count`` largest finite ratios.

    Each row has three lines: ``original``; ``comparable``, the end of the attack; ``possible``, the nearest person who
    could exist. The columns are those of the model in their own units, so you can pass a line to the model again. The
    audit's columns begin with ``audit_``. A feature with the name of an audit column gets the suffix ``(input)``.
    """
    ratio, found = evidence.found.ratio, evidence.found
    order = np.argsort(-np.nan_to_num(ratio, nan=-np.inf), kind="stable")
    worst = order[: min(count, int(np.isfinite(ratio).sum()))]
    two = len(some.label_levels) == 2
    losses = found.original_loss, found.comparable_loss, evidence.possible_loss
    loss = dict(zip(VERSIONS, (own[worst] for own in losses), strict=True))
    points = dict(
        zip(VERSIONS, (x[worst] for x in (some.features, evidence.comparable, evidence.possible)), strict=True)
    )
    none = np.full(len(worst), np.nan)
    distance = {"original": 0.0, "comparable": evidence.fair_distance[worst], "possible": none}
    p = {version: probability(own, some.label[worst], two) for version, own in loss.items()}
    groups = {name: np.array(some.levels[name])[group[worst]].tolist() for name, group in some.sensitive.items()}
    moved = np.abs(units.inward(points["comparable"]) - units.inward(points["original"]))
    moved = np.column_stack([moved[:, list(group)].max(axis=1) for group in encoding.groups])
    inputs = {version: encoding.decoded(own) for version, own in points.items()}
    changes = []
    for k, own in enumerate(moved):
        largest = [j for j in np.argsort(-own, kind="stable")[:CHANGES] if own[j] > NEGLIGIBLE * own.max()]
        ends = [(encoding.columns[j], *(inputs[one].iloc[k, j] for one in ("original", "comparable"))) for j in largest]
        levels = [f"{name.partition('=')[0]} {values[k]}" for name, values in groups.items()]
        changes.append("; ".join([*levels, *(f"{name} {_shown(start)} -> {_shown(end)}" for name, start, end in ends)]))
    parts = []
    for version in loss:
        own = {
            "audit_rank": np.arange(len(worst)) + 1,
            "audit_row": row_numbers[worst],
            "audit_version": version,
            "audit_loss_ratio": ratio[worst],
            "audit_fair_distance": distance[version],
            "audit_loss": loss[version],
            f"audit_probability_of_{'1' if two else 'label'}": p[version],
            "audit_label": some.label[worst],
        }
        last = {"audit_changes": changes}
        named = apart([f"audit_{name}" for name in groups], {*own, *last}, "sensitive")
        columns = {**own, **dict(zip(named, groups.values(), strict=True)), **last}
        features = inputs[version].set_axis(apart(encoding.columns, columns, "input"), axis="columns")
        parts.append(pd.DataFrame(columns).join(features))
    return pd.concat(parts).sort_values("audit_rank", kind="stable", ignore_index=True)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}" if isinstance(value, float) else str(value)


def probability(loss: Array, label: Array, two: bool) -> Array:
    """Convert cross-entropies l = -log P(label | x) to P(1 | x) for ``two`` classes, otherwise to P(label | x)."""
    return np.where((label == 1) | (not two), np.exp(-loss), -np.expm1(-loss))
