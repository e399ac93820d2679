"""The state of a run, and its description in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean


@dataclass(frozen=True)
class Job:
    """A job that has started. ``began`` is in seconds on the run's clock."""

    title: str
    rule: str
    began: float
    log: tuple[str, ...] = ()


@dataclass
class Run:
    """Progress of a run.

    ``left`` counts the jobs of each rule that are not done, and ``took`` holds the seconds of the others.
    ``failed`` holds the logs of the jobs that failed and were not retried.
    """

    began: float
    where: str = "1 core"
    cores: int = 1
    total: int = 0
    done: int = 0
    left: dict[str, int] = field(default_factory=dict)
    took: dict[str, list[float]] = field(default_factory=dict)
    running: dict[int, Job] = field(default_factory=dict)
    failed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def plan(self, stats: Mapping[str, int]) -> None:
        """Set the planned jobs by rule, as announced by Snakemake."""
        self.left = {rule: count for rule, count in stats.items() if rule != "total"}
        self.total = sum(self.left.values())

    def at_once(self, cores: int | None, nodes: int | None) -> None:
        """Set how many jobs can run at once: local cores, or submissions to a cluster."""
        if count := cores or nodes:
            self.cores = count
            self.where = f"a cluster, {count} at once" if nodes else f"{count} core" + "s" * (count != 1)

    def start(self, number: int, job: Job) -> None:
        """Add a running job, which may be a retry after a failure."""
        self.failed.pop(job.title, None)
        self.running[number] = job

    def finish(self, number: int, now: float) -> Job | None:
        """Move a running job to the finished ones, and return it."""
        self.done += 1
        if job := self.running.pop(number, None):
            self.left[job.rule] = self.left.get(job.rule, 1) - 1
            self.took.setdefault(job.rule, []).append(now - job.began)
        return job

    def fail(self, number: int, rule: str, logs: tuple[str, ...]) -> Job:
        """Move a running job to the failed ones, and return it."""
        job = self.running.pop(number, None) or Job(rule, rule, self.began)
        self.failed[job.title] = logs
        return job

    def planned(self) -> str:
        """Return ``31 jobs on 2 cores: 2 fetch, 3 prepare, 8 train``."""
        counts = ", ".join(f"{count} {rule}" for rule, count in self.left.items())
        return f"{self.total} job{'s' * (self.total != 1)} on {self.where}: {counts}"

    def progress(self, now: float) -> str:
        """Return ``7 of 31, 1 min 12 s so far, about 4 min left``, from the mean time of each rule's finished jobs."""
        told = f"{self.done} of {self.total}, {duration(now - self.began)} so far"
        if sum(map(len, self.took.values())) < 3:
            return told
        usual = fmean(map(fmean, self.took.values()))
        expected = {rule: fmean(self.took.get(rule, [usual])) for rule in self.left}
        work = sum(count * expected[rule] for rule, count in self.left.items())
        spent = sum(min(now - job.began, expected.get(job.rule, usual)) for job in self.running.values())
        return f"{told}, about {duration((work - spent) / self.cores)} left"

    def end(self, now: float) -> str:
        """Return the last lines of a run, with the failed jobs and their logs."""
        took = duration(now - self.began)
        if self.done == self.total and not self.failed:
            return f"{self.done} of {self.total} jobs done in {took}."
        first = f"Stopped after {took}: {self.done} of {self.total} jobs done, {len(self.failed)} failed. "
        failed = (f"  failed: {title} ({', '.join(logs)})" for title, logs in self.failed.items())
        return "\n".join([f"{first}Run again to continue.", *failed])


def duration(seconds: float) -> str:
    """Format a time: ``0.4 s``, ``41 s``, ``1 min 12 s``, ``1 h 2 min``."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    hours, minutes, rest = round(seconds) // 3600, round(seconds) // 60 % 60, round(seconds) % 60
    parts = [(hours, "h"), (minutes, "min"), (rest * (not hours), "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
