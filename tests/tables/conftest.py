"""Simulated predictions as files and as a data frame, and the engines that can be used here."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairness_audits.tables.spark_engine import LOCAL, unavailable

N = 600
PARTS = 3


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Scores in hundredths, so that many are equal; three races, six ages, decisions, persons."""
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


QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # Hundreds of queries of a few rows: compiling each would take longer than interpreting it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings under which Spark does little for little; tests/cli/test_permutation.py leaves a user's own."""


@pytest.fixture(scope="session")
def spark() -> Iterator[None]:
    """An active Spark session, the same for all tests of this process; a skip where there is no Java."""
    import pyspark.sql

    if reason := unavailable():
        pytest.skip(reason)
    builder = pyspark.sql.SparkSession.builder.master("local[1]")
    for key, value in (LOCAL | QUICK).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts Spark is slow; where tests are distributed by groups, one process alone starts it."""
    for item in items:
        if "engine" in getattr(item, "fixturenames", ()) and "[spark" in item.name:
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=["duckdb", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
    name: str = request.param
    return name
