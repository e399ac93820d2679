"""Arguments of any make, in any order of rows, under any names: the audit is that of the plain arrays, or refused."""

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import fairness_audits as fa
from fairness_audits.inputs import arrays, columns
from tests.errors import invalid

N = 120
RNG = np.random.default_rng(3)
ROWS = pd.DataFrame({"sex": RNG.integers(0, 2, N), "age": RNG.normal(50, 10, N).round(), "inc": RNG.normal(size=N)})
ROWS["inc"] += ROWS["sex"]
HIRED = pd.Series((ROWS["inc"] + RNG.logistic(size=N) > 0.5).astype(int), name="hired")
SCORE = 1 / (1 + np.exp(-ROWS["inc"].to_numpy()))
X = ROWS.astype(float)
GROUP = ROWS["sex"].map({0: "f", 1: "m"}).to_numpy(dtype=object)
MODEL = LogisticRegression().fit(X, HIRED)
OF_ARRAYS = LogisticRegression().fit(X.to_numpy(), HIRED)
IMAGES = RNG.random((N, 4, 4))
BRIGHT = (IMAGES.sum(axis=(1, 2)) > 8).astype(int)
WEIGHT = torch.tensor([0.3, 0.5, 1.0], dtype=torch.float64)


def aucs(*arguments: Any, **given: Any) -> dict[str, float]:
    call: dict[str, Any] = {"metric": "auc", "draws": 99} | given
    (entry,) = fa.permutation_test(*arguments, **call).facts["results"]
    return {group["name"]: group["estimate"] for group in entry["groups"]}


def rates(y: Any, prediction: Any, group: Any, **given: Any) -> dict[tuple[str, str], tuple[int, float]]:
    entries = fa.permutation_test(y, prediction=prediction, group=group, metric="tpr", **given).facts["results"]
    return {(e["grouping"], g["name"]): (g["rows"], g["estimate"]) for e in entries for g in e["groups"]}


def flips(inputs: Any = X, group: Any = GROUP, model: Any = MODEL, **given: Any) -> dict[str, Any]:
    call: dict[str, Any] = {"source": "f", "target": "m", "map": "exact", "null_draws": 0} | given
    result = fa.fliptest(model, inputs, group, **call)
    found = result.facts["results"][0]
    sizes = {name: one["size"] for name, one in found["flipsets"].items()}
    return {**sizes, **found["positives"], "accuracy": result.facts["accuracy"]}


def ratio(inputs: Any = X, y: Any = HIRED, **given: Any) -> fa.Result:
    return fa.loss_ratio(lambda x: x @ WEIGHT, inputs, y, steps=20, standardize="continuous", **given)


def mean_ratio(*arguments: Any, **given: Any) -> float:
    return float(ratio(*arguments, **given).facts["results"]["loss_ratio"]["S_n"])


def biased(images: Any = IMAGES, y: Any = BRIGHT, groups: Any = GROUP) -> fa.Result:
    call: dict[str, Any] = {"attack": "exact", "permutations": 99, "bootstraps": 50, "groups": groups}
    return fa.robustness_bias(lambda x: x.flatten(1).sum(dim=1) - 8, images, y, **call)


def sigmas(*arguments: Any, **given: Any) -> list[float]:
    return biased(*arguments, **given).to_frame()["sigma"].tolist()


TRUE_AUC = {name: roc_auc_score(HIRED[name == GROUP], SCORE[name == GROUP]) for name in ("f", "m")}
ORDERS = st.permutations(range(N)).map(np.array)


@settings(max_examples=8, deadline=None)
@given(order=ORDERS, other=ORDERS)
def test_rows_in_any_order_give_the_same_metric(order: Any, other: Any) -> None:
    """Shuffled together, arrays go by position; in different orders, labels decide and arrays are ambiguous."""
    y, score, group = HIRED.iloc[order], pd.Series(SCORE).iloc[other], pd.Series(GROUP, name="sex").iloc[order]
    assert aucs(y, SCORE[order], group=group) == pytest.approx(TRUE_AUC)
    assert aucs(y.to_numpy(), SCORE[order], group=group.tolist()) == pytest.approx(TRUE_AUC)
    assert aucs(y, score, group=group) == pytest.approx(TRUE_AUC)
    if not np.array_equal(order, other):
        with invalid(option="group"):
            aucs(y, score, group=group.to_numpy())
    # The remedy is right.
    assert aucs(y, score, group=pd.Series(group.to_numpy(), index=y.index)) == pytest.approx(TRUE_AUC)


def test_every_audit_aligns_by_label() -> None:
    order = np.random.default_rng(1).permutation(N)
    sex, y, hired = ROWS["sex"].map({0: "f", 1: "m"}), pd.Series(BRIGHT), HIRED
    plain = flips(y=HIRED.to_numpy())
    assert flips(X.iloc[order], sex, y=hired) == plain
    assert flips(X.iloc[order], sex.iloc[order], y=hired.to_numpy()[order]) == plain
    plain_ratio = mean_ratio(X, HIRED, sensitive=GROUP)
    assert mean_ratio(X.iloc[order], HIRED, sensitive=sex) == pytest.approx(plain_ratio)
    assert mean_ratio(X.iloc[order], HIRED.to_numpy()[order], sensitive=sex.iloc[order]) == pytest.approx(plain_ratio)
    levels = pd.DataFrame({"groups": GROUP})
    assert sigmas(IMAGES[order], y.iloc[order], levels.iloc[order]) == pytest.approx(sigmas())
    with invalid(option="X"):
        biased(y=y.iloc[order], groups=levels)
    assert sigmas(IMAGES[order], y.iloc[order], levels.loc[y.iloc[order].index]) == pytest.approx(sigmas())


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(N) + 50,
        np.arange(N) % 60,
        [f"{row}" for row in range(N)],
        pd.MultiIndex.from_product([range(12), range(10)]),
    ],
)
def test_labels_that_do_not_match_are_refused_with_a_remedy(labels: Any) -> None:
    group = pd.Series(GROUP, index=labels)
    with invalid(option="group"):
        aucs(HIRED, SCORE, group=group)
    assert aucs(HIRED, SCORE, group=group.set_axis(HIRED.index)) == pytest.approx(TRUE_AUC)
    # The same labels in the same order need not differ from each other.
    assert aucs(HIRED.set_axis(labels), SCORE, group=group) == pytest.approx(TRUE_AUC)


def test_a_part_of_the_rows_beside_all_of_them_is_refused() -> None:
    some = X.sample(80, random_state=0)
    with invalid(option="group"):
        flips(some, ROWS["sex"], source="0", target="1")
    with invalid(option="y"):
        ratio(some, pd.Series(MODEL.predict(some)), sensitive=ROWS["sex"].loc[some.index])


def test_directions_with_names_are_those_of_the_columns() -> None:
    expected = mean_ratio(directions=[1.0, 0.0, 0.0])
    assert mean_ratio(directions=[0.0, 0.0, 1.0]) != pytest.approx(expected)
    for directions in (
        pd.Series({"age": 0.0, "inc": 0.0, "sex": 1.0}),
        pl.DataFrame({"inc": [0.0], "sex": [1.0], "age": [0.0]}),
        pd.DataFrame([[1.0, 0.0, 0.0]]),
        torch.tensor([[1.0, 0.0, 0.0]], requires_grad=True),
    ):
        assert mean_ratio(directions=directions) == pytest.approx(expected)
    with invalid(option="directions", column="colour"):
        ratio(directions=pd.Series({"colour": 1.0, "age": 0.0, "inc": 0.0}))


@pytest.mark.parametrize(
    "make",
    [
        pl.from_pandas,
        lambda frame: pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas,
        lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
        duckdb.from_df,
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
        lambda frame: frame.astype("Sparse[float]"),
        lambda frame: frame.to_records(index=False),
    ],
)
def test_frames_of_any_make_keep_their_names(make: Callable[[pd.DataFrame], Any]) -> None:
    assert flips(make(X), y=HIRED.to_numpy()) == flips(y=HIRED)
    assert mean_ratio(make(X), HIRED.to_numpy(), sensitive=GROUP) == pytest.approx(mean_ratio(sensitive=GROUP))
    # A model that polars' names reached in its fit is asked by them.
    assert flips(make(X), model=LogisticRegression().fit(pl.from_pandas(X), HIRED)) == flips()


@pytest.mark.parametrize(
    "make",
    [
        sparse.csr_matrix,
        sparse.csc_matrix,
        sparse.coo_array,
        np.asmatrix,
        lambda array: array.astype(">f8"),
        np.ma.masked_invalid,
        lambda array: torch.tensor(array, requires_grad=True),
        lambda array: torch.tensor(array).to_sparse(),
        np.ndarray.tolist,
        list,
    ],
)
def test_arrays_of_any_make_are_their_numbers(make: Callable[[np.ndarray], Any]) -> None:
    assert flips(make(X.to_numpy()), model=OF_ARRAYS) == flips(X.to_numpy(), model=OF_ARRAYS)


@pytest.mark.parametrize(
    "make",
    [
        torch.tensor,
        lambda y: torch.tensor(y, dtype=torch.bfloat16, requires_grad=True),
        lambda y: [torch.tensor(float(one), requires_grad=True) for one in y],
        lambda y: sparse.csr_matrix(y[:, None]),
        lambda y: y[:, None],
        lambda y: pd.DataFrame({"y": y}),
        memoryview,
        lambda y: y.astype(">i8"),
        lambda y: y.astype("S"),
        lambda y: pd.Categorical(y, categories=[0, 1, 2]),
        lambda y: pd.array(y, dtype="Int64"),
        lambda y: pd.array(y == 1, dtype="boolean"),
        lambda y: pd.array(y.astype(str), dtype="string"),
        lambda y: pd.Series(y, dtype="Sparse[int]"),
        lambda y: pl.Series(y),
        lambda y: pa.chunked_array([y]),
        lambda y: pa.array(y),
    ],
)
def test_one_value_a_row_may_be_of_any_make(make: Callable[[np.ndarray], Any]) -> None:
    assert aucs(make(HIRED.to_numpy()), SCORE, group=GROUP) == pytest.approx(TRUE_AUC)


@pytest.mark.parametrize(
    "values", ["hired", 1, np.array(1), {1, 0}, {"a": HIRED}, (one for one in HIRED), np.zeros((N, 2)), [[1], [1, 2]]]
)
def test_what_is_not_one_value_a_row_is_refused(values: Any) -> None:
    with invalid(option="y"):
        aucs(values, SCORE, group=GROUP)


def test_a_sparse_matrix_that_would_not_fit_is_refused_with_its_size() -> None:
    with invalid(option="X"):
        arrays.read_argument("X", sparse.csr_matrix((10**7, 10**6)))


@pytest.mark.parametrize(
    "group",
    [
        np.array(["a", "b", np.nan] * 40),
        np.array(["a", "b", None] * 40, dtype=object).astype(str),
        np.array(["a", "b", None] * 40, dtype=object),
        ["a", "b", pd.NA] * 40,
        np.ma.array(["a", "b", "c"] * 40, mask=[False, False, True] * 40),
        pd.array([1, 2, None] * 40, dtype="Int64"),
        pd.Categorical(["a", "b", None] * 40),
        pl.Series(["a", "b", None] * 40),
        pd.to_datetime(["2020-01-01", "2021-01-01", None] * 40),
    ],
)
def test_what_is_missing_is_no_group(group: Any) -> None:
    with invalid(option="group", column="group", row=2):
        rates(HIRED, HIRED.to_numpy(), group)
    with invalid(option="sensitive", column="sensitive", row=2):
        ratio(sensitive=group)
    with invalid(option="group", column="group", row=2):
        flips(group=group, source="a", target="b")
    found = biased(groups=group)
    assert len(set(found.to_frame()["level"])) == 2
    assert "unknown_group" in [caveat.condition for caveat in found.caveats]


def test_the_group_may_be_a_column_of_the_inputs_and_the_label_be_called_like_one() -> None:
    plain = flips(y=HIRED.to_numpy())
    call: dict[str, Any] = {"source": "0", "target": "1", "y": HIRED}
    for group in (X["sex"], "sex", ROWS["sex"], ROWS["sex"].to_numpy()):
        assert flips(group=group, **call) == plain
    assert flips(group=pd.Series(GROUP, name="sex"), y=HIRED.rename("age"), ids=ROWS["age"] * N + ROWS.index) == plain
    with invalid(option="group", column="hired"):
        flips(group="hired", y=HIRED)
    expected = mean_ratio(sensitive=X["sex"])
    for sensitive in (pd.Series(GROUP, name="sex"), GROUP, 1 - ROWS["sex"]):
        assert mean_ratio(sensitive=sensitive) == pytest.approx(expected)
    label = (X["age"] > 50).astype(int)
    expected = mean_ratio(X, label.to_numpy(), sensitive=X["sex"].to_numpy())
    assert mean_ratio(X, label, sensitive=X["sex"]) == pytest.approx(expected)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["sex", "y", "score", "group", "group (y)", "x"]), min_size=5, max_size=5))
def test_columns_of_any_names_are_kept_apart(names: list[str]) -> None:
    """Whatever the arguments are called, each column of the table holds the values of its own argument."""
    values = [pd.Series(np.arange(4) + 10 * place, name=name) for place, name in enumerate(names)]
    single, several = {"y": values[0], "score": values[1]}, {"group": values[2], "attribute": values[3]}
    made = columns.Columns(single, several, X=values[4].to_frame())
    table = made.frame()
    found = [made.one("y"), made.one("score"), *made.several("group"), *made.several("attribute"), *made.several("X")]
    assert len(set(found)) == len(table.columns) == 5
    for name, own in zip(found, values, strict=True):
        assert table[name].tolist() == own.tolist()
    assert made.several("X") == (names[4],)


def test_groups_may_be_called_as_an_audit_calls_them() -> None:
    decision = (SCORE > 0.5).astype(int)

    def true_rate(inside: np.ndarray) -> tuple[int, Any]:
        return int(inside.sum()), pytest.approx(decision[inside & (HIRED == 1)].mean())

    for levels in (("a", "not a", "b"), ("True", "all", "nan"), ("group", "label", "y"), ("rows", "not rows", "x")):
        group = np.array(levels, dtype=object)[np.arange(N) % 3]
        found = rates(HIRED.rename("group"), decision, pd.Series(group, name="group"))
        assert len(found) == 6
        for level in levels:
            assert found["group", level] == true_rate(group == level)
        rest = {name: rows for (_, name), (rows, _) in found.items() if name not in levels}
        assert list(rest.values()) == [N - N // 3] * 3
    # All that counts as of another class is called as none of the classes is.
    risk = np.array(["low", "not low", "high"])[np.arange(N) % 3]
    call: dict[str, Any] = {"positive": "low", "source": "f", "target": "m", "null_draws": 0}
    result = fa.fliptest(lambda frame: frame["inc"] > 0, X, GROUP, y=risk, **call)
    zero, one = result.facts["data"]["label_levels"]
    assert one == "low"
    assert zero not in ("low", "not low", "high")


def test_what_is_saved_keeps_columns_apart_that_are_called_like_the_audits_own() -> None:
    own = X.set_axis(["audit_row", "audit_flipset", "inc"], axis="columns")
    model = lambda frame: frame["inc"] > 0.5  # noqa: E731
    call: dict[str, Any] = {"source": "f", "target": "m", "map": "exact", "null_draws": 0}
    made = fa.fliptest(model, own, GROUP, **call).to_frame("flipsets")
    plain = fa.fliptest(model, X, GROUP, **call).to_frame("flipsets")
    assert made.columns.is_unique
    assert made["audit_row"].tolist() == plain["audit_row"].tolist()
    assert made["audit_row (input)"].tolist() == plain["sex"].tolist()
    features = X.set_axis(["audit_label", "audit_loss", "inc"], axis="columns")
    sensitive = pd.DataFrame({"row": GROUP, "label": np.where(X["age"] > 50, "old", "young")})
    made, plain = (ratio(one, sensitive=sensitive).to_frame("examples") for one in (features, X))
    assert made.columns.is_unique
    assert made["audit_row"].tolist() == plain["audit_row"].tolist()
    first = made[made["audit_version"] == "original"]
    assert first["audit_label"].tolist() == HIRED[first["audit_row"]].tolist()
    assert first["audit_row (sensitive)"].tolist() == GROUP[first["audit_row"]].tolist()
    assert first["audit_loss (input)"].to_numpy() == pytest.approx(X["age"].to_numpy()[first["audit_row"]])
    made = biased(groups=pd.DataFrame({"audit_row": GROUP, "distance_exact": GROUP})).to_frame("distances")
    assert made.columns.is_unique
    assert made["audit_row"].tolist() == list(range(N))
    assert made["audit_row (group)"].tolist() == made["distance_exact (group)"].tolist() == GROUP.tolist()


def test_inputs_called_as_flipTest_calls_its_own_columns_have_lines_of_their_own() -> None:
    gaps = np.arange(N) % 5 == 0
    town = np.array(["u", "v", "missing"], dtype=object)[np.arange(N) % 3]
    town[7] = None
    own = pd.DataFrame({"inc": X["inc"].mask(gaps), "town": town, "inc is missing": X["age"], "town=u": X["age"] / 2})
    call: dict[str, Any] = {"source": "f", "target": "m", "map": "exact", "null_draws": 0}
    result = fa.fliptest(lambda frame: frame["inc is missing"] > 50, own, GROUP, **call)
    labels = result.facts["data"]["columns"]
    assert len(labels) == len(set(labels)) == 8
    assert {"inc is missing", "town=u"} <= set(labels)
    assert len(result.facts["results"][0]["map"]["ks"]) == 9
    members = result.to_frame("flipsets")
    name = members["audit_flipset"].iloc[0]
    lines = result.to_frame("transparency").query(f"flipset == '{name}'").set_index("feature")["members_mean"]
    people = own.iloc[members.query(f"audit_flipset == '{name}'")["audit_row"]]
    assert lines["inc is missing"] == pytest.approx(people["inc is missing"].mean())
    assert lines["town=u"] == pytest.approx(people["town=u"].mean())


@pytest.mark.parametrize("names", [[0, 1, 2], [("a", 1), ("a", 2), ("b", 1)], ["sex", 1, ("b", 1)]])
def test_a_function_gets_the_columns_by_the_callers_own_names(names: list[Any]) -> None:
    named = X.set_axis(names, axis="columns")
    if all(isinstance(name, tuple) for name in names):
        named.columns = pd.MultiIndex.from_tuples(names)
    expected = flips(model=lambda frame: frame["inc"] > 0.5)
    assert flips(named, model=lambda frame: frame[names[2]] > 0.5) == expected


def test_an_unused_category_is_no_group_and_no_level() -> None:
    group = pd.Categorical(GROUP, categories=["x", "m", "f"])
    decision = (SCORE > 0.5).astype(int)
    assert rates(HIRED, decision, group) == rates(HIRED, decision, pd.Series(GROUP, name="group"))
    assert flips(group=group) == flips()
    assert sorted(set(biased(groups=group).to_frame()["level"])) == ["f", "m"]
