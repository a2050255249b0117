"""Whether an action is acceptable, exactly as docs/contract.md, section 7 says, and what it does to the potential.

An action is up to eight changes, each a partition with its new slots and leader slot. Evaluation shifts the state, reads scores,
and shifts back; nothing is left changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.problem import (
    GROUP,
    GROUPS,
    HARD,
    HARD_RACK,
    HARD_WEIGHT,
    KIND,
    LIMIT,
    NO_RACK_GOAL,
    RACK,
    RACK_GOAL,
    SOFT_RACK,
    STATE,
    UNIT_WEIGHT,
    WEIGHT,
    Problem,
)
from optimizer.search.commit import carry, put, shift
from optimizer.search.feasible import loses_rack
from optimizer.search.potential import assess, assess_racks
from optimizer.search.state import COST, LEAD, State
from optimizer.search.topic_counts import recount

TOLERANCE = 1e-9
MARGIN = 5e-10  # beyond the tolerance, for whoever replays with other roundings

# Bits of what an action repairs. Which hard goals on loads and topics is in the scores before and after it.
REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS, REPAIRS_RACKS, REPAIRS_SCORES = 0, 1, 2, 3, 4


class Verdict(NamedTuple):
    """`gain` is by how much the potential falls; `repairs` bits; `touches_low` when a touched broker scores below 1."""

    allowed: bool  # nothing hard gets worse
    better: bool  # combined rule above 0.5
    score: float
    repairs: int
    gain: float
    touches_low: bool
    touched: int  # brokers in `state.touched`


@inner
def touch(state: State, count: int, b: int) -> int:
    """Mark broker `b` as touched once; returns the number touched."""
    if state.stamp[b] != state.stamp[-1]:
        state.stamp[b] = state.stamp[-1]
        state.touched[count] = b
        return count + 1
    return count


@inner
def find_touched(
    state: State, n: int, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray
) -> int:
    """Brokers whose replica set or leadership the `n` changes alter, into `state.touched`; returns how many."""
    state.stamp[-1] += 1
    count = whole(0)
    for i in range(n):
        p = partitions[i]
        for s in range(state.replicas.shape[1]):
            old, new = state.replicas[p, s], replicas[i, s]
            if old < 0:
                continue
            if old != new or (state.lead[p] == s) != (leads[i] == s):
                count = touch(state, count, old)
                count = touch(state, count, new)
    return count


@inner
def evaluate(
    problem: Problem, state: State, n: int, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray,
    scores: np.ndarray,
) -> Verdict:  # fmt: skip
    """Judge the `n` changes as one action on the present state.

    `partitions` int64 [8], `replicas` int64 [8, R], `leads` int64 [8]; action scores per goal go into `scores` float64 [G].
    After it, `state.touched` holds the touched brokers and `state.fresh` their scores and costs after the action.
    """
    slots = state.replicas.shape[1]
    goals = len(problem.goal)
    touched = find_touched(state, n, partitions, replicas, leads)
    repairs = whole(0)
    for i in range(n):
        p = partitions[i]
        state.old[i, LEAD] = state.lead[p]
        if state.lead[p] < 0 and leads[i] >= 0:
            repairs |= 1 << REPAIRS_LEADERLESS
        for s in range(slots):
            old = state.replicas[p, s]
            state.old[i, s] = old
            if old >= 0 and (old != replicas[i, s] or (state.lead[p] == s and leads[i] != s)):
                if problem.broker[old, STATE] == 2:
                    repairs |= 1 << REPAIRS_DEAD
                elif problem.broker[old, STATE] == 1:
                    repairs |= 1 << REPAIRS_DRAINING
    rack_gain = 0
    worse = False
    if problem.setting[RACK_GOAL] == HARD_RACK:
        for i in range(n):
            if loses_rack(problem, state.replicas[partitions[i]], replicas[i], whole(-1), whole(-1)):
                worse = True
    alone = n == 1  # of one change, counts need not be kept
    if alone:
        for k in range(len(problem.topic_goal)):
            for t in range(touched):
                state.units_before[t, k] = state.units[k, state.touched[t]]
            recount(problem, state, k, partitions[0], replicas[0], leads[0], False)
    for i in range(n):
        if alone:
            rise = carry(problem, state, partitions[i], replicas[i], leads[i])
        else:
            rise = shift(problem, state, partitions[i], replicas[i], leads[i])
        rack_gain -= rise
        if rise > 0:
            worse = True
    gain = 0.0
    for t in range(touched):
        b = state.touched[t]
        state.fresh[t, COST] = assess(problem, state, b, state.fresh[t])
        gain += state.score[b, COST] - state.fresh[t, COST]
    for i in range(n - 1, -1, -1):
        if alone:
            carry(problem, state, partitions[i], state.old[i], state.old[i, LEAD])
        else:
            shift(problem, state, partitions[i], state.old[i], state.old[i, LEAD])
    if alone:
        for k in range(len(problem.topic_goal)):
            for t in range(touched):
                state.units[k, state.touched[t]] = state.units_before[t, k]
    allowed, raised = weigh_scores(problem, state, touched, scores)
    if raised:
        repairs |= 1 << REPAIRS_SCORES
    if problem.setting[RACK_GOAL] == HARD_RACK and rack_gain > 0:
        repairs |= 1 << REPAIRS_RACKS
    if problem.setting[RACK_GOAL] == HARD_RACK:
        if worse:
            allowed = False
        gain += HARD_WEIGHT * UNIT_WEIGHT * rack_gain
    elif problem.setting[RACK_GOAL] == SOFT_RACK:
        gain += UNIT_WEIGHT * rack_gain
    better, score = combine(problem, scores)
    touches_low = False
    for t in range(touched):
        b = state.touched[t]
        if problem.broker[b, STATE] == 0:
            for g in range(goals):
                if state.score[b, g] < 1.0:
                    touches_low = True
    return Verdict(allowed, better, score, repairs, gain, touches_low, touched)


@inner
def weigh_scores(problem: Problem, state: State, touched: int, scores: np.ndarray) -> tuple[bool, bool]:
    """Action scores by goal into `scores`; whether no hard goal but racks gets worse on any broker, and whether one gets better."""
    allowed, raised = True, False
    for g in range(len(problem.goal)):
        kind = problem.goal[g, KIND]
        low_before, low_after = 2.0, 2.0
        for t in range(touched):
            b = state.touched[t]
            before, after = state.score[b, g], state.fresh[t, g]
            if problem.broker[b, STATE] != 0:
                continue
            low_before = min(low_before, before)
            low_after = min(low_after, after)
            if problem.goal[g, HARD] == 1 and kind != RACK and after != before:
                if kind == LIMIT:  # the excess as a share of the limit, falling as a score does
                    before, after = 1.0 - 1.0 / before, 1.0 - 1.0 / after
                if after < before - 1e-12:
                    allowed = False
                elif after > before + TOLERANCE:
                    raised = True
        scores[g] = 0.5 if low_before > 1.5 else (low_after - low_before + 1.0) / 2.0
    return allowed, raised


@inner
def adopt(
    problem: Problem, state: State, n: int, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, touched: int
) -> None:  # fmt: skip
    """Commit the `n` changes that were judged last, by which the scores of the `touched` brokers are known."""
    for i in range(n):
        put(problem, state, partitions[i], replicas[i], leads[i])
    for t in range(touched):
        for g in range(state.score.shape[1]):
            state.score[state.touched[t], g] = state.fresh[t, g]
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        for i in range(n):
            for s in range(state.replicas.shape[1]):
                if replicas[i, s] >= 0:
                    assess_racks(problem, state, replicas[i, s])


@kernel
def judge(
    problem: Problem, state: State, n: int, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray,
    scores: np.ndarray,
) -> Verdict:  # fmt: skip
    """`evaluate` for callers in Python."""
    return evaluate(problem, state, n, partitions, replicas, leads, scores)


@inner
def combine(problem: Problem, scores: np.ndarray) -> tuple[bool, float]:
    """Whether the soft goals' action scores are above neutral, group by group, and their weighted mean."""
    total, weights = 0.0, 0.0
    one_above, none_below = False, True
    for group in range(problem.setting[GROUPS]):
        part, weight = 0.0, 0.0
        for g in range(len(problem.goal)):
            if problem.goal[g, HARD] == 0 and problem.goal[g, GROUP] == group:
                part += problem.force[g, WEIGHT] * scores[g]
                weight += problem.force[g, WEIGHT]
        if weight > 0.0:
            mean = part / weight
            if mean > 0.5 + TOLERANCE + MARGIN:
                one_above = True
            if mean < 0.5 - TOLERANCE + MARGIN:
                none_below = False
            total += part
            weights += weight
    if weights <= 0.0:
        return False, 0.5
    return one_above and none_below, total / weights


@inner
def acceptable(verdict: Verdict, by_potential: bool, least_gain: float) -> bool:
    """The rule for publishing an action: contract acceptance, and a potential that falls."""
    if not verdict.allowed:
        return False
    if verdict.repairs != 0:
        return True
    if verdict.gain <= least_gain:
        return False
    return verdict.touches_low if by_potential else verdict.better
