"""Repairs where hard limits leave no broker with room: the plan makes room first, and never exceeds a limit on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cluster_model.snapshot import BrokerState
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.actions import Document, Trial, partition

DISK = {"kind": "capacity", "resource": "disk", "limit": 0.8, "hard": True}
RACKS = {"kind": "rack_aware", "hard": True}


def trial_of(brokers: dict[int, tuple[str, list[float]]], *goals: Document, **states: str) -> Trial:
    """Brokers in racks, with partitions of one replica of these sizes; each has a disk of 100."""
    rows = [{"id": b, "rack": rack, "capacity": {"disk": 100.0}} for b, (rack, _) in brokers.items()]
    for row in rows:
        row |= {"state": states[f"b{row['id']}"]} if f"b{row['id']}" in states else {}
    parts = [partition([b], topic=f"t{b}", disk=size) for b, (_, sizes) in brokers.items() for size in sizes]
    return Trial(rows, parts, *goals)


@pytest.mark.parametrize("state", ["draining", "dead"])
def test_room_is_made_for_what_has_to_leave_a_broker(state: str) -> None:
    """30 fits nowhere below 80, until 10 goes from one of two brokers to the other."""
    alone = trial_of({1: ("a", [10.0] * 6), 2: ("a", [10.0] * 6), 3: ("a", [10.0] * 5), 4: ("a", [])}, DISK, b4=state)
    rows = [*alone.document["partitions"], partition([3, 4], topic="u", disk=30.0)]
    trial = Trial(alone.document["brokers"], rows, *alone.goals["goals"])
    made = plan(trial.snapshot, trial.parsed)
    after = {b.id: b.after["disk"] for b in made.brokers}
    assert after[4] == 0.0
    assert max(after.values()) <= 80.0
    assert made.summary.replica_moves == 2


def test_what_does_not_fit_at_all_stays_and_the_rest_leaves() -> None:
    trial = trial_of({1: ("a", [10.0] * 7), 2: ("a", [10.0] * 7), 3: ("a", [30.0, 5.0, 5.0])}, DISK, b3="draining")
    made = plan(trial.snapshot, trial.parsed)
    after = {b.id: b.after["disk"] for b in made.brokers}
    assert after[3] == 30.0
    assert max(after.values()) <= 80.0
    assert made.cannot_be_emptied == (3,)


def test_room_is_made_for_what_has_to_leave_a_rack() -> None:
    """Both replicas of a partition are in rack a, and brokers of rack b have no room for one of 30 as they are."""
    trial = trial_of({1: ("a", [10.0]), 2: ("a", [10.0]), 3: ("b", [10.0] * 6), 4: ("b", [10.0] * 6)}, RACKS, DISK)
    brokers, goals = trial.document["brokers"], trial.goals["goals"]
    crowded = Trial(brokers, [*trial.document["partitions"], partition([1, 2], topic="u", disk=30.0)], *goals)
    made = plan(crowded.snapshot, crowded.parsed)
    assert next(g for g in made.goals if g.name == "rack_aware").status == "satisfied"
    assert max(b.after["disk"] for b in made.brokers) <= 80.0


@pytest.mark.parametrize("state", [BrokerState.DRAINING, BrokerState.DEAD])
@pytest.mark.parametrize("scenario", ["c", "c5"])
@pytest.mark.parametrize("seed", range(3))
def test_hard_limits_keep_no_more_on_a_broker_that_leaves_than_soft_ones(seed: int, scenario: str, state: BrokerState) -> None:
    left = {}
    for variant in ("limits", "limits-hard"):
        snapshot = cluster(20, 400, "c" if scenario == "c" else "c5", seed, variant)
        gone = snapshot.broker_states == BrokerState.DRAINING
        snapshot = replace(snapshot, broker_states=np.where(gone, state, snapshot.broker_states).astype(np.int8))
        made = plan(snapshot, parse_goals(goals_text(variant, 0.10), "test"))
        left[variant] = sum(b.after["replicas"] for b in made.brokers if b.state != "active")
        assert made.hard_violations_left == 0
    assert left["limits-hard"] <= left["limits"]


def test_a_leader_hands_over_first_where_room_for_both_is_more_than_one_action() -> None:
    """One partition sends half of a broker's mean: its heir gives leaderships away, and its new host replicas, more than eight in all."""
    made = plan(cluster(60, 6_000, "c", 21, "limits-hard"), parse_goals(goals_text("limits-hard", 0.10), "test"))
    assert sum(b.after["replicas"] for b in made.brokers if b.state == "draining") == 0.0
    assert made.hard_violations_left == 0


@pytest.mark.parametrize("seed", range(8))
def test_a_budget_that_is_enough_for_the_whole_plan_empties_as_much(seed: int) -> None:
    snapshot, goals = cluster(20, 2_000, "c", seed, "limits-hard"), parse_goals(goals_text("limits-hard", 0.10), "test")
    whole = plan(snapshot, goals)
    made = plan(snapshot, goals, PlanOptions(max_moves=whole.summary.replica_moves))
    left, left_then = (sum(b.after["replicas"] for b in each.brokers if b.state == "draining") for each in (whole, made))
    assert left_then <= left
