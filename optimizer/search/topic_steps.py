"""Single acceptable steps for the topics of a broker that it has too many or too few of.

Called by `polish`; each step is checked by `evaluate`.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, part, whole
from optimizer.problem import (
    COUNTS_LEADERS,
    FOLLOWING,
    KIND,
    LEADING,
    MOVABLE,
    STATE,
    TOPIC,
    Problem,
)
from optimizer.search.chance import scramble
from optimizer.search.costs import NOTHING, cost_of_gaining
from optimizer.search.desk import least_of, most_of
from optimizer.search.evaluate import acceptable, evaluate
from optimizer.search.hosting import may_host
from optimizer.search.ledger import LEAST_STEP, Budget, within_budget
from optimizer.search.state import State
from optimizer.search.steps import helps, set_move
from optimizer.search.topic_counts import largest_share, topic_holds, topic_rise, wanted_by_all
from optimizer.search.topics import lead_gain

TOPIC_LOOKS = 48  # steps for the topics of one broker that are evaluated in full
MOST_OFFERED, MOST_DONORS = 24, 1_000  # replicas looked at to find them: of the broker, and of others
TOPIC_TARGETS = 160  # brokers looked at for one of them


@part
def topic_single(
    problem: Problem, state: State, budget: Budget, v: int, by_potential: bool, best_gain: np.ndarray,
    best_entry: np.ndarray, best_target: np.ndarray,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> bool:  # fmt: skip
    """As `best_single`, for the topics that broker `v` has too many or too few of: the first acceptable of the most promising."""
    slots = state.replicas.shape[1]
    zero, one = whole(0), whole(1)
    few = len(problem.broker) > 2 * TOPIC_TARGETS
    for attempt in range(2 if few else 1):
        found = zero
        for k in range(len(problem.topic_goal)):
            if state.units[k, v] > 0.0:
                found = surplus(problem, state, k, v, few and attempt == 0, found, best_gain, best_entry, best_target)
                found = shortage(problem, state, k, v, found, best_gain, best_entry, best_target)
        for i in range(found):
            p, s = best_entry[i] // slots, best_entry[i] % slots
            if best_target[i] < 0:
                set_move(state, partitions, replicas, leads, p, s, best_target[i], s)
            else:
                set_move(state, partitions, replicas, leads, p, s, best_target[i], state.lead[p])
            verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
            if helps(state, v, scores) and acceptable(verdict, by_potential, LEAST_STEP):
                if within_budget(problem, state, budget, one, partitions, replicas, leads):
                    return True
    return False


@inner
def only_topics(problem: Problem, state: State, v: int) -> bool:
    """Whether topics are all that broker `v` scores low in."""
    if len(problem.topic_goal) == 0:
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] != TOPIC and state.score[v, g] < 1.0:
            return False
    return True


@inner
def surplus(
    problem: Problem, state: State, k: int, v: int, sampled: bool, found: int,
    best_gain: np.ndarray, best_entry: np.ndarray, best_target: np.ndarray,
) -> int:  # fmt: skip
    """Note what `v` could give of the topics that it has too many of, by gain in potential; target -1 is a change of leader.

    Targets are all brokers, or some where `sampled`.
    """
    slots = state.replicas.shape[1]
    leaders = problem.topic_goal[k, COUNTS_LEADERS] == 1
    looked = 0
    for i in range(state.hosts[v]):
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        t = whole(problem.topic[p])
        if problem.partition[p, MOVABLE] == 0 or (leaders and state.lead[p] != s):
            continue
        if topic_holds(problem, state, k, t, v) <= most_of(problem, k, t, v):
            continue
        if leaders:
            for o in range(slots):
                if o != s and state.replicas[p, o] >= 0 and problem.broker[state.replicas[p, o], STATE] == 0:
                    gain = lead_gain(problem, state, p, whole(o), False)
                    if gain > 0.0:
                        found = note(best_gain, best_entry, best_target, found, gain, p * slots + o, whole(-1))
        if looked >= MOST_OFFERED:
            continue
        looked += 1
        relief = relief_of(problem, state, p, s)
        start = scramble(p * 8191 + v)
        for i in range(TOPIC_TARGETS if sampled else len(problem.broker)):
            target = scramble(start + i) % len(problem.broker) if sampled else i
            if target != v and problem.broker[target, STATE] == 0:
                if topic_rise(problem, state, k, t, target, whole(1)) > 0.0:
                    continue
                gain = move_gain(problem, state, p, s, target, relief)
                if gain > 0.0:
                    found = note(best_gain, best_entry, best_target, found, gain, entry, target)
    return found


@inner
def shortage(
    problem: Problem, state: State, k: int, v: int, found: int,
    best_gain: np.ndarray, best_entry: np.ndarray, best_target: np.ndarray,
) -> int:  # fmt: skip
    """Note what `v` could take of the topics that it has too few of, as `surplus` does."""
    slots = state.replicas.shape[1]
    leaders = problem.topic_goal[k, COUNTS_LEADERS] == 1
    most = largest_share(problem, k)
    looked = 0
    for t in range(len(problem.topic_first) - 1):
        if not wanted_by_all(problem, k, t, most):
            continue
        if topic_holds(problem, state, k, t, v) >= least_of(problem, k, t, v):
            continue
        for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
            if problem.partition[p, MOVABLE] == 0 or looked >= MOST_DONORS:
                continue
            for s in range(slots):
                b = state.replicas[p, s]
                if b < 0 or problem.broker[b, STATE] == 3:
                    continue
                if b == v:
                    if leaders and state.lead[p] >= 0 and state.lead[p] != s:
                        gain = lead_gain(problem, state, p, whole(s), False)
                        if gain > 0.0:
                            found = note(best_gain, best_entry, best_target, found, gain, p * slots + s, whole(-1))
                    continue
                if leaders and state.lead[p] != s:
                    continue
                looked += 1
                gain = move_gain(problem, state, p, whole(s), v, relief_of(problem, state, p, whole(s)))
                if gain > 0.0:
                    found = note(best_gain, best_entry, best_target, found, gain, p * slots + s, v)
    return found


@inner
def note(
    best_gain: np.ndarray, best_entry: np.ndarray, best_target: np.ndarray, found: int, gain: float, entry: int, target: int
) -> int:
    """Keep the best few in descending order of gain, the earlier of equals first; returns how many there are."""
    most = len(best_gain)
    if found == most and gain <= best_gain[most - 1]:
        return found
    at = most - 1 if found == most else found
    while at > 0 and best_gain[at - 1] < gain:
        best_gain[at], best_entry[at], best_target[at] = best_gain[at - 1], best_entry[at - 1], best_target[at - 1]
        at -= 1
    best_gain[at], best_entry[at], best_target[at] = gain, entry, target
    return min(found + 1, most)


@inner
def move_gain(problem: Problem, state: State, p: int, s: int, target: int, relief: float) -> float:
    """By how much the potential falls when slot `s` of `p` goes to `target`, 0 where it may not; `relief` is what its broker saves."""
    if not may_host(problem, state, p, s, target):
        return 0.0
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    return relief - cost_of_gaining(problem, state, target, p, whole(NOTHING), role)


@inner
def relief_of(problem: Problem, state: State, p: int, s: int) -> float:
    """By how much the potential of the broker of slot `s` falls without that replica."""
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    return -cost_of_gaining(problem, state, state.replicas[p, s], p, role, whole(NOTHING))
