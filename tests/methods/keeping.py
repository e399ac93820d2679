"""A keeper of tests: it keeps arrays in memory, and kills the training that it keeps them for."""

from collections.abc import Mapping

import numpy as np

from pipeline.types import Array


class Kept:
    """Keeps arrays in memory; the job is killed once it has kept ``kill_after`` times."""

    def __init__(self, kill_after: int | None = None) -> None:
        self.state: dict[str, Array] | None = None
        self.saves, self.kill_after = 0, kill_after

    def load(self) -> Mapping[str, Array] | None:
        return self.state

    def save(self, state: Mapping[str, Array]) -> None:
        self.state = {name: np.array(values) for name, values in state.items()}
        self.saves += 1
        if self.saves == self.kill_after:
            raise KeyboardInterrupt
