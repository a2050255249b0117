"""The problem as a stage sees it, where that is not the problem of the plan: broken hard limits as wishes, hard goals alone, no middle.

Called by `search`. Only columns differ, so every operator works on any of them; scores are not shared, so states are appraised anew.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState
from optimizer.problem import (
    CEILING,
    COLUMN,
    HARD,
    HARD_WEIGHT,
    HIGH,
    HINGE,
    KIND,
    LIMIT,
    SPREAD,
    STATE,
    STRENGTH,
    Problem,
)
from optimizer.search.ledger import Budget
from optimizer.search.state import COST, State


def hard_limits(problem: Problem) -> npt.NDArray[np.bool_]:
    """bool [G]"""
    return np.asarray((problem.goal[:, KIND] == LIMIT) & (problem.goal[:, HARD] == 1))


def broken_limits(problem: Problem, state: State) -> npt.NDArray[np.int64]:
    """int64 [G]: active brokers beyond each hard limit."""
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    over = (state.score[active, :COST] < 1.0).sum(axis=0)
    return np.where(hard_limits(problem), over, 0).astype(np.int64)


def limits_alone(problem: Problem, budget: Budget) -> Problem:
    """The problem with a potential of hard goals alone, in which a move costs what the budget counts."""
    force = problem.force.copy()
    force[problem.goal[:, HARD] == 0, STRENGTH] = 0.0
    force[hard_limits(problem), STRENGTH] = HARD_WEIGHT
    force[:, SPREAD] = 0.0
    if budget.limits[1] >= 0:
        return problem._replace(force=force)
    return problem._replace(force=force, cost=np.ones(len(problem.cost)), typical=np.ones(2))


def tightest(problem: Problem) -> npt.NDArray[np.bool_]:
    """bool [G]: goals on loads whose upper end lies below that of every other on the same load, for all active brokers."""
    high = problem.table[problem.broker[:, STATE] == BrokerState.ACTIVE, :, HIGH]
    linear = problem.goal[:, KIND] <= LIMIT
    tight = np.zeros(len(problem.goal), np.bool_)
    for g in np.flatnonzero(linear):
        others = linear & (problem.goal[:, COLUMN] == problem.goal[g, COLUMN])
        others[g] = False
        tight[g] = bool((high[:, g] < high[:, others].min(axis=1, initial=np.inf)).all())
    return tight


def mending(problem: Problem, broken: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Problem:
    """The problem in which `broken` hard limits are wishes: a target may exceed them on the way.

    The order of actions holds them all the same. They have full weight, also beside a tighter soft goal.
    """
    goals = np.flatnonzero(broken)
    if not len(goals):
        return problem
    goal, table, force = problem.goal.copy(), problem.table.copy(), problem.force.copy()
    goal[goals, HARD] = 0
    force[goals, STRENGTH] = HARD_WEIGHT
    at_limit = table[:, goals, HIGH] == table[:, goals, CEILING]
    table[:, goals, HIGH] = np.where(at_limit, HINGE, 1.0) * table[:, goals, HIGH]
    return problem._replace(goal=goal, table=table, force=force)


def without_middle(problem: Problem) -> Problem:
    """The problem with a potential that does not prefer the middle of a band."""
    force = problem.force.copy()
    force[:, SPREAD] = 0.0
    return problem._replace(force=force)
