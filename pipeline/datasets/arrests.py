"""Arrests, the synthetic data of section 5.5 of Black et al. (2020): one feature that depends on the group.

    number of prior arrests ~ Geometric(1/4) - 1 in S, Geometric(1/2) - 1 in S'        (0, 1, 2, ...)

so the mean is 3 in S and 1 in S'. The audited rule is given and there is no true label, so every label is 0. Each
repetition draws ``n`` people of each group in random order. They are both its training and its test rows. The feature
is not standardised: the unit is one arrest.
"""

from dataclasses import dataclass

import numpy as np

from fairness_audits.validation import Checked, Count
from fairness_audits.values import Dataset, Generators, Provenance
from pipeline.raw_data import tabular

LEVELS = ("S'", "S")
SUCCESS = (1 / 2, 1 / 4)
"""The parameter of the geometric distribution in S' and in S."""


@dataclass(frozen=True)
class Config(Checked, of="dataset"):
    """``n``: the number of people in each group."""

    n: Count


def prepare(rows: None, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Draw 2 n rows with each generator."""
    draws = [_draw(config, rng) for rng in rngs]
    return tabular.stacked("arrests", draws, feature_names=("arrests",), attribute="group", levels=LEVELS)


def _draw(config: Config, rng: np.random.Generator) -> tabular.Draw:
    group = rng.permutation(np.repeat((0, 1), config.n))
    arrests = rng.geometric(np.array(SUCCESS)[group]) - 1
    return tabular.Draw(arrests[:, None].astype(float), np.zeros_like(group), group)
