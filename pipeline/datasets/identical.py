"""Two groups with one distribution and extra features that identify the group: section 5.1 of Black et al. (2020).

    x ~ N(0, I) in both groups                       the ``shared`` features
    e ~ N(delta 1{S}, I)                             the ``extra`` features, which depend on the group
    Y ~ Bernoulli(1/2), independent of the features

There are ``n`` points in each group. A model of x alone cannot tell the groups apart, so the exact map between the two
distributions flips nobody: all flips come from the map's error and the finite sample. A model that follows the random
labels closely amplifies them.

The paper states that extra features were added and that labels were random. Its appendix B, with the details, is not
available. We chose the number of features of each kind and the distance ``delta`` between the groups. The model sees
the shared features only, since the extra ones identify the group and flips would not be errors. Training and test rows
are the same points. Rows are in random order, and nothing is standardised.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fairness_audits.validation import Checked, Count, Size, finite
from fairness_audits.values import Dataset, Generators, Provenance
from pipeline.raw_data import tabular

LEVELS = ("S'", "S")


@dataclass(frozen=True)
class Config(Checked, of="dataset"):
    """``n`` points in each group; ``shared`` and ``extra``: numbers of features; ``delta``: extra mean in S."""

    n: Count
    shared: Count
    extra: Size
    delta: Annotated[float, finite]


def prepare(rows: None, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Draw 2 n rows with each generator."""
    return tabular.stacked(
        "identical",
        [_draw(config, rng) for rng in rngs],
        feature_names=tabular.numbered("x", config.shared) + tabular.numbered("extra", config.extra),
        label_name="random",
        attribute="group",
        levels=LEVELS,
    )


def _draw(config: Config, rng: np.random.Generator) -> tabular.Draw:
    group = rng.permutation(np.repeat((0, 1), config.n))
    shared = rng.standard_normal((len(group), config.shared))
    extra = config.delta * group[:, None] + rng.standard_normal((len(group), config.extra))
    label = rng.integers(0, 2, len(group))
    return tabular.Draw(np.concatenate([shared, extra], axis=1), label, group)
