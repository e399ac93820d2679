"""What jobs ask a scheduler for follows from conf/resources.yaml, and a mistake in it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.stages import __path__ as stages
from pipeline.workflow.config import CONF, Workflow
from pipeline.workflow.resources import RULES, Resources

EVERYWHERE = "settings:\n  - {where: {}, set: {mem_mb: 1000, runtime: 10}}\n"


def read(conf: Path, text: str = "", scale: str = "small") -> Resources:
    """Settings that follow those for every job."""
    (conf / "resources.yaml").write_text(EVERYWHERE + text)
    return Resources.read(conf, scale)


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
    stage_names = {path.stem for path in Path(stages[0]).glob("*.py")} - {"__init__", "fetch", "absent"}
    assert stage_names == set(RULES), "each stage but fetch, and what is not run, is a rule that asks for something"
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
