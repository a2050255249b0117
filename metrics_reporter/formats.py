"""The formats of records that a consumer can read: our own, and those that other balancers' agents write.

A format takes records one by one and gives batches of the one shape that models take in
(`metrics_reporter.columns.BatchColumns`). Records of other agents hold one metric or one partition each; they are
put together by broker and time first. Nothing a record says can make a format raise anything but `DecodeError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Protocol

from metrics_reporter.codec import MAX_TIME_MS, MAX_TOPIC_BYTES, DecodeError, encode
from metrics_reporter.columns import BatchColumns, decode
from metrics_reporter.sample import BatchHeader, Sample, SampleBatch


class RecordFormat(Protocol):
    """How records become batches."""

    def add(self, record: bytes) -> None:
        """Take one record.

        Raises
        ------
        DecodeError
            It is none of this format; nothing of it is kept.
        """
        ...

    def take(self) -> list[BatchColumns]:
        """Batches that are complete by now; called after each poll, also where it brought nothing."""
        ...


class OwnFormat:
    """Our reporter's records: each is a batch."""

    def __init__(self) -> None:
        self._batches: list[BatchColumns] = []

    def add(self, record: bytes) -> None:
        self._batches.append(decode(record))

    def take(self) -> list[BatchColumns]:
        taken, self._batches = self._batches, []
        return taken


class Assembler:
    """Makes batches of samples, numbered in the order they are given out.

    Parameters
    ----------
    incarnation
        When reading started, Unix ms: who starts again numbers again, and must not be taken for one that repeats itself.
    """

    def __init__(self, incarnation: int) -> None:
        self._incarnation, self._sequence = incarnation, 0

    def batch(self, broker: int, time_ms: int, window_ms: int, samples: Iterable[Sample]) -> BatchColumns:
        """A batch of samples; none is allowed, and says that the broker lives."""
        header = BatchHeader(broker, time_ms, window_ms, self._incarnation, self._sequence)
        self._sequence += 1
        return decode(encode(SampleBatch(header, tuple(samples))))


class BigEndian:
    """Takes big-endian numbers and texts off a record, or refuses; no length is believed before its bytes were
    seen."""

    def __init__(self, record: bytes) -> None:
        self._record, self._at = record, 0

    @property
    def left(self) -> int:
        return len(self._record) - self._at

    def integer(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big", signed=True)

    def number(self) -> float:
        value: float = struct.unpack(">d", self._take(8))[0]
        return value

    def text(self) -> str:
        size = self.integer(4)
        if size < 0:
            raise DecodeError(f"text of {size} bytes")
        try:
            return str(self._take(size), "utf-8")
        except UnicodeDecodeError as e:
            raise DecodeError("text is not UTF-8") from e

    def topic(self) -> str:
        name = self.text()
        if not 0 < len(name.encode()) <= MAX_TOPIC_BYTES:
            raise DecodeError(f"topic name of {len(name.encode())} bytes, expected 1 to {MAX_TOPIC_BYTES}")
        return name

    def time_and_broker(self) -> tuple[int, int]:
        time_ms, broker = self.integer(8), self.integer(4)
        if broker < 0 or not 0 <= time_ms < MAX_TIME_MS:
            raise DecodeError(f"broker {broker} at time {time_ms} is out of range")
        return time_ms, broker

    def partition(self) -> int:
        number = self.integer(4)
        if number < 0:
            raise DecodeError(f"partition {number} is negative")
        return number

    def end(self) -> None:
        if self.left:
            raise DecodeError(f"{self.left} bytes left after the record")

    def _take(self, size: int) -> bytes:
        if size > self.left:
            raise DecodeError(f"{size} bytes announced where {self.left} are left")
        self._at += size
        return self._record[self._at - size : self._at]
