"""Which replicas leave a broker, fewer than did, so that it and those where they go stay in band.

Called by `regroup`. Loads alone are weighed here, nothing moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, whole
from optimizer.problem import CEILING, KIND, LIMIT, MEAN, Problem
from optimizer.search.replace import band_of
from optimizer.search.state import State

GROUP = 40  # replicas that go home together, at most; of more, one fewer is little for the time it takes
BROKERS = 4 * GROUP + 1  # that take part, at most, and moves for one group
CHANGES = 8  # of one replica that is to leave for another
LOAD, LOW, HIGH, SCALE = 0, 1, 2, 3  # of `Group.need`
ENDLESS = 1e300  # in the place of an infinite load, which would make numbers that are none


class Group(NamedTuple):
    """Replicas of one broker that went home, and what has to leave it instead; W goals on loads.

    Row 0 of `broker`, `before` and `need` is the broker itself; the others are those where the replicas had gone, and where others go.
    `step` and `source` are what was moved and from where, so that it can be taken back.
    """

    linear: np.ndarray  # int64 [W], rows of the goals
    member: np.ndarray  # int64 [GROUP], entries (partition * R + slot) that went home
    there: np.ndarray  # int64 [GROUP], where they had been
    broker: np.ndarray  # int64 [BROKERS]
    before: np.ndarray  # float64 [BROKERS, G], scores with the members away
    need: np.ndarray  # float64 [BROKERS, W, 4]: load with the members at home, least and most that is no worse, 1 / mean
    entry: np.ndarray  # int64 [n], what may leave
    amount: np.ndarray  # float64 [W, n], its loads
    free: np.ndarray  # uint8 [n], 1 where it is not chosen and not ruled out
    chosen: np.ndarray  # int64 [GROUP], indices of `entry`
    goes: np.ndarray  # int64 [GROUP], to which row of `broker`; 0 anywhere
    step: np.ndarray  # int64 [BROKERS], entries
    source: np.ndarray  # int64 [BROKERS], brokers
    extra: np.ndarray  # int64 [1], replicas of other brokers that may leave for the sake of those chosen
    far: np.ndarray  # float64 [n], room: how far each of `entry` would leave brokers out of band
    rise: np.ndarray  # float64 [B], room: of the potential of each broker


@inner
def new_group(problem: Problem, linear: np.ndarray, room: int) -> Group:
    """Room for groups of brokers with up to `room` replicas."""
    goals, count = len(problem.goal), len(linear)
    return Group(
        linear, np.zeros(GROUP, np.int64), np.zeros(GROUP, np.int64), np.zeros(BROKERS, np.int64), np.zeros((BROKERS, goals)),
        np.zeros((BROKERS, count, 4)), np.zeros(room, np.int64), np.zeros((count, room)), np.zeros(room, np.uint8),
        np.zeros(GROUP, np.int64), np.zeros(GROUP, np.int64), np.zeros(BROKERS, np.int64), np.zeros(BROKERS, np.int64),
        np.zeros(1, np.int64), np.zeros(room), np.zeros(len(problem.broker)),
    )  # fmt: skip


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
def choose(group: Group, held: int, most: int, met: int) -> int:
    """Choose replicas, `most` at most, and where some of them go, so that all of the group are in band: how many, -1 where not found.

    First for the broker that needs most, then for the one that they leave; then one at a time is changed for another.
    """
    m = whole(0)
    for j in range(min(most, held)):
        at, largest, total = whole(0), 0.0, distance(group.need[0])
        for i in range(1, met):
            lack = distance(group.need[i])
            total += lack
            if lack > largest:
                at, largest = whole(i), lack
        if total <= 0.0:
            break
        best, _ = closest(group.amount, group.free, held, group.need[0], group.need[at], at > 0, group.far)
        if best < 0:
            for i in range(m):
                group.free[group.chosen[i]] = 1
            return whole(-1)
        group.chosen[j], group.goes[j] = best, at
        take_out(group, j, 1.0)
        m += 1
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
            best, off = closest(group.amount, group.free, held, group.need[0], group.need[at], at > 0, group.far)
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
    return m if total <= 0.0 else whole(-1)


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


@inner
def closest(
    amount: np.ndarray, free: np.ndarray, held: int, source: np.ndarray, target: np.ndarray, both: bool, far: np.ndarray
) -> tuple[int, float]:
    """Which of `held` replicas leaves the source, and where `both` the target, nearest to their bands, and how far; -1 if none is free.

    `far` float64 [n] is room; a processor weighs many replicas at a time where each goal is weighed for all of them.
    """
    for i in range(held):
        far[i] = 0.0
    for k in range(len(source)):
        load, low, high, scale = source[k, LOAD], source[k, LOW], source[k, HIGH], source[k, SCALE]
        column = amount[k]
        for i in range(held):
            over, under = (load - column[i]) - high, low - (load - column[i])
            far[i] += (over if over > 0.0 else (under if under > 0.0 else 0.0)) * scale
        if both:
            load, low, high, scale = target[k, LOAD], target[k, LOW], target[k, HIGH], target[k, SCALE]
            for i in range(held):
                over, under = (load + column[i]) - high, low - (load + column[i])
                far[i] += (over if over > 0.0 else (under if under > 0.0 else 0.0)) * scale
    best, least = whole(-1), np.inf
    for i in range(held):
        if far[i] < least and free[i] == 1:
            best, least = whole(i), far[i]
    return best, least
