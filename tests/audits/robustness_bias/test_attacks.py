"""Each name is the attack that it says, with its own settings, on pixels, and with noise that belongs to the point."""

from typing import Any

import numpy as np
import pytest

from pipeline.attacks.carlini_wagner import carlini_wagner
from pipeline.attacks.deepfool import deepfool
from pipeline.attacks.fmn import fmn
from pipeline.attacks.smoothing import certify
from pipeline.audits.robustness_bias import attacks

torch = pytest.importorskip("torch")

MEAN, STD = (0.3, 0.6), (0.5, 0.25)
SMOOTHING: dict[str, Any] = {
    "sigma": 0.125,
    "scale": "pixels",
    "selection_samples": 100,
    "samples": 400,
    "first_samples": 100,
    "growth": 2.0,
    "tolerance": 0.1,
    "alpha": 0.001,
    "radius_of": "right",
}


@pytest.fixture(scope="module")
def network() -> Any:
    """A linear network of three classes on two channels of 4 x 4 pixels."""
    from pipeline.models.networks.layers import logistic_regression as build
    from pipeline.models.networks.pixels import PixelNetwork

    torch.manual_seed(0)
    return PixelNetwork(build(3, 2, 4), MEAN, STD, 4, None, False).requires_grad_(False).eval()


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.2, 0.8, size=(20, 2, 4, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def label(network: Any, images: np.ndarray) -> np.ndarray:
    return np.asarray(network(torch.from_numpy(images)).argmax(1).numpy())


def made(name: str, settings: dict[str, Any], seed: int = 0, batch: int | None = None, keep: bool = False) -> Any:
    return attacks.named(name, settings, STD, np.random.default_rng(seed), batch, keep)


def test_every_name_has_an_attack_and_only_linear_networks_have_an_exact_distance() -> None:
    assert attacks.NAMES == ("exact", "exact_in_box", "deepfool", "carlini_wagner", "fmn", "smoothing")
    linear = [name for name in attacks.NAMES if attacks.applies(name, "networks.logistic_regression")]
    others = [name for name in attacks.NAMES if attacks.applies(name, "networks.deep_cnn")]
    assert linear == list(attacks.NAMES)
    assert others == list(attacks.NAMES[2:])


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected an attack among exact, exact_in_box, deepfool, .* found 'fgsm'"):
        made("fgsm", {})


@pytest.mark.parametrize(("name", "closed_form"), attacks.CLOSED_FORMS.items())
def test_exact_distances_are_the_closed_forms_in_pixels(
    network: Any, images: np.ndarray, label: np.ndarray, monkeypatch: pytest.MonkeyPatch, name: str, closed_form: Any
) -> None:
    layer = next(module for module in network.net.modules() if isinstance(module, torch.nn.Linear))
    # z = W (x - mean) / std + b, a channel having 16 pixels.
    weight = layer.weight.double().numpy() / np.repeat(STD, 16)
    bias = layer.bias.double().numpy() - weight @ np.repeat(MEAN, 16)
    expected = closed_form(weight, bias, images, label)
    found = made(name, {})(network, images, label, np.arange(20))
    np.testing.assert_allclose(found.distance, expected.distance, rtol=1e-6)
    assert (found.failed.sum(), found.forward_passes, found.adversarial) == (0, 20, None)
    monkeypatch.setattr(attacks, "NUMBERS_AT_ONCE", 300)
    parts = made(name, {})(network, images, label, np.arange(20))
    np.testing.assert_allclose(parts.distance, found.distance, rtol=1e-12)
    # In single precision, as it was.
    assert layer.weight.dtype == torch.float32


def test_the_box_makes_some_points_farther_and_none_nearer(network: Any) -> None:
    """And no attack, which stays in it, finds less than the exact distance there."""
    dark = np.random.default_rng(1).uniform(0, 0.1, size=(20, 2, 4, 4)).astype(np.float32)
    label = np.asarray(network(torch.from_numpy(dark)).argmax(1).numpy())
    free, inside, attacked = (
        made(name, settings)(network, dark, label, np.arange(20)).distance
        for name, settings in (("exact", {}), ("exact_in_box", {}), ("fmn", {"steps": 20}))
    )
    assert (inside >= free - 1e-12).all()
    assert (inside > free + 1e-3).any()
    found = np.isfinite(attacked)
    assert found.any()
    assert (attacked[found] >= inside[found] - 1e-5).all()


def test_an_affine_network_is_its_weights_whatever_is_done_to_the_picture(images: np.ndarray) -> None:
    from pipeline.models.networks.layers import logistic_regression as build
    from pipeline.models.networks.pixels import PixelNetwork

    torch.manual_seed(1)
    resized = PixelNetwork(build(3, 2, 6), MEAN, STD, 4, 6, False).eval()
    weight, bias = attacks.affine(resized, (2, 4, 4))
    with torch.no_grad():
        logits = resized(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(images.reshape(20, -1) @ weight.T + bias, logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "attack", "settings"),
    [
        ("deepfool", deepfool, {"steps": 7, "candidates": 2, "overshoot": 0.3}),
        ("carlini_wagner", carlini_wagner, {"iterations": 30, "searches": 2, "learning_rate": 0.02, "initial_c": 0.5}),
        ("fmn", fmn, {"steps": 3}),
    ],
)
def test_an_attack_gets_its_settings(
    network: Any, images: np.ndarray, label: np.ndarray, name: str, attack: Any, settings: dict[str, Any]
) -> None:
    expected = attack(network, images, label, **settings)
    found = made(name, settings, batch=6, keep=True)(network, images, label, np.arange(20))
    np.testing.assert_allclose(found.distance, expected.distance, rtol=1e-3)
    assert found.adversarial.shape == images.shape
    assert made(name, settings)(network, images, label, np.arange(20)).adversarial is None
    assert (attack(network, images, label).distance != expected.distance).any()


@pytest.mark.parametrize("scale", attacks.SCALES)
def test_certificates_have_their_scale_and_each_point_its_noise(
    network: Any, images: np.ndarray, label: np.ndarray, scale: str
) -> None:
    settings = {**SMOOTHING, "scale": scale}
    whole = made("smoothing", settings)(network, images, label, np.arange(20))
    rows = np.array([11, 4])
    part = made("smoothing", settings, batch=100)(network, images[rows], label[rows], rows)
    np.testing.assert_array_equal(part.distance, whole.distance[rows])
    own = {key: value for key, value in settings.items() if key != "scale"}
    seed = int(np.random.default_rng(0).integers(2**63))
    direct = certify(network, images, label, **own, seed=seed, channel_scale=STD if scale == "normalised" else None)
    np.testing.assert_array_equal(whole.distance, direct.distance)
    exact = made("exact", {})(network, images, label, np.arange(20)).distance
    assert (whole.distance > 0).any()
    assert (whole.distance <= made("deepfool", {})(network, images, label, np.arange(20)).distance).all()
    assert np.isfinite(exact).all()


def test_another_stream_is_other_noise(network: Any, images: np.ndarray, label: np.ndarray) -> None:
    first, second = (made("smoothing", SMOOTHING, seed)(network, images, label, np.arange(20)) for seed in (0, 1))
    assert (first.lower != second.lower).any()
