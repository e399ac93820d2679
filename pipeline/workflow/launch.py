"""Run a stage and measure it: ``python -m pipeline.workflow.launch BENCHMARK STAGE [--option value ...]``.

On a single machine, a process with imported libraries (:mod:`pipeline.workflow.warm`) runs jobs with one thread. All
other jobs run in this process.
"""

import contextlib
import importlib
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Iterator, Sequence

ADDRESS = "PIPELINE_WARM"
"""The environment variable with the path of the socket of the process that runs stages."""
THREADS = "OMP_NUM_THREADS"
"""Snakemake sets this variable to the threads of a job. Libraries read it at import."""


@contextlib.contextmanager
def measured(path: str) -> Iterator[None]:
    """Write wall time, processor time and memory of this process to ``path``, in Snakemake's columns."""
    begun = time.monotonic()
    yield
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    wall, processor = time.monotonic() - begun, sum(one.ru_utime + one.ru_stime for one in used)
    memory = max(one.ru_maxrss for one in used) / (2**20 if sys.platform == "darwin" else 2**10)
    minutes, seconds = divmod(int(wall), 60)
    clock = f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    from pathlib import Path  # Imported here to start faster.

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    row = f"{wall:.4f}\t{clock}\t{memory:.2f}\t{processor:.2f}"
    Path(path).write_text(f"s\th:m:s\tmax_rss\tcpu_time\n{row}\n", encoding="utf-8")


def run(benchmark: str, stage: str, arguments: Sequence[str]) -> None:
    """Run a stage in this process."""
    with measured(benchmark):
        importlib.import_module(f"pipeline.stages.{stage}").main(list(arguments))


def handed_over(address: str, words: Sequence[str]) -> int | None:
    """Run a stage in the process at ``address``. Return its exit status, or None if there is no such process."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
        except OSError:
            return None
        content = json.dumps([list(words), dict(os.environ)]).encode()
        # The stage writes to the output of this process.
        socket.send_fds(connection, [len(content).to_bytes(8, "big")], [1, 2])
        connection.sendall(content)
        answer = connection.recv(4)
    return int.from_bytes(answer, "big", signed=True) if answer else 1


def main(words: Sequence[str]) -> None:
    """Run a stage in the process with imported libraries if possible, otherwise in this process."""
    address = os.environ.get(ADDRESS)
    status = handed_over(address, words) if address and os.environ.get(THREADS) == "1" else None
    if status is None:
        run(words[0], words[1], words[2:])
    elif status < 0:
        sys.exit(f"The job was killed by signal {-status}.")
    elif status:
        sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
