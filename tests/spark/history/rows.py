"""Samples as literal rows, in short."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from spark.schemas import Samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGIN = datetime(2026, 11, 19, 23, 30, tzinfo=UTC)

Row = tuple[datetime | None, str | None, int | None, str | None, int | None, str | None, float | None]


def row(
    minute: float, value: float | None = 1.0, metric: str | None = "network_in", topic: str | None = "t", partition: int | None = 0,
    broker: int | None = 1, cluster_id: str | None = "c",
) -> Row:  # fmt: skip
    """One sample, so many minutes after 2026-11-19 23:30 UTC."""
    return (BEGIN + timedelta(minutes=minute), cluster_id, broker, topic, partition, metric, value)


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    """Rows with the columns of `Samples`."""
    names = ("time", "cluster_id", "broker", "topic", "partition", "metric", "value")
    types = (pa.timestamp("us", tz="UTC"), pa.string(), pa.int32(), pa.string(), pa.int32(), pa.string(), pa.float64())
    table = pa.table({name: pa.array([r[i] for r in rows], kind) for i, (name, kind) in enumerate(zip(names, types, strict=True))})
    return spark.createDataFrame(table).selectExpr("*", "to_date(time) date")


def samples(spark: SparkSession, rows: list[Row]) -> Samples:
    return Samples(frame(spark, rows))


def written(spark: SparkSession, rows: list[Row], folder: Path) -> Path:
    """A history of the rows, split by day."""
    frame(spark, rows).write.partitionBy("date").parquet(str(folder))
    return folder
