"""Read the data of each metric from a table: counts of decisions, counts of scores, or rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fairness_audits.audits.permutation.asked import ACCURACY, OF_LABELS, Asked, of_decisions
from fairness_audits.audits.permutation.exposure import exposed
from fairness_audits.audits.permutation.metrics import CALIBRATION, EXPOSURE, Metric, UserMetric
from fairness_audits.audits.permutation.outcomes import Counts, Predictions, StratifiedCounts, tabulated
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.table import Attribute, attribute
from fairness_audits.messages import check_columns, has_column, listed, unlike
from fairness_audits.results.formats import as_typed
from fairness_audits.tables import CELLS, contingency, numbers, predictions
from fairness_audits.tables.frame import Table
from fairness_audits.tables.groupings import Constant, Grouping, Part
from fairness_audits.tables.groupings import grouping as grouping_of
from fairness_audits.tables.levels import (
    check_present,
    group_names,
    in_order,
    label_classes,
    level_name,
    prediction_classes,
)
from fairness_audits.tables.rows import group_order, tally
from fairness_audits.tables.table import Decision, Faulty, Request, in_precision_of
from fairness_audits.tables.table import reading as reading_of

ROWS = 100_000
"""Largest number of rows read row by row. In larger data each distinct score is counted if there are few."""
DISTINCT = 2_000
"""Largest number of distinct scores that counts as few."""
IN_MEMORY = 20_000_000
"""Largest number of rows held in memory. In larger data each distinct score is counted."""
SCORES = 100_000
"""Largest number of distinct scores that are counted: a permutation takes a draw for each."""
STRATA = 1_000
"""Largest number of strata."""
CLASSES = 50
"""Largest number of classes of a label with more than two."""
Data: TypeAlias = tuple[Counts | Predictions, str]
"""The data of a metric's tests, and a description of how they were read."""


def cut(table: Table, asked: Asked) -> Asked:
    """Return the options with the threshold that selects the ``top`` of all rows by score, if it is asked for.

    The threshold is the score of the last of these rows, so all rows with this score are selected. The numbers are a
    note of the table. Raises InvalidInput if the top has all rows.
    """
    given = asked.given
    if given.top is None:
        return asked
    score = numbers(table, [given.score], role="score")[given.score]
    top = given.top if given.top >= 1 else max(1, round(given.top * len(score)))
    if top >= len(score):
        problem = f"{table.name}: top={given.top:g} selects all {len(score):,} rows"
        raise InvalidInput(problem, source=table.name, option="top", remedy="Select fewer")
    last = np.partition(score, len(score) - top)[len(score) - top]
    selected = int((score >= last).sum())
    table.notes["top"] = {"top": top, "rows": len(score), "last": float(last), "tied": selected - top}
    return replace(asked, given=given.but(threshold=float(last)))


def read(table: Table, asked: Asked, grouping: Attribute) -> Iterator[tuple[Metric, Data, str]]:
    """Yield each metric with its data, and the class that it is about, "" if the label has two classes.

    Data are counts of decisions, counts of scores, or rows. Each kind is read once.
    """
    given = asked.given
    columns = {"group": grouping.column, "against": grouping.level, **given.some("positive", "score")}
    columns["label"] = given.label or without(table, "label")
    found: dict[Callable[..., Data], Data] = {}
    for metric in asked.metrics:
        alone = given.cluster or given.weight or given.matched or given.regression or isinstance(metric, UserMetric)
        by_rows = rows if alone else decisions if of_decisions(metric) else scores
        reader = calibrated if metric is CALIBRATION else by_rows
        if reader not in found:
            try:
                found[reader] = reader(table, asked, columns)
            except InvalidInput as error:
                by_class = (
                    of_classes(table, asked, columns) if reader is decisions and error.option == "label" else None
                )
                if by_class is None:
                    raise
                yield from ((one, by_class[name], name) for one in asked.metrics for name in _classes(one, by_class))
                return
            if given.within:
                found[reader] = stratified(table, asked, columns, found[reader])
        content, basis = found[reader]
        if metric is EXPOSURE:
            content = exposed(content, table.notes["top"]["top"] if given.top is not None else None)
        yield metric, (content, basis), ""


def _classes(metric: Metric, found: Mapping[str, Data]) -> list[str]:
    """Return the classes that a metric is computed for: "" for the accuracy of all classes together."""
    return [name for name in found if (name == "") == (metric.name == ACCURACY)]


def of_classes(table: Table, asked: Asked, columns: dict[str, Any]) -> dict[str, Data] | None:
    """Count the decisions on each class against the rest, and (under "") those that are right.

    None unless label and decision have several classes and the options allow them. Raises InvalidInput for a missing
    value.
    """
    given, label = asked.given, columns["label"]
    only = all(of_decisions(metric) for metric in asked.metrics)
    if (
        given.prediction is None
        or given.positive is not None
        or given.within
        or not (only and has_column(table, label))
    ):
        return None
    cells = table.cells(Request(columns["group"], label, Decision(given.prediction), CELLS))
    check_present(table, label, "label", tally((cell.label, cell.count) for cell in cells))
    check_present(table, given.prediction, "prediction", tally((cell.outcome, cell.count) for cell in cells))
    labels, decided = ({level_name(getattr(cell, part)) for cell in cells} for part in ("label", "outcome"))
    if not 2 < len(decided) <= len(labels) <= CLASSES or not decided <= labels:
        return None
    names = group_names(table, columns["group"], tally((cell.group, cell.count) for cell in cells), columns["against"])
    groups = group_order(names, columns["against"])

    def counted(codes: Callable[[str, str], tuple[int, int]]) -> Counts:
        counts = np.zeros((len(groups), 2, 2), dtype=np.int64)
        for cell in cells:
            at = codes(level_name(cell.label), level_name(cell.outcome))
            counts[groups.index(names[cell.group]), *at] += cell.count
        return Counts.of_decisions(counts, groups)

    basis = f"counts of decisions ({given.prediction})"
    each = {name: counted(partial(_against_rest, name)) for name in in_order(labels)}
    right = counted(lambda label, decision: (1, int(label == decision)))
    return {
        "": (right, basis),
        **{name: (one, f"{basis} on each class against the rest") for name, one in each.items()},
    }


def _against_rest(name: str, label: str, decision: str) -> tuple[int, int]:
    return int(label == name), int(decision == name)


def without(table: Table, what: str) -> str:
    """Return the name of a constant column that takes the place of a label or a decision."""
    constant = Constant(unlike(f"no {what}", table.columns, "constant"))
    table.add(constant)
    return constant.name


def decisions(table: Table, asked: Asked, columns: dict[str, Any]) -> Data:
    """Count rows by group x label x decision."""
    given = asked.given
    if given.prediction is None and given.threshold is None:
        made = contingency(table, **{**columns, "score": None}, prediction=without(table, "decision"))
        return made, "counts of labels"
    score = None if given.prediction else given.score
    counted = contingency(table, **{**columns, **given.some("prediction", "threshold"), "score": score})
    if given.threshold is None:
        return counted, f"counts of decisions ({given.prediction})"
    return counted, f"counts of decisions ({given.score} >= {as_typed(given.threshold)})"


def stratified(table: Table, asked: Asked, columns: dict[str, Any], found: Data) -> Data:
    """Count the rows of the ``found`` counts of decisions in each stratum of the columns ``within``.

    Raises InvalidInput for a column that the table lacks, missing values, and too many strata.
    """
    given, (content, basis) = asked.given, found
    assert isinstance(content, Counts)
    name = unlike(f"{columns['group']} within {listed(given.within)}", table.columns, "within")
    strata = Strata.of(name, columns["group"], given.within, table)
    table.add(strata)
    output = given.prediction or given.score or without(table, "decision")
    threshold = given.threshold if given.prediction is None else None
    scored = threshold is not None
    decided = reading_of(output if scored else None, None if scored else output, threshold, None)
    decided = in_precision_of(decided, table.precision(output))
    cells = table.cells(Request(name, columns["label"], decided, CELLS))
    by_level = tally((cell.group, cell.count) for cell in cells)
    alone = len(given.within) == 1 and has_column(table, given.within[0])
    check_present(table, given.within[0] if alone else name, "within", by_level)
    by_label, by_outcome = (tally((getattr(cell, part), cell.count) for cell in cells) for part in ("label", "outcome"))
    labels = label_classes(table, columns["label"], by_label, given.positive, several=True)
    outcomes = {0: 0, 1: 1} if scored else prediction_classes(table, output, by_outcome, labels)
    groups = group_names(table, columns["group"], {group: 1 for group, _ in by_level}, columns["against"])
    names = in_order(stratum for _, stratum in by_level)
    if len(names) > STRATA:
        problem = f"{table.name}: {listed(given.within)} has {len(names):,} strata, but at most {STRATA:,} are possible"
        remedy = "Cut numbers, such as within='age>=40', or name fewer columns"
        raise InvalidInput(problem, source=table.name, option="within", column=given.within[0], remedy=remedy)
    counts = np.zeros((len(names), len(content.groups), 2, 2), dtype=np.int64)
    place = {stratum: number for number, stratum in enumerate(names)}
    for cell in cells:
        group, stratum = cell.group
        at = place[stratum], content.groups.index(groups[group]), labels[cell.label], outcomes[cell.outcome]
        counts[at] += cell.count
    return StratifiedCounts.of_strata(counts, content.groups, tuple(names)), f"{basis} within {listed(given.within)}"


def calibrated(table: Table, asked: Asked, columns: dict[str, Any]) -> Data:
    """Count the labels in bins of the score."""
    found = predictions(table, **columns)
    bins = asked.given.score_bins or max(2, round(len(found.score) ** (1 / 3)))
    if bins > STRATA:
        problem = f"score_bins={bins:,} are too many: at most {STRATA:,} are possible"
        raise InvalidInput(problem, option="score_bins", remedy="Use fewer")
    made = binned(found, bins)
    return made, f"labels by bin of {asked.given.score} (bins: {len(made.strata):,})"


def binned(found: Predictions, bins: int) -> StratifiedCounts:
    """Count labels in bins of the score that hold equally many of all rows; equal scores are in one bin."""
    score = found.score.astype(np.float64)
    # A cut is the highest score of its bin.
    distinct = np.unique(score)
    quantiles = np.unique(np.quantile(score, np.arange(1, bins) / bins, method="inverted_cdf"))
    cuts = quantiles if len(distinct) > bins else distinct
    used, place = np.unique(np.searchsorted(cuts, score), return_inverse=True)
    shape = (len(used), len(found.groups), 2, 2)
    counts = tabulated(shape, place, found.group, found.label, np.zeros(len(place), dtype=np.int64))
    ends = [(score[place == one].min(), score[place == one].max()) for one in range(len(used))]
    names = tuple(f"{number}: {low:.4g} to {high:.4g}" for number, (low, high) in enumerate(ends, 1))
    middle = np.bincount(place, score) / np.bincount(place)
    return replace(StratifiedCounts.of_strata(counts, found.groups, names), middle=middle)


@dataclass(frozen=True)
class Strata(Grouping):
    """A column of pairs of a group and a stratum. The first parts make the ``group``, the others the stratum."""

    group: Grouping | None = None

    @classmethod
    def of(cls, name: str, group: str, within: Sequence[str], table: Table) -> "Strata":
        """Return the pairs of a column of groups and of columns, or cuts of columns, of strata."""
        check_columns(table, [one for one in within if grouping_of(one, table.columns) is None], "within", table.name)
        made = [grouping_of(one, table.columns) or Grouping(one, (Part(one),)) for one in within]
        own = table.derived.get(group) or Grouping(group, (Part(group),))
        return cls(name, (*own.parts, *(part for one in made for part in one.parts)), own)

    def level(self, values: Sequence[Any]) -> Any:
        """Return the levels of the group and of the stratum."""
        assert self.group is not None
        own = len(self.group.parts)
        group = self.group.level(values[:own]) if own > 1 or self.parts[0].relation else values[0]
        strata = self.parts[own:]
        if len(strata) == 1 and not strata[0].relation:
            return group, level_name(values[-1])
        return group, Grouping(self.name, strata).level(values[own:])


def scores(table: Table, asked: Asked, columns: dict[str, Any]) -> Data:
    """Count rows by group x label x score if few scores are distinct or rows do not fit in memory; else read the rows.

    Raises InvalidInput if too many scores are distinct to count them.
    """
    score, size = str(asked.given.score), table.size()
    distinct = table.distinct((score,))[score] if size > ROWS else 0
    if size <= ROWS or (size <= IN_MEMORY and distinct > DISTINCT):
        return rows(table, asked, columns)
    if distinct > SCORES:
        problem = f"{table.name}: column {score!r} has about {distinct:,} distinct scores in {size:,} rows"
        remedy = f"Above {IN_MEMORY:,} rows, at most {SCORES:,} scores can be counted. Round them"
        raise InvalidInput(problem, source=table.name, option="score", column=score, remedy=remedy)
    counted = contingency(table, **columns, bounds=asked.limits)
    return counted, f"counts of {len(counted.score):,} distinct scores"


def rows(table: Table, asked: Asked, columns: dict[str, Any]) -> Data:
    """Read all rows."""
    others = asked.given.some("prediction", "threshold", "cluster", "weight", "regression", "matched")
    if asked.given.prediction is None and asked.given.score is None:
        others["prediction"] = without(table, "decision")
    content = predictions(table, **columns, **others, bounds=asked.limits)
    weighted = f", weighted by {asked.given.weight}" if asked.given.weight else ""
    units = f"rows, permuted together by {asked.given.cluster}" if asked.given.cluster else "every row"
    units += f", in pairs by {asked.given.matched}" if asked.given.matched else ""
    return content, units + weighted


def varies(content: Counts | Predictions, metric: Metric) -> bool:
    """Return whether a metric's decisions or scores, or the labels of a base rate, vary."""
    of_label = metric.name in OF_LABELS
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
    column = attribute(text, table.columns)
    if has_column(table, column.column):
        own = table.derived.get(column.column)
        return replace(column, title=own.title if own else "")
    made = grouping_of(text, table.columns)
    if made is None:
        check_columns(table, [column.column], "group", table.name)
        return column
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
    return Attribute(made.name, title=made.title)
