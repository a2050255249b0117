"""Bad rows set apart, each with one reason, and counted; what is left counts once.

Called by every job after `spark.history.read`, and by the importers. One pass over the rows counts everything, and finds out
whether any sample stands there twice (`spark.history.repeats`). Rows that came late or out of order are no problem here: a
batch reads whole days, and nothing depends on the order of rows. Knows nothing of what metrics mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from cluster_model.resources import LARGEST_AMOUNT
from spark.history import repeats
from spark.schemas import Rejected, Samples

REPEATED = "repeated"
EARLIEST = "2000-01-01 00:00:00"
AHEAD_SECONDS = 3600  # clocks of brokers may be ahead of ours by so much
AHEAD = f"INTERVAL {AHEAD_SECONDS} SECOND"
REASON, CODE, SOURCE = "reason", "code", "source"
FINE = -1  # code of a row that counts so far


def conditions(now: Column) -> dict[str, Column]:
    """Reason -> whether a row has it; the first that holds is the row's reason."""
    time, value = F.col("time"), F.col("value")
    topic, partition = F.col("topic"), F.col("partition")
    return {
        "no time": time.isNull(),
        "no cluster": F.col("cluster_id").isNull() | (F.col("cluster_id") == ""),
        "no broker": F.col("broker").isNull() | (F.col("broker") < 0),
        "no metric": F.col("metric").isNull() | (F.col("metric") == ""),
        "no value": value.isNull(),
        "not a number": F.isnan(value),
        "infinite": (value == float("inf")) | (value == float("-inf")),
        "negative": value < 0,
        "too large": value > LARGEST_AMOUNT,
        "time before 2000": time < F.lit(EARLIEST).cast("timestamp"),
        "time in the future": time > now + F.expr(AHEAD),
        "neither broker nor partition": topic.isNull() != partition.isNull(),
        "unknown partition": (partition < 0) | (topic == ""),
    }


def reason(now: Column) -> Column:
    """Why a row does not count; null where nothing is wrong with it by itself."""
    return F.coalesce(*[F.when(condition, F.lit(name)) for name, condition in conditions(now).items()])


def code(now: Column) -> Column:
    """Place of the reason why a row does not count in `conditions`; `FINE` where nothing is wrong with it by itself."""
    first, *others = list(conditions(now).values())
    chain = F.when(first, 0)
    for place, condition in enumerate(others, start=1):
        chain = chain.when(condition, place)
    return chain.otherwise(FINE)


def name_of(code: Column, names: Sequence[str]) -> Column:
    """The reason that a `code` stands for; null for `FINE`. (With null for an index, Spark's `element_at` gives the last.)"""
    return F.when(code != FINE, F.element_at(F.array(*[F.lit(name) for name in names]), code + 1))


@dataclass(frozen=True)
class Sifted:
    """A history told apart.

    Attributes
    ----------
    rows
        How many there were.
    reasons
        Reason -> rows that do not count because of it, of those that there are.
    begin, end
        Time of the first and of the last sample that counts, Unix ms; None where none does.
    digest
        Of all rows, whatever their order and files: equal histories have equal digests.
    """

    samples: Samples
    rejected: Rejected
    rows: int
    reasons: Mapping[str, int]
    begin_ms: int | None
    end_ms: int | None
    digest: str


def sift(samples: Samples, now: datetime | None = None) -> tuple[Samples, Rejected]:
    """Samples that count, once each, and the others; see `sifted`."""
    found = sifted(samples, now)
    return found.samples, found.rejected


def reasons(rejected: Rejected) -> dict[str, int]:
    """Reason -> rows. Reads everything again: `sifted` has counted already."""
    return {row[0]: row[1] for row in rejected.frame.groupBy(REASON).count().orderBy(REASON).collect()}


def sifted(samples: Samples, now: datetime | None = None) -> Sifted:
    """Samples that count, once each, and the others with their reasons and numbers.

    Parameters
    ----------
    now
        Aware; a time more than an hour later is of no clock that can be believed. None: by Spark's clock.

    Notes
    -----
    Runs one job over all rows, which moves one number per series and stretch of 63 samples. Of samples with equal cluster, time,
    broker, topic, partition and metric the largest value stays. Only rows near such a pair are moved for that; where there
    are none, the frames that come back are plain filters.
    """
    return sifted_rows(samples.frame, (), now)


def sifted_rows(frame: DataFrame, known: Sequence[str], now: datetime | None = None) -> Sifted:
    """The same of rows that an importer made: with `source`, and with a `reason` of `known` where it found something wrong."""
    clock = F.current_timestamp() if now is None else F.lit(now)
    names = [*conditions(clock), *known]
    judged = code(clock)
    if known:
        found = F.array_position(F.array(*[F.lit(name) for name in names]), F.col(REASON)).cast("int") - 1
        judged = F.when(F.col(REASON).isNotNull(), found).otherwise(judged)
    else:
        frame = frame.withColumn(SOURCE, F.lit(None).cast("string"))
    slot = repeats.slot_ms(repeats.spacing_ms(frame))
    coded = frame.withColumn(CODE, judged)
    seen = Observation()
    suspects = _stretches(coded, slot).observe(seen, *_counts(names)).where(_is_suspect()).select(repeats.STRETCH)
    suspects = suspects.persist(StorageLevel.MEMORY_AND_DISK)  # few, as repeated samples are
    some = suspects.count() > 0
    return _told_apart(coded, suspects if some else None, slot, names, seen.get)


def _stretches(coded: DataFrame, slot: int) -> DataFrame:
    """One row per reason, and per series and stretch of what is fine: how many rows, and what `_counts` sums up."""
    fine = F.col(CODE) == FINE
    return (
        repeats.with_series(coded)
        .select(
            CODE,
            F.when(fine, repeats.stretch(slot)).otherwise(F.lit(0)).alias(repeats.STRETCH),
            F.when(fine, repeats.slot_bit(slot)).otherwise(F.lit(0)).alias("bit"),
            F.when(fine, F.col("time")).alias("time"),
            F.xxhash64(repeats.SERIES, "time", "value").alias("mark"),
        )
        .groupBy(CODE, repeats.STRETCH)
        .agg(
            F.count("*").alias("rows"), F.bit_or("bit").alias("word"), F.min("time").alias("begin"), F.max("time").alias("end"),
            F.bit_xor("mark").alias("mark"), F.sum(F.shiftright("mark", 40)).alias("marks"),
        )
    )  # fmt: skip


def _is_suspect() -> Column:
    return (F.col(CODE) == FINE) & repeats.is_suspect(F.col("rows"), F.col("word"))


def _counts(names: Sequence[str]) -> list[Column]:
    by_reason = [F.sum(F.when(F.col(CODE) == place, F.col("rows"))).alias(f"reason {place}") for place in range(len(names))]
    return [
        F.sum("rows").alias("rows"), F.unix_millis(F.min("begin")).alias("begin"), F.unix_millis(F.max("end")).alias("end"),
        F.bit_xor("mark").alias("mark"), F.sum("marks").alias("marks"), *by_reason,
    ]  # fmt: skip


def _told_apart(
    coded: DataFrame, suspects: DataFrame | None, slot: int, names: Sequence[str], counted: Mapping[str, int | None]
) -> Sifted:
    fine = coded.where(F.col(CODE) == FINE)
    bad = coded.where(F.col(CODE) != FINE)
    bad = bad.withColumn(REASON, name_of(F.col(CODE), names))
    found = {name: number for place, name in enumerate(names) if (number := counted[f"reason {place}"])}
    if suspects is not None:
        keyed = repeats.with_series(fine).withColumn(repeats.STRETCH, repeats.stretch(slot))
        once, again = repeats.first_of_each(keyed.join(suspects, repeats.STRETCH, "left_semi"))
        fine = keyed.join(suspects, repeats.STRETCH, "left_anti").unionByName(once)
        bad = Rejected(bad).frame.unionByName(Rejected(again.withColumn(REASON, F.lit(REPEATED))).frame)
        if number := again.count():
            found[REPEATED] = number
    digest = sha256(f"{counted['rows'] or 0}:{counted['mark'] or 0}:{counted['marks'] or 0}".encode()).hexdigest()
    return Sifted(
        Samples(fine), Rejected(bad), counted["rows"] or 0, found, counted["begin"], counted["end"], f"sha256:{digest}"
    )
