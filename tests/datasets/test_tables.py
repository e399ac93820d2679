"""The four tables as raw files and as datasets: what is read, refused, kept and said, and the published counts."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets import adult, compas, law, ssl
from pipeline.raw_data import tabular
from pipeline.raw_data.raw_table import Reader, anything, category, code, decimal, parsed, whole
from pipeline.workflow import plugins
from tests.datasets.builders import prepared as made
from tests.errors import invalid


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


def table(path: Path, text: str, name: Reader = anything, age: Reader = anything, **how: Any) -> pd.DataFrame:
    path.write_text(text, encoding="utf-8")
    return parsed(path, {"name": name, "age": age}, comment="|", **how)


def test_columns_are_found_by_name_however_spelled_quotes_and_spaces_are_understood_and_text_is_text(
    path: Path,
) -> None:
    text = 'age, city,name\n3,"Lima, Peru", ann\n04,,"bo"\n\n\n'
    read = table(path, text, category(["ann", "bo"]), whole(0, 9))
    assert read.to_dict("list") == {"name": ["ann", "bo"], "age": [3, 4]}
    path.write_text("AGE_NOW,name\n3,ann\n")
    read = parsed(path, {"age now": whole(0, 9)}, spelled=lambda name: name.lower().replace("_", " "))
    assert read.to_dict("list") == {"age now": [3]}
    read = table(path, "name,age\nNA,1\nN/A,2\nnull,3\n,4\n")
    assert read["name"].tolist() == ["NA", "N/A", "null", ""]


def test_without_a_header_columns_go_by_position_and_top_comments_are_skipped(path: Path) -> None:
    text = "|made by hand\nann,3\nbo,4\n"
    assert table(path, text, header=False)["name"].tolist() == ["ann", "bo"]
    with invalid(source="people.csv", column="age", row=1):
        table(path, text, age=whole(0, 3), header=False)


@pytest.mark.parametrize(
    ("text", "place", "column"),
    [
        (None, "", None),
        (b"name,age\n\xff\xfe,3\n", "", None),
        (b'name,age\n"ann,3\n', "", None),
        (b"", "", None),
        (b"\n\n", "", None),
        (b"name,age\n", "", None),
        (b"name,years\nann,3\n", "row 1", "age"),
        (b"name,age\nann,3\nbo\n", "row 3", None),
        (b"name,age\nann,3,4\n", "row 2", None),
        (b"name,age\nann,3\n\nbo,4\n", "row 3", None),
        (b"name,age,age\nann,3,3\nbo,4,5\n", "row 3", "age"),
    ],
)
def test_a_missing_or_malformed_file_is_refused(path: Path, text: bytes | None, place: str, column: str | None) -> None:
    if text is not None:
        path.write_bytes(text)
    with invalid(source=path.name, column=column) as error:
        parsed(path, {"name": anything, "age": anything})
    assert place in str(error.value)


@pytest.mark.parametrize(
    ("reader", "values"),
    [
        (whole(0, 120), ("three", "", "3.5", "inf", "nan", "-1", "121")),
        (whole(0, 120, missing=True), ("three", "nan")),
        (decimal(-1.0, 9.0), ("three", "", "nan", "-inf", "9.01")),
        (category(("3", "1")), ("4",)),
        (category({"3": "three"}), ("three",)),
        (code("[0-9]", "one digit"), ("33",)),
    ],
)
def test_a_value_that_a_column_cannot_hold_is_refused(path: Path, reader: Reader, values: tuple[str, ...]) -> None:
    for value in values:
        with invalid(source="people.csv", column="age", row=1):
            table(path, f"name,age\nann,3\nbo,{value}\n", age=reader)


def test_the_first_odd_row_is_named_and_its_like_are_counted(path: Path) -> None:
    with pytest.raises(ValueError, match=r"row 3, column 'name': 'cy' is an .* \['ann', 'bo'\] \(1 more such row\)"):
        table(path, "name,age\nann,1\ncy,2\nbo,3\ndi,4\n", category(["bo", "ann"]))


@pytest.mark.parametrize(
    ("reader", "texts", "values"),
    [
        (whole(-9, 9), ["3", "-04"], [3, -4]),
        (whole(0, 9, missing=True), ["3", "", "4"], [3.0, np.nan, 4.0]),
        (decimal(-1.0, 9.0), ["3", "-0.25"], [3.0, -0.25]),
        (category({"1": "Female", "2": "Male"}), ["2", "1"], ["Male", "Female"]),
        (code("[A-Z]{1,3}", "one to three capitals"), ["AB", "ABC", "A"], ["AB", "ABC", "A"]),
    ],
)
def test_values_have_the_type_of_their_column(path: Path, reader: Reader, texts: list[str], values: list[Any]) -> None:
    read = table(path, "name,age\n" + "".join(f"ann,{text}\n" for text in texts), age=reader)["age"]
    pd.testing.assert_series_equal(read, pd.Series(values, name="age"))


# The four tables' raw files: what is read of them, what is refused, and the published counts of the official ones.

ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "United-States, <=50K"
)
GOOD: dict[str, dict[str, str]] = {
    name: dict(zip(columns, text.split(", "), strict=True))
    for name, columns, text in (
        ("adult", adult.FIELDS, ADULT),
        ("compas", compas.READERS, "Male, Caucasian, 25 - 45, 3, -1, F, 0, Low, 1, 30, 0, 1, 2"),
        ("law", ("race", "sex", "LSAT", "UGPA", "region_first", "ZFYA"), "White, 1, 39.0, 3.1, GL, -0.98"),
        ("ssl", [city for city, _ in ssl.COLUMNS.values()], "289, 20-30, 0, 1, 2, 1, 3, -0.3, 0, M, BLK"),
    )
}
"""A row of each table as text, as in the file; that of the law school has a column that nobody asks for."""


def raw_folder(folder: Path, name: str, *changes: dict[str, str]) -> Path:
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
            {ssl.COLUMNS["age"][0]: "", "RACE CODE CD": "API", "SEX CODE CD": "X"},
            dict(zip(ssl.COLUMNS, [289, "20-30", 0, 1, 2, 1, 3, -0.3, 0, "M", "BLK"], strict=True)),
            {"age": "", "sex": "X", "race": "API"},
        ),
    ],
)  # fmt: skip
def test_the_needed_columns_are_read_with_the_types_of_the_twin(
    tmp_path: Path, rows_of: Callable[..., pd.DataFrame], name: str, change: Any, first: Any, second: Any
) -> None:
    module = plugins.load("dataset", name)
    rows = module.parse(raw_folder(tmp_path, name, {}, change))
    twin = rows_of(name)
    if name != "compas":
        assert list(rows) == list(twin)
    assert (rows.dtypes[list(twin)] == twin.dtypes).all()
    for number, expected in enumerate((first, second)):
        found = rows.loc[number, list(expected)]
        pd.testing.assert_series_equal(found, pd.Series(expected, name=number), check_dtype=False)


MALFORMED = [
    ("adult", "workclass", "Pirate"),
    ("adult", "education-num", "17"),
    ("compas", "two_year_recid", "2"),
    ("compas", compas.DAYS, "soon"),
    ("law", "sex", "3"),
    ("law", "LSAT", "160"),
    ("ssl", ssl.COLUMNS["trend"][0], "up"),
    ("ssl", "RACE CODE CD", ""),
]


@pytest.mark.parametrize(("name", "column", "value"), MALFORMED)
def test_a_malformed_value_is_named(tmp_path: Path, name: str, column: str, value: str) -> None:
    file = plugins.load("dataset", name).SOURCES[0].filename
    with invalid(source=file, column=column, row=1):
        plugins.load("dataset", name).parse(raw_folder(tmp_path, name, {}, {column: value}))


def test_rows_of_adults_test_file_are_counted_below_its_comment_and_the_citys_older_spelling_is_understood(
    tmp_path: Path,
) -> None:
    path = raw_folder(tmp_path, "adult", {}) / "adult.test"
    path.write_text(path.read_text().replace(">50K.", ">50K"))
    with invalid(source="adult.test", column="income", row=0):
        adult.parse(tmp_path)
    path = raw_folder(tmp_path, "ssl", {}) / ssl.FILE
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
    part = (raw_folder(tmp_path, "ssl", {}) / ssl.FILE).rename(tmp_path / f"{ssl.FILE}.part")
    (source,) = ssl.SOURCES
    assert (source.sha256, source.check) == (None, ssl.check)
    with invalid(source=part.name):
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
    expected = OFFICIAL[name, rows]
    data = made(name, plugins.load("dataset", name).parse(official(name)), 2, **({"rows": rows} if rows else {}))
    assert data.features.shape == expected["shape"]
    assert data.dropped == expected["dropped"]
    assert (data.train.shape, data.test.shape) == ((2, expected["train"]), (2, len(data.label) - expected["train"]))
    assert int(data.label.sum()) == expected.get("label", data.label.sum())
    for level, (size, *positive) in expected.get("race", {}).items():
        members = data.protected["race"] == level
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


def test_education_and_unknown_categories_of_all_of_adult_are_the_raw_files(official: Callable[[str], Path]) -> None:
    folder, texts = official("adult"), []
    for file in adult.LABELS:
        with (folder / file).open() as lines:
            texts += [row for row in csv.reader(lines, skipinitialspace=True) if len(row) == len(adult.FIELDS)]
    data = made("adult", adult.parse(folder), rows="all")
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
    data = made("compas", rows, rows="all")
    assert data.levels["race"] == ("African-American", "not African-American")
    np.testing.assert_array_equal(data.protected["race"] == 0, rows["race"] == "African-American")
    assert rows["race"].nunique() == 6


def test_the_official_list_is_the_list(official: Callable[[str], Path]) -> None:
    ssl.check(official("ssl") / ssl.FILE)


# The four tables as datasets: which rows are kept, what every input says, labels, groups and splits.

Rows = Callable[..., pd.DataFrame]


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(("n", "fraction"), [(200, 0.8), (201, 0.8), (203, 0.7), (199, 0.5), (20, 0.29)])
def test_splits_partition_the_rows_and_depend_on_their_own_generator_alone(
    rows_of: Rows, name: str, n: int, fraction: float
) -> None:
    rows = rows_of(name)
    if name == "ssl":
        rows = rows[rows["race"].isin(ssl.LEVELS)].head(300)
        rows = rows.assign(**{feature: np.arange(300) % 2 for feature in ssl.FEATURES[1:]})
    data = made(name, rows.head(n), 3, train_fraction=fraction)
    assert data.train.shape == (3, int(n * round(fraction * 100)) // 100)  # floor, in whole numbers
    for train, test in zip(data.train, data.test, strict=True):
        assert sorted([*train, *test]) == list(range(n))
        # COMPAS is stratified: within one row of the exact share of each class.
        assert name != "compas" or abs(data.label[train].sum() - fraction * data.label.sum()) < 1
    assert not (data.train[0] == data.train[1]).all()
    np.testing.assert_array_equal(made(name, rows.head(n), 5, train_fraction=fraction).train[:3], data.train)


def test_in_a_stratified_split_a_row_left_over_goes_to_the_larger_remainder_and_the_order_is_random(
    rows_of: Rows,
) -> None:
    """7 and 8 rows at 80 %: 5.6 and 6.4 of 12, so 6 and 6."""
    data = made("compas", rows_of("compas").head(15).assign(two_year_recid=[0] * 7 + [1] * 8))
    assert np.bincount(data.label[data.train[0]]).tolist() == [6, 6]
    data = made("compas", rows_of("compas").head(2_000))
    for rows in (data.train[0], data.test[0]):
        label, half = data.label[rows], len(rows) // 2
        assert abs(label[:half].mean() - label[half:].mean()) < 4 / np.sqrt(len(rows))


def test_adults_rows_are_dropped_for_want_of_occupation_or_country_and_counted_once_each(rows_of: Rows) -> None:
    rows = rows_of("adult").head(20).copy()
    rows.loc[[1, 2, 3], "occupation"] = "?"
    rows.loc[[3, 4], "native-country"] = "?"
    kept, dropped = adult.filtered(rows)
    assert dropped == {"occupation unknown": 3, "native-country unknown": 1}
    assert len(kept) == 16
    assert made("adult", rows).dropped == dropped
    assert adult.filtered(rows, "all")[1] == {}


def test_each_row_of_compas_is_dropped_by_the_first_rule_that_it_breaks(rows_of: Rows) -> None:
    rows = rows_of("compas").head(30).copy()
    rows.loc[0, compas.DAYS] = np.nan
    rows.loc[[1, 2], compas.DAYS] = [-31.0, 31.0]
    rows.loc[3, compas.DAYS] = 30.0  # just within
    rows.loc[[2, 4], "is_recid"] = -1  # row 2 is out already
    rows.loc[5, "c_charge_degree"] = "O"
    rows.loc[6, "score_text"] = "N/A"
    rows.loc[[7, 8], "race"] = ["Other", "Hispanic"]
    kept, dropped = compas.filtered(rows)
    assert list(dropped.items()) == [
        ("days between arrest and screening unknown", 1),
        ("arrest and screening more than 30 days apart", 2),
        ("no recidivism record", 1),
        ("ordinary traffic offence", 1),
        ("no COMPAS score", 1),
        ("race neither African-American nor Caucasian", 2),
    ]
    assert len(kept) == 30 - sum(dropped.values())
    assert compas.filtered(kept)[1] == {}


def test_a_kept_row_that_no_input_can_encode_is_refused(rows_of: Rows) -> None:
    rows = rows_of("adult").head(20).copy()
    rows.loc[7, "workclass"] = "Never-worked"
    with invalid(column="workclass", row=7):
        made("adult", rows)
    values = pd.Series(["b", "a", "b"], name="x")
    found = tabular.indicators(values, ("a", "b"))
    assert [column.tolist() for column in found.values()] == [[False, True, False], [True, False, True]]
    assert list(found) == ["x=a", "x=b"]


def test_the_law_schools_label_is_above_the_median_and_an_age_of_the_list_its_first_two_digits_or_ten(
    rows_of: Rows,
) -> None:
    rows = rows_of("law").head(5).assign(ZFYA=[0.3, -1.0, 0.09, 2.0, 0.09])
    assert made("law", rows).label.tolist() == [1, 0, 0, 1, 0]
    assert {band: 10 if band.startswith("less") else int(band[:2]) for band in ssl.AGES} == ssl.AGES


def test_people_of_unknown_age_are_dropped_first_and_an_input_that_is_the_same_for_everybody_is_named(
    rows_of: Rows,
) -> None:
    rows = rows_of("ssl").head(900).copy()
    rows.loc[[0, 1, 2], "age"] = ""
    rows.loc[[0, 1, 2], "trend"] = 50.0
    data = made("ssl", rows)
    others = int((~rows["race"].isin(["BLK", "WHI"]))[3:].sum())
    assert data.dropped == {"age at latest arrest unknown": 3, "race neither BLK nor WHI": others}
    assert np.abs(data.features[:, data.feature_names.index("trend")]).max() < 10
    with invalid(source="ssl", column="trend"):
        made("ssl", rows_of("ssl").head(900).assign(trend=0.1))
