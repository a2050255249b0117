"""Samples on their way into columns: which count, which wait for metadata, which are given up.

Owned by `cluster_model.model`, which holds the lock around every call. Time comes in by parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from cluster_model.brokers import BrokerLoads
from cluster_model.deliveries import Deliveries
from cluster_model.loads import Key
from cluster_model.metadata.events import BrokerRegistered, BrokerRemoved, Event, PartitionChanged, TopicCreated, TopicDeleted
from cluster_model.metadata.image import MetadataImage
from cluster_model.observed import BROKER, CAPACITY, FOLLOWER, GAUGES, LEADER, REPLICA, REPLICA_METRICS, IngestCounts, ObservedBatch
from cluster_model.snapshot import BoolArray, IntArray
from cluster_model.waiting import Piece, WaitingSamples
from cluster_model.windows import NEVER, Column, Gauges, Horizon, Rates

HOUSEKEEPING_MS = 60_000
DELETED_REMEMBERED = 100_000  # names of deleted topics, newest


class SampleStore:
    """Columns by scope and metric, of the partitions and brokers of an image.

    Attributes
    ----------
    columns
        (LEADER or FOLLOWER, metric) -> values of every slot of the image.
    brokers, deliveries, waiting
        What is measured of whole brokers; what came already; what the metadata does not place yet.
    newest_ms
        The latest time that a batch is of; -1: none came.
    """

    def __init__(self, image: MetadataImage, short: Horizon, long: Horizon, *, max_ahead_ms: int, max_wait_ms: int) -> None:
        self._image, self._short, self._long = image, short, long
        self._max_ahead_ms = max_ahead_ms
        self.counts = IngestCounts()
        self.columns: dict[Key, Column] = {}
        self.brokers = BrokerLoads(short, long)
        self.deliveries = Deliveries()
        self.waiting = WaitingSamples(max_wait_ms)
        self.newest_ms = NEVER
        self._deleted_ms: dict[str, int] = {}
        self._housekept_ms = 0
        self._numbers = count()

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns.values()) + self.brokers.nbytes + 8 * self.waiting.cells

    # -- metadata: called before the image changes, but for `forget` ------------------------------------------

    def expect(self, event: Event, now_ms: int) -> None:
        """An event is about to be folded into the image."""
        match event:
            case TopicDeleted(name):
                self._topic_deleted(name, now_ms)
            case TopicCreated(name, topic_id):
                if self._image.topic_ids.get(name, topic_id) != topic_id:
                    self._topic_deleted(name, now_ms)
            case PartitionChanged():
                self.waiting.topic_changed(event.topic)
            case BrokerRegistered(id):
                self.waiting.broker_changed(id)
            case BrokerRemoved(id):
                self.brokers.remove(id)

    def expect_all(self, image: MetadataImage, now_ms: int) -> None:
        """The image is about to become another one."""
        for name, topic_id in self._image.topic_ids.items():
            if image.topic_ids.get(name) != topic_id:
                self._topic_deleted(name, now_ms)
        for broker in self._image.brokers:
            if broker not in image.brokers:
                self.brokers.remove(broker)
        self.waiting.all_changed()

    def forget(self, slots: IntArray) -> None:
        """Slots, int32 [N], are free now."""
        if len(slots):
            for column in self.columns.values():
                column.forget(slots)

    def _topic_deleted(self, name: str, now_ms: int) -> None:
        if name not in self._image.topic_ids:
            return
        self._deleted_ms.pop(name, None)
        self._deleted_ms[name] = now_ms
        self.waiting.topic_changed(name)
        if len(self._deleted_ms) > DELETED_REMEMBERED:
            del self._deleted_ms[next(iter(self._deleted_ms))]

    # -- samples -------------------------------------------------------------------------------------------

    def accept(self, batch: ObservedBatch, now_ms: int, stands_in: bool = False) -> list[Piece] | None:
        """The pieces of a batch that counts; None where it is refused as a whole."""
        if batch.time_ms > now_ms + self._max_ahead_ms or batch.time_ms < 0:
            self.counts.ahead += 1
            return None
        if not stands_in and not self.deliveries.take(batch.broker, batch.incarnation, batch.sequence, batch.time_ms, now_ms):
            self.counts.repeated += 1
            return None
        self.counts.batches += 1
        self.newest_ms = max(self.newest_ms, min(batch.time_ms, now_ms))
        self.settle(now_ms)
        self._keep_house(now_ms)
        return [
            Piece(
                batch.broker, batch.time_ms, batch.window_ms, now_ms, next(self._numbers), int(block.scope), tuple(block.metrics),
                batch.topics, block.topic, block.partition, np.array(block.values, dtype=np.float64, order="C"),
            )
            for block in batch.blocks
        ]  # fmt: skip

    def columns_of(self, piece: Piece) -> Iterator[Column]:
        """Columns that the values of a piece go to; new ones are made."""
        roles = {LEADER: (LEADER,), FOLLOWER: (FOLLOWER,), REPLICA: (LEADER, FOLLOWER)}.get(piece.scope, ())
        for role in roles:
            for metric in piece.metrics:
                if metric in REPLICA_METRICS:
                    yield self._column(role, metric)

    def take(self, piece: Piece) -> None:
        """Count the values that the metadata places; let the others wait."""
        if piece.broker not in self._image.brokers:
            self._wait(piece)
        elif piece.scope in (BROKER, CAPACITY):
            counted, senseless = self.brokers.add(piece)
            self.counts.values += counted
            self.counts.senseless += senseless
        elif piece.scope in (LEADER, FOLLOWER, REPLICA) and len(piece.topic):
            self._take_replicas(piece)

    def settle(self, now_ms: int) -> None:
        """Try again what waits and may be placed now; give up what waited too long."""
        for piece in self.waiting.take():
            self.take(piece)
        for piece in self.waiting.expire(now_ms):
            if piece.scope in (BROKER, CAPACITY) or piece.broker not in self._image.brokers:
                self.counts.unknown += piece.count
                continue
            known = piece.only(self._slots(piece) >= 0).count
            self.counts.elsewhere += known
            self.counts.unknown += piece.count - known

    def _take_replicas(self, piece: Piece) -> None:
        slots = self._slots(piece)
        placed: BoolArray = (self._image.replicas[slots] == piece.broker).any(axis=1) & (slots >= 0)
        waits = ~placed
        earlier = self._of_deleted_topics(piece)
        if earlier is not None:
            self.counts.earlier += piece.only(earlier).count
            placed &= ~earlier
            waits &= ~earlier
        if waits.any():
            self._wait(piece.only(waits))
        if piece.scope == REPLICA:
            leads = self._image.leader[slots] == piece.broker
            self._count(piece, LEADER, np.where(placed & leads, slots, -1))
            self._count(piece, FOLLOWER, np.where(placed & ~leads, slots, -1))
        else:
            self._count(piece, piece.scope, np.where(placed, slots, -1))

    def _slots(self, piece: Piece) -> IntArray:
        return self._image.slots(self._image.topic_rows(piece.topics)[piece.topic], piece.partition)

    def _of_deleted_topics(self, piece: Piece) -> BoolArray | None:
        """Rows whose interval started before a topic of that name was deleted; None where there are none."""
        if not self._deleted_ms or self._deleted_ms.keys().isdisjoint(piece.topics):
            return None
        deleted = np.array([self._deleted_ms.get(name, NEVER) for name in piece.topics], dtype=np.int64)
        return np.asarray(piece.time_ms - piece.window_ms < deleted[piece.topic])

    def _wait(self, piece: Piece) -> None:
        self.counts.crowded_out += self.waiting.add(piece)

    def _count(self, piece: Piece, role: int, slots: IntArray) -> None:
        room = int(slots.max(initial=-1)) + 1
        for metric, values in zip(piece.metrics, piece.values, strict=True):
            if metric not in REPLICA_METRICS:
                continue
            column = self._column(role, metric)
            column.reserve(room)
            taken = column.add(slots, values, piece.window_ms, piece.time_ms)
            self.counts.values += taken.counted
            self.counts.senseless += taken.senseless
            self.counts.too_old += taken.old

    def _column(self, role: int, metric: str) -> Column:
        column = self.columns.get((role, metric))
        if column is None:
            column = Gauges() if metric in GAUGES else Rates(self._short, self._long)
            self.columns[role, metric] = column
        return column

    def _keep_house(self, now_ms: int) -> None:
        if now_ms - self._housekept_ms < HOUSEKEEPING_MS:
            return
        self._housekept_ms = now_ms
        self.deliveries.prune(self._image.brokers)
        # Nothing that old is counted any more.
        oldest = now_ms - 2 * self._long.span_ms - self._max_ahead_ms
        self._deleted_ms = {name: at for name, at in self._deleted_ms.items() if at >= oldest}
