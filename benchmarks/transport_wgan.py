"""Training Wasserstein GANs: many trials in one job beside the plain loop over one, on one thread.

    python -m benchmarks.transport_wgan [--trials 1 10] [--features 2 8] [--steps 200] [--repeats 3]

The plain loop is one trial in torch as everybody writes it, with modules, automatic differentiation and torch's own
RMSprop, from the same initial weights and on the same minibatches; both results are compared before their times are.
Hyperparameters are the study's. The time is processor time for 1,000 steps of the generator (with 5 rounds of the
critic each), extrapolated: every step costs the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.common import plain_network, seconds, study_settings
from fairness_audits.models.mlp import glorot_networks
from fairness_audits.seeds import generators
from fairness_audits.transport import wgan
from fairness_audits.transport.wgan import minibatches, outputs
from fairness_audits.transport.wgan_compiled import CompiledTraining
from fairness_audits.values import Array
from pipeline.counterparts import parted
from pipeline.workflow.plugins import configure

ROWS = 10_000
PLAIN_STEPS = 50


@dataclass(frozen=True)
class Problem:
    """T trials with rows of two normal distributions with d features, initial networks, and minibatches."""

    source: list[Array]
    target: list[Array]
    generators: dict[str, Array]
    critics: dict[str, Array]
    rows: Array
    config: wgan.Config

    def started(self) -> CompiledTraining:
        """Return our training before its first step."""
        return CompiledTraining(self.source, self.target, self.generators, self.critics, self.config)


def main() -> None:
    """Run and print every comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, nargs="+", default=[1, 10], help="numbers of trials in one job (1 10)")
    parser.add_argument("--features", type=int, nargs="+", default=[2, 8], help="numbers of features (2 8)")
    parser.add_argument("--steps", type=int, default=200, help="timed steps of the generator (200)")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts (3)")
    options = parser.parse_args()
    with threadpool_limits(1):
        torch.set_num_threads(1)
        compare(options.trials, options.features, options.steps, options.repeats)


def compare(trials: Sequence[int], features: Sequence[int], steps: int, repeats: int) -> None:
    """Print seconds for 1,000 steps of the plain loop and of ours, by number of features and trials."""
    print("WGAN, seconds for 1,000 steps of the generator, one thread")
    for d in features:
        problem = posed(1, d, PLAIN_STEPS)
        training = problem.started()
        first = seconds(lambda training=training, problem=problem: advance(training, problem), 1)  # type: ignore[misc]
        ours = outputs({name: values[0] for name, values in training.generators().items()}, problem.source[0])
        difference = np.abs(plain_loop(problem) - ours).max()
        plain = seconds(lambda problem=problem: plain_loop(problem), repeats) * 1000 / PLAIN_STEPS  # type: ignore[misc]
        print(f"\n{d} features; largest difference of an image to plain torch {difference:.0e}")
        print(f"  {'plain torch loop,':24} {1:3} trial {plain:9.2f} s")
        for count in trials:
            problem = posed(count, d, steps)
            training = problem.started()
            advance(training, problem)
            spent = seconds(lambda training=training, problem=problem: advance(training, problem), repeats)  # type: ignore[misc]
            spent *= 1000 / steps
            print(
                f"  {'ours,':24} {count:3} trials{spent:9.2f} s, {spent / count:.2f} s a trial; "
                f"{spent / plain:.2f} times one plain loop"
            )
        print(f"  our first call, with the compilation where its result is not on disk: {first:.1f} s")


def posed(trials: int, d: int, steps: int) -> Problem:
    """Return a problem with the study's configuration on simulated rows."""
    _, own = parted(study_settings("transport", "wgan"))
    config = configure(wgan, own)
    rngs, hidden = generators("benchmark", repetitions=trials), config.hidden_units
    source = [rng.normal(size=(ROWS, d)) for rng in rngs]
    target = [0.5 + 1.5 * rng.normal(size=(ROWS, d)) for rng in rngs]
    return Problem(
        source,
        target,
        glorot_networks(rngs, (d, hidden, hidden, d)),
        glorot_networks(rngs, (d, hidden, hidden, 1)),
        minibatches([(ROWS, ROWS)] * trials, steps, config.rounds, config.batch_size, rngs),
        config,
    )


def advance(training: CompiledTraining, problem: Problem) -> None:
    """Train once on all minibatches of a problem."""
    training.advance(problem.rows, np.ones(len(problem.source), dtype=bool))


def plain_loop(problem: Problem) -> Array:
    """Train trial 0 with torch modules and optimizers, and return its images of all source rows."""
    plan = problem.config
    generator, critic = (
        plain_network({name: values[0] for name, values in networks.items()})
        for networks in (problem.generators, problem.critics)
    )
    source, target = (torch.tensor(side[0], dtype=torch.float32) for side in (problem.source, problem.target))
    train_plainly(generator, critic, source, target, problem.rows[0], plan)
    with torch.no_grad():
        return np.asarray(generator(source).numpy())


def train_plainly(
    generator: torch.nn.Module,
    critic: torch.nn.Module,
    source: torch.Tensor,
    target: torch.Tensor,
    rows: Array,
    plan: wgan.Config,
) -> None:
    """Train one trial of ``fairness_audits.transport.wgan`` on these minibatches with torch optimizers."""
    of_generator, of_critic = (
        torch.optim.RMSprop(network.parameters(), lr=plan.learning_rate, alpha=plan.decay, eps=plan.epsilon)
        for network in (generator, critic)
    )
    for step in torch.as_tensor(rows):
        for r in range(plan.rounds):
            real, images = target[step[2 * r]], generator(source[step[2 * r + 1]]).detach()
            for sign, batch in ((-1, real), (1, images)):
                of_critic.zero_grad()
                (sign * critic(batch).mean()).backward()
                of_critic.step()
            with torch.no_grad():
                for values in critic.parameters():
                    values.clamp_(-plan.clip, plan.clip)
        x = source[step[-1]]
        of_generator.zero_grad()
        images = generator(x)
        cost = (x - images).abs().sum(dim=1).square().mean()
        (plan.cost_weight * cost - critic(images).mean()).backward()
        of_generator.step()


if __name__ == "__main__":
    main()
