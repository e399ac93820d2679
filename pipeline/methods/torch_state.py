"""The state of torch that a training changes: generators, threads and determinism, as they were before when it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
DETERMINISTIC_WORKSPACE = ":4096:8"
"""The workspace with which matrix products on a GPU are deterministic."""


@contextmanager
def own_state_of_torch(device: torch.device, deterministic: bool, threads: int) -> Iterator[None]:
    """Generators of the block's own, ``threads`` on the CPU and, if asked for, deterministic operations.

    An operation that has no deterministic form on the device is named in a warning.
    """
    import torch

    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    before = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.benchmark,
        os.environ.get(WORKSPACE),
    )
    with torch.random.fork_rng(devices=devices):
        try:
            torch.set_num_threads(threads)
            torch.backends.cudnn.benchmark = not deterministic
            if deterministic:
                os.environ.setdefault(WORKSPACE, DETERMINISTIC_WORKSPACE)
                torch.use_deterministic_algorithms(True, warn_only=True)
            yield
        finally:
            torch.set_num_threads(before[0])
            torch.use_deterministic_algorithms(before[1], warn_only=before[2])
            torch.backends.cudnn.benchmark = before[3]
            if before[4] is None:
                os.environ.pop(WORKSPACE, None)


def seed_torch(device: torch.device, seed: int) -> None:
    """Seed the generators that the device's operations draw from."""
    import torch

    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
