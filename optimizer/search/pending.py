"""Changes that wait on the way to a target placement: whom one touches, and when what is known of it was last true."""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner
from optimizer.problem import FOLLOWING, LEADING, RACK_GOAL, SOFT_RACK, STATE, Problem
from optimizer.search.broker_scores import scores_low
from optimizer.search.state import RACKS, State


@inner
def last_change(state: State, p: int, to: np.ndarray, to_lead: np.ndarray, seen: np.ndarray) -> int:
    """When a broker that the change of `p` to its target touches changed last, by what was `seen` int64 [B]."""
    last = 0
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and differs(state, p, s, to, to_lead):
            last = max(last, seen[old], seen[to[p, s]])
    return last


@inner
def note_change(
    problem: Problem, state: State, p: int, to: np.ndarray, to_lead: np.ndarray, seen: np.ndarray, now: int
) -> None:  # fmt: skip
    """Every broker that the change of `p` to its target touches changes `now`.

    So do those that keep their replica where its rack is over-full before or after, which a hard rule allows no change to make.
    """
    soft = problem.setting[RACK_GOAL] == SOFT_RACK
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and (soft or state.units[RACKS, old] > 0.0 or differs(state, p, s, to, to_lead)):
            seen[old], seen[to[p, s]] = now, now


@inner
def load_change(
    state: State, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, at: int,
    p: int, to: np.ndarray, to_lead: np.ndarray,
) -> None:  # fmt: skip
    """Write the change of `p` to its target as change `at` of an action."""
    partitions[at] = p
    for s in range(to.shape[1]):
        replicas[at, s] = to[p, s]
    leads[at] = to_lead[p]


@inner
def ask_for(problem: Problem, state: State, p: int, to: np.ndarray, to_lead: np.ndarray) -> None:
    """Have at hand what `evaluate` reads of the partition, some changes before its own."""
    ahead(state.replicas, p)
    ahead(state.lead, p)
    ahead(to, p)
    ahead(to_lead, p)
    ahead(problem.partition, p)
    ahead(problem.vector[p], LEADING)
    ahead(problem.vector[p], FOLLOWING)
    ahead(state.place, p)


@inner
def ask_for_counts(problem: Problem, state: State, p: int, to: np.ndarray, row: int) -> None:
    """Have at hand, of what was asked for before, the counts of the topic on brokers that gain or lose a replica when `p` goes to row
    `row` of `to`, and the places in lists."""
    column = problem.topic_counted[problem.topic[p]] if len(problem.topic_goal) > 0 else -1
    for s in range(to.shape[1]):
        old, new = state.replicas[p, s], to[row, s]
        if old >= 0 and old != new:
            ahead(state.hosted[old], state.place[p, s])
            if column >= 0:
                ahead(state.topic_count[column], old)
                ahead(state.topic_count[column], new)


@inner
def moved_slots(state: State, p: int, to: np.ndarray) -> int:
    """How many replicas of `p` are not yet where `to` wants them."""
    moved = 0
    for s in range(to.shape[1]):
        if state.replicas[p, s] != to[p, s]:
            moved += 1
    return moved


@inner
def helps_someone(problem: Problem, state: State, p: int, to: np.ndarray, to_lead: np.ndarray) -> bool:
    """Whether the change touches a broker that scores low; one that does not cannot be acceptable without repairing."""
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and differs(state, p, s, to, to_lead):
            if problem.broker[old, STATE] != 0:
                return True
            if scores_low(problem, state, old) or scores_low(problem, state, to[p, s]):
                return True
    return False


@inner
def differs(state: State, p: int, s: int, to: np.ndarray, to_lead: np.ndarray) -> bool:
    """Whether slot `s` changes broker or role on the way to the target."""
    return bool(state.replicas[p, s] != to[p, s] or (state.lead[p] == s) != (to_lead[p] == s))
