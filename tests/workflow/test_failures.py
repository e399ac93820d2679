"""The account of a failed run: nothing that is missing is left out, and each thing is laid to what it waits for."""

from __future__ import annotations

import importlib
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline.workflow import failures, tracking
from pipeline.workflow.config import Workflow
from pipeline.workflow.tracking import curves, identity, record, tracker


@dataclass(frozen=True, eq=False)
class Job:
    """What the account reads of Snakemake's jobs."""

    name: str
    after: tuple[Job, ...] = ()
    outputs: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    jobs: tuple[Job, ...] = ()
    wildcards: tuple[str, ...] = ()
    message: str | None = None

    @property
    def output(self) -> tuple[str, ...]:
        return self.outputs

    @property
    def rule(self) -> SimpleNamespace:
        return SimpleNamespace(name=self.name)

    def is_group(self) -> bool:
        return bool(self.jobs)


@dataclass(frozen=True)
class Dag:
    """Jobs, and which of them are finished."""

    jobs: tuple[Job, ...]
    finished: frozenset[str] = field(default_factory=frozenset)

    @property
    def dependencies(self) -> dict[Job, dict[Job, set[str]]]:
        return {job: {earlier: set() for earlier in job.after} for job in self.jobs}

    def needrun_jobs(self, exclude_finished: bool) -> Iterator[Job]:
        return (job for job in self.jobs if not (exclude_finished and job.name in self.finished))


TRAIN = Job("train", outputs=("m.npz",), log=("logs/train.log",), message="train sensr on adult")
OTHER = Job("other", outputs=("o.npz",))
AUDIT = Job("audit", (TRAIN,), ("a.npz",))
STUDY = Job("first", (AUDIT,), ("t.csv",))
SECOND = Job("second", (OTHER,), ("s.csv",))
REPORT = Job("report", (STUDY, SECOND), ("r.html",))
ALL = Job("all", (REPORT,))
DAG = Dag((TRAIN, OTHER, AUDIT, STUDY, SECOND, REPORT, ALL), frozenset({"other", "second"}))
ARTEFACTS = {"first": ["table_1", "figure_2"], "second": ["table_3"]}


def test_what_waits_for_a_failed_job_is_laid_to_it_at_any_distance(tmp_path: Path) -> None:
    account = failures.account(DAG, [TRAIN], ARTEFACTS, tmp_path)
    assert [job["title"] for job in account["failed"]] == ["train sensr on adult"]
    because = {job["title"]: job["because"] for job in account["not_run"]}
    assert because == {name: ["train sensr on adult"] for name in ("audit", "first", "report")}
    expected = {"study": "first", "artefacts": ["table_1", "figure_2"], "because": ["train sensr on adult"]}
    assert account["missing"] == [expected]


def test_every_job_that_is_still_to_be_done_stands_in_the_account_once(tmp_path: Path) -> None:
    for failed in ([TRAIN], [STUDY], [TRAIN, SECOND], [Job("group", jobs=(AUDIT, OTHER))]):
        names = {job.name for one in failed for job in (one.jobs or (one,))}
        dag = Dag(DAG.jobs, frozenset({"other", "second"} - names))
        account = failures.account(dag, failed, ARTEFACTS, tmp_path)
        rules = [job["rule"] for job in (*account["failed"], *account["not_run"])]
        assert sorted(rules) == sorted({job.name for job in DAG.jobs} - dag.finished - {"all"})


def test_a_job_whose_turn_did_not_come_is_laid_to_nobody_and_a_study_that_failed_to_itself(tmp_path: Path) -> None:
    account = failures.account(Dag(DAG.jobs), [TRAIN], ARTEFACTS, tmp_path)
    assert {job["title"]: job["because"] for job in account["not_run"]}["second"] == []
    assert "`second` (table_3): the run ended before" in failures.text(account)
    assert failures.account(DAG, [STUDY], ARTEFACTS, tmp_path)["missing"][0]["because"] == ["first"]


def test_the_end_of_the_log_and_what_the_scheduler_said_stand_in_the_account(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train.log").write_text("".join(f"step {n}\n" for n in range(50)) + "\n")
    (tmp_path / "results").mkdir()
    told = [{"outputs": ["m.npz"], "title": "", "why": why, "logs": []} for why in ("first try", "OUT_OF_MEMORY")]
    (tmp_path / failures.JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in told))
    (job,) = failures.account(DAG, [TRAIN], ARTEFACTS, tmp_path)["failed"]
    assert job["why"] == "OUT_OF_MEMORY"
    (log,) = job["logs"]
    assert log["lines"] == [f"step {n}" for n in range(50 - failures.LAST_LINES, 50)]


def test_a_job_that_wrote_nothing_is_explained_by_the_schedulers_log(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "slurm.log").write_text("slurmstepd: error: no such node\n")
    line = {"outputs": ["m.npz"], "title": "", "why": "", "logs": ["logs/train.log", str(tmp_path / "slurm.log")]}
    (tmp_path / failures.JOURNAL).write_text(json.dumps(line) + "\n")
    (job,) = failures.account(DAG, [TRAIN], ARTEFACTS, tmp_path)["failed"]
    states = {log["path"]: log["state"] for log in job["logs"]}
    assert states == {"logs/train.log": "does not exist.", "slurm.log": "ends with"}


def test_the_account_is_kept_until_what_it_says_is_missing_is_made(tmp_path: Path) -> None:
    account = failures.account(Dag((TRAIN, AUDIT)), [TRAIN], {}, tmp_path)
    failures.save(account, "smoke", [], tmp_path)
    assert json.loads((tmp_path / failures.ACCOUNT).read_text()) == account
    for made in ("m.npz", "a.npz"):
        failures.forget(tmp_path)
        assert (tmp_path / failures.ACCOUNT).exists(), "not everything is made yet"
        (tmp_path / made).touch()
    failures.forget(tmp_path)
    assert not (tmp_path / failures.ACCOUNT).exists()
    assert not (tmp_path / failures.TEXT).exists()


def test_the_report_of_an_incomplete_run_opens_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / failures.SUMMARY).write_text("all is well")
    failures.save(failures.account(DAG, [TRAIN], ARTEFACTS, tmp_path), "smoke", [], tmp_path)
    assert not (tmp_path / failures.SUMMARY).exists(), "the report is due again"
    page = (tmp_path / failures.REPORT).read_text()
    assert "This run is not complete." in page
    assert "train sensr on adult" in page
    assert "table_1, figure_2: because of train sensr on adult" in page


def test_a_run_that_was_ended_from_outside_writes_no_account_and_without_room_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = Workflow(scale="smoke", studies=["individual_fairness"])
    assert "ended from outside" in workflow.account_for(DAG, [], tmp_path)
    assert not list(tmp_path.iterdir())

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(failures, "save", no_room)
    said = Workflow(scale="smoke", studies=["individual_fairness"]).account_for(DAG, [TRAIN], tmp_path)
    assert "No account could be written: [Errno 28] No space left on device" in said
    assert "4 jobs are to be done still" in said


def test_snakemake_itself_hands_over_what_the_account_reads(tmp_path: Path) -> None:
    """The jobs, groups and graph above have the attributes that Snakemake's have, in the version that is installed."""
    (tmp_path / "Snakefile").write_text(
        "from pipeline.workflow import failures\nfrom pathlib import Path\n"
        "rule all:\n    input: 'b'\n"
        "rule one:\n    message: 'one of {output}'\n    output: 'a'\n    log: 'l'\n"
        "    shell: 'echo no >{log}; exit 1'\n"
        "rule two:\n    input: 'a'\n    output: 'b'\n    shell: 'touch b'\n"
        "onerror:\n    failures.save(failures.account(workflow.dag, workflow.scheduler.failed, {}, Path('.')), 's', [],"
        " Path('.'))\n"
    )
    subprocess.run(["snakemake", "--cores", "1"], cwd=tmp_path, check=False, capture_output=True)
    account = json.loads((tmp_path / failures.ACCOUNT).read_text())
    (job,) = account["failed"]
    assert (job["title"], job["outputs"], job["logs"][0]["lines"]) == ("one of a", ["a"], ["no"])
    assert [(one["title"], one["because"]) for one in account["not_run"]] == [("two", ["one of a"])]


# Tracking watches and never disturbs: no prompt, no wait for a network, no wandb where it is off, one run a job.


JOB: dict[str, Any] = {"project": "p", "group": "study", "name": "train/adult/sensr", "config": {"lr": 0.1}}


def runs(folder: Path) -> list[Path]:
    """The runs kept in a folder."""
    return sorted(folder.glob("wandb/*run-*"))


def records(path: Path) -> Iterator[bytes]:
    """The records of a run's file: blocks of 32 KiB, chunks with a 7-byte header (checksum, length, kind)."""
    data, position, pending = path.read_bytes(), 7, b""
    while position + 7 <= len(data):
        if 32768 - position % 32768 < 7:
            position += 32768 - position % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, position)
        pending += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # A whole record, or the end of one in several chunks.
            yield pending
            pending = b""


def stored(run: Path) -> tuple[dict[str, Any], list[dict[str, float]], dict[str, float]]:
    """A kept run's configuration, history and summary, read back from its file."""
    importlib.import_module("wandb").teardown()  # Its service writes the file; this waits for it, as a job's end does.
    messages: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    (path,) = run.glob("*.wandb")
    config: dict[str, Any] = {}
    history: list[dict[str, float]] = []
    summary: dict[str, float] = {}

    def values(items: Any) -> dict[str, Any]:
        return {(item.key or item.nested_key[0]): json.loads(item.value_json) for item in items}

    for data in records(path):
        record = messages.Record()
        record.ParseFromString(data)
        if record.HasField("run"):
            config |= values(record.run.config.update)
            config |= {"job_type": record.run.job_type, "group": record.run.run_group}
        elif record.HasField("history"):
            history.append(values(record.history.item))
        elif record.HasField("summary"):
            summary |= values(record.summary.update)
    return config, history, summary


def test_an_offline_run_keeps_configuration_curves_and_metrics(tmp_path: Path) -> None:
    with tracker(mode="offline", folder=tmp_path, **JOB) as run:
        run.log(0, {"loss": 1.5})
        run.log(10, {"loss": 0.5})
        run.summary({"T_n": 1.25})
    (kept,) = runs(tmp_path)
    config, history, summary = stored(kept)
    assert (config["lr"], config["job_type"], config["group"]) == (0.1, "train", "study")
    assert [(row["_step"], row["loss"]) for row in history] == [(0, 1.5), (10, 0.5)]
    assert summary["T_n"] == 1.25


def test_a_job_that_is_run_again_replaces_its_run_and_another_job_does_not(tmp_path: Path) -> None:
    for name in ("train/adult/sensr", "train/adult/sensr", "train/adult/baseline"):
        with tracker(mode="offline", folder=tmp_path, **{**JOB, "name": name}):
            pass
    assert len(runs(tmp_path)) == 2


def test_a_runs_identity_is_what_it_is() -> None:
    settings = {"a": 1, "b": 2}
    same = identity("p", "g", "n", settings)
    assert identity("p", "g", "n", {"b": 2, "a": 1}) == same
    others = {identity(a, b, c, settings) for a, b, c in (("q", "g", "n"), ("p", "h", "n"), ("p", "g", "m"))}
    assert len({same, *others, identity("p", "g", "n", {"a": 1, "b": 3})}) == 5


def test_disabled_imports_no_wandb_and_leaves_no_trace(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pipeline.workflow.tracking import tracker\n"
        f"with tracker('disabled', 'p', 'g', 'n', {{}}, {str(tmp_path)!r}) as run:\n"
        "    run.log(0, {'loss': 1.0}); run.summary({'x': 1.0})\n"
        "sys.exit('wandb' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_offline_calls_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        online(tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}", key="a" * 40, mode="offline")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_online_without_a_network_is_kept_offline_in_seconds_with_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Bound and not listening: connections are refused.
        said, seconds = online(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}", key="a" * 40)
    assert seconds < 10
    assert said.count("\n") == 1
    assert "not online" in said
    assert "wandb sync" in said
    assert [path.name.startswith("offline-run-") for path in runs(tmp_path)] == [True]


def test_online_without_a_key_never_asks_for_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        said, seconds = online(tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}", key="", terminal=True)
    assert seconds < 10
    assert "No API key configured" in said
    assert "choice" not in said
    assert [path.name.startswith("offline-run-") for path in runs(tmp_path)] == [True]


def online(folder: Path, url: str, key: str, terminal: bool = False, mode: str = "online") -> tuple[str, float]:
    """What a tracked job says on standard error, and how long it takes; its input and errors may be a terminal."""
    program = (
        "from pipeline.workflow.tracking import tracker\n"
        f"with tracker({mode!r}, 'p', 'g', 'train/x', {{}}, {str(folder)!r}) as run: run.log(0, {{'loss': 1.0}})\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {"WANDB_BASE_URL": url, "WANDB_API_KEY": key, "HOME": str(folder), "TERM": "xterm", "NETRC": "none"}
    command: dict[str, Any] = {"args": [sys.executable, "-c", program], "env": environment}
    start = time.monotonic()
    if terminal:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(**command, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        process.wait(timeout=60)
        said = os.read(ours, 65536).decode()
        os.close(ours)
    else:
        said = subprocess.run(**command, capture_output=True, text=True, check=True, timeout=60).stderr
    return said, time.monotonic() - start


def test_a_folder_that_cannot_be_written_costs_the_run_and_not_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    done = False
    with tracker(mode="offline", folder=tmp_path / "file", **JOB) as run:
        run.log(0, {"loss": 1.0})
        done = True
    assert done
    assert "not tracked" in capsys.readouterr().err


def test_a_jobs_own_error_passes_through_and_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), tracker(mode="offline", folder=tmp_path, **JOB):
        raise ZeroDivisionError
    with (
        pytest.raises(ValueError, match=r"tracker mode: expected one of offline, online, disabled, found 'onlin'"),
        tracker(mode="onlin", folder=tmp_path, **JOB),
    ):
        pass


def test_outside_a_workflow_nothing_is_tracked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(tracking.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    record("results/models/x.npz", {}, {"accuracy": 1.0})
    assert not list(tmp_path.iterdir())


def test_the_workflows_tracker_reaches_the_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = {"mode": "offline", "project": "p", "folder": str(tmp_path), "group": "study", "scale": "smoke"}
    monkeypatch.setenv(tracking.VARIABLE, json.dumps(chosen))
    record("results/models/x.npz", {"lr": 1}, {"seconds": 2.0}, {"step": np.array([0]), "loss": np.array([[4.0]])})
    (kept,) = runs(tmp_path)
    config, history, summary = stored(kept)
    assert (config["group"], config["lr"], config["scale"], config["job_type"]) == ("study", 1, "smoke", "models")
    assert (history[0]["loss/mean"], summary["seconds"]) == (4.0, 2.0)


def test_curves_give_each_repetition_and_their_mean() -> None:
    history = {"step": np.array([0, 100]), "loss": np.array([[4.0, 2.0], [2.0, 1.0]])}
    assert list(curves(history)) == [
        ({"loss/mean": 3.0, "loss/0": 4.0, "loss/1": 2.0}, 0),
        ({"loss/mean": 1.5, "loss/0": 2.0, "loss/1": 1.0}, 100),
    ]
    assert list(curves({})) == []
