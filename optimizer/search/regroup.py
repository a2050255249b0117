"""Fewer moves for the same balance: what left a broker goes home, and fewer replicas leave it.

Called by `rounds` on a target where a move costs the same whatever it carries, as with shared storage. No broker scores lower in any
goal for it.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.problem import COLUMN, STATE, Problem
from optimizer.search.feasible import may_host, may_swap
from optimizer.search.group import BROKERS, ENDLESS, GROUP, LOAD, Group, choose, meet, new_group
from optimizer.search.homeward import scores_hold
from optimizer.search.onward import make_room, pass_on, roomiest
from optimizer.search.order import ascending
from optimizer.search.partners import Crowd
from optimizer.search.replace import extent, linear_goals, list_by_home, list_present, put
from optimizer.search.state import State

VAIN = 300  # replicas sent home and back again since fewer were found to do, after which there is little to be found
SOME = 12  # replicas that go home together where all are too many: the smallest
EXTRA = 2  # replicas at home elsewhere that leave for the sake of those chosen
ATTEMPTS = 8  # at other replicas, where some find no broker to go to


@kernel
def regroup(problem: Problem, state: State, crowd: Crowd, home: np.ndarray, moved: np.ndarray) -> int:
    """Let fewer replicas leave a broker as often as that can be found; returns how often.

    `home` int64 [P, R] is where replicas were; `moved` int64 are the partitions among which are all that stand elsewhere. What `crowd`
    observed is of no account.

    Notes
    -----
    For a group of n of a broker's m replicas, O(n m) for each time that one of them is changed for another.
    """
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    group = new_group(problem, linear_goals(problem), state.hosted.shape[1] + 1)
    starts = np.zeros(brokers + 1, np.int64)
    strays = list_by_home(state, home, moved, starts)
    row = np.zeros(slots, np.int64)
    found, vain = 0, 0
    for v in range(brokers):
        if problem.broker[v, STATE] != 0 or vain > VAIN:
            continue
        left = starts[v + 1] - starts[v]
        mine = strays[starts[v] : starts[v + 1]]
        if 1 < left <= GROUP:
            pass_on(problem, state, crowd, home, group, v, row)
        most = whole(GROUP)  # all of them, then some
        while 1 < left <= GROUP:
            sizes = np.zeros(left)
            for i in range(left):
                sizes[i] = extent(problem, state, group.linear, v, mine[i])
            order = ascending(sizes)
            n, met = bring_home(problem, state, group, v, mine, order, most, row)
            sent = send_fewer(problem, state, crowd, home, group, v, n, met, row) if n > 1 else whole(-1)
            if sent < 0:
                for i in range(n - 1, -1, -1):
                    put(problem, state, group.member[i], group.there[i], row)
                vain += n
                if n <= SOME:
                    break
                most = whole(SOME)
                continue
            found, vain = found + 1, 0
            kept = 0
            for i in range(left):
                if state.replicas[mine[i] // slots, mine[i] % slots] != v:
                    known = False
                    for j in range(sent):
                        known = known or group.entry[group.chosen[j]] == mine[i]
                    if not known:
                        mine[kept] = mine[i]
                        kept += 1
            for j in range(sent):
                mine[kept + j] = group.entry[group.chosen[j]]
            left = kept + sent
    return found


@inner
def bring_home(
    problem: Problem, state: State, group: Group, v: int, mine: np.ndarray, order: np.ndarray, most: int, row: np.ndarray
) -> tuple[int, int]:
    """Send the first `most` of `mine` in `order` home to `v`; returns how many, and how many brokers the group has then."""
    slots = state.replicas.shape[1]
    met = meet(problem, state, group, whole(0), v)
    n = whole(0)
    for i in range(len(order)):
        p, s = mine[order[i]] // slots, mine[order[i]] % slots
        if n == most:
            break
        if may_swap(problem, state, p, s, v):
            group.member[n], group.there[n] = mine[order[i]], state.replicas[p, s]
            met = meet(problem, state, group, met, state.replicas[p, s])
            put(problem, state, mine[order[i]], v, row)
            n += 1
    return n, met


@inner
def send_fewer(
    problem: Problem, state: State, crowd: Crowd, home: np.ndarray, group: Group, v: int, n: int, met: int, row: np.ndarray
) -> int:
    """Let fewer replicas than the `n` that went home leave `v`: how many; -1, and nothing more changed, where that is not found."""
    held = list_present(problem, state, group.linear, home, v, group.amount, group.entry)
    for i in range(held):
        group.free[i] = 1
    for _ in range(ATTEMPTS):
        for i in range(met):
            for k in range(len(group.linear)):
                group.need[i, k, LOAD] = state.load[group.broker[i], problem.goal[group.linear[k], COLUMN]]
        m = choose(group, held, n - 1, met)
        if m < 0 or (m == 0 and not scores_hold(state, group.broker, met, group.before)):
            return whole(-1)
        group.extra[0] = min(n - 1 - m, EXTRA)
        bad = send(problem, state, crowd, home, group, v, m, met, row)
        if bad < 0:
            return m
        rule_out(group, held, bad)
    return whole(-1)


@inner
def rule_out(group: Group, held: int, bad: int) -> None:
    """Leave out of what may be chosen replica `bad`, for which there is no broker, and what is as large as it in every load."""
    for i in range(held):
        larger = True
        for k in range(len(group.linear)):
            larger = larger and group.amount[k, i] >= group.amount[k, bad]
        if larger:
            group.free[i] = 0


@inner
def send(
    problem: Problem, state: State, crowd: Crowd, home: np.ndarray, group: Group, v: int, m: int, met: int, row: np.ndarray
) -> int:
    """Move what was chosen, the largest first. Returns -1; or a choice that has to be another, and nothing is changed."""
    slots = state.replicas.shape[1]
    keys = np.zeros(m)
    for j in range(m):
        keys[j] = -extent(problem, state, group.linear, v, group.entry[group.chosen[j]])
        if group.goes[j] > 0:
            keys[j] -= ENDLESS
    order = ascending(keys)
    steps = whole(0)
    bad = whole(-1)
    for i in range(m):
        j = order[i]
        entry = group.entry[group.chosen[j]]
        p, s = entry // slots, entry % slots
        target = group.broker[group.goes[j]] if group.goes[j] > 0 else roomiest(problem, state, crowd, group, p, s)
        if target < 0:
            target, met, steps = make_room(problem, state, crowd, home, group, met, steps, p, s, row)
        if target < 0 or met == BROKERS or steps == BROKERS or not may_host(problem, state, p, s, target):
            bad = group.chosen[j]
            break
        met = meet(problem, state, group, met, target)
        group.step[steps], group.source[steps] = entry, v
        put(problem, state, entry, target, row)
        steps += 1
    if bad < 0 and scores_hold(state, group.broker, met, group.before):
        return whole(-1)
    for i in range(steps - 1, -1, -1):
        put(problem, state, group.step[i], group.source[i], row)
    return bad if bad >= 0 else group.chosen[order[0]]
