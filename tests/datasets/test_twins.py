"""What the twins that come with the project preserve of the official rows, and that they are small."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from data.twins import make, preserved, subjects
from fairness_audits.files import load_json
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset
from pipeline import io
from pipeline.datasets import law, ssl
from tests.datasets.builders import staged

STATISTICS = load_json(make.HERE / make.STATISTICS)
KEPT = {"adult": 0.03, "adult_all": 0.03, "compas": 0.06, "compas_all": 0.07, "law": 0.03}
"""Largest error of any pair's Cramer's V; the smaller twins have more sampling noise."""
ROWS = {"adult": 45_222, "adult_all": 48_842, "compas": 5_278, "compas_all": 7_208, "law": 21_791, "ssl": 398_531}
Shipped = Callable[[str], pd.DataFrame]


def errors_of_association(name: str, rows: pd.DataFrame) -> list[float]:
    """By how much Cramer's V of each pair misses."""
    found = preserved.association(rows, STATISTICS[name]["cuts"])
    return [abs(found[pair] - v) for pair, v in STATISTICS[name]["association"].items()]


def errors_of_marginals(name: str, rows: pd.DataFrame) -> dict[str, float]:
    """By how much each marginal misses, beyond four standard errors and, for shares, beyond their rounding.

    Means are measured in standard deviations, and these as shares of themselves. A standard error allows for the
    sampling of both sides.
    """
    found = preserved.marginals(rows, STATISTICS[name]["root"])
    misses = {}
    for group, columns in STATISTICS[name]["marginals"].items():
        column, _, value = group.partition("=")
        size = len(rows) if group == preserved.ALL else int((rows[column].astype(str) == value).sum())
        for column, statistics in columns.items():
            for statistic, expected in statistics.items():
                apart = abs(found[group][column].get(statistic, 0.0) - expected)
                if "mean" not in statistics:
                    spread = np.sqrt(max(expected, 0.01) * (1 - min(expected, 0.99)) / size)
                    misses[f"{group} {column}={statistic}"] = apart - 4 * spread - 0.01
                elif statistic == "mean" or name == "law":
                    # A twin by levels keeps no deviations: those of heavy tails differ from draw to draw.
                    misses[f"{group} {column} {statistic}"] = apart / statistics["sd"] - 4 / np.sqrt(size)
    return misses


@pytest.mark.parametrize("name", ROWS)
def test_a_twin_is_small_and_has_its_number_of_rows(name: str, rows_of: Shipped) -> None:
    assert len(rows_of(name)) == ROWS[name]
    assert all(path.stat().st_size < 1_000_000 for path in make.HERE.glob(f"{name}[._]*"))


@pytest.mark.parametrize("name", KEPT)
def test_a_twin_keeps_marginals_by_group_and_the_association_of_every_pair(name: str, rows_of: Shipped) -> None:
    worst = max(errors_of_marginals(name, rows_of(name)).items(), key=lambda item: item[1])
    assert worst[1] < 0.03, worst
    errors = errors_of_association(name, rows_of(name))
    assert max(errors) < KEPT[name]
    assert np.mean(errors) < 0.01


# Against the official rows, where they are at hand.


@pytest.mark.parametrize("name", ["adult", "compas", "compas_all", "law"])
def test_no_value_tells_of_fewer_than_ten_people(name: str, rows_of: Shipped, official: Callable[..., Path]) -> None:
    rows, real = rows_of(name), make.official(name, official(name.partition("_")[0]))
    assert (rows.dtypes == real.dtypes).all()
    for column in rows:
        if column in STATISTICS[name]["cuts"]:
            ordered = np.sort(real[column])
            assert ordered[preserved.FEWEST - 1] <= rows[column].min()
            assert rows[column].max() <= ordered[-preserved.FEWEST]
        else:
            assert real[column].value_counts()[rows[column].unique()].min() >= preserved.FEWEST


@pytest.mark.parametrize("name", ["adult", "compas"])
@pytest.mark.parametrize("target", ["label", "sex", "race"])
def test_a_classifier_trained_on_the_twin_ranks_real_people_nearly_as_well(
    name: str, target: str, rows_of: Shipped, official: Callable[..., Path]
) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    module: Any = make.MODULES[name]
    config = module.Config(train_fraction=0.8, first_repetition=0, rows="complete")
    real, synthetic = (
        module.prepare(rows, config, generators("t", repetitions=1), "official")
        for rows in (make.official(name, official(name)), rows_of(name))
    )
    inputs = [i for i, column in enumerate(real.feature_names) if column not in real.sensitive_inputs]

    def values(batch: Any) -> tuple[np.ndarray, np.ndarray]:
        y = batch.label[0] if target == "label" else batch.protected[target][0]
        return batch.features[0][:, inputs], y

    x_test, y_test = values(real.batch("test", 1))
    areas = []
    for data in (real, synthetic):
        x, y = values(data.batch("train", 1))
        scores = LogisticRegression(max_iter=5_000).fit(x, y).decision_function(x_test)
        areas.append(roc_auc_score(y_test, scores))
    assert areas[1] > areas[0] - 0.015


def test_of_students_distributions_by_race_and_least_squares_weights_are_kept(
    rows_of: Shipped, official: Callable[..., Path]
) -> None:
    """ZFYA on LSAT, UGPA, black and male: what the study's regression learns."""
    from scipy.stats import ks_2samp

    real, synthetic = law.parse(official("law")), rows_of("law")
    for race, bound in (("White", 0.03), ("Black", 0.06)):
        for name in law.NUMBERS:
            found, expected = (rows.loc[rows["race"] == race, name].round(2) for rows in (synthetic, real))
            assert ks_2samp(found, expected).statistic < bound, (race, name)
    weights = []
    for rows in (real, synthetic):
        black, male = rows["race"] == "Black", rows["sex"] == "Male"
        x = np.column_stack([np.ones(len(rows)), rows["LSAT"], rows["UGPA"], black, male])
        weights.append(np.linalg.lstsq(x, rows["ZFYA"], rcond=None)[0][1:])
    assert (np.abs(weights[1] - weights[0]) < [0.004, 0.05, 0.08, 0.04]).all(), weights


# The Strategic Subject List: the official counts exactly, what is built in beside them, what comes out.

COUNTS = {
    "race": {"BLK": 207_760, "WWH": 101_666, "WHI": 82_317, "API": 4_614, "U": 2_174},
    "sex": {"M": 302_187, "F": 96_287, "X": 57},
    "age": {
        "20-30": 140_587, "30-40": 88_561, "less than 20": 67_866, "40-50": 58_647, "50-60": 34_173, "60-70": 7_717,
        "70-80": 980,
    },
}  # fmt: skip


def test_the_list_has_the_official_counts_and_its_features_the_published_means_and_spreads(rows_of: Shipped) -> None:
    rows = rows_of("ssl")
    assert {column: rows[column].value_counts().to_dict() for column in COUNTS} == COUNTS
    high = rows[rows["score"] >= 345]
    assert high["race"].value_counts()[["BLK", "WHI"]].tolist() == [26_785, 3_082]
    assert len(high) / len(rows) == pytest.approx(0.0956, abs=5e-5)
    for name, (law_of, mean, sd, _) in subjects.FEATURES.items():
        x = rows[name].to_numpy(dtype=float)
        assert abs(x.mean() - mean) < 4 * sd / np.sqrt(len(x)), name
        assert x.std() == pytest.approx(sd, rel=0.02), name
        if law_of == "times":
            # A negative binomial number of that mean and variance is nought this often.
            size = mean**2 / (sd**2 - mean)
            assert (x == 0).mean() == pytest.approx((size / (size + mean)) ** size, abs=0.003), name


def test_narcotic_arrests_correlate_with_race_as_published_and_no_other_feature_does(rows_of: Shipped) -> None:
    rows = rows_of("ssl")
    pair = rows[rows["race"].isin(["BLK", "WHI"])]
    found = {name: np.corrcoef(pair[name], pair["race"] == "BLK")[0, 1] for name in subjects.FEATURES}
    assert found.pop("narcotic_arrests") == pytest.approx(subjects.CORRELATION, abs=5e-4)
    # Through the score alone.
    assert max(map(abs, found.values())) < 0.09


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The list's twin through both stages."""
    section = {"name": "ssl", "kind": "ssl", "train_fraction": 0.8, "first_repetition": 0, "threshold": 345}
    return io.load(staged(tmp_path_factory.mktemp("ssl"), section), Dataset)


def test_least_squares_weights_of_the_score_come_out_as_published(people: Dataset) -> None:
    """Age about -50 and all others below 10; the others were aimed at one by one, age was not: it is in the counts."""
    x = np.column_stack([np.ones(len(people.label)), people.features])
    weights = np.linalg.lstsq(x, people.outcomes["score"], rcond=None)[0][1:]
    found = dict(zip(ssl.FEATURES, weights, strict=True))
    assert -60 < found.pop("age") < -45
    assert all(0 < weight < 10 for weight in found.values()), found


def test_the_prepared_list_is_marked_and_has_the_studys_rows(people: Dataset) -> None:
    assert (people.name, people.origin) == ("ssl", "twin")
    assert list(people.checksums) == ["ssl_1.parquet", "ssl_2.parquet"]
    assert people.features.shape == (290_077, 8)
    assert people.dropped == {"race neither BLK nor WHI": 108_454}
    black = people.protected["race"] == 0
    assert (int(people.label[black].sum()), int(people.label[~black].sum())) == (26_785, 3_082)
    assert (people.train.shape, people.test.shape) == ((2, 232_061), (2, 58_016))
    # The paper's 41,560 black people among the test rows are what a split of this size leaves, give or take chance.
    assert all(abs(int(black[test].sum()) - 41_560) < 400 for test in people.test)
