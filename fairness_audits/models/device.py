"""Torch's device (a visible GPU, otherwise the CPU), threads and determinism."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
DETERMINISTIC_WORKSPACE = ":4096:8"
"""Setting of the workspace that makes matrix products on a GPU deterministic."""


def visible_device() -> torch.device:
    """Return the first visible CUDA device, or the CPU if there is none."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Return copies of the arrays on the CPU."""
    import torch

    return {name: torch.tensor(values) for name, values in arrays.items()}


def arrays(parameters: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Return float64 NumPy copies of tensors on any device."""
    return {name: values.detach().cpu().numpy().astype(np.float64) for name, values in parameters.items()}


@contextmanager
def own_operations(threads: int, deterministic: bool = True) -> Iterator[None]:
    """Use ``threads`` of the CPU and, optionally, the deterministic form of every operation that has one.

    An operation without a deterministic form causes a warning. A single CPU thread is deterministic anyway, so the
    setting is skipped there: it would import torch's compiler, which takes more than a second.
    """
    import torch

    before, number = determinism(), torch.get_num_threads()
    workspace = os.environ.get(WORKSPACE)
    try:
        torch.set_num_threads(threads)
        if deterministic and (threads > 1 or torch.cuda.is_available()):
            os.environ.setdefault(WORKSPACE, DETERMINISTIC_WORKSPACE)
            torch.use_deterministic_algorithms(True, warn_only=True)
        yield
    finally:
        torch.set_num_threads(number)
        if determinism() != before:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        if workspace is None:
            os.environ.pop(WORKSPACE, None)


@contextmanager
def full_precision(deterministic: bool = False) -> Iterator[None]:
    """Use full float32 precision on every device and, optionally, cuDNN's deterministic kernels.

    All settings are restored on exit.
    """
    import torch

    cudnn = torch.backends.cudnn
    wanted: list[tuple[Any, str, Any]] = [(kernels, "fp32_precision", "ieee") for kernels in float32_kernels()]
    if deterministic:
        wanted += [(cudnn, "enabled", True), (cudnn, "benchmark", False), (cudnn, "deterministic", True)]
    before = [(home, name, getattr(home, name)) for home, name, _ in wanted]
    try:
        before.insert(0, (cudnn, "allow_tf32", cudnn.allow_tf32))
    except RuntimeError:
        pass  # a caller has set kernels one by one, so the global setting is undefined
    else:
        wanted.insert(0, (cudnn, "allow_tf32", False))
    try:
        for home, name, value in wanted:
            setattr(home, name, value)
        yield
    finally:
        for home, name, value in before:
            setattr(home, name, value)


def float32_kernels() -> list[Any]:
    """Return the kernels that may reduce the precision of float32, each with its ``fp32_precision``."""
    from torch.backends import cuda, cudnn, mkldnn

    homes: list[Any] = [cuda.matmul, cudnn.conv, cudnn.rnn, mkldnn.matmul, mkldnn.conv, mkldnn.rnn]  # type: ignore[attr-defined]
    return homes


def determinism() -> tuple[bool, bool]:
    """Return whether deterministic forms are required, and whether their absence only causes a warning."""
    import torch

    return (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
