"""The state of a run, as an immutable value, and how each event of Snakemake changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from snakemake_logger_plugin_progress.estimate import Estimate, Known, Took, pace, remaining, together


@dataclass(frozen=True)
class Job:
    """A job that has started. ``began`` is in seconds on the run's clock."""

    rule: str
    title: str
    began: float
    log: tuple[str, ...] = ()
    benchmark: str | None = None
    makes_files: bool = True

    def key(self, number: int) -> str:
        """What the job's time is remembered by: its benchmark path, or its number in this run."""
        return self.benchmark or f"job {number}"


@dataclass(frozen=True)
class Run:
    """How far a run is. ``planned`` counts the jobs of each rule; ``total`` follows Snakemake's own count.

    Rules that are made in a loop, ``train_a``, ``train_b``, count as one, ``train``: ``families`` says which.
    ``cores`` is how many jobs can run at once: here, or (``nodes``) on a cluster. ``failed`` holds what has failed and
    was not tried again.
    """

    began: float
    cores: int = 1
    nodes: bool = False
    planned: Mapping[str, int] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    total: int = 0
    done: int = 0
    running: Mapping[int, Job] = field(default_factory=dict)
    launched: Mapping[str, int] = field(default_factory=dict)
    started: frozenset[str] = frozenset()
    failed: tuple[str, ...] = ()
    finished: tuple[tuple[Took, float], ...] = ()
    known: Known = field(default_factory=dict)

    def plan(self, stats: Mapping[str, int]) -> Run:
        """The jobs that Snakemake says it will run, by rule, with their ``total``."""
        found = {rule: count for rule, count in stats.items() if rule != "total"}
        families = {rule: family(rule, found) for rule in found}
        planned: dict[str, int] = {}
        for rule, count in found.items():
            planned[families[rule]] = planned.get(families[rule], 0) + count
        return replace(self, planned=planned, families=families, total=stats.get("total", sum(planned.values())))

    def learn(self, known: Known) -> Run:
        """Times of jobs, which give way to those that are known already."""
        return replace(self, known=together(known, self.known))

    def start(self, number: int, job: Job) -> Run:
        """A job starts, or starts again after a failure."""
        again = job.key(number) in self.started
        launched = self.launched if again else {**self.launched, job.rule: self.launched.get(job.rule, 0) + 1}
        running = {**self.running, number: job}
        failed = tuple(title for title in self.failed if title != job.title)
        started = self.started | {job.key(number)}
        return replace(self, running=running, launched=launched, started=started, failed=failed)

    def finish(self, number: int, now: float) -> Run:
        """A job ends well; what it took tells of others of its rule where nothing was known before."""
        job = self.running.get(number)
        if job is None:
            return replace(self, done=self.done + 1)
        seconds, before = now - job.began, self.before(number)
        finished = (*self.finished, (before, seconds)) if before else self.finished
        known = self.known
        if before is None:
            known = together(known, {job.rule: {job.key(number): Took(seconds, "this run")}})
        return replace(self, done=self.done + 1, running=_without(self.running, number), finished=finished, known=known)

    def fail(self, number: int) -> Run:
        """A job fails."""
        job = self.running.get(number)
        title = job.title if job else f"job {number}"
        return replace(self, running=_without(self.running, number), failed=(*self.failed, title))

    def before(self, number: int) -> Took | None:
        """What a running job took in an earlier run."""
        job = self.running[number]
        return self.known.get(job.rule, {}).get(job.key(number))

    def left(self, now: float) -> Estimate | None:
        """How long the run will still take."""
        waiting = {rule: max(count - self.launched.get(rule, 0), 0) for rule, count in self.planned.items()}
        running = [(self.before(number), now - job.began) for number, job in self.running.items() if job.makes_files]
        return remaining(waiting, running, self.known, self.started, self.cores, pace(self.finished))


def family(rule: str, rules: Iterable[str]) -> str:
    """The first word of a rule's name where several ``rules`` begin with it, otherwise the rule."""
    first, *rest = rule.split("_")
    alike = [other for other in rules if other.startswith(f"{first}_")]
    return first if rest and len(alike) > 1 else rule


def _without(running: Mapping[int, Job], number: int) -> dict[int, Job]:
    return {key: job for key, job in running.items() if key != number}
