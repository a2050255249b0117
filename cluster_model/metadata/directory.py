"""The files of a metadata log directory: segments, checkpoints, and nothing else.

Used by `tail` and `checkpoint`. Names are matched strictly: parts that are being written and files that are
going away are none of ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_model.errors import InputError, Problem

_SEGMENT = re.compile(r"(\d{20})\.log")
_CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
HINT = "name the folder __cluster_metadata-0 in metadata.log.dir (else in the first of log.dirs) of a controller or broker"


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    base_offset: int
    path: Path


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A snapshot of everything before `end_offset`, whose last record was written in `epoch`."""

    end_offset: int
    epoch: int
    path: Path


@dataclass(frozen=True, slots=True)
class Listing:
    """Segments and checkpoints that are there now, ascending."""

    segments: Sequence[Segment]
    checkpoints: Sequence[Checkpoint]

    @property
    def log_start(self) -> int:
        return self.segments[0].base_offset if self.segments else 0

    def segment_of(self, offset: int) -> Segment | None:
        """The segment in which `offset` is, or will be written; None where it is before all of them."""
        return next((s for s in reversed(self.segments) if s.base_offset <= offset), None)


def list_files(directory: Path) -> Listing:
    """What `directory` holds now.

    Raises
    ------
    InputError
        It cannot be read, or it is no metadata log directory.
    """
    try:
        names = os.listdir(directory)
    except OSError as error:
        raise InputError(str(directory), [Problem("", f"cannot be read: {error.strerror}; {HINT}")]) from None
    segments = sorted(Segment(int(m[1]), directory / m[0]) for n in names if (m := _SEGMENT.fullmatch(n)))
    checkpoints = sorted(
        Checkpoint(int(m[1]), int(m[2]), directory / m[0]) for n in names if (m := _CHECKPOINT.fullmatch(n))
    )
    if not segments and not checkpoints:
        raise InputError(str(directory), [Problem("", f"expected NUMBER.log files, found none; {HINT}")])
    return Listing(segments, checkpoints)
