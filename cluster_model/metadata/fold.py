"""Folds batches of the metadata log into an image, and says what happened.

Used by `follower` and `checkpoint`. Partition records, which are nearly all of a large log, are folded by compiled
kernels; the others are decoded one by one. What is not known is skipped and counted where that is safe, and refused
where it is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cluster_model.metadata import kernels
from cluster_model.metadata import schemas as s
from cluster_model.metadata.batches import Batch, decoded
from cluster_model.metadata.events import (
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
from cluster_model.metadata.image import MetadataImage
from cluster_model.metadata.indexing import Records, index_batches, kernel_bytes, refused
from cluster_model.metadata.partition_table import MAX_REPLICAS
from cluster_model.metadata.records import Fields, decode_fields
from cluster_model.metadata.topic_table import TopicTable
from cluster_model.metadata.wire import MalformedError, Reader, uuid_text

_KEYS = 1024  # api keys below this are looked up in tables
_UNKNOWN, _IDLE, _COLUMNAR, _SINGLE = range(4)


def _tables() -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """How each api key is folded, and its newest version that is known."""
    kinds = np.full(_KEYS, _UNKNOWN, dtype=np.int8)
    newest = np.full(_KEYS, np.iinfo(np.int32).max, dtype=np.int32)
    for key, schema in s.RECORDS.items():
        kinds[key] = _SINGLE if key in s.FOLDED else _IDLE
        if key in s.FOLDED:
            newest[key] = schema.newest
    kinds[[s.PARTITION, s.PARTITION_CHANGE]] = _COLUMNAR
    return kinds, newest


@dataclass(slots=True)
class FoldCounts:
    """What was read since the start. `unknown`: api key -> records of types that are not known, skipped."""

    records: int = 0
    unknown: Counter[int] = field(default_factory=Counter)
    aborted: int = 0  # records of transactions that were aborted


class RecordFold:
    """An image that records are folded into.

    Parameters
    ----------
    image
        Owned by the fold from now on.

    Attributes
    ----------
    events
        What happened since the list was last emptied; None keeps no account, which is faster.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.counts = FoldCounts()
        self.events: list[Event] | None = None
        self._topics = TopicTable()
        self._open: list[tuple[Records, int, int]] | None = None  # of a transaction that has not ended
        self._kinds, self._newest = _tables()
        self._elr: npt.NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self._stamp: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._run = 0
        self._found: npt.NDArray[np.int64] = np.zeros(9, dtype=np.int64)

    def take(self, data: bytes, placed: Sequence[tuple[int, Batch]], where: str, now_ms: int) -> None:
        """Fold batches in their order.

        Parameters
        ----------
        data, placed
            Bytes, and the place in them of each batch.
        where
            What to call the source in errors.

        Raises
        ------
        InputError
            A record is damaged, or of a version that cannot be skipped. The image is of no use then.
        """
        begin = 0
        for i, (at, batch) in enumerate(placed):
            if batch.control:
                self._take_data(data, placed[begin:i], where, now_ms)
                self._take_control(data, at, batch, where)
                begin = i + 1
        self._take_data(data, placed[begin:], where, now_ms)

    # -- batches -------------------------------------------------------------------------------------------

    def _take_control(self, data: bytes, at: int, batch: Batch, where: str) -> None:
        try:
            for _, record in decoded(data, at, batch):
                self.counts.records += 1
                if record.key == s.LEADER_CHANGE and record.fields is not None:
                    self.elected(record.fields["leaderId"], batch.epoch)
        except MalformedError as error:
            raise refused(where, batch.base_offset, str(error)) from None

    def elected(self, controller: int, epoch: int) -> None:
        """A controller is known to be the active one in an epoch; older news is ignored."""
        known = self.image.controller
        if known is None or epoch > known.epoch:
            self._happened(ControllerChanged(controller, epoch), 0)

    def _take_data(self, data: bytes, placed: Sequence[tuple[int, Batch]], where: str, now_ms: int) -> None:
        if not placed:
            return
        records = index_batches(data, placed, where)
        keys = np.minimum(records.keys, _KEYS - 1)
        kinds = self._kinds[keys]
        self.counts.records += len(keys)
        self.counts.unknown.update(records.keys[kinds == _UNKNOWN].tolist())
        too_new = np.flatnonzero(records.versions > self._newest[keys])
        if len(too_new):
            i = int(too_new[0])
            schema = s.RECORDS[int(records.keys[i])]
            raise refused(
                where,
                int(records.offsets[i]),
                f"{schema.name} version {records.versions[i]}, this release reads 0 to {schema.newest}; "
                "the cluster is newer: update Trimtab, or follow it through the admin interface (without --kraft-log)",
            )
        chosen = np.flatnonzero(kinds >= _COLUMNAR)
        if not len(chosen):
            return
        records = records.only(chosen)
        begin = 0
        for i in np.flatnonzero(kinds[chosen] == _SINGLE).tolist():
            self._step(records, begin, i, now_ms)
            self._step(records, i, i + 1, now_ms)
            begin = i + 1
        self._step(records, begin, len(chosen), now_ms)

    # -- transactions --------------------------------------------------------------------------------------

    def _step(self, records: Records, first: int, last: int, now_ms: int) -> None:
        """Fold a range of partition records, or one other record, or keep it until its transaction ends."""
        if first == last:
            return
        key = int(records.keys[first])
        if key == s.BEGIN_TRANSACTION:
            if self._open is not None:
                raise refused(records.where, int(records.offsets[first]), "a transaction starts within another")
            self._open = []
        elif key in (s.END_TRANSACTION, s.ABORT_TRANSACTION):
            if self._open is None:
                raise refused(records.where, int(records.offsets[first]), "a transaction ends that never started")
            pending, self._open = self._open, None
            if key == s.ABORT_TRANSACTION:
                self.counts.aborted += sum(end - begin for _, begin, end in pending)
                return
            for step in pending:
                self._fold(*step, now_ms)
        elif self._open is not None:
            self._open.append((records, first, last))
        else:
            self._fold(records, first, last, now_ms)

    def _fold(self, records: Records, first: int, last: int, now_ms: int) -> None:
        if self._kinds[records.keys[first]] == _COLUMNAR:
            self._fold_partitions(records, first, last)
        else:
            self._fold_single(records, first, now_ms)

    # -- partitions, by the kernel -------------------------------------------------------------------------

    def _fold_partitions(self, records: Records, first: int, last: int) -> None:
        image, data = self.image, kernel_bytes(records.data)
        touched = np.full(len(records.keys), -1, dtype=np.int32)
        at = first
        while at < last:
            self._fit()
            kept = np.zeros(image.replicas.shape[1], dtype=np.int64)
            run = self._next_run() if self.events is not None else 0
            why, stopped = kernels.fold_partitions(
                data, records.begins, records.stops, records.keys, records.versions, at, last,
                self._topics.high, self._topics.low, self._topics.rows,
                image.topic_start, image.topic_room, image.pool, image.counters,
                image.topic_row, image.number, image.leader, image.replicas, image.in_sync_places, image.epochs,
                self._elr, image.free_slots, self._stamp, run, touched, self._found, kept,
            )  # fmt: skip
            if self.events is not None:
                changed = touched[at:stopped]
                self.events += image.partitions(changed[changed >= 0])
            at = int(stopped)
            match why:
                case kernels.OTHER:
                    self._fold_reassignment(records, at)
                    at += 1
                case kernels.NO_ROOM:
                    begin = int(records.begins[at])
                    number = int.from_bytes(records.data[begin : begin + 4], "big")
                    image.grow_pool(4 * (number + 1))
                case kernels.NO_SLOT:
                    image.grow()
                case kernels.TOO_WIDE:
                    image.widen(self._width(records, at))
                case kernels.MALFORMED:
                    message = "a partition record that is not whole, or names a broker below 0"
                    raise refused(records.where, int(records.offsets[at]), message)
                case kernels.NO_TOPIC | kernels.NO_PARTITION:
                    thing = "topic" if why == kernels.NO_TOPIC else "partition"
                    message = f"a partition record of a {thing} that no record before it brought"
                    raise refused(records.where, int(records.offsets[at]), message)

    def _fit(self) -> None:
        """As many places in our own columns as the image has slots."""
        missing = len(self.image.topic_row) - len(self._elr)
        if missing > 0:
            self._elr = np.pad(self._elr, (0, missing))
            self._stamp = np.pad(self._stamp, (0, missing))

    def _next_run(self) -> int:
        self._run += 1
        if self._run == np.iinfo(np.int32).max:
            self._stamp[:] = 0
            self._run = 1
        return self._run

    def _width(self, records: Records, i: int) -> int:
        return self._checked_width(records, i, self._fields(records, i))

    def _checked_width(self, records: Records, i: int, fields: Fields) -> int:
        """How many replicas a partition record names."""
        width = len(fields["replicas"] or ())
        if width > MAX_REPLICAS:
            message = f"a partition of {width} replicas, expected at most {MAX_REPLICAS}"
            raise refused(records.where, int(records.offsets[i]), message)
        if min(fields["replicas"] or (0,)) < 0:
            raise refused(records.where, int(records.offsets[i]), "a partition record that names a broker below 0")
        return width

    def _fold_reassignment(self, records: Records, i: int) -> None:
        """A partition record with adding or removing replicas, or that ends a reassignment."""
        image, fields = self.image, self._fields(records, i)
        self._checked_width(records, i, fields)
        name = self._topics.names.get(fields["topicId"])
        if name is None:
            message = "a partition record of a topic that no record before it brought"
            raise refused(records.where, int(records.offsets[i]), message)
        row, number = image.row_of(name), fields["partitionId"]
        slot = image.slot(row, number)
        if slot < 0 and records.keys[i] == s.PARTITION_CHANGE:
            message = "a partition record of a partition that no record before it brought"
            raise refused(records.where, int(records.offsets[i]), message)
        if slot < 0:
            slot = image.take_slot(row, number)
            self._fit()
        if records.keys[i] == s.PARTITION:
            before = PartitionChanged(name, number, (), (), None)
            epoch, leader, self._elr[slot] = fields["partitionEpoch"], fields["leader"], 0
        else:
            before = image.partition(slot)
            epoch, leader = int(image.epochs[slot]) + 1, fields["leader"]
        kept = before.leader if leader == -2 else None
        image.set_partition(
            slot,
            PartitionChanged(
                name,
                number,
                _either(fields["replicas"], before.replicas),
                _either(fields["isr"], before.isr),
                leader if leader >= 0 else kept,
                _either(fields["addingReplicas"], before.adding),
                _either(fields["removingReplicas"], before.removing),
                epoch,
            ),
        )
        for tag, bit in (("eligibleLeaderReplicas", kernels.ELIGIBLE), ("lastKnownElr", kernels.LAST_KNOWN)):
            if fields[tag] is not None:
                self._elr[slot] = (self._elr[slot] | bit) if fields[tag] else (self._elr[slot] & ~bit)
        if self.events is not None:
            self.events.append(image.partition(slot))

    # -- the other types, one by one -----------------------------------------------------------------------

    def _fold_single(self, records: Records, i: int, now_ms: int) -> None:
        fields = self._fields(records, i)
        match int(records.keys[i]):
            case s.TOPIC:
                name, topic_id = fields["name"], fields["topicId"]
                self._happened(TopicCreated(name, uuid_text(topic_id)), now_ms)
                self._topics.put(topic_id, name, self.image.row_of(name))
            case s.REMOVE_TOPIC:
                removed = self._topics.remove(fields["topicId"])
                if removed is None:
                    message = "a record removes a topic that no record before it brought"
                    raise refused(records.where, int(records.offsets[i]), message)
                self._happened(TopicDeleted(removed), now_ms)
            case s.REGISTER_BROKER:
                self._happened(
                    BrokerRegistered(
                        fields["brokerId"], fields["rack"], fields["fenced"], fields["inControlledShutdown"]
                    ),
                    now_ms,
                )
            case s.CLEAR_ELR:
                self._clear_elr(fields["topicName"])
            case key:
                broker = fields.get("brokerId", fields.get("id"))
                if broker not in self.image.brokers:
                    message = f"a record of broker {broker}, which no record before it brought"
                    raise refused(records.where, int(records.offsets[i]), message)
                for event in _broker_events(key, fields, broker):
                    self._happened(event, now_ms)

    def _clear_elr(self, topic: str) -> None:
        slots = self.image.slots_of_topic(topic)
        cleared = slots[self._elr[slots] != 0]
        self._elr[cleared] = 0
        self.image.epochs[cleared] += 1

    def _happened(self, event: Event, now_ms: int) -> None:
        self.image.apply(event, now_ms)
        if self.events is not None:
            self.events.append(event)

    def _fields(self, records: Records, i: int) -> Fields:
        schema = s.RECORDS[int(records.keys[i])]
        reader = Reader(records.data, int(records.begins[i]), int(records.stops[i]))
        try:
            fields = decode_fields(schema.fields, int(records.versions[i]), reader)
            reader.finish()
        except MalformedError as error:
            raise refused(records.where, int(records.offsets[i]), f"{schema.name}: {error}") from None
        return fields


def _broker_events(key: int, fields: Fields, broker: int) -> list[Event]:
    match key:
        case s.UNREGISTER_BROKER:
            return [BrokerRemoved(broker)]
        case s.FENCE_BROKER:
            return [BrokerFenced(broker)]
        case s.UNFENCE_BROKER:
            return [BrokerUnfenced(broker)]
    events: list[Event] = []
    if fields["fenced"] != 0:
        events.append(BrokerFenced(broker) if fields["fenced"] > 0 else BrokerUnfenced(broker))
    if fields["inControlledShutdown"] > 0:
        events.append(BrokerStopping(broker))
    return events


def _either(given: list[int] | None, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    return otherwise if given is None else tuple(given)
