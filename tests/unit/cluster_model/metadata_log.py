"""Writes metadata log directories as Kafka does: batches, segments, checkpoints; and does to them what Kafka, a power
cut or a failover would do.

Used by the tests of `cluster_model.metadata` and by `benchmarks.metadata_replay`. The encoder reads the same table of
schemas as the decoder; that the table is right is for the tests on real Kafka, and on the recorded log, to say.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import crc32c

from cluster_model.metadata import schemas as s
from cluster_model.metadata.batches import HEADER
from cluster_model.metadata.schemas import CONTROL_RECORDS, RECORDS, Field

_FORMATS = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q", "float64": ">d"}
TIME_MS = 1_767_225_600_000


@dataclass(frozen=True)
class Entry:
    """One record: api key, version, and the fields that are not at their defaults."""

    key: int
    version: int
    fields: Mapping[str, Any] = field(default_factory=dict)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def varint(value: int) -> bytes:
    return uvarint((value << 1) ^ (value >> 63))


def value_of(entry: Entry) -> bytes:
    """A record's value, framed; of a type that is not known, without any field."""
    fields = RECORDS[entry.key].fields if entry.key in RECORDS else ()
    return uvarint(1) + uvarint(entry.key) + uvarint(entry.version) + fields_of(fields, entry.version, entry.fields)


def fields_of(fields: tuple[Field, ...], version: int, values: Mapping[str, Any]) -> bytes:
    plain, tags = b"", []
    for f in fields:
        if f.since > version:
            continue
        default = list(f.default) if f.array and f.default is not None else f.default
        value = values.get(f.name, default)
        if f.tag is None:
            plain += _one(f, version, 0 if value is None and f.kind in _FORMATS else value)
        elif value != default:
            tags.append((f.tag, _one(f, version, value)))
    written = b"".join(uvarint(tag) + uvarint(len(raw)) + raw for tag, raw in sorted(tags))
    return plain + uvarint(len(tags)) + written


def _one(f: Field, version: int, value: Any) -> bytes:
    if not f.array:
        return _scalar(f, version, value)
    if value is None:
        return uvarint(0)
    return uvarint(len(value) + 1) + b"".join(_scalar(f, version, x) for x in value)


def _scalar(f: Field, version: int, value: Any) -> bytes:
    if f.kind == "struct":
        return fields_of(f.fields, version, value)
    if f.kind == "uuid":
        return bytes(value)
    if f.kind in ("string", "bytes"):
        if value is None:
            return uvarint(0)
        raw = value.encode() if isinstance(value, str) else value
        return uvarint(len(raw) + 1) + raw
    return struct.pack(_FORMATS[f.kind], value)


def batch_of(
    base_offset: int, epoch: int, records: Sequence[tuple[bytes | None, bytes]], *, control: bool = False
) -> bytes:
    """A record batch; records are (key, value)."""
    body = b""
    for delta, (key, value) in enumerate(records):
        record = b"\0" + varint(0) + varint(delta)
        record += varint(-1) if key is None else varint(len(key)) + key
        record += varint(len(value)) + value + varint(0)
        body += varint(len(record)) + record
    last = len(records) - 1
    rest = struct.pack(">hiqqqhii", 0x20 if control else 0, last, TIME_MS, TIME_MS, -1, -1, -1, len(records)) + body
    head = struct.pack(">qiibI", base_offset, len(rest) + 9, epoch, 2, crc32c.crc32c(rest))
    assert len(head) + len(rest) == HEADER.size + len(body)
    return head + rest


def data_batch(base_offset: int, epoch: int, entries: Sequence[Entry]) -> bytes:
    return batch_of(base_offset, epoch, [(None, value_of(e)) for e in entries])


def control_batch(base_offset: int, epoch: int, kind: int, fields: Mapping[str, Any]) -> bytes:
    schema = CONTROL_RECORDS[kind]
    value = fields_of(schema.fields, 0, {"version": 0, **fields})
    return batch_of(base_offset, epoch, [(struct.pack(">hh", 0, kind), value)], control=True)


def leader_change(base_offset: int, epoch: int, leader: int) -> bytes:
    voters = [{"voterId": leader}]
    return control_batch(
        base_offset, epoch, s.LEADER_CHANGE, {"leaderId": leader, "voters": voters, "grantingVoters": voters}
    )


@dataclass
class LogWriter:
    """A metadata log directory that is written to; `end` is the offset of the next record."""

    directory: Path
    end: int = 0
    epoch: int = 1
    _segment: Path | None = None
    _places: list[tuple[int, Path, int, int]] = field(default_factory=list)  # base offset, segment, start and end of batches

    def roll(self) -> None:
        """Start a new segment."""
        if self._segment is not None:
            self._drop_torn(self._segment)
        self._segment = self.directory / f"{self.end:020d}.log"
        self._segment.touch()

    def append(self, *entries: Entry) -> int:
        """Write a batch; the offset after it."""
        return self._write(data_batch(self.end, self.epoch, entries), len(entries))

    def elect(self, leader: int) -> int:
        """Start a new epoch."""
        self.epoch += 1
        return self._write(leader_change(self.end, self.epoch, leader), 1)

    def tear(self, *entries: Entry, share: float = 0.5) -> None:
        """Write the start of a batch, as if the writer were interrupted; the next write completes or replaces it."""
        raw = data_batch(self.end, self.epoch, entries)
        path = self._open()
        self._drop_torn(path)
        with path.open("ab") as file:
            file.write(raw[: max(1, int(len(raw) * share))])

    def truncate(self, offset: int) -> None:
        """Drop every batch from `offset` on, and the segments after it."""
        for path in sorted(self.directory.glob("*.log"))[1:]:
            if int(path.stem) > offset:
                path.rename(path.with_suffix(".log.deleted"))
        self._segment = sorted(self.directory.glob("*.log"))[-1]
        self._places = [place for place in self._places if place[0] < offset]
        self._drop_torn(self._segment)
        self.end = offset

    def delete_before(self, offset: int) -> None:
        """Remove segments that end at or before `offset`, as retention does."""
        segments = sorted(self.directory.glob("*.log"))
        for path, following in pairwise(segments):
            if int(following.stem) <= offset:
                path.unlink()
        self._places = [p for p in self._places if p[1].exists()]

    def checkpoint(self, offset: int, epoch: int, entries: Sequence[Entry], *, whole: bool = True) -> Path:
        """Write a checkpoint of what is before `offset`."""
        path = self.directory / f"{offset:020d}-{epoch:010d}.checkpoint"
        raw = control_batch(0, epoch, s.SNAPSHOT_HEADER, {"lastContainedLogTimestamp": TIME_MS})
        base = 1
        for i in range(0, len(entries), 50):
            part = entries[i : i + 50]
            raw += data_batch(base, epoch, part)
            base += len(part)
        if whole:
            raw += control_batch(base, epoch, s.SNAPSHOT_FOOTER, {})
        path.write_bytes(raw)
        return path

    def _open(self) -> Path:
        if self._segment is None:
            self.roll()
        assert self._segment is not None
        return self._segment

    def _write(self, raw: bytes, count: int) -> int:
        path = self._open()
        self._drop_torn(path)
        begin = path.stat().st_size
        self._places.append((self.end, path, begin, begin + len(raw)))
        with path.open("ab") as file:
            file.write(raw)
        self.end += count
        return self.end

    def _drop_torn(self, path: Path) -> None:
        """Leave nothing after the last whole batch, as a writer does that finds the start of one there."""
        os.truncate(path, max((end for _, segment, _, end in self._places if segment == path), default=0))
