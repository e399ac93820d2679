"""The table of what pretraining does (section 8.2)."""

from __future__ import annotations

import numpy as np

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, number
from pipeline.report.robustness_bias import study, used
from pipeline.report.robustness_bias.agreement_tables import NOT_RUN
from pipeline.report.robustness_bias.network_tables import test_accuracy
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.table import Cell, Column, Row, Table
from pipeline.types import Array

ATTACKS = (w.DEEPFOOL, w.CARLINI_WAGNER, w.SMOOTHING)
MOMENTS = {w.FIRST: "first epoch", w.LAST: "last epoch"}
WEIGHTS = {True: "ImageNet", False: "random", None: "unknown"}


@registry.table(place=8)
def table_pretraining(inputs: Inputs) -> Table:
    """Section 8.2 finds hardly any robustness bias in a network from random weights after one epoch, and some in
    networks that begin from ImageNet weights.
    """
    usual = study.audited(inputs, study.NETWORKS, w.UTKFACE)
    # Where there are no weights to begin from, what is trained from random ones on purpose is the same training again.
    again = {one.network for one in study.run(usual) if used.pretrained(inputs, one) is False}
    found = usual + [one for one in study.audited(inputs, study.PRETRAINING) if one.network not in again]
    found.sort(key=lambda one: w.networks_in(w.NETWORKS).index(one.network))
    body, weights = [], set()
    for one in study.run(found):
        begun = used.pretrained(inputs, one)
        weights.add(begun)
        cells: list[Cell] = [100 * test_accuracy(inputs, one)]
        cells += [size(one.sigmas(name, moment, w.CORRECT).to_numpy(float)) for name in ATTACKS for moment in MOMENTS]
        cells += [kept(one, name) for name in ATTACKS]
        body.append(Row((w.network_label(one.network), WEIGHTS[begun]), tuple(cells)))
    columns = (
        Column("accuracy", decimals=1, name="accuracy, %"),
        *(
            Column(f"{attack} {moment}", f"mean |sigma|, {w.distance_style(attack).label}", decimals=3, name=words)
            for attack in ATTACKS
            for moment, words in MOMENTS.items()
        ),
        *(Column(f"{attack} kept", "signs kept", "text", name=w.distance_style(attack).label) for attack in ATTACKS),
    )
    without = True not in weights and body
    return Table(
        title="UTKFace: robustness bias after the first epoch and the last, by where the training began.",
        stub=("Network", "Weights"),
        columns=columns,
        rows=tuple(body) or (Row(("none", NOT_RUN), (None,) * len(columns)),),
        stamp=used.stamp(inputs, [study.NETWORKS, study.PRETRAINING], [w.UTKFACE]),
        notes=(
            "Mean over the groups (age, gender, race) of |sigma|, of correctly classified points: of all members, a "
            "network that still gives one age to everybody would have sigma = \u22121 for every other. Signs kept: "
            "groups whose sign of sigma after the first epoch is that after the last.",
            *(
                ["Not run: pretraining. No ImageNet weights could be had, so every network began from random ones."]
                if without
                else []
            ),
            *study.not_run(found),
        ),
    )


def size(values: Array) -> float:
    """The mean of |sigma| over the groups where it is defined."""
    known = np.abs(values[np.isfinite(values)])
    return float(known.mean()) if len(known) else float("nan")


def kept(one: Audited, attack: str) -> str:
    """``9 of 12``: groups with the same sign after the first epoch as after the last."""
    first, last = (one.sigmas(attack, moment, w.CORRECT) for moment in MOMENTS)
    if first.empty or last.empty:
        return DASH
    known = first.notna() & last.notna()
    return f"{number(int((np.sign(first) == np.sign(last))[known].sum()), 0)} of {int(known.sum())}"
