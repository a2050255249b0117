"""Finish: single acceptable steps for brokers with low scores, until there is none.

Unlike `balance`, this checks each step by `evaluate` before it commits it, so steps go straight into the log. Called by `search`, and for
budgets by `course`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel, part, whole
from kernels.lanes import first_largest
from kernels.order import scramble
from optimizer.parameters import (
    FREE_FACTOR,
    LEAST_STEP,
    POLISH_LOOKS,
    POLISH_OF_ONE,
    POLISH_PARTNERS,
    POLISH_PASSES,
    POLISH_SHARE,
    STILL_GOOD,
)
from optimizer.placement.evaluate import acceptable, evaluate, find_touched, propose, shares_racks, touch
from optimizer.placement.feasible import active_brokers, may_host
from optimizer.placement.log import Budget, Log, has_room, is_full, publish, within_budget
from optimizer.placement.potential import badness, scores_low
from optimizer.placement.state import PARTITION, State
from optimizer.problem import MOVABLE, STRENGTH, TOPIC_ROW, Problem
from optimizer.search.candidates import gather, keep_best, scan, topic_burden, watched_goals
from optimizer.search.partners import BrokerLoads, rank_partners
from optimizer.search.relief import relieve
from optimizer.search.topics import lead_gain
from optimizer.search.vector_cache import VectorCache, new_cache


class Looks(NamedTuple):
    """Arrays to look for a step; n replicas of a broker."""

    cache: VectorCache
    loads: BrokerLoads
    factors: np.ndarray  # float64 [n], factors on the gains (`gather`)
    gains: np.ndarray  # float64 [n], of moving each replica
    spare: np.ndarray  # float64 [n], scratch
    kept: np.ndarray  # int64 [POLISH_OF_ONE], indices of the best
    partner: np.ndarray  # int64 [2 POLISH_PARTNERS], broker rows
    key: np.ndarray  # float64 [POLISH_LOOKS], gain for the cost of each step, descending
    entry: np.ndarray  # int64 [POLISH_LOOKS], partition * R + slot: the replica that moves, or is to lead
    target: np.ndarray  # int64 [POLISH_LOOKS], broker row; -1 for a leadership transfer


class Steps(NamedTuple):
    """The best step known for each of B brokers, as in `Looks`."""

    key: np.ndarray  # float64 [B], -1 where there is no step
    entry: np.ndarray  # int64 [B]
    target: np.ndarray  # int64 [B]
    stale: np.ndarray  # uint8 [B], 1 where later actions may have changed it


@kernel
def polish(problem: Problem, state: State, loads: BrokerLoads, budget: Budget, log: Log, seed: int, by_potential: bool) -> int:
    """Publish open repairs, then acceptable steps for brokers with low scores, what gains most for its cost first. Returns how many.

    Repairs that the budget is not enough for are left out. The first step that it is not enough for ends the rest, so that with a larger
    budget the same steps come first.
    """
    eligible, watched = active_brokers(problem), watched_goals(problem, state)
    published = relieve(problem, state, budget, log, by_potential)
    room, brokers = max(state.hosted.shape[1] + 1, POLISH_OF_ONE), len(state.hosts)
    looks = Looks(
        new_cache(problem, state, np.zeros(0, np.int64)), loads, np.zeros(room), np.zeros(room), np.zeros(room),
        np.zeros(POLISH_OF_ONE, np.int64), np.zeros(2 * POLISH_PARTNERS, np.int64),
        np.zeros(POLISH_LOOKS), np.zeros(POLISH_LOOKS, np.int64), np.zeros(POLISH_LOOKS, np.int64),
    )  # fmt: skip
    best = Steps(np.zeros(brokers), np.zeros(brokers, np.int64), np.zeros(brokers, np.int64), np.zeros(brokers, np.uint8))
    for turn in range(POLISH_PASSES):
        done = 0
        best.key[:], best.stale[:] = np.inf, 1
        while not is_full(log, whole(1)):
            v = whole(first_largest(best.key, brokers))
            known = best.key[v]
            if known < 0.0:
                break
            if best.stale[v] == 1:
                best.stale[v], best.key[v] = 0, -1.0
                if scores_low(problem, state, v):
                    found = partners_of(problem, state, watched, v, eligible, seed + turn, looks)
                    i = find_step(problem, state, watched, v, found, by_potential, looks)
                    if i >= 0:
                        best.key[v], best.entry[v], best.target[v] = looks.key[i], looks.entry[i], looks.target[i]
                if best.key[v] < STILL_GOOD * known:
                    continue
            propose_step(state, best.entry[v], best.target[v])
            if not within_budget(problem, state, budget, whole(1)):
                return published + done
            mark_stale(problem, state, best)
            publish(problem, state, budget, log, whole(1), whole(0))
            done += 1
        published += done
        if done == 0:
            break
    return published


@inner
def propose_step(state: State, entry: int, target: int) -> None:
    """Write a step of `Looks` as change 0."""
    p, s = whole(entry // state.replicas.shape[1]), whole(entry % state.replicas.shape[1])
    if target < 0:
        propose(state, whole(0), p, s, state.replicas[p, s], s)
    else:
        propose(state, whole(0), p, s, target, state.lead[p])


@inner
def mark_stale(problem: Problem, state: State, best: Steps) -> None:
    """Mark what change 0 may alter: steps of its partition, and of or with a broker that it touches or whose rack score it may alter."""
    slots, touched = state.replicas.shape[1], find_touched(state, whole(1))
    for s in range(slots):
        b = state.replicas[state.change[0, PARTITION], s]
        if b >= 0 and shares_racks(problem, state, b):
            touched = touch(state, touched, b)
    for v in range(len(best.key)):
        if best.key[v] < 0.0 or best.stale[v] == 1:
            continue
        p = best.entry[v] // slots
        source, target = state.replicas[p, best.entry[v] % slots], best.target[v]
        if target < 0:
            target = state.replicas[p, state.lead[p]]
        if p == state.change[0, PARTITION]:
            best.stale[v] = 1
        for t in range(touched):
            b = state.touched[t]
            if b == v or b == source or b == target:
                best.stale[v] = 1


@inner
def partners_of(problem: Problem, state: State, watched: np.ndarray, v: int, eligible: np.ndarray, seed: int, looks: Looks) -> int:
    """List brokers to trade with `v` in `looks.partner`: all if few, else the best by loads and, for topics, some at random. How many."""
    count, found = len(eligible), whole(0)
    if count <= len(looks.partner):
        for u in eligible:
            if u != v:
                looks.partner[found] = u
                found += 1
        return found
    found = rank_partners(problem, state, looks.loads, watched, v, whole(POLISH_PARTNERS), whole(0), looks.partner)
    for i in range(POLISH_PARTNERS if len(problem.topic_goal) > 0 else 0):
        u = eligible[scramble(seed * 1000003 + v * 131 + i) % count]
        if u != v:
            looks.partner[found] = u
            found += 1
    return found


@part
def find_step(problem: Problem, state: State, watched: np.ndarray, v: int, partners: int, by_potential: bool, looks: Looks) -> int:
    """Write the first acceptable step, by key, that helps broker `v` to change 0: a move or leadership transfer; its number, or -1."""
    least = max(LEAST_STEP, POLISH_SHARE * badness(problem, state, v, True))
    found = list_transfers(problem, state, v, looks)
    for k in range(partners):
        found = list_moves(problem, state, watched, v, looks.partner[k], found, looks)
        found = list_moves(problem, state, watched, looks.partner[k], v, found, looks)
    for i in range(found):
        propose_step(state, looks.entry[i], looks.target[i])
        verdict = evaluate(problem, state, whole(1))
        if verdict.gain > least and helps(state, v) and acceptable(verdict, by_potential, least) and has_room(state, whole(1)):
            return whole(i)
    return whole(-1)


@inner
def list_transfers(problem: Problem, state: State, v: int, looks: Looks) -> int:
    """Note leadership transfers from and to broker `v` as steps; returns how many there are."""
    slots, found = state.replicas.shape[1], whole(0)
    for i in range(state.hosts[v]):
        p, s = whole(state.hosted[v, i] // slots), whole(state.hosted[v, i] % slots)
        lead = state.lead[p]
        if problem.partition[p, MOVABLE] == 0 or lead < 0:
            continue
        for o in range(slots):
            if state.replicas[p, o] >= 0 and o != lead and (s == lead or o == s):
                gain = lead_gain(problem, state, p, whole(o), False)
                if gain > 0.0:
                    found = keep_step(looks, found, FREE_FACTOR * gain, whole(p * slots + o), whole(-1))
    return found


@inner
def list_moves(problem: Problem, state: State, watched: np.ndarray, source: int, target: int, found: int, looks: Looks) -> int:
    """Note moves from broker `source` to `target` beside the `found` steps in `looks`; returns how many steps there are then."""
    slots, keys = state.replicas.shape[1], looks.gains
    n = gather(problem, state, looks.cache, source, False, looks.factors)
    scan(problem, state, watched, source, target, n, looks.cache.vector[source], keys)
    most = 0.0  # what a move can gain in topic goals, at most
    for k in range(len(problem.topic_goal)):
        most += 2.0 * problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]
    for i in range(n):
        if most > 0.0 and keys[i] + most > 0.0 and looks.factors[i] > 0.0:
            p, s = whole(state.hosted[source, i] // slots), whole(state.hosted[source, i] % slots)
            keys[i] -= topic_burden(problem, state, p, True, state.lead[p] == s, source, target)
        keys[i] *= looks.factors[i]
    for i in range(keep_best(keys, n, 0.0, whole(POLISH_OF_ONE), looks.kept, looks.spare)):
        entry = whole(state.hosted[source, looks.kept[i]])
        if may_host(problem, state, entry // slots, entry % slots, target):
            found = keep_step(looks, found, keys[looks.kept[i]], entry, target)
    return found


@inner
def keep_step(looks: Looks, found: int, key: float, entry: int, target: int) -> int:
    """Insert a step into the best `found`, in descending order of keys, after equal ones; returns how many there are then."""
    most = len(looks.key)
    if found == most and key <= looks.key[most - 1]:
        return found
    at = most - 1 if found == most else found
    while at > 0 and looks.key[at - 1] < key:
        looks.key[at], looks.entry[at], looks.target[at] = looks.key[at - 1], looks.entry[at - 1], looks.target[at - 1]
        at -= 1
    looks.key[at], looks.entry[at], looks.target[at] = key, entry, target
    return min(found + 1, most)


@inner
def helps(state: State, v: int) -> bool:
    """Whether the action that was judged last improves a goal in which broker `v` scores below 1."""
    for g in range(len(state.action)):
        if state.action[g] > 0.5 and state.score[v, g] < 1.0:
            return True
    return False
