"""What jobs are made of, in which order, and what they ask a scheduler for."""

from pathlib import Path

import pytest

from pipeline.stages import __path__ as stages
from pipeline.workflow.config import CONF, Workflow
from pipeline.workflow.jobs import Job, jobs, longest_chains
from pipeline.workflow.resources import RULES, Resources

EVERYWHERE = "settings:\n  - {where: {}, set: {mem_mb: 1000, runtime: 10}}\n"


def read(conf: Path, text: str = "", scale: str = "small") -> Resources:
    """Settings that follow those for every job."""
    (conf / "resources.yaml").write_text(EVERYWHERE + text)
    return Resources.read(conf, scale)


def points(*named: str) -> list[dict[str, str]]:
    """Points given as ``study/block/dataset/method``."""
    parts = ("study", "block", "dataset", "method")
    return [
        dict(zip(parts, one.split("/"), strict=True)) | {"kind": "d", "transport": "", "audit": "a"} for one in named
    ]


def made(found: list[Job]) -> dict[str, list[str]]:
    return {job.rule: ["/".join(place) for place in job.places] for job in found}


def test_files_that_agree_in_the_named_parts_are_one_job_and_others_go_by_themselves(conf: Path) -> None:
    resources = read(
        conf,
        "  - {where: {rule: train}, set: {together: [dataset]}}\n"
        "  - {where: {rule: train, method: other}, set: {together: []}}\n",
    )
    found = jobs("train", points("s/b/d/m", "s/b/d/m@rate=2", "s/b/e/m", "s/b/d/other"), resources)
    assert made(found) == {
        "train_s_d": ["d/m", "d/m@rate=2"],
        "train_s_e": ["e/m"],
        "train_d_other": ["d/other"],
    }
    assert [job.title for job in found] == ["train m on d, 2 together", "train m on e", "train other on d"]


def test_what_several_studies_ask_for_is_made_once_and_what_one_asks_for_alone_not_with_it(conf: Path) -> None:
    resources = read(conf, "  - {where: {rule: train}, set: {together: [dataset]}}\n")
    assert made(jobs("train", points("s/b/d/m", "t/b/d/m", "t/b/d/other"), resources)) == {
        "train_s_d": ["d/m"],
        "train_t_d": ["d/other"],
    }


def test_points_without_a_map_ask_for_none(conf: Path) -> None:
    assert jobs("transport", points("s/b/d/m"), read(conf, "")) == []


def test_a_part_that_files_of_a_stage_do_not_have_is_refused(conf: Path) -> None:
    resources = read(conf, "  - {where: {rule: prepare}, set: {together: [method]}}\n")
    with pytest.raises(ValueError, match="files of prepare have no method in common"):
        jobs("prepare", points("s/b/d/m"), resources)


def test_two_jobs_of_one_name_are_refused(conf: Path) -> None:
    with pytest.raises(ValueError, match="two jobs have the name 'd_m_rate_2'"):
        jobs("train", points("s/b/d/m@rate=2", "s/b/d/m_rate_2"), read(conf, ""))


def test_a_job_asks_for_the_time_of_all_its_files_and_the_memory_of_the_largest(conf: Path) -> None:
    resources = read(
        conf,
        "  - {where: {rule: train}, set: {together: [dataset], seconds: 3}}\n"
        "  - {where: {rule: train, method: other}, set: {mem_mb: 5000, seconds: 7}}\n",
    )
    (job,) = jobs("train", points("s/b/d/m", "s/b/d/other", "s/b/d/m@rate=1"), resources)
    asked = job.asks(resources, attempt=2)
    assert (asked["mem_mb"], asked["runtime"], asked["seconds"]) == (10_000, 60, 13)


def test_a_job_comes_before_those_of_a_shorter_chain() -> None:
    """a (1) -> b (5) -> d (2) and a -> c (3): chains of 8, 7, 2 and 3 seconds."""
    made = [Job("train", name, ()) for name in "abcd"]
    inputs = {"a": [], "b": ["of a"], "c": ["of a"], "d": ["of b"]}
    seconds = dict(zip("abcd", (1, 5, 3, 2), strict=True))
    chains = longest_chains(made, lambda j: inputs[j.name], lambda j: [f"of {j.name}"], lambda j: seconds[j.name])
    assert chains == {"train_a": 8, "train_b": 7, "train_c": 3, "train_d": 2}


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_jobs_are_the_same_whatever_studies_are_asked_for(scale: str) -> None:
    every, one = Workflow(scale=scale), Workflow(scale=scale, studies=["permutation_tests"])
    assert made(every.plan.jobs) == made(one.plan.jobs)
    files = [path for job in every.plan.jobs for path in every.plan.outputs(job)]
    assert len(files) == len(set(files))
    audits = {path for study in every.plan.studies for path in every.files("audit", study)}
    assert audits <= set(files)


def test_sensr_starts_before_any_other_training_and_all_studies_are_at_most_200_jobs() -> None:
    workflow = Workflow(scale="laptop")
    trainings = sorted((workflow.plan.priority(job), job.rule) for job in workflow.plan.jobs if job.stage == "train")
    assert {rule for _, rule in trainings[-2:]} == {"train_adult_sensr", "train_compas_sensr"}
    makers = {path: job for job in workflow.plan.jobs for path in workflow.plan.outputs(job)}
    pending = [path for study in workflow.studies for path in workflow.files("audit", study)]
    needed = dict[str, Job]()
    while pending:
        job = makers.get(pending.pop())
        if job is not None and job.rule not in needed:
            needed[job.rule] = job
            pending += workflow.plan.inputs(job)
    fetched = {path for job in needed.values() for path in workflow.plan.inputs(job) if path.startswith("data/raw")}
    assert len(needed) + len(fetched) + 2 * len(workflow.studies) + 2 <= 200


def test_without_data_nothing_is_made_of_them_and_each_audit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_ABSENT", "cifar100")
    workflow = Workflow(scale="laptop", studies=["robustness_bias"])
    made = {path for job in workflow.plan.jobs for path in workflow.plan.outputs(job)}
    assert not any("cifar100" in path for path in made)
    said = {entry["output"] for entry in workflow.plan.not_run("robustness_bias")}
    assert said | made >= set(workflow.files("audit", "robustness_bias"))
    assert all("/cifar100" in path for path in said)
    assert not any(
        "cifar100" in path
        for path in (*workflow.files("train", "robustness_bias"), *workflow.files("prepare", "robustness_bias"))
    )


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_stochastic_maps_do_not_come_after_others_in_a_process(scale: str) -> None:
    """They need torch imported before POT, which exact and entropic maps import without it."""
    plan = Workflow(scale=scale).plan
    kinds = [
        {member["transport"].split("@")[0] for member in job.members} for job in plan.jobs if job.stage == "transport"
    ]
    assert all(kind == {"stochastic"} for kind in kinds if "stochastic" in kind)
    assert any("stochastic" in kind for kind in kinds)


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
    assert [found.of("train", attempt=n) for n in (1, 2, 3)] == [
        {"mem_mb": 1000 * n, "runtime": 10 * n, "gpu": 1} for n in (1, 2, 3)
    ]


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


def test_without_a_file_jobs_ask_for_nothing(conf: Path) -> None:
    assert Resources.read(conf, "small").of("train", {"method": "m"}) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  - {where: {metod: m}, set: {gpu: 1}}\n", r"where 'metod' is unknown \(did you mean 'method'\?\)"),
        ("  - {where: {method: othr}, set: {gpu: 1}}\n", r"there is no method 'othr' \(did you mean 'other'\?\)"),
        ("  - {where: {rule: trian}, set: {gpu: 1}}\n", r"there is no rule 'trian' \(did you mean 'train'\?\)"),
        ("  - {where: {}, set: {memory: 1}}\n", r"no key 'memory'\. There are: mem_mb, runtime, gpu"),
        (
            "  - {where: {}, set: {mem_mb: 4 GB}}\n",
            r"resources\.yaml: expected mem_mb to be .*a whole number of at least 0; found '4 GB'",
        ),
        ("  - {where: {}, set: {gpu: true}}\n", r"expected gpu to be .*; found True"),
        (
            "  - {where: {}, set: {together: [datset]}}\n",
            r"together to be .* among block, kind, .*; found \['datset'\]",
        ),
    ],
)
def test_a_mistake_is_named(text: str, message: str, conf: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read(conf, text)


def test_every_job_needs_memory_and_time(conf: Path) -> None:
    (conf / "resources.yaml").write_text("settings:\n  - {where: {rule: train}, set: {mem_mb: 1, runtime: 1}}\n")
    with pytest.raises(ValueError, match="mem_mb and runtime not given for every job"):
        Resources.read(conf, "small")


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_the_projects_own_file_is_read_at_every_scale(scale: str) -> None:
    found = Resources.read(CONF, scale)
    stage_names = {path.stem for path in Path(stages[0]).glob("*.py")} - {"__init__", "fetch", "absent", "gallery"}
    assert stage_names == set(RULES), "each stage but fetch, what is not run and the gallery is a rule that asks"
    for rule in RULES:
        asked = found.of(rule, {"study": "robustness_bias", "method": "standard", "audit": "robustness_bias"})
        assert asked["mem_mb"] > 0
        assert asked["runtime"] > 0
        assert bool(asked.get("gpu")) == (scale == "paper" and rule in ("train", "audit"))


def test_exact_maps_as_published_ask_for_more_than_others() -> None:
    found = Workflow(scale="paper", studies=["fliptest"]).resources
    exact, entropic = (
        found.of("transport", {"dataset": "hiring", "transport": name}) for name in ("exact", "entropic")
    )
    assert exact["mem_mb"] > 2 * entropic["mem_mb"]
