"""What simulated reporters publish must be what happened, and nothing where nothing could have been measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cluster_model.model import ClusterModel
from cluster_model.windows import Horizon
from metrics_reporter.columns import BatchColumns
from metrics_reporter.consumer import SampleConsumer
from metrics_reporter.sample import Scope
from metrics_reporter.topic import EmbeddedTopic
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.collector import SimulatedReporter
from trimtab.simulator.spec import GB, MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

P0 = TopicPartition("orders", 0)


@pytest.fixture
def cluster() -> SimulatedCluster:
    cluster = SimulatedCluster([BrokerSpec(i, None) for i in (1, 2, 3)], traffic=Traffic(0, noise=0.0))
    cluster.create_topic(TopicSpec("orders", ((1, 2),), np.array([MB]), 2.0, np.array([GB]), filled=1.0))
    return cluster


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[EmbeddedTopic]:
    with EmbeddedTopic(tmp_path / "metrics.db") as topic:
        yield topic


def values(batch: BatchColumns, scope: Scope) -> dict[str, float]:
    return {
        metric: float(column[0])
        for block in batch.blocks if block.scope == scope
        for metric, column in zip(block.metrics, block.values, strict=True)
    }  # fmt: skip


def report(cluster: SimulatedCluster, topic: EmbeddedTopic, reporter: SimulatedReporter) -> BatchColumns | None:
    consumer = SampleConsumer(topic, topic.end_offsets())
    reporter.report()
    batches = consumer.poll()
    return batches[0] if batches else None


def test_rates_are_differences_of_counters(cluster: SimulatedCluster, topic: EmbeddedTopic) -> None:
    leading, following = SimulatedReporter(cluster, 1, topic), SimulatedReporter(cluster, 2, topic)
    assert report(cluster, topic, leading) is None  # one reading is no rate
    report(cluster, topic, following)
    cluster.step(10)
    led = report(cluster, topic, leading)
    followed = report(cluster, topic, following)
    assert led is not None
    assert followed is not None
    assert led.window_ms == 10_000
    own = values(led, Scope.LEADER)
    assert own["network_in"] == pytest.approx(MB)
    assert own["consumer_out"] == pytest.approx(2 * MB)
    assert own["disk"] == pytest.approx(GB)
    assert values(led, Scope.BROKER)["network_out"] == pytest.approx(3 * MB)
    assert values(followed, Scope.FOLLOWER)["network_in"] == pytest.approx(MB)
    assert values(followed, Scope.LEADER) == {}
    assert values(led, Scope.CAPACITY)["disk"] == 500 * GB


def test_cpu_of_the_replicas_adds_up_to_that_of_the_broker(cluster: SimulatedCluster, topic: EmbeddedTopic) -> None:
    reporter = SimulatedReporter(cluster, 1, topic)
    reporter.report()
    cluster.step(10)
    batch = report(cluster, topic, reporter)
    assert batch is not None
    assert values(batch, Scope.LEADER)["cpu"] == pytest.approx(values(batch, Scope.BROKER)["cpu"])


def test_a_change_of_leader_within_the_interval_is_left_out_of_it(cluster: SimulatedCluster, topic: EmbeddedTopic) -> None:
    """Half an interval of leading reported as a whole one would halve the load."""
    reporters = [SimulatedReporter(cluster, b, topic) for b in (1, 2)]
    for reporter in reporters:
        reporter.report()
    cluster.step(5)
    cluster.alter_partition_reassignments({P0: (2, 1)})
    cluster.elect_preferred_leaders([P0])
    cluster.step(5)
    for reporter in reporters:
        batch = report(cluster, topic, reporter)
        assert batch is not None
        assert {b.scope for b in batch.blocks} == {Scope.BROKER, Scope.CAPACITY}
    cluster.step(10)
    batch = report(cluster, topic, reporters[1])
    assert batch is not None
    assert values(batch, Scope.LEADER)["network_in"] == pytest.approx(MB)


def test_a_replica_that_is_still_copying_is_not_taken_for_steady_load(
    cluster: SimulatedCluster, topic: EmbeddedTopic
) -> None:
    cluster.throttle = 10 * MB
    cluster.alter_partition_reassignments({P0: (1, 3)})
    reporter = SimulatedReporter(cluster, 3, topic)
    reporter.report()
    cluster.step(10)
    batch = report(cluster, topic, reporter)
    assert batch is not None
    assert values(batch, Scope.FOLLOWER) == {}
    assert values(batch, Scope.BROKER)["network_in"] == pytest.approx(10 * MB)


def test_a_lost_reporter_and_a_dead_broker_say_nothing_and_start_again(
    cluster: SimulatedCluster, topic: EmbeddedTopic
) -> None:
    reporter = SimulatedReporter(cluster, 1, topic)
    reporter.report()
    for silence, voice in (
        (cluster.faults.lose_reporter, cluster.faults.restore_reporter),
        (cluster.faults.kill, cluster.faults.restart),
    ):
        silence(1)
        cluster.step(5)
        assert reporter.report() == 0
        voice(1)
        cluster.step(5)
        assert reporter.report() == 0  # the first reading after silence has nothing to compare with
        cluster.step(30)
        assert reporter.report() > 0


def test_model_loads_equal_what_brokers_really_did(tmp_path: Path) -> None:
    """Within 1 % (cpu: 3 %, since it is attributed) for every broker, over the model's horizon, with noise."""
    from trimtab.simulator.scenario import growing_cluster

    cluster = growing_cluster(5, brokers=9, partitions=270)
    model = ClusterModel(cluster.cluster_id, long=Horizon(30_000, 10))
    with EmbeddedTopic(tmp_path / "metrics.db", partitions=4) as topic:
        reporters = [SimulatedReporter(cluster, b, topic) for b in cluster.broker_ids]
        consumer = SampleConsumer(topic)
        for reporter in reporters:
            reporter.report()
        start, began = cluster.counters(), cluster.now_ms
        for _ in range(10):
            cluster.step(30)
            for reporter in reporters:
                reporter.report()
        for at_ms, event in cluster.metadata_since(0):
            model.apply(event, at_ms)
        for batch in consumer.poll():
            model.ingest(batch, cluster.now_ms)
    end, seconds = cluster.counters(), (cluster.now_ms - began) / 1000
    snapshot = model.snapshot(cluster.now_ms)
    assert snapshot.notes == ()
    for resource, counter, error in (
        ("network_in", "received", 0.01),
        ("network_out", "sent", 0.01),
        ("cpu", "cpu_seconds", 0.03),
    ):
        truth = (end[counter] - start[counter]) / seconds
        busy = truth > 0.1  # an idle broker uses a little cpu that no replica causes
        assert snapshot.broker_load(resource)[busy] == pytest.approx(truth[busy], rel=error)
    assert snapshot.broker_load("disk") == pytest.approx(end["disk"], rel=1e-3)
    assert snapshot.broker_load("replicas").sum() == 270 * 3
