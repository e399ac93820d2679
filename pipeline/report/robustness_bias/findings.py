"""What the paper concludes, as tidy rows: for each network, group or pair of networks whether, or how far, it holds.

``repetition`` numbers what a claim is taken over: networks, groups under pairs of networks, or penalised networks.
``error`` is a standard error over test points, which the networks of a data set share.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from pipeline.audits.robustness_bias.inference import sign_agreement
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import agreement, regularizer, study, used
from pipeline.report.robustness_bias.study import LINEAR, NETWORKS, REGULARIZER, Audited

SIGNIFICANT = 0.05
ENDS = 2 * 1.959964
"""Standard errors between the ends of a 95 % interval."""
Row = dict[str, Any]


def findings(inputs: Inputs, found: Sequence[Audited]) -> Iterator[Row]:
    """Every row."""
    shown = [one for one in study.run(found) if one.block in (LINEAR, NETWORKS)]
    networks = [one for one in shown if one.block == NETWORKS]
    yield from _biased(shown)
    yield from _same_sign(networks)
    yield from _sigmas(inputs, shown)
    yield from _epochs(inputs, found)
    yield from _penalties(inputs)


def _place(of: Sequence[Audited], block: str, dataset: str = "all") -> Row:
    """Where a row stands that is made of several networks."""
    return {"block": block, "dataset": dataset, "origin": study.least_official(of)}


def _biased(shown: Sequence[Audited]) -> Iterator[Row]:
    """``biased``: whether some group of a network differs significantly from the others, by DeepFool."""
    for denominator in w.DENOMINATORS:
        p = [one.table(w.DEEPFOOL, denominator=denominator) for one in shown]
        tested = [(one, t["sigma_p_adjusted"].min()) for one, t in zip(shown, p, strict=True) if not t.empty]
        for number, (one, least) in enumerate((one, least) for one, least in tested if math.isfinite(least)):
            place = {**_place([one], "any"), "attack": w.DEEPFOOL, "denominator": denominator}
            yield {**place, "repetition": number, "statistic": "biased", "value": float(least < SIGNIFICANT)}


def _same_sign(networks: Sequence[Audited]) -> Iterator[Row]:
    """``same_sign``: whether two networks of one data set give a group one sign, for all of them and all its groups."""
    number = 0
    for pair in combinations(networks, 2):
        if pair[0].dataset != pair[1].dataset:
            continue
        kept = agreement.once(pair[0].groups)
        sides = np.array([one.sigmas(w.DEEPFOOL).to_numpy(float)[kept] for one in pair])
        place = {**_place(pair, NETWORKS), "attack": w.DEEPFOOL, "denominator": w.PAPER, "statistic": "same_sign"}
        for one, other in sides.T[np.isfinite(sides).all(axis=0)]:
            yield {**place, "repetition": number, "value": float(np.sign(one) == np.sign(other))}
            number += 1


def _sigmas(inputs: Inputs, shown: Sequence[Audited]) -> Iterator[Row]:
    """``sigma`` of every group of UTKFace.

    ``first_bias``: the mean of |sigma| after the first epoch of a pretrained network less that of those from random
    weights.
    """
    faces = [one for one in shown if one.dataset == w.UTKFACE]
    for number, one in enumerate(faces):
        place = {**_place([one], one.block, w.UTKFACE), "method": one.network, "repetition": number}
        for attack in one.attacks:
            table = one.table(attack)
            for group in table.index:
                low, high = table.loc[group, "sigma_ci_low"], table.loc[group, "sigma_ci_high"]
                own = {"attack": attack, "partition": group[0], "level": group[1], "denominator": w.PAPER}
                value = {"value": float(table.loc[group, "sigma"]), "error": float(high - low) / ENDS}
                if np.isfinite(list(value.values())).all():
                    yield {**place, **own, "statistic": "sigma", **value}
    biases: dict[bool, list[float]] = {True: [], False: []}
    for one in faces:
        first = np.abs(one.sigmas(w.SMOOTHING, w.FIRST, w.CORRECT).to_numpy(float))
        if np.isfinite(first).any() and one.block == NETWORKS:
            biases[bool(used.pretrained(inputs, one))].append(float(np.nanmean(first)))
    for number, bias in enumerate(biases[True] if biases[False] else ()):
        place = {**_place(faces, NETWORKS, w.UTKFACE), "attack": w.SMOOTHING, "repetition": number}
        yield {**place, "statistic": "first_bias", "value": bias - float(np.mean(biases[False]))}


def _epochs(inputs: Inputs, found: Sequence[Audited]) -> Iterator[Row]:
    """``kept_sign``: the share of groups with the sign of the last epoch after the first, over all networks."""
    for attack in (w.DEEPFOOL, w.CARLINI_WAGNER):
        for comparison in agreement.comparisons(found):
            if (comparison.one, comparison.other) == ((attack, w.FIRST), (attack, w.LAST)):
                every = replace(comparison, networks=None)
                counted = sign_agreement(*agreement.pairs(inputs, found, every, w.PUBLISHED_IMAGES))
                of = agreement.having(found, every, w.PUBLISHED_IMAGES)
                if counted.total:
                    place = {**_place(of, NETWORKS), "attack": attack, "denominator": w.PAPER}
                    yield {**place, "statistic": "kept_sign", "value": counted.share, "simulations": counted.total}


def _penalties(inputs: Inputs) -> Iterator[Row]:
    """``penalty_change``: |sigma| of the penalised group less without the penalty; ``penalty_cost``: of accuracy.

    Of the published data, with the penalty as published.
    """
    found = regularizer.penalised(inputs)
    number = 0
    for one in found:
        before = regularizer.without(one, found)
        published = one.audited.dataset in w.PUBLISHED_IMAGES and not one.audited.key.startswith(regularizer.VARIANTS)
        if not one.alpha or before is None or not published:
            continue
        attack = study.upper_bound(one.audited)
        sides = [side.audited.table(attack, denominator=w.CORRECT).loc[one.group] for side in (one, before)]
        error = math.hypot(*((side["sigma_ci_high"] - side["sigma_ci_low"]) / ENDS for side in sides))
        change = abs(sides[0]["sigma"]) - abs(sides[1]["sigma"])
        a, b, n = one.audited.accuracy, before.audited.accuracy, one.audited.images
        cost_error = math.sqrt((a * (1 - a) + b * (1 - b)) / n) if n else math.nan
        place = {**_place([one.audited], REGULARIZER), "repetition": number}
        for statistic, value, own in (("penalty_change", change, error), ("penalty_cost", b - a, cost_error)):
            if math.isfinite(value) and math.isfinite(own):
                yield {**place, "statistic": statistic, "value": float(value), "error": float(own)}
        number += 1
