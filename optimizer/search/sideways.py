"""Reduce: a random local search among placements that are as good and cost no more.

Many placements meet a target. Some steps between them cost nothing or a little: a replica that moves anyway goes to another broker. Other
steps save bytes or a move: one replica goes home, or two replicas of one broker, and a cheaper replica of that broker goes instead, the
*stand-in*. No step lowers a score of a broker in any goal. All moves together never cost more than at first. Called by `reduce`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kernels.compiled import ahead, inner, kernel, whole
from kernels.lanes import either, lanes, larger, number, smaller
from kernels.order import draw, scramble
from optimizer.parameters import (
    NEAR,
    SIDEWAYS_ALL,
    SIDEWAYS_EACH,
    SIDEWAYS_FEW,
    SIDEWAYS_HEAT,
    SIDEWAYS_MOST,
    SIDEWAYS_RATE,
    SIDEWAYS_SHARE,
    SIDEWAYS_SMALL,
    SIDEWAYS_STEPS,
    STAND_INS,
)
from optimizer.placement.feasible import active_brokers, role_of
from optimizer.placement.potential import price
from optimizer.placement.state import LED, State, is_active
from optimizer.problem import COLUMN, FOLLOWING, LEADING, MOVABLE, Problem
from optimizer.search.steps import Step, add, changes_allowed, hand_on, keeps_load_scores, make_step, new_step, saved_by

HOME, ELSEWHERE, STAND_IN, TRADE, LEADER, FOR_TWO = 0, 1, 2, 3, 4, 5  # kinds of steps
DRAWN = (HOME, ELSEWHERE, ELSEWHERE, STAND_IN, STAND_IN, STAND_IN, STAND_IN, TRADE, TRADE, LEADER, FOR_TWO, FOR_TWO, FOR_TWO, FOR_TWO)


class Walk(NamedTuple):
    """What steps choose from, and the current step."""

    away: np.ndarray  # int64 [m], partition * R + slot of replicas that are not at home; replicas of one home broker stand together
    left: np.ndarray  # int64 [1], how many entries of `away` count; some of them may be home by now
    active: np.ndarray  # int64 [b], brokers that may take replicas
    random: np.ndarray  # int64 [1], where the series of `draw` stands
    purse: np.ndarray  # float64 [2]: what all steps saved so far, and the temperature; both in units of cost
    low: np.ndarray  # float64 [W], least loads of a stand-in
    high: np.ndarray  # float64 [W], its most loads
    row: np.ndarray  # int64 [n], partitions of candidates for a stand-in
    role: np.ndarray  # int64 [n], their roles
    fits: np.ndarray  # bool [n], whether their loads fit
    step: Step


@kernel
def sideways(problem: Problem, state: State, home: np.ndarray, moved: np.ndarray, paid: float, seed: int) -> float:
    """Make random steps that lower no score and do not raise the cost of all moves: replicas that a target moves go home, go to another
    broker, trade places or pass their leadership on. Returns by how much the cost of all moves fell.

    `home` int64 [P, R] is where replicas were. `moved` int64 are partitions; among them are all that are not at home and may still change.
    `paid` is the cost of all moves (`cost_of_moves`), including those that may not change.

    Notes
    -----
    A step is O(G), with up to `STAND_INS` looks at stand-ins. First come passes that try a stand-in for each replica that costs more than
    the mean. Then come random passes: at most `SIDEWAYS_STEPS` steps in the first, twice as many in each next one. Passes repeat while each
    saves enough (`SIDEWAYS_SHARE`, `SIDEWAYS_RATE`). There is none if all moves were off brokers that are not active: nothing can be saved.
    The limits are `SIDEWAYS_MOST` steps in all and `SIDEWAYS_ALL` for each replica that is not at home, or `SIDEWAYS_FEW` in a problem of
    up to `SIDEWAYS_SMALL` replicas, which may run interpreted. In a last, short pass neither cost nor potential may rise.
    """
    changes = new_step(problem, home)
    loads = len(changes.linear)
    walk = Walk(
        np.zeros(home.shape[1] * len(moved), np.int64), np.zeros(1, np.int64), active_brokers(problem), np.zeros(1, np.int64), np.zeros(2),
        np.zeros(loads), np.zeros(loads), np.zeros(STAND_INS, np.int64), np.zeros(STAND_INS, np.int64), np.zeros(STAND_INS, np.bool_),
        changes,
    )  # fmt: skip
    walk.random[0] = scramble(seed + 104_729) >> 8
    free, total = list_away(problem, state, walk, moved)
    if free == 0:
        return 0.0
    mean = total / walk.left[0]
    walk.purse[1] = SIDEWAYS_HEAT * mean
    first, left = whole(min(SIDEWAYS_EACH * walk.left[0], SIDEWAYS_STEPS)), whole(min(SIDEWAYS_ALL * walk.left[0], SIDEWAYS_MOST))
    if state.replicas.size <= SIDEWAYS_SMALL:
        left = whole(SIDEWAYS_FEW)
    asks, steps = True, first
    while left > 0:
        before = walk.purse[0]
        taken = ask_all(problem, state, walk, mean) if asks else take_steps(problem, state, walk, min(steps, left), False)
        saves = walk.purse[0] - before > paid * min(SIDEWAYS_SHARE, SIDEWAYS_RATE * taken / state.replicas.size)
        if not asks and not saves:
            break
        left, asks, steps = left - taken, asks and saves, steps if asks else 2 * steps
    walk.purse[1] = 0.0
    take_steps(problem, state, walk, first // 4, True)
    return float(walk.purse[0])


@kernel
def cost_of_moves(problem: Problem, state: State, home: np.ndarray) -> float:
    """Cost of all replicas that are not where `home` int64 [P, R] has them, slot by slot."""
    total = 0.0
    for p in range(len(home)):
        for s in range(home.shape[1]):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                total += problem.cost[p]
    return total


@inner
def ask_all(problem: Problem, state: State, walk: Walk, mean: float) -> int:
    """Try a stand-in for each entry of `walk.away` that costs more than `mean`; returns how many were tried."""
    asked, slots = whole(0), state.replicas.shape[1]
    for at in range(walk.left[0] - 1, -1, -1):
        if problem.cost[walk.away[at] // slots] > mean:
            asked += 1
            walk.purse[0] += step(problem, state, walk, at, whole(STAND_IN), False)
    return asked


@inner
def take_steps(problem: Problem, state: State, walk: Walk, steps: int, firm: bool) -> int:
    """Make up to `steps` random steps, while any entry of `walk.away` counts; returns how many. `firm` as for `step`."""
    for taken in range(steps):
        if walk.left[0] == 0:
            return whole(taken)
        pick = draw(walk.random, walk.left[0] * len(DRAWN))
        walk.purse[0] += step(problem, state, walk, pick // len(DRAWN), DRAWN[pick % len(DRAWN)], firm)
    return steps


@inner
def least_saved(walk: Walk) -> float:
    """The least that a step has to save, drawn at random; below 0 it may cost so much (Metropolis), but not more than all steps saved."""
    if walk.purse[1] == 0.0:
        return 0.0
    chance = (1.0 + draw(walk.random, whole(1 << 30))) / (1 << 30)
    return float(max(walk.purse[1] * math.log(chance), -walk.purse[0]))


@inner
def list_away(problem: Problem, state: State, walk: Walk, moved: np.ndarray) -> tuple[int, float]:
    """Write replicas that are not at home into `walk.away`; returns how many of them left an active broker, and the cost of all."""
    n, free, total = 0, whole(0), 0.0
    for p in moved:
        for s in range(state.replicas.shape[1]):
            if walk.step.home[p, s] >= 0 and state.replicas[p, s] != walk.step.home[p, s]:
                walk.away[n] = p * state.replicas.shape[1] + s
                total += price(problem, walk.step.home, walk.away[n], state.replicas[p, s])
                free += 1 if is_active(problem, walk.step.home[p, s]) else 0
                n += 1
    walk.left[0] = n
    homes = np.zeros(n, np.int64)
    for i in range(n):
        homes[i] = walk.step.home[walk.away[i] // walk.step.home.shape[1], walk.away[i] % walk.step.home.shape[1]]
    walk.away[:n] = walk.away[:n][np.argsort(homes, kind="mergesort")]
    return free, total


@inner
def step(problem: Problem, state: State, walk: Walk, at: int, kind: int, firm: bool) -> float:
    """Make a step of this `kind` with entry `at` of `walk.away` if it is allowed; if `firm`, the potential may not rise. Returns what the
    step saves, 0 if it is not made."""
    slots, one = state.replicas.shape[1], walk.away[at]
    here, home = state.replicas[one // slots, one % slots], walk.step.home[one // slots, one % slots]
    if here == home:  # an earlier step took it home
        drop(walk, at)
        return 0.0
    if kind == LEADER:
        pass_on(problem, state, walk, one, firm)
        return 0.0
    least = least_saved(walk)
    n = choose(problem, state, walk, at, kind, least)
    saved = saved_by(problem, walk.step, n)
    if n == 0 or saved < least or not changes_allowed(problem, state, walk.step, n):
        return 0.0
    if not keeps_load_scores(problem, state, walk.step, n) or not make_step(problem, state, walk.step, n, firm):
        return 0.0
    other = walk.step.entry[n - 1]
    if (kind == STAND_IN or kind == FOR_TWO) and walk.step.home[other // slots, other % slots] != here:
        walk.away[at] = other
    elif walk.step.target[0] == home:
        drop(walk, at)
    return saved


@inner
def choose(problem: Problem, state: State, walk: Walk, at: int, kind: int, least: float) -> int:
    """Write a step of this `kind` with entry `at` of `walk.away` into `walk.step`; returns how many changes it has, 0 if there is none."""
    slots = state.replicas.shape[1]
    one = walk.away[at]
    here, home = state.replicas[one // slots, one % slots], walk.step.home[one // slots, one % slots]
    add(state, walk.step, whole(0), one, home)
    if kind == HOME:
        return whole(1)
    if kind == ELSEWHERE:
        walk.step.target[0] = walk.active[draw(walk.random, len(walk.active))]
        return whole(1)
    if kind == TRADE:
        other = walk.away[draw(walk.random, walk.left[0])]
        walk.step.target[0] = state.replicas[other // slots, other % slots]
        add(state, walk.step, whole(1), other, here)
        return whole(2)
    n = whole(1)
    if kind == FOR_TWO:
        two = walk.away[(at + 1 + draw(walk.random, whole(NEAR))) % walk.left[0]]
        if two == one or walk.step.home[two // slots, two % slots] != home:
            return whole(0)
        add(state, walk.step, whole(1), two, home)
        n = whole(2)
    other = find_stand_in(problem, state, walk, n, least)
    if other < 0:
        return whole(0)
    add(state, walk.step, n, other, here)
    return n + 1


@inner
def find_stand_in(problem: Problem, state: State, walk: Walk, n: int, least: float) -> int:
    """Entry of a replica that goes from the home of the `n` returning replicas to the broker that the first of them leaves. Of some in a
    row it saves most, at least `least`, and keeps both brokers within their windows (`has_window`). -1 if there is none."""
    slots, home, here, fits, found = state.replicas.shape[1], walk.step.target[0], walk.step.source[0], walk.fits, whole(-1)
    paid, hosts = saved_by(problem, walk.step, n), state.hosts[home]
    if paid < least or not has_window(problem, state, walk, n):
        return found
    at, looked = draw(walk.random, hosts), whole(min(STAND_INS, hosts))
    for i in lanes(looked):
        place = (at + i) % hosts
        walk.row[i] = state.hosted[home, place] // slots
        walk.role[i], fits[i] = either(state.mark[home, place] & LED, whole(LEADING), whole(FOLLOWING)), True
        ahead(problem.vector[walk.row[i]], walk.role[i])
    for k in range(len(walk.step.linear)):
        c = problem.goal[walk.step.linear[k], COLUMN]
        for i in lanes(looked):
            amount = problem.vector[walk.row[i], walk.role[i], c]
            fits[i] = fits[i] & (amount >= walk.low[k]) & (amount <= walk.high[k])
    for i in range(looked):
        if not fits[i]:  # few do
            continue
        p, goes = walk.row[i], problem.partition[walk.row[i], MOVABLE] == 1
        for o in range(slots):
            goes = goes and state.replicas[p, o] != here
        entry = whole(state.hosted[home, (at + i) % hosts])
        value = paid + price(problem, walk.step.home, entry, home) - price(problem, walk.step.home, entry, here)
        if goes and value >= least:
            found, least = entry, value
    return found


@inner
def has_window(problem: Problem, state: State, walk: Walk, n: int) -> bool:
    """Write least and most loads of a stand-in for the `n` replicas into `walk`; False if no replica can have them."""
    slots, home, here, wrong = state.replicas.shape[1], walk.step.target[0], walk.step.source[0], 0
    for k in lanes(len(walk.low)):
        c = problem.goal[walk.step.linear[k], COLUMN]
        mine, yours = state.load[home, c], state.load[here, c]
        more, less = mine, yours  # with the replicas at home and no stand-in yet
        for i in range(n):
            amount = problem.vector[walk.step.entry[i] // slots, role_of(state, walk.step.entry[i]), c]
            more = more + amount
            less = less - (amount if walk.step.source[i] == here else 0.0)
        ends, others = walk.step.ends[home], walk.step.ends[here]
        walk.low[k] = larger(more - larger(ends[k, 1], mine), smaller(others[k, 0], yours) - less)
        walk.high[k] = smaller(more - smaller(ends[k, 0], mine), larger(others[k, 1], yours) - less)
        wrong += number(walk.low[k] > walk.high[k])
    return bool(wrong == 0 and state.hosts[home] > 0)


@inner
def drop(walk: Walk, at: int) -> None:
    """Remove entry `at` of `walk.away`; the last entry takes its place."""
    walk.left[0] -= 1
    walk.away[at] = walk.away[walk.left[0]]


@inner
def weighs(problem: Problem, walk: Walk, p: int) -> bool:
    """Whether a leader of partition `p` has another load than a follower in any goal on loads."""
    for g in walk.step.linear:
        c = problem.goal[g, COLUMN]
        if problem.vector[p, LEADING, c] != problem.vector[p, FOLLOWING, c]:
            return True
    return False


@inner
def pass_on(problem: Problem, state: State, walk: Walk, entry: int, firm: bool) -> None:
    """Make replica `entry` the leader of its partition, or, if it leads, a random other replica; only if allowed. `firm` as for `step`."""
    slots = state.replicas.shape[1]
    p, s, lead = entry // slots, entry % slots, state.lead[entry // slots]
    if lead < 0 or problem.partition[p, MOVABLE] == 0:
        return
    follower = s if lead != s else draw(walk.random, slots)
    there, here = state.replicas[p, follower], state.replicas[p, lead]
    if follower == lead or there < 0 or not is_active(problem, there) or not is_active(problem, here):
        return
    if weighs(problem, walk, p):
        hand_on(problem, state, p, follower, firm)
