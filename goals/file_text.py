"""The text of a file that a person or a job wrote: all of it, or a refusal. Called by the readers of this room."""

from __future__ import annotations

from pathlib import Path

from cluster_model.content import content_of
from cluster_model.errors import ConfigurationError, Problem

MAX_BYTES = 4_000_000


def file_text(path: Path, what: str, most: int = MAX_BYTES, encoding: str = "utf-8-sig") -> str:
    """Text of `path`, a byte order mark left out; `what` it should be stands in messages, `most` is in bytes.

    Raises
    ------
    ConfigurationError
        It cannot be read, is larger than `most`, or is not UTF-8.
    """

    def refusal(why: str) -> ConfigurationError:
        return ConfigurationError(str(path), [Problem("", f"expected {what}, {why}")])

    try:
        raw = content_of(path, most + 1)
    except FileNotFoundError as error:
        raise refusal("there is no such file") from error
    except OSError as error:
        raise refusal(f"cannot read it: {error.strerror or error}") from error
    if len(raw) > most:
        raise refusal(f"found more than {most} bytes")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise refusal(f"found byte {raw[error.start]:#04x} at offset {error.start}, which is not UTF-8") from error
