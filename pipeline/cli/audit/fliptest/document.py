"""The result of a FlipTest as a document. Layout of the JSON: ``docs/fliptest.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.audits.fliptest.transparency import AS_GROUP, NOISE
from pipeline.cli import words
from pipeline.cli.audit.fliptest import tables
from pipeline.cli.audit.fliptest.caveats import caveats
from pipeline.cli.audit.fliptest.evidence import FLIPSETS, Side
from pipeline.cli.audit.fliptest.measured import result
from pipeline.cli.audit.fliptest.model import Model
from pipeline.cli.audit.fliptest.space import Space
from pipeline.cli.document import (
    AuditDocument,
    Column,
    Facts,
    Figure,
    Row,
    Section,
    Table,
    Text,
    Verdict,
    drawn_by,
    rows_of,
)
from pipeline.cli.numbers import decimal, fixed, level, p_text, percent, plural, span
from pipeline.cli.verdict import concluded
from pipeline.messages import listed
from pipeline.transport.quality import WORST_HEALTHY_KS

SCHEMA = 2
SHOWN_LINES = 5
SHOWN_KS = 5
LINES = (
    "Mean of person minus counterpart, in standard deviations or in shares of a category, and of its sign with its "
    "rank; p (adjusted): whether these people shift otherwise than the whole group. "
    f"{NOISE.capitalize()}: the interval covers 0, or there is none. {AS_GROUP.capitalize()}: the shift is there, but "
    "is not shown to be other than everybody's: it does not tell who flips."
)
"""What a line of a transparency report says."""
TESTED = """
groups: {group}{back}
given: {given}
data: {rows:,} rows{left_out}; {features}{units}
model: {origin}; {output}, positive from {threshold:g} on ({told})
accuracy: {accuracy}
map: {name}{instead}: counterparts are {who}
"""
MOST_WITHOUT_IMAGE = 10
"""Per cent of the people; of more, those who have a counterpart do not speak for the rest."""
TRIVIAL = 0.5
"""The balanced accuracy of a model that always decides the same."""
LIMITS = f"""
worst_ks <= {WORST_HEALTHY_KS}: The map is poor: the Kolmogorov-Smirnov distance between counterparts and target group
  is {{value:.2f}} in a feature, and {{limit:g}} is the most that is trusted.
without_image <= {MOST_WITHOUT_IMAGE}: {{value:.0f}} % of the people have no finite image, more than {{limit:.0f}} %.
decisions >= 2: The model decides alike about all people and counterparts, so nobody can flip.
noise_floor <= 1: {{draws}} deals of the noise floor cannot tell flips from noise at level {{alpha:g}}: --null-draws
  {{enough}} can.
balanced_accuracy > {TRIVIAL}: The model's balanced accuracy is {{value:.3f}}, no better than the {{limit:g}} of a model
  that always decides the same.
"""
COUNT = fixed(0)
FIGURES = "pipeline.cli.audit.fliptest.figures"
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What was found in each direction between points of ``space``, by the ``model``.

    ``threshold_given``: whether the user said where decisions are cut. ``id_name`` is the column that names rows.
    """

    sides: tuple[Side, ...]
    space: Space
    model: Model
    alpha: float
    threshold_given: bool
    id_name: str | None


def document(found: Result, given: Mapping[str, Any]) -> AuditDocument:
    """The document; ``given`` says which data, model, map and parameters were given."""
    results = [result(side, found.space, found.alpha) for side in found.sides]
    facts: dict[str, Any] = {"results": results, **given}
    flips = found.sides[0].flips
    return AuditDocument(
        audit="fliptest",
        schema=SCHEMA,
        title="FlipTest",
        subject=f"{given['model']['given']} on {given['data']['path']}",
        verdict=verdict(facts, len(np.unique(np.concatenate([flips.decision, flips.decision_image]))), found.alpha),
        caveats=tuple(caveats(found)),
        sections=tuple(_sections(found, facts)),
        facts=facts,
        tables={"flipsets": tables.flipsets(found.sides, found.id_name), "transparency": tables.transparency(results)},
        libraries=("numpy", "torch") if found.model.raw.is_module else ("numpy",),
    )


def verdict(facts: Mapping[str, Any], decisions: int, alpha: float) -> Verdict:
    """Of the first direction, in which ``decisions`` (1 or 2) were made about people and counterparts."""
    first, floor = facts["results"][0], facts["results"][0]["noise"]
    nobody = not any(flipset["size"] for flipset in first["flipsets"].values())
    draws = 0 if floor is None else floor["draws"]
    beyond = floor is not None and bool(floor["beyond"])
    quantities = {
        "worst_ks": first["map"]["worst_ks"],
        "without_image": 100 * first["non_finite"] / (first["n_source"] + first["non_finite"]),
        "decisions": decisions,
        "noise_floor": None if nobody else 2 / (draws + 1) / alpha,
        **{"draws": draws, "alpha": alpha, "enough": math.ceil(2 / alpha - 1e-9) - 1},
        "balanced_accuracy": facts["balanced_accuracy"],
    }
    return concluded(
        Verdict(
            outcome="rejected" if beyond else "not rejected",
            headline="BEYOND NOISE" if beyond else "NOBODY FLIPS" if nobody else "WITHIN NOISE",
            sentence=first["sentence"],
            facts={"healthy_map": first["map"]["healthy"]},
        ),
        LIMITS,
        quantities,
        "beyond_noise",
    )


def _sections(found: Result, facts: Mapping[str, Any]) -> Iterator[Section]:
    yield Section("What was tested", (_tested(facts),))
    for number, (side, entry) in enumerate(zip(found.sides, facts["results"], strict=True)):
        # The sentence of the first direction is the verdict above.
        said = (Text(entry["sentence"]),) if number else ()
        yield Section(
            f"From {entry['source']} to {entry['target']}", (*said, _rates(entry), _sizes(entry, found.alpha))
        )
        yield Section("Who flips", (Text(_explained(entry)), *_figures(side, found)), where="page", below=True)
        for name in FLIPSETS:
            members = entry["flipsets"][name]["size"]
            if members:
                title = f"How the {members:,} of the {name} flipset differ from their counterparts"
                yield Section(title, (_report(entry["transparency"][name]), Text(LINES)), below=True)
        yield Section("How good the map is", (_quality(entry),), below=True)
        distances = (_distances(entry),)
        yield Section(f"Counterparts and {entry['target']}, feature by feature", distances, where="page", below=True)


def _tested(facts: Mapping[str, Any]) -> Facts:
    data, model, chosen = facts["data"], facts["model"], facts["map"]
    first, given, levels = facts["results"][0], data["given_label"], data["label_levels"]
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in data["left_out"].items() if count)
    restricted = [] if given is None else [f"{data['label']} is {levels[given]!r} (true label {given})"]
    return words.facts(
        TESTED,
        group=f"{data['group']}: {first['source']} mapped to {first['target']}",
        back=", and back" if len(facts["results"]) > 1 else "",
        given=restricted,
        rows=data["rows"],
        left_out=f", without {left_out}" if left_out else "",
        features=plural(len(data["features"]), "feature"),
        units=f"; in standard deviations: {listed(data['standardized'], 6)}" if data["standardized"] else "",
        **{name: model[name] for name in ("origin", "output", "threshold")},
        accuracy=[] if data["label"] is None else [_accuracy(facts)],
        told="as told" if model["threshold_given"] else "by default",
        name=chosen["name"],
        instead=f" (in place of {listed(chosen['poor'])}, which was poor)" if chosen["poor"] else "",
        who="people of the file" if first["map"]["real_people"] else "points, not people",
    )


def _accuracy(facts: Mapping[str, Any]) -> str:
    if facts["accuracy"] is None:
        return "unknown, since the label is not read as 0 and 1: --positive names its class 1"
    balanced = facts["balanced_accuracy"]
    return f"{facts['accuracy']:.3f}" + ("" if balanced is None else f", balanced {balanced:.3f}")


def _rates(found: Entry) -> Table:
    decided = found["positives"]
    counts = (
        (found["source"], found["n_source"], decided["source"]),
        ("their counterparts", found["n_source"], decided["counterparts"]),
        (found["target"], found["n_target"], decided["target"]),
    )
    rows = [Row((name, COUNT(people), COUNT(number), percent(number / people))) for name, people, number in counts]
    return Table((Column(""), Column("people"), Column("decided positively", "positive"), Column("share")), tuple(rows))


def _sizes(found: Entry, alpha: float) -> Table:
    floor = found["noise"]
    rows = []
    entries = [(f"{name} flipset", found["flipsets"][name], name) for name in FLIPSETS]
    for name, entry, key in [*entries, ("net", found["net"], "net")]:
        noise = (span(floor[key]["range"], COUNT),) if floor else ()
        rows.append(Row((name, COUNT(entry["size"]), percent(entry["share"]), span(entry["interval"], COUNT), *noise)))
    heads = ("", "size", "share", f"{level(alpha)} interval", *((f"{floor['draws']} deals alike",) if floor else ()))
    return Table(tuple(map(Column, heads)), tuple(rows))


def _explained(found: Entry) -> str:
    alike = (
        f" Deals alike: smallest and largest size between groups that {found['noise']['draws']} times were dealt at "
        "random from everybody, with a map of their own."
        if found["noise"]
        else ""
    )
    return (
        f"Positive flipset: decided positively, while the counterpart in {found['target']} is not. Negative flipset: "
        "the reverse. Net: positive less negative. Whether a positive decision is good for people is for the reader to "
        f"say. Intervals are for other people of the same population under the same map.{alike}"
    )


def _figures(side: Side, found: Result) -> Iterator[Figure]:
    direction = side.way.direction
    yield Figure(
        f"marginals_{direction}",
        "Marginals",
        f"How the people who flip are distributed, beside all of {side.way.source.level}. The features that lead the "
        "transparency reports, in their own units; the furthest tails are left out.",
        drawn_by(f"{FIGURES}:marginals", side, found.space),
    )
    yield Figure(
        f"transparency_{direction}",
        "Transparency report",
        "In which features those who flip differ from their counterparts. Left: the mean of person minus counterpart, "
        "in standard deviations, or in shares of a category. Right: the mean of its sign. Hatched, grey name: noise. "
        f"Pale: as the whole group. Lines: {level(found.alpha)} intervals.",
        drawn_by(f"{FIGURES}:transparency", side, found.space, found.alpha),
    )


def _report(report: Sequence[Entry]) -> Table:
    """All lines of a transparency report; features that the map does not move have no rank."""
    shift = fixed(2, "+")

    def rank(name: str) -> Callable[[Entry], str]:
        return lambda entry: "-" if entry[name] is None else COUNT(entry[name])

    def interval(name: str) -> Callable[[Entry], str]:
        return lambda entry: span((entry[f"{name}_ci_low"], entry[f"{name}_ci_high"]), fixed(2))

    columns = (
        Column("feature", "", cell=lambda entry: entry["feature"]),
        Column("rank by mean", where="page", cell=rank("rank_mean")),
        Column("mean shift, sd", "shift", cell=lambda entry: shift(entry["mean_shift"])),
        Column("interval", cell=interval("mean_shift")),
        Column("mean sign", "sign", cell=lambda entry: shift(entry["mean_sign"])),
        Column("its interval", where="page", cell=interval("mean_sign")),
        Column("the sign is", where="page", kind="text", cell=lambda entry: entry["mean_sign_standing"] or "-"),
        Column("rank by sign", "rank", cell=rank("rank_sign")),
        Column("p, adjusted", "p", cell=lambda entry: p_text(entry["mean_shift_p_adjusted"])),
        Column("the shift is", "that is", kind="text", cell=lambda entry: entry["mean_shift_standing"] or "-"),
        Column("shift, own units", where="page", cell=lambda entry: decimal(entry["mean_shift"] * entry["unit"])),
        Column("mean of the people", where="page", cell=lambda entry: decimal(entry["members_mean"])),
    )
    ranked = sum(entry["rank_mean"] is not None for entry in report)
    return Table(columns, rows_of(columns, report), min(SHOWN_LINES, ranked), file="transparency.csv")


def _quality(found: Entry) -> Facts:
    quality = found["map"]
    worst = ", ".join(f"{feature} {distance:.3f}" for feature, distance in _ordered(quality["ks"])[:SHOWN_KS])
    moved = f"L1 {quality['distance']:.2f} on average"
    if quality["compared"]:
        moved += (
            f"; for {quality['compared']} of them {quality['compared_distance']:.2f}, where exact transport needs "
            f"{quality['exact_distance']:.2f}"
        )
    fit = f"Kolmogorov-Smirnov distance to {found['target']}: {worst} (0 is best, above {WORST_HEALTHY_KS:g} is poor)"
    return Facts((("fit", fit), ("moved", moved)))


def _distances(found: Entry) -> Table:
    rows = [Row((feature, f"{distance:.3f}")) for feature, distance in _ordered(found["map"]["ks"])]
    return Table((Column("feature"), Column("Kolmogorov-Smirnov distance")), tuple(rows))


def _ordered(distances: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(distances.items(), key=lambda item: -item[1])
