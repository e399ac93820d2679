"""What answers to the published numbers, as tidy rows like an audit's: agreements, accuracies, medians, settings, data.

So a published number is found by the same kind of setting as a measured statistic. A network stands for a method.
``origin`` is ``configuration`` for what no data enter; ``simulations`` holds what a share is of. A number that is made
of several data sets has the origin that is least official of theirs.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pipeline.audits.robustness_bias import illustrations
from pipeline.audits.robustness_bias.measures import comparisons
from pipeline.report import words as w
from pipeline.report.facts import DATA, configured_facts, with_facts
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import agreement, findings, study, used
from pipeline.report.robustness_bias.study import Audited

TOY = "toy"
"""The block of the two small worlds."""
COLUMNS = ("simulations", "denominator", "attack", "partition", "level", "method", "error")
"""Of the facts, which a smaller study may lack."""


def measurements(inputs: Inputs) -> pd.DataFrame:
    """Every fact of the study in one frame."""
    found = study.audited(inputs)
    facts = [
        *configured_facts(used.as_networks(inputs.points)),
        *_comparisons(inputs),
        *_toy(),
        *_linear(found),
        *_accuracies(found),
        *_agreements(inputs, found),
        *_differences(inputs, found),
        *_findings(found),
        *findings.findings(inputs, found),
    ]
    return with_facts(inputs, facts, rows=pd.DataFrame(), columns=COLUMNS)


def _comparisons(inputs: Inputs) -> Iterator[dict[str, Any]]:
    """How many networks and comparisons there are, of all data sets of the paper."""
    published = {one.name: one.levels for one in inputs.datasets.values() if one.name in w.PUBLISHED_IMAGES}
    place = {"block": DATA, "dataset": "all", "origin": "configuration"}
    yield {**place, "statistic": "networks.of_torchvision", "value": len(w.CONVOLUTIONAL)}
    if len(published) == len(w.PUBLISHED_IMAGES):
        total = sum(map(comparisons, published.values()))
        yield {**place, "statistic": "comparisons", "value": total}
        yield {**place, "statistic": "comparisons_of_five", "value": len(w.CONVOLUTIONAL) * total}


def _toy() -> Iterator[dict[str, Any]]:
    world = illustrations.two_boundaries()
    for name, boundary in zip("ab", world.boundaries, strict=True):
        values = [100 * world.accuracy(boundary), *(100 * share for share in world.attacked(boundary))]
        for statistic, value in zip(("accuracy", "round_attacked", "cross_attacked"), values, strict=True):
            place = {"block": TOY, "dataset": TOY, "method": f"boundary_{name}", "origin": "configuration"}
            yield {**place, "statistic": statistic, "value": value}


def _linear(found: Sequence[Audited]) -> Iterator[dict[str, Any]]:
    for one in study.run(found):
        if one.block == study.LINEAR:
            for attack in one.attacks:
                median = one.overall(attack, "median_distance")
                yield {**_place(one), "attack": attack, "statistic": "median_distance", "value": median}


def _accuracies(found: Sequence[Audited]) -> Iterator[dict[str, Any]]:
    for one in study.trained(found):
        if one.block == study.NETWORKS and math.isfinite(one.accuracy):
            yield {**_place(one), "statistic": "accuracy", "value": one.accuracy, "simulations": one.images}


def _agreements(inputs: Inputs, found: Sequence[Audited]) -> Iterator[dict[str, Any]]:
    """The share of agreeing signs, of the data sets of the paper that are here together and (Table 1) of each."""
    datasets = {one.dataset for one in study.run(found)}
    for denominator in w.DENOMINATORS:
        for comparison in agreement.comparisons(found):
            sides = (comparison.one, comparison.other)
            name = "_".join([*dict.fromkeys(a for a, _ in sides), *dict.fromkeys(m for _, m in sides if m != w.LAST)])
            if here := having(found, comparison.block):
                counted = agreement.counted(inputs, found, comparison, w.PUBLISHED_IMAGES, denominator)
                place = {"block": comparison.block, "dataset": "all", "origin": study.least_official(here)}
                place["denominator"] = denominator
                if counted.total:
                    yield {**place, "statistic": f"agree_{name}", "value": counted.share, "simulations": counted.total}
        for attack in (w.DEEPFOOL, w.CARLINI_WAGNER):
            against = agreement.smoothing_against(attack)
            for dataset in datasets:
                counted = agreement.counted(inputs, found, against, [dataset], denominator)
                origin = study.least_official(one for one in study.run(found) if one.dataset == dataset)
                place = {"block": study.NETWORKS, "dataset": dataset, "origin": origin, "denominator": denominator}
                if counted.total:
                    statistic = f"agree_smoothing_{attack}"
                    yield {**place, "statistic": statistic, "value": counted.share, "simulations": counted.total}


def _differences(inputs: Inputs, found: Sequence[Audited]) -> Iterator[dict[str, Any]]:
    """sigma by the exact distance less sigma by each estimate: a row for each group, and their variance."""
    linear = having(found, study.LINEAR)
    if not linear:
        return
    origin = study.least_official(linear)
    for comparison in agreement.comparisons(found):
        if comparison.block != study.LINEAR:
            continue
        for denominator in w.DENOMINATORS:
            one, other = agreement.pairs(inputs, found, comparison, w.PUBLISHED_IMAGES, denominator)
            gaps = (one - other)[np.isfinite(one - other)]
            place = {"block": study.LINEAR, "dataset": "all", "origin": origin, "denominator": denominator}
            place["attack"] = comparison.other[0]
            for number, gap in enumerate(gaps):
                yield {**place, "statistic": "sigma_difference", "repetition": number, "value": float(gap)}
            if len(gaps) > 1:
                variance = {"statistic": "sigma_difference_variance", "value": float(gaps.var(ddof=1))}
                yield {**place, **variance, "simulations": len(gaps)}


def _findings(found: Sequence[Audited]) -> Iterator[dict[str, Any]]:
    """The share of networks under which a group of UTKFace is less robust than the others, at the last epoch."""
    shown = [one for one in study.run(found) if one.block == study.NETWORKS and one.dataset == w.UTKFACE]
    for attack in (w.DEEPFOOL, w.CARLINI_WAGNER, w.SMOOTHING):
        values = [one.sigmas(attack) for one in shown if attack in one.attacks]
        for partition, level in shown[0].groups if values else ():
            known = np.array([series[partition, level] for series in values])
            known = known[np.isfinite(known)]
            place = {"block": study.NETWORKS, "dataset": w.UTKFACE, "origin": shown[0].result.origin}
            place |= {"attack": attack, "partition": partition, "level": level}
            if len(known):
                share = float((known < 0).mean())
                yield {**place, "statistic": "less_robust", "value": share, "simulations": len(known)}


def having(found: Iterable[Audited], block: str) -> list[Audited]:
    """The networks of a block on data of the paper, of what data there are."""
    return [one for one in study.run(found) if one.block == block and one.dataset in w.PUBLISHED_IMAGES]


def _place(one: Audited) -> dict[str, Any]:
    return {"block": one.block, "dataset": one.dataset, "method": one.network, "origin": one.result.origin}
