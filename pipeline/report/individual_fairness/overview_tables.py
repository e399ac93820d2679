"""Tables that say what was run and found: every setting that the paper states, and single people treated worse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.departures import joined
from pipeline.report.described import Described
from pipeline.report.individual_fairness import quantities as q
from pipeline.report.individual_fairness.facts import measurements
from pipeline.report.inputs import Inputs
from pipeline.report.settings import select
from pipeline.report.table import Cell, Column, Row, Table
from pipeline.types import AuditResult

REAL = (w.ADULT, w.COMPAS)

OF_THE_DATA = ("rows", "features")
OF_A_METHOD = (
    ("share of rows to train on", "baseline", "dataset.train_fraction"),
    ("repetitions", "baseline", "repetitions"),
    ("repetitions of SenSR", "sensr", "repetitions"),
    ("hidden units", "baseline", "method.hidden_units"),
    ("Reductions: violation tolerance", "reductions", "method.difference_bound"),
)
OF_THE_AUDIT = (
    ("penalty lambda", "audit.regularization"),
    ("step size eta", "audit.step_size"),
    ("power of the step size", "audit.power"),
    ("tolerance delta", "audit.delta"),
    ("level alpha", "audit.alpha"),
    ("critical value", "critical_value"),
)
OF_THE_SIMULATION = (
    ("number of points", "dataset.n"),
    ("probability of the minority", "dataset.minority_probability"),
    ("standard deviation of the features", "dataset.sigma"),
    *(
        (f"{group}: {what} {i + 1}", f"dataset.{group}_{key}[{i}]")
        for group in ("majority", "minority")
        for what, key in (("mean", "mean"), ("label weight", "weights"))
        for i in (0, 1)
    ),
    ("variance of the label noise", "label_noise_variance"),
    ("first coefficient of the grid", "method.low"),
    ("last coefficient of the grid", "method.high"),
    ("step of the grid", "grid_step"),
    ("true discounted direction, degrees", "audit.angle[0]"),
    ("rotation of the metric, degrees", "audit.angle[1]"),
    ("larger rotation of the metric, degrees", "audit.angle[2]"),
)

SHOWN_EXAMPLES = 3
SHOWN_FEATURES = 5


@registry.table(place=9)
def table_settings(inputs: Inputs) -> Table:
    """As this run used them. The paper states them for Adult and the simulation; for COMPAS it states features,
    tolerance, level, repetitions, networks and violation tolerance. Penalty and step size for COMPAS are those of the
    released code, and the number of steps is the one stated for Adult.
    """
    measured = measurements(inputs)
    rows = []
    for label, places in _setting_rows():
        cells: list[Cell] = []
        for dataset in (*REAL, w.SIMULATED):
            found = select(measured, places[dataset])["value"].tolist() if dataset in places else []
            cells.append(float(found[0]) if found else None)
        rows.append(Row((label,), tuple(cells)))
    return Table(
        title="Settings of the study, from its configuration and its prepared data.",
        stub=("Setting",),
        columns=tuple(Column(w.dataset_label(dataset), show="parameter") for dataset in (*REAL, w.SIMULATED)),
        rows=tuple(rows),
        stamp=inputs.stamp("audit"),
        notes=(
            "Attack steps: those after which the tables show the statistics; the attack goes on for figure 2.",
            q.steps_note(inputs, *REAL),
        ),
    )


def _setting_rows() -> Iterator[tuple[str, dict[str, dict[str, str | float]]]]:
    """Each printed setting, and where the run's own value of it stands for each dataset."""
    grid: dict[str, str | float] = {"block": "heatmaps", "dataset": w.SIMULATED, "method": "logistic_grid"}
    for statistic in OF_THE_DATA:
        yield statistic, {d: {"block": "data", "dataset": d, "statistic": statistic} for d in REAL}
    for label, method, key in OF_A_METHOD:
        yield label, {d: {"block": "audit", "dataset": d, "method": method, "statistic": key} for d in REAL}
    steps: dict[str, dict[str, str | float]] = {
        d: {"block": "audit", "dataset": d, "statistic": "shown_steps"} for d in REAL
    }
    yield "attack steps", {**steps, w.SIMULATED: {**grid, "statistic": "audit.steps"}}
    for label, key in OF_THE_AUDIT:
        own: dict[str, dict[str, str | float]] = {
            d: {"block": "audit", "dataset": d, "method": "baseline", "statistic": key} for d in REAL
        }
        yield label, {**own, w.SIMULATED: {**grid, "statistic": key}}
    for label, key in OF_THE_SIMULATION:
        yield label, {w.SIMULATED: {**grid, "statistic": key}}


@registry.table(place=8)
def table_unfair_examples(inputs: Inputs) -> Table:
    """For each original, a person whom the fair metric calls comparable and whom the network serves worse, as the
    attack found one. It need not be the one who is served worst.
    """
    rows: list[Row] = []
    last = []
    for dataset in inputs.names("dataset", block="audit"):
        result = inputs.audits.get(f"audit/{dataset}/baseline/loss_ratio")
        if result is None:
            raise ValueError(f"block 'audit', dataset {dataset!r}, method 'baseline': the audit's arrays are missing")
        rows += _examples(result, inputs.datasets[dataset])
        found = inputs.select(block="audit", dataset=dataset, method="baseline", statistic="T_n")
        last.append(f"{int(found['steps'].max()):,} for {w.dataset_label(dataset)}")
    return Table(
        title="The largest loss ratios of Baseline: originals and comparable points that are served worse.",
        stub=("Dataset", "Example", "Feature"),
        columns=(
            Column("original", decimals=2),
            Column("comparable", decimals=2, name="comparable point"),
            Column("loss before", decimals=4),
            Column("loss after", decimals=4),
            Column("loss ratio", decimals=1),
        ),
        rows=tuple(rows),
        stamp=inputs.stamp("audit"),
        notes=(
            f"First repetition, after the last recorded step of the attack ({joined(last)}), which is further than the "
            "other tables go. A comparable point is one that the attack found, not the one that is served worst.",
            f"The {SHOWN_FEATURES} features that move most as the network sees them: numbers in standard deviations of "
            "the training rows, categories from 0 to 1. The attack moves freely between categories and beyond them: a "
            "comparable point need not be a person who could exist.",
        ),
    )


def _examples(result: AuditResult, dataset: Described) -> list[Row]:
    arrays = result.arrays
    scale = np.ones(len(dataset.feature_names))
    columns = [dataset.column(name) for name in dataset.continuous]
    scale[columns] = dataset.train_deviations[columns]
    rows = []
    # People with the same features are one example.
    _, first = np.unique(np.round(arrays["example_attacked"], 6), axis=0, return_index=True)
    for k in np.sort(first)[:SHOWN_EXAMPLES]:
        before, after = arrays["example_original"][k], arrays["example_attacked"][k]
        moved = np.argsort(-np.abs(after - before) / scale, kind="stable")[:SHOWN_FEATURES]
        losses = [float(arrays[f"example_{name}"][k]) for name in ("original_loss", "attacked_loss", "ratio")]
        label = "yes" if arrays["example_label"][k] else "no"
        name = f"row {int(arrays['example_row'][k]):,}, {dataset.label_name}: {label}"
        for place, j in enumerate(moved):
            cells: tuple[Cell, ...] = (float(before[j]), float(after[j]), *(losses if place == 0 else ("", "", "")))
            rows.append(Row((w.dataset_label(dataset.name), name, dataset.feature_names[j]), cells))
    return rows
