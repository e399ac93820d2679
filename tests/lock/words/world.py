"""The data and models of the calls: small, and made by formulas, so every machine prints the same digits."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import fairness_audits as fa
from tests.cli.places import scripted

PEOPLE, ROWS, IMAGES, SIDE = 400, 160, 48, 4


def spread(n: int, step: float) -> np.ndarray:
    """Return n numbers spread evenly over [-1, 1), in an order that looks random."""
    return np.asarray(2 * (np.arange(1, n + 1) * step % 1) - 1)


def people() -> pd.DataFrame:
    """Outputs of models about people. ``fair`` is alike for both sexes, ``unfair`` is not, ``near`` hardly is."""
    i = np.arange(PEOPLE)
    female, pair = i % 2 == 0, i // 2
    frame = pd.DataFrame(
        {
            "sex": np.where(female, "f", "m"),
            "town": np.array(["x", "y", "z"])[pair % 3],
            "age": 20 + i * 7 % 60,
            "person": pair // 2 * 2 + i % 2,
            "weight": 1 + pair % 3,
            "y": (i * 7 % 20 < 8).astype(int),
            "fair": (pair * 3 % 10 < 5).astype(int),
            "near": np.where(female, pair % 20 < 9, pair % 20 < 10).astype(int),
            "unfair": np.where(female, pair % 10 < 3, pair % 10 < 7).astype(int),
            "score": ((i * 37 % 101) + np.where(female, 0, 20)) / 121,
            "other": ((i * 61 % 101) + 10) / 121,
        }
    )
    frame["grade"] = np.where(frame["y"] == 1, "pass", "fail")
    frame["all"] = 1
    return frame


def rows() -> pd.DataFrame:
    """Inputs of models: ``proxy`` tells the sexes apart, ``merit`` does not; the label depends on both."""
    male = np.arange(ROWS) % 2 == 1
    merit, noise = spread(ROWS, 0.6180339887), spread(ROWS, 0.7320508076)
    proxy = np.where(male, 0.8, -0.8) + 0.5 * spread(ROWS, 0.4142135624)
    return pd.DataFrame(
        {
            "merit": merit.round(3),
            "proxy": proxy.round(3),
            "member": np.arange(ROWS) // 2 % 2,
            "region": np.array(["north", "south", "west"])[np.arange(ROWS) // 3 % 3],
            "sex": np.where(male, "male", "female"),
            "hired": (merit + 0.8 * proxy + noise > 0).astype(int),
            "grade": np.array(["low", "middle", "high"])[np.digitize(merit + 0.8 * proxy + noise, [-0.5, 0.5])],
        }
    )


def images() -> tuple[np.ndarray, pd.DataFrame]:
    """Grey images (n, 4, 4); those of women have half the contrast."""
    female = np.arange(IMAGES) % 2 == 0
    greys = 0.4 * spread(IMAGES * SIDE**2, 0.6180339887).reshape(IMAGES, SIDE, SIDE)
    pixels = 0.5 + np.where(female, 0.5, 1.0)[:, None, None] * greys
    place = np.array(["north", "south", "west"])[np.arange(IMAGES) // 2 % 3]
    return pixels, pd.DataFrame({"sex": np.where(female, "female", "male"), "place": place})


class Linear(torch.nn.Module):
    """w'x + b, of rows or of images."""

    def __init__(self, weight: list[float], bias: float = 0.0) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(len(weight), 1)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([weight]))
            self.layer.bias.fill_(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.flatten(1))  # type: ignore[no-any-return]


def picture() -> Linear:
    """Return a network of images whose scores are 0 on a grey image."""
    weight = spread(SIDE**2, 0.4142135624).tolist()
    return Linear(weight, -0.5 * sum(weight))


def smiles() -> np.ndarray:
    """Return classes of the images, as the network sees them for all but each eleventh."""
    with torch.no_grad():
        found = picture()(torch.tensor(images()[0], dtype=torch.float32))[:, 0].numpy() > 0
    return (found ^ (np.arange(IMAGES) % 11 == 0)).astype(int)


def convolution() -> torch.nn.Module:
    """Return a network of images with three classes."""
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(18, 3))
    with torch.no_grad():
        for one in network.parameters():
            one.copy_(torch.tensor(spread(one.numel(), 0.7320508076)).reshape(one.shape))
    return network.eval()


class Several(torch.nn.Module):
    """Wx + b, a score of each class."""

    def __init__(self, weight: list[list[float]], bias: list[float]) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(len(weight[0]), len(weight))
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor(weight))
            self.layer.bias.copy_(torch.tensor(bias))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.flatten(1))  # type: ignore[no-any-return]


def by_region(frame: pd.DataFrame) -> pd.Series:
    """Return scores of rows with a category."""
    return frame["merit"] + frame["proxy"] + (frame["region"] == "north")


MODELS = """
import torch
def accepts(frame): return frame["merit"] + frame["proxy"] > 0
def filled(frame): return frame["merit"].fillna(0) + frame["proxy"] > 0
def jumps(frame): return (frame["merit"].round(1) + frame["proxy"].round(1) > 0).astype(int)
def probability(x): return torch.sigmoid(x[:, 0] + x[:, 1])
"""


def names() -> dict[str, Any]:
    """Return what the calls in Python may use."""
    table, (pixels, groups) = rows(), images()
    inputs = table[["merit", "proxy", "member"]]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["member", "region"]), remainder="passthrough"
    )
    coder = make_pipeline(encoder, LogisticRegression())
    return {
        **{"fa": fa, "np": np, "pd": pd, "torch": torch, "Linear": Linear},
        **{one.__name__: one for one in (LinearRegression, LogisticRegression, LinearSVC, FixedThresholdClassifier)},
        **{"people": people(), "rows": table, "inputs": inputs, "images": pixels, "groups": groups},
        **{"network": Linear([1.0, 1.0, 0.0]), "blind": Linear([1.0, 0.0, 0.0])},
        **{"picture": picture(), "smiles": smiles(), "convolution": convolution()},
        **{
            "opposite": Linear([-1.0, -1.0, 0.0]),
            "steep": Linear([900.0, 900.0, 0.0]),
            "even": Linear([1.0, 0.1, 0.0]),
        },
        "tree": DecisionTreeClassifier(max_depth=3, random_state=0).fit(inputs, table["hired"]),
        "three": Several([[-1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]], [0.0, 0.3, 0.0]),
        "by_region": by_region,
        "coded": coder.fit(table[["merit", "member", "region"]], table["hired"]),
        "logistic": LogisticRegression().fit(inputs, table["hired"]),
    }


def write_files() -> None:
    """Write the files that commands read into the current folder."""
    people().to_csv("people.csv", index=False)
    spaced = people()[["sex", "score", "sex"]].to_csv(index=False, sep=";", decimal=",", float_format="%.3f")
    Path("written.csv").write_text(spaced.replace(";", "; "))
    rows().to_csv("rows.csv", index=False)
    scripted(Linear([1.0, 1.0, 0.0]), "network.pt")
    merit, sex = rows()["merit"], rows()["sex"]
    rows().assign(merit=10000 * merit).to_csv("wide.csv", index=False)
    gaps = rows().assign(merit=merit.where(merit.index % 9 > 0), sex=sex.where(sex.index % 20 > 0, "-"))
    gaps.to_csv("gaps.csv", index=False)
    write_images()
    np.save("directions.npy", np.array([[0.0, 1.0, 0.0]]))
    Path("models.py").write_text(MODELS)


def write_images() -> None:
    """Write a folder of images, one of them unreadable and one turned, and the table of their groups."""
    (pixels, table), folder = images(), Path("faces")
    folder.mkdir(exist_ok=True)
    files = [f"{number:02d}.png" for number in range(IMAGES)]
    turned = Image.Exif()
    turned[0x0112] = 3
    for number, (image, name) in enumerate(zip(pixels, files, strict=True)):
        made = Image.fromarray((255 * image).round().astype(np.uint8))
        made.save(folder / name, exif=turned if number == 1 else Image.Exif())
    (folder / files[2]).write_text("no image")
    table.assign(smiles=smiles()).assign(file=files).to_csv("attributes.csv", index=False)
    scripted(picture(), "picture.pt")
