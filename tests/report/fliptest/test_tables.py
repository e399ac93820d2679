"""What the study's tables compute, and what they say when something is missing."""

from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.report import words as w
from pipeline.report.fliptest import law, trials
from pipeline.report.fliptest.flipset_tables import contexts, told
from pipeline.report.fliptest.trials import FirstTrial
from pipeline.report.fliptest.validation import EXPERIMENTS, TABLE_1, Validated
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate
from pipeline.report.settings import departures
from tests.report import studies
from tests.report.studies import build


def value(cell: Any) -> float:
    """The number in a cell."""
    return cell.value if isinstance(cell, Estimate) else cell


def test_table_1_has_the_published_rows_in_the_published_order(made: Any) -> None:
    labels = [row.labels for row in made["table_1"].rows]
    assert labels == [(EXPERIMENTS[place], feature) for place, features in TABLE_1.items() for feature in features]


def test_a_trial_that_failed_counts_in_the_published_columns_alone(inputs: Inputs) -> None:
    """Of KS .05, .05 and .5 in three trials the mean is .2, and .05 without the one that is not healthy."""
    here: Any = {"block": "hiring_quality", "transport": "wgan", "direction": "forward"}
    of = {"statistic": "ks", "feature": "hair_length"}
    for where, sound, failed in ((of, 0.05, 0.5), ({"statistic": "healthy"}, 1.0, 0.0)):
        inputs = studies.with_values(inputs, studies.chosen(inputs, **here, **where), sound)
        inputs = studies.with_values(inputs, studies.chosen(inputs, **here, **where, repetition=2), failed)
    made = build("table_1", inputs)
    row = ("Lipton: Dem Parity", "Hair Len")
    assert made.cell("KS", *row).value == pytest.approx(0.2)
    assert made.cell("KS healthy", *row).value == pytest.approx(0.05)
    assert (made.cell("KS", *row).n, made.cell("KS healthy", *row).n) == (3, 2)
    assert made.cell("healthy", *row) == "2 of 3"


def test_distances_are_printed_as_plain_over_every_column_and_kept_squared(made: Any, inputs: Inputs) -> None:
    """Two 0/1 columns of race change for every applicant: s + 2, and (s + 2)^2 = s^2 + 4 s + 4."""
    one, row = Validated(inputs, "law", w.EVERYONE, "wgan"), ("Law School", "LSAT")
    l1, cost = (one.overall(f"map_{kind}").mean() for kind in ("l1", "cost"))
    found = made["table_1"]
    assert value(found.cell("Dist: GAN", *row)) == pytest.approx(l1 + 2)
    assert value(found.cell("Dist: GAN squared", *row)) == pytest.approx(cost + 4 * l1 + 4)
    printed = [column.key for column in found.columns if column.printed]
    assert "Dist: GAN" in printed
    assert "Dist: GAN squared" not in printed
    assert Validated(inputs, "hiring", w.EVERYONE, "wgan").constant == 0
    with pytest.raises(ValueError, match="distances need the data 'law' and its maps 'wgan'"):
        assert replace(one, inputs=replace(inputs, transports={})).constant


def test_every_direction_of_every_experiment_has_its_flipsets(made: Any, inputs: Inputs) -> None:
    listed = [place for place in trials.places(inputs) if place.block != "methods"]
    directions = sum(len(place.directions) for place in listed)
    found = made["table_flipsets"]
    assert len(found.rows) == directions > len(listed)
    row = ("Hiring", "women to men", "given rule", "WGAN")
    net, positive, negative = (value(found.cell(size, *row)) for size in ("net", "positive", "negative"))
    assert net == pytest.approx(positive - negative)
    assert (found.cell("published positive", *row), found.cell("published negative", *row)) == (1215, 715)
    opposite = ("Hiring", "men to women", "given rule", "WGAN")
    assert found.cell("published positive", *opposite) is None


def test_the_benchmark_states_sizes_as_shares_of_the_people(made: Any) -> None:
    found = made["table_null"]
    for row in found.rows:
        people = value(found.cell("people", *row.labels))
        for flipset in (w.POSITIVE, w.NEGATIVE):
            size = value(found.cell(flipset, *row.labels))
            assert value(found.cell(f"{flipset} share", *row.labels)) == pytest.approx(100 * size / people)


def test_the_net_size_is_the_difference_of_positive_decisions(made: Any, inputs: Inputs) -> None:
    """Summed over the group, h(x) - h(G(x)) is |F+| - |F-|."""
    for place in trials.places(inputs, block="methods")[:3]:
        source, image = (place.estimate(f"positives_{side}").value for side in ("source", "image"))
        assert source - image == pytest.approx(place.estimate("net").value)
    assert len(made["table_methods"].rows) == 2 * 2 * 4


def test_shared_members_of_law_flipsets_are_counted_by_row(made: Any, inputs: Inputs) -> None:
    sets = {}
    for place in law.places(inputs, law.CLASSIFIER):
        first = place.first
        sets[place.transport] = set(first.rows[first.members(w.NEGATIVE)].tolist())
    causal = sets[w.COUNTERFACTUAL]
    found = made["table_law"]
    assert found.cell("shared", "WGAN") == f"{len(causal & sets[w.WGAN])} of {len(causal)}"
    assert found.cell("shared", "causal counterfactual") == f"{len(causal)} of {len(causal)}"
    assert value(found.cell("before", "WGAN")) < value(found.cell("after", "WGAN"))


def test_hiring_reports_have_one_line_for_each_map_flipset_and_feature(made: Any) -> None:
    rows = [row.labels for row in made["table_transparency_hiring"].rows]
    assert len(rows) == len(set(rows))
    assert {("WGAN", "F+", "hair length"), ("WGAN", "F\u2212", "work experience")} <= set(rows)


def test_a_context_is_told_in_the_words_of_its_features() -> None:
    told_of = told("gang_affiliation = -0.441429 and -1.32075 < age <= 2 and trend > 10", w.SSL)
    bounds = "\u22121.32 < age at latest arrest \u2264 2 and trend in activity > 10"
    assert told_of == f"gang affiliation = \u22120.44 and {bounds}"
    assert told("all rows", w.SSL) == "all rows"


def test_contexts_open_with_everyone_and_go_on_with_what_is_reported(inputs: Inputs) -> None:
    listed = contexts(inputs, w.ARRESTS)
    assert listed[0]["context"] == "all rows"
    reported = [line["reported"] == 1 for line in listed[1:]]
    assert reported == sorted(reported, reverse=True)
    root = inputs.select(dataset=w.ARRESTS, context="all rows", part="held out", statistic="correlation")
    assert listed[0]["correlation"] == root.sort_values("repetition")["value"].iloc[0]


def test_weights_are_those_of_the_regressions(made: Any, inputs: Inputs) -> None:
    coef = inputs.classifiers["ssl/linear_regression"].parameters["coef"]
    names = inputs.datasets["ssl"].feature_names
    cell = made["table_ssl_weights"].cell("weight", "age at latest arrest")
    assert cell == Estimate.mean(coef[:, names.index("age")])


def shorter(inputs: Inputs) -> Inputs:
    """The same run with fewer steps of the WGAN."""
    return studies.configured(inputs, "transport", "steps", 500, name="wgan")


def test_a_shorter_run_says_so_where_its_maps_are_shown(inputs: Inputs) -> None:
    stamp = build("table_null", shorter(inputs)).stamp
    said = "WGAN on Identical distributions: transport.steps 500 (published: 20,001)"
    assert departures(stamp.reductions) == [said]
    assert "1 setting not as published" in stamp.lines()[0]
    assert build("table_null", inputs).stamp.reductions == ()


def test_the_stamp_of_one_map_leaves_out_the_settings_of_others(inputs: Inputs) -> None:
    short = shorter(inputs)
    assert {one.here for one in short.stamp("hiring", maps=["wgan"]).reductions} == {500}
    exact = short.stamp("hiring", maps=["exact"])
    assert exact.reductions == ()
    assert exact.repetitions == (3,)
    assert short.stamp(["hiring", "law"], w.LAW).origins == ("official",)


def test_settings_that_differ_have_a_line_for_each_experiment(made: Any) -> None:
    found = made["table_settings"]
    assert found.cell("value", "Map: WGAN", "weight of the cost lambda, Law school") == 5e-5
    assert found.cell("value", "Map: WGAN", "weight of the cost lambda, Hiring") == 1e-4
    assert found.cell("value", "Model: given rule", "weight of narcotic arrests") == 25
    assert found.cell("value", "Model: given rule", "threshold, Strategic Subject List") == 65
    assert found.cell("value", "Map: WGAN", "people of each group at most") == "all"
    texts = [label for row in found.rows for label in row.labels]
    assert not any("[" in label or "given label" in label or "threads" in label for label in texts)


# What tables say of chance: sizes by chance, ends of intervals, and the words for lines.


def test_sizes_by_chance_stand_beside_those_of_exact_maps(inputs: Inputs) -> None:
    """60 of a group's people by chance, 90 at most: in the columns of every exact place that has them, else a dash."""
    for statistic, value in (("noise_size", 60.0), ("noise_size_upper", 90.0), ("noise_people", 250.0)):
        inputs = studies.with_values(inputs, studies.chosen(inputs, block="methods", statistic=statistic), value)
    dealt = inputs.rows["statistic"].astype(str).str.startswith("noise") & (inputs.rows["method"] == "sensr")
    made = build("table_methods", replace(inputs, rows=inputs.rows[~dealt]))
    found = {row.labels[2]: made.cell("positive by chance", *row.labels) for row in made.rows}
    assert (found["Baseline"].value, found["Baseline"].high) == (60.0, 90.0)
    assert found["Baseline"].text == "60, to 90"
    assert found["SenSR"] is None
    assert "250 people on a side" in " ".join(made.notes)


def test_the_ends_of_a_size_are_means_over_all_trials(inputs: Inputs) -> None:
    for place in trials.places(inputs, dataset=w.LAW):
        found = place.estimate("size", w.POSITIVE)
        ends = place.values(flipset=w.POSITIVE, statistic="size_ci_high")
        assert len(ends) == 3
        assert found.high == pytest.approx(ends.mean())
        assert found.high > 0  # Nobody flips positively, and the upper end says how many could.


def test_tops_are_what_stands_out_and_else_say_what_they_are(inputs: Inputs) -> None:
    """With every p-value at 1 no line stands out, and certain shifts are the whole group's, not noise."""
    rows = inputs.rows.copy()
    rows.loc[rows["statistic"].isin(["mean_shift_p_adjusted", "mean_sign_p_adjusted"]), "value"] = 1.0
    certain = rows["statistic"].isin(["mean_shift_ci_low", "mean_shift_ci_high"]) & (rows["block"] == "methods")
    made = build("table_methods", replace(inputs, rows=rows))
    tops = [made.cell(f"{flipset} top", *row.labels) for row in made.rows for flipset in (w.POSITIVE, w.NEGATIVE)]
    assert certain.any()
    assert all(top == "\u2014" or top.endswith(("as the whole group)", "noise)")) for top in tops)
    assert any(top.endswith("as the whole group)") for top in tops)
    hiring = build("table_transparency_hiring", replace(inputs, rows=rows))
    assert {hiring.cell("shift is", *row.labels) for row in hiring.rows} <= {"noise", "as the whole group"}


# How many members flipsets share by trials.


def trial(decision: list[int], after: list[int], rows: list[int] | None = None) -> FirstTrial:
    """People with these decisions, before and after."""
    numbers = np.arange(len(decision)) if rows is None else np.array(rows)
    return FirstTrial({"decision": np.array(decision), "decision_image": np.array(after), "rows": numbers})


def test_two_of_four_and_two_of_four_share_one() -> None:
    """P(K = 0, 1, 2) = 1/6, 4/6, 1/6."""
    found = trials.shared_by_chance(4, 2, 2, level=0.6)
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
    wide = trials.shared_by_chance(4, 2, 2, level=0.99)
    assert (wide.low, wide.high) == (0.0, 2.0)


@given(people=st.integers(1, 30), shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_the_range_holds_at_least_its_level(people: int, shares: tuple[float, float]) -> None:
    k, n = (int(share * people) for share in shares)
    found = trials.shared_by_chance(people, k, n)
    inside = sum(comb(k, i) * comb(people - k, n - i) for i in range(int(found.low), int(found.high) + 1) if i <= n)
    assert inside / comb(people, n) >= 0.95 - 1e-9
    assert found.low <= found.value <= found.high or found.high - found.low < 1
    assert found.value == pytest.approx(trials.shared_by_chance(people, n, k).value)


def test_random_flipsets_share_as_many_as_said() -> None:
    rng = np.random.default_rng(0)
    found = trials.shared_by_chance(200, 60, 90)
    pairs = [[set(rng.choice(200, size, replace=False)) for size in (60, 90)] for _ in range(1000)]
    drawn = [len(one & other) for one, other in pairs]
    assert np.mean(drawn) == pytest.approx(found.value, abs=0.5)
    assert np.mean([found.low <= k <= found.high for k in drawn]) > 0.93


def test_drawn_are_those_who_can_be_in_the_flipset() -> None:
    """Of six people four are decided against; two and three of them are in F-, so 2 x 3 / 4 are shared by trials."""
    one = trial([1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0])
    other = trial([1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 1])
    assert trials.shared_by_chance_of(one, other, w.NEGATIVE).value == pytest.approx(1.5)
    assert trials.shared_by_chance_of(one, other, w.POSITIVE).value == 0


def test_sets_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="two sets among 4 people, found 5 and 1 members"):
        trials.shared_by_chance(4, 5, 1)
    one = trial([0, 0], [1, 0])
    with pytest.raises(ValueError, match="people under both maps, found 2 and 2, none of whom is in both"):
        trials.shared_by_chance_of(one, trial([0, 0], [1, 0], rows=[6, 7]), w.NEGATIVE)


def test_people_whom_one_map_alone_moved_do_not_count() -> None:
    """The three of six whom the second map moved are all decided against; one and two of them are in F-: 1 x 2 / 3."""
    one = trial([1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 1])
    other = trial([0, 0, 0], [1, 1, 0], rows=[2, 3, 4])
    for pair in ((one, other), (other, one)):
        assert trials.shared_by_chance_of(*pair, w.NEGATIVE).value == pytest.approx(2 / 3)
    assert one.members_among(other.rows, w.NEGATIVE) == 1
