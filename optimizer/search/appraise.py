"""Loads, counts, scores and potentials of a state made anew where its placement stays and the problem is another.

Called by `bench` and `rounds`.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import kernel
from optimizer.problem import Problem
from optimizer.search.broker_scores import assess
from optimizer.search.state import COST, State
from optimizer.search.topic_counts import count_topics


@kernel
def reweigh(problem: Problem, state: State, rows: np.ndarray, before: np.ndarray) -> None:
    """Loads of brokers after the vectors of `rows` were `before` float64 [n, 2, C]."""
    for i in range(len(rows)):
        p = rows[i]
        for s in range(state.replicas.shape[1]):
            b = state.replicas[p, s]
            if b >= 0:
                role = 0 if state.lead[p] == s else 1
                for c in range(state.load.shape[1]):
                    state.load[b, c] -= before[i, role, c]
                    state.load[b, c] += problem.vector[p, role, c]



@kernel
def weigh(problem: Problem, state: State) -> None:
    """Loads of brokers, which are 0, from those of their replicas."""
    for p in range(len(state.lead)):
        for s in range(state.replicas.shape[1]):
            b = state.replicas[p, s]
            if b >= 0:
                role = 0 if state.lead[p] == s else 1
                for c in range(state.load.shape[1]):
                    state.load[b, c] += problem.vector[p, role, c]



@kernel
def count_all_topics(problem: Problem, state: State) -> None:
    """Counts and units of all topic goals from the placement."""
    state.topic_count[:] = 0
    for k in range(len(problem.topic_goal)):
        state.units[k] = 0.0
        count_topics(problem, state, k)



@kernel
def appraise(problem: Problem, state: State) -> None:
    """Scores and potential of all brokers."""
    for b in range(len(state.dirty)):
        state.score[b, COST] = assess(problem, state, b, state.score[b])
