"""The internal topic on real Kafka: what its writer and reader do when it is absent, deleted, or grows."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping

import pytest

from metrics_reporter.consumer import SampleConsumer
from metrics_reporter.kafka_topic import KafkaTopicReader, KafkaTopicWriter, TopicSettings, ensure_topic
from metrics_reporter.topic import RecordRefused, TopicError, TopicRecord
from tests.kafka.cluster import KafkaCluster
from tests.kafka.traffic import administering, create_topic, wait_until_known
from tests.kafka.watched import PATIENCE

PLAIN = {"security_protocol": "PLAINTEXT"}


def test_the_ends_of_the_topic_say_what_they_cannot_do(cluster: KafkaCluster) -> None:
    absent = TopicSettings("absent", create=False)
    with pytest.raises(TopicError, match="there is no topic absent, and create is false"):
        ensure_topic(cluster.bootstrap, PLAIN, absent)
    with pytest.raises(TopicError, match="there is no topic absent"):
        KafkaTopicReader(cluster.bootstrap, PLAIN, "absent")
    with pytest.raises(TopicError, match=r"no cluster answers.*Connection refused"):
        KafkaTopicReader("127.0.0.1:1", PLAIN)
    writer = KafkaTopicWriter(cluster.bootstrap, PLAIN, TopicSettings("small", partitions=2, replication_factor=1))
    try:
        with pytest.raises(RecordRefused):
            writer.publish([os.urandom(2_000_000)], broker=1, time_ms=5)
        writer.publish([b"one", b"two"], broker=1, time_ms=5)
        writer.publish([b"three"], broker=2, time_ms=5)
    finally:
        writer.close()
    with administering(cluster) as admin:
        wait_until_known(admin, "small")
    with KafkaTopicReader(cluster.bootstrap, PLAIN, "small") as reader:
        assert reader.end_offsets() == {0: 1, 1: 2}
        assert reader.begin_offsets() == {0: 0, 1: 0}
        assert [(r.partition, r.offset, r.value) for r in polled(reader, {1: 1})] == [(1, 1, b"two")]
        assert [r.value for r in polled(reader, {1: 0})] == [b"one", b"two"], "positions are the caller's"
        assert [r.value for r in polled(reader, {0: 0})] == [b"three"]


def test_a_deleted_topic_is_made_again_by_its_writer(cluster: KafkaCluster) -> None:
    """Reporters waited for ever, and only a restart of one mended all."""
    writer = KafkaTopicWriter(cluster.bootstrap, PLAIN, TopicSettings("deleted", partitions=2, replication_factor=1))
    end = time.monotonic() + PATIENCE
    try:
        writer.publish([b"one"], broker=1, time_ms=5)
        with administering(cluster) as admin:
            admin.delete_topics(["deleted"])
        sent = False
        while not sent and time.monotonic() < end:
            try:
                writer.publish([b"two"], broker=1, time_ms=6)
                sent = b"two" in _values(cluster, "deleted")
            except TopicError:
                continue  # it is being deleted, or made
    finally:
        writer.close()
    assert sent, "samples go through again by themselves"


def _values(cluster: KafkaCluster, name: str) -> list[bytes]:
    with KafkaTopicReader(cluster.bootstrap, PLAIN, name) as reader:
        return [r.value for r in polled(reader, {1: 0})]


def test_a_reader_soon_sees_that_its_topic_grew(cluster: KafkaCluster) -> None:
    with administering(cluster) as admin:
        create_topic(admin, "growing", [[1, 2]])
        looks_at_each_poll = itertools.count(0.0, 100.0)
        with KafkaTopicReader(cluster.bootstrap, PLAIN, "growing", monotonic=lambda: next(looks_at_each_poll)) as reader:
            consumer = SampleConsumer(reader)
            consumer.poll()
            assert set(consumer.positions) == {0}
            admin.create_partitions({"growing": 2})
            for _ in range(40):  # of half a second each
                consumer.poll()
                if set(consumer.positions) == {0, 1}:
                    break
            assert set(consumer.positions) == {0, 1}


def polled(reader: KafkaTopicReader, positions: Mapping[int, int]) -> list[TopicRecord]:
    """What a poll brings that waits as long as a busy machine may need."""
    for _ in range(40):
        found = reader.poll(positions, 10)
        if found:
            return found
    return []
