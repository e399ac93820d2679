"""How the loss-ratio audit speaks: its verdict, its examples and its caveats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

FEATURES = ("merit", "proxy", "member")
Command = Callable[..., tuple[int, str, str]]
Linear = Callable[..., torch.nn.Module]
Scripted = Callable[[torch.nn.Module, Path], None]

GIVEN = ("--directions", "directions.npy")
LEARNED = ("--sensitive", "sex")


def test_examples_can_be_given_to_the_model_again(
    audit: Command, desk: Path, applicants: pd.DataFrame, linear: Linear
) -> None:
    assert audit(*LEARNED, "--output", "out", "--examples", "4")[0] == 0
    table = pd.read_csv(desk / "out" / "examples.csv")
    assert table["audit_version"].tolist() == ["original", "comparable"] * 4
    network = linear(1.0, 1.0, 0.0).double()
    scores = network(torch.tensor(table[list(FEATURES)].to_numpy(float)))
    loss = torch.nn.functional.cross_entropy(scores, torch.tensor(table["audit_label"]), reduction="none")
    np.testing.assert_allclose(table["audit_loss"], loss.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(table["audit_probability_of_1"], scores.softmax(1)[:, 1].detach().numpy(), rtol=1e-9)
    ratio = table["audit_loss"].to_numpy()[1::2] / table["audit_loss"].to_numpy()[::2]
    np.testing.assert_allclose(table["audit_loss_ratio"][::2], ratio, rtol=1e-9)
    assert (np.diff(ratio) <= 0).all()
    originals = applicants.iloc[table["audit_row"][::2]]
    np.testing.assert_allclose(table[list(FEATURES)][::2], originals[list(FEATURES)], rtol=1e-12)
    assert table["audit_sex"][::2].tolist() == originals["sex"].tolist()
    made = json.loads((desk / "out" / "audit.json").read_text())
    assert made["files"]["examples"] == "examples.csv"
    assert [example["row"] for example in made["examples"]] == originals.index.tolist()
    worst = made["examples"][0]["changes"][0]
    assert worst["feature"] == "proxy"
    assert worst["comparable"] == pytest.approx(table["proxy"][1])


def test_the_page_says_what_the_json_says(audit: Command, desk: Path) -> None:
    status, out, _ = audit(*LEARNED, "--json", "made.json", "--steps", "200")
    made = json.loads((desk / "made.json").read_text())
    assert status == 0
    for words in (
        "UNFAIR. The audit rejects individual fairness: with 95 % confidence",
        f"{made['results']['loss_ratio']['T_n']:.3f}",
        f"{made['results']['error_rate_ratio']['S_n']:.3f}",
        f"balanced {made['results']['balanced_accuracy']:.3f}",
        "at most 1.25",
        "TorchScript network; output: two columns, logits (read off the values)",
        "sex (male +, female -; AUC 0.9",
        "Most unfair examples (rows counted from 0)",
    ):
        assert words in " ".join(out.split()), words


def test_an_audit_that_does_not_reject_says_which_kind_of_silence_it_is(audit: Command, desk: Path) -> None:
    _, out, _ = audit("--model", "fair.pt", *GIVEN)
    assert "NOT REJECTED" in out
    assert "1.25 times is tolerated" in " ".join(out.split())
    assert "no proof of fairness" in " ".join(out.split())
    few = (*GIVEN, "--points", "20")
    assert audit(*few, "--json", "few.json")[0] == 0
    estimate = json.loads((desk / "few.json").read_text())["results"]["loss_ratio"]["S_n"]
    _, out, _ = audit(*few, "--delta", str(estimate))
    assert "lies inside the interval: these rows do not decide; more of them would." in " ".join(out.split())
    assert "which 20 rows may not justify" in " ".join(out.split())


def test_doubtful_circumstances_are_said(
    document: Callable[..., dict[str, Any]], desk: Path, linear: Linear, save_scripted: Scripted
) -> None:
    save_scripted(linear(-1.0, -1.0, 0.0), desk / "reversed.pt")
    assert any("worse than chance" in text for text in document("--model", "reversed.pt", *GIVEN)["caveats"])
    (desk / "probability.py").write_text("import torch\ndef p(x): return torch.sigmoid(20 * x[:, 0] + 60 * x[:, 1])\n")
    made = document("--model", "probability.py:p", *GIVEN)
    assert (made["model"]["output_kind"], made["model"]["output_columns"]) == ("probability", 1)
    assert any("if they are logits, say --output-kind logits" in text for text in made["caveats"])
    assert any("probability is exactly 0 or 1 in" in text for text in made["caveats"])
    test = made["results"]["loss_ratio"]
    assert test["non_finite"] > 0
    assert any(f"{test['non_finite']} rows have no finite ratio" in text for text in made["caveats"])
    np.save(desk / "all.npy", np.eye(3))
    everything = document("--directions", "all.npy")
    assert any("treats everyone as alike" in text for text in everything["caveats"])
