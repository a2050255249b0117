"""What was read from a cluster: its topology, and counters at one moment with the time each was read.

Filled by `trimtab.capture.gateway` and `placement`, used by `rates` and `assemble`. Plain values; nothing here talks to a
cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from cluster_model.metadata.description import ClusterDescription, DescribedBroker

TopicPartition = tuple[str, int]
MOMENT = 64 * 1024 * 1024  # bytes that a volume may gain or lose between two questions


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


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory: bytes of its volume, bytes that are free there, and bytes of the logs in it."""

    path: str
    total: int
    usable: int
    logs: int = 0

    @property
    def used(self) -> float:
        """Share of the volume, 0..1."""
        return 1.0 - self.usable / self.total if self.total > 0 else 0.0


@dataclass(frozen=True, slots=True)
class LogSizes:
    """Bytes of every replica's log on one broker, at `at` seconds of a monotonic clock. `dirs` are its log directories that are online,
    where the broker tells of volumes (Kafka 3.3 on)."""

    at: float
    sizes: Mapping[TopicPartition, int]
    offline_dirs: tuple[str, ...] = ()
    moving: int = 0  # replicas on their way to another log directory of the broker
    dirs: tuple[LogDir, ...] = ()
    held: Mapping[TopicPartition, int] = field(default_factory=dict)  # position in `dirs`, where there are several
    future: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)  # that of a moving replica, and bytes that are there

    @property
    def volumes(self) -> tuple[LogDir, ...]:
        """One directory of each volume, with the logs of all that are on it.

        A broker does not say which directories share a volume. Those do whose volumes are as large and have as much room (it changes a
        little from one question to the next), unless their logs together are more than the volume holds.
        """
        return tuple(self._by_volume()[0].values())

    @property
    def volume_of(self) -> tuple[int, ...]:
        """Of each directory, the position of the first one on the same volume."""
        return tuple(self._by_volume()[1])

    def _by_volume(self) -> tuple[dict[int, LogDir], list[int]]:
        """The first directory of each volume by position, with the logs of all that are on it; and of each directory that position."""
        found: dict[int, LogDir] = {}
        first: list[int] = []
        for at, one in enumerate(self.dirs):
            for i, known in found.items():
                alike = known.total == one.total and abs(known.usable - one.usable) <= MOMENT
                if alike and known.logs + one.logs <= one.total - one.usable + MOMENT:
                    found[i] = replace(known, logs=known.logs + one.logs)
                    first.append(i)
                    break
            else:
                found[at] = one
                first.append(at)
        return found, first


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
