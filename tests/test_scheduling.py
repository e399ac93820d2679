from __future__ import annotations

import threading
import time

from snakemake.scheduling.job_scheduler import JobScheduler

from snakemake_logger_plugin_progress.scheduling import one_look_at_a_time

DELAY = 0.05


class Scheduler:
    """What a look at the schedule releases."""

    def __init__(self) -> None:
        self._open_jobs = threading.Semaphore(0)
        self.looks = 0

    def _schedule_reevalutation(self, delay: float) -> None:
        raise AssertionError("replaced")

    def run(self, ended: int) -> int:
        """The looks within four delays, each of which plans the next, where so many jobs have ended."""
        for _ in range(ended):
            self._schedule_reevalutation(DELAY)
        until = time.monotonic() + 4 * DELAY
        while self._open_jobs.acquire(timeout=max(0.0, until - time.monotonic())):
            self.looks += 1
            self._schedule_reevalutation(DELAY)
        return self.looks


def test_looks_go_on_and_do_not_multiply_with_the_jobs_that_ended() -> None:
    one_look_at_a_time(Scheduler)
    assert 1 <= Scheduler().run(ended=1) <= 4
    assert 1 <= Scheduler().run(ended=50) <= 4


def test_a_sooner_look_is_planned_beside_a_later_one() -> None:
    one_look_at_a_time(Scheduler)
    scheduler = Scheduler()
    scheduler._schedule_reevalutation(60.0)
    scheduler._schedule_reevalutation(DELAY)
    assert scheduler._open_jobs.acquire(timeout=5)
    # And what is pending is no reason to wait at the end.
    assert all(thread.daemon for thread in threading.enumerate() if isinstance(thread, threading.Timer))


def test_snakemake_has_what_is_replaced() -> None:
    assert callable(JobScheduler._schedule_reevalutation)
