"""Threads and determinism of torch's operations for a while, and as they were before afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
DETERMINISTIC_WORKSPACE = ":4096:8"
"""The workspace with which matrix products on a GPU are deterministic."""


@contextmanager
def own_operations(threads: int, deterministic: bool = True) -> Iterator[None]:
    """``threads`` of the CPU and, if asked for, the deterministic form of every operation that has one.

    An operation without one on its device is named in a warning.
    """
    import torch

    before = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    workspace = os.environ.get(WORKSPACE)
    try:
        torch.set_num_threads(threads)
        if deterministic:
            os.environ.setdefault(WORKSPACE, DETERMINISTIC_WORKSPACE)
            torch.use_deterministic_algorithms(True, warn_only=True)
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1], warn_only=before[2])
        if workspace is None:
            os.environ.pop(WORKSPACE, None)
