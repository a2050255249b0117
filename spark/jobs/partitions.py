"""Loads of partitions, what they will be, and the topics that do not stand still: written, or counted, without leaving Spark.

Called by `spark.jobs.calibrate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from goals.calibration import TopicCalibration
from spark.methods import burst
from spark.methods.forecast import MOST_WEEKS, PATTERNS, dense, forecast
from spark.report.evidence import ForecastEvidence
from spark.schemas import PartitionLoads, PartitionWindows
from spark.storage import replaced

HOUR, DAY_HOURS = 3_600, 24
LOOKED_AT = (MOST_WEEKS + 1) * 7 * DAY_HOURS  # hours before the end
AT_ONCE = 500  # series in one group: 500 x 9 weeks of hours are 6 MB
MOST_TOPICS = 1_000
WHOLE = -1  # in place of a partition: the whole topic
NOTABLE = 1.5  # 95th percentile over the mean
FORECASTS = (
    "cluster_id string, topic string, partition int, resource string, forecast double, pattern string, growth double, "
    "method int, chosen double, last double"
)
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Partitions:
    """How many there are, the notable topics, and how forecasts did on days held out."""

    count: int
    topics: list[TopicCalibration]
    forecasts: tuple[ForecastEvidence, ...]


def partition_loads(windows: PartitionWindows, end_ms: int, out: str | None, tell: Tell) -> Partitions:
    """Write `PartitionLoads` to `out`, where it is not None; what is left of them.

    Parameters
    ----------
    windows
        Of all replicas.
    end_ms
        Time of the last sample, Unix ms: forecasts go on from its hour.
    """
    last = end_ms // 1000 // HOUR
    hours = hourly(windows, last).persist(StorageLevel.DISK_ONLY)
    try:
        keys = ["cluster_id", "topic", "partition", "resource"]
        coming = forecasts(hours, last).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            found = burst.leader_loads(windows).join(coming.select(*keys, "forecast", "pattern"), keys, "left")
            loads = PartitionLoads(found).frame.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                row = loads.agg(F.countDistinct("topic", "partition"), F.count("forecast")).first()
                assert row is not None
                tell(f"loads of {row[0]:,} partitions, {row[1]:,} loads with a forecast")
                judged = _judged(coming)
                topics = notable_topics(windows, hours, last)
                tell(f"{len(topics):,} topics do not stand still")
                if out is not None:  # last, so that little can still go wrong before the file that names it is there
                    with replaced(loads.sparkSession, out) as unfinished:
                        loads.write.parquet(unfinished)
                    tell(f"loads written to {out}")
                return Partitions(int(row[0]), topics, judged)
            finally:
                loads.unpersist()
        finally:
            coming.unpersist()
    finally:
        hours.unpersist()


def hourly(windows: PartitionWindows, last: int) -> DataFrame:
    """Mean of each partition's leader in each of the last hours, `last` (since the Unix epoch) among them."""
    hour = F.expr(f"unix_seconds(start) div {HOUR}")
    led = windows.frame.where("role = 'leader'").withColumn("hour", hour).where(F.col("hour") > last - LOOKED_AT)
    return led.groupBy("cluster_id", "topic", "partition", "resource", "hour").agg(F.avg("mean").alias("mean"))


def forecasts(hours: DataFrame, last: int) -> DataFrame:
    """Rows of `FORECASTS` of every series in `hours`: ``cluster_id``, ``topic``, ``partition``, ``resource``, ``hour``, ``mean``."""
    series = hours.select("topic", "partition", "resource").distinct().count()
    first = hours.agg(F.min("hour")).first()
    begin = last if first is None or first[0] is None else int(first[0])
    buckets = max(1, -(-series // AT_ONCE))
    bucket = F.pmod(F.xxhash64("topic", "partition", "resource"), F.lit(buckets)).alias("bucket")
    grouped = hours.select("*", bucket).groupBy("bucket")
    return grouped.applyInArrow(forecaster(begin, last + 1), FORECASTS)


def forecaster(first: int, last: int) -> Callable[[pa.Table], pa.Table]:
    """`forecast_many` over the hours from `first` on and before `last`, as ``applyInArrow`` takes it."""

    def of_group(group: pa.Table) -> pa.Table:
        return forecast_many(group, first, last)

    return of_group


def forecast_many(group: pa.Table, first: int, last: int) -> pa.Table:
    """Forecast of every series in a group of hours, as rows of `FORECASTS`.

    Hours in which nothing was measured are gaps. The forecast is the largest hour expected in the coming day.
    """
    names = ["cluster_id", "topic", "partition", "resource"]
    table = group.select([*names, "hour", "mean"])
    keys = table.group_by(names).aggregate([]).select(names)
    rows = table.join(keys.append_column("series", pa.array(np.arange(len(keys)))), names)
    values = dense(
        rows["series"].to_numpy(), rows["hour"].to_numpy(), rows["mean"].to_numpy().astype(np.float64), len(keys), first, last
    )
    found = forecast(values, DAY_HOURS)
    known = np.isfinite(found.peak)
    chosen, simple = found.chosen_error, found.error[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nansum(values, axis=1) / np.isfinite(values).sum(axis=1)
        scaled = {"chosen": chosen / mean, "last": simple / mean}
    columns = {
        "forecast": pa.array(found.peak, mask=~known),
        "pattern": pa.array([PATTERNS[code] for code in found.pattern], pa.string(), mask=~known),
        "growth": pa.array(found.growth),
        "method": pa.array(found.method.astype(np.int32)),
        **{name: pa.array(value, mask=~np.isfinite(value)) for name, value in scaled.items()},
    }
    for name, column in columns.items():
        keys = keys.append_column(name, column)
    return keys


def notable_topics(windows: PartitionWindows, hours: DataFrame, last: int) -> list[TopicCalibration]:
    """The topics whose load stands still least: those that swing, grow or burst most, weighed by what they carry."""
    whole = F.lit(WHOLE).alias("partition")
    of_topics = hours.groupBy("cluster_id", "topic", "resource", "hour").agg(F.sum("mean").alias("mean"))
    coming = forecasts(of_topics.select("cluster_id", "topic", whole, "resource", "hour", "mean"), last)
    bursts = burst.topic_bursts(burst.topic_loads(windows))
    joined = bursts.join(coming.drop("partition", "cluster_id"), ["topic", "resource"], "left")
    moving = joined.where((F.col("burst") >= NOTABLE) | F.col("pattern").isin("growing", "bursty"))
    total = bursts.groupBy("resource").agg(F.sum("mean").alias("total"))
    weighed = moving.join(F.broadcast(total), "resource").withColumn(
        "rank", F.try_divide("mean", "total") * (F.col("burst") - 1 + F.abs(F.coalesce("growth", F.lit(0.0))))
    )
    kept = weighed.orderBy(F.desc("rank"), "topic", "resource").limit(MOST_TOPICS).collect()
    return [
        TopicCalibration(
            topic=row["topic"],
            resource=row["resource"],
            burst=round(row["burst"], 4),
            pattern=row["pattern"] or "steady",
            growth=round(row["growth"] or 0.0, 4),
        )
        for row in kept
    ]


def _judged(coming: DataFrame) -> tuple[ForecastEvidence, ...]:
    """Median error of the forecasts on days held out, and of the last value, by resource."""
    held = coming.where("chosen is not null and last is not null").groupBy("resource")
    rows = held.agg(
        F.count("*").alias("partitions"), F.median("chosen").alias("chosen"), F.median("last").alias("last")
    ).orderBy("resource").collect()  # fmt: skip
    return tuple(ForecastEvidence(row["resource"], row["partitions"], row["chosen"], row["last"]) for row in rows)
