"""Scores of the rows of each repetition, for audits of P(y = 1 | x)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.models import architecture
from pipeline.types import Array, Batch, Classifier, Dataset, Split


def scores_of(dataset: Dataset, classifier: Classifier, side: Split) -> tuple[Batch, Array]:
    """One side of R classifiers' splits and P(y = 1 | x) of its rows, (R, n)."""
    batch = dataset.batch(side, classifier.repetitions)
    ones = np.ones(batch.label.shape, dtype=np.int64)
    loss, _ = architecture(classifier.architecture).loss_and_gradient(classifier.parameters, batch.features, ones)
    return batch, np.asarray(np.exp(-np.asarray(loss, dtype=float)))


def named_attributes(dataset: Dataset, names: Sequence[str] | None) -> list[str]:
    """The protected attributes of these names, all for None. Raises ValueError for one that there is not."""
    chosen = list(dataset.protected) if names is None else list(names)
    if missing := [name for name in chosen if name not in dataset.protected]:
        raise ValueError(f"expected audit.attributes among {sorted(dataset.protected)}, found {missing}")
    return chosen
