"""Arrays go to the device and come back unchanged."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.models import device


@pytest.mark.parametrize("visible", [True, False])
@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_torch_is_asked_where_a_driver_left_a_trace_and_off_linux_whatever_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, visible: bool
) -> None:
    (tmp_path / "nvidiactl").touch()
    traces = (f"{tmp_path}/kfd", f"{tmp_path}/nvidiactl") if platform == "linux" else ()
    monkeypatch.setattr(device, "TRACES", traces)
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: visible)
    assert device.gpu_is_visible() is visible
    assert device.visible_device().type == ("cuda" if visible else "cpu")


def test_without_a_trace_of_a_driver_torch_is_not_even_imported() -> None:
    program = """
import sys
from pipeline.models import device
device.TRACES = ("/no/such/device",)
assert sys.platform != "linux" or not device.gpu_is_visible()
assert sys.platform != "linux" or "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_tensors_are_copies_and_come_back_as_float64() -> None:
    original = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    tensors = device.tensors(original, torch.device("cpu"), torch.float64)
    tensors["w"] += 1
    np.testing.assert_array_equal(original["w"], np.arange(6).reshape(2, 3))
    back = device.arrays(tensors)
    assert back["w"].dtype == np.float64
    np.testing.assert_array_equal(back["w"], original["w"] + 1.0)
