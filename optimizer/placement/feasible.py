"""Which changes are feasible: whether a broker may take a replica or a leadership, and whether it stays within its target ranges then."""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, whole
from optimizer.placement.potential import NOTHING, more_load
from optimizer.placement.state import State, is_active, is_leaving
from optimizer.placement.topic_counts import misplaced_rise
from optimizer.problem import (
    ANYWHERE,
    BOUND,
    CEILING,
    COLUMN,
    COUNTS_LEADERS,
    FOLLOWING,
    HARD,
    HARD_RACK,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MENDABLE,
    MIN_LOAD,
    MOVABLE,
    NO_RACK_GOAL,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    SET_OF,
    SETS,
    Problem,
)


@inner
def active_brokers(problem: Problem) -> np.ndarray:
    """int64: active brokers, which may take replicas, ascending."""
    found, count = np.zeros(len(problem.broker), np.int64), 0
    for b in range(len(problem.broker)):
        if is_active(problem, b):
            found[count] = b
            count += 1
    return found[:count]


@inner
def in_set(problem: Problem, p: int, b: int) -> bool:
    """Whether broker `b` is in the broker set of partition `p`, or one of them is not bound to a set."""
    if problem.setting[SETS] == 0:
        return True
    own, here = problem.topic_set[problem.topic[p]], problem.broker[b, SET_OF]
    return bool(own == here or own == ANYWHERE or here == ANYWHERE)


@inner
def must_leave(problem: Problem, p: int, b: int) -> bool:
    """Whether a replica of partition `p` has to leave broker `b`, which is dead, draining or of another set, and may leave it."""
    if is_leaving(problem, b):
        return bool(problem.partition[p, MENDABLE] == 1)
    return bool(is_active(problem, b) and problem.partition[p, MOVABLE] == 1 and not in_set(problem, p, b))


@inner
def fits_rack(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """Whether the goal on racks, if any, allows slot `s` of `p` on `target`: the rack excess of the partition must not rise. If the goal is
    hard, the partition must not lose a rack against the start of the round (`loses_rack`); if soft, a replica that must leave may crowd."""
    hard = problem.setting[RACK_GOAL] == HARD_RACK
    if problem.setting[RACK_GOAL] == NO_RACK_GOAL or (not hard and must_leave(problem, p, state.replicas[p, s])):
        return True
    old, new = problem.broker[state.replicas[p, s], RACK_OF], problem.broker[target, RACK_OF]
    if old == new:
        return True
    left, came = 0, 1
    for o in range(state.replicas.shape[1]):
        other = state.replicas[p, o]
        if other >= 0:
            if problem.broker[other, RACK_OF] == old:
                left += 1
            elif problem.broker[other, RACK_OF] == new:
                came += 1
    if hard and left == 1 and came > 1 and loses_rack(problem, p, state.home[p], state.replicas[p], s, target):
        return False
    return bool(came <= problem.partition[p, RACK_LIMIT] or left > problem.partition[p, RACK_LIMIT])


@inner
def rack_mates(problem: Problem, state: State, p: int, b: int) -> int:
    """How many replicas of partition `p` are in the rack of broker `b`."""
    count = 0
    for s in range(state.replicas.shape[1]):
        other = state.replicas[p, s]
        if other >= 0 and problem.broker[other, RACK_OF] == problem.broker[b, RACK_OF]:
            count += 1
    return count


@inner
def loses_rack(problem: Problem, p: int, before: np.ndarray, after: np.ndarray, s: int, target: int) -> bool:
    """Whether list `after` int64 [R or more] of partition `p`, with `target` in slot `s` (-1: as it is), has fewer racks than `before`,
    and no replica leaves a dead or draining broker, or one of another set."""
    racks = whole(0)
    for o in range(len(before)):
        b = before[o]
        if b < 0:
            continue
        now = target if o == s else after[o]
        if now != b and (is_leaving(problem, b) or not in_set(problem, p, b)):
            return False
        old_first, new_first = True, True
        for e in range(o):
            if problem.broker[before[e], RACK_OF] == problem.broker[b, RACK_OF]:
                old_first = False
            if problem.broker[target if e == s else after[e], RACK_OF] == problem.broker[now, RACK_OF]:
                new_first = False
        racks += (1 if new_first else 0) - (1 if old_first else 0)
    return bool(racks < 0)


@inner
def may_host(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """Whether slot `s` of `p` may move to broker `target`: active, of the set, not in the list, with room in rack and hard limits."""
    if not is_active(problem, target) or state.hosts[target] >= state.hosted.shape[1]:
        return False
    if not may_swap(problem, state, p, s, target):
        return False
    return fits_limits(problem, state, target, p, whole(NOTHING), whole(LEADING if state.lead[p] == s else FOLLOWING))


@inner
def may_swap(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`may_host` without hard limits, which a swap meets by its difference, for an active `target` with room in its replica list."""
    for o in range(state.replicas.shape[1]):
        if state.replicas[p, o] == target:
            return False
    return in_set(problem, p, target) and fits_rack(problem, state, p, s, target)


@kernel
def hosts_legally(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`may_host` for callers in Python."""
    return may_host(problem, state, p, s, target)


@kernel
def legal_moves(problem: Problem, state: State, partitions: np.ndarray, slots: np.ndarray, brokers: np.ndarray, legal: np.ndarray) -> None:
    """Write into `legal` bool [n], for each of n moves, whether `may_host` allows it."""
    for i in range(len(partitions)):
        legal[i] = may_host(problem, state, partitions[i], slots[i], brokers[i])


@inner
def fits_as_leader(problem: Problem, state: State, p: int, b: int) -> bool:
    """Whether broker `b` is active and stays within its hard limits when its follower of `p` becomes the leader."""
    return is_active(problem, b) and fits_limits(problem, state, b, p, whole(FOLLOWING), whole(LEADING))


@inner
def fits_limits(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> bool:
    """Whether hard limits allow broker `b` to change its role in `p` from `held` (`NOTHING`: no replica) to `role`."""
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD] == 1:
            c = problem.goal[g, COLUMN]
            x = more_load(problem, c, p, role, p, held)
            if x > 0.0 and state.load[b, c] + x > problem.table[b, g, CEILING]:
                return False
    return True


@inner
def keeps_limits(problem: Problem, state: State, v: int, u: int, x: np.ndarray, i: int, y: np.ndarray, j: int) -> bool:
    """Whether hard limits allow vector `i` of `x` [C, n] to go from broker `v` to `u`, and vector `j` of `y` from `u` to `v`."""
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD] == 1:
            c = problem.goal[g, COLUMN]
            d = x[c, i] - y[c, j]
            if d > 0.0 and state.load[u, c] + d > problem.table[u, g, CEILING]:
                return False
            if d < 0.0 and state.load[v, c] - d > problem.table[v, g, CEILING]:
                return False
    return True


# wide: the replica that comes and the one that goes, each with its role
@inner
def keeps_scores(problem: Problem, state: State, b: int, p: int, now: int, q: int, was: int) -> bool:
    """Whether broker `b` scores no lower in goals on loads with a replica of `p` in role `now` in exchange for one of `q` in role `was`."""
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT:
            more = more_load(problem, problem.goal[g, COLUMN], p, now, q, was)
            low, high = window(problem, state, b, g)
            load = state.load[b, problem.goal[g, COLUMN]] + more
            if more != 0.0 and (load > high or load < low):
                return False
    return True


@inner
def scores_hold(state: State, brokers: np.ndarray, n: int, before: np.ndarray) -> bool:
    """Whether none of the first `n` of `brokers` scores lower in any goal than `before` float64 [n, G or more]."""
    for i in range(n):
        for g in range(state.score.shape[1] - 1):
            if state.score[brokers[i], g] < before[i, g] - 1e-12:
                return False
    return True


@inner
def misplaces(problem: Problem, state: State, p: int, s: int, lead: int) -> bool:
    """Whether any broker gets more misplaced units of topics when `p` moves to `State.row`, led by `lead`; slot `s` moves (-1: none)."""
    t = whole(problem.topic[p])
    for k in range(len(problem.topic_goal)):
        if problem.topic_goal[k, COUNTS_LEADERS] == 1:
            source = state.replicas[p, state.lead[p]] if state.lead[p] >= 0 else -1
            target = state.row[lead] if lead >= 0 else -1
        else:
            source, target = (state.replicas[p, s], state.row[s]) if s >= 0 else (-1, -1)
        if source == target:
            continue
        if source >= 0 and misplaced_rise(problem, state, k, t, source, whole(-1)) > 0.0:
            return True
        if target >= 0 and misplaced_rise(problem, state, k, t, target, whole(1)) > 0.0:
            return True
    return False


@inner
def linear_goals(problem: Problem) -> np.ndarray:
    """int64: rows of all goals on loads, including limits that no broker exceeds yet."""
    found, count = np.zeros(len(problem.goal), np.int64), 0
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT:
            found[count] = g
            count += 1
    return found[:count].copy()


@inner
def window(problem: Problem, state: State, b: int, g: int) -> tuple[float, float]:
    """Least and most load with which broker `b` scores no lower in goal `g` on loads than now."""
    load = state.load[b, problem.goal[g, COLUMN]]
    low, high = full_score(problem, b, g)
    return min(low, load), max(high, load)


@inner
def full_score(problem: Problem, b: int, g: int) -> tuple[float, float]:
    """Least and most load with which broker `b` has the full score in goal `g` on loads."""
    mean = problem.table[b, g, MEAN]
    if is_active(problem, b) and problem.goal[g, KIND] == LIMIT:
        return -np.inf, float(problem.table[b, g, CEILING])
    if not is_active(problem, b) or mean <= 0.0:
        return -np.inf, np.inf
    bound = problem.table[b, g, BOUND] * (1.0 + 1e-9)
    low, high = mean - bound, mean + bound
    if mean < problem.force[g, MIN_LOAD]:
        low, high = -np.inf, max(high, problem.force[g, MIN_LOAD])
    return low, high


@inner
def role_of(state: State, entry: int) -> int:
    slots = state.replicas.shape[1]
    return whole(LEADING if state.lead[entry // slots] == entry % slots else FOLLOWING)
