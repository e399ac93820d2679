"""What the permutation audit concludes: margins, ratios, and intervals that are too wide, by command and by call."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairness_audits as fa
from fairness_audits.audits.permutation.exact import Rates
from fairness_audits.audits.permutation.intervals import score_interval
from fairness_audits.errors import InvalidInput
from fairness_audits.results.result import Facts
from tests.cli.places import documented, json_of, run


def decisions(**events: tuple[int, int]) -> pd.DataFrame:
    """Rows of label 1 in each group: so many events among so many rows."""
    parts = [
        pd.DataFrame({"g": group, "y": 1, "d": np.arange(trials) < count}) for group, (count, trials) in events.items()
    ]
    return pd.concat(parts, ignore_index=True).astype({"d": int})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    decisions(f=(0, 6), m=(2, 5)).to_csv("few.csv", index=False)
    decisions(f=(900, 1000), m=(905, 1000)).to_csv("alike.csv", index=False)
    decisions(f=(700, 1000), m=(900, 1000)).to_csv("apart.csv", index=False)


ASKED = ("--label", "y", "--prediction", "d", "--group", "g", "--metric", "tpr")


@pytest.mark.parametrize(
    ("rows", "options", "status", "outcome"),
    [
        ("few", "", 4, "inconclusive"),
        ("few", "--width 1", 0, "not rejected"),
        ("few", "--margin 0.05", 4, "inconclusive"),
        ("few", "--ratio", 4, "inconclusive"),
        ("alike", "", 0, "not rejected"),
        ("alike", "--width 0.01", 4, "inconclusive"),
        ("alike", "--margin 0.04", 0, "not rejected"),
        ("alike", "--margin 0.01", 4, "inconclusive"),
        ("alike", "--ratio", 0, "not rejected"),
        ("apart", "", 3, "rejected"),
        ("apart", "--margin 0.3", 0, "not rejected"),
        ("apart", "--margin 0.1", 3, "rejected"),
        ("apart", "--ratio --at-least 0.7", 0, "not rejected"),
        ("apart", "--ratio --at-least 0.9", 3, "rejected"),
    ],
)
def test_a_gate_passes_where_something_is_shown(rows: str, options: str, status: int, outcome: str) -> None:
    words = ("permutation", "--predictions", f"{rows}.csv", *ASKED, *options.split())
    assert json_of(*words)["verdict"]["outcome"] == outcome
    assert run(*words, "--gate")[0] == status


def test_every_line_has_the_rows_and_events_that_its_metric_rests_on() -> None:
    made = documented("permutation", "--predictions", "few.csv", *ASKED, "--margin", "0.1")
    (entry,) = made.facts["results"]
    assert [(group["n"], group["events"]) for group in entry["groups"]] == [(6, 0), (5, 2)]
    assert "(2 of 5)" in " ".join(made.summary().split())
    assert made.to_frame()[["n_a", "events_a", "n_b", "events_b"]].to_numpy().tolist() == [[6, 0, 5, 2]]


def test_events_of_other_metrics_are_positives_or_none() -> None:
    rng = np.random.default_rng(0)
    y, group, person = rng.integers(0, 2, 400), np.repeat(["a", "b"], 200), np.arange(400) // 2
    call: dict[str, Any] = {"group": group, "draws": 199, "metric": ["auc", "mean_score", "tpr"], "threshold": 0.5}
    clustered: dict[str, Any] = {"cluster": person}
    for more in ({}, clustered):
        results = fa.permutation_test(y, rng.random(400), **call, **more).facts["results"]
        assert [group["events"] for group in results[0]["groups"]] == [y[:200].sum(), y[200:].sum()]
        assert [(group["n"], group["events"]) for group in results[1]["groups"]] == [(200, None)] * 2
        assert [group["n"] for group in results[2]["groups"]] == [y[:200].sum(), y[200:].sum()]


def test_a_call_has_the_bounds_of_the_command() -> None:
    rows = pd.read_csv("apart.csv")
    made = json_of("permutation", "--predictions", "apart.csv", *ASKED, "--ratio")
    result = fa.permutation_test(rows["y"], prediction=rows["d"], group=rows["g"], metric="tpr", ratio=True)
    assert result.facts["results"] == made["results"]
    found = made["results"][0]["bounds"]
    assert found["estimate"] == pytest.approx(7 / 9)
    assert found["interval"] == pytest.approx(score_interval(Rates(700, 1000, 900, 1000), 0.1, "ratio"))
    assert (found["comparison"], found["low"], found["high"]) == ("ratio", 0.8, 1.25)
    assert "90 %" in result.summary()
    result.save("out")
    assert "neither show nor rule out a ratio below 0.8" in Path("out/permutation.html").read_text()
    assert json.loads(Path("out/audit.json").read_text())["verdict"]["not_shown"] == 1


def test_all_shown_needs_no_correction_and_one_exceeded_has_one() -> None:
    """Of three groups two are alike and one is apart: shown is each at alpha, exceeded is corrected over all."""
    rows = decisions(a=(4500, 5000), b=(4510, 5000), c=(4200, 5000))
    call: dict[str, Any] = {"metric": "tpr", "margin": 0.03, "pairs": True}
    result = fa.permutation_test(rows["y"], prediction=rows["d"], group=rows["g"], **call)
    shown = {tuple(g["name"] for g in entry["groups"]): entry["bounds"] for entry in result.facts["results"]}
    assert {pair: entry["outcome"] for pair, entry in shown.items()} == {
        ("a", "b"): "shown", ("a", "c"): "exceeded", ("b", "c"): "exceeded",
    }  # fmt: skip
    for entry in shown.values():
        assert entry["adjusted_p_beyond"] >= entry["p_beyond"]
    assert shown["a", "c"]["adjusted_p_beyond"] == pytest.approx(2 * shown["a", "c"]["p_beyond"])
    assert result.outcome == "rejected"
    assert (result.verdict.facts["shown"], result.verdict.facts["exceeded"]) == (1, 2)


@pytest.mark.parametrize(("rows", "ruled_out"), [("apart", True), ("few", False)])
@pytest.mark.parametrize(
    ("options", "equality"), [({"margin": 0.2}, "A gap of zero"), ({"ratio": True}, "A ratio of 1")]
)
def test_a_bound_that_is_not_shown_does_not_hide_that_equality_is_rejected(
    rows: str, ruled_out: bool, options: dict[str, Any], equality: str
) -> None:
    frame = pd.read_csv(f"{rows}.csv")
    found = fa.permutation_test(frame["y"], prediction=frame["d"], group=frame["g"], metric="tpr", **options)
    assert found.facts["results"][0]["bounds"]["outcome"] == "not shown"
    assert (f"{equality} is ruled out (p" in found.verdict.sentence) == ruled_out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "the metric is equal in both groups"),
        ({"margin": 0.1}, "two nulls: the metric differs between the groups by at least 0.1, and it differs by less"),
        (
            {"ratio": True},
            "two nulls: the ratio of the rates is below 0.8, and it is at least 0.8 (lowest to highest)",
        ),
        (
            {"ratio": True, "reference": "f"},
            "two nulls: the ratio of the rates is below 0.8, and it is at least 0.8 (in one direction or the other)",
        ),
    ],
)
def test_the_null_hypothesis_is_the_one_that_is_tested(options: dict[str, Any], said: str) -> None:
    rows = pd.read_csv("apart.csv")
    found = fa.permutation_test(rows["y"], prediction=rows["d"], group=rows["g"], metric="tpr", **options)
    (facts,) = (part for part in found.sections[0].parts if isinstance(part, Facts))
    assert dict(facts.lines)["null"] == said


@pytest.mark.parametrize("groups", [("f", "m"), ("m", "f")])
@pytest.mark.parametrize("reference", [(), ("f",), ("m",)])
@pytest.mark.parametrize(
    "more", [{}, {"weight": np.ones(4000)}, {"cluster": np.arange(4000)}, {"method": "studentized"}]
)
def test_no_order_of_groups_passes_a_third(
    groups: tuple[str, str], reference: tuple[str, ...], more: dict[str, Any]
) -> None:
    """One group is selected a third as often: refuted whichever is first, and whichever is the reference."""
    rows = decisions(**dict(zip(groups, ((500, 2000), (1500, 2000)), strict=True)))
    call: dict[str, Any] = {"prediction": rows["d"], "group": rows["g"], "metric": "selection_rate", "ratio": True}
    found = fa.permutation_test(**call, **more, reference=reference, draws=999)
    ((low, high), estimate) = ((one := found.facts["results"][0]["bounds"])["interval"], one["estimate"])
    third = estimate == pytest.approx(1 / 3)
    assert third or (reference and estimate == pytest.approx(3))
    assert found.outcome == "rejected"
    assert low < estimate < high
    assert (one["low"], one["high"]) == (0.8, 1.25)
    assert one["order"] == ("first to second" if reference else "lowest to highest")


def test_the_lowest_rate_is_compared_with_the_highest_of_several_groups() -> None:
    """Each rate is within a fifth of the rate of the other groups together, and the lowest is 0.7 of the highest."""
    rows = decisions(a=(2100, 5000), b=(2550, 5000), c=(3000, 5000))
    call: dict[str, Any] = {"prediction": rows["d"], "group": rows["g"], "metric": "selection_rate", "ratio": True}
    found = fa.permutation_test(**call)
    assert min(one["bounds"]["estimate"] for one in found.facts["results"]) == pytest.approx(0.7)
    assert found.outcome == "rejected"


@pytest.mark.parametrize(("scale", "share"), [(1.0, 0.5), (1.0, 0.05), (3.0, 0.5)])
def test_the_studentised_ratio_agrees_with_the_score_test(scale: float, share: float) -> None:
    n = 4000
    rows = decisions(f=(round(0.8 * share * n), n), m=(round(share * n), n))
    call: dict[str, Any] = {"prediction": rows["d"], "group": rows["g"], "metric": "selection_rate", "ratio": True}
    weights: dict[str, Any] = {"weight": np.full(len(rows), scale), "draws": 20_000}
    exact, weighted = (fa.permutation_test(**one).facts["results"][0]["bounds"] for one in (call, {**call, **weights}))
    assert weighted["interval"] == pytest.approx(exact["interval"], rel=0.02)
    assert weighted["p_within"] == pytest.approx(exact["p_within"], abs=0.05)
    assert weighted["method"] == "studentized"


@pytest.mark.parametrize(
    "options",
    [
        {"margin": 0.1, "ratio": True},
        {"at_least": 0.8},
        {"metric": "f1", "ratio": True},
        {"margin": 0.1, "method": "unstudentized"},
        {"margin": 0.1, "metric": "f1", "resampling_risk": 0.01},
    ],
)
def test_what_does_not_fit_together_is_refused(options: dict[str, Any]) -> None:
    rows = pd.read_csv("apart.csv")
    with pytest.raises(InvalidInput):
        fa.permutation_test(rows["y"], prediction=rows["d"], group=rows["g"], **{"metric": "tpr", **options})
