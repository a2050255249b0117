"""The reporter: every interval it asks its collectors, meters the loads, and hands the samples to the publisher.

Composed and run by the command line. Knows neither where collectors read nor where records go; clocks come in by
parameter. A collector that fails is left out of that round, and what it missed is covered by the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event

from metrics_reporter.loads import LoadMeter, Measured, Round
from metrics_reporter.publisher import SamplePublisher
from metrics_reporter.reading import REMIND_SECONDS, CollectError, Collector, Reading

log = logging.getLogger(__name__)

LEAST_LAST_ROUND = 0.5  # seconds since the round before
LONGEST_WINDOW_MS = 2**32 - 1  # 49 days: what a record can say


@dataclass(frozen=True, slots=True)
class Clock:
    """`monotonic` for differences, `wall_ms` for stamps only."""

    monotonic: Callable[[], float] = time.monotonic
    wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000


SYSTEM_CLOCK = Clock()


@dataclass(frozen=True, slots=True)
class Sources:
    """All collectors, and which of them each kind of reading is taken from.

    Fixed for the life of the reporter: were one to stand in for another, an interval would be counted by both.
    """

    collectors: Sequence[Collector]
    logs: str | None = None
    counters: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What one round measured, and why a collector did not."""

    time_ms: int
    measured: tuple[Measured, ...]
    failures: Mapping[str, str]


class Reporter:
    """Measures one broker.

    Parameters
    ----------
    interval
        Seconds from round to round.
    capacity
        What the broker can carry, where the operator says so; goes before what the host says.
    """

    def __init__(
        self,
        sources: Sources,
        publisher: SamplePublisher,
        *,
        interval: float,
        capacity: Mapping[str, float],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._sources, self._publisher, self._interval = sources, publisher, interval
        self._capacity, self._clock = dict(capacity), clock
        self._meter = LoadMeter()
        self._failing: dict[str, float] = {}  # collector -> when it was last told that it fails
        self._last_round = clock.monotonic()

    def round(self) -> RoundResult:
        """Ask all collectors once, and publish what can be said by now."""
        at = self._last_round = self._clock.monotonic()
        time_ms = self._clock.wall_ms()  # of the start, as `at`, so that intervals join
        readings: dict[str, Reading] = {}
        failures: dict[str, str] = {}
        for collector in self._sources.collectors:
            try:
                readings[collector.name] = collector.collect()
            except CollectError as error:
                failures[collector.name] = str(error)
            self._tell(collector.name, failures.get(collector.name), at)
        measured = self._meter.take(self._round(at, readings))
        for part in measured:
            self._publisher.publish(part.samples, time_ms=time_ms, window_ms=min(round(part.seconds * 1000), LONGEST_WINDOW_MS))
        log.debug("measured %d samples", sum(len(part.samples) for part in measured))
        return RoundResult(time_ms, tuple(measured), failures)

    def run(self, stop: Event) -> None:
        """Round after round until `stop`, and a last one then, so that nothing since the one before is missing."""
        due = self._clock.monotonic()
        while not stop.is_set():
            self.round()
            due += self._interval
            late = self._clock.monotonic() - due
            if late > 0:  # a slow collector: skip what is past
                due += late // self._interval * self._interval + (self._interval if late % self._interval else 0.0)
            stop.wait(max(0.0, due - self._clock.monotonic()))
        if self._clock.monotonic() - self._last_round >= LEAST_LAST_ROUND:
            self.round()

    def close(self) -> None:
        for collector in self._sources.collectors:
            collector.close()

    def _round(self, at: float, readings: Mapping[str, Reading]) -> Round:
        nothing = Reading()
        logs = readings.get(self._sources.logs or "", nothing)
        counters = readings.get(self._sources.counters or "", nothing)
        host = readings.get(self._sources.host or "", nothing)
        capacity = {**host.capacity, **self._capacity}
        return Round(at, logs.logs, counters.counters, host.counters, capacity, host.disk, counters.latencies)

    def _tell(self, collector: str, failure: str | None, now: float) -> None:
        """Tell of a failure when it starts, and now and then while it lasts."""
        told = self._failing.get(collector)
        if failure is None:
            if told is not None:
                log.info("collector %s answers again", collector)
                del self._failing[collector]
        elif told is None or now - told >= REMIND_SECONDS:
            log.warning("collector %s: %s", collector, failure)
            self._failing[collector] = now
