"""Samples that stand in a history twice, found without moving every row between the workers.

Used by `spark.history.sift`. Two samples are the same one where their series (cluster, broker, topic, partition, metric) and
time are equal.

The proof: time is cut into slots shorter than the distance of two samples, 63 slots are a stretch, and each series and stretch
gets the number of its samples and a 63-bit word with a bit for each slot that has one. Where the number of bits is that of the
samples, no two of them can be the same. All other stretches are suspects, and only their rows are looked at one by one.
"""

from __future__ import annotations

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

KEY = ("cluster_id", "broker", "topic", "partition", "metric")
SLOTS = 63
PROBED = 20_000
USUAL_MS = 60_000
SERIES, STRETCH = "series", "stretch"


def with_series(frame: DataFrame) -> DataFrame:
    """The frame with a number for each series. Two series that share one are suspects together, which does no harm."""
    return frame.withColumn(SERIES, F.xxhash64(*KEY))


def spacing_ms(frame: DataFrame) -> int:
    """How far apart the samples of a series usually are, by the first rows of the frame.

    A wrong guess costs time, never a sample: too long, and more stretches are suspects; too short, and there are more stretches.
    """
    rows = with_series(frame).where("time is not null").select(SERIES, F.unix_millis("time").alias("ms")).limit(PROBED).collect()
    if not rows:
        return USUAL_MS
    series, ms = np.array(rows, dtype=np.int64).T
    order = np.lexsort((ms, series))
    apart = np.diff(ms[order])[np.diff(series[order]) == 0]
    apart = apart[apart > 0]
    return max(int(np.median(apart)), 1) if len(apart) else USUAL_MS


def slot_ms(spacing: int) -> int:
    """Length of a slot: two samples that are as far apart as usual, or somewhat less, never share one."""
    return max(spacing * 3 // 5, 1)


def stretch(slot: int) -> Column:
    """Which series and stretch of time a row belongs to, as one number."""
    return F.xxhash64(F.col(SERIES), F.expr(f"unix_millis(time) div {slot * SLOTS}"))


def slot_bit(slot: int) -> Column:
    """A word with the bit of the row's slot within its stretch."""
    return F.expr(f"shiftleft(1L, cast(pmod(unix_millis(time) div {slot}, {SLOTS}) as int))")


def is_suspect(samples: Column, word: Column) -> Column:
    """Whether a stretch may have the same sample twice."""
    return F.bit_count(word) < samples


def first_of_each(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """One row of each sample, that with the largest value, and the others. Moves all rows: for suspects only."""
    place = F.row_number().over(Window.partitionBy(*KEY, "time").orderBy(F.col("value").desc()))
    placed = frame.withColumn("place", place)
    return placed.where("place = 1").drop("place"), placed.where("place > 1").drop("place")
