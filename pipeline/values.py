"""Values passed between stages of the experiments: missing data, summaries of data sets and audit results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairness_audits.values import Array, Classifier, Dataset, Provenance

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class MissingData:
    """A placeholder for a missing data set, for the classifiers of a ``method`` on it, and for their ``audit``.

    ``reason`` says what was tried and how to get the data. Tables and figures list the data set as not run.
    """

    name: str
    reason: str
    method: str = ""
    audit: str = ""


@dataclass(frozen=True)
class DatasetSummary:
    """A summary of a prepared data set, without its rows.

    ``train_rows`` and ``test_rows`` are the sizes of a split. ``levels`` name the groups of each attribute, or of each
    partition of images.

    Tables have d features; the ``continuous`` ones are standardised. ``positives``: share of labels 1. ``deviations``
    (d,): standard deviation of each feature over all rows, with divisor n. ``correlations[attribute]`` (d,): Pearson
    correlation of each feature with membership in the group coded 0, over the rows of both groups, NaN for a constant
    feature. ``points``: ``features`` (n, 2), ``label`` (n,) and ``group`` (n,) of simulated data with two features.

    Images have ``classes``, ``std`` (by channel, the divisor of the normalisation), the number of ``unreadable`` files,
    and ``groups[partition]`` (2, L), the numbers of images of each level to train and to test.
    """

    name: str
    origin: Provenance
    label_name: str
    rows: int
    train_rows: int
    test_rows: int
    levels: Mapping[str, tuple[str, ...]]
    dropped: Mapping[str, int]
    checksums: Mapping[str, str]
    feature_names: tuple[str, ...] = ()
    continuous: tuple[str, ...] = ()
    positives: float = float("nan")
    deviations: Array = field(default_factory=lambda: np.zeros(0))
    correlations: Mapping[str, Array] = field(default_factory=dict)
    points: Mapping[str, Array] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    std: tuple[float, ...] = ()
    unreadable: int = 0
    groups: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit of one method's classifiers on one data set.

    ``rows`` is tidy: columns ``repetition``, ``statistic``, ``value`` and one column for each setting of the audit
    (``steps``, ``regularization``, ...). ``arrays`` holds further data for figures, by name.
    """

    audit: str
    dataset: str
    method: str
    origin: Provenance
    rows: pd.DataFrame
    arrays: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        audit: str,
        dataset: Dataset,
        classifier: Classifier,
        rows: Sequence[Mapping[str, Any]],
        arrays: Mapping[str, Array] | None = None,
        **constant: Any,
    ) -> AuditResult:
        """Return a result from tidy ``rows``, with the ``constant`` columns and the index of the classifiers."""
        import pandas as pd

        table = pd.DataFrame(rows).assign(**constant)
        for name, values in classifier.index.items():
            table[name] = values[table["repetition"]]
        return cls(audit, dataset.name, classifier.method, dataset.origin, table, arrays or {})

    @classmethod
    def not_run(cls, absent: MissingData) -> AuditResult:
        """Return the audit of missing data: one row with the reason."""
        import pandas as pd

        row = {"repetition": 0, "statistic": "absent", "value": 1.0, "reason": absent.reason}
        return cls(absent.audit, absent.name, absent.method, "absent", pd.DataFrame([row]))
