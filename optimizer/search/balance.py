"""Improve: bring brokers within their target ranges by leadership transfers, moves to and from the best partners, and swaps.

Judges by the potential alone, which every step lowers. Whether an action is acceptable is decided later, when the plan is put in order.
Brokers within their ranges on all loads only serve as partners. The threads look at many brokers outside their ranges side by side, while
the placement does not change. The proposals are then committed one after the other. Called by `search`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import both, by_reference, inner, kernel, whole
from kernels.order import ascending
from optimizer.parameters import (
    FEW_LOW,
    LEAST_FALL,
    LOOK_BACK,
    MANY_LOW,
    MOST_MOVED,
    MOST_SWAPPED,
    PATIENCE,
    RANKED,
    SWAP_KEPT,
    UNSHARED,
    WIDEST,
    WORTH_SHARING,
)
from optimizer.placement.potential import badness, is_low, is_out
from optimizer.placement.standing import count_low
from optimizer.placement.state import State
from optimizer.problem import ACTIVE, STATE, Problem
from optimizer.search.batch import Batch, Room, new_batch, new_room
from optimizer.search.candidates import watched_goals
from optimizer.search.leadership import find_all, survey, transfer_leaders
from optimizer.search.partners import BrokerLoads, broker_loads, observe, rank_observed, rank_partners
from optimizer.search.relocate import assess_stale, carry_out_all, propose_stars
from optimizer.search.swaps import Side, new_side, swap_with
from optimizer.search.vector_cache import VectorCache, fill_cache, new_cache
from optimizer.threads import Threads

DONE, FIND, RANK, PROPOSE = 0, 1, 2, 3  # tasks of `do_task`, for each star of a batch
# Stages of a round: its start; before and after finding transfers; before and after ranking partners; moves are proposed; its end.
ROUND, SEEK, TRANSFER, CHOOSE, CLAIM, SETTLE, CLOSE = 0, 1, 2, 3, 4, 5, 6
# Entries of `Walk.at`.
STAGE, TURN, COUNT, LEFT, NEXT, ACCEPTED, LED_GOALS, SWAPPING, BATCH, AHEAD, TASK, PARTS, SEED, ROUNDS, MOVES, LEAST = range(16)
PAST_LOW, PAST_BADNESS, TYPICAL = 0, 1, 2  # entries of `Walk.past`


@by_reference
class Walk(NamedTuple):
    """How far the search has come. B brokers, G goals, S stars."""

    at: np.ndarray  # int64 [16]: stage, round, counts of brokers and steps, task, …; then the arguments of `balance`
    past: np.ndarray  # float64 [3], number and badness of brokers outside at the last look back; mean replicas of a broker
    roles: np.ndarray  # int64 [G], 1 where a leadership transfer can help in a goal
    low: np.ndarray  # int64 [B], brokers outside a target range that have a turn in this round, worst first
    left: np.ndarray  # int64 [B], those of `low` whose turn for moves is still to come
    led: np.ndarray  # int64 [G], goals on loads that count and in which a leader costs another amount than a follower
    rest: np.ndarray  # int64 [B], rounds for which the broker rests after it found nothing
    failed: np.ndarray  # int64 [B], turns in a row in which the broker found nothing
    claimed: np.ndarray  # int64 [B], number of the last batch in which the broker was in a star
    ranked: np.ndarray  # int64 [S, RANKED], best partners of the next brokers of `left`, best first
    ranks: np.ndarray  # int64 [S], how many partners
    partners: np.ndarray  # int64 [MOST_SWAPPED], scratch: partners for swaps


def balance(
    problem: Problem, state: State, seed: int, rounds: int, roles: np.ndarray, moves: bool, threads: Threads | None = None,
    least: int = WORTH_SHARING,
) -> int:  # fmt: skip
    """Repeat rounds over the brokers outside their target ranges until none is left or nothing helps. Returns rounds used.

    There are at most `rounds`. `roles` int64 [G] marks goals that a leadership transfer can help. Without `moves`, only leaderships
    change. `threads` share tasks with at `least` so many replicas, or pairs of brokers, to look at.
    """
    threads = threads or Threads()
    least = least if threads.count > 1 else UNSHARED
    brokers, goals = len(problem.broker), len(problem.goal)
    eligible = problem.broker[:, STATE] == ACTIVE
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
        threads.share(lambda i: do_task(problem, state, cache, loads, walk, batch, rooms[i], i), threads.count)
    return int(at[TURN])


@both
def do_task(
    problem: Problem, state: State, cache: VectorCache, loads: BrokerLoads, walk: Walk, batch: Batch, room: Room, first: int
) -> None:
    """Do the task of `walk` for star `first` of the batch and every `PARTS`-th after it; `RANK` does so for brokers of `Walk.left`."""
    at = walk.at
    step = at[PARTS]
    if at[TASK] == RANK:
        for i in range(first, at[AHEAD], step):
            walk.ranks[i] = rank_observed(
                problem, loads, batch.goal[: batch.goal[-1]], walk.left[i], whole(RANKED), noise_seed(walk), walk.ranked[i], room.worth
            )
    elif at[TASK] == FIND:
        led = walk.led[: at[LED_GOALS]]
        survey(problem, state, led, room.slopes, room.steep)
        find_all(problem, state, cache, led, batch, first, step, room)
    else:
        propose_stars(problem, state, cache, batch, first, step, room)


@inner
def noise_seed(walk: Walk) -> int:
    """Seed of the noise in ranking partners, another one in each round."""
    return int(walk.at[SEED] * 7919 + walk.at[TURN] + 1)


@kernel
def advance(problem: Problem, state: State, cache: VectorCache, loads: BrokerLoads, walk: Walk, batch: Batch, room: Room) -> int:
    """Continue up to the next task that is large enough to share (`LEAST`), and return it; `DONE` at the end. Does smaller ones."""
    at = walk.at
    while True:
        task = whole(DONE)
        if at[STAGE] == ROUND:
            if at[TURN] >= at[ROUNDS] or not start_round(problem, state, walk, batch):
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
            if task_size(state, walk, batch) >= at[LEAST]:
                return task
            at[PARTS] = 1
            do_task(problem, state, cache, loads, walk, batch, room, whole(0))


@inner
def start_round(problem: Problem, state: State, walk: Walk, batch: Batch) -> bool:
    """List the brokers outside a target range that do not rest, worst first. False if none is left to try, or nothing improved lately."""
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
    """Fill the batch with the next brokers that a leadership transfer may help."""
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
    """Choose the next `stars` brokers of `Walk.left`, to rank their partners. Brokers that are within their ranges by now are dropped."""
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
    """Fill the batch with the worst remaining brokers, each with its best partners that are in no other star. A broker that is a partner
    of another, or whose partners are all taken, waits for a later batch. So no broker is in two stars."""
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
def conclude(  # wide: the caller makes both sides, because an `inner` function must not get a new array returned
    problem: Problem, state: State, cache: VectorCache, loads: BrokerLoads, walk: Walk, batch: Batch, mine: Side, theirs: Side, room: Room
) -> None:
    """Commit the moves that the stars of a batch propose. A centre without moves may swap; the sides `mine` and `theirs` are scratch."""
    at = walk.at
    watched = batch.goal[: batch.goal[-1]]
    carry_out_all(problem, state, batch)
    assess_stale(problem, state, batch.stale)
    for i in range(batch.used[0]):
        v, done = batch.centre[i], batch.moves[i]
        if done == 0 and (at[SWAPPING] == 1 or walk.failed[v] > 0) and is_low(problem, state, v):
            most = 4 if walk.failed[v] < 2 else (MOST_SWAPPED if at[COUNT] <= FEW_LOW else 12)
            found = rank_partners(problem, state, loads, watched, v, whole(most), noise_seed(walk), walk.partners)
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
    """Whether this round found nothing and later rounds will not either. Also turns on swaps for later rounds, if this one found little."""
    at, stuck = walk.at, 0
    if at[COUNT] == 0:  # all brokers outside rest
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
def task_size(state: State, walk: Walk, batch: Batch) -> int:
    """How many replicas, or pairs of brokers, the task has to look at."""
    if walk.at[TASK] == RANK:
        return whole(walk.at[AHEAD] * len(state.hosts))
    total = whole(0)
    for i in range(batch.used[0]):
        total += state.hosts[batch.centre[i]] * (batch.partners[i] if walk.at[TASK] == PROPOSE else 1)
    return total
