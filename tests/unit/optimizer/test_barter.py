"""Clusters with partitions as large as a band: what balances them is one large replica for another, or many small trades."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.clusters import cluster
from benchmarks.measure import is_unexplained
from benchmarks.planner import goals_text
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.problem import MOVABLE, Compiled
from optimizer.search.balance import balance
from optimizer.search.barter import barter
from optimizer.search.commit import build_state
from optimizer.search.ledger import Budget, Log, budget_for, empty_log, written
from optimizer.search.reach import reachable
from optimizer.search.standing import standing_of
from optimizer.search.state import State

GOALS = parse_goals(goals_text("heavy", 0.10), "test")
EVERYONE = np.arange(60)
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
def test_large_partitions_keep_only_those_brokers_out_of_band_that_must_be(
    brokers: int, replicas: int, scenario: str, seed: int
) -> None:
    made = plan(heavy(brokers, replicas, scenario, seed), GOALS, POTENTIAL)
    assert unproven(made) == []
    assert made.hard_violations_left == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_the_result_is_at_rest(seed: int) -> None:
    snapshot = heavy(60, 16_000, "a", seed)
    made = plan(snapshot, GOALS, POTENTIAL)
    assert made.actions
    assert list(plan(after(snapshot, made), GOALS, POTENTIAL).actions) == []


def left_by_balance() -> tuple[Compiled, State, Log, Budget]:
    """Where balancing ends on a cluster with large partitions, with an empty log."""
    compiled = compile_problem(heavy(60, 16_000, "a", 1), GOALS, POTENTIAL)
    state = build_state(compiled.problem, compiled.replicas, compiled.lead)
    problem = reachable(compiled.problem, state)
    balance(problem, state, 0, 400, np.ones(len(compiled.goals), np.int64), True)
    compiled = replace(compiled, problem=problem, replicas=state.replicas.astype(np.int64), lead=state.lead.astype(np.int64))
    return compiled, build_state(problem, compiled.replicas, compiled.lead), empty_log(3, 5_000), budget_for(compiled, POTENTIAL)


def out_of_band(compiled: Compiled, state: State) -> float:
    return float(standing_of(compiled.problem, state).potential.sum())


def test_every_action_is_a_swap_that_brings_what_is_out_of_band_down() -> None:
    compiled, state, log, budget = left_by_balance()
    before = out_of_band(compiled, state)
    swaps = barter(compiled.problem, state, budget, log, EVERYONE, 0, True)
    assert swaps > 0
    assert out_of_band(compiled, state) < before
    done = written(log)
    assert np.diff(done.first).tolist() == [2] * swaps
    assert [(rows >= 0).sum() for rows in done.replicas] == [(compiled.replicas[p] >= 0).sum() for p in done.partition]


def test_what_may_not_move_does_not() -> None:
    compiled, state, log, budget = left_by_balance()
    fixed = compiled.problem._replace(partition=compiled.problem.partition.copy())
    fixed.partition[:, MOVABLE] = 0
    assert barter(fixed, state, budget, log, EVERYONE, 0, True) == 0
    assert (state.replicas == compiled.replicas).all()


def test_a_budget_is_kept() -> None:
    compiled, state, log, _ = left_by_balance()
    budget = budget_for(compiled, PlanOptions(acceptance="potential", max_moves=3))
    barter(compiled.problem, state, budget, log, EVERYONE, 0, True)
    moved = sum(len(set(now) - set(then)) for now, then in zip(state.replicas.tolist(), compiled.replicas.tolist(), strict=True))
    assert 0 < moved <= 3
