"""The robustness audit of rows: distances by their formulas, the inference's level and power, any model and table."""

from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fairness_audits as fa
from fairness_audits.audits.robustness_bias import table_audit
from fairness_audits.audits.robustness_bias.result import shown_groups
from tests.cli.places import ended
from tests.cli.test_robustness import sentence
from tests.errors import invalid

N = 240


def people(seed: int = 0, apart: float = 1.0) -> pd.DataFrame:
    """Numbers in their own units, a category and a sex, whose women are ``apart`` times as far from the mean."""
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(N) < 0.5, "f", "m")
    spread = np.where(sex == "f", apart, 1.0)
    numbers = {"age": 40 + 10 * spread * rng.normal(size=N), "income": 3e4 + 8e3 * spread * rng.normal(size=N)}
    return pd.DataFrame({**numbers, "job": rng.choice(["a", "b", "c"], N), "sex": sex})


X = people(apart=0.4)
NUMBERS = ["age", "income"]
Y = (X["age"] / 10 + X["income"] / 8e3 + 0.2 * np.random.default_rng(1).normal(size=N) > 7.75).astype(int)
SCALE = X[NUMBERS].std(ddof=0).to_numpy()


def audited(model: Any, rows: Any = X[NUMBERS], y: Any = Y, **given: Any) -> fa.Result:
    return fa.robustness_bias(model, rows, y, **{"groups": X["sex"], "permutations": 199, "bootstraps": 50, **given})


exactly = partial(audited, attack="exact")


def lengths(result: fa.Result) -> np.ndarray:
    return result.to_frame("distances").filter(like="distance_").to_numpy()[:, 0]


LINEAR = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[NUMBERS], Y)
TREE = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[NUMBERS], Y)


def test_under_a_linear_pipeline_distances_are_margins_over_the_slope_in_standard_deviations() -> None:
    result = exactly(LINEAR)
    margin = np.abs(LINEAR.decision_function(X[NUMBERS])) / np.linalg.norm(LINEAR[-1].coef_)
    np.testing.assert_allclose(lengths(result), np.where(LINEAR.predict(X[NUMBERS]) == Y, margin, np.nan), rtol=1e-6)
    entry = result.facts["results"][0]
    assert (result.outcome, entry["attack"], entry["bound"], entry["failed"]) == ("rejected", "exact", "exact", 0)
    assert result.verdict.facts["closer"] == [{"partition": "sex", "level": "f"}]
    assert "Correctly classified rows of sex = f, of all classes together, are closer" in result.verdict.sentence
    assert "image" not in f"{result.summary()} {result.brief}".lower()


def test_only_a_kind_of_output_that_was_detected_is_said_to_be_inferred() -> None:
    for given, inferred in (({}, True), ({"output_kind": "logits"}, False)):
        summary = exactly(LINEAR.decision_function, **given).summary()
        assert ("inferred from the values" in " ".join(summary.split()), "set by" in summary) == (inferred, False)


@pytest.mark.parametrize("model", [LINEAR, TREE], ids=["linear", "tree"])
def test_order_and_units_of_the_columns_change_nothing(model: Any) -> None:
    def other(frame: pd.DataFrame) -> Any:
        return model.predict_proba(pd.DataFrame({"age": frame["months"] / 12, "income": frame["income"]}))

    given = lengths(exactly(model))
    turned = lengths(exactly(model, X[["income", "age"]]))
    np.testing.assert_allclose(given, turned)
    if model is LINEAR:
        months = lengths(exactly(other, pd.DataFrame({"income": X["income"], "months": 12 * X["age"]})))
        np.testing.assert_allclose(given, months, rtol=1e-6)


def test_under_a_forest_the_bound_is_above_the_distance_and_said_to_be_one() -> None:
    # A forest of one tree is that tree.
    alone = RandomForestClassifier(1, bootstrap=False, max_features=None, max_depth=4, random_state=0)
    result = audited(alone.fit(X[NUMBERS], Y))
    assert result.facts["results"][0]["bound"] == "upper"
    assert "upper_bounds" in {one.condition for one in result.caveats}
    bound, exact = lengths(result), lengths(exactly(alone.estimators_[0]))
    known = ~np.isnan(exact)
    assert (bound >= exact * (1 - 1e-3))[known].all()
    assert np.nanmean(bound) < 1.05 * np.nanmean(exact)


def test_a_category_switches_as_a_whole_for_the_price_of_a_standard_deviation() -> None:
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["age"]))
    rows, y = X[["job", "age"]], (X["job"] == "a").astype(int)
    model = make_pipeline(encoder, LogisticRegression(C=1e4)).fit(rows, y)
    found = exactly(model, rows, y)
    np.testing.assert_allclose(lengths(found), 1.0)
    assert (found.outcome, found.facts["data"]["switches"]) == ("inconclusive", ["job"])
    # As indicators in the table, with a constant column that stays what it is.
    coded = pd.get_dummies(rows, columns=["job"], dtype=float).assign(one=1.0)

    def of_indicators(frame: pd.DataFrame) -> Any:
        return frame["job_a"] - 0.5 + 0 * frame["one"]

    again = exactly(of_indicators, coded, y, one_hot=["job_"])
    np.testing.assert_allclose(lengths(again), 1.0)
    assert again.facts["data"]["fixed"] == ["one"]


def test_in_the_fair_metric_sensitive_directions_are_cheap() -> None:
    weight = LINEAR[-1].coef_[0]
    plain, along = lengths(exactly(LINEAR)), [SCALE[0], 0.0]
    for cost in (1.0, 0.25, 0.01):
        found = exactly(LINEAR, directions=along, sensitive_cost=cost)
        slope = np.linalg.norm([weight[0] / cost, weight[1]])
        np.testing.assert_allclose(lengths(found), plain * np.linalg.norm(weight) / slope, rtol=1e-6)
    assert found.facts["data"]["fair_metric"]["cost"] == 0.01
    learned = exactly(LINEAR, sensitive=X["sex"])
    assert (lengths(learned) <= plain + 1e-9)[~np.isnan(plain)].all()


@pytest.mark.usefixtures("here")
def test_directions_follow_the_columns_that_they_are_given_for() -> None:
    """The model was fitted on other orders of the columns than the audit is given."""
    weight, turned = LINEAR[-1].coef_[0], X[["income", "age"]]
    expected = lengths(exactly(LINEAR)) * np.linalg.norm(weight) / np.linalg.norm([10 * weight[0], weight[1]])
    for along in ([0.0, 1.0], pd.DataFrame({"age": [1.0], "income": [0.0]}), pd.Series({"age": 1.0, "income": 0.0})):
        np.testing.assert_allclose(lengths(exactly(LINEAR, turned, directions=along)), expected, rtol=1e-6)
    np.save("along.npy", [[0.0, 1.0]])
    X.assign(y=Y).to_csv("rows.csv", index=False)
    joblib.dump(LINEAR, "linear.joblib")
    words = "robustness --data rows.csv --label y --group sex --model linear.joblib --trust-pickle --attack exact"
    ended(f"{words} --features income,age --directions along.npy --output out".split())
    np.testing.assert_allclose(pd.read_csv("out/distances.csv")["distance_exact"], expected, rtol=1e-6)


def test_directions_follow_the_levels_of_a_category() -> None:
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    model = make_pipeline(encoder, LogisticRegression()).fit(X[["income", "job", "age"]], Y)
    entries = {"income": [0.0], "job": [0.0, 0.0, 0.0], "age": [1.0]}

    def along(order: list[str]) -> dict[str, Any]:
        given = [entry for name in order for entry in entries[name]]
        found = audited(model, X[order], directions=given, points=8, min_group=2)
        facts: dict[str, Any] = found.facts["data"]["fair_metric"]["directions"]["direction 0"]
        return facts

    assert along(["age", "job", "income"]) == {"income": 0, "job=a": 0, "job=b": 0, "job=c": 0, "age": 1}


def test_the_level_holds_without_a_difference_and_a_planted_one_is_found() -> None:
    def rejects(seed: int, apart: float) -> bool:
        rows = people(seed, apart)
        given = {"groups": rows["sex"], "permutations": 99, "bootstraps": 2}
        found = exactly(lambda frame: frame["age"] + frame["income"] / 1e3 - 70, rows[NUMBERS], None, **given)
        return found.outcome == "rejected"

    runs = 60
    assert sum(rejects(seed, 1.0) for seed in range(runs)) <= binom.ppf(0.995, runs, 0.05)
    assert all(rejects(seed, 0.4) for seed in range(10))


@pytest.mark.usefixtures("here")
def test_the_command_and_tables_of_any_make_give_the_same() -> None:
    X.assign(y=Y).to_csv("rows.csv", index=False)
    joblib.dump(TREE, "tree.joblib")
    words = "robustness --data rows.csv --label y --group sex --model tree.joblib --trust-pickle --attack exact"
    status, out, err = ended([*words.split(), "--permutations", "199", "--bootstraps", "50", "--output", "out"])
    assert (status, err) == (0, ""), out
    given = lengths(exactly(TREE))
    np.testing.assert_allclose(pd.read_csv("out/distances.csv")["distance_exact"], given)
    assert "Correctly classified rows of sex = f" in Path("out/robustness.html").read_text()
    assert "mean" not in Path("out/audit.yaml").read_text()
    polar = exactly(TREE, pl.from_pandas(X[NUMBERS]), Y.to_numpy(), groups=X["sex"].to_numpy())
    np.testing.assert_allclose(lengths(polar), given)
    status, _, err = ended(["robustness", "--config", "out/audit.yaml", "--trust-pickle"])
    assert (status, err) == (0, "")


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_a_network_is_no_farther_from_its_boundary_than_the_attack_along_gradients_finds() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).double()
    rows = ((X[NUMBERS] - X[NUMBERS].mean()) / SCALE).to_numpy()
    with torch.no_grad():
        scores = net(torch.tensor(rows))
        net[2].bias[1] += 0.001 - (scores[:, 1] - scores[:, 0]).median()
    found = exactly(net, rows, None)
    from fairness_audits.attacks.row_networks import fmn_of_rows

    label = net(torch.tensor(rows)).argmax(dim=1).numpy()
    attacked = fmn_of_rows(net, rows, label, steps=20, start_steps=100)
    known = ~np.isnan(attacked.distance)
    assert (lengths(found) <= attacked.distance * (1 + 1e-4))[known].all()
    assert found.facts["results"][0]["bound"] == "exact"
    # The same network as scikit-learn's, behind a scaler.
    scaler = StandardScaler().fit(X[NUMBERS])
    same = MLPClassifier((4,), max_iter=1).fit(scaler.transform(X[NUMBERS]), Y)
    weights = [values.detach().numpy() for values in net.parameters()]
    same.coefs_ = [weights[0].T, weights[2][1:].T - weights[2][:1].T]
    same.intercepts_ = [weights[1], weights[3][1:] - weights[3][:1]]
    again = exactly(make_pipeline(scaler, same), y=None)
    assert again.facts["results"][0]["bound"] == "exact"
    np.testing.assert_allclose(lengths(again), lengths(found), rtol=1e-6)


def steep(frame: pd.DataFrame) -> np.ndarray:
    """Probabilities of a curved boundary, nearly all of which are 0 or 1."""
    z = (frame[NUMBERS].to_numpy() - X[NUMBERS].mean().to_numpy()) / SCALE
    return 1 / (1 + np.exp(-80 * (z[:, 0] + z[:, 1] + 0.8 * z[:, 0] * z[:, 1])))


class Tuned(DecisionTreeClassifier):
    def predict(self, X: Any, check_input: bool = True) -> Any:
        return (self.predict_proba(X)[:, 1] >= 0.2).astype(int)


OTHER_DECISIONS: dict[str, Any] = {
    "tree": Tuned(max_depth=3, min_samples_leaf=10, random_state=0).fit(X[NUMBERS], Y),
    "threshold": FixedThresholdClassifier(LINEAR, threshold=0.7).fit(X[NUMBERS], Y),
    "votes": BaggingClassifier(LINEAR, 5, random_state=0).fit(X[NUMBERS], Y),
    "confident": steep,
}


@pytest.mark.parametrize("name", OTHER_DECISIONS)
def test_distances_are_to_the_models_own_decisions(name: str) -> None:
    model = OTHER_DECISIONS[name]
    decide = getattr(model, "predict", lambda frame: (model(frame) > 0.5).astype(int))
    with invalid(option="attack"):
        exactly(model)
    result = audited(model, y=decide(X[NUMBERS]))
    assert result.facts["results"][0]["bound"] == "upper"
    # In 400 directions, no point a tenth nearer has another decision, and a point two hundredths farther does.
    angle = np.linspace(0, 2 * np.pi, 401)[1:]
    around = np.column_stack([np.cos(angle), np.sin(angle)]) * SCALE
    far = [
        decide(pd.DataFrame(row + part * length * around, columns=NUMBERS))
        for row, length in zip(X[NUMBERS].to_numpy()[:40], lengths(result), strict=False)
        for part in (0.9, 1.02)
    ]
    own = np.repeat(decide(X[NUMBERS][:40]), 2)
    crossed = np.array([(there != one).any() for there, one in zip(far, own, strict=True)]).reshape(-1, 2)
    assert crossed[:, 0].mean() < 0.1
    assert crossed[:, 1].mean() > 0.9


def test_columns_that_do_not_change_keep_their_values_and_switches_their_levels() -> None:
    y = X["age"] > 40
    rows = pd.DataFrame({"age": X["age"], "rate": np.where(X["sex"] == "f", 0.2, 0.9), "land": "de", "year": 2026})

    def table(frame: pd.DataFrame) -> np.ndarray:
        assert set(frame["land"]) == {"de"}
        assert set(frame["year"]) == {2026}
        return frame["age"].to_numpy() - 40 + frame["rate"].map({0.2: 0.0, 0.9: 1.0}).to_numpy()

    moved = X["age"] - 40 + (X["sex"] == "m")
    expected = np.abs(moved) / SCALE[0]
    found = lengths(exactly(table, rows, moved > 0))
    away = np.where(X["sex"] == "f", moved + 1, moved - 1)
    switched = np.where(np.sign(away) != np.sign(moved), 1.0, np.hypot(1, away / SCALE[0]))
    np.testing.assert_allclose(found, np.minimum(expected, switched), rtol=1e-6)
    encoder = make_column_transformer((OneHotEncoder(), ["land", "year"]), remainder="passthrough")
    fitted = make_pipeline(encoder, StandardScaler(), LogisticRegression()).fit(rows, y)
    assert exactly(fitted, rows, y).facts["data"]["fixed"] == ["land", "year"]


def test_a_linear_model_of_categories_alone_is_exact() -> None:
    rows = pd.DataFrame({"job": X["job"], "sex": X["sex"], "old": X["age"] > 40})
    y = ((X["job"] == "a") | rows["old"]).astype(int)
    model = make_pipeline(OneHotEncoder(), LogisticRegression(C=1e4)).fit(rows, y)
    found = exactly(model, rows, y)
    np.testing.assert_allclose(np.nan_to_num(lengths(found), nan=1.0) ** 2 % 1, 0, atol=1e-9)


def test_a_tree_of_values_that_single_precision_rounds_is_refused() -> None:
    rows = pd.DataFrame({"time": 1.7e9 + 3600 * (X["age"] - 40) / 10, "b": X["income"]})
    tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(rows, Y)
    with invalid(option="attack"):
        exactly(tree, rows)


def test_only_models_with_exact_distances_are_said_to_have_them() -> None:
    with invalid(option="attack"):
        exactly(RandomForestClassifier(2, random_state=0).fit(X[NUMBERS], Y))
    with invalid(option="attack"):
        exactly(TREE, sensitive=X["sex"])
    rows = X[NUMBERS].assign(member=X["sex"] == "f")
    network = make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=20, random_state=0)).fit(rows, Y)
    with invalid(option="attack"):
        exactly(network, rows)
    with invalid(option="attack"):
        audited(LINEAR, attack=["exact", "fmn"])
    assert audited(LINEAR).facts["results"][0]["bound"] == "upper"


def test_the_search_of_a_row_does_not_depend_on_the_order_of_the_rows() -> None:
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X[NUMBERS], Y)
    order = np.random.default_rng(3).permutation(N)
    turned = lengths(audited(model, X.iloc[order][NUMBERS], Y.iloc[order], groups=X["sex"].iloc[order]))
    given = lengths(audited(model))
    np.testing.assert_allclose(turned, given[order], rtol=1e-3)


def test_a_model_gets_booleans_where_the_table_has_them() -> None:
    rows = pd.DataFrame({"age": X["age"], "member": X["sex"] == "f"})

    def by_membership(frame: pd.DataFrame) -> np.ndarray:
        return np.where(~frame["member"], frame["age"] - 40, frame["age"] - 30)

    assert audited(by_membership, rows, None).facts["data"]["switches"] == ["member"]


def test_a_group_whose_others_all_have_distance_0_is_in_the_verdict() -> None:
    near = {"partition": "job", "n": 80, "denominator": "correct", "sigma_ci_low": None, "sigma_ci_high": None}
    groups = [
        {**near, "level": level, "sigma": sigma, "auc": auc, "sigma_p_adjusted": p}
        for level, sigma, auc, p in (("a", None, 0.4, 0.0005), ("b", -1.0, 0.0, 0.2), ("c", -1.0, 0.0, 0.2))
    ]
    groups += [{**one, "denominator": "paper"} for one in groups]
    found = {"attack": "exact", "bound": "exact", "points": 240, "groups": groups}
    shown = shown_groups(found, 0.05)["shown"]
    assert [(one["name"], one["closer"]) for one in shown] == [("job = a", False)]
    expected = "their distances are 0.4 on average, those of all other rows 0 (adjusted p = 0.0005, n = 80)."
    told = "rows of job = a, of all classes together, are farther from the decision boundary"
    assert sentence(found, unit="row") == f"Correctly classified {told}: {expected}"
    assert sentence(found, unit="row", labelled=False).startswith("Rows of job = a, of all classes together")


def test_what_is_no_table_to_audit_is_refused() -> None:
    with invalid(option="model"):
        audited(lambda frame: 0 * frame["age"])
    with invalid(option="mean"):
        audited(LINEAR, mean=0.5)
    with invalid(source="X", column="age", row=3):
        audited(LINEAR, X[NUMBERS].assign(age=X["age"].where(X.index != 3)))


@pytest.mark.parametrize("limit", [0.0, np.inf])
def test_a_long_search_says_how_long_and_how_to_shorten_it(
    limit: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table_audit, "LONG", limit)
    rows = X[["age", "income"]][:40]
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(rows, rows["age"] > 40)
    fa.robustness_bias(model, rows, groups=X["sex"][:40], permutations=19)
    said = [one.getMessage() for one in caplog.records if one.name == table_audit.__name__]
    assert len(said) == (limit == 0)
    for one in said:
        assert "each of 40 rows" in one
        assert "points=20" in one
        assert "attack='exact'" in one


@pytest.mark.parametrize(("seconds", "said"), [(40.2, "40 s"), (150, "2 min"), (9000, "2.5 h")])
def test_a_time_has_the_unit_of_a_reader(seconds: float, said: str) -> None:
    assert table_audit.duration(seconds) == said
