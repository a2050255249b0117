"""Finished days of a history kept as blocks, so that the calibration of tomorrow reads the samples of one day, not of months.

Used by the calibration job. A day's blocks are kept with a mark of the files that they were made from: where a file of the day is another,
or there is one more, the day is packed again. The day that is not over is never kept.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from cluster_model.errors import InputError, Problem
from spark.blocks import packed
from spark.history.storage import Folder
from spark.history.write import DAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

FORM = 1  # of what is kept; another where `spark.blocks.packed` gives other columns
MARK = "_of-"  # a file of this name and the day's mark stands in each day that is complete


@dataclass(frozen=True)
class Place:
    """Where blocks are kept (any URI that Spark takes), of which history, of which cluster (None: it has one), and as of which day: only
    days before it are finished."""

    folder: str
    history: str
    cluster_id: str | None
    today: date


def kept_rows(spark: SparkSession, judged: DataFrame, window_seconds: float, once: bool, place: Place) -> DataFrame:
    """What `spark.blocks.packed` makes of the samples, of finished days as it was kept; what is not yet, is kept now.

    Raises
    ------
    InputError
        The history is not split by day.
    ExternalError
        The storage says no.

    Notes
    -----
    Moves blocks of new days once, to put each day's together. One writer at a time.
    """
    history, folder = Folder(spark, place.history), Folder(spark, place.folder)
    days = {name: _mark(history.files(name)) for name in history.names() if name.startswith(DAY)}
    if not days:
        wanted = "expected a history by day (date=2026-11-20/…), which --blocks needs, found none"
        raise InputError(place.history, [Problem("", f"{wanted}; leave --blocks out")])
    form = sha256(f"{FORM}:{window_seconds:g}:{once}:{place.cluster_id}".encode()).hexdigest()[:12]
    finished = {name: mark for name, mark in days.items() if name.removeprefix(DAY) < place.today.isoformat()}
    there = {name for name, mark in finished.items() if folder.exists(f"{form}/{name}/{MARK}{mark}")}
    new = sorted(finished.keys() - there)
    log.info("%s has blocks of %d days; packing %d more days", place.folder, len(there), len(new))
    of_day = F.col("date").cast("string")
    if new:
        names = [name.removeprefix(DAY) for name in new]
        rows = packed(judged.where(of_day.isin(names)), window_seconds, by_moments=once, by_day=True)
        _keep(rows, folder, form, {name: finished[name] for name in new})
    for gone in set(folder.names(form)) - days.keys():
        folder.delete(f"{form}/{gone}")
    others = [name.removeprefix(DAY) for name in finished]
    today = packed(judged.where(~of_day.isin(others)), window_seconds, by_moments=once)
    if not finished:
        return today
    kept = spark.read.schema(today.schema).parquet(*[f"{folder.uri}/{form}/{name}" for name in sorted(finished)])
    return kept.unionByName(today)


def _mark(files: list[tuple[str, int, int]]) -> str:
    """One text for the files of a day: their names, sizes and times of change."""
    return sha256(repr(sorted(files)).encode()).hexdigest()[:16]


def _keep(rows: DataFrame, folder: Folder, form: str, marks: dict[str, str]) -> None:
    """Write the days beside their places, then move each there, its mark last."""
    staging = f"{form}/_writing-{token_hex(4)}"
    try:
        rows.repartition("date").write.partitionBy("date").option("compression", "zstd").parquet(f"{folder.uri}/{staging}")
        written = set(folder.names(staging))
        for name, mark in marks.items():
            folder.delete(f"{form}/{name}")
            if name in written:
                folder.move(f"{staging}/{name}", f"{form}/{name}")
            else:
                folder.make(f"{form}/{name}")  # a day without a row
            folder.touch(f"{form}/{name}/{MARK}{mark}")
    finally:
        folder.delete(staging)
