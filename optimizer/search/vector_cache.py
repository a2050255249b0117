"""A cache of the vectors of the replicas on each broker, side by side, as of the last `fetch`.

A search compares the replicas of the same few brokers again and again. Each vector lies elsewhere in memory, so reading them took longer
than comparing them. The cache reads each once. Loads do not change during a search, so an entry is right as long as the same replica is
at the same place of its broker's list, in the same role. `fetch` checks that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import ahead, both, inner, kernel, whole
from kernels.lanes import either, lanes, number
from optimizer.parameters import PAGE, TOGETHER
from optimizer.placement.potential import thrift_of
from optimizer.placement.state import LED, State
from optimizer.problem import COLUMN, FOLLOWING, LEADING, MOVABLE, Problem
from optimizer.threads import Threads


class VectorCache(NamedTuple):
    """B brokers, C columns, G goals, L of them in `goal`, n places of a replica list. A row takes memory once its broker is fetched."""

    known: np.ndarray  # int64 [B], how many places, from the first, have been fetched
    replica: np.ndarray  # int32 [B, n], replica at the place: entry of `hosted` * 2 + role
    vector: np.ndarray  # float32 [B, C + 1, n], rounded loads; last row: `thrift_of`, 0 if it may not move
    goal: np.ndarray  # int64 [L], goals in which a leader costs another amount than a follower, one for each column
    seat: np.ndarray  # int64 [G], index in `goal` of the goal, or of one with the same column
    lead: np.ndarray  # float32 [B, L, n], by how much more a leader costs than a follower


@both
def new_cache(problem: Problem, state: State, roles: np.ndarray) -> VectorCache:
    """An empty cache; `roles` int64 [G] marks goals in which a leader costs another amount than a follower."""
    brokers, room = state.hosted.shape
    room = -(-room // PAGE) * PAGE
    goals, seats = np.zeros(len(roles), np.int64), np.zeros(len(roles), np.int64)
    count = 0
    for g in range(len(roles)):
        if roles[g] == 1:
            seats[g] = count
            for j in range(count):
                if problem.goal[goals[j], COLUMN] == problem.goal[g, COLUMN]:
                    seats[g] = j
            if seats[g] == count:
                goals[count] = g
                count += 1
    return VectorCache(
        np.zeros(brokers, np.int64), np.empty((brokers, room), np.int32),
        np.empty((brokers, problem.vector.shape[2] + 1, room), np.float32), goals[:count], seats,
        np.empty((brokers, count, room), np.float32),
    )  # fmt: skip


@kernel
def lay_out(problem: Problem, state: State, cache: VectorCache, first: int, last: int) -> None:
    """Write the replicas of the partitions from `first` to below `last` to their places in an empty cache.

    Done for all partitions, it is the same as `fetch` of all brokers, in half the time: it reads partitions, and writes the places of a
    broker, in order.
    """
    slots = state.replicas.shape[1]
    for p in range(first, last):
        thrift = thrift_of(problem, p) if problem.partition[p, MOVABLE] == 1 else 0.0
        for s in range(slots):
            b = state.replicas[p, s]
            if b < 0:
                continue
            i, role = state.place[p, s], whole(LEADING if state.lead[p] == s else FOLLOWING)
            cache.replica[b, i] = (p * slots + s) * 2 + role
            write_place(problem, cache, b, i, p, role, thrift)
    if first == 0:
        for b in range(len(state.hosts)):
            cache.known[b] = state.hosts[b]


@inner
def write_place(problem: Problem, cache: VectorCache, b: int, i: int, p: int, role: int, thrift: float) -> None:
    """Write loads and thrift of a replica of `p` in `role` to place `i` of broker `b`."""
    columns = problem.vector.shape[2]
    for c in range(columns):
        cache.vector[b, c, i] = problem.vector[p, role, c]
    cache.vector[b, columns, i] = thrift
    for j in range(len(cache.goal)):
        c = problem.goal[cache.goal[j], COLUMN]
        cache.lead[b, j, i] = np.float32(problem.vector[p, LEADING, c]) - np.float32(problem.vector[p, FOLLOWING, c])


@inner
def fetch(problem: Problem, state: State, cache: VectorCache, b: int) -> None:
    """Bring the places of broker `b` in the cache up to date."""
    slots = state.replicas.shape[1]
    n, known = state.hosts[b], cache.known[b]
    for start in range(0, n, TOGETHER):
        stop = min(start + TOGETHER, n)
        others = max(stop - max(start, known), 0)
        for i in lanes(min(stop, known) - start):
            role = either(state.mark[b, start + i] & LED, LEADING, FOLLOWING)
            others += number(cache.replica[b, start + i] != state.hosted[b, start + i] * 2 + role)
        if others == 0:
            continue
        for i in range(start, stop):
            role = LEADING if state.mark[b, i] & LED else FOLLOWING
            if i >= known or cache.replica[b, i] != state.hosted[b, i] * 2 + role:
                q = state.hosted[b, i] // slots
                ahead(problem.vector[q], LEADING)
                ahead(problem.vector[q], FOLLOWING)
                ahead(problem.partition, q)
                ahead(problem.cost, q)
        for i in range(start, stop):
            entry = state.hosted[b, i]
            role = LEADING if state.mark[b, i] & LED else FOLLOWING
            if i >= known or cache.replica[b, i] != entry * 2 + role:
                cache.replica[b, i] = entry * 2 + role
                p = entry // slots
                write_place(problem, cache, b, i, p, whole(role), thrift_of(problem, p) if problem.partition[p, MOVABLE] == 1 else 0.0)
    cache.known[b] = max(known, n)


def fill_cache(problem: Problem, state: State, cache: VectorCache, threads: Threads) -> None:
    """`lay_out` for all partitions, a part of them in each thread."""
    edges = np.linspace(0, len(state.lead), threads.count + 1).astype(np.int64).tolist()
    if threads.count == 1:
        lay_out(problem, state, cache, *edges)
    else:
        threads.share(lambda i: lay_out(problem, state, cache, edges[i], edges[i + 1]), threads.count)
