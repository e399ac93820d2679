"""Tracking watches and never disturbs: no prompt, no wait for a network, no wandb where it is off, one run a job."""

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

from pipeline.workflow import tracking
from pipeline.workflow.tracking import curves, identity, record
from tests.errors import invalid


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
