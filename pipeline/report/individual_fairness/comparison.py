"""The published numbers of Maity et al. (2021) beside ours, and the settings that they were made with."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.comparison_table import as_table
from pipeline.report.individual_fairness import facts as q
from pipeline.report.individual_fairness.facts import measurements
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, Estimate
from pipeline.report.settings import parse_setting, select
from pipeline.report.style import method_style
from pipeline.report.table import Cell, Column, Row, Table, tabulated

REAL = (w.ADULT, w.COMPAS)
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


@registry.table()
def comparison(inputs: Inputs, found: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match."""
    return as_table(found, inputs.stamp(("audit", "heatmaps")), notes=(q.sensr_on_compas(inputs),))


@registry.table(place=9)
def table_settings(inputs: Inputs) -> Table:
    """As this run used them. The paper states them for Adult and the simulation; for COMPAS it states features,
    tolerance, level, repetitions, networks and violation tolerance. Penalty and step size for COMPAS are those of the
    released code, and the number of steps is the one stated for Adult.
    """
    measured = measurements(inputs)

    def value(places: Mapping[str, Any], dataset: str) -> Cell:
        found = select(measured, places[dataset])["value"].tolist() if dataset in places else []
        return float(found[0]) if found else None

    columns = [
        Column(w.dataset_label(dataset), show="parameter", of=lambda places, d=dataset: value(places, d))
        for dataset in (*REAL, w.SIMULATED)
    ]
    notes = (
        "Attack steps: those after which the tables show the statistics; the attack goes on for figure 2.",
        q.steps_note(inputs, *REAL),
    )
    title = "Settings of the study, from its configuration and its prepared data."
    return tabulated(title, ("Setting",), columns, _setting_rows(), inputs.stamp("audit"), notes)


def _setting_rows() -> Iterator[tuple[tuple[str], dict[str, dict[str, str | float]]]]:
    """Each printed setting, and where the run's own value of it stands for each dataset."""

    def real(block: str, statistic: str, **more: str | float) -> dict[str, dict[str, str | float]]:
        return {d: {"block": block, "dataset": d, "statistic": statistic, **more} for d in REAL}

    def grid(statistic: str) -> dict[str, dict[str, str | float]]:
        place: dict[str, str | float] = {"block": "heatmaps", "dataset": w.SIMULATED, "method": "logistic_grid"}
        return {w.SIMULATED: {**place, "statistic": statistic}}

    for statistic in ("rows", "features"):
        yield (statistic,), real("data", statistic)
    for label, method, key in OF_A_METHOD:
        yield (label,), real("audit", key, method=method)
    yield ("attack steps",), {**real("audit", "shown_steps"), **grid("audit.steps")}
    for label, key in OF_THE_AUDIT:
        yield (label,), {**real("audit", key, method="baseline"), **grid(key)}
    for label, key in OF_THE_SIMULATION:
        yield (label,), grid(key)


@registry.table(place=1)
def table_1_steps(inputs: Inputs, published: pd.DataFrame) -> Table:
    """The paper states 500 steps of the attack for Adult; the audits that its authors released used 200 for most
    methods. A published cell is best compared with the setting that made it.
    """
    parts = [
        (w.ADULT, "table_1", q.T_N, q.REJECTED),
        (w.ADULT, "table_1", q.ERROR_T_N, q.ERROR_REJECTED),
        (w.COMPAS, "table_4", q.T_N, q.REJECTED),
    ]
    steps = q.both_steps(inputs, w.ADULT)
    listed = {(line["artefact"], line["row"], line["column"]): line for line in published.to_dict("records")}
    rows = []
    for dataset, artefact, quantity, share in parts:
        methods = inputs.names("method", block="audit", dataset=dataset)
        ours = {(m, t): quantity.measure(inputs, dataset, m, t) for m in methods for t in steps}
        for method in methods:
            label = method_style(method).label
            entries = [listed[artefact, label, one.key] for one in (quantity, share)]
            theirs, rejected = (Estimate(entry["value"], entry["std"], int(entry["n"])) for entry in entries)
            cells: tuple[Cell, ...] = (
                *(ours[method, t] for t in steps),
                *(share.measure(inputs, dataset, method, t) for t in steps),
                *(theirs, rejected, _made_by(entries[0]), _nearest(theirs, ours)),
            )
            rows.append(Row((f"{w.dataset_label(dataset)}, {quantity.key}", label), cells))
    rejection = "rejection prop"
    return Table(
        title="The statistics of Tables 1 and 4 at two numbers of steps, beside the published cells.",
        stub=("Statistic", "Method"),
        columns=(
            *(Column(f"{t} steps", "Ours", "spread") for t in steps),
            *(Column(f"{rejection}, {t} steps", f"Ours, {rejection}", "value", 1, f"{t} steps") for t in steps),
            Column("published", "Published", "spread", name="statistic"),
            Column(f"published {rejection}", "Published", decimals=1, name=rejection),
            Column("probably made by", "", "text"),
            Column("nearest of ours", "", "text"),
        ),
        rows=tuple(rows),
        stamp=inputs.stamp("audit", (w.ADULT, w.COMPAS)),
        notes=(
            "Published: as printed; the paper states 500 steps for Adult and no number for COMPAS. Probably made "
            "by: read off the networks and audits that the authors released (Adult), or off our statistics (COMPAS: a "
            "guess, which these statistics cannot confirm).",
            "Nearest of ours: the method and number of steps with the smallest Bhattacharyya distance, which compares "
            "means and spreads, between normal distributions.",
        ),
    )


def bhattacharyya(a: Estimate, b: Estimate) -> float:
    """(m_a - m_b)^2 / (4 (s_a^2 + s_b^2)) + log((s_a^2 + s_b^2) / (2 s_a s_b)) / 2: between two normal distributions.

    0 where both are the same; infinite where a spread is missing or 0.
    """
    if not (a.std > 0 and b.std > 0):
        return math.inf
    together = a.std**2 + b.std**2
    return (a.value - b.value) ** 2 / (4 * together) + math.log(together / (2 * a.std * b.std)) / 2


def _nearest(theirs: Estimate, ours: dict[tuple[str, int], Estimate]) -> str:
    distances = {place: bhattacharyya(theirs, estimate) for place, estimate in ours.items()}
    (method, steps), distance = min(distances.items(), key=lambda item: item[1])
    return f"{method_style(method).label}, {steps:,} steps" if np.isfinite(distance) else DASH


def _made_by(entry: Mapping[str, Any]) -> str:
    setting = parse_setting(entry["likely"]) or parse_setting(entry["setting"])
    return f"{method_style(str(setting['method'])).label}, {int(float(setting['steps'])):,} steps"
