"""Replicas and leaderships that a target moved without need go back to where they were.

Called once per target, before its changes are put in order.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner, kernel, whole
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    COUNTS_LEADERS,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MIN_LOAD,
    STATE,
    Problem,
)
from optimizer.search.commit import commit
from optimizer.search.feasible import leaves_band, may_host
from optimizer.search.potential import NOTHING
from optimizer.search.state import COST, SOON, State
from optimizer.search.topic_counts import topic_rise

GIVES, TAKES = 0, 1  # rows of `shut`


@inner
def misplaces(problem: Problem, state: State, p: int, s: int, row: np.ndarray, lead: int) -> bool:
    """Whether the topic goals of any broker suffer when `p` comes to `row`, led by `lead`: slot `s` moves, if there is such a slot."""
    t = whole(problem.topic[p])
    for k in range(len(problem.topic_goal)):
        if problem.topic_goal[k, COUNTS_LEADERS] == 1:
            source = state.replicas[p, state.lead[p]] if state.lead[p] >= 0 else -1
            target = row[lead] if lead >= 0 else -1
        else:
            source, target = (state.replicas[p, s], row[s]) if s < len(row) else (-1, -1)
        if source == target:
            continue
        if source >= 0 and topic_rise(problem, state, k, t, source, whole(-1)) > 0.0:
            return True
        if target >= 0 and topic_rise(problem, state, k, t, target, whole(1)) > 0.0:
            return True
    return False


@inner
def scores_hold(state: State, brokers: np.ndarray, n: int, before: np.ndarray) -> bool:
    """Whether none of the `n` brokers scores lower in any goal than `before` float64 [n, G] says."""
    for i in range(n):
        for g in range(before.shape[1]):
            if state.score[brokers[i], g] < before[i, g] - 1e-12:
                return False
    return True


@inner
def extremes(problem: Problem, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float64 [C]: the least and the most that a replica of the partitions `order` costs, in either role."""
    columns = problem.vector.shape[2]
    least, most = np.full(columns, np.inf), np.zeros(columns)
    for i in range(len(order)):
        p = order[i]
        if i + SOON < len(order):
            ahead(problem.vector[order[i + SOON]], LEADING)
            ahead(problem.vector[order[i + SOON]], FOLLOWING)
        for role in range(2):
            for c in range(columns):
                least[c], most[c] = min(least[c], problem.vector[p, role, c]), max(most[c], problem.vector[p, role, c])
    return least, most


@inner
def note_shut(problem: Problem, state: State, b: int, least: np.ndarray, most: np.ndarray, shut: np.ndarray) -> None:
    """Whether broker `b` would leave a band with any replica less, or any more, into `shut` uint8 [2, B]: by `leaves_band`, for
    replicas between `least` and `most` float64 [C]."""
    shut[GIVES, b], shut[TAKES, b] = 0, 0
    for g in range(len(problem.goal) if problem.broker[b, STATE] == 0 else 0):
        if problem.goal[g, KIND] > LIMIT or state.score[b, g] < 1.0:
            continue
        c = problem.goal[g, COLUMN]
        load, mean = state.load[b, c], problem.table[b, g, MEAN]
        more, less = load + least[c], load - least[c]
        if problem.goal[g, KIND] == LIMIT:
            if more > problem.table[b, g, CEILING]:
                shut[TAKES, b] = 1
        elif mean > 0.0:
            away = problem.table[b, g, BOUND] * (1.0 + 1e-9)
            if more - mean > away and more > problem.force[g, MIN_LOAD]:
                shut[TAKES, b] = 1
            if mean - less > away and load - most[c] > problem.force[g, MIN_LOAD]:
                shut[GIVES, b] = 1


@kernel
def send_home(
    problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, order: np.ndarray, firm: bool
) -> int:
    """Take moved replicas (`order`: partitions, largest first) and leaderships home where no broker is worse for it; where `firm`, only
    where the potential does not rise either."""
    slots = state.replicas.shape[1]
    goals = state.score.shape[1] - 1
    row, was = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    brokers = np.zeros(2 * slots, np.int64)
    before = np.zeros((2 * slots, goals))
    least, most = extremes(problem, order)
    shut = np.zeros((2, len(problem.broker)), np.uint8)
    for b in range(len(problem.broker)):
        note_shut(problem, state, b, least, most, shut)
    done = 0
    for _ in range(3):
        taken = 0
        for i in range(len(order)):
            if i + SOON < len(order):
                q = order[i + SOON]
                ahead(state.replicas, q)
                ahead(home, q)
                ahead(state.lead, q)
                ahead(home_lead, q)
            p = order[i]
            for s in range(slots + 1):
                lead = state.lead[p]
                for o in range(slots):
                    was[o] = state.replicas[p, o]
                    row[o] = was[o]
                n = 0
                if s < slots:
                    back = home[p, s]
                    if back < 0 or back == was[s] or shut[GIVES, was[s]] == 1 or shut[TAKES, back] == 1:
                        continue
                    if not may_host(problem, state, p, s, back):
                        continue
                    held = whole(LEADING if lead == s else FOLLOWING)
                    if leaves_band(problem, state, was[s], p, held, whole(NOTHING)):
                        continue
                    role = held
                    if home_lead[p] == s and problem.broker[back, STATE] == 0:
                        lead = s
                        role = whole(LEADING)
                    if leaves_band(problem, state, back, p, whole(NOTHING), role):
                        continue
                    row[s] = back
                    brokers[0], brokers[1] = was[s], back
                    n = 2
                    if lead != state.lead[p]:
                        brokers[2] = was[state.lead[p]]
                        n = 3
                else:
                    want = home_lead[p]
                    if want < 0 or want == lead or lead < 0 or home[p, want] != was[want]:
                        continue
                    if problem.broker[was[want], STATE] != 0:
                        continue
                    if leaves_band(problem, state, was[want], p, whole(FOLLOWING), whole(LEADING)):
                        continue
                    brokers[0], brokers[1] = was[want], was[lead]
                    lead = want
                    n = 2
                if len(problem.topic_goal) > 0 and misplaces(problem, state, p, s, row, lead):
                    continue
                for j in range(n):
                    for g in range(goals):
                        before[j, g] = state.score[brokers[j], g]
                old_lead, rise = state.lead[p], 0.0
                for j in range(n):
                    rise -= state.score[brokers[j], COST]
                commit(problem, state, p, row, lead)
                for j in range(n):
                    rise += state.score[brokers[j], COST]
                if scores_hold(state, brokers, n, before) and not (firm and rise > 0.0):
                    taken += 1
                    for j in range(n):
                        note_shut(problem, state, brokers[j], least, most, shut)
                else:
                    commit(problem, state, p, was, old_lead)
        done += taken
        if taken == 0:
            break
    return done
