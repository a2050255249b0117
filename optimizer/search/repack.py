"""The last brokers out of band: each is packed anew together with a few others, replicas of all of them at once.

`balance` stops where no single step and no swap lowers the potential. What is missing then is one replica for several, or several
for several, by way of placements that are worse. For a handful of brokers that can be tried hundreds of thousands of times: replicas
change places by chance, less and less against the potential (annealing), and the best placement is kept. Called by `rounds` on a
target; of no cost where nobody is out of band. What it tries is bounded by how many brokers are out.
"""

from __future__ import annotations

import math

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.problem import (
    BOUND,
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
    STATE,
    STRENGTH,
    Problem,
)
from optimizer.search.chance import draw, scramble
from optimizer.search.commit import commit
from optimizer.search.order import ascending
from optimizer.search.partners import Crowd, crowd_of, rank_partners
from optimizer.search.pool import (
    Pool,
    go_to,
    is_beyond,
    meets_mate,
    pool_of,
    potential_of,
    put,
    rise_of,
    toll_of,
    undo_counts,
)
from optimizer.search.potential import is_out
from optimizer.search.standing import count_low
from optimizer.search.state import COST, LED, Rows, State

LAST = 0.1  # of the brokers; where more are out of band, they mostly have to be, unless all are packed together
MEMBERS = np.array([2, 3, 4, 6])  # brokers packed together, in turn: with fewer, less moves; with more, more is possible
VAIN, LEAST_TRIES = 10, 4  # attempts in vain in all, shared by the brokers that are out; for one broker
STEPS_EACH, STEPS = 500, 200_000  # of one attempt, for each replica that may move, and at most
HOMEWARD = 2  # one step for so many of those, to send home whatever need not move
HOT, COLD = 0.5, 1e-6  # of the weight of a goal: what a step may cost at first and in the end
FARE = 0.01  # a replica away from where the plan found it, of the potential of a load at the end of its band
HOT_HOME, COLD_HOME = 2.0, 0.01  # the same, of the fare of a typical replica


def repack(problem: Problem, state: State, seed: int) -> int:
    """Bring brokers of `state` into band, or nearer to it; the potential does not rise. Returns how many came into band.

    Notes
    -----
    At most `VAIN` + n times `STEPS` steps of O(G), fewer where replicas are few, for n brokers out of band, and as many again to send home.
    """
    eligible = problem.broker[:, STATE] == 0
    low = count_low(problem, state)
    if eligible.sum() < 2 or not low or (low > LAST * eligible.sum() and eligible.sum() > MEMBERS[-1]):
        return 0
    goals = decisive_goals(problem, state)
    bands = goals[problem.goal[goals, KIND] == DISTRIBUTION]
    weight = float(problem.force[bands, STRENGTH].mean()) if len(bands) else 1.0
    widths = (problem.table[:, bands, BOUND] * problem.table[:, bands, SCALE])[eligible]
    fare = FARE * weight * float((widths**2).mean()) if len(bands) else FARE
    typical = float(problem.cost.mean()) or 1.0
    return pack_all(problem, state, crowd_of(problem), np.flatnonzero(eligible), goals, seed, weight, fare, low, typical)


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
def pack_all(
    problem: Problem, state: State, crowd: Crowd, eligible: np.ndarray, goals: np.ndarray, seed: int, weight: float, fare: float,
    low: int, typical: float,
) -> int:  # fmt: skip
    """See `repack`; `eligible` int64 are brokers, `goals` int64 those on loads that count, `weight` that of a typical one, `fare` the
    price of a replica away from home, `low` how many brokers are out, `typical` the size of a replica."""
    brokers = len(problem.broker)
    partners, worth, group = np.zeros(MEMBERS[-1], np.int64), np.zeros(brokers), np.zeros(MEMBERS[-1], np.int64)
    random = np.zeros(1, np.int64)
    random[0] = scramble(seed + 7919) >> 8
    came, spare = 0, VAIN
    order = ascending(state.score[:, COST])
    tries = max(VAIN // low, LEAST_TRIES)
    for v in order:
        for attempt in range(tries):
            if spare == 0 or not is_astray(problem, state, v):
                break
            size = choose(
                problem, state, crowd, goals, v, whole(MEMBERS[attempt % len(MEMBERS)]), whole(attempt % 2), eligible, partners, worth,
                group, random,
            )  # fmt: skip
            pool = pool_of(problem, state, goals, group[:size].copy(), typical, fare)
            out = 0
            for k in range(size):
                out += is_beyond(pool, k)
            steps = whole(min(STEPS_EACH * len(pool.free), STEPS))
            left, side = anneal(pool, steps, weight * HOT, weight * COLD, False, random)
            if left >= out:
                spare -= 1
                continue
            go_to(pool, side)
            left, side = anneal(pool, whole(steps // HOMEWARD), fare * HOT_HOME, fare * COLD_HOME, True, random)
            carry_out(problem, state, pool, side)
            came += out - left
    return int(came)


@inner
def carry_out(problem: Problem, state: State, pool: Pool, side: np.ndarray) -> None:
    """Put the replicas of the pool on the brokers that `side` int64 [n] names."""
    slots = state.replicas.shape[1]
    row = np.zeros(slots, np.int64)
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
    problem: Problem, state: State, crowd: Crowd, goals: np.ndarray, v: int, members: int, ranked: int, eligible: np.ndarray,
    partners: np.ndarray, worth: np.ndarray, group: np.ndarray, random: np.ndarray,
) -> int:  # fmt: skip
    """Broker `v`, the `ranked` best partners for it and any others into `group`; returns how many, at most `members`."""
    size = min(members, len(eligible))
    found = rank_partners(problem, state, crowd, goals, v, whole(min(ranked, size - 1)), draw(random, whole(1 << 40)) + 1, partners, worth)
    group[0] = v
    for k in range(found):
        group[k + 1] = partners[k]
    at = found + 1
    for _ in range(8 * size):
        if at == size:
            break
        u = eligible[draw(random, len(eligible))]
        known = problem.setting[SAME_RACK] == 1 and problem.broker[u, RACK_OF] != problem.broker[v, RACK_OF]
        for k in range(at):
            if group[k] == u:
                known = True
        if not known:
            group[at] = u
            at += 1
    return at


@inner
def propose(pool: Pool, homeward: bool, random: np.ndarray) -> tuple[int, int, int, int]:
    """A replica (-1: none this time), one for which it changes places (-1: none), and the brokers it goes from and to."""
    i, j = pool.free[draw(random, len(pool.free))], whole(-1)
    a, b = pool.side[i], pool.berth[i] if homeward else draw(random, len(pool.group))
    if homeward and (b < 0 or pool.fare[i, a] == 0.0):
        return whole(-1), j, a, b
    if draw(random, whole(2)) == 1:
        j = pool.free[draw(random, len(pool.free))]
        if homeward and pool.side[j] != b:
            return whole(-1), j, a, b
        b = pool.side[j]
    if a == b or pool.may[i, b] == 0 or (j >= 0 and pool.may[j, a] == 0):
        return whole(-1), j, a, b
    if meets_mate(pool, i, b, j) or (j >= 0 and meets_mate(pool, j, a, i)):
        return whole(-1), j, a, b
    return i, j, a, b


@inner
def anneal(pool: Pool, steps: int, hot: float, cold: float, homeward: bool, random: np.ndarray) -> tuple[int, np.ndarray]:
    """Let replicas change places by chance, at first nearly free, in the end only for the better.

    Not `homeward`: until nobody is out of band and the potential is below that of the start. `homeward`: whoever is in band stays
    there, and replicas go back to where the plan found them.

    How many brokers are out in the best placement, and each replica's side there (int64 [n]).
    """
    members = len(pool.group)
    beyond, out = np.zeros(members, np.int64), 0
    for k in range(members):
        beyond[k] = is_beyond(pool, k)
        out += beyond[k]
    best, fewest, lowest = pool.side.copy(), out, 0.0
    paid, heat, rate = 0.0, hot, math.log(cold / hot)
    for step in range(steps if len(pool.free) > 0 else 0):
        if step % 64 == 0:
            heat = hot * math.exp(rate * step / steps)
        i, j, a, b = propose(pool, homeward, random)
        if i < 0:
            continue
        toll, rise = toll_of(pool, i, j, a, b), rise_of(pool, i, j, a, b)
        delta = toll if homeward else toll + rise
        if delta > 0.0 and (draw(random, whole(1 << 30)) + 1) / (1 << 30) >= math.exp(-delta / heat):
            undo_counts(pool, i, j, a, b)
            continue
        put(pool, i, j, a, b)
        here, there = is_beyond(pool, a), is_beyond(pool, b)
        if homeward and (here > beyond[a] or there > beyond[b]):
            rise_of(pool, i, j, b, a)
            put(pool, i, j, b, a)
            continue
        paid += toll
        out += here + there - beyond[a] - beyond[b]
        beyond[a], beyond[b] = here, there
        if (out < fewest or (homeward and paid < lowest)) and potential_of(pool) < pool.start[0]:
            fewest, lowest = out, paid
            best[:] = pool.side
            if out == 0 and not homeward:
                break
    return fewest, best
