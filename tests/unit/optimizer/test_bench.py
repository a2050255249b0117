"""What a bench knows of brokers: a partition of a dead one that is forgotten keeps its old rules in the next plan."""

from __future__ import annotations

import numpy as np

from benchmarks.clusters import cluster
from benchmarks.planner import goals_text
from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.problem import HIGH, KIND, LIMIT, LOW, STATE, Compiled
from optimizer.search.bench import Bench
from optimizer.search.standing import count_low


def skewed() -> Compiled:
    return compile_problem(cluster(10, 1_000, "b", 0), parse_goals(goals_text("even", 0.10), "test"), PlanOptions())


def test_partitions_of_a_broker_are_found_wherever_a_search_left_them() -> None:
    compiled = skewed()
    bench = Bench(compiled.problem, compiled.replicas, compiled.lead)
    away = compiled.replicas.copy()
    there = np.flatnonzero((away == 3).any(axis=1))
    free = next(b for b in range(10) if b not in away[there[0]])
    away[there[0]] = np.where(away[there[0]] == 3, free, away[there[0]])
    bench.at(compiled.problem, away, compiled.lead)
    found = bench.hosted_by(np.arange(10) == 3, compiled.replicas)
    assert set(there.tolist()) <= set(found.tolist())
    assert len(bench.hosted_by(np.zeros(10, np.bool_), compiled.replicas)) == 0


def test_brokers_out_of_some_goal_are_counted_by_score_and_band() -> None:
    compiled = skewed()
    problem, state = compiled.problem, Bench(compiled.problem, compiled.replicas, compiled.lead).begin
    linear = problem.goal[:, KIND] <= LIMIT
    expected = sum((state.score[b, : len(linear)] < 1.0).any() for b in range(10) if problem.broker[b, STATE] == 0)
    assert count_low(problem, state) == expected > 0
    reached = problem.table.copy()
    reached[:, linear, HIGH], reached[:, linear, LOW] = np.inf, -np.inf  # hinges that nobody is beyond
    assert count_low(problem._replace(table=reached), state) == 0
