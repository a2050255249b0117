"""History of samples: Parquet files by day, written whole or not at all, none of a sample twice.

Fed by the service with the batches that its model took. One process at a time writes a folder. Each commit remembers up to
where the internal topic was read, in the file itself, so that a restart goes on exactly there. docs/history.md has the
layout. Time comes in by parameter.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cluster_model.errors import ExternalError
from cluster_model.extras import missing
from trimtab.history.lock import locked
from trimtab.history.rows import DAY_MS, RowBuffer

if TYPE_CHECKING:
    import pyarrow as pa

    from metrics_reporter.columns import BatchColumns

COMMIT = b"trimtab.commit"  # in the metadata of a commit's last file
EPOCH = date(1970, 1, 1)
ROW_GROUP = 250_000
_FOLDER = re.compile(r"date=(\d{4}-\d\d-\d\d)", re.ASCII)
_FILE = re.compile(r"part-(\d{10})\.parquet", re.ASCII)

Positions = Mapping[int, int]
"""Partition of the internal topic -> offset of the first record whose samples are not in the history."""


@dataclass(frozen=True, slots=True)
class SampleHistoryOptions:
    """When a file is closed, and what is kept.

    Attributes
    ----------
    max_rows, max_age_ms
        Rows are written when so many wait, or the first waits for so long. 32 bytes of memory a row.
    keep_days
        Days that are kept, today included.
    keep_bytes
        Oldest files go when all together are larger; None keeps everything of those days.
    """

    max_rows: int = 1_000_000
    max_age_ms: int = 1_800_000
    keep_days: int = 400
    keep_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SampleHistoryState:
    """For metrics and the page: rows by what became of them, and what is wrong now (None: nothing)."""

    written: int = 0
    waiting: int = 0
    expired: int = 0  # older than `keep_days` when they came
    dropped: int = 0  # the folder could not be written for too long
    files: int = 0  # written
    failure: str | None = None


class SampleHistory:
    """A folder of history, open for writing.

    Raises
    ------
    ExternalError
        The folder cannot be written, another process writes it, pyarrow is missing, or its newest file is damaged.
    """

    def __init__(self, root: Path, cluster_id: str, options: SampleHistoryOptions | None = None) -> None:
        _require_pyarrow()
        self._root, self._cluster_id = root, cluster_id
        self._options = SampleHistoryOptions() if options is None else options
        self._state = SampleHistoryState()
        self._buffer = RowBuffer(cluster_id)
        self._since_ms: int | None = None
        self._read: dict[int, int] = {}  # positions of what is in the buffer, and before
        self._lock = locked(root)
        try:
            self._sequence, self._committed = self._recover()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.close()

    @property
    def positions(self) -> dict[int, int] | None:
        """From where the internal topic has to be read on so that nothing is missing or twice; None where nothing was
        ever written."""
        return None if self._committed is None else dict(self._committed)

    @property
    def state(self) -> SampleHistoryState:
        return replace(self._state, waiting=self._buffer.rows)

    def append(self, batches: Iterable[BatchColumns], positions: Positions, now_ms: int) -> None:
        """Take batches; `positions` is how far the topic was read with them. Writes when it is time to.

        A folder that cannot be written is told in `state` and tried again; rows wait meanwhile, at most twice `max_rows`.
        """
        for batch in batches:
            self._buffer.add(batch)
        self._read.update(positions)
        oldest = now_ms // DAY_MS - self._options.keep_days + 1
        self._state = replace(self._state, expired=self._state.expired + self._buffer.drop_days_before(oldest))
        if self._since_ms is None and self._buffer.rows:
            self._since_ms = now_ms
        if self._since_ms is not None and (
            self._buffer.rows >= self._options.max_rows or now_ms - self._since_ms >= self._options.max_age_ms
        ):
            self.flush(now_ms)

    def flush(self, now_ms: int) -> bool:
        """Write what waits, and delete what is not kept; False where that failed."""
        if not self._buffer.rows:
            return True
        try:
            files = self._commit()
        except (OSError, ExternalError) as e:
            self._state = replace(self._state, failure=f"{self._root}: history was not written: {e}")
            if self._buffer.rows >= 2 * self._options.max_rows:
                self._state = replace(self._state, dropped=self._state.dropped + self._buffer.rows)
                self._empty()
            self._since_ms = now_ms
            return False
        self._state = replace(
            self._state, written=self._state.written + self._buffer.rows, files=self._state.files + files, failure=None
        )
        self._committed = dict(self._read)
        self._empty()
        try:
            self._retain(now_ms)
        except OSError as e:
            self._state = replace(self._state, failure=f"{self._root}: old history was not deleted: {e}")
        return True

    def close(self, now_ms: int) -> None:
        """Write what waits and let go of the folder."""
        self.flush(now_ms)
        self._lock.close()

    def _empty(self) -> None:
        self._buffer = RowBuffer(self._cluster_id)
        self._since_ms = None

    # -- writing -------------------------------------------------------------------------------------------

    def _commit(self) -> int:
        """Files of the next sequence number, one a day; only with the last of them the commit is whole."""
        sequence = self._sequence + 1
        _remove(path for number, _, path in self._files() if number == sequence)  # of an attempt that failed
        tables = list(self._buffer.tables())
        made: list[tuple[Path, Path]] = []
        try:
            for place, (day, table) in enumerate(tables):
                folder = self._root / f"date={EPOCH + timedelta(days=day)}"
                folder.mkdir(exist_ok=True)
                path = folder / f"part-{sequence:010}.parquet"
                unfinished = folder / f".{path.name}.tmp"
                made.append((unfinished, path))
                is_last = place == len(tables) - 1
                _write(table, unfinished, {"positions": self._read} if is_last else None)
            for unfinished, path in made:
                os.replace(unfinished, path)
                _sync(path.parent)
            _sync(self._root)
        except BaseException:
            _remove(unfinished for unfinished, _ in made)
            raise
        self._sequence = sequence
        return len(made)

    def _retain(self, now_ms: int) -> None:
        """Delete what is too old or too much, oldest first; the newest commit stays, since it says where to go on."""
        oldest = EPOCH + timedelta(days=now_ms // DAY_MS - self._options.keep_days + 1)
        files = sorted(self._files(), key=lambda f: (f[1], f[0]))
        total = sum(path.stat().st_size for _, _, path in files)
        allowed = self._options.keep_bytes
        for sequence, day, path in files:
            if sequence == self._sequence or not (day < oldest or (allowed is not None and total > allowed)):
                continue
            total -= path.stat().st_size
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()

    # -- what is there -------------------------------------------------------------------------------------

    def _files(self) -> Iterator[tuple[int, date, Path]]:
        """Sequence number, day and path of every finished file."""
        for folder in self._root.iterdir():
            day = _FOLDER.fullmatch(folder.name)
            if day is None or not folder.is_dir():
                continue
            for path in folder.iterdir():
                name = _FILE.fullmatch(path.name)
                if name is not None:
                    yield int(name[1]), date.fromisoformat(day[1]), path

    def _recover(self) -> tuple[int, dict[int, int] | None]:
        """Newest commit and its positions; what an interrupted one left behind is removed."""
        _remove(path for path in self._root.glob("date=*/.part-*.tmp"))
        by_sequence: dict[int, list[Path]] = {}
        for sequence, _, path in self._files():
            by_sequence.setdefault(sequence, []).append(path)
        for sequence in sorted(by_sequence, reverse=True):
            for path in by_sequence[sequence]:
                positions = _positions(path)
                if positions is not None:
                    return sequence, positions
            _remove(by_sequence[sequence])
        return 0, None


def _write(table: pa.Table, path: Path, commit: Mapping[str, object] | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Without Arrow's own schema, every reader sees plain columns, as the contract has them.
    options: dict[str, Any] = {
        "compression": "zstd", "store_schema": False,
        "use_dictionary": ["cluster_id", "broker", "topic", "partition", "metric", "time"],
    }  # fmt: skip
    try:
        with path.open("wb") as file:
            with pq.ParquetWriter(file, table.schema, **options) as writer:
                writer.write_table(table, row_group_size=ROW_GROUP)
                if commit is not None:
                    writer.add_key_value_metadata({COMMIT: json.dumps(commit).encode()})
            file.flush()
            os.fsync(file.fileno())
    except pa.ArrowException as e:
        raise ExternalError(f"{path}: could not be written: {e}", retriable=True) from e


def _positions(path: Path) -> dict[int, int] | None:
    """The positions that a file was committed with; None where it is not the last of its commit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError) as e:
        raise ExternalError(
            f"{path}: expected a Parquet file of the history, found one that cannot be read ({e}); move it away and start again"
        ) from e
    if COMMIT not in metadata:
        return None
    commit: dict[str, Any] = json.loads(metadata[COMMIT])
    return {int(partition): int(offset) for partition, offset in commit["positions"].items()}


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ExternalError(f"history needs {missing('pyarrow')}, or turn the history off") from None

