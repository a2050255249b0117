"""The embedded topic keeps order and offsets across restarts, writers and retention; a bad record stops no reader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Thread

import pytest

from metrics_reporter.columns import decode
from metrics_reporter.consumer import SampleConsumer
from metrics_reporter.publisher import SamplePublisher
from metrics_reporter.sample import Sample, Scope
from metrics_reporter.topic import EmbeddedTopic, TopicError, TopicRecord


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.db"


def leader_sample(number: int, value: float = 1.0) -> Sample:
    return Sample(Scope.LEADER, "orders", number, "network_in", value)


def test_records_come_back_in_order_and_once(path: Path) -> None:
    with EmbeddedTopic(path) as topic:
        topic.publish([b"a", b"b"], broker=1, time_ms=10)
        topic.publish([b"c"], broker=2, time_ms=20)
        assert [(r.offset, r.value, r.time_ms) for r in topic.poll({0: 0}, 2)] == [(0, b"a", 10), (1, b"b", 10)]
        assert [r.value for r in topic.poll({0: 2}, 2)] == [b"c"]
        assert topic.poll({0: 3}, 2) == []


def test_what_was_published_survives_a_restart_and_offsets_go_on(path: Path) -> None:
    with EmbeddedTopic(path, partitions=3) as topic:
        topic.publish([b"a"], broker=4, time_ms=10)
    with EmbeddedTopic(path) as topic:
        assert topic.partitions == 3
        topic.publish([b"b"], broker=4, time_ms=20)
        assert [(r.partition, r.offset, r.value) for r in topic.poll({0: 0, 1: 0, 2: 0}, 10)] == [(1, 0, b"a"), (1, 1, b"b")]
        assert topic.end_offsets() == {0: 0, 1: 2, 2: 0}


def test_offsets_are_never_given_twice_after_retention_emptied_the_topic(path: Path) -> None:
    with EmbeddedTopic(path, retention_ms=1000) as topic:
        topic.publish([b"a", b"b"], broker=1, time_ms=10)
        assert topic.retain(now_ms=5000) == 2
        topic.publish([b"c"], broker=1, time_ms=5000)
        assert [(r.offset, r.value) for r in topic.poll({0: 0}, 10)] == [(2, b"c")]
        assert topic.begin_offsets() == {0: 2}


def test_retention_by_bytes_drops_the_oldest(path: Path) -> None:
    with EmbeddedTopic(path, retention_bytes=25) as topic:
        for time_ms in range(5):
            topic.publish([b"x" * 10], broker=1, time_ms=time_ms)
        assert topic.retain(now_ms=5) == 3
        assert [r.offset for r in topic.poll({0: 0}, 10)] == [3, 4]


def test_many_writers_lose_nothing(path: Path) -> None:
    """Reporters of several brokers write one file at the same time."""
    EmbeddedTopic(path).close()

    def write(broker: int) -> None:
        with EmbeddedTopic(path) as topic:
            for i in range(20):
                topic.publish([f"{broker}:{i}".encode()], broker=broker, time_ms=i)

    writers = [Thread(target=write, args=(broker,)) for broker in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with EmbeddedTopic(path) as topic:
        records = topic.poll({0: 0}, 1000)
    assert [r.offset for r in records] == list(range(80))
    for broker in range(4):
        own = [r.value.decode() for r in records if r.value.startswith(f"{broker}:".encode())]
        assert own == [f"{broker}:{i}" for i in range(20)]


def test_a_file_that_is_no_topic_is_refused_with_its_path_and_left_alone(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(TopicError, match=r"metrics\.db: expected a topic file"):
        EmbeddedTopic(path)
    assert path.read_bytes() == b"not a database" * 100


def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TopicError, match="nowhere"):
        EmbeddedTopic(tmp_path / "nowhere" / "metrics.db")


def test_a_bad_record_is_counted_and_the_next_one_read(path: Path) -> None:
    with EmbeddedTopic(path) as topic:
        publisher = SamplePublisher(topic, broker=1, incarnation=1)
        publisher.publish([leader_sample(0)], time_ms=1, window_ms=1)
        topic.publish([b"rubbish", b""], broker=1, time_ms=2)
        publisher.publish([leader_sample(1)], time_ms=3, window_ms=1)
        consumer = SampleConsumer(topic)
        assert consumer.lag == 4
        assert [b.blocks[0].partition.tolist() for b in consumer.poll()] == [[0], [1]]
        assert (consumer.records, consumer.decode_errors, consumer.lag) == (4, 2, 0)
        assert consumer.last_error is not None
        assert "offset 2" in consumer.last_error
        assert consumer.poll() == []


def test_a_consumer_that_fell_behind_retention_says_how_much_it_missed(path: Path) -> None:
    with EmbeddedTopic(path, retention_ms=10) as topic:
        publisher = SamplePublisher(topic, broker=1, incarnation=1)
        consumer = SampleConsumer(topic)
        for time_ms in (0, 1, 100):
            publisher.publish([leader_sample(time_ms)], time_ms=time_ms, window_ms=1)
        topic.retain(now_ms=100)
        assert [b.time_ms for b in consumer.poll()] == [100]
        assert consumer.lost == 2


def test_a_topic_that_was_made_again_takes_nothing_off_what_was_lost() -> None:
    """A counter that falls below 0 makes a strict reader refuse all figures."""

    class MadeAgain:
        partitions = 1

        def poll(self, positions: Mapping[int, int], limit: int) -> list[TopicRecord]:
            return [TopicRecord(0, at, 5, b"rubbish") for at in (0, 3)]

        def begin_offsets(self) -> dict[int, int]:
            return {0: 0}

        def end_offsets(self) -> dict[int, int]:
            return {0: 4}

        def offsets_at(self, time_ms: int) -> dict[int, int]:
            return {0: 0}

    consumer = SampleConsumer(MadeAgain(), {0: 1386})
    consumer.poll()
    assert (consumer.lost, consumer.positions) == (2, {0: 4})


def test_an_interval_too_large_for_one_record_is_split_without_loss(path: Path) -> None:
    samples = [leader_sample(i, float(i)) for i in range(1000)]
    with EmbeddedTopic(path) as topic:
        count = SamplePublisher(topic, broker=1, incarnation=9, max_record_bytes=3000).publish(
            samples, time_ms=5, window_ms=1
        )
        records = topic.poll({0: 0}, 10_000)
    assert count == len(records) > 1
    assert max(len(r.value) for r in records) <= 3000
    batches = [decode(r.value) for r in records]
    assert [b.sequence for b in batches] == list(range(count))
    numbers = [int(n) for b in batches for n in b.blocks[0].partition]
    assert numbers == list(range(1000))


def test_reading_can_start_at_a_time(path: Path) -> None:
    """A service that restarts warms its model with the last half hour, not with all that is kept."""
    with EmbeddedTopic(path, partitions=2) as topic:
        topic.publish([b"a"], broker=0, time_ms=10)
        topic.publish([b"b", b"c"], broker=0, time_ms=20)
        topic.publish([b"d"], broker=1, time_ms=15)
        assert topic.offsets_at(0) == {0: 0, 1: 0}
        assert topic.offsets_at(11) == {0: 1, 1: 0}
        assert topic.offsets_at(20) == {0: 1, 1: 1}, "the end where nothing is newer"
