"""What the service keeps on disk: samples and decisions as history, and what it was told by people (pauses, drains).

Opened when the cluster's id is known. Samples are taken in by one thread and written by another, the turn of a worker, so that a
slow disk holds up no request.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from metrics_reporter.reporter import Clock
from trimtab.execution.ledger import DRAIN, PAUSE, Document, Documents
from trimtab.execution.people import Pause, drain_document, drain_key, drains_of, ended, pause_of
from trimtab.executor import Moved
from trimtab.history.decisions import DecisionHistory
from trimtab.history.records import Decision, Outcome
from trimtab.service.config import HistoryPart

if TYPE_CHECKING:
    from metrics_reporter.columns import BatchColumns
    from trimtab.history.samples import SampleHistory, SampleHistoryState

log = logging.getLogger(__name__)

DECISIONS_FILE, STATE_FILE = "decisions.db", "service.json"
SAMPLES_FOLDER = "samples"
KEPT = (DECISIONS_FILE, STATE_FILE, SAMPLES_FOLDER)  # in the history's folder
TURN = 1.0  # seconds
MOST_QUEUED = 2_000_000  # values that wait for the writer
HOUR_MS = 3_600_000
FIRST_RETRY_MS, LONGEST_RETRY_MS = 5_000, 300_000  # after a decision that could not be written down
ROOM, ROOM_FILE, ROOM_EVERY_MS = 1 << 20, ".room", 10_000  # bytes that have to find room in the folder, also where nothing is decided
LOOKED_BACK = 20  # decisions
UNFINISHED = ("approved", "started", "noted")
AFTERMATH = "aftermath"  # who notes what came of a plan that has ended
KILLED = "the service was killed during the execution; steps in progress continued in the cluster, and the rest was not started"


class SampleKeeper:
    """The history of samples behind a queue."""

    def __init__(self, part: HistoryPart, clock: Clock) -> None:
        self._part, self._clock = part, clock
        self._lock, self._opening = Lock(), Lock()
        self._queue: list[tuple[list[BatchColumns], dict[int, int]]] = []
        self._queued = 0
        self._history: SampleHistory | None = None
        self._cluster_id: str | None = None
        self.dropped = 0  # values that found no room in the queue

    @property
    def state(self) -> SampleHistoryState | None:
        return None if self._history is None else self._history.state

    def open(self, cluster_id: str) -> bool:
        """Whether it was not open already. Raises `ExternalError` where another process writes the folder, or it cannot be written."""
        from trimtab.history.samples import SampleHistory, SampleHistoryOptions

        with self._opening:  # two threads may ask at once, and one would find the folder locked by the other
            self._cluster_id = cluster_id
            if self._history is not None:
                return False
            options = SampleHistoryOptions(
                max_age_ms=round(1000 * self._part.write_every), keep_days=self._part.keep_days, keep_bytes=self._part.keep_bytes
            )
            self._history = SampleHistory(Path(self._part.folder) / SAMPLES_FOLDER, cluster_id, options)
            return True

    def positions(self) -> Mapping[int, int] | None:
        """From where on the topic is needed; None where nothing was ever written."""
        return None if self._history is None else self._history.positions

    def take(self, batches: list[BatchColumns], positions: Mapping[int, int]) -> None:
        """Queue batches and how far the topic was read with them; never waits for a disk."""
        count = sum(b.sample_count for b in batches)
        with self._lock:
            if self._queued + count > MOST_QUEUED:
                self.dropped += count
                batches = []
            self._queue.append((batches, dict(positions)))
            self._queued += count if batches else 0

    def turn(self) -> float:
        """Write what is queued, where it is time to."""
        if self._history is None:
            if self._cluster_id is None:
                return TURN
            if self.open(self._cluster_id):
                log.info("history of samples continues from here; the samples in between are missing")
        assert self._history is not None
        with self._lock:
            queue, self._queue, self._queued = self._queue, [], 0
        now = self._clock.wall_ms()
        for batches, positions in queue:
            self._history.append(batches, positions, now)
        failure = self._history.state.failure
        if failure is not None:
            raise ExternalError(failure, retriable=True)
        return TURN

    def close(self) -> None:
        """Write everything, and let go of the folder."""
        history, self._history = self._history, None
        if history is None:
            return
        with self._lock:
            queue, self._queue, self._queued = self._queue, [], 0
        now = self._clock.wall_ms()
        for batches, positions in queue:
            history.append(batches, positions, now)
        history.close(now)
        if history.state.failure is not None:
            log.error("%s; %d rows were not written", history.state.failure, history.state.waiting)


class DecisionKeeper:
    """The history of decisions of one instance, opened when the cluster is known."""

    def __init__(self, part: HistoryPart, instance: str, clock: Clock) -> None:
        self._part, self._instance, self._clock = part, instance, clock
        self._retained_ms = 0
        self._cluster_id: str | None = None
        self._history: DecisionHistory | None = None
        self._lock = Lock()
        self._unwritten: str | None = None  # why the newest decision could not be written down; None again once one could
        self._failures = 0
        self._full: str | None = None  # why there is no room for another one
        self._probed_ms: int | None = None
        self._retry_ms = 0
        self._moved: Moved | None = None  # as it was written down last

    @property
    def broken(self) -> str | None:
        """Why a decision cannot be written down: the newest one could not, or there is no room for another; None where it can."""
        return self._full if self._full is not None else self._unwritten

    def probe(self, now_ms: int) -> str | None:
        """See now and then whether there is room for a decision; why there is none. So a standby, which decides nothing, knows it
        before it takes over."""
        if self._probed_ms is not None and 0 <= now_ms - self._probed_ms < ROOM_EVERY_MS:
            return self._full
        self._probed_ms = now_ms
        path = self.path.with_name(ROOM_FILE)
        before, self._full = self._full, None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with path.open("wb", buffering=0) as file:
                    if file.write(bytes(ROOM)) < ROOM:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                path.unlink(missing_ok=True)
        except OSError as error:
            self._full = f"{path.parent}: there is no room for another decision: {error.strerror or error}"
        if before is not None and self._full is None:
            self._retry_ms = now_ms  # what could not be written down then may be now
        return self._full

    def record(self, decision: Decision) -> int:
        """Write a decision down; its id.

        Raises
        ------
        ExternalError
            It could not be, and `broken` says so until one is written.
        """
        try:
            id = self.get().record(decision)
        except ExternalError as error:
            self._failures += 1
            self._retry_ms = self._clock.wall_ms() + min(FIRST_RETRY_MS * 2 ** (self._failures - 1), LONGEST_RETRY_MS)
            self._unwritten = str(error)
            raise
        self._unwritten, self._failures = None, 0
        return id

    def rests(self, now_ms: int) -> str | None:
        """Why no decision is tried now: there is no room, or the last one could not be written down a short while ago."""
        return self._full if self._full is not None else self._unwritten if now_ms < self._retry_ms else None

    def moved(self, found: Moved) -> None:
        """Write down what an execution has moved, once; where that cannot be, it is tried when it is told again."""
        if found == self._moved:
            return
        try:
            self.get().add_moved(found.time_ms, found.plan_id, found.partitions)
        except ExternalError as error:
            log.warning("the moves of plan %s are not recorded for now: %s", found.plan_id, error)
        else:
            self._moved = found

    @property
    def path(self) -> Path:
        return Path(self._part.folder) / DECISIONS_FILE

    def open(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id

    def get(self) -> DecisionHistory:
        """The history. Raises `ExternalError` where it cannot be opened, or the cluster is not known yet."""
        with self._lock:
            if self._history is None:
                if self._cluster_id is None:
                    raise ExternalError("no cluster has answered yet, so there is no history of its decisions", retriable=True)
                history = DecisionHistory(self.path, self._cluster_id)
                self._end_what_was_left(history)
                self._history = history
            return self._history

    def _end_what_was_left(self, history: DecisionHistory) -> None:
        """Say of plans that an earlier run had in hand when it was killed that they ended with it."""
        for recorded in history.newest(LOOKED_BACK):
            outcomes = [o for o in recorded.outcomes if o.who != AFTERMATH]
            if recorded.decision.instance == self._instance and outcomes and outcomes[-1].kind in UNFINISHED:
                history.add_outcome(recorded.id, Outcome(self._clock.wall_ms(), "failed", "service", KILLED))
                log.warning("plan %s: %s", recorded.decision.plan_id, KILLED)

    def tidy(self) -> None:
        """Delete what is not kept, once an hour."""
        now = self._clock.wall_ms()
        if now - self._retained_ms >= HOUR_MS:
            self._retained_ms = now
            part = self._part
            self.get().retain(
                now, keep_days=part.keep_decisions_days, keep_plan_days=part.keep_plan_days, keep_plan_bytes=part.keep_plan_bytes
            )

    def close(self) -> None:
        with self._lock:
            history, self._history = self._history, None
            self._cluster_id = None
        if history is not None:
            history.close()


class Told:
    """What people told the service, kept over restarts: a pause, and brokers to drain.

    It is of the whole cluster where plans are carried out: what was told here is written to the cluster's record by the worker that has
    the executor (`unshared`, `shared`), and what was told elsewhere is taken from there (`take`).

    Raises
    ------
    ConfigurationError
        The file is there and is not what this release writes: who would go on without it might undo a pause.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / STATE_FILE, Lock()
        self._documents: Documents = {}
        self._unshared: frozenset[str] = frozenset()
        if not self._path.exists():
            return
        try:
            document = json.loads(self._path.read_bytes())
            pause = document["pause"]
            if pause is not None:
                self._documents[PAUSE] = Pause(str(pause["who"]), str(pause["why"]), int(pause["since_ms"])).document()
            self._documents |= {drain_key(int(b)): drain_document("", 0) for b in document["draining"]}
            self._documents |= dict(document.get("documents", {}))
            self._unshared = frozenset(document.get("unshared", self._documents))
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"expected pauses and drains of operators, found something else ({error}); repair or remove the file"
            raise ConfigurationError(str(self._path), [Problem("", message)]) from error

    @property
    def pause(self) -> Pause | None:
        return pause_of(self._documents)

    @property
    def draining(self) -> frozenset[int]:
        return frozenset(drains_of(self._documents))

    def set_pause(self, pause: Pause | None, who: str = "", now_ms: int = 0) -> None:
        """Raises `ExternalError` where it cannot be kept; then nothing is changed. `who` ended it, where it is None."""
        self._change({PAUSE: ended(who, now_ms) if pause is None else pause.document()})

    def set_draining(self, brokers: frozenset[int], who: str = "", now_ms: int = 0) -> None:
        """As `set_pause`."""
        before = self.draining
        over = {drain_key(b): ended(who, now_ms) for b in before - brokers}
        self._change(over | {drain_key(b): drain_document(who, now_ms) for b in brokers - before})

    def unshared(self) -> Documents:
        """What was told here and is not in the cluster's record yet."""
        with self._lock:
            return {key: self._documents[key] for key in sorted(self._unshared)}

    def shared(self, written: Mapping[str, Document]) -> None:
        """These stand in the cluster's record now, unless they were changed here meanwhile."""
        with self._lock:
            left = frozenset(k for k in self._unshared if k not in written or self._documents[k] != written[k])
            if left != self._unshared:
                self._keep(self._documents, left)

    def take(self, told: Mapping[str, Document]) -> bool:
        """Make what stands in the cluster's record hold here; whether that changed anything. What is not there is to be shared again."""
        with self._lock:
            theirs = {k: of for k, of in told.items() if k == PAUSE or k.startswith(DRAIN)}
            documents = theirs | {k: of for k, of in self._documents.items() if k in self._unshared or k not in theirs}
            unshared = self._unshared | (self._documents.keys() - theirs.keys())
            if (documents, unshared) == (self._documents, self._unshared):
                return False
            before = (self.pause, self.draining)
            self._keep(documents, frozenset(unshared))
            return (self.pause, self.draining) != before

    def _change(self, changes: Documents) -> None:
        with self._lock:
            self._keep({**self._documents, **changes}, self._unshared | changes.keys())

    def _keep(self, documents: Documents, unshared: frozenset[str]) -> None:
        pause = pause_of(documents)
        text = json.dumps({
            "version": 1, "pause": None if pause is None else pause.document(), "draining": sorted(drains_of(documents)),
            "documents": documents, "unshared": sorted(unshared),
        })  # fmt: skip
        unfinished = self._path.with_suffix(".tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, self._path)
        except OSError as error:
            raise ExternalError(f"{self._path}: cannot be kept: {error.strerror or error}", retriable=True) from error
        self._documents, self._unshared = documents, unshared
