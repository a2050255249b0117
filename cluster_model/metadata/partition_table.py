"""Partitions in columns: one slot a partition, and the way from (topic row, partition number) to its slot.

The base of `MetadataImage`, and what `kernels` fold partition records into. Knows rows of topics, not their names.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cluster_model.errors import ExternalError
from cluster_model.metadata.events import NO_BROKER
from cluster_model.snapshot import IntArray

USED, FREE, POOL_END, STRUCTURE = range(4)  # places in `PartitionTable.counters`
MAX_PARTITIONS = 1 << 22  # of one topic; a number beyond is damage, and would take all memory
MAX_REPLICAS = 1 << 10  # of one partition; every partition has room for as many as the one that has most
FIRST_ROOM = 4  # partitions that a new topic gets room for
INITIAL_CAPACITY = 1024
INITIAL_WIDTH = 4
_COLUMNS = (
    "topic_row", "number", "leader", "replicas", "epochs", "counters", "in_sync_places", "free_slots", "pool",
    "topic_start", "topic_room",
)  # fmt: skip


class PartitionTable:
    """Columns by slot. A slot stays while its partition exists, and is used again afterwards.

    Attributes
    ----------
    topic_row, number, leader
        int32 [slots]: topic row (-1: the slot is free), partition number, wire id of the leader or -1.
    replicas
        int32 [slots, width]: wire ids, preferred leader first, -1 beyond the replication factor.
    in_sync_places
        bool [slots, width]: which places of the replica list are in the ISR.
    epochs
        int64 [slots]: partition epoch, as far as the source tells it.
    counters, free_slots, pool, topic_start, topic_room
        For `kernels`: counts; a stack of free slots; and in the pool, at the topic's start plus the partition's
        number, its slot or -1, for as many numbers as the topic has room.

    Notes
    -----
    About 60 bytes a partition at a replication factor of 3. Columns are replaced when they grow: do not keep them.
    """

    def __init__(self) -> None:
        self.topic_row: IntArray = np.full(INITIAL_CAPACITY, -1, dtype=np.int32)
        self.number: IntArray = np.zeros(INITIAL_CAPACITY, dtype=np.int32)
        self.leader: IntArray = np.full(INITIAL_CAPACITY, NO_BROKER, dtype=np.int32)
        self.replicas: IntArray = np.full((INITIAL_CAPACITY, INITIAL_WIDTH), NO_BROKER, dtype=np.int32)
        self.epochs: npt.NDArray[np.int64] = np.full(INITIAL_CAPACITY, -1, dtype=np.int64)
        self.counters: npt.NDArray[np.int64] = np.zeros(4, dtype=np.int64)
        self.in_sync_places: npt.NDArray[np.bool_] = np.zeros((INITIAL_CAPACITY, INITIAL_WIDTH), dtype=np.bool_)
        self.free_slots: IntArray = np.zeros(INITIAL_CAPACITY, dtype=np.int32)
        self.pool: IntArray = np.full(INITIAL_CAPACITY, -1, dtype=np.int32)
        self.topic_start: IntArray = np.zeros(INITIAL_CAPACITY, dtype=np.int32)
        self.topic_room: IntArray = np.zeros(INITIAL_CAPACITY, dtype=np.int32)

    @property
    def structure(self) -> int:
        """Rises whenever a topic or partition comes or goes; callers key caches by it."""
        return int(self.counters[STRUCTURE])

    @property
    def partition_count(self) -> int:
        return int(self.counters[USED] - self.counters[FREE])

    def live_slots(self) -> IntArray:
        """int32 [P]: slots in use, ascending."""
        return np.flatnonzero(self.topic_row[: self.counters[USED]] >= 0).astype(np.int32)

    def slots(self, topic_rows: IntArray, numbers: IntArray) -> IntArray:
        """int32 [N]: slot of each (topic row, partition number), -1 where there is none. O(N)."""
        found = np.full(len(topic_rows), -1, dtype=np.int32)
        known = np.flatnonzero((topic_rows >= 0) & (numbers >= 0))
        known = known[numbers[known] < self.topic_room[topic_rows[known]]]
        found[known] = self.pool[self.topic_start[topic_rows[known]] + numbers[known]]
        return found

    def slot(self, row: int, number: int) -> int:
        """Slot of a partition of the topic in a row, -1 where there is none."""
        if not 0 <= number < int(self.topic_room[row]):
            return -1
        return int(self.pool[int(self.topic_start[row]) + number])

    def slots_of_row(self, row: int) -> IntArray:
        """int32 [N]: slots of a topic's partitions in the order of their numbers."""
        start = int(self.topic_start[row])
        slots = self.pool[start : start + int(self.topic_room[row])]
        return slots[slots >= 0]

    def begin_row(self, row: int) -> None:
        """Have a topic without partitions in this row, the next one or one that was ended."""
        if row >= len(self.topic_start):
            self.topic_start = np.pad(self.topic_start, (0, row))
            self.topic_room = np.pad(self.topic_room, (0, row))
        self.topic_room[row] = 0
        self.counters[STRUCTURE] += 1

    def end_row(self, row: int) -> IntArray:
        """int32 [N]: the slots of a topic that is gone, free now."""
        freed = self.slots_of_row(row).copy()
        self.topic_room[row] = 0
        self.topic_row[freed] = -1
        self.epochs[freed] = -1
        count = int(self.counters[FREE])
        self.free_slots[count : count + len(freed)] = freed
        self.counters[FREE] += len(freed)
        self.counters[STRUCTURE] += 1
        return freed

    def take_slot(self, row: int, number: int) -> int:
        """A slot for a partition that has none."""
        if number >= MAX_PARTITIONS:
            raise ExternalError(f"partition number {number}, expected less than {MAX_PARTITIONS}: the metadata is damaged")
        if number >= int(self.topic_room[row]):
            self._make_room(row, number)
        if self.counters[FREE]:
            self.counters[FREE] -= 1
            slot = int(self.free_slots[self.counters[FREE]])
        else:
            slot = int(self.counters[USED])
            if slot >= len(self.topic_row):
                self.grow()
            self.counters[USED] += 1
        self.pool[int(self.topic_start[row]) + number] = slot
        self.topic_row[slot] = row
        self.number[slot] = number
        self.counters[STRUCTURE] += 1
        return slot

    def widen(self, width: int) -> None:
        """Have at least `width` places in a replica list."""
        extra = width - self.replicas.shape[1]
        if extra > 0:
            self.replicas = np.pad(self.replicas, ((0, 0), (0, extra)), constant_values=NO_BROKER)
            self.in_sync_places = np.pad(self.in_sync_places, ((0, 0), (0, extra)))

    def grow(self) -> None:
        """Have twice as many slots."""
        size = len(self.topic_row)
        self.topic_row = np.pad(self.topic_row, (0, size), constant_values=-1)
        self.number = np.pad(self.number, (0, size))
        self.leader = np.pad(self.leader, (0, size), constant_values=NO_BROKER)
        self.replicas = np.pad(self.replicas, ((0, size), (0, 0)), constant_values=NO_BROKER)
        self.in_sync_places = np.pad(self.in_sync_places, ((0, size), (0, 0)))
        self.epochs = np.pad(self.epochs, (0, size), constant_values=-1)
        self.free_slots = np.pad(self.free_slots, (0, size))

    def grow_pool(self, wanted: int) -> None:
        """Have room for `wanted` more entries in the pool; what deleted topics left behind is given back."""
        rows = np.flatnonzero(self.topic_room > 0)
        live = int(self.topic_room[rows].sum())
        pool = np.full(2 * live + wanted + INITIAL_CAPACITY, -1, dtype=np.int32)
        end = 0
        for row in rows.tolist():
            start, room = int(self.topic_start[row]), int(self.topic_room[row])
            pool[end : end + room] = self.pool[start : start + room]
            self.topic_start[row] = end
            end += room
        self.pool = pool
        self.counters[POOL_END] = end

    def _make_room(self, row: int, number: int) -> None:
        room = int(self.topic_room[row])
        wanted = max(2 * room, FIRST_ROOM)
        while wanted <= number:
            wanted *= 2
        if int(self.counters[POOL_END]) + wanted > len(self.pool):
            self.grow_pool(wanted)
        start, end = int(self.topic_start[row]), int(self.counters[POOL_END])
        self.pool[end : end + room] = self.pool[start : start + room]
        self.pool[end + room : end + wanted] = -1
        self.counters[POOL_END] = end + wanted
        self.topic_start[row] = end
        self.topic_room[row] = wanted

    def copy_columns(self, other: PartitionTable) -> None:
        """Become what `other` is, slot by slot."""
        structure = self.structure + other.structure + 1
        for column in _COLUMNS:
            setattr(self, column, getattr(other, column).copy())
        self.counters[STRUCTURE] = structure
