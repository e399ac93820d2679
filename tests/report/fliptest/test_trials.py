"""Where the study's numbers are read from, and the lines of its transparency reports."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pipeline.report import words as w
from pipeline.report.fliptest import bars, trials, which_map
from pipeline.report.fliptest.facts import claims
from pipeline.report.fliptest.trials import Place
from pipeline.report.fliptest.validation import Validated, validated
from pipeline.report.fliptest.which_map import Entry, entries, verdicts
from pipeline.report.inputs import Inputs, identified
from tests.report.studies import build

HIRING = ("hiring", "hiring", "given", "wgan")
SIDES = (("image", "source"), ("target", "target"))
LAW = ("law", "law", "logistic", "wgan")
METHODS = ("methods", "adult", "baseline", "exact", w.EVERYONE, "race")


def test_every_audit_of_flipsets_is_found_with_its_label_and_attribute(inputs: Inputs) -> None:
    given = {place.given for place in trials.places(inputs, block="ssl")}
    assert given == set(w.GIVEN)
    attributes = {place.attribute for place in trials.places(inputs, block="methods")}
    assert attributes == {"sex", "race"}
    assert [p.transport for p in trials.places(inputs, block="law", method="logistic")] == [
        "exact", "wgan", "counterfactual",
    ]  # fmt: skip


@pytest.mark.parametrize("flipset", [w.POSITIVE, w.NEGATIVE])
@pytest.mark.parametrize("direction", [w.FORWARD, w.REVERSE])
def test_the_members_of_the_first_trial_are_as_many_as_its_rows_say(
    flipset: str, direction: str, inputs: Inputs
) -> None:
    for names in (HIRING, METHODS):
        place = replace(Place(inputs, *names), direction=direction)
        first, sizes = place.first, place.values(flipset=flipset, statistic="size")
        assert first.members(flipset).sum() == sizes.iloc[0]
        assert place.estimate("size", flipset).value == pytest.approx(sizes.mean())
        changed = first.decision[first.members(flipset)] - first.decision_image[first.members(flipset)]
        assert (changed == (1 if flipset == w.POSITIVE else -1)).all()


def test_the_arrays_are_those_of_the_attribute_that_is_asked_for(inputs: Inputs) -> None:
    by_race, by_sex = (replace(Place(inputs, *METHODS), attribute=a) for a in ("race", "sex"))
    assert len(by_race.first.decision) == by_race.values(statistic="n_source").iloc[0]
    assert len(by_race.first.decision) != len(by_sex.first.decision)


def test_an_absent_audit_is_named(inputs: Inputs) -> None:
    with pytest.raises(ValueError, match=r"there is no audit of Place\(block='hiring'.*'absent'"):
        assert Place(inputs, *HIRING[:3], "absent").first
    with pytest.raises(ValueError, match="missing is transport absent"):
        trials.places(inputs, transport="absent")
    with pytest.raises(ValueError, match=r"expected one audit of \{'block': 'law'\}, found"):
        trials.only(inputs, block="law")


def test_shifts_of_features_that_nobody_scaled_are_in_the_audits_units(inputs: Inputs) -> None:
    law = Place(inputs, *LAW)
    units = law.units
    assert units["sex=Female"] == 1
    assert units["LSAT"] != 1
    report = law.report(w.NEGATIVE)
    assert {line.feature for line in report} == {"LSAT", "UGPA", "sex=Female", "sex=Male"}, "not what defines a group"
    for one in report:
        own = law.values(flipset=w.NEGATIVE, feature=one.feature, statistic=trials.MEAN)
        np.testing.assert_allclose(one.trials, own / units[one.feature])


def test_a_line_is_the_mean_over_the_trials_with_an_interval_over_maps_and_people(inputs: Inputs) -> None:
    """The wgan's maps on the hiring data, whose trials draw people of their own: mean -+ t sqrt(s^2 / 3)."""
    hiring = Place(inputs, *HIRING)
    rows = inputs.select(**hiring.setting(flipset=w.POSITIVE, feature="hair_length"))
    (own,) = (one for one in hiring.report(w.POSITIVE) if one.feature == "hair_length")
    every = {name: rows.loc[rows["statistic"] == name, "value"].to_numpy(float) for name in rows["statistic"].unique()}
    value, low, high = (every[f"mean_shift{end}"] for end in ("", "_ci_low", "_ci_high"))
    np.testing.assert_allclose(np.sort(own.trials), np.sort(value))
    assert own.value == pytest.approx(value.mean())
    people = (((high - low) / (2 * stats.norm.ppf(0.975))) ** 2).mean()
    half = stats.t.ppf(0.975, 2) * np.sqrt(max(value.var(ddof=1), people) / 3)
    assert (own.low, own.high) == (pytest.approx(own.value - half), pytest.approx(own.value + half))
    (sign,) = (one for one in hiring.report(w.POSITIVE, trials.SIGN) if one.feature == "hair_length")
    assert -1 <= sign.low <= sign.high <= 1
    assert own.p == pytest.approx(min(1, 2 * np.median(every["mean_shift_p_adjusted"])))


@pytest.mark.parametrize("ranking", [trials.MEAN, trials.SIGN])
@pytest.mark.parametrize("names", [HIRING, LAW, METHODS])
def test_bars_are_sorted_by_their_length_and_so_is_the_audit(
    names: tuple[str, ...], ranking: str, inputs: Inputs
) -> None:
    """Rank, bar and the audit's own rank are in one unit; the shift of LSAT is longer in points than in deviations."""
    place = Place(inputs, *names)
    for flipset in (w.POSITIVE, w.NEGATIVE):
        report = place.report(flipset, ranking)
        lengths = [abs(one.value) for one in report]
        assert lengths == sorted(lengths, reverse=True)
        assert [one.rank for one in report] == [1 + sum(other > own for other in lengths) for own in lengths]
        rows = inputs.select(**place.setting(flipset=flipset, repetition=0))
        rank = rows[rows["statistic"] == trials.RANKS[ranking]].set_index("feature")["value"].astype(float)
        first = {one.feature: abs(one.trials[0]) for one in report}
        for feature, length in first.items():
            if np.isfinite(length):
                assert rank[feature] == 1 + sum(other > length for other in first.values())


def test_an_empty_flipset_has_no_lines(inputs: Inputs) -> None:
    law = Place(inputs, *LAW)
    assert law.estimate("size", w.POSITIVE).value == 0
    assert law.report(w.POSITIVE) == []
    assert trials.leading([]) is None


def test_failed_maps_are_said_but_not_of_counterfactuals(inputs: Inputs) -> None:
    rows = inputs.rows.copy()
    failed = (rows["statistic"] == "healthy") & (rows["block"] == "law") & (rows["repetition"] == 1)
    rows["value"] = rows["value"].mask(rows["statistic"] == "healthy", 1.0).mask(failed, 0.0)
    some = replace(inputs, rows=rows)
    hiring, law, causal = (Place(some, *names) for names in (HIRING, LAW, (*LAW[:3], "counterfactual")))
    (note,) = bars.health([law, causal, hiring])
    assert note.endswith("WGAN 1 of 3.")
    assert [bars.sound(place) for place in (law, causal)] == ["2 of 3", "\u2014"]
    assert bars.health([hiring]) == ()


def test_naming_the_labels_adds_a_column_and_changes_no_text(inputs: Inputs) -> None:
    texts = inputs.rows.drop(columns="given").astype({"feature": object, "flipset": object})
    found = identified(texts)
    assert (found["given"] == inputs.rows["given"].to_numpy()).all()
    for column in texts:
        same, other = (rows[column].astype(object).where(rows[column].notna(), None) for rows in (found, texts))
        assert same.equals(other), column
    assert identified(found) is found


def test_unknown_names_speak_for_themselves() -> None:
    assert w.dataset_label("new_data") == "New data"
    assert w.MAPS["brand_new"].label == "brand new"
    assert w.maps_in(["zeta", "wgan", "alpha", "exact", "wgan"]) == ["exact", "wgan", "alpha", "zeta"]
    assert w.feature_label("capital-gain", "adult") == "capital-gain"
    assert w.feature_label("age", "ssl") != w.feature_label("age", "adult")


def test_a_flipset_is_named_by_both_decisions() -> None:
    assert w.flipset_label("hiring", w.POSITIVE, "Female") == "women hired, counterparts not hired"
    assert w.flipset_label("hiring", w.NEGATIVE, "Male") == "men not hired, counterparts hired"
    assert w.flipset_label("new", w.NEGATIVE, "A") == "A decided against, counterparts decided for"


def test_missing_columns_mean_everyone(inputs: Inputs) -> None:
    rows = inputs.rows.drop(columns=["given", "given_label"])
    assert set(replace(inputs, rows=rows).rows["given"]) == {w.EVERYONE}
    assert pd.isna(inputs.rows["given_label"]).any()


# The verdict on maps follows from the numbers, whichever they are.


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
    kinds = ((w.WGAN, 0.1), (w.ENTROPIC, 0.11), (w.STOCHASTIC, 0.21))
    text = first(*(entry(kind, flips=[at - 0.02, at, at, at + 0.02]) for kind, at in kinds))
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
    places = {"repetition": np.repeat(range(3), 2), "point": [which_map.ONES, which_map.ZEROS] * 3}
    rows = pd.DataFrame({"feature": "1", **places, "value": 0.0})
    assert which_map.errors(rows).tolist() == pytest.approx([0.5**0.5] * 3)
    assert which_map.variances(which_map.images(rows, which_map.ZEROS)).tolist() == [0.0]
    near = rows.assign(value=rows["point"].map(which_map.POINTS) + np.resize([0.1, -0.1], 6))
    assert which_map.errors(near).tolist() == pytest.approx([0.1] * 3)


def test_every_kind_is_validated_on_every_data_set_that_the_wgan_is(inputs: Inputs) -> None:
    found = validated(inputs)
    for dataset in (w.HIRING, w.SSL, w.LAW):
        kinds = {one.transport for one in found if one.dataset == dataset and one.given == w.EVERYONE}
        assert {w.WGAN, w.STOCHASTIC, w.ENTROPIC} <= kinds, dataset


def test_the_table_holds_validation_decisions_and_the_known_map(made: Any, inputs: Inputs) -> None:
    table = made["table_maps"]
    expected = Validated(inputs, w.HIRING, w.EVERYONE, w.WGAN).overall("ks_max")
    assert table.cell("largest KS", "Lipton: Dem Parity", "WGAN").value == pytest.approx(expected.mean())
    place = trials.only(inputs, dataset=w.IDENTICAL, transport=w.WGAN)
    sizes = [place.counts[flipset, "size"] for flipset in w.FLIPSETS]
    people = place.counts["", "n_source"]
    shares = 100 * (sizes[0] + sizes[1]) / people
    assert table.cell("flips", "Identical distributions", "WGAN").value == pytest.approx(shares.mean())
    assert table.cell("flips", "Lipton: Dem Parity", "WGAN") is None
    settings = [row.labels[0] for row in table.rows if row.labels[0].startswith("Normal")]
    assert list(dict.fromkeys(settings)) == [
        "Normal, 1 feature", "Normal, 5 features", "Normal, 20 features", "Normal, 5 features, r = 0.5",
        "Normal, 20 features, r = 0.5",
    ]  # fmt: skip


def test_positive_decisions_are_compared_as_shares_of_either_group(inputs: Inputs) -> None:
    one = next(e for e in entries(inputs) if e.experiment == "Arrests" and e.transport == w.WGAN)
    values = trials.only(inputs, dataset=w.ARRESTS, transport=w.WGAN).counts
    image, target = (values["", f"positives_{end}"] / values["", f"n_{of}"] for end, of in SIDES)
    assert one.values["decisions"].tolist() == pytest.approx((100 * (image - target)).tolist())


def with_facts(inputs: Inputs, transport: str, dataset: str, **facts: list[float]) -> Inputs:
    """The same with other facts of one kind of map between the groups of a data set."""
    maps = {
        key: replace(one, facts={**one.facts, **{name: np.array(values) for name, values in facts.items()}})
        if (one.transport, one.dataset) == (transport, dataset)
        else one
        for key, one in inputs.transports.items()
    }
    return replace(inputs, transports=maps)


def test_trials_whose_training_failed_are_counted(inputs: Inputs) -> None:
    facts: dict[str, list[float]] = {"max_ks": [0.1, 0.1, 1.0], "diverged": [0, 0, 1], "selected_step": [1000] * 3}
    table = build("table_training", with_facts(inputs, w.WGAN, w.HIRING, **facts))
    row = ("Lipton: Dem Parity", "WGAN", "women to men")
    assert (table.cell("healthy", *row), table.cell("kept step", *row)) == ("2 of 3", "1,000")
    assert table.cell("largest KS", *row).value == pytest.approx((0.1 + 0.1 + 1.0) / 3)
    assert ("Lipton: Dem Parity", "WGAN", "men to women") in [line.labels for line in table.rows]
    exact = ("Lipton: Dem Parity", "exact transport", "women to men")
    assert table.cell("healthy", *exact) is None


def test_the_sampler_of_the_causal_model_is_told_by_its_worst_coefficient(inputs: Inputs) -> None:
    facts = {"r_hat": [1.01, 1.2], "effective_size": [90.0, 300.0], "divergences": [0.0, 3.0]}
    table = build("table_training", with_facts(inputs, w.COUNTERFACTUAL, w.LAW, **facts))
    row = ("Law School", "causal counterfactual", "black applicants to white applicants")
    assert [table.cell(name, *row) for name in ("R-hat", "effective size", "divergences")] == [1.2, 90.0, 3.0]


# The paper's claims in words hold or not by the rows.


def test_weights_are_compared_by_a_standard_deviation_of_each(inputs: Inputs) -> None:
    """.1 a point of LSAT against .9 a point of GPA: some five points against half a point a standard deviation."""
    key = "law/logistic"
    names = inputs.datasets["law"].feature_names
    coef = np.zeros((2, 1, len(names)))
    coef[..., names.index("LSAT")], coef[..., names.index("UGPA")] = 0.1, 0.9
    coef[0, 0, names.index("race=Black")], coef[1, 0, names.index("race=Black")] = -1, 1
    parts = {**inputs.classifiers[key].parameters, "coef": coef, "weight": np.ones((2, 1))}
    changed = {**inputs.classifiers, key: replace(inputs.classifiers[key], parameters=parts)}
    rows = pd.concat(claims(replace(inputs, classifiers=changed)), ignore_index=True)
    black = rows[(rows["statistic"] == "weight_has_sign") & (rows["feature"] == "race=Black")]
    assert black["value"].tolist() == [1.0, 0.0]
    scale = inputs.datasets["law"].deviations
    outweighs = 0.1 * scale[names.index("LSAT")] > 0.9 * scale[names.index("UGPA")]
    assert rows.loc[rows["statistic"] == "lsat_outweighs_gpa", "value"].tolist() == [float(outweighs)] * 2


def test_subgroups_are_weaker_where_none_has_a_larger_correlation(inputs: Inputs) -> None:
    rows = inputs.rows.astype({"context": object})
    here = (rows["statistic"] == "correlation") & (rows["dataset"] == w.ARRESTS) & (rows["part"] == "held out")
    for inner, expected in ((-0.1, 1.0), (-0.9, 0.0)):
        values = np.where(rows.loc[here, "context"] == "all rows", 0.3, inner)
        changed = rows.assign(value=rows["value"].mask(here, pd.Series(values, index=rows.index[here])))
        found = pd.concat(claims(replace(inputs, rows=changed)), ignore_index=True)
        arrests = found[(found["statistic"] == "weaker_in_all_subgroups") & (found["dataset"] == w.ARRESTS)]
        assert len(arrests) > 0
        assert set(arrests["value"]) == {expected}


def test_stability_is_compared_in_each_distribution(inputs: Inputs) -> None:
    """Exact maps that send everybody ever nearer to 0 and vary; a GAN that stays, but for the largest distribution."""
    rows = inputs.rows.copy()
    images = rows["statistic"] == "image"
    dimension = pd.to_numeric(rows["dimension"])
    start = rows["point"].astype(object).map(which_map.POINTS)
    wave = rows["repetition"] - rows.loc[images, "repetition"].unique().mean()
    exact, gan = images & (rows["transport"] == w.EXACT), images & (rows["transport"] == w.WGAN)
    rows.loc[exact, "value"] = (start - 0.01 * dimension * start + 0.1 * wave)[exact]
    rows.loc[gan, "value"] = (start + np.where(dimension == 20, 0.5, 0.01) * wave)[gan]
    found = pd.concat(claims(replace(inputs, rows=rows)), ignore_index=True)
    steadier = found.loc[found["statistic"] == "steadier_than_exact", "value"]
    assert steadier.tolist() == [1.0, 1.0, 0.0, 1.0, 0.0]
    # Half a wave against a tenth: twenty-five times the variance.
    widest = found[(found["statistic"] == "log_variance_over_exact") & (found["dimension"] == 20)]
    assert widest["value"].to_numpy() == pytest.approx(np.log(25.0))
    nearer = found[found["statistic"] == "distance_beyond_exact"]
    assert nearer["value"].to_numpy() == pytest.approx(-0.01 * nearer["dimension"].to_numpy(float), abs=1e-9)
    assert found.loc[found["statistic"] == "regression_grows", "value"].tolist() == [1.0]
