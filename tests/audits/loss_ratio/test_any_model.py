"""The loss-ratio audit of models without a gradient: which search they get, its level, its power and its limits."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairness_audits as fa
from fairness_audits.audits.loss_ratio.core import recorded_steps
from fairness_audits.audits.loss_ratio.evidence import pinned_share
from fairness_audits.audits.loss_ratio.figures import figure
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import from_directions
from fairness_audits.results.result import Result
from fairness_audits.results.style import paper
from tests.errors import invalid

N = 3000
TREES: dict[str, Callable[[], Any]] = {
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=100, max_depth=6, early_stopping=False),
    "forest": lambda: RandomForestClassifier(50, min_samples_leaf=5, random_state=0),
    "xgboost": lambda: importlib.import_module("xgboost").XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1),
    "lightgbm": lambda: importlib.import_module("lightgbm").LGBMClassifier(max_depth=6, n_jobs=1, verbose=-1),
}


def people(seed: int = 0, bias: float = 0.0) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """Inputs, labels and sex: ``title`` and ``uniform`` tell the sexes apart, the label depends on merit and age.

    A share ``bias`` of the labels of women is 0 instead.
    """
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, N)
    X = pd.DataFrame(
        {
            "merit": rng.normal(size=N),
            "age": rng.integers(18, 70, N).astype(float),
            "title": np.where(rng.random(N) < 0.95, sex, 1 - sex).astype(float),
            "uniform": np.where(rng.random(N) < 0.8, sex, 1 - sex).astype(float),
            "noise": rng.normal(size=N),
        }
    )
    label = (X["merit"] + (X["age"] - 44) / 20 + rng.logistic(size=N) > 0).to_numpy(int)
    label[(sex == 0) & (rng.random(N) < 2 * bias)] = 0  # half of them are women
    return X, label, pd.Series(np.where(sex == 1, "m", "f"), name="sex")


def audit(model: Any, seed: int = 1, bias: float = 0.0, **more: Any) -> Result:
    X, y, sex = people(seed, bias)
    asked: dict[str, Any] = {"sensitive": sex, "standardize": "continuous", **more}
    return fa.loss_ratio(model, asked.pop("X", X), y, **asked)


@pytest.mark.parametrize("name", TREES)
def test_trees_are_asked_about_whole_people_and_planted_bias_is_rejected(name: str) -> None:
    if name in ("xgboost", "lightgbm"):
        pytest.importorskip(name)
    X, y, _ = people(0, bias=0.25)
    found = audit(TREES[name]().fit(X, y), bias=0.25)
    assert found.facts["search"]["engine"] == "people"
    assert found.facts["search"]["permitted"][0] == "title"
    assert found.outcome == "rejected"
    assert found.facts["search"]["policy"]["rejected"]
    assert found.facts["placebo"]["S_n"] < found.facts["results"]["loss_ratio"]["S_n"]


@pytest.mark.parametrize("name", ["boosting", "forest"])
def test_a_model_that_ignores_every_permitted_column_has_the_ratio_one(name: str) -> None:
    X, y, _ = people()
    inputs = ["merit", "age", "noise"]
    trees = TREES[name]().fit(X[inputs], y)
    found = audit(lambda frame: trees.predict_proba(frame[inputs]))
    assert found.facts["search"]["engine"] == "people"
    assert set(found.facts["search"]["permitted"]) <= {"title", "uniform"}
    for test in ("loss_ratio", "error_rate_ratio"):
        assert {found.facts["results"][test][key] for key in ("S_n", "T_n")} == {1.0}
    assert found.facts["search"]["policy"]["S_n"] == 1
    assert found.outcome == "not rejected"


def test_a_network_of_scikit_learn_gives_the_statistic_of_the_same_network_in_torch() -> None:
    X, y, _ = people(0, bias=0.25)
    network = MLPClassifier((20,), "logistic", alpha=1e-2, random_state=0, max_iter=300)
    scaled = make_pipeline(StandardScaler(), network).fit(X, y)
    mean, scale = (torch.tensor(part) for part in (scaled[0].mean_, scaled[0].scale_))
    weights = [torch.tensor(part) for part in (*network.coefs_, *network.intercepts_)]

    def logit(x: torch.Tensor) -> torch.Tensor:
        hidden = torch.sigmoid(((x - mean) / scale) @ weights[0] + weights[2])
        return (hidden @ weights[1] + weights[3])[:, 0]

    in_torch, in_closed_form = audit(logit), audit(scaled)
    assert in_torch.facts["search"] == {"engine": "gradient", "gradient": "torch"}
    assert in_closed_form.facts["search"] == {"engine": "gradient", "gradient": "closed form"}
    for test in ("loss_ratio", "error_rate_ratio"):
        for key in ("S_n", "T_n", "n", "below_one"):
            pair = [one.facts["results"][test][key] for one in (in_torch, in_closed_form)]
            assert pair[0] == pytest.approx(pair[1], rel=1e-9)
    assert in_torch.facts["placebo"] == pytest.approx(in_closed_form.facts["placebo"], rel=1e-9)


def test_the_search_is_chosen_by_a_trial() -> None:
    X, y, _ = people(0, bias=0.25)
    smooth = make_pipeline(LogisticRegression(max_iter=2000)).fit(X, y)
    for search in ("auto", "gradient"):
        assert audit(smooth, search=search).facts["search"]["engine"] == "gradient"
    assert audit(smooth, search="people").facts["search"]["engine"] == "people"
    assert audit(lambda frame: smooth.predict_proba(frame)).facts["search"]["engine"] == "people"
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[["title", "uniform"]], y)
    switched = audit(lambda frame: tree.predict_proba(frame[["title", "uniform"]]))
    assert switched.facts["search"]["engine"] == "people"
    with invalid(option="search"):
        audit(smooth, search="differences")
    with invalid(source="DecisionTreeClassifier", option="model"):
        audit(tree.fit(X, y), search="gradient")


def test_no_permitted_column_is_refused() -> None:
    X, y, _ = people()
    tree = DecisionTreeClassifier(max_depth=4).fit(X, y)
    with pytest.raises(InvalidInput) as told:
        audit(tree, sensitive=None, directions=np.ones((1, 5)))
    assert told.value.option == "least_share"
    assert "Lower least_share" in str(told.value.remedy)


def test_where_the_direction_may_be_noise_no_smaller_share_is_advised() -> None:
    X, y, sex = people(1)
    tree = DecisionTreeClassifier(max_depth=4).fit(X, y)
    chance = np.random.default_rng(0).permutation(sex)
    for sensitive, advised in ((sex, True), (chance, False)):
        with pytest.raises(InvalidInput) as told:
            audit(tree, sensitive=sensitive, least_share=0.999)
        remedy = str(told.value.remedy)
        assert ("Lower least_share" in remedy, "too little evidence of" in remedy) == (advised, not advised)


def test_a_probability_that_rounds_to_one_has_a_loss_in_closed_form() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    sensitive = pd.DataFrame({"s": np.where(X["a"] + 0.3 * rng.normal(size=120) > 0, "f", "m")})
    y = (X["a"] > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    model.coef_ = np.array([[300.0, 0.0]])
    settings: dict[str, Any] = {"steps": 100, "step_size": 0.05, "regularization": 1.0, "standardize": "none"}
    found = fa.loss_ratio(model, X, y, sensitive=sensitive, bounds="none", **settings)
    assert (model.predict_proba(X) == 1).any()
    assert found.facts["results"]["loss_ratio"]["non_finite"] == found.facts["results"]["saturated"] == 0


@pytest.mark.parametrize(
    ("model", "unused"),
    [(LogisticRegression(), ["least_share"]), (DecisionTreeClassifier(max_depth=2), ["metric_samples", "steps"])],
)
def test_options_of_the_other_search_are_told(model: Any, unused: list[str]) -> None:
    X, y, sex = people(0, bias=0.25)
    common: dict[str, Any] = {"sensitive": sex, "standardize": "continuous"}
    found = fa.loss_ratio(model.fit(X, y), X, y, **common, least_share=0.4, steps=20, metric_samples=0)
    (told,) = [one.text for one in found.caveats if one.condition == "unused"]
    assert sorted(found.facts["search"]["unused"]) == unused
    assert all(name in told for name in unused)
    plain = fa.loss_ratio(model, X, y, **common)
    assert not [one for one in plain.caveats if one.condition == "unused"]


def test_columns_of_text_are_switched_as_a_whole() -> None:
    X, y, sex = people(0, bias=0.25)

    def coded(X: pd.DataFrame, sex: pd.Series) -> pd.DataFrame:
        rng = np.random.default_rng(2)
        role = np.where(X["title"] == 1, "husband", np.where(rng.random(N) < 0.5, "wife", "daughter"))
        return X.drop(columns="title").assign(role=role, sex=sex)

    encoder = make_column_transformer((OneHotEncoder(), ["role", "sex"]), remainder="passthrough")
    model = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=50)).fit(coded(X, sex), y)
    others, _, other_sex = people(1, 0.25)
    found = audit(model, bias=0.25, X=coded(others, other_sex))
    assert found.facts["search"]["permitted"][:2] == ["sex", "role"]
    assert found.outcome == "rejected"
    worst = found.to_frame("examples")
    assert set(worst["role"]) <= {"husband", "wife", "daughter"}
    original = worst[worst["audit_version"] != "possible"]
    probability = np.clip(model.predict_proba(original)[:, 1], 0.01, 0.99)
    np.testing.assert_allclose(probability, original["audit_probability_of_1"])
    assert all(" -> " in changes for changes in worst["audit_changes"])
    # Reference rows of one's own give the values and the metric.
    more, _, more_sex = people(3, 0.25)
    reference = coded(more, more_sex)
    again = audit(model, bias=0.25, X=coded(others, other_sex), reference=reference)
    assert again.facts["search"]["reference"] == {"path": "reference", "rows": N, "held_out": False}
    assert again.facts["data"]["audited"] == N
    assert again.facts["fair_metric"]["path"] == "reference"


def test_a_tuned_threshold_decides_about_errors() -> None:
    X, y, _ = people(0, bias=0.25)
    cost = "balanced_accuracy"
    tuned = TunedThresholdClassifierCV(HistGradientBoostingClassifier(max_iter=20), scoring=cost).fit(X, y)
    found = audit(tuned, bias=0.25)
    others, label, _ = people(1, 0.25)
    errors, audited = found.facts["results"]["error_rate_ratio"], found.facts["data"]["audited"]
    assert audited == N - N // 5
    assert errors["wrong_before"] / audited == pytest.approx((tuned.predict(others) != label).mean(), abs=0.02)
    assert errors["wrong_before"] == round((1 - found.facts["results"]["accuracy"]) * audited)


def test_text_read_from_a_file_is_what_a_model_of_categories_was_fitted_on() -> None:
    library = pytest.importorskip("lightgbm")
    X, y, sex = people()
    text = X[["merit"]].assign(town=np.array(["a", "b", "c"])[np.arange(N) % 3], sex=sex)
    coded = text.astype({"town": "category", "sex": "category"})
    model = library.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(coded, y)
    made = [fa.loss_ratio(model, inputs, y, sensitive=sex, standardize="none") for inputs in (coded, text)]
    assert made[0].facts["results"] == made[1].facts["results"]


def test_the_labels_name_for_class_1_is_told_to_a_model_of_0_and_1() -> None:
    X, y, sex = people()
    tree, label = DecisionTreeClassifier(max_depth=4).fit(X, y), np.where(y == 1, ">50K", "<=50K")
    same: dict[str, Any] = {"sensitive": sex, "standardize": "continuous"}
    made = [fa.loss_ratio(tree, X, y, **same), fa.loss_ratio(tree, X, label, positive=">50K", **same)]
    assert made[0].facts["results"]["loss_ratio"] == made[1].facts["results"]["loss_ratio"]
    call: dict[str, Any] = {"source": "f", "target": "m", "map": "exact", "null_draws": 0}
    flips = fa.fliptest(tree, X[:400], sex[:400], y=label[:400], positive=">50K", **call)
    assert flips.facts["accuracy"] == pytest.approx((tree.predict(X[:400]) == y[:400]).mean())


def test_the_pinned_share_is_that_of_the_directions_in_columns_that_a_bound_holds() -> None:
    metric = from_directions(np.array([[0.6, 0.8, 0.0]]))
    start = np.array([[0.0, 1.0, 0.5], [0.5, 1.0, 0.5]])
    box = np.zeros(3), np.ones(3)
    assert pinned_share(start, start, metric, box) == pytest.approx((1 + 0.64) / 2)
    assert pinned_share(start, start + np.array([0.1, 0, 0]), metric, box) == pytest.approx(0.64)
    assert pinned_share(start, start, metric, None) == 0


def test_the_figure_names_steps_that_occur_and_the_last_one() -> None:
    steps = recorded_steps(500)
    course = loss_ratio_test(np.ones(50), np.linspace(1, 2, len(steps))[:, None] + np.zeros(50), 1.25, 0.05)
    with paper():
        (axes,) = figure(steps, course).axes
        named = [int(text.get_text()) for text in axes.get_xticklabels()]
    assert set(named) < set(steps)
    assert len(named) <= 12
    assert max(named) == 500


def coded(seed: int = 54, n: int = 600) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """Whole-number ratings, higher for men, and labels by a threshold at one of them."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    rating = np.where(sex == 1, rng.integers(2, 7, n), rng.integers(1, 6, n))
    X = pd.DataFrame({"rating": rating, "z": rng.integers(0, 5, n)})
    return X, (rng.random(n) < at_least_two(X)).astype(int), pd.DataFrame({"sex": sex})


def at_least_two(frame: pd.DataFrame) -> np.ndarray:
    """A step exactly at a value that occurs."""
    return np.asarray(np.where(frame["rating"] >= 2, 0.75, 0.3) + 0.05 * (frame["z"] >= 2))


def test_a_model_sees_the_values_of_the_data_exactly() -> None:
    X, y, sex = coded()
    plain, scaled = (
        fa.loss_ratio(at_least_two, X, y, sensitive=sex, standardize=how, examples=700)
        for how in ("none", "continuous")
    )
    shown = scaled.to_frame("examples")
    original = shown[shown["audit_point"] == "original"] if "audit_point" in shown else shown.iloc[::3]
    np.testing.assert_allclose(original["audit_probability_of_1"], at_least_two(original))
    assert scaled.facts["results"]["loss_ratio"]["S_n"] == pytest.approx(plain.facts["results"]["loss_ratio"]["S_n"])


@pytest.mark.parametrize("unknown", ["ignore", "error"])
def test_a_model_of_codes_is_asked_about_whole_people(unknown: str) -> None:
    """Between the codes, this model knows none, on either side alike; it does not use what tells the sexes apart."""
    rng, n = np.random.default_rng(0), 1500
    sex, code = rng.integers(0, 2, n), rng.choice(6, n, p=[0.05, 0.05, 0.75, 0.05, 0.05, 0.05])
    y = (rng.random(n) < np.where(code == 2, 0.03, 0.9)).astype(int)
    X = pd.DataFrame({"code": code, "hours": rng.normal(size=n) + sex})
    encoder = make_column_transformer((OneHotEncoder(handle_unknown=unknown), ["code"]))
    model = make_pipeline(encoder, LogisticRegression()).fit(X[:700], y[:700])
    for how in ("none", "continuous"):
        found = fa.loss_ratio(model, X[700:], y[700:], sensitive=pd.DataFrame({"sex": sex})[700:], standardize=how)
        assert (found.outcome, found.facts["search"]["engine"]) == ("not rejected", "people")
        assert found.facts["results"]["loss_ratio"]["S_n"] == pytest.approx(1.0)


def test_people_stay_within_the_bounds_and_the_placebo_tells_its_columns(tmp_path: Path) -> None:
    X, y, sex = coded()
    file = tmp_path / "bounds.csv"
    pd.DataFrame({"feature": ["rating"], "low": [0], "high": [6]}).to_csv(file, index=False)
    call: dict[str, Any] = {"sensitive": sex, "standardize": "none", "examples": 700, "search": "people"}
    reference = pd.concat([X.assign(rating=X["rating"] + 9), sex], axis=1)
    with invalid(option="bounds"):
        fa.loss_ratio(at_least_two, X, y, reference=reference, bounds=str(file), **call)
    reference = pd.concat([X.assign(rating=X["rating"] * 2), sex], axis=1)
    found = fa.loss_ratio(at_least_two, X, y, reference=reference, bounds=str(file), **call)
    assert found.to_frame("examples")["rating"].max() <= 6
    assert found.facts["bounds"]["range"]["rating"] == [0, 6]
    every = fa.loss_ratio(at_least_two, X, y, least_share=1e-6, **call)
    assert (len(every.facts["search"]["permitted"]), every.facts["placebo"]) == (2, None)
    one = fa.loss_ratio(at_least_two, X.assign(noise=X["z"].to_numpy()[::-1]), y, least_share=0.5, **call)
    assert one.facts["search"]["permitted"] == ["rating"]
    assert one.facts["placebo"]["directions"] == 1


def test_only_scores_of_classes_are_known_by_their_method() -> None:
    X, y, sex = people()
    rows, call = X[["merit", "noise"]], {"sensitive": sex, "standardize": "continuous"}
    for model, detected in ((LinearRegression(), True), (LogisticRegression(), False), (RidgeClassifier(), False)):
        found = fa.loss_ratio(model.fit(rows, y), rows, y, **call)
        assert found.facts["model"]["output_kind_detected"] is detected
        told = {one.condition for one in found.caveats} & {"decision_values", "regression"}
        names = {LinearRegression: {"regression"}, LogisticRegression: set(), RidgeClassifier: {"decision_values"}}
        assert told == names[type(model)]


def test_the_reason_of_a_function_of_frames_is_told() -> None:
    X, y, sex = people()
    with pytest.raises(InvalidInput, match="hrs"):
        fa.loss_ratio(lambda frame: frame[["merit", "hrs"]].sum(axis=1), X, y, sensitive=sex, standardize="continuous")
    for strange in (pd.DataFrame([[1.0] * 5], columns=list("abcde")), [["a"] * 5]):
        with invalid(option="directions") as raised:
            fa.loss_ratio(lambda frame: frame["merit"], X, y, directions=strange, standardize="continuous")
        assert "{" not in str(raised.value)
