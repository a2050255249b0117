"""A budget that is enough for hard goals alone is enough for them beside soft goals, too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.best_try import after_plan
from optimizer.compile import compile_problem
from optimizer.hard_first import hard_goals_alone
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.prefixes import undone_of
from optimizer.problem import COLUMN, HARD, KIND, TOPIC, TOPIC_ROW
from tests.clusters.synthetic import HEADROOM, cluster

LIMITS = [{"kind": "capacity", "resource": x, "limit": 1.15 / HEADROOM} for x in ("network_in", "disk")]
HARD_GOALS: list[Mapping[str, object]] = [{"kind": "rack_aware"}, *LIMITS]
SOFT = ("network_out", "replicas", "leaders", "disk")
SOFT_GOALS: list[Mapping[str, object]] = [{"kind": "usage_distribution", "resource": x} for x in SOFT]


def goals_of(*goals: Mapping[str, object]) -> GoalSet:
    return parse_goals(json.dumps({"version": 1, "goals": goals}), "test")


def hard_left(snapshot: Snapshot, made: Plan) -> tuple[float, ...]:
    """What is undone of repairs and hard goals after the plan."""
    compiled = compile_problem(snapshot, goals_of(*HARD_GOALS), PlanOptions())
    return undone_of(compiled, after_plan(snapshot, compiled, made))[:3]


@pytest.mark.parametrize("limited", ["max_moves", "max_bytes"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_soft_goals_take_nothing_from_hard_ones(seed: int, limited: str) -> None:
    snapshot = cluster(8, 240, "b", seed)
    alone = plan(snapshot, goals_of(*HARD_GOALS), PlanOptions())
    needed = alone.summary.replica_moves if limited == "max_moves" else alone.summary.bytes_to_move
    both = plan(snapshot, goals_of(*HARD_GOALS, *SOFT_GOALS), replace(PlanOptions(), **{limited: needed}))  # type: ignore[arg-type]
    assert hard_left(snapshot, both) <= hard_left(snapshot, alone)


def test_hard_goals_alone_score_as_before() -> None:
    """Rows of goals, topics and racks still belong together when soft goals between them are gone."""
    soft_topics, hard_topics = ({"kind": "topic_distribution", "resource": x, "hard": x == "leaders"} for x in ("replicas", "leaders"))
    goals = goals_of(soft_topics, SOFT_GOALS[0], LIMITS[0], {"kind": "rack_aware"}, hard_topics, *SOFT_GOALS[1:], LIMITS[1])
    snapshot = cluster(8, 240, "b", 1)
    compiled = compile_problem(snapshot, goals, PlanOptions())
    alone = hard_goals_alone(compiled)
    hard = compiled.problem.goal[:, HARD] == 1
    assert [goal.name for goal in alone.goals] == [goal.name for goal, kept in zip(compiled.goals, hard, strict=True) if kept]
    before, after = (build_state(one.problem, one.replicas, one.lead).score[:, :-1] for one in (compiled, alone))
    assert np.array_equal(before[:, hard], after)
    by_topic = alone.problem.goal[alone.problem.topic_goal[:, TOPIC_ROW]]
    assert (by_topic[:, KIND] == TOPIC).all()
    assert by_topic[:, COLUMN].tolist() == [0]


def test_a_request_to_stop_is_never_lost() -> None:
    """It was where it came while hard goals alone were looked at, and no list came after that one."""
    snapshot = cluster(12, 2_400, "b", 1)
    for last in range(1, 200):
        told: list[int] = []

        def watch(low: int, told: list[int] = told, last: int = last) -> bool:
            told.append(low)
            return len(told) < last

        made = plan(snapshot, goals_of(*HARD_GOALS, *SOFT_GOALS), PlanOptions(max_moves=20), watch)
        assert made.stopped == (len(told) >= last)
        if not made.stopped:
            break
    assert not made.stopped
