"""The workflow from nothing at smoke scale: whole, resumable, and re-running exactly what a change touches.

Everything runs in a copy of the project, on the twins, without a network.
"""

import csv
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fairness_audits.values import Classifier
from pipeline import io
from pipeline.report import registry
from pipeline.workflow.conf import Conf
from tests.files import environment, project_copy

ROOT = Path(__file__).resolve().parent.parent
STUDY = "individual_fairness"
# One worker runs them all: they share the finished project.
pytestmark = [pytest.mark.slow, pytest.mark.workflow, pytest.mark.xdist_group("workflow")]


def snakemake(
    project: Path, *arguments: str, source: str = "twin", study: str = "", datasets: str = ""
) -> subprocess.CompletedProcess[str]:
    # A copy of the project has no profile. Its locks are those of pipeline/workflow/lock.py, as with the profile.
    command = ["snakemake", "--cores", "2", "--nolock", *arguments]
    asked = environment(project, STUDY=study, DATA_SOURCE=source, DATASETS=datasets)
    return subprocess.run(command, cwd=project, env=asked, capture_output=True, text=True)


def succeeded(project: Path, *arguments: str, **given: str) -> subprocess.CompletedProcess[str]:
    run = snakemake(project, *arguments, **given)
    assert run.returncode == 0, run.stdout + run.stderr
    return run


@contextmanager
def changed(path: Path, change: Callable[[str], str]) -> Iterator[None]:
    """A file of the project with another text, for a while."""
    before = path.read_text()
    assert change(before) != before
    path.write_text(change(before))
    try:
        yield
    finally:
        path.write_text(before)


def planned(project: Path, *arguments: str, study: str = "") -> tuple[Counter[str], str]:
    """How many jobs of each rule a dry run lists; and all that it says."""
    run = succeeded(project, "-n", *arguments, study=study)
    table = re.search(r"^job\s+count\n-+\s+-+\n(.*?)^total", run.stdout, flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^(\w+)\s+(\d+)$", table[1], flags=re.MULTILINE) if table else []
    return Counter({rule: int(count) for rule, count in rows}), run.stdout


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All studies, whole, in a copy of the project; nothing in it is changed for good."""
    project = project_copy(tmp_path_factory.mktemp("project"))
    succeeded(project)
    return project


def test_one_worker_runs_them_all(request: pytest.FixtureRequest) -> None:
    """pytest-xdist 3.8 under pytest 9.2 takes no notice of groups, and says nothing."""
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.node.nodeid.endswith("@workflow")


@pytest.mark.parametrize("study", Conf().names("experiment"))
def test_every_declared_artefact_is_made_and_none_else(finished: Path, study: str) -> None:
    for folder, suffix, kind in (("tables", "csv", "table"), ("figures", "pdf", "figure")):
        found = {path.stem: path.stat().st_size for path in (finished / "results" / folder / study).glob(f"*.{suffix}")}
        assert set(found) == {one.name for one in registry.declared(study) if one.kind == kind}
        assert min(found.values()) > 0
    page = (finished / "results" / "pages" / f"{study}.html").read_text()
    assert [other for other in Conf().names("experiment") if f'id="{other}"' in page] == [study]


def test_a_twin_is_stamped_on_every_table_and_figure_and_on_the_report(finished: Path) -> None:
    """What is drawn in a figure's margin is tested with the stamp; here, that the page knows it for each of them."""
    tables = finished / "results" / "tables" / STUDY
    artefacts = json.loads((tables / "index.json").read_text())["artefacts"]
    simulated = {"table_validity", "figure_1", "figure_3"}
    for artefact in artefacts:
        words = ("Smoke scale",) if artefact["name"] in simulated else ("Smoke scale", "Synthetic twin of")
        printed = [" ".join(artefact["stamp"])]
        if artefact["kind"] == "table":
            printed += [(tables / f"{artefact['name']}.{suffix}").read_text() for suffix in ("md", "tex")]
        for text, word in itertools.product(printed, words):
            assert word in text, (artefact["name"], word)
    for path in tables.glob("*.csv"):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                assert row["scale"] == "smoke", path.name
                assert ("twin" in row["origin"]) == (path.stem not in simulated), path.name
    page = (finished / "results" / "report.html").read_text()
    places = 0
    for path in (finished / "results" / "tables").glob("*/index.json"):
        every = json.loads(path.read_text())["artefacts"]
        twins = [one["kind"] for one in every if "Synthetic twin of" in " ".join(one["stamp"])]
        places += twins.count("table") + 2 * bool(twins)
    assert page.count("Synthetic twin of") == places, "below each table, by the study's title and on the first screen"


def test_every_job_leaves_a_log_and_every_task_a_benchmark(finished: Path) -> None:
    def names(folder: Path, suffix: str) -> set[str]:
        paths = sorted(folder.rglob(f"*{suffix}"))
        return {".".join(path.relative_to(folder).parts).removesuffix(suffix) for path in paths}

    results = finished / "results"
    logs, times = results / "logs" / "smoke", results / "benchmarks" / "smoke"
    assert names(logs / "audit", ".log") == names(results / "jobs" / "smoke", ".json") != set()
    audited = names(times / "audit", ".tsv") | names(times / "not_run", ".tsv")
    assert audited == names(results / "audits" / "smoke", ".npz") != set()
    assert names(times / "train", ".tsv") == names(results / "models" / "smoke", ".npz") != set()
    assert names(logs / "train", ".log") < names(times / "train", ".tsv")


def test_a_second_run_has_nothing_to_do_whatever_comments_were_added(finished: Path) -> None:
    path = finished / "conf" / "method" / "sensr.yaml"
    path.write_text(path.read_text() + "\n# a remark\n")
    assert planned(finished)[0] == Counter()


def test_a_methods_parameter_runs_its_training_and_its_audits_again(finished: Path) -> None:
    jobs, said = planned(finished, "--config", "set=method.sensr.learning_rate=0.004", study=STUDY)
    assert (jobs["train"], jobs["audit"], jobs["prepare"], jobs["fetch"]) == (2, 2, 0, 0), "a job of each data set"
    assert set(re.findall(r"audit .* on (\w+)", said)) == {"adult", "compas"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""', '"""Another docstring. '),
        ("\nimport ", "\n# A comment.\nimport "),
        ("import functools\nfrom collections.abc import", "from collections.abc import"),
        ("def fits(value: Any, hint: Any) -> bool:", "def fits(value: object, hint: object) -> object:"),
    ],
)
def test_what_computes_nothing_runs_nothing_again(finished: Path, old: str, new: str) -> None:
    def change(text: str) -> str:
        after = text.replace(old, new, 1)
        # A moved import.
        return after if "functools" not in old else after.replace("from math", "import functools\nfrom math", 1)

    with changed(finished / "fairness_audits" / "validation.py", change):
        assert planned(finished)[0] == Counter()


def test_a_constant_runs_what_computes_with_it_again(finished: Path) -> None:
    path = finished / "pipeline" / "training" / "sensr_config.py"
    with changed(path, lambda text: text.replace("RATE_DECAY = 0.999", "RATE_DECAY = 0.99")):
        again, said = planned(finished, study=STUDY)
    assert (again["prepare"], again["fetch"], again["train"]) == (0, 0, 2)
    assert set(re.findall(r"train .*sensr.* on (\w+)", said)) == {"adult", "compas"}


def everything(project: Path) -> dict[str, tuple[bytes, int]]:
    """The files below a folder, but for Snakemake's own and compiled ones: what they hold, and when it was written."""
    left_out = {".snakemake", "__pycache__"}
    paths = [path for path in project.rglob("*") if not left_out & set(path.parts)]
    return {str(path): (b"" if path.is_dir() else path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def test_a_dry_run_changes_nothing_and_a_run_fetches_what_has_been_superseded(tmp_path: Path) -> None:
    project = project_copy(tmp_path)
    content = b"id,name\n1,nobody\n"
    module = project / "pipeline" / "datasets" / "compas.py"
    ours = f'sha256="{hashlib.sha256(content).hexdigest()}",\n        size={len(content)}'
    module.write_text(re.sub(r'sha256="\w+",\n        size=\w+', ours, module.read_text()))
    record = project / "data" / "raw" / "compas" / "manifest.json"
    succeeded(project, "data/raw/compas/manifest.json")
    assert json.loads(record.read_text())["origin"] == "twin"
    (record.parent / "compas-scores-two-years.csv").write_bytes(content)
    # Older than the manifest: not by its time is it known to be better.
    os.utime(record.parent / "compas-scores-two-years.csv", (0, 0))
    before = everything(project)
    for asked in (["-n"], ["--list-rules"], ["--summary"], ["--dag"], ["--rulegraph"]):
        run = succeeded(project, *asked, source="auto", study=STUDY)
        assert "Traceback" not in run.stderr
        assert everything(project) == before, asked
        if asked == ["-n"]:
            assert re.search(r"^fetch +2$", run.stdout, re.MULTILINE)
    succeeded(project, "data/raw/compas/manifest.json", source="auto")
    assert json.loads(record.read_text())["origin"] == "official"
    run = snakemake(project, "-n", "data/raw/compas/manifest.json", source="auto")
    assert "Nothing to be done" in run.stdout + run.stderr


def test_an_audits_parameter_and_a_report_module_train_nothing_again(finished: Path) -> None:
    with changed(finished / "pipeline" / "report" / "table.py", lambda text: f"{text}\nANOTHER = 1\n"):
        jobs, _ = planned(finished, "--config", "set=audit.map_quality.members=7", study=STUDY)
        audits, _ = planned(finished, "--config", "set=audit.loss_ratio.delta=1.5", study=STUDY)
    # That audit is of another study: what is made again is made for the module alone.
    assert (jobs[f"draw_{STUDY}"], jobs["report"], jobs["train"], jobs["audit"], jobs["prepare"]) == (1, 1, 0, 0, 0)
    assert audits["train"] == audits["prepare"] == 0 < audits["audit"]


def test_a_sweep_is_one_file_and_gives_rows_a_summary_and_a_figure(finished: Path) -> None:
    (finished / "conf" / "sweep").mkdir(exist_ok=True)
    path = finished / "conf" / "sweep" / "Tiny_2.yaml"
    path.write_text(
        "title: A tiny one\n"
        "grid:\n"
        "  tried: {dataset: compas, method: [baseline, sensr], audit: loss_ratio, audit.delta: [1.1, 2.0]}\n"
        "figure: {statistic: rejected, x: audit.delta, lines: method, where: {steps: 1000}}\n"
    )
    try:
        summary = "results/sweeps/smoke/Tiny_2/summary.csv"
        run = succeeded(finished, summary)
        assert "3 of 3 steps (100%) done" in run.stderr, "audits, their rows and the sweep: nothing is trained for it"
        made = finished / "results" / "sweeps" / "smoke" / "Tiny_2"
        with (made / "summary.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        every = set(itertools.product(("1.1", "2.0"), ("baseline", "sensr")))
        assert {(line["delta"], line["method"]) for line in lines} == every
        assert (made / "figure.pdf").stat().st_size > 5_000
        path.write_text(path.read_text().replace("audit.delta", "audit.dleta"))
        run = snakemake(finished, "-n", summary)
        assert run.returncode != 0
        assert "no key 'audit.dleta' (did you mean 'audit.delta'?)" in run.stdout + run.stderr
    finally:
        path.unlink()


def test_a_run_of_some_data_sets_draws_their_artefacts_and_names_the_others(finished: Path) -> None:
    """The copy has no reference that supplies the others."""
    succeeded(finished, study=STUDY, datasets="adult compas")
    made = json.loads((finished / "results" / "tables" / STUDY / "index.json").read_text())["artefacts"]
    absent = {one["name"]: one["absent"] for one in made if one["absent"]}
    assert absent.keys() == {"table_validity", "figure_1", "figure_3"}
    assert all("Simulated" in reason for reason in absent.values())
    assert "DATASETS leaves out Simulated" in (finished / "results" / "report.html").read_text()
    succeeded(finished)


def test_a_reference_is_replaced_with_its_verdicts_and_claims_or_not_at_all(finished: Path) -> None:
    target, reference = f"results/reference/smoke/{STUDY}.recorded", finished / "data" / "reference"
    try:
        succeeded(finished, target, study=STUDY)
        assert {path.name for path in reference.iterdir()} == {STUDY, "verdicts.csv", "claims.csv"}
        assert json.loads((reference / STUDY / "manifest.json").read_text())["study"] == STUDY
        assert planned(finished, target, study=STUDY)[0] == Counter()
        before = everything(reference)
        with changed(finished / "pipeline/stages/decide.py", lambda text: text.replace("claims.listed", "claims.lost")):
            assert planned(finished, target, study=STUDY)[0] == Counter(reference=1)
            assert snakemake(finished, target, study=STUDY).returncode == 1
        assert everything(reference) == before
    finally:
        for folder in (reference, finished / "results" / "reference"):
            shutil.rmtree(folder, ignore_errors=True)


def test_hydra_alone_trains_into_a_folder_of_its_own(finished: Path) -> None:
    stage = "pipeline.workflow.multirun"
    command = [sys.executable, "-m", stage, "-m", "method=baseline", "dataset=compas", "scale=smoke"]
    told: dict[str, Any] = {"cwd": finished, "env": environment(finished, STUDY=STUDY)}
    run = subprocess.run([*command, "seed=range(2)"], **told, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    (folder,) = (finished / "results" / "hydra").iterdir()
    every = io.load(finished / "results" / "models" / "smoke" / "compas" / "baseline.npz", Classifier)
    for seed in range(2):
        one = io.load(next(folder.glob(f"*seed={seed}")) / "classifier.npz", Classifier)
        for name, values in every.parameters.items():
            assert np.allclose(one.parameters[name][0], values[seed], atol=1e-4), (seed, name)


def jobs(log: str, line: str) -> set[str]:
    """The jobs, by their messages ("train sensr on adult"), of the ``log``'s lines "Job 7" or "Finished jobid: 7"."""
    messages = dict(re.findall(r"^Job (\d+): (.+)$", log, re.MULTILINE))
    return {messages[number] for number in re.findall(rf"^{line} (\d+)\b", log, re.MULTILINE)}


def at_work(project: Path) -> list[psutil.Process]:
    """The processes that run stages in ``project``."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # A zombie has no folder.
            runs = "pipeline.workflow.launch" in process.cmdline()
            if runs and Path(process.cwd()) == project.resolve():
                found.append(process)
    return found


@pytest.fixture
def trained(finished: Path, tmp_path: Path) -> Iterator[dict[str, bytes]]:
    """The finished project without its models of COMPAS, which are these; afterwards they are there again."""
    models = finished / "results" / "models" / "smoke" / "compas"
    before = {str(path.relative_to(finished)): path.read_bytes() for path in sorted(models.glob("*.npz"))}
    shutil.move(models, tmp_path / "models")
    yield before
    shutil.rmtree(models)
    shutil.move(tmp_path / "models", models)


def test_a_run_killed_in_a_training_resumes_on_one_core_and_gives_the_same_bytes(
    finished: Path, trained: dict[str, bytes], tmp_path: Path
) -> None:
    # The finished run had two cores: neither the interruption nor the order of the jobs leaves a trace.
    project, log = finished, tmp_path / "killed.log"
    with log.open("w") as stream:
        command, twins = ["snakemake", "--cores", "2", *trained], environment(project, STUDY=STUDY)
        told: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": stream, "start_new_session": True}
        process = subprocess.Popen(command, cwd=project, env=twins, **told)
    while process.poll() is None and not jobs(log.read_text(), "Finished jobid:"):
        time.sleep(0.05)
    was_alive, inside = process.poll() is None, at_work(project)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    psutil.wait_procs(inside, timeout=3)
    assert was_alive, f"the run ended before it could be killed:\n{log.read_text()}"
    assert not at_work(project)
    before = {target: (project / target).stat().st_mtime_ns for target in trained if (project / target).exists()}
    assert 0 < len(before) < len(trained)
    done = jobs(log.read_text(), "Finished jobid:")
    resume = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "resume", "CORES=1"]
    resume += [f"BIN={Path(sys.executable).parent}", f"TARGETS={' '.join(trained)}"]
    run = subprocess.run(resume, cwd=project, env=twins, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert not jobs(run.stderr, "Job") & done
    for target, content in trained.items():
        assert (project / target).read_bytes() == content, target


def test_a_failed_point_takes_nothing_with_it(finished: Path) -> None:
    """Of a training that fails only what is made of it is missing, and it is said why."""
    broken = finished / "pipeline" / "methods" / "broken.py"
    broken.write_text((finished / "pipeline" / "methods" / "baseline.py").read_text() + BROKEN)
    method = finished / "conf" / "method" / "broken.yaml"
    method.write_text((finished / "conf" / "method" / "baseline.yaml").read_text())
    sweep = finished / "conf" / "sweep" / "partly.yaml"
    sweep.write_text(
        "title: Partly\n"
        "grid: {tried: {dataset: compas, method: [baseline, broken, project], audit: loss_ratio}}\n"
        "figure: {statistic: rejected, x: method}\n"
    )
    try:
        run = snakemake(finished, "--keep-going", "--show-failed-logs", "results/sweeps/smoke/partly/summary.csv")
        assert run.returncode == 1
        audits = finished / "results" / "audits" / "smoke" / "partly" / "tried" / "compas"
        assert {path.parent.name for path in audits.rglob("*.npz")} == {"baseline", "project"}
        assert "it cannot" in run.stderr
        assert not (finished / "results" / "sweeps" / "smoke" / "partly").exists()
        before = {path: path.stat().st_mtime_ns for path in audits.rglob("*.npz")}
        broken.write_text(broken.read_text().removesuffix(BROKEN))
        succeeded(finished, "results/rows/smoke/partly.parquet")
        assert {path.parent.name for path in audits.rglob("*.npz")} == {"baseline", "broken", "project"}
        assert {path: path.stat().st_mtime_ns for path in before} == before, "what was done is not done again"
    finally:
        for path in (broken, method, sweep):
            path.unlink()


BROKEN = """

def fit(*_):
    raise ValueError("it cannot")
"""


def test_a_figure_that_was_removed_is_drawn_again_and_can_be_asked_for_alone(finished: Path) -> None:
    name = f"results/figures/{STUDY}/figure_1.pdf"
    before = (finished / name).read_bytes()
    (finished / name).unlink()
    assert planned(finished, study=STUDY)[0] == Counter({f"draw_{STUDY}": 1, "report": 1, "all": 1})
    assert planned(finished, name, study=STUDY)[0] == Counter({f"draw_{STUDY}": 1})
    state = {line.split("\t")[0]: line.split("\t") for line in succeeded(finished, "--summary").stdout.splitlines()}
    assert "missing" in state[name]
    succeeded(finished, name, study=STUDY)
    assert (finished / name).read_bytes() == before
    assert planned(finished, name, study=STUDY)[0] == Counter()
    succeeded(finished)


def test_rules_are_forced_and_stopped_at_by_their_names(finished: Path) -> None:
    forced, _ = planned(finished, "--forcerun", "train", study=STUDY)
    assert min(forced[rule] for rule in ("train", "audit", f"draw_{STUDY}")) > 0
    assert not forced["prepare"]
    until, _ = planned(finished, "--forcerun", "train", "--until", "audit", study=STUDY)
    assert set(until) == {"train", "audit"}
    assert until["train"] == forced["train"]


def test_a_corrupted_raw_file_is_caught_and_named(tmp_path: Path) -> None:
    project = project_copy(tmp_path)
    raw = project / "data" / "raw" / "compas"
    raw.mkdir(parents=True)
    (raw / "compas-scores-two-years.csv").write_text("id,name\n1,nobody\n")
    # With the profile that a user has, the terminal shows the last lines of a failed job's log.
    shutil.copytree(ROOT / "profiles" / "default", project / "profiles" / "default")
    run = snakemake(project, "data/raw/compas/manifest.json", source="auto")
    assert run.returncode != 0
    assert "compas-scores-two-years.csv" in run.stdout + run.stderr
    assert "sha256" in run.stdout + run.stderr
    assert not (raw / "manifest.json").exists()
