"""The binary form of a sample batch, version 1: writing it, and walking it safely.

Standard library only. `encode` is the reporter's side; `frame` checks a record's structure for every reader
and hands out views into it, which `metrics_reporter.columns` turns into arrays. The layout is documented in
docs/metric-topic.md.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from dataclasses import dataclass

from metrics_reporter.sample import BROKER_SCOPES, METRIC_IDS, BatchHeader, SampleBatch, Scope

MAGIC = b"TTMS"
VERSION = 1
HEADER = struct.Struct("<4sBBHiIqQQI")  # magic version flags blocks broker window time incarnation sequence topics
INCARNATION_FIELD = 7
BLOCK = struct.Struct("<BBHI")  # scope reserved metrics rows
CHECKSUM = struct.Struct("<I")
MAX_TOPIC_BYTES = 249  # Kafka's limit of a topic name
MAX_TIME_MS = 253_402_300_800_000  # end of the year 9999
ABSENT = float("nan")


class DecodeError(Exception):
    """A record is not a batch this release can read; the consumer counts it and goes on."""


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block of a record: views of little-endian columns, not yet checked for content.

    `topic` u32 [rows] (row in the record's topic table) and `partition` i32 [rows] are empty for broker
    scopes; `values` is f64 [metrics, rows], NaN where a row has no such value.
    """

    scope: Scope
    metric_ids: tuple[int, ...]
    rows: int
    topic: memoryview
    partition: memoryview
    values: memoryview


@dataclass(frozen=True, slots=True)
class Frame:
    header: BatchHeader
    topics: tuple[str, ...]
    blocks: tuple[BlockView, ...]


def encode(batch: SampleBatch) -> bytes:
    """The record of a batch. Samples of one scope form one block; an absent value is NaN.

    Raises
    ------
    ValueError
        A metric or topic name that the format cannot carry, or a number out of its range (a collector's bug).
    """
    topics: dict[str, int] = {}
    rows: dict[Scope, dict[tuple[int, int], dict[int, float]]] = {}
    for scope, topic, partition, metric, value in batch.samples:
        if metric not in METRIC_IDS:
            raise ValueError(f"metric {metric!r} has no wire id; expected one of {sorted(METRIC_IDS)}")
        key = (0, 0)
        if scope not in BROKER_SCOPES:
            if topic is None or partition is None:
                raise ValueError(f"a {scope.name.lower()} sample of {metric} names no topic-partition")
            key = (topics.setdefault(topic, len(topics)), partition)
        rows.setdefault(scope, {}).setdefault(key, {})[METRIC_IDS[metric]] = value
    head = batch.header
    try:
        parts = [
            HEADER.pack(MAGIC, VERSION, 0, len(rows), head.broker, head.window_ms, head.time_ms,
                        head.incarnation, head.sequence, len(topics)),
            _topic_table(topics),
        ]  # fmt: skip
        parts.extend(_block(scope, rows[scope]) for scope in sorted(rows))
    except (struct.error, OverflowError) as e:
        raise ValueError(f"batch of broker {head.broker} at {head.time_ms}: a number is out of range: {e}") from e
    body = b"".join(parts)
    return body + CHECKSUM.pack(zlib.crc32(body))


def with_incarnation(record: bytes, incarnation: int) -> bytes:
    """The same record of another incarnation of the reporter; `record` is one that `encode` made."""
    fields = list(HEADER.unpack_from(record))
    fields[INCARNATION_FIELD] = incarnation
    body = HEADER.pack(*fields) + record[HEADER.size : -CHECKSUM.size]
    return body + CHECKSUM.pack(zlib.crc32(body))


def frame(record: bytes) -> Frame:
    """The checked structure of a record. No count in it is trusted before the bytes behind it were seen.

    Raises
    ------
    DecodeError
        Anything wrong with the record, whatever it is.

    Notes
    -----
    Linear in the record's size, in time and in memory.
    """
    if len(record) < HEADER.size + CHECKSUM.size:
        raise DecodeError(f"{len(record)} bytes, expected at least {HEADER.size + CHECKSUM.size}")
    magic, version, _, blocks, broker, window, time_ms, incarnation, sequence, topics = HEADER.unpack_from(record)
    if magic != MAGIC:
        raise DecodeError(f"starts with {magic!r}, expected {MAGIC!r}")
    if version != VERSION:
        raise DecodeError(f"format version {version}, this release reads version {VERSION}")
    view = memoryview(record)
    body = view[: -CHECKSUM.size]
    if zlib.crc32(body) != CHECKSUM.unpack_from(record, len(body))[0]:
        raise DecodeError("checksum differs from the content")
    if broker < 0 or not 0 <= time_ms < MAX_TIME_MS:
        raise DecodeError(f"broker {broker} at time {time_ms} is out of range")
    cursor = _Cursor(body, HEADER.size)
    names = _read_topics(cursor, topics)
    views = tuple(_read_block(cursor) for _ in range(blocks))
    if cursor.left:
        raise DecodeError(f"{cursor.left} bytes left after {blocks} blocks")
    return Frame(BatchHeader(broker, time_ms, window, incarnation, sequence), names, views)


class _Cursor:
    """Takes bytes off a view, or refuses."""

    def __init__(self, view: memoryview, at: int) -> None:
        self._view, self._at = view, at

    @property
    def left(self) -> int:
        return len(self._view) - self._at

    def take(self, size: int) -> memoryview:
        if size > self.left:
            raise DecodeError(f"{size} bytes announced where {self.left} are left")
        self._at += size
        return self._view[self._at - size : self._at]


def _read_topics(cursor: _Cursor, count: int) -> tuple[str, ...]:
    lengths = _integers("H", cursor.take(2 * count))
    names = []
    for length in lengths:
        if not 0 < length <= MAX_TOPIC_BYTES:
            raise DecodeError(f"topic name of {length} bytes, expected 1 to {MAX_TOPIC_BYTES}")
        try:
            names.append(str(cursor.take(length), "utf-8"))
        except UnicodeDecodeError as e:
            raise DecodeError("topic name is not UTF-8") from e
    return tuple(names)


def _read_block(cursor: _Cursor) -> BlockView:
    number, _, metrics, rows = BLOCK.unpack(cursor.take(BLOCK.size))
    try:
        scope = Scope(number)
    except ValueError as e:
        raise DecodeError(f"scope {number} is unknown") from e
    of_broker = scope in BROKER_SCOPES
    if metrics == 0 or rows == 0 or (of_broker and rows != 1):
        raise DecodeError(f"{scope.name.lower()} block of {metrics} metrics and {rows} rows")
    ids = tuple(_integers("H", cursor.take(2 * metrics)))
    width = 0 if of_broker else 4 * rows
    return BlockView(scope, ids, rows, cursor.take(width), cursor.take(width), cursor.take(8 * metrics * rows))


def _topic_table(topics: dict[str, int]) -> bytes:
    names = [name.encode("utf-8") for name in topics]
    for name in names:
        if not 0 < len(name) <= MAX_TOPIC_BYTES:
            raise ValueError(f"topic name of {len(name)} bytes, expected 1 to {MAX_TOPIC_BYTES}")
    return _little(array("H", [len(name) for name in names])) + b"".join(names)


def _block(scope: Scope, rows: dict[tuple[int, int], dict[int, float]]) -> bytes:
    metrics = sorted({metric for values in rows.values() for metric in values})
    parts = [BLOCK.pack(scope, 0, len(metrics), len(rows)), _little(array("H", metrics))]
    if scope not in BROKER_SCOPES:
        parts.append(_little(array("I", [topic for topic, _ in rows])))
        parts.append(_little(array("i", [partition for _, partition in rows])))
    parts.extend(_little(array("d", [v.get(metric, ABSENT) for v in rows.values()])) for metric in metrics)
    return b"".join(parts)


def _little(column: array[int] | array[float]) -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _integers(code: str, view: memoryview) -> array[int]:
    column: array[int] = array(code, bytes(view))
    if sys.byteorder == "big":
        column.byteswap()
    return column
