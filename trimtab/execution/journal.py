"""The journal: documents of executions in a SQLite file on this machine, on disk before a step is taken.

One process at a time may claim it; the lock ends with the process, however that ended. Any process may read it meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from cluster_model.errors import ExternalError
from trimtab.execution.ledger import Document, Documents, told_of

BUSY_SECONDS = 10.0


class Journal:
    """See `Ledger`.

    Parameters
    ----------
    folder
        Made where it is absent.
    cluster_id
        Of the cluster; each has a file of its own.

    Raises
    ------
    ExternalError
        The file cannot be opened or made.
    """

    def __init__(self, folder: Path, cluster_id: str) -> None:
        self.path = folder / f"executions-{cluster_id}.db"
        self._lock: IO[bytes] | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")  # every commit is on disk when it returns
            self._db.execute("CREATE TABLE IF NOT EXISTS document (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        except (OSError, sqlite3.Error) as error:
            raise ExternalError(f"{self.path}: the journal cannot be opened: {error}; name another folder with --journal") from error

    def claim(self) -> None:
        if self._lock is not None:
            return
        lock = open(self.path.with_suffix(".lock"), "wb")  # noqa: SIM115 - held for as long as this is claimed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise ExternalError(
                f"another process on this machine carries out a plan on this cluster ({self.path} is locked); "
                "`trimtab status` shows it, `trimtab cancel` ends it"
            ) from error
        self._lock = lock

    def read(self) -> Documents:
        try:
            return {key: json.loads(value) for key, value in self._db.execute("SELECT key, value FROM document")}
        except (sqlite3.Error, ValueError) as error:
            raise ExternalError(f"{self.path}: the journal cannot be read: {error}; move it away to go on from the cluster") from error

    def write(self, documents: Mapping[str, Document | None]) -> None:
        kept = [(key, json.dumps(value)) for key, value in documents.items() if value is not None]
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("INSERT OR REPLACE INTO document VALUES (?, ?)", kept)
                self._db.executemany("DELETE FROM document WHERE key = ?", [(k,) for k, v in documents.items() if v is None])
            except BaseException:
                with suppress(sqlite3.OperationalError):  # a full disk has ended it already
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise ExternalError(f"{self.path}: the journal cannot be written, so no step is taken: {error}", retriable=True) from error

    def told(self) -> Documents:
        return told_of(self.read())

    def tell(self, key: str, document: Document) -> None:
        self.write({key: document})

    def close(self) -> None:
        self._db.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_STATE_HOME/trimtab``, by default in ``~/.local/state``."""
    base = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "trimtab"
