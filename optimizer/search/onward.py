"""Room for a replica that fits nowhere: what else came to a broker goes on to another, which is no move more.

Called by `regroup`, where a move costs the same whatever it carries.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner, whole
from optimizer.problem import (
    CEILING,
    COLUMN,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MOVABLE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    Problem,
)
from optimizer.search.feasible import leaves_band, may_host, may_swap
from optimizer.search.group import BROKERS, Group, meet
from optimizer.search.homeward import scores_hold
from optimizer.search.partners import Crowd, observe
from optimizer.search.potential import NOTHING
from optimizer.search.replace import MANY, band_of, extent, put, role_of
from optimizer.search.state import SOON, State

CANDIDATES = 6  # brokers for a replica: those that it would take least far out of band
ONWARD = 12  # replicas that go on from one of them


@inner
def rises(problem: Problem, crowd: Crowd, linear: np.ndarray, p: int, role: int, rise: np.ndarray) -> None:
    """By how much the potential of every broker rises with `p` in `role`, by goals `linear`, into `rise` float64 [B]."""
    for u in range(len(rise)):
        rise[u] = 0.0
    for g in linear:
        w, e = problem.force[g, STRENGTH], problem.force[g, SPREAD]
        load, mean, high, low, scale = crowd.load[g], crowd.mean[g], crowd.high[g], crowd.low[g], crowd.scale[g]
        x = problem.vector[p, role, problem.goal[g, COLUMN]]
        for u in range(len(rise)):
            now, then, m, h, o, s = load[u], load[u] + x, mean[u], high[u], low[u], scale[u]
            over, under, over2, under2 = now - h, o - now, then - h, o - then
            beyond = (over if over > 0.0 else (under if under > 0.0 else 0.0)) * s
            beyond2 = (over2 if over2 > 0.0 else (under2 if under2 > 0.0 else 0.0)) * s
            off, off2 = (now - m) * s, (then - m) * s
            square, square2 = beyond * beyond, beyond2 * beyond2
            before = w * square * (1.0 + STEEP * square) + e * off * off
            rise[u] += (w * square2 * (1.0 + STEEP * square2) + e * off2 * off2) - before


@inner
def roomiest(problem: Problem, state: State, crowd: Crowd, group: Group, p: int, s: int) -> int:
    """The broker that stays in band with slot `s` of `p` and likes it best, by the potential, then by what it has most of; -1 if none."""
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    observe(problem, state, group.linear, crowd)
    rises(problem, crowd, group.linear, p, role, group.rise)
    best, least, lowest = whole(-1), np.inf, np.inf
    for u in range(len(problem.broker)):
        rise = group.rise[u]
        if rise > least or not may_host(problem, state, p, s, u) or leaves_band(problem, state, u, p, whole(NOTHING), role):
            continue
        level = 0.0
        for g in group.linear:
            top = problem.table[u, g, CEILING] if problem.goal[g, KIND] == LIMIT else problem.table[u, g, MEAN]
            if top > 0.0:
                c = problem.goal[g, COLUMN]
                level = max(level, (state.load[u, c] + problem.vector[p, role, c]) / top)
        if rise < least or (rise == least and level < lowest):
            best, least, lowest = whole(u), rise, level
    return best


@inner
def pass_on(problem: Problem, state: State, crowd: Crowd, home: np.ndarray, group: Group, v: int, row: np.ndarray) -> int:
    """Let what came to broker `v`, which gives replicas itself, go on to others, where nobody is worse for it; returns how many did."""
    slots = state.replicas.shape[1]
    came, count = np.zeros(MANY, np.int64), 0
    for i in range(state.hosts[v]):
        if i + SOON < state.hosts[v]:
            ahead(home, state.hosted[v, i + SOON] // slots)
        entry = whole(state.hosted[v, i])
        was = home[entry // slots, entry % slots]
        if was >= 0 and was != v and problem.partition[entry // slots, MOVABLE] == 1:
            if count == MANY:
                return 0
            came[count] = entry
            count += 1
    gone = 0
    for i in range(count):
        p, s = came[i] // slots, came[i] % slots
        if leaves_band(problem, state, v, p, role_of(state, came[i]), whole(NOTHING)):
            continue
        target = roomiest(problem, state, crowd, group, p, s)
        if target < 0:
            continue
        met = meet(problem, state, group, meet(problem, state, group, whole(0), v), target)
        put(problem, state, came[i], target, row)
        if scores_hold(state, group.broker, met, group.before):
            gone += 1
        else:
            put(problem, state, came[i], v, row)
    return gone


@inner
def make_room(
    problem: Problem, state: State, crowd: Crowd, home: np.ndarray, group: Group, met: int, steps: int, p: int, s: int, row: np.ndarray
) -> tuple[int, int, int]:
    """A broker for slot `s` of `p`, once some of what came to it went on, which is done; -1, and nothing is changed, if there is none.

    Beside it how many brokers the group has then, and how many steps there are to be taken back.
    """
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    broker, far, count = np.zeros(CANDIDATES, np.int64), np.zeros(CANDIDATES), 0
    for u in range(len(problem.broker)):
        if problem.broker[u, STATE] != 0 or not may_swap(problem, state, p, s, u):
            continue
        beyond = excess(problem, state, group.linear, u, p, role, whole(-1))
        if count == CANDIDATES and beyond >= far[count - 1]:
            continue
        i = count if count < CANDIDATES else count - 1
        while i > 0 and far[i - 1] > beyond:
            broker[i], far[i] = broker[i - 1], far[i - 1]
            i -= 1
        broker[i], far[i] = u, beyond
        count = min(count + 1, CANDIDATES)
    extra = group.extra[0]
    for i in range(count):
        known, begun = met, steps
        if known < BROKERS:
            known = meet(problem, state, group, known, broker[i])
        known, steps, fits = send_on(problem, state, crowd, home, group, known, steps, broker[i], p, s, row)
        if fits:
            return whole(broker[i]), known, steps
        group.extra[0] = extra
        while steps > begun:
            steps -= 1
            put(problem, state, group.step[steps], group.source[steps], row)
    return whole(-1), met, steps


@inner
def send_on(
    problem: Problem, state: State, crowd: Crowd, home: np.ndarray, group: Group, met: int, steps: int, u: int, p: int, s: int,
    row: np.ndarray,
) -> tuple[int, int, bool]:  # fmt: skip
    """Let what came to broker `u` go on, one after the other, until it has room for slot `s` of `p`; as `make_room`, and whether it has."""
    slots = state.replicas.shape[1]
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    tried = np.zeros(ONWARD, np.int64)
    for turn in range(ONWARD):
        if excess(problem, state, group.linear, u, p, role, whole(-1)) <= 0.0 and may_host(problem, state, p, s, u):
            return met, steps, True
        if met >= BROKERS - 1 or steps >= BROKERS - 1:
            break
        entry = who_goes(problem, state, home, group, u, p, role, tried[:turn], False)
        if entry < 0 and group.extra[0] > 0:
            entry = who_goes(problem, state, home, group, u, p, role, tried[:turn], True)
        if entry < 0:
            break
        tried[turn] = entry
        target = roomiest(problem, state, crowd, group, entry // slots, entry % slots)
        if target >= 0:
            met = meet(problem, state, group, met, target)
            group.step[steps], group.source[steps] = entry, u
            if home[entry // slots, entry % slots] == u:
                group.extra[0] -= 1
            put(problem, state, entry, target, row)
            steps += 1
    return met, steps, False


@inner
def who_goes(
    problem: Problem, state: State, home: np.ndarray, group: Group, u: int, p: int, role: int, tried: np.ndarray, own: bool
) -> int:
    """Which entry of broker `u`, of what came to it or is its `own`, leaves it nearest to its bands with `p` in `role`, the smallest of
    such; -1 if none that was not `tried` brings it nearer."""
    slots = state.replicas.shape[1]
    beyond = excess(problem, state, group.linear, u, p, role, whole(-1))
    best, least, smallest = whole(-1), beyond, np.inf
    for i in range(state.hosts[u]):
        if i + SOON < state.hosts[u]:
            ahead(home, state.hosted[u, i + SOON] // slots)
        entry = whole(state.hosted[u, i])
        q = entry // slots
        was = home[q, entry % slots]
        if was < 0 or (was == u) != own or problem.partition[q, MOVABLE] != 1:
            continue
        rest = excess(problem, state, group.linear, u, p, role, entry)
        if rest > least or rest >= beyond:
            continue
        known = False
        for other in tried:
            known = known or other == entry
        size = extent(problem, state, group.linear, u, entry)
        if not known and (rest < least or (size, entry) < (smallest, best)):
            best, least, smallest = entry, rest, size
    return best


@inner
def excess(problem: Problem, state: State, linear: np.ndarray, u: int, p: int, role: int, without: int) -> float:
    """How far out of its bands broker `u` is with `p` in `role` and without the entry `without` (-1: none), as parts of means, summed."""
    far = 0.0
    for g in linear:
        c = problem.goal[g, COLUMN]
        low, high = band_of(problem, state, u, g)
        level = problem.table[u, g, CEILING] if problem.goal[g, KIND] == LIMIT else problem.table[u, g, MEAN]
        load = state.load[u, c] + problem.vector[p, role, c]
        if without >= 0:
            load -= problem.vector[without // state.replicas.shape[1], role_of(state, without), c]
        if 0.0 < level < np.inf:
            far += max(load - high, low - load, 0.0) / level
    return far
