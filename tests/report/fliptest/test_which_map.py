"""The verdict on maps follows from the numbers, whichever they are."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.report import words as w
from pipeline.report.artefacts import Artefact
from pipeline.report.fliptest import stability, trials
from pipeline.report.fliptest.validation import Validated, validated
from pipeline.report.fliptest.which_map import Entry, entries, verdicts
from pipeline.report.inputs import Inputs
from pipeline.report.table import Table


def entry(transport: str, healthy: tuple[bool, ...] = (), experiment: str = "A", **values: list[float]) -> Entry:
    """A kind of map with each measure by trial; ``largest_KS`` for "largest KS"."""
    series = {name.replace("_", " "): pd.Series(found) for name, found in values.items()}
    return Entry(experiment, transport, series, pd.Series(healthy, dtype=bool))


def first(*listed: Entry) -> str:
    """The sentence that counts first places."""
    return verdicts(listed)[0]


def test_first_is_what_is_nearest_to_the_ideal_of_each_measure() -> None:
    text = first(
        entry(w.WGAN, largest_KS=[0.3], cost_ratio=[0.4], known_map=[0.2]),
        entry(w.ENTROPIC, largest_KS=[0.1], cost_ratio=[1.3], known_map=[0.9]),
    )
    assert "largest KS: entropic, debiased 1 of 1" in text
    assert "cost over exact transport's: entropic, debiased 1 of 1" in text
    assert "error where the map is known: WGAN 1 of 1" in text
    assert "flips" not in text
    assert verdicts([entry(w.WGAN, largest_KS=[0.3])]) == ()


def test_a_measure_counts_both_where_trials_cannot_tell_them_apart() -> None:
    """.1 +- .02 and .11 +- .02 in four trials are .01 apart, with a standard error of .014; .2 is further."""
    near, also = np.array([0.08, 0.1, 0.1, 0.12]), np.array([0.09, 0.11, 0.11, 0.13])
    text = first(
        entry(w.WGAN, flips=list(near)),
        entry(w.ENTROPIC, flips=list(also)),
        entry(w.STOCHASTIC, flips=list(also + 0.1)),
    )
    assert "flips between equal groups: WGAN 1 and entropic, debiased 1 of 1" in text


def test_failed_trials_and_counterfactuals_win_nothing() -> None:
    collapsed = entry(w.WGAN, (False, False), largest_KS=[0.01, 0.01])
    causal = entry(w.COUNTERFACTUAL, (True, True), largest_KS=[0.0, 0.0])
    sound, worse = (entry(k, (True, True), largest_KS=[v, v]) for k, v in ((w.ENTROPIC, 0.1), (w.STOCHASTIC, 0.2)))
    text = first(collapsed, causal, sound, worse)
    assert "largest KS: entropic, debiased 1 of 1" in text
    assert "WGAN" not in text
    assert verdicts([collapsed, causal, sound]) == ()
    half = entry(w.WGAN, (True, False), largest_KS=[0.15, 0.0])
    assert "largest KS: entropic, debiased 1 of 1" in first(half, sound)


def test_no_map_is_said_to_lead_by_all_where_each_leads_by_something() -> None:
    steady = entry(w.WGAN, flips=[0.6], known_map=[0.1])
    close = entry(w.ENTROPIC, flips=[3.3], known_map=[0.3], experiment="A")
    reach = [entry(w.WGAN, experiment="B", largest_KS=[0.1]), entry(w.ENTROPIC, experiment="B", largest_KS=[0.02])]
    _, conclusion, noise = verdicts([steady, close, *reach])
    assert conclusion == (
        "No kind of map is in front by every measure: WGAN by error where the map is known and flips between equal "
        "groups; entropic, debiased by largest KS."
    )
    assert noise == "Flipped between equal groups: WGAN 0.60 % and entropic, debiased 3.30 % of the people."
    assert verdicts(reach)[1] == "In front by every measure: entropic, debiased."


def test_a_map_that_leads_everybody_to_one_point_does_not_vary_and_is_far_from_the_known_map() -> None:
    """Everybody to 0: variance 0 at 0; error 1 at 1, 0 at 0, root mean square .707. A map that errs by .1 is nearer."""
    rows = pd.DataFrame(
        [
            {"repetition": r, "feature": "1", "point": point, "value": 0.0}
            for r in range(3)
            for point in (stability.ONES, stability.ZEROS)
        ]
    )
    assert stability.errors(rows).tolist() == pytest.approx([0.5**0.5] * 3)
    assert stability.variances(stability.images(rows, stability.ZEROS)).tolist() == [0.0]
    near = rows.assign(value=rows["point"].map(stability.POINTS) + np.resize([0.1, -0.1], 6))
    assert stability.errors(near).tolist() == pytest.approx([0.1] * 3)


def test_every_kind_is_validated_on_every_data_set_that_the_wgan_is(inputs: Inputs) -> None:
    found = validated(inputs)
    for dataset in (w.HIRING, w.SSL, w.LAW):
        kinds = {one.transport for one in found if one.dataset == dataset and one.given == w.EVERYONE}
        assert {w.WGAN, w.STOCHASTIC, w.ENTROPIC} <= kinds, dataset


def test_the_table_holds_validation_decisions_and_the_known_map(made: dict[str, Artefact], inputs: Inputs) -> None:
    table, study = made["table_maps"], inputs
    assert isinstance(table, Table)
    cell: Any = table.cell("largest KS", "Lipton: Dem Parity", "WGAN")
    expected = Validated(study, w.HIRING, w.EVERYONE, w.WGAN).overall("ks_max")
    assert cell.value == pytest.approx(expected.mean())
    place = next(p for p in trials.places(study, dataset=w.IDENTICAL) if p.transport == w.WGAN)
    sizes = [place.counts[flipset, "size"] for flipset in w.FLIPSETS]
    people = place.counts["", "n_source"]
    cell = table.cell("flips", "Identical distributions", "WGAN")
    assert cell.value == pytest.approx((100 * (sizes[0] + sizes[1]) / people).mean())
    assert table.cell("flips", "Lipton: Dem Parity", "WGAN") is None
    settings = [row.labels[0] for row in table.rows if row.labels[0].startswith("Normal")]
    assert list(dict.fromkeys(settings)) == [
        "Normal, 1 feature", "Normal, 5 features", "Normal, 20 features", "Normal, 5 features, r = 0.5",
        "Normal, 20 features, r = 0.5",
    ]  # fmt: skip


def test_positive_decisions_are_compared_as_shares_of_either_group(inputs: Inputs) -> None:
    study = inputs
    one = next(e for e in entries(study) if e.experiment == "Arrests" and e.transport == w.WGAN)
    place = next(p for p in trials.places(study, dataset=w.ARRESTS) if p.transport == w.WGAN)
    values = place.counts
    expected = 100 * (
        values["", "positives_image"] / values["", "n_source"] - values["", "positives_target"] / values["", "n_target"]
    )
    assert one.values["decisions"].tolist() == pytest.approx(expected.tolist())


def with_facts(inputs: Inputs, transport: str, dataset: str, **facts: list[float]) -> Inputs:
    """The same with other facts of one kind of map between the groups of a data set."""
    maps = {
        key: replace(one, facts={**one.facts, **{name: np.array(values) for name, values in facts.items()}})
        if (one.transport, one.dataset) == (transport, dataset)
        else one
        for key, one in inputs.transports.items()
    }
    return replace(inputs, transports=maps)


def test_trials_whose_training_failed_are_counted(inputs: Inputs, build: Any) -> None:
    facts: dict[str, list[float]] = {"max_ks": [0.1, 0.1, 1.0], "diverged": [0, 0, 1], "selected_step": [1000] * 3}
    table = build("table_training", with_facts(inputs, w.WGAN, w.HIRING, **facts))
    row = ("Lipton: Dem Parity", "WGAN", "women to men")
    assert (table.cell("healthy", *row), table.cell("kept step", *row)) == ("2 of 3", "1,000")
    assert table.cell("largest KS", *row).value == pytest.approx((0.1 + 0.1 + 1.0) / 3)
    assert ("Lipton: Dem Parity", "WGAN", "men to women") in [line.labels for line in table.rows]
    exact = ("Lipton: Dem Parity", "exact transport", "women to men")
    assert table.cell("healthy", *exact) is None


def test_the_sampler_of_the_causal_model_is_told_by_its_worst_coefficient(inputs: Inputs, build: Any) -> None:
    facts = {"r_hat": [1.01, 1.2], "effective_size": [90.0, 300.0], "divergences": [0.0, 3.0]}
    table = build("table_training", with_facts(inputs, w.COUNTERFACTUAL, w.LAW, **facts))
    row = ("Law School", "causal counterfactual", "black applicants to white applicants")
    assert [table.cell(name, *row) for name in ("R-hat", "effective size", "divergences")] == [1.2, 90.0, 3.0]
