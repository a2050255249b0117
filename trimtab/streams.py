"""stdout and stderr as a command finds them: open or closed, read by a process or not any more.

Called at the very start and end of a process, before anything heavy is imported.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys

from cluster_model.plain_text import PLAINER

PLAIN, ESCAPED = "trimtab.plain", "trimtab.escaped"  # how text is encoded where a sign is lacking


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
        codecs.register_error(PLAIN, _plain)
        sys.stdout.reconfigure(errors=PLAIN)
    if isinstance(sys.stderr, io.TextIOWrapper):
        codecs.register_error(ESCAPED, _escaped)
        sys.stderr.reconfigure(errors=ESCAPED)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Signs that an encoding lacks, in the signs that it has (``->`` for an arrow); a question mark where there is no such sign."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAINER.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """The same, with an escape in place of the question mark: for names in messages."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(PLAINER.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs), error.end


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
