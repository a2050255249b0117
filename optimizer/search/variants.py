"""Variants of the problem, as single stages see it: hard limits as wishes or above all else, limits as bands, hard goals alone, no
preference for the middle of a range.

Called by `search`. Only columns differ, so every operator works on every variant. Scores differ, so states have to be appraised again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState
from optimizer.parameters import ENOUGH, FIRM_WEIGHT
from optimizer.placement.log import Budget
from optimizer.placement.standing import hard_loads
from optimizer.placement.state import State
from optimizer.problem import (
    BOUND,
    CEILING,
    CENTERING,
    COLUMN,
    DISTRIBUTION,
    HARD,
    HARD_WEIGHT,
    HIGH,
    HINGE,
    KIND,
    LIMIT,
    LOW,
    MEAN,
    SCALE,
    SET_OF,
    SPREAD,
    STATE,
    STRENGTH,
    Problem,
)


def hard_limits(problem: Problem) -> npt.NDArray[np.bool_]:
    """bool [G]: which goals are hard limits."""
    return np.asarray((problem.goal[:, KIND] == LIMIT) & (problem.goal[:, HARD] == 1))


def limits_alone(problem: Problem, budget: Budget) -> Problem:
    """The problem with a potential of hard goals alone. A move costs what the budget counts: as before if it limits bytes, else 1."""
    force = problem.force.copy()
    force[problem.goal[:, HARD] == 0, STRENGTH] = 0.0
    force[hard_limits(problem), STRENGTH] = HARD_WEIGHT
    force[:, SPREAD] = 0.0
    alone = problem._replace(force=force)
    return alone if budget.limits[1] >= 0 else by_moves(alone)


def by_moves(problem: Problem) -> Problem:
    """The problem with a cost of 1 for each move, whatever it copies."""
    return problem._replace(cost=np.ones(len(problem.cost)), typical=np.ones(2))


def tightest(problem: Problem) -> npt.NDArray[np.bool_]:
    """bool [G]: goals on loads whose upper end is below that of every other goal on the same load, for all active brokers."""
    high = problem.table[problem.broker[:, STATE] == BrokerState.ACTIVE, :, HIGH]
    linear = problem.goal[:, KIND] <= LIMIT
    tight = np.zeros(len(problem.goal), np.bool_)
    for g in np.flatnonzero(linear):
        others = linear & (problem.goal[:, COLUMN] == problem.goal[g, COLUMN])
        others[g] = False
        tight[g] = bool((high[:, g] < high[:, others].min(axis=1, initial=np.inf)).all())
    return tight


def mending(problem: Problem, broken: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Problem:
    """The problem with the hard limits marked in `broken` [G] as wishes: a target may exceed them on the way.

    The order of actions still holds them. They have full weight in the potential, even beside a tighter soft goal.
    """
    goals = np.flatnonzero(broken * hard_limits(problem))
    if not len(goals):
        return problem
    goal, table, force = problem.goal.copy(), problem.table.copy(), problem.force.copy()
    goal[goals, HARD] = 0
    force[goals, STRENGTH] = HARD_WEIGHT
    at_limit = table[:, goals, HIGH] == table[:, goals, CEILING]
    table[:, goals, HIGH] = np.where(at_limit, HINGE, 1.0) * table[:, goals, HIGH]
    return problem._replace(goal=goal, table=table, force=force)


def banded(problem: Problem, state: State) -> Problem:
    """The problem with soft limits and wishes as bands of the same height: a broker should have at most its limit, and not much less than
    its share of the load.

    A replica then goes from a broker above its limit to a broker that has little, which helps in several goals at once. Only the tightest
    goal on a load changes, and only if every broker can meet it, and what has to leave the brokers above it in `state` is at least `ENOUGH`
    of what others lack below the band: new brokers need not be filled because of a limit. The band of a single wish weighs as the
    weightiest soft goal on loads: with more, the search would first level this load in the whole cluster.
    """
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    soft = (problem.goal[:, KIND] == LIMIT) & (problem.goal[:, HARD] == 0)
    wishes = soft & (problem.force[:, STRENGTH] >= HARD_WEIGHT)
    most = problem.force[(problem.goal[:, KIND] <= LIMIT) & (problem.goal[:, HARD] == 0) & ~wishes, STRENGTH].max(initial=0.0)
    goal, table, force, sets = problem.goal.copy(), problem.table.copy(), problem.force.copy(), problem.broker[active, SET_OF]
    for g in np.flatnonzero(soft & tightest(problem)):
        limit, load = table[active, g, CEILING], state.load[active, goal[g, COLUMN]]
        if np.isinf(limit).any() or (table[active, g, HIGH] > limit).any():
            continue
        loads, limits = (np.bincount(sets, of) for of in (load, limit))
        level = limit * (loads / np.where(limits > 0, limits, np.inf))[sets]
        low = level - HINGE * (limit - level)
        if (level <= 0).any() or (level >= limit).any():
            continue
        if np.maximum(load - HINGE * limit, 0).sum() >= ENOUGH * np.maximum(low - load, 0).sum():
            goal[g, KIND] = DISTRIBUTION
            columns = {MEAN: level, BOUND: limit - level, HIGH: level + HINGE * (limit - level), LOW: low, SCALE: 1 / level}
            for column, values in columns.items():
                table[active, g, column] = values
            if wishes[g] and wishes.sum() == 1 and most > 0.0:
                force[g, STRENGTH] = most
            force[g, SPREAD] = CENTERING * force[g, STRENGTH]
    return problem if (goal == problem.goal).all() else problem._replace(goal=goal, table=table, force=force)


def firmly(problem: Problem) -> Problem:
    """The problem with hard goals on loads so heavy that the end of even a small excess is worth what it costs in soft goals."""
    force = problem.force.copy()
    force[hard_loads(problem), STRENGTH] = FIRM_WEIGHT
    return problem._replace(force=force)


def without_middle(problem: Problem) -> Problem:
    """The problem with a potential that does not prefer the middle of a range."""
    force = problem.force.copy()
    force[:, SPREAD] = 0.0
    return problem._replace(force=force)
