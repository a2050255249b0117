"""The decoders of the metadata log against records that no writer meant.

Whatever the bytes, `record` and `control` give a record or raise `MalformedError`, `batch` a whole batch or `TornError` or
`MalformedError`, and `fold` an image that fits together or `InputError`. The suite runs them under Hypothesis
(tests/unit/cluster_model/test_metadata_fuzz.py), `tests.fuzz.codecs` for hours.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any

import crc32c
import numpy as np

from cluster_model.errors import ExternalError, InputError
from cluster_model.metadata import schemas as s
from cluster_model.metadata.batches import CRC_FROM, HEADER, Batch, TornError, decoded, read_batch
from cluster_model.metadata.fold import RecordFold
from cluster_model.metadata.image import MetadataImage
from cluster_model.metadata.records import decode_control, decode_record
from cluster_model.metadata.schemas import CONTROL_RECORDS
from cluster_model.metadata.wire import MalformedError
from tests.unit.cluster_model.metadata_log import Entry, batch_of, data_batch, fields_of, leader_change, value_of

TOPIC_ID = bytes(range(16))
WHERE = "fuzz"


def record(data: bytes) -> None:
    """A record's value; its frame version is put right."""
    with suppress(MalformedError):
        decode_record(b"\x01" + data, 0, 1 + len(data))


def control(data: bytes) -> None:
    """A control record: four bytes of key, then the value."""
    with suppress(MalformedError):
        decode_control(data[:4], data[4:])


def batch(data: bytes) -> None:
    """A batch, its checksum put right where it has one."""
    raw = _signed(data)
    with suppress(MalformedError, TornError):
        found = read_batch(raw, 0, 0, None)
        for _ in decoded(raw, 0, found):
            pass


def fold(data: bytes) -> None:
    """Batches of records, each with two bytes of length, folded into an image that has a topic, a partition and two brokers.

    The first byte says whether events are kept; a batch that starts with an odd byte is a whole one, the bytes of another are values
    of records, each with a byte of length.
    """
    fold = RecordFold(MetadataImage())
    start = data_batch(0, 1, preamble())
    fold.take(start, [(0, read_batch(start, 0, 0, 0))], WHERE, 0)
    fold.events = [] if data[:1] < b"\x80" else None
    at = 1
    try:
        while at + 3 <= len(data):
            size = int.from_bytes(data[at : at + 2], "big")
            raw, at = data[at + 2 : at + 2 + size], at + 2 + size
            raw = _signed(raw[1:]) if raw[:1] and raw[0] % 2 else batch_of(0, 1, _values(raw[1:]))
            with suppress(MalformedError, TornError):
                fold.take(raw, [(0, read_batch(raw, 0, 0, None))], WHERE, 0)
    except (InputError, ExternalError):
        return
    _check(fold.image)


def _values(data: bytes) -> list[tuple[bytes | None, bytes]]:
    values: list[tuple[bytes | None, bytes]] = []
    while data:
        values.append((None, data[1 : 1 + data[0]]))
        data = data[1 + data[0] :]
    return values


def _signed(raw: bytes) -> bytes:
    """`raw` with its length and checksum put right, where it is long enough to have them."""
    if len(raw) < HEADER.size:
        return raw
    raw = raw[:8] + (len(raw) - 12).to_bytes(4, "big") + raw[12:16] + b"\x02" + raw[17:]
    return raw[:17] + crc32c.crc32c(raw[CRC_FROM:]).to_bytes(4, "big") + raw[CRC_FROM:]


def _check(image: MetadataImage) -> None:
    slots = np.concatenate([image.slots_of_topic(name) for name in image.topic_names()] or [np.zeros(0, np.int32)])
    assert len(set(slots.tolist())) == len(slots)
    for event in image.partitions(slots):
        assert event.replicas
        assert set(event.isr) <= set(event.replicas)
        assert event.partition >= 0


def _filled(fields: tuple[s.Field, ...], version: int) -> dict[str, Any]:
    """A value for every field that a version has."""
    one = {"string": "t", "bytes": b"b", "uuid": TOPIC_ID, "bool": True}
    values: dict[str, Any] = {}
    for f in fields:
        if f.since <= version:
            value = _filled(f.fields, version) if f.kind == "struct" else one.get(f.kind, 1)
            values[f.name] = [value] if f.array else value
    return values


def _entry(key: int, version: int, **fields: Any) -> Entry:
    return Entry(key, version, {**_filled(s.RECORDS[key].fields, version), **fields})


@lru_cache(maxsize=1)
def preamble() -> tuple[Entry, ...]:
    """Two brokers, and a topic with one partition."""
    return (
        _entry(s.REGISTER_BROKER, 0, brokerId=1), _entry(s.REGISTER_BROKER, 0, brokerId=2),
        _entry(s.TOPIC, 0, name="orders", topicId=TOPIC_ID),
        _entry(s.PARTITION, 0, partitionId=0, replicas=[1, 2], isr=[1], leader=1, removingReplicas=[], addingReplicas=[]),
    )  # fmt: skip


def seeds() -> dict[str, list[bytes]]:
    """Records as Kafka writes them, in the form that each property takes."""
    entries = [
        *preamble(),
        *(_entry(k, v) for k, schema in s.RECORDS.items() for v in range(schema.newest + 1)),
        Entry(s.PARTITION_CHANGE, 0, {"topicId": TOPIC_ID, "partitionId": 0, "isr": [2], "leader": 2}),
        Entry(s.PARTITION_CHANGE, 0, {"topicId": TOPIC_ID, "partitionId": 0, "replicas": [1, 2, 3], "addingReplicas": [3], "isr": [1, 2]}),
        Entry(s.PARTITION_CHANGE, 0, {"topicId": TOPIC_ID, "partitionId": 0, "replicas": [2, 3]}),
        _entry(s.PARTITION, 1, partitionId=5, replicas=[2], isr=[2], leader=2, removingReplicas=[], addingReplicas=[]),
    ]  # fmt: skip
    values = [value_of(entry) for entry in entries]
    folded = [b"\0" + (len(v) + 2).to_bytes(2, "big") + b"\0" + bytes([len(v)]) + v for v in values if len(v) < 256]
    return {
        "record": [v[1:] for v in values],
        "control": [b"\0\0\0\2" + fields_of(CONTROL_RECORDS[s.LEADER_CHANGE].fields, 0, {"version": 0, "leaderId": 1, "voters": []})],
        "batch": [data_batch(0, 1, preamble()), leader_change(0, 5, 101), *(batch_of(0, 1, [(None, v)]) for v in values)],
        "fold": folded,
    }


def batch_head(count: int, last: int) -> bytes:
    """The smallest batch whose head announces so many records in so many offsets."""
    return _signed(HEADER.pack(0, HEADER.size - 12, 1, 2, 0, 0, last, 0, 0, -1, -1, -1, count))


def batches_in(raw: bytes) -> list[tuple[int, Batch]]:
    """The batch that `raw` is, as the fold takes it."""
    return [(0, read_batch(raw, 0, 0, None))]
