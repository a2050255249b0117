"""The metadata image: what a cluster's metadata says, columnar, folded from events or from records.

A follower keeps one and folds the log into it (`fold`), `cluster_model.model` keeps one and folds events. Partitions
live in *slots*, integers that stay while the partition exists, so a moved partition keeps its history. Broker ids are
the ones on the wire. No I/O; time comes in by parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cluster_model.errors import ExternalError
from cluster_model.metadata.events import (
    NO_BROKER,
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerStopping,
    BrokerUnfenced,
    ControllerChanged,
    Event,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.metadata.partition_table import PartitionTable
from cluster_model.snapshot import IntArray

_NONE_MOVING: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


@dataclass(frozen=True, slots=True)
class BrokerEntry:
    rack: str | None
    fenced_since_ms: int | None  # None while it serves
    stopping: bool = False  # in controlled shutdown; only the log tells


@dataclass(frozen=True, slots=True)
class Controller:
    """The active controller, and the epoch in which it was elected."""

    id: int
    epoch: int


class MetadataImage(PartitionTable):
    """Brokers, topics and partitions; the columns of partitions are `PartitionTable`'s.

    Attributes
    ----------
    brokers
        Wire id -> `BrokerEntry`.
    topic_ids
        Topic name -> topic id.
    controller
        The active controller, None until it is known.
    reassigning
        Slot -> (adding, removing) of the partitions with a reassignment in progress.
    """

    def __init__(self) -> None:
        super().__init__()
        self.brokers: dict[int, BrokerEntry] = {}
        self.topic_ids: dict[str, str] = {}
        self.controller: Controller | None = None
        self.reassigning: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._row_of_topic: dict[str, int] = {}
        self._names: list[str] = []
        self._free_topics: list[int] = []

    # -- what it says --------------------------------------------------------------------------------------

    def topic_names(self) -> list[str]:
        """Names by topic row; the empty string where a row is free."""
        return self._names

    def topic_rows(self, names: tuple[str, ...]) -> IntArray:
        """int32 [N]: row of each name, -1 where there is no such topic."""
        return np.array([self._row_of_topic.get(name, -1) for name in names], dtype=np.int32)

    def slots_of_topic(self, name: str) -> IntArray:
        """int32 [N]: slots of a topic's partitions in the order of their numbers; empty where there is no such
        topic."""
        row = self._row_of_topic.get(name)
        return np.empty(0, dtype=np.int32) if row is None else self.slots_of_row(row)

    def in_sync(self, slot: int) -> tuple[int, ...]:
        """Wire ids of a partition's ISR, in the order of its replicas."""
        return tuple(self.replicas[slot][self.in_sync_places[slot]].tolist())

    def partition(self, slot: int) -> PartitionChanged:
        """A partition as it is now."""
        return self.partitions(np.array([slot], dtype=np.int32))[0]

    def partitions(self, slots: IntArray) -> list[PartitionChanged]:
        """Partitions as they are now, in the order of their slots, int32 [N]."""
        placed, places = self.replicas[slots], self.in_sync_places[slots]
        beyond = placed < 0
        whole, synced = ~beyond.any(axis=1), (places | beyond).all(axis=1)
        columns = (slots, *(c[slots] for c in (self.topic_row, self.number, self.leader, self.epochs)), placed, whole, synced)
        names, reassigning, found = self._names, self.reassigning, []
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (slot, topic, number, leader, epoch, hosts, is_whole, is_synced) in enumerate(rows):
            adding, removing = reassigning.get(slot, _NONE_MOVING) if reassigning else _NONE_MOVING
            replicas = tuple(hosts) if is_whole else tuple([b for b in hosts if b >= 0])
            found.append(
                PartitionChanged(
                    names[topic],
                    number,
                    replicas,
                    replicas if is_synced else tuple([b for b, is_in in zip(hosts, places[row].tolist(), strict=True) if is_in]),
                    leader if leader >= 0 else None,
                    adding,
                    removing,
                    epoch if epoch > 0 else 0,
                )
            )
        return found

    def events(self) -> Iterator[Event]:
        """The events that bring an empty image to this one; made one by one, so do not change it meanwhile."""
        if self.controller is not None:
            yield ControllerChanged(self.controller.id, self.controller.epoch)
        for id, entry in sorted(self.brokers.items()):
            yield registered(id, entry)
        for name, topic_id in sorted(self.topic_ids.items()):
            yield TopicCreated(name, topic_id)
            yield from self.partitions(self.slots_of_topic(name))

    def absent_from(self, other: MetadataImage) -> list[str]:
        """Topics that `other` does not have, or has under another id or with fewer partitions."""
        gone = {name for name, id in self.topic_ids.items() if other.topic_ids.get(name) != id}
        mine = self.live_slots()
        rows = other.topic_rows(tuple(self._names))[self.topic_row[mine]]
        lost = mine[other.slots(rows, self.number[mine]) < 0]
        return sorted(gone | {self._names[row] for row in np.unique(self.topic_row[lost]).tolist()})

    # -- folding events ------------------------------------------------------------------------------------

    def apply(self, event: Event, now_ms: int) -> IntArray:
        """Fold one event; int32 [N] slots that are free now, whose history must be forgotten.

        Raises
        ------
        ExternalError
            The event names a topic or broker that no event before it brought; the image must be loaded again.
        """
        match event:
            case BrokerRegistered(id, rack, fenced, stopping):
                old = self.brokers.get(id)
                since = old.fenced_since_ms if old is not None and old.fenced_since_ms is not None else now_ms
                self.brokers[id] = BrokerEntry(rack, since if fenced else None, stopping)
            case BrokerFenced(id):
                entry = self._broker(id)
                if entry.fenced_since_ms is None:
                    self.brokers[id] = replace(entry, fenced_since_ms=now_ms)
            case BrokerUnfenced(id):
                self.brokers[id] = replace(self._broker(id), fenced_since_ms=None)
            case BrokerStopping(id):
                self.brokers[id] = replace(self._broker(id), stopping=True)
            case BrokerRemoved(id):
                self.brokers.pop(id, None)
            case TopicCreated(name, topic_id):
                return self._create_topic(name, topic_id)
            case TopicDeleted(name):
                return self._delete_topic(name)
            case PartitionChanged():
                self._change_partition(event)
            case ControllerChanged(id, epoch):
                self.controller = Controller(id, epoch)
        return np.empty(0, dtype=np.int32)

    def replace(self, other: MetadataImage, now_ms: int) -> IntArray:
        """Become what `other` says; int32 [N] slots that are free now, whose history must be forgotten.

        Nothing is merged: what `other` does not have is gone. A partition of the same topic id keeps its slot,
        whatever slot it has in `other`; a broker that is fenced in both keeps its time. O(partitions), vectorized.
        """
        freed = [self._delete_topic(name) for name in self.absent_from(other)]
        if not self.topic_ids:
            self.copy_columns(other)
            self.topic_ids = dict(other.topic_ids)
            self._row_of_topic, self._names = dict(other._row_of_topic), list(other._names)
            self._free_topics, self.reassigning = list(other._free_topics), dict(other.reassigning)
        else:
            self._merge_columns(other)
        self.controller = other.controller
        before = self.brokers
        self.brokers = {}
        for id, entry in other.brokers.items():
            old = before.get(id)
            since = old.fenced_since_ms if old is not None and old.fenced_since_ms is not None else now_ms
            self.brokers[id] = replace(entry, fenced_since_ms=since if entry.fenced_since_ms is not None else None)
        return np.concatenate([np.empty(0, dtype=np.int32), *freed])

    def _merge_columns(self, other: MetadataImage) -> None:
        """Take over topics and partitions, keeping the slots of those that are here already."""
        for name, topic_id in other.topic_ids.items():
            self._create_topic(name, topic_id)
        theirs = other.live_slots()
        rows = self.topic_rows(tuple(other._names))[other.topic_row[theirs]]
        numbers = other.number[theirs]
        for i in np.flatnonzero(self.slots(rows, numbers) < 0).tolist():
            self.take_slot(int(rows[i]), int(numbers[i]))
        mine = self.slots(rows, numbers)
        self.widen(other.replicas.shape[1])
        width = other.replicas.shape[1]
        self.replicas[mine, :width] = other.replicas[theirs]
        self.replicas[mine, width:] = NO_BROKER
        self.in_sync_places[mine, :width] = other.in_sync_places[theirs]
        self.in_sync_places[mine, width:] = False
        self.leader[mine] = other.leader[theirs]
        self.epochs[mine] = other.epochs[theirs]
        slot_of = dict(zip(theirs.tolist(), mine.tolist(), strict=True)) if other.reassigning else {}
        self.reassigning = {slot_of[slot]: lists for slot, lists in other.reassigning.items()}

    def _broker(self, id: int) -> BrokerEntry:
        entry = self.brokers.get(id)
        if entry is None:
            raise _unknown(f"broker {id}")
        return entry

    def _create_topic(self, name: str, topic_id: str) -> IntArray:
        if self.topic_ids.get(name) == topic_id:
            return np.empty(0, dtype=np.int32)
        freed = self._delete_topic(name)
        self.topic_ids[name] = topic_id
        if self._free_topics:
            row = self._free_topics.pop()
            self._names[row] = name
        else:
            row = len(self._names)
            self._names.append(name)
        self.begin_row(row)
        self._row_of_topic[name] = row
        return freed

    def _delete_topic(self, name: str) -> IntArray:
        row = self._row_of_topic.pop(name, None)
        if row is None:
            return np.empty(0, dtype=np.int32)
        del self.topic_ids[name]
        self._names[row] = ""
        self._free_topics.append(row)
        freed = self.end_row(row)
        if self.reassigning:
            for slot in freed.tolist():
                self.reassigning.pop(slot, None)
        return freed

    def _change_partition(self, event: PartitionChanged) -> None:
        row = self._row_of_topic.get(event.topic)
        if row is None:
            raise _unknown(f"topic {event.topic}")
        slot = self.slot(row, event.partition)
        if slot < 0:
            slot = self.take_slot(row, event.partition)
        elif 0 < event.epoch < self.epochs[slot]:
            return
        self.set_partition(slot, event)

    # -- for `fold` too ------------------------------------------------------------------------------------

    def row_of(self, topic: str) -> int:
        """Row of a topic that is there."""
        return self._row_of_topic[topic]

    def set_partition(self, slot: int, event: PartitionChanged) -> None:
        """Write a partition into a slot that it has."""
        self.widen(len(event.replicas))
        width = len(event.replicas)
        self.epochs[slot] = event.epoch
        self.replicas[slot, :width] = event.replicas
        self.replicas[slot, width:] = NO_BROKER
        self.in_sync_places[slot] = False
        self.in_sync_places[slot, :width] = [b in event.isr for b in event.replicas]
        self.leader[slot] = NO_BROKER if event.leader is None else event.leader
        if event.adding or event.removing:
            self.reassigning[slot] = (event.adding, event.removing)
        else:
            self.reassigning.pop(slot, None)


def registered(id: int, entry: BrokerEntry) -> BrokerRegistered:
    """The event that brings this entry."""
    return BrokerRegistered(id, entry.rack, entry.fenced_since_ms is not None, entry.stopping)


def _unknown(what: str) -> ExternalError:
    return ExternalError(
        f"the metadata names {what} before bringing it; the image is not whole, load it again", retriable=True
    )


