"""The networks of section 9, trained with a penalty on robustness bias: which there are, and which answers to which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import study
from pipeline.report.robustness_bias.study import Audited

VARIANTS = "regularizer_variants"
"""Blocks that begin so hold networks that differ in the penalty's distance, not in its weight alone."""
FORMS = {
    ("logit", False): "logit, as coded",
    ("logit", True): "logit, second order",
    ("margin", False): "margin",
    ("margin", True): "margin, second order",
}

OF_DISTANCE = ("tau", "distance", "second_order", "scale")
"""Settings that have no effect where the weight is 0."""


@dataclass(frozen=True)
class Penalised:
    """A network with its penalty: weight, threshold, form of the distance, and the group that it is for."""

    audited: Audited
    alpha: float
    tau: float
    form: str
    partition: str
    level: str

    @property
    def group(self) -> tuple[str, str]:
        """The partition and the level."""
        return self.partition, self.level


def penalised(inputs: Inputs, dataset: str = "") -> list[Penalised]:
    """Every penalised network that was run, by data set, network, group (first without a penalty), form and weights.

    A network of several blocks is there once: without a penalty its form and its threshold tell no two apart.
    """
    found: list[Penalised] = []
    for one in study.run(study.audited(inputs, study.REGULARIZER, dataset)):
        method = one.method
        partition = method["penalised_partition"] or one.result.rows["partition"].loc[lambda names: names != ""].iloc[0]
        form = FORMS[method["distance"], bool(method["second_order"])]
        weights = float(method["alpha"]), float(method["tau"])
        found.append(Penalised(one, *weights, form, str(partition), str(method["penalised_level"])))
    found = _once(found)
    networks = w.networks_in(one.audited.network for one in found)
    return sorted(
        found,
        key=lambda one: (
            w.datasets_in([one.audited.dataset, *w.IMAGES]).index(one.audited.dataset),
            networks.index(one.audited.network),
            one.group,
            one.alpha > 0,
            list(FORMS.values()).index(one.form),
            one.tau,
            one.alpha,
        ),
    )


def _once(found: Sequence[Penalised]) -> list[Penalised]:
    """One of each training; of those alike the one of the block that has all weights, as curves are drawn of it."""
    kept: dict[str, Penalised] = {}
    for one in sorted(found, key=lambda one: one.audited.key.startswith(VARIANTS)):
        kept.setdefault(repr((one.audited.data, sorted(_telling(one).items()))), one)
    return list(kept.values())


def _telling(one: Penalised) -> dict[str, object]:
    """The settings that make one training another: without a penalty none of its own."""
    settings = {**one.audited.method, "penalised_partition": one.partition}
    return settings if one.alpha else {key: value for key, value in settings.items() if key not in OF_DISTANCE}


def without(one: Penalised, among: Sequence[Penalised]) -> Penalised | None:
    """The same network trained without a penalty, if there is one; of several the one for the same group."""
    same = [
        other
        for other in among
        if other.alpha == 0
        and (other.audited.dataset, other.audited.network) == (one.audited.dataset, one.audited.network)
    ]
    return next((other for other in same if other.group == one.group), same[0] if same else None)


def by_weight(found: Sequence[Penalised], network: str) -> dict[tuple[str, str], list[Penalised]]:
    """For each penalised group the networks of one architecture that differ in the weight alone, rising."""
    sets: dict[tuple[str, str], list[Penalised]] = {}
    for one in found:
        if one.audited.network == network and not one.audited.key.startswith(VARIANTS):
            sets.setdefault(one.group, []).append(one)
    return sets
