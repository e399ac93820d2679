"""CSV and Parquet files as people have them: separators, repeated names, decimal commas, encodings, codes."""

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas._libs.parsers import STR_NA_VALUES

from fairness_audits.inputs.table import Source
from fairness_audits.tables import Engine, contingency, opened
from fairness_audits.tables.source import unique_names
from fairness_audits.tables.table import MISSING_TEXTS
from pipeline.datasets.compas import FILE
from pipeline.workflow import availability
from tests.cli.places import json_of
from tests.errors import invalid
from tests.files import ROOT


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("names", ["x,x,y", "x,x.1,x,x", "x.1,x,x,x.1", "x,x,x.1,y", "x,x.1.1,x.1,x,x.1,x"])
def test_columns_of_one_name_are_told_apart_as_pandas_does(names: str, tmp_path: Path, engine: Engine) -> None:
    count = names.count(",") + 1
    path = written(tmp_path / "rows.csv", f"{names}\n{','.join(map(str, range(count)))}\n")
    expected = pd.read_csv(path)
    assert unique_names(names.split(",")) == tuple(expected.columns)
    with opened(path, engine) as table:
        assert table.columns == tuple(expected.columns)
        assert [int(table.arrays([name])[name][0]) for name in table.columns] == list(range(count))
        renamed = [one["own"] for one in table.notes["repeated_names"]]
    assert renamed == [own for name, own in zip(names.split(","), expected.columns, strict=True) if name != own]


def test_columns_of_one_name_in_parquet_are_told_apart_too(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = pyarrow.table([[0.5, 1.5], [3, 4], [0, 1]], names=["x", "x", "y"])
    pytest.importorskip("pyarrow.parquet").write_table(rows, tmp_path / "rows.parquet")
    source = Source.read(tmp_path / "rows.parquet")
    assert source.table.to_dict("list") == {"x": [0.5, 1.5], "x.1": [3, 4], "y": [0, 1]}
    with opened(tmp_path / "rows.parquet", "duckdb") as table:
        assert table.arrays(["x.1"])["x.1"].tolist() == [3, 4]


@pytest.mark.parametrize(("name", "mark"), [("semicolon", ";"), ("tab", "\t"), ("bar", "|"), ("comma", ",")])
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_the_separator_is_found(name: str, mark: str, ending: str, tmp_path: Path, engine: Engine) -> None:
    frame = pd.DataFrame({"y": [0, 1] * 4, "g": [*"aabb"] * 2, "p": np.arange(8) / 8})
    path = tmp_path / f"rows.{ending}"
    frame.to_csv(path, index=False, sep=mark)
    expected = contingency(frame, label="y", group="g", score="p")
    for separator in (None, name):
        with opened(path, engine, separator=separator) as table:
            found = contingency(table, label="y", group="g", score="p")
        np.testing.assert_array_equal(found.table, expected.table)
        np.testing.assert_array_equal(found.score, expected.score)


SPACED = """age, code, sex, d, text
 39,  01, M, 0, "x, y"
41, 02, F, 1,
 7, NA, F, 1, z
40,10,M,0,  z
"""


def test_spaces_after_separators_are_not_read(tmp_path: Path, engine: Engine) -> None:
    """The file is read as the file without these spaces is: names, codes, missing values, texts in quotes."""
    path = written(tmp_path / "rows.csv", SPACED.replace("7, NA, F", "7, 02, F"))
    with opened(path, engine) as table:
        assert table.columns == ("age", "code", "sex", "d", "text")
        assert table.arrays(["code"])["code"].tolist() == ["01", "02", "02", "10"]
        assert contingency(table, label="d", group="sex", score="age").groups == ("F", "M")
        assert table.notes == {"spaces": True}
    with invalid(option="group", column="text", row=1):
        contingency(path, label="d", group="text", score="age", engine=engine)


def test_spaces_after_separators_are_not_read_for_a_model(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", SPACED)
    expected = pd.read_csv(path, skipinitialspace=True)
    source = Source.read(path)
    pd.testing.assert_frame_equal(source.native, expected, check_column_type=False)
    assert source.table["age"].tolist() == [39, 41, 7, 40]
    assert source.table["code"].dropna().tolist() == ["01", "02", "10"]
    assert source.table["text"].dropna().tolist() == ["x, y", "z", "z"]
    # Spaces within quotes, and after a value, are part of it.
    source = Source.read(written(path, 'a,b\n" 01",x \n02 ,y\n'))
    assert source.table.to_dict("list") == {"a": [" 01", "02 "], "b": ["x ", "y"]}
    assert not source.notes


@pytest.mark.parametrize("gap", ["", "\n,0"])
def test_whole_numbers_that_doubles_confuse_keep_their_digits(gap: str, tmp_path: Path) -> None:
    values = [str(2**53 + 1), str(2**53), str(10**17 + 1), str(10**17), "123456789012345678901", "7"]
    for count in (2, 4, 6):
        content = "n,d\n" + ",0\n".join(values[:count]) + f",0{gap}\n"
        found = Source.read(written(tmp_path / "rows.csv", content)).table["n"].dropna()
        assert found.map(str).tolist() == values[:count]


def test_a_file_with_two_possible_separators_needs_to_be_told(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", "a;b,c;d\n1;2,3;4\n")
    with invalid(option="separator"):
        Source.read(path)
    assert Source.read(path, separator="comma").columns == ("a;b", "c;d")
    assert Source.read(path, separator="semicolon").columns == ("a", "b,c", "d")
    # A comma in a text is no separator where it is not in every line alike.
    assert Source.read(written(path, "name;n\nx, y;1\nz;2\n")).table["name"].tolist() == ["x, y", "z"]


def test_a_decimal_comma_makes_a_number_only_where_it_is_certain(tmp_path: Path) -> None:
    source = Source.read(written(tmp_path / "rows.csv", "g;p;q;n\na;0,75;1,234;1\nb;-1,5e1;2;2\n"))
    assert source.table["p"].tolist() == [0.75, -15]
    assert source.table["q"].tolist() == [1.234, 2]
    assert source.table["n"].tolist() == [1, 2]
    assert "p" in source.notes["decimal_commas"]["columns"]
    for content in ("g;p\na;1,234\nb;2,345\n", 'g,p\na,"0,75"\nb,"1,5"\n', "g;p\na;0,75\nb;1.5\n", "g;p\na;1.234,5\n"):
        source = Source.read(written(tmp_path / "rows.csv", content))
        assert pd.api.types.is_string_dtype(source.table["p"])
        assert "decimal_commas" not in source.notes
    path = written(tmp_path / "scores.csv", 'y,g,s\n0,a,"0,75"\n1,b,"0,5"\n')
    with invalid(option="score", column="s", row=0):
        contingency(path, label="y", group="g", score="s")
    path = written(tmp_path / "scores.csv", "y;g;s\n0;a;0,75\n1;b;0,5\n")
    np.testing.assert_array_equal(contingency(path, label="y", group="g", score="s").score, [0.5, 0.75])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_another_encoding_is_refused_with_the_remedy(encoding: str, tmp_path: Path) -> None:
    content = "g,p\né,0.5\nb,1\n".encode(encoding)
    for path in (written(tmp_path / "rows.csv", content), written(tmp_path / "rows.csv.gz", gzip.compress(content))):
        with invalid(source=path.name, remedy="Save it as UTF-8"):
            Source.read(path)
    late = "g,p\n".encode(encoding) + b"a,0.5\n" * 20_000 + "é,1\n".encode(encoding)
    with invalid(source="late.csv"):
        Source.read(written(tmp_path / "late.csv", late))


def test_what_stands_in_a_csv_is_read_as_it_stands(tmp_path: Path) -> None:
    """A mark of UTF-8, a line's end within quotes, empty last lines, codes with zeros, long numbers, truth values."""
    content = '\ufeffcode,text,long,n,flag\r\n01,"a,\r\nb",12345678901234567890123,1,true\r\n02,c,5,2,TRUE\r\n\r\n\r\n'
    table = Source.read(written(tmp_path / "rows.csv", content)).table
    assert table.columns.tolist() == ["code", "text", "long", "n", "flag"]
    assert (table["flag"].dtype, table["flag"].tolist()) == (bool, [True, True])
    assert table["code"].tolist() == ["01", "02"]
    assert table["text"].tolist() == ["a,\r\nb", "c"]
    assert table["long"].tolist() == ["12345678901234567890123", "5"]
    assert table["n"].tolist() == [1, 2]
    wide = pd.DataFrame({"n": [2**63 - 1, -(2**63)]})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    assert Source.read(tmp_path / "wide.csv").table["n"].tolist() == wide["n"].tolist()
    for head in ("g,p\n", "g;p\r\n", "g,p"):
        with invalid(source="rows.csv"):
            Source.read(written(tmp_path / "rows.csv", head))
    path = written(tmp_path / "groups.csv", "y,g,d\n0,1,0\n1,01,1\n0,1,1\n1,01,1\n")
    assert contingency(path, label="y", group="g", prediction="d").groups == ("01", "1")


PANDAS_READS = (
    (",", "code,flag,n,p,t\n01,True,1,0.1,a\n02,,,NA,\n10,False,3,1e5,N/A\n"),
    (";", "code;p\n001;0.5\n\n002;0.25\n"),
    ("\t", 'long\ttext\n123456789012345678\t"a\tb"\n2\t1.#IND\n'),
    (",", "a,a,b\r\n1,2,None\r\n3,4,x\r\n"),
    (",", "a\n1\n2\n"),
)


@pytest.mark.parametrize(("mark", "content"), PANDAS_READS)
def test_a_model_is_given_the_rows_that_pandas_reads(mark: str, content: str, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", content)
    expected = pd.read_csv(path, sep=mark)
    source = Source.read(path)
    pd.testing.assert_frame_equal(source.native, expected, check_column_type=False)
    expected.to_parquet(tmp_path / "rows.parquet")
    read = pd.read_parquet(tmp_path / "rows.parquet")
    pd.testing.assert_frame_equal(Source.read(tmp_path / "rows.parquet").native, read)
    assert Source("the rows", expected).native is expected


def test_the_rows_of_pandas_are_the_rows_of_the_table(tmp_path: Path) -> None:
    options: dict[str, Any] = {"text": ("code",), "missing": ("-",)}
    source = Source.read(written(tmp_path / "rows.csv", "code;p;n\n01;0,75;NA\n02;-;\n"), **options)
    assert source.native["code"].tolist() == ["01", "02"]
    assert source.native["p"].tolist()[0] == 0.75
    assert source.native.isna().to_numpy().tolist() == [[False, False, False], [False, True, True]]
    for content in ("a\n1\n\n2\n\n", "a,b\n1,2\n\n,\n3,4\n\n"):
        source = Source.read(written(tmp_path / "rows.csv", content))
        np.testing.assert_array_equal(source.native.isna(), source.table.isna())


def test_texts_of_a_missing_value_are_those_of_pandas() -> None:
    assert set(MISSING_TEXTS) == STR_NA_VALUES


def test_what_stands_for_a_missing_value_is_said(tmp_path: Path, engine: Engine) -> None:
    path = written(tmp_path / "rows.csv", "y,g,d\n0,NA,0\n1,EU,1\n1,NA,1\n0,EU,0\n")
    asked: dict[str, Any] = {"label": "y", "group": "g", "prediction": "d"}
    with invalid(option="group", column="g", row=0):
        contingency(path, engine=engine, **asked)
    with opened(path, engine, missing=("-",)) as table:
        assert contingency(table, **asked).groups == ("EU", "NA")
    with (
        opened(path, engine, missing=("EU",)) as table,
        invalid(column="g", row=1),
    ):
        contingency(table, **asked)


def test_numbers_of_parquet_are_numbers(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    values = "1.50::DECIMAL(10, 2) AS d, 2::HUGEINT AS h, 3::UBIGINT AS u, true AS b, 7::DECIMAL(38, 0) AS w"
    duckdb.sql(f"COPY (SELECT {values}) TO '{tmp_path / 'rows.parquet'}'")
    table = Source.read(tmp_path / "rows.parquet").table
    assert [kind.kind for kind in table.dtypes] == ["f", "f", "u", "b", "i"]
    assert table.iloc[0].tolist() == [1.5, 2, 3, True, 7]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.integers(0, 2, 60), "g": rng.integers(1, 3, 60), "p": rng.integers(0, 9, 60) / 8})
    decimals = frame.map(lambda value: Decimal(str(value)))
    decimals.to_parquet(tmp_path / "decimals.parquet")
    expected = contingency(frame, label="y", group="g", score="p")
    for source in (decimals, tmp_path / "decimals.parquet"):
        found = contingency(source, label="y", group="g", score="p")
        assert found.groups == expected.groups
        np.testing.assert_array_equal(found.table, expected.table)


@pytest.mark.parametrize("group", ['" sex"', 'race, " sex"', '" sex*race"', '"a,b"'])
def test_names_with_spaces_and_commas_are_given_in_quotes(group: str, here: Path) -> None:
    rows = pd.DataFrame({" sex": [*"abba"] * 9, "race": [*"cd"] * 18, "a,b": [*"ef"] * 18, " d": [0, 1, 1] * 12})
    rows.to_parquet("rows.parquet")
    options = (
        "permutation",
        "--predictions",
        "rows.parquet",
        "no--label",
        "--prediction",
        " d",
        "--metric",
        "selection_rate",
    )
    found = json_of(*options, "--group", group)
    assert {one["rows"] for one in found["groups"]} == {9 if "*" in group else 18}


COMPAS = "--label two_year_recid --score decile_score --threshold 5 --group race --metric fpr,fnr --pairs --draws 999"


def rates(path: Path) -> tuple[dict[tuple[str, str], float], list[str]]:
    """The rates that the command finds in a file, by group and metric, and its caveats."""
    made = json_of("permutation", "--predictions", str(path), *COMPAS.split())
    pairs = [(one["metric"], group) for one in made["results"] for group in one["groups"]]
    return {(group["name"], metric): group["estimate"] for metric, group in pairs}, made["caveats"]


def test_a_file_with_repeated_columns_is_audited_as_it_is(here: Path) -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"race": rng.choice(["a", "b"], 400), "two_year_recid": rng.integers(0, 2, 400)})
    rows = rows.assign(decile_score=rng.integers(1, 11, 400), priors_count=rng.integers(0, 9, 400))
    other = rows[["decile_score", "priors_count"]].to_numpy()[::-1]
    twice = pd.concat([rows, pd.DataFrame(other, columns=["decile_score", "priors_count"])], axis="columns")
    twice.to_csv("rows.csv", index=False)
    found, caveats = rates(Path("rows.csv"))
    for (race, metric), rate in found.items():
        people = rows[(rows["race"] == race) & (rows["two_year_recid"] == (metric == "fnr"))]
        wrong = people["decile_score"] >= 5 if metric == "fpr" else people["decile_score"] < 5
        assert rate == pytest.approx(wrong.mean(), abs=1e-12)
    assert len(found) == 4
    assert all(any(name in text for text in caveats) for name in ("decile_score.1", "priors_count.1"))


def test_the_published_file_of_compas_has_the_published_rates(here: Path) -> None:
    places = [folder / FILE for folder in availability.folders(ROOT / "data" / "raw" / "compas")]
    path = next((path for path in places if path.is_file()), None)
    if path is None:
        pytest.skip(f"{FILE} is neither in data/raw/compas nor in a DATA_MIRROR folder")
    found, caveats = rates(path)
    expected = {"African-American": (0.4485, 0.2799), "Caucasian": (0.2345, 0.4772)}
    for race, values in expected.items():
        assert tuple(round(found[race, metric], 4) for metric in ("fpr", "fnr")) == values
    assert any("decile_score.1" in text for text in caveats)
