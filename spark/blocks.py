"""Raw samples packed into blocks, a dozen windows of a series in one row: the only step that looks at every sample.

Used by `spark.windows` and the calibration job. A block is a twelfth of the rows that windows would be, so what is moved between
workers and kept is a twelfth too: at a sample a minute and windows of five minutes, one row in sixty. Knows nothing of what
metrics mean.

Samples that stand there twice (same series, same time) can be found on the way: a window is cut into 63 moments or a few times as many,
and instead of a count of samples each block has a bit for each moment that has one. Where a block has as many bits as samples, no two
can be the same. Only the samples of the other blocks are looked at one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256
from operator import add

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.history.sift import REASON, REPEATED
from spark.schemas import Blocks, Windows

PER_BLOCK = 12
SERIES = ("cluster_id", "broker", "topic", "partition", "metric")
BITS = 63
MOMENT = 5.0  # seconds: samples that are further apart are told apart by their bits, in windows up to MOST_WORDS x 315 s
MOST_WORDS = 4
TO_ALL = 1_000_000
KEY, DOUBTFUL = "key", "doubtful"


@dataclass(frozen=True)
class Tally:
    """What was seen on the way: rows, rows by reason of those that do not count, time of the first and of the last sample that
    does (Unix ms; None: none does), a digest that does not depend on order, files or windows, the number of blocks, and how many of those
    may have a sample twice. `metrics`: name, and whether it is of whole brokers -> samples of those that count, before repeated ones
    are taken out. `reporters`: metric of whole brokers -> how many report it. `cluster_id` is that of the samples that count."""

    rows: int
    reasons: Mapping[str, int]
    begin_ms: int | None
    end_ms: int | None
    digest: str
    blocks: int
    doubtful: int
    metrics: Mapping[tuple[str, bool], int]
    reporters: Mapping[str, int]
    cluster_id: str

    @property
    def taken(self) -> int:
        """Rows that count."""
        return self.rows - sum(self.reasons.values())

    @property
    def told(self) -> str:
        """Both numbers in words, with the reasons."""
        words = ", ".join(f"{number:,} {name}" for name, number in self.reasons.items())
        return f"{self.rows:,} samples, {self.taken:,} of them count{f' ({words})' if words else ''}"


@contextmanager
def counted(
    judged: DataFrame, window_seconds: float, once: bool = True, to_all: int = TO_ALL, rows: DataFrame | None = None
) -> Iterator[tuple[Blocks, Tally]]:
    """The blocks of what counts, each sample `once` (of equal ones the largest value), and what was seen; kept on disk meanwhile.

    Other parameters are those of `packed`. Without `once`, a sample that is there twice weighs twice. Of doubtful blocks, `to_all`
    keys at most are sent to every worker; where there are more, or half of all blocks are doubtful, all samples are looked at one by
    one. A sample that is there again has the reason `REPEATED` in the tally. `rows`: what `packed` makes of the same, where it is known.
    """
    rows = (packed(judged, window_seconds, by_moments=once) if rows is None else rows).persist(StorageLevel.DISK_ONLY)
    apart = None
    try:
        seen = tally(rows)
        found = blocks_of(rows)
        if seen.doubtful:
            doubtful = rows.where(DOUBTFUL).select(_key("start").alias(KEY))
            alike = F.broadcast(doubtful) if seen.doubtful <= min(to_all, seen.blocks // 2) else None
            apart = packed(_each_once(judged, window_seconds, alike), window_seconds, by_moments=False).persist(StorageLevel.DISK_ONLY)
            sure = None if alike is None else rows.withColumn(KEY, _key("start")).join(alike, KEY, "left_anti")
            found = blocks_of(apart if sure is None else sure.select(*apart.columns).unionByName(apart))
            left = found.frame.agg(F.sum(F.aggregate("samples", F.lit(0).cast("long"), lambda total, one: total + one))).collect()[0][0]
            again = seen.rows - sum(seen.reasons.values()) - left
            seen = replace(seen, reasons={**seen.reasons, **({REPEATED: again} if again else {})})
        yield found, seen
    finally:
        rows.unpersist()
        if apart is not None:
            apart.unpersist()


def packed(judged: DataFrame, window_seconds: float, by_moments: bool = True, by_day: bool = False) -> DataFrame:
    """The columns of `Blocks`, and beside them `REASON` and what `tally` adds up.

    Rows without a reason become blocks; those with one become a row for each reason, which has no series.

    Parameters
    ----------
    judged
        Samples with a column `REASON`, null where a sample counts.
    window_seconds
        Length of a window, seconds, above 0.
    by_moments
        Count bits of moments, and say which blocks are doubtful: `mean` and `samples` of those are of no use. Else count samples: one
        that is there twice weighs twice.
    by_day
        Keep a column `date`, that of the samples; rows without a series are then of one day each.

    Notes
    -----
    One grouping with partial sums before anything is moved, no sorting.
    """
    length = round(window_seconds * 1e6)
    words = words_of(window_seconds) if by_moments else 0
    moment = f"(pmod(unix_micros(time), {length}) div {-(-length // (BITS * max(words, 1)))})"
    fine = F.col(REASON).isNull()
    day = ("date",) if by_day else ()
    narrow = judged.select(
        *day,
        *[F.when(fine, F.col(name)).alias(name) for name in SERIES],
        REASON,
        "value",
        F.when(fine, F.col("time")).alias("time"),
        F.when(fine, F.expr(_block_of(window_seconds))).alias("block"),
        F.when(fine, F.expr(f"cast(pmod(unix_micros(time), {length * PER_BLOCK}) div {length} as int)")).alias("slot"),
        *([F.when(fine, F.expr(f"cast({moment} div {BITS} as int)")).alias("word")] if words > 1 else []),
        *([F.when(fine, F.expr(f"shiftleft(1L, cast({moment} % {BITS} as int))")).alias("bit")] if words else []),
    )
    sums: list[Column] = []
    for slot in range(PER_BLOCK):
        mine = F.col("slot") == slot
        here = F.when(mine, F.col("value"))
        sums += [F.sum(here).alias(f"sum{slot}"), F.max(here).alias(f"max{slot}")]
        if not words:
            sums.append(F.count(here).alias(f"count{slot}"))
        for word in range(words):
            its = mine & (F.col("word") == word) if words > 1 else mine
            sums.append(F.bit_or(F.when(its, F.col("bit"))).alias(f"bits{slot}_{word}"))
    grouped = narrow.groupBy(*SERIES, REASON, "block", *day).agg(
        *sums,
        F.count("*").alias("rows"),
        F.min("time").alias("begin"),
        F.max("time").alias("end"),
        F.sum(F.shiftrightunsigned(F.xxhash64("time", "value"), 44)).alias("marks"),
    )
    every = range(PER_BLOCK)
    bits = [[F.coalesce(F.bit_count(f"bits{slot}_{word}").cast("long"), F.lit(0)) for word in range(words)] for slot in every]
    counts = [_sum(bits[slot]) if words else F.col(f"count{slot}") for slot in every]
    return grouped.select(
        *SERIES,
        F.timestamp_micros("block").alias("start"),
        F.array(*[F.try_divide(F.col(f"sum{slot}"), counts[slot]) for slot in every]).alias("mean"),
        F.array(*[F.col(f"max{slot}") for slot in every]).alias("max"),
        F.array(*counts).alias("samples"),
        REASON, "rows", "begin", "end", "marks",
        (F.col(REASON).isNull() & (F.col("rows") > _sum(counts))).alias(DOUBTFUL),
        *day,
    )  # fmt: skip


def words_of(window_seconds: float) -> int:
    """How many words of bits a window has."""
    return min(max(-(-int(window_seconds) // int(BITS * MOMENT)), 1), MOST_WORDS)


def _sum(columns: list[Column]) -> Column:
    return reduce(add, columns)


def _block_of(window_seconds: float) -> str:
    """The start of a sample's block, microseconds since the Unix epoch, in SQL."""
    return f"unix_micros(time) - pmod(unix_micros(time), {round(window_seconds * 1e6) * PER_BLOCK})"


def _key(start: str) -> Column:
    """One number for a block; two that share it are looked at together, which does no harm."""
    return F.xxhash64(*SERIES, start)


def _each_once(judged: DataFrame, window_seconds: float, keys: DataFrame | None) -> DataFrame:
    """The samples of some blocks, all where `keys` is None, each once. Moves those samples to where their block is made."""
    start = F.timestamp_micros(F.expr(_block_of(window_seconds))).alias("start")
    fine = judged.where(F.col(REASON).isNull()).select(*SERIES, "time", "value", start)
    if keys is not None:
        fine = fine.withColumn(KEY, _key("start")).join(keys, KEY, "left_semi")
    each = fine.repartition(*SERIES, "start").groupBy(*SERIES, "start", "time").agg(F.max("value").alias("value"))
    return each.withColumn(REASON, F.lit(None).cast("string"))


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
    """What `packed` saw, added up: a row for each broker and metric comes to the driver."""
    mark = F.shiftrightunsigned(F.xxhash64(*SERIES), 40) * F.col("marks")
    parts = packed_rows.groupBy(REASON, "metric", "broker", F.col("topic").isNull().alias("whole")).agg(
        F.sum("rows").alias("rows"), F.unix_millis(F.min("begin")).alias("begin"), F.unix_millis(F.max("end")).alias("end"),
        F.sum(mark.cast("decimal(20,0)")).alias("mark"), F.count("*").alias("blocks"),
        F.count_if(DOUBTFUL).alias(DOUBTFUL), F.max("cluster_id").alias("cluster_id"),
    ).collect()  # fmt: skip
    rows, marks, metrics = Counter[str](), Counter[str](), Counter[tuple[str, bool]]()
    for row in parts:
        rows[row[REASON] or ""] += row["rows"]
        marks[row[REASON] or ""] += int(row["mark"])
    fine = [row for row in parts if row[REASON] is None]
    for row in fine:
        metrics[row["metric"], row["whole"]] += row["rows"]
    text = ":".join(f"{name or None}={rows[name]},{marks[name]}" for name in sorted(rows))
    return Tally(
        rows=rows.total(),
        reasons={name: rows[name] for name in sorted(rows) if name},
        begin_ms=min((row["begin"] for row in fine), default=None),
        end_ms=max((row["end"] for row in fine), default=None),
        digest=f"sha256:{sha256(text.encode()).hexdigest()}",
        blocks=sum(row["blocks"] for row in fine),
        doubtful=sum(row[DOUBTFUL] for row in fine),
        metrics=dict(sorted(metrics.items())),
        reporters=Counter(row["metric"] for row in fine if row["whole"]),
        cluster_id=max((row["cluster_id"] for row in fine), default=""),
    )
