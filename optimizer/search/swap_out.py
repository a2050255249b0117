"""Escape: one replica for another, of all that a broker out of band and others hold, until none helps.

`balance` weighs few of the replicas of two brokers, those that do best alone. Where some partitions are as large as a band, a broker
needs a large one for another large one, or many small swaps that each do little harm elsewhere; those are looked for here, on a target.
Called by `search`.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, part, whole
from optimizer.problem import STATE, Problem
from optimizer.search.candidates import gather, topic_burden, watched_goals
from optimizer.search.chance import scramble
from optimizer.search.commit import commit
from optimizer.search.evaluate import acceptable, evaluate
from optimizer.search.feasible import keeps_limits, may_swap
from optimizer.search.ledger import LEAST_STEP, has_room
from optimizer.search.order import ascending
from optimizer.search.polish import helps
from optimizer.search.potential import badness, is_low
from optimizer.search.shelf import Shelf, new_shelf
from optimizer.search.state import MAX_CHANGES, State
from optimizer.search.swaps import swap_gains

SAMPLED = 64  # replicas of the broker out of band, set against all of a partner
PARTNERS = 24  # at random, for one swap
ENOUGH = 0.1  # of what is out of band on the broker: a swap that brings so much is made without asking further partners
LEAST_SHARE = 5e-3  # of it, that a swap has to bring
SWAPS = 8  # of a broker in one pass
LEAST_FALL = 0.05  # of all that is out of band, for another pass that brings no broker into it
LOOKS_EACH = 1_000  # pairs of replicas, for each replica there is


@kernel
def swap_out(problem: Problem, state: State, seed: int) -> int:
    """Swaps between brokers that are out of a band on loads and others, the worst first, as long as the potential falls. Returns how many.

    Notes
    -----
    O(`LOOKS_EACH` G) for each replica, at most.
    """
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    most, eligible, able = LOOKS_EACH * state.replicas.size, np.zeros(brokers, np.int64), 0
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible[able] = b
            able += 1
    eligible = eligible[:able]
    goals = np.zeros(len(problem.goal), np.int64)
    watched = goals[: watched_goals(problem, state, goals)]
    partitions, leads = np.zeros(MAX_CHANGES, np.int64), np.zeros(MAX_CHANGES, np.int64)
    replicas, scores = np.zeros((MAX_CHANGES, slots), np.int64), np.zeros(len(problem.goal))
    keys, low = np.zeros(brokers), np.zeros(brokers, np.int64)
    looks, swaps = np.zeros(2, np.int64), 0
    shelf = new_shelf(problem, state, np.zeros(0, np.int64))
    past, fewest = np.inf, brokers + 1
    while looks[0] < most:
        out, total = 0, 0.0
        for b in range(brokers):
            if is_low(problem, state, b):
                low[out], keys[out] = b, -badness(problem, state, b)
                total -= keys[out]
                out += 1
        if out == 0 or len(eligible) < 2 or (out >= fewest and total > (1.0 - LEAST_FALL) * past):
            break
        past, fewest = total, min(fewest, out)
        order = ascending(keys[:out])
        for i in range(out):
            v = low[order[i]]
            for _ in range(SWAPS):
                if looks[0] >= most or not is_low(problem, state, v):
                    break
                if not find_swap(problem, state, shelf, watched, v, eligible, seed, looks, partitions, replicas, leads, scores):
                    break
                for at in range(2):
                    commit(problem, state, partitions[at], replicas[at], leads[at])
                swaps += 1
    return swaps


@part
def find_swap(
    problem: Problem, state: State, shelf: Shelf, watched: np.ndarray, v: int, eligible: np.ndarray, seed: int, looks: np.ndarray,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> bool:  # fmt: skip
    """Leave in changes 0 and 1 the best acceptable swap of a sample of the replicas of `v` against all of some partners at random.

    `looks` int64 [2] counts the pairs of replicas seen, and the draws. Whether there was one.
    """
    slots = state.replicas.shape[1]
    room = state.hosted.shape[1] + 1
    mine, theirs, gains = np.zeros(room), np.zeros(room), np.zeros(room)
    got = np.zeros(room if len(problem.topic_goal) > 0 else 0)
    bad = badness(problem, state, v)
    best, best_p, best_q, partner = max(LEAST_STEP, LEAST_SHARE * bad), whole(-1), whole(-1), whole(-1)
    n = gather(problem, state, shelf, v, False, mine)
    x = shelf.vector[v]
    sample = min(n, SAMPLED)
    for _ in range(PARTNERS):
        looks[1] += 1
        u = eligible[scramble(seed * 1000003 + looks[1]) % len(eligible)]
        first = scramble(seed * 1000033 + looks[1]) % max(n, 1)
        if u == v:
            continue
        m = gather(problem, state, shelf, u, False, theirs)
        y = shelf.vector[u]
        looks[0] += sample * m
        for j in range(m if len(got) > 0 else 0):
            q = state.hosted[u, j] // slots
            got[j] = topic_burden(problem, state, q, True, state.lead[q] == state.hosted[u, j] % slots, u, v)
        most, giving, getting = best, whole(-1), whole(-1)
        for k in range(sample):
            i = (first + k * n // sample) % n
            p, s = whole(state.hosted[v, i] // slots), whole(state.hosted[v, i] % slots)
            if mine[i] == 0.0 or not may_swap(problem, state, p, s, u):
                continue
            swap_gains(problem, state, watched, v, u, x, i, m, y, gains)
            if not any_above(gains, m, most):
                continue
            given = topic_burden(problem, state, p, True, state.lead[p] == s, v, u) if len(got) > 0 else 0.0
            for j in range(m):
                if gains[j] <= most or theirs[j] == 0.0:
                    continue
                q, t = whole(state.hosted[u, j] // slots), whole(state.hosted[u, j] % slots)
                gain = gains[j]
                if len(got) > 0 and problem.topic[p] != problem.topic[q]:
                    gain -= given + got[j]
                if gain > most and q != p and may_swap(problem, state, q, t, v) and keeps_limits(problem, state, v, u, x, i, y, j):
                    most, giving, getting = gain, whole(state.hosted[v, i]), whole(state.hosted[u, j])
        if giving < 0:
            continue
        set_swap(state, partitions, replicas, leads, giving, u, getting, v)
        verdict = evaluate(problem, state, whole(2), partitions, replicas, leads, scores)
        if helps(state, v, scores) and acceptable(verdict, True, LEAST_STEP) and has_room(state, whole(2), partitions, replicas):
            best, best_p, best_q, partner = most, giving, getting, u
        if best_p >= 0 and best >= ENOUGH * bad:
            break
    if best_p >= 0:
        set_swap(state, partitions, replicas, leads, best_p, partner, best_q, v)
    return best_p >= 0


@inner
def any_above(keys: np.ndarray, n: int, floor: float) -> bool:
    """Whether any of the first `n` keys is above `floor`."""
    for i in range(n):
        if keys[i] > floor:
            return True
    return False


@inner
def set_swap(
    state: State, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, giving: int, u: int, getting: int, v: int
) -> None:
    """An action of two changes: the replica `giving` (``partition * R + slot``) to broker `u`, and `getting` to `v`."""
    slots = state.replicas.shape[1]
    for at in range(2):
        entry, target = (giving, u) if at == 0 else (getting, v)
        p = entry // slots
        partitions[at], leads[at] = p, state.lead[p]
        for o in range(slots):
            replicas[at, o] = state.replicas[p, o]
        replicas[at, entry % slots] = target
