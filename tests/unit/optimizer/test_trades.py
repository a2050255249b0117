"""Where what may not move leaves the others less than the middle of their bands, swaps bring the last brokers in, not rounds of balance.

An operator would wait several times as long for the plan, and copy a fifth more, if brokers at the ends of their bands were balanced
against each other for as long as that finds anything.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clusters import cluster
from benchmarks.planner import goals_text
from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.search.balance import balance
from optimizer.search.commit import build_state
from optimizer.search.conflicts import Reach
from optimizer.search.rounds import CALM_TURNS, is_calm
from optimizer.search.standing import count_low
from optimizer.search.trades import trade_freely

POTENTIAL = PlanOptions(acceptance="potential")


def test_swaps_on_a_target_bring_brokers_into_band_that_balance_leaves_out() -> None:
    snapshot = cluster(60, 2_400, "b", 2, "excluded")
    compiled = compile_problem(snapshot, parse_goals(goals_text("excluded", 0.10), "test"), POTENTIAL)
    target = build_state(compiled.problem, compiled.replicas, compiled.lead)
    problem = Reach(compiled.problem, compiled.replicas, compiled.lead).at(target)
    assert is_calm(compiled, problem)
    balance(problem, target, 0, CALM_TURNS, np.ones(len(compiled.goals), np.int64), True)
    left, hosts = count_low(problem, target), target.hosts.copy()
    assert left > 0
    assert trade_freely(problem, target, 0) > 0
    assert count_low(problem, target) < left
    assert (target.hosts == hosts).all()


# 1.55 and 2.55 times the bound; 1.73 and 2.62 without swaps, 1.57 and 2.62 with as many rounds of balance before them as elsewhere.
@pytest.mark.parametrize(("variant", "seed", "most"), [("excluded", 2, 1.65), ("everything", 10, 2.59)])
def test_swaps_take_the_place_of_most_rounds_of_balance(variant: str, seed: int, most: float) -> None:
    snapshot = cluster(60, 2_400, "b", seed, variant)
    made = plan(snapshot, parse_goals(goals_text(variant, 0.10), "test"), POTENTIAL)
    assert made.summary.replica_moves <= most * made.lower_bounds.replica_moves
