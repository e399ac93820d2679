"""Training beside the plain way to do it: ten repetitions against one, SenSR's compiled iterations against autograd.

    python benchmarks/training.py [--dataset FILE.npz] [--repetitions 10] [--sensr-iterations 200]

The plain way is one network in torch, with automatic differentiation and torch's own Adam, on the same initial weights
and batches; both sides' results are compared before their times are. Hyperparameters are the study's. SenSR is timed
on some of its 20,000 iterations and extrapolated: each costs the same. Without a file the rows are drawn here, with as
many features and training rows as Adult.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.common import drawn_dataset, plain_network, seconds, study_settings
from benchmarks.plain_sensr import PlainIterations
from fairness_audits.fair_metric import learn_batch
from fairness_audits.models import mlp
from fairness_audits.models.mlp import glorot_networks
from fairness_audits.seeds import generators
from fairness_audits.values import Array, Dataset
from pipeline import io
from pipeline.methods import baseline, reductions, sensr
from pipeline.training.sensr import CompiledIterations
from pipeline.workflow.plugins import configure

PLAIN_SENSR_ITERATIONS = 10


def main() -> None:
    """Run and print every comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", help="a prepared dataset (.npz)")
    parser.add_argument("--repetitions", type=int, default=10, help="repetitions in one batch (10)")
    parser.add_argument(
        "--sensr-iterations", type=int, default=200, help="timed iterations of the compiled SenSR (200)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts (3)")
    options = parser.parse_args()
    with threadpool_limits(1):
        torch.set_num_threads(1)
        dataset = (
            io.load(options.dataset, Dataset) if options.dataset else drawn_dataset(45_222, 9045, options.repetitions)
        )
        rows = dataset.train.shape[1]
        print(f"{dataset.name}: {rows:,} training rows, {dataset.features.shape[1]} features, one thread\n")
        compare_baseline(dataset, options.repetitions, options.repeats)
        compare_sensr(dataset, options.sensr_iterations, options.repeats)
        time_reductions(dataset)


def plain_baseline(dataset: Dataset, config: baseline.Config) -> Array:
    """Train one plain torch network from repetition 0's weights and batches, and return its margins on test rows."""
    data, held_out = dataset.batch("train", 1), dataset.batch("test", 1)
    rngs = generators("benchmark", repetitions=1)
    start = glorot_networks(rngs, (data.features.shape[-1], config.hidden_units, 2))
    network = plain_network({name: values[0] for name, values in start.items()})
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate, eps=baseline.EPSILON)
    x, y = torch.tensor(data.features[0], dtype=torch.float32), torch.tensor(data.label[0])
    for chunk in baseline.balanced_rows(data.label[0], config.batch_size, config.steps, rngs[0]):
        for rows in torch.as_tensor(chunk):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        logits = network(torch.tensor(held_out.features[0], dtype=torch.float32)).numpy()
    return np.asarray(logits[:, 1] - logits[:, 0])


def compare_baseline(dataset: Dataset, repetitions: int, repeats: int) -> None:
    """Compare one repetition in plain torch with one and with R batched repetitions of ours."""
    config = configure(baseline, study_settings("method", "baseline", dataset.name))

    def ours(count: int) -> Any:
        return baseline.fit(dataset, config, generators("benchmark", repetitions=count))

    margins = mlp.margin(ours(1).parameters, dataset.batch("test", 1).features)[0]
    difference = np.abs(margins - plain_baseline(dataset, config)).max() / np.abs(margins).max()
    plain = seconds(lambda: plain_baseline(dataset, config), repeats)
    one, many = (seconds(lambda count=count: ours(count), repeats) for count in (1, repetitions))  # type: ignore[misc]
    print(f"Baseline, {config.steps:,} steps; largest relative difference of a margin to plain torch {difference:.0e}")
    print(f"  plain torch, 1 repetition    {plain:8.2f} s")
    print(f"  ours, 1 repetition           {one:8.2f} s")
    print(f"  ours, {repetitions} repetitions         {many:8.2f} s")
    print(f"  {repetitions} repetitions take {many / plain:.1f} plain ones, {many / one:.1f} of our single ones\n")


def compare_sensr(dataset: Dataset, iterations: int, repeats: int) -> None:
    """Compare compiled iterations of one repetition with iterations by automatic differentiation."""
    config = configure(sensr, study_settings("method", "sensr", dataset.name))
    data = dataset.batch("train", 1)
    metric = learn_batch(data, [dataset.feature_names.index(name) for name in dataset.sensitive_inputs])
    rngs = generators("benchmark", repetitions=1)
    start = glorot_networks(rngs, (data.features.shape[-1], config.hidden_units, 2), sensr.INITIAL_BIAS)
    drawn = baseline.balanced_rows(data.label[0], config.batch_size, iterations, rngs[0])
    rows = np.concatenate(list(drawn))[None]
    few = rows[:, :PLAIN_SENSR_ITERATIONS]

    def compiled(rows: Array) -> Array:
        return CompiledIterations(data, metric, start, config).advance(rows)[0]

    def by_autograd() -> Array:
        return PlainIterations(data, metric, start, config, dtype=torch.float32).advance(few[0])

    compile_time = seconds(lambda: compiled(few[:, :1]), 1)
    difference = np.abs(compiled(few) / by_autograd() - 1)[:, 0].max()
    fast = seconds(lambda: compiled(rows), repeats) / iterations
    plain = seconds(by_autograd, 1) / few.shape[1]
    total = config.iterations
    print(f"SenSR, {total:,} iterations, extrapolated; largest relative difference of a loss {difference:.0e}")
    print(f"  autograd, 1 repetition       {plain * total:8.0f} s, from {few.shape[1]} iterations")
    print(f"  compiled, 1 repetition       {fast * total:8.0f} s, from {iterations} iterations")
    print(f"  compiled is {plain / fast:.0f} times faster; its first call, compiling, {compile_time:.1f} s\n")


def time_reductions(dataset: Dataset) -> None:
    """Time one repetition of Reductions."""
    config = configure(reductions, study_settings("method", "reductions", dataset.name))
    spent = seconds(lambda: reductions.fit(dataset, config, generators("benchmark", repetitions=1)), 1)
    print(f"Reductions, 1 repetition       {spent:8.2f} s")


if __name__ == "__main__":
    main()
