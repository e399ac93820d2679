"""What jobs are made of, in which order, and what they ask a scheduler for."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairness_audits.values import Classifier
from pipeline.jobs import QUICK, STAGES, Run, benchmark, requested
from pipeline.report import html
from pipeline.stages import __path__ as stages
from pipeline.stages.train import check_finite
from pipeline.workflow.conf import CONF, RULES, Conf
from tests.errors import invalid

EVERYWHERE = "settings:\n  - {where: {}, set: {mem_mb: 1000, runtime: 10}}\n"


class Resources:
    """What jobs of a scale ask for by a configuration, after a text that is added to what every job asks for."""

    def __init__(self, conf: Path, scale: str = "small", text: str | None = None) -> None:
        if text is not None:
            (conf / "resources.yaml").write_text(EVERYWHERE + text)
        self.settings, self.scale = Conf(conf).resources(scale), scale

    def of(self, rule: str, names: Mapping[str, str] | None = None, attempt: int = 1) -> dict[str, Any]:
        return requested(self.settings, rule, {"scale": self.scale, **(names or {})}, attempt)


def read(conf: Path, text: str) -> Resources:
    """What jobs ask for by settings that follow those for every job."""
    return Resources(conf, text=text)


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_jobs_are_the_same_whatever_studies_are_asked_for_and_each_makes_one_file(scale: str) -> None:
    every, one = Run(scale=scale), Run(scale=scale, studies=["permutation_tests"])
    assert every.jobs == one.jobs
    assert list(every.jobs) == [job.output for job in every.jobs.values()]
    assert {path for study in every.planned for path in every.files("audit", study)} <= every.jobs.keys()


def test_a_job_comes_after_those_that_make_what_it_reads() -> None:
    made = set[str]()
    for job in Run(scale="smoke").jobs.values():
        needed = {path for paths in job.inputs.values() for path in paths if not path.startswith("data/raw/")}
        assert needed <= made, job.output
        made.add(job.output)


def test_a_file_that_nothing_asks_for_is_refused() -> None:
    with invalid(source="sensrr.npz") as caught:
        Run(scale="smoke").job("train", {"scale": "smoke", "dataset": "adult", "method": "sensrr"})
    assert "/adult/sensr.npz'" in str(caught.value)


def test_the_first_page_comes_first_and_then_the_studies_in_their_order_each_with_its_longest_job() -> None:
    run = Run(scale="laptop")
    priority = {path: job.priority for path, job in run.jobs.items()}
    pages = [run.first_points, *map(run.points, run.in_order)]
    needed = [{path for point in points for path in run.paths(point)} & priority.keys() for points in pages]
    earlier: set[str] = set()
    last = float("inf")
    for paths in needed:
        own = [priority[path] for path in paths - earlier]
        assert max(own) < last
        earlier, last = earlier | paths, min(own)
    trained = sorted((path for path in needed[2] if "/models/" in path), key=lambda path: -priority[path])
    assert trained[0].endswith("sensr.npz") or trained[0] in needed[1]


def test_the_first_page_waits_for_nothing_long_and_leaves_out_only_what_does() -> None:
    run = Run(scale="laptop")
    (study,), first = run.first_page, run.only_first()
    assert study == run.in_order[0] == run.conf["config"]["order"][0]
    assert set(run.in_order) == set(run.studies)
    expected = {path: run._seconds(*run.owners[path]) for stage in STAGES for path in first.files(stage, study)}
    assert max(expected.values()) <= QUICK < max(run._seconds(*run.owners[p]) for p in run.files("train", study))
    assert sum(expected.values()) < 2 * 5 * 60 * 0.8, "five minutes on two cores, with time for drawing"
    (line,) = html.unfinished({**first.artefacts(study), "unfinished": True})
    assert all(word in line["text"] for word in ("methods", "Adult", "COMPAS"))
    assert html.unfinished(first.artefacts(study)) == []
    omitted = {one["part"] for one in first.artefacts(study)["left_out"]}
    assert omitted == {point.part for point in run.points(study) if point.method == "sensr"}
    assert len(first.collect(study)) == len(run.first_points) < len(run.collect(study))
    assert run.points(study) == run.planned[study], "the other jobs are of the whole study"


def test_a_study_without_long_jobs_has_no_first_page() -> None:
    assert Run(scale="laptop", studies=["robustness_bias"]).first_page == ()


def test_the_time_of_a_training_that_a_study_shares_is_that_of_the_first_to_ask(conf: Path) -> None:
    """A condition may name the study and the block of what several points share."""
    run = Run(scale="workstation")
    network = next(point for point in run.points("robustness_bias") if "method.model" in dict(point.settings))
    asked = run.requested("train", {"scale": run.scale, **STAGES["train"].names(network)}, attempt=2)
    assert (asked["mem_mb"], asked["runtime"]) == (12_000, 960)


def test_without_data_nothing_is_made_of_them_and_each_audit_says_so() -> None:
    environment = {"SCALE": "laptop", "STUDY": "robustness_bias", "PIPELINE_ABSENT": "cifar100"}
    run = Run.of({}, environment)
    assert not any("cifar100" in path for path in run.jobs)
    runs, says_so = (re.compile(pattern + "/") for pattern in (f"(?!{run.unavailable}/)[^/]+", run.unavailable))
    for path in run.files("audit", "robustness_bias"):
        dataset = path.split("/")[5] + "/"
        assert bool(runs.fullmatch(dataset)) != bool(says_so.fullmatch(dataset)) == ("cifar100" in dataset)
    files = [path for stage in ("train", "prepare") for path in run.files(stage, "robustness_bias")]
    assert not any("cifar100" in path for path in files)


def test_a_benchmark_lies_where_the_rules_put_it() -> None:
    found = Run(scale="smoke", studies=["fliptest"]).benchmarks("fliptest")
    assert found["smoke/train/hiring/given"] == "results/benchmarks/smoke/train/hiring.given.tsv"
    rules = (CONF.parent / "pipeline" / "rules" / "models.smk").read_text()
    for stage in ("train", "transport", "audit"):
        parts = [f"{{{part}}}" for part in STAGES[stage].parts]
        assert f'"{benchmark("{scale}", stage, parts)}"' in rules


# What jobs ask a scheduler for follows from conf/resources.yaml, and a mistake in it is named.


def test_the_later_setting_wins_where_both_apply_and_no_other_job_is_touched(conf: Path) -> None:
    (conf / "scale" / "large.yaml").write_text("settings: []\n")
    found = read(
        conf,
        "  - {where: {rule: train}, set: {mem_mb: 2000}}\n"
        "  - {where: {rule: [train, audit], method: m, scale: small}, set: {mem_mb: 3000, gpu: 1}}\n"
        "  - {where: {scale: large}, set: {mem_mb: 9}}\n",
    )
    assert found.of("train", {"method": "m"}) == {"mem_mb": 3000, "runtime": 10, "gpu": 1}
    assert found.of("train", {"method": "other"}) == {"mem_mb": 2000, "runtime": 10}
    assert found.of("audit", {"method": "m"})["mem_mb"] == 3000
    assert found.of("report") == {"mem_mb": 1000, "runtime": 10}


def test_the_nth_attempt_asks_for_n_times_the_memory_and_the_time_and_no_more_graphics_cards(conf: Path) -> None:
    found = read(conf, "  - {where: {rule: train}, set: {gpu: 1}}\n")
    for n in (1, 2, 3):
        assert found.of("train", attempt=n) == {"mem_mb": 1000 * n, "runtime": 10 * n, "gpu": 1}


def test_a_name_counts_with_its_settings_and_a_pattern_asks_for_them(conf: Path) -> None:
    (conf / "transport").mkdir()
    (conf / "transport" / "t.yaml").write_text("steps: 1\n")
    found = read(
        conf,
        "  - {where: {method: m}, set: {runtime: 20}}\n"
        "  - {where: {method: 'm@*model=vgg*'}, set: {runtime: 40}}\n"
        "  - {where: {transport: t}, set: {runtime: 60}}\n",
    )
    minutes = {name: found.of("train", {"method": name})["runtime"] for name in ("m", "m@model=vgg19", "m@model=mlp")}
    assert minutes == {"m": 20, "m@model=vgg19": 40, "m@model=mlp": 20}
    assert found.of("audit", {"method": "other", "audit": "a+t@points=9"})["runtime"] == 60


def test_without_a_file_jobs_ask_for_nothing_and_with_one_for_memory_and_time(conf: Path) -> None:
    assert Resources(conf, "small").of("train", {"method": "m"}) == {}
    (conf / "resources.yaml").write_text("settings:\n  - {where: {rule: train}, set: {mem_mb: 1, runtime: 1}}\n")
    with invalid(source="resources.yaml", option="mem_mb"):
        Resources(conf, "small")


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("  - {where: {metod: m}, set: {gpu: 1}}\n", "metod"),
        ("  - {where: {method: othr}, set: {gpu: 1}}\n", "method"),
        ("  - {where: {rule: trian}, set: {gpu: 1}}\n", "rule"),
        ("  - {where: {}, set: {memory: 1}}\n", "memory"),
        ("  - {where: {}, set: {mem_mb: 4 GB}}\n", "mem_mb"),
        ("  - {where: {}, set: {gpu: true}}\n", "gpu"),
    ],
)
def test_a_mistake_is_named(text: str, option: str, conf: Path) -> None:
    with invalid(option=option):
        read(conf, text)


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_the_projects_own_file_is_read_at_every_scale(scale: str) -> None:
    found = Resources(CONF, scale)
    stage_names = {path.stem for path in Path(stages[0]).glob("*.py")} - {"__init__", "fetch", "absent", "artefacts"}
    assert {*stage_names, "draw"} == set(RULES), "each stage but fetch and what is not run is a rule that asks"
    for rule in RULES:
        asked = found.of(rule, {"study": "robustness_bias", "method": "standard", "audit": "robustness_bias"})
        assert asked["mem_mb"] > 0
        assert asked["runtime"] > 0
        assert bool(asked.get("gpu")) == (scale == "paper" and rule in ("train", "audit"))


def test_a_training_that_diverged_is_no_model() -> None:
    weights = np.array([[0.1, 0.2], [0.3, np.nan]])
    made = Classifier("m", "d", "simulated", "linear", {"w": weights})
    with invalid(option="method"):
        check_finite(made)
    check_finite(replace(made, parameters={"w": weights[:1], "k": np.array([[1]])}))
