"""What an admin interface says of a cluster, and the seams through which the followers ask it.

Filled by `trimtab.capture.gateway`, which talks to Kafka; `follower` and `polling` use it. Plain values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class QuorumReport:
    """What the quorum of controllers says of itself; a high watermark of 0 or less is not known yet."""

    leader: int | None
    epoch: int
    high_watermark: int


class Quorum(Protocol):
    """Where the high watermark is asked for."""

    def quorum(self) -> QuorumReport:
        """The state of the metadata quorum now.

        Raises
        ------
        ExternalError
            It could not be learned. Retriable: the follower waits; otherwise the follower gives up.
        """


@dataclass(frozen=True, slots=True)
class DescribedBroker:
    id: int
    rack: str | None
    fenced: bool


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    number: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    name: str
    topic_id: str
    partitions: Sequence[DescribedPartition]


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """What an admin interface says of a cluster, at nearly one moment.

    `reassigning` has the adding and the removing replicas of (topic, partition). `unreadable` are topics that it
    names but does not describe, with its reason. `quorum` is None where it does not tell.
    """

    cluster_id: str
    brokers: Sequence[DescribedBroker]
    topics: Sequence[DescribedTopic]
    reassigning: Mapping[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    quorum: QuorumReport | None = None


class AdminInterface(Protocol):
    """What is asked."""

    def describe(self) -> ClusterDescription:
        """The cluster as it is now.

        Raises
        ------
        ExternalError
            It could not be learned. Retriable: the follower waits; otherwise the follower gives up.
        """
