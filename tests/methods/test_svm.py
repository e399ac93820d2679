"""The machine is scikit-learn's, and looks at the features that it is given alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from pipeline.methods import svm
from pipeline.methods.svm import Config
from pipeline.models import kernel
from pipeline.seeds import generators
from pipeline.types import Dataset

RNGS = generators("svm", repetitions=2)


def test_decision_values_are_those_of_scikit_learn(population: Callable[..., Dataset]) -> None:
    data = population()
    found = svm.fit(data, Config(2.0, None, None, None), RNGS)
    train, test = data.batch("train"), data.batch("test")
    for r in range(2):
        machine = SVC(C=2.0, gamma=1 / 5).fit(train.features[r], train.label[r])
        scores = kernel.score({name: v[r : r + 1] for name, v in found.parameters.items()}, test.features[r : r + 1])
        np.testing.assert_allclose(scores[0], machine.decision_function(test.features[r]), atol=1e-10)
        assert found.facts["support_vectors"][r] == len(machine.support_)
        assert found.facts["training_accuracy"][r] == machine.score(train.features[r], train.label[r])


def test_other_features_and_later_rows_do_not_matter(population: Callable[..., Dataset]) -> None:
    data, config = population(), Config(1.0, 0.7, ["skill", "noise"], 100)
    changed = data.features.copy()
    changed[:, [0, 1, 3]] = 0.0
    unseen = data.train[:, 100:]
    label = data.label.copy()
    only_late = np.setdiff1d(unseen, data.train[:, :100])
    label[only_late] = 1 - label[only_late]
    other = replace(data, features=changed, label=label, continuous=("skill", "noise"))
    one, two = (svm.fit(d, config, RNGS) for d in (data, other))
    for name in ("dual", "support", "gamma"):
        np.testing.assert_array_equal(one.parameters[name], two.parameters[name])
    assert (one.parameters["gamma"] == 0.7).all()


def test_what_cannot_be_fitted_is_said(population: Callable[..., Dataset]) -> None:
    data = population()
    with pytest.raises(ValueError, match=r"method\.features among those of 'population', .*; found \['age'\]"):
        svm.fit(data, Config(1.0, None, ["age", "skill"], None), RNGS)
    with pytest.raises(ValueError, match="both labels, found label 0 alone"):
        svm.fit(replace(data, label=np.zeros_like(data.label)), Config(1.0, None, None, None), RNGS)
