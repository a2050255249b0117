"""What the model takes in: the shape of a decoded batch, and a count of what became of it.

`metrics_reporter.columns.BatchColumns` has this shape, as may any other decoder's result; so this room needs no
reporter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cluster_model.resources import MEASURED
from cluster_model.snapshot import FloatArray, IntArray

# Scopes of a block: what its values are about.
BROKER, LEADER, FOLLOWER, REPLICA, CAPACITY = range(5)

CONSUMER_OUT = "consumer_out"  # bytes/s that consumers fetch from a leader; `network_out` has followers too
REPLICA_METRICS: frozenset[str] = frozenset({*MEASURED, CONSUMER_OUT})
GAUGES: frozenset[str] = frozenset({"disk"})  # the newest value counts; everything else is a rate


class ObservedBlock(Protocol):
    """Values of one scope, as in `metrics_reporter.columns.SampleColumns`; scopes are BROKER 0, LEADER 1,
    FOLLOWER 2, REPLICA 3 (role unknown), CAPACITY 4."""

    @property
    def scope(self) -> int: ...
    @property
    def metrics(self) -> Sequence[str]: ...
    @property
    def topic(self) -> IntArray: ...
    @property
    def partition(self) -> IntArray: ...
    @property
    def values(self) -> FloatArray: ...


class ObservedBatch(Protocol):
    """What one broker measured in one interval, as in `metrics_reporter.columns.BatchColumns`."""

    @property
    def broker(self) -> int: ...
    @property
    def time_ms(self) -> int: ...
    @property
    def window_ms(self) -> int: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def blocks(self) -> Sequence[ObservedBlock]: ...


@dataclass(slots=True)
class IngestCounts:
    """What became of batches and values since the model started."""

    batches: int = 0
    repeated: int = 0  # batches delivered before, or so late that it cannot be told
    ahead: int = 0  # batches from a clock that runs ahead
    values: int = 0  # counted into loads
    too_old: int = 0  # values older than every window, of which something newer is known
    senseless: int = 0  # values that are negative, infinite or beyond all reason
    earlier: int = 0  # values of a deleted topic whose name is used again, or was
    unknown: int = 0  # values of partitions or brokers that the metadata did not bring in time
    elsewhere: int = 0  # values of replicas that the metadata places on other brokers, and went on doing so
    crowded_out: int = 0  # values that waited for metadata when there was no more room
