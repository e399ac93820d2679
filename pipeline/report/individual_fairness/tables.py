"""Tables 1 to 4 of Maity et al. (2021), and further tables of intervals, other tests and metrics, and counts."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.style import method_style
from fairness_audits.results.table import Cell, Column, Kind, Row
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.individual_fairness import facts as q
from pipeline.report.individual_fairness.facts import Quantity, configured
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.table import StampedTable, labels, tabulated

DatasetMethod = tuple[str, str]
"""A data set and a method."""
SPREADS = "Mean \u00b1 standard deviation over the repetitions."
DEFINITIONS = {
    "bal-acc": "balanced_accuracy",
    "accuracy": "accuracy",
    "AOD gender": "aod_sex",
    "AOD race": "aod_race",
    "parity gender": "parity_sex",
    "parity race": "parity_race",
    "equal opportunity gender": "equal_opportunity_sex",
    "equal opportunity race": "equal_opportunity_race",
}
COUNTED = {
    "audited points": "n",
    "clipped ratios": "clipped",
    "infinite or undefined ratios": "non_finite",
    "ratios below 1": "below_one",
}
"""Counts of an audit: the printed name, and the name in the rows."""


def _of_methods(
    inputs: Inputs, title: str, dataset: str, columns: Sequence[Column], notes: Sequence[str]
) -> StampedTable:
    """Make a table with a row per method, of one data set or of all if none is named."""
    datasets = [dataset] if dataset else inputs.names("dataset", block="audit")
    rows = [
        ((w.dataset_label(d), method_style(m).label)[bool(dataset) :], (d, m))
        for d in datasets
        for m in inputs.names("method", block="audit", dataset=d)
    ]
    stub = ("Data set", "Method")[bool(dataset) :]
    return tabulated(title, stub, columns, rows, inputs.stamp("audit", dataset), notes)


def _of_quantities(
    inputs: Inputs, title: str, stub: Sequence[str], kind: Kind, dataset: str,
    rows: Sequence[tuple[Sequence[str], Callable[..., Any], int | None]], notes: Sequence[str],
) -> StampedTable:  # fmt: skip
    """Make a table with a column per method. A row has labels, a function of the method, and decimals."""
    methods = inputs.names("method", block="audit", **({"dataset": dataset} if dataset else {}))
    columns = (*labels(*stub), *(Column(method_style(method).label, kind) for method in methods))
    body = tuple(Row((*names, *map(of, methods)), decimals=decimals) for names, of, decimals in rows)
    return StampedTable(columns, body, title=title, notes=tuple(notes), stamp=inputs.stamp("audit", dataset))


@artefact(
    "Balanced accuracy, average odds differences for gender and race, and both tests of individual fairness: the "
    "loss ratio (Tₙ) and the error-rate ratio (T̃ₙ). The rejection proportion is the share of repetitions in which "
    "the test rejects fairness.",
)
def table_1(inputs: Inputs) -> StampedTable:
    columns = [x.column(inputs, "number") for x in (*q.PERFORMANCE, *q.LOSS_RATIO, *q.ERROR_RATIO)]
    notes = ("Means over the repetitions.", q.steps_note(inputs, w.ADULT), q.odds_note(inputs, w.ADULT))
    return _of_methods(inputs, "Results on Adult data.", w.ADULT, columns, notes)


@artefact("The paper states the same hyperparameters for both methods and both data sets.")
def table_2(inputs: Inputs) -> StampedTable:
    settings = {"learning_rate": "learning_rate", "batch_size": "batch_size", "num_steps": "steps"}
    rows = [
        ((w.dataset_label(dataset), method_style(method).label), configured(inputs, "audit", dataset, method))
        for dataset in inputs.names("dataset", block="audit")
        for method in ("baseline", "project")
    ]
    columns = [
        Column(name, "parameter", cell=lambda values, key=key: float(values[f"method.{key}"]))
        for name, key in settings.items()
    ]
    title = "Choice of hyperparameters for Baseline and Project."
    notes = ("Values in the configuration of this run.",)
    return tabulated(title, ("Data set", "Method"), columns, rows, inputs.stamp("audit"), notes)


@artefact("The numbers of Table 1 with standard deviations, as in appendix F.6.")
def table_3(inputs: Inputs) -> StampedTable:
    rows = [
        ((x.group, x.name), partial(x.measure, inputs, w.ADULT), q.DECIMALS[x.kind])
        for x in (*q.PERFORMANCE, *q.LOSS_RATIO, *q.ERROR_RATIO)
    ]
    notes = (SPREADS, q.steps_note(inputs, w.ADULT), q.odds_note(inputs, w.ADULT))
    return _of_quantities(inputs, "Full results on Adult data.", ("", "Quantity"), "spread", w.ADULT, rows, notes)


@artefact("Balanced accuracy, average odds differences for gender and race, and the loss-ratio test.")
def table_4(inputs: Inputs) -> StampedTable:
    columns = [x.column(inputs) for x in (*q.PERFORMANCE, *q.LOSS_RATIO)]
    notes = (SPREADS, q.steps_note(inputs, w.COMPAS), q.odds_note(inputs, w.COMPAS))
    return _of_methods(inputs, "Results on COMPAS data.", w.COMPAS, columns, notes)


@artefact(
    "The paper states 500 attack steps for Adult. The authors' released audits took 200 steps for most methods.",
)
def table_1_steps(inputs: Inputs) -> StampedTable:
    quantities = ((w.ADULT, q.T_N), (w.ADULT, q.ERROR_T_N), (w.COMPAS, q.T_N))
    rows = [
        ((f"{w.dataset_label(d)}, {x.key}", method_style(m).label), partial(x.measure, inputs, d, m))
        for d, x in quantities
        for m in inputs.names("method", block="audit", dataset=d)
    ]
    steps = dict.fromkeys(
        min(q.shown_steps(inputs, d, wanted) for d in (w.ADULT, w.COMPAS))
        for wanted in (q.RELEASED_STEPS, q.STATED_STEPS)
    )
    columns = [Column(f"{t} steps", "spread", cell=lambda measure, t=t: measure(t)) for t in steps]
    title = "The statistics of Tables 1 and 4 at two numbers of steps."
    return tabulated(title, ("Statistic", "Method"), columns, rows, inputs.stamp("audit"), (SPREADS,))


@artefact("95 % confidence intervals of the means in Tables 1 and 4.")
def table_confidence(inputs: Inputs) -> StampedTable:
    datasets = inputs.names("dataset", block="audit")
    rows: list[tuple[Sequence[str], Callable[..., Any], int | None]] = []
    for d, x in product(datasets, (*q.PERFORMANCE, q.T_N, q.ERROR_T_N)):
        values = partial(x.values, inputs, d)
        rows.append(((w.dataset_label(d), x.key), lambda m, values=values: estimate("mean", values(m)), None))
    notes = (
        "Mean over the repetitions with Student's 95 % interval. Repetitions are random splits of one data set and "
        "share rows, but the intervals treat them as independent. They hold for new splits of these data, not for "
        "new data.",
        q.steps_note(inputs, *datasets),
        q.odds_note(inputs, *datasets),
    )
    stub = ("Data set", "Quantity")
    return _of_quantities(inputs, "Confidence intervals.", stub, "value and interval", "", rows, notes)


@artefact("The paper reports this test for Adult only.")
def table_error_ratio_compas(inputs: Inputs) -> StampedTable:
    ratio = Quantity("S~_n", "error_S_n", q.ZERO_ONE, attacked=True)
    undefined = Quantity("undefined", "undefined_errors", q.ZERO_ONE, "average")
    columns = [x.column(inputs) for x in (ratio, *q.ERROR_RATIO, undefined)]
    undefined_note = "Undefined: share of repetitions without an error before the attack."
    notes = (SPREADS, q.steps_note(inputs, w.COMPAS), undefined_note)
    return _of_methods(inputs, "The error-rate-ratio test on COMPAS data.", w.COMPAS, columns, notes)


@artefact("A method can look fair by one definition and unfair by another.")
def table_group_metrics(inputs: Inputs) -> StampedTable:
    datasets = inputs.names("dataset", block="audit")
    rows = [
        ((w.dataset_label(d), key), partial(Quantity(key, statistic).measure, inputs, d), None)
        for d, (key, statistic) in product(datasets, DEFINITIONS.items())
    ]
    notes = (
        SPREADS,
        "Differences between the groups: average odds (AOD), positive rate (parity) and true positive rate (equal "
        "opportunity). A difference of 0 is equal treatment. All differences have the same sign convention.",
        q.odds_note(inputs, *datasets),
    )
    title = "Group fairness by several definitions."
    return _of_quantities(inputs, title, ("Data set", "Quantity"), "spread", "", rows, notes)


@artefact(
    "The audit learns its metric on test rows. Project and SenSR learn theirs on training rows. A method is protected "
    "against the audit only as far as the two sensitive subspaces agree.",
)
def table_angles(inputs: Inputs) -> StampedTable:
    datasets = inputs.names("dataset", block="audit")
    angles = {dataset: q.principal_angles(inputs, dataset) for dataset in datasets}
    first = {(d, inputs.names("method", block="audit", dataset=d)[0]) for d in datasets}

    def angle(place: DatasetMethod, i: int) -> Cell:
        found = angles[place[0]] if place in first else []
        return Estimate.mean(found[i]) if i < len(found) else ""

    ordinals = ("1st", "2nd", "3rd", *(f"{i}th" for i in range(4, 100)))[: max(map(len, angles.values()))]
    columns = [q.learned_on(x, split).column(inputs) for split in ("test", "train") for x in q.LOSS_RATIO]
    columns += [
        Column(f"{nth} angle", "spread", lambda place, i=i: angle(place, i), "Principal angles, degrees", 1)
        for i, nth in enumerate(ordinals)
    ]
    notes = (
        SPREADS,
        "The angles depend only on the data. They are shown once for each data set, in the row of its first method.",
        q.steps_note(inputs, *datasets),
    )
    return _of_methods(inputs, "Sensitive subspaces of training and test rows.", "", columns, notes)


@artefact(
    "Loss ratios that were clipped to the range of floating-point numbers, ratios that are infinite or undefined, and "
    "ratios below 1, where the attack reduced the loss.",
)
def table_counts(inputs: Inputs) -> StampedTable:
    columns = [Quantity(k, s, kind="total", attacked=True).column(inputs) for k, s in COUNTED.items()]
    dropped = [
        f"{w.dataset_label(name)}: {sum(d.dropped.values()):,} rows excluded ("
        + "; ".join(f"{reason}: {count:,}" for reason, count in d.dropped.items())
        + f"), {d.rows:,} kept."
        for name, d in inputs.datasets.items()
        if d.dropped
    ]
    notes = (
        "Totals over the repetitions, with the metric learned on test rows.",
        q.steps_note(inputs, *inputs.names("dataset", block="audit")),
        *dropped,
    )
    return _of_methods(inputs, "Counts of special cases.", "", columns, notes)
