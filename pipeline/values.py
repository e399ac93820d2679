"""Values that only the experiments pass between stages: missing data, summaries of data sets and audit results."""

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
    """What stands for a dataset that cannot be had, the classifiers a ``method`` would make of it, and their ``audit``.

    ``reason`` says what was tried and how to get the data. Tables and figures list it as not run, and never fake it.
    """

    name: str
    reason: str
    method: str = ""
    audit: str = ""


@dataclass(frozen=True)
class DatasetSummary:
    """A prepared data set without its rows.

    ``train_rows`` and ``test_rows`` are those of a split. ``levels`` name the groups of each attribute, or of each
    partition of images.

    Of tables, with d features, of which the ``continuous`` are standardised: ``positives``, the share of labels that
    are 1; ``deviations`` (d,) of each feature over all rows, with divisor n; ``correlations[attribute]`` (d,),
    Pearson's, of each feature with being in the group coded 0, over the rows of both groups, NaN for a constant
    feature. ``points`` hold ``features`` (n, 2), ``label`` (n,) and ``group`` (n,) of data that are simulated and have
    two features.

    Of images: ``classes``, ``std`` (one number a channel, what a network divides by) and how many files were
    ``unreadable``.
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


@dataclass(frozen=True)
class AuditResult:
    """What an audit measured of one method's classifiers on one dataset.

    ``rows`` is tidy: columns ``repetition``, ``statistic``, ``value`` and one column for each setting the audit ran
    over (``steps``, ``regularization``, ...). ``arrays`` keeps what a figure needs beyond that, by name.
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
        """The result of tidy ``rows``, with the ``constant`` columns and the index of the classifiers."""
        import pandas as pd

        table = pd.DataFrame(rows).assign(**constant)
        for name, values in classifier.index.items():
            table[name] = values[table["repetition"]]
        return cls(audit, dataset.name, classifier.method, dataset.origin, table, arrays or {})

    @classmethod
    def not_run(cls, absent: MissingData) -> AuditResult:
        """The audit of data that cannot be had: one row that says so, with the reason."""
        import pandas as pd

        row = {"repetition": 0, "statistic": "absent", "value": 1.0, "reason": absent.reason}
        return cls(absent.audit, absent.name, absent.method, "absent", pd.DataFrame([row]))
