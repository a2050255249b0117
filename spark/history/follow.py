"""The internal topic kept as a history: everything up to now (backfill), or on and on (follow).

Called by ``trimtab history backfill`` (again while `behind` says so) and ``follow``. Wires `topic_source`, `decode` and `once`. How far the
topic was read stands in a checkpoint, and each batch is put in place under its number, so that a sample is there once, wherever it was
interrupted. What a reporter sent twice has the same broker, incarnation and sequence, and is dropped if it is read within `REMEMBERED`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from cluster_model.errors import ExternalError
from spark.history.decode import SCHEMA, Form, decoder
from spark.history.once import put_once, query_of
from spark.history.sift import CODE, code, conditions, name_of
from spark.history.storage import Folder
from spark.history.topic_source import NAME, Options, topic_source
from spark.history.write import require_place
from spark.schemas import Rejected, Samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

REMEMBERED = "1 hour"  # by the time of reading: no time in a record makes it too old to be kept


@dataclass(frozen=True)
class TopicAt:
    """Where the topic is, and how its records are read."""

    bootstrap: str
    topic: str
    options: Options
    form: Form = "own"


@dataclass
class Kept:
    """What came of it so far."""

    batches: int = 0
    rows: int = 0
    rejected: dict[str, int] = field(default_factory=dict)

    def add(self, rows: int, rejected: Mapping[str, int]) -> None:
        self.batches += 1
        self.rows += rows
        for reason, number in rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + number


def records(spark: SparkSession, at: TopicAt) -> DataFrame:
    """A stream of the topic's records from its start on, each once."""
    spark.dataSource.register(topic_source(at.options))
    stream = spark.readStream.format(NAME).option("bootstrap", at.bootstrap).option("topic", at.topic).load()
    return once(stream) if at.form == "own" else stream


def once(stream: DataFrame) -> DataFrame:
    """Records without those that a reporter sent twice. One that is not our reporter's, and a problem, is always another."""
    odd = F.when(F.col("broker").isNull(), F.concat_ws(" ", "partition", "record_offset", "problem"))
    marked = stream.withColumn("odd", odd).withColumn("read", F.current_timestamp())
    return marked.withWatermark("read", REMEMBERED).dropDuplicatesWithinWatermark(["broker", "incarnation", "sequence", "odd"])


def keep(
    spark: SparkSession,
    at: TopicAt,
    cluster_id: str,
    out: str,
    checkpoint: str,
    every: str | None,
    kept: Kept,
    rejected: str | None = None,
    told: Callable[[int, Mapping[str, int]], None] = lambda rows, rejected: None,
) -> StreamingQuery:
    """Start to keep the topic's samples in `out`.

    Parameters
    ----------
    checkpoint
        Folder for the reading positions; who goes on with it goes on exactly there. One writer at a time.
    every
        Time between two batches, such as ``10 minutes``; None: read up to now, then end.
    kept
        Each batch is added to it.
    rejected
        Folder for what does not count, as Parquet; None: it is counted only.
    told
        Hears of each batch: samples, and reason -> what does not count.
    """
    require_place(Folder(spark, out))
    samples = records(spark, at).mapInArrow(decoder(at.form), SCHEMA)

    def batch(frame: DataFrame, number: int) -> None:
        rows, refused = put_batch(spark, frame, number, cluster_id, out, query_of(spark, checkpoint), rejected)
        kept.add(rows, refused)
        told(rows, refused)

    writer = samples.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint)
    trigger: dict[str, Any] = {"availableNow": True} if every is None else {"processingTime": every}
    return writer.trigger(**trigger).start()


def behind(query: StreamingQuery, target: Mapping[str, int]) -> bool:
    """Whether a query that was to read all and has ended left records before `target` (partition -> offset) for another one.

    Before pyspark 4.2, one that finds an interrupted batch finishes that and ends. A query that found nothing to do is not behind.
    """
    progress = query.lastProgress
    if progress is None:
        return False
    reached = json.loads(progress["sources"][0]["endOffset"])
    return any(reached.get(partition, 0) < offset for partition, offset in target.items())


def await_end(query: StreamingQuery) -> None:
    """Wait until the query ends.

    Raises
    ------
    ExternalError
        It failed: what was put in place stays, and who starts again goes on.
    """
    try:
        query.awaitTermination()
    except StreamingQueryException as e:
        raise ExternalError(f"the topic could not be kept: {_said(str(e))}", retriable=True) from e


def _said(text: str) -> str:
    """The line that says what happened: the last error of a Python worker, or Spark's own."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [line for line in lines if "Error: " in line and not line.startswith(("at ", "Traceback"))]
    return (errors or lines or ["no reason given"])[-1 if errors else 0]


def put_batch(
    spark: SparkSession, frame: DataFrame, number: int, cluster_id: str, out: str, query: str, rejected: str | None
) -> tuple[int, dict[str, int]]:
    """Write one batch, unless it is there; its samples, and reason -> what does not count."""
    clock = F.current_timestamp()
    judged = frame.withColumn("cluster_id", F.lit(cluster_id)).withColumn("date", F.to_date("time"))
    judged = judged.withColumn(CODE, code(clock))
    judged = judged.withColumn("reason", F.coalesce("problem", name_of(F.col(CODE), list(conditions(clock)))))
    judged = judged.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counted = {row[0]: row[1] for row in judged.groupBy("reason").count().collect()}
        rows = counted.pop(None, 0)
        put_once(spark, Samples(judged.where("reason is null")), out, query, number)
        if counted and rejected is not None:
            bad = Rejected(judged.where("reason is not null")).frame
            bad.write.mode("overwrite").option("compression", "zstd").parquet(f"{rejected}/batch={query}-{number}")
        return rows, counted
    finally:
        judged.unpersist()
