"""A process that has the libraries imported and forks for each job of a single machine.

Most jobs of a study take less time than their imports. :func:`start` begins the process for a run of Snakemake; jobs
reach it through a socket (:mod:`pipeline.workflow.launch`). Its standard input is a pipe from Snakemake: when that
ends, however it ends, the process ends and its jobs with it. A job whose own process is killed is killed too.
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

from pipeline.workflow.launch import ADDRESS, THREADS, run

WORTHWHILE = 8
"""Jobs from which on the imports pay."""
# A step of torch's optimizers imports torch._dynamo, in more than a second.
PRELOADED = (
    "numpy", "pandas", "scipy.optimize", "scipy.sparse", "scipy.spatial", "scipy.special", "scipy.stats",
    "sklearn.linear_model", "torch", "torch._dynamo",
    *(f"pipeline.stages.{name}" for name in ("absent", "audit", "prepare", "train", "transport")),
)  # fmt: skip
FOLDER = Path(".snakemake", "warm")
ONE_THREAD = (THREADS, "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

_started: list[subprocess.Popen[bytes]] = []


def start(environment: MutableMapping[str, str]) -> None:
    """Start the process, and tell jobs by ``environment`` where it is; without a folder to write to, do neither."""
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


class Server:
    """Takes jobs from a socket, forks for each and answers how it ended."""

    def __init__(self, address: str) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        # Jobs that come while the libraries are imported wait.
        self.listener.listen(256)
        self.jobs: dict[int, socket.socket] = {}
        self.ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        # Ctrl-C reaches the jobs, and Snakemake ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.selector = selectors.DefaultSelector()
        for file in (self.listener, self.ended, 0):
            self.selector.register(file, selectors.EVENT_READ)

    def next_job(self) -> list[str] | None:
        """Serve until there is a job; return its words in the process that is to run it, None at the end of all."""
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
                    # The process of a job says nothing: it has ended.
                    self.kill(key.fileobj)

    def fork(self) -> list[str] | None:
        """Take a job and fork for it; return its words in the child."""
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
        """Turn a forked process into that of a job."""
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
        """Tell those whose jobs have ended how."""
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
    """Return what a job sends: its words, its environment and its two outputs."""
    head, outputs, _, _ = socket.recv_fds(connection, 8, 2)
    content, size = b"", int.from_bytes(head, "big")
    while len(content) < size:
        if not (part := connection.recv(size - len(content))):
            raise ValueError("the process of the job has ended")
        content += part
    words, environment = json.loads(content)
    return words, environment, list(outputs)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, where it can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def main(address: str) -> None:
    """Serve jobs until Snakemake ends; a forked process returns from its job and ends."""
    server = Server(address)
    for name in PRELOADED:
        with suppress(ImportError):  # The job that needs it says so.
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    if words := server.next_job():
        run(words[0], words[1], words[2:])


if __name__ == "__main__":
    main(sys.argv[1])
