"""A folder on this machine with the methods of `spark.history.storage.Folder`, so that days are put in place without Spark, too.

Used by `spark.history.write` for imports that need no Spark. Knows nothing of samples.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster_model.errors import ExternalError


class LocalFolder:
    """A folder by its path; methods take paths below it."""

    def __init__(self, path: str) -> None:
        self.uri = path
        self.path = Path(path)

    def exists(self, below: str = "") -> bool:
        return (self.path / below).exists()

    def names(self, below: str = "") -> list[str]:
        """What stands in a folder, sorted; nothing where there is none."""
        with self._told():
            return sorted(entry.name for entry in (self.path / below).iterdir()) if self.exists(below) else []

    def make(self, below: str = "") -> None:
        with self._told():
            (self.path / below).mkdir(parents=True, exist_ok=True)

    def touch(self, below: str) -> None:
        """Make an empty file."""
        with self._told():
            (self.path / below).touch()

    def move(self, old: str, new: str) -> None:
        """Rename; `new` must not be there."""
        if self.exists(new):
            raise ExternalError(f"{self.uri}: {old} could not be moved to {new}; is something there already?")
        with self._told():
            os.rename(self.path / old, self.path / new)

    def delete(self, below: str) -> None:
        with self._told():
            if self.exists(below):
                shutil.rmtree(self.path / below)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ExternalError(f"{self.uri}: {error}", retriable=True) from error
