"""Simulated applicants and images, and networks whose fairness is known by their formula."""

import json
import shutil
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from pipeline.cli.entry import audited, main, parser, settings_of
from pipeline.cli.result import Result

N = 300
FEATURES = ("merit", "proxy", "member")
LEDGER = 400


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


def linear_network(*weights: float) -> torch.nn.Module:
    """A network with logit w'x for class 1, in two columns (-w'x / 2, w'x / 2)."""
    network = torch.nn.Linear(len(weights), 2)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[-w / 2 for w in weights], [w / 2 for w in weights]]))
        network.bias.zero_()
    return network


def scripted(network: torch.nn.Module, path: Path) -> None:
    """Write a network as a TorchScript archive."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # deprecated to write, but users have such files
        torch.jit.script(network).save(str(path))


@pytest.fixture
def linear() -> Linear:
    """A maker of linear networks."""
    return linear_network


@pytest.fixture
def save_scripted() -> Scripted:
    """A writer of TorchScript archives."""
    return scripted


def build_desk(folder: Path, applicants: pd.DataFrame) -> None:
    """rows.parquet, rows.csv, an unfair and a fair TorchScript network, the proxy's direction."""
    applicants.to_parquet(folder / "rows.parquet")
    applicants.to_csv(folder / "rows.csv", index=False)
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


def build_office(folder: Path, candidates: pd.DataFrame) -> None:
    """rows.parquet, rows.csv, and models.py with functions of a data frame."""
    candidates.to_parquet(folder / "rows.parquet")
    candidates.to_csv(folder / "rows.csv", index=False)
    (folder / "models.py").write_text(MODELS)


def build_studio(folder: Path, faces: tuple[np.ndarray, pd.DataFrame]) -> None:
    """faces/, images.npy, attributes.csv, model.pt and nets.py."""
    images, table = faces
    for image, name in zip(images, table["file"], strict=True):
        (folder / "faces" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / "faces" / name)
    np.save(folder / "images.npy", images[:, None])
    table.to_csv(folder / "attributes.csv", index=False)
    scripted(Logit(0.0, 1.0, 1).eval(), folder / "model.pt")
    (folder / "nets.py").write_text(NETWORKS)


@pytest.fixture(scope="session")
def built(
    tmp_path_factory: pytest.TempPathFactory,
    applicants: pd.DataFrame,
    candidates: pd.DataFrame,
    faces: tuple[np.ndarray, pd.DataFrame],
) -> Callable[[str], Path]:
    """The folder that an audit works in, made once: to be copied, or to be left as it is."""
    builders: dict[str, Callable[[Path], None]] = {
        "loss-ratio": partial(build_desk, applicants=applicants),
        "permutation": build_ledger,
        "fliptest": partial(build_office, candidates=candidates),
        "robustness": partial(build_studio, faces=faces),
    }

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        builders[name](folder)
        return folder

    return made


@pytest.fixture
def working(built: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Go to a copy of an audit's folder."""

    def to(name: str) -> Path:
        shutil.copytree(built(name), tmp_path, dirs_exist_ok=True)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        return tmp_path

    return to


def folder_of(name: str) -> Any:
    """The fixture that is a copy of an audit's folder."""

    @pytest.fixture
    def folder(working: Callable[[str], Path]) -> Path:
        return working(name)

    return folder


desk, ledger, office, studio = map(folder_of, ("loss-ratio", "permutation", "fliptest", "robustness"))


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


def asked(name: str, arguments: tuple[str, ...], without: tuple[str, ...] = ()) -> list[str]:
    """The words of a command: the ``arguments`` beside the usual ones, but for options ``without``."""
    left_out = {*arguments, *without}
    usual = [word for option, value in USUAL[name].items() if option not in left_out for word in (option, value)]
    return ["audit", name, *usual, *arguments]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run an audit by name in this process: exit status, stdout, stderr. Options ``without`` are left out."""

    def made(name: str, *arguments: str, without: tuple[str, ...] = ()) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(asked(name, arguments, without))
        out, err = capsys.readouterr()
        return status, out, err

    return made


@pytest.fixture
def documented() -> Callable[..., Result]:
    """The document of an audit by name, in no rendering."""

    def made(name: str, *arguments: str, without: tuple[str, ...] = ()) -> Result:
        parsed = parser().parse_args(asked(name, arguments, without))
        return audited(parsed.module, settings_of(parsed))

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


def bound(maker: str, name: str, folder: str) -> Any:
    """The fixture ``maker``, run or found, of one audit in a copy of its folder."""

    @pytest.fixture
    def of_one(request: pytest.FixtureRequest) -> Callable[..., Any]:
        request.getfixturevalue(folder)
        return partial(request.getfixturevalue(maker), name)

    return of_one


audit, document = (bound(maker, "loss-ratio", "desk") for maker in ("run", "found"))
fliptest, flipped = (bound(maker, "fliptest", "office") for maker in ("run", "found"))
permutation, robustness = bound("run", "permutation", "ledger"), bound("run", "robustness", "studio")


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
    return lambda mean=0.0, std=1.0, columns=1: Logit(mean, std, columns).eval()


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
