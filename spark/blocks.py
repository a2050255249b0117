"""Raw samples packed into blocks, a dozen windows of a series in one row: the only step that looks at every sample.

Used by `spark.windows` and the calibration job. A block is a twelfth of the rows that windows would be, so what is moved between
workers and kept is a twelfth too: at a sample a minute and windows of five minutes, one row in sixty. Knows nothing of what
metrics mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.history.sift import REASON
from spark.schemas import Blocks, Windows

PER_BLOCK = 12
SERIES = ("cluster_id", "broker", "topic", "partition", "metric")


@dataclass(frozen=True)
class Tally:
    """What was seen on the way: rows, rows by reason of those that do not count, time of the first and of the last sample that
    does (Unix ms; None: none does), and a digest that does not depend on order, files or windows."""

    rows: int
    reasons: Mapping[str, int]
    begin_ms: int | None
    end_ms: int | None
    digest: str


def packed(judged: DataFrame, window_seconds: float) -> DataFrame:
    """The columns of `Blocks`, and beside them `REASON` and what `tally` adds up.

    Rows without a reason become blocks; those with one become a row for each reason, which has no series.

    Parameters
    ----------
    judged
        Samples with a column `REASON`, null where a sample counts.
    window_seconds
        Length of a window, seconds, above 0.

    Notes
    -----
    One grouping with partial sums before anything is moved, no sorting. A sample that is there twice weighs twice in the mean of
    its window, no more.
    """
    length = round(window_seconds * 1e6)
    fine = F.col(REASON).isNull()
    narrow = judged.select(
        *[F.when(fine, F.col(name)).alias(name) for name in SERIES],
        REASON,
        "value",
        F.when(fine, F.col("time")).alias("time"),
        F.when(fine, F.expr(f"unix_micros(time) - pmod(unix_micros(time), {length * PER_BLOCK})")).alias("block"),
        F.when(fine, F.expr(f"cast(pmod(unix_micros(time), {length * PER_BLOCK}) div {length} as int)")).alias("slot"),
    )
    sums: list[Column] = []
    for slot in range(PER_BLOCK):
        here = F.when(F.col("slot") == slot, F.col("value"))
        sums += [F.sum(here).alias(f"sum{slot}"), F.max(here).alias(f"max{slot}"), F.count(here).alias(f"count{slot}")]
    grouped = narrow.groupBy(*SERIES, REASON, "block").agg(
        *sums,
        F.count("*").alias("rows"),
        F.min("time").alias("begin"),
        F.max("time").alias("end"),
        F.sum(F.shiftrightunsigned(F.xxhash64("time", "value"), 44)).alias("marks"),
    )
    every = range(PER_BLOCK)
    return grouped.select(
        *SERIES,
        F.timestamp_micros("block").alias("start"),
        F.array(*[F.try_divide(f"sum{slot}", f"count{slot}") for slot in every]).alias("mean"),
        F.array(*[F.col(f"max{slot}") for slot in every]).alias("max"),
        F.array(*[F.col(f"count{slot}") for slot in every]).alias("samples"),
        REASON, "rows", "begin", "end", "marks",
    )  # fmt: skip


def blocks_of(packed_rows: DataFrame) -> Blocks:
    """The blocks of what counts."""
    return Blocks(packed_rows.where(F.col(REASON).isNull()))


def unpacked(blocks: Blocks, window_seconds: float) -> Windows:
    """A row for each window that has a sample."""
    length = round(window_seconds * 1e6)
    one = F.explode(F.arrays_zip(F.sequence(F.lit(0), F.lit(PER_BLOCK - 1)).alias("slot"), "mean", "max", "samples")).alias("one")
    rows = blocks.frame.select(*SERIES, "start", one).where("one.samples > 0")
    start = F.timestamp_micros(F.unix_micros("start") + F.col("one.slot").cast("long") * F.lit(length)).alias("start")
    return Windows(rows.select(*SERIES, start, "one.mean", "one.max", "one.samples"))


def tally(packed_rows: DataFrame) -> Tally:
    """What `packed` saw, added up."""
    mark = F.shiftrightunsigned(F.xxhash64(*SERIES), 40) * F.col("marks")
    parts = packed_rows.groupBy(REASON).agg(
        F.sum("rows").alias("rows"), F.unix_millis(F.min("begin")).alias("begin"), F.unix_millis(F.max("end")).alias("end"),
        F.sum(mark.cast("decimal(20,0)")).alias("mark"),
    ).collect()  # fmt: skip
    reasons = {row[REASON]: row["rows"] for row in sorted(parts, key=lambda row: row[REASON] or "") if row[REASON] is not None}
    counted = next((row for row in parts if row[REASON] is None), None)
    rows = sum(row["rows"] for row in parts)
    text = ":".join(f"{row[REASON]}={row['rows']},{row['mark']}" for row in sorted(parts, key=lambda row: row[REASON] or ""))
    return Tally(
        rows=rows,
        reasons=reasons,
        begin_ms=None if counted is None else counted["begin"],
        end_ms=None if counted is None else counted["end"],
        digest=f"sha256:{sha256(text.encode()).hexdigest()}",
    )
