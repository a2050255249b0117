"""While a cluster is away records wait in bounded memory, in order; when it is back every one of them goes, once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_reporter.codec import frame
from metrics_reporter.columns import decode
from metrics_reporter.publisher import SamplePublisher
from metrics_reporter.sample import Sample, Scope
from metrics_reporter.sender import IncarnationGuard, Sender, newest_incarnation
from metrics_reporter.spool import OVERHEAD_BYTES, Spool
from metrics_reporter.topic import EmbeddedTopic, RecordRefused, TopicError

SAMPLE = Sample(Scope.LEADER, "orders", 0, "network_in", 1.0)


class Flaky:
    """A sink that fails as it is told, and keeps what it takes."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.away = False
        self.attempts = 0
        self.refuses: set[bytes] = set()
        self.asked, self.full = Event(), Event()
        self.wanted = 0

    def publish(self, records: Sequence[bytes], *, broker: int, time_ms: int) -> None:
        self.attempts += 1
        self.asked.set()
        if self.away:
            raise TopicError("the cluster is away")
        for record in records:
            if record in self.refuses:
                raise RecordRefused("never")
            self.taken.append(record)
        if len(self.taken) >= self.wanted:
            self.full.set()


def put(spool: Spool, *records: bytes) -> None:
    spool.publish(records, broker=1, time_ms=5)


@given(st.lists(st.integers(0, 400), max_size=60), st.integers(0, 3000))
def test_a_spool_never_holds_more_than_it_may_and_drops_the_oldest(sizes: list[int], bound: int) -> None:
    spool = Spool(bound)
    records = [bytes([i % 256]) * size for i, size in enumerate(sizes)]
    for record in records:
        put(spool, record)
        assert spool.size <= bound
    left = []
    while (entry := spool.oldest(0)) is not None:
        left.append(entry.record)
        spool.done(entry)
    assert left == records[len(records) - len(left) :]
    assert spool.dropped == len(records) - len(left)
    assert spool.size == 0
    if spool.dropped:
        assert sum(len(r) + OVERHEAD_BYTES for r in records[spool.dropped - 1 :]) > bound, "none more than had to go"


def test_a_record_that_was_dropped_while_it_was_sent_is_not_missed_twice() -> None:
    spool = Spool(2 * (10 + OVERHEAD_BYTES))
    put(spool, b"0" * 10, b"1" * 10)
    entry = spool.oldest(0)
    assert entry is not None
    put(spool, b"2" * 10)
    spool.done(entry)
    assert [len(spool), spool.dropped] == [2, 1]


def test_everything_that_came_meanwhile_goes_in_order_when_the_cluster_is_back() -> None:
    spool, sink = Spool(1_000_000), Flaky()
    sink.away, sink.wanted = True, 100
    sender = Sender(spool, sink)
    sender.start()
    records = [b"%d" % i for i in range(100)]
    for record in records:
        put(spool, record)
    assert sink.asked.wait(10)
    sink.away = False
    assert sink.full.wait(10)
    assert sender.stop(5)
    assert sink.taken == records
    assert (sender.sent, sender.problem) == (100, None)


def test_a_record_that_is_refused_for_good_holds_up_no_other() -> None:
    spool, sink = Spool(1_000_000), Flaky()
    sink.refuses = {b"b"}
    sender = Sender(spool, sink)
    put(spool, b"a", b"b", b"c")
    sender.start()
    assert sender.stop(10)
    assert sink.taken == [b"a", b"c"]
    assert (sender.sent, sender.refused) == (2, 1)


def test_stopping_while_the_cluster_is_away_takes_no_longer_than_allowed_and_says_so() -> None:
    spool, sink = Spool(1_000_000), Flaky()
    sink.away = True
    sender = Sender(spool, sink)
    put(spool, b"a")
    sender.start()
    assert sink.asked.wait(10)
    begun = time.monotonic()
    assert not sender.stop(0.5)
    assert time.monotonic() - begun < 5
    assert (len(spool), sender.problem) == (1, "the cluster is away")
    assert sink.attempts < 20, "tries without a pause keep a core busy and, where each is logged, fill the log"


def test_a_topic_that_cannot_be_read_is_logged_once_and_again_every_five_minutes(caplog: pytest.LogCaptureFixture) -> None:
    """A reporter that was stopped while the cluster was away left some 4,900 copies of one line behind."""

    def away(broker: int) -> int | None:
        raise TopicError("the cluster is away")

    sink, times = Flaky(), iter((0.0, 1.0, 299.0, 300.0, 301.0))
    sink.away = True
    guard = IncarnationGuard(sink, 1, away, lambda: next(times))
    for _ in range(5):
        with pytest.raises(TopicError):
            guard.publish([b"a"], broker=1, time_ms=1)
    assert len([m for m in caplog.messages if "cannot be read" in m]) == 2


def test_a_reporter_started_under_a_clock_that_stood_behind_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    """Readers drop what is numbered below the newest they saw; a reporter with a wrong clock would be mute."""
    with EmbeddedTopic(tmp_path / "topic", partitions=2) as topic:
        SamplePublisher(topic, 3, incarnation=5000).publish([SAMPLE], time_ms=6000, window_ms=1)
        topic.publish([b"no record of ours"], broker=1, time_ms=6500)
        guard = IncarnationGuard(topic, 100, lambda broker: newest_incarnation(topic, broker))
        spool = Spool(1_000_000)
        SamplePublisher(spool, 3, incarnation=100).publish([SAMPLE], time_ms=7000, window_ms=1)
        SamplePublisher(spool, 3, incarnation=100).publish([SAMPLE], time_ms=8000, window_ms=1)
        sender = Sender(spool, guard)
        sender.start()
        assert sender.stop(10)
        found = [decode(r.value) for r in topic.poll({1: 2}, 10)]
    assert [b.incarnation for b in found] == [5001, 5001], "settled once, above all that it sent before"
    assert found[0].blocks[0].values.tolist() == [[1.0]]


@pytest.mark.parametrize(("started", "told"), [(1_000_000, False), (900_000, True)])
def test_records_of_others_that_come_while_a_reporter_starts_are_no_clock_that_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, started: int, told: bool
) -> None:
    """Two of seven starts sent an operator after NTP, with clocks that were right."""
    with EmbeddedTopic(tmp_path / "topic") as topic:
        SamplePublisher(topic, 2, incarnation=5).publish([SAMPLE], time_ms=1_002_000, window_ms=1)
        guard = IncarnationGuard(topic, started, lambda broker: newest_incarnation(topic, broker))
        SamplePublisher(guard, 1, incarnation=started).publish([SAMPLE], time_ms=1, window_ms=1)
        assert [frame(r.value).header.incarnation for r in topic.poll({0: 1}, 10)] == [1_002_001]
    assert any("Is the clock behind?" in m for m in caplog.messages) == told


def test_a_sane_clock_keeps_its_number_also_where_the_topic_cannot_be_read(tmp_path: Path) -> None:
    def unreadable(broker: int) -> int | None:
        raise TopicError("no READ for you")

    with EmbeddedTopic(tmp_path / "topic") as topic:
        assert newest_incarnation(topic, 1) is None
        guard = IncarnationGuard(topic, 7000, unreadable)
        SamplePublisher(guard, 1, incarnation=7000).publish([SAMPLE], time_ms=1, window_ms=1)
        guard = IncarnationGuard(topic, 8000, lambda broker: newest_incarnation(topic, broker))
        SamplePublisher(guard, 1, incarnation=8000).publish([SAMPLE], time_ms=2, window_ms=1)
        assert [frame(r.value).header.incarnation for r in topic.poll({0: 0}, 10)] == [7000, 8000]


def test_the_look_at_the_topic_reaches_back_past_other_brokers_records(tmp_path: Path) -> None:
    with EmbeddedTopic(tmp_path / "topic") as topic:
        SamplePublisher(topic, 1, incarnation=9000).publish([SAMPLE], time_ms=1, window_ms=1)
        for i in range(90):
            SamplePublisher(topic, 2, incarnation=10 + i).publish([SAMPLE], time_ms=1, window_ms=1)
        assert newest_incarnation(topic, 1) == 9000
        assert newest_incarnation(topic, 2) == 99
