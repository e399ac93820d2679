r"""Effects and tests of all audits on a common scale, and the agreement of the audits.

A *measure* is a number of an audit with its test. For each data set, attribute, model and repetition it has

- ``effect``: T_n for the loss ratio and the error-rate ratio; the difference of a group metric, level 1 of the
  attribute minus level 0; for FlipTest the share of people whose decision differs from that of their counterpart, minus
  the mean share between random halves of their group, averaged over both directions; the share of changed decisions for
  the counterfactuals of a causal model; sigma of level 1 for the distance to the decision boundary;
- ``unfairness``, which ranks the models, larger is worse: the effect, or its absolute value if the sign of the effect
  only tells which group is affected;
- ``p``: the null hypothesis is a ratio of at most the tolerated one, equal metrics, or equal mean distances. For
  FlipTest it is a share of flips of at most the floor, which one more random split into halves exceeds with
  probability alpha; p is :math:`P(K \ge k)` of a binomial count with that share, twice the smaller one of the two
  directions. Counterfactuals have no p, because no decision changes by chance.

``rejected`` is 1 if p is at most ``LEVEL`` after Holm's correction over the measures of that model, attribute and
repetition. The decision over all repetitions takes twice the lower median of p, then Holm's correction over the
measures.

The facts, rows of the block ``agreement``, are

- ``W`` of each repetition, Kendall's coefficient of concordance of m measures over the n models to which all of them
  apply. R_i is the sum of the ranks of a model, and ties of t models share a rank:

  .. math:: W = \frac{12 \sum_i (R_i - \bar R)^2}{m^2 (n^3 - n) - m \sum (t^3 - t)},

  which is 1 if all measures agree and 1 / m on average if they are unrelated;
- ``tau``, Kendall's tau-b of two measures (``measure``, ``other``) over the models to which both apply;
- ``models_that_pass_all``, the number of models that no measure rejects, among those to which every measure applies;
- ``fails_individual_of_passing``, the share rejected by the loss ratio among the models that no group metric rejects;
- ``flipped``, FlipTest's share of people whose decision differs from that of their counterpart, by ``direction``.

Sources: Kendall and Babington Smith 1939; Holm 1979; Rueger 1978 for the median.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom, rankdata

from fairness_audits.audits.inference import corrected
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.style import ordered
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.fliptest.trials import BOTH
from pipeline.report.inputs import Inputs, NotRun, as_text

BLOCK = "agreement"
LEVEL = 0.05
STEPS = 500
"""Steps of the loss-ratio audit, as its paper states them for Adult."""
INDIVIDUAL = {"loss_ratio": "", "error_ratio": "error_"}
"""Measures of individual fairness, and the prefixes of their statistics."""
GROUP = ("tpr", "fpr", "precision", "selection_rate", "auc", "mean_error")
FLIPTEST, CAUSAL, ROBUSTNESS = "fliptest", "counterfactual", "robustness"
MEASURES = {
    "loss_ratio": "loss ratio",
    "error_ratio": "error-rate ratio",
    **{name: w.METRICS[name] for name in GROUP},
    "mean_error": "calibration",
    FLIPTEST: "FlipTest",
    CAUSAL: "counterfactual",
    ROBUSTNESS: "distance",
}
"""Printed names of the measures, in the order of the artefacts."""
METHODS = (
    *("baseline", "project", "sensr", "reductions"),
    *("parity_constrained", "reweighing", "threshold_optimizer", "logistic"),
)
LABELS = {"parity_constrained": "Parity constraint", "threshold_optimizer": "Thresholds", "logistic": "Logistic"}
"""Short names of methods with another name elsewhere."""
DRAWN, NO_GRADIENT, NO_METRIC, NO_MODEL = "random", "no gradient", "no metric", "no model"
NOT_RUN, UNDEFINED = "not run", "undefined"
WHY = {
    DRAWN: "the decision is random, so there is no decision boundary",
    NO_GRADIENT: "the decision is a step function of the features, so the attack has no gradient",
    NO_METRIC: "protected attributes are inputs, and the sensitive directions span all features",
    NO_MODEL: "there is no causal model of these data",
    NOT_RUN: "not run at this scale",
    UNDEFINED: "no repetition has a test",
}
Pair = tuple[str, str]
"""A data set and an attribute."""
KNOWN = list(w.ATTRIBUTES)
KEYS = ["dataset", "attribute", "method", "measure", "repetition"]
BOTH_WAYS = ["dataset", "attribute", "method"]
"""Keys that the two directions of a map share."""


@dataclass(frozen=True)
class Verdict:
    """A measure of one model over all repetitions: effect and p after Holm's correction (NaN without a test).

    If there is no effect, ``word`` says why.
    """

    effect: Estimate
    p: float = float("nan")
    word: str = ""

    @property
    def rejected(self) -> bool:
        """Return whether the model fails."""
        return self.p <= LEVEL

    @property
    def untested(self) -> bool:
        """Return whether the measure has no test."""
        return not np.isfinite(self.p)


def measured(inputs: Inputs) -> pd.DataFrame:
    """Return all measures by repetition: ``KEYS``, ``effect``, ``unfairness``, ``p``, ``rejected`` and ``origin``."""
    return inputs.once("measures", lambda: _measured(inputs))


def _measured(inputs: Inputs) -> pd.DataFrame:
    rows = plain(inputs)
    flips = (_flips(rows, measure) for measure in (FLIPTEST, CAUSAL))
    parts = [*_individual(rows), _group(rows), *flips, _distances(rows, inputs)]
    if not (some := [part for part in parts if len(part)]):
        return pd.DataFrame(columns=[*KEYS, "effect", "unfairness", "p", "rejected", "origin"])
    found = pd.concat(some, ignore_index=True)
    place = [key for key in KEYS if key != "measure"]
    adjusted = found.groupby(place, sort=False)["p"].transform(lambda p: corrected(p.to_numpy(float), "holm"))
    return found.assign(rejected=(adjusted <= LEVEL).astype(float).where(adjusted.notna()))[
        [*KEYS, "effect", "unfairness", "p", "rejected", "origin"]
    ]


def plain(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of available data, with categories as text."""
    rows = inputs.rows
    return inputs.once("rows as text", lambda: as_text(rows[rows["origin"] != "absent"]), rows)


def audited(inputs: Inputs, audit: str, lacking: str) -> pd.DataFrame:
    """Return the rows of an audit. Raises NotRun, which says what the run does not do (``lacking``), if it has none."""
    rows = plain(inputs)
    if (found := rows[rows["audit"] == audit]).empty:
        grid = inputs.config["experiment"].get("grid", {})
        blocks = [block for block, keys in grid.items() if keys.get("audit") == audit]
        raise NotRun(str(inputs.absence(f"Not run: this run does not {lacking}.", blocks)))
    return found


def attributes(inputs: Inputs) -> list[Pair]:
    """Return the pairs of data set and attribute, in order. Raises NotRun or ValueError if there are none."""
    found = measured(inputs)
    if found.empty:
        raise inputs.absence("the study has no measures")
    return sorted(set(zip(found["dataset"], found["attribute"], strict=True)), key=lambda x: (x[0], KNOWN.index(x[1])))


def methods(inputs: Inputs, dataset: str) -> list[str]:
    """Return the models of a data set, in order."""
    found = measured(inputs)
    return ordered(found.loc[found["dataset"] == dataset, "method"], METHODS)


def _wide(rows: pd.DataFrame, keys: list[str], statistics: Mapping[str, str]) -> pd.DataFrame:
    """Return the statistics as columns with these names, one row per value of the keys."""
    selected = rows[rows["statistic"].isin(statistics)]
    wide = selected.pivot(index=[*keys, "origin"], columns="statistic", values="value").reset_index()
    return wide.rename(columns=statistics).rename_axis(columns=None)


def steps(rows: pd.DataFrame) -> pd.Series:
    """Return the step of the attack at which the ratios are taken, by data set: ``STEPS``, or fewer at small scales."""
    recorded = rows.loc[(rows["audit"] == "loss_ratio") & (rows["steps"] <= STEPS)]
    return recorded.groupby("dataset")["steps"].max()


def _individual(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the ratios, repeated for each attribute because they concern all attributes together."""
    pairs = rows.loc[rows["audit"] == "permutation", ["dataset", "attribute"]].drop_duplicates()
    audited = rows[rows["audit"] == "loss_ratio"]
    if audited.empty:
        return
    audited = audited[audited["steps"] == audited["dataset"].map(steps(rows))]
    for measure, start in INDIVIDUAL.items():
        names = {f"{start}T_n": "effect", f"{start}p_value": "p"}
        found = _wide(audited, ["dataset", "method", "repetition"], names)
        yield found.assign(measure=measure, unfairness=found["effect"]).merge(pairs, on="dataset")


def _group(rows: pd.DataFrame) -> pd.DataFrame:
    audited = rows[(rows["audit"] == "permutation") & rows["metric"].isin(GROUP)]
    if audited.empty:
        return audited
    audited = audited.assign(measure=audited["metric"])
    found = _wide(audited, KEYS, {"difference": "effect", "p_value": "p"})
    return found.assign(unfairness=found["effect"].abs())


def _flipsets(rows: pd.DataFrame, causal: bool) -> pd.DataFrame:
    """Return the counts of each direction's flipsets, one column each, for the causal or the exact map."""
    of_map = (rows["transport"] == CAUSAL) == causal
    audited = rows[(rows["audit"] == FLIPTEST) & of_map & rows["feature"].isna()]
    if audited.empty:
        return audited
    names = audited["statistic"] + audited["flipset"].fillna("").map(lambda flipset: flipset and f" {flipset}")
    keys = [*BOTH_WAYS, "direction", "repetition"]
    return _wide(audited.assign(statistic=names), keys, {name: name for name in names.unique()})


def _flipped(whole: pd.DataFrame, statistic: str = "size") -> pd.Series:
    """Return the size of both flipsets together as a share of the group."""
    both = [whole[f"{statistic} {flipset}"] for flipset in BOTH]
    return (both[0] + both[1]) / whole["n_source"]


def _flips(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the share of flips as the mean of both directions, and for exact maps the excess over chance and p."""
    whole = _flipsets(rows, causal=measure == CAUSAL)
    if whole.empty:
        return whole
    whole = whole.assign(effect=_flipped(whole), p=np.nan)
    if measure == FLIPTEST:
        place = [whole[key] for key in (*BOTH_WAYS, "direction")]
        # Only the first repetition records the noise, for all repetitions.
        sizes = ("noise_size", "noise_size_upper")
        noise, upper = (_flipped(whole, size).groupby(place).transform("max") for size in sizes)
        floor = np.clip(upper, 1 / whole["noise_people"].groupby(place).transform("max"), 1.0)
        people = whole["n_source"].to_numpy()
        p = binom.sf(np.rint(whole["effect"] * people) - 1, people, floor)
        whole = whole.assign(effect=whole["effect"] - noise, p=p)
    grouped = whole.groupby([*BOTH_WAYS, "repetition", "origin"])
    both_ways = grouped.agg(effect=("effect", "mean"), p=("p", "min"), ways=("p", "size")).reset_index()
    p = np.minimum(1.0, both_ways.pop("ways") * both_ways["p"])
    return both_ways.assign(measure=measure, unfairness=both_ways["effect"], p=p)


def _distances(rows: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    audited = rows[(rows["audit"] == "tabular_robustness") & rows["attribute"].notna()]
    if audited.empty:
        return audited
    first = [inputs.datasets[d].levels[a][1] for d, a in zip(audited["dataset"], audited["attribute"], strict=True)]
    audited = audited[audited["level"] == first].assign(measure=ROBUSTNESS)
    found = _wide(audited, KEYS, {"sigma": "effect", "sigma_p": "p"})
    return found.assign(unfairness=found["effect"].abs())


def verdicts(inputs: Inputs, dataset: str, attribute: str) -> dict[tuple[str, str], Verdict]:
    """Return the verdict of every measure on every model, by (method, measure)."""
    found = measured(inputs)
    here = found[(found["dataset"] == dataset) & (found["attribute"] == attribute)]
    made = {}
    for method in methods(inputs, dataset):
        own = {name: here[(here["method"] == method) & (here["measure"] == name)] for name in MEASURES}
        p = corrected(
            np.array([estimate("median p", part["p"].to_numpy(float)).value for part in own.values()]), "holm"
        )
        for (measure, part), adjusted in zip(own.items(), p, strict=True):
            values = part["effect"].to_numpy(float)
            # A single split can have an extreme ratio, so ratios use the median.
            effect = estimate("median" if measure in INDIVIDUAL else "mean", values)
            word = "" if len(part) else why_not(dataset, method, measure)
            made[method, measure] = Verdict(effect, float(adjusted), word or ("" if effect.n else UNDEFINED))
    return made


def why_not(dataset: str, method: str, measure: str) -> str:
    """Return a word for why a model lacks a measure."""
    if measure in INDIVIDUAL:
        return NO_METRIC if dataset == w.LAW else NO_GRADIENT if method == "threshold_optimizer" else NOT_RUN
    if measure == CAUSAL and dataset != w.LAW:
        return NO_MODEL
    return DRAWN if measure == ROBUSTNESS and method in ("reductions", "threshold_optimizer") else NOT_RUN


def kendalls_w(values: Array) -> float:
    """Compute W of m judges' values of n objects (m, n); NaN if m < 2, n < 3 or all values tie."""
    m, n = values.shape
    if m < 2 or n < 3:
        return float("nan")
    ranks = rankdata(values, axis=1)
    ties = sum(float(((counts := np.unique(row, return_counts=True)[1]) ** 3 - counts).sum()) for row in ranks)
    most = m**2 * (n**3 - n) - m * ties
    total = ranks.sum(axis=0)
    return float(12 * ((total - total.mean()) ** 2).sum() / most) if most > 0 else float("nan")


def complete(values: pd.DataFrame) -> pd.DataFrame:
    """Drop the measures (rows) that no model has, then the models (columns) that lack a remaining measure."""
    return values.dropna(how="all").dropna(axis=1, how="any")


def facts(inputs: Inputs) -> pd.DataFrame:
    """Return the measures and the facts derived from them as tidy rows of the block ``agreement``."""
    return inputs.once("facts", lambda: pd.DataFrame([*_facts(inputs)]).assign(block=BLOCK))


def _facts(inputs: Inputs) -> Iterator[dict[str, Any]]:
    found = measured(inputs)
    if found.empty:
        return
    for line in found.to_dict("records"):
        place = {key: line[key] for key in (*KEYS, "origin")}
        for statistic in ("effect", "unfairness", "p", "rejected"):
            if np.isfinite(line[statistic]):
                yield {**place, "statistic": statistic, "value": line[statistic]}
    keys = ["dataset", "attribute", "repetition", "origin"]
    for values, part in found.groupby(keys):
        place = dict(zip(keys, values, strict=True))
        unfairness, rejected = (
            part.pivot(index="measure", columns="method", values=name).reindex(MEASURES)
            for name in ("unfairness", "rejected")
        )
        for line in (*_concordance(unfairness), *_decisions(rejected)):
            if np.isfinite(line["value"]):
                yield {**place, **line}
    flips = _flipsets(plain(inputs), causal=False)
    if len(flips):
        place = flips[[*BOTH_WAYS, "direction", "repetition", "origin"]]
        yield from place.assign(statistic="flipped", value=_flipped(flips)).to_dict("records")


def _concordance(unfairness: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield W and tau of one repetition. A repetition that some audit does not cover has only tau."""
    whole = complete(unfairness)
    if {"selection_rate", FLIPTEST, ROBUSTNESS} <= set(whole.index):
        yield {"statistic": "W", "value": kendalls_w(whole.to_numpy(float))}
        yield {"statistic": "measures", "value": float(len(whole))}
        yield {"statistic": "models", "value": float(whole.shape[1])}
    tau = unfairness.T.corr("kendall", min_periods=3)
    for one, other in combinations(MEASURES, 2):
        yield {"statistic": "tau", "measure": one, "other": other, "value": float(tau.loc[one, other])}


def _decisions(rejected: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the facts that follow from the decisions of one repetition."""
    whole = complete(rejected)
    if FLIPTEST in whole.index and whole.shape[1]:
        yield {"statistic": "models_that_pass_all", "value": float((whole.sum() == 0).sum())}
    judged = rejected.loc[[*GROUP, "loss_ratio"]].dropna(axis=1)
    passing = judged.loc["loss_ratio", judged.loc[list(GROUP)].sum() == 0]
    if len(passing):
        yield {"statistic": "fails_individual_of_passing", "value": float(passing.mean())}
