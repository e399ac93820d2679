"""Simulated predictions as files and as a data frame, and the engines that can be used here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.tabulate.spark_engine import LOCAL, unavailable

N = 600
PARTS = 3


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Scores in hundredths, so that many stand at the edges of bins; three races, six ages, decisions, persons."""
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, N)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["male", "female"], N),
            "race": rng.choice(["a", "b", "c \"d' \\e"], N),
            "age": rng.choice([9, 10, 11, 30, 40, 100], N),
            "y": label,
            "p": np.round(np.clip(rng.normal(0.4 + 0.2 * label, 0.3), 0, 1), 2),
            "logit": rng.normal(size=N),
            "made": rng.integers(0, 2, N),
        }
    )
    return frame.assign(income=np.where(frame["y"] == 1, ">50K", "<=50K"), truth=frame["y"] == 1)


@pytest.fixture(scope="session")
def folder(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The frame as whole.csv and whole.parquet, and split over part-*.csv and part-*.parquet."""
    folder = tmp_path_factory.mktemp("predictions")
    pieces = {"whole": frame} | {f"part-{i}": frame[i * N // PARTS : (i + 1) * N // PARTS] for i in range(PARTS)}
    for name, piece in pieces.items():
        piece.to_parquet(folder / f"{name}.parquet", index=False)
        piece.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[None]:
    """An active Spark session, or a skip that says why there is none."""
    if reason := unavailable():
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for key, value in LOCAL.items():
        builder = builder.config(key, value)
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    yield
    session.stop()


@pytest.fixture(params=["duckdb", "pandas", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    name: str = request.param
    return name
