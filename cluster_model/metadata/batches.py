"""Record batches of the metadata log: where each starts, whether it is whole, and the records in it.

Used by `checkpoint`, `tail` and `fold`. Kafka's batch format with magic 2, which this log always has, uncompressed.
Bytes come from the reader of the files.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import crc32c

from cluster_model.metadata.records import Record, decode_control, decode_record
from cluster_model.metadata.wire import MalformedError, Reader

HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH_FROM = 12  # the length in the header counts what comes after it
CRC_FROM = 21  # and the checksum what comes after it
MAGIC = 2
LEAST_RECORD = 7  # bytes: six numbers and the attributes
COMPRESSION, CONTROL = 0x07, 0x20
MAX_BATCH_BYTES = 64 << 20  # Kafka writes 8 MiB at most
WINDOW_BYTES = 4 << 20  # read at once


class TornError(Exception):
    """The bytes end before the batch does, or no batch was written here yet."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One whole batch at `position` of its file. Two that are equal have the same content, but for chance."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    epoch: int
    control: bool
    count: int
    time_ms: int
    crc: int

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1


def read_batch(data: bytes, at: int, position: int, expected: int | None) -> Batch:
    """The batch at ``data[at:]``, which is at `position` of its file; checked, with its checksum.

    Parameters
    ----------
    expected
        The base offset it must have; None takes any.

    Raises
    ------
    TornError
        There is no whole batch yet.
    MalformedError
        What is there is not the next batch: damaged, rewritten, or of another place in the log.
    """
    if len(data) - at < HEADER.size:
        raise TornError(f"{len(data) - at} bytes, a batch starts with {HEADER.size}")
    base, length, epoch, magic, crc, attributes, last, _, time_ms, _, _, _, count = HEADER.unpack_from(data, at)
    size = LENGTH_FROM + length
    if length == 0:
        raise TornError("zeros")
    if magic != MAGIC:
        raise MalformedError(f"magic {magic}, expected {MAGIC}")
    if not HEADER.size <= size <= MAX_BATCH_BYTES:
        raise MalformedError(f"a batch of {size} bytes")
    if expected is not None and base != expected:
        raise MalformedError(f"a batch at offset {base}, expected {expected}")
    if len(data) - at < size:
        raise TornError(f"{len(data) - at} of {size} bytes")
    if crc32c.crc32c(memoryview(data)[at + CRC_FROM : at + size]) != crc:
        raise MalformedError("the checksum differs from the content")
    if attributes & COMPRESSION:
        raise MalformedError("a compressed batch, which a metadata log never has")
    if last < 0 or not 0 <= count <= last + 1:
        raise MalformedError(f"{count} records in {last + 1} offsets")
    if count * LEAST_RECORD > size - HEADER.size:  # before a reader makes room for so many
        raise MalformedError(f"{count} records in {size - HEADER.size} bytes")
    return Batch(position, size, base, base + last, epoch, bool(attributes & CONTROL), count, time_ms, crc)


def read_batches(
    file: int, position: int, expected: int, window: int = WINDOW_BYTES
) -> Iterator[tuple[bytes, list[tuple[int, Batch]]]]:
    """Whole batches of an open file from `position` on, the first at offset `expected`: bytes, and the place in
    them and head of each batch.

    Raises
    ------
    TornError
        The file ends, or ends within a batch: everything before was handed out.
    MalformedError
        What comes next is not the next batch, as `read_batch` says.
    """
    size = window
    while True:
        data = os.pread(file, size, position)
        placed: list[tuple[int, Batch]] = []
        at = 0
        ending: Exception | None = None
        while ending is None:
            try:
                batch = read_batch(data, at, position + at, expected)
            except (TornError, MalformedError) as error:
                ending = error
            else:
                placed.append((at, batch))
                at += batch.size
                expected = batch.next_offset
        if placed:
            yield data, placed
            position, size = position + at, window
        elif isinstance(ending, TornError) and len(data) == size < MAX_BATCH_BYTES:
            size = min(2 * size, MAX_BATCH_BYTES)  # a batch that is larger than the window
        else:
            raise ending


def raw_records(data: bytes, at: int, batch: Batch) -> Iterator[tuple[int, bytes | None, int, int]]:
    """(offset, key, start and end of the value) of each record in the batch at ``data[at:]``.

    Raises
    ------
    MalformedError
        The records are not what the header announces.
    """
    reader = Reader(data, at + HEADER.size, at + batch.size)
    for _ in range(batch.count):
        length = reader.varint()
        end = reader.at + length
        if length < 0 or end > reader.end:
            raise MalformedError(f"a record of {length} bytes")
        reader.raw(1)
        reader.varint()
        offset = batch.base_offset + reader.varint()
        size = reader.varint()
        key = reader.raw(size) if size >= 0 else None
        size = reader.varint()
        begin = reader.at
        if size < 0:
            raise MalformedError("a record without a value")
        reader.raw(size)
        yield offset, key, begin, reader.at
        for _ in range(reader.varint()):  # headers; this log has none
            reader.raw(reader.varint())
            reader.raw(max(reader.varint(), 0))
        if reader.at != end:
            raise MalformedError("a record that is shorter than its length")
    reader.finish()


def decoded(data: bytes, at: int, batch: Batch) -> Iterator[tuple[int, Record]]:
    """(offset, record) of each record in a batch; control records too.

    Raises
    ------
    MalformedError
        As `raw_records` and `decode_record`.
    """
    for offset, key, begin, end in raw_records(data, at, batch):
        if batch.control:
            yield offset, decode_control(key or b"", data[begin:end])
        else:
            yield offset, decode_record(data, begin, end)
