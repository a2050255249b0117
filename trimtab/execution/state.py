"""What an execution wants, what it sees, and how far each partition is. Values only; no clock and no cluster.

Made by ports and by the engine, read by the transition planner. Broker ids are those on the wire; replica lists have the preferred
leader first; sizes are bytes, times milliseconds of Unix time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, NamedTuple

Undo = Literal["", "cancel", "rollback"]


class Partition(NamedTuple):
    """A topic-partition; equal to any other pair of the same names."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


class Stage(StrEnum):
    """How far a partition is."""

    WAITING = "waiting"
    ASKED = "asked"  # its reassignment was asked for, and was not seen yet
    MOVING = "moving"  # its reassignment was seen in progress
    PLACED = "placed"  # its replica list is as wanted; its leader may not be
    DONE = "done"
    BACK = "back"  # as it was before the execution
    SKIPPED = "skipped"  # never touched, with the reason
    FAILED = "failed"

    @property
    def begun(self) -> bool:
        """Whether its reassignment may be in progress."""
        return self in (Stage.ASKED, Stage.MOVING)

    @property
    def final(self) -> bool:
        return self in (Stage.DONE, Stage.BACK, Stage.SKIPPED, Stage.FAILED)


@dataclass(frozen=True, slots=True)
class Task:
    """One partition to bring from `source` to `target`, and what it is worth.

    Attributes
    ----------
    source_leader, leader
        Who led when the plan was made, and who is to lead; None where that does not matter.
    size
        Bytes of one replica, as far as known.
    value
        Larger first: how much the plan's actions on this partition improve, per byte to copy.
    undo
        Whether this is the way back: ``cancel`` only where the way there is not complete, ``rollback`` in any case.
    why
        Why it goes back.
    batch
        Number of the batch that it is in, from 1; 0 where the plan has none. What goes back keeps it, and waits for no batch.
    """

    name: Partition
    source: tuple[int, ...]
    target: tuple[int, ...]
    source_leader: int | None = None
    leader: int | None = None
    size: float = 0.0
    value: float = 0.0
    undo: Undo = ""
    why: str = ""
    batch: int = 0

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(b for b in self.target if b not in self.source)

    @property
    def removing(self) -> tuple[int, ...]:
        return tuple(b for b in self.source if b not in self.target)

    @property
    def gap(self) -> bool:
        """Whether its only replica goes elsewhere, so that it has no leader for a moment."""
        return len(self.source) == 1 and bool(self.removing)

    @property
    def to_copy(self) -> float:
        """Bytes to copy in all."""
        return self.size * len(self.adding)

    def back(self, undo: Undo, why: str) -> Task:
        """The way back; of the way back itself, the same with another reason."""
        if self.undo:
            return replace(self, undo=undo, why=why)
        return Task(self.name, self.target, self.source, self.leader, self.source_leader, self.size, self.value, undo, why, self.batch)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far one partition is, and why where that needs a reason.

    `attempts` counts how often the present step was asked for; `touched` says whether any step ever was.
    """

    stage: Stage = Stage.WAITING
    reason: str = ""
    attempts: int = 0
    touched: bool = False


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """A partition as the cluster describes it. During a reassignment `replicas` holds both lists: the new one, then what goes."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replica list, or what it becomes when the reassignment in progress is complete."""
        return tuple(b for b in self.replicas if b not in self.removing)

    @property
    def lagging(self) -> tuple[int, ...]:
        """Replicas that should be in sync and are not; those being added are not expected to be."""
        return tuple(b for b in self.replicas if b not in self.isr and b not in self.adding)


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """A broker as the cluster describes it. `free` is the room of its fullest log directory in bytes, None where not known;
    `down_ms` is for how long it has not been alive."""

    rack: str | None = None
    alive: bool = True
    free: float | None = None
    down_ms: int = 0


@dataclass(frozen=True)
class Observed:
    """The cluster at one moment, as far as it bears on the next step."""

    cluster_id: str
    at_ms: int
    brokers: Mapping[int, SeenBroker]
    partitions: Mapping[Partition, SeenPartition]
    min_isr: Mapping[str, int] = field(default_factory=dict)  # by topic; 1 where it is not named
    copied: Mapping[Partition, float] = field(default_factory=dict)  # bytes that adding replicas have, of those in progress

    def alive(self, broker: int) -> bool:
        seen = self.brokers.get(broker)
        return seen is not None and seen.alive

    def needed_in_sync(self, name: Partition) -> int:
        """Replicas that have to be in sync for producers with acks=all; never more than there are."""
        seen = self.partitions[name]
        return min(self.min_isr.get(name.topic, 1), len(seen.target))


@dataclass(frozen=True, slots=True)
class Limits:
    """What the steps of an execution may do at once.

    Attributes
    ----------
    into, out_of
        Replicas copied into a broker, and from a leader on it, at a time.
    cluster
        Partitions reassigned at a time.
    elections
        Leaders elected in one `election_ms`, steps by which a partition has no leader for a moment included.
    reserve
        Bytes that stay free on every log directory.
    racks
        Whether no step may lower the number of racks of a partition, unless it repairs.
    patience_ms
        After so long a target that is down makes its step be taken back.
    attempts
        Steps asked for on one partition, at most.
    """

    into: int = 5
    out_of: int = 5
    cluster: int = 50
    elections: int = 100
    election_ms: int = 1_000
    reserve: float = 1e9
    racks: bool = True
    patience_ms: int = 60_000
    attempts: int = 5
