"""The result of a loss-ratio audit as a document. Layout of the JSON: ``docs/auditing.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.audits.loss_ratio.ratio_tests import RatioTest
from pipeline.cli import words
from pipeline.cli.audit.loss_ratio import examples
from pipeline.cli.audit.loss_ratio.equated import Equated
from pipeline.cli.audit.loss_ratio.evidence import Evidence, Settings
from pipeline.cli.columns import Rows
from pipeline.cli.document import AuditDocument, Column, Figure, Row, Section, Table, Text, Verdict, drawn_by
from pipeline.cli.numbers import factor, level, p_text, plain, span
from pipeline.cli.probe import OUTPUT_CAVEATS, Scores, output_conditions
from pipeline.cli.units import Units
from pipeline.messages import listed
from pipeline.types import Array

SCHEMA = 1
SHOWN_LOADINGS = 5
SHOWN_EXAMPLES = 5
FEW_ROWS = 100
"""Below this many rows the normal approximation of the tests is doubtful."""
WEAK_SEPARATION = 0.6
"""An attribute told apart with a smaller area under the ROC curve has a direction made mostly of chance."""
HEAVY_SHARE = 0.1
"""One row with more than this share of the sum of all ratios dominates the mean."""
GROWTH = 0.01
"""A mean ratio that grows by a larger share over the second half of the steps has not settled."""
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
CAVEATS = f"""
held_out_rows: The test is valid only if the audited rows played no part in making the model.
metric_of_audited_rows: The fair metric was learned on the audited rows themselves, as in the published study;
  --metric-data learns it on others.
not_rejected: Not rejecting is no proof of fairness: the attack finds comparable individuals that are treated worse, not
  those that are treated worst.
still_growing: S_n was still growing at the last step: more --steps look further.
columns_of_two_values: Comparable individuals are points in the space of features: columns of two values move
  continuously too, so such a point need not describe a real person.
worse_than_chance: The model predicts the label worse than chance: check the order of --features and which class is
  --positive (1 stands for {{positive!r}}).
{OUTPUT_CAVEATS.strip()}
weak_direction: The features hardly tell the groups of {{name!r}} apart (AUC {{auc:.2f}}): its direction is mostly
  chance.
all_alike: The sensitive directions span all features: the metric treats everyone as alike.
rows_left_out: {{count}} rows have no finite ratio and are left out of the statistics.
clipped_ratios: {{count}} ratios were held at the bounds of floating-point numbers and are kept.
few_rows: The tests rest on a normal approximation, which {{n}} rows may not justify.
one_heavy_row: One row makes up {{share:.0f}} % of the sum of all ratios: the mean and its interval depend on it, and
  the normal approximation is doubtful.
"""


@dataclass(frozen=True)
class Result:
    """What was measured, of which ``rows`` with which numbers in the file (n,), model, metric and settings."""

    evidence: Evidence
    rows: Rows
    row_numbers: Array
    units: Units
    scores: Scores
    equated: Equated
    settings: Settings


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
        verdict=Verdict(
            outcome=test["rejected"],
            headline="UNFAIR" if test["rejected"] else "NOT REJECTED",
            sentence=sentence(test, settings.delta, settings.alpha),
            facts={"rejected": test["rejected"]},
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


def conditions(result: Result, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What holds of this audit, for CAVEATS."""
    found, evidence = facts["results"], result.evidence
    test, data, metric = found["loss_ratio"], facts["data"], facts["fair_metric"]
    halfway = int(np.searchsorted(evidence.steps, evidence.steps[-1] / 2))
    mean = evidence.course.mean
    growing = mean[-1] > (1 + GROWTH) * mean[min(halfway, len(mean) - 1)]
    share = float(np.nanmax(evidence.ratio / np.nansum(evidence.ratio)))
    label = result.rows.label
    right = (result.scores.probability > 0.5) == (label == 1)
    by_class = np.mean([right[label == c].mean() for c in np.unique(label)])
    return {
        "held_out_rows": True,
        "metric_of_audited_rows": metric["path"] == data["path"],
        "not_rejected": not test["rejected"],
        "still_growing": not test["rejected"] and growing,
        "columns_of_two_values": any(len(np.unique(column)) == 2 for column in result.rows.features.T),
        "worse_than_chance": by_class < 0.5 and {"positive": data["label_levels"][1]},
        **output_conditions(result.scores, "row"),
        "weak_direction": [
            {"name": name, "auc": auc} for name, auc in metric["separation"].items() if auc < WEAK_SEPARATION
        ],
        "all_alike": metric["dimension"] == len(metric["shares"]),
        "rows_left_out": test["non_finite"] and {"count": test["non_finite"]},
        "clipped_ratios": test["clipped"] and {"count": test["clipped"]},
        "few_rows": test["n"] < FEW_ROWS and {"n": test["n"]},
        "one_heavy_row": test["n"] >= FEW_ROWS and share > HEAVY_SHARE and {"share": 100 * share},
    }


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
