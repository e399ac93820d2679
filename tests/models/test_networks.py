"""The networks are the published ones, take pixels, and come back from a checkpoint as they were."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from fairness_audits.models.device import tensors
from fairness_audits.values import Classifier, ImageDataset
from pipeline import networks
from tests.builders import image_dataset
from tests.errors import invalid

ARCHITECTURES = networks.architectures()


def pictures(size: int = 8, channels: int = 3, classes: int = 4, name: str = "toy", n: int = 12) -> ImageDataset:
    rng = np.random.default_rng(0)
    label = np.arange(n) % classes
    names = tuple(f"c{c}" for c in range(classes))
    shades = {"mean": (0.4,) * channels, "std": (0.3,) * channels}
    images = rng.integers(0, 256, (n, channels, size, size), dtype=np.uint8)
    return image_dataset(images, {"class": label}, {"class": names}, n // 2, name=name, **shades)


def parameters(net: torch.nn.Module) -> int:
    return sum(values.numel() for values in net.parameters())


def seeded(architecture: str, dataset: ImageDataset, **settings: float) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return networks.network(architecture, dataset, **settings)  # type: ignore[arg-type]


def classifier(
    architecture: str, dataset: ImageDataset, width: float = 1.0, input_size: int | None = None
) -> Classifier:
    """Two checkpoints with different weights and statistics."""
    states = []
    for seed in range(2):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            f = networks.network(architecture, dataset, width, input_size)
            f.train()(torch.rand(4, *dataset.images.shape[1:]))
        states.append(networks.arrays(f.state_dict()))
    described = networks.facts(architecture, dataset, width, input_size)
    weights = {name: np.stack([state[name] for state in states]) for name in states[0]}
    facts = {name: np.full(2, value) for name, value in described.items()}
    return Classifier.of("standard", dataset, f"networks.{architecture}", weights, facts=facts)


def basic_pyramid(depth: int, alpha: int, classes: int) -> int:
    """Two convolutions a block, three normalisations, and no weights in the shortcuts."""
    n = (depth - 2) // 2
    d = [16, *(round(16 + k * alpha / n) for k in range(1, n + 1))]
    blocks = sum(9 * i * o + 9 * o * o + 2 * i + 4 * o for i, o in pairwise(d))
    return 27 * 16 + 32 + blocks + 2 * d[-1] + d[-1] * classes + classes


def bottleneck_pyramid(depth: int, alpha: int, classes: int) -> int:
    n = (depth - 2) // 3
    d = [round(16 + k * alpha / n) for k in range(1, n + 1)]
    inputs = [16, *(4 * planes for planes in d[:-1])]
    blocks = sum(i * p + 9 * p * p + 4 * p * p + 2 * i + 2 * p + 2 * p + 8 * p for i, p in zip(inputs, d, strict=True))
    return 27 * 16 + 32 + blocks + 8 * d[-1] + 4 * d[-1] * classes + classes


CIFAR100 = [(3, 128), (128, 128), (128, 256), (256, 256), (256, 512), (512, 512), (512, 1024)]
"""Inputs and outputs of the convolutions of the network for CIFAR-100."""
COUNTS = {
    # d numbers to C classes, and C intercepts.
    "logistic_regression": (32, 10, 3072 * 10 + 10),
    # What a VGG16 with batch normalisation and 512 hidden units is known to have on CIFAR-10.
    "deep_cnn": (32, 10, 14_991_946),
    "deep_cnn_cifar100": (32, 100, sum(9 * i * o + o for i, o in CIFAR100) + 1024 * 100 + 100),
    # 153,664 inputs of the hidden units, as coded by the authors.
    "utk_classifier": (200, 5, 3 * 49 * 32 + 32 + 32 * 25 * 64 + 64 + 153_664 * 256 + 256 + 256 * 5 + 5),
    # 221,184 inputs of the first hidden units, as coded by the authors.
    "adience_classifier": (
        *(224, 8),
        (3 * 49 + 3) * 96 + (96 * 25 + 3) * 256 + (256 * 9 + 3) * 384 + 221_184 * 512 + 512 + 513 * 512 + 513 * 8,
    ),
    # torchvision's own numbers for 1000 classes.
    "alexnet": (224, 1000, 61_100_840),
    "vgg19": (224, 1000, 143_678_248),
    "resnet50": (224, 1000, 25_557_032),
    "resnet18": (224, 1000, 11_689_512),
    "densenet121": (224, 1000, 7_978_856),
    "squeezenet1_0": (224, 1000, 1_248_424),
    "pyramidnet": (32, 10, basic_pyramid(110, 64, 10)),
    "pyramidnet_bottleneck": (32, 100, bottleneck_pyramid(164, 48, 100)),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_network_has_as_many_parameters_as_the_published_one(name: str) -> None:
    size, classes, expected = COUNTS[name]
    with torch.device("meta"):
        assert parameters(ARCHITECTURES[name].build(classes, 3, size)) == expected
        # Its hidden units take all that larger images leave.
        for larger, left in ((64, 4), (200, 36)) if name == "deep_cnn" else ():
            grown = parameters(ARCHITECTURES[name].build(classes, 3, larger))
            assert grown == expected + (left - 1) * 512 * 512


def test_a_narrower_deep_cnn_leaves_out_less_and_one_of_width_1_what_is_published() -> None:
    build = ARCHITECTURES["deep_cnn"].build
    with torch.device("meta"):
        made = {width: build(4, 3, 32, width).modules() for width in (1.0, 0.25, 2.0)}
        rates = {width: [m.p for m in modules if isinstance(m, torch.nn.Dropout)] for width, modules in made.items()}
    assert rates[1.0] == rates[2.0] == [0.3, *[0.4] * 7, 0.5, 0.5]
    assert rates[0.25] == pytest.approx([rate / 4 for rate in rates[1.0]])


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_takes_the_smallest_images_that_it_names_and_says_so_below(name: str) -> None:
    smallest = ARCHITECTURES[name].smallest
    with torch.device("meta"):
        f = networks.network(name, pictures(smallest))
        assert f(torch.zeros(2, 3, smallest, smallest)).shape == (2, 4)
        if smallest > 1:
            words = rf"{name} takes images of at least {smallest} x {smallest}, but .* 'toy' have {smallest - 1} x .*"
            with pytest.raises(ValueError, match=words + "set method.input_size"):
                networks.network(name, pictures(smallest - 1))


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "logistic_regression"])
def test_width_scales_a_networks_weights_about_quadratically(name: str) -> None:
    # Of pictures this large a narrowed network's pools leave as much as the published ones do.
    size = 224
    with torch.device("meta"):
        full, half = (parameters(ARCHITECTURES[name].build(4, 3, size, width)) for width in (1.0, 0.5))
    assert 0.2 < half / full < 0.55


def test_normalisation_is_inside_and_where_there_is_no_width_none_applies() -> None:
    data = pictures()
    with torch.device("meta"):
        linear = networks.network("logistic_regression", data, width=0.25)
    assert parameters(linear) == 3 * 64 * 4 + 4
    assert networks.facts("logistic_regression", data, 0.25, None)["width"] == 1
    moved = replace(data, mean=(0.4 * 0.5 + 0.2,) * 3, std=(0.3 * 0.5,) * 3)
    x = torch.rand(5, 3, 8, 8)
    f, g = seeded("utk_classifier", data, width=0.25), seeded("utk_classifier", moved, width=0.25)
    torch.testing.assert_close(f(x), g(0.5 * x + 0.2))
    assert (f(x) - g(x)).abs().max() > 1e-3


def test_resizing_is_inside_so_that_gradients_are_in_the_datas_pixels() -> None:
    f = seeded("resnet18", pictures(8), input_size=32)
    x = torch.rand(2, 3, 8, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(f(x).square().sum(), x)
    assert gradient.shape == x.shape
    assert (gradient != 0).all()
    # A picture without structure stays one, whatever its size: then the two agree.
    flat = torch.full((1, 3, 8, 8), 0.7)
    same = seeded("resnet18", pictures(32))
    torch.testing.assert_close(f(flat), same(torch.full((1, 3, 32, 32), 0.7)))
    # One that is shrunk is averaged first.
    f = seeded("logistic_regression", pictures(16), input_size=4)
    stripes = torch.zeros(1, 3, 16, 16)
    stripes[..., ::2] = 1
    shrunk = torch.nn.functional.interpolate(stripes, (4, 4), mode="bilinear", antialias=True)
    torch.testing.assert_close(f(stripes), f.net((shrunk - 0.4) / 0.3))  # type: ignore[operator]
    assert shrunk.std() < 0.1


@pytest.mark.parametrize(("name", "settings"), [("deep_cnn", {"width": 0.1}), ("squeezenet1_0", {"input_size": 48})])
def test_a_checkpoint_comes_back_as_it_was(name: str, settings: dict[str, float]) -> None:
    data = pictures(32)
    made = classifier(name, data, **settings)  # type: ignore[arg-type]
    x = torch.from_numpy(data.pixels(data.test[0]))
    logits = []
    for k in range(2):
        f = networks.of_checkpoint(made, data, k, torch.device("cpu"))
        built = networks.network(name, data, **settings)  # type: ignore[arg-type]
        built.load_state_dict(tensors({key: values[k] for key, values in made.parameters.items()}))
        logits.append(f(x))
        torch.testing.assert_close(logits[-1], built.eval()(x), rtol=0, atol=0)
        assert not f.training
        assert not any(values.requires_grad for values in f.parameters())
        shapes = {key: list(values.shape[1:]) for key, values in made.parameters.items()}
        assert {key: list(values.shape) for key, values in f.state_dict().items()} == shapes
    assert (logits[0] - logits[1]).abs().max() > 1e-3
    # It draws nothing, and remembers nothing of what it sees.
    before = torch.get_rng_state()
    f = networks.of_checkpoint(made, data, 1, torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)
    state = {key: values.clone() for key, values in f.state_dict().items()}
    f(torch.rand(8, 3, 32, 32))
    assert all(torch.equal(values, state[key]) for key, values in f.state_dict().items())


def test_a_dataset_that_a_checkpoint_was_not_made_for_is_named_with_what_differs() -> None:
    data = pictures()
    made = classifier("logistic_regression", data)
    for other, words in (
        (pictures(classes=5, name="five"), "trained on 'toy' with classes 4, but 'five' has classes 5"),
        (pictures(9, name="large"), "trained on 'toy' with size 8, but 'large' has size 9"),
        (pictures(channels=1, name="grey"), "trained on 'toy' with channels 3, but 'grey' has channels 1"),
    ):
        with pytest.raises(ValueError, match=words):
            networks.of_checkpoint(made, other, 0)
    with pytest.raises(ValueError, match="no checkpoint 2: the classifier has 2"):
        networks.of_checkpoint(made, data, 2)
    with pytest.raises(ValueError, match=r"is a 'mlp', expected one of networks\.adience_classifier"):
        networks.of_checkpoint(replace(made, architecture="mlp"), data, 0)


def test_images_and_labels_that_fit_no_network_are_refused() -> None:
    data = pictures()
    wrong = {
        "4 classes, but labels from 1 to 4: expected labels from 0 to 3": replace(data, label=data.label + 1),
        "images of 8 x 7 pixels, expected square": replace(data, images=data.images[..., :7]),
        "3 channels, but 1 means": replace(data, mean=(0.5,)),
    }
    for words, dataset in wrong.items():
        with pytest.raises(ValueError, match=words):
            networks.network("logistic_regression", dataset)
    with pytest.raises(ValueError, match=r"expected method\.model among adience_classifier, .*; found 'lenet'"):
        networks.network("lenet", data)
    with pytest.raises(ValueError, match=r"alexnet takes images of at least 63 x 63, but method\.input_size is 40"):
        networks.network("alexnet", data, input_size=40)
    f = networks.network("logistic_regression", data)
    with invalid(option="pixels"):
        f(torch.zeros(2, 3, 9, 9))
