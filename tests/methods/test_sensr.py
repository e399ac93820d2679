"""SenSR: its iterates are those of autograd, failures are counted and skipped, the result is fairer; its Adam."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import njit

from benchmarks.plain_sensr import PlainIterations, updated_lambda
from fairness_audits import fair_metric
from fairness_audits.fair_metric import FairMetric
from fairness_audits.models import mlp
from fairness_audits.models.mlp import glorot_networks
from fairness_audits.seeds import generators
from fairness_audits.values import Array, Batch, Classifier, Dataset
from pipeline.methods import baseline, sensr
from pipeline.methods.baseline import balanced_rows
from pipeline.training.sensr import CompiledIterations
from pipeline.training.sensr.attacks import DELTA, SHARED, SLOPE, STATE, Q, _adam_step
from pipeline.training.sensr.lanes import LANES, TINIEST, Attack, corrected_rates, largest_step, second_moment
from pipeline.training.sensr.training import _updated_lambda
from pipeline.training.sensr_config import BETA_1, BETA_2, EPSILON
from tests.builders import settings
from tests.methods.builders import Kept, population

VALUES = settings(
    "sensr", hidden_units=13, learning_rate=1e-3, batch_size=70, iterations=15, subspace_steps=5, subspace_rate=0.1,
    full_steps=8, full_rate=1e-3,
)  # fmt: skip


class Setting:
    """Data, metric, initial networks and batches."""

    def __init__(self, dataset: Dataset, metric: FairMetric | None = None, **values: Any) -> None:
        self.config = sensr.Config(**{**VALUES, **values})
        self.data: Batch = dataset.batch("train")
        inputs = [dataset.feature_names.index(name) for name in dataset.sensitive_inputs]
        self.metric = fair_metric.learn_batch(self.data, inputs) if metric is None else metric
        rngs = generators("engines", repetitions=dataset.repetitions)
        sizes = (self.data.features.shape[-1], self.config.hidden_units, 2)
        self.start = glorot_networks(rngs, sizes, sensr.INITIAL_BIAS)
        draws = [
            balanced_rows(label, self.config.batch_size, self.config.iterations, rng)
            for label, rng in zip(self.data.label, rngs, strict=True)
        ]
        self.rows = np.stack([np.concatenate(list(rows)) for rows in draws])

    def run(self, precision: str = "float64") -> tuple[Any, Any, Any]:
        """The curve, the parameters and the facts after all batches."""
        training = CompiledIterations(self.data, self.metric, self.start, self.config, precision)
        return training.advance(self.rows), training.parameters(), training.facts()

    def moved(self, parameters: dict[str, Array]) -> float:
        """The largest change of a parameter since the start."""
        return max(float(np.abs(parameters[name] - values).max()) for name, values in self.start.items())


def drawn_metric(dataset: Dataset, count: int) -> FairMetric:
    """``count`` sensitive directions, for each repetition others."""
    rng = np.random.default_rng(5)
    shape = (count, dataset.features.shape[1])
    each = [fair_metric.from_directions(rng.normal(size=shape)) for _ in range(dataset.repetitions)]
    return FairMetric(*(np.stack([getattr(metric, name) for metric in each]) for name in PARTS))


PARTS = ("matrix", "basis", "directions")
CASES: dict[str, dict[str, Any]] = {
    "as published": {},
    # Steps so long that units of most samples cross 0, many of them several times.
    "long steps": {"full_rate": 0.1, "full_steps": 20},
    # Many samples end where their loss is all but 0; a lambda so small that rounding is not amplified there.
    "long subspace steps": {"subspace_rate": 5.0, "initial_lambda": 1e-5, "radius": 1.0, "iterations": 8},
    # No subspace attack to speak of: every unit starts near its kink.
    "short subspace steps": {"subspace_rate": 1e-4, "full_rate": 0.02},
    "units fill the padding": {"hidden_units": 16, "batch_size": 64},
    "a sample over": {"batch_size": 66},
}


@pytest.mark.parametrize(
    ("case", "directions"), [*((case, 3) for case in CASES), *(("as published", count) for count in (0, 2, 4))]
)
def test_iterates_are_those_of_automatic_differentiation(case: str, directions: int) -> None:
    """For the learned metric, of two attributes and with their two columns, and for drawn ones."""
    dataset = population(sensitive_inputs=directions == 4)
    setting = Setting(dataset, drawn_metric(dataset, directions) if directions in (0, 3) else None, **CASES[case])
    assert setting.metric.directions.shape[1] == directions
    curve, parameters, facts = setting.run()
    assert setting.moved(parameters) > 0.005
    for r, rows in enumerate(setting.rows):
        plain = PlainIterations(setting.data, setting.metric, setting.start, setting.config, r)
        np.testing.assert_allclose(curve[r], plain.advance(rows), rtol=1e-8)
        for name, values in plain.parameters().items():
            np.testing.assert_allclose(parameters[name][r], values, atol=1e-9)
        for name, count in plain.facts().items():
            np.testing.assert_allclose(facts[name][r], count, rtol=1e-8)


def test_threads_and_chunks_change_nothing() -> None:
    one, two = Setting(population(repetitions=3)), Setting(population(repetitions=3), threads=2)
    expected = one.run("float32")[1]
    found = two.run("float32")[1]
    chunked = CompiledIterations(one.data, one.metric, one.start, one.config)
    for part in np.array_split(one.rows, 4, axis=1):
        chunked.advance(part)
    for name, values in expected.items():
        assert found[name].tobytes() == values.tobytes()
        assert chunked.parameters()[name].tobytes() == values.tobytes()


def test_a_full_attack_that_lowers_its_objective_is_skipped_and_slows_the_next() -> None:
    """One step of length 1000 in every coordinate costs lambda times a million, more than any loss can gain."""
    setting = Setting(population(), full_rate=1e3, full_steps=1, initial_lambda=10.0)
    # The same batch again and again: with the parameters unchanged, only the length of the step differs.
    setting.rows = setting.rows[:, :1].repeat(setting.config.iterations, axis=1)
    curve, parameters, facts = setting.run()
    assert facts["failed_full_attacks"].tolist() == [setting.config.iterations] * 2
    assert setting.moved(parameters) < 1e-15
    assert (facts["final_lambda"] == 10).all()
    lengths = np.sqrt(curve[..., 2])
    np.testing.assert_allclose(lengths[:, 1:] / lengths[:, :-1], 0.999, rtol=1e-9)


def test_attacks_that_are_not_finite_are_counted_and_skipped() -> None:
    setting = Setting(population(), subspace_rate=1e308)
    _, parameters, facts = setting.run()
    assert facts["non_finite_attacks"].tolist() == [setting.config.iterations] * 2
    assert facts["failed_full_attacks"].tolist() == [0, 0]
    assert setting.moved(parameters) < 1e-15


def test_a_subspace_attack_that_lowers_the_loss_is_undone() -> None:
    """The loss rises up to x_1 = 1 and falls beyond it: from x_1 = 1/2, a step of 10 along the first axis overshoots.

    With t = x_1 and label 1, z = -max(t, 0) + 3 max(t - 1, 0); with label 0, which x_2 tells, -z is that.
    """
    setting = Setting(population(), subspace_rate=10.0, subspace_steps=1, full_rate=1e-12, hidden_units=4)
    label, far = setting.data.label, 100.0
    setting.data = Batch(np.stack([np.full(label.shape, 0.5), 2.0 * label - 1], axis=-1), label, {})
    metric = fair_metric.from_directions(np.array([[1.0, 0.0]]))
    setting.metric = FairMetric(*(np.stack([getattr(metric, part)] * 2) for part in PARTS))
    v = np.array([-1.0, 3.0, 1.0, -3.0])
    start = {
        "w1": np.array([[1.0, 1.0, 1.0, 1.0], [far, far, -far, -far]]),
        "b1": np.array([-far, -far - 1, -far, -far - 1]),
        "w2": np.stack([-v, v], axis=-1) / 2,
        "b2": np.zeros(2),
    }
    setting.start = {name: np.stack([values, values]) for name, values in start.items()}
    curve, _, facts = setting.run()
    assert facts["failed_subspace_attacks"].tolist() == [setting.config.iterations] * 2
    np.testing.assert_allclose(curve[:, 0, 0], np.log1p(np.exp(0.5)), rtol=1e-9)
    # A step of 1/4 raises the loss, and is kept.
    setting.config = sensr.Config(**{**VALUES, "subspace_rate": 0.25, "subspace_steps": 1, "full_rate": 1e-12})
    curve, _, facts = setting.run()
    assert facts["failed_subspace_attacks"].tolist() == [0, 0]
    np.testing.assert_allclose(curve[:, 0, 0], np.log1p(np.exp(0.75)), rtol=1e-4)


def test_sensr_is_flatter_along_the_sensitive_directions_than_the_baseline() -> None:
    dataset = population(n=2000, repetitions=2, proxy=1.5)
    shared: dict[str, Any] = {"hidden_units": 20, "learning_rate": 3e-3, "batch_size": 100}
    rngs = generators("flat", repetitions=2)
    values = {**VALUES, **shared, "iterations": 400, "subspace_rate": 0.3, "full_rate": 1e-4}
    plain = baseline.fit(dataset, baseline.Config(**shared, steps=400), rngs)
    fair = sensr.fit(dataset, sensr.Config(**values), rngs)
    x, metric = dataset.batch("test").features, fair_metric.learn_batch(dataset.batch("test"))
    axes = np.moveaxis(metric.basis, -1, 0)

    def sensitivity(parameters: dict[str, Array]) -> Array:
        """How much two units along the sensitive subspace move the log odds, against how much these vary."""
        still = mlp.margin(parameters, x)
        moves = [np.abs(mlp.margin(parameters, x + s * 2 * u[:, None]) - still).mean(1) for u in axes for s in (-1, 1)]
        return np.max(moves, axis=0) / still.std(axis=1)

    assert (sensitivity(dict(fair.parameters)) < 0.6 * sensitivity(dict(plain.parameters))).all()
    assert fair.history["balanced_accuracy"][:, -1].min() > 0.6
    assert set(fair.history) == {"step", "loss", "lambda", "fair_distance", "balanced_accuracy"}
    assert fair.history["step"][-1] == 400
    assert all(curve.shape == (2, 4) for name, curve in fair.history.items() if name != "step")


@pytest.mark.parametrize("kill_after", [1, 2])
def test_a_killed_training_goes_on_to_the_same_bytes(kill_after: int) -> None:
    """After its first hundred iterations, and after its second, whose curve is not whole."""
    dataset = population()
    config = sensr.Config(**{**VALUES, "iterations": 230, "subspace_steps": 1, "full_steps": 1})

    def fit(resume: Kept | None, config: sensr.Config = config, seed: str = "kept") -> Classifier:
        return sensr.fit(dataset, config, generators(seed, repetitions=dataset.repetitions), resume)

    def same(one: Classifier, other: Classifier) -> bool:
        pairs = [(getattr(one, part), getattr(other, part)) for part in ("parameters", "history", "facts")]
        return all(ours[name].tobytes() == theirs[name].tobytes() for ours, theirs in pairs for name in ours)

    resume, whole = Kept(kill_after), fit(None)
    with pytest.raises(KeyboardInterrupt):
        fit(resume)
    kept = resume.state
    assert same(fit(resume), whole)
    assert resume.saves == 3
    for changed, seed in ((replace(config, radius=2e-3), "kept"), (config, "other")):
        another = Kept()
        another.state = kept
        assert same(fit(another, changed, seed), fit(None, changed, seed))
        assert another.saves == 3
    # The number of threads is of no consequence.
    more = Kept()
    more.state = kept
    fit(more, replace(config, threads=2))
    assert more.saves == 3 - kill_after


# Adam as SenSR takes it, its moments, the bound on its steps, and the update of lambda, each against its formula.


def test_no_gradients_move_adam_further_than_the_bound_and_some_reach_it() -> None:
    def steps(gradients: np.ndarray) -> np.ndarray:
        m = v = np.zeros(gradients.shape[1:])
        moves = []
        for g in gradients:
            m, v = BETA_1 * m + (1 - BETA_1) * g, BETA_2 * v + (1 - BETA_2) * g**2
            moves.append(m / np.sqrt(v))
        return np.abs(np.array(moves)) * corrected_rates(1.0, len(gradients))[:, None]

    rng = np.random.default_rng(0)
    for count in (1, 8, 50):
        bound = largest_step(count)
        tried = rng.normal(size=(count, 2000)) * rng.lognormal(sigma=3, size=(count, 2000))
        assert steps(tried).max() <= bound * (1 + 1e-12)
        # Equality in the Cauchy-Schwarz inequality: gradients that grow by the factor b_2 / b_1.
        assert steps(((BETA_2 / BETA_1) ** np.arange(count))[:, None]).max() == pytest.approx(bound, rel=1e-12)
    assert largest_step(1) == pytest.approx(1.0)


def second_moments(gradients: Array, tiniest: float) -> Array:
    """Of 50 steps, in float32, before each bias is corrected: (50, gradients)."""
    keep, add = np.float32(BETA_2), np.float32(1 - BETA_2)
    v, found = np.zeros_like(gradients), []
    for _ in range(50):
        pairs = zip(v, gradients, strict=True)
        v = np.array([second_moment.py_func(*pair, keep, add, np.float32(tiniest)) for pair in pairs])
        found.append(v)
    return np.array(found)


def subnormal(values: Array) -> Array:
    return (values != 0) & (np.abs(values) < np.finfo(values.dtype).tiny)


def test_second_moments_are_normal_numbers_and_the_steps_those_of_adam() -> None:
    """From gradients whose squares are too small for float32 to ones that are lost in nothing."""
    gradients = (np.logspace(-30, 3, 200) * np.where(np.arange(200) % 2, 1, -1)).astype(np.float32)
    plain, kept = second_moments(gradients, 0.0), second_moments(gradients, TINIEST)
    assert subnormal(plain).any()
    assert not subnormal(kept).any()
    for samples in (2, 1000):
        epsilon = np.float32(samples * EPSILON)
        assert (np.sqrt(kept) + epsilon).tobytes() == (np.sqrt(plain) + epsilon).tobytes()


def test_the_full_attack_makes_no_subnormal_numbers_of_samples_whose_loss_is_all_but_0() -> None:
    """Slopes from 1 to 10^-26, beyond which they are taken for 0, one in each lane."""
    kind, inputs, rng = np.float32, 4, np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(inputs, 2)))[0].T.astype(kind)
    nothing = np.zeros(LANES, kind)
    attack = Attack(
        directions=basis,
        basis=basis,
        subspace_rates=nothing,
        full_rates=corrected_rates(1.0, 50).astype(kind),
        epsilon=np.array([1000 * EPSILON], kind),
        series=nothing,
        power=nothing,
        bits=nothing.view(np.int32),
        inputs=inputs,
        largest=largest_step(50),
    )
    state, shared = np.zeros(inputs * STATE, kind), np.zeros(SHARED, kind)
    state.reshape(inputs, -1)[:, Q : Q + LANES] = rng.normal(size=(inputs, LANES))
    shared[SLOPE : SLOPE + LANES] = -np.logspace(-26, 0, LANES)
    step = njit(lambda *arguments: _adam_step(*arguments))
    for rate in attack.full_rates:
        step(state, shared, attack, kind(1e-4) * rate, kind(2.0))
        assert not subnormal(state).any()
        assert not subnormal(shared).any()
    assert (state.reshape(inputs, -1)[:, DELTA:] != 0).all()


@pytest.mark.parametrize(
    ("penalty", "distance", "expected"),
    [
        (2.0, 0.003, 2.0 + 3 * 0.002),
        (2.0, 0.0005, 2.0 - 2 * 0.0005),
        (2.0, 0.001, 2.0),
        (2.0, 0.0, 1e-5),
        (2.0, 1e-9, 2.0 - 1e6 * (0.001 - 1e-9)),
        (9.9, 1.0, 10.0),
    ],
)
def test_lambda_falls_inside_the_radius_and_rises_outside(penalty: float, distance: float, expected: float) -> None:
    expected = min(max(expected, 1e-5), 10.0)
    assert _updated_lambda.py_func(penalty, distance, 0.001) == pytest.approx(expected, rel=1e-9)
    assert updated_lambda(penalty, distance, 0.001) == pytest.approx(expected, rel=1e-9)
