"""From the settings of a FlipTest to its result. Layout of the JSON: ``docs/guide/fliptest.md``."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.fliptest.brief import brief
from fairness_audits.audits.fliptest.compute import DirectionResult, gather_sound
from fairness_audits.audits.fliptest.flipsets import FLIPSETS
from fairness_audits.audits.fliptest.maps import candidates, fewest_draws, null_draws, refits
from fairness_audits.audits.fliptest.measured import everybody, flipsets, result, scaled, transparency
from fairness_audits.audits.fliptest.model import PROBABILITY, WANTED, Trial, probed
from fairness_audits.audits.fliptest.people import Groups, read_groups, space_of
from fairness_audits.audits.fliptest.settings import Settings
from fairness_audits.audits.fliptest.transparency import NOISE
from fairness_audits.inputs.model import Model, load_model, taken_columns
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import TORCH, coded, noted, predictor
from fairness_audits.inputs.probe import model_facts
from fairness_audits.inputs.table import Source
from fairness_audits.messages import SHOWN, listed
from fairness_audits.options import stated
from fairness_audits.results import sentences as words
from fairness_audits.results.formats import as_typed, fixed, level, percent, plain, span
from fairness_audits.results.result import (
    Column,
    Facts,
    Figure,
    Result,
    Row,
    Section,
    Table,
    Text,
    Verdict,
    rows_of,
    under,
)
from fairness_audits.tables.levels import in_order, level_name
from fairness_audits.tables.typed import numbers_as_text
from fairness_audits.transport.quality import WORST_HEALTHY_KS

SHOWN_LINES = 5
SHOWN_KS = 5
LINES = (
    "The mean of person minus counterpart, in the feature's own unit or in shares of a category, and the mean of "
    f"its sign with its rank. Lines are ordered by the shift in standard deviations. {NOISE.capitalize()}: the "
    "interval covers 0, or there is no interval. A shift that stands out may be a shift of the whole group."
)
"""Legend of a line in a transparency report."""
LIMITS = f"""
worst_ks <= {WORST_HEALTHY_KS}: The map is poor: the Kolmogorov-Smirnov distance between counterparts and target group
  is {{value:.2f}} in {{where}} (limit: {{limit:g}}).
unseen <= 0: The costs of {{columns}} are lost in rounding, because other columns have a much larger scale, so
  counterparts are arbitrary in {{columns}}. Measure all columns in standard deviations with --standardize=continuous,
  or exclude the large columns with --drop.
held_out <= 1: No map is good enough for people outside its fit: the best of {{tried}} has a Kolmogorov-Smirnov distance
  of {{held[ks]:.2f}} on held-out people (limit: {{held[limit]:.2f}}).
without_image <= 10: {{value:.3g}} % of the people have no finite counterpart (limit: {{limit:.0f}} %).
decisions >= 2: The model makes the same decision about all people of the source group and their counterparts, so nobody
  flips.
noise_floor <= 1: The number of random splits ({{draws}}) is too small to tell flips from noise at level {{alpha:g}}.
  Use --null-draws={{enough}}.
balanced_accuracy > 0.5: The model's balanced accuracy is {{value:.3f}}, no better than the {{limit:g}} of a model with
  a constant decision.
"""
COUNT = fixed(0)
FIGURES = "fairness_audits.audits.fliptest.figures"
Entry = Mapping[str, Any]
# Conditions and texts of the caveats.
CAVEATS = """
flips_are_to_be_read: A flip is not yet discrimination. The features in which a flipset differs from its counterparts
  may justify the difference, or may themselves be unjust. FlipTest shows whom to look at, and in which features.
poor_map: The map {where} is poor, because counterparts are not distributed like {target}: the Kolmogorov-Smirnov
  distance is above {most:g} in {named}. Flips may come from this. Try another map, or other settings of this map
  (--map-setting).
no_image: People of {source} without a finite counterpart are excluded: {missing:,}.
smooth_map: Counterparts are points of a smooth map, not people of the file.{snapped}
exact_map: The map is exact, but only for these rows. It pairs everybody with people of the file. It therefore
  usually finds more flips than a smooth map, and more of them arise by chance.
missing_values: Values are missing in {missing}. The model receives the missing values. For the map, a missing number is
  replaced by the mean of both groups, and an extra feature says that it is missing.
unmoved_columns: Each group has a single value in {unmoved}. Counterparts have the value of the target group, so flips
  may come from the model's direct use of these columns.
numbers_as_text: Column {column!r} is read as a category because it holds text, but {numbers} look like numbers. Convert
  it to numbers, or name it in --categorical if its values are codes.
unread_label: The label holds {values} instead of 0 and 1, so the accuracy is unknown. Name the
  value that counts as 1 (--positive).
no_noise_floor: The intervals ignore the noise of the map. --null-draws={draws} shows how many flips the map makes by
  itself; it fits {draws} more maps for each direction.
no_refits: Another fit of the map gives other counterparts, so one fit does not identify people reliably. --refits=10
  shows whose flips are stable; it fits 10 more maps for each direction.
blind: The model does not see a column that names the group, so changing the group alone changes no decision. FlipTest
  can still find people, because other features may be related to the group: counterparts then have other
  values of these features.
attribute_alone: Changing only {columns} from {source} to {target} changes the decision about {changed:,} of {people:,}
  people (positive decisions lost: {positive:,}, gained: {negative:,}). FlipTest's counterparts also differ in other
  features.
predict_decides: The model's own predict makes the decisions. It differs from {cut} in {count:,} of {rows:,} rows.
  Scores only rank people here; with --threshold=T they make the decisions.
threshold_decides: --threshold={threshold} makes the decisions. They differ from the model's own predict in {count:,}
  of {rows:,} rows. Without --threshold, predict makes the decisions.
read_as_probabilities: All outputs lie between 0 and 1, so they were read as probabilities, with a threshold of 0.5. Use
  --threshold for another one.
"""


def from_files(settings: Settings) -> Result:
    """Run the audit from its settings. Raises InvalidInput for everything that the user can correct."""
    source = Source.read(settings.data, **settings.some("text", "missing", "separator"))
    with load_model(settings.predict, settings.trust_pickle, Computing.of(settings), "--predict", WANTED) as model:
        return audited(settings, source, model)


def audited(settings: Settings, source: Source, model: Model) -> Result:
    """Map one group to the other, evaluate the model on people and counterparts, and build the result."""
    settings = replace(settings, features=taken_columns(settings.features, settings.label, source, model))
    settings = with_positive(settings, source, model)
    if settings.label in source.table:
        model = model.of_labels(source.table[settings.label].dropna().unique().tolist())
    groups = read_groups(source, settings)
    raw = predictor(model, source.inputs(list(groups.source.features)), Computing.of(settings))
    if (known := with_positive(settings, source, raw.model)) != settings:
        settings, groups = known, read_groups(source, known)
    codes = coded(raw, settings.categorical)
    source = noted(source, raw, settings.categorical, codes)
    space = space_of(groups, settings, codes, source.name)
    first, second = (replace(one, features=space.prepared(one.features)) for one in (groups.source, groups.target))
    groups = replace(groups, source=first, target=second)
    sizes = (len(first.rows), len(second.rows))
    kinds = [(kind, null_draws(settings, kind), refits(settings, kind)) for kind in candidates(settings, sizes)]
    trial = probed(raw, pd.concat([first.features, second.features]), settings, source.name)
    sides, used, tried = gather_sound(groups, space, trial, kinds, settings)
    kind = kinds[used][0]
    results = [result(side, of_label(settings)) for side in sides]
    accuracy = balanced = None
    if first.label is not None and second.label is not None:
        label = np.concatenate([first.label, second.label])
        right = trial.decisions == label
        by_class = [float(right[label == one].mean()) for one in (0, 1) if (label == one).any()]
        accuracy, balanced = float(right.mean()), sum(by_class) / 2 if len(by_class) == 2 else None
    facts: dict[str, Any] = {
        "results": results,
        **{"accuracy": accuracy, "balanced_accuracy": balanced},
        "data": {
            "sha256": source.sha256,
            "rows": len(source.table),
            "left_out": dict(groups.left_out),
            "features": list(space.names),
            "columns": list(space.labels),
            "standardized": list(space.standardized),
            "unmoved": list(space.unmoved),
            "label_levels": None if groups.label_levels is None else list(groups.label_levels),
        },
        "model": {**model_facts(model), **read_as(trial)},
        "map": {
            "name": kind.name,
            "poor": [name for name in tried if name != kind.name],
            "held_out": {name: plain({"ks": one.ks, "limit": one.limit}) for name, one in tried.items()},
            "settings": dict(kind.settings),
        },
    }
    flips = sides[0].found.flips
    decided = len(np.unique(np.concatenate([flips.decision, flips.decision_image])))
    found = verdict(facts, decided, settings.alpha)
    return Result(
        audit="fliptest",
        title="FlipTest",
        subject=f"{model.name} on {source.name}",
        verdict=found,
        brief=brief(facts, found, settings.alpha, of_label(settings)),
        caveats=(
            *words.caveats(CAVEATS, conditions(sides, trial, settings) | unread_label(source, groups, settings)),
            *words.caveats(words.READING, source.notes),
        ),
        sections=tuple(_sections(sides, facts, settings)),
        facts=facts,
        tables={"flipsets": flipsets(sides), "transparency": transparency(results), "people": everybody(sides)},
        libraries=("numpy", "torch") if model.kind in TORCH else ("numpy",),
        settings=settings,
    )


def with_positive(settings: Settings, source: Source, model: Model) -> Settings:
    """Return the settings: if label and model have the same two names, the second one is positive by default."""
    classes = list(map(level_name, model.classes))
    if (
        settings.positive is not None
        or settings.label not in source.table
        or len(classes) != 2
        or classes == ["0", "1"]
    ):
        return settings
    own = set(map(level_name, source.table[settings.label].dropna().unique()))
    return replace(settings, positive=classes[1]) if own == set(classes) else settings


def verdict(facts: Mapping[str, Any], decisions: int, alpha: float) -> Verdict:
    """Return the verdict on the first direction; ``decisions`` (1 or 2) is the number of different decisions in it."""
    first, floor = facts["results"][0], facts["results"][0]["noise"]
    nobody = not any(flipset["size"] for flipset in first["flipsets"].values())
    draws = 0 if floor is None else floor["draws"]
    beyond = floor is not None and bool(floor["beyond"])
    tried = facts["map"]["held_out"]
    held = tried.get(facts["map"]["name"])
    quantities = {
        "held_out": held and (math.inf if held["ks"] is None else held["ks"] / held["limit"]),
        **{"tried": listed(list(tried)), "held": held},
        **{"unseen": len(first["map"]["unseen"]), "columns": listed(first["map"]["unseen"], SHOWN)},
        "worst_ks": first["map"]["worst_ks"],
        "where": max(first["map"]["ks"], key=first["map"]["ks"].get),
        "without_image": 100 * first["non_finite"] / (first["n_source"] + first["non_finite"]),
        "decisions": decisions,
        "noise_floor": None if nobody else 2 / (draws + 1) / alpha,
        **{"draws": draws, "alpha": alpha, "enough": fewest_draws(alpha)},
        "balanced_accuracy": facts["balanced_accuracy"],
    }
    headlines = ("BEYOND NOISE", "NOBODY FLIPS" if nobody else "WITHIN NOISE")
    healthy = {"healthy_map": first["map"]["healthy"]}
    return words.concluded(beyond, headlines, first["sentence"], LIMITS, quantities, "beyond_noise", healthy)


def _sections(sides: Sequence[DirectionResult], facts: Mapping[str, Any], settings: Settings) -> Iterator[Section]:
    alpha = settings.alpha
    yield words.tested(Settings, stated(settings), dict(_tested(facts, settings)))
    for number, (side, entry) in enumerate(zip(sides, facts["results"], strict=True)):
        # The verdict above already contains the sentence of the first direction.
        text = (Text(entry["sentence"]),) if number else ()
        parts = (*text, *_counts(entry, alpha), *_explained(side, entry, alpha))
        yield Section(f"From {entry['source']} to {entry['target']}", parts)
        for name in FLIPSETS:
            members = entry["flipsets"][name]["size"]
            if members:
                title = f"How the members of the {name} flipset ({members:,}) differ from their counterparts"
                yield Section(title, (_report(entry["transparency"][name]), Text(LINES)))
        quality, target = entry["map"], entry["target"]
        distances = sorted(quality["ks"].items(), key=lambda item: -item[1])
        worst = ", ".join(f"{feature} {distance:.3f}" for feature, distance in distances[:SHOWN_KS])
        moved = f"L1 {quality['distance']:.2f} on average"
        fit = f"Kolmogorov-Smirnov distance to {target}: {worst} (0 is best, above {WORST_HEALTHY_KS:g} is poor)"
        yield Section(f"How good the map to {target} is", (Facts((("fit", fit), ("moved", moved))),))


def _tested(facts: Mapping[str, Any], settings: Settings) -> Iterator[tuple[str, str]]:
    data, model, chosen = facts["data"], facts["model"], facts["map"]
    yield "null", "the map finds no more flips between the groups than between random groups"
    left_out = (f"{count:,} {reason}" for reason, count in data["left_out"].items() if count)
    yield "rows", ", without ".join([f"{data['rows']:,}", *left_out])
    cut = model["threshold"]
    by = "decisions by the model's own predict" if cut is None else f"positive if at least {as_typed(cut)}"
    yield "read as", f"{model['origin']}; {model['output']}, {by}"
    if facts["accuracy"] is not None:
        balanced = facts["balanced_accuracy"]
        yield "accuracy", f"{facts['accuracy']:.3f}" + ("" if balanced is None else f", balanced {balanced:.3f}")
    elif settings.label is not None:
        yield "accuracy", "unknown, because nothing says which value of the label counts as 1 (--positive)"
    tried = [
        f"{name} {'failed' if one['ks'] is None else format(one['ks'], '.3f')} (at most {one['limit']:.2f})"
        for name, one in chosen["held_out"].items()
    ]
    held_out = f"; Kolmogorov-Smirnov distance on held-out people: {listed(tried)}" if tried else ""
    yield "map", f"{chosen['name']}{held_out}"


def _counts(found: Entry, alpha: float) -> Iterator[Table]:
    """Return the section on positive decisions and flipset sizes."""
    decided, floor = found["positives"], found["noise"]
    counts = (
        (found["source"], found["n_source"], decided["source"]),
        ("their counterparts", found["n_source"], decided["counterparts"]),
        (found["target"], found["n_target"], decided["target"]),
    )
    rows = [Row((name, COUNT(people), COUNT(number), percent(number / people))) for name, people, number in counts]
    yield Table((Column(""), Column("people"), Column("positive"), Column("share")), tuple(rows))
    rows = []
    entries = [(f"{name} flipset", found["flipsets"][name], name) for name in FLIPSETS]
    for name, entry, key in [*entries, ("net", found["net"], "net")]:
        noise = (span(floor[key]["range"], COUNT),) if floor else ()
        rows.append(Row((name, COUNT(entry["size"]), percent(entry["share"]), span(entry["interval"], COUNT), *noise)))
    heads = (
        "",
        "size",
        "share",
        f"{level(alpha)} interval",
        *((f"range in {floor['draws']} random splits",) if floor else ()),
    )
    yield Table(tuple(map(Column, heads)), tuple(rows))


def _explained(side: DirectionResult, found: Entry, alpha: float) -> Iterator[Text | Figure]:
    direction, floor = found["direction"], found["noise"]
    alike = floor and (
        f" Random splits: the smallest and largest size in {floor['draws']} splits of all people into two random "
        f"groups{scaled(found)}, each with its own map."
    )
    yield Text(
        f"Positive flipset: people with a positive decision whose counterparts in {found['target']} have none. "
        "Negative flipset: the reverse. Net: positive minus negative. You decide whether a positive decision is "
        "good for people. The intervals show how sizes vary between samples of the same population "
        f"under the same map.{alike or ''}"
    )
    yield Figure(
        f"marginals_{direction}",
        "Marginals",
        f"Distribution among the people who flip and among all people of {found['source']}, for the top features of "
        "the transparency reports, in their own units. A person has a category (1) or not (0). The extreme tails are "
        "cut off.",
        f"{FIGURES}:marginals",
        (side,),
    )
    yield Figure(
        f"transparency_{direction}",
        "Transparency report",
        "The features in which people who flip differ from their counterparts. Left: the mean of person minus "
        "counterpart, in standard deviations (in brackets: in the feature's own unit), or in shares of a category. "
        f"Right: the mean of its sign. Hatched bars with grey names: noise. Lines: {level(alpha)} intervals.",
        f"{FIGURES}:transparency",
        (side,),
    )


def _report(report: Sequence[Entry]) -> Table:
    """Return all lines of a transparency report; features that the map does not move have no rank."""
    shift, ends = fixed(2, "+"), ("mean_shift_ci_low", "mean_shift_ci_high")
    # Shifts are shown in the feature's own unit.
    own = [
        {**entry, **{key: entry[key] and entry[key] * entry["unit"] for key in ("mean_shift", *ends)}}
        for entry in report
    ]
    columns = (
        Column("", cell=under("feature")),
        Column("shift", cell=under("mean_shift", shift)),
        Column("interval", cell=lambda entry: span([entry[end] for end in ends], fixed(2))),
        Column("sign", cell=under("mean_sign", shift)),
        Column("rank", cell=under("rank_sign", COUNT)),
        Column("verdict", "text", cell=under("mean_shift_standing")),
    )
    ranked = sum(entry["rank_mean"] is not None for entry in report)
    return Table(columns, rows_of(columns, own), min(SHOWN_LINES, ranked), "transparency.csv")


def of_label(settings: Settings) -> str:
    """Return the true label of the audited people, such as `` with true label 1``; empty for everybody."""
    return "" if settings.given_label is None else f" with true label {settings.given_label}"


def unread_label(source: Source, groups: Groups, settings: Settings) -> dict[str, Any]:
    """Return the condition that true classes are given but nothing says which value is 1."""
    if settings.label is None or groups.label_levels is not None:
        return {}
    return {"unread_label": {"values": listed(in_order(source.table[settings.label].dropna().unique()), SHOWN)}}


def read_as(trial: Trial) -> dict[str, Any]:
    """Return how the model's outputs were read, for the JSON; there is no threshold if predict decides."""
    model = trial.model
    return {
        "output": model.output,
        "threshold": model.threshold if model.classes is None else None,
        "decided_by": "threshold" if model.classes is None else "predict",
        "decided_otherwise": trial.otherwise,
    }


def conditions(sides: Sequence[DirectionResult], trial: Trial, settings: Settings) -> dict[str, Any]:
    model, space = trial.model, sides[0].direction.space
    cut = (
        "the largest score"
        if model.likeliest
        else (f"the scores ({model.output}) with a threshold of {model.threshold}")
    )
    decisions = {"count": trial.otherwise, "rows": len(trial.scores), "cut": cut, "threshold": model.threshold}
    differing = bool(trial.otherwise) and decisions
    poor, lost = [], []
    for side in sides:
        source, target = side.direction.source.level, side.direction.target.level
        worst = [f"{name} ({ks:.2f})" for name, ks in sorted(side.quality.ks.items()) if ks > WORST_HEALTHY_KS]
        known = {"where": f"from {source} to {target}", "target": target, "most": WORST_HEALTHY_KS}
        poor += [{**known, "named": listed(worst, SHOWN)}] if worst else []
        missing = len(side.direction.source.rows) - len(side.mapped)
        lost += [{"missing": missing, "source": source}] if missing else []
    real = all(side.real for side in sides)
    snapped = (
        " Whole numbers are rounded to the nearest existing value, and categories have the shares of the target "
        f"group ({listed(space.snapping, SHOWN)})."
    )
    return {
        "flips_are_to_be_read": True,
        "poor_map": poor,
        "no_image": lost,
        "smooth_map": not real and {"snapped": snapped if space.snapping else ""},
        "exact_map": real,
        "missing_values": bool(space.gaps) and {"missing": listed(space.gaps, SHOWN)},
        "numbers_as_text": [
            {"column": one.name, "numbers": listed(list(map(repr, found)), SHOWN)}
            for one in space.inputs
            if one.name not in (*settings.categorical, *settings.text)
            and one.levels is not None
            and not isinstance(one.levels.dtype, pd.CategoricalDtype)
            and (found := numbers_as_text(one.levels))
        ],
        "unmoved_columns": bool(sides[0].alone.columns) and {"unmoved": listed(sides[0].alone.columns, SHOWN)},
        "no_noise_floor": sides[0].null is None and {"draws": fewest_draws(settings.alpha)},
        "no_refits": sides[0].refits is None,
        "blind": not any(side.alone.columns for side in sides),
        "attribute_alone": [_alone(side) for side in sides if side.alone.columns],
        "predict_decides": model.classes is not None and differing,
        "threshold_decides": model.classes is None and differing,
        "read_as_probabilities": (model.kind, model.columns, model.classes, settings.threshold)
        == (PROBABILITY, 0, None, None),
    }


def _alone(side: DirectionResult) -> dict[str, Any]:
    sizes = side.alone.flips.sizes
    return {
        "columns": listed(side.alone.columns, SHOWN),
        "source": side.direction.source.level,
        "target": side.direction.target.level,
        "changed": sum(sizes.values()),
        "people": len(side.alone.flips.decision),
        **sizes,
    }
