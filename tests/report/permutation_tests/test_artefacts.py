"""What the study's tables and figures compute, and what they say when something is missing."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom

from fairness_audits.audits.permutation.power import power_of
from fairness_audits.results.estimate import Estimate
from pipeline.report.artefacts import compared
from pipeline.report.comparison_table import printed
from pipeline.report.estimators import LEVEL
from pipeline.report.inputs import Inputs
from pipeline.report.labels import TESTS
from pipeline.report.permutation_tests.data import DIFFERENCES, POWERS, by_setting, quantiles
from pipeline.report.permutation_tests.simulations import multinomial_band
from pipeline.report.reduction import departures
from tests.report import studies
from tests.report.studies import build, inputs_of


def test_what_is_not_detected_counts_as_larger_than_any() -> None:
    """Of .1, .2 and three samples in which nothing is found the median does not exist, and the quartile is .2."""
    values = np.array([[0.2, np.nan, 0.1, np.nan, np.nan], [0.5, 0.4, 0.3, 0.2, 0.1]])
    low, median = quantiles(values, (25, 50))
    assert low == pytest.approx([0.2, 0.2])
    assert np.isnan(median[0])
    assert median[1] == pytest.approx(0.3)


def test_figure_2_shows_the_sign_of_the_difference_between_both_bounds(inputs: Inputs) -> None:
    """On COMPAS, women have the lower recall: an absolute difference would hide it."""
    panels = build("figure_2", inputs).figure.axes
    (compas,) = [axes for axes in panels if axes.get_title() == "COMPAS, recall (TPR)"]
    difference, upper, lower = (np.asarray(line.get_ydata(), float) for line in compas.lines[:3])
    assert difference.min() < lower.min() < 0
    np.testing.assert_allclose(lower, -upper)


def test_figure_3_marks_each_sample_size_at_which_most_samples_detect_nothing(inputs: Inputs) -> None:
    (axes,) = [one for one in build("figure_3", inputs).figure.axes if one.get_title() == "Adult, recall (TPR)"]
    marks = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "^"]
    place = {"block": "sample_size", "attribute": "sex", "dataset": "adult_all", "metric": "tpr"}
    rows = inputs.select(**place, statistic="minimum_difference", test="studentized")
    missed = rows["value"].isna().groupby(rows["n"]).mean()
    assert set(missed.index[missed > 0.5]) <= set(marks)
    assert f"{100 * missed.max():.0f} %" in {text.get_text() for text in axes.texts}


def test_values_by_setting_are_one_for_each_split_and_sample() -> None:
    rows = pd.DataFrame({"n": [2, 1, 2, 1], "repetition": [0, 0, 1, 1], "value": [0.2, 0.1, 0.4, 0.3]})
    n, values = by_setting(rows, "n")
    assert n.tolist() == [1, 2]
    assert values.tolist() == [[0.1, 0.3], [0.2, 0.4]]


def test_the_band_of_a_histogram_holds_the_bars_of_uniform_p_values() -> None:
    rng = np.random.default_rng(5)
    simulations, bins = 2000, 20
    low, high = multinomial_band(1 / bins, simulations)
    heights = rng.multinomial(simulations, np.full(bins, 1 / bins), size=4000) / simulations * bins
    inside = ((heights >= low) & (heights <= high)).mean()
    assert LEVEL - 0.01 < inside < LEVEL + 0.02
    assert low < 1 < high


def test_sample_sizes_have_the_power_they_promise(inputs: Inputs) -> None:
    """Put back into the power function, with the groups' shares of positives, each number of rows gives its power."""
    table = build("table_sample_size", inputs)
    test_rows = inputs.datasets["adult_all"].test_rows
    names = {"block": "thresholds", "dataset": "adult_all", "attribute": "sex", "metric": "tpr"}
    place: dict[str, str | float] = {**names, "threshold": 0.5}
    f = [inputs.values(**place, statistic=f"estimate_{g}").mean() for g in "ab"]
    of = [inputs.values(**place, statistic=f"n_{g}").mean() / test_rows for g in "ab"]
    for power in POWERS:
        for difference in DIFFERENCES:
            rows = table.cell(f"{difference:g} ({power:g})", "Adult", "gender", "recall (TPR)")
            bernoulli = (f[0] * (1 - f[0]), f[1] * (1 - f[1]))
            reached = power_of(difference, bernoulli, (rows * of[0], rows * of[1]), alpha=0.05)
            assert float(reached) == pytest.approx(power, abs=0.002)


def test_levels_of_equal_aucs_stand_beside_those_of_equal_rates_in_groups_of_the_same_size(inputs: Inputs) -> None:
    table = build("table_levels", inputs)
    assert len(table.rows) == 4 + 6 + 5
    place: dict[str, str | float] = {"block": "auc_levels", "n_a": 1000, "n_b": 25, "test": "studentized"}
    few = ("few positives", "1,000", "25", "5", "0.8")
    assert table.cell("AUC, studentised", *few).value == inputs.values(**place, statistic="rejection_rate").item()
    assert table.cell("AUC, undefined", *few) == inputs.values(**place, statistic="undefined").item()
    rates: dict[str, str | float] = {**place, "block": "few_positives"}
    assert table.cell("undefined", *few) == inputs.values(**rates, statistic="undefined").item()
    rare = ("5 % of B positive", "1,000", "1,600", "80", "")
    assert table.cell("bootstrap", *rare) is None
    assert table.cell("AUC, unstudentised", *rare).low > 0
    assert "repetition" not in table.stamp.lines()[0]


def test_a_size_without_a_test_of_aucs_has_an_empty_cell(inputs: Inputs) -> None:
    rows = inputs.rows[~((inputs.rows["block"] == "auc_levels") & (inputs.rows["n_a"] == 10000))]
    table = build("table_levels", replace(inputs, rows=rows))
    assert table.cell("AUC, studentised", "our choice for section 4.2", "10,000", "1,000", "200", "0.8") is None


def test_the_table_of_methods_says_where_a_metric_is_undefined_and_corrects_within_a_split(inputs: Inputs) -> None:
    place = {"block": "methods", "dataset": "adult", "method": "sensr", "attribute": "race", "metric": "precision"}
    undefined = studies.chosen(inputs, **place)
    inputs = studies.with_values(inputs, undefined & (inputs.rows["statistic"] != "exact"), np.nan)
    inputs = studies.with_values(inputs, undefined & studies.chosen(inputs, statistic="undefined"), 1.0)
    table = build("table_methods", inputs)
    assert table.cell("sensr p", "Adult", "race", "precision") == "undefined"
    assert table.cell("sensr undefined", "Adult", "race", "precision") == 10
    place |= {"method": "project", "attribute": "sex", "metric": "auc"}
    adjusted = inputs.values(**place, statistic="p_adjusted")
    shown = table.cell("project p", "Adult", "gender", "AUC")
    assert isinstance(shown, Estimate)
    assert shown.value == pytest.approx(min(1.0, 2 * np.sort(adjusted)[4]))
    share = table.cell("project rejected", "Adult", "gender", "AUC")
    assert isinstance(share, Estimate)
    assert share.value == (adjusted <= 0.05).mean()
    assert any("COMPAS gender: Female \u2212 Male" in note for note in table.notes)


def test_every_method_and_metric_of_both_data_sets_is_in_the_table_and_tests_differ_in_their_looks(
    inputs: Inputs,
) -> None:
    table = build("table_methods", inputs)
    assert len(table.rows) == 2 * 2 * 12
    assert len(table.columns) == 3 + 5 * 5
    assert all(cell != "" for row in table.rows for cell in row.cells)
    for attribute in ("color", "marker"):
        assert len({str(getattr(s, attribute)) for s in TESTS.values()}) == len(TESTS)


def test_a_reduced_run_says_so_on_every_artefact() -> None:
    small = inputs_of("permutation_tests", scale="laptop", simulations=500)
    for name, simulations in (("table_1", "10,000"), ("figure_levels", "4,000")):
        stamp = build(name, small).stamp
        assert stamp.lines()[0].startswith("Laptop scale")
        assert stamp.lines()[0].endswith("1 setting differs from the paper")
        text = " ".join(departures(stamp.reductions))
        assert f"simulations 500 (published: {simulations})" in text
        assert "None" not in text


# The list of published numbers, the artefacts and the comparison say the same.


STUDY = "permutation_tests"


def test_simulated_rates_are_compared_by_their_own_counts(published: pd.DataFrame) -> None:
    """The predictive check of 7,508 of 10,000 given our share of the simulations that were run."""
    small = inputs_of("permutation_tests", scale="laptop", simulations=500)
    line = compared(small, published).query("row == 'Uncorrelated' and column == 'FairTest'").iloc[0]
    assert (line["our_n"], line["verdict"]) == (500, "agrees")
    events = round(line["ours"] * 500)
    predicted = betabinom(10_000, events + 1, 500 - events + 1)
    assert line["p"] == pytest.approx(2 * min(predicted.cdf(7508), predicted.sf(7507)))
    assert printed(line.to_dict(), "published") == "7,508 of 10,000"


def test_fewer_simulations_widen_the_test_but_do_not_forbid_it(published: pd.DataFrame) -> None:
    """What is off by .1 differs with 500 simulations, and the configured number itself is not comparable."""
    small = inputs_of("permutation_tests", scale="laptop", simulations=500)
    rows = small.rows.copy()
    chosen = (rows["case"] == "uncorrelated") & (rows["test"] == "fairtest") & (rows["statistic"] == "rejection_rate")
    rows.loc[chosen, "value"] = 0.85
    moved = Inputs(STUDY, "laptop", rows, small.config, small.datasets, {}, small.classifiers)
    table = compared(moved, published).set_index(["row", "column"])
    assert table.loc[("Uncorrelated", "FairTest"), "verdict"] == "differs"
    assert table.loc[("Table 1", "simulations"), "verdict"] == "not comparable"
    assert "simulations 500 (published: 10,000)" in table.loc[("Table 1", "simulations"), "why"]


def test_a_lost_number_shows_ours_without_a_verdict(published: pd.DataFrame, inputs: Inputs) -> None:
    table = compared(inputs, published).set_index(["row", "column"])
    lost = table.loc[("Adult", "test AUC")]
    everyone = inputs.select(block="auc", dataset="adult_all", statistic="auc")
    expected = everyone.loc[everyone["attribute"].isna(), "value"]
    assert lost["ours"] == pytest.approx(expected.mean())
    assert lost["our_std"] == pytest.approx(expected.std())
    assert (lost["verdict"], np.isnan(lost["p"])) == ("published value missing", True)
    assert printed(lost.to_dict(), "published") == "\u2014"
    assert printed(lost.to_dict(), "ours").endswith("(20)")
    assert table.loc[("Figure 1", "rows of A"), "ours"] == 1000
