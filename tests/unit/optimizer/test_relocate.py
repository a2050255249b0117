"""What a broker outside its target range gives to another: always the best that is left.

A replica that is not the best costs an operator bytes, or a move more.
"""

from __future__ import annotations

import numpy as np
import pytest

from goals.document import parse_goals
from kernels.compiled import kernel, whole
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.parameters import KEPT, LEAST_GAIN
from optimizer.placement.commit import build_state
from optimizer.placement.feasible import may_host
from optimizer.placement.state import State
from optimizer.problem import KIND, LIMIT, Problem
from optimizer.search.batch import Batch, Room, new_batch, new_room
from optimizer.search.candidates import gather, lacks_replicas, scan
from optimizer.search.relocate import propose_moves, shift_sums, withdraw
from optimizer.search.vector_cache import new_cache
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.actions import Trial, partition

MOST = 40


@kernel
def missed(
    problem: Problem, state: State, roles: np.ndarray, watched: np.ndarray, source: int, target: int, batch: Batch, room: Room
) -> float:
    """By how much, as a share of it, the best replica left at any move is better than the one proposed; -1 for no moves."""
    cache, slots, zero = new_cache(problem, state, roles), state.replicas.shape[1], whole(0)
    batch.centre[0], batch.moves[0] = source, 0
    due = lacks_replicas(problem, state, watched, target)
    propose_moves(problem, state, cache, source, target, batch, zero, room)
    withdraw(problem, state, batch, zero)
    worst = -1.0
    for m in range(batch.moves[0]):
        n = gather(problem, state, cache, source, due, room.factors)
        scan(problem, state, watched, source, target, n, cache.vector[source], room.gains)
        best, chosen = 0.0, 0.0
        for i in range(n):
            entry, gone = state.hosted[source, i], False
            for k in range(m):
                gone = gone or batch.entry[0, k] == entry
            if gone or room.gains[i] <= LEAST_GAIN or not may_host(problem, state, entry // slots, entry % slots, target):
                continue
            key = room.gains[i] * room.factors[i]
            best = max(best, key)
            if entry == batch.entry[0, m]:
                chosen = key
        worst = max(worst, (best - chosen) / best if best > 0.0 else 1.0)
        shift_sums(problem, state, batch.entry[0, m] // slots, batch.entry[0, m] % slots, source, target)
    return worst


@pytest.mark.parametrize("most", [1, MOST])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_replica_that_is_given_is_the_best_of_those_left(seed: int, most: int) -> None:
    snapshot = cluster(20, 900, "b", seed, "even")
    compiled = compile_problem(snapshot, parse_goals(goals_text("even", 0.1), "test"), PlanOptions())
    problem = compiled.problem
    state = build_state(problem, compiled.replicas, compiled.lead)
    assert MOST < state.hosts.max() <= KEPT  # of so few none is left out from the first
    watched = np.flatnonzero(problem.goal[:, KIND] <= LIMIT)
    order = np.argsort(state.hosts, kind="stable").tolist()
    batch, room = new_batch(problem, 20, 100.0), new_room(problem, state)
    batch.most[0] = most
    batch.goal[: len(watched)], batch.goal[-1] = watched, len(watched)
    for source, target in zip(order[:-6:-1], order[:5], strict=True):
        loads = state.load.copy()
        off = missed(problem, state, np.ones(len(problem.goal), np.int64), watched, source, target, batch, room)
        assert batch.moves[0] == 1 if most == 1 else batch.moves[0] > 10
        assert -1.0 < off <= 1e-9
        state.load[:] = loads


def given(patient: int, held: list[float], room: float) -> list[float]:
    """What broker 1, over its limit of 100 with `held`, gives to broker 2, which has `room` for more."""
    brokers = [{"id": b, "capacity": {"network_in": 100.0}} for b in (1, 2)]
    rows = [partition([1], network_in=x) for x in held] + [partition([2], network_in=100.0 - room)]
    made = Trial(brokers, rows, {"kind": "capacity", "resource": "network_in", "limit": 1.0, "hard": True})
    problem, state = made.compiled.problem, made.state
    batch, space = new_batch(problem, 2, 4.0), new_room(problem, state)
    batch.most[0], batch.patient[0], batch.goal[-1] = MOST, patient, 1
    poured(problem, state, batch, space)
    return sorted(held[p] for p in (batch.entry[0, : batch.moves[0]] // state.replicas.shape[1]).tolist())


@kernel
def poured(problem: Problem, state: State, batch: Batch, room: Room) -> None:
    zero, one = whole(0), whole(1)
    propose_moves(problem, state, new_cache(problem, state, np.zeros(1, np.int64)), zero, one, batch, zero, room)


def test_a_small_replica_waits_where_a_large_one_has_no_room() -> None:
    """Another broker may take the large one: one move instead of three."""
    held = [50.0, 10.0, 11.0, 12.0, 60.0]
    assert given(1, held, 30.0) == []
    assert len(given(0, held, 30.0)) > 1
    assert given(1, held, 55.0) == [50.0]
