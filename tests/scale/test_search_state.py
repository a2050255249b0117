"""Little changes in a large cluster: the plan from the state of the last one is the plan from scratch, whatever interrupted that one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cluster_model.snapshot import BrokerState, Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.report import to_json
from optimizer.search_state import SearchState

GOALS = json.dumps(
    {"version": 1, "goals": [{"kind": "rack_aware", "hard": True}]
     + [{"kind": "usage_distribution", "resource": x} for x in ("network_in", "disk", "replicas", "leaders")]}
)  # fmt: skip
TOPICS = [{"kind": "topic_distribution", "resource": x} for x in ("replicas", "leaders")]
BY_TOPIC = json.dumps({"version": 1, "goals": json.loads(GOALS)["goals"] + TOPICS})


def text_of(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, state: SearchState | None) -> str:
    text: str = to_json(plan(snapshot, goals, options, state=state))
    return text


def large(seed: int, brokers: int = 60, partitions: int = 4_000) -> Snapshot:
    """Large enough that lists and states are mended, not made again."""
    r = np.random.default_rng(seed)
    rack = np.arange(brokers) % 5
    first = r.integers(0, brokers, partitions)
    replicas = np.stack([first, (first + 1 + 5 * r.integers(0, 6, partitions)) % brokers, (first + 2) % brokers], axis=1).astype(np.int32)
    load = r.lognormal(0.0, 1.0, partitions)
    return Snapshot(
        cluster_id="large", taken_at="2026-11-20T12:00:00Z", storage="local", broker_ids=np.arange(brokers, dtype=np.int32),
        broker_states=np.zeros(brokers, np.int8), racks=tuple(f"r{x}" for x in rack), capacity={}, topics=tuple("abcdefgh"),
        partition_topic=(np.arange(partitions) * 8 // partitions).astype(np.int32),
        partition_number=np.arange(partitions, dtype=np.int32),
        replicas=replicas, leader=replicas[:, 0].copy(), leader_load={"network_in": load * 1e6, "disk": load * 1e9},
        follower_load={}, has_follower_load=np.zeros(partitions, np.bool_),
    )  # fmt: skip


def heated(snapshot: Snapshot, r: np.random.Generator, most: int = 6) -> Snapshot:
    rows = r.choice(snapshot.partition_count, int(r.integers(1, most)), replace=False)
    loads = {name: values.copy() for name, values in snapshot.leader_load.items()}
    for values in loads.values():
        values[rows] *= 30.0
    return replace(snapshot, leader_load=loads)


def moved(snapshot: Snapshot, r: np.random.Generator) -> Snapshot:
    """Some partitions elsewhere, some led by another."""
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for p in r.choice(snapshot.partition_count, 5, replace=False).tolist():
        free = np.setdiff1d(np.arange(snapshot.broker_count), replicas[p])
        replicas[p, 0] = r.choice(free)
        leader[p] = replicas[p, int(r.integers(0, 3))]
    for p in r.choice(snapshot.partition_count, 40, replace=False).tolist():
        leader[p] = replicas[p, int(r.integers(0, 3))]
    return snapshot.with_placement(replicas, leader)


def without(snapshot: Snapshot, broker: int) -> Snapshot:
    states = snapshot.broker_states.copy()
    states[broker] = BrokerState.DEAD
    return replace(snapshot, broker_states=states)


def measured(snapshot: Snapshot, r: np.random.Generator) -> Snapshot:
    """Every load a little other."""
    loads = {name: values * r.normal(1.0, 0.02, len(values)) for name, values in snapshot.leader_load.items()}
    return replace(snapshot, leader_load=loads)


def levelled(goals: str) -> Snapshot:
    """A large cluster that a plan has brought into range."""
    snapshot = large(1)
    made = plan(snapshot, parse_goals(goals, "goals"))
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for change in made.proposals:
        replicas[change.partition] = change.replicas_after
        leader[change.partition] = -1 if change.leader_after is None else change.leader_after
    return snapshot.with_placement(replicas, leader)


@pytest.fixture(scope="module")
def level() -> Snapshot:
    return levelled(GOALS)


@pytest.mark.parametrize(("text", "acceptance"), [(GOALS, "score"), (GOALS, "potential"), (BY_TOPIC, "score")])
def test_where_little_changes_in_a_large_cluster_the_plan_is_the_same(text: str, acceptance: Any) -> None:
    level = levelled(text)
    goals, state, r = parse_goals(text, "goals"), SearchState(), np.random.default_rng(5)
    options = PlanOptions(acceptance=acceptance)
    plan(level, goals, options, state=state)
    now = level
    acted = 0
    for turn in range(14):
        now = heated(now, r) if turn % 3 == 0 else moved(now, r) if turn % 3 == 1 else level
        if turn in (4, 9):
            now = without(now, 7 + turn)
        if turn in (5, 9, 12):
            now = measured(now, r)
        afresh = text_of(replace(now), goals, options, None)
        assert text_of(replace(now), goals, options, state) == afresh
        acted += '"seq":1,' in afresh
    assert acted >= 5


class Stopped(Exception):
    pass


@pytest.mark.parametrize("kind", [Stopped, KeyboardInterrupt])
def test_after_an_interrupted_plan_the_next_is_right(level: Snapshot, kind: type[BaseException]) -> None:
    goals, state, r = parse_goals(GOALS, "goals"), SearchState(), np.random.default_rng(6)
    plan(level, goals, state=state)

    def interrupt(low: int) -> bool:
        raise kind

    hot = heated(level, r, 40)
    with pytest.raises(kind):
        plan(hot, goals, watch=interrupt, state=state)
    assert text_of(replace(hot), goals, PlanOptions(), state) == text_of(replace(hot), goals, PlanOptions(), None)


def test_a_plan_that_was_stopped_leaves_a_state_that_serves(level: Snapshot) -> None:
    goals, state, r = parse_goals(GOALS, "goals"), SearchState(), np.random.default_rng(7)
    hot = heated(level, r, 60)
    plan(level, goals, state=state)
    plan(hot, goals, watch=lambda low: False, state=state)
    assert text_of(replace(hot), goals, PlanOptions(), state) == text_of(replace(hot), goals, PlanOptions(), None)


def test_plans_already_made_do_not_change_when_the_state_goes_on(level: Snapshot) -> None:
    """The service shows and carries out a plan while it makes the next."""
    goals, state, r = parse_goals(GOALS, "goals"), SearchState(), np.random.default_rng(8)
    hot = heated(level, r, 40)
    plan(level, goals, state=state)
    made = plan(hot, goals, state=state)
    for _ in range(3):
        plan(moved(heated(level, r, 40), r), goals, state=state)
    afresh = plan(replace(hot), goals)
    assert to_json(made) == to_json(afresh)
    assert tuple(made.frontier) == tuple(afresh.frontier)


def test_the_state_of_one_cluster_serves_another_and_its_memory_stays_the_same(level: Snapshot) -> None:
    goals, state = parse_goals(GOALS, "goals"), SearchState()
    plan(level, goals, state=state)
    plan(heated(level, np.random.default_rng(1)), goals, state=state)
    first = state.nbytes
    for seed in (2, 3):
        other = replace(large(seed), cluster_id="other")
        assert text_of(replace(other), goals, PlanOptions(), state) == text_of(other, goals, PlanOptions(), None)
    plan(level, goals, state=state)
    assert 0 < state.nbytes <= first
