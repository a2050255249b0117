"""Leader and follower loads: each broker's must add up to what it really does, also where replicas are not measured."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_model.loops import ESTIMATED, STALE, UNKNOWN
from cluster_model.metadata.events import BrokerRegistered, PartitionChanged, TopicCreated
from cluster_model.model import ClusterModel
from cluster_model.observed import BROKER, FOLLOWER, LEADER
from cluster_model.windows import Horizon
from tests.unit.cluster_model.batches import NOW, Block, Reports, replica, rows, whole


@pytest.fixture
def model() -> ClusterModel:
    model = ClusterModel("c", long=Horizon(60_000, 6))
    for broker in (1, 2, 3):
        model.apply(BrokerRegistered(broker, None), NOW)
    model.apply(TopicCreated("orders", "id-1"), NOW)
    model.apply(PartitionChanged("orders", 0, (1, 2), (1, 2), 1), NOW)
    model.apply(PartitionChanged("orders", 1, (2, 3), (2, 3), 2), NOW)
    model.apply(PartitionChanged("orders", 2, (3,), (3,), 3), NOW)
    return model


@pytest.fixture
def reports() -> Reports:
    return Reports()


def test_cpu_of_a_broker_is_divided_by_the_bytes_its_replicas_handle(model: ClusterModel, reports: Reports) -> None:
    """Broker 1 leads orders-0 alone, so all its cpu is that leader's; broker 2 follows it and leads orders-1."""
    model.ingest(reports.of(1, NOW, whole(BROKER, cpu=3.0), replica(LEADER, 0, network_in=100.0, consumer_out=100.0)), NOW)
    model.ingest(reports.of(2, NOW, whole(BROKER, cpu=2.0), replica(LEADER, 1, network_in=50.0, consumer_out=0.0)), NOW)
    model.ingest(reports.of(3, NOW, whole(BROKER, cpu=0.5), replica(LEADER, 2, network_in=0.0, consumer_out=0.0)), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.leader_load["network_out"].tolist() == [200.0, 50.0, 0.0]
    assert snapshot.leader_load["cpu"].tolist() == [3.0, 1.0, 0.0]  # broker 2: 100 bytes in and out, 100 for orders-0
    assert snapshot.follower_load["cpu"].tolist()[:2] == [1.0, 0.5]
    assert snapshot.broker_load("cpu") == pytest.approx([3.0, 2.0, 0.5])
    assert (snapshot.trust.leader["cpu"] == ESTIMATED).all()


def test_what_replicas_measured_of_cpu_is_not_given_to_others(model: ClusterModel, reports: Reports) -> None:
    leader = replica(LEADER, 1, network_in=50.0, consumer_out=0.0, cpu=1.5)
    model.ingest(reports.of(1, NOW, whole(BROKER, cpu=3.0), replica(LEADER, 0, network_in=100.0, consumer_out=100.0)), NOW)
    model.ingest(reports.of(2, NOW, whole(BROKER, cpu=2.0), leader), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.leader_load["cpu"][:2].tolist() == [3.0, 1.5]
    assert snapshot.follower_load["cpu"][0] == 0.5
    assert snapshot.trust.leader["cpu"].tolist() == [ESTIMATED, 0, UNKNOWN]


def test_estimates_from_stale_numbers_are_stale(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, whole(BROKER, cpu=3.0), replica(LEADER, 0, network_in=100.0, consumer_out=100.0)), NOW)
    later = NOW + 90_001
    model.ingest(reports.of(1, later, replica(LEADER, 0, network_in=100.0, consumer_out=100.0)), later)
    snapshot = model.snapshot(later)
    assert snapshot.trust.leader["network_in"][0] == 0
    assert snapshot.trust.leader["cpu"][0] == ESTIMATED | STALE


def test_a_broker_that_measured_nothing_does_not_end_the_windows_of_others(reports: Reports) -> None:
    """Found by Hypothesis: broker 3's cpu, which is not a number, made broker 2's older half leave the mean."""
    model = ClusterModel("c", short=Horizon(100, 2), long=Horizon(150, 3), max_ahead_ms=150)
    for broker in (1, 2, 3):
        model.apply(BrokerRegistered(broker, None), NOW)
    model.apply(TopicCreated("orders", "1"), NOW)
    model.apply(PartitionChanged("orders", 0, (1, 2), (1,), 1), NOW)
    seven = [replica(LEADER, 0, network_in=value) for value in (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)]
    model.ingest(reports.of(1, NOW, *seven, window_ms=0), NOW)
    model.ingest(reports.of(2, NOW, whole(BROKER, cpu=44.0), window_ms=0), NOW)
    model.ingest(reports.of(2, NOW - 87, whole(BROKER, cpu=0.0), window_ms=0), NOW)
    for unmeasured in (float("nan"), -1.0):
        model.ingest(reports.of(3, NOW + 101, whole(BROKER, cpu=unmeasured), window_ms=0), NOW)
        assert model.snapshot(NOW, horizon="short").follower_load["cpu"].tolist() == [22.0]


def test_a_leader_without_samples_is_taken_from_its_followers(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(3, NOW, replica(FOLLOWER, 1, network_in=50.0, disk=7.0)), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.leader_load["network_in"][1] == 50.0
    assert snapshot.leader_load["disk"][1] == 7.0
    assert snapshot.trust.leader["disk"].tolist() == [UNKNOWN, ESTIMATED, UNKNOWN]
    assert "network_out" not in snapshot.leader_load  # consumers are not measured: unknown, not small
    assert not snapshot.has_follower_load.any()


def test_a_silent_reporter_puts_in_doubt_only_what_it_alone_measured(model: ClusterModel, reports: Reports) -> None:
    """One dead reporter of three stopped all balancing, though followers measured the very same bytes."""
    leader = replica(LEADER, 1, network_in=50.0, disk=6.0, consumer_out=9.0)
    model.ingest(reports.of(2, NOW, leader, replica(FOLLOWER, 0, network_in=1.0)), NOW)
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=10.0, disk=3.0, consumer_out=0.0)), NOW)
    later = NOW + 90_001
    model.ingest(reports.of(3, later, replica(FOLLOWER, 1, network_in=80.0, disk=7.0)), later)
    snapshot = model.snapshot(later)
    assert (snapshot.leader_load["network_in"][1], snapshot.leader_load["disk"][1]) == (80.0, 7.0)
    assert snapshot.trust.leader["network_in"].tolist() == [STALE, ESTIMATED, UNKNOWN], "stale followers are no better than a stale leader"
    assert snapshot.leader_load["network_in"][0] == 10.0
    assert snapshot.trust.leader["disk"].tolist() == [STALE, ESTIMATED, UNKNOWN]
    assert snapshot.trust.leader["network_out"][1] & STALE, "nobody else measures consumers"
    assert not snapshot.refusals([("orders", 1)], [], ["network_in", "disk"])
    assert snapshot.refusals([("orders", 1)], [], ["network_out"])
    model.ingest(reports.of(2, later, replica(LEADER, 1, network_in=60.0)), later)
    assert model.snapshot(later).trust.leader["network_in"][1] == 0, "the leader's own again"


def test_measured_network_out_goes_before_what_is_added_up(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0, consumer_out=50.0, network_out=170.0)), NOW)
    model.ingest(reports.of(2, NOW, replica(LEADER, 1, network_in=100.0, consumer_out=50.0)), NOW)
    snapshot = model.snapshot(NOW)
    assert snapshot.leader_load["network_out"][:2].tolist() == [170.0, 150.0]
    assert snapshot.trust.leader["network_out"].tolist() == [0, 0, UNKNOWN]


def test_a_resource_unknown_to_the_model_is_passed_over(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, heat=1.0, network_in=2.0), whole(BROKER, heat=3.0)), NOW)
    assert list(model.snapshot(NOW).leader_load) == ["network_in"]
    assert model.broker_use(1) == {}


def test_every_load_of_a_snapshot_is_private_to_it(model: ClusterModel, reports: Reports) -> None:
    """Also placements that two snapshots share are read-only."""
    model.ingest(reports.of(1, NOW, replica(LEADER, 0, network_in=100.0, consumer_out=50.0, cpu=1.0)), NOW)
    first, second = model.snapshot(NOW), model.snapshot(NOW)
    for snapshot in (first, second):
        for table in (snapshot.leader_load, snapshot.trust.leader):
            assert not any(array.flags.writeable for array in table.values())
        assert not snapshot.replicas.flags.writeable
    assert not np.shares_memory(first.leader_load["network_in"], second.leader_load["network_in"])


def test_consumers_of_a_silent_broker_are_told_by_the_rest_of_their_topic(reports: Reports) -> None:
    """Bytes out of the partitions that it leads stayed in doubt, and with them 40 to 80 % of what other brokers send."""
    model = ClusterModel("c", long=Horizon(60_000, 6))
    for broker in (1, 2, 3):
        model.apply(BrokerRegistered(broker, None), NOW)
    for topic, replicas in (("orders", [(1, 2), (2, 3), (3, 2)]), ("logs", [(1, 3)]), ("idle", [(1, 2), (2, 3)])):
        model.apply(TopicCreated(topic, topic), NOW)
        for number, each in enumerate(replicas):
            model.apply(PartitionChanged(topic, number, each, each, each[0]), NOW)
    topics = ("orders", "logs", "idle")

    def said(time_ms: int, fanout: float, brokers: tuple[int, ...]) -> None:
        def of(scope: int, at: list[tuple[int, int, float]], **a_byte: float) -> list[Block]:
            return [rows(scope, metric, [(t, n, v * each) for t, n, v in at]) for metric, each in a_byte.items()]

        leads = {1: [(0, 0, 100.0), (1, 0, 30.0), (2, 0, 0.0)], 2: [(0, 1, 50.0), (2, 1, 0.0)], 3: [(0, 2, 10.0)]}
        follows = {2: [(0, 0, 120.0), (0, 2, 10.0), (2, 0, 0.0)], 3: [(0, 1, 50.0), (1, 0, 30.0), (2, 1, 0.0)]}
        for b in brokers:
            led = of(LEADER, leads[b], network_in=1.0, consumer_out=fanout, cpu=0.01, fetch_rate=0.1)
            followed = of(FOLLOWER, follows[b], network_in=1.0) if b in follows else []
            batch = reports.of(b, time_ms, *led, *followed, topics=topics)
            assert model.ingest(batch, time_ms)

    said(NOW, 1.0, (2, 3, 1))
    later = NOW + 90_001
    said(later, 2.0, (2, 3))
    snapshot = model.snapshot(later)
    names = [snapshot.partition_name(row) for row in range(snapshot.partition_count)]
    out = dict(zip(names, snapshot.leader_load["network_out"].tolist(), strict=True))
    trust = {r: dict(zip(names, snapshot.trust.leader[r].tolist(), strict=True)) for r in ("network_out", "cpu", "fetch_rate")}
    assert out["orders-0"] == 120.0 * 1.5 + 120.0, "as the other partitions of its topic have for each byte, and what its follower fetches"
    assert out["idle-0"] == 0.0
    fresh = {"orders-0": ESTIMATED, "orders-1": 0, "orders-2": 0, "logs-0": STALE | ESTIMATED, "idle-0": ESTIMATED, "idle-1": 0}
    assert trust["network_out"] == fresh, "nothing fresh tells of consumers of logs"
    assert trust["fetch_rate"] == fresh | {"logs-0": STALE}
    assert trust["cpu"] == fresh | {"logs-0": ESTIMATED}, "a byte costs about as much in every topic"
    cpu = dict(zip(names, snapshot.leader_load["cpu"].tolist(), strict=True))
    assert cpu["logs-0"] == pytest.approx(0.3)
    assert not snapshot.refusals([("orders", 0)], [], ["network_in", "network_out", "cpu"])
    assert snapshot.refusals([("logs", 0)], [], ["network_out"])
