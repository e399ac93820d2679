"""Generated tables at the three commands of tables: every end is a result or a message that can be acted on.

FUZZ_CASES sets how many tables each command gets, FUZZ_SEED where they begin.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.cli.entry import main

CASES = int(os.environ.get("FUZZ_CASES", "12"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
STATUS = {"not rejected": 0, "rejected": 3, "inconclusive": 4}
MODELS = """
import torch
def network(x): return x.mean(-1)
def steep(x): return torch.sigmoid(1e6 * x.sum(-1))
def constant(x): return 0 * x.sum(-1) + 0.5
def decide(frame): return (frame.select_dtypes("number").sum(axis=1) > 0).astype(int).to_numpy()
def share(frame): return 1 / (1 + frame.select_dtypes("number").abs().sum(axis=1).to_numpy())
def lengths(frame): return frame.astype(str).map(len).sum(axis=1).to_numpy() % 2
"""


def column(rng: np.random.Generator, n: int) -> np.ndarray:
    """One column of any kind of values."""
    kinds: tuple[Callable[[], object], ...] = (
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, 5, n),
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300),
        lambda: np.full(n, 7),
        lambda: np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        lambda: np.where(rng.random(n) < 0.05, np.inf, rng.normal(size=n)),
        lambda: rng.choice(
            np.array(["a", "b", "ä, ö", 'quo"te', "", "NA", "01", " x ", "line\nbreak"], dtype=object), n
        ),
        lambda: rng.choice(np.array([True, False]), n),
        lambda: np.arange(n).astype(str),
        lambda: np.array(["2020-01-01"] * n, dtype="datetime64[D]"),
        lambda: np.array([1.5 if rng.random() < 0.9 else "?" for _ in range(n)], dtype=object),
        lambda: rng.random(n),
        lambda: (rng.random(n) < rng.choice([0.001, 0.5, 0.999])).astype(int),
        lambda: rng.integers(-(2**62), 2**62, n),
    )
    return np.asarray(kinds[rng.integers(len(kinds))]())


def table(rng: np.random.Generator) -> pd.DataFrame:
    """Rows with a label, a group, a score, a decision and features, of which any may be out of order."""
    n = int(rng.choice([0, 1, 2, 3, 8, 40, 150, 400], p=[0.01, 0.01, 0.02, 0.02, 0.04, 0.2, 0.35, 0.35]))
    merit = rng.normal(size=n)
    levels = np.array(["north", "south", "Ünder", "x=1", "a,b", "north "])[: rng.choice([1, 2, 2, 3, 6])]
    frame = pd.DataFrame(
        {
            "y": (merit + rng.normal(size=n) > rng.normal()).astype(int),
            "g": rng.choice(levels, n, p=rng.dirichlet(np.full(len(levels), 5.0))),
            "s": 1 / (1 + np.exp(-merit)),
            "d": (merit > 0).astype(int),
            "merit": merit,
        }
    )
    for extra in range(rng.choice([0, 0, 1, 3])):
        frame[("age", "größe", "zip code")[extra]] = column(rng, n)
    for name in frame.columns:
        if rng.random() < 0.04:
            frame[name] = column(rng, n)
    return frame.sample(frac=1, random_state=int(rng.integers(2**31))) if rng.random() < 0.2 else frame


def written(rng: np.random.Generator, frame: pd.DataFrame, path: Path) -> Path:
    """The table in one of the ways in which people keep tables."""
    if rng.random() < 0.25:
        file = path / "rows.parquet"
        try:
            frame.to_parquet(file, index=False)
            return file
        except (TypeError, ValueError, OverflowError):
            pass  # mixed types have no Parquet
    file = path / "rows.csv"
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "latin-1", "utf-16"], p=[0.8, 0.15, 0.03, 0.02]))
    frame.to_csv(
        file, index=False, encoding=encoding, sep=str(rng.choice([",", ";"], p=[0.97, 0.03])), errors="replace"
    )
    if rng.random() < 0.02:
        file.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 2])
    return file


def permutation(rng: np.random.Generator, file: Path) -> list[str]:
    metrics = ["auc", "tpr", "fpr", "precision", "selection_rate", "mean_error", "log_loss", "accuracy", "correlation"]
    chosen = ",".join(rng.choice(metrics, rng.integers(1, 4), replace=False))
    given = ["--predictions", str(file), "--label", "y", "--group", "g", "--score", "s", "--metric", chosen]
    given += ["--prediction", "d"] if rng.random() < 0.9 else []
    given += ["--attribute", "merit"] if "correlation" in chosen else []
    options = (["--draws", "999"], ["--threshold", "0.5"], ["--pairs"], ["--method", "studentized"],
               ["--positive", "1"], ["--correct", "holm"], ["--attribute", "merit"])  # fmt: skip
    return given + [word for option in options if rng.random() < 0.2 for word in option]


def loss_ratio(rng: np.random.Generator, file: Path) -> list[str]:
    model = f"{file.parent / 'models.py'}:{rng.choice(['network', 'steep', 'constant'], p=[0.8, 0.1, 0.1])}"
    given = ["--data", str(file), "--label", "y", "--sensitive", "g=south", "--model", model, "--steps", "5"]
    given += ["--standardize", "continuous"]
    options = (["--standardize", "none"], ["--drop", "s,d"], ["--points", "20"], ["--positive", "1"])  # fmt: skip
    return given + [word for option in options if rng.random() < 0.4 for word in option]


def fliptest(rng: np.random.Generator, file: Path) -> list[str]:
    model = f"{file.parent / 'models.py'}:{rng.choice(['decide', 'share', 'lengths'])}"
    given = ["--data", str(file), "--group", "g", "--source", "south", "--target", "north", "--predict", model]
    options = (["--label", "y"], ["--drop", "s,d"], ["--reverse"], ["--map", "exact"], ["--limit", "30"],
               ["--id", "merit"], ["--threshold", "0.5"], ["--null-draws", "0"])  # fmt: skip
    return given + [word for option in options if rng.random() < 0.3 for word in option]


@pytest.mark.parametrize("case", range(SEED, SEED + CASES))
@pytest.mark.parametrize(("command", "arguments"), [("permutation", permutation), ("loss-ratio", loss_ratio),
                                                    ("fliptest", fliptest)])  # fmt: skip
def test_every_end_is_a_result_or_a_message(
    command: str,
    arguments: Callable[[np.random.Generator, Path], list[str]],
    case: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng([case, len(command)])
    (tmp_path / "models.py").write_text(MODELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file = written(rng, table(rng), tmp_path)
        given = ["audit", command, *arguments(rng, file), "--json", str(tmp_path / "audit.json"), "--gate"]
        try:
            status = main(given)
        except SystemExit as refused:  # by argparse
            status = int(refused.code or 0)
    told = capsys.readouterr()
    if status == 2:
        assert "error: " in told.err
        assert "Traceback" not in told.err
        # What is wrong has a place: a column, an option or the file.
        assert any(place in told.err for place in ("'", "--", file.name)), told.err
        assert not (tmp_path / "audit.json").exists()
        return
    document = json.loads((tmp_path / "audit.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    verdict = document["verdict"]
    assert status == STATUS[verdict["outcome"]], told.err
    assert "nan" not in verdict["sentence"].lower().split()
    if verdict["outcome"] == "inconclusive":
        assert verdict["reason"]
