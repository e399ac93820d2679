"""Where two fixed people are sent by maps that were fitted on different draws of everyone else, and how well those fit.

Source: Black et al. 2020, section 3.2. Each repetition of the dataset ``gaussian`` draws both groups anew, save the
first two people of the source group: all ones, then all zeros. As the two groups have one distribution, a good map
leaves them where they are; and it sends the group onto the other one, which a map that leads everybody to one point,
however surely, does not. Mean, variance and error over the repetitions are the report's to take.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.transport.quality import ks, orientation
from fairness_audits.values import Classifier, Dataset, TransportMap
from pipeline.counterparts import mapped
from pipeline.values import AuditResult

POINTS = {"ones": 1.0, "zeros": 0.0}
"""The fixed people, in their order, and the value of all their features."""


@dataclass(frozen=True)
class Config:
    """Nothing to choose."""


def run(
    dataset: Dataset,
    classifier: Classifier,
    config: Config,
    rngs: Sequence[np.random.Generator],
    transport: TransportMap,
) -> AuditResult:
    """Rows ``image`` of every trial by ``point`` (ones, zeros) and ``feature`` (its number from 1); ``orientation`` by
    feature, the correlation of everybody's images with the people, below 0 of a map that mirrors it; and ``ks``.

    The last is the largest Kolmogorov-Smirnov statistic of a feature, of everybody's images against the target group;
    NaN where an image is not finite. Nothing is drawn. An image that is not finite is a row all the same. Raises
    ValueError for a dataset whose first two people of the source group are not the fixed ones in every repetition.
    """
    count = min(classifier.repetitions, transport.trials)
    rows: list[dict[str, Any]] = []
    for r, pair in enumerate(mapped(transport, dataset, "train", count)):
        fixed = pair.features[: len(POINTS)]
        if not np.array_equal(fixed, np.outer(list(POINTS.values()), np.ones(fixed.shape[1]))):
            raise InvalidInput(
                f"expected the first people of {transport.source!r} in repetition {r} of {dataset.name!r} to be "
                f"{' and '.join(POINTS)}",
                source=dataset.name,
                option="dataset",
                remedy="Audit the data set gaussian",
            )
        found = [
            (point, str(j), "image", value)
            for point, image in zip(POINTS, pair.images[: len(POINTS)], strict=True)
            for j, value in enumerate(image, start=1)
        ]
        furthest = np.nan
        if np.isfinite(pair.images).all():
            furthest = ks(pair.target, pair.images).max()
            correlations = enumerate(orientation(pair.features, pair.images), start=1)
            found += [("", str(j), "orientation", value) for j, value in correlations]
        rows += [
            {"repetition": r, "point": point, "feature": feature, "statistic": statistic, "value": float(value)}
            for point, feature, statistic, value in (*found, ("", "", "ks", furthest))
        ]
    return AuditResult.of("map_stability", dataset, classifier, rows)
