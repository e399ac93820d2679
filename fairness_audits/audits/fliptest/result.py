"""Run a FlipTest and assemble its result. Layout of the JSON: ``docs/guide/fliptest.md``."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits import texts
from fairness_audits.arguments import Given
from fairness_audits.audits.fliptest.compute import NOISE_PEOPLE, DirectionResult, gather_sound
from fairness_audits.audits.fliptest.decisions import PROBABILITY, WANTED, Decider, positive_decision
from fairness_audits.audits.fliptest.flipsets import FLIPSETS
from fairness_audits.audits.fliptest.maps import candidates, fewest_draws, repeats
from fairness_audits.audits.fliptest.measured import everybody, flipsets, result, transparency
from fairness_audits.audits.fliptest.people import Groups, read_groups, space_of
from fairness_audits.audits.fliptest.space import Space
from fairness_audits.inputs.model import Model, load_model, taken_columns
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import coded, noted, predictor
from fairness_audits.inputs.probe import model_facts
from fairness_audits.inputs.table import Source
from fairness_audits.results.formats import fixed, level, percent, plain, span
from fairness_audits.results.result import (
    Column,
    Facts,
    Figure,
    Result,
    Row,
    Section,
    Table,
    Text,
    rows_of,
    under,
)
from fairness_audits.tables.levels import in_order, level_name
from fairness_audits.tables.typed import numbers_as_text
from fairness_audits.transport.quality import WORST_HEALTHY_KS

SHOWN_LINES = 5
COUNT = fixed(0)
FIGURES = "fairness_audits.audits.fliptest.figures"
Entry = Mapping[str, Any]


def from_files(given: Given) -> Result:
    """Run the audit of files. Raises InvalidInput for everything that the user can correct."""
    source = Source.read(given.data, **given.some("text", "missing", "separator"))
    with load_model(given.predict, given.trust_pickle, Computing.of(given), "predict", WANTED) as model:
        return audited(given, source, model, **given.some("drop", "include_group", "text"))


def audited(
    given: Given,
    source: Source,
    model: Model,
    drop: Sequence[str] = (),
    include_group: bool = False,
    text: Sequence[str] = (),
) -> Result:
    """Map one group to the other, evaluate the model on people and counterparts, and build the result.

    Columns to ``drop`` are not inputs of the model, the group's column is one with ``include_group``, and columns in
    ``text`` were read as text although they look like numbers.
    """
    given = given.but(features=taken_columns(given.features, given.label, source, model))
    given = with_positive(given, source, model)
    if given.label in source.table:
        model = model.of_labels(source.table[given.label].dropna().unique().tolist())
    groups = read_groups(source, given, drop, include_group)
    raw = predictor(model, source.inputs(list(groups.source.features)), Computing.of(given))
    if (known := with_positive(given, source, raw.model)) != given:
        given, groups = known, read_groups(source, known, drop, include_group)
    codes = coded(raw, given.categorical)
    source = noted(source, raw, given.categorical, codes)
    space = space_of(groups, given.standardize, codes, source.name)
    first, second = (replace(one, features=space.prepared(one.features)) for one in (groups.source, groups.target))
    groups = replace(groups, source=first, target=second)
    sizes = (len(first.rows), len(second.rows))
    kinds = [
        (kind, *repeats(kind, given.null_draws, given.refits, given.alpha))
        for kind in candidates(given.map, given.map_setting, sizes)
    ]
    decider = positive_decision(raw, pd.concat([first.features, second.features]), given, source.name)
    sides, used, tried = gather_sound(groups, space, decider, kinds, given)
    kind = kinds[used][0]
    accuracy, balanced = accuracies(decider, groups)
    facts: dict[str, Any] = {
        "results": [entry_of(side, given) for side in sides],
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
        "model": {**model_facts(model), **read_as(decider)},
        "map": {
            "name": kind.name,
            "poor": [name for name in tried if name != kind.name],
            "held_out": {name: plain({"ks": one.ks, "limit": one.limit}) for name, one in tried.items()},
            "settings": dict(kind.settings),
        },
    }
    first_found, label = facts["results"][0], given.label
    said = {
        **known_of(first_found, given),
        **facts,
        **doubts_of(sides, space, decider, given),
        "held": facts["map"]["held_out"].get(kind.name),
        "numbers_as_text": texts_like_numbers(space, (*given.categorical, *text)),
        "label_values": []
        if label is None or groups.label_levels is not None
        else in_order(source.table[label].dropna().unique()),
        "notes": source.notes,
    }
    beyond = first_found["noise"] is not None and bool(first_found["noise"]["beyond"])
    own = {"healthy_map": first_found["map"]["healthy"]}
    verdict = texts.verdict("fliptest", said, beyond, own, "beyond_noise")
    tables = {"flipsets": flipsets(sides), "transparency": transparency(facts["results"]), "people": everybody(sides)}
    return texts.result(
        "fliptest",
        said,
        verdict,
        given,
        subject=f"{model.name} on {source.name}",
        sections=_sections(sides, facts["results"], given),
        facts=facts,
        tables=tables,
        libraries=("numpy", *model.libraries),
    )


def accuracies(decider: Decider, groups: Groups) -> tuple[float | None, float | None]:
    """Return the accuracy and the balanced accuracy; None if the true classes, or those of one class, are unknown."""
    if groups.source.label is None or groups.target.label is None:
        return None, None
    label = np.concatenate([groups.source.label, groups.target.label])
    right = decider.own_decisions == label
    by_class = [float(right[label == one].mean()) for one in (0, 1) if (label == one).any()]
    return float(right.mean()), sum(by_class) / 2 if len(by_class) == 2 else None


def known_of(found: Entry, given: Given) -> dict[str, Any]:
    """Return the facts for the texts about one direction."""
    facts = {**given.values, "found": found, "poor": WORST_HEALTHY_KS, "noise_people": NOISE_PEOPLE}
    return {**facts, "scaled": texts.named("fliptest", "scaled", facts)}


def entry_of(side: DirectionResult, given: Given) -> dict[str, Any]:
    """Return the findings in one direction for the JSON, with their sentence."""
    found = result(side)
    return {**found, "sentence": texts.named("fliptest", "flips", known_of(found, given))}


def with_positive(given: Given, source: Source, model: Model) -> Given:
    """Return the options: if label and model have the same two names, the second one is positive by default."""
    classes = list(map(level_name, model.classes))
    if given.positive is not None or given.label not in source.table or len(classes) != 2 or classes == ["0", "1"]:
        return given
    own = set(map(level_name, source.table[given.label].dropna().unique()))
    return given.but(positive=classes[1]) if own == set(classes) else given


def doubts_of(sides: Sequence[DirectionResult], space: Space, decider: Decider, given: Given) -> dict[str, Any]:
    """Return the facts for the reasons why the audit cannot tell, and for its caveats."""
    flips = sides[0].found.flips
    lost, people = len(sides[0].direction.source.rows) - len(sides[0].mapped), len(sides[0].direction.source.rows)
    poor = []
    for side in sides:
        worst = [f"{name} ({ks:.2f})" for name, ks in sorted(side.quality.ks.items()) if ks > WORST_HEALTHY_KS]
        names = {"source": side.direction.source.level, "target": side.direction.target.level}
        poor += [{**names, "features": worst}] if worst else []
    return {
        "flips": int(flips.either.sum()),
        "decisions": len(np.unique(np.concatenate([flips.decision, flips.decision_image]))),
        "draws": 0 if sides[0].null is None else len(sides[0].null.net),
        "enough": fewest_draws(given.alpha),
        "without_image": 100 * lost / people,
        "poor_maps": poor,
        "real": all(side.real for side in sides),
        **{"snapping": space.snapping, "gaps": space.gaps},
        **{"decided": len(decider.answers.output), "likeliest": decider.likeliest, "cut": decider.threshold},
        "read_as_probabilities": (decider.kind, decider.answers.columns, decider.decides, given.threshold)
        == (PROBABILITY, 1, False, None),
    }


def texts_like_numbers(space: Space, chosen: Collection[str]) -> list[dict[str, Any]]:
    """Return the categories, other than those ``chosen`` as such, with texts that look like numbers."""
    return [
        {"column": one.name, "numbers": list(map(repr, found))}
        for one in space.inputs
        if one.name not in chosen
        and one.levels is not None
        and not isinstance(one.levels.dtype, pd.CategoricalDtype)
        and (found := numbers_as_text(one.levels))
    ]


def _sections(sides: Sequence[DirectionResult], results: Sequence[Entry], given: Given) -> Iterator[Section]:
    for number, (side, entry) in enumerate(zip(sides, results, strict=True)):
        said = partial(texts.named, "fliptest", facts=known_of(entry, given))
        # The verdict above already contains the sentence of the first direction.
        text = (Text(entry["sentence"]),) if number else ()
        figures = [
            Figure(f"{name}_{entry['direction']}", title, said(name), f"{FIGURES}:{name}", (side,))
            for name, title in (("marginals", "Marginals"), ("transparency", "Transparency report"))
        ]
        yield Section(said("direction"), (*text, *_counts(entry, given.alpha), Text(said("sizes")), *figures))
        for name in FLIPSETS:
            if entry["flipsets"][name]["size"]:
                yield Section(said(name), (_report(entry["transparency"][name]), Text(said("report"))))
        yield Section(said("quality"), (Facts((("fit", said("fit")), ("moved", said("moved")))),))


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


def read_as(decider: Decider) -> dict[str, Any]:
    """Return how the model's outputs were read, for the JSON; there is no threshold if predict decides."""
    return {
        "output": decider.output,
        "threshold": None if decider.decides else decider.threshold,
        "decided_by": "predict" if decider.decides else "threshold",
        "decided_otherwise": decider.otherwise,
    }
