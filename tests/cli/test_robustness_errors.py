"""What the robustness audit says to somebody who gave it something else than it expects."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

Command = Callable[..., tuple[int, str, str]]
SIDE = 4
WRONG = """
import torch
def flat(x): return x.flatten(1)[:, :1].round()
def detached(x): return x.detach().flatten(1)[:, :3]
def square(x): return x.flatten(1)[:, :2] ** 2 @ torch.tensor([[1.0, 2.0], [0.0, 3.0]])
def deep(x): return x
def classes(x): return x.flatten(1).argmax(1)
def tuple_(x): return (x.flatten(1),)
def nan(x): return torch.where(x[:, 0, 0, :2] > 0.45, x[:, 0, 0, :2], torch.nan)
def batch(x): return x.flatten(1)[:, :2] - x.mean()
def large(x): return torch.nn.functional.linear(x.flatten(1), torch.ones(2, 784))
def unfinished(path): raise KeyError
"""


@pytest.fixture
def spoilt(studio: Path) -> Path:
    """The studio with what can be wrong in it."""
    table = pd.read_csv("attributes.csv")
    (studio / "wrong.py").write_text(WRONG)

    def partition(name: str, **columns: object) -> None:
        table.assign(**columns).to_csv(f"{name}.csv", index=False)

    partition("constant", era="now")
    partition("absent", file=["a/00.png", *table["file"][1:]])
    partition("twice", file=["b/001.png", *table["file"][1:]])
    partition("nameless", file=[None, *table["file"][1:]])
    partition("text", file=["a/notes.txt", *table["file"][1:]])
    partition("beyond", smiles=table["smiles"] + 1)
    partition("names", smiles=np.where(table["smiles"] == 1, "yes", "no"))
    partition("unlabelled", smiles=[None, *table["smiles"][1:]])
    partition("rare", sex=["other", *table["sex"][1:]])
    partition("vague", file=["twin.png", *table["file"][1:]])
    partition("unparted", sex="all", place="here")
    table.iloc[:50].to_csv("short.csv", index=False)
    (studio / "faces" / "a" / "notes.txt").write_text("no image")
    for folder in "ab":
        Image.fromarray(np.zeros((SIDE, SIDE), np.uint8)).save(f"faces/{folder}/twin.png")
    (studio / "texts").mkdir()
    (studio / "texts" / "notes.txt").write_text("no image")
    (studio / "sizes").mkdir()
    for number in range(4):
        Image.fromarray(np.zeros((4 + number // 2, 5), np.uint8)).save(f"sizes/{number}.png")
    (studio / "broken").mkdir()
    for number in range(4):
        (studio / "broken" / f"{number}.png").write_text("no image")
    four = pd.DataFrame({"file": [f"{number}.png" for number in range(4)], "smiles": 0, "sex": ["f", "m"] * 2})
    four.to_csv("four.csv", index=False)
    np.save("pixels.npy", np.load("images.npy").astype(np.float32))
    np.save("counts.npy", np.load("images.npy").astype(np.int32))
    np.save("odd.npy", np.zeros((120, 3, 5, 3), np.uint8))
    np.save("flat.npy", np.zeros((120, 16), np.uint8))
    np.savez("two.npz", a=np.zeros((120, 4, 4), np.uint8), b=np.zeros(3))
    Path("junk.npy").write_text("junk")
    Path("junk.npz").write_text("junk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save({"weight": torch.zeros(3)}, "weights.pt")
    return studio


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--images", "absent"), "there is no folder or file absent: --images takes a folder of images"),
        (("--images", "attributes.csv"), "expected --images to be a folder of PNG and JPEG files, or a file ending in"),
        (("--images", "texts"), "image files ending in .png, .jpg, .jpeg, found none among 1 other files"),
        (
            ("--images", "sizes", "--partition", "four.csv"),
            "expected images of one size, found 4 x 5 (0.png) and 5 x 5",
        ),
        (("--images", "sizes", "--partition", "four.csv"), "--resize 4x5 makes them alike"),
        (("--images", "broken", "--partition", "four.csv"), "none of the 4 images below broken can be read"),
        (("--images", "broken", "--partition", "four.csv"), "0.png (neither PNG nor JPEG inside)"),
        (("--partition", "absent.csv"), "names a/00.png: no such file below faces (did you mean 'a/"),
        (("--partition", "absent.csv"), "Add 1 missing files or remove their rows; --file names the column"),
        (("--partition", "text.csv"), "names a/notes.txt, which is in faces but no image file (expected .png"),
        (("--partition", "twice.csv"), "expected one row for each image, found several for b/001.png"),
        (("--partition", "nameless.csv"), "column 'file' names no file in 0 (rows counted from 0)"),
        (("--partition", "vague.csv"), "twin.png may be a/twin.png, b/twin.png: name images by their path below faces"),
        (("--partition", "nothing.csv"), "there is no file nothing.csv"),
        (("--file", "fiel"), "--file names 'fiel', but attributes.csv has no such column (did you mean 'file'?)"),
        (("--label", "smile"), "did you mean 'smiles'?"),
        (("--partition", "beyond.csv"), "holds 2, out of range: the model has 2 classes, so expected 0 to 1"),
        (("--partition", "names.csv"), "holds no, yes, expected the numbers of the model's outputs, from 0"),
        (
            ("--partition", "names.csv", "--classes", "no,si"),
            "holds yes, which --classes does not name. It names: no, si",
        ),
        (("--classes", "a,b,c"), "--classes names 3 classes, but the model returns scores of 2"),
        (("--classes", "a,a"), "--classes names a class more than once"),
        (("--partition", "unlabelled.csv"), "the label 'smiles' is missing in 0 (rows counted from 0)"),
        (("--partition", "constant.csv", "--group", "era"), "--group era, but it is 'now' in every row: a constant"),
        (("--group", "sx"), "--group names 'sx', but attributes.csv has no such column (did you mean 'sex'?)"),
        (("--group", "file"), "--group names 'file', the column of file names"),
        (("--partition", "unparted.csv"), "expected a column of 2 to 20 levels to compare by, found none"),
        (
            ("--partition", "unparted.csv"),
            "sex (the same in every row), place (the same in every row), height (120 lev",
        ),
        (("--partition", "rare.csv"), "at least 10 audited images in every group, found fewer in sex: other (1)"),
        (("--points", "20", "--group", "place"), "found fewer in place: "),
        (("--points", "200"), "--points asks for 200 images, but there are 120"),
        (("--images", "images.npy", "--partition", "short.csv"), "in the same order; found 50 rows and 120 images"),
        (("--images", "images.npy", "--file", "file"), "--file names files, but images.npy is an array"),
        (("--images", "images.npy", "--channels", "3"), "--channels 3: the images of images.npy have 1"),
        (("--images", "images.npy", "--array", "x"), "--array x is for an .npz"),
        (("--layout", "nchw"), "--layout is for a file of arrays, but faces is a folder"),
        (("--images", "pixels.npy"), "expected floating pixels in [0, 1], found values from"),
        (("--images", "counts.npy"), "expected images of uint8 or floating numbers, found int32"),
        (("--images", "odd.npy"), "both the second and the last axis may be channels: say --layout nchw"),
        (("--images", "flat.npy"), "expected images of shape (n, c, h, w), (n, h, w, c) or (n, h, w) with 1 or 3"),
        (("--images", "two.npz"), "two.npz has 2 arrays, none of them 'images': name one of a, b with --array"),
        (("--images", "two.npz", "--array", "c"), "two.npz has no array 'c': name one of a, b with --array"),
        (("--images", "junk.npy"), "junk.npy does not hold arrays of numbers"),
        (("--images", "junk.npz"), "junk.npz"),
        (("--model", "absent.pt"), "there is no file absent.pt"),
        (("--model", "weights.pt"), "weights.pt holds weights only"),
        (("--model", "model"), "expected --model to be model.pt (TorchScript)"),
        (("--model", "wrong.py:large"), "the model failed on 120 images of shape (1, 4, 4)"),
        (("--model", "wrong.py:large"), "1 channel of 4 x 4 pixels: if it takes images of another size, say --resize"),
        (("--model", "wrong.py:large"), "if it takes 3 channels, say --channels 3"),
        (("--model", "wrong.py:deep"), "expected the model to return (120, K) scores of K classes, or (120,)"),
        (("--model", "wrong.py:deep"), "found shape (120, 1, 4, 4): return one row of scores an image"),
        (("--model", "wrong.py:tuple_"), "expected the model to return a torch tensor, found an object of type tuple"),
        (("--model", "wrong.py:classes"), "floating-point scores, found torch.int64: return scores, not classes"),
        (("--model", "wrong.py:nan"), "the model returns NaN or infinite values for"),
        (("--model", "wrong.py:nan"), ".png"),
        (("--model", "wrong.py:batch"), "changes with the other images of its batch"),
        (("--model", "wrong.py:detached"), "the model gives no gradient with respect to its input"),
        (("--model", "wrong.py:flat"), "the model's gradient is zero at the first 120 images"),
        (("--model", "wrong.py:square"), "--attack exact is for linear models, expected scores W x + b"),
        (("--mean", "0.5,0.5,0.5"), "--mean gives 3 numbers, but the images have 1 channel"),
        (("--std", "0"), "expected --std above 0, found 0"),
        (("--device", "abacus"), "--device abacus cannot be used here"),
        (("--output-kind", "probability"), "--output-kind probability: expected values in [0, 1]"),
        (("--attack-setting", "steps=3"), "expected --attack-setting ATTACK.KEY=VALUE, found 'steps=3'"),
        (("--attack-setting", "fmn.steps=3"), "fmn is not asked for; --attack names exact"),
        (
            ("--attack", "fmn", "--attack-setting", "fmn.step=3"),
            "fmn has no setting 'step'. It has: steps, start_steps",
        ),
        (("--attack", "fmn", "--attack-setting", "fmn.steps=1.5"), "expected a whole number, found '1.5'"),
        (("--attack", "fmn", "--attack-setting", "fmn.step_size=x"), "expected a number, found 'x'"),
        (("--attack", "fmn", "--attack-setting", "fmn.steps=0"), "--attack-setting of fmn: expected steps >= 1"),
        (("--attack", "smoothing", "--attack-setting", "smoothing.samples=150"), "expected multiples of 100"),
        (("--json", "faces"), "expected faces to be a file, found a folder"),
        (("--output", "model.pt"), "expected model.pt to be a folder, found a file"),
        (("--checkpoint", "images.npy"), "--checkpoint images.npy holds something else than distances of this audit"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_failure_is_one_message_and_leaves_nothing_behind(
    robustness: Command, spoilt: Path, arguments: tuple[str, ...], message: str
) -> None:
    before = {path for path in spoilt.rglob("*") if "__pycache__" not in path.parts}
    given = arguments if {"--output", "--json"} & set(arguments) else (*arguments, "--output", "out")
    status, out, err = robustness(*given)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert {path for path in spoilt.rglob("*") if "__pycache__" not in path.parts} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--resize", "0"), "expected a side S or HxW in pixels, such as 64 or 48x64, found '0'"),
        (("--resize", "big"), "found 'big'"),
        (("--mean", "a,b"), "expected numbers separated by commas, one or one a channel, found 'a,b'"),
        (("--attack", "guess"), "invalid choice: 'guess'"),
        (("--min-group", "1"), "expected a whole number of at least 2, found '1'"),
        (("--budget", "0"), "expected a number above 0, found '0'"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_read(
    robustness: Command, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        robustness(*arguments)
    assert message in capsys.readouterr().err


def test_a_network_without_a_gradient_can_be_smoothed(robustness: Command, spoilt: Path) -> None:
    settings = ("--attack", "smoothing", "--attack-setting", "smoothing.samples=100", "--points", "40")
    status, out, err = robustness("--model", "wrong.py:detached", *settings, without=("--label",))
    assert (status, err) == (0, "")
    assert "lower bounds of the smoothed model" in out
