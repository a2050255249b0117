"""Clusters with partitions as large as a band: no broker stays outside for want of swaps, and a second plan is empty."""

from __future__ import annotations

import pytest

from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.clusters.goals import goals_text, is_unexplained
from tests.clusters.synthetic import cluster

GOALS = parse_goals(goals_text("heavy", 0.10), "test")
POTENTIAL = PlanOptions(acceptance="potential")


def heavy(brokers: int, replicas: int, scenario: str, seed: int) -> Snapshot:
    return cluster(brokers, replicas, scenario, seed, "heavy")  # type: ignore[arg-type]


def after(snapshot: Snapshot, made: Plan) -> Snapshot:
    """The cluster once the plan is carried out."""
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for change in made.proposals:
        row = snapshot.row_of_partition(change.topic, change.partition)
        replicas[row, : len(change.replicas_after)] = [snapshot.row_of_broker[b] for b in change.replicas_after]
        leader[row] = snapshot.row_of_broker[change.leader_after] if change.leader_after is not None else -1
    return snapshot.with_placement(replicas, leader)


def unproven(made: Plan) -> list[int]:
    return [b.id for b in made.brokers if b.violates and is_unexplained(b)]


@pytest.mark.parametrize(("brokers", "replicas", "scenario", "seed"), [(60, 16_000, "a", 1), (60, 16_000, "b", 1), (100, 25_000, "b", 0)])
def test_large_partitions_keep_only_those_brokers_outside_that_must_be(
    brokers: int, replicas: int, scenario: str, seed: int
) -> None:
    made = plan(heavy(brokers, replicas, scenario, seed), GOALS, POTENTIAL)
    assert len(unproven(made)) <= 1
    assert made.hard_violations_left == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_the_result_is_at_rest(seed: int) -> None:
    snapshot = heavy(60, 16_000, "a", seed)
    made = plan(snapshot, GOALS, POTENTIAL)
    assert made.actions
    assert list(plan(after(snapshot, made), GOALS, POTENTIAL).actions) == []
