"""Preferred leaders come back without a byte, and only where they may lead: an election must not break what operators hold hard."""

from __future__ import annotations

from typing import Any

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.policies.preferred import preferred_leaders
from optimizer.report import to_election, to_html, to_json, to_markdown
from optimizer.report.plan_file import read_plan

GOALS = "version: 1\ngoals: [{kind: usage_distribution, resource: network_out}]\n"
AWAY = frozenset(("orders", n) for n in range(4))


def cluster(states: dict[int, str] | None = None, **capacity: float) -> Snapshot:
    """Broker 1 is preferred for all four partitions of a topic, and broker 2 leads them."""
    load = {"network_in": 1.0, "network_out": 10.0}
    brokers = [{"id": b, "rack": None, "state": (states or {}).get(b, "active"), "capacity": capacity} for b in (1, 2, 3)]
    partitions = [
        {"topic": "orders", "partition": n, "replicas": [1, 2, 3], "leader": 2, "leader_load": load, "follower_load": {"network_in": 1.0}}
        for n in range(4)
    ]
    head = {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local"}
    return build_snapshot({**head, "brokers": brokers, "partitions": partitions})


def made(snapshot: Snapshot, goals: str = GOALS, among: frozenset[tuple[str, int]] = AWAY, **options: Any) -> Plan:
    return preferred_leaders(snapshot, parse_goals(goals, "goals.yaml"), PlanOptions(**options), among)


def led(plan: Plan) -> list[tuple[int, int | None, int | None]]:
    return [(c.partition, c.leader_before, c.leader_after) for c in plan.proposals]


def test_every_partition_goes_back_whatever_goals_say_and_nothing_else_happens() -> None:
    plan = made(cluster())
    assert led(plan) == [(n, 2, 1) for n in range(4)]
    assert (plan.summary.replica_moves, plan.summary.bytes_to_move, plan.summary.leadership_changes) == (0, 0, 4)
    assert all(c.replicas_before == c.replicas_after for c in plan.proposals)
    assert plan.actions[0].reason == "broker 1 is the preferred leader of orders-0, and is in sync"
    assert "the plan restores preferred leaders, which copies nothing, and does nothing else" in plan.notes
    assert plan.plan_id == made(cluster()).plan_id
    assert plan.plan_id != made(cluster(), among=frozenset([("orders", 0)])).plan_id


def test_what_is_not_in_sync_or_gone_is_left_alone() -> None:
    assert led(made(cluster(), among=frozenset([("orders", 2), ("orders", 9), ("gone", 0)]))) == [(2, 2, 1)]


def test_no_hard_goal_gets_worse() -> None:
    hard = "version: 1\ngoals: [{kind: capacity, resource: network_out, limit: 1.0}]\n"
    plan = made(cluster(network_out=25.0), hard)
    assert len(plan.proposals) == 2
    assert "2 partitions keep other leaders than the preferred ones: hard goal capacity-network_out would get worse" in plan.notes


def test_brokers_and_topics_that_are_to_be_left_alone_are() -> None:
    assert led(made(cluster({1: "draining"}))) == []
    assert led(made(cluster(), f"{GOALS}constraints: {{freeze_topics: [orders]}}\n")) == []
    assert led(made(cluster(), f"{GOALS}constraints: {{exclude_topics: ['o*']}}\n")) == []
    assert led(made(cluster(), f"{GOALS}constraints: {{exclude_brokers: [1]}}\n")) == []
    assert len(led(made(cluster(), max_partitions=3))) == 3


def test_it_is_a_plan_like_any_other_in_every_form() -> None:
    plan = made(cluster())
    assert '"topic":"orders","partition":3' in to_election(plan).replace(" ", "")
    assert "orders-0" in to_markdown(plan)
    assert "orders-0" in to_html(plan)
    assert read_plan(to_json(plan).encode(), "plan").plan_id == plan.plan_id
