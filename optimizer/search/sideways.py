"""Reduce: random local search among placements that are as good and cost no more.

Many placements meet a target. Steps that cost nothing, or a little, lead from one to another, as another broker for a replica that moves
anyway; now and then one saves a move, or bytes. No broker scores lower in any goal for it, and all moves together never cost more than at
first. Called by `reduce`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel, whole
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
from optimizer.search.commit import send, transfer, write_row
from optimizer.search.feasible import (
    active_brokers,
    keeps_scores,
    linear_goals,
    may_swap,
    misplaces,
    role_of,
    scores_hold,
)
from optimizer.search.order import draw, scramble
from optimizer.search.parameters import (
    SIDEWAYS_EACH,
    SIDEWAYS_FEW,
    SIDEWAYS_HEAT,
    SIDEWAYS_PASSES,
    SIDEWAYS_SHARE,
    SIDEWAYS_SMALL,
    SIDEWAYS_STEPS,
)
from optimizer.search.potential import NOTHING
from optimizer.search.state import COST, State

HOME, ELSEWHERE, STAND_IN, TRADE, LEADER = 0, 1, 2, 3, 4  # kinds of steps
DRAWN = (HOME, ELSEWHERE, ELSEWHERE, STAND_IN, STAND_IN, STAND_IN, STAND_IN, TRADE, TRADE, LEADER)  # most saves a stand-in


class Walk(NamedTuple):
    """What steps choose from. Some entries may have come home since."""

    away: np.ndarray  # int64 [n], partition * R + slot of replicas that stand elsewhere than at first
    left: np.ndarray  # int64 [1], how many of them count
    home: np.ndarray  # int64 [P, R], where replicas were
    linear: np.ndarray  # int64 [W], goals on loads
    active: np.ndarray  # int64 [b], brokers
    random: np.ndarray  # int64 [1]
    brokers: np.ndarray  # int64 [2], that a step touches
    before: np.ndarray  # float64 [2, G], their scores
    purse: np.ndarray  # float64 [2]: what all steps have saved so far, and the temperature; both in units of cost


@kernel
def sideways(problem: Problem, state: State, home: np.ndarray, moved: np.ndarray, paid: float, seed: int) -> float:
    """Let replicas that a target moves go home, elsewhere, or trade places with others, and their leaderships be passed on, by chance,
    wherever no score falls and the cost of all moves does not rise. Returns by how much it fell.

    `home` int64 [P, R] is where replicas were; `moved` int64 are the partitions among which are all that stand elsewhere and may still be
    changed. `paid` is what all moves cost (`cost_of_moves`), also those that may not.

    Notes
    -----
    Steps are O(G): `SIDEWAYS_STEPS` at most in the first pass, twice as many in each that follows, as long as one saves `SIDEWAYS_SHARE` of
    `paid`; none where all that stand elsewhere had to leave their brokers, so that nothing can be saved.
    A problem of up to `SIDEWAYS_SMALL` replicas has one short pass: it may be planned interpreted, where a step takes far longer.
    """
    walk = Walk(
        np.zeros(home.shape[1] * len(moved), np.int64), np.zeros(1, np.int64), home, linear_goals(problem), active_brokers(problem),
        np.zeros(1, np.int64), np.zeros(2, np.int64), np.zeros((2, len(problem.goal))), np.zeros(2),
    )  # fmt: skip
    walk.random[0] = scramble(seed + 104_729) >> 8
    free, total = list_away(problem, state, walk, moved)
    if free == 0:
        return 0.0
    walk.purse[1] = SIDEWAYS_HEAT * total / walk.left[0]
    few = state.replicas.size <= SIDEWAYS_SMALL
    first = whole(min(SIDEWAYS_EACH * walk.left[0], SIDEWAYS_FEW if few else SIDEWAYS_STEPS))
    steps = first
    for _ in range(1 if few else SIDEWAYS_PASSES):
        before = walk.purse[0]
        take_steps(problem, state, walk, steps, False)
        if walk.purse[0] - before < SIDEWAYS_SHARE * paid:
            break
        steps *= 2
    walk.purse[1] = 0.0
    take_steps(problem, state, walk, first // 4, True)
    return float(walk.purse[0])


@kernel
def cost_of_moves(problem: Problem, state: State, home: np.ndarray) -> float:
    """What it costs that replicas stand elsewhere than in `home` int64 [P, R]."""
    total = 0.0
    for p in range(len(home)):
        for s in range(home.shape[1]):
            if home[p, s] >= 0 and state.replicas[p, s] != home[p, s]:
                total += problem.cost[p]
    return total


@inner
def take_steps(problem: Problem, state: State, walk: Walk, steps: int, firm: bool) -> None:
    """So many steps, as long as something stands elsewhere."""
    for _ in range(steps):
        if walk.left[0] == 0:
            break
        walk.purse[0] += step(problem, state, walk, firm)


@inner
def is_too_dear(walk: Walk, saved: float) -> bool:
    """Whether a step may not be for what it costs. One that costs more may be now and then (Metropolis), where what all before it saved
    pays for it."""
    if saved >= 0.0:
        return False
    if walk.purse[0] + saved < 0.0 or walk.purse[1] == 0.0:
        return True
    return draw(walk.random, whole(1 << 30)) >= math.exp(saved / walk.purse[1]) * (1 << 30)


@inner
def list_away(problem: Problem, state: State, walk: Walk, moved: np.ndarray) -> tuple[int, float]:
    """Note what stands elsewhere; returns how many of these replicas did not have to leave their broker, and what all of them cost."""
    n, free, total = 0, whole(0), 0.0
    for p in moved:
        for s in range(state.replicas.shape[1]):
            if walk.home[p, s] >= 0 and state.replicas[p, s] != walk.home[p, s]:
                walk.away[n] = p * state.replicas.shape[1] + s
                total += price(problem, walk, walk.away[n], state.replicas[p, s])
                free += 1 if problem.broker[walk.home[p, s], STATE] == 0 else 0
                n += 1
    walk.left[0] = n
    return free, total


@inner
def step(problem: Problem, state: State, walk: Walk, firm: bool) -> float:
    """One random step, if it may be; where `firm`, the potential may not rise by it. Returns what it saves."""
    slots, pick = state.replicas.shape[1], draw(walk.random, walk.left[0] * len(DRAWN))
    at, kind = pick // len(DRAWN), DRAWN[pick % len(DRAWN)]
    one, other = walk.away[at], whole(-1)
    p, s = one // slots, one % slots
    here, target = state.replicas[p, s], walk.home[p, s]
    if here == target:  # it came home by another's step
        drop(walk, at)
        return 0.0
    if kind == ELSEWHERE:
        target = walk.active[draw(walk.random, len(walk.active))]
    elif kind == STAND_IN:
        n = state.hosts[target]
        other = whole(state.hosted[target, draw(walk.random, n)]) if n > 0 else other
    elif kind == TRADE:
        other = walk.away[draw(walk.random, walk.left[0])]
        target = state.replicas[other // slots, other % slots]
    elif kind == LEADER:
        pass_on(problem, state, walk, one, firm)
        return 0.0
    if target == here or problem.broker[target, STATE] != 0:
        return 0.0
    saved = price(problem, walk, one, here) - price(problem, walk, one, target)
    if other >= 0:
        saved += price(problem, walk, other, target) - price(problem, walk, other, here)
    if is_too_dear(walk, saved) or not may_take(problem, state, one, target):
        return 0.0
    if other >= 0:
        fixed = other // slots == p or problem.partition[other // slots, MOVABLE] == 0
        if fixed or not may_take(problem, state, other, here):
            return 0.0
    if not no_worse(problem, state, target, one, other) or not no_worse(problem, state, here, other, one):
        return 0.0
    if not done(problem, state, walk, one, other, here, target, firm):
        return 0.0
    if kind == STAND_IN and other >= 0 and walk.home[other // slots, other % slots] != here:
        walk.away[at] = other
    elif target == walk.home[p, s]:
        drop(walk, at)
    return saved


# wide: two replicas, two brokers, and the rule
@inner
def done(problem: Problem, state: State, walk: Walk, one: int, other: int, here: int, target: int, firm: bool) -> bool:
    """Replica `one` goes from broker `here` to `target`, and `other` (-1: none) from there to here, unless one scores lower then, or,
    where `firm`, the potential rises."""
    walk.brokers[0], walk.brokers[1] = here, target
    for i in range(2):
        for g in range(walk.before.shape[1]):
            walk.before[i, g] = state.score[walk.brokers[i], g]
    potential = state.score[here, COST] + state.score[target, COST]
    send(problem, state, one, target)
    if other >= 0:
        send(problem, state, other, here)
    rises = state.score[here, COST] + state.score[target, COST] > potential
    if scores_hold(state, walk.brokers, whole(2), walk.before) and not (firm and rises):
        return True
    if other >= 0:
        send(problem, state, other, target)
    send(problem, state, one, here)
    return False


@inner
def drop(walk: Walk, at: int) -> None:
    """Entry `at` no longer counts."""
    walk.left[0] -= 1
    walk.away[at] = walk.away[walk.left[0]]


@inner
def price(problem: Problem, walk: Walk, entry: int, b: int) -> float:
    """What it costs that replica `entry` stands on broker `b`."""
    p, slots = entry // walk.home.shape[1], walk.home.shape[1]
    for o in range(slots):
        if walk.home[p, o] == b:
            return 0.0
    return float(problem.cost[p])


@inner
def may_take(problem: Problem, state: State, entry: int, b: int) -> bool:
    """Whether replica `entry` may go to broker `b` by racks, lists and goals on topics."""
    p, s = entry // state.replicas.shape[1], entry % state.replicas.shape[1]
    if not may_swap(problem, state, p, s, b) or state.hosts[b] >= state.hosted.shape[1]:
        return False
    if problem.setting[RACK_GOAL] == SOFT_RACK and problem.broker[b, RACK_OF] != problem.broker[state.replicas[p, s], RACK_OF]:
        return False  # other brokers share in what a change of racks does
    if len(problem.topic_goal) == 0:
        return True
    write_row(state, p, s, b)
    return not misplaces(problem, state, p, s, state.lead[p])


@inner
def no_worse(problem: Problem, state: State, b: int, came: int, gone: int) -> bool:
    """Whether broker `b` scores no lower in goals on loads when replica `came` comes to it and `gone` leaves it (-1: none)."""
    slots = state.replicas.shape[1]
    p, q = came // slots, gone // slots
    now = role_of(state, came) if came >= 0 else whole(NOTHING)
    was = role_of(state, gone) if gone >= 0 else whole(NOTHING)
    return keeps_scores(problem, state, b, p, now, q, was)


@inner
def weighs(problem: Problem, walk: Walk, p: int) -> bool:
    """Whether a leader of partition `p` counts more than a follower in a goal on loads."""
    for g in walk.linear:
        c = problem.goal[g, COLUMN]
        if problem.vector[p, LEADING, c] != problem.vector[p, FOLLOWING, c]:
            return True
    return False


@inner
def pass_on(problem: Problem, state: State, walk: Walk, entry: int, firm: bool) -> None:
    """Let replica `entry` lead its partition, or another in its place where it does, if it may be, as for `step`."""
    slots = state.replicas.shape[1]
    p, s, lead = entry // slots, entry % slots, state.lead[entry // slots]
    if lead < 0 or problem.partition[p, MOVABLE] == 0:
        return
    follower = s if lead != s else draw(walk.random, slots)
    there, here = state.replicas[p, follower], state.replicas[p, lead]
    if follower == lead or there < 0 or problem.broker[there, STATE] != 0 or problem.broker[here, STATE] != 0:
        return
    if not weighs(problem, walk, p):
        return
    if not keeps_scores(problem, state, there, p, whole(LEADING), p, whole(FOLLOWING)):
        return
    if not keeps_scores(problem, state, here, p, whole(FOLLOWING), p, whole(LEADING)):
        return
    if len(problem.topic_goal) > 0:
        write_row(state, p, follower, there)
        if misplaces(problem, state, p, whole(-1), follower):
            return
    potential = state.score[here, COST] + state.score[there, COST]
    transfer(problem, state, p, follower)
    if firm and state.score[here, COST] + state.score[there, COST] > potential:
        transfer(problem, state, p, lead)
