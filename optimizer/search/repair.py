"""Repairs that come before balance: leaders for leaderless partitions, emptying dead and draining brokers, racks.

Each takes one replica at a time and puts it where the potential rises least.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, inner_as, kernel, part, whole
from optimizer.problem import (
    COLUMN,
    COUNTS_LEADERS,
    DISTRIBUTION,
    FOLLOWING,
    HARD,
    HARD_RACK,
    KIND,
    LEADING,
    LIMIT,
    MOVABLE,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    SCALE,
    STATE,
    STRENGTH,
    TOPIC_OF,
    TOPIC_ROW,
    Problem,
)
from optimizer.search import uncompiled
from optimizer.search.state import RACKS, State, commit, linear_cost, may_host, topic_rise

SAMPLED_TARGETS, MANY_TARGETS = 160, 12  # brokers looked at for one replica, and where very many are to be moved
SHORT = 16  # of them are looked at closely, where there are more than twice as many
MOST_MENDERS = 16  # brokers looked at for one replica of a crowded rack, where very many are crowded
MANY = 5_000  # replicas
NOTHING = -1  # role of a broker that holds no replica


@inner_as(uncompiled.scramble)
def scramble(x: int) -> int:
    """A well-mixed non-negative 62-bit number from any integer (splitmix64 finaliser)."""
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(np.int64(z >> np.uint64(2)))


@inner_as(uncompiled.cost_of_gaining)
def cost_of_gaining(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    """By how much the potential of broker `b` rises when its replica of `p` goes from role `held` to `role`.

    Roles are `NOTHING` (no replica), `FOLLOWING` and `LEADING`.
    """
    cost = 0.0
    for g in range(len(problem.goal)):
        if (problem.goal[g, KIND] == DISTRIBUTION or problem.goal[g, KIND] == LIMIT) and problem.table[b, g, SCALE] > 0.0:
            c = problem.goal[g, COLUMN]
            load = state.load[b, c]
            after = load
            if role != NOTHING:
                after += problem.vector[p, role, c]
            if held != NOTHING:
                after -= problem.vector[p, held, c]
            if after != load:
                cost += linear_cost(problem, b, g, after) - linear_cost(problem, b, g, load)
    for k in range(len(problem.topic_goal)):
        cost += topic_cost(problem, state, k, b, p, held, role)
    return cost


@inner
def topic_cost(problem: Problem, state: State, k: int, b: int, p: int, held: int, role: int) -> float:
    """`cost_of_gaining` in topic goal `k` alone."""
    if problem.topic_goal[k, COUNTS_LEADERS] == 1:
        by = (1 if role == LEADING else 0) - (1 if held == LEADING else 0)
    else:
        by = (1 if role != NOTHING else 0) - (1 if held != NOTHING else 0)
    if by == 0:
        return 0.0
    rise = topic_rise(problem, state, k, problem.partition[p, TOPIC_OF], b, whole(by))
    return float(problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH] * rise)


@inner
def felt_goals(problem: Problem) -> np.ndarray:
    """int64: goals on loads in which a broker that may host a replica can be worse for it; within hard limits it never is."""
    felt = np.zeros(len(problem.goal), np.int64)
    count = 0
    for g in range(len(problem.goal)):
        kind = problem.goal[g, KIND]
        if kind == DISTRIBUTION or (kind == LIMIT and problem.goal[g, HARD] == 0):
            felt[count] = g
            count += 1
    return felt[:count]


@inner
def note_costs(
    problem: Problem, state: State, felt: np.ndarray, typical: np.ndarray, b: int, known: np.ndarray, slope: np.ndarray
) -> None:
    """Potential of broker `b` in the goals `felt` as it stands, into `known` float64 [B, n]; by how much it rises for each unit of a
    `typical` load more, into `slope` float64 [B, n]."""
    for k in range(len(felt)):
        g = felt[k]
        load = state.load[b, problem.goal[g, COLUMN]]
        known[b, k] = linear_cost(problem, b, g, load)
        if typical[k] > 0.0:
            slope[b, k] = (linear_cost(problem, b, g, load + typical[k]) - known[b, k]) / typical[k]


@inner
def typical_loads(problem: Problem, state: State, felt: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """float64 [n]: means over the replicas `entries`."""
    slots = state.replicas.shape[1]
    typical = np.zeros(len(felt))
    for entry in entries:
        p = entry // slots
        role = LEADING if state.lead[p] == entry % slots else FOLLOWING
        for k in range(len(felt)):
            typical[k] += problem.vector[p, role, problem.goal[felt[k], COLUMN]]
    for k in range(len(felt)):
        typical[k] /= max(len(entries), 1)
    return typical


@inner_as(uncompiled.short_list)
def short_list(
    problem: Problem, state: State, p: int, s: int, felt: np.ndarray, slope: np.ndarray, targets: np.ndarray, tries: int,
    chosen: np.ndarray, keys: np.ndarray,
) -> int:  # fmt: skip
    """Of the first `tries` of `targets`, those that look best for slot `s` of partition `p`, into `chosen`, best first; returns how many.

    Only what a list and racks forbid is left out. `keys` float64 is room to work in.
    """
    slots = state.replicas.shape[1]
    role = LEADING if state.lead[p] == s else FOLLOWING
    old = problem.broker[state.replicas[p, s], RACK_OF]
    limit = problem.partition[p, RACK_LIMIT]
    left = 0
    for o in range(slots):
        if state.replicas[p, o] >= 0 and problem.broker[state.replicas[p, o], RACK_OF] == old:
            left += 1
    free = problem.setting[RACK_GOAL] != HARD_RACK or left > limit
    found = whole(0)
    for i in range(tries):
        target = targets[i]
        rack = problem.broker[target, RACK_OF]
        came = 1
        for o in range(slots):
            other = state.replicas[p, o]
            if other == target:
                came = slots + 2
            elif other >= 0 and problem.broker[other, RACK_OF] == rack:
                came += 1
        if came > slots + 1 or not (free or rack == old or came <= limit):
            continue
        key = 0.0
        for k in range(len(felt)):
            key += slope[target, k] * problem.vector[p, role, problem.goal[felt[k], COLUMN]]
        if found == len(chosen) and key >= keys[found - 1]:
            continue
        at = found if found < len(chosen) else found - 1
        while at > 0 and keys[at - 1] > key:
            keys[at], chosen[at] = keys[at - 1], chosen[at - 1]
            at -= 1
        keys[at], chosen[at] = key, target
        found = min(found + 1, len(chosen))
    return int(found)


@inner_as(uncompiled.cost_of_taking)
def cost_of_taking(problem: Problem, state: State, felt: np.ndarray, known: np.ndarray, b: int, p: int, role: int) -> float:
    """`cost_of_gaining` of a broker that has no replica of `p` and may host one, from what is `known` of it."""
    cost = 0.0
    for k in range(len(felt)):
        g = felt[k]
        amount = problem.vector[p, role, problem.goal[g, COLUMN]]
        load = state.load[b, problem.goal[g, COLUMN]]
        if problem.table[b, g, SCALE] > 0.0 and load + amount != load:
            cost += linear_cost(problem, b, g, load + amount) - known[b, k]
    for k in range(len(problem.topic_goal)):
        cost += topic_cost(problem, state, k, b, p, whole(NOTHING), role)
    return cost


@inner
def best_heir(problem: Problem, state: State, p: int, leaving: int) -> tuple[int, float]:
    """Slot of the active replica that takes over leadership at least cost, -1 if none; `leaving` is not asked."""
    best, best_cost = -1, np.inf
    for s in range(state.replicas.shape[1]):
        b = state.replicas[p, s]
        if b < 0 or s == leaving or s == state.lead[p] or problem.broker[b, STATE] != 0:
            continue
        cost = cost_of_gaining(problem, state, b, p, whole(FOLLOWING), whole(LEADING))
        if cost < best_cost:
            best, best_cost = s, cost
    return best, best_cost


@kernel
def lead_leaderless(problem: Problem, state: State) -> int:
    """Give every leaderless partition that has an active replica a leader."""
    done = 0
    row = np.zeros(state.replicas.shape[1], np.int64)
    for p in range(len(state.lead)):
        if state.lead[p] >= 0 or problem.partition[p, MOVABLE] == 0:
            continue
        heir, _ = best_heir(problem, state, p, whole(-1))
        if heir >= 0:
            for s in range(len(row)):
                row[s] = state.replicas[p, s]
            commit(problem, state, p, row, heir)
            done += 1
    return done


@kernel
def drain(problem: Problem, state: State, entries: np.ndarray, seed: int) -> int:
    """Move the replicas `entries` (int64, ``partition * R + slot``) off brokers that must host nothing, in that order.

    One that finds no legal broker stays, but gives its leadership away where it can. Returns how many moved.
    """
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    row = np.zeros(slots, np.int64)
    eligible = np.zeros(brokers, np.int64)
    count = 0
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible[count] = b
            count += 1
    done = 0
    most = whole(SAMPLED_TARGETS if len(entries) <= MANY else MANY_TARGETS)
    felt = felt_goals(problem)
    typical = typical_loads(problem, state, felt, entries)
    known, slope = np.zeros((brokers, len(felt))), np.zeros((brokers, len(felt)))
    for i in range(count if len(entries) > 0 else 0):
        note_costs(problem, state, felt, typical, eligible[i], known, slope)
    targets, chosen, keys = np.zeros(max(count, most), np.int64), np.zeros(SHORT, np.int64), np.zeros(SHORT)
    for entry in entries:
        p, s = entry // slots, entry % slots
        if problem.partition[p, MOVABLE] == 0:
            continue
        source = state.replicas[p, s]
        if problem.broker[source, STATE] != 1 and problem.broker[source, STATE] != 2:
            continue
        leads = state.lead[p] == s
        heir, heir_cost = -1, np.inf
        if leads:
            heir, heir_cost = best_heir(problem, state, p, s)
        best, best_cost, best_leads = -1, np.inf, False
        for attempt in range(2):
            sampled = attempt == 0 and count > 2 * most
            tries = most if sampled else count
            for i in range(tries):
                targets[i] = eligible[scramble(seed * 1000003 + entry * SAMPLED_TARGETS + i) % count if sampled else i]
            look = targets
            if attempt == 0 and tries > 2 * SHORT and len(problem.topic_goal) == 0:
                sampled = True
                tries = short_list(problem, state, p, s, felt, slope, targets, tries, chosen, keys)
                look = chosen
            for i in range(tries):
                target = look[i]
                if not may_host(problem, state, p, s, target):
                    continue
                if leads:
                    cost = cost_of_taking(problem, state, felt, known, target, p, whole(LEADING))
                    if cost < best_cost or (cost == best_cost and target < best):
                        best, best_cost, best_leads = target, cost, True
                if not leads:
                    cost = cost_of_taking(problem, state, felt, known, target, p, whole(FOLLOWING))
                elif heir >= 0:  # what may be hosted was asked of a leader
                    cost = heir_cost + cost_of_gaining(problem, state, target, p, whole(NOTHING), whole(FOLLOWING))
                if not leads or heir >= 0:
                    if cost < best_cost or (cost == best_cost and target < best):
                        best, best_cost, best_leads = target, cost, False
            if best >= 0 or not sampled:
                break
        for o in range(slots):
            row[o] = state.replicas[p, o]
        if best >= 0:
            row[s] = best
            lead = state.lead[p]
            if leads and not best_leads:
                lead = heir
            commit(problem, state, p, row, lead)
            done += 1
        elif leads and heir >= 0:
            commit(problem, state, p, row, heir)
        for o in range(slots):
            if row[o] >= 0:
                note_costs(problem, state, felt, typical, row[o], known, slope)
    for _ in range(2):
        if reroute(problem, state, entries, eligible, count, most, seed, row, felt, typical, known, slope) == 0:
            break
    return done


@part
def reroute(
    problem: Problem, state: State, entries: np.ndarray, eligible: np.ndarray, count: int, most: int, seed: int,
    row: np.ndarray, felt: np.ndarray, typical: np.ndarray, known: np.ndarray, slope: np.ndarray,
) -> int:  # fmt: skip
    """Better brokers for drained replicas now that all are placed: those on a broker out of band. Costs no move."""
    slots = state.replicas.shape[1]
    done = 0
    for entry in entries:
        p, s = entry // slots, entry % slots
        here = state.replicas[p, s]
        if here == state.home[p, s] or problem.broker[here, STATE] != 0:
            continue
        low = False
        for g in range(len(problem.goal)):
            if state.score[here, g] < 1.0:
                low = True
        if not low:
            continue
        role = whole(LEADING if state.lead[p] == s else FOLLOWING)
        relief = cost_of_gaining(problem, state, here, p, role, whole(NOTHING))
        best, best_cost = whole(-1), -1e-9
        sampled = count > 2 * most
        for i in range(most if sampled else count):
            at = scramble(seed * 1000033 + entry * SAMPLED_TARGETS + i) % count if sampled else i
            target = eligible[at]
            if target == here or not may_host(problem, state, p, s, target):
                continue
            cost = relief + cost_of_taking(problem, state, felt, known, target, p, role)
            if cost < best_cost:
                best, best_cost = target, cost
        if best >= 0:
            for o in range(slots):
                row[o] = state.replicas[p, o]
            row[s] = best
            commit(problem, state, p, row, state.lead[p])
            note_costs(problem, state, felt, typical, here, known, slope)
            note_costs(problem, state, felt, typical, best, known, slope)
            done += 1
    return done


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
    crowded = 0
    for p in range(len(state.lead)):
        for s in range(slots):
            b = state.replicas[p, s]
            if b < 0 or state.units[RACKS, b] == 0.0:
                continue
            if problem.partition[p, MOVABLE] == 1 and is_crowded(problem, state, p, s):
                crowded += 1
    most = whole(MOST_MENDERS if crowded > MANY else count)
    done = 0
    for p in range(len(state.lead)):
        if crowded == 0:
            break
        crowds_here = False
        for s in range(slots):
            b = state.replicas[p, s]
            if b >= 0 and state.units[RACKS, b] > 0.0:
                crowds_here = True
        if problem.partition[p, MOVABLE] == 0 or not crowds_here:
            continue
        while True:
            best_slot, best, best_cost = -1, -1, np.inf
            for attempt in range(2):
                sampled = attempt == 0 and count > 2 * most
                for s in range(slots):
                    if not is_crowded(problem, state, p, s):
                        continue
                    here = state.replicas[p, s]
                    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
                    relief = cost_of_gaining(problem, state, here, p, role, whole(NOTHING))
                    for i in range(most if sampled else count):
                        target = eligible[scramble(seed * 1000211 + p * SAMPLED_TARGETS + i) % count if sampled else i]
                        if rack_mates(problem, state, p, target) >= problem.partition[p, RACK_LIMIT]:
                            continue
                        if not may_host(problem, state, p, s, target):
                            continue
                        cost = relief + cost_of_gaining(problem, state, target, p, whole(NOTHING), role)
                        if cost < best_cost:
                            best_slot, best, best_cost = s, target, cost
                if best >= 0 or not sampled:
                    break
            if best < 0:
                break
            for o in range(slots):
                row[o] = state.replicas[p, o]
            row[best_slot] = best
            commit(problem, state, p, row, state.lead[p])
            done += 1
    return done


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


@inner_as(uncompiled.rack_mates)
def rack_mates(problem: Problem, state: State, p: int, b: int) -> int:
    """Replicas of the partition in the rack of broker `b`."""
    count = 0
    for s in range(state.replicas.shape[1]):
        other = state.replicas[p, s]
        if other >= 0 and problem.broker[other, RACK_OF] == problem.broker[b, RACK_OF]:
            count += 1
    return count
