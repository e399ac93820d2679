"""The model gets the rows that its own predict would see: names, order, types, values, and the kind of table."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy.special import softmax
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from sklearn.svm import SVC

import fairness_audits as fa
from fairness_audits.attacks import decision_search
from fairness_audits.cli.entry import main
from fairness_audits.inputs.known import categories, input_names
from fairness_audits.inputs.model import Model, load_model
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import predictor
from fairness_audits.inputs.probe import answered
from fairness_audits.inputs.table import Source
from fairness_audits.models.outputs import detected_kind
from tests.errors import invalid

catboost, lightgbm, xgboost = map(pytest.importorskip, ("catboost", "lightgbm", "xgboost"))
skl2onnx, onnx_types = map(pytest.importorskip, ("skl2onnx", "skl2onnx.common.data_types"))
to_onnx, convert_sklearn = skl2onnx.to_onnx, skl2onnx.convert_sklearn
N = 240
QUICK: dict[str, Any] = {"map": "exact", "null_draws": 0, "refits": 0}
SEX = np.where(np.arange(N) % 2 == 0, "f", "m")
RNG = np.random.default_rng(3)
CODE = np.where(SEX == "m", RNG.choice(4, N, p=[0.1, 0.2, 0.3, 0.4]), RNG.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])) + 1
U = RNG.normal(size=N).round(3)
Y = (1.2 * (CODE >= 3) + U + 0.7 * RNG.logistic(size=N) > 0.6).astype(int)
X = pd.DataFrame({"code": CODE, "u": U})


@pytest.fixture(autouse=True)
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model is given does not depend on how long the search for its nearest decisions takes."""
    for name in ("PHASES", "ROUNDS", "STEP_HALVINGS", "HALVINGS", "COORDINATE_HALVINGS"):
        monkeypatch.setattr(decision_search, name, 2)


def encoded(column: str = "code", first: Any = None, **how: Any) -> Any:
    """An unfitted pipeline that takes a column as categories, ``first`` changed by a function."""
    encoder: Any = OneHotEncoder(handle_unknown="ignore", **how)
    part = encoder if first is None else make_pipeline(FunctionTransformer(first), encoder)
    return make_pipeline(make_column_transformer((part, [column]), ("passthrough", ["u"])), LogisticRegression())


def audits(model: Any, rows: Any, y: Any = Y, **options: Any) -> dict[str, float]:
    """The accuracy that each audit of all rows finds."""
    sensitive: Any = pd.Series(SEX, name="sex")
    quick: dict[str, Any] = {"permutations": 49, "bootstraps": 49}
    if not isinstance(rows, pd.DataFrame):
        sensitive = SEX
    flips = fa.fliptest(model, rows, SEX, y=y, source="f", target="m", **QUICK, **options)
    near = fa.robustness_bias(model, rows, y, groups=sensitive, **quick, **options)
    how: dict[str, Any] = {"least_share": 0.001, "standardize": "continuous", "steps": 5, "placebo": "none"}
    ratio = fa.loss_ratio(model, rows, y, sensitive=sensitive, reference=rows_and_sex(rows), **how, **options)
    return {
        "fliptest": flips.facts["accuracy"],
        "robustness": near.facts["accuracy"],
        "loss ratio": ratio.facts["results"]["accuracy"],
    }


def lightgbm_of() -> Any:
    return lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)


def rows_and_sex(rows: Any) -> pd.DataFrame:
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows)).add_prefix("x")
    return frame.assign(**({"sex": SEX} if isinstance(rows, pd.DataFrame) else {"sensitive": SEX}))


def right(model: Any, rows: Any) -> dict[str, Any]:
    return dict.fromkeys(("fliptest", "robustness", "loss ratio"), pytest.approx(np.mean(model.predict(rows) == Y)))


def test_whole_numbers_stay_whole_numbers_for_a_pipeline_that_turns_them_into_text() -> None:
    model = encoded(first=lambda frame: frame.astype(str)).fit(X, Y)
    assert audits(model, X) == right(model, X)
    (note,) = [one.text for one in fa.robustness_bias(model, X, Y, groups=SEX).caveats if one.condition == "codes"]
    assert "'code'" in note


@pytest.mark.parametrize(
    "model",
    [
        encoded(),
        catboost.CatBoostClassifier(
            cat_features=["code"], iterations=5, verbose=0, thread_count=1, allow_writing_files=False
        ),
        HistGradientBoostingClassifier(categorical_features=["code"], max_iter=2),
    ],
    ids=["encoder", "catboost", "boosted trees"],
)
def test_codes_that_a_model_takes_as_categories_switch_as_a_whole(model: Any) -> None:
    """The numbers of the codes say nothing about distances."""
    model.fit(X, Y)
    assert audits(model, X) == right(model, X)
    found = fa.robustness_bias(model, X, Y, groups=SEX, permutations=49, bootstraps=49)
    assert (found.facts["data"]["switches"], found.facts["data"]["numbers"]) == (["code"], ["u"])


@pytest.mark.parametrize(
    "around",
    [
        lambda model: model,
        lambda model: OneVsRestClassifier(model),
        lambda model: VotingClassifier([("one", model)], voting="soft"),
        lambda model: make_pipeline(SimpleImputer(strategy="most_frequent").set_output(transform="pandas"), model),
    ],
    ids=["plain", "one against rest", "vote", "imputer"],
)
def test_distances_do_not_depend_on_how_categories_are_stored(around: Callable[..., Any]) -> None:
    """An encoder that does not know 2.37 treats it as no code at all, wherever it is."""
    texts = X.assign(code=X["code"].astype(str))
    found = [
        fa.robustness_bias(around(encoded()).fit(rows, Y), rows, Y, groups=SEX, attack="exact") for rows in (X, texts)
    ]
    assert found[0].facts["data"]["switches"] == ["code"]
    one, other = (result.to_frame("distances")["distance_exact"].to_numpy() for result in found)
    np.testing.assert_allclose(one, other)


def test_any_numeric_column_can_be_named_as_a_category_in_each_audit() -> None:
    def model(frame: pd.DataFrame) -> Any:
        return (frame["code"] % 2 + frame["u"] > 0.5).to_numpy(float)

    class Rule:
        predict = staticmethod(lambda rows: np.asarray(model(rows)))

    assert audits(model, X, categorical="code") == right(Rule, X)
    found = fa.robustness_bias(model, X, groups=SEX, categorical=["code"], permutations=49, bootstraps=49)
    assert found.facts["data"]["switches"] == ["code"]
    with invalid(option="categorical", column="cod"):
        fa.robustness_bias(model, X, groups=SEX, categorical=["cod"])


def test_models_that_predict_by_position_get_their_columns_by_name() -> None:
    booster = lightgbm.train({"verbose": -1, "objective": "binary", "num_threads": 1}, lightgbm.Dataset(X, Y), 10)
    turned = X[["u", "code"]]
    own = np.asarray(booster.predict(X)) >= 0.5
    assert set(audits(booster, turned).values()) == {np.mean(own == Y)}
    assert input_names(booster) == (("code", "u"), False)
    array = lightgbm.train({"verbose": -1}, lightgbm.Dataset(X.to_numpy(), Y), 1)
    assert input_names(array) == (("Column_0", "Column_1"), True)


@pytest.mark.parametrize("model", [LogisticRegression(), xgboost.XGBClassifier(n_estimators=5), lightgbm_of()])
@pytest.mark.parametrize("prefix", ["", "Column_"])
def test_names_that_a_library_might_have_made_up_are_names_if_the_table_has_them(model: Any, prefix: str) -> None:
    rows = X.set_axis([f"{prefix}0", f"{prefix}1"], axis="columns")
    model.fit(rows, Y)
    turned = rows.iloc[:, ::-1]
    found = fa.fliptest(model, turned, SEX, y=Y, source="f", target="m", **QUICK)
    assert found.facts["accuracy"] == pytest.approx((model.predict(rows) == Y).mean())


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_category_stays_what_it_was(missing: Any) -> None:
    rows = X.assign(code=pd.Series(np.array(["a", "b", "c", missing], dtype=object)[CODE - 1], dtype=object))
    seen = set[type]()

    def model(frame: pd.DataFrame) -> np.ndarray:
        seen.update(type(value) for value in frame["code"] if pd.isna(value))
        return ((frame["code"].isna() | (frame["code"] == "c")).to_numpy(float) + frame["u"].to_numpy() > 0.5) * 1.0

    fa.fliptest(model, rows, SEX, source="f", target="m", map="entropic", null_draws=0, refits=0)
    assert seen == {type(missing)}


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda frame: frame, pd.DataFrame),
        (lambda frame: frame.astype({"u": "float32", "code": "int16"}), pd.DataFrame),
        (lambda frame: frame.astype({"code": "Int64"}), pd.DataFrame),
        (pl.from_pandas, pl.DataFrame),
        (lambda frame: pa.Table.from_pandas(frame), pa.Table),
        (lambda frame: frame.to_numpy(dtype=np.float32), np.ndarray),
        (lambda frame: frame[["code"]].assign(other=SEX == "m").to_numpy(dtype=np.int64), np.ndarray),
        (lambda frame: torch.tensor(frame.to_numpy(dtype=np.float32)), torch.Tensor),
    ],
    ids=["frame", "narrow", "nullable", "polars", "arrow", "array", "whole", "tensor"],
)
def test_a_function_gets_the_kind_of_table_and_the_types_that_it_was_given(
    make: Callable[..., Any], kind: type
) -> None:
    rows = make(X)
    seen = []

    def types(table: Any) -> Any:
        return table.schema if isinstance(table, pl.DataFrame | pa.Table) else getattr(table, "dtypes", None)

    def model(table: Any) -> Any:
        seen.append((type(table), str(types(table)), str(getattr(table, "dtype", ""))))
        return np.asarray(table if not isinstance(table, pl.DataFrame | pa.Table) else table.to_pandas())[:, 0] > 2

    fa.fliptest(model, rows, SEX, source="f", target="m", **QUICK)
    schema = types(rows).remove_metadata() if isinstance(rows, pa.Table) else types(rows)
    own = (kind, str(schema), str(getattr(rows, "dtype", "")))
    found = [(one, two.split("\n-- schema")[0], three) for one, two, three in seen]
    # Numbers between whole numbers are tried, to see whether these are codes.
    assert found[-1] == own
    assert len(found) - found.count(own) <= 12


def test_a_model_that_sees_other_rows_than_its_own_is_refused_with_the_first_difference() -> None:
    """None and NaN in one column are one missing value for the audit, and two categories for this model."""
    values = np.array(["a", None, "b", float("nan")], dtype=object)[CODE - 1]
    rows = X.assign(code=pd.Series(values, dtype=object))

    def model(frame: pd.DataFrame) -> np.ndarray:
        return np.array([value is None for value in frame["code"]], dtype=float)

    missing = [place for place, value in enumerate(values) if pd.isna(value)]
    first = values[missing[0]]
    row = next(place for place in missing if (values[place] is None) != (first is None))
    with invalid(option="model", column="code", row=row):
        fa.fliptest(model, rows, SEX, source="f", target="m", **QUICK)
    with invalid(option="model", column="code", row=row):
        fa.fliptest(lambda frame: model(frame) > 0, rows, SEX, source="f", target="m", **QUICK)


def test_a_model_that_remembers_its_calls_is_refused() -> None:
    calls: list[int] = []

    def model(frame: pd.DataFrame) -> np.ndarray:
        calls.append(len(frame))
        return (frame["u"] > len(calls) % 2).to_numpy(float)

    with invalid(option="model"):
        fa.fliptest(model, X, SEX, source="f", target="m", **QUICK)


FILES: dict[str, tuple[list[str], Any, tuple[str, ...]]] = {
    "leading zeros": (["01", "02", "10", "3"], encoded(), ()),
    "codes that are text": (["01", "02", "10", "3"], encoded(), ("--text", "code")),
    "booleans and gaps": (["True", "False", "", "True"], encoded(), ()),
    "missing text": (["NA", "x", "y", "null"], encoded(), ()),
    "categories of whole numbers": (
        ["1", "2", "10", "3"],
        lightgbm_of(),
        (),
    ),
    "the same as text": (
        ["1", "2", "10", "3"],
        lightgbm_of(),
        ("--text", "code"),
    ),
}


@pytest.mark.parametrize("separator", [",", ", ", ";"])
@pytest.mark.parametrize("name", FILES)
def test_the_command_reads_a_file_as_the_training_code_did(
    name: str, separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, model, options = FILES[name]
    monkeypatch.chdir(tmp_path)
    lines = zip(np.array(cells)[CODE - 1], U, SEX, Y, strict=True)
    text = "".join(separator.join(map(str, line)) + "\n" for line in [("code", "u", "sex", "y"), *lines])
    Path("rows.csv").write_text(text)
    dtype = {"code": str} if name == "codes that are text" else None
    rows = pd.read_csv("rows.csv", sep=separator.strip(), skipinitialspace=True, dtype=dtype)
    if isinstance(model, lightgbm.LGBMClassifier):
        rows = rows.astype({"code": "category"})
    model.fit(rows[["code", "u"]], Y)
    joblib.dump(model, "model.joblib")
    asked = ["--data", "rows.csv", "--label", "y", "--trust-pickle", *options, "--json", "out.json"]
    flips = "--group sex --source f --target m --predict model.joblib --map exact --null-draws 0 --refits 0"
    near = "--group sex --model model.joblib --features code,u --permutations 49 --bootstraps 49"
    if cells[0] == "01" and separator == ",":  # robustness needs complete rows
        assert main(["robustness", *asked, *near.split()]) == 0
        found = json.loads(Path("out.json").read_text())
        assert found["accuracy"] == pytest.approx(np.mean(model.predict(rows[["code", "u"]]) == Y))
    assert main(["fliptest", *asked, *flips.split()]) == 0
    found = json.loads(Path("out.json").read_text())
    assert found["accuracy"] == pytest.approx(np.mean(model.predict(rows[["code", "u"]]) == Y))
    assert "was not fitted on" not in str(found["caveats"])


def test_a_parquet_file_has_the_types_that_pandas_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = X.assign(
        code=pd.Categorical(CODE, categories=[4, 3, 2, 1], ordered=True),
        u=U.astype(np.float32),
        note=np.array(["x", None], dtype=object)[(CODE > 2).astype(int)],
        sex=SEX,
    )
    rows.set_index(np.arange(N) + 7).to_parquet("rows.parquet")
    Path("model.py").write_text(
        "seen = []\ndef model(frame):\n    seen.append((dict(frame.dtypes), frame['note'].isna().sum()))\n"
        "    return (frame['u'] > 0).to_numpy(float)\n"
    )
    asked = "--data rows.parquet --group sex --source f --target m --predict model.py:model --map exact"
    assert main(["fliptest", *asked.split(), "--null-draws", "0", "--refits", "0"]) == 0
    inputs = pd.read_parquet("rows.parquet")[["code", "u", "note"]]
    seen = sys.modules["user_code"].seen
    assert (dict(inputs.dtypes), inputs["note"].isna().sum()) in [(types, missing) for types, missing in seen]


def test_categories_that_the_model_was_not_fitted_on_are_counted() -> None:
    model = encoded().fit(X[CODE != 2], Y[CODE != 2])
    for result in (
        fa.fliptest(model, X, SEX, source="f", target="m", **QUICK),
        fa.robustness_bias(model, X, Y, groups=SEX, permutations=49, bootstraps=49),
    ):
        (caveat,) = [one.text for one in result.caveats if one.condition == "unknown_categories"]
        assert f"{(CODE == 2).sum():,} rows" in caveat.replace("\n", " ")


def test_fitted_models_say_which_inputs_are_categories_and_which_values_they_know() -> None:
    assert categories(encoded().fit(X, Y), ["code", "u"]) == {"code": (1, 2, 3, 4)}
    by_place = make_pipeline(make_column_transformer((OrdinalEncoder(), [0]), remainder="passthrough"), SVC())
    assert categories(by_place.fit(X.to_numpy(), Y), range(2)) == {0: (1.0, 2.0, 3.0, 4.0)}
    frame = X.astype({"code": "category"})
    trees = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(frame, Y)
    assert categories(trees, ["code", "u"]) == {"code": (1, 2, 3, 4)}
    again = lightgbm.Booster(model_str=trees.booster_.model_to_string())
    assert categories(again, ["code", "u"]) == {"code": (1, 2, 3, 4)}
    boosted = xgboost.XGBClassifier(n_estimators=2, enable_categorical=True).fit(frame, Y)
    assert categories(boosted, ["code", "u"]) == {"code": None}
    assert categories(LogisticRegression().fit(X, Y), ["code", "u"]) == {}


def test_a_regression_on_labels_0_and_1_decides_at_one_half_in_every_audit() -> None:
    rows = pd.DataFrame({"u": U + 0.5 * (SEX == "m"), "v": RNG.normal(size=N)})
    model = LinearRegression().fit(rows, Y)
    score = model.predict(rows)
    assert not ((score >= 0) & (score <= 1)).all()
    np.testing.assert_allclose(list(audits(model, rows).values()), ((score >= 0.5) == Y).mean())
    found = fa.robustness_bias(model, rows, Y, groups=SEX, attack="exact").to_frame("distances")
    distance = np.abs(score - 0.5) / np.linalg.norm(model.coef_ * rows.std(ddof=0))
    correct = (score >= 0.5) == Y
    np.testing.assert_allclose(found["distance_exact"][correct], distance[correct], rtol=1e-6)
    with invalid(option="threshold"):
        fa.fliptest(model, rows, SEX, source="f", target="m", **QUICK)
    with invalid(option="output_kind"):
        fa.robustness_bias(model, rows, groups=SEX)
    names = np.array(["no", "yes"])[Y]
    with invalid(option="output_kind"):
        fa.loss_ratio(model, rows, names, sensitive=SEX, positive="yes")


@pytest.mark.parametrize("change", [lambda p: p.astype(np.float16), lambda p: p.round(2), lambda p: p.round(3)])
@pytest.mark.parametrize("columns", [2, 3, 10])
def test_rounded_probabilities_are_probabilities(change: Callable[..., Any], columns: int) -> None:
    p = softmax(np.random.default_rng(columns).normal(size=(200, columns)), axis=1)
    assert detected_kind(change(p)) == "probability"
    assert detected_kind(np.abs(p + 0.1)) == "logits"


def test_a_threshold_on_half_precision_is_one_on_probabilities() -> None:
    rows = pd.DataFrame({"u": U, "v": RNG.normal(size=N)})
    p = softmax(np.c_[np.zeros(N), U], axis=1).astype(np.float16)
    found = fa.fliptest(
        lambda frame: softmax(np.c_[np.zeros(len(frame)), frame["u"]], axis=1).astype(np.float16),
        rows,
        SEX,
        source="f",
        target="m",
        threshold=0.7,
        **QUICK,
    )
    decided = p[:, 1] >= np.float16(0.7)
    positives = found.facts["results"][0]["positives"]
    assert (positives["source"], positives["target"]) == tuple(int(decided[one == SEX].sum()) for one in "fm")


def exported(path: Path, network: torch.nn.Module, names: list[str]) -> None:
    torch.onnx.export(
        network.eval(),
        (torch.zeros(3, 2),),
        str(path),
        input_names=["x"],
        output_names=names,
        dynamic_axes={"x": {0: "n"}},
        dynamo=False,
    )


class Two(torch.nn.Module):
    """A probability and its variance."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        p = torch.sigmoid(3 * x[:, 1:] + x[:, :1] - 2)
        return p, p * (1 - p)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_onnx_program_of_two_outputs_is_refused_until_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exported(Path("two.onnx"), Two(), ["probability", "variance"])
    call: dict[str, Any] = {"y": Y, "source": "f", "target": "m", **QUICK}
    with invalid(option="model") as caught:
        fa.fliptest("two.onnx", X, SEX, **call)
    assert "two.onnx:NAME" in caught.value.remedy
    with invalid(option="model"):
        fa.fliptest("two.onnx:probabilities", X, SEX, **call)
    found = fa.fliptest("two.onnx:probability", X, SEX, **call)
    own = Two()(torch.tensor(X.to_numpy(dtype=np.float32)))[0].numpy()[:, 0] >= 0.5
    assert found.facts["accuracy"] == pytest.approx((own == Y).mean())


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_labels_of_an_onnx_program_decide_and_scores_that_contradict_them_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = X.to_numpy(dtype=np.float32)
    for model, options in (
        (LogisticRegression(), {"zipmap": False, "output_class_labels": True}),
        (LogisticRegression(), {"zipmap": True}),
        (SVC(), {"zipmap": False}),
    ):
        model.fit(rows, Y)
        Path("m.onnx").write_bytes(to_onnx(model, rows[:1], options={id(model): options}).SerializeToString())
        flips = fa.fliptest("m.onnx", X, SEX, y=Y, source="f", target="m", **QUICK)
        expected = (model.predict(rows) == Y).mean()
        assert flips.facts["accuracy"] == pytest.approx(expected)
        call: dict[str, Any] = {"sensitive": SEX, "steps": 5, "least_share": 0.001, "standardize": "continuous"}
        if isinstance(model, SVC):
            with invalid(option="model"):
                fa.loss_ratio("m.onnx", X, Y, **call)
        else:
            # A fifth of the rows gives the values of the search, and is not audited.
            accuracy = fa.loss_ratio("m.onnx", X, Y, **call).facts["results"]["accuracy"]
            assert accuracy == pytest.approx(expected, abs=0.05)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("names", [(0, 1), (-1, 1), ("good", "zbad")])
@pytest.mark.parametrize("zipmap", [True, False])
def test_the_positive_class_of_an_onnx_program_is_its_second(
    names: tuple[Any, Any], zipmap: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows, y = X.to_numpy(dtype=np.float32), np.array(names)[Y]
    model = LogisticRegression().fit(rows, y)
    Path("m.onnx").write_bytes(to_onnx(model, rows[:1], options={id(model): {"zipmap": zipmap}}).SerializeToString())
    expected = pytest.approx((model.predict(rows) == y).mean())
    call: dict[str, Any] = {"groups": SEX, "permutations": 49, "bootstraps": 49}
    assert fa.robustness_bias("m.onnx", X, y, **call).facts["accuracy"] == expected
    assert fa.fliptest("m.onnx", X, SEX, y=y, source="f", target="m", **QUICK).facts["accuracy"] == expected
    first = str(names[0])
    with invalid(option="positive"):
        fa.robustness_bias("m.onnx", X, y, positive=first, **call)
    flips = fa.fliptest("m.onnx", X, SEX, y=y, source="f", target="m", positive=first, **QUICK)
    assert flips.facts["accuracy"] == expected
    positives = flips.facts["results"][0]["positives"]
    own = model.predict(rows) == names[0]
    assert (positives["source"], positives["target"]) == tuple(int(own[one == SEX].sum()) for one in "fm")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_onnx_program_with_an_input_for_each_column_gets_them_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"job": np.array(["a", "b", "c", "d"])[CODE - 1], "u": U})
    model = encoded("job").fit(rows, Y)
    types = [("job", onnx_types.StringTensorType([None, 1])), ("u", onnx_types.FloatTensorType([None, 1]))]
    program = convert_sklearn(model, initial_types=types, options={id(model): {"zipmap": False}})
    Path("m.onnx").write_bytes(program.SerializeToString())
    expected = pytest.approx((model.predict(rows) == Y).mean())
    turned = rows[["u", "job"]]
    flips = fa.fliptest("m.onnx", turned, SEX, y=Y, source="f", target="m", **QUICK)
    assert flips.facts["accuracy"] == expected
    near = fa.robustness_bias("m.onnx", turned, Y, groups=SEX, permutations=49, bootstraps=49)
    assert near.facts["accuracy"] == expected
    assert near.facts["data"]["switches"] == ["job"]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_named_output_of_the_other_class_is_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = X.to_numpy(dtype=np.float32)
    model = LogisticRegression().fit(rows, Y)
    options = {id(model): {"zipmap": "columns"}}
    Path("m.onnx").write_bytes(to_onnx(model, rows[:1], options=options).SerializeToString())
    call: dict[str, Any] = {"groups": SEX, "permutations": 49, "bootstraps": 49}
    expected = pytest.approx((model.predict(rows) == Y).mean())
    assert fa.robustness_bias("m.onnx:i1", X, Y, **call).facts["accuracy"] == expected
    with invalid(option="model"):
        fa.robustness_bias("m.onnx:i0", X, Y, **call)
    for output in ("i0", "i1"):
        found = fa.fliptest(f"m.onnx:{output}", X, SEX, y=Y, source="f", target="m", **QUICK)
        assert found.facts["accuracy"] == expected


def test_a_regression_as_an_onnx_program_decides_at_one_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = X.to_numpy(dtype=np.float32)
    model = LinearRegression().fit(rows, Y)
    Path("m.onnx").write_bytes(to_onnx(model, rows[:1]).SerializeToString())
    found = fa.robustness_bias("m.onnx", X, Y, groups=SEX, permutations=49, bootstraps=49)
    assert found.facts["accuracy"] == pytest.approx(((model.predict(rows) >= 0.5) == Y).mean())


@pytest.mark.parametrize("columns", [1, 2])
def test_a_probability_of_one_half_is_decided_alike_by_all_audits(columns: int) -> None:
    def model(frame: pd.DataFrame) -> np.ndarray:
        p = (1 / (1 + np.exp(-frame["u"].to_numpy()))).round(1)
        return p if columns == 1 else np.c_[1 - p, p]

    p = (1 / (1 + np.exp(-U))).round(1)
    assert (p == 0.5).sum() > 10
    expected = ((p >= 0.5) == Y).mean()
    np.testing.assert_allclose(list(audits(model, ROWS).values()), expected)


class Unnamed:
    """Decides for class 1 from 0.3 on, and does not name its classes 0 and 1."""

    def __init__(self, first: int = 0, strange: Any = 1) -> None:
        self.first, self.strange = first, strange

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        decision = (frame["u"] >= 0.3).to_numpy()
        return np.where(decision, 1, 0) if self.strange == 1 else np.where(frame["u"] > 2.7, self.strange, decision)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        p = 1 / (1 + np.exp(-frame["u"].to_numpy()))
        return np.stack([1 - p, p] if self.first == 0 else [p, 1 - p], axis=1)


ROWS = pd.DataFrame({"u": U, "v": RNG.normal(size=N)})


def test_a_predict_that_names_no_classes_decides_in_every_audit() -> None:
    expected = ((U >= 0.3) == Y).mean()
    assert expected != ((U >= 0) == Y).mean()
    np.testing.assert_allclose(list(audits(Unnamed(), ROWS).values()), expected)


@pytest.mark.parametrize("audit", [fa.loss_ratio, fa.robustness_bias])
def test_scores_in_the_wrong_order_contradict_a_predict_that_names_no_classes(audit: Callable[..., Any]) -> None:
    names = {"sensitive" if audit is fa.loss_ratio else "groups": pd.Series(SEX, name="sex")}
    with invalid(option="model"):
        audit(Unnamed(first=1), ROWS, Y, **names)


def test_decision_values_are_no_probabilities_wherever_they_lie() -> None:
    class Sure:
        classes_ = np.array([0, 1])

        def decision_function(self, frame: pd.DataFrame) -> np.ndarray:
            return 1 / (1 + np.exp(-frame["u"].to_numpy()))

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return np.ones(len(frame), dtype=int)

    source = Source("t.csv", ROWS)
    with load_model(Sure(), False, Computing("cpu")) as model:
        answers = answered(predictor(model, source.inputs(list(ROWS)), Computing("cpu")), ROWS, "t.csv", "auto")
    assert (answers.kind, answers.decision_values) == ("logits", True)
    np.testing.assert_allclose(answers.probabilities(ROWS)[:, 1], 1 / (1 + np.exp(-1 / (1 + np.exp(-U)))))


def test_a_class_that_the_model_predicts_for_moved_rows_alone_is_refused() -> None:
    source, known = Source("t.csv", ROWS), ROWS[ROWS["u"] < 2]
    with load_model(Unnamed(strange=7), False, Computing("cpu")) as model:
        answers = answered(predictor(model, source.inputs(list(ROWS)), Computing("cpu")), known, "t.csv", "auto")
    with invalid(option="predict"):
        answers.decisions(ROWS.assign(u=3.0))


def test_values_that_are_not_finite_name_their_row_of_the_table() -> None:
    source = Source("t.csv", ROWS)
    made = Model(lambda frame: frame["u"].where(frame.index != 71).to_numpy(), "test", None)
    with invalid(option="model", row=71):
        answered(predictor(made, source.inputs(list(ROWS)), Computing("cpu")), ROWS.iloc[50:90], "t.csv", "auto")


class Squeezing(torch.nn.Module):
    """A network that drops every axis of length 1, also that of a batch of one."""

    def __init__(self, most: int = 10**9) -> None:
        super().__init__()
        self.most, self.calls = most, list[int]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert len(x) <= self.most
        return (x @ torch.tensor([[0.5], [1.0]], dtype=x.dtype)).squeeze()


@pytest.mark.parametrize("n", [8193, 16385])
def test_a_network_that_squeezes_is_never_called_with_one_row(n: int) -> None:
    rng = np.random.default_rng(n)
    rows, group = rng.normal(size=(n, 2)), np.where(np.arange(n) % 2 == 0, "f", "m")
    found = fa.fliptest(
        Squeezing(),
        rows,
        group,
        source="f",
        target="m",
        threshold=0,
        map="entropic",
        null_draws=0,
        refits=0,
        limit=8192,
    )
    decided = rows @ [0.5, 1.0] >= 0
    expected = tuple(int(decided[group == one].sum()) for one in "fm")
    if n == 8193:
        positives = found.facts["results"][0]["positives"]
        assert (positives["source"], positives["target"]) == expected


@pytest.mark.parametrize("most", [1, 7])
def test_a_model_is_called_with_no_more_rows_than_it_takes(most: int) -> None:
    y = (U > 0).astype(int)
    rows = pd.DataFrame({"u": U, "v": RNG.normal(size=N)})
    how: dict[str, Any] = {"batch_rows": most}
    call: dict[str, Any] = {"sensitive": SEX, "steps": 3, "placebo": "none", "standardize": "none"}
    limited = fa.loss_ratio(Squeezing(most), rows, y, **call, **how)
    assert limited.facts["results"] == fa.loss_ratio(Squeezing(), rows, y, **call).facts["results"]
    fa.fliptest(Squeezing(most), rows, SEX, source="f", target="m", threshold=0, **QUICK, **how)
    images = torch.rand(24, 1, 1, 2, generator=torch.Generator().manual_seed(0)).numpy()

    class OfImages(Squeezing):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.flatten(1) - 0.5)

    group = np.arange(24) % 2
    quick: dict[str, Any] = {"permutations": 49, "bootstraps": 49, "min_group": 2}
    fa.robustness_bias(OfImages(most), images, groups=group, **quick, **how)


def test_models_with_other_outputs_or_inputs_are_told_how_to_be_wrapped() -> None:
    class Several(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return (x[:, :1], x)

    class Named(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"logits": x[:, :1]}

    class Sensitive:
        def predict(self, X: Any, *, sensitive_features: Any) -> Any:
            return sensitive_features

    for model, word in ((Several(), "[0]"), (Named(), "['logits']"), (Sensitive(), "sensitive_features")):
        for audit in (
            lambda model=model: fa.fliptest(model, X, SEX, source="f", target="m", threshold=0.0, **QUICK),
            lambda model=model: fa.loss_ratio(model, X, Y, sensitive=SEX, standardize="none"),
            lambda model=model: fa.robustness_bias(model, X, Y, groups=SEX),
        ):
            with invalid(option="model") as caught:
                audit()
            assert word in caught.value.remedy


def test_values_that_are_too_rare_to_be_moved_to_are_the_reason() -> None:
    """The share of the code is .98; a lower least_share would admit other columns alone."""
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["code"]), ("passthrough", ["u"])), LogisticRegression()
    )
    model.fit(X, Y)
    with invalid(option="reference", column="code"):
        fa.loss_ratio(model, X, Y, sensitive=SEX, least_share=0.1, standardize="continuous")
