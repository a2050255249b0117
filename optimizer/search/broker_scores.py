"""Scores of one broker in every goal, and its part of the potential, by the sums that the state keeps."""

from __future__ import annotations

import numpy as np

from goals.score import distribution_score, limit_score, units_score
from kernels.compiled import inner
from optimizer.problem import (
    ABSOLUTE,
    BOUND,
    CEILING,
    COLUMN,
    DISTRIBUTION,
    HIGH,
    KIND,
    LIMIT,
    LOW,
    MEAN,
    MIN_LOAD,
    RACK,
    RACK_LIMIT,
    RACK_OF,
    SCALE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    VAR,
    Problem,
)
from optimizer.search.state import RACKS, State


@inner
def rack_units(problem: Problem, state: State, p: int, sign: float) -> int:
    """Excess of the partition over its racks; adds `sign` to each broker that holds it in an over-full rack."""
    slots = state.replicas.shape[1]
    excess = 0
    if problem.partition[p, RACK_LIMIT] > 0 and not shares_rack(problem, state, p):
        return excess
    for s in range(slots):
        b = state.replicas[p, s]
        if b < 0:
            continue
        same, first = 0, True
        for o in range(slots):
            other = state.replicas[p, o]
            if other >= 0 and problem.broker[other, RACK_OF] == problem.broker[b, RACK_OF]:
                same += 1
                if o < s:
                    first = False
        if same > problem.partition[p, RACK_LIMIT]:
            state.units[RACKS, b] += sign
            if first:
                excess += same - problem.partition[p, RACK_LIMIT]
    return excess


@inner
def shares_rack(problem: Problem, state: State, p: int) -> bool:
    """Whether two replicas of the partition stand in one rack."""
    for s in range(1, state.replicas.shape[1]):
        b = state.replicas[p, s]
        for o in range(s if b >= 0 else 0):
            other = state.replicas[p, o]
            if other >= 0 and problem.broker[other, RACK_OF] == problem.broker[b, RACK_OF]:
                return True
    return False


@inner
def assess(problem: Problem, state: State, b: int, score: np.ndarray) -> float:
    """Scores of broker `b` in every goal into `score`; returns its part of the potential."""
    cost = 0.0
    eligible = problem.broker[b, STATE] == 0
    for g in range(len(problem.goal)):
        kind = problem.goal[g, KIND]
        if kind == DISTRIBUTION:
            if not eligible:
                score[g] = 1.0
                continue
            load = state.load[b, problem.goal[g, COLUMN]]
            score[g] = distribution_score(
                load, problem.table[b, g, MEAN], problem.table[b, g, BOUND], problem.table[b, g, VAR],
                problem.goal[g, ABSOLUTE] == 1, problem.force[g, MIN_LOAD],
            )  # fmt: skip
            cost += linear_cost(problem, b, g, load)
        elif kind == LIMIT:
            load = state.load[b, problem.goal[g, COLUMN]]
            score[g] = limit_score(load, problem.table[b, g, CEILING])
            cost += linear_cost(problem, b, g, load)
        elif kind == RACK:
            score[g] = units_score(state.units[RACKS, b])
        else:
            units = state.units[problem.goal[g, COLUMN], b]
            score[g] = units_score(units)
            if eligible:
                cost += problem.force[g, STRENGTH] * units
    return cost


@inner
def assess_racks(problem: Problem, state: State, b: int) -> None:
    """Score of broker `b` in goals on racks, where its load did not change; such a goal has no part of the potential of a broker."""
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == RACK:
            state.score[b, g] = units_score(state.units[RACKS, b])


@inner
def linear_cost(problem: Problem, b: int, g: int, load: float) -> float:
    """Part of the potential that broker `b` has in the linear goal `g` at `load`."""
    over = load - problem.table[b, g, HIGH]
    under = problem.table[b, g, LOW] - load
    beyond = over if over > 0.0 else (under if under > 0.0 else 0.0)
    scale = problem.table[b, g, SCALE]
    beyond *= scale
    off = (load - problem.table[b, g, MEAN]) * scale
    square = beyond * beyond
    return float(
        problem.force[g, STRENGTH] * square * (1.0 + STEEP * square) + problem.force[g, SPREAD] * off * off
    )


@inner
def is_out(problem: Problem, state: State, b: int, g: int) -> bool:
    """Whether broker `b` is out of goal `g` by more than what it cannot get rid of (`optimizer.irreducible`)."""
    if state.score[b, g] >= 1.0:
        return False
    if problem.goal[g, KIND] > LIMIT:
        return True
    load = state.load[b, problem.goal[g, COLUMN]]
    return bool(load > problem.table[b, g, HIGH] or load < problem.table[b, g, LOW])


@inner
def scores_low(problem: Problem, state: State, b: int) -> bool:
    """Whether an eligible broker is out of any goal."""
    if problem.broker[b, STATE] != 0:
        return False
    for g in range(len(problem.goal)):
        if is_out(problem, state, b, g):
            return True
    return False
