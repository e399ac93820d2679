"""Tables 1 to 4 of Maity et al. (2021)."""

from __future__ import annotations

from dataclasses import replace

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.individual_fairness import quantities as q
from pipeline.report.individual_fairness.facts import configured, sensr_on_compas
from pipeline.report.inputs import Inputs
from pipeline.report.style import method_style
from pipeline.report.table import Cell, Column, Row, Table

SPREADS = "Mean \u00b1 sample standard deviation over the repetitions."


@registry.table()
def table_1(inputs: Inputs) -> Table:
    """Balanced accuracy, average odds differences for gender and race, and both tests of individual fairness: the loss
    ratio (Tₙ) and the error-rate ratio (T̃ₙ), each with the share of repetitions in which fairness is rejected.
    """
    return _by_method(
        inputs, w.ADULT, "Results on Adult data.", (*q.PERFORMANCE, *q.LOSS_RATIO, *q.ERROR_RATIO), spread=False
    )


@registry.table()
def table_2(inputs: Inputs) -> Table:
    """The paper states one choice for both methods and both data sets."""
    rows = []
    for dataset in inputs.names("dataset", block="audit"):
        for method in ("baseline", "project"):
            values = configured(inputs, "audit", dataset, method)
            cells = tuple(float(values[f"method.{key}"]) for key in ("learning_rate", "batch_size", "steps"))
            rows.append(Row((w.dataset_label(dataset), method_style(method).label), cells))
    return Table(
        title="Choice of hyperparameters for Baseline and Project.",
        stub=("Dataset", "Method"),
        columns=tuple(Column(key, show="parameter") for key in ("learning_rate", "batch_size", "num_steps")),
        rows=tuple(rows),
        stamp=inputs.stamp("audit"),
        notes=("As configured for this run.",),
    )


@registry.table()
def table_3(inputs: Inputs) -> Table:
    """The numbers of Table 1 with standard deviations, as in appendix F.6."""
    steps = q.shown_steps(inputs, w.ADULT)
    methods = inputs.names("method", block="audit", dataset=w.ADULT)
    rows = []
    for quantity in (*q.PERFORMANCE, *q.LOSS_RATIO, *q.ERROR_RATIO):
        decimals = 1 if quantity.kind == "share" else 3
        cells: list[Cell] = [quantity.measure(inputs, w.ADULT, method, steps) for method in methods]
        rows.append(Row((quantity.group, quantity.key.split(" (")[0]), tuple(cells), decimals))
    return Table(
        title="Full results on Adult data.",
        stub=("", "Quantity"),
        columns=tuple(Column(method_style(method).label, show="spread") for method in methods),
        rows=tuple(rows),
        stamp=inputs.stamp("audit", w.ADULT),
        notes=(SPREADS, q.steps_note(inputs, w.ADULT), q.odds_note(inputs, w.ADULT)),
    )


@registry.table()
def table_4(inputs: Inputs) -> Table:
    """Balanced accuracy, average odds differences for gender and race, and the loss-ratio test."""
    table = _by_method(inputs, w.COMPAS, "Results on COMPAS data.", (*q.PERFORMANCE, *q.LOSS_RATIO), spread=True)
    return replace(table, notes=(*table.notes, sensr_on_compas(inputs)))


def _by_method(inputs: Inputs, dataset: str, title: str, quantities: tuple[q.Quantity, ...], spread: bool) -> Table:
    steps = q.shown_steps(inputs, dataset)
    rows = [
        Row((method_style(method).label,), tuple(x.measure(inputs, dataset, method, steps) for x in quantities))
        for method in inputs.names("method", block="audit", dataset=dataset)
    ]
    return Table(
        title=title,
        stub=("Method",),
        columns=tuple(quantity.column("spread" if spread else "value") for quantity in quantities),
        rows=tuple(rows),
        stamp=inputs.stamp("audit", dataset),
        notes=(
            SPREADS if spread else "Means over the repetitions.",
            q.steps_note(inputs, dataset),
            q.odds_note(inputs, dataset),
        ),
    )
