"""The result of a loss-ratio audit as a document. Layout of the JSON: ``docs/auditing.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.audits.loss_ratio.ratio_tests import RatioTest
from pipeline.cli import words
from pipeline.cli.audit.loss_ratio import examples
from pipeline.cli.audit.loss_ratio.caveats import CAVEATS, LIMITS, Result, conditions, quantities
from pipeline.cli.audit.loss_ratio.equated import Equated
from pipeline.cli.audit.loss_ratio.evidence import Evidence, Settings
from pipeline.cli.document import AuditDocument, Column, Figure, Row, Section, Table, Text, Verdict, drawn_by
from pipeline.cli.numbers import factor, level, p_text, plain, span
from pipeline.cli.verdict import concluded
from pipeline.messages import listed

SCHEMA = 1
SHOWN_LOADINGS = 5
SHOWN_EXAMPLES = 5
TESTS = {"loss_ratio": "loss ratio", "error_rate_ratio": "error-rate ratio"}
SHAPES = {1: "one column, class 1", 2: "two columns"}
STATISTICS = {
    **{"S_n": "mean", "V_n": "std", "T_n": "statistic"},
    **{name: name for name in ("ci_low", "ci_high", "p_value", "rejected", "n", "non_finite", "clipped", "below_one")},
}
"""The arrays of a test by their names in the JSON, which are the paper's where it has one."""
COURSE = ("S_n", "T_n", "ci_high")
TESTED = """
null: the mean loss ratio E[loss on a comparable individual / own loss] is at most {delta:g}
level: {alpha:g}
data: {rows}, {features} features{units}
label: {label}: 1 is {one!r}, 0 is {zero!r}
model: {origin}; output: {shape}, {output_kind} ({read})
attack: {steps} gradient steps of {step_size:g}, fair distance penalised with lambda = {regularization:g}; {dtype} on
  {device}
"""


def document(result: Result, given: Mapping[str, Mapping[str, Any]], count: int) -> AuditDocument:
    """The document with so many examples; ``given`` says which data, model, metric and parameters were given."""
    found = outcomes(result)
    test, settings = found["loss_ratio"], result.settings
    facts: dict[str, Any] = {
        "results": found,
        **given,
        "fair_metric": {**given["fair_metric"], **fair_metric(result.equated, result.rows.names)},
        "examples": examples.entries(result.evidence, result.rows, result.row_numbers, result.units, count),
        "course": course(result.evidence),
    }
    return AuditDocument(
        audit="loss-ratio",
        schema=SCHEMA,
        title="Loss-ratio audit",
        subject=f"{given['model']['given']} on {given['data']['path']}",
        verdict=concluded(
            Verdict(
                outcome="rejected" if test["rejected"] else "not rejected",
                headline="UNFAIR" if test["rejected"] else "NOT REJECTED",
                sentence=sentence(test, settings.delta, settings.alpha),
            ),
            LIMITS,
            quantities(result, found),
            "rejected",
        ),
        caveats=tuple(words.caveats(CAVEATS, conditions(result, facts))),
        sections=tuple(_sections(result, facts)),
        facts=facts,
        tables={"examples": examples.table(result.evidence, result.rows, result.row_numbers, count)},
        libraries=("numpy", "torch"),
    )


def outcomes(result: Result) -> dict[str, Any]:
    """Both tests at the last step, and how well the model predicts the audited rows; NaN (no ratio exists) is null."""
    label = result.rows.label
    right = (result.scores.probability > 0.5) == (label == 1)
    by_class = [right[label == c].mean() if (label == c).any() else np.nan for c in (0, 1)]
    return {
        **{
            name: plain({key: getattr(test, array)[-1] for key, array in STATISTICS.items()})
            for name, test in _tests(result.evidence)
        },
        **plain({"accuracy": right.mean(), "balanced_accuracy": sum(by_class) / 2}),
    }


def course(evidence: Evidence) -> dict[str, Any]:
    """The statistics on the way, one entry for each recorded number of steps."""
    on_the_way = {
        name: {key: plain(np.asarray(getattr(test, STATISTICS[key]))) for key in COURSE}
        for name, test in _tests(evidence)
    }
    return {"steps": list(evidence.steps), **on_the_way}


def _tests(evidence: Evidence) -> Iterator[tuple[str, RatioTest]]:
    return zip(TESTS, (evidence.course, evidence.error_course), strict=True)


def fair_metric(equated: Equated, names: tuple[str, ...]) -> dict[str, Any]:
    """The sensitive directions, and the share of each feature's axis that lies in the sensitive subspace.

    The shares are the diagonal of the projector U U': 1 for a feature that the metric ignores altogether, 0 for one
    that it keeps in full; they sum to the subspace's dimension.
    """
    basis = equated.metric.basis
    assert basis is not None
    return {
        "dimension": int(basis.shape[1]),
        "directions": {
            name: dict(zip(names, direction.tolist(), strict=True))
            for name, direction in zip(equated.names, equated.loadings, strict=True)
        },
        "shares": dict(zip(names, (basis**2).sum(axis=1).tolist(), strict=True)),
        "separation": dict(equated.separation),
    }


def sentence(test: Mapping[str, Any], delta: float, alpha: float) -> str:
    """What the loss-ratio test says, in one plain sentence (two where the rows do not decide)."""
    if test["rejected"]:
        return (
            f"The audit rejects individual fairness: with {level(alpha)} confidence, the loss on a comparable "
            f"individual is on average at least {factor(test['T_n'])} times the loss on the individual itself; "
            f"{delta:g} times is tolerated."
        )
    found = (
        "The audit does not reject individual fairness: the loss on the comparable individual that it found is on "
        f"average {factor(test['S_n'])} times the loss on the individual itself ({level(alpha)} interval "
        f"{span((test['ci_low'], test['ci_high']), factor)})"
    )
    if test["ci_high"] <= delta:
        return f"{found}; {delta:g} times is tolerated."
    return f"{found}. The tolerated {delta:g} lies inside the interval: these rows do not decide; more of them would."


def _sections(result: Result, facts: Mapping[str, Any]) -> Iterator[Section]:
    data, model, settings = facts["data"], facts["model"], result.settings
    zero, one = data["label_levels"]
    count = f"{data['audited']:,} rows"
    if data["audited"] < data["rows"]:
        count = f"{data['audited']:,} of {data['rows']:,} rows, drawn with seed {facts['parameters']['seed']}"
    tested = words.facts(
        TESTED,
        **vars(settings),
        rows=count,
        features=len(data["features"]),
        units=f"; in standard deviations: {listed(data['standardized'], 6)}" if data["standardized"] else "",
        **{"label": data["label"], "one": one, "zero": zero, "origin": model["origin"]},
        shape=SHAPES[model["output_columns"]],
        output_kind=model["output_kind"],
        read="read off the values" if model["output_kind_detected"] else "as told",
    )
    yield Section("What was tested", (tested,))
    drawn = Figure(
        stem="loss_ratio",
        key="figure",
        title="Loss ratios",
        caption="(a) How the loss ratios of the audited rows are distributed. (b) Their mean S_n with its two-sided "
        "interval, and the lower bound T_n, as the attack goes on.",
        draw=drawn_by("pipeline.cli.audit.loss_ratio.figure:figure", result.evidence),
    )
    yield Section("Result", (*_results(facts["results"], settings), drawn))
    yield Section("What the metric treats as alike", tuple(_alike(facts["fair_metric"])))
    if facts["examples"]:
        yield Section("Most unfair examples (rows counted from 0)", (_examples(facts["examples"]),))


def _results(results: Mapping[str, Any], settings: Settings) -> tuple[Table, Text, Text]:
    rows = []
    for key, name in TESTS.items():
        test = results[key]
        if test["T_n"] is None:
            rows.append(Row((name, "does not exist: no row is misclassified before the attack")))
            continue
        interval = span((test["ci_low"], test["ci_high"]), factor)
        decision = "rejected" if test["rejected"] else "not rejected"
        rows.append(Row((name, factor(test["S_n"]), interval, factor(test["T_n"]), p_text(test["p_value"]), decision)))
    last = Column(f"at most {settings.delta:g}?", kind="text")
    heads = ("", "S_n", f"{level(settings.alpha)} interval", "T_n", "p-value")
    test = results["loss_ratio"]
    clipped = f", {test['clipped']:,} clipped" if test["clipped"] else ""
    left_out = f", {test['non_finite']:,} more not finite and left out" if test["non_finite"] else ""
    balanced = "-" if results["balanced_accuracy"] is None else f"{results['balanced_accuracy']:.3f}"
    return (
        Table((*map(Column, heads), last), tuple(rows)),
        Text("S_n is the mean ratio, T_n its one-sided lower bound: rejected where T_n exceeds the tolerance."),
        Text(
            f"{test['n']:,} ratios, {test['below_one']:,} of them below 1{clipped}{left_out}. The model's accuracy on "
            f"these rows is {results['accuracy']:.3f}, balanced {balanced}."
        ),
    )


def _alike(metric: Mapping[str, Any]) -> Iterator[Text]:
    many, learned = len(metric["directions"]), metric["source"] == "learned"
    source = f"learned from {metric['rows']:,} rows of {metric['path']}" if learned else f"given in {metric['path']}"
    dimensions = f"{many} direction{'s' * (many > 1)} that span {metric['dimension']} of {len(metric['shares'])}"
    yield Text(
        f"{dimensions} dimensions, {source}. Individuals that differ only along them count as alike. Largest loadings:"
    )
    for name, loadings in metric["directions"].items():
        largest = sorted(loadings, key=lambda feature: -abs(loadings[feature]))[:SHOWN_LOADINGS]
        shown = ", ".join(f"{feature} {loadings[feature]:+.2f}" for feature in largest if loadings[feature])
        levels = metric["levels"].get(name)
        told = f" ({levels[1]} +, {levels[0]} -; AUC {metric['separation'][name]:.2f})" if levels else ""
        yield Text(f"{name}{told}: {shown}", item=True)


def _examples(entries: Sequence[Mapping[str, Any]]) -> Table:
    """The losses and probabilities of each example; below them its groups and the features that moved most."""
    heads = ("row", "label", "own loss", "comparable loss", "ratio", "own P(1)", "comparable P(1)")
    columns = tuple(Column(head, "comparable" if "comparable" in head else None) for head in heads)
    rows = []
    for one in entries:
        groups = [f"{name.partition('=')[0]} {group}" for name, group in one["sensitive"].items()]
        moves = [f"{move['feature']} {move['original']:.4g} -> {move['comparable']:.4g}" for move in one["changes"]]
        cells = (
            f"{one['row']}", f"{one['label']}", f"{one['original_loss']:.3g}", f"{one['comparable_loss']:.3g}",
            factor(one["loss_ratio"]), f"{one['original_probability']:.3f}", f"{one['comparable_probability']:.3f}",
        )  # fmt: skip
        rows.append(Row(cells, "; ".join([*groups, *moves])))
    return Table(columns, tuple(rows), SHOWN_EXAMPLES, file="examples.csv", notes="groups and largest changes")
