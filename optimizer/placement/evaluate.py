"""Whether an action is acceptable, exactly as `docs/contract.md`, section 7 says, and by how much the potential falls with it.

An action is up to eight changes in `State.change`, each with a partition, its new replicas by slot, and its leader slot. Evaluation shifts
the state, reads scores, and shifts back: placement and sums stay as they were.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.compiled import ahead, inner, kernel, whole
from optimizer.placement.commit import carry, put, shift
from optimizer.placement.feasible import in_set, loses_rack
from optimizer.placement.potential import assess, assess_racks
from optimizer.placement.state import COST, LEAD, PARTITION, RACKS, State, is_active
from optimizer.placement.topic_counts import recount
from optimizer.problem import (
    DEAD,
    DRAINING,
    FOLLOWING,
    GROUP,
    GROUPS,
    HARD,
    HARD_RACK,
    HARD_WEIGHT,
    KIND,
    LEADING,
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

TOLERANCE = 1e-9
MARGIN = 5e-10  # stricter than the tolerance by this, since another tool that replays the plan may round differently

# Bit numbers of `Verdict.repairs`. The scores before and after the action show which hard goals on loads and topics it repairs.
REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS, REPAIRS_RACKS, REPAIRS_SCORES, REPAIRS_SETS = 0, 1, 2, 3, 4, 5


class Verdict(NamedTuple):
    """What `evaluate` finds about an action."""

    allowed: bool  # no hard goal gets worse, and no replica goes to a broker of another set
    breaks: int  # hard goals on loads and topics that get worse, each counted on each broker
    better: bool  # the soft goals accept it (`combine`)
    score: float  # combined score
    repairs: int  # bits, by the numbers above
    gain: float  # by how much the potential falls
    touches_low: bool  # a touched broker scored below 1 before
    touched: int  # number of brokers in `State.touched`


@inner
def touch(state: State, count: int, b: int) -> int:
    """Add broker `b` to the `count` brokers of `State.touched`, unless it is there; returns the new number."""
    if state.stamp[b] != state.stamp[-1]:
        state.stamp[b] = state.stamp[-1]
        state.touched[count] = b
        return count + 1
    return count


@inner
def propose(state: State, at: int, p: int, s: int, target: int, lead: int) -> None:
    """Write change number `at` of an action: slot `s` of `p` moves to broker `target`, and slot `lead` leads."""
    slots = state.replicas.shape[1]
    for o in range(slots):
        state.change[at, o] = state.replicas[p, o]
    state.change[at, s] = target
    state.change[at, PARTITION], state.change[at, LEAD] = p, lead


def propose_all(state: State, partitions: npt.ArrayLike, lists: npt.ArrayLike, leads: npt.ArrayLike) -> int:
    """Write the changes of an action: `partitions` [n], their replicas `lists` [n, R] and leader slots `leads` [n]. Returns n."""
    rows = np.asarray(partitions)
    n = len(rows)
    state.change[:n, : state.replicas.shape[1]], state.change[:n, PARTITION], state.change[:n, LEAD] = lists, rows, leads
    return n


@inner
def find_touched(state: State, n: int) -> int:
    """Write the brokers whose replicas or leaderships the `n` changes alter into `State.touched`; returns how many."""
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
def shares_racks(problem: Problem, state: State, b: int) -> bool:
    """Whether the rack score of broker `b` may change with other brokers; if racks are hard, only by replicas in over-full ones."""
    return bool(problem.setting[RACK_GOAL] == SOFT_RACK or state.units[RACKS, b] > 0.0)


@inner
def evaluate(problem: Problem, state: State, n: int) -> Verdict:
    """Judge the first `n` changes of `State.change` as one action on the present state.

    Writes the action's scores by goal into `State.action`, the touched brokers into `State.touched`, and their scores and potential
    after the action into `State.fresh`.
    """
    change = state.change
    touched = find_touched(state, n)
    repairs, rack_gain = note_old(problem, state, n), 0
    worse = False
    if problem.setting[RACK_GOAL] == HARD_RACK:
        for i in range(n):
            if loses_rack(problem, change[i, PARTITION], state.replicas[change[i, PARTITION]], change[i], whole(-1), whole(-1)):
                worse = True
    alone = n == 1  # counts of topics may stay as they are for a single change (`recount`)
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
    breaks, raised = compare_scores(problem, state, touched)
    come, allowed = entering_sets(problem, state, n), breaks == 0
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
    """Write the lists before the `n` changes into `State.old`; returns bits of repairs, except those of racks, scores and broker sets."""
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
                if problem.broker[old, STATE] == DEAD:
                    repairs |= 1 << REPAIRS_DEAD
                elif problem.broker[old, STATE] == DRAINING:
                    repairs |= 1 << REPAIRS_DRAINING
    return repairs


@inner
def entering_sets(problem: Problem, state: State, n: int) -> int:
    """How many replicas the `n` changes move from other broker sets to their own; -1 if any replica moves to a broker of another set."""
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
    """Whether one of the `touched` brokers is eligible and scores below 1 in any goal before the action."""
    for t in range(touched):
        b = state.touched[t]
        for g in range(len(problem.goal) if is_active(problem, b) else 0):
            if state.score[b, g] < 1.0:
                return True
    return False


@inner
def compare_scores(problem: Problem, state: State, touched: int) -> tuple[int, bool]:
    """Write the scores by goal into `State.action`; returns how many hard goals but racks get worse on brokers, and if one improves."""
    breaks, raised = whole(0), False
    for g in range(len(problem.goal)):
        kind = problem.goal[g, KIND]
        low_before, low_after = 2.0, 2.0
        for t in range(touched):
            b = state.touched[t]
            before, after = state.score[b, g], state.fresh[t, g]
            if not is_active(problem, b):
                continue
            low_before = min(low_before, before)
            low_after = min(low_after, after)
            if problem.goal[g, HARD] == 1 and kind != RACK and after != before:
                if kind == LIMIT:  # minus the excess, as a share of the limit
                    before, after = 1.0 - 1.0 / before, 1.0 - 1.0 / after
                if after < before - 1e-12:
                    breaks += 1
                elif after > before + TOLERANCE:
                    raised = True
        state.action[g] = 0.5 if low_before > 1.5 else (low_after - low_before + 1.0) / 2.0
    return breaks, raised


@inner
def adopt(problem: Problem, state: State, n: int, touched: int) -> None:
    """Commit the `n` changes that were judged last, with the scores of the `touched` brokers that `evaluate` found."""
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
    """Whether no group of soft goals has a mean score below 0.5 and at least one is above; and the weighted mean of all soft goals."""
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
    """Whether the contract accepts an action. If `by_potential`, one without repairs must touch a low broker and gain over `least_gain`."""
    if not verdict.allowed:
        return False
    if verdict.repairs != 0:
        return True
    return verdict.touches_low and verdict.gain > least_gain if by_potential else verdict.better


@inner
def prefetch_change(problem: Problem, state: State, p: int, to: np.ndarray, to_lead: np.ndarray) -> None:
    """Prefetch what `evaluate` reads of partition `p`, some changes before its turn."""
    ahead(state.replicas, p)
    ahead(state.lead, p)
    ahead(to, p)
    ahead(to_lead, p)
    ahead(problem.partition, p)
    ahead(problem.vector[p], LEADING)
    ahead(problem.vector[p], FOLLOWING)
    ahead(state.place, p)
    ahead(state.home, p)


@inner
def prefetch_counts(problem: Problem, state: State, p: int, to: np.ndarray, row: int) -> None:
    """Prefetch, some time after `prefetch_change`, topic counts of brokers that gain or lose a replica if `p` goes to row `row` of `to`,
    and the entries of `p` in their replica lists."""
    column = problem.topic_counted[problem.topic[p]] if len(problem.topic_goal) > 0 else -1
    for s in range(to.shape[1]):
        old, new = state.replicas[p, s], to[row, s]
        if old >= 0 and old != new:
            ahead(state.hosted[old], state.place[p, s])
            if column >= 0:
                ahead(state.topic_count[column], old)
                ahead(state.topic_count[column], new)
