"""Fewer moves for the same balance: two replicas that left a broker, or came to it, against a single one.

Called by `rounds` on a target where a move costs the same whatever it carries, as with shared storage. No broker scores lower in any
goal for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import ahead, inner, kernel, whole
from optimizer.problem import COLUMN, FOLLOWING, LEADING, MOVABLE, STATE, Problem
from optimizer.search.homeward import scores_hold
from optimizer.search.hosting import may_host
from optimizer.search.order import ascending
from optimizer.search.partners import Crowd, observe, rank_crowd
from optimizer.search.state import SOON, State
from optimizer.search.strays import MANY, extent, list_by_home, list_present, put, role_of
from optimizer.search.swaps import may_swap
from optimizer.search.windows import linear_goals, narrow, open_window, smallest, stands_open

PAIRS = 66  # tried for a broker and direction: the smallest
PARTNERS = 24  # brokers that may take part, beside those where the strays are
TRIES = 4  # of substitutes for a pair with one broker
TURNS = 4  # of successes for a broker and direction
VAIN = 100  # replicas looked at since the last success, for each that there is, after which there is little to be found
ANY, NOBODY = -1, -2  # which broker has to take part in the place of a pair


class Table(NamedTuple):
    """What is laid out for one broker and direction; W goals on loads, n replicas of a broker, m strays."""

    linear: np.ndarray  # int64 [W], rows of the goals
    home: np.ndarray  # int64 [P, R], where replicas were
    most: np.ndarray  # float64 [B, C], the largest loads of what has its home there
    entry: np.ndarray  # int64 [n], what may leave a broker, and stand in for some pair
    amount: np.ndarray  # float64 [W, n], its loads
    size: np.ndarray  # float64 [n], and extents
    stray: np.ndarray  # int64 [m], what left the broker, or came to it, the smallest first
    other: np.ndarray  # int64 [m], where it is, or came from
    load: np.ndarray  # float64 [m + 1, W], its loads; last: of two together
    alone: np.ndarray  # uint8 [m], 1 where `other` needs nothing in its place
    pair: np.ndarray  # int64 [PAIRS, 3], indices of two strays, and who has to take part in their place
    low: np.ndarray  # float64 [PAIRS + 1, W], windows of what may stand in for a pair; last: with one other broker
    high: np.ndarray  # float64 [PAIRS + 1, W]
    touched: np.ndarray  # int64 [4]
    before: np.ndarray  # float64 [4, G]
    row: np.ndarray  # int64 [R]


@kernel
def merge(
    problem: Problem, state: State, crowd: Crowd, home: np.ndarray, moved: np.ndarray, most_held: np.ndarray, asked: np.ndarray
) -> tuple[int, int]:
    """Put one move in the place of two as often as that can be found; returns how often, and how many replicas were looked at for it.

    `home` int64 [P, R] is where replicas were, and `most_held` what `largest` says of it; `moved` int64 are the partitions among which
    are all that stand elsewhere. `asked` uint8 [B] marks the brokers of which two moves may become one.

    Notes
    -----
    Looks at no broker of which no replica is large enough, and ends when it has looked at so many replicas in vain (`VAIN`).
    """
    brokers, slots, goals = len(problem.broker), state.replicas.shape[1], len(problem.goal)
    linear = linear_goals(problem)
    starts = np.zeros(brokers + 1, np.int64)
    left = list_by_home(state, home, moved, starts)
    room, count = state.hosted.shape[1] + 2, len(linear)
    table = Table(
        linear, home, most_held, np.zeros(room, np.int64), np.zeros((count, room)), np.zeros(room),
        np.zeros(MANY, np.int64), np.zeros(MANY, np.int64), np.zeros((MANY + 1, count)), np.zeros(MANY, np.uint8),
        np.zeros((PAIRS, 3), np.int64), np.zeros((PAIRS + 1, count)), np.zeros((PAIRS + 1, count)),
        np.zeros(4, np.int64), np.zeros((4, goals)), np.zeros(slots, np.int64),
    )  # fmt: skip
    partners, worth = np.zeros(PARTNERS + MANY, np.int64), np.zeros(brokers)
    held = 0
    for b in range(brokers):  # a sum by numpy would have a compiled kernel import linear algebra
        held += state.hosts[b]
    merged, looks, last, most = 0, whole(0), whole(0), VAIN * held
    observe(problem, state, linear, crowd)
    for v in range(brokers):
        if problem.broker[v, STATE] != 0 or asked[v] == 0:
            continue
        mine, ranked = left[starts[v] : starts[v + 1]], whole(-1)
        for off in (True, False):
            for _ in range(TURNS):
                if looks - last > most:
                    return merged, looks
                n = lay_out(problem, state, table, v, off, mine)
                pairs = pair_up(problem, state, table, v, off, n)
                if pairs == 0:
                    break
                if ranked < 0:
                    ranked = rank_crowd(problem, state, crowd, linear, v, whole(PARTNERS), whole(0), partners, worth)
                found = with_places(table, n, partners, ranked)
                looked, entry = one_for_two(problem, state, table, v, off, pairs, partners[:found])
                looks += looked
                if entry < 0:
                    break
                merged, last, ranked = merged + 1, looks, whole(-1)
                observe(problem, state, linear, crowd)
                enlist(state, home, left, starts, entry)
    return merged, looks


@inner
def enlist(state: State, home: np.ndarray, left: np.ndarray, starts: np.ndarray, entry: int) -> None:
    """Put `entry` into the list `left` of its home, in the place of one that went home, if there is one."""
    slots = home.shape[1]
    b = home[entry // slots, entry % slots]
    for i in range(starts[b], starts[b + 1]):
        if state.replicas[left[i] // slots, left[i] % slots] == b:
            left[i] = entry
            break


@kernel
def largest(problem: Problem, home: np.ndarray) -> np.ndarray:
    """The largest loads, float64 [B, C], of what may move and has its home on a broker, in either role."""
    columns = problem.vector.shape[2]
    most = np.zeros((len(problem.broker), columns))
    for p in range(len(home)):
        if problem.partition[p, MOVABLE] == 1:
            for s in range(home.shape[1]):
                if home[p, s] >= 0:
                    for c in range(columns):
                        x = max(problem.vector[p, LEADING, c], problem.vector[p, FOLLOWING, c])
                        most[home[p, s], c] = max(most[home[p, s], c], x)
    return most


@inner
def lay_out(problem: Problem, state: State, table: Table, v: int, off: bool, mine: np.ndarray) -> int:
    """Put what left broker `v` (of `mine`), or came to it, on the table, the smallest first; how many, 0 where they are too many.

    Only what may go home: its home is active, and not beyond what the rack allows.
    """
    slots = state.replicas.shape[1]
    count = whole(0)
    found, sizes = np.zeros(MANY, np.int64), np.zeros(MANY)
    for i in range(len(mine) if off else state.hosts[v]):
        if not off and i + SOON < state.hosts[v]:
            ahead(table.home, state.hosted[v, i + SOON] // slots)
        entry = mine[i] if off else whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        was, now = table.home[p, s], state.replicas[p, s] if off else v
        if was == now or was < 0 or (was if off else now) != v:
            continue
        if count == MANY:
            return whole(0)
        if problem.broker[was, STATE] == 0:
            found[count], sizes[count] = entry, extent(problem, state, table.linear, v, entry)
            count += 1
    order = ascending(sizes[:count])
    for i in range(count):
        entry = found[order[i]]
        p, s = entry // slots, entry % slots
        table.stray[i], table.other[i] = entry, state.replicas[p, s] if off else table.home[p, s]
        for k in range(len(table.linear)):
            table.load[i, k] = problem.vector[p, role_of(state, entry), problem.goal[table.linear[k], COLUMN]]
        table.alone[i] = whole(1 if holds(problem, state, table, table.other[i], i, not off) else 0)
    return count


@inner
def holds(problem: Problem, state: State, table: Table, b: int, i: int, gives: bool) -> bool:
    """Whether broker `b` needs nothing in the place of load `i` of the table, that it gets back (`gives`) or loses."""
    open_window(table.low[PAIRS], table.high[PAIRS])
    narrow(problem, state, table.linear, b, table.load[i], gives, table.low[PAIRS], table.high[PAIRS])
    return stands_open(table.low[PAIRS], table.high[PAIRS])


@inner
def with_places(table: Table, n: int, partners: np.ndarray, ranked: int) -> int:
    """Behind the first `ranked` of `partners`, the brokers where the `n` strays are that are not among them; returns how many there are."""
    last = ranked
    for i in range(n):
        known = False
        for j in range(last):
            known = known or partners[j] == table.other[i]
        if not known:
            partners[last] = table.other[i]
            last += 1
    return last


@inner
def pair_up(problem: Problem, state: State, table: Table, v: int, off: bool, n: int) -> int:
    """Put pairs of the `n` strays that one replica may stand in for on the table, the smallest first; returns how many."""
    count, tried = whole(0), 0
    for j in range(1, n):
        for i in range(j):
            if tried >= PAIRS:
                return count
            tried += 1
            needs = who_needs(problem, state, table, off, i, j)
            low, high = table.low[count], table.high[count]
            open_window(low, high)
            if needs == NOBODY or not narrow(problem, state, table.linear, v, table.load[MANY], off, low, high):
                continue
            if off and not large_enough(problem, table, v, low):
                continue
            table.pair[count, 0], table.pair[count, 1], table.pair[count, 2] = i, j, needs
            count += 1
    return count


@inner
def one_for_two(
    problem: Problem, state: State, table: Table, v: int, off: bool, pairs: int, partners: np.ndarray
) -> tuple[int, int]:
    """Send two strays of `v` home and move one replica instead: how many replicas were looked at, and which moved, -1 if none."""
    looked, listed, held = whole(0), whole(-1), whole(0)
    low, high, back = table.low[PAIRS], table.high[PAIRS], table.load[MANY]
    for u in partners:
        source = v if off else u
        for c in range(pairs):
            i, j, needs = table.pair[c, 0], table.pair[c, 1], table.pair[c, 2]
            if (needs != ANY and needs != u) or not large_enough(problem, table, source, table.low[c]):
                continue
            for k in range(len(back)):
                low[k], high[k], back[k] = table.low[c, k], table.high[c, k], 0.0
                for which in (i, j):
                    if table.other[which] == u:
                        back[k] += table.load[which, k]
            if not narrow(problem, state, table.linear, u, back, not off, low, high) or not large_enough(problem, table, source, low):
                continue
            if listed != source:
                held = list_present(problem, state, table.linear, table.home, source, table.amount, table.entry)
                looked += held
                held = keep_fitting(table.low[:pairs], table.high[:pairs], table.amount, table.entry, held)
                for h in range(held):
                    table.size[h] = extent(problem, state, table.linear, v, table.entry[h])
                listed = source
            n = held
            for which in (i, j):  # one of the two may go elsewhere itself
                if off:
                    table.entry[n], table.size[n] = table.stray[which], extent(problem, state, table.linear, v, table.stray[which])
                    for k in range(len(back)):
                        table.amount[k, n] = table.load[which, k]
                    n += 1
            at, floor = whole(-1), -1.0
            for _ in range(TRIES):
                at = smallest(table.amount, table.size, n, low, high, floor, at, np.inf)
                looked += n
                if at < 0:
                    break
                floor = table.size[at]
                if replaced(problem, state, table, v, off, i, j, table.entry[at], u if off else v):
                    return looked, table.entry[at]
    return looked, whole(-1)


@inner
def who_needs(problem: Problem, state: State, table: Table, off: bool, i: int, j: int) -> int:
    """The broker that must take part once strays `i` and `j` are home, `ANY` or `NOBODY`; their loads are together in the table."""
    for k in range(len(table.linear)):
        table.load[MANY, k] = table.load[i, k] + table.load[j, k]
    if table.other[i] == table.other[j]:
        fine = holds(problem, state, table, table.other[i], MANY, not off)
        return whole(ANY if fine else table.other[i])
    if table.alone[i] == 0:
        return whole(NOBODY) if table.alone[j] == 0 else table.other[i]
    return whole(ANY) if table.alone[j] == 1 else table.other[j]


@inner
def large_enough(problem: Problem, table: Table, source: int, low: np.ndarray) -> bool:
    """Whether broker `source` may have a replica of which no load is below `low`."""
    for k in range(len(low)):
        if low[k] > table.most[source, problem.goal[table.linear[k], COLUMN]]:
            return False
    return True


@inner
def keep_fitting(low: np.ndarray, high: np.ndarray, amounts: np.ndarray, entries: np.ndarray, n: int) -> int:
    """Keep only those of `n` replicas whose loads lie in one of the windows float64 [m, W] at least, in their order; returns how many."""
    kept = whole(0)
    for i in range(n):
        for c in range(len(low)):
            good = True
            for k in range(low.shape[1]):
                if amounts[k, i] < low[c, k] or amounts[k, i] > high[c, k]:
                    good = False
                    break
            if good:
                entries[kept] = entries[i]
                for k in range(low.shape[1]):
                    amounts[k, kept] = amounts[k, i]
                kept += 1
                break
    return kept


@inner
def replaced(
    problem: Problem, state: State, table: Table, v: int, off: bool, i: int, j: int, entry: int, target: int
) -> bool:
    """Send strays `i` and `j` home and `entry` to `target`; False, and nothing changed, where that is not allowed or anybody is worse."""
    slots = state.replicas.shape[1]
    source = v if off else state.replicas[entry // slots, entry % slots]
    table.touched[0], table.touched[1], table.touched[2] = v, table.other[i], table.other[j]
    table.touched[3] = target if off else source
    for b in range(4):
        for g in range(len(problem.goal)):
            table.before[b, g] = state.score[table.touched[b], g]
    done = 0
    for which in (i, j):
        stray = table.stray[which]
        back = table.home[stray // slots, stray % slots]
        if not may_swap(problem, state, stray // slots, stray % slots, back):
            break
        put(problem, state, stray, back, table.row)
        done += 1
    if done == 2 and may_host(problem, state, entry // slots, entry % slots, target):
        put(problem, state, entry, target, table.row)
        if scores_hold(state, table.touched, whole(4), table.before):
            return True
        put(problem, state, entry, source, table.row)
    if done == 2:
        put(problem, state, table.stray[j], table.other[j] if off else v, table.row)
    if done >= 1:
        put(problem, state, table.stray[i], table.other[i] if off else v, table.row)
    return False
