"""The four tables' raw files: what is read of them, what is refused, and the published counts of the official ones."""

from __future__ import annotations

import csv
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets import adult, compas, law, ssl
from pipeline.seeds import generators
from pipeline.workflow import plugins

ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "United-States, <=50K"
)
GOOD: dict[str, dict[str, str]] = {
    name: dict(zip(columns, text.split(", "), strict=True))
    for name, columns, text in (
        ("adult", adult.FIELDS, ADULT),
        ("compas", compas.PARSED, "Male, Caucasian, 25 - 45, 3, -1, F, 0, Low, 1, 30, 0, 1, 2"),
        ("law", ("race", "sex", "LSAT", "UGPA", "region_first", "ZFYA"), "White, 1, 39.0, 3.1, GL, -0.98"),
        ("ssl", ssl.COLUMNS.values(), "289, 20-30, 0, 1, 2, 1, 3, -0.3, 0, M, BLK"),
    )
}
"""A row of each table as text, as in the file; that of the law school has a column that nobody asks for."""


def raw(folder: Path, name: str, *changes: dict[str, str]) -> Path:
    """The raw folder of a dataset, with good rows that have these changes; the first column has no name.

    In both files of Adult, the second of them with its comment and its spelling of the label.
    """
    rows = [list((GOOD[name] | change).values()) for change in changes]
    if name == "adult":
        (folder / "adult.data").write_text("".join(", ".join(row) + "\n" for row in rows))
        (folder / "adult.test").write_text(f"|1x3 Cross validator\n{ADULT.replace('<=50K', '>50K.')}\n\n")
    else:
        lines = [["", *GOOD[name]], *([str(i), *row] for i, row in enumerate(rows))]
        file = plugins.load("dataset", name).FILE
        (folder / file).write_text("".join(",".join(line) + "\n" for line in lines))
    return folder


@pytest.mark.parametrize(
    ("name", "change", "first", "second"),
    [
        ("adult", {"income": ">50K"}, {"income": "<=50K", "age": 39}, {"income": ">50K", "sex": "Male"}),
        ("compas", {compas.DAYS: "", "sex": "Female"}, {compas.DAYS: -1.0}, {compas.DAYS: np.nan, "sex": "Female"}),
        (
            "law",
            {"sex": "2", "race": "Black", "LSAT": "29.5"},
            {"race": "White", "sex": "Female", "LSAT": 39.0, "UGPA": 3.1, "ZFYA": -0.98},
            {"race": "Black", "sex": "Male", "LSAT": 29.5},
        ),
        (
            "ssl",
            {ssl.COLUMNS["age"]: "", "RACE CODE CD": "API", "SEX CODE CD": "X"},
            dict(zip(ssl.COLUMNS, [289, "20-30", 0, 1, 2, 1, 3, -0.3, 0, "M", "BLK"], strict=True)),
            {"age": "", "sex": "X", "race": "API"},
        ),
    ],
)  # fmt: skip
def test_the_needed_columns_are_read_with_the_types_of_the_twin(
    tmp_path: Path, rows_of: Callable[..., pd.DataFrame], name: str, change: Any, first: Any, second: Any
) -> None:
    module = plugins.load("dataset", name)
    rows = module.parse(raw(tmp_path, name, {}, change))
    twin = rows_of(name)
    if name != "compas":
        assert list(rows) == list(twin)
    assert (rows.dtypes[list(twin)] == twin.dtypes).all()
    for number, expected in enumerate((first, second)):
        found = rows.loc[number, list(expected)]
        pd.testing.assert_series_equal(found, pd.Series(expected, name=number), check_dtype=False)


MALFORMED = [
    ("adult", "age", "old", "'old' is not a whole number"),
    ("adult", "fnlwgt", "?", r"'\?' is not a whole number"),
    ("adult", "workclass", "Pirate", r"'Pirate' is an unknown category: expected one of \['\?'"),
    ("adult", "education", "Bachelor", "'Bachelor' is an unknown category"),
    ("adult", "race", "?", r"'\?' is an unknown category"),
    ("adult", "education-num", "17", "'17' is out of range: expected 1 to 16"),
    ("adult", "income", "<=50K.", r"'<=50K\.' is an unknown category"),
    ("compas", "sex", "Unknown", "'Unknown' is an unknown category: expected one of"),
    ("compas", "age_cat", "", "'' is an unknown category"),
    ("compas", "priors_count", "many", "'many' is not a whole number"),
    ("compas", "priors_count", "-3", "'-3' is out of range"),
    ("compas", compas.DAYS, "soon", "'soon' is not a whole number"),
    ("compas", "two_year_recid", "2", "'2' is out of range: expected 0 to 1"),
    ("compas", "score_text", "None", "'None' is an unknown category"),
    ("law", "race", "black", "'black' is an unknown category: expected one of"),
    ("law", "sex", "3", "'3' is an unknown category"),
    ("law", "LSAT", "160", r"'160' is out of range: expected 10\.0 to 48\.0"),
    ("law", "LSAT", "", "'' is not a number"),
    ("law", "UGPA", "4.4", r"'4\.4' is out of range: expected 0\.0 to 4\.3"),
    ("law", "ZFYA", "-6.5", r"'-6\.5' is out of range"),
    ("ssl", "SSL SCORE", "501", "'501' is out of range: expected 0 to 500"),
    ("ssl", ssl.COLUMNS["age"], "20 - 30", "'20 - 30' is an unknown category"),
    ("ssl", ssl.COLUMNS["gang_affiliation"], "2", "'2' is out of range: expected 0 to 1"),
    ("ssl", ssl.COLUMNS["narcotic_arrests"], "1.5", r"'1\.5' is not a whole number"),
    ("ssl", ssl.COLUMNS["trend"], "up", "'up' is not a number"),
    ("ssl", "SEX CODE CD", "male", "'male' is no code: expected one capital letter"),
    ("ssl", "RACE CODE CD", "", "'' is no code: expected one to three capital letters"),
]


@pytest.mark.parametrize(("name", "column", "value", "message"), MALFORMED)
def test_a_malformed_value_is_named(tmp_path: Path, name: str, column: str, value: str, message: str) -> None:
    row = 2 if name == "adult" else 3
    file = plugins.load("dataset", name).SOURCES[0].filename
    with pytest.raises(ValueError, match=rf"{file}, row {row}, column '{column}': {message}"):
        plugins.load("dataset", name).parse(raw(tmp_path, name, {}, {column: value}))


def test_rows_of_adults_test_file_are_counted_below_its_comment(tmp_path: Path) -> None:
    path = raw(tmp_path, "adult", {}) / "adult.test"
    path.write_text(path.read_text().replace(">50K.", ">50K"))
    with pytest.raises(ValueError, match=r"adult\.test, row 2, column 'income': '>50K' is an unknown category"):
        adult.parse(tmp_path)


@pytest.mark.parametrize(("name", "column"), [("compas", "race"), ("law", "ZFYA"), ("ssl", "SSL SCORE")])
def test_a_missing_column_is_named(tmp_path: Path, name: str, column: str) -> None:
    module = plugins.load("dataset", name)
    path = raw(tmp_path, name, {}) / module.FILE
    path.write_text(path.read_text().replace(column, "other"))
    with pytest.raises(ValueError, match=rf"row 1: columns \['{column}'\] are missing"):
        module.parse(tmp_path)


def test_the_citys_older_spelling_of_its_columns_is_understood(tmp_path: Path) -> None:
    path = raw(tmp_path, "ssl", {}) / ssl.FILE
    header, row, _ = path.read_text().split("\n")
    path.write_text(f"{header.replace(' ', '_')}\n{row}\n")
    assert ssl.parse(tmp_path)["score"].tolist() == [289]


# The check of the list, whose sha256 nobody has recorded.


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
    part = (raw(tmp_path, "ssl", {}) / ssl.FILE).rename(tmp_path / f"{ssl.FILE}.part")
    (source,) = ssl.SOURCES
    assert (source.sha256, source.check) == (None, ssl.check)
    with pytest.raises(ValueError, match="expected 398,684 people, give or take 153, found 1"):
        ssl.check(part)


# The official files, where they are at hand.

OFFICIAL: dict[tuple[str, str], dict[str, Any]] = {
    ("adult", "complete"): {
        "shape": (45_222, 39),
        "train": 36_177,
        "dropped": {"occupation unknown": 2_809, "native-country unknown": 811},
        "label": 11_208,
    },
    ("adult", "all"): {"shape": (48_842, 100), "train": 39_073, "dropped": {}},
    ("compas", "complete"): {
        "shape": (5_278, 7),
        "train": 4_222,
        "dropped": {
            "days between arrest and screening unknown": 307,
            "arrest and screening more than 30 days apart": 735,
            "race neither African-American nor Caucasian": 894,
        },
        # ProPublica's own two-way table of two_year_recid by race, after its filter.
        "race": {0: (3_175, 1_661), 1: (2_103, 822)},
    },
    ("compas", "all"): {"shape": (7_214, 10), "train": 5_771, "dropped": {}},
    ("law", ""): {
        "shape": (21_791, 12), "train": 17_432, "dropped": {}, "race": {0: (1_282,), 1: (18_285,), -1: (2_224,)},
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "rows"), OFFICIAL)
def test_the_official_files_give_the_published_counts(name: str, rows: str, official: Callable[[str], Path]) -> None:
    module, expected = plugins.load("dataset", name), OFFICIAL[name, rows]
    config = module.Config(0.8, *([rows] if rows else []))
    data = module.prepare(module.parse(official(name)), config, generators("t", repetitions=2), "official")
    assert data.features.shape == expected["shape"]
    assert data.dropped == expected["dropped"]
    assert (data.train.shape, data.test.shape) == ((2, expected["train"]), (2, len(data.label) - expected["train"]))
    assert int(data.label.sum()) == expected.get("label", data.label.sum())
    for code, (size, *positive) in expected.get("race", {}).items():
        members = data.protected["race"] == code
        assert [int(members.sum()), *positive] == [size, *([int(data.label[members].sum())] if positive else [])]
    assert np.isfinite(data.batch("train").features).all()
    # Every input is somebody's.
    assert (data.features != 0).any(axis=0).all()
    if rows == "all":
        assert data.sensitive_inputs == ()
        assert not {"sex", "race"} & {column.split("=")[0] for column in data.feature_names}
        for values in data.protected.values():
            # Nor does any single input tell the protected attribute, but a husband or a wife.
            told = [np.abs(np.corrcoef(column, values)[0, 1]) for column in data.features.T]
            assert max(told) < 0.65


def test_the_law_schools_numbers_have_the_published_moments(official: Callable[[str], Path]) -> None:
    rows = law.parse(official("law"))
    assert rows["ZFYA"].median() == 0.09
    np.testing.assert_allclose(rows[["LSAT", "UGPA"]].mean(), [36.77, 3.227], atol=0.005)
    np.testing.assert_allclose(rows[["LSAT", "UGPA"]].std(), [5.447, 0.4142], atol=5e-4)


def test_education_and_unknown_categories_of_all_of_adult_are_those_of_the_raw_files(
    official: Callable[[str], Path],
) -> None:
    folder, texts = official("adult"), []
    for file in adult.LABELS:
        with (folder / file).open() as lines:
            texts += [row for row in csv.reader(lines, skipinitialspace=True) if len(row) == len(adult.FIELDS)]
    data = adult.prepare(adult.parse(folder), adult.Config(0.8, "all"), generators("t", repetitions=1), "official")
    inputs = pd.DataFrame(data.features, columns=list(data.feature_names))
    education = inputs.filter(like="education=")
    assert education.idxmax(axis=1).str.removeprefix("education=").tolist() == [row[3] for row in texts]
    assert (education.sum(axis=1) == 1).all()
    for name in ("workclass", "occupation", "native-country"):
        unknown = [row[adult.FIELDS.index(name)] == "?" for row in texts]
        assert inputs[f"{name}=?"].tolist() == unknown
        assert any(unknown)


def test_race_of_all_of_compas_is_african_american_or_not(official: Callable[[str], Path]) -> None:
    rows = compas.parse(official("compas"))
    data = compas.prepare(rows, compas.Config(0.8, "all"), generators("t", repetitions=1), "official")
    assert data.levels["race"] == ("African-American", "not African-American")
    np.testing.assert_array_equal(data.protected["race"] == 0, rows["race"] == "African-American")
    assert rows["race"].nunique() == 6


def test_the_official_list_is_the_list(official: Callable[[str], Path]) -> None:
    ssl.check(official("ssl") / ssl.FILE)


def test_the_official_files_of_adult_are_parsed_in_half_a_second(official: Callable[[str], Path]) -> None:
    folder = official("adult")
    seconds = []
    for _ in range(3):  # the first one warms up
        started = time.process_time()
        adult.parse(folder)
        seconds.append(time.process_time() - started)
    assert min(seconds) < 0.5


def test_one_altered_character_of_the_official_file_is_found(official: Callable[[str], Path], tmp_path: Path) -> None:
    for name in adult.LABELS:
        shutil.copyfile(official("adult") / name, tmp_path / name)
    lines = (tmp_path / "adult.data").read_text().splitlines(keepends=True)
    lines[20_000] = lines[20_000].replace(", ", "; ", 1)
    (tmp_path / "adult.data").write_text("".join(lines))
    with pytest.raises(ValueError, match=r"adult\.data, row 20001: expected 15 fields .*, found 14"):
        adult.parse(tmp_path)
