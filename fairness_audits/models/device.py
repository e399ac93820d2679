"""Where torch computes, on the GPU where one is visible and otherwise on the CPU, and how: threads and determinism."""

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
"""The workspace with which matrix products on a GPU are deterministic."""


def visible_device() -> torch.device:
    """The first visible CUDA device, or the CPU where there is none."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Copies of the arrays on the CPU."""
    import torch

    return {name: torch.tensor(values) for name, values in arrays.items()}


def arrays(parameters: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Float64 NumPy copies of tensors on any device."""
    return {name: values.detach().cpu().numpy().astype(np.float64) for name, values in parameters.items()}


@contextmanager
def own_operations(threads: int, deterministic: bool = True) -> Iterator[None]:
    """``threads`` of the CPU and, if asked for, the deterministic form of every operation that has one.

    An operation without one on its device is named in a warning. One thread of a CPU computes in one order anyway, so
    that nothing is asked for there: asking imports torch's compiler, a second and more of a job.
    """
    import torch

    before, number = _determinism(), torch.get_num_threads()
    workspace = os.environ.get(WORKSPACE)
    try:
        torch.set_num_threads(threads)
        if deterministic and (threads > 1 or torch.cuda.is_available()):
            os.environ.setdefault(WORKSPACE, DETERMINISTIC_WORKSPACE)
            torch.use_deterministic_algorithms(True, warn_only=True)
        yield
    finally:
        torch.set_num_threads(number)
        if _determinism() != before:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        if workspace is None:
            os.environ.pop(WORKSPACE, None)


@contextmanager
def full_precision(deterministic: bool = False) -> Iterator[None]:
    """Float32 with all its digits on every device and, if asked for, cuDNN's deterministic kernels.

    On leaving, everything is as it was before.
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
        pass  # a caller has set kernels one by one, and this one setting of all says nothing
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
    """The kernels that may compute float32 with fewer digits, each with its ``fp32_precision``."""
    from torch.backends import cuda, cudnn, mkldnn

    homes: list[Any] = [cuda.matmul, cudnn.conv, cudnn.rnn, mkldnn.matmul, mkldnn.conv, mkldnn.rnn]  # type: ignore[attr-defined]
    return homes


def _determinism() -> tuple[bool, bool]:
    """Whether deterministic forms are asked for, and whether their absence is but a warning."""
    import torch

    return (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
