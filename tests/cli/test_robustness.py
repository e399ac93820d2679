"""The robustness audit on networks whose distances to the boundary are known by their formula."""

import contextlib
import functools
import json
import re
import shlex
import shutil
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from fairness_audits import texts
from fairness_audits.attacks import minimum_norm
from fairness_audits.audits.robustness_bias.result import shown_groups
from fairness_audits.inputs import images as images_module
from fairness_audits.inputs.table import Source
from fairness_audits.text_files import texts_of
from tests.cli.places import BIAS, FACES, IMAGES, SIDE, TABLE, WEIGHT, ended, image_network, run, scripted, undrawn
from tests.errors import invalid

pytestmark = pytest.mark.usefixtures("studio")
robustness = partial(run, "robustness")


def margin(images: np.ndarray) -> np.ndarray:
    """w'x + b of images (n, h, w) of 0 to 255."""
    return (images.reshape(len(images), -1) / 255) @ WEIGHT + BIAS


Audited = tuple[dict[str, Any], pd.DataFrame]
"""The JSON of an audit, and its table of images."""


def measured(*arguments: str) -> Audited:
    return undrawn("robustness", *arguments), pd.read_csv("out/distances.csv")


@pytest.fixture(scope="module")
def usual(built: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Audited:
    with contextlib.chdir(shutil.copytree(built("robustness"), tmp_path_factory.mktemp("usual"), dirs_exist_ok=True)):
        return measured()


def level(document: dict[str, Any], partition: str, name: str, denominator: str = "correct") -> dict[str, Any]:
    """The measures of a group by the first attack."""
    wanted = (partition, name, denominator)
    keys = ("partition", "level", "denominator")
    (entry,) = [one for one in document["results"][0]["groups"] if tuple(one[key] for key in keys) == wanted]
    return dict(entry)


def test_exact_distances_are_those_of_the_formula(usual: Audited) -> None:
    document, points = usual
    right = (margin(IMAGES) > 0) == TABLE["smiles"]
    distance = np.abs(margin(IMAGES)) / np.linalg.norm(WEIGHT)
    assert points["audit_image"].tolist() == TABLE["file"].tolist()
    assert points["audit_correct"].tolist() == right.tolist()
    assert document["accuracy"] == pytest.approx(right.mean())
    np.testing.assert_allclose(points["distance_exact"], np.where(right, distance, np.nan), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(points["length_exact"], np.where(right, distance, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("denominator", ["paper", "correct"])
def test_any_partition_is_a_group_by_of_the_points(denominator: str, usual: Audited) -> None:
    document, points = usual
    values = points["length_exact"] if denominator == "paper" else points["distance_exact"]
    for partition in ("sex", "place"):
        for name in points[partition].unique():
            inside = points[partition] == name
            own = level(document, partition, name, denominator)
            assert own["sigma"] == pytest.approx(values[inside].mean() / values[~inside].mean() - 1)
            assert own["n"] == values[inside].notna().sum()
            assert own["mean_distance"] == pytest.approx(values[inside].mean())


def test_the_nearer_group_is_named_and_the_others_are_not(usual: Audited) -> None:
    document, _ = usual
    verdict = document["verdict"]
    assert verdict["biased"] is True
    assert verdict["closer"] == [{"partition": "sex", "level": "female"}]
    assert verdict["farther"] == []
    low, high = (level(document, "sex", "female", "paper")[f"sigma_ci_{end}"] for end in ("low", "high"))
    # Women's greys are half as far from the middle, and so are their distances but for the wrong labels.
    assert low < -0.5 < high < 0


def test_a_budget_caps_every_distance() -> None:
    document, points = measured("--budget", "0.1")
    capped = points["length_exact"].clip(upper=0.1)
    women = points["sex"] == "female"
    sigma = level(document, "sex", "female", "paper")["sigma"]
    assert sigma == pytest.approx(capped[women].mean() / capped[~women].mean() - 1)
    assert document["results"][0]["budget"] == 0.1
    means = [points["distance_exact"][who].clip(upper=0.1).mean() for who in (women, ~women)]
    less, words = 100 * (1 - means[0] / means[1]), "their distances up to T = 0.1 are"
    said = f"{words} {means[0]:.3g} on average, {less:.0f} % smaller than those of all other images (sigma"
    assert said in document["verdict"]["sentence"]


@pytest.mark.parametrize("attack", ["deepfool", "fmn", "carlini_wagner"])
def test_attacks_bound_the_exact_distance_from_above(attack: str) -> None:
    _, points = measured("--attack", attack, "--attack", "exact", "--points", "40")
    # The box [0, 1] can only lengthen the way.
    ratio = (points[f"distance_{attack}"] / points["distance_exact"]).dropna()
    assert len(ratio) > 30
    assert ratio.min() > 1 - 1e-4
    assert ratio.median() < 1.1


def test_certified_radii_bound_the_exact_distance_from_below() -> None:
    settings = ("--attack-setting", "smoothing.samples=500", "--attack-setting", "smoothing.sigma=0.25")
    document, points = measured("--attack", "exact", "--attack", "smoothing", *settings, "--points", "40")
    known = points.dropna()
    # Of a half-space, the smoothed network has the same boundary.
    assert (known["distance_smoothing"] <= known["distance_exact"] * (1 + 1e-6)).all()
    assert known["distance_smoothing"].max() > 0.1
    assert document["results"][1]["settings"]["samples"] == 500


def ball(x: torch.Tensor) -> torch.Tensor:
    """Class 1 within .3 of the middle grey."""
    return 0.3 - (x - 0.5).flatten(1).norm(dim=1)


def test_the_ball_has_its_radius_for_a_boundary() -> None:
    rng = np.random.default_rng(2)
    directions = rng.normal(size=(FACES, SIDE * SIDE))
    radii = rng.uniform(0.1, 0.5, FACES)
    images = 0.5 + radii[:, None] * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    assert 0 < images.min() < images.max() < 1
    label = (radii < 0.3).astype(int)
    given: dict[str, Any] = {"groups": TABLE["sex"], "attack": "fmn"}
    result = fa.robustness_bias(ball, images.reshape(FACES, SIDE, SIDE), label, **given)
    document, points = result.facts, result.to_frame("distances")
    assert document["data"]["shape"] == [1, SIDE, SIDE]
    assert document["accuracy"] == 1
    expected = np.abs(radii - 0.3)
    far = expected > 0.01
    np.testing.assert_allclose(points["distance_fmn"][far], expected[far], rtol=0.03)
    assert (points["distance_fmn"] >= expected * (1 - 1e-4)).all()


def test_normalisation_belongs_to_the_model_and_leaves_distances_in_pixels(usual: Audited) -> None:
    _, plain = usual
    scripted(image_network(mean=0.4, std=0.2), "normalised.pt")
    _, same = measured("--model", "normalised.pt", "--mean", "0.4", "--std", "0.2")
    np.testing.assert_allclose(same["distance_exact"], plain["distance_exact"], rtol=1e-4)


def test_many_classes_by_name() -> None:
    mean = IMAGES.reshape(FACES, -1).mean(axis=1) / 255
    scores = np.stack((0 * mean, 20 * mean - 8, 40 * mean - 20), axis=1)
    names = np.array(["dark", "middle", "light"])[scores.argmax(axis=1)]
    TABLE.assign(smiles=names).to_csv("named.csv", index=False)
    given = ("--partition", "named.csv", "--model", "nets.py:thirds", "--classes", "dark,middle,light")
    document, points = measured(*given, "--group", "sex")
    assert document["model"]["classes"] == 3
    assert document["accuracy"] == 1
    assert points["audit_label"].tolist() == points["audit_prediction"].tolist() == names.tolist()
    # Boundaries at a mean of 0.4 and 0.6; the mean of d pixels has a gradient of length 1 / sqrt(d).
    nearest = np.minimum(np.abs(mean - 0.4), np.abs(mean - 0.6)) * SIDE
    np.testing.assert_allclose(points["distance_exact"], nearest, rtol=1e-3, atol=1e-6)


def test_without_labels_the_prediction_stands_for_them() -> None:
    document, points = measured("--group", "sex", "no--label")
    assert document["accuracy"] is None
    assert points["audit_correct"].all()
    assert "audit_label" not in points
    correct, paper = (level(document, "sex", "female", denominator) for denominator in ("correct", "paper"))
    assert correct == paper | {"denominator": "correct"}
    assert any("the model's own predictions are used as the true classes" in text for text in document["caveats"])


def test_points_keep_the_shares_of_classes_and_groups_and_are_nested(usual: Audited) -> None:
    _, every = usual
    _, some = measured("--points", "60", "--min-group", "5")
    _, more = measured("--points", "90", "--min-group", "5")
    assert len(some) == 60
    assert set(some["audit_image"]) < set(more["audit_image"])
    for column in ("sex", "place", "audit_label"):
        shares = every[column].value_counts() / 2
        assert (some[column].value_counts() - shares).abs().max() <= 3


def test_attacks_that_fail_are_counted_and_named() -> None:
    # Two small steps lead across the boundary from near images alone.
    document, points = measured("--attack", "carlini_wagner", "--attack-setting", "carlini_wagner.iterations=2")
    failed = points["failed_carlini_wagner"]
    assert failed.sum() > 0
    assert document["results"][0]["failed"] == failed.sum()
    assert points.loc[failed, ["distance_carlini_wagner", "length_carlini_wagner"]].isna().all(axis=None)
    wrong = points["audit_correct"] == False  # noqa: E712 - a column of bool
    assert (points.loc[wrong, "length_carlini_wagner"] == 0).all()
    women, all_women = (level(document, "sex", "female", denominator) for denominator in ("correct", "paper"))
    assert women["failed"] == (failed & (points["sex"] == "female")).sum()
    assert women["n"] == women["n_correct"] - women["failed"]
    assert all_women["n"] == women["points"] - women["failed"]
    lengths = points.loc[points["sex"] == "female", "length_carlini_wagner"]
    assert all_women["mean_distance"] == pytest.approx(lengths.mean())
    assert any(f"carlini_wagner failed on {failed.sum()} of" in text for text in document["caveats"])


def test_colour_grey_and_resized_images(usual: Audited) -> None:
    _, plain = usual
    for file in sorted(Path("faces").rglob("*.png")):
        image = np.asarray(Image.open(file))
        Image.fromarray(np.stack([image] * 3, axis=2)).save(file)
    _, grey = measured("--channels", "1")
    np.testing.assert_allclose(grey["distance_exact"], plain["distance_exact"], rtol=1e-5)
    document, _ = measured("--channels", "1", "--resize", f"{SIDE},{SIDE}")
    assert document["options"]["resize"] == [SIDE, SIDE]


def test_a_photograph_is_turned_as_its_exif_says(usual: Audited) -> None:
    _, plain = usual
    back = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 5: Image.Transpose.TRANSPOSE}
    back |= {6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}
    files = sorted(Path("faces").rglob("*.png"))
    for place, file in enumerate(files):
        code = (1, *back)[place % 6]
        with Image.open(file) as image:
            stored = image.transpose(back[code]) if code > 1 else image.copy()
        exif = Image.Exif()
        exif[0x0112] = code
        stored.save(file, exif=exif)
    document, turned = measured()
    np.testing.assert_array_equal(turned["distance_exact"], plain["distance_exact"])
    assert any("EXIF orientation, as a viewer shows them (number: 100)" in text for text in document["caveats"])


def test_portrait_and_landscape_that_are_stored_alike_have_one_size() -> None:
    for file in sorted(Path("faces").rglob("*.png")):
        with Image.open(file) as image:
            tall = np.asarray(image)[:, :3]
        exif = Image.Exif()
        exif[0x0112] = 6 if file.parent.name == "a" else 1
        Image.fromarray(np.rot90(tall) if file.parent.name == "a" else tall).save(file, exif=exif)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2)).eval()
    scripted(model, "tall.pt")
    document, _ = measured("--model", "tall.pt", "no--label")
    assert document["data"]["shape"] == [1, 4, 3]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_every_mode_of_an_image_is_read_as_its_grey(mode: str, tmp_path: Path) -> None:
    grey = np.where(np.arange(16).reshape(4, 4) % 3 == 0, 255, 0 if mode == "1" else 102).astype(np.uint8)
    image = Image.fromarray(np.stack([grey] * 3, 2)).convert(mode)
    suffix = "jpg" if mode == "CMYK" else "png"
    image.save(tmp_path / f"0.{suffix}", quality=100, subsampling=0)
    for channels in (1, 3):
        pixels = images_module._decoded(tmp_path / f"0.{suffix}", channels)
        assert pixels.shape == (channels, 4, 4)
        np.testing.assert_allclose(pixels, np.stack([grey / 255] * channels), atol=0.02 if mode == "CMYK" else 1e-3)


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (unicodedata.normalize("NFD", "\u00e9t\u00e9/0.png"), unicodedata.normalize("NFC", "\u00e9t\u00e9/0.png")),
        ("a/0.png", "a/0.png "),
        ("a/0.png", "a\\0.png"),
        ("a/0.png", "./a//0.png"),
        ("A/0.PNG", "a/0.png"),
    ],
)
def test_a_file_is_found_under_another_form_of_its_name(written: str, named: str, tmp_path: Path) -> None:
    (tmp_path / written).parent.mkdir(parents=True)
    (tmp_path / written).touch()
    (tmp_path / "1.png").touch()
    source = Source("t.csv", pd.DataFrame({"file": [named, "1.png"]}))
    assert images_module.named_files(source, "file", tmp_path)[0].samefile(tmp_path / written)


@pytest.mark.parametrize("names", [["1.png", "x.png"], ["a.png", "./a.png"], ["A.PNG", "a.png"], ["1.png", "C.png"]])
def test_a_name_of_no_file_of_several_or_of_a_file_named_twice_is_refused(names: list[str], tmp_path: Path) -> None:
    for name in ("a.png", "c.PNG", "c.png", "1.png"):
        (tmp_path / name).touch()
    with invalid(source="t.csv", column="file", row=1):
        images_module.named_files(Source("t.csv", pd.DataFrame({"file": names})), "file", tmp_path)


# No verdict on distances that do not hold.


N = 200


def audited(network: Any, images: np.ndarray, **settings: Any) -> Any:
    """An audit of two groups, the even and the odd images."""
    given = {"permutations": 499, "bootstraps": 100, "groups": pd.Series(np.arange(N) % 2, name="g"), **settings}
    return fa.robustness_bias(network, images.astype(np.float32), **given)


def spread_pixels(low: float = 0.2, high: float = 0.8) -> np.ndarray:
    return np.random.default_rng(6).uniform(low, high, (N, SIDE, SIDE))


def to_plane(images: np.ndarray) -> np.ndarray:
    """The distance of images to the plane w'(x - 1/2) = 0."""
    return np.abs((images.reshape(N, -1) - 0.5) @ WEIGHT) / np.linalg.norm(WEIGHT)


W = torch.tensor(WEIGHT, dtype=torch.float32)


def half_quantised(x: torch.Tensor) -> torch.Tensor:
    """Images whose first pixel is bright are quantised and twice as sensitive; their slopes are a hundredth."""
    x = x.flatten(1)
    rounded = torch.round(x * 8) / 8 + 0.01 * (x - 0.5)
    return torch.where(x[:, :1] > 0.5, 2 * (rounded - 0.505), x - 0.5)[:, 1:] @ W[1:]


def check_of(result: Any) -> dict[str, dict[str, Any]]:
    return {one["level"]: one for one in result.facts["results"][0]["check"]["groups"]}


@pytest.mark.parametrize("attack", ["deepfool", "fmn"])
def test_a_group_whose_pixels_are_quantised_is_not_called_farther(attack: str) -> None:
    images = spread_pixels()
    images[:, 0, 0] = np.where(np.arange(N) % 2, 0.9, 0.1)
    result = audited(half_quantised, images, attack=attack)
    assert result.outcome == "inconclusive"
    assert "g = 1" in result.verdict.reason
    assert result.verdict.facts["farther"] == result.verdict.facts["closer"] == []
    check = check_of(result)
    # The second search has the sign right where the attack has it wrong.
    assert check["1"]["mean_distance"] > 5 * check["0"]["mean_distance"]
    assert check["1"]["mean_second_bound"] < check["0"]["mean_second_bound"]
    assert (check["0"]["worse"], check["1"]["worse_share"] > 0.5) == (0, True)
    assert "second" in result.summary()
    table = result.to_frame("distances")
    assert table["second_bound"].notna().sum() == result.facts["results"][0]["check"]["images"] == 32


def test_gradients_lost_in_one_group_alone_are_counted_and_leave_no_verdict() -> None:
    images = spread_pixels()
    images[1::2, 0, :3] = 0
    result = audited(lambda x: x.flatten(1).pow(1 / 2.2) @ W - 0.7 * W.sum(), images)
    assert result.outcome == "inconclusive"
    check = check_of(result)
    assert (check["0"]["lost_gradient"], check["1"]["lost_gradient"]) == (0, N // 2)
    assert result.facts["results"][0]["failed"] == 0
    caveats = {caveat.condition for caveat in result.caveats}
    assert "lost_gradients" in caveats
    np.testing.assert_allclose(result.to_frame("distances")["lost_gradient"][1::2], 3 / SIDE**2)


def test_a_softly_binarised_input_leaves_no_verdict() -> None:
    images = spread_pixels(0, 1)
    images = np.where(images < 0.5, 0.7 * images, 1 - 0.7 * (1 - images))
    assert audited(lambda x: (torch.sigmoid(40 * (x.flatten(1) - 0.5)) - 0.5) @ W, images).outcome == "inconclusive"


def test_an_image_without_a_gradient_has_the_distance_of_a_line_search() -> None:
    images = spread_pixels()
    images[:3] = 0.5 + 0.002 * np.sign(WEIGHT).reshape(SIDE, SIDE)

    def network(x: torch.Tensor) -> torch.Tensor:
        z = (x.flatten(1) - 0.5) @ W
        # Flat near the boundary on one side: nothing to follow from there.
        return torch.where((z > 0) & (z < 0.05), z.detach() * 0 + 1.0, z)

    result = audited(network, images)
    table = result.to_frame("distances")
    some = table["lost_gradient"] == 1
    assert some.sum() >= 3
    assert table.loc[some, "failed_deepfool"].all()
    assert (table["distance_deepfool"][some] >= to_plane(images)[some] * (1 - 1e-3) - 1e-6).all()
    assert (table["distance_deepfool"][some] < 1).all()


@pytest.mark.parametrize("kind", ["linear", "mlp", "convolution", "probability", "certain", "switched off"])
def test_an_ordinary_network_has_a_verdict(kind: str) -> None:
    torch.manual_seed(0)
    images = spread_pixels()
    flat = torch.nn.Flatten()

    def logit(x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1) - 0.5) @ W

    def both(x: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return torch.stack((0 * x[:, 0, 0, 0], factor * logit(x)), 1).softmax(1)

    networks: dict[str, Any] = {
        "linear": logit,
        "probability": lambda x: torch.sigmoid(logit(x)),
        "certain": lambda x: both(x, 12),
        "switched off": lambda x: torch.cat((both(x), torch.zeros(len(x), 1)), 1),
        "mlp": torch.nn.Sequential(flat, torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3)),
        "convolution": torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), flat, torch.nn.Linear(32, 3)
        ),
    }
    if layered := kind in ("mlp", "convolution"):
        with torch.no_grad():
            # All classes occur.
            networks[kind][-1].bias -= networks[kind](torch.from_numpy(images[:, None]).float()).mean(0)
    result = audited(networks[kind], images)
    assert result.outcome in ("rejected", "not rejected"), result.verdict.reason
    if not layered:
        found = result.to_frame("distances")["distance_deepfool"]
        np.testing.assert_allclose(found, to_plane(images), rtol=0.07, atol=2e-3)
    assert (result.to_frame("distances")["lost_gradient"] == 0).all()


@pytest.mark.parametrize(
    "network",
    [
        # Linear at the images and the boundary next to them, at the first images, and not on the way to the boundary.
        lambda x: torch.where(x.flatten(1)[:, :1] > 0.97, x.flatten(1).square(), x.flatten(1)) @ W - 0.5 * W.sum(),
        lambda x: torch.where(x.flatten(1)[:, :1] > 0.79, x.flatten(1).square(), x.flatten(1)) @ W - 0.5 * W.sum(),
        lambda x: torch.nn.functional.leaky_relu((x.flatten(1) - 0.3) @ W.abs()) - 0.3,
        lambda x: x.flatten(1).pow(1 / 2.2) @ W - 0.7 * W.sum(),
    ],
)
def test_a_network_that_is_not_linear_has_no_exact_distance(network: Any) -> None:
    images = spread_pixels()
    images = images[np.argsort(images[:, 0, 0], kind="stable")]
    with invalid(option="attack"):
        audited(network, images, attack="exact")


# What the robustness audit keeps, what it leaves out, and what it concludes.


ROOT = Path(__file__).resolve().parents[2]
CERTIFIED = ("--attack", "smoothing", "--attack-setting", "smoothing.samples=200", "--points", "40")


def test_the_seed_decides_noise_and_another_seed_decides_otherwise() -> None:
    first, same, other = (measured(*CERTIFIED, "--seed", seed, "--min-group", "2") for seed in ("0", "0", "1"))
    assert first[0] == same[0]
    assert first[1].equals(same[1])
    both = first[1].merge(other[1], on="audit_image")
    assert len(both) > 5
    assert (both["distance_smoothing_x"] != both["distance_smoothing_y"]).any()


def test_every_output_is_stamped_with_the_attack() -> None:
    assert robustness("--attack", "fmn", "--attack-setting", "fmn.steps=7", "--output", "out")[0] == 0
    page = Path("out/robustness.html").read_text()
    assert page.count("fmn: steps 7, start steps 100") >= 2
    assert json.loads(Path("out/audit.json").read_text())["results"][0]["settings"]["steps"] == 7
    assert pd.read_csv("out/groups.csv")["attack"].unique().tolist() == ["fmn"]


def test_a_run_that_was_stopped_continues_and_ends_as_if_it_had_not_been(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairness_audits.attacks.distances.CPU_BATCH", 16)
    given = ("--attack", "fmn", "--attack", "deepfool", "--json")
    assert robustness(*given, "whole.json")[0] == 0
    attacked: list[int] = []
    most, original = 40, minimum_norm.deepfool

    @functools.wraps(original)
    def stopping(logits: Any, images: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        attacked.append(len(images))
        if sum(attacked) > most:
            raise KeyboardInterrupt
        return original(logits, images, *arguments, **settings)

    keeping = ("--checkpoint", "kept.npz")
    monkeypatch.setattr(minimum_norm, "deepfool", stopping)
    status, out, err = robustness(*given, "stopped.json", *keeping)
    assert (status, out) == (130, "")
    # All of fmn, and two parts of 16 of deepfool.
    assert err.startswith("144 distances are saved in kept.npz; the same command continues from there\n")
    assert not Path("stopped.json").exists()

    attacked.clear()
    most = 1000
    assert robustness(*given, "continued.json", *keeping)[0] == 0
    assert sum(attacked) == 112 - 32
    continued, whole = (json.loads(Path(f"{name}.json").read_text()) for name in ("continued", "whole"))
    assert continued.pop("options") == {**whole.pop("options"), "checkpoint": "kept.npz"}
    assert continued == whole


def test_kept_distances_serve_more_points_and_other_attacks() -> None:
    keeping = ("--checkpoint", "kept.npz", "--min-group", "5")
    _, some = measured("--attack", "deepfool", "--points", "60", *keeping)
    before = len(np.load("kept.npz")["key_deepfool"])
    _, more = measured("--attack", "deepfool", "--attack", "fmn", *keeping)
    with np.load("kept.npz") as kept:
        assert len(kept["key_deepfool"]) == more["audit_correct"].sum() > before == some["audit_correct"].sum()
        assert len(kept["key_fmn"]) == more["audit_correct"].sum()
    both = some.merge(more, on="audit_image")
    assert (both["distance_deepfool_x"] == both["distance_deepfool_y"])[both["audit_correct_x"]].all()


@pytest.mark.parametrize(
    ("arguments", "other"),
    [
        (("--model", "nets.py:probability", "--checkpoint-key", "one"), "model"),
        (("--std", "2"), "std"),
        (("--attack-setting", "deepfool.steps=50"), "deepfool.steps"),
        (("--resize", "4,4"), None),
        (
            ("--resize", "6,6", "--model", "nets.py:thirds", "--checkpoint-key", "one", "--classes", "a,b,c"),
            "model, shape",
        ),
    ],
)
def test_kept_distances_of_something_else_are_not_taken(arguments: tuple[str, ...], other: str | None) -> None:
    keeping = ("--attack", "deepfool", "--checkpoint", "kept.npz", "--points", "40", "--min-group", "2")
    assert robustness(*keeping)[0] == 0
    kept = Path("kept.npz").read_bytes()
    status, _, err = robustness(*keeping, *arguments)
    assert Path("kept.npz").read_bytes() == kept
    assert status == (0 if other is None else 2)
    assert err == "" if other is None else f"checkpoint='kept.npz' was made with other values of {other}." in err


def test_nothing_is_left_out_in_silence(usual: Audited) -> None:
    _, plain = usual
    faces = Path("faces")
    (faces / "a" / "000.png").write_bytes((faces / "a" / "000.png").read_bytes()[:60])
    (faces / "b" / "001.png").write_text("no image")
    Image.fromarray(np.full((SIDE, SIDE), 1000, np.uint16)).save(faces / "a" / "002.png")
    table = pd.read_csv("attributes.csv")
    table.assign(place=table["place"].where(table.index != 5)).to_csv("gaps.csv", index=False)
    document, points = measured("--partition", "gaps.csv")
    assert list(document["data"]["unreadable"]) == ["a/000.png", "a/002.png", "b/001.png"]
    assert document["data"]["audited"] == len(points) == 117
    said = " ".join(document["caveats"])
    for words in (
        "3 unreadable images excluded: a/000.png (damaged:",
        "a/002.png (16 bits per channel: save it with 8)",
        "b/001.png (neither PNG nor JPEG inside)",
        "The images without a value of place belong to none of its groups (number: 1)",
    ):
        assert words in said, words
    rest = plain[~plain["audit_image"].isin(document["data"]["unreadable"])]
    np.testing.assert_allclose(points["distance_exact"], rest["distance_exact"].to_numpy(), rtol=1e-6)


def test_many_levels_are_drawn_and_the_nearest_listed() -> None:
    table = pd.read_csv("attributes.csv")
    table.assign(street=np.arange(120) % 24).to_csv("streets.csv", index=False)
    given = ("--partition", "streets.csv", "--group", "street,sex", "--min-group", "5", "--output", "out")
    status, out, _ = robustness(*given)
    assert status == 0
    assert "... 12 more, in groups.csv" in out
    assert len(pd.read_csv("out/groups.csv")) == 2 * (24 + 2)


def entry(name: str, denominator: str, sigma: float, p: float) -> dict[str, Any]:
    """A level as it stands in a result, with what the verdict reads."""
    where = {"denominator": denominator, "partition": "g", "level": name}
    interval = {"sigma_ci_low": sigma - 0.1, "sigma_ci_high": sigma + 0.1}
    return {**where, **interval, "auc": 1.0 + sigma, "n": 50, "sigma": sigma, "sigma_p_adjusted": p}


def sentence(found: dict[str, Any], alpha: float = 0.05, **facts: Any) -> str:
    """The sentence of the verdict about these groups, of an audit with true classes and without doubts."""
    plain = {
        "misled": False,
        "lost_apart": False,
        "labelled": True,
        "budget": None,
        "fair": False,
        "unit": "image",
        "turning": "",
    }
    known = {**plain, "alpha": alpha, "found": found, **shown_groups(found, alpha), **facts}
    return texts.rendered(texts_of("robustness_bias")["sentence"], known)


def test_a_group_that_is_farther_is_not_called_closer() -> None:
    correct = [entry(name, "correct", *of) for name, *of in (("a", 0.4, 0.01), ("b", -0.1, 0.4), ("c", -0.2, 0.2))]
    paper = [entry(name, "paper", sigma, 0.5) for name, sigma in (("a", 0.3), ("b", 0.0), ("c", 0.0))]
    found = {"attack": "deepfool", "bound": "upper", "points": 150, "n_correct": 140, "groups": [*correct, *paper]}
    said, shown = sentence(found), shown_groups(found, 0.05)["shown"]
    assert [(one["name"], one["closer"]) for one in shown] == [("g = a", False)]
    assert (
        "Correctly classified images of g = a, of all classes together, are farther from the decision boundary: "
        "their distances are 1.4 on average, 40 % larger" in said
    )
    assert "misclassified images counted as distance 0, no difference is shown: sigma is +0.30" in said
    assert "their fair distances are" in sentence(found, fair=True)
    certified = sentence({**found, "bound": "lower"})
    assert "decision boundary of the smoothed model: their certified radii are" in certified
    assert (shown_groups(found, 0.001)["tested"], shown_groups(found, 0.001)["shown"]) == (3, [])
    assert "No group is shown" in sentence(found, 0.001)
    for level in correct:
        level |= {"sigma_p_adjusted": None, "sigma": None}
    assert shown_groups(found, 0.05)["tested"] == 0
    assert "No group could be tested" in sentence(found)


def printed(text: str) -> list[list[str]]:
    """The arguments of every robustness command in ``text``, in a block or in the examples."""
    found = re.findall(r"^ *fairness-audits (robustness (?:.*\\\n)*.*)$", text, re.MULTILINE)
    return [shlex.split(line.replace("\\\n", " ")) for line in found]


@pytest.mark.parametrize(("source", "count"), [("README.md", 1), ("docs/guide/robustness_bias.md", 2), ("", 4)])
def test_the_commands_run_as_they_stand(source: str, count: int) -> None:
    examples = texts_of("robustness_bias")["command"]["examples"]
    commands = printed((ROOT / source).read_text(encoding="utf-8") if source else examples)
    assert len(commands) == count
    table = pd.read_csv("attributes.csv")
    ages = np.array(["0-14", "15-24", "25-39", "40-59", "60+"])
    table = table.assign(race=table.pop("place"), y=table["smiles"], age=ages[table.pop("smiles")])
    table.to_csv("attributes.csv", index=False)
    table.to_parquet("rows.parquet")
    people = pd.DataFrame({"age": np.arange(len(table)) % 50, "hours": np.arange(len(table)) % 7})
    income = np.where(people.sum(axis=1) > 25, ">50K", "<=50K")
    joblib.dump(LogisticRegression(C=100).fit(people, income), "model.joblib")
    people.assign(income=income, sex=table["sex"], race=table["race"]).to_csv("rows.csv", index=False)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 5)).eval()
    scripted(network, "model.pt")
    batch = torch.export.Dim("images", min=1)
    exported = torch.export.export(network, (torch.zeros(5, 1, 4, 4),), dynamic_shapes=({0: batch},))
    torch.export.save(exported, "model.pt2")
    with Path("nets.py").open("a") as file:
        file.write("def network():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))\n")
    for arguments in commands:
        given = [*arguments, "--permutations", "99", "--bootstraps", "50"]
        if "--points" in given:
            given[given.index("--points") + 1] = "60"
        status, out, err = ended([*given, "--min-group", "2"])
        assert (status, "Robustness audit of" in out) == (0, True), err
        assert arguments[0] == "robustness"


def test_a_network_without_a_gradient_can_be_smoothed() -> None:
    Path("wrong.py").write_text("def detached(x): return x.detach().flatten(1)[:, :3]\n")
    settings = ("--attack", "smoothing", "--attack-setting", "smoothing.samples=100", "--points", "40")
    status, out, err = robustness("--model", "wrong.py:detached", *settings, "no--label")
    assert (status, err) == (0, "")
    assert "lower bounds of the smoothed model" in out


def test_a_few_images_without_a_gradient_do_not_turn_the_sign() -> None:
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(3, 32, 32))
    weight /= np.linalg.norm(weight)
    group = np.arange(200) % 2
    far = (group == 1) & (np.cumsum(group == 1) % 14 == 0)  # Where a sigmoid of single precision is flat.
    length = np.where(far, 0.32, rng.uniform(0.1, 0.3, 200) * np.where(group == 1, 0.8, 1)) * rng.choice([-1, 1], 200)
    images = rng.uniform(0.35, 0.65, (200, 3, 32, 32))
    images += (length - np.tensordot(images - 0.5, weight, 3))[:, None, None, None] * weight
    truth = [np.abs(length[group == level]).mean() for level in (0, 1)]
    kernel = torch.tensor(weight.ravel(), dtype=torch.float32)
    given: dict[str, Any] = {"groups": pd.Series(group, name="g"), "permutations": 99, "bootstraps": 50}
    model = lambda x: torch.sigmoid((x.flatten(1) - 0.5) @ kernel * 17 / 0.31)  # noqa: E731
    found = fa.robustness_bias(model, images.clip(0, 1).astype(np.float32), **given)
    table = found.to_frame("distances")
    (distance,) = (name for name in table if name.startswith("distance_"))
    assert table["failed_" + distance.removeprefix("distance_")].sum() > 0
    np.testing.assert_allclose(table.groupby("g")[distance].mean(), truth, rtol=0.1)
