"""Transfers of leadership from or to a broker, which cost no bytes.

Called by `balance`; judges by the potential alone.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, inner_as, part, whole
from optimizer.problem import CEILING, COLUMN, FOLLOWING, HARD, KIND, LEADING, LIMIT, STATE, Problem
from optimizer.search import uncompiled
from optimizer.search.broker_scores import linear_cost
from optimizer.search.candidates import LEAST_GAIN, topic_burden
from optimizer.search.commit import commit
from optimizer.search.partners import leans
from optimizer.search.state import LED, State

LEADERSHIPS = 16  # transfers a broker makes in a round


@part
def transfer_leaders(
    problem: Problem, state: State, led: np.ndarray, v: int, best_gain: np.ndarray, best_entry: np.ndarray, costs: np.ndarray
) -> int:
    """Up to `LEADERSHIPS` transfers from or to broker `v` that lower the potential. Costs no bytes.

    `led` are the goals that tell a leader from a follower; `costs` float64 [B, G + 1] is room.
    """
    for b in range(len(costs)):
        costs[b, -1] = 0.0
    appraise(problem, state, led, v, costs)
    slots = state.replicas.shape[1]
    factor = problem.vector.shape[2]
    over, under = leans(problem, state, led, v)
    found = whole(0)
    for i in range(state.hosts[v]):
        leads = (state.mark[v, i] & LED) != 0
        if not (over if leads else under):
            continue
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        if problem.compact[p, LEADING, factor] == 0.0 or state.lead[p] < 0:
            continue
        if leads:
            for o in range(slots):
                u = state.replicas[p, o]
                if u < 0 or o == s or problem.broker[u, STATE] != 0:
                    continue
                appraise(problem, state, led, u, costs)
                gain = transfer_gain(problem, state, led, p, v, u, costs)
                if gain > LEAST_GAIN:
                    found = insert(best_gain, best_entry, found, gain, p * slots + o)
        else:
            giver = state.replicas[p, state.lead[p]]
            if problem.broker[giver, STATE] == 3:
                continue
            appraise(problem, state, led, giver, costs)
            gain = transfer_gain(problem, state, led, p, giver, v, costs)
            if gain > LEAST_GAIN:
                found = insert(best_gain, best_entry, found, gain, entry)
    done = 0
    row = np.zeros(slots, np.int64)
    for i in range(found):
        p, o = best_entry[i] // slots, best_entry[i] % slots
        s = state.lead[p]
        if s == o:
            continue
        giver, taker = state.replicas[p, s], state.replicas[p, o]
        if giver != v and taker != v:
            continue
        costs[giver, -1], costs[taker, -1] = 0.0, 0.0
        appraise(problem, state, led, giver, costs)
        appraise(problem, state, led, taker, costs)
        gain = transfer_gain(problem, state, led, p, giver, taker, costs)
        if gain > LEAST_GAIN and fits_as_leader(problem, state, p, taker):
            for q in range(slots):
                row[q] = state.replicas[p, q]
            commit(problem, state, p, row, o)
            done += 1
    return done


@inner
def appraise(problem: Problem, state: State, led: np.ndarray, b: int, costs: np.ndarray) -> None:
    """What broker `b` costs in the goals `led` as it stands, into its row of `costs`, whose last column says that it is known."""
    if costs[b, -1] == 0.0:
        for g in led:
            costs[b, g] = linear_cost(problem, b, g, state.load[b, problem.goal[g, COLUMN]])
        costs[b, -1] = 1.0


@inner_as(uncompiled.transfer_gain)
def transfer_gain(
    problem: Problem, state: State, watched: np.ndarray, p: int, giver: int, taker: int, costs: np.ndarray
) -> float:
    """Gain in potential when leadership of `p` goes from broker `giver` to broker `taker`, whose `costs` are known."""
    gain = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        x = float(problem.compact[p, LEADING, c]) - float(problem.compact[p, FOLLOWING, c])
        if x != 0.0:
            a, b = state.load[giver, c], state.load[taker, c]
            gain += (
                costs[giver, g] + costs[taker, g]
                - linear_cost(problem, giver, g, a - x) - linear_cost(problem, taker, g, b + x)
            )  # fmt: skip
    if gain > 0.0 and len(problem.topic_goal) > 0:
        gain -= topic_burden(problem, state, p, False, True, giver, taker)
    return gain


@inner
def fits_as_leader(problem: Problem, state: State, p: int, b: int) -> bool:
    """Whether leading `p` keeps broker `b`, which holds a follower, under its hard limits."""
    if problem.broker[b, STATE] != 0:
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD] == 1:
            c = problem.goal[g, COLUMN]
            x = problem.vector[p, LEADING, c] - problem.vector[p, FOLLOWING, c]
            if x > 0.0 and state.load[b, c] + x > problem.table[b, g, CEILING]:
                return False
    return True


@inner
def insert(best_gain: np.ndarray, best_entry: np.ndarray, found: int, gain: float, entry: int) -> int:
    """Keep the best few in descending order of gain (lower entry first among equals); returns how many there are."""
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
