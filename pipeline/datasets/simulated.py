"""Two Gaussian groups in the plane, equation (E.1) of Maity et al. (2021).

    G_i ~ Bernoulli(p)                                       p = .1, the minority
    X_i ~ N(mu_G, sigma^2 I_2)                               mu_0 = (-1.5, 0), mu_1 = (1.5, 0), sigma = .25
    Y_i = 1{ w_G . (X_i - c_G) + e_i > 0 }, e_i ~ N(0, s^2)  w_0 = (-.2, -.01), w_1 = (.2, -.01), s = .01

for i = 1..n, n = 400. ``labels`` chooses c_G:

- ``stated``: c_G = 0, as (E.1) is printed. Then w_G . mu_G = .3 in both groups while w_G . X_i + e_i has a standard
  deviation of sqrt(sigma^2 |w|^2 + s^2) = .051. A label 0 is 5.9 standard deviations away, with probability 2e-9, so in
  practice all labels are 1.
- ``centred``: c_G = mu_G, as in the authors' released generator and in their Figure 3. Then both labels are equally
  likely in both groups.

The R repetitions are independent samples, stacked: repetition r has the rows r n to (r + 1) n - 1, which are both its
training and its test rows.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fairness_audits.validation import Checked, Count, NonNegative, Probability, one_of
from fairness_audits.values import Dataset, Generators, Provenance
from pipeline.raw_data import tabular

LABELS = ("stated", "centred")


@dataclass(frozen=True)
class Config(Checked, of="dataset"):
    """The parameters of (E.1): ``n``, p, the means mu_G, ``sigma``, the weight vectors w_G, s, and ``labels``."""

    n: Count
    minority_probability: Probability
    majority_mean: list[float]
    minority_mean: list[float]
    sigma: NonNegative
    majority_weights: list[float]
    minority_weights: list[float]
    label_noise: NonNegative
    labels: Annotated[str, one_of(LABELS)]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.expect_equal_lengths("majority_mean", "minority_mean", "majority_weights", "minority_weights")


def prepare(rows: None, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Draw n rows with each generator."""
    return tabular.stacked(
        "simulated",
        [_draw(config, rng) for rng in rngs],
        feature_names=tabular.numbered("x", len(config.majority_mean)),
        label_name="label",
        attribute="group",
        levels=("majority", "minority"),
    )


def _draw(config: Config, rng: np.random.Generator) -> tabular.Draw:
    mu = np.array([config.majority_mean, config.minority_mean], dtype=float)
    w = np.array([config.majority_weights, config.minority_weights], dtype=float)
    c = mu if config.labels == "centred" else np.zeros_like(mu)
    g = (rng.random(config.n) < config.minority_probability).astype(np.int64)
    x = mu[g] + config.sigma * rng.standard_normal((config.n, mu.shape[1]))
    noise = config.label_noise * rng.standard_normal(config.n)
    y = (np.sum(w[g] * (x - c[g]), axis=1) + noise > 0).astype(np.int64)
    return tabular.Draw(x, y, g)
