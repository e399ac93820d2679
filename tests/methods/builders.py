"""A small dataset in which the features depend on sex, race and the label; a resume of trainings."""

from collections.abc import Mapping

import numpy as np

from fairness_audits.values import Array, Dataset
from tests.builders import dataset


def population(
    n: int = 600,
    repetitions: int = 2,
    seed: int = 0,
    proxy: float = 1.5,
    positives: float = 0.4,
    sensitive_inputs: bool = False,
) -> Dataset:
    """n people, R splits; ``proxy`` shifts two features by sex and race, ``positives`` is the share of label 1.

    With ``sensitive_inputs`` two more features are sex and race themselves.
    """
    rng = np.random.default_rng(seed)
    sex, race = rng.integers(0, 2, n), (rng.random(n) < 0.7).astype(np.int64)
    label = (rng.random(n) < positives * np.where(sex == 1, 1.2, 0.8)).astype(np.int64)
    features = rng.normal(size=(n, 5))
    features[:, 0] += proxy * sex
    features[:, 1] += proxy * race
    features[:, 2] += 1.0 * label
    features[:, 3] = (rng.random(n) < 0.3 + 0.3 * label).astype(float)
    names = ["proxy_sex", "proxy_race", "skill", "degree", "noise"]
    if sensitive_inputs:
        features = np.column_stack([sex, race, features])
        names = ["sex", "race", *names]
    order = np.stack([rng.permutation(n) for _ in range(repetitions)])
    cut = int(0.75 * n)
    return dataset(
        features,
        label,
        {"sex": sex, "race": race},
        order[:, :cut],
        order[:, cut:],
        name="population",
        feature_names=tuple(names),
        continuous=("proxy_sex", "proxy_race", "skill", "noise"),
        sensitive_inputs=("sex", "race") if sensitive_inputs else (),
    )


class Kept:
    """Keeps arrays in memory; the job is killed once it has kept ``kill_after`` times."""

    def __init__(self, kill_after: int | None = None) -> None:
        self.state: dict[str, Array] | None = None
        self.saves, self.kill_after = 0, kill_after

    def load(self, fingerprint: Array) -> Mapping[str, Array] | None:
        if self.state is None or not np.array_equal(self.state["fingerprint"], fingerprint):
            return None
        return {name: values for name, values in self.state.items() if name != "fingerprint"}

    def save(self, fingerprint: Array, state: Mapping[str, Array]) -> None:
        self.state = {name: np.array(values) for name, values in {**state, "fingerprint": fingerprint}.items()}
        self.saves += 1
        if self.saves == self.kill_after:
            raise KeyboardInterrupt
