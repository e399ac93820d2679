"""The loss-ratio audit beside its peers and beside the machine's floating-point limit, on one thread.

    python benchmarks/audit.py [--points 9045] [--steps 500] [--dataset FILE.npz --classifier FILE.npz]

Every engine runs the same attack (lambda 50, step .01, constant) on the same network and points; the table gives
processor seconds, their ratio to the limit and to the fastest, T_n, and the largest relative difference of a loss to
the plain NumPy loop. Without files the network is the study's baseline trained on points drawn here, with as many
features, one-hot blocks and hidden units as on Adult.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.common import drawn_dataset, plain_network, study_settings
from fairness_audits.attacks import autograd
from fairness_audits.attacks.engines import relu_flow
from fairness_audits.attacks.gradient_flow import Plan, gradient_flow_in_blocks
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.fair_metric import FairMetric, learn
from fairness_audits.models import mlp
from fairness_audits.seeds import generators
from fairness_audits.values import Classifier, Dataset
from pipeline import io
from pipeline.methods import baseline
from pipeline.workflow.plugins import configure

REGULARIZATION, STEP_SIZE, DELTA, ALPHA = 50.0, 0.01, 1.25, 0.05
REFERENCE = "NumPy closed form, blocks of 500"


@dataclass(frozen=True)
class Problem:
    """The first n test points of one split, an mlp network (without repetition axis) and a fair metric."""

    x: np.ndarray
    y: np.ndarray
    parameters: dict[str, np.ndarray]
    metric: FairMetric
    steps: int

    @property
    def plan(self) -> Plan:
        """Return the plan of the attack."""
        return Plan(self.metric, REGULARIZATION, np.full(self.steps, STEP_SIZE), [self.steps])

    def module(self, dtype: torch.dtype) -> torch.nn.Module:
        """Return the network as a torch module that returns logits, as users have it."""
        return plain_network(self.parameters, dtype)


@dataclass(frozen=True)
class Outcome:
    """Processor seconds for all points, the losses before and after (of the points that ran), and a remark."""

    seconds: float
    original: np.ndarray
    attacked: np.ndarray
    remark: str = ""


def main() -> None:
    """Run every engine and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=9045, help="how many points to audit (9045)")
    parser.add_argument("--steps", type=int, default=500, help="attack steps (500)")
    parser.add_argument("--loop-points", type=int, default=8, help="points for the per-sample loop, extrapolated (8)")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts (3)")
    parser.add_argument("--dataset", help="a prepared dataset (.npz)")
    parser.add_argument("--classifier", help="trained classifiers of the mlp architecture (.npz)")
    options = parser.parse_args()
    if bool(options.dataset) != bool(options.classifier):
        parser.error("--dataset and --classifier go together")
    with threadpool_limits(1):
        torch.set_num_threads(1)
        if options.dataset:
            dataset, classifier = io.load(options.dataset, Dataset), io.load(options.classifier, Classifier)
        else:
            dataset = drawn_dataset(5 * options.points, options.points, 1)
            classifier = trained(dataset)
        problem = posed(dataset, classifier, options.points, options.steps)
        d, hidden = problem.parameters["w1"].shape
        print(f"{len(problem.y):,} points x {problem.steps:,} steps, network {d}-{hidden}-2, one thread\n")
        outcomes = {}
        for name, run in engines(problem, options.loop_points):
            runs = [run() for _ in range(1 if "extrapolated" in name else options.repeats)]
            outcomes[name] = min(runs, key=lambda outcome: outcome.seconds)
        report(problem, outcomes)


def trained(dataset: Dataset) -> Classifier:
    """Train the study's baseline network."""
    config = configure(baseline, study_settings("method", "baseline"))
    return baseline.fit(dataset, config, generators("benchmark", repetitions=1))


def posed(dataset: Dataset, classifier: Classifier, points: int, steps: int) -> Problem:
    """Return the audit problem of repetition 0."""
    batch = dataset.batch("test", 1)
    inputs = [dataset.feature_names.index(name) for name in dataset.sensitive_inputs]
    metric = learn(batch.features[0], {name: values[0] for name, values in batch.protected.items()}, inputs)
    parameters = {name: np.asarray(values[0], dtype=float) for name, values in classifier.parameters.items()}
    return Problem(batch.features[0, :points], batch.label[0, :points], parameters, metric, steps)


def engines(problem: Problem, loop_points: int) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """Yield names and runs, ours first; print a message for a peer that is not installed."""
    yield REFERENCE, lambda: closed_form(problem)
    yield "hidden-unit space (compiled)", lambda: hidden_units(problem)
    yield "autograd, float64", lambda: automatic(problem, "float64")
    yield "autograd, float32", lambda: automatic(problem, "float32")
    yield f"per-sample autograd loop (extrapolated from {loop_points} points)", lambda: per_sample(problem, loop_points)
    try:
        import inFairness  # noqa: F401
    except ImportError:
        print(
            "inFairness is not installed, so it is left out. To compare: pip install --no-deps --target PEERS "
            "inFairness==0.2.3, and put PEERS on PYTHONPATH.\n"
        )
        return
    yield "inFairness SenSRAuditor, float32", lambda: infairness(problem)


def hidden_units(problem: Problem) -> Outcome:
    """Time our engine for one hidden ReLU layer, compiled beforehand, as in every process except the first."""
    stacked = {name: values[None] for name, values in problem.parameters.items()}

    def attack(points: int) -> Outcome:
        x, y = problem.x[None, :points], problem.y[None, :points]
        started = time.process_time()
        flow = relu_flow(stacked, x, y, problem.plan)
        return Outcome(time.process_time() - started, flow.original_loss[0], flow.losses[0, 0])

    attack(1)
    return attack(len(problem.y))


def closed_form(problem: Problem) -> Outcome:
    """Time the plain loop with the architecture's gradient in NumPy."""
    stacked = {name: values[None] for name, values in problem.parameters.items()}
    started = time.process_time()
    flow = gradient_flow_in_blocks(
        lambda rows: lambda x: mlp.loss_and_gradient(stacked, x, problem.y[None, rows]),
        problem.x[None],
        problem.plan,
        500,
    )
    return Outcome(time.process_time() - started, flow.original_loss[0], flow.losses[0, 0])


def automatic(problem: Problem, dtype: str) -> Outcome:
    """Time the engine for arbitrary torch networks."""
    net = problem.module(getattr(torch, dtype))
    started = time.process_time()
    flow = autograd.attack(net, problem.x, problem.y, problem.plan, dtype=dtype)
    return Outcome(time.process_time() - started, flow.original_loss, flow.losses[0])


def per_sample(problem: Problem, points: int) -> Outcome:
    """Time automatic differentiation of loss and penalty, one point after the other."""
    net, sigma = problem.module(torch.float64), torch.as_tensor(problem.metric.matrix)
    cross_entropy = torch.nn.functional.cross_entropy
    original, attacked = np.empty(points), np.empty(points)
    started = time.process_time()
    for i in range(points):
        x0, y = torch.as_tensor(problem.x[i : i + 1]), torch.as_tensor(problem.y[i : i + 1])
        x = x0.clone()
        for _ in range(problem.steps):
            x = x.detach().requires_grad_(True)
            moved = x - x0
            objective = cross_entropy(net(x), y) - REGULARIZATION * ((moved @ sigma) * moved).sum()
            (gradient,) = torch.autograd.grad(objective, x)
            x = x + STEP_SIZE * gradient
        with torch.no_grad():
            original[i], attacked[i] = cross_entropy(net(x0), y), cross_entropy(net(x), y)
    seconds = (time.process_time() - started) * len(problem.y) / points
    return Outcome(seconds, original, attacked)


def infairness(problem: Problem) -> Outcome:
    """Time inFairness' auditor, configured to compute the same result.

    It differentiates the mean over the batch, so its learning rate is n times ours. Its random start of +-.1 is
    switched off.
    """
    from inFairness.auditor import SenSRAuditor
    from inFairness.distances import MahalanobisDistances

    net = problem.module(torch.float32)
    x, y = torch.as_tensor(problem.x, dtype=torch.float32), torch.as_tensor(problem.y)
    distance = MahalanobisDistances()
    distance.fit(torch.as_tensor(problem.metric.matrix, dtype=torch.float32))
    cross_entropy = torch.nn.functional.cross_entropy
    auditor = SenSRAuditor(cross_entropy, distance, problem.steps, STEP_SIZE * len(y), max_noise=0.0, min_noise=0.0)
    started = time.process_time()
    worst = auditor.generate_worst_case_examples(net, x, y, torch.tensor(REGULARIZATION), torch.optim.SGD)
    with torch.no_grad():
        original, attacked = (cross_entropy(net(z), y, reduction="none").double().numpy() for z in (x, worst))
    seconds = time.process_time() - started
    response = auditor.audit(net, x, y, DELTA, REGULARIZATION, 1 - ALPHA, torch.optim.SGD)
    defaults = SenSRAuditor(cross_entropy, distance, problem.steps, STEP_SIZE)
    unscaled = defaults.audit(net, x, y, DELTA, REGULARIZATION, 1 - ALPHA, torch.optim.SGD)
    remark = f"its own T_n {response.lower_bound:.4f}; with its noise and unscaled rate {unscaled.lower_bound:.4f}"
    return Outcome(seconds, original, attacked, remark)


def report(problem: Problem, outcomes: dict[str, Outcome]) -> None:
    """Print the floating-point limit and the table."""
    (d, hidden), k = problem.parameters["w1"].shape, problem.metric.basis.shape[1]
    # Two products with each weight matrix (forward and backward), and two with the basis of the sensitive subspace.
    operations = len(problem.y) * problem.steps * (2 * 2 * d * hidden + 2 * 2 * hidden * 2 + 2 * 2 * d * k)
    speed = {dtype: multiplication_speed(dtype) for dtype in ("float64", "float32")}
    print(f"The plain iteration takes {operations / 1e9:.1f} GFLOP in matrix products. At the speed of large ones:")
    for dtype, rate in speed.items():
        print(f"  {dtype}: {rate / 1e9:6.1f} GFLOP/s, so the limit is {operations / rate:.3f} s")
    reference, fastest = outcomes[REFERENCE], min(outcome.seconds for outcome in outcomes.values())
    print(f"\n{'engine':64}{'CPU s':>10}{'/ limit':>9}{'/ fastest':>11}{'T_n':>9}{'difference':>12}")
    for name, outcome in outcomes.items():
        limit = operations / speed["float32" if "float32" in name else "float64"]
        count = len(outcome.original)
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = np.nanmax(np.abs(outcome.attacked / reference.attacked[:count] - 1))
        statistic = loss_ratio_test(outcome.original, outcome.attacked, DELTA, ALPHA).statistic
        shown = f"{statistic:9.4f}" if count == len(problem.y) else f"{'':>9}"
        print(
            f"{name:64}{outcome.seconds:10.3f}{outcome.seconds / limit:9.2f}{outcome.seconds / fastest:11.1f}"
            f"{shown}{difference:12.1e}"
        )
        if outcome.remark:
            print(f"    {outcome.remark}")
    print(
        "\nT_n as our test computes it from the engine's losses. The difference is the largest relative one of an "
        "attacked loss\nto the plain NumPy loop's; in float32, losses near the rounding error of a logit differ most."
    )


def multiplication_speed(dtype: str) -> float:
    """Return floating-point operations per second in products of 1024 x 1024 matrices, the best of ten."""
    a = np.random.default_rng(0).normal(size=(1024, 1024)).astype(dtype)
    best = np.inf
    for _ in range(10):
        started = time.process_time()
        a @ a
        best = min(best, time.process_time() - started)
    return 2 * 1024**3 / best


if __name__ == "__main__":
    main()
