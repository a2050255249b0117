"""Leaders for leaderless partitions, and dead and draining brokers emptied.

One replica at a time, each to the broker where the potential rises least. Called at the start of a round, before balance.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState
from kernels.compiled import inner, kernel, part, whole
from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    HARD_RACK,
    LEADING,
    MENDABLE,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    STATE,
    Problem,
)
from optimizer.search.chance import scramble
from optimizer.search.commit import commit
from optimizer.search.feasible import may_host
from optimizer.search.potential import (
    NOTHING,
    cost_of_gaining,
    cost_of_taking,
    felt_goals,
    note_costs,
    typical_loads,
)
from optimizer.search.state import Rows, State

SAMPLED_TARGETS, MANY_TARGETS = 160, 12  # brokers looked at for one replica, and where very many are to be moved
SHORT = 16  # of them are looked at closely, where there are more than twice as many
MANY = 5_000  # replicas


@inner
def short_list(
    problem: Problem, state: State, p: int, s: int, felt: np.ndarray, slope: np.ndarray, targets: np.ndarray, tries: int,
    chosen: np.ndarray, keys: np.ndarray, amount: np.ndarray,
) -> int:  # fmt: skip
    """Of the first `tries` of `targets`, those that look best for slot `s` of partition `p`, into `chosen`, best first; returns how many.

    Only what a list and racks forbid is left out. `keys` float64 and `amount` float64 [n] are room to work in.
    """
    slots = state.replicas.shape[1]
    role = LEADING if state.lead[p] == s else FOLLOWING
    old = problem.broker[state.replicas[p, s], RACK_OF]
    limit = whole(problem.partition[p, RACK_LIMIT])
    left = 0
    for o in range(slots):
        if state.replicas[p, o] >= 0 and problem.broker[state.replicas[p, o], RACK_OF] == old:
            left += 1
    free = problem.setting[RACK_GOAL] != HARD_RACK or left > limit
    for k in range(len(felt)):
        amount[k] = problem.vector[p, role, problem.goal[felt[k], COLUMN]]
    found = whole(0)
    for i in range(tries):
        target = targets[i]
        key = 0.0
        for k in range(len(felt)):
            key += slope[target, k] * amount[k]
        if found == len(chosen) and key >= keys[found - 1]:  # most end here
            continue
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
        at = found if found < len(chosen) else found - 1
        while at > 0 and keys[at - 1] > key:
            keys[at], chosen[at] = keys[at - 1], chosen[at - 1]
            at -= 1
        keys[at], chosen[at] = key, target
        found = min(found + 1, len(chosen))
    return int(found)


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
        if state.lead[p] >= 0 or problem.partition[p, MENDABLE] == 0:
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
    amount = np.zeros(len(felt))
    for entry in entries:
        p, s = entry // slots, entry % slots
        if problem.partition[p, MENDABLE] == 0:
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
                tries = short_list(problem, state, p, s, felt, slope, targets, tries, chosen, keys, amount)
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


def to_drain(problem: Problem, standing: State, total: np.ndarray) -> Rows:
    """int64 entries of replicas on dead, then draining brokers, largest single component of `total` float64 [C] first."""
    states = problem.broker[:, STATE]
    if not np.isin(states, (BrokerState.DEAD, BrokerState.DRAINING)).any():
        return np.zeros(0, np.int64)
    slots = standing.replicas.shape[1]
    ordered = []
    for kind in (BrokerState.DEAD, BrokerState.DRAINING):
        held = [standing.hosted[b, : standing.hosts[b]] for b in np.flatnonzero(states == kind)]
        entries = np.sort(np.concatenate(held)).astype(np.int64) if held else np.zeros(0, np.int64)
        share = (problem.vector[entries // slots, LEADING] / np.where(total > 0, total, 1.0)).max(axis=1)
        ordered.append(entries[np.argsort(-share, kind="stable")])
    return np.concatenate(ordered)
