"""What each attack says: the measures of every group, as numbers under the keys of the JSON, and what follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.audits.robustness_bias.intervals import sigma_intervals
from pipeline.audits.robustness_bias.lengths import DENOMINATORS, Lengths, counted
from pipeline.audits.robustness_bias.measures import ByLevel, by_level, survival
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.audits.robustness_bias.significance import Significance, significance
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
OTHER = {"paper": "correct", "correct": "paper"}
"""The denominator that a result is compared with."""
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """One partition under one denominator: measures (L,), the ends of sigma's ``interval`` (2, L), and its test."""

    measures: ByLevel
    interval: Array
    test: Significance


@dataclass(frozen=True)
class Evidence:
    """What one attack says of the n points: ``distance`` (n,), NaN where there is none.

    ``budget`` is T, NaN without any distance. ``lengths`` by denominator, ``compared`` by denominator and place of
    the partition.
    """

    chosen: Chosen
    distance: Array
    failed: Array
    budget: float
    lengths: Mapping[str, Lengths]
    compared: Mapping[str, Sequence[Compared]]


def gather(
    chosen: Chosen, distance: Array, correct: Array, partitions: Sequence[Partition], settings: Settings
) -> Evidence:
    """The measures of all groups by these distances (n,) of points that are classified correctly or not, (n,).

    Intervals and p-values of all attacks and denominators are of the same resamples and permutations of the seed.
    """
    lengths = {name: counted(distance, correct, name) for name in DENOMINATORS}
    budget = settings.budget if settings.budget is not None else lengths["correct"].longest
    return Evidence(
        chosen=chosen,
        distance=distance,
        failed=correct & np.isnan(distance),
        budget=budget,
        lengths=lengths,
        compared={name: _compared(lengths[name], partitions, budget, settings) for name in DENOMINATORS},
    )


def _compared(lengths: Lengths, partitions: Sequence[Partition], budget: float, settings: Settings) -> list[Compared]:
    resampling, permuting = (
        generators("audit", "robustness", what, str(settings.seed), repetitions=1)[0] for what in ("sigma", "p")
    )
    intervals = sigma_intervals(lengths, partitions, budget, settings.bootstraps, settings.alpha, resampling)
    tests = significance(lengths, partitions, budget, settings.permutations, permuting)
    return [
        Compared(by_level(lengths, partition, budget), interval, test)
        for partition, interval, test in zip(partitions, intervals, tests, strict=True)
    ]


def settings_text(found: Entry) -> str:
    """``deepfool: steps 100, candidates 10, ...``: the attack with its settings, as every output is stamped."""
    told = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in found["settings"].items())
    return f"{found['attack']}: {told}" if told else str(found["attack"])


def result(evidence: Evidence, subjects: Subjects) -> dict[str, Any]:
    """What one attack found: of all images, and of the levels of each partition; what does not exist is null."""
    correct = subjects.correct
    known = evidence.distance[correct & ~evidence.failed]
    return plain(  # type: ignore[no-any-return]
        {
            "attack": evidence.chosen.name,
            "bound": evidence.chosen.bound,
            "settings": dict(evidence.chosen.settings),
            "images": len(correct),
            "n_correct": correct.sum(),
            "failed": evidence.failed.sum(),
            "budget": evidence.budget,
            "mean_distance": _some(np.mean, known),
            "median_distance": _some(np.median, known),
            "partitions": [
                {
                    "name": partition.name,
                    "unknown": (partition.codes < 0).sum(),
                    "levels": [_level(evidence, correct, place, partition, level) for level in range(len(partition))],
                }
                for place, partition in enumerate(subjects.points.partitions)
            ],
        }
    )


def _some(statistic: Callable[[Array], Any], values: Array) -> Any:
    return statistic(values) if len(values) else None


def _level(evidence: Evidence, correct: Array, place: int, partition: Partition, level: int) -> dict[str, Any]:
    inside = partition.element(level)[0]
    entry: dict[str, Any] = {
        "level": partition.levels[level],
        "images": inside.sum(),
        "n_correct": (correct & inside).sum(),
        "failed": (evidence.failed & inside).sum(),
    }
    for denominator in DENOMINATORS:
        compared, lengths = evidence.compared[denominator][place], evidence.lengths[denominator]
        own, outside = (lengths.length[lengths.counts & members] for members in partition.element(level))
        entry[denominator] = {
            "n": compared.measures.n[level],
            "mean": _some(np.mean, own),
            "mean_of_others": _some(np.mean, outside),
            "median": _some(np.median, own),
            "auc": compared.measures.area[level],
            "sigma": compared.measures.sigma[level],
            "interval": compared.interval[:, level],
            "p": compared.test.p[level],
            "p_adjusted": compared.test.adjusted[level],
            **_curve(lengths, partition, level, evidence.budget),
        }
    return entry


def _curve(lengths: Lengths, partition: Partition, level: int, budget: float) -> dict[str, Any]:
    """I_P, that of the others and the largest RB; RB changes only where one of the curves does."""
    inside, outside = partition.element(level)
    if not np.isfinite(budget):
        return {"curve": None, "largest_bias": None}
    steps = np.unique(np.concatenate([np.zeros(1), lengths.upto(budget)[lengths.counts & (inside | outside)]]))
    bias = np.abs(survival(lengths, inside, steps) - survival(lengths, outside, steps))
    largest = int(np.argmax(bias)) if np.isfinite(bias).all() else None
    tau = np.linspace(0, budget, GRID)
    return {
        "largest_bias": None if largest is None else {"tau": steps[largest], "value": bias[largest]},
        "curve": {
            "tau": tau,
            "group": survival(lengths, inside, tau),
            "others": survival(lengths, outside, tau),
        },
    }


def verdict(found: Entry, evidence: Evidence, subjects: Subjects, settings: Settings) -> Verdict:
    """Which groups are closer to the boundary or farther from it, by the first attack and the chosen denominator."""
    made = conclusion(found, settings.denominator, settings.alpha, subjects.points.label is not None)
    return concluded(made, LIMITS, quantities(found, evidence, subjects, settings), "biased")


def conclusion(found: Entry, denominator: str, alpha: float, labelled: bool) -> Verdict:
    """What the tests say, whatever they are worth."""
    everyone = sorted(groups(found, denominator), key=lambda pair: _sigma(pair[1], denominator))
    # A group whose others all have distance 0 has a test and no sigma: it is those others that are named.
    own = [(pair, pair[1][denominator]) for pair in everyone]
    tested = [pair for pair, found in own if found["p_adjusted"] is not None and found["sigma"] is not None]
    shown = [pair for pair in tested if pair[1][denominator]["p_adjusted"] <= alpha]
    outcome: Outcome = "inconclusive" if not tested else "rejected" if shown else "not rejected"
    facts = {
        "attack": found["attack"],
        "denominator": denominator,
        "closer": [_named(pair) for pair in shown if _sigma(pair[1], denominator) < 0],
        "farther": [_named(pair) for pair in shown if _sigma(pair[1], denominator) > 0],
    }
    headline = {"rejected": "ROBUSTNESS BIAS", "not rejected": "NO BIAS SHOWN"}.get(outcome, INCONCLUSIVE)
    said = sentence(found, denominator, alpha, labelled, shown, tested)
    return Verdict(outcome, headline, said, facts)


def quantities(found: Entry, evidence: Evidence, subjects: Subjects, settings: Settings) -> dict[str, Any]:
    """What the LIMITS are of; those that need true classes are None without them."""
    denominator, alpha, permutations = settings.denominator, settings.alpha, settings.permutations
    label, count, partitions = subjects.points.label, found["images"], subjects.points.partitions
    trivial = None if label is None else float(np.unique(label, return_counts=True)[1].max() / count)
    accuracy = None if label is None else found["n_correct"] / count
    known = evidence.distance[np.isfinite(evidence.distance)]
    comparisons = sum(len(np.unique(one.comparisons)) for one in partitions)
    return {
        "accuracy": accuracy,
        "gain": None if accuracy is None or trivial is None else accuracy - trivial,
        "percent": None if accuracy is None else 100 * accuracy,
        "trivial": None if trivial is None else 100 * trivial,
        "attack": found["attack"],
        "failed": 100 * found["failed"] / max(1, found["n_correct"]),
        "saturated": 100 * subjects.classifier.saturated / count,
        "ceiling": 100 * at_ceiling(known) if found["bound"] == "lower" and len(known) else None,
        "fewest": min(level[denominator]["n"] for one in found["partitions"] for level in one["levels"]),
        "least_p": comparisons / (permutations + 1) / alpha,
        **{"permutations": permutations, "alpha": alpha, "comparisons": comparisons},
        "enough": math.ceil(comparisons / alpha - 1e-9) - 1,
    }


def at_ceiling(radii: Array) -> float:
    """The share of certified radii (n,) that are the largest one."""
    return float((radii >= (1 - ALIKE) * radii.max()).mean())


def groups(found: Entry, denominator: str) -> Iterator[tuple[Entry, Entry]]:
    """Partition and level of every comparison: of two levels only the closer one, the other being its mirror image."""
    for partition in found["partitions"]:
        levels = partition["levels"]
        if len(levels) == 2:
            levels = sorted(levels, key=lambda entry: _sigma(entry, denominator))[:1]
        for entry in levels:
            yield partition, entry


def sentence(
    found: Entry,
    denominator: str,
    alpha: float,
    labelled: bool,
    shown: Sequence[tuple[Entry, Entry]],
    tested: Sequence[tuple[Entry, Entry]],
) -> str:
    """What was found, in plain sentences."""
    if not tested:
        return (
            "No group could be tested: too few distances, or all of them equal. Look at the failed attacks and the "
            "model's accuracy below."
        )
    if not shown:
        pair = max(tested, key=lambda pair: abs(_sigma(pair[1], denominator)))
        return (
            "No group is shown to be closer to the decision boundary than the others. The largest difference is that "
            f"of {title(pair)}: {_numbers(pair[1], denominator, alpha)}. What {found['images']:,} images do not show "
            "may still be there."
        )
    first, *others = shown if _sigma(shown[0][1], denominator) < 0 else shown[::-1]
    said = f"{_how_far(found, first, denominator)} ({_numbers(first[1], denominator, alpha)})."
    if labelled:
        said += f" {_otherwise(first[1], denominator, alpha)}"
    if others:
        told = [f"{title(pair)} ({_sigma(pair[1], denominator):+.2f})" for pair in others[:3]]
        more = f" and {len(others) - 3} more groups" if len(others) > 3 else ""
        said += f" Also: {', '.join(told)}{more}."
    return said


def title(pair: tuple[Entry, Entry]) -> str:
    """``sex = female``."""
    return f"{pair[0]['name']} = {pair[1]['level']}"


def _how_far(found: Entry, pair: tuple[Entry, Entry], denominator: str) -> str:
    own = pair[1][denominator]
    change = "certified radii" if found["bound"] == "lower" else "distances"
    closer = _sigma(pair[1], denominator) < 0
    place = "closer to" if closer else "farther from"
    return (
        f"Images of {title(pair)} are {place} the decision boundary: their {change} "
        f"are {100 * abs(_sigma(pair[1], denominator)):.0f} % {'smaller' if closer else 'larger'} than those of the "
        f"others, mean {own['mean']:.3g} against {own['mean_of_others']:.3g}"
    )


def _numbers(entry: Entry, denominator: str, alpha: float) -> str:
    own = entry[denominator]
    return (
        f"sigma {own['sigma']:+.2f}, {level(alpha)} interval {span(own['interval'], fixed(2, '+'))}, adjusted p "
        f"{p_text(own['p_adjusted'])}, n = {own['n']:,}"
    )


def _otherwise(entry: Entry, denominator: str, alpha: float) -> str:
    """The same group under the other denominator: how much of it is accuracy."""
    other = OTHER[denominator]
    own = entry[other]
    whose = (
        "Images classified wrongly count as distance 0; of those classified correctly alone"
        if other == "correct"
        else "Of all images, those classified wrongly counting as distance 0,"
    )
    if own["sigma"] is None:
        return f"{whose} there is no sigma."
    same = own["sigma"] * (entry[denominator]["sigma"] or 0) > 0
    shown = own["p_adjusted"] is not None and own["p_adjusted"] <= alpha
    verb = "is" if same and shown else "is not shown: it is" if same else "has the opposite sign:"
    return f"{whose} sigma {verb} {own['sigma']:+.2f} (adjusted p {p_text(own['p_adjusted'])})."


def _sigma(level: Entry, denominator: str) -> float:
    value: float | None = level[denominator]["sigma"]
    return 0.0 if value is None else value


def _named(pair: tuple[Entry, Entry]) -> dict[str, str]:
    return {"partition": pair[0]["name"], "level": pair[1]["level"]}
