"""Tables beyond those of Maity et al. (2021): intervals, other tests and metrics, counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.individual_fairness import quantities as q
from pipeline.report.individual_fairness.facts import configured
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate
from pipeline.report.style import method_style
from pipeline.report.table import Cell, Column, Row, Table

SPREADS = "Mean \u00b1 sample standard deviation over the repetitions."


COUNTED = {
    "audited points": "n",
    "ratios held at a bound": "clipped",
    "ratios not finite": "non_finite",
    "ratios below 1": "below_one",
}
IN_TRAINING = {
    "failed in the subspace": "failed_subspace_attacks",
    "failed in all directions": "failed_full_attacks",
    "not finite": "non_finite_attacks",
}
"""What is counted at an audit and in training: the printed name, and the name in the rows or in the facts."""


@registry.table(place=3)
def table_error_ratio_compas(inputs: Inputs) -> Table:
    """The paper reports this test for Adult alone."""
    steps = q.shown_steps(inputs, w.COMPAS)
    ratio = q.Quantity("S~_n", "error_S_n", q.ZERO_ONE, attacked=True)
    quantities = (ratio, *q.ERROR_RATIO)
    undefined = q.Quantity("undefined_errors", "undefined_errors")
    methods = inputs.names("method", block="audit", dataset=w.COMPAS)
    rows = []
    for method in methods:
        cells: list[Cell] = [quantity.measure(inputs, w.COMPAS, method, steps) for quantity in quantities]
        cells.append(float(undefined.measure(inputs, w.COMPAS, method, steps).value))
        rows.append(Row((method_style(method).label,), tuple(cells)))
    return Table(
        title="The error-rate-ratio test on COMPAS data.",
        stub=("Method",),
        columns=(*(x.column("spread") for x in quantities), Column("undefined", q.ZERO_ONE, decimals=1)),
        rows=tuple(rows),
        stamp=inputs.stamp("audit", w.COMPAS),
        notes=(
            SPREADS,
            q.steps_note(inputs, w.COMPAS),
            "Undefined: repetitions without any error before the attack, on average.",
        ),
    )


@registry.table(place=2)
def table_confidence(inputs: Inputs) -> Table:
    """How sure the means of Tables 1 and 4 are, and how sure a single audit is of its own value."""
    typical = {
        "T_n": ("audit value, one repetition", q.ENTROPY, "ci_low", "ci_high"),
        "T~_n": ("error-rate ratio, one repetition", q.ZERO_ONE, "error_ci_low", "error_ci_high"),
    }
    methods = inputs.names("method", block="audit")
    datasets = inputs.names("dataset", block="audit")
    rows = []
    for dataset in datasets:
        steps = q.shown_steps(inputs, dataset)
        for quantity in (*q.PERFORMANCE, q.T_N, q.ERROR_T_N):
            cells: list[Cell] = [quantity.measure(inputs, dataset, m, steps).with_t_interval() for m in methods]
            rows.append(Row((w.dataset_label(dataset), quantity.key), tuple(cells)))
            if quantity.key in typical:
                name, group, low, high = typical[quantity.key]
                ends = [q.Quantity(name, end, group, attacked=True) for end in (low, high)]
                cells = [_typical(inputs, ends, dataset, method, steps) for method in methods]
                rows.append(Row((w.dataset_label(dataset), name), tuple(cells)))
    return Table(
        title="Confidence intervals.",
        stub=("Dataset", "Quantity"),
        columns=tuple(Column(method_style(method).label, show="value and interval") for method in methods),
        rows=tuple(rows),
        stamp=inputs.stamp("audit"),
        notes=(
            "Mean over the repetitions with its 95 % interval of Student's t. Repetitions are random splits of one "
            "data set, whose rows overlap: the intervals take them for independent, and speak of new splits of these "
            "data, not of new data.",
            "One repetition: median lower and upper end of the two-sided 95 % intervals of the repetitions (loss "
            "ratio: equation 3.6; error-rate ratio: from Theorem C.1), with their midpoint.",
            q.steps_note(inputs, *datasets),
            q.odds_note(inputs, *datasets),
        ),
    )


@registry.table(place=4)
def table_group_metrics(inputs: Inputs) -> Table:
    """A method can look even-handed by one definition and not by another."""
    definitions = {
        "bal-acc": "balanced_accuracy",
        "accuracy": "accuracy",
        "AOD gender": "aod_sex",
        "AOD race": "aod_race",
        "parity gender": "parity_sex",
        "parity race": "parity_race",
        "equal opportunity gender": "equal_opportunity_sex",
        "equal opportunity race": "equal_opportunity_race",
    }
    methods = inputs.names("method", block="audit")
    datasets = inputs.names("dataset", block="audit")
    rows = []
    for dataset in datasets:
        for key, statistic in definitions.items():
            quantity = q.Quantity(key, statistic)
            cells: list[Cell] = [quantity.measure(inputs, dataset, method, 0) for method in methods]
            rows.append(Row((w.dataset_label(dataset), key), tuple(cells)))
    return Table(
        title="Group fairness by several definitions.",
        stub=("Dataset", "Quantity"),
        columns=tuple(Column(method_style(method).label, show="spread") for method in methods),
        rows=tuple(rows),
        stamp=inputs.stamp("audit"),
        notes=(
            SPREADS,
            "Differences between the groups: average odds (AOD), positive rate (parity), true positive rate (equal "
            "opportunity); 0 is even treatment. Parity and equal opportunity have the same sign as AOD.",
            q.odds_note(inputs, *datasets),
        ),
    )


@registry.table(place=5)
def table_angles(inputs: Inputs) -> Table:
    """The audit learns its metric on test rows, Project and SenSR learn theirs on train rows. A projection onto the
    complement of one subspace protects against the other only as far as the two agree.
    """
    datasets = inputs.names("dataset", block="audit")
    rows, most = [], 0
    for dataset in datasets:
        steps = q.shown_steps(inputs, dataset)
        angles = q.principal_angles(inputs, dataset)
        most = max(most, len(angles))
        for index, method in enumerate(inputs.names("method", block="audit", dataset=dataset)):
            tests: list[Cell] = [
                quantity.measure(inputs, dataset, method, steps, split)
                for split in ("test", "train")
                for quantity in q.LOSS_RATIO
            ]
            shown: list[Cell] = [Estimate.mean(a) for a in angles] if index == 0 else []
            rows.append((Row((w.dataset_label(dataset), method_style(method).label), ()), tests, shown))
    padded = tuple(Row(row.labels, (*tests, *shown, *[""] * (most - len(shown)))) for row, tests, shown in rows)
    columns = [
        replace(quantity.column("spread"), key=f"{quantity.key} ({split})", group=f"Metric learned on {split} rows")
        for split in ("test", "train")
        for quantity in q.LOSS_RATIO
    ]
    columns += [Column(f"{_ordinal(i)} angle", "Principal angles, degrees", "spread", 1) for i in range(1, most + 1)]
    return Table(
        title="The sensitive subspaces of train and test rows.",
        stub=("Dataset", "Method"),
        columns=tuple(columns),
        rows=padded,
        stamp=inputs.stamp("audit"),
        notes=(
            SPREADS,
            "The angles depend on the data alone and stand beside the first method of each data set.",
            q.steps_note(inputs, *datasets),
        ),
    )


@registry.table(place=6)
def table_counts(inputs: Inputs) -> Table:
    """Loss ratios that were held at a bound of floating-point numbers, ratios that do not exist, ratios below 1 (the
    attack helped), and attacks that failed or were not finite during training.
    """
    datasets = inputs.names("dataset", block="audit")
    rows = []
    for dataset in datasets:
        steps = q.shown_steps(inputs, dataset)
        for method in inputs.names("method", block="audit", dataset=dataset):
            cells: list[Cell] = [
                float(inputs.values(**q.Quantity(k, s, attacked=True).setting("audit", dataset, method, steps)).sum())
                for k, s in COUNTED.items()
            ]
            rows.append(
                Row(
                    (w.dataset_label(dataset), method_style(method).label),
                    (*cells, *_training(inputs, dataset, method)),
                )
            )
    dropped = [
        f"{w.dataset_label(name)}: {sum(d.dropped.values()):,} rows dropped on purpose ("
        + "; ".join(f"{reason}: {count:,}" for reason, count in d.dropped.items())
        + f"), {d.rows:,} kept."
        for name, d in inputs.datasets.items()
        if d.dropped
    ]
    return Table(
        title="What was counted rather than dropped in silence.",
        stub=("Dataset", "Method"),
        columns=(
            *(Column(key, "Audit", decimals=0) for key in COUNTED),
            Column("training iterations", "Training with attacks", decimals=0, name="iterations"),
            *(Column(key, "Training with attacks", decimals=0) for key in IN_TRAINING),
        ),
        rows=tuple(rows),
        stamp=inputs.stamp("audit"),
        notes=(
            "Totals over the repetitions, with the metric learned on test rows.",
            q.steps_note(inputs, *datasets),
            "Training with attacks: each iteration of SenSR attacks its batch within the sensitive subspace, then in "
            "all directions. Failed: the attack lowered what it was to raise; not finite: it left the finite numbers.",
            *dropped,
        ),
    )


def _training(inputs: Inputs, dataset: str, method: str) -> list[Cell]:
    """Iterations and failed attacks of a method that attacks in training, over the repetitions; else nothing."""
    classifier = inputs.classifiers.get(f"{dataset}/{method}")
    if classifier is None or not any(name in classifier.facts for name in IN_TRAINING.values()):
        return [None] * (1 + len(IN_TRAINING))
    iterations = float(configured(inputs, "audit", dataset, method)["method.iterations"])
    counts = [float(np.sum(classifier.facts[name])) for name in IN_TRAINING.values()]
    return [iterations * classifier.repetitions, *counts]


def _typical(inputs: Inputs, ends: list[q.Quantity], dataset: str, method: str, steps: int) -> Estimate:
    low, high = (
        float(np.nanmedian(inputs.values(**end.setting("audit", dataset, method, steps)).to_numpy(float)))
        for end in ends
    )
    return Estimate((low + high) / 2, low=low, high=high)


def _ordinal(i: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(i, f"{i}th")
