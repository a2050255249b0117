"""Reduce: another replica goes in place of one or two that a target moves, where that costs less.

A stand-in is a replica that the broker still holds, or one that came to it and goes on: its move is paid for already. No broker scores
lower in any goal for it. Called by `reduce`, once what needs no stand-in is home.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import ahead, inner, kernel, whole
from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    LEADING,
    MOVABLE,
    RACK_GOAL,
    RACK_OF,
    SOFT_RACK,
    STATE,
    Problem,
)
from optimizer.search.commit import send
from optimizer.search.feasible import linear_goals, may_swap, role_of, scores_hold, window
from optimizer.search.parameters import (
    COMPARED,
    LESS_COST,
    REFUSED_LOOKS,
    REPLACE_LOOKS,
    REPLACE_LOOKS_EACH,
    REPLACE_PAIRS,
    SOON,
    STAND_INS,
)
from optimizer.search.state import LED, State


class Table(NamedTuple):
    """What is laid out for one broker; W goals on loads, C columns of loads, n replicas on it, m that left it."""

    linear: np.ndarray  # int64 [W], rows of the goals
    entry: np.ndarray  # int64 [n], stand-ins: partition * R + slot
    amount: np.ndarray  # float64 [C, n], their loads
    price: np.ndarray  # float64 [n], and what it costs that they go, 0 for one that came
    fits: np.ndarray  # uint8 [n], 1 where a stand-in lies in the window and costs less than what goes home
    fitting: np.ndarray  # int64 [n], those
    gone: np.ndarray  # int64 [2], replicas that go home
    low: np.ndarray  # float64 [C], window of what may stand in for these
    high: np.ndarray  # float64 [C]
    back: np.ndarray  # float64 [C], loads that a broker gets or loses
    brokers: np.ndarray  # int64 [3], that a replacement touches
    before: np.ndarray  # float64 [3, G], their scores
    units: np.ndarray  # float64 [3, K], and what they have misplaced by topic
    looks: np.ndarray  # int64 [1], candidates looked at for this broker


@kernel
def replace(problem: Problem, state: State, home: np.ndarray, order: np.ndarray) -> int:
    """Send one or two replicas of a broker home and a cheaper stand-in instead, as often as that can be found; returns how often.

    `home` int64 [P, R] is where replicas were; `order` int64 are the partitions among which are all that stand elsewhere, dearest first.

    Notes
    -----
    O(replicas of a broker) for each that left it, as far as `REPLACE_LOOKS` and `REPLACE_LOOKS_EACH` go.
    """
    brokers = len(problem.broker)
    columns, room = problem.vector.shape[2], state.hosted.shape[1] + 3
    table = Table(
        linear_goals(problem), np.zeros(room, np.int64), np.zeros((columns, room)), np.zeros(room), np.zeros(room, np.uint8),
        np.zeros(room, np.int64), np.zeros(2, np.int64), np.zeros(columns), np.zeros(columns), np.zeros(columns), np.zeros(3, np.int64),
        np.zeros((3, len(problem.goal))), np.zeros((3, len(problem.topic_goal))), np.zeros(1, np.int64),
    )  # fmt: skip
    starts = np.zeros(brokers + 1, np.int64)
    left = list_by_home(state, home, order, starts)
    givers = 0
    for v in range(brokers):
        givers += 1 if starts[v + 1] > starts[v] and problem.broker[v, STATE] == 0 else 0
    most = max(REPLACE_LOOKS, REPLACE_LOOKS_EACH * state.replicas.size) // max(givers, 1)
    done = 0
    for v in range(brokers):
        mine = left[starts[v] : starts[v + 1]]
        if len(mine) == 0 or problem.broker[v, STATE] != 0:
            continue
        n = list_stand_ins(problem, state, table, home, v)
        table.looks[0] = 0
        for i in range(len(mine)):
            if table.looks[0] > most:
                break
            found = stand_in(problem, state, table, v, mine[i], whole(-1), n)
            if found >= 0:
                gone = mine[i]
                mine[i], done = table.entry[found], done + 1
                note_stand_in(problem, table, home, whole(v), gone, role_of(state, gone), found)
        done += replace_pairs(problem, state, table, home, v, mine, n, most)
    return done


@inner
def replace_pairs(problem: Problem, state: State, table: Table, home: np.ndarray, v: int, mine: np.ndarray, n: int, most: int) -> int:
    """Send two of the replicas `mine` that left broker `v` home and one of its `n` stand-ins instead; returns how often."""
    done, tried, last = 0, 0, len(mine) - 1
    for a in range(len(mine)):
        for b in range(a):
            tried += 1
            if tried > REPLACE_PAIRS or table.looks[0] > most:
                return done
            one, other = mine[last - a], mine[last - b]  # the cheapest come last
            if not is_away(state, one, v) or not is_away(state, other, v):
                continue
            found = stand_in(problem, state, table, v, one, other, n)
            if found >= 0:
                mine[last - a], done = table.entry[found], done + 1
                note_stand_in(problem, table, home, v, one, role_of(state, one), found)
                note_stand_in(problem, table, home, v, other, role_of(state, other), n)
                n += 1
    return done


@inner
def is_away(state: State, entry: int, v: int) -> bool:
    """Whether the replica `entry` stands on another broker than `v`."""
    return bool(state.replicas[entry // state.replicas.shape[1], entry % state.replicas.shape[1]] != v)


@inner
def stand_in(problem: Problem, state: State, table: Table, v: int, one: int, other: int, n: int) -> int:
    """Send the replicas `one` and `other` (unless -1) home to `v`, and the cheapest of `n` stand-ins that fits instead; its index, -1 if
    none does, and nothing is changed then."""
    slots = state.replicas.shape[1]
    table.gone[0], table.gone[1] = one, other
    pair = 1 if other < 0 else 2
    roof = 0.0
    for i in range(pair):
        entry = table.gone[i]
        if not is_away(state, entry, v) or not may_swap(problem, state, entry // slots, entry % slots, v):
            return whole(-1)
        roof += LESS_COST * problem.cost[entry // slots]
    u = receiver(problem, state, table, v, pair)
    if u < 0 or (problem.setting[RACK_GOAL] == SOFT_RACK and problem.broker[u, RACK_OF] != problem.broker[v, RACK_OF]):
        return whole(-1)  # where racks are a soft goal, other brokers share in what a change of racks does
    left = list_fitting(table, roof, n)
    for _ in range(STAND_INS):
        if left == 0:
            break
        best = 0
        for i in range(1, left):
            if table.price[table.fitting[i]] < table.price[table.fitting[best]]:
                best = i
        at = whole(table.fitting[best])
        if replaced(problem, state, table, v, u, pair, table.entry[at]):
            return at
        left -= 1
        table.fitting[best] = table.fitting[left]
    return whole(-1)


@inner
def receiver(problem: Problem, state: State, table: Table, v: int, pair: int) -> int:
    """The broker that gets the stand-in of `table.gone`, and the window of its loads into the table; -1 where there is none.

    Of two brokers where replicas went, one must need nothing in the place of its replica.
    """
    slots = state.replicas.shape[1]
    u = state.replicas[table.gone[0] // slots, table.gone[0] % slots]
    if pair == 2:
        w = state.replicas[table.gone[1] // slots, table.gone[1] % slots]
        if w != u and not needs_nothing(problem, state, table, w, 1):
            if not needs_nothing(problem, state, table, u, 0):
                return whole(-1)
            u = w
    for c in range(len(table.low)):
        table.low[c], table.high[c] = -np.inf, np.inf
    weigh(problem, state, table, pair, whole(-1))
    if not narrow(problem, state, table, v, True):
        return whole(-1)
    weigh(problem, state, table, pair, u)
    return u if narrow(problem, state, table, u, False) else whole(-1)


@inner
def weigh(problem: Problem, state: State, table: Table, pair: int, u: int) -> None:
    """Loads of those of the replicas `table.gone` that stand on broker `u` (-1: of all), into `table.back`."""
    slots = state.replicas.shape[1]
    for c in range(len(table.back)):
        table.back[c] = 0.0
    for i in range(pair):
        p, s = table.gone[i] // slots, table.gone[i] % slots
        if u < 0 or state.replicas[p, s] == u:
            for c in range(len(table.back)):
                table.back[c] += problem.vector[p, role_of(state, table.gone[i]), c]


@inner
def needs_nothing(problem: Problem, state: State, table: Table, w: int, which: int) -> bool:
    """Whether broker `w` keeps its bands without replica `which` of `table.gone`."""
    slots = state.replicas.shape[1]
    p, role = table.gone[which] // slots, role_of(state, table.gone[which])
    for k in range(len(table.linear)):
        bottom, _ = window(problem, state, w, table.linear[k])
        c = problem.goal[table.linear[k], COLUMN]
        if state.load[w, c] - problem.vector[p, role, c] < bottom:
            return False
    return True


@inner
def replaced(problem: Problem, state: State, table: Table, v: int, u: int, pair: int, entry: int) -> bool:
    """Send `table.gone` home to `v` and `entry` from there to `u`; False, and nothing changed, where that is not allowed or a broker is
    worse for it."""
    slots = state.replicas.shape[1]
    p = entry // slots
    if p == table.gone[0] // slots or (pair == 2 and p == table.gone[1] // slots) or not may_swap(problem, state, p, entry % slots, u):
        return False
    table.brokers[0], table.brokers[1], table.brokers[2] = v, u, u
    there = np.zeros(2, np.int64)
    for i in range(pair):
        there[i] = state.replicas[table.gone[i] // slots, table.gone[i] % slots]
        if there[i] != u:
            table.brokers[2] = there[i]
    for i in range(3):
        for g in range(len(problem.goal)):
            table.before[i, g] = state.score[table.brokers[i], g]
        for k in range(table.units.shape[1]):
            table.units[i, k] = state.units[k, table.brokers[i]]
    for i in range(pair):
        send(problem, state, table.gone[i], v)
    send(problem, state, entry, u)
    if scores_hold(state, table.brokers, whole(3), table.before) and counts_hold(state, table.brokers, table.units):
        return True
    send(problem, state, entry, v)
    for i in range(pair):
        send(problem, state, table.gone[i], there[i])
    table.looks[0] += REFUSED_LOOKS
    return False


@inner
def counts_hold(state: State, brokers: np.ndarray, before: np.ndarray) -> bool:
    """Whether no broker has more replicas or leaders of topics misplaced than `before` float64 [n, K] says."""
    for i in range(len(brokers)):
        for k in range(before.shape[1]):
            if state.units[k, brokers[i]] > before[i, k] + 1e-12:
                return False
    return True


@inner
def list_stand_ins(problem: Problem, state: State, table: Table, home: np.ndarray, v: int) -> int:
    """What broker `v` holds and may leave it; returns how many."""
    slots, n, mark = state.replicas.shape[1], whole(0), state.mark[v]
    for i in range(state.hosts[v]):
        if i + SOON < state.hosts[v]:
            q = state.hosted[v, i + SOON] // slots
            ahead(home, q)
            ahead(problem.partition, q)
            ahead(problem.cost, q)
            ahead(problem.vector[q], LEADING if mark[i + SOON] & LED else FOLLOWING)
        entry = whole(state.hosted[v, i])
        if problem.partition[entry // slots, MOVABLE] == 1:
            note_stand_in(problem, table, home, v, entry, whole(LEADING if mark[i] & LED else FOLLOWING), n)
            n += 1
    return n


@inner
def note_stand_in(problem: Problem, table: Table, home: np.ndarray, v: int, entry: int, role: int, at: int) -> None:
    """Entry, loads and price of a replica on broker `v` as the stand-in `at` of the table."""
    p, s = entry // home.shape[1], entry % home.shape[1]
    for c in range(len(table.amount)):
        table.amount[c, at] = problem.vector[p, role, c]
    table.entry[at], table.price[at] = entry, problem.cost[p] if home[p, s] == v else 0.0


@inner
def list_by_home(state: State, home: np.ndarray, moved: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Entries of replicas that left a broker, by broker, from `starts` int64 [B + 1] on, in the order of `moved`."""
    slots = state.replicas.shape[1]
    for p in moved:
        for s in range(slots):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                starts[home[p, s] + 1] += 1
    for b in range(len(starts) - 1):
        starts[b + 1] += starts[b]
    at = starts.copy()
    away = np.zeros(starts[-1], np.int64)
    for p in moved:
        for s in range(slots):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                away[at[home[p, s]]] = p * slots + s
                at[home[p, s]] += 1
    return away


@inner
def narrow(problem: Problem, state: State, table: Table, b: int, gives: bool) -> bool:
    """Narrow the window to what broker `b` may give up once it has got the loads `table.back`; or, unless it `gives`, to what it may take
    once it has lost them. Returns whether anything is left of the window."""
    low, high, back, some = table.low, table.high, table.back, True
    for g in table.linear:
        bottom, top = window(problem, state, b, g)
        c = problem.goal[g, COLUMN]
        load = state.load[b, c]
        if gives:
            low[c], high[c] = max(low[c], load + back[c] - top), min(high[c], load + back[c] - bottom)
        else:
            low[c], high[c] = max(low[c], bottom - load + back[c]), min(high[c], top - load + back[c])
        some = some and low[c] <= high[c]
    return some


@inner
def list_fitting(table: Table, roof: float, n: int) -> int:
    """Those of `n` stand-ins whose loads lie in the window and that cost less than `roof`, into `table.fitting`; returns how many."""
    some, strict = whole(0), 0
    for start in range(0, n, COMPARED):
        end = min(start + COMPARED, n)
        fits, price = table.fits[start:end], table.price[start:end]
        for i in range(end - start):
            fits[i] = price[i] < roof
        left = 1
        for turn in range(len(table.low)):
            c = (strict + turn) % len(table.low)
            amount, low, high, left = table.amount[c, start:end], table.low[c], table.high[c], 0
            for i in range(end - start):  # without a branch, so that several are compared at a time
                fits[i] &= (amount[i] >= low) & (amount[i] <= high)
            for i in range(end - start):
                left |= fits[i]
            if left == 0:  # the load by which none of these fits is likely to be that by which none of the next does
                strict = c
                break
        for i in range(end - start if left != 0 else 0):
            table.fitting[some] = start + i
            some += fits[i]
    table.looks[0] += n
    return some
