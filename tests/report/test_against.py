"""A run held against the reference: equal numbers are equal, and other means are tested."""

from dataclasses import replace

import numpy as np

from pipeline.report.against import OTHER, SAME, against, summary
from pipeline.report.inputs import Inputs
from tests.report import studies


def test_a_run_is_equal_to_itself(inputs: Inputs) -> None:
    lines = against(inputs, inputs)
    assert set(lines["settings"]) == {SAME}
    assert (lines["equal"] == lines["numbers"]).all()
    assert lines["numbers"].sum() == inputs.rows["value"].notna().sum()
    (text,) = summary(lines)
    assert text == f"Same settings: {lines['numbers'].sum():,} of {lines['numbers'].sum():,} numbers are equal."


def test_a_number_that_moved_is_counted_and_its_mean_is_tested(inputs: Inputs) -> None:
    rows = inputs.rows.reset_index(drop=True).copy()
    chosen = (rows["block"] == "audit") & (rows["statistic"] == "T_n") & (rows["method"] == "baseline")
    rows.loc[chosen, "value"] += 1e-12
    assert (against(replace(inputs, rows=rows), inputs).eval("equal == numbers")).all()
    rows.loc[chosen, "value"] += 1e6
    lines = against(replace(inputs, rows=rows), inputs)
    moved = lines[(lines["block"] == "audit") & (lines["method"] == "baseline")]
    assert (lines["numbers"] - lines["equal"]).sum() == chosen.sum()
    assert (moved["tested"] > 0).all()
    assert (moved["differ"] == moved["tested"]).all()
    (text,) = summary(lines)
    assert f"and of {moved['tested'].sum()} means over repetitions {moved['differ'].sum()} differ." in text


def test_other_settings_are_tested_and_not_expected_to_be_equal(inputs: Inputs) -> None:
    lines = against(studies.configured(inputs, "audit", "alpha", 0.2, block="audit"), inputs)
    other = lines[lines["settings"] == OTHER]
    assert set(other["block"]) == {"audit"}
    assert (other["numbers"] == 0).all()
    assert (other["differ"] == 0).all()
    assert summary(lines)[1].startswith("Other settings, so that a difference is to be expected")


def test_fewer_repetitions_are_the_first_ones_again(inputs: Inputs) -> None:
    fewer = replace(inputs, rows=inputs.rows[inputs.rows["repetition"] < 2])
    lines = against(fewer, inputs)
    assert set(lines["settings"]) == {SAME}
    assert lines["equal"].sum() == len(fewer.rows[fewer.rows["value"].notna()])


def test_other_data_are_not_expected_to_be_equal(inputs: Inputs) -> None:
    rows = inputs.rows.assign(origin=inputs.rows["origin"].mask(inputs.rows["dataset"] == "compas", "twin"))
    lines = against(replace(inputs, rows=rows), inputs)
    assert set(lines.loc[lines["dataset"] == "compas", "settings"]) == {OTHER}
    assert set(lines.loc[lines["dataset"] != "compas", "settings"]) == {SAME}
    assert np.isnan(lines.loc[lines["dataset"] == "compas", "largest"]).all()
