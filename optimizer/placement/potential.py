"""The potential: each broker's part of it, and by how much that rises when the broker gains or loses a replica or a role.

The scores of brokers are computed here, too, from the same sums. `docs/search.md` has the formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from goals.score import distribution_score, limit_score, units_score
from kernels.compiled import inner, part, whole
from kernels.lanes import either, larger
from optimizer.parameters import COST_ADDED
from optimizer.placement.state import RACKS, State, is_active
from optimizer.placement.topic_counts import misplaced_rise
from optimizer.problem import (
    ABSOLUTE,
    BOUND,
    CEILING,
    COLUMN,
    COUNTS_LEADERS,
    DISTRIBUTION,
    HARD,
    HIGH,
    KIND,
    LEADING,
    LIMIT,
    LOW,
    MEAN,
    MIN_LOAD,
    RACK,
    RACK_LIMIT,
    RACK_OF,
    SCALE,
    SPREAD,
    STEEP,
    STRENGTH,
    TOPIC_ROW,
    VAR,
    Problem,
)

NOTHING = -1  # role of a broker that holds no replica of the partition


@inner
def rack_units(problem: Problem, state: State, p: int, sign: float) -> int:
    """Excess replicas of partition `p` in its racks; adds `sign` to the `units` of each broker that holds it in an over-full rack."""
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
    """Whether two replicas of partition `p` are in the same rack."""
    for s in range(1, state.replicas.shape[1]):
        b = state.replicas[p, s]
        for o in range(s if b >= 0 else 0):
            other = state.replicas[p, o]
            if other >= 0 and problem.broker[other, RACK_OF] == problem.broker[b, RACK_OF]:
                return True
    return False


@inner
def assess(problem: Problem, state: State, b: int, score: np.ndarray) -> float:
    """The part of the potential that broker `b` has; writes its score in each goal into `score` float64 [G or more]."""
    cost = 0.0
    eligible = is_active(problem, b)
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
    """Update the rack scores of broker `b`, whose loads did not change. Its part of the potential has no racks, so it stays."""
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == RACK:
            state.score[b, g] = units_score(state.units[RACKS, b])


@part
def cost_at(load: float, high: float, low: float, mean: float, scale: float, strength: float, spread: float) -> float:
    """The part of the potential of a broker with `load`, in one goal on loads: the formula of `docs/search.md`, which is only here.

    The parameters are plain numbers, so that a loop over replicas or brokers can compute many at a time (`kernels.lanes`).
    """
    beyond = larger(larger(load - high, low - load), 0.0) * scale
    off, square = (load - mean) * scale, beyond * beyond
    return strength * square * (1.0 + STEEP * square) + spread * off * off  # type: ignore[no-any-return]


@part
def slope_at(load: float, high: float, low: float, mean: float, scale: float, strength: float, spread: float) -> float:
    """By how much `cost_at` rises for each unit of load: its derivative."""
    over, under = load - high, low - load
    beyond = (over if over > 0.0 else (-under if under > 0.0 else 0.0)) * scale
    return 2.0 * scale * (strength * beyond * (1.0 + 2.0 * STEEP * beyond * beyond) + spread * (load - mean) * scale)


@inner
def curve(problem: Problem, b: int, g: int) -> tuple[float, float, float, float, float, float]:
    """The parameters of `cost_at` after the load, for broker `b` in goal `g` on loads: upper and lower end of the range, mean, scale,
    strength, spread."""
    row = problem.table[b, g]
    return row[HIGH], row[LOW], row[MEAN], row[SCALE], problem.force[g, STRENGTH], problem.force[g, SPREAD]


@inner
def linear_cost(problem: Problem, b: int, g: int, load: float) -> float:
    """The part of the potential that broker `b` would have in goal `g` on loads if its load were `load`."""
    high, low, mean, scale, w, e = curve(problem, b, g)
    return float(cost_at(load, high, low, mean, scale, w, e))


@inner
def is_out(problem: Problem, state: State, b: int, g: int) -> bool:
    """Whether broker `b` is outside its target range in goal `g`, farther than is unavoidable (`optimizer.search.irreducible`)."""
    if state.score[b, g] >= 1.0:
        return False
    if problem.goal[g, KIND] > LIMIT:
        return True
    load = state.load[b, problem.goal[g, COLUMN]]
    return bool(load > problem.table[b, g, HIGH] or load < problem.table[b, g, LOW])


@inner
def scores_low(problem: Problem, state: State, b: int) -> bool:
    """Whether broker `b` is eligible and `is_out` in any goal."""
    if not is_active(problem, b):
        return False
    for g in range(len(problem.goal)):
        if is_out(problem, state, b, g):
            return True
    return False


# wide: the replica that comes and the one that goes, each with its role
@inner
def more_load(problem: Problem, c: int, p: int, now: int, q: int, was: int) -> float:
    """The load in column `c` that a broker gains with a replica of `p` in role `now` in exchange for one of `q` in role `was`.

    Roles are `NOTHING` (no replica), `FOLLOWING` and `LEADING`.
    """
    more = 0.0
    if now != NOTHING:
        more += problem.vector[p, now, c]
    if was != NOTHING:
        more -= problem.vector[q, was, c]
    return float(more)


# wide: the replica that comes and the one that goes, each with its role
@inner
def rise_by_loads(problem: Problem, state: State, b: int, p: int, now: int, q: int, was: int) -> float:
    """By how much the potential of broker `b` in goals on loads rises with a replica of `p` in role `now` in exchange for one of `q` in
    role `was`."""
    rise = 0.0
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT and problem.table[b, g, SCALE] > 0.0:
            load, more = state.load[b, problem.goal[g, COLUMN]], more_load(problem, problem.goal[g, COLUMN], p, now, q, was)
            if more != 0.0:
                rise += linear_cost(problem, b, g, load + more) - linear_cost(problem, b, g, load)
    return rise


@inner
def cost_of_gaining(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    """By how much the potential of broker `b` rises when its role in `p` changes from `held` to `role` (`NOTHING`: no replica)."""
    cost = rise_by_loads(problem, state, b, p, role, p, held)
    for k in range(len(problem.topic_goal)):
        cost += topic_cost(problem, state, k, b, p, held, role)
    return cost


@inner
def topic_cost(problem: Problem, state: State, k: int, b: int, p: int, held: int, role: int) -> float:
    """The part of `cost_of_gaining` in topic goal `k`."""
    if problem.topic_goal[k, COUNTS_LEADERS] == 1:
        by = (1 if role == LEADING else 0) - (1 if held == LEADING else 0)
    else:
        by = (1 if role != NOTHING else 0) - (1 if held != NOTHING else 0)
    if by == 0:
        return 0.0
    rise = misplaced_rise(problem, state, k, whole(problem.topic[p]), b, whole(by))
    return float(problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH] * rise)


@inner
def exposed_goals(problem: Problem) -> np.ndarray:
    """int64: goals on loads in which a broker that `may_host` a replica can get worse: all but hard limits, within which it stays."""
    felt = np.zeros(len(problem.goal), np.int64)
    count = 0
    for g in range(len(problem.goal)):
        kind = problem.goal[g, KIND]
        if kind == DISTRIBUTION or (kind == LIMIT and problem.goal[g, HARD] == 0):
            felt[count] = g
            count += 1
    return felt[:count]


@inner
def thrift_of(problem: Problem, p: Any) -> Any:
    """Factor on the gain of a move of partition `p` (outside kernels also int64 [n]): 1 at the mean cost, less at a higher one."""
    return (1.0 + COST_ADDED) / (COST_ADDED + problem.cost[p] / problem.typical[0])


@inner
def price(problem: Problem, home: np.ndarray, entry: Any, b: int) -> Any:
    """The cost of replica `entry` on broker `b`: 0 if its partition is there in `home` int64 [P, R], else of a move; also for arrays."""
    p, stood = entry // home.shape[1], entry < 0  # False so far
    for o in range(home.shape[1]):
        stood = stood | (home[p, o] == b)
    return either(stood, 0.0, problem.cost[p])


@inner
def badness(problem: Problem, state: State, b: int, weighted: bool) -> float:
    """Squared relative distance of broker `b` from its target ranges, summed over goals on loads; each times its strength if `weighted`."""
    cost = 0.0
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT:
            load = state.load[b, problem.goal[g, COLUMN]]
            over, under = load - problem.table[b, g, HIGH], problem.table[b, g, LOW] - load
            beyond = over if over > 0.0 else (under if under > 0.0 else 0.0)
            beyond *= problem.table[b, g, SCALE]
            cost += (problem.force[g, STRENGTH] if weighted else 1.0) * beyond * beyond
    return cost


@inner
def is_low(problem: Problem, state: State, b: int) -> bool:
    """Whether broker `b` is eligible and `is_out` in a goal on loads."""
    if not is_active(problem, b):
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT and is_out(problem, state, b, g):
            return True
    return False
