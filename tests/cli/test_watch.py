"""The watch over time, by call and by command: one state, refusals, and what it says."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairness_audits as fa
from fairness_audits.audits.watch.state import place_of
from tests.cli.places import ended
from tests.errors import invalid

FIRST: dict[str, Any] = {"metric": "selection_rate", "state": "watch.json"}


def week(number: int, women: float = 0.3, men: float = 0.6, people: int = 400) -> pd.DataFrame:
    """Return a batch of people: a tenth more or fewer are selected in each week."""
    rng = np.random.default_rng(number)
    sex = rng.choice(["f", "m"], people, p=[0.4, 0.6])
    decision = (rng.random(people) < np.where(sex == "f", women, men)).astype(int)
    return pd.DataFrame({"sex": sex, "d": decision, "y": rng.integers(0, 2, people)})


def add(rows: pd.DataFrame, batch: str, **options: Any) -> fa.Result:
    return fa.watch(prediction=rows["d"], group=rows["sex"], batch=batch, **{**FIRST, **options})


def words(batch: str, *more: str) -> list[str]:
    columns = ["--prediction", "d", "--group", "sex", "--metric", "selection_rate"]
    given = ["watch", "--state", "watch.json", "--batch", batch, "--predictions", f"{batch}.csv"]
    return [*given, *columns, *more]


@pytest.mark.usefixtures("here")
def test_the_command_is_the_call_and_the_state_says_it_again() -> None:
    for number in (1, 2, 3):
        rows = week(number)
        rows.to_csv(f"{number}.csv", index=False)
        called = add(rows, str(number), state="called.json")
        assert ended(words(str(number), "--json", "made.json", "--gate"))[0] == 3
        assert json.loads(Path("made.json").read_text())["results"] == called.facts["results"]
    first = json.loads(Path("called.json").read_text())
    second = json.loads(Path("watch.json").read_text())
    for one in (*first["batches"], *second["batches"]):
        one.pop("sha256")
    assert first == second
    before = Path("called.json").read_bytes()
    shown = fa.watch(state="called.json")
    assert shown.facts == called.facts
    assert Path("called.json").read_bytes() == before
    assert shown.outcome == "rejected"
    people = pd.concat([week(number) for number in (1, 2, 3)])
    entry = shown.facts["results"][0]
    for group in entry["groups"]:
        own = people[people["sex"] == group["name"]]
        assert (group["n"], group["events"]) == (len(own), own["d"].sum())
        assert group["rate"] == pytest.approx(own["d"].mean(), abs=0.01)
        assert group["sequence"][0] < group["rate"] < group["sequence"][1]
    rates = [group["rate"] for group in entry["groups"]]
    assert entry["difference"] == pytest.approx(rates[0] - rates[1])
    assert entry["since"] in ("1", "2")


@pytest.mark.usefixtures("here")
def test_the_sentence_can_be_quoted_to_the_last_digit() -> None:
    """Rates of .25 and .75 in two batches that are alike."""
    rows = pd.DataFrame({"sex": ["women"] * 400 + ["men"] * 400, "d": [1, 0, 0, 0] * 100 + [1, 1, 1, 0] * 100})
    add(rows, "2026-01-05")
    result = add(rows.iloc[::-1].reset_index(drop=True), "2026-01-12")
    sentence = result.verdict.sentence
    assert sentence.startswith(
        "After 2 batches (1,600 people), the selection rate is 25.0 % for women and 75.0 % for men: a difference of "
        "50.0 points (95 % confidence sequence "
    )
    low, high = map(float, re.findall(r"sequence ([\d.]+) to ([\d.]+)\)", sentence)[0])
    assert low + high == pytest.approx(100, abs=0.11)
    assert "This holds at whatever time one looks." in sentence
    assert (low, high) == tuple(round(-100 * end, 1) for end in result.facts["results"][0]["sequence"][::-1]) or (
        (low, high) == tuple(round(100 * end, 1) for end in result.facts["results"][0]["sequence"])
    )


@pytest.mark.usefixtures("here")
def test_a_watch_that_resumes_leaves_the_bytes_of_one_that_does_not() -> None:
    """Options that the state has may be left out, and a margin may come later."""
    for number in range(1, 6):
        rows = week(number)
        options = FIRST if number == 1 else {"state": "watch.json", "margin": 0.2}
        fa.watch(prediction=rows["d"], group=rows["sex"], batch=f"week {number}", **options)
        add(rows, f"week {number}", state="other.json")
    assert Path("watch.json").read_bytes() == Path("other.json").read_bytes()
    one, other = fa.watch(state="watch.json", margin=0.2), fa.watch(state="other.json", margin=0.2)
    one.save("one")
    other.save("other")
    for name in ("comparisons.csv", "batches.csv", "sequence.png"):
        assert Path("one", name).read_bytes() == Path("other", name).read_bytes()
    sequence = one.to_frame("batches")
    assert list(sequence["batch"]) == [f"week {number}" for number in range(1, 6)]
    first = add(week(1), "week 1", state="first.json").to_frame("batches")
    pd.testing.assert_frame_equal(first, sequence[:1])


@pytest.mark.usefixtures("here")
def test_the_date_under_a_margin_is_that_of_its_verdict() -> None:
    """A gap of zero is ruled out long before a gap above 0.3 is."""
    said = [add(week(number, 0.2, 0.8, 200), str(number), margin=0.3) for number in range(1, 9)]
    outcomes = [result.facts["results"][0]["margin"] for result in said]
    assert (outcomes[0], outcomes[-1]) == ("cannot tell", "beyond the margin")
    entry = said[-1].facts["results"][0]
    assert entry["since"] == str(1 + outcomes.index("beyond the margin"))
    assert said[0].facts["results"][0]["since"] is None
    assert "a gap of zero is ruled out" in said[outcomes.index("beyond the margin") - 1].verdict.sentence


@pytest.mark.usefixtures("here")
def test_what_was_shown_once_stays_shown() -> None:
    add(week(1, 0.1, 0.9), "1")
    for number in range(2, 6):
        result = add(week(number, 0.9, 0.1, 200), str(number))
    entry = result.facts["results"][0]
    assert (entry["shown"], entry["since"]) == (True, "1")
    assert entry["e_value"] < entry["adjusted_e_value"]
    assert result.to_frame("batches")["adjusted_e_value"].is_monotonic_increasing


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("women", "margin", "outcome", "told"),
    [
        (0.6, None, "not rejected", None),
        (0.6, 0.2, "not rejected", "within the margin"),
        (0.1, 0.2, "rejected", "beyond the margin"),
        (0.4, 0.2, "inconclusive", "cannot tell"),
        (0.1, None, "rejected", None),
    ],
)
def test_the_outcome_follows_from_the_evidence_or_from_the_margin(
    women: float, margin: float | None, outcome: str, told: str | None
) -> None:
    for number in range(3):
        result = add(week(number, women, people=2000), str(number), margin=margin)
    assert (result.outcome, result.facts["results"][0]["margin"]) == (outcome, told)


@pytest.mark.usefixtures("here")
def test_few_rows_tell_nothing_yet() -> None:
    result = add(week(1, 0.6, people=40), "1")
    assert result.outcome == "inconclusive"
    assert result.verdict.reason is not None
    # No positives in one group: the rate does not exist.
    rows = week(1).assign(y=lambda frame: (frame["sex"] == "f").astype(int))
    lacking = fa.watch(rows["y"], prediction=rows["d"], group=rows["sex"], batch="1", metric="tpr", state="tpr.json")
    assert (lacking.outcome, lacking.facts["results"][0]["difference"]) == ("inconclusive", None)
    lacking.save("page")


@pytest.mark.usefixtures("here")
def test_several_groups_and_metrics_share_one_error() -> None:
    rng = np.random.default_rng(0)
    for number in range(4):
        rows = week(number, people=3000).assign(sex=rng.choice(["a", "b", "c"], 3000), d=lambda frame: frame["y"])
        rows.loc[(rows["sex"] == "a") & (rng.random(3000) < 0.5), "d"] = 0
        options: dict[str, Any] = {"metric": ["equalized_odds", "selection_rate"], "state": "watch.json"}
        result = fa.watch(rows["y"], prediction=rows["d"], group=rows["sex"], batch=str(number), **options)
    entries = result.facts["results"]
    assert len(entries) == 9
    assert [(one["metric"], one["groups"][0]["name"]) for one in entries[:1]] == [("tpr", "a")]
    # Nobody with class 0 is selected, so the false positive rates are alike.
    assert {one["shown"] for one in entries if one["metric"] == "fpr"} == {False}
    assert all(one["adjusted_e_value"] <= max(one["e_value"], 1e299) for one in entries)


@pytest.mark.usefixtures("here")
def test_a_group_may_be_absent_from_a_batch_but_not_new() -> None:
    rows = week(1).assign(sex=lambda frame: np.where(frame.index % 3 == 0, "x", frame["sex"]))
    add(rows, "1")
    add(week(2), "2")
    before = Path("watch.json").read_bytes()
    with invalid(option="group", column="sex"):
        add(week(3).replace({"sex": {"m": "z"}}), "3")
    with pytest.raises(fa.InvalidInput, match="'sex': z"):
        add(week(3).replace({"sex": {"m": "z"}}), "3")
    assert Path("watch.json").read_bytes() == before
    counts = json.loads(before)["batches"][1]["counts"]["sex"]
    assert counts[2] == [[0, 0], [0, 0]]


@pytest.mark.usefixtures("here")
def test_a_batch_that_does_not_fit_is_refused_and_leaves_the_state_as_it_is() -> None:
    add(week(8), "week 8")
    add(week(9), "week 9")
    before = Path("watch.json").read_bytes()
    for batch, rows in (("week 9", week(1)), ("week 10", week(9)), ("week 7", week(1))):
        with invalid(option="batch"):
            add(rows, batch)
    for options in (
        {"alpha": 0.01},
        {"metric": "accuracy"},
        {"metric": ["selection_rate", "tpr"]},
        {"positive": "1"},
        {"threshold": 0.5},
    ):
        with invalid(option=next(iter(options)), source="watch.json"):
            add(week(10), "week 10", **options)
    with invalid(option="y", source="watch.json"):
        fa.watch(week(10)["y"], prediction=week(10)["d"], group=week(10)["sex"], state="watch.json", batch="week 10")
    with invalid(option="group", source="watch.json"):
        rows = week(10).rename(columns={"sex": "gender"})
        fa.watch(prediction=rows["d"], group=rows["gender"], state="watch.json", batch="week 10")
    with invalid(option="batch"):
        fa.watch(prediction=week(10)["d"], group=week(10)["sex"], state="watch.json")
    with invalid(option="batch"):
        fa.watch(state="watch.json", batch="week 10")
    assert Path("watch.json").read_bytes() == before
    add(week(10), "week 10")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"metric": "auc"}, "y"),
        ({"metric": "f1"}, "y"),
        ({"metric": "tpr"}, "y"),
        ({"metric": "nothing"}, "metric"),
        ({"metric": ()}, "metric"),
        ({"metric": "correlation"}, "attribute"),
        ({"margin": 1.5}, "margin"),
        ({"alpha": 2}, "alpha"),
    ],
)
def test_a_watch_begins_with_rates_of_groups(options: dict[str, Any], option: str) -> None:
    with invalid(option=option):
        add(week(1), "1", **options)
    assert not Path("watch.json").exists()
    with invalid(option="group"):
        fa.watch(prediction=week(1)["d"], batch="1", **FIRST)
    rows = week(1)
    with invalid(option="metric"):
        fa.watch(rows["y"], prediction=rows["d"], group=rows["sex"], batch="1", metric="f1", state="watch.json")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("nothing", "state"),
        ("[1]", "state"),
        ('{"schema": 2}', "state"),
        ('{"schema": 1}', "options"),
        ('{"schema": 1, "options": {}, "groups": {}, "batches": []}', "state"),
        ('{"schema": 1, "options": {}, "groups": {}, "batches": [{"batch": "1"}]}', "sha256"),
    ],
)
def test_a_file_that_is_no_state_is_refused(text: str, option: str) -> None:
    Path("watch.json").write_text(text)
    with invalid(option=option, source="watch.json"):
        add(week(1), "1")
    assert Path("watch.json").read_text() == text


@pytest.mark.usefixtures("here")
def test_a_state_without_the_counts_of_a_group_is_damaged() -> None:
    add(week(1), "1")
    content = json.loads(Path("watch.json").read_text())
    content["batches"][0]["counts"]["sex"].pop()
    Path("watch.json").write_text(json.dumps(content))
    with invalid(option="state", source="watch.json"):
        fa.watch(state="watch.json")
    with invalid(option="metric", source="absent.json"):
        fa.watch(state="absent.json")
    show = ["watch", "--state", "absent.json", "--group", "sex", "--metric", "selection_rate"]
    status, _, err = ended(show)
    assert (status, "absent.json" in err) == (2, True)


@pytest.mark.usefixtures("here")
def test_the_state_is_written_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    add(week(1), "1")
    before = Path("watch.json").read_bytes()

    def failing(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", failing)
        with pytest.raises(OSError, match="disk full"):
            add(week(2), "2")
    assert Path("watch.json").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["watch.json"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.usefixtures("here")
def test_two_batches_at_once_do_not_lose_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairness_audits.audits.watch import result

    add(week(1), "1")
    counted = result._counted

    def slow(*given: Any) -> Any:
        monkeypatch.setattr(result, "_counted", counted)
        add(week(2), "2")
        return counted(*given)

    monkeypatch.setattr(result, "_counted", slow)
    with invalid(option="state", source="watch.json"):
        add(week(3), "3")
    assert [one["batch"] for one in json.loads(Path("watch.json").read_text())["batches"]] == ["1", "2"]


@pytest.mark.usefixtures("here")
def test_no_output_replaces_the_state_and_the_state_replaces_no_rows() -> None:
    week(1).to_csv("1.csv", index=False)
    for more in (["--json", "watch.json"], ["--state", "1.csv"], ["--state", "out/audit.json", "--output", "out"]):
        status, _, err = ended(words("1", *more))
        assert (status, "would replace" in " ".join(err.split())) == (2, True), more
    assert [path.name for path in Path().iterdir()] == ["1.csv"]


def test_numbers_in_the_names_of_batches_sort_by_size() -> None:
    names = ["2025-12-29", "2026-01-05", "2026-01-12"], ["week 9", "week 10"], ["9", "10", "100"], ["1.2", "1.10"]
    for ordered in names:
        backwards = list(reversed(ordered))
        assert sorted(backwards, key=place_of) == ordered
    assert place_of("") < place_of("a")
