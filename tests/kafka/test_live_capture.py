"""A capture of a real cluster says what the admin client says, and the rates that were really produced."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from cluster_model.snapshot import BrokerState, Snapshot
from tests.kafka.cluster import KafkaCluster
from tests.kafka.traffic import Traffic, Window, administering, create_topic, fill
from tests.kafka.watched import PATIENCE
from trimtab.capture import capture
from trimtab.capture.client import client_settings
from trimtab.capture.gateway import Gateway

BUSY = "capture-busy"
QUIET = "capture-quiet"
SINGLE = "capture-single"  # replication factor 1, one partition on broker 4
PER_TICK = {(BUSY, 0): 8, (BUSY, 1): 4, (BUSY, 2): 1}


@pytest.fixture(scope="module")
def topics(cluster: KafkaCluster) -> Iterator[None]:
    with administering(cluster) as admin:
        create_topic(admin, BUSY, [[1, 3, 4], [1, 2, 3], [1, 4, 2]])
        create_topic(admin, QUIET, [[2, 1], [2, 1], [3, 4], [2, 3]])
        create_topic(admin, SINGLE, [[1], [4]])
    fill(cluster.bootstrap, {(QUIET, 0): 3000, (QUIET, 1): 100, (SINGLE, 0): 500, (SINGLE, 1): 700})
    yield
    with administering(cluster) as admin:
        admin.delete_topics([BUSY, QUIET, SINGLE])


def by_name(snapshot: Snapshot) -> dict[str, int]:
    return {snapshot.partition_name(row): row for row in range(snapshot.partition_count)}


def replica_list(snapshot: Snapshot, row: int) -> list[int]:
    return [int(snapshot.broker_ids[b]) for b in snapshot.replicas[row] if b >= 0]


def leader_of(snapshot: Snapshot, row: int) -> int | None:
    return int(snapshot.broker_ids[snapshot.leader[row]]) if snapshot.leader[row] >= 0 else None


@pytest.mark.usefixtures("topics")
def test_placement_leaders_and_sizes_are_those_the_admin_client_reports(
    cluster: KafkaCluster, admin: KafkaAdminClient
) -> None:
    snapshot = capture(cluster.bootstrap, interval=0)

    assert snapshot.cluster_id == cluster.cluster_id
    assert snapshot.broker_ids.tolist() == [1, 2, 3, 4]
    assert snapshot.racks == ("r1", "r1", "r2", "r3")
    assert set(snapshot.broker_states.tolist()) == {BrokerState.ACTIVE}
    volume = shutil.disk_usage(cluster.folder).total
    assert snapshot.capacity["disk"].tolist() == [volume] * 4, "log directories of one machine are on one volume"
    rows = by_name(snapshot)
    sizes = {
        (answer["broker"], topic["name"], p["partition_index"]): p["partition_size"]
        for answer in admin.describe_log_dirs()
        for log_dir in answer["log_dirs"]
        for topic in log_dir["topics"]
        for p in topic["partitions"]
    }
    described = {
        f"{t['name']}-{p['partition_index']}": (t["name"], p) for t in admin.describe_topics() for p in t["partitions"]
    }
    assert rows.keys() == described.keys()
    for name, (topic, partition) in described.items():
        row = rows[name]
        assert replica_list(snapshot, row) == partition["replica_nodes"], name
        assert leader_of(snapshot, row) == partition["leader_id"], name
        expected = sizes[partition["leader_id"], topic, partition["partition_index"]]
        assert snapshot.leader_load["disk"][row] == expected, name
    assert not snapshot.is_reported("network_in")
    assert snapshot.leader_load["disk"][rows[f"{QUIET}-0"]] > 3000 * 1000


@pytest.mark.usefixtures("topics")
def test_rates_are_those_that_were_produced_and_consumed(cluster: KafkaCluster) -> None:
    window = Window()
    with Traffic(cluster.bootstrap, PER_TICK, group="capture-readers") as traffic:
        snapshot = capture(cluster.bootstrap, interval=5, progress=window)

    rows = by_name(snapshot)
    for topic, number in PER_TICK:
        row = rows[f"{topic}-{number}"]
        produced = traffic.rate((topic, number), window.span)
        appended = snapshot.leader_load["network_in"][row]
        # a record batch adds a few bytes to each value, and the two readings are not at the marks exactly
        assert produced * 0.95 < appended < produced * 1.08, f"{topic}-{number}"
        fetched = snapshot.leader_load["network_out"][row] - 2 * appended
        assert produced * 0.85 < fetched < produced * 1.15, f"{topic}-{number}"
    assert snapshot.leader_load["network_in"][rows[f"{QUIET}-0"]] == 0
    assert not snapshot.is_reported("cpu")
    assert not snapshot.is_reported("produce_rate")
    assert any("network_out is a lower bound" in note for note in snapshot.notes)


def test_rates_survive_retention_that_deletes_the_log_meanwhile(cluster: KafkaCluster, admin: KafkaAdminClient) -> None:
    """Log sizes fall while records are appended: the rate must come from offsets, not go to zero or below."""
    topic = "capture-cut"
    create_topic(admin, topic, [[2, 3]])
    fill(cluster.bootstrap, {(topic, 0): 3000}, size=2000)
    window = Window()
    deleted: list[str] = []

    def delete_half(what: str, share: float) -> None:
        window(what, share)
        if what == "measuring rates" and not deleted:
            deleted.append(topic)
            admin.delete_records({TopicPartition(topic, 0): 3000})

    with Traffic(cluster.bootstrap, {(topic, 0): 4}) as traffic:
        snapshot = capture(cluster.bootstrap, interval=3, progress=delete_half)

    row = by_name(snapshot)[f"{topic}-0"]
    produced = traffic.rate((topic, 0), window.span)
    assert produced * 0.9 < snapshot.leader_load["network_in"][row] < produced * 1.1
    assert any(f"cut by retention or compaction meanwhile ({topic}-0)" in note for note in snapshot.notes)
    admin.delete_topics([topic])


def test_a_compacted_topic_that_is_cleaned_meanwhile_has_the_rate_that_was_produced(cluster: KafkaCluster, admin: KafkaAdminClient) -> None:
    """What cleaning leaves of its log made 0.2 to 0.3 % of the truth, without a warning."""
    topic = "capture-compacted"
    settings = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"}
    create_topic(admin, topic, [[2, 3]], settings)
    window = Window()
    with Traffic(cluster.bootstrap, {(topic, 0): 8}, key=b"the same") as traffic:
        deadline = time.monotonic() + PATIENCE
        while _bytes_a_record(cluster, topic) > 200:
            assert time.monotonic() < deadline, "it is not cleaned"
        snapshot = capture(cluster.bootstrap, interval=6, progress=window)
        produced = traffic.rate((topic, 0), window.span)

    row = by_name(snapshot)[f"{topic}-0"]
    assert produced * 0.7 < snapshot.leader_load["network_in"][row] < produced * 1.4
    assert any(f"network_in of {topic} (1 partition) is records appended times" in note for note in snapshot.notes)
    admin.delete_topics([topic])


def _bytes_a_record(cluster: KafkaCluster, topic: str) -> float:
    """What is left of a log, by what was appended to it."""
    with Gateway(cluster.bootstrap, client_settings(None)) as gateway:
        reading = gateway.counters({2: [(topic, 0)]})[2]
    assert reading.sizes is not None
    assert reading.ends is not None
    return reading.sizes.sizes[topic, 0] / max(reading.ends.ends[topic, 0], 1)


def test_a_reassignment_under_way_is_captured_as_it_will_end(cluster: KafkaCluster, admin: KafkaAdminClient) -> None:
    topic = "capture-moving"
    create_topic(admin, topic, [[1, 2]])
    fill(cluster.bootstrap, {(topic, 0): 4000})
    slow = {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
    throttle(admin, topic, slow, "1000")
    try:
        admin.alter_partition_reassignments({TopicPartition(topic, 0): [3, 4]})
        snapshot = capture(cluster.bootstrap, interval=0)
        row = by_name(snapshot)[f"{topic}-0"]
        assert replica_list(snapshot, row) == [3, 4]
        assert leader_of(snapshot, row) == 3, "the old leader is not among the new replicas"
        assert snapshot.leader_load["disk"][row] > 4000 * 1000, "the old leader's log is what there is"
        assert any("being reassigned" in note for note in snapshot.notes)
        assert any(f"the leader of {topic}-0 is a replica that is being removed" in note for note in snapshot.notes)
    finally:
        admin.alter_partition_reassignments({TopicPartition(topic, 0): None})
        throttle(admin, topic, {}, None)
        admin.delete_topics([topic])


def throttle(admin: KafkaAdminClient, topic: str, replicas: dict[str, str], rate: str | None) -> None:
    """Set, or with None lift, the replication throttle of a topic and of every broker."""
    from kafka.admin import ConfigResource, ConfigResourceType

    names = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    brokers = [ConfigResource(ConfigResourceType.BROKER, str(b), configs=dict.fromkeys(names, rate)) for b in (1, 2, 3, 4)]
    if rate is None:
        admin.reset_configs(brokers)
    else:
        topics = [ConfigResource(ConfigResourceType.TOPIC, topic, configs=replicas)]
        admin.alter_configs(brokers + topics, raise_on_unknown=False)


@pytest.mark.usefixtures("topics")
def test_a_stopped_broker_is_dead_and_what_it_alone_held_is_offline_not_missing(
    cluster: KafkaCluster,
) -> None:
    cluster.stop_broker(4)
    try:
        snapshot = capture(cluster.bootstrap, interval=1)
    finally:
        cluster.start_broker(4)

    assert snapshot.broker_ids.tolist() == [1, 2, 3, 4]
    assert BrokerState(int(snapshot.broker_states[3])) is BrokerState.DEAD
    assert snapshot.racks[3] == "r3"
    rows = by_name(snapshot)
    orphan = rows[f"{SINGLE}-1"]
    assert replica_list(snapshot, orphan) == [4]
    assert leader_of(snapshot, orphan) is None
    assert replica_list(snapshot, rows[f"{BUSY}-0"]) == [1, 3, 4], "an offline replica stays in its list"
    assert leader_of(snapshot, rows[f"{QUIET}-2"]) == 3
    notes = "\n".join(snapshot.notes)
    assert "broker 4 is fenced" in notes
    leaderless = re.search(r"partitions? ha(?:s|ve) no leader: (.*)", notes)  # also topics of other tests may have one there
    assert leaderless is not None
    assert f"{SINGLE}-1" in leaderless[1]
    assert "replicas are offline" in notes
    unsized = re.search(r"no log size is known of (.*)", notes)
    assert unsized is not None
    assert f"{SINGLE}-1" in unsized[1]
    back = capture(cluster.bootstrap, interval=0)
    assert set(back.broker_states.tolist()) == {BrokerState.ACTIVE}, "a broker that is back is active again"


@pytest.mark.usefixtures("topics")
def test_a_broker_that_hangs_is_dead_after_a_bounded_wait_and_hides_no_other(cluster: KafkaCluster) -> None:
    """It keeps its connections and its leaderships, and the cluster still takes it for alive."""
    cluster.freeze_broker(4)
    try:
        snapshot = capture(cluster.bootstrap, interval=0)
    finally:
        cluster.thaw_broker(4)

    assert snapshot.broker_states.tolist() == [0, 0, 0, BrokerState.DEAD]
    assert any("broker 4 is" in note and "its state is dead" in note for note in snapshot.notes)
    rows = by_name(snapshot)
    assert snapshot.leader_load["disk"][rows[f"{QUIET}-0"]] > 3000 * 1000
    assert replica_list(snapshot, rows[f"{SINGLE}-1"]) == [4]
    deadline = time.monotonic() + PATIENCE
    while capture(cluster.bootstrap, interval=0).broker_states[3] != BrokerState.ACTIVE:
        assert time.monotonic() < deadline, "the broker does not come back"
