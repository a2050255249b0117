"""The bytes of a file that a command was given; ``-`` stands for standard input. Called by the readers of files."""

from __future__ import annotations

import sys
from pathlib import Path

STDIN = Path("-")


def name_of(path: Path | str) -> str:
    """What messages call a file."""
    return "stdin" if str(path) == str(STDIN) else str(path)


def content_of(path: Path, most: int = -1) -> bytes:
    """All bytes, or the first `most`, of a file or of standard input, which can be read once.

    Raises
    ------
    OSError
        It cannot be read, or standard input is closed.
    """
    if path == STDIN:
        if sys.stdin is None or sys.stdin.closed:
            raise OSError(None, "stdin is closed")
        return sys.stdin.buffer.read(most)
    with path.open("rb") as stream:
        return stream.read(most)
