"""Tables of trainings: what pretraining does (8.2), and what the penalty on robustness bias does (section 9)."""

from __future__ import annotations

import numpy as np

from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, number, p_value
from pipeline.report.robustness_bias import regularizer, study
from pipeline.report.robustness_bias import words as w
from pipeline.report.robustness_bias.agreement_tables import NOT_RUN
from pipeline.report.robustness_bias.network_tables import test_accuracy
from pipeline.report.robustness_bias.regularizer import Penalised
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.table import Cell, Column, Row, Table
from pipeline.types import Array

ATTACKS = (w.DEEPFOOL, w.CARLINI_WAGNER, w.SMOOTHING)
MOMENTS = {w.FIRST: "first epoch", w.LAST: "last epoch"}
WEIGHTS = {True: "ImageNet", False: "random", None: "unknown"}


def table_pretraining(inputs: Inputs) -> Table:
    """How large sigma is after the first epoch and the last, from ImageNet weights and from random ones."""
    found = [*study.audited(inputs, study.NETWORKS, w.UTKFACE), *study.audited(inputs, study.PRETRAINING)]
    found.sort(key=lambda one: w.networks_in(w.NETWORKS).index(one.network))
    body, weights = [], set()
    for one in study.run(found):
        begun = study.pretrained(inputs, one)
        weights.add(begun)
        cells: list[Cell] = [100 * test_accuracy(inputs, one)]
        cells += [size(one.sigmas(name, moment).to_numpy(float)) for name in ATTACKS for moment in MOMENTS]
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
        stamp=study.stamp(inputs, [study.NETWORKS, study.PRETRAINING], [w.UTKFACE]),
        notes=(
            "Mean over the groups (age, gender, race) of |sigma|, shares of all members. Signs kept: groups whose sign "
            "of sigma after the first epoch is that after the last.",
            *(
                ["Not run: pretraining. No ImageNet weights could be had, so every network began from random ones."]
                if without
                else []
            ),
            *study.not_run(found),
        ),
    )


def table_regularizer(inputs: Inputs) -> Table:
    """Accuracy and sigma of the penalised group, by weight, threshold and form of the penalty."""
    found = regularizer.penalised(inputs)
    every = study.audited(inputs, study.REGULARIZER)
    body = []
    for one in found:
        attack = one.audited.attacks[0]
        line = one.audited.table(attack, denominator=w.CORRECT).loc[one.group]
        before = regularizer.without(one, found)
        base = sigma(before, one.group) if before is not None else float("nan")
        labels = (
            w.dataset_label(one.audited.dataset),
            w.network_label(one.audited.network),
            w.level_label(one.level),
            one.form if one.alpha else DASH,
        )
        cells: tuple[Cell, ...] = (
            one.tau if one.alpha else None,
            one.alpha,
            100 * test_accuracy(inputs, one.audited),
            float(line["sigma"]),
            p_value(float(line["sigma_p"])),
            abs(float(line["sigma"])) - abs(base) if one.alpha else None,
            bias(inputs, one),
            one.audited.overall(attack, "median_distance"),
        )
        # Two blocks may hold the same network.
        if (row := Row(labels, cells)) not in body:
            body.append(row)
    return Table(
        title="What the penalty on robustness bias does to the group that it is for.",
        stub=("Data", "Network", "Group", "Distance in the penalty"),
        columns=(
            Column("tau", show="parameter"),
            Column("alpha", show="parameter"),
            Column("accuracy", decimals=1, name="accuracy, %"),
            Column("sigma"),
            Column("p", show="text"),
            Column("change", name="change of |sigma|"),
            Column("bias", name="largest RB"),
            Column("median", name="median distance"),
        ),
        rows=tuple(body) or (Row((NOT_RUN, "", "", ""), (None,) * 8),),
        stamp=study.stamp(inputs, study.REGULARIZER),
        notes=(
            "By DeepFool, last epoch, correctly classified points, as (9) has them. p: permutation test of sigma = 0, "
            "not adjusted. Change: |sigma| less that of the same network trained alike with alpha = 0; below 0 the "
            "penalty helped. Largest RB: the greatest gap between the group's curve and that of all others.",
            *study.not_run(every),
        ),
    )


def sigma(one: Penalised, group: tuple[str, str]) -> float:
    """sigma of a group under one network, by the first of its distances, of correctly classified points."""
    return float(one.audited.sigmas(one.audited.attacks[0], denominator=w.CORRECT)[group])


def bias(inputs: Inputs, one: Penalised) -> float:
    """max over tau of RB(P, tau) for the penalised group: the Kolmogorov-Smirnov distance of both samples."""
    from scipy.stats import ks_2samp

    from pipeline.report.robustness_bias import curves

    points = study.at_points(inputs, one.audited)
    group = curves.group(points, one.audited.attacks[0], one.partition, w.CORRECT)
    inside, outside = group.partition.element(group.partition.levels.index(one.level))
    sides = [group.lengths.length[side & group.lengths.counts] for side in (inside, outside)]
    return float(ks_2samp(*sides).statistic) if all(len(side) for side in sides) else float("nan")


def size(values: Array) -> float:
    """The mean of |sigma| over the groups where it is defined."""
    known = np.abs(values[np.isfinite(values)])
    return float(known.mean()) if len(known) else float("nan")


def kept(one: Audited, attack: str) -> str:
    """``9 of 12``: groups with the same sign after the first epoch as after the last."""
    first, last = (one.sigmas(attack, moment) for moment in MOMENTS)
    if first.empty or last.empty:
        return DASH
    known = first.notna() & last.notna()
    return f"{number(int((np.sign(first) == np.sign(last))[known].sum()), 0)} of {int(known.sum())}"
