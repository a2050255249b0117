"""Bringing brokers into band: leadership, moves to and from the best partners, swaps.

Works on the potential alone (which always falls); whether each step is acceptable by score is decided when the plan is put in
order. Nothing is done for brokers that are in band in every goal. Brokers out of band are looked at many at a time, by all threads,
while nothing changes; what they propose is committed one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import both, by_reference, inner, kernel, whole
from optimizer.problem import STATE, Problem
from optimizer.search.batch import Batch, Room, new_batch, new_room
from optimizer.search.candidates import watched_goals
from optimizer.search.leadership import find_all, survey, transfer_leaders
from optimizer.search.order import ascending
from optimizer.search.parameters import (
    FEW_LOW,
    LEAST_FALL,
    LOOK_BACK,
    MANY_LOW,
    MOST_MOVED,
    MOST_SWAPPED,
    NEVER,
    PATIENCE,
    RANKED,
    SWAP_KEPT,
    WIDEST,
    WORTH_SHARING,
)
from optimizer.search.partners import BrokerLoads, broker_loads, observe, rank_observed, rank_partners
from optimizer.search.potential import badness, is_low, is_out
from optimizer.search.relocate import assess_stale, carry_out_all, propose_all
from optimizer.search.standing import count_low
from optimizer.search.state import State
from optimizer.search.swaps import Side, new_side, swap_with
from optimizer.search.vector_cache import VectorCache, fill_cache, new_cache
from optimizer.threads import Threads

DONE, FIND, RANK, PROPOSE = 0, 1, 2, 3  # what is to be done for each star of a batch
# Where a search stands: before a round, before and after leaders are looked for, before and after partners are, after moves are.
ROUND, SEEK, TRANSFER, CHOOSE, CLAIM, SETTLE, CLOSE = 0, 1, 2, 3, 4, 5, 6
# Entries of `Walk.at`.
STAGE, TURN, COUNT, LEFT, NEXT, ACCEPTED, LED_GOALS, SWAPPING, BATCH, AHEAD, TASK, PARTS, SEED, ROUNDS, MOVES, LEAST = range(16)
PAST_LOW, PAST_BADNESS, TYPICAL = 0, 1, 2  # entries of `Walk.past`


@by_reference
class Walk(NamedTuple):
    """Where a search stands. B brokers, G goals."""

    at: np.ndarray  # int64 [n]: stage, round, brokers out of band, of these left, next, steps made, …; what the caller asks for
    past: np.ndarray  # float64 [3], how it stood when it was looked at last, and how many replicas brokers hold on average
    roles: np.ndarray  # int64 [G], 1 where a leadership transfer can help in a goal
    low: np.ndarray  # int64 [B], brokers out of band, worst first
    left: np.ndarray  # int64 [B], those that have not had their turn
    led: np.ndarray  # int64 [G], goals on loads that count and tell a leader from a follower
    rest: np.ndarray  # int64 [B], rounds to leave a broker alone after it found nothing
    failed: np.ndarray  # int64 [B], how often in a row
    claimed: np.ndarray  # int64 [B], last batch in which the broker was in a star
    ranked: np.ndarray  # int64 [S, RANKED], with whom the next of these could best trade
    ranks: np.ndarray  # int64 [S], how many of them there are
    partners: np.ndarray  # int64 [MOST_SWAPPED], room


def balance(
    problem: Problem, state: State, seed: int, rounds: int, roles: np.ndarray, moves: bool, threads: Threads | None = None,
    least: int = WORTH_SHARING,
) -> int:  # fmt: skip
    """Rounds over the brokers out of band until none is left or nothing helps. Returns rounds used.

    `roles` int64 [G] marks goals that a leadership transfer can help. Without `moves` only leaderships change. `threads` share what has
    at `least` so many replicas, or pairs of brokers, to look at.
    """
    threads = threads or Threads()
    least = least if threads.count > 1 else NEVER
    brokers, goals = len(problem.broker), len(problem.goal)
    eligible = problem.broker[:, STATE] == 0
    if eligible.sum() < 2:
        return 0
    typical = float(state.hosts[eligible].sum() / eligible.sum())
    cache, loads = new_cache(problem, state, roles), broker_loads(problem)
    if count_low(problem, state) > MANY_LOW * brokers:
        fill_cache(problem, state, cache, threads)
    batch = new_batch(problem, int(eligible.sum()), typical)
    stars, at = len(batch.centre), np.zeros(16, np.int64)
    at[[SEED, ROUNDS, MOVES, LEAST]] = seed, rounds, moves, least
    low, left, rest, failed, claimed = (np.zeros(brokers, np.int64) for _ in range(5))
    walk = Walk(
        at, np.array([np.inf, np.inf, typical]), roles, low, left, np.zeros(goals, np.int64), rest, failed, claimed,
        np.zeros((stars, RANKED), np.int64), np.zeros(stars, np.int64), np.zeros(MOST_SWAPPED, np.int64),
    )  # fmt: skip
    rooms = [new_room(problem, state)]
    while advance(problem, state, cache, loads, walk, batch, rooms[0]) != DONE:
        rooms.extend(new_room(problem, state) for _ in range(len(rooms), threads.count))
        at[PARTS] = threads.count
        threads.share(lambda i: look(problem, state, cache, loads, walk, batch, rooms[i], i), threads.count)
    return int(at[TURN])


@both
def look(problem: Problem, state: State, cache: VectorCache, loads: BrokerLoads, walk: Walk, batch: Batch, room: Room, first: int) -> None:
    """Do the task of `walk` for the star `first` of the batch, and every one as many parts further; or `RANK` brokers left."""
    at = walk.at
    step = at[PARTS]
    if at[TASK] == RANK:
        for i in range(first, at[AHEAD], step):
            walk.ranks[i] = rank_observed(
                problem, loads, batch.goal[: batch.goal[-1]], walk.left[i], whole(RANKED), noise_of(walk), walk.ranked[i], room.worth
            )
    elif at[TASK] == FIND:
        led = walk.led[: at[LED_GOALS]]
        survey(problem, state, led, room.slopes, room.steep)
        find_all(problem, state, cache, led, batch, first, step, room)
    else:
        propose_all(problem, state, cache, batch, first, step, room)


@inner
def noise_of(walk: Walk) -> int:
    """Another one in every round."""
    return int(walk.at[SEED] * 7919 + walk.at[TURN] + 1)


@kernel
def advance(problem: Problem, state: State, cache: VectorCache, loads: BrokerLoads, walk: Walk, batch: Batch, room: Room) -> int:
    """Go on until there is at least so much to `look` at as the caller shares, and return what for; `DONE` at the end."""
    at = walk.at
    while True:
        task = whole(DONE)
        if at[STAGE] == ROUND:
            if at[TURN] >= at[ROUNDS] or not begin_round(problem, state, walk, batch):
                return DONE
        elif at[STAGE] == SEEK:
            seek(problem, state, walk, batch)
            if batch.used[0] > 0:
                task, at[STAGE] = whole(FIND), TRANSFER
            else:
                at[LEFT], at[STAGE] = 0, CLOSE
                if at[MOVES] == 1:
                    at[LEFT], at[STAGE] = at[COUNT], CHOOSE
                    for i in range(at[COUNT]):
                        walk.left[i] = walk.low[i]
        elif at[STAGE] == TRANSFER:
            for i in range(batch.used[0]):
                done = transfer_leaders(problem, state, walk.led[: at[LED_GOALS]], batch, i, room.costs)
                at[ACCEPTED] += done
                if done > 0:
                    walk.failed[batch.centre[i]] = 0
            at[STAGE] = SEEK
        elif at[STAGE] == CHOOSE:
            choose(problem, state, walk, len(batch.centre))
            observe(problem, state, batch.goal[: batch.goal[-1]], loads)
            task, at[STAGE] = (whole(RANK), CLAIM) if at[AHEAD] > 0 else (whole(DONE), CLOSE)
        elif at[STAGE] == CLAIM:
            claim(problem, state, walk, batch)
            task, at[STAGE] = whole(PROPOSE), SETTLE
        elif at[STAGE] == SETTLE:
            mine, theirs = new_side(problem, whole(SWAP_KEPT), room.factors), new_side(problem, whole(SWAP_KEPT), room.factors)
            conclude(problem, state, cache, loads, walk, batch, mine, theirs, room)
            at[STAGE] = CHOOSE
        else:
            at[TURN] += 1
            at[STAGE] = ROUND
            if is_stuck(walk):
                return DONE
        if task != DONE:
            at[TASK] = task
            if weight(state, walk, batch) >= at[LEAST]:
                return task
            at[PARTS] = 1
            look(problem, state, cache, loads, walk, batch, room, whole(0))


@inner
def begin_round(problem: Problem, state: State, walk: Walk, batch: Batch) -> bool:
    """Find out who is out of band, worst first, unless that is nobody, or nothing has got better for long."""
    at, brokers = walk.at, len(problem.broker)
    if at[TURN] % LOOK_BACK == 0:
        now_low, now_badness = 0.0, 0.0
        for b in range(brokers):
            if is_low(problem, state, b):
                now_low += 1.0
                now_badness += badness(problem, state, b, True)
        if now_low >= walk.past[PAST_LOW] and now_badness >= (1.0 - LEAST_FALL) * walk.past[PAST_BADNESS]:
            return False
        walk.past[PAST_LOW], walk.past[PAST_BADNESS] = now_low, now_badness
    keys = np.zeros(brokers)
    count, waiting = 0, False
    for b in range(brokers):
        if is_low(problem, state, b):
            if walk.failed[b] < PATIENCE:
                waiting = True
            if walk.rest[b] > 0:
                walk.rest[b] -= 1
                continue
            walk.left[count] = b
            keys[count] = -badness(problem, state, b, True)
            count += 1
    order = ascending(keys[:count])
    for i in range(count):
        walk.low[i] = walk.left[order[i]]
    batch.goal[-1], at[LED_GOALS] = 0, 0
    for g in watched_goals(problem, state):
        batch.goal[batch.goal[-1]] = g
        batch.goal[-1] += 1
        if walk.roles[g] == 1:
            walk.led[at[LED_GOALS]] = g
            at[LED_GOALS] += 1
    at[COUNT], at[NEXT], at[ACCEPTED], at[STAGE] = count, 0, 0, SEEK
    return count > 0 or waiting


@inner
def seek(problem: Problem, state: State, walk: Walk, batch: Batch) -> None:
    """The next brokers that a transfer of leadership may help become a batch."""
    at = walk.at
    batch.used[0] = 0
    while at[NEXT] < at[COUNT] and batch.used[0] < len(batch.centre):
        v = walk.low[at[NEXT]]
        at[NEXT] += 1
        helps = False
        for g in walk.led[: at[LED_GOALS]]:
            if is_out(problem, state, v, g):
                helps = True
        if helps:
            batch.centre[batch.used[0]] = v
            batch.used[0] += 1


@inner
def choose(problem: Problem, state: State, walk: Walk, stars: int) -> None:
    """For the next brokers that are left partners have to be found; of those, who came into band is left no more."""
    at = walk.at
    kept = 0
    at[AHEAD] = 0
    for i in range(at[LEFT]):
        v = walk.left[i]
        if kept < stars:
            if not is_low(problem, state, v):
                continue
            at[AHEAD] = kept + 1
        walk.left[kept] = v
        kept += 1
    at[LEFT] = kept


@inner
def claim(problem: Problem, state: State, walk: Walk, batch: Batch) -> None:
    """The worst of the brokers that are left become a batch, each with the best partners that nobody else has. Who is a partner of
    another, or has none left, waits for a later batch. Nobody is in two stars after it."""
    at = walk.at
    at[BATCH] += 1
    kept, stars = 0, 0
    for i in range(at[LEFT]):
        v, found = walk.left[i], 0
        waits = i >= at[AHEAD] or walk.claimed[v] == at[BATCH]
        if not waits:
            worst = np.sqrt(badness(problem, state, v, False))
            wide = 2 if worst < 0.2 else (4 if worst < 0.5 else WIDEST)
            for k in range(walk.ranks[i]):
                u = walk.ranked[i, k]
                if walk.claimed[u] != at[BATCH] and found < wide:
                    batch.partner[stars, found] = u
                    found += 1
            waits = found == 0 and walk.ranks[i] > 0
        if waits:
            walk.left[kept] = v
            kept += 1
            continue
        walk.claimed[v] = at[BATCH]
        for k in range(found):
            walk.claimed[batch.partner[stars, k]] = at[BATCH]
        most = min(max(int(0.032 * walk.past[TYPICAL]), 1), MOST_MOVED)
        if worst < 0.1:
            most = max(1, most // 4)
        batch.centre[stars], batch.partners[stars], batch.most[stars] = v, found, most
        batch.patient[stars] = 1 if walk.failed[v] == 0 and len(problem.topic_goal) == 0 else 0  # topics leave little choice
        stars += 1
    batch.used[0] = stars
    at[LEFT] = kept


@inner
def conclude(  # wide: sides are made where references are counted, and this function makes no array
    problem: Problem, state: State, cache: VectorCache, loads: BrokerLoads, walk: Walk, batch: Batch, mine: Side, theirs: Side, room: Room
) -> None:
    """Commit what the stars of a batch propose; a centre without moves may swap, by the sides `mine` and `theirs`."""
    at = walk.at
    watched = batch.goal[: batch.goal[-1]]
    carry_out_all(problem, state, batch)
    assess_stale(problem, state, batch.stale)
    for i in range(batch.used[0]):
        v, done = batch.centre[i], batch.moves[i]
        if done == 0 and (at[SWAPPING] == 1 or walk.failed[v] > 0) and is_low(problem, state, v):
            most = 4 if walk.failed[v] < 2 else (MOST_SWAPPED if at[COUNT] <= FEW_LOW else 12)
            found = rank_partners(problem, state, loads, watched, v, whole(most), noise_of(walk), walk.partners)
            for k in range(found):
                mine.at[0], theirs.at[0] = v, walk.partners[k]
                done += swap_with(problem, state, cache, watched, mine, theirs, room)
                if not is_low(problem, state, v):
                    break
        if done == 0:
            walk.failed[v] += 1
            walk.rest[v] = min(walk.failed[v], 4)
        else:
            walk.failed[v] = 0
        at[ACCEPTED] += done


@inner
def is_stuck(walk: Walk) -> bool:
    """Whether a round that ends brought nothing and none after it will; from when on brokers swap, too."""
    at, stuck = walk.at, 0
    if at[COUNT] == 0:  # all rest
        return False
    if at[ACCEPTED] == 0 and at[MOVES] == 0:
        return True
    for i in range(at[COUNT]):
        if walk.failed[walk.low[i]] >= PATIENCE:
            stuck += 1
    if at[ACCEPTED] == 0 and stuck == at[COUNT] and at[SWAPPING] == 1:
        return True
    if at[ACCEPTED] * 20 < at[COUNT]:
        at[SWAPPING] = 1
    return False


@inner
def weight(state: State, walk: Walk, batch: Batch) -> int:
    """How many replicas, or pairs of brokers, there are to look at."""
    if walk.at[TASK] == RANK:
        return whole(walk.at[AHEAD] * len(state.hosts))
    total = whole(0)
    for i in range(batch.used[0]):
        total += state.hosts[batch.centre[i]] * (batch.partners[i] if walk.at[TASK] == PROPOSE else 1)
    return total
