"""Immutable state of a run, with the changes that each event of Snakemake makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Job:
    """A job that has started. ``began`` is in seconds on the run's clock."""

    title: str
    began: float
    log: tuple[str, ...] = ()
    makes_files: bool = True
    output: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """Progress of a run. ``planned`` counts the jobs of each rule; ``total`` is Snakemake's own count.

    ``cores`` is the number of jobs that can run at once, locally or (if ``nodes``) on a cluster. ``failed`` holds jobs
    that failed and were not retried.
    """

    began: float
    cores: int = 1
    nodes: bool = False
    planned: Mapping[str, int] = field(default_factory=dict)
    total: int = 0
    done: int = 0
    running: Mapping[int, Job] = field(default_factory=dict)
    failed: tuple[str, ...] = ()

    def plan(self, stats: Mapping[str, int]) -> Run:
        """Set the planned jobs by rule and their ``total``, as announced by Snakemake."""
        planned = {rule: count for rule, count in stats.items() if rule != "total"}
        return replace(self, planned=planned, total=stats.get("total", sum(planned.values())))

    def start(self, number: int, job: Job) -> Run:
        """Add a running job, which may be a retry after a failure."""
        failed = tuple(title for title in self.failed if title != job.title)
        return replace(self, running={**self.running, number: job}, failed=failed)

    def finish(self, number: int) -> Run:
        """Move a running job to the finished ones."""
        return replace(self, done=self.done + 1, running=_without(self.running, number))

    def fail(self, number: int) -> Run:
        """Move a running job to the failed ones."""
        title = self.running[number].title if number in self.running else f"job {number}"
        return replace(self, running=_without(self.running, number), failed=(*self.failed, title))


def _without(running: Mapping[int, Job], number: int) -> dict[int, Job]:
    return {key: job for key, job in running.items() if key != number}
