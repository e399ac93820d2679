"""Facts of the study as tidy rows, the counterparts of the published numbers and claims.

They are sign agreements, accuracies, medians, settings and sizes of data, and per network or group whether, or how
strongly, a conclusion of the paper holds. The column ``method`` names the network. Numbers that depend on no data have
the ``origin`` ``configuration``; a number of several data sets has the least official of their origins.
``simulations`` is the denominator of a share. ``repetition`` numbers the networks, penalised networks or groups that a
claim is about. ``error`` is a standard error over test points, which the networks of a data set share.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.results.estimate import Estimate
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.facts import DATA, configured_facts, with_facts
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import initial_weights, regularizer, sign_agreement, stamps, study
from pipeline.report.robustness_bias.study import (
    ENDS,
    FOLDS,
    LINEAR,
    NETWORKS,
    PENALTIES,
    PRETRAINED,
    REGULARIZER,
    Audited,
)

COLUMNS = (
    *("simulations", "groups", "denominator", "attack", "partition", "level", "method", "error", "freedom"),
    *("penalised_level", "tau"),
)
"""Columns of the facts, present even if a smaller study has no such facts."""
FEWEST_NETWORKS = 3
"""Smallest number of networks whose sigmas have a ratio."""
_CONVOLUTIONAL = ("resnet50", "vgg19", "densenet121", "squeezenet1_0")
IN_NOTEBOOKS = {
    w.CIFAR10: ("deep_cnn", "pyramidnet", *_CONVOLUTIONAL),
    w.SUPER: ("deep_cnn_cifar100", "pyramidnet_bottleneck", *_CONVOLUTIONAL),
    w.ADIENCE: ("adience_classifier", "alexnet", *_CONVOLUTIONAL),
}
"""Networks whose sigma by group the notebooks in the authors' repository print, by data set."""
Fact = dict[str, Any]


def measurements(inputs: Inputs) -> pd.DataFrame:
    """Return all facts of the study in one frame."""
    found = study.audited(inputs)
    shown = [one for one in study.run(found) if one.block in (LINEAR, NETWORKS)]
    faces = [one for one in shown if (one.block, one.dataset) == (NETWORKS, w.UTKFACE)]
    facts = [
        *configured_facts(stamps.as_networks(inputs.points)),
        *_comparisons(inputs),
        *_by_network(found),
        *_agreements(found),
        *_differences(found),
        *_attack_less_certificate(found),
        *_less_robust(faces),
        *_biased(shown),
        *_same_sign(shown),
        *_ratios(faces),
        *_sigmas(shown),
        *_heterogeneity(faces),
        *_kept([*shown, *study.run(study.audited(inputs, PRETRAINED))]),
        *_first_bias(inputs),
        *_agreeing(shown),
        *_over_folds(inputs),
        *_penalties(inputs, REGULARIZER),
        *_penalties(inputs, PENALTIES),
    ]
    return with_facts(replace(inputs, datasets=study.datasets(inputs)), facts, rows=pd.DataFrame(), columns=COLUMNS)


def _place(of: Iterable[Audited], block: str, dataset: str = "all") -> Fact:
    """Return the block, data set and origin of a row that summarises several networks."""
    return {"block": block, "dataset": dataset, "origin": study.least_official(of)}


def _share(place: Fact, statistic: str, counted: Estimate, total: str = "simulations") -> Iterator[Fact]:
    """Yield a share with its denominator in the column ``total``, if there is anything to count."""
    if counted.n:
        yield {**place, "statistic": statistic, "value": counted.value, total: counted.n}


def _each(place: Fact, statistic: str, values: Iterable[float]) -> Iterator[Fact]:
    """Yield a row per value."""
    for number, value in enumerate(values):
        yield {**place, "statistic": statistic, "repetition": number, "value": float(value)}


def _agreeing(shown: Sequence[Audited]) -> Iterator[Fact]:
    """Yield the share of groups of each network whose sigma has the same sign by two distances: ``certified_sign`` by
    smoothing and an attack, and ``attacked_sign`` by DeepFool and Carlini-Wagner.

    Networks that are poor classifiers under noise are included.
    """
    compared = [
        ("certified_sign", attack, sign_agreement.smoothing_against(attack)) for attack in sign_agreement.ATTACKS
    ]
    compared.append(("attacked_sign", w.CARLINI_WAGNER, sign_agreement.OF_TWO_ATTACKS))
    for denominator, (statistic, attack, against) in product(w.DENOMINATORS, compared):
        both = {f"distance_{name}" for name, _ in (against.one, against.other)}
        for number, one in enumerate(shown):
            if against.between(one) and both <= one.result.arrays.keys():
                sides = sign_agreement.on_shared_points(one, against, denominator)
                share = sign_agreement.agreement(sides[:, sign_agreement.once(one.groups)])
                place = {**_place([one], NETWORKS, one.dataset), "denominator": denominator, "attack": attack}
                yield from _share({**place, "repetition": number}, statistic, share, "groups")


def _comparisons(inputs: Inputs) -> Iterator[Fact]:
    """Yield the numbers of networks and of comparisons over all data sets of the paper."""
    published = {one.name: one.levels for one in inputs.datasets.values() if one.name in w.PUBLISHED_IMAGES}
    place = {"block": DATA, "dataset": "all", "origin": "configuration"}
    yield {**place, "statistic": "networks.of_torchvision", "value": len(w.CONVOLUTIONAL)}
    if len(published) == len(w.PUBLISHED_IMAGES):
        total = sum(map(study.comparisons, published.values()))
        yield {**place, "statistic": "comparisons", "value": total}
        yield {**place, "statistic": "comparisons_of_five", "value": len(w.CONVOLUTIONAL) * total}


def _by_network(found: Sequence[Audited]) -> Iterator[Fact]:
    """Yield the median distances of linear models, and the accuracy of all networks after the last and the first epoch.

    Networks that failed are included.
    """
    for one in study.trained(found):
        place = {**_place([one], one.block, one.dataset), "method": one.network}
        for attack in one.attacks if one.block == LINEAR and one.learned else ():
            median = one.overall(attack, "median_distance")
            error = error_of_median(_distances(one, attack))
            yield {**place, "attack": attack, "statistic": "median_distance", "value": median, "error": error}
        if one.block == NETWORKS and math.isfinite(one.accuracy):
            yield {**place, "statistic": "accuracy", "value": one.accuracy, "simulations": one.images}
            if 1 in one.curve:
                yield {**place, "statistic": "accuracy_first", "value": one.curve[1], "simulations": one.images}


def _distances(one: Audited, attack: str) -> Array:
    """Return the measured distances of the correctly classified points, none if the arrays lack the attack."""
    points = one.points
    if attack not in points.distance:
        return np.zeros(0)
    distance = points.distance[attack][points.correct & points.tried[attack]]
    return distance[np.isfinite(distance)]


def error_of_median(values: Array) -> float:
    """Compute the standard error of the median of n values from the order statistics that bound it.

    The ranks n / 2 -+ 1.96 sqrt(n) / 2 bound the 95 % interval, because the number of values below the median is
    binomial. NaN for fewer than ``study.TOO_FEW`` values.
    """
    n = len(values)
    if n < study.TOO_FEW:
        return math.nan
    ranks = n / 2 + np.array([-1, 1]) * ENDS * math.sqrt(n) / 4
    low, high = np.sort(values)[np.clip(np.round(ranks).astype(int) - 1, 0, n - 1)]
    return float(high - low) / ENDS


def _agreements(found: Sequence[Audited]) -> Iterator[Fact]:
    """Yield the share of agreeing signs over all available data sets of the paper, and per data set (Table 1)."""
    shown = study.run(found)
    for denominator in w.DENOMINATORS:
        for comparison in sign_agreement.COMPARISONS:
            sides = (comparison.one, comparison.other)
            name = "_".join([*dict.fromkeys(a for a, _ in sides), *dict.fromkeys(m for _, m in sides if m != w.LAST)])
            counted = sign_agreement.counted(found, comparison, w.PUBLISHED_IMAGES, denominator)
            place = {**_place(having(found, comparison.block), comparison.block), "denominator": denominator}
            yield from _share(place, f"agree_{name}", counted)
        for attack, dataset in product(sign_agreement.ATTACKS, sorted({one.dataset for one in shown})):
            against = sign_agreement.smoothing_against(attack)
            counted = sign_agreement.counted(found, against, [dataset], denominator)
            place = _place((one for one in shown if one.dataset == dataset), NETWORKS, dataset)
            yield from _share({**place, "denominator": denominator}, f"agree_smoothing_{attack}", counted)


def _kept(shown: Sequence[Audited]) -> Iterator[Fact]:
    """Yield ``kept_sign``: the share of groups of each torchvision network with the same sign after the first and the
    last epoch, even if it had not learned after the first. Randomly initialised networks have ``kept_sign_random``.
    The share after the middle and the last epoch is ``kept_sign_middle`` and ``kept_sign_random_middle``.
    """
    moments = {w.FIRST: "", w.MIDDLE: "_middle"}
    for attack, (moment, ending) in product(sign_agreement.ATTACKS, moments.items()):
        for number, one in enumerate(shown):
            of_torchvision = one.block in (NETWORKS, PRETRAINED) and one.network in w.CONVOLUTIONAL
            if of_torchvision and one.dataset in w.PUBLISHED_IMAGES:
                name = "kept_sign" if one.pretrained else "kept_sign_random"
                place = {**_place([one], one.block, one.dataset), "attack": attack, "denominator": w.PAPER}
                share = initial_weights.kept_signs(one, attack, moment)
                yield from _share({**place, "repetition": number}, f"{name}{ending}", share, "groups")


NAMED = (("age", "15-24"), ("age", "60+"))
"""Groups of UTKFace whose robustness depends on the network, according to the paper."""


NOTABLE = 0.1
"""A difference of sigma that matters, as in the claim about women under logistic regression."""


def _heterogeneity(faces: Sequence[Audited]) -> Iterator[Fact]:
    r"""Yield the ``heterogeneity`` between networks of sigma of each named group of UTKFace.

    .. math:: Q / (k - 1), \quad Q = \sum_i (\sigma_i - \bar\sigma)^2 / s_i^2,

    with the standard errors s_i over test points and the weighted mean (Cochran 1954). The expectation is 1 if networks
    differ only by the sampling of test points. The networks share these points, so the value tends to be too small.
    ``variance`` is the sample variance of sigma_i over the squared ``NOTABLE``.
    """
    for number, group in enumerate(NAMED):
        tables = [table.loc[group] for one in faces if group in (table := one.table(w.DEEPFOOL)).index]
        sigma, low, high = (np.array([t[n] for t in tables], float) for n in ("sigma", "sigma_ci_low", "sigma_ci_high"))
        weight = (ENDS / (high - low)) ** 2
        known = np.isfinite(sigma * weight)
        if known.sum() > 1:
            middle = np.average(sigma[known], weights=weight[known])
            freedom = int(known.sum()) - 1
            q = float((weight[known] * (sigma[known] - middle) ** 2).sum())
            place = {**_place(faces, NETWORKS, w.UTKFACE), "partition": group[0], "level": group[1]}
            place |= {"attack": w.DEEPFOOL, "denominator": w.PAPER, "repetition": number}
            yield {**place, "statistic": "heterogeneity", "value": q / freedom, "freedom": freedom}
            variance = float(sigma[known].var(ddof=1)) / NOTABLE**2
            yield {**place, "statistic": "variance", "value": variance, "freedom": freedom}


def _differences(found: Sequence[Audited]) -> Iterator[Fact]:
    """Yield sigma by the exact distance minus sigma by each estimate: a row per group, and the variance.

    The denominator ``mixed`` also has the share of equal signs, see :data:`sign_agreement.MIXED`.
    """
    linear = [one for one in sign_agreement.COMPARISONS if one.block == LINEAR]
    for comparison, denominator in product(linear, (*w.DENOMINATORS, sign_agreement.MIXED)):
        gaps = sign_agreement.differences(found, comparison, w.PUBLISHED_IMAGES, denominator)
        place = {**_place(having(found, LINEAR), LINEAR), "denominator": denominator, "attack": comparison.other[0]}
        yield from _each(place, "sigma_difference", gaps)
        if len(gaps) > 1:
            variance = Estimate(float(gaps.var(ddof=1)), n=len(gaps))
            yield from _share(place, "sigma_difference_variance", variance)
        if denominator == sign_agreement.MIXED:
            counted = sign_agreement.counted(found, comparison, w.PUBLISHED_IMAGES, denominator)
            yield from _share(place, f"agree_{w.EXACT}_{comparison.other[0]}", counted)


def _attack_less_certificate(found: Sequence[Audited]) -> Iterator[Fact]:
    """Yield whether sigma by Carlini-Wagner has the sign of the exact sigma, minus whether sigma by smoothing has it.

    There is a row per group that has sigma by all three distances.
    """
    linear = {one.other[0]: one for one in sign_agreement.COMPARISONS if one.block == LINEAR}
    for denominator in w.DENOMINATORS:
        gaps: list[float] = []
        for dataset in w.PUBLISHED_IMAGES:
            sides = (linear[name] for name in (w.CARLINI_WAGNER, w.SMOOTHING))
            both = [sign_agreement.pairs(found, one, [dataset], denominator) for one in sides]
            if all(exact.size for exact, _ in both):
                equal = [np.where(np.isfinite(x - y), np.sign(x) == np.sign(y), np.nan) for x, y in both]
                gaps += [gap for gap in equal[0] - equal[1] if math.isfinite(gap)]
        place = {**_place(having(found, LINEAR), LINEAR), "denominator": denominator}
        yield from _each(place, "attack_less_certificate", gaps)


def having(found: Iterable[Audited], block: str) -> list[Audited]:
    """Return the networks of a block that have learned, on available data sets of the paper."""
    return [one for one in study.run(found) if one.block == block and one.dataset in w.PUBLISHED_IMAGES]


def _less_robust(faces: Sequence[Audited]) -> Iterator[Fact]:
    """Yield the share of networks under which a group of UTKFace is less robust than the others at the last epoch."""
    for attack in (w.DEEPFOOL, w.CARLINI_WAGNER, w.SMOOTHING):
        values = [sigmas for one in faces if not (sigmas := one.sigmas(attack)).empty]
        for partition, level in faces[0].groups if values else ():
            known = np.array([series[partition, level] for series in values])
            known = known[np.isfinite(known)]
            place = {**_place(faces, NETWORKS, w.UTKFACE), "attack": attack, "partition": partition, "level": level}
            yield from _share(place, "less_robust", estimate("share", known < 0))


def _biased(shown: Sequence[Audited]) -> Iterator[Fact]:
    """Yield ``biased``: whether some group is significantly less robust (DeepFool), per network on the paper's data."""
    published = [one for one in shown if one.dataset in w.PUBLISHED_IMAGES]
    for denominator in w.DENOMINATORS:
        tables = [(one, one.table(w.DEEPFOOL, denominator=denominator)) for one in published]
        known = [(one, table) for one, table in tables if not table.empty and table["sigma_p_adjusted"].notna().any()]
        for number, (one, table) in enumerate(known):
            place = {**_place([one], "any"), "attack": w.DEEPFOOL, "denominator": denominator}
            biased = ((table["sigma"] < 0) & (table["sigma_p_adjusted"] < study.SIGNIFICANT)).any()
            yield {**place, "repetition": number, "statistic": "biased", "value": float(biased)}


def _same_sign(shown: Sequence[Audited]) -> Iterator[Fact]:
    """Yield ``same_sign``, the share of groups with the same sign under two networks, over all pairs of one data set.

    Pairs share networks, so each network has a row with its jackknife pseudo-value (:func:`pseudo_values`).
    """
    networks = [one for one in shown if one.block == NETWORKS]
    for denominator in w.DENOMINATORS:
        tables = [one.table(w.DEEPFOOL, denominator=denominator).reindex(one.groups) for one in networks]
        signs = [
            np.sign(table["sigma"].to_numpy(float)[sign_agreement.once(one.groups)])
            for one, table in zip(networks, tables, strict=True)
        ]
        shares: dict[tuple[int, int], float] = {}
        for i, j in combinations(range(len(networks)), 2):
            if networks[i].dataset == networks[j].dataset and (known := np.isfinite(signs[i] * signs[j])).any():
                shares[i, j] = float((signs[i] == signs[j])[known].mean())
        place = {**_place(networks, NETWORKS), "attack": w.DEEPFOOL, "denominator": denominator}
        yield from _each(place, "same_sign", pseudo_values(shares))


def _ratios(faces: Sequence[Audited]) -> Iterator[Fact]:
    """Yield ``ratio_of_sigmas``: the largest |sigma| of a group of UTKFace under a network over the smallest.

    There is a row per group that has one sign under all networks, at least ``FEWEST_NETWORKS``.
    """
    for attack in (w.DEEPFOOL, w.SMOOTHING):
        sigmas = pd.DataFrame([one.sigmas(attack) for one in faces if not one.sigmas(attack).empty])
        place = {**_place(faces, NETWORKS, w.UTKFACE), "attack": attack, "denominator": w.PAPER}
        for number, group in enumerate(sigmas.columns):
            known = sigmas[group].dropna().to_numpy(float)
            if len(known) >= FEWEST_NETWORKS and abs(np.sign(known).sum()) == len(known):
                own = {"repetition": number, "partition": group[0], "level": group[1]}
                value = float(np.abs(known).max() / np.abs(known).min())
                yield {**place, **own, "statistic": "ratio_of_sigmas", "value": value}


def pseudo_values(of_pairs: Mapping[tuple[int, int], float]) -> list[float]:
    r"""Compute the jackknife pseudo-values of a mean over pairs of items, one per item.

    .. math:: J_i = K \bar U - (K - 1) \bar U_{(-i)},

    with the mean over all pairs of K items and the mean over the pairs without item i (Arvesen 1969). The mean of the
    pseudo-values approximates the mean over pairs, and their standard error is valid although pairs share items. If
    some item is in all pairs, only the mean is returned.
    """
    things = sorted({i for pair in of_pairs for i in pair})
    if not of_pairs:
        return []
    whole = float(np.mean([*of_pairs.values()]))
    without = [[value for pair, value in of_pairs.items() if i not in pair] for i in things]
    if not all(without):
        return [whole]
    return [len(things) * whole - (len(things) - 1) * float(np.mean(values)) for values in without]


def _sigmas(shown: Sequence[Audited]) -> Iterator[Fact]:
    """Yield ``sigma`` of every group of UTKFace. The logistic regression has an ``error`` over points. Networks have
    none, because claims are about the variation between networks.
    """
    faces = [one for one in shown if one.dataset == w.UTKFACE]
    for number, one in enumerate(faces):
        place = {**_place([one], one.block, w.UTKFACE), "method": one.network, "repetition": number}
        for attack in one.attacks:
            for (partition, level), line in one.table(attack).iterrows():
                own = {"attack": attack, "partition": partition, "level": level, "denominator": w.PAPER}
                value, error = float(line["sigma"]), float(line["sigma_ci_high"] - line["sigma_ci_low"]) / ENDS
                known = {"error": error} if one.block == LINEAR else {}
                if math.isfinite(value) and math.isfinite(error):
                    yield {**place, **own, "statistic": "sigma", "value": value, **known}
    yield from _sigmas_of_notebooks(shown)


def _first_bias(inputs: Inputs) -> Iterator[Fact]:
    """Yield ``first_bias``: how much more biased a network from ImageNet weights is after one epoch than its twin, and
    ``first_learned``: 1 if both were better than always predicting the largest class.
    """
    for number, pair in enumerate(initial_weights.twins(inputs)):
        place = {**_place(pair, PRETRAINED, pair[0].dataset), "repetition": number}
        learned = all(one.better_than_constant(w.FIRST) for one in pair)
        yield {**place, "statistic": "first_learned", "value": float(learned)}
        for attack in (w.DEEPFOOL, w.SMOOTHING):
            value = initial_weights.first_bias(pair, attack)
            if math.isfinite(value):
                own = {"attack": attack, "denominator": w.CORRECT, "statistic": "first_bias", "value": value}
                yield {**place, **own}


def _sigmas_of_notebooks(shown: Sequence[Audited]) -> Iterator[Fact]:
    """Yield ``sigma`` by smoothing of every group under the networks in the authors' notebooks."""
    here = [one for one in shown if one.block == NETWORKS and one.network in IN_NOTEBOOKS.get(one.dataset, ())]
    for number, one in enumerate(here):
        place = {**_place([one], NETWORKS, one.dataset), "method": one.network, "repetition": number}
        place |= {"attack": w.SMOOTHING, "denominator": w.CORRECT, "statistic": "sigma"}
        for (partition, level), value in one.sigmas(w.SMOOTHING, denominator=w.CORRECT).dropna().items():
            yield {**place, "partition": partition, "level": level, "value": float(value)}


def _over_folds(inputs: Inputs) -> Iterator[Fact]:
    """Yield ``sigma`` of every group of UTKFace over the folds, see :func:`study.over_folds`."""
    found = study.run(study.audited(inputs, FOLDS))
    for (partition, level), line in study.over_folds(inputs).iterrows():
        place = {**_place(found, FOLDS, w.UTKFACE), "method": found[0].network, "attack": w.EXACT}
        place |= {"partition": partition, "level": level, "denominator": w.PAPER, "statistic": "sigma"}
        yield {**place, "value": float(line["sigma"]), "error": float(line["error"])}


def _penalties(inputs: Inputs, block: str) -> Iterator[Fact]:
    """Yield the effects of the penalty in a block, on the published data and with the penalty as published.

    ``penalised_bias`` is whether the penalised group is significantly less robust without the penalty.
    ``penalty_gain`` is sigma of the group minus sigma without the penalty, above 0 if the penalty helps. It includes
    all groups: groups selected for a low sigma would improve by regression to the mean. ``penalty_cost`` is the loss of
    accuracy. Claims use the variation between networks, or between pairs of trainings with the same seeds. A weight
    alpha other than 1 is in the name of the statistic.
    """
    found = regularizer.penalised(inputs, block=block)
    number = 0
    for one in found:
        before = regularizer.without(one, found)
        published = one.dataset in w.PUBLISHED_IMAGES and not one.key.startswith(regularizer.VARIANTS)
        if not one.alpha or before is None or not published:
            continue
        effects = {
            "penalised_bias": float(regularizer.biased(before)),
            "penalty_gain": regularizer.sigma(one, one.penalised) - regularizer.sigma(before, one.penalised),
            "penalty_cost": before.accuracy - one.accuracy,
        }
        own = {"penalised_level": one.penalised[1], "tau": one.tau}
        place = {**_place([one], block, one.dataset), **own, "repetition": number}
        ending = "" if one.alpha == 1 else f"_{one.alpha:g}"
        for statistic, value in effects.items():
            if math.isfinite(value):
                yield {**place, "statistic": f"{statistic}{ending}", "value": float(value)}
        number += 1
