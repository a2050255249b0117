"""Swaps for the topics of a broker that no single step helps: one of the topic goes or comes, one of another topic the other way.

Called by `polish`; each is checked by `evaluate`.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, part, whole
from optimizer.problem import COUNTS_LEADERS, MOVABLE, STATE, Problem
from optimizer.search.candidates import topic_burden
from optimizer.search.chance import scramble
from optimizer.search.desk import least_of, most_of
from optimizer.search.evaluate import acceptable, evaluate
from optimizer.search.ledger import LEAST_STEP, Budget, within_budget
from optimizer.search.state import State
from optimizer.search.steps import helps, set_move
from optimizer.search.swaps import may_swap
from optimizer.search.topic_counts import largest_share, topic_holds, topic_rise, wanted_by_all
from optimizer.search.topic_steps import TOPIC_TARGETS
from optimizer.search.trade import best_return

SWAPPED = 8  # replicas of a broker looked at for a swap


@part
def topic_swap(
    problem: Problem, state: State, budget: Budget, watched: np.ndarray, v: int, by_potential: bool,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> bool:  # fmt: skip
    """Leave in changes 0 and 1 an acceptable swap for the topics that broker `v` has too many or too few of.

    One of the topic goes, or comes, and one of another topic the other way, so that loads stay in their bands: a broker at the edge
    of one can give nothing without getting something.
    """
    slots, brokers = state.replicas.shape[1], len(problem.broker)
    two = whole(2)
    for k in range(len(problem.topic_goal)):
        if state.units[k, v] == 0.0:
            continue
        leaders = problem.topic_goal[k, COUNTS_LEADERS] == 1
        looked, looks = 0, 0
        most = largest_share(problem, k)
        for i in range(state.hosts[v]):
            entry = whole(state.hosted[v, i])
            p, s = entry // slots, entry % slots
            t = whole(problem.topic[p])
            if looked >= SWAPPED or problem.partition[p, MOVABLE] == 0 or (leaders and state.lead[p] != s):
                continue
            if topic_holds(problem, state, k, t, v) <= most_of(problem, k, t, v):
                continue
            looked += 1
            for j in range(min(brokers, TOPIC_TARGETS)):
                target = whole(scramble(p * 8191 + v + j) % brokers if brokers > TOPIC_TARGETS else j)
                if problem.broker[target, STATE] != 0 or topic_rise(problem, state, k, t, target, whole(1)) > 0.0:
                    continue
                if set_swap(problem, state, watched, p, s, target, partitions, replicas, leads):
                    verdict = evaluate(problem, state, two, partitions, replicas, leads, scores)
                    if helps(state, v, scores) and acceptable(verdict, by_potential, LEAST_STEP):
                        if within_budget(problem, state, budget, two, partitions, replicas, leads):
                            return True
        for t in range(len(problem.topic_first) - 1):
            if not wanted_by_all(problem, k, t, most) or topic_holds(problem, state, k, t, v) >= least_of(problem, k, t, v):
                continue
            for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
                for s in range(slots):
                    source = state.replicas[p, s]
                    if looks >= TOPIC_TARGETS or source < 0 or source == v or problem.broker[source, STATE] != 0:
                        continue
                    if problem.partition[p, MOVABLE] == 0 or (leaders and state.lead[p] != s):
                        continue
                    if topic_rise(problem, state, k, t, source, whole(-1)) > 0.0:
                        continue
                    looks += 1
                    if set_swap(problem, state, watched, p, whole(s), v, partitions, replicas, leads):
                        verdict = evaluate(problem, state, two, partitions, replicas, leads, scores)
                        if helps(state, v, scores) and acceptable(verdict, by_potential, LEAST_STEP):
                            if within_budget(problem, state, budget, two, partitions, replicas, leads):
                                return True
    return False


@inner
def set_swap(
    problem: Problem, state: State, watched: np.ndarray, p: int, s: int, target: int,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray,
) -> bool:  # fmt: skip
    """Changes 0 and 1: slot `s` of `p` to `target`, and from there what suits loads best; False if nothing does."""
    slots, source = state.replicas.shape[1], state.replicas[p, s]
    if source == target or not may_swap(problem, state, p, s, target):
        return False
    gain = -topic_burden(problem, state, p, True, state.lead[p] == s, source, target)
    start = scramble(p * 8209 + target)
    at, _ = best_return(problem, state, watched, p, s, target, start, LEAST_STEP - gain)
    if at < 0:
        return False
    set_move(state, partitions, replicas, leads, p, s, target, state.lead[p])
    q = at // slots
    partitions[1], leads[1] = q, state.lead[q]
    for o in range(slots):
        replicas[1, o] = state.replicas[q, o]
    replicas[1, at % slots] = source
    return True
