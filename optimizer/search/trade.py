"""Swaps for the sake of a topic: one of its replicas goes, one of another topic comes back, and loads stay in their bands.

Called by `topics` and `polish` where no plain move keeps every broker in band.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, whole
from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    LEADING,
    MOVABLE,
    SCALE,
    STATE,
    STRENGTH,
    TOPIC_ROW,
    Problem,
)
from optimizer.search.candidates import topic_burden
from optimizer.search.chance import scramble
from optimizer.search.desk import Desk, least_of, make_move, put, room_of
from optimizer.search.feasible import keeps_band, may_swap
from optimizer.search.potential import linear_cost
from optimizer.search.state import State

TRADES, RETURNS = 48, 64  # replicas looked at for a swap, and for what comes back
LEAST_GAIN = 1e-9
ENOUGH, ENOUGH_LOOKED = 0.5, 4  # of the worth of a misplaced replica, after so many replicas


@inner
def trade_gain(problem: Problem, state: State, watched: np.ndarray, b: int, p: int, role: int, q: int, other: int) -> float:
    """By how much goals on loads lower the potential of `b` when it gets a replica of `p` for one of `q`."""
    gain = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        x = problem.vector[p, role, c] - problem.vector[q, other, c]
        if x != 0.0 and problem.table[b, g, SCALE] > 0.0:
            load = state.load[b, c]
            gain += linear_cost(problem, b, g, load) - linear_cost(problem, b, g, load + x)
    return gain


@inner
def best_return(
    problem: Problem, state: State, watched: np.ndarray, p: int, s: int, target: int, start: int, floor: float
) -> tuple[int, float]:
    """What `target` could best give back for slot `s` of `p`: the entry of its list, -1 if none, and the gain on loads and topics of it."""
    slots = state.replicas.shape[1]
    source = state.replicas[p, s]
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    t = whole(problem.topic[p])
    n = state.hosts[target]
    best, best_gain = whole(-1), floor
    for i in range(min(n, RETURNS)):
        entry = whole(state.hosted[target, (start + i) % n])
        q, r = entry // slots, entry % slots
        if problem.partition[q, MOVABLE] == 0 or problem.topic[q] == t:
            continue
        other = whole(LEADING if state.lead[q] == r else FOLLOWING)
        gain = trade_gain(problem, state, watched, target, p, role, q, other)
        gain += trade_gain(problem, state, watched, source, q, other, p, role)
        if gain <= best_gain or not may_swap(problem, state, q, r, source):
            continue
        gain -= topic_burden(problem, state, q, True, other == LEADING, target, source)
        if gain > best_gain and keeps_band(problem, state, target, p, role, q, other):
            if keeps_band(problem, state, source, q, other, p, role):
                best, best_gain = entry, gain
    return best, best_gain


@inner
def trade(
    problem: Problem, state: State, desk: Desk, t: int, k: int, b: int, gives: bool, leaders: bool, seed: int
) -> bool:
    """Swap one of the topic off `b` (`gives`) or onto it, for a replica of another topic, so that loads stay in their bands."""
    first, slots = problem.topic_first[t], state.replicas.shape[1]
    entries = (problem.topic_first[t + 1] - first) * slots
    worth = problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]
    best_p, best_s, best_u, best_q, best_gain = whole(-1), whole(-1), whole(-1), whole(-1), LEAST_GAIN
    start = scramble(seed * 1000231 + t * 8191 + b * 1009 + desk.held[b])
    entry, looked = desk.head[b], 0
    for i in range(TRADES):
        if gives:
            if entry < 0:
                entry = desk.head[b]
            if entry < 0:
                return False
            p, s = first + entry // slots, entry % slots
            entry = desk.following[entry]
            source, target = b, desk.eligible[scramble(start + i) % len(desk.eligible)]
            if not room_of(problem, desk, k, t, target):
                continue
        else:
            at = scramble(start + i) % entries
            p, s = first + at // slots, at % slots
            source, target = state.replicas[p, s], b
            if source < 0 or problem.broker[source, STATE] != 0 or (leaders and state.lead[p] != s):
                continue
            if desk.held[source] <= least_of(problem, k, t, source):
                continue
        if source == target or problem.partition[p, MOVABLE] == 0 or not may_swap(problem, state, p, s, target):
            continue
        leads = state.lead[p] == s
        mine = -topic_burden(problem, state, p, True, leads, source, target)
        if mine <= 0.0:
            continue
        looked += 1
        at, gain = best_return(problem, state, desk.watched, p, whole(s), target, start + i * RETURNS, best_gain - mine)
        if at >= 0:
            best_p, best_s, best_u, best_q, best_gain = p, whole(s), whole(target), at, gain + mine
            if best_gain > ENOUGH * worth and looked >= ENOUGH_LOOKED:
                break
    if best_p < 0:
        return False
    source = state.replicas[best_p, best_s]
    make_move(problem, state, desk, first, best_p, best_s, best_u)
    put(problem, state, desk, best_q // slots, best_q % slots, source)
    return True
