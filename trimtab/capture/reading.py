"""What was read from a cluster: its topology, and counters at one moment with the time each was read.

Filled by `trimtab.capture.gateway` and `placement`, used by `rates` and `assemble`. Plain values; nothing here talks to a
cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cluster_model.metadata.description import ClusterDescription, DescribedBroker

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """One partition; `replicas` are those it has now, `target` those it will have when a reassignment is
    over."""

    replicas: tuple[int, ...]
    target: tuple[int, ...]
    leader: int | None
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """Brokers and partitions. `unreadable` are topics the cluster names but does not describe, with its
    reason; `notes` say where it comes from."""

    cluster_id: str
    brokers: Mapping[int, DescribedBroker]
    partitions: Mapping[TopicPartition, PartitionEntry]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def led(topology: Topology, topics: Collection[str]) -> dict[int, list[TopicPartition]]:
    """Partitions of some topics, by the broker that leads them."""
    found: dict[int, list[TopicPartition]] = {}
    for key, entry in topology.partitions.items():
        if entry.leader is not None and key[0] in topics:
            found.setdefault(entry.leader, []).append(key)
    return found


def topology_of(description: ClusterDescription) -> Topology:
    """The topology that an admin interface described."""
    partitions = {
        (topic.name, p.number): partition_entry(
            p.replicas, description.reassigning.get((topic.name, p.number), ((), ()))[1], p.leader, p.offline
        )
        for topic in description.topics
        for p in topic.partitions
    }
    brokers = {broker.id: broker for broker in description.brokers}
    return Topology(description.cluster_id, brokers, partitions, description.unreadable)


def partition_entry(
    replicas: tuple[int, ...], removing: tuple[int, ...], leader: int | None, offline: tuple[int, ...]
) -> PartitionEntry:
    """A partition whose `removing` replicas a reassignment takes away."""
    staying = tuple(b for b in replicas if b not in removing)
    return PartitionEntry(replicas, staying or replicas, leader, offline)


@dataclass(frozen=True, slots=True, order=True)
class Volume:
    """Bytes of the file system that a log directory is on: in all, and free."""

    total: int
    usable: int


@dataclass(frozen=True, slots=True)
class LogSizes:
    """Bytes of every replica's log on one broker, at `at` seconds of a monotonic clock."""

    at: float
    sizes: Mapping[TopicPartition, int]
    offline_dirs: tuple[str, ...] = ()
    moving: int = 0  # replicas on their way to another log directory of the broker
    disks: tuple[Volume, ...] = ()  # of the log directories; none where the broker does not tell (before Kafka 3.3)


@dataclass(frozen=True, slots=True)
class LogEnds:
    """End and start offset of every partition that one broker leads; `at` is when the end was read."""

    at: float
    ends: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Commits:
    """Committed offsets of the consumer groups that one broker coordinates; `unknown` are groups it would
    not tell of."""

    at: float
    offsets: Mapping[str, Mapping[TopicPartition, int]]
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerReading:
    """What one broker answered; a part is None where it was not asked or not told.

    `answered` is False where the broker could not be reached at all. `errors` says what went wrong, part by
    part.
    """

    sizes: LogSizes | None = None
    ends: LogEnds | None = None
    commits: Commits | None = None
    answered: bool = True
    errors: tuple[str, ...] = ()


Reading = Mapping[int, BrokerReading]
"""Counters of the whole cluster at (nearly) one moment, by broker."""
