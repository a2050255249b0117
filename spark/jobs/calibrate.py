"""The calibration job: reads a history, has the methods count, and puts the calibration file together.

Called by ``trimtab calibrate`` and benchmarks. Only brokers times resources, and histograms, come to the driver; what grows with
partitions or time stays in Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark import StorageLevel
from pyspark.sql import functions as F

from cluster_model.errors import InputError, Problem
from cluster_model.resources import MEASURED
from goals.calibration import Calibration, Correlation, HistorySpan
from spark.blocks import counted
from spark.history.read import read_samples
from spark.history.sift import REASON, reason
from spark.jobs.brokers import Capacities, CpuFound, broker_capacities, broker_cpu
from spark.jobs.partitions import partition_loads
from spark.jobs.resources import Counted, Detection, described, in_order
from spark.methods import correlation, noise, season
from spark.methods.bins import Histogram
from spark.report.evidence import MOST_POINTS, CalibrationEvidence, LevelEvidence, NoiseEvidence
from spark.report.evidence import Histogram as Drawn
from spark.schemas import Blocks, BrokerWindows
from spark.windows import broker_sources, brokers_of, partitions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CAPACITY = "capacity."
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What is calibrated from, and for which detection. Times are aware; `loads` is where the loads of partitions are written,
    any URI that Spark takes. `once`: a sample that the history has twice counts once, for which the history may be read twice."""

    history: str
    detection: Detection
    loads: str | None = None
    cluster_id: str | None = None
    begin: datetime | None = None
    end: datetime | None = None
    once: bool = False


@dataclass(frozen=True)
class Made:
    """The calibration, and what its report shows beyond it."""

    calibration: Calibration
    evidence: CalibrationEvidence


def calibrate(spark: SparkSession, request: Request, now: datetime, tell: Tell) -> Made:
    """The calibration of a history.

    Parameters
    ----------
    now
        When this is; samples from after it are of a wrong clock.
    tell
        Called with a sentence at each stage.

    Raises
    ------
    InputError
        There is no history, or nothing in it that counts.
    ExternalError
        Its storage says no.
    """
    tell(f"reading {request.history}")
    samples = read_samples(spark, request.history, request.cluster_id, request.begin, request.end)
    window = request.detection.window
    with counted(samples.frame.withColumn(REASON, reason(F.lit(now))), window, request.once) as (blocks, seen):
        tell(seen.told)
        if seen.begin_ms is None or seen.end_ms is None:
            raise InputError(request.history, [Problem("", f"expected samples that count, found none: {seen.told}")])
        cluster_id = blocks.frame.select("cluster_id").limit(1).collect()[0][0]
        held = brokers_of(blocks, window).frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            brokers = BrokerWindows(held)
            resources = _resources(brokers, blocks, request.detection, tell)
            levels = level_evidence(brokers, seen.begin_ms, seen.end_ms)
            capacity = broker_capacities(brokers)
            tell(f"capacities of brokers: {_confidences(capacity)}")
            together, cpu = _together(brokers, list(resources.found), tell)
        finally:
            held.unpersist()
        partitions = partition_loads(partitions_of(blocks, window), seen.end_ms, request.loads, tell)
    calibration = Calibration(
        version=1,
        cluster_id=cluster_id,
        made_at=_instant(now),
        history=HistorySpan(
            begin=_instant(datetime.fromtimestamp(seen.begin_ms / 1000, UTC)),
            end=_instant(datetime.fromtimestamp(seen.end_ms / 1000, UTC)),
            window=float(request.detection.window),
            samples=seen.taken,
            rejected=dict(seen.reasons),
            brokers=resources.brokers,
            partitions=partitions.count,
            digest=seen.digest,
        ),
        resources=in_order({
            name: described(name, one, request.detection, len(resources.found)) for name, one in resources.found.items()
        }),
        capacity=capacity.estimates,
        cpu_cost=cpu.cost,
        topics=partitions.topics,
        correlations=[Correlation(resources=list(pair), value=round(value, 4)) for pair, value in together.items()],
    )  # fmt: skip
    evidence = CalibrationEvidence(
        noise=resources.drawn, levels=levels, capacity=capacity.shown, cpu=cpu.shown, forecasts=partitions.forecasts,
        notes=() if cpu.cost is not None else (f"cpu cost: not known; {cpu.words}",),
    )  # fmt: skip
    return Made(calibration, evidence)


def _instant(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- resources of brokers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Resources:
    found: dict[str, Counted]
    drawn: tuple[NoiseEvidence, ...]
    brokers: int


def _resources(windows: BrokerWindows, measured: Blocks, detection: Detection, tell: Tell) -> _Resources:
    """What is known of each measured resource of brokers."""
    of_resources = windows.frame.where(F.col("resource").isin(*MEASURED))
    levels = of_resources.groupBy("resource").agg(
        F.avg("mean").alias("mean"), F.countDistinct("broker").alias("brokers"), F.count("*").alias("windows")
    ).collect()  # fmt: skip
    brokers = windows.frame.select("broker").distinct().count()
    tell(f"averaged over windows of {detection.window:g} s: {sum(row['windows'] for row in levels):,} windows of {brokers} brokers")
    sources = {row[0]: row[1] for row in broker_sources(measured).groupBy("resource").count().collect()}

    rows = day_counts(windows, detection)
    tell(f"noise told from imbalance in {', '.join(sorted({row['resource'] for row in rows}))}")
    weekly = {row["resource"]: row for row in seasons(windows).collect()}
    tell("seasons and growth found")
    found = {}
    for row in levels:
        name = row["resource"]
        counts = [one for one in rows if one["resource"] == name]
        week: Mapping[str, Any] = weekly[name].asDict() if name in weekly else {}
        profile = week.get("profile")
        found[name] = Counted(
            mean=row["mean"], brokers=row["brokers"], windows=row["windows"], whole=sources.get(name, 0),
            noise=_by_level(counts), alarm=_histogram(counts, noise.ALARM), spread=_histogram(counts, noise.SPREAD),
            days=_count(counts, noise.DAYS), settled=_count(counts, noise.SETTLED),
            growth=week.get("growth"), strength=week.get("strength"), cycle=week.get("cycle"),
            profile=None if profile is None else np.array(profile),
        )  # fmt: skip
    return _Resources(found, tuple(_drawn(name, rows) for name in found), brokers)


def day_counts(windows: BrokerWindows, detection: Detection) -> list[Any]:
    """Rows of `noise.COUNTED`, added up over the days: at most a few thousand bins a resource."""
    capacities = windows.frame.where(F.col("resource").startswith(CAPACITY)).groupBy("cluster_id", "broker", "resource")
    newest = capacities.agg(F.max_by("mean", "start").alias("capacity"))
    newest = newest.withColumn("resource", F.expr(f"substring(resource, {len(CAPACITY) + 1})"))
    loads = windows.frame.where(F.col("resource").isin(*MEASURED))
    loads = loads.join(F.broadcast(newest), ["cluster_id", "broker", "resource"], "left")
    days = loads.withColumn("day", F.to_date("start")).groupBy("cluster_id", "resource", "day")
    count = noise.counter(detection.window, detection.hits)
    added = days.applyInArrow(count, noise.COUNTED).groupBy("resource", "kind", "level", "bin")
    return added.agg(F.sum("count").alias("count")).collect()


def seasons(windows: BrokerWindows) -> DataFrame:
    """Rows of `season.WEEKLY`, one a cluster and resource."""
    hour = F.expr(f"unix_seconds(start) div {season.HOUR}").alias("hour")
    loads = windows.frame.where(F.col("resource").isin(*MEASURED))
    hourly = loads.groupBy("cluster_id", "resource", hour).agg(F.avg("mean").alias("mean"))
    return hourly.groupBy("cluster_id", "resource").applyInArrow(season.weekly, season.WEEKLY)


def level_evidence(windows: BrokerWindows, begin_ms: int, end_ms: int) -> tuple[LevelEvidence, ...]:
    """The mean of a broker over time, in at most `MOST_POINTS` stretches that are whole hours."""
    hours = -(-(end_ms - begin_ms) // (3_600_000 * MOST_POINTS)) or 1
    stretch = F.expr(f"unix_seconds(start) div {hours * season.HOUR}").alias("stretch")
    known = windows.frame.where(F.col("resource").isin(*MEASURED))
    rows = known.groupBy("resource", stretch).agg(F.avg("mean").alias("mean")).orderBy("stretch").collect()
    found = []
    for name in [name for name in MEASURED if any(row["resource"] == name for row in rows)]:
        mine = [row for row in rows if row["resource"] == name]
        times = [_instant(datetime.fromtimestamp(row["stretch"] * hours * season.HOUR, UTC)) for row in mine]
        found.append(LevelEvidence(name, tuple(times), tuple(row["mean"] for row in mine)))
    return tuple(found)


def _by_level(counts: list[Any]) -> dict[int, Histogram]:
    levels = {row["level"] for row in counts if row["kind"] == noise.NOISE}
    return {level: _histogram(counts, noise.NOISE, level) for level in levels}


def _histogram(counts: list[Any], kind: str, level: int = 0) -> Histogram:
    rows = [(row["bin"], row["count"]) for row in counts if row["kind"] == kind and row["level"] == level]
    bins, sizes = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return Histogram.of(noise.unsigned(bins), sizes)


def _count(counts: list[Any], kind: str) -> int:
    return sum(row["count"] for row in counts if row["kind"] == kind)


def _drawn(resource: str, rows: list[Any]) -> NoiseEvidence:
    """Signed deviations in equal bins, to three times what 99 % are within."""
    pairs = [(row["bin"], row["count"]) for row in rows if row["resource"] == resource and row["kind"] == noise.NOISE]
    bins, sizes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    values = noise.middle_of(bins)
    widest = Histogram.of(noise.unsigned(bins), sizes).quantile(0.99) if len(bins) else 0.0
    end = max(1.5 * float(np.nan_to_num(widest)), 1e-3)
    counts, _ = np.histogram(np.clip(values, -end, end), bins=60, range=(-end, end), weights=sizes)
    return NoiseEvidence(resource, Drawn(-end, end, tuple(int(count) for count in counts)))


def _together(windows: BrokerWindows, resources: list[str], tell: Tell) -> tuple[dict[tuple[str, str], float], CpuFound]:
    """How pairs of resources go together, and what cpu is spent on."""
    names = [name for name in MEASURED if name in resources]
    wide = correlation.wide(windows, names).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        row = correlation.covariances(wide, names).first()
        found = correlation.correlations(row.asDict() if row is not None else {})
        cpu = broker_cpu(wide)
    finally:
        wide.unpersist()
    tell(f"correlations found; cpu cost: {cpu.words}")
    return found, cpu


def _confidences(capacity: Capacities) -> str:
    of_each = Counter(estimate.confidence for estimate in capacity.estimates)
    return ", ".join(f"{of_each[name]} of {name} confidence" for name in ("high", "medium", "low") if of_each[name]) or "none"
