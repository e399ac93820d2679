"""A build can rest on a verdict: nothing that was not tested passes, and each limit decides where it says it does."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pipeline.cli.entry import audits
from pipeline.cli.result import Verdict
from pipeline.cli.words import STATUS, concluded

Command = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
DIRECTIONS = "--directions directions.npy"
AUC = "--score p --group sex --metric auc"
FLIP = "--null-draws 39"
TABLE = f"""
loss-ratio => {DIRECTIONS} --steps 200 --delta 1.1 => rejected =>
loss-ratio => {DIRECTIONS} --model fair.pt => not rejected =>
loss-ratio => {DIRECTIONS} --points 20 => inconclusive => Only 20 rows have a finite ratio, and the test needs 30.
loss-ratio => {DIRECTIONS} --model certain.py:p => inconclusive => % of the audited rows have no finite ratio, more than
loss-ratio => {DIRECTIONS} --model certain.py:p => inconclusive => The model's probability is exactly 0 or 1 in
loss-ratio => {DIRECTIONS} --model reversed.pt => inconclusive => no better than the 0.5 of a model that always says
loss-ratio => {DIRECTIONS} --model always.pt => inconclusive => The model's balanced accuracy is 0.500, no better
permutation => --score p --group sex --metric mean_score => rejected =>
permutation => {AUC} => not rejected =>
permutation => {AUC} --label few15 => inconclusive => 1 of 1 tests are of a group with fewer than 20 units
permutation => {AUC} --label nobody => inconclusive => Nothing could be tested: group 'female' has no rows with label 1
permutation => --prediction d --group sex --metric tpr,selection_rate --label nobody => inconclusive => 1 of 2 tests
permutation => --score same --group sex --metric auc => inconclusive => The model says the same of everybody
permutation => --prediction always --group sex --metric tpr,fpr => inconclusive => The model says the same of everybody
permutation => --prediction oracle --group sex --metric tpr => not rejected =>
fliptest => {FLIP} => rejected =>
fliptest => {FLIP} --source north --target south --group region --predict models.py:experienced => not rejected =>
fliptest => => inconclusive => 0 deals of the noise floor cannot tell flips from noise at level 0.05: --null-draws 39
fliptest => --null-draws 38 => inconclusive => 38 deals of the noise floor
fliptest => --map wgan --map-setting steps=30 --map-setting engine=torch => inconclusive => The map is poor: the Kolmog
fliptest => {FLIP} --threshold 0 => inconclusive => The model decides alike about all people and counterparts
fliptest => {FLIP} --label other => inconclusive => no better than the 0.5 of a model that always decides the same
robustness => --group sex => rejected =>
robustness => --group place => not rejected =>
robustness => --group sex --label other => inconclusive => Only 7 % of the images are classified correctly
robustness => --group sex --label rare --model nets.py:ball --attack fmn => inconclusive => , no more than
robustness => --group sex --permutations 19 => inconclusive => 19 permutations cannot reject at level 0.01 in 1 comp
robustness => --group sex --points 16 --min-group 2 --alpha 0.0001 => inconclusive => A group has only
robustness => --attack carlini_wagner --attack-setting carlini_wagner.iterations=2 => inconclusive => carlini_wagner fa
"""
"""The audit => arguments => its outcome => what the reason has in it."""
DECISION = {"loss-ratio": "rejected", "permutation": "rejected", "fliptest": "beyond_noise", "robustness": "biased"}
FACTS = {"rejected": True, "not rejected": False, "inconclusive": None}


def prepare_desk() -> None:
    """Networks that are certain, predict the opposite, or nearly always the same."""
    network = torch.jit.load("unfair.pt")
    with torch.no_grad():
        network.weight.neg_()
        network.save("reversed.pt")
        network.weight.mul_(1e-3)
        network.bias.copy_(torch.tensor([1.0, -1.0]))
    network.save("always.pt")
    Path("certain.py").write_text("import torch\ndef p(x): return torch.sigmoid(200 * x[:, 0] + 600 * x[:, 1])\n")


def prepare_ledger() -> None:
    """Labels that few or no women have as positive, and a model that says the same of everybody."""
    frame = pd.read_parquet("preds.parquet")
    women = frame["sex"] == "female"
    first = {n: frame["y"].where(~women, (women.cumsum() <= n).astype(int)) for n in (15, 0)}
    frame.assign(few15=first[15], nobody=first[0], oracle=frame["y"], same=0.5, always=1).to_parquet("preds.parquet")


def prepare_office() -> None:
    """Labels of the other sense."""
    table = pd.read_parquet("rows.parquet")
    table.assign(other=1 - table["hired"]).drop(columns="hired").to_parquet("other.parquet")


def prepare_studio() -> None:
    """Labels that are wrong for nearly all, or of one class for nearly all."""
    table = pd.read_csv("attributes.csv")
    rare = (np.arange(len(table)) % 10 == 0).astype(int)
    table.assign(other=1 - table["smiles"], rare=rare).to_csv("attributes.csv", index=False)


PREPARE = {
    "loss-ratio": prepare_desk,
    "permutation": prepare_ledger,
    "fliptest": prepare_office,
    "robustness": prepare_studio,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "given", "outcome", "reason"), [line.split(" =>") for line in TABLE[1:].splitlines()])
def test_a_verdict_is_inconclusive_where_nothing_follows(
    run: Command, working: Callable[[str], Path], name: str, given: str, outcome: str, reason: str
) -> None:
    working(name)
    PREPARE[name]()
    words = shlex.split(given)
    words += ["--data", "other.parquet"] * ("other" in words and name == "fliptest")
    words += ["--alpha", "0.01"] * (words[-2:] == ["--permutations", "19"])
    status, out, err = run(name, *words, "--gate", "--json", "made.json")
    assert Path("made.json").exists(), err
    verdict = json.loads(Path("made.json").read_text())["verdict"]
    assert (verdict["outcome"], verdict[DECISION[name]], err) == (outcome.strip(), FACTS[outcome.strip()], "")
    assert status == STATUS[verdict["outcome"]]
    assert reason.strip() in (verdict["reason"] or "")
    assert (verdict["reason"] is None) == (verdict["outcome"] != "inconclusive")
    head = " ".join(out.split("\n\n")[1].split())
    assert head.startswith("INCONCLUSIVE. ") == (verdict["outcome"] == "inconclusive")
    assert " ".join(verdict["sentence"].split()) in head


def test_without_a_gate_the_status_is_0_whatever_the_verdict(run: Command, desk: Path) -> None:
    for model in ("unfair.pt", "fair.pt"):
        given = shlex.split(f"{DIRECTIONS} --model {model} --steps 200 --delta 1.1")
        assert [run("loss-ratio", *given, *gate)[0] for gate in ((), ("--gate",))] == [0, 3 * (model == "unfair.pt")]


LIMITS = """
rows >= 30: Only {value} rows.
share <= 0.5: {value:.0%} of {rows}, more than {limit:.0%}.
power <= 1 unless rejected: Too few draws.
"""


@pytest.mark.parametrize(
    ("rows", "share", "power", "found", "reason"),
    [
        (30, 0.5, 1, "not rejected", None),
        (30, 0.5, 2, "not rejected", "Too few draws."),
        (30, 0.5, 2, "rejected", None),
        (29, 0.5, 2, "rejected", "Only 29 rows."),
        (29, 0.75, 2, "not rejected", "Only 29 rows. 75% of 29, more than 50%. Too few draws."),
        (30, None, 1, "rejected", None),
        (30, float("nan"), 1, "rejected", "nan% of 30, more than 50%."),
    ],
)
def test_a_limit_is_kept_at_its_number_and_a_quantity_that_is_nan_keeps_none(
    rows: int, share: float | None, power: float, found: Any, reason: str | None
) -> None:
    made = concluded(
        Verdict(found, "FOUND", "It was found.", {"n": 1}),
        LIMITS,
        {"rows": rows, "share": share, "power": power},
        "rejected",
    )
    assert made.reason == reason
    assert made.outcome == (found if reason is None else "inconclusive")
    assert made.sentence == (f"{reason} It was found." if reason else "It was found.")
    assert made.facts == {"rejected": FACTS[made.outcome], "n": 1}


@pytest.mark.parametrize("name", DECISION)
def test_the_page_of_each_audit_documents_its_limits_and_the_gate(name: str) -> None:
    page = (ROOT / audits()[name].PAGE.split()[0]).read_text()
    assert "| 4 | with `--gate`: inconclusive" in page
    assert f'`outcome` (`"rejected"`, `"not rejected"` or `"inconclusive"`), its `reason`, `{DECISION[name]}`' in page
    assert "## When nothing follows" in page
    assert "jq" not in page
