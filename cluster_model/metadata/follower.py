"""Follows the KRaft metadata log on the disk of a controller or broker, up to the high watermark.

A caller that keeps a live picture of a cluster calls `KRaftFollower.poll` again and again, in one thread. The files do not
say what is committed: the quorum is asked through a seam, so nothing here knows a Kafka client. No clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cluster_model.errors import ExternalError, InputError
from cluster_model.metadata.checkpoint import load_checkpoint
from cluster_model.metadata.description import Quorum, QuorumReport
from cluster_model.metadata.difference import difference
from cluster_model.metadata.directory import Listing, list_files
from cluster_model.metadata.events import Event
from cluster_model.metadata.fold import FoldCounts, RecordFold
from cluster_model.metadata.image import MetadataImage
from cluster_model.metadata.tail import LogTail


@dataclass(frozen=True, slots=True)
class Update:
    """What one poll brought.

    Attributes
    ----------
    events
        What happened since the last poll, in order. Go through it before the next poll, which changes what it
        is made from.
    replaced
        The image was loaded again: `events` are the difference to the one before (for the first one: everything).
        A caller that can may take the follower's `image` as a whole instead.
    offset, epoch
        Everything before this offset of the metadata log is in the image, the last of it written in this epoch;
        -1 where the source has no offsets.
    high_watermark
        Offset before which everything is committed, as the quorum said; None where it is not known.
    time_ms
        When the last record in the image was written, by the controller's clock; 0 where it is not known.
    held
        Why the image may be older than the cluster; None where nothing is in the way.
    unknown
        Api key -> how many records of this type were skipped since the last checkpoint, because this release does
        not know it.
    """

    events: Iterable[Event]
    replaced: bool = False
    offset: int = -1
    epoch: int = -1
    high_watermark: int | None = None
    time_ms: int = 0
    held: str | None = None
    unknown: Mapping[int, int] = field(default_factory=dict)

    @property
    def caught_up(self) -> bool:
        """Whether everything that the quorum had committed when it was asked is in the image."""
        return self.held is None and (self.high_watermark is None or self.offset >= self.high_watermark)


class Follower(Protocol):
    """Something that keeps a metadata image up to date; `KRaftFollower` and `AdminFollower`."""

    @property
    def image(self) -> MetadataImage: ...

    def poll(self, now_ms: int) -> Update: ...


class KRaftFollower:
    """Folds the log of one directory into an image.

    Parameters
    ----------
    directory
        ``…/__cluster_metadata-0`` of a controller (steadier) or a broker.
    quorum
        Who knows the high watermark. None applies checkpoints only, which are committed as they stand.
    unconfirmed
        Apply everything on disk, committed or not: for a directory that was copied and that has no leader any more.

    Notes
    -----
    A high watermark counts only together with the epoch of the report it came in, and only while the last whole batch
    on this disk is of that epoch or a later one: then this replica's log up to the watermark is the quorum's. A
    replica whose controller was cut off holds records that the quorum never had, and never applies them here.
    """

    def __init__(self, directory: Path, quorum: Quorum | None, *, unconfirmed: bool = False) -> None:
        self._directory, self._quorum, self._unconfirmed = directory, quorum, unconfirmed
        self._fold = RecordFold(MetadataImage())
        self._tail: LogTail | None = None
        self._report: QuorumReport | None = None
        self._broken: InputError | None = None
        self._told = self._fold.image  # the image of the last update

    @property
    def image(self) -> MetadataImage:
        """The image as of the last poll; the follower's own, to be read only."""
        return self._fold.image

    @property
    def counts(self) -> FoldCounts:
        """What was read since the last checkpoint was loaded."""
        return self._fold.counts

    def poll(self, now_ms: int) -> Update:
        """Apply what was committed since the last poll.

        Raises
        ------
        InputError
            The directory or a checkpoint cannot be read, or a committed record cannot be folded (every later
            poll says so again: a new follower must start).
        ExternalError
            The quorum refuses to be asked, for good.
        """
        if self._broken is not None:
            raise self._broken
        tail = self._tail or self._load(list_files(self._directory), -1, now_ms)
        if isinstance(tail, str):
            return Update((), held=tail)
        listing = tail.look()
        if tail.problem is not None:
            newer = self._load(listing, tail.offset, now_ms)
            if isinstance(newer, LogTail):
                tail = newer
                tail.look()
        self._tail = tail
        limit, held = self._limit(tail, self._ask())
        fold, before = self._fold, self._told
        fold.events = [] if fold.image is before else None
        try:
            for data, placed, where in tail.take(limit):
                fold.take(data, placed, where, now_ms)
        except InputError as error:
            self._broken = error
            raise
        report = self._report
        if report is not None and report.leader is not None:
            fold.elected(report.leader, report.epoch)
        if tail.offset < limit:
            held = tail.problem or held
        self._told = fold.image
        return Update(
            events=difference(before, fold.image) if fold.events is None else tuple(fold.events),
            replaced=fold.events is None,
            offset=tail.offset,
            epoch=tail.epoch,
            high_watermark=report.high_watermark if report is not None else None,
            time_ms=tail.time_ms,
            held=held,
            unknown=dict(fold.counts.unknown),
        )

    def _load(self, listing: Listing, after: int, now_ms: int) -> LogTail | str:
        """Start again with the newest whole checkpoint that ends after offset `after`; why, where there is none.

        Raises
        ------
        InputError
            This is the start, and no checkpoint can be read.
        """
        refusals: list[InputError] = []
        for checkpoint in reversed(listing.checkpoints):
            if checkpoint.end_offset <= after or checkpoint.end_offset < listing.log_start:
                break
            try:
                fold = load_checkpoint(checkpoint, now_ms)
            except InputError as error:
                refusals.append(error)
            else:
                self._fold = fold
                return LogTail(self._directory, checkpoint.end_offset, checkpoint.epoch)
        if after < 0 and listing.log_start == 0:
            self._fold = RecordFold(MetadataImage())
            return LogTail(self._directory, 0, 0)
        if refusals and after < 0:
            raise refusals[0]
        if refusals:
            return str(refusals[0])
        return f"{self._directory}: the log starts at offset {listing.log_start}, and no checkpoint reaches to there yet"

    def _ask(self) -> str | None:
        """Take the newest report; why there is none."""
        if self._quorum is None:
            return None
        try:
            report = self._quorum.quorum()
        except ExternalError as error:
            if not error.retriable:
                raise
            return str(error)
        known = self._report
        if report.high_watermark <= 0:
            return f"the quorum of epoch {report.epoch} has no high watermark yet"
        if known is None or (report.epoch, report.high_watermark) >= (known.epoch, known.high_watermark):
            self._report = report
        return None

    def _limit(self, tail: LogTail, silence: str | None) -> tuple[int, str | None]:
        """Offset up to which batches may be applied, and why the image may be old."""
        if self._unconfirmed:
            return tail.end_offset, None
        report = self._report
        if report is None:
            return tail.offset, silence or "no broker says what is committed: only the newest checkpoint was read"
        if tail.end_epoch < report.epoch:
            return tail.offset, (
                f"{self._directory}: the last record on this disk is of epoch {tail.end_epoch}, the quorum is in epoch "
                f"{report.epoch}: this replica is cut off or not up"
            )
        if tail.end_offset < report.high_watermark:
            silence = silence or (
                f"{self._directory}: ends at offset {tail.end_offset}, {report.high_watermark} is committed: "
                "this replica lags"
            )
        return report.high_watermark, silence
