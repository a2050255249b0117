"""Random steps of a problem that is large enough for several passes."""

from __future__ import annotations

import math

import numpy as np

from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.search.sideways import sideways
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster

MOVED = 300


def test_passes_go_on_as_long_as_one_saves_enough_of_what_all_moves_cost() -> None:
    """Beside the moves of a whole round, what the last few save is not worth another pass."""
    compiled = compile_problem(cluster(60, 24_000, "d", 0), parse_goals(goals_text("even", 0.10), "test"), PlanOptions())
    problem, home, random = compiled.problem, compiled.replicas, np.random.default_rng(0)
    rows = random.choice(len(home), MOVED, replace=False)
    lists = home.copy()
    for p in rows:
        lists[p, 0] = random.choice(np.setdiff1d(np.arange(60), home[p]))
    own = float(problem.cost[rows].sum())
    many, one = (sideways(problem, build_state(problem, lists, compiled.lead), home, rows, paid, 0) for paid in (own, math.inf))
    assert 0.0 < one < many
