"""Permutation tests of every method of the first study, by every metric, for gender and race: one table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from pipeline.audits.permutation.metrics import hypothesis, metric_named
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate, p_value
from pipeline.report.permutation_tests.facts import difference_of
from pipeline.report.style import in_order, method_style
from pipeline.report.table import Cell, Column, Row, Table

BLOCKS = ("methods", "methods_all")
LABELS = {w.FOR_THE_PAPER: "Logistic regression"}


@registry.table(place=3)
def table_methods(inputs: Inputs) -> Table:
    """Whether each method's classifiers treat two groups alike, metric by metric. Rates, precision and NPV are tested
    exactly, everything else by the studentised permutation test.
    """
    blocks = [block for block in BLOCKS if (inputs.rows["block"] == block).any()]
    rows = pd.concat([inputs.select(block=block) for block in blocks], ignore_index=True)
    rows = rows.assign(shown=[w.dataset_label(name) for name in rows["dataset"]])
    methods = in_order(list(rows["method"]))
    statistics = {str(name): part for name, part in rows.groupby("statistic")}
    tables = {name: _wide(statistics, name) for name in ("difference", "p_adjusted", "exact", "undefined")}
    alpha = float(rows["alpha"].dropna().iloc[0])
    body = []
    for dataset in dict.fromkeys(rows["shown"]):
        for attribute in w.attributes_in(list(rows.loc[rows["shown"] == dataset, "attribute"].dropna())):
            for metric in w.metrics_in(list(rows["metric"].dropna())):
                place = (dataset, attribute, metric)
                cells: list[Cell] = []
                for method in methods:
                    cells += _cells({name: _at(table, (*place, method)) for name, table in tables.items()}, alpha)
                body.append(
                    Row((dataset, w.ATTRIBUTES.get(attribute, attribute), w.metric_label(metric)), tuple(cells))
                )
    return Table(
        title="Permutation tests of every method, by every metric.",
        stub=("Dataset", "Attribute", "Metric"),
        columns=tuple(column for method in methods for column in _columns(method)),
        rows=tuple(body),
        stamp=inputs.stamp(blocks),
        notes=_notes(inputs, rows, alpha),
    )


def over_splits(p_values: np.ndarray) -> float:
    """One p-value from those of m splits, however they depend on each other: (m / k) p_(k), k = ceil(m / 2), at most 1.

    p_(k) is the k-th smallest. If every hypothesis holds, the expected number of p-values at most t k / m is at most
    t k, so by Markov's inequality k of them are with probability at most t (Rueger 1978). A split without a test
    (NaN) counts as p = 1; NaN where no split has one. With p-values that Holm's method adjusted within each split the
    same argument, applied to the smallest of the true hypotheses, bounds the family-wise error.
    """
    p = np.asarray(p_values, float)
    if not np.isfinite(p).any():
        return math.nan
    ordered = np.sort(np.where(np.isnan(p), 1.0, p))
    k = -(-len(ordered) // 2)
    return float(min(1.0, len(ordered) / k * ordered[k - 1]))


def floor(rows: pd.DataFrame, draws: int) -> float:
    """The p over the splits of a test whose p is 1 / (B + 1), the smallest, in each of m splits of K hypotheses each.

    It is min(1, m / k K / (B + 1)), k = ceil(m / 2), K the most hypotheses tested of one method in a split. Behind
    smaller p-values of exact tests Holm's factor is less than K, and so is the p.
    """
    undefined = rows[rows["statistic"] == "undefined"]
    made = undefined[undefined["value"] == 0]
    made = made.assign(metric=[hypothesis(metric_named(str(name))) for name in made["metric"]])
    split = ["shown", "method", "repetition"]
    hypotheses = made.drop_duplicates([*split, "attribute", "metric"]).groupby(split).size()
    splits = undefined.groupby(["shown", "method"])["repetition"].nunique()
    return over_splits(np.full(int(splits.max()), min(1.0, int(hypotheses.max()) / (draws + 1))))


def _columns(method: str) -> tuple[Column, ...]:
    label = LABELS.get(method, method_style(method).label)
    return (
        Column(f"{method} difference", label, name="difference"),
        Column(f"{method} p", label, name="p"),
        Column(f"{method} rejected", label, name="rejected", printed=False),
        Column(f"{method} exact", label, name="exact", printed=False),
        Column(f"{method} undefined", label, name="undefined", printed=False),
    )


def _cells(found: dict[str, np.ndarray], alpha: float) -> list[Cell]:
    if not len(found["difference"]):
        return [""] * 5
    undefined = float(np.nansum(found["undefined"]))
    adjusted = found["p_adjusted"]
    p = over_splits(adjusted)
    shown: Cell = "undefined" if math.isnan(p) else Estimate(p, text=p_value(p))
    with_test = adjusted[np.isfinite(adjusted)]
    share = Estimate(float((with_test <= alpha).mean()), n=len(with_test)) if len(with_test) else None
    return [Estimate.mean(found["difference"]), shown, share, float(np.nanmean(found["exact"])), undefined]


def _wide(statistics: dict[str, pd.DataFrame], name: str) -> pd.Series:
    """The values of one statistic by dataset, attribute, metric and method, one array of the splits each."""
    if name not in statistics:
        raise ValueError(f"the methods' tests have no statistic {name!r}: found {sorted(statistics)}")
    keys = ["shown", "attribute", "metric", "method"]
    return statistics[name].sort_values("repetition").groupby(keys)["value"].agg(lambda values: values.to_numpy(float))


def _at(table: pd.Series, place: tuple[str, ...]) -> np.ndarray:
    return np.asarray(table.loc[place]) if place in table.index else np.zeros(0)


def _notes(inputs: Inputs, rows: pd.DataFrame, alpha: float) -> tuple[str, ...]:
    groups = [
        f"{w.dataset_label(str(dataset))} {w.ATTRIBUTES.get(str(attribute), attribute)}: "
        f"{difference_of(inputs, str(dataset), str(attribute))}"
        for (dataset, attribute), _ in rows[rows["attribute"].notna()].groupby(["dataset", "attribute"], sort=True)
    ]
    exact = sorted(
        {str(m) for m in rows.loc[(rows["statistic"] == "exact") & (rows["value"] == 1), "metric"].dropna()},
        key=list(w.METRICS).index,
    )
    draws = int(rows.loc[rows["statistic"] == "draws", "value"].max())
    return (
        f"Difference: mean over the splits of A \u2212 B ({'; '.join(dict.fromkeys(groups))}).",
        "p: of equal metrics. In each split Holm's method corrects for all metrics and attributes of the method, where "
        "rates that are equal together (TPR and FNR, FPR and TNR) count as one hypothesis; the splits, which share "
        "rows, are then combined by twice the median (m/k times the k-th smallest of m, k = \u2308m/2\u2309), which is "
        "valid however they depend on each other.",
        f"Exact by enumeration: {', '.join(w.metric_label(m) for m in exact)}; the others are studentised, "
        f"with p at least 1/{draws + 1:,} in a split before the correction; that floor, where it is the smallest p in "
        f"every split, is {p_value(floor(rows, draws))} after it.",
        f"Share of splits rejected at {alpha:g}, standard deviations, and undefined tests: in the CSV. Logistic "
        "regression is trained and tested on all rows, the other methods on those of the first study.",
    )
