"""Hiring, the synthetic data of Lipton, McAuley and Chouldechova (2018): who is hired depends on experience alone.

    men    work = Poisson(31) - N(20, .2^2)    hair = 35 Beta(2, 7)
    women  work = Poisson(25) - N(20, .2^2)    hair = 35 Beta(2, 2)
    P(Y = 1 | work) = 1 / (1 + exp(25.5 - 2.5 work))

with experience in years and hair length in inches. Means are 11 years and 7.8 inches for men, 5 years and 17.5 inches
for women. Both inputs are standardised on the training rows of women and men together. Each repetition draws ``train``
women and as many men for training, and ``test`` of each for testing, all in random order.

Source: Lipton et al. (2018), section 4.1, as used by Black et al. (2020), section 5.3.
"""

from dataclasses import dataclass

import numpy as np

from fairness_audits.validation import Checked, Count
from fairness_audits.values import Array, Dataset, Generators, Provenance
from pipeline.raw_data import tabular

FEATURES = ("work_experience", "hair_length")
LEVELS = ("Female", "Male")

EXPERIENCE = (25.0, 31.0)
"""The Poisson mean of women and of men."""
SUBTRACTED = (20.0, 0.2)
"""Mean and standard deviation of the normal variable that is subtracted."""
LONGEST_HAIR = 35.0
HAIR = ((2.0, 2.0), (2.0, 7.0))
"""The two parameters of the Beta distribution of women and of men."""
HIRED = (-25.5, 2.5)
"""Log-odds of Y = 1 without experience, and their increase per year."""


@dataclass(frozen=True)
class Config(Checked, of="dataset"):
    """``train`` and ``test``: number of women, and of men, in the training set and in the test set."""

    train: Count
    test: Count


def prepare(rows: None, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Draw 2 (train + test) rows with each generator."""
    return tabular.stacked(
        "hiring",
        [_draw(config, rng) for rng in rngs],
        feature_names=FEATURES,
        continuous=FEATURES,
        label_name="hired",
        attribute="sex",
        levels=LEVELS,
    )


def _draw(config: Config, rng: np.random.Generator) -> tabular.Draw:
    """Draw one repetition: rows in random order, training rows first."""
    sides = [rng.permutation(np.repeat((0, 1), size)) for size in (config.train, config.test)]
    sex = np.concatenate(sides)
    mean, deviation = SUBTRACTED
    work = rng.poisson(np.array(EXPERIENCE)[sex]) - rng.normal(mean, deviation, len(sex))
    a, b = np.array(HAIR)[sex].T
    hair = LONGEST_HAIR * rng.beta(a, b)
    return tabular.Draw(np.column_stack([work, hair]), _hired(work, rng), sex, train=2 * config.train)


def _hired(work: Array, rng: np.random.Generator) -> Array:
    """Draw labels (n,) given the years of experience (n,)."""
    start, slope = HIRED
    odds_against = np.exp(-np.clip(start + slope * work, -500.0, 500.0))  # exp beyond 709 overflows
    return (rng.random(len(work)) * (1 + odds_against) < 1).astype(np.int64)
