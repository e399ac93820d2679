"""torchvision's models, datasets and transforms serve on any machine; its compiled operators are never faked."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
import torch

from pipeline.models import vision
from pipeline.models.vision import compiled_part_loads, declare_operators, torchvision


def fits() -> bool:
    """Whether this machine's torchvision was compiled for this machine's torch."""
    return compiled_part_loads(torchvision().__path__[0])


@pytest.mark.parametrize("name", ["alexnet", "resnet18", "densenet121", "squeezenet1_0"])
def test_networks_differentiate_in_their_input(name: str) -> None:
    network = getattr(torchvision().models, name)(weights=None, num_classes=3).eval()
    image = torch.rand(1, 3, 64, 64, requires_grad=True)
    network(image).square().sum().backward()
    assert network(image).shape == (1, 3)
    assert image.grad is not None
    assert image.grad.abs().sum() > 0


def test_fake_images_come_through_transforms_and_workers_as_normalised_batches() -> None:
    package = torchvision()
    from torchvision.transforms import v2

    transform = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.5] * 3)])
    data = package.datasets.FakeData(size=4, image_size=(3, 8, 8), num_classes=2, transform=transform)
    images, labels = next(iter(torch.utils.data.DataLoader(data, batch_size=4, num_workers=1)))
    assert images.shape == (4, 3, 8, 8)
    assert labels.shape == (4,)
    assert images.min() >= -1
    assert images.max() <= 1
    assert torch.equal(images[2], data[2][0])


def test_the_first_transforms_agree_with_the_second() -> None:
    package = torchvision()
    from torchvision.transforms import v2

    image, _ = package.datasets.FakeData(size=1, image_size=(3, 12, 12))[0]
    first = package.transforms.Compose([package.transforms.CenterCrop(8), package.transforms.ToTensor()])
    second = v2.Compose([v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    torch.testing.assert_close(first(image), torch.Tensor(second(image)))


def test_an_operator_works_where_it_was_compiled_for_this_torch_and_raises_where_not() -> None:
    boxes, scores = torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2]]), torch.tensor([0.5, 0.9])
    if fits():
        assert torchvision().ops.nms(boxes, scores, 0.5).tolist() == [1]
    else:
        with pytest.raises(RuntimeError, match=r"C\+\+ ops"):
            torchvision().ops.nms(boxes, scores, 0.5)
        with pytest.raises(NotImplementedError, match=r"torchvision::nms"):
            torch.ops.torchvision.nms(boxes, scores, 0.5)


def test_declaring_operators_twice_changes_nothing() -> None:
    torchvision()
    before = str(torch.ops.torchvision.nms.default._schema)
    declare_operators()
    assert str(torch.ops.torchvision.nms.default._schema) == before


def test_nothing_is_declared_where_the_compiled_part_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision()  # Where the compiled part does not fit, the import below needs what this has declared.
    declared: list[str] = []
    monkeypatch.setattr(vision, "declare_operators", lambda: declared.append("declared"))
    monkeypatch.setattr(vision, "compiled_part_loads", lambda _folder: True)
    torchvision.__wrapped__()
    assert declared == []


def test_a_folder_without_a_compiled_part_does_not_load(tmp_path: object) -> None:
    assert not compiled_part_loads(str(tmp_path))


def test_a_missing_torchvision_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ImportError, match=r"torchvision is not installed.*requirements\.lock"):
        torchvision.__wrapped__()


def test_importing_the_module_costs_no_torch() -> None:
    program = "import sys, pipeline.models.vision; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
