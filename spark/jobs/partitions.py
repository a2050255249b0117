"""Loads of partitions, what they will be, and the topics that do not stand still: written, or counted, without leaving Spark.

Called by `spark.jobs.calibrate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
KEYS = ["cluster_id", "topic", "partition", "resource"]
FORECASTS = (
    "cluster_id string, topic string, partition int, resource string, forecast double, pattern string, growth double, "
    "method int, chosen double, last double"
)
FOUND = (
    "cluster_id string, topic string, partition int, resource string, mean double, p95 double, last double, forecast double, "
    "pattern string, growth double, chosen double, last_error double, first int"
)
COLUMNS = [column.split(" ")[0] for column in FOUND.split(", ")]
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

    Notes
    -----
    Four jobs: what windows say of each series; forecasts, and what is counted of them; topics; the file.
    """
    last = end_ms // 1000 // HOUR
    rows = series(windows, last).persist(StorageLevel.DISK_ONLY)
    try:
        loads = forecasts(rows, last).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            judged = F.col("chosen") + F.col("last_error")  # null where not both are known
            counts = loads.groupBy((F.col("partition") == WHOLE).alias("whole"), "resource").agg(
                F.sum("first").alias("partitions"), F.count("forecast").alias("forecasts"), F.sum("mean").alias("mean"),
                F.count(judged).alias("judged"), F.median(F.when(judged.isNotNull(), F.col("chosen"))).alias("chosen"),
                F.median(F.when(judged.isNotNull(), F.col("last_error"))).alias("last"),
            ).collect()  # fmt: skip
            each = sorted((row for row in counts if not row["whole"]), key=lambda row: str(row["resource"]))
            number = sum(row["partitions"] for row in each)
            tell(f"loads of {number:,} partitions, {sum(row['forecasts'] for row in each):,} loads with a forecast")
            evidence = tuple(
                ForecastEvidence(row["resource"], row["judged"], row["chosen"], row["last"]) for row in each if row["judged"]
            )
            topics = notable_topics(loads, {row["resource"]: row["mean"] for row in counts if row["whole"]})
            tell(f"{len(topics):,} topics burst, grow or follow the day")
            if out is not None:  # last, so that little can still go wrong before the file that names it is there
                with replaced(loads.sparkSession, out) as unfinished:
                    PartitionLoads(loads.where(F.col("partition") != WHOLE)).frame.write.parquet(unfinished)
                tell(f"loads written to {out}")
            return Partitions(number, topics, evidence)
        finally:
            loads.unpersist()
    finally:
        rows.unpersist()


def series(windows: PartitionWindows, last: int) -> DataFrame:
    """Of each partition's leader and of each topic (its partition is `WHOLE`), by resource: a row with `mean`, `p95` and `last` over all
    windows, whose `hour` is null, and a row with the `mean` of each of the last hours.

    `last` is the newest hour, since the Unix epoch.
    """
    hours = hourly(windows, last)
    of_topics = hours.groupBy("cluster_id", "topic", "resource", "hour").agg(F.sum("mean").alias("mean"))
    bursts = burst.topic_bursts(burst.topic_loads(windows))
    parts = [
        burst.leader_loads(windows), bursts.withColumn("partition", F.lit(WHOLE)),
        hours, of_topics.withColumn("partition", F.lit(WHOLE)),
    ]  # fmt: skip
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def hourly(windows: PartitionWindows, last: int) -> DataFrame:
    """Mean of each partition's leader in each of the last hours, `last` (since the Unix epoch) among them."""
    hour = F.expr(f"unix_seconds(start) div {HOUR}")
    led = windows.frame.where("role = 'leader'").withColumn("hour", hour).where(F.col("hour") > last - LOOKED_AT)
    return led.groupBy("cluster_id", "topic", "partition", "resource", "hour").agg(F.avg("mean").alias("mean"))


def forecasts(rows: DataFrame, last: int) -> DataFrame:
    """Rows of `FOUND`, one for each of the `series`."""
    about = rows.agg(F.min("hour").alias("first"), F.count_if(F.col("hour").isNull()).alias("series")).first()
    first, number = (last, 0) if about is None or about["first"] is None else (int(about["first"]), int(about["series"]))
    buckets = max(1, -(-number // AT_ONCE))
    bucket = F.pmod(F.xxhash64("topic", "partition"), F.lit(buckets)).alias("bucket")
    return rows.select("*", bucket).groupBy("bucket").applyInArrow(forecaster(first, last + 1), FOUND)


def forecaster(first: int, last: int) -> Callable[[pa.Table], pa.Table]:
    """`with_forecasts` of the hours from `first` on and before `last`, as ``applyInArrow`` takes it."""

    def of_group(group: pa.Table) -> pa.Table:
        return with_forecasts(group, first, last)

    return of_group


def with_forecasts(group: pa.Table, first: int, last: int) -> pa.Table:
    """Rows of `FOUND` of all series of some partitions: those without an hour, each with the forecast out of its hours.

    `first` is 1 in one row of each partition, so that they can be counted.
    """
    is_load = pc.is_null(group["hour"])
    loads = group.filter(is_load).select([*KEYS, "mean", "p95", "last"])
    found = forecast_many(group.filter(pc.invert(is_load)), first, last).rename_columns({"last": "last_error"})
    joined = loads.join(found, KEYS).sort_by([(name, "ascending") for name in ("topic", "partition", "resource")])
    topic, partition = (joined[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in ("topic", "partition"))
    begins = np.ones(len(joined), dtype=np.int32)
    begins[1:] = (np.diff(topic) != 0) | (np.diff(partition) != 0)
    return joined.append_column("first", pa.array(begins)).select(COLUMNS)


def forecast_many(group: pa.Table, first: int, last: int) -> pa.Table:
    """Forecast of every series in a group of hours, as rows of `FORECASTS`.

    Hours in which nothing was measured are gaps. The forecast is the largest hour expected in the coming day.
    """
    table = group.select([*KEYS, "hour", "mean"])
    keys = table.group_by(KEYS).aggregate([]).select(KEYS)
    rows = table.join(keys.append_column("series", pa.array(np.arange(len(keys)))), KEYS)
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


def notable_topics(loads: DataFrame, totals: Mapping[str, float]) -> list[TopicCalibration]:
    """The topics whose load stands still least: those that swing, grow or burst most, weighed by what they carry.

    Parameters
    ----------
    loads
        Rows of `FOUND`.
    totals
        By resource what all topics carry.
    """
    if not totals:
        return []
    carried = F.create_map(*[F.lit(one) for item in sorted(totals.items()) for one in item])
    bursts = loads.where(F.col("partition") == WHOLE).withColumn("burst", F.try_divide("p95", "mean"))
    moving = bursts.where((F.col("burst") >= NOTABLE) | F.col("pattern").isin("growing", "bursty"))
    weighed = moving.withColumn(
        "rank", F.try_divide("mean", carried[F.col("resource")]) * (F.col("burst") - 1 + F.abs(F.coalesce("growth", F.lit(0.0))))
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
