"""The simulated controller: replica lists, ISR, leaders, fencing, reassignments, and the metadata log it
writes.

Sees brokers only as a real one does: through their sessions. Follows KRaft in what it may do with a
partition; moves no bytes itself. Every change of metadata is an event in `log`, in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cluster_model.metadata.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerUnfenced,
    Event,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from trimtab.simulator.physics import CLOSE
from trimtab.simulator.spec import BrokerSpec, ErrorCode, Reassignment, Refusal, TopicPartition, TopicSpec
from trimtab.simulator.state import BrokerColumns, LogColumns

SESSION_TIMEOUT_MS = 9_000
LAG_TIME_MAX_MS = 30_000


@dataclass(slots=True)
class PartitionEntry:
    """A partition as the controller has it; `original` is the replica list before the reassignment in
    progress."""

    name: TopicPartition
    row: int
    replicas: tuple[int, ...]
    place: dict[int, int]  # wire id -> place in the log columns
    target: tuple[int, ...] | None = None
    original: tuple[int, ...] | None = None
    epoch: int = 0

    @property
    def adding(self) -> tuple[int, ...]:
        return () if self.target is None or self.original is None else _without(self.target, self.original)

    @property
    def removing(self) -> tuple[int, ...]:
        return () if self.target is None or self.original is None else _without(self.original, self.target)


@dataclass(eq=False)
class Controller:
    """Metadata of a simulated cluster; the admin calls of `SimulatedCluster` end here."""

    brokers: BrokerColumns
    logs: LogColumns
    log: list[tuple[int, Event]] = field(default_factory=list)
    partitions: dict[TopicPartition, PartitionEntry] = field(default_factory=dict)
    topics: dict[str, list[PartitionEntry]] = field(default_factory=dict)
    _entries: list[PartitionEntry] = field(default_factory=list)  # by row
    _row_of_broker: dict[int, int] = field(default_factory=dict)
    _moving: dict[int, PartitionEntry] = field(default_factory=dict)
    _touched: set[int] = field(default_factory=set)
    _created: int = 0

    # --- brokers and topics -----------------------------------------------------------------------

    def row_of(self, broker: int) -> int | None:
        """Row of a registered broker."""
        return self._row_of_broker.get(broker)

    def register(self, spec: BrokerSpec, now_ms: int) -> None:
        if spec.id in self._row_of_broker:
            raise ValueError(f"broker {spec.id} is registered already")
        self._row_of_broker[spec.id] = self.brokers.add(spec)
        self.log.append((now_ms, BrokerRegistered(spec.id, spec.rack)))

    def unregister(self, broker: int, now_ms: int) -> None:
        """Forget a fenced broker; its replicas stay in the replica lists, as in Kafka."""
        row = self._row_of_broker[broker]
        if not self.brokers.fenced[row]:
            raise ValueError(f"broker {broker} is not fenced; only a fenced broker can be unregistered")
        del self._row_of_broker[broker]
        self.brokers.gone[row] = True
        self.log.append((now_ms, BrokerRemoved(broker)))

    def create_topic(self, spec: TopicSpec, now_ms: int) -> None:
        if spec.name in self.topics:
            raise ValueError(f"topic {spec.name} exists already")
        for number, replicas in enumerate(spec.assignment):
            refusal = self._unplaceable(TopicPartition(spec.name, number), replicas, ())
            if refusal is not None:
                raise ValueError(refusal.message)
        logs, count = self.logs, len(spec.assignment)
        first = logs.add(count)
        rows = slice(first, first + count)
        logs.produce[rows], logs.consumers[rows], logs.retention[rows] = (
            spec.produce,
            spec.consumers,
            spec.retention,
        )
        logs.end[rows] = logs.retention[rows] * spec.filled
        self._created += 1
        self.log.append((now_ms, TopicCreated(spec.name, f"simulated-{self._created}")))
        entries = []
        for number, replicas in enumerate(spec.assignment):
            row = first + number
            entry = PartitionEntry(TopicPartition(spec.name, number), row, replicas, {})
            for broker in replicas:
                place = logs.take_place(row, self._row_of_broker[broker], base=float(logs.end[row]), adding=False)
                logs.in_sync[row, place] = True
                logs.caught_up_ms[row, place] = now_ms
                entry.place[broker] = place
            entries.append(entry)
            self._entries.append(entry)
            self.partitions[entry.name] = entry
            self._elect(entry, now_ms)
            self._touched.add(row)
        self.topics[spec.name] = entries
        self.flush(now_ms)

    def delete_topic(self, name: str, now_ms: int) -> None:
        for entry in self.topics.pop(name):
            self.logs.live[entry.row] = False
            self.logs.leader[entry.row] = -1
            for place in entry.place.values():
                self.logs.leave_place(entry.row, place)
            del self.partitions[entry.name]
            self._moving.pop(entry.row, None)
            self._touched.discard(entry.row)
        self.log.append((now_ms, TopicDeleted(name)))

    # --- what admin clients ask -------------------------------------------------------------------

    def reassign(self, name: TopicPartition, target: tuple[int, ...] | None, now_ms: int) -> Refusal | None:
        """Start (or replace) a reassignment, or cancel with None."""
        entry = self.partitions.get(name)
        if entry is None:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")
        if target is None:
            return self._cancel(entry, now_ms)
        original = entry.original if entry.original is not None else entry.replicas
        refusal = self._unplaceable(name, target, original)
        if refusal is not None:
            return refusal
        kept = (*target, *_without(original, target))
        if not any(self._is_in_sync(entry, b) for b in kept):
            return self._nothing_left(name)
        entry.original, entry.target = original, target
        self._place(entry, kept, now_ms)
        self._moving[entry.row] = entry
        self._complete(entry, now_ms)
        return None

    def reassignments(self) -> dict[TopicPartition, Reassignment]:
        """All reassignments in progress, by name."""
        logs, found = self.logs, {}
        for entry in sorted(self._moving.values(), key=lambda e: e.name):
            places = [entry.place[b] for b in entry.adding]
            position, base = logs.position[entry.row, places], logs.base[entry.row, places]
            remaining = float(np.maximum(logs.end[entry.row] - position, 0.0).sum())
            found[entry.name] = Reassignment(
                entry.replicas, entry.adding, entry.removing, float((position - base).sum()), remaining
            )
        return found

    def elect_preferred(self, name: TopicPartition, now_ms: int) -> Refusal | None:
        """Make the first replica the leader."""
        entry = self.partitions.get(name)
        if entry is None:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")
        preferred = entry.replicas[0]
        if self.leader_of(entry) == preferred:
            return Refusal(ErrorCode.ELECTION_NOT_NEEDED, f"{name} is led by its preferred leader {preferred} already")
        if not self._may_lead(entry, preferred):
            return Refusal(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"{name}: broker {preferred} is fenced or not in sync",
            )
        self._lead(entry, preferred, now_ms)
        return None

    def leader_of(self, entry: PartitionEntry) -> int | None:
        place = int(self.logs.leader[entry.row])
        if place < 0:
            return None
        return self.brokers.ids[int(self.logs.host[entry.row, place])]

    def names(self, row: int) -> TopicPartition:
        """Name of a partition row, also of a deleted one."""
        return self._entries[row].name

    def isr_of(self, entry: PartitionEntry) -> tuple[int, ...]:
        """In the order of the replica list."""
        return tuple(b for b in entry.replicas if self._is_in_sync(entry, b))

    # --- what happens by itself -------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Fence and unfence, shrink and expand ISRs, finish reassignments, write the changes to the log."""
        self._sessions(now_ms)
        self._update_isr(now_ms)
        for entry in list(self._moving.values()):
            self._complete(entry, now_ms)
        self.flush(now_ms)

    def flush(self, now_ms: int) -> None:
        """Write an event for every partition changed since the last one."""
        for row in sorted(self._touched):
            entry = self._entries[row]
            entry.epoch += 1
            event = PartitionChanged(
                entry.name.topic, entry.name.partition, entry.replicas,
                self.isr_of(entry), self.leader_of(entry), entry.adding, entry.removing, entry.epoch,
            )  # fmt: skip
            self.log.append((now_ms, event))
        self._touched.clear()

    def _sessions(self, now_ms: int) -> None:
        brokers = self.brokers
        for broker, row in self._row_of_broker.items():
            if brokers.up[row] and brokers.fenced[row]:
                brokers.fenced[row] = False
                self.log.append((now_ms, BrokerUnfenced(broker)))
                for entry in self._hosted(row):
                    if self.logs.leader[entry.row] < 0:
                        self._elect(entry, now_ms)
            expired = now_ms - int(brokers.down_since_ms[row]) >= SESSION_TIMEOUT_MS
            if not brokers.up[row] and not brokers.fenced[row] and expired:
                brokers.fenced[row] = True
                self.log.append((now_ms, BrokerFenced(broker)))
                for entry in self._hosted(row):
                    self._lose(entry, broker, now_ms)

    def _lose(self, entry: PartitionEntry, broker: int, now_ms: int) -> None:
        """A broker was fenced: out of the ISR unless it is the last one in it; leadership goes elsewhere."""
        if self._is_in_sync(entry, broker) and len(self.isr_of(entry)) > 1:
            self.logs.in_sync[entry.row, entry.place[broker]] = False
            self._touched.add(entry.row)
        if self.leader_of(entry) == broker:
            self._elect(entry, now_ms)

    def _update_isr(self, now_ms: int) -> None:
        logs, brokers = self.logs, self.brokers
        rows = np.arange(logs.count)
        led = logs.live & (logs.leader >= 0)
        serving = led & brokers.up[logs.host[rows, logs.leader]]
        places = np.arange(logs.host.shape[1])
        follows = (logs.host >= 0) & serving[:, None] & (places != logs.leader[:, None])
        late = follows & logs.in_sync & (now_ms - logs.caught_up_ms > LAG_TIME_MAX_MS)
        able = brokers.up[logs.host] & ~brokers.fenced[logs.host] & ~brokers.gone[logs.host]
        back = follows & ~logs.in_sync & able & (logs.position >= logs.end[:, None] - CLOSE)
        logs.in_sync &= ~late
        logs.in_sync |= back
        self._touched.update(np.flatnonzero((late | back).any(axis=1)).tolist())

    def _complete(self, entry: PartitionEntry, now_ms: int) -> None:
        """Finish a reassignment once every adding replica is in sync and one that stays is."""
        target = entry.target
        assert target is not None
        if not all(self._is_in_sync(entry, b) for b in entry.adding):
            return
        if not any(self._is_in_sync(entry, b) for b in target):
            return
        for place in entry.place.values():
            self.logs.adding[entry.row, place] = False
        entry.target = entry.original = None
        del self._moving[entry.row]
        self._place(entry, target, now_ms)

    def _cancel(self, entry: PartitionEntry, now_ms: int) -> Refusal | None:
        if entry.original is None:
            return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{entry.name} has no reassignment in progress")
        if not any(self._is_in_sync(entry, b) for b in entry.original):
            return self._nothing_left(entry.name)
        original, entry.original, entry.target = entry.original, None, None
        del self._moving[entry.row]
        self._place(entry, original, now_ms)
        return None

    def _place(self, entry: PartitionEntry, replicas: tuple[int, ...], now_ms: int) -> None:
        """Give an entry this replica list: drop what is not in it, start empty replicas for what is new."""
        logs, row = self.logs, entry.row
        leader = self.leader_of(entry)
        for broker in _without(entry.replicas, replicas):
            logs.leave_place(row, entry.place.pop(broker))
        for broker in replicas:
            if broker not in entry.place:
                base = float(logs.start[row])
                entry.place[broker] = logs.take_place(row, self._row_of_broker[broker], base=base, adding=True)
        entry.replicas = replicas
        self._touched.add(row)
        if leader not in replicas:
            self._elect(entry, now_ms)

    def _elect(self, entry: PartitionEntry, now_ms: int) -> None:
        """The first replica of the list that is in sync and not fenced leads; no replica where there is none."""
        chosen = next((b for b in entry.replicas if self._may_lead(entry, b)), None)
        if chosen is None:
            self.logs.leader[entry.row] = -1
            self._touched.add(entry.row)
        else:
            self._lead(entry, chosen, now_ms)

    def _lead(self, entry: PartitionEntry, broker: int, now_ms: int) -> None:
        logs, row, place = self.logs, entry.row, entry.place[broker]
        before = int(logs.leader[row])
        if before >= 0:
            logs.role[row, before] += 1
        logs.role[row, place] += 1
        logs.leader[row] = place
        logs.end[row] = logs.position[row, place]
        logs.start[row] = min(float(logs.start[row]), float(logs.end[row]))
        logs.caught_up_ms[row, logs.in_sync[row]] = now_ms
        self._touched.add(row)

    def _may_lead(self, entry: PartitionEntry, broker: int) -> bool:
        row = self._row_of_broker.get(broker)
        return row is not None and not self.brokers.fenced[row] and self._is_in_sync(entry, broker)

    def _is_in_sync(self, entry: PartitionEntry, broker: int) -> bool:
        place = entry.place.get(broker)
        return place is not None and bool(self.logs.in_sync[entry.row, place])

    def _hosted(self, broker_row: int) -> list[PartitionEntry]:
        rows = np.flatnonzero((self.logs.host == broker_row).any(axis=1))
        return [self._entries[row] for row in rows.tolist()]

    def _unplaceable(self, name: TopicPartition, target: tuple[int, ...], held: tuple[int, ...]) -> Refusal | None:
        """Why a replica list is refused. Brokers in `held` have the partition already and may be down."""
        if not target or len(set(target)) != len(target):
            problem = f"{list(target)} is empty or names a broker twice"
        elif unknown := [b for b in target if b not in self._row_of_broker and b not in held]:
            problem = f"brokers {unknown} are not registered"
        elif dead := [b for b in _without(target, held) if self._is_dead(b)]:
            problem = f"brokers {dead} are fenced or down"
        else:
            return None
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{name}: {problem}")

    def _is_dead(self, broker: int) -> bool:
        row = self._row_of_broker[broker]
        return bool(self.brokers.fenced[row] or not self.brokers.up[row])

    def _nothing_left(self, name: TopicPartition) -> Refusal:
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{name}: no in-sync replica would be left")


def _without(replicas: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(b for b in replicas if b not in others)
