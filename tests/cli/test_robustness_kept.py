"""What the robustness audit keeps, what it leaves out, and what it concludes."""

import functools
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pipeline.cli.audit.robustness_bias import EXAMPLES, attacking
from pipeline.cli.audit.robustness_bias.measured import conclusion
from pipeline.cli.entry import main

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., tuple[int, str, str]]
Measured = Callable[..., tuple[dict[str, Any], pd.DataFrame]]
CERTIFIED = ("--attack", "smoothing", "--attack-setting", "smoothing.samples=200", "--points", "40")


def test_the_seed_decides_noise_and_another_seed_decides_otherwise(measured: Measured) -> None:
    first, same, other = (measured(*CERTIFIED, "--seed", seed, "--min-group", "2") for seed in ("0", "0", "1"))
    assert first[0] == same[0]
    assert first[1].equals(same[1])
    both = first[1].merge(other[1], on="audit_image")
    assert len(both) > 5
    assert (both["distance_smoothing_x"] != both["distance_smoothing_y"]).any()


def test_every_output_is_stamped_with_the_attack(robustness: Command, studio: Path) -> None:
    assert robustness("--attack", "fmn", "--attack-setting", "fmn.steps=7", "--output", "out")[0] == 0
    page = (studio / "out" / "robustness.html").read_text()
    assert page.count("fmn: steps 7, start steps 100") >= 2
    assert json.loads((studio / "out" / "audit.json").read_text())["results"][0]["settings"]["steps"] == 7
    assert pd.read_csv("out/groups.csv")["attack"].unique().tolist() == ["fmn"]


def test_a_run_that_was_stopped_continues_and_ends_as_if_it_had_not_been(
    robustness: Command, studio: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("--attack", "fmn", "--attack", "deepfool", "--batch-size", "16", "--json")
    assert robustness(*given, "whole.json")[0] == 0
    attacked: list[int] = []
    original = attacking.FUNCTIONS["deepfool"]

    @functools.wraps(original)
    def stopping(logits: Any, images: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        attacked.append(len(images))
        if sum(attacked) > 40:
            raise KeyboardInterrupt
        return original(logits, images, *arguments, **settings)

    keeping = ("--checkpoint", "kept.npz")
    monkeypatch.setitem(attacking.FUNCTIONS, "deepfool", stopping)  # type: ignore[arg-type]
    status, out, err = robustness(*given, "stopped.json", *keeping)
    assert (status, out) == (130, "")
    # All of fmn, and two parts of 16 of deepfool.
    assert err.startswith("144 distances are kept in kept.npz: the same command continues there\n")
    assert not (studio / "stopped.json").exists()

    attacked.clear()

    @functools.wraps(original)
    def counting(logits: Any, images: np.ndarray, *arguments: Any, **settings: Any) -> Any:
        attacked.append(len(images))
        return original(logits, images, *arguments, **settings)

    monkeypatch.setitem(attacking.FUNCTIONS, "deepfool", counting)  # type: ignore[arg-type]
    assert robustness(*given, "continued.json", *keeping)[0] == 0
    assert sum(attacked) == 112 - 32
    assert (studio / "continued.json").read_bytes() == (studio / "whole.json").read_bytes()


def test_kept_distances_serve_more_points_and_other_attacks(measured: Measured, studio: Path) -> None:
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
        (("--model", "nets.py:probability"), "model"),
        (("--std", "2"), "std"),
        (("--attack-setting", "deepfool.steps=50"), "deepfool.steps"),
        (("--resize", "4", "--images", "images.npy"), None),
        (("--resize", "6", "--model", "nets.py:thirds", "--classes", "a,b,c"), "model, shape"),
    ],
)
def test_kept_distances_of_something_else_are_not_taken(
    robustness: Command, studio: Path, arguments: tuple[str, ...], other: str | None
) -> None:
    keeping = ("--attack", "deepfool", "--checkpoint", "kept.npz", "--points", "40", "--min-group", "2")
    assert robustness(*keeping)[0] == 0
    kept = Path("kept.npz").read_bytes()
    status, _, err = robustness(*keeping, *arguments)
    assert Path("kept.npz").read_bytes() == kept
    assert status == (0 if other is None else 2)
    assert err == "" if other is None else f"--checkpoint kept.npz was made with another {other}: give the name" in err


def test_nothing_is_left_out_in_silence(measured: Measured, studio: Path) -> None:
    _, plain = measured()
    faces = studio / "faces"
    (faces / "a" / "000.png").write_bytes((faces / "a" / "000.png").read_bytes()[:60])
    (faces / "b" / "001.png").write_text("no image")
    (faces / "notes.txt").write_text("no image")
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(faces / "c.jpg")
    table = pd.read_csv("attributes.csv")
    table.assign(place=[None if row == 5 else name for row, name in enumerate(table["place"])]).to_csv(
        "gaps.csv", index=False
    )
    document, points = measured("--partition", "gaps.csv")
    assert list(document["data"]["unreadable"]) == ["a/000.png", "b/001.png"]
    assert document["data"]["audited"] == len(points) == 118
    said = " ".join(document["caveats"])
    for words in (
        "2 images were left out, being unreadable: a/000.png (damaged:",
        "b/001.png (neither PNG nor JPEG inside)",
        "1 images in the folder have no row in the table",
        "1 other files in the folder are no PNG or JPEG",
        "1 images have no place: they are in none of its groups",
    ):
        assert words in said, words
    rest = plain[~plain["audit_image"].isin(["a/000.png", "b/001.png"])]
    np.testing.assert_allclose(points["distance_exact"], rest["distance_exact"].to_numpy(), rtol=1e-6)


@pytest.mark.parametrize("short", [r"^./", r"\.png$", r"^./|\.png$"])
def test_file_names_need_no_folder_nor_suffix_where_they_are_unique(
    measured: Measured, studio: Path, short: str
) -> None:
    _, plain = measured()
    table = pd.read_csv("attributes.csv")
    # A letter before the number, so that it is read as text.
    for file in sorted((studio / "faces").rglob("*.png")):
        file.rename(file.with_name(f"f{file.name}"))
    table["photo"] = table.pop("file").str.replace("/", "/f").str.replace(short, "", regex=True)
    table.to_csv("bare.csv", index=False)
    _, bare = measured("--partition", "bare.csv", "--file", "photo")
    assert bare["audit_image"].str.replace("/f", "/").tolist() == plain["audit_image"].tolist()


def test_many_levels_are_drawn_and_listed_at_their_ends(robustness: Command, studio: Path) -> None:
    table = pd.read_csv("attributes.csv")
    table.assign(street=np.arange(120) % 24).to_csv("streets.csv", index=False)
    given = ("--partition", "streets.csv", "--group", "street,sex", "--min-group", "5", "--output", "out")
    status, out, _ = robustness(*given)
    assert status == 0
    assert "... 12 more between them, in groups.csv" in out
    assert len(pd.read_csv("out/groups.csv")) == 2 * (24 + 2)


def entry(name: str, sigma: float, p: float, other: float) -> dict[str, Any]:
    """A level as it stands in a result, with what the verdict reads."""
    shared = {"mean": 1.0 + sigma, "mean_of_others": 1.0, "interval": [sigma - 0.1, sigma + 0.1], "n": 50}
    return {
        "level": name,
        "paper": {**shared, "sigma": sigma, "p_adjusted": p},
        "correct": {**shared, "sigma": other, "p_adjusted": 0.5},
    }


def test_a_group_that_is_farther_is_not_called_closer() -> None:
    levels = [entry("a", 0.4, 0.01, 0.3), entry("b", -0.1, 0.4, 0.0), entry("c", -0.2, 0.2, 0.0)]
    found = {
        "attack": "deepfool",
        "bound": "upper",
        "images": 150,
        "n_correct": 140,
        "partitions": [{"name": "g", "levels": levels}],
    }
    made = conclusion(found, "paper", 0.05, labelled=True)
    assert made.outcome == "rejected"
    assert made.facts["closer"] == []
    assert made.facts["farther"] == [{"partition": "g", "level": "a"}]
    assert "Images of g = a are farther from the decision boundary: their distances are 40 % larger" in (made.sentence)
    assert "of those classified correctly alone sigma is not shown: it is +0.30" in made.sentence
    assert conclusion(found, "paper", 0.001, labelled=True).outcome == "not rejected"
    for level in levels:
        level["paper"] |= {"p_adjusted": None, "sigma": None}
    made = conclusion(found, "paper", 0.05, labelled=True)
    assert made.outcome == "inconclusive"
    assert "No group could be tested" in made.sentence


def printed(text: str) -> list[list[str]]:
    """The arguments of every robustness command in ``text``, in a block or in the examples."""
    found = re.findall(r"^ *python -m pipeline (audit robustness (?:.*\\\n)*.*)$", text, re.MULTILINE)
    return [shlex.split(line.replace("\\\n", " ")) for line in found]


@pytest.mark.parametrize(
    ("source", "count"),
    [("README.md", 1), ("docs/robustness.md", 1), ("", 3)],
    ids=["README", "page", "help"],
)
def test_the_commands_run_as_they_stand(
    source: str, count: int, studio: Path, save_scripted: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    commands = printed((ROOT / source).read_text(encoding="utf-8") if source else EXAMPLES)
    assert len(commands) == count
    table = pd.read_csv("attributes.csv")
    ages = np.array(["0-14", "15-24", "25-39", "40-59", "60+"])
    table = table.assign(race=table.pop("place"), y=table["smiles"], age=ages[table.pop("smiles")])
    table.to_csv("attributes.csv", index=False)
    table.to_parquet("rows.parquet")
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 5)).eval()
    save_scripted(network, studio / "model.pt")
    batch = torch.export.Dim("images", min=1)
    exported = torch.export.export(network, (torch.zeros(5, 1, 4, 4),), dynamic_shapes=({0: batch},))
    torch.export.save(exported, "model.pt2")
    with Path("nets.py").open("a") as file:
        file.write("def network():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))\n")
    for arguments in commands:
        given = [*arguments, "--permutations", "99", "--bootstraps", "50"]
        if "--points" in given:
            given[given.index("--points") + 1] = "60"
        assert main([*given, "--min-group", "2"]) == 0, capsys.readouterr().err
        assert "Robustness audit of" in capsys.readouterr().out
        assert arguments[1] == "robustness"


def test_a_network_without_a_gradient_can_be_smoothed(robustness: Command, studio: Path) -> None:
    (studio / "wrong.py").write_text("def detached(x): return x.detach().flatten(1)[:, :3]\n")
    settings = ("--attack", "smoothing", "--attack-setting", "smoothing.samples=100", "--points", "40")
    status, out, err = robustness("--model", "wrong.py:detached", *settings, without=("--label",))
    assert (status, err) == (0, "")
    assert "lower bounds of the smoothed model" in out
