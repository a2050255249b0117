"""Where the replicas are, in a snapshot's terms: canonical rows of partitions, rows of brokers.

Called by `cluster_model.model`. A partition with a reassignment in progress stands where it is going.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_model.loops import place
from cluster_model.metadata.events import NO_BROKER
from cluster_model.metadata.image import MetadataImage
from cluster_model.snapshot import IntArray

_SPREAD = 40503  # as in `loops.place`


@dataclass(frozen=True, eq=False)
class Partitions:
    """The partitions of an image, by topic name and number.

    Attributes
    ----------
    structure
        The image's, for which this holds.
    slots, number, topic
        int32 [P]: slot, number within the topic, and row in `topics`.
    topics
        Names that have partitions, ascending.
    row_of_slot
        int32 [newest slot + 1]: row of each slot; of no use where a slot is free.
    """

    structure: int
    slots: IntArray
    number: IntArray
    topic: IntArray
    topics: tuple[str, ...]
    row_of_slot: IntArray


@dataclass(frozen=True, eq=False)
class Structure:
    """A copy of what `canonical` needs of an image, so that it can be worked out while the image changes."""

    structure: int
    names: list[str]
    topic_row: IntArray
    number: IntArray
    slots: IntArray


def structure_of(image: MetadataImage) -> Structure:
    """The copy, as of now. O(partitions)."""
    slots = image.live_slots()
    names = list(image.topic_names())
    return Structure(image.structure, names, image.topic_row[slots], image.number[slots], slots)


def canonical(given: Structure) -> Partitions:
    """The partitions in order. O(P + T log T)."""
    count = np.bincount(given.topic_row, minlength=len(given.names))
    used = np.flatnonzero(count)
    names = given.names
    by_name = sorted(used.tolist(), key=names.__getitem__)
    rank_of_row = np.zeros(len(names) + 1, dtype=np.int32)
    rank_of_row[by_name] = np.arange(len(by_name), dtype=np.int32)
    rank = rank_of_row[given.topic_row]
    first = np.cumsum(count[by_name]) - count[by_name]
    if bool((given.number < count[given.topic_row]).all()):  # numbers from 0 without gaps, as Kafka has them
        order = np.empty(len(rank), dtype=np.int64)
        order[first[rank] + given.number] = np.arange(len(rank))
    else:
        order = np.lexsort((given.number, rank))
    slots = given.slots[order]
    row_of_slot = np.zeros(int(slots.max(initial=-1)) + 1, dtype=np.int32)
    row_of_slot[slots] = np.arange(len(slots), dtype=np.int32)
    topics = tuple(names[row] for row in by_name)
    return Partitions(given.structure, slots, given.number[order], rank[order], topics, row_of_slot)


@dataclass(frozen=True, eq=False)
class Placement:
    """Replica lists and leaders of `Partitions`.

    Attributes
    ----------
    broker_ids
        int32 [B] wire ids, ascending: all registered ones, and others that still host a replica.
    replicas, leader
        int32 [P, R] and int32 [P] broker rows, as in `Snapshot`.
    factor
        int32 [P] replicas of each partition.

    Read-only from the start, as snapshots make them: compiled code knows the difference.
    """

    broker_ids: IntArray
    replicas: IntArray
    leader: IntArray
    factor: IntArray

    def __post_init__(self) -> None:
        for array in (self.broker_ids, self.replicas, self.leader, self.factor):
            array.flags.writeable = False


class _BrokerTable:
    """Wire id -> row, in the form that `loops.place` reads."""

    def __init__(self, ids: IntArray) -> None:
        self.ids = ids
        size = 8
        while size < 4 * len(ids):
            size *= 2
        keys = [-1] * size
        rows = [-1] * size
        for row, id in enumerate(ids.tolist()):
            at = (id * _SPREAD) & (size - 1)
            while keys[at] >= 0:
                at = (at + 1) & (size - 1)
            keys[at], rows[at] = id, row
        self.keys = np.array(keys, dtype=np.int64)
        self.rows = np.array(rows, dtype=np.int64)


Room = tuple[IntArray, IntArray, IntArray]
"""Replica lists, leaders and factors that are being written."""


class Placer:
    """Makes placements; remembers which brokers and how long lists there were the last time."""

    def __init__(self) -> None:
        self._table = _BrokerTable(np.empty(0, dtype=np.int32))
        self._width = 1

    def room(self, count: int) -> Room:
        """Room for so many partitions, taken from the system already; made before the image is locked."""
        room = np.empty((count, self._width), np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
        for array in room:
            array.fill(0)
        return room

    def place(self, image: MetadataImage, partitions: Partitions, room: Room | None = None) -> Placement:
        """Placement as of now, in `room` where that fits. O(replicas)."""
        registered = np.array(sorted(image.brokers), dtype=np.int32)
        if not np.isin(registered, self._table.ids).all():
            self._table = _BrokerTable(registered)
        found = self._rows(image, partitions, room)
        if found is None or self._has_more_than(registered, found[0]):
            hosts = image.replicas[partitions.slots]
            used = np.unique(hosts[hosts != NO_BROKER])
            self._table = _BrokerTable(np.union1d(registered, used).astype(np.int32))
            found = self._rows(image, partitions, found)
        if found is None:
            raise AssertionError("a replica is on a broker that none of the replica lists names")
        if image.reassigning:
            found = self._reassigned(image, partitions, *found)
        return Placement(self._table.ids, *found)

    def _rows(self, image: MetadataImage, partitions: Partitions, room: Room | None) -> Room | None:
        """None where a broker is not in the table."""
        count = len(partitions.slots)
        while True:
            if room is None or room[0].shape != (count, self._width):
                room = self.room(count)
            longest, missing = place(
                image.replicas, image.leader, partitions.slots, self._table.keys, self._table.rows, *room
            )
            if missing:
                return None
            if max(longest, 1) == self._width:
                return room
            self._width = max(longest, 1)

    def _has_more_than(self, registered: IntArray, hosts: IntArray) -> bool:
        """Whether a broker of the table is neither registered nor hosts anything."""
        ids = self._table.ids
        if len(ids) == len(registered):
            return False
        hosted = np.bincount(hosts.ravel() + 1, minlength=len(ids) + 1)[1:]
        return not bool((np.isin(ids, registered) | (hosted > 0)).all())

    def _reassigned(
        self, image: MetadataImage, partitions: Partitions, hosts: IntArray, leads: IntArray, factor: IntArray
    ) -> Room:
        """Replica lists as they will be; a leader that goes away gives way to one that stays."""
        slots = np.fromiter(image.reassigning, dtype=np.int32, count=len(image.reassigning))
        rows = partitions.row_of_slot[slots]
        lists = [removing for _, removing in image.reassigning.values()]
        most = max(len(removing) for removing in lists)
        leaving = np.array([[*removing, *[NO_BROKER] * (most - len(removing))] for removing in lists], dtype=np.int32)
        before, old = hosts[rows], image.replicas[slots][:, : hosts.shape[1]]
        in_sync = image.in_sync_places[slots][:, : hosts.shape[1]]
        stays = (old != NO_BROKER) & ~(old[:, :, None] == leaving[:, None, :]).any(axis=2)
        stays[~stays.any(axis=1)] = True  # a list that nothing would be left of stays as it is
        order = np.argsort(~stays, axis=1, kind="stable")
        each = np.arange(len(rows))
        left = stays.sum(axis=1)
        after = np.where(np.arange(hosts.shape[1]) < left[:, None], np.take_along_axis(before, order, axis=1), -1)
        kept_in_sync = np.take_along_axis(stays & in_sync, order, axis=1)
        heir = after[each, kept_in_sync.argmax(axis=1)]  # the first in sync, or the first at all
        led = leads[rows]
        gone = (led >= 0) & ~(after == led[:, None]).any(axis=1)
        hosts[rows], factor[rows] = after, (after >= 0).sum(axis=1)
        leads[rows] = np.where(gone, heir, led)
        width = int(factor.max(initial=1))
        return (hosts if width == hosts.shape[1] else np.ascontiguousarray(hosts[:, :width])), leads, factor
