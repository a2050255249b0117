"""Destroy and repair: all free replicas of a few brokers are placed again, by simulated annealing.

`balance` stops where no single step and no swap lowers the potential. What may still help is one replica for several, or several for
several, by way of worse placements. For a few brokers that can be tried hundreds of thousands of times. One energy counts the brokers
outside their target ranges (one outside a hard goal counts as all), how far they are outside, and the cost of moves. The best placement is
kept. Called by `search` on a target: for each of the last brokers outside, together with a few others; and for a cluster of up to six
brokers as a whole, where it also finds the cheapest placement.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel, whole
from kernels.order import ascending, draw, scramble
from optimizer.parameters import (
    ANNEAL_EACH,
    ANNEAL_STEPS,
    BEYOND_PRICE,
    LEAST_PRICE,
    LEAST_TRIES,
    OUT_PRICE,
    PACKED_BROKERS,
    VAIN_ATTEMPTS,
    WHOLE_CLUSTER,
    WHOLE_EACH,
    WHOLE_STEPS,
    WHOLE_TRIES,
    WHOLE_VAIN,
)
from optimizer.placement.feasible import active_brokers
from optimizer.placement.potential import is_out, price
from optimizer.placement.standing import count_low
from optimizer.placement.state import COST, LED, Rows, State, is_active
from optimizer.problem import (
    ACTIVE,
    COLUMN,
    DISTRIBUTION,
    FOLLOWING,
    HIGH,
    KIND,
    LEADING,
    LIMIT,
    MOVABLE,
    RACK,
    RACK_OF,
    SAME_RACK,
    SCALE,
    SET_OF,
    SETS,
    STATE,
    STRENGTH,
    Problem,
)
from optimizer.search.partners import BrokerLoads, broker_loads, rank_partners
from optimizer.search.pool import Pool, Prices, count_out, excess, fits, go_back, paid_for, pool_of, send, settle, undo

MEMBERS = np.array([2, 3, 4, 6])  # brokers packed together, in turn: few brokers need few moves, many allow more changes


class Cooling(NamedTuple):
    """How a placement is annealed."""

    hot: float  # temperature at first, in prices of a typical move
    cold: float  # temperature in the end
    fare: float  # share of the price of a move that counts
    homeward: int  # one step in so many sends a replica to where the round found it
    leaders: bool = False  # whether only leaderships change


FIND = Cooling(50.0, 0.3, 0.05, 50)  # brings brokers within their ranges, from a placement that is first made random
RETURN = Cooling(2.0, 0.02, 1.0, 1)  # then sends replicas home that need not move
PACK = Cooling(2.0, 0.02, 1.0, 3)  # both at once, for a whole cluster
LEAD = Cooling(50.0, 0.3, 0.0, 1 << 30, True)  # brings brokers within their ranges by leaderships alone, which copy nothing


def repack(problem: Problem, state: State, seed: int, moves: bool = True) -> int:
    """Bring brokers of `state` within their target ranges, with no more excess in all. Returns how many (as `excess` counts), or 1 if a
    whole cluster only got cheaper. Without `moves` only leaderships change.

    Notes
    -----
    For n brokers outside, about `VAIN_ATTEMPTS` + 2 n times `ANNEAL_STEPS` steps of O(G), fewer if replicas are few; for a whole cluster
    at most `WHOLE_TRIES` times `WHOLE_STEPS`.
    """
    eligible = np.flatnonzero(problem.broker[:, STATE] == ACTIVE)
    low = count_low(problem, state)
    small = len(eligible) <= MEMBERS[-1] and state.replicas.size <= WHOLE_CLUSTER
    if len(eligible) < 2 or (not small and (not low or low > max(PACKED_BROKERS * len(eligible), MEMBERS[-1]))):
        return 0
    goals = decisive_goals(problem, state)
    bands = goals[problem.goal[goals, KIND] == DISTRIBUTION]
    prices = Prices(float(problem.cost.mean()) or 1.0, float(problem.force[bands, STRENGTH].mean()) if len(bands) else 1.0)
    if moves and small and problem.setting[SETS] == 0:
        perfect = bool((state.score[eligible, :COST] >= 1.0).all())
        return pack_whole(problem, state, eligible, goals, prices, perfect, seed)
    return pack_last(problem, state, broker_loads(problem), goals, prices, low, seed, moves) if low else 0


def decisive_goals(problem: Problem, state: State) -> Rows:
    """int64: goals on loads, without limits that no broker breaks and that are no tighter than a band on the same load."""
    eligible = problem.broker[:, STATE] == ACTIVE
    table, kind = problem.table[eligible], problem.goal[:, KIND]
    counts = (kind <= LIMIT) & (table[:, :, SCALE] > 0.0).any(axis=0)
    for g in np.flatnonzero(counts & (kind == LIMIT)).tolist():
        column = problem.goal[g, COLUMN]
        high = table[:, g, HIGH]
        if (state.load[eligible, column] > high).any():
            continue
        for band in np.flatnonzero(counts & (kind == DISTRIBUTION) & (problem.goal[:, COLUMN] == column)).tolist():
            if (high >= table[:, band, HIGH]).all() and (table[:, band, SCALE] > 0.0).all():
                counts[g] = False
    return np.flatnonzero(counts)


@inner
def is_astray(problem: Problem, state: State, b: int) -> bool:
    """Whether an active broker is outside a goal that its immovable replicas do not break alone. Goals on racks do not count."""
    if not is_active(problem, b):
        return False
    slots = state.replicas.shape[1]
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == RACK or not is_out(problem, state, b, g):
            continue
        if problem.goal[g, KIND] > LIMIT:
            return True
        column, fixed = problem.goal[g, COLUMN], 0.0
        for i in range(state.hosts[b]):
            p = state.hosted[b, i] // slots
            if problem.partition[p, MOVABLE] == 0:
                fixed += problem.vector[p, LEADING if state.mark[b, i] & LED else FOLLOWING, column]
        if fixed <= problem.table[b, g, HIGH]:
            return True
    return False


@kernel
def pack_last(
    problem: Problem, state: State, loads: BrokerLoads, goals: np.ndarray, prices: Prices, low: int, seed: int, moves: bool
) -> int:
    """As `repack`, for the last brokers outside; `goals` int64 are those of `decisive_goals`, `low` is the number of brokers outside."""
    random, eligible = np.zeros(1, np.int64), active_brokers(problem)
    random[0] = scramble(seed + 7919) >> 8
    came, spare = 0, VAIN_ATTEMPTS
    order = ascending(state.score[:, COST])
    tries = max(VAIN_ATTEMPTS // low, LEAST_TRIES)
    for v in order:
        for attempt in range(tries):
            if spare == 0 or not is_astray(problem, state, v):
                break
            turn = whole(attempt if moves else len(MEMBERS) - 1)  # leaderships copy nothing, so the largest group costs no more
            group = choose(problem, state, loads, goals, v, turn, eligible, random)
            pool = pool_of(problem, state, goals, group.copy(), prices, whole(2 * ANNEAL_STEPS))
            out, spent = count_out(problem, state, pool), paid_for(problem, state, pool)
            steps = whole(min(ANNEAL_EACH * len(pool.free), ANNEAL_STEPS))
            left, paid = anneal(problem, state, pool, out, spent, FIND if moves else LEAD, steps, random)
            if left == out:
                spare -= 1
            elif moves:
                go_back(problem, state, pool, pool.at[1])
                left, _ = anneal(problem, state, pool, left, paid, RETURN, steps, random)
            settle(problem, state, pool)
            came += out - left
    return int(came)


@kernel
def pack_whole(problem: Problem, state: State, eligible: np.ndarray, goals: np.ndarray, prices: Prices, perfect: bool, seed: int) -> int:
    """As `repack`, for all brokers at once. The best placement is kept if it has fewer brokers outside, or, if `perfect` (all goals are met
    at first), if it costs less.

    If goals are still missed in the end, the potential may not rise either, because the worst broker counts most in it.
    """
    random = np.zeros(1, np.int64)
    random[0] = scramble(seed + 7919) >> 8
    pool = pool_of(problem, state, goals, eligible, prices, whole(WHOLE_TRIES * WHOLE_STEPS))
    out, spent = count_out(problem, state, pool), paid_for(problem, state, pool)
    fewest, least, vain, potential = out, spent, 0, total_cost(state, eligible)
    steps = whole(min(WHOLE_EACH * len(pool.free), WHOLE_STEPS))
    for attempt in range(WHOLE_TRIES):
        if vain == WHOLE_VAIN:
            break
        if attempt % 2 == 0:
            go_back(problem, state, pool, pool.at[1])
        left, paid = anneal(problem, state, pool, fewest, least, PACK, steps, random)
        vain = 0 if left < fewest or paid < least else vain + 1
        fewest, least = left, paid
    better = fewest < out or (perfect and least < spent - LEAST_PRICE)
    if better:
        settle(problem, state, pool)
    if not better or (fewest > 0 and total_cost(state, eligible) > potential):
        pool.at[1] = 0
        settle(problem, state, pool)
        return whole(0)
    return int(max(out - fewest, 1))


@inner
def total_cost(state: State, brokers: np.ndarray) -> float:
    """Sum of the potential of `brokers` int64."""
    total = 0.0
    for b in brokers:
        total += state.score[b, COST]
    return float(total)


@inner
def choose(
    problem: Problem, state: State, loads: BrokerLoads, goals: np.ndarray, v: int, attempt: int, eligible: np.ndarray, random: np.ndarray
) -> np.ndarray:
    """int64: the group to pack: broker `v`, if `attempt` is odd its best partner, and random other brokers of its set."""
    size, partners = min(MEMBERS[attempt % len(MEMBERS)], len(eligible)), np.zeros(1, np.int64)
    noise = draw(random, whole(1 << 40)) + 1
    at = rank_partners(problem, state, loads, goals, v, whole(min(attempt % 2, size - 1)), noise, partners) + 1
    group = np.full(size, v, np.int64)
    if at > 1:
        group[1] = partners[0]
    for _ in range(8 * size):
        if at == size:
            break
        u = eligible[draw(random, len(eligible))]
        known = problem.setting[SAME_RACK] == 1 and problem.broker[u, RACK_OF] != problem.broker[v, RACK_OF]
        known = known or problem.broker[u, SET_OF] != problem.broker[v, SET_OF]
        for k in range(at):
            if group[k] == u:
                known = True
        if not known:
            group[at] = u
            at += 1
    return group[:at]


@inner
def propose(problem: Problem, state: State, pool: Pool, homeward: bool, leaders: bool, random: np.ndarray) -> tuple[int, int, int]:
    """A random step: a replica (-1: no step this time), a replica that it trades places with (-1: none), and the broker that it goes to.
    For a leadership, in the same form: the replica that gets it, the replica that has it, and the broker of the first."""
    slots = state.replicas.shape[1]
    i, j = whole(pool.free[draw(random, len(pool.free))]), whole(-1)
    p, s, o = i // slots, i % slots, mate_of(state, pool, i, random)
    kind = whole(2) if leaders else draw(random, whole(3 if o >= 0 else 2))
    here, b = state.replicas[p, s], pool.group[draw(random, len(pool.group))]
    if homeward:
        b = home_of(state, pool, i)
        if b < 0 or price(problem, state.home, i, here) == 0.0:
            return whole(-1), j, b
    if kind == 2 and not homeward and o >= 0:
        lead = state.lead[p]
        if lead != s and lead != o:
            return whole(-1), j, b
        i = p * slots + (o if lead == s else s)
        return i, p * slots + lead, state.replicas[p, i % slots]
    if leaders:
        return whole(-1), j, b
    if kind == 1:
        j = whole(pool.free[draw(random, len(pool.free))])
        there = state.replicas[j // slots, j % slots]
        if (homeward and there != b) or j // slots == p:
            return whole(-1), j, b
        b = there
    if b == here or not fits(problem, state, i, b) or (j >= 0 and not fits(problem, state, j, here)):
        return whole(-1), j, b
    return i, j, b


@inner
def mate_of(state: State, pool: Pool, entry: int, random: np.ndarray) -> int:
    """Slot of another replica of the partition of `entry` that is on a broker of the pool, drawn at random; -1 if there is none."""
    slots = state.replicas.shape[1]
    first = draw(random, slots)
    for k in range(slots):
        o = whole((first + k) % slots)
        b = state.replicas[entry // slots, o]
        if o != entry % slots and b >= 0 and pool.seat[b] >= 0:
            return o
    return whole(-1)


@inner
def home_of(state: State, pool: Pool, entry: int) -> int:
    """A broker of the pool where replica `entry` costs nothing: its own home, else that of another replica of the partition, else -1."""
    slots, found = state.home.shape[1], whole(-1)
    for o in range(slots):
        b = whole(state.home[entry // slots, o])
        if b >= 0 and pool.seat[b] >= 0 and (found < 0 or o == entry % slots):
            found = b
    return found


@inner
def anneal(
    problem: Problem, state: State, pool: Pool, fewest: int, least: float, cooling: Cooling, steps: int, random: np.ndarray
) -> tuple[int, float]:  # fmt: skip
    """Anneal the pool in so many random `steps`: at first nearly every step is made, in the end only those that improve the placement.

    `fewest` and `least` are the brokers outside (as `excess` counts) and the cost of moves in the pool's best placement. Returns them, and
    changes the pool's best only to a better placement, in which its brokers together have no more excess than at the start of the call.
    """
    members = len(pool.group)
    out, beyond = np.zeros(members, np.int64), np.zeros(members)
    outside, over, paid = whole(0), 0.0, paid_for(problem, state, pool)
    for k in range(members):
        out[k], beyond[k] = excess(problem, state, pool, whole(k))
        outside += out[k]
        over += beyond[k]
    most, dear = over * (1.0 + LEAST_PRICE), BEYOND_PRICE * len(pool.free) / members
    slots, heat, rate = state.replicas.shape[1], cooling.hot, math.log(cooling.cold / cooling.hot)
    for step in range(steps):
        if step % 64 == 0:
            heat = cooling.hot * math.exp(rate * step / steps)
        i, j, to = propose(problem, state, pool, step % cooling.homeward == 0, cooling.leaders, random)
        if i < 0:
            continue
        leads, toll = j // slots == i // slots, 0.0
        here = state.replicas[j // slots, j % slots] if leads else state.replicas[i // slots, i % slots]
        if not leads:
            toll = price(problem, state.home, i, to) - price(problem, state.home, i, here)
            toll += price(problem, state.home, j, here) - price(problem, state.home, j, to) if j >= 0 else 0.0
            toll /= pool.prices.move
        send(problem, state, i, j, to)
        a, b = pool.seat[here], pool.seat[to]
        out_a, beyond_a = excess(problem, state, pool, a)
        out_b, beyond_b = excess(problem, state, pool, b)
        came, further = out_a + out_b - out[a] - out[b], beyond_a + beyond_b - beyond[a] - beyond[b]
        delta = cooling.fare * toll + OUT_PRICE * came + dear * further
        if delta > 0.0 and (draw(random, whole(1 << 30)) + 1) / (1 << 30) >= math.exp(-delta / heat):
            undo(problem, state, i, j, here)
            continue
        pool.taken[pool.at[0], 0], pool.taken[pool.at[0], 1], pool.taken[pool.at[0], 2] = i, j, here
        pool.at[0] += 1
        paid, outside, over = paid + toll, outside + came, over + further
        out[a], out[b], beyond[a], beyond[b] = out_a, out_b, beyond_a, beyond_b
        if (outside < fewest or (outside == fewest and paid < least - LEAST_PRICE)) and over <= most:
            fewest, least, pool.at[1] = outside, paid, pool.at[0]
    return fewest, least
