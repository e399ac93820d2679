"""How long the rest of a run will take, from what each job took before."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

Source = Literal["this run", "earlier runs", "recorded times"]
RANK: Mapping[Source, int] = {"this run": 0, "earlier runs": 1, "recorded times": 2}

PACE_LIMITS = (0.2, 5.0)
"""A run is taken to be at most this much faster or slower than the times it is compared with."""

COVERED = 0.5
"""The share of the remaining jobs whose time has to be known before an estimate is given."""


@dataclass(frozen=True)
class Took:
    """What one job took, in seconds, and how that is known."""

    seconds: float
    source: Source


Known = Mapping[str, Mapping[str, Took]]
"""By rule, then by the job's benchmark path."""


@dataclass(frozen=True)
class Estimate:
    """Seconds still to go, and the least certain source among the times that it rests on."""

    seconds: float
    source: Source


def remaining(
    waiting: Mapping[str, int],
    running: Iterable[tuple[Took | None, float]],
    known: Known,
    started: frozenset[str],
    cores: int,
    pace: float = 1.0,
) -> Estimate | None:
    """max(W / c, l) * pace, with W the seconds of work left, l the longest single job left and c the cores.

    ``waiting`` counts the jobs of each rule that have not started; ``running`` holds, for each running job, what it
    took before (None where that is not known) and how long it has run. Which jobs of a rule wait is not known, so each
    counts as the mean over those that have not ``started``; where all known ones wait this sum is exact. ``pace`` is
    this run's time over the known time for the jobs already finished. None where too few of the jobs left are known.
    """
    work, longest, counted, total = 0.0, 0.0, 0, 0
    sources: set[Source] = set()
    for rule, count in waiting.items():
        total += count
        times = known.get(rule, {})
        pool = [took for path, took in times.items() if path not in started] or list(times.values())
        if count and pool:
            mean = fmean(took.seconds for took in pool)
            work += count * mean
            longest = max(longest, max(took.seconds for took in pool) if count >= len(pool) else mean)
            counted += count
            sources.update(took.source for took in pool)
    for took, elapsed in running:
        total += 1
        if took is not None:
            left = max(took.seconds - elapsed / pace, 0.0)
            work, longest, counted = work + left, max(longest, left), counted + 1
            sources.add(took.source)
    if not sources or counted < COVERED * total:
        return None
    return Estimate(max(work / max(cores, 1), longest) * pace, max(sources, key=RANK.__getitem__))


def pace(finished: Iterable[tuple[Took, float]]) -> float:
    """This run's seconds over the known seconds, for the finished jobs whose time was known before; 1 without any."""
    pairs = [(took.seconds, seconds) for took, seconds in finished if took.source != "this run"]
    before, now = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    low, high = PACE_LIMITS
    return min(max(now / before, low), high) if before > 0 else 1.0


def folder_of_rules(rule: str, benchmark: str) -> Path | None:
    """The folder that holds one folder for each rule: what precedes the rule's name in its benchmark path."""
    parts = Path(benchmark).parts
    return Path(*parts[: parts.index(rule)]) if rule in parts[:-1] else None


def earlier_runs(folder: Path) -> dict[str, dict[str, Took]]:
    """The times in the benchmark files of a folder, whose subfolders are named after the rules."""
    known: dict[str, dict[str, Took]] = {}
    for path in sorted(folder.glob("*/**/*.tsv")):
        seconds = benchmark_seconds(path)
        if seconds is not None:
            known.setdefault(path.relative_to(folder).parts[0], {})[str(path)] = Took(seconds, "earlier runs")
    return known


def earlier_run(rule: str, benchmark: Path) -> dict[str, dict[str, Took]]:
    """The time in the benchmark file of a single job."""
    seconds = benchmark_seconds(benchmark)
    return {} if seconds is None else {rule: {str(benchmark): Took(seconds, "earlier runs")}}


def benchmark_seconds(path: Path) -> float | None:
    """The mean of the column ``s`` of a benchmark file; None where it cannot be read (it may be being written)."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return fmean(float(row["s"]) for row in csv.DictReader(file, delimiter="\t"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def recorded_times(path: Path, folder: Path) -> dict[str, dict[str, Took]]:
    """The times below ``folder`` in a file with the columns ``rule``, ``benchmark`` (a path) and ``seconds``."""
    known: dict[str, dict[str, Took]] = {}
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if Path(row["benchmark"]).is_relative_to(folder / row["rule"]):
                    known.setdefault(row["rule"], {})[row["benchmark"]] = Took(float(row["seconds"]), "recorded times")
    return known


def together(first: Known, second: Known) -> dict[str, dict[str, Took]]:
    """Both, the second winning where they speak of the same job."""
    return {rule: {**first.get(rule, {}), **second.get(rule, {})} for rule in (*first, *second)}
