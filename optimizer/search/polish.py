"""Finish: single acceptable steps for the brokers that score low, until there is none.

Unlike `balance`, everything here is checked by `evaluate` before it is committed, so it goes straight into the log. Called by `search`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel, part, whole
from optimizer.problem import MOVABLE, STATE, STRENGTH, TOPIC_ROW, Problem
from optimizer.search.candidates import gather, keep_best, scan, topic_burden, watched_goals
from optimizer.search.chance import scramble
from optimizer.search.evaluate import acceptable, evaluate
from optimizer.search.feasible import may_host
from optimizer.search.ledger import LEAST_STEP, Budget, Log, has_room, publish, within_budget
from optimizer.search.order import ascending
from optimizer.search.partners import Crowd, rank_partners
from optimizer.search.potential import badness, scores_low
from optimizer.search.relief import needs_relief, relieve
from optimizer.search.shelf import Shelf, new_shelf
from optimizer.search.state import COST, MAX_CHANGES, State
from optimizer.search.topics import lead_gain

RANKED = 12  # brokers that a step may go to or come from: the best by loads, and as many at random
LOOKS = 256  # steps of a broker that are evaluated in full, those first that gain most for their cost
OF_ONE = 32  # of them between two brokers
FREE = 10.0  # factor on the gain of a transfer of leadership, which costs nothing
LEAST_SHARE = 0.01  # of what is out of band on the broker, that a step has to bring
STEPS, PASSES = 256, 64  # steps of a broker in one pass, and passes


class Looks(NamedTuple):
    """Room to look for a step; n replicas of a broker."""

    shelf: Shelf
    crowd: Crowd
    factors: np.ndarray  # float64 [n]
    gains: np.ndarray  # float64 [n]
    spare: np.ndarray  # float64 [n]
    kept: np.ndarray  # int64 [OF_ONE]
    partner: np.ndarray  # int64 [2 RANKED]
    worth: np.ndarray  # float64 [B]
    key: np.ndarray  # float64 [LOOKS], descending
    entry: np.ndarray  # int64 [LOOKS], partition * R + slot: that moves, or that is to lead
    target: np.ndarray  # int64 [LOOKS], broker row; -1 where leadership is transferred


@kernel
def polish(problem: Problem, state: State, crowd: Crowd, budget: Budget, log: Log, seed: int, by_potential: bool) -> int:
    """Repairs still open, then acceptable steps for the brokers that score low, worst first. Returns actions published."""
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    goals, eligible, count = np.zeros(len(problem.goal), np.int64), np.zeros(brokers, np.int64), whole(0)
    watched = goals[: watched_goals(problem, state, goals)]
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible[count] = b
            count += 1
    partitions, leads = np.zeros(MAX_CHANGES, np.int64), np.zeros(MAX_CHANGES, np.int64)
    replicas, scores = np.zeros((MAX_CHANGES, slots), np.int64), np.zeros(len(problem.goal))
    published = 0
    if needs_relief(problem, state):
        published = relieve(problem, state, budget, log, by_potential, eligible, count, partitions, replicas, leads, scores)
    room = max(state.hosted.shape[1] + 1, OF_ONE)
    looks = Looks(
        new_shelf(problem, state, np.zeros(0, np.int64)), crowd, np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(OF_ONE, np.int64),
        np.zeros(2 * RANKED, np.int64), np.zeros(brokers), np.zeros(LOOKS), np.zeros(LOOKS, np.int64), np.zeros(LOOKS, np.int64),
    )  # fmt: skip
    for turn in range(PASSES):
        done = 0
        for v in ascending(-state.score[:, COST]):
            for _ in range(STEPS):
                if not scores_low(problem, state, v):
                    break
                if log.used[1] + MAX_CHANGES >= len(log.partition):
                    return published + done
                found = partners_of(problem, state, watched, v, eligible[:count], seed + turn, looks)
                if not find_step(problem, state, budget, watched, v, found, by_potential, looks, partitions, replicas, leads, scores):
                    break
                publish(problem, state, budget, log, whole(1), partitions, replicas, leads, whole(0))
                done += 1
        published += done
        if done == 0:
            break
    return published


@inner
def partners_of(
    problem: Problem, state: State, watched: np.ndarray, v: int, eligible: np.ndarray, seed: int, looks: Looks
) -> int:
    """Brokers with which `v` may trade: all where they are few, else the best by loads, and for topics some at random. How many."""
    count, found = len(eligible), whole(0)
    if count <= len(looks.partner):
        for u in eligible:
            if u != v:
                looks.partner[found] = u
                found += 1
        return found
    found = rank_partners(problem, state, looks.crowd, watched, v, whole(RANKED), whole(0), looks.partner, looks.worth)
    for i in range(RANKED if len(problem.topic_goal) > 0 else 0):
        u = eligible[scramble(seed * 1000003 + v * 131 + i) % count]
        if u != v:
            looks.partner[found] = u
            found += 1
    return found


@part
def find_step(
    problem: Problem, state: State, budget: Budget, watched: np.ndarray, v: int, partners: int, by_potential: bool, looks: Looks,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> bool:  # fmt: skip
    """Leave in change 0 an acceptable move or transfer of leadership that helps broker `v`; whether there is one."""
    slots = state.replicas.shape[1]
    least = max(LEAST_STEP, LEAST_SHARE * badness(problem, state, v))
    found = list_transfers(problem, state, v, looks)
    for k in range(partners):
        found = list_moves(problem, state, watched, v, looks.partner[k], found, looks)
        found = list_moves(problem, state, watched, looks.partner[k], v, found, looks)
    for i in range(found):
        p, s = looks.entry[i] // slots, looks.entry[i] % slots
        transfer = looks.target[i] < 0
        set_change(state, partitions, replicas, leads, p, s, looks.target[i], whole(s if transfer else state.lead[p]))
        verdict = evaluate(problem, state, whole(1), partitions, replicas, leads, scores)
        if helps(state, v, scores) and acceptable(verdict, by_potential, least) and has_room(state, whole(1), partitions, replicas):
            if within_budget(problem, state, budget, whole(1), partitions, replicas, leads):
                return True
    return False


@inner
def list_transfers(problem: Problem, state: State, v: int, looks: Looks) -> int:
    """Note transfers of leadership from and to broker `v`; returns how many."""
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
                    found = note(looks, found, FREE * gain, whole(p * slots + o), whole(-1))
    return found


@inner
def list_moves(problem: Problem, state: State, watched: np.ndarray, source: int, target: int, found: int, looks: Looks) -> int:
    """Note moves from broker `source` to `target` beside the `found` steps; returns how many there are."""
    slots, keys = state.replicas.shape[1], looks.gains
    n = gather(problem, state, looks.shelf, source, False, looks.factors)
    scan(problem, state, watched, source, target, n, looks.shelf.vector[source], keys)
    most = 0.0  # that topics can gain by a move
    for k in range(len(problem.topic_goal)):
        most += 2.0 * problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]
    for i in range(n):
        if most > 0.0 and keys[i] + most > 0.0 and looks.factors[i] > 0.0:
            p, s = whole(state.hosted[source, i] // slots), whole(state.hosted[source, i] % slots)
            keys[i] -= topic_burden(problem, state, p, True, state.lead[p] == s, source, target)
        keys[i] *= looks.factors[i]
    for i in range(keep_best(keys, n, 0.0, whole(OF_ONE), looks.kept, looks.spare)):
        entry = whole(state.hosted[source, looks.kept[i]])
        if may_host(problem, state, entry // slots, entry % slots, target):
            found = note(looks, found, keys[looks.kept[i]], entry, target)
    return found


@inner
def note(looks: Looks, found: int, key: float, entry: int, target: int) -> int:
    """Keep the best few in descending order of keys, the earlier of equals first; returns how many there are."""
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
def set_change(
    state: State, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, p: int, s: int, target: int, lead: int
) -> None:
    """The first change of an action: slot `s` of `p` to `target` (unless -1), led by slot `lead`."""
    partitions[0], leads[0] = p, lead
    for o in range(replicas.shape[1]):
        replicas[0, o] = state.replicas[p, o]
    if target >= 0:
        replicas[0, s] = target


@inner
def helps(state: State, v: int, scores: np.ndarray) -> bool:
    """Whether an action of these goal scores does something about what broker `v` scores low in."""
    for g in range(len(scores)):
        if scores[g] > 0.5 and state.score[v, g] < 1.0:
            return True
    return False
