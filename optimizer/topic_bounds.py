"""What the bands of topics alone force to move, for the lower bounds of `optimizer.bounds`.

A move takes one replica of one topic off one broker and onto another. So a broker that holds more of a topic than its band allows must
give the rest, whatever else it gives, and one that holds less must get what lacks; what topics force adds up over topics. Leaders
may change without a move, so goals on leaders force none. Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel
from kernels.order import ascending
from optimizer.placement.state import State, is_active
from optimizer.placement.topic_counts import largest_share, topic_band, wanted_by_all
from optimizer.problem import COUNTS_LEADERS, MOVABLE, Problem

Array = np.ndarray


class Forced(NamedTuple):
    """Replicas and bytes that topics force off and onto each broker, float64 [B], and in all topics (the larger of both sides of each)."""

    out_moves: Array
    out_bytes: Array
    in_moves: Array
    in_bytes: Array
    total: Array  # float64 [2]: moves, bytes


def forced_by_topics(problem: Problem, state: State, marks: Array) -> Forced:
    """What goals on the replicas of topics force from the placement of `state`; of several, the largest on each broker.

    `marks` uint8 [K, T] are 0 where no broker is outside the target range of a topic, which forces nothing. O(P R) for each goal that a
    broker does not meet; topics that force anything are sorted.
    """
    brokers = len(problem.broker)
    best = Forced(np.zeros(brokers), np.zeros(brokers), np.zeros(brokers), np.zeros(brokers), np.zeros(2))
    for k in np.flatnonzero(problem.topic_goal[:, COUNTS_LEADERS] == 0).tolist():
        if not state.units[k].any():
            continue
        found = Forced(np.zeros(brokers), np.zeros(brokers), np.zeros(brokers), np.zeros(brokers), np.zeros(2))
        add_topics(problem, state, k, marks[k], found)
        best = Forced(*[np.maximum(a, b) for a, b in zip(best, found, strict=True)])
    return best


@kernel
def add_topics(problem: Problem, state: State, k: int, marks: Array, found: Forced) -> None:
    """Add to `found` what every topic that has one of `marks` uint8 [T] forces under goal `k`."""
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    count, movable, give = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    most, by_size = largest_share(problem, k), np.zeros(0, np.int64)
    for t in range(len(problem.topic_first) - 1):
        if marks[t] == 0:
            continue
        first, last = problem.topic_first[t], problem.topic_first[t + 1]
        free = 0
        for p in range(first, last):
            free += problem.partition[p, MOVABLE]
            for s in range(slots):
                b = state.replicas[p, s]
                if b >= 0:
                    count[b] += 1
                    movable[b] += problem.partition[p, MOVABLE]
        needs = wanted_by_all(problem, k, t, most)
        if needs:
            by_size = smallest_first(problem, first, last)
        out, come, out_size, come_size, largest = 0, 0, 0.0, 0.0, 0
        for b in range(brokers if needs else 0):
            if is_active(problem, b):
                lack = min(topic_band(problem, k, t, b)[0] - count[b], free - movable[b])
                if lack > 0:
                    come += lack
                    size, taken = 0.0, 0
                    for i in range(last - first):
                        if taken == lack:
                            break
                        p = first + by_size[i]
                        if problem.partition[p, MOVABLE] == 1:
                            size += problem.size[p]
                            taken += 1
                    found.in_moves[b] += lack
                    found.in_bytes[b] += size
                    come_size += size
        for p in range(first, last):
            for s in range(slots):
                b = state.replicas[p, s]
                if b >= 0 and is_active(problem, b) and give[b] == 0:
                    over = count[b] - topic_band(problem, k, t, b)[1]
                    if over > 0:
                        give[b] = min(over, movable[b])
                        out += give[b]
                        largest = 1
        if largest > 0 and not needs:
            by_size = smallest_first(problem, first, last)
        for i in range(last - first if largest > 0 else 0):
            p = first + by_size[i]
            for s in range(slots):
                b = state.replicas[p, s]
                if b >= 0 and give[b] > 0 and problem.partition[p, MOVABLE] == 1:
                    give[b] -= 1
                    found.out_moves[b] += 1.0
                    found.out_bytes[b] += problem.size[p]
                    out_size += problem.size[p]
        found.total[0] += max(out, come)
        found.total[1] += max(out_size, come_size)
        for p in range(first, last):
            for s in range(slots):
                if state.replicas[p, s] >= 0:
                    count[state.replicas[p, s]] = 0
                    movable[state.replicas[p, s]] = 0
                    give[state.replicas[p, s]] = 0


@inner
def smallest_first(problem: Problem, first: int, last: int) -> Array:
    """int64 [n]: the partitions from `first` up to `last`, counted from `first`, by size."""
    sizes = np.zeros(last - first)
    for p in range(first, last):
        sizes[p - first] = problem.size[p]
    return ascending(sizes)
