"""The model must say what the newest metadata and samples say, keep history where it can, and flag what it cannot trust."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_model.errors import ExternalError
from cluster_model.metadata.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerStopping,
    BrokerUnfenced,
    Event,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.metadata.image import MetadataImage
from cluster_model.model import ClusterModel
from cluster_model.observed import BROKER, CAPACITY, FOLLOWER, LEADER, REPLICA
from cluster_model.snapshot import BrokerState
from cluster_model.windows import Horizon
from tests.unit.cluster_model.batches import NOW, Batch, Reports, replica, rows, whole

EVENTS: tuple[Event, ...] = (
    BrokerRegistered(1, "a"),
    BrokerRegistered(2, "b"),
    BrokerRegistered(7, None),
    TopicCreated("orders", "id-1"),
    PartitionChanged("orders", 0, (1, 2), (1, 2), 1),
    PartitionChanged("orders", 1, (2, 1), (2, 1), 2),
)


YOUNGER: tuple[Event, ...] = (
    TopicCreated("a-new-one", "id-0"),
    PartitionChanged("a-new-one", 0, (2,), (2,), 2),
    TopicCreated("young", "id-2"),
    PartitionChanged("young", 0, (1,), (1,), 1),
)


@pytest.fixture
def model() -> ClusterModel:
    model = ClusterModel("c", short=Horizon(10_000, 1), long=Horizon(10_000, 6), stale_after_ms=30_000, dead_after_ms=60_000)
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


def test_a_topic_created_again_under_its_name_has_no_history(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    model.apply(TopicDeleted("orders"), NOW)
    model.apply(TopicCreated("orders", "id-2"), NOW)
    model.apply(PartitionChanged("orders", 0, (1, 2), (1, 2), 1), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.partition_count == 1
    assert snapshot.broker_load("network_in").tolist() == [0.0, 0.0, 0.0]
    assert "orders-0" in snapshot.notes[0]


def test_samples_of_a_deleted_topic_do_not_count_for_its_successor(model: ClusterModel, reports: Reports) -> None:
    """The interval that the deletion falls into was measured of both."""
    model.apply(TopicDeleted("orders"), NOW)
    late = reports.of(1, NOW + 5_000, replica(LEADER, 0, network_in=100.0))  # since 5 s before
    model.ingest(late, NOW + 5_000)
    model.apply(TopicCreated("orders", "id-2"), NOW + 6_000)
    model.apply(PartitionChanged("orders", 0, (1, 2), (1, 2), 1), NOW + 6_000)
    model.ingest(reports.of(1, NOW + 9_999, replica(LEADER, 0, network_in=100.0)), NOW + 9_999)
    assert model.snapshot(NOW + 9_999).leader_load == {}
    assert model.counts.earlier == 2
    model.ingest(reports.of(1, NOW + 10_000, replica(LEADER, 0, network_in=3.0)), NOW + 10_000)
    assert model.snapshot(NOW + 10_000).leader_load["network_in"].tolist() == [3.0]


def test_a_topic_replaced_in_one_step_starts_again_too(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    image = MetadataImage()
    for event in (*EVENTS[:3], TopicCreated("orders", "id-2"), PartitionChanged("orders", 0, (1, 2), (1, 2), 1)):
        image.apply(event, NOW)
    model.replace(image, NOW)
    model.ingest(reports.of(1, NOW + 9_999, replica(LEADER, 0, network_in=100.0)), NOW + 9_999)
    assert model.snapshot(NOW + 9_999).leader_load == {}


def test_a_batch_delivered_twice_counts_once(model: ClusterModel, reports: Reports) -> None:
    first = reports.of(1, NOW, replica(LEADER, 0, network_in=100.0))
    assert model.ingest(first, NOW)
    assert not model.ingest(first, NOW)
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=200.0)), NOW)
    assert model.snapshot(NOW).leader_load["network_in"][0] == 150.0
    assert (model.counts.batches, model.counts.repeated) == (2, 1)


def test_batches_that_overtake_each_other_all_count_once(model: ClusterModel) -> None:
    batches = [
        Batch(1, NOW + 1000 * n, n, blocks=(replica(LEADER, 0, network_in=float(n), disk=float(n)),)) for n in range(5)
    ]
    for n in (3, 1, 4, 1, 0, 3, 2, 0, 4, 2):
        model.ingest(batches[n], NOW + 4000)
    snapshot = model.snapshot(NOW + 4000)
    assert snapshot.leader_load["network_in"][0] == 2.0
    assert snapshot.leader_load["disk"][0] == 4.0
    assert (model.counts.batches, model.counts.repeated) == (5, 5)


def test_a_batch_of_so_long_ago_that_it_cannot_be_told_is_taken_for_repeated(model: ClusterModel) -> None:
    assert model.ingest(Batch(1, NOW, 2000), NOW)
    assert not model.ingest(Batch(1, NOW, 2000 - 1024), NOW)
    assert model.ingest(Batch(1, NOW, 2000 - 1023), NOW)
    for incarnation in (5, 6, 7):
        assert model.ingest(Batch(1, NOW, 0, incarnation=incarnation), NOW)
    assert not model.ingest(Batch(1, NOW, 2001, incarnation=1), NOW)
    assert not model.ingest(Batch(1, NOW, 0, incarnation=6), NOW)
    assert model.ingest(Batch(1, NOW, 1, incarnation=5), NOW)


def test_a_restarted_reporter_is_heard_again(model: ClusterModel) -> None:
    block = replica(LEADER, 0, network_in=100.0)
    assert model.ingest(Batch(1, NOW, 500, blocks=(block,), incarnation=1), NOW)
    assert model.ingest(Batch(1, NOW + 1, 0, blocks=(block,), incarnation=2), NOW + 1)


def test_a_clock_that_runs_ahead_does_not_push_out_the_windows(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    assert not model.ingest(reports.of(2, NOW + 86_400_000, replica(LEADER, 1, network_in=5.0)), NOW)
    assert model.counts.ahead == 1
    assert model.snapshot(NOW).leader_load["network_in"][0] == 100.0


def test_samples_that_metadata_never_places_are_given_up_and_counted(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(7, NOW, replica(LEADER, 0, network_in=100.0)), NOW)
    model.ingest(reports.of(1, NOW, replica(LEADER, 99, network_in=1.0)), NOW)
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=1.0), topics=("gone",)), NOW)
    model.ingest(reports.of(99, NOW, replica(LEADER, 0, network_in=1.0), whole(BROKER, cpu=1.0)), NOW)
    assert "network_in" not in model.snapshot(NOW).leader_load
    assert model.state().waiting == 5
    later = NOW + 60_001
    assert "network_in" not in model.snapshot(later).leader_load
    assert (model.counts.elsewhere, model.counts.unknown, model.state().waiting) == (1, 4, 0)


def test_samples_count_as_soon_as_late_metadata_places_them(model: ClusterModel, reports: Reports) -> None:
    """A new topic, a partition added, a replica moved and a new broker: brokers report each before metadata tells."""
    first = reports.of(2, NOW, rows(LEADER, "network_in", [(0, 0, 3.0), (1, 2, 5.0)]), topics=("new", "orders"))
    model.ingest(first, NOW)
    model.ingest(reports.of(7, NOW, replica(LEADER, 0, network_in=7.0)), NOW)
    model.ingest(reports.of(8, NOW, replica(LEADER, 1, network_in=8.0), whole(CAPACITY, disk=9.0)), NOW)
    assert "network_in" not in model.snapshot(NOW).leader_load
    for event in (
        TopicCreated("new", "id-new"),
        PartitionChanged("new", 0, (2,), (2,), 2),
        PartitionChanged("orders", 2, (2,), (2,), 2),
        PartitionChanged("orders", 0, (7, 2), (7, 2), 7, epoch=1),
        BrokerRegistered(8, "a"),
        PartitionChanged("orders", 1, (8, 1), (8, 1), 8, epoch=1),
    ):
        model.apply(event, NOW + 1000)
    snapshot = model.snapshot(NOW + 1000)
    assert snapshot.topics == ("new", "orders")
    assert snapshot.leader_load["network_in"].tolist() == [3.0, 7.0, 8.0, 5.0]
    assert snapshot.capacity["disk"][snapshot.row_of_broker[8]] == 9.0
    assert (model.state().waiting, model.counts.unknown, model.counts.elsewhere) == (0, 0, 0)
    assert model.counts.values == 5


def test_what_waits_keeps_its_order_when_metadata_places_a_part_of_it(model: ClusterModel, reports: Reports) -> None:
    """Of two values of one moment the later one is the newest, whatever became known in between; or a model that heard the
    same would say something else."""
    first = rows(LEADER, "disk", [(0, 0, 3.0), (1, 2, 5.0)])
    second = rows(LEADER, "disk", [(1, 2, 7.0)])
    model.ingest(reports.of(2, NOW, first, second, topics=("new", "orders")), NOW)
    for event in (TopicCreated("new", "id-new"), PartitionChanged("new", 0, (2,), (2,), 2)):
        model.apply(event, NOW)
    model.snapshot(NOW)  # a row of the first block has its place now, the other waits on
    model.apply(PartitionChanged("orders", 2, (2,), (2,), 2), NOW)
    assert model.snapshot(NOW).leader_load["disk"].tolist()[-1] == 7.0


def test_what_waits_for_metadata_is_bounded(model: ClusterModel) -> None:
    """A reporter of unknown topics must not take all memory."""
    many = rows(LEADER, "network_in", [(0, number, 1.0) for number in range(50_000)])
    for sequence in range(15):
        model.ingest(Batch(1, NOW + sequence, sequence, ("hidden",), (many,)), NOW)
    assert model.state().waiting <= 500_000
    assert model.counts.crowded_out == 250_000


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


def test_the_short_horizon_reacts_and_the_long_one_is_steady(model: ClusterModel, reports: Reports) -> None:
    for i in range(6):
        time_ms = NOW + i * 10_000
        model.ingest(reports.of(1, time_ms, replica(LEADER, 0, network_in=600.0 if i == 5 else 0.0)), time_ms)
    now = NOW + 50_000
    assert model.snapshot(now).leader_load["network_in"][0] == 100.0
    assert model.snapshot(now, horizon="short").leader_load["network_in"][0] == 600.0


def test_capacity_comes_from_configuration_until_the_reporter_says_it(model: ClusterModel, reports: Reports) -> None:
    model.set_capacity(1, "disk", 5.0)
    model.set_capacity(2, "disk", 6.0)
    model.ingest(reports.of(1, NOW, whole(CAPACITY, disk=9.0), whole(BROKER, disk=3.0)), NOW)
    assert model.snapshot(NOW).capacity["disk"][:2].tolist() == [9.0, 6.0]
    assert np.isnan(model.snapshot(NOW).capacity["disk"][2])
    assert model.broker_use(1) == {"disk": 3.0}
    model.ingest(reports.of(1, NOW - 5000, whole(CAPACITY, disk=1.0)), NOW)  # came late
    assert model.snapshot(NOW).capacity["disk"][0] == 9.0


def test_a_fenced_broker_is_left_alone_then_dead_and_serves_again(model: ClusterModel) -> None:
    model.apply(BrokerFenced(2), NOW)
    assert model.snapshot(NOW + 60_000).broker_states.tolist() == [0, BrokerState.EXCLUDED, 0]
    assert "broker 2 is fenced or shutting down; left alone for 60 s" in " ".join(model.snapshot(NOW + 60_000).notes)
    assert model.snapshot(NOW + 60_001).broker_states.tolist() == [0, BrokerState.DEAD, 0]
    model.apply(BrokerUnfenced(2), NOW + 70_000)
    assert model.snapshot(NOW + 70_000).broker_states.tolist() == [0, 0, 0]


def test_a_broker_that_shuts_down_in_order_is_left_alone(model: ClusterModel) -> None:
    model.apply(BrokerStopping(1), NOW)
    assert model.snapshot(NOW).broker_states.tolist() == [BrokerState.EXCLUDED, 0, 0]
    assert "broker 1 is fenced or shutting down" in " ".join(model.snapshot(NOW).notes)


def test_an_id_used_again_does_not_inherit_use_and_capacity(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(7, NOW, whole(CAPACITY, disk=9.0), whole(BROKER, cpu=3.0)), NOW)
    model.apply(BrokerRemoved(7), NOW)
    model.apply(BrokerRegistered(7, "c"), NOW)
    assert model.broker_use(7) == {}
    assert model.snapshot(NOW).capacity == {}


def test_a_stated_capacity_outlives_the_brokers_absence(model: ClusterModel) -> None:
    model.set_capacity(7, "disk", 9.0)
    model.apply(BrokerRemoved(7), NOW)
    model.apply(BrokerRegistered(7, "c"), NOW)
    assert model.snapshot(NOW).capacity["disk"][2] == 9.0


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
    assert snapshot.notes[-1] == "1 reassignment in progress; replicas count where they are going"


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
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0), whole(CAPACITY, disk=9.0)), NOW)
    model.set_capacity(7, "disk", 7.0)
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=3.0), topics=("young",)), NOW)
    whole_image = MetadataImage()
    for event in (*(e for e in EVENTS if e != BrokerRegistered(7, None)), *YOUNGER):
        whole_image.apply(event, NOW)
    model.replace(whole_image, NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.topics == ("a-new-one", "orders", "young")
    assert snapshot.broker_ids.tolist() == [1, 2]
    assert snapshot.capacity["disk"].tolist()[0] == 9.0
    assert snapshot.leader_load["network_in"][1:].tolist()[0] == 100.0
    assert snapshot.leader_load["network_in"][3] == 3.0  # had waited
    whole_image.apply(BrokerRegistered(55, None), NOW)
    assert model.snapshot(NOW).broker_ids.tolist() == [1, 2]


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


def test_memory_is_what_the_documentation_says_and_does_not_grow_with_samples() -> None:
    """104 bytes a rate, 16 a gauge, 60 of metadata for each partition, an eighth more, and room of the metadata's."""
    model, partitions = ClusterModel("c"), 20_000
    model.apply(BrokerRegistered(1, None), NOW)
    model.apply(TopicCreated("orders", "id"), NOW)
    for number in range(partitions):
        model.apply(PartitionChanged("orders", number, (1, 2, 3), (1, 2, 3), 1), NOW)
    metadata = model.state().nbytes
    block = [rows(LEADER, m, [(0, n, 1.0) for n in range(partitions)]) for m in ("network_in", "cpu", "disk")]
    for i in range(30):
        model.ingest(Batch(1, NOW + i * 60_000, i, blocks=tuple(block)), NOW + i * 60_000)
    assert model.counts.values == 30 * 3 * partitions
    assert model.state().nbytes - metadata <= (2 * 104 + 16) * (partitions * 9 / 8 + 1024) + 1024 * 1024
    assert metadata <= 4 * 60 * partitions


def test_it_says_who_leads_and_what_a_broker_can_carry(model: ClusterModel) -> None:
    """What records of other balancers' agents leave out."""
    model.set_capacity(1, "cpu", 8.0)
    assert (model.leads(1, "orders", 0), model.leads(2, "orders", 0), model.leads(9, "orders", 0)) == (True, False, False)
    assert model.leads(1, "orders", 7) is model.leads(1, "nothing", 0) is None
    assert (model.capacity(1, "cpu"), model.capacity(1, "disk"), model.capacity(2, "cpu")) == (8.0, None, None)
