"""Fewer moves for the same balance: what left a broker goes home, and one replica fewer leaves it.

Called by `rounds` on a target where a move costs the same whatever it carries, as with shared storage. No broker scores lower in any
goal for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cluster_model.compiled import inner, inner_as, kernel, whole
from optimizer.problem import CEILING, COLUMN, FOLLOWING, KIND, LEADING, LIMIT, MEAN, STATE, Problem
from optimizer.search import uncompiled
from optimizer.search.broker_scores import linear_cost
from optimizer.search.costs import NOTHING
from optimizer.search.homeward import leaves_band, scores_hold
from optimizer.search.hosting import may_host
from optimizer.search.order import ascending
from optimizer.search.state import State
from optimizer.search.strays import MANY, extent, list_by_home, list_present, put
from optimizer.search.swaps import may_swap
from optimizer.search.windows import band_of, linear_goals

GROUP = 12  # replicas that go home together, at most: the smallest
ATTEMPTS = 8  # at other replicas, where some find no broker to go to
CHANGES = 8  # of one replica that is to leave for another
LOAD, LOW, HIGH, SCALE = 0, 1, 2, 3  # of `Group.need`
ENDLESS = 1e300  # in the place of an infinite load, which would make numbers that are none


class Group(NamedTuple):
    """Replicas of one broker that went home, and what has to leave it instead; W goals on loads.

    Row 0 of `broker`, `before` and `need` is the broker itself; the others are those where the replicas had gone, and where others go.
    """

    linear: np.ndarray  # int64 [W], rows of the goals
    member: np.ndarray  # int64 [GROUP], entries (partition * R + slot) that went home
    there: np.ndarray  # int64 [GROUP], where they had been
    broker: np.ndarray  # int64 [2 GROUP + 1]
    before: np.ndarray  # float64 [2 GROUP + 1, G], scores with the members away
    need: np.ndarray  # float64 [2 GROUP + 1, W, 4]: load with the members at home, least and most that is no worse, 1 / mean
    entry: np.ndarray  # int64 [n], what may leave
    amount: np.ndarray  # float64 [W, n], its loads
    free: np.ndarray  # uint8 [n], 1 where it is not chosen and not ruled out
    chosen: np.ndarray  # int64 [GROUP], indices of `entry`
    goes: np.ndarray  # int64 [GROUP], to which row of `broker`; 0 anywhere


@kernel
def regroup(problem: Problem, state: State, home: np.ndarray, moved: np.ndarray) -> int:
    """Let one replica fewer leave a broker as often as that can be found; returns how often.

    `home` int64 [P, R] is where replicas were; `moved` int64 are the partitions among which are all that stand elsewhere.

    Notes
    -----
    For a group of n of a broker's m replicas, O(n m) for each time that one of them is changed for another.
    """
    brokers, slots, goals = len(problem.broker), state.replicas.shape[1], len(problem.goal)
    linear = linear_goals(problem)
    count = len(linear)
    room = state.hosted.shape[1] + 1
    group = Group(
        linear, np.zeros(GROUP, np.int64), np.zeros(GROUP, np.int64), np.zeros(2 * GROUP + 1, np.int64),
        np.zeros((2 * GROUP + 1, goals)), np.zeros((2 * GROUP + 1, count, 4)), np.zeros(room, np.int64), np.zeros((count, room)),
        np.zeros(room, np.uint8), np.zeros(GROUP, np.int64), np.zeros(GROUP, np.int64),
    )  # fmt: skip
    starts = np.zeros(brokers + 1, np.int64)
    strays = list_by_home(state, home, moved, starts)
    row = np.zeros(slots, np.int64)
    found = 0
    for v in range(brokers):
        if problem.broker[v, STATE] != 0:
            continue
        left = starts[v + 1] - starts[v]
        mine = strays[starts[v] : starts[v + 1]]
        while 1 < left <= MANY:
            sizes = np.zeros(left)
            for i in range(left):
                sizes[i] = extent(problem, state, group.linear, v, mine[i])
            order = ascending(sizes)
            n, met = bring_home(problem, state, group, v, mine, order, row)
            if n < 2 or not send_fewer(problem, state, home, group, v, n, met, row):
                for i in range(n - 1, -1, -1):
                    put(problem, state, group.member[i], group.there[i], row)
                break
            found += 1
            kept = 0
            for i in range(left):
                if state.replicas[mine[i] // slots, mine[i] % slots] != v:
                    known = False
                    for j in range(n - 1):
                        known = known or group.entry[group.chosen[j]] == mine[i]
                    if not known:
                        mine[kept] = mine[i]
                        kept += 1
            for j in range(n - 1):
                mine[kept + j] = group.entry[group.chosen[j]]
            left = kept + n - 1
    return found


@inner
def meet(problem: Problem, state: State, group: Group, met: int, b: int) -> int:
    """Take broker `b` into the group as it stands, unless it is in it; returns how many there are."""
    for i in range(met):
        if group.broker[i] == b:
            return met
    group.broker[met] = b
    for g in range(len(problem.goal)):
        group.before[met, g] = state.score[b, g]
    for k in range(len(group.linear)):
        g = group.linear[k]
        low, high = band_of(problem, state, b, g)
        level = problem.table[b, g, CEILING] if problem.goal[g, KIND] == LIMIT else problem.table[b, g, MEAN]
        group.need[met, k, LOW], group.need[met, k, HIGH] = max(low, -ENDLESS), min(high, ENDLESS)
        group.need[met, k, SCALE] = 1.0 / level if 0.0 < level < np.inf else 0.0
    return met + 1


@inner
def bring_home(
    problem: Problem, state: State, group: Group, v: int, mine: np.ndarray, order: np.ndarray, row: np.ndarray
) -> tuple[int, int]:
    """Send the first of `mine` in `order` home to `v`; returns how many, and how many brokers the group has then."""
    slots = state.replicas.shape[1]
    met = meet(problem, state, group, whole(0), v)
    n = whole(0)
    for i in range(len(order)):
        p, s = mine[order[i]] // slots, mine[order[i]] % slots
        if n == GROUP:
            break
        if may_swap(problem, state, p, s, v):
            group.member[n], group.there[n] = mine[order[i]], state.replicas[p, s]
            met = meet(problem, state, group, met, state.replicas[p, s])
            put(problem, state, mine[order[i]], v, row)
            n += 1
    return n, met


@inner
def send_fewer(
    problem: Problem, state: State, home: np.ndarray, group: Group, v: int, n: int, met: int, row: np.ndarray
) -> bool:
    """Let one replica fewer than the `n` that went home leave `v`; False, and nothing more changed, where that is not found."""
    held = list_present(problem, state, group.linear, home, v, group.amount, group.entry)
    for i in range(held):
        group.free[i] = 1
    for _ in range(ATTEMPTS):
        for i in range(met):
            for k in range(len(group.linear)):
                group.need[i, k, LOAD] = state.load[group.broker[i], problem.goal[group.linear[k], COLUMN]]
        if not choose(group, held, n - 1, met):
            return False
        bad = send(problem, state, group, v, n - 1, met, row)
        if bad < 0:
            return True
        group.free[bad] = 0
    return False


@inner
def choose(group: Group, held: int, m: int, met: int) -> bool:
    """Choose `m` replicas, and where some of them go, so that all of the group are in band; False where that is not found.

    First for the broker that needs most, then for the one that they leave; then one at a time is changed for another.
    """
    if m > held:
        return False
    for j in range(m):
        at, most = whole(0), 0.0
        for i in range(1, met):
            lack = distance(group.need[i])
            if lack > most:
                at, most = whole(i), lack
        best, _ = closest(group.amount, group.free, held, group.need[0], group.need[at], at > 0)
        if best < 0:
            for i in range(j):
                group.free[group.chosen[i]] = 1
            return False
        group.chosen[j], group.goes[j] = best, at
        take_out(group, j, 1.0)
    total = 0.0
    for i in range(met):
        total += distance(group.need[i])
    for _ in range(CHANGES):
        if total <= 0.0:
            break
        change, to, least = -1, whole(-1), total * (1.0 - 1e-9)
        for j in range(m):
            at = group.goes[j]
            rest = total - distance(group.need[0]) - (distance(group.need[at]) if at > 0 else 0.0)
            take_out(group, j, -1.0)
            best, off = closest(group.amount, group.free, held, group.need[0], group.need[at], at > 0)
            take_out(group, j, 1.0)
            if best >= 0 and rest + off < least:
                change, to, least = j, best, rest + off
        if change < 0:
            break
        take_out(group, change, -1.0)
        group.chosen[change] = to
        take_out(group, change, 1.0)
        total = 0.0
        for i in range(met):
            total += distance(group.need[i])
    for j in range(m):
        group.free[group.chosen[j]] = 1
    return total <= 0.0


@inner
def take_out(group: Group, j: int, sign: float) -> None:
    """Let choice `j` go, or with `sign` -1 come back."""
    i, at = group.chosen[j], group.goes[j]
    group.free[i] = 2 if sign > 0.0 else 1
    for k in range(len(group.linear)):
        group.need[0, k, LOAD] -= sign * group.amount[k, i]
        if at > 0:
            group.need[at, k, LOAD] += sign * group.amount[k, i]


@inner
def distance(need: np.ndarray) -> float:
    """How far a broker is out of its bands, as parts of means, summed over goals."""
    far = 0.0
    for k in range(len(need)):
        load = need[k, LOAD]
        if load > need[k, HIGH]:
            far += (load - need[k, HIGH]) * need[k, SCALE]
        elif load < need[k, LOW]:
            far += (need[k, LOW] - load) * need[k, SCALE]
    return far


@inner_as(uncompiled.closest)
def closest(
    amount: np.ndarray, free: np.ndarray, held: int, source: np.ndarray, target: np.ndarray, both: bool
) -> tuple[int, float]:
    """Which of `held` replicas leaves the source, and where `both` the target, nearest to their bands, and how far; -1 if none is free."""
    best, least = whole(-1), np.inf
    for i in range(held):
        if free[i] != 1:
            continue
        far = 0.0
        for k in range(len(source)):
            load = source[k, LOAD] - amount[k, i]
            if load > source[k, HIGH]:
                far += (load - source[k, HIGH]) * source[k, SCALE]
            elif load < source[k, LOW]:
                far += (source[k, LOW] - load) * source[k, SCALE]
            if both:
                load = target[k, LOAD] + amount[k, i]
                if load > target[k, HIGH]:
                    far += (load - target[k, HIGH]) * target[k, SCALE]
                elif load < target[k, LOW]:
                    far += (target[k, LOW] - load) * target[k, SCALE]
        if far < least:
            best, least = whole(i), far
    return best, least


@inner
def send(problem: Problem, state: State, group: Group, v: int, m: int, met: int, row: np.ndarray) -> int:
    """Move what was chosen, the largest first. Returns -1; or a choice that has to be another, and nothing is changed."""
    slots = state.replicas.shape[1]
    keys = np.zeros(m)
    for j in range(m):
        keys[j] = -extent(problem, state, group.linear, v, group.entry[group.chosen[j]])
        if group.goes[j] > 0:
            keys[j] -= ENDLESS
    order = ascending(keys)
    done = 0
    bad = whole(-1)
    for i in range(m):
        j = order[i]
        p, s = group.entry[group.chosen[j]] // slots, group.entry[group.chosen[j]] % slots
        target = group.broker[group.goes[j]] if group.goes[j] > 0 else roomiest(problem, state, group.linear, p, s)
        if target < 0 or not may_host(problem, state, p, s, target):
            bad = group.chosen[j]
            break
        met = meet(problem, state, group, met, target)
        put(problem, state, group.entry[group.chosen[j]], target, row)
        done += 1
    if bad < 0 and scores_hold(state, group.broker, met, group.before):
        return whole(-1)
    for i in range(done - 1, -1, -1):
        entry = group.entry[group.chosen[order[i]]]
        put(problem, state, entry, v, row)
    return bad if bad >= 0 else group.chosen[order[0]]


@inner
def roomiest(problem: Problem, state: State, linear: np.ndarray, p: int, s: int) -> int:
    """The broker that stays in band with slot `s` of `p` and likes it best, by the potential, then by what it has most of; -1 if none."""
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    best, least, lowest = whole(-1), np.inf, np.inf
    for u in range(len(problem.broker)):
        if not may_host(problem, state, p, s, u) or leaves_band(problem, state, u, p, whole(NOTHING), role):
            continue
        rise, level = 0.0, 0.0
        for g in linear:
            load, x = state.load[u, problem.goal[g, COLUMN]], problem.vector[p, role, problem.goal[g, COLUMN]]
            rise += linear_cost(problem, u, g, load + x) - linear_cost(problem, u, g, load)
            top = problem.table[u, g, CEILING] if problem.goal[g, KIND] == LIMIT else problem.table[u, g, MEAN]
            if top > 0.0:
                level = max(level, (load + x) / top)
        if rise < least or (rise == least and level < lowest):
            best, least, lowest = whole(u), rise, level
    return best
