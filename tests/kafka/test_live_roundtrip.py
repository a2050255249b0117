"""Capture, plan, let Kafka's own tools carry the plan out, capture again: everything is where the plan
said."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kafka.admin import KafkaAdminClient

from cluster_model.snapshot import Snapshot
from goals.document import load_goals
from optimizer.plan import Change, Plan
from optimizer.planner import plan
from optimizer.report import to_election, to_reassignment
from tests.kafka.cluster import KafkaCluster
from tests.kafka.traffic import Traffic, Window, create_topic, fill
from tests.kafka.watched import PATIENCE
from trimtab.capture import capture

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"

ORDERS, CLICKS, LOGS = "roundtrip-orders", "roundtrip-clicks", "roundtrip-logs"
PER_TICK = {(ORDERS, number): 1 + number % 3 for number in range(8)}


@pytest.fixture
def skewed(cluster: KafkaCluster, admin: KafkaAdminClient) -> Iterator[None]:
    """Topics crowded on broker 1 and on rack r1, as a cluster that grew from two brokers has them."""
    create_topic(admin, ORDERS, [[1, 2], [1, 2], [1, 2], [2, 1], [1, 2], [1, 2], [1, 3], [1, 2]])
    create_topic(admin, CLICKS, [[1, 2, 3], [1, 2, 3], [2, 1, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]])
    create_topic(admin, LOGS, [[1]] * 6 + [[2]] * 2)
    records = {(topic, n): 200 + 100 * n for topic, count in ((ORDERS, 8), (CLICKS, 6), (LOGS, 8)) for n in range(count)}
    fill(cluster.bootstrap, records)
    yield
    admin.delete_topics([ORDERS, CLICKS, LOGS])


Placement = dict[tuple[str, int], tuple[tuple[int, ...], int | None]]


def placement(snapshot: Snapshot) -> Placement:
    """Replica list and leader of every partition, as broker ids."""
    ids = snapshot.broker_ids
    return {
        (snapshot.topics[snapshot.partition_topic[row]], int(snapshot.partition_number[row])): (
            tuple(int(ids[b]) for b in snapshot.replicas[row] if b >= 0),
            int(ids[snapshot.leader[row]]) if snapshot.leader[row] >= 0 else None,
        )
        for row in range(snapshot.partition_count)
    }


def predicted(snapshot: Snapshot, made: Plan) -> Snapshot:
    """The snapshot as it would be after the plan."""
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for change in made.proposals:
        row = snapshot.row_of_partition(change.topic, change.partition)
        replicas[row, : len(change.replicas_after)] = [snapshot.row_of_broker[b] for b in change.replicas_after]
        leader[row] = -1 if change.leader_after is None else snapshot.row_of_broker[change.leader_after]
    return snapshot.with_placement(replicas, leader)


def made_preferred(change: Change) -> bool:
    """Whether a leader that was not the preferred one stays and becomes it, as where it was away and back within the plan."""
    return change.leader_after == change.replicas_after[0] != change.replicas_before[0]


def carry_out(cluster: KafkaCluster, made: Plan, folder: Path) -> None:
    """Hand the plan's files to Kafka's own tools, as an operator would, until they say it is done."""
    reassignment, election = folder / "reassignment.json", folder / "election.json"
    reassignment.write_text(to_reassignment(made))
    election.write_text(to_election(made))
    common = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(reassignment))
    executed = cluster.run_tool(REASSIGN, *common, "--execute")
    assert executed.returncode == 0, executed.stdout + executed.stderr
    assert "Successfully started partition reassignments" in executed.stdout, executed.stdout + executed.stderr
    deadline = time.monotonic() + PATIENCE
    while True:
        verified = cluster.run_tool(REASSIGN, *common, "--verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        if "is still in progress" not in verified.stdout:
            break
        assert time.monotonic() < deadline, verified.stdout
    asked = len(json.loads(reassignment.read_text())["partitions"])
    assert verified.stdout.count("is completed.") >= asked, verified.stdout
    elected = cluster.run_tool(
        ELECT, "--bootstrap-server", cluster.bootstrap, "--election-type", "PREFERRED",
        "--path-to-json-file", str(election),
    )  # fmt: skip
    assert elected.returncode == 0, elected.stdout + elected.stderr


@pytest.mark.usefixtures("skewed")
def test_counts_plan_carried_out_by_kafkas_tools_ends_exactly_where_it_said(
    cluster: KafkaCluster, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    goals = load_goals(None, preset="counts")
    before = capture(cluster.bootstrap, interval=0)
    made = plan(before, goals)
    described = {
        (t["name"], p["partition_index"]): (tuple(p["replica_nodes"]), p["leader_id"])
        for t in admin.describe_topics()
        for p in t["partitions"]
    }
    assert made.proposals
    for change in made.proposals:
        where = described[change.topic, change.partition]
        assert (change.replicas_before, change.leader_before) == where, "the plan starts from what the cluster has"
        moved = set(change.replicas_after) != set(change.replicas_before) or change.leader_after != where[1]
        assert moved or made_preferred(change), "what changes nothing is not proposed"
        assert set(change.replicas_after) <= set(cluster.broker_ids)

    carry_out(cluster, made, tmp_path)
    after = capture(cluster.bootstrap, interval=0)

    target = predicted(before, made)
    assert placement(after) == placement(target)
    for count in ("replicas", "leaders"):
        assert after.broker_load(count).tolist() == target.broker_load(count).tolist()
    np.testing.assert_allclose(after.broker_load("disk"), target.broker_load("disk"), rtol=0.01, atol=4096)
    assert not plan(target, goals).proposals, "a second plan on the predicted snapshot is empty"
    assert not plan(after, goals).proposals, "a second plan on the cluster as it now is, is empty"


@pytest.mark.usefixtures("skewed")
def test_default_plan_under_traffic_brings_the_loads_it_promised(cluster: KafkaCluster, tmp_path: Path) -> None:
    goals = load_goals(None, preset="default")
    first, second = Window(), Window()
    with Traffic(cluster.bootstrap, PER_TICK, size=4000, group="roundtrip-readers") as traffic:
        before = capture(cluster.bootstrap, interval=5, progress=first)
        made = plan(before, goals)
        assert made.proposals
        carry_out(cluster, made, tmp_path)
        traffic.settle()
        after = capture(cluster.bootstrap, interval=5, progress=second)

    target = predicted(before, made)
    assert placement(after) == placement(target)
    busiest = max(PER_TICK, key=lambda partition: PER_TICK[partition])
    pace = traffic.rate(busiest, second.span) / traffic.rate(busiest, first.span)  # the producer itself is not quite steady
    for resource, error in (("network_in", 0.08), ("network_out", 0.12)):  # commits come in steps
        expected = target.broker_load(resource) * pace
        assert expected.mean() > 50_000, "there is traffic to compare"
        np.testing.assert_allclose(
            after.broker_load(resource), expected, atol=error * expected.mean(), rtol=0, err_msg=resource
        )
    assert made.hard_violations_left == 0
    assert not plan(target, goals).proposals, "a second plan on the predicted snapshot is empty"
