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
    """

    structure: int
    slots: IntArray
    number: IntArray
    topic: IntArray
    topics: tuple[str, ...]


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
    return Partitions(
        given.structure, given.slots[order], given.number[order], rank[order], tuple(names[row] for row in by_name)
    )


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

    Read-only from the beginning, as snapshots make them: compiled code knows the difference.
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


class Placer:
    """Makes placements; remembers which brokers and how long lists there were the last time."""

    def __init__(self) -> None:
        self._table = _BrokerTable(np.empty(0, dtype=np.int32))
        self._width = 1

    def place(self, image: MetadataImage, partitions: Partitions) -> Placement:
        """Placement as of now; the arrays are new. O(replicas)."""
        registered = np.array(sorted(image.brokers), dtype=np.int32)
        if not np.isin(registered, self._table.ids).all():
            self._table = _BrokerTable(registered)
        found = self._rows(image, partitions)
        if found is None or self._has_more_than(registered, found):
            hosts = image.replicas[partitions.slots]
            used = np.unique(hosts[hosts != NO_BROKER])
            self._table = _BrokerTable(np.union1d(registered, used).astype(np.int32))
            found = self._rows(image, partitions)
        if found is None:
            raise AssertionError("a replica is on a broker that none of the replica lists names")
        return self._reassigned(image, partitions, found) if image.reassigning else found

    def _rows(self, image: MetadataImage, partitions: Partitions) -> Placement | None:
        """None where a broker is not in the table."""
        count = len(partitions.slots)
        while True:
            hosts = np.empty((count, self._width), dtype=np.int32)
            leads, factor = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
            longest, missing = place(
                image.replicas, image.leader, partitions.slots, self._table.keys, self._table.rows, hosts, leads, factor
            )
            if missing:
                return None
            if max(longest, 1) == self._width:
                return Placement(self._table.ids, hosts, leads, factor)
            self._width = max(longest, 1)

    def _has_more_than(self, registered: IntArray, found: Placement) -> bool:
        """Whether a broker of the table is neither registered nor hosts anything."""
        ids = self._table.ids
        if len(ids) == len(registered):
            return False
        hosted = np.bincount(found.replicas.ravel() + 1, minlength=len(ids) + 1)[1:]
        return not bool((np.isin(ids, registered) | (hosted > 0)).all())

    def _reassigned(self, image: MetadataImage, partitions: Partitions, found: Placement) -> Placement:
        """Replica lists as they will be; a leader that goes away gives way to one that stays."""
        row_of_slot = np.zeros(len(image.topic_row), dtype=np.int32)
        row_of_slot[partitions.slots] = np.arange(len(partitions.slots), dtype=np.int32)
        row_of_id = {id: row for row, id in enumerate(self._table.ids.tolist())}
        hosts, leads, factor = found.replicas.copy(), found.leader.copy(), found.factor.copy()
        for slot, (_, removing) in image.reassigning.items():
            row = int(row_of_slot[slot])
            kept = [b for b in image.replicas[slot].tolist() if b != NO_BROKER and b not in removing]
            if not kept:
                continue
            rows = [row_of_id[b] for b in kept]
            hosts[row] = rows + [-1] * (hosts.shape[1] - len(rows))
            factor[row] = len(rows)
            if int(image.leader[slot]) in removing:
                in_sync = image.in_sync(slot)
                leads[row] = row_of_id[next((b for b in kept if b in in_sync), kept[0])]
        width = int(factor.max(initial=1))
        return Placement(found.broker_ids, np.ascontiguousarray(hosts[:, :width]), leads, factor)
