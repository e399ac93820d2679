"""What the permutation audit of the command line finds, against closed forms and other ways to ask the same."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact
from sklearn.metrics import roc_auc_score

from fairness_audits.arguments import Given
from fairness_audits.audits.inference import corrected_once
from fairness_audits.audits.permutation import compute, reading
from fairness_audits.audits.permutation.asked import Asked, asked_by
from fairness_audits.audits.permutation.core import PermutationTest
from fairness_audits.cli.entry import parser, values_of
from fairness_audits.files import save_figure
from fairness_audits.results.render import terminal
from fairness_audits.results.style import new_figure, paper
from fairness_audits.tables.spark_engine import unavailable
from tests.cli.places import documented, json_of
from tests.errors import invalid

N = 1200


def scored() -> pd.DataFrame:
    """Women's positives are recognised more rarely than men's; races are alike. Ages rise with the score."""
    rng = np.random.default_rng(11)
    sex, label = np.arange(N) % 2, rng.integers(0, 2, N)
    logit = 1.5 * label - 1 + 0.8 * sex * label + rng.normal(size=N)
    return pd.DataFrame(
        {
            "sex": np.where(sex == 1, "male", "female"),
            "race": rng.choice(["a", "b", "c"], N, p=[0.6, 0.3, 0.1]),
            "age": np.round(40 + 5 * logit + 10 * rng.normal(size=N)),
            "y": label,
            "p": 1 / (1 + np.exp(-logit)),
            "logit": logit,
            "decision": (logit > 0).astype(int),
        }
    )


SCORED = scored()


@pytest.fixture(autouse=True)
def predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with preds.parquet."""
    monkeypatch.chdir(tmp_path)
    SCORED.to_parquet("preds.parquet")


def document(*arguments: str) -> dict[str, Any]:
    """The JSON of an audit that succeeds."""
    usual = {"--score": "p", "--draws": "300", "--group": "sex"}
    left_out = {*arguments, *(("--group",) if "--attribute" in arguments else ())}
    return json_of("permutation", *(w for pair in usual.items() if pair[0] not in left_out for w in pair), *arguments)


def _recalled(frame: pd.DataFrame, column: str, levels: tuple[str, str]) -> list[list[int]]:
    """Positives of each group: recognised, missed."""
    positives = frame[frame["y"] == 1]
    return [
        [int(((positives[column] == level) & (positives["decision"] == d)).sum()) for d in (1, 0)] for level in levels
    ]


def test_a_rate_is_fishers_exact_test() -> None:
    table = _recalled(SCORED, "sex", ("female", "male"))
    for alternative in ("less", "greater"):
        (found,) = document("--prediction", "decision", "--metric", "recall", "--alternative", alternative)["results"]
        assert found["exact"]
        assert found["p_value"] == pytest.approx(fisher_exact(table, alternative=alternative).pvalue, rel=1e-9)
    (found,) = document("--prediction", "decision", "--metric", "recall")["results"]
    shares = [row[0] / sum(row) for row in table]
    assert [group["estimate"] for group in found["groups"]] == pytest.approx(shares)
    assert found["difference"] == pytest.approx(shares[0] - shares[1])
    assert [group["units"] for group in found["groups"]] == [sum(row) for row in table]
    assert (found["rejected"], found["higher"]) == (True, "male")
    assert found["interval"][0] < found["difference"] < found["interval"][1] < 0


def test_the_difference_of_aucs_is_that_of_all_pairs() -> None:
    (found,) = document("--metric", "auc")["results"]
    for group in found["groups"]:
        own = SCORED[SCORED["sex"] == group["name"]]
        up, down = (own.loc[own["y"] == y, "p"].to_numpy() for y in (1, 0))
        assert group["estimate"] == pytest.approx((up[:, None] > down).mean())
        assert group["rows"] == len(own)
    assert found["p_value"] <= 0.01
    assert found["higher"] == "male"
    assert found["p_value_interval"][0] <= found["p_value"] <= found["p_value_interval"][1]


def test_a_test_does_not_depend_on_which_others_are_asked_for() -> None:
    many = document("--group", "race,sex", "--metric", "mean_score,auc", "--correct", "none")
    alone = document("--group", "sex", "--metric", "auc")
    assert many["results"][-1] == alone["results"][0]
    other = document("--group", "sex", "--metric", "auc", "--seed", "1")
    assert any(other["results"][0][part] != alone["results"][0][part] for part in ("p_value", "interval"))


def test_holm_is_over_all_tests_of_the_run() -> None:
    results = document("--group", "race,sex", "--metric", "tpr,fpr", "--threshold", "0.5")["results"]
    assert len(results) == 8
    p = np.array([entry["p_value"] for entry in results])
    stepped, expected = 0.0, {}
    for rank, position in enumerate(np.argsort(p, kind="stable").tolist()):
        stepped = max(stepped, min(1.0, (len(p) - rank) * p[position]))
        expected[position] = stepped
    assert [entry["adjusted_p_value"] for entry in results] == pytest.approx([expected[i] for i in range(8)])
    assert all(entry["rejected"] == (entry["adjusted_p_value"] <= 0.05) for entry in results)


def test_complementary_rates_are_one_hypothesis() -> None:
    asked = ("--group", "race", "--threshold", "0.5", "--metric")
    one, both = document(*asked, "tpr,auc"), document(*asked, "tpr,fnr,auc")
    adjusted = {(e["metric"], e["groups"][1]["name"]): e["adjusted_p_value"] for e in both["results"]}
    for entry in one["results"]:
        assert entry["adjusted_p_value"] == pytest.approx(adjusted[entry["metric"], entry["groups"][1]["name"]])
    assert (both["verdict"]["tests"], both["verdict"]["hypotheses"], one["verdict"]["hypotheses"]) == (9, 6, 6)
    assert any("as one hypothesis" in caveat for caveat in both["caveats"])
    # A larger TPR and a larger FNR are two.
    sided = document(*asked, "tpr,fnr,auc", "--alternative", "greater")
    assert sided["verdict"]["hypotheses"] == 9


def test_many_groups_are_each_compared_with_the_others_and_pairs_are_asked_for() -> None:
    """Of 12 groups one is ranked the wrong way round: it is found among 12 tests, its pairs among 66, in few lines."""
    rng = np.random.default_rng(4)
    label, town = rng.integers(0, 2, 12 * 100), np.arange(12 * 100) % 12
    score = label * np.where(town > 0, 1.0, -1.0) + rng.normal(size=len(label))
    pd.DataFrame({"town": town, "y": label, "p": score}).to_parquet("towns.parquet")
    asked = ("--predictions", "towns.parquet", "--group", "town", "--metric", "auc", "--draws", "2800")
    made = document(*asked)
    results = made["results"]
    assert [entry["groups"][0]["name"] for entry in results] == [str(place) for place in range(12)]
    assert {entry["groups"][1]["name"] for entry in results} == {f"not {place}" for place in range(12)}
    assert [entry["groups"][0]["rows"] for entry in results] == [100] * 12
    assert [entry["higher"] for entry in results if entry["rejected"]] == ["not 0"]
    (alone,) = document("--group", "race=a", "--metric", "tpr", "--threshold", "0.5")["results"]
    (first, *_) = document("--group", "race", "--metric", "tpr", "--threshold", "0.5")["results"]
    for key in ("groups", "difference", "interval", "p_value"):
        assert first[key] == alone[key]
    pairs = documented("permutation", "--score", "p", *asked, "--pairs")
    assert len(terminal(pairs).splitlines()) < 80
    assert len(pairs.facts["results"]) == 66
    rejected = [entry for entry in pairs.facts["results"] if entry["rejected"]]
    assert len(rejected) == 11
    assert all(entry["groups"][0]["name"] == "0" for entry in rejected)


def test_max_t_adjusts_within_each_metric() -> None:
    results = document("--group", "race", "--metric", "auc,tpr", "--threshold", "0.5", "--correct", "max-t")["results"]
    assert [(entry["groups"][0]["name"], entry["groups"][1]["name"], entry["metric"]) for entry in results] == [
        (a, b, metric) for a, b in (("a", "b"), ("a", "c"), ("b", "c")) for metric in ("auc", "tpr")
    ]
    for metric in ("auc", "tpr"):
        own = sorted((e for e in results if e["metric"] == metric), key=lambda entry: -abs(entry["statistic"]))
        assert [e["adjusted_p_value"] for e in own] == sorted(e["adjusted_p_value"] for e in own)


def test_copies_of_a_row_in_one_cluster_add_nothing() -> None:
    SCORED.assign(person=np.arange(N)).to_parquet("single.parquet")
    pd.concat([SCORED.assign(person=np.arange(N))] * 3).to_parquet("triple.parquet")
    asked = ("--metric", "tpr,mean_score", "--threshold", "0.5", "--cluster", "person")
    single, triple = (document(*asked, "--predictions", f"{name}.parquet")["results"] for name in ("single", "triple"))
    careless = document(*asked[:4], "--predictions", "triple.parquet")["results"]
    for one, three, rows in zip(single, triple, careless, strict=True):
        assert three["statistic"] == pytest.approx(one["statistic"])
        assert three["p_value"] == one["p_value"]
        assert [group["units"] for group in three["groups"]] == [N // 2, N // 2]
        assert three["groups"][0]["estimate"] == pytest.approx(rows["groups"][0]["estimate"])
        width = [entry["interval"][1] - entry["interval"][0] for entry in (three, rows)]
        assert width[1] < 0.7 * width[0]  # 1 / sqrt(3) of it, without the clusters


@pytest.mark.parametrize("batched", [False, True])
def test_a_metric_of_ones_own_is_the_function(batched: bool) -> None:
    Path("own.py").write_text(
        "import numpy as np\n"
        "def brier(y, score, weight):\n"
        "    return (weight * (y - score) ** 2).sum(axis=-1) / weight.sum(axis=-1)\n"
        f"brier.batched = {batched}\n"
    )
    own, known = document("--metric", "own.py:brier,squared_error", "--draws", "39", "--correct", "none")["results"]
    assert (own["metric"], own["draws"], known["draws"]) == ("brier", 39, 39)
    assert own["difference"] == pytest.approx(known["difference"])
    assert own["statistic"] == pytest.approx(known["statistic"], rel=0.25)  # 200 bootstraps against the closed form


def test_scores_are_read_as_they_are_or_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("--metric", "auc,mean_score")
    exact = document(*asked)["results"]
    assert {entry["basis"] for entry in exact} == {"every row"}
    monkeypatch.setattr(reading, "ROWS", N - 1)
    one_by_one = document(*asked)["results"]
    assert {entry["basis"] for entry in one_by_one} == {f"counts of {N:,} distinct scores"}
    for row, count in zip(exact, one_by_one, strict=True):
        assert count["difference"] == pytest.approx(row["difference"], abs=1e-12)
        assert count["statistic"] == pytest.approx(row["statistic"], rel=1e-9)
    monkeypatch.setattr(reading, "DISTINCT", N // 4)
    assert document(*asked)["results"] == exact
    monkeypatch.setattr(reading, "IN_MEMORY", N - 1)
    assert document(*asked)["results"] == one_by_one
    monkeypatch.setattr(reading, "SCORES", N // 4)
    with invalid(option="score", column="p"):
        documented("permutation", "--score", "p", "--group", "sex", *asked)


def test_scores_of_a_rare_event_are_no_fewer_beyond_a_hundred_thousand_rows() -> None:
    """Group b has the scores of a, times .0136: the same AUC, and a mean that a grid from 0 to 1 does not see."""
    rng, n = np.random.default_rng(3), 60_000
    label = (rng.random(2 * n) < 0.01).astype(int)
    score = (1 / (1 + np.exp(3 - rng.normal(size=2 * n) - 0.96 * label))) * np.repeat([1, 0.0136], n)
    frame = pd.DataFrame({"y": label, "p": score, "sex": np.repeat(["a", "b"], n)})
    frame.to_parquet("rare.parquet")
    made = document("--predictions", "rare.parquet", "--metric", "auc,mean_score", "--draws", "79")["results"]
    for place, (_, own) in enumerate(frame.groupby("sex")):
        expected = {"auc": roc_auc_score(own["y"], own["p"]), "mean_score": own["p"].mean()}
        for entry in made:
            assert entry["groups"][place]["estimate"] == pytest.approx(expected[entry["metric"]], rel=1e-9)
    assert [entry["rejected"] for entry in made] == [False, True]


def test_a_correlation_is_pearsons() -> None:
    (found,) = document("--attribute", "age", "--metric", "correlation")["results"]
    assert found["difference"] == pytest.approx(np.corrcoef(SCORED["p"], SCORED["age"])[0, 1])
    assert (found["rejected"], found["direction"]) == (True, 1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "--score noise --metric mean_score --alternative less",
            "Mean score by sex: ",
        ),
        (
            "--metric correlation --attribute age",
            "Correlation of the score with age: +",
        ),
        (
            "--metric correlation,auc --attribute age --group sex",
            "alone), the largest for certain first. Correlation of the score",
        ),
        ("--metric correlation --attribute age --predictions six.parquet", "This does not prove that there is none"),
    ],
)
def test_sentences_are_of_what_was_tested(asked: str, said: str) -> None:
    noisy = SCORED.assign(noise=np.random.default_rng(0).normal(size=N))
    noisy.to_parquet("preds.parquet")
    noisy[:6].assign(age=[3, 1, 4, 1, 5, 9], p=[0.3, 0.2, 0.3, 0.1, 0.2, 0.4]).to_parquet("six.parquet")
    assert said in document(*asked.split())["verdict"]["sentence"]


@pytest.mark.filterwarnings("error")
def test_a_figure_names_groupings_in_any_letters() -> None:
    """Two letters of Hebrew are no two boxes; and where no type has Chinese, there is no warning."""
    yes = np.random.default_rng(0).random((2, N)) < 0.5
    drawn = SCORED.assign(**{name: np.where(own, "\u05d0", "\u4e2d") for name, own in zip("ab", yes, strict=True)})
    drawn.to_parquet("preds.parquet")
    made = documented("permutation", "--score", "p", "--metric", "auc", "--draws", "199", "--group", "a,b")
    names = [label.get_text() for label in made.figure().axes[0].get_yticklabels()]
    assert sorted(names) == [f"auc, {name}: \u05d0 - \u4e2d" for name in "ab"]
    made.save(Path("out"))
    with paper():
        for letter, name in (("\u05d0", "one"), ("\u05d1", "other")):
            figure = new_figure(1, 1)
            figure.text(0.5, 0.5, letter)
            save_figure(figure, name)
    assert Path("one.png").read_bytes() != Path("other.png").read_bytes()


def test_an_undefined_metric_is_a_result_with_its_reason() -> None:
    SCORED.assign(y=np.where(SCORED["sex"] == "male", SCORED["y"], 0)).to_parquet("none.parquet")
    made = document("--predictions", "none.parquet", "--metric", "tpr,fpr,auc", "--threshold", "0.5")
    tpr, fpr, auc = made["results"]
    assert tpr["undefined"] == "group 'female' has no rows with label 1"
    assert auc["undefined"] == "group 'female' has no rows with label 1"
    assert (tpr["p_value"], tpr["rejected"], tpr["difference"]) == (None, False, None)
    assert fpr["adjusted_p_value"] == fpr["p_value"]  # what does not exist is no comparison
    assert made["verdict"]["undefined"] == 2


def test_a_perfect_auc_is_a_verdict() -> None:
    rng = np.random.default_rng(1)
    label, sex = rng.integers(0, 2, 600), np.repeat(["f", "m"], (200, 400))
    score = rng.normal(size=600) + np.where(sex == "f", 20, 0.66) * label
    pd.DataFrame({"y": label, "p": score, "sex": sex}).to_parquet("perfect.parquet")
    made = document("--predictions", "perfect.parquet", "--metric", "auc")
    assert made["verdict"]["outcome"] == "rejected"
    assert made["results"][0]["higher"] == "f"


def test_sequential_draws_stop_early_and_say_so() -> None:
    (found,) = document("--metric", "auc", "--draws", "100000", "--resampling-risk", "0.01")["results"]
    assert 200 <= found["draws"] < 5000
    assert "drawing stopped after" in found["guarantee"]


def test_a_hypothesis_that_two_tests_are_of_is_counted_once() -> None:
    """Three tests, two hypotheses: Holm doubles the least p-value, and both tests of a hypothesis have its larger p."""
    known = PermutationTest("auc", ("f", "m"), "studentized", "two-sided", 0.05, (0.5, 0.6), (100, 100), (100, 100))
    made = compute._corrected(
        [
            compute.Finding("sex", "AUC", replace(known, p_value=p), "every row", 100, (name,))
            for p, name in ((0.01, "tpr"), (0.012, "tpr"), (0.4, "fpr"))
        ],
        "holm",
    )
    assert [finding.adjusted for finding in made] == pytest.approx([0.024, 0.024, 0.4])
    assert compute.hypotheses(made) == 2


@pytest.mark.parametrize(
    ("correction", "draws"),
    # Six p-values of 2 / (B + 1): six times that is at most .05 from B = 239 on, 6 (1 + ... + 1/6) times from 587 on.
    # The largest |T| has one tail.
    [("holm", 239), ("bonferroni", 239), ("bh", 239), ("by", 587), ("max-t", 19), ("none", 39)],
)
def test_as_many_draws_are_made_as_one_rejection_needs(correction: str, draws: int) -> None:
    """At the least number the smallest possible p-value is rejected beside five of 1; below it is refused."""
    jobs = [compute.Job(lambda asked: [], ((f"metric {number}",),), drawn=True) for number in range(6)]
    least = np.array([2 / (draws + 1), *[1.0] * 5])
    if correction in ("holm", "bonferroni", "bh", "by"):
        assert corrected_once(least, list("abcdef"), correction)[0] <= 0.05
        assert corrected_once(np.array([2 / draws, *[1.0] * 5]), list("abcdef"), correction)[0] > 0.05
    made = compute.with_enough_draws(_asked("--correct", correction, "--draws", str(draws)), jobs)
    assert made.draws == draws
    assert compute.with_enough_draws(_asked("--correct", correction), jobs).draws == 10_000
    few = _asked("--correct", correction, "--draws", str(draws - 1))
    with invalid(option="draws", remedy=f"Use at least draws={draws}, or drop it"):
        compute.with_enough_draws(few, jobs)
    one_tail = _asked("--correct", correction, "--alternative", "two-sided", "--draws", str(draws // 2))
    if correction != "max-t":
        assert compute.with_enough_draws(one_tail, jobs).draws == draws // 2
    exact = [replace(job, drawn=False) for job in jobs]
    assert compute.with_enough_draws(few, exact) == few


def test_many_tests_get_more_draws_unasked() -> None:
    jobs = [compute.Job(lambda asked: [], ((f"{number}",),), drawn=True) for number in range(780)]
    assert compute.with_enough_draws(_asked(), jobs).draws == 31_199


def _asked(*options: str) -> Asked:
    audit = "permutation --predictions f --label y --score p --group sex --metric auc"
    arguments = parser().parse_args([*audit.split(), *options])
    return asked_by(Given(arguments.command.audit, values_of(arguments)).but(**values_of(arguments)))


# The permutation audit counted by Spark as a user's own command starts it.


ASKED = (
    "--label", "y", "--score", "p", "--threshold", "0.5", "--group", "sex", "--metric", "tpr,auc",
    "--draws", "200", "--threads", "1",
)  # fmt: skip


def counted(engine: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairness_audits", "permutation", "--predictions", "preds.parquet", *ASKED]
    # A compiler of short-lived programs, as in tests/tabulate.
    quick = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    written = ["--engine", engine, "--json", f"{engine}.json"]
    return subprocess.run([*command, *written], env=os.environ | quick | environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_session_of_its_own_gives_the_p_values_of_duckdb() -> None:
    if reason := unavailable():
        pytest.skip(reason)
    documents = {}
    for engine in ("duckdb", "spark"):
        made = counted(engine)
        assert made.returncode == 0, made.stderr
        documents[engine] = json.loads(Path(f"{engine}.json").read_text())
    assert documents["spark"]["results"] == documents["duckdb"]["results"]
    assert len(documents["spark"]["results"]) == 2
    assert documents["spark"]["verdict"] == documents["duckdb"]["verdict"]


def test_a_java_that_is_too_old_is_said(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    made = counted("spark", JAVA_HOME=str(tmp_path))
    assert made.returncode == 2
    (message,) = (line for line in made.stderr.splitlines() if line.startswith("error: "))
    assert message.startswith("error: Spark does not start (")
    assert "It needs Java 17 or newer: install a JDK and set JAVA_HOME" in message
    assert not Path("spark.json").exists()
