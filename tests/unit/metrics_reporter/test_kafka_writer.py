"""A reporter must outlive its topic: what the cluster says of one that is being deleted, or made, is no number of partitions."""

from __future__ import annotations

import pytest

import metrics_reporter.kafka_topic
from metrics_reporter.kafka_topic import KafkaTopicWriter, TopicSettings
from metrics_reporter.topic import TopicError


def test_a_topic_without_partitions_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_reporter.kafka_topic, "ensure_topic", lambda *_: 0)
    writer = KafkaTopicWriter("127.0.0.1:1", {}, TopicSettings("gone"))
    with pytest.raises(TopicError, match="deleting it, or has not made it yet"):
        writer.publish([b"one"], broker=1, time_ms=5)
    writer.close()
