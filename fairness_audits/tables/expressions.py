"""Expressions of a column, by narwhals: its value, its number, and the faults of a score."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import narwhals.stable.v2 as nw
import numpy as np

from fairness_audits.audits.permutation.outcomes import in_precision
from fairness_audits.tables.table import FAULTS, Decision, Faulty, Reading, Threshold


@dataclass(frozen=True)
class Column:
    """Expressions of a column: its ``raw`` value, and its ``number`` as a double, or null for a text.

    Numbers have a ``precision``.
    """

    raw: nw.Expr
    number: nw.Expr
    precision: np.dtype

    @property
    def missing(self) -> nw.Expr:
        """Return whether there is no value; NaN is none."""
        return self.raw.is_null() | self.number.is_nan()

    def fault(self, low: float, high: float) -> nw.Expr:
        """Return the code of the fault of a score, its place in FAULTS. An infinite score is outside any bounds."""
        low, high = max(low, -sys.float_info.max), min(high, sys.float_info.max)
        bounded = nw.when((self.number >= low) & (self.number <= high)).then(FAULTS.index("none"))
        known = (
            nw.when(self.number.is_null())
            .then(FAULTS.index("text"))
            .otherwise(bounded.otherwise(FAULTS.index("outside")))
        )
        return nw.when(self.missing).then(FAULTS.index("missing")).otherwise(known)

    def reading(self, outcome: Reading) -> dict[str, nw.Expr]:
        """Return the fault and the value of an outcome; a value with a fault is null."""
        if isinstance(outcome, Decision):
            return {"fault": nw.lit(FAULTS.index("none")), "outcome": self.raw}
        fault = self.fault(outcome.low, outcome.high)
        value = self.number + 0.0  # -0.0 and 0.0 are the same score
        if isinstance(outcome, Threshold):
            value = nw.when(self.number >= outcome.threshold).then(1).otherwise(0)
        return {"fault": fault, "outcome": nw.when(fault == FAULTS.index("none")).then(value)}

    def faulty(self, faulty: Faulty) -> nw.Expr | None:
        """Return the condition that selects the faulty rows; None if the value has a type without a literal."""
        if faulty.fault == "missing":
            return self.missing
        if faulty.fault != "value":
            return self.fault(faulty.low, faulty.high) == FAULTS.index(faulty.fault)
        value = faulty.value
        if isinstance(value, float):
            return self.number == float(in_precision(value, self.precision))
        return self.raw == value if isinstance(value, bool | int | str) else None
