"""Replicas that stand elsewhere than at home, and those at home that may leave.

Called by `substitute`, `merge` and `regroup`. An entry is partition * R + slot.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner, whole
from optimizer.problem import CEILING, COLUMN, DISTRIBUTION, FOLLOWING, KIND, LEADING, MEAN, MOVABLE, Problem
from optimizer.search.commit import commit
from optimizer.search.state import LED, SOON, State

MANY = 40  # replicas that left a broker, or came to it: of more, one fewer is little for the time it takes


@inner
def put(problem: Problem, state: State, entry: int, target: int, row: np.ndarray) -> None:
    """Commit that the replica `entry` stands on `target`; `row` int64 [R] is scratch."""
    slots = state.replicas.shape[1]
    p, s = entry // slots, entry % slots
    for o in range(slots):
        row[o] = state.replicas[p, o]
    row[s] = target
    commit(problem, state, p, row, state.lead[p])


@inner
def role_of(state: State, entry: int) -> int:
    slots = state.replicas.shape[1]
    return whole(LEADING if state.lead[entry // slots] == entry % slots else FOLLOWING)


@inner
def list_by_home(state: State, home: np.ndarray, moved: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Entries of replicas that left a broker, by broker, from `starts` int64 [B + 1] on, in the order of `moved`."""
    slots = state.replicas.shape[1]
    for p in moved:
        for s in range(slots):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                starts[home[p, s] + 1] += 1
    for b in range(len(starts) - 1):
        starts[b + 1] += starts[b]
    at = starts.copy()
    strays = np.zeros(starts[-1], np.int64)
    for p in moved:
        for s in range(slots):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                strays[at[home[p, s]]] = p * slots + s
                at[home[p, s]] += 1
    return strays


@inner
def list_present(
    problem: Problem, state: State, linear: np.ndarray, home: np.ndarray, v: int, amounts: np.ndarray, entries: np.ndarray
) -> int:
    """What is at home on broker `v` and may leave: loads by goal of `linear` (float64 [W, n]) and entries; returns how many."""
    slots = state.replicas.shape[1]
    n = whole(0)
    for i in range(state.hosts[v]):
        if i + SOON < state.hosts[v]:
            q = state.hosted[v, i + SOON] // slots
            ahead(home, q)
            ahead(problem.partition, q)
            ahead(problem.vector[q], LEADING)
            ahead(problem.vector[q], FOLLOWING)
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        if home[p, s] == v and problem.partition[p, MOVABLE] == 1:
            role = LEADING if state.mark[v, i] & LED else FOLLOWING
            for k in range(len(linear)):
                amounts[k, n] = problem.vector[p, role, problem.goal[linear[k], COLUMN]]
            entries[n] = entry
            n += 1
    return n


@inner
def extent(problem: Problem, state: State, linear: np.ndarray, v: int, entry: int) -> float:
    """The largest part of the mean of broker `v` (of its ceiling, in a limit) that a replica is, over goals."""
    p, role = entry // state.replicas.shape[1], role_of(state, entry)
    most = 0.0
    for g in linear:
        level = problem.table[v, g, MEAN if problem.goal[g, KIND] == DISTRIBUTION else CEILING]
        if level > 0.0:
            most = max(most, problem.vector[p, role, problem.goal[g, COLUMN]] / level)
    return most
