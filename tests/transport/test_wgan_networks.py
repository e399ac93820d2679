"""Initial weights and minibatches of a Wasserstein GAN."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.models.initial_weights import glorot_networks
from pipeline.seeds import generators
from pipeline.transport.wgan_networks import minibatches


def test_initial_weights_are_glorot_uniform_and_biases_zero() -> None:
    networks = glorot_networks(generators("glorot", repetitions=40), (2, 30, 30, 5))
    for name, sizes in (("w1", (2, 30)), ("w2", (30, 30)), ("w3", (30, 5))):
        limit = np.sqrt(6 / sum(sizes))
        assert networks[name].shape == (40, *sizes)
        assert 0.98 * limit < np.abs(networks[name]).max() <= limit
        assert networks[name].var() == pytest.approx(limit**2 / 3, rel=0.1)
    assert not any(networks[f"b{number}"].any() for number in (1, 2, 3))


def test_minibatches_are_uniform_over_each_groups_rows() -> None:
    rows = minibatches([(3, 50), (7, 2)], 400, 2, 20, generators("rows", repetitions=2))
    assert rows.shape == (2, 400, 5, 20)
    for t, (sources, targets) in enumerate([(3, 50), (7, 2)]):
        for position, size in enumerate([targets, sources, targets, sources, sources]):
            shares = np.bincount(rows[t, :, position].ravel(), minlength=size) / 8000
            assert len(shares) == size
            np.testing.assert_allclose(shares, 1 / size, atol=5 * np.sqrt(1 / size / 8000))
