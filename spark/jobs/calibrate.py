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
from goals.calibration import Calibration, Correlation, HistorySpan
from spark import outgoing
from spark.blocks import Tally, counted
from spark.history import known
from spark.history.read import read_samples
from spark.history.sift import REASON, reason
from spark.jobs.brokers import Capacities, broker_capacities, broker_cpu
from spark.jobs.days import Days, days_of
from spark.jobs.hours import Hours, Levels, levels_of
from spark.jobs.partitions import partition_loads
from spark.jobs.resources import Counted, Detection, described, in_order
from spark.kept import Place, kept_rows
from spark.methods import correlation, noise, season
from spark.methods.bins import Histogram
from spark.methods.profile import Profile
from spark.report.evidence import MOST_POINTS, CalibrationEvidence, LevelEvidence, NoiseEvidence
from spark.report.evidence import Histogram as Drawn
from spark.schemas import BrokerWindows
from spark.windows import brokers_of, partitions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]
JOBS = 13  # of Spark that a calibration takes


@dataclass(frozen=True)
class Request:
    """What is calibrated from, and for which detection. Times are aware; `loads` is where the loads of partitions are written,
    any URI that Spark takes. `once`: a sample that the history has twice counts once, for which the history may be read twice. `blocks`:
    where finished days are kept as blocks (`spark.kept`)."""

    history: str
    detection: Detection
    loads: str | None = None
    cluster_id: str | None = None
    begin: datetime | None = None
    end: datetime | None = None
    once: bool = False
    blocks: str | None = None


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
    judged, rows = samples.frame.withColumn(REASON, reason(F.lit(now))), None
    if request.blocks is not None:
        place = Place(request.blocks, request.history, request.cluster_id, now.astimezone(UTC).date())
        rows = kept_rows(spark, judged, window, request.once, place)
    with counted(judged, window, request.once, rows=rows) as (blocks, seen):
        tell(seen.told)
        if seen.begin_ms is None or seen.end_ms is None:
            raise InputError(request.history, [Problem("", f"expected samples that count, found none: {seen.told}")])
        missing = known.told(seen.metrics)
        for sentence in missing:
            tell(sentence)
        with outgoing.kept(blocks, seen.metrics) as complete:
            held = brokers_of(complete, window).frame.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                brokers = BrokerWindows(held)
                levels = levels_of(brokers)
                number = sum(one.windows for one in levels.found.values())
                tell(f"averaged over windows of {window / 60:g} min: {number:,} windows of {levels.brokers} brokers")
                profiles = {name: one.hours.profile for name, one in levels.found.items() if one.hours.profile is not None}
                tell(f"seasons and growth measured{_profiles(profiles)}")
                days = days_of(brokers, request.detection, {name: one.capacity for name, one in levels.found.items()}, profiles)
                tell(f"noise separated from imbalance in {', '.join(sorted({row['resource'] for row in days.counts}))}")
                capacity = broker_capacities(brokers)
                tell(f"capacities of brokers: {_confidences(capacity)}")
                cpu = broker_cpu(brokers, levels.found["cpu"].windows if "cpu" in levels.found else 0)
                tell(f"cpu cost: {cpu.words}")
            finally:
                held.unpersist()
            partitions = partition_loads(partitions_of(complete, window), seen.end_ms, request.loads, tell)
    resources = _resources(levels, days, seen)
    calibration = Calibration(
        version=1,
        cluster_id=seen.cluster_id,
        made_at=_instant(now),
        history=HistorySpan(
            begin=_instant(datetime.fromtimestamp(seen.begin_ms / 1000, UTC)),
            end=_instant(datetime.fromtimestamp(seen.end_ms / 1000, UTC)),
            window=float(request.detection.window),
            samples=seen.taken,
            rejected=dict(seen.reasons),
            brokers=levels.brokers,
            partitions=partitions.count,
            digest=seen.digest,
        ),
        resources=in_order({
            name: described(name, one, request.detection, len(resources.found)) for name, one in resources.found.items()
        }),
        capacity=capacity.estimates,
        cpu_cost=cpu.cost,
        topics=partitions.topics,
        correlations=[
            Correlation(resources=list(pair), value=round(value, 4)) for pair, value in correlation.correlations(days.together).items()
        ],
    )  # fmt: skip
    evidence = CalibrationEvidence(
        noise=resources.drawn, levels=resources.levels, capacity=capacity.shown, cpu=cpu.shown, forecasts=partitions.forecasts,
        notes=(*missing, *(() if cpu.cost is not None else (f"cpu cost: not known; {cpu.words}",))),
    )  # fmt: skip
    return Made(calibration, evidence)


def _instant(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- resources of brokers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Resources:
    found: dict[str, Counted]
    drawn: tuple[NoiseEvidence, ...]
    levels: tuple[LevelEvidence, ...]


def _resources(levels: Levels, days: Days, seen: Tally) -> _Resources:
    """What is known of each measured resource of brokers."""
    found = {}
    for name, level in levels.found.items():
        counts = [row for row in days.counts if row["resource"] == name]
        one, week = level.hours, level.hours.season
        found[name] = Counted(
            mean=level.mean, brokers=level.brokers, windows=level.windows, whole=seen.reporters.get(name, 0),
            noise=_by_level(counts), alarm=_histogram(counts, noise.ALARM), spread=_histogram(counts, noise.SPREAD),
            days=_count(counts, noise.DAYS), settled=_count(counts, noise.SETTLED), weekly=_taken(one.profile), benefit=one.benefit,
            growth=one.growth, strength=None if week is None else week.strength, cycle=None if week is None else week.cycle,
            profile=None if week is None else week.profile,
        )  # fmt: skip
    drawn = tuple(_drawn(name, days.counts) for name in found)
    return _Resources(found, drawn, tuple(_level(name, one.hours) for name, one in levels.found.items()))


def _taken(one: Profile | None) -> int:
    return 0 if one is None else int(one.taken.sum())


def _profiles(found: Mapping[str, Profile]) -> str:
    told = ", ".join(f"{_taken(one)} of {len(one.brokers)} brokers in {name}" for name, one in sorted(found.items()))
    return f"; weekly pattern found for {told}" if told else ""


def _level(resource: str, found: Hours) -> LevelEvidence:
    """The mean of a broker over time, in at most `MOST_POINTS` stretches that are whole hours."""
    length = max(1, -(-int(found.hours[-1] - found.hours[0] + 1) // MOST_POINTS))
    stretch, place = np.unique(found.hours // length, return_inverse=True)
    mean = np.bincount(place, found.level) / np.bincount(place)
    times = tuple(_instant(datetime.fromtimestamp(int(one) * length * season.HOUR, UTC)) for one in stretch)
    return LevelEvidence(resource, times, tuple(mean.tolist()))


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
    """Signed deviations in equal bins, to three times what 99% are within."""
    pairs = [(row["bin"], row["count"]) for row in rows if row["resource"] == resource and row["kind"] == noise.NOISE]
    bins, sizes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    values = noise.middle_of(bins)
    widest = Histogram.of(noise.unsigned(bins), sizes).quantile(0.99) if len(bins) else 0.0
    end = max(1.5 * float(np.nan_to_num(widest)), 1e-3)
    counts, _ = np.histogram(np.clip(values, -end, end), bins=60, range=(-end, end), weights=sizes)
    return NoiseEvidence(resource, Drawn(-end, end, tuple(int(count) for count in counts)))


def _confidences(capacity: Capacities) -> str:
    of_each = Counter(estimate.confidence for estimate in capacity.estimates)
    return ", ".join(f"{of_each[name]} with {name} confidence" for name in ("high", "medium", "low") if of_each[name]) or "none"
