"""torchvision's models and transforms serve on any machine; its compiled operators are never faked."""

import subprocess
import sys

import pytest
import torch

from pipeline.models.vision import torchvision


def test_a_network_differentiates_in_its_input() -> None:
    network = torchvision().models.squeezenet1_0(weights=None, num_classes=3).eval()
    image = torch.rand(1, 3, 64, 64, requires_grad=True)
    network(image).square().sum().backward()
    assert image.grad is not None
    assert image.grad.abs().sum() > 0


def test_an_operator_works_where_it_was_compiled_for_this_torch_and_raises_where_not() -> None:
    package = torchvision()
    boxes, scores = torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2]]), torch.tensor([0.5, 0.9])
    if package.extension._has_ops():
        assert package.ops.nms(boxes, scores, 0.5).tolist() == [1]
    else:
        with pytest.raises(RuntimeError, match=r"C\+\+ ops"):
            package.ops.nms(boxes, scores, 0.5)
        with pytest.raises(NotImplementedError, match=r"torchvision::nms"):
            torch.ops.torchvision.nms(boxes, scores, 0.5)


@pytest.mark.parametrize("module", ["vision", "networks"])
def test_importing_the_module_costs_no_torch(module: str) -> None:
    program = f"import sys, pipeline.models.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
