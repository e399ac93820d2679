"""A linear prediction and its threshold."""

import numpy as np

from pipeline.models import linear

PARAMETERS = {
    "coef": np.array([[2.0, -1.0], [0.0, 1.0]]),
    "intercept": np.array([0.5, 0.0]),
    "threshold": np.array([1.5, -1.0]),
}


def test_the_score_is_the_prediction_and_the_decision_that_it_exceeds_the_threshold() -> None:
    x = np.tile([[1.0, 1.0], [1.0, 0.0], [0.0, -1.0]], (2, 1, 1))
    np.testing.assert_allclose(linear.score(PARAMETERS, x), [[1.5, 2.5, 1.5], [1.0, 0.0, -1.0]])
    # A tie counts as 0.
    np.testing.assert_array_equal(linear.predict(PARAMETERS, x), [[0, 1, 0], [1, 1, 0]])
