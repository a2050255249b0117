"""Destroy and repair: all free replicas of a few brokers are placed again, by simulated annealing.

`balance` stops where no single step and no swap lowers the potential. What is missing then is one replica for several, or several for
several, by way of placements that are worse. For a handful of brokers that can be tried hundreds of thousands of times. One energy counts
the brokers outside their bands (one outside a hard goal as all), how far they are outside, and what the moves cost; the best placement is
kept. Called by `search` on a target: for each of the last brokers outside their bands together with a few others, and for a cluster of up
to six brokers as a whole, where it finds the cheapest placement, too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.problem import (
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
from optimizer.search.commit import commit
from optimizer.search.feasible import active_brokers
from optimizer.search.order import ascending, draw, scramble
from optimizer.search.parameters import (
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
from optimizer.search.partners import Crowd, crowd_of, rank_partners
from optimizer.search.pool import Pool, Prices, excess, go_to, keeps_racks, meets_mate, paid_for, pool_of, put
from optimizer.search.potential import is_out
from optimizer.search.standing import count_low
from optimizer.search.state import COST, LED, Rows, State

MEMBERS = np.array([2, 3, 4, 6])  # brokers packed together, in turn: with fewer, less moves; with more, more is possible


class Course(NamedTuple):
    """How a placement is annealed: what a step may cost at first and in the end, in prices of a typical move; what share of its price
    a move counts with; one step in how many sends a replica to where the plan found it; and whether leaders alone change."""

    hot: float
    cold: float
    fare: float
    homeward: int
    leaders: bool = False


FIND = Course(50.0, 0.3, 0.05, 50)  # brokers into band, from a placement by chance
RETURN = Course(2.0, 0.02, 1.0, 1)  # then what need not move
PACK = Course(2.0, 0.02, 1.0, 3)  # a whole cluster: both at once
LEAD = Course(50.0, 0.3, 0.0, 1 << 30, True)  # brokers into band, by what copies nothing


def repack(problem: Problem, state: State, seed: int, moves: bool = True) -> int:
    """Bring brokers of `state` into band, without others going further out. Returns how many, and 1 where a whole cluster got cheaper.
    Without `moves` only leaderships change.

    Notes
    -----
    For n brokers out of band, at most `VAIN_ATTEMPTS` + n times `ANNEAL_STEPS` steps of O(G), fewer where replicas are few; for a whole
    cluster `WHOLE_TRIES` times `WHOLE_STEPS`.
    """
    eligible = np.flatnonzero(problem.broker[:, STATE] == 0)
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
    return pack_last(problem, state, crowd_of(problem), goals, prices, low, seed, moves) if low else 0


def decisive_goals(problem: Problem, state: State) -> Rows:
    """int64: goals on loads, without limits that nobody breaks and that lie beyond every band on the same load."""
    eligible = problem.broker[:, STATE] == 0
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
    """Whether an eligible broker is out of a goal that other replicas can help: not of one that immovable replicas break alone."""
    if problem.broker[b, STATE] != 0:
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
    problem: Problem, state: State, crowd: Crowd, goals: np.ndarray, prices: Prices, low: int, seed: int, moves: bool
) -> int:
    """See `repack`; `goals` int64 are those on loads that count, `low` is how many brokers are out."""
    random, eligible = np.zeros(1, np.int64), active_brokers(problem)
    random[0] = scramble(seed + 7919) >> 8
    came, spare = 0, VAIN_ATTEMPTS
    order = ascending(state.score[:, COST])
    tries = max(VAIN_ATTEMPTS // low, LEAST_TRIES)
    for v in order:
        for attempt in range(tries):
            if spare == 0 or not is_astray(problem, state, v):
                break
            turn = whole(attempt if moves else len(MEMBERS) - 1)  # where nothing is copied, many brokers cost no more than few
            group = choose(problem, state, crowd, goals, v, turn, eligible, random)
            pool = pool_of(problem, state, goals, group.copy(), prices)
            out = count_out(pool)
            steps = whole(min(ANNEAL_EACH * len(pool.free), ANNEAL_STEPS))
            left, paid, side = anneal(pool, out, paid_for(pool), FIND if moves else LEAD, steps, random)
            if left < out:
                go_to(pool, side)
                if moves:
                    left, _, side = anneal(pool, left, paid, RETURN, steps, random)
                carry_out(problem, state, pool, side)
                came += out - left
            else:
                spare -= 1
    return int(came)


@kernel
def pack_whole(problem: Problem, state: State, eligible: np.ndarray, goals: np.ndarray, prices: Prices, perfect: bool, seed: int) -> int:
    """As `pack_last`, for all brokers at once; where all goals are met at first (`perfect`) or then, for the cheapest placement.

    Where some are not met in the end, the potential does not rise either: the worst broker counts most in it.
    """
    random = np.zeros(1, np.int64)
    random[0] = scramble(seed + 7919) >> 8
    pool = pool_of(problem, state, goals, eligible, prices)
    out, spent = count_out(pool), paid_for(pool)
    here, potential = pool.side.copy(), total_cost(state, eligible)
    best, fewest, least, vain = here.copy(), out, spent, 0
    steps = whole(min(WHOLE_EACH * len(pool.free), WHOLE_STEPS))
    for attempt in range(WHOLE_TRIES):
        if vain == WHOLE_VAIN:
            break
        if attempt % 2 == 0:
            go_to(pool, best)
        left, paid, side = anneal(pool, fewest, least, PACK, steps, random)
        vain += 1
        if left < fewest or paid < least:
            fewest, least, vain = left, paid, 0
            best[:] = side
    if fewest == out and (not perfect or least >= spent - LEAST_PRICE):
        return whole(0)
    carry_out(problem, state, pool, best)
    if fewest > 0 and total_cost(state, eligible) > potential:
        carry_out(problem, state, pool, here)
        return whole(0)
    return int(max(out - fewest, 1))


@inner
def total_cost(state: State, brokers: np.ndarray) -> float:
    """The potential of `brokers` int64."""
    total = 0.0
    for b in brokers:
        total += state.score[b, COST]
    return float(total)


@inner
def carry_out(problem: Problem, state: State, pool: Pool, side: np.ndarray) -> None:
    """Put the replicas of the pool on the brokers that `side` int64 [n] names."""
    slots, row = state.replicas.shape[1], state.row
    for i in pool.free:
        p, changes = pool.entry[i] // slots, False
        for o in range(slots):
            row[o] = state.replicas[p, o]
        for at in range(-1, slots):  # it and its mates, in one change
            m = i if at < 0 else pool.mate[i, at]
            if m >= 0:
                s = pool.entry[m] % slots
                changes = changes or row[s] != pool.group[side[m]]
                row[s] = pool.group[side[m]]
        if changes:
            commit(problem, state, p, row, state.lead[p])


@inner
def choose(
    problem: Problem, state: State, crowd: Crowd, goals: np.ndarray, v: int, attempt: int, eligible: np.ndarray, random: np.ndarray
) -> np.ndarray:
    """int64: broker `v`, in every other `attempt` the best partner for it, and any others."""
    size, partners = min(MEMBERS[attempt % len(MEMBERS)], len(eligible)), np.zeros(1, np.int64)
    noise = draw(random, whole(1 << 40)) + 1
    at = rank_partners(problem, state, crowd, goals, v, whole(min(attempt % 2, size - 1)), noise, partners) + 1
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
def propose(pool: Pool, homeward: bool, leaders: bool, random: np.ndarray) -> tuple[int, int, int, int]:
    """A replica (-1: none this time), one for which it changes places (-1: none), and the brokers it goes from and to."""
    i, j = pool.free[draw(random, len(pool.free))], whole(-1)
    a, b = pool.side[i], pool.berth[i] if homeward else draw(random, len(pool.group))
    if homeward and (b < 0 or pool.price[i, a] == 0.0):
        return whole(-1), j, a, b
    mates = 0
    for m in pool.mate[i]:
        mates += m >= 0
    kind = whole(2) if leaders else draw(random, whole(3 if mates > 0 else 2))
    if leaders and mates == 0:
        return whole(-1), j, a, b
    if kind > 0:
        j = pool.free[draw(random, len(pool.free))] if kind == 1 else pool.mate[i, draw(random, mates)]
        if j < 0 or (homeward and pool.side[j] != b):
            return whole(-1), j, a, b
        b = pool.side[j]
    if a == b or meets_mate(pool, i, b, j) or not keeps_racks(pool, i, b, j):
        return whole(-1), j, a, b
    if j >= 0 and (meets_mate(pool, j, a, i) or not keeps_racks(pool, j, a, i)):
        return whole(-1), j, a, b
    return i, j, a, b


@inner
def count_out(pool: Pool) -> int:
    """Brokers of the pool outside their bands."""
    out = 0
    for k in range(len(pool.group)):
        out += excess(pool, k)[0]
    return int(out)


@inner
def anneal(pool: Pool, fewest: int, least: float, course: Course, steps: int, random: np.ndarray) -> tuple[int, float, np.ndarray]:
    """Let replicas change places by chance, at first nearly free, in the end only for the better, in so many `steps`.

    Moves count with `fare` of their price; one step in `homeward` sends a replica to where the plan found it, the others anywhere.
    How many brokers are out in the best placement, what its moves cost, and each replica's side there (int64 [n]): `fewest`, `least` and
    where the pool stands unless it is better. In a better one no more is beyond bands in all than where it stands at first.
    """
    members = len(pool.group)
    out, beyond = np.zeros(members, np.int64), np.zeros(members)
    outside, over, paid = whole(0), 0.0, paid_for(pool)
    for k in range(members):
        out[k], beyond[k] = excess(pool, k)
        outside += out[k]
        over += beyond[k]
    most, dear = over * (1.0 + LEAST_PRICE), BEYOND_PRICE * len(pool.side) / members
    best, heat, rate = pool.side.copy(), course.hot, math.log(course.cold / course.hot)
    for step in range(steps):
        if step % 64 == 0:
            heat = course.hot * math.exp(rate * step / steps)
        i, j, a, b = propose(pool, step % course.homeward == 0, course.leaders, random)
        if i < 0:
            continue
        toll = pool.price[i, b] - pool.price[i, a]
        if j >= 0:
            toll += pool.price[j, a] - pool.price[j, b]
        put(pool, i, j, a, b)
        out_a, beyond_a = excess(pool, a)
        out_b, beyond_b = excess(pool, b)
        came, further = out_a + out_b - out[a] - out[b], beyond_a + beyond_b - beyond[a] - beyond[b]
        delta = course.fare * toll + OUT_PRICE * came + dear * further
        if delta > 0.0 and (draw(random, whole(1 << 30)) + 1) / (1 << 30) >= math.exp(-delta / heat):
            put(pool, i, j, b, a)
            continue
        paid, outside, over = paid + toll, outside + came, over + further
        out[a], out[b], beyond[a], beyond[b] = out_a, out_b, beyond_a, beyond_b
        if (outside < fewest or (outside == fewest and paid < least - LEAST_PRICE)) and over <= most:
            fewest, least = outside, paid
            best[:] = pool.side
    return fewest, least, best
