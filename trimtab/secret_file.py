"""A secret in a file that others of the machine cannot read: a token, or the address of a webhook. Nothing here says what it is.

Used by the settings of the HTTP interface and by notifications.
"""

from __future__ import annotations

import os
import stat

MOST_BYTES = 4096


def read_secret(path: str, what: str) -> str:
    """The secret, without the white space around it; `what` is what messages call it, such as ``the token``.

    Raises
    ------
    ValueError
        It cannot be read, or every user of the machine may read it.
    """
    try:
        with open(path, encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(MOST_BYTES).strip()
    except UnicodeDecodeError:
        raise ValueError(f"expected a readable ASCII file with {what} at {path}: it is not ASCII") from None
    except OSError as error:
        raise ValueError(f"expected a readable ASCII file with {what} at {path}: {error}") from error
    if mode & stat.S_IRWXO:
        raise ValueError(
            f"expected a file that only its owner and group may read, found mode {stat.S_IMODE(mode):04o} at {path}: every user of this "
            f"machine could use {what}; chmod 600 it (a Secret: defaultMode: 0440)"
        )
    return text
