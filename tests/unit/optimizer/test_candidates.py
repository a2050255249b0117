"""What a scan keeps, and what it need not weigh: a better move or transfer that is dropped costs an operator bytes."""

from __future__ import annotations

import numpy as np
import pytest

from goals.document import parse_goals
from kernels.compiled import kernel
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.parameters import DUE_ADDED
from optimizer.placement.commit import build_state
from optimizer.placement.state import LED, State
from optimizer.problem import COLUMN, KIND, LIMIT, Problem
from optimizer.search.batch import Room, new_room
from optimizer.search.candidates import gather, keep_best, lacks_replicas
from optimizer.search.leadership import note_cost, promise, promises, survey, transfer_gain
from optimizer.search.vector_cache import fetch, new_cache
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.actions import Trial, partition, usage

MOST = 16


@kernel
def kept_of(keys: np.ndarray, floor: float, kept: np.ndarray, spare: np.ndarray) -> int:
    return keep_best(keys, len(keys), floor, len(kept), kept, spare)


@pytest.mark.parametrize("floor", [0.0, -np.inf])
@pytest.mark.parametrize("seed", range(6))
def test_the_best_are_kept_whatever_their_keys(seed: int, floor: float) -> None:
    r = np.random.default_rng(seed)
    n = int(r.integers(1, 200))
    keys = r.choice([r.normal(size=n), np.exp(r.normal(0, 20, n)), r.integers(-2, 3, n).astype(float), np.full(n, 7.0)])
    keys = np.where(r.random(n) < 0.2, -np.inf, keys)
    kept = np.zeros(MOST, np.int64)
    found = kept_of(keys, floor, kept, np.zeros(n))
    right = np.flatnonzero(keys > floor)
    right = right[np.argsort(-keys[right], kind="stable")][:MOST]  # of equal ones the first
    assert sorted(kept[:found].tolist()) == sorted(right.tolist())


@kernel
def exceeded(problem: Problem, state: State, roles: np.ndarray, led: np.ndarray, v: int, room: Room) -> float:
    """The most by which a transfer from or to broker `v` gains more than is promised of it."""
    cache = new_cache(problem, state, roles)
    n, slots = state.hosts[v], state.replicas.shape[1]
    mine, bounds, costs, slopes = room.factors, room.gains, room.costs, room.slopes
    costs[:] = 0.0
    fetch(problem, state, cache, v)
    survey(problem, state, led, slopes, room.steep)
    promises(problem, state, cache, led, v, True, True, room)
    worst = -np.inf
    note_cost(problem, state, led, v, costs)
    for i in range(n):
        p, s = state.hosted[v, i] // slots, state.hosted[v, i] % slots
        for o in range(slots):
            if state.replicas[p, o] < 0 or o == s or (state.lead[p] != s and state.lead[p] != o):
                continue
            u = state.replicas[p, o]
            note_cost(problem, state, led, u, costs)
            if state.mark[v, i] & LED:
                gain, most = transfer_gain(problem, state, led, p, v, u, costs), promise(cache, led, v, i, u, 1.0, slopes, mine)
            else:
                gain, most = transfer_gain(problem, state, led, p, u, v, costs), promise(cache, led, v, i, u, -1.0, slopes, mine)
            worst = max(worst, gain - most, most - bounds[i] - 1e-6 * abs(bounds[i]))
    return worst


@pytest.mark.parametrize("variant", ["even", "capacities", "topics"])
def test_no_transfer_gains_more_than_it_promises(variant: str) -> None:
    snapshot = cluster(20, 2_000, "b", 3, variant)
    compiled = compile_problem(snapshot, parse_goals(goals_text(variant, 0.05), "test"), PlanOptions())
    problem = compiled.problem
    state = build_state(problem, compiled.replicas, compiled.lead)
    roles = np.array([int(k <= LIMIT and compiled.roles[c] > 0) for k, c in problem.goal[:, [KIND, COLUMN]]], np.int64)
    for v in range(20):
        assert exceeded(problem, state, roles, np.flatnonzero(roles), v, new_room(problem, state)) <= 1e-9


@kernel
def factors_of(problem: Problem, state: State, roles: np.ndarray, watched: np.ndarray, source: int, target: int, room: Room) -> int:
    due = lacks_replicas(problem, state, watched, target)
    return gather(problem, state, new_cache(problem, state, roles), source, due, room.factors)


def preferred(disk_of_second: float, replicas_of_second: int) -> float:
    """How much more a replica of 10 bytes is preferred to one of 100 where it goes to a second broker that holds so much."""
    rows = [partition([1], disk=x, follower={}) for x in [10.0, 100.0] * 10]
    rows += [partition([2], disk=disk_of_second / max(replicas_of_second, 1), follower={}) for _ in range(replicas_of_second)]
    goals = [{**usage(bound=0.1), "resource": x, "name": x} for x in ("disk", "replicas")]
    made = Trial([1, 2], rows, *goals)
    problem, state = made.compiled.problem, made.state
    room, watched = new_room(problem, state), np.arange(len(problem.goal))
    n = factors_of(problem, state, np.ones(len(problem.goal), np.int64), watched, 0, 1, room)
    sizes = problem.size[state.hosted[0, :n] // state.replicas.shape[1]]
    return float(room.factors[:n][sizes == 10.0][0] / room.factors[:n][sizes == 100.0][0])


def test_where_replicas_are_lacking_only_their_bytes_count() -> None:
    """A new broker needs as many moves whatever they carry: 5% more bytes were copied for as many moves."""

    def by_bytes(replicas: int) -> float:
        mean = 1100.0 / (20 + replicas)
        return (DUE_ADDED + 100.0 / mean) / (DUE_ADDED + 10.0 / mean)

    assert preferred(0.0, 0) == pytest.approx(by_bytes(0)), "a new broker lacks replicas as much as load"
    assert preferred(0.0, 4) == pytest.approx(by_bytes(4)), "load is lacking a little more than replicas"
    assert 1.0 < preferred(0.0, 8) < by_bytes(8), "load is lacking far more than replicas"
    assert 1.0 < preferred(200.0, 20) < by_bytes(20), "enough replicas"
