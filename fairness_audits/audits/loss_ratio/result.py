"""From rows and a model to the result of a loss-ratio audit. Layout of the JSON: ``docs/guide/loss_ratio.md``."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits import texts
from fairness_audits.arguments import Given
from fairness_audits.audits.alike import bounds_of, columns_of, fair_metric, people_of, resampled
from fairness_audits.audits.loss_ratio.evidence import (
    Audited,
    Evidence,
    by_gradient,
    by_people,
    of_layers,
    of_network,
    pinned_share,
)
from fairness_audits.audits.loss_ratio.examples import examples_of
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest
from fairness_audits.audits.loss_ratio.trial import Tables, Trial, check_search, chosen_rows, tables_of, trial_of
from fairness_audits.audits.scaling import units
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model import Model, as_the_model_says, load_model
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import Answers, Scores, model_facts, model_words, output_conditions
from fairness_audits.inputs.table import Rows, Source, classes_of
from fairness_audits.messages import listed
from fairness_audits.results.formats import factor, level, p_text, plain, span
from fairness_audits.results.result import Column, Figure, Result, Row, Section, Table, Text
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

GROWTH = 0.01
"""Growth of S_n in the second half of the steps that is worth more steps."""
ASSOCIATED = 0.01
"""Largest p-value of no association that is evidence of a sensitive attribute in the inputs."""
NOISY = 0.5
"""Least share of signal in a learned direction that needs no caveat."""
SHOWN_LOADINGS = SHOWN_EXAMPLES = 5
Entry = Mapping[str, Any]
TESTS = {"loss_ratio": "loss ratio", "error_rate_ratio": "error-rate ratio"}
STATISTICS = {
    **{"S_n": "mean", "V_n": "std", "T_n": "statistic"},
    **{name: name for name in ("ci_low", "ci_high", "p_value", "rejected", "n", "non_finite", "clipped", "below_one")},
    **{name: name for name in ("wrong_before", "wrong_after")},
}
"""The arrays of a test by their names in the JSON, which are the paper's names if it has one."""


def from_files(given: Given) -> Result:
    """Run the audit of files. Raises InvalidInput for everything that the user can correct."""
    check_metric(bool(given.sensitive), given.directions is not None)
    read = given.some("text", "missing", "separator")
    source = Source.read(given.data, **read)
    reference = None if given.reference is None else Source.read(given.reference, **read)
    with load_model(given.model, given.trust_pickle, Computing.of(given)) as model:
        others = given.some("directions", "drop", "include_sensitive")
        return audited(given, source, model, reference=reference, **others)


OF_THE_OTHER_SEARCH = {True: ("least_share",), False: ("regularization", "step_size", "steps", "metric_samples")}
"""Options without effect on a search along the gradient (True), and on one among people (False)."""


def check_metric(sensitive: bool, directions: bool) -> None:
    """Raise InvalidInput unless either sensitive attributes or directions define the fair metric."""
    if sensitive == directions:
        found = "both" if sensitive else "neither"
        problem = f"the fair metric needs either sensitive attributes or directions, but you gave {found}"
        raise InvalidInput(problem, option="directions", remedy="Give one of them")


def audited(
    given: Given,
    source: Source,
    model: Model,
    *,
    directions: Path | Array | None = None,
    reference: Source | None = None,
    drop: Sequence[str] = (),
    include_sensitive: bool = False,
) -> Result:
    """Learn the fair metric or derive it from ``directions``, try the model, search, test, and build the result.

    Columns to ``drop`` are not inputs of the model; the sensitive columns are inputs with ``include_sensitive``.
    """
    check_search(model, given.search)
    computing = Computing.of(given)
    given, model = completed(given, source, model)
    named = given.some("features", "label", "sensitive", "categorical", "search")
    roles = {"drop": drop, "include_sensitive": include_sensitive, **named}
    tables = tables_of(source, model, reference, computing, **roles)
    given, model = completed(given, source, tables.predictor.model)
    source, everyone = tables.source, tables.everyone
    scale = units(everyone.features, everyone.names, given.standardize)
    path, array = (directions, None) if isinstance(directions, Path) else (None, directions)
    metric, alike = fair_metric(path, tables.known, tables.reference, array, scale, given.seed)
    people = people_of(everyone, given.one_hot, tables.encoding.categories)
    tried = trial_of(model, tables, computing, **given.some("search", "output_kind", "seed"))
    hold_out = not tried.gradient and tables.without_reference
    asked = given.some("points", "placebo", "seed")
    numbers, draw_of_row, held = chosen_rows(len(everyone.features), hold_out=hold_out, **asked)
    answers = tried.of(numbers)
    count, names = answers.trial.shape[1], given.classes
    if names is None and count > 2 and len(model.classes) == count:
        names = tuple(map(level_name, model.classes))
    label, levels = classes_of(source, given.label, count, names, given.positive)
    some = replace(everyone, label=label, label_levels=levels).only(numbers)
    bounds = bounds_of(given.bounds, everyone, people)
    rows = Audited(some.features, some.label, metric, scale, people, bounds, draw_of_row)
    evidence, search = searched(given, tried, answers, rows, tables, held, alike)
    bounded = bounds if tried.gradient else None
    pinned = pinned_share(some.features, evidence.comparable, metric, bounded)
    unused = [name for name, _ in given.changed if name in OF_THE_OTHER_SEARCH[tried.gradient]]
    facts = {
        **measured(evidence, some, answers, 0 if tried.layers else answers.saturated),
        "search": {**search, **({"unused": unused} if unused else {})},
        "placebo": placebo_facts(evidence),
        "metric_samples": metric_facts(evidence, given),
        "data": {
            "path": source.name,
            "sha256": source.sha256,
            "rows": len(source.table),
            "audited": len(numbers),
            "features": list(everyone.names),
            "label": given.label,
            "label_levels": list(levels),
            "standardized": list(scale.standardized),
            "scales_apart": apart_by(scale.inward(everyone.features)),
            "notes": dict(source.notes),
        },
        "model": {**model_facts(model, answers), "device": tried.device},
        "fair_metric": {**alike, "units": by_feature(everyone.names, scale.shift, scale.scale)},
        "bounds": {
            "range": None if bounds is None else by_feature(everyone.names, *bounds),
            "whole": [everyone.names[place] for place in people.whole],
            "outside": int(evidence.outside.sum()),
            "pinned": pinned,
            "within": None if evidence.within is None else statistics(evidence.within, -1),
        },
        "examples": plain(
            examples_of(evidence, some, numbers, scale, tables.encoding, given.examples).to_dict("records")
        ),
    }
    by_torch = ("torch",) if search.get("gradient") == "torch" else ()
    return result_of(facts, given, evidence.found.course, (*by_torch, *model.libraries))


def completed(given: Given, source: Source, model: Model) -> tuple[Given, Model]:
    """Return the options with what the model says about its inputs and classes, and the model of these labels."""
    named = given.some("features", "label", "positive", "classes")
    features, positive, model = as_the_model_says(model, source, **named)
    return given.but(features=features, positive=positive), model


def searched(
    given: Given, tried: Trial, answers: Answers | Scores, rows: Audited, tables: Tables, held: Array, alike: Entry
) -> tuple[Evidence, dict[str, Any]]:
    """Return the evidence of the search that the model allows, and its description for the JSON.

    Without reference rows, a search among people takes the values of the rows ``held`` out.
    """
    test = given.some("delta", "alpha", "seed")
    if tried.gradient:
        if isinstance(answers, Scores):
            classes = answers.trial.shape[1]
            engine = of_network(answers.evaluate, rows, device=tried.device, dtype=given.dtype, classes=classes)
        else:
            assert tried.layers is not None
            engine = of_layers(tried.layers, answers, rows)
        learned = given.metric_samples if alike["source"] == "learned" else 0
        metrics = resampled(tables.known, rows.units, learned, given.seed)
        attack = given.some("regularization", "step_size", "steps")
        evidence = by_gradient(engine, rows, metrics=metrics, **attack, **test)
        return evidence, {"engine": "gradient", "gradient": "closed form" if tried.layers else "torch"}
    assert isinstance(answers, Answers)
    known = tables.everyone.features[held] if tables.without_reference else tables.known.features
    columns = columns_of(tables.everyone.names, tables.encoding, rows.people, given.one_hot)
    evidence = by_people(
        answers, rows, known, columns, unfounded=unfounded(alike), least_share=given.least_share, **test
    )
    assert evidence.candidates is not None
    assert evidence.policy is not None
    return evidence, {
        "engine": "people",
        "categories": list(tables.encoding.levels),
        **evidence.candidates,
        "policy": statistics(evidence.policy),
        "reference": {"path": tables.reference.name, "rows": len(known), "held_out": tables.without_reference},
        "reference_sha256": hashlib.sha256(np.ascontiguousarray(known).tobytes()).hexdigest(),
    }


def measured(evidence: Evidence, rows: Rows, answers: Answers | Scores, saturated: int) -> dict[str, Any]:
    """Return the accuracies, and both tests at all steps and at the last one."""
    found, right = evidence.found, answers.prediction == rows.label
    classes = [
        {"level": level, "rows": int((rows.label == one).sum()), "right": int(right[rows.label == one].sum())}
        for one, level in enumerate(rows.label_levels)
    ]
    of_class = np.array([[one["rows"], one["right"]] for one in classes], dtype=float)
    with np.errstate(invalid="ignore"):
        balanced = (of_class[:, 1] / of_class[:, 0]).mean()
    named = dict(zip(TESTS, (found.course, found.error_course), strict=True))
    return {
        "results": {
            **{name: statistics(test, -1) for name, test in named.items()},
            **plain({"accuracy": right.mean(), "balanced_accuracy": balanced}),
            "classes": classes,
            **{"saturated": saturated, "largest_ratio": float(np.nanmax(found.ratio))},
        },
        "course": {"steps": list(found.steps), **{name: statistics(test) for name, test in named.items()}},
    }


def placebo_facts(evidence: Evidence) -> dict[str, Any] | None:
    """Return the statistics of the placebo, None if there was none."""
    if evidence.placebo is None:
        return None
    rows = int(evidence.placebo.n + evidence.placebo.non_finite)
    return {"rows": rows, "directions": evidence.placebo_directions, **statistics(evidence.placebo)}


def metric_facts(evidence: Evidence, given: Given) -> dict[str, Any] | None:
    """Return how the ratio depends on the metric's sample, None with fewer than two samples.

    ``low`` and ``high`` are T_n times the smallest and the largest factor, and ``reversed`` counts the samples with
    T_n times the factor on the other side of the tolerance.
    """
    factors, test = evidence.metric_factors, evidence.found.course
    if len(factors) < 2:
        return None
    statistic = test.statistic[-1] * factors
    return {
        **{"asked": given.metric_samples, "samples": len(factors), "rows": evidence.metric_rows},
        **plain({"deviation": np.log(factors).std(ddof=1), "low": statistic.min(), "high": statistic.max()}),
        "standard_error": plain(test.std[-1] / np.sqrt(test.n[-1]) / test.mean[-1]),
        "reversed": int(((statistic > given.delta) != test.rejected[-1]).sum()),
    }


def statistics(test: RatioTest, place: int | tuple[()] = ()) -> dict[str, Any]:
    """Return the numbers of a test, or of the entry at ``place`` of its leading axis; NaN (no ratio) becomes null."""
    arrays = {key: getattr(test, array) for key, array in STATISTICS.items() if hasattr(test, array)}
    return {key: plain(np.asarray(array)[place]) for key, array in arrays.items()}


def apart_by(points: Array) -> float:
    """Return the ratio of largest to smallest std of the columns (n, d) with more than two values; 1 without any."""
    spread = [column.std() for column in points.T if len(np.unique(column)) > 2]
    return float(max(spread) / min(spread)) if spread else 1.0


def by_feature(names: Sequence[str], *columns: Array) -> dict[str, list[float | None]]:
    """Return the entries of arrays (d,) by feature name; None means that there is no bound."""
    return dict(zip(names, plain(np.column_stack(columns)), strict=True))


def weakest(metric: Entry) -> tuple[str, float] | None:
    """Return the attribute that the inputs show the least evidence of, and its p-value; None if none was learned."""
    found = metric["association"]
    name = max(found, key=found.__getitem__, default=None)
    return None if name is None else (name, found[name])


def is_judged(metric: Entry) -> bool:
    """Return whether the inputs show evidence of every attribute that a direction was learned for."""
    found = weakest(metric)
    return found is None or found[1] <= ASSOCIATED


def unfounded(metric: Entry) -> str:
    """Return a sentence if the inputs show no evidence of an attribute, so that its direction may be noise."""
    found = weakest(metric)
    if found is None or is_judged(metric):
        return ""
    return (
        f"The inputs show too little evidence of {found[0]!r} (p-value {p_text(found[1])}), so its direction may be "
        "noise: a lower least_share would then permit moves that mean nothing. Use more rows. "
    )


def result_of(facts: dict[str, Any], given: Given, course: RatioTest, libraries: Iterable[str] = ()) -> Result:
    """Return the result from the ``facts`` of the JSON; ``course`` is the test at each step."""
    said = said_of(facts, given)
    model, tests = facts["model"], facts["results"]
    verdict = texts.verdict("loss_ratio", said, said["test"]["rejected"], {})
    return texts.result(
        "loss_ratio",
        said,
        verdict,
        given,
        subject=f"{model['given']} on {facts['data']['path']}",
        sections=_sections(said, course),
        facts=facts,
        tables={
            "tests": pd.DataFrame([{"test": name, **tests[name]} for name in TESTS]),
            **({"examples": pd.DataFrame(facts["examples"])} if facts["examples"] else {}),
        },
        libraries=("numpy", *dict.fromkeys(libraries)),
    )


def said_of(facts: Entry, given: Given) -> dict[str, Any]:
    """Return what the texts may say: the options, the facts of the JSON, and what follows from these."""
    found, data, metric, model = facts["results"], facts["data"], facts["fair_metric"], facts["model"]
    test, steps, mean = found["loss_ratio"], facts["course"]["steps"], facts["course"]["loss_ratio"]["S_n"]
    halfway = min(int(np.searchsorted(steps, steps[-1] / 2)), len(mean) - 1)
    whole = facts["search"]["engine"] == "people"
    outputs = output_conditions(
        model["output_kind"], model["output_kind_detected"], 0 if whole else found["saturated"], "row"
    )
    said = {
        **given.values,
        **facts,
        **{"chosen": given.search, "whole": whole, "test": test, "notes": data["notes"]},
        **{"judged": is_judged(metric), "weakest": weakest(metric), "associated": ASSOCIATED},
        "noisy": [{"attribute": name, "signal": one} for name, one in metric["signal"].items() if one < NOISY],
        "left_out": 100 * test["non_finite"] / data["audited"],
        "saturated": 100 * found["saturated"] / data["audited"],
        "growing": mean[-1] > (1 + GROWTH) * mean[halfway],
        "heaviest": found["largest_ratio"] / test["S_n"] / test["n"],
        "read": {**outputs, "decision_values": model["decision_values"], "regression": model["regression"]},
        **{"read_as": model_words(model), "classes": numbered(data["label_levels"])},
    }
    return {**said, "beside_placebo": texts.named("loss_ratio", "beside_placebo", said)}


def numbered(levels: Sequence[str]) -> str:
    """Return the classes in words: ``1 is 'yes', 0 is 'no'``."""
    order = range(len(levels)) if len(levels) > 2 else (1, 0)
    return listed([f"{number} is {levels[number]!r}" for number in order], 6)


def _sections(said: Entry, course: RatioTest) -> Iterator[Section]:
    text = partial(texts.named, "loss_ratio", facts=said)
    figure = Figure(
        stem="loss_ratio",
        key="figure",
        title="Loss ratios",
        caption=text("figure"),
        by="fairness_audits.audits.loss_ratio.figures:figure",
        of=(said["course"]["steps"], course, "candidates" if said["whole"] else "gradient steps"),
    )
    yield Section("Result", (_tests(said), Text(text("tests")), Text(text("rows")), figure))
    yield Section("What the metric treats as alike", tuple(_alike(said)))
    if said["examples"]:
        yield Section("Most unfair examples (rows counted from 0)", (_examples(said["examples"]),))


def _tests(said: Entry) -> Table:
    """Return a line for each test. The placebo, and a ratio along a direction that may be noise, are not judged."""
    tests = [(name, said["results"][key], said["judged"]) for key, name in TESTS.items()]
    if policy := said["search"].get("policy"):
        tests.append(("loss ratio, policy", policy, said["judged"]))
    if placebo := said["placebo"]:
        tests.append((f"loss ratio, placebo of {placebo['rows']:,} rows", placebo, False))
    rows = []
    for name, test, judged in tests:
        if test["T_n"] is None:
            rows.append(Row((name, *["-"] * 5)))
            continue
        interval = span((test["ci_low"], test["ci_high"]), factor)
        decision = "-" if not judged else f"{'' if test['rejected'] else 'no '}difference shown"
        rows.append(Row((name, factor(test["S_n"]), interval, factor(test["T_n"]), p_text(test["p_value"]), decision)))
    heads = ("", "S_n", f"{level(said['alpha'])} interval", "T_n", "p-value")
    return Table((*map(Column, heads), Column(f"at most {said['delta']:g}?", "text")), tuple(rows))


def _alike(said: Entry) -> Iterator[Text]:
    metric = said["fair_metric"]
    yield Text(texts.named("loss_ratio", "metric", said))
    for name, loadings in metric["directions"].items():
        largest = sorted(loadings, key=lambda feature: -abs(loadings[feature]))[:SHOWN_LOADINGS]
        own = {key: metric[key].get(name) for key in ("levels", "separation", "association")}
        own |= {"name": name, "loadings": ", ".join(f"{one} {loadings[one]:+.2f}" for one in largest if loadings[one])}
        yield Text(texts.named("loss_ratio", "direction", {**said, **own}), item=True)
    shares = said["search"].get("shares", metric["shares"])
    most = sorted(shares, key=lambda name: -shares[name])[: 2 * SHOWN_LOADINGS]
    shown = ", ".join(f"{name} {shares[name]:.2f}" for name in most)
    yield Text(texts.named("loss_ratio", "shares", {**said, "shares": shown}))


def _examples(records: Sequence[Entry]) -> Table:
    """Return the losses of each example, its groups and the features that moved most."""
    loss = "{:.3g}".format
    heads = ("row", "label", "own loss", "comparable loss", "ratio", "nearest person's loss")
    columns = (*map(Column, heads), Column("groups and largest changes", "text"))
    rows = []
    for one, comparable, possible in zip(records[::3], records[1::3], records[2::3], strict=True):
        own, there, whole = (loss(version["audit_loss"]) for version in (one, comparable, possible))
        place = (str(one["audit_row"]), str(one["audit_label"]))
        rows.append(Row((*place, own, there, factor(one["audit_loss_ratio"]), whole, one["audit_changes"])))
    return Table(columns, tuple(rows), SHOWN_EXAMPLES, "examples.csv")
