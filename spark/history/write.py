"""Samples as a history on disk (docs/history.md), whole days at a time: all of them appear, or none does.

Called by the importers and by the backfill. Everything is written into a hidden folder beside the days first, which readers
pass over; a mark says that it is complete; then the days are moved to their places. What was interrupted after the mark is
finished by the next writer, what was interrupted before it never counts.
"""

from __future__ import annotations

import logging
from secrets import token_hex
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from cluster_model.errors import InputError, Problem
from spark.history.storage import Folder
from spark.schemas import Samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

STAGING = "_writing-"
COMPLETE = "_COMPLETE"
DAY = "date="
SLICES = 8  # of a day, so that one large day is no single task's
MOST_ROWS = 5_000_000  # a file


def parquet_rows(frame: DataFrame) -> DataFrame:
    """Rows in the order of the history's files: each day in a few slices of series, sorted so that columns compress."""
    slices = F.pmod(F.xxhash64("metric", "topic", "partition"), F.lit(SLICES))
    return frame.repartition("date", slices).sortWithinPartitions("date", "metric", "topic", "partition", "time")


def require_place(spark: SparkSession, out: str) -> None:
    """Finish what an interrupted writer had complete; told before hours of work.

    Raises
    ------
    InputError
        `out` holds something that is no history, or a day twice: one that was written before and not put in place, and another's.
    """
    folder = Folder(spark, out)
    for name in folder.names():
        if name.startswith(STAGING) and folder.exists(f"{name}/{COMPLETE}"):
            twice = [day for day in folder.names(name) if day.startswith(DAY) and folder.exists(day)]
            if twice:
                found = f"{twice[0]} is there twice, also in {name}, which an interrupted writer left"
                raise InputError(out, [Problem("", f"expected each day once, found that {found}; delete one of the two")])
            log.info("%s: finishing what was written before and not put in place", out)
            _publish(folder, name)
    strange = [name for name in folder.names() if not name.startswith((DAY, "_", "."))]
    if strange:
        raise InputError(out, [Problem("", f"expected a new folder or a history, found {strange[0]} in it; name another folder")])


def write_samples(spark: SparkSession, samples: Samples, out: str) -> list[str]:
    """Write all samples; the days that were written, such as ``2026-11-20``.

    Raises
    ------
    InputError
        Days of the samples are in `out` already: nothing is written then. (Two histories of one day may hold the same samples.)
    ExternalError
        The storage says no.

    Notes
    -----
    Moves all rows once, to put each day's together. One writer at a time.
    """
    folder = Folder(spark, out)
    staging = f"{STAGING}{token_hex(4)}"
    folder.make()
    try:
        rows = parquet_rows(samples.frame).write.partitionBy("date").option("compression", "zstd")
        rows.option("maxRecordsPerFile", MOST_ROWS).parquet(f"{folder.uri}/{staging}")
        days = [name for name in folder.names(staging) if name.startswith(DAY)]
        taken = [name for name in folder.names() if name in days]
        if taken:
            found = f"found samples of {len(taken)} of these days already, {taken[0].removeprefix(DAY)} among them"
            raise InputError(out, [Problem("", f"expected a folder without these days, {found}; import other days, or into a new folder")])
        folder.touch(f"{staging}/{COMPLETE}")
    except BaseException:
        folder.delete(staging)
        raise
    _publish(folder, staging)
    return [name.removeprefix(DAY) for name in days]


def _publish(folder: Folder, staging: str) -> None:
    """Move each day to its place; may be called again after it was interrupted."""
    for name in folder.names(staging):
        if name.startswith(DAY):
            folder.move(f"{staging}/{name}", name)
    folder.delete(staging)
