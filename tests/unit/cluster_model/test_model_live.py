"""The model must say what the newest metadata and samples say, keep history where it can, and flag what it cannot trust."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from cluster_model.errors import ExternalError
from cluster_model.image import (
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerUnfenced,
    Event,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.model import ClusterModel
from cluster_model.observed import BROKER, CAPACITY, FOLLOWER, LEADER, REPLICA
from cluster_model.snapshot import BrokerState, FloatArray, IntArray

NOW = 1_767_225_600_000


@dataclass(frozen=True)
class Block:
    scope: int
    metrics: tuple[str, ...]
    topic: IntArray
    partition: IntArray
    values: FloatArray


@dataclass(frozen=True)
class Batch:
    broker: int
    time_ms: int
    sequence: int
    topics: tuple[str, ...] = ("orders",)
    blocks: tuple[Block, ...] = ()
    window_ms: int = 10_000
    incarnation: int = 1


@dataclass
class Reports:
    """Numbers batches, and writes blocks shortly."""

    sequence: dict[int, int] = field(default_factory=dict)

    def of(self, broker: int, time_ms: int, *blocks: Block, topics: tuple[str, ...] = ("orders",)) -> Batch:
        self.sequence[broker] = self.sequence.get(broker, -1) + 1
        return Batch(broker, time_ms, self.sequence[broker], topics, blocks)


def replica(scope: int, partition: int, **values: float) -> Block:
    return Block(
        scope,
        tuple(values),
        np.array([0], dtype=np.int32),
        np.array([partition], dtype=np.int32),
        np.array([[v] for v in values.values()]),
    )


def whole(scope: int, **values: float) -> Block:
    empty = np.empty(0, dtype=np.int32)
    return Block(scope, tuple(values), empty, empty, np.array([[v] for v in values.values()]))


EVENTS: tuple[Event, ...] = (
    BrokerRegistered(1, "a"),
    BrokerRegistered(2, "b"),
    BrokerRegistered(7, None),
    TopicCreated("orders", "id-1"),
    PartitionChanged("orders", 0, (1, 2), (1, 2), 1),
    PartitionChanged("orders", 1, (2, 1), (2, 1), 2),
)


@pytest.fixture
def model() -> ClusterModel:
    model = ClusterModel("c", window_ms=10_000, windows=6, stale_after_ms=30_000, dead_after_ms=60_000)
    for event in EVENTS:
        model.apply(event, NOW)
    return model


@pytest.fixture
def reports() -> Reports:
    return Reports()


def test_placement_follows_the_metadata(model: ClusterModel) -> None:
    model.apply(PartitionChanged("orders", 0, (7, 2), (7,), 7, epoch=1), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.broker_ids.tolist() == [1, 2, 7]
    assert snapshot.racks == ("a", "b", None)
    assert snapshot.replicas.tolist() == [[2, 1], [1, 0]]
    assert snapshot.leader.tolist() == [2, 1]
    assert snapshot.taken_at == "2026-01-01T00:00:00Z"


def test_leader_network_out_is_consumers_and_followers(model: ClusterModel, reports: Reports) -> None:
    block = replica(LEADER, 0, network_in=100.0, consumer_out=50.0, disk=1000.0, cpu=0.5)
    model.ingest(reports.of(1, NOW, block), NOW)
    snapshot = model.snapshot(NOW)
    assert {r: v[0] for r, v in snapshot.leader_load.items()} == {
        "network_in": 100.0, "network_out": 150.0, "disk": 1000.0, "cpu": 0.5,
    }  # fmt: skip
    assert snapshot.broker_load("network_in").tolist() == [100.0, 100.0, 0.0]
    assert snapshot.broker_load("disk").tolist() == [1000.0, 1000.0, 0.0]


def test_followers_own_cost_counts_where_it_differs_from_the_leaders(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0, cpu=0.5, disk=9.0)), NOW)
    model.ingest(reports.of(2, NOW, replica(FOLLOWER, 0, network_in=90.0, cpu=0.2, disk=8.0)), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.broker_load("cpu").tolist() == [0.5, 0.2, 0.0]
    assert snapshot.broker_load("network_in").tolist() == [100.0, 100.0, 0.0]


def test_a_moved_partition_keeps_its_history(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    model.apply(PartitionChanged("orders", 0, (7, 2), (7, 2), 7, epoch=1), NOW + 1000)
    assert model.snapshot(NOW + 1000).broker_load("network_in").tolist() == [0.0, 100.0, 100.0]


def test_a_topic_of_the_same_name_created_anew_has_no_history(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    model.apply(TopicDeleted("orders"), NOW)
    model.apply(TopicCreated("orders", "id-2"), NOW)
    model.apply(PartitionChanged("orders", 0, (1, 2), (1, 2), 1), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.partition_count == 1
    assert snapshot.broker_load("network_in").tolist() == [0.0, 0.0, 0.0]
    assert "orders-0" in snapshot.notes[0]


def test_a_batch_delivered_twice_counts_once(model: ClusterModel, reports: Reports) -> None:
    first = reports.of(1, NOW, replica(LEADER, 0, network_in=100.0))
    assert model.ingest(first, NOW)
    assert not model.ingest(first, NOW)
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=200.0)), NOW)
    assert model.snapshot(NOW).leader_load["network_in"][0] == 150.0
    assert (model.counts.batches, model.counts.repeated) == (2, 1)


def test_a_restarted_reporter_is_heard_again(model: ClusterModel) -> None:
    block = replica(LEADER, 0, network_in=100.0)
    assert model.ingest(Batch(1, NOW, 500, blocks=(block,), incarnation=1), NOW)
    assert model.ingest(Batch(1, NOW + 1, 0, blocks=(block,), incarnation=2), NOW + 1)


def test_a_clock_that_runs_ahead_does_not_push_out_the_windows(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    assert not model.ingest(reports.of(2, NOW + 86_400_000, replica(LEADER, 1, network_in=5.0)), NOW)
    assert model.counts.ahead == 1
    assert model.snapshot(NOW).leader_load["network_in"][0] == 100.0


def test_samples_from_a_broker_that_does_not_host_the_replica_are_not_counted(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(7, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    model.ingest(reports.of(1, NOW, replica(LEADER, 99, network_in=1.0)), NOW)
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=1.0), topics=("gone",)), NOW)
    model.ingest(reports.of(99, NOW, replica(LEADER, 0, network_in=1.0)), NOW)
    assert (model.counts.elsewhere, model.counts.unknown) == (1, 3)
    assert "network_in" not in model.snapshot(NOW).leader_load


def test_values_that_make_no_sense_are_counted_and_the_others_taken(model: ClusterModel, reports: Reports) -> None:
    block = replica(LEADER, 0, network_in=-1.0, disk=float("inf"), cpu=0.5, consumer_out=float("nan"))
    model.ingest(reports.of(1, NOW, block, whole(BROKER, cpu=-3.0)), NOW)
    assert (model.counts.senseless, model.counts.values) == (3, 1)
    assert list(model.snapshot(NOW).leader_load) == ["cpu"]


def test_a_replica_of_unknown_role_counts_by_the_metadata(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(REPLICA, 0, cpu=0.5), replica(REPLICA, 1, cpu=0.1)), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.leader_load["cpu"][0] == 0.5
    assert snapshot.follower_load["cpu"][1] == 0.1


def test_a_stale_partition_counts_with_its_last_load_and_is_named(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    later = NOW + 3_600_000
    model.ingest(reports.of(2, later, replica(LEADER, 1, network_in=7.0)), later)
    snapshot = model.snapshot(later)
    assert snapshot.leader_load["network_in"].tolist() == [100.0, 7.0]
    assert snapshot.notes == ("loads of 1 partitions are old or unknown: orders-0", "no samples from brokers 1, 7")
    stale = model.staleness(later)
    assert (stale.partitions, stale.brokers) == ((("orders", 0),), (1, 7))


def test_the_short_horizon_reacts_and_the_long_one_is_steady(model: ClusterModel, reports: Reports) -> None:
    for i in range(6):
        time_ms = NOW + i * 10_000
        model.ingest(reports.of(1, time_ms, replica(LEADER, 0, network_in=600.0 if i == 5 else 0.0)), time_ms)
    now = NOW + 50_000
    assert model.snapshot(now).leader_load["network_in"][0] == 100.0
    assert model.snapshot(now, horizon_ms=10_000).leader_load["network_in"][0] == 600.0


def test_capacity_comes_from_configuration_until_the_reporter_says_it(model: ClusterModel, reports: Reports) -> None:
    model.set_capacity(1, "disk", 5.0)
    model.set_capacity(2, "disk", 6.0)
    model.ingest(reports.of(1, NOW, whole(CAPACITY, disk=9.0), whole(BROKER, disk=3.0)), NOW)
    assert model.snapshot(NOW).capacity["disk"][:2].tolist() == [9.0, 6.0]
    assert np.isnan(model.snapshot(NOW).capacity["disk"][2])
    assert model.broker_use(1) == {"disk": 3.0}


def test_a_fenced_broker_is_left_alone_then_dead_and_serves_again(model: ClusterModel) -> None:
    model.apply(BrokerFenced(2), NOW)
    assert model.snapshot(NOW + 60_000).broker_states.tolist() == [0, BrokerState.EXCLUDED, 0]
    assert "brokers 2 are fenced" in " ".join(model.snapshot(NOW + 60_000).notes)
    assert model.snapshot(NOW + 60_001).broker_states.tolist() == [0, BrokerState.DEAD, 0]
    model.apply(BrokerUnfenced(2), NOW + 70_000)
    assert model.snapshot(NOW + 70_000).broker_states.tolist() == [0, 0, 0]


def test_a_broker_gone_for_good_stays_as_dead_while_it_holds_replicas(model: ClusterModel) -> None:
    model.apply(BrokerRemoved(2), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.broker_ids.tolist() == [1, 2, 7]
    assert snapshot.broker_states.tolist() == [0, BrokerState.DEAD, 0]
    for number in (0, 1):
        model.apply(PartitionChanged("orders", number, (1, 7), (1,), 1, epoch=1), NOW)
    assert model.snapshot(NOW).broker_ids.tolist() == [1, 7]


def test_a_reassignment_in_progress_counts_where_it_is_going(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    model.apply(PartitionChanged("orders", 0, (7, 2, 1), (1, 2), 1, (7,), (1,), epoch=1), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.replicas.tolist() == [[2, 1], [1, 0]]
    assert snapshot.leader.tolist() == [1, 1]  # broker 2: in sync and staying
    assert snapshot.notes[-1] == "1 reassignments in progress, counted where they are going"


def test_an_older_change_of_a_partition_is_ignored(model: ClusterModel) -> None:
    model.apply(PartitionChanged("orders", 0, (7, 2), (7,), 7, epoch=5), NOW)
    model.apply(PartitionChanged("orders", 0, (1, 2), (1,), 1, epoch=4), NOW)
    assert model.snapshot(NOW).leader.tolist() == [2, 1]


def test_a_snapshot_does_not_change_when_the_model_goes_on(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    snapshot = model.snapshot(NOW)
    digest = snapshot.digest
    loads = snapshot.broker_load("network_in").tolist()
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=900.0)), NOW)
    model.apply(PartitionChanged("orders", 0, (7,), (7,), 7, epoch=1), NOW)
    model.apply(TopicDeleted("orders"), NOW)
    assert snapshot.broker_load("network_in").tolist() == loads
    assert digest == type(snapshot)(**{f: getattr(snapshot, f) for f in snapshot.__dataclass_fields__}).digest


def test_loading_a_whole_image_replaces_and_keeps_the_history_of_what_stays(model: ClusterModel, reports: Reports) -> None:
    model.apply(TopicCreated("old", "id-old"), NOW)
    model.apply(PartitionChanged("old", 0, (1,), (1,), 1), NOW)
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    model.reload([e for e in EVENTS if e != BrokerRegistered(7, None)], NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.topics == ("orders",)
    assert snapshot.broker_ids.tolist() == [1, 2]
    assert snapshot.leader_load["network_in"][0] == 100.0


def test_metadata_out_of_order_asks_for_a_new_image(model: ClusterModel) -> None:
    with pytest.raises(ExternalError, match="topic nobody"):
        model.apply(PartitionChanged("nobody", 0, (1,), (1,), 1), NOW)
    with pytest.raises(ExternalError, match="broker 55") as caught:
        model.apply(BrokerFenced(55), NOW)
    assert caught.value.retriable


def test_many_topics_come_and_go_and_every_name_keeps_its_own_place() -> None:
    """Slots are used again; a snapshot must never show one partition's replicas or loads under another's name."""
    model = ClusterModel("c")
    random = np.random.default_rng(1)
    for broker in range(10):
        model.apply(BrokerRegistered(broker, None), NOW)
    expected: dict[tuple[str, int], tuple[int, ...]] = {}
    for round_number in range(60):
        name = f"t{random.integers(12)}"
        if any(topic == name for topic, _ in expected) and random.random() < 0.5:
            model.apply(TopicDeleted(name), NOW)
            expected = {k: v for k, v in expected.items() if k[0] != name}
            continue
        model.apply(TopicCreated(name, f"{name}-{round_number}"), NOW)
        expected = {k: v for k, v in expected.items() if k[0] != name}
        for number in random.permutation(int(random.integers(1, 90))).tolist():
            replicas = tuple(random.permutation(10)[: int(random.integers(1, 7))].tolist())
            model.apply(PartitionChanged(name, number, replicas, replicas, replicas[0]), NOW)
            expected[name, number] = replicas
    snapshot = model.snapshot(NOW)
    found = {
        (snapshot.topics[t], int(n)): tuple(int(snapshot.broker_ids[r]) for r in rows if r >= 0)
        for t, n, rows in zip(snapshot.partition_topic, snapshot.partition_number, snapshot.replicas, strict=True)
    }
    assert found == expected
    assert sorted(found) == list(found)  # rows are canonical


def test_an_empty_cluster_has_an_empty_snapshot() -> None:
    snapshot = ClusterModel("c").snapshot(NOW)
    assert (snapshot.broker_count, snapshot.partition_count, snapshot.replica_count) == (0, 0, 0)
