"""Samples as a history on disk (docs/history.md), whole days at a time: all of them appear, or none does.

Called by the importers and by the backfill; with Spark, or without it where a folder is here. Everything is written into a hidden
folder beside the days first, which readers pass over; a mark says that it is complete; then the days are moved to their places. What
was interrupted after the mark is finished by the next writer, what was interrupted before it never counts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from cluster_model.errors import InputError, Problem
from spark.history.local import LocalFolder
from spark.history.storage import Folder
from spark.schemas import Samples

if TYPE_CHECKING:
    import pyarrow as pa
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


def require_place(folder: Folder | LocalFolder) -> None:
    """Finish what an interrupted writer had complete; told before hours of work.

    Raises
    ------
    InputError
        The folder holds something that is no history, or a day twice: one that was written before and not put in place, and another's.
    """
    for name in folder.names():
        if name.startswith(STAGING) and folder.exists(f"{name}/{COMPLETE}"):
            twice = [day for day in folder.names(name) if day.startswith(DAY) and folder.exists(day)]
            if twice:
                found = f"{twice[0]} is there twice, also in {name}, which an interrupted writer left"
                raise InputError(folder.uri, [Problem("", f"expected each day once, found that {found}; delete one of the two")])
            log.info("%s: finishing what was written before and not put in place", folder.uri)
            _publish(folder, name)
    strange = [name for name in folder.names() if not name.startswith((DAY, "_", "."))]
    if strange:
        raise InputError(folder.uri, [Problem("", f"expected a new folder or a history, found {strange[0]} in it; name another folder")])


def require_days(folder: Folder | LocalFolder, days: Iterable[str]) -> None:
    """Refuse days (such as ``2026-11-20``) that the folder has already.

    Raises
    ------
    InputError
        It has: two histories of one day may hold the same samples.
    """
    there = set(folder.names())
    taken = [day for day in days if f"{DAY}{day}" in there]
    if taken:
        found = f"found samples of {len(taken)} of these days already, {taken[0]} among them"
        problem = f"expected a folder without these days, {found}; import other days, or into a new folder"
        raise InputError(folder.uri, [Problem("", problem)])


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
    with _staged(folder) as staging:
        rows = parquet_rows(samples.frame).write.partitionBy("date").option("compression", "zstd")
        rows.option("maxRecordsPerFile", MOST_ROWS).parquet(f"{folder.uri}/{staging}")
        return _days(folder, staging)


def write_tables(days: Iterable[tuple[str, pa.Table]], folder: LocalFolder) -> list[str]:
    """The same of a table for each day, without Spark; rows in the order of the files, with the columns of `Samples` but the date."""
    import pyarrow.parquet as pq

    with _staged(folder) as staging:
        folder.make(staging)
        for day, table in days:
            place = f"{staging}/{DAY}{day}"
            folder.make(place)
            for number, begin in enumerate(range(0, table.num_rows, MOST_ROWS)):
                file = folder.path / place / f"part-{number:05d}.parquet"
                pq.write_table(table.slice(begin, MOST_ROWS), file, compression="zstd", store_schema=False)
        return _days(folder, staging)


@contextmanager
def _staged(folder: Folder | LocalFolder) -> Iterator[str]:
    """A hidden folder, whose days are put in place at the end; nothing is left of it where writing fails."""
    staging = f"{STAGING}{token_hex(4)}"
    folder.make()
    try:
        yield staging
        require_days(folder, _days(folder, staging))
        folder.touch(f"{staging}/{COMPLETE}")
    except BaseException:
        folder.delete(staging)
        raise
    _publish(folder, staging)


def _days(folder: Folder | LocalFolder, staging: str) -> list[str]:
    return [name.removeprefix(DAY) for name in folder.names(staging) if name.startswith(DAY)]


def _publish(folder: Folder | LocalFolder, staging: str) -> None:
    """Move each day to its place; may be called again after it was interrupted."""
    for name in folder.names(staging):
        if name.startswith(DAY):
            folder.move(f"{staging}/{name}", name)
    folder.delete(staging)
