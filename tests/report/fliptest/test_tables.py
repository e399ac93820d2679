"""What the study's tables compute, and what they say when something is missing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairness_audits.results.estimate import Estimate
from pipeline.report import labels as w
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.flipset_tables import contexts
from pipeline.report.fliptest.validation import EXPERIMENTS, TABLE_1, Validated
from pipeline.report.inputs import Inputs
from pipeline.report.reduction import departures
from tests.report import studies
from tests.report.studies import build


def value(cell: Any) -> float:
    """The number in a cell."""
    return cell.value if isinstance(cell, Estimate) else cell


def test_table_1_has_the_published_rows_in_the_published_order(inputs: Inputs) -> None:
    table = build("table_1", inputs)
    labels = [table.labels(row) for row in table.rows]
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


def test_distances_are_printed_as_the_audit_measured_them_over_every_column(inputs: Inputs) -> None:
    """The change of race, two 0/1 columns, is in them already; the squared ones are kept, and not printed."""
    one, found = Validated(inputs, "law", w.EVERYONE, "wgan"), build("table_1", inputs)
    for key, statistic in (("GAN", "map_l1"), ("OT", "exact_l1"), ("GAN squared", "map_cost")):
        assert value(found.cell(f"Dist: {key}", "Law School", "LSAT")) == pytest.approx(one.overall(statistic).mean())
    printed = [column.key for column in found.columns if column.printed and column.kind != "label"]
    assert [f"Dist: GAN{kept}" in printed for kept in ("", " squared")] == [True, False]


def test_every_direction_of_every_experiment_has_its_flipsets(inputs: Inputs) -> None:
    listed = [place for place in trials.places(inputs) if place.block != "methods"]
    directions = sum(len(place.directions) for place in listed)
    found = build("table_flipsets", inputs)
    assert len(found.rows) == directions > len(listed)
    row = ("Hiring", "women to men", "given rule", "WGAN")
    net, positive, negative = (value(found.cell(size, *row)) for size in ("net", "positive", "negative"))
    assert net == pytest.approx(positive - negative)


def test_the_benchmark_states_sizes_as_shares_of_the_people(inputs: Inputs) -> None:
    found = build("table_null", inputs)
    for row in found.rows:
        people = value(found.cell("people", *found.labels(row)))
        for flipset in (w.POSITIVE, w.NEGATIVE):
            size = value(found.cell(flipset, *found.labels(row)))
            assert value(found.cell(f"{flipset} share", *found.labels(row))) == pytest.approx(100 * size / people)


def test_contexts_open_with_everyone_and_go_on_with_what_is_reported(inputs: Inputs) -> None:
    listed = contexts(inputs, w.ARRESTS)
    assert listed[0]["context"] == "all rows"
    reported = [line["reported"] == 1 for line in listed[1:]]
    assert reported == sorted(reported, reverse=True)
    root = inputs.select(dataset=w.ARRESTS, context="all rows", part="held out", statistic="correlation")
    assert listed[0]["correlation"] == root.sort_values("repetition")["value"].iloc[0]


def shorter(inputs: Inputs) -> Inputs:
    """The same run with fewer steps of the WGAN."""
    return studies.configured(inputs, "transport", "steps", 500, name="wgan")


def test_a_shorter_run_says_so_where_its_maps_are_shown(inputs: Inputs) -> None:
    stamp = build("table_null", shorter(inputs)).stamp
    said = "WGAN on Identical distributions: steps 500 (published: 20,001)"
    assert departures(stamp.reductions) == [said]
    assert "1 setting differs from the paper" in stamp.lines()[0]
    assert build("table_null", inputs).stamp.reductions == ()


def test_the_stamp_of_one_map_leaves_out_the_settings_of_others(inputs: Inputs) -> None:
    short = shorter(inputs)
    assert {one.here for one in short.stamp("hiring", maps=["wgan"]).reductions} == {500}
    exact = short.stamp("hiring", maps=["exact"])
    assert exact.reductions == ()
    assert exact.repetitions == (3,)
    assert short.stamp(["hiring", "law"], w.LAW).origins == ("official",)


def test_settings_that_differ_have_a_line_for_each_value_with_its_places(inputs: Inputs) -> None:
    lines = [row.cells for row in build("table_settings", inputs).rows]
    assert ("Map: WGAN", "cost_weight", 5e-5, "Law school") in lines
    assert ("Map: WGAN", "cost_weight", 1e-4, "all others") in lines
    assert ("Model: given rule", "weights.narcotic_arrests", 25.0, "") in lines
    assert ("Model: given rule", "threshold", 65.0, "Strategic Subject List") in lines
    assert ("Map: WGAN", "points", "all", "") in lines
    # The grid of a block varies it.
    assert ("Data: Normal distribution", "dimension", "1; 5; 20", "") in lines
    assert not any("threads" in line[1] for line in lines)


# What tables say of chance: sizes by chance, ends of intervals, and the words for lines.


def test_sizes_by_chance_stand_beside_those_of_exact_maps(inputs: Inputs) -> None:
    """60 of a group's people by chance, 90 at most: in the columns of every exact place that has them, else a dash."""
    for statistic, value in (("noise_size", 60.0), ("noise_size_upper", 90.0), ("noise_people", 250.0)):
        inputs = studies.with_values(inputs, studies.chosen(inputs, block="methods", statistic=statistic), value)
    dealt = inputs.rows["statistic"].astype(str).str.startswith("noise") & (inputs.rows["method"] == "sensr")
    made = build("table_methods", replace(inputs, rows=inputs.rows[~dealt]))
    found = {row.cells[2]: made.cell("positive by chance", *made.labels(row)) for row in made.rows}
    assert (found["Baseline"].value, found["Baseline"].high) == (60.0, 90.0)
    assert found["Baseline"].text == "60 (≤ 90)"
    assert found["SenSR"] is None
    assert "250 people each" in " ".join(made.notes)


def test_the_ends_of_a_size_are_means_over_all_trials(inputs: Inputs) -> None:
    for place in trials.places(inputs, dataset=w.LAW):
        found = place.estimate("size", w.POSITIVE)
        ends = place.values(flipset=w.POSITIVE, statistic="size_ci_high")
        assert len(ends) == 3
        assert found.high == pytest.approx(ends.mean())
        assert found.high > 0  # Nobody flips positively, and the upper end says how many could.


def test_tops_are_what_stands_out_and_else_say_what_they_are(inputs: Inputs) -> None:
    """Where no line has an interval all are noise."""
    for statistic, noise in (("mean_sign_ci_low", False), ("mean_shift_ci_low", True)):
        unknown = studies.with_values(inputs, studies.chosen(inputs, block="methods", statistic=statistic), np.nan)
        made = build("table_methods", unknown)
        tops = [
            made.cell(f"{flipset} top", *made.labels(row)) for row in made.rows for flipset in (w.POSITIVE, w.NEGATIVE)
        ]
        told = [top.endswith(", noise)") for top in tops if top != "\u2014"]
        assert told
        assert all(told) == noise
