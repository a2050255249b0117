"""The live picture of a cluster: metadata and samples in, frozen snapshots out.

A follower feeds events, a consumer of the internal topic feeds batches, and whoever plans takes `snapshot`s.
One thread at a time; no I/O, and the clock comes in by parameter. Batches are taken in whatever room they
were decoded (`ObservedBatch` is their shape), so this room needs no reporter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from cluster_model.image import (
    NO_BROKER,
    BrokerRegistered,
    BrokerRemoved,
    Event,
    MetadataImage,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.observed import (
    BROKER,
    CAPACITY,
    FOLLOWER,
    LEADER,
    REPLICA,
    IngestCounts,
    ObservedBatch,
    ObservedBlock,
)
from cluster_model.resources import FOLLOWER_COPIES_LEADER, MEASURED, RESOURCES
from cluster_model.snapshot import BrokerState, FloatArray, IntArray, Snapshot, Storage
from cluster_model.windows import LatestValues, WindowRing

GAUGES = frozenset({"disk"})  # the newest value counts; everything else is a rate and is averaged
NAMED_IN_NOTES = 5


@dataclass(frozen=True, eq=False)
class Staleness:
    """What the newest samples do not cover: topic-partitions by name and brokers by id, both ascending."""

    partitions: tuple[tuple[str, int], ...]
    brokers: tuple[int, ...]


@dataclass(slots=True)
class _Reporter:
    incarnation: int
    sequence: int
    time_ms: int


class ClusterModel:
    """Loads per partition over a horizon, placement as of the newest event.

    Parameters
    ----------
    window_ms, windows
        Rates are averaged over at most `windows` windows of `window_ms`; the horizon is their product.
    stale_after_ms
        A partition or broker without a sample for longer is stale: its last known load counts, flagged.
    dead_after_ms
        A broker fenced for longer is `dead` in snapshots; before that `excluded`, since it probably restarts.
    max_ahead_ms
        Batches further in the future than this are refused: one wrong clock must not push out everyone's
        windows.

    Notes
    -----
    Memory per partition: 16 bytes x windows per rate and role seen, 8 per gauge, about 80 for the metadata;
    with 10 windows and 5 rates about 1 kB, whatever the sample rate.
    """

    def __init__(
        self,
        cluster_id: str,
        *,
        storage: Storage = "local",
        window_ms: int = 30_000,
        windows: int = 10,
        stale_after_ms: int = 90_000,
        dead_after_ms: int = 300_000,
        max_ahead_ms: int = 60_000,
    ) -> None:
        self.cluster_id, self.storage = cluster_id, storage
        self.image = MetadataImage()
        self.counts = IngestCounts()
        self._window_ms, self._windows = window_ms, windows
        self._stale_after_ms, self._dead_after_ms, self._max_ahead_ms = (
            stale_after_ms,
            dead_after_ms,
            max_ahead_ms,
        )
        self._rates: dict[tuple[int, str], WindowRing] = {}
        self._latest: dict[tuple[int, str], LatestValues] = {}
        self._seen_ms = LatestValues()  # newest leader sample of each partition
        self._reporters: dict[int, _Reporter] = {}
        self._capacity: dict[int, dict[str, float]] = {}
        self._use: dict[int, dict[str, float]] = {}
        self._order: tuple[int, IntArray, tuple[str, ...], IntArray] | None = None

    def apply(self, event: Event, now_ms: int) -> None:
        """Fold a metadata event; `MetadataImage.apply` says what is refused. A moved partition keeps its
        history."""
        freed = self.image.apply(event, now_ms)
        if isinstance(event, BrokerRemoved):
            self._reporters.pop(event.id, None)
            self._capacity.pop(event.id, None)
            self._use.pop(event.id, None)
        if len(freed):
            for ring in self._rates.values():
                ring.forget(freed)
            for latest in (*self._latest.values(), self._seen_ms):
                latest.forget(freed)

    def reload(self, events: Iterable[Event], now_ms: int) -> None:
        """Replace the metadata by a whole image, given as events. What the image does not have is gone;
        partitions that it has keep their history."""
        whole = list(events)
        topics = {e.name: e.topic_id for e in whole if isinstance(e, TopicCreated)}
        brokers = {e.id for e in whole if isinstance(e, BrokerRegistered)}
        for name, topic_id in list(self.image.topic_ids.items()):
            if topics.get(name) != topic_id:
                self.apply(TopicDeleted(name), now_ms)
        for broker in [b for b in self.image.brokers if b not in brokers]:
            self.apply(BrokerRemoved(broker), now_ms)
        for event in whole:
            self.apply(event, now_ms)

    def set_capacity(self, broker: int, resource: str, value: float) -> None:
        """State a broker's capacity, in the resource's unit; what its reporter says later replaces it."""
        self._capacity.setdefault(broker, {})[resource] = value

    def broker_use(self, broker: int) -> dict[str, float]:
        """Newest measured use of a whole broker, resource -> value; what its replicas' loads should add up
        to."""
        return dict(self._use.get(broker, {}))

    def ingest(self, batch: ObservedBatch, now_ms: int) -> bool:
        """Count one batch; False where it was refused as a whole (see `counts` for why).

        O(values), vectorized over rows.
        """
        counts = self.counts
        reporter = self._reporters.get(batch.broker)
        if batch.time_ms > now_ms + self._max_ahead_ms:
            counts.ahead += 1
            return False
        if batch.time_ms <= now_ms - self._window_ms * self._windows:
            counts.too_old += 1
            return False
        if reporter is not None and (batch.incarnation, batch.sequence) <= (
            reporter.incarnation,
            reporter.sequence,
        ):
            counts.repeated += 1
            return False
        if batch.broker not in self.image.brokers:
            counts.unknown += 1
            return False
        newest = max(batch.time_ms, reporter.time_ms if reporter is not None else 0)
        self._reporters[batch.broker] = _Reporter(batch.incarnation, batch.sequence, newest)
        counts.batches += 1
        rows = self.image.topic_rows(batch.topics)
        for block in batch.blocks:
            if block.scope == CAPACITY or block.scope == BROKER:
                self._ingest_broker(batch.broker, block)
            else:
                self._ingest_replicas(batch, block, rows)
        return True

    def _ingest_broker(self, broker: int, block: ObservedBlock) -> None:
        table = self._capacity if block.scope == CAPACITY else self._use
        for metric, value in zip(block.metrics, block.values[:, 0].tolist(), strict=True):
            if metric not in RESOURCES or np.isnan(value):
                continue
            if not 0.0 <= value < np.inf:
                self.counts.senseless += 1
                continue
            table.setdefault(broker, {})[metric] = value
            self.counts.values += 1

    def _ingest_replicas(self, batch: ObservedBatch, block: ObservedBlock, topic_rows: IntArray) -> None:
        slots = self.image.slots(topic_rows[block.topic], block.partition)
        known = slots >= 0
        hosted = (self.image.replicas[slots] == batch.broker).any(axis=1) & known
        self.counts.unknown += int(np.count_nonzero(~known))
        self.counts.elsewhere += int(np.count_nonzero(known & ~hosted))
        if block.scope == REPLICA:
            leads = hosted & (self.image.leader[slots] == batch.broker)
            self._count(batch, block, LEADER, leads, slots)
            self._count(batch, block, FOLLOWER, hosted & ~leads, slots)
        else:
            self._count(batch, block, block.scope, hosted, slots)

    def _count(
        self,
        batch: ObservedBatch,
        block: ObservedBlock,
        role: int,
        taken: npt.NDArray[np.bool_],
        slots: IntArray,
    ) -> None:
        for metric, column in zip(block.metrics, block.values, strict=True):
            if not metric:
                continue
            sensible = np.isfinite(column) & (column >= 0.0)
            self.counts.senseless += int(np.count_nonzero(taken & ~sensible & ~np.isnan(column)))
            chosen = taken & sensible
            at, values = slots[chosen], column[chosen]
            key = (role, metric)
            if key not in self._latest:
                self._latest[key] = LatestValues()
                if metric not in GAUGES:
                    self._rates[key] = WindowRing(self._window_ms, self._windows)
            self._latest[key].put(at, values)
            if key in self._rates:
                self._rates[key].add(at, values, batch.window_ms, batch.time_ms)
            self.counts.values += len(at)
        if role == LEADER and taken.any():
            seen = slots[taken]
            before = self._seen_ms.get(seen)
            self._seen_ms.put(seen, np.fmax(before, float(batch.time_ms)))

    def staleness(self, now_ms: int) -> Staleness:
        """Partitions whose leader, and brokers who, sent nothing for longer than `stale_after_ms`; fenced
        ones too."""
        slots, topics, rank = self._canonical()
        old = ~(self._seen_ms.get(slots) >= now_ms - self._stale_after_ms)
        names = tuple((topics[rank[i]], int(self.image.number[slots[i]])) for i in np.flatnonzero(old))
        silent = [
            b for b in sorted(self.image.brokers)
            if b not in self._reporters or self._reporters[b].time_ms < now_ms - self._stale_after_ms
        ]  # fmt: skip
        return Staleness(names, tuple(silent))

    def snapshot(self, taken_at_ms: int, *, horizon_ms: int | None = None) -> Snapshot:
        """The cluster as of now, frozen: later events and batches do not reach it.

        Loads are means over `horizon_ms` (default: all windows), or the last known value where that has no
        sample. A partition with a reassignment in progress stands where it is going. An in-sync follower
        costs the `network_in` and `disk` of its leader. What is stale, in progress or unknown is in `notes`.
        """
        image = self.image
        slots, topics, rank = self._canonical()
        windows = None if horizon_ms is None else max(1, horizon_ms // self._window_ms)
        replicas, leader = self._placement(slots)
        used = np.unique(replicas[replicas != NO_BROKER])
        ids = np.union1d(np.fromiter(image.brokers, dtype=np.int32, count=len(image.brokers)), used).astype(np.int32)
        states = np.array([self._state(int(b), taken_at_ms) for b in ids], dtype=np.int8)
        factor = (replicas != NO_BROKER).sum(axis=1)
        leading, following = self._loads(slots, factor, taken_at_ms, windows)
        return Snapshot(
            cluster_id=self.cluster_id,
            taken_at=_timestamp(taken_at_ms),
            storage=self.storage,
            broker_ids=ids,
            broker_states=states,
            racks=tuple(image.brokers[int(b)].rack if int(b) in image.brokers else None for b in ids),
            capacity=self._capacities(ids),
            topics=topics,
            partition_topic=rank.astype(np.int32),
            partition_number=image.number[slots],
            replicas=_rows(ids, replicas),
            leader=_rows(ids, leader),
            leader_load=leading,
            follower_load=following,
            has_follower_load=np.full(len(slots), bool(following)),
            notes=self._notes(taken_at_ms, ids, states),
        )

    def _canonical(self) -> tuple[IntArray, tuple[str, ...], IntArray]:
        """Slots by topic name and number, names of topics that have any, and each slot's row among these."""
        image = self.image
        if self._order is None or self._order[0] != image.structure:
            slots = image.live_slots()
            names = image.topic_names()
            used = np.unique(image.topic_row[slots])
            topics = sorted(names[row] for row in used.tolist())
            place = {name: i for i, name in enumerate(topics)}
            rank_of_row = np.full(len(names) + 1, -1, dtype=np.int32)
            for row in used.tolist():
                rank_of_row[row] = place[names[row]]
            rank = rank_of_row[image.topic_row[slots]]
            order = np.lexsort((image.number[slots], rank))
            self._order = (image.structure, slots[order], tuple(topics), rank[order])
        return self._order[1:]

    def _placement(self, slots: IntArray) -> tuple[IntArray, IntArray]:
        """Replica lists and leaders by wire id, reassignments in progress taken as done."""
        image = self.image
        replicas, leader = image.replicas[slots], image.leader[slots]
        if image.reassigning:
            row_of_slot = {int(slot): row for row, slot in enumerate(slots)}
            for slot, (_, removing) in image.reassigning.items():
                row = row_of_slot[slot]
                kept = [b for b in replicas[row].tolist() if b != NO_BROKER and b not in removing]
                replicas[row] = NO_BROKER
                replicas[row, : len(kept)] = kept
                if leader[row] in removing:
                    in_sync = image.in_sync(slot)
                    leader[row] = next((b for b in kept if b in in_sync), kept[0])
        width = max(1, int((replicas != NO_BROKER).sum(axis=1).max(initial=1)))
        return np.ascontiguousarray(replicas[:, :width]), leader

    def _loads(
        self, slots: IntArray, factor: npt.NDArray[np.int_], now_ms: int, windows: int | None
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Leader and follower vectors per measured resource; resources that nobody reported are left out."""
        leading = {r: self._load(LEADER, r, slots, now_ms, windows) for r in MEASURED}
        following = {r: self._load(FOLLOWER, r, slots, now_ms, windows) for r in MEASURED}
        for resource in FOLLOWER_COPIES_LEADER:
            leading[resource] = _filled(leading[resource], following[resource])
            following[resource] = leading[resource].copy()
        fetched = self._load(LEADER, "consumer_out", slots, now_ms, windows)
        leading["network_out"] = _filled(leading["network_out"], fetched + (factor - 1) * leading["network_in"])
        own = [r for r in MEASURED if r not in FOLLOWER_COPIES_LEADER and not np.isnan(following[r]).all()]
        leading = {r: v for r, v in leading.items() if not np.isnan(v).all()}
        if not own:
            return leading, {}
        return leading, {r: v for r, v in following.items() if not np.isnan(v).all()}

    def _load(self, role: int, resource: str, slots: IntArray, now_ms: int, windows: int | None) -> FloatArray:
        latest = self._latest.get((role, resource))
        if latest is None:
            return np.full(len(slots), np.nan)
        ring = self._rates.get((role, resource))
        if ring is None:
            return latest.get(slots)
        return _filled(ring.average(slots, now_ms, windows), latest.get(slots))

    def _capacities(self, ids: IntArray) -> dict[str, FloatArray]:
        tables = [self._capacity.get(int(b), {}) for b in ids]
        named = {resource for table in tables for resource in table}
        return {
            resource: np.array([table.get(resource, np.nan) for table in tables])
            for resource in RESOURCES if resource in named
        }  # fmt: skip

    def _state(self, broker: int, now_ms: int) -> BrokerState:
        entry = self.image.brokers.get(broker)
        if entry is None:
            return BrokerState.DEAD
        if entry.fenced_since_ms is None:
            return BrokerState.ACTIVE
        return BrokerState.DEAD if now_ms - entry.fenced_since_ms > self._dead_after_ms else BrokerState.EXCLUDED

    def _notes(self, now_ms: int, ids: IntArray, states: npt.NDArray[np.int8]) -> tuple[str, ...]:
        notes = []
        stale = self.staleness(now_ms)
        if stale.partitions:
            names = [f"{topic}-{number}" for topic, number in stale.partitions]
            notes.append(f"loads of {len(names)} partitions are old or unknown: {_some(names)}")
        if stale.brokers:
            notes.append(f"no samples from brokers {_some([str(b) for b in stale.brokers])}")
        frozen = [str(b) for b, state in zip(ids.tolist(), states, strict=True) if state == BrokerState.EXCLUDED]
        if frozen:
            notes.append(f"brokers {_some(frozen)} are fenced; left alone for {self._dead_after_ms // 1000} s")
        if self.image.reassigning:
            notes.append(f"{len(self.image.reassigning)} reassignments in progress, counted where they are going")
        return tuple(notes)


def _filled(values: FloatArray, otherwise: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), otherwise, values)


def _rows(ids: IntArray, wire: IntArray) -> IntArray:
    """Rows of wire ids, which are all in `ids` or absent."""
    return np.where(wire == NO_BROKER, -1, np.searchsorted(ids, wire)).astype(np.int32)


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMED_IN_NOTES
    return ", ".join(names[:NAMED_IN_NOTES]) + (f" and {more} more" if more > 0 else "")


def _timestamp(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds").replace("+00:00", "Z")
