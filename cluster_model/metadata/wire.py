"""Reads values in Kafka's flexible encoding from bytes.

Used by `schemas` and `batches`. Knows types, and nothing of records or files.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

UUID_BYTES = 16
_INT16, _UINT16, _INT32, _INT64, _FLOAT64 = (struct.Struct(f) for f in (">h", ">H", ">i", ">q", ">d"))


class MalformedError(ValueError):
    """Bytes that are not what their type says."""


def uuid_text(raw: bytes) -> str:
    """A 16-byte id as Kafka writes it."""
    return urlsafe_b64encode(raw).decode("ascii").rstrip("=")


class Reader:
    """A place in bytes that moves on with every value read.

    Reading beyond `end` raises `MalformedError`, at the latest when `finish` is called.
    """

    __slots__ = ("_data", "at", "end")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data, self.at, self.end = data, at, end

    def finish(self) -> None:
        """Everything must have been read, and nothing more."""
        if self.at != self.end:
            word = "left over" if self.at < self.end else "missing"
            raise MalformedError(f"{abs(self.end - self.at)} bytes {word}")

    def uvarint(self) -> int:
        data, at = self._data, self.at
        value = shift = 0
        while True:
            if at >= self.end or shift > 63:
                raise MalformedError("a number without end")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.at = at
                return value
            shift += 7

    def varint(self) -> int:
        """A number in zig-zag form."""
        value = self.uvarint()
        return (value >> 1) ^ -(value & 1)

    def raw(self, length: int) -> bytes:
        begin, self.at = self.at, self.at + length
        if length < 0 or self.at > self.end:
            raise MalformedError(f"{length} bytes announced, {self.end - begin} there")
        return self._data[begin : self.at]

    def int8(self) -> int:
        byte = self.raw(1)[0]
        return byte - 256 if byte > 127 else byte

    def boolean(self) -> bool:
        return self.raw(1) != b"\0"

    def int16(self) -> int:
        return int(_INT16.unpack(self.raw(2))[0])

    def uint16(self) -> int:
        return int(_UINT16.unpack(self.raw(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.raw(4))[0])

    def int64(self) -> int:
        return int(_INT64.unpack(self.raw(8))[0])

    def float64(self) -> float:
        return float(_FLOAT64.unpack(self.raw(8))[0])

    def uuid(self) -> bytes:
        return self.raw(UUID_BYTES)

    def bytes_(self) -> bytes | None:
        length = self.uvarint()
        return None if length == 0 else self.raw(length - 1)

    def string(self) -> str | None:
        raw = self.bytes_()
        if raw is None:
            return None
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise MalformedError(f"a text that is not UTF-8: {error}") from None

    def array(self, read: Callable[[Reader], Any]) -> list[Any] | None:
        length = self.uvarint()
        if length == 0:
            return None
        if length - 1 > self.end - self.at:  # every element has at least one byte
            raise MalformedError(f"{length - 1} elements announced, {self.end - self.at} bytes there")
        return [read(self) for _ in range(length - 1)]
