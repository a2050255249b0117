"""Single acceptable steps for a broker: the best move or transfer of leadership.

Called by `polish`; each step is checked by `evaluate`.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, part, whole
from optimizer.problem import MOVABLE, STATE, Problem
from optimizer.search.candidates import gather, keep_best, scan
from optimizer.search.evaluate import acceptable, evaluate
from optimizer.search.hosting import may_host
from optimizer.search.leadership import fits_as_leader
from optimizer.search.ledger import Budget, within_budget
from optimizer.search.shelf import Shelf
from optimizer.search.state import State
from optimizer.search.thrift import thrift_of

LOOKS = 24  # candidates of one partner that are evaluated in full


@part
def best_single(
    problem: Problem, state: State, budget: Budget, watched: np.ndarray, v: int, partners: np.ndarray, found: int,
    least: float, by_potential: bool, shelf: Shelf, factors: np.ndarray, gains: np.ndarray, kept: np.ndarray, spare: np.ndarray,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> bool:  # fmt: skip
    """Leave in change 0 the acceptable single move or transfer at broker `v` with the best gain (at least `least`) for its bytes."""
    slots = state.replicas.shape[1]
    zero, one, none = whole(0), whole(1), whole(-1)
    best_p, best_s, best_target, best_lead, best_key = none, none, none, none, 0.0
    for i in range(state.hosts[v]):
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        if problem.partition[p, MOVABLE] == 0 or state.lead[p] < 0:
            continue
        giver = state.replicas[p, state.lead[p]]
        for o in range(slots):
            u = state.replicas[p, o]
            if (
                u < 0
                or o == state.lead[p]
                or (s != state.lead[p] and o != s)
                or problem.broker[giver, STATE] == 3
            ):
                continue
            if not fits_as_leader(problem, state, p, u):
                continue
            set_move(state, partitions, replicas, leads, p, zero, none, o)
            verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
            key = verdict.gain * 10.0 + (1.0 if verdict.repairs != 0 else 0.0)
            if key > best_key and helps(state, v, scores) and acceptable(verdict, by_potential, least):
                if within_budget(problem, state, budget, one, partitions, replicas, leads):
                    best_p, best_s, best_target, best_lead, best_key = p, zero, none, o, key
    for k in range(found):
        for way in range(2):
            source, target = (v, partners[k]) if way == 0 else (partners[k], v)
            n = gather(problem, state, shelf, source, False, factors)
            scan(problem, state, watched, source, target, n, shelf.vector[source], gains)
            for i in range(n):
                gains[i] = gains[i] * factors[i] if factors[i] > 0.0 else -np.inf
            count = keep_best(gains, n, -np.inf if len(problem.topic_goal) else 0.0, whole(LOOKS), kept, spare)
            for i in range(count):
                entry = whole(state.hosted[source, kept[i]])
                p, s = entry // slots, entry % slots
                if not may_host(problem, state, p, s, target):
                    continue
                set_move(state, partitions, replicas, leads, p, s, target, state.lead[p])
                verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
                key = verdict.gain * thrift_of(problem, p) + (1.0 if verdict.repairs != 0 else 0.0)
                if key > best_key and helps(state, v, scores) and acceptable(verdict, by_potential, least):
                    if within_budget(problem, state, budget, one, partitions, replicas, leads):
                        best_p, best_s, best_target, best_lead, best_key = p, s, target, state.lead[p], key
    if best_p < 0:
        return False
    set_move(state, partitions, replicas, leads, best_p, best_s, best_target, best_lead)
    return True


@inner
def set_move(state: State, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray,
             p: int, s: int, target: int, lead: int) -> None:  # fmt: skip
    """The first change of an action: slot `s` of `p` to `target` (unless -1), led by slot `lead`."""
    partitions[0] = p
    for o in range(replicas.shape[1]):
        replicas[0, o] = state.replicas[p, o]
    if target >= 0:
        replicas[0, s] = target
    leads[0] = lead


@inner
def helps(state: State, v: int, scores: np.ndarray) -> bool:
    """Whether an action of these goal scores does something about what broker `v` scores low in."""
    for g in range(len(scores)):
        if scores[g] > 0.5 and state.score[v, g] < 1.0:
            return True
    return False
