"""Arrays go to the device and come back unchanged."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.models import device


@pytest.mark.parametrize(("visible", "kind"), [(True, "cuda"), (False, "cpu")])
def test_a_visible_gpu_is_used(monkeypatch: pytest.MonkeyPatch, visible: bool, kind: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: visible)
    assert device.visible_device().type == kind


def test_tensors_are_copies_and_come_back_as_float64() -> None:
    original = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    tensors = device.tensors(original, torch.device("cpu"), torch.float64)
    tensors["w"] += 1
    np.testing.assert_array_equal(original["w"], np.arange(6).reshape(2, 3))
    back = device.arrays(tensors)
    assert back["w"].dtype == np.float64
    np.testing.assert_array_equal(back["w"], original["w"] + 1.0)
