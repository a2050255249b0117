"""Fewer moves for the same balance and hardly any more bytes: one replica goes instead of two smaller ones between the same brokers.

Called by `fewer_moves` on a target in which nobody is out of band. No broker scores lower in any goal for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.problem import COLUMN, FOLLOWING, LEADING, STATE, Problem
from optimizer.search.chains import counts_hold
from optimizer.search.homeward import scores_hold
from optimizer.search.state import State
from optimizer.search.strays import list_by_home, list_present, put, role_of
from optimizer.search.substitute import list_sizes
from optimizer.search.swaps import may_swap
from optimizer.search.windows import linear_goals, narrow, open_window, smallest

PAIRS = 8  # tried in vain, of what went from one broker to another: the smallest
TRIES = 4  # of replicas in the place of a pair
MORE = 0.02  # of a typical replica: what may be copied beyond what the two would
VAIN = 2_000  # pairs that goals on topics refused since one was good, after which there is little to be found


class Lump(NamedTuple):
    """What is laid out for one broker; W goals on loads, n of its replicas that stayed, K topic goals."""

    linear: np.ndarray  # int64 [W], rows of the goals
    each: np.ndarray  # float64 [C], what every replica costs, -1 where they differ
    entry: np.ndarray  # int64 [n], what may leave the broker
    amount: np.ndarray  # float64 [W, n], its loads
    size: np.ndarray  # float64 [n], and sizes
    low: np.ndarray  # float64 [W], window of what may stand in for a pair
    high: np.ndarray  # float64 [W]
    back: np.ndarray  # float64 [W], loads of the pair
    two: np.ndarray  # int64 [2], brokers
    before: np.ndarray  # float64 [2, G], their scores
    units: np.ndarray  # float64 [2, K], and what they have misplaced
    row: np.ndarray  # int64 [R]


@kernel
def lump_together(problem: Problem, state: State, home: np.ndarray, order: np.ndarray) -> int:
    """Let one replica go from a broker to another instead of two smaller ones, as often as that can be found; returns how often.

    `home` int64 [P, R] is where replicas were; `order` int64 are the partitions among which are all that stand elsewhere, largest first.
    """
    brokers, slots, room = len(problem.broker), state.replicas.shape[1], state.hosted.shape[1] + 1
    linear, goals, topics = linear_goals(problem), len(problem.goal), len(problem.topic_goal)
    starts = np.zeros(brokers + 1, np.int64)
    left = list_by_home(state, home, order, starts)
    lump = Lump(
        linear, costs_of_each(problem), np.zeros(room, np.int64), np.zeros((len(linear), room)), np.zeros(room),
        np.zeros(len(linear)), np.zeros(len(linear)), np.zeros(len(linear)), np.zeros(2, np.int64), np.zeros((2, goals)),
        np.zeros((2, topics)), np.zeros(slots, np.int64),
    )  # fmt: skip
    done, refused = 0, whole(0)
    for v in range(brokers):
        mine = left[starts[v] : starts[v + 1]]
        if len(mine) < 2 or problem.broker[v, STATE] != 0 or not may_be_fewer(problem, state, lump, v, v):
            continue
        group = by_target(state, mine, brokers)
        held, last = whole(-1), 0
        while last < len(group):
            first, u = last, state.replicas[group[last] // slots, group[last] % slots]
            while last < len(group) and state.replicas[group[last] // slots, group[last] % slots] == u:
                last += 1
            if last - first < 2 or (topics > 0 and refused > VAIN) or not may_be_fewer(problem, state, lump, v, u):
                continue
            if held < 0:
                held = list_present(problem, state, linear, home, v, lump.amount, lump.entry)
                list_sizes(problem, lump.entry, held, slots, lump.size)
            found, refused = lump_between(problem, state, lump, v, u, group[first:last], held, refused)
            done, held = done + found, held - found
    return done


@inner
def costs_of_each(problem: Problem) -> np.ndarray:
    """float64 [C]: what every replica costs, in either role; -1 where they differ."""
    each = np.zeros(problem.vector.shape[2])
    for c in range(len(each)):
        each[c] = problem.vector[0, LEADING, c] if len(problem.vector) > 0 else -1.0
        for p in range(len(problem.vector)):
            if problem.vector[p, LEADING, c] != each[c] or problem.vector[p, FOLLOWING, c] != each[c]:
                each[c] = -1.0
                break
    return each


@inner
def may_be_fewer(problem: Problem, state: State, lump: Lump, v: int, u: int) -> bool:
    """Whether broker `v` could give `u` a replica less, and `u` do with it; with `v` itself for `u`, whether `v` could give one less."""
    for k in range(len(lump.linear)):
        each = lump.each[problem.goal[lump.linear[k], COLUMN]]
        if each > 0.0:
            lump.back[0] = each
            open_window(lump.low[:1], lump.high[:1])
            some = narrow(problem, state, lump.linear[k : k + 1], v, lump.back[:1], True, lump.low[:1], lump.high[:1])
            if u != v:
                some &= narrow(problem, state, lump.linear[k : k + 1], u, lump.back[:1], False, lump.low[:1], lump.high[:1])
            if not some or lump.low[0] > 0.0:
                return False
    return True


@inner
def fits(problem: Problem, state: State, lump: Lump, v: int, u: int) -> bool:
    """Narrow the window to what may go from broker `v` to `u` once what is laid out as `back` is home; whether anything may."""
    open_window(lump.low, lump.high)
    return narrow(problem, state, lump.linear, v, lump.back, True, lump.low, lump.high) and narrow(
        problem, state, lump.linear, u, lump.back, False, lump.low, lump.high
    )


@inner
def by_target(state: State, mine: np.ndarray, brokers: int) -> np.ndarray:
    """The entries `mine` by the broker where they are, and in the other order than they come: the smallest first."""
    slots = state.replicas.shape[1]
    at = np.zeros(brokers + 1, np.int64)
    for entry in mine:
        at[state.replicas[entry // slots, entry % slots] + 1] += 1
    for b in range(brokers):
        at[b + 1] += at[b]
    group = np.zeros(len(mine), np.int64)
    for i in range(len(mine) - 1, -1, -1):
        u = state.replicas[mine[i] // slots, mine[i] % slots]
        group[at[u]] = mine[i]
        at[u] += 1
    return group


@inner
def lump_between(
    problem: Problem, state: State, lump: Lump, v: int, u: int, group: np.ndarray, held: int, refused: int
) -> tuple[int, int]:
    """Let one of the `held` replicas of `v` go to `u` instead of two of `group`; returns how often, and how many were
    refused in a row."""
    slots, done, vain = state.replicas.shape[1], whole(0), 0
    note_before(problem, state, lump, v, u)
    for a in range(len(group)):
        b = a
        while b + 1 < len(group) and vain < PAIRS:
            b += 1
            vain += 1
            for k in range(len(lump.linear)):
                c = problem.goal[lump.linear[k], COLUMN]
                lump.back[k] = problem.vector[group[a] // slots, role_of(state, group[a]), c]
                lump.back[k] += problem.vector[group[b] // slots, role_of(state, group[b]), c]
            if not fits(problem, state, lump, v, u):
                continue
            at, tried = stand_in(problem, state, lump, v, u, group[a], group[b], held)
            refused += tried
            if at >= 0:
                group[b] = lump.entry[at]  # which may be one of two itself
                held -= 1
                lump.entry[at], lump.size[at] = lump.entry[held], lump.size[held]
                for k in range(len(lump.linear)):
                    lump.amount[k, at] = lump.amount[k, held]
                done, vain, refused = done + 1, 0, whole(0)
                note_before(problem, state, lump, v, u)
                break
    return done, refused


@inner
def note_before(problem: Problem, state: State, lump: Lump, v: int, u: int) -> None:
    """Keep in mind how brokers `v` and `u` stand."""
    lump.two[0], lump.two[1] = v, u
    for i in range(2):
        for g in range(len(problem.goal)):
            lump.before[i, g] = state.score[lump.two[i], g]
        for k in range(lump.units.shape[1]):
            lump.units[i, k] = state.units[k, lump.two[i]]


@inner
def stand_in(
    problem: Problem, state: State, lump: Lump, v: int, u: int, one: int, other: int, held: int
) -> tuple[int, int]:
    """Send entries `one` and `other` home to `v` and the smallest that fits to `u` instead: its index, -1 where none may; and how many
    were tried to see it."""
    slots, at, floor, tried = state.replicas.shape[1], whole(-1), -1.0, whole(0)
    if not may_swap(problem, state, one // slots, one % slots, v) or not may_swap(problem, state, other // slots, other % slots, v):
        return at, tried
    roof = problem.cost[one // slots] + problem.cost[other // slots] + MORE * problem.typical[0]
    for _ in range(TRIES):
        at = smallest(lump.amount, lump.size, held, lump.low, lump.high, floor, at, roof)
        if at < 0:
            break
        floor, entry = lump.size[at], lump.entry[at]
        if entry // slots in (one // slots, other // slots) or not may_swap(problem, state, entry // slots, entry % slots, u):
            continue
        put(problem, state, one, v, lump.row)
        put(problem, state, other, v, lump.row)
        put(problem, state, entry, u, lump.row)
        if scores_hold(state, lump.two, whole(2), lump.before) and counts_hold(state, lump.two, lump.units):
            return at, tried
        put(problem, state, entry, v, lump.row)
        put(problem, state, other, u, lump.row)
        put(problem, state, one, u, lump.row)
        tried += 1
    return whole(-1), tried
