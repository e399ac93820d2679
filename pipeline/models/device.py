"""Where torch computes: on the GPU where one is visible, otherwise on the CPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


TRACES = (
    *("/dev/nvidiactl", "/proc/driver/nvidia"),
    *("/dev/nvmap", "/dev/nvhost-gpu", "/dev/nvgpu"),
    *("/dev/kfd", "/dev/dxg"),
)
"""What a driver that torch can use leaves on Linux: NVIDIA's, on a board or in a system on a chip, AMD's, or WSL's."""


def gpu_is_visible() -> bool:
    """Whether torch sees a GPU. It is not even imported, which takes seconds, where no driver has left a trace."""
    if sys.platform == "linux" and not any(os.access(trace, os.F_OK) for trace in TRACES):
        return False
    return visible_device().type == "cuda"


def visible_device() -> torch.device:
    """The first visible CUDA device, or the CPU where there is none."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def tensors(
    arrays: Mapping[str, np.ndarray], device: torch.device, dtype: torch.dtype | None = None
) -> dict[str, torch.Tensor]:
    """Copies of the arrays on a device; ``dtype`` None keeps each array's own."""
    import torch

    return {name: torch.tensor(values, dtype=dtype, device=device) for name, values in arrays.items()}


def arrays(parameters: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Float64 NumPy copies of tensors on any device."""
    return {name: values.detach().cpu().numpy().astype(np.float64) for name, values in parameters.items()}
