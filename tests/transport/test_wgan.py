"""The Wasserstein GAN: it trains as a plain torch loop does, trials are independent, divergence shows."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numba import njit
from scipy.stats import ks_2samp

from benchmarks.transport_wgan import train_plainly
from fairness_audits.models.mlp import glorot_networks
from fairness_audits.seeds import generators
from fairness_audits.transport import wgan, wgan_compiled, wgan_kernels
from fairness_audits.transport.wgan import CURVES, Monitor, Selection, minibatches, outputs
from fairness_audits.transport.wgan_compiled import CompiledTraining
from fairness_audits.transport.wgan_kernels import LANES, ROWS, add_products
from fairness_audits.values import Array, TransportMap
from tests.methods.builders import Kept

CONFIG = wgan.Config(
    hidden_units=10, learning_rate=1e-3, decay=0.9, epsilon=1e-7, clip=0.01, rounds=2, batch_size=24, steps=30,
    cost_weight=1e-2, selection="last", check_every=10, threads=1,
)  # fmt: skip


def groups(trials: int, d: int = 2) -> tuple[list[Array], list[Array]]:
    """Rows of two groups, of sizes that differ between trials and groups."""
    rngs = [np.random.default_rng(t) for t in range(trials)]
    source = [rng.normal(size=(90 + 7 * t, d)) for t, rng in enumerate(rngs)]
    return source, [1 + 0.5 * rng.normal(size=(130 - 5 * t, d)) for t, rng in enumerate(rngs)]


class Setting:
    """Data, initial networks and minibatches."""

    def __init__(self, trials: int, d: int, steps: int, **values: Any) -> None:
        self.config = replace(CONFIG, **values)
        self.source, self.target = groups(trials, d)
        rngs, hidden = generators("engines", repetitions=trials), self.config.hidden_units
        self.generators, self.critics = (glorot_networks(rngs, (d, hidden, hidden, k)) for k in (d, 1))
        sizes = [(len(x), len(y)) for x, y in zip(self.source, self.target, strict=True)]
        self.rows = minibatches(sizes, steps, self.config.rounds, self.config.batch_size, rngs)

    def run(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """The generators and critics after all minibatches, in double precision."""
        training = CompiledTraining(self.source, self.target, self.generators, self.critics, self.config, "float64")
        training.advance(self.rows, np.ones(len(self.source), dtype=bool))
        return training.generators(), training.critics()


def module(networks: dict[str, Array], t: int) -> torch.nn.Sequential:
    """Trial t's network as users of torch write theirs."""
    layers: list[torch.nn.Module] = []
    for number in (1, 2, 3):
        weights, bias = (torch.as_tensor(networks[f"{kind}{number}"][t]) for kind in "wb")
        layer = torch.nn.Linear(weights.shape[0], weights.shape[1], dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(weights.T)
            layer.bias.copy_(bias)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def plain_loop(setting: Setting, t: int) -> tuple[torch.nn.Sequential, torch.nn.Sequential]:
    """Train trial t as the docstring of the module ``wgan`` says, by modules, optimizers and backward()."""
    generator, critic = module(setting.generators, t), module(setting.critics, t)
    source, target = torch.as_tensor(setting.source[t]), torch.as_tensor(setting.target[t])
    train_plainly(generator, critic, source, target, setting.rows[t], setting.config)
    return generator, critic


SHAPES: dict[str, dict[str, Any]] = {
    "as published": {"d": 2, "hidden_units": 128, "batch_size": 64, "rounds": 5},
    # Fewer units and rows than there are lanes; one feature.
    "small": {"d": 1},
    # More than one block of rows, a hidden layer that fills its last panel in part.
    "odd": {"d": 9, "hidden_units": 70, "batch_size": 150},
    # More features than a panel has columns.
    "wide": {"d": 70, "rounds": 1},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_training_is_that_of_automatic_differentiation(shape: str) -> None:
    setting = Setting(trials=2, steps=15, **SHAPES[shape])
    trained = setting.run()
    for t in range(2):
        starts = (setting.generators, setting.critics)
        for networks, start, plain in zip(trained, starts, plain_loop(setting, t), strict=True):
            # Weights and biases in turn, torch's weights the other way round.
            for name, values in zip(start, plain.parameters(), strict=True):
                np.testing.assert_allclose(networks[name][t], values.detach().numpy().T, rtol=0, atol=1e-10)
                assert np.abs(networks[name][t] - start[name][t]).max() > 1e-3
        # The bound is met: without clipping the weights would be other ones.
        assert np.abs(trained[1]["w2"]).max() == setting.config.clip


def fitted(trials: int, names: str = "fit", resume: Kept | None = None, **values: Any) -> TransportMap:
    source, target = groups(trials)
    return wgan.fit(source, target, replace(CONFIG, **values), generators(names, repetitions=trials), resume)


def same(
    one: TransportMap, other: TransportMap, trials: int = 3, fields: Sequence[str] = ("parameters", "facts")
) -> bool:
    """Whether the first trials agree in every byte."""
    for field in fields:
        first, second = getattr(one, field), getattr(other, field)
        if any(first[name][:trials].tobytes() != second[name][:trials].tobytes() for name in first):
            return False
    return True


def test_a_trial_does_not_depend_on_how_many_there_are_nor_on_the_number_of_threads() -> None:
    assert same(fitted(3), fitted(3, threads=3))
    assert not same(fitted(3), fitted(3, names="other"))
    assert same(fitted(1), fitted(3), trials=1)


def test_how_often_one_looks_does_not_change_what_is_trained() -> None:
    few, many = fitted(2, check_every=30), fitted(2, check_every=7)
    assert same(few, many, trials=2)
    assert few.history["step"].tolist() == [0, 30]
    assert many.history["step"].tolist() == [0, 7, 14, 21, 28, 30]
    for name in CURVES:
        assert many.history[name].shape == (2, 6)
        np.testing.assert_array_equal(few.history[name][:, -1], many.history[name][:, -1])
        np.testing.assert_array_equal(many.facts[name], many.history[name][:, -1])


@pytest.mark.parametrize(("selection", "kill_after"), [("best", 1), ("last", 2)])
def test_a_killed_fit_goes_on_to_the_same_bytes(selection: str, kill_after: int) -> None:
    how: dict[str, Any] = {"selection": selection}
    everything = ("parameters", "facts", "history")
    resume = Kept(kill_after)
    with pytest.raises(KeyboardInterrupt):
        fitted(3, resume=resume, **how)
    kept = resume.state
    assert same(fitted(3, resume=resume, **how), fitted(3, **how), fields=everything)
    assert resume.saves == 3
    other = Kept()
    other.state = kept
    assert same(fitted(3, "other", other, **how), fitted(3, "other", **how), fields=everything)
    assert other.saves == 3


def test_machine_code_from_disk_computes_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the compiled code was on disk already both runs read it; where it was not the first has just made it."""
    made = fitted(2)
    read = wgan_kernels.compiled_entry(wgan_kernels.train.py_func)
    monkeypatch.setattr(wgan_compiled, "train", read)
    assert same(made, fitted(2), trials=2)
    assert sum(read.stats.cache_hits.values()) == 1


def test_one_feature_is_mapped_onto_the_target_where_distance_is_cheap_and_stays_where_it_is_dear() -> None:
    rng = np.random.default_rng(0)
    source, target = [rng.normal(size=(2000, 1))], [3 + 0.5 * rng.normal(size=(2000, 1))]
    plan = replace(CONFIG, hidden_units=64, batch_size=64, clip=0.1, rounds=5, steps=600, selection="best")
    plans = (replace(plan, cost_weight=weight, check_every=50) for weight in (0.0, 10.0))
    moved, still = (wgan.fit(source, target, one, generators("limits", repetitions=1)) for one in plans)
    assert moved.history["max_ks"][0, 0] > 0.9
    assert moved.facts["max_ks"][0] < 0.25
    image = wgan.images(moved.parameters, source)[0]
    levels = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(np.quantile(image, levels), np.quantile(target[0], levels), atol=0.3)
    assert np.abs(wgan.images(still.parameters, source)[0] - source[0]).mean() < 0.1
    assert still.facts["max_ks"][0] > 0.9
    assert still.facts["diverged"][0]


def test_a_trial_that_is_not_finite_stops_alone(caplog: pytest.LogCaptureFixture) -> None:
    source, target = groups(3)
    # So large that its squared gradient is beyond single precision.
    source[1] = source[1] * 1e25
    with caplog.at_level(logging.INFO, logger="fairness_audits.transport.wgan"):
        broken = wgan.fit(source, target, CONFIG, generators("fit", repetitions=3))
    whole = fitted(3)
    assert broken.facts["non_finite"].tolist() == [0, 1, 0]
    assert broken.facts["selected_step"].tolist() == [30, 0, 30]
    for name, values in broken.parameters.items():
        assert np.isfinite(values).all()
        np.testing.assert_array_equal(values[[0, 2]], whole.parameters[name][[0, 2]])
    for name in CURVES:
        assert np.isnan(broken.history[name][1, 1:]).all()
        assert np.isfinite(broken.history[name][[0, 2]]).all()
    assert "generator step 30 of 30" in caplog.text
    assert "1 of 3 trials stopped: not finite" in caplog.text


def test_all_trials_may_stop(caplog: pytest.LogCaptureFixture) -> None:
    source, target = groups(1)
    with caplog.at_level(logging.INFO, logger="fairness_audits.transport.wgan"):
        maps = wgan.fit([source[0] * 1e25], target, CONFIG, generators("fit", repetitions=1))
    assert maps.facts["non_finite"].all()
    assert "no trial is finite any more" in caplog.text


def test_best_is_selected_by_the_history() -> None:
    maps = fitted(3, selection="best", check_every=3)
    chosen = maps.history["max_ks"][:, 1:].argmin(axis=1)
    np.testing.assert_array_equal(maps.facts["selected_step"], maps.history["step"][1:][chosen])
    assert len(set(maps.facts["selected_step"].tolist())) > 1


# Products of matrices in the compiled GAN: rounded once a product, added in the order of the columns.


_njit: Any = njit
TINY = np.finfo(np.float32).eps
LARGE = 2.0**30


@_njit
def added(out: Array, weights: Array, x: Array) -> None:
    add_products(out, weights, x)


@pytest.mark.parametrize(
    ("start", "weights", "x", "expected"),
    [
        # (1 + e)^2 - 1 - 2 e is e^2, which a product that is rounded by itself has lost.
        (-1 - 2 * TINY, (1 + TINY, 0, 0, 0), 1 + TINY, TINY**2),
        # Of 1, then large and minus large, only the other order keeps the 1.
        (0, (1, LARGE, -LARGE, 0), 1, 0),
        (0, (-LARGE, LARGE, 1, 0), 1, 1),
    ],
)
def test_columns_are_added_in_their_order_and_products_are_not_rounded_before(
    start: float, weights: tuple[float, ...], x: float, expected: float
) -> None:
    out = np.full(ROWS * LANES, start, np.float32)
    added(out, np.tile(np.array(weights, np.float32), (ROWS, 1)), np.full(ROWS * LANES, x, np.float32))
    assert (out == np.float32(expected)).all()


# What is watched of a Wasserstein GAN in training, and which networks are kept.


def test_best_keeps_the_smallest_statistic_and_last_the_last() -> None:
    def networks(value: float) -> dict[str, Array]:
        return {"w": np.full((2, 3), value)}

    def measured(*max_ks: float) -> dict[str, Array]:
        return {name: np.array(max_ks) if name == "max_ks" else np.array(max_ks) / 2 for name in CURVES}

    points = {10: measured(0.5, 0.1), 20: measured(0.12, np.nan), 30: measured(0.3, 0.05)}
    kept = {}
    for rule in ("last", "best"):
        kept[rule] = Selection(rule, networks(0), measured(0.01, 0.01))
        for step, values in points.items():
            kept[rule].consider(step, networks(step), values)
    assert kept["best"].parameters["w"][:, 0].tolist() == [20, 10]
    assert kept["last"].parameters["w"][:, 0].tolist() == [30, 10]
    facts = kept["best"].facts()
    assert facts["selected_step"].tolist() == [20, 10]
    assert facts["max_ks"].tolist() == [0.12, 0.1]
    assert facts["mean_cost"].tolist() == [0.06, 0.05]
    # Not above .12, so the first is not diverged; the second is, because it stopped.
    assert facts["diverged"].tolist() == [0, 1]
    assert kept["last"].facts()["diverged"].tolist() == [1, 1]


def test_what_is_watched_are_means_over_the_rows_and_the_largest_statistic() -> None:
    rng, rngs = np.random.default_rng(0), generators("watch", repetitions=2)
    maps, critics = (glorot_networks(rngs, (3, 10, 10, k)) for k in (3, 1))
    source = [rng.normal(size=(n, 3)) for n in (90, 80)]
    target = [1 + rng.normal(size=(n, 3)) for n in (130, 150)]
    measured = Monitor(source, target).measure(maps, critics)
    for t in range(2):
        image = outputs({name: values[t] for name, values in maps.items()}, source[t])
        distance = np.abs(image - source[t]).sum(axis=1)
        assert measured["mean_cost"][t] == pytest.approx((distance**2).mean(), rel=1e-5)
        critic = {name: values[t] for name, values in critics.items()}
        gap = outputs(critic, target[t]).mean() - outputs(critic, image).mean()
        assert abs(gap) > 1e-2
        assert measured["critic_gap"][t] == pytest.approx(gap, abs=1e-6)
        statistics = [ks_2samp(image[:, j], target[t][:, j]).statistic for j in range(3)]
        assert measured["max_ks"][t] == pytest.approx(max(statistics), abs=0.02)


# Initial weights and minibatches of a Wasserstein GAN.


def test_minibatches_are_uniform_over_each_groups_rows() -> None:
    rows = minibatches([(3, 50), (7, 2)], 400, 2, 20, generators("rows", repetitions=2))
    assert rows.shape == (2, 400, 5, 20)
    for t, (sources, targets) in enumerate([(3, 50), (7, 2)]):
        for position, size in enumerate([targets, sources, targets, sources, sources]):
            shares = np.bincount(rows[t, :, position].ravel(), minlength=size) / 8000
            assert len(shares) == size
            np.testing.assert_allclose(shares, 1 / size, atol=5 * np.sqrt(1 / size / 8000))
