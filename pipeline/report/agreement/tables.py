"""Tables of every model under every audit, of the agreement of audits, and of the people that two audits single out."""

from dataclasses import replace

from fairness_audits.messages import enumerated
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import number, sentence
from fairness_audits.results.style import method_style
from fairness_audits.results.table import Cell, Column, Kind
from pipeline.report import labels as w
from pipeline.report.agreement import measures as m
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.selection import select
from pipeline.report.table import StampedTable, tabulated

FAILS = "*"
BOTH = "both"
"""Attribute of audits that concern all attributes together."""
PERFORMANCE = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy"}
OF_DATASET = "Effect that each audit measures for each model. A star marks a model that fails the audit."
Line = tuple[str, str]
"""An attribute (or ``BOTH``) and a measure."""


def label(method: str) -> str:
    """Return the short name of a method: ``threshold_optimizer`` -> ``Thresholds``."""
    return m.LABELS.get(method, method_style(method).label)


@artefact(OF_DATASET, "table_adult", dataset=w.ADULT)
@artefact(OF_DATASET, "table_compas", dataset=w.COMPAS)
@artefact(OF_DATASET, "table_law", dataset=w.LAW)
def of_dataset(inputs: Inputs, dataset: str) -> StampedTable:
    """Tabulate effects and decisions: a row per audit and attribute, a column per model."""
    pairs = [attribute for d, attribute in m.attributes(inputs) if d == dataset]
    blocks = sorted({str(b) for b in m.plain(inputs).query("dataset == @dataset")["block"]})
    if not pairs:
        raise inputs.absence(f"the study has no measures of {dataset}", dataset=dataset)
    found = {attribute: m.verdicts(inputs, dataset, attribute) for attribute in pairs}

    def verdicts(line: Line, method: str) -> list[m.Verdict]:
        attribute, measure = line
        return [found[a][method, measure] for a in (pairs if attribute == BOTH else [attribute])]

    def cell(line: Line, method: str) -> Cell:
        if line[1] in PERFORMANCE:
            place = {"dataset": dataset, "method": method, "statistic": line[1]}
            found_mean = estimate("mean", inputs.select(audit="tabular_robustness", **place))
            return replace(found_mean, text=number(found_mean.value, 2))
        first, *others = verdicts(line, method)
        # The correction is over the measures of one attribute. A model fails both together if it fails one.
        fails = FAILS * any(verdict.rejected for verdict in (first, *others))
        # The intervals do not fit on the page. They are in the CSV of the table.
        text = f"{number(first.effect.value, 2)}{fails}"
        return first.word or replace(first.effect, text=text)

    def p(line: Line, method: str) -> Cell:
        each = [] if line[1] in PERFORMANCE else verdicts(line, method)
        tested = each and not each[0].word and not each[0].untested
        return min(verdict.p for verdict in each) if tested else None

    lines: list[Line] = [(BOTH, name) for name in (*PERFORMANCE, *m.INDIVIDUAL)]
    lines += [(a, name) for a in pairs for name in m.MEASURES if name not in m.INDIVIDUAL]
    columns = [
        column
        for method in m.methods(inputs, dataset)
        for column in (
            Column(label(method), "value and interval", decimals=2, cell=lambda line, x=method: cell(line, x)),
            Column(f"{label(method)} p", printed=False, cell=lambda line, x=method: p(line, x)),
        )
    ]
    said = {**PERFORMANCE, **m.MEASURES}
    rows = [((w.ATTRIBUTES[a], said[name]), (a, name)) for a, name in lines]
    words = {verdict.word for each in found.values() for verdict in each.values()}
    explained = " ".join(f"{sentence(word)}: {why}." for word, why in m.WHY.items() if word in words)
    notes = (*read_as(inputs, dataset), explained or "Every audit applies to every model.")
    return tabulated(_title(dataset), ("Attribute", "Audit"), columns, rows, inputs.stamp(blocks, dataset), notes)


def _title(dataset: str) -> str:
    return f"{w.dataset_label(dataset)}: each model under each audit."


def read_as(inputs: Inputs, dataset: str = "") -> tuple[str, ...]:
    """Return the notes on the meaning of effects and on when a model fails."""
    differences = {
        f"{w.ATTRIBUTES[a]}: {' minus '.join(reversed(inputs.datasets[d].levels[a]))}"
        for d, a in m.attributes(inputs)
        if dataset in ("", d)
    }
    taken = [f"{count:,.0f}" for count in sorted(set(m.steps(m.plain(inputs))))] or [f"{m.STEPS}"]
    of_differences = f" ({'; '.join(sorted(differences))})" if dataset else " (first minus second group in the title)"
    return (
        f"Mean over the repetitions. {FAILS}: fails at level {m.LEVEL:g}.",
        "The CSV also has Student's 95 % interval of each mean.",
        f"Loss ratio and error-rate ratio: median T_n over the repetitions after {enumerated(taken)} steps, for both "
        "attributes together, with the interval of the sign test. Recall, FPR, precision, selection rate, AUC and "
        f"calibration (mean of score minus label): differences{of_differences}.",
        "FlipTest: share of people whose decision differs from that of their counterpart, minus the mean share between "
        "random halves of a group, as the mean of both directions. The halves have at most 500 people, so their share "
        "is slightly too large. Counterfactual: the same by the causal model of Kusner et al., without a test.",
        "Distance: mean Euclidean distance to the decision boundary of the first group divided by that of the second, "
        "minus 1. For networks, distances are upper bounds by FMN.",
        "Tests: m/k times the k-th smallest p of m repetitions, k = \u2308m/2\u2309 (twice the lower median for "
        "even m), then Holm's correction over the audits of a model on an attribute. A ratio may be at most 1.25. "
        "FlipTest may flip at most the share that a random split exceeds with probability 0.05. The other audits test "
        "for no difference. We replace a random decision by its probability, thresholded at 1/2.",
    )


@artefact(
    "Kendall's W is 1 if all audits rank the models in the same order. It is 1 / m on average if the rankings of m "
    "audits are unrelated.",
)
def table_concordance(inputs: Inputs) -> StampedTable:
    places, rows = m.attributes(inputs), m.facts(inputs)

    def mean(pair: m.Pair, statistic: str) -> Estimate:
        own = rows[(rows["dataset"] == pair[0]) & (rows["attribute"] == pair[1]) & (rows["statistic"] == statistic)]
        averages = own.groupby("repetition")["value"].mean().reset_index()
        return estimate("mean", averages, limits=(-1 if statistic == "tau" else 0, 1))

    shown: Kind = "value and interval"
    return tabulated(
        "Agreement of all audits.",
        ("Data set", "Attribute"),
        (
            Column("W", shown, name="Kendall's W", cell=lambda pair: mean(pair, "W")),
            Column("W by chance", name="by chance", cell=lambda pair: 1 / mean(pair, "measures").value),
            Column("audits", decimals=0, cell=lambda pair: mean(pair, "measures").value),
            Column("models", decimals=0, cell=lambda pair: mean(pair, "models").value),
            Column("tau", shown, name="mean tau over pairs", cell=lambda pair: mean(pair, "tau")),
        ),
        [((w.dataset_label(d), w.ATTRIBUTES[a]), (d, a)) for d, a in places],
        inputs.stamp(),
        (
            "Means over the repetitions with Student's 95 % intervals. Repetitions are splits of the same people.",
            "W uses the models to which every audit applies, and the repetitions that have all audits. Tau is the mean "
            "over all pairs of audits, for the models to which both apply.",
        ),
    )


@artefact("Kendall's tau of the rankings of the models by two audits, for each data set and attribute.")
def table_pairs(inputs: Inputs) -> StampedTable:
    places, taus = m.attributes(inputs), select(m.facts(inputs), {"statistic": "tau"})
    if taus.empty:
        raise inputs.absence("no two audits have three models in common")

    def tau(pair: tuple[str, str], place: tuple[str, str]) -> Cell:
        setting = {"measure": pair[0], "other": pair[1], "dataset": place[0], "attribute": place[1]}
        rows = select(taus, setting)
        if rows.empty:
            return None
        found = estimate("mean", rows, limits=(-1, 1))
        return replace(found, text=number(found.value, 2))

    pairs = list(taus[["measure", "other"]].drop_duplicates().itertuples(index=False, name=None))
    columns = [
        Column(f"{w.dataset_label(d)} {w.ATTRIBUTES[a]}", "value and interval",
               lambda pair, place=(d, a): tau(pair, place), w.dataset_label(d), 2, w.ATTRIBUTES[a])
        for d, a in places
    ]  # fmt: skip
    order = list(m.MEASURES)
    return tabulated(
        "Agreement of pairs of audits.",
        ("Audit", "Other"),
        columns,
        [((m.MEASURES[a], m.MEASURES[b]), (a, b)) for a, b in sorted(pairs, key=lambda x: tuple(map(order.index, x)))],
        inputs.stamp(),
        (
            "Means over the repetitions. A dash: fewer than three models have both audits.",
            "The CSV also has Student's 95 % intervals.",
        ),
    )
