"""Where no log can be read, polling must say the same, miss nothing that stays, and never take an error for a change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from cluster_model.errors import ExternalError
from cluster_model.metadata.description import ClusterDescription, DescribedBroker, DescribedPartition, DescribedTopic, QuorumReport
from cluster_model.metadata.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerUnfenced,
    ControllerChanged,
    Event,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.metadata.polling import AdminFollower

NOW = 1_767_225_600_000
ORDERS = DescribedTopic("orders", "id-1", [DescribedPartition(0, (1, 2), (1, 2), 1), DescribedPartition(1, (2, 1), (2,), 2)])
CLUSTER = ClusterDescription(
    "c", [DescribedBroker(1, "a", False), DescribedBroker(2, None, False)], [ORDERS], quorum=QuorumReport(100, 3, 50)
)


@dataclass
class Admin:
    """An admin interface that says what the test wants."""

    says: ClusterDescription = CLUSTER
    error: ExternalError | None = None

    def describe(self) -> ClusterDescription:
        if self.error is not None:
            raise self.error
        return self.says


@dataclass
class Polled:
    admin: Admin = field(default_factory=Admin)

    def __post_init__(self) -> None:
        self.follower = AdminFollower(self.admin)
        self.events()

    def events(self, says: ClusterDescription | None = None) -> list[Event]:
        self.admin.says = says or self.admin.says
        return list(self.follower.poll(NOW).events)


@pytest.fixture
def polled() -> Polled:
    return Polled()


def test_the_first_poll_brings_everything() -> None:
    update = AdminFollower(Admin()).poll(NOW)
    assert update.replaced
    assert update.caught_up
    assert list(update.events) == [
        ControllerChanged(100, 3),
        BrokerRegistered(1, "a"),
        BrokerRegistered(2, None),
        TopicCreated("orders", "id-1"),
        PartitionChanged("orders", 0, (1, 2), (1, 2), 1),
        PartitionChanged("orders", 1, (2, 1), (2,), 2),
    ]


def test_where_nothing_changed_nothing_happened(polled: Polled) -> None:
    assert polled.events() == []


def test_what_changed_is_told_and_nothing_else(polled: Polled) -> None:
    partitions = [ORDERS.partitions[0], DescribedPartition(1, (2, 1), (2, 1), 1)]
    says = replace(
        CLUSTER,
        brokers=[DescribedBroker(1, "a", True), DescribedBroker(2, "b", False), DescribedBroker(3, "c", False)],
        topics=[replace(ORDERS, partitions=partitions), DescribedTopic("clicks", "id-2", [])],
        quorum=QuorumReport(101, 4, 60),
    )
    assert polled.events(says) == [
        ControllerChanged(101, 4),
        BrokerFenced(1),
        BrokerRegistered(2, "b"),
        BrokerRegistered(3, "c"),
        TopicCreated("clicks", "id-2"),
        PartitionChanged("orders", 1, (2, 1), (2, 1), 1),
    ]
    assert polled.events(CLUSTER) == [
        TopicDeleted("clicks"),
        BrokerRemoved(3),
        BrokerUnfenced(1),
        BrokerRegistered(2, None),
        PartitionChanged("orders", 1, (2, 1), (2,), 2),
    ], "and back; an older controller is no news"


def test_a_reassignment_starts_and_ends(polled: Polled) -> None:
    moving = replace(ORDERS, partitions=[DescribedPartition(0, (3, 1, 2), (1, 2), 1), ORDERS.partitions[1]])
    says = replace(CLUSTER, topics=[moving], reassigning={("orders", 0): ((3,), (1,))})
    assert polled.events(says) == [PartitionChanged("orders", 0, (3, 1, 2), (1, 2), 1, (3,), (1,))]
    ended = replace(CLUSTER, topics=[moving])
    assert polled.events(ended) == [PartitionChanged("orders", 0, (3, 1, 2), (1, 2), 1)]


def test_two_answers_of_two_moments_make_no_impossible_partition(polled: Polled) -> None:
    """The reassignment is asked for after the replicas: it may have started in between."""
    assert polled.events(replace(CLUSTER, reassigning={("orders", 0): ((7,), ())})) == []


def test_a_topic_deleted_and_created_between_two_polls_is_another_topic(polled: Polled) -> None:
    events = polled.events(replace(CLUSTER, topics=[replace(ORDERS, topic_id="id-9")]))
    assert events[:2] == [TopicDeleted("orders"), TopicCreated("orders", "id-9")]
    assert len(events) == 4


def test_a_topic_that_is_not_described_now_is_taken_as_it_was(polled: Polled) -> None:
    """A leader is being elected, or an ACL is changing: the topic is not gone."""
    polled.admin.says = replace(CLUSTER, topics=[replace(ORDERS, partitions=[])], unreadable={"orders": "LeaderNotAvailable"})
    update = polled.follower.poll(NOW)
    assert list(update.events) == []
    assert "orders (LeaderNotAvailable)" in str(update.held)
    assert polled.follower.image.partition_count == 2


def test_a_cluster_that_does_not_answer_is_waited_for_and_one_that_refuses_is_told(polled: Polled) -> None:
    polled.admin.error = ExternalError("no broker answers", retriable=True)
    update = polled.follower.poll(NOW)
    assert (list(update.events), update.held, update.caught_up) == ([], "no broker answers", False)
    polled.admin.error = None
    assert polled.events() == []
    polled.admin.error = ExternalError("not authorized")
    with pytest.raises(ExternalError, match="not authorized"):
        polled.follower.poll(NOW)


def test_a_quorum_that_does_not_tell_leaves_the_controller_as_it_was(polled: Polled) -> None:
    assert polled.events(replace(CLUSTER, quorum=None)) == []
    assert polled.follower.image.controller is not None
