"""Simulated applicants, and networks whose fairness is known by their formula."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

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


@pytest.fixture
def audit(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``audit loss-ratio`` on the desk's rows in this process: exit status, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        given = list(arguments)
        for option, value in (("--data", "rows.parquet"), ("--label", "hired"), ("--steps", "60")):
            if option not in given:
                given += [option, value]
        if "--features" not in given and "--drop" not in given:
            given += ["--features", ",".join(FEATURES)]
        capsys.readouterr()
        status = main(["audit", "loss-ratio", *given])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def document(audit: Command, desk: Path) -> Callable[..., dict[str, Any]]:
    """Run an audit that succeeds and read its JSON."""

    def run(*arguments: str) -> dict[str, Any]:
        status, _, err = audit(*arguments, "--json", "made.json")
        assert (status, err) == (0, "")
        loaded: dict[str, Any] = json.loads((desk / "made.json").read_text())
        return loaded

    return run
