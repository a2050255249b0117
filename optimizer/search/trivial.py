"""A plan, or an independent part of one, that changes too little for `trivial_change` is left out of a target.

Called by `search`. Parts are judged from the start of the plan: changes of partitions that touch a broker in common belong together, and a
part is left out only where it is trivial for every broker it touches, in every goal. Repairs stay in, and with them their
part: what leaves a dead or draining broker or one out of a hard goal, gives a partition a leader, or takes replicas out of a crowded rack.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState
from goals.model import UsageDistribution
from optimizer.problem import (
    COLUMN,
    DISTRIBUTION,
    HARD_RACK,
    KIND,
    MEAN,
    RACK,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    STATE,
    Compiled,
    Problem,
)
from optimizer.search.commit import build_state
from optimizer.search.state import Rows, State

ROUNDING = 1e-9  # of a mean


def leaves_trivial(compiled: Compiled) -> bool:
    """Whether some goal has changes left out that are too small."""
    return any(isinstance(g, UsageDistribution) and g.trivial_change > 0 for g in compiled.goals)


def without_trivial(
    compiled: Compiled, problem: Problem, replicas: Rows, lead: Rows, state: State
) -> tuple[Rows, Rows]:
    """Lists and leaders of the target `state`, with trivial parts of the plan as they are in `replicas` int64 [P, R] and `lead`."""
    if not leaves_trivial(compiled):
        return state.replicas, state.lead
    dropped = trivial_partitions(compiled, problem, state)
    target, target_lead = state.replicas.copy(), state.lead.copy()
    target[dropped], target_lead[dropped] = replicas[dropped], lead[dropped]
    return target, target_lead


def adds_trivial(compiled: Compiled, problem: Problem, replicas: Rows, lead: Rows, state: State) -> bool:
    """Whether steps from `replicas` int64 [P, R] and `lead` int64 [P] to `state` changed a part that is trivial all in all."""
    rows = trivial_partitions(compiled, problem, state)
    return bool((np.sort(replicas[rows]) != np.sort(state.replicas[rows])).any()) or bool(
        (_leaders(replicas[rows], lead[rows]) != _leaders(state.replicas[rows], state.lead[rows])).any()
    )


def trivial_partitions(compiled: Compiled, problem: Problem, end: State) -> Rows:
    """int64: partitions of trivial parts of the plan that leads from the start of `compiled` to `end`.

    O(P R), and the connected parts of the changed partitions.
    """
    lists, leads = end.replicas, end.lead
    begin, begin_lead = np.sort(compiled.replicas, axis=1), _leaders(compiled.replicas, compiled.lead)
    goal, goal_lead = np.sort(lists, axis=1), _leaders(lists, leads)
    changed = np.flatnonzero((begin != goal).any(axis=1) | (begin_lead != goal_lead))
    if not len(changed):
        return changed
    start = build_state(problem, compiled.replicas, compiled.lead)
    partition, broker = _touched(begin[changed], goal[changed], begin_lead[changed], goal_lead[changed])
    of_partition, of_broker = _parts(partition, broker, len(changed), len(problem.broker))
    keeps = np.zeros(len(problem.broker), np.bool_)
    keeps[of_broker[_moved(compiled, problem, start, end)]] = True
    states = problem.broker[:, STATE]
    urgent = _urgent(compiled, problem, start) | (states == BrokerState.DEAD) | (states == BrokerState.DRAINING)
    repairs = (begin_lead[changed] < 0) & (goal_lead[changed] >= 0)
    repairs[partition[urgent[broker]]] = True
    if problem.setting[RACK_GOAL] == HARD_RACK:
        repairs |= _excess(problem, changed, lists[changed]) < _excess(problem, changed, compiled.replicas[changed])
    keeps[of_partition[repairs]] = True
    return changed[~keeps[of_partition]]


def _parts(partition: Rows, broker: Rows, partitions: int, brokers: int) -> tuple[Rows, Rows]:
    """int64 by partition and by broker: the lowest broker of the part that each belongs to, joined by pairs `partition`, `broker`."""
    of_broker = np.arange(brokers)
    while True:
        of_partition = np.full(partitions, brokers - 1)
        np.minimum.at(of_partition, partition, of_broker[broker])
        joined = of_broker.copy()
        np.minimum.at(joined, broker, of_partition[partition])
        joined = joined[joined]  # the lowest broker of a part is its own
        if np.array_equal(joined, of_broker):
            return of_partition, of_broker
        of_broker = joined


def _leaders(lists: Rows, leads: Rows) -> Rows:
    """int64 [P]: broker rows of leaders, -1 where there is none."""
    leaders: Rows = np.where(leads >= 0, lists[np.arange(len(lists)), np.maximum(leads, 0)], -1)
    return leaders


def _touched(begin: Rows, goal: Rows, begin_lead: Rows, goal_lead: Rows) -> tuple[Rows, Rows]:
    """Pairs of partition (0..n) and broker, both int64: brokers whose replica set or leadership each changed partition alters."""
    came = (goal[:, :, None] != begin[:, None, :]).all(axis=2) & (goal >= 0)
    gone = (begin[:, :, None] != goal[:, None, :]).all(axis=2) & (begin >= 0)
    led = np.flatnonzero(begin_lead != goal_lead)
    pairs = [
        *((np.nonzero(hit)[0], lists[hit]) for lists, hit in ((goal, came), (begin, gone))),
        *((led[leads[led] >= 0], leads[led][leads[led] >= 0]) for leads in (begin_lead, goal_lead)),
    ]
    return np.concatenate([p for p, _ in pairs]), np.concatenate([b for _, b in pairs])


def _moved(compiled: Compiled, problem: Problem, start: State, end: State) -> BoolArray:
    """bool [B]: active brokers that some goal sees changed by more than its `trivial_change`, or, where it has none, at all."""
    moved = np.zeros(len(problem.broker), np.bool_)
    for g, goal in enumerate(compiled.goals):
        if problem.goal[g, KIND] == DISTRIBUTION and isinstance(goal, UsageDistribution):
            mean = problem.table[:, g, MEAN]
            net = np.abs(end.load[:, problem.goal[g, COLUMN]] - start.load[:, problem.goal[g, COLUMN]])
            moved |= (mean > 0) & (net > (goal.trivial_change + ROUNDING) * mean)
        else:
            moved |= start.score[:, g] != end.score[:, g]
    active: BoolArray = problem.broker[:, STATE] == BrokerState.ACTIVE
    return moved & active


def _urgent(compiled: Compiled, problem: Problem, start: State) -> BoolArray:
    """bool [B]: active brokers out of a hard goal; of racks each partition is asked."""
    hard = [g for g, goal in enumerate(compiled.goals) if goal.hard and problem.goal[g, KIND] != RACK]
    urgent: BoolArray = (problem.broker[:, STATE] == BrokerState.ACTIVE) & (start.score[:, hard] < 1.0).any(axis=1)
    return urgent


def _excess(problem: Problem, partitions: Rows, lists: Rows) -> Rows:
    """int64 [n]: replicas of each of `partitions` that are too many in their racks, on `lists` [n, R]."""
    racks = np.where(lists >= 0, problem.broker[lists, RACK_OF], -1)
    together = (racks[:, :, None] == racks[:, None, :]).sum(axis=2)  # with each slot, itself included
    later = np.tril(racks[:, :, None] == racks[:, None, :], -1).any(axis=2)  # a rack counts once, where it first stands
    over = np.maximum(together - problem.partition[partitions, RACK_LIMIT][:, None], 0)
    excess: Rows = np.where(later | (racks < 0), 0, over).sum(axis=1)
    return excess
