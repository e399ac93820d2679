"""What jobs are made of, in which order, and what they ask a scheduler for."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairness_audits.values import Classifier
from pipeline.jobs import QUICK, Run, requested
from pipeline.report import html
from pipeline.stages import __path__ as stages
from pipeline.stages.train import check_finite
from pipeline.workflow.conf import CONF, RULES, Conf
from pipeline.workflow.points import STAGES
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
def test_tasks_are_the_same_whatever_studies_are_asked_for_and_each_makes_one_file(scale: str) -> None:
    every, one = Run(scale=scale), Run(scale=scale, studies=["permutation_tests"])
    assert every.tasks == one.tasks
    assert every.records == one.records
    assert list(every.tasks) == [task.output for task in every.tasks.values()]
    assert {path for study in every.planned for path in every.files("audit", study)} <= every.tasks.keys()


def test_a_task_comes_after_those_that_make_what_it_reads() -> None:
    made = set[str]()
    for task in Run(scale="smoke").tasks.values():
        needed = {path for paths in task.inputs.values() for path in paths if not path.startswith("data/raw/")}
        assert needed <= made, task.output
        made.add(task.output)


def names(record: str) -> dict[str, str]:
    """The wildcards of the record of a job of audits."""
    values = record.removesuffix(".json").split("/")[2:]
    return dict(zip(("scale", "study", "dataset", "part"), values, strict=True))


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_each_audit_is_in_one_job_which_reads_what_rules_make(scale: str) -> None:
    run = Run(scale=scale)
    inside = [path for paths in run.records.values() for path in paths]
    assert len(inside) == len(set(inside))
    assert {path for path, (stage, _) in run.owners.items() if stage == "audit"} <= set(inside)
    for record, paths in run.records.items():
        job = run.job("audit", names(record))
        assert [task.output for task in job.tasks] == paths
        assert {run.tasks[path].stage for path in job.inputs} <= {"prepare", "train", "transport"}
        assert not set(job.inputs) & set(inside), "a job of audits reads nothing that another one makes"
    studies = [set(run.made(study)) for study in run.planned]
    assert sum(map(len, studies)) == len(run.records) == len(set.union(*studies))


def test_a_study_has_few_jobs_and_long_trainings_have_their_own() -> None:
    count = {}
    for scale in ("smoke", "laptop"):
        run = Run(scale=scale)
        records = [record for study in run.studies for record in run.made(study)]
        inside = {path for record in records for path in run.records[record]}
        files = {path for stage in STAGES for study in run.studies for path in run.files(stage, study)}
        count[scale] = len(records) + len(files - inside)
    assert count["smoke"] < 95
    assert count["laptop"] < 115
    assert "results/models/laptop/adult/sensr.npz" not in inside


def test_a_job_asks_for_the_most_memory_of_its_tasks_and_for_the_time_of_all() -> None:
    run = Run(scale="laptop")
    record = max(run.records, key=lambda one: len(run.records[one]))
    owners = [run.owners[path] for path in run.records[record]]
    each = [run.requested_by_task(*owner) for owner in owners]
    asked, again = (run.requested("audit", names(record), attempt) for attempt in (1, 2))
    assert asked["mem_mb"] == max(one["mem_mb"] for one in each)
    assert asked["seconds"] == sum(one["seconds"] for one in each)
    assert 60 * asked["runtime"] > 3 * asked["seconds"]
    assert again["runtime"] == 2 * asked["runtime"]


def test_a_deleted_file_of_a_job_is_noticed(tmp_path: Path) -> None:
    run = Run(scale="smoke", folder=tmp_path)
    record, paths = next(iter(run.records.items()))
    assert not run.repaired(names(record)), "nothing was made"
    for path in (record, *paths):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text('{"repaired": 2}')
    assert run.repaired(names(record)) == 2
    (tmp_path / paths[-1]).unlink()
    assert run.repaired(names(record)) == 3, "a changed parameter runs the job again"


def test_a_file_that_nothing_asks_for_is_refused() -> None:
    with invalid(source="sensrr.npz") as caught:
        Run(scale="smoke").job("train", {"scale": "smoke", "dataset": "adult", "method": "sensrr"})
    assert "/adult/sensr.npz'" in str(caught.value)


def test_the_first_page_comes_first_and_then_the_studies_in_their_order_each_with_its_longest_job() -> None:
    run = Run(scale="laptop")
    inside = {path for paths in run.records.values() for path in paths}
    priority = {record: run.job("audit", names(record)).priority for record in run.records}
    for path, (stage, point) in run.owners.items():
        if path not in inside:
            wildcards = {"scale": run.scale, **STAGES[stage].names(point)}
            priority[path] = run.job(stage, wildcards).priority
    pages = [(run.only_first(), run.in_order[0]), *((run, study) for study in run.in_order)]
    needed = [
        ({path for stage in STAGES for path in own.files(stage, study)} | {*own.made(study)}) & priority.keys()
        for own, study in pages
    ]
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
    (line,) = html.unfinished(first.artefacts(study))
    assert all(word in line["text"] for word in ("methods", "Adult", "COMPAS"))
    assert html.unfinished(run.artefacts(study)) == []
    omitted = {one["part"] for one in first.artefacts(study)["unfinished"]}
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
    assert not any("cifar100" in path for path in run.tasks)
    for record in run.made("robustness_bias"):
        stages = {task.stage for task in run.job("audit", names(record)).tasks}
        assert (stages == {"absent"}) == ("cifar100" in record)
    files = [path for stage in ("train", "prepare") for path in run.files(stage, "robustness_bias")]
    assert not any("cifar100" in path for path in files)


def test_a_benchmark_lies_where_the_tasks_put_it() -> None:
    run = Run(scale="smoke", studies=["fliptest"])
    found = run.benchmarks("fliptest")
    assert found["smoke/train/hiring/given"] == "results/benchmarks/smoke/train/hiring.given.tsv"
    assert set(found.values()) <= {task.benchmark for task in run.tasks.values()}


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
    without = {"__init__", "fetch", "absent", "record", "decide", "draw_reference"}
    stage_names = {path.stem for path in Path(stages[0]).glob("*.py")} - without
    assert stage_names == set(RULES), "each stage of a run, but fetch and what is not run, is a rule that asks"
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
