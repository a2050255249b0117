"""Construct and repair: leaderless partitions get leaders, and replicas leave brokers that must not host them and over-full racks.

Replicas move one at a time, each to the broker whose potential rises least. Called by `search` at the start of a round, on a target.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BrokerState
from kernels.compiled import inner, kernel, whole
from kernels.order import scramble
from optimizer.broker_sets import strays
from optimizer.parameters import LEAST_SLACK, MANY_TARGETS, MANY_TO_MOVE, MOST_MENDERS, SAMPLED_TARGETS, SLACK
from optimizer.placement.commit import commit, relocate, transfer
from optimizer.placement.feasible import active_brokers, may_host, must_leave, rack_mates
from optimizer.placement.potential import NOTHING, cost_of_gaining, curve, exposed_goals, linear_cost, scores_low, slope_at, topic_cost
from optimizer.placement.state import RACKS, Rows, State, is_active
from optimizer.problem import (
    CEILING,
    COLUMN,
    EXCLUDED,
    FOLLOWING,
    HARD,
    HARD_RACK,
    HIGH,
    KIND,
    LEADING,
    LIMIT,
    MENDABLE,
    MOVABLE,
    NO_RACK_GOAL,
    RACK_GOAL,
    RACK_LIMIT,
    STATE,
    Problem,
)


class Hosts(NamedTuple):
    """Brokers that may take replicas, and their potential in the n goals in which a replica can make them worse (`exposed_goals`)."""

    eligible: np.ndarray  # int64, broker rows, ascending
    most: np.ndarray  # int64 [1], number of brokers that are tried first for one replica
    free_racks_only: np.ndarray  # int64 [1], 1 if only racks with room for one more replica count
    exposed: np.ndarray  # int64 [n], rows of the goals
    known: np.ndarray  # float64 [B, n], potential of each broker in them
    slope: np.ndarray  # float64 [B, n], by how much that rises for each unit of load
    amount: np.ndarray  # float64 [n], loads of the replica to place


@inner
def new_hosts(problem: Problem, state: State, free_racks_only: bool) -> Hosts:
    """All active brokers with their present potential; all are tried for each replica."""
    eligible, exposed = active_brokers(problem), exposed_goals(problem)
    known = np.zeros((2, len(problem.broker), len(exposed)))
    most, free = np.full(1, len(eligible)), np.full(1, whole(free_racks_only))
    hosts = Hosts(eligible, most, free, exposed, known[0], known[1], np.zeros(len(exposed)))
    for b in eligible:
        note_costs(problem, state, hosts, b)
    return hosts


@inner
def note_costs(problem: Problem, state: State, hosts: Hosts, b: int) -> None:
    """Update potential and slopes of broker `b` in `hosts` to its present loads."""
    for k in range(len(hosts.exposed)):
        g = hosts.exposed[k]
        load = state.load[b, problem.goal[g, COLUMN]]
        high, low, mean, scale, w, e = curve(problem, b, g)
        hosts.known[b, k] = linear_cost(problem, b, g, load)
        hosts.slope[b, k] = slope_at(load, high, low, mean, scale, w, e)


@inner
def load_cost(problem: Problem, state: State, hosts: Hosts, b: int, ceiling: float) -> float:
    """By how much the replica of `hosts.amount` raises the potential of broker `b` in goals on loads; infinite if by `ceiling` or more,
    which the slopes mostly show: the potential is convex."""
    bound, cost = -LEAST_SLACK, 0.0
    for k in range(len(hosts.exposed)):
        bound += hosts.slope[b, k] * hosts.amount[k]
    if bound - SLACK * abs(bound) >= ceiling:
        return np.inf
    for k in range(len(hosts.exposed)):
        load = state.load[b, problem.goal[hosts.exposed[k], COLUMN]]
        if load + hosts.amount[k] != load:
            cost += linear_cost(problem, b, hosts.exposed[k], load + hosts.amount[k]) - hosts.known[b, k]
    return cost if cost < ceiling else np.inf


@inner
def cheapest_host(problem: Problem, state: State, hosts: Hosts, p: int, s: int, role: int, seed: int, ceiling: float) -> tuple[int, float]:
    """The broker on which slot `s` of `p` costs least in `role`, and that cost; -1 if no broker costs less than `ceiling`.

    If there are many brokers, looks at a random sample (by `seed`), and at all if the sample has no such broker.
    """
    count, most, topics = len(hosts.eligible), hosts.most[0], len(problem.topic_goal) > 0
    for k in range(len(hosts.exposed)):
        hosts.amount[k] = problem.vector[p, role, problem.goal[hosts.exposed[k], COLUMN]]
    best, least = whole(-1), ceiling
    for attempt in range(2):
        sampled = attempt == 0 and count > 2 * most
        for i in range(most if sampled else count):
            target = hosts.eligible[scramble(seed + i) % count if sampled else i]
            cost = load_cost(problem, state, hosts, target, np.inf if topics else least)
            if cost >= least and not topics:
                continue
            if hosts.free_racks_only[0] == 1 and rack_mates(problem, state, p, target) >= problem.partition[p, RACK_LIMIT]:
                continue
            if not may_host(problem, state, p, s, target):
                continue
            for k in range(len(problem.topic_goal)):
                cost += topic_cost(problem, state, k, target, p, whole(NOTHING), role)
            if cost < least:
                best, least = whole(target), cost
        if best >= 0 or not sampled:
            break
    return best, least


@inner
def best_heir(problem: Problem, state: State, p: int, leaving: int) -> tuple[int, float]:
    """Slot of the active replica other than `leaving` that can lead at least cost (-1: none), and that cost in potential."""
    best, best_cost = whole(-1), np.inf
    for s in range(state.replicas.shape[1]):
        b = state.replicas[p, s]
        if b < 0 or s == leaving or s == state.lead[p] or not is_active(problem, b):
            continue
        cost = cost_of_gaining(problem, state, b, p, whole(FOLLOWING), whole(LEADING))
        if cost < best_cost:
            best, best_cost = whole(s), cost
    return best, best_cost


@kernel
def lead_leaderless(problem: Problem, state: State) -> int:
    """Give a leader to each leaderless partition with an active replica; returns how many got one."""
    done = 0
    for p in range(len(state.lead)):
        if state.lead[p] < 0 and problem.partition[p, MENDABLE] == 1:
            heir, _ = best_heir(problem, state, p, whole(-1))
            if heir >= 0:
                transfer(problem, state, p, heir)
                done += 1
    return done


@kernel
def drain(problem: Problem, state: State, entries: np.ndarray, seed: int) -> int:
    """Move `entries` (int64, ``partition * R + slot``) off brokers that they must leave, in this order; returns how many moved.

    A replica without a legal broker stays, but passes its leadership on if another replica can lead.
    """
    slots, hosts, done = state.replicas.shape[1], new_hosts(problem, state, False), 0
    hosts.most[0] = SAMPLED_TARGETS if len(entries) <= MANY_TO_MOVE else MANY_TARGETS
    for entry in entries:
        p, s = entry // slots, entry % slots
        if not must_leave(problem, p, state.replicas[p, s]):
            continue
        lead, series = state.lead[p], whole(seed * 1000003 + entry * SAMPLED_TARGETS)
        if lead != s:
            target, _ = cheapest_host(problem, state, hosts, p, s, whole(FOLLOWING), series, np.inf)
        else:  # moves as leader, or as follower after a transfer of leadership, whichever costs less
            target, cost = cheapest_host(problem, state, hosts, p, s, whole(LEADING), series, np.inf)
            heir, rise = best_heir(problem, state, p, s)
            follower, _ = cheapest_host(problem, state, hosts, p, s, whole(FOLLOWING), series, cost - rise)
            if heir >= 0 and (follower >= 0 or target < 0):
                target, lead = follower, heir
        if target >= 0:
            relocate(problem, state, p, s, target, lead)
            done += 1
        elif lead != state.lead[p]:
            transfer(problem, state, p, lead)
        for o in range(slots):
            if state.replicas[p, o] >= 0:
                note_costs(problem, state, hosts, state.replicas[p, o])
    for _ in range(2):
        if reroute(problem, state, hosts, entries, seed) == 0:
            break
    return done


@inner
def reroute(problem: Problem, state: State, hosts: Hosts, entries: np.ndarray, seed: int) -> int:
    """Move drained replicas on from new brokers outside a target range, now that all are placed; costs no extra move. Returns how many."""
    slots, done = state.replicas.shape[1], 0
    for entry in entries:
        p, s = entry // slots, entry % slots
        here = state.replicas[p, s]
        if here == state.home[p, s] or not scores_low(problem, state, here):
            continue
        role, series = whole(LEADING if state.lead[p] == s else FOLLOWING), whole(seed * 1000033 + entry * SAMPLED_TARGETS)
        relief = cost_of_gaining(problem, state, here, p, role, whole(NOTHING))
        target, _ = cheapest_host(problem, state, hosts, p, s, role, series, -relief - 1e-9)
        if target >= 0:
            relocate(problem, state, p, s, target, state.lead[p])
            note_costs(problem, state, hosts, here)
            note_costs(problem, state, hosts, target)
            done += 1
    return done


def repair(problem: Problem, state: State, leaving: Rows, seed: int) -> int:
    """Move the replicas `leaving` off their brokers (`drain`), then replicas out of over-full racks; returns how many moved."""
    moved = drain(problem, state, leaving, seed)
    return moved + (mend_racks(problem, state, seed) if problem.setting[RACK_GOAL] != NO_RACK_GOAL else 0)


def to_drain(problem: Problem, standing: State, total: np.ndarray) -> Rows:
    """int64 entries of replicas on dead brokers, then on draining ones, then on those of other sets. In each group, the replica with
    the largest share of `total` float64 [C] in any resource comes first."""
    states, others = problem.broker[:, STATE], strays(problem, standing.replicas)
    if not len(others) and not np.isin(states, (BrokerState.DEAD, BrokerState.DRAINING)).any():
        return others
    slots = standing.replicas.shape[1]
    ordered = []
    for kind in (BrokerState.DEAD, BrokerState.DRAINING, BrokerState.ACTIVE):
        held = [standing.hosted[b, : standing.hosts[b]] for b in np.flatnonzero(states == kind)] if kind != BrokerState.ACTIVE else [others]
        entries = np.sort(np.concatenate(held)).astype(np.int64) if held else np.zeros(0, np.int64)
        share = (problem.vector[entries // slots, LEADING] / np.where(total > 0, total, 1.0)).max(axis=1)
        ordered.append(entries[np.argsort(-share, kind="stable")])
    return np.concatenate(ordered)


@kernel
def mend_racks(problem: Problem, state: State, seed: int) -> int:
    """Move replicas out of over-full racks, each to the broker whose potential rises least; returns how many.

    If very many replicas are in such racks, only some brokers are tried for each.
    """
    if not crowds(state):
        return 0
    slots, hosts, done = state.replicas.shape[1], new_hosts(problem, state, True), 0
    crowding, crowded = crowding_partitions(problem, state)
    if crowded > MANY_TO_MOVE:
        hosts.most[0] = MOST_MENDERS
    for i in smallest_first(problem, crowding):
        p = crowding[i]
        while True:
            giver = giving_slot(problem, state, hosts.exposed, p)
            slot, best, least = whole(-1), whole(-1), np.inf
            for alone in range(1 if giver >= 0 else 0, -1, -1):  # first the replica of `giver` alone, then all
                for s in range(slots):
                    if not is_crowded(problem, state, p, s) or (alone == 1 and s != giver):
                        continue
                    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
                    relief = cost_of_gaining(problem, state, state.replicas[p, s], p, role, whole(NOTHING))
                    series = whole(seed * 1000211 + p * SAMPLED_TARGETS)
                    target, cost = cheapest_host(problem, state, hosts, p, whole(s), role, series, least - relief)
                    if target >= 0:
                        slot, best, least = whole(s), target, relief + cost
                if best >= 0:
                    break
            if best < 0:
                break
            here = state.replicas[p, slot]
            relocate(problem, state, p, slot, best, state.lead[p])
            note_costs(problem, state, hosts, here)
            note_costs(problem, state, hosts, best)
            done += 1
    return done


@inner
def crowding_partitions(problem: Problem, state: State) -> tuple[np.ndarray, int]:
    """int64: movable partitions with replicas in over-full racks, ascending; and the number of such replicas."""
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


@kernel
def stays_crowded(problem: Problem, state: State) -> bool:
    """Whether a hard rack goal is missed by partitions that may move."""
    return bool(problem.setting[RACK_GOAL] == HARD_RACK and crowds(state) and crowding_partitions(problem, state)[1] > 0)


@inner
def smallest_first(problem: Problem, partitions: np.ndarray) -> np.ndarray:
    """int64: indices of `partitions`, ordered by the largest share that a follower takes of any hard limit, summed over active brokers.

    So as many as possible find a place where racks have little room.
    """
    share, brokers = np.zeros(len(partitions)), active_brokers(problem)
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] != LIMIT or problem.goal[g, HARD] == 0:
            continue
        total = 0.0
        for b in brokers:
            total += problem.table[b, g, CEILING]
        for i in range(len(partitions) if total > 0.0 else 0):  # where nothing is allowed, no partition finds room
            share[i] = max(share[i], problem.vector[partitions[i], FOLLOWING, problem.goal[g, COLUMN]] / total)
    return np.argsort(share, kind="mergesort")


@kernel
def withdraw(problem: Problem, state: State, standing: State, partitions: np.ndarray) -> None:
    """Give `partitions` in `state` the lists and leaders that they have in `standing` while one of their brokers is beyond a hard limit,
    the largest first. They were placed for want of room, and room could not be made."""
    for i in smallest_first(problem, partitions)[::-1]:
        p = partitions[i]
        for s in range(state.replicas.shape[1]):
            b = state.replicas[p, s]
            if b >= 0 and b != standing.replicas[p, s] and beyond_limit(problem, state, b):
                commit(problem, state, p, standing.replicas[p], standing.lead[p])
                break


@inner
def beyond_limit(problem: Problem, state: State, b: int) -> bool:
    """Whether broker `b` is beyond a hard limit."""
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD] == 1 and state.score[b, g] < 1.0:
            return True
    return False


@inner
def giving_slot(problem: Problem, state: State, exposed: np.ndarray, p: int) -> int:
    """The crowded slot whose broker is farthest above a target range, in replicas of its mean load; -1 if no broker is above one.
    A move of this replica helps both racks and loads."""
    best, most = whole(-1), 0.0
    for s in range(state.replicas.shape[1]):
        b = state.replicas[p, s]
        if not is_crowded(problem, state, p, s) or not is_active(problem, b):
            continue
        for g in exposed:
            load, high = state.load[b, problem.goal[g, COLUMN]], problem.table[b, g, HIGH]
            if load > high and (load - high) / load * state.hosts[b] > most:
                best, most = whole(s), (load - high) / load * state.hosts[b]
    return best


@inner
def crowds(state: State) -> bool:
    """Whether any broker holds a replica in an over-full rack."""
    for b in range(len(state.hosts)):
        if state.units[RACKS, b] > 0.0:
            return True
    return False


@inner
def is_crowded(problem: Problem, state: State, p: int, s: int) -> bool:
    """Whether slot `s` of `p` is in a rack with more replicas of `p` than allowed, on a broker that is not excluded."""
    b = state.replicas[p, s]
    if b < 0 or problem.broker[b, STATE] == EXCLUDED:
        return False
    return bool(rack_mates(problem, state, p, b) > problem.partition[p, RACK_LIMIT])
