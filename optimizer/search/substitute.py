"""Fewer bytes for the same balance: a smaller replica goes to where a large one was sent, which stays at home.

Called by `fewer_moves` on a target in which nobody is out of band: as long as somebody is, the room that brokers have left in their bands
may still be needed. No broker scores lower in any goal for it.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.problem import COLUMN, STATE, Problem
from optimizer.search.homeward import scores_hold
from optimizer.search.state import State
from optimizer.search.strays import list_present, put, role_of
from optimizer.search.swaps import may_swap
from optimizer.search.windows import linear_goals, narrow, open_window, smallest

MOST = 5_000  # replicas looked at, the largest
REST = 0.1  # of all bytes that are moved: the smallest replicas, which have no more than that together, are not looked at
TRIES = 4  # of substitutes for a replica


@kernel
def substitute(problem: Problem, state: State, home: np.ndarray, order: np.ndarray, changed: np.ndarray) -> int:
    """Send replicas home and smaller ones of the same broker in their place; returns how many.

    `home` int64 [P, R] is where replicas were; `order` int64 are the partitions among which are all that stand elsewhere, largest first.
    Brokers whose loads change become 1 in `changed` uint8 [B].

    Notes
    -----
    A replica of the same broker takes the place if both brokers stay in their bands with it. O(replicas of a broker) for each that
    is looked at: of skewed sizes, few have most of the bytes.
    """
    brokers, slots, goals = len(problem.broker), state.replicas.shape[1], len(problem.goal)
    linear = linear_goals(problem)
    count = len(linear)
    starts = np.zeros(brokers + 1, np.int64)
    strays = list_large(problem, state, home, order, starts)
    room = state.hosted.shape[1] + 1
    amounts, sizes, entries = np.zeros((count, room)), np.zeros(room), np.zeros(room, np.int64)
    amount, low, high = np.zeros(count), np.zeros(count), np.zeros(count)
    row = np.zeros(slots, np.int64)
    touched, before = np.zeros(2, np.int64), np.zeros((2, goals))
    done = 0
    for v in range(brokers):
        if starts[v] == starts[v + 1]:
            continue
        n = list_present(problem, state, linear, home, v, amounts, entries)
        list_sizes(problem, entries, n, slots, sizes)
        for k in range(starts[v], starts[v + 1]):
            p, s = strays[k] // slots, strays[k] % slots
            u = state.replicas[p, s]
            if not may_swap(problem, state, p, s, v):
                continue
            for i in range(count):
                amount[i] = problem.vector[p, role_of(state, strays[k]), problem.goal[linear[i], COLUMN]]
            open_window(low, high)
            narrow(problem, state, linear, v, amount, True, low, high)
            narrow(problem, state, linear, u, amount, False, low, high)
            at = smallest(amounts, sizes, n, low, high, -1.0, whole(-1), problem.cost[p])
            for _ in range(TRIES):
                if at < 0 or stands_in(problem, state, entries[at], p, u):
                    break
                at = smallest(amounts, sizes, n, low, high, sizes[at], at, problem.cost[p])
            if at < 0 or not stands_in(problem, state, entries[at], p, u):
                continue
            touched[0], touched[1] = v, u
            for i in range(2):
                for g in range(goals):
                    before[i, g] = state.score[touched[i], g]
            put(problem, state, strays[k], v, row)
            put(problem, state, entries[at], u, row)
            if scores_hold(state, touched, whole(2), before):
                done += 1
                changed[v], changed[u] = 1, 1
                entries[at], sizes[at] = strays[k], problem.cost[p]
                for i in range(count):
                    amounts[i, at] = amount[i]
            else:
                put(problem, state, entries[at], v, row)
                put(problem, state, strays[k], u, row)
    return done


@inner
def list_sizes(problem: Problem, entries: np.ndarray, n: int, slots: int, sizes: np.ndarray) -> None:
    """How large the first `n` of `entries` are, into `sizes` float64."""
    for i in range(n):
        sizes[i] = problem.cost[entries[i] // slots]


@inner
def list_large(problem: Problem, state: State, home: np.ndarray, order: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Entries (partition * R + slot) of the large replicas that left an eligible broker: by broker, from `starts` int64 [B + 1] on, in
    the order of `order`."""
    slots = state.replicas.shape[1]
    total = 0.0
    for p in order:
        for s in range(slots):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                total += problem.cost[p]
    left, last = total, 0
    seen = 0
    while last < len(order) and left > REST * total and seen < MOST:
        p = order[last]
        for s in range(slots):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                left -= problem.cost[p]
                seen += 1
                if problem.broker[home[p, s], STATE] == 0:
                    starts[home[p, s] + 1] += 1
        last += 1
    for b in range(len(problem.broker)):
        starts[b + 1] += starts[b]
    at = starts.copy()
    strays = np.zeros(starts[-1], np.int64)
    for i in range(last):
        p = order[i]
        for s in range(slots):
            v = home[p, s]
            if v >= 0 and state.replicas[p, s] != v and problem.broker[v, STATE] == 0:
                strays[at[v]] = p * slots + s
                at[v] += 1
    return strays


@inner
def stands_in(problem: Problem, state: State, entry: int, p: int, u: int) -> bool:
    """Whether the replica `entry` may go to broker `u` instead of that of `p`."""
    slots = state.replicas.shape[1]
    return entry // slots != p and may_swap(problem, state, entry // slots, entry % slots, u)
