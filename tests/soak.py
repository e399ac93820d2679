"""A harder life: runs of the workflow that are killed at random moments, and what that costs (``make soak``).

    python -m tests.soak --kills 50 --seed 0 --studies "individual_fairness fliptest"

A smoke run on the twins that nothing befalls gives the bytes. Copies of the project then run to the same end while, at
moments drawn by the seed, at most a minute after the last, one of these happens:

- ``tree``: every process of the run is killed (-9), and the run is started again;
- ``job``: one job is killed, the run ends as it sees fit, and is started again;
- ``sleep``: every process is stopped for some seconds, as on a laptop that is closed, and goes on;
- ``second``: the same command is given once more beside the run, which goes on.

The soak ends with the run in which the last kill was.

A run that is whole must hold the same bytes, and the next one begins from nothing. Jobs that were started again are
counted, and those among them that had been done. A run that cannot be finished, and a byte that differs, end the soak
with status 1; the copy is left for a look at it.
"""

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from tests.files import ROOT, environment, project_copy

HARMS = ("tree", "tree", "tree", "job", "sleep", "second")
"""Drawn from with equal chances: a tree as often as the others together."""
KILLS = ("tree", "job")
APART = 60.0
"""Seconds between two moments of a run at most, so that a long one meets several."""
ASLEEP = 12.0
"""Seconds for which a run is stopped: longer than the workflow waits for a server."""
MADE = ("models", "transports", "audits", "rows", "tables", "figures", "captions")
"""Folders of ``results/`` that must be the same whatever happened; times and the page that states them differ."""
JOBS = ("pipeline.workflow.launch", "pipeline.stages.")
"""How the name of the module that a job runs begins."""
MOST = 10
"""Attempts in a row that nothing befell, after which a run is held not to end."""


@dataclass
class Run:
    """A copy of the project, the attempts to finish its run, and the jobs that these started and finished."""

    project: Path
    studies: str
    cores: int
    started: Counter[str] = field(default_factory=Counter)
    finished: set[str] = field(default_factory=set)
    repeated: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    seconds: float = 0.0
    harms: list[str] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """What the last attempt printed."""
        return self.project / f"attempt_{self.attempts}.log"

    def attempt(self, rng: np.random.Generator | None = None, apart: float = 0.0) -> bool:
        """Start or continue the run; with ``rng``, harm it until it is killed or ends. Whether it is whole.

        A harm comes at most ``apart`` seconds after the last; what was done is then in ``self.harms``.
        """
        self.attempts += 1
        self.harms = []
        begun = time.monotonic()
        process = self.begun(self.log)
        while rng and not set(KILLS) & set(self.harms):
            harm, wait = str(rng.choice(HARMS)), rng.uniform(0, apart)
            with suppress(subprocess.TimeoutExpired):
                process.wait(wait)
            if process.poll() is not None:
                break
            if harm == "second":
                second = self.log.with_suffix(".second.log")
                self.begun(second).wait()
                self._count(second.read_text())
                self.harms.append(harm)
            else:
                self.harms.append(inflict(harm, process, rng))
        process.wait()
        self.seconds += time.monotonic() - begun
        self._count(self.log.read_text())
        return process.returncode == 0

    def begun(self, log: Path) -> subprocess.Popen[bytes]:
        """The command that starts or continues the run, at work, with what it prints in ``log``."""
        command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "resume", f"CORES={self.cores}"]
        with log.open("w") as stream:
            return subprocess.Popen(
                [*command, f"BIN={Path(sys.executable).parent}"],
                cwd=self.project,
                env=environment(self.project, STUDY=self.studies),
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _count(self, log: str) -> None:
        """Read off the jobs, by their messages, that an attempt started and finished; it may be of several runs."""
        names: dict[str, str] = {}
        for started, name, ended in re.findall(r"^(?:Job (\d+): (.+)|Finished jobid: (\d+)\b.*)$", log, re.MULTILINE):
            if started:
                names[started] = name
                self.started[name] += 1
                self.repeated[name] += name in self.finished
            elif ended in names:  # The target itself is a job of no name.
                self.finished.add(names[ended])

    def digests(self) -> dict[str, str]:
        """The SHA-256 of every file that must be the same, hidden ones included: none may be left behind."""
        folders = [self.project / "data" / "prepared", *(self.project / "results" / name for name in MADE)]
        files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.project)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def inflict(harm: str, leader: subprocess.Popen[bytes], rng: np.random.Generator) -> str:
    """Do ``harm`` to the run that ``leader`` leads; kill all of it where a job is to be killed and none is at work."""
    tree = [psutil.Process(leader.pid), *psutil.Process(leader.pid).children(recursive=True)]
    at_work = [process for process in tree if _is_job(process)]
    if harm == "sleep":
        _tell(tree, signal.SIGSTOP)
        time.sleep(ASLEEP)
        _tell(tree, signal.SIGCONT)
    elif harm == "job" and at_work:
        _tell([at_work[rng.integers(len(at_work))]], signal.SIGKILL)
    else:
        harm = "tree"
        _tell(tree, signal.SIGKILL)
        leader.wait()
        psutil.wait_procs(tree, timeout=10)
    return harm


def _is_job(process: psutil.Process) -> bool:
    with suppress(psutil.Error, OSError):
        return any(word.startswith(JOBS) for word in process.cmdline()[1:3])
    return False


def _tell(processes: Sequence[psutil.Process], what: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.Error, OSError):
            process.send_signal(what)


def differing(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """The files that are in one run alone, or have other bytes, each with what is the matter."""
    what = {(True, False): "is missing", (False, True): "should not be there", (True, True): "has other bytes"}
    names = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    return [f"{name} {what[name in expected, name in found]}" for name in names]


def soak(kills: int, seed: int, unharmed: Run) -> int:
    """Harm runs like the ``unharmed`` one, say what came of it; 1 if one could not be finished or has other bytes."""
    expected, jobs = unharmed.digests(), unharmed.started.total()
    _say(f"unharmed: {jobs} jobs, {len(expected)} files, {unharmed.seconds:.0f} s")
    rng, done, totals, lost = np.random.default_rng(seed), Counter[str](), Counter[str](), 0.0
    while sum(done[harm] for harm in KILLS) < kills:
        totals["runs"] += 1
        copy = project_copy(unharmed.project.with_name(f"run_{totals['runs']}"), unharmed.project)
        run, quiet = Run(copy, unharmed.studies, unharmed.cores), 0
        whole = False
        while not whole:
            left = kills - sum(done[harm] for harm in KILLS)
            whole = run.attempt(rng if left else None, min(unharmed.seconds, APART))
            done.update(run.harms)
            if run.harms:
                _say(f"attempt {run.attempts}: {', '.join(run.harms)}; {sum(done[harm] for harm in KILLS)} kills")
            quiet = 0 if run.harms else quiet + 1
            if quiet > MOST:
                return _failed(run, f"it does not end in {MOST} attempts that nothing befell")
        if wrong := differing(run.digests(), expected):
            return _failed(run, "; ".join(wrong[:5]))
        again, repeated = run.started.total() - jobs, run.repeated.total()
        _say(f"run {totals['runs']}: the same bytes after {run.attempts} attempts and {again} jobs started again")
        totals.update(again=again, repeated=repeated)
        lost += run.seconds - unharmed.seconds
        shutil.rmtree(run.project)
    _say(
        f"{done.total()} moments ({', '.join(f'{harm} {done[harm]}' for harm in dict.fromkeys(HARMS))}) in "
        f"{totals['runs']} runs of {jobs} jobs: the same bytes each time. Started again: {totals['again']} jobs, of "
        f"which {totals['repeated']} had been done. A moment cost {lost / max(done.total(), 1):.0f} s"
    )
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _failed(run: Run, why: str) -> int:
    _say(f"{run.project}, attempt {run.attempts}: {why}. The end of what it printed:\n{run.log.read_text()[-3000:]}")
    return 1


def main() -> int:
    """Read the options and soak in a folder that is removed if all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="of a run or a job; what else happens is not counted")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--studies", default="", help="with spaces between; all where none is named")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="of each run")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    unharmed = Run(project_copy(folder / "unharmed"), asked.studies, asked.cores)
    whole = unharmed.attempt()
    status = soak(asked.kills, asked.seed, unharmed) if whole else _failed(unharmed, "nothing befell it, and it failed")
    if not status:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
