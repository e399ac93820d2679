r"""Whether the audits name the same people, if everybody is audited once in each partition of the data.

The repetitions are the folds of several partitions (``folds`` of the data set). In each partition, everybody is audited
by the model that was trained on the other folds. An audit *names* a person:

- ``fliptest``, for each protected attribute: the decision differs from that of the person's counterpart by the exact
  map between the two groups of the fold;
- ``loss_ratio``: the person is in the tenth of the fold with the largest ratio of the losses after and before the
  attack, with the fair metric of the training rows;
- ``robustness``: the person is in the tenth of the fold with the smallest distance to the decision boundary. Wrongly
  classified people count too: a small change reverses their decision as well, and without them no person could be named
  both by this audit and by the next one;
- ``error``: the decision wrongs the person, whose true label is ``favourable`` but whose decision is not. Group metrics
  count these errors among the people with this label, and so do all comparisons with ``error``.

:mod:`pipeline.stratified_odds` defines the odds ratios and their errors.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, permutations
from typing import Literal

import numpy as np

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Plan, step_schedule
from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import learn_batch
from fairness_audits.models import architecture
from fairness_audits.transport import exact
from fairness_audits.validation import Checked, Count, NonNegative, Positive
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.audits.tabular_robustness import distances, kind_of
from pipeline.counterparts import Between, directions, fitted, mapped
from pipeline.stratified_odds import Influenced, error_of_mean, log_odds_ratio, ratio
from pipeline.values import AuditResult

ERROR = "error"
TENTHS = 10
Fact = tuple[dict[str, str], list[dict[str, float]]]
"""The columns of a number, and its value and error for each partition."""


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``regularization``, ``step_size`` and ``steps`` of the attack; ``fmn_steps`` of the search for distances of
    networks, after ``fmn_start_steps`` of DeepFool; ``favourable``, the better label for a person.
    """

    regularization: NonNegative
    step_size: Positive
    steps: Count
    fmn_steps: Count
    fmn_start_steps: Count
    favourable: Literal[0, 1]


@dataclass(frozen=True)
class Named:
    """Who is named, of N people in B partitions: ``marks`` (B, N) by audit.

    ``fold`` (B, N) is -1 for the few people whom a partition leaves out. ``score`` (B, N) numbers the tenths of the
    scores in the fold, on both sides of the decision. ``group`` (N,) numbers the combinations of the protected
    attributes; ``at_risk`` (N,) are the people whom an error can wrong.
    """

    marks: Mapping[str, Array]
    fold: Array
    score: Array
    group: Array
    at_risk: Array

    def strata(self, partition: int, pair: Sequence[str], by_score: bool) -> Array:
        """Return the strata (N,) of a partition, by group and fold, and by score; -1 for people who do not count."""
        found = self.group * (self.fold.max() + 1) + self.fold[partition]
        if by_score:
            found = found * 2 * TENTHS + self.score[partition]
        return np.where(self._counted(pair) & (self.fold[partition] >= 0), found, -1)

    def both(self, partitions: Sequence[int], pair: Sequence[str]) -> Array:
        """Return the strata (N,) by group of people who are audited in all these partitions; -1 for the others."""
        audited = (self.fold[list(partitions)] >= 0).all(axis=0)
        return np.where(self._counted(pair) & audited, self.group, -1)

    def _counted(self, pair: Sequence[str]) -> Array:
        return self.at_risk if ERROR in pair else np.ones(len(self.group), bool)


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Compare the audits in each partition; ``repetition`` numbers the partitions.

    Rows for each partition, with the standard ``error`` of the mean over all of them:

    - by ``measure``, such as "fliptest sex": the share ``named``, and the share ``named_again``, of the people named in
      this partition, in another one;
    - by ``measure`` and ``other``: ``log_odds``, stratified by group and fold; ``given_score``, also by decision and
      by tenth of the score; their difference ``explained``; and, of the people named by the measure, and of the
      others, the shares ``also`` and ``otherwise`` named by the other audit;
    - by ``measure`` and ``other``, which may be equal: ``across``, the log odds ratio, stratified by group, of the
      measure in this partition and the other audit in another partition.

    A comparison with errors has no number given the score, because the decision and the label determine the errors.
    """
    named = marked(dataset, classifier, config, rngs)
    rows = [
        {"repetition": partition, **columns, **numbers}
        for columns, of_each in facts(named)
        for partition, numbers in enumerate(of_each)
    ]
    return AuditResult.of("same_people", dataset, classifier, rows)


def partitions(test: Array, people: int) -> tuple[int, int]:
    """Return the numbers of partitions and of folds whose test rows are ``test`` (R, n).

    Raises InvalidInput if consecutive repetitions do not divide the ``people``.
    """
    folds = people // test.shape[1]
    if len(test) % folds or any(
        len(np.unique(test[i : i + folds])) < folds * test.shape[1] for i in range(0, len(test), folds)
    ):
        problem = f"{len(test)} repetitions with {test.shape[1]:,} of {people:,} people each are not whole partitions"
        remedy = "Set dataset.folds, and a multiple of it as the number of repetitions"
        raise InvalidInput(problem, option="repetitions", remedy=remedy)
    return len(test) // folds, folds


def marked(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> Named:
    """Return whom each audit names in each partition."""
    people = len(dataset.label)
    count, folds = partitions(dataset.test[: classifier.repetitions], people)
    found: dict[str, Array] = {}
    fold, score = np.full((2, count, people), -1)
    for r in range(classifier.repetitions):
        place = np.unravel_index(r, (count, folds))
        rows = dataset.test[r]
        fold[place[0], rows] = place[1]
        marks, score[place[0], rows] = _of_fold(dataset, classifier, r, config, rngs[r])
        for name, mark in marks.items():
            found.setdefault(name, np.zeros((count, people), bool))[place[0], rows] = mark
    group = np.ravel_multi_index([*dataset.protected.values()], [len(names) for names in dataset.levels.values()])
    return Named(found, fold, score, group, dataset.label == config.favourable)


def _of_fold(
    dataset: Dataset, classifier: Classifier, repetition: int, config: Config, rng: np.random.Generator
) -> tuple[dict[str, Array], Array]:
    """Return the marks (n,) of the test rows of a repetition by audit, and the numbers (n,) of their scores."""
    here = slice(repetition, repetition + 1)
    data = replace(dataset, train=dataset.train[here], test=dataset.test[here])
    model = replace(
        classifier, parameters={name: values[here] for name, values in classifier.parameters.items()}, index={}
    )
    module, test = architecture(model.architecture), data.batch("test")
    decision = module.predict(model.parameters, test.features)
    marks = {}
    for attribute in data.protected:
        between = Between(attribute, None, None, "test", None, True)
        maps = fitted(data, between, exact, exact.Config("squared_l1", "sample"), rng.spawn(1))
        flips = np.zeros(len(data.label), bool)
        for direction, *_ in directions(maps):
            (pair,) = mapped(maps, data, "test", 1, direction)
            own, other = (module.predict(model.parameters, x[None])[0] for x in (pair.features, pair.images))
            flips[pair.rows] = own != other
        marks[f"fliptest {attribute}"] = flips[data.test[0]]
    metric = learn_batch(data.batch("train"), [data.feature_names.index(name) for name in data.sensitive_inputs])
    schedule = step_schedule("constant", config.step_size, 0.0, config.steps)
    flow = unfair_map(model, test.features, test.label, Plan(metric, config.regularization, schedule, [config.steps]))
    marks["loss_ratio"] = largest(flow.losses[0, -1] / flow.original_loss[0])
    own = {name: values[0] for name, values in model.parameters.items()}
    distance = distances(kind_of(model), own, test.features[0], decision[0], config.fmn_steps, config.fmn_start_steps)
    marks["robustness"] = largest(-distance)
    marks[ERROR] = ((test.label == config.favourable) & (decision != config.favourable))[0]
    score = module.score(model.parameters, test.features)[0]
    order = np.argsort(np.argsort(score, kind="stable"), kind="stable")
    return marks, decision[0] * TENTHS + order * TENTHS // len(score)


def largest(values: Array) -> Array:
    """Return whether a value (n,) is finite and in the largest tenth: booleans (n,). Ties go to the first."""
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf), kind="stable")
    found = np.zeros(len(values), bool)
    found[order[: round(len(values) / TENTHS)]] = True
    return found & np.isfinite(values)


def facts(named: Named) -> Iterator[Fact]:
    """Yield the numbers of each measure and of each pair of measures."""
    marks, count = named.marks, len(named.fold)
    audited = named.fold >= 0
    for name, mark in marks.items():
        counted = audited & named._counted([name])
        yield _fact(ratio(mark & counted, counted), statistic="named", measure=name)
    for pair in combinations(marks, 2):
        columns = {"measure": pair[0], "other": pair[1]}
        raw = _odds(named, pair, by_score=False)
        yield _fact(raw, statistic="log_odds", **columns)
        if ERROR not in pair:
            given = _odds(named, pair, by_score=True)
            yield _fact(given, statistic="given_score", **columns)
            yield _fact(raw.minus(given), statistic="explained", **columns)
    for pair in permutations(marks, 2):
        columns = {"measure": pair[0], "other": pair[1]}
        one, other = (marks[name] for name in pair)
        counted = audited & named._counted(pair)
        yield _fact(ratio(one & other & counted, one & counted), statistic="also", **columns)
        yield _fact(ratio(~one & other & counted, ~one & counted), statistic="otherwise", **columns)
    if count > 1:
        for name in marks:
            yield _fact(*_across(named, (name, name), _share), statistic="named_again", measure=name)
        for pair in combinations_with_replacement(marks, 2):
            yield _fact(*_across(named, pair, log_odds_ratio), statistic="across", measure=pair[0], other=pair[1])


def _fact(found: Influenced, left_out: Array | None = None, /, **columns: str) -> Fact:
    error = error_of_mean(found, left_out)
    return columns, [{"value": float(value), "error": error} for value in found.value]


def _odds(named: Named, pair: Sequence[str], by_score: bool) -> Influenced:
    """Compare two audits in each partition."""
    one, other = (named.marks[name] for name in pair)
    strata = (named.strata(partition, pair, by_score) for partition in range(len(one)))
    return Influenced.stacked([log_odds_ratio(*each) for each in zip(one, other, strata, strict=True)])


def _share(one: Array, other: Array, stratum: Array) -> Influenced:
    """Return the share of the other mark among the people with the first one."""
    first = one & (stratum >= 0)
    return ratio(first & other, first)


def _across(
    named: Named, pair: Sequence[str], compare: Callable[[Array, Array, Array], Influenced]
) -> tuple[Influenced, Array]:
    """Compare a measure in each partition with another one in the other partitions.

    Return the means (B,), and the means (B,) over all pairs of partitions without each partition.
    """
    one, other = (named.marks[name] for name in pair)
    count, people = one.shape
    value, influence = np.zeros((count, count)), np.zeros((count, people))
    for a, b in permutations(range(count), 2):
        found = compare(one[a], other[b], named.both([a, b], pair))
        value[a, b] = found.value
        influence[a] += found.influence / (count - 1)
    # Without a partition, neither its row nor its column remains.
    rest = value.sum() - value.sum(axis=0) - value.sum(axis=1)
    left_out = rest / ((count - 1) * (count - 2)) if count > 2 else np.zeros(count)
    return Influenced(value.sum(axis=1) / (count - 1), influence), left_out
