"""What a states knows of brokers: a partition of a dead one that is forgotten keeps its old rules in the next plan."""

from __future__ import annotations

import numpy as np

from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.placement.restore import follow
from optimizer.placement.standing import count_low
from optimizer.placement.states import States
from optimizer.placement.topic_counts import all_marked, mark_topics
from optimizer.problem import HIGH, KIND, LIMIT, LOW, STATE, Compiled
from optimizer.search.topics import spread_topics
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


def skewed(variant: str = "even") -> Compiled:
    return compile_problem(cluster(10, 1_000, "b", 0, variant), parse_goals(goals_text(variant, 0.10), "test"), PlanOptions())


def test_partitions_of_a_broker_are_found_wherever_a_search_left_them() -> None:
    compiled = skewed()
    states = States(compiled.problem, compiled.replicas, compiled.lead)
    away = compiled.replicas.copy()
    there = np.flatnonzero((away == 3).any(axis=1))
    free = next(b for b in range(10) if b not in away[there[0]])
    away[there[0]] = np.where(away[there[0]] == 3, free, away[there[0]])
    states.at(compiled.problem, away, compiled.lead)
    found = states.hosted_by(np.arange(10) == 3, compiled.replicas)
    assert set(there.tolist()) <= set(found.tolist())
    assert len(states.hosted_by(np.zeros(10, np.bool_), compiled.replicas)) == 0


def test_brokers_out_of_some_goal_are_counted_by_score_and_band() -> None:
    compiled = skewed()
    problem, state = compiled.problem, States(compiled.problem, compiled.replicas, compiled.lead).current
    linear = problem.goal[:, KIND] <= LIMIT
    expected = sum((state.score[b, : len(linear)] < 1.0).any() for b in range(10) if problem.broker[b, STATE] == 0)
    assert count_low(problem, state) == expected > 0
    reached = problem.table.copy()
    reached[:, linear, HIGH], reached[:, linear, LOW] = np.inf, -np.inf  # hinges that no broker is beyond
    assert count_low(problem._replace(table=reached), state) == 0


def test_topics_outside_their_range_are_known_wherever_a_bench_stands() -> None:
    """A topic that is forgotten is left as it is, with its replicas on one broker."""
    compiled = skewed("topics")
    problem = compiled.problem
    states = States(problem, compiled.replicas, compiled.lead)
    before = states.topics_out(problem).copy()
    assert before.sum() > 0
    target = build_state(problem, compiled.replicas, compiled.lead)
    spread_topics(problem, target, 0, False, before)
    states.at(problem, target.replicas.copy(), target.lead.copy())
    expected = all_marked(problem)
    mark_topics(problem, states.current, np.arange(expected.shape[1]), expected)
    assert (states.topics_out(problem) == expected).all()
    assert expected.sum() < before.sum()


def test_topics_without_a_mark_are_looked_at_once_they_changed() -> None:
    compiled = skewed("topics")
    problem = compiled.problem
    marks = States(problem, compiled.replicas, compiled.lead).topics_out(problem)
    found, other = (build_state(problem, compiled.replicas, compiled.lead) for _ in range(2))
    changes = spread_topics(problem, found, 0, True, marks)
    assert changes == spread_topics(problem, other, 0, True, all_marked(problem)) > 0
    assert (found.replicas == other.replicas).all()
    assert (found.lead == other.lead).all()
    level, none = build_state(problem, found.replicas, found.lead), np.zeros_like(marks)
    assert spread_topics(problem, level, 0, True, none) == 0
    moved = np.flatnonzero((found.replicas != compiled.replicas).any(axis=1))
    follow(problem, level, build_state(problem, compiled.replicas, compiled.lead), moved)
    assert spread_topics(problem, level, 0, True, none) > 0
