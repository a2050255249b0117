"""Brokers that only a swap brings into range: each swap lowers the potential, and the state is what its placement says."""

from __future__ import annotations

import numpy as np
import pytest

from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.problem import MOVABLE, Problem
from optimizer.search.balance import balance
from optimizer.search.commit import build_state
from optimizer.search.parameters import ROUNDS_OF_BALANCE
from optimizer.search.standing import count_low
from optimizer.search.state import COST, State
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.actions import Trial, partition, usage


def large_for_large() -> Trial:
    """Broker 1 has 50 in two partitions of 25, broker 2 has 30 in two of 15: one for the other makes 40 each; a move makes 25 and 55."""
    rows = [partition([1], network_in=25.0) for _ in range(2)] + [partition([2], network_in=15.0) for _ in range(2)]
    return Trial([1, 2], rows, usage(bound=0.1))


def swaps(problem: Problem, state: State) -> None:
    balance(problem, state, 0, ROUNDS_OF_BALANCE, np.zeros(len(problem.goal), np.int64), True)


def test_a_large_replica_goes_for_a_smaller_one() -> None:
    made = large_for_large()
    swaps(made.compiled.problem, made.state)
    assert made.state.load[:, 0].tolist() == [40.0, 40.0]


def test_what_may_not_move_stays() -> None:
    made = large_for_large()
    fixed = made.compiled.problem.partition.copy()
    fixed[:2, MOVABLE] = 0
    swaps(made.compiled.problem._replace(partition=fixed), made.state)
    assert made.state.load[:, 0].tolist() == [50.0, 30.0]


@pytest.mark.parametrize("seed", range(4))
def test_swaps_lower_the_potential_and_are_what_they_say(seed: int) -> None:
    snapshot = cluster(20, 1_000, "b", seed, "heavy")
    compiled = compile_problem(snapshot, parse_goals(goals_text("heavy", 0.10), "test"), PlanOptions())
    state = build_state(compiled.problem, compiled.replicas, compiled.lead)
    before, low = state.score[:, COST].sum(), count_low(compiled.problem, state)
    swaps(compiled.problem, state)
    assert state.score[:, COST].sum() < before
    assert count_low(compiled.problem, state) < low
    again = build_state(compiled.problem, state.replicas, state.lead)
    assert np.array_equal(again.load, state.load)
    assert np.array_equal(again.score, state.score)
