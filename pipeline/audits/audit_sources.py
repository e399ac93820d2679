r"""Where the verdicts of permutation tests, FlipTest and robustness bias come from: sample, model, settings or chance.

The held-out rows of a split are divided into two sets of the same size, the audited rows and the others. Each audit is
an experiment for each protected attribute, in which every level of each factor meets every level of the others:

==================  ====================================================  ==============================================
audit               statistic and verdict                                 factors
==================  ====================================================  ==============================================
a rate              studentized difference between the groups; rejected   model, audit, draws (of the permutations)
                    by its permutation test
``fliptest``        share of people of group 0 whose decision differs     map, model, audit, point (the regularization),
                    from that of their counterpart; larger than the       draws (the centres of the map)
                    noise floor
``robustness``      logarithm of the ratio of the mean distances to the   model, audit, point (steps of the attack)
                    boundary; rejected by its permutation test
==================  ====================================================  ==============================================

- ``audit``: bootstrap samples of the audited rows (robustness: of those that are attacked);
- ``map``: bootstrap samples of the other rows, on which the map is fitted;
- ``model``: the networks that share the split (``trainings`` of the data set).

The noise floor of a map is the share of flips between random halves of the people of group 0 on whom it was fitted,
which one more split into halves exceeds with probability at most alpha. The draws of a map are those of its sample: two
samples have no draw in common. :mod:`pipeline.crossed` defines the facts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np

from fairness_audits.audits.fliptest.flipsets import halves, upper
from fairness_audits.audits.permutation.core import tested
from fairness_audits.audits.permutation.metrics import METRICS, RATES
from fairness_audits.audits.permutation.monte_carlo import Settings
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.robustness_bias.significance import difference_p
from fairness_audits.models import architecture
from fairness_audits.transport import entropic
from fairness_audits.transport.cost import CostName
from fairness_audits.validation import (
    Checked,
    Count,
    Counts,
    NonNegative,
    Positive,
    Share,
    at_least,
    not_empty,
    some_of,
)
from fairness_audits.values import Array, Batch, Classifier, Dataset
from pipeline import crossed
from pipeline.audits import tabular_robustness
from pipeline.counterparts import Between, fitted, mapped, transported_columns
from pipeline.predictions import named_attributes
from pipeline.values import AuditResult

Levels = Annotated[int, at_least(2)]


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``attributes``: None for all; FlipTest has its own ``map_attributes``. ``alpha``: level of the tests.

    Numbers of ``audit_samples``, ``map_samples`` and ``seeds``.

    ``permutations``: number of permutations in the tests of the ``rates`` and of robustness bias. ``regularization``:
    the weights of the entropy in the map. :class:`fairness_audits.transport.entropic.Config` explains the other
    settings of the map.
    ``noise_deals`` random splits into halves with at most ``noise_people`` each. ``points``: audited rows whose
    distances are measured, for networks by FMN with each of the ``fmn_steps``, after ``fmn_start_steps`` of DeepFool.
    """

    attributes: list[str] | None
    map_attributes: list[str] | None
    alpha: Share
    audit_samples: Levels
    seeds: Levels
    rates: Annotated[list[str], some_of(RATES)]
    permutations: Count
    map_samples: Levels
    regularization: Annotated[list[Positive], not_empty]
    cost: CostName
    tie_break: NonNegative
    centres: Annotated[int, at_least(2)]
    quantiles: Annotated[int, at_least(2)]
    noise_deals: Count
    noise_people: Count
    points: Count
    fmn_steps: Counts
    fmn_start_steps: Count


class Cells(NamedTuple):
    """Statistic and verdict (1 or 0, NaN without a test) in every cell: arrays with the axes ``factors``."""

    factors: tuple[str, ...]
    statistic: Array
    rejected: Array


@dataclass(frozen=True)
class Audited:
    """A split: ``rows`` of the audit (n,) in the data set and ``other`` rows, ``batch`` and ``decision`` (M, n).

    ``chosen`` (S, n) are the positions of bootstrap samples.
    """

    dataset: Dataset
    classifier: Classifier
    rows: Array
    other: Array
    batch: Batch
    decision: Array
    chosen: Array

    def decided(self, features: Array) -> Array:
        """Return the decisions of all models about rows (n, d), (M, n)."""
        return decided(self.classifier, features)

    def of(self, rows: Array) -> Dataset:
        """Return the data set with these rows (T, n) as the test rows of T repetitions of the split."""
        return replace(self.dataset, train=np.repeat(self.dataset.train, len(rows), axis=0), test=rows)


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Cross the factors in each split; ``repetition`` numbers the splits. The generator of its first model draws.

    Rows for each ``measure``, such as "tpr sex": the :func:`pipeline.crossed.facts`, the ``mean`` of the statistic and
    the share ``rejected``. If a cell has no statistic, its experiment has none of the facts. Raises InvalidInput if the
    splits have different numbers of models, and for random decisions, which have no boundary.
    """
    rows: list[dict[str, Any]] = []
    for split in crossed.splits(dataset, classifier):
        rng = rngs[split.first]
        audited = prepared(split.dataset, split.classifier, config, rng)
        for measure, cells in experiments(audited, config, rng):
            place = {"repetition": split.number, "measure": measure}
            means = {"mean": cells.statistic.mean(), "rejected": cells.rejected.mean()}
            found = [{"statistic": name, "value": value} for name, value in means.items()]
            found += crossed.facts(cells.statistic, cells.rejected, cells.factors)
            rows += [{**place, **row, "value": float(row["value"])} for row in found]
    return AuditResult.of("audit_sources", dataset, classifier, rows, alpha=config.alpha)


def prepared(dataset: Dataset, classifier: Classifier, config: Config, rng: np.random.Generator) -> Audited:
    """Divide the held-out rows of a split, which are in random order, and draw the audit samples."""
    n = dataset.test.shape[1] // 2
    rows = dataset.test[0, :n]
    batch = replace(dataset, test=rows[None]).batch("test")
    decision = decided(classifier, batch.features[0])
    chosen = rng.integers(n, size=(config.audit_samples, n))
    return Audited(dataset, classifier, rows, dataset.test[0, n : 2 * n], batch, decision, chosen)


def decided(classifier: Classifier, features: Array) -> Array:
    """Return the decisions of M models about rows (n, d), (M, n)."""
    x = np.broadcast_to(features, (classifier.repetitions, *features.shape))
    return np.asarray(architecture(classifier.architecture).predict(classifier.parameters, x))


def experiments(audited: Audited, config: Config, rng: np.random.Generator) -> Iterator[tuple[str, Cells]]:
    """Yield the cells of each audit and attribute, by measure."""
    names = named_attributes(audited.dataset, config.attributes)
    seeds = rng.integers(2**63, size=config.seeds)
    for rate, name in product(config.rates, names):
        yield f"{rate} {name}", rates(audited, rate, name, seeds, config)
    for name in named_attributes(audited.dataset, config.map_attributes):
        yield f"fliptest {name}", fliptest(audited, name, config, rng)
    distance = distances(audited, config)
    chosen = rng.integers(distance.shape[-1], size=(config.audit_samples, distance.shape[-1]))
    for name in names:
        yield f"robustness {name}", robustness(audited, name, distance, chosen, int(seeds[0]), config)


def rates(audited: Audited, rate: str, attribute: str, seeds: Array, config: Config) -> Cells:
    """Test the difference of a rate between the groups, level 1 of the attribute minus level 0."""
    low, high = audited.dataset.levels[attribute]
    label, group = audited.batch.label[0], audited.batch.protected[attribute][0]
    settings = Settings("studentized", alpha=config.alpha, draws=config.permutations)

    def cell(model: int, sample: int, seed: int) -> tuple[float, float]:
        rows = audited.chosen[sample]
        rows = rows[group[rows] >= 0]
        decision = audited.decision[model][rows]
        data = Predictions(label[rows], decision.astype(float), 1 - group[rows], (high, low), prediction=decision)
        found = tested(data, METRICS[rate], settings, np.random.default_rng(seeds[seed]))
        return (np.nan, np.nan) if found.statistic is None else (found.statistic, float(found.rejected))

    shape = len(audited.decision), len(audited.chosen), len(seeds)
    return Cells(("model", "audit", "draws"), *_filled(shape, cell))


def fliptest(audited: Audited, attribute: str, config: Config, rng: np.random.Generator) -> Cells:
    """Compare the decisions about people of group 0 with those about their counterparts."""
    samples = rng.integers(len(audited.other), size=(config.map_samples, len(audited.other)))
    own = audited.other[samples]
    # One trial for each sample and seed.
    fitted_on = np.repeat(own, config.seeds, axis=0)
    seeds, floor_seeds = rng.integers(2**63, size=len(fitted_on)), rng.integers(2**63, size=len(own))
    between = Between(attribute, None, None, "test", None, both=False)
    people = np.flatnonzero(audited.batch.protected[attribute][0] == 0)
    # How often each of these people is in each audit sample.
    times = np.stack([np.bincount(rows, minlength=len(audited.rows))[people] for rows in audited.chosen]).astype(float)
    shares, rejected = [], []
    for regularization in config.regularization:
        how = entropic.Config(config.cost, config.tie_break, regularization, config.centres, config.quantiles)
        rngs, floor_rngs = ([np.random.default_rng(seed) for seed in some] for some in (seeds, floor_seeds))
        maps = fitted(audited.of(fitted_on), between, entropic, how, rngs)
        pairs = mapped(maps, audited.of(np.repeat(audited.rows[None], len(seeds), axis=0)), "test", len(seeds))
        # Axes: trial, model, person.
        flips = np.stack([audited.decision[:, people] != audited.decided(pair.images) for pair in pairs])
        share = flips @ times.T / times.sum(axis=1)
        floor = [_floor(audited, attribute, rows, rng, how, config) for rows, rng in zip(own, floor_rngs, strict=True)]
        highest = np.repeat(floor, config.seeds, axis=0)[..., None]
        shares.append(share)
        # Too few splits into halves have no floor.
        rejected.append(np.where(np.isnan(highest), np.nan, share > highest))
    return Cells(
        ("map", "model", "audit", "point", "draws"),
        *(_by_factor(values, config.map_samples) for values in (shares, rejected)),
    )


def _by_factor(values: Sequence[Array], samples: int) -> Array:
    """Return values of each point, (map sample and seed, model, audit sample), with the axes of FlipTest."""
    stacked = np.stack(values).astype(float)
    apart = stacked.reshape(len(values), samples, -1, *stacked.shape[2:])
    return np.moveaxis(apart, (0, 1, 2, 3, 4), (3, 0, 4, 1, 2))


def _floor(
    audited: Audited, attribute: str, rows: Array, rng: np.random.Generator, how: entropic.Config, config: Config
) -> Array:
    """Return the share of flips (M,) that another split of group 0 into random halves hardly exceeds.

    The same person in both halves would be her own counterpart, so every row counts once.
    """
    rows = np.unique(rows)
    x = audited.of(rows[audited.dataset.protected[attribute][rows] == 0][None]).batch("test").features[0]
    moving = transported_columns(audited.dataset, attribute)
    flips = []
    for half in halves(len(x), config.noise_people, config.noise_deals, rng):
        source, target = x[half.source], x[half.target]
        images = source.copy()
        images[:, moving] = entropic.fit_with_images([source[:, moving]], [target[:, moving]], how, [rng])[1][0]
        flips.append((audited.decided(source) != audited.decided(images)).mean(axis=1))
    return np.array([upper(shares, config.alpha) for shares in np.transpose(flips)])


def distances(audited: Audited, config: Config) -> Array:
    """Return the distances (M, settings of the attack, n) of correctly classified rows, NaN for others and failures."""
    n = min(config.points, len(audited.rows))
    x, label = audited.batch.features[0, :n], audited.batch.label[0, :n]
    found = np.full((len(audited.decision), len(config.fmn_steps), n), np.nan)
    kind = tabular_robustness.kind_of(audited.classifier)
    for model, decision in enumerate(audited.decision):
        own = {name: values[model] for name, values in audited.classifier.parameters.items()}
        rows = np.flatnonzero(decision[:n] == label)
        for point, steps in enumerate(config.fmn_steps):
            found[model, point, rows] = tabular_robustness.distances(
                kind, own, x[rows], label[rows], steps, config.fmn_start_steps
            )
    return found


def robustness(audited: Audited, attribute: str, distance: Array, chosen: Array, seed: int, config: Config) -> Cells:
    """Compare the mean distances of the groups, level 1 of the attribute and level 0; ``chosen`` are (S, n) rows."""
    group = audited.batch.protected[attribute][0, : distance.shape[-1]]

    def cell(model: int, sample: int, point: int) -> tuple[float, float]:
        own, codes = distance[model, point, chosen[sample]], group[chosen[sample]]
        known = np.isfinite(own)
        sides = [known & (codes == code) for code in (0, 1)]
        if not all(side.any() for side in sides):
            return np.nan, np.nan
        inside, outside = codes == 0, codes == 1
        rng = np.random.default_rng(seed)
        p = difference_p(np.where(known, own, 0.0), known, inside, outside, config.permutations, rng)
        low, high = (own[side].mean() for side in sides)
        return float(np.log(high / low)), np.nan if np.isnan(p) else float(p <= config.alpha)

    shape = len(distance), len(chosen), distance.shape[1]
    return Cells(("model", "audit", "point"), *_filled(shape, cell))


def _filled(shape: tuple[int, ...], cell: Any) -> tuple[Array, Array]:
    """Return the statistics and the verdicts of the cells of an experiment."""
    found = np.array([cell(*place) for place in np.ndindex(shape)]).reshape(*shape, 2)
    return found[..., 0], found[..., 1]
