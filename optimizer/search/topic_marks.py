"""Which topics have anybody outside their band: most have nobody after a small change, and need not be looked at.

Called by `bench`, which keeps the marks; `spread_topics` and `topic_bounds` go by them.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import kernel, whole
from optimizer.problem import COUNTS_LEADERS, STATE, Problem
from optimizer.search.state import State
from optimizer.search.topic_counts import largest_share, outside, wanted_by_all


def mark_topics(problem: Problem, state: State, topics: np.ndarray, marks: np.ndarray) -> None:
    """1 in `marks` uint8 [K, T] where some eligible broker holds too much or too little of one of `topics` (int64), else 0."""
    for k in range(len(problem.topic_goal)):
        mark_each(problem, state, k, topics, marks[k])


def all_marked(problem: Problem) -> np.ndarray:
    """uint8 [K, T], where nothing is known."""
    return np.ones((len(problem.topic_goal), len(problem.topic_first) - 1), np.uint8)


@kernel
def mark_each(problem: Problem, state: State, k: int, topics: np.ndarray, marks: np.ndarray) -> None:
    """`mark_topics` for topic goal `k`; `marks` uint8 [T]."""
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    count, holders = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    most = largest_share(problem, k)
    for t in topics:
        found = 0
        for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
            for s in range(slots):
                b = state.replicas[p, s]
                if b >= 0 and (problem.topic_goal[k, COUNTS_LEADERS] == 0 or state.lead[p] == s):
                    if count[b] == 0:
                        holders[found] = b
                        found += 1
                    count[b] += 1
        off = False
        if found > 0 or problem.topic_first[t + 1] > problem.topic_first[t]:
            if wanted_by_all(problem, k, t, most):
                for b in range(brokers):
                    off = off or (problem.broker[b, STATE] == 0 and outside(problem, k, t, b, count[b]) > 0.0)
            else:
                for i in range(found):
                    b = holders[i]
                    off = off or (problem.broker[b, STATE] == 0 and outside(problem, k, t, b, count[b]) > 0.0)
        marks[t] = 1 if off else 0
        for i in range(found):
            count[holders[i]] = whole(0)
