"""One writer for a folder: a lock that its process holds, and that ends with it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from cluster_model.errors import ExternalError

LOCK_FILE = ".lock"


def require_writable(folder: Path, names: Iterable[str]) -> None:
    """See at the start, and not hours later, that what is to be written can be.

    Parameters
    ----------
    names
        Files and folders in `folder` that are written, where they are there already.

    Raises
    ------
    ExternalError
        One of them cannot be written.
    """
    for path in (folder, *(folder / name for name in names)):
        if os.path.exists(path) and not os.access(path, os.W_OK | (os.X_OK if path.is_dir() else 0), effective_ids=True):
            raise _unwritable(path, "Permission denied")


def _unwritable(path: Path, why: str) -> ExternalError:
    return ExternalError(
        f"{path}: the history cannot be written: {why} for user {os.geteuid()}; give it to the user that runs this, or name another folder"
    )


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
        raise _unwritable(folder, e.strerror or str(e)) from e
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ExternalError(
            f"{folder}: another process writes this history; stop it, or give this one another folder"
        ) from None
    return file
