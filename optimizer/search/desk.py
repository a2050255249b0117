"""What is known of one topic while it is spread: who holds how much of it, and where.

Called by `topics` and `trade`, which change placement through it so that it stays in step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, whole
from optimizer.problem import STATE, Problem
from optimizer.search.candidates import watched_goals
from optimizer.search.commit import commit
from optimizer.search.state import State
from optimizer.search.topic_counts import topic_band


class Desk(NamedTuple):
    """Room to work on one topic. B brokers, n slots of the largest topic; an entry is a slot counted from the topic's first."""

    held: np.ndarray  # int64 [B], replicas or leaders of the topic
    low: np.ndarray  # int64 [B]
    high: np.ndarray  # int64 [B]
    head: np.ndarray  # int64 [B], first entry of what is counted, -1 none
    following: np.ndarray  # int64 [n], the next of it on the same broker
    holders: np.ndarray  # int64 [B], brokers with something of the topic, or all where all need some
    over: np.ndarray  # int64 [B]
    under: np.ndarray  # int64 [B]
    eligible: np.ndarray  # int64 [B]
    among: np.ndarray  # int64 [B], brokers to choose from
    watched: np.ndarray  # int64 [n], goals on loads that count
    row: np.ndarray  # int64 [R]


@inner
def new_desk(problem: Problem, state: State) -> Desk:
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    largest = 0
    for t in range(len(problem.topic_first) - 1):
        largest = max(largest, problem.topic_first[t + 1] - problem.topic_first[t])
    eligible, goals = np.zeros(brokers, np.int64), np.zeros(len(problem.goal), np.int64)
    found = 0
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible[found] = b
            found += 1
    return Desk(
        np.zeros(brokers, np.int64), np.zeros(brokers, np.int64), np.zeros(brokers, np.int64),
        np.full(brokers, -1, np.int64), np.zeros(largest * slots + 1, np.int64), np.zeros(brokers, np.int64),
        np.zeros(brokers, np.int64), np.zeros(brokers, np.int64), eligible[:found], np.zeros(brokers, np.int64),
        goals[: watched_goals(problem, state, goals)], np.zeros(slots, np.int64),
    )  # fmt: skip


@inner
def most_of(problem: Problem, k: int, t: int, b: int) -> int:
    """The most replicas (or leaders) of topic `t` with which broker `b` scores 1."""
    return topic_band(problem, k, t, b)[1]


@inner
def least_of(problem: Problem, k: int, t: int, b: int) -> int:
    """The fewest replicas (or leaders) of topic `t` with which broker `b` scores 1."""
    return topic_band(problem, k, t, b)[0]


@inner
def room_of(problem: Problem, desk: Desk, k: int, t: int, b: int) -> bool:
    """Whether broker `b` may have one more of the topic."""
    return bool(desk.held[b] < most_of(problem, k, t, b))


@inner
def recast(desk: Desk, entry: int, to: int, source: int, target: int) -> None:
    """Keep the desk in step: `entry` of `source` is gone, `to` stands on `target`."""
    at, before = desk.head[source], whole(-1)
    while at != entry:
        before = at
        at = desk.following[at]
    if before < 0:
        desk.head[source] = desk.following[entry]
    else:
        desk.following[before] = desk.following[entry]
    desk.following[to] = desk.head[target]
    desk.head[target] = to
    desk.held[source] -= 1
    desk.held[target] += 1


@inner
def put(problem: Problem, state: State, desk: Desk, p: int, s: int, target: int) -> None:
    """Commit that slot `s` of `p` stands on `target`."""
    for o in range(state.replicas.shape[1]):
        desk.row[o] = state.replicas[p, o]
    desk.row[s] = target
    commit(problem, state, p, desk.row, state.lead[p])


@inner
def make_move(problem: Problem, state: State, desk: Desk, first: int, p: int, s: int, target: int) -> None:
    """Commit a move of what is counted, on the desk too."""
    slots = state.replicas.shape[1]
    entry = (p - first) * slots + s
    recast(desk, entry, entry, state.replicas[p, s], target)
    put(problem, state, desk, p, s, target)


@inner
def make_leader(problem: Problem, state: State, desk: Desk, first: int, p: int, o: int) -> None:
    """Commit that slot `o` leads `p`, on the desk too."""
    slots = state.replicas.shape[1]
    base = (p - first) * slots
    recast(desk, base + state.lead[p], base + o, state.replicas[p, state.lead[p]], state.replicas[p, o])
    for q in range(slots):
        desk.row[q] = state.replicas[p, q]
    commit(problem, state, p, desk.row, o)
