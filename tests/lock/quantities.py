"""What is locked, at smoke size: from twins, simulated and bundled data alone, by the functions that the stages call.

A number of an audit is the mean of one statistic over the rows that agree in the columns that :data:`AUDITS` names;
one of a training or a map the mean absolute value of an array; one of a dataset is of one draw of it.
"""

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairness_audits import fair_metric
from fairness_audits.audits.permutation import draws
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.monte_carlo import Settings
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.pairs import largest_t
from fairness_audits.seeds import generators
from fairness_audits.values import Array, Classifier, Dataset, ImageDataset, TransportMap
from pipeline.counterparts import fitted, parted
from pipeline.jobs import ROOT, Run
from pipeline.stages.prepare import prepared
from pipeline.values import AuditResult
from pipeline.workflow import plugins
from pipeline.workflow.points import Point

RUN = Run(
    scale="smoke",
    source="twin",
    # What amplifies rounding is locked early.
    overrides=(
        *("method.sensr.iterations=10", "method.reductions.max_iter=2", "method.adverm.epochs=2"),
        "transport.wgan.steps=50",
    ),
)
# The audits of the fifth study are the papers', on the same models.
POINTS = [point for study in RUN.studies if study != "agreement" for point in RUN.points(study)]

DATASETS = (
    *("adult", "adult_all", "compas", "compas_all", "law", "ssl"),
    *("arrests", "gaussian", "hiring", "identical", "simulated", "digits"),
)

AUDITS: Sequence[tuple[str, str, str, str, tuple[str, ...]]] = (
    ("audit", "adult", "baseline", "", ("metric_split",)),
    ("audit", "adult", "project", "", ("metric_split",)),
    ("audit", "adult", "reductions", "", ("metric_split",)),
    ("audit", "adult", "sensr", "", ("metric_split",)),
    ("heatmaps", "simulated", "logistic_grid", "", ("metric",)),
    ("validity", "simulated", "logistic_grid", "", ("test",)),
    ("hiring", "hiring", "given", "wgan", ("flipset",)),
    ("hiring", "hiring", "given", "exact", ("flipset",)),
    ("hiring", "hiring", "given", "stochastic", ("flipset",)),
    ("hiring", "hiring", "given", "entropic", ("flipset",)),
    ("hiring", "hiring", "parity_constrained", "exact", ("flipset",)),
    ("hiring_quality", "hiring", "none", "entropic", ()),
    ("stability", "gaussian", "none", "exact", ()),
    ("identical", "identical", "svm", "exact", ("flipset",)),
    ("ssl", "ssl", "given", "wgan", ("flipset",)),
    ("law", "law", "logistic", "counterfactual", ("flipset",)),
    ("law", "law", "linear_regression", "exact", ("flipset",)),
    ("methods", "adult", "baseline", "exact", ("flipset",)),
    ("subgroups", "arrests", "given", "", ("part",)),
    ("null_rejection", "none", "none", "", ("case", "test")),
    ("fnr_levels", "none", "none", "", ("test",)),
    ("auc_levels", "none", "none", "", ("test",)),
    ("power", "none", "none", "", ("test",)),
    ("thresholds", "compas_all", "logistic", "", ("metric",)),
    ("sample_size", "compas_all", "logistic", "", ("test",)),
    ("auc", "compas_all", "logistic", "", ("attribute",)),
    ("methods_all", "compas_all", "logistic", "", ("metric",)),
    ("linear", "digits", "standard", "", ("attack",)),
    ("networks_digits", "digits", "standard", "", ("attack",)),
    ("regularizer_variants", "digits", "adverm", "", ()),
)
"""Block, dataset, method and map of the points whose audits are locked, and the columns that tell the rows apart."""

STATISTICS: Mapping[str, str] = {
    "loss_ratio": (
        "S_n T_n V_n p_value rejected below_one error_S_n error_T_n error_p_value accuracy balanced_accuracy "
        "aod_sex aod_race parity_sex equal_opportunity_race principal_angle_1 principal_angle_2"
    ),
    "loss_ratio_validity": "truth coverage_one_sided kolmogorov_distance rejection_rate",
    "fliptest": (
        "size net net_ci_low n_source positives_source positives_target positives_image ks mean_shift mean_sign "
        "mean_shift_ci_low rank_mean noise_size"
    ),
    "correlation_levels": "rejection_rate",
    "rate_levels": "rejection_rate",
    "auc_levels": "rejection_rate",
    "rate_power": "power predicted_power",
    "thresholds": "difference percentile_95 rejected",
    "sample_size": "detectable minimum_difference",
    "permutation": "p_value p_adjusted difference ci_low studentized",
    "robustness_bias": (
        "accuracy failed mean_distance median_distance forward_passes auc sigma sigma_ci_low sigma_p sigma_p_adjusted"
    ),
}
"""By audit: which statistics are locked; all of them where an audit is not named."""

Named = Iterator[tuple[str, float]]


def all_of_them() -> Named:
    """Names and values."""
    yield from of_seeds()
    yield from of_the_fair_metric()
    yield from of_tests()
    for name in DATASETS:
        yield from of_dataset(name)
    made = set[str]()
    for block, dataset_name, method, transport, keys in AUDITS:
        wanted = (block, dataset_name, method, transport)
        point = next(p for p in POINTS if (p.block, p.dataset, p.method, p.transport) == wanted)
        on = f"{point.name('method')} on {dataset_name}"
        parts: list[tuple[str, Classifier | TransportMap]] = [(on, classifier(point))]
        if transport:
            parts.append((f"{transport} map of {dataset_name}", maps(point)))
        for name, part in parts:
            if name not in made:
                yield from of_fitted(name, part)
        made |= {name for name, _ in parts}
        yield from of_audit(f"{point.audit} of {on}{transport and f' by {transport} map'}", audited(point), keys)


def of_seeds() -> Named:
    """Two repetitions of what random streams are derived from."""
    for repetition, rng in enumerate(generators("lock", repetitions=2)):
        yield f"seeds, repetition {repetition}, uniform", rng.random()
        yield f"seeds, repetition {repetition}, normal", rng.normal()


def of_the_fair_metric() -> Named:
    """The metric that is learned on Adult's twin, and those of the plane."""
    data = dataset("adult")
    assert isinstance(data, Dataset)
    learned = fair_metric.learn_batch(data.batch("test"), [data.feature_names.index(c) for c in data.sensitive_inputs])
    yield "fair metric of adult, trace", np.trace(learned.matrix[0])
    yield "fair metric of adult, first entry", learned.matrix[0, 0, 0]
    yield "fair metric of adult, mean absolute entry", np.abs(learned.matrix).mean()
    yield "fair metric of adult, largest entry of a direction", np.abs(learned.directions).max()
    first, second = (
        fair_metric.FairMetric(learned.matrix[r], learned.basis[r], learned.directions[r]) for r in range(2)
    )
    yield "fair metric of adult, angle between two splits", fair_metric.principal_angles(first, second).max()
    x = data.batch("test").features[0, :100]
    yield "fair metric of adult, mean squared distance", first.squared_distance(x[:50], x[50:]).mean()
    yield "fair metric of the plane, rotated", fair_metric.rotated(5).matrix[0, 1]


def of_tests() -> Named:
    """Permutation tests of three groups of 60, 90 and 150 people, and draws behind them."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [60, 90, 150])
    label = (rng.random(300) < 0.4).astype(np.int64)
    score = (label + group / 2 + rng.integers(0, 8, 300)) / 10
    data = Predictions(label, score, group, ("a", "b", "c"), prediction=(score > 0.5).astype(np.int64))
    for metric in ("tpr", "auc", "mean_score"):
        for method in ("exact", "studentized", "unstudentized"):
            if method == "exact" and metric != "tpr":
                continue
            test = permutation_test(
                data, metric, rng=np.random.default_rng(1), groups=("a", "c"), method=method, draws=199
            )
            yield f"permutation test of {metric}, {method}, p-value", test.p_value or 0.0
            if method in ("exact", "studentized"):
                yield f"permutation test of {metric}, {method}, lower limit", test.ci_low or 0.0
    _, adjusted = largest_t(data, METRICS["auc"], Settings(draws=199), np.random.default_rng(2))
    for names, p in zip(("a b", "a c", "b c"), adjusted, strict=True):
        yield f"pairs of groups, auc, max_t, {names}", p or 0.0
    tables = draws.split(np.array([20, 30, 50]), [40, 60], 5, draws.generator(3, 0))
    for place in np.ndindex(2, 3):
        yield f"permutation draws, group {place[0]}, kind {place[1]}", tables[place[0], :, place[1]].sum()


def of_dataset(name: str) -> Named:
    """Moments of prepared columns, and which rows the first split trains on."""
    data = dataset(name)
    columns: dict[str, Array]
    if isinstance(data, ImageDataset):
        columns = {"images": data.images, **data.partitions}
    else:
        columns = {"features": data.features, **data.protected, **data.outcomes}
    columns |= {"label": data.label, "training rows": data.train[0] * np.arange(1, 1 + data.train.shape[1])}
    for column, values in columns.items():
        yield f"{name}, {column}, mean", values.mean()
    first = columns["images" if isinstance(data, ImageDataset) else "features"].reshape(len(data.label), -1)
    yield f"{name}, rows", len(first)
    yield f"{name}, columns", first.shape[1]
    yield f"{name}, mean deviation of columns", first.std(axis=0).mean()
    yield f"{name}, mean with the highest label", first[data.label == data.label.max()].mean()


def of_fitted(name: str, part: Classifier | TransportMap) -> Named:
    """The mean absolute value of all parameters together, the end of each curve, and each fact."""
    arrays = [np.abs(array[np.isfinite(array)]) for array in part.parameters.values() if array.dtype.kind == "f"]
    if arrays:
        yield f"{name}, mean size of parameters", np.concatenate(arrays).mean()
    for curve, values in part.history.items():
        # Of a group's few test rows one more or less is another number on another processor.
        if values.ndim == 2 and "/" not in curve:
            yield f"{name}, {curve} at last", values[:, -1].mean()
    for fact, values in part.facts.items():
        if not fact.startswith("reverse_"):
            yield f"{name}, {fact}", values.mean()


def of_audit(name: str, result: AuditResult, keys: Sequence[str]) -> Named:
    """Means over rows."""
    rows = result.rows
    if result.audit in STATISTICS:
        rows = rows[rows["statistic"].isin(STATISTICS[result.audit].split())]
    for place, values in rows.groupby([*keys, "statistic"], sort=False)["value"]:
        yield f"{name}, {', '.join(filter(None, place))}", values.mean()


PREPARED: dict[str, Dataset | ImageDataset] = {}
"""What is prepared, by the name that stands in paths."""


def dataset(name: str) -> Dataset | ImageDataset:
    """A prepared dataset by the name that stands in paths, or the first of that kind."""
    named = next((point.name("dataset") for point in POINTS if name in (point.name("dataset"), point.dataset)), name)
    if named not in PREPARED:
        PREPARED[named] = _prepared(named)
    return PREPARED[named]


def _prepared(name: str) -> Dataset | ImageDataset:
    config = RUN.section("prepare", RUN.owners_of("prepare", {"scale": RUN.scale, "dataset": name})[0][1])
    kind = RUN.grids.kind("dataset", name)
    twins = [ROOT / path for path in RUN.twin(kind)]
    files = [{"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in twins]
    origin = "twin" if files else "bundled" if kind == "digits" else "simulated"
    found = prepared(config["dataset"], config["repetitions"], {"dataset": kind, "origin": origin, "files": files})
    assert isinstance(found, Dataset | ImageDataset)
    return found


@functools.cache
def classifier(point: Point) -> Classifier:
    """What the train stage saves."""
    data, config = dataset(point.name("dataset")), RUN.section("train", point)
    module, method = plugins.load("method", config["method"]["kind"]), config["method"]
    rngs = generators("train", data.name, method["name"], repetitions=config["repetitions"])
    return replace(module.fit(data, plugins.configure(module, method), rngs), method=method["name"])


@functools.cache
def maps(point: Point) -> TransportMap:
    """What the transport stage saves."""
    data = dataset(point.name("dataset"))
    assert isinstance(data, Dataset)
    config = RUN.section("transport", point)
    between, own = parted(config["transport"])
    module = plugins.load("transport", config["transport"]["kind"])
    rngs = generators("transport", data.name, config["transport"]["name"], repetitions=config["repetitions"])
    return fitted(data, between, module, plugins.configure(module, own), rngs, config["transport"]["name"])


def audited(point: Point) -> AuditResult:
    """What the audit stage saves."""
    data, trained, section = dataset(point.name("dataset")), classifier(point), RUN.section("audit", point)["audit"]
    data = data.with_inputs(trained.reads) if isinstance(data, Dataset) else data
    module: Any = plugins.load("audit", section["kind"])
    rngs = generators("audit", data.name, trained.method, section["name"], repetitions=trained.repetitions)
    with_maps = [maps(point)] if point.transport else []
    result = module.run(data, trained, plugins.configure(module, section), rngs, *with_maps)
    assert isinstance(result, AuditResult)
    return result
