"""How the study finds its numbers: audits, checkpoints, groups, comparisons, what is absent and what is reduced."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from fairness_audits.audits.inference import wilson_interval
from fairness_audits.audits.robustness_bias.measures import Partition, by_level, counted
from fairness_audits.results.estimate import Estimate
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import (
    comparison,
    curves,
    facts,
    group_tables,
    heat_maps,
    initial_weights,
    regularizer,
    sign_agreement,
    stamps,
    study,
)
from pipeline.report.robustness_bias.sign_agreement import Comparison
from pipeline.report.robustness_bias.study import Audited
from pipeline.values import AuditResult


def audit(epochs: Sequence[int], sigma: Any = (0.5, -0.5), attack: str = w.DEEPFOOL, **more: Any) -> Audited:
    """An audit of one partition with these sigma at every epoch."""
    place = {"repetition": 0, "attack": attack, "partition": "class", "statistic": "sigma"}
    rows = [
        {**place, "epoch": epoch, "level": str(i), "denominator": d, "value": value + (d == w.CORRECT)}
        for epoch in epochs
        for i, value in enumerate(sigma)
        for d in w.DENOMINATORS
    ]
    result = AuditResult("robustness_bias", "digits", "standard", "bundled", pd.DataFrame(rows))
    one = Audited("k", study.NETWORKS, "digits", "alexnet", "digits", "digits/standard", {}, result)
    return replace(one, **more)


@pytest.mark.parametrize(
    ("epochs", "first", "middle", "last"),
    [
        ((1, 25, 50), 1, 25, 50),
        ((1, 2), 1, 1, 2),
        ((1,), None, None, 1),
        ((50,), None, None, 50),
        ((1, 50), 1, None, 50),
    ],
)
def test_checkpoints_are_told_apart_by_epoch(epochs: Any, first: Any, middle: Any, last: Any) -> None:
    """A checkpoint that is the last as well is no earlier one to compare with it."""
    one = audit(epochs)
    assert (one.epoch(w.FIRST), one.epoch(w.MIDDLE), one.epoch(w.LAST)) == (first, middle, last)
    assert one.sigmas(w.DEEPFOOL, w.FIRST).empty == (first is None)


def test_sigma_is_found_by_distance_moment_and_denominator() -> None:
    one = audit((1, 50))
    assert one.sigmas(w.DEEPFOOL).to_dict() == {("class", "0"): 0.5, ("class", "1"): -0.5}
    assert one.sigmas(w.DEEPFOOL, denominator=w.CORRECT).to_list() == [1.5, 0.5]
    assert one.sigmas(w.SMOOTHING).empty


def counting(one: Audited, statistic: str, **values: float) -> Audited:
    """The same with a count of the levels ``level_0``, ..., which has no denominator."""
    place = {"repetition": 0, "epoch": 1, "attack": w.DEEPFOOL, "partition": "class", "denominator": ""}
    counts = {"level": [name[-1] for name in values], "statistic": statistic, "value": list(values.values())}
    rows = pd.concat([one.result.rows, pd.DataFrame({**counts, **place})])
    return replace(one, result=replace(one.result, rows=rows))


def test_what_has_no_denominator_stands_in_both_tables() -> None:
    for denominator in w.DENOMINATORS:
        table = counting(audit((1,)), "failed", level_1=7).table(w.DEEPFOOL, denominator=denominator)
        assert table.loc[("class", "1"), "failed"] == 7
        assert np.isnan(table.loc[("class", "0"), "failed"])


def test_what_the_noise_leaves_no_radius_has_no_sigma_by_smoothing(inputs: Inputs) -> None:
    """VGG19 among others: their other distances stand, and a footnote says which are missing."""
    found = study.audited(inputs, study.NETWORKS, w.UTKFACE)
    (note,) = study.not_run(found)
    for one in found:
        lost = one.overall(w.SMOOTHING, "median_distance") == 0
        assert lost == (one.epochs[-1] in one.blind) == one.table(w.SMOOTHING).empty
        assert lost == (f"{w.NETWORKS[one.network]} on UTKFace" in note)
        assert not one.table(w.DEEPFOOL).empty
    assert note.startswith("No sigma by randomized smoothing for ")
    assert "VGG19 on UTKFace, " in note


def test_radii_of_which_nearly_all_are_the_largest_say_nothing(inputs: Inputs) -> None:
    """The network of the digits, under noise that none of its points feels."""
    (one,) = study.audited(inputs, study.NETWORKS, w.DIGITS)
    assert one.blind
    assert one.table(w.SMOOTHING).empty
    assert not one.table(w.DEEPFOOL).empty
    radii = np.tile(np.linspace(0, 1, 50), (len(one.epochs), 1))
    arrays = {f"distance_{w.SMOOTHING}": radii, f"tried_{w.SMOOTHING}": radii >= 0, "correct": radii >= 0}
    assert not replace(one, result=replace(one.result, arrays=arrays)).blind
    arrays[f"distance_{w.SMOOTHING}"] = np.maximum(radii, 0.7)
    assert replace(one, result=replace(one.result, arrays=arrays)).blind == {}
    arrays[f"distance_{w.SMOOTHING}"] = np.where(radii < 0.3, radii, 1)
    assert replace(one, result=replace(one.result, arrays=arrays)).blind == dict.fromkeys(
        one.epochs, "nearly all correctly classified points have the largest certifiable radius"
    )


def test_points_without_a_distance_and_radii_that_are_cut_off_are_counted(inputs: Inputs) -> None:
    """40 points of digit 0 with every second radius at its end, 40 of digit 1 with none, and 7 failed attacks."""
    (one,) = study.audited(inputs, study.NETWORKS, w.DIGITS)
    last, digit = one.epochs[-1:], np.repeat([0, 1], 40)
    radius = np.where((digit == 0) & (np.arange(80) % 2 == 0), 1.0, 0.5)
    distance = np.where(np.arange(80) < 7, np.nan, 1.0)
    arrays = {"correct": np.ones((1, 80), bool), "digit": digit}
    for name, values in ((w.SMOOTHING, radius), (w.CARLINI_WAGNER, distance)):
        arrays |= {f"distance_{name}": values[None], f"tried_{name}": np.ones((1, 80), bool)}
    rows = one.result.rows[one.result.rows["epoch"].isin(last)]
    made = replace(one, result=replace(one.result, rows=rows, arrays=arrays))
    failed, cut = study.incomplete([made], w.ESTIMATES)
    assert "Carlini-Wagner under UTK Classifier, 7 of 80" in failed
    assert "0 % to 50 % of the points" in cut
    assert study.incomplete([made], [w.DEEPFOOL, w.FMN]) == ()


def test_rows_and_arrays_say_the_same(inputs: Inputs) -> None:
    """sigma of the rows is that of the kept distances of the attacked points, to both denominators."""
    (one,) = study.audited(inputs, study.NETWORKS, w.UTKFACE, "utk_classifier")
    points = one.points
    for attack in (w.CARLINI_WAGNER, w.SMOOTHING):
        tried = points.tried[attack]
        budget = one.overall(attack, "budget")
        for denominator in w.DENOMINATORS:
            lengths = counted(points.distance[attack][tried], points.correct[tried], denominator)
            found = by_level(lengths, points.parted(w.GENDER, tried), budget)
            ours = one.sigmas(attack, denominator=denominator)
            assert ours[w.GENDER].to_list() == pytest.approx(found.sigma.tolist())


def test_blocks_and_networks_go_by_the_names_of_the_study(inputs: Inputs) -> None:
    found = study.audited(inputs)
    blocks = {study.LINEAR, study.NETWORKS, study.REGULARIZER, study.TRAININGS, study.FOLDS, study.PENALTIES}
    blocks |= {study.PRETRAINED}
    assert {one.block for one in found} == blocks
    here = [one.network for one in study.audited(inputs, study.NETWORKS, w.CIFAR10)]
    assert here == ["deep_cnn", "pyramidnet", *(name for name in w.NETWORKS if name in here[2:])], "its own come first"
    assert set(here[2:]) == set(w.CONVOLUTIONAL)
    assert [one.dataset for one in study.audited(inputs, study.LINEAR)] == list(w.IMAGES)


def test_the_remedy_is_read_off_the_reason() -> None:
    reason = (
        "adience has no twin and is made of fold_0_data.txt, aligned.tar.gz.\nfold_0_data.txt of 'adience' is nowhere "
        "to be had.\nWhat to do: get the file from https://example.org/Adience-data.html and put it into data/raw; or"
    )
    found = study.remedy(reason)
    assert found == "needs fold_0_data.txt, aligned.tar.gz, from https://example.org/Adience-data.html"
    assert study.remedy("x has no twin and is made of a.tar.\nasked for") == "needs a.tar"
    assert study.remedy("lost\n  for good") == "lost for good"


@pytest.mark.parametrize(
    ("accuracy", "images", "linear", "learned"),
    [
        (0.4, 4000, 0.3, True),
        (0.3, 4000, 0.3, True),
        (0.23, 4000, 0.3, False),
        (0.14, 4000, math.nan, False),
        (0.17, 4000, math.nan, True),
        (0.17, 40, math.nan, False),
        (math.nan, 0, 0.3, True),
    ],
)
def test_a_network_has_learned_beyond_the_largest_class_and_a_linear_model(
    accuracy: float, images: int, linear: float, learned: bool
) -> None:
    one = audit((1,), accuracy=accuracy, images=images, largest=0.1, linear=linear)
    assert one.learned is learned
    assert study.run([one]) == [one] * learned
    assert study.trained([one]) == [one]
    if not learned:
        (note,) = study.not_run([one])
        assert note.startswith("Left out, because the network did not learn: AlexNet on Digits (accuracy")
        assert "largest class 10.0 %" in note
        # The linear model itself is held against the largest class alone.
        assert replace(one, block=study.LINEAR).learned == (linear == 0.3)


def test_an_early_checkpoint_that_had_not_learned_has_no_sigma() -> None:
    # No better than the largest class; half as accurate as the last; less than half.
    for largest, first, there in ((0.4, 0.42, False), (0.1, 0.3, True), (0.1, 0.29, False)):
        known: dict[str, Any] = {"accuracy": 0.6, "images": 4000, "largest": largest, "linear": 0.6}
        one = audit((1, 50), curve={1: first, 50: 0.6}, **known)
        assert one.learned
        assert not one.sigmas(w.DEEPFOOL).empty
        assert one.sigmas(w.DEEPFOOL, w.FIRST).empty is not there
        assert not one.table(w.DEEPFOOL, w.FIRST, any_checkpoint=True).empty
        said = [heat_maps.left_out([one], w.DEEPFOOL, moment) for moment in (w.FIRST, w.LAST)]
        assert said == ["" if there else "AlexNet: not accurate enough", ""]
        assert heat_maps.left_out([one], w.SMOOTHING, w.LAST) == "AlexNet: not measured"


def test_a_group_of_too_few_points_has_counts_and_no_sigma() -> None:
    few = {"level_0": study.TOO_FEW - 1, "level_1": study.TOO_FEW}
    table = counting(audit((1,)), "n_correct", **few).table(w.DEEPFOOL)
    assert table["n_correct"].tolist() == [study.TOO_FEW - 1, study.TOO_FEW]
    assert table["sigma"].isna().tolist() == [True, False]


def test_a_curve_has_the_interval_of_its_share_at_each_budget() -> None:
    """Three of four members are further than 0.5; a level without members has no interval."""
    lengths = counted(np.array([0.4, 1.0, 2.0, 3.0, 0.1]), np.ones(5, bool), w.PAPER)
    group = curves.Group(lengths, Partition("class", ("a", "b", "none"), np.array([0, 0, 0, 0, 1])))
    for level, (share, n) in ((0, (0.75, 4)), (1, (0.0, 1))):
        band = group.bands(level, np.array([0.0, 0.5]))[0]
        assert band.shape == (2, 2)
        assert band[:, 1] == pytest.approx(wilson_interval(share, n, 0.95))
    assert np.isnan(group.bands(2, np.array([0.5]))[0]).all()


def of_notebooks(theirs: Sequence[float], ours: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """The rank and the sign agreement of our networks on classes named a, b, ... with the printed means."""
    settings = [f"dataset=cifar10; level={level}; statistic=sigma" for level, _ in zip("abcd", theirs, strict=True)]
    settings += [one.replace("cifar10", "cifar100_super") for one in settings]
    printed = pd.DataFrame({"artefact": comparison.NOTEBOOKS, "setting": settings, "value": [*theirs, 9, 8, 7, 6]})
    place = {"block": study.NETWORKS, "dataset": w.CIFAR10, "statistic": "sigma", "attack": w.SMOOTHING}
    place |= {"denominator": w.CORRECT, "partition": "class", "origin": "official"}
    rows = [
        {**place, "method": network, "repetition": k, "level": "abcd"[i], "value": value}
        for k, (network, values) in enumerate(ours.items())
        for i, value in enumerate(values)
    ]
    found = comparison.beside_notebooks(pd.DataFrame(rows), printed)
    return found[found["statistic"] != "sigma"].pivot(index="method", columns="statistic", values="value")


def test_a_network_is_held_against_the_mean_of_the_authors_networks_by_rank_and_sign() -> None:
    """The same order has 1 and the opposite order -1; a network without sigma of some class is excluded."""
    ours = {"alike": (-3.0, -1.0, 0.1, 9.0), "opposed": (4.0, 3.0, 2.0, 1.0), "short": (1.0,)}
    found = of_notebooks((-0.4, -0.3, 0.0, 0.7), ours)
    assert found["rank_with_notebooks"].to_dict() == pytest.approx({"alike": 1, "opposed": -1})
    assert found["sign_with_notebooks"].to_dict() == pytest.approx({"alike": 3 / 4, "opposed": 1 / 4})


def test_networks_in_the_notebooks_have_sigma_by_smoothing_and_every_network_its_first_accuracy() -> None:
    """AlexNet is in the notebooks for Adience only, and no network for the digits."""
    made = {
        (dataset, network): audit((1, 50), attack=w.SMOOTHING, dataset=dataset, network=network)
        for dataset in (w.ADIENCE, w.SUPER, w.DIGITS)
        for network in ("alexnet", "vgg19")
    }
    found = pd.DataFrame(facts._sigmas_of_notebooks(list(made.values())))
    assert {*zip(found["dataset"], found["method"], strict=True)} == {
        (w.ADIENCE, "alexnet"), (w.ADIENCE, "vgg19"), (w.SUPER, "vgg19"),
    }  # fmt: skip
    assert found.groupby(["dataset", "method"])["value"].apply(list).tolist() == [[1.5, 0.5]] * 3
    one = replace(made[w.SUPER, "vgg19"], accuracy=0.6, images=100, curve={1: 0.2, 50: 0.6})
    accuracies = {row["statistic"]: row["value"] for row in facts._by_network([one])}
    assert accuracies == {"accuracy": 0.6, "accuracy_first": 0.2}


def test_many_groups_are_in_the_order_of_their_mean_sigma_at_the_last_epoch() -> None:
    """Few groups keep the order of the data set, and groups without sigma are last."""
    count = heat_maps.MOST + 1
    groups = [("class", str(place)) for place in range(count)]
    last = np.full((5, 2, count), np.nan)
    last[0] = np.arange(count, 0, -1)
    last[0, :, 3] = np.nan
    made = [
        heat_maps.Strip(f"DeepFool, {words}", "", ("a", "b"), groups, values)
        for words, values in zip(heat_maps.MOMENTS.values(), (-last, last), strict=True)
    ]
    first, again = heat_maps.by_mean(made)
    assert [level for _, level in again.groups] == [str(place) for place in range(count - 1, -1, -1) if place != 3] + [
        "3"
    ]
    assert first.groups == again.groups
    np.testing.assert_array_equal(first.values, -again.values)
    few = [replace(strip, groups=groups[:5], values=strip.values[:, :, :5]) for strip in made]
    assert heat_maps.by_mean(few) == few
    assert heat_maps.by_mean([]) == []


def test_a_figure_that_was_not_run_prints_the_authors_values() -> None:
    setting = "block=networks; dataset={}; attack=smoothing; level=60+; statistic=sigma"
    rows = [{"column": "sigma by smoothing", "value": 0.031, "setting": setting.format(d)} for d in ("adience", "x")]
    found = pd.DataFrame([*rows, {"column": "accuracy", "value": 0.5, "setting": "dataset=adience"}])
    assert heat_maps.of_the_authors(found, w.ADIENCE, [w.SMOOTHING]).endswith(": 60+ 0.03.")
    assert heat_maps.of_the_authors(found, w.ADIENCE, [w.DEEPFOOL]) == ""


def test_a_partition_into_two_is_one_comparison(inputs: Inputs) -> None:
    groups = [("age", "a"), ("age", "b"), ("age", "c"), ("gender", "m"), ("gender", "f")]
    assert sign_agreement.once(groups).tolist() == [True, True, True, False, True]
    first, *_ = sign_agreement.COMPARISONS
    sides = sign_agreement.pairs(study.audited(inputs), first, w.PUBLISHED_IMAGES)
    assert sides.shape == (2, 10 + 100 + 20 + 11), "UTKFace has 5 ages, 5 races, and one comparison by gender"


@pytest.fixture(scope="module")
def linear(inputs: Inputs) -> Audited:
    """The logistic regression of the digits."""
    (one,) = study.audited(inputs, study.LINEAR, w.DIGITS)
    return one


@settings(deadline=None)
@given(st.lists(st.floats(-2, 2).filter(lambda x: abs(x) > 0.01), min_size=3, max_size=12))
def test_agreement_is_counted_sign_by_sign(sigma: list[float]) -> None:
    values = np.array(sigma)
    then = Comparison(study.NETWORKS, (w.DEEPFOOL, w.FIRST), (w.DEEPFOOL, w.LAST))

    def agreeing(first: Any, dataset: str = "digits") -> Estimate:
        rows = [audit((1,), first).result.rows, audit((50,), values).result.rows]
        one = audit((1, 50))
        both = replace(one, result=replace(one.result, rows=pd.concat(rows)))
        return sign_agreement.counted([both], then, [dataset])

    assert agreeing(values).value == 1
    assert agreeing(-values).value == 0
    assert agreeing(-values, "cifar10").n == 0
    half = agreeing(values * np.where(np.arange(len(values)) % 2, 1, -1))
    assert half.value * half.n == pytest.approx(len(values) // 2)
    assert 0 < half.low < half.value < half.high < 1


def between(one: str, other: str) -> Comparison:
    return Comparison(study.LINEAR, (one, w.LAST), (other, w.LAST), (w.LOGISTIC,))


def with_arrays(one: Audited, **arrays: Any) -> Audited:
    return replace(one, result=replace(one.result, arrays={**one.result.arrays, **arrays}))


@pytest.mark.parametrize("denominator", w.DENOMINATORS)
def test_two_distances_that_are_one_agree_whatever_their_samples(linear: Audited, denominator: str) -> None:
    """Asked of some of the points, failing on some: on those that both have, equal distances have equal sigma."""
    exact = linear.result.arrays["distance_exact"]
    some = np.broadcast_to(np.arange(exact.shape[1]) % 5 > 0, exact.shape)
    failed = np.broadcast_to(np.arange(exact.shape[1]) % 10 == 0, exact.shape)
    same = with_arrays(linear, distance_deepfool=np.where(some & ~failed, exact, np.nan), tried_deepfool=some)
    one, other = sign_agreement.pairs([same], between(w.EXACT, w.DEEPFOOL), [w.DIGITS], denominator)
    assert np.isfinite(one).any()
    np.testing.assert_allclose(one, other)
    points = same.points
    rows = sign_agreement.shared(points, w.EXACT, w.DEEPFOOL)
    assert set(rows) == set(np.flatnonzero(some[-1] & (~failed[-1] | ~points.correct)))
    # On all of its own points the exact distance has another sigma.
    assert not np.allclose(one, linear.sigmas(w.EXACT, denominator=denominator).to_numpy(float))


def test_the_mixed_reading_takes_each_distance_at_its_own_denominator_and_leaves_out_no_small_group(
    linear: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal distances then differ in sigma, because the groups differ in accuracy."""
    same = with_arrays(linear, distance_deepfool=linear.result.arrays["distance_exact"])

    def sides(of: Audited, denominator: str) -> np.ndarray:
        return sign_agreement.pairs([of], between(w.EXACT, w.DEEPFOOL), [w.DIGITS], denominator)

    exact, other = sides(same, sign_agreement.MIXED)
    np.testing.assert_allclose(exact, sides(same, w.PAPER)[0])
    np.testing.assert_allclose(other, sides(same, w.CORRECT)[1])
    assert not np.allclose(exact, other)
    monkeypatch.setattr(study, "TOO_FEW", 10**6)
    again = with_arrays(same)
    assert np.isnan(sides(again, w.PAPER)).all()
    np.testing.assert_allclose(sides(again, sign_agreement.MIXED), [exact, other])


@pytest.mark.parametrize("denominator", w.DENOMINATORS)
def test_on_one_sample_without_failures_sigma_is_that_of_the_rows(linear: Audited, denominator: str) -> None:
    points = linear.points
    assert points.tried[w.EXACT].all()
    arrays = {f"{kind}_deepfool": linear.result.arrays[f"{kind}_exact"] for kind in ("distance", "tried")}
    copy = with_arrays(linear, **arrays)
    one, _ = sign_agreement.pairs([copy], between(w.EXACT, w.DEEPFOOL), [w.DIGITS], denominator)
    np.testing.assert_allclose(one, linear.sigmas(w.EXACT, denominator=denominator).to_numpy(float))


def test_the_note_says_of_how_many_points_two_distances_are_compared(linear: Audited) -> None:
    points = linear.points
    n = len(sign_agreement.shared(points, w.EXACT, w.CARLINI_WAGNER))
    both = [(between(w.EXACT, w.CARLINI_WAGNER), [w.DIGITS])]
    (note,) = sign_agreement.sample_note([linear], both)
    assert f"neither failed ({n} per network)." in note
    assert sign_agreement.sample_note([linear], [(between(w.EXACT, w.CARLINI_WAGNER), [w.UTKFACE])]) == ()


def test_closer_is_counted_among_correctly_classified_points(inputs: Inputs) -> None:
    found = study.audited(inputs, study.NETWORKS, w.CIFAR10)
    for group, cells in group_tables.over_networks(found, found[0].groups).items():
        lines = [one.table(w.DEEPFOOL, denominator=w.CORRECT).loc[group] for one in found]
        closer = sum(line["sigma"] < 0 and line["sigma_p_adjusted"] < group_tables.LEVEL for line in lines)
        farther = sum(line["sigma"] > 0 and line["sigma_p_adjusted"] < group_tables.LEVEL for line in lines)
        assert cells["deepfool outcome"] == f"{closer} / {farther} of {len(found)}"
        sigmas = [one.sigmas(w.DEEPFOOL)[group] for one in found]
        assert cells["deepfool mean"] == pytest.approx(np.mean(sigmas))
        assert cells["deepfool below"] == f"{sum(np.array(sigmas) < 0)} of {len(found)}"


def test_networks_that_did_not_begin_from_all_imagenet_weights_are_a_reduction(inputs: Inputs) -> None:
    def weights(pretrained: float, pruned: float = 0.0) -> list[tuple[str, str, str, Any]]:
        own = {"pretrained": np.array([pretrained]), "pruned": np.array([pruned])}
        begun = {key: replace(one, facts={**one.facts, **own}) for key, one in inputs.classifiers.items()}
        found = stamps.reductions(replace(inputs, classifiers=begun))
        return [(r.block, r.dataset, r.method, r.here) for r in found if r.key == "method.weights"]

    trained = study.trained(study.audited(inputs, study.NETWORKS))
    networks = [one for one in trained if one.network in w.CONVOLUTIONAL]
    assert networks
    assert weights(1) == []
    for found, expected in ((weights(0), "from scratch"), (weights(1, 0.57), "57% pruned")):
        assert set(found) == {(study.NETWORKS, one.dataset, one.network, expected) for one in networks}


def test_the_stamp_is_of_what_was_run(alone: Inputs) -> None:
    stamp = stamps.stamp(alone, study.NETWORKS)
    assert stamp.origins == ("bundled",)
    nothing = stamps.stamp(alone, study.NETWORKS, [w.UTKFACE])
    assert (nothing.origins, nothing.repetitions) == (("absent",), ())
    assert nothing.reductions == (), "what was not run departs from nothing"


def test_what_the_scale_leaves_out_is_named_once(alone: Inputs) -> None:
    def place(block: str, dataset: str, network: str) -> dict[str, str]:
        return {"block": block, "dataset": dataset, "method": "standard", "method.model": network}

    omitted = [place("networks", "cifar10", "vgg19"), place("networks_adience", "adience", "adience_classifier")]
    omitted += [place("regularizer_cifar10", "cifar10", "vgg19"), place("trainings_cifar10", "cifar10", "deep_cnn")]
    omitted += [place("folds_utkface", "utkface", "logistic_regression")]
    assert comparison.left_out(replace(alone, config={**alone.config, "left_out": []})) == ()
    alone = replace(alone, scale="laptop", config={**alone.config, "left_out": omitted})
    (note,) = comparison.left_out(alone)
    assert note == "Not run at the laptop scale. CIFAR-10: VGG19, VGG19 with a penalty; Adience: Adience Classifier."
    assert study.why_nothing(alone, []) == "Not run at the laptop scale."
    attacked = [audit((1,))]
    assert study.why_nothing(alone, attacked, [w.SMOOTHING]) == "Not run at the laptop scale: randomized smoothing."
    assert study.why_nothing(alone, attacked, [w.DEEPFOOL, w.SMOOTHING]).startswith("Fewer than 20")


def test_pseudo_values_of_pairs_are_of_the_things_that_they_share() -> None:
    """Of a sum over two things they are twice the things, so their standard error is that of the mean over pairs."""
    own = [0.1, 0.7, 0.4, 0.2]
    pairs = {(i, j): own[i] + own[j] for i, j in itertools.combinations(range(len(own)), 2)}
    assert facts.pseudo_values(pairs) == pytest.approx([2 * value for value in own])
    # Their mean is that of the two pairs.
    assert facts.pseudo_values({(0, 1): 0.6, (2, 3): 1.0}) == pytest.approx([0.2, 0.2, 1.4, 1.4])
    assert facts.pseudo_values({(0, 1): 0.6}) == [0.6]
    assert facts.pseudo_values({}) == []


def test_one_sure_sign_below_zero_is_bias_and_signs_agree_by_pairs_of_networks_of_one_data_set() -> None:
    class Network(SimpleNamespace):
        def table(self, attack: str, denominator: str) -> pd.DataFrame:
            assert attack == w.DEEPFOOL
            return pd.DataFrame({"sigma": self.sigma, "sigma_p_adjusted": self.p}, index=self.groups)

    def network(dataset: str, sigma: tuple[float, ...], p: tuple[float, ...]) -> Network:
        result, groups = SimpleNamespace(origin="official"), [("label", str(level)) for level in range(len(sigma))]
        return Network(block=study.NETWORKS, dataset=dataset, sigma=sigma, p=p, result=result, groups=groups)

    nan, sure, open_ = math.nan, 0.049, 0.051
    found: Any = [
        network("cifar10", (-0.1, -0.1, nan, 0.2), (sure, sure, nan, sure)),
        network("cifar10", (+0.1, +0.1, 0.3, 0.2), (sure, open_, sure, sure)),
        network("utkface", (+0.1, -0.1, -0.3), (sure, sure, sure)),
        network("digits", (+0.1, -0.1), (open_, open_)),
    ]
    assert [row["value"] for row in facts._biased(found) if row["denominator"] == w.PAPER] == [1, 0, 1]
    rows = pd.DataFrame(facts._same_sign(found))
    same = rows[(rows["statistic"] == "same_sign") & (rows["denominator"] == w.PAPER)]
    assert list(same["value"]) == pytest.approx([1 / 3])


def test_a_long_reason_fits_into_its_figure(inputs: Inputs) -> None:
    every = study.audited(inputs, study.NETWORKS)
    figure = curves.nothing(inputs, every, "title", "; ".join(["a network (accuracy 4.0 %)"] * 80)).figure
    (text,) = figure.axes[0].texts
    place = text.get_window_extent(FigureCanvasAgg(figure).get_renderer())
    assert figure.bbox.y0 < place.y0 < place.y1 < figure.bbox.y1
    assert figure.bbox.x0 < place.x0 < place.x1 < figure.bbox.x1


def test_signs_are_kept_from_the_first_and_from_the_middle_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first epoch both signs are wrong, after the middle one neither is."""
    monkeypatch.setattr(Audited, "pretrained", False)
    one = audit((1, 25, 50), sigma=(0.5, -0.5, 0.2), dataset=w.CIFAR10)
    rows = one.result.rows.assign(value=lambda rows: rows["value"].where(rows["epoch"] > 1, -rows["value"]))
    (first, middle) = facts._kept([replace(one, result=replace(one.result, rows=rows))])
    assert (first["statistic"], first["value"]) == ("kept_sign_random", 0.0)
    assert (middle["statistic"], middle["value"], middle["groups"]) == ("kept_sign_random_middle", 1.0, 3)


def test_sigmas_have_a_ratio_where_all_networks_have_one_sign() -> None:
    sigmas = ((0.5, -0.5), (0.1, 0.5), (0.2, -0.5))
    networks = [audit((1,), sigma, dataset=w.UTKFACE) for sigma in sigmas]
    (found,) = facts._ratios(networks)
    assert (found["level"], found["attack"], found["value"]) == ("0", w.DEEPFOOL, pytest.approx(5.0))
    assert [*facts._ratios(networks[:2])] == [], "two networks are too few"


def test_the_error_of_a_median_is_that_of_the_normal_law() -> None:
    """Of n normal values it is sqrt(pi / 2n)."""
    rng = np.random.default_rng(0)
    found = [facts.error_of_median(rng.standard_normal(1000)) for _ in range(200)]
    assert np.mean(found) == pytest.approx(math.sqrt(math.pi / 2000), rel=0.03)
    assert math.isnan(facts.error_of_median(np.ones(19)))


def test_sigma_over_folds_has_the_error_of_a_mean_of_independent_sigmas(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fold(*of_group: tuple[float, float]) -> Any:
        table = pd.DataFrame(
            {"sigma": s, "sigma_ci_low": s - 1.959964 * e, "sigma_ci_high": s + 1.959964 * e} for s, e in of_group
        )
        table.index = pd.MultiIndex.from_tuples([("race", str(level)) for level in range(len(of_group))])
        return SimpleNamespace(absent="", learned=True, table=lambda attack: {w.EXACT: table}[attack])

    folds = [fold((0.1, 0.03), (0.2, 0.1)), fold((0.3, 0.04), (math.nan, math.nan))]
    monkeypatch.setattr(study, "audited", lambda inputs, block: {study.FOLDS: folds}[block])
    ((group, line),) = study.over_folds(inputs).iterrows()
    assert group == ("race", "0")
    assert line.to_dict() == pytest.approx({"sigma": 0.2, "error": 0.025, "least": 0.1, "largest": 0.3})


def test_a_training_with_the_penalty_is_held_against_the_same_training_without_it(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def network(alpha: float, training: int, sigma: float, accuracy: float) -> Audited:
        method = {"alpha": alpha, "training": training, "penalised_partition": "class", "penalised_level": "1"}
        method |= {"tau": 1.0, "distance": "logit", "second_order": False, "scale": "pixels"}
        one = audit((1,), (0.5, sigma), w.FMN, dataset=w.CIFAR10, block=study.PENALTIES, method=method)
        p = pd.DataFrame([{**one.result.rows.iloc[-1].to_dict(), "statistic": "sigma_p", "value": 0.01}])
        result = replace(one.result, rows=pd.concat([one.result.rows, p], ignore_index=True))
        return replace(one, result=result, accuracy=accuracy, images=1000, largest=0.1)

    # audit() adds 1 to sigma among correct points, so -1.3 is -.3.
    before, after = ((-1.3, 0.8), (-1.1, 0.7)), ((-1.0, 0.7), (-1.2, 0.7))
    found = [
        network(alpha, training, *numbers[training - 2])
        for alpha, numbers in ((0.0, before), (1.0, after))
        for training in (2, 3)
    ]
    monkeypatch.setattr(study, "audited", lambda inputs, block, dataset="": {study.PENALTIES: found}[block])
    monkeypatch.setattr(stamps, "reductions", lambda inputs: ())
    rows = pd.DataFrame(facts._penalties(inputs, study.PENALTIES))
    values = {name: part["value"].tolist() for name, part in rows.groupby("statistic")}
    assert values["penalty_gain"] == pytest.approx([0.3, -0.1])
    assert values["penalty_cost"] == pytest.approx([0.1, 0.0])
    assert values["penalised_bias"] == [1.0, 1.0]
    assert [regularizer.without(one, found) for one in found[2:]] == found[:2]
    table = regularizer.table_penalties(inputs)
    cells = dict(zip([column.key for column in table.columns], table.rows[0].cells, strict=True))
    assert (cells["biased"], len(table.rows)) == ("2 of 2", 1)
    assert regularizer.paired(found) == [*zip(found[:2], found[2:], strict=True)]
    assert [regularizer._change(*pair).split(": ")[1] for pair in regularizer.paired(found)] == [
        "smaller by 0.30", "worse, larger by 0.10"
    ]  # fmt: skip
    numbers = [cells[name] for name in ("before", "after", "gain", "accuracy before", "accuracy after")]
    assert numbers == pytest.approx([-0.2, -0.1, 0.1, 75, 70])


def test_a_network_from_imagenet_weights_is_held_against_its_twin_from_random_weights(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two twins. Signs: one of three groups changes from the first epoch to the last, and one has too few points."""

    def network(
        training: int, begun: bool, first: Sequence[float], last: Sequence[float], early: float = 0.2
    ) -> Audited:
        sides = [audit((epoch,), sigma).result.rows for epoch, sigma in ((1, first), (5, last))]
        rows = pd.concat(sides, ignore_index=True)
        made = audit((1,), method={"training": training}, block=study.PRETRAINED, dataset=w.UTKFACE)
        result = replace(made.result, rows=rows)
        made = replace(made, result=result, model=f"{training} {begun}", curve={1: early, 5: 0.9})
        return replace(made, accuracy=0.9, images=1000, largest=0.1)

    # audit() adds 1 to sigma among correct points. The last group is undefined in the first epoch of one network.
    first, last = (0.5, -0.4, 0.3, math.nan), (0.2, -0.1, -0.3, 0.4)
    found = [
        network(1, begun=True, first=first, last=last),
        network(2, begun=True, first=(0.1, 0.1, 0.1, 0.1), last=last, early=0.12),
        network(1, begun=False, first=(0.1, -1.1, 0.0, 9.0), last=last),
    ]
    monkeypatch.setattr(study, "audited", lambda inputs, block: {study.PRETRAINED: found}[block])
    monkeypatch.setattr(stamps, "reductions", lambda inputs: ())
    monkeypatch.setattr(Audited, "pretrained", property(lambda one: one.model.endswith("True")))
    (pair,) = initial_weights.twins(inputs)
    assert pair == (found[0], found[2])
    # |sigma| of correct points: 1.5, .6 and 1.3 minus 1.1, .1 and 1.0.
    assert initial_weights.first_bias(pair, w.DEEPFOOL) == pytest.approx(0.4)
    assert math.isnan(initial_weights.first_bias(pair, w.SMOOTHING))
    kept = initial_weights.kept_signs(found[0], w.DEEPFOOL, w.FIRST)
    assert (kept.value, kept.n) == (pytest.approx(2 / 3), 3)
    assert initial_weights.kept_signs(found[0], w.SMOOTHING, w.FIRST).n == 0
    rows = pd.DataFrame(facts._first_bias(inputs))
    assert list(rows["statistic"]) == ["first_learned", "first_bias"]
    assert list(rows["value"]) == pytest.approx([1.0, 0.4])
    monkeypatch.setattr(initial_weights, "twins", lambda inputs: [(found[1], found[2])])
    (learned,) = [row["value"] for row in facts._first_bias(inputs) if row["statistic"] == "first_learned"]
    assert learned == 0.0, "the second network was no better than the largest class"
    table = initial_weights.table_pretrained(inputs)
    keys = [column.key for column in table.columns]
    trainings: dict[Any, dict[str, Any]] = {row.cells[1]: dict(zip(keys, row.cells, strict=True)) for row in table.rows}
    assert [trainings[weights]["trainings"] for weights in ("ImageNet", "random")] == [2, 1]
    assert trainings["ImageNet"]["kept attack"].value == pytest.approx((2 / 3 + 2 / 4) / 2)
    assert trainings["random"]["attack first"].value == pytest.approx((1.1 + 0.1 + 1.0 + 10.0) / 4)
    # The second network was no better than the largest class after the first epoch.
    shown = trainings["ImageNet"]["attack first"]
    assert (shown.value, shown.n) == (pytest.approx((1.5 + 0.6 + 1.3) / 3), 1)
    (fewer,) = [note for note in table.notes if note.startswith("Fewer training runs")]
    assert fewer.endswith(": UTKFace from ImageNet weights, mean |sigma| by DeepFool, first epoch (1 of 2).")
