"""What the loss-ratio audit of a user's network measures, from files to numbers."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from fairness_audits.audits.loss_ratio.core import recorded_steps
from fairness_audits.fair_metric import from_directions, learn, principal_angles
from tests.cli.places import APPLICANTS, FEATURES, documented, json_of, linear_network, run, scripted, undrawn

pytestmark = pytest.mark.usefixtures("desk")
document = partial(json_of, "loss-ratio")

GIVEN = ("--directions", "directions.npy")
LEARNED = ("--sensitive", "sex")


def by_hand(
    rows: pd.DataFrame, weights: np.ndarray, direction: np.ndarray, steps: int, bounded: bool
) -> dict[str, float]:
    """x <- P(x + eta (grad l - 2 lambda (I - u u')(x - x0))) for logit w'x, then eq. 3.10 and 3.13.

    P keeps x in the range of the rows where it is ``bounded``.
    """
    x0, y = rows[list(FEATURES)].to_numpy(float), rows["hired"].to_numpy()
    keep = np.eye(3) - np.outer(direction, direction) / (direction @ direction)

    def loss(x: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, np.where(y == 1, -1, 1) * (x @ weights))

    x = x0
    for _ in range(steps):
        gradient = (1 / (1 + np.exp(-x @ weights)) - y)[:, None] * weights
        x = x + 0.01 * (gradient - 2 * 50 * (x - x0) @ keep)
        x = np.clip(x, x0.min(axis=0), x0.max(axis=0)) if bounded else x
    ratio, n = loss(x) / loss(x0), len(y)
    before, after = (((p @ weights > 0) != (y == 1)).astype(float) for p in (x0, x))
    a, b = after.mean(), before.mean()
    v11, v22, v12 = (after**2).mean(), (before**2).mean(), (after * before).mean()
    spread = np.sqrt((a**2 * v22 + b**2 * v11 - 2 * a * b * v12) / n) / b**2
    return {
        "S_n": ratio.mean(),
        "T_n": ratio.mean() - norm.ppf(0.95) * ratio.std(ddof=1) / np.sqrt(n),
        "below_one": (ratio < 1).sum(),
        "error_S_n": a / b,
        "error_T_n": a / b - norm.ppf(0.95) * spread,
        "accuracy": 1 - b,
    }


@pytest.mark.parametrize("metric", [GIVEN, LEARNED])
def test_an_unfair_network_is_rejected_and_a_fair_one_is_not(metric: tuple[str, str]) -> None:
    unfair = document(*metric, "--steps", "200")
    assert unfair["verdict"]["rejected"]
    assert unfair["results"]["loss_ratio"]["p_value"] < 1e-6
    fair = document("--model", "fair.pt", *metric, "--steps", "200")
    assert not fair["verdict"]["rejected"]
    assert fair["results"]["loss_ratio"]["ci_high"] < 1.15


@pytest.mark.parametrize("bounds", ["data", "none"])
def test_the_json_holds_the_numbers_of_the_formulas(bounds: str) -> None:
    made = document(*GIVEN, "--bounds", bounds)
    weights, direction = np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0])
    expected = by_hand(APPLICANTS, weights, direction, 60, bounds == "data")
    loss, error = made["results"]["loss_ratio"], made["results"]["error_rate_ratio"]
    found = {name: loss[name] for name in ("S_n", "T_n", "below_one")}
    found |= {f"error_{name}": error[name] for name in ("S_n", "T_n")} | {"accuracy": made["results"]["accuracy"]}
    assert found == pytest.approx(expected, rel=1e-9)
    assert made["course"]["steps"][-1] == 60
    assert made["course"]["loss_ratio"]["T_n"][-1] == loss["T_n"]
    assert made["options"]["regularization"] == 50
    assert loss["n"] + loss["non_finite"] == made["data"]["audited"] == 300


def test_the_learned_metric_is_that_of_the_sensitive_columns() -> None:
    made = document("--sensitive", "sex,region=north")
    assert made["fair_metric"]["levels"] == {"sex": ["female", "male"], "region=north": ["not north", "north"]}
    groups = {"sex": (APPLICANTS["sex"] == "male").to_numpy(int), "r": (APPLICANTS["region"] == "north").to_numpy(int)}
    expected = learn(APPLICANTS[list(FEATURES)].to_numpy(float), groups)
    found = np.array([[loadings[name] for name in FEATURES] for loadings in made["fair_metric"]["directions"].values()])
    assert principal_angles(from_directions(found), expected).max() < 1e-6
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    assert made["fair_metric"]["separation"]["sex"] > 0.9 > 0.65 > made["fair_metric"]["separation"]["region=north"]
    assert sum(made["fair_metric"]["shares"].values()) == pytest.approx(made["fair_metric"]["dimension"]) == 2


def test_a_sensitive_input_adds_its_own_axis() -> None:
    table = APPLICANTS.drop(columns=["region", "member"])
    table.assign(sex=(table["sex"] == "male").astype(int)).to_parquet("inputs.parquet")
    arguments = (*LEARNED, "--data", "inputs.parquet", "--include-sensitive", "--drop", "hired")
    made = document(*arguments, "no--features")
    assert made["data"]["features"] == ["merit", "proxy", "sex"]
    assert made["fair_metric"]["directions"]["input sex"] == {"merit": 0, "proxy": 0, "sex": 1}
    assert made["fair_metric"]["directions"]["sex"]["sex"] == 0
    assert made["fair_metric"]["shares"]["sex"] == pytest.approx(1)


def test_standardised_audits_do_not_depend_on_the_units_of_the_columns() -> None:
    other = APPLICANTS.assign(merit=3 + 1000 * APPLICANTS["merit"], proxy=APPLICANTS["proxy"] / 50)
    other.to_parquet("other.parquet")
    scaling = torch.nn.Linear(3, 3)
    with torch.no_grad():
        scaling.weight.copy_(torch.diag(torch.tensor([1e-3, 50.0, 1.0])))
        scaling.bias.copy_(torch.tensor([-3e-3, 0.0, 0.0]))
    network = torch.nn.Sequential(scaling, linear_network(1.0, 1.0, 0.0))
    scripted(network, "other_net.pt")
    arguments = (*LEARNED, "--standardize", "continuous")
    here = document(*arguments)
    there = document("--model", "other_net.pt", *arguments, "--data", "other.parquet")
    assert here["data"]["standardized"] == there["data"]["standardized"] == ["merit", "proxy"]
    for test in ("loss_ratio", "error_rate_ratio"):
        # The weights of the scaling layer were rounded to float32, hence the tolerance.
        assert there["results"][test] == pytest.approx(here["results"][test], rel=1e-5)


def test_given_directions_are_displacements_in_the_columns_units() -> None:
    APPLICANTS.assign(merit=20 * APPLICANTS["merit"]).to_parquet("wide.parquet")
    document(*LEARNED, "--data", "wide.parquet", "--standardize", "none")  # refused without a word on units
    scripted(linear_network(1.0, -20.0, 0.0), "tilted.pt")
    np.save("along.npy", np.array([20.0, 1.0, 0.0]))  # w'v = 0: the network is constant along it
    np.save("across.npy", np.array([1.0, 20.0, 0.0]))
    arguments = ("--model", "tilted.pt", "--data", "wide.parquet", "--standardize", "continuous")
    assert not document(*arguments, "--directions", "along.npy", "--delta", "5")["verdict"]["rejected"]
    assert document(*arguments, "--directions", "across.npy", "--delta", "5")["verdict"]["rejected"]


def test_points_are_drawn_by_the_seed() -> None:
    arguments = (*GIVEN, "--examples", "50", "--points", "50")
    one, again, other = (document(*arguments, "--seed", seed) for seed in ("1", "1", "2"))
    assert one == again
    drawn, drawn_other = ({example["audit_row"] for example in made["examples"]} for made in (one, other))
    assert len(drawn) == one["results"]["loss_ratio"]["n"] == 50
    assert drawn != drawn_other
    everyone = document(*GIVEN, "--examples", "300")
    ratios = {example["audit_row"]: example["audit_loss_ratio"] for example in everyone["examples"]}
    for example in one["examples"]:
        assert example["audit_loss_ratio"] == pytest.approx(ratios[example["audit_row"]], rel=1e-12)


def test_examples_can_be_given_to_the_model_again() -> None:
    made = undrawn("loss-ratio", *LEARNED, "--examples", "4")
    table = pd.read_csv("out/examples.csv")
    assert table["audit_version"].tolist() == ["original", "comparable", "possible"] * 4
    network = linear_network(1.0, 1.0, 0.0).double()
    scores = network(torch.tensor(table[list(FEATURES)].to_numpy(float)))
    loss = torch.nn.functional.cross_entropy(scores, torch.tensor(table["audit_label"]), reduction="none")
    np.testing.assert_allclose(table["audit_loss"], loss.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(table["audit_probability_of_1"], scores.softmax(1)[:, 1].detach().numpy(), rtol=1e-9)
    ratio = table["audit_loss"].to_numpy()[1::3] / table["audit_loss"].to_numpy()[::3]
    np.testing.assert_allclose(table["audit_loss_ratio"][::3], ratio, rtol=1e-9)
    assert (np.diff(ratio) <= 0).all()
    originals = APPLICANTS.iloc[table["audit_row"][::3]]
    np.testing.assert_allclose(table[list(FEATURES)][::3], originals[list(FEATURES)], rtol=1e-12)
    assert table["audit_sex"][::3].tolist() == originals["sex"].tolist()
    # Who is nearest to a comparable differs from it in the column of two values alone.
    np.testing.assert_allclose(table[["merit", "proxy"]][2::3], table[["merit", "proxy"]][1::3], rtol=1e-12)
    assert set(table["member"][2::3]) <= {0, 1}
    assert made["files"]["examples"] == "examples.csv"
    assert [example["audit_row"] for example in made["examples"]][::3] == originals.index.tolist()
    own, comparable = table["proxy"][:2]
    assert f"; proxy {own:.4g} -> {comparable:.4g}; " in table["audit_changes"][0]


def test_comparables_are_kept_where_they_are_told_to_be() -> None:
    Path("bounds.csv").write_text("feature,low,high\nproxy,-9,2.8\n")
    assert APPLICANTS["proxy"].max() < 2.8
    free, kept = document(*GIVEN, "--bounds", "none", "--steps", "300"), document(*GIVEN, "--steps", "300")
    assert free["bounds"]["outside"] > 0 == kept["bounds"]["outside"]
    assert free["bounds"]["within"] == pytest.approx(kept["results"]["loss_ratio"], rel=1e-12)
    assert kept["bounds"]["within"] is None
    assert kept["results"]["loss_ratio"]["S_n"] < free["results"]["loss_ratio"]["S_n"]
    assert "describe nobody" in " ".join(free["caveats"])
    undrawn("loss-ratio", *GIVEN, "--bounds", "bounds.csv", "--steps", "300", "--examples", "300")
    table = pd.read_csv("out/examples.csv")
    assert table["proxy"].max() == pytest.approx(2.8)
    Path("bounds.csv").write_text("feature,low,high\nproxy,-9,0\n")
    status, _, err = run("loss-ratio", *GIVEN, "--bounds", "bounds.csv")
    assert (status, "bounds.csv: 'proxy' is" in err, "outside [-9, 0]" in err) == (2, True, True)


def test_a_category_of_indicators_becomes_whole() -> None:
    west = (APPLICANTS["region"] == "west").astype(int)
    APPLICANTS.assign(member=west, member_not=1 - west).to_parquet("coded.parquet")
    asked = ("--data", "coded.parquet", *LEARNED, "--features", "merit,member,member_not", "--one-hot", "member")
    undrawn("loss-ratio", *asked)
    possible = pd.read_csv("out/examples.csv").query("audit_version == 'possible'")
    assert (possible[["member", "member_not"]].sum(axis=1) == 1).all()


def test_a_tolerance_inside_the_interval_is_not_decided_and_single_precision_tells_the_same() -> None:
    few = (*GIVEN, "--points", "40")
    estimate = document(*few)["results"]["loss_ratio"]["S_n"]
    verdict = document(*few, "--delta", str(estimate))["verdict"]
    assert verdict["outcome"] == "inconclusive"
    assert "lies inside the interval, so these rows do not decide" in verdict["sentence"]
    assert document(*GIVEN, "--delta", "9")["verdict"]["outcome"] == "not rejected"
    double, single = (document(*GIVEN, "--dtype", f"float{bits}") for bits in (64, 32))
    assert single["results"]["loss_ratio"]["T_n"] == pytest.approx(double["results"]["loss_ratio"]["T_n"], rel=1e-4)


def test_recorded_steps_go_from_1_to_the_last_and_the_figures_course_ends_at_the_verdict() -> None:
    assert recorded_steps(1) == (1,)
    assert recorded_steps(3) == (1, 2, 3)
    steps = recorded_steps(500)
    assert (steps[0], steps[-1]) == (1, 500)
    assert list(steps) == sorted(set(steps))
    assert 20 <= len(steps) <= 30
    made = documented("loss-ratio", *GIVEN)
    lines = {str(line.get_label()): np.column_stack(line.get_data()) for line in made.figure().axes[0].lines}
    assert lines["$T_n$"][-1].tolist() == [60, made.facts["results"]["loss_ratio"]["T_n"]]
    assert lines["tolerance 1.25"][0, 1] == 1.25


def test_columns_of_very_different_scales_give_no_verdict_that_is_not_a_rejection() -> None:
    """The fair network is fair in any unit; a column of 1e8 cannot be moved by a step of one unit."""
    APPLICANTS.assign(merit=1e8 * APPLICANTS["merit"]).to_parquet("rows.parquet")
    scripted(linear_network(1e-8, 0.0, 0.0), "fair.pt")
    given = ("--model", "fair.pt", "--directions", "directions.npy")
    made = json_of("loss-ratio", *given, "--standardize", "none")
    assert made["data"]["scales_apart"] > 1e7
    assert made["verdict"]["outcome"] == "inconclusive"
    assert "standardize='continuous'" in made["verdict"]["reason"]
    assert json_of("loss-ratio", *given, "--standardize", "continuous")["data"]["scales_apart"] == pytest.approx(1)
