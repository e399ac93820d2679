"""The scorer of gaps: the gaps of every fold, however the groups are given."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import fairness_audits as fa
from tests.errors import invalid

N = 300
RNG = np.random.default_rng(0)
SEX = pd.Series(np.array(["f", "m", "x"])[np.arange(N) % 3], RNG.permutation(N) + 1000, name="sex")
X = pd.DataFrame({"merit": RNG.normal(size=N), "noise": RNG.normal(size=N)}, SEX.index)
Y = pd.Series(np.where(X["merit"] + (SEX == "m") + 0.5 * RNG.normal(size=N) > 0.3, "yes", "no"), X.index)
FOLDS = KFold(3)


def gaps(X: Any = X, y: Any = Y, model: Any = None, params: Any = None, **asked: Any) -> np.ndarray:
    asked = {"metric": "tpr", "group": None, **asked}
    scorer = pickle.loads(pickle.dumps(fa.metrics.permutation_gap(asked.pop("metric"), **asked)))
    made = cross_validate(
        model or LogisticRegression(), X, y, cv=FOLDS, scoring=scorer, params=params, error_score="raise"
    )
    return np.asarray(made["test_score"])


def by_hand(metric: Any) -> list[float]:
    """Minus the largest difference of a metric (labels, decisions, probabilities) between two groups, in each fold."""
    found = []
    for train, test in FOLDS.split(X):
        model = LogisticRegression().fit(X.iloc[train], Y.iloc[train])
        y, p = (Y.iloc[test] == "yes").to_numpy(), model.predict_proba(X.iloc[test])[:, 1]
        groups = SEX.iloc[test].to_numpy()
        values = [metric(y[groups == one], p[groups == one] > 0.5, p[groups == one]) for one in "fmx"]
        found.append(min(values) - max(values))
    return found


def test_the_score_is_minus_the_largest_gap_of_each_fold() -> None:
    np.testing.assert_allclose(gaps(group=SEX), by_hand(lambda y, d, p: recall_score(y, d)))
    found = gaps(group=SEX, metric="auc", draws=199)
    np.testing.assert_allclose(found, by_hand(lambda y, d, p: roc_auc_score(y, p)))
    found = gaps(group=SEX, metric="selection_rate", threshold=0.8)
    np.testing.assert_allclose(found, by_hand(lambda y, d, p: (p >= 0.8).mean()))


def test_groups_come_from_a_column_a_series_in_any_order_or_routed_metadata() -> None:
    wanted = gaps(group=SEX)
    np.testing.assert_array_equal(gaps(group=SEX.sample(frac=1, random_state=1)), wanted)
    np.testing.assert_array_equal(gaps(X.to_numpy(), group=SEX), wanted)  # by the index of y
    blind = make_pipeline(make_column_transformer(("passthrough", list(X))), LogisticRegression())
    np.testing.assert_array_equal(gaps(X.assign(sex=SEX), model=blind, group="sex"), wanted)
    with sklearn.config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(gaps(params={"group": SEX}), wanted)
        np.testing.assert_array_equal(gaps(X.to_numpy(), Y.to_numpy(), params={"group": SEX.to_numpy()}), wanted)


def test_the_rows_of_a_fold_have_their_own_groups_or_are_refused() -> None:
    """The groups of a fold are found by label; without labels in X and y, only scikit-learn can select them."""
    wanted, arrays = gaps(group=SEX), (X.to_numpy(), Y.to_numpy())
    counted = SEX.reset_index(drop=True)
    np.testing.assert_array_equal(gaps(arrays[0], Y.reset_index(drop=True), group=counted), wanted)
    np.testing.assert_array_equal(gaps(X, arrays[1], group=SEX.sample(frac=1, random_state=1)), wanted)
    np.testing.assert_array_equal(gaps(X, group=SEX.to_frame()), wanted)
    twice = X.index.repeat(2)[:N].append(X.index[N // 2 :])[:N]
    same = (X.set_axis(twice), Y.set_axis(twice))
    for frame, label, group in (
        (*arrays, counted),
        (*arrays, SEX),
        (X, Y.reset_index(drop=True), SEX),
        (X.reset_index(drop=True), Y, SEX),
        # The labels of y are a permutation of those of X.
        (X, Y.set_axis(X.index[::-1]), SEX),
        (*same, SEX.set_axis(twice)),
        (X, Y, SEX[5:]),
        (X, Y, SEX.set_axis(SEX.index.astype(str))),
    ):
        with invalid(option="group"):
            gaps(frame, label, group=group)


def test_routed_groups_are_selected_by_scikit_learn() -> None:
    wanted = gaps(group=SEX)
    named = X.assign(sex=SEX)
    blind = make_pipeline(make_column_transformer(("passthrough", list(X))), LogisticRegression())
    # A column of X has the order of X, whatever the labels of y.
    np.testing.assert_array_equal(gaps(named, Y.set_axis(X.index[::-1]), model=blind, group="sex"), wanted)
    with sklearn.config_context(enable_metadata_routing=True):
        for groups in (SEX, SEX.to_frame(), SEX.tolist()):
            np.testing.assert_array_equal(gaps(X.to_numpy(), Y.to_numpy(), params={"group": groups}), wanted)
        reversed_labels = SEX.set_axis(np.arange(N)[::-1])
        np.testing.assert_array_equal(gaps(X.to_numpy(), Y.to_numpy(), params={"group": reversed_labels}), wanted)
        with invalid(option="group"):
            gaps(params={"group": SEX.reset_index(drop=True)})


def test_a_ratio_is_scored_and_what_would_be_ignored_is_refused() -> None:
    found = gaps(group=SEX, metric="selection_rate", ratio=True)
    rates = []
    for train, test in FOLDS.split(X):
        chosen = LogisticRegression().fit(X.iloc[train], Y.iloc[train]).predict(X.iloc[test]) == "yes"
        rates.append(pd.Series(chosen).groupby(SEX.iloc[test].to_numpy()).mean())
    np.testing.assert_allclose(found, [one.min() / one.max() for one in rates])
    of_reference = gaps(group=SEX, metric="selection_rate", ratio=True, reference="m")
    np.testing.assert_allclose(of_reference, [np.minimum(one / one["m"], one["m"] / one).min() for one in rates])
    ignored: list[dict[str, Any]] = [{"margin": 0.1}, {"at_least": 0.8, "ratio": True}, {"width": 0.1}]
    for options in ignored:
        with invalid(option=next(iter(options))):
            fa.metrics.permutation_gap("tpr", group=SEX, **options)
    with invalid(option="ratio"):
        fa.metrics.permutation_gap("tpr", group=SEX, ratio=True, value="p_value")


def test_it_serves_a_search_p_values_and_regressors() -> None:
    scorer = fa.metrics.permutation_gap("tpr", group=SEX)
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=scorer, cv=FOLDS).fit(X, Y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    model = LogisticRegression().fit(X, Y)
    audit = fa.permutation_test(Y, prediction=model.predict(X), group=SEX, metric="tpr", positive="yes", pairs=True)
    p = fa.metrics.permutation_gap("tpr", group=SEX, value="p_value")(model, X, Y)
    assert p == audit.to_frame()["adjusted_p_value"].min()
    line = LinearRegression().fit(X, X["merit"] + (SEX == "m"))
    error = (X["merit"] + (SEX == "m") - line.predict(X)).groupby(SEX).mean()
    found = fa.metrics.permutation_gap("mean_error", group=SEX, draws=199)(line, X, X["merit"] + (SEX == "m"))
    assert found == pytest.approx(error.min() - error.max())


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({"group": "town"}, {"option": "group", "column": "town"}),
        ({"group": None}, {"option": "group"}),
        ({"group": SEX[:50]}, {"option": "group"}),
        ({"group": SEX.to_numpy()}, {"option": "group"}),
        ({"group": SEX, "value": "p"}, {"option": "value"}),
    ],
)
def test_groups_that_do_not_fit_the_rows_are_refused(asked: dict[str, Any], fields: dict[str, Any]) -> None:
    with invalid(**fields):
        fa.metrics.permutation_gap("tpr", **asked)(LogisticRegression().fit(X, Y), X, Y)


def test_of_several_classes_one_is_positive() -> None:
    three = pd.Series(np.where(X["noise"] > 0.5, "maybe", Y), X.index)
    model = LogisticRegression().fit(X, three)
    with invalid(option="positive"):
        fa.metrics.permutation_gap("tpr", group=SEX)(model, X, three)
    score = fa.metrics.permutation_gap("mean_score", group=SEX, positive="yes", draws=199)(model, X, three)
    means = pd.Series(model.predict_proba(X)[:, 2], X.index).groupby(SEX).mean()
    assert score == pytest.approx(means.min() - means.max())


@pytest.mark.parametrize("several", [False, True])
def test_decision_values_are_those_of_the_positive_class(several: bool) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["x", "z"])
    group = pd.Series(np.where(rng.random(400) < 0.5, "f", "m"))
    latent = X["x"] + 0.7 * rng.normal(size=400) + 0.8 * (group == "m")
    y = pd.cut(latent, [-9, -0.5, 0.3, 9] if several else [-9, 0.3, 9], labels=False).map(
        ["bad", "good", "top"].__getitem__
    )
    model = LinearSVC().fit(X, y)
    values = model.decision_function(X)
    score = values[:, 0] if several else -values
    truth = [roc_auc_score((y == "bad")[group == name], score[group == name]) for name in ("f", "m")]
    found = fa.metrics.permutation_gap("auc", group=group, positive="bad")(model, X, y)
    assert found == pytest.approx(-abs(truth[0] - truth[1]))
    with invalid(option="positive"):
        fa.metrics.permutation_gap("auc", group=group, positive="best")(model, X, y)


def test_the_positive_class_is_named_as_elsewhere() -> None:
    X, y = np.arange(60.0)[:, None], np.arange(60) % 3
    model, group, y = LogisticRegression().fit(X, y.astype(float)), pd.Series(["a", "b"] * 30), pd.Series(y)
    found = {fa.metrics.permutation_gap("auc", group=group, positive=name)(model, X, y) for name in (2, "2", "2.0")}
    assert len(found) == 1
