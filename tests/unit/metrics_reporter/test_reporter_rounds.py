"""Rounds go on whatever a collector or a clock does, and what was missed is in the next round."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event

import pytest

from metrics_reporter.columns import BatchColumns, decode
from metrics_reporter.publisher import SamplePublisher
from metrics_reporter.reading import CollectError, Counters, LogReading, Logs, Reading
from metrics_reporter.reporter import Clock, Reporter, Sources
from metrics_reporter.sample import Scope


class Hands:
    """A clock that tests set, and a broker that appends 100 bytes a second."""

    name = "agent"

    def __init__(self) -> None:
        self.now, self.wall = 1000.0, 1_700_000_000_000
        self.broken = False
        self.closed = False
        self.delay = 0.0  # of the next answer

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, lambda: self.wall)

    def pass_by(self, seconds: float, wall: float | None = None) -> None:
        self.now += seconds
        self.wall += round((seconds if wall is None else wall) * 1000)

    def collect(self) -> Reading:
        if self.broken:
            raise CollectError("no answer")
        self.pass_by(self.delay)
        size = round((self.now - 1000.0) * 100)
        return Reading(
            Logs({("orders", 0): LogReading(size, 0, size, leads=True)}),
            Counters(1.0, {"bytes_in": size, "replication_in": 0.0}, {"bytes_in": {"orders": size}}),
        )

    def close(self) -> None:
        self.closed = True


class Kept:
    """A sink that keeps every record."""

    def __init__(self) -> None:
        self.batches: list[BatchColumns] = []

    def publish(self, records: Sequence[bytes], *, broker: int, time_ms: int) -> None:
        self.batches.extend(decode(record) for record in records)


def measured(batch: BatchColumns) -> tuple[int, int, float]:
    """Time, interval, and the one partition's rate."""
    (block,) = [b for b in batch.blocks if b.scope == Scope.LEADER]
    return batch.time_ms, batch.window_ms, float(block.values[block.metrics.index("network_in")][0])


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def reporter(hands: Hands, kept: Kept) -> Reporter:
    sources = Sources((hands,), logs="agent", counters="agent")
    publisher = SamplePublisher(kept, 7, incarnation=1)
    return Reporter(sources, publisher, interval=10.0, capacity={"network_in": 1e8}, clock=hands.clock)


def test_intervals_join(hands: Hands, kept: Kept, reporter: Reporter) -> None:
    for _ in range(4):
        reporter.round()
        hands.pass_by(10.0)
    first, *others = kept.batches
    assert (first.broker, first.window_ms, first.sequence) == (7, 0, 0)
    assert [measured(b) for b in others] == [(first.time_ms + 10_000 * i, 10_000, 100.0) for i in (1, 2, 3)]


def test_rates_times_intervals_are_what_came_however_late_a_source_answers(hands: Hands, kept: Kept, reporter: Reporter) -> None:
    read = []
    for delay in (0.5, 4.0, 0.0, 3.0, 1.5):
        hands.delay = delay
        reporter.round()
        read.append(100 * hands.now)
        hands.pass_by(10.0 - delay)
    told = [measured(b) for b in kept.batches[1:]]
    assert [window for _, window, _ in told] == [10_000] * 4
    assert sum(window / 1000 * rate for _, window, rate in told) == read[-1] - read[0]


@pytest.mark.parametrize("jump", [-3600.0, 3600.0, -10.0])
def test_a_wall_clock_that_jumps_changes_no_rate(hands: Hands, kept: Kept, reporter: Reporter, jump: float) -> None:
    reporter.round()
    hands.pass_by(10.0, wall=10.0 + jump)
    reporter.round()
    assert measured(kept.batches[1]) == (hands.wall, 10_000, 100.0)


def test_what_a_collector_missed_is_in_the_next_round(
    hands: Hands, kept: Kept, reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "metrics_reporter")
    reporter.round()
    hands.broken = True
    for _ in range(3):
        hands.pass_by(10.0)
        result = reporter.round()
        assert result.failures == {"agent": "no answer"}
    hands.broken = False
    hands.pass_by(10.0)
    reporter.round()
    assert measured(kept.batches[-1]) == (hands.wall, 40_000, 100.0)
    assert [r.getMessage() for r in caplog.records] == ["collector agent: no answer", "collector agent answers again"]


def test_capacity_that_the_operator_states_goes_out_even_where_nothing_answers(
    hands: Hands, kept: Kept, reporter: Reporter
) -> None:
    hands.broken = True
    reporter.round()
    (block,) = kept.batches[0].blocks
    assert (block.scope, block.metrics, block.values.tolist()) == (Scope.CAPACITY, ("network_in",), [[1e8]])


def test_a_stop_measures_the_time_since_the_last_round_as_well(hands: Hands, kept: Kept, reporter: Reporter) -> None:
    class Stop(Event):
        """Passes the time that is waited for; set after two rounds and three seconds."""

        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            if len(kept.batches) < 2:
                hands.pass_by(timeout)
            else:
                hands.pass_by(3.0)
                self.set()
            return self.is_set()

    reporter.run(Stop())
    assert [b.window_ms for b in kept.batches] == [0, 10_000, 3_000]
    assert measured(kept.batches[-1])[2] == 100.0


def test_a_round_that_took_too_long_skips_what_is_past(hands: Hands, kept: Kept, reporter: Reporter) -> None:
    waited: list[float] = []

    class Stop(Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            waited.append(timeout)
            hands.pass_by(timeout)
            if len(waited) == 3:
                self.set()
            return self.is_set()

    slow = iter([24.0, 0.0, 0.0, 0.0])
    collect = hands.collect

    class Slow(Hands):
        def collect(self) -> Reading:
            reading = collect()
            hands.pass_by(next(slow))
            return reading

    sources = Sources((Slow(),), logs="agent", counters="agent")
    publisher = SamplePublisher(kept, 7, incarnation=1)
    Reporter(sources, publisher, interval=10.0, capacity={}, clock=hands.clock).run(Stop())
    assert waited == [6.0, 10.0, 10.0]
    assert [b.window_ms for b in kept.batches] == [0, 30_000, 10_000, 10_000]


def test_closing_closes_the_collectors(hands: Hands, reporter: Reporter) -> None:
    reporter.close()
    assert hands.closed
