"""Brokers that only a swap brings into range: each swap lowers the potential, and the state is what its placement says.

`balance` swaps the most promising replicas of two brokers, `swap_out` looks at all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.parameters import ROUNDS_OF_BALANCE
from optimizer.placement.commit import build_state
from optimizer.placement.standing import count_low
from optimizer.placement.state import COST, State
from optimizer.problem import MOVABLE, Compiled, Problem
from optimizer.search.balance import balance
from optimizer.search.swaps import swap_out
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.actions import Trial, partition, usage

Swaps = Callable[[Problem, State, int], object]


def balanced(problem: Problem, state: State, seed: int) -> None:
    balance(problem, state, seed, ROUNDS_OF_BALANCE, np.zeros(len(problem.goal), np.int64), True)


both_ways = pytest.mark.parametrize("swaps", [balanced, swap_out], ids=["balance", "swap_out"])


def large_for_large() -> Trial:
    """Broker 1 has 50 in two partitions of 25, broker 2 has 30 in two of 15: one for the other makes 40 each; a move makes 25 and 55."""
    rows = [partition([1], network_in=25.0) for _ in range(2)] + [partition([2], network_in=15.0) for _ in range(2)]
    return Trial([1, 2], rows, usage(bound=0.1))


def heavy(seed: int) -> tuple[Compiled, State]:
    compiled = compile_problem(cluster(20, 1_000, "b", seed, "heavy"), parse_goals(goals_text("heavy", 0.10), "test"), PlanOptions())
    return compiled, build_state(compiled.problem, compiled.replicas, compiled.lead)


@both_ways
def test_a_large_replica_goes_for_a_smaller_one(swaps: Swaps) -> None:
    made = large_for_large()
    swaps(made.compiled.problem, made.state, 0)
    assert made.state.load[:, 0].tolist() == [40.0, 40.0]


@both_ways
def test_what_may_not_move_stays(swaps: Swaps) -> None:
    made = large_for_large()
    fixed = made.compiled.problem.partition.copy()
    fixed[:2, MOVABLE] = 0
    swaps(made.compiled.problem._replace(partition=fixed), made.state, 0)
    assert made.state.load[:, 0].tolist() == [50.0, 30.0]


@both_ways
@pytest.mark.parametrize("seed", range(4))
def test_swaps_lower_the_potential_and_are_what_they_say(swaps: Swaps, seed: int) -> None:
    compiled, state = heavy(seed)
    before, low, placed = state.score[:, COST].sum(), count_low(compiled.problem, state), state.replicas.copy()
    swaps(compiled.problem, state, seed)
    assert (state.replicas != placed).any()
    assert state.score[:, COST].sum() < before
    assert count_low(compiled.problem, state) <= low
    again = build_state(compiled.problem, state.replicas, state.lead)
    assert np.array_equal(again.load, state.load)
    assert np.array_equal(again.score, state.score)


@both_ways
def test_the_same_seed_gives_the_same_swaps(swaps: Swaps) -> None:
    ends = []
    for _ in range(2):
        compiled, state = heavy(1)
        swaps(compiled.problem, state, 5)
        ends.append(state.replicas.copy())
    assert np.array_equal(ends[0], ends[1])


def test_swap_out_says_how_many_it_made() -> None:
    made = large_for_large()
    assert swap_out(made.compiled.problem, made.state, 0) == 1
    assert swap_out(made.compiled.problem, made.state, 0) == 0
