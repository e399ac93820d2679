"""What jobs are made of, in which order, and what they ask a scheduler for."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from fairness_audits import process
from fairness_audits.files import written
from fairness_audits.process import Process
from fairness_audits.values import Classifier
from pipeline import io
from pipeline.stages import __path__ as stages
from pipeline.stages.train import check_finite
from pipeline.workflow import launch, paths, resume, warm
from pipeline.workflow.code_hash import code_hash, modules_behind
from pipeline.workflow.config import CONF, Workflow
from pipeline.workflow.paths import STAGES
from pipeline.workflow.resources import RULES, Resources
from pipeline.workflow.resume import HALF, LOCKS, OWNERS, Owner, at_work, is_snakemake, main
from tests.errors import invalid

EVERYWHERE = "settings:\n  - {where: {}, set: {mem_mb: 1000, runtime: 10}}\n"


def read(conf: Path, text: str = "", scale: str = "small") -> Resources:
    """Settings that follow those for every job."""
    (conf / "resources.yaml").write_text(EVERYWHERE + text)
    return Resources.read(conf, scale)


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_jobs_are_the_same_whatever_studies_are_asked_for_and_each_makes_one_file(scale: str) -> None:
    every, one = Workflow(scale=scale), Workflow(scale=scale, studies=["permutation_tests"])
    assert every.plan.jobs == one.plan.jobs
    files = [job.output for job in every.plan.jobs]
    assert len(files) == len(set(files))
    audits = {path for study in every.selection.planned for path in every.files("audit", study)}
    assert audits <= set(files)


def test_a_job_comes_after_those_that_make_what_it_reads() -> None:
    made = set[str]()
    for job in Workflow(scale="smoke").plan.jobs:
        needed = {path for paths in job.inputs.values() for path in paths if not path.startswith("data/raw/")}
        assert needed <= made, job.output
        made.add(job.output)


def test_a_file_that_nothing_asks_for_is_refused() -> None:
    with invalid(source="unknown.npz"):
        Workflow(scale="smoke").job("train", {"scale": "smoke", "dataset": "adult", "method": "unknown"})


def test_studies_are_completed_one_after_another_and_each_starts_with_data_and_sensr() -> None:
    workflow = Workflow(scale="laptop")
    priority = {job.output: job.priority for job in workflow.plan.jobs}
    needed = {
        study: {path for stage in STAGES for path in workflow.files(stage, study) if path in priority}
        for study in workflow.studies
    }
    studies = sorted(workflow.studies, key=lambda study: min(priority[path] for path in needed[study]), reverse=True)
    assert studies[0] == "individual_fairness"
    assert studies[-1] == "robustness_bias"
    earlier: set[str] = set()
    last = float("inf")
    for study in studies:
        own = [priority[path] for path in needed[study] - earlier]
        assert max(own) < last
        earlier, last = earlier | needed[study], min(own)
    first = needed["individual_fairness"]
    order = sorted(first, key=lambda path: -priority[path])
    assert [path.split("/")[1] for path in order[:4]] == ["prepared"] * 4
    trained = [path for path in order if path.startswith("results/models")]
    assert {path.split("/")[-1] for path in trained[:2]} == {"sensr.npz"}


def test_the_time_of_a_training_that_a_study_shares_is_that_of_the_first_to_ask(conf: Path) -> None:
    """A condition may name the study and the block of what several points share."""
    jobs = Workflow(scale="workstation").plan.jobs
    network = next(job for job in jobs if job.stage == "train" and job.names["study"] == "robustness_bias")
    asked = network.requests(attempt=2)
    assert (asked["mem_mb"], asked["runtime"]) == (12_000, 960)


def test_without_data_nothing_is_made_of_them_and_each_audit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_ABSENT", "cifar100")
    workflow = Workflow(scale="laptop", studies=["robustness_bias"])
    assert not any("cifar100" in job.output for job in workflow.plan.jobs)
    runs, says_so = (
        re.compile(pattern + "/") for pattern in (workflow.available_datasets(), workflow.unavailable_datasets())
    )
    for path in workflow.files("audit", "robustness_bias"):
        dataset = path.split("/")[5] + "/"
        assert bool(runs.fullmatch(dataset)) != bool(says_so.fullmatch(dataset)) == ("cifar100" in dataset)
    files = [path for stage in ("train", "prepare") for path in workflow.files(stage, "robustness_bias")]
    assert not any("cifar100" in path for path in files)


def test_a_benchmark_lies_where_the_rules_put_it() -> None:
    workflow = Workflow(scale="smoke", studies=["fliptest"])
    found = workflow.plan.benchmarks(workflow.points("fliptest"))
    assert found["smoke/train/hiring/given"] == "results/benchmarks/smoke/train/hiring.given.tsv"
    rules = (CONF.parent / "pipeline" / "rules" / "models.smk").read_text()
    for stage in ("train", "transport", "audit"):
        parts = [f"{{{part}}}" for part in STAGES[stage].parts]
        assert f'"{paths.benchmark("{scale}", stage, tuple(parts))}"' in rules


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
    assert Resources.read(conf, "small").of("train", {"method": "m"}) == {}
    (conf / "resources.yaml").write_text("settings:\n  - {where: {rule: train}, set: {mem_mb: 1, runtime: 1}}\n")
    with invalid(source="resources.yaml", option="mem_mb"):
        Resources.read(conf, "small")


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
    found = Resources.read(CONF, scale)
    stage_names = {path.stem for path in Path(stages[0]).glob("*.py")} - {"__init__", "fetch", "absent", "artefacts"}
    assert {*stage_names, "draw"} == set(RULES), "each stage but fetch and what is not run is a rule that asks"
    for rule in RULES:
        asked = found.of(rule, {"study": "robustness_bias", "method": "standard", "audit": "robustness_bias"})
        assert asked["mem_mb"] > 0
        assert asked["runtime"] > 0
        assert bool(asked.get("gpu")) == (scale == "paper" and rule in ("train", "audit"))


# Where a job runs, the code behind it, and runs that are resumed.


def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder in which a stage prints, waits or fails, and the environment of its jobs."""
    monkeypatch.chdir(folder)
    stage = folder / "pipeline" / "stages" / "echo.py"
    stage.parent.mkdir(parents=True)
    stage.write_text(ECHO)
    for package in ("pipeline", "pipeline/stages"):
        (folder / package / "__init__.py").write_text(f"__path__.append({str(CONF.parent / package)!r})\n")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{CONF.parent}", "OMP_NUM_THREADS": "1"}


ECHO = """
import os, sys, time
def main(arguments):
    print(os.getppid(), "torch" in sys.modules, os.environ["OMP_NUM_THREADS"], flush=True)
    if arguments == ["fail"]:
        sys.exit("no")
    if arguments == ["wait"]:
        open("waiting", "w").write(str(os.getpid()))
        time.sleep(600)
"""


def launched(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.workflow.launch", "times/echo.tsv", "echo", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def warmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of jobs where a process with the libraries imported is at work; it ends with the test."""
    environment = project(tmp_path, monkeypatch)
    monkeypatch.setattr(warm, "_started", [])
    warm.start(environment)
    (server,) = warm._started
    until((tmp_path / environment[launch.ADDRESS]).exists)
    yield environment
    assert server.stdin
    server.stdin.close()
    server.wait(20)
    assert not list((tmp_path / warm.FOLDER).iterdir())


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_job_runs_where_the_libraries_are_and_says_how_it_ended(warmed: dict[str, str]) -> None:
    """What it prints and its status are those of its own process, and its time is written down."""
    (server,) = warm._started
    done, failed = launched(warmed), launched(warmed, "fail")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{server.pid} True 1\n", "")
    assert (failed.returncode, failed.stderr) == (1, "no\n")
    header, row = Path("times/echo.tsv").read_text().splitlines()
    times = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert 0 <= float(times["cpu_time"]) < 5
    # A library that is imported already does not learn of more threads.
    assert launched({**warmed, "OMP_NUM_THREADS": "2"}).stdout == f"{os.getpid()} False 2\n"


@pytest.mark.parametrize("whose", ["client", "run"])
def test_a_job_ends_with_its_process_and_with_the_run(warmed: dict[str, str], whose: str) -> None:
    command = [sys.executable, "-m", "pipeline.workflow.launch", "times/echo.tsv", "echo", "wait"]
    with subprocess.Popen(command, env=warmed, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as client:
        until(lambda: Path("waiting").exists() and bool(Path("waiting").read_text()))
        job = psutil.Process(int(Path("waiting").read_text()))
        assert job.is_running()
        if whose == "client":
            client.kill()
        else:
            (server,) = warm._started
            server.kill()
            assert client.wait(20) == 1
            Path(warmed[launch.ADDRESS]).unlink()
        job.wait(20)
    assert not Path("times/echo.tsv").exists()


def test_without_such_a_process_a_job_runs_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = project(tmp_path, monkeypatch)
    for address in ({}, {launch.ADDRESS: "gone.socket"}):
        done = launched({**environment, **address})
        assert (done.returncode, done.stdout) == (0, f"{os.getpid()} False 1\n"), done.stderr


# The code behind a job is what its modules import, at any depth; its hash changes with what it computes, and only then.


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)
    return root


def names(root: Path, module: str) -> list[str]:
    return [str(path.relative_to(root)) for path in modules_behind([module], root)]


def test_imports_are_followed_at_any_depth_and_inside_functions(tmp_path: Path) -> None:
    tree(
        tmp_path,
        house__a="import numpy\nfrom house import b\n",
        house__b="def late():\n    from .c import thing\n    return thing\n",
        house__c="from . import d as other\n",
        house__d="thing = 1\n",
        house__unrelated="import house.a\n",
    )
    assert names(tmp_path, "house.a") == [f"house/{name}.py" for name in "abcd"]


def package(root: Path, **files: str) -> Path:
    """A folder that is a package; a file ``init`` is its ``__init__``."""
    (tree(root, **{f"house__pack__{name}": text for name, text in files.items()})).joinpath(
        "house", "pack", "init.py"
    ).rename(root / "house" / "pack" / "__init__.py")
    return root


def test_packages_and_cycles_are_closed_and_foreign_packages_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, house__d="import house.pack\nx = 1\n")
    package(tmp_path, init="from house.d import x\n")
    assert names(tmp_path, "house.d") == ["house/d.py", "house/pack/__init__.py"]
    tree(tmp_path, house__a="import torch\nimport other.a\n", other__a="x = 1\n")
    assert names(tmp_path, "house.a") == ["house/a.py", "other/a.py"]


@pytest.mark.parametrize(
    ("init", "importing", "counts"),
    [
        ("LIMIT = 1", "from house.pack.mod import x", []),
        ("LIMIT = 1", "from house.pack import mod", []),
        ("LIMIT = 1", "from house.pack import LIMIT", ["__init__"]),
        ("LIMIT = 1", "import house.pack.mod", ["__init__", "mod"]),
        ("mod = 1", "from house.pack import mod", ["__init__", "mod"]),
        ("from house.pack import own", "from house.pack.mod import x", []),
        ("from house.pack import acting", "from house.pack.mod import x", ["acting", "mod"]),
        ("import os\nos.environ['A'] = '1'", "from house.pack.mod import x", ["__init__", "mod"]),
        ("def z():\n    from house.pack import own", "from house.pack import z", ["__init__", "own"]),
    ],
)  # fmt: skip
def test_a_package_counts_if_it_is_used_or_if_importing_it_does_something(
    init: str, importing: str, counts: list[str], tmp_path: Path
) -> None:
    package(tmp_path, init=init, mod="x = 1\n", own="y = 1\n", acting="import math\nmath.pi = 3\n")
    tree(tmp_path, house__a=importing)
    assert names(tmp_path, "house.a") == ["house/a.py", *(f"house/pack/{name}.py" for name in counts or ["mod"])]


def test_imports_for_type_checkers_alone_are_left_out(tmp_path: Path) -> None:
    tree(
        tmp_path,
        house__a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.b import x\nimport house.c\n",
        house__b="x = 1\n",
        house__c="",
    )
    assert names(tmp_path, "house.a") == ["house/a.py", "house/c.py"]


SOURCE = """
import json
import os
from dataclasses import dataclass

LIMIT = 3
NAMES = {"a": None}


@dataclass(frozen=True)
class Config:
    steps: int
    rate: float = 0.5


def computed(x, low=1, *, high=2):
    total = x + low
    return f"{total:.2f} of {high!r}", json, os
"""


def hashed(folder: Path, text: str) -> str:
    return code_hash(("house.a",), tree(folder, house__a=text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import json\n", '"""A module."""\nimport json\n'),
        ("LIMIT = 3\n", 'LIMIT = 3\n"""How many."""\n'),
        ("LIMIT = 3\n", "LIMIT: int = 3\n"),
        ("class Config:\n", 'class Config:\n    """Settings."""\n'),
        ("    total = x", '    """The sum."""\n    total = x'),
        ("    total = x", "    # A remark.\n    total: float = x"),
        ("    total = x", "    total: float\n    total = x"),
        ("(x, low=1, *, high=2)", "(x: int, low: int = 1, *, high: int = 2) -> str"),
        ("(x, low=1, *, high=2)", "(\n    x,\n    low=1,\n    *,\n    high=2,\n)"),
        ('{"a": None}', "{'a': None}"),
        ("import json\nimport os\n", "import os, json\n"),
        ("import os\nfrom dataclasses import dataclass", "from dataclasses import dataclass\nimport os"),
        ("import json\n", "from __future__ import annotations\nimport json\n"),
        ("import json\n", "import json\nfrom typing import Any\nfrom collections.abc import Mapping\n"),
        ("LIMIT = 3\n", "if TYPE_CHECKING:\n    import torch\nLIMIT = 3\n"),
        ("LIMIT = 3\n", "if typing.TYPE_CHECKING:\n    import torch\nLIMIT = 3\n"),
    ],
)  # fmt: skip
def test_what_computes_nothing_leaves_the_hash_as_it_is(old: str, new: str, tmp_path: Path) -> None:
    assert old in SOURCE
    assert hashed(tmp_path / "one", SOURCE) == hashed(tmp_path / "other", SOURCE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("None", "True"),
        ("None", "'None'"),
        ("low=1", "low=2"),
        ("high=2", "high=3"),
        ("frozen=True", "frozen=False"),
        ("steps: int", "steps: float"),
        ("    rate: float = 0.5", "    rate = 0.5"),
        (":.2f", ":.3f"),
        ("!r", "!s"),
        ("x + low", "low + x"),
        ("    total = x + low\n", "    total = x + low\n    total += 1\n"),
        ("import os\n", "import os.path as os\n"),
        ("import os\n", "import os\nimport posixpath as json\n"),
        ("LIMIT = 3\n", "if TYPE_CHECKING:\n    pass\nelse:\n    import torch\nLIMIT = 3\n"),
    ],
)
def test_what_computes_something_else_changes_the_hash(old: str, new: str, tmp_path: Path) -> None:
    assert old in SOURCE
    assert hashed(tmp_path / "one", SOURCE) != hashed(tmp_path / "other", SOURCE.replace(old, new, 1))


def test_the_order_of_imports_counts_where_one_hides_another(tmp_path: Path) -> None:
    hiding = ["from m import x\nfrom n import x\n", "from n import x\nfrom m import x\n"]
    assert hashed(tmp_path / "one", hiding[0]) != hashed(tmp_path / "other", hiding[1])
    stars = ["from m import *\nfrom n import x\n", "from n import x\nfrom m import *\n"]
    assert hashed(tmp_path / "third", stars[0]) != hashed(tmp_path / "fourth", stars[1])


def test_a_template_counts_for_what_loads_it_and_a_moved_module_is_another(tmp_path: Path) -> None:
    loading = "import jinja2\nloader = jinja2.PackageLoader('house.pack')\n"
    found = []
    for number, text in enumerate(("<p>", "<p>", "<b>")):
        root = package(tree(tmp_path / str(number), house__a=loading), init="")
        (root / "house" / "pack" / "templates").mkdir()
        (root / "house" / "pack" / "templates" / "page.html").write_text(text)
        found.append(code_hash(("house.a",), root))
    assert found[0] == found[1] != found[2]
    assert code_hash(("a.b",), tree(tmp_path, a__b="x = 1")) != code_hash(("a.c",), tree(tmp_path, a__c="x = 1"))


def test_the_hash_does_not_depend_on_the_version_of_python(tmp_path: Path) -> None:
    """A value that was computed once, by Python 3.11."""
    assert hashed(tmp_path, SOURCE) == "5c96b2f1e6955091"


# A lock whose owner has ended is removed, any other is respected, and what is no Snakemake is not taken for one.


SNAKEFILE = """from pathlib import Path
from pipeline.workflow import resume

if not workflow.output_settings.dryrun:
    resume.record(Path.cwd())

rule all:
    output: 'made.txt'
    shell: 'touch started; sleep 3; touch {output}'
"""


@pytest.mark.parametrize(
    "command", ["/env/bin/python3 /env/bin/snakemake --cores 2", "snakemake -n", "python -m snakemake --cores 1"]
)
def test_snakemake_is_recognised_and_other_programs_are_not(command: str) -> None:
    assert is_snakemake(command.split())
    for other in ("", "vim Snakefile", "python -m pytest snakemake", "make"):
        assert not is_snakemake(other.split())


def test_without_a_lock_there_is_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tmp_path) == 0
    assert capsys.readouterr().err == ""


def test_files_made_before_the_clock_went_back_are_dated_now_in_their_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else Snakemake would end each job on them: what it makes now is older than what it is made of."""
    (tmp_path / "results").mkdir()
    now = time.time()
    for name, when in {"past": -9.0, "later": 7200.0, "sooner": 3600.0, "another machine": 5.0}.items():
        (tmp_path / "results" / name).touch()
        os.utime(tmp_path / "results" / name, (now + when, now + when))
    assert main(tmp_path) == 0
    assert f"2 files have dates in the future (first: {tmp_path}/results/sooner)" in capsys.readouterr().err
    past, sooner, later = ((tmp_path / "results" / name).stat().st_mtime_ns for name in ("past", "sooner", "later"))
    assert past < sooner <= later <= time.time_ns()
    assert main(tmp_path) == 0
    assert capsys.readouterr().err == ""


@pytest.fixture
def ended() -> Process:
    """A process of this machine that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    return replace(Process.this(), number=gone.pid)


def strangers() -> list[Process]:
    """Processes of which nothing can be seen from here: of another machine, and of containers."""
    this = Process.this()
    return [
        replace(this, machine="0" * 8),
        replace(this, namespace=1),
        replace(this, namespace=1, boot="0" * 8),
    ]  # fmt: skip


def test_a_process_is_at_work_until_it_is_known_to_have_ended(ended: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    this = Process.this()
    assert Process.named(this.name) == this
    assert Process.named("12") is None
    assert this.state == "at work"
    assert ended.state == "ended"
    assert {one.state for one in strangers()} == {"unknown"}
    if sys.platform == "linux":
        assert replace(this, started=this.started + 1).state == "ended", "another one has its number now"
        assert replace(this, number=1, started=0).state == "at work", "another user's"
    # The machine has been started again, unless all this is in a container.
    monkeypatch.setattr(process, "_here", lambda: (this.machine, "f" * 8, process.WHOLE_MACHINE))
    assert replace(this, namespace=process.WHOLE_MACHINE).state == "ended"
    assert replace(this, namespace=1).state == "unknown"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_killed_process_that_its_parent_has_not_asked_for_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        number = child.pid
        known = replace(Process.this(), number=number, started=process._state(number)[1])
        assert known.state == "at work"
        child.kill()
        os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT)
        assert known.state == "ended"


def test_what_a_process_that_has_ended_had_half_written_is_removed_and_nothing_else(
    tmp_path: Path, ended: Process
) -> None:
    others = [Process.this(), *strangers()]
    names = [f".rows.{ended.name}.part.parquet", f"..m.kept.{ended.name}.part.npz"]
    kept = [*(f".rows.{one.name}.part.parquet" for one in others), f".rows.{ended.number}.part.csv", "x.part"]
    (tmp_path / "results").mkdir()
    for name in (*names, *kept):
        (tmp_path / "results" / name).touch()
    assert main(tmp_path) == 0
    assert {path.name for path in (tmp_path / "results").iterdir()} == set(kept)
    with written(tmp_path / "results" / "rows.csv") as temporary:
        temporary.touch()
        assert (match := HALF.fullmatch(temporary.name))
        assert Process.named(match[1]) == Process.this()


def locked(folder: Path, *owners: Process) -> Path:
    """A lock as Snakemake leaves it, and records of these processes."""
    lock = folder / LOCKS / "0.input.lock"
    for path in (lock, *(folder / OWNERS / f"{one.name}.json" for one in owners)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"user": "ada", "host": "node7", "since": "noon"}))
    return lock


def test_the_lock_of_a_process_that_has_ended_is_removed_with_its_record(tmp_path: Path, ended: Process) -> None:
    lock = locked(tmp_path, ended, replace(ended, namespace=ended.namespace, started=7))
    assert main(tmp_path) == 0
    assert not lock.exists()
    assert not [*(tmp_path / OWNERS).iterdir()]


@pytest.mark.parametrize("which", [0, 1, 2, "this", "none"])
def test_the_lock_of_any_other_process_is_left_and_its_owner_is_named(
    tmp_path: Path, ended: Process, capsys: pytest.CaptureFixture[str], which: int | str
) -> None:
    owner = Process.this() if which == "this" else None if which == "none" else strangers()[int(which)]
    # Another run that has ended gives nobody the right to the lock.
    lock = locked(tmp_path, *([owner, ended] if owner else []))
    assert main(tmp_path) == 1
    told = capsys.readouterr().err
    assert lock.exists()
    if owner:
        assert f"ada on node7, process {owner.number}, since noon" in told
    assert ("make unlock" in told) == (which != "this")
    # A person says that it has ended; of one that is at work nobody is believed.
    assert main(tmp_path, unlock=True) == int(which == "this")
    assert lock.exists() == (which == "this")


def test_a_lock_that_another_process_takes_over_is_left_to_it(
    tmp_path: Path, ended: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = locked(tmp_path, ended)
    taken = resume._taken_over

    def overtaken(folder: Path, owners: list[Owner]) -> bool:
        for one in owners:
            one.path.unlink()
        locked(folder, Process.this())
        return taken(folder, owners)

    monkeypatch.setattr(resume, "_taken_over", overtaken)
    assert main(tmp_path) == 1
    assert lock.exists()


def test_a_record_goes_with_its_process_and_one_without_a_lock_says_nothing(tmp_path: Path) -> None:
    locked(tmp_path, *strangers()).unlink()
    program = "from pathlib import Path; from pipeline.workflow import resume; print(resume.record(Path.cwd()).path)"
    environment = os.environ | {"PYTHONPATH": str(CONF.parent)}
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert Path(run.stdout.strip()).parent == tmp_path / OWNERS
    assert not [*(tmp_path / OWNERS).iterdir()]


@pytest.mark.slow
def test_a_run_at_work_is_respected_and_a_killed_one_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "1", "--rerun-incomplete", "--quiet"]
    environment = os.environ | {"PYTHONPATH": str(CONF.parent)}
    with subprocess.Popen(snakemake, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as running:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert list(at_work(tmp_path)) == [running.pid]
        assert main(tmp_path) == 1
        assert f"process {running.pid}, since" in capsys.readouterr().err
        running.kill()
    assert subprocess.run(snakemake, cwd=tmp_path, env=environment, check=False, capture_output=True).returncode != 0
    assert main(tmp_path) == 0
    assert "interrupted" in capsys.readouterr().err
    assert subprocess.run(snakemake, cwd=tmp_path, check=False, env=environment).returncode == 0
    assert (tmp_path / "made.txt").exists()
    assert not [*(tmp_path / OWNERS).iterdir()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the working directory of another process")
def test_a_job_that_a_killed_run_left_behind_counts_as_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / LOCKS).mkdir(parents=True)
    (tmp_path / LOCKS / "0.output.lock").touch()
    words = [sys.executable, "-m", "pipeline.workflow.launch", "benchmark.txt", "slow"]
    home = tmp_path / "pipeline" / "workflow"
    home.mkdir(parents=True)
    for folder in (home.parent, home):
        (folder / "__init__.py").touch()
    (home / "launch.py").write_text("import time\nprint('started', flush=True)\ntime.sleep(60)\n")
    around = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(words, cwd=tmp_path, env=around, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "started\n"
        assert at_work(tmp_path) == [job.pid]
        assert main(tmp_path) == 1
        assert f"a job, process {job.pid} on this machine" in capsys.readouterr().err
        job.kill()
    assert at_work(tmp_path) == []


def test_a_checkpoint_of_other_code_is_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark, output = np.array("work"), tmp_path / "made.npz"
    io.CheckpointFile(output, "pipeline.methods.sensr").save(mark, {"step": np.array(3)})
    kept = io.CheckpointFile(output, "pipeline.methods.sensr").load(mark)
    assert kept is not None
    assert kept["step"] == 3
    assert io.CheckpointFile(output, "pipeline.methods.baseline").load(mark) is None
    monkeypatch.setattr("pipeline.workflow.code_hash.code_hash", lambda *_: "changed")
    assert io.CheckpointFile(output, "pipeline.methods.sensr").load(mark) is None


def test_a_training_that_diverged_is_no_model() -> None:
    weights = np.array([[0.1, 0.2], [0.3, np.nan]])
    made = Classifier("m", "d", "simulated", "linear", {"w": weights})
    with invalid(option="method"):
        check_finite(made)
    check_finite(replace(made, parameters={"w": weights[:1], "k": np.array([[1]])}))
