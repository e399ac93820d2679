"""Read the data of each metric from a table: counts of decisions, counts of scores, or rows."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from fairness_audits.audits.permutation.metrics import Metric, UserMetric
from fairness_audits.audits.permutation.outcomes import Counts, Predictions
from fairness_audits.audits.permutation.plan import BASE_RATE, Plan, of_decisions
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.table import Attribute, attribute
from fairness_audits.tables import contingency, predictions
from fairness_audits.tables.groupings import Constant
from fairness_audits.tables.groupings import grouping as grouping_of
from fairness_audits.tables.table import Faulty, Table

NO_LABEL, NO_DECISION = Constant("no label"), Constant("no decision")
ROWS = 100_000
"""Largest number of rows read row by row. In larger data each distinct score is counted if there are few."""
DISTINCT = 2_000
"""Largest number of distinct scores that counts as few."""
IN_MEMORY = 20_000_000
"""Largest number of rows held in memory. In larger data scores are counted in bins, unless the user objects."""
BINS = 10_000
Data: TypeAlias = tuple[Counts | Predictions, str]
"""The data of a metric's tests, and a description of how they were read."""


def read(table: Table, plan: Plan, grouping: Attribute) -> Iterator[tuple[Metric, Data]]:
    """Yield each metric with its data: counts of decisions, counts of scores, or rows. Each kind is read once."""
    settings = plan.settings
    undecided = settings.prediction is None and settings.threshold is None and settings.score is None
    base_rate = any(metric.name == BASE_RATE for metric in plan.metrics)
    for constant, needed in ((NO_LABEL, settings.label is None), (NO_DECISION, undecided or base_rate)):
        if needed and constant.name not in table.columns:
            table.add(constant)
    columns = {"group": grouping.column, "against": grouping.level, **settings.some("positive", "score")}
    columns["label"] = settings.label or NO_LABEL.name
    found: dict[Callable[..., Data], Data] = {}
    for metric in plan.metrics:
        alone = settings.cluster or settings.weight or settings.regression or isinstance(metric, UserMetric)
        reader = rows if alone else decisions if of_decisions(metric) else scores
        if reader not in found:
            found[reader] = reader(table, plan, columns)
        yield metric, found[reader]


def decisions(table: Table, plan: Plan, columns: dict[str, Any]) -> Data:
    """Count rows by group x label x decision."""
    settings = plan.settings
    if settings.prediction is None and settings.threshold is None:
        made = contingency(table, **{**columns, "score": None}, prediction=NO_DECISION.name)
        return made, "counts of labels"
    score = None if settings.prediction else settings.score
    counted = contingency(table, **{**columns, **settings.some("prediction", "threshold"), "score": score})
    return counted, f"counts of decisions ({settings.prediction or f'{settings.score} >= {settings.threshold:g}'})"


def scores(table: Table, plan: Plan, columns: dict[str, Any]) -> Data:
    """Count rows by group x label x score if few scores are distinct, else read the rows, or bin them if too many."""
    bins, score = plan.settings.bins, str(plan.settings.score)
    if bins == "auto" and table.size() > ROWS and table.distinct((score,))[score] <= DISTINCT:
        exact = contingency(table, **columns, bounds=plan.bounds)
        return exact, f"counts of {len(exact.lower):,} distinct scores"
    if bins == "none" or (bins == "auto" and table.size() <= IN_MEMORY):
        return rows(table, plan, columns)
    number = BINS if bins == "auto" else bins
    counted = contingency(table, **columns, bounds=plan.bounds, bins=number)
    if (counted.lower == counted.upper).all():
        return counted, f"counts of {len(counted.lower):,} distinct scores"
    return counted, f"counts of scores in {len(counted.lower):,} bins by rank"


def rows(table: Table, plan: Plan, columns: dict[str, Any]) -> Data:
    """Read all rows."""
    others = plan.settings.some("prediction", "threshold", "cluster", "weight", "regression")
    if plan.settings.prediction is None and plan.settings.score is None:
        others["prediction"] = NO_DECISION.name
    content = predictions(table, **columns, **others, bounds=plan.bounds)
    weighted = f", weighted by {plan.settings.weight}" if plan.settings.weight else ""
    units = f"rows, permuted together by {plan.settings.cluster}" if plan.settings.cluster else "every row"
    return content, units + weighted


def varies(content: Counts | Predictions, metric: Metric) -> bool:
    """Return whether a metric's decisions or scores, or the labels of a base rate, vary."""
    of_label = metric.name == BASE_RATE
    if isinstance(content, Counts):
        return int((content.table.sum(axis=(0, 2 if of_label else 1)) > 0).sum()) > 1
    if of_label:
        return bool(np.ptp(content.label) > 0)
    values = content.prediction if of_decisions(metric) else content.score
    return values is not None and bool(np.ptp(values) > 0)


def grouped_by(text: str, table: Table) -> Attribute:
    """Return the column, or the level of one, to group by. Crossed and cut columns are added to the table.

    Raises InvalidInput for a column to cut that holds other values than numbers.
    """
    made = grouping_of(text, table.columns)
    if made is None:
        return attribute(text, table.columns)
    table.add(made)
    for part in made.parts:
        if part.relation and (places := table.places(Faulty(part.column, "text"))):
            problem = (
                f"{table.name}: {text!r} cuts column {part.column!r}, which holds {places[0].value!r}, not a number"
            )
            raise InvalidInput(
                problem,
                source=table.name,
                option="group",
                column=part.column,
                row=places[0].row,
                remedy="Cut a column of numbers",
            )
    return Attribute(made.name)
