"""Fewer moves for the same balance: two replicas that left a broker, or came to it, against a single one.

Called by `rounds` on a target where a move costs the same whatever it carries, as with shared storage. No broker scores lower in any
goal for it.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, kernel, whole
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    DISTRIBUTION,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MIN_LOAD,
    MOVABLE,
    STATE,
    Problem,
)
from optimizer.search.commit import commit
from optimizer.search.costs import NOTHING
from optimizer.search.homeward import leaves_band, scores_hold
from optimizer.search.hosting import may_host
from optimizer.search.order import ascending
from optimizer.search.partners import rank_partners
from optimizer.search.state import State
from optimizer.search.swaps import may_swap

MANY = 40  # replicas that left a broker, or came to it: of more, one fewer is little for the time it takes
PAIRS = 12  # tried for a broker and direction without success
PARTNERS = 24
SUBSTITUTES = 24  # replicas tried for a pair, smallest first
TURNS = 4  # of successes for a broker and direction
VAIN = 480  # pairs in a row, of any brokers, after which there is little to be found


@kernel
def merge(problem: Problem, state: State, home: np.ndarray, moved: np.ndarray) -> int:
    """Put one move in the place of two as often as that can be found; returns how often.

    `home` int64 [P, R] is where replicas were; `moved` int64 are the partitions among which are all that stand elsewhere.
    """
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    goals = np.zeros(len(problem.goal), np.int64)
    count = 0
    for g in range(len(problem.goal)):  # also limits that nobody exceeds yet
        if problem.goal[g, KIND] <= LIMIT:
            goals[count] = g
            count += 1
    watched = goals[:count]
    row = np.zeros(slots, np.int64)
    partners, worth = np.zeros(PARTNERS, np.int64), np.zeros(brokers)
    touched = np.zeros(8, np.int64)
    before = np.zeros((8, len(problem.goal)))
    strays = np.zeros(len(moved) * slots, np.int64)
    merged, vain = 0, 0
    for v in range(brokers):
        if problem.broker[v, STATE] != 0 or vain >= VAIN:
            continue
        for way in range(2):  # off the broker, onto it
            for _ in range(TURNS):
                count = list_strays(state, home, moved, v, way == 0, strays)
                if count < 2 or count > MANY:
                    break
                sizes = np.zeros(count)
                for i in range(count):
                    sizes[i] = extent(problem, state, watched, v, strays[i])
                order = ascending(sizes)
                done, tried = False, 0
                for j in range(1, count):
                    for i in range(j):
                        if done or tried >= PAIRS:
                            break
                        tried += 1
                        done = replace_pair(
                            problem, state, watched, home, v, way == 0, strays[order[i]], strays[order[j]], row, partners, worth,
                            touched, before,
                        )  # fmt: skip
                vain = 0 if done else vain + tried
                if not done:
                    break
                merged += 1
    return merged


@inner
def list_strays(state: State, home: np.ndarray, moved: np.ndarray, v: int, off: bool, strays: np.ndarray) -> int:
    """Entries (partition * R + slot) of replicas that left broker `v`, or came to it; returns how many."""
    slots = state.replicas.shape[1]
    count = 0
    for p in moved:
        for s in range(slots):
            was, now = home[p, s], state.replicas[p, s]
            if was != now and (was if off else now) == v:
                strays[count] = p * slots + s
                count += 1
    return count


@inner
def extent(problem: Problem, state: State, watched: np.ndarray, v: int, entry: int) -> float:
    """The largest part of the mean of broker `v` that a replica is, over goals."""
    slots = state.replicas.shape[1]
    p, s = entry // slots, entry % slots
    role = LEADING if state.lead[p] == s else FOLLOWING
    most = 0.0
    for g in watched:
        mean = problem.table[v, g, MEAN]
        if problem.goal[g, KIND] == DISTRIBUTION and mean > 0.0:
            most = max(most, problem.vector[p, role, problem.goal[g, COLUMN]] / mean)
        elif problem.goal[g, KIND] != DISTRIBUTION:
            most = max(most, problem.vector[p, role, problem.goal[g, COLUMN]] / problem.table[v, g, CEILING])
    return most


@inner
def put(problem: Problem, state: State, p: int, s: int, target: int, row: np.ndarray) -> None:
    """Commit that slot `s` of `p` stands on `target`."""
    for o in range(len(row)):
        row[o] = state.replicas[p, o]
    row[s] = target
    commit(problem, state, p, row, state.lead[p])


@inner
def replace_pair(
    problem: Problem, state: State, watched: np.ndarray, home: np.ndarray, v: int, off: bool, first: int, second: int,
    row: np.ndarray, partners: np.ndarray, worth: np.ndarray, touched: np.ndarray, before: np.ndarray,
) -> bool:  # fmt: skip
    """Send two strays of `v` home and move one replica instead; False, and nothing changed, where none does."""
    slots = state.replicas.shape[1]
    p, s = first // slots, first % slots
    q, t = second // slots, second % slots
    there, there2 = state.replicas[p, s], state.replicas[q, t]
    back, back2 = home[p, s], home[q, t]
    if p == q or back < 0 or back2 < 0 or problem.broker[back, STATE] != 0 or problem.broker[back2, STATE] != 0:
        return False
    touched[0], touched[1], touched[2] = v, (there if off else back), (there2 if off else back2)
    for i in range(3):
        for g in range(len(problem.goal)):
            before[i, g] = state.score[touched[i], g]
    if not may_swap(problem, state, p, s, back) or not may_swap(problem, state, q, t, back2):
        return False
    put(problem, state, p, s, back, row)
    put(problem, state, q, t, back2, row)
    if substitute(problem, state, watched, home, v, off, row, partners, worth, touched, before):
        return True
    put(problem, state, q, t, there2, row)
    put(problem, state, p, s, there, row)
    return False


@inner
def substitute(
    problem: Problem, state: State, watched: np.ndarray, home: np.ndarray, v: int, off: bool,
    row: np.ndarray, partners: np.ndarray, worth: np.ndarray, touched: np.ndarray, before: np.ndarray,
) -> bool:  # fmt: skip
    """Move one replica off `v`, or onto it, after which nobody scores lower than `before`; False where there is none."""
    slots = state.replicas.shape[1]
    found = rank_partners(problem, state, watched, v, whole(PARTNERS), whole(0), partners, worth)
    for k in range(1 if off else found):
        source = v if off else partners[k]
        n = state.hosts[source]
        sizes = np.full(n, np.inf)
        for i in range(n):
            entry = whole(state.hosted[source, i])
            p, s = entry // slots, entry % slots
            if problem.partition[p, MOVABLE] == 1 and home[p, s] == source and brings(problem, state, v, p, s, off, before):
                sizes[i] = extent(problem, state, watched, v, entry)
        order = ascending(sizes)
        for c in range(min(n, SUBSTITUTES)):
            if not sizes[order[c]] < np.inf:
                break
            entry = whole(state.hosted[source, order[c]])
            p, s = entry // slots, entry % slots
            role = whole(LEADING if state.lead[p] == s else FOLLOWING)
            if not off and leaves_band(problem, state, source, p, role, whole(NOTHING)):
                continue
            for u in range(found if off else 1):
                target = partners[u] if off else v
                if not may_host(problem, state, p, s, target):
                    continue
                if off and leaves_band(problem, state, target, p, whole(NOTHING), role):
                    continue
                touched[3] = target if off else source
                for g in range(len(problem.goal)):
                    before[3, g] = state.score[touched[3], g]
                for i in range(3):  # of a broker that is there already, what it scored at first
                    if touched[i] == touched[3]:
                        for g in range(len(problem.goal)):
                            before[3, g] = before[i, g]
                put(problem, state, p, s, target, row)
                if scores_hold(state, touched, whole(4), before):
                    return True
                put(problem, state, p, s, source, row)
    return False


@inner
def brings(problem: Problem, state: State, v: int, p: int, s: int, off: bool, before: np.ndarray) -> bool:
    """Whether broker `v` would be in every band that it was in `before`, without (or with) slot `s` of `p`."""
    role = LEADING if state.lead[p] == s else FOLLOWING
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] > LIMIT or before[0, g] < 1.0:
            continue
        c = problem.goal[g, COLUMN]
        amount = problem.vector[p, role, c]
        load = state.load[v, c] - amount if off else state.load[v, c] + amount
        if problem.goal[g, KIND] == LIMIT:
            if load > problem.table[v, g, CEILING]:
                return False
        elif abs(load - problem.table[v, g, MEAN]) > problem.table[v, g, BOUND]:
            if load > problem.force[g, MIN_LOAD] and problem.table[v, g, MEAN] > 0.0:
                return False
    return True
