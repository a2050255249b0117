"""The last brokers: single acceptable steps, and exchanges of up to eight changes found by a small annealing.

Unlike `balance`, everything here is checked by `evaluate` before it is committed, so it goes straight into the log.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import kernel, whole
from optimizer.problem import STATE, Problem
from optimizer.search.broker_scores import scores_low
from optimizer.search.candidates import watched_goals
from optimizer.search.chance import scramble
from optimizer.search.exchange import LEAST_SHARE, draw, exchange
from optimizer.search.ledger import LEAST_STEP, Budget, Log, has_room, publish
from optimizer.search.order import ascending
from optimizer.search.partners import rank_partners
from optimizer.search.relief import needs_relief, relieve
from optimizer.search.shelf import new_shelf
from optimizer.search.state import COST, MAX_CHANGES, State
from optimizer.search.steps import best_single
from optimizer.search.topic_steps import TOPIC_LOOKS, only_topics, topic_single
from optimizer.search.topic_swaps import topic_swap

MOST_PARTNERS = 12
SPARE_STEPS, SPARE_OF_SMALL = 60_000, 15_000  # annealing steps without success that a call may spend
TINY, SMALL = 100, 1_200  # partitions; in between other seeds are tried, too

@kernel
def polish(
    problem: Problem,
    state: State,
    budget: Budget,
    log: Log,
    seed: int,
    by_potential: bool,
    steps: int,
    most: int,
) -> int:
    """Acceptable steps and exchanges for the brokers that score low, worst first. Returns actions published.

    `steps` annealing steps per attempt; at most `most` brokers get exchanges in one call.
    """
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    room = state.hosted.shape[1] + 1
    factors, gains = np.zeros(room), np.zeros(max(room, 256))
    goals = np.zeros(len(problem.goal), np.int64)
    watched = goals[: watched_goals(problem, state, goals)]
    kept, above = np.zeros(256, np.int64), np.zeros(len(gains))
    shelf = new_shelf(problem, state, np.zeros(0, np.int64))
    partners, worth = np.zeros(MOST_PARTNERS, np.int64), np.zeros(brokers)
    partitions = np.zeros(MAX_CHANGES, np.int64)
    replicas = np.zeros((MAX_CHANGES, slots), np.int64)
    leads = np.zeros(MAX_CHANGES, np.int64)
    scores = np.zeros(len(problem.goal))
    best_gain, best_entry = np.zeros(TOPIC_LOOKS), np.zeros(TOPIC_LOOKS, np.int64)
    best_target = np.zeros(TOPIC_LOOKS, np.int64)
    around = np.zeros(brokers, np.int64)
    random = np.zeros(1, np.int64)
    random[0] = scramble(seed + 1) >> 8
    eligible = np.zeros(brokers, np.int64)
    count = 0
    size_sum, replica_sum = 0.0, 0
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible[count] = b
            count += 1
    if count == 0:
        return 0
    zero, one = whole(0), whole(1)
    for p in range(len(problem.cost)):
        size_sum += problem.cost[p]
        replica_sum += 1
    typical = size_sum / replica_sum if size_sum > 0.0 else 1.0
    published = whole(0)
    if needs_relief(problem, state):
        published = relieve(
            problem, state, budget, log, by_potential, eligible, count, partitions, replicas, leads, scores
        )
    spare = SPARE_OF_SMALL if TINY < len(state.lead) <= SMALL else SPARE_STEPS
    for _ in range(64):
        order = ascending(-state.score[:, COST])
        low = 0
        for b in range(brokers):
            if scores_low(problem, state, b):
                low += 1
        attempts = 12 if count <= 6 else (48 if low <= 8 else 4)
        done = 0
        tried = 0
        for i in range(brokers):
            v = order[i]
            if not scores_low(problem, state, v):
                continue
            for _ in range(256):
                if log.used[1] + MAX_CHANGES >= len(log.partition):
                    return published
                found = rank_partners(problem, state, watched, v, whole(MOST_PARTNERS), zero, partners, worth)
                for j in range(count):
                    if found >= MOST_PARTNERS or count > 2 * MOST_PARTNERS:
                        break
                    known = eligible[j] == v
                    for k in range(found):
                        if partners[k] == eligible[j]:
                            known = True
                    if not known:
                        partners[found] = eligible[j]
                        found += 1
                least = max(LEAST_STEP, LEAST_SHARE * state.score[v, COST])
                good = False
                if not only_topics(problem, state, v):
                    good = best_single(
                        problem, state, budget, watched, v, partners, found, least, by_potential, shelf, factors, gains, kept, above,
                        partitions, replicas, leads, scores,
                    )  # fmt: skip
                if not good and len(problem.topic_goal) > 0:
                    good = topic_single(
                        problem, state, budget, v, by_potential, best_gain, best_entry, best_target,
                        partitions, replicas, leads, scores,
                    )  # fmt: skip
                n = one
                if not good and len(problem.topic_goal) > 0:
                    n = whole(2)
                    good = topic_swap(
                        problem, state, budget, watched, v, by_potential, partitions, replicas, leads, scores
                    )
                if not good or not has_room(state, n, partitions, replicas):
                    break
                publish(problem, state, budget, log, n, partitions, replicas, leads, whole(0))
                done += 1
                if not scores_low(problem, state, v):
                    break
            if tried >= most or not scores_low(problem, state, v):
                continue
            tried += 1
            for attempt in range(attempts):
                if spare <= 0:
                    break
                if log.used[1] + MAX_CHANGES >= len(log.partition):
                    return published
                around[0] = v
                members = 1
                found = rank_partners(problem, state, watched, v, whole(3), zero, partners, worth)
                for k in range(found):
                    around[members] = partners[k]
                    members += 1
                wanted = count if count <= 6 else 4 + attempt
                while members < wanted and members < count:
                    u = eligible[draw(random, count)]
                    known = False
                    for k in range(members):
                        if around[k] == u:
                            known = True
                    if known:
                        for j in range(count):
                            known = False
                            for k in range(members):
                                if around[k] == eligible[j]:
                                    known = True
                            if not known:
                                u = eligible[j]
                                break
                    around[members] = u
                    members += 1
                n = exchange(
                    problem, state, budget, v, around, members, steps, random, by_potential, typical, 0.02 * 8.0 ** (attempt % 6),
                    partitions, replicas, leads, scores,
                )  # fmt: skip
                if n > 0:
                    publish(problem, state, budget, log, n, partitions, replicas, leads, whole(0))
                    done += 1
                    if not scores_low(problem, state, v):
                        break
                else:
                    spare -= steps
        published += done
        if done == 0:
            break
    return published
