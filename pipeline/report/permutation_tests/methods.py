"""Table of permutation tests of every method of the first study, by every metric, for gender and race."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import p_value
from fairness_audits.results.style import in_order, method_style
from fairness_audits.results.table import Cell, Column
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.permutation_tests.data import difference_of
from pipeline.report.registry import artefact
from pipeline.report.table import StampedTable, tabulated

BLOCKS = ("methods", "methods_all")
LABELS = {w.FOR_THE_PAPER: "Logistic regression"}


@artefact(
    "For each metric, a test of whether the classifiers of a method treat two groups alike. Rates, precision and NPV "
    "have an exact test, all other metrics the studentised permutation test.",
)
def table_methods(inputs: Inputs) -> StampedTable:
    if not (blocks := [block for block in BLOCKS if (inputs.rows["block"] == block).any()]):
        raise inputs.absence(f"no rows of {' and '.join(BLOCKS)}", BLOCKS)
    rows = pd.concat([inputs.select(block=block) for block in blocks], ignore_index=True)
    rows = rows.assign(shown=[w.dataset_label(name) for name in rows["dataset"]])
    methods = in_order(list(rows["method"]))
    statistics = {str(name): part for name, part in rows.groupby("statistic")}
    tables = {name: _wide(statistics, name) for name in ("difference", "p_adjusted", "exact", "undefined")}
    alpha = float(rows["alpha"].dropna().iloc[0])

    def cell(place: tuple[str, str, str], method: str, shown: str) -> Cell:
        at = (*place, method)
        found = {name: np.asarray(table.loc[at]) for name, table in tables.items() if at in table.index}
        return _cells(found, alpha)[shown] if found else ""

    return tabulated(
        title="Permutation tests of every method, by every metric.",
        stub=("Data set", "Attribute", "Metric"),
        columns=[
            Column(
                f"{method} {shown}", "number", lambda place, m=method, s=shown: cell(place, m, s),
                LABELS.get(method, method_style(method).label), name=shown, printed=shown in ("difference", "p"),
            )
            for method in methods
            for shown in ("difference", "p", "rejected", "exact", "undefined")
        ],
        rows=[
            ((dataset, w.ATTRIBUTES[attribute], w.METRICS[metric]), (dataset, attribute, metric))
            for dataset in dict.fromkeys(rows["shown"])
            for attribute in w.attributes_in(list(rows.loc[rows["shown"] == dataset, "attribute"].dropna()))
            for metric in w.metrics_in(list(rows["metric"].dropna()))
        ],
        stamp=inputs.stamp(blocks),
        notes=_notes(inputs, rows, alpha),
    )  # fmt: skip


def _cells(found: Mapping[str, np.ndarray], alpha: float) -> dict[str, Cell]:
    adjusted = found["p_adjusted"]
    p = estimate("median p", adjusted).value
    with_test = adjusted[np.isfinite(adjusted)]
    return {
        "difference": Estimate.mean(found["difference"]),
        "p": "undefined" if math.isnan(p) else Estimate(p, text=p_value(p)),
        "rejected": Estimate(float((with_test <= alpha).mean()), n=len(with_test)) if len(with_test) else None,
        "exact": float(np.nanmean(found["exact"])),
        "undefined": float(np.nansum(found["undefined"])),
    }


def _wide(statistics: dict[str, pd.DataFrame], name: str) -> pd.Series:
    """Return one statistic by data set, attribute, metric and method, each an array over the splits."""
    keys = ["shown", "attribute", "metric", "method"]
    return statistics[name].sort_values("repetition").groupby(keys)["value"].agg(lambda values: values.to_numpy(float))


def _notes(inputs: Inputs, rows: pd.DataFrame, alpha: float) -> tuple[str, ...]:
    groups = [
        f"{w.dataset_label(str(dataset))} {w.ATTRIBUTES[str(attribute)]}: "
        f"{difference_of(inputs, str(dataset), str(attribute))}"
        for (dataset, attribute), _ in rows[rows["attribute"].notna()].groupby(["dataset", "attribute"], sort=True)
    ]
    exact = sorted(
        {str(m) for m in rows.loc[(rows["statistic"] == "exact") & (rows["value"] == 1), "metric"].dropna()},
        key=list(w.METRICS).index,
    )
    draws = int(rows.loc[rows["statistic"] == "draws", "value"].max())
    return (
        "Difference: mean over the splits of A \u2212 B. p: the hypothesis is that both groups have the same metric.",
        f"A \u2212 B: {'; '.join(dict.fromkeys(groups))}.",
        "In each split, Holm's method corrects for all metrics and attributes of the method. TPR and FNR count as one "
        "hypothesis, and so do FPR and TNR. We combine the p-values of m splits by m/k times the k-th "
        "smallest, k = \u2308m/2\u2309 (twice the lower median if m is even), which is valid for dependent splits.",
        f"Exact by enumeration: {', '.join(w.METRICS[m] for m in exact)}. The other metrics have studentised tests, "
        f"with p of at least 1/{draws + 1:,} in a split before the correction.",
        f"The CSV also has the share of splits rejected at {alpha:g}, standard deviations and undefined tests. "
        "Logistic regression is trained and tested on all rows, the other methods on the rows of the study of "
        "individual fairness.",
    )
