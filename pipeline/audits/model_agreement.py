r"""Whether the audits agree on many models of one split that are equally accurate.

The held-out rows of a split are divided into two halves. Every audit measures every model on both halves, by its own
estimator and in units of its *tolerance*, so that 1 is the largest unfairness that an auditor would accept:

- ``loss_ratio``: log S_n / log delta, with the mean ratio S_n of the losses after and before the attack;
- ``selection_rate``, ``tpr``, ``fpr``: the absolute difference between the groups, over ``gap``;
- ``fliptest``: the share of people whose decision differs from that of their counterpart by exact transport, less the
  mean share between random halves of their own group, averaged over both directions, over ``gap``;
- ``robustness``: abs(log(1 + sigma)) / log delta, with the ratio 1 + sigma of the mean distances to the boundary.

All but the loss ratio exist for each protected attribute. :mod:`pipeline.rank_agreement` defines the correlations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Plan, step_schedule
from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.audits.fliptest.core import matched_halves
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.fair_metric import learn
from fairness_audits.group_metrics import positive_rate
from fairness_audits.models import mlp
from fairness_audits.transport import exact
from fairness_audits.validation import Checked, Count, NonNegative, Positive, at_least, not_empty
from fairness_audits.values import Array, Batch, Classifier, Dataset
from pipeline.audits.tabular_robustness import of_network
from pipeline.counterparts import Between, directions, fitted, mapped
from pipeline.rank_agreement import agreement, chosen
from pipeline.values import AuditResult

Audit = Literal["loss_ratio", "selection_rate", "tpr", "fpr", "fliptest", "robustness"]
REGRESSIONS, NETWORKS = "regressions", "networks"
"""Models are compared with models of the same kind."""
EQUAL, NEAR, ALL = "equal", "near", "all"
"""Models within one standard error of the best accuracy, within one to ``NEAREST`` of them, and all models."""
NEAREST = 3.0
AMONG: Mapping[str, Sequence[int]] = {"selection_rate": (0, 1), "tpr": (1,), "fpr": (0,)}
"""The labels among which the positive rates of two groups are compared."""
ACCURACY, RANDOM = "accuracy", "random"
"""Further ways to choose a model: the most accurate one, or any of the equally accurate ones."""


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``audits``: which of them apply. ``delta``: tolerated ratio; ``gap``: tolerated difference of shares.

    ``regularization``, ``step_size`` and ``steps`` of the attack, with the fair metric of the training rows.
    ``transport_people``: largest number of people of a group that are matched; ``noise_deals`` random splits of a group
    into halves with at most ``noise_people`` each. ``points``: rows of a half whose distance from the boundary of a
    network is measured, by ``fmn_steps`` after ``fmn_start_steps`` of DeepFool. Distances of regressions are exact.
    """

    audits: Annotated[list[Audit], not_empty]
    delta: Positive
    gap: Positive
    regularization: NonNegative
    step_size: Positive
    steps: Count
    transport_people: Annotated[int, at_least(2)]
    noise_deals: Count
    noise_people: Count
    points: Count
    fmn_steps: Count
    fmn_start_steps: Count


class Effects(NamedTuple):
    """Unfairness of M models in units of the tolerance, and its standard error: (2, M) each, by half."""

    unfairness: Array
    error: Array


@dataclass(frozen=True)
class Halves:
    """The audited rows of a split: ``dataset`` has the two halves as the test rows of its two repetitions."""

    dataset: Dataset
    batch: Batch
    parameters: Mapping[str, Array]
    network: Array
    decision: Array
    """Decisions (2, M, n)."""


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Audit the models of each split, ``classifier.index["split"]``; ``repetition`` numbers the splits.

    Rows for each ``pool`` (regressions, networks) and ``band`` of accuracy (equal, near, all):

    - by ``measure``, such as "tpr sex": ``reliability``; ``unfairness`` and ``error``, means over models and halves;
    - by ``measure`` and ``other``: ``raw`` and ``corrected``, partial rank correlations given accuracy;
    - ``models``, their number.

    Rows for the band ``equal``, with the accuracy of the half that chooses: ``chosen``, the unfairness by ``other``, on
    one half, of the model that looks best by ``measure`` on the other half; mean of both ways. The measure may also be
    accuracy or random.

    Arrays: ``unfairness`` (S, K, 2, M) by split, measure, half and model; ``accuracy`` (S, 2, M); ``measures`` (K,).
    """
    split = classifier.index["split"]
    rows: list[dict[str, Any]] = []
    found: dict[str, list[Array]] = {"unfairness": [], "accuracy": []}
    for number in np.unique(split):
        models = np.flatnonzero(split == number)
        halves = halved(dataset, classifier, models, number)
        effects = measured(halves, config, rngs[models[0]])
        accuracy = (halves.decision == halves.batch.label[:, None]).mean(axis=2)
        n = halves.decision.shape[2]
        rows += [{"repetition": int(number), **row} for row in facts(effects, accuracy, halves.network, n)]
        found["unfairness"].append(np.stack([one.unfairness for one in effects.values()]).astype(np.float32))
        found["accuracy"].append(accuracy.astype(np.float32))
    stacked = {name: np.stack(values) for name, values in found.items()}
    arrays = stacked | {"measures": np.array([*effects])}
    # The index of the models is not that of the splits.
    return AuditResult.of("model_agreement", dataset, replace(classifier, index={}), rows, arrays, delta=config.delta)


def halved(dataset: Dataset, classifier: Classifier, models: Array, split: int) -> Halves:
    """Return the two halves of the held-out rows, which are in random order, with the models of the split."""
    train, test = dataset.train[split], dataset.test[split]
    n = len(test) // 2
    own = replace(dataset, train=np.stack([train, train]), test=np.stack([test[:n], test[n : 2 * n]]))
    parameters = {name: values[models] for name, values in classifier.parameters.items()}
    batch = own.batch("test")
    decision = np.stack([decided(parameters, x) for x in batch.features])
    return Halves(own, batch, parameters, classifier.facts["network"][models] > 0, decision)


def decided(parameters: Mapping[str, Array], x: Array) -> Array:
    """Return the decisions (M, n) of M models about rows x (n, d), one model after the other to save memory."""
    return np.concatenate([mlp.predict(_one(parameters, m), x[None]) for m in range(len(parameters["w1"]))])


def _one(parameters: Mapping[str, Array], model: int) -> dict[str, Array]:
    """Return the parameters of one model, without the hidden units that it does not use."""
    w1, b1, w2, b2 = (parameters[name][[model]] for name in ("w1", "b1", "w2", "b2"))
    used = (w2 != 0).any(axis=(0, 2))
    return {"w1": w1[..., used], "b1": b1[:, used], "w2": w2[:, used], "b2": b2}


def measured(halves: Halves, config: Config, rng: np.random.Generator) -> dict[str, Effects]:
    """Return the effects of all models, by audit and attribute (``tpr sex``)."""
    attributes = list(halves.dataset.protected)
    found: dict[str, Effects] = {}
    if "loss_ratio" in config.audits:
        found["loss_ratio"] = loss_ratio(halves, config)
    for name in (name for name in config.audits if name in AMONG):
        found |= {f"{name} {attribute}": gap(halves, attribute, AMONG[name], config) for attribute in attributes}
    if "fliptest" in config.audits:
        found |= {f"fliptest {attribute}": fliptest(halves, attribute, config, rng) for attribute in attributes}
    if "robustness" in config.audits:
        distance = distances(halves, config)
        found |= {f"robustness {name}": robustness(halves, name, distance, config) for name in attributes}
    return found


def loss_ratio(halves: Halves, config: Config) -> Effects:
    """Measure the loss ratio with the metric of the training rows."""
    data = halves.dataset
    train = replace(data, train=data.train[:1], test=data.test[:1]).batch("train")
    inputs = [data.feature_names.index(name) for name in data.sensitive_inputs]
    metric = learn(train.features[0], {name: values[0] for name, values in train.protected.items()}, inputs)
    plan = Plan(
        metric, config.regularization, step_schedule("constant", config.step_size, 0.0, config.steps), [config.steps]
    )
    found = []
    for m in range(len(halves.network)):
        # The two halves are two repetitions of the model.
        own = {name: np.repeat(values, 2, axis=0) for name, values in _one(halves.parameters, m).items()}
        model = Classifier("", data.name, data.origin, "mlp", own)
        flow = unfair_map(model, halves.batch.features, halves.batch.label, plan)
        test = loss_ratio_test(flow.original_loss, flow.losses[:, -1], config.delta, 0.05)
        found.append((np.log(test.mean), test.std / np.sqrt(test.n) / test.mean))
    return Effects(*np.moveaxis(np.array(found), 0, -1) / np.log(config.delta))


def gap(halves: Halves, attribute: str, labels: Sequence[int], config: Config) -> Effects:
    """Measure the difference of the groups' positive rates among the rows with these labels."""
    among = np.isin(halves.batch.label, labels)
    rates, variance = [], np.zeros(())
    for code in (0, 1):
        inside = (among & (halves.batch.protected[attribute] == code))[:, None]
        rates.append(positive_rate(halves.decision, inside))
        variance = variance + rates[-1] * (1 - rates[-1]) / inside.sum(axis=2)
    return Effects(np.abs(rates[0] - rates[1]) / config.gap, np.sqrt(variance) / config.gap)


def fliptest(halves: Halves, attribute: str, config: Config, rng: np.random.Generator) -> Effects:
    """Measure FlipTest by exact maps between the groups of each half."""
    data = halves.dataset
    between = Between(attribute, None, None, "test", config.transport_people, True)
    maps = fitted(data, between, exact, exact.Config("squared_l1", "sample"), rng.spawn(2))
    moving = np.flatnonzero(np.isin(data.feature_names, maps.features))
    effect, variance = np.zeros((2, *halves.network.shape)), np.zeros((2, *halves.network.shape))
    for direction, *_ in directions(maps):
        for half, pair in enumerate(mapped(maps, data, "test", 2, direction)):
            own = decided(halves.parameters, pair.features)
            share = (own != decided(halves.parameters, pair.images)).mean(axis=1)
            source, alike = matched_halves(pair.features, moving, config.noise_people, config.noise_deals, rng)
            other = decided(halves.parameters, alike.reshape(-1, alike.shape[-1])).reshape(-1, *source.shape)
            floor = (own[:, source] != other).mean(axis=2)
            effect[half] += (share - floor.mean(axis=1)) / 2
            variance[half] += (share * (1 - share) / own.shape[1] + floor.var(axis=1) / len(source)) / 4
    return Effects(effect / config.gap, np.sqrt(variance) / config.gap)


def robustness(halves: Halves, attribute: str, distance: Array, config: Config) -> Effects:
    """Measure the ratio of the groups' mean distances (2, M, n) to the decision boundary."""
    logs, variance = [], np.zeros(())
    for code in (0, 1):
        counts = np.isfinite(distance) & (halves.batch.protected[attribute] == code)[:, None, : distance.shape[2]]
        n = counts.sum(axis=2)
        # Without a correct row of a group, the ratio is NaN.
        with np.errstate(invalid="ignore"):
            mean = np.sum(distance, axis=2, where=counts) / n
            square = np.sum((distance - mean[..., None]) ** 2, axis=2, where=counts) / n
            variance = variance + square / mean**2 / n
        logs.append(np.log(mean))
    scale = np.log(config.delta)
    return Effects(np.abs(logs[1] - logs[0]) / scale, np.sqrt(variance) / scale)


def distances(halves: Halves, config: Config) -> Array:
    """Compute the distances (2, M, n) of correctly classified rows, NaN for others and for failed attacks."""
    correct = halves.decision == halves.batch.label[:, None]
    found = np.full(correct.shape, np.nan)
    for half, (x, label) in enumerate(zip(halves.batch.features, halves.batch.label, strict=True)):
        for m, network in enumerate(halves.network):
            rows = np.flatnonzero(correct[half, m, : config.points if network else None])
            own = _one(halves.parameters, m)
            if network:
                own = {name: values[0] for name, values in own.items()}
                found[half, m, rows] = of_network(own, x[rows], label[rows], config.fmn_steps, config.fmn_start_steps)
            else:
                # The margin of a regression is the pre-activation of its first hidden unit.
                weight = np.stack([np.zeros(x.shape[1]), own["w1"][0, :, 0]])
                bias = np.array([0.0, own["b1"][0, 0]])
                found[half, m, rows] = linear_distance(weight, bias, x[rows], label[rows]).distance
    return found


def facts(effects: Mapping[str, Effects], accuracy: Array, network: Array, rows: int) -> Iterator[dict[str, Any]]:
    """Yield the numbers of a split from effects, ``accuracy`` (2, M) on halves of ``rows``, and the kind of model."""
    names = list(effects)
    unfairness, error = (np.stack([getattr(one, name) for one in effects.values()], axis=1) for name in Effects._fields)
    for pool, members in ((REGRESSIONS, ~network), (NETWORKS, network)):
        if not members.any():
            continue
        of_all = accuracy[:, members].mean(axis=0)
        behind = shortfall(of_all, rows)
        bands = {EQUAL: behind <= 1, NEAR: (behind > 1) & (behind <= NEAREST), ALL: behind >= 0}
        for band, inside in bands.items():
            where = {"pool": pool, "band": band}
            u, e = unfairness[..., members][..., inside], error[..., members][..., inside]
            yield {**where, "statistic": "models", "value": inside.sum()}
            found = agreement(u[0], u[1], of_all[inside])
            for k, measure in enumerate(names):
                yield {**where, "measure": measure, "statistic": "reliability", "value": found.reliability[k]}
                if inside.any():
                    yield {**where, "measure": measure, "statistic": "unfairness", "value": u[:, k].mean()}
                    yield {**where, "measure": measure, "statistic": "error", "value": e[:, k].mean()}
            for (k, measure), (j, other) in combinations(enumerate(names), 2):
                pair = {**where, "measure": measure, "other": other}
                yield {**pair, "statistic": "raw", "value": found.raw[k, j]}
                yield {**pair, "statistic": "corrected", "value": found.corrected[k, j]}
        picks = np.mean(
            [_chosen(half, unfairness[..., members], accuracy[:, members], rows) for half in (0, 1)], axis=0
        )
        for (k, measure), (j, other) in product(enumerate([*names, ACCURACY, RANDOM]), enumerate(names)):
            where = {"pool": pool, "band": EQUAL, "measure": measure, "other": other}
            yield {**where, "statistic": "chosen", "value": picks[k, j]}


def shortfall(accuracy: Array, rows: int) -> Array:
    """Return how far each accuracy (M,) is below the best, in standard errors of the best on this many rows."""
    best = accuracy.max()
    return (best - accuracy) / np.sqrt(best * (1 - best) / rows)


def _chosen(half: int, unfairness: Array, accuracy: Array, rows: int) -> Array:
    """Choose on one half among models of equal accuracy there, and measure the choices on the other half."""
    equal = shortfall(accuracy[half], rows) <= 1
    mine, theirs = unfairness[half][:, equal], unfairness[1 - half][:, equal]
    return chosen(np.vstack([mine, -accuracy[half, equal], np.zeros(equal.sum())]), theirs)
