"""What a collector reads of a broker at one moment: logs and counters, as they stand.

Made by the modules of `metrics_reporter.collectors`, turned into samples by `metrics_reporter.loads`. Plain
values; nothing here knows where they came from or computes with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

Partition = tuple[str, int]

REMIND_SECONDS = 300.0  # a failure that lasts is logged at first, and again after so long

# The controllers' own log shows up among a broker's, but no plan may touch it.
METADATA_TOPIC = "__cluster_metadata"

# Counters of a whole broker; brokers keep bytes and requests for each topic as well.
BYTES_IN, BYTES_OUT = "bytes_in", "bytes_out"  # from producers; to consumers, followers not counted
REPLICATION_IN, REPLICATION_OUT = "replication_in", "replication_out"
PRODUCE_REQUESTS, FETCH_REQUESTS = "produce_requests", "fetch_requests"
CPU_SECONDS = "cpu_seconds"
# Request of kafka.network:type=RequestMetrics,name=LocalTimeMs -> metric: what the broker itself takes for it, without waiting for others.
LOCAL_TIMES = {"Produce": "produce_latency_ms", "FetchConsumer": "fetch_latency_ms"}
NIC_IN, NIC_OUT = "nic_in", "nic_out"  # of the host


class LogReading(NamedTuple):
    """One replica's log. Offsets are None where the collector does not see them, `leads` and `in_sync` where
    it does not know."""

    size: int
    start: int | None = None
    end: int | None = None
    leads: bool | None = None
    in_sync: bool | None = None


@dataclass(frozen=True, slots=True)
class Logs:
    """Logs of all replicas on the broker."""

    of: Mapping[Partition, LogReading]


@dataclass(frozen=True, slots=True)
class Counters:
    """Values that only grow while the process that counts them lives.

    Attributes
    ----------
    epoch
        When that process started; another value means that the counters started again. None where unknown.
    broker
        Counter -> value.
    topics
        Counter -> topic -> value; a counter that is kept for no topic at all is not in it.
    """

    epoch: float | None
    broker: Mapping[str, float]
    topics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """All that one collector read in one round; a part is None where it does not read such things."""

    logs: Logs | None = None
    counters: Counters | None = None
    capacity: Mapping[str, float] = field(default_factory=dict)  # metric -> what the broker can carry
    disk: float | None = None  # bytes used on the disks of the logs
    latencies: Mapping[str, float] = field(default_factory=dict)  # metric -> 99th percentile, ms


class CollectError(Exception):
    """A collector could not read; the message says what it expected, what it found, and where."""


class Collector(Protocol):
    """Reads one source of metrics beside the broker."""

    @property
    def name(self) -> str: ...

    def collect(self) -> Reading:
        """What the source says now.

        Raises
        ------
        CollectError
            It does not answer, or not sensibly; the next round asks again.
        """
        ...

    def close(self) -> None: ...
