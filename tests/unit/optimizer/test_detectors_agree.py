"""A detector goes along with plans that bring down what it sees, and sees what a plan sees."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from cluster_model.build import build_snapshot
from goals.document import parse_goals
from optimizer.detectors import agrees, detect, policy_of
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.oracle.clusters import case_of
from tests.unit.optimizer.looks import cluster, goals


@pytest.mark.parametrize(
    ("accept", "loads", "expected"),
    [
        ("both", [130, 70, 100], True), ("both", [150, 50, 100], False), ("both", [160, 40, 100], False),
        ("detector", [160, 40, 100], False), ("score", [160, 40, 100], True),
    ],
)  # fmt: skip
def test_a_detector_agrees_with_what_brings_it_down(accept: str, loads: list[float], expected: bool) -> None:
    policy = goals("{kind: goal_band}", accept=accept)
    before = detect(policy, cluster({"network_in": [150, 50, 100]}), policy)
    after = detect(policy, cluster({"network_in": loads}), policy)
    assert agrees(policy_of(policy), before, after) is expected


def test_a_detector_does_not_hold_up_repairs() -> None:
    """The two that are left get more each when the dead one's replicas come to them."""
    policy = goals("{kind: count_spread}")
    before = detect(policy, cluster({"disk": [1.0] * 4}, states={"b1": "dead"}), policy)
    moved = build_snapshot(
        {"version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
         "brokers": [{"id": 1, "state": "dead"}, {"id": 2}, {"id": 3}, {"id": 4}],
         "partitions": [{"topic": "t", "partition": n, "replicas": [b], "leader": b} for n, b in enumerate((2, 2, 2, 3))]},
        "cluster.json",
    )  # fmt: skip
    after = detect(policy, moved, policy)
    assert (before.unrepaired, after.unrepaired, after.burden > before.burden) == (1, 0, True)
    assert agrees(policy_of(policy), before, after)


def test_a_detector_that_does_not_fire_is_content_while_nothing_gets_over_its_line() -> None:
    policy = goals("{kind: goal_band}")
    before = detect(policy, cluster({"network_in": [101, 99, 100]}), policy)
    assert agrees(policy_of(policy), before, detect(policy, cluster({"network_in": [102, 98, 100]}), policy))
    assert not agrees(policy_of(policy), before, detect(policy, cluster({"network_in": [120, 80, 100]}), policy))


def test_between_start_and_stop_the_worst_must_come_down() -> None:
    policy = goals("{kind: cv, hysteresis: {start: 0.5, stop: 0.1}}")
    memory = detect(policy, cluster({"network_in": [9, 1]}), policy).memory
    before = detect(policy, cluster({"network_in": [7, 3]}, moment=1), policy, memory)
    assert before.fired
    assert agrees(policy_of(policy), before, detect(policy, cluster({"network_in": [6, 4]}, moment=1), policy, memory))
    assert not agrees(policy_of(policy), before, detect(policy, cluster({"network_in": [7, 3]}, moment=1), policy, memory))


@pytest.mark.parametrize("seed", range(20))
def test_goal_band_and_a_plan_see_the_same_violations_in_any_cluster(seed: int) -> None:
    case = case_of(seed, most_brokers=10, per_broker=10)
    snapshot = build_snapshot(case.snapshot)
    wanted = parse_goals(json.dumps({**case.goals, "policy": {}, "constraints": {}}), "goals.yaml")
    found = Counter(f.subject for f in detect(wanted, snapshot, wanted).findings)
    states = {g.name: g.before for g in plan(snapshot, wanted, PlanOptions(max_moves=0)).goals}
    assert found == {name: state.violations for name, state in states.items() if state is not None and state.violations}
