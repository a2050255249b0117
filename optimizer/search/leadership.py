"""Leadership transfers from or to a broker, which copy no bytes.

Called by `balance`. Judges by the potential alone.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner, whole
from optimizer.parameters import LEADERSHIPS, LEAST_GAIN, LEAST_SLACK, LOOKED_AT, SLACK, SOON
from optimizer.placement.commit import transfer
from optimizer.placement.feasible import fits_as_leader
from optimizer.placement.potential import cost_at, curve, linear_cost, slope_at
from optimizer.placement.state import LED, State, is_active
from optimizer.problem import COLUMN, COUNTS_LEADERS, EXCLUDED, FOLLOWING, LEADING, STATE, STRENGTH, TOPIC_ROW, Problem
from optimizer.search.batch import Batch, Room
from optimizer.search.candidates import cut_of, topic_burden
from optimizer.search.partners import leans
from optimizer.search.vector_cache import VectorCache, fetch


@inner
def find_all(problem: Problem, state: State, cache: VectorCache, led: np.ndarray, batch: Batch, first: int, step: int, room: Room) -> None:
    """`find_leaders` for star `first` of a batch and every `step`-th after it."""
    for i in range(first, batch.used[0], step):
        find_leaders(problem, state, cache, led, batch, i, room)


@inner
def find_leaders(problem: Problem, state: State, cache: VectorCache, led: np.ndarray, batch: Batch, star: int, room: Room) -> None:
    """Write into `batch` the up to `LEADERSHIPS` transfers from or to the centre of `star` that lower the potential most, best first.

    `led` int64 are the goals in which a leader costs another amount than a follower. `room` holds what `survey` found for them.
    """
    v, costs, slopes, bounds, mine = batch.centre[star], room.costs, room.slopes, room.gains, room.factors
    best_gain, best_entry = batch.gain[star], batch.leader[star]
    for b in range(len(costs)):
        costs[b, -1] = 0.0
    note_cost(problem, state, led, v, costs)
    slots = state.replicas.shape[1]
    over, under = leans(problem, state, led, v)
    fetch(problem, state, cache, v)
    promises(problem, state, cache, led, v, over, under, room)
    n, floor = state.hosts[v], first_floor(state, v, bounds, room.spare)
    found, ceiling = whole(0), np.inf
    while True:  # first replicas that promise most, then others that may still be among the best
        for i in range(n):
            if ceiling < np.inf and i + 2 * SOON < n and floor <= bounds[i + 2 * SOON] < ceiling:
                q = state.hosted[v, i + 2 * SOON] // slots
                if found < LEADERSHIPS or bounds[i + 2 * SOON] >= best_gain[LEADERSHIPS - 1]:
                    ahead(state.lead, q)
                    ahead(state.replicas, q)
            if not floor <= bounds[i] < ceiling or (found == LEADERSHIPS and bounds[i] < best_gain[LEADERSHIPS - 1]):
                continue
            entry = whole(state.hosted[v, i])
            p, s = entry // slots, entry % slots
            gives = state.lead[p] == s
            for o in range(slots if state.lead[p] >= 0 else 0):
                u = state.replicas[p, o]
                if u < 0 or o == s or (not is_active(problem, u) if gives else o != state.lead[p] or problem.broker[u, STATE] == EXCLUDED):
                    continue
                most = promise(cache, led, v, i, u, 1.0 if gives else -1.0, slopes, mine)
                if most <= LEAST_GAIN or (found == LEADERSHIPS and most < best_gain[LEADERSHIPS - 1]):
                    continue
                note_cost(problem, state, led, u, costs)
                gain = transfer_gain(problem, state, led, p, v if gives else u, u if gives else v, costs)
                if gain > LEAST_GAIN:
                    found = insert(best_gain, best_entry, found, gain, p * slots + o if gives else entry)
        if floor <= LEAST_GAIN or (found == LEADERSHIPS and best_gain[LEADERSHIPS - 1] > floor):
            break
        floor, ceiling = LEAST_GAIN, floor
    batch.moves[star] = found


@inner
def first_floor(state: State, v: int, bounds: np.ndarray, spare: np.ndarray) -> float:
    """Least of the `bounds` to look at first, so that these are about `LOOKED_AT` replicas of broker `v`. Also prefetches them."""
    n, promising = state.hosts[v], 0
    for i in range(n):
        promising += 1 if bounds[i] > LEAST_GAIN else 0
    floor = LEAST_GAIN if promising <= LOOKED_AT else cut_of(bounds, n, LEAST_GAIN, whole(LOOKED_AT), spare)
    for i in range(n):
        if bounds[i] >= floor:
            q = state.hosted[v, i] // state.replicas.shape[1]
            ahead(state.lead, q)
            ahead(state.replicas, q)
    return float(floor)


@inner
def transfer_leaders(problem: Problem, state: State, led: np.ndarray, batch: Batch, star: int, costs: np.ndarray) -> int:
    """Commit the transfers found for `star` that still gain and fit hard limits; returns how many.

    `costs` float64 [B, G + 1] is scratch.
    """
    slots = state.replicas.shape[1]
    v, done = batch.centre[star], 0
    for i in range(batch.moves[star]):
        q = batch.leader[star, i] // slots
        ahead(state.lead, q)
        ahead(state.replicas, q)
        ahead(state.place, q)
        ahead(problem.vector[q], LEADING)
        ahead(problem.vector[q], FOLLOWING)
    for i in range(batch.moves[star]):
        p, o = batch.leader[star, i] // slots, batch.leader[star, i] % slots
        s = state.lead[p]
        if s == o:
            continue
        giver, taker = state.replicas[p, s], state.replicas[p, o]
        if giver != v and taker != v:
            continue
        costs[giver, -1], costs[taker, -1] = 0.0, 0.0
        note_cost(problem, state, led, giver, costs)
        note_cost(problem, state, led, taker, costs)
        gain = transfer_gain(problem, state, led, p, giver, taker, costs)
        if gain > LEAST_GAIN and fits_as_leader(problem, state, p, taker):
            transfer(problem, state, p, o)
            done += 1
    return done


@inner
def promises(problem: Problem, state: State, cache: VectorCache, led: np.ndarray, v: int, over: bool, under: bool, room: Room) -> None:
    """Write into `room.gains` an upper bound of the gain of a leadership transfer, for each replica on broker `v`; `-inf` if it may not
    change, or if that does not help `v`, which is `over` or `under`. The part that `v` itself gains goes into `room.factors`.

    The potential is convex, so no other broker gains more for each unit of load than the broker where it is steepest (`survey`).
    """
    steep, mine, bounds = room.steep, room.factors, room.gains
    n, mark, thrift = state.hosts[v], state.mark[v], cache.vector[v, -1]
    bonus = 0.0
    for k in range(len(problem.topic_goal)):
        if problem.topic_goal[k, COUNTS_LEADERS] == 1:
            bonus += 2.0 * problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]
    for i in range(n):
        bounds[i] = 0.0 if thrift[i] != 0.0 and (over if mark[i] & LED else under) else -np.inf
        mine[i] = bonus
    for g in led:
        load = state.load[v, problem.goal[g, COLUMN]]
        high, low, mean, scale, w, e = curve(problem, v, g)
        rising = -(steep[g, 2] if steep[g, 1] == v else steep[g, 0])
        falling = steep[g, 5] if steep[g, 4] == v else steep[g, 3]
        now = linear_cost(problem, v, g, load)
        lead = cache.lead[v, cache.seat[g]]
        for i in range(n):
            x = float(lead[i])
            x = x if mark[i] & LED else -x  # load that goes from `v` to another broker, negative if it comes to `v`
            gain = now - cost_at(load - x, high, low, mean, scale, w, e)
            theirs = (rising if x > 0.0 else -falling) * x
            mine[i] += gain + SLACK * abs(gain) + LEAST_SLACK * now
            bounds[i] += theirs + SLACK * abs(theirs)
    for i in range(n):
        bounds[i] += mine[i]


@inner
def promise(cache: VectorCache, led: np.ndarray, v: int, i: int, u: int, sign: float, slopes: np.ndarray, mine: np.ndarray) -> float:
    """The bound of `promises` if leadership of the `i`-th replica on `v` goes to broker `u` (`sign` 1), or comes from `u` (-1)."""
    most = float(mine[i])
    for g in led:
        theirs = -sign * slopes[u, g] * cache.lead[v, cache.seat[g], i]
        most += theirs + SLACK * abs(theirs)
    return most


@inner
def survey(problem: Problem, state: State, led: np.ndarray, slopes: np.ndarray, steep: np.ndarray) -> None:
    """Write by how much the potential of each broker rises for each unit of load into `slopes` float64 [B, G], and the extremes into
    `steep` float64 [G, 6]: the least slope, its broker, the second least; the same for the most."""
    for g in led:
        least, at_least, next_least, most, at_most, next_most = np.inf, -1.0, np.inf, -np.inf, -1.0, -np.inf
        for u in range(len(problem.broker)):
            high, low, mean, scale, w, e = curve(problem, u, g)
            slope = slope_at(state.load[u, problem.goal[g, COLUMN]], high, low, mean, scale, w, e)
            slopes[u, g] = slope
            if slope < next_least:
                next_least = slope
                if slope < least:
                    least, at_least, next_least = slope, float(u), least
            if slope > next_most:
                next_most = slope
                if slope > most:
                    most, at_most, next_most = slope, float(u), most
        steep[g, 0], steep[g, 1], steep[g, 2] = least, at_least, next_least
        steep[g, 3], steep[g, 4], steep[g, 5] = most, at_most, next_most


@inner
def note_cost(problem: Problem, state: State, led: np.ndarray, b: int, costs: np.ndarray) -> None:
    """Write the present potential of broker `b` in the goals `led` into its row of `costs`, unless the last column says it is there."""
    if costs[b, -1] == 0.0:
        for g in led:
            costs[b, g] = linear_cost(problem, b, g, state.load[b, problem.goal[g, COLUMN]])
        costs[b, -1] = 1.0


@inner
def transfer_gain(problem: Problem, state: State, watched: np.ndarray, p: int, giver: int, taker: int, costs: np.ndarray) -> float:
    """Gain in potential if leadership of `p` goes from broker `giver` to broker `taker`; `note_cost` has filled their `costs`."""
    gain = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        x = float(np.float32(problem.vector[p, LEADING, c])) - float(np.float32(problem.vector[p, FOLLOWING, c]))
        if x != 0.0:
            a, b = state.load[giver, c], state.load[taker, c]
            gain += (costs[giver, g] + costs[taker, g] - linear_cost(problem, giver, g, a - x) - linear_cost(problem, taker, g, b + x))
    if gain > 0.0 and len(problem.topic_goal) > 0:
        gain -= topic_burden(problem, state, p, False, True, giver, taker)
    return gain


@inner
def insert(best_gain: np.ndarray, best_entry: np.ndarray, found: int, gain: float, entry: int) -> int:
    """Insert a transfer into the best ones, which have descending gains (equal gains: lower entry first). Returns how many there are."""
    most = len(best_gain)
    if found == most:
        last = most - 1
        if gain < best_gain[last] or (gain == best_gain[last] and entry > best_entry[last]):
            return found
        at = last
    else:
        at = found
        found += 1
    while at > 0 and (best_gain[at - 1] < gain or (best_gain[at - 1] == gain and best_entry[at - 1] > entry)):
        best_gain[at] = best_gain[at - 1]
        best_entry[at] = best_entry[at - 1]
        at -= 1
    best_gain[at] = gain
    best_entry[at] = entry
    return found
