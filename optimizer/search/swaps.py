"""Swaps of one replica against another between two brokers.

Called by `balance`; judges by the potential alone.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, part, whole
from optimizer.problem import (
    COLUMN,
    HIGH,
    LOW,
    MEAN,
    SCALE,
    SPREAD,
    STRENGTH,
    Problem,
)
from optimizer.search.candidates import LEAST_GAIN, gather, keep_best, scan, take, topic_burden
from optimizer.search.commit import commit
from optimizer.search.feasible import keeps_limits, may_swap
from optimizer.search.potential import cost_at, linear_cost
from optimizer.search.shelf import Shelf
from optimizer.search.state import State

SWAP_KEPT = 32


@part
def swap_with(
    problem: Problem, state: State, shelf: Shelf, watched: np.ndarray, v: int, u: int, factors: np.ndarray, gains: np.ndarray,
    small: np.ndarray, small2: np.ndarray, kept: np.ndarray, spare: np.ndarray, mine: np.ndarray, theirs: np.ndarray,
    given: np.ndarray, got: np.ndarray, row: np.ndarray,
) -> int:  # fmt: skip
    """The best swap between `v` and `u` among their most promising replicas; returns 1 if one was made."""
    slots = state.replicas.shape[1]
    found = shortlist(problem, state, shelf, watched, v, u, factors, gains, kept, spare, small, mine)
    found2 = shortlist(problem, state, shelf, watched, u, v, factors, gains, kept, spare, small2, theirs)
    for i in range(found if len(given) > 0 else 0):
        p = mine[i] // slots
        given[i] = topic_burden(problem, state, p, True, state.lead[p] == mine[i] % slots, v, u)
    for j in range(found2 if len(got) > 0 else 0):
        q = theirs[j] // slots
        got[j] = topic_burden(problem, state, q, True, state.lead[q] == theirs[j] % slots, u, v)
    best_i, best_j = best_swap(problem, state, watched, v, u, found, small, mine, given, found2, small2, theirs, got, gains)
    if best_i < 0:
        return 0
    p, s = mine[best_i] // slots, mine[best_i] % slots
    for o in range(slots):
        row[o] = state.replicas[p, o]
    row[s] = u
    commit(problem, state, p, row, state.lead[p])
    q, t = theirs[best_j] // slots, theirs[best_j] % slots
    for o in range(slots):
        row[o] = state.replicas[q, o]
    row[t] = v
    commit(problem, state, q, row, state.lead[q])
    return 1


@inner
def best_swap(
    problem: Problem, state: State, watched: np.ndarray, v: int, u: int, found: int, small: np.ndarray, mine: np.ndarray,
    given: np.ndarray, found2: int, small2: np.ndarray, theirs: np.ndarray, got: np.ndarray, gains: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Which of the first `found` replicas of `v` and of the first `found2` of `u` best trade places; -1 where none do.

    `mine` and `theirs` are their entries, `small` and `small2` their vectors; `given` and `got` float64 are what topic goals lose by
    each, or nothing where there are none.
    """
    slots, factor = state.replicas.shape[1], small.shape[0] - 1
    best_i, best_j, best_key = whole(-1), whole(-1), 0.0
    for i in range(found):
        p, s = mine[i] // slots, mine[i] % slots
        if not may_swap(problem, state, p, s, u):
            continue
        swap_gains(problem, state, watched, v, u, small, i, found2, small2, gains)
        for j in range(found2):
            gain = gains[j]
            if gain <= LEAST_GAIN:
                continue
            q = theirs[j] // slots
            if len(given) > 0 and problem.topic[p] != problem.topic[q]:
                gain -= given[i] + got[j]
                if gain <= LEAST_GAIN:
                    continue
            key = gain * min(small[factor, i], small2[factor, j])
            if key <= best_key or q == p or not keeps_limits(problem, state, v, u, small, i, small2, j):
                continue
            if may_swap(problem, state, q, theirs[j] % slots, v):
                best_i, best_j, best_key = whole(i), whole(j), key
    return best_i, best_j


@inner
def shortlist(
    problem: Problem, state: State, shelf: Shelf, watched: np.ndarray, source: int, target: int, factors: np.ndarray,
    gains: np.ndarray, kept: np.ndarray, spare: np.ndarray, small: np.ndarray, entries: np.ndarray,
) -> int:  # fmt: skip
    """The replicas of `source` that do best (or least harm) on `target`, into `small` and `entries`; returns how many."""
    block = shelf.vector[source]
    n = gather(problem, state, shelf, source, False, factors)
    scan(problem, state, watched, source, target, n, block, gains)
    for i in range(n):
        if factors[i] == 0.0:
            gains[i] = -np.inf
    found = keep_best(gains, n, -np.inf, whole(SWAP_KEPT), kept, spare)
    take(block, factors, kept, found, small)
    for i in range(found):
        entries[i] = state.hosted[source, kept[i]]
    return found


@inner
def swap_gains(
    problem: Problem, state: State, watched: np.ndarray, v: int, u: int, x: np.ndarray, i: int, n: int, y: np.ndarray,
    gains: np.ndarray,
) -> None:  # fmt: skip
    """Gain in potential when vector `i` of `x` goes from `v` to `u` and each of the first `n` vectors of `y` from `u` to `v`."""
    for j in range(n):
        gains[j] = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        w, e = problem.force[g, STRENGTH], problem.force[g, SPREAD]
        lv, hv, ov, mv, sv = (
            state.load[v, c], problem.table[v, g, HIGH], problem.table[v, g, LOW], problem.table[v, g, MEAN],
            problem.table[v, g, SCALE],
        )  # fmt: skip
        lu, hu, ou, mu, su = (
            state.load[u, c], problem.table[u, g, HIGH], problem.table[u, g, LOW], problem.table[u, g, MEAN],
            problem.table[u, g, SCALE],
        )  # fmt: skip
        if sv == 0.0 and su == 0.0:
            continue
        now = linear_cost(problem, v, g, lv) + linear_cost(problem, u, g, lu)
        given = x[c, i]
        column = y[c]
        for j in range(n):
            d = given - column[j]
            gains[j] += now - cost_at(lv - d, hv, ov, mv, sv, w, e) - cost_at(lu + d, hu, ou, mu, su, w, e)
