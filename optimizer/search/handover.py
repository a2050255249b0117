"""Leaderships alone, where the budget leaves no move: partition by partition, those first that lower the potential most.

Called by `rounds` once a budget is spent. `balance` looks at one broker after the other, as moves need it; leaderships have few places to
go, so here every partition is looked at.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState
from kernels.compiled import inner, kernel, whole
from optimizer.problem import MOVABLE, STATE, Problem
from optimizer.search.candidates import LEAST_GAIN, watched_goals
from optimizer.search.commit import commit
from optimizer.search.feasible import fits_as_leader
from optimizer.search.leadership import appraise, transfer_gain
from optimizer.search.order import ascending
from optimizer.search.potential import is_out
from optimizer.search.state import State

SWEEPS = 6  # over what a transfer was found for in the sweep before, at first all partitions
STILL = 0.2  # of what a transfer promised when the sweep began: with less left, others come first
FEW = 0.05  # transfers in a sweep, for each that was promised: with fewer there is no other
KEEPS = int(BrokerState.EXCLUDED)  # such a broker leads what it leads


@kernel
def hand_over(problem: Problem, state: State, roles: np.ndarray) -> int:
    """Transfer leaderships from brokers or to brokers out of band, as long as the potential falls; returns how many.

    `roles` int64 [G] marks goals that a transfer can help.

    Notes
    -----
    O(P R) for each of a few sweeps, and sorting what is promising.
    """
    partitions, slots = state.replicas.shape
    brokers = len(problem.broker)
    costs = np.zeros((brokers, len(problem.goal) + 1))
    out = np.zeros(brokers, np.uint8)
    promising, gains = np.arange(partitions), np.zeros(partitions)
    row = np.zeros(slots, np.int64)
    goals = np.zeros(len(problem.goal), np.int64)
    watched = goals[: watched_goals(problem, state, goals)]
    led = watched[roles[watched] == 1]
    total, count = 0, partitions
    for _ in range(SWEEPS):
        for b in range(brokers):
            costs[b, -1], out[b] = 0.0, 0
            for g in led:
                if problem.broker[b, STATE] == 0 and is_out(problem, state, b, g):
                    out[b] = 1
        looked, count = count, 0
        for i in range(looked):
            p = promising[i]
            _, gain = best_leader(problem, state, led, p, out, costs)
            if gain > LEAST_GAIN:
                promising[count], gains[count] = p, -gain
                count += 1
        order = ascending(gains[:count])
        done = 0
        for i in range(count):
            p = promising[order[i]]
            slot, gain = best_leader(problem, state, led, p, out, costs)
            if gain <= max(LEAST_GAIN, -STILL * gains[order[i]]):
                continue
            costs[state.replicas[p, state.lead[p]], -1], costs[state.replicas[p, slot], -1] = 0.0, 0.0
            for s in range(slots):
                row[s] = state.replicas[p, s]
            commit(problem, state, p, row, slot)
            done += 1
        total += done
        if done <= FEW * count:
            break
    return total


@inner
def best_leader(
    problem: Problem, state: State, led: np.ndarray, p: int, out: np.ndarray, costs: np.ndarray
) -> tuple[int, float]:
    """Which slot of partition `p` should lead, and by how much the potential falls with it; -1 and 0 where none should."""
    best, most = whole(-1), 0.0
    lead = state.lead[p]
    if lead < 0 or problem.partition[p, MOVABLE] == 0:
        return best, most
    giver = state.replicas[p, lead]
    if problem.broker[giver, STATE] == KEEPS:
        return best, most
    for s in range(state.replicas.shape[1]):
        taker = state.replicas[p, s]
        if taker < 0 or s == lead or (out[giver] == 0 and out[taker] == 0):
            continue
        appraise(problem, state, led, giver, costs)
        appraise(problem, state, led, taker, costs)
        gain = transfer_gain(problem, state, led, p, giver, taker, costs)
        if gain > most and fits_as_leader(problem, state, p, taker):
            best, most = whole(s), gain
    return best, most
