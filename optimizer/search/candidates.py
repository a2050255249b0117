"""The replicas of a broker as candidates: their vectors side by side, the gain of moving each to another broker, the best of them.

Called by `relocate`, `swaps` and `polish`; `leadership` and `balance` use parts. Judges by the potential alone.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, whole
from kernels.lanes import either, first_largest, lanes, number
from kernels.order import nth_largest
from optimizer.parameters import ANYWAY, COST_ADDED, DUE_ADDED, HALVINGS, LACKING
from optimizer.placement.potential import cost_at, curve, linear_cost
from optimizer.placement.state import STRAY, State, is_active
from optimizer.placement.topic_counts import misplaced_rise
from optimizer.problem import (
    CEILING,
    COLUMN,
    COUNTED,
    COUNTS_LEADERS,
    DISTRIBUTION,
    HARD,
    KIND,
    LIMIT,
    LOW,
    MEAN,
    STRENGTH,
    TOPIC_ROW,
    Problem,
)
from optimizer.search.vector_cache import VectorCache, fetch


@inner
def watched_goals(problem: Problem, state: State) -> np.ndarray:
    """int64: goals on loads that a search has to look at.

    A hard limit that no active broker exceeds is left out: moves beyond it are refused, so its part of the potential stays 0.
    """
    watched, count = np.zeros(len(problem.goal), np.int64), 0
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] > LIMIT:
            continue
        counts = problem.goal[g, KIND] == DISTRIBUTION or problem.goal[g, HARD] == 0
        for b in range(len(problem.broker)):
            if counts:
                break
            if is_active(problem, b):
                counts = state.load[b, problem.goal[g, COLUMN]] > problem.table[b, g, CEILING]
        if counts:
            watched[count] = g
            count += 1
    return watched[:count]


@inner
def gather(problem: Problem, state: State, cache: VectorCache, b: int, due: bool, factors: np.ndarray) -> int:
    """Bring the vectors of the replicas on broker `b` in the cache up to date; returns how many replicas it holds.

    Writes into `factors` float64 [n] the factor on the gain of moving each replica off `b`: smaller for a higher cost (if moves are `due`,
    for more bytes), `ANYWAY` for replicas that have left home already, 0 for replicas that may not move.
    """
    fetch(problem, state, cache, b)
    n, mark, thrift, added = state.hosts[b], state.mark[b], cache.vector[b, -1], COST_ADDED
    mean, bare = problem.typical[0], problem.typical[1]
    for i in lanes(n):
        factor = np.float64(thrift[i])
        movable = factor > 0.0
        if due and mean > bare:
            size = (((1.0 + added) / factor - added) * mean - bare) / (mean - bare)  # bytes over mean bytes, from the cost
            factor = either(movable, (1.0 + DUE_ADDED) / (DUE_ADDED + size), factor)
        factors[i] = either(movable & (mark[i] & STRAY > 0), ANYWAY, factor)
    return int(n)


@inner
def lacks_replicas(problem: Problem, state: State, watched: np.ndarray, b: int) -> bool:
    """Whether broker `b` lacks more replicas than `LACKING` times what it lacks most of any load, as shares of means: moves are due."""
    count, most = 0.0, 0.0
    for g in watched:
        c, mean = problem.goal[g, COLUMN], problem.table[b, g, MEAN]
        lack = (problem.table[b, g, LOW] - state.load[b, c]) / mean if mean > 0.0 else 0.0
        most = max(most, lack)
        if c == problem.setting[COUNTED]:
            count = max(count, lack)
    return count > LACKING * most


@inner
def scan(
    problem: Problem, state: State, watched: np.ndarray, source: int, target: int, n: int, block: np.ndarray,
    gains: np.ndarray,
) -> None:  # fmt: skip
    """Write into `gains` the gain in potential of moving each of the `n` vectors of `block` from `source` to `target`."""
    for i in lanes(n):
        gains[i] = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        ls, lt = state.load[source, c], state.load[target, c]
        hs, os, ms, ss, w, e = curve(problem, source, g)
        ht, ot, mt, st, w, e = curve(problem, target, g)
        if ss == 0.0 and st == 0.0:
            continue
        now = linear_cost(problem, source, g, ls) + linear_cost(problem, target, g, lt)
        column = block[c]
        for i in lanes(n):
            x = np.float64(column[i])
            gains[i] += now - cost_at(ls - x, hs, os, ms, ss, w, e) - cost_at(lt + x, ht, ot, mt, st, w, e)


@inner
def keep_best(keys: np.ndarray, n: int, floor: float, most: int, kept: np.ndarray, spare: np.ndarray) -> int:
    """Write the indices of the at most `most` largest keys above `floor` into `kept`; returns how many.

    They are in index order, those that equal the least of them last. `spare` float64 [n] is scratch.
    """
    count = 0
    for i in lanes(n):
        count += number(keys[i] > floor)
    if count <= most:
        found = 0
        for i in range(n):
            if keys[i] > floor:
                kept[found] = i
                found += 1
        return found
    cut = cut_of(keys, n, floor, most, spare)
    found = 0
    for i in range(n):
        kept[found] = i  # the next one overwrites it if its key is not above the cut; fewer than `most` are
        found += 1 if keys[i] > cut else 0
    for i in range(n):
        if keys[i] == cut:
            kept[found] = i
            found += 1
            if found == most:
                break
    return found


@inner
def cut_of(keys: np.ndarray, n: int, floor: float, most: int, spare: np.ndarray) -> float:
    """The `most`-th largest of the first `n` keys, of which more than `most` are above `floor`. `spare` float64 [n] is scratch.

    Halves the range of keys `HALVINGS` times, since a processor counts many keys at a time, and selects among the few that remain.
    """
    low, high = floor, floor
    for i in range(n):
        high = max(high, keys[i])
    above = 0  # keys beyond `high`
    for _ in range(HALVINGS):
        middle = 0.5 * low + 0.5 * high
        count = 0
        for i in lanes(n):
            count += number(keys[i] > middle)
        if count >= most:
            low = middle
        else:
            high, above = middle, count
    left = 0
    for i in range(n):
        spare[left] = keys[i]
        left += 1 if low <= keys[i] <= high else 0
    return nth_largest(spare, left, most - above)


@inner
def best_key(gains: np.ndarray, factors: np.ndarray, found: int, least: float, keys: np.ndarray) -> int:
    """Index of the largest product of gain and factor among the first `found` gains above `least`, the first of equals; -1 if none.

    `keys` float64 [found or more] is scratch.
    """
    for i in lanes(found):
        keys[i] = either(gains[i] > least, gains[i] * factors[i], 0.0)
    best = first_largest(keys, found) if found > 0 else whole(-1)
    return best if best >= 0 and keys[best] > 0.0 else whole(-1)


@inner
def copy_kept(block: np.ndarray, factors: np.ndarray, kept: np.ndarray, found: int, small: np.ndarray) -> None:
    """Copy the columns of `block` that the first `found` entries of `kept` name into `small`, and their factors into its last row."""
    last = block.shape[0] - 1
    for i in lanes(found):
        for c in range(last):
            small[c, i] = block[c, kept[i]]
        small[last, i] = factors[kept[i]]


@inner
def topic_burden(problem: Problem, state: State, p: int, replica: bool, leads: bool, source: int, target: int) -> float:
    """Rise of the potential in topic goals if a `replica` of `p`, its leadership (`leads`) or both go from `source` to `target`."""
    burden = 0.0
    t = whole(problem.topic[p])
    for k in range(len(problem.topic_goal)):
        if leads if problem.topic_goal[k, COUNTS_LEADERS] == 1 else replica:
            rise = misplaced_rise(problem, state, k, t, source, whole(-1)) + misplaced_rise(problem, state, k, t, target, whole(1))
            burden += problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH] * rise
    return burden
