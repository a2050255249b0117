"""Replicas out of over-full racks, each to the broker where the potential rises least.

Called at the start of a round, after brokers were emptied.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    HIGH,
    LEADING,
    MOVABLE,
    RACK_LIMIT,
    RACK_OF,
    STATE,
    Problem,
)
from optimizer.search.chance import scramble
from optimizer.search.commit import commit
from optimizer.search.drain import MANY, SAMPLED_TARGETS
from optimizer.search.feasible import may_host
from optimizer.search.potential import (
    NOTHING,
    cost_of_gaining,
    felt_goals,
    load_cost_of_taking,
    note_costs,
    topic_cost,
)
from optimizer.search.state import RACKS, State
from optimizer.search.topic_counts import largest_share, wanted_by_all

MOST_MENDERS = 16  # brokers looked at for one replica of a crowded rack, where very many are crowded


@kernel
def mend_racks(problem: Problem, state: State, seed: int) -> int:
    """Move replicas out of over-full racks, each to the broker where the potential rises least (of some, where very many are crowded).

    Returns how many.
    """
    slots = state.replicas.shape[1]
    row = np.zeros(slots, np.int64)
    eligible = np.zeros(len(problem.broker), np.int64)
    count = 0
    for b in range(len(problem.broker)):
        if problem.broker[b, STATE] == 0:
            eligible[count] = b
            count += 1
    if not crowds(state):
        return 0
    felt = felt_goals(problem)
    known, slope, typical = np.zeros((len(problem.broker), len(felt))), np.zeros((len(problem.broker), len(felt))), np.zeros(len(felt))
    for i in range(count):
        note_costs(problem, state, felt, typical, eligible[i], known, slope)
    shares = np.zeros(len(problem.topic_goal))
    for k in range(len(shares)):
        shares[k] = largest_share(problem, k)
    crowding, crowded = crowding_partitions(problem, state)
    most = whole(MOST_MENDERS if crowded > MANY else count)
    done = 0
    for p in crowding:
        lacking = False  # somebody may be better for a replica of the topic more
        for k in range(len(shares)):
            if wanted_by_all(problem, k, whole(problem.topic[p]), shares[k]):
                lacking = True
        while True:
            best_slot, best, best_cost = -1, -1, np.inf
            giver = who_gives(problem, state, felt, p)
            for attempt in range(0 if giver >= 0 else 2, 4):
                sampled = attempt % 2 == 0 and count > 2 * most
                for s in range(slots):
                    if not is_crowded(problem, state, p, s) or (attempt < 2 and s != giver):
                        continue
                    here = state.replicas[p, s]
                    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
                    relief = cost_of_gaining(problem, state, here, p, role, whole(NOTHING))
                    for i in range(most if sampled else count):
                        target = eligible[scramble(seed * 1000211 + p * SAMPLED_TARGETS + i) % count if sampled else i]
                        if rack_mates(problem, state, p, target) >= problem.partition[p, RACK_LIMIT]:
                            continue
                        cost = load_cost_of_taking(problem, state, felt, known, target, p, role)
                        if not lacking and relief + cost >= best_cost:
                            continue
                        if not may_host(problem, state, p, s, target):
                            continue
                        for k in range(len(shares)):
                            cost += topic_cost(problem, state, k, target, p, whole(NOTHING), role)
                        cost += relief
                        if cost < best_cost:
                            best_slot, best, best_cost = s, target, cost
                if best >= 0 or not sampled:
                    break
            if best < 0:
                break
            for o in range(slots):
                row[o] = state.replicas[p, o]
            here, row[best_slot] = row[best_slot], best
            commit(problem, state, p, row, state.lead[p])
            note_costs(problem, state, felt, typical, here, known, slope)
            note_costs(problem, state, felt, typical, best, known, slope)
            done += 1
    return done


@inner
def crowding_partitions(problem: Problem, state: State) -> tuple[np.ndarray, int]:
    """int64: partitions that may change and have replicas in over-full racks, ascending; and how many such replicas there are."""
    found = np.empty(len(state.lead), np.int64)
    count, crowded = 0, 0
    for p in range(len(state.lead)):
        if problem.partition[p, MOVABLE] == 0:
            continue
        before = crowded
        for s in range(state.replicas.shape[1]):
            if is_crowded(problem, state, p, s):
                crowded += 1
        if crowded > before:
            found[count] = p
            count += 1
    return found[:count], crowded


@inner
def who_gives(problem: Problem, state: State, felt: np.ndarray, p: int) -> int:
    """The crowded slot on the broker that has to give up most replicas, -1 if none has to: there a move serves racks and loads."""
    best, most = whole(-1), 0.0
    for s in range(state.replicas.shape[1]):
        if is_crowded(problem, state, p, s):
            surplus = too_many(problem, state, felt, state.replicas[p, s])
            if surplus > most:
                best, most = whole(s), surplus
    return best


@inner
def too_many(problem: Problem, state: State, felt: np.ndarray, b: int) -> float:
    """How many replicas, of the mean of its own, have to leave broker `b` before it is not above a band."""
    most = 0.0
    for g in felt:
        load = state.load[b, problem.goal[g, COLUMN]]
        if problem.broker[b, STATE] == 0 and load > problem.table[b, g, HIGH]:
            most = max(most, (load - problem.table[b, g, HIGH]) / load)
    return float(most * state.hosts[b])


@inner
def crowds(state: State) -> bool:
    """Whether any broker holds a replica in an over-full rack."""
    for b in range(len(state.hosts)):
        if state.units[RACKS, b] > 0.0:
            return True
    return False


@inner
def is_crowded(problem: Problem, state: State, p: int, s: int) -> bool:
    """Whether slot `s` of the partition stands in a rack with more of its replicas than may be there, and may leave its broker."""
    b = state.replicas[p, s]
    if b < 0 or problem.broker[b, STATE] == 3:
        return False
    return bool(rack_mates(problem, state, p, b) > problem.partition[p, RACK_LIMIT])


@inner
def rack_mates(problem: Problem, state: State, p: int, b: int) -> int:
    """Replicas of the partition in the rack of broker `b`."""
    count = 0
    for s in range(state.replicas.shape[1]):
        other = state.replicas[p, s]
        if other >= 0 and problem.broker[other, RACK_OF] == problem.broker[b, RACK_OF]:
            count += 1
    return count
