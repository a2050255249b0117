"""A few brokers and the replicas on them that may change places, apart from all others: what `repack` anneals.

Loads, costs and counts of topics are kept here alone; the state is only read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, whole
from optimizer.problem import (
    BOUND,
    COLUMN,
    COUNTS_LEADERS,
    FOLLOWING,
    HARD_RACK,
    HIGH,
    LEADING,
    LOW,
    MEAN,
    MOVABLE,
    RACK_GOAL,
    SCALE,
    SPREAD,
    STATE,
    STRENGTH,
    TOPIC_ROW,
    Problem,
)
from optimizer.search.feasible import may_swap
from optimizer.search.potential import cost_at
from optimizer.search.state import State
from optimizer.search.topic_counts import topic_band, topic_holds

HINGE_HIGH, HINGE_LOW, MIDDLE, UNIT, WEIGHT, CENTER, TOP, BOTTOM = range(8)  # columns of `Pool.shape`


class Pool(NamedTuple):
    """n replicas on K brokers; G goals on loads; T topic goals, t topics."""

    group: np.ndarray  # int64 [K], broker rows
    entry: np.ndarray  # int64 [n], as in `hosted`
    side: np.ndarray  # int64 [n], which of the brokers
    free: np.ndarray  # int64 [m], replicas that may go to another of the brokers
    mate: np.ndarray  # int64 [n, R], other replicas of the same partition on these brokers, -1 none
    vector: np.ndarray  # float64 [n, G]
    may: np.ndarray  # uint8 [n, K]
    fare: np.ndarray  # float64 [n, K]
    berth: np.ndarray  # int64 [n], the broker where it costs no fare, -1 none
    shape: np.ndarray  # float64 [K, G, 8]: hinges, middle, unit, weights, ends of the band
    load: np.ndarray  # float64 [K, G]
    cost: np.ndarray  # float64 [K, G]
    topic: np.ndarray  # int64 [n], -1 where topics have no goal
    leads: np.ndarray  # uint8 [n]
    held: np.ndarray  # int64 [T, K, t]
    band: np.ndarray  # int64 [T, K, t, 2]
    units: np.ndarray  # float64 [T, K], misplaced replicas of all topics
    by_leaders: np.ndarray  # uint8 [T]
    unit: np.ndarray  # float64 [T], potential of one misplaced replica
    fresh: np.ndarray  # float64 [2, G], scratch: costs of two brokers after a step
    start: np.ndarray  # float64 [1], the potential at first


@inner
def pool_of(problem: Problem, state: State, goals: np.ndarray, group: np.ndarray, typical: float, fare_each: float) -> Pool:
    """The pool of brokers `group` int64 [K]. Where racks are a hard goal, two replicas of a partition among them only change places.

    A replica of `typical` size away from where the plan found it costs about `fare_each`.
    """
    slots, members, kinds = state.replicas.shape[1], len(group), len(problem.topic_goal)
    n = 0
    for b in group:
        n += state.hosts[b]
    entry, side, free, topic = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    vector, may, fare = np.zeros((n, len(goals))), np.zeros((n, members), np.uint8), np.zeros((n, members))
    berth = np.full(n, -1, np.int64)
    leads, known = np.zeros(n, np.uint8), np.full(len(problem.topic_first) if kinds else 0, -1, np.int64)
    names = np.zeros(len(known), np.int64)
    mate, first = np.full((n, slots), -1, np.int64), np.zeros(members, np.int64)
    for k in range(members - 1):
        first[k + 1] = first[k] + state.hosts[group[k]]
    at, free_count, topics = 0, 0, 0
    for k in range(members):
        b = group[k]
        for i in range(state.hosts[b]):
            e = whole(state.hosted[b, i])
            p, s = e // slots, e % slots
            entry[at], side[at], leads[at] = e, k, 1 if state.lead[p] == s else 0
            role = LEADING if leads[at] == 1 else FOLLOWING
            for g in range(len(goals)):
                vector[at, g] = problem.vector[p, role, problem.goal[goals[g], COLUMN]]
            if kinds:
                t = whole(problem.topic[p])
                if known[t] < 0:
                    known[t], names[topics] = topics, t
                    topics += 1
                topic[at] = known[t]
            if problem.partition[p, MOVABLE] == 1:
                alone = find_mates(state, p, s, group, first, mate[at])
                for o in range(members):
                    fare[at, o] = fare_each * fare_of(problem, state, p, group[o], typical)
                    if o == k or may_stand(problem, state, p, s, group[o], alone):
                        may[at, o] = 1
                        if fare[at, o] == 0.0 and (berth[at] < 0 or group[o] == state.home[p, s]):
                            berth[at] = o
                choices = 0
                for o in range(members):  # a sum by numpy would have a compiled kernel import linear algebra
                    choices += may[at, o]
                if choices > 1:
                    free[free_count] = at
                    free_count += 1
            at += 1
    shape, load, cost = np.zeros((members, len(goals), 8)), np.zeros((members, len(goals))), np.zeros((members, len(goals)))
    for k in range(members):
        for g in range(len(goals)):
            put_shape(problem, group[k], goals[g], shape[k, g])
            load[k, g] = state.load[group[k], problem.goal[goals[g], COLUMN]]
            cost[k, g] = shape_cost(shape[k, g], load[k, g])
    count, band = np.zeros((kinds, members, topics), np.int64), np.zeros((kinds, members, topics, 2), np.int64)
    units, by_leaders, unit = np.zeros((kinds, members)), np.zeros(kinds, np.uint8), np.zeros(kinds)
    for j in range(kinds):
        by_leaders[j] = problem.topic_goal[j, COUNTS_LEADERS]
        unit[j] = problem.force[problem.topic_goal[j, TOPIC_ROW], STRENGTH]
        for k in range(members):
            units[j, k] = state.units[j, group[k]]
            for t in range(topics):
                count[j, k, t] = topic_holds(problem, state, j, names[t], group[k])
                band[j, k, t, 0], band[j, k, t, 1] = topic_band(problem, j, names[t], group[k])
    pool = Pool(
        group, entry, side, free[:free_count], mate, vector, may, fare, berth, shape, load, cost, topic, leads, count, band, units,
        by_leaders, unit, np.zeros((2, len(goals))), np.zeros(1),
    )  # fmt: skip
    pool.start[0] = potential_of(pool)
    return pool


@inner
def find_mates(state: State, p: int, s: int, group: np.ndarray, first: np.ndarray, mate: np.ndarray) -> bool:
    """Other replicas of partition `p` than slot `s` on brokers of `group`, into `mate` int64 [R]; `first` says with which index of the pool
    each broker begins. Whether there are none."""
    found = 0
    for o in range(state.replicas.shape[1]):
        for k in range(len(group)):
            if o != s and state.replicas[p, o] == group[k]:
                mate[found] = first[k] + state.place[p, o]
                found += 1
    return found == 0


@inner
def may_stand(problem: Problem, state: State, p: int, s: int, b: int, alone: bool) -> bool:
    """Whether slot `s` of partition `p`, which has no other replica in the pool (`alone`) or has some, may go to broker `b`."""
    if alone:
        return may_swap(problem, state, p, s, b)
    for o in range(state.replicas.shape[1]):
        if state.replicas[p, o] == b:  # as the place of another slot of the pool
            return True
    return bool(problem.setting[RACK_GOAL] != HARD_RACK)


@inner
def meets_mate(pool: Pool, i: int, b: int, j: int) -> bool:
    """Whether another replica of the same partition than `i` and `j` stands on broker `b` of the pool."""
    for m in pool.mate[i]:
        if m >= 0 and m != j and pool.side[m] == b:
            return True
    return False


@inner
def fare_of(problem: Problem, state: State, p: int, b: int, typical: float) -> float:
    """What it costs to have a replica of `p` on broker `b`, over what a typical one costs: nothing where the plan found one."""
    for o in range(state.home.shape[1]):
        if state.home[p, o] == b:
            return 0.0
    return float(problem.cost[p] / typical)


@inner
def put_shape(problem: Problem, b: int, g: int, shape: np.ndarray) -> None:
    """Goal `g` on broker `b` into `shape` float64 [8]. A band ends where the score does, or at the hinge where that is farther."""
    table, active = problem.table[b, g], problem.broker[b, STATE] == 0
    shape[HINGE_HIGH], shape[HINGE_LOW] = table[HIGH], table[LOW]
    shape[MIDDLE], shape[UNIT] = table[MEAN], table[SCALE] if active else 0.0
    shape[WEIGHT], shape[CENTER] = problem.force[g, STRENGTH], problem.force[g, SPREAD]
    shape[TOP], shape[BOTTOM] = max(table[HIGH], table[MEAN] + table[BOUND]), min(table[LOW], table[MEAN] - table[BOUND])


@inner
def shape_cost(shape: np.ndarray, load: float) -> float:
    """As `linear_cost`, with what it needs in one row."""
    return float(cost_at(load, shape[HINGE_HIGH], shape[HINGE_LOW], shape[MIDDLE], shape[UNIT], shape[WEIGHT], shape[CENTER]))


@inner
def is_beyond(pool: Pool, k: int) -> bool:
    """Whether broker `k` of the pool is out of a band or of a topic's."""
    for g in range(pool.load.shape[1]):
        shape, load = pool.shape[k, g], pool.load[k, g]
        if shape[UNIT] > 0.0 and (load > shape[TOP] or load < shape[BOTTOM]):
            return True
    for j in range(len(pool.units)):
        if pool.units[j, k] > 0.0:
            return True
    return False


@inner
def toll_of(pool: Pool, i: int, j: int, a: int, b: int) -> float:
    """By how much fares rise when replica `i` goes from broker `a` to `b` and `j`, unless -1, from `b` to `a`."""
    toll = pool.fare[i, b] - pool.fare[i, a]
    if j >= 0:
        toll += pool.fare[j, a] - pool.fare[j, b]
    return float(toll)


@inner
def rise_of(pool: Pool, i: int, j: int, a: int, b: int) -> float:
    """By how much the potential rises with the same step. Leaves costs in `fresh`; counts of topics are those after the step."""
    rise = 0.0
    for g in range(pool.load.shape[1]):
        amount = pool.vector[i, g]
        if j >= 0:
            amount -= pool.vector[j, g]
        pool.fresh[0, g] = shape_cost(pool.shape[a, g], pool.load[a, g] - amount)
        pool.fresh[1, g] = shape_cost(pool.shape[b, g], pool.load[b, g] + amount)
        rise += pool.fresh[0, g] + pool.fresh[1, g] - pool.cost[a, g] - pool.cost[b, g]
    if len(pool.units) > 0:
        rise += recount(pool, i, a, b)
        if j >= 0:
            rise += recount(pool, j, b, a)
    return rise


@inner
def undo_counts(pool: Pool, i: int, j: int, a: int, b: int) -> None:
    """Counts of topics as they were before `rise_of`."""
    if len(pool.units) > 0:
        recount(pool, i, b, a)
        if j >= 0:
            recount(pool, j, a, b)


@inner
def put(pool: Pool, i: int, j: int, a: int, b: int) -> None:
    """The step that `rise_of` weighed."""
    for g in range(pool.load.shape[1]):
        amount = pool.vector[i, g]
        if j >= 0:
            amount -= pool.vector[j, g]
        pool.load[a, g] -= amount
        pool.load[b, g] += amount
        pool.cost[a, g], pool.cost[b, g] = pool.fresh[0, g], pool.fresh[1, g]
    pool.side[i] = b
    if j >= 0:
        pool.side[j] = a


@inner
def go_to(pool: Pool, side: np.ndarray) -> None:
    """Every replica to its `side` int64 [n]."""
    for i in pool.free:
        a, b = pool.side[i], side[i]
        if a != b:
            rise_of(pool, i, whole(-1), a, b)
            put(pool, i, whole(-1), a, b)


@inner
def potential_of(pool: Pool) -> float:
    """What the brokers of the pool have of the potential as they stand."""
    total = 0.0
    for k in range(len(pool.load)):
        for g in range(pool.load.shape[1]):
            total += shape_cost(pool.shape[k, g], pool.load[k, g])
        for j in range(len(pool.units)):
            total += pool.unit[j] * pool.units[j, k]
    return total


@inner
def recount(pool: Pool, i: int, a: int, b: int) -> float:
    """Counts of topics when replica `i` goes from broker `a` to `b`; returns by how much the potential rises."""
    rise, t = 0.0, pool.topic[i]
    for j in range(len(pool.units)):
        if pool.by_leaders[j] == 0 or pool.leads[i] == 1:
            rise += pool.unit[j] * (count_one(pool, j, a, t, whole(-1)) + count_one(pool, j, b, t, whole(1)))
    return rise


@inner
def count_one(pool: Pool, j: int, k: int, t: int, by: int) -> float:
    """One replica of a topic more or less on broker `k`; returns by how much its misplaced replicas rise."""
    count, low, high = pool.held[j, k, t], pool.band[j, k, t, 0], pool.band[j, k, t, 1]
    rise = float(max(low - count - by, 0, count + by - high) - max(low - count, 0, count - high))
    pool.held[j, k, t] = count + by
    pool.units[j, k] += rise
    return rise
