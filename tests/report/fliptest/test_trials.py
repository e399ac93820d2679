"""Where the study's numbers are read from, and the lines of its transparency reports."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairness_audits.audits.fliptest import bars
from pipeline.report import labels as w
from pipeline.report.fliptest import flipset_panels, trials, which_map
from pipeline.report.fliptest.facts import _rates, claims
from pipeline.report.fliptest.trials import AuditedMap
from pipeline.report.fliptest.validation import Validated, validated
from pipeline.report.inputs import Inputs, identified
from tests.report.studies import build

HIRING = ("hiring", "hiring", "given", "wgan")
LAW = ("law", "law", "logistic", "wgan")
METHODS = ("methods", "adult", "baseline", "exact", w.EVERYONE, "race")


def test_every_audit_of_flipsets_is_found_with_its_label_and_attribute(inputs: Inputs) -> None:
    given = {place.given for place in trials.places(inputs, block="ssl")}
    assert given == set(w.CONDITIONS)
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
    for place in (AuditedMap(inputs, *HIRING), *trials.places(inputs, block="ssl")):
        place = replace(place, direction=direction)
        first, sizes = place.first, place.values(flipset=flipset, statistic="size")
        assert first.members(flipset).sum() == sizes.iloc[0]
        assert place.estimate("size", flipset).value == pytest.approx(sizes.mean())
        changed = first.decision[first.members(flipset)] - first.decision_image[first.members(flipset)]
        assert (changed == (1 if flipset == w.POSITIVE else -1)).all()


def test_the_arrays_are_those_of_the_attribute_and_label_that_are_asked_for(inputs: Inputs) -> None:
    for attribute in ("race", "sex"):
        key = f"methods/adult/baseline/fliptest+exact@attribute={attribute}@source=None"
        assert replace(AuditedMap(inputs, *METHODS), attribute=attribute).arrays is inputs.audits[key].arrays
    places = trials.places(inputs, block="ssl")
    sizes = [len(place.first.decision) for place in places]
    assert sizes == [place.values(statistic="n_source").iloc[0] for place in places]
    assert len(set(sizes)) == len(places) > 1


def test_an_absent_audit_is_named(inputs: Inputs) -> None:
    with pytest.raises(ValueError, match=r"there is no audit of AuditedMap\(block='hiring'.*'absent'"):
        assert AuditedMap(inputs, *HIRING[:3], "absent").first
    with pytest.raises(ValueError, match="missing is transport absent"):
        trials.places(inputs, transport="absent")
    with pytest.raises(ValueError, match=r"expected one audit of \{'block': 'law'\}, found"):
        trials.only(inputs, block="law")


def test_shifts_of_features_that_nobody_scaled_are_in_the_audits_units(inputs: Inputs) -> None:
    law = AuditedMap(inputs, *LAW)
    units = law.units
    assert units["sex=Female"] == 1
    assert units["LSAT"] != 1
    report = law.report(w.NEGATIVE)
    assert {line.feature for line in report} == {"LSAT", "UGPA", "sex=Female", "sex=Male"}, "not what defines a group"
    for one in report:
        own = law.values(flipset=w.NEGATIVE, feature=one.feature, statistic=bars.MEAN)
        np.testing.assert_allclose(one.trials, own / units[one.feature])


def test_a_line_is_the_mean_over_the_trials_with_an_interval_over_maps_and_people(inputs: Inputs) -> None:
    """The wgan's maps on the hiring data, whose trials draw people of their own: mean -+ t sqrt(s^2 / 3)."""
    hiring = AuditedMap(inputs, *HIRING)
    rows = inputs.select(**hiring.setting(flipset=w.POSITIVE, feature="hair_length"))
    (own,) = (one for one in hiring.report(w.POSITIVE) if one.feature == "hair_length")
    every = {name: rows.loc[rows["statistic"] == name, "value"].to_numpy(float) for name in rows["statistic"].unique()}
    value, low, high = (every[f"mean_shift{end}"] for end in ("", "_ci_low", "_ci_high"))
    np.testing.assert_allclose(np.sort(own.trials), np.sort(value))
    assert own.value == pytest.approx(value.mean())
    people = (((high - low) / (2 * stats.norm.ppf(0.975))) ** 2).mean()
    half = stats.t.ppf(0.975, 2) * np.sqrt(max(value.var(ddof=1), people) / 3)
    assert (own.low, own.high) == (pytest.approx(own.value - half), pytest.approx(own.value + half))
    (sign,) = (one for one in hiring.report(w.POSITIVE, bars.SIGN) if one.feature == "hair_length")
    assert -1 <= sign.low <= sign.high <= 1


@pytest.mark.parametrize("ranking", [bars.MEAN, bars.SIGN])
@pytest.mark.parametrize("names", [HIRING, LAW, METHODS])
def test_bars_are_sorted_by_their_length_and_so_is_the_audit(
    names: tuple[str, ...], ranking: str, inputs: Inputs
) -> None:
    """Rank, bar and the audit's own rank are in one unit; the shift of LSAT is longer in points than in deviations."""
    place = AuditedMap(inputs, *names)
    for flipset in (w.POSITIVE, w.NEGATIVE):
        report = place.report(flipset, ranking)
        lengths = [abs(one.value) for one in report]
        assert lengths == sorted(lengths, reverse=True)
        rows = inputs.select(**place.setting(flipset=flipset, repetition=0))
        rank = rows[rows["statistic"] == bars.RANKS[ranking]].set_index("feature")["value"].astype(float)
        first = {one.feature: abs(one.trials[0]) for one in report}
        for feature, length in first.items():
            if np.isfinite(length):
                assert rank[feature] == 1 + sum(other > length for other in first.values())


def test_an_empty_flipset_has_no_lines(inputs: Inputs) -> None:
    law = AuditedMap(inputs, *LAW)
    assert law.estimate("size", w.POSITIVE).value == 0
    assert law.report(w.POSITIVE) == []
    assert trials.leading([]) is None


def test_failed_maps_are_said_but_not_of_counterfactuals(inputs: Inputs) -> None:
    rows = inputs.rows.copy()
    failed = (rows["statistic"] == "healthy") & (rows["block"] == "law") & (rows["repetition"] == 1)
    rows["value"] = rows["value"].mask(rows["statistic"] == "healthy", 1.0).mask(failed, 0.0)
    some = replace(inputs, rows=rows)
    hiring, law, causal = (AuditedMap(some, *names) for names in (HIRING, LAW, (*LAW[:3], "counterfactual")))
    (note,) = flipset_panels.health([law, causal, hiring])
    assert note.endswith("WGAN 1 of 3, left out.")
    sizes, shown = law.values(flipset=w.NEGATIVE, statistic="size"), law.report(w.NEGATIVE)
    assert law.estimate("size", w.NEGATIVE).value == pytest.approx(sizes[[0, 2]].mean())
    assert all((len(line.trials), len(line.left_out)) == (2, 1) for line in shown)
    assert not any(len(line.left_out) for line in hiring.report(w.POSITIVE))
    assert [flipset_panels.sound(place) for place in (law, causal)] == ["2 of 3", "\u2014"]
    assert flipset_panels.health([hiring]) == ()


def test_all_maps_count_if_most_of_them_fail(inputs: Inputs) -> None:
    rows = inputs.rows.copy()
    failed = (rows["statistic"] == "healthy") & (rows["block"] == "law") & (rows["repetition"] > 0)
    rows["value"] = rows["value"].mask(rows["statistic"] == "healthy", 1.0).mask(failed, 0.0)
    law = AuditedMap(replace(inputs, rows=rows), *LAW)
    assert law.included.all()
    (note,) = flipset_panels.health([law])
    assert note.endswith("WGAN 2 of 3.")


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


# Every kind of map by every measure.


def test_every_kind_is_validated_on_every_data_set_that_the_wgan_is(inputs: Inputs) -> None:
    found = validated(inputs)
    for dataset in (w.HIRING, w.SSL, w.LAW):
        kinds = {one.transport for one in found if one.dataset == dataset and one.given == w.EVERYONE}
        assert {w.WGAN, w.STOCHASTIC, w.ENTROPIC} <= kinds, dataset


def test_the_table_holds_validation_and_stability(inputs: Inputs) -> None:
    table = build("table_maps", inputs)
    expected = Validated(inputs, w.HIRING, w.EVERYONE, w.WGAN).overall("ks_max")
    assert table.cell("largest KS", "Lipton: Dem Parity", "WGAN").value == pytest.approx(expected.mean())
    settings = [row.cells[0] for row in table.rows if row.cells[0].startswith("Normal")]
    assert list(dict.fromkeys(settings)) == [
        "Normal, 1 feature", "Normal, 5 features", "Normal, 20 features", "Normal, 5 features, r = 0.5",
        "Normal, 20 features, r = 0.5",
    ]  # fmt: skip


# The paper's claims in words hold or not by the rows.


def test_flipsets_of_an_exact_map_differ_by_the_positive_decisions_of_equal_groups(inputs: Inputs) -> None:
    """Proposition 2. One more positive counterpart than the map has adds one."""
    rows = inputs.rows
    moved = (rows["statistic"] == "positives_target") & (rows["transport"] == w.EXACT)
    for changed, expected in ((rows, 0.0), (rows.assign(value=rows["value"] + moved), 1.0)):
        found = pd.concat(_rates(changed[changed["audit"] == trials.FLIPTEST]), ignore_index=True)
        net = found[(found["statistic"] == "net_less_positives") & (found["transport"] == w.EXACT)]
        assert set(net.loc[net["block"] == "hiring", "value"]) == {expected}
        assert set(net["block"]) == {"hiring", "identical", "arrests"}


def test_weights_are_compared_by_a_standard_deviation_of_each(inputs: Inputs) -> None:
    """.1 a point of LSAT against .9 a point of GPA: some five points against half a point a standard deviation."""
    key = "law/logistic"
    names = inputs.datasets["law"].feature_names
    coef = np.zeros((2, 1, len(names)))
    coef[..., names.index("LSAT")], coef[..., names.index("UGPA")] = 0.1, 0.9
    parts = {**inputs.classifiers[key].parameters, "coef": coef, "weight": np.ones((2, 1))}
    changed = {**inputs.classifiers, key: replace(inputs.classifiers[key], parameters=parts)}
    rows = pd.concat(claims(replace(inputs, classifiers=changed)), ignore_index=True)
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
    start = (rows["point"] == which_map.ONES).astype(float)
    wave = rows["repetition"] - rows.loc[images, "repetition"].unique().mean()
    exact, gan = images & (rows["transport"] == w.EXACT), images & (rows["transport"] == w.WGAN)
    rows.loc[exact, "value"] = (start - 0.01 * dimension * start + 0.1 * wave)[exact]
    rows.loc[gan, "value"] = (start + np.where(dimension == 20, 0.5, 0.01) * wave)[gan]
    found = pd.concat(claims(replace(inputs, rows=rows)), ignore_index=True)
    compared = found[found["statistic"] == "log_variance_over_exact"]
    for _, at_point in compared.groupby("point"):
        assert (at_point["value"] < 0).tolist() == [True, True, False, True, False]
    # Half a wave against a tenth: twenty-five times the variance.
    widest = compared[compared["dimension"] == 20]
    assert widest["value"].to_numpy() == pytest.approx(np.log(25.0))
    nearer = found[found["statistic"] == "distance_beyond_exact"]
    assert nearer["value"].to_numpy() == pytest.approx(-0.01 * nearer["dimension"].to_numpy(float), abs=1e-9)
    assert set(found.loc[(found["statistic"] == "oriented") & (found["transport"] != w.STOCHASTIC), "value"]) == {1.0}


def test_maps_that_mirror_a_feature_are_counted_and_not_averaged(inputs: Inputs) -> None:
    rows = inputs.rows.copy()
    images = rows["statistic"] == "image"
    start = (rows["point"] == which_map.ONES).astype(float)
    draws = rows.loc[images, "repetition"].unique()
    exact, gan = images & (rows["transport"] == w.EXACT), images & (rows["transport"] == w.WGAN)
    rows.loc[exact | gan, "value"] = (start + 0.1 * rows["repetition"])[exact | gan]
    mirrored = gan & (rows["repetition"] == draws[0]) & (rows["feature"] == "1")
    rows.loc[mirrored, "value"] = -start[mirrored]
    found = pd.concat(claims(replace(inputs, rows=rows)), ignore_index=True)
    of_gan = found[(found["statistic"] == "oriented") & (found["transport"] == w.WGAN)]
    assert (of_gan["value"] == (of_gan["repetition"] != 0)).all()
    ratios = found[found["statistic"] == "log_variance_over_exact"].dropna(subset="value")
    assert ratios["value"].to_numpy() == pytest.approx(0.0, abs=1e-9)
    assert (ratios["draws"] == len(draws) - 1).all()
