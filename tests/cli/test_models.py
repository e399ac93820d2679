"""Every way to hand over a model gives the same model, and whatever it returns is read as what it means."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from fairness_audits.arguments import Given
from fairness_audits.audits.fliptest.decisions import Decider, positive_decision
from fairness_audits.audits.scaling import units
from fairness_audits.inputs.model import Model, load_model
from fairness_audits.inputs.model_files import MODULE_NAME, Computing, named_object
from fairness_audits.inputs.predictor import predictor
from fairness_audits.inputs.probe import check_kind, probed, read
from fairness_audits.inputs.table import Attribute, Source, attribute, classes_of, feature_names, numeric, rows
from fairness_audits.messages import listed, reason
from fairness_audits.models.outputs import Kind, class_scores, detected_kind
from tests.cli.places import linear_network, scripted
from tests.errors import invalid

CPU = Computing("cpu")
X = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
W = torch.tensor([[1.0, -1.0], [0.5, 0.0], [2.0, 1.0]], dtype=torch.float64)
NETS = """
import torch
from neighbour import weights
class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 2)
        self.load_state_dict(weights())
network = Net()
dropped = torch.nn.Sequential(network, torch.nn.Dropout(0.9)).train()
def build(): return network
def formula(x): return torch.nn.functional.linear(x, network.weight.to(x), network.bias.to(x))
"""
FRAME = pd.DataFrame({"a": np.linspace(-2, 2, 30), "b": np.arange(30.0) % 7})
LOGIT = (FRAME["a"] + 0.1 * FRAME["b"]).to_numpy()
MODELS = """
import numpy as np, torch
def logit(frame): return frame["a"] + 0.1 * frame["b"]
def probability(frame): return 1 / (1 + np.exp(-logit(frame)))
def both(frame): return np.column_stack([1 - probability(frame), probability(frame)])
def column(frame): return probability(frame).to_frame()
def logits(frame): return np.column_stack([-logit(frame) / 2, logit(frame) / 2])
def decision(frame): return (logit(frame) >= 0).tolist()
def build():
    net = torch.nn.Linear(2, 1); net.weight.data = torch.tensor([[1.0, 0.1]]); net.bias.data.zero_(); return net
def forgetful(frame): own = logit(frame); frame["a"] = 0.0; return own
def gaps(frame): return logit(frame).where(frame["b"] != 3)
"""


@pytest.fixture
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which user code is new."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in (MODULE_NAME, "neighbour", "own_nets", "beside_it"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return here


def test_all_forms_are_the_same_network_in_double_precision_and_evaluation_mode(folder: Path) -> None:
    network = linear_network(1.0, -2.0, 0.5)
    torch.save(network.state_dict(), "weights.pt")
    scripted(network, folder / "scripted.pt")
    rows = torch.export.Dim("rows")
    program = torch.export.export(network, (torch.zeros(4, 3),), dynamic_shapes=({0: rows},))
    torch.export.save(program, "exported.pt2")
    Path("neighbour.py").write_text("import torch\ndef weights(): return torch.load('weights.pt')\n")
    Path("own_nets.py").write_text(NETS)
    expected = linear_network(1.0, -2.0, 0.5).double()(X)
    for model, origin in (
        ("scripted.pt", "TorchScript network"),
        ("exported.pt2", "exported program"),
        ("own_nets.py:network", "network of own_nets.py"),
        ("own_nets.py:dropped", "dropped of own_nets.py"),
        ("own_nets.py:Net", r"what Net() of own_nets.py returns"),
        ("own_nets.py:build", "what build() of own_nets.py returns"),
        ("own_nets.py:formula", "formula of own_nets.py"),
        ("own_nets:network", "network of own_nets"),
    ):
        with load_model(model, True, CPU) as loaded:
            assert loaded.origin == origin
            assert loaded.file == (None if model.startswith("own_nets:") else Path(model.partition(":")[0]))
            output = loaded.evaluate(X)
        assert output.dtype == torch.float64
        torch.testing.assert_close(output, expected)
    assert CPU.device.type == "cpu"
    assert Computing().device.type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_file_called_like_a_library_is_itself_and_finds_its_neighbour(folder: Path) -> None:
    Path("numpy.py").write_text("from beside_it import number\nclass Box:\n    content = number\n")
    Path("beside_it.py").write_text("number = 7\n")
    box, *where = named_object("metric", "numpy.py:Box")
    assert (box().content, *where) == (7, "Box", Path("numpy.py"))
    assert sys.modules["numpy"] is np
    assert named_object("model", "beside_it:number") == (7, "number", None)


LOGITS = torch.randn(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
ODDS = LOGITS[:, 1] - LOGITS[:, 0]
P = torch.sigmoid(ODDS)
RETURNED: dict[str, tuple[Kind, Callable[[torch.Tensor], torch.Tensor]]] = {
    "two logits": ("logits", lambda x: torch.stack((-x / 2, x / 2), 1)),
    "two log-probabilities": ("log-probabilities", lambda x: torch.stack((-x / 2, x / 2), 1).log_softmax(1)),
    "two probabilities": ("probability", lambda x: torch.stack((-x / 2, x / 2), 1).softmax(1)),
    "a logit": ("logits", lambda x: x),
    "a logit in a column": ("logits", lambda x: x[:, None]),
    "a probability": ("probability", torch.sigmoid),
    "a probability in a column": ("probability", lambda x: torch.sigmoid(x)[:, None]),
}


@pytest.mark.parametrize("form", RETURNED)
def test_every_form_is_recognised_and_gives_the_odds_and_their_gradient(form: str) -> None:
    kind, returned = RETURNED[form]
    x = ODDS.clone().requires_grad_(True)
    output = returned(x)
    values = output.numpy(force=True)
    assert detected_kind(values) == detected_kind(values.astype(np.float32)) == kind
    check_kind(output, kind)
    scores = class_scores(kind)(output)
    assert scores.shape == (200, 2)
    torch.testing.assert_close(scores[:, 1] - scores[:, 0], ODDS)
    (gradient,) = torch.autograd.grad((scores[:, 1] - scores[:, 0]).sum(), x)
    torch.testing.assert_close(gradient, torch.ones_like(gradient))


def test_one_log_probability_can_be_told_but_not_guessed() -> None:
    scores = class_scores("log-probabilities")(P.log())
    torch.testing.assert_close(scores[:, 1] - scores[:, 0], ODDS)
    assert detected_kind(P.log().numpy()) == "logits"
    for kind in get_args(Kind):
        check_kind(P if kind == "probability" else P.log(), kind)


def test_a_trial_reads_probabilities_and_counts_those_that_are_certain() -> None:
    def trial(function: Callable[[torch.Tensor], torch.Tensor], kind: str = "auto") -> object:
        scores = probed(Model(function, "test", None), X, ("a", "b", "c"), kind)  # type: ignore[arg-type]
        np.testing.assert_allclose(
            scores.trial.softmax(1)[:, 1], (X @ W).softmax(1)[:, 1], atol=1 if scores.saturated else 1e-12
        )
        return scores.kind, scores.detected, scores.columns, scores.saturated

    assert trial(lambda x: x @ W) == ("logits", True, 2, 0)
    assert trial(lambda x: (x @ W).softmax(1), "probability") == ("probability", False, 2, 0)
    far = X[:, 0] > 0.5
    certain = trial(lambda x: torch.sigmoid((x @ W)[:, 1] + 1e4 * (x[:, 0] > 0.5)))
    assert certain == ("probability", True, 1, int(far.sum()))
    sure = read(torch.tensor([[1.0, 0.0], [0.4, 0.6]]), lambda x: x, "auto", finite=True)
    assert (sure.kind, sure.saturated, sure.prediction.tolist()) == ("probability", 1, [0, 1])
    assert bool(sure.trial.isfinite().all())
    assert not bool(read(torch.tensor([[1.0, 0.0]]), lambda x: x, "auto").trial.isfinite().all())


@pytest.fixture
def load(folder: Path) -> Iterator[Callable[..., Decider]]:
    """Load a model of a data frame and try it."""
    Path("models.py").write_text(MODELS)
    lent = ExitStack()

    def made(name: str, threshold: float | None = None, frame: pd.DataFrame = FRAME) -> Decider:
        text = name if "." in name else f"models.py:{name}"
        loaded = lent.enter_context(load_model(text, False, CPU, "predict"))
        raw = predictor(loaded, Source("t.csv", frame).inputs(list(frame)), CPU)
        given = Given(fa.fliptest, {"threshold": threshold}).but(label=None)
        model = positive_decision(raw, frame, given, "t.csv")
        np.testing.assert_array_equal(model.scores(frame), model.own_scores)
        np.testing.assert_array_equal(model.decisions(frame), model.own_decisions)
        return model

    with lent:
        yield made


@pytest.mark.parametrize(
    ("name", "threshold", "kind"),
    [
        *(("decision", None, "decision"), ("probability", None, "probability"), ("column", None, "probability")),
        *(("both", None, "probability of class 1"), ("logits", None, "probability of class 1, from logits")),
        *(("logit", 0.0, "score"), ("build", 0.0, "score"), ("forgetful", 0.0, "score")),
    ],
)
def test_every_form_of_one_model_decides_the_same_and_cannot_change_the_rows(
    load: Callable[..., Decider], name: str, threshold: float | None, kind: str
) -> None:
    before = FRAME.copy()
    model = load(name, threshold)
    assert model.output == kind
    np.testing.assert_array_equal(model.decisions(FRAME), LOGIT >= 0)
    pd.testing.assert_frame_equal(FRAME, before)


def test_a_threshold_is_in_the_scores_units_and_failures_on_counterparts_name_their_people(
    load: Callable[..., Decider],
) -> None:
    model = load("both", 0.7)
    np.testing.assert_array_equal(model.decisions(FRAME), np.log(0.7 / 0.3) <= LOGIT)
    exact = load("logit", float(LOGIT[11]))
    assert exact.decisions(FRAME)[11] == 1
    model = load("gaps", 0.0, FRAME[FRAME["b"] != 3].set_axis(range(100, 126)))
    with invalid(option="model", row=3):
        model.scores(FRAME)


# From a file to arrays: every bit of a number, the part of each column, and units that can be undone.


PATH = "t.csv"
TABLE = pd.DataFrame({"b": [1.5, 2.0, -1.0, 0.0], "y": ["no", "yes", "yes", "no"], "sex": [*"mffm"]})
TABLE = TABLE.assign(a=[True, False, True, True], race=[*"xyzx"])
SENSITIVE = (Attribute("sex"), Attribute("race", "x"))
DATA = Source(PATH, TABLE)
COLUMNS = np.column_stack([np.arange(8.0), 1000 * np.arange(8.0) ** 2, np.arange(8) % 2, np.full(8, 3.0)])
NAMES = ("near", "far", "binary", "constant")


def test_csv_and_parquet_hold_the_same_values_of_the_same_types(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {"name": ["a", "é"] * 1000, "flag": [True, False] * 1000, "gone": np.nan}
    columns["x"] = rng.normal(size=2000) * 10.0 ** np.arange(-100, 100).repeat(10)
    columns |= {"whole": rng.integers(-9, 9, 2000), "gaps": np.where(rng.random(2000) < 0.1, np.nan, 1.0)}
    table = pd.DataFrame(columns | {"text": np.where(rng.random(2000) < 0.1, "t", "1"), "NAME": "no"})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "bom.csv", index=False, encoding="utf-8-sig")
    # The index of a Parquet file is no row number.
    table.set_axis(np.arange(2000) + 7).to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "bom.csv", "t.parquet"):
        pd.testing.assert_frame_equal(Source.read(tmp_path / name).table, table, check_exact=True)


def labels(values: list[Any]) -> Source:
    return Source(PATH, pd.DataFrame({"y": values}))


def named(source: Source, apart: tuple[str, ...] = ("sex", "race"), included: bool = False, **given: Any) -> Any:
    chosen = {"features": (), "drop": (), **given}
    return feature_names(source, chosen["features"], chosen["drop"], "y", apart, "sensitive", included)


def test_features_are_all_columns_without_another_part_or_those_named_be_they_sensitive() -> None:
    made = rows(DATA, named(DATA), SENSITIVE)
    assert made.names == ("b", "a")
    np.testing.assert_array_equal(made.features, [[1.5, 1], [2, 0], [-1, 1], [0, 1]])
    assert made.features.dtype == np.float64
    np.testing.assert_array_equal(made.sensitive["sex"], [1, 0, 0, 1])
    np.testing.assert_array_equal(made.sensitive["race=x"], [1, 0, 0, 1])
    assert made.levels == {"sex": ("f", "m"), "race=x": ("not x", "x")}
    assert made.sensitive_inputs == ()
    assert named(DATA, features=("a", "b")) == ("a", "b")
    assert named(DATA, drop=("b",)) == ("a",)
    source = Source(PATH, TABLE.assign(sex=[1, 0, 0, 1], race=[0, 1, 1, 0]))
    both = (Attribute("sex"), Attribute("race"))
    names = named(source, included=True)
    assert names == ("b", "sex", "a", "race")
    assert rows(source, names, both).sensitive_inputs == (1, 3)
    assert rows(source, named(source, features=("race", "b")), both).sensitive_inputs == (0,)


@pytest.mark.parametrize(
    ("label", "positive"),
    [
        *((label, None) for label in ([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], [False, True, True, False])),
        *((label, "1") for label in ([2, 1, 1, 2], [-1.0, 1, 1, -1], ["01", "1", "1", "01"])),
    ],
)
def test_labels_0_and_1_need_no_word_and_others_do(label: list[Any], positive: str | None) -> None:
    codes, levels = classes_of(labels(label), "y", 2, None, positive)
    np.testing.assert_array_equal(codes, [0, 1, 1, 0])
    assert len(levels) == 2
    with invalid(option="label", column="y"):
        classes_of(labels([1, 1]), "y", 2, None, None)


OF_ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 3)), columns=["a", "unused", "b"])
GROUPS = pd.DataFrame({"g": np.where(OF_ROWS["b"] > 0, "x", "z")})
BOTH = pytest.mark.parametrize(
    "audit", [partial(fa.loss_ratio, sensitive=GROUPS), partial(fa.robustness_bias, groups=GROUPS)]
)


@BOTH
@pytest.mark.parametrize("wrong", [{"positive": "no"}, {"classes": ["yes", "no"]}])
def test_a_models_own_classes_are_not_reversed(audit: Callable[..., Any], wrong: dict[str, Any]) -> None:
    y = np.where(OF_ROWS["a"] > 0, "yes", "no")
    with invalid(option=next(iter(wrong))):
        audit(LogisticRegression().fit(OF_ROWS, y), OF_ROWS, y, **wrong)


@BOTH
@pytest.mark.parametrize("classes", [(1, 2), (1, 2, 3)])
def test_a_label_beside_the_models_classes_shifts_no_other_label(audit: Callable[..., Any], classes: Any) -> None:
    """Labels 0, 1, ... are indices of outputs only if the model's classes are not numbers themselves."""
    y = np.digitize(OF_ROWS["a"], [-0.4, 0.4][: len(classes) - 1]) + 1
    model = LogisticRegression().fit(OF_ROWS, y)
    with invalid(option="y", column="y"):
        audit(model, OF_ROWS, np.where(np.arange(90) == 0, 0, y))
    if len(classes) == 3:
        with invalid(option="positive"):
            audit(model, OF_ROWS, y, positive=2)


@BOTH
def test_columns_that_a_fitted_model_does_not_take_are_no_inputs(audit: Callable[..., Any]) -> None:
    y = (OF_ROWS["a"] > 0).astype(int)
    found = audit(LogisticRegression().fit(OF_ROWS[["a", "b"]], y), OF_ROWS, y)
    assert found.facts["data"]["features"] == ["a", "b"]


def test_more_classes_are_numbers_of_the_models_outputs_or_names_in_their_order() -> None:
    for label, names in (([0, 2, 1, 2], None), (["a", "c", "b", "c"], ("a", "b", "c"))):
        codes, levels = classes_of(labels(label), "y", 3, names, None)
        np.testing.assert_array_equal(codes, [0, 2, 1, 2])
        assert levels == (names or ("0", "1", "2"))
    # A class that no row has is still one of the model's.
    assert classes_of(labels([0, 3, 1]), "y", 4, None, None)[1] == ("0", "1", "2", "3")


def test_codes_stay_text_gaps_are_what_is_said_and_an_equals_sign_may_be_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("zip,state,n\n01,NA,1\n1,,2\n")
    usual = Source.read(tmp_path / "t.csv").table
    told = Source.read(tmp_path / "t.csv", text=["zip"], missing=["-"]).table
    assert usual["zip"].tolist() == ["01", "1"]
    assert usual["state"].isna().all()
    assert told["zip"].tolist() == ["01", "1"]
    assert told["state"].isna().tolist() == [False, True]
    assert attribute("race=x", ["race"]) == Attribute("race", "x")
    assert attribute("race=x", ["race", "race=x"]) == Attribute("race=x")
    assert attribute("sex", ["race"]) == Attribute("sex")


def test_units_are_standard_deviations_of_columns_of_more_than_two_values_and_can_be_undone() -> None:
    made = units(COLUMNS, NAMES, "continuous")
    assert made.standardized == ("near", "far")
    z = made.inward(COLUMNS)
    np.testing.assert_allclose(z[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z[:, :2].std(axis=0), 1)
    np.testing.assert_array_equal(z[:, 2:], COLUMNS[:, 2:])
    np.testing.assert_allclose(made.outward(z), COLUMNS, rtol=1e-12)
    np.testing.assert_allclose(made.network_input(torch.tensor(z)).numpy(), COLUMNS, rtol=1e-12)
    coded = COLUMNS.copy()
    coded[:, 2] *= 12
    np.testing.assert_array_equal(units(coded, NAMES, "continuous").inward(coded), z)
    gaps = np.array([[1.0, np.nan], [np.nan, np.nan], [1.0, np.nan]])
    assert units(gaps, ("same", "empty"), "continuous").scale.tolist() == [1.0, 1.0]
    kept = units(COLUMNS, NAMES, "none")  # changes no bit
    np.testing.assert_array_equal(kept.inward(COLUMNS), COLUMNS)
    np.testing.assert_array_equal(kept.network_input(torch.tensor(COLUMNS)).numpy(), COLUMNS)
    assert units(COLUMNS[:, [0, 2, 3]], ("near", "binary", "constant"), None).standardized == kept.standardized == ()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_values_that_cannot_be_squared_are_refused(size: float) -> None:
    table = pd.DataFrame({"a": np.arange(9.0), "b": size * np.arange(9.0)})
    with invalid(column="b"):
        numeric(Source("rows", table), ["a", "b"])


def test_long_lists_end_in_a_count_and_long_errors_after_a_line() -> None:
    assert listed([1, 2, 3], 2) == "1, 2 and 1 more"
    assert listed([1, 2], 2) == "1, 2"
    assert reason(RuntimeError("first.\nsecond")) == "RuntimeError: first"
    scripted = "The following operation failed in the TorchScript interpreter.\nTraceback\nRuntimeError: sizes differ\n"
    assert reason(RuntimeError(scripted)) == "RuntimeError: sizes differ"
    assert reason(KeyError()) == "KeyError: no further text"
