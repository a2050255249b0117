"""A bigger budget leaves no more undone: urgent repairs, crowded racks, hard goals that brokers miss, by how much, and soft ones.

Of the best first part of a list this always holds. A search looks for what is free from its end, so of the whole plan it is shown here.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.best_try import after_plan
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.prefixes import Undone, undone_of
from optimizer.whatif import apply_whatifs
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import Scenario, cluster
from tests.oracle.clusters import Case, cases

Limited = Literal["max_moves", "max_bytes", "max_partitions"]
LIMITED: tuple[Limited, ...] = ("max_moves", "max_bytes", "max_partitions")
UNIT = {"max_moves": 1, "max_bytes": 2 * 10**9, "max_partitions": 1}
TIGHT = json.dumps(
    {"version": 1, "goals": [{"kind": "capacity", "resource": x, "limit": 0.64} for x in ("network_in", "network_out", "disk", "cpu")]}
)

thorough = settings(
    max_examples=25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


def left_undone(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, budget: dict[str, int]) -> Undone:
    made = plan(snapshot, goals, replace(options, **budget))  # type: ignore[arg-type]
    spent = made.summary
    assert spent.replica_moves <= budget.get("max_moves", spent.replica_moves)
    assert spent.bytes_to_move <= budget.get("max_bytes", spent.bytes_to_move)
    assert spent.partitions <= budget.get("max_partitions", spent.partitions)
    compiled = compile_problem(apply_whatifs(snapshot, goals, options), goals, options)
    urgent, crowded, missed, short, soft = undone_of(compiled, after_plan(snapshot, compiled, made))
    return urgent, crowded, missed, round(short, 6), round(soft, 6)


def climb(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, limited: tuple[Limited, ...], steps: list[int]) -> list[Undone]:
    """What ever larger budgets leave undone, and none at the end."""
    every = sorted(set(steps))
    budgets: list[dict[str, int]] = [{name: units * UNIT[name] for name in limited} for units in every]
    return [left_undone(snapshot, goals, options, budget) for budget in budgets]


@thorough
@given(
    case=cases(), limited=st.sets(st.sampled_from(LIMITED), min_size=1), steps=st.lists(st.integers(0, 60), min_size=2, max_size=4)
)
def test_of_clusters_of_all_kinds(case: Case, limited: set[Limited], steps: list[int]) -> None:
    snapshot, goals = build_snapshot(case.snapshot), parse_goals(json.dumps(case.goals), "goals.yaml")
    options = PlanOptions(acceptance=case.acceptance)  # type: ignore[arg-type]
    left = climb(snapshot, goals, options, tuple(sorted(limited)), steps)
    assert left == sorted(left, reverse=True)


@pytest.mark.parametrize("goals", [goals_text("even", 0.1), TIGHT], ids=["bands", "hard limits"])
@thorough
@given(
    scenario=st.sampled_from(["a", "b", "c", "d"]), seed=st.integers(0, 99), limited=st.sampled_from(LIMITED),
    steps=st.lists(st.integers(0, 99), min_size=2, max_size=4),
)
@example(scenario="b", seed=1, limited="max_bytes", steps=[7, 17])
@example(scenario="d", seed=0, limited="max_moves", steps=[2, 3])
def test_of_clusters_that_drifted(goals: str, scenario: Scenario, seed: int, limited: Limited, steps: list[int]) -> None:
    """With 50 MB more was undone than with 20 MB: a search within a budget aims at what the budget is enough for."""
    snapshot, asked = cluster(10, 500, scenario, seed), parse_goals(goals, "goals.yaml")
    unit = 1 if limited != "max_bytes" else max(int(snapshot.leader_load["disk"].mean() // UNIT["max_bytes"]), 1)
    left = climb(snapshot, asked, PlanOptions(), (limited,), [step * unit for step in steps])
    assert left == sorted(left, reverse=True)


@thorough
@given(scenario=st.sampled_from(["a", "b", "d"]), seed=st.integers(0, 99), limited=st.sampled_from(LIMITED[:2]), step=st.integers(0, 99))
@example(scenario="b", seed=0, limited="max_moves", step=20)
def test_enough_partitions_are_no_limit(scenario: Scenario, seed: int, limited: Limited, step: int) -> None:
    """With 40 moves and enough partitions for all of it, 255 of 294 leadership transfers that cost no moves were left out."""
    snapshot, asked = cluster(10, 500, scenario, seed), parse_goals(goals_text("even", 0.1), "goals.yaml")
    budget: dict[str, int] = {limited: step * UNIT[limited] * (10 if limited == "max_bytes" else 1)}
    enough = {**budget, "max_partitions": snapshot.partition_count}
    assert left_undone(snapshot, asked, PlanOptions(), enough) <= left_undone(snapshot, asked, PlanOptions(), budget)


@pytest.mark.parametrize(("size", "scenario", "variant", "seed"), [((30, 1500), "b", "heavy", 1802), ((20, 400), "d", "giants", 3)])
def test_what_a_plan_prints_is_enough_for_it(size: tuple[int, int], scenario: Scenario, variant: str, seed: int) -> None:
    """A plan of 482 moves had 507 replicas elsewhere on its way, and was not possible with a budget of 482."""
    snapshot, asked = cluster(*size, scenario, seed, variant), parse_goals(goals_text(variant, 0.1), "goals.yaml")
    whole = plan(snapshot, asked, PlanOptions())
    budget = {"max_moves": whole.summary.replica_moves, "max_bytes": whole.summary.bytes_to_move}
    assert left_undone(snapshot, asked, PlanOptions(), budget) <= left_undone(snapshot, asked, PlanOptions(), {})
