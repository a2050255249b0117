"""Synthetic histories with a known truth: Arrow tables for tests, Parquet folders of any size for `benchmarks.histories`.

A folder is what the service would have written: one file a million rows and day, sorted by metric, topic and partition
(docs/history.md); rows of a wrong clock lie in the folder of the day that they claim. Memory does not grow with the rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.histories.rows import Piece, pieces, rows_of, rows_per_step, table
from tests.histories.truth import DAY, CpuTruth, Truth, World, drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.schemas import Samples

__all__ = ["CpuTruth", "History", "Truth", "World", "drawn", "samples", "synthetic", "write"]

FILE_ROWS = 1_000_000
ROW_GROUP = 250_000
EPOCH = date(1970, 1, 1)
DICTIONARIES = ["cluster_id", "broker", "topic", "partition", "metric", "time"]


@dataclass(frozen=True)
class History:
    """A whole history in memory: the cluster, its samples as Arrow (docs/history.md), and how many were damaged how."""

    world: World
    table: pa.Table
    damaged: dict[str, int]


def synthetic(truth: Truth) -> History:
    """All samples of a truth at once, for some millions of rows."""
    world = drawn(truth)
    counts: Counter[str] = Counter()
    tables = []
    for piece in pieces(world, FILE_ROWS):
        rows = rows_of(world, piece)
        counts.update(rows.damaged)
        tables.append(table(rows, world))
    return History(world, pa.concat_tables(tables), dict(counts))


def samples(spark: SparkSession, history: History) -> Samples:
    """The history as the dataset that Spark's steps take."""
    from pyspark.sql import functions as F

    from spark.schemas import Samples

    frame = spark.createDataFrame(history.table)
    return Samples(frame.withColumn("date", F.to_date("time")))


def write(truth: Truth, out: Path, workers: int = 1) -> Counter[str]:
    """Write a history below `out`; rows by day and damage, ``rows`` among them."""
    world = drawn(truth)
    counts: Counter[str] = Counter()
    for found in _each(truth, list(pieces(world, FILE_ROWS)), out, workers):
        counts.update(found)
    (out / "_truth.json").write_text(json.dumps(asdict(truth)) + "\n")  # readers pass over names with an underscore
    return counts


def _each(truth: Truth, work: list[Piece], out: Path, workers: int) -> Iterator[dict[str, int]]:
    if workers == 1:
        for piece in work:
            yield write_piece(truth, piece, out)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(write_piece, *zip(*((truth, piece, out) for piece in work), strict=True), chunksize=1)


def write_piece(truth: Truth, piece: Piece, out: Path) -> dict[str, int]:
    """The files of one piece, one a day that its rows claim to be of."""
    world = _drawn(truth)
    rows = rows_of(world, piece)
    days = rows.time // (DAY * 1_000_000)
    for day in np.unique(days):
        folder = out / f"date={EPOCH + timedelta(days=int(day))}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"part-{piece.number:010}.parquet"
        unfinished = folder / f".{path.name}.tmp"
        found = table(rows.take(days == day), world, plain=False)
        pq.write_table(
            found, unfinished, row_group_size=ROW_GROUP, compression="zstd", store_schema=False, use_dictionary=DICTIONARIES
        )
        unfinished.rename(path)
    return {"rows": len(rows.time), **rows.damaged}


@cache
def _drawn(truth: Truth) -> World:
    return drawn(truth)


def spanning(truth: Truth, count: int) -> Truth:
    """The same truth over as many intervals as give about so many rows."""
    per_step = rows_per_step(drawn(truth)) * (1 - truth.missing)
    return replace(truth, span=max(1, round(count / per_step)) * truth.interval)
