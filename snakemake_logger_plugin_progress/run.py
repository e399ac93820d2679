"""The state of a run, as an immutable value, and how each event of Snakemake changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    """How far a run is. ``planned`` counts the jobs of each rule; ``total`` follows Snakemake's own count.

    Rules that are made in a loop, ``train_a``, ``train_b``, count as one, ``train``. ``cores`` is how many jobs can run
    at once: here, or (``nodes``) on a cluster. ``failed`` holds what has failed and was not tried again.
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
        """The jobs that Snakemake says it will run, by rule, with their ``total``."""
        found = {rule: count for rule, count in stats.items() if rule != "total"}
        planned: dict[str, int] = {}
        for rule, count in found.items():
            name = family(rule, found)
            planned[name] = planned.get(name, 0) + count
        return replace(self, planned=planned, total=stats.get("total", sum(planned.values())))

    def start(self, number: int, job: Job) -> Run:
        """A job starts, or starts again after a failure."""
        failed = tuple(title for title in self.failed if title != job.title)
        return replace(self, running={**self.running, number: job}, failed=failed)

    def finish(self, number: int) -> Run:
        """A job ends well."""
        return replace(self, done=self.done + 1, running=_without(self.running, number))

    def fail(self, number: int) -> Run:
        """A job fails."""
        title = self.running[number].title if number in self.running else f"job {number}"
        return replace(self, running=_without(self.running, number), failed=(*self.failed, title))


def family(rule: str, rules: Iterable[str]) -> str:
    """The first word of a rule's name where several ``rules`` begin with it, otherwise the rule."""
    first, *rest = rule.split("_")
    alike = [other for other in rules if other.startswith(f"{first}_")]
    return first if rest and len(alike) > 1 else rule


def _without(running: Mapping[int, Job], number: int) -> dict[int, Job]:
    return {key: job for key, job in running.items() if key != number}
