"""By how much the potential of a broker rises with a replica or a role more or less."""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, whole
from optimizer.problem import (
    COLUMN,
    COUNTS_LEADERS,
    DISTRIBUTION,
    FOLLOWING,
    HARD,
    KIND,
    LEADING,
    LIMIT,
    SCALE,
    STRENGTH,
    TOPIC_ROW,
    Problem,
)
from optimizer.search.broker_scores import linear_cost
from optimizer.search.state import State
from optimizer.search.topic_counts import topic_rise

NOTHING = -1  # role of a broker that holds no replica


@inner
def cost_of_gaining(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    """By how much the potential of broker `b` rises when its replica of `p` goes from role `held` to `role`.

    Roles are `NOTHING` (no replica), `FOLLOWING` and `LEADING`.
    """
    cost = 0.0
    for g in range(len(problem.goal)):
        if (problem.goal[g, KIND] == DISTRIBUTION or problem.goal[g, KIND] == LIMIT) and problem.table[b, g, SCALE] > 0.0:
            c = problem.goal[g, COLUMN]
            load = state.load[b, c]
            after = load
            if role != NOTHING:
                after += problem.vector[p, role, c]
            if held != NOTHING:
                after -= problem.vector[p, held, c]
            if after != load:
                cost += linear_cost(problem, b, g, after) - linear_cost(problem, b, g, load)
    for k in range(len(problem.topic_goal)):
        cost += topic_cost(problem, state, k, b, p, held, role)
    return cost


@inner
def topic_cost(problem: Problem, state: State, k: int, b: int, p: int, held: int, role: int) -> float:
    """`cost_of_gaining` in topic goal `k` alone."""
    if problem.topic_goal[k, COUNTS_LEADERS] == 1:
        by = (1 if role == LEADING else 0) - (1 if held == LEADING else 0)
    else:
        by = (1 if role != NOTHING else 0) - (1 if held != NOTHING else 0)
    if by == 0:
        return 0.0
    rise = topic_rise(problem, state, k, whole(problem.topic[p]), b, whole(by))
    return float(problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH] * rise)


@inner
def felt_goals(problem: Problem) -> np.ndarray:
    """int64: goals on loads in which a broker that may host a replica can be worse for it; within hard limits it never is."""
    felt = np.zeros(len(problem.goal), np.int64)
    count = 0
    for g in range(len(problem.goal)):
        kind = problem.goal[g, KIND]
        if kind == DISTRIBUTION or (kind == LIMIT and problem.goal[g, HARD] == 0):
            felt[count] = g
            count += 1
    return felt[:count]


@inner
def note_costs(
    problem: Problem, state: State, felt: np.ndarray, typical: np.ndarray, b: int, known: np.ndarray, slope: np.ndarray
) -> None:
    """Potential of broker `b` in the goals `felt` as it stands, into `known` float64 [B, n]; by how much it rises for each unit of a
    `typical` load more, into `slope` float64 [B, n]."""
    for k in range(len(felt)):
        g = felt[k]
        load = state.load[b, problem.goal[g, COLUMN]]
        known[b, k] = linear_cost(problem, b, g, load)
        if typical[k] > 0.0:
            slope[b, k] = (linear_cost(problem, b, g, load + typical[k]) - known[b, k]) / typical[k]


@inner
def typical_loads(problem: Problem, state: State, felt: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """float64 [n]: means over the replicas `entries`."""
    slots = state.replicas.shape[1]
    typical = np.zeros(len(felt))
    for entry in entries:
        p = entry // slots
        role = LEADING if state.lead[p] == entry % slots else FOLLOWING
        for k in range(len(felt)):
            typical[k] += problem.vector[p, role, problem.goal[felt[k], COLUMN]]
    for k in range(len(felt)):
        typical[k] /= max(len(entries), 1)
    return typical


@inner
def load_cost_of_taking(
    problem: Problem, state: State, felt: np.ndarray, known: np.ndarray, b: int, p: int, role: int
) -> float:
    """The part of `cost_of_taking` that goals on loads have."""
    cost = 0.0
    for k in range(len(felt)):
        g = felt[k]
        amount = problem.vector[p, role, problem.goal[g, COLUMN]]
        load = state.load[b, problem.goal[g, COLUMN]]
        if problem.table[b, g, SCALE] > 0.0 and load + amount != load:
            cost += linear_cost(problem, b, g, load + amount) - known[b, k]
    return cost


@inner
def cost_of_taking(problem: Problem, state: State, felt: np.ndarray, known: np.ndarray, b: int, p: int, role: int) -> float:
    """`cost_of_gaining` of a broker that has no replica of `p` and may host one, from what is `known` of it."""
    cost = load_cost_of_taking(problem, state, felt, known, b, p, role)
    for k in range(len(problem.topic_goal)):
        cost += topic_cost(problem, state, k, b, p, whole(NOTHING), role)
    return cost
