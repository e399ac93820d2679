"""The published numbers of Maity et al. (2021) beside ours. The only module of the study that sees them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pipeline.report import comparison as rules
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.comparison_table import as_table
from pipeline.report.individual_fairness import quantities as q
from pipeline.report.individual_fairness.facts import measurements, sensr_on_compas
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, Estimate
from pipeline.report.settings import parse_setting
from pipeline.report.style import method_style
from pipeline.report.table import Cell, Column, Row, Table


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Every published number with ours and a verdict, see :mod:`pipeline.report.comparison`."""
    return rules.compared(inputs, published, measurements(inputs))


@registry.table()
def comparison(inputs: Inputs, published: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match."""
    return as_table(
        compared(inputs, published),
        inputs.stamp(("audit", "heatmaps")),
        notes=(sensr_on_compas(inputs),),
    )


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
    wanted = (q.RELEASED_STEPS, q.STATED_STEPS)
    steps = list(dict.fromkeys(q.shown_steps(inputs, w.ADULT, number) for number in wanted))
    rows = []
    for dataset, artefact, quantity, share in parts:
        methods = inputs.names("method", block="audit", dataset=dataset)
        ours = {(m, t): quantity.measure(inputs, dataset, m, t) for m in methods for t in steps}
        for method in methods:
            label = method_style(method).label
            entry = _entry(published, artefact, label, quantity.key)
            theirs, rejected = _estimate(entry), _estimate(_entry(published, artefact, label, share.key))
            cells: list[Cell] = [ours[method, t] for t in steps]
            cells += [share.measure(inputs, dataset, method, t) for t in steps]
            cells += [theirs, rejected, _made_by(entry), _nearest(theirs, ours)]
            rows.append(Row((f"{w.dataset_label(dataset)}, {quantity.key}", label), tuple(cells)))
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


def _entry(published: pd.DataFrame, artefact: str, row: str, column: str) -> dict[str, Any]:
    found = published[
        (published["artefact"] == artefact) & (published["row"] == row) & (published["column"] == column)
    ].to_dict("records")
    if len(found) != 1:
        raise ValueError(f"expected one published number in {artefact}, {row} x {column}, found {len(found)}")
    return {str(key): value for key, value in found[0].items()}


def _estimate(entry: Mapping[str, Any]) -> Estimate:
    return Estimate(float(entry["value"]), float(entry["std"]), int(entry["n"]))
