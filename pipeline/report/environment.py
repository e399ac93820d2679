"""The environment of a run: commit, configuration, software, machine and time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import platform
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairness_audits.errors import InvalidInput
from pipeline import software

ROOT = Path(__file__).resolve().parents[2]
"""Root folder of the project."""


@dataclass(frozen=True)
class RuleTime:
    """Number of jobs of a rule, their wall and processor time in seconds, and their largest memory in MB."""

    rule: str
    jobs: int
    wall: float
    processor: float
    memory: float

    @classmethod
    def of(cls, rule: str, times: Sequence[RuleTime]) -> RuleTime:
        """Sum the times; take the maximum of the memory."""
        jobs, wall, processor = (sum(getattr(time, name) for time in times) for name in ("jobs", "wall", "processor"))
        return cls(rule, jobs, wall, processor, max((time.memory for time in times), default=0.0))


def commit(root: Path = ROOT) -> str:
    """Return the commit checked out in ``root`` and whether any file but the references differs from it.

    Untracked code and configuration also count as different. Return ``unknown`` if ``root`` is not the top folder of a
    repository: a repository around it is another project.
    """
    try:
        if Path(_git(root, "rev-parse", "--show-toplevel")) != root.resolve():
            return "unknown"
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!data/reference")
        new = _git(root, "ls-files", "--others", "--exclude-standard", "--", "fairness_audits", "pipeline", "conf")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{head}{' with uncommitted changes' if changed or new else ''}"


def _git(root: Path, *arguments: str) -> str:
    """Run git in ``root`` without the environment variables that a hook sets for its own repository."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", *arguments], cwd=root, env=own, capture_output=True, text=True, check=True, timeout=20
    ).stdout.strip()


def machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Return processor with graphics card, cores and system of this machine."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = models[0] if models else platform.processor() or platform.machine()
    return {
        "processor": " and ".join(filter(None, (processor, _graphics_card()))),
        "cores": str(os.cpu_count() or "unknown"),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "threads of a job": os.environ.get("OMP_NUM_THREADS", "not limited"),
    }


def _graphics_card() -> str:
    """Return the name of the first GPU that NVIDIA's driver reports, or an empty text."""
    question = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(question, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.partition("\n")[0].strip()


def described(path: str | None = None) -> dict[str, Any]:
    """Return the commit, the machine and the versions of a run, as a reference stores them.

    ``python -m pipeline.report.environment`` prints them on the machine of the run. ``path`` is a file with this
    output, if the run was on another machine. Raises InvalidInput for a file with other content.
    """
    if path is None:
        return {"commit": commit(), "machine": machine(), "versions": software.installed()}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        complete = found.keys() == {"commit", "machine", "versions"} and "processor" in found["machine"]
    except (OSError, ValueError, AttributeError, TypeError):
        complete = False
    if not complete:
        problem = f"{path} is not a description of a run's machine"
        remedy = f"On that machine, run `python -m pipeline.report.environment > {Path(path).name}`"
        raise InvalidInput(problem, source=path, option="environment", remedy=remedy)
    return dict(found)


def digest(config: Mapping[str, Any]) -> str:
    """Return the first 16 digits of the SHA-256 of a configuration's canonical JSON."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]


def rule_times(benchmarks: Iterable[tuple[str, str]]) -> list[RuleTime]:
    """Sum the times of each rule. ``benchmarks`` holds pairs of a rule and the text of a job's benchmark file."""
    jobs: dict[str, list[RuleTime]] = defaultdict(list)
    for rule, text in benchmarks:
        for row in csv.DictReader(io.StringIO(text), delimiter="\t"):
            jobs[rule].append(RuleTime(rule, 1, *(_float(row.get(name)) for name in ("s", "cpu_time", "max_rss"))))
    return [RuleTime.of(rule, times) for rule, times in sorted(jobs.items())]


def duration(seconds: float) -> str:
    """Format seconds: ``95.2`` -> ``1 min 35 s``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours} h {rest // 60:02d} min" if hours else f"{rest // 60} min {rest % 60:02d} s"


def _float(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


if __name__ == "__main__":
    print(json.dumps(described(), indent=1))
