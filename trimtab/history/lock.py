"""One writer for a folder: a lock that its process holds, and that ends with it."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from cluster_model.errors import ExternalError

LOCK_FILE = ".lock"


def locked(folder: Path) -> IO[bytes]:
    """The folder's lock, held until it is closed or the process ends; the folder is made where it is absent.

    Raises
    ------
    ExternalError
        Another process holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK_FILE).open("ab")
    except OSError as e:
        raise ExternalError(f"{folder}: expected a folder to write history into: {e}") from e
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ExternalError(
            f"{folder}: another process writes this history; stop it, or give this one another folder"
        ) from None
    return file
