"""A user's model becomes scores and decisions; what is no such model is explained."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from pipeline.cli.audit.fliptest.model import Model, load_model, probed

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
def forgetful(frame): frame["a"] = 0.0; return logit(frame)
def classes(frame): return frame["b"] % 3
def words(frame): return np.where(logit(frame) > 0, "yes", "no")
def wide(frame): return np.zeros((len(frame), 3))
def one(frame): return 1.0
def gaps(frame): return logit(frame).where(frame["b"] != 3)
def chance(frame): return np.random.random(len(frame)) < 0.5
def company(frame): return (logit(frame) > logit(frame).mean()).astype(int)
def broken(frame): return frame["income"]
class Fitted:
    def predict(self, frame): return decision(frame)
fitted = Fitted()
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Model]:
    """Load a model of the file above and try it on the frame."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "models.py").write_text(MODELS)

    def made(name: str, threshold: float | None = None, frame: pd.DataFrame = FRAME) -> Model:
        text = name if "." in name else f"models.py:{name}"
        arguments = Namespace(predict=text, trust_pickle=False, device="cpu", dtype="float64", data=Path("t.csv"))
        model, scores = probed(load_model(arguments), frame, threshold, Path("t.csv"))
        np.testing.assert_array_equal(model.scores(frame), scores)
        return model

    return made


@pytest.mark.parametrize(
    ("name", "threshold", "kind"),
    [
        ("decision", None, "decision"),
        ("probability", None, "probability"),
        ("column", None, "probability"),
        ("both", None, "probability of class 1"),
        ("logits", None, "probability of class 1, from logits"),
        ("logit", 0.0, "score"),
        ("build", 0.0, "score"),
    ],
)
def test_every_form_of_one_model_decides_the_same(
    load: Callable[..., Model], name: str, threshold: float | None, kind: str
) -> None:
    model = load(name, threshold)
    assert model.kind == kind
    np.testing.assert_array_equal(model.decisions(model.scores(FRAME)), LOGIT >= 0)


def test_a_threshold_is_in_the_units_of_the_score_and_belongs_to_the_positive_side(load: Callable[..., Model]) -> None:
    model = load("both", 0.7)
    np.testing.assert_array_equal(model.decisions(model.scores(FRAME)), np.log(0.7 / 0.3) <= LOGIT)
    exact = load("logit", float(LOGIT[11]))
    assert exact.decisions(exact.scores(FRAME))[11] == 1


def test_archives_are_networks_of_numbers(
    load: Callable[..., Model], save_scripted: Callable[[torch.nn.Module, Path], None]
) -> None:
    network = torch.nn.Linear(2, 2)
    save_scripted(network, Path("net.pt"))
    weight, bias = (values.detach().double().numpy() for values in (network.weight, network.bias))
    expected = FRAME.to_numpy() @ weight.T + bias
    np.testing.assert_allclose(
        load("net.pt").scores(FRAME), 1 / (1 + np.exp(expected[:, 0] - expected[:, 1])), rtol=1e-12
    )
    with pytest.raises(ValueError, match=r"t\.csv: expected numbers in every feature column, but 'b' holds 'x'"):
        load("net.pt", None, FRAME.assign(b="x"))


def test_a_model_cannot_change_the_rows(load: Callable[..., Model]) -> None:
    before = FRAME.copy()
    load("forgetful", 0.0)
    pd.testing.assert_frame_equal(FRAME, before)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("logit", r"numbers from -2 to .*, neither decisions 0 and 1 nor probabilities: .*--threshold T \(0 for log"),
        ("classes", r"numbers from 0 to 2, neither decisions 0 and 1 nor probabilities"),
        ("words", r"expected the model to return numbers, found values such as .*'no'.*: return 1 for the positive"),
        ("wide", r"expected the model to return \(30,\) decisions or scores, or \(30, 2\) .* found shape \(30, 3\)"),
        ("one", r"found shape \(\)"),
        ("gaps", r"NaN or infinite values for 4 of 30 rows, the first being 3, 10, 17, 24 \(counted from 0\)"),
        ("chance", r"changes with the other rows of its batch, or from call to call: expected a function of each"),
        ("company", r"changes with the other rows of its batch"),
        ("broken", r"the model failed on 30 rows of 2 features: KeyError: 'income'\. It was given the columns a, b"),
        ("fitted", r"--predict models\.py:fitted: expected a torch network, or a function of a data frame .*def pred"),
        ("absent", r"--predict models\.py:absent: 'models\.py' has no 'absent'"),
        ("model.onnx", r"expected --predict to be model\.pt"),
        ("absent.pt", r"there is no file absent\.pt: --predict takes"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_explained(load: Callable[..., Model], name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(name)


def test_failures_on_counterparts_name_the_people_they_belong_to(load: Callable[..., Model]) -> None:
    model = load("gaps", 0.0, FRAME[FRAME["b"] != 3].set_axis(range(100, 126)))
    with pytest.raises(ValueError, match=r"for 4 of 30 counterparts, the first being 3, 10, 17, 24"):
        model.scores(FRAME)
