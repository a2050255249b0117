"""stdout and stderr as a command finds them: open or closed, read by a process or not any more.

Called at the very start and end of a process, before anything heavy is imported.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys


class ClosedStdout(io.TextIOBase):
    """Stands where stdout was closed (``>&-``): data that cannot be written is an error, not lost."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "stdout is closed; give --out FILE, or a stdout that is open")


def prepare() -> None:
    """Make both streams usable; files that are opened later can never take the place of a closed one."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = ClosedStdout()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a sign gets a question mark


def reader_gone() -> None:
    """Let what is still to be flushed go nowhere, since it has no reader."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush() -> None:
    """Flush both streams as far as they can be."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
