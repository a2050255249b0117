"""What the cluster's metadata says: events, and the image they fold into.

Followers of the metadata produce the events; `cluster_model.model` folds them and adds loads. Partitions live
in *slots*, integers that stay while the partition exists, so a moved partition keeps its history. Broker ids
are the ones on the wire. No I/O; time comes in by parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cluster_model.errors import ExternalError
from cluster_model.snapshot import IntArray

NO_BROKER = -1
INITIAL_CAPACITY = 1024


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker came, or came again with another rack. `fenced` as the registration says."""

    id: int
    rack: str | None
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class BrokerFenced:
    id: int


@dataclass(frozen=True, slots=True)
class BrokerUnfenced:
    id: int


@dataclass(frozen=True, slots=True)
class BrokerRemoved:
    id: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """`topic_id` differs between incarnations of one name."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    name: str


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """A partition as it is from now on (also when it is new).

    `replicas` has the adding and the removing ones too; `epoch` rises with every change, and an older one is
    ignored.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    epoch: int = 0


Event = BrokerRegistered | BrokerFenced | BrokerUnfenced | BrokerRemoved | TopicCreated | TopicDeleted | PartitionChanged


@dataclass(frozen=True, slots=True)
class BrokerEntry:
    rack: str | None
    fenced_since_ms: int | None  # None while it serves


class MetadataImage:
    """Brokers, topics and partitions, folded from events.

    Attributes
    ----------
    brokers
        Wire id -> `BrokerEntry`.
    topic_ids
        Topic name -> topic id.
    structure
        Rises whenever a topic or partition comes or goes; callers key caches by it.
    reassigning
        Slot -> (adding, removing) of the partitions with a reassignment in progress.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerEntry] = {}
        self.topic_ids: dict[str, str] = {}
        self.reassigning: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self.structure = 0
        self._row_of_topic: dict[str, int] = {}
        self._names: list[str] = []
        self._free_topics: list[int] = []
        self._slots_of_topic: list[IntArray] = []  # slot of each partition number, -1 where there is none
        self._free: list[int] = []
        self._used = 0
        self.topic_row: IntArray = np.full(INITIAL_CAPACITY, -1, dtype=np.int32)  # by slot; -1: slot is free
        self.number: IntArray = np.zeros(INITIAL_CAPACITY, dtype=np.int32)
        self.leader: IntArray = np.full(INITIAL_CAPACITY, NO_BROKER, dtype=np.int32)
        self.replicas: IntArray = np.full((INITIAL_CAPACITY, 4), NO_BROKER, dtype=np.int32)
        self._in_sync: npt.NDArray[np.bool_] = np.zeros((INITIAL_CAPACITY, 4), dtype=np.bool_)
        self._epoch: npt.NDArray[np.int64] = np.full(INITIAL_CAPACITY, -1, dtype=np.int64)
        self._flat: IntArray | None = None  # slots of all topics in a row, for vectorized look-ups
        self._flat_start: IntArray = np.empty(0, dtype=np.int32)
        self._flat_length: IntArray = np.empty(0, dtype=np.int32)

    def apply(self, event: Event, now_ms: int) -> IntArray:
        """Fold one event; int32 [N] slots that are free now, whose history must be forgotten.

        Raises
        ------
        ExternalError
            The event names a topic or broker that no event before it brought; the image must be loaded anew.
        """
        match event:
            case BrokerRegistered(id, rack, fenced):
                old = self.brokers.get(id)
                since = old.fenced_since_ms if old is not None and old.fenced_since_ms is not None else now_ms
                self.brokers[id] = BrokerEntry(rack, since if fenced else None)
            case BrokerFenced(id):
                entry = self._broker(id)
                if entry.fenced_since_ms is None:
                    self.brokers[id] = replace(entry, fenced_since_ms=now_ms)
            case BrokerUnfenced(id):
                self.brokers[id] = replace(self._broker(id), fenced_since_ms=None)
            case BrokerRemoved(id):
                self.brokers.pop(id, None)
            case TopicCreated(name, topic_id):
                return self._create_topic(name, topic_id)
            case TopicDeleted(name):
                return self._delete_topic(name)
            case PartitionChanged():
                self._change_partition(event)
        return np.empty(0, dtype=np.int32)

    @property
    def partition_count(self) -> int:
        return self._used - len(self._free)

    def live_slots(self) -> IntArray:
        """int32 [P]: slots in use, ascending."""
        return np.flatnonzero(self.topic_row[: self._used] >= 0).astype(np.int32)

    def topic_names(self) -> list[str]:
        """Names by topic row; the empty string where a row is free."""
        return self._names

    def topic_rows(self, names: tuple[str, ...]) -> IntArray:
        """int32 [N]: row of each name, -1 where there is no such topic."""
        return np.array([self._row_of_topic.get(name, -1) for name in names], dtype=np.int32)

    def slots(self, topic_rows: IntArray, numbers: IntArray) -> IntArray:
        """int32 [N]: slot of each (topic row, partition number), -1 where there is none. O(N)."""
        if self._flat is None:
            lengths = [len(s) for s in self._slots_of_topic]
            self._flat_length = np.array(lengths, dtype=np.int32)
            self._flat_start = (np.cumsum(self._flat_length) - self._flat_length).astype(np.int32)
            empty = np.empty(0, dtype=np.int32)
            self._flat = np.concatenate([empty, *self._slots_of_topic])
        found = np.full(len(topic_rows), -1, dtype=np.int32)
        known = np.flatnonzero(topic_rows >= 0)
        known = known[numbers[known] < self._flat_length[topic_rows[known]]]
        found[known] = self._flat[self._flat_start[topic_rows[known]] + numbers[known]]
        return found

    def in_sync(self, slot: int) -> tuple[int, ...]:
        """Wire ids of a partition's ISR, in the order of its replicas."""
        return tuple(self.replicas[slot][self._in_sync[slot]].tolist())

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
            self._slots_of_topic.append(np.empty(0, dtype=np.int32))
        self._row_of_topic[name] = row
        self._restructured()
        return freed

    def _delete_topic(self, name: str) -> IntArray:
        row = self._row_of_topic.pop(name, None)
        if row is None:
            return np.empty(0, dtype=np.int32)
        del self.topic_ids[name]
        freed = self._slots_of_topic[row]
        freed = freed[freed >= 0]
        self._slots_of_topic[row] = np.empty(0, dtype=np.int32)
        self._names[row] = ""
        self._free_topics.append(row)
        self.topic_row[freed] = -1
        self._epoch[freed] = -1
        self._free.extend(freed.tolist())
        for slot in freed.tolist():
            self.reassigning.pop(slot, None)
        self._restructured()
        return freed

    def _change_partition(self, event: PartitionChanged) -> None:
        row = self._row_of_topic.get(event.topic)
        if row is None:
            raise _unknown(f"topic {event.topic}")
        slots = self._slots_of_topic[row]
        slot = int(slots[event.partition]) if event.partition < len(slots) else -1
        if slot < 0:
            slot = self._take_slot(row, event.partition)
        elif event.epoch < self._epoch[slot]:
            return
        self._epoch[slot] = event.epoch
        width = len(event.replicas)
        if width > self.replicas.shape[1]:
            extra = width - self.replicas.shape[1]
            self.replicas = np.pad(self.replicas, ((0, 0), (0, extra)), constant_values=NO_BROKER)
            self._in_sync = np.pad(self._in_sync, ((0, 0), (0, extra)))
        self.replicas[slot, :width] = event.replicas
        self.replicas[slot, width:] = NO_BROKER
        self._in_sync[slot] = False
        self._in_sync[slot, :width] = [b in event.isr for b in event.replicas]
        self.leader[slot] = NO_BROKER if event.leader is None else event.leader
        if event.adding or event.removing:
            self.reassigning[slot] = (event.adding, event.removing)
        else:
            self.reassigning.pop(slot, None)

    def _take_slot(self, row: int, number: int) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot = self._used
            self._used += 1
            if slot >= len(self.topic_row):
                self._grow()
        slots = self._slots_of_topic[row]
        if number >= len(slots):
            slots = np.pad(slots, (0, max(number + 1, 2 * len(slots)) - len(slots)), constant_values=-1)
            self._slots_of_topic[row] = slots
        slots[number] = slot
        self.topic_row[slot] = row
        self.number[slot] = number
        self._restructured()
        return slot

    def _grow(self) -> None:
        size = len(self.topic_row)
        self.topic_row = np.pad(self.topic_row, (0, size), constant_values=-1)
        self.number = np.pad(self.number, (0, size))
        self.leader = np.pad(self.leader, (0, size), constant_values=NO_BROKER)
        self.replicas = np.pad(self.replicas, ((0, size), (0, 0)), constant_values=NO_BROKER)
        self._in_sync = np.pad(self._in_sync, ((0, size), (0, 0)))
        self._epoch = np.pad(self._epoch, (0, size), constant_values=-1)

    def _restructured(self) -> None:
        self.structure += 1
        self._flat = None


def _unknown(what: str) -> ExternalError:
    return ExternalError(
        f"the metadata names {what} before bringing it; the image is not whole, load it anew", retriable=True
    )
