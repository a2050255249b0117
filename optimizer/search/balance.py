"""Bringing brokers into band: leadership, moves to and from the best partners, swaps.

Works on the potential alone (which always falls); whether each step is acceptable by score is decided when the plan is put in
order. Nothing is done for brokers that are in band in every goal.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, kernel, whole
from optimizer.problem import COLUMN, HIGH, KIND, LIMIT, LOW, SCALE, STATE, STRENGTH, Problem
from optimizer.search.broker_scores import is_out
from optimizer.search.candidates import (
    KEPT,
    LEAST_GAIN,
    best_key,
    gather,
    keep_best,
    scan,
    take,
    topic_burden,
    watched_goals,
)
from optimizer.search.commit import commit
from optimizer.search.hosting import may_host
from optimizer.search.leadership import LEADERSHIPS, transfer_leaders
from optimizer.search.order import ascending
from optimizer.search.partners import leans, rank_partners
from optimizer.search.shelf import Shelf, new_shelf
from optimizer.search.state import State
from optimizer.search.swaps import SWAP_KEPT, swap_with

MOST_SWAPPED, FEW_LOW = 48, 32  # partners that a broker out of band tries to swap with, where there are no more such brokers
PATIENCE = 4  # rounds without success after which a broker is given up
LOOK_BACK = 16  # rounds, within which it has to get better ...
LEAST_FALL = 0.01  # ... by so much, or somebody has to come into band
LITTLE = 0.1  # mean over brokers of how far they are out of band, in the units of the potential
HALF_EMPTY = 0.8  # of the replicas of a typical broker: one with fewer needs many moves


@inner
def pour(
    problem: Problem, state: State, shelf: Shelf, watched: np.ndarray, source: int, target: int, most: int, thrifty: bool,
    factors: np.ndarray, gains: np.ndarray, small: np.ndarray, kept: np.ndarray, spare: np.ndarray, entries: np.ndarray,
    burdens: np.ndarray, row: np.ndarray,
) -> int:  # fmt: skip
    """Move up to `most` replicas from `source` to `target`, best gain for its bytes first. Returns how many.

    `burdens` float64 [KEPT] is empty where there are no topic goals.
    """
    slots = state.replicas.shape[1]
    topics = len(burdens) > 0
    factor = small.shape[0] - 1
    block = shelf.vector[source]
    n = gather(problem, state, shelf, source, thrifty, factors)
    scan(problem, state, watched, source, target, n, block, gains)
    for i in range(n):
        gains[i] = gains[i] * factors[i] if gains[i] > LEAST_GAIN else 0.0
    found = keep_best(gains, n, 0.0, whole(KEPT), kept, spare)
    if found == 0:
        return 0
    take(block, factors, kept, found, small)
    for i in range(found):
        entries[i] = state.hosted[source, kept[i]]
        if topics:
            burdens[i] = 0.0  # as far as they are known
    moved = 0
    keys = gains
    while moved < most and found > 0:
        scan(problem, state, watched, source, target, found, small, keys)
        if topics:
            for i in range(found):
                keys[i] -= burdens[i]
        legal = False
        while not legal and found > 0:
            best = best_key(keys, small[factor], entries, found, LEAST_GAIN)
            if best < 0:
                return moved
            p, s = entries[best] // slots, entries[best] % slots
            if topics:  # looked up when it would decide; others of the topic move meanwhile
                burden = topic_burden(problem, state, p, True, state.lead[p] == s, source, target)
                if burden != burdens[best]:
                    keys[best] += burdens[best] - burden
                    burdens[best] = burden
                    continue
            legal = may_host(problem, state, p, s, target)
            if legal:
                for o in range(slots):
                    row[o] = state.replicas[p, o]
                row[s] = target
                commit(problem, state, p, row, state.lead[p])
                moved += 1
            found -= 1
            entries[best] = entries[found]
            keys[best] = keys[found]
            if topics:
                burdens[best] = burdens[found]
            for c in range(small.shape[0]):
                small[c, best] = small[c, found]
    return moved


@inner
def badness(problem: Problem, state: State, b: int) -> float:
    """Hinge part of the potential of a broker: 0 in band."""
    cost = 0.0
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT:
            load = state.load[b, problem.goal[g, COLUMN]]
            over, under = load - problem.table[b, g, HIGH], problem.table[b, g, LOW] - load
            beyond = over if over > 0.0 else (under if under > 0.0 else 0.0)
            beyond *= problem.table[b, g, SCALE]
            cost += problem.force[g, STRENGTH] * beyond * beyond
    return cost


@inner
def is_low(problem: Problem, state: State, b: int) -> bool:
    """Whether an eligible broker is out of a goal on loads."""
    if problem.broker[b, STATE] != 0:
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT and is_out(problem, state, b, g):
            return True
    return False


@kernel
def balance(problem: Problem, state: State, seed: int, rounds: int, roles: np.ndarray, moves: bool) -> int:
    """Rounds over the brokers out of band until none is left or nothing helps. Returns rounds used.

    `roles` int64 [G] marks goals that a leadership transfer can help. Without `moves` only leaderships change.
    """
    brokers = len(problem.broker)
    columns = problem.vector.shape[2]
    room = state.hosted.shape[1] + 1
    factors = np.zeros(room)
    small, small2 = np.zeros((columns + 1, KEPT)), np.zeros((columns + 1, KEPT))
    mine, theirs = np.zeros(SWAP_KEPT, np.int64), np.zeros(SWAP_KEPT, np.int64)
    goals, led = np.zeros(len(problem.goal), np.int64), np.zeros(len(problem.goal), np.int64)
    gains, spare = np.zeros(max(room, KEPT)), np.zeros(max(room, KEPT))
    kept, entries = np.zeros(KEPT, np.int64), np.zeros(KEPT, np.int64)
    burdens, burdens2 = np.zeros(KEPT if len(problem.topic_goal) > 0 else 0), np.zeros(KEPT if len(problem.topic_goal) > 0 else 0)
    row = np.zeros(state.replicas.shape[1], np.int64)
    shelf = new_shelf(problem, state, roles)
    partners = np.zeros(MOST_SWAPPED, np.int64)
    worth = np.zeros(brokers)
    best_gain, best_entry = np.zeros(LEADERSHIPS), np.zeros(LEADERSHIPS, np.int64)
    costs, slopes = np.zeros((brokers, len(problem.goal) + 1)), np.zeros((brokers, len(problem.goal)))
    eligible, total = 0, 0
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible += 1
            total += state.hosts[b]
    if eligible < 2:
        return 0
    typical = total / eligible
    rest = np.zeros(brokers, np.int64)  # rounds to leave a broker alone after it found nothing
    failed = np.zeros(brokers, np.int64)
    with_swaps = False
    thrifty = False  # where little is out of band but for leadership, time is spent on fewer bytes
    past_low, past_badness = np.inf, np.inf
    for turn in range(rounds):
        if turn % LOOK_BACK == 0:
            now_low, now_badness = 0.0, 0.0
            for b in range(brokers):
                if is_low(problem, state, b):
                    now_low += 1.0
                    now_badness += badness(problem, state, b)
            if now_low >= past_low and now_badness >= (1.0 - LEAST_FALL) * past_badness:
                return turn
            past_low, past_badness = now_low, now_badness
        low = np.zeros(brokers, np.int64)
        keys = np.zeros(brokers)
        count = 0
        for b in range(brokers):
            if is_low(problem, state, b):
                if rest[b] > 0:
                    rest[b] -= 1
                    continue
                low[count] = b
                keys[count] = -badness(problem, state, b)
                count += 1
        if count == 0:
            waiting = False
            for b in range(brokers):
                if failed[b] < PATIENCE and is_low(problem, state, b):
                    waiting = True
            if not waiting:
                return turn
            continue
        order = ascending(keys[:count])
        accepted = 0
        watched = goals[: watched_goals(problem, state, goals)]
        leading = whole(0)
        for g in watched:
            if roles[g] == 1:
                led[leading] = g
                leading += 1
        for i in range(count):
            v = low[order[i]]
            helps = False
            for g in led[:leading]:
                if is_out(problem, state, v, g):
                    helps = True
            if helps:
                done = transfer_leaders(
                    problem, state, shelf, led[:leading], v, best_gain, best_entry, costs, slopes, gains, factors, spare,
                    row,
                )  # fmt: skip
                accepted += done
                if done > 0:
                    failed[v] = 0
        if turn == 0:
            strain = 0.0
            for b in range(brokers):
                strain += np.sqrt(badness(problem, state, b))
            thrifty = strain < LITTLE * eligible
            for i in range(count if len(problem.topic_goal) > 0 else 0):  # topics may have filled new brokers half
                if state.hosts[low[i]] < HALF_EMPTY * typical:
                    thrifty = False
        for i in range(count if moves else 0):
            v = low[order[i]]
            if not is_low(problem, state, v):
                continue
            worst = np.sqrt(badness(problem, state, v))
            most = min(max(int(0.032 * typical), 2), 64)
            if thrifty:
                most = 1
            elif worst < 0.1:
                most = max(1, most // 4)
            stars = 2 if worst < 0.2 else (4 if worst < 0.5 else 8)
            done = 0
            found = rank_partners(problem, state, watched, v, stars, seed * 7919 + turn + 1, partners, worth)
            for k in range(found):
                u = partners[k]
                over, under = leans(problem, state, watched, v)
                over2, under2 = leans(problem, state, watched, u)
                if over or under2:
                    done += pour(
                        problem, state, shelf, watched, v, u, most, thrifty, factors, gains, small, kept, spare, entries, burdens, row
                    )
                if under or over2:
                    done += pour(
                        problem, state, shelf, watched, u, v, most, thrifty, factors, gains, small, kept, spare, entries, burdens, row
                    )
                if not is_low(problem, state, v):
                    break
            if done == 0 and (with_swaps or failed[v] > 0):
                most = 4 if failed[v] < 2 else (MOST_SWAPPED if count <= FEW_LOW else 12)
                found = rank_partners(problem, state, watched, v, most, seed * 7919 + turn + 1, partners, worth)
                for k in range(found):
                    done += swap_with(
                        problem, state, shelf, watched, v, partners[k], factors, gains, small, small2, kept, spare, mine, theirs,
                        burdens, burdens2, row,
                    )  # fmt: skip
                    if not is_low(problem, state, v):
                        break
            if done == 0:
                failed[v] += 1
                rest[v] = min(failed[v], 4)
            else:
                failed[v] = 0
            accepted += done
        if accepted == 0 and not moves:
            return turn + 1
        stuck = 0
        for i in range(count):
            if failed[low[order[i]]] >= PATIENCE:
                stuck += 1
        if accepted == 0 and stuck == count and with_swaps:
            return turn + 1
        if accepted * 20 < count:
            with_swaps = True
    return rounds
