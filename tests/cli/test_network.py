"""Every way to hand over a network gives the same network; every wrong way is explained."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.cli.network import Computing, load_network

Linear = Callable[..., torch.nn.Module]
CPU = Computing("cpu")
X = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

NETS = """
import torch
from neighbour import weights
class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 2)
        self.load_state_dict(weights())
network = Net()
def build(): return network
def formula(x): return torch.nn.functional.linear(x, network.weight.to(x), network.bias.to(x))
def broken(): raise KeyError("weights")
number = 3
"""


@pytest.fixture
def nets(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    linear: Linear,
    save_scripted: Callable[[torch.nn.Module, Path], None],
) -> Path:
    """The same linear network in every form."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    network = linear(1.0, -2.0, 0.5)
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    torch.save(network, tmp_path / "pickled.pt")
    save_scripted(network, tmp_path / "scripted.pt")
    rows = torch.export.Dim("rows")
    program = torch.export.export(network, (torch.zeros(4, 3),), dynamic_shapes=({0: rows},))
    torch.export.save(program, tmp_path / "exported.pt2")
    (tmp_path / "neighbour.py").write_text("import torch\ndef weights(): return torch.load('weights.pt')\n")
    (tmp_path / "own_nets.py").write_text(NETS)
    for name in ("neighbour", "own_nets"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("nets")
def test_all_forms_are_the_same_network_in_double_precision(linear: Linear) -> None:
    expected = linear(1.0, -2.0, 0.5).double()(X)
    for model, origin in (
        ("scripted.pt", "TorchScript network"),
        ("exported.pt2", "exported program"),
        ("pickled.pt", "pickled network"),
        ("own_nets.py:network", "network of own_nets.py"),
        ("own_nets.py:Net", r"what Net() of own_nets.py returns"),
        ("own_nets.py:build", "what build() of own_nets.py returns"),
        ("own_nets.py:formula", "formula of own_nets.py"),
        ("own_nets:network", "network of own_nets"),
    ):
        loaded = load_network(model, True, CPU)
        assert loaded.origin == origin
        assert loaded.file == (None if model.startswith("own_nets:") else Path(model.partition(":")[0]))
        output = loaded.evaluate(X)
        assert output.dtype == torch.float64
        torch.testing.assert_close(output, expected)


def test_a_network_is_put_into_evaluation_mode(nets: Path) -> None:
    (nets / "own_nets.py").write_text("import torch\nnet = torch.nn.Sequential(torch.nn.Dropout(0.9))\nnet.train()\n")
    loaded = load_network("own_nets.py:net", False, CPU)
    torch.testing.assert_close(loaded.evaluate(X), X)


class Trap:
    """Unpickling it writes a file: what a hostile pickle would do."""

    def __reduce__(self) -> tuple[Any, tuple[Path, str]]:
        return (Path.write_text, (Path("sprung"), "x"))


def test_a_pickle_is_not_opened_unasked(nets: Path) -> None:
    torch.save(Trap(), nets / "trap.pt")
    for name in ("pickled.pt", "trap.pt"):
        with pytest.raises(ValueError, match=rf"{name} is a pickled network\. .*--trust-pickle; better, save it with"):
            load_network(name, False, CPU)
    assert not (nets / "sprung").exists()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("absent.pt", r"there is no file absent\.pt: --model takes model\.pt"),
        ("model.onnx", r"expected --model to be model\.pt .*, found 'model\.onnx'"),
        ("weights.pt", r"weights\.pt holds weights only.*path/to/file\.py:name"),
        ("junk.pt", r"junk\.pt cannot be opened as a saved network"),
        ("junk.pt2", r"junk\.pt2 cannot be opened as a saved network"),
        ("array.pt", r"expected array\.pt to hold a torch network, found an object of type ndarray"),
        ("absent.py:x", r"importing 'absent\.py' failed with FileNotFoundError: there is no file absent\.py"),
        ("no.such.module:x", r"importing 'no\.such\.module' failed with ModuleNotFoundError"),
        ("own_nets.py:absent", r"'own_nets\.py' has no 'absent'\. It has: .*Net, network, build, formula"),
        ("own_nets.py:broken", r"broken\(\) failed with KeyError: 'weights'"),
        ("own_nets.py:number", r"expected a torch network or a function of x, found an object of type int"),
    ],
)
def test_what_cannot_be_loaded_is_explained(nets: Path, model: str, message: str) -> None:
    for name in ("junk.pt", "junk.pt2"):
        (nets / name).write_text("junk")
    torch.save(np.zeros(3, dtype=object), nets / "array.pt")
    with pytest.raises(ValueError, match=message):
        load_network(model, True, CPU)


def test_a_device_that_is_not_there_is_named() -> None:
    assert CPU.device.type == "cpu"
    assert Computing().device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ValueError, match=r"--device abacus cannot be used here .*: try --device cpu"):
        _ = Computing("abacus").device
