"""What each attack says: the measures of every group under the keys of the JSON, and what follows from them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.audits.robustness_bias.inference import sigma_intervals, significance
from pipeline.audits.robustness_bias.measures import DENOMINATORS, Lengths, by_level, counted, curves
from pipeline.cli.audit.robustness_bias import Settings
from pipeline.cli.audit.robustness_bias.attacking import Chosen
from pipeline.cli.audit.robustness_bias.subjects import Subjects
from pipeline.cli.numbers import fixed, level, p_text, plain, span
from pipeline.cli.result import Outcome, Verdict
from pipeline.cli.words import INCONCLUSIVE, concluded
from pipeline.seeds import generators
from pipeline.types import Array

BOUNDS = {"upper": "upper bounds", "lower": "lower bounds of the smoothed model", "exact": "exact"}
WHOSE = {
    "paper": "all images of a group, those classified wrongly at distance 0",
    "correct": "the images classified correctly alone",
}
OTHER = {"paper": "correct", "correct": "paper"}
"""The denominator that a result is compared with."""
ALIKE = 1e-6
"""Radii that differ by a smaller share are the same."""
GRID = 101
"""Sizes of perturbations at which the JSON has the curves, from 0 to T."""
POOR = 0.5
"""Below this accuracy a curve says more of errors than of distances, and perhaps of a wrong input."""
MOST_FAILED = 10
"""Per cent of the attacks; where more fail, the distances that were found do not speak for the rest."""
MOST_SATURATED = 10
"""Per cent of the images; where the model is certain of more, there is no gradient to follow."""
MOST_AT_CEILING = 50
"""Per cent of the certified radii; where more are the largest one, no difference can be seen."""
LEAST_DISTANCES = 10
"""A group of fewer images that count is too small for its difference to be seen."""
LIMITS = f"""
accuracy >= {POOR}: Only {{percent:.0f}} % of the images are classified correctly, and distances of fewer than half of
  the images say little: see first whether that can be so.
gain > 0: The model classifies {{percent:.0f}} % of the images correctly, no more than {{trivial:.0f}} %, which is right
  of a model that always names the most frequent class.
failed <= {MOST_FAILED}: {{attack}} failed on {{value:.0f}} % of the images, more than {{limit:.0f}} %.
saturated <= {MOST_SATURATED}: The model's probability is exactly 0 or 1 in {{value:.0f}} % of the images, more than
  {{limit:.0f}} %: an attack has no gradient to follow there.
ceiling <= {MOST_AT_CEILING} unless rejected: {{value:.0f}} % of the certified radii are the largest that so many
  samples can certify: among these no difference can be seen.
fewest >= {LEAST_DISTANCES} unless rejected: A group has only {{value}} images that count, and needs {{limit:.0f}}.
least_p <= 1 unless rejected: {{permutations:,}} permutations cannot reject at level {{alpha:g}} in {{comparisons}}
  comparisons: --permutations {{enough}} can.
"""
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """What one attack says of the n points: ``distance`` (n,), NaN where there is none, as where the attack ``failed``.

    ``lengths`` are by denominator; ``entry`` holds the measures of all groups, as the JSON has them.
    """

    chosen: Chosen
    distance: Array
    failed: Array
    lengths: Mapping[str, Lengths]
    entry: Entry


def measured(chosen: Chosen, distance: Array, subjects: Subjects, asked: Settings) -> Measured:
    """The measures of all groups by these distances (n,).

    Intervals and p-values of all attacks and denominators are of the same resamples and permutations of the seed. What
    does not exist is null.
    """
    correct, partitions = subjects.correct, subjects.points.partitions
    failed = correct & np.isnan(distance)
    lengths = {name: counted(distance, correct, name) for name in DENOMINATORS}
    budget = asked.budget if asked.budget is not None else lengths["correct"].longest
    levels: list[list[dict[str, Any]]] = [
        [
            {"level": name, "images": one.sum(), "n_correct": (correct & one).sum(), "failed": (failed & one).sum()}
            for name, one in ((name, partition.codes == place) for place, name in enumerate(partition.levels))
        ]
        for partition in partitions
    ]
    for denominator, own in lengths.items():
        resampling, permuting = (
            generators("audit", "robustness", what, str(asked.seed), repetitions=1)[0] for what in ("sigma", "p")
        )
        intervals = sigma_intervals(own, partitions, budget, asked.bootstraps, asked.alpha, resampling)
        tests = significance(own, partitions, budget, asked.permutations, permuting)
        for partition, entries, interval, test in zip(partitions, levels, intervals, tests, strict=True):
            measures = by_level(own, partition, budget)
            for place, entry in enumerate(entries):
                inside, outside = (own.length[own.counts & members] for members in partition.element(place))
                entry[denominator] = {
                    "n": measures.n[place],
                    "mean": inside.mean() if len(inside) else None,
                    "mean_of_others": outside.mean() if len(outside) else None,
                    "median": np.median(inside) if len(inside) else None,
                    "auc": measures.area[place],
                    "sigma": measures.sigma[place],
                    "interval": interval[:, place],
                    "p": test.p[place],
                    "p_adjusted": test.adjusted[place],
                    **curves(own, partition, place, budget, GRID),
                }
    known = distance[correct & ~failed]
    found = {
        "attack": chosen.name,
        "bound": chosen.bound,
        "settings": dict(chosen.settings),
        "images": len(correct),
        "n_correct": correct.sum(),
        "failed": failed.sum(),
        "budget": budget,
        "mean_distance": known.mean() if len(known) else None,
        "median_distance": np.median(known) if len(known) else None,
        "partitions": [
            {"name": one.name, "unknown": (one.codes < 0).sum(), "levels": entries}
            for one, entries in zip(partitions, levels, strict=True)
        ],
    }
    return Measured(chosen, distance, failed, lengths, plain(found))


def settings_text(found: Entry) -> str:
    """``deepfool: steps 100, candidates 10, ...``: the attack with its settings, as every output is stamped."""
    told = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in found["settings"].items())
    return f"{found['attack']}: {told}" if told else str(found["attack"])


def at_ceiling(radii: Array) -> float:
    """The share of certified radii (n,) that are the largest one."""
    return float((radii >= (1 - ALIKE) * radii.max()).mean())


def verdict(first: Measured, subjects: Subjects, asked: Settings) -> Verdict:
    """Which groups are closer to the boundary or farther from it, by the first attack and the chosen denominator.

    Of the quantities of LIMITS, those that need true classes are None without them.
    """
    found, label, alpha = first.entry, subjects.points.label, asked.alpha
    count, known = found["images"], first.distance[np.isfinite(first.distance)]
    trivial = None if label is None else float(np.unique(label, return_counts=True)[1].max() / count)
    accuracy = None if label is None else found["n_correct"] / count
    comparisons = sum(len(np.unique(one.comparisons)) for one in subjects.points.partitions)
    levels = [one for partition in found["partitions"] for one in partition["levels"]]
    quantities = {
        "accuracy": accuracy,
        "gain": None if accuracy is None or trivial is None else accuracy - trivial,
        "percent": None if accuracy is None else 100 * accuracy,
        "trivial": None if trivial is None else 100 * trivial,
        "attack": found["attack"],
        "failed": 100 * found["failed"] / max(1, found["n_correct"]),
        "saturated": 100 * subjects.classifier.saturated / count,
        "ceiling": 100 * at_ceiling(known) if found["bound"] == "lower" and len(known) else None,
        "fewest": min(one[asked.denominator]["n"] for one in levels),
        "least_p": comparisons / (asked.permutations + 1) / alpha,
        **{"permutations": asked.permutations, "alpha": alpha, "comparisons": comparisons},
        "enough": math.ceil(comparisons / alpha - 1e-9) - 1,
    }
    return concluded(conclusion(found, asked.denominator, alpha, label is not None), LIMITS, quantities, "biased")


@dataclass(frozen=True)
class Group:
    """A level of a partition in a comparison: what is its ``own`` by the chosen denominator, and by the ``other``."""

    partition: str
    level: str
    own: Entry
    other: Entry

    @property
    def title(self) -> str:
        """``sex = female``."""
        return f"{self.partition} = {self.level}"

    @property
    def sigma(self) -> float:
        """sigma, 0 where there is none."""
        return 0.0 if self.own["sigma"] is None else float(self.own["sigma"])

    def numbers(self, alpha: float) -> str:
        """sigma with its interval, its p-value and the number of images."""
        return (
            f"sigma {self.sigma:+.2f}, {level(alpha)} interval {span(self.own['interval'], fixed(2, '+'))}, adjusted p "
            f"{p_text(self.own['p_adjusted'])}, n = {self.own['n']:,}"
        )


def groups(found: Entry, denominator: str) -> Iterator[Group]:
    """The level of every comparison: of two levels only the closer one, the other being its mirror image."""
    for partition in found["partitions"]:
        every = [
            Group(partition["name"], one["level"], one[denominator], one[OTHER[denominator]])
            for one in partition["levels"]
        ]
        yield from sorted(every, key=lambda group: group.sigma)[:1] if len(every) == 2 else every


def conclusion(found: Entry, denominator: str, alpha: float, labelled: bool) -> Verdict:
    """What the tests say, whatever they are worth."""
    everyone = sorted(groups(found, denominator), key=lambda group: group.sigma)
    # A group whose others all have distance 0 has a test and no sigma: it is those others that are named.
    tested = [one for one in everyone if one.own["p_adjusted"] is not None and one.own["sigma"] is not None]
    shown = [one for one in tested if one.own["p_adjusted"] <= alpha]
    outcome: Outcome = "inconclusive" if not tested else "rejected" if shown else "not rejected"
    named = [(one.sigma, {"partition": one.partition, "level": one.level}) for one in shown]
    facts = {
        "attack": found["attack"],
        "denominator": denominator,
        "closer": [name for sigma, name in named if sigma < 0],
        "farther": [name for sigma, name in named if sigma > 0],
    }
    headline = {"rejected": "ROBUSTNESS BIAS", "not rejected": "NO BIAS SHOWN"}.get(outcome, INCONCLUSIVE)
    if not tested:
        said = (
            "No group could be tested: too few distances, or all of them equal. Look at the failed attacks and the "
            "model's accuracy below."
        )
    elif not shown:
        largest = max(tested, key=lambda group: abs(group.sigma))
        said = (
            "No group is shown to be closer to the decision boundary than the others. The largest difference is that "
            f"of {largest.title}: {largest.numbers(alpha)}. What {found['images']:,} images do not show "
            "may still be there."
        )
    else:
        first, *others = shown if shown[0].sigma < 0 else shown[::-1]
        change = "certified radii" if found["bound"] == "lower" else "distances"
        place, than = ("closer to", "smaller") if first.sigma < 0 else ("farther from", "larger")
        said = (
            f"Images of {first.title} are {place} the decision boundary: their {change} are "
            f"{100 * abs(first.sigma):.0f} % {than} than those of the others, mean {first.own['mean']:.3g} against "
            f"{first.own['mean_of_others']:.3g} ({first.numbers(alpha)})."
        )
        said += f" {_otherwise(first, denominator, alpha)}" if labelled else ""
        if others:
            told = ", ".join(f"{one.title} ({one.sigma:+.2f})" for one in others[:3])
            said += f" Also: {told}{f' and {len(others) - 3} more groups' if len(others) > 3 else ''}."
    return Verdict(outcome, headline, said, facts)


def _otherwise(group: Group, denominator: str, alpha: float) -> str:
    """The same group under the other denominator: how much of it is accuracy."""
    other, p = group.other["sigma"], group.other["p_adjusted"]
    whose = (
        "Images classified wrongly count as distance 0; of those classified correctly alone"
        if denominator == "paper"
        else "Of all images, those classified wrongly counting as distance 0,"
    )
    if other is None:
        return f"{whose} there is no sigma."
    same = other * group.sigma > 0
    verb = "has the opposite sign:" if not same else "is" if p is not None and p <= alpha else "is not shown: it is"
    return f"{whose} sigma {verb} {other:+.2f} (adjusted p {p_text(p)})."
