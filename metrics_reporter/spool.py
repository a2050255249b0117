"""Records that wait to be sent, in order, within a bound of bytes: what bridges the time a cluster is away.

The reporter puts in, the sender's thread takes out. In memory only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Condition

OVERHEAD_BYTES = 200  # of an entry beside its record, roughly


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """One record, with what `RecordSink.publish` wants to know of it."""

    record: bytes
    broker: int
    time_ms: int

    @property
    def size(self) -> int:
        return len(self.record) + OVERHEAD_BYTES


class Spool:
    """A `RecordSink` that takes everything at once. Beyond `max_bytes` the oldest records go.

    Attributes
    ----------
    dropped
        Records that went because there was no room.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: deque[Waiting] = deque()
        self._size = 0
        self._changed = Condition()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._size

    def publish(self, records: Sequence[bytes], *, broker: int, time_ms: int) -> None:
        """Put records in; never waits."""
        with self._changed:
            for record in records:
                self._entries.append(Waiting(record, broker, time_ms))
                self._size += self._entries[-1].size
            while self._size > self._max_bytes and self._entries:
                self._size -= self._entries.popleft().size
                self.dropped += 1
            self._changed.notify_all()

    def oldest(self, seconds: float) -> Waiting | None:
        """The record that goes next, waited for so long; it stays until it is `done`."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._entries), seconds)
            return self._entries[0] if self._entries else None

    def done(self, entry: Waiting) -> None:
        """Take out a record that was sent; no harm where it was dropped meanwhile."""
        with self._changed:
            if self._entries and self._entries[0] is entry:
                self._entries.popleft()
                self._size -= entry.size
