"""The internal topic: the seam between reporters and consumers, and its embedded form on a SQLite file.

`RecordSink` is what a publisher knows, `RecordSource` what a consumer knows; a topic of a real cluster
(`metrics_reporter.kafka_topic`) stands behind the same seam. `EmbeddedTopic` serves the demo, tests and
single-host use: several processes may write and read one file.
Standard library only; time comes in by parameter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import NamedTuple, Protocol, Self

DEFAULT_NAME = "__trimtab_metrics"
BUSY_TIMEOUT_S = 10.0

SCHEMA = """
CREATE TABLE IF NOT EXISTS topic (name TEXT NOT NULL, partitions INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS next_offset (partition INTEGER PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS record (
    partition INTEGER NOT NULL, record_offset INTEGER NOT NULL, time_ms INTEGER NOT NULL, value BLOB NOT NULL,
    UNIQUE (partition, record_offset));
CREATE INDEX IF NOT EXISTS record_time ON record (time_ms);
"""


class TopicError(Exception):
    """The internal topic cannot be used; the message says what to do."""


class RecordRefused(TopicError):
    """The topic will never take this record, however often it is sent."""


class TopicRecord(NamedTuple):
    partition: int
    offset: int
    time_ms: int
    value: bytes


class RecordSink(Protocol):
    """Where records go. All records of one broker go to one partition, in order."""

    def publish(self, records: Sequence[bytes], *, broker: int, time_ms: int) -> None:
        """Append records of a broker. One alone is appended or not; of several, a failure may leave the first
        ones appended, unless the sink says that it is all or none.

        Raises
        ------
        RecordRefused
            Sending it again is of no use.
        TopicError
            It was not, or perhaps not, appended; the same record may be sent again.
        """
        ...


class RecordSource(Protocol):
    """An ordered log of records in partitions."""

    @property
    def partitions(self) -> int: ...

    def poll(self, positions: Mapping[int, int], limit: int) -> list[TopicRecord]:
        """At most `limit` records of each partition from the given offsets on; a position that retention has
        passed continues at the oldest record there is."""
        ...

    def begin_offsets(self) -> dict[int, int]: ...

    def end_offsets(self) -> dict[int, int]: ...

    def offsets_at(self, time_ms: int) -> dict[int, int]:
        """Partition -> oldest offset of a record that was appended at this time (Unix ms) or later; the end where there
        is none."""
        ...


class MetricTopic(RecordSink, RecordSource, Protocol):
    """Both ends of one topic."""


class EmbeddedTopic:
    """A `MetricTopic` in one SQLite file; `publish` appends all or none.

    Parameters
    ----------
    path
        Created where absent; `partitions` counts only then.
    retention_ms, retention_bytes
        What `retain` keeps; None keeps everything.

    Raises
    ------
    TopicError
        The file is not a topic, or cannot be opened or written.
    """

    def __init__(
        self,
        path: Path,
        *,
        partitions: int = 1,
        retention_ms: int | None = None,
        retention_bytes: int | None = None,
        name: str = DEFAULT_NAME,
    ) -> None:
        if partitions < 1:
            raise ValueError(f"a topic has at least 1 partition, not {partitions}")
        self._path, self._lock = path, Lock()
        self._retention_ms, self._retention_bytes = retention_ms, retention_bytes
        try:
            self._db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as e:
            raise TopicError(f"{path}: expected a file that can be opened as the internal topic: {e}") from e
        try:
            self._partitions = self._open(name, partitions)
        except sqlite3.Error as e:
            self._db.close()
            raise TopicError(
                f"{path}: expected a topic file, found something else ({e}); remove it or choose another"
            ) from e

    def _open(self, name: str, partitions: int) -> int:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.split(";"):
            self._db.execute(statement)
        found = self._db.execute("SELECT partitions FROM topic").fetchone()
        if found is None:
            self._db.execute("INSERT INTO topic VALUES (?, ?)", (name, partitions))
            self._db.executemany("INSERT INTO next_offset VALUES (?, 0)", [(p,) for p in range(partitions)])
        self._db.execute("COMMIT")
        return partitions if found is None else int(found[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    @property
    def partitions(self) -> int:
        return self._partitions

    def publish(self, records: Sequence[bytes], *, broker: int, time_ms: int) -> None:
        """Append records of a broker, in one transaction."""
        partition = broker % self._partitions
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                row = self._db.execute("SELECT value FROM next_offset WHERE partition = ?", (partition,)).fetchone()
                first = int(row[0])
                rows = [(partition, first + i, time_ms, value) for i, value in enumerate(records)]
                self._db.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", rows)
                self._db.execute("UPDATE next_offset SET value = ? WHERE partition = ?", (first + len(rows), partition))
                self._db.execute("COMMIT")
            except sqlite3.Error as e:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise TopicError(f"{self._path}: broker {broker}'s records were not written: {e}") from e

    def poll(self, positions: Mapping[int, int], limit: int) -> list[TopicRecord]:
        """Records from the given positions on, by partition, then offset."""
        statement = (
            "SELECT partition, record_offset, time_ms, value FROM record"
            " WHERE partition = ? AND record_offset >= ? ORDER BY record_offset LIMIT ?"
        )
        found: list[TopicRecord] = []
        with self._lock:
            try:
                for partition, offset in sorted(positions.items()):
                    rows = self._db.execute(statement, (partition, offset, limit))
                    found.extend(TopicRecord(*row) for row in rows)
            except sqlite3.Error as e:
                raise TopicError(f"{self._path}: records could not be read: {e}") from e
        return found

    def begin_offsets(self) -> dict[int, int]:
        """Partition -> oldest offset kept (the next one to come where nothing is kept)."""
        begins = self.end_offsets()
        begins.update(self._pairs("SELECT partition, MIN(record_offset) FROM record GROUP BY partition"))
        return begins

    def end_offsets(self) -> dict[int, int]:
        """Partition -> the offset that comes next."""
        return self._pairs("SELECT partition, value FROM next_offset ORDER BY partition")

    def offsets_at(self, time_ms: int) -> dict[int, int]:
        """See `RecordSource.offsets_at`; times are those that `publish` was given."""
        offsets = self.end_offsets()
        newer = f"SELECT partition, MIN(record_offset) FROM record WHERE time_ms >= {int(time_ms)} GROUP BY partition"
        return offsets | self._pairs(newer)

    def retain(self, now_ms: int) -> int:
        """Delete what retention does not keep, oldest first; how many records went."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                gone = self._expire(now_ms) + self._shrink()
                self._db.execute("COMMIT")
            except sqlite3.Error as e:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise TopicError(f"{self._path}: old records could not be deleted: {e}") from e
        return gone

    def _expire(self, now_ms: int) -> int:
        if self._retention_ms is None:
            return 0
        return self._db.execute("DELETE FROM record WHERE time_ms < ?", (now_ms - self._retention_ms,)).rowcount

    def _shrink(self) -> int:
        if self._retention_bytes is None:
            return 0
        running = "SELECT rowid AS id, SUM(LENGTH(value)) OVER (ORDER BY time_ms DESC, rowid DESC) AS total FROM record"
        statement = f"DELETE FROM record WHERE rowid IN (SELECT id FROM ({running}) WHERE total > ?)"
        return self._db.execute(statement, (self._retention_bytes,)).rowcount

    def _pairs(self, statement: str) -> dict[int, int]:
        with self._lock:
            try:
                return {int(a): int(b) for a, b in self._db.execute(statement)}
            except sqlite3.Error as e:
                raise TopicError(f"{self._path}: offsets could not be read: {e}") from e
