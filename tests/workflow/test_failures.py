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
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.workflow import failures, tracking
from pipeline.workflow.tracking import curves, identity, record
from snakemake_logger_plugin_progress.journal import Journal
from tests.errors import invalid

SNAKEFILE = """
from pathlib import Path
from pipeline.workflow import failures

rule all:
    input: "r.html"
rule train:
    message: "train sensr on adult"
    output: "m.npz"
    log: "logs/train.log"
    priority: 1
    shell: "seq 0 49 >{log}; exit 1"
rule audit:
    input: "m.npz"
    output: "a.npz"
    shell: "touch {output}"
rule collect:
    output: "rows.csv"
    log: "logs/collect.log"
    shell: "exit 1"
for study in ("first", "second"):
    rule:
        name: f"draw_{study}"
        message: "{wildcards.study}"
        input: lambda w: {"first": "a.npz", "second": "rows.csv"}[w.study]
        output: "{study}.json"
        wildcard_constraints: study=study
        shell: "touch {output}"
rule report:
    input: "first.json", "second.json"
    output: "r.html"
    shell: "touch {output}"

onerror:
    # The executor of a cluster hands over groups.
    jobs = {job.message or job.rule.name: job for job in workflow.dag.jobs}
    together = [jobs["collect"], jobs["second"]]
    group = workflow.dag.group_job_factory.new("together", together, workflow.global_resources)
    failed = [group if job in together else job for job in workflow.scheduler.failed]
    artefacts = {"first": ["table_1", "figure_2"], "second": ["table_3"]}
    account = failures.account(workflow.dag, failed, artefacts, Path("."))
    failures.save_json(account, failures.ACCOUNT)
"""


def account_of(folder: Path, *options: str) -> dict[str, Any]:
    """The account of a run by Snakemake itself, in which ``train`` fails, and the group of ``collect`` and ``second``.

    A progress display has written down what it was told of them.
    """
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "slurm.log").write_text("slurmstepd: error: no such node\n")
    told = [{"outputs": ["m.npz"], "title": "", "why": why, "logs": []} for why in ("first try", "OUT_OF_MEMORY")]
    logs = ["logs/collect.log", "slurm.log"]
    told += [{"outputs": ["rows.csv"], "title": "", "why": "", "logs": logs}]
    (folder / "results").mkdir(exist_ok=True)
    (folder / failures.JOURNAL).write_text("".join(json.dumps(line) + "\n" for line in told))
    subprocess.run(["snakemake", "--cores", "1", *options], cwd=folder, check=False, capture_output=True)
    found: dict[str, Any] = json.loads((folder / failures.ACCOUNT).read_text())
    return found


def test_what_is_missing_is_laid_to_the_jobs_that_it_waits_for_at_any_distance(tmp_path: Path) -> None:
    account = account_of(tmp_path, "--keep-going")
    # Of a group that failed each job did.
    collect, _, train = account["failed"]
    titles = ["collect", "second", "train sensr on adult"]
    assert [job["title"] for job in account["failed"]] == titles
    because = {job["title"]: job["because"] for job in account["not_run"]}
    assert because == {"audit": titles[2:], "first": titles[2:], "report": titles}
    assert account["missing"] == [
        {"study": "first", "artefacts": ["table_1", "figure_2"], "because": titles[2:]},
        {"study": "second", "artefacts": ["table_3"], "because": ["second"]},
    ]
    assert (train["why"], train["outputs"]) == ("OUT_OF_MEMORY", ["m.npz"])
    (log,) = train["logs"]
    assert log["lines"] == [str(n) for n in range(50 - failures.LAST_LINES, 50)]
    # A job that wrote nothing is explained by its scheduler's log.
    states = {log["path"]: log["state"] for log in collect["logs"]}
    assert states == {"logs/collect.log": "is empty.", "slurm.log": "ends with"}


def test_a_job_whose_turn_did_not_come_is_laid_to_nobody(tmp_path: Path) -> None:
    account = account_of(tmp_path)
    assert [job["title"] for job in account["failed"]] == ["train sensr on adult"]
    assert {job["title"]: job["because"] for job in account["not_run"]}["second"] == []
    assert "figures of second (the run ended before this step)" in failures.terminal(account)


TRAIN = {"title": "train sensr on adult", "rule": "train", "outputs": ["m.npz"], "why": "", "logs": []}
BECAUSE = {"because": [TRAIN["title"]]}
ACCOUNT: dict[str, Any] = {
    "failed": [TRAIN],
    "not_run": [
        {"title": "audit", "rule": "audit", "outputs": ["a.npz"], **BECAUSE},
        {"title": "report", "rule": "report", "outputs": ["r.html"], **BECAUSE},
    ],
    "missing": [{"study": "first", "artefacts": ["table_1", "figure_2"], **BECAUSE}],
}


def test_the_account_is_kept_until_what_it_says_is_missing_is_made(tmp_path: Path) -> None:
    account = {**ACCOUNT, "not_run": ACCOUNT["not_run"][:1]}
    failures.save(account, "smoke", [], tmp_path)
    assert json.loads((tmp_path / failures.ACCOUNT).read_text()) == account
    for made in ("m.npz", "a.npz"):
        failures.forget(tmp_path)
        assert (tmp_path / failures.ACCOUNT).exists(), "not everything is made yet"
        (tmp_path / made).touch()
    failures.forget(tmp_path)
    assert not (tmp_path / failures.ACCOUNT).exists()


def test_the_report_of_an_incomplete_run_opens_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / failures.SUMMARY).write_text("all is well")
    drawing = {**TRAIN, "title": "draw", "outputs": [f"figure_{number}.pdf" for number in range(60)]}
    failures.save({**ACCOUNT, "failed": [TRAIN, drawing]}, "smoke", [], tmp_path)
    assert not (tmp_path / failures.SUMMARY).exists(), "the report is due again"
    page = (tmp_path / failures.REPORT).read_text()
    assert "This run is not complete." in page
    assert "train sensr on adult" in page
    assert "figure_4.pdf and 55 more" in page
    assert "table_1, figure_2: needs train sensr on adult" in page


def test_a_run_that_was_ended_from_outside_writes_no_account_and_without_room_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(failures, "save", no_room)
    monkeypatch.setattr(failures, "account", lambda account, *_: account)
    of_run: tuple[Any, ...] = ([], ["individual_fairness"], "smoke", tmp_path)
    assert "stopped from outside" in failures.conclude({**ACCOUNT, "failed": []}, *of_run)
    said = failures.conclude(ACCOUNT, *of_run)
    assert "Cannot write the summary of failures: [Errno 28] No space left on device" in said
    assert "3 jobs remain. See results/report.html and results/failures.json" in said


# Tracking watches and never disturbs: no prompt, no wait for a network, no wandb where it is off, one run a job.


def chosen(monkeypatch: pytest.MonkeyPatch, folder: Path, mode: str = "offline") -> None:
    """The workflow's tracker, as it reaches a job."""
    told = {"mode": mode, "project": "p", "folder": str(folder), "group": "study", "scale": "smoke"}
    monkeypatch.setenv(tracking.VARIABLE, json.dumps(told))


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


def test_an_offline_run_keeps_configuration_curves_and_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(monkeypatch, tmp_path)
    curve = {"step": np.array([0, 10]), "loss": np.array([[1.5, 0.5]])}
    record("results/models/x.npz", {"lr": 0.1}, {"T_n": 1.25}, curve)
    (kept,) = runs(tmp_path)
    config, history, summary = stored(kept)
    assert (config["group"], config["lr"], config["scale"], config["job_type"]) == ("study", 0.1, "smoke", "models")
    assert [(row["_step"], row["loss/mean"]) for row in history] == [(0, 1.5), (10, 0.5)]
    assert summary["T_n"] == 1.25


def test_a_job_that_is_run_again_replaces_its_run_and_another_job_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen(monkeypatch, tmp_path)
    for name in ("adult/sensr", "adult/sensr", "adult/baseline"):
        record(f"results/models/{name}.npz", {}, {})
    assert len(runs(tmp_path)) == 2


def test_a_runs_identity_is_what_it_is() -> None:
    settings = {"a": 1, "b": 2}
    same = identity("p", "g", "n", settings)
    assert identity("p", "g", "n", {"b": 2, "a": 1}) == same
    others = {identity(a, b, c, settings) for a, b, c in (("q", "g", "n"), ("p", "h", "n"), ("p", "g", "m"))}
    assert len({same, *others, identity("p", "g", "n", {"a": 1, "b": 3})}) == 5


def test_disabled_imports_no_wandb_and_leaves_no_trace(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pipeline.workflow.tracking import record\n"
        "record('results/models/x.npz', {}, {'x': 1.0})\nsys.exit('wandb' in sys.modules)"
    )
    environment = {**os.environ, tracking.VARIABLE: json.dumps({"mode": "disabled", "folder": str(tmp_path)})}
    assert subprocess.run([sys.executable, "-c", program], check=False, env=environment).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_offline_calls_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        online(tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}", key="a" * 40, mode="offline")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "stale", ["SERVICE=2-1-tcp-localhost-9", "INIT_TIMEOUT=abc", "MODE=online_", "RUN_ID=x", "DISABLED=1"]
)
def test_variables_of_another_run_change_nothing(stale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable, _, value = stale.partition("=")
    monkeypatch.setenv(f"WANDB_{variable}", value)
    said, _ = online(tmp_path, "no address", key="stale", mode="offline")
    assert said == ""
    assert [path.name.startswith("offline-run-") for path in runs(tmp_path)] == [True]


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
    program = "from pipeline.workflow.tracking import record; record('results/models/x.npz', {}, {'loss': 1.0})"
    told = {"mode": mode, "project": "p", "folder": str(folder), "group": "g", "scale": "smoke"}
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {"WANDB_BASE_URL": url, "WANDB_API_KEY": key, "HOME": str(folder), "TERM": "xterm", "NETRC": "none"}
    environment[tracking.VARIABLE] = json.dumps(told)
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


def test_a_folder_that_cannot_be_written_costs_the_run_and_not_the_job_and_an_unknown_mode_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    chosen(monkeypatch, tmp_path / "file")
    record("results/models/x.npz", {}, {"loss": 1.0})
    assert "not tracked" in capsys.readouterr().err
    chosen(monkeypatch, tmp_path, mode="onlin")
    with invalid(option="mode"):
        record("results/models/x.npz", {}, {})


def test_outside_a_workflow_nothing_is_tracked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(tracking.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    record("results/models/x.npz", {}, {"accuracy": 1.0})
    assert not list(tmp_path.iterdir())


def test_curves_give_each_repetition_and_their_mean() -> None:
    history = {"step": np.array([0, 100]), "loss": np.array([[4.0, 2.0], [2.0, 1.0]])}
    assert list(curves(history)) == [
        ({"loss/mean": 3.0, "loss/0": 4.0, "loss/1": 2.0}, 0),
        ({"loss/mean": 1.5, "loss/0": 2.0, "loss/1": 1.0}, 100),
    ]
    assert list(curves({})) == []


LINE = {"outputs": ["m.npz"], "title": "train", "why": "", "logs": []}


@pytest.mark.parametrize(
    "torn", [b'{"outputs": ["rows.csv"], "ti', b'{"outputs": ["\xc3', b"\0\0\0", b"7\n", b"\n", b""]
)
def test_a_torn_line_of_the_journal_hides_no_other_line(torn: bytes, tmp_path: Path) -> None:
    path = tmp_path / "failures.jsonl"
    journal = Journal(str(path))
    journal.add(["first.npz"], "train", "", [])
    with path.open("ab") as file:
        file.write(torn)
    journal.add(["m.npz"], "train", "killed", [])
    found = failures._journal(path)
    assert set(found) == {"first.npz", "m.npz"}
    assert found["m.npz"] == {**LINE, "why": "killed"}
    with path.open("ab") as file:
        file.write(torn)
    assert set(failures._journal(path)) == {"first.npz", "m.npz"}
