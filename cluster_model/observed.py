"""What the model takes in: the shape of a decoded batch, and a count of what became of it.

`metrics_reporter.columns.BatchColumns` has this shape, as may any other decoder's result; so this room needs no
reporter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cluster_model.snapshot import FloatArray, IntArray

# Scopes of a block: what its values are about.
BROKER, LEADER, FOLLOWER, REPLICA, CAPACITY = range(5)


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
    """What became of batches, replica rows and values since the model began."""

    batches: int = 0
    values: int = 0  # counted into loads
    repeated: int = 0  # batches delivered before
    too_old: int = 0  # batches older than the horizon
    ahead: int = 0  # batches from a clock that runs ahead
    unknown: int = 0  # rows of partitions or brokers that the metadata does not have
    elsewhere: int = 0  # rows of a replica that the metadata places on other brokers
    senseless: int = 0  # values that are negative or infinite
