"""How good a placement is, and whether another one is enough better to be worth its moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState
from kernels.compiled import kernel
from optimizer.broker_sets import strays
from optimizer.columns import any_differs
from optimizer.parameters import LEAST_PROGRESS, WORSE
from optimizer.placement.potential import cost_at, curve, linear_cost
from optimizer.placement.state import COST, LED, RACKS, State
from optimizer.problem import (
    COLUMN,
    HARD,
    HARD_RACK,
    HARD_WEIGHT,
    HIGH,
    KIND,
    LIMIT,
    LOW,
    MISSED,
    RACK_GOAL,
    RACK_OF,
    RF,
    SETS,
    STATE,
    STRENGTH,
    Problem,
)


def hard_loads(problem: Problem) -> npt.NDArray[np.bool_]:
    """bool [G]: which goals are hard goals on loads."""
    return np.asarray((problem.goal[:, KIND] <= LIMIT) & (problem.goal[:, HARD] == 1))


def broken_goals(problem: Problem, state: State) -> npt.NDArray[np.int64]:
    """int64 [G]: number of active brokers that miss each hard goal on loads, though not for good; 0 for other goals."""
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    missed = (state.score[:, :COST] < 1.0) & (problem.table[:, :, MISSED] == 0.0)
    return np.where(hard_loads(problem), missed[active].sum(axis=0), 0).astype(np.int64)


class Standing(NamedTuple):
    """How good a placement is: open repairs, missed hard goals, brokers outside their target ranges, low scores, and potential.

    `potential` float64 [n] is the potential of each active broker, with hard goals at full weight and without the terms that prefer the
    middle of a range; `hard` float64 [n] is the part of hard goals on loads in it.

    `urgent` counts replicas and leaderships on dead and draining brokers, replicas on brokers of other sets, and missing leaders.
    `undone` adds replicas in over-full racks. `broken` is the sum of `broken_goals`. `low` counts active brokers outside a target range.
    `violations` counts scores below 1, each of an active broker in a goal.
    """

    urgent: int
    undone: int
    broken: int
    low: int
    violations: int
    potential: npt.NDArray[np.float64]
    hard: npt.NDArray[np.float64]


def urgent(problem: Problem, state: State) -> int:
    """`Standing.urgent` of the placement."""
    states = problem.broker[:, STATE]
    leaving = np.flatnonzero((states == BrokerState.DEAD) | (states == BrokerState.DRAINING))
    led = sum(int(np.count_nonzero(state.mark[b, : state.hosts[b]] & LED)) for b in leaving.tolist())
    return int(state.hosts[leaving].sum()) + led + int(np.count_nonzero(state.lead < 0)) + len(strays(problem, state.replicas))


def undone(problem: Problem, state: State) -> int:
    """`Standing.undone` of the placement."""
    return urgent(problem, state) + int(state.units[RACKS].sum())


def standing_of(problem: Problem, state: State) -> Standing:
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    potential, hard = np.zeros((2, int(active.sum())))
    sum_potential(problem, state, np.flatnonzero(active), potential, hard)
    violations = int(np.count_nonzero(state.score[active, :COST] < 1.0))
    broken, first = int(broken_goals(problem, state).sum()), urgent(problem, state)
    return Standing(first, first + int(state.units[RACKS].sum()), broken, count_low(problem, state), violations, potential, hard)


@kernel
def sum_potential(problem: Problem, state: State, rows: np.ndarray, potential: np.ndarray, hard: np.ndarray) -> None:
    """Write `Standing.potential` and `Standing.hard` of brokers `rows`; `hard` has to be 0 before."""
    for i in range(len(rows)):
        b = rows[i]
        potential[i] = state.score[b, COST]
        for g in range(len(problem.goal)):
            if problem.goal[g, KIND] <= LIMIT:
                load = state.load[b, problem.goal[g, COLUMN]]
                high, low, mean, scale, _, _ = curve(problem, b, g)
                weight = HARD_WEIGHT if problem.goal[g, HARD] == 1 else problem.force[g, STRENGTH]
                beyond = cost_at(load, high, low, mean, scale, weight, 0.0)
                potential[i] -= linear_cost(problem, b, g, load) - beyond
                hard[i] += beyond if problem.goal[g, HARD] == 1 else 0.0
        potential[i] = max(potential[i], 0.0)


def count_low(problem: Problem, state: State) -> int:
    """How many active brokers are outside the target range of some goal (`is_out`)."""
    low = state.score[:, :COST] < 1.0
    rows = np.flatnonzero(low.any(axis=1) & (problem.broker[:, STATE] == BrokerState.ACTIVE))
    linear = np.flatnonzero(problem.goal[:, KIND] <= LIMIT)
    out = low[rows]
    load, table = state.load[np.ix_(rows, problem.goal[linear, COLUMN])], problem.table[rows][:, linear]
    out[:, linear] &= (load > table[:, :, HIGH]) | (load < table[:, :, LOW])
    return int(np.count_nonzero(out.any(axis=1)))


def same_rack_only(problem: Problem, state: State) -> int:
    """1 if every rack holds exactly its share of every partition, so that no replica may leave its rack; else 0."""
    racks = len(np.unique(problem.broker[problem.broker[:, STATE] == BrokerState.ACTIVE, RACK_OF]))
    if problem.setting[RACK_GOAL] != HARD_RACK or problem.setting[SETS] or not racks or any_differs(problem.partition[:, RF], racks):
        return 0
    return int(not state.units[RACKS].any())


def is_progress(before: Standing, after: Standing) -> bool:
    """Whether a round is worth its moves: it repairs, meets more hard goals, leaves fewer or no brokers outside, or lowers the potential.

    Repairs count first, urgent ones before others. The potential is that of the brokers that change, with hard goals on loads or without:
    hard limits that cannot be met weigh so much that they would hide the rest.
    """
    if (after.urgent, after.undone, after.broken) < (before.urgent, before.undone, before.broken) or after.low == 0 < before.low:
        return True
    if after.low < before.low or after.violations < before.violations:
        return bool(after.potential.sum() <= WORSE * before.potential.sum())
    changed = (before.potential != after.potential) | (before.hard != after.hard)
    old, new = before.potential[changed].sum(), after.potential[changed].sum()
    soft, soft_after = old - before.hard[changed].sum(), new - after.hard[changed].sum()
    return bool(old - new > LEAST_PROGRESS * old or (soft - soft_after > LEAST_PROGRESS * soft and new <= old))
