"""How far Spark has come with what it is doing, told to the code that draws it.

Called by commands and by the backtest while a job runs. A thread asks twice a second, Spark's own tracker for instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

INTERVAL = 0.5


Shown = Callable[[int, int], None]
"""Hears how much is done, and of how much."""


PARTS = 100  # of a job, that are told


def watched(spark: SparkSession, shown: Shown | None, jobs: int) -> AbstractContextManager[None]:
    """While the block runs, `shown` hears how far the whole of it is, in hundredths of a job, of the `jobs` that it takes or so.

    It never goes back, and its end is told when the block ends.
    """
    tracker = spark.sparkContext.statusTracker()
    before = len(_ended(tracker))

    def ask() -> tuple[int, int] | None:
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
        running = sum(s.numCompletedTasks for s in stages) / max(sum(s.numTasks for s in stages), 1)
        return far(len(_ended(tracker)) - before, running, jobs)

    return followed(_rising(ask), shown)


def far(ended: int, running: float, jobs: int) -> tuple[int, int]:
    """Done and whole, in hundredths of a job; `running` is the share of the one that runs. Short of the end while one may run."""
    whole = PARTS * max(jobs, ended + 1)
    return min(round(PARTS * (ended + min(running, 1.0))), whole - 1), whole


def _rising(ask: Callable[[], tuple[int, int] | None]) -> Callable[[], tuple[int, int] | None]:
    """The same, never less than before: a stage that starts has nothing done."""
    most = 0.0

    def rising() -> tuple[int, int] | None:
        nonlocal most
        answer = ask()
        if answer is None:
            return None
        most = max(most, answer[0] / answer[1])
        return round(most * answer[1]), answer[1]

    return rising


def _ended(tracker: StatusTracker) -> list[int]:
    return [job for job in tracker.getJobIdsForGroup(None) if (info := tracker.getJobInfo(job)) is not None and info.status != "RUNNING"]


@contextmanager
def followed(ask: Callable[[], tuple[int, int] | None], shown: Shown | None) -> Iterator[None]:
    """While the block runs, `shown` hears what `ask` answers, twice a second and at the end; without it Spark is not asked."""
    if shown is None:
        yield
        return
    ended = Event()

    def follow() -> None:
        last = False
        while not last:
            last = ended.wait(INTERVAL)
            if (answer := ask()) is not None:
                shown(*answer)

    thread = Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
