"""Swaps: two replicas trade brokers. Judges by the potential alone.

`swap_with`, called by `balance`, compares those replicas of two brokers that gain most by themselves. If some partitions are as large as
a target range, a broker needs a large replica for another large one, or many small swaps that each do little harm elsewhere. `swap_out`,
an escape that `search` calls on a target, looks for those among all replicas, until none helps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel, part, whole
from kernels.lanes import either, lanes
from kernels.order import ascending, draw, scramble
from optimizer.parameters import (
    LEAST_GAIN,
    LEAST_STEP,
    SWAP_ENOUGH,
    SWAP_FALL,
    SWAP_LOOKS_EACH,
    SWAP_PARTNERS,
    SWAP_SAMPLE,
    SWAP_SHARE,
    SWAPS_OF_ONE,
)
from optimizer.placement.commit import relocate
from optimizer.placement.feasible import active_brokers, keeps_limits, may_swap
from optimizer.placement.potential import badness, cost_at, curve, is_low, linear_cost
from optimizer.placement.state import State
from optimizer.problem import COLUMN, Problem
from optimizer.search.batch import Room
from optimizer.search.candidates import copy_kept, gather, keep_best, scan, topic_burden, watched_goals
from optimizer.search.vector_cache import VectorCache, new_cache


class Side(NamedTuple):
    """Up to n replicas of one of the two brokers of a swap. C columns."""

    at: np.ndarray  # int64 [2], broker row, and how many replicas the side has
    place: np.ndarray  # int64 [n], index of each in the list of the broker
    entry: np.ndarray  # int64 [n], partition * R + slot
    vector: np.ndarray  # float64 [C + 1, n], loads; last row: factor on the gain of moving it, 0 if it may not move
    burden: np.ndarray  # float64 [n], rise of the potential in topic goals if it goes to the other broker; empty without such goals
    gain: np.ndarray  # float64 [n], scratch
    factor: np.ndarray  # float64, for each place of the broker's list: factor on the gain of moving that replica (`gather`)


@inner
def new_side(problem: Problem, most: int, factor: np.ndarray) -> Side:
    """An empty side with room for `most` replicas. `gather` fills `factor` float64, which has room for all replicas of a broker."""
    return Side(
        np.zeros(2, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros((problem.vector.shape[2] + 1, most)),
        np.zeros(most if len(problem.topic_goal) > 0 else 0), np.zeros(most), factor,
    )  # fmt: skip


@inner
def fill_side(problem: Problem, state: State, cache: VectorCache, side: Side, other: int) -> None:
    """Fill in the entries, vectors and burdens of the replicas at `side.place`, for swaps with broker `other`."""
    b, slots = side.at[0], state.replicas.shape[1]
    copy_kept(cache.vector[b], side.factor, side.place, side.at[1], side.vector)
    for i in range(side.at[1]):
        entry = whole(state.hosted[b, side.place[i]])
        side.entry[i] = entry
        if len(side.burden) > 0:
            side.burden[i] = topic_burden(problem, state, entry // slots, True, state.lead[entry // slots] == entry % slots, b, other)


@inner
def swap_with(problem: Problem, state: State, cache: VectorCache, watched: np.ndarray, mine: Side, theirs: Side, room: Room) -> int:
    """Make the best swap of the most promising replicas between the brokers of two sides; returns 1 if there is one, else 0."""
    shortlist(problem, state, cache, watched, mine, theirs.at[0], room)
    shortlist(problem, state, cache, watched, theirs, mine.at[0], room)
    i, j, _ = best_swap(problem, state, watched, mine, theirs, LEAST_GAIN, True)
    if i >= 0:
        make_swap(problem, state, mine, i, theirs, j)
    return 1 if i >= 0 else 0


@inner
def shortlist(problem: Problem, state: State, cache: VectorCache, watched: np.ndarray, side: Side, other: int, room: Room) -> None:
    """Fill a side with the replicas of its broker that gain most, or do least harm, by going to broker `other`."""
    b, gains = side.at[0], room.gains
    n = gather(problem, state, cache, b, False, side.factor)
    scan(problem, state, watched, b, other, n, cache.vector[b], gains)
    for i in lanes(n):
        gains[i] = either(side.factor[i] == 0.0, -np.inf, gains[i])
    side.at[1] = keep_best(gains, n, -np.inf, len(side.place), side.place, room.spare)
    fill_side(problem, state, cache, side, other)


@inner
def best_swap(
    problem: Problem, state: State, watched: np.ndarray, mine: Side, theirs: Side, floor: float, thrifty: bool
) -> tuple[int, int, float]:
    """Indices of the replicas of two sides that best trade brokers (-1 if no gain is above `floor`), and the gain. If `thrifty`, the gain
    is multiplied by the smaller of the two factors, so that the cost counts."""
    slots, v, u, gains, last = state.replicas.shape[1], mine.at[0], theirs.at[0], theirs.gain, len(mine.vector) - 1
    best_i, best_j, most = whole(-1), whole(-1), 0.0 if thrifty else floor
    for i in range(mine.at[1] if state.hosts[u] < state.hosted.shape[1] else 0):
        p = mine.entry[i] // slots
        if mine.vector[last, i] == 0.0 or not may_swap(problem, state, p, mine.entry[i] % slots, u):
            continue
        swap_gains(problem, state, watched, v, u, mine.vector[:, i], theirs)
        for j in range(theirs.at[1]):
            gain = gains[j]
            if gain <= floor or theirs.vector[last, j] == 0.0:  # most pairs end here
                continue
            q = theirs.entry[j] // slots
            if len(mine.burden) > 0 and problem.topic[p] != problem.topic[q]:
                gain -= mine.burden[i] + theirs.burden[j]
            key = gain * min(mine.vector[last, i], theirs.vector[last, j]) if thrifty else gain
            if gain <= floor or key <= most or q == p or not keeps_limits(problem, state, v, u, mine.vector, i, theirs.vector, j):
                continue
            if may_swap(problem, state, q, theirs.entry[j] % slots, v):
                best_i, best_j, most = whole(i), whole(j), key
    return best_i, best_j, most


@inner
def swap_gains(problem: Problem, state: State, watched: np.ndarray, v: int, u: int, x: np.ndarray, theirs: Side) -> None:
    """Write into `theirs.gain` the gain in potential if loads `x` float64 [C or more] go from `v` to `u`, and each of `theirs` to `v`."""
    n, gains = theirs.at[1], theirs.gain
    for j in lanes(n):
        gains[j] = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        lv, lu = state.load[v, c], state.load[u, c]
        hv, ov, mv, sv, w, e = curve(problem, v, g)
        hu, ou, mu, su, w, e = curve(problem, u, g)
        if sv == 0.0 and su == 0.0:
            continue
        now = linear_cost(problem, v, g, lv) + linear_cost(problem, u, g, lu)
        given, column = x[c], theirs.vector[c]
        for j in lanes(n):
            d = given - column[j]
            gains[j] += now - cost_at(lv - d, hv, ov, mv, sv, w, e) - cost_at(lu + d, hu, ou, mu, su, w, e)


@inner
def make_swap(problem: Problem, state: State, mine: Side, i: int, theirs: Side, j: int) -> None:
    """Commit the swap of replica `i` of one side and replica `j` of the other."""
    slots = state.replicas.shape[1]
    for entry, target in ((mine.entry[i], theirs.at[0]), (theirs.entry[j], mine.at[0])):
        relocate(problem, state, entry // slots, entry % slots, target, state.lead[entry // slots])


@kernel
def swap_out(problem: Problem, state: State, seed: int) -> int:
    """Swap replicas of brokers outside a target range on loads, the worst first, with those of other brokers. Returns how many swaps.

    Notes
    -----
    Passes go on as long as fewer brokers are outside, or badness falls (`SWAP_FALL`). O(`SWAP_LOOKS_EACH` G) for each replica, at most.
    """
    brokers, eligible, watched = len(problem.broker), active_brokers(problem), watched_goals(problem, state)
    most, looks, swaps = SWAP_LOOKS_EACH * state.replicas.size, np.zeros(2, np.int64), 0
    cache, looks[1] = new_cache(problem, state, np.zeros(0, np.int64)), scramble(seed)
    places = state.hosted.shape[1] + 1
    mine, theirs = new_side(problem, whole(SWAP_SAMPLE), np.zeros(places)), new_side(problem, places, np.zeros(places))
    keys, low = np.zeros(brokers), np.zeros(brokers, np.int64)
    past, fewest = np.inf, brokers + 1
    while looks[0] < most:
        out, total = 0, 0.0
        for b in range(brokers):
            if is_low(problem, state, b):
                low[out], keys[out] = b, -badness(problem, state, b, True)
                total -= keys[out]
                out += 1
        if out == 0 or len(eligible) < 2 or (out >= fewest and total > (1.0 - SWAP_FALL) * past):
            break
        past, fewest = total, min(fewest, out)
        order = ascending(keys[:out])
        for i in range(out):
            mine.at[0] = low[order[i]]
            for _ in range(SWAPS_OF_ONE):
                if looks[0] >= most or not is_low(problem, state, low[order[i]]):
                    break
                if not swap_one(problem, state, cache, watched, mine, theirs, eligible, looks):
                    break
                swaps += 1
    return swaps


@part
def swap_one(
    problem: Problem, state: State, cache: VectorCache, watched: np.ndarray, mine: Side, theirs: Side, eligible: np.ndarray,
    looks: np.ndarray,
) -> bool:
    """Make the best swap of a sample of a broker's replicas with all replicas of random partners. Returns whether there was a swap.

    `looks` int64 [2]: how many pairs of replicas were compared, and the state of the random numbers (`draw`).
    """
    v, bad = mine.at[0], badness(problem, state, mine.at[0], True)
    best, partner, giving, getting = max(LEAST_STEP, SWAP_SHARE * bad), whole(-1), whole(-1), whole(-1)
    for _ in range(SWAP_PARTNERS):
        u, first = eligible[draw(looks[1:], len(eligible))], draw(looks[1:], whole(1 << 40))
        n = gather(problem, state, cache, v, False, mine.factor)
        if u == v or n == 0:
            continue
        theirs.at[0], theirs.at[1] = u, gather(problem, state, cache, u, False, theirs.factor)
        mine.at[1] = min(n, SWAP_SAMPLE)
        for k in range(mine.at[1]):
            mine.place[k] = (first + k * n // mine.at[1]) % n
        for k in range(theirs.at[1]):
            theirs.place[k] = k
        fill_side(problem, state, cache, mine, u)
        fill_side(problem, state, cache, theirs, v)
        looks[0] += mine.at[1] * theirs.at[1]
        i, j, gain = best_swap(problem, state, watched, mine, theirs, best, False)
        if i >= 0:
            best, partner, giving, getting = gain, whole(u), mine.entry[i], theirs.entry[j]
            if best >= SWAP_ENOUGH * bad:
                break
    if partner >= 0:
        theirs.at[0], mine.entry[0], theirs.entry[0] = partner, giving, getting
        make_swap(problem, state, mine, whole(0), theirs, whole(0))
    return partner >= 0
