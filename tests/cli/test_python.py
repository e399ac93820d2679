"""From Python as from the shell: the same audits, repeated by one file, of the models that people have."""

import doctest
import importlib
import inspect
import json
import pickle
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from scipy.optimize import linear_sum_assignment
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import fairness_audits as fa
from fairness_audits.cli.commands import COMMANDS
from fairness_audits.cli.options_file import read_options
from fairness_audits.transport.cost import cost_matrix
from tests.cli.places import IMAGES, TABLE, ended, image_network, json_of, run
from tests.errors import invalid

FEATURES = ["merit", "proxy", "member"]
CALLS = (fa.permutation_test, fa.loss_ratio, fa.fliptest, fa.robustness_bias)


def same(found: dict[str, Any], result: fa.Result) -> None:
    """The command's numbers are those of the call."""
    made = json.loads(json.dumps(result.to_dict()))
    assert made["results"] == found["results"]
    assert made["verdict"]["outcome"] == found["verdict"]["outcome"] == result.outcome


def test_a_permutation_test_is_that_of_the_command(ledger: Path) -> None:
    rows = pd.read_parquet("preds.parquet")
    given = "--score p --threshold 0.5 --group sex --metric auc,tpr,f1 --draws 199"
    made = json_of("permutation", *given.split())
    call: dict[str, Any] = {"group": rows["sex"], "metric": ["auc", "tpr", "f1"], "draws": 199}
    result = fa.permutation_test(rows["y"], rows["p"], threshold=0.5, **call)
    for entry in (*made["results"], *result.facts["results"]):
        entry["basis"] = ""
    same(made, result)


def test_a_loss_ratio_is_that_of_the_command(desk: Path) -> None:
    rows, network = pd.read_parquet("rows.parquet"), torch.jit.load("unfair.pt")
    made = json_of("loss-ratio", "--sensitive", "sex")
    same(made, fa.loss_ratio(network, rows[FEATURES], rows["hired"], sensitive=rows["sex"], steps=60))
    made = json_of("loss-ratio", "--directions", "directions.npy")
    array = fa.loss_ratio(network, rows[FEATURES].to_numpy(), rows["hired"].tolist(), directions=[0, 1, 0], steps=60)
    same(made, array)
    assert list(array.facts["data"]["features"]) == ["x0", "x1", "x2"]
    # An array has no name, so that none can be in its way.
    columns = rows[FEATURES].set_axis([*FEATURES[:2], "y"], axis="columns")
    same(made, fa.loss_ratio(network, columns, rows["hired"].to_numpy(), directions=[0, 1, 0], steps=60))


def test_a_fliptest_is_that_of_the_command(office: Path) -> None:
    sys.modules.pop("models", None)
    sys.path.insert(0, str(office))
    model = importlib.import_module("models")
    rows = pd.read_parquet("rows.parquet")
    made = json_of("fliptest", "--features", "experience,tests,region", "--reverse")
    inputs = rows[["experience", "tests", "region"]]
    call: dict[str, Any] = {"y": rows["hired"], "ids": rows["person"], "source": "female", "target": "male"}
    options: dict[str, Any] = {"map": "exact", "reverse": True, "null_draws": 0, "refits": 0}
    result = fa.fliptest(model.probability, inputs, rows["sex"], **call, **options)
    same(made, result)
    assert set(result.to_frame("flipsets")["audit_id"]) <= set(rows["person"])


def test_robustness_is_that_of_the_command(studio: Path) -> None:
    made = json_of("robustness", "--group", "sex,place")
    options = {"attack": "exact", "bootstraps": 200, "permutations": 999, "groups": TABLE[["sex", "place"]]}
    for images in (IMAGES, IMAGES[:, None], IMAGES[..., None], (IMAGES / 255).astype(np.float32), IMAGES / 255):
        result = fa.robustness_bias(torch.jit.load("model.pt"), images, TABLE["smiles"], **options)
        same(made, result)
    assert result.to_frame().columns[0] == "attack"
    assert len(result.to_frame("distances")) == len(IMAGES)


@pytest.mark.parametrize(
    ("images", "row"),
    [
        (IMAGES[:50], None),
        (np.where(np.arange(120)[:, None, None] < 7, IMAGES / 255, np.nan), 7),
        (IMAGES.astype(float), None),
        (IMAGES / 255 * 4 - 2, None),
        (IMAGES / 255**2, None),
        ((IMAGES > 127).astype(np.uint8), None),
        (np.zeros((120, 3, 4, 3)), None),
        (np.zeros((120, 1, 4, 3), np.uint8), None),
        (IMAGES.astype(int), None),
    ],
)
def test_an_array_that_is_no_images_is_refused(images: np.ndarray, row: int | None) -> None:
    with invalid(option="X", row=row):
        fa.robustness_bias(image_network(), images, groups=TABLE["sex"])


def test_a_result_can_be_seen_saved_and_asked(ledger: Path) -> None:
    rows = pd.read_parquet("preds.parquet")
    result = fa.permutation_test(rows["y"], prediction=rows["d"], group=rows["sex"], metric="tpr")
    assert repr(result) == f"<Permutation audit of the predictions: {result.verdict.headline.lower()}>"
    assert result.summary().startswith("Permutation audit of the predictions\n")
    assert result._repr_html_().startswith("<iframe srcdoc=")
    assert result.figure().axes
    with invalid(option="name"):
        result.to_frame("x")
    paths = result.save("out")
    assert sorted(path.name for path in paths) == sorted(path.name for path in Path("out").iterdir())
    assert yaml.safe_load(Path("out/audit.yaml").read_text())["metric"] == ["tpr"]


@pytest.mark.parametrize(
    "given",
    [
        {"metric": None},
        {"alpha": 2},
        {"positive": "2"},
        {"group": "sex"},
        {"group": [1, 2]},
        {"cluster": np.zeros((6, 2))},
    ],
)
def test_what_is_wrong_with_a_call_is_named_by_its_argument(given: Any) -> None:
    call = {"prediction": [0, 1] * 3, "group": ["a", "b"] * 3, "metric": "tpr"} | given
    (option,) = given
    with invalid(option=option):
        fa.permutation_test([0, 1, 1] * 2, **call)


def test_a_call_that_lacks_something_says_what() -> None:
    with pytest.raises(TypeError, match=r"has no argument 'alfa' \(did you mean 'alpha'\?\)"):
        fa.permutation_test([0, 1], [0, 1], alfa=0.1)  # type: ignore[call-arg]
    lacking: list[tuple[str, dict[str, Any]]] = [("threshold", {"threshold": 0.5}), ("score", {"metric": "auc"})]
    for option, missing in lacking:
        with invalid(option=option):
            fa.permutation_test([0, 1], prediction=[0, 1], group=["a", "b"], **{"metric": "tpr", **missing})
    with pytest.raises(TypeError, match=r"fliptest\(\) needs source, target"):
        fa.fliptest(len, np.zeros((4, 2)), [0, 1, 0, 1])  # type: ignore[call-arg]
    with invalid(option="model"):
        fa.fliptest(fa.Result, np.zeros((4, 2)), [0, 1, 0, 1], source="0", target="1")
    with invalid(option="X", column="z"):
        table = pd.DataFrame({"a": [1, 2], "z": "q"})
        fa.loss_ratio(len, table, [0, 1], directions=[1, 0], search="gradient")
    with invalid(column="a"):
        fa.loss_ratio(len, pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), [0, 1], directions=[1, 0])


@pytest.mark.parametrize("call", CALLS)
def test_every_keyword_is_documented_with_its_default(call: Callable[..., fa.Result]) -> None:
    told, signature = inspect.getdoc(call) or "", inspect.signature(call)
    for name, parameter in signature.parameters.items():
        assert f"\n{name} : " in told, name
        if isinstance(parameter.default, float | int | bool) and name not in told.partition("Returns")[2]:
            assert f"default {parameter.default!r}" in told
    assert "%(settings)s" not in told


def test_the_examples_in_docstrings_run() -> None:
    runner, finder = doctest.DocTestRunner(), doctest.DocTestFinder(recurse=False)
    for made in (fa, *CALLS, fa.compare, fa.plan, fa.watch, fa.worst_subgroups):
        (examples,) = finder.find(made, globs=vars(fa).copy())
        assert examples.examples
        runner.run(examples)
    assert runner.summarize(verbose=False).failed == 0


def test_one_file_repeats_an_audit_and_flags_come_first(office: Path) -> None:
    given = ("--reverse", "--null-draws", "3", "--map-setting", "cost=l2")
    assert run("fliptest", *given, "--output", "one")[0] == 0
    assert ended(["fliptest", "--config", "one/audit.yaml", "--output", "two"])[0] == 0
    for path in Path("one").iterdir():
        assert path.read_bytes() == Path("two", path.name).read_bytes(), path.name
    # Without the other direction, its figures are not left behind.
    options = yaml.safe_load(Path("one/audit.yaml").read_text())
    Path("mine.yaml").write_text(yaml.safe_dump({**options, "reverse": False, "null-draws": 0}))
    Path("two/mine.txt").write_text("kept")
    again = ["fliptest", "--config", "mine.yaml", "--output", "two", "--null-draws", "2"]
    assert ended(again)[0] == 0
    made = json.loads(Path("two/audit.json").read_text())
    assert made["options"]["null_draws"] == 2
    assert sorted(path.name for path in Path("two").iterdir()) == sorted([*made["files"].values(), "mine.txt"])
    assert not list(Path("two").glob("*_reverse.*"))


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("[1, 2]", "config"),
        ("alpha: [", "config"),
        ("alhpa: 0.1", "alhpa"),
        ("alpha: 7", "alpha"),
        ("audit: fliptest", "config"),
    ],
)
def test_what_is_wrong_in_a_file_of_options_is_named(text: str, option: str, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(text)
    with invalid(source="my.yaml", option=option):
        read_options(tmp_path / "my.yaml", COMMANDS["permutation"].options, "permutation")


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Men earn more; ``risk`` has three classes by income."""
    rng = np.random.default_rng(6)
    sex = rng.choice(["f", "m"], 300)
    income = rng.normal(size=300) + (sex == "m")
    paid = np.where(income + rng.logistic(size=300) > 0.5, "yes", "no")
    risk = np.array(["high", "low", "mid"])[np.digitize(income, [-0.3, 1.2]) * 2 % 3]
    return pd.DataFrame({"sex": sex, "income": income, "town": rng.choice(["a", "b"], 300), "paid": paid, "risk": risk})


def flips(model: Any, people: pd.DataFrame, label: str = "paid", **given: Any) -> fa.Result:
    call: dict[str, Any] = {"source": "f", "target": "m", "map": "exact", "null_draws": 0} | given
    return fa.fliptest(model, people[["town", "income"]], people["sex"], y=people[label], **call)


def positives(made: Mapping[str, Any]) -> int:
    """How many people of both groups are decided 1."""
    found = made["results"][0]["positives"]
    return int(found["source"] + found["target"])


def test_scikit_learn_models_are_asked_as_they_were_fitted(people: pd.DataFrame) -> None:
    """Columns by name in the model's order; probabilities, decision values or classes; text labels by --positive."""
    inputs = people[["income", "town"]]
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    pipeline = make_pipeline(encode, LogisticRegression()).fit(inputs, people["paid"])
    expected = (pipeline.predict(inputs) == "yes").sum()
    result = flips(pipeline, people)
    assert positives(result.facts) == expected
    assert result.facts["accuracy"] == pytest.approx(pipeline.score(inputs, people["paid"]))
    assert result.facts["model"]["output"] == "probability of class yes"
    other = flips(pipeline, people, positive="no").facts
    assert other["model"]["output"] == "probability of class no"
    other = other["results"][0]
    assert other["flipsets"]["positive"]["size"] == result.facts["results"][0]["flipsets"]["negative"]["size"]
    margin = make_pipeline(encode, LinearSVC()).fit(inputs, people["paid"])
    result = flips(margin, people)
    assert positives(result.facts) == (margin.predict(inputs) == "yes").sum()
    assert result.facts["model"]["output"] == "score of class yes"
    # The numbers of a regression have no cut of their own.
    regression = make_pipeline(encode, LinearRegression()).fit(inputs, people["paid"] == "yes")
    with invalid(option="threshold"):
        flips(regression, people)
    assert positives(flips(regression, people, threshold=0.5).facts) == (regression.predict(inputs) >= 0.5).sum()


class Own:
    """A classifier of its own make: probabilities, and a predict that is not a cut of them at one half."""

    def predict_proba(self, inputs: pd.DataFrame) -> Any:
        p = 1 / (1 + np.exp(0.5 - inputs["income"].to_numpy()))
        return np.column_stack([1 - p, p])

    def predict(self, inputs: pd.DataFrame) -> Any:
        return self.predict_proba(inputs)[:, 1] > 0.2


class Unsure(Own):
    def predict_proba(self, inputs: pd.DataFrame) -> Any:
        return np.full((len(inputs), 2), 0.5)

    def predict(self, inputs: pd.DataFrame) -> Any:
        return Own().predict(inputs)


class Backwards(Own):
    """Its classes stand in another order than that of the alphabet."""

    classes_ = ("yes", "no")

    def predict_proba(self, inputs: pd.DataFrame) -> Any:
        return super().predict_proba(inputs)[:, ::-1]

    def predict(self, inputs: pd.DataFrame) -> Any:
        return np.where(self.predict_proba(inputs)[:, 0] > 0.2, "yes", "no")


class Dense:
    """As Keras and the boosters' own classes: what they call predict is a probability."""

    def predict(self, inputs: pd.DataFrame) -> Any:
        return Own().predict_proba(inputs)[:, 1:]


class Both(Own):
    def predict(self, inputs: pd.DataFrame) -> Any:
        return self.predict_proba(inputs)[:, 1]


LOGISTIC = LogisticRegression()
DECIDING: dict[str, tuple[Any, str, Any]] = {
    "fixed threshold": (FixedThresholdClassifier(LOGISTIC, threshold=0.2, pos_label="yes"), "paid", "yes"),
    "the other class": (FixedThresholdClassifier(LOGISTIC, threshold=0.2, pos_label="yes"), "paid", "no"),
    "numbers 1 and 2": (FixedThresholdClassifier(LOGISTIC, threshold=0.2, pos_label=2), "code", 2),
    "true and false": (FixedThresholdClassifier(LOGISTIC, threshold=0.2, pos_label=True), "flag", True),
    "tuned threshold": (TunedThresholdClassifierCV(LOGISTIC, cv=2), "flag", True),
    "in a pipeline": (make_pipeline(StandardScaler(), FixedThresholdClassifier(LOGISTIC, threshold=0.2)), "flag", True),
    "SVC with probabilities": (SVC(probability=True, class_weight="balanced"), "paid", "yes"),
    "SVC without": (SVC(class_weight="balanced"), "paid", "yes"),
    "calibrated": (CalibratedClassifierCV(SVC(class_weight="balanced"), cv=2), "paid", "yes"),
    "ties": (RandomForestClassifier(4, random_state=0), "paid", "yes"),
    "three classes": (SVC(probability=True, random_state=0), "risk", "low"),
    "an own class": (Own(), "flag", True),
    "classes in another order": (Backwards(), "paid", "yes"),
}


@pytest.mark.parametrize("name", DECIDING)
@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
def test_the_decision_about_people_and_counterparts_is_the_models_own(name: str, people: pd.DataFrame) -> None:
    """By predict, asked about both sides of the best assignment of women to as many men."""
    model, label, positive = DECIDING[name]
    rng = np.random.default_rng(4)
    even = people.assign(skill=rng.normal(size=300), flag=people["paid"] == "yes", code=1 + (people["paid"] == "yes"))
    even = pd.concat([even[even["sex"] == sex][:130] for sex in "fm"]).reset_index(drop=True)
    inputs = even[["income", "skill"]]
    model = model.fit(inputs, even[label]) if hasattr(model, "fit") else model
    z = ((inputs - inputs.mean()) / inputs.std(ddof=0)).to_numpy()
    _, partner = linear_sum_assignment(cost_matrix(z[:130], z[130:]))
    decided = np.asarray(model.predict(inputs)) == positive
    women, men = decided[:130], decided[130:]
    images = men[partner]
    call: dict[str, Any] = {"y": even[label], "source": "f", "target": "m", "map": "exact", "null_draws": 0}
    result = fa.fliptest(model, inputs, even["sex"], **call, positive=str(positive), reverse=True)
    found, back = result.facts["results"]
    assert found["positives"] == {"source": women.sum(), "target": men.sum(), "counterparts": images.sum()}
    sizes = {"positive": (women & ~images).sum(), "negative": (~women & images).sum()}
    assert {kind: one["size"] for kind, one in found["flipsets"].items()} == sizes
    assert back["flipsets"]["positive"]["size"] == sizes["negative"]
    table = result.to_frame("flipsets")
    table = table[table["audit_direction"] == "forward"]
    np.testing.assert_array_equal(table["audit_row"], np.flatnonzero(women != images))
    np.testing.assert_array_equal(table["audit_decision"], women[women != images])
    assert result.facts["accuracy"] == np.mean(decided == (even[label] == positive))
    assert (result.facts["model"]["decided_by"], result.facts["model"]["threshold"]) == ("predict", None)
    # How many rows a cut of the scores decides otherwise.
    told = [one for one in result.caveats if one.condition == "predict_decides"]
    if hasattr(model, "predict_proba") and label != "risk":
        place = list(getattr(model, "classes_", (False, True))).index(positive)
        otherwise = int(((model.predict_proba(inputs)[:, place] >= 0.5) != decided).sum())
        assert result.facts["model"]["decided_otherwise"] == otherwise
        assert len(told) == (otherwise > 0)
        assert all(f"{otherwise} of 260 rows" in one.text for one in told)


def test_a_threshold_overrides_the_models_own_decision_and_says_so(people: pd.DataFrame) -> None:
    inputs, p = people[["town", "income"]], Own().predict_proba(people)[:, 1]
    result = flips(Own(), people, threshold=0.4)
    model = result.facts["model"]
    assert positives(result.facts) == (p >= 0.4).sum()
    assert (model["decided_by"], model["threshold"]) == ("threshold", 0.4)
    assert model["decided_otherwise"] == ((p >= 0.4) != Own().predict(inputs)).sum() > 0
    assert [one.condition for one in result.caveats].count("threshold_decides") == 1


@pytest.mark.parametrize("model", [Dense(), Both()])
def test_a_predict_that_returns_probabilities_is_no_decision(model: Any, people: pd.DataFrame) -> None:
    result = flips(model, people)
    assert positives(result.facts) == (Own().predict_proba(people)[:, 1] >= 0.5).sum()
    assert result.facts["model"]["threshold"] == 0.5


def test_the_noise_floor_and_a_given_label_are_of_the_models_own_decisions(people: pd.DataFrame) -> None:
    """The probability is the same for all, so a cut of it flips nobody."""
    label = (people["paid"] == "yes").astype(int).rename("paid")
    numbers = people.assign(paid=label)
    floor = flips(Unsure(), numbers, null_draws=5).facts["results"][0]["noise"]
    assert floor["either"]["range"][0] > 0
    assert positives(flips(Own(), numbers, given_label=1).facts) == Own().predict(people[label == 1]).sum()


def test_predictions_that_are_no_single_decision_are_refused(people: pd.DataFrame) -> None:
    inputs, paid = people[["income"]], (people["paid"] == "yes").astype(int)
    both = np.column_stack([paid, 1 - paid])

    class Wordy(Own):
        def predict(self, inputs: pd.DataFrame) -> Any:
            return np.where(super().predict(inputs), "yes", "no")

    class Coin(Own):
        def predict(self, inputs: pd.DataFrame) -> Any:
            return np.random.default_rng().integers(0, 2, len(inputs))

    call: dict[str, Any] = {"source": "f", "target": "m", "map": "exact", "null_draws": 0}
    for model, option in (
        (MultiOutputClassifier(LogisticRegression()).fit(inputs, both), "model"),
        (DecisionTreeClassifier().fit(inputs, both), "model"),
        (OneVsRestClassifier(LogisticRegression()).fit(inputs, both), "model"),
        (DummyClassifier().fit(inputs, 0 * paid), "model"),
        (Wordy(), "classes"),
        (Coin(), "model"),
    ):
        with invalid(option=option):
            fa.fliptest(model, inputs, people["sex"], **call)
    named = fa.fliptest(Wordy(), inputs, people["sex"], classes=["no", "yes"], **call)
    assert positives(named.facts) == Own().predict(inputs).sum()
    assert positives(flips(Wordy(), people, positive="no").facts) == 300 - Own().predict(inputs).sum()


def test_of_three_classes_one_stands_against_the_rest(people: pd.DataFrame) -> None:
    inputs = people[["income", "town"]].assign(town=(people["town"] == "a").astype(int))
    tree = DecisionTreeClassifier(max_depth=3).fit(inputs, people["risk"])
    call: dict[str, Any] = {"y": people["risk"], "source": "f", "target": "m"}
    result = fa.fliptest(tree, inputs, people["sex"], **call, positive="low", null_draws=0)
    assert positives(result.facts) == (tree.predict(inputs) == "low").sum()
    assert result.facts["data"]["label_levels"] == ["not low", "low"]
    with invalid(option="positive"):
        fa.fliptest(tree, inputs, people["sex"], **call)


def test_loss_ratio_of_three_classes_is_of_the_own_classs_loss(people: pd.DataFrame) -> None:
    """Along the only direction nothing is penalised, so the flow is plain gradient ascent; errors are by argmax."""
    x = people["income"].to_numpy()[:, None]
    y = np.digitize(people["income"] + np.random.default_rng(1).normal(size=300), [0, 1])
    weight = torch.tensor([[-1.0, 0.0, 1.0]], dtype=torch.float64)
    bias = torch.tensor([0.5, 0.3, -0.5], dtype=torch.float64)
    result = fa.loss_ratio(lambda z: z @ weight + bias, x, y, directions=[1.0], steps=20)
    z, own = torch.tensor(x), torch.tensor(y)

    def loss(z: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(z @ weight + bias, own, reduction="none")

    before = loss(z)
    for _ in range(20):
        z = z.detach().requires_grad_(True)
        z = z + 0.01 * torch.autograd.grad(loss(z).sum(), z)[0]
    ratio = (loss(z) / before).detach()
    found = result.facts["results"]
    assert found["loss_ratio"]["S_n"] == pytest.approx(float(ratio.mean()))
    wrong = [float(((p @ weight + bias).argmax(1) != own).double().mean()) for p in (z.detach(), torch.tensor(x))]
    assert found["error_rate_ratio"]["S_n"] == pytest.approx(wrong[0] / wrong[1])
    assert found["accuracy"] == pytest.approx(1 - wrong[1])


def test_a_model_without_a_gradient_is_told_what_it_can_have(people: pd.DataFrame) -> None:
    tree = DecisionTreeClassifier(max_depth=2).fit(people[["income"]], people["paid"])
    with invalid(option="model"):
        fa.loss_ratio(tree, people[["income"]], people["paid"], directions=[1.0], search="gradient")


@pytest.mark.parametrize("kind", ["joblib", "pkl", "skops", "onnx"])
def test_a_models_file_is_the_model(kind: str, people: pd.DataFrame, office: Path) -> None:
    inputs = people[["income"]].assign(flag=(people["town"] == "a").astype(float))
    model = LogisticRegression().fit(inputs, people["paid"])
    inputs.assign(sex=people["sex"], paid=people["paid"]).to_parquet("own.parquet")
    given = ["--data", "own.parquet", "--source", "f", "--target", "m", "--label", "paid", "--positive", "yes"]
    trusted = kind in ("joblib", "pkl")
    if kind == "joblib":
        joblib.dump(model, "model.joblib")
    elif kind == "pkl":
        Path("model.pkl").write_bytes(pickle.dumps(model))
    elif kind == "skops":
        pytest.importorskip("skops.io").dump(model, "model.skops")
    else:
        pytest.importorskip("onnxruntime")
        convert = pytest.importorskip("skl2onnx").to_onnx
        made = convert(model, inputs.to_numpy(np.float32)[:1], options={id(model): {"zipmap": False}})
        Path("model.onnx").write_bytes(made.SerializeToString())
    asked = [*given, "--predict", f"model.{kind}", "no--id"]
    if trusted:
        status, _, err = run("fliptest", *asked)
        assert (status, "is a pickled model" in err, "set trust_pickle" in err) == (2, True, True)
    assert (
        positives(json_of("fliptest", *asked, *["--trust-pickle"] * trusted)) == (model.predict(inputs) == "yes").sum()
    )


BOOSTED: dict[str, Callable[[Any], Any]] = {
    "xgboost": lambda library: library.XGBClassifier(n_estimators=5, n_jobs=1),
    "lightgbm": lambda library: library.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1),
    "catboost": lambda library: library.CatBoostClassifier(
        iterations=5, thread_count=1, verbose=0, allow_writing_files=False
    ),
}


@pytest.mark.parametrize("name", BOOSTED)
def test_boosted_trees_are_asked_as_they_were_fitted(name: str, people: pd.DataFrame, office: Path) -> None:
    """With gaps, a name with a space, columns in another order, arrays, and by the command."""
    library = pytest.importorskip(name)
    income = people["income"].where(np.arange(300) % 7 > 0)
    inputs = pd.DataFrame({"net income": income, "town": (people["town"] == "a").astype(int)})
    paid = (people["paid"] == "yes").astype(int)
    model = BOOSTED[name](library).fit(inputs, paid)
    expected = int(model.predict(inputs).sum())
    call: dict[str, Any] = {"source": "f", "target": "m", "map": "exact", "null_draws": 0, "y": paid}

    def decided(model: Any, inputs: Any, **more: Any) -> int:
        return positives(fa.fliptest(model, inputs, people["sex"], **call, **more).facts)

    assert decided(model, inputs) == decided(model, inputs[["town", "net income"]]) == expected
    assert decided(BOOSTED[name](library).fit(inputs.to_numpy(), paid), inputs.to_numpy()) == expected
    with invalid(source="X"):
        decided(model, inputs.to_numpy())
    with invalid(option="model"):
        fa.loss_ratio(model, inputs.fillna(0), paid, directions=[1.0, 0.0], search="gradient")
    joblib.dump(model, "model.joblib")
    inputs.assign(sex=people["sex"], paid=paid).to_parquet("own.parquet")
    given = shlex.split("--data own.parquet --source f --target m --label paid --predict model.joblib --trust-pickle")
    assert positives(json_of("fliptest", *given, "no--id")) == expected
    if name == "catboost":
        raw = library.CatBoost({**model.get_params(), "loss_function": "Logloss"}).fit(inputs, paid)
        assert decided(raw, inputs, threshold=0) == (raw.predict(inputs) >= 0).sum()


def test_an_onnx_network_of_images_is_certified_and_has_no_other_attack(studio: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    make, numbers, side = onnx.helper, onnx.TensorProto.FLOAT, IMAGES.shape[1]
    weights = np.ones((side * side, 1), np.float32) * [[-1, 1]]
    for name, count in (("any.onnx", "n"), ("one.onnx", 1)):
        graph = make.make_graph(
            [make.make_node("Flatten", ["x"], ["flat"]), make.make_node("MatMul", ["flat", "w"], ["s"])],
            "net",
            [make.make_tensor_value_info("x", numbers, [count, 1, side, side])],
            [make.make_tensor_value_info("s", numbers, [count, 2])],
            [onnx.numpy_helper.from_array(weights.astype(np.float32), "w")],
        )
        onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8), name)
    smoothed = ("--attack", "smoothing", "--attack-setting", "smoothing.samples=100")
    for given, told in (
        (("--model", "any.onnx"), "attack='smoothing'"),
        (("--model", "one.onnx", *smoothed), "mark the first axis of the input as dynamic"),
    ):
        status, _, err = run("robustness", *given)
        assert (status, told in err) == (2, True), err
    made = json_of("robustness", "--model", "any.onnx", *smoothed, "no--attack")
    assert made["model"]["origin"] == "ONNX program"


@pytest.mark.parametrize(("kind", "needs", "extra"), [("skops", "skops", "sklearn"), ("onnx", "onnxruntime", "onnx")])
def test_what_is_not_installed_is_named(
    kind: str, needs: str, extra: str, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (needs, f"{needs}.io"):
        monkeypatch.setitem(sys.modules, module, None)
    Path(f"model.{kind}").write_bytes(b"x")
    status, _, err = run("loss-ratio", "--sensitive", "sex", "--model", f"model.{kind}")
    assert status == 2
    assert f"needs {needs}" in err
    assert f"pip install {needs}" in err
    assert repr(extra) in err


def test_a_threshold_is_of_the_scores_own_precision_in_every_metric() -> None:
    """Single 0.7 is a little less than 0.7, and reaches it for NumPy, for rates and in a function of one's own."""

    def accepted(y: np.ndarray, score: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.average(score >= 0.7, weights=weight)

    rng = np.random.default_rng(0)
    score = np.round(rng.random(400), 1)
    asked: dict[str, Any] = {"y": rng.integers(0, 2, 400), "group": np.arange(400) % 2, "draws": 79}
    for kind in ("float16", "float32", "float64"):
        own = score.astype(kind)
        made = fa.permutation_test(score=own, threshold=0.7, metric=["selection_rate", accepted], **asked).to_frame()
        assert made["estimate_a"].tolist() == pytest.approx([(score[::2] >= 0.7).mean()] * 2)


def test_f1_and_fairlearns_words(ledger: Path) -> None:
    """F1 is scikit-learn's; under equal groups its p-values are spread evenly, and parity is the rates' own test."""
    rows = pd.read_parquet("preds.parquet")
    call = {"prediction": rows["d"], "group": rows["sex"]}
    (entry,) = fa.permutation_test(rows["y"], metric="f1", **call).facts["results"]
    for group in entry["groups"]:
        own = rows[rows["sex"] == group["name"]]
        assert group["estimate"] == pytest.approx(f1_score(own["y"], own["d"]))
    named = fa.permutation_test(rows["y"], metric=["demographic_parity", "equalized_odds"], **call).facts["results"]
    assert [one["metric"] for one in named] == ["selection_rate", "tpr", "fpr"]
    rng = np.random.default_rng(0)
    group, p = np.repeat(["a", "b"], [60, 140]), []
    for _ in range(60):
        y = rng.random(200) < np.where(group == "a", 0.5, 0.3)
        # Precision and recall of 0.6 in both groups, whatever their shares of positives.
        d = np.where(y, rng.random(200) < 0.6, rng.random(200) < np.where(group == "a", 0.4, 0.4 * 3 / 7))
        test = fa.permutation_test(y.astype(int), prediction=d.astype(int), group=group, metric="f1", draws=199)
        p.append(test.facts["results"][0]["p_value"])
    assert 0.35 < np.mean(p) < 0.65
    assert np.mean(np.array(p) <= 0.2) < 0.4
