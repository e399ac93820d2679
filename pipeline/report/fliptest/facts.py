"""Facts of the study from its rows, data and configuration, as tidy rows (see :mod:`pipeline.report.facts`)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.facts import DATA, configured_facts, with_facts
from pipeline.report.fliptest import flipset_tables as reports
from pipeline.report.fliptest import trials, which_map
from pipeline.report.inputs import Inputs, condition_of
from pipeline.report.selection import select

LAW_CLASSIFIER, SSL_REGRESSION = "logistic", "linear_regression"
AGE = "age at latest arrest"
EXPORT = "a9922ecb126369cbde404a17dabdffe085855381dd98e1c266270e6adbf77e3d"
"""sha256 of the city's list as exported to the repository pjsier/strategic-subject-list, from its pointer file."""


def measurements(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of the audits and the facts of the study in one frame."""
    rows = inputs.rows[inputs.rows["audit"] == trials.FLIPTEST]
    derived = [*_rates(rows), *claims(inputs)]
    facts = [*configured_facts(inputs.points, _map_of), *_of_the_list(inputs)]
    return _with_health(with_facts(inputs, facts, derived))


def _with_health(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``reaches``: whether the map of the trial reaches its target, if the map was checked."""
    keys = ["block", "dataset", "method", "transport", "given", "direction", "repetition"]
    rows = rows.assign(**{name: np.nan for name in keys if name not in rows})
    found = rows[rows["statistic"] == "healthy"].drop_duplicates(keys)[[*keys, "value"]]
    return rows.merge(found.rename(columns={"value": "reaches"}), on=keys, how="left")


def _map_of(point: Mapping[str, Any]) -> dict[str, Any]:
    return {"transport": point.get("transport", {}).get("name"), "given": condition_of(point)}


def _of_the_list(inputs: Inputs) -> Iterator[dict[str, Any]]:
    """Yield facts of the Strategic Subject List: its file, correlations with race, and regression weights by split."""
    dataset = inputs.datasets.get(w.SSL)
    if dataset is None:
        return
    place = {"block": DATA, "dataset": w.SSL, "origin": dataset.origin}
    yield {**place, "statistic": "exported_files", "value": sum(x == EXPORT for x in dataset.checksums.values())}
    (correlations,) = dataset.correlations.values()
    for feature, value in zip(dataset.feature_names, map(float, correlations), strict=True):
        yield {**place, "feature": feature, "statistic": "r_with_race", "value": value}
    regression = inputs.classifiers.get(f"{w.SSL}/{SSL_REGRESSION}")
    if regression is None:
        return
    age = dataset.feature_names.index(w.feature_named(AGE, dataset.feature_names, w.SSL))
    place = {"block": "ssl_regression", "dataset": w.SSL, "method": SSL_REGRESSION, "origin": dataset.origin}
    for repetition, weights in enumerate(np.asarray(regression.parameters["coef"], float)):
        values = {"weight_of_age": weights[age], "largest_other_weight": np.abs(np.delete(weights, age)).max()}
        for statistic, value in values.items():
            yield {**place, "repetition": repetition, "statistic": statistic, "value": float(value)}


def _flag(place: pd.DataFrame, statistic: str, holds: Any) -> pd.DataFrame:
    """Return rows that say whether a claim holds in each place."""
    return place.assign(statistic=statistic, value=np.asarray(holds, dtype=float))


def _rates(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield positive decisions and flipsets in percent: ``rate_source``, ``rate_target``, ``share_percent``.

    ``net_less_positives`` is |F+| - |F-| minus the difference of the positive decisions of two groups of equal size.
    """
    if rows.empty:
        return
    keys = [name for name in rows.columns if name not in ("statistic", "value")]
    whole = rows[rows["flipset"].isna() & rows["feature"].isna()]
    wide = whole.set_index([*keys, "statistic"])["value"].unstack("statistic")
    for side in ("source", "target"):
        rate = 100 * wide[f"positives_{side}"] / wide[f"n_{side}"]
        yield rate.rename("value").reset_index().assign(statistic=f"rate_{side}")
    equal = wide[wide["n_source"] == wide["n_target"]]
    beyond = equal["net"] - (equal["positives_source"] - equal["positives_target"])
    yield beyond.rename("value").reset_index().assign(statistic="net_less_positives")
    share = rows[rows["statistic"] == "share"]
    yield share.assign(statistic="share_percent", value=100 * share["value"])


def claims(inputs: Inputs) -> Iterator[pd.DataFrame]:
    """Yield the statistics that decide the verbal claims of the paper, a value per trial or distribution.

    Each statistic has the columns of the rows it is derived from, so a claim can select it by a setting.
    """
    rows = inputs.rows[inputs.rows["audit"] == trials.FLIPTEST]
    yield _members(rows)
    yield from _weights(inputs)
    yield from _subgroups(inputs)
    yield from _stability(inputs)


def _members(rows: pd.DataFrame) -> pd.DataFrame:
    """Return ``members_higher``: whether the mean of a feature is higher in a flipset than in its group."""
    means = rows[rows["statistic"] == "feature_mean"]
    members, group = means[means["flipset"].notna()], means[means["flipset"].isna()]
    keys = [name for name in means.columns if name not in ("statistic", "flipset", "value")]
    both = members.merge(group[[*keys, "value"]], on=keys, suffixes=("", "_of_group"))
    known = both[["value", "value_of_group"]].notna().all(axis=1)  # A flipset may be empty.
    higher = (both["value"] > both["value_of_group"]).astype(float).where(known)
    return _flag(both[[*keys, "flipset"]], "members_higher", higher)


def _weights(inputs: Inputs) -> Iterator[pd.DataFrame]:
    """Yield ``lsat_outweighs_gpa``: whether LSAT weighs more than GPA, per standard deviation."""
    classifier = inputs.classifiers.get(f"{w.LAW}/{LAW_CLASSIFIER}")
    if classifier is None or w.LAW not in inputs.datasets:
        return
    dataset = inputs.datasets[w.LAW]
    coef = classifier.parameters["coef"].reshape(classifier.repetitions, -1)
    column = {name: coef[:, c] for c, name in enumerate(dataset.feature_names)}
    scale = dict(zip(dataset.feature_names, dataset.deviations, strict=True))
    lsat, grade = (w.feature_named(label, dataset.feature_names, w.LAW) for label in ("LSAT", "GPA"))
    place = pd.DataFrame({"repetition": np.arange(classifier.repetitions)})
    place = place.assign(block="law", dataset=w.LAW, method=LAW_CLASSIFIER, origin=dataset.origin)
    yield _flag(place, "lsat_outweighs_gpa", column[lsat] * scale[lsat] > column[grade] * scale[grade])


def _subgroups(inputs: Inputs) -> Iterator[pd.DataFrame]:
    """Yield ``weaker_in_all_subgroups``: whether |r| on the held-out half is smaller in every context than overall."""
    rows = inputs.rows
    if "context" not in rows:
        return
    r = select(rows, {"audit": reports.AUDIT, "statistic": "correlation", "part": reports.HELD_OUT})
    whole = r[r["context"] == reports.ROOT]
    keys = ["dataset", "repetition"]
    parts = r[r["context"] != reports.ROOT].assign(largest=lambda found: found["value"].abs())
    both = whole.merge(parts.groupby(keys, observed=True)["largest"].max().reset_index(), on=keys)
    yield _flag(both.drop(columns="largest"), "weaker_in_all_subgroups", both["largest"] < both["value"].abs())


def _stability(inputs: Inputs) -> Iterator[pd.DataFrame]:
    """Yield the statistics behind section 3.2 on the WGAN. ``repetition`` numbers the distributions.

    They compare the WGAN with another map (:data:`COMPARED`), with a jackknife ``error`` over the draws in which
    neither map mirrors a feature. ``oriented`` is 1 if a map mirrors no feature; there ``repetition`` is the draw.
    """
    common = {"block": "stability", "dataset": w.GAUSSIAN, "method": "none", "origin": "simulated"}
    if not (inputs.rows["audit"] == trials.STABILITY).any():
        return
    found: list[dict[str, Any]] = []
    by_distribution = which_map.stability_rows(inputs).groupby(["correlation", "dimension"])
    for number, ((correlation, dimension), rows) in enumerate(by_distribution):
        place = {"repetition": number, "correlation": correlation, "dimension": dimension, "transport": w.WGAN}
        maps = (w.WGAN, w.EXACT, w.STOCHASTIC)
        images = {
            (name, point): which_map.images(rows[rows["transport"] == name], point)
            for name in maps
            for point in which_map.POINTS
        }
        kept = {name: which_map.oriented(*(images[name, point] for point in which_map.POINTS)) for name in maps}
        # The exact map sends people to other people, so two points do not show its direction. It cannot mirror.
        kept[w.EXACT] = np.ones_like(kept[w.EXACT])
        for name, keeps in kept.items():
            found += [
                {**place, "transport": name, "repetition": draw, "statistic": "oriented", "value": float(keep)}
                for draw, keep in enumerate(keeps)
            ]
        for statistic, other, point, gap in COMPARED:
            both = images[w.WGAN, point], images[other, point]
            if len(both[0]) != len(both[1]):
                continue
            # Maps that mirror a feature are counted in ``oriented`` and excluded from averages.
            keep = kept[w.WGAN] & kept[other]
            both = both[0][keep], both[1][keep]
            if keep.sum() > 1:
                value, error = gap(*both), which_map.jackknife(gap, *both)
                own = {"point": point, "statistic": statistic, "value": value, "error": error, "draws": int(keep.sum())}
                found.append({**place, **own})
    yield pd.DataFrame(found).assign(**common)


def log_variance_ratio(one: Array, other: Array) -> float:
    """Compute the log ratio of the variances of images (n, d) over the draws, averaged over the features."""
    return float(np.log(which_map.variances(one).mean() / which_map.variances(other).mean()))


def further_from_1(one: Array, other: Array) -> float:
    """Compute how much further the mean image (n, d) of ``one`` map is from 1 than that of the ``other``."""
    return float(abs(np.nanmean(one) - 1) - abs(np.nanmean(other) - 1))


COMPARED = (
    *(
        (f"log_variance_over_{name}", other, point, log_variance_ratio)
        for name, other in (("exact", w.EXACT), ("stochastic", w.STOCHASTIC))
        for point in which_map.POINTS
    ),
    ("distance_beyond_exact", w.EXACT, which_map.ONES, further_from_1),
)
"""Statistics that are below 0 if the WGAN is better, with the other map, the fixed point and the function."""
