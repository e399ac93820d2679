"""What tables say of chance: sizes by chance, ends of intervals, and the words for lines."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.report import words as w
from pipeline.report.fliptest import trials
from pipeline.report.inputs import Inputs
from tests.report import studies


def test_sizes_by_chance_stand_beside_those_of_exact_maps(inputs: Inputs, build: Any) -> None:
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
    study = inputs
    for place in trials.places(study, dataset=w.LAW):
        found = place.estimate("size", w.POSITIVE)
        ends = place.values(flipset=w.POSITIVE, statistic="size_ci_high")
        assert len(ends) == 3
        assert found.high == pytest.approx(ends.mean())
        assert found.high > 0  # Nobody flips positively, and the upper end says how many could.


def test_tops_are_what_stands_out_and_else_say_what_they_are(inputs: Inputs, build: Any) -> None:
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
