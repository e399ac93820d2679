"""What a FlipTest of a user's model measures, from files to numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pipeline.cli.audit.fliptest import maps

Command = Callable[..., tuple[int, str, str]]
Flipped = Callable[..., dict[str, Any]]
Scripted = Callable[[torch.nn.Module, Path], None]
ONE = ("--features", "experience", "--predict", "models.py:experienced")
SMOOTH = ("--map", "wgan", "--map-setting", "steps=30", "--map-setting", "engine=torch")
WRITTEN = ("--output", "out")


def shifted(folder: Path, n: int = 60, by: float = 1.0) -> np.ndarray:
    """Women with scattered experience; men have the same and ``by`` more, in another order."""
    rng = np.random.default_rng(5)
    own = np.sort(rng.normal(1.0, 1.0, n))
    others = rng.permutation(own + by)
    pd.DataFrame(
        {
            "person": [f"w{i}" for i in range(n)] + [f"m{i}" for i in range(n)],
            "sex": ["female"] * n + ["male"] * n,
            "experience": np.concatenate([own, others]),
            "hired": np.arange(2 * n) % 2,
        }
    ).to_parquet(folder / "rows.parquet")
    return own


def test_a_shift_flips_whoever_it_carries_over_the_threshold(flipped: Flipped, office: Path) -> None:
    own = shifted(office)
    made = flipped(*ONE, "--standardize", "none", *WRITTEN)
    expected = (own >= 0.5) & (own < 1.5)
    (found,) = made["results"]
    assert found["flipsets"]["positive"]["size"] == 0
    assert found["flipsets"]["negative"]["size"] == expected.sum() > 0
    assert found["flipsets"]["negative"]["of"] == (own < 1.5).sum()
    assert found["positives"] == {
        "source": (own >= 1.5).sum(),
        "target": (own >= 0.5).sum(),
        "counterparts": (own >= 0.5).sum(),
    }
    assert found["net"]["size"] == -expected.sum()
    low, high = found["flipsets"]["negative"]["interval"]
    assert low <= expected.sum() <= high
    (line,) = found["transparency"]["negative"]
    assert line["mean_shift"] == pytest.approx(-1)
    assert line["mean_sign"] == -1
    # All women's counterparts have exactly one year more: certain, and no mark of those who flip.
    assert line["mean_shift_standing"] == line["mean_sign_standing"] == "as the whole group"
    # Nobody is in the positive flipset; few could be.
    low, high = found["flipsets"]["positive"]["interval"]
    assert (low, high) == (0, pytest.approx(len(own) * (1 - 0.025 ** (1 / len(own)))))
    assert found["map"]["distance"] == pytest.approx(1)
    assert found["map"]["worst_ks"] == 0
    table = pd.read_csv(office / "out" / "flipsets.csv")
    assert table["audit_row"].tolist() == np.flatnonzero(expected).tolist()
    assert table["audit_id"].tolist() == [f"w{i}" for i in np.flatnonzero(expected)]
    np.testing.assert_allclose(table["experience"], own[expected] + 1)
    everybody = pd.read_parquet(office / "rows.parquet")
    assert table["audit_counterpart_id"].tolist() == everybody["person"][table["audit_counterpart_row"]].tolist()
    assert table["experience"].tolist() == everybody["experience"][table["audit_counterpart_row"]].tolist()


def test_where_nobody_flips_no_noise_floor_is_needed_to_say_so(flipped: Flipped, office: Path) -> None:
    shifted(office, by=0.0)
    made = flipped(*ONE, "--standardize", "none", *WRITTEN, without=("--label",))
    assert made["results"][0]["flipsets"]["positive"]["size"] == made["results"][0]["flipsets"]["negative"]["size"] == 0
    assert (made["verdict"]["outcome"], made["verdict"]["beyond_noise"]) == ("not rejected", False)
    assert "<strong>Nobody flips.</strong>" in (office / "out" / "fliptest.html").read_text()


def test_the_accuracy_is_that_of_the_decisions_about_both_groups(flipped: Flipped, candidates: pd.DataFrame) -> None:
    people = candidates[candidates["sex"] != "unknown"]
    right = (people["experience"] >= 1.5) == people["hired"]
    asked = ("--predict", "models.py:experienced", "--positive", "1")
    made = flipped(*asked)
    assert made["accuracy"] == pytest.approx(right.mean())
    assert made["balanced_accuracy"] == pytest.approx(right.groupby(people["hired"]).mean().mean())
    made = flipped(*asked, "--positive", "0")
    assert made["accuracy"] == pytest.approx(1 - right.mean())
    made = flipped(*asked[:2], "--given-label", "1")
    assert made["accuracy"] == pytest.approx(right[people["hired"] == 1].mean())
    assert made["balanced_accuracy"] is None
    assert flipped(*asked[:2], "--features", "experience", without=("--label",))["accuracy"] is None


def test_the_net_size_is_the_difference_of_the_groups_rates(flipped: Flipped, office: Path) -> None:
    shifted(office, by=0.3)
    rows = pd.read_parquet(office / "rows.parquet").assign(tests=np.arange(120) % 7, region="north")
    rows.to_parquet(office / "rows.parquet")
    forward, reverse = flipped("--reverse")["results"]
    assert forward["net"]["size"] == forward["positives"]["source"] - forward["positives"]["target"]
    # Of as many people in both groups the exact map is a bijection, and its inverse is exact too.
    for here, there in (("positive", "negative"), ("negative", "positive")):
        assert forward["flipsets"][here]["size"] == reverse["flipsets"][there]["size"]
    assert (reverse["source"], reverse["target"]) == ("male", "female")


def test_the_audit_is_of_the_two_groups_alone(flipped: Flipped, candidates: pd.DataFrame, office: Path) -> None:
    everybody = flipped()
    assert everybody["data"]["left_out"] == {"of other groups": 10}
    candidates[candidates["sex"] != "unknown"].to_parquet(office / "rows.parquet")
    alone = flipped()
    assert alone["results"] == everybody["results"]


def test_a_true_label_restricts_both_groups(flipped: Flipped, candidates: pd.DataFrame) -> None:
    (found,) = flipped("--given-label", "1")["results"]
    taken = candidates[candidates["hired"] == 1]
    counts, score = taken["sex"].value_counts(), taken["experience"] + 0.8 * taken["tests"] - 1
    positive = (score + 0.5 * (taken["region"] == "north") >= 0).groupby(taken["sex"]).sum()
    assert (found["n_source"], found["n_target"]) == (counts["female"], counts["male"])
    assert (found["positives"]["source"], found["positives"]["target"]) == (positive["female"], positive["male"])


@pytest.mark.parametrize("settings", [("--map", "exact"), SMOOTH])
def test_a_row_of_flipsets_can_be_given_to_the_model_again(
    flipped: Flipped, candidates: pd.DataFrame, settings: tuple[str, ...]
) -> None:
    made = flipped(*settings, "--reverse", "--threshold", "0.6", *WRITTEN)
    table = pd.read_csv("out/flipsets.csv")
    assert len(table) == sum(entry["size"] for found in made["results"] for entry in found["flipsets"].values()) > 0

    def score(rows: pd.DataFrame) -> np.ndarray:
        logit = rows["experience"] + 0.8 * rows["tests"] + 0.5 * (rows["region"] == "north") - 1
        return np.asarray(1 / (1 + np.exp(-logit)))

    people = candidates.loc[table["audit_row"]]
    np.testing.assert_allclose(table["audit_score"], score(people), rtol=1e-12)
    np.testing.assert_allclose(table["audit_counterpart_score"], score(table), rtol=1e-9)
    np.testing.assert_array_equal(table["audit_decision"], score(people) >= 0.6)
    np.testing.assert_array_equal(table["audit_counterpart_decision"], table["audit_counterpart_score"] >= 0.6)
    assert (table["audit_decision"] != table["audit_counterpart_decision"]).all()
    assert ((table["audit_flipset"] == "positive") == (table["audit_decision"] == 1)).all()
    assert people["person"].tolist() == table["audit_id"].tolist()
    assert people["sex"].tolist() == table["audit_group"].tolist()
    real = settings == ("--map", "exact")
    assert table["audit_counterpart_row"].notna().all() == real
    assert set(table["region"]) <= {"north", "south", "west"}
    assert (table["tests"] == table["tests"].round()).all()
    assert [found["map"]["real_people"] for found in made["results"]] == [real, real]
    check_lines(made, pd.read_csv("out/transparency.csv"))


def check_lines(made: dict[str, Any], table: pd.DataFrame) -> None:
    """Every line of the reports stands in the table, in the order of its rank."""
    assert len(table) == 2 * 2 * len(made["data"]["columns"])
    for (direction, flipset), part in table.groupby(["direction", "flipset"]):
        (found,) = (entry for entry in made["results"] if entry["direction"] == direction)
        assert part["feature"].tolist() == [line["feature"] for line in found["transparency"][flipset]]
        assert (part["members"] == found["flipsets"][flipset]["size"]).all()
        if part["members"].iloc[0]:
            assert part["mean_shift"].abs().is_monotonic_decreasing
            assert part["rank_mean"].iloc[0] == 1


def test_a_model_that_looks_at_the_group_itself_flips_everybody(flipped: Flipped) -> None:
    made = flipped("--predict", "models.py:by_sex", "--include-group", "--null-draws", "5")
    (found,) = made["results"]
    assert found["flipsets"]["negative"]["share"] == 1
    assert made["data"]["unmoved"] == ["sex"]
    # Between dealt groups the group's name is held, so all of it is the model's doing.
    assert found["noise"]["either"]["range"] == [0, 0]
    assert found["noise"]["p_either"] == pytest.approx(1 / 6)
    assert found["noise"]["p_either_adjusted"] == pytest.approx(2 / 6)
    lines = {line["feature"]: line for line in found["transparency"]["negative"]}
    assert lines["sex=male"]["mean_shift"] == -1
    assert lines["sex=male"]["rank_mean"] is None
    assert lines["sex=male"]["mean_shift_standing"] is None
    assert any("Each group has a single value in sex" in text for text in made["caveats"])


def test_the_noise_floor_tells_groups_that_differ_from_groups_that_are_alike(flipped: Flipped, office: Path) -> None:
    rng = np.random.default_rng(8)
    for gap, beyond in ((2.0, True), (0.0, False)):
        sex = np.array(["female", "male"])[np.arange(120) % 2]
        rows = pd.DataFrame({"sex": sex, "experience": rng.normal(1, 1, 120) + gap * (sex == "male"), "hired": 0})
        rows.assign(person=range(120)).to_parquet(office / "rows.parquet")
        made = flipped(*ONE, "--null-draws", "39")
        assert made["verdict"]["beyond_noise"] == beyond
        floor = made["results"][0]["noise"]
        assert floor["draws"] == 39
        low, high = floor["either"]["range"]
        assert low <= floor["either"]["mean"] <= high
        assert ("is not shown to be more than noise" in made["verdict"]["sentence"]) != beyond


def test_standardised_maps_do_not_depend_on_the_units_of_the_columns(
    flipped: Flipped, office: Path, candidates: pd.DataFrame
) -> None:
    asked = ("--features", "experience,tests", "--threshold", "1.5")
    (office / "units.py").write_text(
        "def here(frame): return frame['experience']\ndef there(frame): return (frame['experience'] - 7) / 1000\n"
    )
    here = flipped(*asked, "--predict", "units.py:here")
    candidates.assign(experience=7 + 1000 * candidates["experience"]).to_parquet(office / "rows.parquet")
    there = flipped(*asked, "--predict", "units.py:there")
    for made in (here, there):
        for found in made["results"]:
            for line in (line for report in found["transparency"].values() for line in report):
                del line["feature"], line["unit"], line["members_mean"]
    (one,), (other,) = here["results"], there["results"]
    assert one["flipsets"] == other["flipsets"]
    lines, others = (found["transparency"]["negative"][0] for found in (one, other))
    for kind in ("mean_shift_standing", "mean_sign_standing"):
        assert lines.pop(kind) == others.pop(kind)
    assert lines == pytest.approx(others, rel=1e-9)
    plain = flipped(*asked, "--predict", "units.py:there", "--standardize", "none")
    assert plain["results"][0]["map"]["distance"] > 100 * other["map"]["distance"]


def test_csv_and_parquet_give_the_same_audit(flipped: Flipped) -> None:
    first, second = (flipped("--data", name) for name in ("rows.csv", "rows.parquet"))
    for made in (first, second):
        del made["data"]["path"], made["data"]["sha256"]
    assert first == second


def test_a_network_and_a_function_of_the_same_formula_agree(
    flipped: Flipped, office: Path, save_scripted: Scripted
) -> None:
    network = torch.nn.Linear(2, 1)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[1.0, 0.5]]))
        network.bias.fill_(-1.5)
    save_scripted(network, office / "net.pt")
    (office / "own.py").write_text("def f(frame): return frame['experience'] + 0.5 * frame['tests'] - 1.5\n")
    asked = ("--features", "experience,tests", "--threshold", "0")
    assert flipped("--predict", "net.pt", *asked)["results"] == flipped("--predict", "own.py:f", *asked)["results"]


def test_a_limit_draws_people_by_the_seed(flipped: Flipped, candidates: pd.DataFrame) -> None:
    one, again, other = (flipped("--limit", "30", "--seed", seed) for seed in ("1", "1", "2"))
    assert one == again
    assert one["results"] != other["results"]
    assert one["results"][0]["n_source"] == one["results"][0]["n_target"] == 30
    assert one["data"]["left_out"] == {"of other groups": 10, "beyond the limit": len(candidates) - 10 - 60}


def test_the_other_direction_and_the_deals_change_nothing_in_this_one(flipped: Flipped) -> None:
    alone = flipped()["results"][0]
    both = flipped("--reverse", "--null-draws", "3")["results"][0]
    assert {**both, "noise": None, "sentence": alone["sentence"]} == alone


def test_numbers_can_be_codes_of_categories(flipped: Flipped) -> None:
    made = flipped("--categorical", "tests")
    assert made["data"]["columns"][1:5] == ["tests=0", "tests=1", "tests=2", "tests=3"]
    assert made["data"]["standardized"] == ["experience"]
    assert {line["feature"] for line in made["results"][0]["transparency"]["negative"]} == set(made["data"]["columns"])


def test_the_first_map_that_is_sound_on_people_held_out_is_taken(
    flipped: Flipped, office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = flipped("--map", "auto")
    assert (made["map"]["name"], made["map"]["poor"]) == ("entropic", [])
    held = made["map"]["held_out"]["entropic"]
    assert 0 < held["ks"] <= held["limit"]
    assert not made["results"][0]["map"]["real_people"]
    monkeypatch.setattr("pipeline.cli.audit.fliptest.maps.AUTO", ("wgan", "exact"))  # untrained after a step: poor
    settings = office / "conf"
    settings.mkdir()
    for path in maps.CONF.glob("*.yaml"):
        text = path.read_text().replace("steps: 20001", "steps: 1").replace("engine: auto", "engine: torch")
        (settings / path.name).write_text(text)
    monkeypatch.setattr("pipeline.cli.audit.fliptest.maps.CONF", settings)
    made = flipped("--map", "auto")
    assert (made["map"]["name"], made["map"]["poor"]) == ("exact", ["wgan"])
    assert made["verdict"]["healthy_map"]
    held = made["map"]["held_out"]
    assert held["wgan"]["ks"] > held["wgan"]["limit"] == held["exact"]["limit"] >= held["exact"]["ks"]
    # Where none is sound, nothing follows from the best of them.
    monkeypatch.setattr("pipeline.cli.audit.fliptest.evidence.chance_ks", lambda *_: 0.0)
    monkeypatch.setattr("pipeline.cli.audit.fliptest.evidence.WORST_HEALTHY_KS", 1e-3)
    made = flipped("--map", "auto")
    assert (made["map"]["name"], made["verdict"]["outcome"]) == ("exact", "inconclusive")
    assert "the best of wgan, exact has" in made["verdict"]["reason"]


def test_missing_values_reach_a_model_that_takes_them(flipped: Flipped, office: Path, candidates: pd.DataFrame) -> None:
    place = np.arange(len(candidates))
    rows = candidates.assign(
        tests=candidates["tests"].where(place % 4 > 0),
        region=candidates["region"].where(place % 5 > 0),
        member=np.where(place % 3 == 0, np.nan, place % 2),
    )
    rows.to_parquet(office / "rows.parquet")
    rule = "def known(frame): return frame['tests'].notna() & frame['region'].notna() & frame['member'].notna()\n"
    (office / "gappy.py").write_text(rule)
    for asked in (("--map", "exact"), ("--map", "entropic")):
        made = flipped("--predict", "gappy.py:known", *asked, *WRITTEN)
        assert made["data"]["features"] == ["experience", "tests", "region", "member"]
        assert {"tests is missing", "region=missing", "member=missing"} <= set(made["data"]["columns"])
        (found,) = made["results"]
        people = rows[rows["sex"] == "female"]
        known = people[["tests", "region", "member"]].notna().all(axis=1)
        assert found["positives"]["source"] == known.sum()
        table = pd.read_csv("out/flipsets.csv")
        decided = table[["tests", "region", "member"]].notna().all(axis=1)
        np.testing.assert_array_equal(decided, table["audit_counterpart_decision"])
        assert any("Values are missing in region, member, tests" in text for text in made["caveats"])
