"""Groups that are crossed, cut, and compared with a reference; the table of groups; weights; several classes."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact
from sklearn.metrics import roc_auc_score
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import fairness_audits as fa
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.units import LEAST_UNITS, effective
from fairness_audits.cli.entry import parser, values_of
from fairness_audits.errors import InvalidInput
from fairness_audits.tables import contingency, opened
from fairness_audits.tables.groupings import Grouping, grouping
from fairness_audits.tables.spark_engine import unavailable
from tests.audits.permutation.builders import near
from tests.cli.places import json_of
from tests.errors import invalid

ALONE = "each interval for its comparison alone"
N = 900


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], N), "race": rng.choice(["a", "b", "c"], N)})
    return frame.assign(age=rng.integers(18, 80, N), y=rng.integers(0, 2, N), d=rng.integers(0, 2, N), p=rng.random(N))


PEOPLE = people()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("rows.csv", index=False)


def results(group: str, *options: str) -> list[dict[str, Any]]:
    asked = ("--predictions", "rows.csv", "--label", "y", "--prediction", "d", "--group", group, "--metric", "tpr")
    found: list[dict[str, Any]] = json_of("permutation", *asked, *options)["results"]
    return found


@pytest.mark.parametrize(
    ("group", "title", "made"),
    [
        ("sex*race", "sex and race", PEOPLE["sex"] + ", " + PEOPLE["race"]),
        ("age>=40", "age >= 40", np.where(PEOPLE["age"] >= 40, "age >= 40", "age < 40")),
        (
            "sex*age>62.5",
            "sex and age",
            PEOPLE["sex"] + np.where(PEOPLE["age"] > 62.5, ", age > 62.5", ", age <= 62.5"),
        ),
    ],
)
def test_a_made_group_is_the_column_that_one_would_make(group: str, title: str, made: pd.Series) -> None:
    PEOPLE.assign(own=made).to_csv("own.csv", index=False)
    theirs = results("own", "--predictions", "own.csv")
    ours = results(group)
    assert [{**one, "grouping": title} for one in theirs] == ours


def crossed(table: Any) -> set[str]:
    with opened(table, "duckdb") as known:
        made = grouping("a*b", known.columns)
        assert made is not None
        known.add(made)
        return set(known.arrays(["a*b"])["a*b"])


def test_the_names_of_a_cross_are_those_of_its_columns_and_no_two_combinations_share_one() -> None:
    texts = ["1", "1.0", "01", "0.0", "-0.0", "2.50"]
    levels = {"1, x", "01, x", "0, x", "2.50, x"}
    pd.DataFrame({"a": texts, "b": "x"}).to_csv("texts.csv", index=False)
    assert crossed("texts.csv") == levels
    frame = pd.DataFrame({"a": [1.0, 0.0, -0.0, 2.5], "b": [True, True, True, False]})
    frame.to_parquet("typed.parquet")
    assert crossed(frame) == crossed("typed.parquet") == {"1, True", "0, True", "2.5, False"}
    alike = pd.DataFrame({"a": ["a, b", "a", "a,", "a"], "b": ["c", "b, c", "b", ", b"]})
    assert crossed(alike) == {'"a, b", c', 'a, "b, c"', '"a,", b', 'a, ", b"'}


@pytest.mark.parametrize("file", ["rows.csv", "rows.parquet"])
def test_only_numbers_are_cut(file: str) -> None:
    PEOPLE.assign(age=PEOPLE["age"].astype(str).mask(PEOPLE.index == 3, "old")).to_csv("rows.csv", index=False)
    pd.read_csv("rows.csv").to_parquet("rows.parquet")
    given = ("--predictions", file, "--label", "y", "--prediction", "d", "--group", "sex*age>=40", "--metric", "tpr")
    parsed = parser().parse_args(["permutation", *given])
    with invalid(source=file, option="group", column="age", row=3):
        parsed.command.run(values_of(parsed))


@pytest.mark.parametrize("reference", ["True", "true", "1"])
def test_a_reference_names_a_level_as_other_options_do(reference: str) -> None:
    old = PEOPLE["age"] >= 40
    found = fa.permutation_test(PEOPLE["y"], prediction=PEOPLE["d"], group=old, metric="tpr", reference=reference)
    assert [group["name"] for group in found.facts["results"][0]["groups"]] == ["False", "True"]


def test_a_cross_of_the_command_is_that_of_a_call() -> None:
    call: dict[str, Any] = {"prediction": PEOPLE["d"], "metric": "tpr", "cross": True}
    assert fa.permutation_test(PEOPLE["y"], group=PEOPLE[["sex", "race"]], **call).facts["results"] == results(
        "sex*race"
    )


def test_rows_and_counts_of_a_cross_are_the_same_people() -> None:
    counts = fa.permutation_test(
        PEOPLE["y"], prediction=PEOPLE["d"], group=PEOPLE[["sex", "race"]], metric="tpr", cross=True
    )
    rows = fa.permutation_test(
        PEOPLE["y"], score=PEOPLE["p"], group=PEOPLE[["sex", "race"]], metric="auc", cross=True, draws=999
    )
    sizes = [[(g["name"], g["rows"]) for g in one.facts["results"][3]["groups"]] for one in (counts, rows)]
    assert sizes[0] == sizes[1]


def test_a_column_with_a_gap_is_refused_and_named() -> None:
    PEOPLE.assign(age=PEOPLE["age"].where(PEOPLE["age"] > 18, "")).to_csv("gap.csv", index=False)
    with opened("gap.csv", "duckdb") as table:
        table.add(grouping("age>=40", table.columns))  # type: ignore[arg-type]
        with invalid(option="group", column="age>=40"):
            contingency(table, label="y", group="age>=40", prediction="d")


def test_a_text_is_a_column_before_it_is_a_cross() -> None:
    assert grouping("a*b", ["a*b", "a", "b"]) is None
    assert grouping("race=White", ["race"]) is None
    made = grouping("a*b", ["a", "b"])
    assert made is not None
    assert made.columns == ("a", "b")
    with pytest.raises(InvalidInput):
        grouping("age>=old", ["age"])


NAMES = [("sex*", "race"), ("sex", "race "), ("*sex", "*"), ("sex", "sex*race"), ("a>=3", "x=y"), ("no label", "group")]


@pytest.mark.parametrize("names", NAMES)
def test_columns_of_any_names_are_crossed(names: tuple[str, str]) -> None:
    plain = PEOPLE[["sex", "race"]]
    own = plain.set_axis(list(names), axis="columns")
    y, d = PEOPLE["y"], PEOPLE["d"]
    # The names seed the draws of the p-values.
    for audit in (
        lambda group: fa.permutation_test(prediction=d, group=group, metric="selection_rate", cross=True),
        lambda group: fa.compare(y, first=d, second=1 - d, group=group, metric="tpr", cross=True, draws=499),
        lambda group: fa.worst_subgroups(group, prediction=d, draws=199),
    ):
        expected, found = audit(plain).to_frame(), audit(own).to_frame()
        drawn = ("grouping", "subgroup", "p_value", "adjusted_p_value", "rejected", "ci_low", "ci_high")
        same = [column for column in found if column not in drawn]
        pd.testing.assert_frame_equal(found[same], expected[same])


@pytest.mark.parametrize("names", NAMES)
def test_the_command_crosses_columns_of_any_names(names: tuple[str, str]) -> None:
    PEOPLE.rename(columns=dict(zip(("sex", "race"), names, strict=True))).to_csv("named.csv", index=False)
    expected = results("sex*race")
    made = results("*".join(names), "--predictions", "named.csv")
    assert [one["groups"] for one in made] == [one["groups"] for one in expected]


@pytest.mark.parametrize(
    ("group", "column", "level"), [("income=>50K", "income", ">50K"), ("a=b=f", "a=b", "f"), ("sex=a*b", "sex", "a*b")]
)
def test_a_level_may_have_the_letters_of_a_cut_or_a_cross(group: str, column: str, level: str) -> None:
    rows = PEOPLE[["y", "d"]].assign(**{column: np.where(PEOPLE["sex"] == "f", level, "other")})
    rows.to_csv("levels.csv", index=False)
    (made,) = results(group, "--predictions", "levels.csv")
    assert {one["name"]: one["rows"] for one in made["groups"]}[level] == (PEOPLE["sex"] == "f").sum()


def test_a_part_of_a_cut_or_a_cross_is_found_where_names_have_these_letters() -> None:
    made = grouping("a>b>=4*c*d*age>=40", ["a>b", "c*d", "age"])
    assert made is not None
    assert [(part.column, part.relation, part.at) for part in made.parts] == [
        ("a>b", ">=", "4"),
        ("c*d", "", ""),
        ("age", ">=", "40"),
    ]


@pytest.mark.parametrize("group", ["sexx", "sexx=f", "sexx>=3", "race*sexx", "race,sexx", "race*age,sexx=f"])
def test_a_wrong_group_is_told_the_columns_of_the_file_and_no_others(group: str) -> None:
    given = ("--predictions", "rows.csv", "--prediction", "d", "--group", group, "--metric", "selection_rate")
    parsed = parser().parse_args(["permutation", *given])
    with invalid(option="group", column="sexx", remedy="It has: sex, race, age, y, d, p"):
        parsed.command.run(values_of(parsed))


def test_a_column_called_no_label_is_a_column_like_others() -> None:
    own = {"no label": PEOPLE["sex"], "no decision": PEOPLE["d"]}
    rows = pd.DataFrame(own)
    rows.to_csv("own.csv", index=False)
    made = fa.permutation_test(prediction=rows["no decision"], group=rows[["no label"]], metric="selection_rate")
    words = ("no--label", "--predictions", "own.csv", "--prediction", "no decision", "--group", "no label")
    (shell,) = json_of("permutation", *words, "--metric", "selection_rate")["results"]
    assert [one["name"] for one in shell["groups"]] == ["f", "m"]
    assert made.facts["results"][0]["groups"] == shell["groups"]


@pytest.mark.parametrize(
    ("group", "spelt"),
    [
        ("age>=40", "group=(frame['age'] >= 40).rename('age>=40')"),
        (["age>=40"], "group=(frame['age'] >= 40).rename('age>=40')"),
        ("sex", "group=frame['sex']"),
        ("race=a", "group=(frame['race'] == 'a').rename('race=a')"),
        ("sex*race", "group=frame[['sex', 'race']], cross=True"),
    ],
)
def test_a_text_in_place_of_groups_is_told_what_to_pass(group: Any, spelt: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        fa.permutation_test(prediction=PEOPLE["d"], group=group, metric="selection_rate")
    assert caught.value.option == "group"
    assert spelt in caught.value.remedy


def test_crossed_names_of_a_table_may_be_cuts() -> None:
    by_name = fa.permutation_test(
        "y", data=PEOPLE, prediction="d", group=["sex", "age >= 40"], cross=True, metric="tpr"
    )
    assert by_name.facts["results"] == results("sex*age>=40")


@pytest.mark.parametrize("spelt", ["age>=40", "age<40", "age < 40", " age >=  40"])
def test_a_cut_has_one_name_and_one_order_however_it_is_spelt(spelt: str) -> None:
    values = (PEOPLE["age"] >= 40 if ">" in spelt else PEOPLE["age"] < 40).rename(spelt)
    by_name = fa.permutation_test("y", data=PEOPLE, prediction="d", group=spelt, metric="tpr")
    by_value = fa.permutation_test(PEOPLE["y"], prediction=PEOPLE["d"], group=values, metric="tpr")
    (shell,) = results(spelt)
    assert by_name.facts["results"] == by_value.facts["results"] == [shell]
    assert [one["name"] for one in shell["groups"]] == ["age < 40", "age >= 40"]
    assert shell["grouping"] == ("age >= 40" if ">" in spelt else "age < 40")
    for reference in ("age<40", "age < 40", "age< 40"):
        (turned,) = results(spelt, "--reference", reference)
        assert [one["name"] for one in turned["groups"]] == ["age >= 40", "age < 40"]


def test_booleans_with_the_name_of_a_level_are_the_level_and_all_others() -> None:
    values = (PEOPLE["race"] == "a").rename("race=a")
    made = fa.permutation_test(PEOPLE["y"], prediction=PEOPLE["d"], group=values, metric="tpr")
    assert made.facts["results"] == results("race=a")


@pytest.mark.parametrize("cut", ["1234567", "0.123456789", "1e6", "40.50"])
def test_a_cut_is_named_with_the_number_as_typed(cut: str) -> None:
    rows = PEOPLE.assign(x=np.where(PEOPLE["sex"] == "f", float(cut), float(cut) - 1))
    rows.to_csv("cut.csv", index=False)
    (made,) = results(f"x>={cut}", "--predictions", "cut.csv")
    assert {group["name"]: group["rows"] for group in made["groups"]} == {
        f"x < {cut}": (rows["sex"] == "m").sum(),
        f"x >= {cut}": (rows["sex"] == "f").sum(),
    }


def test_a_threshold_is_named_with_all_its_digits() -> None:
    found = fa.permutation_test(
        score=PEOPLE["p"], group=PEOPLE["sex"], threshold=0.123456789, metric="selection_rate"
    ).facts["results"]
    assert "0.123456789" in found[0]["basis"]


@pytest.mark.xdist_group("spark")
@pytest.mark.slow
def test_spark_makes_the_same_groups() -> None:
    if reason := unavailable():
        pytest.skip(reason)
    for group in ("sex*race", "age>=40", "race*y"):
        counts = []
        for engine in ("duckdb", "spark"):
            with opened("rows.csv", engine) as table:  # type: ignore[arg-type]
                made = grouping(group, table.columns)
                assert isinstance(made, Grouping)
                table.add(made)
                counts.append(contingency(table, label="y", group=made.name, prediction="d"))
        assert counts[0].groups == counts[1].groups
        np.testing.assert_array_equal(counts[0].table, counts[1].table)


def test_a_reference_is_the_second_of_each_comparison() -> None:
    """Men against women: the other side of the same test, and its one-sided p-value."""
    (by_name,) = results("sex", "--alternative", "greater")
    (turned,) = results("sex", "--alternative", "less", "--reference", "f")
    assert [group["name"] for group in turned["groups"]] == ["m", "f"]
    assert turned["difference"] == -by_name["difference"]
    assert turned["p_value"] == pytest.approx(by_name["p_value"], rel=1e-12)
    against_b = results("race", "--reference", "b")
    assert [[g["name"] for g in one["groups"]] for one in against_b] == [["a", "b"], ["c", "b"]]
    for one in against_b:
        assert sum(group["rows"] for group in one["groups"]) < N


@pytest.mark.parametrize(
    "group", ['m, "White, non-Hispanic"', "m, a & b", 'm, "so-called ""other"", or none"', "m, two  spaces"]
)
def test_a_reference_is_named_as_the_page_prints_it(group: str) -> None:
    race = group.removeprefix("m, ")
    race = race[1:-1].replace('""', '"') if race.startswith('"') else race
    PEOPLE.assign(race=PEOPLE["race"].replace("a", race)).to_csv("rows.csv", index=False)
    quoted = '"' + group.replace('"', '""') + '"'
    for reference in (group, " ".join(group.split())):
        found = results("sex*race", "--reference", reference)
        assert {one["groups"][1]["name"] for one in found} == {group}
    # Beside the column sex, m alone is a group too.
    for reference in (quoted, f"m & {race}"):
        found = results("sex*race,sex", "--reference", f"{reference},f")
        assert {one["groups"][1]["name"] for one in found} == {group, "f"}


def test_max_t_compares_with_the_reference_only() -> None:
    """The two other groups differ from each other and not from the reference."""
    decisions = np.concatenate([np.arange(1000) < positive for positive in (500, 470, 530)]).astype(int)
    call: dict[str, Any] = {"prediction": decisions, "group": np.repeat(["a", "b", "c"], 1000), "draws": 1999}
    call |= {"metric": "selection_rate", "correct": "max-t"}
    assert fa.permutation_test(**call).outcome == "rejected"
    found = fa.permutation_test(**call, reference="a")
    assert [[g["name"] for g in one["groups"]] for one in found.facts["results"]] == [["b", "a"], ["c", "a"]]
    assert found.outcome == "not rejected"
    ratios = fa.permutation_test(**{**call, "prediction": np.repeat([1, 1, 0], 1000)}, reference="a", ratio=True)
    assert {one["bounds"]["high"] for one in ratios.facts["results"]} == {1.25}
    with invalid(option="pairs"):
        fa.permutation_test(**{**call, "correct": "holm"}, reference="a", pairs=True)


@pytest.mark.parametrize("options", [("--reference", "x"), ("--reference", "f,m"), ("--reference", "a", "--ratio")])
def test_a_reference_that_is_no_group_is_refused(options: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        fa.permutation_test(
            PEOPLE["y"], prediction=PEOPLE["d"], group=PEOPLE[["sex"]], metric="tpr", reference=options[1].split(","),
            ratio="--ratio" in options,
        )  # fmt: skip
    assert refused.value.option == "reference"


def test_the_table_of_groups_has_the_worst_first_with_intervals_of_each() -> None:
    call: dict[str, Any] = {"group": PEOPLE["race"], "threshold": 0.5, "draws": 999}
    frame = fa.permutation_test(PEOPLE["y"], PEOPLE["p"], metric=["fpr", "tpr", "auc"], **call).to_frame("groups")
    for metric, own in frame.groupby("metric"):
        assert own["estimate"].is_monotonic_decreasing if metric == "fpr" else own["estimate"].is_monotonic_increasing
        assert ((own["ci_low"] < own["estimate"]) & (own["estimate"] < own["ci_high"])).all()
    rate = frame[frame["metric"] == "fpr"].iloc[0]
    expected = proportion_confint(rate["events"], rate["n"], method="wilson")
    assert (rate["ci_low"], rate["ci_high"]) == pytest.approx(expected, abs=1e-9)
    negatives = PEOPLE[(PEOPLE["race"] == rate["name"]) & (PEOPLE["y"] == 0)]
    assert (rate["n"], rate["estimate"]) == (len(negatives), pytest.approx((negatives["p"] >= 0.5).mean()))


def test_selection_rates_need_no_label_and_base_rates_no_decision() -> None:
    call: dict[str, Any] = {"group": PEOPLE["race"]}
    with_label = fa.permutation_test(PEOPLE["y"], prediction=PEOPLE["d"], metric="selection_rate", **call)
    without = fa.permutation_test(prediction=PEOPLE["d"], metric="selection_rate", **call)
    assert without.facts["results"] == with_label.facts["results"]
    base = fa.permutation_test(PEOPLE["y"], metric="base_rate", **call)
    of_label = fa.permutation_test(prediction=PEOPLE["y"], metric="selection_rate", **call)
    for one, other in zip(base.facts["results"], of_label.facts["results"], strict=True):
        assert [one[key] for key in ("groups", "interval", "p_value")] == [
            other[key] for key in ("groups", "interval", "p_value")
        ]
    assert base.outcome == of_label.outcome
    asked = ("--predictions", "rows.csv", "--group", "race", "--ratio")
    assert json_of("permutation", *asked, "--label", "y", "--metric", "base_rate")["results"][0]["bounds"]
    assert json_of("permutation", *asked, "no--label", "--prediction", "d", "--metric", "selection_rate")["results"][0][
        "bounds"
    ]
    with pytest.raises(InvalidInput):
        fa.permutation_test(prediction=PEOPLE["d"], metric="tpr", **call)


def test_the_weighted_auc_is_that_of_scikit_learn_and_whole_weights_are_repeated_rows() -> None:
    weight = np.random.default_rng(5).choice([0.0, 1.0, 2.0, 3.0], N)
    rounded = PEOPLE.assign(p=PEOPLE["p"].round(1), weight=weight, person=np.arange(N))

    def auc(rows: pd.DataFrame, **more: Any) -> dict[str, Any]:
        call = {"group": rows["sex"], "metric": "auc", "draws": 199, **more}
        found: dict[str, Any] = fa.permutation_test(rows["y"], rows["p"], **call).facts["results"][0]
        return found

    found = auc(rounded, weight=weight)
    for group in found["groups"]:
        own = rounded[rounded["sex"] == group["name"]]
        assert group["estimate"] == pytest.approx(roc_auc_score(own["y"], own["p"], sample_weight=own["weight"]))
    # A weight of k counts like k rows of one person.
    repeated = rounded.loc[rounded.index.repeat(weight.astype(int))].reset_index(drop=True)
    same = auc(repeated, cluster=repeated["person"])
    assert found["statistic"] == pytest.approx(same["statistic"])
    # Equal weights change nothing but the factor n / (n - 1).
    assert auc(rounded, weight=np.full(N, 7.0))["statistic"] == pytest.approx(auc(rounded)["statistic"], rel=0.02)


def test_weights_are_those_of_the_estimate_and_rows_of_no_weight_do_not_matter() -> None:
    """The estimate is the weighted share; equal weights change nothing; a weight of 0 is a row left out."""
    weight = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 3.0], N)
    call: dict[str, Any] = {"metric": ["tpr", "mean_score"], "threshold": 0.5, "draws": 299, "correct": "none"}

    def asked(rows: pd.DataFrame, **more: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = fa.permutation_test(
            rows["y"], rows["p"], group=rows["sex"], **call, **more
        ).facts["results"]
        return found

    tpr, score = asked(PEOPLE, weight=weight)
    for entry, among, value in ((tpr, PEOPLE["y"] == 1, PEOPLE["p"] >= 0.5), (score, PEOPLE["y"] >= 0, PEOPLE["p"])):
        for group in entry["groups"]:
            own = among & (PEOPLE["sex"] == group["name"])
            assert group["estimate"] == pytest.approx(np.average(value[own], weights=weight[own]))
        assert not entry["exact"]
    for one, other in zip(asked(PEOPLE, weight=np.full(N, 7.0)), asked(PEOPLE, method="studentized"), strict=True):
        assert one["difference"] == pytest.approx(other["difference"])
    kept = asked(PEOPLE[weight > 0], weight=weight[weight > 0])
    assert kept == [tpr, score]


def test_rows_of_weight_0_are_no_rows_of_a_group_and_weighted_rates_have_no_events() -> None:
    weight = np.where((PEOPLE["sex"] == "f") & (PEOPLE.index > 20), 0.0, 2.0)
    found = fa.permutation_test(score=PEOPLE["p"], group=PEOPLE["sex"], metric="mean_score", weight=weight, draws=99)
    (test,) = found.facts["results"]
    assert test["groups"][0]["units"] == int((weight[PEOPLE["sex"] == "f"] > 0).sum()) < 20
    assert found.outcome == "inconclusive"
    count = int((weight == 0).sum())
    assert f"Rows with weight 0 are left out: {count:,}" in " ".join(one.text for one in found.caveats)
    rate = fa.permutation_test(prediction=PEOPLE["d"], group=PEOPLE["sex"], metric="selection_rate", weight=weight)
    assert {group["events"] for group in (*rate.facts["results"][0]["groups"], *rate.facts["groups"])} == {None}
    with invalid(option="weight"):
        fa.permutation_test(
            score=PEOPLE["p"], group=PEOPLE["sex"], metric="mean_score", weight=np.where(PEOPLE["sex"] == "m", 0.0, 1.0)
        )


@pytest.mark.parametrize("metric", ["tpr", "auc"])
def test_a_weighted_test_has_its_level_where_weights_differ_between_groups(metric: str) -> None:
    """Equal rates, and equal AUCs, in groups of different sizes and weights."""
    rng, trials, rejections = np.random.default_rng(7), 300, 0
    group = np.repeat([0, 1], (300, 120))
    for _ in range(trials):
        weight = rng.exponential(size=420) * np.where(group, 5.0, 1.0) + 0.1
        decision, label = rng.integers(0, 2, (2, 420))
        label = label if metric == "auc" else np.ones(420, dtype=np.int64)
        data = Predictions(label, rng.normal(size=420), group, ("a", "b"), decision, None, weight)
        rejections += permutation_test(data, metric, rng=rng, draws=99).rejected
    assert near(rejections / trials, 0.05, trials)


@pytest.mark.parametrize(("weights", "enough"), [(((5, 40.0), (258, 1.0)), False), (((25, 10.0), (75, 1.0)), True)])
def test_the_level_holds_with_enough_effective_units(weights: Any, enough: bool) -> None:
    """Equal rates of .2 against 600 rows of weight 1. Kish's number, 25 and 41, does not tell the two cases apart."""
    own = np.repeat([weight for _, weight in weights], [rows for rows, _ in weights])
    weight, group = np.r_[own, np.ones(600)], np.repeat([0, 1], (len(own), 600))
    rng, trials, rejections = np.random.default_rng(1), 300, 0
    for _ in range(trials):
        decision, label = (rng.random(len(group)) < 0.2).astype(np.int64), np.ones(len(group), dtype=np.int64)
        data = Predictions(label, label, group, ("a", "b"), decision, None, weight)
        rejections += permutation_test(data, "tpr", rng=rng, draws=99).rejected
    assert (effective(data, METRICS["tpr"]).min() >= LEAST_UNITS) == enough
    assert near(rejections / trials, 0.05, trials) == enough


def test_a_metric_of_the_user_takes_no_weights() -> None:
    call: dict[str, Any] = {"metric": lambda y, score, weight: 0.0, "weight": np.ones(N)}
    with invalid(option="weight"):
        fa.permutation_test(PEOPLE["y"], PEOPLE["p"], group=PEOPLE["sex"], **call)


def test_one_class_of_several_counts_as_positive() -> None:
    """Labels and decisions of three classes, one against the others."""
    rng = np.random.default_rng(9)
    label, decision = rng.choice(["low", "mid", "high"], (2, N))
    call: dict[str, Any] = {"group": PEOPLE["sex"], "metric": "tpr"}
    several = fa.permutation_test(label, prediction=decision, positive="high", **call).facts["results"]
    two = fa.permutation_test(label == "high", prediction=decision == "high", **call).facts["results"]
    assert several[0]["groups"] == two[0]["groups"]
    assert several[0]["p_value"] == two[0]["p_value"]


def test_errors_of_a_regression_are_those_of_numbers() -> None:
    rng = np.random.default_rng(11)
    income = rng.normal(50, 10, N)
    predicted = income + rng.normal(size=N) + np.where(PEOPLE["sex"] == "f", -2.0, 0.0)
    PEOPLE.assign(income=income, predicted=predicted).to_csv("regression.csv", index=False)
    metrics = ["mean_error", "absolute_error", "squared_error", "mean_score"]
    call: dict[str, Any] = {"group": PEOPLE["sex"], "draws": 299, "regression": True}
    error = fa.permutation_test(income, predicted, metric=metrics, **call).facts["results"]
    expected = (predicted - income)[PEOPLE["sex"] == "f"]
    for entry, value in zip(error, (expected.mean(), abs(expected).mean(), (expected**2).mean()), strict=False):
        assert entry["groups"][0]["estimate"] == pytest.approx(value)
        assert entry["rejected"]
    asked = (
        "no--label --predictions regression.csv --label income --score predicted --group sex --regression --draws 299"
    )
    made = json_of("permutation", *asked.split(), "--metric", ",".join(metrics))
    assert [one["p_value"] for one in made["results"]] == [one["p_value"] for one in error]
    for metric in ("tpr", "auc", "log_loss"):
        with pytest.raises(InvalidInput):
            fa.permutation_test(income, predicted, metric=metric, **call)


@pytest.mark.parametrize("positive", [0, 2])
def test_decisions_that_may_be_classes_are_not_guessed(positive: int) -> None:
    y, group = np.array([0, 1, 2] * 100), ["a", "b"] * 150
    call: dict[str, Any] = {"group": group, "metric": "tpr", "positive": positive}
    with invalid(option="prediction"):
        fa.permutation_test(y, prediction=(y == positive).astype(int), **call)
    names = np.array(["low", "mid", "top"])[y]
    call["positive"] = names[positive]
    found = fa.permutation_test(names, prediction=(y == positive).astype(int), **call)
    assert [one["estimate"] for one in found.facts["groups"]] == [1.0, 1.0]
    # The value to blame is the one that is no label.
    with pytest.raises(InvalidInput, match="'3' is in"):
        fa.permutation_test(y, prediction=np.arange(300) % 4, **{**call, "positive": 2})


def test_few_heavy_rows_are_few_units() -> None:
    rng = np.random.default_rng(0)
    weight = np.where(np.arange(600) < 5, 100.0, 1.0)
    group = np.where(np.arange(600) < 300, "a", "b")
    decision = np.where(weight > 1, 1, rng.integers(0, 2, 600))
    call: dict[str, Any] = {"prediction": decision, "group": group, "metric": "selection_rate"}
    found = fa.permutation_test(weight=weight, **call)
    assert found.outcome == "inconclusive"
    assert "effective number" in " ".join(found.summary().split())
    # (5 * 10^4 + 295)^2 / (5 * 10^8 + 295) = 5.1 effective rows; without weights there are 300.
    assert fa.permutation_test(**call).outcome != "inconclusive"


@pytest.mark.parametrize("call", [{"margin": 1.5}, {"positive": "yes"}])
def test_what_cannot_be_meant_is_refused(call: dict[str, Any]) -> None:
    with invalid(option=next(iter(call))):
        fa.permutation_test(prediction=PEOPLE["d"], group=PEOPLE["sex"], metric="selection_rate", **call)
    if "margin" in call:
        with invalid(option="margin"):
            fa.plan(metric="selection_rate", value=0.4, **call)


def test_a_metric_that_divides_by_nothing_is_undefined_and_another_fault_names_it() -> None:
    def average(y: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
        return float(np.average(score[y == 1], weights=weight[y == 1]))

    def broken(y: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
        raise KeyError("no such thing")

    y = np.r_[1, 1, np.zeros(18), np.arange(100) % 2].astype(int)
    call: dict[str, Any] = {"score": np.linspace(0, 1, 120), "group": ["a"] * 20 + ["b"] * 100, "draws": 39}
    fa.permutation_test(y, metric=average, **call)
    with invalid(option="metric"):
        fa.permutation_test(y, metric=broken, **call)


def test_a_significant_crossed_group_leads_before_a_larger_difference_of_a_few_people() -> None:
    """Nobody of 3 people is selected, a gap of .5 that chance explains; 600 people differ by .2 from the others."""
    sex, race = np.repeat(["f", "m", "f", "m"], [3, 597, 600, 600]), np.repeat(["x", "y", "z"], [3, 597, 1200])
    decision = np.r_[np.zeros(3), np.arange(597) % 10 < 3, np.arange(600) % 10 < 5, np.arange(600) % 10 < 6]
    frame = pd.DataFrame({"sex": sex, "race": race})
    found = fa.permutation_test(prediction=decision, group=frame, cross=True, metric="selection_rate")
    table = found.to_frame()
    assert table["rejected"].tolist() == [True, True, False, False]
    assert abs(table["difference"][3]) > 0.4
    assert table["name_a"][3] == "f, x"
    assert found.brief is not None
    assert "f, x" not in found.brief.found
    first = table["name_a"][0]
    assert f"({first})" in found.brief.found.partition(";")[0]
    assert first in found.verdict.sentence.partition(". ")[2].partition(";")[0]
    # Among the groups, the 3 people come last, although no rate is lower.
    groups = found.to_frame("groups")
    assert groups["name"].tolist() == ["m, y", "f, z", "m, z", "f, x"]
    assert groups["few"].tolist() == [False, False, False, True]
    assert "sex and race: fewer than 20 rows" in " ".join(found.summary().split())


def test_differences_are_ordered_by_what_their_intervals_show() -> None:
    """Of 12 in group a 1 is selected, of 500 in b 100, of the others 6 in 10: the interval of a is nearer to 0."""
    group = np.repeat(["a", "b", "c", "d"], [12, 500, 700, 700])
    selected = {"a": 1, "b": 100, "c": 420, "d": 420}
    decision = np.concatenate([np.arange((group == name).sum()) < count for name, count in selected.items()])
    found = fa.permutation_test(prediction=decision.astype(int), group=group, metric="selection_rate", reference=["d"])
    table = found.to_frame()
    ends = [
        confint_proportions_2indep(own["events_a"], own["n_a"], own["events_b"], own["n_b"], method="newcomb")
        for _, own in table.iterrows()
    ]
    assert table["name_a"].tolist() == ["b", "a", "c"]
    assert table["difference"][1] < table["difference"][0] < 0
    assert ends[0][1] < ends[1][1] < 0
    assert table["ci_high"][:2].tolist() == pytest.approx([high for _, high in ends[:2]], abs=0.02)
    assert found.verdict.sentence.index(" for b (") < found.verdict.sentence.index(" for a (")


def test_the_worst_mean_error_is_the_one_farthest_from_zero() -> None:
    group = np.repeat(["low", "high", "fair"], 200)
    score = np.random.default_rng(0).normal(size=600) + np.select([group == "low", group == "high"], [-0.42, 0.61])
    found = fa.permutation_test(
        np.zeros(600), score, group=group, metric=["mean_error", "mean_score"], regression=True, draws=299
    )
    names = found.to_frame("groups").groupby("metric")["name"].agg(list)
    assert names["mean_error"] == ["high", "low", "fair"]
    assert names["mean_score"] == ["low", "fair", "high"]


@pytest.mark.parametrize("weight", [None, PEOPLE["age"]])
def test_ratios_of_groups_are_to_the_highest_rate_or_to_the_reference(weight: pd.Series | None) -> None:
    counts = PEOPLE.assign(w=1 if weight is None else weight).assign(selected=lambda rows: rows["w"] * rows["d"])
    sums = counts.groupby("race")[["selected", "w"]].sum()
    rates = sums["selected"] / sums["w"]

    def ratios(*reference: str) -> dict[str, float]:
        found = fa.permutation_test(
            prediction=PEOPLE["d"],
            group=PEOPLE["race"],
            weight=weight,
            metric="selection_rate",
            ratio=True,
            reference=reference,
            draws=499,
        )
        assert len(found.to_frame()) == (2 if reference else 3)
        return dict(found.to_frame("groups").set_index("name")["ratio"])

    assert ratios() == pytest.approx(dict(rates / rates.max()))
    assert ratios("b") == pytest.approx(dict(rates / rates["b"]))


def test_each_class_of_several_is_compared_with_the_rest() -> None:
    rng, names = np.random.default_rng(4), np.array(["cat", "dog", "eel"])
    label, decision = names[rng.integers(0, 3, N)], names[rng.integers(0, 3, N)]
    found = fa.permutation_test(
        label, prediction=decision, group=PEOPLE["sex"], metric=["accuracy", "tpr"], correct="holm"
    )
    frame = found.to_frame().set_index(found.to_frame()["class"].fillna("all"))
    assert sorted(frame.index) == ["all", "cat", "dog", "eel"]
    for name in names:
        alone = fa.permutation_test(label, prediction=decision, positive=name, group=PEOPLE["sex"], metric="tpr")
        for key in ("estimate_a", "estimate_b", "p_value", "ci_low"):
            assert frame.loc[name, key] == alone.to_frame()[key][0]
        # The interval in a family is that of the comparison alone, and only the family says so.
        assert ALONE not in alone.verdict.sentence
    assert ALONE in found.verdict.sentence
    right = pd.Series(label == decision).groupby(PEOPLE["sex"]).mean()
    assert tuple(frame.loc["all", ["estimate_a", "estimate_b"]]) == pytest.approx((right["f"], right["m"]))
    least = frame["p_value"].min()
    assert frame["adjusted_p_value"].min() == pytest.approx(min(1.0, 4 * least))


def test_an_interval_without_0_beside_a_difference_that_is_not_shown_is_explained() -> None:
    """Ten comparisons: a p-value of 0.02 alone is 0.2 together."""
    group, place = np.repeat(["f", "m"], 400), np.arange(400)
    first = np.r_[place < 200, place < 233]
    metrics = ["selection_rate", "tpr", "fpr", "precision", "npv", "accuracy", "f1"]
    call: dict[str, Any] = {"prediction": first.astype(int), "group": group, "draws": 1999}
    found = fa.permutation_test(np.tile([0, 1], 400), metric=metrics, **call)
    one = found.to_frame().set_index("metric").loc["selection_rate"]
    table = [[200, 200], [233, 167]]
    assert one["p_value"] == pytest.approx(fisher_exact(table)[1])
    assert one["ci_high"] < 0
    assert not one["rejected"]
    assert ALONE in found.verdict.sentence
    assert "several_tests" in {caveat.condition for caveat in found.caveats}


def test_two_decisions_about_several_classes_are_no_classes() -> None:
    """A label of 0, 1 and 9 is not read as three classes if the model decides between two."""
    with invalid(option="y", column="y"):
        fa.permutation_test(np.arange(N) % 3, prediction=PEOPLE["d"], group=PEOPLE["sex"], metric="tpr")


@pytest.mark.parametrize("lacking", ["label", "decision"])
@pytest.mark.parametrize("names", [["cat", "dog", "eel"], [0.0, 1.0, 2.0]])
def test_a_missing_value_is_no_class_of_its_own(names: list[Any], lacking: str) -> None:
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({name: rng.choice(names, N) for name in ("label", "decision")}).assign(sex=PEOPLE["sex"])
    rows.loc[[7, 11], lacking] = None
    with invalid(option={"label": "y", "decision": "prediction"}[lacking], column=lacking, row=7):
        fa.permutation_test("label", prediction="decision", group="sex", metric=["accuracy", "tpr"], data=rows)
