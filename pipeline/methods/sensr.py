r"""SenSR: a network trained on samples perturbed by an attack within a small fair distance.

Yurochkin, Bower and Sun 2020 minimise the worst loss over perturbations of bounded mean fair distance,

.. math:: \min_w \max_{E\, d^2(X, X') \le \rho} E\, \ell_w(X', Y), \qquad d^2(x, x') = |(I - P)(x - x')|^2,

where P is the projector on the span of the sensitive directions D_1, ..., D_K. In the code behind the audited networks,
one iteration draws a class-balanced batch x_1, ..., x_n and, from a = 0 and delta = 0,

1. subspace attack: ascends mean loss(x_i + sum_k a_ik D_k) over a by Adam, for ``subspace_steps``. If the loss is lower
   than before, a is reset to 0. The directions are not normalised.
2. full attack: ascends mean loss(x_i + sum_k a_ik D_k + delta_i) - lambda mean d^2 over delta by Adam, for
   ``full_steps``. If this objective is lower than before, the rest of the iteration is skipped, and the attack's rate
   is multiplied by .999 from then on. If the loss or the distance is not finite, the rest is skipped too.
3. lambda <- lambda + max(d^2, rho) / min(d^2, rho) (d^2 - rho), clipped to [1e-5, 10], where d^2 is the batch's mean.
4. one step of Adam on the network's parameters, on the mean loss at the attacked samples.

While lambda is large, 2 lambda times the rate exceeds 2 n times Adam's epsilon. Then the full attack is unstable on a
sample with almost no loss: each step overshoots the penalty's minimum, and the next step overshoots by more. Rounding
starts this, so the displacement of such a sample is arbitrary in any implementation. The sample contributes no
gradient, only a term of the mean fair distance. (The compiled code does not move samples with a loss below e^-60.)

Adam follows TensorFlow 1, with a new state in each attack. The metric is learned on the training rows, and sensitive
inputs add their axes to the directions. Initial weights are uniform on +-sqrt(6 / (fan-in + fan-out)); biases are .1.

Source: Yurochkin, Bower and Sun 2020, "Training individually fair ML models with sensitive subspace robustness";
Maity et al. 2021, appendix F.3.2.
"""

import logging
from dataclasses import replace

import numpy as np

from fairness_audits.fair_metric import learn_batch
from fairness_audits.models.mlp import glorot_networks
from fairness_audits.seeds import fingerprint
from fairness_audits.values import Array, Checkpoint, Classifier, Dataset, Generators
from pipeline.methods.baseline import CHUNK, balanced_loss_and_accuracy, balanced_rows, recorded_chunks
from pipeline.training.sensr_config import Config

__all__ = ["Config", "fit"]

INITIAL_BIAS = 0.1
POINTS = ("steps", "means", "accuracies")
"""Names of the training curve's arrays in a saved state."""
LOG = logging.getLogger(__name__)


def fit(dataset: Dataset, config: Config, rngs: Generators, resume: Checkpoint | None = None) -> Classifier:
    """Train on the first ``len(rngs)`` splits, all in one batch.

    With ``resume``, a killed training continues within its last hundred iterations and gives the same bytes.
    """
    from pipeline.training.sensr import CompiledIterations

    count = len(rngs)
    data, held_out = dataset.batch("train", count), dataset.batch("test", count)
    held_out = replace(held_out, features=held_out.features.astype(np.float32))
    metric = learn_batch(data, [dataset.feature_names.index(name) for name in dataset.sensitive_inputs])
    start = glorot_networks(rngs, (data.features.shape[-1], config.hidden_units, 2), INITIAL_BIAS)
    training = CompiledIterations(data, metric, start, config)
    draws = (
        balanced_rows(y, config.batch_size, config.iterations, rng) for y, rng in zip(data.label, rngs, strict=True)
    )
    recorded = recorded_chunks(config.iterations)
    own = fingerprint(replace(config, threads=1), (*start.values(), data.features, data.label, metric.matrix))
    curve: list[Array] = []
    points: list[tuple[int, Array, Array]] = []
    before = 0
    if resume is not None and (state := resume.load(own)):
        training.resume({name.removeprefix("training/"): value for name, value in state.items() if "/" in name})
        before, curve = int(state["chunks"]), [state["curve"]]
        points = list(zip(*(state[name] for name in POINTS), strict=True))
        LOG.info("iteration %s of %s was reached before", f"{before * CHUNK:,}", f"{config.iterations:,}")
    for chunk, rows in enumerate(zip(*draws, strict=True)):
        # Draw the earlier batches again, since later batches come from the same stream.
        if chunk < before:
            continue
        curve.append(training.advance(np.stack(rows)))
        if chunk in recorded:
            done = sum(part.shape[1] for part in curve) + (points[-1][0] if points else 0)
            _, accuracy = balanced_loss_and_accuracy(training.parameters(), held_out)
            points.append((done, np.concatenate(curve, axis=1).mean(axis=1), accuracy))
            curve = [curve[0][:, :0]]
            LOG.info("iteration %s of %s, loss %.3f", f"{done:,}", f"{config.iterations:,}", points[-1][1][:, 0].mean())
        if resume is not None:
            curve_points = {
                name: np.array(values) for name, values in zip(POINTS, zip(*points, strict=True), strict=False)
            }
            state = {f"training/{name}": values for name, values in training.state().items()}
            chunks = {"chunks": np.array(chunk + 1), "curve": np.concatenate(curve, axis=1)}
            resume.save(own, {**chunks, **dict.fromkeys(POINTS, np.zeros(0)), **curve_points, **state})
    steps, means, accuracies = (np.array(values) for values in zip(*points, strict=True))
    history = {
        "step": steps,
        **{name: means[:, :, i].T for i, name in enumerate(("loss", "lambda", "fair_distance"))},
        "balanced_accuracy": accuracies.T,
    }
    return Classifier.of("sensr", dataset, "mlp", training.parameters(), history=history, facts=training.facts())
