"""Topics that Kafka has placed stand afterwards where the placement would have put them, with the fewest moves there are to that."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.policy import Placement
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.policies.placed_anew import placed_anew
from trimtab.execution.order import order_of
from trimtab.service.standing import after

GOALS = "version: 1\ngoals: [{kind: rack_aware, hard: true}, {kind: usage_distribution, resource: network_in}]\n"


def cluster(lists: list[list[int]], racks: str = "aabbcc", **of_brokers: Any) -> Snapshot:
    """`new` stands on `lists`; `old` fills broker 1."""
    brokers = [{"id": b, "rack": rack, **of_brokers.get(f"b{b}", {})} for b, rack in enumerate(racks, 1)]
    partitions = [
        {"topic": "new", "partition": n, "replicas": replicas, "leader": replicas[0], "leader_load": {"network_in": 0.0, "disk": 10.0}}
        for n, replicas in enumerate(lists)
    ]
    partitions += [
        {"topic": "old", "partition": n, "replicas": [1], "leader": 1, "leader_load": {"network_in": 1e6, "disk": 1e9}} for n in range(6)
    ]
    head = {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local"}
    return build_snapshot({**head, "brokers": brokers, "partitions": partitions})


def made(snapshot: Snapshot, goals: str = GOALS, kind: Any = "least", topics: tuple[str, ...] = ("new",), **options: Any) -> Plan:
    return placed_anew(snapshot, parse_goals(goals, "goals.yaml"), topics, Placement(kind=kind), "throughput", PlanOptions(**options))


def counts(snapshot: Snapshot) -> tuple[Counter[int], Counter[int]]:
    """Replicas and leaders of `new` by broker."""
    rows = [p for p in range(snapshot.partition_count) if snapshot.partition_name(p).startswith("new-")]
    ids = snapshot.broker_ids
    hosts = Counter(int(ids[b]) for p in rows for b in snapshot.replicas[p] if b >= 0)
    return hosts, Counter(int(ids[snapshot.leader[p]]) for p in rows)


def test_a_topic_on_one_side_of_the_cluster_is_spread_and_its_leaders_are_level() -> None:
    snapshot = cluster([[1, 3, 5]] * 6)
    plan = made(snapshot)
    hosts, leads = counts(after(snapshot, plan))
    assert hosts == dict.fromkeys(range(1, 7), 3)
    assert leads == dict.fromkeys(range(1, 7), 1)
    assert plan.summary.replica_moves == 9
    assert {c.topic for c in plan.proposals} == {"new"}
    assert plan.actions[0].reason.startswith("placement least has new-")
    assert len(order_of(plan).tasks) == len(plan.proposals)


@pytest.mark.parametrize("kind", ["least", "least_rate", "below_mean_random", "rotate_within"])
def test_a_second_time_nothing_moves(kind: str) -> None:
    snapshot = cluster([[1, 3, 5], [2, 3, 6], [1, 4, 5], [2, 4, 6]])
    assert not made(after(snapshot, made(snapshot, kind=kind)), kind=kind).proposals


def test_lists_in_another_order_are_no_reason_to_move() -> None:
    snapshot = cluster([[1, 3, 5], [2, 4, 6], [1, 3, 5], [2, 4, 6], [2, 4, 6], [1, 3, 5]])
    assert made(snapshot).summary.replica_moves <= 2


def test_a_draining_broker_gets_nothing_and_racks_hold() -> None:
    snapshot = cluster([[1, 3, 5]] * 4, b2={"state": "draining"})
    done = after(snapshot, made(snapshot))
    assert counts(done)[0][2] == 0
    rack_of = {b: "aabbcc"[b - 1] for b in range(1, 7)}
    for p in range(4):
        assert len({rack_of[int(done.broker_ids[b])] for b in done.replicas[p] if b >= 0}) == 3


def test_what_must_not_move_stays_and_is_told() -> None:
    frozen = made(cluster([[1, 3, 5]] * 4), GOALS + "constraints: {exclude_topics: [new]}\n")
    assert not frozen.proposals
    assert "topic new stays as it is: it is excluded or frozen" in frozen.notes
    full = made(cluster([[1, 3, 5]] * 4), GOALS.replace("[{kind: rack", "[{kind: count_limit, resource: replicas, max: 1}, {kind: rack"))
    assert not full.proposals
    assert any(note.startswith("topic new stays as it is: new-") and "count_limit-replicas" in note for note in full.notes)
    short = made(cluster([[1, 3, 5]] * 4), max_moves=1)
    assert not short.proposals
    assert "topic new stays as it is: a budget is used up" in short.notes


def test_no_partition_gets_more_replicas_or_is_moved_without_a_leader() -> None:
    uneven = made(cluster([[1, 3, 5], [1, 3]]))
    assert not uneven.proposals
    assert "topic new stays as it is: its partitions have unlike numbers of replicas" in uneven.notes
    headless = made(cluster([[1, 3, 5], [2]], b2={"state": "dead"}))
    assert not headless.proposals


def test_an_unknown_topic_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigurationError, match="no topic 'neww' in the snapshot; did you mean 'new'"):
        made(cluster([[1, 3, 5]]), topics=("neww",))
