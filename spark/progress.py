"""How far Spark has come with what it is doing, told to whoever draws it.

Called by commands while a job runs. A thread asks Spark's own tracker twice a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 0.5


@contextmanager
def watched(spark: SparkSession, shown: Callable[[int, int], None]) -> Iterator[None]:
    """While the block runs, `shown` hears of the stages that are running: tasks done and tasks in all."""
    tracker = spark.sparkContext.statusTracker()
    ended = Event()

    def follow() -> None:
        while not ended.wait(INTERVAL):
            stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
            if stages:
                shown(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))

    thread = Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
