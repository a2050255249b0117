"""How far Spark has come with what it is doing, told to whoever draws it.

Called by commands and by the backtest while a job runs. A thread asks twice a second, Spark's own tracker for instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 0.5


Shown = Callable[[int, int], None]
"""Hears how much is done, and of how much."""


def watched(spark: SparkSession, shown: Shown | None) -> AbstractContextManager[None]:
    """While the block runs, `shown` hears of the stages that are running: tasks done and tasks in all."""
    tracker = spark.sparkContext.statusTracker()

    def tasks() -> tuple[int, int] | None:
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
        return (sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)) if stages else None

    return followed(tasks, shown)


@contextmanager
def followed(ask: Callable[[], tuple[int, int] | None], shown: Shown | None) -> Iterator[None]:
    """While the block runs, `shown` hears what `ask` answers, twice a second and at the end; without it nobody asks."""
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
