"""Simulated applicants and images, and networks whose fairness is known by their formula."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from pipeline.cli.entry import main

N = 300
FEATURES = ("merit", "proxy", "member")


@pytest.fixture(scope="session")
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


Linear = Callable[..., torch.nn.Module]
Scripted = Callable[[torch.nn.Module, Path], None]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def linear() -> Linear:
    """A maker of networks with logit w'x for class 1, in two columns (-w'x / 2, w'x / 2)."""

    def make(*weights: float) -> torch.nn.Module:
        network = torch.nn.Linear(len(weights), 2)
        with torch.no_grad():
            network.weight.copy_(torch.tensor([[-w / 2 for w in weights], [w / 2 for w in weights]]))
            network.bias.zero_()
        return network

    return make


@pytest.fixture
def save_scripted() -> Scripted:
    """Write a network as a TorchScript archive."""

    def save(network: torch.nn.Module, path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # deprecated to write, but users have such files
            torch.jit.script(network).save(str(path))

    return save


@pytest.fixture
def desk(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    applicants: pd.DataFrame,
    linear: Linear,
    save_scripted: Scripted,
) -> Path:
    """A folder to work in: rows.parquet, rows.csv, an unfair and a fair TorchScript network, the proxy's direction."""
    monkeypatch.chdir(tmp_path)
    applicants.to_parquet(tmp_path / "rows.parquet")
    applicants.to_csv(tmp_path / "rows.csv", index=False)
    save_scripted(linear(1.0, 1.0, 0.0), tmp_path / "unfair.pt")
    save_scripted(linear(1.0, 0.0, 0.0), tmp_path / "fair.pt")
    np.save(tmp_path / "directions.npy", np.array([[0.0, 1.0, 0.0]]))
    return tmp_path


USUAL: dict[str, dict[str, str]] = {
    "loss-ratio": {
        "--data": "rows.parquet",
        "--label": "hired",
        "--features": ",".join(FEATURES),
        "--model": "unfair.pt",
        "--steps": "60",
    },
    "permutation": {"--predictions": "preds.parquet", "--label": "y", "--draws": "99"},
    "fliptest": {
        "--data": "rows.parquet",
        "--group": "sex",
        "--source": "female",
        "--target": "male",
        "--predict": "models.py:probability",
        "--map": "exact",
        "--id": "person",
        "--label": "hired",
        "--null-draws": "0",
    },
    "robustness": {
        "--model": "model.pt",
        "--images": "faces",
        "--partition": "attributes.csv",
        "--label": "smiles",
        "--attack": "exact",
        "--bootstraps": "200",
        "--permutations": "999",
    },
}
"""What each audit is given in its folder unless a test says otherwise."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run an audit by name in this process: exit status, stdout, stderr. Options ``without`` are left out."""

    def made(name: str, *arguments: str, without: tuple[str, ...] = ()) -> tuple[int, str, str]:
        left_out = {*arguments, *without}
        given = [word for option, value in USUAL[name].items() if option not in left_out for word in (option, value)]
        capsys.readouterr()
        status = main(["audit", name, *given, *arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return made


@pytest.fixture
def found(run: Command) -> Callable[..., dict[str, Any]]:
    """Run an audit that succeeds and read its JSON."""

    def made(name: str, *arguments: str, without: tuple[str, ...] = ()) -> dict[str, Any]:
        status, _, err = run(name, *arguments, "--json", "made.json", without=without)
        assert (status, err) == (0, "")
        loaded: dict[str, Any] = json.loads(Path("made.json").read_text())
        return loaded

    return made


@pytest.fixture
def audit(run: Command, desk: Path) -> Command:
    """Run ``audit loss-ratio`` at the desk."""
    return partial(run, "loss-ratio")


@pytest.fixture
def document(found: Callable[..., dict[str, Any]], desk: Path) -> Callable[..., dict[str, Any]]:
    """The JSON of a loss-ratio audit that succeeds."""
    return partial(found, "loss-ratio")


LEDGER = 400


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in: preds.parquet, in which men have higher scores than women, whatever the label."""
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
    monkeypatch.chdir(tmp_path)
    frame.to_parquet("preds.parquet")
    return tmp_path


@pytest.fixture
def permutation(run: Command, ledger: Path) -> Command:
    """Run ``audit permutation`` at the ledger."""
    return partial(run, "permutation")


MODELS = """
import numpy as np
def experienced(frame): return frame["experience"] >= 1.5
def logit(frame): return frame["experience"] + 0.8 * frame["tests"] + 0.5 * (frame["region"] == "north") - 1
def probability(frame): return 1 / (1 + np.exp(-logit(frame)))
def by_sex(frame): return frame["sex"] == "male"
"""


@pytest.fixture(scope="session")
def candidates() -> pd.DataFrame:
    """Men have more ``experience`` than women, in ``tests`` and ``region`` the sexes are alike; 10 rows are neither."""
    rng = np.random.default_rng(3)
    count = 170
    sex = np.array(["female", "male"])[rng.permutation(count) % 2].astype(object)
    sex[rng.choice(count, 10, replace=False)] = "unknown"
    return pd.DataFrame(
        {
            "person": [f"p{number:03d}" for number in range(count)],
            "sex": sex,
            "experience": rng.normal(size=count) + 1.5 * (sex == "male"),
            "tests": rng.integers(0, 4, count),
            "region": rng.choice(["north", "south", "west"], count),
            "hired": rng.integers(0, 2, count),
        }
    )


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidates: pd.DataFrame) -> Path:
    """A folder to work in: rows.parquet, rows.csv, and models.py with functions of a data frame."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    candidates.to_parquet(tmp_path / "rows.parquet")
    candidates.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "models.py").write_text(MODELS)
    return tmp_path


@pytest.fixture
def fliptest(run: Command, office: Path) -> Command:
    """Run ``audit fliptest`` from women to men in the office."""
    return partial(run, "fliptest")


@pytest.fixture
def flipped(found: Callable[..., dict[str, Any]], office: Path) -> Callable[..., dict[str, Any]]:
    """The JSON of a FlipTest that succeeds."""
    return partial(found, "fliptest")


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
    """w'x + b of class 1, in one column, or in two, of pixels x = std z + mean for inputs z."""

    def __init__(self, mean: float, std: float, columns: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(SIDE * SIDE, 1)
        self.columns = columns
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor(std * WEIGHT)[None])
            self.layer.bias.fill_(BIAS + mean * float(WEIGHT.sum()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = self.layer(x.flatten(1))
        return z if self.columns == 1 else torch.cat((-z / 2, z / 2), dim=1)


@pytest.fixture
def image_network() -> Linear:
    """A maker of linear networks of images."""

    def make(mean: float = 0.0, std: float = 1.0, columns: int = 1) -> torch.nn.Module:
        return Logit(mean, std, columns).eval()

    return make


@pytest.fixture(scope="session")
def faces() -> tuple[np.ndarray, pd.DataFrame]:
    """Images (n, h, w) uint8; the first third are women, whose greys are half as far from the middle as men's.

    The network of ``image_network`` is right about all but 8.
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
            "height": rng.normal(size=FACES),
        }
    )
    return images, table


@pytest.fixture
def studio(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    faces: tuple[np.ndarray, pd.DataFrame],
    image_network: Linear,
    save_scripted: Scripted,
) -> Path:
    """A folder to work in: faces/, images.npy, attributes.csv, model.pt and nets.py."""
    monkeypatch.chdir(tmp_path)
    images, table = faces
    for image, name in zip(images, table["file"], strict=True):
        (tmp_path / "faces" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "faces" / name)
    np.save(tmp_path / "images.npy", images[:, None])
    table.to_csv(tmp_path / "attributes.csv", index=False)
    save_scripted(image_network(), tmp_path / "model.pt")
    (tmp_path / "nets.py").write_text(NETWORKS)
    return tmp_path


@pytest.fixture
def robustness(run: Command, studio: Path) -> Command:
    """Run ``audit robustness`` in the studio."""
    return partial(run, "robustness")


@pytest.fixture
def measured(
    robustness: Command, studio: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[dict[str, Any], pd.DataFrame]]:
    """Run a robustness audit that succeeds, without drawing: its JSON and its table of images."""

    def undrawn(figure: Any, stem: Path) -> None:
        stem.with_suffix(".png").touch()

    monkeypatch.setattr("pipeline.cli.delivery.save_figure", undrawn)

    def run(*arguments: str, without: tuple[str, ...] = ()) -> tuple[dict[str, Any], pd.DataFrame]:
        status, _, err = robustness(*arguments, "--output", "out", without=without)
        assert (status, err) == (0, "")
        return json.loads((studio / "out" / "audit.json").read_text()), pd.read_csv(studio / "out" / "distances.csv")

    return run
