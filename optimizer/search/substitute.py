"""Fewer bytes for the same balance: a smaller replica goes to where a large one was sent, which stays at home.

Called by `rounds` on a target in which nobody is out of band: as long as somebody is, the room that brokers have left in their bands
may still be needed. No broker scores lower in any goal for it.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, inner_as, kernel, whole
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MIN_LOAD,
    MOVABLE,
    SIZE,
    STATE,
    Problem,
)
from optimizer.search import uncompiled
from optimizer.search.homeward import scores_hold
from optimizer.search.merge import put
from optimizer.search.state import State
from optimizer.search.swaps import may_swap

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
    kinds = np.zeros(goals, np.int64)
    count = 0
    for g in range(goals):
        if problem.goal[g, KIND] <= LIMIT:
            kinds[count] = g
            count += 1
    linear = kinds[:count]
    starts = np.zeros(brokers + 1, np.int64)
    strays = list_large(problem, state, home, order, starts)
    room = state.hosted.shape[1] + 1
    amounts, sizes, entries = np.zeros((count, room)), np.zeros(room), np.zeros(room, np.int64)
    low, high = np.zeros(count), np.zeros(count)
    row = np.zeros(slots, np.int64)
    touched, before = np.zeros(2, np.int64), np.zeros((2, goals))
    done = 0
    for v in range(brokers):
        if starts[v] == starts[v + 1]:
            continue
        n = list_present(problem, state, linear, home, v, amounts, sizes, entries)
        for k in range(starts[v], starts[v + 1]):
            p, s = strays[k] // slots, strays[k] % slots
            u = state.replicas[p, s]
            if not may_swap(problem, state, p, s, v):
                continue
            role = whole(LEADING if state.lead[p] == s else FOLLOWING)
            set_window(problem, state, linear, v, u, p, role, low, high)
            at = smallest(amounts, sizes, n, low, high, -1.0, whole(-1), problem.haul[p, SIZE])
            for _ in range(TRIES):
                if at < 0 or stands_in(problem, state, entries[at], p, u):
                    break
                at = smallest(amounts, sizes, n, low, high, sizes[at], at, problem.haul[p, SIZE])
            if at < 0 or not stands_in(problem, state, entries[at], p, u):
                continue
            q, t = entries[at] // slots, entries[at] % slots
            touched[0], touched[1] = v, u
            for i in range(2):
                for g in range(goals):
                    before[i, g] = state.score[touched[i], g]
            put(problem, state, p, s, v, row)
            put(problem, state, q, t, u, row)
            if scores_hold(state, touched, whole(2), before):
                done += 1
                changed[v], changed[u] = 1, 1
                entries[at], sizes[at] = p * slots + s, problem.haul[p, SIZE]
                for i in range(count):
                    amounts[i, at] = problem.vector[p, role, problem.goal[linear[i], COLUMN]]
            else:
                put(problem, state, q, t, v, row)
                put(problem, state, p, s, u, row)
    return done


@inner
def list_large(problem: Problem, state: State, home: np.ndarray, order: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Entries (partition * R + slot) of the large replicas that left an eligible broker: by broker, from `starts` int64 [B + 1] on, in
    the order of `order`."""
    slots = state.replicas.shape[1]
    total = 0.0
    for p in order:
        for s in range(slots):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                total += problem.haul[p, SIZE]
    left, last = total, 0
    seen = 0
    while last < len(order) and left > REST * total and seen < MOST:
        p = order[last]
        for s in range(slots):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                left -= problem.haul[p, SIZE]
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
def list_present(
    problem: Problem, state: State, linear: np.ndarray, home: np.ndarray, v: int, amounts: np.ndarray, sizes: np.ndarray,
    entries: np.ndarray,
) -> int:  # fmt: skip
    """What may leave broker `v` and has not: loads by goal (float64 [G, n]), bytes and entries; returns how many."""
    slots = state.replicas.shape[1]
    n = whole(0)
    for i in range(state.hosts[v]):
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        if home[p, s] == v and problem.partition[p, MOVABLE] == 1:
            role = LEADING if state.lead[p] == s else FOLLOWING
            for k in range(len(linear)):
                amounts[k, n] = problem.vector[p, role, problem.goal[linear[k], COLUMN]]
            sizes[n], entries[n] = problem.haul[p, SIZE], entry
            n += 1
    return n


@inner
def set_window(
    problem: Problem, state: State, linear: np.ndarray, v: int, u: int, p: int, role: int, low: np.ndarray, high: np.ndarray
) -> None:
    """Least and most load, by goal, of what may go from `v` to `u` when the replica of `p` comes back to `v`."""
    for k in range(len(linear)):
        g = linear[k]
        c = problem.goal[g, COLUMN]
        x = problem.vector[p, role, c]
        bottom, top = band_of(problem, state, v, g)
        low[k], high[k] = state.load[v, c] + x - top, state.load[v, c] + x - bottom
        bottom, top = band_of(problem, state, u, g)
        low[k] = max(low[k], bottom - state.load[u, c] + x)
        high[k] = min(high[k], top - state.load[u, c] + x)


@inner
def band_of(problem: Problem, state: State, b: int, g: int) -> tuple[float, float]:
    """Least and most load with which broker `b` is no worse off in goal `g` than it is."""
    if problem.broker[b, STATE] != 0:
        return -np.inf, np.inf
    load, mean = state.load[b, problem.goal[g, COLUMN]], problem.table[b, g, MEAN]
    if problem.goal[g, KIND] == LIMIT:
        return -np.inf, max(problem.table[b, g, CEILING], load)
    if mean <= 0.0:
        return -np.inf, np.inf
    low, high = mean - problem.table[b, g, BOUND], mean + problem.table[b, g, BOUND]
    if mean < problem.force[g, MIN_LOAD]:
        low, high = -np.inf, max(high, problem.force[g, MIN_LOAD])
    return min(low, load), max(high, load)


@inner_as(uncompiled.smallest)
def smallest(
    amounts: np.ndarray, sizes: np.ndarray, n: int, low: np.ndarray, high: np.ndarray, floor: float, after: int, roof: float
) -> int:
    """The first smallest of `n` replicas whose loads lie between `low` and `high` and that has fewer bytes than `roof`; -1 if none.

    It comes behind the one at `after`, of `floor` bytes, in the order of bytes, then of the list.
    """
    best, least = whole(-1), roof
    for i in range(n):
        if sizes[i] >= least or sizes[i] < floor or (sizes[i] == floor and i <= after):
            continue
        good = True
        for k in range(len(low)):
            if amounts[k, i] < low[k] or amounts[k, i] > high[k]:
                good = False
                break
        if good:
            best, least = whole(i), sizes[i]
    return best


@inner
def stands_in(problem: Problem, state: State, entry: int, p: int, u: int) -> bool:
    """Whether the replica `entry` may go to broker `u` instead of that of `p`."""
    slots = state.replicas.shape[1]
    return entry // slots != p and may_swap(problem, state, entry // slots, entry % slots, u)
