"""The end of a metadata log on disk, while Kafka writes, truncates, rolls and deletes it.

Used by `follower`. Reads files only: which batches are committed is said by the caller, and a batch that was not
taken yet may be gone or be another one at the next look.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cluster_model.metadata.batches import HEADER, LENGTH_FROM, MAGIC, WINDOW_BYTES, Batch, TornError, read_batch, read_batches
from cluster_model.metadata.directory import Listing, Segment, list_files
from cluster_model.metadata.wire import MalformedError


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a batch is or will be: a segment, and a position in it."""

    segment: Segment
    position: int


class LogTail:
    """A place in the log that moves on with every batch taken.

    Parameters
    ----------
    directory
        ``…/__cluster_metadata-0``.
    offset, epoch
        The first offset that was not taken yet, and the epoch of the last record before it.

    Attributes
    ----------
    problem
        What keeps the log from being read further, as of the last look; None where nothing does.
    gone
        The log starts after `offset` now: only a newer checkpoint leads on.
    """

    def __init__(self, directory: Path, offset: int, epoch: int) -> None:
        self.offset, self.epoch = offset, epoch
        self.time_ms = 0
        self.problem: str | None = None
        self.gone = False
        self._directory = directory
        self._place: _Place | None = None
        self._ahead: deque[tuple[_Place, Batch]] = deque()  # whole batches from `offset` on

    @property
    def end_offset(self) -> int:
        """Offset after the last whole batch on disk, as of the last look."""
        return self._ahead[-1][1].next_offset if self._ahead else self.offset

    @property
    def end_epoch(self) -> int:
        """Epoch of the last whole batch on disk, as of the last look."""
        return self._ahead[-1][1].epoch if self._ahead else self.epoch

    def look(self) -> Listing:
        """See what is on disk now, as far as whole batches reach.

        Raises
        ------
        InputError
            The directory cannot be read.
        """
        listing = list_files(self._directory)
        self.problem, self.gone = None, listing.log_start > self.offset
        if self.gone:
            self._ahead.clear()
            self.problem = f"the log starts at offset {listing.log_start} now, after {self.offset}"
            return listing
        try:
            if self._ahead and not self._is_still(*self._ahead[-1]):
                self._ahead.clear()  # truncated, and perhaps written again
            if not self._ahead and (self._place is None or not self._begins_at(self._place)):
                self._place = self._locate(listing)
            if self._place is not None:
                self._look_on(listing)
        except FileNotFoundError:  # deleted since it was listed
            self._ahead.clear()
            self._place = None
        except OSError as error:
            self.problem = f"{error.filename or self._directory} cannot be read: {error.strerror}"
        return listing

    def take(self, limit: int) -> Iterator[tuple[bytes, list[tuple[int, Batch]], str]]:
        """Batches that end at or before offset `limit`: bytes, places and heads, file. Each is taken once the
        next is asked for; they are read again, and nothing is taken that changed since it was seen."""
        while self._ahead and self._ahead[0][1].next_offset <= limit:
            segment = self._ahead[0][0].segment
            run: list[Batch] = []
            size = 0
            for place, batch in self._ahead:
                if place.segment != segment or batch.next_offset > limit or (run and size > WINDOW_BYTES):
                    break
                run.append(batch)
                size += batch.size
            try:
                file = os.open(segment.path, os.O_RDONLY)
                try:
                    data = os.pread(file, size, run[0].position)
                finally:
                    os.close(file)
                placed, at = [], 0
                for batch in run:
                    if read_batch(data, at, batch.position, batch.base_offset) != batch:
                        raise MalformedError("another batch")
                    placed.append((at, batch))
                    at += batch.size
            except (OSError, TornError, MalformedError) as error:
                self.problem = f"{segment.path}: changed while it was read ({error})"
                self._ahead.clear()
                return
            yield data, placed, str(segment.path)
            last = run[-1]
            for _ in run:
                self._ahead.popleft()
            self._place = _Place(segment, last.position + last.size)
            self.offset, self.epoch, self.time_ms = last.next_offset, last.epoch, last.time_ms

    # -- looking -------------------------------------------------------------------------------------------

    def _look_on(self, listing: Listing) -> None:
        """Add whole batches to those ahead, from segment to segment."""
        assert self._place is not None
        place = self._place
        if self._ahead:
            place, last = self._ahead[-1]
            place = _Place(place.segment, last.position + last.size)
        following = {segment.base_offset: segment for segment in listing.segments}
        while True:
            error = self._read_on(place)
            segment = following.get(self.end_offset)
            if segment is None or segment == place.segment:
                if isinstance(error, MalformedError):
                    self.problem = f"{place.segment.path}: offset {self.end_offset} cannot be read: {error}"
                return
            place = _Place(segment, 0)
            if not self._ahead:
                self._place = place

    def _read_on(self, place: _Place) -> Exception:
        """Add the batches of one segment; why it ended."""
        file = os.open(place.segment.path, os.O_RDONLY)
        epoch = self.end_epoch
        try:
            for _, placed in read_batches(file, place.position, self.end_offset):
                for _, batch in placed:
                    if batch.epoch < epoch:
                        return MalformedError(f"epoch {batch.epoch} after epoch {epoch}")
                    epoch = batch.epoch
                    self._ahead.append((_Place(place.segment, batch.position), batch))
        except (TornError, MalformedError) as error:
            return error
        finally:
            os.close(file)
        raise AssertionError("unreachable")

    def _is_still(self, place: _Place, batch: Batch) -> bool:
        """Whether a batch that was seen is on disk as it was; then so is everything before it."""
        head = self._head(place)
        if head is None:
            return False
        base, length, epoch, _, crc = HEADER.unpack(head)[:5]
        return (base, length + LENGTH_FROM, epoch, crc) == (batch.base_offset, batch.size, batch.epoch, batch.crc)

    def _begins_at(self, place: _Place) -> bool:
        """Whether the next batch is, or may come to be, where it is expected."""
        head = self._head(place)
        if head is not None:
            return bool(HEADER.unpack(head)[0] == self.offset)
        try:
            return os.stat(place.segment.path).st_size >= place.position
        except FileNotFoundError:
            return False

    def _head(self, place: _Place) -> bytes | None:
        try:
            file = os.open(place.segment.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            head = os.pread(file, HEADER.size, place.position)
        finally:
            os.close(file)
        return head if len(head) == HEADER.size else None

    def _locate(self, listing: Listing) -> _Place | None:
        """Where the batch at `offset` is or will be, going from head to head; None, and a problem, where the
        log on disk does not come to it."""
        segment = listing.segment_of(self.offset)
        if segment is None:
            self.problem = f"{self._directory} has no segment"
            return None
        expected, position = segment.base_offset, 0
        file = os.open(segment.path, os.O_RDONLY)
        try:
            while expected < self.offset:
                head = os.pread(file, HEADER.size, position)
                if len(head) < HEADER.size:
                    break
                base, length, _, magic, _, _, last, *_ = HEADER.unpack(head)
                if magic != MAGIC or base != expected or length <= 0 or last < 0:
                    break
                expected, position = base + last + 1, position + LENGTH_FROM + length
        finally:
            os.close(file)
        if expected == self.offset:
            return _Place(segment, position)
        self.problem = f"{segment.path}: ends at offset {expected} or is another log; offset {self.offset} was expected"
        return None
