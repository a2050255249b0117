"""Repairs that the order of actions left open, one change each.

Called by `polish` before anything else, and instead of it where small changes are left out: replicas on dead and draining brokers,
missing leaders, crowded racks.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, part, whole
from optimizer.problem import HARD_RACK, MENDABLE, MOVABLE, RACK_GOAL, RACK_LIMIT, STATE, Problem
from optimizer.search.evaluate import REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS, acceptable, evaluate
from optimizer.search.feasible import may_swap
from optimizer.search.ledger import LEAST_STEP, Budget, Log, has_room, publish, within_budget
from optimizer.search.racks import crowds, rack_mates
from optimizer.search.state import MAX_CHANGES, State

MENDS = 1 << REPAIRS_DEAD | 1 << REPAIRS_DRAINING | 1 << REPAIRS_LEADERLESS  # what partitions of excluded topics may change for


@inner
def needs_relief(problem: Problem, state: State) -> bool:
    """Whether any partition may need what `relieve` does."""
    for b in range(len(state.hosts)):
        if state.hosts[b] > 0 and (problem.broker[b, STATE] == 1 or problem.broker[b, STATE] == 2):
            return True
    for p in range(len(state.lead)):
        if state.lead[p] < 0:
            return True
    return bool(problem.setting[RACK_GOAL] == HARD_RACK and crowds(state))


@part
def relieve(
    problem: Problem, state: State, budget: Budget, log: Log, by_potential: bool, eligible: np.ndarray, count: int,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> int:  # fmt: skip
    """Repairs still open, one change each: replicas on dead and draining brokers, missing leaders, crowded racks."""
    slots = state.replicas.shape[1]
    one = whole(1)
    row = np.zeros(slots, np.int64)
    done = 0
    for p in range(len(state.lead)):
        movable = problem.partition[p, MOVABLE] == 1  # an excluded topic leaves brokers that go, and gets leaders, but leaves no rack
        if problem.partition[p, MENDABLE] == 0 or log.used[1] + 1 >= len(log.partition):
            continue
        needs = state.lead[p] < 0
        for s in range(slots):
            b = state.replicas[p, s]
            if b < 0:
                continue
            if problem.broker[b, STATE] == 1 or problem.broker[b, STATE] == 2:
                needs = True
            if movable and problem.setting[RACK_GOAL] == HARD_RACK:
                if rack_mates(problem, state, p, b) > problem.partition[p, RACK_LIMIT]:
                    needs = True
        if not needs:
            continue
        best_key = 0.0
        best_lead = whole(-1)
        for s in range(slots):
            b = state.replicas[p, s]
            if b < 0 or problem.broker[b, STATE] == 3 or (not movable and problem.broker[b, STATE] == 0 and state.lead[p] >= 0):
                continue
            # A replica that need not move does so only to make room for a leader that nobody else can be.
            urgency = 2.0 if problem.broker[b, STATE] != 0 else 0.0
            if problem.setting[RACK_GOAL] == HARD_RACK and rack_mates(problem, state, p, b) > problem.partition[p, RACK_LIMIT]:
                urgency = 2.0
            for i in range(-1, count):
                target = b if i < 0 else eligible[i]
                if i >= 0 and not may_swap(problem, state, p, s, target):
                    continue
                for lead in range(-1, slots):
                    if lead < 0:
                        if state.lead[p] >= 0:
                            continue
                        leader = whole(-1)
                    else:
                        if state.replicas[p, lead] < 0:
                            continue
                        leader = target if lead == s else state.replicas[p, lead]
                    if lead != state.lead[p]:
                        if problem.broker[leader, STATE] != 0:
                            continue
                        if state.lead[p] >= 0 and problem.broker[state.replicas[p, state.lead[p]], STATE] == 3:
                            continue
                    elif i < 0:
                        continue
                    partitions[0] = p
                    for o in range(slots):
                        replicas[0, o] = state.replicas[p, o]
                    replicas[0, s] = target
                    leads[0] = lead
                    verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
                    if verdict.repairs == 0 or not acceptable(verdict, by_potential, LEAST_STEP):
                        continue
                    if problem.partition[p, MOVABLE] == 0 and verdict.repairs & MENDS == 0:
                        continue
                    key = max((urgency if i >= 0 else 1.0) + verdict.gain, 1e-6)
                    if key > best_key and has_room(state, one, partitions, replicas):
                        if within_budget(problem, state, budget, one, partitions, replicas, leads):
                            best_key = key
                            best_lead = whole(lead)
                            for o in range(slots):
                                row[o] = replicas[0, o]
        if best_key > 0.0:
            partitions[0] = p
            for o in range(slots):
                replicas[0, o] = row[o]
            leads[0] = best_lead
            publish(problem, state, budget, log, one, partitions, replicas, leads, whole(0))
            done += 1
    return done


@kernel
def relieve_all(problem: Problem, state: State, budget: Budget, log: Log, by_potential: bool) -> int:
    """`relieve`, where there is anything for it to do; returns actions published."""
    if not needs_relief(problem, state):
        return 0
    eligible = np.zeros(len(problem.broker), np.int64)
    count = 0
    for b in range(len(problem.broker)):
        if problem.broker[b, STATE] == 0:
            eligible[count] = b
            count += 1
    partitions, leads = np.zeros(MAX_CHANGES, np.int64), np.zeros(MAX_CHANGES, np.int64)
    replicas = np.zeros((MAX_CHANGES, state.replicas.shape[1]), np.int64)
    scores = np.zeros(len(problem.goal))
    return relieve(problem, state, budget, log, by_potential, eligible, count, partitions, replicas, leads, scores)
