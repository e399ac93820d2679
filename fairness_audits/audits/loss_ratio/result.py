"""From the settings of a loss-ratio audit to its result. Layout of the JSON: ``docs/guide/loss_ratio.md``."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.alike import bounds_of, columns_of, fair_metric, people_of
from fairness_audits.audits.loss_ratio.brief import brief
from fairness_audits.audits.loss_ratio.compute import (
    Audited,
    Evidence,
    examples_of,
    pinned_share,
)
from fairness_audits.audits.loss_ratio.flows import by_gradient, by_layers, gather
from fairness_audits.audits.loss_ratio.people import by_people
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest
from fairness_audits.audits.loss_ratio.settings import Settings
from fairness_audits.audits.loss_ratio.trial import (
    Tables,
    Trial,
    rows_of_the_search,
    sampled,
    tables_of,
    trial_of,
)
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.closed_form import is_layered
from fairness_audits.inputs.model import Model, as_the_model_says, load_model, no_gradient
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import (
    OUTPUT_CAVEATS,
    Answers,
    Scores,
    model_facts,
    model_words,
    output_conditions,
)
from fairness_audits.inputs.table import Source, classes_of, units
from fairness_audits.messages import SHOWN, listed
from fairness_audits.options import stated
from fairness_audits.results import sentences as words
from fairness_audits.results.formats import factor, level, p_text, plain, span
from fairness_audits.results.result import Column, Figure, Result, Row, Section, Table, Text
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

# Thresholds of the caveats.
GROWTH = 0.01
HEAVY_SHARE, HEAVY_AMONG = 0.1, 100
MUCH = 0.25
"""Largest ratio of the placebo's excess over 1 to the audit's excess that needs no caveat."""
PINNED = 0.25
"""Largest share of the sensitive directions held by bounds that needs no caveat."""
ASSOCIATED = 0.01
"""Largest p-value of no association that is evidence of a sensitive attribute in the inputs."""
NOISY = 0.5
"""Least share of signal in a learned direction that needs no caveat."""
MOST_APART = 1000
"""Largest ratio of column scales for which one step size can move all columns."""
LIMITS = f"""
rows >= 30: Only {{value}} rows have a finite ratio; the test needs at least {{limit:.0f}}.
left_out <= 10: {{value:.3g}} % of the audited rows have no finite ratio (limit: {{limit:.0f}} %). The test covers only
  the other rows.
saturated <= 10: The model's probability is exactly 0 or 1 in {{value:.3g}} % of the rows (limit: {{limit:.0f}} %).
  There the attack has no gradient to follow.
scales <= {MOST_APART} unless rejected: The standard deviations of the columns differ by a factor of {{value:.2g}}. The
  step size and the penalty treat one unit of each column alike, so the attack hardly moves some columns. Use
  --standardize=continuous.
association <= {ASSOCIATED}: The inputs show too little evidence of {{attribute}} (p-value {{value:.2g}}; limit:
  {{limit:g}}). Its learned direction may be noise, and a larger loss along noise says nothing about the attribute.
  Pass --directions or more rows (--reference), or drop the attribute.
gain > 0: The model's balanced accuracy is {{balanced:.3f}}, no better than the {{trivial:.3g}} of a model with a
  constant answer. Check the order of the features and of the classes ({{classes}}).
"""
CAVEATS = f"""
held_out_rows: The test is valid only if the audited rows were not used to build the model.
metric_of_audited_rows: The fair metric was learned from rows that include the audited rows, as in the published study.
noisy_direction: About {{noise:.0f}} % of the direction learned for {{attribute}} is noise. More rows (--reference)
  reduce the noise.
not_rejected: Not rejecting is no proof of fairness: the search finds comparable individuals who are treated worse, but
  not always the worst ones.
whole_people: Comparable individuals are whole people: up to two of the permitted columns ({{permitted}}) take values of
  {{rows:,}} reference rows, with at most {{candidates}} candidates per row. Rejecting shows that such changes raise the
  loss; not rejecting says nothing about other changes.
clipped: In the losses, probabilities are clipped to between {{clip:g}} and {{most:g}}. The error-rate ratio needs no
  clipping.
erratic: The test with the worst candidate of each row rejects, but the test with one fixed candidate for each label and
  value does not (mean ratio {{mean}}, lower bound {{bound}}). So the model is erratic in the permitted columns, but not
  shown to be systematically unfair.
placebo: The same search along {{directions}} drawn at random has a mean ratio of {{mean}} ({{interval}}), compared with
  {{own}} for the audit. So the model is sensitive to changes in general. A rejection shows that permitted changes
  raise the loss. It does not show that other changes leave it unchanged.
pinned: {{pinned:.0f}} % of the sensitive directions lie in columns that cannot move within the bounds, such as
  indicators, which cannot fall below 0 or rise above 1. Few people within the bounds are alike in this metric, so the
  ratio may be too small. --bounds=none shows the ratio without bounds.
still_growing: S_n was still growing at the last step. More --steps may find a larger ratio.
no_bounds: {{outside:,}} of {{audited:,}} comparable individuals lie outside the range of the data and describe nobody.
  Within the range, the mean ratio is {{mean}} and its lower bound {{bound}}. --bounds=data tests this.
whole_columns: Comparable individuals are points in the feature space: columns of whole numbers and of two values also
  move continuously. Each example is shown with the nearest person who could exist and the loss there. --one-hot names
  the columns that form one category.
{OUTPUT_CAVEATS.strip()}
one_heavy_row: One row makes up {{share:.0f}} % of the sum of all ratios. The mean and its interval depend on this row,
  and the normal approximation is doubtful.
"""
SHOWN_LOADINGS = SHOWN_EXAMPLES = 5
Entry = Mapping[str, Any]
ENGINES = {
    "gradient": "along the gradient of the loss",
    "people": "among whole people",
}
TESTS = {"loss_ratio": "loss ratio", "error_rate_ratio": "error-rate ratio"}
POLICY = (
    " The policy uses one candidate for each label and current value. It is chosen on one half of the rows and "
    "applied to the other half, so it finds systematic effects."
)
PLACEBO = " The placebo is the same search with random columns or directions. It shows the model's general sensitivity."
STATISTICS = {
    **{"S_n": "mean", "V_n": "std", "T_n": "statistic"},
    **{name: name for name in ("ci_low", "ci_high", "p_value", "rejected", "n", "non_finite", "clipped", "below_one")},
    **{name: name for name in ("wrong_before", "wrong_after")},
}
"""The arrays of a test by their names in the JSON, which are the paper's names if it has one."""
WANTED = "a torch network, a fitted scikit-learn model or a function of x"


def from_files(settings: Settings) -> Result:
    """Run the audit from its settings. Raises InvalidInput for everything that the user can correct."""
    if (settings.directions is None) == (not settings.sensitive):
        raise InvalidInput(
            "the fair metric needs either --sensitive or --directions: pass one of them",
            option="sensitive",
        )
    read = settings.some("text", "missing", "separator")
    source = Source.read(settings.data, **read)
    reference = None if settings.reference is None else Source.read(settings.reference, **read)
    with load_model(settings.model, settings.trust_pickle, Computing.of(settings), wanted=WANTED) as model:
        return audited(settings, source, model, reference=reference)


def audited(
    settings: Settings, source: Source, model: Model, directions: Array | None = None, reference: Source | None = None
) -> Result:
    """Get the metric, from the ``directions`` or by learning it, and try the model, search and test."""
    without = model.kind in ("onnx", "quantised") or (model.kind == "estimator" and not is_layered(model.fitted))
    if settings.search == "gradient" and without:
        raise no_gradient(model, "drop --search: the audit then chooses a search without gradients")
    settings, model = completed(settings, source, model)
    tables = tables_of(settings, source, model, reference)
    settings, model = completed(settings, source, tables.predictor.model)
    source, everyone = tables.source, tables.everyone
    scale = units(everyone.features, everyone.names, settings.standardize)
    metric, alike = fair_metric(settings.directions, tables.known, tables.reference, directions, scale, settings.seed)
    people = people_of(everyone, settings.one_hot, tables.encoding.categories)
    tried = trial_of(model, tables, settings)
    chosen, values = rows_of_the_search(settings, tables, tried.engine == "people")
    numbers, draw_of_row = sampled(settings, chosen)
    answers = tried.of(numbers)
    count, names = answers.trial.shape[1], settings.classes
    if names is None and count > 2 and len(model.classes) == count:
        names = tuple(map(level_name, model.classes))
    label, levels = classes_of(source, settings.label, count, names, settings.positive)
    some = replace(everyone, label=label, label_levels=levels).only(numbers)
    bounds = bounds_of(settings.bounds, everyone, people)
    rows = Audited(some.features, some.label, metric, scale, settings, people, bounds, draw_of_row)
    evidence, search = searched(tried, answers, rows, tables, values, unfounded(alike))
    right = answers.prediction == some.label
    classes = [
        {"level": level, "rows": int((some.label == one).sum()), "right": int(right[some.label == one].sum())}
        for one, level in enumerate(levels)
    ]
    examples = examples_of(evidence, some, numbers, scale, tables.encoding, settings.examples)
    tested = evidence.found
    tests = tested.course, tested.error_course
    saturated = answers.saturated if tried.layers is None else 0
    counts = {"saturated": saturated, "largest_ratio": float(np.nanmax(tested.ratio))}
    held = None if tried.engine == "people" else bounds
    facts = {
        **measured(tested.steps, tests, classes, counts),
        "search": search,
        "placebo": placebo_facts(evidence),
        "data": {
            "path": source.name,
            "sha256": source.sha256,
            "rows": len(source.table),
            "audited": len(numbers),
            "features": list(everyone.names),
            "label": settings.label,
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
            "pinned": pinned_share(some.features, evidence.comparable, metric, held),
            "within": None if evidence.within is None else statistics(evidence.within, -1),
        },
        "examples": plain(examples.to_dict("records")),
    }
    return replace(result_of(facts, stated(settings), tested.course), settings=settings)


def completed(settings: Settings, source: Source, model: Model) -> tuple[Settings, Model]:
    """Return the settings with what the model says about its inputs and classes, and the model of these labels."""
    named = settings.some("features", "label", "positive", "classes")
    features, positive, model = as_the_model_says(model, source, **named)
    return replace(settings, features=features, positive=positive), model


def searched(
    tried: Trial, answers: Answers | Scores, rows: Audited, tables: Tables, values: Array, unfounded: str
) -> tuple[Evidence, dict[str, Any]]:
    """Return the evidence of the search of the trial's engine, and its description for the JSON.

    Without reference rows, a search among people takes the values of the rows with the numbers ``values``.
    """
    if isinstance(answers, Scores):
        engine = by_gradient(answers.evaluate, rows, tried.device, answers.trial.shape[1])
        return gather(engine, rows), {"engine": "gradient", "gradient": "torch"}
    if tried.layers is not None:
        engine = by_layers(tried.layers, answers, rows)
        return gather(engine, rows), {"engine": "gradient", "gradient": "closed form"}
    found: dict[str, Any] = {"engine": "people", "categories": list(tables.encoding.levels)}
    known = tables.everyone.features[values] if tables.without_reference else tables.known.features
    columns = columns_of(tables.everyone.names, tables.encoding, rows.people, rows.settings.one_hot)
    evidence, policy, about = by_people(answers, rows, known, columns, unfounded)
    origin = {"path": tables.reference.name, "rows": len(known), "held_out": tables.without_reference}
    found |= {**about, "policy": statistics(policy), "reference": origin}
    found["reference_sha256"] = hashlib.sha256(np.ascontiguousarray(known).tobytes()).hexdigest()
    return evidence, found


def placebo_facts(evidence: Evidence) -> dict[str, Any] | None:
    """Return the statistics of the placebo, None if there was none."""
    if evidence.placebo is None:
        return None
    return {
        "rows": int(evidence.placebo.n + evidence.placebo.non_finite),
        "directions": evidence.placebo_directions,
        **statistics(evidence.placebo),
    }


def measured(
    steps: Sequence[int], tests: Sequence[RatioTest], classes: Sequence[Entry], counts: Mapping[str, float]
) -> dict[str, Any]:
    """Return the accuracies, and both tests at all ``steps`` and at the last one.

    ``classes`` has an entry for each class, with its rows and how many of them the model gets ``right``.
    """
    rows, right = (np.array([one[key] for one in classes], dtype=float) for key in ("rows", "right"))
    with np.errstate(invalid="ignore"):
        shares = plain({"accuracy": right.sum() / rows.sum(), "balanced_accuracy": (right / rows).mean()})
    named = dict(zip(TESTS, tests, strict=True))
    last = {name: statistics(test, -1) for name, test in named.items()}
    way = {name: statistics(test) for name, test in named.items()}
    return {"results": {**last, **shares, "classes": list(classes), **counts}, "course": {"steps": list(steps), **way}}


def apart_by(points: Array) -> float:
    """Return the ratio of largest to smallest std of the columns (n, d) with more than two values; 1 without any."""
    spread = [column.std() for column in points.T if len(np.unique(column)) > 2]
    return float(max(spread) / min(spread)) if spread else 1.0


def by_feature(names: Sequence[str], *columns: Array) -> dict[str, list[float | None]]:
    """Return the entries of arrays (d,) by feature name; None means that there is no bound."""
    return dict(zip(names, plain(np.column_stack(columns)), strict=True))


def result_of(facts: Entry, options: Entry, course: RatioTest) -> Result:
    """Return the result from the ``facts`` of the JSON; ``course`` is the test at each step."""
    found, data, model = facts["results"], facts["data"], facts["model"]
    test, balanced, trivial = found["loss_ratio"], found["balanced_accuracy"], 1 / len(found["classes"])
    whole = facts["search"]["engine"] == "people"
    made = Result(
        audit="loss-ratio",
        title="Loss-ratio audit",
        subject=f"{model['given']} on {data['path']}",
        verdict=words.concluded(
            test["rejected"],
            ("UNFAIR", "NOT REJECTED"),
            sentence(facts, options["delta"], options["alpha"]),
            LIMITS,
            {
                "rows": test["n"],
                "left_out": 100 * test["non_finite"] / data["audited"],
                "saturated": None if whole else 100 * found["saturated"] / data["audited"],
                "scales": None if whole else data["scales_apart"],
                **weakest_association(facts["fair_metric"]),
                "gain": None if balanced is None else balanced - trivial,
                **{"balanced": balanced, "trivial": trivial, "classes": numbered(data["label_levels"])},
            },
            "rejected",
        ),
        caveats=(*words.caveats(CAVEATS, conditions(facts)), *words.caveats(words.READING, data["notes"])),
        sections=tuple(_sections(facts, options, course)),
        facts=facts,
        tables={
            "tests": pd.DataFrame([{"test": name, **found[name]} for name in TESTS]),
            **({"examples": pd.DataFrame(facts["examples"])} if facts["examples"] else {}),
        },
        libraries=("numpy", "torch") if facts["search"].get("gradient") == "torch" else ("numpy",),
    )
    return replace(made, brief=brief(facts, options["delta"], options["alpha"], made.verdict, beside_placebo(facts)))


def numbered(levels: Sequence[str]) -> str:
    """Return the classes in words: ``1 is 'yes', 0 is 'no'``."""
    order = range(len(levels)) if len(levels) > 2 else (1, 0)
    return listed([f"{number} is {levels[number]!r}" for number in order], 6)


def conditions(facts: Mapping[str, Any]) -> dict[str, Any]:
    found, data, metric, model = facts["results"], facts["data"], facts["fair_metric"], facts["model"]
    test, course = found["loss_ratio"], facts["course"]
    halfway = int(np.searchsorted(course["steps"], course["steps"][-1] / 2))
    mean = course["loss_ratio"]["S_n"]
    growing = mean[-1] > (1 + GROWTH) * mean[min(halfway, len(mean) - 1)]
    share = found["largest_ratio"] / test["S_n"] / test["n"]
    within, search, bounds = facts["bounds"]["within"], facts["search"], facts["bounds"]
    whole = search["engine"] == "people"
    return {
        "held_out_rows": True,
        "metric_of_audited_rows": metric["source"] == "learned" and metric["path"] == data["path"],
        "noisy_direction": [
            {"attribute": name, "noise": 100 * (1 - share)}
            for name, share in metric.get("signal", {}).items()
            if share < NOISY
        ],
        "not_rejected": not test["rejected"],
        "still_growing": not whole and not test["rejected"] and growing,
        "whole_people": whole
        and {
            **{"permitted": listed(search["permitted"], SHOWN), "rows": search["reference"]["rows"]},
            "candidates": search["candidates"],
        },
        "clipped": whole and {"clip": search["clip"], "most": 1 - search["clip"]},
        "erratic": whole
        and test["rejected"]
        and not search["policy"]["rejected"]
        and {"mean": factor(search["policy"]["S_n"]), "bound": factor(search["policy"]["T_n"])},
        "placebo": placebo_condition(facts),
        "pinned": bounds.get("pinned", 0) > PINNED and {"pinned": 100 * bounds["pinned"]},
        "no_bounds": within is not None
        and {
            **{"outside": facts["bounds"]["outside"], "audited": data["audited"]},
            **{"mean": factor(within["S_n"]), "bound": factor(within["T_n"])},
        },
        "whole_columns": not whole and bool(bounds["whole"]),
        **output_conditions(
            model["output_kind"], model["output_kind_detected"], 0 if whole else found["saturated"], "row"
        ),
        "decision_values": model["decision_values"],
        "regression": model.get("regression"),
        "one_heavy_row": test["n"] >= HEAVY_AMONG and share > HEAVY_SHARE and {"share": 100 * share},
    }


def weakest_association(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attribute that the inputs show the least evidence of, and its p-value; None if none was learned."""
    found = metric.get("association", {})
    name = max(found, key=found.__getitem__, default="")
    return {"attribute": repr(name), "association": found.get(name)}


def unfounded(metric: Mapping[str, Any]) -> str:
    """Return a sentence if the inputs show no evidence of an attribute, so that its direction may be noise."""
    if is_judged(metric):
        return ""
    found = weakest_association(metric)
    return (
        f"The inputs show too little evidence of {found['attribute']} (p-value {p_text(found['association'])}), so its "
        "direction may be noise: a lower --least-share would then permit moves that mean nothing. Use more rows. "
    )


def is_judged(metric: Mapping[str, Any]) -> bool:
    """Return whether the inputs show evidence of every attribute that a direction was learned for."""
    return (weakest_association(metric)["association"] or 0.0) <= ASSOCIATED


def beside_placebo(facts: Mapping[str, Any]) -> str:
    """Return a sentence if the test rejects but its lower bound does not exceed the placebo's ratio, else nothing."""
    placebo, test = facts["placebo"], facts["results"]["loss_ratio"]
    if not test["rejected"] or placebo is None or placebo["S_n"] is None or test["T_n"] > placebo["S_n"]:
        return ""
    where = "in random columns" if facts["search"]["engine"] == "people" else "along random directions"
    return (
        f" The same search {where} has a mean ratio of {factor(placebo['S_n'])}, and the audit's ratio "
        "is not shown to exceed it. The ratio is therefore not shown to be specific to the sensitive directions: the "
        "model may be as sensitive to other changes."
    )


def placebo_condition(facts: Mapping[str, Any]) -> dict[str, Any] | bool:
    """Return the quantities of the caveat that the placebo raises the loss as well, False if it hardly raises it."""
    placebo, test = facts["placebo"], facts["results"]["loss_ratio"]
    if placebo is None or placebo["S_n"] is None or placebo["T_n"] <= 1:
        return False
    share = (placebo["S_n"] - 1) / (test["S_n"] - 1) if test["S_n"] > 1 else 1.0
    if share < MUCH:
        return False
    what = "columns" if facts["search"]["engine"] == "people" else "directions"
    count = placebo["directions"]
    return {
        "directions": f"{count} {what if count > 1 else what[:-1]}",
        "mean": factor(placebo["S_n"]),
        "interval": span((placebo["ci_low"], placebo["ci_high"]), factor),
        "own": factor(test["S_n"]),
    }


def statistics(test: RatioTest, place: int | tuple[()] = ()) -> dict[str, Any]:
    """Return the numbers of a test, or of the entry at ``place`` of its leading axis; NaN (no ratio) becomes null."""
    arrays = {key: getattr(test, array) for key, array in STATISTICS.items() if hasattr(test, array)}
    return {key: plain(np.asarray(array)[place]) for key, array in arrays.items()}


def sentence(facts: Mapping[str, Any], delta: float, alpha: float) -> str:
    """Return the finding of the loss-ratio test in plain sentences: without a decision if a direction is noise."""
    test = facts["results"]["loss_ratio"]
    if not is_judged(facts["fair_metric"]):
        ratio, interval = factor(test["S_n"]), span((test["ci_low"], test["ci_high"]), factor)
        return f"The mean loss ratio along the learned direction is {ratio} ({level(alpha)} interval {interval})."
    if test["rejected"]:
        return (
            f"The test rejects individual fairness: with {level(alpha)} confidence, the loss on a comparable "
            f"individual is on average at least {factor(test['T_n'])} times the loss on the individual itself; "
            f"{delta:g} times is tolerated.{beside_placebo(facts)}"
        )
    found = (
        "The test does not reject individual fairness: the loss on the comparable individual that the search found is "
        f"on average {factor(test['S_n'])} times the loss on the individual itself ({level(alpha)} interval "
        f"{span((test['ci_low'], test['ci_high']), factor)})"
    )
    if test["ci_high"] <= delta:
        return f"{found}; {delta:g} times is tolerated."
    return f"{found}. The tolerated {delta:g} lies inside the interval, so these rows do not decide. Audit more rows."


def _search(found: Entry, chosen: str) -> str:
    """Say where the audit searched, and why if it chose the search among people itself."""
    if chosen != "auto" or found["engine"] != "people":
        return ENGINES[found["engine"]]
    reason = "the model takes categories" if found["categories"] else "the model has no gradient"
    return f"{ENGINES['people']}, because {reason}"


def _sections(facts: Entry, options: Entry, course: RatioTest) -> Iterator[Section]:
    data = facts["data"]
    tested = {
        "null": f"the mean loss ratio E[loss on a comparable individual / own loss] is at most {options['delta']:g}",
        "rows": f"{data['audited']:,} of {data['rows']:,}",
        "search": _search(facts["search"], options["search"]),
        "read as": f"{model_words(facts['model'])}; {data['label']}: {numbered(data['label_levels'])}",
    }
    yield words.tested(Settings, options, tested)
    engine = facts["search"]["engine"]
    drawn = Figure(
        stem="loss_ratio",
        key="figure",
        title="Loss ratios",
        caption="The mean ratio S_n with its two-sided interval, and the lower bound T_n, during the search.",
        by="fairness_audits.audits.loss_ratio.figures:figure",
        of=(facts["course"]["steps"], course, "candidates" if engine == "people" else "gradient steps"),
    )
    yield Section("Result", (*_results(facts, options["delta"], options["alpha"]), drawn))
    yield Section("What the metric treats as alike", tuple(_alike(facts["fair_metric"], facts["search"])))
    if facts["examples"]:
        yield Section("Most unfair examples (rows counted from 0)", (_examples(facts["examples"]),))


def _results(facts: Mapping[str, Any], delta: float, alpha: float) -> tuple[Table, Text, Text]:
    results, rows = facts["results"], []
    tests = [(name, results[key]) for key, name in TESTS.items()]
    if policy := facts["search"].get("policy"):
        tests.append(("loss ratio, policy", policy))
    if placebo := facts["placebo"]:
        tests.append((f"loss ratio, placebo of {placebo['rows']:,} rows", placebo))
    for name, test in tests:
        if test["T_n"] is None:
            rows.append(Row((name, *["-"] * 5)))
            continue
        interval = span((test["ci_low"], test["ci_high"]), factor)
        decision = "rejected" if test["rejected"] else "not rejected"
        if test is facts["placebo"] or not is_judged(facts["fair_metric"]):
            decision = "-"
        rows.append(Row((name, factor(test["S_n"]), interval, factor(test["T_n"]), p_text(test["p_value"]), decision)))
    last = Column(f"at most {delta:g}?", "text")
    heads = ("", "S_n", f"{level(alpha)} interval", "T_n", "p-value")
    test = results["loss_ratio"]
    clipped = f", {test['clipped']:,} clipped" if test["clipped"] else ""
    left_out = f", {test['non_finite']:,} more excluded because they are not finite" if test["non_finite"] else ""
    balanced = "-" if results["balanced_accuracy"] is None else f"{results['balanced_accuracy']:.3f}"
    unknown = results["error_rate_ratio"]["T_n"] is None
    nobody = " No row is misclassified before the attack, so there is no ratio of error rates." if unknown else ""
    return (
        Table((*map(Column, heads), last), tuple(rows)),
        Text(
            "S_n is the mean ratio and T_n its one-sided lower bound. The test rejects if T_n exceeds the tolerance."
            + (POLICY if policy else "")
            + (PLACEBO if placebo else "")
        ),
        Text(
            f"{test['n']:,} ratios, {test['below_one']:,} of them below 1{clipped}{left_out}. The model's accuracy on "
            f"these rows is {results['accuracy']:.3f}, balanced {balanced}.{nobody}"
        ),
    )


def _alike(metric: Mapping[str, Any], search: Mapping[str, Any]) -> Iterator[Text]:
    many, learned = len(metric["directions"]), metric["source"] == "learned"
    source = f"learned from {metric['rows']:,} rows of {metric['path']}" if learned else f"given in {metric['path']}"
    directions = f"{many} directions that span" if many > 1 else "1 direction that spans"
    dimensions = f"{directions} {metric['dimension']} of {len(metric['shares'])}"
    yield Text(
        f"{dimensions} dimensions, {source}. Individuals that differ only along them count as alike. Largest loadings:"
    )
    for name, loadings in metric["directions"].items():
        largest = sorted(loadings, key=lambda feature: -abs(loadings[feature]))[:SHOWN_LOADINGS]
        shown = ", ".join(f"{feature} {loadings[feature]:+.2f}" for feature in largest if loadings[feature])
        levels = metric["levels"].get(name)
        evidence = ""
        if levels:
            known = metric.get("association", {})
            p = f", p-value of no association {p_text(known[name])}" if name in known else ""
            evidence = f" ({levels[1]} +, {levels[0]} -; AUC {metric['separation'][name]:.2f}{p})"
        yield Text(f"{name}{evidence}: {shown}", item=True)
    shares = search.get("shares", metric["shares"])
    most = sorted(shares, key=lambda name: -shares[name])[: 2 * SHOWN_LOADINGS]
    shown = ", ".join(f"{name} {shares[name]:.2f}" for name in most)
    may = f" Columns with a share of at least {search['least_share']:g} may change." if "permitted" in search else ""
    yield Text(f"Share of each column's move that lies along these directions: {shown}.{may}")


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
