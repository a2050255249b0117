"""Whether an action is acceptable, exactly as docs/contract.md, section 7 says, and what it does to the potential.

An action is up to eight changes, each a partition with its new slots and leader slot, in `state.change`. Evaluation shifts the state,
reads scores, and shifts back; nothing is left changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
    SETS,
    SOFT_RACK,
    STATE,
    UNIT_WEIGHT,
    WEIGHT,
    Problem,
)
from optimizer.search.commit import carry, put, shift
from optimizer.search.feasible import in_set, loses_rack
from optimizer.search.potential import assess, assess_racks
from optimizer.search.state import COST, LEAD, PARTITION, State
from optimizer.search.topic_counts import recount

TOLERANCE = 1e-9
MARGIN = 5e-10  # beyond the tolerance, for whoever replays with other roundings

# Bits of what an action repairs. Which hard goals on loads and topics is in the scores before and after it.
REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS, REPAIRS_RACKS, REPAIRS_SCORES, REPAIRS_SETS = 0, 1, 2, 3, 4, 5


class Verdict(NamedTuple):
    """`gain` is by how much the potential falls; `repairs` bits; `touches_low` when a touched broker scores below 1."""

    allowed: bool  # nothing hard gets worse
    breaks: int  # hard goals on loads and topics that get worse, each counted on each broker
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
def propose(state: State, at: int, p: int, s: int, target: int, lead: int) -> None:
    """Change `at` of an action: slot `s` of `p` to broker `target`, led by slot `lead`."""
    slots = state.replicas.shape[1]
    for o in range(slots):
        state.change[at, o] = state.replicas[p, o]
    state.change[at, s] = target
    state.change[at, PARTITION], state.change[at, LEAD] = p, lead


def propose_all(state: State, partitions: npt.ArrayLike, lists: npt.ArrayLike, leads: npt.ArrayLike) -> int:
    """The changes of an action: partitions [n], their replicas [n, R] and leader slots [n]; returns how many there are."""
    rows = np.asarray(partitions)
    n = len(rows)
    state.change[:n, : state.replicas.shape[1]], state.change[:n, PARTITION], state.change[:n, LEAD] = lists, rows, leads
    return n


@inner
def find_touched(state: State, n: int) -> int:
    """Brokers whose replica set or leadership the `n` changes alter, into `state.touched`; returns how many."""
    state.stamp[-1] += 1
    count = whole(0)
    for i in range(n):
        p = state.change[i, PARTITION]
        for s in range(state.replicas.shape[1]):
            old, new = state.replicas[p, s], state.change[i, s]
            if old < 0:
                continue
            if old != new or (state.lead[p] == s) != (state.change[i, LEAD] == s):
                count = touch(state, count, old)
                count = touch(state, count, new)
    return count


@inner
def evaluate(problem: Problem, state: State, n: int) -> Verdict:
    """Judge the first `n` changes of `state.change` as one action on the present state.

    After it, `state.action` holds the action's scores by goal, `state.touched` the touched brokers and `state.fresh` their scores and costs
    after the action.
    """
    change = state.change
    touched = find_touched(state, n)
    repairs, rack_gain = note_old(problem, state, n), 0
    worse = False
    if problem.setting[RACK_GOAL] == HARD_RACK:
        for i in range(n):
            if loses_rack(problem, change[i, PARTITION], state.replicas[change[i, PARTITION]], change[i], whole(-1), whole(-1)):
                worse = True
    alone = n == 1  # of one change, counts need not be kept
    if alone:
        for k in range(len(problem.topic_goal)):
            for t in range(touched):
                state.units_before[t, k] = state.units[k, state.touched[t]]
            recount(problem, state, k, change[0, PARTITION], change[0], change[0, LEAD], False)
    for i in range(n):
        if alone:
            rise = carry(problem, state, change[i, PARTITION], change[i], change[i, LEAD])
        else:
            rise = shift(problem, state, change[i, PARTITION], change[i], change[i, LEAD])
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
            carry(problem, state, change[i, PARTITION], state.old[i], state.old[i, LEAD])
        else:
            shift(problem, state, change[i, PARTITION], state.old[i], state.old[i, LEAD])
    if alone:
        for k in range(len(problem.topic_goal)):
            for t in range(touched):
                state.units[k, state.touched[t]] = state.units_before[t, k]
    breaks, raised = weigh_scores(problem, state, touched)
    come, allowed = coming_home(problem, state, n), breaks == 0
    if come > 0:
        repairs |= 1 << REPAIRS_SETS
        gain += HARD_WEIGHT * UNIT_WEIGHT * come
    if raised:
        repairs |= 1 << REPAIRS_SCORES
    if problem.setting[RACK_GOAL] == HARD_RACK:
        if rack_gain > 0:
            repairs |= 1 << REPAIRS_RACKS
        allowed = allowed and not worse
        gain += HARD_WEIGHT * UNIT_WEIGHT * rack_gain
    elif problem.setting[RACK_GOAL] == SOFT_RACK:
        gain += UNIT_WEIGHT * rack_gain
    better, score = combine(problem, state.action)
    return Verdict(allowed and come >= 0, breaks, better, score, repairs, gain, touches_low(problem, state, touched), touched)


@inner
def note_old(problem: Problem, state: State, n: int) -> int:
    """Where the partitions of `n` changes are, into `state.old`; bits of what the changes repair of brokers that go and missing leaders."""
    repairs = whole(0)
    for i in range(n):
        p, lead = state.change[i, PARTITION], state.change[i, LEAD]
        state.old[i, LEAD] = state.lead[p]
        if state.lead[p] < 0 and lead >= 0:
            repairs |= 1 << REPAIRS_LEADERLESS
        for s in range(state.replicas.shape[1]):
            old = state.replicas[p, s]
            state.old[i, s] = old
            if old >= 0 and (old != state.change[i, s] or (state.lead[p] == s and lead != s)):
                if problem.broker[old, STATE] == 2:
                    repairs |= 1 << REPAIRS_DEAD
                elif problem.broker[old, STATE] == 1:
                    repairs |= 1 << REPAIRS_DRAINING
    return repairs


@inner
def coming_home(problem: Problem, state: State, n: int) -> int:
    """How many replicas `n` changes bring from brokers of other sets to those of their own; -1 where they bring one to another."""
    come = whole(0)
    for i in range(n if problem.setting[SETS] == 1 else 0):
        p = state.change[i, PARTITION]
        for s in range(state.replicas.shape[1]):
            old, new = state.old[i, s], state.change[i, s]
            if old >= 0 and old != new:
                if not in_set(problem, p, new):
                    return whole(-1)
                come += 0 if in_set(problem, p, old) else 1
    return come


@inner
def touches_low(problem: Problem, state: State, touched: int) -> bool:
    """Whether one of the `touched` brokers scores below 1 in any goal as it stands."""
    for t in range(touched):
        b = state.touched[t]
        for g in range(len(problem.goal) if problem.broker[b, STATE] == 0 else 0):
            if state.score[b, g] < 1.0:
                return True
    return False


@inner
def weigh_scores(problem: Problem, state: State, touched: int) -> tuple[int, bool]:
    """Action scores by goal into `state.action`; how many hard goals but racks get worse on brokers, and whether one gets better."""
    breaks, raised = whole(0), False
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
                    breaks += 1
                elif after > before + TOLERANCE:
                    raised = True
        state.action[g] = 0.5 if low_before > 1.5 else (low_after - low_before + 1.0) / 2.0
    return breaks, raised


@inner
def adopt(problem: Problem, state: State, n: int, touched: int) -> None:
    """Commit the `n` changes that were judged last, by which the scores of the `touched` brokers are known."""
    for i in range(n):
        put(problem, state, state.change[i, PARTITION], state.change[i], state.change[i, LEAD])
    for t in range(touched):
        for g in range(state.score.shape[1]):
            state.score[state.touched[t], g] = state.fresh[t, g]
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        for i in range(n):
            for s in range(state.replicas.shape[1]):
                if state.change[i, s] >= 0:
                    assess_racks(problem, state, state.change[i, s])


@kernel
def judge(problem: Problem, state: State, n: int) -> Verdict:
    """`evaluate` for callers in Python."""
    return evaluate(problem, state, n)


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
    """The contract's rule for an action. By potential, it falls by more than `least_gain`."""
    if not verdict.allowed:
        return False
    if verdict.repairs != 0:
        return True
    return verdict.touches_low and verdict.gain > least_gain if by_potential else verdict.better
