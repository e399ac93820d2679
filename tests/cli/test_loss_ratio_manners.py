"""How the loss-ratio audit speaks: its page, its files, its failures."""

from __future__ import annotations

import json
import subprocess
import sys
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


def test_the_same_audit_gives_the_same_bytes(audit: Command, desk: Path) -> None:
    for folder in ("one", "two"):
        assert audit("--model", "unfair.pt", *LEARNED, "--output", folder)[0] == 0
    names = sorted(path.name for path in (desk / "one").iterdir())
    assert names == ["audit.json", "examples.csv", "loss_ratio.pdf", "loss_ratio.png"]
    for name in names:
        assert (desk / "one" / name).read_bytes() == (desk / "two" / name).read_bytes()


def test_examples_can_be_given_to_the_model_again(
    audit: Command, desk: Path, applicants: pd.DataFrame, linear: Linear
) -> None:
    assert audit("--model", "unfair.pt", *LEARNED, "--output", "out", "--examples", "4")[0] == 0
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
    status, out, _ = audit("--model", "unfair.pt", *LEARNED, "--output", "out", "--steps", "200")
    made = json.loads((desk / "out" / "audit.json").read_text())
    assert status == 0
    assert made["verdict"]["sentence"] in " ".join(out.split())
    for words in (
        "UNFAIR. The audit rejects individual fairness: with 95 % confidence",
        f"{made['results']['loss_ratio']['T_n']:.3f}",
        f"{made['results']['error_rate_ratio']['S_n']:.3f}",
        f"balanced {made['results']['balanced_accuracy']:.3f}",
        "at most 1.25",
        "TorchScript network; output: two columns, logits (read off the values)",
        "sex (male +, female -; AUC 0.9",
        "Most unfair examples (rows counted from 0)",
        "written: out/examples.csv",
    ):
        assert words in " ".join(out.split()), words
    assert max(map(len, out.splitlines())) <= 80


def test_an_audit_that_does_not_reject_says_which_kind_of_silence_it_is(audit: Command, desk: Path) -> None:
    _, out, _ = audit("--model", "fair.pt", *GIVEN)
    assert "NOT REJECTED" in out
    assert "1.25 times is tolerated" in " ".join(out.split())
    assert "no proof of fairness" in " ".join(out.split())
    few = ("--model", "unfair.pt", *GIVEN, "--points", "20")
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
    everything = document("--model", "unfair.pt", "--directions", "all.npy")
    assert any("treats everyone as alike" in text for text in everything["caveats"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--step-size", "0.03"), "step size 0.03 is unstable for regularization 50"),
        (("--step-size", "0.03"), "= 0.02; use a smaller step size or regularization"),
        (("--points", "301"), "--points asks for 301 rows, but there are 300"),
        (("--features", "merit,proxy"), "expected --directions of shape (number, 2)"),
        (("--directions", "flat.npy"), "flat.npy: sensitive directions [0] are zero"),
        (("--directions", "junk.npy"), "junk.npy does not hold an array of numbers: write it with numpy.save"),
        (
            ("--directions", "absent.npy"),
            "there is no file absent.npy: --directions takes a .npy file of shape (number, 3)",
        ),
        (("--metric-data", "rows.csv"), "--metric-data is for a metric that is learned"),
        (("--data", "absent.csv"), "there is no file absent.csv"),
        (("--label", "hried"), "did you mean 'hired'?"),
        (("--model", "absent.pt"), "there is no file absent.pt"),
        (("--features", "merit,proxy,member,sex"), "'sex' holds 'female', 'male'. Encode these columns"),
        (("--output-kind", "probability"), "expected values in [0, 1], found -"),
        (("--standardize", "height"), "--standardize names 'height', which is no feature"),
        (("--device", "abacus"), "--device abacus cannot be used here"),
        (("--json", "taken"), "expected taken to be a file, found a folder"),
    ],
)
def test_a_failure_is_one_message_and_leaves_nothing_behind(
    audit: Command, desk: Path, arguments: tuple[str, ...], message: str
) -> None:
    np.save(desk / "flat.npy", np.zeros((1, 3)))
    (desk / "junk.npy").write_text("junk")
    (desk / "taken").mkdir()
    before = sorted(desk.rglob("*"))
    given = {"--model": "unfair.pt", "--directions": "directions.npy", "--output": "out"}
    given.update(zip(arguments[::2], arguments[1::2], strict=True))
    status, out, err = audit(*(word for pair in given.items() for word in pair))
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(desk.rglob("*")) == before


def test_from_the_shell(desk: Path) -> None:
    command = [sys.executable, "-m", "pipeline", "audit", "loss-ratio", "--data", "rows.csv", "--label", "hired"]
    command += ["--drop", "region", *LEARNED, "--steps", "20", "--output", "out"]
    environment = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "OMP_NUM_THREADS": "1"}
    good = subprocess.run([*command, "--model", "unfair.pt"], capture_output=True, text=True, env=environment)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("Loss-ratio audit of unfair.pt on rows.csv")
    assert (desk / "out" / "loss_ratio.png").read_bytes().startswith(b"\x89PNG")
    assert (desk / "out" / "loss_ratio.pdf").read_bytes().startswith(b"%PDF")
    bad = subprocess.run([*command, "--model", "other.pt"], capture_output=True, text=True, env=environment)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: there is no file other.pt")
