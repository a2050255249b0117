"""How many replicas or leaders of a topic a broker holds, and how many of them are outside its range (*misplaced*)."""

from __future__ import annotations

import math

import numpy as np

from goals.score import TOLERANCE
from kernels.compiled import inner, kernel, part, whole
from optimizer.placement.state import State, is_active
from optimizer.problem import ANY_NUMBER, ANYWHERE, COUNTS_LEADERS, LEVELS, SET_OF, TOPIC_BOUND, TOPIC_GAP, TOPIC_ROW, Problem


@inner
def count_topics(problem: Problem, state: State, k: int) -> None:
    """Compute counts of counted topics and units of brokers in topic goal `k`. O(P R), and O(B) for each topic that all brokers need."""
    brokers = len(state.hosts)
    count, holders = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    most = largest_share(problem, k)
    for t in range(len(problem.topic_first) - 1):
        found = tally(problem, state, k, t, count, holders)
        column = problem.topic_counted[t]
        for i in range(found):
            b = holders[i]
            if column >= 0:
                state.topic_count[column, b, k] = count[b]
            if is_active(problem, b):
                state.units[k, b] += outside(problem, k, t, b, count[b])
        if wanted_by_all(problem, k, t, most):
            for b in range(brokers):
                if is_active(problem, b) and count[b] == 0:
                    state.units[k, b] += outside(problem, k, t, b, whole(0))
        for i in range(found):
            count[holders[i]] = 0


@inner
def tally(problem: Problem, state: State, k: int, t: int, count: np.ndarray, holders: np.ndarray) -> int:
    """Count replicas (or leaders) of topic `t` in `count` int64 [B], 0 before, and list their brokers in `holders`; returns how many."""
    found = whole(0)
    for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
        for s in range(state.replicas.shape[1]):
            b = state.replicas[p, s]
            if b >= 0 and (problem.topic_goal[k, COUNTS_LEADERS] == 0 or state.lead[p] == s):
                if count[b] == 0:
                    holders[found] = b
                    found += 1
                count[b] += 1
    return found


@inner
def largest_share(problem: Problem, k: int) -> float:
    """The largest `topic_share` of a broker in topic goal `k`."""
    most = 0.0
    for b in range(len(problem.broker)):
        most = max(most, problem.topic_share[k, b])
    return most


@inner
def wanted_by_all(problem: Problem, k: int, t: int, most: float) -> bool:
    """Whether a broker with the largest share, `most`, is outside its range when it holds nothing of topic `t`."""
    return fewest(problem, k, problem.topic_total[k, t] * most / problem.topic_share[k, shared_among(problem, t)]) >= 1


@inner
def topic_holds(problem: Problem, state: State, k: int, t: int, b: int) -> int:
    """How many replicas (or leaders) of topic `t` are on broker `b`, as topic goal `k` counts them. O(1) for counted topics."""
    column = problem.topic_counted[t]
    if column >= 0:
        return int(state.topic_count[column, b, k])
    count = whole(0)
    for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
        for s in range(state.replicas.shape[1]):
            if state.replicas[p, s] == b and (problem.topic_goal[k, COUNTS_LEADERS] == 0 or state.lead[p] == s):
                count += 1
    return int(count)


@part
def misplaced_rise(problem: Problem, state: State, k: int, t: int, b: int, by: int) -> float:
    """By how many the misplaced replicas (or leaders) of broker `b` rise with `by` more of topic `t`; 0 unless the broker is active."""
    if not is_active(problem, b):
        return 0.0
    count = topic_holds(problem, state, k, t, b)
    low, high = topic_band(problem, k, t, b)
    return float(max(low - count - by, 0, count + by - high) - max(low - count, 0, count - high))


@inner
def topic_level(problem: Problem, k: int, t: int, b: int) -> float:
    """How many replicas (or leaders) of topic `t` broker `b` should have. The order of operations decides edge cases: keep it."""
    if problem.topic_set[t] != ANYWHERE and problem.topic_set[t] != problem.broker[b, SET_OF]:
        return 0.0
    return float(problem.topic_total[k, t] * problem.topic_share[k, b] / problem.topic_share[k, shared_among(problem, t)])


@inner
def shared_among(problem: Problem, t: int) -> int:
    """The column of `topic_share` with the total of all brokers that may host topic `t`."""
    return int(problem.topic_set[t] + len(problem.broker) if problem.topic_set[t] != ANYWHERE else problem.topic_share.shape[1] - 1)


@inner
def topic_band(problem: Problem, k: int, t: int, b: int) -> tuple[int, int]:
    """The fewest (may be below 0) and the most (may be `ANY_NUMBER`) replicas (or leaders) of topic `t` with which broker `b` scores 1."""
    mean, row = topic_level(problem, k, t, b), problem.topic_goal[k, TOPIC_ROW]
    bound, gap = problem.force[row, TOPIC_BOUND], int(problem.force[row, TOPIC_GAP])
    down = 1.0 - TOLERANCE  # against roundings of products: 50 x 1.1 is 55, not a little more
    high = max(math.ceil(mean * (1.0 + bound) * down), math.ceil(mean * down) + gap)
    return fewest(problem, k, mean), high if problem.topic_goal[k, LEVELS] == 1 else ANY_NUMBER


@inner
def fewest(problem: Problem, k: int, mean: float) -> int:
    """The fewest replicas (or leaders) of a topic with which a broker scores 1 if it should have `mean` of them; may be below 0."""
    row = problem.topic_goal[k, TOPIC_ROW]
    bound, gap = problem.force[row, TOPIC_BOUND], int(problem.force[row, TOPIC_GAP])
    up = 1.0 + TOLERANCE
    return int(min(math.floor(mean * (1.0 - bound) * up), math.floor(mean * up) - gap))


@inner
def outside(problem: Problem, k: int, t: int, b: int, count: int) -> float:
    """By how many replicas (or leaders) of topic `t` a broker `b` that holds `count` is outside its range."""
    low, high = topic_band(problem, k, t, b)
    return float(max(low - count, 0, count - high))


@inner
def recount(problem: Problem, state: State, k: int, p: int, replicas: np.ndarray, lead: int, counts: bool) -> None:
    """Update units (and counts, if `counts`) of topic goal `k` for partition `p` on `replicas` led by `lead`, before it is placed there.

    The change of one partition affects each count only once, so units are right even if counts stay as they were.
    """
    slots = state.replicas.shape[1]
    if problem.topic_goal[k, COUNTS_LEADERS] == 1:
        giver = state.replicas[p, state.lead[p]] if state.lead[p] >= 0 else -1
        taker = replicas[lead] if lead >= 0 else -1
        if giver != taker:
            if giver >= 0:
                count_one(problem, state, k, p, giver, whole(-1), counts)
            if taker >= 0:
                count_one(problem, state, k, p, taker, whole(1), counts)
        return
    for s in range(slots):
        old, new = state.replicas[p, s], replicas[s]
        if old < 0 or old == new:
            continue
        stays, was = False, False
        for o in range(slots):
            if replicas[o] == old:
                stays = True
            if state.replicas[p, o] == new:
                was = True
        if not stays:
            count_one(problem, state, k, p, old, whole(-1), counts)
        if not was:
            count_one(problem, state, k, p, new, whole(1), counts)


@part
def count_one(problem: Problem, state: State, k: int, p: int, b: int, by: int, counts: bool) -> None:
    """Count `by` more replicas (or leaders) of the topic of `p` on broker `b`, which is 1 or -1; see `recount`."""
    t = whole(problem.topic[p])
    state.units[k, b] += misplaced_rise(problem, state, k, t, b, by)
    column = problem.topic_counted[t]
    if counts and column >= 0:
        state.topic_count[column, b, k] = int(state.topic_count[column, b, k]) + by


def mark_topics(problem: Problem, state: State, topics: np.ndarray, marks: np.ndarray) -> None:
    """Set `marks` uint8 [K, T] of each of `topics` int64 to 1 if an eligible broker holds too many or too few of it, else 0."""
    for k in range(len(problem.topic_goal)):
        mark_each(problem, state, k, topics, marks[k])


def all_marked(problem: Problem) -> np.ndarray:
    """uint8 [K, T] of ones: any topic may have brokers outside its range."""
    return np.ones((len(problem.topic_goal), len(problem.topic_first) - 1), np.uint8)


@kernel
def mark_each(problem: Problem, state: State, k: int, topics: np.ndarray, marks: np.ndarray) -> None:
    """`mark_topics` for topic goal `k`, in `marks` uint8 [T]."""
    brokers = len(problem.broker)
    count, holders = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    most = largest_share(problem, k)
    for t in topics:
        found, off = tally(problem, state, k, whole(t), count, holders), False
        every = wanted_by_all(problem, k, t, most) and problem.topic_first[t + 1] > problem.topic_first[t]
        for i in range(brokers if every else found):
            b = whole(i) if every else holders[i]
            off = off or (is_active(problem, b) and outside(problem, k, t, b, count[b]) > 0.0)
        marks[t] = 1 if off else 0
        for i in range(found):
            count[holders[i]] = whole(0)
