"""Repairs that the schedule left open, each as an action of one change.

Called by `polish` before anything else: replicas on dead or draining brokers or outside their sets, missing leaders, over-full racks.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, part, whole
from optimizer.parameters import LEAST_RANK, LEAST_STEP, URGENT, USEFUL
from optimizer.placement.evaluate import REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS, acceptable, evaluate, propose
from optimizer.placement.feasible import active_brokers, may_swap, must_leave, rack_mates
from optimizer.placement.log import Budget, Log, has_room, is_full, publish, within_budget
from optimizer.placement.state import State, is_active, is_leaving
from optimizer.problem import EXCLUDED, HARD_RACK, MENDABLE, MOVABLE, RACK_GOAL, RACK_LIMIT, SETS, STATE, Problem
from optimizer.search.repair import crowds

MENDS = 1 << REPAIRS_DEAD | 1 << REPAIRS_DRAINING | 1 << REPAIRS_LEADERLESS  # repairs for which partitions of excluded topics may change


@inner
def relieve(problem: Problem, state: State, budget: Budget, log: Log, by_potential: bool) -> int:
    """Publish open repairs, one change each: replicas that must leave a broker, missing leaders, over-full racks. Returns how many."""
    if not needs_relief(problem, state):
        return 0
    slots, targets, best, done = state.replicas.shape[1], active_brokers(problem), np.zeros(3, np.int64), 0
    for p in range(len(state.lead)):
        if problem.partition[p, MENDABLE] == 0 or is_full(log, whole(1)) or not is_broken(problem, state, p):
            continue
        most, urgent = 0.0, is_urgent(problem, state, p)
        for s in range(slots):
            if state.replicas[p, s] < 0 or not may_change(problem, state, p, s):
                continue
            for i in range(-1, len(targets)):  # -1: the replica stays, and another leads
                target = state.replicas[p, s] if i < 0 else targets[i]
                if not urgent and not eases_rack(problem, state, p, s, target):
                    continue
                if i >= 0 and not may_swap(problem, state, p, s, target):
                    continue
                for lead in range(-1, slots):
                    if not may_lead(problem, state, p, s, target, lead) or (i < 0 and lead == state.lead[p]):
                        continue
                    rank = rank_of(problem, state, budget, p, s, target, lead, by_potential)
                    if rank > most:
                        most, best[0], best[1], best[2] = rank, s, target, lead
        if most > 0.0:
            propose(state, whole(0), p, best[0], best[1], best[2])
            publish(problem, state, budget, log, whole(1), whole(0))
            done += 1
    return done


@inner
def needs_relief(problem: Problem, state: State) -> bool:
    """Whether any partition may need a repair by `relieve`."""
    for b in range(len(state.hosts)):
        if state.hosts[b] > 0 and is_leaving(problem, b):
            return True
    for p in range(len(state.lead)):
        if state.lead[p] < 0:
            return True
    return bool(problem.setting[SETS] == 1 or (problem.setting[RACK_GOAL] == HARD_RACK and crowds(state)))


@inner
def crowded_hard(problem: Problem, state: State, p: int, s: int) -> bool:
    """Whether slot `s` of `p` is in a rack with more replicas of `p` than a hard goal allows."""
    return bool(
        problem.setting[RACK_GOAL] == HARD_RACK and rack_mates(problem, state, p, state.replicas[p, s]) > problem.partition[p, RACK_LIMIT]
    )


@inner
def eases_rack(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """Whether slot `s` of `p` leaves an over-full rack for one with room if it moves to broker `target`."""
    return bool(crowded_hard(problem, state, p, s) and rack_mates(problem, state, p, target) < problem.partition[p, RACK_LIMIT])


@inner
def is_urgent(problem: Problem, state: State, p: int) -> bool:
    """Whether `p` lacks a leader or has a replica that must leave its broker."""
    urgent = state.lead[p] < 0
    for s in range(state.replicas.shape[1]):
        urgent = urgent or (state.replicas[p, s] >= 0 and must_leave(problem, p, state.replicas[p, s]))
    return bool(urgent)


@inner
def is_broken(problem: Problem, state: State, p: int) -> bool:
    """Whether `p` `is_urgent` or, unless its topic is excluded, has a replica in an over-full rack."""
    broken = is_urgent(problem, state, p)
    for s in range(state.replicas.shape[1] if problem.partition[p, MOVABLE] == 1 else 0):
        broken = broken or (state.replicas[p, s] >= 0 and crowded_hard(problem, state, p, s))
    return bool(broken)


@inner
def may_change(problem: Problem, state: State, p: int, s: int) -> bool:
    """Whether a repair of `p` may change slot `s`: it moves, or `p` gets another leader."""
    here = problem.broker[state.replicas[p, s], STATE]
    return bool(here != 3 and (problem.partition[p, MOVABLE] == 1 or here != 0 or state.lead[p] < 0))


@inner
def may_lead(problem: Problem, state: State, p: int, s: int, target: int, lead: int) -> bool:
    """Whether slot `lead` (-1: none) may lead `p` after slot `s` moved to broker `target`."""
    if lead == state.lead[p]:
        return True
    if lead < 0 or state.replicas[p, lead] < 0:
        return False
    if not is_active(problem, target if lead == s else state.replicas[p, lead]):
        return False
    return bool(state.lead[p] < 0 or problem.broker[state.replicas[p, state.lead[p]], STATE] != EXCLUDED)


@part
def rank_of(problem: Problem, state: State, budget: Budget, p: int, s: int, target: int, lead: int, by_potential: bool) -> float:
    """How good a repair it is to move slot `s` of `p` to `target`, led by slot `lead`; 0 if it repairs nothing or is not acceptable."""
    here = state.replicas[p, s]
    # No rank for a replica that need not move: it moves only to get the partition a leader where no other change can.
    rank = USEFUL if target == here else (URGENT if must_leave(problem, p, here) or crowded_hard(problem, state, p, s) else 0.0)
    propose(state, whole(0), p, s, target, lead)
    verdict = evaluate(problem, state, whole(1))
    if verdict.repairs == 0 or not acceptable(verdict, by_potential, LEAST_STEP):
        return 0.0
    if problem.partition[p, MOVABLE] == 0 and verdict.repairs & MENDS == 0:
        return 0.0
    if not has_room(state, whole(1)) or not within_budget(problem, state, budget, whole(1)):
        return 0.0
    return float(max(rank + verdict.gain, LEAST_RANK))
