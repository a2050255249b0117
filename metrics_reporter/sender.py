"""Sends what the spool holds, record by record and in order, for as long as it takes.

One thread beside the reporter's. A cluster that is away is tried again and again, ever more slowly; a record that
the topic will never take is counted and left out, so that it does not hold up the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Event, Thread

from metrics_reporter.codec import DecodeError, frame, with_incarnation
from metrics_reporter.reading import REMIND_SECONDS
from metrics_reporter.spool import Spool
from metrics_reporter.topic import RecordRefused, RecordSink, RecordSource, TopicError

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
TAIL_RECORDS = 100
CLOCK_MS = 60_000  # a clock that stood behind by less is not worth a word


class Sender:
    """Moves records from a spool to a sink; start it once, stop it once.

    Attributes
    ----------
    sent, refused
        Records that the sink took, and those it will never take.
    problem
        Why the newest attempt failed; None when it did not.
    """

    def __init__(self, spool: Spool, sink: RecordSink, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._spool, self._sink, self._monotonic = spool, sink, monotonic
        self.sent = self.refused = 0
        self.problem: str | None = None
        self._ending = Event()
        self._deadline = float("inf")
        self._thread = Thread(target=self._run, name="sender", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, seconds: float) -> bool:
        """Send what is left for at most so long; whether everything was sent."""
        self._deadline = self._monotonic() + seconds
        self._ending.set()
        self._thread.join(seconds)
        return not len(self._spool)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._over():
            entry = self._spool.oldest(0.2)
            if entry is None:
                continue
            try:
                self._sink.publish([entry.record], broker=entry.broker, time_ms=entry.time_ms)
            except RecordRefused as error:
                self.refused += 1
                log.warning("%s; it is left out", error)
            except TopicError as error:
                self._failed(str(error))
                if not self._ending.wait(pause):
                    pause = min(2 * pause, LONGEST_PAUSE)
                else:
                    time.sleep(FIRST_PAUSE / 5)  # ending: no long pauses any more
                continue
            else:
                self.sent += 1
                self._succeeded()
            self._spool.done(entry)
            pause = FIRST_PAUSE

    def _over(self) -> bool:
        return self._ending.is_set() and (not len(self._spool) or self._monotonic() >= self._deadline)

    def _failed(self, problem: str) -> None:
        if self.problem is None:
            log.warning("%s; samples wait until it goes through", problem)
        self.problem = problem

    def _succeeded(self) -> None:
        if self.problem is not None:
            log.info("samples go through again; %d records waited", len(self._spool))
            self.problem = None


class IncarnationGuard:
    """A `RecordSink` that numbers what it passes on above all that the broker's reporters ever sent.

    The incarnation is the reporter's start by the wall clock. Where that clock stood behind when the reporter was
    started, readers would take all its records for old ones. So before the first record goes, the end of the topic
    is looked at, and the incarnation raised if need be. A topic that cannot be read holds up nothing.
    """

    def __init__(
        self, sink: RecordSink, incarnation: int, newest: Callable[[int], int | None], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._sink, self._incarnation, self._newest, self._monotonic = sink, incarnation, newest, monotonic
        self._settled: int | None = None
        self._told: float | None = None  # when it was last said that the topic cannot be read

    def publish(self, records: Sequence[bytes], *, broker: int, time_ms: int) -> None:
        """As the sink behind it."""
        incarnation = self._settled if self._settled is not None else self._look(broker)
        if incarnation != self._incarnation:
            records = [with_incarnation(record, incarnation) for record in records]
        self._sink.publish(records, broker=broker, time_ms=time_ms)
        if self._settled is None and incarnation != self._incarnation:
            behind_ms = incarnation - self._incarnation
            said = "the topic has records of a reporter that started %.0f s later by the clock; new records are numbered above them"
            log.log(logging.WARNING if behind_ms > CLOCK_MS else logging.DEBUG, f"{said}. Is the clock behind?", behind_ms / 1000)
        self._settled = incarnation

    def _look(self, broker: int) -> int:
        try:
            newest = self._newest(broker)
        except TopicError as error:
            now, newest = self._monotonic(), None
            if self._told is None or now - self._told >= REMIND_SECONDS:
                log.warning("the end of the topic cannot be read, so a clock that is behind would not be noticed: %s", error)
                self._told = now
        return self._incarnation if newest is None else max(self._incarnation, newest + 1)


def newest_incarnation(source: RecordSource, broker: int) -> int | None:
    """The highest incarnation that records at the end of a topic name for a broker; where none of them is of that broker, the time
    of the newest, since what it sent before was sent before that; None where there is none at all."""
    partition = broker % source.partitions
    end, begin = source.end_offsets()[partition], source.begin_offsets()[partition]
    at = max(begin, end - TAIL_RECORDS)
    own: list[int] = []
    others: list[int] = []
    while at < end:
        records = source.poll({partition: at}, TAIL_RECORDS)
        if not records:
            break
        at = records[-1].offset + 1
        for record in records:
            others.append(record.time_ms)
            try:
                header = frame(record.value).header
            except DecodeError:
                continue
            if header.broker == broker:
                own.append(header.incarnation)
    return max(own or others, default=None)
