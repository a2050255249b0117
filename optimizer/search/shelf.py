"""Vectors of the replicas on brokers, side by side, as they were when somebody last asked for them.

A search asks for the replicas of the same few brokers again and again, and each vector lies somewhere else in memory: fetching them
took longer than weighing them. What is on the shelf is asked for once. Loads do not change during a search, so an entry is right as
long as the same replica stands at the same place of its broker's list in the same role; `gather` compares that. Called by `candidates`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cluster_model.compiled import ahead, inner, inner_as
from optimizer.problem import COLUMN, FOLLOWING, LEADING, MOVABLE, Problem
from optimizer.search import uncompiled
from optimizer.search.state import LED, SOON, State
from optimizer.search.thrift import thrift_of

PAGE = 1024  # entries: rows begin where pages of memory do, so that those that are not full touch fewer


class Shelf(NamedTuple):
    """B brokers, C columns, n places of a replica list. Memory is used as far as brokers are asked for."""

    known: np.ndarray  # int64 [B], how many first places have been fetched
    replica: np.ndarray  # int32 [B, n], which one stands there: entry of `hosted` * 2 + role
    vector: np.ndarray  # float32 [B, C + 1, n], rounded loads, and `thrift_of`, 0 if it may not move
    goal: np.ndarray  # int64 [L], goals in which a leader costs another amount than a follower
    seat: np.ndarray  # int64 [G], where goals stand among those
    lead: np.ndarray  # float32 [B, L, n], by how much


@inner
def new_shelf(problem: Problem, state: State, roles: np.ndarray) -> Shelf:
    """An empty one; `roles` int64 [G] marks goals in which a leader costs another amount than a follower."""
    brokers, room = state.hosted.shape
    room = -(-room // PAGE) * PAGE
    goals, seats = np.zeros(len(roles), np.int64), np.zeros(len(roles), np.int64)
    count = 0
    for g in range(len(roles)):
        if roles[g] == 1:
            goals[count], seats[g] = g, count
            count += 1
    return Shelf(
        np.zeros(brokers, np.int64), np.empty((brokers, room), np.int32),
        np.empty((brokers, problem.vector.shape[2] + 1, room), np.float32), goals[:count], seats,
        np.empty((brokers, count, room), np.float32),
    )  # fmt: skip


@inner_as(uncompiled.fetch)
def fetch(problem: Problem, state: State, shelf: Shelf, b: int) -> None:
    """Bring the places of broker `b` up to date."""
    slots, columns = state.replicas.shape[1], problem.vector.shape[2]
    n, known = state.hosts[b], shelf.known[b]
    for i in range(n):
        if i + SOON < n:
            q = state.hosted[b, i + SOON] // slots
            ahead(problem.vector[q], LEADING)
            ahead(problem.vector[q], FOLLOWING)
            ahead(problem.partition, q)
            ahead(problem.size, q)
        entry = state.hosted[b, i]
        role = LEADING if state.mark[b, i] & LED else FOLLOWING
        if i >= known or shelf.replica[b, i] != entry * 2 + role:
            shelf.replica[b, i] = entry * 2 + role
            p = entry // slots
            for c in range(columns):
                shelf.vector[b, c, i] = problem.vector[p, role, c]
            shelf.vector[b, columns, i] = thrift_of(problem, p) if problem.partition[p, MOVABLE] == 1 else 0.0
            for j in range(len(shelf.goal)):
                c = problem.goal[shelf.goal[j], COLUMN]
                shelf.lead[b, j, i] = np.float32(problem.vector[p, LEADING, c]) - np.float32(problem.vector[p, FOLLOWING, c])
    shelf.known[b] = max(known, n)
