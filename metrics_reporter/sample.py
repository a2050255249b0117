"""What a reporter measures: samples, and the batches they travel in.

Made by collectors beside a broker, encoded by `metrics_reporter.codec`. Standard library only, since the
reporter runs beside brokers without numpy; knows nothing of topics, models or clocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Scope(IntEnum):
    """What a value is about. A replica's role is the reporter's own knowledge at the time of measuring."""

    BROKER = 0  # use of the whole broker
    LEADER = 1  # a replica, while it led its partition
    FOLLOWER = 2  # a replica, while it was an in-sync follower
    REPLICA = 3  # a replica whose role the reporter does not know
    CAPACITY = 4  # what the whole broker can carry


BROKER_SCOPES = frozenset({Scope.BROKER, Scope.CAPACITY})

# What stands before a metric's name in a history, whose columns have no scope (docs/history.md); with `topic` (null: the
# broker) it tells what a row is about.
HISTORY_PREFIXES: dict[Scope, str] = {
    Scope.BROKER: "",
    Scope.LEADER: "",
    Scope.FOLLOWER: "follower.",
    Scope.REPLICA: "replica.",
    Scope.CAPACITY: "capacity.",
}

# Wire ids never change their meaning; a reader ignores ids it does not know, so additions need no new
# version.
METRIC_IDS: dict[str, int] = {
    "network_in": 1,  # bytes/s
    "network_out": 2,  # bytes/s, consumers and followers together
    "cpu": 3,  # cores
    "disk": 4,  # bytes
    "produce_rate": 5,  # requests/s
    "fetch_rate": 6,  # requests/s
    "consumer_out": 7,  # bytes/s that consumers fetch, followers not counted
    "replicas": 8,  # count; capacity only
    "leaders": 9,  # count; capacity only
    "produce_latency_ms": 10,  # of the broker: 99th percentile of its own part of produce requests
    "fetch_latency_ms": 11,  # the same of consumers' fetches
    "append_pending_ms": 12,  # of the broker: age of the oldest append that is not done (AutoMQ)
    "fetch_pending_ms": 13,  # the same of fetches
}
METRIC_NAMES: dict[int, str] = {number: name for name, number in METRIC_IDS.items()}


class Sample(NamedTuple):
    """One value. `topic` and `partition` are None for broker scopes; `metric` is a name of `METRIC_IDS`."""

    scope: Scope
    topic: str | None
    partition: int | None
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """Who measured, when, and over how long.

    Attributes
    ----------
    broker
        Wire id.
    time_ms
        End of the interval that the rates are averaged over, Unix milliseconds by the broker's clock.
    window_ms
        Length of that interval; 0 where the values are instantaneous.
    incarnation, sequence
        Start of the reporter's process (any number that rises from start to start) and number of the batch
        within it, so that a batch delivered twice counts once.
    """

    broker: int
    time_ms: int
    window_ms: int
    incarnation: int
    sequence: int


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """Samples of one broker and one interval."""

    header: BatchHeader
    samples: tuple[Sample, ...]
