"""A reporter must outlive its topic: what the cluster says of one that is being deleted, or made, is no number of partitions."""

from __future__ import annotations

from typing import Any

import pytest

import metrics_reporter.kafka_topic
from metrics_reporter import kafka_client
from metrics_reporter.kafka_topic import KafkaTopicWriter, TopicSettings, ensure_topic
from metrics_reporter.topic import TopicError


def test_a_topic_without_partitions_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_reporter.kafka_topic, "ensure_topic", lambda *_: 0)
    writer = KafkaTopicWriter("127.0.0.1:1", {}, TopicSettings("gone"))
    with pytest.raises(TopicError, match="deleting it, or has not made it yet"):
        writer.publish([b"one"], broker=1, time_ms=5)
    writer.close()


class Brokers:
    """An admin client whose requests each go to another broker; some learn of a change later than others."""

    def __init__(self, *known: int) -> None:
        self.known, self.made, self.grown = list(known), False, False
        self._manager = self
        self.cluster = self

    def brokers(self) -> list[int]:
        return [1, 2, 3]

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        found = self.known.pop(0)
        return [{"name": names[0], "error_code": 0 if found else 3, "partitions": [{}] * found}]

    def create_topics(self, asked: dict[str, Any]) -> None:
        self.made = True

    def create_partitions(self, asked: dict[str, int]) -> None:
        self.grown = True

    def close(self) -> None: ...


def test_a_topic_just_made_is_asked_for_until_the_broker_that_is_asked_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(0, 0, 0, 2)
    monkeypatch.setattr(kafka_client, "admin_client", lambda *_, **__: brokers)
    assert ensure_topic("127.0.0.1:1", {}, TopicSettings("new", partitions=2)) == 2
    assert (brokers.made, brokers.grown) == (True, False)


def test_a_topic_that_grew_is_asked_for_until_the_broker_that_is_asked_knows_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(2, 2, 5)
    monkeypatch.setattr(kafka_client, "admin_client", lambda *_, **__: brokers)
    assert ensure_topic("127.0.0.1:1", {}, TopicSettings("small", partitions=5, grow=True)) == 5
    assert (brokers.made, brokers.grown) == (False, True)
