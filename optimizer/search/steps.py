"""One step of the random search: the replicas that it moves, whether it is allowed, and what it saves.

Called by `sideways`, which chooses the steps, and by `reduce`, which sends replicas home.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, whole
from optimizer.placement.commit import send, transfer, write_row
from optimizer.placement.feasible import full_score, keeps_scores, linear_goals, may_swap, misplaces, role_of, scores_hold
from optimizer.placement.potential import price
from optimizer.placement.state import COST, State, is_active
from optimizer.problem import COLUMN, FOLLOWING, LEADING, MOVABLE, RACK_GOAL, RACK_OF, SOFT_RACK, Problem


class Step(NamedTuple):
    """Up to n = 3 changes and the brokers that they touch; and data that is the same for all steps."""

    home: np.ndarray  # int64 [P, R], where replicas were
    linear: np.ndarray  # int64 [W], goals on loads
    ends: np.ndarray  # float64 [B, W, 2], least and most load with the full score in each goal (`full_score`)
    entry: np.ndarray  # int64 [n], partition * R + slot of replicas that move
    source: np.ndarray  # int64 [n], brokers that they leave
    target: np.ndarray  # int64 [n], brokers that they go to
    brokers: np.ndarray  # int64 [n], all brokers of the step (`keeps_load_scores`)
    before: np.ndarray  # float64 [n, G], scores of these before the step


@inner
def new_step(problem: Problem, home: np.ndarray) -> Step:
    """A step without changes."""
    linear = linear_goals(problem)
    ends = np.zeros((len(problem.broker), len(linear), 2))
    for b in range(len(problem.broker)):
        for k in range(len(linear)):
            ends[b, k, 0], ends[b, k, 1] = full_score(problem, b, linear[k])
    return Step(
        home, linear, ends, np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64),
        np.zeros((3, len(problem.goal))),
    )  # fmt: skip


@inner
def add(state: State, step: Step, i: int, entry: int, target: int) -> None:
    """Set change `i` of the step: replica `entry` goes to broker `target`."""
    slots = state.replicas.shape[1]
    step.entry[i], step.source[i], step.target[i] = entry, state.replicas[entry // slots, entry % slots], target


@inner
def saved_by(problem: Problem, step: Step, n: int) -> float:
    """Cost that the `n` changes of a step save; below 0 if they cost more."""
    saved = 0.0
    for i in range(n):
        saved += price(problem, step.home, step.entry[i], step.source[i]) - price(problem, step.home, step.entry[i], step.target[i])
    return saved


@inner
def changes_allowed(problem: Problem, state: State, step: Step, n: int) -> bool:
    """Whether each of the `n` changes of a step is allowed by itself. Also False if two of them are of one partition or, with goals on
    topics, if two replicas of one topic go to one broker."""
    slots, topics = state.replicas.shape[1], len(problem.topic_goal)
    for i in range(n):
        p, target = step.entry[i] // slots, step.target[i]
        if target == step.source[i] or not is_active(problem, target) or problem.partition[p, MOVABLE] == 0:
            return False
        for j in range(i):
            q = step.entry[j] // slots
            if q == p or (topics > 0 and step.target[j] == target and problem.topic[q] == problem.topic[p]):
                return False
    for i in range(n):
        if not may_take(problem, state, step.entry[i], step.target[i]):
            return False
    return True


@inner
def may_take(problem: Problem, state: State, entry: int, b: int) -> bool:
    """Whether replica `entry` may go to broker `b` by replica lists, broker sets, racks and goals on topics; loads are not looked at."""
    p, s = entry // state.replicas.shape[1], entry % state.replicas.shape[1]
    if not may_swap(problem, state, p, s, b) or state.hosts[b] + 1 >= state.hosted.shape[1]:
        return False
    if problem.setting[RACK_GOAL] == SOFT_RACK and problem.broker[b, RACK_OF] != problem.broker[state.replicas[p, s], RACK_OF]:
        return False  # a change of racks could also change the scores of other brokers
    if len(problem.topic_goal) == 0:
        return True
    write_row(state, p, s, b)
    return not misplaces(problem, state, p, s, state.lead[p])


@inner
def count_brokers(step: Step, n: int) -> int:
    """Number of brokers that a step of `n` changes touches: 2 or 3."""
    return whole(3 if n == 3 and step.source[1] != step.source[0] else 2)


@inner
def keeps_load_scores(problem: Problem, state: State, step: Step, n: int) -> bool:
    """Whether no broker scores lower in goals on loads after the `n` changes of a step; sets `step.brokers` to those that they touch."""
    slots = state.replicas.shape[1]
    step.brokers[0], step.brokers[1], step.brokers[2] = step.source[0], step.target[0], step.source[1]
    for b in step.brokers[: count_brokers(step, n)]:
        for k in range(len(step.linear)):
            c, more = problem.goal[step.linear[k], COLUMN], 0.0
            for i in range(n):
                if step.source[i] == b or step.target[i] == b:
                    amount = problem.vector[step.entry[i] // slots, role_of(state, step.entry[i]), c]
                    more += amount if step.target[i] == b else -amount
            load = state.load[b, c] + more
            if load > max(step.ends[b, k, 1], state.load[b, c]) or load < min(step.ends[b, k, 0], state.load[b, c]):
                return False
    return True


@inner
def make_step(problem: Problem, state: State, step: Step, n: int, firm: bool) -> bool:
    """Make the `n` changes of a step; False, and none is made, if a broker would score lower or, if `firm`, the potential would rise."""
    brokers, potential, after = count_brokers(step, n), 0.0, 0.0
    for i in range(brokers):
        for g in range(step.before.shape[1]):
            step.before[i, g] = state.score[step.brokers[i], g]
        potential += state.score[step.brokers[i], COST]
    for i in range(n - 1, -1, -1):
        send(problem, state, step.entry[i], step.target[i])
    for i in range(brokers):
        after += state.score[step.brokers[i], COST]
    if scores_hold(state, step.brokers, brokers, step.before) and not (firm and after > potential):
        return True
    for i in range(n):
        send(problem, state, step.entry[i], step.source[i])
    return False


@inner
def hand_on(problem: Problem, state: State, p: int, follower: int, firm: bool) -> bool:
    """Make slot `follower` lead `p`; False, without a change, if a broker would score lower or, if `firm`, the potential would rise."""
    lead = state.lead[p]
    there, here = state.replicas[p, follower], state.replicas[p, lead]
    if not keeps_scores(problem, state, there, p, whole(LEADING), p, whole(FOLLOWING)):
        return False
    if not keeps_scores(problem, state, here, p, whole(FOLLOWING), p, whole(LEADING)):
        return False
    if len(problem.topic_goal) > 0:
        write_row(state, p, follower, there)
        if misplaces(problem, state, p, whole(-1), follower):
            return False
    potential = state.score[here, COST] + state.score[there, COST]
    transfer(problem, state, p, follower)
    if firm and state.score[here, COST] + state.score[there, COST] > potential:
        transfer(problem, state, p, lead)
        return False
    return True
