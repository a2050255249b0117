"""What a history has: by metric, broker and day, with its gaps, repeated samples, wrong clocks, and which goals it can feed.

Called by ``trimtab history check``, before a person spends an hour on a calibration. What comes to the driver grows with brokers,
metrics, days and hours, not with partitions or samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column
from pyspark.sql import functions as F

from cluster_model.resources import DERIVED_FROM, RESOURCES
from goals.model import GoalSet, UsageDistribution
from spark.history import known
from spark.history.repeats import KEY, spacing_ms
from spark.history.sift import REASON, reason
from spark.schemas import Samples

HOUR = 3_600
CLOCKS = ("time in the future", "time before 2000")
APART = 5  # sampling intervals (and at least `LEAST_APART` seconds) by which a broker's newest sample is off those of the others
LEAST_APART = 600.0


@dataclass(frozen=True)
class Coverage:
    """Samples of one metric from one broker: how many `series`, `samples` that count, each once, and how many are `due` where no
    series has a gap between its first and its last sample. `whole`: of the broker, not of replicas."""

    metric: str
    whole: bool
    broker: int
    series: int
    samples: int
    due: int


@dataclass(frozen=True)
class DayOf:
    """One day: brokers that reported, samples, and how many are there again."""

    date: str
    brokers: int
    samples: int
    repeated: int


@dataclass(frozen=True)
class Gap:
    """Whole hours in which a broker reported nothing, from `begin` on and before `end` (UTC), between its first and its last sample."""

    broker: int
    begin: str
    end: str


@dataclass(frozen=True)
class Feeds:
    """What the history is enough for, of one goal; an empty text where it is, else what is missing."""

    goal: str
    resource: str
    calibrate: str
    backtest: str


@dataclass(frozen=True)
class Check:
    """All of it. `spacing` is how far apart samples of a series usually are, seconds; `notes` are sentences on what stands out."""

    rows: int
    begin: str | None
    end: str | None
    spacing: float
    metrics: tuple[Coverage, ...]
    days: tuple[DayOf, ...]
    gaps: tuple[Gap, ...]
    rejected: dict[str, int]
    feeds: tuple[Feeds, ...]
    notes: tuple[str, ...] = field(default=())


def check(samples: Samples, goals: GoalSet, now: datetime) -> Check:
    """Look at all samples once.

    Parameters
    ----------
    goals
        Which goals the history should feed.
    now
        When this is: what is from later is of a wrong clock.
    """
    judged = samples.frame.withColumn(REASON, reason(F.lit(now)))
    spacing = spacing_ms(samples.frame)
    fine = judged.where(F.col(REASON).isNull())
    bad = judged.where(F.col(REASON).isNotNull()).groupBy(REASON, "broker").count().collect()
    series = fine.groupBy(*KEY, F.to_date("time").alias("day")).agg(
        F.count("*").alias("rows"), F.size(F.collect_set("time")).alias("there"), F.min("time").alias("begin"), F.max("time").alias("end"),
        F.collect_set(F.expr(f"unix_seconds(time) div {HOUR}")).alias("hours"),
    ).persist(StorageLevel.DISK_ONLY)  # fmt: skip
    try:
        whole = F.col("topic").isNull().alias("whole")
        of_series = series.groupBy(*KEY).agg(
            F.sum("there").alias("there"), _expected(F.min("begin"), F.max("end"), spacing).alias("due")
        )
        metrics = of_series.groupBy("metric", whole, "broker").agg(
            F.count("*").alias("series"), F.sum("there").alias("there"), F.sum(F.greatest("due", "there")).alias("due")
        ).collect()  # fmt: skip
        days = series.groupBy("day").agg(
            F.count_distinct("broker").alias("brokers"), F.sum("there").alias("there"), F.sum(F.col("rows") - F.col("there")).alias("again")
        ).orderBy("day").collect()  # fmt: skip
        hours = series.groupBy("broker").agg(
            F.array_sort(F.array_distinct(F.flatten(F.collect_set("hours")))).alias("hours"),
            F.unix_millis(F.min("begin")).alias("begin"), F.unix_millis(F.max("end")).alias("end"),
        ).collect()  # fmt: skip
    finally:
        series.unpersist()
    return _made(spacing / 1000, metrics, days, hours, bad, goals)


def _expected(begin: Column, end: Column, spacing_ms: int) -> Column:
    """How many samples a series has from `begin` to `end`, both times of samples, where none is missing."""
    return F.floor((F.unix_millis(end) - F.unix_millis(begin)) / F.lit(spacing_ms) + F.lit(0.5)) + 1


def _made(spacing: float, metrics: list[Any], days: list[Any], hours: list[Any], bad: list[Any], goals: GoalSet) -> Check:
    found = sorted((Coverage(r["metric"], r["whole"], r["broker"], r["series"], r["there"], r["due"]) for r in metrics), key=_order)
    counts: dict[tuple[str, bool], int] = {}
    for one in found:
        counts[one.metric, one.whole] = counts.get((one.metric, one.whole), 0) + one.samples
    rejected: dict[str, int] = {}
    for row in sorted(bad, key=lambda row: row[REASON]):
        rejected[row[REASON]] = rejected.get(row[REASON], 0) + row["count"]
    again = sum(row["again"] for row in days)
    every = sum(row["there"] for row in days) + again + sum(rejected.values())
    gaps = [gap for row in sorted(hours, key=lambda row: row["broker"]) for gap in gaps_of(row["broker"], row["hours"])]
    ends = {row["broker"]: row["end"] / 1000 for row in hours}
    return Check(
        rows=every,
        begin=_instant(min(row["begin"] for row in hours) / 1000) if hours else None,
        end=_instant(max(row["end"] for row in hours) / 1000) if hours else None,
        spacing=spacing,
        metrics=tuple(found),
        days=tuple(DayOf(str(row["day"]), row["brokers"], row["there"], row["again"]) for row in days),
        gaps=tuple(gaps),
        rejected=rejected | ({"repeated": again} if again else {}),
        feeds=feeds(goals, counts, len(hours)),
        notes=(*known.told(counts), *clocks([(row[REASON], row["broker"], row["count"]) for row in bad], ends, spacing), *_thin(found)),
    )


def _order(one: Coverage) -> tuple[bool, str, int]:
    return not one.whole, one.metric, one.broker


def gaps_of(broker: int, hours: Sequence[int]) -> Iterable[Gap]:
    """The gaps between the hours (since the Unix epoch, ascending) in which a broker reported anything."""
    for last, first in pairwise(hours):
        if first - last > 1:
            yield Gap(broker, _instant((last + 1) * HOUR), _instant(first * HOUR))


def clocks(bad: Iterable[tuple[str, int | None, int]], ends: dict[int, float], spacing: float) -> list[str]:
    """Sentences about brokers whose clock is wrong, or may be.

    Parameters
    ----------
    bad
        (reason, broker, samples) of samples that do not count.
    ends
        broker -> time of its newest sample, Unix seconds.
    """
    told = []
    for name in CLOCKS:
        of = {broker: count for why, broker, count in bad if why == name and broker is not None}
        told += [f"broker {broker}: {count:,} samples with {name}; check its clock" for broker, count in sorted(of.items())]
    if len(ends) < 2:
        return told
    usual, room = median(ends.values()), max(APART * spacing, LEAST_APART)
    for broker, end in sorted(ends.items()):
        if abs(end - usual) > room:
            off = f"{abs(end - usual) / 60:,.0f} min {'after' if end > usual else 'before'} those of most brokers"
            why = "its clock is ahead, or the others stopped" if end > usual else "it stopped reporting, or its clock is behind"
            told.append(f"broker {broker}: its newest sample is {off}: {why}")
    return told


def _thin(found: Sequence[Coverage]) -> Iterable[str]:
    """Metrics of which much is missing, or that not all brokers have."""
    brokers = {one.broker for one in found}
    for metric, whole in dict.fromkeys((one.metric, one.whole) for one in found):
        mine = [one for one in found if (one.metric, one.whole) == (metric, whole)]
        name = f"{metric} of {'brokers' if whole else 'replicas'}"
        share = sum(one.samples for one in mine) / max(sum(one.due for one in mine), 1)
        if share < 0.95:
            yield f"{name}: {1 - share:.0%} of the samples are missing between the first and the last of a series"
        without = sorted(brokers - {one.broker for one in mine})
        if whole and without:
            yield f"{name}: no samples from {'broker' if len(without) == 1 else 'brokers'} {', '.join(map(str, without[:10]))}" + (
                f" and {len(without) - 10} more" if len(without) > 10 else ""
            )


def feeds(goals: GoalSet, metrics: known.Metrics, brokers: int) -> tuple[Feeds, ...]:
    """For each goal that levels a resource, whether calibrate and backtest can say anything of it."""
    of_brokers, of_partitions = known.of_brokers(metrics), known.of_partitions(metrics)
    found = []
    for goal in goals.goals:
        if not isinstance(goal, UsageDistribution):
            continue
        base = DERIVED_FROM.get(goal.resource, goal.resource)
        if RESOURCES[goal.resource] == "count":
            calibrate, backtest = "counts have no noise", "" if of_partitions else "no partitions in the history"
        else:
            calibrate = "" if base in of_brokers else f"no {base}"
            calibrate = calibrate or ("" if goal.resource == base else f"not measured; only the whole of {base} is")
            calibrate = calibrate or ("" if brokers > 1 else "a single broker cannot be compared with others")
            backtest = "" if base in of_partitions else f"no {base} of partitions"
        found.append(Feeds(goal.name, goal.resource, calibrate, backtest))
    return tuple(found)


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
