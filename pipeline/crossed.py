"""Crossed experiments: the models that share a split, and what each factor contributes to a statistic and a verdict.

:mod:`pipeline.variance_components` defines the spreads, the reversal shares and the variance components.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import enumerated
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.variance_components import components, disagreement, half_squared_difference

EVERYTHING = "everything"
"""Effect of two auditors who differ in all factors. Other effects are named by their factors, ``metric x audit``."""


class Split(NamedTuple):
    """A split, by ``number``, with its models as repetitions of one split; ``first`` is that of the first model."""

    number: int
    first: int
    dataset: Dataset
    classifier: Classifier


def splits(dataset: Dataset, classifier: Classifier) -> Iterator[Split]:
    """Yield the splits of the data set with their models. Models of a split that are all equal are a single one.

    Raises InvalidInput if the splits have different numbers of models.
    """
    for number, models in enumerate(shared_splits(dataset.test[: classifier.repetitions])):
        own = replace(dataset, train=dataset.train[models[:1]], test=dataset.test[models[:1]])
        parameters = {name: array[models] for name, array in classifier.parameters.items()}
        if all((array == array[:1]).all() for array in parameters.values()):
            parameters = {name: array[:1] for name, array in parameters.items()}
        yield Split(number, int(models[0]), own, replace(classifier, parameters=parameters))


def shared_splits(test: Array) -> list[Array]:
    """Return the numbers of the repetitions (m,) of each split, given their test rows (R, n)."""
    starts = np.flatnonzero(np.append(True, (test[1:] != test[:-1]).any(axis=1)))
    found = np.split(np.arange(len(test)), starts[1:])
    sizes = [str(size) for size in sorted({len(models) for models in found})]
    if len(sizes) > 1:
        problem = f"the splits have {enumerated(sizes)} models, so the experiment is not balanced"
        remedy = "Make the number of repetitions a multiple of the trainings of the data set"
        raise InvalidInput(problem, option="repetitions", remedy=remedy)
    return found


def facts(values: Array, rejected: Array, factors: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the facts of an experiment from the statistic and the verdict (0 or 1) of its cells, with axes ``factors``.

    - by ``effect``, a factor or everything: ``spread`` of the statistic, its logarithm ``log_spread``, and
      ``reversals``;
    - by ``effect``, a set of factors: the variance ``component`` of the statistic, and its ``share`` of the sum of the
      components, where one below zero counts as zero.

    A factor with a single level has no effect.
    """
    varied = [axis for axis, levels in enumerate(values.shape) if levels > 1]
    for effect, axes in {**{factors[axis]: [axis] for axis in varied}, EVERYTHING: varied}.items():
        spread = np.sqrt(np.maximum(half_squared_difference(values, axes), 0.0))
        yield {"statistic": "spread", "effect": effect, "value": spread}
        # Without any difference, the logarithm does not exist.
        yield {"statistic": "log_spread", "effect": effect, "value": np.log(spread) if spread > 0 else np.nan}
        yield {"statistic": "reversals", "effect": effect, "value": disagreement(rejected, axes)}
    found = {" x ".join(effect): value for effect, value in components(values, factors).items()}
    total = sum(np.maximum(value, 0.0) for value in found.values())
    for effect, value in found.items():
        yield {"statistic": "component", "effect": effect, "value": value}
        yield {"statistic": "share", "effect": effect, "value": np.maximum(value, 0.0) / total if total else np.nan}
