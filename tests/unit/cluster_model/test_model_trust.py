"""A snapshot must say of which numbers one cannot be sure, and refuse what depends on them, nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cluster_model.metadata.events import BrokerRegistered, PartitionChanged, TopicCreated
from cluster_model.model import ClusterModel
from cluster_model.observed import BROKER, FOLLOWER, LEADER
from cluster_model.trust import BrokerVoice, LiveSnapshot
from cluster_model.windows import Horizon
from tests.unit.cluster_model.batches import NOW, Reports, replica, rows, whole

LATER = NOW + 120_000
PARTITIONS = 20


@pytest.fixture
def model() -> ClusterModel:
    """Partitions 0..19 of "orders", led by broker 1, followed by 2; "quiet-0" on 2 alone."""
    model = ClusterModel("c", short=Horizon(10_000, 3), long=Horizon(60_000, 6), stale_after_ms=90_000)
    for broker in (1, 2, 7):
        model.apply(BrokerRegistered(broker, None), NOW)
    model.apply(TopicCreated("orders", "id-1"), NOW)
    for number in range(PARTITIONS):
        model.apply(PartitionChanged("orders", number, (1, 2), (1, 2), 1), NOW)
    model.apply(TopicCreated("quiet", "id-2"), NOW)
    model.apply(PartitionChanged("quiet", 0, (2,), (2,), 2), NOW)
    return model


@pytest.fixture
def reports() -> Reports:
    return Reports()


def feed(model: ClusterModel, reports: Reports, time_ms: int, numbers: range = range(PARTITIONS)) -> None:
    """All of "orders", and "quiet"."""
    of_orders = [rows(LEADER, metric, [(0, n, 10.0) for n in numbers]) for metric in ("network_in", "consumer_out")]
    model.ingest(reports.of(1, time_ms, *of_orders), time_ms)
    model.ingest(
        reports.of(2, time_ms, replica(LEADER, 0, network_in=40.0, consumer_out=0.0), topics=("quiet",)), time_ms
    )
    model.ingest(reports.of(7, time_ms, whole(BROKER, disk=0.0)), time_ms)


def test_numbers_that_can_be_trusted_are_not_remarked_upon(model: ClusterModel, reports: Reports) -> None:
    feed(model, reports, LATER)
    snapshot = model.snapshot(LATER)
    assert snapshot.notes == ()
    assert not snapshot.untrusted(["network_in", "network_out"]).any()
    assert snapshot.refusals([("orders", 3)], [1, 2, 7], ["network_in", "network_out"]) == ()


def test_one_stale_partition_counts_with_its_last_load_and_only_its_own_move_is_refused(
    model: ClusterModel, reports: Reports
) -> None:
    feed(model, reports, NOW)
    feed(model, reports, LATER, range(1, PARTITIONS))
    snapshot = model.snapshot(LATER)
    assert snapshot.broker_load("network_in").tolist() == [200.0, 240.0, 0.0]
    assert snapshot.broker_states.tolist() == [0, 0, 0]
    assert snapshot.notes == (
        "no sample for more than 90 s of 1 partition: the last known network_in, network_out counts for orders-0",
    )
    assert np.flatnonzero(snapshot.untrusted(["network_in"])).tolist() == [0]
    assert snapshot.refusals([("orders", 0)], [1, 7], ["network_in"]) == ("network_in of orders-0 is older than 90 s",)
    assert snapshot.refusals([("orders", 1)], [1, 7], ["network_in"]) == ()
    doubts = snapshot.broker_doubts("network_in")
    assert doubts.stale.tolist() == [10.0, 10.0, 0.0]
    assert doubts.share() == pytest.approx([10 / 200, 10 / 240, 0.0])


def test_what_touches_a_broker_that_is_mostly_in_doubt_is_refused(model: ClusterModel, reports: Reports) -> None:
    """Broker 1's reporter has died: moving load to where one only guesses is no improvement one can count on."""
    feed(model, reports, NOW)
    model.ingest(
        reports.of(2, LATER, replica(LEADER, 0, network_in=300.0), topics=("quiet",)), LATER
    )
    snapshot = model.snapshot(LATER)
    assert snapshot.refusals([("quiet", 0)], [2, 1], ["network_in"]) == (
        "54% of the network_in of broker 2 is stale or unknown (limit 10%)",
        "100% of the network_in of broker 1 is stale or unknown (limit 10%)",
    )
    assert snapshot.refusals([("quiet", 0)], [2, 7], ["network_in"], limit=0.6) == ()
    assert snapshot.refusals([("quiet", 0)], [2, 1], ["replicas", "cpu"]) == ()  # no broker reports cpu; counts are exact


def test_a_partition_without_samples_counts_as_nothing_and_is_named(model: ClusterModel, reports: Reports) -> None:
    feed(model, reports, LATER, range(PARTITIONS - 3))
    snapshot = model.snapshot(LATER)
    assert snapshot.notes == (
        "network_in, network_out of 3 partitions was never measured and counts as 0: orders-17, orders-18, orders-19",
    )
    assert snapshot.refusals([("orders", 17)], [7], ["network_in"]) == ("network_in of orders-17 was never measured",)
    assert snapshot.broker_doubts("network_in").unknown.tolist() == [3, 3, 0]
    assert snapshot.refusals([("orders", 1)], [1], ["network_in"]) == (
        "15% of the network_in of broker 1 is stale or unknown (limit 10%)",
    )


def test_estimates_are_told_and_not_refused(model: ClusterModel, reports: Reports) -> None:
    feed(model, reports, LATER, range(1, PARTITIONS))
    model.ingest(reports.of(2, LATER, replica(FOLLOWER, 0, network_in=10.0)), LATER)
    snapshot = model.snapshot(LATER)
    assert snapshot.leader_load["network_in"][0] == 10.0
    assert snapshot.leader_load["network_out"][0] == 10.0  # its consumers are not known, its follower is
    assert snapshot.notes == ("network_in, network_out of 1 partition is estimated: orders-0",)
    assert snapshot.refusals([("orders", 0)], [1], ["network_in"]) == ()


def test_reporters_that_are_not_heard_are_told_apart(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW), NOW)
    model.ingest(reports.of(2, NOW, window_ms=0), LATER)  # arrives now, and is of long ago
    stale = model.staleness(LATER)
    assert stale.brokers == (
        BrokerVoice(1, "silent", 120_000), BrokerVoice(2, "late", 120_000), BrokerVoice(7, "never", None)
    )  # fmt: skip
    assert stale.partitions == PARTITIONS + 1
    assert stale.examples[:2] == (("orders", 0), ("orders", 1))
    notes = model.snapshot(LATER).notes
    assert notes[1:] == (
        "no samples yet from broker 7",
        "no samples any more from broker 1 (2 min old)",
        "samples arrive late from broker 2 (2 min old): their clocks are behind, or they work off what they kept",
    )


def test_a_clock_that_runs_ahead_does_not_hide_that_its_broker_fell_silent(model: ClusterModel, reports: Reports) -> None:
    model.ingest(reports.of(1, NOW + 59_000), NOW)
    assert model.staleness(NOW + 90_001).brokers[0] == BrokerVoice(1, "silent", 90_001)


def test_the_same_as_data_for_machines(model: ClusterModel, reports: Reports) -> None:
    feed(model, reports, NOW)
    feed(model, reports, LATER, range(1, PARTITIONS - 1))
    model.apply(PartitionChanged("quiet", 1, (7,), (7,), 7), LATER)
    document = json.loads(json.dumps(model.snapshot(LATER, horizon="short").trust_document()))
    assert document["horizon"] == "short"
    assert document["horizon_ms"] == 30_000
    assert document["loads"]["network_in"] == {
        "fresh": PARTITIONS - 1, "estimated": 0, "stale": 2, "unknown": 1,
        "brokers": {
            "1": {"load": 200.0, "stale": 20.0, "estimated": 0.0, "unknown_replicas": 0},
            "2": {"load": 240.0, "stale": 20.0, "estimated": 0.0, "unknown_replicas": 0},
            "7": {"load": 0.0, "stale": 0.0, "estimated": 0.0, "unknown_replicas": 1},
        },
    }  # fmt: skip
    assert document["brokers"] == []


def test_what_is_said_of_a_snapshot_stays_with_it_when_replicas_are_moved(model: ClusterModel, reports: Reports) -> None:
    feed(model, reports, NOW)
    feed(model, reports, LATER, range(1, PARTITIONS))
    snapshot = model.snapshot(LATER)
    replicas = snapshot.replicas.copy()
    replicas[0] = [0, 2]  # orders-0: from broker 2 to 7
    moved = snapshot.with_placement(replicas, snapshot.leader.copy())
    assert isinstance(moved, LiveSnapshot)
    assert moved.refusals([("orders", 0)], [], ["network_in"])
    assert moved.broker_doubts("network_in").stale.tolist() == [10.0, 0.0, 10.0]
