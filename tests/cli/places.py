"""Simulated people and images, networks whose fairness is known by their formula, and audits."""

import json
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from fairness_audits.cli.entry import main, parser, values_of
from fairness_audits.results.result import Result

N = 300
FEATURES = ("merit", "proxy", "member")
LEDGER = 400


def linear_network(*weights: float) -> torch.nn.Module:
    """A network with logit w'x for class 1, in two columns (-w'x / 2, w'x / 2)."""
    network = torch.nn.Linear(len(weights), 2)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[-w / 2 for w in weights], [w / 2 for w in weights]]))
        network.bias.zero_()
    return network


def scripted(network: torch.nn.Module, path: Path | str) -> None:
    """Write a network as a TorchScript archive."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # deprecated to write, but users have such files
        torch.jit.script(network).save(str(path))


def applicants() -> pd.DataFrame:
    """``proxy`` tells the sexes apart, ``merit`` and ``member`` do not; the label depends on merit and proxy."""
    rng = np.random.default_rng(7)
    sex = np.arange(N) % 2
    merit = rng.normal(size=N)
    proxy = 1.6 * (sex - 0.5) + 0.6 * rng.normal(size=N)
    label = (merit + 0.8 * proxy + 0.5 * rng.logistic(size=N) > 0).astype(int)
    return pd.DataFrame(
        {
            "merit": merit,
            "proxy": proxy,
            "member": (rng.random(N) < 0.5).astype(int),
            "sex": np.where(sex == 1, "male", "female"),
            "region": np.array(["north", "south", "west"])[np.arange(N) % 3],
            "hired": label,
        }
    )


MODELS = """
import numpy as np
def experienced(frame): return frame["experience"] >= 1.5
def logit(frame): return frame["experience"] + 0.8 * frame["tests"] + 0.5 * (frame["region"] == "north") - 1
def probability(frame): return 1 / (1 + np.exp(-logit(frame)))
def by_sex(frame): return frame["sex"] == "male"
"""


def candidates() -> pd.DataFrame:
    """Men have more ``experience`` than women, in ``tests`` and ``region`` the sexes are alike; 10 rows are neither."""
    rng = np.random.default_rng(3)
    count = 170
    sex = np.array(["female", "male"])[rng.permutation(count) % 2].astype(object)
    sex[rng.choice(count, 10, replace=False)] = "unknown"
    table = pd.DataFrame(
        {
            "person": [f"p{number:03d}" for number in range(count)],
            "sex": sex,
            "experience": rng.normal(size=count) + 1.5 * (sex == "male"),
            "tests": rng.integers(0, 4, count),
            "region": rng.choice(["north", "south", "west"], count),
        }
    )
    return table.assign(hired=(table["experience"] + 0.8 * table["tests"] + rng.normal(size=count) > 1).astype(int))


FACES, SIDE = 120, 4
WEIGHT = np.random.default_rng(1).normal(size=SIDE * SIDE)
BIAS = -0.5 * float(WEIGHT.sum())
NETWORKS = f"""
import torch
WEIGHT, BIAS = {WEIGHT.tolist()}, {BIAS}
def ball(x):
    return 0.3 - (x - 0.5).flatten(1).norm(dim=1)
def thirds(x):
    z = x.mean(dim=(1, 2, 3))
    return torch.stack((0 * z, 20 * z - 8, 40 * z - 20), dim=1)
def probability(x):
    return torch.sigmoid(x.flatten(1) @ torch.tensor(WEIGHT, dtype=torch.float32) + BIAS)
"""


class Logit(torch.nn.Module):
    """w'x + b of class 1 of pixels x = std z + mean for inputs z."""

    def __init__(self, mean: float, std: float) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(SIDE * SIDE, 1)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor(std * WEIGHT)[None])
            self.layer.bias.fill_(BIAS + mean * float(WEIGHT.sum()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = self.layer(x.flatten(1))
        return z


def image_network(mean: float = 0.0, std: float = 1.0) -> torch.nn.Module:
    return Logit(mean, std).eval()


def faces() -> tuple[np.ndarray, pd.DataFrame]:
    """Images (n, h, w) uint8; the first third are women, whose greys are half as far from the middle as men's.

    The network is right about all but 8.
    """
    rng = np.random.default_rng(5)
    women = np.arange(FACES) < FACES // 3
    spread = np.where(women, 0.5, 1.0)[:, None, None]
    greys = 127.5 + spread * rng.uniform(-90, 90, (FACES, SIDE, SIDE))
    images = np.clip(greys, 0, 255).round().astype(np.uint8)
    label = ((images.reshape(FACES, -1) / 255) @ WEIGHT + BIAS > 0).astype(int)
    label[rng.choice(FACES, 8, replace=False)] ^= 1
    table = pd.DataFrame(
        {
            "file": [f"{'ab'[number % 2]}/{number:03d}.png" for number in range(FACES)],
            "smiles": label,
            "sex": np.where(women, "female", "male"),
            "place": np.array(["north", "south", "west"])[rng.permutation(FACES) % 3],
        }
    )
    return images, table


APPLICANTS, CANDIDATES, (IMAGES, TABLE) = applicants(), candidates(), faces()


def build_desk(folder: Path) -> None:
    """rows.parquet, rows.csv, an unfair and a fair TorchScript network, the proxy's direction."""
    APPLICANTS.to_parquet(folder / "rows.parquet")
    APPLICANTS.to_csv(folder / "rows.csv", index=False)
    scripted(linear_network(1.0, 1.0, 0.0), folder / "unfair.pt")
    scripted(linear_network(1.0, 0.0, 0.0), folder / "fair.pt")
    np.save(folder / "directions.npy", np.array([[0.0, 1.0, 0.0]]))


def build_ledger(folder: Path) -> None:
    """preds.parquet, in which men have higher scores than women, whatever the label."""
    rng = np.random.default_rng(2)
    label, sex = rng.integers(0, 2, LEDGER), np.arange(LEDGER) % 2
    frame = pd.DataFrame(
        {
            "sex": np.where(sex == 1, "male", "female"),
            "age": rng.integers(18, 90, LEDGER),
            "y": label,
            "grade": np.where(label == 1, "pass", "fail"),
            "p": np.clip(0.5 + 0.3 * (label - 0.5) + 0.35 * (sex - 0.5) + 0.2 * rng.normal(size=LEDGER), 0, 1),
            "d": rng.integers(0, 2, LEDGER),
            "logit": rng.normal(size=LEDGER),
        }
    )
    frame.to_parquet(folder / "preds.parquet")


def build_office(folder: Path) -> None:
    """rows.parquet, and models.py with functions of a data frame."""
    CANDIDATES.to_parquet(folder / "rows.parquet")
    (folder / "models.py").write_text(MODELS)


def build_studio(folder: Path) -> None:
    """faces/, attributes.csv, model.pt and nets.py."""
    for image, name in zip(IMAGES, TABLE["file"], strict=True):
        (folder / "faces" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / "faces" / name)
    TABLE.to_csv(folder / "attributes.csv", index=False)
    scripted(image_network(), folder / "model.pt")
    (folder / "nets.py").write_text(NETWORKS)


BUILDERS = {
    "loss-ratio": build_desk,
    "permutation": build_ledger,
    "fliptest": build_office,
    "robustness": build_studio,
}
USUAL = {
    "loss-ratio": "--data rows.parquet --label hired --features merit,proxy,member --model unfair.pt --steps 60",
    "permutation": "--predictions preds.parquet --label y --draws 99",
    "fliptest": "--data rows.parquet --group sex --source female --target male --predict models.py:probability "
    "--map exact --id person --label hired --null-draws 0 --refits 0",
    "robustness": "--model model.pt --images faces --partition attributes.csv --label smiles --attack exact "
    "--bootstraps 200 --permutations 999",
}
"""What each audit is given in its folder unless a test says otherwise."""


def asked(name: str, arguments: tuple[str, ...]) -> list[str]:
    """The words of a command: the ``arguments`` beside the usual ones; ``no--label`` leaves that one out."""
    given = [word for word in arguments if not word.startswith("no--")]
    left_out, usual = {word.removeprefix("no") for word in arguments}, USUAL.get(name, "").split()
    pairs = zip(usual[::2], usual[1::2], strict=True)
    return [name, *(word for pair in pairs if pair[0] not in left_out for word in pair), *given]


def ended(words: Sequence[str]) -> tuple[int, str, str]:
    """A command in this process: exit status, stdout, stderr."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as left:  # by argparse
            status = int(left.code or 0)
    return status, out.getvalue(), err.getvalue()


def run(name: str, *arguments: str) -> tuple[int, str, str]:
    """An audit in this process, beside the usual arguments."""
    return ended(asked(name, arguments))


def json_of(name: str, *arguments: str) -> dict[str, Any]:
    """The JSON of an audit that succeeds."""
    status, _, err = run(name, *arguments, "--json", "made.json")
    assert (status, err) == (0, "")
    return dict(json.loads(Path("made.json").read_text()))


def undrawn(name: str, *arguments: str) -> dict[str, Any]:
    """The JSON of an audit that succeeds, beside its other files in the folder out; figures are empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "fairness_audits.results.render.save_figure", lambda figure, stem: stem.with_suffix(".png").touch()
        )
        return json_of(name, *arguments, "--output", "out")


def documented(name: str, *arguments: str) -> Result:
    """The result of an audit, in no rendering."""
    parsed = parser().parse_args(asked(name, arguments))
    found: Result = parsed.command.run(values_of(parsed))
    return found
