"""A few brokers and the replicas on them that may change places, apart from all others: what `repack` anneals.

Loads and counts of topics are kept here alone; the state is only read.
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
    HARD_WEIGHT,
    HIGH,
    LEADING,
    LOW,
    MEAN,
    MOVABLE,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    SCALE,
    STRENGTH,
    TOPIC_ROW,
    Problem,
)
from optimizer.search.feasible import in_set
from optimizer.search.state import State
from optimizer.search.topic_counts import topic_band, topic_holds

TOP, BOTTOM, WEIGHT, COUNT = 0, 1, 2, 3  # columns of `Pool.band`


class Prices(NamedTuple):
    """What weighs 1 in a pool: the cost of a move, and the strength of a goal."""

    move: float
    goal: float


class Pool(NamedTuple):
    """n replicas on K brokers; G goals on loads; T topic goals, t topics."""

    group: np.ndarray  # int64 [K], broker rows
    entry: np.ndarray  # int64 [n], as in `hosted`
    side: np.ndarray  # int64 [n], which of the brokers
    free: np.ndarray  # int64 [m], replicas that may move
    mate: np.ndarray  # int64 [n, R], other replicas of the same partition on these brokers, -1 none
    rack: np.ndarray  # int64 [K]
    most: np.ndarray  # int64 [n], replicas of the same partition that a rack may hold
    beside: np.ndarray  # int64 [n, K], replicas of the same partition in the broker's rack, on other brokers than these
    vector: np.ndarray  # float64 [n, G]
    price: np.ndarray  # float64 [n, K], of a replica on a broker where the plan did not find it, over that of a typical one
    berth: np.ndarray  # int64 [n], the broker where it has no price, -1 none
    band: np.ndarray  # float64 [K, G, 4]: its ends, what a load of 1 beyond them weighs, and as how many brokers one counts then
    load: np.ndarray  # float64 [K, G]
    topic: np.ndarray  # int64 [n], -1 where topics have no goal
    leads: np.ndarray  # uint8 [n]
    held: np.ndarray  # int64 [T, K, t]
    counts: np.ndarray  # int64 [T, K, t, 2], least and most of a topic
    units: np.ndarray  # float64 [T, K], misplaced replicas of all topics
    by_leaders: np.ndarray  # uint8 [T]
    unit: np.ndarray  # float64 [T], what a misplaced one weighs


@inner
def pool_of(problem: Problem, state: State, goals: np.ndarray, group: np.ndarray, prices: Prices) -> Pool:
    """The pool of brokers `group` int64 [K], which are of one set."""
    slots, members, kinds = state.replicas.shape[1], len(group), len(problem.topic_goal)
    n = 0
    for b in group:
        n += state.hosts[b]
    entry, side, free, topic = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    vector, price = np.zeros((n, len(goals))), np.zeros((n, members))
    berth = np.full(n, -1, np.int64)
    leads, known = np.zeros(n, np.uint8), np.full(len(problem.topic_first) if kinds else 0, -1, np.int64)
    names = np.zeros(len(known), np.int64)
    mate, first = np.full((n, slots), -1, np.int64), np.zeros(members, np.int64)
    rack, most, beside = np.zeros(members, np.int64), np.full(n, slots, np.int64), np.zeros((n, members), np.int64)
    for k in range(members):
        rack[k] = problem.broker[group[k], RACK_OF]
        if k > 0:
            first[k] = first[k - 1] + state.hosts[group[k - 1]]
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
            if problem.partition[p, MOVABLE] == 1 and in_set(problem, p, b):
                find_mates(problem, state, p, s, group, first, mate[at], beside[at])
                if problem.setting[RACK_GOAL] == HARD_RACK:
                    most[at] = problem.partition[p, RACK_LIMIT]
                for o in range(members):
                    price[at, o] = price_of(problem, state, p, group[o], prices.move)
                    if price[at, o] == 0.0 and (berth[at] < 0 or group[o] == state.home[p, s]):
                        berth[at] = o
                free[free_count] = at
                free_count += 1
            at += 1
    band, load = bands_of(problem, state, goals, group, prices.goal)
    held, counts = np.zeros((kinds, members, topics), np.int64), np.zeros((kinds, members, topics, 2), np.int64)
    units, by_leaders, unit = np.zeros((kinds, members)), np.zeros(kinds, np.uint8), np.zeros(kinds)
    for j in range(kinds):
        by_leaders[j] = problem.topic_goal[j, COUNTS_LEADERS]
        unit[j] = problem.force[problem.topic_goal[j, TOPIC_ROW], STRENGTH] / prices.goal
        for k in range(members):
            units[j, k] = state.units[j, group[k]]
            for t in range(topics):
                held[j, k, t] = topic_holds(problem, state, j, names[t], group[k])
                counts[j, k, t, 0], counts[j, k, t, 1] = topic_band(problem, j, names[t], group[k])
    return Pool(
        group, entry, side, free[:free_count], mate, rack, most, beside, vector, price, berth, band, load, topic, leads, held, counts,
        units, by_leaders, unit,
    )  # fmt: skip


@inner
def bands_of(problem: Problem, state: State, goals: np.ndarray, group: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
    """Bands and loads of the brokers `group` in `goals`, as `Pool` has them."""
    members = len(group)
    band, load = np.zeros((members, len(goals), 4)), np.zeros((members, len(goals)))
    for k in range(members):
        for g in range(len(goals)):
            table = problem.table[group[k], goals[g]]
            band[k, g, TOP], band[k, g, BOTTOM] = max(table[HIGH], table[MEAN] + table[BOUND]), min(table[LOW], table[MEAN] - table[BOUND])
            band[k, g, WEIGHT] = table[SCALE] * problem.force[goals[g], STRENGTH] / weight
            band[k, g, COUNT] = members if problem.force[goals[g], STRENGTH] >= HARD_WEIGHT else 1
            load[k, g] = state.load[group[k], problem.goal[goals[g], COLUMN]]
    return band, load


@inner
def find_mates(
    problem: Problem, state: State, p: int, s: int, group: np.ndarray, first: np.ndarray, mate: np.ndarray, beside: np.ndarray
) -> None:
    """Other replicas of partition `p` than slot `s`: those on brokers of `group` into `mate` int64 [R], the number of others in the rack of
    each broker of the group into `beside` int64 [K]. `first` says with which index of the pool each broker begins."""
    found = 0
    for o in range(state.replicas.shape[1]):
        b, within = state.replicas[p, o], False
        if o == s or b < 0:
            continue
        for k in range(len(group)):
            if b == group[k]:
                mate[found] = first[k] + state.place[p, o]
                found += 1
                within = True
        for k in range(0 if within else len(group)):
            if problem.broker[group[k], RACK_OF] == problem.broker[b, RACK_OF]:
                beside[k] += 1


@inner
def keeps_racks(pool: Pool, i: int, b: int, j: int) -> bool:
    """Whether replica `i` may go to broker `b` of the pool, where `j` makes room, under the rule of racks; as `feasible.fits_rack`."""
    old, new = pool.rack[pool.side[i]], pool.rack[b]
    if pool.most[i] == len(pool.mate[i]) or old == new:
        return True
    left, came = pool.beside[i, pool.side[i]] + 1, pool.beside[i, b] + 1
    for m in pool.mate[i]:
        if m < 0:
            continue
        if m == j:  # they change places
            return True
        if pool.rack[pool.side[m]] == old:
            left += 1
        elif pool.rack[pool.side[m]] == new:
            came += 1
    return bool((left > 1 or came == 1) and (came <= pool.most[i] or left > pool.most[i]))


@inner
def meets_mate(pool: Pool, i: int, b: int, j: int) -> bool:
    """Whether another replica of the same partition than `i` and `j` stands on broker `b` of the pool."""
    for m in pool.mate[i]:
        if m >= 0 and m != j and pool.side[m] == b:
            return True
    return False


@inner
def price_of(problem: Problem, state: State, p: int, b: int, typical: float) -> float:
    """What a replica of `p` costs on broker `b`, over what a typical one costs: nothing where the plan found one."""
    for o in range(state.home.shape[1]):
        if state.home[p, o] == b:
            return 0.0
    return float(problem.cost[p] / typical)


@inner
def excess(pool: Pool, k: int) -> tuple[int, float]:
    """1 where broker `k` of the pool is outside a band or has misplaced replicas of a topic, as many as there are brokers where the band is
    of a hard goal, else 0; and by how much in all."""
    total, out = 0.0, 0
    for g in range(pool.load.shape[1]):
        band, load = pool.band[k, g], pool.load[k, g]
        if band[WEIGHT] > 0.0 and (load > band[TOP] or load < band[BOTTOM]):
            total += band[WEIGHT] * max(load - band[TOP], band[BOTTOM] - load)
            out = max(out, int(band[COUNT]))
    for j in range(len(pool.units)):
        if pool.units[j, k] > 0.0:
            total += pool.unit[j] * pool.units[j, k]
            out = max(out, 1)
    return out, float(total)


@inner
def paid_for(pool: Pool) -> float:
    """Prices of all replicas where they stand."""
    paid = 0.0
    for i in pool.free:
        paid += pool.price[i, pool.side[i]]
    return float(paid)


@inner
def put(pool: Pool, i: int, j: int, a: int, b: int) -> None:
    """Replica `i` goes from broker `a` to `b` and `j`, unless -1, from `b` to `a`."""
    for g in range(pool.load.shape[1]):
        amount = pool.vector[i, g]
        if j >= 0:
            amount -= pool.vector[j, g]
        pool.load[a, g] -= amount
        pool.load[b, g] += amount
    pool.side[i] = b
    if j >= 0:
        pool.side[j] = a
    if len(pool.units) > 0:
        recount(pool, i, a, b)
        if j >= 0:
            recount(pool, j, b, a)


@inner
def go_to(pool: Pool, side: np.ndarray) -> None:
    """Every replica to its `side` int64 [n]."""
    for i in pool.free:
        if pool.side[i] != side[i]:
            put(pool, i, whole(-1), whole(pool.side[i]), whole(side[i]))


@inner
def recount(pool: Pool, i: int, a: int, b: int) -> None:
    """Counts of topics when replica `i` goes from broker `a` to `b`."""
    for j in range(len(pool.units)):
        if pool.by_leaders[j] == 0 or pool.leads[i] == 1:
            count_one(pool, j, a, pool.topic[i], whole(-1))
            count_one(pool, j, b, pool.topic[i], whole(1))


@inner
def count_one(pool: Pool, j: int, k: int, t: int, by: int) -> None:
    """One replica of a topic more or less on broker `k`."""
    count, low, high = pool.held[j, k, t], pool.counts[j, k, t, 0], pool.counts[j, k, t, 1]
    pool.units[j, k] += max(low - count - by, 0, count + by - high) - max(low - count, 0, count - high)
    pool.held[j, k, t] = count + by
