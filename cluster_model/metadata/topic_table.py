"""Topic ids of the log to topic rows of an image, in a form that compiled kernels can search.

Owned by `fold`. An open-addressed table of 128-bit ids; ids are random, so their own bits are the hash.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

_HALVES = struct.Struct(">qq")
_EMPTY, _GONE = -1, -2
_FIRST = 256


class TopicTable:
    """Id, 16 bytes, to row; `high`, `low` and `rows` are what `kernels.fold_partitions` takes."""

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}  # of the topics that are there, by id
        self.high: npt.NDArray[np.int64] = np.zeros(_FIRST, dtype=np.int64)
        self.low: npt.NDArray[np.int64] = np.zeros(_FIRST, dtype=np.int64)
        self.rows: npt.NDArray[np.int32] = np.full(_FIRST, _EMPTY, dtype=np.int32)
        self._taken = 0  # places that are not empty

    def put(self, topic_id: bytes, name: str, row: int) -> None:
        """Add an id that is not there."""
        if 2 * (self._taken + 1) > len(self.rows):
            self._renew()
        self.names[topic_id] = name
        self._insert(topic_id, row)

    def remove(self, topic_id: bytes) -> str | None:
        """Name of a topic that is taken out; None where there is none of this id."""
        name = self.names.pop(topic_id, None)
        if name is not None:
            high, low = _HALVES.unpack(topic_id)
            place = self._first_place(high, low)
            while self.rows[place] < 0 or self.high[place] != high or self.low[place] != low:
                place = (place + 1) & (len(self.rows) - 1)
            self.rows[place] = _GONE
        return name

    def _insert(self, topic_id: bytes, row: int) -> None:
        high, low = _HALVES.unpack(topic_id)
        place = self._first_place(high, low)
        while self.rows[place] != _EMPTY:
            place = (place + 1) & (len(self.rows) - 1)
        self.high[place], self.low[place], self.rows[place] = high, low, row
        self._taken += 1

    def _first_place(self, high: int, low: int) -> int:
        return (low ^ (high >> 7)) & (len(self.rows) - 1)

    def _renew(self) -> None:
        """Room for twice the topics there are, without those that went."""
        live = np.flatnonzero(self.rows >= 0)
        ids = [_HALVES.pack(h, w) for h, w in zip(self.high[live].tolist(), self.low[live].tolist(), strict=True)]
        rows = self.rows[live].tolist()
        size = _FIRST
        while size < 4 * (len(ids) + 1):
            size *= 2
        self.high = np.zeros(size, dtype=np.int64)
        self.low = np.zeros(size, dtype=np.int64)
        self.rows = np.full(size, _EMPTY, dtype=np.int32)
        self._taken = 0
        for topic_id, row in zip(ids, rows, strict=True):
            self._insert(topic_id, row)
