"""How well transport maps reach the target group, and how far they move people for it: table 1 of Black et al. 2020.

Distances are over all columns, those that say the group too: the published ones of the law school have the 2 of its
race dummies in them. All else is measured on the transported features alone; no classifier is looked at. The measures
are those of ``fairness_audits.transport.quality``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.transport import quality
from fairness_audits.validation import Checked, Count
from fairness_audits.values import Array, Classifier, Dataset, Split, TransportMap
from pipeline.counterparts import directions, map_module, mapped
from pipeline.values import AuditResult

NAN = float("nan")
BY_FEATURE = ("ks", "ks_raw", "mse_real", "mse_generated", "mse_difference")


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``split``: train, test or all, the rows that are mapped. ``members``: the rows of each group, the first of the
    split, on which the map's cost is set against that of exact transport."""

    split: Split
    members: Count


def run(
    dataset: Dataset,
    classifier: Classifier,
    config: Config,
    rngs: Sequence[np.random.Generator],
    transport: TransportMap,
) -> AuditResult:
    """Validate each trial's map in each direction that was fitted; the classifier only says how many repetitions.

    Columns of the rows: ``direction``, ``source``, ``target`` and ``feature`` (empty where there is none).

    - By feature: ``ks`` of the images, each taken for the nearest value that the target group has, and ``ks_raw`` of
      the images as they are; ``mse_real``, ``mse_generated`` and ``mse_difference`` (generated - real) of its
      regression on the other features.
    - By feature: ``orientation``, the correlation of the images with the people. ``oriented`` (over all): whether it
      is positive for every feature that varies; a map that mirrors one is not.
    - ``map_l1`` and ``map_cost`` (mean squared L1 distance) of the map on the members; ``exact_l1`` and ``exact_cost``
      of exact transport between the members of the two groups; ``round_trip_l1``, the mean L1 distance between a person
      and the way there and back, NaN where the map has no way back from an image; ``non_finite`` images, left out of
      everything else; ``ks_max`` and ``healthy`` (0 above ``fairness_audits.transport.quality.WORST_HEALTHY_KS``).

    Without a finite image nothing is measured: all NaN, and not healthy. Raises ValueError where the map is not defined
    on a row of the split, and where a group has no rows in it or too few for the regressions.
    """
    count = min(classifier.repetitions, transport.trials)
    columns = np.array([dataset.feature_names.index(name) for name in transport.features])
    streams = [rng.spawn(2) for rng in rngs[:count]]
    exact: dict[int, dict[str, float]] = {}
    rows: list[dict[str, Any]] = []
    for place, (direction, source, target) in enumerate(directions(transport)):
        back = transport.reverse if direction == "forward" else transport.parameters
        where = {"direction": direction, "source": source, "target": target}
        for r, pair in enumerate(mapped(transport, dataset, config.split, count, direction)):
            finite = np.isfinite(pair.images).all(axis=1)
            near = np.flatnonzero(finite[: config.members])
            x, image, real = (values[:, columns] for values in (pair.features, pair.images, pair.target))
            x, image = x[finite], image[finite]
            # The two directions of exact transport are one plan, read along its rows or its columns.
            if r not in exact:
                exact[r] = quality.exact_distances(pair.features[: config.members], pair.target[: config.members])
            own = {name: values[r : r + 1] for name, values in back.items()}
            measured = [
                *_by_feature(image, real, transport.features, streams[r][place]),
                ("", "non_finite", (~finite).sum()),
                *_overall(pair.features[near], pair.images[near], exact[r]),
                *_orientation(x, image, transport.features),
                ("", "round_trip_l1", _round_trip(transport.kind, own, x, image)),
            ]
            rows += [
                {"repetition": r, **where, "feature": feature, "statistic": statistic, "value": float(value)}
                for feature, statistic, value in measured
            ]
    return AuditResult.of("map_quality", dataset, classifier, rows)


Measured = tuple[str, str, float]


def _by_feature(image: Array, real: Array, names: Sequence[str], rng: np.random.Generator) -> Iterator[Measured]:
    """Feature by feature, images (n, k) against target rows (m, k); and over all features."""
    statistics = dict.fromkeys(BY_FEATURE, np.full(len(names), NAN))
    if len(image):
        error, error_of_images = quality.regression_errors(real, image, rng)
        nearest, raw = quality.nearest_ks(real, image), quality.ks(real, image)
        found = (nearest, raw, error, error_of_images, error_of_images - error)
        statistics = dict(zip(BY_FEATURE, found, strict=True))
    for statistic, values in statistics.items():
        yield from ((name, statistic, value) for name, value in zip(names, values, strict=True))
    yield "", "ks_max", statistics["ks"].max()
    yield "", "healthy", len(image) > 0 and quality.healthy(statistics["ks"])


def _orientation(x: Array, image: Array, names: Sequence[str]) -> Iterator[Measured]:
    """Correlation of people (n, k) and images feature by feature, NaN of what does not vary."""
    found = quality.orientation(x, image) if len(x) else np.full(len(names), NAN)
    yield from ((name, "orientation", value) for name, value in zip(names, found, strict=True))
    yield "", "oriented", bool((found[np.isfinite(found)] > 0).all()) if len(x) else NAN


def _overall(x: Array, image: Array, exact: dict[str, float]) -> Iterator[Measured]:
    """Distances of people from their images, over all columns."""
    yield "", "map_l1", quality.mean_distance(x, image, "l1") if len(x) else NAN
    yield "", "map_cost", quality.mean_distance(x, image, "squared_l1") if len(x) else NAN
    yield "", "exact_l1", exact["l1"]
    yield "", "exact_cost", exact["squared_l1"]


def _round_trip(kind: str, back: dict[str, Array], x: Array, image: Array) -> float:
    """Mean L1 distance of x (n, k) and the image of its image under the opposite map's parameters, one trial's."""
    if not back or not len(x):
        return NAN
    module = map_module(kind)
    try:
        (returned,) = module.images(back, [image])
    except ValueError:
        # Such a map knows the rows of the other group, and an image that averages several of them is none of them.
        if getattr(module, "FITTED_ROWS_ONLY", False):
            return NAN
        raise
    return quality.mean_distance(x, returned, "l1") if np.isfinite(returned).all() else NAN
