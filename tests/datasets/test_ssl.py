"""Strategic Subject List: reading, the check of an unrecorded file, scaling over all races, groups and label."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets import ssl
from pipeline.seeds import generators

CONFIG = ssl.Config(train_fraction=0.8, threshold=345)
GOOD = dict(
    zip(ssl.COLUMNS.values(), ("289", "20-30", "0", "1", "2", "1", "3", "-0.3", "0", "M", "BLK"), strict=True)
)  # as text, as in the file


def raw(folder: Path, *changes: dict[str, str], underscores: bool = False) -> Path:
    """A raw file of good rows with these changes by our names, among columns that nobody asks for."""
    header = ["WEAPON I", *GOOD, "LOCATION"]
    if underscores:
        header = [name.replace(" ", "_") for name in header]
    rows = [
        ["N", *(GOOD | {ssl.COLUMNS[name]: value for name, value in change.items()}).values(), '"(41.8, -87.6)"']
        for change in changes
    ]
    (folder / ssl.FILE).write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    return folder


def people(n: int = 60, **columns: Any) -> pd.DataFrame:
    """n made-up people as parse() returns them; a third each BLK, WHI and others."""
    i = np.arange(n)
    rows = {
        "score": 300 + i,
        "age": [list(ssl.AGES)[j % 7] for j in i],
        **{name: i % (2 + j) for j, name in enumerate(ssl.TIMES)},
        "trend": (i % 9 - 4) / 10,
        "sex": np.where(i % 5 == 0, "F", "M"),
        "race": [("BLK", "WHI", "WWH")[j % 3] for j in i],
    }
    return pd.DataFrame({name: (rows | columns)[name] for name in ssl.COLUMNS})


@pytest.mark.parametrize("underscores", [False, True])
def test_the_needed_columns_are_read_by_either_spelling_of_their_names(tmp_path: Path, underscores: bool) -> None:
    rows = ssl.parse(raw(tmp_path, {}, {"age": "", "race": "API", "sex": "X"}, underscores=underscores))
    assert list(rows) == list(ssl.COLUMNS)
    assert rows.iloc[0].tolist() == [289, "20-30", 0, 1, 2, 1, 3, -0.3, 0, "M", "BLK"]
    assert rows.loc[1, ["age", "sex", "race"]].tolist() == ["", "X", "API"]
    assert (rows.dtypes == people().dtypes).all()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("score", "501", "'SSL SCORE': '501' is out of range: expected 0 to 500"),
        ("score", "-1", "'SSL SCORE': '-1' is out of range"),
        ("age", "20 - 30", "'PREDICTOR RAT AGE AT LATEST ARREST': '20 - 30' is an unknown category"),
        ("gang_affiliation", "2", "'PREDICTOR RAT GANG AFFILIATION': '2' is out of range: expected 0 to 1"),
        ("narcotic_arrests", "1.5", r"'PREDICTOR RAT NARCOTIC ARRESTS': '1\.5' is not a whole number"),
        ("weapon_arrests", "", "'PREDICTOR RAT UUW ARRESTS': '' is not a whole number"),
        ("trend", "up", "'PREDICTOR RAT TREND IN CRIMINAL ACTIVITY': 'up' is not a number"),
        ("sex", "male", "'SEX CODE CD': 'male' is no code: expected one capital letter"),
        ("race", "", "'RACE CODE CD': '' is no code: expected one to three capital letters"),
    ],
)
def test_a_malformed_value_is_named(tmp_path: Path, name: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"Strategic_Subject_List\.csv, row 3, column {message}"):
        ssl.parse(raw(tmp_path, {}, {name: value}))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = raw(tmp_path, {}) / ssl.FILE
    path.write_text(path.read_text().replace("SSL SCORE", "HEAT SCORE"))
    with pytest.raises(ValueError, match=r"row 1: columns \['SSL SCORE'\] are missing"):
        ssl.parse(tmp_path)


def whole_list(
    people: int = 398_684, black: int = 207_760, white: int = 82_317, high: tuple[int, int] = (26_785, 3_082)
) -> pd.DataFrame:
    """Race and score of as many people as the list has."""
    race = np.repeat(["BLK", "WHI", "WWH"], [black, white, people - black - white])
    score = np.repeat([345, 344, 345, 344], [high[0], black - high[0], high[1], people - black - high[1]])
    return pd.DataFrame({"score": score, "race": race})


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({}, None),
        ({"black": 207_913}, None),
        ({"people": 398_531}, None),
        ({"people": 398_530}, "expected 398,684 people, give or take 153, found 398,530"),
        ({"black": 207_914}, "expected 207,760 people of race BLK, give or take 153, found 207,914"),
        ({"white": 82_000}, r"expected 82,317 people of race WHI, .* found 82,000"),
        ({"high": (20_000, 3_082)}, r"people of race BLK with a score of 345 or more, .* found 20,000"),
        ({"high": (26_785, 3_300)}, r"people of race WHI with a score of 345 or more, .* found 3,300"),
    ],
)
def test_a_file_counts_as_the_list_only_with_the_published_counts(
    monkeypatch: pytest.MonkeyPatch, counts: dict[str, Any], message: str | None
) -> None:
    monkeypatch.setattr(ssl, "_read", lambda path: whole_list(**counts))
    if message is None:
        ssl.check(Path("list.csv"))
    else:
        with pytest.raises(ValueError, match=message):
            ssl.check(Path("list.csv"))


def test_the_check_reads_the_file_it_is_given_and_the_source_uses_it(tmp_path: Path) -> None:
    part = (raw(tmp_path, {}) / ssl.FILE).rename(tmp_path / f"{ssl.FILE}.part")
    (source,) = ssl.SOURCES
    assert (source.sha256, source.check) == (None, ssl.check)
    with pytest.raises(ValueError, match="expected 398,684 people, give or take 153, found 1"):
        ssl.check(part)


def test_an_age_is_its_first_two_digits_and_the_youngest_are_ten() -> None:
    assert {band: 10 if band.startswith("less") else int(band[:2]) for band in ssl.AGES} == ssl.AGES
    rows = people(21, race="BLK")
    data = ssl.prepare(rows, CONFIG, generators("t", repetitions=1), "official")
    assert data.feature_names[0] == "age"
    # 10 to 70, equally often: mean 40, standard deviation 20.
    np.testing.assert_allclose(data.features[:, 0], (rows["age"].map(ssl.AGES) - 40) / 20)


def test_inputs_are_scaled_over_all_races_before_the_others_are_left_out() -> None:
    rows = people(90, narcotic_arrests=np.where(np.arange(90) % 3 == 2, 6, 0))  # all of them of neither race
    data = ssl.prepare(rows, CONFIG, generators("t", repetitions=1), "official")
    assert data.features.shape == (60, 8)
    assert data.dropped == {"race neither BLK nor WHI": 30}
    # Mean 2 and standard deviation sqrt(8) over everybody.
    np.testing.assert_allclose(data.features[:, data.feature_names.index("narcotic_arrests")], -2 / np.sqrt(8))
    assert data.continuous == ()
    np.testing.assert_array_equal(data.batch("test").features[0], data.features[data.test[0]])


def test_people_of_unknown_age_are_dropped_first_and_counted() -> None:
    rows = people(60)
    rows.loc[[0, 1, 2], "age"] = ""  # one BLK, one WHI, one other
    rows.loc[[0, 1, 2], "trend"] = 50.0
    data = ssl.prepare(rows, CONFIG, generators("t", repetitions=1), "official")
    assert data.dropped == {"age at latest arrest unknown": 3, "race neither BLK nor WHI": 19}
    assert np.abs(data.features[:, data.feature_names.index("trend")]).max() < 3


def test_label_outcome_and_groups_are_those_of_the_kept_rows() -> None:
    rows = people(90)
    data = ssl.prepare(rows, ssl.Config(0.8, threshold=350), generators("t", repetitions=2), "official")
    kept = rows[rows["race"] != "WWH"]
    np.testing.assert_array_equal(data.outcomes["score"], kept["score"])
    np.testing.assert_array_equal(data.label, kept["score"] >= 350)
    np.testing.assert_array_equal(data.protected["race"], kept["race"] == "WHI")
    assert data.levels == {"race": ("BLK", "WHI")}
    assert (data.train.shape, data.test.shape) == ((2, 48), (2, 12))
    assert sorted([*data.train[1], *data.test[1]]) == list(range(60))


def test_an_input_that_is_the_same_for_everybody_is_named() -> None:
    with pytest.raises(ValueError, match=r"inputs \['trend'\] are the same for everybody"):
        ssl.prepare(people(trend=0.1), CONFIG, generators("t", repetitions=1), "official")
    with pytest.raises(ValueError, match="ssl is made of rows"):
        ssl.prepare(None, CONFIG, generators("t", repetitions=1), "official")


def test_the_official_file_is_the_list(official: Callable[[str], Path]) -> None:
    folder = official("ssl")
    ssl.check(folder / ssl.FILE)
    data = ssl.prepare(ssl.parse(folder), CONFIG, generators("t", repetitions=1), "official")
    assert np.isfinite(data.features).all()
