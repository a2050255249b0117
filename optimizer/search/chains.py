"""Fewer moves for the same balance: where a broker gave a replica and took another, what it gave comes home, and what it took goes on.

Called by `fewer_moves` on a target, once what needs nothing in its place has been sent home. No broker scores lower in any goal for it.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.problem import COLUMN, MOVABLE, RACK_GOAL, RACK_OF, SOFT_RACK, STATE, Problem
from optimizer.search.homeward import scores_hold
from optimizer.search.state import STRAY, State
from optimizer.search.strays import list_by_home, put, role_of
from optimizer.search.swaps import may_swap
from optimizer.search.windows import linear_goals, narrow, open_window, smallest

MOST = 64  # replicas that came to a broker: of more, few are there for a chain
TRIES = 16  # of what came in the place of one that left
VAIN = 2_000  # trades that goals on topics refused since one was good, after which there is little to be found


@kernel
def shorten_chains(problem: Problem, state: State, home: np.ndarray, order: np.ndarray) -> int:
    """Let what left a broker change places with what came to it, as often as nobody is worse for it; returns how often.

    `home` int64 [P, R] is where replicas were; `order` int64 are the partitions among which are all that stand elsewhere, those first
    that are to come home first.
    """
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    linear = linear_goals(problem)
    starts = np.zeros(brokers + 1, np.int64)
    left = list_by_home(state, home, order, starts)
    came, amount, row = np.zeros(MOST, np.int64), np.zeros((len(linear), MOST)), np.zeros(slots, np.int64)
    done, vain = 0, whole(0)
    for v in range(brokers):
        if starts[v] == starts[v + 1] or problem.broker[v, STATE] != 0:
            continue
        n = list_arrivals(problem, state, linear, home, v, came, amount)
        found, vain = trade_back(problem, state, linear, v, left[starts[v] : starts[v + 1]], n, came, amount, row, vain)
        done += found
    return done


@inner
def trade_back(
    problem: Problem, state: State, linear: np.ndarray, v: int, left: np.ndarray, n: int, came: np.ndarray, amount: np.ndarray,
    row: np.ndarray, vain: int,
) -> tuple[int, int]:  # fmt: skip
    """Let what `left` broker `v` come home, and one of the first `n` that `came` to it (with loads `amount`) go on instead; returns how
    often, and how many trades goals on topics refused since one was good, `vain` before it. `row` int64 [R] is scratch."""
    slots, topics = state.replicas.shape[1], len(problem.topic_goal)
    low, high, load, alike = np.zeros(len(linear)), np.zeros(len(linear)), np.zeros(len(linear)), np.zeros(n)
    two, before, units = np.zeros(2, np.int64), np.zeros((2, len(problem.goal))), np.zeros((2, topics))
    done = whole(0)
    for entry in left:
        p, s = entry // slots, entry % slots
        u = state.replicas[p, s]
        if n == 0 or u == v or (topics > 0 and vain > VAIN) or not may_swap(problem, state, p, s, v):
            continue
        role = role_of(state, entry)
        for k in range(len(linear)):
            load[k] = problem.vector[p, role, problem.goal[linear[k], COLUMN]]
        open_window(low, high)
        if not narrow(problem, state, linear, v, load, True, low, high):
            continue
        if not narrow(problem, state, linear, u, load, False, low, high):
            continue
        two[0], two[1] = v, u
        for i in range(2):
            for g in range(len(problem.goal)):
                before[i, g] = state.score[two[i], g]
            for k in range(topics):
                units[i, k] = state.units[k, two[i]]
        at, floor = whole(-1), -1.0
        for _ in range(TRIES):
            at = smallest(amount, alike, n, low, high, floor, at, np.inf)
            if at < 0:
                break
            floor = alike[at]
            if not may_trade(problem, state, came[at], v, u):
                continue
            put(problem, state, entry, v, row)
            put(problem, state, came[at], u, row)
            if scores_hold(state, two, whole(2), before) and counts_hold(state, two, units):
                done, n, vain = done + 1, n - 1, whole(0)
                came[at] = came[n]
                for k in range(len(linear)):
                    amount[k, at] = amount[k, n]
                break
            put(problem, state, came[at], v, row)
            put(problem, state, entry, u, row)
            vain += 1
    return done, vain


@inner
def list_arrivals(
    problem: Problem, state: State, linear: np.ndarray, home: np.ndarray, v: int, came: np.ndarray, amount: np.ndarray
) -> int:
    """What came to broker `v` and may go on, as far as there is room: entries, and loads by goal of `linear` (float64 [W, n]); returns how
    many."""
    slots = state.replicas.shape[1]
    n = whole(0)
    for i in range(state.hosts[v]):
        if n == len(came):
            break
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        if state.mark[v, i] & STRAY and home[p, s] >= 0 and home[p, s] != v and problem.partition[p, MOVABLE] == 1:
            role = role_of(state, entry)
            for k in range(len(linear)):
                amount[k, n] = problem.vector[p, role, problem.goal[linear[k], COLUMN]]
            came[n] = entry
            n += 1
    return n


@inner
def may_trade(problem: Problem, state: State, entry: int, v: int, u: int) -> bool:
    """Whether `entry` may go on from broker `v` to `u`; where racks are a soft goal, only within one, since other brokers share in it."""
    slots = state.replicas.shape[1]
    if problem.setting[RACK_GOAL] == SOFT_RACK and problem.broker[v, RACK_OF] != problem.broker[u, RACK_OF]:
        return False
    return may_swap(problem, state, entry // slots, entry % slots, u)


@inner
def counts_hold(state: State, brokers: np.ndarray, before: np.ndarray) -> bool:
    """Whether no broker has more replicas or leaders of topics misplaced than `before` float64 [n, K] says."""
    for i in range(len(brokers)):
        for k in range(before.shape[1]):
            if state.units[k, brokers[i]] > before[i, k] + 1e-12:
                return False
    return True
