"""One pending look at the schedule at a time.

Snakemake (seen in 9.27) looks for jobs to start whenever one has ended, and each look plans another a second later,
which plans the next: after k jobs it looks k times a second for as long as jobs are waiting. A hundred jobs in, that
takes a third of a processor, and more the longer a workflow is.
"""

from __future__ import annotations

import threading
from typing import Any


def one_look_at_a_time(scheduler: Any = None) -> None:
    """Make a class of schedulers, Snakemake's own, plan a look only where none is pending that comes as soon.

    What is pending does not keep a finished run from ending.
    """
    if scheduler is None:
        from snakemake.scheduling.job_scheduler import JobScheduler

        scheduler = JobScheduler

    def plan(self: Any, delay: float) -> None:
        pending = self.__dict__.setdefault("_pending_looks", set())
        if any(other <= delay for other in tuple(pending)):
            return

        def look() -> None:
            # Before the look itself, which may plan the next.
            pending.discard(delay)
            self._open_jobs.release()

        pending.add(delay)
        timer = threading.Timer(delay, look)
        timer.daemon = True
        timer.start()

    # Spelt as Snakemake does.
    scheduler._schedule_reevalutation = plan
