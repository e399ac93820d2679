"""Published weights are taken where they can be had, and what happens where they cannot is said."""

import hashlib
import logging
import os
import re
import shutil
import socket
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError

import matplotlib
import numpy as np
import pytest
import sklearn.datasets
import torch
from PIL import Image

from fairness_audits.values import ImageDataset
from pipeline import networks
from pipeline.networks import imagenet
from pipeline.networks.imagenet import torchvision
from pipeline.networks.narrow import narrowed
from tests.errors import invalid
from tests.files import Harm
from tests.models.test_networks import pictures as toy_pictures

FILE = "squeezenet1_0-b66bff10.pth"
ARCHITECTURES = networks.architectures()


def pictures(channels: int = 3) -> ImageDataset:
    return toy_pictures(32, channels, 3, n=6)


def shapes_of(network: torch.nn.Module) -> dict[str, torch.Size]:
    """The shape of each of its weights."""
    return {name: values.shape for name, values in network.state_dict().items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where torch looks for weights, empty; and no network."""

    def unreachable(url: str, *_: object, **__: object) -> None:
        raise URLError(f"no route to {url}")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.delenv(imagenet.MIRROR, raising=False)
    monkeypatch.setattr(torch.hub, "download_url_to_file", unreachable)
    checkpoints = tmp_path / "hub" / "checkpoints"
    checkpoints.mkdir(parents=True)
    return checkpoints


@pytest.fixture
def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Weights that somebody put there, of a network of 1,000 classes."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        state: dict[str, torch.Tensor] = torchvision().models.squeezenet1_0(weights=None).state_dict()
    torch.save(state, folder / FILE)
    return state


def test_weights_that_are_here_are_taken_if_wanted_and_the_last_layer_is_new(weights: dict[str, torch.Tensor]) -> None:
    f = networks.network("squeezenet1_0", pictures(), pretrained="auto")
    assert f.pretrained
    begun = f.net.state_dict()
    for name, values in weights.items():
        assert torch.equal(begun[name], values) == (not name.startswith("classifier"))
    assert f(torch.rand(2, 3, 32, 32)).shape == (2, 3)
    # All layers are tuned.
    assert all(values.requires_grad for values in f.parameters())
    assert not networks.network("squeezenet1_0", pictures(), pretrained="never").pretrained


def test_without_weights_training_is_from_scratch_and_says_why_and_where_to_put_them(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert not networks.network("squeezenet1_0", pictures(), pretrained="auto").pretrained
        assert not networks.network("deep_cnn", pictures(), pretrained="auto").pretrained
    assert "from scratch: the ImageNet weights of squeezenet1_0 are not here and cannot be downloaded" in caplog.text
    assert re.search(rf"no route.*: put the file https://\S*/{FILE} at {folder}/{FILE}", caplog.text)
    assert "no ImageNet weights of deep_cnn are published" in caplog.text
    with invalid(option="pretrained"):
        networks.network("squeezenet1_0", pictures(), pretrained="yes")


def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of weights in an empty mirror; what torch downloads may be a file."""
    download = torch.hub.download_url_to_file

    def only_files(url: str, *more: Any, **named: Any) -> None:
        if not url.startswith("file:"):
            raise URLError(f"no route to {url}")
        download(url, *more, **named)

    monkeypatch.setattr(torch.hub, "download_url_to_file", only_files)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setenv(imagenet.MIRROR, str(tmp_path))
    (tmp_path / "imagenet").mkdir()
    return tmp_path / "imagenet"


def test_a_mirror_serves_published_weights_if_they_have_the_checksum_in_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = torchvision().models.squeezenet1_0(weights=None).state_dict()
    folder = mirror(tmp_path, monkeypatch)
    torch.save(weights, folder / FILE)
    with invalid(source=FILE):
        networks.network("squeezenet1_0", pictures(), pretrained="auto")
    digest = hashlib.sha256((folder / FILE).read_bytes()).hexdigest()
    published = torchvision().models.SqueezeNet1_0_Weights.IMAGENET1K_V1
    renamed = FILE.replace("b66bff10", digest[:8])
    (folder / FILE).rename(folder / renamed)
    monkeypatch.setattr(published.value, "url", published.url.replace(FILE, renamed), raising=False)
    begun = networks.network("squeezenet1_0", pictures(), pretrained="auto").net.state_dict()
    assert all(torch.equal(begun[name], weights[name]) for name in weights if not name.startswith("classifier"))


@pytest.mark.skipif(not os.environ.get(imagenet.MIRROR), reason="needs DATA_MIRROR with imagenet/squeezenet1_0.npz")
def test_pruned_weights_stand_in_where_the_published_ones_cannot_be_had_and_recognise_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(os.environ[imagenet.MIRROR], "imagenet", "squeezenet1_0.npz")
    if not file.is_file():
        pytest.skip(f"no {file}")
    folder = mirror(tmp_path, monkeypatch)
    shutil.copyfile(file, folder / file.name)
    begun = networks.network("squeezenet1_0", pictures(), pretrained="auto")
    assert begun.pretrained
    with np.load(file) as arrays:
        zeros = sum((arrays[name] == 0).sum() for name in arrays.files if not name.startswith("classifier"))
    # The new last layer is not pruned, but its biases are 0 if torchvision's are.
    assert imagenet.pruned(begun.net) * sum(map(torch.numel, begun.parameters())) == pytest.approx(zeros, abs=3)

    published = torchvision().models.SqueezeNet1_0_Weights.IMAGENET1K_V1
    network = torchvision().models.squeezenet1_0(weights=None).eval()
    network.load_state_dict(imagenet._verified(str(file), imagenet.PRUNED["squeezenet1_0"]))
    look = published.transforms()
    for picture, expected in (
        (Path(matplotlib.get_data_path(), "sample_data", "grace_hopper.jpg"), "suit"),
        (Path(sklearn.datasets.__file__).with_name("images") / "china.jpg", "monastery"),
    ):
        scores = network(look(Image.open(picture))[None])[0]
        names = [published.meta["categories"][k] for k in scores.topk(2).indices]
        assert expected in names

    (folder / file.name).write_bytes(file.read_bytes()[:-1])
    with invalid(source=file.name):
        networks.network("squeezenet1_0", pictures(), pretrained="auto")


def test_a_broken_file_of_weights_is_named_rather_than_passed_over(folder: Path) -> None:
    for save in (lambda: (folder / FILE).write_bytes(b"half"), lambda: torch.save({"a": torch.ones(1)}, folder / FILE)):
        save()
        with invalid(source=FILE):
            networks.network("squeezenet1_0", pictures(), pretrained="auto")


def test_a_file_of_weights_that_would_run_something_is_refused_before_it_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    torch.save({"features.0.weight": Harm(Path("sprung"))}, FILE)
    with invalid(source=FILE):
        networks.network("squeezenet1_0", pictures(), pretrained="auto")
    assert not Path("sprung").exists()
    assert imagenet.WEIGHTS_ONLY not in os.environ
    torch.load(FILE, weights_only=False)
    assert Path("sprung").exists()


def test_waiting_for_a_server_is_limited_and_the_limit_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float | None] = []

    def slow(*_: object, **__: object) -> None:
        waited.append(socket.getdefaulttimeout())
        raise TimeoutError("timed out")

    monkeypatch.delenv(imagenet.MIRROR, raising=False)
    monkeypatch.setattr(torchvision().models, "squeezenet1_0", slow)
    with pytest.raises(imagenet.WeightsMissing, match="timed out"):
        imagenet.tuned("squeezenet1_0", 3, 3)
    assert waited == [imagenet.CONNECT_SECONDS]
    assert socket.getdefaulttimeout() is None


@pytest.mark.parametrize("name", sorted(networks.TORCHVISION))
def test_a_new_last_layer_has_the_shape_of_one_that_was_made_for_the_classes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, there = torchvision().models, networks.TORCHVISION[name][0]
    original = getattr(models, there)
    fresh = lambda weights, progress=True, num_classes=1000: original(num_classes=num_classes)  # noqa: E731
    monkeypatch.setattr(models, there, fresh)
    architecture = ARCHITECTURES[name]
    assert architecture.pretrained is not None
    with torch.device("meta"):
        tuned, made = architecture.pretrained(6, 3), architecture.build(6, 3, 64)
    assert shapes_of(tuned) == shapes_of(made)


def test_grey_pictures_are_coloured_ones_of_equal_channels() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        grey = networks.network("resnet18", pictures(1))
        torch.manual_seed(0)
        coloured = networks.network("resnet18", pictures(3))
    x = torch.rand(2, 1, 32, 32)
    torch.testing.assert_close(grey(x), coloured(x.repeat(1, 3, 1, 1)))
    with invalid(option="channels"):
        networks.network("resnet18", pictures(2))


@pytest.mark.parametrize("name", ["alexnet", "vgg19_bn", "resnet50", "densenet121", "squeezenet1_0"])
def test_a_narrowed_network_of_width_1_is_the_whole_one_and_one_of_half_computes(name: str) -> None:
    build = partial(getattr(torchvision().models, name), weights=None, num_classes=5)
    with torch.device("meta"):
        whole, same, half = build(), narrowed(build, 1.0), narrowed(build, 0.5)
        assert shapes_of(same) == shapes_of(whole)
        layers = [layer for layer in half.modules() if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear))]
        assert layers[0].weight.shape[1] == 3
        assert half(torch.zeros(2, 3, 64, 64)).shape == (2, 5)


def test_the_weights_of_a_narrowed_network_keep_the_size_of_what_passes_through() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = narrowed(partial(torchvision().models.squeezenet1_0, weights=None, num_classes=5), 0.5)
        first = next(layer for layer in network.modules() if isinstance(layer, torch.nn.Conv2d))
    inputs = first.weight[0].numel()
    assert first.weight.var().item() == pytest.approx(2 / inputs, rel=0.1)
    assert first.bias is not None
    assert not first.bias.any()


def test_a_narrowed_networks_pool_keeps_what_small_pictures_leave_and_repeats_nothing() -> None:
    # Of 64 pixels a side the convolutions leave 1 (AlexNet) and 2 (VGG), of 224 what the published pool asks for.
    for name, side, left, published in (("alexnet", 64, 1, 6), ("vgg19", 64, 2, 7)):
        build: Any = ARCHITECTURES[name].build
        with torch.device("meta"):
            small, whole = build(5, 3, side, 0.25), build(5, 3, 224, 0.25)
            units = [next(m for m in net.classifier if isinstance(m, torch.nn.Linear)) for net in (small, whole)]
            passed = small.features(torch.zeros(2, 3, side, side))
            assert passed.shape == small.avgpool(passed).shape == (2, 64 if name == "alexnet" else 128, left, left)
            assert units[0].in_features * published**2 == units[1].in_features * left**2
            assert small(torch.zeros(2, 3, side, side)).shape == (2, 5)
            # Of width 1 it is torchvision's, also for small pictures.
            assert shapes_of(build(5, 3, side)) == shapes_of(build(5, 3, 224))


def test_a_pool_that_keeps_what_is_left_computes_what_the_repeating_one_does() -> None:
    # A hidden unit's weight of a number is the sum of its weights of the 36 copies.
    build = partial(torchvision().models.alexnet, weights=None, num_classes=5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        repeating, kept = narrowed(build, 0.25).eval(), narrowed(build, 0.25, 64).eval()
    state = repeating.state_dict()
    state["classifier.1.weight"] = state["classifier.1.weight"].unflatten(1, (64, 36)).sum(dim=2)
    kept.load_state_dict(state)
    x = torch.rand(3, 3, 64, 64)
    torch.testing.assert_close(kept(x), repeating(x))
    # A small step along its gradient moves the function as one 36 times as long would along the other's.
    slopes = []
    for net in (repeating, kept):
        weight = net.get_parameter("classifier.1.weight")
        (slope,) = torch.autograd.grad(net(x)[:, 0].sum(), weight)
        slopes.append(slope.square().sum())
    torch.testing.assert_close(slopes[0], 36 * slopes[1])


def test_a_narrowed_squeezenet_begins_with_equal_logits_that_are_alive() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network: Any = ARCHITECTURES["squeezenet1_0"].build(5, 3, 32, 0.25).eval()
    x = torch.rand(8, 3, 32, 32)
    logits = network(x)
    torch.testing.assert_close(logits, torch.full((8, 5), imagenet.LAST_BIAS["squeezenet1_0"]), atol=0.4, rtol=0)
    # With biases 0, as published, about half of them are 0 and have no gradient.
    torch.nn.init.zeros_(network.classifier[1].bias)
    assert 0.1 < (network(x) == 0).float().mean() < 0.9


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_the_residual_blocks_of_a_narrowed_network_begin_as_the_identity(name: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network: Any = ARCHITECTURES[name].build(5, 3, 32, 0.25).eval()
    block, x = network.layer1[1], torch.rand(2, network.layer1[1].conv1.in_channels, 8, 8)
    assert block.downsample is None
    torch.testing.assert_close(block(x), x)
    assert any(values.requires_grad and values.any() for values in block.parameters())


def test_a_width_that_leaves_parts_of_channels_is_refused_and_imagenet_weights_fit_width_1_alone(
    weights: dict[str, torch.Tensor],
) -> None:
    with invalid(option="width"):
        networks.network("vgg19", pictures(), width=0.3)
    assert not networks.network("squeezenet1_0", pictures(), width=0.5, pretrained="auto").pretrained
