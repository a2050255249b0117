"""What a synthetic history is made from: every figure that a calibration should find again, and the cluster drawn from them.

Called by `tests.histories.rows`, which turns it into samples, and by tests, which compare a calibration with it. Knows
nothing of Arrow, files or Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from tests.clusters.loads import FloatArray, IntArray, Loads, draw_loads
from tests.clusters.synthetic import balanced, topic_names

Pattern = Literal["steady", "cyclic", "growing", "bursty"]
Damage = Literal["nan", "negative", "duplicate", "future", "spike"]

HOUR, DAY, WEEK = 3_600, 86_400, 604_800
FUTURE = 3_650 * DAY  # how far ahead a wrong clock is
SPIKE = 1_000.0  # how many times too large a misread value is
KNEE = 20.0  # how sharply throughput stops at capacity
WORST_LATENCY = 50.0  # over that of an idle broker
PER_BATCH, PER_FETCH = 2.0e4, 1.0e5  # typical bytes of a produce request and of a fetch answer
LEADER_METRICS = ("network_in", "network_out", "consumer_out", "produce_rate", "fetch_rate", "disk")
FOLLOWER_METRICS = ("follower.network_in", "follower.disk")


@dataclass(frozen=True)
class CpuTruth:
    """Cores of an idle broker, and core seconds per byte in, byte out, produce request and fetch request."""

    idle: float = 0.5
    byte_in: float = 2.0e-8
    byte_out: float = 1.0e-8
    produce: float = 4.0e-4
    fetch: float = 8.0e-4
    noise: float = 0.02  # share of the value, each sample


@dataclass(frozen=True)
class Truth:
    """A cluster and its past. Frozen and seeded: equal truths give equal samples.

    Attributes
    ----------
    begin, interval, span
        First instant, a multiple of a day (Unix seconds, UTC; the default is a Monday); seconds between samples; seconds.
    noise, noise_hold
        Standard deviation of a broker's load as a share of what it should be, by resource, drawn again every `noise_hold`
        seconds (0: every sample). At a window of `noise_hold` it is the natural deviation of a window's mean.
    partition_noise
        The same of each replica's every sample, on top. Averages out on a broker.
    daily, weekend, peak_hour
        Amplitude of the day's cosine, drop on Saturday and Sunday, hour of the day (UTC) of the peak.
    growth, topic_growth
        Share of the mean a week, linear: of everything; of growing topics, in addition.
    growing, bursty, steady
        Shares of the topics that grow, burst, do not go with day and week. Others are cyclic.
    burst, burst_share
        How many times its level a bursty topic has in a burst; share of the hours that are bursts.
    imbalance
        Sigma of the lognormal weights in whose proportion brokers are loaded, all the time. 0: balanced.
    moves
        (seconds after `begin`, share of the partitions): then so many leaders and as many followers move to other brokers.
    capacity, capacity_spread
        What a broker can carry of `network_in` over the mean broker's load, and how unlike brokers are (sigma); None: no limit.
        Near it throughput is capped and latency rises as in a queue.
    reports_capacity
        Share of the brokers that report it.
    missing, corrupt, damage
        Shares of the rows that are left out, and damaged, in equal parts in each of these ways.
    partition_metrics
        Which of `LEADER_METRICS` and `FOLLOWER_METRICS` replicas report; brokers report all resources and latencies.
    """

    brokers: int = 12
    partitions: int = 240
    replication: int = 3
    racks: int = 0  # 0: each broker is one
    begin: int = 1_789_948_800  # 2026-09-21, a Monday
    interval: int = 60
    span: int = DAY
    noise: tuple[tuple[str, float], ...] = (("network_in", 0.05), ("network_out", 0.05))
    noise_hold: int = 300
    partition_noise: float = 0.05
    daily: float = 0.4
    weekend: float = 0.3
    peak_hour: float = 14.0
    growth: float = 0.0
    topic_growth: float = 0.15
    growing: float = 0.0
    bursty: float = 0.0
    steady: float = 0.0
    burst: float = 6.0
    burst_share: float = 0.04
    imbalance: float = 0.0
    moves: tuple[tuple[float, float], ...] = ()
    capacity: float | None = None
    capacity_spread: float = 0.1
    reports_capacity: float = 0.0
    latency_ms: float = 4.0
    latency_noise: float = 0.15
    latency_slope: float = 0.3  # rise of latency with load where there is no limit, over the mean load; no bend
    cpu: CpuTruth = field(default_factory=CpuTruth)
    missing: float = 0.0
    corrupt: float = 0.0
    damage: tuple[Damage, ...] = ("nan", "negative", "duplicate", "future")
    partition_metrics: tuple[str, ...] = ("network_in", "network_out", "follower.network_in")
    cluster_id: str = "synthetic"
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = set(self.partition_metrics) - {*LEADER_METRICS, *FOLLOWER_METRICS}
        if unknown:
            raise ValueError(f"expected partition metrics of {LEADER_METRICS + FOLLOWER_METRICS}, found {sorted(unknown)}")
        if self.begin % DAY or DAY % self.interval:
            raise ValueError("begin is midnight UTC, and a day has a whole number of intervals")
        if self.brokers < self.replication:
            raise ValueError(f"{self.replication} replicas need as many brokers, found {self.brokers}")

    @property
    def steps(self) -> int:
        """Sampling intervals in the span."""
        return max(1, self.span // self.interval)

    def season(self, time: FloatArray) -> FloatArray:
        """Level at Unix times over the mean level of a week."""
        whole = self._shape(np.arange(30.0, WEEK, 60.0))
        return self._shape(time) / float(whole.mean())

    def profile(self) -> FloatArray:
        """float64 [168]: mean of `season` in each hour of the week, 0 is Monday 00:00 UTC."""
        monday = 4 * DAY  # 1970-01-05
        found: FloatArray = self.season(np.arange(monday + 30.0, monday + WEEK, 60.0)).reshape(168, 60).mean(axis=1)
        return found

    def level(self, time: FloatArray, growth: float) -> FloatArray:
        """Linear growth about the middle of the span, where it is 1; never below 0.05."""
        return np.maximum(1.0 + growth * (time - self.begin - self.span / 2) / WEEK, 0.05)

    def _shape(self, time: FloatArray) -> FloatArray:
        hour = (time % DAY) / HOUR
        weekend = ((time // DAY).astype(np.int64) + 3) % 7 >= 5
        return (1.0 + self.daily * np.cos(2 * np.pi * (hour - self.peak_hour) / 24)) * np.where(weekend, 1 - self.weekend, 1.0)


@dataclass(frozen=True)
class World:
    """The cluster of a truth. Arrays are over partitions [P], topics [T] or brokers [B]; broker ids are 1 to B.

    `placements` are (first sampling step, replicas int32 [P, RF] by row of broker, the leader first), ascending.
    """

    truth: Truth
    topics: tuple[str, ...]
    pattern: tuple[Pattern, ...]  # [T]
    topic: IntArray
    number: IntArray
    rate: FloatArray  # mean bytes/s into the leader, without growth beyond the middle of the span, bursts left out
    consumers: FloatArray
    per_batch: FloatArray  # bytes of a produce request
    per_fetch: FloatArray
    retention: FloatArray  # seconds
    placements: tuple[tuple[int, IntArray], ...]
    capacity: FloatArray | None  # [B] bytes/s in
    reporting: npt.NDArray[np.bool_]  # [B] brokers that report their capacity
    offset: FloatArray  # [B] seconds into an interval at which a broker measures

    def broker_level(self, placement: int = 0) -> FloatArray:
        """float64 [B]: expected bytes/s in, mean over a week at the middle of the span, under one of the placements."""
        replicas = self.placements[placement][1]
        held = np.repeat(self.rate, replicas.shape[1])
        return np.bincount(replicas.ravel(), held, self.truth.brokers).astype(np.float64)

    def cpu_of_partition(self) -> FloatArray:
        """float64 [P]: cores that each partition costs its leader at its mean rate."""
        cost, bytes_out = self.truth.cpu, self.rate * (self.consumers + self.truth.replication - 1)
        found: FloatArray = (
            cost.byte_in * self.rate + cost.byte_out * bytes_out
            + cost.produce * self.rate / self.per_batch + cost.fetch * bytes_out / self.per_fetch
        )  # fmt: skip
        return found


def drawn(truth: Truth) -> World:
    """The cluster that a truth describes; the same each time."""
    r = np.random.default_rng([truth.seed, truth.brokers, truth.partitions])
    loads = draw_loads(r, truth.partitions, truth.brokers, ((truth.replication, 1.0),))
    topics = loads.topic_count
    weight = np.exp(truth.imbalance * r.standard_normal(truth.brokers))
    capacity = None
    if truth.capacity is not None:
        mean = loads.total("network_in") / truth.brokers
        capacity = mean * truth.capacity * np.exp(truth.capacity_spread * r.standard_normal(truth.brokers))
    return World(
        truth=truth,
        topics=topic_names(topics, False),
        pattern=_patterns(truth, topics, r),
        topic=loads.topic,
        number=loads.number,
        rate=loads.leading["network_in"],
        consumers=(loads.fan - truth.replication + 1).astype(np.float64),
        per_batch=PER_BATCH * r.lognormal(0.0, 0.8, topics)[loads.topic],
        per_fetch=PER_FETCH * r.lognormal(0.0, 0.8, topics)[loads.topic],
        retention=loads.leading["disk"] / loads.leading["network_in"],
        placements=_placements(truth, loads, weight, r),
        capacity=capacity,
        reporting=np.arange(truth.brokers) < round(truth.reports_capacity * truth.brokers),
        offset=truth.interval * r.uniform(0.25, 0.75, truth.brokers).round(2),
    )


def _patterns(truth: Truth, topics: int, r: np.random.Generator) -> tuple[Pattern, ...]:
    found: list[Pattern] = ["cyclic"] * topics
    order = iter(r.permutation(topics))
    kinds: tuple[tuple[Pattern, float], ...] = (("growing", truth.growing), ("bursty", truth.bursty), ("steady", truth.steady))
    for kind, share in kinds:
        for _ in range(round(share * topics)):
            found[int(next(order))] = kind
    return tuple(found)


def _placements(truth: Truth, loads: Loads, weight: FloatArray, r: np.random.Generator) -> tuple[tuple[int, IntArray], ...]:
    brokers = np.arange(truth.brokers, dtype=np.int32)
    rack = brokers % truth.racks if truth.racks else brokers
    replicas = balanced(loads, rack, weight, np.ones(truth.brokers, dtype=np.bool_), int(r.integers(1, 2**31)), False)
    found = [(0, replicas)]
    for at, share in sorted(truth.moves):
        replicas = replicas.copy()
        for slot in (0, truth.replication - 1):
            moved = r.choice(len(replicas), round(share * len(replicas)), replace=False)
            while len(moved):  # to any broker that holds none of the partition
                target = r.integers(0, truth.brokers, len(moved)).astype(np.int32)
                free = (replicas[moved] != target[:, None]).all(axis=1) | (truth.brokers == truth.replication)
                replicas[moved[free], slot] = target[free]
                moved = moved[~free]
        found.append((int(at // truth.interval), replicas))
    return tuple(found)
