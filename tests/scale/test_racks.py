"""Crowded racks of a whole cluster: one too many moves for each replica that leaves the wrong broker, and racks with little room."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from goals.document import load_goals, parse_goals
from optimizer.best_try import after_plan
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.placement.standing import broken_goals
from optimizer.placement.state import RACKS
from optimizer.planner import plan
from optimizer.problem import CEILING, COLUMN, FOLLOWING, RACK_OF, Compiled
from optimizer.search import search
from optimizer.search.variants import hard_limits
from tests.clusters.cruise_control import GOALS_FILE, cruise_control_cluster
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import Scenario, cluster


def test_crowded_racks_cost_hardly_a_move_more_where_brokers_have_to_give_anyway() -> None:
    snapshot = cruise_control_cluster(20, 10, 500, 9000)
    result = plan(snapshot, load_goals(GOALS_FILE))
    assert all(goal.status == "satisfied" for goal in result.goals)
    assert result.summary.replica_moves <= 1.035 * result.lower_bounds.replica_moves


def crowded_at_least(compiled: Compiled) -> float:
    """About how few replicas can stay in crowded racks of a cluster of three racks at RF 3. Nothing leaves the smallest rack, which lacks
    partitions; so many others find room in its hard limits, as followers, in parts, and on brokers that share all limits."""
    problem, state = compiled.problem, build_state(compiled.problem, compiled.replicas, compiled.lead)
    rack = problem.broker[:, RACK_OF]
    small = rack == np.argmin(np.bincount(rack))
    lacking = np.flatnonzero(~small[compiled.replicas].any(axis=1))
    goals = np.flatnonzero(hard_limits(problem))
    columns = problem.goal[goals, COLUMN]
    limits = problem.table[small][:, goals, CEILING].sum(axis=0)
    room = np.maximum(limits - state.load[small][:, columns].sum(axis=0), 0.0) / limits
    needs = problem.vector[lacking, FOLLOWING][:, columns].T / limits[:, None]
    return float(2.0 * (len(lacking) + linprog(-np.ones(len(lacking)), A_ub=needs, b_ub=room, bounds=(0, 1)).fun))


@pytest.mark.parametrize(("replicas", "scenario"), [(400, "a"), (400, "c"), (400, "d"), (5_000, "a"), (5_000, "d")])
def test_a_rack_that_cannot_hold_all_holds_as_many_partitions_as_nearly_fit(replicas: int, scenario: Scenario) -> None:
    """Of 5,000 replicas 968 stayed in crowded racks instead of some 180: partitions went there in the order of their names."""
    snapshot, goals = cluster(20, replicas, scenario, 1450, "racks-small"), parse_goals(goals_text("racks-small", 0.1), "test")
    compiled = compile_problem(snapshot, goals, PlanOptions())
    left = float(after_plan(snapshot, compiled, plan(snapshot, goals)).units[RACKS].sum())
    assert left <= 1.25 * crowded_at_least(compiled)


@pytest.mark.parametrize("scenario", ["a", "b", "d"])
def test_so_it_does_in_the_only_attempt_of_a_large_cluster(monkeypatch: pytest.MonkeyPatch, scenario: Scenario) -> None:
    """Of 400 brokers with 210,000 replicas four times as many stayed crowded: the order of actions kept whichever of those placed beyond
    hard limits fitted, until the others went back first."""
    monkeypatch.setattr(search, "MOST_RESTARTED", 0)
    monkeypatch.setattr(search, "MOST_ESCAPED", 0)
    snapshot, goals = cluster(20, 5_000, scenario, 1450, "racks-small"), parse_goals(goals_text("racks-small", 0.1), "test")
    compiled = compile_problem(snapshot, goals, PlanOptions())
    assert search.search(compiled, PlanOptions()).end.units[RACKS].sum() <= 1.25 * crowded_at_least(compiled)


@pytest.mark.parametrize("seed", [0, 1464, 1465])
def test_a_rack_with_little_room_keeps_room_for_its_own_brokers(seed: int) -> None:
    """Its brokers stayed beyond hard limits: what they had to give found no room after crowded racks were mended."""
    snapshot, goals = cluster(60, 6_000, "b", seed, "racks-small"), parse_goals(goals_text("racks-small", 0.1), "test")
    compiled = compile_problem(snapshot, goals, PlanOptions())
    end = after_plan(snapshot, compiled, plan(snapshot, goals))
    assert broken_goals(compiled.problem, end).sum() == 0
