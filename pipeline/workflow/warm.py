"""A process that imports the libraries once and forks for each job on a single machine.

Most jobs of a study take less time than their imports. :func:`start` starts the process for a run of Snakemake. Jobs
connect to it through a socket (:mod:`pipeline.workflow.launch`). Its standard input is a pipe from Snakemake. When
Snakemake ends for any reason, the process and its jobs end too. If the process of a job in Snakemake is killed, its
forked process is killed too.
"""

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from pipeline.workflow.launch import ADDRESS, THREADS, run

RULES = ("prepare", "train", "transport", "audit", "not_run")
"""The rules whose jobs the process forks."""
WORTHWHILE = 8
"""Smallest number of jobs for which the process is faster."""
# Optimizers of torch import torch._dynamo at their first step, which takes more than a second.
PRELOADED = (
    "numpy", "pandas", "scipy.optimize", "scipy.sparse", "scipy.spatial", "scipy.special", "scipy.stats",
    "sklearn.linear_model", "torch", "torch._dynamo", "numba", "fairness_audits.transport.pot",
    *(f"pipeline.stages.{name}" for name in ("absent", "audit", "prepare", "train", "transport")),
)  # fmt: skip
FOLDER = Path(".snakemake", "warm")
ONE_THREAD = (THREADS, "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

_started: list[subprocess.Popen[bytes]] = []


def start(environment: MutableMapping[str, str]) -> None:
    """Start the process and put its address in ``environment``. Do nothing if the folder is not writable."""
    address = FOLDER / f"{os.getpid()}.socket"
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for former in FOLDER.glob("*.socket"):
            former.unlink()
    except OSError:
        return
    command = [sys.executable, "-m", "pipeline.workflow.warm", str(address)]
    single = dict.fromkeys(ONE_THREAD, "1")
    _started.append(subprocess.Popen(command, stdin=subprocess.PIPE, env={**environment, **single}))
    environment[ADDRESS] = str(address)


def start_for(workflow: Any) -> None:
    """Start the process for a run of Snakemake, if enough of its jobs run on this machine."""
    jobs = [job for job in workflow.dag.needrun_jobs() if job.rule.name in RULES]
    if workflow.local_exec and not workflow.touch and len(jobs) >= WORTHWHILE:
        start(os.environ)


class Server:
    """Accepts jobs from a socket, forks for each, and returns its exit status."""

    def __init__(self, address: str) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        # Jobs wait in this queue while the libraries are imported.
        self.listener.listen(256)
        self.jobs: dict[int, socket.socket] = {}
        self.ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        # Ctrl-C ends the jobs and Snakemake, which then ends this process.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.selector = selectors.DefaultSelector()
        for file in (self.listener, self.ended, 0):
            self.selector.register(file, selectors.EVENT_READ)

    def next_job(self) -> list[str] | None:
        """Serve until a job arrives. Return its words in the forked process, or None when Snakemake ends."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj == 0:
                    self.end()
                    return None
                if key.fileobj == self.ended:
                    os.read(self.ended, 4096)
                    self.answer()
                elif key.fileobj is self.listener:
                    if (words := self.fork()) is not None:
                        return words
                else:
                    # The connection is readable only if the process of the job has ended.
                    self.kill(key.fileobj)

    def fork(self) -> list[str] | None:
        """Accept a job and fork. Return its words in the child."""
        connection, _ = self.listener.accept()
        try:
            words, environment, outputs = received(connection)
        except (OSError, ValueError):
            connection.close()
            return None
        number = os.fork()
        if not number:
            self.become(environment, outputs)
            return words
        for file in outputs:
            os.close(file)
        self.jobs[number] = connection
        self.selector.register(connection, selectors.EVENT_READ)
        return None

    def become(self, environment: dict[str, str], outputs: list[int]) -> None:
        """Set up the outputs and the environment of a forked process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        die_with_parent()
        self.selector.close()
        self.listener.close()
        for connection in self.jobs.values():
            connection.close()
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for file, place in zip(outputs, (1, 2), strict=True):
            os.dup2(file, place)
            os.close(file)
        os.environ.clear()
        os.environ.update(environment)

    def answer(self) -> None:
        """Send the exit status of each job that has ended."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if connection := self.jobs.pop(ended[0], None):
                    self.selector.unregister(connection)
                    with suppress(OSError):
                        connection.sendall(os.waitstatus_to_exitcode(ended[1]).to_bytes(4, "big", signed=True))
                    connection.close()

    def kill(self, connection: object) -> None:
        """Kill the job of a process that has ended."""
        for number in [number for number, other in self.jobs.items() if other is connection]:
            self.selector.unregister(self.jobs[number])
            self.jobs.pop(number).close()
            os.kill(number, signal.SIGKILL)

    def end(self) -> None:
        """Kill every job."""
        for number in self.jobs:
            os.kill(number, signal.SIGKILL)
        with suppress(OSError):
            Path(self.listener.getsockname()).unlink()


def received(connection: socket.socket) -> tuple[list[str], dict[str, str], list[int]]:
    """Receive the words, the environment and the two outputs of a job."""
    head, outputs, _, _ = socket.recv_fds(connection, 8, 2)
    content, size = b"", int.from_bytes(head, "big")
    while len(content) < size:
        if not (part := connection.recv(size - len(content))):
            raise ValueError("The process of the job has ended")
        content += part
    words, environment = json.loads(content)
    return words, environment, list(outputs)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends (Linux only)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def leave() -> NoReturn:
    """End this process without deleting its objects: they come from the parent, and deleting them takes 0.3 seconds."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main(address: str) -> None:
    """Serve jobs until Snakemake ends. A forked process runs its job and ends."""
    server = Server(address)
    for name in PRELOADED:
        with suppress(ImportError):  # The job that needs the module reports the error.
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    if words := server.next_job():
        run(words[0], words[1], words[2:])
        leave()


if __name__ == "__main__":
    main(sys.argv[1])
