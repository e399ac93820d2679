"""A network trained on digits, and Foolbox."""

import importlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits


@dataclass(frozen=True)
class Pictures:
    """A network and images (n, c, h, w) that it puts into the classes ``label`` (n,)."""

    network: torch.nn.Module
    images: np.ndarray
    label: np.ndarray

    def first(self, n: int = 48) -> tuple[torch.nn.Module, np.ndarray, np.ndarray]:
        """What is attacked: the network and the first so many images and labels."""
        return self.network, self.images[:n], self.label[:n]


@pytest.fixture(scope="session")
def digits() -> Pictures:
    """A small convolutional network trained on handwritten digits, and 48 test images that it gets right."""
    bunch = load_digits()
    images = (bunch.images[:, None] / 16).astype(np.float32)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 12, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(12, 24, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(24 * 16, 10),
    )
    x, y = torch.tensor(images[:1200]), torch.tensor(bunch.target[:1200])
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    for _ in range(6):
        for rows in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    network.eval()
    rows = np.arange(1200, 1300)
    with torch.no_grad():
        rows = rows[network(torch.tensor(images[rows])).argmax(1).numpy() == bunch.target[rows]][:48]
    return Pictures(network, images[rows], bunch.target[rows])


@pytest.fixture(scope="session")
def foolbox() -> Any:
    """The library, whose import warns of what scipy will drop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return importlib.import_module("foolbox")
