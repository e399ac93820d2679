import numpy as np

from pipeline.models.ragged import stacked


def test_the_shorter_arrays_are_filled_up_at_their_ends() -> None:
    assert stacked([np.array([1.0]), np.array([1.0, 2, 3])], -np.inf).tolist() == [[1, -np.inf, -np.inf], [1, 2, 3]]
    found = stacked([np.ones((3, 2)), np.ones((1, 2))])
    assert found.shape == (2, 3, 2)
    assert found.sum(axis=2).tolist() == [[2, 2, 2], [2, 0, 0]]
