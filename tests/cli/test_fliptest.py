"""What a FlipTest of a user's model measures, from files to numbers."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairness_audits as fa
from fairness_audits.arguments import Given
from fairness_audits.audits.fliptest import maps
from fairness_audits.audits.fliptest.compute import as_source, counterparts, null_of, places
from fairness_audits.audits.fliptest.decisions import positive_decision
from fairness_audits.audits.fliptest.flipsets import RandomSplit
from fairness_audits.audits.fliptest.maps import SETTINGS, candidates, fewest_draws, map_named, repeats
from fairness_audits.audits.fliptest.people import Group, Groups, space_of
from fairness_audits.audits.fliptest.space import Space
from fairness_audits.inputs.model import Model
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import predictor
from fairness_audits.inputs.table import Source
from tests.cli.places import CANDIDATES, json_of, undrawn
from tests.errors import invalid

pytestmark = pytest.mark.usefixtures("office")
flipped, written = partial(json_of, "fliptest"), partial(undrawn, "fliptest")

ONE = ("--features", "experience", "--predict", "models.py:experienced")
SMOOTH = ("--map", "wgan", "--map-setting", "steps=30")


def shifted(n: int = 60, by: float = 1.0) -> np.ndarray:
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
    ).to_parquet("rows.parquet")
    return own


def test_a_shift_flips_whoever_it_carries_over_the_threshold() -> None:
    own = shifted()
    made = written(*ONE, "--standardize", "none")
    expected = (own >= 0.5) & (own < 1.5)
    (found,) = made["results"]
    assert found["flipsets"]["positive"]["size"] == 0
    assert found["flipsets"]["negative"]["size"] == expected.sum() > 0
    assert found["flipsets"]["negative"]["of"] == (own < 1.5).sum()
    there = (own >= 0.5).sum()
    assert found["positives"] == {"source": (own >= 1.5).sum(), "target": there, "counterparts": there}
    assert found["net"]["size"] == -expected.sum()
    low, high = found["flipsets"]["negative"]["interval"]
    assert low <= expected.sum() <= high
    (line,) = found["transparency"]["negative"]
    assert line["mean_shift"] == pytest.approx(-1)
    assert line["mean_sign"] == -1
    # All women's counterparts have exactly one year more: certain, though no mark of those who flip.
    assert line["mean_shift_standing"] == line["mean_sign_standing"] == "stands out"
    # Nobody is in the positive flipset; few could be.
    low, high = found["flipsets"]["positive"]["interval"]
    assert (low, high) == (0, pytest.approx(len(own) * (1 - 0.025 ** (1 / len(own)))))
    assert found["map"]["distance"] == pytest.approx(1)
    assert found["map"]["worst_ks"] == 0
    table = pd.read_csv("out/flipsets.csv")
    assert table["audit_row"].tolist() == np.flatnonzero(expected).tolist()
    assert table["audit_id"].tolist() == [f"w{i}" for i in np.flatnonzero(expected)]
    np.testing.assert_allclose(table["experience"], own[expected] + 1)
    everybody = pd.read_parquet("rows.parquet")
    assert table["audit_counterpart_id"].tolist() == everybody["person"][table["audit_counterpart_row"]].tolist()
    np.testing.assert_allclose(table["experience"], everybody["experience"][table["audit_counterpart_row"]], rtol=1e-15)


def test_where_nobody_flips_no_noise_floor_is_needed_to_say_so() -> None:
    shifted(by=0.0)
    made = written(*ONE, "--standardize", "none", "no--label")
    assert made["results"][0]["flipsets"]["positive"]["size"] == made["results"][0]["flipsets"]["negative"]["size"] == 0
    assert (made["verdict"]["outcome"], made["verdict"]["beyond_noise"]) == ("not rejected", False)
    assert "<strong>No difference is shown.</strong>" in Path("out/fliptest.html").read_text()


def test_the_accuracy_is_that_of_the_decisions_about_both_groups() -> None:
    people = CANDIDATES[CANDIDATES["sex"] != "unknown"]
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
    assert flipped(*asked[:2], "--features", "experience", "no--label")["accuracy"] is None


def test_the_net_size_is_the_difference_of_the_groups_rates() -> None:
    shifted(by=0.3)
    rows = pd.read_parquet("rows.parquet").assign(tests=np.arange(120) % 7, region="north")
    rows.to_parquet("rows.parquet")
    forward, reverse = flipped("--reverse")["results"]
    assert forward["net"]["size"] == forward["positives"]["source"] - forward["positives"]["target"]
    # Of as many people in both groups the exact map is a bijection, and its inverse is exact too.
    for here, there in (("positive", "negative"), ("negative", "positive")):
        assert forward["flipsets"][here]["size"] == reverse["flipsets"][there]["size"]
    assert (reverse["source"], reverse["target"]) == ("male", "female")


def test_the_audit_is_of_the_two_groups_alone() -> None:
    everybody = flipped()
    assert everybody["data"]["left_out"] == {"of other groups": 10}
    CANDIDATES[CANDIDATES["sex"] != "unknown"].to_parquet("rows.parquet")
    alone = flipped()
    assert alone["results"] == everybody["results"]


def test_a_true_label_restricts_both_groups() -> None:
    (found,) = flipped("--given-label", "1")["results"]
    taken = CANDIDATES[CANDIDATES["hired"] == 1]
    counts, score = taken["sex"].value_counts(), taken["experience"] + 0.8 * taken["tests"] - 1
    positive = (score + 0.5 * (taken["region"] == "north") >= 0).groupby(taken["sex"]).sum()
    assert (found["n_source"], found["n_target"]) == (counts["female"], counts["male"])
    assert (found["positives"]["source"], found["positives"]["target"]) == (positive["female"], positive["male"])


@pytest.mark.parametrize("settings", [("--map", "exact"), SMOOTH])
def test_a_row_of_flipsets_can_be_given_to_the_model(settings: tuple[str, ...]) -> None:
    made = written(*settings, "--reverse", "--threshold", "0.6")
    table = pd.read_csv("out/flipsets.csv")
    assert len(table) == sum(entry["size"] for found in made["results"] for entry in found["flipsets"].values()) > 0

    def score(rows: pd.DataFrame) -> np.ndarray:
        logit = rows["experience"] + 0.8 * rows["tests"] + 0.5 * (rows["region"] == "north") - 1
        return np.asarray(1 / (1 + np.exp(-logit)))

    people = CANDIDATES.loc[table["audit_row"]]
    np.testing.assert_allclose(table["audit_score"], score(people), rtol=1e-12)
    np.testing.assert_allclose(table["audit_counterpart_score"], score(table), rtol=1e-9)
    np.testing.assert_array_equal(table["audit_decision"], score(people) >= 0.6)
    np.testing.assert_array_equal(table["audit_counterpart_decision"], table["audit_counterpart_score"] >= 0.6)
    assert (table["audit_decision"] != table["audit_counterpart_decision"]).all()
    assert ((table["audit_flipset"] == "positive") == (table["audit_decision"] == 1)).all()
    assert people["person"].tolist() == table["audit_id"].tolist()
    values: dict[str, Any] = dict.fromkeys(("check_index", "check_names", "check_dtype"), False)
    for name in ("experience", "tests", "region"):
        # pandas 2.2 reads a CSV to the last digit but one.
        pd.testing.assert_series_equal(table[f"audit_own_{name}"], people[name], **values, rtol=1e-15)
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


def test_a_model_that_looks_at_the_group_itself_flips_everybody() -> None:
    made = flipped("--predict", "models.py:by_sex", "--include-group", "--null-draws", "5")
    (found,) = made["results"]
    assert found["flipsets"]["negative"]["share"] == 1
    assert made["data"]["unmoved"] == ["sex"]
    assert found["attribute_alone"] == {"columns": ["sex"], "positive": 0, "negative": found["n_source"]}
    # Between dealt groups the group's name is held, so all of it is the model's doing.
    assert found["noise"]["either"]["range"] == [0, 0]
    assert found["noise"]["p_either"] == pytest.approx(1 / 6)
    assert found["noise"]["p_either_adjusted"] == pytest.approx(2 / 6)
    lines = {line["feature"]: line for line in found["transparency"]["negative"]}
    assert lines["sex=male"]["mean_shift"] == -1
    assert lines["sex=male"]["rank_mean"] is None
    assert lines["sex=male"]["mean_shift_standing"] is None
    assert any("Each group has a single value in sex" in text for text in made["caveats"])


def test_a_flip_that_is_certain_holds_and_one_by_chance_does_not() -> None:
    made = written("--predict", "models.py:by_sex", "--include-group", "--refits", "4", "--reverse")
    assert [caveat for caveat in made["caveats"] if "Changing only" in caveat]
    for found, flipset in zip(made["results"], ("negative", "positive"), strict=True):
        held = found["refits"]
        assert held["held"][flipset] == held["ever"][flipset] == sum(held["held"].values()) == found["n_source"]
        assert (held["maps"], held["needed"], held["range"][flipset]) == (4, 4, [found["n_source"]] * 2)
    people = pd.read_csv("out/people.csv")
    assert (people["share"] == 1).all()
    assert people["holds"].all()
    assert len(people) == sum(found["n_source"] for found in made["results"])
    men = people["direction"] == "reverse"
    assert people["counterparts_positive"].tolist() == (4 * ~men).tolist()
    Path("coin.py").write_text("def coin(frame): return (frame['experience'] * 1e6).round() % 2\n")
    rows = pd.read_parquet("rows.parquet")
    rng = np.random.default_rng(3)
    rows.assign(experience=rng.normal(size=len(rows))).to_parquet("rows.parquet")
    asked = ("--predict", "coin.py:coin", "--features", "experience", "--map", "entropic", "--refits", "20")
    (found,) = flipped(*asked, "--held-share", "0.9")["results"]
    sizes, held, n = found["flipsets"], found["refits"], found["n_source"]
    # Every map flips about half, and of 20 at least 18 with probability .0002.
    assert 0.25 * n < sizes["positive"]["size"] + sizes["negative"]["size"] < 0.75 * n
    assert sum(held["held"].values()) <= 1
    assert sum(held["ever"].values()) == n
    assert found["attribute_alone"] == {"columns": [], "positive": 0, "negative": 0}


def test_the_order_of_columns_and_rows_changes_nothing() -> None:
    asked = ("--map", "entropic", "--null-draws", "3", "--refits", "3", "--limit", "60", "--predict", "models.py:named")
    with Path("models.py").open("a") as file:
        file.write("def named(frame): return 1 / (1 + np.exp(1 - frame['experience'] - 0.8 * frame['tests']))\n")
    one = written(*asked)
    tables = [pd.read_csv(f"out/{name}.csv") for name in ("people", "flipsets")]
    rows = pd.read_parquet("rows.parquet")
    order = np.random.default_rng(1).permutation(len(rows))
    rows.iloc[order][rows.columns[::-1]].reset_index(drop=True).to_parquet("rows.parquet")
    other = written(*asked)
    for here, there in zip(one["results"], other["results"], strict=True):
        for key in ("positives", "flipsets", "net", "noise", "refits"):
            assert here[key] == there[key]
    for name, column, table in zip(("people", "flipsets"), ("id", "audit_id"), tables, strict=True):
        again = pd.read_csv(f"out/{name}.csv").set_index(column).sort_index()
        left_out = [key for key in again if "row" in key]
        own = table.set_index(column).sort_index()
        pd.testing.assert_frame_equal(again.drop(columns=left_out), own[again.columns].drop(columns=left_out))


def test_single_precision_is_cut_in_single_precision() -> None:
    Path("single.py").write_text(
        "import numpy as np\ndef single(frame): return np.where(frame['experience'] > 1, 0.7, 0.1).astype(np.float32)\n"
    )
    (found,) = flipped("--predict", "single.py:single", "--threshold", "0.7")["results"]
    women = CANDIDATES[CANDIDATES["sex"] == "female"]
    assert found["positives"]["source"] == (women["experience"] > 1).sum() > 0


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.1, 0.03])
def test_the_fewest_deals_are_those_whose_least_adjusted_p_is_below_alpha(alpha: float) -> None:
    draws = fewest_draws(alpha)
    assert 2 / (draws + 1) < alpha <= 2 / draws


def test_the_noise_floor_tells_groups_that_differ_from_groups_that_are_alike() -> None:
    rng = np.random.default_rng(8)
    for gap, beyond in ((2.0, True), (0.0, False)):
        sex = np.array(["female", "male"])[np.arange(120) % 2]
        rows = pd.DataFrame({"sex": sex, "experience": rng.normal(1, 1, 120) + gap * (sex == "male"), "hired": 0})
        rows.assign(person=range(120)).to_parquet("rows.parquet")
        made = flipped(*ONE, "--null-draws", "39")
        assert made["verdict"]["beyond_noise"] == beyond
        floor = made["results"][0]["noise"]
        assert floor["draws"] == 39
        low, high = floor["either"]["range"]
        assert low <= floor["either"]["mean"] <= high
        assert ("is not shown to be more than noise" in made["verdict"]["sentence"]) != beyond


def test_standardised_maps_do_not_depend_on_units() -> None:
    asked = ("--features", "experience,tests", "--threshold", "1.5")
    Path("units.py").write_text(
        "def here(frame): return frame['experience']\ndef there(frame): return (frame['experience'] - 7) / 1000\n"
    )
    here = flipped(*asked, "--predict", "units.py:here")
    CANDIDATES.assign(experience=7 + 1000 * CANDIDATES["experience"]).to_parquet("rows.parquet")
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


@pytest.mark.parametrize("kind", ["exact", "auto"])
def test_a_map_that_cannot_see_a_column_beside_an_identifier_gives_no_verdict(kind: str) -> None:
    """Costs of 1e17 are rounded to more than all that experience adds."""
    rows = CANDIDATES.assign(file_number=1e8 * (1 + np.random.default_rng(0).permutation(len(CANDIDATES)) % 9))
    rows.to_parquet("rows.parquet")
    given = ("--features", "experience,file_number", "--predict", "models.py:experienced", "--map", kind)
    made = flipped(*given, "--standardize", "none")
    assert made["results"][0]["map"]["unseen"] == ["experience"]
    assert (made["verdict"]["outcome"], made["verdict"]["healthy_map"]) == ("inconclusive", False)
    assert "experience" in made["verdict"]["reason"]
    made = flipped(*given)
    assert made["results"][0]["map"]["unseen"] == []
    assert made["verdict"]["healthy_map"]


def test_a_limit_draws_people_by_the_seed() -> None:
    one, again, other = (flipped("--limit", "30", "--seed", seed) for seed in ("1", "1", "2"))
    assert one == again
    assert one["results"] != other["results"]
    assert one["results"][0]["n_source"] == one["results"][0]["n_target"] == 30
    assert one["data"]["left_out"] == {"of other groups": 10, "beyond the limit": len(CANDIDATES) - 10 - 60}


def test_numbers_can_be_codes_of_categories_and_the_other_direction_and_deals_change_nothing_in_this_one() -> None:
    made = flipped("--categorical", "tests")
    assert made["data"]["columns"][1:5] == ["tests=0", "tests=1", "tests=2", "tests=3"]
    assert made["data"]["standardized"] == ["experience"]
    assert {line["feature"] for line in made["results"][0]["transparency"]["negative"]} == set(made["data"]["columns"])
    alone = flipped()["results"][0]
    both = flipped("--reverse", "--null-draws", "3")["results"][0]
    assert {**both, "noise": None, "sentence": alone["sentence"]} == alone


def test_the_first_map_that_is_sound_on_people_held_out_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made = flipped("--map", "auto")
    assert (made["map"]["name"], made["map"]["poor"]) == ("entropic", [])
    held = made["map"]["held_out"]["entropic"]
    assert 0 < held["ks"] <= held["limit"]
    assert not made["results"][0]["map"]["real_people"]
    clipped = made["results"][0]["map"]["clipped"]
    assert 0 <= max(clipped["columns"].values(), default=0) <= clipped["people"] <= sum(clipped["columns"].values())
    monkeypatch.setattr("fairness_audits.audits.fliptest.maps.AUTO", ("wgan", "exact"))  # untrained after a step: poor
    monkeypatch.setitem(maps.SETTINGS, "wgan", {**maps.SETTINGS["wgan"], "steps": 1})
    made = flipped("--map", "auto")
    assert (made["map"]["name"], made["map"]["poor"]) == ("exact", ["wgan"])
    assert made["verdict"]["healthy_map"]
    held = made["map"]["held_out"]
    assert held["wgan"]["ks"] > held["wgan"]["limit"] == held["exact"]["limit"] >= held["exact"]["ks"]
    # Where none is sound, nothing follows from the best of them.
    monkeypatch.setattr("fairness_audits.audits.fliptest.compute.chance_ks", lambda *_: 0.0)
    monkeypatch.setattr("fairness_audits.audits.fliptest.compute.WORST_HEALTHY_KS", 1e-3)
    made = flipped("--map", "auto")
    assert (made["map"]["name"], made["verdict"]["outcome"]) == ("exact", "inconclusive")
    assert "the best of wgan, exact has" in made["verdict"]["reason"]


def test_missing_values_reach_a_model_that_takes_them() -> None:
    place = np.arange(len(CANDIDATES))
    rows = CANDIDATES.assign(
        tests=CANDIDATES["tests"].where(place % 4 > 0),
        region=CANDIDATES["region"].where(place % 5 > 0),
        member=np.where(place % 3 == 0, np.nan, place % 2),
    )
    rows.to_parquet("rows.parquet")
    rule = "def known(frame): return frame['tests'].notna() & frame['region'].notna() & frame['member'].notna()\n"
    Path("gappy.py").write_text(rule)
    for asked in (("--map", "exact"), ("--map", "entropic")):
        made = written("--predict", "gappy.py:known", *asked)
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


# Model inputs become points in comparable units, points become inputs that exist, and maps are found between them.


def frame(seed: int, shift: float = 0.0, sex: str = "f") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(18, 90, 40) + shift,
            "region": np.array(["north", "south", "west"])[np.arange(40) % 3],
            "married": rng.random(40) < 0.5,
            "member": rng.choice([1, 2], 40),
            "sex": sex,
        }
    )


def space(
    source: pd.DataFrame, target: pd.DataFrame, standardize: Any = "continuous", categorical: tuple[str, ...] = ()
) -> tuple[Space, Groups]:
    target = target.set_axis(range(len(source), len(source) + len(target)))
    groups = Groups(Group("f", source, None), Group("m", target, None), {}, None)
    return space_of(groups, standardize, categorical, "t.csv"), groups


def test_numbers_are_measured_in_standard_deviations_of_both_groups_together() -> None:
    made, groups = space(frame(1), frame(2, shift=10.0, sex="m"))
    ages = np.concatenate([groups.source.features["age"], groups.target.features["age"]])
    points = np.concatenate([made.points(groups.source.features), made.points(groups.target.features)])
    np.testing.assert_allclose(points[:, 0], (ages - ages.mean()) / ages.std())
    assert made.standardized == ("age",)
    assert made.each("scale")[0] == pytest.approx(ages.std())
    plain, _ = space(frame(1), frame(2, sex="m"), standardize="none")
    np.testing.assert_array_equal(plain.points(frame(1))[:, 0], frame(1)["age"])


def test_two_different_categories_are_at_distance_one_whatever_their_number() -> None:
    made, _ = space(frame(1), frame(2, sex="m"))
    assert made.labels == (
        "age", "region=north", "region=south", "region=west", "married=True", "member", "sex=m",
    )  # fmt: skip
    person = pd.DataFrame({"age": [30.0], "region": "north", "married": True, "member": 1.0, "sex": "f"})
    own = made.to_map(made.points(person))
    for change in ({"region": "south"}, {"region": "west"}, {"married": False}, {"member": 2.0}):
        assert np.abs(made.to_map(made.points(person.assign(**change))) - own).sum() == 1


def test_what_each_group_has_one_value_in_is_not_moved() -> None:
    made, groups = space(frame(1), frame(2, sex="m"))
    assert made.unmoved == ("sex",)
    assert made.to_map(made.points(frame(1))).shape == (40, 6)
    target = made.points(groups.target.features)
    back = made.from_map(made.to_map(made.points(frame(1))), target[0])
    assert set(made.frame(back)["sex"]) == {"m"}
    np.testing.assert_allclose(made.frame(back)["age"], frame(1)["age"])


def test_images_become_whole_numbers_and_categories_in_the_shares_of_the_target_group() -> None:
    made, groups = space(frame(1), frame(2, sex="m"))
    target = made.points(groups.target.features)
    points = made.points(frame(1)) + np.random.default_rng(0).normal(0, 0.4, (40, 7))
    snapped = made.snapped(points, target)
    np.testing.assert_array_equal(np.sort(snapped[:, 1:6], axis=0), np.sort(target[:, 1:6], axis=0))
    np.testing.assert_array_equal(snapped[:, 0], points[:, 0])
    assert made.snapping == ("region", "married", "member")
    table = frame(1).assign(children=np.arange(40) % 5)
    made, _ = space(table, table.assign(sex="m", children=np.arange(40) % 4))
    points = made.points(table)
    for step, gain in ((0.4, 0), (0.6, 1)):
        moved = made.snapped(points + step / made.each("scale"), points)
        np.testing.assert_array_equal(made.frame(moved)["children"], table["children"] + gain)
        np.testing.assert_allclose(made.frame(moved)["age"], table["age"] + step)
        np.testing.assert_allclose(made.snapped(moved, points), moved)


def test_counterparts_stay_in_the_range_of_the_target_group_and_the_clipped_ones_are_counted() -> None:
    """A map that ends at -16 hours where the data end at 1."""
    source = frame(1).assign(hours=np.arange(40) + 1, share=np.linspace(0, 1, 40), gap=[np.nan, 2.5, 3.5, 4.5] * 10)
    target = source.assign(sex="m", share=np.linspace(0.1, 0.7, 40))
    made, groups = space(source, target)
    there = made.points(groups.target.features)
    images = made.to_map(made.points(source))
    hours, share = (np.flatnonzero(np.array(made.labels)[made.moving] == name)[0] for name in ("hours", "share"))
    images[:5, hours] -= 17 / made.each("scale")[list(made.labels).index("hours")]
    found = counterparts(made, images, groups.target, there)
    assert found.frame["hours"].between(1, 40).all()
    assert found.frame["hours"].tolist() == [1] * 5 + list(range(6, 41))
    assert (found.frame["share"].min(), found.frame["share"].max()) == (0.1, 0.7)
    assert found.clipped.sum()[lambda count: count > 0].to_dict() == {"hours": 5, "share": 4 + 12}
    np.testing.assert_array_equal(made.points(found.frame), found.points)
    assert found.frame["gap"].isna().sum() == 10
    bent = images.copy()
    bent[:, share] *= 1 + 1e-13  # rounding is no clipping
    assert counterparts(made, bent, groups.target, there).clipped.equals(found.clipped)


def test_inputs_survive_the_way_to_the_space_and_back() -> None:
    table = frame(1).assign(
        region=lambda t: t["region"].astype("category"),
        code=np.arange(40) % 4,
        spare=pd.array([1, 2] * 20, dtype="Int64"),
    )
    made, _ = space(table, table.assign(sex="m"), categorical=("code",))
    again = made.frame(made.points(table))
    pd.testing.assert_frame_equal(again, made.prepared(table), check_exact=False)
    assert again["region"].dtype == "category"
    assert made.labels[-5:] == ("code=0", "code=1", "code=2", "code=3", "spare")
    np.testing.assert_array_equal(made.points(again), made.points(table))


def test_a_missing_value_is_at_distance_one_of_itself_and_comes_back_missing() -> None:
    table = frame(1).assign(
        age=lambda t: t["age"].round().where(np.arange(40) % 3 > 0),
        region=lambda t: t["region"].where(np.arange(40) % 5 > 0),
        spare=pd.array([1, None, 2, 1] * 10, dtype="Int64"),
    )
    made, _ = space(table, table.assign(sex="m"))
    assert made.labels[:6] == (
        "age", "age is missing", "region=north", "region=south", "region=west", "region=missing",
    )  # fmt: skip
    assert made.names == tuple(table)
    assert made.gaps == ("region", "spare", "age")
    mean = table["age"].mean()
    person = pd.DataFrame({"age": [mean], "region": "north", "married": True, "member": 1.0, "sex": "f", "spare": 1})
    own = made.to_map(made.points(person))
    for change in ({"age": np.nan}, {"region": None}, {"spare": np.nan}):
        assert np.abs(made.to_map(made.points(person.assign(**change))) - own).sum() == pytest.approx(1)
    points = made.points(table)
    again = made.frame(points)
    pd.testing.assert_frame_equal(again.isna(), table.isna())
    np.testing.assert_allclose(again["age"], table["age"])
    moved = made.snapped(points + np.random.default_rng(0).normal(0, 0.3, points.shape), points)
    np.testing.assert_allclose(made.points(made.frame(moved)), moved)
    assert made.frame(moved).isna().sum().equals(table.isna().sum())


def test_images_that_are_rows_are_these_people_with_their_own_values() -> None:
    made, groups = space(frame(1), frame(2, sex="m"))
    target = made.points(groups.target.features)
    images = made.to_map(target)[[3, 3, 7]]
    found = counterparts(made, images, groups.target, target)
    assert found.person.tolist() == [43, 43, 47]
    pd.testing.assert_frame_equal(found.frame, groups.target.features.iloc[[3, 3, 7]])
    moved = counterparts(made, images + np.array([[0.0], [1e-3], [0.0]]), groups.target, target)
    assert moved.person.tolist() == [43, -1, 47]
    assert moved.frame["age"][1] != found.frame["age"].iloc[1]
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])  # the first of equal rows is found
    assert places(np.array([[1.0, 2.0], [3.0, 4.0], [3.0, 4.5]]), rows).tolist() == [0, 1, -1]


def test_dealt_people_flip_by_what_a_map_moves_alone() -> None:
    """Women have 0.25 to 9.25, men 10.25 to 19.25; whoever has 5 or more, or is a man, is decided 1."""
    rows = pd.DataFrame({"x": np.arange(20) + 0.25, "sex": ["f"] * 10 + ["m"] * 10})
    women, men = rows.iloc[:10], rows.iloc[10:]
    made, _ = space(women, men, standardize="none")
    rule = Model(lambda frame: ((frame["x"] >= 5) | (frame["sex"] == "m")).to_numpy(float), "rule", None)
    tried = predictor(rule, Source("t.csv", rows).inputs(list(rows)), Computing("cpu"))
    model = positive_decision(tried, rows, Given(fa.fliptest, {}).but(label=None), "t.csv")
    everyone = as_source(made, women, men)
    np.testing.assert_array_equal(model.scores(everyone), np.arange(20) >= 5)  # men asked about as women
    split = RandomSplit(np.array([3, 4, 6, 12]), np.array([0, 7, 15, 16]))
    people = np.array([[7.25], [0.25], [0.25], [15.25]])
    points = np.array([[5.1], [4.9], [4.9], [np.nan]])
    null = null_of(made, model, everyone, [split, split], [points, people], people=4)
    assert (null.positive.tolist(), null.negative.tolist()) == ([1, 1], [1, 1])
    # Of four people dealt among ten, one is two and a half.
    null = null_of(made, model, everyone, [split, split], [points, people], people=10)
    assert (null.positive.tolist(), null.negative.tolist()) == ([2.5, 2.5], [2.5, 2.5])


def test_the_cheaper_map_comes_first_the_exact_one_where_there_is_room_and_a_noise_floor_where_fits_are_fast() -> None:
    for name, usual in (("exact", (40, 10)), ("entropic", (40, 10)), ("wgan", (0, 0))):
        kind = map_named(name, [])
        assert repeats(kind, None, None, 0.05) == usual
        assert repeats(kind, 7, 4, 0.05) == (7, 4)
    every = [candidates("auto", (), sizes) for sizes in ((2000, 2000), (20_000, 20_001))]
    assert [kind.name for kind in every[0]] == ["entropic", "exact", "stochastic", "wgan"]
    assert [kind.name for kind in every[1]] == ["entropic", "stochastic", "wgan"]
    (exact,) = candidates("exact", (), (20_000, 20_000))
    assert exact.settings["image"] == "sample"
    with invalid(option="map"):
        candidates("exact", (), (30_000, 30_000))


def test_every_map_between_two_groups_is_offered_with_its_own_settings() -> None:
    assert {"entropic", "exact", "wgan"} <= set(SETTINGS)
    assert "counterfactual" not in SETTINGS  # needs more than the two groups' rows
    for name in SETTINGS:
        assert not {"attribute", "source", "points"} & set(map_named(name, []).settings)
    config = map_named("wgan", ["steps=7", "learning_rate=1e-3"]).config
    assert (config.steps, config.learning_rate) == (7, 1e-3)
    same = np.zeros((30, 2))
    with invalid(option="map"):
        map_named("entropic", []).fit([(same, same + 1)], [np.random.default_rng(0)])


def test_an_exact_map_gives_others_the_image_of_the_nearest_fitted_row() -> None:
    exact, rows, rng = map_named("exact", []), np.array([[0.0], [1.0], [5.0]]), np.random.default_rng(0)
    (image,), maps = exact.fit([(rows, rows + 2)], [np.random.default_rng(0)])
    others = np.array([[4.0], [-7.0], [0.8]])
    np.testing.assert_array_equal(exact.extended(maps, rows, image, others, rng), [[7.0], [2.0], [3.0]])
    smooth = map_named("entropic", [])
    (image,), maps = smooth.fit([(rows, rows + 2)], [np.random.default_rng(0)])
    np.testing.assert_allclose(smooth.extended(maps, rows, image, rows, rng), image)


def test_identifiers_beside_an_empty_cell_stay_whole_numbers() -> None:
    shifted()
    number = pd.Series(np.arange(120) + 7, dtype="Int64").mask(np.arange(120) == 60)
    pd.read_parquet("rows.parquet").assign(person=number).to_csv("rows.csv", index=False)
    written(*ONE, "--data", "rows.csv")
    found = pd.read_csv("out/flipsets.csv", dtype=str)
    assert found["audit_id"].tolist() == (found["audit_row"].astype(int) + 7).astype(str).tolist()
    known = found["audit_counterpart_id"].dropna()
    assert known.str.fullmatch("[0-9]+").all()


def test_a_direction_does_not_depend_on_what_else_is_asked() -> None:
    shifted()
    given = (*ONE, "--map", "stochastic", "--map-setting", "steps=40")
    alone, *_ = written(*given)["results"]
    for more in (["--reverse"], ["--null-draws", "3"]):
        first, *_ = written(*given, *more)["results"]
        for key in ("flipsets", "map", "transparency"):
            assert first[key] == alone[key]


def test_equal_people_are_not_all_sent_to_one_place_by_a_refitted_exact_map() -> None:
    rng, n = np.random.default_rng(0), 600
    share = np.r_[rng.permutation(np.arange(n) < 0.5 * n), rng.permutation(np.arange(n) < 0.7 * n)] * 1
    rows = pd.DataFrame({"skill": share, "other": rng.permutation(np.arange(2 * n) % 2)})
    call: dict[str, Any] = {"source": "a", "target": "b", "map": "exact", "null_draws": 0, "refits": 10}
    found = fa.fliptest(lambda frame: frame["skill"], rows, np.repeat(["a", "b"], n), **call).facts["results"][0]
    low, high = found["refits"]["range"]["negative"]
    # 20 % flip, and a resampled share of a half varies by some 2 %.
    assert 60 < low <= found["flipsets"]["negative"]["size"] <= high < 190


def test_a_map_with_torch_follows_one_without() -> None:
    shifted()
    program = (
        "import numpy as np, fairness_audits as fa; x = np.linspace(0, 1, 60); "
        "call = dict(X=np.c_[x, x[::-1]], group=np.arange(60) % 2, source='0', target='1', null_draws=0, refits=0); "
        "[fa.fliptest(lambda f: (f.iloc[:, 0] > 0.5) * 1, map=name, **call) for name in ('entropic', 'stochastic')]"
    )
    around = {name: value for name, value in os.environ.items() if not name.startswith("POT_BACKEND")}
    subprocess.run([sys.executable, "-c", program], check=True, env=around)


def test_columns_that_the_model_does_not_take_are_not_mapped_in_python() -> None:
    shifted()
    rows = pd.read_parquet("rows.parquet")
    model = LogisticRegression().fit(rows[["experience"]], rows["hired"])
    call: dict[str, Any] = {"source": "female", "target": "male", "map": "exact", "null_draws": 0, "refits": 0}
    inputs = (rows[["experience"]], rows[["hired", "experience"]])
    results = [fa.fliptest(model, given, rows["sex"], **call) for given in inputs]
    assert results[0].facts["results"] == results[1].facts["results"]
    assert results[1].facts["data"]["features"] == ["experience"]


@pytest.mark.parametrize(("shift", "flips"), [(2.0, True), (0.0, False)])
def test_what_to_tell_a_person_is_said_where_somebody_flips(shift: float, flips: bool) -> None:
    """Counterparts lie a shift away, on the other side of the threshold; without a shift, they are where people are."""
    group, place = np.repeat(["a", "b"], 40), np.tile(np.linspace(-1, 1, 40), 2)
    x = pd.DataFrame({"skill": place + shift * (group == "b")})
    found = fa.fliptest(
        lambda rows: (np.asarray(rows)[:, 0] >= 0).astype(int),
        x,
        group,
        source="a",
        target="b",
        map="exact",
        null_draws=0,
    )
    assert (found.facts["results"][0]["flipsets"]["negative"]["size"] > 0) == flips
    assert ("to_a_person" in {caveat.condition for caveat in found.caveats}) == flips
