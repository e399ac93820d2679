"""What the study's data, groups, features, maps and flipsets are called, and how each is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.report import departures
from pipeline.report.numbers import MINUS
from pipeline.report.style import MethodStyle, method_style

WGAN, EXACT, STOCHASTIC, COUNTERFACTUAL = "wgan", "exact", "stochastic", "counterfactual"
ENTROPIC = "entropic"
"""The project's own choice; the others are the paper's."""

MAPS = {
    EXACT: MethodStyle("exact transport", "#D55E00", "s", (0, (5, 1.5))),
    WGAN: MethodStyle("WGAN", "#0072B2", "o", "-"),
    STOCHASTIC: MethodStyle("stochastic (Seguy et al.)", "#00875F", "^", (0, (5, 1.5, 1, 1.5))),
    ENTROPIC: MethodStyle("entropic, debiased", "#8C5A2B", "X", (0, (3, 1, 1, 1, 1, 1))),
    COUNTERFACTUAL: MethodStyle("causal counterfactual", "#B5478F", "D", (0, (1, 1.2))),
}

EVERYONE, NEGATIVES, POSITIVES = "everyone", "negatives", "positives"
GIVEN = {EVERYONE: "", NEGATIVES: "ground-truth negatives", POSITIVES: "ground-truth positives"}
"""The true label that both groups are restricted to."""

POSITIVE, NEGATIVE = "positive", "negative"
FLIPSETS = {POSITIVE: "F+", NEGATIVE: f"F{MINUS}"}
FLIPSETS_DRAWN = {POSITIVE: "$F^+$", NEGATIVE: "$F^-$"}
COLORS = {POSITIVE: "#00875F", NEGATIVE: "#D55E00", "": "#9c8fc4"}
"""The positive flipset, the negative one, and the whole group."""

FORWARD, REVERSE = "forward", "reverse"

HIRING, SSL, LAW, ARRESTS, IDENTICAL, GAUSSIAN = "hiring", "ssl", "law", "arrests", "identical", "gaussian"
ADULT, COMPAS = "adult", "compas"

DATASETS = {
    HIRING: "Hiring",
    SSL: "Strategic Subject List",
    LAW: "Law school",
    ARRESTS: "Arrests",
    IDENTICAL: "Identical distributions",
    GAUSSIAN: "Normal distribution",
    ADULT: "Adult",
    COMPAS: "COMPAS",
}

GROUPS = {
    "Female": "women",
    "Male": "men",
    "BLK": "black subjects",
    "WHI": "white subjects",
    "Black": "black applicants",
    "White": "white applicants",
    "non-White": "non-white people",
    "African-American": "African-American people",
    "Caucasian": "Caucasian people",
}
OF_A_DATASET = {(ADULT, "White"): "white people"}

# How a favourable and an unfavourable (or high and low) decision is called, for women and the like.
DECISIONS = {
    HIRING: ("hired", "not hired"),
    SSL: ("high risk", "low risk"),
    ARRESTS: ("high risk", "low risk"),
    LAW: ("predicted above the median", "predicted below"),
    ADULT: ("income above 50,000", "below"),
    COMPAS: ("predicted to reoffend", "predicted not to"),
}

METHODS = {
    "given": "given rule",
    "given_proxy": "given rule, a proxy",
    "parity_constrained": "refitted (Zafar et al.)",
    "logistic": "logistic regression",
    "linear_regression": "linear regression",
    "svm": "RBF-SVM",
}

FEATURES = {
    SSL: {
        "age": "age at latest arrest",
        "shooting_victim": "victim of shooting",
        "battery_victim": "victim of battery or assault",
        "trend": "trend in activity",
        "weapon_arrests": "unlawful use of weapon",
    },
    LAW: {"UGPA": "GPA", "sex=Female": "female", "sex=Male": "male"},
}
"""Where a feature's own name is not what the paper calls it."""


def dataset_label(name: str) -> str:
    """``ssl`` -> ``Strategic Subject List``; a dataset that the study does not know goes by its own name."""
    return DATASETS.get(name, departures.DATASETS.get(name, name.replace("_", " ").capitalize()))


def map_style(transport: str) -> MethodStyle:
    """The style of a map; one that the paper does not have gets a spare style, chosen by its name alone."""
    if transport in MAPS:
        return MAPS[transport]
    spare = method_style(transport)
    return MethodStyle(transport.replace("_", " "), spare.color, spare.marker, spare.line)


def maps_in(found: Iterable[str]) -> list[str]:
    """The distinct maps in the fixed order of the study, others after them by name."""
    there = set(found)
    return [name for name in MAPS if name in there] + sorted(there - set(MAPS))


def method_label(method: str) -> str:
    """``given`` -> ``given rule``; the methods of other studies as they are called there."""
    return METHODS.get(method, method_style(method).label)


def group_label(level: str, dataset: str = "") -> str:
    """``Female`` -> ``women``; a level without words goes by its own name."""
    return OF_A_DATASET.get((dataset, level), GROUPS.get(level, level))


def flipset_label(dataset: str, flipset: str, source: str) -> str:
    """``women hired, counterparts not hired``: who is in a flipset."""
    favoured, other = DECISIONS.get(dataset, ("decided for", "decided against"))
    if flipset == NEGATIVE:
        favoured, other = other, favoured
    return f"{group_label(source, dataset)} {favoured}, counterparts {other}"


def feature_label(name: str, dataset: str) -> str:
    """What a feature is called in print: ``narcotic_arrests`` -> ``narcotic arrests``."""
    return FEATURES.get(dataset, {}).get(name, name.replace("_", " "))


def feature_named(label: str, names: Sequence[str], dataset: str) -> str:
    """The feature that is printed as ``label``. Raises ValueError where no feature, or more than one, is."""
    found = [name for name in names if feature_label(name, dataset) == label]
    if len(found) != 1:
        raise ValueError(
            f"expected one feature of {dataset!r} that is called {label!r}, found {found} among {list(names)}"
        )
    return found[0]
