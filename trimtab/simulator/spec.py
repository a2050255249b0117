"""What a simulated cluster is made of, and what its admin calls answer. Records only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import FloatArray

MB = 1_000_000.0
GB = 1_000_000_000.0


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """A broker and what it can carry: bytes/s, bytes, cores. `counts` are capacities of counts, such as
    `replicas`."""

    id: int
    rack: str | None = None
    network_in: float = 125 * MB
    network_out: float = 125 * MB
    disk: float = 500 * GB
    disk_write: float = 250 * MB
    cores: float = 8.0
    counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TopicSpec:
    """A topic, its placement and its traffic.

    Attributes
    ----------
    assignment
        Wire ids per partition, preferred leader first.
    produce
        float64 [partitions], bytes/s on average.
    consumers
        How often each byte is read by consumers.
    retention
        float64 [partitions], bytes kept.
    filled
        Share of the retention that is on disk already when the topic is created.
    """

    name: str
    assignment: tuple[tuple[int, ...], ...]
    produce: FloatArray
    consumers: float = 1.0
    retention: FloatArray = field(default_factory=lambda: np.array([GB]))
    filled: float = 0.0


class ErrorCode(StrEnum):
    """Answers of Kafka's admin calls that the simulator gives, by their Kafka names."""

    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
    INVALID_REPLICA_ASSIGNMENT = "INVALID_REPLICA_ASSIGNMENT"
    NO_REASSIGNMENT_IN_PROGRESS = "NO_REASSIGNMENT_IN_PROGRESS"
    PREFERRED_LEADER_NOT_AVAILABLE = "PREFERRED_LEADER_NOT_AVAILABLE"
    ELECTION_NOT_NEEDED = "ELECTION_NOT_NEEDED"
    REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
    NOT_CONTROLLER = "NOT_CONTROLLER"

    @property
    def retriable(self) -> bool:
        return self in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one partition of a request was not done."""

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in progress. `copied` and `remaining` are bytes over all adding replicas."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    copied: float
    remaining: float
