"""The JSON document as a page for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.cli.audit.loss_ratio.document import factor
from pipeline.cli.page import line, paragraph, titled

SHOWN_EXAMPLES = 5
SHOWN_LOADINGS = 5


def page(document: Mapping[str, Any]) -> str:
    """The verdict, what it rests on, and what to keep in mind; lines fit the page where that can be helped."""
    data, model = document["data"], document["model"]
    rejected = document["verdict"]["rejected"]
    parts = [
        f"Loss-ratio audit of {model['given']} on {data['path']}",
        paragraph(("UNFAIR. " if rejected else "NOT REJECTED. ") + document["verdict"]["sentence"], "  "),
        titled("What was tested", _tested(document)),
        titled("Result", _result(document)),
        titled("What the metric treats as alike", _equated(document)),
        titled("Most unfair examples (rows counted from 0)", _examples(document)),
        titled("Keep in mind", [paragraph(text, "  - ", "    ") for text in document["caveats"]]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _tested(document: Mapping[str, Any]) -> list[str]:
    data, model, parameters = document["data"], document["model"], document["parameters"]
    zero, one = data["label_levels"]
    rows = f"{data['audited']:,} rows"
    if data["audited"] < data["rows"]:
        rows = f"{data['audited']:,} of {data['rows']:,} rows, drawn with seed {parameters['seed']}"
    units = f"; in standard deviations: {_some(data['standardized'])}" if data["standardized"] else ""
    read = "read off the values" if model["output_kind_detected"] else "as told"
    shape = "two columns" if model["output_columns"] == 2 else "one column, class 1"
    return [
        line(
            "null",
            f"the mean loss ratio E[loss on a comparable individual / own loss] is at most {parameters['delta']:g}",
        ),
        line("level", f"{parameters['alpha']:g}"),
        line("data", f"{rows}, {len(data['features'])} features{units}"),
        line("label", f"{data['label']}: 1 is {one!r}, 0 is {zero!r}"),
        line("model", f"{model['origin']}; output: {shape}, {model['output_kind']} ({read})"),
        line(
            "attack",
            f"{parameters['steps']} gradient steps of {parameters['step_size']:g}, fair distance penalised with "
            f"lambda = {parameters['regularization']:g}; {parameters['dtype']} on {parameters['device']}",
        ),
    ]


def _result(document: Mapping[str, Any]) -> list[str]:
    results, parameters = document["results"], document["parameters"]
    level = f"{100 * (1 - parameters['alpha']):g} % interval"
    lines = [f"  {'':17}{'S_n':>8}  {level:^18}{'T_n':>8}{'p-value':>9}  at most {parameters['delta']:g}?"]
    for name, key in (("loss ratio", "loss_ratio"), ("error-rate ratio", "error_rate_ratio")):
        test = results[key]
        if test["T_n"] is None:
            lines.append(f"  {name:17} does not exist: no row is misclassified before the attack")
            continue
        interval = f"{factor(test['ci_low'])} to {factor(test['ci_high'])}"
        p_value = "< 1e-16" if test["p_value"] < 1e-16 else f"{test['p_value']:.2g}"
        decision = "rejected" if test["rejected"] else "not rejected"
        lines.append(
            f"  {name:17}{factor(test['S_n']):>8}  {interval:^18}{factor(test['T_n']):>8}{p_value:>9}  {decision}"
        )
    return [
        *lines,
        "",
        paragraph("S_n is the mean ratio, T_n its one-sided lower bound: rejected where T_n exceeds the tolerance."),
        paragraph(_counts(results)),
    ]


def _counts(results: Mapping[str, Any]) -> str:
    test = results["loss_ratio"]
    clipped = f", {test['clipped']:,} clipped" if test["clipped"] else ""
    left_out = f", {test['non_finite']:,} more not finite and left out" if test["non_finite"] else ""
    balanced = "-" if results["balanced_accuracy"] is None else f"{results['balanced_accuracy']:.3f}"
    return (
        f"{test['n']:,} ratios, {test['below_one']:,} of them below 1{clipped}{left_out}. The model's accuracy on "
        f"these rows is {results['accuracy']:.3f}, balanced {balanced}."
    )


def _equated(document: Mapping[str, Any]) -> list[str]:
    metric = document["fair_metric"]
    many = len(metric["directions"])
    source = (
        f"given in {metric['path']}"
        if metric["source"] == "given"
        else f"learned from {metric['rows']:,} rows of {metric['path']}"
    )
    dimensions = (
        f"{many} direction{'s' * (many > 1)} that span {metric['dimension']} of {len(metric['shares'])} dimensions"
    )
    lines = [
        paragraph(f"{dimensions}, {source}. Individuals that differ only along them count as alike. Largest loadings:")
    ]
    for name, loadings in metric["directions"].items():
        largest = sorted(loadings, key=lambda feature: -abs(loadings[feature]))[:SHOWN_LOADINGS]
        shown = ", ".join(f"{feature} {loadings[feature]:+.2f}" for feature in largest if loadings[feature])
        levels = metric["levels"].get(name)
        told = f" ({levels[1]} +, {levels[0]} -; AUC {metric['separation'][name]:.2f})" if levels else ""
        lines.append(paragraph(f"{name}{told}: {shown}", "  ", "      "))
    return lines


def _examples(document: Mapping[str, Any]) -> list[str]:
    """One line of numbers for each example, and below it the features that moved most."""
    shown = document["examples"][:SHOWN_EXAMPLES]
    if not shown:
        return []
    lines = [f"  {'row':>7}  label  {'own loss':>9}{'comparable':>12}{'ratio':>9}{'own P(1)':>10}{'comparable':>12}"]
    for example in shown:
        lines.append(
            f"  {example['row']:>7}  {example['label']:>5}  {example['original_loss']:>9.3g}"
            f"{example['comparable_loss']:>12.3g}{factor(example['loss_ratio']):>9}"
            f"{example['original_probability']:>10.3f}{example['comparable_probability']:>12.3f}"
        )
        groups = [f"{name.partition('=')[0]} {level}" for name, level in example["sensitive"].items()]
        moves = [f"{move['feature']} {move['original']:.4g} -> {move['comparable']:.4g}" for move in example["changes"]]
        lines.append(paragraph("; ".join([*groups, *moves]), " " * 11))
    return lines


def _some(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= 6 else f"{', '.join(values[:6])} and {len(values) - 6} more columns"
